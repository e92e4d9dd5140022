/* edgeworth.c - moments of one step's loss, and the Edgeworth accountant of orders 0 to 3.
 *
 * Symbols. A step is (kind, m, q, k): k runs of a Poisson-subsampled Gaussian (HS_LAW_NORMAL, m = sensitivity/sigma) or
 *   Laplace mechanism (HS_LAW_LAPLACE, m = sensitivity/scale). U = q (e^v - 1), L = log(1+U), with v = m g - m^2/2, g
 *   standard normal, or v = |x| - |x - m|, x Laplace. Law A has density w (no record), law B has w (1+U). REMOVE: X = L
 *   under A, Y = L under B; ADD: X = -L under B, Y = -L under A. Sums over the run: M mean, V variance, K3, K4, K5
 *   cumulants; B = sqrt V, rho_r = K_r/B^r, z = (eps - M)/B. He_n Hermite polynomials, R(w) = sf(w)/phi(w) Mills'
 *   ratio.
 *
 * Formulas. The expansion, S = sum c_i He_i, and two sequences, as published: P(Y > eps) - e^eps P(X > eps), each by
 *   its own expansion [theory: edgeworth.expansion]. One sequence, with r_j(w) = int_0^inf t^j e^{-wt - t^2/2} dt, w =
 *     z + B: delta ~ phi(z) { R(z) - r_0(w) + B sum_i c_i sum_j C(i,j) He_{i-j}(z) r_j(w) }
 *   [theory: edgeworth.one-sequence]. The usual recurrence J_n = He_{n-1} phi - B J_{n-1} loses B^n u; here only the
 *   signs of He can cancel.
 *
 * Why not raw moments: E L is -O(q^2) under A, so it is summed as log(1+U) - U, under B as (1+U) log(1+U) - U
 *   [theory: edgeworth.moments-form]; moments are taken about the mean.
 *
 * Accuracy. Everything here is an estimate, never a bound. Moments: relative 1e-12 where 1e-9 <= q, m <= 40 (tests);
 *   beyond m = 40 the two laws are a window of half-width 12 around 0 and around m. The expansion itself:
 *   O(k^{-(order+1)/2}).
 *
 * What it does not do: clamp delta to [0, 1]; choose an order; bound its error (routes/edgeworth.py, prawitz.c).
 */
#include "law/laplace_step.h"

#define HERMITE_MAX 8
#define WINDOW 12.0 /* e^{-72} at its edge */
#define BLOCK 64

typedef struct {
    double wA[BLOCK], wB[BLOCK], L[BLOCK];
    double first[BLOCK], firstB[BLOCK];
} nodes;

/* At 64 nodes from g0: weights of both laws, L, and the integrands of the two means. Nodes past the last weigh
 * nothing. */
HS_CLONES static void normal_block(double m, double q, double h, double g0, int count, nodes *N)
{
    double lq = log(q), scale = h / HS_SQRT_2PI;
    int j;
    for (j = 0; j < BLOCK; j++) {
        double g = g0 + j * h, v = m * g - 0.5 * m * m, U, t;
        double l, lm, wA, wB;
        double d = g - m, small;
        double far = j < count ? 0 : 1e4;
        U = q * hs_expm1(v > 700 ? 700 : v);
        small = U < 0.1 && U > -0.1 ? U : 0;
        t = hs_log1pmx_small(small);
        l = v > 700 ? v + lq : hs_log(1 + U);
        l = small != 0 ? U + t : l;
        wA = scale * hs_exp(-0.5 * g * g - far);
        wB = (1 - q) * wA + q * scale * hs_exp(-0.5 * d * d - far);
        lm = wB - wA; /* w U, without overflow */
        N->wA[j] = wA;
        N->wB[j] = wB;
        N->L[j] = l;
        N->first[j] = small != 0 ? wA * t : wA * l - lm; /* [theory: edgeworth.moments-form] */
        N->firstB[j] = small != 0 ? wA * (U * U + (1 + U) * t) : wB * l - lm;
    }
}

static void add_powers(const nodes *N, const double *mean, double *c)
{
    int j;
    for (j = 0; j < BLOCK; j++) {
        double a = N->L[j] - mean[0], b = N->L[j] - mean[1], a2 = a * a * N->wA[j], b2 = b * b * N->wB[j];
        c[0] += a2;
        c[1] += a2 * a;
        c[2] += a2 * a * a;
        c[3] += a2 * a * a * a;
        c[4] += b2;
        c[5] += b2 * b;
        c[6] += b2 * b * b;
        c[7] += b2 * b * b * b;
    }
}

