/* check_saddle_terms.c - the error terms of the saddle-point accountant (saddle_step.c, saddle_atoms.c, saddle_ends.c),
 * each where it is large: sums on coarse grids, short grids, atoms that are badly known, few steps.
 *
 * Reference: the same moments on a mesh so fine that their trapezoid error is below 1e-15, in long double; for atoms,
 * every outcome of the composition.
 */
#include "terms.h"
#include "clt/saddlepoint.h"

static double *work;

typedef struct {
    long double log_m, mean, var, cube;
} exact_moments;

static long double loss_at(long double m, long double q, long double g)
{
    long double v = m * g - 0.5L * m * m;
    return v > 600 ? v + logl(q) : log1pl(q * expm1l(v));
}

/* Of the loss log(1+U) under the weights w(g) (1+U)^a. */
static exact_moments exact(double m, double q, double a)
{
    double lo = -hs_left_reach_upper(m, q, a) - 12, hi = fmax(a * m, m) + 12,
           h = ldexp(1, m > 1 ? -6 - (int)ceil(log2(m)) : -6);
    double g, top = -HUGE_VAL;
    long double s[3] = {0, 0, 0}, cube = 0, size = 0, block = 0;
    int n = 0;
    exact_moments out;
    lo = h * floor(lo / h); /* all g are exact */
    for (g = lo; g < hi; g += 8 * h) top = fmax(top, (double)(a * loss_at(m, q, g) - 0.5 * g * g));
    for (g = lo; g < hi; g += h) {
        long double l = loss_at(m, q, g), p = expl(a * l - 0.5L * g * g - top);
        block += p;
        s[1] += p * l;
        if (++n % 256 == 0) {
            s[0] += block;
            block = 0;
        } /* a sum of n terms one by one rounds n times */
    }
    s[0] += block;
    out.mean = s[1] / s[0];
    for (g = lo; g < hi; g += h) {
        long double x = loss_at(m, q, g) - out.mean,
                    p = expl((long double)a * (x + out.mean) - 0.5L * g * g - top) / s[0];
        s[2] += p * x * x;
        cube += p * fabsl(x * x * x);
        size += p;
    }
    out.log_m = top + logl(s[0] * h) - 0.91893853320467274178L;
    out.var = s[2] / size;
    out.cube = cube / size;
    return out;
}

/* K, the mean, the variance and E|x|^3 of one step on a coarse mesh, or on a grid that ends early. */
static void moments(int range)
{
    double m = log_between(0.05, 4), q = log_between(1e-4, 0.95), z = log_between(0.1, fmax(1, 6 / m)),
           a = uniform() < 0.5 ? 1 + z : -z;
    double h = range ? 0.05 / fmax(m, 1) : hs_grid_real_h(m, a, between(10, 24)), side = range ? between(6.5, 8) : 10,
           sd, R;
    exact_moments M;
    hs_grid G;
    hs_tilted T;
    if (hs_grid_build(&G, m, q, hs_grid_mesh(h), -side - hs_left_reach_upper(m, q, a), fmax(a * m, m) + side, work))
        return;
    if (hs_step_tilted(&G, a, &T)) return;
    M = exact(m, q, a);
    sd = (double)sqrtl(M.var);
    R = (double)powl(M.cube, 1 / 3.0L);
    term(range ? "sp-range-K" : "sp-mesh-K", fabs((double)(T.K - M.log_m)), T.K_err, 1e-15 * (1 + fabs(T.K)));
    term(range ? "sp-range-mean" : "sp-mesh-mean", fabs((double)(T.d[1] - M.mean)) / sd, T.mean_err / sd, 1e-13);
    term(range ? "sp-range-variance" : "sp-mesh-variance", fabs((double)(T.d[2] / M.var - 1)),
         T.var_err / (double)M.var, 1e-13);
    /* what the bound of E|x|^3 leaves above it; and the bound itself must not lie far above */
    term("sp-cube", 0.5, 0.5 * T.r3_upper / (R * R * R), 1e-13);
}

/* Two atoms whose masses and losses are moved by as much as is said of them. */
static hs_atoms two_points(double p, double l, double rel, double edge, const long *first, double *loss, double *num,
                           double *errs)
{
    hs_atoms A;
    num[0] = 1 - p;
    num[1] = p;
    loss[1] = l;
    loss[0] = -log((1 - p * exp(-l)) / (1 - p)); /* E e^-L = 1 */
    errs[0] = rel;
    errs[1] = edge;
    errs[2] = 0;
    A.first = first;
    A.loss = loss;
    A.num = num;
    A.rel = errs;
    A.edge = errs + 1;
    A.inf = errs + 2;
    return A;
}

