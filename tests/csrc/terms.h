/* terms.h - the actual error of one term of a budget against what the library claims of it.
 *
 * A check makes one term large on purpose: a mesh, period, range or number of nodes coarser than any plan would
 * choose, every other term far below. term() takes that term's actual error, what is claimed of it, and how far the
 * reference itself may be off (`floor`). The claim has to cover the error of every case. Cases whose error is known
 * to a tenth and whose claim says something (is below 1) are also counted: the median of claimed/actual has to stay
 * below a factor stated once for each term, in median(), and one case in twenty has to lie within `sharp` of its
 * claim, so that a claim made that much smaller fails. With an argument the pairs are printed, for
 * benchmarks/terms.py. In the environment: with HS_FIRST_MISS the first miss ends the program; HS_FEW=N runs one in N
 * of the cases: no median is asked, but of a term with N or more some have to be seen, and some counted of one with
 * many (tests/test_terms.py asks for some of every term). Where operations are rounded in one direction (noise.h) each
 * is off by 2 u, which claims count as u. */
#ifndef HS_TERMS_H
#define HS_TERMS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS_MAX = 80, PAIRS_MAX = 4096 };
typedef struct {
    const char *name;
    long seen, n;
    double ratio[PAIRS_MAX];
} hs_term;

static hs_term terms[TERMS_MAX];
static int n_terms, missed, print_pairs;
static uint64_t seed = 88172645463325252ULL;

/* Uniform on [0, 1), by xorshift. */
static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double between(double lo, double hi) { return lo + (hi - lo) * uniform(); }
static double log_between(double lo, double hi) { return lo * exp(log(hi / lo) * uniform()); }

/* The distribution function of a normal number. */
static inline double normal_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }

/* log(1 + q (e^v - 1)), v = m g - m^2/2: the loss of a sampled Gaussian step at a standard normal g. */
static inline double sampled_loss(double m, double q, double g)
{
    double v = m * g - 0.5 * m * m;
    return v > 600 ? v + log(q) : log1p(q * expm1(v));
}

/* Gauss-Legendre nodes and weights, by Newton's method on P_n. */
static inline void gauss_legendre(int n, double *x, double *w)
{
    int i, j, it;
    for (i = 0; i < n; i++) {
        long double z = cosl(3.14159265358979323846L * (i + 0.75L) / (n + 0.5L)), p = 0, q = 0, d = 1;
        for (it = 0; it < 60; it++) {
            for (p = 1, q = 0, j = 1; j <= n; j++) {
                long double next = ((2 * j - 1) * z * p - (j - 1) * q) / j;
                q = p;
                p = next;
            }
            d = n * (z * p - q) / (z * z - 1);
            z -= p / d;
        }
        x[i] = (double)z;
        w[i] = (double)(2 / ((1 - z * z) * d * d));
    }
}

/* Where in [lo, hi] a convex exponent(run, s, x) is least: a bisection in threes. */
static inline double best_tilt(double (*exponent)(const void *, double, double), const void *run, double lo, double hi,
                               double x)
{
    int it;
    for (it = 0; it < 60; it++) {
        double a = lo + (hi - lo) / 3, b = hi - (hi - lo) / 3;
        if (exponent(run, a, x) < exponent(run, b, x)) hi = b;
        else lo = a;
    }
    return lo;
}

/* Room for n doubles. */
static inline double *room(long n)
{
    double *found = malloc(sizeof *found * (size_t)n);
    if (!found) exit(2);
    return found;
}

static int few(void) { return getenv("HS_FEW") ? atoi(getenv("HS_FEW")) : 0; }
static int cases(int n) { return few() ? n / few() + (n < few()) : n; }

static hs_term *term_of(const char *name)
{
    int i;
    for (i = 0; i < n_terms; i++)
        if (!strcmp(terms[i].name, name)) return &terms[i];
    terms[n_terms].name = name;
    return &terms[n_terms++];
}

/* Whether operations are rounded in one direction. */
static int directed(void)
{
#ifdef HS_NOISE_H
    const char *noise = getenv("HS_NOISE_KIND");
    return noise && noise[0] && noise[1] != '0';
#else
    return 0;
#endif
}

static void term(const char *name, double actual, double claimed, double floor)
{
    hs_term *T = term_of(name);
    double unit = directed() ? 2 : 1;
    T->seen++;
    if (!(actual <= unit * (claimed + floor))) {
        if (missed++ < 40)
            printf("MISS %s case %ld: actual %.6g, claimed %.6g (reference within %.1g)\n", name, T->seen, actual,
                   claimed, floor);
        if (getenv("HS_FIRST_MISS")) exit(1);
        return;
    }
    if (!(claimed < 1 && actual > 10 * floor) || T->n == PAIRS_MAX) return;
    T->ratio[T->n++] = claimed / actual;
    if (print_pairs) printf("pair %s %.6g %.6g\n", name, actual, claimed);
}

/* The same of the logarithm of an upper bound, however large, of e^log_actual, which is known to within 1e-9. */
static inline void log_term(const char *name, double log_actual, double log_upper)
{ term(name, 0.5 * exp(log_actual - log_upper), 0.5, 1e-9); }

/* The ends lie as far from the value as the terms of their sides: `both`, and the aliases. The left alias counts below
 * or above as its tilt s says. */
static inline void ends_hold(double lower, double value, double upper, double both, double left, double right, double s)
{
    double size = 1e-14 * (fabs(value) + both + left + right);
    int below = s < 0 && s >= -1;
    term("end-lower", both + right + (below ? 0 : left), value - lower, size);
    term("end-upper", both + (below ? left : 0), upper - value, size);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Once a term: at least `least` counted, median of claimed/actual at most `factor`, the twentieth part of them
 * within `sharp`. */
static void median(const char *name, long least, double factor, double sharp)
{
    hs_term *T = term_of(name);
    double mid, low;
    qsort(T->ratio, (size_t)T->n, sizeof(double), ascending);
    mid = T->n ? T->ratio[T->n / 2] : HUGE_VAL;
    low = T->n ? T->ratio[T->n / 20] : HUGE_VAL;
    printf("term %s cases %ld counted %ld of %ld least %.4g twentieth %.4g median %.4g most %.4g\n", name, T->seen,
           T->n, least, T->n ? T->ratio[0] : HUGE_VAL, low, mid, T->n ? T->ratio[T->n - 1] : HUGE_VAL);
    if (few() ? T->seen >= (least >= few()) && T->n >= (least >= 8 * few())
              : T->n >= least && mid <= factor && low <= sharp)
        return;
    printf("LOOSE %s: %ld cases (at least %ld), median %g (at most %g), twentieth %g (at most %g)\n", name, T->n, least,
           mid, factor, low, sharp);
    missed++;
}

/* A term of rounding: where operations are rounded in one direction, so that their errors add up, the median of
 * claimed/actual is at most `factor`. To nearest errors have all signs, and it is many times that. */
static inline void median_directed(const char *name, double factor)
{
    hs_term *T = term_of(name);
    if (!directed() || !T->n) return;
    qsort(T->ratio, (size_t)T->n, sizeof(double), ascending);
    if (T->ratio[T->n / 2] <= factor) return;
    printf("LOOSE %s: median %g under rounding in one direction (at most %g)\n", name, T->ratio[T->n / 2], factor);
    missed++;
}

static void terms_begin(int argc, char **argv)
{
    (void)argv;
    print_pairs = argc > 1;
}

static int terms_end(void)
{
    if (missed) printf("%d failures\n", missed);
    return missed != 0;
}

#endif
