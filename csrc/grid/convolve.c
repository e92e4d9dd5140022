/* convolve.c - what surrounds the FFT of a self-convolution: tilt, spectrum powers, tail sums.
 *
 * Symbols: p_j masses of a step on {j dx}; w_j = p_j e^{t j dx}/M, M = sum_j p_j e^{t j dx} (tilted, sums to 1);
 *   phi_f = sum_j w_j e^{-2 pi i f j/n};  product P_f = prod_i phi_{i,f}^{k_i};  r = inverse transform of P, on Z_n;
 *   tail  D(eps) = sum_{y > eps} r_y e^{L - t y} (1 - e^{eps - y}),  L = sum_i k_i log M_i [GLW21, Alg. 1]
 *   [theory: grid.tilt].
 * D at lattice points comes from D_i = (1 - e^{-dx}) A_i + e^{-dx} D_{i+1}, A_i = sum_{i' > i} r_{i'} e^{..}: both
 * terms have the sign of the masses, so nothing cancels; between lattice points D is linear in e^eps.
 * Error claims (u = 2^-53): weights: (8 + 4 max|t j dx|) u relative, the error of log M apart; powers
 *   [theory: grid.power]; tails: every term (8 + 2 max|L - t y|) u and 8 n LDBL_EPSILON [theory: grid.fft-error].
 *
 * What it does not do: the FFT itself and its error [theory: grid.fft].
 */
#include "hs.h"
#include <math.h>

/* w (zeroed by the caller) += tilted masses at index j mod n_fft */
int hs_convolve_tilt(int64_t j0, int64_t n, double dx, const double *p, double t, double log_mgf, int64_t n_fft,
                     double *w)
{
    int64_t i, at;
    if (!(n_fft > 0 && n > 0)) return HS_BAD_ARGUMENT;
    at = j0 % n_fft;
    if (at < 0) at += n_fft;
    for (i = 0; i < n; i++) {
        double e = t * ((double)(j0 + i) * dx) - log_mgf;
        if (p[i] > 0) w[at] += e < 700 ? p[i] * exp(e) : exp(e + log(p[i]));
        if (++at == n_fft) at = 0;
    }
    return HS_OK;
}

static void add_norms(int64_t n, const double *x, long double *square, long double *sum)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        *square += (long double)x[i] * x[i];
        *sum += fabsl((long double)x[i]);
    }
}

/* Rows w of n_fft numbers, tilted masses of one step each,
 * without the mass at index 0: that is point[i]. norm2, norm1 of each row. */
int hs_convolve_tilts(const hs_cells *cells, double t, const double *log_mgf, int64_t n_fft, double *w, double *point,
                      double *norm2, double *norm1)
{
    int64_t i, j;
    for (i = 0; i < cells->steps; i++) {
        int64_t j0 = cells->j0[i], first = cells->start[i], n = cells->start[i + 1] - first;
        int64_t at = n_fft > 0 ? j0 % n_fft : 0, past;
        double *row = w + i * n_fft;
        long double square = 0, sum = 0;
        int st;
        for (j = 0; j < n_fft; j++) row[j] = 0;
        if ((st = hs_convolve_tilt(j0, n, cells->dx, cells->p + first, t, log_mgf[i], n_fft, row))) return st;
        point[i] = row[0];
        row[0] = 0;
        if (at < 0) at += n_fft;
        if (n > n_fft) {
            n = n_fft;
            at = 0;
        }
        past = at + n > n_fft ? at + n - n_fft : 0; /* what is not 0 lies in [at, at + n), around the end */
        add_norms(n - past, row + at, &square, &sum);
        add_norms(past, row, &square, &sum);
        norm2[i] = (double)sqrtl(square);
        norm1[i] = (double)sum;
    }
    return HS_OK;
}

/* (x + iy)^k; floor2: where |.|^2 is below it, the power underflows */
static void power(double x, double y, double k, int whole, double floor2, double *re, double *im)
{
    double z2 = x * x + y * y, r;
    *re = *im = 0;
    if (whole) {
        for (*re = 1, *im = 0;;) {
            if (whole & 1) {
                r = *re * x - *im * y;
                *im = *re * y + *im * x;
                *re = r;
            }
            if (!(whole >>= 1)) return;
            r = x * x - y * y;
            y = 2 * x * y;
            x = r;
        }
    } else if (z2 > floor2) {
        double d = (fabs(x) - 1) * (fabs(x) + 1) + y * y, th = k * atan2(y, x);
        r = exp(k * (0.5 * (z2 > 0.5 && z2 < 2 ? log1p(d) : log(z2))));
        *re = r * cos(th);
        *im = r * sin(th);
    }
}

