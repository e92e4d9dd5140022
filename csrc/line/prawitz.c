/* prawitz.c - certified delta(eps) and eps(delta) from Prawitz' smoothing inequality, summed numerically under a tilt.
 *
 * Symbols. S the composed loss, K(t) = log E e^{tS} (= sum k log M), t > 0 the tilt, E~ the law tilted by e^{tS -
 *   K(t)}, f its characteristic function, h(v) = e^{-tv}(1 - e^{-v}) for v > 0, else 0, so that
 *   delta(eps) = e^{K(t) - t eps} E~ h(S - eps). T the smoothing limit, dy the mesh, P = 2 pi/dy, N nodes, Y = N dy,
 *   s = |y|/T, lam(s) = (1-s) pi s cot(pi s) + s in [0, 1], hs_payoff(t) = t log t - (1+t) log1p t (so max h =
 *   e^{hs_payoff(t)}), g = e^{-i eps y} f/((t+iy)(1+t+iy)).
 *
 * Formula [Pra72] [theory: prawitz.inequality, prawitz.curve].
 *     | (dy/2pi) sum_n lam g(n dy) - sum_j E~ h(S-eps-jP) | <= max h (dy/T) [1 + 2 sum_{0<n<T/dy} (1-s) |f(n dy)|].
 *   It holds for every T > 0 and every law: no decay of f to infinity is needed. T -> inf is the plain inversion.
 *
 * Error terms, relative to e^{K(t) - t eps}:
 *   smoothing   the right side above; |f| beyond Y by the segments of tail_lower.
 *   aliasing    j != 0, as on the line; where the loss is bounded 0 right of its supremum, and left of its infimum
 *               delta(x) = 1 - e^x, summed exactly [theory: prawitz.aliases].
 *   truncation  (1/pi) sum over segments of sup|f| (1/y_i - 1/y_{i+1} + dy/y_i^2) [theory: prawitz.tail].
 *   inner       quadrature of M (transform.c, laplace_step.c), through each node and through K(t): prawitz_steps.c.
 *   rounding    of K(t), of every node, of the sums. First order in u; constants rounded up by more than u^2 terms
 *               could add.
 *   fit         of rules in place of many steps, through each node and through K(t): fit.c
 *               [theory: compression.smoothed].
 *   Upper ends are never above Chernoff's e^{K(t) - t eps + hs_payoff(t)}.
 *
 * What it does not do: other families; m > HS_LAPLACE_STEP_MAX. The interval is wide, never wrong, where |f| does not
 *   fall: few steps, or atoms of nearly all the mass. Cost O(b n_inner N), the same for every k. One thread.
 */
#include "line/prawitz.h"
#include "line/fit.h"
#include "line/line.h"

#define FAR 1.099511627776e12 /* 2^40: T for the plain inversion; smoothing is then below 2^-40 max h |f| sums */

typedef struct { /* the run, and K at the first tilt asked for */
    hs_prawitz *S;
    hs_cgf first;
    int asked;
} prawitz_placing;

static hs_cgf cgf_of_steps(void *self, double t)
{
    prawitz_placing *W = (prawitz_placing *)self;
    hs_cgf k = hs_prawitz_cgf_estimate(W->S, t);
    if (!W->asked++) W->first = k;
    return k;
}

/* The saddle, sought on some of the steps, then from there on all. It places the line. At the end of the support any t
 * serves: prepare_line lowers it. */
