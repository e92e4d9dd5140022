/* saddle_ends.c - totals at one tilt, from power sums and near by, and what they tell of delta(eps): certified ends,
 * and estimates.
 *
 * Symbols: see saddlepoint.c.
 *
 * Formula. delta(eps) = e^{K(t) - eps t} E_t f, for every t in the domain [theory: saddle.identity]. From it:
 *   estimates   at the saddle K'(t) = eps + 1/t + 1/(1+t): MSD0, MSD1 [AGH+22, eqs 60, 61]; the series cut after beta_2
 *               and beta_3 (the published code's orders 2, 3); SP-CLT [AGH+22, eq. 66], f under N(K', s^2); and SP-CLT
 *               with two Edgeworth terms [theory: saddle.estimates].
 *   CLT ends    |E_t f - E_N f| <= TV(f) D = 2 f_max D [theory: saddle.clt].
 *   moments     E_t f <= f_max and (sqrt(s^2 + d^2) + d)/2 [theory: saddle.moments].
 *   Chebyshev   a lower end where the CLT has none [theory: saddle.chebyshev].
 * The ends are valid for every t [theory: saddle.any-tilt].
 *
 * Error claim. Ends include the quadrature and rounding errors of K, K', K'', E|x|^3 (saddle_step.c), and their own
 *   rounding: the relative error of E_N f is that of gam, of the two q (|q'/q| <= min(1 + |z|, 1/z)
 *   [theory: saddle.mills]) and of e^{-gam^2/2}; see normal_part. Everything is relative to e^{K - eps t}, so that it
 *   holds for deltas of any size.
 *
 * What it does not do: choose a tilt (saddlepoint.c); prove anything about an estimate.
 */
#include "clt/saddlepoint.h"

void hs_tilted_cumulants(hs_tilted *T, double mean, const double *s)
{
    double A2 = s[2] / s[0], A3 = s[3] / s[0], A4 = s[4] / s[0];
    T->d[1] = mean;
    T->d[2] = A2;
    T->d[3] = A3;
    T->d[4] = A4 - 3 * A2 * A2; /* [theory: saddle.cumulants] */
    T->d[5] = s[5] / s[0] - 10 * A3 * A2;
    T->d[6] = s[6] / s[0] - 15 * A4 * A2 - 10 * A3 * A3 + 30 * A2 * A2 * A2;
}

/* The totals carried to another tilt by Taylor's series, and E|x|^3 as if it moved like K3: for planning, no bounds. */
void hs_tilted_move(const hs_tilted *T, double t, hs_tilted *to)
{
    static const double over[7] = {0, 1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 1.0 / 6};
    double x = t - T->t, v, r, thin;
    int i, j;
    *to = *T;
    to->t = t;
    for (i = 0; i < 7; i++) { /* sum_{j >= i} d[j] x^(j-i)/(j-i)! */
        double sum = 0;
        for (j = 6; j > i; j--) sum = (sum + T->d[j]) * x * over[j - i];
        if (i) to->d[i] = T->d[i] + sum;
        else to->K = T->K + sum;
    }
    v = to->d[2];
    r = fmax(T->r3 + (T->d[3] < 0 ? -1 : 1) * (to->d[3] - T->d[3]), 0.2 * T->r3);
    thin = T->d[2] / v;
    to->kolmogorov = v > 0 ? fmin(1, T->kolmogorov * thin * sqrt(thin) * (T->r3 > 0 ? r / T->r3 : 1)) : 1;
}

