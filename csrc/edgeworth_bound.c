/* edgeworth_bound.c - what the finite-sample constants of the Edgeworth expansion need of one step: absolute central moments and
 * the largest modulus of its characteristic function away from 0.
 *
 * Symbols. L = log(1+U) as in edgeworth.c, law A (no record) and law B, d = L - E L; phi(y) = E e^{iyL}, sd^2 = Var L.
 *
 * Formulas. E|d| = 2 E d_+ and E|d|^3 = 2 E d_+^3 - E d^3: L increases with v, so d_+ is smooth beyond its root
 *   v* = log(1 + expm1(E L)/q), where the Gauss-Legendre panels start. On (y_j, y_{j+1}), |phi| <= (|phi(y_j)| + |phi(y_{j+1})| +
 *   (y_{j+1} - y_j) sd)/2, as |phi'| <= E|d| <= sd for the centred loss; beyond the last point the far bounds of transform.c and
 *   laplace_step.c.
 *
 * Error claims. Moments: estimates, relative 1e-11 where 1e-9 <= q and m <= 40 (tests). hs_edgeworth_modulus_upper is a bound:
 *   the grid's quadrature and rounding errors (transform.c, laplace_step.c) are added at every point.
 *
 * What it does not do: more than one step; q = 1 of the Gaussian family in the moments (closed forms, given by the caller).
 */
#include "edgeworth.h"

#define PANELS_MAX 400

/* (L - mean)_+ and its cube under both laws at loss coordinate v, with weights wA, wB. */
static void add_point(double v, double q, double meanA, double meanB, double wA, double wB, double *out)
{
    double U = q * expm1(v > 700 ? 700 : v), small = fabs(U) < 0.1 ? U : 0, l, a, b;
    l = v > 700 ? v + log(q) : small != 0 ? U + hs_log1pmx_small(small) : log((1 - q) + q * exp(v));
    a = fmax(0, l - meanA); b = fmax(0, l - meanB);
    out[0] += wA * a; out[1] += wA * a * a * a; out[2] += wB * b; out[3] += wB * b * b * b;
}

/* E d_+ and E d_+^3 of one law (which = 0: A, 1: B), the panels starting at its own root. */
static void positive_part(int family, double m, double q, double mean, int which, const double *x, const double *w, int n,
                          double *out)
{
    double part[4] = {0, 0, 0, 0}, root = log1p(fmax(expm1(mean) / q, -1 + 1e-300)), lo, hi, width;
    int i, j, panels;
    if (family == 0) {
        lo = fmax(-12, root / m + 0.5 * m); hi = fmax(m, fmin(4 * m, 1.5 * m - log(q) / m)) + 10; /* L^3 w (1+U) peaks near 4 m */
        width = fmin(1, 1.5 / m); /* the integrand is analytic for |Im g| < pi/m */
    } else { lo = fmax(0, 0.5 * (root + m)); hi = m; width = 2; }
    panels = hi > lo ? (int)fmin(PANELS_MAX, ceil((hi - lo) / width)) : 0;
    for (i = 0; i < panels; i++)
        for (j = 0; j < n; j++) {
            double half = 0.5 * (hi - lo) / panels, g = lo + (2 * i + 1 + x[j]) * half, wA, wB, d = g - m;
            if (family == 0) {
                wA = half * w[j] * exp(-0.5 * g * g) * 0.39894228040143267794;
                wB = (1 - q) * wA + q * half * w[j] * exp(-0.5 * d * d) * 0.39894228040143267794;
                add_point(m * g - 0.5 * m * m, q, mean, mean, wA, wB, part);
            } else {
                wA = 0.5 * half * w[j] * exp(-g);
                add_point(2 * g - m, q, mean, mean, wA, wA * (1 + q * expm1(2 * g - m)), part);
            }
        }
    if (family == 1) {
        add_point(-m, q, mean, mean, 0.5, 0.5 * (1 + q * expm1(-m)), part);
        add_point(m, q, mean, mean, 0.5 * exp(-m), 0.5 * exp(-m) * (1 + q * expm1(m)), part);
    }
    out[0] = part[2 * which]; out[1] = part[2 * which + 1];
}

