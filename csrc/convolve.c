/* convolve.c - what surrounds the FFT of a self-convolution: tilt, spectrum powers, tail sums.

   Symbols: p_j masses of a step on {j dx}; w_j = p_j e^{t j dx} / M, M = sum_j p_j e^{t j dx} (tilted, sums to 1);
     phi_f = sum_j w_j e^{-2 pi i f j / n};  product P_f = prod_i phi_{i,f}^{k_i};  r = inverse transform of P, on Z_n;
     tail  D(eps) = sum_{y > eps} r_y e^{L - t y} (1 - e^{eps - y}),  L = sum_i k_i log M_i   [GLW21, Alg. 1; tilt: maths C.6].
   D at lattice points comes from D_i = (1 - e^{-dx}) A_i + e^{-dx} D_{i+1}, A_i = sum_{i' > i} r_{i'} e^{..}: both terms have
   the sign of the masses, so nothing cancels; between lattice points D is linear in e^eps.
   Error claims (u = 2^-53): weights: (8 + 4 max|t j dx|) u relative, the error of log M apart; powers: see hs_convolve_power;
   tails: (8 + 2 max|L - t y|) u relative and n LDBL_EPSILON for the accumulation.  Not done: the FFT itself and its error. */
#include "hs.h"
#include <math.h>

/* w (zeroed by the caller) += tilted masses at index j mod n_fft; abs_exponent = max |t j dx - log_mgf| */
int hs_convolve_tilt(long j0, long n, double dx, const double *p, double t, double log_mgf, long n_fft, double *w,
                     double *abs_exponent)
{
    long i, at;
    if (!(n_fft > 0 && n > 0)) return HS_BAD_ARGUMENT;
    *abs_exponent = 0;
    at = j0 % n_fft;
    if (at < 0) at += n_fft;
    for (i = 0; i < n; i++) {
        double e = t * ((double)(j0 + i) * dx) - log_mgf;
        if (p[i] > 0) {
            w[at] += e < 700 ? p[i] * exp(e) : exp(e + log(p[i]));
            if (fabs(e) > *abs_exponent) *abs_exponent = fabs(e);
        }
        if (++at == n_fft) at = 0;
    }
    return HS_OK;
}

/* product *= (point + spec)^k over n complex numbers (re, im interleaved); `first` sets instead of multiplying. `point` is a
   mass at index 0, left out of the transform: its own transform is the constant, free of FFT error (tiny q: most of the mass).
   Error relative to |z|^k: log|z| is off by 6u (log1p of |z|^2 - 1, formed without cancellation for |z| near 1, else
   log) plus 2u |log|z||, the argument by 2 pi u, and k times them by u more: k (6 + 3 pi) u + 3 * 745 u, as only
   |k log|z|| <= 745 survives; exp, cos, sin and products add 8u. In total <= u (20 k + 2500),
   adding the point included. Whole k <= 64 by squaring: the error of a product is the sum of its factors' and 3u, so 4 k u. */
int hs_convolve_power(long n, const double *spec, double point, double k, int first, int n_threads, double *product)
{
    long i;
    int whole = k <= 64 && k == floor(k) ? (int)k : 0;
    double floor2;
    if (!(n > 0 && k >= 1 && n_threads > 0)) return HS_BAD_ARGUMENT;
    floor2 = exp(-1500.0 / k); /* below it |z|^k underflows (< 1e-325) */
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
#endif
    for (i = 0; i < n; i++) {
        double x = spec[2 * i] + point, y = spec[2 * i + 1], z2 = x * x + y * y, re = 0, im = 0, lr, th, r;
        if (whole) {
            int left = whole;
            for (re = 1, im = 0;;) {
                if (left & 1) { r = re * x - im * y; im = re * y + im * x; re = r; }
                if (!(left >>= 1)) break;
                r = x * x - y * y; y = 2 * x * y; x = r;
            }
        } else if (z2 > floor2) {
            double d = (fabs(x) - 1) * (fabs(x) + 1) + y * y;
            lr = 0.5 * (z2 > 0.5 && z2 < 2 ? log1p(d) : log(z2));
            th = k * atan2(y, x);
            r = exp(k * lr);
            re = r * cos(th);
            im = r * sin(th);
        }
        if (first) {
            product[2 * i] = re;
            product[2 * i + 1] = im;
        } else {
            double a = product[2 * i], b = product[2 * i + 1];
            product[2 * i] = a * re - b * im;
            product[2 * i + 1] = a * im + b * re;
        }
    }
    return HS_OK;
}

/* a *= b over n complex numbers; a may be b. Relative error of each product <= 3u. */
int hs_convolve_multiply(long n, double *a, const double *b)
{
    long i;
    for (i = 0; i < n; i++) {
        double x = a[2 * i], y = a[2 * i + 1], c = b[2 * i], d = b[2 * i + 1];
        a[2 * i] = x * c - y * d;
        a[2 * i + 1] = x * d + y * c;
    }
    return HS_OK;
}

/* Euclidean and absolute norms; relative error n 2^-53 at worst */
int hs_convolve_norms(long n, const double *x, double *norm2, double *norm1)
{
    long double s = 0, a = 0;
    long i;
    for (i = 0; i < n; i++) {
        s += (long double)x[i] * x[i];
        a += fabsl((long double)x[i]);
    }
    *norm2 = (double)sqrtl(s);
    *norm1 = (double)a;
    return HS_OK;
}

/* For i = 0..n_keep-1 (lattice points j_lo + i; index (j_lo + i) mod n of r): mass[i] = A_i, delta[i] = D at point i.
   log_scale = L - t j_lo dx. */
int hs_convolve_tail(long n, const double *r, long j_lo, double dx, double t, double log_scale, long n_keep,
                     double *mass, double *delta)
{
    long double a = 0, d = 0;
    double keep = exp(-dx), gain = -expm1(-dx);
    long i, at;
    if (!(n > 0 && n_keep > 0 && n_keep <= n && dx > 0 && t >= 0)) return HS_BAD_ARGUMENT;
    at = (j_lo + n - 1) % n;
    if (at < 0) at += n;
    for (i = n - 1; i >= 0; i--) {
        double e = log_scale - t * ((double)i * dx), v;
        d = gain * a + keep * d;
        if (i < n_keep) {
            mass[i] = (double)a;
            delta[i] = (double)d;
        }
        v = e > -745 ? r[at] * exp(e) : 0;
        a += v;
        if (--at < 0) at = n - 1;
    }
    return fabsl(a) < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}