static void known_badly(void)
{
    static const long first[2] = {0, 2};
    double loss[2], num[2], errs[3], p = between(0.02, 0.7);
    double l = log_between(0.05, 4), t = log_between(0.05, 20 / l), moved[2], masses[2];
    double rel = log_between(1e-12, 9e-7), edge = log_between(1e-12, 1e-7), s1, s2;
    double top, M, c, var;
    hs_atoms A = two_points(p, l, rel, edge, first, loss, num, errs);
    hs_tilted T;
    int side = uniform() < 0.5 ? -1 : 1;
    if (hs_atoms_tilted(&A, 0, t, &T)) return;
    moved[0] = loss[0] + side * edge;
    moved[1] = loss[1] + side * edge; /* masses that still sum to 1 */
    masses[1] = num[1] * (1 + side * rel * fmin(1, num[0] / num[1]));
    masses[0] = 1 - masses[1];
    top = t * moved[1];
    s1 = masses[0] * exp(t * moved[0] - top);
    s2 = masses[1] * exp(t * moved[1] - top);
    M = s1 + s2;
    c = (s1 * moved[0] + s2 * moved[1]) / M;
    var = s1 * s2 / (M * M) * (moved[1] - moved[0]) * (moved[1] - moved[0]);
    term("sp-atoms-K", fabs(top + log(M) - T.K), T.K_err, 1e-14 * (1 + top));
    term("sp-atoms-mean", fabs(c - T.d[1]), T.mean_err, 1e-14 * (1 + l));
    term("sp-atoms-variance", fabs(var / T.d[2] - 1), T.var_err / T.d[2], 1e-13);
}

/* k steps of two atoms, one or two kinds of them: the Kolmogorov distance itself, and what the normal law makes of
 * delta. */
static void composed(int kinds)
{
    static const long first[3] = {0, 2, 4};
    double loss[4], num[4], errs[3], same[2][2] = {{1e-15, 1e-15}, {1e-15, 1e-15}};
    double none[2] = {0, 0}, k[2], t = log_between(0.05, 6), eps;
    double cdf = 0, distance = 0, value = 0;
    double sd, low;
    hs_atoms A;
    hs_steps S;
    hs_tilted T;
    hs_ends E;
    int i, j;
    two_points(between(0.05, 0.8), log_between(0.1, 2), 0, 0, first, loss, num, errs);
    two_points(between(0.05, 0.8), log_between(0.1, 2), 0, 0, first, loss + 2, num + 2, errs);
    if (kinds == 2 && uniform() < 0.5) {
        loss[2] = loss[0];
        loss[3] = loss[1];
        num[2] = num[0];
        num[3] = num[1];
    }
    A.first = first;
    A.loss = loss;
    A.num = num;
    A.rel = same[0];
    A.edge = same[1];
    A.inf = none;
    memset(&S, 0, sizeof S);
    k[0] = floor(log_between(1, 60));
    k[1] = floor(log_between(1, 60));
    S.b = kinds;
    S.k = k;
    S.atoms = &A;
    S.stride = 1;
    S.n_threads = 1;
    S.scale = 1;
    if (hs_steps_tilted(&S, t, &T)) return;
    sd = sqrt(T.d[2]);
    eps = T.d[1] + between(-1.5, 1) * sd;
    hs_ends_at(&T, eps, &E);
    { /* all outcomes (i, j), tilted, in order of the loss */
        static struct {
            double l, p;
        } all[4096];
        int n = 0, a, b;
        double base = k[0] * loss[0] + (kinds == 2 ? k[1] * loss[2] : 0);
        for (i = 0; i <= (int)k[0]; i++)
            for (j = 0; j <= (kinds == 2 ? (int)k[1] : 0); j++) {
                double l = base + i * (loss[1] - loss[0]) + j * (loss[3] - loss[2]);
                double p = lgamma(k[0] + 1) - lgamma(i + 1.0) - lgamma(k[0] - i + 1) + i * log(num[1]) +
                           (k[0] - i) * log(num[0]);
                if (kinds == 2)
                    p += lgamma(k[1] + 1) - lgamma(j + 1.0) - lgamma(k[1] - j + 1) + j * log(num[3]) +
                         (k[1] - j) * log(num[2]);
                for (a = n++; a > 0 && all[a - 1].l > l; a--) all[a] = all[a - 1];
                all[a].l = l;
                all[a].p = exp(p + t * l - T.K);
            }
        for (a = 0; a < n; a = b) {
            double at = all[a].l, z = (at - T.d[1]) / sd;
            distance = fmax(distance, fabs(cdf - normal_cdf(z)));
            for (b = a; b < n && all[b].l - at < 1e-9; b++) cdf += all[b].p;
            distance = fmax(distance, fabs(cdf - normal_cdf(z)));
        }
        for (a = 0; a < n; a++)
            value += all[a].l > eps ? all[a].p * exp(-t * (all[a].l - eps)) * -expm1(eps - all[a].l) : 0;
    }
    term(kinds == 1 ? "sp-berry-esseen" : "sp-berry-esseen-2", distance, T.kolmogorov, 1e-9);
    if (E.clt > 0) term("sp-clt", fabs(value - E.clt), E.error, 1e-9);
    low = exp(E.log_lower - (T.K - eps * t));
    term("sp-upper", value, exp(E.log_upper - (T.K - eps * t)), 1e-9);
    term("sp-lower", low, value, 1e-9);
    if (T.d[1] > eps) term("sp-chebyshev", exp(hs_log_chebyshev_lower(t, T.d[1] - eps, T.d[2])), value, 1e-9);
    term("sp-chernoff", value, exp(hs_payoff(t)), 1e-9);
}

