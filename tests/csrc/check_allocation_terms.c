/* check_allocation_terms.c - what allocation.c claims of the transform of one epoch, with its quadratures coarser than
 * planned: t = 2 against one integral, H and its sums against their own nodes. */
#define hs_allocation_line coarse_line
#define hs_allocation_work coarse_work
#define hs_allocation_table coarse_table
#define hs_allocation_range coarse_range
#define hs_allocation_aliases_upper coarse_aliases_upper
#define hs_allocation_left_upper coarse_left_upper
#define hs_allocation_right_upper coarse_right_upper
#define hs_allocation_log_gamma coarse_log_gamma
#define hs_allocation_turn coarse_turn
#define hs_allocation_value coarse_value
#define hs_allocation_cgf coarse_cgf
#define hs_allocation_estimate coarse_estimate
#define hs_allocation_tilt coarse_tilt
#define hs_allocation_far_upper coarse_far_upper
#define hs_allocation_gap_lower coarse_gap_lower
#define hs_allocation_nodes coarse_nodes
#include "law/allocation_table.c"
#include "law/allocation.c"
#include "terms.h"

static double *work;

/* What a table is of. */
static void of(hs_allocation *A, double m, double t, double c, double y_max)
{
    memset(A, 0, sizeof *A);
    A->m = m;
    A->t = t;
    A->centre = c;
    A->y_max = y_max;
    A->depth = 42;
    A->part = between(0.1, 1);
}

/* E_P (S/2)^{-c-iy} for two steps: S/2 = e^{m A - v/2} cosh(m B), A and B independent normals of variance 1/2. */
static void two_steps(double m, double c, double y, double *re, double *im)
{
    double p = 1 - c, v = m * m, b, up;
    *re = *im = 0;
    for (b = -20; b <= 20; b += 1.0 / 64) {
        double l = m * fabs(b) + log1p(exp(-2 * m * fabs(b))) - 0.69314718055994530942;
        double w = exp(p * l - b * b) / 64 / sqrt(HS_PI);
        *re += w * cos(-y * l);
        *im += w * sin(-y * l);
    }
    up = exp(-0.5 * p * v + 0.25 * v * (p * p - y * y));
    b = 0.5 * y * v - 0.5 * p * y * v; /* the phase of e^{-pv/2 + p^2 v/4} at p - iy */
    p = *re;
    *re = up * (p * cos(b) - *im * sin(b));
    *im = up * (p * sin(b) + *im * cos(b));
}

/* F over e^log_f [theory: allocation.scale]. A table on lines whose mesh is wider, or whose windows are shorter, by as
 * much as keeps e^-depth, at any of its tilts. */
static void values(int meshed)
{
    double m = log_between(0.2, 2.5), c = between(-3, 4), y_max = between(0, 6) / m, y;
    double re, im, r0, i0;
    double gr, gi, err, up;
    hs_allocation A;
    int i;
    of(&A, m, 2, c, y_max);
    A.g = work;
    A.weights = work + HS_ALLOCATION_ROOM;
    A.scratch = A.weights + HS_ALLOCATION_WEIGHTS;
    if (place(&A)) return;
    coarse_log_gamma(A.lam_hi, 0, A.w0, &re, &im);
    if (meshed) A.h *= between(1.5, 4);
    else if (find_ends(&A, re - between(3, 20))) return;
    if (fill_lines(&A, meshed ? 44 : between(3, 20), HS_ALLOCATION_ROOM)) return;
    c = between(A.lam_lo, A.lam_hi) - A.n;
    if (coarse_turn(&A, c)) return;
    two_steps(m, c, 0, &r0, &i0);
    term(meshed ? "allocation-mesh" : "allocation-ends", fabs(A.log_f - log(r0)), A.d_f, 1e-13);
    up = exp(A.log_f);
    for (i = 0; i < 4; i++) {
        y = between(0, y_max);
        two_steps(m, c, y, &re, &im);
        coarse_value(&A, y, &gr, &gi, &err);
        term(meshed ? "allocation-mesh" : "allocation-ends", hypot(gr - re / up, gi - im / up), err, 1e-12);
    }
}

