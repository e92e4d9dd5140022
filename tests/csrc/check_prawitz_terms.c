/* check_prawitz_terms.c - what prawitz_steps.c says of one step, and how prawitz.c joins it, each error where it is
 * large: inner meshes and rules as coarse as asked, errors as large as their claims put into a line, ends of eps for
 * far_only nats.
 *
 * References: integrals over a mesh or a rule so fine that its error is below 1e-15, in long double; the contour's
 * certified interval.
 */
#define hs_prawitz_work own_prawitz_work /* both files are read here for their static functions */
#define hs_prawitz_delta own_prawitz_delta
#define hs_prawitz_eps own_prawitz_eps
#define hs_prawitz_sparse own_prawitz_sparse
#define hs_prawitz_cgf_estimate own_prawitz_cgf_estimate
#define hs_prawitz_support own_prawitz_support
#define hs_prawitz_plan own_prawitz_plan
#define hs_prawitz_visit own_prawitz_visit
#include "line/prawitz.c"
#include "line/prawitz_steps.c"
#include "terms.h"

enum { FINE = 40 };
static double *work, *more, rule_x[FINE];
static double rule_w[FINE], fine_x[FINE], fine_w[FINE];
static long n_more;
typedef struct {
    long double log_m, re, im, var;
} exact_value; /* log M(a), phi(y), the variance of the tilted loss */

static void add(exact_value *M, long double *sums, long double l, long double log_p, double a, double y, double top)
{
    long double p = expl(log_p + a * l - top);
    sums[0] += p;
    sums[1] += p * l;
    sums[2] += p * l * l;
    M->re += p * cosl(y * l);
    M->im += p * sinl(y * l);
}

static exact_value exact(int kind, double m, double q, double a, double y)
{
    exact_value M = {0, 0, 0, 0};
    long double s[3] = {0, 0, 0};
    double top =
               fmax(0, kind ? fmax(a * log1p(q * expm1(m)) - m, a * log1p(q * expm1(-m))) : 0.5 * a * (a - 1) * m * m),
           g, h;
    int panels = 8 * (int)ceil(fmax(m, y * m / 8)), i, j;
    if (kind) {
        double half = 0.5 * m / panels;
        add(&M, s, log1pl(q * expm1l(-m)), logl(0.5L), a, y, top);
        add(&M, s, log1pl(q * expm1l(m)), logl(0.5L) - m, a, y, top);
        for (i = 0; i < panels; i++)
            for (j = 0; j < FINE; j++) {
                long double x = (2 * i + 1 + (long double)fine_x[j]) * half;
                add(&M, s, log1pl(q * expm1l(2 * x - m)), logl(0.5L * half * fine_w[j]) - x, a, y, top);
            }
    } else
        for (h = ldexp(1, -4 - (int)ceil(log2(fmax(m, 1) * (1 + 0.1 * y)))),
            g = h * floor((-hs_left_reach_upper(m, q, a) - 10) / h);
             g < fmax(a * m, m) + 10; g += h) {
            long double v = m * (long double)g - 0.5L * m * m;
            add(&M, s, log1pl(q * expm1l(v)), -0.5L * g * g + logl(h) - 0.91893853320467274178L, a, y, top);
        }
    M.log_m = top + logl(s[0]);
    M.re /= s[0];
    M.im /= s[0];
    M.var = s[2] / s[0] - s[1] / s[0] * (s[1] / s[0]);
    return M;
}

