/* kept.c - a line that is asked again and again while its run grows: what is new is added to its nodes.
 *
 * Symbols as in contour.c. R the steps that the line was made for, R' those and more; K_o >= log M(t) + payoff(t) of
 *   the run in the other direction, t > 0 a tilt.
 *
 * Formula. K, the logarithms at the nodes and all their errors are sums over steps: those of R' are those of R and of
 *   each new step. -sum k log|phi| only grows with the run, so that the bound of the tail beyond the nodes, which is
 *   relative to e^{K(c) - c eps}, is kept as it is [theory: line.kept]. K_o - t eps bounds log delta(eps) of the
 *   other direction [theory: line.chernoff].
 *
 * Error claim. That of contour.c, for the sums of at most HS_KEPT_MORE more steps.
 *
 * A line of C->more = 0 takes in nothing and knows nothing of the other direction: it is that of a part of the curve,
 *   whose points are asked of it one by one (routes/placed.py) [theory: line.near].
 *
 * Steps of a replaced record, C->sides = 2, are added as two-sided pairs: their curve is one in both directions, so
 *   that nothing is kept of the other.
 *
 * What it does not do: lines of more than HS_KEPT_NODES nodes; move c, dy or N. A run that has grown far beyond R, or
 *   whose root has moved beyond reach, is HS_LOOSE or declined: it needs a line of its own.
 */
#include "line/line.h"

#include <string.h>

typedef struct {
    hs_contour C;
    hs_sums S;
    double t, K_o; /* of the other direction; HUGE_VAL where nothing is known */
} kept_line;

enum { HEAD = (sizeof(kept_line) + sizeof(double) - 1) / sizeof(double), ROWS = 5 };

int64_t hs_kept_room(void) { return HEAD + ROWS * (int64_t)(HS_KEPT_NODES + 1); }

int64_t hs_kept_size(const double *kept, int64_t n)
{ return n < HEAD ? HEAD : HEAD + ROWS * (((const kept_line *)kept)->C.N + 1); }

int64_t hs_kept_work(void) { return HS_STEP_WORK + HS_SUMS_WORK(HS_KEPT_NODES); }

/* The arrays of S in memory of 5 or 7 (N + 1) doubles. */
static void place_rows(const hs_contour *C, hs_sums *S, double *rows, int scratch)
{
    int64_t size = C->N + 1;
    S->re = rows;
    S->im = rows + size;
    S->round = rows + 2 * size;
    S->node = rows + 3 * size;
    S->fit = rows + 4 * size;
    S->zr = scratch ? rows + 5 * size : NULL;
    S->zi = scratch ? rows + 6 * size : NULL;
}

/* log M of a step, times k, in the other direction, rounded up. */
static double other_upper(const kept_line *L, double m, double q, double k, double *work)
{
    double log_m, err;
    if (!(L->K_o < HUGE_VAL)) return HUGE_VAL;
    if (q == 1) return hs_up(0.5 * k * m * m * L->t * (1 + L->t));
    if (hs_log_m_upper(m, q, L->C.run.add ? 1 + L->t : -L->t, k, work, &log_m, &err)) return HUGE_VAL;
    return k * (log_m + err) + 4 * HS_U * k * (fabs(log_m) + err);
}

/* The tilt of the other direction's bound at eps, and the bound without - t eps: Chernoff's, or that of a law near a
 * normal one. Near the largest loss of ADD there is no saddle: then some larger tilt. */
static void make_other(kept_line *L, const hs_contour *C, double eps, double *work, int64_t n_work)
{
    const hs_lent lent = {work, n_work, 1, C->poll};
    hs_contour D = *C;
    double upper;
    D.run.add = !C->run.add;
    D.t = 0;
    L->K_o = HUGE_VAL;
    if (hs_contour_chernoff_upper(&D, 1, eps, work, n_work, &upper) != HS_OK) {
        D.t = 4 * C->t;
        if (hs_contour_chernoff_upper(&D, 1, eps, work, n_work, &upper) != HS_OK) return;
    }
    L->t = D.t;
    L->K_o = upper + eps * D.t + 1e-12 * (fabs(upper) + fabs(eps * D.t)); /* it only decides, and may be loose */
    if (hs_saddle_ceiling_upper(&D.run, D.t, &lent, &upper) == HS_OK) L->K_o = fmin(L->K_o, upper);
}

