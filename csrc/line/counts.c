/* counts.c - certified delta(eps) and eps(delta) of k runs of one sampled Gaussian step, REMOVE, eps > 0, where several
 * large losses make nearly all of delta: one line through the laws of all the numbers of jumps that matter.
 *
 * Symbols. The place x_a, to the right of the branch points of the loss, parts a step's outcomes: losses below are
 *   bulk, those from there up to the place x_b jumps; B(z), G(z) their parts of E e^{zL}, b, g the logs at c. s the
 *   share of e^v in 1 + U, as in bulk.c; eta = arcsin((1-s)/s) at x_a; r(x) = w (1+U)^{1+c}/G(c); J1..J2 the numbers of
 *   jumps on the line, pi_j = C(k,j) e^{(k-j) b + j g} in all of them; dy, P, f_n, lf as in contour.c.
 *
 * Formula. delta = sum_j H_j + what runs with a loss above x_b add [theory: small.counts]. The sum over J1..J2 is the
 *   curve of a measure whose transform is sum_j C(k,j) B^{k-j} G^j: one line, on which every term falls like the law of
 *   J1 jumps at least [theory: line.aliasing, line.known-aliases].
 *
 * Error terms, relative to e^{K(c) - c eps}:
 *   jumps       other numbers of jumps by Chernoff, each side at its best tilt, and losses above x_b by a union bound:
 *               upper end alone [theory: small.counts].
 *   aliasing    as in contour.c, with K of all numbers of jumps at the other tilts; both sides only lower the lower
 *               end.
 *   truncation  (1/pi) e^{-B}/Y (1 + dy/Y), e^{-B} = sum pi_j F^j, F a bound of |G|/G(c) from Y on
 *               [theory: line.truncation, small.counts-far].
 *   inner       panels of bulk.c, through K(c) and every node [theory: small.bulk-line, small.bulk-apart].
 *   rounding    as in contour.c; C(k,j) by Stirling's series; sums over j by Horner's rule [theory: small.counts-sum].
 *
 * Without it 7.8 % of the extreme questions of `python benchmarks/widths.py` are wider than 1e-6 (0.8 with it), and
 *   the 99th of 100 takes 97 ms (13); without one jump apart 0.5 % of sparse ones are wider than 1e-3 (0.2), and 30
 *   ms (17).
 *
 * What it does not do: ADD, whose losses are bounded; several distinct steps; runs whose bulk alone matters.
 */
#include "line/counts.h"
#include "line/part.h"
#include "line/saddle.h"
#include "tuning.h"

#define SLACK 1e-8  /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */
#define NATS 31.0   /* by which aliases and tail stay below delta */
#define MARGIN 25.0 /* nats below delta that other numbers of jumps may weigh */
#define TILTS 24
#define ALONE 64  /* terms of a sum of few, one by one */
#define SHARE 0.9 /* of e^v at the place that parts jumps from the bulk */

typedef struct {
    hs_bulk J, G;
    hs_jumps run; /* J, of which one jump may be apart */
    double eps, reach, c, b;
    double g, b_err, g_err, sd;
    double least, most, log_est;              /* J1, J2 */
    int one;                                  /* whether one jump is apart from the line */
    double from[HS_BRANCHES], end, eta, edge; /* x_a, the loss at x_b, what both ends add to |phi| over 2/(Y m) */
    double log_over;                          /* k times the mass above x_b */
    double tilt[TILTS], log_b[TILTS], log_g[TILTS];
    double *pi, total; /* weights of the numbers of jumps over the largest, and their sum */
    double *nodes, *bulk, *grid;
    hs_line_part part;
} jump_counts;

/* log n! less (n + 1/2) log n - n + log sqrt(2 pi), within 1/1260 n^-5. */
static double factorial_rest(double n) { return 1 / (12 * n) - 1 / (360 * n * n * n); }

