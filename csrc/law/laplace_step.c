/* laplace_step.c - the transform of one Poisson-subsampled Laplace step, on a grid of two atoms and Gauss-Legendre
 * nodes.
 *
 * Symbols. x Laplace of scale 1, v = |x| - |x - m| in [-m, m], U = q (e^v - 1), L = log(1+U), M(a) = E (1+U)^a, a real;
 *   phi(y) = M(a +- iy)/M(a). Law without the record: v = -m with mass 1/2, v = m with mass e^{-m}/2, and v = 2x - m,
 *   0 < x < m, with density e^{-x}/2. p: weights normalised by M(a). u = 2^-53.
 *
 * Formulas and error claims.
 *   grid        Panels of length <= 2 on (0, m), n_gl Gauss-Legendre nodes each. The rule comes from the caller and is
 *               taken to be right to 2 u in nodes and 16 u in weights (tests compare it with 40 digits).
 *   quadrature  hs_laplace_step_quadrature_upper: (64/15) F rho^{-2n}/(1-rho^{-2}) s a panel of half-length s, n >= 2
 *               [theory: law.gauss-panels], F a bound of the integrand on the ellipse of rho, where
 *               |Im v| <= b = s (rho-1/rho) <= 1.4 [theory: law.laplace-ellipse]. Holds for all |y'| <= y.
 *   rounding    hs_grid_moments and hs_grid_weights (transform.c) count v as known to 2 m^2 u, log weights and what
 *               becomes of them to 3u|log h| at least, with the grid's fields m and h. Here v = 2x - m is off by at
 *               most 9 m u (x by 4 u relative, 2x - m by one more), the weight by (|lw| + 24 + 5 m) u and 3|lw| u: the
 *               grid says m -> sqrt(5 m), h -> exp(-(that)/3).
 *   far         |phi(y)| <= p_lo + p_hi + min(p_density, p(0, x1) + 2 (r(x1) + r(m))/y) for every x1, r = p's density
 *               over L' [theory: law.laplace-far]. Holds for all larger y.
 *
 * What it does not do: m > HS_LAPLACE_STEP_MAX.
 */
#include "law/laplace_step.h"

/* Fills everything that the sums over a grid read. HS_TOO_MANY_NODES cannot happen for m <= HS_LAPLACE_STEP_MAX,
 * rule->n <= 64. */
int hs_laplace_step_grid(hs_grid *G, double m, double q, const hs_rule *rule, double *work)
{
    int panels = hs_laplace_step_panels(m), n = 2 + panels * rule->n, j;
    double half = 0.5 * m / panels, lw_max = 0;
    if (!(n < HS_INNER_MAX - 8)) return HS_TOO_MANY_NODES;
    G->strip = -1;
    G->q = q;
    G->lo = -m;
    G->hi = m;
    G->n = G->last = (n + 7) / 8 * 8;
    G->first = 0;
    hs_grid_rows(G, work);
    for (j = 0; j < G->n; j++) {
        double v, lw, U;
        double small, t;
        int i = j - 2;
        if (j == 0) {
            v = -m;
            lw = -HS_LOG_2;
        } else if (j == 1) {
            v = m;
            lw = -HS_LOG_2 - m;
        } else if (j < n) {
            double y = (2 * (i / rule->n) + 1 + rule->x[i % rule->n]) * half;
            v = 2 * y - m;
            lw = log(0.5 * half * rule->w[i % rule->n]) - y;
        } else {
            v = 0;
            lw = -1e4;
        }
        if (j < n) lw_max = fmax(lw_max, fabs(lw));
        U = q * expm1(v);
        small = fabs(U) < 0.1 ? U : 0;
        t = hs_log1pmx_small(small);
        G->g[j] = 0;
        G->lw[j] = lw;
        G->w[j] = hs_exp(lw);
        G->u[j] = U;
        G->inv[j] = 1 / ((1 - q) + q * exp(v));
        G->l[j] = small != 0 ? U + t : fabs(U) < 0.5 ? log1p(U) : log((1 - q) + q * exp(v));
        G->lm[j] = small != 0 ? t : G->l[j] - U;
    }
    G->m = sqrt(5 * m);
    G->h = exp(-(1.4 * lw_max + 8 + 1.7 * m));
    return HS_OK;
}

