/* sampling.c - truncated Poisson sampling: the weight of truncation, the effective sampling rate, and the loss of one branch.
 *
 * What. Each of n records is kept with probability p; of more than B survivors a uniform subset of B is used. Seen from one record,
 *   with s ~ Bin(N, p) other survivors, N = n - 1:   w = Pr[s >= B],   q = p E[ B/(s+1) | s >= B ]      [Gan25, Thm 3.1].
 *
 * Formulas. f = Pr[s = B], r = p/(1-p). As p Pr[s]/(s+1) = Pr[Bin(n,p) = s+1]/n and Pr[Bin(n,p) > B] = w - (1-p) f:
 *   B > Np:   w = f (1+T),   q = (B/n) (p+T)/(1+T),        T = sum_{j>=1} prod_{i<=j} r (N-B-i+1)/(B+i)
 *   B <= Np:  w = 1 - f D,   q = (B/n) (1 - (1-p) f/w),    D = sum_{j>=1} prod_{i<=j} (B-i+1)/(r (N-B+i))
 *   Every term is positive and every ratio falls below 1 at once, so nothing cancels and about 9 sd of s terms are needed. The
 *   textbook form q = (B/n) Pr[Bin(n,p) > B]/w is 0/0 once w underflows.
 *   f by Loader's form: log f = S(N)-S(B)-S(N-B) - dev(B, Np) - dev(N-B, N(1-p)) + log(N/(2 pi B (N-B)))/2, S(x) = log x! minus
 *   Stirling's formula, dev(x, mu) = x log(x/mu) + mu - x; differences of lgamma lose 4e-6 at N = 1e9.
 *
 * Error claim (e = LDBL_EPSILON; the true value lies in every returned interval).
 *   log f: e (600 + 4|B-Np| + 176 (dev+dev') + 4|log(..)|). S: remainder of Stirling's series below its first dropped term, 2e-18 at 16;
 *     130e by logarithms of exact factorials below 16. dev: mu carries 2e relative, which moves it by 2e|x-mu|; the series
 *     (|x-mu| < (x+mu)/10) loses 8e, x log(x/mu)+mu-x at most 176e (worst at the switch), both relative.
 *   T, D: term j carries 3e j, the sum of J terms J e, the rest of the series is below its last term times ratio/(1-ratio).
 *   The ends are widened by these and rounded outward to doubles: 2 to 3 units in the last place where long double has 64 bits.
 *
 * What it does not do: choose what an interval of w means for a pair (w has no safe direction); n above 2^53.
 */
#include "hs.h"
#include <float.h>
#include <math.h>

#define E LDBL_EPSILON
#define LOG_SQRT_2PI 0.918938533204672741780329736405617640L
#define TWO_PI 6.283185307179586476925286766559005768L

static long double beyond_stirling(long double x)
{
    long double z = 1 / (x * x), f = 1, i;
    if (x >= 16)
        return (1 / 12.0L - z * (1 / 360.0L - z * (1 / 1260.0L - z * (1 / 1680.0L - z * (1 / 1188.0L - z * (691 / 360360.0L)))))) / x;
    for (i = 2; i <= x; i++) f *= i; /* 15! is exact in a double */
    return logl(f) - (x + 0.5L) * logl(x) + x - LOG_SQRT_2PI;
}

static long double deviance(long double x, long double mu)
{
    long double d = (x - mu) / (x + mu), s = (x - mu) * d, term = 2 * x * d, last = 0, j;
    if (!(fabsl(d) < 0.1L)) return x * logl(x / mu) + mu - x;
    for (j = 3; s != last; j += 2) { term *= d * d; last = s; s += term / j; }
    return s;
}

/* log Pr[Bin(N, p) = B], 1 <= B <= N, 0 < p < 1 */
static long double log_pmf(long double N, long double B, long double p, long double *err)
{
    long double mu = N * p, a, b, half;
    if (B == N) {
        a = N * (p > 0.5L ? log1pl(p - 1) : logl(p)); /* p - 1 is exact above 1/2 */
        *err = 4 * E * fabsl(a);
        return a;
    }
    a = deviance(B, mu); b = deviance(N - B, N * (1 - p)); half = 0.5L * logl(N / (TWO_PI * B * (N - B)));
    *err = E * (600 + 4 * fabsl(B - mu) + 176 * (a + b) + 4 * fabsl(half));
    return beyond_stirling(N) - beyond_stirling(B) - beyond_stirling(N - B) - a - b + half;
}

