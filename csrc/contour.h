/* contour.h - what contour.c carries along; the public part is in hs.h. */
#ifndef HS_CONTOUR_H
#define HS_CONTOUR_H

#include "transform.h"

#define HS_BLOCK 32                  /* nodes between restarts of the phase recurrence */
#define HS_DOUBLINGS 20              /* tail points Y, 2Y, 4Y, ... */
#define HS_PROBES 16                 /* frequencies at which the decay is sampled, ratio 1.35 */
#define HS_SUMS_WORK(N) (4 * ((long)(N) + 1))

typedef struct {                     /* sums over steps; index 0, 1, 2: tilts c, s_right, s_left */
    double K[3], err[3], inner[3];
    double *re, *im, *round, *node;  /* k log phi at the nodes; bounds of its rounding and quadrature error */
    double metric[HS_DOUBLINGS], far[HS_DOUBLINGS], gauss[HS_DOUBLINGS], var, k_smooth;
} hs_sums;

typedef struct {
    double log_scale, value, slope, lower, upper, alias_left, alias_right, truncation, inner, rounding;
} hs_value;

/* Shared with individual_levels.c: one step's part of every sum; log M(a) with its error; a contour from a first tilt. */
int hs_contour_visit(const hs_contour *C, long j, hs_sums *S, double *work);
int hs_log_m_upper(double m, double q, double a, double k, double *work, double *log_m, double *err);
int hs_contour_plan(hs_contour *C, double tilt, double log_delta, double *work);

#endif