/* Adds n steps, rows of (m, q, k), to the sums of a line. */
static int add_steps(kept_line *L, int64_t n, const double *rows, double *scratch, double *work)
{
    hs_sums S = L->S;
    int64_t i;
    int st;
    S.zr = scratch;
    S.zi = scratch + L->C.N + 1;
    for (i = 0; i < n; i++, rows += 3) {
        if ((st = hs_contour_visit_more(&L->C, rows[0], rows[1], rows[2], &S, work))) return st;
        L->K_o += other_upper(L, rows[0], rows[1], rows[2], work) + 2 * HS_U * fabs(L->K_o);
    }
    L->S = S;
    return HS_OK;
}

/* The arrays of a line that nothing is added to for good, as a copy. */
static void copy_line(const double *kept, kept_line *L, double *rows)
{
    *L = *(const kept_line *)kept;
    memcpy(rows, kept + HEAD, sizeof(double) * ROWS * (size_t)(L->C.N + 1));
    place_rows(&L->C, &L->S, rows, 1);
}

static int kept_answer(kept_line *L, int have_eps, double value, hs_crossing *out, double *below)
{
    int st, i;
    for (i = 0; i < 3; i++) {
        L->S.err[i] *= 1 + HS_SUMS;
        L->S.inner[i] *= 1 + HS_SUMS;
    }
    if (have_eps) L->C.eps = value;
    L->C.S = &L->S;
    hs_line_freeze(&L->C, &L->S);
    st = hs_line_answer(&L->C, have_eps, value, out);
    *below = HUGE_VAL;
    if (st <= HS_LOOSE && L->K_o < HUGE_VAL) {
        double most = L->t * (fabs(out->lower) + 1) + fabs(L->K_o);
        *below = L->K_o - L->t * out->lower + 8 * HS_U * most;
    }
    return st;
}

/* HS_BAD_ARGUMENT, with the line as it was, where more steps would be added than there is room for; after another error
 * the line is lost. */
int hs_kept_ask(double *kept, const hs_more *more, int have_eps, double value, double *work, int64_t n_work,
                hs_crossing *out, double *below)
{
    kept_line *L = (kept_line *)kept, asked;
    double *scratch = work + HS_STEP_WORK;
    int64_t n_kept = more->n_kept;
    int st;
    if (n_work < hs_kept_work()) return HS_SCRATCH;
    if (!(0 <= n_kept && n_kept <= more->n && more->n <= L->C.more)) return HS_BAD_ARGUMENT;
    place_rows(&L->C, &L->S, kept + HEAD, 0);
    if ((st = add_steps(L, n_kept, more->rows, scratch, work))) return st;
    L->C.more -= (int)n_kept;
    copy_line(kept, &asked, scratch);
    if ((st = add_steps(&asked, more->n - n_kept, more->rows + 3 * n_kept, asked.S.zr, work))) return st;
    st = kept_answer(&asked, have_eps, value, out, below);
    if (st <= HS_LOOSE && !have_eps && n_kept) L->C.eps = out->estimate; /* where the next root is sought from */
    return st;
}

/* A line at one depth. */
static int make_at(hs_contour *C, int have_eps, double value, double depth, double *work, int64_t n_work, double *kept)
{
    kept_line *L = (kept_line *)kept;
    hs_sums S[HS_CHUNKS];
    int st;
    C->eps = value;
    if ((st = hs_line_visit(C, have_eps, value, depth, work, n_work, S))) return st;
    if (C->N > HS_KEPT_NODES) return HS_TOO_MANY_NODES;
    L->C = *C;
    L->S = *S;
    place_rows(C, &L->S, kept + HEAD, 0);
    memmove(L->S.re, S->re, sizeof(double) * ROWS * (size_t)(C->N + 1));
    L->t = 0;
    L->K_o = HUGE_VAL;
    if (C->more && C->sides != 2) make_other(L, C, C->eps, work, n_work);
    L->C.run.m = L->C.run.q = L->C.run.k = NULL;
    L->C.run.pair = NULL; /* hs_contour_visit_more makes its own */
    L->C.run.fits = NULL; /* their errors are in the sums */
    L->C.poll = NULL;
    L->C.y_far = -1; /* the tail is known */
    L->C.far_mesh = 0;
    L->C.fine = L->C.doublings = 0;
    L->C.bands = 1;
    return HS_OK;
}

