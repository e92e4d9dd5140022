/* bulk.c - the law of one sampled Gaussian step below a cut: B at real tilts, its moments, the error of its transform.
 *
 * Symbols. The cut x0 parts a step's outcomes: losses up to l0 are bulk, larger ones jumps. w the normal density, U =
 *   q (e^v - 1) at x, v = m x - m^2/2, L = log(1+U); B(z) = int_{x <= x0} w (1+U)^{1+z}; P, Q the masses of jumps under
 *   num and den; a = 1 + t, t >= 0.
 *
 * Formula. B and its derivative from what is left of second order in U [theory: small.bulk].
 *
 * Error terms.
 *   inner      Gauss-Legendre panels up to x0, 20 nodes each: ellipses of a few parameters [theory: law.gauss-panels,
 *              small.bulk], for B(t) and its moments, and for int w (1+U)^{a+iy} [theory: small.bulk-line].
 *   rounding   of nodes, moments and exponents [theory: rounding.first-order].
 *
 * What it does not do: negative tilts; ADD, whose losses are bounded.
 */
#include "law/bulk.h"
#include "clt/saddlepoint.h"
#include "law/law.h"

#define FAR_RIGHT 45.0 /* the panels end at m + FAR_RIGHT, beyond which lies e^-1000 */
#define FAR_ADD 40.0   /* of ADD there, beyond which lies e^-800 */
#define ELLIPSES 4
#define SLACK 1e-8 /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */
#define ORDER HS_BULK_ORDER
#define COLUMNS HS_BULK_COLUMNS

/* Parameters of the ellipses tried; a larger one serves a panel that is short beside 1/m. */
static const double ELLIPSE[ELLIPSES] = {4, 6, 9, 14};

/* Masses above the place x in units of e^log_unit: num, num - den, den. */
void hs_bulk_masses(const hs_bulk *J, double x, double *p, double *u, double *den, double *rel)
{
    double v = J->m * x - 0.5 * J->m * J->m, e0, e1;
    double r0 = hs_mills(x - J->m, &e0), r1 = hs_mills(x, &e1);
    double fall = exp(-v), z = x - J->m, unit = exp(log(J->q) - 0.5 * z * z - HS_LOG_SQRT_2PI - J->log_unit);
    *u = unit * (r0 - fall * r1);
    *den = unit * fall * r1 / J->q;
    *p = *u + *den;
    *rel = e0 + e1 + HS_U * (40 + 4 * fabs(v) + 4 * z * z);
}

double hs_bulk_place(const hs_bulk *J, double loss)
{ return (loss < 600 ? log1p(expm1(loss) / J->q) : loss - log(J->q)) / J->m + 0.5 * J->m; }

int hs_bulk_open(hs_bulk *J, double m, double q, double k, const hs_rule *rule, double *work)
{
    int add = J->add;
    memset(J, 0, sizeof(*J));
    J->add = add;
    J->m = m;
    J->q = q;
    J->k = k;
    J->left = 10;
    J->per = rule->n;
    J->node = rule->x;
    J->weight = rule->w;
    J->columns = work;
    J->mid = work + COLUMNS * HS_JUMPS_NODES;
    J->half = J->mid + HS_BULK_PANELS;
    return m > 0 && q > 0 && q < 0.9 && k >= 1 && k < 1e12 && rule->n == 20 ? HS_OK : HS_BAD_ARGUMENT;
}

/* Log of the error of Gauss-Legendre on one panel, of int w |(1+U)^{a+iy}| at its best ellipse [theory:
 * small.bulk-line]. */
static double panel_upper(const hs_bulk *J, double mid, double half, double a, double y)
{
    double best = HUGE_VAL;
    int e;
    for (e = 0; e < ELLIPSES; e++) {
        double rho = ELLIPSE[e], R = 0.5 * half * (rho + 1 / rho), b = 0.5 * half * (rho - 1 / rho), beta = J->m * b;
        double right = mid + R, left = mid - R, near = fmax(0, fmax(left, -right)), ev;
        double turn, log_most;
        if (!(beta <= 1)) break;
        ev = J->q * exp(J->m * right - 0.5 * J->m * J->m);
        turn = atan2(ev * sin(beta), 1 - J->q + ev * cos(beta));
        log_most = a > 0 ? log1p(ev - J->q) : log1p(J->q * (exp(J->m * left - 0.5 * J->m * J->m) * cos(beta) - 1));
        best = fmin(best, log(64.0 / 15 * half / (1 - 1 / (rho * rho))) - 2 * J->per * log(rho) +
                              0.5 * (b * b - near * near) - HS_LOG_SQRT_2PI + a * log_most + y * turn);
    }
    return best + SLACK * (1 + fabs(best));
}

