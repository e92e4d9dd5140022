/* laplace_ends.c - the transform of a Poisson-subsampled Laplace step at high frequency, from both ends of its loss.
 *
 * Symbols as in laplace.c. lambda = log(1+U) in [lambda_0, lambda_1], alpha = 1+c (REMOVE) or -c (ADD),
 *   E = e^u = (e^lambda - 1 + q)/q; f(lambda) = e^{-m/2}/(4 q M(c)) e^{(alpha+1) lambda} E^{-3/2}: the tilted density
 *   of lambda; rho = q e^{-m}/(1-q) at the left end, q e^m/(1-q) at the right one: the distance of lambda_j from the
 *   singularity of f at log(1-q) is D = log(1+rho); g = 1 + 1/rho; u = 2^-53 in error claims.
 *
 * Formulas [theory: law.laplace-ends]. S(y) = e^{iy lambda_0} J_0 - e^{iy lambda_1} J_1, J = i f(lambda_j) G(y),
 *       G(y) = int_0^inf h(tau) e^{-y tau} d tau, h(tau) = e^{i(alpha+1) tau} (1 + g(e^{i tau} - 1))^{-3/2}, |h| <= 1.
 *   y >= y_out: J = sum_n f^(n)(lambda_j) (i/y)^{n+1}. Taylor coefficients from f' = f (alpha + 1 - 3g/2), g' = g(1-g).
 *   y_ends <= y < y_out: Chebyshev series of G, one an octave of y, from G at 28 points, each by Gauss-Legendre panels
 *   that double in length. A series is computed when the first node falls into its octave, and kept.
 *
 * Error claims. Terms: the rest after n of them is at most n! d^{-n} F/y^{n+1}, F = sup |f| over real parts
 *   >= lambda_j - d, d the least of 0.8 D and 8/(1+|alpha|), so that F is at most e^8 11 f; kept in lost[]. Used from
 *   y_out on, where y d = 67 makes it below 1e-18 f/y for n = 32. Rounding: the same recursion in absolute values
 *   bounds every coefficient, and its relative rounding after n steps is below 2n(n+8)u. Series: see octave_error.
 *
 * What it does not do: low frequencies (quadrature, laplace.c).
 */
#include "law/law.h"

#define TERMS HS_ENDS_TERMS
#define COEFS HS_ENDS_COEFS

enum { GAUSS = 20 };

/* The positive nodes of the Gauss-Legendre rule of 20 points, and their weights. */
static const double gauss_x[GAUSS / 2] = {
    0.993128599185094925, 0.963971927277913791, 0.912234428251325906, 0.839116971822218823, 0.746331906460150793,
    0.636053680726515025, 0.510867001950827098, 0.373706088715419561, 0.227785851141645078, 0.0765265211334973338};
static const double gauss_w[GAUSS / 2] = {
    0.0176140071391521183, 0.0406014298003869413, 0.0626720483341090636, 0.0832767415767047487, 0.101930119817240435,
    0.118194531961518417,  0.131688638449176627,  0.142096109318382051,  0.149172986472603747,  0.152753387130725851};

/* Derivatives f^(n)(lambda), n < TERMS, in units of unit^n, and bounds of their absolute values. */
static void derivatives(double g0, double alpha, double f0, double unit, double *out, double *bound)
{
    double g[TERMS + 1], G[TERMS + 1], f[TERMS + 1];
    double F[TERMS + 1], fact = 1;
    int n, j;
    g[0] = G[0] = g0;
    f[0] = F[0] = f0;
    for (n = 0; n < TERMS; n++) { /* Taylor coefficients in (lambda' - lambda)/unit^-1 */
        double s = g[n], S = G[n], t = (alpha + 1) * f[n], T = fabs(alpha + 1) * F[n];
        for (j = 0; j <= n; j++) {
            s -= g[j] * g[n - j];
            S += G[j] * G[n - j];
            t -= 1.5 * g[j] * f[n - j];
            T += 1.5 * G[j] * F[n - j];
        }
        g[n + 1] = s / ((n + 1) * unit);
        G[n + 1] = S / ((n + 1) * unit);
        f[n + 1] = t / ((n + 1) * unit);
        F[n + 1] = T / ((n + 1) * unit);
    }
    for (n = 0; n < TERMS; n++) {
        out[n] = f[n] * fact;
        bound[n] = F[n] * fact * 2 * (n + 1) * (n + 9) * HS_U;
        fact *= n + 1;
    }
}