/* E f(x) for x ~ N(d, s^2), d = K' - eps, and a bound of its relative error. False where it is of no use. */
static int normal_part(double t, double d, double s, double *value, double *rel)
{
    double gam = d / s, alp = t * s - gam, bet = alp + s, ea;
    double eb, shift, qa, qb;
    double da, db;
    *value = 0;
    *rel = 1;
    if (!(alp > -30 && fabs(gam) < 37)) return 0;
    qa = hs_mills(alp, &ea);
    qb = hs_mills(bet, &eb);
    shift = HS_U * (4 * t * s + 4 * fabs(gam) + 2 * s);
    da = alp > 1 ? 1 / alp : 1 + fabs(alp); /* [theory: saddle.mills] */
    db = bet > 1 ? 1 / bet : 1 + fabs(bet);
    *value = exp(-0.5 * gam * gam) * (qa - qb) * HS_NORMAL_PEAK;
    *rel = 1.01 * ((ea + da * shift) * qa + (eb + db * shift) * qb) / (qa - qb) + HS_U * (4 * gam * gam + 8);
    return qa > qb && *rel < 0.5;
}

static double log_f(double t, double x) { return log(-expm1(-x)) - t * x; }

/* Log of Chebyshev's lower bound, d > 0: interval [x1, 2d - x1] about the mean d, where f is at least y. */
double hs_log_chebyshev_lower(double t, double d, double var)
{
    double x1 = fmax(fmin(exp(-2 * t * d), fmin(log1p(1 / t), 0.25 * d)), 1e-250), w = d - x1, room = 1 - var / (w * w);
    /* [theory: saddle.chebyshev] */
    return room > 1e-6 ? fmin(log_f(t, x1), log_f(t, 2 * d - x1)) + log(room) : -HUGE_VAL;
}

/* Both ends of log delta(eps) from the totals at one tilt. */
void hs_ends_at(const hs_tilted *T, double eps, hs_ends *E)
{
    double t = T->t, d = T->d[1] - eps, var = T->d[2];
    double s = sqrt(var), E0 = T->K - eps * t, lf = hs_payoff(t);
    double slack = T->K_err + HS_U * (4 * fabs(T->K) + 4 * fabs(eps * t) + 8 * fabs(lf) + 16), fmaxv = exp(lf);
    double clt, rel, err, low;
    double d_off = HS_U * (fabs(d) + fabs(eps)), v_up = var + T->var_err, top, cheb; /* d itself is rounded */
    double d_up = d + T->mean_err + d_off, d_lo = d - T->mean_err - d_off;
    top = fmin(fmaxv, 0.5 * (sqrt(v_up + d_up * d_up) + d_up)); /* [theory: saddle.moments] */
    if (d_up < 0) top = fmin(fmaxv, 0.5 * v_up / (sqrt(v_up + d_up * d_up) - d_up));
    low = -HUGE_VAL;
    E->clt = E->error = 0;
    E->rounding = slack - T->quad - T->fit;
    if (normal_part(t, d, s, &clt, &rel)) {
        /* [theory: saddle.clt] */
        err = 2 * fmaxv * (T->kolmogorov + d_off / s);
        E->clt = clt;
        E->error = err;
        E->rounding += rel;
        top = fmin(top, clt * (1 + rel) + err + 1e-300);
        if (clt * (1 - rel) > err) low = log(hs_down(clt * (1 - rel) - err));
    }
    if (d_lo > 0) {
        cheb = hs_log_chebyshev_lower(t, d_lo, (v_up + (d_up - d_lo) * (d_up - d_lo)) * (1 + 1e-12));
        low = fmax(low, cheb - 1e-12 * (1 + fabs(cheb)));
    }
    E->log_lower = E0 - slack + low - 8 * HS_U * fabs(low); /* [theory: saddle.identity, saddle.any-tilt] */
    E->log_upper = fmin(0, E0 + slack + log(top) + 8 * HS_U * (1 + fabs(log(top))));
}

/* J_j(a) = int_{x0}^inf e^{-a(x-x0)} He_j(x) phi(x) dx / phi(x0), j = 0, 3, 4, 6. Forward recursion; beyond 25,
 * where it loses a^2 u every second step, the asymptotic series sum (-1)^i He_{j+i}(x0)/a^{i+1}, whose terms fall
 * until i ~ a^2. */
