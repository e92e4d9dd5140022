/* individual_epsilon.c - certified upper bounds of eps(delta) of many records from shared tables.
 *
 * Symbols. As in contour.c and individual_levels.c; k_j a record's counts; L = K(c) - c eps; unit = dy/2pi;
 *   lf(t) = t log t - (1+t) log1p t.
 *
 * Formula. Chernoff: eps <= (K(t) + lf(t) - log delta)/t for every t > 0 [theory: line.chernoff]; the least over a grid
 *   of tilts, which also is the contour that the record goes to. Contour [theory: individual.contour, line.aliases]:
 *     delta(eps) <= e^L [ unit (f_0 + 2 sum Re f_n) + errors ] - S,  f_n = phi(n dy)/(z_n (1 + z_n)) e^{-i eps n dy}.
 *   Newton for the estimate, then outward steps until the bound is at or below the target.
 *
 * Error terms of one record, all linear in its counts before they are used [theory: individual.linear]: quadrature and
 *   rounding of log M at the nodes (the worst of an eighth of them counts for all of it), of K(c), the alias at a tilt
 *   s_left in [-1, 0], the tail beyond the last node, rounding of the sum.
 *   A bound that does not come out leaves Chernoff's in place.
 *
 * What it does not do: lower bounds; eps below 0 (0 is returned).
 */
#include "line/individual.h"

#define TILTS_MAX 96
#define LANES 64 /* nodes at a time: a multiple of every vector length */

HS_CLONES static void add_row(int n, double k, const double *restrict row, double *restrict sum)
{
    int i;
    for (i = 0; i < n; i++) sum[i] += k * row[i];
}

/* best[i] = least Chernoff bound of eps of record i (at least 0), which[i] = its tilt. K_t > 0 grows by (levels +
 * 4)u in summing. */
int hs_individual_chernoff(const hs_counts *counts, int tilts, const double *t, const double *up, double log_delta,
                           const hs_lent *lent, double *best, int32_t *which)
{
    int levels = counts->levels;
    double base[TILTS_MAX];
    int64_t i;
    int g;
    if (!(tilts > 0 && tilts <= TILTS_MAX && levels > 0 && log_delta < 0)) return HS_BAD_ARGUMENT;
    for (g = 0; g < tilts; g++)
        base[g] = hs_payoff(t[g]) - log_delta + 8 * HS_U * (fabs(hs_payoff(t[g])) + fabs(log_delta) + 1);
#ifdef _OPENMP
#pragma omp parallel for num_threads(lent->n_threads) schedule(static) if (lent->n_threads > 1)
#endif
    for (i = 0; i < counts->records; i++) {
        const int32_t *k = counts->k + i * levels;
        double K[TILTS_MAX] = {0}, least = HUGE_VAL, at;
        int j, h, found = 0, ran = 0;
        if (hs_stopped(lent->poll, (double)levels * tilts)) continue;
        for (j = 0; j < levels; j++)
            if (k[j]) {
                add_row(tilts, k[j], up + (int64_t)j * tilts, K);
                ran = 1;
            }
        for (h = 0; h < tilts; h++) {
            at = (K[h] * (1 + (levels + 4) * HS_U) + base[h]) / t[h];
            if (at < least) {
                least = at;
                found = h;
            }
        }
        best[i] = ran ? fmax(0, hs_up(least)) : 0;
        which[i] = found;
    }
    return HS_OK;
}

typedef struct {
    const hs_contour *C;
    double head[HS_HEADS], fr[HS_STRIDE_MAX], fi[HS_STRIDE_MAX], eps0;
    double abs_sum[8], tail, phase; /* phase: the largest */
    int nodes;                      /* padded to a multiple of 8 with zeros */
} record;

/* The record's sums over levels. */
HS_CLONES static void gather(record *R, const hs_contour *C, int levels, const int32_t *k, int64_t stride,
                             const double *head, const double *re, const double *im)
{
    double *restrict fr = R->fr, *restrict fi = R->fi;
    int n, i, j, nodes = (int)((C->N + 8) / 8 * 8);
    R->C = C;
    R->nodes = nodes;
    memset(R->head, 0, sizeof R->head);
    memset(fr, 0, sizeof *fr * (size_t)nodes);
    memset(fi, 0, sizeof *fi * (size_t)nodes);
    for (j = 0; j < levels; j++)
        if (k[j]) {
            const double *restrict rr = re + j * stride, *restrict ri = im + j * stride;
            double kj = k[j];
            for (n = 0; n < nodes; n++) {
                fr[n] += kj * rr[n];
                fi[n] += kj * ri[n];
            }
            for (i = 0; i < HS_HEADS; i++) R->head[i] += kj * head[j * HS_HEADS + i]; /* [theory: individual.linear] */
        }
}