/* psi on a coarse rule against a fine one. */
static void normal(void)
{
    double m = log_between(0.1, 2.5), t = floor(log_between(2, 1e4)), th = between(0, 1.5), h = log_between(0.02, 0.5);
    double w0 = log(t) + between(-8, 3 - BLOCK * h);
    normal_rule R;
    psi_block fine, rough;
    int i, j, n = (int)between(0, 6);
    hs_allocation A = {.m = m, .t = t, .depth = 42, .n = n, .scratch = work};
    if (normal_place(&A, th, 10, h, &R) || strips_place(&R, n, BLOCK)) return;
    strip_at(&R, m, t, w0, 0, 0);
    psi_sums(&R, m, t, n, w0, 0, 0, &fine);
    A.depth = between(1, 8) - 10 - log(t);
    if (normal_place(&A, th, 10, h, &R) || strips_place(&R, n, BLOCK)) return;
    strip_at(&R, m, t, w0, 0, 0);
    psi_sums(&R, m, t, n, w0, 0, 0, &rough);
    for (i = 0; i < BLOCK; i++)
        for (j = 0; j <= n + 2; j++)
            term("allocation-normal",
                 hypot(fine.re[j][i] - rough.re[j][i], fine.im[j][i] - rough.im[j][i]) /
                     (1 + exp(0.5 * j * (j - 1) * m * m)),
                 rough.err[j][i] / (1 + exp(0.5 * j * (j - 1) * m * m)), fine.err[j][i]);
}

/* psi of strips of any length on grids of any ratio against sums made node by node. */
static void strips(void)
{
    double m = log_between(0.1, 2.5), t = floor(log_between(2, 1e4)), th = between(0, 1.4), h = log_between(2e-3, 2);
    double w0;
    normal_rule R;
    psi_block P;
    int64_t at, from = 0, lanes = (int64_t)log_between(1, 300);
    int j, n = (int)between(0, 4);
    hs_allocation A = {.m = m, .t = t, .depth = 42, .n = n, .scratch = work};
    w0 = log(t) - between(0, 6);
    if (normal_place(&A, th, 10, h, &R) || strips_place(&R, n, lanes)) return;
    for (at = -lanes / 2; at < lanes / 2 + 1; at += BLOCK) {
        from = strip_at(&R, m, t, w0, -lanes / 2, at);
        psi_sums(&R, m, t, n, w0, at, from, &P);
    }
    at -= BLOCK;
    for (j = 0; j <= n + 1; j++) {
        long double re = 0, im = 0, s = expl((long double)at * h + w0 - logl(t)), v = (long double)m * m;
        double scale = exp(0.5 * j * (j - 1) * m * m);
        int64_t k;
        for (k = 0; k < R.count; k++) {
            long double move = (long double)(k - R.middle) * (long double)R.b * h / (long double)R.a, g = move / m;
            long double z = s * expl(move - 0.5L * v), turn = th - (long double)m * R.tau, W, ph;
            if (z * cosl(turn) > 600) break;
            W = (long double)R.b * h / (long double)R.a / m * PEAK;
            W *= expl(j * (move - 0.5L * v) - 0.5L * (g * g - (long double)R.tau * R.tau) - z * cosl(turn));
            ph = R.tau * (g - j * (long double)m) - z * sinl(turn);
            re += W * cosl(ph);
            im += W * sinl(ph);
        }
        re -= P.re[j][0];
        im -= P.im[j][0];
        term("allocation-strips", hypot((double)re, (double)im) / scale, P.err[j][0] / scale, 3e-18);
    }
}

/* log |H(x + i th)| of a fresh rule, or -HUGE_VAL. */
static double log_size(const hs_allocation *A, double x, double th)
{
    normal_rule R;
    psi_block P;
    series S;
    h_value H;
    if (normal_place(A, th, depth_of(A), A->h, &R)) return -HUGE_VAL;
    if (strips_place(&R, A->n, BLOCK)) return -HUGE_VAL;
    strip_at(&R, A->m, A->t, A->w0 + x, 0, 0);
    psi_sums(&R, A->m, A->t, A->n, A->w0 + x, 0, 0, &P);
    phi_of(&P, A->n, &S);
    power_series(&P, A->t, A->n, &S);
    H = h_at(&P, &S, 0, A->t, A->n);
    return H.known == 1 && H.rel < 1e-3 ? H.lr + lgamma(A->n + 1.0) : -HUGE_VAL;
}