/* int_{x < -J->left} w (1+U)^a at most, nothing of a cell of jumps: w alone where a > 0, else log-concave
 * [theory: small.bulk-line]. */
double hs_bulk_left_upper(const hs_bulk *J, double a)
{
    double c = J->left, U = J->q * expm1(-J->m * c - 0.5 * J->m * J->m), f = exp(-0.5 * c * c - HS_LOG_SQRT_2PI);
    double fall = c + fmin(a, 0) * J->m * (U + J->q) / (1 + U);
    if (c < 0) return 0;
    return fall > 0.1 ? f * exp(fmin(a, 0) * log1p(U)) / fall * (1 + SLACK) : HUGE_VAL;
}

/* An upper bound of the error of the sum over all panels of w (1+U)^{a+iy'}, |y'| <= y, and of what lies left of
 * them. */
double hs_bulk_phase_upper(const hs_bulk *J, double a, double y)
{
    double sum = hs_bulk_left_upper(J, a);
    int64_t p;
    for (p = 0; p < J->panels; p++) sum += exp(panel_upper(J, J->mid[p], J->half[p], a, y));
    return sum * (1 + SLACK);
}

/* Panels up to J->x0, their ends exact: as wide as the branch points allow, and where y > 0 halved until the transform
 * at a + iy is known to e^-target in each. */
static int panels(hs_bulk *J, double a, double y, double target)
{
    double base = ldexp(1, (int)floor(log2(fmin(0.5, 0.5 / J->m)))), n = ceil((J->x0 + J->left) / (2 * base)), half;
    double from = J->x0 - 2 * n * base;
    if (!(n <= HS_BULK_PANELS)) return HS_TOO_MANY_NODES;
    for (J->panels = 0; from < J->x0; from += 2 * half) {
        half = base;
        while (y > 0 && half > base / 64 &&
               (fmod(J->x0 - from, 2 * half) != 0 || panel_upper(J, from + half, half, a, y) > -target))
            half *= 0.5;
        if (J->panels == HS_BULK_PANELS) return HS_TOO_MANY_NODES;
        J->mid[J->panels] = from + half;
        J->half[J->panels++] = half;
    }
    return HS_OK;
}

/* What the nodes of the panels hold. */
static void fill_cells(hs_bulk *J)
{
    double *c = J->columns, v;
    int64_t p;
    int i;
    for (p = 0; p < J->panels; p++)
        for (i = 0; i < J->per; i++, c += COLUMNS) {
            double x = J->mid[p] + J->half[p] * J->node[i], dv = HS_U * J->m * (8 * fabs(x) + 4 + 5 * J->m), e;
            v = J->m * x - 0.5 * J->m * J->m;
            e = expm1(v);
            c[0] = J->half[p] * J->weight[i] * exp(-0.5 * x * x - HS_LOG_SQRT_2PI);
            c[1] = J->q * e;
            c[2] = log1p(c[1]);
            c[3] = fabs(c[1]) < 0.1 ? hs_log1pmx_small(c[1]) : c[2] - c[1];
            c[4] = J->q * (1 + e) * dv + 6 * HS_U * fabs(c[1]);
            c[5] = x;
        }
}

/* Panels and nodes of the outcomes from x to end, for frequencies up to y at the exponent a. Their ends are known to u,
 * which the errors of the nodes cover. */
int hs_bulk_cell(hs_bulk *J, double x, double end, double a, double y)
{
    double n, half;
    int64_t p;
    end = fmin(end, J->m + FAR_RIGHT);
    if (!(end > x)) return HS_OUT_OF_RANGE;
    for (n = ceil((end - x) / fmin(1, 1 / J->m));; n *= 2) {
        half = 0.5 * (end - x) / n;
        if (!(n <= HS_BULK_PANELS)) return HS_TOO_MANY_NODES;
        for (p = 0; p < (int64_t)n; p++) {
            J->mid[p] = x + half * (double)(2 * p + 1);
            J->half[p] = half;
        }
        for (p = 0; y > 0 && p < (int64_t)n; p++) {
            double mid = J->mid[p], v = J->m * mid - 0.5 * J->m * J->m;
            if (panel_upper(J, mid, half, a, y) > a * log1p(J->q * expm1(v)) - 0.5 * mid * mid - 34) break;
        }
        if (!(y > 0) || p == (int64_t)n) break;
    }
    J->panels = (int64_t)n;
    J->left = -x;
    J->x0 = end;
    J->l0 = log1p(J->q * expm1(J->m * end - 0.5 * J->m * J->m));
    fill_cells(J);
    return HS_OK;
}

