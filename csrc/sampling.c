/* sampling.c - truncated Poisson sampling: the weight of truncation, the effective sampling rate, and the loss of one
 * branch.
 *
 * What. Each of n records is kept with probability p; of more than B survivors a uniform subset of B is used. Seen from
 *   one record, with s ~ Bin(N, p) other survivors, N = n - 1: w = Pr[s >= B], q = p E[ B/(s+1) | s >= B ]
 *   [theory: pair.truncated].
 *
 * Formulas. f = Pr[s = B], r = p/(1-p) [theory: pair.truncation-weights].
 *   B > Np:   w = f (1+T),   q = (B/n) (p+T)/(1+T),        T = sum_{j>=1} prod_{i<=j} r (N-B-i+1)/(B+i)
 *   B <= Np:  w = 1 - f D,   q = (B/n) (1 - (1-p) f/w),    D = sum_{j>=1} prod_{i<=j} (B-i+1)/(r (N-B+i))
 *   Every term is positive and every ratio falls below 1 at once, so nothing cancels and about 9 sd of s terms are
 *   needed. The textbook form q = (B/n) Pr[Bin(n,p) > B]/w is 0/0 once w underflows. f by Loader's form:
 *   log f = S(N)-S(B)-S(N-B) - dev(B, Np) - dev(N-B, N(1-p)) + log(N/(2 pi B (N-B)))/2, S(x) = log x! minus Stirling's
 *   formula, dev(x, mu) = x log(x/mu) + mu - x; differences of lgamma lose 4e-6 at N = 1e9.
 *
 * Error claim (e = LDBL_EPSILON; the true value lies in every returned interval).
 *   log f: e (600 + 4|B-Np| + 176 (dev+dev') + 4|log(..)|). S: remainder of Stirling's series below its first dropped
 *     term, 2e-18 at 16; 130e by logarithms of exact factorials below 16. dev: mu carries 2e relative, which moves it
 *     by 2e|x-mu|; the series (|x-mu| < (x+mu)/10) loses 8e, x log(x/mu)+mu-x at most 176e (worst at the switch), both
 *     relative.
 *   T, D: term j carries 3e j, the sum of J terms J e, the rest of the series is below its last term times
 *     ratio/(1-ratio). The ends are widened by these and rounded outward to doubles: 2 to 3 units in the last place
 *     where long double has 64 bits.
 *
 * One branch [theory: law.branch-tails]. num = (1-q) N(0,1) + q N(up,1), den = (1-q) N(0,1) + q N(-down,1), up, down >=
 *   0 not both 0: L(x) = l(up x - up^2/2) - l(-down x - down^2/2), l(v) = log(1 - q + q e^v), increases with x. The
 *   four tails are those of the two laws at one and the same root of L = s: a root that is off moves the edge of that
 *   set, never one law against the other [theory: law.edges]. The edge is measured, not assumed: |L(x) - s| as
 *   computed, plus the rounding of L, u (share (3m|x| + 2m^2) + 14|l| + (4+q_err)|U|/(1+U)) a factor, share = q
 *   e^v/(1+U), q_err the relative error of q in units of u. Tails at x: relative error at most u (24 + q_err/(1-q) + 8
 *   (|x|+up+down+1)^2), as hazards are at most |x|+1.
 *
 * What it does not do: choose what an interval of w means for a pair (w has no safe direction); n above 2^53.
 */
#include "hs.h"
#include "special.h"
#include <float.h>
#include <math.h>

#define E LDBL_EPSILON
#define LOG_SQRT_2PI 0.918938533204672741780329736405617640L
#define TWO_PI 6.283185307179586476925286766559005768L

static long double beyond_stirling(long double x)
{
    long double z = 1 / (x * x), f = 1, i;
    if (x >= 16)
        return (1 / 12.0L -
                z * (1 / 360.0L - z * (1 / 1260.0L - z * (1 / 1680.0L - z * (1 / 1188.0L - z * (691 / 360360.0L)))))) /
               x;
    for (i = 2; i <= x; i++) f *= i; /* 15! is exact in a double */
    return logl(f) - (x + 0.5L) * logl(x) + x - LOG_SQRT_2PI;
}