/* One step opened for far_only nats: K at three tilts, its variance, phi at any frequency and beyond it. */
static void one_step(int kind)
{
    static const char *names[2][6] = {
        {"step-k", "step-k-aliases", "step-variance", "step-phi", "step-far", "step-nodes"},
        {"step-laplace-k", "step-laplace-k-aliases", "step-laplace-variance", "step-laplace-phi", "step-laplace-far",
         "step-laplace-nodes"}};
    const char **name = names[kind];
    double m = kind ? log_between(0.3, 20) : log_between(0.1, 3), q = log_between(0.01, 0.95), k = 1;
    double R = between(0, 40), far, y;
    double zr, zi, quad;
    hs_prawitz S = {0};
    exact_value M;
    hs_opened O;
    int j, strip;
    S.run.b = 1;
    S.run.add = uniform() < 0.4;
    S.run.kind = &kind;
    S.run.m = &m;
    S.run.q = &q;
    S.run.k = &k;
    S.rule = (hs_rule){!kind || uniform() < 0.3 ? FINE : 2 + (int)(8 * uniform()), rule_x, rule_w};
    gauss_legendre(S.rule.n, rule_x, rule_w);
    S.ktot = exp(between(-5.5, -1)); /* so that the tilts of the aliases have fewer nats */
    S.t = log_between(0.1, fmax(1, 6 / m));
    S.s_right = S.t + log_between(0.1, 2 / fmin(m, 1));
    S.s_left = S.t - log_between(0.1, 2 / fmin(m, 1));
    y = log_between(0.5, 30) / m;
    S.N = 40;
    S.dy = y / 42;
    if (open_step(&S, 0, y, R, &O, work)) return;
    for (j = 0; j < 3; j++) {
        double s = j == 0 ? S.s_right : j == 1 ? S.s_left : S.t;
        M = exact(kind, m, q, S.run.add ? -s : 1 + s, 0);
        if (j == 2) term(name[0], (double)fabsl(M.log_m - S.K[2]), S.err + S.inner[2], kind ? 1e-15 : 5e-17);
        else
            term(name[1], fmax(0, (double)(M.log_m - S.K[j])), S.inner[j] + (8 + S.run.b) * HS_U * fabs(S.K[j]),
                 kind ? 1e-15 : 5e-17);
    }
    M = exact(kind, m, q, S.run.add ? -S.t : 1 + S.t, y);
    term(name[2], 0.1 * (double)M.var / S.var, 0.1, 1e-14);
    strip = O.G.strip;
    hs_grid_phase(&O.G, y, &zr, &zi);
    O.G.strip = strip;
    quad = hs_opened_quadrature_upper(&O, y);
    term(name[3], (double)hypotl(1 + zr - M.re, zi - M.im), quad + y * (O.c1 + 64 * O.c2), 1e-14);
    far = hs_opened_far_upper(&O, y);
    term(name[4], 0.5 * (double)hypotl(M.re, M.im), 0.5 * far, 1e-14);
}

/* A plain Gaussian step, K and nodes, against long double. */
static void plain(void)
{
    hs_prawitz S = {0};
    double m = log_between(1e-3, 3), k = floor(log_between(1, 1e6));
    long double v = (long double)m * m * k, z;
    long n;
    int j;
    S.run.b = 1;
    S.run.k = &k;
    S.run.m = &m;
    S.t = log_between(0.1, 30);
    S.s_right = S.t + log_between(0.1, 30);
    S.s_left = S.t - log_between(0.1, 30);
    S.N = 8;
    S.dy = log_between(0.01, 1) / (m * sqrt(k));
    S.re = work;
    S.im = work + 10;
    S.round = work + 20;
    S.node = work + 30;
    memset(work, 0, sizeof *work * 40);
    smoothed_visit_gaussian(&S, m, k);
    for (j = 0; j < 3; j++) {
        z = j == 0 ? S.s_right : j == 1 ? S.s_left : S.t;
        term("plain-k", (double)fabsl(0.5L * v * z * (1 + z) - S.K[j]),
             j == 2 ? S.err : (8 + S.run.b) * HS_U * fabs(S.K[j]), 1e-19 * fabs(S.K[j]));
    }
    for (n = 1; n <= S.N; n++) {
        long double y = (long double)S.dy * n;
        term("plain-node", (double)hypotl(0.5L * v * y * y + S.re[n], v * (S.t + 0.5L) * y - S.im[n]), S.round[n],
             1e-19 * (fabs(S.re[n]) + fabs(S.im[n])));
    }
}

/* A sampled step k times, about `at` deviations from the mean of its loss. */
static double any_run(hs_prawitz *S, int *kind, double *m, double *q, double *k, double at, double T0)
{
    hs_cgf cgf;
    memset(S, 0, sizeof *S);
    *kind = 0;
    *m = log_between(0.3, 3);
    *q = log_between(0.01, 0.9);
    *k = floor(log_between(4, 3000));
    S->run.add = uniform() < 0.5;
    cgf = hs_cgf_estimate(*m, *q, S->run.add ? -1e-9 : 1);
    S->run.b = 1;
    S->run.kind = kind;
    S->run.m = m;
    S->run.q = q;
    S->run.k = k;
    S->rule = (hs_rule){FINE, fine_x, fine_w};
    S->T0 = T0;
    return *k * (S->run.add ? -cgf.K1 : cgf.K1) + at * sqrt(*k * cgf.K2);
}

