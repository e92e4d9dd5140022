/* counts.h - the curve of a run by the numbers of its jumps, and what one jump alone adds; not for the gate. */
#ifndef HS_COUNTS_H
#define HS_COUNTS_H

#include "law/bulk.h"
#include "line/root.h"

#define HS_COUNTS_NODES 2048 /* outer nodes of its line */
#define HS_COUNTS_TERMS 4096 /* numbers of jumps that it sums */

double hs_jumps_tilt(const hs_bulk *J, double eps);
int hs_jumps_prepare(hs_bulk *J, double theta);
void hs_jumps_one(const hs_bulk *J, double eps, hs_value *v);

int64_t hs_counts_work(void);
int hs_counts_delta(double m, double q, double k, double eps, const hs_rule *rule, double *work, int64_t n_work,
                    hs_point *out);
int hs_counts_eps(double m, double q, double k, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                  hs_crossing *out);

#endif