int hs_edgeworth_absolute(int family, double m, double q, const double *x, const double *w, int n_gl, double *A, double *B)
{
    double a[5], b[5], part[2];
    int st = hs_edgeworth_moments(family, m, q, x, w, n_gl, a, b);
    if (st) return st;
    if (family == 0 && (q == 1 || m > 40)) return HS_BAD_ARGUMENT;
    positive_part(family, m, q, a[0], 0, x, w, n_gl, part);
    A[0] = 2 * part[0]; A[1] = 2 * part[1] - a[2];
    positive_part(family, m, q, b[0], 1, x, w, n_gl, part);
    B[0] = 2 * part[0]; B[1] = 2 * part[1] - b[2];
    return HS_OK;
}

/* sup |phi(y)| over y0 <= y <= y1 under law A (which = 0) or B. At most 4,000 points, of spacing 0.002/sd up to 1/sd,
 * 0.01/sd up to 3/sd, then 0.05/sd. */
int hs_edgeworth_modulus_upper(int family, double m, double q, int which, const double *x, const double *w, int n_gl, double y0,
                               double y1, double *work, long n_work, double *modulus)
{
    double a = which, best = 0, prev = -1, y = y0, c1, c2, q0, ends = 0, sd, h, s = 0;
    hs_grid G;
    hs_moments mo;
    int st, j;
    if (n_work < HS_GRID_WORK) return HS_SCRATCH;
    if (!(y0 > 0 && y1 >= y0) || (family == 0 && q == 1)) return HS_BAD_ARGUMENT;
    if (family == 0) {
        double o[3];
        hs_cgf_estimate(m, q, a, o);
        h = hs_grid_choose_h(m, q, a, 4 / sqrt(o[2]), 36, 0.15 / fmax(m, 1), &j);
        /* no finer than fits: the bounds below tell what a coarse mesh costs. A power of two keeps the nodes exact. */
        h = fmax(h, ldexp(1, (int)ceil(log2((m + 22) / (HS_INNER_MAX - 24)))));
        st = hs_grid_build(&G, m, q, h, -10.5, m + 10.5, work);
    } else st = hs_laplace_step_grid(&G, m, q, x, w, n_gl, work);
    if (st) return st;
    hs_grid_moments(&G, a, 0, &mo);
    hs_grid_weights(&G, a, mo.log_m, &c1, &c2);
    q0 = family == 0 ? hs_grid_quadrature_upper(&G, a, 0) : hs_laplace_step_quadrature_upper(m, q, a, 0, mo.log_m, n_gl);
    if (family == 0) { ends = hs_grid_ends_upper(&G, a, mo.log_m); q0 += 2 * ends; }
    if (!(q0 < 1e-3)) return HS_TOO_WIDE; /* it is relative to the grid's own M: 1.01 below */
    sd = sqrt(mo.var);
    for (j = 0; j < 4000; j++) {
        double zr, zi, err, at, far;
        G.strip = -1;
        hs_grid_phase(&G, y, &zr, &zi);
        err = family == 0 ? hs_grid_quadrature_upper(&G, a, y) : hs_laplace_step_quadrature_upper(m, q, a, y, mo.log_m, n_gl);
        err = 1.01 * (err + q0);
        at = hypot(1 + zr, zi) + err + y * (c1 + 64 * c2) + 8 * HS_U;
        far = family == 0 ? hs_grid_far_upper(&G, a, y) + q0 : hs_laplace_step_far_upper(m, q, a, y, mo.log_m) * (1 + q0);
        far = fmin(1, far);
        if (prev >= 0) best = fmax(best, 0.5 * (fmin(at, 1) + prev + s * sd * (1 + 1e-6)));
        prev = fmin(at, 1);
        if (y >= y1 || far <= fmax(best, prev)) { best = fmax(best, y >= y1 ? prev : far); break; }
        if (j == 3999) { best = fmax(best, far); break; }
        s = (y * sd < 1 ? 0.002 : y * sd < 3 ? 0.01 : 0.05) / sd;
        if (y + s > y1) s = y1 - y;
        y = y + s > y ? y + s : y1;
    }
    *modulus = fmin(1, best * (1 + 1e-9));
    return HS_OK;
}
