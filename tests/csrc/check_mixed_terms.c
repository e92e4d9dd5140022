/* check_mixed_terms.c - the error terms of lines and lattice periods of laws with atoms (mixed.c, law.c, laplace*.c,
 * subnormal.c), each where it is large: period, tilts, number of nodes, panels and tables as given here.
 *
 * References: binomial sums of the closed form of every alias; the same line with 25 nats more of nodes; integrals and
 * sums over 20 times as many panels, or tables cut 12 deviations out. The sum of moduli beyond the last node is the
 * error of the truncation.
 */
#define hs_mixed_work                                                                                                  \
    own_mixed_work /* mixed.c is read here for its static functions: its public ones get names of their own, */
#define hs_mixed_delta own_mixed_delta
#define hs_mixed_near own_mixed_near
#define hs_mixed_eps own_mixed_eps
#define hs_mixed_cgf own_mixed_cgf
#define hs_mixed_upper own_mixed_upper
#define hs_mixed_place given_place   /* and the period and the tilts of the aliases come from here, */
#define hs_nodes_freeze given_freeze /* and errors of the nodes */
#include "line/mixed.c"
#undef hs_mixed_place
#undef hs_nodes_freeze
#include "terms.h"

void hs_mixed_place(hs_mixed *A);
void hs_nodes_freeze(hs_nodes *F);

enum { ROOM = 4000, NODES = 40000, LAWS = 2 };
static const double FINE = 30;

typedef struct {
    hs_mixed A;
    hs_law laws[LAWS];
    double table[14], x[ROOM], l[ROOM];
    double lp[ROOM], dl[ROOM], dp[ROOM];
} run;

static double *work, period_of, depth_of; /* of the planned period, of the planned tilt */
static double grown_node, grown_round;    /* by what nodes are off, and their claims grow */
static int side_of;                       /* where the left tilt lies: 0 (0, c), 1 (-1, 0), 2 below -1; 3: as planned */
static long n_work;

/* Errors of the nodes as large as claimed. */
void given_freeze(hs_nodes *F)
{
    int64_t n;
    for (n = 0; n <= F->N; n++) {
        F->re[n] += log1p(grown_node + grown_round);
        ((double *)F->node)[n] += grown_node;
        ((double *)F->round)[n] += grown_round;
    }
    hs_nodes_freeze(F);
}

static double exponent(const void *A, double s, double x) { return hs_mixed_total(A, s).K - s * x + hs_payoff(s); }

/* The planned placement of a fine line, then the period and the tilts as given. */
void given_place(hs_mixed *A)
{
    double T0 = A->T0, c, far;
    A->T0 = FINE;
    if (A->c > 0) A->c = ldexp(floor(ldexp(depth_of * A->c, 24)) + 1, -24);
    hs_mixed_place(A);
    A->T0 = T0;
    A->P *= period_of;
    if (side_of == 3) return;
    c = A->c;
    far = 3 * fabs(c) + 20 / A->sd;
    A->s_right = best_tilt(exponent, A, c < 0 ? 1e-3 : 1.01 * c, fabs(c) + far, A->eps + A->P);
    A->s_left = c < 0 || side_of == 2 ? best_tilt(exponent, A, -1 - far, -1.001, A->eps - A->P)
                : side_of == 1        ? best_tilt(exponent, A, -0.99, -0.01, A->eps - A->P)
                                      : best_tilt(exponent, A, 0.01 * c, 0.99 * c, A->eps - A->P);
}

static void point(run *R, int j, double x, double l, double lp)
{
    R->x[j] = x;
    R->l[j] = l;
    R->lp[j] = lp;
    R->dl[j] = 4 * HS_U * fabs(l);
    R->dp[j] = 8 * HS_U * (1 + fabs(lp));
}

static void row(run *R, int kind, double k, double m, double q, int add, long n, double panels)
{
    double *t = R->table + 7 * R->A.b++;
    t[0] = kind;
    t[1] = k;
    t[2] = m;
    t[3] = q;
    t[4] = add;
    t[5] = (double)n;
    t[6] = panels;
}

static void begin(run *R, double T0)
{
    memset(&R->A, 0, sizeof R->A);
    R->A.table = R->table;
    R->A.x = R->x;
    R->A.l = R->l;
    R->A.lp = R->lp;
    R->A.dl = R->dl;
    R->A.dp = R->dp;
    R->A.rtol = exp(-FINE + 4);
    R->A.T0 = T0;
    R->A.n_nodes = NODES;
    R->A.t = R->A.lower = 1;
    period_of = depth_of = 1;
    side_of = 3;
}

/* Randomized response at e0, k times, as two atoms; on its lattice, or a line with a normal step of shift m. */
static void two_atoms(run *R, double e0, double k, double m)
{
    point(R, 0, m > 0 ? -e0 : 0, -e0, -log1p(exp(e0)));
    point(R, 1, m > 0 ? e0 : 1, e0, -log1p(exp(-e0)));
    row(R, HS_LAW_POINTS, k, 0, 1, 0, 2, 0);
    if (m > 0) row(R, HS_LAW_NORMAL, 1, m, 1, 0, 0, 0);
    else {
        R->A.step = 2 * e0;
        R->A.shift = -0.5 * k;
    }
}

/* A discrete Gaussian and its shift by one, k times, the table cut `reach` deviations from both. */
static void discrete(run *R, double sigma, double k, double reach)
{
    long lo = (long)floor(-reach * sigma), hi = (long)ceil(reach * sigma) + 1, j;
    double Z = 0;
    for (j = -(long)(14 * sigma) - 1; j <= 14 * sigma; j++) Z += exp(-0.5 * (double)j * (double)j / sigma / sigma);
    for (j = lo; j <= hi; j++)
        point(R, (int)(j - lo), (double)j, ((double)j - 0.5) / sigma / sigma,
              -0.5 * pow((double)(j - 1) / sigma, 2) - log(Z));
    row(R, HS_LAW_POINTS_LOGCONCAVE, k, 0, 1, 0, hi - lo + 1, 0);
    R->A.step = 1 / sigma / sigma;
    R->A.shift = -0.5 * k;
}

