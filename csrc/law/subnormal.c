/* subnormal.c - a Poisson-subsampled Gaussian step as one law among others (law.h), on the inner grid of transform.c.
 *
 * Symbols as in transform.c: M(a) = E (1+U)^a, a = 1+z (REMOVE) or -z (ADD). The grid of the real line serves K and
 *   the bounds of |phi|; on a shifted path (twosided_shift.c) phi(y) = 1 + sum r_j (e^{iyL_j} - 1) for REMOVE, its
 *   conjugate for ADD, with one mesh for all frequencies.
 * Error claims. K: rounding, quadrature, ends and dropped terms (transform.c) in hs_law_value.err. phi: |y| c1 + quad,
 *   quad that of the path [theory: law.shifted], made for e^-T0 over all steps. var_upper: [theory: law.variance].
 *
 * What it does not do: plain Gaussian steps (law.c has them in closed form).
 */
#include "law/law.h"
#include "tuning.h"

static double tilt(const hs_law *w, double t) { return w->add ? -t : 1 + t; }

/* Estimates for placing contours; err is 0. */
void hs_subnormal_estimate(const hs_law *w, double t, hs_law_value *out)
{
    hs_cgf k = hs_cgf_estimate(w->m, w->q, tilt(w, t));
    out->K = k.K;
    out->mean = w->add ? -k.K1 : k.K1;
    out->var = fmax(k.K2, 0);
    out->err = k.K < 1e300 ? 0 : HUGE_VAL;
}

/* K at real tilt t on the grid that was built, certified. */
static void value_at(hs_law *w, double t, hs_law_value *out)
{
    double a = tilt(w, t), c1;
    double c2, miss;
    hs_moments mo;
    w->grid.strip = -1;
    hs_grid_moments(&w->grid, a, &mo);
    hs_grid_weights(&w->grid, a, mo.log_m, &c1, &c2);
    miss = hs_grid_quadrature_upper(&w->grid, a, 0) + hs_grid_ends_upper(&w->grid, a, mo.log_m);
    if (mo.dropped) miss += hs_grid_dropped_upper(&w->grid, a) / exp(fmin(mo.log_m, 0));
    out->K = mo.log_m;
    out->mean = w->add ? -mo.mean : mo.mean;
    out->var = mo.var;
    out->err = miss < 0.5 ? mo.err - log1p(-miss) : miss < 1e300 ? mo.err + log1p(miss) + 1e3 : HUGE_VAL;
}

/* Whether the grid knows K at c = tilts[0], whose value is left in g, to 0.1 and at both alias tilts to 1/k. */
static int knows(hs_law *w, const double *tilts, hs_law_value *g)
{
    int i;
    for (i = 2; i >= 0; i--) {
        value_at(w, tilts[i], g);
        if (!(g->err < (i ? 1 / w->k : 0.1))) return 0;
        if (i == 0) break;
        w->log_mt[i - 1] = g->K;
        w->err_t[i - 1] = g->err;
    }
    return 1;
}

/* The grid of the real line for tilts[0] = c, K there, which is left in g, and at the two alias tilts, and phi at c for
 * frequencies up to y, over all steps to e^-T0; mesh: the widest that is tried, times the shift. */
static int grid_of_law(hs_law *w, const double *tilts, double y, double mesh, double T0, double *scratch,
                       hs_law_value *g)
{
    double width = sqrt(2 * (T0 + log(w->k) + 12)) + 1, a[3], lo, hi;
    double h;
    int i, st, tries;
    for (i = 0; i < 3; i++) a[i] = tilt(w, tilts[i]);
    lo = -width - hs_left_reach_upper(w->m, w->q, fmin(fmin(a[0], a[1]), a[2]));
    hi = fmax(w->m, fmax(fmax(a[0], a[1]), a[2]) * w->m) + width;
    h = fmax(mesh / fmax(w->m, 1), 2.2 * (hi - lo) / HS_INNER_MAX); /* half of the room is the path's */
    for (tries = 0;; tries++, h *= 0.75) {
        if (tries == 24) return HS_TOO_MANY_NODES;
        h = hs_grid_mesh(h);
        if ((st = hs_grid_build(&w->grid, w->m, w->q, h, lo, hi, scratch))) return st;
        if (!knows(w, tilts, g)) continue;
        w->grid.strip = -1;
        if (w->k * hs_grid_quadrature_upper(&w->grid, a[0], y) <= exp(-T0)) return HS_OK;
    }
}