/* log C(k, j), *err its error [theory: small.counts-sum]. */
static double log_choices(double k, double j, double *err)
{
    double sum = 0, size = 0, rest = 0, n = fmin(j, k - j);
    double one, other;
    int i;
    *err = 0;
    if (n < 0) return -HUGE_VAL;
    if (n <= ALONE) {
        for (i = 0; i < (int)n; i++) {
            one = log((k - i) / (i + 1.0));
            sum += one;
            size += 2 * (fabs(one) + fabs(sum)) + 4;
        }
    } else {
        one = n * log(k / n);
        other = -(k - n) * log1p(-n / k);
        sum = -0.5 * log(2 * HS_PI * n * ((k - n) / k));
        size = 8 * (one + other) + 4 * n + 16 * fabs(sum) + 16;
        rest = 2 / (1260 * pow(n, 5));
        sum = one + other + sum + factorial_rest(k) - factorial_rest(n) - factorial_rest(k - n);
    }
    *err = HS_U * size + rest;
    return sum;
}

/* K of all numbers of jumps and its derivatives, as an estimate. */
static hs_cgf counts_cgf(void *self, double t)
{
    const jump_counts *A = (const jump_counts *)self;
    double b[3], g[3], p, mean;
    hs_cgf out = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    if (!hs_bulk_estimate(&A->J, t, b)) return out;
    hs_bulk_cell_estimate(&A->G, t, g);
    p = 1 / (1 + exp(fmin(b[0] - g[0], 700)));
    mean = (1 - p) * b[1] + p * g[1];
    out.K = A->J.k * (g[0] < 600 ? log1p(expm1(b[0]) + exp(g[0])) : hs_log_add(b[0], g[0]));
    out.K1 = A->J.k * mean;
    out.K2 = A->J.k * ((1 - p) * (b[2] + pow(b[1] - mean, 2)) + p * (g[2] + pow(g[1] - mean, 2)));
    return out;
}

/* The places that part bulk, jumps, and losses of which not even one weighs as much as e^log_least, with panels for
 * tilts about t and frequencies up to y. */
static int part_law(jump_counts *A, double log_least, double t, double y)
{
    hs_bulk *J = &A->J;
    double m = J->m, q = J->q, lk = log(J->k);
    double over, last, loss;
    hs_bulk_loss at;
    int st;
    loss = log1p(-q) - log1p(-SHARE); /* 1 + U where s is SHARE */
    if ((st = hs_bulk_cut(J, loss, t, y))) return st;
    A->from[0] = J->x0[0];
    last = fmax(m + sqrt(2 * fmax(1, lk + log(q) - log_least)), sqrt(2 * fmax(1, lk - log_least)));
    at = hs_bulk_loss_at(J, 0, last);
    A->end = at.l1;
    if (!(A->end > 2 * loss) || (st = hs_bulk_cell(&A->G, A->from, A->end, t, y))) return st ? st : HS_TOO_WIDE;
    hs_bulk_unit(&A->G, A->G.cut);
    hs_bulk_masses(&A->G, A->G.cut, &over, &last, &loss, &t);
    A->log_over = lk + A->G.log_unit + log(over * (1 + 2 * t)) + SLACK;
    return HS_OK;
}

/* log(e^-rest of the terms whose ratios are at most `ratio` from one of weight 1 on). */
static double geometric(double ratio) { return ratio < 0.99 ? -log1p(-ratio) : HUGE_VAL; }

/* Upper bounds of the log of what at most j jumps add to delta(eps), or at least j [theory: small.counts]. */
static double fewer_upper(const jump_counts *A, double j, double eps)
{
    double best = HUGE_VAL, k = A->J.k, err, n;
    int i;
    if (j < 0) return -HUGE_VAL;
    for (i = 0; i < TILTS; i++) {
        double t = A->tilt[i], lift = A->log_b[i] - A->log_g[i], sum = -HUGE_VAL, one;
        if (!(t > 0)) continue;
        if (j < ALONE)
            for (n = 0; n <= j; n++) sum = hs_log_add(sum, log_choices(k, n, &err) - n * lift);
        else sum = log_choices(k, j, &err) - j * lift + geometric(j / (k - j + 1) * exp(fmin(lift, 700)));
        one = sum + k * A->log_b[i] - t * eps + hs_payoff(t);
        best = fmin(best, one + SLACK * (1 + fabs(one) + j * fabs(lift) + k * fabs(A->log_b[i])));
    }
    return best;
}