static double exponent_of(const hs_law *w) { return w->add ? -w->c : 1 + w->c; }

/* The Taylor coefficients of an end, then their bounds. */
static double *terms_of(const hs_law *w, int j) { return w->ends + (ptrdiff_t)2 * j * (TERMS + 1); }

/* Of an end's octave: whether it has been computed, what it misses of J, then re and im of its coefficients. */
static double *octave_of(const hs_law *w, int j, int i)
{ return w->ends + 4 * (TERMS + 1) + (ptrdiff_t)(j * HS_ENDS_OCTAVES + i) * (2 * COEFS + 2); }

/* The terms of an end whose expansion holds within the radius d of it, and lost[j]. */
static void lay_terms(hs_law *w, int j, double d)
{
    double m = w->m, q = w->q, alpha = exponent_of(w), left = w->lambda[j] - d;
    double scale = w->smooth * exp(-0.5 * m - w->log_m) / (4 * q), top, x, rest = 0;
    double f = scale * exp((alpha + 1) * w->lambda[j] - (j ? 1.5 : -1.5) * m);
    double *out = terms_of(w, j), *bound = out + TERMS + 1;
    int n;
    derivatives(1 + 1 / w->rho[j], alpha, f, w->y_out[j], out, bound);
    top = fmax((alpha + 1) * left, (alpha + 1) * (w->lambda[j] + d));
    x = scale * exp(top) * pow((exp(left) - exp(log1p(-q))) / q, -1.5) * (1 + 1e-9);
    for (n = 1; n <= TERMS; n++) x *= n / (d * w->y_out[j]); /* [theory: law.laplace-ends] */
    for (n = 0; n < TERMS; n++) rest += bound[n];
    w->level_f[j] = HS_U * (40 + 8 * (fabs(alpha) + 4) * (fabs(w->lambda[j]) + m) + 4 * fabs(w->log_m)) + 2 * w->err;
    w->lost[j] = x + rest + f * w->level_f[j];
}

/* Both expansions at the tilt w->c. lost[j]: what J_j misses, times y. */
void hs_ends_tilt(hs_law *w, double *scratch)
{
    double m = w->m, q = w->q, alpha = exponent_of(w), d[2];
    int j, n;
    w->ends = scratch;
    w->lambda[0] = log1p(q * expm1(-m));
    w->lambda[1] = log1p(q * expm1(m));
    w->mass[0] = w->atoms * 0.5 * exp(alpha * w->lambda[0] - w->log_m);
    w->mass[1] = w->atoms * 0.5 * exp(alpha * w->lambda[1] - m - w->log_m);
    w->y_ends = 8 / (w->lambda[1] - w->lambda[0]); /* quadrature is exact enough up to there, and rounds less */
    for (j = 0; j < 2; j++) {
        w->rho[j] = q / (1 - q) * exp(j ? m : -m);
        d[j] = fmin(0.8 * log1p(w->rho[j]), 8 / (1 + fabs(alpha)));
        w->y_out[j] = 67 / d[j];
        w->y_ends = fmax(w->y_ends, fmin(w->y_out[j], fmax(20, fabs(alpha + 1))));
    }
    w->y_ends = fmax(w->y_ends, ldexp(fmax(w->y_out[0], w->y_out[1]), -HS_ENDS_OCTAVES));
    for (n = 0; n < 2 * HS_ENDS_OCTAVES; n++) *octave_of(w, 0, n) = 0;
    for (j = 0; j < 2; j++) lay_terms(w, j, d[j]);
}

