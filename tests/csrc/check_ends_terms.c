/* check_ends_terms.c - the error terms of a sampled Laplace step's transform at high frequency (laplace_ends.c), each
 * where it is large: long panels, and series of 8 coefficients instead of 28.
 *
 * References: the same panel in 40 pieces in long double; the integral itself at frequencies between the points of
 * interpolation.
 */
#define hs_ends_tilt own_ends_tilt /* laplace_ends.c is read here with fewer coefficients, under names of its own */
#define hs_ends_atoms own_ends_atoms
#define hs_ends_phi own_ends_phi
#define hs_ends_missing own_ends_missing
#include "law/law.h"
#undef HS_ENDS_COEFS
#define HS_ENDS_COEFS 8
#include "law/laplace_ends.c"
#include "terms.h"

/* int h(tau) e^{-y tau} over a panel. */
static void fine_panel(double rho, double alpha, double lo, double half, double y, long double *re, long double *im)
{
    long double g = 1 + 1 / (long double)rho, s = (long double)half / 40;
    int p, i;
    for (*re = *im = 0, p = 0; p < 40; p++)
        for (i = 0; i < GAUSS; i++) {
            long double tau = lo + s * (2 * p + 1 + (i & 1 ? 1 : -1) * (long double)gauss_x[i / 2]);
            long double c = -2 * sinl(tau / 2) * sinl(tau / 2), turn = sinl(tau), size;
            size = s * gauss_w[i / 2] * powl(hypotl(1 + g * c, g * turn), -1.5L) * expl(-y * tau);
            turn = (alpha + 1) * tau - 1.5L * atan2l(g * turn, 1 + g * c);
            *re += size * cosl(turn);
            *im += size * sinl(turn);
        }
}

static void long_panel(void)
{
    double rho = log_between(1e-5, 10), D = log1p(rho), Y = log_between(20, 400);
    double alpha = between(-20, 20), lo, half;
    double y[COEFS], re[COEFS] = {0}, im[COEFS] = {0}, most = 0;
    long double fr, fi;
    int n, first = uniform() < 0.3;
    lo = first ? 0 : fmin(0.5, D * log_between(0.05, 50));
    half = first ? D * log_between(0.2, 0.95) : lo * log_between(1, 40);
    if (lo + 2 * half > 2.5) return;
    for (n = 0; n < COEFS; n++) y[n] = Y * (1 + n / (COEFS - 1.0));
    panel(rho, alpha, lo, half, y, re, im);
    for (n = 0; n < COEFS; n += 3) {
        fine_panel(rho, alpha, lo, half, y[n], &fr, &fi);
        most = fmax(most, (double)hypotl(re[n] - fr, im[n] - fi));
    }
    most /= tail_upper(rho, Y);
    term("ends-panel", most, octave_upper(rho, alpha, Y, lo, half) / tail_upper(rho, Y), 1e-13);
}

static void few_coefficients(double *scratch)
{
    hs_law w = {.kind = HS_LAW_SUBLAPLACE, .k = 1, .atoms = 1, .smooth = 1, .err = 1e-16};
    double y[COEFS], re[COEFS], im[COEFS];
    double Y, most = 0, f;
    int j = uniform() < 0.5, i, n;
    w.m = log_between(0.1, 8);
    w.q = log_between(1e-4, 0.9);
    w.add = uniform() < 0.3;
    w.c = log_between(0.05, 10);
    w.log_m = (1 + w.c) * log1p(w.q * expm1(w.m)) - w.m;
    if (w.add || w.log_m < 0) w.log_m = 0;
    hs_ends_tilt(&w, scratch);
    i = (int)(uniform() * fmin(20, log2(w.y_out[j] / w.y_ends)));
    if (!(ldexp(w.y_ends, i + 1) < w.y_out[j])) return;
    Y = ldexp(w.y_ends, i);
    f = terms_of(&w, j)[0];
    for (n = 0; n < COEFS; n++) y[n] = Y * (1 + (n + uniform()) / COEFS);
    tail_values(w.rho[j], exponent_of(&w), Y, y, re, im);
    for (n = 0; n < COEFS; n++) {
        double jr, ji;
        tails(&w, j, y + n, 1, &jr, &ji);
        most = fmax(most, hypot(jr + f * im[n], ji - f * re[n]));
    }
    term("ends-series", most, octave(&w, j, i)[1], 1e-12);
}

int main(int argc, char **argv)
{
    static double scratch[HS_ENDS_WORK];
    int i, n;
    terms_begin(argc, argv);
    for (i = 0; i < cases(600); i++) {
        for (n = 0; n < 4; n++) long_panel();
        few_coefficients(scratch);
    }
    median("ends-panel", 60, 20000, 1000);
    median("ends-series", 60, 150, 100);
    return terms_end();
}
