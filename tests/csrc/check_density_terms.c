/* check_density_terms.c - what law.c claims of the points of a density under a window (HS_LAW_DENSITY), with meshes too
 * wide and points that end too soon: the loss of a Gaussian step, against fine sums over a wide range. */
#include "law/law.h"
#include "terms.h"

enum { POINTS = 4000, CELLS = 5 };

typedef struct { /* shift of the step, window */
    double v, low, high, width;
} density;

static double points[5][POINTS + CELLS];

static double log_normal(const density *D, double l)
{
    double z = (l - 0.5 * D->v * D->v) / D->v;
    return -0.5 * z * z - log(D->v) - HS_LOG_SQRT_2PI;
}

static double window(const density *D, double l)
{ return normal_cdf((D->high - l) / D->width) * normal_cdf((l - D->low) / D->width); }

/* The sum of h f(l) e^{(c+iy) l} times the window, or 1 - it, at fine points within 14 deviations. */
static void fine(const density *D, double c, double y, int left_out, double *re, double *im)
{
    double mean = D->v * D->v * (c + 0.5), h = fmin(fmin(D->v, D->width), y > 0 ? 1 / y : 1) / 24;
    long j, n = (long)(14 * D->v / h);
    *re = *im = 0;
    for (j = -n; j <= n; j++) {
        double l = mean + (double)j * h, w = window(D, l), size = h * exp(log_normal(D, l) + c * l);
        size *= left_out ? 1 - w : w;
        *re += size * cos(y * l);
        *im += size * sin(y * l);
    }
}

static void laws(void)
{
    density D;
    hs_law w;
    hs_law_value out;
    double p, h, from, to;
    double t, m, re, im;
    double one, other, y;
    int64_t j;
    int i;
    D.v = log_between(0.1, 2);
    D.width = D.v * log_between(0.2, 2);
    D.low = D.v * (0.5 * D.v - between(4, 8));
    D.high = D.v * (0.5 * D.v + between(4, 8));
    m = sqrt(1 / (D.v * D.v) + 2 / (D.width * D.width));
    p = m * between(1, 9);
    h = 2 * HS_PI / p;
    from = D.low - D.width * between(0, 6);
    to = D.high + D.width * between(0, 6);
    memset(&w, 0, sizeof w);
    w.kind = HS_LAW_DENSITY;
    w.k = 1;
    w.m = m;
    w.n = (int64_t)((to - from) / h) + 1;
    if (w.n < 2 || w.n > POINTS) return;
    for (j = 0; j < w.n; j++) {
        double l = points[0][j] = from + (double)j * h;
        points[1][j] = log_normal(&D, l) + log(window(&D, l)) + log(h);
        points[2][j] = 4 * HS_U * (fabs(from) + fabs(l));
        points[3][j] = 1e-13 * (1 + fabs(points[1][j]));
    }
    to = points[0][w.n - 1];
    for (j = 0; j < w.n; j++) points[4][j] = points[0][j];
    w.x = points[4];
    w.l = points[0];
    w.lp = points[1];
    w.dl = points[2];
    w.dp = points[3];
    w.cells = 1 + (int)between(0, CELLS - 0.001);
    for (i = 0; i < w.cells; i++, from -= D.v * between(0.1, 2), to += D.v * between(0.1, 2)) {
        points[4][w.n + i] = to;
        points[0][w.n + i] = log(2.4 * normal_cdf((0.5 * D.v * D.v - to) / D.v));
        points[1][w.n + i] = from;
        points[2][w.n + i] = log(2.4 * normal_cdf((from - 0.5 * D.v * D.v) / D.v));
    }
    w.lambda[0] = D.low;
    w.lambda[1] = D.high;
    w.flat = D.width;
    fine(&D, 0, 0, 1, &one, &im);
    fine(&D, -1, 0, 1, &other, &im);
    w.level = fmax(one, other);
    t = between(-3, 4);
    fine(&D, t, 0, 0, &one, &im);
    hs_law_cgf(&w, t, &out);
    term("density-k", fabs(out.K - log(one)), out.err, 1e-12);
    for (i = 0; i < 3; i++) {
        y = m * between(0, 3);
        fine(&D, t, y, 0, &re, &im);
        re = hypot(re, im) / one;
        term("density-far", re, hs_law_far_upper(&w, y), 1e-12);
    }
    y = m * between(6.01, 8);
    fine(&D, t, y, 0, &re, &im);
    term("density-gap", 0.25 * hs_law_gap_lower(&w, y), 0.5 * (1 - hypot(re, im) / one), 1e-12);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    for (i = 0; i < cases(600); i++) laws();
    median("density-k", 200, 40, 6);
    median("density-far", 800, 150, 1.5);
    median("density-gap", 300, 1.001, 1.001);
    return terms_end();
}