/* A line at one depth, and what it answers. */
static int try_at(hs_contour *C, int have_eps, double value, double depth, double *work, int64_t n_work, double *kept,
                  hs_crossing *at)
{
    const hs_more none = {0, 0, NULL};
    double below;
    int st = make_at(C, have_eps, value, depth, work, n_work, kept);
    return st ? st : hs_kept_ask(kept, &none, have_eps, value, work, n_work, at, &below);
}

/* Whether the sampled steps of a line are what those that it takes in will be: pairs or none. */
static int takes_more(const hs_contour *C)
{
    int64_t j;
    for (j = 0; j < C->run.b; j++)
        if (C->sides == 2 ? C->run.q[j] < 1 && !hs_is_pair(C, j) : hs_is_pair(C, j)) return 0;
    return 1;
}

/* The first line that answers to rtol or, HS_LOOSE, to HS_KEPT_LOOSE rtol, at one of the depths of contour.c; where
 * there is none, HS_LOOSE, the narrowest before a lower line was not half as wide, if it is narrow enough to be asked.
 * C->more: most steps that it is to take in; while its run grows, HS_KEPT_LOOSE rtol will do, or twice its width. */
int hs_kept_make(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, double *kept)
{
    hs_crossing at = {0};
    double loose = (C->more ? HS_KEPT_LOOSE : 1) * C->rtol, best = HUGE_VAL, width = HUGE_VAL, most;
    int i, depth = 0, st = HS_TOO_MANY_NODES;
    if (C->more && !takes_more(C)) return HS_BAD_ARGUMENT;
    if (n_work < hs_kept_work()) return HS_SCRATCH;
    for (C->ktot = 0, i = 0; i < C->run.b; i++) C->ktot += C->run.k[i];
    /* the more, the more rounding is paid for, which is little beside that of many steps */
    most = fmin(C->run.n_fits ? HS_KEPT_RULED : HS_KEPT_SOME, 8 + 0.5 * C->ktot);
    if (!C->run.n_fits) most = fmin(HS_KEPT_MORE, fmax(most, C->run.b / 4));
    C->more = (int)fmin(C->more, most);
    for (i = 0; i < HS_DEPTHS && st != HS_NO_SADDLE; i++) {
        st = try_at(C, have_eps, value, hs_depths[i], work, n_work, kept, &at);
        if (st == HS_TOO_WIDE && C->run.n_fits && !C->run.apart && C->more) return st; /* the next rule is asked */
        if (st > HS_LOOSE) continue;
        width = (at.delta.upper - at.delta.lower) / at.delta.estimate;
        if (st == HS_OK || width < 2 * loose) {
            ((kept_line *)kept)->C.rtol = loose;
            return st;
        }
        if (!(width < 0.5 * best)) break;
        best = width;
        depth = i;
        if (4 * at.delta.rounding > at.delta.upper - at.delta.lower) break; /* which only grows below */
    }
    if (!(best < HUGE_VAL)) return st;
    if (width > 2 * best || st > HS_LOOSE) st = try_at(C, have_eps, value, hs_depths[depth], work, n_work, kept, &at);
    width = (at.delta.upper - at.delta.lower) / at.delta.estimate;
    if (st > HS_LOOSE || !((have_eps ? width : (at.upper - at.lower) / fabs(at.estimate)) < HS_KEPT_WIDE))
        return HS_TOO_WIDE;
    if (C->more) ((kept_line *)kept)->C.rtol = 2 * width;
    return HS_LOOSE;
}