static void edgeworth_parts(double a, double x0, double *J)
{
    double he[28], rel;
    int j, i;
    he[0] = 1;
    he[1] = x0;
    for (j = 1; j < 27; j++) he[j + 1] = x0 * he[j] - j * he[j - 1];
    if (a <= 25) {
        J[0] = hs_mills(a + x0, &rel);
        for (j = 1; j < 7; j++) J[j] = he[j - 1] - a * J[j - 1];
        return;
    }
    for (j = 0; j < 7; j++) {
        double power = 1 / a;
        J[j] = 0;
        for (i = 0; i < 20; i++, power /= -a) J[j] += he[j + i] * power;
    }
}

/* Log of an estimate of delta(eps) at a tilt near the saddle; NaN where the estimate is not positive. */
static double log_estimate(const hs_tilted *T, double eps, int kind)
{
    double t = T->t, E0 = T->K - eps * t, s2 = T->d[2], s = sqrt(s2);
    double d = T->d[1] - eps, value, rel;
    if (kind == HS_CLT) return normal_part(t, d, s, &value, &rel) ? E0 + log(value) : NAN;
    if (kind == HS_EDGEWORTH) {
        double x0 = -d / s, l3 = T->d[3] / (s2 * s), l4 = T->d[4] / (s2 * s2);
        double A[7], B[7], sum;
        if (!(fabs(x0) < 12)) return NAN;
        edgeworth_parts(t * s, x0, A);
        edgeworth_parts((1 + t) * s, x0, B);
        sum = (A[0] - B[0]) + l3 / 6 * (A[3] - B[3]) + l4 / 24 * (A[4] - B[4]) + l3 * l3 / 72 * (A[6] - B[6]);
        return sum > 0 ? E0 - 0.5 * x0 * x0 - HS_LOG_SQRT_2PI + log(sum) : NAN;
    } else {
        double u = 1 / t, v = 1 / (1 + t), un = u, vn = v;
        double F[7], bracket = 1, f2, fact = -1;
        int j;
        for (j = 2; j < 7; j++) { /* (-1)^j (j-1)! (t^-j + (1+t)^-j) */
            fact *= -(j > 2 ? j - 1 : 1);
            un *= u;
            vn *= v;
            F[j] = T->d[j] + fact * (un + vn);
        }
        f2 = F[2];
        /* [theory: saddle.estimates] */
        if (kind == HS_MSD1) bracket += F[4] / (8 * f2 * f2) - 5 * F[3] * F[3] / (24 * f2 * f2 * f2);
        if (kind >= HS_MSD_K2) bracket += F[4] / (8 * f2 * f2);
        if (kind == HS_MSD_K3) bracket -= (F[6] + 10 * F[3] * F[3]) / (48 * f2 * f2 * f2);
        return f2 > 0 && bracket > 0 ? E0 - log(t) - log1p(t) - HS_LOG_SQRT_2PI - 0.5 * log(f2) + log(bracket) : NAN;
    }
}

/* The skewness gate: the closed-form Edgeworth correction where the tilted law is near normal, else the uncorrected
 * SP-CLT. */
double hs_skew(const hs_tilted *T)
{ return fmax(fabs(T->d[3]) / (T->d[2] * sqrt(T->d[2])), sqrt(fabs(T->d[4])) / T->d[2]); }

double hs_pick_estimate(const hs_tilted *T, double eps, int *kind)
{
    double x;
    if (*kind != HS_AUTO) return log_estimate(T, eps, *kind);
    *kind = HS_EDGEWORTH;
    if (hs_skew(T) < 0.5 && (x = log_estimate(T, eps, HS_EDGEWORTH), x == x)) return x;
    *kind = HS_CLT;
    if (x = log_estimate(T, eps, HS_CLT), x == x) return x;
    *kind = HS_MSD0;
    return log_estimate(T, eps, HS_MSD0);
}
