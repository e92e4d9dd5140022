/* few.c - certified delta(eps) of one or two runs of one pair, a public mixture of two-sided branches or a plain
 * sampled step, in real space.
 *
 * Symbols. Branch r, of weight W: num, den, L, l1, l2 as in bulk.c; g_r a place about which the loss of the branch is
 *   y; T the normal tail; D(v) = delta_1(eps + log v), v = e^{-Y}; a cell: the outcomes of every branch between two of
 *   its places, of mass p under num and u = p - den, s = u/p the mean of 1 - e^{-Y} there, s0, s1 that at its ends.
 *
 * Formula. delta_1(y) = sum_r W [q (T(g-up) - T(g+down)) - (e^y - 1)(q T(g+down) + (1-q) T(g))] at g = g_r, of which
 *   no term loses digits to another [theory: small.single]. Two steps: delta = sum over cells of E[D(e^{-Y}); cell],
 *   between p D(1 - s) and p times the chord of D at s [theory: small.two-steps]. Cells are halved where the two are
 *   furthest apart.
 *
 * Error terms.
 *   truncation  the chords above the means.
 *   rounding    of masses [theory: rounding.first-order] and losses: both enter the ends.
 *
 * What it does not do: more than two runs; shifts above 5; rates above 1/2; delta below 1e-250.
 */
#include "law/bulk.h"
#include "line/root.h"
#include "tuning.h"
#include <stdlib.h>

#define LOSS_REL 2e-12 /* of l1 and l2: u (up x + up^2) e^v/|e^v - 1| below 1e-12, and q_err u as much */
#define LOSS_ABS 1e-14 /* in units of q: the same where v is about 0 */
#define SUMS 1e-12     /* relative, of sums of at most 4096 positive terms */
#define SEEN 3e-6      /* relative step to a place that certainly lies left of the loss sought */

enum { FIRST = 60 };

typedef struct { /* a place of every branch, the losses there within edge, their largest; masses above; D at most */
    double top;
    double p, p_err, u, u_err;
    double x[HS_BRANCHES], loss[HS_BRANCHES], edge[HS_BRANCHES], y;
    double most;
    double lower, upper; /* of the cell that begins here */
    int next;
} mark;

typedef struct {
    hs_bulk J;
    double eps;
    mark *at;
    int n, room;
} few;

/* A place about which the loss of a branch is y, not far beyond its ends. */
static double few_place(const hs_bulk *J, int r, double y)
{
    double x, least, q = J->pair.q[r];
    if (J->pair.down[r] == 0 && !(expm1(y) > -q)) return -HS_BULK_FAR;
    if (J->pair.up[r] == 0 && !(expm1(-y) > -q)) return HS_BULK_FAR;
    x = hs_bulk_place(J, r, y);
    least = J->pair.up[r] > 0 && J->pair.down[r] > 0 ? -10 - J->pair.down[r] : -HS_BULK_FAR; /* where it seeks */
    return x > least ? x : least;
}

/* L of a branch at x, and what it may be off by. */
static double loss_near(const hs_bulk *J, int r, double x, double *edge)
{
    hs_bulk_loss at = hs_bulk_loss_at(J, r, x);
    *edge = LOSS_REL * (fabs(at.l1) + fabs(at.l2)) + LOSS_ABS * J->pair.q[r];
    return at.l1 - at.l2;
}

/* Masses of a branch above x, over its weight: num, num - den, the part of den beyond q T(x); their errors. */
typedef struct {
    double num, gap, den;
    double num_err, gap_err, den_err;
} masses;

/* The relative error of a branch's weight times a mass. */
static double weight_error(const hs_pair *pair) { return HS_U * (pair->w_err + 8); }

static masses masses_above(const hs_pair *pair, int r, double x)
{
    double q = pair->q[r], e0, e1, e2;
    double up = hs_bulk_tail(x - pair->up[r], &e0), mid = hs_bulk_tail(x, &e1),
           down = hs_bulk_tail(x + pair->down[r], &e2);
    masses out = {q * up + (1 - q) * mid, q * (up - down), q * down + (1 - q) * mid, 0, 0, 0};
    double q_err = pair->q_err * HS_U;
    out.num_err = q * up * (e0 + 8 * HS_U) + (1 - q) * mid * (e1 + 8 * HS_U) + q * q_err * fabs(up - mid) + 1e-300;
    out.gap_err = q * (up * e0 + down * e2 + 8 * HS_U * (up + down)) + q_err * fabs(out.gap) + 1e-300;
    out.den_err = q * down * (e2 + 8 * HS_U) + (1 - q) * mid * (e1 + 8 * HS_U) + q * q_err * fabs(down - mid) + 1e-300;
    return out;
}

