/* individual_levels.c - what records with the same noise levels share: transforms of each level, once per contour.
 *
 * Symbols. Level j: a Poisson-subsampled Gaussian step (m_j, q_j); record i ran k_ij of them. log M_j(z), z = c + i n
 *   dy; tilts t_g > 0; Y = N dy the last node.
 *
 * Formula. K_i(z) = sum_j k_ij log M_j(z): every quantity of contour.c (log M at the nodes and at three real tilts, its
 *   error bounds, the decay beyond Y) is linear in the counts [theory: individual.linear], so a record needs products
 *   of its counts with tables. hs_individual_tilts: up[j][g] >= log M_j at t_g.
 *   hs_individual_table: head[j][HS_K0..], re + i im = log phi_j at the nodes, phi = M(c + iy)/M(c).
 *
 * Error claim: that of contour.c and transform.c, for one run of the step each. What is not finite is stored as HS_CAP
 *   (for upper bounds) or 0 (decay), so that levels without counts do not spoil a sum.
 *
 * What it does not do: place the contour well. Any contour is valid; individual_epsilon.c proves each record's bound on
 * it.
 */
#include "line/individual.h"

static double capped(double x) { return x < HS_CAP ? x : HS_CAP; }

/* up[j * tilts + g] >= log M_j(t_g) in the direction of `levels`; work: HS_GRID_WORK doubles for each of HS_CHUNKS
 * chunks. */
int hs_individual_tilts(const hs_run *levels, double k_total, int tilts, const double *t, const hs_lent *lent,
                        double *up)
{
    const double *m = levels->m, *q = levels->q;
    int chunk;
    if (!(levels->b > 0 && tilts > 0 && k_total >= 1)) return HS_BAD_ARGUMENT;
    if (lent->n_work < (int64_t)HS_CHUNKS * HS_GRID_WORK) return HS_SCRATCH;
#ifdef _OPENMP
#pragma omp parallel for num_threads(lent->n_threads) schedule(dynamic, 1) if (lent->n_threads > 1)
#endif
    for (chunk = 0; chunk < HS_CHUNKS; chunk++) {
        int at;
        for (at = chunk; at < levels->b * tilts && !hs_stopped(lent->poll, 3e4); at += HS_CHUNKS) {
            int j = at / tilts;
            double s = t[at % tilts], log_m, err = 0;
            double m2 = m[j] * m[j], *own = lent->work + chunk * (int64_t)HS_GRID_WORK;
            if (q[j] == 1) up[at] = hs_up(0.5 * m2 * s * (1 + s));
            else if (hs_log_m_upper(m[j], q[j], levels->add ? -s : 1 + s, k_total, own, &log_m, &err)) up[at] = HS_CAP;
            else up[at] = capped(fmax(log_m + err + 4 * HS_U * fabs(log_m), 0));
        }
    }
    return HS_OK;
}

/* Lower bounds, per run, of -log|phi| in the places where the tail bound of contour_visit.c takes its least: y_far,
 * by Psi, and the two ends of every band of the moments. Places that are not needed repeat the first. */
static void fill_tail(const hs_contour *C, const hs_sums *S, double *tail)
{
    int i;
    for (i = 0; i < HS_TAILS; i++) tail[i] = -S->far[0];
    if (C->y_far > (double)C->N * C->dy)
        for (i = 0; i < 2 * C->bands; i++) tail[1 + i] = hs_band_lower(C, S, i);
}

/* Nodes 0..C->N of one visit, where they are better than what the table has: the worst, over each eighth of all
 * nodes, of what one run adds to the error of log phi; summing log phi included. parts: how many eighths C->N
 * covers. */
static void fill_nodes(const hs_contour *C, const hs_sums *S, int levels, int parts, double *head, double *re,
                       double *im)
{
    double worst[8] = {0};
    int64_t n, all = (C->N + 1) * 8 / parts;
    int i;
    for (n = 0; n <= C->N; n++) {
        i = (int)(8 * n / all);
        worst[i] =
            fmax(worst[i], capped(S->round[n] + S->node[n] + (levels + 4) * HS_U * (fabs(S->re[n]) + fabs(S->im[n]))));
    }
    for (n = 0; n <= C->N; n++) {
        i = (int)(8 * n / all);
        if (worst[i] < head[HS_NODES + i]) {
            re[n] = S->re[n];
            im[n] = S->im[n];
        }
    }
    for (i = 0; i < parts; i++) head[HS_NODES + i] = fmin(head[HS_NODES + i], worst[i]);
}

