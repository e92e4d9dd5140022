/* check_smoothing_terms.c - the error terms of Prawitz' interval (prawitz.c), of a sampled Laplace step on Gauss panels
 * (laplace_step.c) and of the moments behind the Edgeworth accountant's constants (edgeworth_bound.c), each where it is
 * large.
 *
 * Reference: for whole lines the contour's certified interval, a million times as narrow as the terms are here; for one
 * step the same integrals by Gauss panels with twice and thrice the nodes.
 */
#define hs_edgeworth_bounded own_edgeworth_bounded /* edgeworth_bound.c is read here for its static functions */
#define hs_edgeworth_modulus_upper own_edgeworth_modulus_upper
#include "clt/edgeworth_bound.c"
#include "hs.h"
#include "terms.h"

enum { RULE = 48 };
static double *work, *more, node[RULE], weight[RULE];
static const hs_rule rule = {RULE, node, weight};
static long n_more;

/* Prawitz' sum with aliases, smoothing, truncation as large as asked, against the contour. */
static void whole(void)
{
    int kind = 0, add = uniform() < 0.5, few = uniform() < 0.35;
    double m = log_between(0.3, 3), q = log_between(0.01, 0.9), k = floor(log_between(2, few ? 30 : 3000)), eps;
    double sum, actual, part[4];
    static const char *names[3] = {"pw-aliasing", "pw-smoothing", "pw-truncation"};
    hs_contour C = {0};
    hs_prawitz S = {0};
    hs_point truth, p;
    hs_crossing at;
    hs_cgf cgf;
    int i;
    cgf = hs_cgf_estimate(m, q, add ? -1e-9 : 1);
    eps = k * (add ? -cgf.K1 : cgf.K1) + between(-1, 5) * sqrt(k * cgf.K2);
    C.run.b = 1;
    C.run.add = add;
    C.n_threads = 1;
    C.n_max = 4096;
    C.run.m = &m;
    C.run.q = &q;
    C.run.k = &k;
    C.rtol = 1e-10;
    C.T0 = 31;
    if (hs_contour_ask(&C, 1, eps, more, n_more, &at)) return;
    truth = at.delta;
    S.run.b = 1;
    S.run.add = add;
    S.run.kind = &kind;
    S.run.m = &m;
    S.run.q = &q;
    S.run.k = &k;
    S.rule = rule;
    S.T0 = between(0.5, 14);
    S.T = uniform() < 0.5 ? 0 : log_between(0.5, 300) / sqrt(k * cgf.K2);
    if (few) { /* a limit far beyond the nodes that so few nats ask for */
        S.T0 = between(0.3, 3);
        S.T = log_between(10, 1e4) / sqrt(k * cgf.K2);
    }
    if (hs_prawitz_delta(&S, eps, work, hs_prawitz_work(), &p)) return;
    sum = p.aliasing +
          2 * (p.inner + p.rounding + p.truncation + S.smooth); /* the ends hold every term, each alias once */
    if (p.lower > 0 && p.upper < 0.99 * exp(S.t * log(S.t) - (1 + S.t) * log1p(S.t)))
        term("pw-width", sum, p.upper - p.lower, 1e-14 * (p.estimate + sum));
    actual = fabs(p.estimate - truth.estimate * exp(truth.log_scale - p.log_scale));
    part[0] = p.aliasing;
    part[1] = S.smooth;
    part[2] = p.truncation;
    part[3] = p.inner;
    for (sum = 0, i = 0; i < 4; i++) sum += part[i];
    for (i = 0; i < 3; i++)
        if (part[i] > 0.9 * sum) term(names[i], actual, sum + p.rounding, 1e-12 * p.estimate);
    term("pw-total", actual, sum + p.rounding, 1e-12 * p.estimate);
    term("pw-ends",
         fmax(p.lower - truth.estimate * exp(truth.log_scale - p.log_scale),
              truth.estimate * exp(truth.log_scale - p.log_scale) - p.upper),
         0, 1e-11 * p.estimate);
}

/* M(a) and phi of a sampled Laplace step, on panels of n nodes, scaled by e^-top. */
static void laplace_sums(double m, double q, double a, double y, int n, double top, int fine, long double *out)
{
    int panels = hs_laplace_step_panels(m) * fine, i, j;
    long double half = 0.5L * m / panels;
    out[0] = out[1] = out[2] = 0;
    for (i = -2; i < panels; i++)
        for (j = 0; j < (i < 0 ? 1 : n); j++) {
            long double x = i < 0 ? (i == -2 ? 0 : m) : (2 * i + 1 + (long double)node[j]) * half,
                        l = log1pl(q * expm1l(2 * x - m));
            long double w = i < 0 ? 0.5L * expl(-x) : 0.5L * half * weight[j] * expl(-x), p = w * expl(a * l - top);
            out[0] += p;
            out[1] += p * cosl(y * l);
            out[2] += p * sinl(y * l);
        }
}

