/* part.c - the sum of a line through part of the law of a run.
 *
 * Symbols. c, dy, P, K, s_left, s_right as in contour.c; lf(t) = t log t - (1+t) log1p t.
 *
 * Formula. T = dy/(2 pi) e^{K(c) - c eps} sum f_n is the curve of a positive measure and its aliases, all >= 0 for
 *   s_left >= 0 [theory: line.aliasing, line.known-aliases]. Without nodes: Chernoff's bound [theory: line.chernoff].
 *
 * Error terms: as in contour.c. Both aliases only lower the lower end.
 *
 * What it does not do: tilts below 0.
 */
#include "line/part.h"
#include "line/saddle.h"

#define SLACK 1e-8 /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */

void hs_line_part_at(const hs_line_part *A, double eps, hs_value *v)
{
    double unit = A->dy / (2 * HS_PI), sum, der, whole = 2 * HS_U * (fabs(A->K[0]) + fabs(A->c * eps)) + A->err[0];
    memset(v, 0, sizeof(*v));
    if (A->F.N < 0) { /* [theory: line.chernoff] */
        v->log_scale = A->K[0] + A->err[0] - A->c * eps + hs_payoff(A->c);
        v->upper = 1 + SLACK * (1 + fabs(v->log_scale) + fabs(A->c * eps));
        return;
    }
    hs_nodes_sum(&A->F, eps, &sum, &der);
    v->log_scale = A->K[0] - A->c * eps;
    v->value = unit * sum;
    v->slope = unit * der;
    v->inner = unit * A->F.inner;
    v->truncation = exp(A->log_tail);
    v->rounding = unit * A->F.rounding + expm1(whole) * (fabs(v->value) + v->inner + v->truncation);
    v->alias_right =
        hs_aliases_upper(A->c, A->P, eps, v->log_scale, hs_side_at(A->c, A->P, A->s_right, A->K[1] + A->err[1]));
    v->alias_left =
        hs_aliases_upper(A->c, A->P, eps, v->log_scale, hs_side_at(A->c, A->P, A->s_left, A->K[2] + A->err[2]));
}

void hs_line_part_rows(hs_line_part *A, double eps, double reach, double *row)
{
    const int64_t n = A->F.N + 1;
    memset(row, 0, sizeof(double) * 4 * (size_t)n);
    A->F = (hs_nodes){.c = A->c, .dy = A->dy, .eps = eps, .reach = reach, .N = n - 1, .re = row, .im = row + n};
    A->F.round = row + 2 * n;
    A->F.node = row + 3 * n;
    A->a = row + 4 * n;
    A->b = row + 5 * n;
}

int hs_line_part_log(double x, double v, double slope, double quad, double *out)
{
    double X = 2 * x + x * x + v * v, mod = hypot(1 + x, v), dz = slope / mod, qz = quad / mod;
    out[0] = X > -0.75 && X < 1 ? 0.5 * log1p(X) : log(mod);
    out[1] = atan2(v, 1 + x);
    if (!(dz + qz < 0.25)) {
        out[0] = log(fmin(1, hs_up(mod + slope + quad)));
        return 0;
    }
    out[2] = dz / (1 - dz) + 4 * HS_U * (3 * fmin(hypot(x, v), 3) + fabs(out[0]) + fabs(out[1]));
    out[3] = qz / (1 - qz);
    return 1;
}
