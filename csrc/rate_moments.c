/* rate_moments.c - Chebyshev moments of steps in two variables at once, as a rule over shifts and rates needs them.
 *
 * Symbols. x, y in [-1, 1]: where a step's shift and rate lie in their spans. T_{j+1} = 2 x T_j - T_{j-1}.
 *
 * Formula. sums[i][j] = sum k T_i(x) T_j(y), as a sum of two doubles.
 *
 * Error claim. Of the sum of k at most (n + 8)^2 u^2 + 2^-70 + n 2^-76, and what T_i(x) and T_j(y) are off by, v (1.5
 *   i^2 + 1) and v (1.5 j^2 + 1) with v the unit of long double [theory: compression.moments]. Factors are a double of
 *   24 bits, which products keep exactly, and the rest; sums keep what they round off, in a sum of parts of 2^-23 that
 *   is itself rounded at every step.
 */
#include "hs.h"
#include "special.h"

enum { DEGREES = HS_RATE_DEGREES };

/* t[j] = k T_j(x) as high[j] + low[j], the first of 24 bits. */
static void split(int n, long double x, double k, double *high, double *low)
{
    long double before = 1, now = x;
    int j;
    for (j = 0; j < n; j++) {
        long double t = j ? now : 1, next = 2 * x * now - before;
        high[j] = (double)(float)(k * t);
        low[j] = (double)(k * t - (long double)high[j]);
        if (j) {
            before = now;
            now = next;
        }
    }
}

/* sum + rest += (xh + xl) times each (yh + yl). */
HS_CLONES static void add_product_row(int n, double xh, double xl, const double *restrict yh, const double *restrict yl,
                                      double *restrict sum, double *restrict rest)
{
    int j;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double lost = xh * yl[j] + xl * (yh[j] + yl[j]);
        hs_add_kept(xh * yh[j], &sum[j], &lost);
        rest[j] += lost;
    }
}

int hs_rate_moments(int64_t n, const long double *x, const long double *y, const double *k, int nx, int ny,
                    double *sums)
{
    double xh[DEGREES], xl[DEGREES], yh[DEGREES], yl[DEGREES];
    double *rest = sums + (int64_t)nx * ny;
    int64_t s;
    int i;
    if (nx < 1 || ny < 1 || nx > DEGREES || ny > DEGREES) return HS_BAD_ARGUMENT;
    memset(sums, 0, sizeof(double) * 2 * (size_t)nx * (size_t)ny);
    for (s = 0; s < n; s++) {
        split(nx, x[s], k[s], xh, xl);
        split(ny, y[s], 1, yh, yl);
        for (i = 0; i < nx; i++)
            add_product_row(ny, xh[i], xl[i], yh, yl, sums + (int64_t)i * ny, rest + (int64_t)i * ny);
    }
    return HS_OK;
}