static void laplace_step(int n)
{
    double m = log_between(0.1, 30), q = log_between(1e-4, 0.97), z = log_between(0.05, fmax(1, 20 / m)),
           a = uniform() < 0.5 ? 1 + z : -z;
    double y = log_between(0.3, 40) / fmax(1, m), top = fmax(a * log1p(q * expm1(m)) - m, a * log1p(q * expm1(-m))),
           far;
    long double coarse[3], fine[3], log_m;
    laplace_sums(m, q, a, y, n, top, 1, coarse);
    gauss_legendre(RULE, node, weight);
    laplace_sums(m, q, a, y, RULE, top, 2, fine);
    log_m = top + logl(fine[0]);
    term("lap-gauss", fabs((double)(coarse[0] / fine[0] - 1)),
         hs_laplace_step_quadrature_upper(m, q, a, 0, (double)log_m, n), 1e-14);
    term("lap-gauss-phi", (double)(hypotl(coarse[1] - fine[1], coarse[2] - fine[2]) / fine[0]),
         hs_laplace_step_quadrature_upper(m, q, a, y, (double)log_m, n), 1e-14);
    laplace_sums(m, q, a, 8 * y, RULE, top, 12, fine);
    far = hs_laplace_step_far_upper(m, q, a, 8 * y, (double)log_m);
    term("lap-far", (double)(hypotl(fine[1], fine[2]) / fine[0]), far, 1e-12);
}

/* Moments of one step with n nodes a panel, against twice as many; the largest |phi| beyond a frequency against
 * |phi| there. */
static void edgeworth(int n)
{
    static const char *names[6] = {"ew-mean",   "ew-second",         "ew-third",
                                   "ew-fourth", "ew-first-absolute", "ew-third-absolute"};
    int kind = uniform() < 0.5, which = uniform() < 0.5, i;
    double m = log_between(0.2, kind ? 30 : 8), q = log_between(1e-3, 0.9), coarse[2 * HS_EDGEWORTH_BOUNDED];
    double fine[2 * HS_EDGEWORTH_BOUNDED], size;
    double y0, bound, worst = 0;
    const hs_lent lent = {work, HS_GRID_WORK, 1, NULL};
    gauss_legendre(n, node, weight);
    if (hs_edgeworth_bounded(kind, m, q, which, &(hs_rule){n, node, weight}, coarse)) return;
    gauss_legendre(40, node, weight);
    if (hs_edgeworth_bounded(kind, m, q, which, &(hs_rule){40, node, weight}, fine)) return;
    for (i = 0; i < HS_EDGEWORTH_BOUNDED; i++) {
        size = pow(fine[1], i == 0 ? 0.5 : i == 4 ? 0.5 : i == 1 ? 1 : i == 3 ? 2 : 1.5);
        term(names[i], fabs(coarse[i] - fine[i]) / size, coarse[HS_EDGEWORTH_BOUNDED + i] / size,
             fine[HS_EDGEWORTH_BOUNDED + i] / size);
    }
    if (uniform() < 0.8) return; /* what follows takes longer */
    y0 = log_between(0.3, 20) / sqrt(fine[1]);
    gauss_legendre(RULE, node, weight);
    if (hs_edgeworth_modulus_upper(kind, m, q, which, &rule, y0, 2 * y0, &lent, &bound)) return;
    for (i = 0; i <= 20; i++) {
        double y = y0 * (1 + i / 20.0), re = 0, im = 0;
        double g, h = 0.25 / fmax(1, m * fmax(1, y0)); /* 25 points a turn: the sum's error is below e^-200 */
        if (kind) {
            long double out[3];
            laplace_sums(m, q, which, y, RULE, 0, 6, out);
            re = (double)(out[1] / out[0]);
            im = (double)(out[2] / out[0]);
        } else {
            double all = 0;
            for (g = -9; g < m + 9; g += h) {
                double l = log1p(q * expm1(m * g - 0.5 * m * m)), p = exp(which * l - 0.5 * g * g);
                all += p;
                re += p * cos(y * l);
                im += p * sin(y * l);
            }
            re /= all;
            im /= all;
        }
        worst = fmax(worst, hypot(re, im));
    }
    term("ew-modulus", worst, bound, 1e-9);
}