/* 2 f_n at eps0 in place of log phi at the nodes n0 + n, n < count; |2 f_n| in size. */
static inline void freeze_block(const hs_contour *C, double eps0, double n0, int count, double *restrict re,
                                double *restrict im, double *restrict size)
{
    double c = C->c, dy = C->dy, cc = c * (1 + c), c2 = 1 + 2 * c;
    int n;
    for (n = 0; n < count; n++) {
        double y = (n0 + (double)n) * dy, dr = cc - y * y, di = y * c2, den = dr * dr + di * di;
        double x = re[n], co, si, mag;
        hs_cis_m1(im[n] - eps0 * y, &co, &si);
        co += 1;
        mag = 2 * hs_exp(x < 0.5 ? x : 0.5) / den; /* |phi| <= 1: more is rounding */
        re[n] = mag * (co * dr + si * di);
        im[n] = mag * (si * dr - co * di);
        size[n] = mag * sqrt(den);
    }
}

/* f_n at eps0, weighted 1, 2, 2, ..., in place of log phi; sums of |f_n| by eighths; the largest phase. */
HS_CLONES static void record_freeze(record *R, double log_delta)
{
    const hs_contour *C = R->C;
    double *restrict fr = R->fr, *restrict fi = R->fi, c = C->c;
    double Y = (double)C->N * C->dy, eps0, size[LANES], top = 0;
    int n, n0, part = 0;
    int eighth = (int)(C->N + 1) / 8, nodes = R->nodes;
    /* leading order of the saddle point: a start */
    eps0 = (R->head[HS_K0] - log_delta - log(c * (1 + c) * C->sd * 2.5)) / c;
    memset(R->abs_sum, 0, sizeof R->abs_sum);
    for (n = 0; n < nodes; n++) top = fabs(fi[n]) > top ? fabs(fi[n]) : top;
    for (n0 = 0; n0 < nodes; n0 += LANES) {
        int count = nodes - n0 < LANES ? nodes - n0 : LANES;
        freeze_block(C, eps0, n0, count, fr + n0, fi + n0, size);
        if (n0 == 0) {
            fr[0] *= 0.5;
            fi[0] *= 0.5;
            size[0] *= 0.5;
        }
        for (n = 0; n < count && n0 + n <= C->N; n++) {
            if (n0 + n >= (part + 1) * eighth) part++;
            R->abs_sum[part] += size[n];
        }
    }
    for (n = (int)C->N + 1; n < nodes; n++) fr[n] = fi[n] = 0;
    R->eps0 = eps0;
    R->phase = top + fabs(eps0) * Y;
    R->tail = exp(-hs_tail_lower(R->head + HS_TAIL)) / (HS_PI * Y);
    R->tail *= (1 + C->dy / Y) * (1 + 1e-9);
}

/* The upper end of delta(eps), and its estimate, which stands for the lower one as well. */
static void record_at(const void *frozen, double eps, hs_value *v)
{
    const record *R = (const record *)frozen;
    const hs_contour *C = R->C;
    const hs_nodes F = {
        .c = C->c, .dy = C->dy, .eps = R->eps0, .N = C->N, .re = (double *)R->fr, .im = (double *)R->fi};
    double c = C->c, P = C->P, unit = C->dy / (2 * HS_PI);
    double K = R->head[HS_K0], L = K - c * eps;
    double S, slope, known, known_err;
    double up, whole;
    double y_max = (double)C->N * C->dy, s = C->s_left, error = 0;
    int i;
    memset(v, 0, sizeof *v);
    v->upper = HUGE_VAL;
    if (!(R->phase + y_max * fabs(eps) < 8e5)) return; /* hs_cis ends there */
    hs_nodes_sum(&F, eps, &S, &slope);
    known = hs_known_aliases(c, P, eps, L, s < 0, s < -1, &known_err);
    v->log_scale = L;
    v->value = v->lower = unit * S - known;
    v->slope = unit * slope;
    for (i = 0; i < 8; i++) { /* phases, exp, two rotations, division: 60u; the sum: nodes u */
        double rounded = 8 * y_max * (fabs(eps) + fabs(R->eps0)) + R->nodes + 60;
        error += R->abs_sum[i] * hs_grown_upper(R->head[HS_NODES + i] + HS_U * rounded);
    }
    whole = R->head[HS_K0_ERR] + 4 * HS_U * (fabs(K) + fabs(c * eps));
    up = unit * S + unit * error + R->tail;
    /* [theory: individual.contour, line.aliases] */
    if (s < 0 && s >= -1) up += hs_aliases_upper(c, P, eps, L, hs_side_at(c, P, s, R->head[HS_K_LEFT]));
    up = up * exp(fmin(whole, 1e3)) - known + known_err;
    v->upper = up * (1 + 8 * HS_U * (2 + fabs(L)));
}

