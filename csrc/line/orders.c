/* orders.c - what rules for steps of small shifts are off by: log M order by order in the sampling rate.
 *
 * Symbols. One sampling rate q, steps and rule with shifts 0 < m <= m_1, s = m^2, S = m_1^2. U = q (e^v - 1), h_j(s) =
 *   E (e^v - 1)^j, with no negative Taylor coefficient in s. a = A +- iy, c_j = |binomial(a, j)|, x_j = c_j q^j h_j,
 *   l_d: the coefficients of -log(1 - sum_{j<J} x_j t^j), t the power of q. A row of hs_fit: an ellipse on which |s| <=
 *   r = factor, weight: what the sums of s g(s) over steps and rule may differ by where |g| <= 1/r there; count: sum k
 *   s/S over both.
 *
 * Formula. M = 1 + sum_{j<J} binomial(a, j) q^j h_j + R, |R| <= c_J rest_J on the box [theory: compression.rest]. Order
 *   d of log M is entire in s and at most l_d(|s|), so that it may have the ellipse that is best for it; orders from J
 *   on and R are counted on the box itself [theory: compression.orders].
 *
 * Error claim. Sums of terms that are not negative, but for h_j, whose alternating sum is raised by what it rounds to;
 *   SLACK pays for the rest.
 *
 * What it does not do: bound anything at all frequencies, as a tail needs; weights (compression.py).
 */
#include "line/orders.h"
#include "law/transform.h"

#define SLACK (1 + 1e-12)

/* Below the first of them h_j is scaled from there, as its alternating sum would cancel; the smaller serve small j. */
static const double starts[3] = {0.06, 0.02, 0.005};

/* h_2 .. h_HS_ORDERS at r, times q^j, rounded up, by those at `from` or, if that is more, at r; HUGE_VAL where it is
 * beyond use. */
static void powers_upper(double q, double r, double from, double *h)
{
    double at = fmax(r, from), e[HS_ORDERS + 1], choose[HS_ORDERS + 1] = {1};
    double err[HS_ORDERS + 1], q_j = 1, less = r < from ? r / from : 1, scale = less;
    int i, j;
    for (i = 0; i <= HS_ORDERS; i++) {
        double x = 0.5 * at * i * (i - 1);
        e[i] = x < 600 ? exp(x) : HUGE_VAL;
        err[i] = (60 + 6 * x) * HS_U;
    }
    for (j = 0; j <= HS_ORDERS; j++, q_j *= q) {
        double sum = 0, off = 0;
        for (i = j; i > 0; i--) choose[i] = (i < j ? choose[i] : 0) + choose[i - 1];
        for (i = 0; i <= j && e[j] < HUGE_VAL; i++) {
            sum += ((j - i) % 2 ? -choose[i] : choose[i]) * e[i];
            off += choose[i] * e[i] * err[i];
        }
        if (j > 2 && j % 2) scale *= less; /* [theory: compression.powers] */
        h[j] = e[j] < HUGE_VAL ? q_j * scale * (fmax(sum, 0) + off) * SLACK : HUGE_VAL;
    }
}

void hs_orders_lay(const hs_fit *fits, int rows, hs_orders *O)
{
    double S = hs_up(fits->m * fits->m), h[HS_ORDERS + 1];
    int i, j;
    O->fits = fits;
    O->rows = rows;
    for (i = 0; i < rows; i++) powers_upper(fits->q, fits[i].factor, starts[0], O->row[i]);
    powers_upper(fits->q, S, starts[0], O->box);
    for (i = 1; i < 3 && S < starts[i - 1]; i++) {
        powers_upper(fits->q, S, starts[i], h);
        for (j = 2; j <= HS_ORDERS; j++) O->box[j] = fmin(O->box[j], h[j]);
    }
}

/* What E U^J (1+U)^(B-J) over the halves of the line is at most for |B - A| <= r, without the binomial
 * [theory: compression.rest]. */
