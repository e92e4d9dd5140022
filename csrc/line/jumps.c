/* jumps.c - certified delta(eps) and eps(delta) where one rare large loss makes nearly all of delta: k runs of one
 * sampled Gaussian step, REMOVE, eps > 0.
 *
 * Symbols. The cut x0 parts a step's outcomes: losses up to l0 are bulk, larger ones jumps. w the normal density, U =
 *   q (e^v - 1) at x, v = m x - m^2/2, L = log(1+U); B(t) = int_{x <= x0} w (1+U)^{1+t}; R the sum of k-1 losses, all
 *   of the bulk; F the pay-off E (1 - e^{x-L})_+ of one step, f of all its losses and F_1 of its jumps alone; P, Q the
 *   masses of jumps under num and den. theta, mu, x = eps - mu: a tilt, and about the mean of R under it.
 *
 * Formula. delta = sum_j C(k,j) H_j over the number j of jumps [theory: small.numbers]. H_1 = E F_1(eps - R), and with
 *   h(d) = e^{-theta d} f(x - d),   E f(eps - R) = B(theta)^{k-1} e^{-theta mu} E_theta h(R - mu):
 *   Taylor's polynomial of h in the central moments of R, which follow from the cumulants of one tilted loss.
 *
 * Error terms, relative to k B(theta)^{k-1} e^{-theta mu} f(x):
 *   jumps       H_0 by Chernoff; H_2 by sums over cells; all others by C(k,3) P^3: upper end alone.
 *   truncation  (sup |h| + sum |h_n| rho^n) E|R - mu|^N / rho^N, and what lies beyond rho [theory: small.expansion];
 *               sup |h| on the disc by |f(x+iy)| <= e^{b^2/2} f(x), b = arg(e^{x+iy} - 1 + q)/m
 *               [theory: small.complex].
 *   inner       Gauss-Legendre panels up to x0, 20 nodes each: ellipses of parameter 4 [theory: law.gauss-panels,
 *               small.bulk].
 *   rounding    of nodes, moments, coefficients and exponents [theory: rounding.first-order].
 *
 * What it does not do: ADD, whose losses are bounded; several distinct steps; bulks too wide for the expansion.
 */
#include "clt/saddlepoint.h"
#include "line/counts.h"
#include "tuning.h"

#define ORDER HS_BULK_ORDER
#define LAYERS 24  /* of a sum beyond the expansion */
#define CELLS 32   /* of the first of two jumps */
#define SLACK 1e-8 /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */

/* log f(x) for x > 0; *theta: -f'/f; *rel: bound of the relative error of f. f = q w(g-m) (R(g-m) - R(g)). */
static double log_payoff(const hs_bulk *J, double x, double *theta, double *rel)
{
    double v = log1p(expm1(x) / J->q), g = v / J->m + 0.5 * J->m, e0, e1;
    double r0 = hs_mills(g - J->m, &e0), r1 = hs_mills(g, &e1), gap = r0 - r1;
    double steep = r1 / gap, value;
    if (!(gap > 0)) {
        *theta = *rel = HUGE_VAL;
        return HUGE_VAL;
    }
    value = log(J->q) - 0.5 * (g - J->m) * (g - J->m) - HS_LOG_SQRT_2PI + log(gap);
    *theta = exp(x) / (J->q + expm1(x)) * steep;
    *rel = HS_U * steep * (6 + 3 * v + 3 * J->m * g) + (e0 * r0 + e1 * r1) / gap +
           HS_U * (3 * (g - J->m) * (g - J->m) + 20 + 3 * fabs(value));
    return value;
}

/* An upper bound of log F_1(x). */
static double log_jump(const hs_bulk *J, double x)
{
    double most = J->log_unit + log(J->p), theta, rel, u;
    if (x >= J->l0 * (1 + 1e-9)) return fmin(most, log_payoff(J, x, &theta, &rel));
    u = J->u - expm1(x) * J->q_den + 4 * J->rel * J->p;
    return u > 0 ? fmin(most, J->log_unit + log(u)) : -HUGE_VAL;
}

