/* fit.c - what a line is off by where rules of few shifts stand for many steps.
 *
 * Symbols. Steps of one sampling rate q with shifts m_i and counts k_i lie in boxes of m; a rule has shifts x_a and
 *   real weights W_a > 0 such that sum k_i T_j - sum W_a T_j is small for the Chebyshev polynomials of the box. w_m
 *   the density of v; m' the real shift with Re(1/m^2) = 1/m'^2, F = sup |w_m|/w_m'. A = 1 + t (REMOVE) or -t (ADD) at
 *   a real tilt t, a = A +- iy, kappa(y) = |a||a-1|/|A||A-1|. P = 1 - |phi|^2.
 *
 * Formula. On a Bernstein ellipse of the box |M(a; m) - 1| <= D = F kappa |M(A; m') - 1|, with the largest F and m' of
 *   the ellipse [theory: compression.strip, compression.arcs]. Where D < 1, sum k_i log M(a; m_i) is within weight
 *   D/(1-D) of sum W_a log M(a; x_a), the weight made of the differences of the moments and of the ellipse
 *   [theory: compression.rule]. At the tilts of the aliases an upper end will do: sum k log M <= sum k (M - 1), which
 *   is within weight D of that of the rule, whatever D [theory: compression.above]. Every group of rows (boxes) takes
 *   the ellipse that is best at its frequency; groups add. The tail: sum k_i P_i >= sum W_a P_a - weight (1 + (F +
 *   D_0)^2/(1-D_0)^2) at every frequency, D_0 the D of y = 0 [theory: compression.tail]. Rows with q = 1:
 *   log M = m^2 z (1+z)/2, and the weight bounds what sum k m^2 is off by [theory: compression.gaussian].
 *   Derivatives in the tilt by Cauchy's inequalities [theory: compression.near]. Groups of small shifts: orders.c
 *   [theory: compression.small-near]; their rows are left out of the tail [theory: compression.light].
 *
 * Error claim. Sums of positive terms, powers and exponentials of them: SLACK pays for their rounding, 60 operations
 *   each.
 *
 * What it does not do: choose boxes and ellipses, or bound a weight (compression.py).
 */
#include "line/line.h"
#include "line/orders.h"

#define SLACK (1 + 1e-13)

/* F |M(A; m) - 1| at most, at real A; HUGE_VAL where a grid does not carry A. For 0 < A < 1 by Taylor's remainder
 * [theory: compression.between]. */
static double off_one(const hs_fit *f, double A, double *work)
{
    double x = 0.5 * A * (1 - A) * pow(1 - f->q, A - 2) * f->q * f->q * expm1(f->m * f->m), log_m, err;
    if (A == 0 || A == 1) return 0;
    if (!(A > 0 && A < 1)) {
        if (hs_log_m_upper(f->m, f->q, A, 1, work, &log_m, &err)) return HUGE_VAL;
        x = expm1(log_m + err); /* [theory: compression.strip] */
    }
    return x >= 0 && x < 1e300 ? f->factor * x * SLACK : HUGE_VAL;
}

/* The sum over groups of the least over their rows of weight by `each` at D = kappa X_row; turn = |z (1+z)|. */
static double over_groups(const hs_fit *fits, int n, const double *X, double kappa, double turn,
                          double (*each)(const hs_fit *f, double D))
{
    double sum = 0, best = HUGE_VAL;
    int i;
    for (i = 0; i < n; i++) {
        const hs_fit *f = &fits[i];
        double D = kappa * X[i];
        if (f->count > 0) continue;
        if (f->q == 1) best = 0.5 * turn * f->weight;
        else best = fmin(best, f->weight * each(f, D * SLACK));
        if (i + 1 < n && f[1].group == f->group) continue;
        sum += best;
        best = HUGE_VAL;
    }
    return sum * SLACK;
}

static double of_log(const hs_fit *f, double D)
{
    (void)f;
    return D < 1 ? D / (1 - D) * SLACK : HUGE_VAL;
}

/* Of M - 1 itself, whatever D. */
static double of_one(const hs_fit *f, double D)
{
    (void)f;
    return D;
}

static double of_square(const hs_fit *f, double D)
{
    double size = (f->factor + D) / (1 - D);
    return D < 1 ? (1 + size * size) * SLACK : HUGE_VAL;
}

