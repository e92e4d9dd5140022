/* prawitz.h - what prawitz.c and prawitz_steps.c share; not for the gate. */
#ifndef HS_PRAWITZ_H
#define HS_PRAWITZ_H

#include "law/laplace_step.h"
#include "line/root.h"
#include "line/saddle.h"
#include "line/sum.h"

#define POINTS HS_PRAWITZ_POINTS
#define N_MAX HS_PRAWITZ_NODES

typedef struct {
    hs_coarse G;
    double work[4 * HS_COARSE_ONE];
} hs_prawitz_kept; /* the coarse grid of a run of one step */

hs_cgf hs_prawitz_cgf_estimate(const hs_prawitz *S, double t); /* from every stride-th step */
int hs_prawitz_sparse(const hs_prawitz *S);                    /* the stride that leaves 48 steps or a few more */
void hs_prawitz_support(const hs_prawitz *S, int i, double *low, double *high); /* of step i */
int hs_prawitz_plan(hs_prawitz *S, double *work);                               /* sets N */
int hs_prawitz_visit(hs_prawitz *S, double *work);                              /* fills the sums; may lower `points` */

#endif
