/* single.c - certified delta(eps) of one step of a pair, a public mixture of two-sided branches or a plain sampled
 * step, in closed form.
 *
 * Symbols. Branch r, of weight W: num, den, L, l1, l2 as in bulk.c; g_r a place about which the loss of the branch is
 *   y; T the normal tail.
 *
 * Formula. delta(y) = sum_r W [q (T(g-up) - T(g+down)) - (e^y - 1)(q T(g+down) + (1-q) T(g))] at g = g_r, of which
 *   no term loses digits to another [theory: small.single].
 *
 * Error terms.
 *   rounding    of masses [theory: rounding.first-order] and losses: both enter the ends.
 *
 * What it does not do: shifts above 5; rates above 1/2; delta below 1e-250; two steps. Cells of one step times the
 * curve of the other know their delta to 1e-7 to 1e-6; without these 0.3 to 0.6 % more of the questions of replaced
 * records and of truncated samples are wider than 1e-6, none more wider than 1e-3 (`python benchmarks/widths.py`).
 */
#include "law/bulk.h"
#include "line/root.h"
#include "tuning.h"

#define LOSS_REL 2e-12 /* of l1 and l2: u (up x + up^2) e^v/|e^v - 1| below 1e-12, and q_err u as much */
#define LOSS_ABS 1e-14 /* in units of q: the same where v is about 0 */
#define SUMS 1e-12     /* relative, of sums of few positive terms */
#define SEEN 3e-6      /* relative step to a place that certainly lies left of the loss sought */

/* A place about which the loss of a branch is y, not far beyond its ends. */
static double single_place(const hs_bulk *J, int r, double y)
{
    double x, least, q = J->pair.q[r];
    if (J->pair.down[r] == 0 && !(expm1(y) > -q)) return -HS_BULK_FAR;
    if (J->pair.up[r] == 0 && !(expm1(-y) > -q)) return HS_BULK_FAR;
    x = hs_bulk_place(J, r, y);
    least = J->pair.up[r] > 0 && J->pair.down[r] > 0 ? -10 - J->pair.down[r] : -HS_BULK_FAR; /* where it seeks */
    return x > least ? x : least;
}

/* L of a branch at x, and what it may be off by. */
static double loss_near(const hs_bulk *J, int r, double x, double *edge)
{
    hs_bulk_loss at = hs_bulk_loss_at(J, r, x);
    *edge = LOSS_REL * (fabs(at.l1) + fabs(at.l2)) + LOSS_ABS * J->pair.q[r];
    return at.l1 - at.l2;
}

/* Masses of a branch above x, over its weight: num, num - den, the part of den beyond q T(x); their errors. */
typedef struct {
    double num, gap, den;
    double num_err, gap_err, den_err;
} masses;

/* The relative error of a branch's weight times a mass. */
static double weight_error(const hs_pair *pair) { return HS_U * (pair->w_err + 8); }

static masses masses_above(const hs_pair *pair, int r, double x)
{
    double q = pair->q[r], e0, e1, e2;
    double up = hs_bulk_tail(x - pair->up[r], &e0), mid = hs_bulk_tail(x, &e1),
           down = hs_bulk_tail(x + pair->down[r], &e2);
    masses out = {q * up + (1 - q) * mid, q * (up - down), q * down + (1 - q) * mid, 0, 0, 0};
    double q_err = pair->q_err * HS_U;
    out.num_err = q * up * (e0 + 8 * HS_U) + (1 - q) * mid * (e1 + 8 * HS_U) + q * q_err * fabs(up - mid) + 1e-300;
    out.gap_err = q * (up * e0 + down * e2 + 8 * HS_U * (up + down)) + q_err * fabs(out.gap) + 1e-300;
    out.den_err = q * down * (e2 + 8 * HS_U) + (1 - q) * mid * (e1 + 8 * HS_U) + q * q_err * fabs(down - mid) + 1e-300;
    return out;
}

/* What the set of outcomes above g, or none, misses of the best one for the loss y, over the weight of the branch. */
static double single_missed_upper(const hs_bulk *J, int r, double g, double y, const masses *above)
{
    double edge, loss = loss_near(J, r, g, &edge), off = fabs(loss - y) + edge, err;
    if (off < 1e-6 && loss_near(J, r, g - SEEN * (1 + fabs(g)), &err) + err <= y)
        return expm1(off) * 1.02 * (above->num + above->num_err); /* [theory: small.one-pair] */
    if (loss + edge > y) err = hs_bulk_tail(-g, &off) * 1.01;
    else err = 0;
    return err + (loss - edge < y ? above->num + above->num_err : 0) + 1e-300;
}

/* delta of one step at y. */
static void one_step(const hs_bulk *J, double y, double *lower, double *upper)
{
    const hs_pair *pair = &J->pair;
    double e = expm1(y), low = 0, high = 0;
    int r;
    for (r = 0; r < pair->branches; r++) {
        double g = single_place(J, r, y), w = pair->w[r], known = weight_error(pair);
        masses m = masses_above(pair, r, g);
        double value = m.gap - e * m.den, err = m.gap_err + fabs(e) * (m.den_err + 8 * HS_U * m.den);
        double most = fmax(value, 0) + err + single_missed_upper(J, r, g, y, &m);
        low += w * fmax(value - err, fmax(0, hs_down(-e))) * (1 - known); /* all outcomes, none, or those above */
        high += w * fmin(most, 1) * (1 + known);
    }
    *lower = low * (1 - SUMS);
    *upper = fmin(1, high * (1 + SUMS));
}

int hs_single_delta(const hs_pair *pair, double eps, hs_point *out)
{
    hs_bulk J;
    hs_value v = {0};
    int r, good = pair->branches >= 1 && eps > 0 && eps < 600 && pair->q_err < 1e3;
    memset(&J, 0, sizeof J);
    J.pair = *pair;
    J.far = HS_BULK_FAR;
    for (r = 0; r < pair->branches; r++) {
        double widest = fmax(pair->up[r], pair->down[r]);
        good = good && pair->w[r] > 0 && pair->q[r] > 0 && pair->q[r] <= 0.5 && widest > 0 && widest <= 5;
    }
    if (!good) return HS_OUT_OF_RANGE;
    one_step(&J, eps, &v.lower, &v.upper);
    if (!(v.lower > 1e-250 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    v.value = 0.5 * (v.lower + v.upper);
    v.slope = v.value;
    v.truncation = 0.5 * (v.upper - v.lower);
    hs_value_point(&v, 1, out);
    return HS_OK;
}