static long double deviance(long double x, long double mu)
{
    long double d = (x - mu) / (x + mu), s = (x - mu) * d, term = 2 * x * d, j;
    if (!(fabsl(d) < 0.1L)) return x * logl(x / mu) + mu - x;
    for (j = 3; fabsl(term) > 0.5L * E * fabsl(s); j += 2) {
        term *= d * d;
        s += term / j;
    } /* the loop ends however sums are rounded */
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
    a = deviance(B, mu);
    b = deviance(N - B, N * (1 - p));
    half = 0.5L * logl(N / (TWO_PI * B * (N - B)));
    *err = E * (600 + 4 * fabsl(B - mu) + 176 * (a + b) + 4 * fabsl(half));
    return beyond_stirling(N) - beyond_stirling(B) - beyond_stirling(N - B) - a - b + half;
}

/* sum_{j>=1} prod_{i<=j} (a-i+1)/(b+i) odds for odds a/b < 1; relative error in err */
static long double ratio_sum(long double a, long double b, long double odds, long double *err)
{
    long double t = 1, sum = 0, moment = 0;
    long double j, rest = 0;
    for (j = 1; j <= a; j++) {
        long double ratio = odds * (a - j) / (b + j + 1);
        t *= odds * (a - j + 1) / (b + j);
        sum += t;
        moment += j * t;
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
    long double N = (long double)n - 1, B = max_batch, pl = p, f;
    long double f_err, sum, s_err, log_w;
    long double log_rest, w_err, r_err, q;
    long double q_err, x;
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
        q = B / (long double)n * (pl + sum) / (1 + sum);                /* [theory: pair.truncation-weights] */
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
    out[2] = nextafter((double)(log_w - 1.01L * w_err), -HUGE_VAL);
    out[3] = fmin(0, nextafter((double)(log_w + 1.01L * w_err), HUGE_VAL));
    out[4] = nextafter((double)(log_rest - 1.01L * r_err), -HUGE_VAL);
    out[5] = fmin(0, nextafter((double)(log_rest + 1.01L * r_err), HUGE_VAL));
    return HS_OK;
}

typedef struct {
    double l, share, err;
} factor;

/* log(1 - q + q e^v) at v = m x - m^2/2, the weight of the moved law, the error in units of u */
static factor factor_at(double m, double q, double q_err, double x)
{
    factor f = {0, 0, 0};
    double v = m * x - 0.5 * m * m, z, size;
    if (m == 0) return f;
    if (v <= 30) {
        z = q * expm1(v);
        f.l = log1p(z);
        f.share = q * exp(v) / (1 + z);
        size = fabs(z) / (1 + z);
    } else {
        double back = (1 - q) / q * exp(-v);
        f.l = v + log(q) + log1p(back);
        f.share = 1 / (1 + back);
        size = 1 + 2 * (v - log(q));
    }
    f.err = f.share * (3 * m * fabs(x) + 2 * m * m) + 14 * fabs(f.l) + (4 + q_err) * size;
    return f;
}

static double loss_at(double q, double q_err, double up, double down, double x, double *slope, double *err)
{
    factor a = factor_at(up, q, q_err, x), b = factor_at(down, q, q_err, -x);
    *slope = up * a.share + down * b.share;
    *err = HS_U * (a.err + b.err + fabs(a.l - b.l));
    return a.l - b.l;
}

/* Where the loss is s: in closed form for one-sided branches, by a quadratic for up = down (odd, so s >= 0 is
 * enough); else `last`, foretold from the losses before. To a few digits near the walls: `root` starts here. */
static double start(double q, double up, double down, double s, double last)
{
    double m = fmax(up, down), r = fabs(s), t, a;
    if (down == 0) return 0.5 * up + (s < 600 ? log1p(expm1(s) / q) : s - log(q)) / up;
    if (up == 0) return -(0.5 * down + (s > -600 ? log1p(expm1(-s) / q) : -s - log(q)) / down);
    if (up != down) return last;
    t = exp(-0.5 * m * m);
    a = (1 - q) * -expm1(-r); /* the root is scaled by e^-r, so that nothing overflows */
    r = (r + log((a + sqrt(a * a + 4 * q * q * t * t * exp(-r))) / (2 * q)) + 0.5 * m * m) / m;
    return s < 0 ? -r : r;
}

/* x with L(x) = s to rounding, -+infinity beyond the range; edge: how far the loss at x may be from s */
static double root(double q, double q_err, double up, double down, double s, double last, double *edge)
{
    double wall = log1p(-q), lo = -HUGE_VAL, hi = HUGE_VAL, x;
    double slope, err, step, L;
    int it;
    *edge = HS_U * (4 * fabs(wall) + (4 + q_err) * q / (1 - q));
    if (down == 0 && s <= wall) return -HUGE_VAL;
    if (up == 0 && s >= -wall) return HUGE_VAL;
    x = start(q, up, down, s, last);
    if (!(fabs(x) < HUGE_VAL)) x = last;
    for (it = 0; it < 200; it++) {
        L = loss_at(q, q_err, up, down, x, &slope, &err);
        *edge = (fabs(L - s) + err) * (1 + 1e-9); /* [theory: law.branch-tails, law.edges] */
        if (fabs(L - s) <= 2 * err) break;
        if (L < s) lo = x;
        else hi = x;
        step = (s - L) / fmax(slope, 1e-300);
        if (lo == -HUGE_VAL) x = fmax(x + step, x - 8 - fabs(x));
        else if (hi == HUGE_VAL) x = fmin(x + step, x + 8 + fabs(x));
        else x = x + step > lo && x + step < hi && it % 3 < 2 ? x + step : 0.5 * (lo + hi);
        if (x == lo || x == hi) break; /* x and its neighbour differ by one unit: L has no value nearer to s */
    }
    return x;
}

/* The tails of one branch at an increasing s[0..n-1]: see the head of the file. rel: relative error of the four tails
 * at s_i.
 */
int hs_sampling_tails(double q, double q_err, double up, double down, int64_t n, const double *s, double *tails,
                      double *edge)
{
    double *y_below = tails, *y_above = tails + n, *x_below = tails + 2 * n;
    double *x_above = tails + 3 * n, *rel = tails + 4 * n;
    const double r = HS_SQRT_HALF;
    double x = 0, before = 0, one;
    int64_t i;
    if (!(q > 0 && q < 1 && up >= 0 && down >= 0 && up + down > 0 && n >= 0)) return HS_BAD_ARGUMENT;
    *edge = 0;
    for (i = 0; i < n; i++) {
        double z, reach, last = x;
        if (i > 1)
            last += (x - before) * ((s[i] - s[i - 1]) / (s[i - 1] - s[i - 2])); /* extrapolated from the last two */
        before = x;
        x = root(q, q_err, up, down, s[i], fabs(last) < HUGE_VAL ? last : 0, &one);
        if (one > *edge) *edge = one;
        z = 0.5 * erfc(x * r);
        y_above[i] = (1 - q) * z + q * 0.5 * erfc((x - up) * r);
        x_above[i] = (1 - q) * z + q * 0.5 * erfc((x + down) * r);
        z = 0.5 * erfc(-x * r);
        y_below[i] = (1 - q) * z + q * 0.5 * erfc((up - x) * r);
        x_below[i] = (1 - q) * z + q * 0.5 * erfc((-down - x) * r);
        reach = fabs(x) < HUGE_VAL ? fabs(x) + up + down + 1 : 0;
        rel[i] = HS_U * (24 + q_err / (1 - q) + 8 * reach * reach);
    }
    return HS_OK;
}
