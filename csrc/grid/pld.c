/* pld.c - laws of a loss on a lattice that dominate it, or are dominated by it, from its tails.
 *
 * Symbols: Y loss under num, X under den; fine edges s_0 < ... < s_n, s_i = s_0 + i w; cell i = (s_i, s_{i+1}]; y_i,
 *   x_i masses of cell i under Y and X; u_i = y_i - e^{s_i} x_i = E[1 - e^{s_i - Y}; cell i], how far the cell sits
 *   above its left edge. Lattice points a_j = s_{mj}: m fine cells between neighbours, h = mw.
 * A positive measure nu on losses stands for D_nu(eps) = int (1 - e^{eps-y})_+ dnu [theory: pair.measure]; above and
 * below are meant in this sense, and survive convolution [theory: grid.domination].
 *
 * hs_pld_cells: y_i, u_i rounded up (for the upper law), y_i and u_i rounded down (for the lower law). Tails are within
 *   (1 + rel) and absolute; all losses of a cell are within `edge` of it: D(eps) <= D_upper(eps - edge)
 *   [theory: grid.cells].
 * hs_pld_upper, connect the dots [DGK+22, Alg. 1]: the mass y in [a, b] goes to b with probability
 *   (1 - e^{a-y})/(1 - e^{-h}), else to a [theory: grid.upper].
 * hs_pld_lower, its mirror: groups of outcomes whose mean of e^{-y} is at most e^{-a_j} go to a_j, from the top down, a
 *   fine cell being split where a group is full [theory: grid.lower]; see there.
 * Error claim: every sum and product here is rounded once more in its own direction (factors 1 +- 8u).
 *
 * What it does not do: tails.
 */
#include "hs.h"
#include "special.h"
#include <math.h>

static double above_zero(double x) { return x > 0 ? x : 0; /* a NaN becomes 0 */ }

/* The mass of cell i from the smaller pair of tails, rows of that length, and a bound on its error. */
static double cell(const double *below, const double *rel, int64_t rows, double absolute, int64_t i, double *error)
{
    const double *above = below + rows;
    int top = above[i] < below[i + 1];
    double left = top ? above[i] : below[i], right = top ? above[i + 1] : below[i + 1];
    *error = hs_up(rel[i] * left + rel[i + 1] * right + 2 * absolute);
    return above_zero(top ? left - right : right - left);
}

/* The tails at s_i, i = 0..n, become y_upper, u_upper, y_lower, u_lower of the cells, a row each, of which the last
 * entry keeps its tail: cell i is read before it is written; see the head of the file. Where the den mass is not
 * resolved, u <= y (1 - e^{-w}) (its losses may reach the right edge) and u >= -y (e^edge - 1) (all of them are above
 * the left one). */
