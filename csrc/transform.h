/* transform.h - the inner grid of one step and what is summed over it; not for the gate. */
#ifndef HS_TRANSFORM_H
#define HS_TRANSFORM_H

#include "hs.h"
#include "special.h"

#define HS_INNER_MAX 4096            /* inner nodes of one step, a multiple of 8 */
#define HS_GRID_ARRAYS 12
#define HS_GRID_WORK (HS_GRID_ARRAYS * (HS_INNER_MAX + 8))

typedef struct {
    int n;                           /* nodes, padded to a multiple of 8 by nodes of weight zero */
    double m, q, h, lo, hi;          /* lo, hi: first and last node */
    double *g, *lw, *u, *l, *lm;     /* node; log(h w(g)); U; log(1+U); log(1+U)-U */
    double *p, *s, *r, *er, *ei, *er1, *ei1; /* scratch of the sums */
} hs_grid;

typedef struct { double log_m, err, mean, var; } hs_moments; /* log M(a); bound of its error; E l, Var l under the tilted law */

void hs_cgf_estimate(double m, double q, double a, double *out);
int hs_grid_build(hs_grid *G, double m, double q, double h, double lo, double hi, double *work);
double hs_grid_choose_h(double m, double q, double a, double y, double target, double log_m);
void hs_grid_moments(hs_grid *G, double a, double log_m_estimate, hs_moments *out);
void hs_grid_weights(hs_grid *G, double a, double log_m, double *c1, double *c2);
double hs_grid_quadrature_upper(hs_grid *G, double a, double y, double log_m);
double hs_grid_ends_upper(const hs_grid *G, double a, double log_m);
double hs_grid_dropped_upper(const hs_grid *G, double a);
void hs_grid_nodes(hs_grid *G, double dy, long n0, int count, double *zr, double *zi);
void hs_grid_phase(hs_grid *G, double y, double *zr, double *zi);
void hs_grid_phase_double(hs_grid *G, double *zr, double *zi);
double hs_grid_far_upper(hs_grid *G, double a, double y);

#endif
