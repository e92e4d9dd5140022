/* fit.c - what a line is off by where rules of few shifts stand for many steps.
 *
 * Symbols. Steps of one sampling rate q with shifts m_i and counts k_i lie in boxes of m; a rule has shifts x_a and
 *   real weights W_a such that sum k_i T_j - sum W_a T_j is small for the Chebyshev polynomials of the box. w_m
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
 *   [theory: compression.small-near]; their rows are left out of the tail [theory: compression.light]. Rules over
 *   shifts and rates have weights of either sign and D at complex rates, too [theory: compression.rates,
 *   compression.grid]; their tail has rows of its own, a share of which bounds that of the steps
 *   [theory: compression.rates-tail].
 *
 * Error claim. Sums of positive terms, powers and exponentials of them: SLACK pays for their rounding, 60 operations
 *   each.
 *
 * What it does not do: choose boxes and ellipses, or bound a weight (compression.py, rates.py).
 */
#include "line/line.h"
#include "line/orders.h"

#define SLACK (1 + 1e-13)

/* |M(A; m) - 1| at most, at real A and the rate q; HUGE_VAL where a grid does not carry A. For 0 < A < 1 by Taylor's
 * remainder [theory: compression.between]. */
static double off_rate_upper(const hs_fit *f, double q, double A, double *work)
{
    double x = 0.5 * A * (1 - A) * pow(1 - f->q, A - 2) * q * q * expm1(f->m * f->m), log_m, err;
    if (A == 0 || A == 1) return 0;
    if (!(A > 0 && A < 1)) {
        if (hs_log_m_upper(f->m, q, A, 1, work, &log_m, &err)) return HUGE_VAL;
        x = expm1(log_m + err); /* [theory: compression.strip] */
    }
    return x >= 0 && x < 1e300 ? x * SLACK : HUGE_VAL;
}

/* The same of a two-sided pair at the real tilt z, which is that at -1 - z, too. Between 0 and -1 the quotient of 1 - M
 * by |z (1+z)| is no more than at z = 1 [theory: compression.pair]. */
static double off_pair_upper(const hs_fit *f, double z, double *work)
{
    const hs_pair pair = {1, {1}, {f->q}, {f->m}, {f->m}, 0, 0};
    double t = z > 0 || z < -1 ? z : 1, log_m, err, x;
    if (z == 0 || z == -1) return 0;
    if (!(f->m < HUGE_VAL) || hs_two_log_m_upper(&pair, t, 12, work, &log_m, &err)) return HUGE_VAL;
    x = expm1(log_m + err);
    if (t != z) x *= 0.5 * fabs(z * (1 + z));
    return x >= 0 && x < 1e300 ? x * SLACK : HUGE_VAL;
}

/* F |M - 1| at most, over complex shifts [theory: compression.strip] or complex rates [theory: compression.rates]. */
static double off_one_upper(const hs_fit *f, double A, double *work)
{
    double x = f->sides == 2 ? off_pair_upper(f, A - 1, work) : off_rate_upper(f, f->q, A, work);
    double more = f->turn > 0 ? f->q / f->least : 1;
    if (f->turn > 0 && A >= 2) x += 0.5 * A * (A - 1) * f->q * f->q * expm1(f->m * f->m) * SLACK;
    else if (f->turn > 0) x += more * more * SLACK * off_rate_upper(f, f->least, A, work);
    return x < 1e300 ? f->factor * x * SLACK : HUGE_VAL;
}

/* Whether a group is left out of a sum, for the tail or for the others: its rows are rules for something else. */
static int is_of_others(const hs_fit *f, int tail)
{ return f->count > 0 || f->of == HS_FIT_LOSS || f->of == (tail ? HS_FIT_NODES : HS_FIT_TAIL); }

/* The sum over groups of the least over their rows of weight by `each` at the frequency y and D = kappa X_row
 * e^{y turn}, of those groups that serve the tail or of those that serve all else; unit = |z (1+z)|. */
