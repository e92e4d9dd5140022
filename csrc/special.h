/* special.h - elementary functions that a compiler can vectorise: no branches, no tables, no libm.
 *
 * Each is within 2 units u = 2^-53 relative error (1 ulp) on the stated range, except where said
 * [theory: rounding.functions]; tests/csrc/check_special.c measures them against long double. Plain C99: an AVX2 or
 * AVX-512 clone computes bit for bit what the baseline does, for contraction to fused operations is off.
 */
#ifndef HS_SPECIAL_H
#define HS_SPECIAL_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Every error claim counts operations rounded once, to double [theory: rounding.model]: no wider registers, no fused
 * operations (gcc has a flag for that alone). */
#if (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0) || defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "the error bounds need IEEE arithmetic evaluated in double: no x87 registers (-msse2 -mfpmath=sse), no fast-math"
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#pragma fp_contract(off)
#elif defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && !defined(HS_NO_CLONES)
#define HS_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#define HS_INLINE static inline __attribute__((always_inline)) /* compiled within each of them */
#else
#define HS_CLONES
#define HS_INLINE static inline
#endif

/* Before a loop over arrays that do not overlap: compilers forget `restrict` on local pointers and give up on many
 * of them. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* nor is a hint that clang cannot follow an error */
#define HS_SEPARATE _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define HS_SEPARATE _Pragma("GCC ivdep")
#else
#define HS_SEPARATE
#endif

#define HS_U 1.1102230246251565e-16 /* 2^-53 */
#define HS_PI 3.14159265358979323846
#define HS_LOG_SQRT_2PI 0.91893853320467274178
#define HS_SQRT_2PI 2.50662827463100050242
#define HS_NORMAL_PEAK 0.39894228040143267794 /* 1/sqrt(2 pi) */
#define HS_SQRT_HALF 0.70710678118654752440
#define HS_LOG_2 0.69314718055994530942
#define HS_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to the nearest integer, left in the low bits */

/* Eight lanes, as vectors of the width that the machine has registers for: wider ones go through memory. A lane sees
 * the same operations in the same order at every width. HS_PICK: which of three functions, made for eight, four and
 * two lanes at a time, to call. */
#if defined(__GNUC__)
typedef double hs_v8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef double hs_v4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef double hs_v2 __attribute__((vector_size(16), aligned(8), may_alias));
#define HS_ALIGNED __attribute__((aligned(64)))
#else
typedef double hs_v8, hs_v4, hs_v2;
#define HS_ALIGNED
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && !defined(HS_NO_CLONES)
#define HS_TARGET(isa) __attribute__((target(isa)))
#define HS_PICK(by8, by4, by2) (__builtin_cpu_supports("avx512f") ? by8 : __builtin_cpu_supports("avx2") ? by4 : by2)
#else
#define HS_TARGET(isa)
#define HS_PICK(by8, by4, by2) (0 ? by8 : 0 ? by4 : by2)
#endif

/* A number within 6 u of x, x not subnormal: hs_up(x) is farther from 0, hs_down(x) nearer [theory:
 * rounding.outward]. */
static inline double hs_up(double x) { return x * (1 + 8 * HS_U); }
static inline double hs_down(double x) { return x * (1 - 8 * HS_U); }

/* Adds x to the sum s + low of doubles: what s loses goes to low. Terms of sizes adding up to a leave s + low within
 * u + n^2 u^2 of it of what n of them sum to [theory: rounding.sums]. */
static inline void hs_add_kept(double x, double *s, double *low)
{
    double sum = *s + x, part = sum - *s;
    *low += (*s - (sum - part)) + (x - part);
    *s = sum;
}

static inline uint64_t hs_bits(double x)
{
    uint64_t b;
    memcpy(&b, &x, 8);
    return b;
}
static inline double hs_from_bits(uint64_t b)
{
    double x;
    memcpy(&x, &b, 8);
    return x;
}

/* The part p and 2^n, n the low bits of *t, of e^x = 2^n (1 + p) for |x| <= 1000: r = x - n ln 2 in two pieces (n
 * LN2_HI is exact for |n| < 2^11), p = e^r - 1 by the Taylor polynomial of degree 13, which is off by 4.3e-18 on |r|
 * <= 0.347. */
static inline double hs_exp_part(double x, double *t)
{
    double n, r, p;
    *t = x * 1.44269504088896340736 + HS_MAGIC;
    n = *t - HS_MAGIC;
    r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    p = 1.6059043836821613e-10;
    p = p * r + 2.08767569878681e-09;
    p = p * r + 2.505210838544172e-08;
    p = p * r + 2.755731922398589e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 1.984126984126984e-04;
    p = p * r + 1.388888888888889e-03;
    p = p * r + 8.333333333333333e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    return r + r * r * p;
}

/* e^x: within 2 u for -708 <= x <= 709, exactly 0 below, +infinity from 710 on, one of e^x and +infinity between
 * [theory: rounding.functions]. */
