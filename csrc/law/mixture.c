/* mixture.c - the transform of one step that adds Gaussian noise to a random shift: a trapezoid rule over the noise.
 *
 * Symbols. R(x) = sum_i w_i e^{s_i x - s_i^2/2}, w_i > 0 of sum 1, 0 <= s_i <= s, x ~ N(0, 1) under den of REMOVE.
 *   REMOVE: loss log R, M(z) = E R^a, a = 1 + z; ADD: loss -log R, a = -z. Nodes x_j = x_0 + j h, both dyadic; an
 *   inner strip |Im x| <= d, b = s d < pi/2. In hs_law: m is s, panels h, q x_0, flat the largest error of a loss.
 *
 * Error claims. Points: log1p(sum w_i (e^{..} - 1)), the exponentials by at most 16 products from one; dl, dp follow
 *   at hs_mixture_points. Quadrature, ends, decay beyond a frequency, variance: [theory: law.mixture].
 *
 * What it does not do: shifts of both signs; s above 4, where no strip is wide enough to be of use.
 */
#include "law/law.h"

#define PRODUCTS 16 /* from one exponential to the next */
#define WIDEST 1.5  /* of b = s d: below pi/2 */

/* Points of one step at n nodes. With T_i within tau = 3u s(|x| + s) + (3 PRODUCTS + 4)u of itself, weights within
 * (5 n_shifts + 4)u and their sum n_shifts u more, U = sum w_i (T_i - 1) is within
 * sum w_i (T_i + 1)(tau + (6 n_shifts + 8)u). */
void hs_mixture_points(const hs_mixture *g, int add, double *l, double *lp, double *dl, double *dp)
{
    double T[HS_SHIFTS_MAX], fall[HS_SHIFTS_MAX], top = 0;
    int64_t j;
    int i;
    for (i = 0; i < g->n; i++) {
        top = fmax(top, g->shift[i]);
        fall[i] = exp(g->shift[i] * g->h);
    }
    for (j = 0; j < g->nodes; j++) {
        double x = g->first + (double)j * g->h, sum = 0, size = 0;
        double lost = HS_U * (3 * top * (fabs(x) + top) + 3 * PRODUCTS + 12 + 6 * g->n), mass;
        if (j % PRODUCTS == 0)
            for (i = 0; i < g->n; i++) T[i] = exp(g->shift[i] * (x - 0.5 * g->shift[i]));
        for (i = 0; i < g->n; i++) {
            if (g->shift[i] > 0) {
                sum += g->weight[i] * (T[i] - 1);
                size += g->weight[i] * (T[i] + 1);
            }
            T[i] *= fall[i];
        }
        l[j] = log1p(sum);
        dl[j] = sum > -1 ? lost * size / (1 + sum) + 3 * HS_U * fabs(l[j]) : HUGE_VAL;
        mass = log(g->h) - HS_LOG_SQRT_2PI - 0.5 * x * x;
        lp[j] = add ? mass : mass + l[j];
        dp[j] = HS_U * (6 + x * x + 2 * fabs(mass) + 2 * fabs(lp[j])) + (add ? 0 : dl[j]);
        if (add) l[j] = -l[j];
    }
}

/* Sums of e^{lp + t l - top}, times 1, l and l^2. */
HS_CLONES static void plain_sums(const hs_law *w, double t, double top, double *out)
{
    const double *restrict l = w->l, *restrict lp = w->lp;
    double s0[8] = {0}, s1[8] = {0}, s2[8] = {0};
    int64_t j, whole = w->n / 8 * 8;
    int i;
    for (j = 0; j < whole; j += 8)
        for (i = 0; i < 8; i++) {
            double big = hs_exp(lp[j + i] + t * l[j + i] - top);
            s0[i] += big;
            s1[i] += big * l[j + i];
            s2[i] += big * l[j + i] * l[j + i];
        }
    for (; j < w->n; j++) {
        double big = hs_exp(lp[j] + t * l[j] - top);
        s0[0] += big;
        s1[0] += big * l[j];
        s2[0] += big * l[j] * l[j];
    }
    out[0] = hs_lanes(s0);
    out[1] = hs_lanes(s1);
    out[2] = hs_lanes(s2);
}