/* The first pass sums means, the second powers about them. */
static void add_block(const nodes *N, int pass, double *mean, double *c)
{
    int j;
    if (pass) add_powers(N, mean, c);
    for (j = 0; j < BLOCK && !pass; j++) {
        mean[0] += N->first[j];
        mean[1] += N->firstB[j];
    }
}

static void to_cumulants(const double *c, double mean, double *out)
{
    out[0] = mean;
    out[1] = c[0];
    out[2] = c[1];
    out[3] = c[2] - 3 * c[0] * c[0];
    out[4] = c[3] - 10 * c[0] * c[1];
}

/* Trapezoid rule, exponentially accurate: strip |Im g| < pi/m, mesh 0.45/max(1, m) (e^{-2 pi (pi/m)/h} = e^{-43}).
 * L^5 w (1+U) is largest near g = 6 m or, once L is linear (beyond g* = m/2 - log q / m), near g* + m. Beyond m =
 * 40, L bends where neither law has mass. */
static void normal_moments(double m, double q, double *A, double *B)
{
    double h = 0.45 / (m > 1 && m < 40 ? m : 1), lo = -9.5, hi;
    double g, mean[2] = {0, 0}, c[8] = {0};
    nodes N;
    int pass;
    hi = m > 40 ? m + WINDOW : fmax(m, fmin(6 * m, 1.5 * m - log(q) / m)) + 9.5;
    for (pass = 0; pass < 2; pass++)
        for (g = lo; g <= hi; g += BLOCK * h) {
            if (m > 40 && g > WINDOW && g + BLOCK * h < m - WINDOW) continue;
            normal_block(m, q, h, g, (hi - g) / h < BLOCK - 1 ? (int)((hi - g) / h) + 1 : BLOCK, &N);
            add_block(&N, pass, mean, c);
        }
    to_cumulants(c, mean[0], A);
    to_cumulants(c + 4, mean[1], B);
}

/* One Laplace point: loss coordinate v with weight wA. */
static void laplace_point(double v, double q, double wA, int j, nodes *N)
{
    double U = q * expm1(v), small = fabs(U) < 0.1 ? U : 0, t = hs_log1pmx_small(small);
    double l = small != 0 ? U + t : log((1 - q) + q * exp(v));
    N->wA[j] = wA;
    N->wB[j] = wA * (1 + U);
    N->L[j] = l;
    N->first[j] = small != 0 ? wA * t : wA * (l - U);
    N->firstB[j] = small != 0 ? wA * (U * U + (1 + U) * t) : wA * ((1 + U) * l - U);
}

/* Atoms at v = -m (mass 1/2) and v = m (mass e^-m/2), density e^{-x}/2 at v = 2x - m, 0 < x < m: Gauss-Legendre
 * panels. */
static void laplace_moments(double m, double q, const hs_rule *rule, double *A, double *B)
{
    int panels = hs_laplace_step_panels(m), total = 2 + panels * rule->n, i;
    int j, pass, at;
    double half = 0.5 * m / panels, mean[2] = {0, 0}, c[8] = {0};
    nodes N;
    for (pass = 0; pass < 2; pass++)
        for (at = 0; at < total; at += BLOCK) {
            memset(&N, 0, sizeof N);
            for (j = 0; j < BLOCK && at + j < total; j++) {
                i = at + j - 2;
                if (i == -2) laplace_point(-m, q, 0.5, j, &N);
                else if (i == -1) laplace_point(m, q, 0.5 * exp(-m), j, &N);
                else {
                    double y = (2 * (i / rule->n) + 1 + rule->x[i % rule->n]) * half;
                    laplace_point(2 * y - m, q, 0.5 * half * rule->w[i % rule->n] * exp(-y), j, &N);
                }
            }
            add_block(&N, pass, mean, c);
        }
    to_cumulants(c, mean[0], A);
    to_cumulants(c + 4, mean[1], B);
}

int hs_laplace_step_panels(double m) { return m > 2 ? (int)ceil(0.5 * m) : 1; }

int hs_edgeworth_moments(int kind, double m, double q, const hs_rule *rule, double *A, double *B)
{
    if (!(m > 0 && q > 0 && q <= 1)) return HS_BAD_ARGUMENT;
    if (kind == HS_LAW_NORMAL && q == 1) { /* Gaussian losses N(-+m^2/2, m^2) */
        memset(A, 0, 5 * sizeof *A);
        memset(B, 0, 5 * sizeof *B);
        B[0] = 0.5 * m * m;
        A[0] = -B[0];
        A[1] = B[1] = m * m;
    } else if (kind == HS_LAW_NORMAL) normal_moments(m, q, A, B);
    else if (kind == HS_LAW_LAPLACE && m <= HS_LAPLACE_STEP_MAX && rule->n > 0) laplace_moments(m, q, rule, A, B);
    else return HS_BAD_ARGUMENT;
    return HS_OK;
}