/* Errors as large as their claims, put into a fine line: K at t, or every node turned so that all errors add. */
static void injected(int what)
{
    static const char *names[4] = {"line-inner-k", "line-inner-nodes", "line-rounding-k", "line-rounding-nodes"};
    double m, q, k, d = log_between(1e-7, 0.2);
    hs_prawitz S;
    hs_value fine, v;
    int kind;
    long n;
    S.eps = any_run(&S, &kind, &m, &q, &k, between(-1, 4), 28);
    if (smoothed_prepare(&S, 1, 0, work, hs_prawitz_work())) return;
    smoothed_at(&S, S.eps, &fine);
    if (hs_prawitz_visit(&S, work + 6 * N_MAX)) return;
    for (n = 0; n <= S.N; n++) {
        double y = (double)n * S.dy, turn = S.im[n] - S.eps * y - atan2(y, S.t) - atan2(y, 1 + S.t);
        if (what % 2) {
            S.re[n] += d * cos(turn);
            S.im[n] -= d * sin(turn);
        }
        S.node[n] = what == 1 ? d : 0;
        S.round[n] = what == 3 ? d : 0;
    }
    smoothed_freeze(&S);
    if (what == 0) {
        S.K[2] -= d;
        S.inner[2] += d;
    }
    if (what == 2) {
        S.K[2] -= d;
        S.err += d;
    }
    smoothed_at(&S, S.eps, &v);
    term(names[what], fabs(v.value * exp(v.log_scale - fine.log_scale) - fine.value), what < 2 ? v.inner : v.rounding,
         fine.rounding + 1e-13);
}

/* delta(eps) is at least delta at the lower end of eps, at most at the upper: by the contour. */
static void eps_ends(void)
{
    double m, q, k, log_delta = -between(0.5, 12);
    double delta[2];
    hs_crossing e;
    hs_prawitz S;
    hs_contour C = {0};
    hs_crossing at;
    int kind, i;
    any_run(&S, &kind, &m, &q, &k, 0, between(1, 10));
    if (hs_prawitz_eps(&S, log_delta, work, hs_prawitz_work(), &e)) return;
    C.run.b = 1;
    C.run.add = S.run.add;
    C.n_threads = 1;
    C.n_max = 4096;
    C.run.m = &m;
    C.run.q = &q;
    C.run.k = &k;
    C.rtol = 1e-10;
    C.T0 = 31;
    for (i = 0; i < 2; i++) {
        double end = i ? e.upper : e.lower;
        if (!(fabs(end) < HUGE_VAL) || hs_contour_ask(&C, 1, end, more, n_more, &at)) return;
        delta[i] = at.delta.estimate * exp(at.delta.log_scale - log_delta);
    }
    term("eps-lower", 0.5 / delta[0], 0.5, 1e-9);
    term("eps-upper", 0.5 * delta[1], 0.5, 1e-9);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    n_more = hs_contour_work(1, 1, 4096);
    more = room(n_more);
    work = room(hs_prawitz_work());
    gauss_legendre(FINE, fine_x, fine_w);
    for (i = 0; i < cases(600); i++) {
        one_step(i % 3 == 0);
        plain();
        injected(i % 4);
    }
    for (i = 0; i < cases(300); i++) eps_ends();
    free(work);
    free(more);
    median("step-k", 100, 3000, 40);
    median("step-k-aliases", 40, 30, 5);
    median("step-variance", 100, 1.1, 1.01);
    median("step-phi", 100, 200000, 300);
    median("step-far", 100, 1.2, 1.01);
    median("step-laplace-k", 20, 2e+08, 4000);
    median("step-laplace-k-aliases", 25, 2e+07, 400);
    median("step-laplace-variance", 50, 1.1, 1.01);
    median("step-laplace-phi", 30, 400000, 2000);
    median("step-laplace-far", 50, 1.2, 1.01);
    median("plain-k", 900, 40, 12);
    median("plain-node", 2000, 30, 10);
    median("line-inner-k", 80, 1.1, 1.001);
    median("line-inner-nodes", 80, 1.1, 1.001);
    median("line-rounding-k", 80, 1.1, 1.001);
    median("line-rounding-nodes", 80, 1.1, 1.001);
    median("eps-lower", 150, 1.02, 1.001);
    median("eps-upper", 150, 1.02, 1.001);
    return terms_end();
}