static double rest_upper(const hs_orders *O, double A, double r, int J, double grown)
{
    double below = O->box[J] * exp(fmin(A - r - J, 0) * log1p(-O->fits->q));
    if (A + r <= J) return below * SLACK;
    return 2 * J <= HS_ORDERS ? fmax(below, sqrt(O->box[2 * J] * grown)) * SLACK : HUGE_VAL;
}

/* The orders from J on on the box, by (t/1)^-J times the sum of all with q t in place of q. */
static double later_upper(const hs_orders *O, const double *c, int J)
{
    static const double more[4] = {2, 5, 12, 30};
    double best = HUGE_VAL;
    int i, j;
    for (i = 0; i < 4; i++) {
        double D = 0, t = more[i], power = t;
        for (j = 2; j < J; j++) D += c[j] * O->box[j] * (power *= t);
        if (D < 0.9) best = fmin(best, D / (1 - D) / (power * t));
    }
    return best * SLACK;
}

/* The least over the rows of weight by term[row][d]. */
static double best_row(const hs_orders *O, double (*term)[HS_ORDERS + 1], int d)
{
    double best = HUGE_VAL;
    int i;
    for (i = 0; i < O->rows; i++) best = fmin(best, O->fits[i].weight * term[i][d]);
    return best;
}

double hs_orders_upper(const hs_orders *O, double A, double r, double y, double grown, int of_log)
{
    double c[HS_ORDERS + 1] = {1}, x[HS_ORDER_ROWS][HS_ORDERS + 1], l[HS_ORDER_ROWS][HS_ORDERS + 1];
    double sum = 0, D = 0, best = HUGE_VAL;
    double rest, off;
    int i, j, d;
    c[1] = hypot(A, y) + r;
    for (d = 2; d < HS_ORDERS; d++) {
        if (O->fits->least > 0 && d > O->fits->least) break; /* [theory: compression.rates-orders] */
        c[d] = c[d - 1] * (hypot(A - (d - 1), y) + r) / d;
        if (d % 2 == 0 && d > 2) { /* J = d */
            rest = c[d] * rest_upper(O, A, r, d, grown);
            off = of_log ? (D + rest < 0.9 ? later_upper(O, c, d) + rest / (1 - D - rest) : HUGE_VAL) : rest;
            off *= O->fits->count; /* [theory: compression.orders] */
            best = fmin(best, sum + off);
            if (!(sum < best) || off < 1e-3 * sum) break;
        }
        for (i = 0; i < O->rows; i++) {
            l[i][d] = x[i][d] = c[d] * O->row[i][d];
            for (j = 2; of_log && j < d - 1; j++) l[i][d] += (double)(d - j) / d * l[i][d - j] * x[i][j];
        }
        sum += best_row(O, l, d);
        D += c[d] * O->box[d];
    }
    return best * SLACK;
}

double hs_orders_size_upper(const hs_orders *O, double A, double r, double grown)
{
    double c = fabs(A) + r, D = 0, least = HUGE_VAL;
    int d;
    for (d = 2; d < HS_ORDERS; d++) {
        c *= (fabs(A - (d - 1)) + r) / d;
        if (d % 2 == 0 && d > 2) least = fmin(least, D + c * rest_upper(O, A, r, d, grown));
        D += c * O->box[d];
    }
    return least < 1 ? least / (1 - least) * SLACK : HUGE_VAL;
}

double hs_orders_growth_upper(const hs_orders *O, double A, double *work)
{
    const hs_fit *f = O->fits;
    double log_m, err;
    if (!(A > 4.5)) return 2; /* M is convex in A, and M(0) = M(1) = 1 */
    return hs_log_m_upper(f->m, f->q, 2 * (A - 4), 1, work, &log_m, &err) ? HUGE_VAL
                                                                          : 1 + fmax(1, exp(log_m + err) * SLACK);
}