int hs_edgeworth_totals(const hs_run *run, const hs_rule *rule, hs_poll *poll, double *Y, double *X)
{
    double A[5], B[5];
    int i, r, st;
    memset(Y, 0, 5 * sizeof *Y);
    memset(X, 0, 5 * sizeof *X);
    for (i = 0; i < run->b; i++) {
        if (hs_stopped(poll, 5e3)) return HS_INTERRUPTED;
        if ((st = hs_edgeworth_moments(hs_kind_of(run, i), run->m[i], run->q[i], rule, A, B))) return st;
        for (r = 0; r < 5; r++) { /* the sign of odd cumulants turns with the loss */
            Y[r] += run->k[i] * (run->add ? (r % 2 ? A[r] : -A[r]) : B[r]);
            X[r] += run->k[i] * (run->add ? (r % 2 ? B[r] : -B[r]) : A[r]);
        }
    }
    return Y[1] > 0 && X[1] > 0 && Y[1] < HUGE_VAL && X[1] < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* r_0..r_n at w. For w >= 1 by the continued fraction of r_n/r_{n-1} = n/(w + r_{n+1}/r_n) (all terms positive;
 * error about e^{-2 w (sqrt(2N) - sqrt(2n))} = e^-40 after N), scaled as they are; below, forward from erfc (8 steps
 * lose e^{8w}), scaled by e^{-w^2/2}. */
static void mills(double w, int n, double *r)
{
    int j, N;
    double ratio;
    if (w < 1) {
        double e = exp(-0.5 * w * w);
        r[0] = 0.5 * HS_SQRT_2PI * erfc(w * HS_SQRT_HALF);
        r[1] = e - w * r[0];
        for (j = 1; j < n; j++) r[j + 1] = j * r[j - 1] - w * r[j];
        return;
    }
    N = n + 6 + (int)(20 * sqrt(2.0 * n) / w + 200 / (w * w)); /* 6 for large w, where it is (N+1)!/(n! w^(2(N-n+1))) */
    for (ratio = 0, j = N; j > n; j--) ratio = j / (w + ratio);
    for (j = n; j > 0; j--) {
        ratio = j / (w + ratio);
        r[j] = ratio;
    }
    r[0] = 1 / (w + r[1]); /* int e^{-wt-t^2/2} (w + t) dt = 1 */
    for (j = 1; j <= n; j++) r[j] *= r[j - 1];
}

static void hermite(double z, int n, double *He)
{
    int j;
    He[0] = 1;
    He[1] = z;
    for (j = 1; j < n; j++) He[j + 1] = z * He[j] - j * He[j - 1];
}

/* c_0..c_8 of S; returns the highest index in use. */
static int coefficients(const double *T, int order, double *c)
{
    double B = sqrt(T[1]), r3 = T[2] / (B * T[1]), r4 = T[3] / (T[1] * T[1]), r5 = T[4] / (B * T[1] * T[1]);
    memset(c, 0, (HERMITE_MAX + 1) * sizeof *c);
    if (order >= 1) c[2] = r3 / 6;
    if (order >= 2) {
        c[3] = r4 / 24;
        c[5] = r3 * r3 / 72;
    }
    if (order >= 3) {
        c[4] = r5 / 120;
        c[6] = r3 * r4 / 144;
        c[8] = r3 * r3 * r3 / 1296;
    }
    return order == 0 ? 0 : order == 1 ? 2 : order == 2 ? 5 : 8;
}

/* e^{log_scale} value = 1 - F(x) of the expansion with totals T. */
static void survival(const double *T, const double *c, int top, double x, double *log_scale, double *value)
{
    double z = (x - T[0]) / sqrt(T[1]), He[HERMITE_MAX + 1], r[2];
    double S = 0, lphi = -0.5 * z * z - HS_LOG_SQRT_2PI;
    int i;
    hermite(z, HERMITE_MAX, He);
    for (i = 2; i <= top; i++) S += c[i] * He[i];
    mills(z, 1, r);
    if (z < 1) {
        *log_scale = 0;
        *value = r[0] / HS_SQRT_2PI + exp(lphi) * S;
        return;
    }
    *log_scale = lphi;
    *value = r[0] + S;
}

/* The one-sequence estimate at eps, as e^{log_scale} value; value may be negative [theory: edgeworth.one-sequence]. */
static void one_sequence(const double *T, const double *c, int top, double eps, double *log_scale, double *value)
{
    double B = sqrt(T[1]), z = (eps - T[0]) / B, w = z + B;
    double He[HERMITE_MAX + 1], r[HERMITE_MAX + 1], rz[HERMITE_MAX + 1];
    double sum = 0, lead, phi = -0.5 * z * z - HS_LOG_SQRT_2PI, rise = w < 1 ? 0.5 * w * w : 0;
    int i, j;
    hermite(z, HERMITE_MAX, He);
    mills(w, HERMITE_MAX, r);
    mills(z, B < 0.01 ? HERMITE_MAX : 1, rz);
    for (i = 2; i <= top; i++) {
        double choose = 1, part = 0;
        for (j = 0; j <= i && c[i] != 0; j++) {
            part += choose * He[i - j] * r[j];
            choose = choose * (i - j) / (j + 1);
        }
        sum += c[i] * part;
    }
    sum *= B;       /* in units of e^{phi + rise} */
    if (B < 0.01) { /* R(z) - R(z+B) by its Taylor series: the difference would lose u/B */
        for (lead = 0, j = HERMITE_MAX; j > 0; j--) lead = B / j * (rz[j] - lead);
        *log_scale = z < 1 ? 0 : phi;
        *value = z < 1 ? lead / HS_SQRT_2PI + exp(phi + rise) * sum : lead + exp(rise) * sum;
    } else if (z < 1) {
        *log_scale = 0;
        *value = rz[0] / HS_SQRT_2PI + exp(phi + rise) * (sum - r[0]);
    } else {
        *log_scale = phi;
        *value = rz[0] - r[0] + sum;
    }
}

int hs_edgeworth_delta(const double *Y, const double *X, int form, int order, double eps, double *log_scale,
                       double *value)
{
    double c[HERMITE_MAX + 1], other, sx;
    int top;
    if (!(order >= 0 && order <= 3 && (form == 1 || form == 2) && Y[1] > 0 && X[1] > 0)) return HS_BAD_ARGUMENT;
    top = coefficients(Y, order, c); /* [theory: edgeworth.expansion] */
    if (form == 1) {
        one_sequence(Y, c, top, eps, log_scale, value);
        return HS_OK;
    }
    survival(Y, c, top, eps, log_scale, value);
    top = coefficients(X, order, c);
    survival(X, c, top, eps, &sx, &other);
    sx += eps;
    if (sx > *log_scale) {
        *value *= exp(*log_scale - sx);
        *log_scale = sx;
    }
    *value -= other * exp(sx - *log_scale);
    return HS_OK;
}

/* log of the estimate over delta at z; -HUGE_VAL where it is not positive. */
static double excess(const double *Y, const double *X, int form, int order, double z, double log_delta)
{
    double s, v;
    hs_edgeworth_delta(Y, X, form, order, Y[0] + sqrt(Y[1]) * z, &s, &v);
    return v > 0 ? s + log(v) - log_delta : -HUGE_VAL;
}

/* The largest eps at which the estimate is delta: a search down from where it is surely below, then false position
 * (Illinois), bisection while one end has no logarithm. Beyond z^2/2 = -log delta + 30 nothing is left of
 * polynomials of degree 8 with coefficients below e^10. */
int hs_edgeworth_eps(const double *Y, const double *X, int form, int order, double log_delta, double *eps)
{
    double z, step = 0.5, lo, hi;
    double g, g_lo, g_hi = -HUGE_VAL;
    int it, side = 0;
    if (!(order >= 0 && order <= 3 && (form == 1 || form == 2) && Y[1] > 0 && X[1] > 0)) return HS_BAD_ARGUMENT;
    if (!(log_delta < 0 && log_delta > -1e300)) return HS_BAD_ARGUMENT;
    for (z = sqrt(2 * (30 - log_delta)) + 1; !((g_lo = excess(Y, X, form, order, z, log_delta)) >= 0); z -= step) {
        if (z < -40) {
            *eps = log1p(-exp(log_delta)) + Y[0] - 0.5 * Y[1];
            return HS_OK;
        } /* all mass above: 1 - e^eps E e^-Y */
        g_hi = g_lo;
    }
    lo = z;
    hi = z + step;
    for (it = 0; it < 80; it++) {
        z = g_hi > -HUGE_VAL ? lo + (hi - lo) * g_lo / (g_lo - g_hi) : 0.5 * (lo + hi);
        if (!(z > lo && z < hi)) z = 0.5 * (lo + hi);
        if (!(z > lo && z < hi)) break;
        g = excess(Y, X, form, order, z, log_delta);
        if (g == 0) {
            lo = hi = z;
            break;
        }
        if (g > 0) {
            lo = z;
            g_lo = g;
            if (side == 1 && g_hi > -HUGE_VAL) g_hi *= 0.5;
            side = 1;
        } else {
            hi = z;
            g_hi = g;
            if (side == -1) g_lo *= 0.5;
            side = -1;
        }
    }
    *eps = Y[0] + sqrt(Y[1]) * hi;
    return HS_OK;
}
