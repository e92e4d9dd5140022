/* check_sampling.c - calls the sampling and two-sided entries of csrc/hs.h on plain and nasty input, for the
 * sanitizers.
 *
 * Checked everywhere: the status is a known code; after HS_OK every output is a number, intervals are ordered, tails
 * lie in [0, 1] and fall or rise with s; bad arguments are refused; nothing behind the lent end of the scratch is
 * touched. The nodes of shifted paths lie within their bound of a sum on the real line in long double, and the bound is
 * not loose.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "expect.h"
#include "law/twosided.h"

static void truncations(void)
{
    static const double p[] = {-1, 0, 5e-324, 1e-12, 1e-3, 0.3, 0.999999999, 1, NAN, INFINITY};
    static const double n[] = {NAN, -3, 0, 1, 2, 3, 17, 1000, 1e6, 1e9, 9007199254740992.0, 1e300, 2.5};
    static const double part[] = {-1, 0, 1e-9, 0.01, 0.3, 0.5, 0.999, 1, 2};
    double out[6];
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 13; j++)
            for (int k = 0; k < 9; k++) {
                double size = ceil(part[k] * n[j]);
                int st;
                if (n[j] > 1e10 && p[i] > 1e-12 && p[i] < 1)
                    continue; /* millions of terms: right, but slow under sanitizers */
                st = hs_sampling_truncation(p[i], n[j], size, out);
                expect(st >= 0 && st <= hs_status_last(), "status", p[i], n[j], size);
                if (st == HS_OK)
                    expect(out[0] <= out[1] && out[2] <= out[3] && out[4] <= out[5] && out[3] <= 0 && out[5] <= 0 &&
                               out[1] <= 1 + 1e-15 && out[0] >= -5e-324,
                           "interval", p[i], n[j], size);
            }
}

static void tails(void)
{
    static const double q[] = {0, 1e-300, 1e-9, 0.5, 0.999999, 1, NAN}, m[] = {-1, 0, 1e-6, 0.5, 3, 30};
    double s[41], t[5][41], edge;
    for (int i = 0; i < 41; i++) s[i] = (i - 20) * (i < 2 || i > 38 ? 40.0 : 2.0);
    for (int i = 0; i < 7; i++)
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < 6; b++) {
                int st = hs_sampling_tails(q[i], 3, m[a], m[b], 41, s, t[0], &edge);
                expect(st == HS_OK || st == HS_BAD_ARGUMENT, "status", q[i], m[a], m[b]);
                if (st) continue;
                expect(edge >= 0 && edge < 1e-6, "edge", q[i], m[a], m[b]);
                for (int j = 0; j < 41; j++) {
                    for (int r = 0; r < 4; r++) expect(t[r][j] >= 0 && t[r][j] <= 1 + 1e-15, "tail", q[i], m[a], m[b]);
                    expect(t[4][j] > 0 && (!j || (t[0][j] >= t[0][j - 1] && t[1][j] <= t[1][j - 1])), "order", q[i],
                           m[a], m[b]);
                }
            }
}

static void transforms(void)
{
    static const double q[] = {0, 1e-12, 0.01, 0.9, 1, NAN}, m[] = {0, 0.05, 1, 12},
                        z[] = {-300, -1, -0.5, 0, 2, 1e5, NAN}, nats[] = {-1, 12, 40, NAN};
    double log_m, err;
    for (int i = 0; i < 6; i++)
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < 4; b++)
                for (int c = 0; c < 7; c++)
                    for (int d = 0; d < 4; d++) {
                        hs_pair pair = {2, {0.75, 0.25}, {q[i], 0.5 * q[i]}, {m[a], 2 * m[a]}, {m[b], 2 * m[b]}, 1, 1};
                        double *work = malloc(sizeof(double) * (size_t)hs_two_work());
                        int st = hs_two_log_m_upper(&pair, z[c], nats[d], work, &log_m, &err);
                        expect(st >= 0 && st <= hs_status_last(), "status", q[i], z[c], nats[d]);
                        if (st == HS_OK) expect(isfinite(log_m) && err >= 0, "output", q[i], z[c], nats[d]);
                        free(work);
                    }
}

/* Roots and points of a run of pairs, plain and sampled steps: points at the ends of a root are on either side of
 * the target. With HS_FEW one run in five, of every rate, shift and count. */
