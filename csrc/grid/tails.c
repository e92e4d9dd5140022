/* tails.c - tail probabilities of one step's loss: normal and Laplace pairs, and what Poisson sampling makes of a pair.
 *
 * Symbols: Y loss under num, X under den; s_i increasing; y_below = Pr[Y <= s], y_above = Pr[Y > s], x_below,
 *   x_above likewise; rel bounds the relative error of all four at s_i; u = 2^-53. What a common move of all four
 *   edges may hide is `edge` [theory: law.tails].
 * Formulas: normal pair, shift m: Pr[Y <= s] = Phi(s/m - m/2), Pr[X <= s] = Phi(s/m + m/2)
 *   [theory: law.gaussian-tails].
 *   Laplace pair, shift m: Pr[Y <= s] = e^{(s-m)/2}/2 and Pr[X > s] = e^{-(s+m)/2}/2 for -m <= s < m
 *   [theory: pair.laplace]. Poisson sampling at rate q: with g(s) = log1p(expm1(s)/q) the base loss of s > log(1-q),
 *   Pr[X <= s] = Pr[X0 <= g],  Pr[Y <= s] = q Pr[Y0 <= g] + (1-q) Pr[X0 <= g] [theory: pair.sampled-laws].
 * Error claims, in each function's head [theory: rounding.edges].
 *
 * What it does not do: masses at infinity (loss.py adds them), other laws.
 */
#include "hs.h"
#include "special.h"
#include <math.h>

static void normal(double x, double *below, double *above)
{
    double a = 0.5 * erfc(fabs(x) * HS_SQRT_HALF);
    *below = x > 0 ? 1 - a : a;
    *above = x > 0 ? a : 1 - a;
}

/* Tails of N(0,1): relative error 16u + 2u |x| (|x| + 1) (erfc: glibc documents 5 ulp; its argument carries 2u). */
int hs_normal_tails(int64_t n, const double *x, double *below, double *above)
{
    int64_t i;
    if (!(n >= 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n; i++) normal(x[i], below + i, above + i);
    return HS_OK;
}

/* x = s/m +- m/2 is off by at most 4u(|s|/m + m), m by u; a tail moves by that times its hazard <= |x| + 1; the
 * tails themselves carry 16u and 2u |x| (|x| + 1). All of it is relative error: no edge moves. */
int hs_gaussian_tails(double m, int64_t n, const double *s, double *tails)
{
    int64_t i;
    if (!(n >= 0 && m > 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n; i++) {
        double at = s[i] / m, half = 0.5 * m, size = fabs(at) + half;
        normal(at - half, tails + i, tails + n + i);
        normal(at + half, tails + 2 * n + i, tails + 3 * n + i);
        tails[4 * n + i] = HS_U * (20 + 8 * (size + 1) * (size + m)); /* [theory: law.gaussian-tails, rounding.edges] */
    }
    return HS_OK;
}

/* Relative error: u(|s| + m) of the exponents and 6u; m itself is known to u, so the ends may move by 2um, the
 * caller's edge. */
int hs_laplace_tails(double m, int64_t n, const double *s, double *tails)
{
    double *y_below = tails, *y_above = tails + n, *x_below = tails + 2 * n, *x_above = tails + 3 * n;
    int64_t i;
    if (!(n >= 0 && m > 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n; i++) {
        int low = s[i] < -m, high = s[i] >= m;
        y_below[i] = low ? 0 : high ? 1 : 0.5 * exp(0.5 * (s[i] - m));
        x_above[i] = low ? 1 : high ? 0 : 0.5 * exp(-0.5 * (s[i] + m));
        y_above[i] = 1 - y_below[i];
        x_below[i] = 1 - x_above[i];
        tails[4 * n + i] = HS_U * (8 + fmin(fabs(s[i]), m) + m);
    }
    return HS_OK;
}

/* g[i] = the base loss at which the sampled one is s_i, non-decreasing, for i >= *first; those before lie at or
 * below the wall log(1-q), or so little above that no finite base loss may be found: within 4u|wall| + 8u
 * min(q/(1-q), 1.8) of it, 2u|wall| being the rounding of the wall itself. An edge is off by at most *edge + *slope
 * times how far the base's edges are off, where *slope is twice the largest ds/dg = 1 - (1-q) e^-s <= 1, and *edge
 * twice the largest of
 *   s > -1: 4u|1 - e^-s| for expm1 and the quotient, and 4u|g| ds/dg for log1p;
 *   s < -1, where 1 - q is exact as log(1-q) < s: e^s - (1-q) is within 2u e^s and its own rounding, which moves s
 *     by 4u; and 4u (1 + |g|) ds/dg for the quotient and log.
 * The wall adds 8u|wall| + 16u min(q/(1-q), 1.8) where it is met. */
int hs_poisson_place(double q, int64_t n, const double *s, double *g, int64_t *first, double *edge, double *slope)
{
    double wall = log1p(-q), near = HS_U * (4 * fabs(wall) + 8 * fmin(q / (1 - q), 1.8)), move = 0, last = -HUGE_VAL;
    int64_t i = 0;
    if (!(n >= 0 && q > 0 && q < 1)) return HS_BAD_ARGUMENT;
    *slope = 0;
    while (i < n && !(s[i] > wall + near)) i++;
    *first = i;
    for (; i < n; i++) {
        double turn = fmax(1 - (1 - q) * exp(-s[i]), 0) + 4 * HS_U, at, z;
        if (s[i] > -1) {
            z = expm1(s[i]) / q;
            if (z < 1e300) at = log1p(fmax(z, -1 + 0.5 * DBL_EPSILON));
            else
                at = (s[i] > 40 ? s[i] : log(expm1(s[i]))) -
                     log(q); /* at > 690, and neither term is beyond 745 where s < 40 */
            /* [theory: rounding.edges] */
            move = fmax(move, fabs(expm1(-s[i])) + turn * fabs(at));
        } else {
            at = log((exp(s[i]) - (1 - q)) / q);
            move = fmax(move, 1 + turn * (1 + fabs(at)));
        }
        last = g[i] = at > last ? at : last;
        *slope = fmax(*slope, 2 * turn);
    }
    for (i = 0; i < *first; i++) g[i] = *first < n ? g[*first] : 0;
    *edge = 8 * HS_U * move + (*first ? 2 * near : 0);
    return HS_OK;
}

/* From the base's tails at g[first..] to the sampled law's, in place; before `first` all mass is above: all_x of X,
 * and of Y q all_y + (1-q) all_x, all_y and all_x the base's masses of finite losses. Two products and a sum, 4u, and
 * as much for these masses: 8u more. */
int hs_poisson_tails(double q, double all_y, double all_x, int64_t first, int64_t n, double *tails)
{
    double *y_below = tails, *y_above = tails + n, *x_below = tails + 2 * n;
    double *x_above = tails + 3 * n, *rel = tails + 4 * n;
    int64_t i;
    if (!(n >= first && first >= 0 && q > 0 && q < 1)) return HS_BAD_ARGUMENT;
    for (i = 0; i < first; i++) {
        y_below[i] = x_below[i] = 0;
        x_above[i] = all_x;
        y_above[i] = q * all_y + (1 - q) * all_x;
        rel[i] = 0;
    }
    for (; i < n; i++) {
        y_below[i] = q * y_below[i] + (1 - q) * x_below[i];
        y_above[i] = q * y_above[i] + (1 - q) * x_above[i]; /* [theory: pair.sampled-laws] */
    }
    for (i = 0; i < n; i++) rel[i] += 8 * HS_U;
    return HS_OK;
}
