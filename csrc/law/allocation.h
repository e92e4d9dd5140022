/* allocation.h - the transform of one epoch of random allocation (allocation.c, allocation_table.c); not for the
 * gate. */
#ifndef HS_ALLOCATION_H
#define HS_ALLOCATION_H

#include "law/law.h"

#define HS_ALLOCATION_ORDER 64 /* largest order n */
#define HS_ALLOCATION_LINES 96
#define HS_ALLOCATION_BOUNDS 128
#define HS_ALLOCATION_ROOM 240000    /* doubles of a table of all lines, */
#define HS_ALLOCATION_WEIGHTS 160000 /* of its weights at one tilt, */
#define HS_ALLOCATION_FEW 6000       /* of a table of one line, */
#define HS_ALLOCATION_REAL 24        /* of which so many are kept, */
#define HS_ALLOCATION_SCRATCH 800000 /* and of the rule in the normal variable */

/* H on rotated lines, and F(-c-iy)/F(-c) by its sums at one tilt. */
typedef struct {
    double m, t, depth;                                           /* depth: nats that quadratures reach down to */
    double centre, part;                                          /* the tilt that it was made at, see find */
    double from, lam_lo, lam_hi;                                  /* made at lam = from; serves lam_lo to lam_hi */
    double w0, h, a, y_max;                                       /* w = w0 + x + i th; a = sqrt(t)/m */
    double log_top, x_end, log_end, fall;                         /* bounds of H on the real line, see find_ends */
    double at[HS_ALLOCATION_BOUNDS], bound[HS_ALLOCATION_BOUNDS]; /* log H at real x, at most */
    double turn;                                                  /* line i has th = atan sinh(i turn) */
    int n, lines, bounds, used;                                   /* used: when it last served */
    int64_t start[HS_ALLOCATION_LINES]; /* of a line: a head, then parts of the weights at its nodes and their errors */
    double c, lam;                      /* the tilt */
    double log_gamma, d_gamma;          /* of Gamma(lam) e^{-lam w0} */
    double log_f, d_f;                  /* log F(-c) and a bound of its error */
    double mean, var;                   /* estimates: of log(S/t) tilted by -c */
    double *g, *weights, *scratch;
} hs_allocation;

/* The head of a line: log scale; at the tilt: sums of |g| err and |g x|, what the ends miss; angle, first node, number
 * of nodes. */
enum { HS_LINE_TOP, HS_LINE_SIZE, HS_LINE_MOVED, HS_LINE_MISS, HS_LINE_ANGLE, HS_LINE_FIRST, HS_LINE_COUNT };
enum { HS_LINE_HEAD = 8 };

/* allocation_table.c */
int hs_allocation_range(double m, double t, double c, double y_max, double part, double *wide);
int hs_allocation_table(hs_allocation *A, int64_t room);
double hs_allocation_aliases_upper(const hs_allocation *A, double y, double th, double log_ratio);
double hs_allocation_left_upper(const hs_allocation *A, double x, double log_cos);
double hs_allocation_right_upper(const hs_allocation *A, double x, double log_cos);
double hs_allocation_log_gamma(double x, double y, double w0, double *re, double *im);

/* allocation.c */
int hs_allocation_turn(hs_allocation *A, double c);
void hs_allocation_value(const hs_allocation *A, double y, double *re, double *im, double *err);

#endif
