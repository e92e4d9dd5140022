/* contour.c - certified delta(eps) and eps(delta) of a composition, by the trapezoid rule on the vertical line Re z =
 * c.
 *
 * Symbols. K(z) = sum_i k_i log M_i(z), c near the saddle of K(z) - eps z - log z - log(1+z), sd^2 = K''(c), dy the
 *   outer mesh, P = 2 pi/dy, f_n = e^{K(c+iny dy)-K(c)-i eps n dy}/(z_n(1+z_n)), lf(t) = t log t - (1+t) log1p t.
 *
 * Formula. T = (dy/2pi) e^{K(c)-c eps} [f_0 + 2 sum_{n>=1} Re f_n] = S + delta(eps) + aliases, exactly, for every law
 *   [theory: line.inversion, line.aliasing]. With s the tilt used to bound the aliases on the left, S = 0 (s >= 0),
 *   1/(e^{cP}-1) (-1 < s < 0), 1/(e^{cP}-1) - e^eps/(e^{(c+1)P}-1) (s < -1) [theory: line.known-aliases, pair.parity].
 *   The curve of the product pair bounds that of the run [theory: pair.composition].
 *
 * Error terms, all relative to e^{K(c)-c eps}, each in one field of hs_point:
 *   aliasing    right: e^{K(c+d)-K(c)-d eps+lf(c+d)-dP}/(1-e^{-dP}); left: the same at s = c - d' with lf(s), 0 or
 *               lf(-1-s). The right one and, unless -1 < s < 0, the left one only lower the lower end
 *               [theory: line.aliases].
 *   truncation  (1/pi) e^{-B}/Y (1 + dy/Y), B a lower bound of -sum k log|phi| beyond Y: see contour_visit.c
 *               [theory: line.truncation].
 *   inner       quadrature of M (transform.c; on long lines twosided_shift.c), through each node and through K(c)
 *               [theory: line.inner].
 *   rounding    of K(c), of every node, of the sum [theory: rounding.line].
 *   fit         of rules that stand for many steps: fit.c.
 *   The line is symmetric: only n >= 0 is evaluated. Plain Gaussian steps (q = 1) have M in closed form.
 *
 * Where c lies. At the saddle the sum loses nothing to cancellation. Sparse sampling has a K that explodes near there
 *   (rare jumps take the tilted law over), so that aliases are small for long periods only: lines below the saddle,
 *   which lose C->cancelled nats to cancellation, need a fraction of the nodes. Every bound holds on every line
 *   [theory: line.depth].
 *
 * What it does not do: atoms; c <= 0; laws whose |phi| does not fall within HS_OUTER_MAX nodes (HS_TOO_MANY_NODES).
 * Cost: O(b n_inner N). Steps are cut into chunks of fixed number, summed in order [theory: rounding.sums]: results do
 * not depend on the threads.
 */
#include "line/line.h"

static hs_nodes nodes_of(const hs_contour *C, const hs_sums *S)
{
    hs_nodes F = {.c = C->c, .dy = C->dy, .eps = C->eps, .reach = C->reach, .N = C->N, .re = S->re, .im = S->im};
    F.round = S->round;
    F.node = S->node;
    return F;
}

/* The aliases on the side of the tilt s, whose K is entry i of the sums. */
static hs_side line_side(const hs_contour *C, const hs_sums *S, int i, double s)
{ return hs_side_at(C->c, C->P, s, S->K[i] + S->err[i] + S->inner[i] + S->fitted[i]); }

/* The logarithms in S become terms: after the last step was visited. */
void hs_line_freeze(hs_contour *C, hs_sums *S)
{
    hs_nodes F = nodes_of(C, S);
    F.fit = C->run.n_fits ? S->fit : NULL;
    hs_nodes_freeze(&F);
    C->round = F.rounding;
    C->inner = F.inner;
    C->fit = F.fitted;
    C->scaled = expm1(S->inner[0]);
    C->fitted = expm1(S->fitted[0]);
    C->right = line_side(C, S, 1, C->s_right);
    C->left = line_side(C, S, 2, C->s_left);
}

/* The sum at eps, |eps - C->eps| <= C->reach: all such eps share the nodes [theory: line.shared]. Value, its log-scale,
 * -d delta/d eps, error terms. */
