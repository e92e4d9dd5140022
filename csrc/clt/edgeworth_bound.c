/* edgeworth_bound.c - what the finite-sample constants of the Edgeworth expansion need of one step: its moments,
 * absolute ones among them, with proved errors, and the largest modulus of its characteristic function away from 0.
 *
 * Symbols. L = log(1+U) as in edgeworth.c, law A (no record) and law B = (1+U) A, phi(y) = E e^{iyL}, sd^2 = Var L. s:
 *   coordinate of the integral, v = alpha s + const, weight W: Gaussian s = g, alpha = m, W = w(g); Laplace s = x in
 *   (0, m), alpha = 2, W = e^{-x}/2, and two atoms. r = q e^v/(1+U) = dL/dv. c0 a number near the mean, X = L - c0.
 *   u = 2^-53.
 *
 * Formulas. E_A L = E_A (L - U) and E_B L = E_A ((1+U) L - U) [theory: edgeworth.moments-form]. E X^n and E |X|^n, n <=
 *   4, moved to the mean afterwards. All by Gauss-Legendre panels (n_gl nodes, half-length s0 with alpha s0 <= 1/2,
 *   s0 <= 1/2), some of which end where X = 0, so that |X| is analytic on each. |phi| between two points and beyond the
 *   last: [theory: edgeworth.modulus] and the far bounds of transform.c and laplace_step.c.
 *
 * Error claims, in the result:
 *   quadrature, range, zero of X   [theory: edgeworth.moments, law.gauss-panels].
 *   rounding    of v, of L and L - U through v (dL = r dv, d(L - U) = -r U dv, d((1+U) L - U) = q e^v L dv) and on
 *               their own, of weights, of sums; nodes of the rule are right to 2u, weights to 16u. libm within 2u.
 *               First order in u.
 *   hs_edgeworth_modulus_upper: the grid's quadrature and rounding errors (transform.c, laplace_step.c) are added at
 *   every point.
 *
 * What it does not do: more than one step; q = 1 of the Gaussian mechanism in the moments (closed forms, given by the
 *   caller); a sampled Gaussian step with m > 20, where e^v leaves the range of a double.
 */
#include "law/laplace_step.h"

#define MEAN 0
#define RHO 6.43834  /* below pi + sqrt(1 + pi^2) = 6.438499 */
#define AXIS 3.29692 /* above sqrt(1 + pi^2) = 3.296908 */
#define TURN 2.22145 /* above (pi/2)/cos(pi/4) = 2.221441 */
#define COUNT HS_EDGEWORTH_BOUNDED
static const int POWER[COUNT] = {1, 2, 3, 4, 1, 3}; /* mean; X^2, X^3, X^4; |X|, |X|^3 */

typedef struct {
    int kind, which, n;
    double m, q, c0;
    double span, side, nats; /* nats: what lies outside the range is e^-nats (qm)^4 */
    const double *x, *w;
    double sum[COUNT], err[COUNT];
} bounded;

static double small_power(double x, int n) { return n == 1 ? x : n == 2 ? x * x : n == 3 ? x * x * x : x * x * x * x; }

static double loss(double v, double q, double U) { return fabs(U) < 0.5 ? log1p(U) : log((1 - q) + q * exp(v)); }

