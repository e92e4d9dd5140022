/* noise.h - rounding made worse on purpose, for the build HS_NOISE=1 alone: setup.py has the compiler include this
 * file before every source, so that csrc knows nothing of it. tests/noise.py uses the build.
 *
 * Every function of special.h and of libm is off by as much as its claim allows, above what it is off by itself, but
 * stays within its range. What stands between two calls (sums, products, quotients) is rounded upwards, downwards or
 * towards 0 instead of to nearest: an operation is then off by less than 2 u instead of u, and n of one sign add up as
 * in the worst case that a claim of n u for n additions allows for. The functions themselves run in round-to-nearest,
 * which HS_MAGIC takes for granted: hs_exp, hs_cis, hs_cis_m1 reduce their argument by it and hold in no other mode.
 * exp_bound of hyperbola_bound.c, inline in its file, does not: its argument is then reduced to |r| <= 0.694, its
 * polynomial off by 1e-8 there, which is what every bound made with it is raised by.
 */
#ifndef HS_NOISE_H
#define HS_NOISE_H
#include "special.h"

/* Functions, claims in units u = 2^-53, relative, and ranges: libm within 1 ulp, erfc within 5 (see tails.c). */
#define HS_ANY -HUGE_VAL, HUGE_VAL
/* clang-format off */
#define HS_NOISY(X)                                                                                                    \
    X(hs_exp, 2, HS_ANY) X(hs_log, 2, HS_ANY) X(hs_log1pmx_small, 3, HS_ANY) X(hs_expm1mx_small, 3, HS_ANY)            \
    X(hs_expm1mx, 4, HS_ANY) X(hs_expm1, 5, -1, HUGE_VAL) X(exp, 2, HS_ANY) X(exp2, 2, HS_ANY)                         \
    X(expm1, 2, -1, HUGE_VAL) X(log, 2, HS_ANY) X(log1p, 2, HS_ANY) X(log2, 2, HS_ANY) X(sin, 2, -1, 1)                \
    X(cos, 2, -1, 1) X(tan, 2, HS_ANY) X(atan, 2, HS_ANY) X(sinh, 4, HS_ANY) X(cosh, 4, 1, HUGE_VAL)                   \
    X(tanh, 4, -1, 1) X(erf, 2, -1, 1) X(erfc, 10, 0, 2) X(lgamma, 4, HS_ANY) X(cbrt, 2, HS_ANY)        \
    X(asin, 2, HS_ANY) X(asinh, 4, HS_ANY)
/* clang-format on */
#define HS_NOISY2(X) X(pow, 2) X(hypot, 2) X(atan2, 2)
#define HS_NOISE_DECLARE(f, ...) double hs_noisy_##f(double x);
#define HS_NOISE_DECLARE2(f, claim) double hs_noisy_##f(double x, double y);
HS_NOISY(HS_NOISE_DECLARE)
HS_NOISY2(HS_NOISE_DECLARE2)
double hs_noisy_hs_exp_m1(double x, double *m1);
double hs_noisy_hs_atan2(double y, double x);
double hs_noisy_hs_log_add(double a, double b);
void hs_noisy_hs_cis(double x, double *co, double *si);
void hs_noisy_hs_cis_m1(double x, double *re, double *im);

#define hs_exp(x) hs_noisy_hs_exp(x)
#define hs_log(x) hs_noisy_hs_log(x)
#define hs_log1pmx_small(x) hs_noisy_hs_log1pmx_small(x)
#define hs_expm1mx_small(x) hs_noisy_hs_expm1mx_small(x)
#define hs_expm1(x) hs_noisy_hs_expm1(x)
#define hs_expm1mx(x) hs_noisy_hs_expm1mx(x)
#define hs_h2(x) (fabs(x) <= 0.1 ? hs_noisy_hs_expm1mx_small(x) : hs_noisy_expm1(x) - (x))
#define hs_exp_m1(x, m1) hs_noisy_hs_exp_m1(x, m1)
#define hs_atan2(y, x) hs_noisy_hs_atan2(y, x)
#define hs_log_add(a, b) hs_noisy_hs_log_add(a, b)
#define hs_cis(x, co, si) hs_noisy_hs_cis(x, co, si)
#define hs_cis_m1(x, re, im) hs_noisy_hs_cis_m1(x, re, im)
#define exp(x) hs_noisy_exp(x)
#define expm1(x) hs_noisy_expm1(x)
#define log(x) hs_noisy_log(x)
#define log1p(x) hs_noisy_log1p(x)
#define log2(x) hs_noisy_log2(x)
#define sin(x) hs_noisy_sin(x)
#define cos(x) hs_noisy_cos(x)
#define tan(x) hs_noisy_tan(x)
#define atan(x) hs_noisy_atan(x)
#define sinh(x) hs_noisy_sinh(x)
#define cosh(x) hs_noisy_cosh(x)
#define tanh(x) hs_noisy_tanh(x)
#define erf(x) hs_noisy_erf(x)
#define erfc(x) hs_noisy_erfc(x)
#define lgamma(x) hs_noisy_lgamma(x)
#define exp2(x) hs_noisy_exp2(x)
#define cbrt(x) hs_noisy_cbrt(x)
#define asin(x) hs_noisy_asin(x)
#define asinh(x) hs_noisy_asinh(x)
#define pow(x, y) hs_noisy_pow(x, y)
#define hypot(x, y) hs_noisy_hypot(x, y)
#define atan2(y, x) hs_noisy_atan2(y, x)

/* What tests set for its thread: noise is on from hs_noise_begin to hs_noise_end, which restores round-to-nearest. */
enum { HS_NOISE_OFF, HS_NOISE_RANDOM, HS_NOISE_HIGH, HS_NOISE_LOW, HS_NOISE_SITES }; /* SITES: a sign for each call */
enum { HS_ROUND_NEAREST, HS_ROUND_UP, HS_ROUND_DOWN, HS_ROUND_TO_ZERO, HS_ROUND_RANDOM };
/* RANDOM: anew at every value, or after every call. */
#endif