static int sublaplace(run *R, double m, double q, int add, double k, int panels, int order)
{
    double x[64], w[64];
    const hs_rule rule = {order, x, w};
    gauss_legendre(order, x, w);
    if (hs_sublaplace_points(m, q, add, panels, &rule, R->l, R->lp, R->dl, R->dp)) return 0;
    memcpy(R->x, R->l, sizeof R->x);
    row(R, HS_LAW_SUBLAPLACE, k, m, q, add, 2 + (long)panels * order, panels);
    return 1;
}

static int lay(run *R, double eps)
{
    R->A.eps = eps;
    return read_table(&R->A, R->laws, work, n_work) == HS_OK && mixed_prepare(&R->A, 1, 0, work) == HS_OK;
}

/* delta(e), 1 - delta(e), delta(e) - 1 + e^e of two_atoms. */
static void closed(double e0, double k, double m, double e, double *delta, double *rest, double *less)
{
    int i;
    *delta = *rest = *less = 0;
    for (i = 0; i <= k; i++) {
        double L = e0 * (2 * i - k),
               p = exp(lgamma(k + 1) - lgamma(i + 1) - lgamma(k - i + 1) - i * log1p(exp(-e0)) -
                       (k - i) * log1p(exp(e0))),
               x = e - L;
        if (!(p > 1e-300)) continue;
        if (m > 0) {
            double a = x / m - 0.5 * m, b = x / m + 0.5 * m, ex = exp(fmin(x, 700));
            *delta += p * fmax(0, normal_cdf(-a) - ex * normal_cdf(-b));
            *rest += p * (normal_cdf(a) + ex * normal_cdf(-b));
            *less += p * fmax(0, ex * normal_cdf(b) - normal_cdf(a));
        } else {
            *delta += p * fmax(0, -expm1(x));
            *rest += p * exp(fmin(x, 0));
            *less += p * fmax(0, expm1(fmin(x, 700)));
        }
    }
}

/* e^x - 1 - x */
static long double h2l(long double x)
{
    long double sum = 0, part = x;
    int i;
    if (fabsl(x) > 0.5L) return expm1l(x) - x;
    for (i = 2; i < 20; i++) sum += part *= x / i;
    return sum;
}

/* Rounding of K of one step (normal, Laplace, two atoms), and of a run on its line, against long double. */
static void cumulants(run *R)
{
    double m = log_between(1e-4, 20), t = uniform() < 0.7 ? log_between(1e-3, 30 / m) : -log_between(1e-3, 30 / m),
           k = floor(log_between(4, 1000));
    long double z = t, x = m, M;
    hs_law w;
    hs_law_value g;
    int j;
    memset(&w, 0, sizeof w);
    w.kind = HS_LAW_NORMAL;
    w.m = m;
    hs_law_cgf(&w, t, &g);
    term("k-normal", (double)fabsl(0.5L * x * x * z * (1 + z) - g.K), g.err, 1e-19 * fabs(g.K));
    if (fabs(t + 0.5) > 0.01) {
        w.kind = HS_LAW_LAPLACE;
        hs_law_cgf(&w, t, &g);
        M = ((1 + z) * h2l(z * x) + z * h2l(-(1 + z) * x)) / (1 + 2 * z);
        term("k-laplace", (double)fabsl(log1pl(M) - g.K), g.err, 1e-18 * (t > 0 ? fabs(g.K) : 1 + m * (1 + fabs(t))));
    }
    begin(R, FINE);
    two_atoms(R, m, k, 0);
    w.kind = HS_LAW_POINTS;
    w.n = 2;
    w.l = R->l;
    w.lp = R->lp;
    w.dl = R->dl;
    w.dp = R->dp;
    hs_law_cgf(&w, t, &g);
    M = (expm1l(z * x) + expl(-x) * expm1l(-z * x)) / (1 + expl(-x));
    term("k-atoms", (double)fabsl(log1pl(M) - g.K), g.err, 1e-18 * (1 + fabs(t * m)));
    if (!lay(R, k * m * tanh(0.5 * m) + between(-1, 4) * m * sqrt(k) / cosh(0.5 * m))) return;
    for (j = 0; j < 3; j++) {
        z = j == 0 ? R->A.c : j == 1 ? R->A.s_right : R->A.s_left;
        M = (expm1l(z * x) + expl(-x) * expm1l(-z * x)) / (1 + expl(-x));
        if (M < 1e300L)
            term("k-run", (double)fabsl(k * log1pl(M) - R->A.K[j]), R->A.err[j], 1e-18 * k * (1 + fabs((double)z * m)));
    }
}

