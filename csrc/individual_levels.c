/* individual_levels.c - what records with the same noise levels share: transforms of each level, once per contour.
 *
 * Symbols. Level j: a Poisson-subsampled Gaussian step (m_j, q_j); record i ran k_ij of them. log M_j(z), z = c + i n dy; tilts
 *   t_g > 0; Y = N dy the last node.
 *
 * Formula. K_i(z) = sum_j k_ij log M_j(z): every quantity of contour.c (log M at the nodes and at three real tilts, its error
 *   bounds, the decay beyond Y) is linear in the counts, so a record needs products of its counts with tables.
 *   hs_individual_tilts: up[j][g] >= log M_j at t_g.
 *   hs_individual_table: head[j][HS_K0..], re + i im = log phi_j at the nodes, phi = M(c + iy)/M(c).
 *
 * Error claim: that of contour.c and transform.c, for one run of the step each. What is not finite is stored as HS_CAP (for upper
 *   bounds) or 0 (decay), so that levels without counts do not spoil a sum.
 *
 * What it does not do: place the contour well. Any contour is valid; individual_epsilon.c proves each record's bound on it.
 */
#include "individual.h"

static double capped(double x) { return x < HS_CAP ? x : HS_CAP; }

/* up[j * tilts + g] >= log M_j(t_g) of direction `add`; work: HS_GRID_WORK doubles for each of HS_CHUNKS chunks. */
int hs_individual_tilts(int levels, const double *m, const double *q, int add, double k_total, int tilts, const double *t,
                        int n_threads, double *work, long n_work, double *up)
{
    int chunk;
    (void)n_threads;
    if (!(levels > 0 && tilts > 0 && k_total >= 1)) return HS_BAD_ARGUMENT;
    if (n_work < (long)HS_CHUNKS * HS_GRID_WORK) return HS_SCRATCH;
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1) if (n_threads > 1)
#endif
    for (chunk = 0; chunk < HS_CHUNKS; chunk++) {
        int at;
        for (at = chunk; at < levels * tilts; at += HS_CHUNKS) {
            int j = at / tilts;
            double s = t[at % tilts], log_m, err = 0, m2 = m[j] * m[j], *own = work + chunk * (long)HS_GRID_WORK;
            if (q[j] == 1) up[at] = 0.5 * m2 * s * (1 + s) * (1 + 8 * HS_U);
            else if (hs_log_m_upper(m[j], q[j], add ? -s : 1 + s, k_total, own, &log_m, &err)) up[at] = HS_CAP;
            else up[at] = capped(fmax(log_m + err + 4 * HS_U * fabs(log_m), 0));
        }
    }
    return HS_OK;
}

/* The worst, over each eighth of the nodes, of what one run of the step adds to the error of log phi; summing log phi included.
 * */
static void fill_head(const hs_contour *C, const hs_sums *S, int levels, double *head)
{
    long n;
    int i;
    for (i = 0; i < 8; i++) head[HS_NODES + i] = 0;
    for (n = 0; n <= C->N; n++) {
        double *part = head + HS_NODES + hs_part(C, n);
        *part = fmax(*part, capped(S->round[n] + S->node[n] + (levels + 4) * HS_U * (fabs(S->re[n]) + fabs(S->im[n]))));
    }
    head[HS_K0] = S->K[0];
    head[HS_K0_ERR] = capped(S->err[0] + S->inner[0] + (levels + 4) * HS_U * fabs(S->K[0]));
    head[HS_K_LEFT] = capped(S->K[2] + S->err[2] + S->inner[2] + (levels + 4) * HS_U * fabs(S->K[2]));
    head[HS_FAR] = fmax(0, S->gauss[0] - S->far[0]) * (1 - (levels + 4) * HS_U);
}

/* Plan a contour for the counts k (planning only), widened by `margin`. Fills C. */
int hs_individual_plan(hs_contour *C, double tilt, double log_delta, double margin, double *work, long n_work)
{
    int st;
    if (n_work < HS_GRID_WORK) return HS_SCRATCH;
    if ((st = hs_contour_plan(C, tilt, log_delta, work))) return st;
    C->P *= margin; C->dy = 2 * HS_PI / C->P;
    C->N = (long)((double)C->N * margin * margin) + 1; /* a longer period has more nodes to the same frequency */
    C->y_grid = (double)(C->N + 2) * C->dy;
    C->doublings = 1;
    return HS_OK;
}

/* Tables of all levels on the contour of C: head[levels][HS_HEADS], re and im [levels][stride], zero beyond N. C->k is 1 for
 * each level, C->ktot tells how small errors must be. work: HS_CHUNKS (HS_GRID_WORK + 4 (N+1)). */
int hs_individual_table(const hs_contour *C, long stride, double *work, long n_work, double *head, double *re, double *im)
{
    long need = HS_GRID_WORK + HS_SUMS_WORK(C->N);
    int chunk, st[HS_CHUNKS], worst = HS_OK;
    if (!(C->b > 0 && C->N >= 1 && stride > C->N)) return HS_BAD_ARGUMENT;
    if (n_work < HS_CHUNKS * need) return HS_SCRATCH;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(dynamic, 1) if (C->n_threads > 1)
#endif
    for (chunk = 0; chunk < HS_CHUNKS; chunk++) {
        double *own = work + chunk * need;
        int j;
        st[chunk] = HS_OK;
        for (j = chunk; j < C->b && !st[chunk]; j += HS_CHUNKS) {
            hs_sums S;
            memset(&S, 0, sizeof S);
            memset(own, 0, sizeof *own * (size_t)HS_SUMS_WORK(C->N));
            S.re = own; S.im = S.re + C->N + 1; S.round = S.im + C->N + 1; S.node = S.round + C->N + 1;
            if ((st[chunk] = hs_contour_visit(C, j, &S, own + HS_SUMS_WORK(C->N)))) break;
            fill_head(C, &S, C->b, head + j * HS_HEADS);
            memset(re + j * stride, 0, sizeof *re * (size_t)stride);
            memset(im + j * stride, 0, sizeof *im * (size_t)stride);
            memcpy(re + j * stride, S.re, sizeof *re * (size_t)(C->N + 1));
            memcpy(im + j * stride, S.im, sizeof *im * (size_t)(C->N + 1));
        }
    }
    for (chunk = 0; chunk < HS_CHUNKS; chunk++) worst = st[chunk] > worst ? st[chunk] : worst;
    return worst;
}
