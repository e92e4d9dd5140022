/* both.c - the larger of the directions REMOVE and ADD, on the contour.
 *
 * ADD is left out where its delta is proved to be at most REMOVE's, at eps or at the lower end of REMOVE's root
 * [theory: pair.directions, line.both]: beyond the largest loss that ADD has, or where an upper end of the
 * saddle-point accountant, or Chernoff's bound, says so. Otherwise both are computed, and the larger ends count.
 *
 * Error claim: that of contour.c; logs lose 4u (2 + |scale| + |log|) at either end, as each of scale + log(value) is
 * two operations on numbers known to 2u of their size [theory: rounding.outward].
 */
#include "law/transform.h"

/* Whether the saddle-point accountant says so of the run of ADD; the ceiling that it found, or a tilt of 0. Of a run
 * with pairs, which it does not take, whether Chernoff's bound does. */
static int below(const hs_contour *C, double eps, double log_delta, double *work, int64_t n_work, hs_ceiling *upper)
{
    const hs_lent lent = {work, n_work, C->n_threads, C->poll};
    hs_contour own = *C;
    double log_upper;
    if (log_delta == -HUGE_VAL) return 0;
    if (C->run.pair) {
        own.t = 0;
        return hs_contour_chernoff_upper(&own, 1, eps, work, n_work, &log_upper) == HS_OK && log_upper <= log_delta;
    }
    if (hs_saddle_delta_upper(&C->run, eps, log_delta, &lent, upper) == HS_OK) return upper->log_delta <= log_delta;
    upper->tilt = 0;
    return 0;
}

void hs_point_logs(const hs_point *p, double *out)
{
    double slack;
    out[1] = p->log_scale + log(p->estimate);
    out[2] = p->log_scale + log(p->upper);
    slack = 4 * HS_U * (2 + fabs(p->log_scale) + fabs(out[2] - p->log_scale));
    out[0] = p->lower > 0 ? p->log_scale + log(p->lower) - slack : -HUGE_VAL;
    out[2] += slack;
}

int hs_contour_larger(hs_contour *C, int have_eps, double value, double known, double *work, int64_t n_work,
                      hs_crossing *out, int *second, hs_ceiling *upper)
{
    double logs[3], eps, log_delta; /* where ADD has to be below it */
    int st, settled;
    *second = HS_LEFT_OUT;
    upper->tilt = 0;
    C->run.add = 0;
    st = hs_contour_ask(C, have_eps, value, work, n_work, out);
    if (st > HS_LOOSE) return st;
    if (have_eps) {
        hs_point_logs(&out->delta, logs);
        eps = value;
        log_delta = logs[0];
        settled = known <= log_delta;
    } else {
        eps = out->lower;
        log_delta = nextafter(value, -HUGE_VAL);
        settled = eps > 0 && eps >= known;
    }
    C->run.add = 1;
    if (C->other) C->run.pair = C->other;
    if (settled || ((have_eps || eps > 0) && below(C, eps, log_delta, work, n_work, upper))) return st;
    *second = hs_contour_ask(C, have_eps, value, work, n_work, out + 1);
    return st;
}