static void aliasing(run *R, int lattice, int side)
{
    static const char *names[2][4] = {
        {"mixed-left-above", "mixed-left-between", "mixed-left-below", "mixed-left-complement"},
        {"period-left-above", "period-left-between", "period-left-below", "period-left-complement"}};
    double e0 = log_between(0.05, 1), k = floor(log_between(4, 200)), m = lattice ? 0 : log_between(0.3, 2),
           sd = sqrt(k * e0 * e0 / pow(cosh(0.5 * e0), 2) + m * m);
    double mean = k * e0 * tanh(0.5 * e0) + 0.5 * m * m, delta, rest, less;
    double truth, right = 0, left = 0, a = 0;
    int n;
    hs_value v;
    begin(R, FINE);
    two_atoms(R, e0, k, m);
    depth_of = between(0.2, 1);
    period_of = between(0.1, 0.7);
    side_of = side;
    if (!lay(R, side == 3 ? mean - between(2.5, 4) * sd : mean + between(-1, 4) * sd)) return;
    if ((R->A.c < 0) != (side == 3)) return;
    if (side == 3) { /* one step more: the tilts were left as planned */
        side_of = 2;
        if (!lay(R, R->A.eps)) return;
    }
    if (uniform() < 0.5) /* K known to a nat at the tilts of the aliases */
        for (n = 1; n < 3; n++) {
            a = between(0, 2);
            R->A.K[n] -= a;
            R->A.err[n] += a;
        }
    mixed_at(&R->A, R->A.eps, &v);
    ends_hold(v.lower, v.value, v.upper, v.truncation + v.inner + v.rounding, v.alias_left, v.alias_right, R->A.s_left);
    closed(e0, k, m, R->A.eps, &truth, &rest, &less);
    truth *= exp(-v.log_scale);
    for (n = 1; n < 400; n++) {
        double x = n * R->A.P, before[2] = {right, left};
        closed(e0, k, m, R->A.eps + x, &delta, &rest, &less);
        right += delta > 1e-290 ? exp(R->A.c * x - v.log_scale) * delta : 0;
        closed(e0, k, m, R->A.eps - x, &delta, &rest, &less);
        left += side == 3 ? (less > 1e-290 ? exp(-R->A.c * x - v.log_scale) * less : 0)
                          : exp(-R->A.c * x - v.log_scale) * (side == 0   ? delta
                                                              : side == 1 ? rest
                                                                          : less);
        if (right - before[0] <= 1e-14 * right && left - before[1] <= 1e-14 * left) break;
    }
    term(lattice ? "period-right" : "mixed-right", right, v.alias_right, 1e-9 * right);
    term(names[lattice][side], left, v.alias_left, 1e-9 * left);
    term("mixed-alias-sum", fabs(v.value - truth - right + (side == 1 ? left : -left)),
         v.rounding + v.inner + v.truncation, 1e-11 * (truth + left + right + exp(-v.log_scale)));
}

/* delta(eps) is at least delta at the lower end of eps, at most at the upper: on a short period, by the closed form. */
static void eps_ends(run *R, int lattice)
{
    double e0 = log_between(0.05, 1), k = floor(log_between(20, 200)), m = lattice ? 0 : log_between(0.3, 2),
           log_delta = -between(0.5, 8);
    double delta, rest, less;
    hs_crossing e;
    begin(R, FINE);
    two_atoms(R, e0, k, m);
    R->A.rtol = 1;
    period_of = between(0.4, 0.9);
    if (own_mixed_eps(&R->A, log_delta, work, n_work, &e) > HS_LOOSE) return;
    closed(e0, k, m, e.lower, &delta, &rest, &less);
    term("eps-lower", 0.5 * exp(log_delta) / delta, 0.5, 1e-9);
    closed(e0, k, m, e.upper, &delta, &rest, &less);
    term("eps-upper", 0.5 * delta * exp(-log_delta), 0.5, 1e-9);
}

/* The rounding of delta on a line or a period of full length; atoms and a normal step, in long double. */
static void full(run *R, int lattice)
{
    double e0 = log_between(0.05, 1), k = floor(log_between(20, 200)), m = lattice ? 0 : log_between(0.3, 2);
    double mean = k * e0 * tanh(0.5 * e0), sd = sqrt(k) * e0 / cosh(0.5 * e0);
    long double x = e0, mu = m, truth = 0, size = 0;
    hs_value v;
    int i;
    begin(R, FINE + 4);
    two_atoms(R, e0, k, m);
    if (!lay(R, mean + between(-2, 4) * sd)) return;
    mixed_at(&R->A, R->A.eps, &v);
    for (i = 0; i <= k; i++) {
        long double gap = R->A.eps - x * (2 * i - (long double)k), log_p = lgammal(k + 1) - lgammal(i + 1) -
                                                                           lgammal(k - i + 1) - i * log1pl(expl(-x)) -
                                                                           (k - i) * log1pl(expl(x));
        long double a = m > 0 ? gap / mu - 0.5L * mu : 0, above = m > 0 ? 0.5L * expl(log_p) * erfcl(a * sqrtl(0.5L))
                                                                  : gap < 0 ? expl(log_p)
                                                                            : 0;
        size += above;
        truth += m > 0     ? above - 0.5L * expl(log_p + gap) * erfcl((a + mu) * sqrtl(0.5L))
                 : gap < 0 ? -expl(log_p) * expm1l(gap)
                           : 0;
    }
    if (R->A.c < 0) return;
    term(lattice ? "period-value" : "line-value", (double)fabsl(v.value - truth * expl(-(long double)v.log_scale)),
         v.rounding + v.inner + v.truncation + v.alias_left + v.alias_right, 1e-16 * (double)size * exp(-v.log_scale));
}

/* Far below the bulk of the loss: 1 - delta from above, and the rounding of delta there, on a period of full length. */
static void complement(run *R)
{
    double e0 = log_between(0.05, 1), k = floor(log_between(20, 200)), mean = k * e0 * tanh(0.5 * e0),
           sd = sqrt(k) * e0 / cosh(0.5 * e0);
    long double x = e0, rest = 0, truth;
    hs_point p;
    hs_value v;
    int i;
    begin(R, FINE);
    two_atoms(R, e0, k, 0);
    R->A.rtol = 0.01;
    if (own_mixed_delta(&R->A, mean - between(4.5, 10) * sd, work, n_work, &p) == HS_OK && p.upper == 1) {
        double delta, most, less;
        closed(e0, k, 0, R->A.eps, &delta, &most, &less);
        term("complement", most, p.truncation, 1e-14);
    }
    begin(R, FINE);
    two_atoms(R, e0, k, 0);
    if (!lay(R, mean - between(2.5, 6) * sd) || !(R->A.c < 0)) return;
    mixed_at(&R->A, R->A.eps, &v);
    for (i = 0; i <= k; i++) {
        long double loss = x * (2 * i - (long double)k), log_p = lgammal(k + 1) - lgammal(i + 1) - lgammal(k - i + 1) -
                                                                 i * log1pl(expl(-x)) - (k - i) * log1pl(expl(x));
        rest += expl(log_p + fminl(R->A.eps - loss, 0));
    }
    truth = (1 - rest) * expl(-(long double)v.log_scale);
    term("complement-rounding", (double)fabsl(v.value - truth),
         v.rounding + v.inner + v.truncation + v.alias_left + v.alias_right, 1e-18 * (double)truth);
}