static int find_saddle(hs_prawitz *S, int have_eps, double log_delta)
{
    prawitz_placing W = {.S = S};
    hs_saddle_search f = {cgf_of_steps, &W, have_eps, have_eps ? S->eps : log_delta, 0, -HUGE_VAL, 1e7};
    hs_tilt at = {.t = S->t};
    int st;
    S->stride = hs_prawitz_sparse(S);
    S->representative = 2;
    S->ratio = 1;
    if (S->stride > 1) {
        hs_cgf some;
        f.tol = have_eps ? 0.005 : 0.03;
        S->representative = hs_saddle_find(&f, &at) == HS_OK ? 2 : 0;
        if (!S->representative) at.t = S->t;
        some = at.k;
        S->stride = 1;
        W.asked = 0;
        f.tol = have_eps ? 0.005 : 0.3;
        st = hs_saddle_find(&f, &at);
        if (S->representative) {
            double off = fmax(fabs(W.first.K - some.K) / fabs(some.K), fabs(W.first.K2 - some.K2) / some.K2);
            S->representative = off < 0.08 ? 2 : off < 0.3 ? 1 : 0;
            if (S->representative) S->ratio = W.first.K / some.K;
        }
    } else {
        f.tol = have_eps ? 0.005 : S->run.b <= 48 ? 0.03 : 0.3;
        st = hs_saddle_find(&f, &at);
    }
    if (st > HS_LOOSE) return HS_NO_SADDLE;
    S->eps = at.eps;
    S->log_est = at.log_est;
    S->sd = sqrt(fmax(at.k.K2, 1e-3 / (at.t * at.t)));
    S->t = hs_short_tilt(fmax(at.t, 0.7 / S->sd));
    return S->sd > 0 ? HS_OK : HS_NO_SADDLE;
}

/* P = the larger of the two sides' least periods, or what reaches beyond the support with room for eps to move; any
 * d > 0 gives a valid one. Of many steps some tell which d. */
static int smoothed_place(hs_prawitz *S)
{
    prawitz_placing W = {.S = S};
    hs_aliases A = {cgf_of_steps, &W, S->t, S->eps, S->sd, S->log_est - S->T0};
    int side;
    S->P = 0;
    for (side = 1; side >= -1; side -= 2) {
        double d = 7 / S->sd, best, reach = (side < 0 ? S->eps - S->low : S->high - S->eps) + 2 / S->t, s;
        S->stride = S->representative > 0 ? hs_prawitz_sparse(S) : 1;
        best = hs_alias_place(&A, side, d, -0.99, HUGE_VAL, S->P, &s);
        if (S->representative == 1) {
            S->stride = 1;
            best = hs_alias_period(&A, s);
        }
        if (reach < best) {
            best = fmax(reach, 2 / S->t);
            s = side < 0 ? S->t - fmin(d, S->t + 0.99) : S->t + d;
        }
        *(side < 0 ? &S->s_left : &S->s_right) = s;
        S->P = fmax(S->P, best);
    }
    S->dy = 2 * HS_PI / S->P;
    return S->P > 0 && S->P < 1e12 ? HS_OK : HS_OUT_OF_RANGE;
}

/* Lower bounds seg[j] of -log|f| on [y_j, y_{j+1}], and beyond the last point [theory: line.metric]; k the number of
 * steps that are not plain Gaussian. */
static void tail_lower(const hs_prawitz *S, double *seg)
{
    double sd = sqrt(S->var), best = 0;
    int j, n = S->points;
    for (j = 0; j < n; j++) {
        double x = 0, gap = j + 1 < n ? (S->y[j + 1] - S->y[j]) * sd * (1 + 1e-12) : 0;
        if (j + 1 < n) x = hs_metric_lower(S->metric[j], S->metric[j + 1], gap, S->run.n_fits ? 1e290 : S->k_smooth);
        best = fmax(best, S->far[j]);
        seg[j] = fmax(x, best) * (1 - 1e-9) - 1e-9 + S->gauss[j];
    }
}

/* The smoothing and truncation terms for the T asked for, or the T for which their sum is least. */
static void choose_limit(hs_prawitz *S)
{
    double seg[POINTS], near = 1, mass = 0, cut = 0;
    double top = exp(hs_payoff(S->t)), best = HUGE_VAL, Y = (double)S->N * S->dy;
    int64_t n;
    int j;
    tail_lower(S, seg);
    S->limit = fmax(Y, S->dy); /* where the nodes are not known: Chernoff's bound alone */
    S->smooth = HUGE_VAL;
    S->tail = 0;
    for (n = 1; n <= S->N; n++)
        near += 2 * exp(S->re[n]) *
                ((S->T > 0 ? fmax(0, 1 - (double)n * S->dy / S->T) : 1) + hs_grown_upper(S->round[n] + S->node[n]));
    near *= 1 + 1e-9; /* the rounding of the sum */
    if (S->T > 0 && S->T <= Y + S->dy) {
        S->limit = S->T;
        S->smooth = top * S->dy / S->T * near;
        S->tail = 0;
        return;
    }
    for (j = 0; j < S->points; j++) {
        double F = exp(-seg[j]), lo = S->y[j], hi = j + 1 < S->points ? S->y[j + 1] : FAR * lo, smooth;
        if (S->T > 0) hi = j + 1 < S->points ? fmin(hi, S->T) : S->T;
        if (!(hi > lo)) break;
        mass += F * (hi - lo + S->dy);                              /* one node more: lo is off the mesh */
        cut += F * (1 / lo - 1 / hi + S->dy / (lo * lo)) / HS_PI;   /* [theory: prawitz.tail] */
        smooth = top / hi * (S->dy * near + 2 * mass) * (1 + 1e-6); /* [theory: prawitz.curve] */
        if (S->T > 0 || smooth + cut < best) {
            best = smooth + cut;
            S->smooth = smooth;
            S->tail = cut * (1 + 1e-6);
            S->limit = hi;
        }
    }
}