static double over_groups(const hs_fit *fits, int n, const double *X, double kappa, double unit, double y, int tail,
                          double (*each)(const hs_fit *f, double D))
{
    double sum = 0, best = HUGE_VAL;
    int i;
    for (i = 0; i < n; i++) {
        const hs_fit *f = &fits[i];
        double D = kappa * X[i];
        if (is_of_others(f, tail)) continue;
        if (f->turn > 0 && y > 0) D = D > 0 ? D * exp(f->turn * y) * SLACK : D; /* [theory: compression.rates] */
        if (f->q == 1) best = 0.5 * unit * f->weight;
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

/* Whether there are groups that are good for nodes and tilts of a line alone, as those of small shifts are. */
static int has_orders(const hs_fit *fits, int n)
{
    int i;
    for (i = 0; i < n; i++)
        if (fits[i].count > 0 || fits[i].of != HS_FIT_ALL) return 1;
    return 0;
}

double hs_fit_losses(const hs_fit *fits, int n)
{
    double X[HS_FITS_MAX] = {0};
    return n > HS_FITS_MAX || has_orders(fits, n) ? HUGE_VAL : over_groups(fits, n, X, 1, 0, 0, 0, of_loss);
}

/* log M times the largest -l. */
static double of_log_far(const hs_fit *f, double D) { return -log1p(-f->q) * of_log(f, D); }

/* D of a row in the disc of radius r about a real exponent: |M - 1|/(A) is convex in A
 * [theory: compression.near]. */
static double off_disc(const hs_fit *f, double A, double r, double *work)
{
    double low = A - r, high = A + r, size = (fabs(A) + r) * (fabs(A - 1) + r);
    if (r == 0) return off_one_upper(f, A, work);
    if (f->turn > 0) return HUGE_VAL; /* no route asks derivatives of a rule over rates */
    return fmax(off_one_upper(f, low, work) / fabs(low * (low - 1)),
                off_one_upper(f, high, work) / fabs(high * (high - 1))) *
           size * SLACK;
}

/* D of every row there, of those for the tail alone where `tail` asks for it. Of a group the rows after one by which
 * log M is off by less than `enough` are not looked at: their D is infinite. */
static void off_discs(const hs_fit *fits, int n, double A, double r, double enough, int tail, double *work, double *X)
{
    int i, done = 0;
    for (i = 0; i < n; i++) {
        const hs_fit *f = &fits[i];
        X[i] = 0;
        if (!(f->q < 1) || f->count > 0 || f->of == HS_FIT_LOSS) continue;
        if (f->of == HS_FIT_TAIL && !tail) continue;
        done = done && i && f->group == f[-1].group;
        X[i] = done ? HUGE_VAL : off_disc(f, A, r, work);
        done = done || f->weight * of_log(f, X[i]) < enough;
    }
}

/* The next group of small shifts from row *at on, where there is one: the least over its first rows will do. */
static int next_orders(const hs_fit *fits, int n, int *at, hs_orders *O)
{
    int first = *at, rows;
    while (first < n && !(fits[first].count > 0)) first++;
    for (rows = 0; first + rows < n && fits[first + rows].group == fits[first].group; rows++) continue;
    *at = first + rows;
    if (rows) hs_orders_lay(fits + first, rows < HS_ORDER_ROWS ? rows : HS_ORDER_ROWS, O);
    return rows > 0;
}

/* Of a disc: bounds of |g|, of the squares of log M, of g times the largest -l. */
typedef struct {
    double r, e, square, far;
} disc_sums;

/* What small shifts add on each of three discs about A, and to K [theory: compression.small-near]. */
static void orders_discs(const hs_fit *fits, int n, double A, double *work, disc_sums *discs, double *K)
{
    hs_orders O;
    int i, at = 0;
    while (next_orders(fits, n, &at, &O)) {
        for (i = 0; i < 3; i++) {
            double r = discs[i].r, grown = hs_orders_growth_upper(&O, A + r, work);
            double one = hs_orders_upper(&O, A, r, 0, grown, 1) * SLACK;
            double size = hs_orders_size_upper(&O, A, r, grown);
            discs[i].e += one;
            discs[i].square += O.fits->count * size * size * SLACK;
            discs[i].far -= log1p(-O.fits->q) * one * SLACK;
        }
        *K += hs_orders_upper(&O, A, 0, 0, hs_orders_growth_upper(&O, A, work), 1) * SLACK;
    }
}

/* By Cauchy's inequalities on the best of some discs: derivatives of g, |g| <= e, and of the square of a second
 * derivative [theory: compression.near]. Plain steps: sum k m^2 is off by their weight. */
int hs_fit_near(const hs_fit *fits, int n, int add, double t, double *work, hs_near *out)
{
    double X[HS_FITS_MAX], A = add ? -t : 1 + t, size = t * (1 + t), r = 0;
    disc_sums discs[3] = {{.r = 0.5 * t}, {.r = 0.15 * t}, {.r = 0.05 * t}};
    int i;
    if (n > HS_FITS_MAX || !(t > 0)) return HS_BAD_ARGUMENT;
    out->mean = out->var = out->fourth = out->side = HUGE_VAL;
    out->K = 0;
    orders_discs(fits, n, A, work, discs, &out->K);
    for (i = 0; i < 3; i++) {
        double e = discs[i].e, square = discs[i].square, far = discs[i].far, r2;
        r = discs[i].r;
        r2 = r * r;
        off_discs(fits, n, A, r, 0.1 * HS_NEAR_NATS, 0, work, X);
        e += over_groups(fits, n, X, 1, 0, 0, 0, of_log);
        square += over_groups(fits, n, X, 1, 0, 0, 0, of_log_square);
        far += over_groups(fits, n, X, 1, 0, 0, 0, of_log_far);
        out->mean = fmin(out->mean, e / r * SLACK);
        out->var = fmin(out->var, 2 * e / r2 * SLACK);
        out->fourth = fmin(out->fourth, (24 * e + 12 * square) / (r2 * r2) * SLACK);
        out->side = fmin(out->side, (6 * e + 4 * square + 4 * r * far) / (r2 * r) * SLACK);
        if (e < HS_NEAR_NATS) break;
    }
    out->K += over_groups(fits, n, X, size / ((fabs(A) + r) * (fabs(A - 1) + r)) * SLACK, size * SLACK, 0, 0, of_log);
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
    double X[HS_FITS_MAX], turn = fabs(s * (1 + s)), A = hs_contour_tilt(C, s);
    double of_logs, of_ones;
    const hs_fit *fits = C->run.fits;
    hs_orders O;
    int n = C->run.n_fits, at = 0;
    if (n > HS_FITS_MAX) return HUGE_VAL;
    off_discs(fits, n, A, 0, HS_NEAR_NATS, 0, work, X);
    of_logs = over_groups(fits, n, X, 1, turn, 0, 0, of_log);
    of_ones = over_groups(fits, n, X, 1, turn, 0, 0, of_one) + excess * SLACK;
    while (next_orders(fits, n, &at, &O)) {
        double grown = hs_orders_growth_upper(&O, A, work);
        of_logs += hs_orders_upper(&O, A, 0, 0, grown, 1) * SLACK;
        of_ones += hs_orders_upper(&O, A, 0, 0, grown, 0) * SLACK;
    }
    return fmin(of_logs, of_ones) * SLACK;
}

/* The outline of the run, where there is one: what is placed by it enters no bound [theory: line.planning]. */
hs_run hs_outline(const hs_run *run)
{
    hs_run out = *run;
    int n = run->n_outline;
    if (!n) return out;
    out.b = out.ruled = n;
    out.light = run->light_outline;
    out.apart = 0;
    out.m = run->outline;
    out.q = run->outline + n;
    out.k = run->outline + 2 * n;
    return out;
}

/* What small shifts add at the three tilts, and at the line to every node: the bound grows with the frequency, so that
 * one at n serves from n/2 on. */
static void visit_orders(const hs_contour *C, double *work, hs_sums *S)
{
    hs_orders O;
    int i, at = 0;
    while (next_orders(C->run.fits, C->run.n_fits, &at, &O))
        for (i = 0; i < 3; i++) {
            double A = hs_contour_tilt(C, i == 1 ? C->s_right : i == 2 ? C->s_left : C->c);
            double grown = hs_orders_growth_upper(&O, A, work), still = hs_orders_upper(&O, A, 0, 0, grown, 1) * SLACK,
                   off = 0;
            int64_t n, from = C->N + 1;
            S->fitted[i] += still;
            if (i) S->loose[i] += hs_orders_upper(&O, A, 0, 0, grown, 0) * SLACK;
            for (n = C->N; !i && n > 0; n--) {
                if (n < from) {
                    off = (hs_orders_upper(&O, A, 0, (double)n * C->dy, grown, 1) + still) * SLACK;
                    from = n / 2;
                }
                S->fit[n] += off;
            }
        }
}

/* What the discs are off by at the tilts of the aliases; what more of it M - 1 is off by comes with the rows. */
static void visit_aliases(const hs_contour *C, double *work, hs_sums *S)
{
    double X[HS_FITS_MAX];
    const hs_fit *fits = C->run.fits;
    int i, rows = C->run.n_fits;
    for (i = 1; i < 3; i++) {
        double s = i == 1 ? C->s_right : C->s_left, turn = fabs(s * (1 + s));
        off_discs(fits, rows, hs_contour_tilt(C, s), 0, 1e-3 * HS_FIT_NATS, 0, work, X);
        S->fitted[i] = over_groups(fits, rows, X, 1, turn, 0, 0, of_log);
        S->loose[i] = over_groups(fits, rows, X, 1, turn, 0, 0, of_one);
    }
}

/* Whether the tilts of the aliases are known to a nat. */
static int aliases_known(const hs_sums *S)
{ return fmin(S->fitted[1], S->loose[1]) < HS_FIT_NATS && fmin(S->fitted[2], S->loose[2]) < HS_FIT_NATS; }

/* Of the tail of the rows, so much at least is that of the steps, whose rates are above those of the rows
 * [theory: compression.rates-tail]. */
static double tail_share_lower(const hs_fit *fits, int n, double A, double *work)
{
    double least = 1;
    int i;
    for (i = 0; i < n; i++) {
        double log_m = 0, err = 0;
        if (fits[i].of != HS_FIT_LOSS) continue;
        if ((A >= 0 && A <= 1) || hs_log_m_upper(fits[i].m, fits[i].q, A, 1, work, &log_m, &err)) return 0;
        least = fmin(least, fits[i].factor * exp(-2 * fmax(0, log_m + err)) * (1 - 1e-13));
    }
    return least;
}

/* All that the rules are off by, which the first chunk starts with: K at the three tilts, fit of every node, the
 * bounds of the tail. HS_TOO_WIDE: no ellipse will do at some of these. */
int hs_fit_visit(const hs_contour *C, double *work, hs_sums *S)
{
    double X[HS_FITS_MAX], unit = C->c * (1 + C->c), Y = (double)C->N * C->dy, A = hs_contour_tilt(C, C->c);
    const hs_fit *fits = C->run.fits;
    int i, rows = C->run.n_fits;
    int64_t n;
    if (rows > HS_FITS_MAX) return HS_BAD_ARGUMENT;
    if (!rows) return HS_OK;
    visit_aliases(C, work, S);
    if (!aliases_known(S)) return HS_TOO_WIDE;
    off_discs(fits, rows, A, 0, 0, 1, work, X);
    S->fitted[0] = over_groups(fits, rows, X, 1, unit, 0, 0, of_log);
    for (n = C->N; n >= 0; n--) {
        double y = (double)n * C->dy, turn = hypot(C->c, y) * hypot(1 + C->c, y);
        S->fit[n] = n ? over_groups(fits, rows, X, turn / unit * SLACK, turn * SLACK, y, 0, of_log) + S->fitted[0] : 0;
        if (n == C->N && !(S->fit[n] < HUGE_VAL)) return HS_TOO_WIDE;
    }
    visit_orders(C, work, S);
    if (!aliases_known(S) || !(S->fit[C->N] < HUGE_VAL)) return HS_TOO_WIDE;
    S->share = tail_share_lower(fits, rows, A, work);
    S->slack = S->far[0] = 0.5 * over_groups(fits, rows, X, 1, 0, 0, 1, of_square);
    for (i = 0; i < rows; i++)
        if (fits[i].q == 1) {
            double less = 0.5 * fits[i].weight * SLACK;
            S->far[0] += less * C->y_far * C->y_far;
            for (n = 0; n < C->bands; n++) S->spread[n] -= 2 * less;
            for (n = 0; n < C->doublings; n++) S->gauss[n] -= less * ldexp(Y * Y, 2 * (int)n);
        }
    return HS_OK;
}
