/* sum.c - the sum over the nodes of a line, or of one period of a lattice, for every eps near the one that it is
 * made for.
 *
 * Symbols. z_n = c + i n dy; k_n the kernel at node n: 1/(z_n (1 + z_n)) on a line and 1/((1 - e^{-z_n})(1 - e^{-z_n
 *   - s})) on a period, whose dy is 2 pi/N and whose eps is a whole number, a place of the lattice; f_n = e^{log f(n
 *   dy) - i eps n dy} k_n, weighted 1, 2, 2, ....
 *
 * Error claim. For |eps' - eps| <= reach, the computed sum of f_n e^{-i (eps' - eps) n dy} is within rounding +
 *   inner of the exact one for the exact f, and beyond that within 2u |eps' - eps| sum |f_n| n dy more: each f_n is
 *   off by |f_n| (e^{round + node} - 1), by its phases' rounding and by the operations counted below
 *   [theory: line.shared], if phases are below 8e5 there. On a period whole turns are taken off them exactly, and
 *   every eps' is within reach.
 *
 * What it does not do: weights other than these; slopes with a bound.
 */
#include "line/sum.h"
#include "law/transform.h"

enum { LANES = 64 }; /* nodes at a time: a multiple of every vector length */

/* The phase x n dy; of N nodes of a period, where N > 0, without its whole turns: |x| n is below 2^53. */
HS_INLINE double phase_of(double x, double n, double dy, double N)
{
    double at = x * n;
    return N > 0 ? (at - N * ((at / N + HS_MAGIC) - HS_MAGIC)) * dy : x * (n * dy);
}

/* 1/kernel = mod^2/den (dr + i di), of modulus mod. */
typedef struct {
    double dr, di, den, mod;
} kernel;

/* z (1 + z), z = c + i y. */
HS_INLINE kernel line_kernel(double c, double y)
{
    kernel k = {c * (1 + c) - y * y, y * (1 + 2 * c), 0, 0};
    k.den = k.dr * k.dr + k.di * k.di;
    k.mod = sqrt(k.den);
    return k;
}

/* (1 - e^{-w}) (1 - e^{-w-s}), w = c + i y; unit = max(1, e^-c), near = (1 - e^-c)/unit, part = e^-c/unit, above = 1 -
 * e^{-c-s}, far = e^{-c-s}: e^-c may be 1e300, of which the square is no double. */
typedef struct {
    double unit, near, part;
    double above, far;
} period_ends;

HS_INLINE kernel period_kernel(const period_ends *e, double y)
{
    double er, ei, size;
    double ar, ai, br, bi;
    kernel k;
    hs_cis_m1(-y, &er, &ei);
    ar = e->near - e->part * er;
    ai = -e->part * ei;
    br = e->above - e->far * er;
    bi = -e->far * ei;
    size = sqrt(ar * ar + ai * ai) * sqrt(br * br + bi * bi);
    k.dr = (ar * br - ai * bi) / size;
    k.di = (ar * bi + ai * br) / size;
    k.den = k.mod = e->unit * size;
    return k;
}

/* e^{i phase} = a + i b of the nodes from n0 on at the line's eps. */
HS_INLINE void turn_tile(const hs_nodes *F, int64_t n0, int count, double N, double *restrict a, double *restrict b)
{
    const double *restrict im = F->im + n0;
    double dy = F->dy, eps = F->eps, base = (double)n0;
    int n, wild = 0;
    HS_SEPARATE
    for (n = 0; n < count; n++) hs_cis(im[n] - phase_of(eps, base + n, dy, N), &a[n], &b[n]);
    for (n = 0; n < count; n++) wild |= !(fabs(im[n] - phase_of(eps, base + n, dy, N)) <= 8e5);
    for (n = 0; n < count && wild; n++) { /* the phase lies beyond the range of hs_cis */
        double ph = im[n] - phase_of(eps, base + n, dy, N);
        a[n] = cos(ph);
        b[n] = sin(ph);
    }
}

/* log f becomes f_n at the nodes from n0 on, N of them on a period; a, b: what quadrature and rounding do to each, at
 * most. With |eps| taken reach larger in the rounding, every eps' within reach shares it. */
