/* check_pld.c - calls the entries of pld_steps.c, and of grid.c and convolve.c that take many steps, for the
 * sanitizers.
 *
 * Checked everywhere: the status is a known code; after HS_OK every output is a number; tails lie in [0, 1]; windows
 * are ordered; both laws have mass at most about 1, the upper one with what lies above its window all of it; spectra of
 * mass 1 stay below 1.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "expect.h"
#include "hs.h"

enum { FINE = 3, NODES = 20, UP = 60, DOWN = 30 };

static void *lend(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p) exit(2);
    return p;
}

/* one step with every entry; arrays end where the contract says */
static void one(const double *step, double dx, double p)
{
    double lo, hi, s[9], o[45];
    double edge, p_inf, x[NODES], w[NODES];
    double at = 0.3 * dx, t = 2, far, k = 7;
    double sums[3][UP + DOWN + 1] = {{0}}, *work;
    const hs_rule rule = {NODES, x, w};
    const hs_ladder tilts = {UP, DOWN, 1e-3};
    double *upper, *lower, sum[2] = {0, 0};
    double norm[3], *circle, log_mgf;
    long first, size, start[2] = {0, 0};
    long room = hs_step_nodes(1, step, p, NODES), i, n_fft = 64;
    int64_t used;
    hs_windows windows;
    hs_cells cells;
    int st, good = step[1] > 0 && step[2] > 0 && step[2] <= 1;
    for (i = 0; i < 9; i++) s[i] = (double)(i - 4) * step[1];
    st = hs_step_tails(step, 9, s, o, &edge);
    expect(st >= 0 && st <= hs_status_last() && (st == HS_OK) == good, "tails", step[0], step[1], step[2]);
    if (!good) return;
    for (i = 0; i < 36; i++) expect(o[i] >= 0 && o[i] <= 1 + 1e-15, "tail", step[0], step[1], o[i]);
    for (i = 0; i < NODES; i++) {
        x[i] = -1 + (2.0 * (double)i + 1) / NODES;
        w[i] = 2.0 / NODES;
    }
    work = lend((size_t)(5 * room + 3 * HS_PLD_LANES), sizeof *work);
    st = hs_pld_tables(1, step, &k, p, &rule, &tilts, work, sums[0], &far);
    expect(st == HS_OK && far > 0, "table", step[0], step[1], step[2]);
    for (i = 0; i <= UP + DOWN; i++)
        expect(isfinite(sums[0][i]) && isfinite(sums[1][i]) && sums[2][i] >= 0, "cumulant", (double)i, sums[0][i],
               sums[2][i]);
    expect(hs_pld_step_nodes(step, p, &rule, 1, &used, work, work + 1) == HS_SCRATCH, "room", 0, 0, 0);
    free(work);
    expect(hs_pld_windows(1, step, p, p, &lo, &hi) == HS_OK && lo < hi, "window", step[1], lo, hi);
    first = (long)floor((lo - at) / dx);
    size = (long)ceil((hi - at) / dx) - first + 1;
    if (!(hi - lo < 1e5 * dx) || size < 2) return;
    work = lend((size_t)(5 * (FINE * (size - 1) + 1)), sizeof *work);
    upper = lend((size_t)size, sizeof *upper);
    lower = lend((size_t)size, sizeof *lower);
    windows = (hs_windows){FINE, dx, 2.0, &at, &first, start, &size};
    st = hs_pld_steps(1, step, &windows, work, upper, lower, &edge, &p_inf);
    expect(st == HS_OK && edge >= 0 && p_inf >= 0 && p_inf < 1.01, "laws", step[0], step[1], p_inf);
    for (i = 0; i < size; i++) {
        expect(upper[i] >= 0 && lower[i] >= 0, "mass", (double)i, upper[i], lower[i]);
        sum[0] += upper[i];
        sum[1] += lower[i];
    }
    expect(sum[0] + p_inf > 1 - 1e-9 && sum[0] < 1 + 1e-9 && sum[1] < 1 + 1e-9, "sum", sum[0], sum[1], p_inf);
    start[1] = size;
    cells = (hs_cells){1, &first, start, dx, upper};
    st = hs_grid_log_mgfs(&cells, 1, &t, &log_mgf);
    expect(st == HS_OK && isfinite(log_mgf), "moment", log_mgf, 0, 0);
    circle = lend((size_t)n_fft, sizeof *circle);
    st = hs_convolve_tilts(&cells, 2.0, &log_mgf, n_fft, circle, norm, norm + 1, norm + 2);
    expect(st == HS_OK && norm[0] >= 0 && fabs(norm[0] + norm[2] - 1) < 1e-9 && norm[1] <= norm[2], "tilt", norm[0],
           norm[1], norm[2]);
    free(circle);
    free(work);
    free(upper);
    free(lower);
}

static void powers(void)
{
    double spec[2 * 3 * 5], product[2 * 5], apart[2 * 5];
    double point[3] = {0.5, 0.25, 0}, k[3] = {1, 7, 1e9}, bad[3] = {1, 0.5, NAN};
    int i;
    for (i = 0; i < 30; i++) spec[i] = 0.4 * cos(i * i);
    expect(hs_convolve_powers(5, 3, spec, point, k, 2, 1, product) == HS_OK, "powers", 0, 0, 0);
    for (i = 0; i < 10; i++) expect(fabs(product[i]) <= 1, "power", i, product[i], 0);
    expect(hs_convolve_powers(5, 1, spec, point, k, 1, 1, apart) == HS_OK, "the first", 0, 0, 0);
    expect(hs_convolve_powers(5, 2, spec + 10, point + 1, k + 1, 1, 0, apart) == HS_OK, "the others", 0, 0, 0);
    for (i = 0; i < 10; i++) expect(apart[i] == product[i], "in parts", i, product[i], apart[i]);
    expect(hs_convolve_powers(5, 3, spec, point, bad, 1, 1, product) == HS_BAD_ARGUMENT, "counts", 0, 0, 0);
}

int main(void)
{
    static const double m[] = {-1, 0, 1e-9, 1e-3, 0.5, 3, 30, NAN}, q[] = {0, 1e-9, 0.01, 0.7, 1, 2, NAN},
                        p[] = {1e-6, 1e-300};
    for (int kind = 0; kind < 2; kind++)
        for (int back = 0; back < 2; back++)
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 7; j++)
                    for (int l = 0; l < 2; l++) {
                        double step[HS_STEP_COLUMNS] = {kind, m[i], q[j], back};
                        one(step, 0.05 * (m[i] > 0 ? m[i] : 1) * (q[j] > 0 ? q[j] : 1), p[l]);
                    }
    powers();
    printf("%ld checks, %d failures\n", calls, failures);
    return failures != 0;
}