/* The integrands at v, known to dv, with weight W known to rel; `side`: the sign of X, 0 to take that of X itself. */
static void add_point(bounded *S, double v, double dv, double W, double rel)
{
    double q = S->q, U = q * expm1(v), one = (1 - q) + q * exp(v), r = q * exp(v) / one;
    double l = loss(v, q, U), x = l - S->c0, lm, el;
    double F, dF;
    double dl = r * dv + 14 * HS_U * fabs(l), dx = dl + HS_U * fabs(x), ax = S->side != 0 ? S->side * x : fabs(x);
    int i, near = fabs(U) < 0.1;
    rel += 6 * HS_U; /* the weight's own 2u, and four products */
    lm = near ? hs_log1pmx_small(U) : l - U;
    el = near ? HS_U * (3 * U * U / one + 3 * fabs(lm)) : HS_U * (14 * fabs(l) + 4 * fabs(U));
    F = S->which ? U * l + lm : lm; /* [theory: edgeworth.moments-form] */
    dF = el + dv * (S->which ? q * exp(v) * fabs(l) : r * fabs(U)) + (S->which ? 20 * HS_U * fabs(U * l) : 0);
    S->sum[MEAN] += W * F;
    S->err[MEAN] += W * (rel * fabs(F) + dF);
    if (S->which) {
        W *= one;
        rel += r * dv + 6 * HS_U;
    }
    for (i = 1; i < COUNT; i++) {
        int n = POWER[i];
        double f = small_power(i < 4 ? x : ax, n);
        S->sum[i] += W * f;
        S->err[i] += W * (rel * fabs(f) + n * dx * (n > 1 ? small_power(fabs(x) + dx, n - 1) : 1));
    }
}

/* The quadrature errors of a panel of half-length s0 whose centre lies at v, smallest |s| (Laplace: s) on the
 * ellipse `s`. */
static void add_quadrature(bounded *S, double v, double reach, double s, double s0)
{
    double q = S->q, lo = v - reach, hi = v + reach, top = (1 - q) + q * exp(hi);
    double r = q * exp(hi) / top, W, F, X;
    double l, z = q * (exp(hi) + 1);
    /* [theory: edgeworth.moments, law.gauss-panels] */
    double unit = 64.0 / 15 * s0 * pow(RHO, -2.0 * S->n) / (1 - 1 / (RHO * RHO)) * (1 + 1e-9);
    int i;
    W = S->kind == HS_LAW_LAPLACE ? 0.5 * exp(-s) : 0.3989423 * exp(-0.5 * s * s + 0.5 * HS_PI * HS_PI * s0 * s0);
    l = fmax(fabs(log((1 - q) + q * exp(lo))), fabs(log(top))) + TURN * r;
    F = z < 0.5 ? z * z : (S->which ? top : 1) * l + z;
    S->err[MEAN] += unit * W * F;
    X = l + fabs(S->c0);
    for (i = 1; i < COUNT; i++) S->err[i] += unit * W * (S->which ? top : 1) * small_power(X, POWER[i]);
}

/* Panels on s from lo to hi; returns how many. */
static int add_panels(bounded *S, double lo, double hi)
{
    double m = S->m, alpha = S->kind == HS_LAW_LAPLACE ? 2 : m, zero = S->kind == HS_LAW_LAPLACE ? -m : -0.5 * m * m;
    double most = fmin(1, 1 / alpha), s0;
    int panels = hi > lo ? (int)ceil((hi - lo) / most) : 0, i, j;
    for (i = 0; i < panels; i++) {
        double s, c, near, before[COUNT];
        memcpy(before, S->sum, sizeof before);
        memset(S->sum, 0, sizeof before); /* a sum within, a sum over panels */
        s0 = 0.5 * (hi - lo) / panels;
        c = lo + (2 * i + 1) * s0;
        near = fabs(c) - AXIS * s0;
        add_quadrature(S, alpha * c + zero, alpha * AXIS * s0,
                       S->kind == HS_LAW_LAPLACE ? c - AXIS * s0 : fmax(0, near), s0);
        for (j = 0; j < S->n; j++) {
            s = c + S->x[j] * s0;
            if (S->kind == HS_LAW_LAPLACE)
                add_point(S, 2 * s - m, 16 * HS_U * m, s0 * S->w[j] * 0.5 * exp(-s), HS_U * (30 + 8 * m));
            else
                add_point(S, m * s - 0.5 * m * m, HS_U * m * (6 * S->span + 3 * fabs(s) + 3 * m),
                          s0 * S->w[j] * HS_NORMAL_PEAK * exp(-0.5 * s * s),
                          HS_U * (30 + 2 * s * s + 6 * fabs(s) * S->span));
        }
        for (j = 0; j < COUNT; j++) S->sum[j] += before[j];
    }
    return panels;
}

