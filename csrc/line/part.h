/* part.h - a line through part of the law of a run; not for the gate. */
#ifndef HS_PART_H
#define HS_PART_H

#include "line/root.h"
#include "line/sum.h"

typedef struct {
    double c, dy, P, s_left;
    double s_right, log_tail, K[3], err[3];
    hs_nodes F;
    double *a, *b; /* scratch: phi - 1 of one law */
} hs_line_part;

/* The sum of the line at eps: v->value with its errors and aliases, over e^log_scale; v->upper alone where it has no
 * nodes. */
void hs_line_part_at(const hs_line_part *A, double eps, hs_value *v);

/* Lays the rows of A->F, whose N is set, in 6 (N + 1) doubles from `row` on: sums begin at 0. */
void hs_line_part_rows(hs_line_part *A, double eps, double reach, double *row);

/* log phi, phi = 1 + x + iv of modulus at most 1, in out[0], out[1], and in out[2], out[3] bounds of its errors by
 * rounding and by quadrature, where slope and quad bound those of x + iv. False where it is lost in them: out[0] is a
 * bound of log|phi| then [theory: line.inner]. */
int hs_line_part_log(double x, double v, double slope, double quad, double *out);

#endif