/* K of a run of atoms and normal steps without a line, against long double. */
static void cgf(run *R)
{
    double m = log_between(1e-3, 5), s = log_between(1e-3, 3), t = log_between(1e-3, 30 / m);
    double k = floor(log_between(4, 1000)), K, err;
    long double z = t, x = m, M = (expm1l(z * x) + expl(-x) * expm1l(-z * x)) / (1 + expl(-x));
    begin(R, FINE);
    two_atoms(R, m, k, s);
    if (hs_mixed_cgf(&R->A, t, work, n_work, &K, &err)) return;
    term("run-cgf", (double)fabsl(k * log1pl(M) + 0.5L * s * s * z * (1 + z) - K), err, 1e-18 * k * (1 + fabs(t * m)));
}

/* Delta of atoms and a normal step, without nodes, against the closed form: right of the bulk, and beyond all atoms. */
static void chernoff(run *R)
{
    double e0 = log_between(0.05, 1), k = floor(log_between(4, 200)), m = log_between(0.1, 2);
    double mean = k * e0 * tanh(0.5 * e0) + 0.5 * m * m, sd = sqrt(k * pow(e0 / cosh(0.5 * e0), 2) + m * m);
    double upper, delta, rest, less;
    begin(R, FINE);
    two_atoms(R, e0, k, m);
    if (own_mixed_upper(&R->A, mean + log_between(0.3, 9) * sd, work, n_work, &upper)) return;
    closed(e0, k, m, R->A.eps, &delta, &rest, &less);
    if (delta > 1e-290) term("run-chernoff", 0.5 * delta * exp(-upper), 0.5, 1e-9);
}

/* A run of each kind. */
static int any_kind(run *R, int kind)
{
    double sigma = log_between(0.5, 10), m = log_between(0.3, 3), q = log_between(0.05, 0.8);
    if (kind == 0) two_atoms(R, log_between(0.1, 3), floor(log_between(2, 200)), 0);
    if (kind == 1) discrete(R, sigma, ceil(log_between(0.3, 10)), 12);
    if (kind == 2) two_atoms(R, log_between(0.1, 0.6), floor(log_between(4, 40)), log_between(0.2, 1));
    if (kind == 3) row(R, HS_LAW_LAPLACE, floor(log_between(20, 200)), m, 1, 0, 0, 0);
    if (kind == 4 && !sublaplace(R, m, q, uniform() < 0.5, floor(log_between(30, 300)), 8, 30)) return 0;
    if (kind == 5)
        row(R, HS_LAW_LAPLACE, floor(log_between(2, 8)), m, 1, 0, 0,
            0); /* outcomes with at most one loss off the atoms summed apart */
    return 1;
}

/* (1/N or dy/2pi) |f| |kernel| of node n > 0, both signs, of frozen nodes. */
static double share(const hs_mixed *A, double eps, long n)
{
    double V0, f = hypot(A->re[n], A->im[n]);
    gap at;
    if (A->step == 0) return f * A->dy / (2 * HS_PI);
    at = place_of(A, eps, &V0);
    return f * (at.p + at.q * exp(-A->c * A->step)) / (double)A->N;
}

/* |f| at node n. */
static double modulus(const hs_mixed *A, long n)
{ return hypot(A->re[n], A->im[n]) / (n ? 2 : 1) * exp(-kernel_log(A, (double)n * A->dy)); }

/* Nodes cut short: the largest |f| of those left out (fall), and the sum (tail). */
static void truncation(run *R, int kind)
{
    static const char *tails[6] = {"period-tail",        "period-tail-logconcave", "mixed-tail",
                                   "mixed-tail-laplace", "mixed-tail-sublaplace",  "mixed-tail-few"};
    static const char *falls[5] = {"period-fall", "period-fall-logconcave", "mixed-fall", "mixed-fall-laplace",
                                   "mixed-fall-sublaplace"};
    static run fine;
    hs_law_value bulk;
    double eps, sum = 0, most = 0;
    double area, fall = exp(-log_between(0.05, 8));
    long n;
    hs_value v;
    begin(R, FINE);
    if (!any_kind(R, kind)) return;
    period_of = kind == 5 ? 1 : log_between(2, 20);
    depth_of = between(0.2, 1);
    if (read_table(&R->A, R->laws, work, n_work)) return;
    bulk = hs_mixed_total(&R->A, 0);
    eps = bulk.mean + between(0, 3) * sqrt(bulk.var);
    fine = *R;
    if (kind == 5) fine.A.rtol = 1e-9;
    if (!lay(&fine, eps)) return;
    fine.A.re = memcpy(malloc(sizeof(double) * NODES), fine.A.re, sizeof(double) * NODES);
    fine.A.im = memcpy(malloc(sizeof(double) * NODES), fine.A.im, sizeof(double) * NODES);
    for (n = 1; n < fine.A.last && modulus(&fine.A, n) > fall; n++) {}
    if (kind == 5) R->A.rtol = log_between(1e-4, 0.5);
    else R->A.n_nodes = n + 1;
    if (lay(R, eps) && R->A.last < fine.A.last && R->A.near_atoms == fine.A.near_atoms) {
        mixed_at(&R->A, eps, &v);
        for (n = R->A.last + 1; n <= fine.A.last; n++) {
            if (fine.A.round[n] > 1e-3) continue; /* |phi| is near 0 there, and 1 stands for what is not known */
            sum += share(&fine.A, eps, n);
            most = fmax(most, modulus(&fine.A, n));
        }
        term(tails[kind], sum, v.truncation, 1e-6 * sum);
        if (kind < 5)
            term(falls[kind], most, exp(-decay_lower(&R->A, (double)R->A.last * R->A.dy, &area)), 1e-6 * most);
    }
    free(fine.A.re);
    free(fine.A.im);
}

/* Errors as large as their claims, put into a line or a period: K, the nodes turned so that all errors add, the
 * lattice. */