/* What |X| and |X|^3 miss where panels end at v instead of the zero of X [theory: edgeworth.moments]. */
static void add_zero(bounded *S, double v)
{
    double m = S->m, q = S->q, r = fmin(1, q * exp(v) / ((1 - q) + q * exp(v)));
    double eta = fabs(loss(v, q, q * expm1(v)) - S->c0) + 32 * HS_U * (fabs(S->c0) + r * (1 + m) * (1 + m + S->span));
    S->err[4] += 2 * eta;
    S->err[5] += 2 * eta * eta * eta;
}

/* What a Gaussian step has beyond R standard deviations of its range, whose largest v is `high`
 * [theory: edgeworth.moments]. */
static void add_outside(bounded *S, double R, double high)
{
    double q = S->q, out = 2 * exp(-0.5 * R * R) / R, X = 2.22 * S->m / R;
    int i;
    X += fmax(fabs(log1p(-q)), fabs(loss(high, q, q * expm1(high)))) + fabs(S->c0);
    S->err[MEAN] += out * (X + 2);
    for (i = 1; i < COUNT; i++) S->err[i] += out * small_power(X, POWER[i]);
}

/* E X^n and the mean of one law, errors included: all but the move to the mean. */
static void integrate(bounded *S)
{
    double m = S->m, q = S->q, root = log1p(fmax(expm1(S->c0) / q, -1 + 1e-300));
    double lo, hi, at, R = 0;
    int i, panels;
    if (S->kind == HS_LAW_NORMAL) {
        R = sqrt(2 * (S->nats - 4 * log(q * fmin(m, 1))));
        lo = -R;
        hi = m + R;
        at = root / m + 0.5 * m;
    } else {
        lo = 0;
        hi = m;
        at = 0.5 * (root + m);
    }
    at = fmin(fmax(at, lo), hi);
    S->span = hi - lo;
    S->side = -1;
    panels = add_panels(S, lo, at);
    S->side = 1;
    panels += add_panels(S, at, hi);
    for (i = 0; i < COUNT; i++) S->err[i] += (S->n + panels + 8) * HS_U * (i == 2 ? S->sum[5] : fabs(S->sum[i]));
    S->side = 0;
    if (S->kind == HS_LAW_LAPLACE) {
        add_point(S, -m, 0, 0.5, 0);
        add_point(S, m, 0, 0.5 * exp(-m), 0);
    }
    add_zero(S, S->kind == HS_LAW_LAPLACE ? 2 * at - m : m * at - 0.5 * m * m);
    if (S->kind == HS_LAW_NORMAL) add_outside(S, R, m * hi - 0.5 * m * m);
}

/* Mean, E d^2, E d^3, E d^4, E|d|, E|d|^3 of the loss about its mean under law A (which = 0) or B, then bounds of
 * their errors. */
int hs_edgeworth_bounded(int kind, double m, double q, int which, const hs_rule *rule, double *out)
{
    double a[5], b[5], eta, *v = out;
    double *e = out + COUNT, s2, s3, a1;
    bounded S;
    int i, st;
    if ((kind == HS_LAW_NORMAL && (q == 1 || m > HS_EDGEWORTH_M_MAX)) || (which != 0 && which != 1) || rule->n < 2)
        return HS_BAD_ARGUMENT;
    if ((st = hs_edgeworth_moments(kind, m, q, rule, a, b))) return st;
    memset(&S, 0, sizeof S);
    S.kind = kind;
    S.which = which;
    S.m = m;
    S.q = q;
    S.c0 = which ? b[0] : a[0];
    S.x = rule->x;
    S.w = rule->w;
    S.n = rule->n;
    S.nats = 45;
    integrate(&S);
    for (i = 0; i < COUNT; i++) {
        v[i] = S.sum[i];
        e[i] = S.err[i] * (1 + 1e-8);
    }
    eta = hs_up(fabs(v[MEAN] - S.c0)) + e[MEAN]; /* the mean is within eta of c0 */
    s2 = v[1] + e[1];
    s3 = fabs(v[2]) + e[2];
    a1 = v[4] + e[4];
    e[1] += eta * eta;
    e[2] += 3 * eta * s2 + 2 * eta * eta * eta;
    e[3] += 4 * eta * s3 + 6 * eta * eta * s2 + 3 * eta * eta * eta * eta;
    e[4] += eta;
    e[5] += 3 * eta * s2 + 3 * eta * eta * a1 + eta * eta * eta;
    return HS_OK;
}