/* K, mean and variance of the points' own tilted law, of no known error: for placing. */
void hs_mixture_estimate(const hs_law *w, double t, hs_law_value *out)
{
    double top = -HUGE_VAL, s[3];
    int64_t j;
    for (j = 0; j < w->n; j++) top = fmax(top, w->lp[j] + t * w->l[j]);
    plain_sums(w, t, top, s);
    out->K = top + log(s[0]);
    out->mean = s[1] / s[0];
    out->var = fmax(s[2] / s[0] - out->mean * out->mean, 0);
    out->err = 0;
}

static double mixture_power(const hs_law *w, double t) { return w->add ? -t : 1 + t; }

/* Log of what a path at height d may add to the integral of |R^a| [theory: law.mixture]. */
static double path_log(const hs_law *w, double a, double d)
{ return 0.5 * d * d + (a < 0 ? a * log(cos(0.5 * w->m * d)) : 0); }

/* Error of the rule over all nodes for M(t + iy'), |y'| <= y, over M(t): the best of a few strips. */
static double rule_upper(const hs_law *w, double t, double y)
{
    double a = mixture_power(w, t), h = w->panels,
           widest = fmin(WIDEST / w->m, fmax(2 * HS_PI / h - y * w->m, 1e-3 * h));
    double best = HUGE_VAL;
    int i;
    for (i = 1; i <= 8; i++) {
        double d = widest * i / 8, turns = 2 * HS_PI * d / h;
        best = fmin(best, path_log(w, a, d) + y * w->m * d - turns - log(-expm1(-turns)));
    }
    return 2 * exp(fmin(best, 700)) * (1 + 1e-9);
}

/* Nodes beyond both ends under the tilt t, over e^log_m, each weighted by half its distance in nats. */
static double ends_of(const hs_law *w, double t, double log_m)
{
    double a = mixture_power(w, t), h = w->panels, first = w->q;
    double last = first + (double)(w->n - 1) * h, slope = fabs(w->l[1] - w->l[0]) / h + (w->dl[0] + w->dl[1]) / h;
    double left = -first - fmax(-a, 0) * slope, right = last - fmax(a, 0) * w->m;
    double low = w->lp[0] + t * w->l[0] - log_m, high = w->lp[w->n - 1] + t * w->l[w->n - 1] - log_m;
    if (!(fmin(left, right) > fmax(1, w->m))) return HUGE_VAL;
    return (exp(fmin(low, 700)) / expm1(0.5 * left * h) + exp(fmin(high, 700)) / expm1(0.5 * right * h)) * (1 + 1e-6);
}

/* What the points may be off by in M(t + iy'), |y'| <= y, over e^log_m = M(t); at y = 0 also in the two terms of the
 * second-order form that vanish exactly. */
double hs_mixture_missing_upper(const hs_law *w, double t, double y, double log_m)
{
    double out = rule_upper(w, t, y) + ends_of(w, t, log_m);
    if (y == 0)
        out += exp(-log_m) * (fabs(t) * (rule_upper(w, -1, 0) + ends_of(w, -1, 0)) +
                              (1 + fabs(t)) * (rule_upper(w, 0, 0) + ends_of(w, 0, 0)));
    return out;
}

/* At least |phi(y')| for all y' >= y: the path moved by eta to the side that damps [theory: law.mixture]. */
double hs_mixture_far_upper(const hs_law *w, double y)
{
    double h = w->panels, a = mixture_power(w, w->c), slope = 0, sum = w->r[0];
    double eta, rate, off = 2 * w->flat;
    int64_t j;
    for (j = 1; j < w->nr; j++) slope += w->r[j] * fabs(w->xr[j] - w->xr[j - 1]);
    eta = fmin(y * slope / h, 0.9 * WIDEST / w->m);
    rate = y * sin(w->m * eta) / w->m / h * (1 - 1e-9);
    for (j = 1; j < w->nr; j++) sum += w->r[j] * exp(-rate * fmax(fabs(w->xr[j] - w->xr[j - 1]) - off, 0));
    sum = sum * (1 + 1e-5) + rule_upper(w, w->c, 0) * 1.2 + w->quad;
    return fmin(1, exp(path_log(w, a, eta)) * sum * (1 + 1e-9));
}
