/* laplace_step.h - a subsampled Laplace step on Gauss-Legendre panels; not for the gate. */
#ifndef HS_LAPLACE_STEP_H
#define HS_LAPLACE_STEP_H

#include "law/transform.h"

#define HS_LAPLACE_STEP_MAX 40.0 /* largest m of a Laplace step: 20 panels */

/* The kind of step i of a run. */
static inline int hs_kind_of(const hs_run *run, int i) { return run->kind ? run->kind[i] : HS_LAW_NORMAL; }

/* One subsampled step, Gaussian or Laplace, on its grid: what bounds phi at any frequency. c1, c2: see
 * hs_grid_weights; `level` is what the normaliser and the ends add. */
typedef struct {
    hs_grid G;
    int kind, n_gl;
    double m, q, a, log_m;
    double c1, c2, level;
} hs_opened;

/* The error of phi at all |y'| <= y but for rounding, and a bound of |phi| at all |y'| >= y. Both overwrite rows of the
 * grid: s, er1. */
double hs_opened_quadrature_upper(hs_opened *O, double y);
double hs_opened_far_upper(hs_opened *O, double y);

int hs_laplace_step_panels(double m); /* Gauss-Legendre panels of length at most 2 on (0, m) */
int hs_laplace_step_grid(hs_grid *G, double m, double q, const hs_rule *rule, double *work);
hs_cgf hs_laplace_step_cgf_estimate(double m, double q, double a, const hs_rule *rule);
double hs_laplace_step_quadrature_upper(double m, double q, double a, double y, double log_m, int n_gl);
double hs_laplace_step_far_upper(double m, double q, double a, double y, double log_m);

#endif
