/* check_special.c - measures the elementary functions of csrc/special.h against long double and fails beyond their
 * claims.
 *
 * Claims [theory: rounding.functions], u = 2^-53 (copied from special.h; contour.c's rounding constants assume them):
 * hs_exp and hs_log within 2 u relative, hs_expm1 within 5 u, hs_log1pmx_small and hs_expm1mx_small within 3 u,
 * hs_expm1mx within 4 u; hs_cis_m1 within 8 u min(|x|, 3) + 2 u |x| absolute, |x| < 2e6; cosine and sine of hs_cis
 * within 3 u absolute, |x| <= 8e5. The references carry 64 bits: their own error is 2^-11 of a claim. Where long double
 * is double nothing is measured. Grids: a dense one, a random one, and the neighbours of every point where a reduction
 * changes its branch. With HS_FEW in the environment the first two have a quarter of the points.
 */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include "special.h"

static int failures;
static long dense = 2000000, drawn = 2000000;
static uint64_t seed = 20240229;

static double uniform(void) /* splitmix64, in [0, 1) */
{
    uint64_t z = (seed += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (double)((z ^ (z >> 31)) >> 11) * HS_U;
}

typedef struct {
    const char *name;
    double worst, at, claim;
} measured;

static void take(measured *m, double x, long double got, long double want, long double unit)
{
    double e = unit > 0 ? (double)(fabsl(got - want) / unit) : (got == want ? 0 : HUGE_VAL);
    if (!(e <= m->worst)) {
        m->worst = e;
        m->at = x;
    }
}

static void close_up(const measured *m)
{
    int bad = !(m->worst <= m->claim);
    printf("%-24s worst %.4f u at %a (%.9g), claim %g u%s\n", m->name, m->worst, m->at, m->at, m->claim,
           bad ? "  FAIL" : "");
    failures += bad;
}

/* log(1+x) - x and e^x - 1 - x without cancellation, |x| <= 0.1: the series in long double, smallest terms first. */
static long double log1pmx(long double x)
{
    long double s = 0;
    for (int j = 40; j >= 2; j--) s = s * x + (j % 2 ? 1.0L : -1.0L) / j;
    return s * x * x;
}

static long double expm1mx(long double x)
{
    long double s = 1;
    for (int j = 30; j >= 3; j--) s = 1 + s * x / j;
    return s * x * x / 2;
}

static void one_exp(measured *m, double x) { take(m, x, hs_exp(x), expl(x), HS_U * expl(x)); }
static void one_expm1(measured *m, double x)
{
    long double w = expm1l(x);
    double m1;
    take(m, x, hs_expm1(x), w, HS_U * fabsl(w));
    if (hs_exp_m1(x, &m1) != hs_exp(x) || m1 != hs_expm1(x)) {
        printf("hs_exp_m1(%a) is not hs_exp and hs_expm1  FAIL\n", x);
        failures++;
    }
}
static void one_log(measured *m, double x) { take(m, x, hs_log(x), logl(x), HS_U * fabsl(logl(x))); }
static void one_log1pmx(measured *m, double x)
{
    long double w = log1pmx(x);
    take(m, x, hs_log1pmx_small(x), w, HS_U * fabsl(w));
}
static void one_expm1mx(measured *m, double x)
{
    long double w = expm1mx(x);
    take(m, x, hs_expm1mx_small(x), w, HS_U * fabsl(w));
}
static void one_wide(measured *m, double x)
{
    long double w = fabs(x) < 0.1 ? expm1mx(x) : expm1l(x) - x;
    take(m, x, hs_expm1mx(x), w, HS_U * fabsl(w));
}
static void one_cis(measured *m, double x) /* in units of the claim */
{
    double re, im;
    long double s = sinl(0.5L * x), unit = HS_U * (8 * fminl(fabsl(x), 3) + 2 * fabsl(x)), r, i;
    hs_cis_m1(x, &re, &im);
    r = re + 2 * s * s;
    i = im - sinl(x);
    take(m, x, hypotl(r, i), 0, unit);
}

static void one_cosine_sine(measured *m, double x)
{
    double c, s;
    hs_cis(x, &c, &s);
    take(m, x, c, cosl(x), HS_U);
    take(m, x, s, sinl(x), HS_U);
}

static void one_atan2(measured *m, double x)
{
    double im = sin(x), re = cos(x);
    long double want = atan2l(im, re), size = fabsl(want);
    take(m, x, hs_atan2(im, re), want, HS_U * (size < 0.39 ? 4 * size : 4 + 4 * size));
}

static void around(void (*one)(measured *, double), measured *m, double x, double lo, double hi)
{
    double up = x, down = x;
    for (int j = 0; j < 40; j++) {
        if (up >= lo && up <= hi) one(m, up);
        if (down >= lo && down <= hi) one(m, down);
        up = nextafter(up, HUGE_VAL);
        down = nextafter(down, -HUGE_VAL);
    }
}

static void line(void (*one)(measured *, double), measured *m, double lo, double hi)
{
    for (long j = 0; j <= dense; j++) one(m, lo + (hi - lo) * ((double)j / (double)dense));
    for (long j = 0; j < drawn; j++) one(m, lo + (hi - lo) * uniform());
    around(one, m, lo, lo, hi);
    around(one, m, hi, lo, hi);
}

/* magnitudes from 10^-lowest to hi, both signs if asked */
static void decades(void (*one)(measured *, double), measured *m, double lowest, double hi, int both)
{
    for (long j = 0; j < drawn; j++) {
        double x = pow(10, -lowest + (lowest + log10(hi)) * uniform());
        if (x > hi) x = hi;
        one(m, x);
        if (both) one(m, -x);
    }
}

/* What is within 6 u of x lies between hs_down(x) and hs_up(x) [theory: rounding.outward]. */
static void outward(void)
{
    int i;
    for (i = 0; i < 100000; i++) {
        double x = ldexp(1 + uniform(), (int)(600 * uniform()) - 300);
        long double by = 6.001L * HS_U;
        failures += !(hs_up(x) >= x * (1 + by) && hs_up(x) <= x * (1 + 2 * by));
        failures += !(hs_down(x) <= x * (1 - by) && hs_down(x) >= x * (1 - 2 * by));
        failures += hs_up(-x) != -hs_up(x);
    }
}

int main(void)
{
    measured e = {"hs_exp", 0, 0, 2}, e1 = {"hs_expm1", 0, 0, 5}, l = {"hs_log", 0, 0, 2},
             a = {"hs_log1pmx_small", 0, 0, 3}, b = {"hs_expm1mx_small", 0, 0, 3}, w = {"hs_expm1mx", 0, 0, 4},
             c = {"hs_cis_m1 (of claim)", 0, 0, 1}, d = {"hs_atan2 (of claim)", 0, 0, 1}, f = {"hs_cis", 0, 0, 3};
    if (LDBL_MANT_DIG < 64) {
        puts("long double carries fewer than 64 bits here: nothing measured");
        return 0;
    }
    if (getenv("HS_FEW") && atoi(getenv("HS_FEW")) > 1) dense = drawn = 500000;
    line(one_exp, &e, -708, 709);
    line(one_exp, &e, -1, 1);
    decades(one_exp, &e, 300, 700, 1);
    for (int n = -1020; n <= 1022; n++) around(one_exp, &e, (n + 0.5) * 0.69314718055994531, -708, 709);
    one_exp(&e, 0);
    one_exp(&e, -0.0);
    for (int n = 0; n < 40000; n++) { /* e^x or +infinity, which is above it; never below */
        double x = 709 + 0.001 * n, y = hs_exp(x);
        long double top = fminl(expl(x), DBL_MAX) * (1 - 6 * HS_U);
        if (!(y >= top) || !(hs_expm1(x) >= top) || (x >= 710 && y < HUGE_VAL)) {
            printf("hs_exp(%.17g) = %g  FAIL\n", x, y);
            failures++;
            break;
        }
    }
    if (hs_exp(1420) != HUGE_VAL || hs_exp(1e300) != HUGE_VAL || hs_exp(HUGE_VAL) != HUGE_VAL ||
        hs_expm1(720) != HUGE_VAL) {
        puts("hs_exp: not infinite beyond 710  FAIL");
        failures++;
    }
    if (hs_exp(-708.5) != 0 || hs_exp(-1e300) != 0 || hs_exp(-HUGE_VAL) != 0) {
        puts("hs_exp: not 0 below -708  FAIL");
        failures++;
    }
    close_up(&e);

    line(one_expm1, &e1, -40, 709);
    line(one_expm1, &e1, -1.5, 1.5);
    decades(one_expm1, &e1, 300, 700, 1);
    for (int n = -1020; n <= 1022; n++) around(one_expm1, &e1, (n + 0.5) * 0.69314718055994531, -708, 709);
    one_expm1(&e1, 0);
    one_expm1(&e1, -0.0);
    if (hs_expm1(-800) != -1 || hs_expm1(-HUGE_VAL) != -1) {
        puts("hs_expm1: not -1 below -708  FAIL");
        failures++;
    }
    close_up(&e1);

    line(one_log, &l, 0.5, 2.5);
    line(one_log, &l, 0.999, 1.001);
    decades(one_log, &l, 307, 1.7e308, 0);
    for (int n = -1021; n <= 1023; n++) {
        around(one_log, &l, ldexp(1, n), DBL_MIN, DBL_MAX);
        around(one_log, &l, ldexp(1.4142135623730951, n), DBL_MIN, DBL_MAX);
    }
    around(one_log, &l, DBL_MAX, DBL_MIN, DBL_MAX);
    close_up(&l);

    line(one_atan2, &d, -3.1415, 3.1415);
    decades(one_atan2, &d, 250, 3, 1);
    close_up(&d);

    line(one_log1pmx, &a, -0.1, 0.1);
    decades(one_log1pmx, &a, 150, 0.1, 1);
    close_up(&a);
    line(one_expm1mx, &b, -0.1, 0.1);
    decades(one_expm1mx, &b, 150, 0.1, 1);
    close_up(&b);
    line(one_wide, &w, -0.34, 0.34);
    decades(one_wide, &w, 150, 0.34, 1);
    close_up(&w);

    line(one_cis, &c, -10, 10);
    line(one_cis, &c, -1.999999e6, 1.999999e6);
    decades(one_cis, &c, 300, 1.9e6, 1);
    for (long n = -1273000; n <= 1273000; n += n > -300 && n < 300 ? 1 : 997)
        around(one_cis, &c, 1.5707963267948966 * (double)n, -1.9999999e6, 1.9999999e6);
    one_cis(&c, 0);
    close_up(&c);

    line(one_cosine_sine, &f, -10, 10);
    line(one_cosine_sine, &f, -8e5, 8e5);
    for (long n = -509000; n <= 509000; n += n > -300 && n < 300 ? 1 : 997)
        around(one_cosine_sine, &f, 0.78539816339744831 * (double)(2 * n + (n & 1)), -8e5, 8e5);
    one_cosine_sine(&f, 0);
    close_up(&f);
    outward();
    return failures != 0;
}