HS_INLINE void freeze_nodes(const hs_nodes *F, int64_t n0, int count, double N, double *restrict a, double *restrict b)
{
    /* Units of u beside the nodes' own errors: the exponential, the first turn, the kernel, products and sums with
     * them 28, the second turn 8, the sum of a lane 2, that of lanes 6, their scale 4; a period's kernel 43 more, or
     * 64 where e^-w is large [theory: rounding.line]. */
    double adds = (N > 0 ? F->c < 0 ? 112 : 91 : 48) * HS_U + F->kernel;
    const double c = F->c, dy = F->dy, base = (double)n0;
    const double top = fabs(F->eps) + 2.5 * F->reach, ec = exp(-c);
    const double *restrict hr = F->round + n0, *restrict hn = F->node + n0;
    double *restrict re = F->re + n0, *restrict im = F->im + n0;
    const period_ends ends = {fmax(1, ec), -expm1(-c) / fmax(1, ec), fmin(1, ec), -expm1(-c - F->step),
                              ec * exp(-F->step)};
    int n;
    turn_tile(F, n0, count, N, a, b);
    HS_SEPARATE
    for (n = 0; n < count; n++) {
        double y = (base + n) * dy, twice = base + n > 0 ? 2 : 1, mag = hs_exp(re[n]) * twice;
        double co = a[n], si = b[n], node = hn[n];
        const kernel k = N > 0 ? period_kernel(&ends, y) : line_kernel(c, y);
        /* phases: eps y is rounded, and im less it; (eps' - eps) y is rounded twice, and what
         * hs_cis takes off it beyond 8e5 loses 3u of it. On a period both are within pi */
        double r = hr[n] + 2 * HS_U * (fabs(im[n]) + (N > 0 ? 8 : top * y)), far = r + node > 600 ? 1 : 0;
        double er = hs_expm1(far != 0 ? re[n] + r + node : r) * (1 + 1e-15),
               en = hs_expm1(far != 0 ? 0 : node) * (1 + 1e-15), size = mag / k.mod;
        er = far != 0 ? twice / k.mod * (er + 1 + 1e-15)
                      : size * (er * (1 + en) + adds); /* the node is no larger than this */
        re[n] = mag * (co * k.dr + si * k.di) / k.den;
        im[n] = mag * (si * k.dr - co * k.di) / k.den;
        a[n] = size * en;
        b[n] = er;
    }
}

HS_CLONES static void freeze_tile(const hs_nodes *F, int64_t n0, int count, double *restrict a, double *restrict b)
{
    if (F->period > 0) freeze_nodes(F, n0, count, F->period, a, b);
    else freeze_nodes(F, n0, count, 0, a, b);
}

void hs_nodes_freeze(hs_nodes *F)
{
    double inner = 0, fitted = 0, round = 0;
    double a[LANES], b[LANES];
    int64_t n0;
    int n;
    for (n0 = 0; n0 <= F->N; n0 += LANES) {
        int count = F->N + 1 - n0 < LANES ? (int)(F->N + 1 - n0) : LANES;
        freeze_tile(F, n0, count, a, b);
        for (n = 0; n < count; n++) round += b[n];
        for (n = 0; n < count; n++) { /* quadrature and rules have parts of one error */
            double share = F->fit && F->fit[n0 + n] > 0 ? F->fit[n0 + n] / F->node[n0 + n] : 0;
            inner += a[n] * (1 - share);
            fitted += a[n] * share;
        }
    }
    F->rounding = round * (1 + HS_SUMS);
    F->inner = inner * (1 + HS_SUMS);
    F->fitted = fitted * (1 + HS_SUMS);
}

/* The sum of all lanes, halves of them added to each other at a time. */
HS_INLINE double halved(double *x)
{
    int half, n;
    for (half = LANES / 2; half > 0; half /= 2)
        for (n = 0; n < half; n++) x[n] += x[n + half];
    return x[0];
}

HS_INLINE void sum_nodes(const hs_nodes *F, double eps, double N, double *value, double *slope)
{
    double v[LANES] = {0}, low[LANES] = {0}, w[LANES] = {0};
    double dy = F->dy, de = eps - F->eps;
    int64_t n0, nodes = F->N + 1;
    int n;
    for (n0 = 0; n0 < nodes; n0 += LANES) {
        const double *restrict re = F->re + n0, *restrict im = F->im + n0;
        double base = (double)n0;
        int count = nodes - n0 < LANES ? (int)(nodes - n0) : LANES;
        for (n = 0; n < count; n++) {
            double y = (base + (double)n) * dy, co, si;
            hs_cis(phase_of(de, base + (double)n, dy, N), &co, &si);
            hs_add_kept(re[n] * co + im[n] * si, &v[n], &low[n]);
            w[n] += y * (im[n] * co - re[n] * si);
        }
    }
    for (n = 0; n < LANES; n++) v[n] += low[n];
    *value = halved(v);
    *slope = F->c * *value - halved(w);
}

HS_CLONES void hs_nodes_sum(const hs_nodes *F, double eps, double *value, double *slope)
{
    if (F->period > 0) sum_nodes(F, eps, F->period, value, slope);
    else sum_nodes(F, eps, 0, value, slope);
}

hs_side hs_side_at(double c, double P, double s, double K)
{ return (hs_side){s, K, hs_payoff(s), -expm1(-fabs(s - c) * P)}; }

/* The exponent's terms are rounded once or twice each, and four times as they are summed; what payoff(s) is off by, and
 * the exponential, are within 1e-9. */
double hs_aliases_upper(double c, double P, double eps, double log_scale, hs_side side)
{
    double A = 8 * HS_U * (fabs(side.K) + fabs(log_scale) + (fabs(c) + fabs(side.s)) * (fabs(eps) + P));
    A += side.K - side.s * eps + side.payoff - fabs(side.s - c) * P - log_scale;
    return exp(A) / side.gap * (1 + 1e-9);
}