/* The same moments over a range that ends early. */
static void edgeworth_range(void)
{
    static const char *names[COUNT] = {"ew-range-mean",   "ew-range-second",         "ew-range-third",
                                       "ew-range-fourth", "ew-range-first-absolute", "ew-range-third-absolute"};
    bounded S, F;
    double a[5], b[5];
    int i;
    memset(&S, 0, sizeof S);
    S.m = log_between(0.2, 6);
    S.q = log_between(0.05, 0.95);
    S.which = uniform() < 0.5;
    S.x = node;
    S.w = weight;
    S.n = RULE;
    if (hs_edgeworth_moments(0, S.m, S.q, &rule, a, b)) return;
    S.c0 = S.which ? b[0] : a[0];
    F = S;
    S.nats = between(1, 10) + 4 * log(S.q * fmin(S.m, 1));
    F.nats = 45;
    integrate(&S);
    integrate(&F);
    for (i = 0; i < COUNT; i++) term(names[i], fabs(S.sum[i] - F.sum[i]), S.err[i], F.err[i]);
}

/* Moments of one sampled Gaussian step with so many nodes that rounding is all, against a long trapezoid sum in long
 * double. */
static void edgeworth_rounding(void)
{
    static const char *names[4] = {"ew-mean-rounding", "ew-second-rounding", "ew-third-rounding", "ew-fourth-rounding"};
    int which = uniform() < 0.5, i;
    double m = log_between(0.1, 4), q = log_between(1e-2, 0.9), v[2 * HS_EDGEWORTH_BOUNDED];
    long double h = 0.25L / fmax(1, m), g, total = 0;
    long double sum = 0, mean, moment[5] = {0};
    if (hs_edgeworth_bounded(0, m, q, which, &rule, v)) return;
    for (g = -12; g < 12 + m; g += h) {
        long double U = q * expm1l(m * g - 0.5L * m * m), p = expl(-0.5L * g * g) * (which ? 1 + U : 1);
        total += p;
        sum += p * log1pl(U);
    }
    mean = sum / total;
    for (g = -12; g < 12 + m; g += h) {
        long double U = q * expm1l(m * g - 0.5L * m * m), p = expl(-0.5L * g * g) * (which ? 1 + U : 1) / total,
                    x = log1pl(U) - mean;
        for (i = 2; i < 5; i++) moment[i] += p * powl(x, i);
    }
    moment[1] = mean;
    for (i = 0; i < 4; i++)
        term(names[i], (double)fabsl(moment[i + 1] - v[i]), v[HS_EDGEWORTH_BOUNDED + i],
             2e-18 * pow((double)moment[2], 0.5 * (i + 1)));
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    n_more = hs_contour_work(1, 1, 4096);
    more = room(n_more);
    work = room(hs_prawitz_work());
    gauss_legendre(RULE, node, weight);
    for (i = 0; i < cases(750); i++) whole();
    for (i = 0; i < cases(300); i++) {
        int n = 4 + i % 9;
        gauss_legendre(n, node, weight);
        laplace_step(n);
    }
    for (i = 0; i < cases(80); i++) edgeworth(2 + i % 5);
    gauss_legendre(RULE, node, weight);
    for (i = 0; i < cases(100); i++) {
        edgeworth_rounding();
        edgeworth_range();
    }
    free(work);
    free(more);
    median("pw-aliasing", 100, 20, 2);
    median("pw-smoothing", 100, 100, 10);
    median("pw-truncation", 3, 3000, 1000);
    median("pw-total", 250, 40, 4);
    median("lap-gauss", 25, 1e8, 50000);
    median("lap-gauss-phi", 25, 1e8, 50000);
    median("lap-far", 15, 2, 1.1);
    median("ew-mean", 20, 1e10, 1e6);
    median("ew-second", 20, 1e10, 1e7);
    median("ew-third", 20, 1e8, 1e5);
    median("ew-fourth", 10, 1e8, 1e5);
    median("ew-first-absolute", 20, 1e7, 1e4);
    median("ew-third-absolute", 20, 1e8, 1e5);
    median("ew-range-mean", 60, 600, 40);
    median("ew-range-second", 50, 200, 40);
    median("ew-range-third", 40, 400, 50);
    median("ew-range-fourth", 35, 400, 50);
    median("ew-range-first-absolute", 60, 80, 25);
    median("ew-range-third-absolute", 40, 300, 50);
    median("ew-mean-rounding", 20, 600, 300);
    median("ew-second-rounding", 80, 900, 300);
    median("ew-third-rounding", 80, 900, 300);
    median("ew-fourth-rounding", 80, 900, 300);
    median_directed("ew-mean-rounding", 50);
    median_directed("ew-second-rounding", 50);
    median_directed("ew-third-rounding", 50);
    median_directed("ew-fourth-rounding", 50);
    median("ew-modulus", 5, 1.1, 1.01);
    return terms_end();
}
