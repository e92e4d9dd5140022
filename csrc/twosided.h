/* twosided.h - the inner grids of one step whose pair is a public mixture of two-sided branches; not for the gate. */
#ifndef HS_TWOSIDED_H
#define HS_TWOSIDED_H

#include "transform.h"

#define HS_TWO_ARRAYS 16
#define HS_TWO_WORK (HS_TWO_ARRAYS * (HS_INNER_MAX + 8))

typedef struct {
    hs_grid G;                        /* all branches in one row of nodes: G.l is the loss L, G.lw includes log w */
    const hs_pair *pair;
    int first[HS_BRANCHES + 1], nodes[HS_BRANCHES], strip[HS_BRANCHES]; /* where a branch starts (multiples of 8), its nodes */
    double h[HS_BRANCHES], size[HS_BRANCHES];                           /* mesh; |log h| + |log w| */
    double *u1, *u2, *l1, *l2, *lm1, *lm2;
} hs_two;

void hs_two_cgf_estimate(const hs_pair *pair, double z, double *out);
double hs_two_choose_h(const hs_pair *pair, int r, double z, double y, double target, double log_m);
int hs_two_build(hs_two *T, const hs_pair *pair, const double *h, double z_lo, double z_hi, double R, double *work);
void hs_two_moments(hs_two *T, double z, double log_m_estimate, hs_moments *out);
void hs_two_weights(hs_two *T, double z, double log_m, double *c1, double *c2);
double hs_two_quadrature_upper(hs_two *T, double z, double y);
double hs_two_real_upper(const hs_two *T, double z);
double hs_two_ends_upper(const hs_two *T, double z, double log_m);
double hs_two_dropped_upper(const hs_two *T, double z);
double hs_two_far_upper(hs_two *T, double z, double y);

#endif
