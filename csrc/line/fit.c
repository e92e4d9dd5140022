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
 *
 * Error claim. Sums of positive terms, powers and exponentials of them: SLACK pays for their rounding, 60 operations
 *   each.
 *
 * What it does not do: choose boxes and ellipses, or bound a weight (crowd.py).
 */
#include "line/line.h"

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
static double over_groups(const hs_contour *C, const double *X, double kappa, double turn,
                          double (*each)(const hs_fit *f, double D))
{
    double sum = 0, best = HUGE_VAL;
    int i;
    for (i = 0; i < C->n_fits; i++) {
        const hs_fit *f = &C->fits[i];
        double D = kappa * X[i];
        if (f->q == 1) best = 0.5 * turn * f->weight;
        else best = fmin(best, f->weight * each(f, D * SLACK));
        if (i + 1 < C->n_fits && f[1].group == f->group) continue;
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

/* D of every row at a real tilt. */
static void off_ones(const hs_contour *C, double s, double *work, double *X)
{
    int i;
    for (i = 0; i < C->n_fits; i++) X[i] = C->fits[i].q < 1 ? off_one(&C->fits[i], hs_contour_tilt(C, s), work) : 0;
}

/* How much sum k log M(s) may exceed that of the rules at a real tilt: of log M, or, where that is less, of M - 1,
 * which exceeds log M by `excess` in all over the rows of the rules [theory: compression.above]. work: HS_STEP_WORK
 * doubles. */
double hs_fit_upper(const hs_contour *C, double s, double excess, double *work)
{
    double X[HS_FITS_MAX], turn = fabs(s * (1 + s));
    if (C->n_fits > HS_FITS_MAX) return HUGE_VAL;
    off_ones(C, s, work, X);
    return fmin(over_groups(C, X, 1, turn, of_log), over_groups(C, X, 1, turn, of_one) + excess * SLACK);
}

/* All that the rules are off by, which the first chunk starts with: K at the three tilts, fit of every node, the
 * bounds of the tail. HS_TOO_WIDE: no ellipse will do at some of these. */
int hs_fit_visit(const hs_contour *C, double *work, hs_sums *S)
{
    double X[HS_FITS_MAX], unit = C->c * (1 + C->c), Y = (double)C->N * C->dy;
    int i;
    int64_t n;
    if (C->n_fits > HS_FITS_MAX) return HS_BAD_ARGUMENT;
    if (!C->n_fits) return HS_OK;
    for (i = 1; i < 3; i++) { /* to a nat; what more of it M - 1 is off by comes with the rows */
        double s = i == 1 ? C->s_right : C->s_left, turn = fabs(s * (1 + s));
        off_ones(C, s, work, X);
        S->fitted[i] = over_groups(C, X, 1, turn, of_log);
        S->loose[i] = over_groups(C, X, 1, turn, of_one);
        if (!(fmin(S->fitted[i], S->loose[i]) < HS_FIT_NATS)) return HS_TOO_WIDE;
    }
    off_ones(C, C->c, work, X);
    S->fitted[0] = over_groups(C, X, 1, unit, of_log);
    for (n = C->N; n >= 0; n--) {
        double y = (double)n * C->dy, turn = hypot(C->c, y) * hypot(1 + C->c, y);
        S->fit[n] = n ? over_groups(C, X, turn / unit * SLACK, turn * SLACK, of_log) + S->fitted[0] : 0;
        if (n == C->N && !(S->fit[n] < HUGE_VAL)) return HS_TOO_WIDE;
    }
    S->slack = S->far[0] = 0.5 * over_groups(C, X, 1, 0, of_square);
    for (i = 0; i < C->n_fits; i++)
        if (C->fits[i].q == 1) {
            double less = 0.5 * C->fits[i].weight * SLACK;
            S->far[0] += less * C->y_far * C->y_far;
            for (n = 0; n < C->bands; n++) S->spread[n] -= 2 * less;
            for (n = 0; n < C->doublings; n++) S->gauss[n] -= less * ldexp(Y * Y, 2 * (int)n);
        }
    return HS_OK;
}
