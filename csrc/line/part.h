/* part.h - a line through part of the law of a run; not for the gate. */
#ifndef HS_PART_H
#define HS_PART_H

#include "line/root.h"
#include "line/sum.h"

typedef struct {
    double c, dy, P, s_left;
    double s_right, log_tail, K[3], err[3];
    hs_nodes F;
} hs_line_part;

/* The sum of the line at eps: v->value with its errors and aliases, over e^log_scale; v->upper alone where it has no
 * nodes. */
void hs_line_part_at(const hs_line_part *A, double eps, hs_value *v);

#endif
