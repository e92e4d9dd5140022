/* sum.h - the nodes of a line and their sum; not for the gate. */
#ifndef HS_SUM_H
#define HS_SUM_H

#include "line/metric.h"
#include <stdint.h>

/* The nodes z_n = c + i n dy, n = 0..N, for eps and all within reach of it. */
typedef struct {
    double c, dy;
    double eps, reach;
    int64_t N;
    double *re, *im;            /* log f at the nodes; once frozen, f_n of sum.c */
    const double *round, *node; /* bounds of the errors of log f: rounding, quadrature */
    double *a, *b;              /* scratch, N + 1 doubles each */
    double rounding, inner;     /* once frozen: bounds of the sums of the errors of f_n */
} hs_nodes;

void hs_nodes_freeze(hs_nodes *F);

/* sum Re f_n e^{-i (eps - F->eps) n dy}, and the same with z_n f_n; of F: c, dy, eps, N and frozen re, im. */
void hs_nodes_sum(const hs_nodes *F, double eps, double *value, double *slope);

#endif