/* phi at exponent a on a shifted path, and the constants of its error. */
static int path_of_law(hs_law *w, double a, double T0)
{
    hs_grid *G = &w->grid;
    hs_moments mo;
    hs_two_shift P;
    double out = w->level, c1, c2;
    int j, st;
    hs_grid_moments(G, a, &mo);
    hs_grid_weights(G, a, mo.log_m, &c1, &c2);
    if (mo.dropped) out += hs_grid_dropped_upper(G, a) / exp(fmin(mo.log_m, 0));
    if (!(out < 0.1)) return HS_TOO_WIDE;
    if ((st = hs_grid_shift_build(G, a, mo.log_m, mo.err, 1.2 * out, T0 + log(w->k) + 4, &P))) return st;
    w->quad = P.quad;
    w->c1 = P.c1 + P.c2 * (106 + 0.024 * P.n); /* [theory: rounding.blocks] */
    w->r = P.rr;
    w->ri = P.ri;
    w->xr = P.Lr;
    w->xi = P.Li;
    w->nr = P.n;
    for (w->reach = 0, j = 0; j < P.n; j++) w->reach = fmax(w->reach, fabs(P.Lr[j]));
    return HS_OK;
}

/* The same on the real line, whose quadrature error grows with the frequency. */
static void line_of_law(hs_law *w, double a, double log_m)
{
    hs_grid *G = &w->grid;
    double c1, c2;
    hs_grid_weights(G, a, log_m, &c1, &c2);
    w->c1 = c1 + c2 * (71 + 0.024 * G->n); /* [theory: rounding.blocks] */
    w->r = G->r;
    w->xr = G->l;
    w->ri = w->xi = NULL;
    w->nr = G->n;
    w->reach = fmax(fabs(G->l[0]), fabs(G->l[G->n - 1]));
}

/* The grid, and phi at c: on the real line for frequencies up to y_max; for all, with y_max = 0, or where that takes
 * too many nodes, on a path; where that does too, as at large negative exponents, on the real line again, for
 * frequencies up to where this law alone is small. */
int hs_subnormal_tilt(hs_law *w, const double *tilts, double y_max, double T0, double *scratch)
{
    double a = tilt(w, tilts[0]), y, ends, far;
    hs_grid *G = &w->grid;
    hs_law_value g = {0, 0, 0, 1};
    int st = HS_OK, path;
    for (path = 0; path < 3; path++) {
        if (path == 0 && y_max == 0) continue;
        y = path == 0 ? y_max : path == 1 ? 0 : 10 / sqrt(w->k * fmax(g.var, 1e-300));
        st = grid_of_law(w, tilts, y, path == 0 ? 0.3 : HS_FAR_MESH, T0, scratch, &g);
        if (st == HS_OK) {
            ends = hs_grid_ends_upper(G, a, g.K);
            G->strip = -1;
            w->level = hs_grid_quadrature_upper(G, a, 0) + 2 * ends;
            if (path != 1) line_of_law(w, a, g.K);
            else st = path_of_law(w, a, T0);
        }
        if (st == HS_OK) break;
        if (st != HS_TOO_MANY_NODES || path == 2) return st;
    }
    w->c = tilts[0];
    w->log_m = g.K;
    w->err = g.err;
    w->mean = g.mean;
    far = fmax(-G->lo, G->hi);
    w->var_upper =
        hs_grid_var_upper(G, w->add ? -g.mean : g.mean, hs_squares_upper(a, w->m, far), 20 * w->m * (far + w->m),
                          3.4 + w->m * 2.61 * (G->h + 1 / hs_grid_fall(G, a)), 2 * w->level);
    w->ref = 0;
    return HS_OK;
}

double hs_subnormal_missing(const hs_law *w, double y)
{
    hs_grid G = w->grid;
    if (!(y * w->reach < 1e6)) return HUGE_VAL;
    if (w->ri) return w->quad;
    G.strip = -1;
    return (hs_grid_quadrature_upper(&G, tilt(w, w->c), y) + w->level) *
           (1 + 1.2 * w->level); /* [theory: law.quotient] */
}

double hs_subnormal_far_upper(const hs_law *w, double y)
{
    hs_grid G = w->grid;
    return fmin(1, hs_grid_far_upper(&G, tilt(w, w->c), y) + w->level);
}