static double more_upper(const jump_counts *A, double j, double eps)
{
    double best = HUGE_VAL, k = A->J.k, err;
    int i;
    if (j > k) return -HUGE_VAL;
    for (i = 0; i < TILTS; i++) {
        double t = A->tilt[i], lift = A->log_g[i] - A->log_b[i], one;
        if (!(t > 0)) continue;
        one = log_choices(k, j, &err) + j * lift + geometric((k - j) / (j + 1) * exp(fmin(lift, 700)));
        one += k * A->log_b[i] - t * eps + hs_payoff(t);
        best = fmin(best, one + SLACK * (1 + fabs(one) + j * fabs(lift) + k * fabs(A->log_b[i])));
    }
    return best;
}

/* The tilts of Chernoff's bounds, about c. */
static void lay_count_tilts(jump_counts *A)
{
    static const double OVER[TILTS] = {0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.83, 0.9, 0.95, 1,   1.05,
                                       1.1,  1.2,  1.3,  1.45, 1.6,  1.8,  2.1,  2.5,  3,   4,    5.5, 8};
    int i;
    for (i = 0; i < TILTS; i++) {
        double err, t = A->c * OVER[i];
        A->tilt[i] = 0;
        A->log_b[i] = hs_bulk_log_upper(&A->J, t);
        if (!(A->log_b[i] < HUGE_VAL)) continue;
        A->log_g[i] = hs_bulk_cell_at(&A->G, t, &err);
        A->log_g[i] += err;
        if (err < 0.1) A->tilt[i] = t;
    }
}

/* J1 and J2 of the line for eps, with all others below e^log_least, about the mean n. */
static int choose_counts(jump_counts *A, double eps, double n, double log_least)
{
    double low = -1, high = ceil(n), mid;
    while (high - low > 1) {
        mid = floor(0.5 * (low + high));
        if (fewer_upper(A, mid, eps) < log_least) low = mid;
        else high = mid;
    }
    A->least = low + 1;
    for (low = floor(n), high = low + 4; high < A->J.k && !(more_upper(A, high + 1, eps) < log_least);) {
        low = high;
        high += fmax(4, high - floor(n));
        if (high - A->least > 4.0 * HS_COUNTS_TERMS) return HS_TOO_MANY_NODES;
    }
    while (high - low > 1) {
        mid = floor(0.5 * (low + high));
        if (more_upper(A, mid + 1, eps) < log_least) high = mid;
        else low = mid;
    }
    A->most = fmin(high, A->J.k);
    if (!(A->most - A->least < HS_COUNTS_TERMS)) return HS_TOO_MANY_NODES;
    return A->least >= 1 ? HS_OK : HS_TOO_WIDE;
}

/* The weights of the numbers of jumps at c over the largest, and log of their sum with its error
 * [theory: small.counts-sum]. */
static double weigh_counts(jump_counts *A, double *err)
{
    double k = A->J.k, odds = exp(A->g - A->b), mode = floor((k + 1) * odds / (1 + odds)), e;
    int n = (int)(A->most - A->least) + 1, at, i;
    mode = fmin(fmax(mode, A->least), A->most);
    at = (int)(mode - A->least);
    A->pi[at] = 1;
    for (i = at + 1; i < n; i++) A->pi[i] = A->pi[i - 1] * ((k - (A->least + i - 1)) / (A->least + i) * odds);
    for (i = at - 1; i >= 0; i--) A->pi[i] = A->pi[i + 1] / ((k - (A->least + i)) / (A->least + i + 1) * odds);
    for (A->total = 0, i = 0; i < n; i++) A->total += A->pi[i];
    e = log_choices(k, mode, err);
    *err += k * A->b_err + A->most * A->g_err;
    *err += HS_U * (16.0 * n + 8 * (k * fabs(A->b) + A->most * fabs(A->g) + e) + 2 * n * (fabs(A->g) + fabs(A->b)));
    return e + (k - mode) * A->b + mode * A->g + log(A->total);
}