static double choose_cut(int n, int j) { return j == 0 ? 1 : choose_cut(n - 1, j - 1) * n / j; }

/* Moments about `mean` of the sum of r losses: out, and bounds of their errors. wide[n]: what errors multiply, the same
 * polynomial of sizes, which is centred[n] for losses whose mean is known. */
static void moments_of_sum(const hs_bulk_tilted *T, double r, double off, double *out, double *err)
{
    double cum[ORDER + 1], big[ORDER + 1], wide[ORDER + 1] = {1}, centred[ORDER + 1] = {1};
    int i, n;
    for (n = 1; n <= ORDER; n++) {
        cum[n] = T->moment[n];
        big[n] = T->size[n];
        for (i = 1; i < n; i++) {
            cum[n] -= choose_cut(n - 1, i - 1) * cum[i] * T->moment[n - i];
            big[n] += choose_cut(n - 1, i - 1) * big[i] * T->size[n - i];
        }
    }
    for (out[0] = 1, err[0] = 0, n = 1; n <= ORDER; n++) {
        out[n] = wide[n] = centred[n] = 0;
        for (i = 1; i <= n; i++) {
            double c = choose_cut(n - 1, i - 1);
            out[n] += i > 1 ? c * r * cum[i] * out[n - i] : 0;
            centred[n] += i > 1 ? c * r * big[i] * centred[n - i] : 0;
            wide[n] += c * (i > 1 ? r * big[i] : off) * wide[n - i];
        }
        err[n] = 1.01 * n * (T->wrong + 200 * HS_U) * wide[n] + (wide[n] - centred[n]) + 1e-14 * wide[n];
    }
}

/* Coefficients of a function about x, and of a majorant that errors multiply. */
typedef struct {
    double of[ORDER + 1], most[ORDER + 1];
} series;

/* Coefficient n >= 1 of p where p' = -s q. */
static void less_product(const series *s, const series *q, int n, series *p)
{
    double sum = 0, most = 0;
    int i;
    for (i = 0; i < n; i++) {
        sum -= s->of[i] * q->of[n - 1 - i];
        most += s->most[i] * q->most[n - 1 - i];
    }
    p->of[n] = sum / n;
    p->most[n] = most / n;
}

/* g' at x, that of log y over m, y = q + e^x - 1; and g g', g = g0 at x; fact: factorials. */
static void place_series(const hs_bulk *J, double x, double g0, const double *fact, series *l, series *slope)
{
    double y0 = J->q + expm1(x), ex = exp(x);
    int i, n;
    for (n = 0; n <= ORDER; n++) {
        double s = ex / fact[n], S = s;
        for (i = 1; i <= n; i++) {
            s -= ex / fact[i] * l->of[n - i] * J->m;
            S += ex / fact[i] * l->most[n - i] * J->m;
        }
        l->of[n] = s / y0 / J->m;
        l->most[n] = S / y0 / J->m;
    }
    for (n = 0; n <= ORDER; n++) {
        slope->of[n] = g0 * l->of[n];
        slope->most[n] = g0 * l->most[n];
        for (i = 1; i <= n; i++) {
            slope->of[n] += l->of[i - 1] / i * l->of[n - i];
            slope->most[n] += l->most[i - 1] / i * l->most[n - i];
        }
    }
}

/* Coefficients in d of e^{theta d} f(x + d)/f(x), and in big[] those of a majorant that errors multiply; *coarse: the
 * relative error of f' / f. */
