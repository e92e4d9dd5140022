/* fit.h - what rules of few shifts are off by at real tilts; not for the gate. */
#ifndef HS_FIT_H
#define HS_FIT_H

#include "hs.h"

/* Bounds of what sum k log M and its first two derivatives in the tilt are off by, and for the steps that are not plain
 * Gaussian sum k E x^4 and sum k (E x^3 + 2 B E x^2), x the loss l less its mean, B = E l - log(1-q). */
typedef struct {
    double K, mean, var;
    double fourth, side;
} hs_near;

/* A few steps that a run is placed by, where it has such: what is found with them enters no bound
 * [theory: line.planning]. */
hs_run hs_outline(const hs_run *run);

/* How much sum k |log(1-q)| of the steps and of the rules may differ. */
double hs_fit_losses(const hs_fit *fits, int n);

/* work: HS_GRID_WORK doubles. */
int hs_fit_near(const hs_fit *fits, int n, int add, double t, double *work, hs_near *out);

#endif