/* The square of a bound of log M. */
static double of_log_square(const hs_fit *f, double D)
{
    double log_m = of_log(f, D);
    return log_m * log_m;
}

/* The number of steps, which is that of the rule to within the weight, times the largest -l. */
static double of_loss(const hs_fit *f, double D) { return D < 0 ? 0 : -log1p(-f->q); }

/* Whether there are groups of small shifts, which are good for nodes and tilts of a line alone. */
static int has_orders(const hs_fit *fits, int n)
{
    int i;
    for (i = 0; i < n; i++)
        if (fits[i].count > 0) return 1;
    return 0;
}

double hs_fit_losses(const hs_fit *fits, int n)
{
    double X[HS_FITS_MAX] = {0};
    return n > HS_FITS_MAX || has_orders(fits, n) ? HUGE_VAL : over_groups(fits, n, X, 1, 0, of_loss);
}

/* log M times the largest -l. */
static double of_log_far(const hs_fit *f, double D) { return -log1p(-f->q) * of_log(f, D); }

/* D of a row in the disc of radius r about a real exponent: |M - 1|/(A) is convex in A
 * [theory: compression.near]. */
static double off_disc(const hs_fit *f, double A, double r, double *work)
{
    double low = A - r, high = A + r, size = (fabs(A) + r) * (fabs(A - 1) + r);
    if (r == 0) return off_one(f, A, work);
    return fmax(off_one(f, low, work) / fabs(low * (low - 1)), off_one(f, high, work) / fabs(high * (high - 1))) *
           size * SLACK;
}

/* D of every row there. Of a group the rows after one by which log M is off by less than `enough` are not looked at:
 * their D is infinite. */
static void off_discs(const hs_fit *fits, int n, double A, double r, double enough, double *work, double *X)
{
    int i, done = 0;
    for (i = 0; i < n; i++) {
        const hs_fit *f = &fits[i];
        X[i] = 0;
        if (!(f->q < 1) || f->count > 0) continue;
        done = done && i && f->group == f[-1].group;
        X[i] = done ? HUGE_VAL : off_disc(f, A, r, work);
        done = done || f->weight * of_log(f, X[i]) < enough;
    }
}

/* The groups of small shifts; how many they are, -1 where they are too many. */
static int lay_orders(const hs_fit *fits, int n, hs_orders *O)
{
    int i, first, groups = 0;
    for (first = 0; first < n; first = i) {
        for (i = first + 1; i < n && fits[i].group == fits[first].group; i++) continue;
        if (!(fits[first].count > 0)) continue;
        if (groups == HS_ORDER_GROUPS || i - first > HS_ORDER_ROWS) return -1;
        hs_orders_lay(fits + first, i - first, &O[groups++]);
    }
    return groups;
}

/* Upper bounds of 1 + max(1, M(2 (A - 4))) at the largest shift of every group. */
static void order_growth(const hs_orders *O, int groups, double A, double *work, double *grown)
{
    double log_m, err;
    int i;
    for (i = 0; i < groups; i++) {
        const hs_fit *f = O[i].fits;
        grown[i] = 2; /* M is convex in A, and M(0) = M(1) = 1 */
        if (i && f->q == f[-1].q && f->m == f[-1].m) grown[i] = grown[i - 1];
        else if (A > 4.5)
            grown[i] = hs_log_m_upper(f->m, f->q, 2 * (A - 4), 1, work, &log_m, &err)
                           ? HUGE_VAL
                           : 1 + fmax(1, exp(log_m + err) * SLACK);
    }
}

static double over_orders(const hs_orders *O, int groups, double A, double y, const double *grown, int of_log)
{
    double sum = 0;
    int i;
    for (i = 0; i < groups; i++) sum += hs_orders_upper(&O[i], A, 0, y, grown[i], of_log);
    return sum * SLACK;
}

/* What small shifts add in the disc of radius r about A: to a bound of |g|, to one of the squares of log M, to one of g
 * times the largest -l [theory: compression.small-near]. */