static void line_at(const void *prepared, double eps, hs_value *v)
{
    const hs_contour *C = (const hs_contour *)prepared;
    const hs_sums *S = (const hs_sums *)C->S;
    const hs_nodes F = nodes_of(C, S);
    double unit = C->dy / (2 * HS_PI), sum, der;
    double c = C->c, P = C->P, s = C->s_left;
    double known, known_err, size, whole;
    hs_nodes_sum(&F, eps, &sum, &der);
    v->log_scale = S->K[0] - c * eps;
    known = hs_known_aliases(c, P, eps, v->log_scale, s < 0, s < -1, &known_err);
    v->value = unit * sum - known; /* [theory: line.inversion, line.aliasing] */
    /* The slope is an estimate: that of the first alias is -e^(eps - P) left of all losses and about 0 among them. */
    v->slope = unit * der;
    if (s < -1 || (s < 0 && P > 2 * fabs(eps))) v->slope -= exp(eps - v->log_scale) / expm1((c + 1) * P);
    whole = 2 * HS_U * (fabs(S->K[0]) + fabs(c * eps)) + S->err[0];
    /* [theory: rounding.line] */
    size = fabs(unit * sum);
    v->rounding = unit * C->round + expm1(whole) * size * (1 + C->scaled) * (1 + C->fitted) + known_err;
    v->inner = unit * C->inner + C->scaled * size;
    v->fit = unit * C->fit + C->fitted * ((1 + C->scaled) * size + v->rounding + v->inner + unit * C->fit);
    v->truncation = C->tail;
    v->alias_right = hs_aliases_upper(c, P, eps, v->log_scale, C->right);
    v->alias_left = hs_aliases_upper(c, P, eps, v->log_scale, C->left);
    hs_value_ends(v, s);
}