/* Panels and nodes up to the cut at the loss l, for tilts about the exponent a and frequencies up to y; y = 0: for
 * small ones. ADD has no cut. */
int hs_bulk_cut(hs_bulk *J, double l, double a, double y)
{
    double v;
    int st;
    J->x0 = J->add ? FAR_ADD : ldexp(floor(ldexp(fmin(hs_bulk_place(J, l), J->m + FAR_RIGHT), 20)), -20);
    v = J->m * J->x0 - 0.5 * J->m * J->m;
    J->l0 = v < 600 ? log1p(J->q * expm1(v)) : v + log(J->q);
    J->log_unit = log(J->q) - 0.5 * (J->x0 - J->m) * (J->x0 - J->m) - HS_LOG_SQRT_2PI;
    hs_bulk_masses(J, J->x0, &J->p, &J->u, &J->q_den, &J->rel);
    if (!(J->x0 > -5 && J->rel < 1e-10 && J->l0 > 0)) return HS_TOO_MANY_NODES;
    if ((st = panels(J, a, y, 40 + log(J->k)))) return st;
    fill_cells(J);
    return HS_OK;
}

/* Error of Gauss-Legendre on the panel at x by the ellipse of rho: of B, returned, and added to out[n] of the first
 * `order` raw moments times B; infinite where the ellipse meets the branch points [theory: small.bulk]. */
static double panel_moments(const hs_bulk *J, double x, double half, double rho, double a, int order, double *out)
{
    double R = 0.5 * half * (rho + 1 / rho), b = 0.5 * half * (rho - 1 / rho), beta = J->m * b;
    double xl = x - R, xr = x + R, near = fmax(0, fmax(xl, -xr)), low = log1p(-J->q);
    double vl = J->m * xl - 0.5 * J->m * J->m, vr = J->m * xr - 0.5 * J->m * J->m;
    double U, top, big, least;
    double w, L, power;
    int n;
    if (!(beta <= 1)) return HUGE_VAL;
    U = J->q * (fmax(fabs(expm1(vl)), fabs(expm1(vr))) + exp(vr) * beta);
    top = fmax(0, log1p(J->q * expm1(vr)));
    least = a > 0 ? low : fmin(0, log1p(J->q * (exp(vl) * cos(beta) - 1)));
    big = exp((a - 2) * (a >= 2 ? top : least));
    L = fmin(U / (1 - J->q), fmax(-low, top) + beta);
    w = 64.0 / 15 * half * pow(rho, -2.0 * J->per) / (1 - 1 / (rho * rho));
    w *= exp(0.5 * (b * b - near * near) - HS_LOG_SQRT_2PI);
    if (order) out[1] += w * 0.5 * U * U * big * (a * (a - 1) * L + 2 * a - 1);
    for (power = w * exp(a * top) * L, n = 2; n <= order; n++) out[n] += power *= L;
    return w * 0.5 * a * (a - 1) * U * U * big;
}

/* Error of Gauss-Legendre over all panels and of what lies left of them, of B (out[0]) and of the first `order` raw
 * moments times B (out[n]) at the exponent a >= 1, or of B alone at a <= 0. */
static void quadrature(const hs_bulk *J, double a, int order, double *out)
{
    double c = J->left, far = exp(-0.5 * c * c - HS_LOG_SQRT_2PI), deep;
    int64_t i;
    int n, e;
    deep = fmin(J->q * J->m * (c + 0.5 * J->m) / (1 - J->q), -log1p(-J->q));
    for (n = 0; n <= order; n++) out[n] = far * pow(deep, n) / (c - n / c);
    out[0] = far * deep * deep / (c - 2 / c) * a * a / (1 - J->q);
    if (a < 0) out[0] = hs_bulk_left_upper(J, a) + (2 - a * J->q) * far / c;
    if (order) out[1] = far * deep * deep / (c - 2 / c) * (a * a * deep + 2 * a) / (1 - J->q);
    for (i = 0; i < J->panels; i++) {
        double best = HUGE_VAL;
        for (e = 0; e < (order ? 1 : ELLIPSES); e++)
            best = fmin(best, panel_moments(J, J->mid[i], J->half[i], ELLIPSE[e], a, order, out));
        out[0] += best;
    }
}

/* Sums over the nodes: of what B and its raw moments hold, of the moduli of that, and of its errors. */
typedef struct {
    double of[ORDER + 1], size[ORDER + 1], err[ORDER + 1];
} bulk_sums;

