/* subnormal.c - a Poisson-subsampled Gaussian step as one law among others (law.h), on the inner grid of transform.c.
 *
 * Symbols as in transform.c: M(a) = E (1+U)^a, a = 1+z (REMOVE) or -z (ADD); the grid's points l_j, r_j stand for the
 *   tilted loss: phi(y) = sum r_j e^{+-iy l_j}.
 * Error claims. K: rounding, quadrature, ends and dropped terms (transform.c) in hs_law_value.err. phi: |y| c1 + quad,
 *   quad the quadrature error at the largest frequency y_max that the grid was built for, and both ends. The mesh is
 *   made finer until that error of k phi is below e^-T0, or the grid is full. var_upper: [theory: law.variance].
 *
 * What it does not do: plain Gaussian steps (law.c has them in closed form).
 */
#include "law/law.h"

static double tilt(const hs_law *w, double t) { return w->add ? -t : 1 + t; }

/* Estimates for placing contours; err is 0. */
void hs_subnormal_estimate(const hs_law *w, double t, hs_law_value *out)
{
    double o[3];
    hs_cgf_estimate(w->m, w->q, tilt(w, t), o);
    out->K = o[0];
    out->mean = w->add ? -o[1] : o[1];
    out->var = fmax(o[2], 0);
    out->err = o[0] < 1e300 ? 0 : HUGE_VAL;
}

/* K at real tilt t on the grid that was built, certified. */
void hs_subnormal_value(hs_law *w, double t, hs_law_value *out)
{
    double a = tilt(w, t), o[3], c1;
    double c2, miss;
    hs_moments mo;
    hs_cgf_estimate(w->m, w->q, a, o);
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
        hs_subnormal_value(w, tilts[i], g);
        if (!(g->err < (i ? 1 / w->k : 0.1))) return 0;
    }
    return 1;
}

/* The constants of the error of phi at exponent a for frequencies up to y_max. */
static void phi_errors(hs_law *w, double a, double log_m, double y_max)
{
    double c1, c2, ends, at0;
    hs_grid *G = &w->grid;
    hs_grid_weights(G, a, log_m, &c1, &c2);
    ends = hs_grid_ends_upper(G, a, log_m);
    G->strip = -1;
    at0 = hs_grid_quadrature_upper(G, a, 0);
    G->strip = -1;
    w->y_max = y_max;
    w->quad = hs_grid_quadrature_upper(G, a, y_max) + at0 + 2 * ends;
    w->quad *= 1 + 1.2 * (at0 + ends); /* [theory: law.quotient] */
    w->level = at0 + 2 * ends;
    w->c1 = (c1 + 64 * c2) * (1 + 1e-9);
}

/* The grid for tilts[0] = c and the two alias tilts, frequencies up to y_max, and the constants of phi at c. */
int hs_subnormal_tilt(hs_law *w, const double *tilts, double y_max, double T0, double *scratch)
{
    double a[3], lo, hi, h = 0.3 / fmax(w->m, 1);
    double width = sqrt(2 * (T0 + log(w->k) + 12)) + 1, target = exp(-T0) / w->k, far;
    hs_grid *G = &w->grid;
    hs_law_value g;
    int i, st, tries;
    for (i = 0; i < 3; i++) a[i] = tilt(w, tilts[i]);
    lo = fmin(fmin(a[0], a[1]), a[2]);
    hi = fmax(fmax(a[0], a[1]), a[2]);
    for (tries = 0;; tries++, h *= 0.75) {
        if (tries == 24) return HS_TOO_MANY_NODES;
        h = hs_grid_mesh(h);
        st = hs_grid_build(G, w->m, w->q, h, -width - hs_left_reach(w->m, w->q, lo), fmax(w->m, hi * w->m) + width,
                           scratch);
        if (st) return st;
        if (!knows(w, tilts, &g)) continue;
        phi_errors(w, a[0], g.K, y_max);
        if (w->quad <= target) break;
    }
    w->c = tilts[0];
    w->log_m = g.K;
    w->err = g.err;
    w->mean = g.mean;
    far = fmax(-G->lo, G->hi);
    w->var_upper = hs_grid_var_upper(G, w->add ? -g.mean : g.mean, hs_squares_upper(a[0], w->m, far),
                                     20 * HS_U * w->m * (far + w->m),
                                     3.4 + w->m * 2.61 * (G->h + 1 / hs_grid_fall(G, a[0])), 2 * w->level);
    w->r = G->r;
    w->xr = G->l;
    w->nr = G->n;
    w->ref = 0;
    return HS_OK;
}

double hs_subnormal_missing(const hs_law *w, double y)
{
    hs_grid G = w->grid;
    if (y <= w->y_max) return w->quad;
    return hs_grid_quadrature_upper(&G, tilt(w, w->c), y) + w->level;
}

double hs_subnormal_far_upper(const hs_law *w, double y)
{
    hs_grid G = w->grid;
    return fmin(1, hs_grid_far_upper(&G, tilt(w, w->c), y) + w->level);
}