static void injected(run *R, int lattice, int what)
{
    static const char *names[2][5] = {{"mixed-k", "mixed-inner", "mixed-rounding", "", ""},
                                      {"period-k", "period-inner", "period-rounding", "period-shift", "period-step"}};
    double d = log_between(1e-7, 0.1), claimed;
    int found;
    hs_law_value bulk;
    hs_value fine, v;
    begin(R, FINE);
    any_kind(R, lattice ? (int)(2 * uniform()) : 2);
    if (read_table(&R->A, R->laws, work, n_work)) return;
    bulk = hs_mixed_total(&R->A, 0);
    if (!lay(R, bulk.mean + between(0, 3) * sqrt(bulk.var))) return;
    mixed_at(&R->A, R->A.eps, &fine);
    if (what == 0) {
        R->A.K[0] -= d;
        R->A.err[0] += d;
    }
    if (what == 1 || what == 2) { /* all of one sign: at least the first half of the nodes adds up */
        *(what == 1 ? &grown_node : &grown_round) = d;
        found = lay(R, R->A.eps);
        grown_node = grown_round = 0;
        if (!found) return;
    }
    if (what == 3) {
        R->A.d_shift += d * R->A.step;
        R->A.shift += uniform() < 0.5 ? d : -d;
    }
    if (what == 4) {
        d *= 1e-3;
        R->A.d_step += d;
        R->A.step *= 1 + (uniform() < 0.5 ? d : -d);
    }
    mixed_at(&R->A, R->A.eps, &v);
    ends_hold(v.lower, v.value, v.upper, v.truncation + v.inner + v.rounding, v.alias_left, v.alias_right, R->A.s_left);
    claimed = what == 1 ? v.inner : v.rounding;
    term(names[lattice][what], fabs(v.value * exp(v.log_scale - fine.log_scale) - fine.value), claimed,
         fine.rounding + 1e-13);
}

/* phi(y) of one law: the sum over its tilted points, or the closed form. */
static void phi_at(const hs_law *w, double y, double *re, double *im)
{
    long j;
    if (w->kind == HS_LAW_LAPLACE) {
        hs_laplace_phi(w, y, re, im);
        *re += 1;
        return;
    }
    for (*re = *im = 0, j = 0; j < w->nr; j++) {
        double c = cos(y * w->xr[j]), s = sin(y * w->xr[j]), fall;
        if (w->kind != HS_LAW_SUBNORMAL || !w->ri) {
            *re += w->r[j] * c;
            *im += w->r[j] * s;
            continue;
        }
        fall = exp(-y * w->xi[j]);
        *re += fall * (w->r[j] * c - w->ri[j] * s) - w->r[j];
        *im += fall * (w->r[j] * s + w->ri[j] * c) - w->ri[j];
    }
    if (w->kind == HS_LAW_SUBNORMAL && w->ri) *re += 1;
}

static int tilted(run *R, hs_law *w, double *scratch, double c, double T0)
{
    double tilts[3] = {c, 1.2 * c, 0.8 * c};
    R->A.n_nodes = NODES;
    if (read_table(&R->A, R->laws, work, n_work)) return 0;
    *w = R->laws[0];
    w->k = 1;
    return hs_law_tilt(w, tilts, 0, T0, scratch) == HS_OK;
}

static double distance(const hs_law *a, const hs_law *b, double y)
{
    double ar, ai, br, bi;
    phi_at(a, y, &ar, &ai);
    phi_at(b, y, &br, &bi);
    return hypot(ar - br, ai - bi);
}

/* Gauss panels: few of them, of few nodes; K, and sums at complex exponents. */
static void panels(run *R, double *scratch)
{
    static run fine;
    double m = log_between(0.2, 5), q = log_between(0.01, 0.9), t = log_between(0.05, 6), y = log_between(0.1, 20);
    int add = uniform() < 0.5, n = 1 + (int)(6 * uniform()), order = 2 + (int)(12 * uniform());
    hs_law_value got, truth;
    hs_law w;
    long double re = 0, im = 0;
    long j;
    if (uniform() < 0.3) t = -between(0.1, 3);
    begin(R, FINE);
    begin(&fine, FINE);
    if (!sublaplace(R, m, q, add, 1, n, order) || !sublaplace(&fine, m, q, add, 1, 40, 30)) return;
    if (read_table(&fine.A, fine.laws, work, n_work) || read_table(&R->A, R->laws, work, n_work)) return;
    hs_law_cgf(&fine.laws[0], t, &truth);
    hs_law_cgf(&R->laws[0], t, &got);
    if (got.err < 1) term("panels-k", fabs(got.K - truth.K), got.err, truth.err);
    w = R->laws[0];
    for (j = 0; j < w.n; j++) {
        long double p = expl(w.lp[j] + (long double)t * w.l[j] - truth.K);
        re += p * cosl(y * w.l[j]);
        im += p * sinl(y * w.l[j]);
    }
    w = fine.laws[0];
    for (j = 0; j < w.n; j++) {
        long double p = expl(w.lp[j] + (long double)t * w.l[j] - truth.K);
        re -= p * cosl(y * w.l[j]);
        im -= p * sinl(y * w.l[j]);
    }
    term("panels-phi", (double)hypotl(re, im), hs_sublaplace_quadrature_upper(&R->laws[0], t, y, truth.K), 1e-13);
    (void)scratch;
}

/* What rounding does to the nodes of a block, against the same points in long double [theory: rounding.blocks]. */
static void nodes_of(const hs_law *w, const char *name)
{
    double re[HS_LAW_BLOCK] = {0}, im[HS_LAW_BLOCK] = {0};
    double round[HS_LAW_BLOCK] = {0}, node[HS_LAW_BLOCK] = {0};
    double dy = log_between(1e-3, 0.3);
    long n0 = HS_LAW_BLOCK * (long)between(0, 40), n, j;
    hs_law_nodes(w, dy, n0, HS_LAW_BLOCK, re, im, round, node);
    for (n = 1; n < HS_LAW_BLOCK; n += 5) {
        long double y = (double)(n0 + n) * dy, x = 0, v = 0, X;
        for (j = 0; j < w->nr; j++) {
            int path = w->kind == HS_LAW_SUBNORMAL && w->ri;
            long double r = w->r[j], s = path ? w->ri[j] : 0, turn = y * w->xr[j];
            long double fall = path ? expm1l(-y * w->xi[j]) : 0, half = sinl(0.5L * turn);
            long double a = fall - 2 * half * half * (1 + fall), b = (1 + fall) * sinl(turn);
            x += r * a - s * b;
            v += r * b + s * a;
        }
        if (w->add) v = -v;
        X = 2 * x + x * x + v * v;
        X = re[n] - (X > -0.5L ? 0.5L * log1pl(X) : logl(hypotl(1 + x, v)));
        v = remainderl(im[n] - atan2l(v, 1 + x), 2 * acosl(-1));
        if (round[n] < 0.01) term(name, (double)hypotl(X, v), round[n], 1e-18 * (double)y);
    }
}

