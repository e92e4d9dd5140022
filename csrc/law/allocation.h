/* allocation.h - the transform of one epoch of random allocation (allocation.c); not for the gate. */
#ifndef HS_ALLOCATION_H
#define HS_ALLOCATION_H

#include "law/law.h"

#define HS_ALLOCATION_ORDER 64 /* largest order n */
#define HS_ALLOCATION_LINES 96
#define HS_ALLOCATION_BOUNDS 128
#define HS_ALLOCATION_ROOM 160000   /* doubles of all lines, */
#define HS_ALLOCATION_FEW 4000      /* of one, */
#define HS_ALLOCATION_SCRATCH 72000 /* and of the weights of the normal variable */

/* F(-c-iy)/F(-c) on rotated lines. */
typedef struct {
    double m, t, c, lam;
    double w0, h, a, y_max;                                       /* w = w0 + x + i th; a = sqrt(t)/m */
    double log_gamma, d_gamma;                                    /* of Gamma(lam) e^{-lam w0} */
    double log_f, d_f;                                            /* log F(-c) and a bound of its error */
    double mean, var;                                             /* estimates: of log(S/t) tilted by -c */
    double log_top, x_end, log_end, fall;                         /* bounds of H on the real line, see find_ends */
    double at[HS_ALLOCATION_BOUNDS], bound[HS_ALLOCATION_BOUNDS]; /* log H at real x, at most */
    double turn;                                                  /* line i has th = atan sinh(i turn) */
    int n, lines, bounds;
    int64_t start[HS_ALLOCATION_LINES]; /* of a line: a head, then parts of the weights at its nodes */
    double *g, *scratch;
} hs_allocation;

int hs_allocation_prepare(hs_allocation *A, double m, double t, double c, double y_max, double *g, int64_t room,
                          double *scratch);
void hs_allocation_value(const hs_allocation *A, double y, double *re, double *im, double *err);

#endif