/* One step on a grid for phi at exponent a = 0 or 1 and frequencies of a few standard deviations; *sd is that of the
 * loss. The mesh is no finer than fits: the bounds tell what a coarse one costs. A power of two keeps the nodes
 * exact. */
static int open_modulus(const hs_rule *rule, double *work, hs_opened *O, double *sd)
{
    double m = O->m, q = O->q, a = O->a;
    hs_moments mo;
    int st, strip;
    if (O->kind == HS_LAW_NORMAL) {
        double var = hs_cgf_estimate(m, q, a).K2;
        double h = hs_grid_choose_h(m, q, a, 4 / sqrt(var), 36, 0.15 / fmax(m, 1), &strip);
        h = fmax(h, ldexp(1, (int)ceil(log2((m + 22) / (HS_INNER_MAX - 24)))));
        st = hs_grid_build(&O->G, m, q, h, -10.5, m + 10.5, work);
    } else st = hs_laplace_step_grid(&O->G, m, q, rule, work);
    if (st) return st;
    hs_grid_moments(&O->G, a, &mo);
    hs_grid_weights(&O->G, a, mo.log_m, &O->c1, &O->c2);
    O->n_gl = rule->n;
    O->log_m = mo.log_m;
    O->level = O->kind == HS_LAW_NORMAL
                   ? hs_grid_quadrature_upper(&O->G, a, 0) + 2 * hs_grid_ends_upper(&O->G, a, mo.log_m)
                   : hs_laplace_step_quadrature_upper(m, q, a, 0, mo.log_m, rule->n);
    *sd = sqrt(mo.var);
    return O->level < 1e-3 ? HS_OK : HS_TOO_WIDE;
}

/* A bound of |phi(y)|. */
static double modulus_at_upper(hs_opened *O, double y)
{
    double zr, zi;
    O->G.strip = -1;
    hs_grid_phase(&O->G, y, &zr, &zi);
    return fmin(1, hs_up(hypot(1 + zr, zi) + hs_opened_quadrature_upper(O, y) + y * (O->c1 + 64 * O->c2)));
}

/* sup |phi(y)| over y0 <= y <= y1 under law A (which = 0) or B. At most 4,000 points, of spacing 0.002/sd up to 1/sd,
 * 0.01/sd up to 3/sd, then 0.05/sd. */
int hs_edgeworth_modulus_upper(int kind, double m, double q, int which, const hs_rule *rule, double y0, double y1,
                               const hs_lent *lent, double *modulus)
{
    hs_opened O = {.kind = kind, .m = m, .q = q, .a = which};
    double best = 0, before = -1, y = y0, s = 0;
    double sd;
    int st, j;
    if (lent->n_work < HS_GRID_WORK) return HS_SCRATCH;
    if (!(y0 > 0 && y1 >= y0) || (kind == HS_LAW_NORMAL && q == 1)) return HS_BAD_ARGUMENT;
    if ((st = open_modulus(rule, lent->work, &O, &sd))) return st;
    for (j = 1;; j++) {
        double at = modulus_at_upper(&O, y), far = hs_opened_far_upper(&O, y);
        if (before >= 0) best = fmax(best, 0.5 * (at + before + s * sd * (1 + 1e-6))); /* [theory: edgeworth.modulus] */
        if (y >= y1 || far <= fmax(best, at) || j == 4000) {
            best = fmax(best, y >= y1 ? at : far);
            break;
        }
        before = at;
        s = (y * sd < 1 ? 0.002 : y * sd < 3 ? 0.01 : 0.05) / sd;
        if (y + s > y1) s = y1 - y;
        y = y + s > y ? y + s : y1;
    }
    *modulus = fmin(1, best * (1 + 1e-9));
    return HS_OK;
}