static void contours(void)
{
    static const double q[] = {1e-6, 0.01, 0.3, 0.97}, m[] = {0.05, 0.9, 3}, k[] = {1, 40, 3000};
    double one[3] = {1, 0.5, 0.05}, rate[3] = {1, 0.02, 1}, count[3];
    double upper, found;
    hs_crossing e;
    long n = hs_contour_work(3, 1, HS_OUTER_MAX);
    int step = getenv("HS_FEW") && atoi(getenv("HS_FEW")) > 1 ? 5 : 1;
    for (int i = 0; i < 4 * 3 * 3 * 4; i += step) {
        hs_pair pair[3] = {{0}};
        hs_contour C = {0};
        hs_crossing at;
        double *work = malloc(sizeof(double) * (size_t)n), target = -8 - i / step % 5 * 9;
        int b = 1 + i % 3, st;
        pair[0].branches = 2;
        pair[0].q_err = 1;
        pair[0].w_err = 8;
        for (int r = 0; r < 2; r++) {
            pair[0].w[r] = r ? 1e-3 : 1 - 1e-3;
            pair[0].q[r] = q[i % 4];
            pair[0].up[r] = (1 + r) * m[i / 4 % 3];
            pair[0].down[r] = i / 36 * 0.5 * pair[0].up[r];
        }
        count[0] = k[i / 12 % 3];
        count[1] = 5;
        count[2] = 2;
        C.run.b = b;
        C.n_threads = 1;
        C.n_max = HS_OUTER_MAX;
        C.rtol = 1e-9;
        C.T0 = 31;
        C.run.m = one;
        C.run.q = rate;
        C.run.k = count;
        C.run.pair = pair;
        st = hs_contour_ask(&C, 0, target, work, n, &e);
        expect(st >= 0 && st <= hs_status_last(), "status", st, i, 0);
        if (st <= HS_LOOSE) {
            expect(e.lower <= e.estimate && e.estimate <= e.upper && e.upper < HUGE_VAL, "root", e.lower, e.estimate,
                   e.upper);
            st = hs_contour_ask(&C, 1, e.lower, work, n, &at);
            found = st > HS_LOOSE ? target : at.delta.log_scale + log(at.delta.upper);
            expect(found >= target - 1e-9, "point at the lower end", target, found, i);
            st = hs_contour_ask(&C, 1, e.upper, work, n, &at);
            found = st > HS_LOOSE ? target : at.delta.log_scale + log(at.delta.lower);
            expect(found <= target + 1e-9, "point at the upper end", target, found, i);
        }
        C.t = 0;
        st = hs_contour_chernoff_upper(&C, 0, target, work, n, &upper);
        expect(st || upper >= 0 || upper < 0, "chernoff", upper, i, 0);
        free(work);
    }
}

/* Masses p and losses L of a pair at tilt c, on the real line: a mesh h for y max(up, down) h <= 4. */
typedef struct {
    int n;
    long double p[2 * 5201], loss[2 * 5201], sum;
} the_line;

static void line_of(const hs_pair *pair, double c, double h, the_line *T)
{
    long double top = 0;
    int i, j, n, r;
    for (T->n = r = 0; r < pair->branches; r++)
        for (j = -2600; j <= 2600; j++) {
            long double g = j * (long double)h, q = pair->q[r], up = pair->up[r], down = pair->down[r];
            long double l1 = log1pl(q * expm1l(up * g - up * up / 2)),
                        l2 = log1pl(q * expm1l(-down * g - down * down / 2));
            T->loss[T->n] = l1 - l2;
            T->p[T->n] = pair->w[r] * expl((1 + c) * l1 - c * l2 - g * g / 2);
            top = fmaxl(top, T->p[T->n++]);
        }
    for (T->sum = 0, i = n = 0; i < T->n; i++) {
        if (T->p[i] < 1e-26L * top) continue;
        T->p[n] = T->p[i];
        T->loss[n] = T->loss[i];
        T->sum += T->p[n++];
    }
    T->n = n;
}

/* phi(y) - 1. */
static void phi_on_the_line(const the_line *T, double y, long double *re, long double *im)
{
    long double a = 0, b = 0;
    for (int i = 0; i < T->n; i++) {
        long double half = sinl(y * T->loss[i] / 2);
        a -= 2 * T->p[i] * half * half;
        b += T->p[i] * sinl(y * T->loss[i]);
    }
    *re = a / T->sum;
    *im = b / T->sum;
}