/* lam(s), to 16 u absolutely: reflected above 1/2, where the cotangent has its pole; 1 - lam <= 3.5 s^2. */
static double weight(double s)
{
    double x, c;
    if (s < 1e-9) return 1;
    x = HS_PI * (s > 0.5 ? 1 - s : s);
    c = x > 1e-8 ? x / tan(x) : 1;
    return s > 0.5 ? s * (1 - c) : (1 - s) * c + s; /* [theory: prawitz.inequality] */
}

static hs_nodes smoothed_nodes(const hs_prawitz *S)
{
    hs_nodes F = {.c = S->t, .dy = S->dy, .eps = S->eps, .reach = S->reach, .N = S->N, .re = S->re, .im = S->im};
    F.round = S->round;
    F.node = S->node;
    return F;
}

/* The nodes with their weights lam, at most 1 and 16 u off. */
static void smoothed_freeze(hs_prawitz *S)
{
    hs_nodes F = smoothed_nodes(S);
    int64_t n;
    F.fit = S->run.n_fits ? S->fit : NULL;
    F.kernel = 18 * HS_U;
    hs_nodes_freeze(&F);
    for (n = 0; n <= S->N; n++) {
        double lam = weight((double)n * S->dy / S->limit);
        S->re[n] *= lam;
        S->im[n] *= lam;
    }
    S->round_sum = F.rounding;
    S->inner_sum = F.inner;
    S->fit_sum = F.fitted;
}

/* The aliases at eps on the side of the tilt s, whose K is entry i of those of the plan. */
static double smoothed_aliases_upper(const hs_prawitz *S, int i, double s, double eps, double log_scale)
{
    double K = S->K[i] + S->inner[i] + (8 + S->run.b) * HS_U * (fabs(S->K[0]) + fabs(S->K[1]) + fabs(S->K[2]));
    return hs_aliases_upper(S->t, S->P, eps, log_scale, hs_side_at(S->t, S->P, s, K));
}

/* At eps within `reach` of S->eps: all share the nodes. */
static void smoothed_at(const void *prepared, double eps, hs_value *v)
{
    const hs_prawitz *S = (const hs_prawitz *)prepared;
    const hs_nodes F = smoothed_nodes(S);
    double unit = S->dy / (2 * HS_PI), sum, der;
    double t = S->t, P = S->P, s = S->s_left;
    double known, known_err, whole;
    int bounded = eps - P <= S->low;
    double L = S->K[2] - t * eps, right = smoothed_aliases_upper(S, 0, S->s_right, eps, L);
    double left = smoothed_aliases_upper(S, 1, s, eps, L);
    v->log_scale = L;
    hs_nodes_sum(&F, eps, &sum, &der);
    known = hs_known_aliases(t, P, eps, L, s < 0 || bounded, bounded, &known_err);
    v->value = unit * sum - known;
    v->slope = unit * der;
    whole = 2 * HS_U * (fabs(S->K[2]) + fabs(t * eps)) + S->err;
    v->rounding = unit * S->round_sum + expm1(whole) * fabs(unit * sum) * (1 + S->inner[2]) + known_err;
    v->inner = unit * S->inner_sum + expm1(S->inner[2] - S->fitted) * fabs(unit * sum);
    v->fit = unit * S->fit_sum + exp(S->inner[2]) * S->fitted * fabs(unit * sum);
    if (eps + P >= S->high) right = 0; /* [theory: prawitz.aliases] */
    if (bounded) left = 0;
    v->alias_right = right;
    v->alias_left = left;
    v->truncation = S->tail;
    hs_value_ends(v, s);
    whole = exp(hs_payoff(t) + whole + S->inner[2]);
    v->upper = v->upper + S->smooth < whole ? v->upper + S->smooth : whole; /* also where the sum is not a number */
    v->lower = v->lower > S->smooth ? v->lower - S->smooth : 0;
    if (!(v->value == v->value))
        v->value = v->rounding = v->upper; /* not a number: Chernoff's bound is all that is known */
}

