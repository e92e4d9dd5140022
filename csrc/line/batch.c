/* batch.c - many independent queries of one kind, one distinct step each.
 *
 * Computed: for every i < n the certified eps(delta_i) or delta(eps_i) of k_i runs of the step (m_i, q_i), as
 * hs_contour_ask gives them in one direction, and the larger of both directions where both are asked for.
 *
 *   m, q, k      step and count of a query, as in hs.h
 *   at           delta (eps wanted) or eps (delta wanted)
 *   directions   1 REMOVE, 2 ADD, 3 both (both.c)
 *   done         1: answered; 2: a Chernoff bound above and nothing below; 0: ask this one on its own
 *   replaced     the pair is (1-q) N(0,1) + q N(m,1) against (1-q) N(0,1) + q N(-m,1), the same in both directions
 *                (sampling.py); with q = 1 the caller doubles m instead
 *   lower, estimate, upper   the answer: eps, clipped at 0, or log delta
 *
 * An answer is kept if its relative width is at most `widest`.
 *
 * Error claim: that of contour.c; nothing is added but what the logs lose (both.c).
 *
 * Each query is computed by one thread from its own numbers and scratch, so answers do not depend on n_threads.
 *
 * Not done here: exact cases (one step, eps beyond the range of the loss, delta(0) <= delta), the hyperbola and the
 * fall-backs: such queries come back with done = 2 where Chernoff's bound has a value, else with 0.
 */
#include "law/transform.h"

/* The contour of one query; `pair` is lent to it. */
static hs_contour aim(const hs_asked *s, const double *m, const double *q, const double *k, int add, hs_pair *pair)
{
    hs_contour C = {.run = {.b = 1, .add = add, .m = m, .q = q, .k = k}};
    hs_pair none = {0};
    C.n_threads = 1;
    C.n_max = HS_OUTER_MAX;
    C.rtol = s->rtol;
    C.T0 = s->T0;
    if (s->replaced && *q < 1) {
        *pair = none;
        pair->branches = 1;
        pair->w[0] = 1;
        pair->q[0] = *q;
        pair->up[0] = pair->down[0] = *m;
        C.run.pair = pair;
    }
    return C;
}

/* What a line says of one direction, out[0..2] = lower, estimate, upper. 1 if it is within the width. */
static int within(const hs_asked *s, int st, const hs_crossing *at, double *out)
{
    if (st > HS_LOOSE) return 0;
    if (s->want_eps) {
        out[0] = at->lower;
        out[1] = at->estimate;
        out[2] = at->upper;
        return out[1] > 0 && out[2] - out[0] <= s->widest * out[1];
    }
    if (!(at->delta.lower > 0)) return 0;
    hs_point_logs(&at->delta, out);
    if (!(-expm1(out[0] - out[2]) <= s->widest)) return 0;
    out[2] = fmin(out[2], 0.0);
    out[1] = fmin(out[1], out[2]);
    out[0] = fmin(out[0], out[2]);
    return 1;
}

/* Chernoff's bound above, the larger over the directions, and nothing below. */
static int coarse(const hs_asked *s, const double *m, const double *q, const double *k, double at, double *work,
                  int64_t n_work, double *out)
{
    double upper;
    int add;
    out[0] = s->want_eps ? 0 : -HUGE_VAL;
    out[1] = out[2] = out[0];
    for (add = 0; add < 2; add++) {
        hs_pair pair;
        hs_contour C = aim(s, m, q, k, add, &pair);
        if (!(s->directions & (1 << add))) continue;
        if (hs_contour_chernoff_upper(&C, !s->want_eps, s->want_eps ? log(at) : at, work, n_work, &upper) != HS_OK)
            return 0;
        out[1] = out[2] = fmax(out[2], s->want_eps ? upper : fmin(upper, 0.0));
    }
    return 1;
}

static int answer(const hs_asked *s, const double *m, const double *q, const double *k, double at, double *work,
                  int64_t n_work, double *out)
{
    double wall = *q < 1 && !s->replaced ? -*k * log1p(-*q) : HUGE_VAL, other[3];
    double value = s->want_eps ? log(at) : at;
    hs_pair pair;
    hs_contour C = aim(s, m, q, k, s->directions == 2, &pair);
    hs_crossing found[2];
    hs_ceiling upper;
    int st, second = HS_LEFT_OUT, i;
    if (*k == 1 && *q < 1) return 0;
    if (!s->want_eps && fabs(at) >= hs_down(wall)) return 0;
    if (s->directions == 3 && *q < 1)
        st = hs_contour_larger(&C, !s->want_eps, value, s->want_eps ? hs_up(wall) : HUGE_VAL, work, n_work, found,
                               &second, &upper);
    else st = hs_contour_ask(&C, !s->want_eps, value, work, n_work, found);
    if (!within(s, st, found, out)) return 0;
    if (second != HS_LEFT_OUT) {
        if (!within(s, second, found + 1, other)) return 0;
        for (i = 0; i < 3; i++) out[i] = fmax(out[i], other[i]);
    }
    if (s->want_eps)
        for (i = 0; i < 3; i++) out[i] = fmax(out[i], 0.0);
    return 1;
}

int64_t hs_batch_work(int n_threads) { return n_threads * hs_contour_work(1, 1, HS_OUTER_MAX); }

int hs_batch(int64_t n, const double *m, const double *q, const double *k, const double *at, const hs_asked *asked,
             const hs_lent *lent, double *ends, unsigned char *done)
{
    int64_t each = hs_batch_work(1), i;
    if (n < 0 || lent->n_threads < 1 || asked->directions < 1 || asked->directions > 3) return HS_BAD_ARGUMENT;
    if (lent->n_work < lent->n_threads * each) return HS_SCRATCH;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 16) num_threads(lent->n_threads)
#endif
    for (i = 0; i < n; i++) {
        double out[3] = {0, 0, 0}, *mine = lent->work + hs_thread() * each;
        int r;
        if (hs_stopped(lent->poll, 4e4)) continue;
        done[i] = (unsigned char)answer(asked, m + i, q + i, k + i, at[i], mine, each, out);
        if (!done[i]) done[i] = coarse(asked, m + i, q + i, k + i, at[i], mine, each, out) ? 2 : 0;
        for (r = 0; r < 3; r++) ends[r * n + i] = out[r];
    }
    return HS_OK;
}