/* A log-concave table cut near: K, phi. */
static void tables(run *R, double *scratch)
{
    static run fine;
    double sigma = log_between(0.8, 10), c = log_between(0.05, 2 * sigma), y = between(0.05, 3), reach = between(2, 7);
    hs_law w, v;
    begin(R, FINE);
    begin(&fine, FINE);
    discrete(R, sigma, 1, reach);
    discrete(&fine, sigma, 1, 13);
    if (!tilted(R, &w, scratch, c, FINE) || !tilted(&fine, &v, scratch + 2 * ROOM, c, FINE)) return;
    nodes_of(&v, "table-nodes");
    if (w.err < 0.5) term("table-k", fabs(w.log_m - v.log_m), w.err, v.err);
    if (w.ref == v.ref) term("table-phi", distance(&w, &v, y), w.quad, 1e-12);
}

/* The variance of atoms whose masses are known to some percent: the far ones may be heavier, the near ones lighter
 * [theory: law.point-variance]. */
static void variance(double *scratch)
{
    double loss[6], mass[6], dl[6] = {0};
    double dp[6], den[6], num = 0;
    double all = 0, c = log_between(0.01, 2), tilts[3];
    double off = log_between(1e-5, 0.1);
    long double computed[3] = {0}, exact[3] = {0}, var, most;
    int n = 2 + (int)between(0, 5), i;
    hs_law w = {0};
    for (i = 0; i < n; i++) {
        num += mass[i] = between(0.05, 1);
        all += den[i] = between(0.05, 1);
    }
    for (i = 0; i < n; i++) {
        loss[i] = log(mass[i] / num / (den[i] / all));
        mass[i] = log(mass[i] / num);
        dp[i] = off;
    }
    w.kind = HS_LAW_POINTS;
    w.k = w.unit = 1;
    w.n = n;
    w.x = w.l = loss;
    w.lp = mass;
    w.dl = dl;
    w.dp = dp;
    tilts[0] = c;
    tilts[1] = c + 1;
    tilts[2] = c - 1;
    if (hs_law_tilt(&w, tilts, 0, 10, scratch) != HS_OK) return;
    for (i = 0; i < n; i++) {
        long double r = expl(mass[i] + (long double)c * loss[i]);
        computed[0] += r;
        computed[1] += r * loss[i];
        computed[2] += r * loss[i] * loss[i];
    }
    var = computed[2] / computed[0] - computed[1] / computed[0] * (computed[1] / computed[0]);
    for (i = 0; i < n; i++) {
        long double r = expl(mass[i] + (long double)c * loss[i]), x = loss[i] - computed[1] / computed[0];
        r *= x * x > var ? 1 + (long double)off : 1 - (long double)off;
        exact[0] += r;
        exact[1] += r * loss[i];
        exact[2] += r * loss[i] * loss[i];
    }
    most = exact[2] / exact[0] - exact[1] / exact[0] * (exact[1] / exact[0]);
    term("variance", (double)((most - var) / var), (double)((w.var_upper - var) / var), 2e-6);
}

/* |phi| beyond a frequency. */
static void far(run *R, double *scratch, int kind)
{
    static const char *names[3] = {"far-logconcave", "far-laplace", "far-sublaplace"};
    double m = log_between(0.3, 4), sigma = log_between(2, 20), c = log_between(0.05, kind ? 4 : sigma),
           y = kind ? log_between(0.3, 60) : between(0.05, 3);
    double most = 0, re, im;
    hs_law w;
    int i;
    begin(R, FINE);
    if (kind == 0) discrete(R, sigma, 1, 12);
    if (kind == 1) row(R, HS_LAW_LAPLACE, 1, m, 1, 0, 0, 0);
    if (kind == 2 && !sublaplace(R, m, log_between(0.05, 0.9), uniform() < 0.5, 1, 20, 30)) return;
    if (!tilted(R, &w, scratch, c, FINE)) return;
    for (i = 0; i < 40; i++) {
        double at = kind ? y + i * 0.2 / m : y + (HS_PI - y) * i / 39;
        phi_at(&w, at, &re, &im);
        most = fmax(most, hypot(re, im));
    }
    term(names[kind], most, hs_law_far_upper(&w, y), 1e-9);
}

/* A discrete Gaussian whose lattice no other law shares. */
static void off_lattice(run *R, double sigma, double k)
{
    discrete(R, sigma, k, 12);
    memcpy(R->x, R->l, sizeof R->x);
    R->A.step = R->A.shift = 0;
}

/* |phi| of such a law at some distance from its lattice's frequencies [theory: law.differences]. */
static void spaced(run *R, double *scratch)
{
    double sigma = log_between(2, 20), s = 1 / sigma / sigma, c = log_between(0.05, 2 * sigma);
    double x = log_between(0.1, 0.5 * sigma) * HS_PI / s / sigma, most = 0, re, im;
    hs_law w;
    int i;
    begin(R, FINE);
    off_lattice(R, sigma, 1);
    if (!tilted(R, &w, scratch, c, FINE)) return;
    x = fmin(x, HS_PI / s);
    for (i = 0; i < 40; i++) {
        phi_at(&w, x + (HS_PI / s - x) * i / 39 + (i % 5) * 2 * HS_PI / s, &re, &im);
        most = fmax(most, hypot(re, im));
    }
    term("far-spaced", most, hs_law_spaced_upper(&w, x), 1e-9);
}

