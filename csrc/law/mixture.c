/* mixture.c - the transform of one step that adds Gaussian noise to a random shift: a trapezoid rule over the noise.
 *
 * Symbols. R(x) = sum_i w_i e^{s_i x - s_i^2/2}, w_i > 0 of sum 1, 0 <= s_i <= s, x ~ N(0, 1) under den of REMOVE;
 *   l = log R. REMOVE: loss l, M(z) = E R^a, a = 1 + z; ADD: loss -l, a = -z. Nodes x_j = x_0 + j h, both dyadic; an
 *   inner strip |Im x| <= d, b = s d < pi/2. In hs_law: m is s, panels h, q x_0, flat the largest error of a loss.
 *
 * Error claims. Points: log1p(sum w_i (e^{..} - 1)), the exponentials by at most 16 products from one; dl, dp follow
 *   at walk_to. Quadrature, ends, decay beyond a frequency, variance: [theory: law.mixture]; what frequencies cost in
 *   the strip, and nodes that are left out on the right: [theory: law.mixture-turn].
 *
 * What it does not do: shifts of both signs; s above about 10, where no strip is wide enough to be of use.
 */
#include "law/law.h"

#define PRODUCTS 16 /* from one exponential to the next */
#define WIDEST 1.5  /* of b = s d: below pi/2 */
#define DEEPEST 9.0 /* of d: e^{d^2/2} costs more than a higher strip gains */

/* The strip of the bounds that know how fast R turns, and what slopes are multiplied by there. */
static double strip_of(double s) { return fmin(WIDEST / s, DEEPEST); }
static double steeper_of(double s) { return 1 / cos(0.5 * s * strip_of(s)); }

/* One node after the other: place, l with its error, slope of l. */
typedef struct {
    double T[HS_SHIFTS_MAX], fall[HS_SHIFTS_MAX], top;
    double x, l, dl, slope;
} mixture_walk;

static void walk_open(const hs_mixture *g, mixture_walk *W)
{
    int i;
    for (W->top = 0, i = 0; i < g->n; i++) {
        W->top = fmax(W->top, g->shift[i]);
        W->fall[i] = exp(g->shift[i] * g->h);
    }
}

/* Node j, the one after that of the last call. With T_i within tau = 3u s(|x| + s) + (3 PRODUCTS + 4)u of itself,
 * weights within (5 n_shifts + 4)u and their sum n_shifts u more, U = sum w_i (T_i - 1) is within
 * sum w_i (T_i + 1)(tau + (6 n_shifts + 8)u). */
static void walk_to(const hs_mixture *g, int64_t j, mixture_walk *W)
{
    double x = g->first + (double)j * g->h, sum = 0, size = 0, rise = 0;
    double lost = HS_U * (3 * W->top * (fabs(x) + W->top) + 3 * PRODUCTS + 12 + 6 * g->n);
    int i;
    if (j % PRODUCTS == 0)
        for (i = 0; i < g->n; i++) W->T[i] = exp(g->shift[i] * (x - 0.5 * g->shift[i]));
    for (i = 0; i < g->n; i++) {
        if (g->shift[i] > 0) {
            double part = g->weight[i] * W->T[i];
            sum += g->weight[i] * (W->T[i] - 1);
            size += part + g->weight[i];
            rise += part * g->shift[i];
        }
        W->T[i] *= W->fall[i];
    }
    W->x = x;
    W->l = log1p(sum);
    W->dl = sum > -1 ? lost * size / (1 + sum) + 3 * HS_U * fabs(W->l) : HUGE_VAL;
    W->slope = rise / (1 + sum);
}

/* Logs of what cells and nodes beyond the last point hold at most, for powers 0 and `reach`, at frequencies 0 and
 * `turn` [theory: law.mixture-turn]. */
static void beyond_points(const hs_mixture *g, mixture_walk *W, double *l, double *lp, double *dl, double *dp)
{
    double last = W->l, slope = W->slope, before = W->x, d = strip_of(W->top);
    double held[2] = {-HUGE_VAL, -HUGE_VAL}, turned[2] = {-HUGE_VAL, -HUGE_VAL};
    double fall = 0;
    int64_t j;
    int i;
    for (j = g->nodes; j < g->nodes + g->beyond; j++) {
        walk_to(g, j, W);
        if (!(W->l + W->dl < 600) && W->x >= W->top) { /* exponentials may overflow: R is at most the largest term's */
            W->l = W->top * (W->x - 0.5 * W->top) * (1 + 8 * HS_U);
            W->dl = 1e-9;
        }
        fall = (before - (g->reach + 2) * W->top) * g->h;
        for (i = 0; i < 2; i++) {
            double at = log(g->h) - HS_LOG_SQRT_2PI - 0.5 * before * before + i * g->reach * (W->l + W->dl);
            double turn = g->turn * fmin(d * W->slope * steeper_of(W->top), W->top * d);
            at += 2 * log1p(W->l - last) + 1e-6;
            if (j + 1 == g->nodes + g->beyond) { /* all further ones */
                at -= log(-expm1(-fall));
                turn = g->turn * W->top * d;
            }
            held[i] = hs_log_add(held[i], at);
            turned[i] = hs_log_add(turned[i], at + turn);
        }
        before = W->x;
    }
    if (!(g->first + (double)(g->nodes - 1) * g->h >= 0 && fall > 0 && last < 600 && W->l < 1e300))
        held[0] = held[1] = turned[0] = turned[1] = HUGE_VAL;
    l[0] = g->reach;
    lp[0] = held[0];
    dl[0] = held[1];
    dp[0] = slope;
    l[1] = g->turn;
    lp[1] = turned[0];
    dl[1] = turned[1];
    dp[1] = 0;
}