/* Upper bound of log(sum pi_j |phi_G|^j) for all y >= Y [theory: small.counts-far]. */
static double counts_decay_upper(const jump_counts *A, double Y)
{
    double Ym = Y * A->J.m, F, sum = 0;
    int i;
    F = exp(fmin(Y * A->eta, 700)) * (exp(-0.5 * Ym * Ym) + A->edge * 2 / Ym) * (1 + 1e-6);
    if (!(F < 1)) return 0;
    for (i = (int)(A->most - A->least); i >= 0; i--) sum = sum * F + A->pi[i] / A->total;
    return A->least * log(F) + log(sum) + 1e-6;
}

/* The density r at x, at most, over 1 + 1e-6. */
static double end_density(const jump_counts *A, double x)
{
    hs_bulk_loss at = hs_bulk_loss_at(&A->J, 0, x);
    return exp((1 + A->c) * at.l1 - 0.5 * x * x - HS_LOG_SQRT_2PI - A->g);
}

/* What the decay of the jumps' transform rests on. */
static void lay_decay(jump_counts *A)
{
    hs_bulk_loss at = hs_bulk_loss_at(&A->J, 0, A->from[0]);
    A->eta = asin((1 - at.s1) / at.s1) * (1 + 1e-9);
    A->edge = end_density(A, A->from[0]) + end_density(A, A->G.x0[0]);
}

/* How many nodes the line needs until its tail is far below e^floor; false where it has no room for them. */
static int count_jump_nodes(jump_counts *A, double floor)
{
    static const double TAIL[] = {NATS, 23, 17, 12};
    double err, over = weigh_counts(A, &err) - A->c * A->eps - floor, Y; /* what the tail may be, but for its 1/Y */
    int i;
    for (i = 0; i < 4; i++)
        for (Y = 0.5 / A->sd; Y < A->part.dy * HS_COUNTS_NODES; Y *= 1.05)
            if (counts_decay_upper(A, Y) - log(HS_PI * Y) < -over - TAIL[i]) {
                A->part.F.N = (int64_t)ceil(Y / A->part.dy) + 1;
                return A->part.F.N < HS_COUNTS_NODES;
            }
    return 0;
}

/* Tilt, bulk and cell there, numbers of jumps, period and nodes of the line for eps. */
static int place_counts(jump_counts *A, double eps, double log_delta)
{
    hs_saddle_search f = {counts_cgf, A, 1, eps, 0.005, -HUGE_VAL, 0};
    hs_tilt at = {.t = A->c};
    hs_bulk_tilted T;
    double p, right, floor, err;
    int st;
    A->one = 0;
    f.top = hs_bulk_top_tilt(&A->J) * 0.999;
    if (hs_saddle_find(&f, &at)) return HS_NO_SADDLE;
    A->c = hs_short_tilt(at.t);
    A->eps = eps;
    A->sd = sqrt(at.k.K2);
    A->log_est = at.log_est;
    A->reach = fmin(12 / A->c, 0.3 * eps);
    lay_count_tilts(A);
    if ((st = hs_bulk_at(&A->J, A->c, 0, &T))) return st;
    A->b = T.log_b;
    A->g = hs_bulk_cell_at(&A->G, A->c, &err);
    lay_decay(A);
    p = exp(A->g - hs_log_add(A->g, A->b));
    floor = fmin(at.log_est, log_delta);
    if ((st = choose_counts(A, eps, A->J.k * p, floor - MARGIN))) return st;
    hs_aliases S = {counts_cgf, A, A->c, eps, A->sd, floor - NATS};
    right = hs_alias_place(&S, 1, fmin(7 / A->sd, 0.3 * (f.top - A->c)), -HUGE_VAL, f.top, 0, &A->part.s_right);
    A->part.P = hs_alias_place(&S, -1, fmin(7 / A->sd, 0.5 * A->c), 0, HUGE_VAL, right, &A->part.s_left);
    A->part.P = fmax(A->part.P, right);
    if (!(A->part.P < 1e12 && A->part.P > 0 && A->part.s_left >= 0)) return HS_OUT_OF_RANGE;
    A->part.c = A->c;
    A->part.dy = 2 * HS_PI / A->part.P;
    if (count_jump_nodes(A, floor)) return HS_OK;
    if (A->least > 1) return HS_TOO_MANY_NODES;
    A->one = 1;
    A->least = 2;
    A->most = fmin(A->J.k, fmax(A->most, 2));
    return count_jump_nodes(A, floor) ? HS_OK : HS_TOO_MANY_NODES;
}

