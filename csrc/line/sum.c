/* sum.c - the sum over the nodes of a line, for every eps near the one that it is made for.
 *
 * Symbols. z_n = c + i n dy; f_n = e^{log f(n dy) - i eps n dy}/(z_n (1 + z_n)), weighted 1, 2, 2, ....
 *
 * Error claim. For |eps' - eps| <= reach, the computed sum of f_n e^{-i (eps' - eps) n dy} is within rounding + inner
 *   of the exact one for the exact f: each f_n is off by |f_n| (e^{round + node} - 1), by its phases' rounding and by
 *   the operations counted below [theory: line.shared].
 *
 * What it does not do: weights other than these; slopes with a bound.
 */
#include "line/sum.h"
#include "law/transform.h"

enum { LANES = 64 }; /* nodes at a time: a multiple of every vector length */

/* e^{i phase} - 1 of every node at the line's eps: a + i b. */
HS_CLONES static void turn_nodes(hs_nodes *F)
{
    double dy = F->dy, eps = F->eps, *restrict a = F->a, *restrict b = F->b;
    const double *restrict im = F->im;
    int n, count = (int)F->N + 1, wild = 0;
    HS_SEPARATE
    for (n = 0; n < count; n++) {
        double ph = im[n] - eps * (n * dy), x, w;
        hs_cis_m1(ph, &x, &w);
        a[n] = x;
        b[n] = w;
    }
    for (n = 0; n < count; n++) wild |= fabs(im[n] - eps * (n * dy)) > 1e6;
    if (wild) /* the phase lies beyond the range of hs_cis_m1 */
        for (n = 0; n < count; n++) {
            double ph = im[n] - eps * (n * dy);
            a[n] = cos(ph) - 1;
            b[n] = sin(ph);
        }
}

/* What quadrature and rules do to the nodes, F->a, as sums of each. */
static void share_out(hs_nodes *F)
{
    double inner = 0, fitted = 0;
    int64_t n;
    for (n = 0; n <= F->N; n++) {
        double share = F->fit[n] > 0 ? F->fit[n] / F->node[n] : 0;
        inner += F->a[n] * (1 - share);
        fitted += F->a[n] * share;
    }
    F->inner = inner * (1 + HS_SUMS);
    F->fitted = fitted * (1 + HS_SUMS);
}

/* log f becomes f_n, with |eps| taken reach larger in the error sums, so that every eps' within reach shares them. */
HS_CLONES void hs_nodes_freeze(hs_nodes *F)
{
    double inner = 0, round = 0, c = F->c;
    double top = fabs(F->eps) + F->reach, dy = F->dy;
    const double *restrict hr = F->round, *restrict hn = F->node;
    double *restrict re = F->re, *restrict im = F->im, *restrict a = F->a, *restrict b = F->b;
    /* Units of u beside the nodes' own errors: two turns by hs_cis_m1, 24 each, z (1+z) and its inverse 22, products
     * and sums with them 9, the exponential 2, a block of 64 terms 63, the blocks N/64 + 1, their scale 4. */
    double adds = 150 + (double)F->N / 64;
    int n, count = (int)F->N + 1;
    turn_nodes(F);
    HS_SEPARATE
    for (n = 0; n < count; n++) {
        double y = n * dy, count = n ? 2 : 1, mag = hs_exp(re[n]) * count;
        double co = 1 + a[n], si = b[n], node = hn[n];
        double dr = c * (1 + c) - y * y, di = y * (1 + 2 * c), den = dr * dr + di * di, size = mag / sqrt(den);
        /* phases: three of the five units by im - eps y and its turn, two by eps y; (eps' - eps) y and its turn have
         * four */
        double r = hr[n] + 5 * HS_U * (fabs(im[n]) + top * y), far = r + node > 600 ? 1 : 0;
        double er = hs_expm1(far != 0 ? re[n] + r + node : r) * (1 + 1e-15),
               en = hs_expm1(far != 0 ? 0 : node) * (1 + 1e-15);
        er = far != 0 ? count / sqrt(den) * (er + 1 + 1e-15)
                      : size * (er * (1 + en) + adds * HS_U); /* the node is no larger than this */
        re[n] = mag * (co * dr + si * di) / den;
        im[n] = mag * (si * dr - co * di) / den;
        a[n] = size * en;
        b[n] = er;
    }
    for (n = 0; n < count; n++) {
        inner += a[n];
        round += b[n];
    }
    F->rounding = round * (1 + HS_SUMS);
    F->inner = inner * (1 + HS_SUMS);
    F->fitted = 0;
    if (F->fit) share_out(F);
}

HS_CLONES void hs_nodes_sum(const hs_nodes *F, double eps, double *value, double *slope)
{
    double v[LANES] = {0}, w[LANES] = {0}, de = eps - F->eps;
    double dy = F->dy, S = 0, D = 0;
    int64_t n0, nodes = F->N + 1;
    int n;
    for (n0 = 0; n0 < nodes; n0 += LANES) {
        const double *restrict re = F->re + n0, *restrict im = F->im + n0;
        double base = (double)n0;
        int count = nodes - n0 < LANES ? (int)(nodes - n0) : LANES;
        for (n = 0; n < count; n++) {
            double y = (base + (double)n) * dy, co, si;
            hs_cis_m1(de * y, &co, &si);
            v[n] += re[n] + (re[n] * co + im[n] * si);
            w[n] += y * (im[n] + (im[n] * co - re[n] * si));
        }
    }
    for (n = 0; n < LANES && n < nodes; n++) {
        S += v[n];
        D += w[n];
    }
    *value = S;
    *slope = F->c * S - D;
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
