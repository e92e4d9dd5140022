/* pld.c - laws of a loss on a lattice that dominate it, or are dominated by it, from its tails.

   Symbols: Y loss under num, X under den; fine edges s_0 < ... < s_n, s_i = s_0 + i w; cell i = (s_i, s_{i+1}]; y_i, x_i masses
     of cell i under Y and X; u_i = y_i - e^{s_i} x_i = E[1 - e^{s_i - Y}; cell i], how far the cell sits above its left edge.
     Lattice points a_j = s_{2j}: two fine cells between neighbours, h = 2w.
   A positive measure nu on losses stands for D_nu(eps) = int (1 - e^{eps-y})_+ dnu. If D_nu >= D_mu for all real eps, then so do
   their convolutions with any positive measure: so domination survives composition, and nothing here needs total mass 1.
   The integrand rises in y and is convex in e^{-y}.

   hs_pld_cells: y_i, u_i rounded up (for the upper law), y_i and u_i rounded down (for the lower law).
     Tails are within (1 + rel) and absolute; all losses of a cell are within `edge` of it. The upper u uses e^{s_i - edge}, so
     that E[(1 - e^{s_i - Y})_+; cell] <= u_upper; losses above s_{i+1} are too low by at most edge. Hence
       D(eps) <= D_upper(eps - edge).  The lower pair (y_lower, x_upper) needs no edges: it is moments of one set of outcomes.
   hs_pld_upper, connect the dots [DGK+22, Alg. 1; maths C10]: the mass y in [a, b] goes to b with probability
     (1 - e^{a-y})/(1 - e^{-h}), else to a: the chord of a convex function lies above it.
   hs_pld_lower, its mirror [maths C11 as a partition]: outcomes are gathered into groups whose mean of e^{-y} is e^{-a_j}
     (or less: a group may be lowered to its point); a convex function of a mean lies below the mean of the function.
     Groups are taken from the top down, a fine cell being split where a group is full; see there.
   Error claim: every sum and product here is rounded once more in its own direction (factors 1 +- 8u).  Not done: tails. */
#include "hs.h"
#include <math.h>

#define U 1.1102230246251565e-16 /* 2^-53 */

/* Tails of N(0,1): relative error 16u + 2u |x| (|x| + 1) (erfc: glibc documents 5 ulp; its argument carries 2u). */
int hs_normal_tails(long n, const double *x, double *below, double *above)
{
    long i;
    if (!(n >= 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n; i++) {
        double a = 0.5 * erfc(fabs(x[i]) * 0.70710678118654752);
        below[i] = x[i] > 0 ? 1 - a : a;
        above[i] = x[i] > 0 ? a : 1 - a;
    }
    return HS_OK;
}