/* Horner's rule: sum pi_j e^{(j - J1)(g - b)}, its modulus and its angle, and the sum of its terms' moduli. */
static void horner(const jump_counts *A, const double *b, const double *g, double *mod, double *angle, double *most)
{
    double size = exp(g[0] - b[0]), x = size * cos(g[1] - b[1]), y = size * sin(g[1] - b[1]);
    double re = 0, im = 0;
    int i;
    for (*most = 0, i = (int)(A->most - A->least); i >= 0; i--) {
        double last = re;
        re = re * x - im * y + A->pi[i];
        im = last * y + im * x;
        *most = *most * size + A->pi[i];
    }
    *mod = fmax(hypot(re, im), 1e-300);
    *angle = atan2(im, re);
}

/* log f and its errors at node n, from the logs of both transforms; found: whether that of a jump is known
 * [theory: small.counts-sum]. */
static void sum_counts(jump_counts *A, int64_t n, const double *b, const double *g, int found)
{
    double *round = A->part.F.re + 2 * (A->part.F.N + 1), *node = round + A->part.F.N + 1;
    double bulk = A->J.k - A->least, lead = bulk * b[0] + A->least * g[0], turn = bulk * b[1] + A->least * g[1];
    double sizes = fabs(b[0]) + fabs(b[1]), jump = fabs(g[0]) + fabs(g[1]), mod, angle;
    double most, own = A->J.k * b[2], quad = A->J.k * b[3];
    horner(A, b, g, &mod, &angle, &most);
    own += 4 * HS_U *
           ((A->most - A->least + 2) * (8 + sizes + jump) + fabs(lead) + fabs(turn) + A->J.k * sizes + A->most * jump);
    if (found) {
        own += A->most * g[2];
        quad += A->most * g[3];
    }
    most = fmin(0, lead + log(most / A->total) + own + quad + 1e-9 * (1 + fabs(lead))) - log(mod / A->total) - lead;
    A->part.F.re[n] = lead + log(mod / A->total);
    A->part.F.im[n] = turn + angle;
    round[n] = exp(most) * expm1(fmin(own, 1)) * (1 + quad);
    node[n] = exp(most) * expm1(fmin(quad, 1));
    if (found && round[n] + node[n] < 0.25) {
        round[n] = round[n] / (1 - round[n]) + 8 * HS_U;
        node[n] = node[n] / (1 - node[n]);
    } else { /* no larger than the sum of the terms' moduli */
        A->part.F.re[n] += most;
        round[n] = 1.1;
        node[n] = 0;
    }
}

/* log f at all nodes: the bulk's transform and the jumps', by quarters of the frequencies [theory: small.bulk-line]. */
static int visit_counts(jump_counts *A)
{
    hs_nodes *F = &A->part.F;
    int64_t n, N = F->N, from = 0, to;
    double lost[2], slope[2], *row = A->bulk, g[4];
    double last, enough = 42 + log(A->J.k);
    int i;
    slope[0] = hs_bulk_nodes(&A->J, A->c, F->dy, N, A->grid, A->part.a, A->part.b);
    for (n = 0; n <= N; n++) {
        row[2 * n] = A->part.a[n];
        row[2 * n + 1] = A->part.b[n];
    }
    slope[1] = hs_bulk_nodes(&A->G, A->c, F->dy, N, A->grid, A->part.a, A->part.b);
    for (i = 1; i <= 4; i++, from = to) {
        to = i < 4 ? N * i / 4 : N + 1;
        last = (double)to * F->dy;
        lost[0] = 2.25 * exp(hs_bulk_log_phase_upper(&A->J, A->c, last, A->b - enough) + A->b_err - A->b);
        lost[1] = 2.25 * exp(hs_bulk_log_phase_upper(&A->G, A->c, last, A->g - enough) + A->g_err - A->g);
        if (!(lost[0] < 0.2 && lost[1] < 0.2)) return HS_TOO_WIDE;
        for (n = from; n < to; n++) {
            double b[4], y = (double)n * F->dy;
            int found;
            if (!hs_line_part_log(row[2 * n], row[2 * n + 1], y * slope[0], lost[0], b)) return HS_TOO_WIDE;
            found = hs_line_part_log(A->part.a[n], A->part.b[n], y * slope[1], lost[1], g);
            sum_counts(A, n, b, g, found);
        }
    }
    return HS_OK;
}