/* A bound of |G| at real parts >= y > 0 [theory: law.laplace-series]. */
static double tail_upper(double rho, double y)
{
    double bend = HS_PI * rho / (2 * sqrt(1 + rho)); /* pi sinh(D/2) */
    return fmin(1 / y, 2.63 * bend + exp(-HS_PI * y) / y) * (1 + 1e-12);
}

/* What a panel [lo, lo + 2 half] of tau misses of G at every real frequency in [Y, 2Y]: the best of four ellipses
 * [theory: law.gauss-panels, law.laplace-series]. */
static double octave_upper(double rho, double alpha, double Y, double lo, double half)
{
    static const double sizes[4] = {2, 3, 4, 6};
    double best = HUGE_VAL, g = 1 + 1 / rho;
    int i;
    for (i = 0; i < 4; i++) {
        double r = sizes[i], major = 0.5 * half * (r + 1 / r), minor = 0.5 * half * (r - 1 / r);
        double x0 = lo + half - major, x1 = lo + half + major, near = 1 + g * expm1(-minor);
        if (x0 > 0 && x1 < 2 * HS_PI)
            near = fmax(near, 2 * sqrt(g / rho) * exp(-0.5 * minor) * fmin(sin(0.5 * x0), sin(0.5 * x1)) * (1 - 1e-12));
        if (near > 0)
            best = fmin(best, fabs(alpha + 1) * minor - (x0 > 0 ? Y : 2 * Y) * x0 - 1.5 * log(near) -
                                  2 * GAUSS * log(r) - log1p(-1 / (r * r)));
    }
    return 64.0 / 15 * half * exp(fmin(best, 700)) * (1 + 1e-9);
}

/* Adds a panel's share of G at the frequencies y. */
HS_CLONES static void panel(double rho, double alpha, double lo, double half, const double *restrict y,
                            double *restrict re, double *restrict im)
{
    double pr[COEFS] = {0}, pi[COEFS] = {0}, g = 1 + 1 / rho;
    int i, n;
    for (i = 0; i < GAUSS; i++) {
        double side = i & 1 ? 1 : -1, tau = lo + half * (1 + side * gauss_x[i / 2]), c, s;
        double size, turn, hr, hi;
        hs_cis_m1(tau, &c, &s);
        size = half * gauss_w[i / 2] * pow((1 + g * c) * (1 + g * c) + g * s * g * s, -0.75);
        turn = (alpha + 1) * tau - 1.5 * atan2(g * s, 1 + g * c);
        hr = size * cos(turn);
        hi = size * sin(turn);
        for (n = 0; n < COEFS; n++) {
            double e = hs_exp(-y[n] * tau);
            pr[n] += hr * e;
            pi[n] += hi * e;
        }
    }
    for (n = 0; n < COEFS; n++) {
        re[n] += pr[n];
        im[n] += pi[n];
    }
}

/* G at COEFS points y of [Y, 2Y]. Returned: what quadrature and the end of the panels miss of each. */
static double tail_values(double rho, double alpha, double Y, const double *y, double *re, double *im)
{
    double lo = 0, len = 0.5 * fmin(log1p(rho), 0.5 / Y), end = fmin(45 / Y, 2.5), miss = 0;
    double bend = HS_PI * rho / (2 * sqrt(1 + rho));
    int n;
    for (n = 0; n < COEFS; n++) re[n] = im[n] = 0;
    while (lo < end * (1 - 1e-12)) {
        miss += octave_upper(rho, alpha, Y, lo, 0.5 * len);
        panel(rho, alpha, lo, 0.5 * len, y, re, im);
        lo += len;
        len = fmin(lo, end - lo);
    }
    return miss + exp(-Y * lo) / Y * fmin(1, pow(bend / lo, 1.5)) * (1 + 1e-9) + exp(-HS_PI * Y) / Y;
}