/* The nodes that a visit of bands leaves out [theory: line.bands]. */
static void left_out(run *R)
{
    enum { MOST = 8192 };
    hs_law_value bulk;
    hs_bands bands;
    double Y, to, sum = 0;
    long n, i;
    begin(R, FINE);
    off_lattice(R, log_between(1, 6), ceil(log_between(0.3, 10)));
    row(R, HS_LAW_LAPLACE, floor(log_between(1, 8)), log_between(0.3, 3), 1, 0, 0, 0);
    period_of = log_between(1, 4);
    depth_of = between(0.2, 1);
    if (read_table(&R->A, R->laws, work, n_work)) return;
    bulk = hs_mixed_total(&R->A, 0);
    if (!lay(R, bulk.mean + between(0, 3) * sqrt(bulk.var)) || !hs_bands_find(&R->A, between(2, 30), &bands)) return;
    Y = log_between(2, 20) * R->A.dy;
    to = fmin(Y * log_between(1, 1000), 0.9 * MOST * R->A.dy);
    for (n = 1; n < MOST; n += HS_LAW_BLOCK) {
        double re[HS_LAW_BLOCK] = {0}, im[HS_LAW_BLOCK] = {0};
        double round[HS_LAW_BLOCK] = {0}, node[HS_LAW_BLOCK] = {0};
        for (i = 0; i < 2; i++) hs_law_nodes(&R->laws[i], R->A.dy, n, HS_LAW_BLOCK, re, im, round, node);
        for (i = 0; i < HS_LAW_BLOCK; i++) {
            double y = (double)(n + i) * R->A.dy;
            if (y <= Y || (y <= to && hs_bands_off(&bands, y) < bands.X)) continue;
            if (round[i] < 1e-3) sum += exp(re[i]) * R->A.dy / HS_PI / (y * y);
        }
    }
    term(to > 0.5 * bands.T ? "bands-tail" : "bands-tail-near", sum, hs_bands_tail_upper(&R->A, &bands, Y, to),
         1e-6 * sum);
}

/* The same of a visit that chose them itself: what it says its tail is. */
static void not_visited(run *R)
{
    enum { MOST = 8192 };
    hs_law_value bulk;
    double sum = 0;
    long n, i;
    begin(R, between(1, 8));
    off_lattice(R, log_between(1, 6), ceil(log_between(0.3, 10)));
    row(R, HS_LAW_LAPLACE, floor(log_between(1, 8)), log_between(0.3, 3), 1, 0, 0, 0);
    R->A.n_nodes = (long)log_between(64, 4096);
    if (read_table(&R->A, R->laws, work, n_work)) return;
    bulk = hs_mixed_total(&R->A, 0);
    if (!lay(R, bulk.mean + between(0, 3) * sqrt(bulk.var)) || R->A.near_atoms) return;
    for (n = 1; n < MOST; n += HS_LAW_BLOCK) {
        double re[HS_LAW_BLOCK] = {0}, im[HS_LAW_BLOCK] = {0};
        double round[HS_LAW_BLOCK] = {0}, node[HS_LAW_BLOCK] = {0};
        for (i = 0; i < 2; i++) hs_law_nodes(&R->laws[i], R->A.dy, n, HS_LAW_BLOCK, re, im, round, node);
        for (i = 0; i < HS_LAW_BLOCK; i++) {
            double y = (double)(n + i) * R->A.dy;
            if (n + i <= R->A.last && modulus(&R->A, n + i) > 0) continue;
            if (round[i] < 1e-3) sum += exp(re[i] - 0.5 * R->A.smooth * y * y) * R->A.dy / HS_PI / (y * y);
        }
    }
    term("bands-visit", sum, R->A.tail, 1e-6 * sum);
}

/* A line that ends early, so that a normal step smooths it: two atoms and a little noise, against the closed form
 * [theory: line.smoothed]. */
static void smoothed(run *R)
{
    double e0 = log_between(0.2, 2), k = ceil(log_between(0.3, 8)), m = log_between(1e-4, 3e-2);
    double eps = between(0, 1.2) * k * e0;
    long double truth = 0, scale, p = 1 / (1 + expl(-e0));
    hs_value v;
    int j;
    begin(R, FINE);
    two_atoms(R, e0, k, m);
    R->A.n_nodes = (long)log_between(256, 16384);
    R->A.lower = between(0.6, 1);
    if (uniform() < 0.3) eps = (2 * floor(between(0, 0.5 * k) + 1) - k) * e0 + 0.5 * m * m;
    if (read_table(&R->A, R->laws, work, n_work) || !lay(R, eps) || !(R->A.smooth > 0)) return;
    mixed_at(&R->A, eps, &v);
    for (j = 0; j <= (int)k; j++) {
        long double x = eps - (2 * j - k) * e0, mass = powl(p, j) * powl(1 - p, k - j), r = sqrtl(0.5L);
        mass *= expl(lgammal(k + 1) - lgammal(j + 1.0L) - lgammal(k - j + 1));
        truth += mass * 0.5L * (erfcl(r * (x / m - 0.5L * m)) - expl(x) * erfcl(r * (x / m + 0.5L * m)));
    }
    scale = expl(-(long double)v.log_scale);
    term("smoothed", (double)fabsl(v.value - truth * scale), fmax(v.upper - v.value, v.value - v.lower),
         1e-17 * (double)scale);
}

/* The variance of the loss on the grid of the real line under its tilted masses. */
static double spread(const hs_law *w)
{
    long double mean = 0, square = 0;
    int64_t i;
    const hs_grid *G = &w->grid;
    for (i = 0; i < G->n; i++) mean += (long double)G->r[i] * G->l[i];
    for (i = 0; i < G->n; i++) square += G->r[i] * (G->l[i] - mean) * (G->l[i] - mean);
    return (double)square;
}