int hs_pld_cells(const hs_fine *f, double *tails)
{
    int64_t rows = f->n + 1, i;
    double *y_upper = tails, *u_upper = tails + rows, *y_lower = tails + 2 * rows;
    double *u_lower = tails + 3 * rows, *rel = tails + 4 * rows;
    double full = -expm1(-f->w), least = hs_up(-expm1(f->edge));
    if (!(f->n > 0 && f->w > 0 && f->edge >= 0 && f->absolute >= 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < f->n; i++) {
        double a = f->s0 + (double)i * f->w, ey, ex;
        double scale, turn = HS_U * (16 + 16 * (fabs(a) + fabs(f->s0)));
        double y = cell(tails, rel, rows, f->absolute, i, &ey);
        double x = cell(tails + 2 * rows, rel, rows, f->absolute, i, &ex);
        y_upper[i] = hs_up(y + ey);
        y_lower[i] = above_zero(hs_down(y - ey));
        if (a > 700) { /* e^a does not fit in a double: all mass goes up, or down */
            u_upper[i] = hs_up(y_upper[i] * full);
            u_lower[i] = y_lower[i] * least;
            continue;
        }
        scale = exp(a);
        u_upper[i] = y_upper[i] - exp(a - f->edge) * (1 - turn) * above_zero(x - ex); /* [theory: grid.cells] */
        u_upper[i] = fmin(above_zero(u_upper[i] + 4 * HS_U * y_upper[i]), hs_up(y_upper[i] * full));
        u_lower[i] = y_lower[i] - scale * (1 + turn) * (x + ex);
        u_lower[i] = fmax(u_lower[i] - 4 * HS_U * y_lower[i], y_lower[i] * least);
    }
    return HS_OK;
}

/* p[0..n]: the dominating law on n + 1 lattice points from m n fine cells; `bottom` bounds the mass below the first
 * edge. */
int hs_pld_upper(int64_t n, int m, double w, const double *y_upper, const double *u_upper, double bottom, double *p)
{
    double keep[HS_PLD_FINE], full[HS_PLD_FINE], whole = -expm1(-m * w);
    int64_t j;
    int i;
    if (!(n > 0 && w > 0 && m > 0 && m <= HS_PLD_FINE)) return HS_BAD_ARGUMENT;
    for (i = 0; i < m; i++) {
        keep[i] = exp(-i * w);
        full[i] = -expm1(-i * w);
    }
    p[0] = bottom;
    for (j = 0; j < n; j++) {
        double y = 0, u = 0, up;
        for (i = 0; i < m; i++) {
            y += y_upper[m * j + i];
            u += y_upper[m * j + i] * full[i] + keep[i] * u_upper[m * j + i];
        }
        y = hs_up(y);
        up = fmin(u / whole * (1 + 32 * HS_U), y); /* [theory: grid.upper] */
        p[j] += (y - up) + 2 * HS_U * y;
        p[j + 1] = up;
    }
    return HS_OK;
}

/* 1 - e^-z and e^-z; beyond e^700 such that y gain + u back is -infinity for every y > 0: neither overflows to a
 * NaN. */
static void lift(double z, double *gain, double *back)
{
    *gain = z < -700 ? -HUGE_VAL : -expm1(-z);
    *back = z < -700 ? 0 : exp(-z);
}

/* The group that is left over at point j, with mean above a_j: lower it to a_j, or raise it to a_{j+1} by giving it
 * mass of the points above, whichever costs less at tilt t (mean lost, against spread lost) [theory: grid.left-over].
 * `surplus` is rounded down, the mass that is needed up: sums of up to n terms here, a subtraction of two terms that
 * are within 4u(1 + h). */
static void settle(int64_t n, int64_t j, double h, double surplus, double t, double *p)
{
    double need, cost = 0, left, given = 0;
    int pass;
    int64_t i;
    if (j + 2 > n || !(p[j] > 0) || !(h < 700)) return;
    need = p[j] * expm1(h) - surplus * exp(h) + 8 * HS_U * (1 + h) * (p[j] * expm1(h) + surplus * exp(h));
    need *= 1 + 4 * HS_U * (double)(n + 16);
    for (pass = 0; pass < 2; pass++) {
        left = need;
        for (i = j + 2; i <= n && left > 0; i++) {
            double gain = -expm1(-(double)(i - j - 1) * h), part = fmin(1.0, left / (p[i] * gain + 1e-300));
            left -= part * p[i] * gain;
            if (!pass) cost += part * p[i] * 0.5 * (1 + t) * gain * gain;
            else {
                given += part * p[i];
                p[i] -= part * p[i];
            }
        }
        if (!(left <= 0 && cost < surplus)) return;
    }
    p[j + 1] += (p[j] + given) * (1 - 2 * HS_U * (double)(n + 4));
    p[j] = 0;
}

/* p[0..n]: a dominated law on n + 1 lattice points from m n fine cells; `top` is mass known to lie above the last
 * point. Group j starts at the top of what is left and takes cells downwards while the mean of e^{-y} allows a_j:
 *   S = sum of y - e^{a_j} x = sum of y (1 - e^{-z}) + u e^{-z} >= 0, z = (i - mj) w for fine cell i,
 * a cell by the fraction that makes S = 0. `loss` bounds the rounding of S and is withheld: z is rounded once, which
 * moves 1 - e^{-z} by at most u(1 + |z|) of itself, and e^{-z} by u|z|; libm adds 2u, the products and their sum 3u,
 * the sum S u|S|. A cell more than 700 below its point never joins: that closes the group, and any group may be
 * closed. Masses are sums of `terms` numbers, of which at most one was split; they are lowered by 2u (terms + 8).
 * Where the groups' edges lie inside a fine cell, a deviation of one edge is passed on to the next with the other
 * sign and unchanged mass: it dies out where masses grow downwards, hence this order. The cell must be the middle
 * one of m = 3 (or one atom between two points, m = 2, u = 0): with its mean off the middle a deviation may grow
 * from edge to edge. */
int hs_pld_lower(int64_t n, int m, double w, const double *y_lower, const double *u_lower, double top, double t,
                 double *p)
{
    double gains[2 * HS_PLD_FINE + 1], backs[2 * HS_PLD_FINE + 1];
    double group = top, S = 0, loss = 0;
    double f = 1, terms = 0;
    int64_t i = m * n - 1, j = n, d;
    if (!(n > 0 && w > 0 && m > 0 && m <= HS_PLD_FINE)) return HS_BAD_ARGUMENT;
    for (d = -HS_PLD_FINE; d <= HS_PLD_FINE; d++) lift((double)d * w, gains + d + HS_PLD_FINE, backs + d + HS_PLD_FINE);
    for (j = n; j >= 0; j--) {
        for (; i >= 0; i--, f = 1) {
            double y = f * y_lower[i], z, gain, back;
            double s, more, room;
            if (y == 0) continue;
            d = i - m * j;
            z = (double)d * w;
            if (d < -HS_PLD_FINE || d > HS_PLD_FINE) lift(z, &gain, &back);
            else {
                gain = gains[d + HS_PLD_FINE];
                back = backs[d + HS_PLD_FINE];
            }
            s = y * gain + f * u_lower[i] * back;
            more = HS_U * (8 + 2 * fabs(z)) * (y * fabs(gain) + fabs(f * u_lower[i]) * back);
            room = S - loss - more;
            if (!(s >= 0) && !(room + s >= 0)) { /* [theory: grid.lower] */
                double part = room > 0 ? room / -s : 0;
                group += part * y;
                f *= 1 - part;
                break;
            }
            group += y;
            S += s;
            loss += more + 2 * HS_U * fabs(S);
            terms += 1;
        }
        p[j] = group * (1 - 2 * HS_U * (terms + 8));
        if (i < 0) break;
        group = S = loss = terms = 0;
    }
    for (i = 0; i < j; i++) p[i] = 0;
    if (j >= 0) settle(n, j, m * w, above_zero(S - loss), t, p);
    return HS_OK;
}

/* Both laws on n/m + 1 lattice points from tails at the n + 1 edges of their fine cells, which are overwritten:
 * p_upper, p_lower; p_inf bounds the mass above the last edge, which the lower law has on its last point, or, with
 * `cut`, not at all [theory: pair.measure, grid.domination]. */
int hs_pld_laws(const hs_fine *f, double *tails, double t, int cut, double *p_upper, double *p_lower, double *p_inf)
{
    int64_t n = f->n / f->m, rows = f->n + 1;
    const double *rel = tails + 4 * rows, above = tails[rows + f->n];
    double bottom = hs_up(tails[0] * (1 + rel[0]) + f->absolute), top;
    int st;
    top = cut ? 0 : hs_down(above_zero(above * (1 - rel[f->n]) - f->absolute));
    *p_inf = hs_up(above * (1 + rel[f->n]) + f->absolute);
    if ((st = hs_pld_cells(f, tails))) return st;
    if ((st = hs_pld_upper(n, f->m, f->w, tails, tails + rows, bottom, p_upper))) return st;
    return hs_pld_lower(n, f->m, f->w, tails + 2 * rows, tails + 3 * rows, top, t, p_lower);
}