static void expansion(const hs_bulk *J, double x, double theta, double *h, double *big, double *coarse)
{
    double y0 = J->q + expm1(x), ex = exp(x), v = log(y0 / J->q);
    double g0 = v / J->m + 0.5 * J->m, e0, e1;
    double r0 = hs_mills(g0 - J->m, &e0), r1 = hs_mills(g0, &e1), gap = r0 - r1;
    double c[ORDER + 1] = {1}, C[ORDER + 1] = {1}, fact[ORDER + 2] = {1}, power = 1;
    series l, slope, p = {{1}, {1}}, r = {{r1}, {r1}}; /* p, r: w(g)/w(g0) and Phi^c(g)/w(g0) */
    int i, n;
    for (n = 1; n <= ORDER + 1; n++) fact[n] = fact[n - 1] * n;
    place_series(J, x, g0, fact, &l, &slope);
    for (n = 1; n <= ORDER; n++) {
        less_product(&slope, &p, n, &p);
        less_product(&l, &p, n, &r);
    }
    for (n = 1; n <= ORDER; n++) { /* f' = -e^x Phi^c(g) */
        double s = 0, S = 0;
        for (i = 0; i < n; i++) {
            s -= r.of[i] / fact[n - 1 - i];
            S += r.most[i] / fact[n - 1 - i];
        }
        c[n] = s / n * ex / y0 / gap;
        C[n] = S / n * ex / y0 / gap;
    }
    for (n = 0; n <= ORDER; n++) h[n] = big[n] = 0;
    for (i = 0; i <= ORDER; power *= theta, i++)
        for (n = i; n <= ORDER; n++) {
            h[n] += power / fact[i] * c[n - i];
            big[n] += power / fact[i] * C[n - i];
        }
    *coarse = (e0 * r0 + e1 * r1) / gap + e1 + 1e-12;
}

/* An upper bound of log |e^{-theta d} f(x-d)| on |d| <= rho < x. */
static double log_disc(const hs_bulk *J, double x, double theta, double rho)
{
    double worst = -HUGE_VAL, unused, rel;
    int i;
    for (i = 0; i < CELLS; i++) {
        double left = rho * (2.0 * i / CELLS - 1), right = rho * (2.0 * (i + 1) / CELLS - 1);
        double near = fmax(0, fmax(left, -right)), at = fmax(x - right, x - rho),
               y = sqrt(fmax(0, rho * rho - near * near));
        /* [theory: small.complex] */
        double turn = y + asin(fmin(1, (1 - J->q) * exp(-at))), b;
        if (y < 3) turn = fmin(turn, atan2(sin(y), cos(y) - (1 - J->q) * exp(-at)));
        b = turn / J->m;
        worst = fmax(worst, log_payoff(J, at, &unused, &rel) - theta * left + 0.5 * b * b);
    }
    return worst + SLACK * (1 + fabs(worst));
}

/* An upper bound of the log of Pr[sum of n losses < s, all of the bulk]. */
static double log_under(const hs_bulk *J, double n, double s)
{
    double best = 0, reach = -log1p(-J->q);
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        double t = J->tilt[i], one = 0.5 * t * t * exp(fmin(600, t * reach)) * J->square - t * J->mean;
        best = fmin(best, t * s + n * one);
    }
    return best + SLACK * fabs(best);
}

/* An upper bound of log F_2(x), the pay-off of two jumps. */
static double log_two(const hs_bulk *J, double x)
{
    double all = 2 * J->log_unit, total = 0, g, end;
    double p, u, den, rel;
    double last = J->p, at;
    int i;
    if (x <= 2 * J->l0) {
        at = J->u * (J->p + J->q_den) - expm1(x) * J->q_den * J->q_den;
        return all + log(fmax(at + 8 * J->rel * J->p * J->p, 1e-300));
    }
    end = hs_bulk_place(J, 0, x - J->l0);
    for (i = 1; i <= CELLS; i++) {
        g = J->x0[0] + (end - J->x0[0]) * i / CELLS;
        hs_bulk_masses(J, &g, &p, &u, &den, &rel);
        at = log1p(J->q * expm1(J->m * g - 0.5 * J->m * J->m));
        total += (fmax(0, last - p) + 2 * rel * last) * exp(log_jump(J, x - at) - J->log_unit);
        last = p;
    }
    at = u * J->p + den * J->u - expm1(x) * den * J->q_den;
    return all + log(total + fmax(0, at) + 8 * (rel + J->rel) * p * J->p);
}