/* Points of one step at its nodes, and the two entries after them. */
void hs_mixture_points(const hs_mixture *g, int add, double *l, double *lp, double *dl, double *dp)
{
    mixture_walk W;
    int64_t j;
    walk_open(g, &W);
    for (j = 0; j < g->nodes; j++) {
        double mass;
        walk_to(g, j, &W);
        l[j] = add ? -W.l : W.l;
        dl[j] = W.dl;
        mass = log(g->h) - HS_LOG_SQRT_2PI - 0.5 * W.x * W.x;
        lp[j] = add ? mass : mass + W.l;
        dp[j] = HS_U * (6 + W.x * W.x + 2 * fabs(mass) + 2 * fabs(lp[j])) + (add ? 0 : dl[j]);
    }
    beyond_points(g, &W, l + j, lp + j, dl + j, dp + j);
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

/* What cells and nodes beyond the last point add at power a, over e^log_m: lost holds the logs at powers 0 and `reach`,
 * between which they are convex. */
static double further_upper(const hs_law *w, double a, const double *lost, double log_m)
{
    int64_t e = w->n - 1;
    double last = (w->add ? -w->l[e] : w->l[e]) - w->dl[e], part = a / w->lambda[0];
    if (!(a <= w->lambda[0])) return HUGE_VAL;
    return exp(fmin((a < 0 ? lost[0] + a * last : lost[0] + part * (lost[1] - lost[0])) - log_m, 700));
}

/* Nodes left of the first point under the tilt t, over e^log_m, each weighted by half its distance in nats. */
static double left_upper(const hs_law *w, double t, double log_m)
{
    double a = mixture_power(w, t), h = w->panels, slope = fabs(w->l[1] - w->l[0]) / h + (w->dl[0] + w->dl[1]) / h;
    double left = -w->q - fmax(-a, 0) * slope, low = w->lp[0] + t * w->l[0] - log_m;
    if (!(left > fmax(1, w->m))) return HUGE_VAL;
    return exp(fmin(low, 700)) / expm1(0.5 * left * h) * (1 + 1e-6);
}

static double ends_of(const hs_law *w, double t, double log_m)
{ return left_upper(w, t, log_m) + further_upper(w, mixture_power(w, t), w->lost, log_m); }

/* Log of E e^{y theta} under the tilted law at the frequency y = lambda[1], theta the most that R turns in the strip
 * [theory: law.mixture-turn]. */
void hs_mixture_tilt(hs_law *w)
{
    double a = mixture_power(w, w->c), h = w->panels, d = strip_of(w->m);
    double before = w->lp[0] + w->c * w->l[0] - w->log_m, y = w->lambda[1];
    double total = 0, first = 0, most = 0;
    int64_t j;
    for (j = 1; j < w->n; j++) {
        double now = w->lp[j] + w->c * w->l[j] - w->log_m,
               behind = fabs(w->l[j] - w->l[j - 1]) + w->dl[j] + w->dl[j - 1];
        double slope = j + 1 < w->n ? (fabs(w->l[j + 1] - w->l[j]) + w->dl[j + 1] + w->dl[j]) / h : w->level_f[0];
        double turn = y * fmin(d * slope * steeper_of(w->m), w->m * d);
        double at = fmax(before, now) + 0.125 * h * h + fmax(-a, 0) * behind + turn;
        if (j == 1) first = turn;
        most = fmax(most, at);
        total += exp(fmin(at, 700));
        before = now;
    }
    total +=
        (exp(fmin(w->lp[0] + w->c * w->l[0] - w->log_m, 700)) + left_upper(w, w->c, w->log_m)) * exp(fmin(first, 700));
    total += further_upper(w, a, w->mass, w->log_m);
    w->rho[0] = most < 700 && first < 300 && total < 1e300 ? log(1.2 * total) : HUGE_VAL;
}

/* Error of the rule over all nodes for M(t + iy'), |y'| <= y, over M(t): the best of a few strips, and at the tilt of
 * the line the one that knows how fast R turns. */
static double rule_upper(const hs_law *w, double t, double y)
{
    double a = mixture_power(w, t), h = w->panels,
           widest = fmin(WIDEST / w->m, fmax(2 * HS_PI / h - y * w->m, 1e-3 * h));
    double best = HUGE_VAL, d = strip_of(w->m), turns;
    int i;
    for (i = 1; i <= 8; i++) {
        double at = widest * i / 8;
        turns = 2 * HS_PI * at / h;
        best = fmin(best, path_log(w, a, at) + y * w->m * at - turns - log(-expm1(-turns)));
    }
    if (y > 0 && t == w->c && w->rho[0] < HUGE_VAL) {
        double grown = y <= w->lambda[1] ? y / w->lambda[1] * w->rho[0] : w->rho[0] + (y - w->lambda[1]) * w->m * d;
        turns = 2 * HS_PI * d / h;
        best = fmin(best, path_log(w, a, d) + fmax(grown, 0) - turns - log(-expm1(-turns)));
    }
    return 2 * exp(fmin(best, 700)) * (1 + 1e-9);
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