/* Bounds of H on the real line and of sums beyond a node. */
static void bounds(void)
{
    double m = log_between(0.2, 2), t = floor(log_between(2, 300)), c = between(-2, 3), x;
    double th, cut, sum, up;
    double im;
    hs_allocation A;
    int j, k;
    of(&A, m, t, c, 0);
    A.scratch = work;
    if (place(&A)) return;
    A.lam = fmin(A.lam_hi, between(A.lam_lo, 2 * A.lam_hi - A.lam_lo));
    coarse_log_gamma(A.lam, 0, A.w0, &A.log_gamma, &im);
    for (j = 0; j < 6; j++) {
        x = between(-3, A.x_end);
        up = log_size(&A, x, 0);
        if (up > -HUGE_VAL) term("allocation-h", exp(up - A.log_top), exp(log_h_at_upper(&A, x) - A.log_top), 1e-12);
    }
    x = A.x_end + between(0, 1);
    up = log_size(&A, x, 0);
    if (up > -HUGE_VAL) log_term("allocation-beyond", up - 1.1e-3, log_h_at_upper(&A, x));
    th = between(0, 1);
    cut = log(cos(th));
    for (k = 0; k < 2; k++) { /* right, then left */
        x = k ? -cut - between(0, 6) : A.x_end - cut + between(0, 0.5);
        for (sum = 0, j = 0; j < 400; j++) {
            double at = k ? x - j * A.h : x + j * A.h, size = log_size(&A, at, th), one;
            one = size > -HUGE_VAL ? exp(A.lam * at + size + log(A.h) - A.log_gamma) : 0;
            sum += one;
            if (one < 1e-4 * sum) break;
        }
        up = exp((k ? coarse_left_upper(&A, x, cut) : coarse_right_upper(&A, x, cut)) - A.log_gamma);
        x = k ? 1 : 1e17; /* right ends lie below e^-42 */
        if (sum > 0)
            term(k ? "allocation-left" : "allocation-right", x * sum / (1 + x * up), x * up / (1 + x * up), 1e-12);
    }
}

/* The modulus of a complex number of any size. */
static void modulus(void)
{
    double x = between(-1, 1) * log_between(1e-150, 1e150), y = x * between(-2, 2);
    log_term("allocation-modulus", (double)logl(hypotl(x, y)), log(modulus_upper(x, y)));
}

/* What F falls by, and the variance of the tilted loss. */
static void law(void)
{
    double m = log_between(0.2, 2.5), c = between(-2, 1), y;
    double re, im, r0;
    double i0, h = 1e-3, up[3];
    hs_law w;
    int i;
    memset(&w, 0, sizeof w);
    w.kind = HS_LAW_ALLOCATION;
    w.m = m;
    w.q = 2;
    w.k = floor(log_between(1, 50));
    w.allocation = work;
    if (hs_allocation_tilt(&w, c, 30)) return;
    two_steps(m, -c, 0, &r0, &i0);
    for (i = 0; i < 3; i++) two_steps(m, -c - (i - 1) * h, 0, &up[i], &im);
    term("allocation-variance", log(up[0] * up[2] / (up[1] * up[1])) / (h * h) / 100, w.var_upper / 100, 1e-7);
    for (i = 0; i < 4; i++) {
        y = log_between(0.05, 5) / m;
        two_steps(m, -c, y, &re, &im);
        re = hypot(re, im) / r0;
        term("allocation-far", re, hs_law_far_upper(&w, y), 1e-12);
        term("allocation-gap", 0.25 * hs_law_gap_lower(&w, y), 0.5 * (1 - re), 1e-12);
    }
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    work = room(hs_allocation_work());
    memset(work, 0, sizeof *work * (size_t)hs_allocation_work());
    for (i = 0; i < cases(120); i++) values(1);
    for (i = 0; i < cases(120); i++) values(0);
    for (i = 0; i < cases(40); i++) normal();
    for (i = 0; i < cases(200); i++) strips();
    for (i = 0; i < cases(160); i++) bounds();
    for (i = 0; i < cases(80); i++) law();
    for (i = 0; i < cases(200); i++) modulus();
    median("allocation-mesh", 300, 10, 3);
    median("allocation-ends", 200, 10, 2);
    median("allocation-normal", 500, 30, 5);
    median("allocation-strips", 200, 1e3, 200);
    median("allocation-h", 80, 3, 1.2);
    median("allocation-beyond", 30, 60, 2);
    median("allocation-modulus", 100, 1.001, 1.001);
    median("allocation-right", 30, 60, 4);
    median("allocation-left", 40, 2, 1.01);
    median("allocation-variance", 60, 1.1, 1.05);
    median("allocation-far", 200, 1.1, 1.01);
    median("allocation-gap", 200, 1.1, 1.01);
    free(work);
    return terms_end();
}