/* An upper bound of the log of E[F(eps - S); S > from] for a decreasing F, S the sum of n losses, all of the bulk:
 * layers up to eps, and `most` beyond [theory: small.numbers]. */
static double log_layers(const hs_bulk *J, double (*F)(const hs_bulk *, double), double n, double eps, double from,
                         double most)
{
    double total = most + hs_bulk_above(J, n, eps), step = (eps - from) / LAYERS;
    int i;
    for (i = 0; i < LAYERS; i++)
        total = hs_log_add(total, F(J, eps - (from + (i + 1) * step)) + hs_bulk_above(J, n, from + i * step));
    return total + SLACK * (1 + fabs(total));
}

/* Runs with no jump, or with two or more, relative to e^scale. */
static double others(const hs_bulk *J, double eps, double scale)
{
    double none = HUGE_VAL, two = -HUGE_VAL, more = -HUGE_VAL, pairs = log(J->k) + log(0.5 * (J->k - 1));
    double low = (J->k - 2) * J->mean, one = J->log_unit + log(J->p);
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        double t = J->tilt[i];
        none = fmin(none, J->k * J->log_b[i] - t * eps - t * log1p(1 / t) - log1p(t));
    }
    low = fmin(low, 0.5 * eps);
    two = hs_log_add(log_two(J, eps - low), log_layers(J, log_two, J->k - 2, eps, low, 2 * one)) + pairs;
    if (J->k > 2) more = 3 * one + pairs + log((J->k - 2) / 3);
    none = hs_log_add(none, hs_log_add(two, more)) - scale; /* [theory: small.numbers] */
    return exp(none + SLACK * (2 + fabs(none) + fabs(scale)));
}

/* What is shared by all eps near one at which theta is the tilt, of a law that is cut. */
int hs_jumps_prepare(hs_bulk *J, double theta)
{
    hs_bulk_tilted T;
    int i, st = hs_bulk_at(J, theta, 2, &T);
    if (st) return st;
    if (!(theta * theta * (J->k - 1) * T.moment[2] < HS_JUMPS_SPREAD)) return HS_TOO_WIDE;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        J->tilt[i] = theta * exp2((i - 8) / 3.0);
        J->log_b[i] = hs_bulk_log_upper(J, J->tilt[i]);
    }
    if ((st = hs_bulk_at(J, 0, 2, &T))) return st;
    J->mean = T.mean - T.mean_err;
    J->square = T.moment[2] + T.wrong * T.size[2];
    return HS_OK;
}

/* The same with the cut at the loss l. */
static int prepare(hs_bulk *J, double l, double theta)
{
    int st = hs_bulk_cut(J, l, theta, 0);
    return st ? st : hs_jumps_prepare(J, theta);
}

/* What the expansion leaves, relative to e^scale, at the best of a few radii: Taylor's remainder, with `top` at least
 * E|R - mu|^ORDER, and what lies beyond. */
static double left_over(const hs_bulk *J, double eps, double x, double theta, double scale, const double *h, double top)
{
    double best = HUGE_VAL, radius = 0, taylor = 0;
    double unused, rel, here = log_payoff(J, x, &unused, &rel);
    double n = J->k - 1, each = log(J->k) - scale, right, left;
    int i, j;
    for (i = 1; i <= 8; i++) {
        double rho = (x - J->l0) * i / 8.001, sum = exp(fmin(600, log_disc(J, x, theta, rho) - here)), power = 1, all;
        for (j = 0; j < ORDER; j++, power *= rho) sum += fabs(h[j]) * power;
        all = sum * top / power + /* [theory: small.expansion] */
              exp(each + log_jump(J, x - rho) + hs_bulk_above(J, n, eps - x + rho));
        if (!(all < best)) continue;
        best = all;
        taylor = sum * top / power;
        radius = rho;
    }
    if (!(best < HUGE_VAL)) return HUGE_VAL;
    right = each + log_layers(J, log_jump, n, eps, eps - x + radius, J->log_unit + log(J->p));
    left = each + log_payoff(J, x + radius, &unused, &rel) + log_under(J, n, eps - x - radius);
    return (exp(right) + exp(left) + taylor) * (1 + SLACK * (1 + fabs(scale)));
}

