/* check_saddle.c - the saddle-point kernels over a grid of settings: a status, or ends in order around the
 * estimate; with HS_FEW two places in five of each. */
#include <stdio.h>
#include <stdlib.h>
#include "clt/saddlepoint.h"

static int failures;

static void check(int ok, const char *what, double m, double q, double k, int add, double at)
{
    if (ok) return;
    printf("FAILED: %s at m=%g q=%g k=%g add=%d at=%g\n", what, m, q, k, add, at);
    failures++;
}

static void gaussian(double *work)
{
    static const double M[] = {1e-6, 0.01, 0.3, 1, 3, 20}, Q[] = {1e-9, 1e-3, 0.1, 0.9, 1}, K[] = {1, 1000, 1e9};
    static const double EPS[] = {-3, 1e-6, 0.3, 5, 200}, LOG[] = {-0.01, -2, -12, -200, -3000};
    unsigned i, j, l, n;
    int add, st, few = getenv("HS_FEW") && atoi(getenv("HS_FEW")) > 1;
    hs_saddle s;
    double upper, tilt;
    const hs_lent lent = {work, hs_saddle_work(), 1, NULL};
    for (i = 0; i < sizeof M / sizeof *M; i++)
        for (j = 0; j < sizeof Q / sizeof *Q; j++)
            for (l = 0; l < sizeof K / sizeof *K; l++)
                for (add = 0; add < 2; add++)
                    for (n = 0; n < 5; n++) {
                        double m = M[i], q = Q[j], k = K[l];
                        if (few && (i + j + l + n) % 5 > 1) continue;
                        const hs_run run = {.b = 1, .add = add, .m = &m, .q = &q, .k = &k};
                        st = hs_saddle_delta(&run, EPS[n], (int)(n % 7), &lent, &s);
                        check(st || (s.lower <= s.log_estimate && s.log_estimate <= s.upper && s.upper <= 0), "delta",
                              m, q, k, add, EPS[n]);
                        st = hs_saddle_eps(&run, LOG[n], HS_AUTO, &lent, &s);
                        check(st || (s.lower <= s.estimate && s.estimate <= s.upper), "eps", m, q, k, add, LOG[n]);
                        st = hs_saddle_moments_upper(&run, 1, EPS[n], &lent, &tilt, &upper);
                        check(st || (upper <= 0 && tilt > 0), "moments", m, q, k, add, EPS[n]);
                    }
}

static void atoms(void)
{
    static const double num[] = {0.2, 0.3, 0.5, 0.45, 0.55}, rel[] = {1e-14, 1e-14}, zero[] = {0, 0}, k[] = {50, 7};
    double loss[5], at;
    long first[] = {0, 3, 5};
    hs_atoms A = {first, loss, num, rel, zero, zero};
    hs_saddle s;
    int st;
    loss[0] = -0.4;
    loss[1] = 0;
    loss[2] = 0.2;
    loss[3] = -0.1;
    loss[4] = log((1 - 0.45 * exp(0.1)) / 0.55) * -1;
    for (at = -1; at < 8; at += 0.25) {
        st = hs_saddle_atoms(2, &A, k, 1, at, HS_AUTO, &s);
        check(st || (s.lower <= s.log_estimate && s.log_estimate <= s.upper), "atoms", 0, 0, 57, 0, at);
    }
}

static void mills(void) /* [theory: saddle.mills] */
{
    double z, err, before = HUGE_VAL;
    for (z = -37; z < 1e6; z += z < 40 ? 0.01 : 0.3 * z) { /* decreasing, and between its bounds z/(1+z^2) and 1/z */
        double q = hs_mills(z, &err);
        check(q < before * (1 + err) && err < 1e-11, "mills falls", z, q, err, 0, 0);
        check(z <= 0 || (q * (1 + err) > z / (1 + z * z) && q * (1 - err) < 1 / z), "mills bounds", z, q, err, 0, 0);
        before = q;
    }
}

int main(void)
{
    double *work = malloc(sizeof(double) * (size_t)hs_saddle_work());
    if (!work) return 2;
    gaussian(work);
    atoms();
    mills();
    free(work);
    printf(failures ? "%d failures\n" : "saddle-point kernels: ok\n", failures);
    return failures != 0;
}