/* Tail points: from the last node in steps of 0.7 over the rms deviation of a step, which the metric can see; then
 * doubling. Far below such a step the metric is linear, and a point at four times the last loses nothing to one at
 * twice it. */
static void place_points(hs_prawitz *S)
{
    double step = 0.7 * sqrt(S->ktot) / S->sd;
    int j;
    S->y[0] = (double)(S->N > 1 ? S->N : 1) * S->dy;
    for (j = 1; j < POINTS; j++) {
        double y = S->y[j - 1];
        S->y[j] = y + (40 * y < step ? 3 * y : fmin(y, j < POINTS / 2 ? step : y));
    }
    S->points = POINTS;
    if (S->T > 0 && S->T <= S->y[0] + S->dy) S->points = 0; /* the nodes are all there is */
    else if (S->far_only) S->points = 1;
    else if (S->run.b > 1)
        for (S->points = 6; S->points < POINTS && S->y[S->points - 6] < 2 * step; S->points++) {}
}

/* A better number of nodes after a visit, or 0: fewer where the grids do not carry that far; else more where the
 * tail is not known to have fallen, up to the point from which on it has. */
static int64_t next_nodes(const hs_prawitz *S)
{
    double seg[POINTS], need = S->T0 + log(1 + S->t) + 1;
    int64_t n;
    int j;
    for (n = 1; n < S->N && S->round[n + 1] + S->node[n + 1] < 1e-3; n++) {}
    if (n < S->N) return n;
    if (S->points == 0) return 0;
    tail_lower(S, seg);
    for (j = S->points; j > 0 && seg[j - 1] >= need - 2 * log(fmax(1, S->y[j - 1] / S->t)); j--) {}
    n = (int64_t)(fmin(j < S->points ? S->y[j] : HUGE_VAL, 1.6 * S->y[0]) / S->dy) + 1;
    return j == 0 || n > N_MAX - 4 || (S->T > 0 && (double)n * S->dy >= S->T) ? 0 : n;
}

/* Lay out the nodes for the tilt S->t, visit the steps, again with better nodes if need be. */
static int smoothed_settle(hs_prawitz *S, double *work)
{
    int64_t n;
    int st, attempt;
    if ((st = smoothed_place(S)) || (st = hs_prawitz_plan(S, work + 7 * N_MAX))) return st;
    S->re = work;
    S->im = work + N_MAX;
    S->round = work + 2 * N_MAX;
    S->node = work + 3 * N_MAX;
    S->zr = work + 4 * N_MAX;
    S->zi = work + 5 * N_MAX;
    S->fit = work + 6 * N_MAX;
    place_points(S);
    S->tight_grids = S->run.b > 64 && !S->run.add && S->N < 384;
    for (attempt = 0;; attempt++, S->tight_grids = 0) {
        if ((st = hs_prawitz_visit(S, work + 7 * N_MAX))) return st;
        if (attempt == 5 || !(n = next_nodes(S))) return HS_OK;
        if (S->far_only) {
            S->far_only = 0;
            place_points(S);
            continue;
        } /* the far bound alone does not do */
        if (n < S->N) attempt = 4; /* the grids carry no further: one more visit, the last */
        S->N = n;
        place_points(S);
    }
}