/* What the series of an octave misses of J: interpolation on the ellipse of parameter 5, whose real parts reach down to
 * 0.2 Y; values with 70 u of the integral of |h| e^{-y tau/2}, kept by interpolation up to 3.2 times
 * [theory: law.laplace-series]; the sums for the coefficients, 24 u of
 * the values each; and Clenshaw's recursion for values, whose rounding at
 * step n counts as a change of the n-th coefficient. */
static double octave_error(const hs_law *w, int j, double Y, double miss, const double *re, const double *im)
{
    double f = terms_of(w, j)[0], round = 0, all = tail_upper(w->rho[j], 0.5 * Y);
    int n;
    for (n = 0; n < COEFS; n++) round += (fabs(re[n]) + fabs(im[n])) * (n + 1) * (n + 2);
    return f * (4 * tail_upper(w->rho[j], 0.2 * Y) * pow(5, 1 - COEFS) / 4 + 3.2 * miss +
                HS_U * ((640 + 24 * COEFS) * all + 5 * round) + all * w->level_f[j]);
}

/* The i-th octave of an end, computed unless it has been. */
static const double *octave(const hs_law *w, int j, int i)
{
    double *at = octave_of(w, j, i), *re = at + 2, *im = re + COEFS, Y = ldexp(w->y_ends, i);
    double y[COEFS], vr[COEFS], vi[COEFS], miss;
    int n, p;
    if (at[0] != 0) return at;
    for (n = 0; n < COEFS; n++) y[n] = Y * (1.5 + 0.5 * cos(HS_PI * (n + 0.5) / COEFS));
    miss = tail_values(w->rho[j], exponent_of(w), Y, y, vr, vi);
    for (p = 0; p < COEFS; p++) {
        double scale = (p ? 2.0 : 1.0) / COEFS;
        double sr[4] = {0}, si[4] = {0};
        for (n = 0; n < COEFS; n++) {
            double t = scale * cos(HS_PI * ((p * (2 * n + 1)) % (4 * COEFS)) / (2.0 * COEFS));
            sr[n % 4] += t * vr[n];
            si[n % 4] += t * vi[n];
        }
        re[p] = (sr[0] + sr[1]) + (sr[2] + sr[3]);
        im[p] = (si[0] + si[1]) + (si[2] + si[3]);
    }
    at[1] = octave_error(w, j, Y, miss, re, im);
    at[0] = 1;
    return at;
}

static int octave_at(const hs_law *w, double y)
{
    int i = ilogb(y / w->y_ends);
    while (i > 0 && y < ldexp(w->y_ends, i)) i--;
    while (y >= ldexp(w->y_ends, i + 1)) i++;
    return i < 0 ? 0 : i;
}

/* J_j at `count` frequencies, by its terms or by one octave. */
HS_CLONES static void by_terms(const double *b, double y_out, const double *restrict y, int count, double *restrict jr,
                               double *restrict ji)
{
    int n, i;
    for (i = 0; i < count; i++) {
        double r = y_out / y[i], even = 0, odd = 0;
        for (n = TERMS - 2; n >= 0; n -= 2) {
            even = b[n] - r * r * even;
            odd = b[n + 1] - r * r * odd;
        }
        jr[i] = -r * odd / y[i]; /* i (even + i r odd)/y */
        ji[i] = even / y[i];
    }
}

HS_CLONES static void by_series(const double *re, const double *im, double f, double Y, const double *restrict y,
                                int count, double *restrict jr, double *restrict ji)
{
    double x[HS_LAW_BLOCK], a[HS_LAW_BLOCK] = {0}, b[HS_LAW_BLOCK] = {0};
    double c[HS_LAW_BLOCK] = {0}, d[HS_LAW_BLOCK] = {0};
    int n, i;
    for (i = 0; i < HS_LAW_BLOCK; i++) x[i] = 2 * (y[i < count ? i : 0] / Y) - 3;
    for (n = COEFS - 1; n >= 1; n--)
        for (i = 0; i < HS_LAW_BLOCK; i++) {
            double s = re[n] + 2 * x[i] * a[i] - b[i], t = im[n] + 2 * x[i] * c[i] - d[i];
            b[i] = a[i];
            a[i] = s;
            d[i] = c[i];
            c[i] = t;
        }
    for (i = 0; i < count; i++) {
        jr[i] = -f * (im[0] + x[i] * c[i] - d[i]);
        ji[i] = f * (re[0] + x[i] * a[i] - b[i]);
    }
}

