/* both.c - the larger of the directions REMOVE and ADD, on the contour.
 *
 * ADD is left out where its delta is proved to be at most REMOVE's, at eps or at the lower end of REMOVE's root
 * [theory: pair.directions, line.both]: beyond the largest loss that ADD has, or where an upper end of the
 * saddle-point accountant says so. Otherwise both are computed, and the larger end counts.
 */
#include "law/transform.h"

int hs_contour_add_below(const hs_contour *C, double wall, double eps, double log_delta, double *work, int64_t n_work)
{
    hs_run add = C->run;
    const hs_lent lent = {work, n_work, C->n_threads, C->poll};
    hs_ceiling upper;
    add.add = 1;
    if (eps >= wall) return 1;
    return log_delta > -HUGE_VAL && hs_saddle_delta_upper(&add, eps, log_delta, &lent, &upper) == HS_OK &&
           upper.log_delta <= log_delta;
}

int hs_contour_larger_eps(hs_contour *C, double delta, double wall, double *work, int64_t n_work, hs_crossing *out)
{
    double log_delta = log(delta);
    hs_crossing other;
    int st, second;
    C->run.add = 0;
    st = hs_contour_eps(C, log_delta, work, n_work, out);
    if (st > HS_LOOSE) return st;
    if (out->lower > 0 && hs_contour_add_below(C, wall, out->lower, nextafter(log_delta, -HUGE_VAL), work, n_work))
        return st;
    C->run.add = 1;
    second = hs_contour_eps(C, log_delta, work, n_work, &other);
    if (second > HS_LOOSE) return second;
    if (other.upper > out->upper) out->delta = other.delta;
    out->lower = fmax(out->lower, other.lower);
    out->estimate = fmax(out->estimate, other.estimate);
    out->upper = fmax(out->upper, other.upper);
    return st > second ? st : second;
}