/* The loss x of the one jump and the tilt theta = -f'/f there, by which the bulk, left in T, has the rest as its mean;
 * *log_f: log f(x), *rel its error. False where there is none above the cut. */
static int meet(const hs_bulk *J, double eps, double *x, double *theta, double *log_f, double *rel, hs_bulk_tilted *T)
{
    int i;
    for (*x = eps, i = 0; i < 5; i++) {
        if (!(*x > 1.02 * J->l0)) return 0;
        *log_f = log_payoff(J, *x, theta, rel);
        if (!(*theta < HUGE_VAL) || hs_bulk_at(J, *theta, i < 4 ? 2 : ORDER, T)) return 0;
        if (i < 4) *x = eps - (J->k - 1) * T->mean;
    }
    return 1;
}

/* What runs with one jump add to delta(eps), with the cut as prepared; value 0 where this says nothing. */
void hs_jumps_one(const hs_bulk *J, double eps, hs_value *v)
{
    double h[ORDER + 1], big[ORDER + 1], m[ORDER + 1], err[ORDER + 1];
    double x, theta, rel, n = J->k - 1;
    double here, coarse, whole, off;
    hs_bulk_tilted T;
    int i;
    memset(v, 0, sizeof(*v));
    v->upper = HUGE_VAL;
    if (!meet(J, eps, &x, &theta, &here, &rel, &T)) return;
    v->log_scale = log(J->k) + n * T.log_b - theta * (eps - x) + here;
    off = n * T.mean_err + fabs(n * T.mean - (eps - x)) + 8 * HS_U * (eps + fabs(eps - x) + n * fabs(T.mean));
    moments_of_sum(&T, n, off, m, err);
    expansion(J, x, theta, h, big, &coarse);
    for (i = 0; i < ORDER; i++) {
        v->value += (i % 2 ? -1 : 1) * h[i] * m[i];
        v->inner += fabs(h[i]) * err[i] + (i ? coarse * big[i] * (fabs(m[i]) + err[i]) : 0);
    }
    v->truncation = left_over(J, eps, x, theta, v->log_scale, h, m[ORDER] + err[ORDER]);
    whole = n * T.err + 8 * HS_U * (fabs(n * T.log_b) + theta * (eps + fabs(x)) + fabs(here) + log(J->k)) + rel;
    v->rounding = fabs(v->value) * expm1(whole) + 32 * HS_U * fabs(v->value);
    v->slope = theta * v->value;
    v->lower = v->value - v->inner - v->truncation - v->rounding;
    v->upper = v->value + (v->inner + v->truncation) * (1 + expm1(whole)) + v->rounding;
    if (v->lower > 0 && v->upper < HUGE_VAL) return;
    v->value = 0;
    v->upper = HUGE_VAL;
}

/* delta(eps), the same. */
static void jumps_at(const void *self, double eps, hs_value *v)
{
    const hs_bulk *J = (const hs_bulk *)self;
    hs_jumps_one(J, eps, v);
    if (!(v->value > 0)) return;
    v->alias_right = others(J, eps, v->log_scale);
    v->upper += v->alias_right * (1 + SLACK);
    if (!(v->upper < HUGE_VAL)) v->value = 0;
}

/* -d log f/d eps of one step's curve f. */
double hs_jumps_tilt(const hs_bulk *J, double eps)
{
    double theta, rel;
    log_payoff(J, eps, &theta, &rel);
    return theta;
}

static const double CUTS[] = {0.5, 0.4, 0.3, 0.22, 0.15, 0.1, 0.07, 0.05, 0.03};

