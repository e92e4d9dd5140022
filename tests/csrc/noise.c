/* noise.c - see noise.h. Compiled in the build HS_NOISE=1 alone. */
#include "noise.h"
#include <fenv.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))
static __thread struct {
    int style, rounding, on;
    uint64_t seed, state;
} noise;
EXPORTED void hs_noise_set(int style, int rounding, uint64_t seed);
EXPORTED void hs_noise_begin(void);
EXPORTED void hs_noise_end(void);

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* The direction of the operations between two calls. */
static void turn(void)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    int which = noise.rounding;
    if (!noise.on || !which) return;
    if (which == HS_ROUND_RANDOM) which = (int)((noise.state = mix(noise.state)) >> 62);
    fesetround(modes[which]);
}

void hs_noise_set(int style, int rounding, uint64_t seed)
{
    noise.style = style;
    noise.rounding = rounding;
    noise.seed = noise.state = mix(seed);
}
void hs_noise_begin(void)
{
    noise.on = 1;
    noise.state = noise.seed;
    turn();
}
void hs_noise_end(void)
{
    noise.on = 0;
    fesetround(FE_TONEAREST);
}

/* A program whose environment names a kind (two digits: style and rounding) has it from its start. */
__attribute__((constructor)) static void from_environment(void)
{
    const char *kind = getenv("HS_NOISE_KIND");
    if (kind && kind[0]) {
        hs_noise_set(kind[0] - '0', kind[1] - '0', 1);
        hs_noise_begin();
    }
}

/* Round-to-nearest from here on; nothing is computed with x before. */
static double calm(double x)
{
    if (noise.on && noise.rounding) fesetround(FE_TONEAREST);
    __asm__ volatile("" : "+x"(x) : : "memory");
    return x;
}

/* The end of that; y is computed before. */
static double leave(double y)
{
    __asm__ volatile("" : "+x"(y) : : "memory");
    turn();
    return y;
}

#ifdef HS_NOISE_LINES /* a number set before each call stands for its place, and has an amplitude of its own */
extern int hs_line;
extern double hs_line_amplitude[];
extern unsigned char hs_line_reached[];
#define HERE ((const char *)hs_noise_set + 2 * (hs_line_reached[hs_line] = 1, hs_line))
#define AMPLITUDE hs_line_amplitude[hs_line]
#else
#define AMPLITUDE 1
#define HERE (const char *)__builtin_return_address(0)
#endif

/* A finite y off by at most `reach`, seen from the call at `site`, within [low, high]. */
static double off(double y, double reach, double low, double high, const char *site)
{
    double by, z;
    reach *= AMPLITUDE;
    if (!noise.on || noise.style == HS_NOISE_OFF || !isfinite(y)) return y;
    by = noise.style == HS_NOISE_HIGH  ? 1
         : noise.style == HS_NOISE_LOW ? -1
         : noise.style == HS_NOISE_SITES
             ? (mix(noise.seed ^ (uint64_t)(site - (const char *)hs_noise_set)) & 1 ? 1 : -1)
             : (double)(int64_t)(noise.state = mix(noise.state)) * 0x1p-63;
    z = y + by * reach;
    return fmax(low, fmin(high, fabs(z - y) > fabs(reach) ? nextafter(z, y) : z));
}

#define DEFINE(f, claim, ...)                                                                                          \
    double hs_noisy_##f(double x)                                                                                      \
    {                                                                                                                  \
        double y = (f)(calm(x));                                                                                       \
        return leave(off(y, claim * HS_U * fabs(y), __VA_ARGS__, HERE));                                               \
    }
#define DEFINE2(f, claim)                                                                                              \
    double hs_noisy_##f(double x, double y)                                                                            \
    {                                                                                                                  \
        double z = (f)(calm(x), calm(y));                                                                              \
        return leave(off(z, claim * HS_U * fabs(z), -HUGE_VAL, HUGE_VAL, HERE));                                       \
    }
HS_NOISY(DEFINE)
HS_NOISY2(DEFINE2)

double hs_noisy_hs_exp_m1(double x, double *m1)
{
    double a, y = (hs_exp_m1)(calm(x), &a);
    *m1 = off(a, 5 * HS_U * fabs(a), -1, HUGE_VAL, HERE);
    return leave(off(y, 2 * HS_U * y, 0, HUGE_VAL, HERE + 1));
}

double hs_noisy_hs_atan2(double y, double x)
{
    double a = (hs_atan2)(calm(y), calm(x)), size = fabs(a);
    return leave(off(a, HS_U * (size < 0.39 ? 4 * size : 4 + 4 * size), -HUGE_VAL, HUGE_VAL, HERE));
}

double hs_noisy_hs_log_add(double a, double b)
{
    double sum = (hs_log_add)(calm(a), calm(b));
    return leave(off(sum, HS_U * (fabs(sum) + 3), -HUGE_VAL, HUGE_VAL, HERE));
}

void hs_noisy_hs_cis(double x, double *co, double *si)
{
    double c, s;
    (hs_cis)(calm(x), &c, &s);
    *co = off(c, 3 * HS_U, -1, 1, HERE);
    *si = off(s, 3 * HS_U, -1, 1, HERE + 1);
    leave(0);
}

void hs_noisy_hs_cis_m1(double x, double *re, double *im)
{
    double a, b, reach = HS_U * (8 * fmin(fabs(x), 3) + 2 * fabs(x));
    (hs_cis_m1)(calm(x), &a, &b);
    *re = off(a, reach, -2, 0, HERE);
    *im = off(b, reach, -1, 1, HERE + 1);
    leave(0);
}