static void orders_disc(const hs_orders *O, int groups, double A, double r, double *work, double *e, double *square,
                        double *far)
{
    double grown[HS_ORDER_GROUPS];
    int i;
    order_growth(O, groups, A + r, work, grown);
    for (i = 0; i < groups; i++) {
        double one = hs_orders_upper(&O[i], A, r, 0, grown[i], 1) * SLACK;
        double size = hs_orders_size_upper(&O[i], A, r, grown[i]);
        *e += one;
        *square += O[i].fits->count * size * size * SLACK;
        *far -= log1p(-O[i].fits->q) * one * SLACK;
    }
}

/* By Cauchy's inequalities on the best of some discs: derivatives of g, |g| <= e, and of the square of a second
 * derivative [theory: compression.near]. Plain steps: sum k m^2 is off by their weight. */
int hs_fit_near(const hs_fit *fits, int n, int add, double t, double *work, hs_near *out)
{
    static const double part[3] = {0.5, 0.15, 0.05};
    double X[HS_FITS_MAX], grown[HS_ORDER_GROUPS];
    double A = add ? -t : 1 + t, size = t * (1 + t), r;
    hs_orders O[HS_ORDER_GROUPS];
    int i, groups = n > HS_FITS_MAX ? -1 : lay_orders(fits, n, O);
    if (groups < 0 || !(t > 0)) return HS_BAD_ARGUMENT;
    out->mean = out->var = out->fourth = out->side = HUGE_VAL;
    for (i = 0; i < 3; i++) {
        double r2 = part[i] * t * part[i] * t, e, square, far;
        r = part[i] * t;
        off_discs(fits, n, A, r, 0.1 * HS_NEAR_NATS, work, X);
        e = over_groups(fits, n, X, 1, 0, of_log);
        square = over_groups(fits, n, X, 1, 0, of_log_square);
        far = over_groups(fits, n, X, 1, 0, of_log_far);
        orders_disc(O, groups, A, r, work, &e, &square, &far);
        out->mean = fmin(out->mean, e / r * SLACK);
        out->var = fmin(out->var, 2 * e / r2 * SLACK);
        out->fourth = fmin(out->fourth, (24 * e + 12 * square) / (r2 * r2) * SLACK);
        out->side = fmin(out->side, (6 * e + 4 * square + 4 * r * far) / (r2 * r) * SLACK);
        if (e < HS_NEAR_NATS) break;
    }
    order_growth(O, groups, A, work, grown);
    out->K = over_groups(fits, n, X, size / ((fabs(A) + r) * (fabs(A - 1) + r)) * SLACK, size * SLACK, of_log) +
             over_orders(O, groups, A, 0, grown, 1);
    for (i = 0; i < n; i++)
        if (fits[i].q == 1) {
            out->mean += (t + 0.5) * fits[i].weight * SLACK;
            out->var += fits[i].weight * SLACK;
        }
    return HS_OK;
}

/* How much sum k log M(s) may exceed that of the rules at a real tilt: of log M, or, where that is less, of M - 1,
 * which exceeds log M by `excess` in all over the rows of the rules [theory: compression.above]. work: HS_STEP_WORK
 * doubles. */
double hs_fit_upper(const hs_contour *C, double s, double excess, double *work)
{
    double X[HS_FITS_MAX], grown[HS_ORDER_GROUPS], turn = fabs(s * (1 + s)), A = hs_contour_tilt(C, s);
    hs_orders O[HS_ORDER_GROUPS];
    const hs_fit *fits = C->run.fits;
    int n = C->run.n_fits, groups = n > HS_FITS_MAX ? -1 : lay_orders(fits, n, O);
    if (groups < 0) return HUGE_VAL;
    off_discs(fits, n, A, 0, HS_NEAR_NATS, work, X);
    order_growth(O, groups, A, work, grown);
    return fmin(over_groups(fits, n, X, 1, turn, of_log) + over_orders(O, groups, A, 0, grown, 1),
                over_groups(fits, n, X, 1, turn, of_one) + over_orders(O, groups, A, 0, grown, 0) + excess * SLACK);
}

/* The outline of the run, where there is one: what is placed by it enters no bound [theory: line.planning]. */
hs_run hs_outline(const hs_run *run)
{
    hs_run out = *run;
    int n = run->n_outline;
    if (!n) return out;
    out.b = out.ruled = n;
    out.light = run->light_outline;
    out.m = run->outline;
    out.q = run->outline + n;
    out.k = run->outline + 2 * n;
    return out;
}