/* K of all numbers of jumps at a tilt t >= 0, at most: log(1 + x), x = B - 1 + G >= 0 but for what lies above x_b, the
 * summands known to 1e-12 of themselves, which |log B| and log(1 + x) together are as large as. */
static int counts_upper(const jump_counts *A, double t, double *K)
{
    hs_bulk_tilted T;
    double err, g;
    int st = hs_bulk_at(&A->J, t, 0, &T);
    if (st) return st;
    g = hs_bulk_cell_at(&A->G, t, &err);
    if (!(err < 0.1)) return HS_OUT_OF_RANGE;
    g += err;
    *K = A->J.k * (g < 600 ? log1p(expm1(T.log_b + T.err) + exp(g)) : hs_log_add(T.log_b + T.err, g));
    *K += SLACK * (fabs(*K) + A->J.k * fabs(T.log_b));
    return HS_OK;
}

/* The line as placed for eps, about the place of e^log_delta: panels made for its frequencies, K at its three tilts,
 * nodes, tail. */
static int prepare_counts(jump_counts *A, double log_delta)
{
    double Y = (double)A->part.F.N * A->part.dy;
    hs_bulk_tilted T;
    int st = part_law(A, log_delta - MARGIN, A->c, Y);
    if (st || (st = hs_bulk_at(&A->J, A->c, 0, &T))) return st;
    A->b = T.log_b;
    A->b_err = T.err;
    A->g = hs_bulk_cell_at(&A->G, A->c, &A->g_err);
    if (!(A->g_err < 0.1)) return HS_TOO_WIDE;
    lay_decay(A);
    lay_count_tilts(A);
    A->part.K[0] = weigh_counts(A, &A->part.err[0]);
    A->part.err[1] = A->part.err[2] = 0;
    if ((st = counts_upper(A, A->part.s_right, &A->part.K[1]))) return st;
    if ((st = counts_upper(A, A->part.s_left, &A->part.K[2]))) return st;
    if (!((Y + A->part.dy) * A->G.l0 < 1e6)) return HS_TOO_MANY_NODES;
    A->part.log_tail = counts_decay_upper(A, Y) - log(HS_PI * Y) + log1p(A->part.dy / Y) + 1e-9;
    hs_line_part_rows(&A->part, A->eps, A->reach, A->nodes);
    if ((st = visit_counts(A))) return st;
    hs_nodes_freeze(&A->part.F);
    return A->one ? hs_jumps_prepare(&A->run, hs_jumps_tilt(&A->run, A->eps)) : HS_OK;
}

/* The line for eps, about the place of e^log_delta. */
static int make_counts(void *made, double eps, double log_delta)
{
    jump_counts *A = (jump_counts *)made;
    int st = part_law(A, log_delta - MARGIN, A->c, 0);
    if (st || (st = place_counts(A, eps, log_delta))) return st;
    return prepare_counts(A, log_delta);
}

/* One jump, which is apart from the line, added to it [theory: small.expansion]. */
static void add_one_jump(const jump_counts *A, double eps, hs_value *v)
{
    hs_value one;
    double unit, off;
    hs_jumps_one(&A->run, eps, &one);
    unit = exp(one.log_scale - v->log_scale);
    if (!(one.value > 0 && unit < HUGE_VAL)) {
        v->upper = HUGE_VAL;
        return;
    }
    off = 8 * HS_U * (2 + fabs(one.log_scale) + fabs(v->log_scale)) * unit * one.upper;
    v->value += unit * one.value;
    v->slope += unit * one.slope;
    v->inner += unit * one.inner;
    v->truncation += unit * one.truncation;
    v->rounding += unit * one.rounding + off;
    v->lower += fmax(0, unit * one.lower - off);
    v->upper += unit * one.upper + off;
}

/* The line, and above it what other numbers of jumps and larger losses add. Every part is one of a measure, so it is
 * >= 0. */