/* What one node, with the columns c, adds at the exponent a. */
static void add_node(const double *c, double a, int order, bulk_sums *S)
{
    double w = c[0], L = c[2], E = a * L, m1 = expm1(E);
    double h2 = hs_h2(E), x = c[5], rel = HS_U * (6 * x * x + 8 * fabs(x) + 24);
    double dL = c[4] / (1 + c[1]) + 2 * HS_U * fabs(L), power;
    int n;
    S->of[0] += w * (h2 + a * c[3]);
    S->err[0] += w * (fabs(a) * fabs((m1 + 1) / (1 + c[1]) - 1) * c[4] + (rel + 150 * HS_U) * (h2 + fabs(a * c[3])) +
                      6 * HS_U * fabs(E * m1));
    if (!order) return;
    S->of[1] += w * (L * m1 + c[3]);
    S->err[1] += w * (fabs((m1 + 1) / (1 + c[1]) * (E + 1) - 1) * c[4] + (rel + 150 * HS_U) * fabs(L * m1) +
                      (rel + 150 * HS_U) * fabs(c[3]) + 6 * HS_U * fabs(L) * (m1 + 1) * fabs(E));
    rel += a * dL + HS_U * (4 * fabs(E) + 30);
    for (power = w * (m1 + 1) * L, n = 2; n <= order; n++) {
        S->err[n] += fabs(power) * (n * dL + fabs(L) * rel);
        power *= L;
        S->of[n] += power;
        S->size[n] += fabs(power);
    }
}

/* The moments from the sums, what the panels miss of them, and the error `part` of B; false where they are not
 * known to 1e-3. */
static int set_moments(const hs_bulk *J, int order, bulk_sums *S, const double *lost, double part, hs_bulk_tilted *T)
{
    double scale = exp(J->log_unit);
    int n;
    T->wrong = 0;
    T->size[1] = 1.001 * sqrt(S->size[2] * exp(-T->log_b));
    for (n = 1; n <= order; n++) {
        T->moment[n] = S->of[n] * exp(-T->log_b);
        if (n > 1) T->size[n] = S->size[n] * exp(-T->log_b);
        S->err[n] += lost[n] * (n > 1) + part * (fabs(S->of[n]) + S->err[n] + S->size[n]);
        if (n > 1) T->wrong = fmax(T->wrong, S->err[n] / S->size[n] + T->err);
    }
    T->mean = T->moment[1] = (S->of[1] - scale * J->u) * exp(-T->log_b);
    T->mean_err = 1.2 * exp(-T->log_b) * (lost[1] + S->err[1] + scale * (3 * J->rel * J->p + 4 * HS_U * J->u)) +
                  fabs(T->mean) * (2 * T->err + 8 * HS_U);
    T->wrong = fmax(T->wrong, T->mean_err / T->size[1]);
    return T->wrong < 1e-3;
}

/* The bulk at the tilt t >= 0, with `order` raw moments, none for ADD; HS_OUT_OF_RANGE where B says nothing. */
int hs_bulk_at(const hs_bulk *J, double t, int order, hs_bulk_tilted *T)
{
    double a = hs_bulk_exponent(J, t), lost[ORDER + 1], scale = exp(J->log_unit);
    double part = HS_U * (double)(J->panels * J->per + 20), x = scale * (J->q_den + fabs(a) * J->u);
    bulk_sums S = {{0}, {0}, {0}};
    const double *c = J->columns;
    int64_t i;
    if (a * (a > 0 ? J->l0 : log1p(J->q * expm1(-J->m * J->left))) > 600) return HS_OUT_OF_RANGE;
    for (i = 0; i < J->panels * J->per; i++, c += COLUMNS) add_node(c, a, order, &S);
    quadrature(J, a, order, lost);
    T->log_b = log1p(S.of[0] - scale * J->q_den - a * scale * J->u);
    part = lost[0] + S.err[0] + part * (S.of[0] + S.err[0]) + (3 * J->rel + 8 * HS_U) * (x + scale * J->p * fabs(a));
    T->err = 1.2 * exp(-T->log_b) * part + 8 * HS_U * fabs(T->log_b);
    if (!(T->log_b > -0.6 && T->log_b < 600 && T->err < 0.1)) return HS_OUT_OF_RANGE;
    return !order || set_moments(J, order, &S, lost, part, T) ? HS_OK : HS_OUT_OF_RANGE;
}

/* Upper bound of the log of Pr[sum of n losses > s, all of the bulk] at the tilts J->tilt. */
double hs_bulk_above(const hs_bulk *J, double n, double s)
{
    double best = 0;
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) best = fmin(best, n * J->log_b[i] - J->tilt[i] * s);
    return best + SLACK * fabs(best);
}
