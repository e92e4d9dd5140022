/* check_tail.c - beyond the last node of a line: what hs_contour_log_tail_upper claims of |phi| against |phi| itself.
 *
 * Statements: [theory: line.moments, line.far-frequencies, law.far, law.spread].
 *
 * A line is placed, planned and visited; at frequencies from its last node to past the point where Psi takes over, sum
 * k log|phi|, by a sum over a grid fine enough for them, is at most minus the least over the bands that the tail bound
 * uses. Also hs_grid_band against sums over cells a hundred times as narrow. Lines that decline are counted, not
 * failures. With HS_FEW every third frequency.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "line/line.h"

static int failures, lines, banded, points;

static double step_log_modulus(double m, double q, double a, double y)
{
    double hi = fmax(a * m, m) + 9.5, lo = -9.5 - hs_left_reach_upper(m, q, a),
           h = fmin(0.05 / fmax(m, 1), 1 / (1 + y * m)), top = -HUGE_VAL;
    double sum = 0, re = 0, im = 0, g;
    for (g = lo; g < hi; g += 0.1) top = fmax(top, a * log1p(q * expm1(m * g - 0.5 * m * m)) - 0.5 * g * g);
    for (g = lo; g < hi; g += h) {
        double l = log1p(q * expm1(m * g - 0.5 * m * m)), p = exp(a * l - 0.5 * g * g - top), s = sin(0.5 * y * l);
        sum += p;
        re -= 2 * p * s * s;
        im += p * sin(y * l);
    }
    re /= sum;
    im /= sum;
    return 0.5 * log1p(2 * re + re * re + im * im);
}

static void check_line(double m, double q, double k, int add, double log_delta, double rtol, double *work)
{
    hs_contour C = {0};
    hs_sums S[HS_CHUNKS];
    double claim, y;
    int i, step = getenv("HS_FEW") && atoi(getenv("HS_FEW")) > 1 ? 3 : 1;
    C.run.b = 1;
    C.run.add = add;
    C.n_threads = 1;
    C.n_max = HS_OUTER_MAX;
    C.run.m = &m;
    C.run.q = &q;
    C.run.k = &k;
    C.rtol = rtol;
    C.T0 = fmin(31, 12 - log(rtol));
    if (hs_contour_place(&C, 0, log_delta, 1, work) || hs_contour_plan(&C, work) || hs_contour_visit(&C, work, S))
        return;
    lines++;
    if (!(C.y_far > 0)) return;
    banded += C.bands > 1;
    claim = -(hs_contour_log_tail_upper(&C, S) + log(HS_PI * C.N * C.dy) - log1p(C.dy / (C.N * C.dy)));
    for (i = 0; i < 14; i += step) {
        double far = C.y_far > 1.01 * C.N * C.dy ? C.y_far : 3 * C.N * C.dy, truth;
        y = C.N * C.dy * pow(far / (C.N * C.dy), i / 12.0);
        if (y * m > 4000) break; /* slow, not doubtful */
        truth = -k * step_log_modulus(m, q, add ? -C.c : 1 + C.c, y);
        points++;
        if (!(claim <= truth * (1 + 1e-6) + 1e-6 * k * 1e-6)) {
            printf("FAIL tail: m %g q %g k %g add %d c %g y/Y %g: claimed %g, is %g\n", m, q, k, add, C.c,
                   y / (C.N * C.dy), claim, truth);
            failures++;
        }
    }
}

/* Moments of the cells that hs_grid_band keeps, by a hundred points a cell. */
static void check_band(double m, double q, double a, double cut, double h, double *work)
{
    hs_grid G;
    double c1, c2, s[5] = {0};
    double var, fourth, at;
    int j, r, i;
    int n, st = hs_grid_build(&G, m, q, hs_grid_mesh(h), -9 - hs_left_reach_upper(m, q, a), fmax(a * m, m) + 9, work);
    hs_moments mo;
    if (st) return;
    hs_grid_moments(&G, a, &mo);
    hs_grid_weights(&G, a, mo.log_m, &c1, &c2);
    hs_grid_band(&G, a, cut, &var, &fourth);
    n = (int)((G.hi - G.lo) / G.h + 0.5);
    for (j = 1; j < n; j++) {
        if (fmax(fabs(G.l[j - 1]), fabs(G.l[j + 1])) > cut) continue;
        for (i = 0; i < 100; i++) {
            double g = G.g[j] + (i - 49.5) / 100 * G.h, l = log1p(q * expm1(m * g - 0.5 * m * m)),
                   p = G.h / 100 * exp(a * l - 0.5 * g * g - mo.log_m) / sqrt(2 * HS_PI);
            for (r = 0, at = p; r < 5; r++, at *= l) s[r] += at;
        }
    }
    points++;
    if (!(var <= (s[0] * s[2] - s[1] * s[1]) * (1 + 1e-9)) ||
        !(fourth >= (2 * s[0] * s[4] - 8 * s[1] * s[3] + 6 * s[2] * s[2]) * (1 - 1e-9))) {
        printf("FAIL band: m %g q %g a %g cut %g h %g: var %g is %g, fourth %g is %g\n", m, q, a, cut, h, var,
               s[0] * s[2] - s[1] * s[1], fourth, 2 * s[0] * s[4] - 8 * s[1] * s[3] + 6 * s[2] * s[2]);
        failures++;
    }
}

int main(void)
{
    static const double ms[] = {0.5, 1, 1.43, 2.5, 3.4}, qs[] = {1e-6, 1e-5, 1e-3, 0.03}, ks[] = {300, 1e5, 1e7},
                        ds[] = {-11, -30, -100};
    double *work = malloc(sizeof *work * (size_t)hs_contour_work(1, 1, HS_OUTER_MAX));
    unsigned i, j, r, t;
    int add;
    if (!work) return 2;
    for (i = 0; i < 5; i++)
        for (j = 0; j < 4; j++) {
            for (r = 0; r < 3; r++)
                for (t = 0; t < 3; t++)
                    for (add = 0; add < 2; add++) check_line(ms[i], qs[j], ks[r], add, ds[t], t ? 1e-6 : 1e-9, work);
            for (r = 0; r < 4; r++)
                for (t = 0; t < 4; t++) {
                    static const double as[] = {1.1, 3, 9, -4}, cuts[] = {1e-2, 1, 30, 1e4};
                    check_band(ms[i], qs[j], as[r], cuts[t] * qs[j], (t % 2 ? 0.05 : 0.02) / fmax(ms[i], 1), work);
                }
        }
    free(work);
    printf("tail: %d lines, %d with bands, %d points, %d failures\n", lines, banded, points, failures);
    return failures || banded < 20;
}