static void counts_at(const void *made, double eps, hs_value *v)
{
    const jump_counts *A = (const jump_counts *)made;
    double off, others;
    hs_line_part_at(&A->part, eps, v);
    off = v->rounding + v->inner + v->truncation;
    others = fewer_upper(A, A->one ? 0 : A->least - 1, eps);
    others = hs_log_add(A->log_over, hs_log_add(others, more_upper(A, A->most + 1, eps)));
    v->alias_left += v->alias_right;
    v->alias_right = exp(others - v->log_scale) * (1 + SLACK * (1 + fabs(others) + fabs(v->log_scale)));
    v->lower = fmax(0, v->value - off - v->alias_left);
    v->upper = v->value + off + v->alias_right;
    if (A->one) add_one_jump(A, eps, v);
    off = 64 * HS_U;
    v->lower *= 1 - off;
    v->upper *= 1 + off;
}

int64_t hs_counts_work(void) { return 2 * HS_BULK_WORK + HS_GRID_WORK + HS_COUNTS_TERMS + 8 * (HS_COUNTS_NODES + 1); }

static int open_counts(jump_counts *A, double m, double q, double k, const hs_rule *rule, double *work, int64_t n_work)
{
    hs_pair pair = {.branches = 1, .w = {1}, .q = {q}, .up = {m}};
    int st;
    memset(A, 0, sizeof *A);
    if (n_work < hs_counts_work()) return HS_SCRATCH;
    A->grid = work + 2 * HS_BULK_WORK;
    A->pi = A->grid + HS_GRID_WORK;
    A->bulk = A->pi + HS_COUNTS_TERMS;
    A->nodes = A->bulk + 2 * (HS_COUNTS_NODES + 1);
    if ((st = hs_bulk_open(&A->J, &pair, k, rule, work))) return st;
    if ((st = hs_bulk_open(&A->G, &pair, k, rule, work + HS_BULK_WORK))) return st;
    A->c = 0.1;
    A->run.n = 1;
    A->run.step = &A->J;
    return k >= 2 ? HS_OK : HS_BAD_ARGUMENT;
}

/* About the saddle of `value`, eps or log delta; losses that weigh e^log_least count. */
static int about_counts(jump_counts *A, int have_eps, double value, double log_least, hs_tilt *at)
{
    hs_saddle_search f = {counts_cgf, A, have_eps, value, 0.1, -HUGE_VAL, 0};
    int st = part_law(A, log_least, A->c, 0);
    if (st) return st;
    f.top = hs_bulk_top_tilt(&A->J) * 0.999;
    at->t = A->c;
    if (hs_saddle_find(&f, at)) return HS_NO_SADDLE;
    A->c = at->t;
    return HS_OK;
}

int hs_counts_delta(double m, double q, double k, double eps, const hs_rule *rule, double *work, int64_t n_work,
                    hs_point *out)
{
    jump_counts A;
    hs_value v;
    hs_tilt at;
    double goal = -1000;
    int i, st = open_counts(&A, m, q, k, rule, work, n_work);
    if (st) return st;
    if (!(eps > 0)) return HS_OUT_OF_RANGE;
    if ((st = about_counts(&A, 1, eps, goal, &at))) return st;
    for (goal = at.log_est, i = 0; i < 2; i++) {
        if ((st = make_counts(&A, eps, goal))) return st;
        counts_at(&A, eps, &v);
        if (!(v.value > 0)) return HS_TOO_WIDE;
        if (v.log_scale + log(v.value) > goal - 4) break;
        goal = v.log_scale + log(v.value);
    }
    if (!(v.lower > 0 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    hs_value_point(&v, A.part.F.N + 1, out);
    return HS_OK;
}

int hs_counts_eps(double m, double q, double k, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                  hs_crossing *out)
{
    jump_counts A;
    hs_value v;
    hs_tilt at;
    hs_placed_curve curve = {make_counts, counts_at, &A, &A.reach};
    int st = open_counts(&A, m, q, k, rule, work, n_work);
    if (st) return st;
    if ((st = about_counts(&A, 0, log_delta, log_delta - MARGIN, &at))) return st;
    if ((st = hs_root_walk(&curve, at.eps, log_delta, out, &v))) return st;
    hs_value_point(&v, A.part.F.N + 1, &out->delta);
    return HS_OK;
}