/* log M(a), mean and variance of L under the tilted law: for placing contours, never for bounds. */
hs_cgf hs_laplace_step_cgf_estimate(double m, double q, double a, const hs_rule *rule)
{
    hs_cgf out;
    int panels = hs_laplace_step_panels(m), n = 2 + panels * rule->n, j;
    double half = 0.5 * m / panels, s0 = 0, s1 = 0, s2 = 0;
    double ends[2], top, plain, M;
    ends[0] = a * log((1 - q) + q * exp(-m));
    ends[1] = a * log((1 - q) + q * exp(m));
    top = fmax(ends[0], ends[1]);
    plain = top > 3 ? 1 : 0;
    top = plain != 0 ? top : 0;
    for (j = 0; j < n; j++) {
        int i = j - 2;
        double y = j < 2 ? 0 : (2 * (i / rule->n) + 1 + rule->x[i % rule->n]) * half, v = j == 0   ? -m
                                                                                          : j == 1 ? m
                                                                                                   : 2 * y - m;
        double weight = j == 0 ? 0.5 : j == 1 ? 0.5 * hs_exp(-m) : 0.5 * half * rule->w[i % rule->n] * hs_exp(-y);
        double U = q * hs_expm1(v), small = fabs(U) < 0.1 ? U : 0;
        double t = hs_log1pmx_small(small), l = small != 0 ? U + t : hs_log((1 - q) + q * hs_exp(v));
        double E = a * l, es = fabs(E) < 0.1 ? E : 0, e, h2;
        if (plain != 0) {
            e = hs_exp(E - top);
            s0 += weight * e;
            s1 += weight * e * l;
            s2 += weight * e * l * l;
            continue;
        }
        e = hs_exp(E);
        h2 = es != 0 ? hs_expm1mx_small(es) : e - 1 - E;
        t = small != 0 ? t : l - U;
        s0 += weight * (h2 + a * t);
        s1 += weight * ((h2 + E) * l + t); /* e^E l - U, as E U = 0 */
        s2 += weight * e * l * l;
    }
    M = plain != 0 ? s0 : 1 + s0;
    out.K = plain != 0 ? top + log(s0) : log1p(s0);
    out.K1 = s1 / M;
    out.K2 = s2 / M - out.K1 * out.K1;
    return out;
}

double hs_laplace_step_quadrature_upper(double m, double q, double a, double y, double log_m, int n_gl)
{
    static const double strip[4] = {1.4, 0.9, 0.45, 0.2};
    int panels = hs_laplace_step_panels(m), i, t;
    double s = 0.5 * m / panels, total = 0;
    for (i = 0; i < panels; i++) {
        double best = HUGE_VAL, x0 = (2 * i + 1) * s;
        for (t = 0; t < 4; t++) {
            double minor = fmin(strip[t] / (2 * s), 30), major = sqrt(1 + minor * minor), rho = minor + major,
                   b = 2 * s * minor;
            double v_hi = 2 * (x0 + s * major) - m, v_lo = 2 * (x0 - s * major) - m, R;
            double arg, F;
            R = q < 1 ? q * exp(v_hi) / (1 - q) : HUGE_VAL;
            arg = R < 1e15 ? atan2(R * sin(b), 1 + R * cos(b)) : b;
            F = s * major - x0 - log_m + y * arg;
            F += a >= 0 ? a * log1p(q * expm1(v_hi)) : a * (log(cos(0.5 * b)) + log((1 - q) + q * exp(v_lo)) - 1e-14);
            /* [theory: law.gauss-panels, law.laplace-ellipse] */
            F += log(64.0 / 30 * s) - 2 * n_gl * log(rho) - log1p(-1 / (rho * rho));
            best = fmin(best, exp(fmin(F, 700)));
        }
        total += best;
    }
    return total * (1 + 1e-6);
}

/* Needs no grid. The density left of x1 = i m/8 counts with its mass, the rest by parts: the best of eight. */
double hs_laplace_step_far_upper(double m, double q, double a, double y, double log_m)
{
    double lo = log((1 - q) + q * exp(-m)), hi = log((1 - q) + q * exp(m)), best = 1;
    double p_lo = 0.5 * exp(a * lo - log_m), p_hi = 0.5 * exp(a * hi - m - log_m), r_hi = p_hi / (2 * q * exp(m - hi));
    int i;
    for (i = 0; i < 8; i++) {
        double x = i * m / 8, l = log((1 - q) + q * exp(2 * x - m)), left, r;
        r = 0.5 * exp(a * l - x - log_m) / (2 * q * exp(2 * x - m - l));
        left = -0.5 * expm1(-x) * exp(a * (a > 0 ? l : lo) - log_m);
        best = fmin(best, left + 2 * (r + r_hi) / y); /* [theory: law.laplace-far] */
    }
    return fmin(1, (p_lo + p_hi + fmin(fmax(1 - p_lo - p_hi, 0) + 1e-9, best)) * (1 + 1e-9));
}

double hs_opened_quadrature_upper(hs_opened *O, double y)
{
    double x = O->kind == HS_LAW_NORMAL ? hs_grid_quadrature_upper(&O->G, O->a, y)
                                        : hs_laplace_step_quadrature_upper(O->m, O->q, O->a, y, O->log_m, O->n_gl);
    return 1.01 * (x + O->level); /* 1.01: errors are relative to the grid's own M, known to 1e-3 where this is used */
}

double hs_opened_far_upper(hs_opened *O, double y)
{
    if (O->kind == HS_LAW_LAPLACE)
        return fmin(1, hs_laplace_step_far_upper(O->m, O->q, O->a, y, O->log_m) * (1 + O->level));
    return fmin(1, hs_grid_far_upper(&O->G, O->a, y) + 1.01 * O->level);
}