/* J_j at `count` frequencies that increase. */
static void tails(const hs_law *w, int j, const double *y, int count, double *jr, double *ji)
{
    const double *b = terms_of(w, j);
    int n = 0, run, i;
    while (n < count && y[n] < w->y_out[j]) {
        const double *at;
        double Y;
        i = octave_at(w, y[n]);
        at = octave(w, j, i);
        Y = ldexp(w->y_ends, i);
        for (run = 1; n + run < count && y[n + run] < 2 * Y; run++) continue;
        by_series(at + 2, at + 2 + COEFS, b[0], Y, y + n, run, jr + n, ji + n);
        n += run;
    }
    by_terms(b, w->y_out[j], y + n, count - n, jr + n, ji + n);
}

static void turn(double x, double *co, double *si)
{
    if (fabs(x) < 1e6) {
        hs_cis_m1(x, co, si);
        *co += 1;
    } else {
        *co = cos(x);
        *si = sin(x);
    }
}

/* The atoms' part of phi. */
void hs_ends_atoms(const hs_law *w, double y, double *ar, double *ai)
{
    double s = w->add ? -1 : 1, a = y * w->lambda[0], b = y * w->lambda[1];
    *ar = w->mass[0] * cos(a) + w->mass[1] * cos(b);
    *ai = s * (w->mass[0] * sin(a) + w->mass[1] * sin(b));
}

/* phi(y) - 1 at `count` <= HS_LAW_BLOCK frequencies n dy >= y_ends from n0 on. */
void hs_ends_phi(const hs_law *w, double dy, int64_t n0, int count, double *zr, double *zi)
{
    double y[HS_LAW_BLOCK], jr[HS_LAW_BLOCK], ji[HS_LAW_BLOCK];
    double co, si;
    int j, n;
    for (n = 0; n < count; n++) {
        y[n] = (double)(n0 + n) * dy;
        zr[n] = -1;
        zi[n] = 0;
    }
    for (j = 0; j < 2; j++) {
        double side = j ? -1 : 1;
        tails(w, j, y, count, jr, ji);
        for (n = 0; n < count; n++) {
            double a = w->mass[j] + side * jr[n], b = side * ji[n];
            turn(y[n] * w->lambda[j], &co, &si);
            zr[n] += co * a - si * b;
            zi[n] += co * b + si * a;
        }
    }
    if (w->add)
        for (n = 0; n < count; n++) zi[n] = -zi[n];
}

/* What phi misses at every frequency in [low, y], low >= y_ends, phases of the smooth part included. */
double hs_ends_missing(const hs_law *w, double low, double y)
{
    double atoms = w->mass[0] * 2 * w->err + w->mass[1] * 2 * w->err, rest = 0;
    int j, i;
    for (j = 0; j < 2; j++) {
        double f = terms_of(w, j)[0], most = y >= w->y_out[j] ? w->lost[j] / fmax(low, w->y_out[j]) : 0;
        if (low < w->y_out[j])
            for (i = octave_at(w, low); ldexp(w->y_ends, i) <= y && ldexp(w->y_ends, i) < w->y_out[j]; i++)
                most = fmax(most, octave(w, j, i)[1]);
        rest += most + 16 * HS_U * f * (fabs(w->lambda[j]) + 1 / low);
    }
    return atoms + HS_U * (20 + 4 * (fabs(w->c) + 2) * (w->m + 1)) + rest;
}
