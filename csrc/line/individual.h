/* individual.h - the tables that many records share; not for the gate. */
#ifndef HS_INDIVIDUAL_H
#define HS_INDIVIDUAL_H

#include "line/line.h"

/* a level's columns: y_far and both ends of every band of the tail, 8 parts of the nodes */
enum {
    HS_K0,
    HS_K0_ERR,
    HS_K_LEFT,
    HS_TAIL,
    HS_TAILS = 1 + 2 * HS_BANDS,
    HS_NODES = HS_TAIL + HS_TAILS,
    HS_HEADS = HS_NODES + 8
};
#define HS_STRIDE_MAX 4096 /* nodes of a table */
#define HS_CAP 1e200       /* stands for infinity: 0 times it is 0 */

/* The least of the ends of the tail bound, from the columns HS_TAIL.. or their sums. */
static inline double hs_tail_lower(const double *tail)
{
    double least = tail[0];
    int i;
    for (i = 1; i < HS_TAILS; i++) least = fmin(least, tail[i]);
    return least;
}

int hs_individual_plan(hs_contour *C, double log_delta, double margin, double *work, int64_t n_work);
void hs_individual_lengthen(hs_contour *C, double factor);
int hs_individual_table(const hs_contour *C, int64_t stride, double *work, int64_t n_work, double *head, double *re,
                        double *im);

#endif
