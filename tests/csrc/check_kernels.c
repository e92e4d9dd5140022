/* check_kernels.c - calls the contour and hyperbola entries of csrc/hs.h on plain and nasty input, for the sanitizers.
 *
 * Checked everywhere: the status is a known code; after HS_OK or HS_LOOSE every output is a number, lower <= estimate
 * <= upper, budget terms >= 0 (lower <= upper alone for eps); too little scratch is refused and nothing behind the lent
 * end is touched.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "hs.h"

static int failures;
static long calls, answers;

static void complain(const char *what, double sigma, double q, double k, double at, int add, int status)
{
    printf("FAIL %s: sigma %g q %g k %g at %g add %d status %d\n", what, sigma, q, k, at, add, status);
    failures++;
}

static int sound(const hs_point *p)
{
    return isfinite(p->log_scale) && isfinite(p->upper) && p->lower <= p->estimate && p->estimate <= p->upper &&
           p->upper > 0 && p->aliasing >= 0 && p->truncation >= 0 && p->inner >= 0 && p->rounding >= 0 &&
           p->n_nodes > 0;
}

static void check_delta(const char *name, int status, const hs_point *p, double sigma, double q, double k, double eps,
                        int add)
{
    calls++;
    if (status < 0 || status > hs_status_last()) complain(name, sigma, q, k, eps, add, status);
    if (status > HS_LOOSE) return;
    answers++;
    if (!sound(p)) complain(name, sigma, q, k, eps, add, status);
}

static void check_eps(const char *name, int status, const hs_crossing *e, double sigma, double q, double k, double ld,
                      int add)
{
    calls++;
    if (status < 0 || status > hs_status_last()) complain(name, sigma, q, k, ld, add, status);
    if (status > HS_LOOSE) return;
    answers++;
    if (!(e->lower <= e->upper) || !isfinite(e->lower) || !isfinite(e->upper) || !isfinite(e->estimate))
        complain(name, sigma, q, k, ld, add, status);
}

static double *work;
static long n_work;

static hs_contour contour_of(const double *m, const double *q, const double *k, int b, int add, int threads)
{
    hs_contour C = {0};
    C.run.b = b;
    C.run.add = add;
    C.n_threads = threads;
    C.run.m = m;
    C.run.q = q;
    C.run.k = k;
    C.n_max = HS_OUTER_MAX;
    C.rtol = 1e-9;
    C.T0 = 33;
    return C;
}

static void one(double sigma, double q, double k, double eps, double log_delta)
{
    double m = 1 / sigma;
    for (int add = 0; add < 2; add++) {
        const hs_run run = {.b = 1, .add = add, .m = &m, .q = &q, .k = &k};
        hs_point p = {0};
        hs_crossing e = {0};
        hs_contour C = contour_of(&m, &q, &k, 1, add, 1);
        int st = hs_contour_ask(&C, 1, eps, work, n_work, &e);
        check_delta("contour_delta", st, &e.delta, sigma, q, k, eps, add);
        C = contour_of(&m, &q, &k, 1, add, 1);
        st = hs_contour_ask(&C, 0, log_delta, work, n_work, &e);
        check_eps("contour_eps", st, &e, sigma, q, k, log_delta, add);
        if (q >= 1) continue;
        st = hs_hyperbola_delta(&run, eps, log(1e-9), work, n_work, &p);
        check_delta("hyperbola_delta", st, &p, sigma, q, k, eps, add);
        st = hs_hyperbola_eps(&run, log_delta, log(1e-9), work, n_work, &e);
        check_eps("hyperbola_eps", st, &e, sigma, q, k, log_delta, add);
    }
}

/* Scratch of every short length: refused, or enough; the sanitizer watches the end. */
static void short_scratch(void)
{
    double m = 1, q = 0.01, k = 1000;
    const hs_run run = {.b = 1, .add = 0, .m = &m, .q = &q, .k = &k};
    for (long n = 0; n < n_work; n = n < 8 ? n + 1 : n * 3) {
        double *lent = malloc((size_t)(n ? n : 1) * sizeof *lent);
        hs_point p = {0};
        hs_crossing e = {0};
        int st;
        st = hs_hyperbola_delta(&run, 1, log(1e-9), lent, n, &p);
        check_delta("hyperbola_delta, short", st, &p, 1, q, k, 1, 0);
        if (n < 8 && st != HS_SCRATCH) complain("hyperbola_delta took no scratch", 1, q, k, (double)n, 0, st);
        st = hs_hyperbola_eps(&run, -11, log(1e-9), lent, n, &e);
        check_eps("hyperbola_eps, short", st, &e, 1, q, k, -11, 0);
        free(lent);
    }
}

static void many_steps(void)
{
    enum { B = 37 };
    double m[B], q[B], k[B];
    long need = hs_contour_work(B, 1, HS_OUTER_MAX);
    double *lent = malloc((size_t)need * sizeof *lent);
    for (int i = 0; i < B; i++) {
        m[i] = 1 / (0.7 + 0.03 * i);
        q[i] = i % 9 == 8 ? 1 : 0.001 * (i + 1);
        k[i] = 1 + i * i;
    }
    for (int add = 0; add < 2; add++)
        for (int b = 1; b <= B; b += b < 8 ? 1 : 29) {
            const hs_run run = {.b = b, .add = add, .m = m, .q = q, .k = k};
            hs_point p = {0};
            hs_crossing e = {0};
            hs_contour C = contour_of(m, q, k, b, add, 1);
            int st = hs_contour_ask(&C, 1, 3, lent, need, &e);
            check_delta("contour_delta, steps", st, &e.delta, 0, 0, b, 3, add);
            C = contour_of(m, q, k, b, add, 1);
            st = hs_contour_ask(&C, 0, -14, lent, need, &e);
            check_eps("contour_eps, steps", st, &e, 0, 0, b, -14, add);
            if (b > 7) continue;
            st = hs_hyperbola_delta(&run, 1, log(1e-9), work, n_work, &p);
            check_delta("hyperbola_delta, steps", st, &p, 0, 0, b, 1, add);
            if (b == 7 && st <= HS_LOOSE) complain("hyperbola took seven steps", 0, 0, b, 1, add, st);
        }
    free(lent);
}

int main(void)
{
    static const double sigmas[] = {0.5, 1, 7}, qs[] = {1e-3, 0.3, 1}, ks[] = {2, 100, 1e9},
                        at[][2] = {{1, -11}, {0, -0.5}, {-3, -1e-9}, {1e-9, -690}, {800, -5e4}};
    long need = hs_contour_work(6, 1, HS_OUTER_MAX);
    n_work = 60000 + 80000 * 7;
    if (need > n_work) n_work = need;
    work = malloc((size_t)n_work * sizeof *work);
    if (!work) return 2;
    for (unsigned s = 0; s < sizeof sigmas / sizeof *sigmas; s++)
        for (unsigned i = 0; i < sizeof qs / sizeof *qs; i++)
            for (unsigned j = 0; j < sizeof ks / sizeof *ks; j++)
                for (unsigned a = 0; a < sizeof at / sizeof *at; a++) one(sigmas[s], qs[i], ks[j], at[a][0], at[a][1]);
    short_scratch();
    many_steps();
    free(work);
    printf("%ld calls, %ld answers, %d failures\n", calls, answers, failures);
    return failures != 0;
}