static void fill_head(const hs_contour *C, const hs_sums *S, int levels, double *head)
{
    const double off = (levels + 4) * HS_U; /* of a sum over levels */
    int i;
    for (i = 0; i < 8; i++) head[HS_NODES + i] = HUGE_VAL;
    head[HS_K0] = S->K[0];
    head[HS_K0_ERR] = capped(S->err[0] + S->inner[0] + off * fabs(S->K[0]));
    head[HS_K_LEFT] = capped(S->K[2] + S->err[2] + S->inner[2] + off * fabs(S->K[2]));
    fill_tail(C, S, head + HS_TAIL);
    for (i = 0; i < HS_TAILS; i++) { /* NaN and -inf become a bound that bounds nothing */
        double *tail = head + HS_TAIL + i;
        *tail = *tail > -HS_CAP ? *tail - off * fabs(*tail) : -HS_CAP;
    }
}

/* More nodes, to a frequency `factor` times as high. */
void hs_individual_lengthen(hs_contour *C, double factor)
{
    C->N = (int64_t)ceil((factor * (double)C->N + 1) / 8) * 8 - 1; /* eighths of whole nodes */
    C->y_far = fmax(C->y_far,
                    (double)C->N * C->dy); /* Psi alone where the metric was planned: it is not linear in the counts */
    C->y_grid = fmax((double)(C->N + 2) * C->dy, C->y_far);
}

/* Plan a contour for the counts k (planning only), its period widened by `margin`. Fills C. work: that of one chunk. */
int hs_individual_plan(hs_contour *C, double log_delta, double margin, double *work, int64_t n_work)
{
    int st;
    if (n_work < HS_GRID_WORK) return HS_SCRATCH;
    if ((st = hs_contour_place(C, 0, log_delta, 1, work)) || (st = hs_contour_plan(C, work))) return st;
    C->P *= margin;
    C->dy = 2 * HS_PI / C->P;
    hs_individual_lengthen(C, margin * margin); /* a longer period has more nodes to the same frequency */
    return HS_OK;
}

/* One level. Where the quadrature bound, taken at the highest frequency, is too large for the many runs of a record,
 * the low nodes are visited again by themselves, where it is smaller. */
static int fill_level(const hs_contour *C, int j, int64_t stride, double *work, double *head, double *re, double *im)
{
    static const double one = 1;
    hs_contour own = *C;
    hs_sums S;
    int st, parts;
    own.poll = NULL;
    own.run.b = own.chunks = own.n_threads = 1;
    own.run.m += j;
    own.run.q += j;
    own.run.k = &one;
    own.cancelled = 6; /* records unlike the planned one: a finer quadrature for the same nodes */
    if ((st = hs_contour_visit(&own, work, &S))) return st;
    memset(re, 0, sizeof *re * (size_t)stride);
    memset(im, 0, sizeof *im * (size_t)stride);
    fill_head(C, &S, C->run.b, head);
    fill_nodes(C, &S, C->run.b, 8, head, re, im);
    for (parts = 4; parts >= 1 && C->ktot * head[HS_NODES] > 1e-9; parts /= 2) {
        own.N = (C->N + 1) * parts / 8 - 1;
        if (own.N < 8) break;
        own.y_far = (double)own.N * own.dy;
        own.y_grid = (double)(own.N + 2) * own.dy;
        if (hs_contour_visit(&own, work, &S)) break;
        fill_nodes(&own, &S, C->run.b, parts, head, re, im);
    }
    return HS_OK;
}

/* Tables of all levels on the contour of C: head[levels][HS_HEADS], re and im [levels][stride], zero beyond N. Every
 * level is visited as one run; C->ktot tells how small errors must be. work: HS_CHUNKS hs_contour_work(1, 1, N). */
int hs_individual_table(const hs_contour *C, int64_t stride, double *work, int64_t n_work, double *head, double *re,
                        double *im)
{
    int64_t need = hs_contour_work(1, 1, C->N);
    int chunk, st[HS_CHUNKS], worst = HS_OK;
    if (!(C->run.b > 0 && (C->N + 1) % 8 == 0 && stride > C->N)) return HS_BAD_ARGUMENT;
    if (n_work < HS_CHUNKS * need) return HS_SCRATCH;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(dynamic, 1) if (C->n_threads > 1)
#endif
    for (chunk = 0; chunk < HS_CHUNKS; chunk++) {
        int j;
        for (st[chunk] = HS_OK, j = chunk; j < C->run.b && !st[chunk]; j += HS_CHUNKS)
            st[chunk] = hs_stopped(C->poll, 4e4 + 300 * (double)C->N)
                            ? HS_INTERRUPTED
                            : fill_level(C, j, stride, work + chunk * need, head + j * HS_HEADS, re + j * stride,
                                         im + j * stride);
    }
    for (chunk = 0; chunk < HS_CHUNKS; chunk++) worst = st[chunk] > worst ? st[chunk] : worst;
    return worst;
}