/* What small shifts add to S->fitted and S->loose at the tilt i, and at the line to every node: the bound grows with
 * the frequency, so that one at n serves from n/2 on. */
static void visit_orders(const hs_contour *C, const hs_orders *O, int groups, int i, double A, double *work, hs_sums *S)
{
    double grown[HS_ORDER_GROUPS], off = 0, still;
    int64_t n, from = C->N + 1;
    if (!groups) return;
    order_growth(O, groups, A, work, grown);
    still = over_orders(O, groups, A, 0, grown, 1);
    S->fitted[i] += still;
    S->loose[i] += i ? over_orders(O, groups, A, 0, grown, 0) : 0;
    for (n = C->N; !i && n > 0; n--) {
        if (n < from) {
            off = over_orders(O, groups, A, (double)n * C->dy, grown, 1) + still;
            from = n / 2;
        }
        S->fit[n] += off;
    }
}

/* What the rules are off by at the tilts of the aliases, to a nat; what more of it M - 1 is off by comes with the rows.
 */
static int visit_aliases(const hs_contour *C, const hs_orders *O, int groups, double *work, hs_sums *S)
{
    double X[HS_FITS_MAX];
    const hs_fit *fits = C->run.fits;
    int i, rows = C->run.n_fits;
    for (i = 1; i < 3; i++) {
        double s = i == 1 ? C->s_right : C->s_left, turn = fabs(s * (1 + s)), at = hs_contour_tilt(C, s);
        off_discs(fits, rows, at, 0, 1e-3 * HS_FIT_NATS, work, X);
        S->fitted[i] = over_groups(fits, rows, X, 1, turn, of_log);
        S->loose[i] = over_groups(fits, rows, X, 1, turn, of_one);
        visit_orders(C, O, groups, i, at, work, S);
        if (!(fmin(S->fitted[i], S->loose[i]) < HS_FIT_NATS)) return HS_TOO_WIDE;
    }
    return HS_OK;
}

/* All that the rules are off by, which the first chunk starts with: K at the three tilts, fit of every node, the
 * bounds of the tail. HS_TOO_WIDE: no ellipse will do at some of these. */
int hs_fit_visit(const hs_contour *C, double *work, hs_sums *S)
{
    double X[HS_FITS_MAX], unit = C->c * (1 + C->c), Y = (double)C->N * C->dy, A = hs_contour_tilt(C, C->c);
    hs_orders O[HS_ORDER_GROUPS];
    const hs_fit *fits = C->run.fits;
    int i, st, rows = C->run.n_fits, groups = rows > HS_FITS_MAX ? -1 : lay_orders(fits, rows, O);
    int64_t n;
    if (groups < 0) return HS_BAD_ARGUMENT;
    if (!rows) return HS_OK;
    if ((st = visit_aliases(C, O, groups, work, S))) return st;
    off_discs(fits, rows, A, 0, 0, work, X);
    S->fitted[0] = over_groups(fits, rows, X, 1, unit, of_log);
    for (n = C->N; n >= 0; n--) {
        double y = (double)n * C->dy, turn = hypot(C->c, y) * hypot(1 + C->c, y);
        S->fit[n] = n ? over_groups(fits, rows, X, turn / unit * SLACK, turn * SLACK, of_log) + S->fitted[0] : 0;
        if (n == C->N && !(S->fit[n] < HUGE_VAL)) return HS_TOO_WIDE;
    }
    visit_orders(C, O, groups, 0, A, work, S);
    if (!(S->fit[C->N] < HUGE_VAL)) return HS_TOO_WIDE;
    S->slack = S->far[0] = 0.5 * over_groups(fits, rows, X, 1, 0, of_square);
    for (i = 0; i < rows; i++)
        if (fits[i].q == 1) {
            double less = 0.5 * fits[i].weight * SLACK;
            S->far[0] += less * C->y_far * C->y_far;
            for (n = 0; n < C->bands; n++) S->spread[n] -= 2 * less;
            for (n = 0; n < C->doublings; n++) S->gauss[n] -= less * ldexp(Y * Y, 2 * (int)n);
        }
    return HS_OK;
}
