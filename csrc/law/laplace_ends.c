/* laplace_ends.c - the transform of a Poisson-subsampled Laplace step at high frequency, from both ends of its loss.
 *
 * Symbols as in laplace.c. lambda = log(1+U) in [lambda_0, lambda_1], alpha = 1+c (REMOVE) or -c (ADD),
 *   E = e^u = (e^lambda - 1 + q)/q; f(lambda) = e^{-m/2}/(4 q M(c)) e^{(alpha+1) lambda} E^{-3/2}: the tilted density
 *   of lambda; u = 2^-53 in error claims.
 *
 * Formula [theory: law.laplace-ends]. S(y) = e^{iy lambda_0} J_0 - e^{iy lambda_1} J_1,
 *   J = i int_0^inf f(lambda_j + i tau) e^{-y tau} d tau = sum_n f^(n)(lambda_j) (i/y)^{n+1}.
 *   Taylor coefficients from f' = f (alpha + 1 - 3g/2), g = e^lambda/(e^lambda - 1 + q), g' = g(1-g).
 *
 * Error claim. After n terms the rest is at most n! d^{-n} F/y^{n+1}, F = sup |f| over real parts >= lambda_j - d, d
 *   the least of 0.8 of the distance to log(1-q) and 8/(1+|alpha|), so that F is at most e^8 11 f; kept in lost[]. Used
 *   from y_ends on, where y d = 67 makes it below 1e-18 f/y for n = 32. Rounding: the same recursion in absolute values
 *   bounds every coefficient, and its relative rounding after n steps is below 2n(n+8)u.
 *
 * What it does not do: low frequencies (quadrature, laplace.c).
 */
#include "law/law.h"

#define TERMS HS_ENDS_TERMS

/* Derivatives f^(n)(lambda), n < TERMS, in units of y_ends^n, and bounds of their absolute values. */
static void derivatives(double q, double alpha, double lambda, double f0, double unit, double *out, double *bound)
{
    double g[TERMS + 1], G[TERMS + 1], f[TERMS + 1];
    double F[TERMS + 1], fact = 1;
    int n, j;
    g[0] = 1 / (1 - (1 - q) * exp(-lambda));
    G[0] = fabs(g[0]);
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

/* Expansion at the tilt w->c. lost[j]: what J_j misses, times y. */
void hs_ends_tilt(hs_law *w, double *scratch)
{
    double m = w->m, q = w->q, alpha = w->add ? -w->c : 1 + w->c;
    double wall = log1p(-q), scale, d[2];
    int j, n;
    w->ends = scratch;
    w->lambda[0] = log1p(q * expm1(-m));
    w->lambda[1] = log1p(q * expm1(m));
    w->mass[0] = w->atoms * 0.5 * exp(alpha * w->lambda[0] - w->log_m);
    w->mass[1] = w->atoms * 0.5 * exp(alpha * w->lambda[1] - m - w->log_m);
    /* lambda - log(1-q) = log(1 + q e^u/(1-q)) */
    for (j = 0; j < 2; j++) d[j] = fmin(0.8 * log1p(q / (1 - q) * exp(j ? m : -m)), 8 / (1 + fabs(alpha)));
    w->y_ends = 67 / d[0];
    scale = w->smooth * exp(-0.5 * m - w->log_m) / (4 * q);
    for (j = 0; j < 2; j++) {
        double *out = scratch + 2 * j * (TERMS + 1), *bound = out + TERMS + 1, left = w->lambda[j] - d[j];
        double top, x, rest = 0;
        double f0 = scale * exp((alpha + 1) * w->lambda[j] - (j ? 1.5 : -1.5) * m);
        derivatives(q, alpha, w->lambda[j], f0, w->y_ends, out, bound);
        top = fmax((alpha + 1) * left, (alpha + 1) * (w->lambda[j] + d[j]));
        x = scale * exp(top) * pow((exp(left) - exp(wall)) / q, -1.5) * (1 + 1e-9);
        for (n = 1; n <= TERMS; n++) x *= n / (d[j] * w->y_ends); /* [theory: law.laplace-ends] */
        for (n = 0; n < TERMS; n++) rest += bound[n];
        w->lost[j] = x + rest +
                     f0 * HS_U * (40 + 8 * (fabs(alpha) + 4) * (fabs(w->lambda[j]) + m) + 4 * fabs(w->log_m)) +
                     f0 * 2 * w->err;
    }
}

/* The atoms' part of phi. */
void hs_ends_atoms(const hs_law *w, double y, double *ar, double *ai)
{
    double s = w->add ? -1 : 1, a = y * w->lambda[0], b = y * w->lambda[1];
    *ar = w->mass[0] * cos(a) + w->mass[1] * cos(b);
    *ai = s * (w->mass[0] * sin(a) + w->mass[1] * sin(b));
}

/* phi(y) - 1 for y >= y_ends. */
void hs_ends_phi(const hs_law *w, double y, double *zr, double *zi)
{
    double r = w->y_ends / y, sr = 0, si = 0;
    int j, n;
    for (j = 0; j < 2; j++) {
        const double *b = w->ends + 2 * j * (TERMS + 1);
        double even = 0, odd = 0, th = y * w->lambda[j], co = cos(th);
        double s = sin(th), jr, ji;
        for (n = TERMS - 2; n >= 0; n -= 2) {
            even = b[n] - r * r * even;
            odd = b[n + 1] - r * r * odd;
        }
        jr = -r * odd / y;
        ji = even / y; /* i (even + i r odd)/y */
        if (j) {
            jr = -jr;
            ji = -ji;
        }
        sr += co * jr - s * ji;
        si += co * ji + s * jr;
    }
    hs_ends_atoms(w, y, zr, zi);
    *zr += sr - 1;
    *zi += w->add ? -si : si;
}

/* What phi misses at every frequency >= y >= y_ends, phases of the smooth part included. */
double hs_ends_missing(const hs_law *w, double y)
{
    double low = w->mass[0] * 2 * w->err + w->mass[1] * 2 * w->err, smooth = 0;
    int j;
    for (j = 0; j < 2; j++) smooth += fabs(w->ends[2 * j * (TERMS + 1)]) * 4 * HS_U * fabs(w->lambda[j]);
    return low + HS_U * (20 + 4 * (fabs(w->c) + 2) * (w->m + 1)) + (w->lost[0] + w->lost[1]) / y + 4 * smooth;
}
