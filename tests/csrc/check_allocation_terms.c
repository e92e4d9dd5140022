/* check_allocation_terms.c - what allocation.c claims of the transform of one epoch, with its quadratures coarser than
 * planned: t = 2 against one integral, H and its sums against their own nodes. */
static double depth = 42;
#define DEPTH depth
#define hs_allocation_line coarse_line
#define hs_allocation_work coarse_work
#define hs_allocation_prepare coarse_prepare
#define hs_allocation_value coarse_value
#define hs_allocation_cgf coarse_cgf
#define hs_allocation_tilt coarse_tilt
#define hs_allocation_far_upper coarse_far_upper
#define hs_allocation_gap_lower coarse_gap_lower
#define hs_allocation_nodes coarse_nodes
#include "law/allocation.c"
#include "terms.h"

static double *work;

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

/* Values on lines whose mesh is wider, or whose windows are shorter, by as much as keeps e^-depth. */
static void values(int meshed)
{
    double m = log_between(0.2, 2.5), c = between(-3, 4), y_max = between(0, 6) / m, y, re, im, r0, i0, gr, gi, err;
    hs_allocation A;
    double *lines = work, *scratch = work + HS_ALLOCATION_ROOM;
    int64_t at = 0, first, count;
    int i;
    memset(&A, 0, sizeof A);
    A.m = m;
    A.t = 2;
    A.c = c;
    A.a = sqrt(2) / m;
    A.y_max = y_max;
    A.g = lines;
    A.scratch = scratch;
    A.n = order(m, 2, c, fmax(3, 1.5 * A.a));
    A.lam = A.n + c;
    depth = 42;
    if (!(A.lam > 0.5) || place(&A, y_max)) return;
    if (meshed) A.h *= between(1.5, 4);
    else if (find_ends(&A, A.log_gamma - between(3, 20))) return;
    for (i = 0; i < A.lines; i++) {
        window(&A, i, meshed ? 44 : between(3, 20), &first, &count);
        lines[at + ANGLE] = atan(sinh(i * A.turn));
        lines[at + FIRST] = (double)first;
        lines[at + COUNT] = (double)count;
        A.start[i] = at;
        if (fill_line(&A, lines + at)) return;
        at += HEAD + 2 * count;
    }
    if (real_value(&A)) return;
    two_steps(m, c, 0, &r0, &i0);
    term(meshed ? "allocation-mesh" : "allocation-ends", fabs(A.log_f - log(r0)), A.d_f, 1e-13);
    for (i = 0; i < 4; i++) {
        y = between(0, y_max);
        two_steps(m, c, y, &re, &im);
        hs_allocation_value(&A, y, &gr, &gi, &err);
        term(meshed ? "allocation-mesh" : "allocation-ends", hypot(gr - re / r0, gi - im / r0), err, 1e-12);
    }
}

/* psi on a coarse rule against a fine one. */
static void normal(void)
{
    double m = log_between(0.1, 2.5), t = floor(log_between(2, 1e4)), th = between(0, 1.5), x[BLOCK], w0 = 0;
    normal_rule R;
    psi_block fine, rough;
    int i, j, n = (int)between(0, 6);
    for (i = 0; i < BLOCK; i++) x[i] = log(t) + between(-8, 3);
    depth = 42;
    if (normal_place(m, t, th, 10, n, work, &R)) return;
    psi_sums(&R, m, t, n, x, w0, &fine);
    depth = between(1, 8) - 10 - log(t);
    if (normal_place(m, t, th, 10, n, work, &R)) return;
    psi_sums(&R, m, t, n, x, w0, &rough);
    depth = 42;
    for (i = 0; i < BLOCK; i++)
        for (j = 0; j <= n + 2; j++)
            term("allocation-normal",
                 hypot(fine.re[j][i] - rough.re[j][i], fine.im[j][i] - rough.im[j][i]) /
                     (1 + exp(0.5 * j * (j - 1) * m * m)),
                 rough.err[j][i] / (1 + exp(0.5 * j * (j - 1) * m * m)), fine.err[j][i]);
}

/* log |H(x + i th)| of a fresh rule, or -HUGE_VAL. */
static double log_size(const hs_allocation *A, double x, double th)
{
    normal_rule R;
    psi_block P;
    double at[BLOCK], lr, li, rel;
    int i;
    for (i = 0; i < BLOCK; i++) at[i] = x;
    if (normal_place(A->m, A->t, th, 2 * (DEPTH + A->lam) / A->t, A->n, A->scratch, &R)) return -HUGE_VAL;
    psi_sums(&R, A->m, A->t, A->n, at, A->w0, &P);
    return log_h(&P, 0, A->t, A->n, &lr, &li, &rel) == 1 && rel < 1e-3 ? lr + lgamma(A->n + 1.0) : -HUGE_VAL;
}

/* Bounds of H on the real line and of sums beyond a node. */
static void bounds(void)
{
    double m = log_between(0.2, 2), t = floor(log_between(2, 300)), c = between(-2, 3), x, th, cut, sum, up;
    hs_allocation A;
    int j, k;
    memset(&A, 0, sizeof A);
    A.m = m;
    A.t = t;
    A.c = c;
    A.a = sqrt(t) / m;
    A.scratch = work + HS_ALLOCATION_ROOM;
    A.n = order(m, t, c, 3);
    A.lam = A.n + c;
    if (!(A.lam > 0.5) || place(&A, 0)) return;
    for (j = 0; j < 6; j++) {
        x = between(-3, A.x_end);
        up = log_size(&A, x, 0);
        if (up > -HUGE_VAL) term("allocation-h", exp(up - A.log_top), exp(bound_at(&A, x) - A.log_top), 1e-12);
    }
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
        up = exp((k ? log_left_upper(&A, x, cut) : log_right_upper(&A, x, cut)) - A.log_gamma);
        x = k ? 1 : 1e17; /* right ends lie below e^-42 */
        if (sum > 0)
            term(k ? "allocation-left" : "allocation-right", x * sum / (1 + x * up), x * up / (1 + x * up), 1e-12);
    }
}

/* What F falls by, and the variance of the tilted loss. */
static void law(void)
{
    double m = log_between(0.2, 2.5), c = between(-2, 1), y, re, im, r0, i0, h = 1e-3, up[3];
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
    for (i = 0; i < cases(120); i++) values(1);
    for (i = 0; i < cases(120); i++) values(0);
    for (i = 0; i < cases(40); i++) normal();
    for (i = 0; i < cases(60); i++) bounds();
    for (i = 0; i < cases(80); i++) law();
    median("allocation-mesh", 300, 10, 3);
    median("allocation-ends", 200, 10, 2);
    median("allocation-normal", 500, 30, 5);
    median("allocation-h", 80, 3, 1.2);
    median("allocation-right", 30, 60, 4);
    median("allocation-left", 40, 2, 1.01);
    median("allocation-variance", 60, 1.1, 1.05);
    median("allocation-far", 200, 1.1, 1.01);
    median("allocation-gap", 200, 1.1, 1.01);
    free(work);
    return terms_end();
}