/* The line for S->eps (or log_delta). Where the tilt reaches too far for the grids, a smaller one is as valid. */
static int prepare_line(hs_prawitz *S, int have_eps, double log_delta, double *work, int64_t n_work)
{
    int st, j;
    double off;
    if (n_work < hs_prawitz_work() || S->run.b < 1) return HS_SCRATCH;
    for (S->ktot = S->low = S->high = 0, j = 0; j < S->run.b; j++) {
        double low, high;
        int laplace = hs_kind_of(&S->run, j) == HS_LAW_LAPLACE;
        if (!laplace && hs_kind_of(&S->run, j) != HS_LAW_NORMAL) return HS_BAD_ARGUMENT;
        if (laplace && !(S->run.m[j] <= HS_LAPLACE_STEP_MAX)) return HS_BAD_ARGUMENT;
        S->ktot += S->run.k[j];
        hs_prawitz_support(S, j, &low, &high);
        S->low += low;
        S->high += high;
    }
    if (S->run.n_fits) { /* the number of steps is that of the rule to within this part */
        double part = hs_fit_losses(S->run.fits, S->run.n_fits);
        S->low -= part;
        S->high += part;
    }
    off = 16 * HS_U * (S->run.b + 1);
    S->low -= off * (1 + fabs(S->low));
    S->high += off * (1 + fabs(S->high));
    if (S->run.b > 64 && !S->run.add) S->T0 = fmin(S->T0, 29); /* many steps round more than that leaves */
    S->t = 1;
    if (!have_eps) { /* the tilt of the normal law of the same variance */
        S->stride = hs_prawitz_sparse(S);
        S->ratio = 1;
        S->t = fmax(1e-3, fmin(1e3, sqrt(fmax(0.5, -1.6 * log_delta) / hs_prawitz_cgf_estimate(S, 0).K2)));
    }
    if ((st = find_saddle(S, have_eps, log_delta))) return st;
    for (j = 0; j < (S->run.n_fits ? 4 : 30); j++, S->t *= 0.5) { /* rules: else the steps themselves */
        S->reach = fmin(0.5 + 4 / S->t, 30 / S->t);               /* the leading-order log delta may be off by nats */
        st = smoothed_settle(S, work);
        if (st != HS_TOO_WIDE && st != HS_TOO_MANY_NODES && st != HS_OUT_OF_RANGE) break;
    }
    if (st) return st;
    choose_limit(S);
    smoothed_freeze(S);
    return HS_OK;
}

static int smoothed_prepare(hs_prawitz *S, int have_eps, double log_delta, double *work, int64_t n_work)
{
    hs_prawitz_kept kept;
    int st;
    kept.G.a_lo = 1;
    kept.G.a_hi = -1;
    S->kept = &kept;
    st = prepare_line(S, have_eps, log_delta, work, n_work);
    S->kept = NULL;
    return st;
}

int64_t hs_prawitz_work(void) { return 7 * N_MAX + HS_STEP_WORK; }

int hs_prawitz_delta(hs_prawitz *S, double eps, double *work, int64_t n_work, hs_point *out)
{
    hs_value v;
    int st;
    S->eps = eps;
    if ((st = smoothed_prepare(S, 1, 0, work, n_work))) return st;
    smoothed_at(S, eps, &v);
    hs_value_point(&v, S->N + 1, out);
    return v.upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* Where no point within reach proves an end: Chernoff's eps above, -infinity below. */
int hs_prawitz_eps(hs_prawitz *S, double log_delta, double *work, int64_t n_work, hs_crossing *out)
{
    hs_curve curve = {.at = smoothed_at, .self = S, .log_delta = log_delta};
    hs_value v;
    double left, proved = HUGE_VAL;
    int st;
    if ((st = smoothed_prepare(S, 0, log_delta, work, n_work))) return st;
    curve.start = S->eps;
    curve.reach = S->reach;
    curve.step = 0.4 * S->reach;
    curve.bend = 1 + S->t;
    if (hs_root_estimate(&curve, &out->estimate, &left, &v)) {
        out->estimate = S->eps;
        smoothed_at(S, S->eps, &v);
        left = HUGE_VAL;
        if (v.value > 0 && v.slope > 0) left = fabs(v.log_scale + log(v.value) - log_delta) * v.value / v.slope;
    }
    out->lower = -HUGE_VAL;
    out->upper = (S->K[2] + S->err + S->inner[2] + hs_payoff(S->t) - log_delta) / S->t;
    out->upper += 1e-12 * (fabs(out->upper) + (fabs(S->K[2]) + fabs(log_delta)) / S->t); /* Chernoff's is not sharp */
    hs_root_bracket(&curve, out->estimate, left, &v, &out->lower, &proved);
    out->upper = fmin(out->upper, proved);
    hs_value_point(&v, S->N + 1, &out->delta);
    return out->upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}