/* product = prod over rows of (point + spec)^k, over n complex numbers (re, im interleaved) a row, times what it
 * holds unless `first`; then it may be the first row. `point` is a mass at index 0, left out of the transform: its
 * own transform is the constant, free of FFT error (tiny q: most of the mass). Error relative to |z|^k: log|z| is
 * off by 6u (log1p of |z|^2 - 1, formed without cancellation for |z| near 1, else log) plus 2u |log|z||, the
 * argument by 2 pi u, and k times them by u more: k (6 + 3 pi) u + 3 u |k log|z||; exp, cos, sin and products add 11u.
 * In total <= u (20 k + 20 + 3 |k log|z||) a row, adding the point included. Whole k <= 64 by squaring: the error of a
 * product is the sum of its factors' and 3u, so 4 k u, the row's product with the others included. */
int hs_convolve_powers(int64_t n, int64_t rows, const double *spec, const double *point, const double *k, int n_threads,
                       int first, double *product)
{
    enum { PIECE = 512 }; /* complex numbers of a piece of the product: 8 kB stay in the first-level cache */
    int64_t piece, pieces = (n + PIECE - 1) / PIECE, i;
    if (!(n > 0 && rows > 0 && n_threads > 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < rows; i++)
        if (!(k[i] >= 1)) return HS_BAD_ARGUMENT;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
#endif
    for (piece = 0; piece < pieces; piece++) {
        int64_t from = piece * PIECE, to = from + PIECE < n ? from + PIECE : n, row, j;
        for (row = 0; row < rows; row++) {
            const double *z = spec + 2 * n * row;
            double at = point[row], kr = k[row], floor2 = exp(-1500.0 / kr); /* |z|^k underflows, being below 1e-325 */
            int whole = kr <= 64 && kr == floor(kr) ? (int)kr : 0;           /* [theory: grid.power] */
            for (j = from; j < to; j++) {
                double re = z[2 * j] + at, im = z[2 * j + 1], a, b;
                if (whole != 1) power(re, im, kr, whole, floor2, &re, &im);
                if (row || !first) {
                    a = product[2 * j];
                    b = product[2 * j + 1];
                    product[2 * j] = a * re - b * im;
                    product[2 * j + 1] = a * im + b * re;
                } else {
                    product[2 * j] = re;
                    product[2 * j + 1] = im;
                }
            }
        }
    }
    return HS_OK;
}

/* a *= b over n complex numbers; a may be b. Relative error of each product <= 3u. */
int hs_convolve_multiply(int64_t n, double *a, const double *b)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        double x = a[2 * i], y = a[2 * i + 1], c = b[2 * i], d = b[2 * i + 1];
        a[2 * i] = x * c - y * d;
        a[2 * i + 1] = x * d + y * c;
    }
    return HS_OK;
}

/* x *= scale; then its Euclidean and absolute norms: relative error n 2^-53 at worst */
int hs_convolve_norms(int64_t n, double *x, double scale, double *norm2, double *norm1)
{
    long double square = 0, sum = 0;
    int64_t i;
    for (i = 0; i < n; i++) x[i] *= scale;
    add_norms(n, x, &square, &sum);
    *norm2 = (double)sqrtl(square);
    *norm1 = (double)sum;
    return HS_OK;
}

/* For i = 0..n_keep-1 (lattice points j_lo + i; index (j_lo + i) mod n of r): mass[i] = A_i, delta[i] = D at point i.
   log_scale = L - t j_lo dx. */
int hs_convolve_tail(int64_t n, const double *r, int64_t j_lo, double dx, double t, double log_scale, int64_t n_keep,
                     double *mass, double *delta)
{
    long double a = 0, d = 0, keep = expl(-dx), gain = -expm1l(-dx);
    int64_t i, at;
    if (!(n > 0 && n_keep > 0 && n_keep <= n && dx > 0 && t >= 0)) return HS_BAD_ARGUMENT;
    at = (j_lo + n - 1) % n;
    if (at < 0) at += n;
    for (i = n - 1; i >= 0; i--) {
        double e = log_scale - t * ((double)i * dx), v;
        d = gain * a + keep * d; /* [theory: grid.tilt] */
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