/* What the set of outcomes above g, or none, misses of the best one for the loss y, over the weight of the branch. */
static double few_missed_upper(const hs_bulk *J, int r, double g, double y, const masses *above)
{
    double edge, loss = loss_near(J, r, g, &edge), off = fabs(loss - y) + edge, err;
    if (off < 1e-6 && loss_near(J, r, g - SEEN * (1 + fabs(g)), &err) + err <= y)
        return expm1(off) * 1.02 * (above->num + above->num_err); /* [theory: small.two-steps] */
    if (loss + edge > y) err = hs_bulk_tail(-g, &off) * 1.01;
    else err = 0;
    return err + (loss - edge < y ? above->num + above->num_err : 0) + 1e-300;
}

/* delta of one step at y. */
static void one_step(const hs_bulk *J, double y, double *lower, double *upper)
{
    const hs_pair *pair = &J->pair;
    double e = expm1(y), low = 0, high = 0;
    int r;
    for (r = 0; r < pair->branches; r++) {
        double g = few_place(J, r, y), w = pair->w[r], known = weight_error(pair);
        masses m = masses_above(pair, r, g);
        double value = m.gap - e * m.den, err = m.gap_err + fabs(e) * (m.den_err + 8 * HS_U * m.den);
        double most = fmax(value, 0) + err + few_missed_upper(J, r, g, y, &m);
        low += w * fmax(value - err, fmax(0, hs_down(-e))) * (1 - known); /* all outcomes, none, or those above */
        high += w * fmin(most, 1) * (1 + known);
    }
    *lower = low * (1 - SUMS);
    *upper = fmin(1, high * (1 + SUMS));
}

/* The place of every branch where its loss is about y, between those of `left` and `right`. No loss left of a place
 * exceeds `top`, but where nothing lies between it and `left`. */
static void few_mark(few *A, mark *out, double y, const mark *left, const mark *right)
{
    const hs_pair *pair = &A->J.pair;
    double lower;
    int r;
    memset(out, 0, sizeof(*out));
    out->y = y;
    out->top = y;
    for (r = 0; r < pair->branches; r++) {
        double x = few_place(&A->J, r, y), w = pair->w[r], known = weight_error(pair);
        masses m;
        if (left) x = fmax(x, left->x[r]);
        if (right) x = fmin(x, right->x[r]);
        m = masses_above(pair, r, x);
        out->x[r] = x;
        out->loss[r] = loss_near(&A->J, r, x, &out->edge[r]);
        if (left ? x > left->x[r] : out->loss[r] - out->edge[r] <= y)
            out->top = fmax(out->top, out->loss[r] + out->edge[r]);
        out->p += w * m.num;
        out->u += w * m.gap;
        out->p_err += w * (m.num_err + known * m.num);
        out->u_err += w * (m.gap_err + known * fabs(m.gap));
    }
    y = A->eps - out->top;
    one_step(&A->J, y - 4 * HS_U * (fabs(A->eps) + fabs(out->top)), &lower, &out->most);
}

/* Both ends of what the cell from a to b adds; b = NULL: all losses above those of a. */
static void few_cell(const few *A, mark *a, const mark *b)
{
    double p = a->p - (b ? b->p : 0), p_err = a->p_err + (b ? b->p_err : 0), unused;
    double u = a->u - (b ? b->u : 0), u_err = a->u_err + (b ? b->u_err : 0);
    double low = HUGE_VAL, high = -HUGE_VAL, s, s_err;
    double s0, s1 = 1, share, y;
    int r;
    a->lower = a->upper = 0;
    for (r = 0; r < A->J.pair.branches; r++) {
        if (b && !(a->x[r] < b->x[r])) continue;
        low = fmin(low, a->loss[r] - a->edge[r]);
        if (b) high = fmax(high, b->loss[r] + b->edge[r]);
    }
    if (!(low < HUGE_VAL)) return;
    low = fmin(low, a->top);
    a->upper = (p + p_err) * (b ? b->most : 1) * (1 + SUMS);
    if (!(p > 4 * p_err)) return;
    s = u / p;
    s_err = 2 * (u_err + fabs(s) * p_err) / p + 4 * HS_U * fabs(s);
    s0 = -expm1(-low);
    if (b) s1 = -expm1(-high);
    share =
        (s + s_err - s0) / (s1 - s0) + 16 * HS_U * (fabs(s0) + fabs(s1)) / (s1 - s0); /* [theory: small.two-steps] */
    share = share > 0 ? share : 0;
    if (share < 1) a->upper = (p + p_err) * (a->most + share * fmax(0, (b ? b->most : 1) - a->most)) * (1 + SUMS);
    if (!(s - s_err < 1)) return;
    y = A->eps + log1p(-(s - s_err));
    one_step(&A->J, y + 8 * HS_U * (fabs(A->eps) + fabs(y) + fabs(s)), &a->lower, &unused);
    a->lower *= (p - p_err) * (1 - SUMS);
}