/* The cut that leaves least at eps, from number *at on, which becomes its own; HS_TOO_WIDE where none serves. */
static int best_cut(hs_bulk *J, double eps, int *at, hs_value *v)
{
    double theta, rel, best = HUGE_VAL;
    int i, from = *at, chosen = -1;
    log_payoff(J, eps, &theta, &rel);
    if (!(theta < HUGE_VAL)) return HS_OUT_OF_RANGE;
    for (i = from; i < (int)(sizeof CUTS / sizeof *CUTS) && best > HS_JUMPS_ENOUGH; i++) {
        if (chosen < 0 && i - from == HS_JUMPS_VAIN) break;
        if (prepare(J, CUTS[i] * eps, theta)) continue;
        jumps_at(J, eps, v);
        if (!(v->value > 0)) continue;
        if (!(v->upper / v->lower - 1 < best)) break;
        best = v->upper / v->lower - 1;
        chosen = i;
    }
    if (chosen < 0) return HS_TOO_WIDE;
    *at = chosen;
    if (i == chosen + 1 && best <= HS_JUMPS_ENOUGH) return HS_OK; /* the last one tried */
    if (prepare(J, CUTS[chosen] * eps, theta)) return HS_TOO_WIDE;
    jumps_at(J, eps, v);
    return v->value > 0 ? HS_OK : HS_TOO_WIDE;
}

static int opened(hs_bulk *J, double m, double q, double k, const hs_rule *rule, double *work, int64_t n_work)
{
    hs_pair pair = {.branches = 1, .w = {1}, .q = {q}, .up = {m}};
    if (n_work < HS_BULK_WORK) return HS_SCRATCH;
    return m > 1e-3 && m < 10 && k >= 2 ? hs_bulk_open(J, &pair, k, rule, work) : HS_BAD_ARGUMENT;
}

int hs_jumps_delta(double m, double q, double k, double eps, const hs_rule *rule, double *work, int64_t n_work,
                   hs_point *out)
{
    hs_bulk J;
    hs_value v;
    int at = 0, st = opened(&J, m, q, k, rule, work, n_work);
    if (st) return st;
    if (!(eps > 0 && eps < 500)) return HS_OUT_OF_RANGE;
    if ((st = best_cut(&J, eps, &at, &v))) return st;
    hs_value_point(&v, J.panels * J.per, out);
    return HS_OK;
}

/* Where k one-step pay-offs make e^log_delta: the start of a root; 0 where none do. */
static double start_of(const hs_bulk *J, double log_delta)
{
    double lo = 1e-300, hi = 500, theta, rel;
    int i;
    for (i = 0; i < 60; i++) {
        double mid = sqrt(lo * hi);
        if (log(J->k) + log_payoff(J, mid, &theta, &rel) > log_delta) lo = mid;
        else hi = mid;
    }
    return lo > 1e-200 ? lo : 0;
}

int hs_jumps_eps(double m, double q, double k, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                 hs_crossing *out)
{
    hs_bulk J;
    hs_value v;
    hs_curve curve = {.at = jumps_at, .self = &J, .log_delta = log_delta, .reach = HUGE_VAL};
    double left, eps;
    int i, at = 0, st = opened(&J, m, q, k, rule, work, n_work);
    if (st) return st;
    eps = start_of(&J, log_delta);
    for (i = 0; i < 2; i++) {
        if (!(eps > 0)) return HS_NO_BRACKET;
        if ((st = best_cut(&J, eps, &at, &v))) return st;
        if (!(v.upper < HS_JUMPS_HOPELESS * v.lower)) return HS_TOO_WIDE;
        curve.start = eps;
        curve.step = 0.3 * eps;
        curve.bend = 2 / eps;
        curve.reach = 0.9 * eps;
        if ((st = hs_root_estimate(&curve, &eps, &left, &v))) return st;
        if (fabs(eps - curve.start) < 0.03 * eps) break;
        at -= at > 0;
    }
    out->estimate = eps;
    if (hs_root_bracket(&curve, eps, left, &v, &out->lower, &out->upper) != 3) return HS_NO_BRACKET;
    hs_value_point(&v, J.panels * J.per, &out->delta);
    return HS_OK;
}