static inline double hs_exp(double x)
{
    double t, p = 1.0 + hs_exp_part(x, &t);
    p *= hs_from_bits((hs_bits(t) + 1023) << 52);
    p = x > 710.0 ? HUGE_VAL : p;
    return x < -708.0 ? 0.0 : p;
}

/* e^x as hs_exp(x), and *m1 = e^x - 1 within 5 u relative, for x <= 709. m1 = 2^n p + (2^n - 1). p is off by 1.7 u
 * at n = 0, where r is exact: u of its last sum, 3.4 u of r^2(1/2 + ..) (a sixth of p, at most .19), 0.2 u of the
 * series; else by e^r |r/p| u <= 1.2 u more, the rounding of r. At n = 0 the rest is exact. The worst is n = 1, r =
 * -0.347: |2p| <= 1.42 |m1|, and the last sum rounds by u: 1.42 (1.7 + 0.85) u + u < 5 u; elsewhere |2^n p| <= |m1|,
 * and 2^n - 1, exact up to n = 53, adds at most 1.5 u beyond. */
static inline double hs_exp_m1(double x, double *m1)
{
    double t, p = hs_exp_part(x, &t), scale = hs_from_bits((hs_bits(t) + 1023) << 52);
    *m1 = x < -708.0 ? -1.0 : scale * p + (scale - 1.0);
    return x < -708.0 ? 0.0 : (1.0 + p) * scale;
}

/* The same e^x - 1 alone; +infinity beyond 709. */
static inline double hs_expm1(double x)
{
    double m1;
    hs_exp_m1(x, &m1);
    return x > 709.0 ? HUGE_VAL : m1;
}

/* log x for normal x > 0, within 2 u; a finite number for other x >= 0 (fdlibm's reduction to [sqrt(1/2), sqrt 2]
 * and its polynomial). */
static inline double hs_log(double x)
{
    uint64_t b = hs_bits(x), e = b >> 52;
    double f = hs_from_bits((b & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL), k, s, z;
    double w, R, hfsq;
    k = hs_from_bits(e | 0x4330000000000000ULL) - (4503599627370496.0 + 1023.0);
    k = f > 1.4142135623730951 ? k + 1.0 : k;
    f = f > 1.4142135623730951 ? 0.5 * f : f;
    f -= 1.0;
    s = f / (2.0 + f);
    z = s * s;
    w = z * z;
    R = z * (6.666666666666735130e-01 +
             w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))) +
        w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    hfsq = 0.5 * f * f;
    return k * 6.93147180369123816490e-01 - ((hfsq - (s * (hfsq + R) + k * 1.90821492927058770002e-10)) - f);
}

/* log(1+x) - x for |x| <= 0.1, within 3 u (series; the first dropped term is 3e-18 of the value; measured 2.93 u). */
static inline double hs_log1pmx_small(double x)
{
    double p = -1.0 / 18;
    p = p * x + 1.0 / 17;
    p = p * x - 1.0 / 16;
    p = p * x + 1.0 / 15;
    p = p * x - 1.0 / 14;
    p = p * x + 1.0 / 13;
    p = p * x - 1.0 / 12;
    p = p * x + 1.0 / 11;
    p = p * x - 1.0 / 10;
    p = p * x + 1.0 / 9;
    p = p * x - 1.0 / 8;
    p = p * x + 1.0 / 7;
    p = p * x - 1.0 / 6;
    p = p * x + 1.0 / 5;
    p = p * x - 1.0 / 4;
    p = p * x + 1.0 / 3;
    return x * x * (p * x - 0.5);
}

/* e^x - 1 - x for |x| <= 0.1, within 3 u (measured 2.88 u). */
static inline double hs_expm1mx_small(double x)
{
    double p = 2.08767569878681e-09;
    p = p * x + 2.505210838544172e-08;
    p = p * x + 2.755731922398589e-07;
    p = p * x + 2.7557319223985893e-06;
    p = p * x + 2.48015873015873e-05;
    p = p * x + 1.984126984126984e-04;
    p = p * x + 1.388888888888889e-03;
    p = p * x + 8.333333333333333e-03;
    p = p * x + 4.1666666666666664e-02;
    p = p * x + 1.6666666666666666e-01;
    return x * x * (p * x + 0.5);
}

/* The same for |x| <= 0.34, within 4 u: 1.3 u of the last sum, u each of two products, 0.6 u of the terms dropped. */
static inline double hs_expm1mx(double x)
{
    double p = 1.6059043836821613e-10;
    p = p * x + 2.08767569878681e-09;
    p = p * x + 2.505210838544172e-08;
    p = p * x + 2.755731922398589e-07;
    p = p * x + 2.7557319223985893e-06;
    p = p * x + 2.48015873015873e-05;
    p = p * x + 1.984126984126984e-04;
    p = p * x + 1.388888888888889e-03;
    p = p * x + 8.333333333333333e-03;
    p = p * x + 4.1666666666666664e-02;
    p = p * x + 1.6666666666666666e-01;
    return x * x * (p * x + 0.5);
}