/* A certified upper bound of eps, or HUGE_VAL; *gap: how far it lies above the estimate. */
static double record_eps_upper(const record *R, double log_delta, double *gap)
{
    double c = R->C->c, eps, left, upper;
    hs_curve curve = {.at = record_at, .self = R, .log_delta = log_delta, .start = R->eps0, .reach = HUGE_VAL};
    hs_value v;
    curve.step = 4 / c;
    curve.bend = 1 + c;
    curve.enough = 1e-8 / c;
    if (hs_root_estimate(&curve, &eps, &left, &v)) return HUGE_VAL;
    eps = fmax(eps, 0);
    if (!(hs_root_bracket(&curve, eps, left, &v, NULL, &upper) & 2)) return HUGE_VAL;
    *gap = upper - eps;
    return upper;
}

static void solve_all(const hs_contour *C, const hs_counts *counts, int64_t stride, const double *head,
                      const double *re, const double *im, double log_delta, double *eps_upper, double *gap)
{
    int64_t i;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(static) if (C->n_threads > 1)
#endif
    for (i = 0; i < counts->records; i++) {
        record R;
        double eps;
        if (hs_stopped(C->poll, (double)C->N * (C->run.b + 40))) continue;
        gather(&R, C, C->run.b, counts->k + i * C->run.b, stride, head, re, im);
        record_freeze(&R, log_delta);
        eps = record_eps_upper(&R, log_delta, &gap[i]);
        if (!(eps < eps_upper[i])) gap[i] = HUGE_VAL;
        else eps_upper[i] = eps;
    }
}

int64_t hs_individual_work(int levels)
{ return HS_CHUNKS * hs_contour_work(1, 1, HS_STRIDE_MAX) + (int64_t)levels * (HS_HEADS + 2 * HS_STRIDE_MAX); }

/* The least of the ends of the tail bound for counts k. */
static double tail_nats_lower(int levels, const double *k, const double *head)
{
    double sum[HS_TAILS] = {0};
    int i, j;
    for (j = 0; j < levels; j++)
        for (i = 0; i < HS_TAILS; i++) sum[i] += k[j] * head[j * HS_HEADS + HS_TAIL + i];
    return hs_tail_lower(sum);
}

/* eps_upper[i] (holding a valid bound, Chernoff's say) is lowered to that of a contour placed for counts k, widened
 * by `margin`. T0 nats is how far aliases and tail should lie below delta. gap[i]: bound less estimate, infinite
 * where the bound stayed. */
int hs_individual_group(const hs_run *levels, const hs_counts *counts, double margin, double T0, double k_total,
                        double log_delta, const hs_lent *lent, double *eps_upper, double *gap)
{
    int64_t b = levels->b, n_work = lent->n_work;
    double *head = lent->work, *re = head + b * HS_HEADS, *im = re + b * HS_STRIDE_MAX, *rest;
    hs_contour C = {.run = *levels};
    int st, attempt;
    int64_t stride;
    if (!(b > 0 && margin >= 1 && k_total >= 1 && counts->records >= 0 && lent->n_threads > 0)) return HS_BAD_ARGUMENT;
    if (counts->levels != b) return HS_BAD_ARGUMENT;
    if (n_work < hs_individual_work(levels->b)) return HS_SCRATCH;
    rest = im + b * HS_STRIDE_MAX;
    n_work -= rest - lent->work;
    C.n_threads = lent->n_threads;
    C.T0 = T0;
    C.n_max = HS_STRIDE_MAX;
    C.poll = lent->poll;
    if ((st = hs_individual_plan(&C, log_delta, margin, rest, n_work))) return st;
    C.ktot = k_total;
    for (attempt = 0;; attempt++) {
        stride = (C.N + 8) / 8 * 8;
        if (stride > HS_STRIDE_MAX) return HS_TOO_MANY_NODES;
        if ((st = hs_individual_table(&C, stride, rest, n_work, head, re, im))) return st;
        if (tail_nats_lower(levels->b, levels->k, head) > T0 || attempt == 4) break;
        if (attempt == 0) C.y_far = 0; /* moments did not do: Psi alone */
        hs_individual_lengthen(&C, 1.3);
    }
    solve_all(&C, counts, stride, head, re, im, log_delta, eps_upper, gap);
    return HS_OK;
}