static double few_gap(const mark *a) { return a->upper - a->lower; }

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Marks about 0 and about eps, where either step's law has its scale, and the cells between. */
static void first_marks(few *A)
{
    double y[2 * FIRST], least = 1, most = 0;
    int i, n = 0, r;
    for (r = 0; r < A->J.pair.branches; r++) {
        double edge;
        least = fmin(least, A->J.pair.q[r]);
        most = fmax(most, loss_near(&A->J, r, A->J.pair.up[r] + 12, &edge));
        most = fmax(most, -loss_near(&A->J, r, -A->J.pair.down[r] - 12, &edge));
    }
    least = 0.02 * fmin(least, A->eps);
    most = fmax(most, 2 * A->eps);
    for (i = 0; i < FIRST / 2; i++) {
        double step = least * pow(most / least, i / (0.5 * FIRST - 1));
        y[n++] = step;
        y[n++] = -step;
        y[n++] = A->eps + step;
        y[n++] = A->eps - step;
    }
    qsort(y, (size_t)n, sizeof(*y), by_size);
    for (A->n = i = 0; i < n; i++)
        if (!i || y[i] > y[i - 1] * (1 + 1e-9) || y[i] < 0) {
            few_mark(A, &A->at[A->n], y[i], A->n ? &A->at[A->n - 1] : NULL, NULL);
            A->at[A->n].next = A->n + 1;
            A->n++;
        }
    A->at[A->n - 1].next = -1;
    for (i = 0; i < A->n; i++) few_cell(A, &A->at[i], i + 1 < A->n ? &A->at[i + 1] : NULL);
}

/* Halves a cell. */
static void few_halve(few *A, int i)
{
    mark *a = &A->at[i], *mid = &A->at[A->n], *b = &A->at[a->next];
    few_mark(A, mid, 0.5 * (a->y + b->y), a, b);
    mid->next = a->next;
    a->next = A->n++;
    few_cell(A, a, mid);
    few_cell(A, mid, b);
}

/* The sums of both ends. */
static void few_sum(const few *A, double *lower, double *upper)
{
    int i;
    double none = fmax(0, 1 - A->at[0].p + A->at[0].p_err), err;
    *lower = 0;
    *upper = none * A->at[0].most;
    for (i = 0; i < A->J.pair.branches; i++) /* outcomes left of all places, of larger losses than sought */
        if (A->at[0].loss[i] + A->at[0].edge[i] > A->at[0].top)
            *upper += 2 * hs_bulk_tail(-A->at[0].x[i], &err) + 1e-300;
    for (i = 0; i < A->n; i++) {
        *lower += A->at[i].lower;
        *upper += A->at[i].upper;
    }
    *lower *= 1 - SUMS;
    *upper *= 1 + SUMS;
}

static void two_steps(few *A, double *lower, double *upper)
{
    int i, n, went = 1;
    first_marks(A);
    while (went) {
        double total;
        few_sum(A, lower, upper);
        total = (*upper - *lower) / A->n;
        for (went = 0, n = A->n, i = 0; i < n && A->n < A->room; i++)
            if (A->at[i].next >= 0 && few_gap(&A->at[i]) > total) {
                few_halve(A, i);
                went = 1;
            }
    }
}

int64_t hs_few_work(int64_t cells) { return HS_BULK_WORK + (cells + 4 * FIRST) * (int64_t)(sizeof(mark) / 8 + 1); }

int hs_few_delta(const hs_pair *pair, int k, double eps, const hs_rule *rule, double *work, int64_t n_work,
                 hs_point *out)
{
    few A;
    hs_value v = {0};
    int r, st;
    if (n_work < hs_few_work(1)) return HS_SCRATCH;
    if ((st = hs_bulk_open(&A.J, pair, k, rule, work))) return st;
    for (r = 0; r < pair->branches; r++)
        if (!(fmax(pair->up[r], pair->down[r]) <= 5 && pair->q[r] <= 0.5)) return HS_OUT_OF_RANGE;
    if (!(k >= 1 && k <= 2 && eps > 0 && eps < 600 && pair->q_err < 1e3)) return HS_OUT_OF_RANGE;
    A.eps = eps;
    A.at = (mark *)(work + HS_BULK_WORK);
    A.room = (int)((n_work - HS_BULK_WORK) / (int64_t)(sizeof(mark) / 8 + 1));
    if (k == 1) one_step(&A.J, eps, &v.lower, &v.upper);
    else two_steps(&A, &v.lower, &v.upper);
    if (!(v.lower > 1e-250 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    v.value = 0.5 * (v.lower + v.upper);
    v.slope = v.value;
    v.truncation = 0.5 * (v.upper - v.lower);
    hs_value_point(&v, k == 1 ? 1 : A.n, out);
    return HS_OK;
}
