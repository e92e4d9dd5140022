/* sum.h - the nodes of a line and their sum; not for the gate. */
#ifndef HS_SUM_H
#define HS_SUM_H

#include "hs.h"
#include "line/metric.h"

/* The nodes z_n = c + i n dy, n = 0..N, for eps and all within reach of it. On a period of a lattice of step s, of
 * `period` nodes, losses are in units of s: c is a tilt times s, dy is 2 pi/period, eps is a whole number. */
typedef struct {
    double c, dy;
    double eps, reach;
    int64_t N;
    double period, step;        /* 0 on a line */
    double kernel;              /* what the kernel of a node may be off by, in parts of it, beside rounding */
    double *re, *im;            /* log f at the nodes; once frozen, f_n of sum.c */
    const double *round, *node; /* bounds of the errors of log f: rounding; quadrature and rules */
    const double *fit;          /* the part of rules in node, or NULL where there are none */
    double rounding;            /* once frozen: bounds of the sums of the errors of f_n */
    double inner, fitted;       /* quadrature's and the rules', who share an error of f_n as they do that of log f_n */
} hs_nodes;

void hs_nodes_freeze(hs_nodes *F);

/* The aliases left of a line at c > 0 whose delta is known, 1 - e^x: the sums of 1 and of e^x as far as they are asked
 * for, the first less the second, over e^log_scale, and what both are off by [theory: line.known-aliases]. */
static inline double hs_known_aliases(double c, double P, double eps, double log_scale, int ones, int powers,
                                      double *rounding)
{
    double S1 = ones ? exp(-log_scale) / expm1(c * P) : 0, S2 = powers ? exp(eps - log_scale) / expm1((c + 1) * P) : 0;
    *rounding = 16 * HS_U * (2 + c * P + P + fabs(eps) + fabs(log_scale)) * (S1 + S2);
    return S1 - S2; /* [theory: pair.parity] */
}

hs_side hs_side_at(double c, double P, double s, double K);

/* At most what the aliases of a line at c on one side add up to at eps, over e^log_scale [theory: line.aliases]. */
double hs_aliases_upper(double c, double P, double eps, double log_scale, hs_side side);

/* sum Re f_n e^{-i (eps - F->eps) n dy}, and the same with z_n f_n; of F: c, dy, eps, N and frozen re, im. */
void hs_nodes_sum(const hs_nodes *F, double eps, double *value, double *slope);

#endif
