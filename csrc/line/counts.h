/* counts.h - the curve of a run by the numbers of its jumps, and what one jump alone adds; not for the gate. */
#ifndef HS_COUNTS_H
#define HS_COUNTS_H

#include "law/bulk.h"
#include "line/root.h"

#define HS_COUNTS_NODES 2048 /* outer nodes of its line */
#define HS_COUNTS_TERMS 4096 /* numbers of jumps that it sums */

#define HS_JUMPS_LAYERS 24 /* of sums over losses */

/* Masses of jumps of every step in the unit of the run: num, num - den, den; rel: the error of num. */
typedef struct {
    double p[HS_JUMPS_STEPS], u[HS_JUMPS_STEPS], den[HS_JUMPS_STEPS], rel;
} hs_jump_masses;

/* A run of n distinct steps that are cut at one loss (jumps.c). */
typedef struct {
    int n, own;        /* own: the step that jumps most */
    int plain, radius; /* whether all steps are plain; the number of the radius that is best, 0 where none is known */
    hs_bulk *step;     /* each with its own k */
    double count, low, high; /* of all steps; the least loss of a jump, the largest of a bulk */
    double mean, log_unit;   /* of one loss of the bulks, about */
    double log_all[HS_BULK_TILTS], log_least[HS_BULK_TILTS];      /* log B of all and the least of one, at most */
    int cells, layers;                                            /* of the first of two jumps, and of their sum */
    double two_at[HS_JUMPS_LAYERS + 1], two[HS_JUMPS_LAYERS + 1]; /* losses, and logs of pay-offs of two jumps there */
    hs_jump_masses masses;
} hs_jumps;

double hs_jumps_tilt(const hs_jumps *A, double eps);
int hs_jumps_prepare(hs_jumps *A, double theta);
void hs_jumps_one(const hs_jumps *A, double eps, hs_value *v);

int64_t hs_counts_work(void);
int hs_counts_delta(double m, double q, double k, double eps, const hs_rule *rule, double *work, int64_t n_work,
                    hs_point *out);
int hs_counts_eps(double m, double q, double k, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                  hs_crossing *out);

#endif