static void shifted_paths(void)
{
    static const double q[] = {1e-6, 1e-3, 0.3, 0.97}, m[] = {0.2, 1, 2.5, 4}, tilt[] = {0.1, 1, 4},
                        dy[] = {1e-3, 0.05};
    enum { N = 1000 };
    double *zr = malloc(sizeof(double) * (N + 1)), *zi = malloc(sizeof(double) * (N + 1)),
           *work = malloc(sizeof(double) * (size_t)hs_two_work());
    the_line *line = malloc(sizeof *line);
    for (int i = 0; i < 4 * 4 * 3 * 2; i++) { /* the largest shift: losses beyond e^300 */
        double mm = m[i / 4 % 4], c = tilt[i / 16 % 3], step = mm > 3 ? 1e-3 : dy[i / 48];
        double h[2], c1, c2, slope;
        hs_pair pair = {2, {0.9, 0.1}, {q[i % 4], 0.7 * q[i % 4]}, {mm, 2 * mm}, {i % 2 * mm, i % 3 * mm}, 0, 0};
        hs_two_shift P;
        hs_moments mo;
        hs_two T;
        for (int r = 0; r < 2; r++) h[r] = ldexp(floor(4096 * hs_two_real_h(&pair, r, c, 44)), -12);
        if (hs_two_build(&T, &pair, h, c, c, 10, work)) continue;
        hs_two_moments(&T, c, &mo);
        hs_two_weights(&T, c, mo.log_m, &c1, &c2);
        if (hs_two_shift_build(&T, c, mo.log_m, mo.err, hs_two_real_upper(&T, c) + hs_two_ends_upper(&T, c, mo.log_m),
                               40, &P))
            continue;
        slope = hs_two_shift_nodes(&P, step, N, T.G.er, zr, zi);
        expect(zr[0] == 0 && zi[0] == 0, "node 0", zr[0], zi[0], i);
        expect(slope <= 20 * (c1 + c2 * (224 + 64)), "slope against that of the real line", slope, c1 + c2 * (224 + 64),
               i);
        expect(P.quad <= 40 * exp(-40), "what does not round", P.quad, exp(-40), i);
        line_of(&pair, c, mm > 3 ? 0.04 : 0.015, line);
        for (int n = 1; n <= N; n = 3 * n + n % 7) {
            long double a, b;
            double off, bound = n * step * slope + P.quad;
            phi_on_the_line(line, n * step, &a, &b);
            off = (double)hypotl(zr[n] - a, zi[n] - b);
            expect(off <= bound, "shifted node", off, bound, n * 1000 + i);
        }
    }
    free(zr);
    free(zi);
    free(work);
    free(line);
}

/* A plain step in both directions: ADD has the pair turned, and the conjugate of its phi. */
static void shifted_paths_of_a_plain_step(void)
{
    static const double q[] = {1e-6, 1e-3, 0.3, 0.97}, m[] = {0.2, 1, 2.5}, tilt[] = {0.1, 1, 6}, dy[] = {1e-3, 0.11};
    enum { N = 1000 };
    double *zr = malloc(sizeof(double) * (N + 1)), *zi = malloc(sizeof(double) * (N + 1)),
           *work = malloc(sizeof(double) * (size_t)hs_two_work());
    the_line *line = malloc(sizeof *line);
    for (int i = 0; i < 4 * 3 * 3 * 2 * 2; i++) {
        int add = i / 72;
        double mm = m[i / 4 % 3], qq = q[i % 4], c = tilt[i / 12 % 3];
        double step = dy[i / 36 % 2], a = add ? -c : 1 + c, c1;
        double c2, slope, out;
        hs_pair pair = {1, {1}, {qq}, {add ? 0 : mm}, {add ? mm : 0}, 0, 0};
        hs_two_shift P;
        hs_moments mo;
        hs_grid G;
        if (hs_grid_build(&G, mm, qq, 0.1 / fmax(1, mm), -10 - hs_left_reach_upper(mm, qq, a), fmax(mm, a * mm) + 10,
                          work))
            continue;
        hs_grid_moments(&G, a, &mo);
        out = hs_grid_real_upper(mm, a, G.h) + hs_grid_ends_upper(&G, a, mo.log_m);
        if (mo.dropped) out += hs_grid_dropped_upper(&G, a) / exp(fmax(mo.log_m, -1));
        hs_grid_weights(&G, a, mo.log_m, &c1, &c2);
        if (hs_grid_shift_build(&G, a, mo.log_m, mo.err, out, 40, &P)) continue;
        slope = hs_two_shift_nodes(&P, step, N, G.er, zr, zi);
        expect(zr[0] == 0 && zi[0] == 0, "node 0 of a plain step", zr[0], zi[0], i);
        /* a < 0: |r| grows by up to cos(b/2)^a on the path */
        expect(slope <= 20 * fmax(1, pow(cos(0.76), a)) * (c1 + c2 * (224 + 64)),
               "slope of a plain step against that of the real line", slope, c1 + c2 * (224 + 64), i);
        expect(P.quad <= 40 * exp(-40), "what does not round in a plain step", P.quad, exp(-40), i);
        line_of(&pair, c, 0.015, line);
        for (int n = 1; n <= N; n = 3 * n + n % 7) {
            long double re, im;
            double off, bound = n * step * slope + P.quad;
            phi_on_the_line(line, n * step, &re, &im);
            off = (double)hypotl(zr[n] - re, (add ? -zi[n] : zi[n]) - im);
            expect(off <= bound, "shifted node of a plain step", off, bound, n * 1000 + i);
        }
    }
    free(zr);
    free(zi);
    free(work);
    free(line);
}

int main(void)
{
    shifted_paths();
    shifted_paths_of_a_plain_step();
    contours();
    truncations();
    tails();
    transforms();
    printf("%ld checks, %d failures\n", calls, failures);
    return failures != 0;
}