/* h2(x) = e^x - 1 - x: within 3 u of itself, beyond |x| = 0.1 within 2 u |x| more. */
static inline double hs_h2(double x) { return fabs(x) <= 0.1 ? hs_expm1mx_small(x) : expm1(x) - x; }

/* e^{i x} - 1 = -2 sin^2(x/2) + 2 i sin(x/2) cos(x/2) for |x| < 2e6: absolute error <= 8 u min(|x|, 3) + 2 u |x|,
 * because the half angle is reduced with a pi/2 of 33 + 33 + 53 bits. */
static inline void hs_cis_m1(double x, double *re, double *im)
{
    double y = 0.5 * x, t = y * 0.63661977236758134308 + HS_MAGIC, n = t - HS_MAGIC;
    double r, z, s;
    double c, a, b;
    uint64_t quad = hs_bits(t);
    r = ((y - n * 1.57079632673412561417e+00) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
    z = r * r;
    s = r + r * z *
                (-1.66666666666666324348e-01 +
                 z * (8.33333333332248946124e-03 +
                      z * (-1.98412698298579493134e-04 +
                           z * (2.75573137070700676789e-06 +
                                z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    c = 1.0 - (0.5 * z - z * z *
                             (4.16666666666666019037e-02 +
                              z * (-1.38888888888741095749e-03 +
                                   z * (2.48015872894767294178e-05 +
                                        z * (-2.75573143513906633035e-07 +
                                             z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11))))));
    a = (quad & 1) ? c : s;
    b = (quad & 1) ? s : c; /* |sin|, |cos| up to sign: the product needs both signs */
    *re = -2.0 * a * a;
    *im = (quad & 1) ? -2.0 * a * b : 2.0 * a * b;
}

/* cos x and sin x for |x| <= 8e5, absolute error < 3 u: x = n pi/2 + r in three pieces, Taylor polynomials on |r| <=
 * pi/4. */
static inline void hs_cis(double x, double *co, double *si)
{
    double t = x * 0.63661977236758134308 + HS_MAGIC, n = t - HS_MAGIC, r;
    double z, c, s;
    uint64_t k = hs_bits(t), swap = (uint64_t)0 - (k & 1), cb, sb;
    r = ((x - n * 1.57079632673412561417e+00) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
    z = r * r;
    s = 1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0));
    s = -1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 + z * s))));
    s = r + r * z * s;
    c = -1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0);
    c = 1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600 + z * c))));
    c = (1 - 0.5 * z) + z * z * c;
    cb = hs_bits(c);
    sb = hs_bits(s);
    *co = hs_from_bits(((cb & ~swap) | (sb & swap)) ^ (((k + 1) & 2) << 62));
    *si = hs_from_bits(((sb & ~swap) | (cb & swap)) ^ ((k & 2) << 62));
}

/* atan2(y, x) for finite (x, y) != 0: error <= 4 u |value| below 0.39, 4 u + 4 u |value| above. Octant reduction to
 * t = min/max in [0, 1], then to |t| <= tan(pi/8) by atan t = pi/4 + atan((t-1)/(t+1)), then fdlibm's odd
 * polynomial. */
static inline double hs_atan2(double y, double x)
{
    double ax = x < 0 ? -x : x, ay = y < 0 ? -y : y, hi = ax > ay ? ax : ay, lo = ax > ay ? ay : ax;
    double t, z, w, p;
    double odd, a;
    double far = lo > 0.41421356237309503 * hi ? 1 : 0;
    t = (far != 0 ? lo - hi : lo) / (far != 0 ? lo + hi : hi);
    z = t * t;
    w = z * z;
    odd = z * (3.33333333333329318027e-01 +
               w * (1.42857142725034663711e-01 +
                    w * (9.09088713343650656196e-02 +
                         w * (6.66107313738753120669e-02 +
                              w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02)))));
    p = w *
        (-1.99999999998764832476e-01 +
         w * (-1.11111104054623557880e-01 +
              w * (-7.69187620504482999495e-02 + w * (-5.83357013379057348645e-02 + w * -3.65315727442169155270e-02))));
    a = t - t * (odd + p);
    a = far != 0 ? 0.78539816339744830962 + a : a;
    a = ax > ay ? a : 1.57079632679489661923 - a;
    a = x < 0 ? 3.14159265358979323846 - a : a;
    return y < 0 ? -a : a;
}

/* log(e^a + e^b), off by HS_U (|log(e^a + e^b)| + 3) where exp and log1p are within 1 ulp; e^a and e^b may be 0 or
 * infinite. */
static inline double hs_log_add(double a, double b)
{
    double hi = fmax(a, b);
    return hi == HUGE_VAL || hi == -HUGE_VAL ? hi : hi + log1p(exp(fmin(a, b) - hi));
}

#endif