/* Steps whose U is huge at some nodes: K by the plain sum, whose rounding is all that it is off by. */
static void strong(void)
{
    double m = log_between(4, 33), q = log_between(1e-4, 0.95),
           a = uniform() < 0.5 ? between(0.9, 1.002) : -log_between(0.01, 3), h = 0.3 / m;
    exact_moments M = exact(m, q, a);
    hs_grid G;
    hs_tilted T;
    if (hs_grid_build(&G, m, q, hs_grid_mesh(h), -9 - hs_left_reach_upper(m, q, a), fmax(a * m, m) + 9, work) ||
        hs_step_tilted(&G, a, &T))
        return;
    term("sp-strong-K", fabs((double)(T.K - M.log_m)), T.K_err, 3e-17 * (1 + fabs(T.K)));
}

/* What is not quadrature in the error of K of a run of strong steps is rounding: of a step below 1e-10, as |a| (3 m
 * |g| + 2 m^2) + 1.5 g^2 + 17 |a l| and n are below 9e5 together for m <= 33, -3 <= a <= 4. */
static void parts(void)
{
    double m = between(28, 33), q = log_between(1e-3, 0.9), k = floor(log_between(1, 10));
    double t = log_between(0.1, 3), out[14];
    const hs_run run = {.b = 1, .add = uniform() < 0.5, .m = &m, .q = &q, .k = &k};
    const hs_lent lent = {work, HS_GRID_WORK, 1, NULL};
    if (hs_saddle_cumulants(&run, t, &lent, out)) return;
    term("sp-quadrature-part", out[1], out[13] * 1.2 + 1e-10 * k, 0);
}

/* delta(eps) of one distinct step on the contour: log of its lower end, NaN where there is none. */
static double log_lower(const hs_run *run, double eps)
{
    static double *more;
    hs_contour C = {.run = *run, .n_threads = 1, .n_max = 4096, .rtol = 1e-9, .T0 = 30};
    hs_crossing at;
    if (!more) more = malloc(sizeof *more * (size_t)hs_contour_work(1, 1, 4096));
    if (!more || hs_contour_ask(&C, 1, eps, more, hs_contour_work(1, 1, 4096), &at)) return NAN;
    return log(at.delta.lower) + at.delta.log_scale;
}

/* The upper end that needs no grid, against the contour; and what holds at every eps, at some eps near the best one. */
static void without_grid(void)
{
    double m = log_between(0.05, 1.5), q = log_between(1e-4, 0.3), k = floor(log_between(1, 1e4));
    double at_zero, t, lower;
    double v = k * q * q * expm1(m * m), eps = v * log_between(0.5, 10) + between(0, 3) * sqrt(v);
    const hs_run run = {.b = 1, .add = 1, .m = &m, .q = &q, .k = &k};
    const hs_lent lent = {work, HS_GRID_WORK, 1, NULL};
    hs_ceiling upper;
    if (hs_saddle_delta_upper(&run, eps, HUGE_VAL, &lent, &upper)) return;
    lower = log_lower(&run, eps);
    if (lower > -700) term("sp-without-grid", 0.5 * exp(lower - fmax(upper.log_delta, -700)), 0.5, 0);
    t = eps / v;
    if (hs_saddle_ceiling_upper(&run, t, &lent, &at_zero)) return;
    eps += between(-1, 1) * sqrt(v);
    lower = log_lower(&run, eps);
    if (lower > -700) term("sp-ceiling", 0.5 * exp(lower + eps * t - at_zero), 0.5, 0);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    work = room(HS_GRID_WORK);
    for (i = 0; i < cases(2000); i++) moments(i % 2);
    for (i = 0; i < cases(400); i++) {
        known_badly();
        composed(1 + i % 2);
    }
    for (i = 0; i < cases(200); i++) {
        strong();
        parts();
        without_grid();
    }
    free(work);
    median("sp-strong-K", 12, 300, 100);
    median("sp-quadrature-part", 50, 60, 3);
    median("sp-without-grid", 80, 60, 10);
    median("sp-ceiling", 80, 10, 2);
    median("sp-mesh-K", 30, 20000, 100);
    median("sp-mesh-mean", 40, 2000, 20);
    median("sp-mesh-variance", 80, 200, 10);
    median("sp-range-K", 150, 100, 4);
    median("sp-range-mean", 150, 500, 10);
    median("sp-range-variance", 400, 100000, 40);
    median("sp-cube", 600, 1.1, 1.01);
    median("sp-atoms-K", 300, 1.1, 1.01);
    median("sp-atoms-mean", 300, 1.5, 1.1);
    median("sp-atoms-variance", 300, 30, 2);
    median("sp-berry-esseen", 150, 1.4, 1.2);
    median("sp-berry-esseen-2", 150, 2, 1.5);
    median("sp-clt", 300, 60, 10);
    median("sp-upper", 300, 3, 1.5);
    median("sp-lower", 100, 6, 2);
    median("sp-chebyshev", 25, 100, 8);
    median("sp-chernoff", 300, 6, 1.6);
    return terms_end();
}
