/* metric.h - what is known of |f| between two frequencies; not for the gate. */
#ifndef HS_METRIC_H
#define HS_METRIC_H

#include "special.h"

/* relative: a sum of positive terms over all steps, or nodes, of an int's number; 2^31/16 u = 1.5e-8 */
#define HS_SUMS 1e-7

/* A lower bound of -sum k log|phi| over k steps on an interval of frequencies [theory: line.metric]. from, to: lower
 * bounds of A^2 = sum k 2 (1 - |phi|) at its ends; gap: an upper bound of its length times the standard deviation of
 * the tilted sum. A^2 <= 2k: what rounding makes of more than 1 - 1e-9 of that counts as so much. */
static inline double hs_metric_lower(double from, double to, double gap, double k)
{
    double a = 0.5 * ((sqrt(from) + sqrt(to)) * (1 - HS_SUMS) - gap);
    return a > 0 ? -k * log1p(-fmin(a * a / (2 * k), 1 - 1e-9)) : 0;
}

#endif