/* The grid and the path of a sampled Gaussian step made for a few nats: K, phi and the variance. */
static void subnormal(run *R, double *scratch)
{
    static run fine;
    double m = log_between(0.3, 3), q = log_between(0.01, 0.8), c = log_between(0.1, 4);
    double y = between(2, 20) / m, T0 = between(-3, 14), worst = 0;
    int add = uniform() < 0.5, i;
    hs_law w, v;
    begin(R, T0);
    begin(&fine, FINE);
    row(R, HS_LAW_SUBNORMAL, 1, m, q, add, 0, 0);
    row(&fine, HS_LAW_SUBNORMAL, 1, m, q, add, 0, 0);
    if (!tilted(R, &w, scratch, c, T0) || !tilted(&fine, &v, scratch + HS_GRID_WORK, c, FINE)) return;
    nodes_of(&v, "path-nodes");
    term("subnormal-k", fabs(w.log_m - v.log_m), w.err, v.err);
    for (i = 0; i < 4; i++) worst = fmax(worst, distance(&w, &v, y * (1 - 0.1 * i)));
    term("subnormal-phi", worst, w.quad, v.quad + 1e-12);
    term("subnormal-variance", spread(&v) / spread(&w) - 1, w.var_upper / spread(&w) - 1, 1e-9);
    for (i = 0; i < 4; i++) {
        double re, im, at = y * (1 - 0.25 * i);
        phi_at(&v, at, &re, &im);
        term("far-subnormal", hypot(re, im), hs_law_far_upper(&v, at), v.quad + 1e-12);
    }
}

int main(int argc, char **argv)
{
    run *R = calloc(1, sizeof *R);
    double *scratch;
    int i;
    terms_begin(argc, argv);
    n_work = hs_mixed_work(LAWS, ROOM, 2, NODES);
    work = room(n_work);
    scratch = room(4 * ROOM + 2 * HS_GRID_WORK + 2 * HS_ENDS_WORK);
    if (!R) return 2;
    for (i = 0; i < cases(400); i++) {
        aliasing(R, i % 2, i / 2 % 4);
        truncation(R, i % 6);
        injected(R, i % 2, i / 2 % (i % 2 ? 5 : 3));
    }
    for (i = 0; i < cases(200); i++) {
        panels(R, scratch);
        tables(R, scratch);
        far(R, scratch, i % 3);
        subnormal(R, scratch);
    }
    for (i = 0; i < cases(400); i++) {
        cumulants(R);
        cgf(R);
        chernoff(R);
    }
    for (i = 0; i < cases(200); i++) {
        eps_ends(R, i % 2);
        complement(R);
        full(R, i % 2);
    }
    for (i = 0; i < cases(200); i++) variance(scratch);
    for (i = 0; i < cases(200); i++) {
        spaced(R, scratch);
        left_out(R);
        smoothed(R);
        not_visited(R);
    }
    free(work);
    free(R);
    free(scratch);
    median("panels-k", 50, 200000, 2000);
    median("panels-phi", 30, 30000, 1000);
    median("table-k", 100, 30, 2);
    median("table-phi", 100, 8, 4);
    median("variance", 100, 4, 2);
    median("far-logconcave", 20, 2000, 2);
    median("far-spaced", 60, 3, 1.5);
    median("smoothed", 40, 30, 3);
    median("bands-tail", 60, 30, 8);
    median("bands-tail-near", 30, 15, 5);
    median("bands-visit", 30, 30, 8);
    median("far-laplace", 40, 1.1, 1.01);
    median("far-sublaplace", 8, 2, 1.1);
    median("far-subnormal", 400, 1.2, 1.02);
    median("path-nodes", 400, 2500, 600);
    median("table-nodes", 400, 2500, 400);
    median_directed("path-nodes", 50);
    median_directed("table-nodes", 80);
    median("subnormal-k", 60, 20000, 100);
    median("subnormal-phi", 40, 10000, 400);
    median("mixed-right", 100, 10, 3);
    median("mixed-left-above", 30, 1.3, 1.05);
    median("mixed-left-between", 30, 2, 1.1);
    median("mixed-left-below", 25, 5, 1.1);
    median("mixed-left-complement", 30, 10, 3);
    median("period-right", 80, 10, 3);
    median("period-left-above", 30, 2, 1.05);
    median("period-left-between", 30, 2, 1.05);
    median("period-left-below", 25, 5, 2.5);
    median("period-left-complement", 15, 10, 2.5);
    median("mixed-alias-sum", 0, HUGE_VAL, HUGE_VAL); /* an identity: nothing is left to bound */
    median("period-fall", 30, 2, 1.1);
    median("period-fall-logconcave", 40, 8, 1.1);
    median("mixed-fall", 40, 2, 1.1);
    median("mixed-fall-laplace", 12, 2, 1.1);
    median("mixed-fall-sublaplace", 20, 2, 1.1);
    median("period-tail", 20, 60, 6);
    median("period-tail-logconcave", 40, 300, 10);
    median("mixed-tail", 40, 30, 10);
    median("mixed-tail-laplace", 10, 100, 30);
    median("mixed-tail-sublaplace", 20, 40, 8);
    median("mixed-tail-few", 25, 2, 1.2);
    median("k-normal", 300, 25, 8);
    median("k-laplace", 300, 90, 25);
    median("k-atoms", 120, 90, 25);
    median("k-run", 500, 90, 25);
    median("line-value", 80, 80, 40);
    median("period-value", 30, 200, 100);
    median("run-cgf", 100, 150, 40);
    median("run-chernoff", 300, 10, 2.5);
    median("eps-lower", 40, 1.1, 1.01);
    median("eps-upper", 40, 1.1, 1.01);
    median("complement", 80, 1.5, 1.01);
    median("complement-rounding", 80, 400, 120);
    median("mixed-k", 30, 1.2, 1.02);
    median("mixed-inner", 30, 1.2, 1.02);
    median("mixed-rounding", 30, 1.2, 1.02);
    median("period-k", 30, 1.2, 1.02);
    median("period-inner", 30, 1.2, 1.02);
    median("period-rounding", 30, 1.2, 1.02);
    median("period-shift", 30, 30, 5);
    median("period-step", 30, 30, 5);
    return terms_end();
}