/* sum_{j>=1} prod_{i<=j} (a-i+1)/(b+i) odds for odds a/b < 1; relative error in err */
static long double ratio_sum(long double a, long double b, long double odds, long double *err)
{
    long double t = 1, sum = 0, moment = 0, j, rest = 0;
    for (j = 1; j <= a; j++) {
        long double ratio = odds * (a - j) / (b + j + 1);
        t *= odds * (a - j + 1) / (b + j);
        sum += t; moment += j * t;
        rest = t * ratio / (1 - ratio);
        if (rest <= E * sum) break;
    }
    *err = sum > 0 ? E * (3 * moment / sum + j + 4) + (j <= a ? rest / sum : 0) : 0;
    return sum;
}

/* x (1 -+ err), outward as doubles */
static void interval(long double x, long double err, double *out)
{
    out[0] = nextafter((double)(x - fabsl(x) * err), -HUGE_VAL);
    out[1] = nextafter((double)(x + fabsl(x) * err), HUGE_VAL);
}

/* Intervals of q, log w, log(1-w) for 0 < p < 1, 1 <= B <= n - 1: out[0..1], out[2..3], out[4..5]. */
int hs_sampling_truncation(double p, double n, double max_batch, double *out)
{
    long double N = (long double)n - 1, B = max_batch, pl = p, f, f_err, sum, s_err, log_w, log_rest, w_err, r_err, q, q_err, x;
    if (!(p > 0 && p < 1 && n <= 9007199254740992.0 && max_batch >= 1 && max_batch <= n - 1)) return HS_BAD_ARGUMENT;
    if (floor(n) != n || floor(max_batch) != max_batch) return HS_BAD_ARGUMENT;
    f = log_pmf(N, B, pl, &f_err);
    if (B > N * pl) {
        sum = ratio_sum(N - B, B, pl / (1 - pl), &s_err);
        log_w = f + log1pl(sum);
        w_err = f_err + s_err * sum / (1 + sum) + 2 * E * (log1pl(sum) + 1);
        if (!(log_w < -w_err)) return HS_OUT_OF_RANGE;
        log_rest = logl(-expm1l(log_w));
        r_err = w_err / expm1l(-log_w) + 4 * E * (1 + fabsl(log_rest)); /* d log(1-w) = -w/(1-w) d log w */
        q = B / (long double)n * (pl + sum) / (1 + sum);
        q_err = s_err * sum * (1 - pl) / ((pl + sum) * (1 + sum)) + 8 * E;
    } else {
        sum = ratio_sum(B, N - B, (1 - pl) / pl, &s_err);
        log_rest = f + logl(sum);
        r_err = f_err + s_err + 2 * E * (fabsl(logl(sum)) + 1);
        if (!(log_rest < -r_err)) return HS_OUT_OF_RANGE;
        log_w = log1pl(-expl(log_rest));
        w_err = expl(log_rest - log_w) * r_err + 4 * E * (1 + fabsl(log_w));
        x = (1 - pl) * expl(f - log_w);
        q = B / (long double)n * (1 - x);
        q_err = x / (1 - x) * (f_err + w_err + E * (8 + 2 * fabsl(f))) + 8 * E;
    }
    interval(q, q_err * 1.01L, out);
    out[2] = nextafter((double)(log_w - 1.01L * w_err), -HUGE_VAL); out[3] = fmin(0, nextafter((double)(log_w + 1.01L * w_err), HUGE_VAL));
    out[4] = nextafter((double)(log_rest - 1.01L * r_err), -HUGE_VAL); out[5] = fmin(0, nextafter((double)(log_rest + 1.01L * r_err), HUGE_VAL));
    return HS_OK;
}