/* Evaluates a frozen line at eps. */
int hs_line_point(const hs_contour *C, double eps, hs_point *out)
{
    hs_value v;
    line_at(C, eps, &v);
    if (!(v.value > 0 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    hs_value_point(&v, C->N + 1, out);
    return v.lower > 0 && v.upper - v.lower <= 2 * C->rtol * v.value ? HS_OK : HS_LOOSE;
}

/* Line and nodes. Where the line at the saddle takes many nodes, a lower one that loses little and takes far fewer
 * is as good. */
static int line_lay(hs_contour *C, int have_eps, double log_delta, double depth, double *work)
{
    int st = hs_contour_place(C, have_eps, log_delta, depth, work);
    /* planning pairs costs as much as hundreds of nodes; planning many steps costs less than a few, as it is done on
     * a sample */
    int64_t most = C->n_max, many = hs_has_pairs(C) ? 1024 : C->run.b > HS_SAMPLE ? 48 : 256;
    C->n_max = HS_OUTER_MAX;
    if (!st) st = hs_contour_plan(C, work);
    if (!st && depth == 1 && C->N > many) {
        hs_contour best = *C;
        double lost = 4 + 1.5 * fmax(0, log2((double)C->N / 256)), low;
        /* [theory: line.depth] */
        for (low = 0.7 * C->depth; low > 0.3 && best.N > 0.8 * fmin((double)many, 256); low *= 0.7) {
            if (hs_contour_place(C, have_eps, log_delta, low, work) || C->cancelled > lost) break;
            if (hs_contour_plan(C, work) == HS_OK && C->N < best.N) best = *C;
        }
        *C = best;
    }
    C->n_max = most;
    return st || C->N < most ? st : HS_TOO_MANY_NODES;
}

/* line_lay by the outline. */
static int outline_lay(hs_contour *C, int have_eps, double log_delta, double depth, double *work)
{
    hs_run run = C->run;
    int64_t j;
    int st;
    C->run = hs_outline(&run);
    st = line_lay(C, have_eps, log_delta, depth, work);
    C->run = run;
    C->chunks = hs_chunks(run.b);
    for (C->ktot = 0, j = 0; j < run.b; j++) C->ktot += run.k[j];
    return st;
}

/* Place the contour for C->eps (or log_delta), visit the steps, bound the tail. Retries where the tail is not small
 * enough. */
int hs_line_visit(hs_contour *C, int have_eps, double log_delta, double depth, double *work, int64_t n_work, hs_sums *S)
{
    int st, attempt;
    double e;
    if (hs_stopped(C->poll, 0)) return HS_INTERRUPTED;
    if (n_work < hs_contour_work(C->run.b, C->n_threads, 0)) return HS_SCRATCH;
    if ((st = outline_lay(C, have_eps, log_delta, depth, work))) return st;
    for (attempt = 0; attempt < 5; attempt++) {
        if (C->N > HS_OUTER_MAX / C->chunks || C->N >= C->n_max) return HS_TOO_MANY_NODES;
        if (n_work < hs_contour_work(C->run.b, C->n_threads, C->N)) return HS_SCRATCH;
        if ((st = hs_contour_visit(C, work, S))) return st;
        C->S = S;
        e = hs_contour_log_tail_upper(C, S);
        C->tail = exp(e);
        e += C->nats + C->cancelled - 2 +
             log(C->c * (1 + C->c) * C->sd); /* the value is about 1/(c (1+c) sd sqrt(2 pi)) */
        if (e < 0 || attempt == 4) break;
        if (C->bands > 1 && C->y_far > 1.5 * (double)C->N * C->dy) {
            C->N = (int64_t)(1.2 * (double)C->N);
            C->y_grid = (double)(C->N + 2) * C->dy;
            continue;
        }
        if (C->y_far > 0 && attempt == 0 && C->N < HS_LONG_LINE && !C->run.ruled) {
            C->y_far = 0;
            continue;
        }
        if (hs_contour_extend(C, work) == HS_OK) continue;
        C->N = (int64_t)(C->N * fmin(1.5, 1.06 + e / (C->nats + C->cancelled))) + 2;
        C->y_grid = (double)(C->N + 2) * C->dy;
    }
    return HS_OK;
}

static int line_prepare(hs_contour *C, int have_eps, double log_delta, double depth, double *work, int64_t n_work,
                        hs_sums *S)
{
    int st = hs_line_visit(C, have_eps, log_delta, depth, work, n_work, S);
    if (!st) hs_line_freeze(C, S);
    return st;
}

/* The saddle of a few steps that stand for all, where the run has such. */
static int outlined_saddle(hs_contour *C, int have_eps, double value, double *work)
{
    hs_run run = C->run;
    int st;
    C->run = hs_outline(&run);
    st = hs_contour_saddle(C, have_eps, value, work);
    C->run = run;
    return st;
}

/* See hs.h. */
int hs_contour_estimate(hs_contour *C, double eps, double *work, int64_t n_work, double *log_delta)
{
    int st;
    if (n_work < HS_SAMPLE_WORK) return HS_SCRATCH;
    C->eps = eps;
    C->t = 0;
    st = outlined_saddle(C, 1, 0, work);
    *log_delta = C->log_est;
    return st;
}

/* K(t) + payoff(t) with K rounded up and its quadrature error added: Chernoff's bound of delta(eps) and of eps(delta)
 * for every t > 0, of 1 - delta(eps) for -1 < t < 0 [theory: line.chernoff]. C->t, or if that is 0 the saddle; C->t is
 * the one it used. */
int hs_contour_chernoff_upper(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, double *upper)
{
    double K = 0, slack = 0, excess = 0, t;
    int64_t j;
    int st;
    if (n_work < HS_STEP_WORK) return HS_SCRATCH;
    C->eps = value;
    if (!C->t && (st = outlined_saddle(C, have_eps, value, work))) return st;
    for (t = C->t, j = 0; j < C->run.b; j++) {
        double m = C->run.m[j], q = C->run.q[j], k = C->run.k[j];
        double term = 0, err = 0;
        if (hs_stopped(C->poll, 1e4)) return HS_INTERRUPTED;
        if (hs_is_apart(C, j)) continue;
        if (hs_is_pair(C, j)) st = hs_two_log_m_upper(&C->run.pair[j], t, 20 + log(k), work, &term, &err);
        else if (q == 1) {
            term = 0.5 * m * m * t * (1 + t);
            st = HS_OK;
        } else st = hs_log_m_upper(m, q, C->run.add ? -t : 1 + t, fabs(k), work, &term, &err);
        if (st) {
            if (!(fabs(t) > 1e-6)) return st;
            t *= 0.5;
            K = slack = excess = 0;
            j = -1; /* the tilt reaches too far for the grid: a smaller one bounds as well */
            continue;
        }
        K += k * term;
        slack += fabs(k) * err + (2 + (double)C->run.b) * HS_U * fabs(k * term);
        if (hs_is_ruled(C, j)) excess += fmax(k, 0) * hs_excess(term, err);
    }
    K += slack * (1 + 1e-9) + (t > 0 ? hs_payoff(t) : 0) + hs_fit_upper(C, t, excess, work);
    K += 8 * HS_U * (fabs(K) + fabs(value) * (1 + fabs(t)));
    C->t = t;
    *upper = have_eps ? K - value * t : hs_up((K - value) / t);
    return *upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

int64_t hs_contour_work(int b, int n_threads, int64_t n_outer)
{
    int chunks = hs_chunks(b);
    return (int64_t)n_threads * HS_STEP_WORK +
           chunks * HS_SUMS_WORK(n_outer < HS_OUTER_MAX / chunks ? n_outer : HS_OUTER_MAX / chunks);
}

const double hs_depths[HS_DEPTHS] = {1, 0.6, 0.35, 0.2, 0.1};

/* A caller that has something else for long lines wants the first only. */
static int depths(const hs_contour *C) { return C->n_max < HS_OUTER_MAX ? 1 : HS_DEPTHS; }

/* The point at eps on a prepared contour as a row of hs_contour_curve: status, log_scale, lower, estimate, upper,
 * the five terms. */
static int row_at(const hs_contour *C, double eps, double *o)
{
    hs_point p;
    int st = hs_line_point(C, eps, &p);
    o[0] = st;
    if (st > HS_LOOSE) return st;
    o[1] = p.log_scale;
    o[2] = p.lower;
    o[3] = p.estimate;
    o[4] = p.upper;
    o[5] = p.aliasing;
    o[6] = p.truncation;
    o[7] = p.inner;
    o[8] = p.rounding;
    o[9] = p.interpolation;
    return st;
}

/* Deltas at n ascending eps: neighbours within reach share a contour, placed so that the first of them lies at its
 * left; where that gives less than HS_OK, an entry has its own. Entry i is the row at out[10 i]. */
int hs_contour_curve(hs_contour *C, int64_t n, const double *eps, double *work, int64_t n_work, double *out)
{
    hs_sums S[HS_CHUNKS];
    int64_t i = 0, first;
    int st;
    if (n_work < hs_contour_work(C->run.b, C->n_threads, 0)) return HS_SCRATCH;
    while (i < n) {
        if (hs_stopped(C->poll, 0)) return HS_INTERRUPTED;
        first = i;
        C->eps = eps[i];
        if (i < n - 1 && hs_contour_place(C, 1, 0, 1, work) == HS_OK) {
            /* x away from its centre the aliases of a contour weigh e^{8x/sd} more, and the rounding is bounded up
             * to its reach */
            C->eps = fmin(eps[i] + 0.5 * fmin(C->reach, C->sd), 0.5 * (eps[i] + eps[n - 1]));
            if (line_prepare(C, 1, 0, 1, work, n_work, S) == HS_OK)
                while (i < n && fabs(eps[i] - C->eps) <= C->reach && row_at(C, eps[i], out + 10 * i) == HS_OK) i++;
        }
        if (i > first) continue;
        C->eps = eps[i];
        st = line_prepare(C, 1, 0, 1, work, n_work, S);
        if (st) out[10 * i] = st;
        else row_at(C, eps[i], out + 10 * i);
        i++;
    }
    return HS_OK;
}

/* Finds the root on a frozen line. */
static int line_root(hs_contour *C, double log_delta, hs_crossing *out)
{
    hs_curve curve = {.at = line_at, .self = C, .log_delta = log_delta};
    hs_value v;
    int st;
    curve.start = C->eps;
    curve.reach = C->reach; /* the line is frozen for all eps up to there */
    curve.step = 0.4 * C->reach;
    curve.bend = 1 + C->c;
    if ((st = hs_root_find(&curve, out, &v))) return st;
    hs_value_point(&v, C->N + 1, &out->delta);
    return v.upper - v.lower <= 2 * C->rtol * v.value ? HS_OK : HS_LOOSE;
}

int hs_line_answer(hs_contour *C, int have_eps, double value, hs_crossing *out)
{
    if (!have_eps) return line_root(C, value, out);
    out->lower = out->estimate = out->upper = value;
    return hs_line_point(C, value, &out->delta);
}

/* Whether one answer is narrower than another, a root by its width and a point by that in parts of delta. */
static int narrower(int have_eps, const hs_crossing *one, const hs_crossing *other)
{
    const hs_point *p = &one->delta, *o = &other->delta;
    if (have_eps) return p->upper - p->lower < (o->upper - o->lower) * (p->estimate / o->estimate);
    return one->upper - one->lower < other->upper - other->lower;
}

/* The line at the saddle, and where that gives less than HS_OK lines below it: the first good answer, or the
 * narrowest. */
int hs_contour_ask(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, hs_crossing *out)
{
    hs_sums S[HS_CHUNKS];
    hs_crossing at = {0};
    int i, found = HS_NO_SADDLE;
    for (i = 0; i < depths(C) && found != HS_OK; i++) {
        int st;
        if (have_eps) C->eps = value;
        st = line_prepare(C, have_eps, value, hs_depths[i], work, n_work, S);
        if (!st) st = hs_line_answer(C, have_eps, value, &at);
        if (st == HS_NO_SADDLE) break;
        if (st == HS_OK || (st == HS_LOOSE && (found != HS_LOOSE || narrower(have_eps, &at, out)))) {
            *out = at;
            found = st;
        } else if (found != HS_LOOSE) found = st;
        if (st == HS_LOOSE && 4 * at.delta.rounding > at.delta.upper - at.delta.lower)
            break; /* which only grows below */
    }
    return found;
}
