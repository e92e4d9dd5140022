/* saddle_step.c - K, its first six derivatives and the absolute third moment of a composition at a real tilt t, with
 * bounds.
 *
 * Symbols, beyond those of transform.c (g, w, m, q, U, l, h; a = 1+t for REMOVE, -t for ADD; p_j = h
 *   w(g_j)(1+U_j)^a/M). c: the computed mean of l, a constant below. x = l - c. r = q e^v/(1+U), l' = m r. psi = (log
 *   p)' = a m r - g. A_j = E x^j (tilted), T_j = sum p_i x_i^j its grid sum, Q_j >= |T_j - A_j|. u = 2^-53.
 *
 * Formula. K = log M in the second-order form of transform.c (exact to the last digits for q down to 1e-12, where the
 *   plain sum has none left); the other cumulants from centred moments [theory: saddle.cumulants]. Steps add.
 *
 * Error claims (for K, K', K'' and E|x|^3; the higher derivatives are estimates).
 *   quadrature  Q_j <= 2 e^{d^2/2} kap J_j/(e^{2 pi d/h} - 1) + ends, J_j = int p (|x| + beta r)^j, beta = b/cos(b/2),
 *               d = b/m, by upper sums over the cells [theory: saddle.mesh].
 *   |x|^3       <= F = y^3 (1 - 1.5 v + 0.375 v^2 + 0.125 v^3), y = sqrt(x^2 + tau^2), v = tau^2/y^2, |F| <= 9.4 y^3
 *               where beta r <= 0.6 y [theory: saddle.cube]. tau is the computed standard deviation: F is too large by
 *               1% for a normal law, by less for heavier tails.
 *   ends        a polynomial factor is at most itself at s = 2.61 (h + 1/lam), p falling like e^{-lam s}
 *               [theory: saddle.ends].
 *   mean, variance  [theory: saddle.mean-variance].
 *   rounding    of p = e^{a l + log h w}/M: e = u(|a|(dl + 3|l|) + 1.5 g^2 + 6|log h| + 10 + |log M|), of l:
 *               dl = u(r (3m|g| + 2m^2) + 14|l|) [theory: rounding.grid], n u a sum.
 * First order in u, as in transform.c; sums of bounds are rounded up by 1e-8 of themselves, which covers their own
 * rounding and that p is normalised by the computed M (refused when that is off by 2e-9).
 *
 * Rules in place of many steps: fit.c tells what K, K' and K'' are off by, and third moments are bounded by moments
 * that are analytic in the shifts [theory: compression.smoothed, compression.third].
 *
 * What it does not do: choose t; laws other than the (subsampled) Gaussian.
 */
#include "clt/saddlepoint.h"

enum { LANES = 8 };
typedef struct { /* sums over the grid, the error sums in units of u, the cell sums */
    double s[7], abs1, abs3, cube;
    double e0, e1, e2, e3;
    double e4;
    double j0, ja, jr, jaa;
    double jar, jrr, j3, j4;
    double room; /* lower bound of y/r */
} sums;

/* The nodes' weights, from what hs_grid_moments left, and upper bounds of them over their cells. */
HS_CLONES static void weigh(const hs_grid *G, double a, double unit)
{
    double m = G->m, q = G->q, h = G->h;
    double fa = fabs(a), drift = (0.25 * fa * m * m + 1) * 0.5 * h;
    const double *restrict gu = G->u, *restrict gi = G->inv, *restrict gg = G->g;
    double *restrict gp = G->p, *restrict gs = G->s;
    int j, n = G->n;
    for (j = 0; j < n; j++) {
        double psi = a * m * hs_slope(gu[j], q, gi[j]) - gg[j], p = gp[j] * unit,
               rise = 0.5 * h * ((psi < 0 ? -psi : psi) + drift);
        gp[j] = p;
        gs[j] = rise < 700 ? p * hs_exp(rise) : HUGE_VAL;
    }
}

/* F/y^3 at v = tau^2/y^2 [theory: saddle.cube]. */
static inline double cube_share(double v) { return 1 - v * (1.5 - v * (0.375 + 0.125 * v)); }

/* Moments of x = l - c, and their rounding. */
HS_CLONES static void sum_nodes(const hs_grid *G, double a, double log_m, double c, double tau, sums *out)
{
    enum { N = 15 };
    double acc[N][LANES] = {{0}}, m = G->m, fa = fabs(a);
    double base = 6 * fabs(log(G->h)) + 10 + fabs(log_m), tau2 = tau * tau;
    const double *restrict gl = G->l, *restrict gp = G->p, *restrict gu = G->u;
    const double *restrict gi = G->inv, *restrict gg = G->g;
    int i, j, n = G->n;
    for (j = 0; j < n; j += LANES)
        for (i = 0; i < LANES; i++) {
            double l = gl[j + i], g = gg[j + i], p = gp[j + i], x = l - c;
            double ax = fabs(x), x2 = x * x, px2 = p * x2;
            double dl = hs_l_error(m, g, hs_slope(gu[j + i], G->q, gi[j + i]), l);
            double e = fa * (dl + 3 * fabs(l)) + 1.5 * g * g + base, dx = dl + ax;
            double y2 = x2 + tau2, y3 = y2 * sqrt(y2);
            acc[0][i] += p;
            acc[1][i] += p * x;
            acc[2][i] += px2;
            acc[3][i] += px2 * x;
            acc[4][i] += px2 * x2;
            acc[5][i] += px2 * x2 * x;
            acc[6][i] += px2 * x2 * x2;
            acc[7][i] += p * ax;
            acc[8][i] += px2 * ax;
            acc[9][i] += p * y3 * cube_share(tau2 / y2);
            acc[10][i] += p * e;
            acc[11][i] += p * (e * ax + dx);
            acc[12][i] += p * (e * x2 + 2 * ax * dx);
            acc[13][i] += p * ((e + 20) * y3 + 3 * y2 * dx);
            acc[14][i] += px2 * (e * x2 + 4 * ax * dx);
        }
    for (i = 0; i < N; i++) ((double *)out)[i] = hs_lanes(acc[i]);
}

/* The cell sums. */
HS_CLONES static void sum_cells(const hs_grid *G, double c, double tau, double beta, sums *out)
{
    enum { N = 8 };
    double acc[N][LANES], most[LANES] = {0}, *to = &out->j0, m = G->m;
    double q = G->q, h = G->h, rim = exp(0.5 * m * h);
    double tau2 = tau * tau;
    const double *restrict gl = G->l, *restrict gs = G->s, *restrict gu = G->u, *restrict gi = G->inv;
    int i, j, n = G->n;
    memset(acc, 0, sizeof acc);
    for (j = 0; j < n; j += LANES)
        for (i = 0; i < LANES; i++) {
            double x = gl[j + i] - c, rr = hs_slope(gu[j + i], q, gi[j + i]) * rim;
            double pg = gs[j + i], ratio;
            double X = (x < 0 ? -x : x) + 0.5 * h * m * rr, Y2 = X * X + tau2, pX = pg * X, pr = pg * rr;
            double wide = (X + beta * rr) * (X + beta * rr);
            acc[0][i] += pg;
            acc[1][i] += pX;
            acc[2][i] += pr;
            acc[3][i] += pX * X;
            acc[4][i] += pX * rr;
            acc[5][i] += pr * rr;
            acc[6][i] += pg * Y2 * sqrt(Y2);
            acc[7][i] += pg * wide * wide;
            ratio = rr * rr / (x * x + tau2);
            most[i] = ratio > most[i] ? ratio : most[i];
        }
    for (i = 0; i < N; i++) to[i] = hs_lanes(acc[i]);
    for (i = 1; i < LANES; i++) most[0] = most[i] > most[0] ? most[i] : most[0];
    out->room = hs_down(1 / sqrt(most[0])) - 0.5 * h * m;
}

/* Best of three strips: the common factor of J_j and its beta. */
static double strip_factor(double m, double h, double a, double *beta)
{
    static const double part[3] = {0.9, 0.5, 0.2};
    double best = HUGE_VAL;
    int i;
    *beta = 1;
    for (i = 0; i < 3; i++) {
        double d = fmin(part[i] * HS_PI / m, 6), b = d * m, kap = a < 0 ? pow(cos(0.5 * b), a) : 1,
               be = b / cos(0.5 * b);
        double f = 2 * exp(0.5 * d * d) * kap / expm1(2 * HS_PI * d / h);
        if (f * (1 + be * be) < best) {
            best = f * (1 + be * be);
            *beta = be;
        }
    }
    return best / (1 + *beta * *beta);
}

/* The widest strip on which beta r <= 0.6 y, room a lower bound of y/r: the common factor of int |F| p. */
static double cube_factor(double m, double h, double a, double room)
{
    double b = fmin(0.9 * HS_PI, 6 * m), d;
    int i;
    for (i = 0; i < 40 && !(b <= 0.6 * room * cos(0.5 * b)); i++) b *= 0.85;
    d = b / m;
    return i < 40 ? 2 * exp(0.5 * d * d) * (a < 0 ? pow(cos(0.5 * b), a) : 1) / expm1(2 * HS_PI * d / h) : HUGE_VAL;
}

/* The grid of one subsampled step for tilts a_lo <= a <= a_hi. Mesh 1/4 per unit of the strip: 2 pi 0.9 pi/0.25 = 71
 * nats less e^{d^2/2}, kap and J; finer for a < 0, where kap = cos(b/2)^a forces a narrower strip. The ends leave
 * e^-45 of M, and what is small against the cube of the standard deviation ~ q m. */
static int open_grid(double m, double q, double a_lo, double a_hi, double *work, hs_grid *G)
{
    double h = fmin(0.25, 0.25 / (m * (a_lo < 0 ? 1 - 0.008 * a_lo : 1)));
    double R = sqrt(2 * fmax(45, 31 - 3 * log(q * fmin(m, 1))));
    double lo = -R - hs_left_reach_upper(m, q, a_lo), hi = fmax(a_hi * m, m) + R;
    int e;
    h = fmax(h, (hi - lo) / (HS_INNER_MAX - 24)); /* the bound tells what a coarser mesh costs */
    h = frexp(h, &e);
    h = ldexp(ceil(h * 4096), e - 12);
    return h > 0 && h < 1 ? hs_grid_build(G, m, q, h, lo, hi, work) : HS_TOO_MANY_NODES;
}

/* log M and its error. Where m is large, U is huge at some nodes, and log M is its plain sum. */
static int step_total(const hs_grid *G, double a, const hs_moments *mo, const sums *S, hs_tilted *T)
{
    double plain = HS_U * (S->e0 + G->n + 4), err = mo->err;
    T->K = mo->log_m;
    if (mo->dropped) {
        if (err < plain || !(fabs(S->s[0] - 1) < 1e-9))
            T->quad += hs_grid_dropped_upper(G, a) / exp(fmin(mo->log_m, 0));
        else {
            T->K += log(S->s[0]);
            err = plain + 2 * HS_U;
        }
    }
    if (!(T->quad < 1e-9 && err < 1e-9)) return HS_TOO_WIDE;
    T->quad *= 1 + 1e-8;
    T->K_err = err + T->quad;
    return HS_OK;
}

/* Quadrature: the common factor f of J_j, its beta; p beyond the grid, and the largest |x| that it counts with. */
typedef struct {
    double f, beta, ends, L;
} missed;

static missed missed_by(const hs_grid *G, double a, const hs_moments *mo)
{
    missed Q = {.ends = hs_grid_ends_upper(G, a, mo->log_m)};
    double m = G->m, lam = fmin(G->hi - fmax(a, 0) * m, -G->lo - fmax(-a, 0) * m * (G->u[0] + G->q) / (1 + G->u[0]));
    int j1 = (int)((G->hi - G->lo) / G->h + 0.5);
    Q.f = strip_factor(m, G->h, a, &Q.beta);
    Q.L = fmax(fabs(G->l[0] - mo->mean), fabs(G->l[j1] - mo->mean)) + Q.beta;
    Q.L += m * (2.61 * (G->h + 1 / lam)); /* [theory: saddle.ends] */
    return Q;
}

/* Q_j from J_j; beyond: the ends with their power of |x| [theory: saddle.mesh]. */
static double missed_upper(double f, double J, double beyond) { return f * (J + beyond) + beyond; }

/* J_2. */
static double squares_upper(const sums *S, double beta) { return S->jaa + 2 * beta * S->jar + beta * beta * S->jrr; }

/* Bounds of the errors of the mean and the variance [theory: saddle.mean-variance]. */
static void low_errors(const hs_grid *G, const sums *S, const missed *Q, hs_tilted *T)
{
    double n = G->n, A2 = S->s[2] / S->s[0], first = Q->ends * Q->L;
    double q1 = missed_upper(Q->f, S->ja + Q->beta * S->jr, first);
    double q2 = missed_upper(Q->f, squares_upper(S, Q->beta), first * Q->L);
    q2 += A2 * (T->quad + HS_U * (S->e0 + n)) + HS_U * (S->e2 + (n + 4) * S->s[2]);
    T->mean_err = (fabs(S->s[1]) + q1 + HS_U * (S->e1 + n * S->abs1)) * (1 + 1e-8);
    T->var_err = (q2 + T->mean_err * T->mean_err) * (1 + 1e-8);
}

/* What a sum over the nodes may be off by relative to E_0: quadrature, and rounding of masses and of n additions; err
 * is that of its terms, in units u. */
static double off_by(const sums *S, const hs_tilted *T, double sum, double err, double n)
{ return sum * T->quad + HS_U * (sum * (S->e0 + 2 * n + 8) + err); }

/* E x^4 and E x^3 + 2 B E x^2 about the mean, rounded up [theory: compression.third, saddle.mesh]. */
static void higher_upper(const hs_grid *G, const sums *S, const hs_moments *mo, const missed *Q, hs_tilted *T)
{
    double n = G->n, L = Q->L, third = Q->ends * (L * L * L);
    double fourth = missed_upper(Q->f, S->j4, third * L), r;
    double side = missed_upper(Q->f, sqrt(S->j4 * squares_upper(S, Q->beta)), third), mean = T->mean_err;
    double var = S->s[2] / S->s[0] + T->var_err;
    fourth += S->s[4] + off_by(S, T, S->s[4], S->e4, n);
    r = sqrt(sqrt(fourth)) + mean;
    T->r4_upper = r * r * r * r * (1 + 1e-8);
    side += S->s[3] + off_by(S, T, S->abs3, S->e3, n);
    side += 2 * (mo->mean - log1p(-G->q) + mean) * var + 3 * mean * var;
    T->side_upper = side + 2 * mean * mean * mean + 1e-8 * fabs(side);
}

/* E |x - E x|^3, rounded up, from the sums of y^3 [theory: saddle.cube]. */
static double cube_upper(const hs_grid *G, double a, const sums *S, const hs_moments *mo, const missed *Q, double tau,
                         double mean_err)
{
    int j1 = (int)((G->hi - G->lo) / G->h + 0.5);
    double beyond = (Q->L + tau) * (Q->L + tau) * (Q->L + tau) * Q->ends; /* y^3 there, as a sum and as an integral */
    /* y/r beyond the last node: r <= 1 and y grows; and l >= U/(1+U) >= r - q, so x/r >= 1 - (q + c)/r, which grows */
    double last = 1 - (G->q + fmax(mo->mean, 0)) * (1 + G->u[j1]) / (G->u[j1] + G->q), f, r;
    f = 9.4 * cube_factor(G->m, G->h, a, fmin(S->room, fmax(last, hypot(G->l[j1] - mo->mean, tau))));
    r = cbrt(S->cube + HS_U * (S->e3 + (G->n + 4.0) * S->j3) + f * (S->j3 + beyond) + beyond);
    r += mean_err; /* |l - E l| <= |x| + |A_1| */
    return r * r * r * (1 + 1e-8);
}

/* The step of an open grid at tilt a, everything but the sign of ADD. */
int hs_step_tilted(hs_grid *G, double a, hs_tilted *T)
{
    double tau;
    hs_moments mo;
    missed Q;
    sums S;
    int st;
    hs_grid_moments(G, a, &mo);
    tau = mo.var > 0 ? sqrt(mo.var) : 1;
    Q = missed_by(G, a, &mo);
    weigh(G, a, mo.unit);
    sum_nodes(G, a, mo.log_m, mo.mean, tau, &S);
    sum_cells(G, mo.mean, tau, Q.beta, &S);
    T->quad = missed_upper(Q.f, S.j0, Q.ends);
    low_errors(G, &S, &Q, T);
    if ((st = step_total(G, a, &mo, &S, T))) return st;
    higher_upper(G, &S, &mo, &Q, T);
    T->r3 = S.abs3 / S.s[0];
    T->r3_upper = cube_upper(G, a, &S, &mo, &Q, tau, T->mean_err);
    hs_tilted_cumulants(T, mo.mean, S.s);
    return T->d[2] > 0 && T->r3_upper < HUGE_VAL && fabs(T->K) < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

int64_t hs_saddle_work(void) { return HS_GRID_WORK; }

int hs_steps_open(hs_steps *S, const hs_run *run, const hs_lent *lent)
{
    const double *m = run->m, *q = run->q, *k = run->k;
    double all = 0, part = 0;
    int i, b = run->b;
    if (b < 1 || !m || !q || !k || !lent->work || run->apart) return HS_BAD_ARGUMENT; /* rows for a tail alone */
    if (lent->n_work < HS_GRID_WORK) return HS_SCRATCH;
    S->b = b;
    S->m = m;
    S->q = q;
    S->k = k;
    S->add = run->add;
    S->work = lent->work;
    S->atoms = NULL;
    S->fits = run->fits;
    S->n_fits = run->n_fits;
    S->n_threads = 1;
    S->poll = lent->poll;
    S->coarse.a_lo = S->grid_lo = 1;
    S->coarse.a_hi = S->grid_hi = -1;
    S->stride = b > 64 ? b / 32 : 1;
    for (i = 0; i < b; i++) {
        if (!(m[i] > 0 && q[i] > 0 && q[i] <= 1 && k[i] > 0)) return HS_BAD_ARGUMENT;
        all += k[i];
        part += i % S->stride ? 0 : k[i];
    }
    S->scale = all / part;
    return HS_OK;
}

/* K in a of one step to about 1e-6, infinite beyond use. A run of one step keeps its coarse grid for the next tilts. */
static hs_cgf step_cgf(hs_steps *S, int i, double a)
{
    double m = S->m[i], q = S->q[i];
    if (S->b == 1 && q < 1) {
        hs_coarse *G = &S->coarse;
        if (!(G->a_lo <= a && a <= G->a_hi)) {
            double lo = a < 0 ? 1.6 * a : 0, hi = a > 0 ? 1.2 * a + 1 : 0,
                   *work = S->coarse_work; /* REMOVE starts high */
            if (hs_coarse_build(G, m, q, lo, hi, HS_COARSE_ONE, work) &&
                hs_coarse_build(G, m, q, fmin(a, 0), fmax(a, 0), HS_COARSE_ONE, work))
                G->a_hi = -1;
        }
        if (G->a_lo <= a && a <= G->a_hi) return hs_coarse_cgf(G, a);
    }
    return hs_cgf_estimate(m, q, a);
}

/* K, K', K'' at tilt t to about 1e-6, over every stride-th step: for Newton steps only. Infinite where a sum cannot
 * be formed. */
hs_cgf hs_steps_cgf(hs_steps *S, double t, int stride)
{
    hs_cgf out = {0, 0, 0}, none = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    double a = S->add ? -t : 1 + t, f = stride > 1 ? S->scale : 1;
    int i;
    for (i = 0; i < S->b; i += stride) {
        hs_cgf one;
        if (hs_stopped(S->poll, 1e3)) return none;
        one = S->atoms ? hs_atoms_cgf(S->atoms, i, t) : step_cgf(S, i, a);
        if (!S->atoms && !(one.K < HUGE_VAL)) return none;
        hs_cgf_add(&out, S->k[i], one);
    }
    out.K *= f;
    out.K1 *= S->add ? -f : f;
    out.K2 *= f;
    return out;
}

/* The best proved Kolmogorov distance to the normal law of the computed mean and variance, for identical steps and
 * others [She13] [theory: saddle.berry-esseen], plain Gaussian steps and wrong means and variances included
 * [theory: saddle.kolmogorov]. */
static double kolmogorov_upper(const hs_tilted *T, double k, int identical)
{
    double v = T->d[2] - T->var_err, s, x, B;
    if (!(v > 0)) return 1;
    s = sqrt(v);
    x = T->r3_upper / (v * s);
    if (identical) {
        B = x * sqrt(k);
        x = fmin(0.4690 * B, fmin(0.3322 * (B + 0.429), 0.3031 * (B + 0.646))) / sqrt(k);
    } else x *= 0.5583;
    x += 0.4 * T->mean_err / s + 0.122 * T->var_err / v;
    return fmin(1, x * (1 + 1e-8));
}

typedef struct {
    hs_tilted T;
    double size[2], var;
    int plain, st;
} subtotal; /* size: of K and K' without signs; plain: Gaussian steps among them; var: of K'' without these */

/* Opens the grid that the only step of a run keeps, for tilts from lo to hi. */
static int keep_grid(hs_steps *S, double lo, double hi, double *work)
{
    int st = open_grid(S->m[0], S->q[0], lo, hi, work, &S->grid);
    S->grid_lo = st ? 1 : lo;
    S->grid_hi = st ? -1 : hi;
    return st;
}

/* Step i at tilt a. The only step of a run keeps its grid for the next tilts; one for a range of tilts may be too
 * coarse for a. */
static int grid_tilted(hs_steps *S, int i, double a, double *work, hs_tilted *T)
{
    hs_grid G;
    int st;
    if (S->b > 1) return (st = open_grid(S->m[i], S->q[i], a, a, work, &G)) ? st : hs_step_tilted(&G, a, T);
    if (!(S->grid_lo <= a && a <= S->grid_hi)) keep_grid(S, a < 0 ? 1.1 * a - 0.5 : 0, a > 0 ? 1.1 * a + 0.5 : 0, work);
    if (S->grid_lo <= S->grid_hi && !hs_step_tilted(&S->grid, a, T)) return HS_OK;
    return (st = keep_grid(S, a, a, work)) ? st : hs_step_tilted(&S->grid, a, T);
}

static void add_step(hs_steps *S, int i, double *work, subtotal *sum)
{
    hs_tilted one, *T = &sum->T;
    double k = S->k[i], t = T->t, *size = sum->size, sign = S->add ? -1 : 1;
    int j;
    if (!S->atoms && S->q[i] == 1) {
        double m = S->m[i], v = m * m * k;
        T->K += 0.5 * v * t * (1 + t);
        T->d[1] += v * (t + 0.5);
        T->d[2] += v;
        size[0] += 0.5 * v * t * (1 + t);
        size[1] += v * (t + 0.5);
        sum->plain = 1;
        return;
    }
    sum->st = S->atoms ? hs_atoms_tilted(S->atoms, i, t, &one) : grid_tilted(S, i, S->add ? -t : 1 + t, work, &one);
    if (sum->st) return;
    T->K += k * one.K;
    size[0] += k * fabs(one.K);
    size[1] += k * fabs(one.d[1]);
    T->K_err += k * one.K_err;
    T->quad += k * one.quad;
    T->mean_err += k * one.mean_err;
    T->var_err += k * one.var_err;
    T->r3 += k * one.r3;
    T->r3_upper += k * one.r3_upper;
    T->r4_upper += k * one.r4_upper;
    T->side_upper += k * one.side_upper;
    sum->var += k * one.d[2];
    for (j = 1; j < 7; j++) T->d[j] += (j & 1 ? sign : 1) * k * one.d[j];
}

static void join(subtotal *sum, const subtotal *part)
{
    hs_tilted *T = &sum->T;
    const hs_tilted *P = &part->T;
    int j;
    T->K += P->K;
    T->K_err += P->K_err;
    T->quad += P->quad;
    T->mean_err += P->mean_err;
    T->var_err += P->var_err;
    T->r3 += P->r3;
    T->r3_upper += P->r3_upper;
    T->r4_upper += P->r4_upper;
    T->side_upper += P->side_upper;
    sum->var += part->var;
    for (j = 1; j < 7; j++) T->d[j] += P->d[j];
    sum->size[0] += part->size[0];
    sum->size[1] += part->size[1];
    sum->plain |= part->plain;
    if (!sum->st) sum->st = part->st;
}

static void add_chunk(hs_steps *S, double t, int chunk, int chunks, subtotal *sum)
{
    int i = (int)hs_chunk_at(S->b, chunk, chunks), end = (int)hs_chunk_at(S->b, chunk + 1, chunks);
    memset(sum, 0, sizeof *sum);
    for (sum->T.t = t; i < end && !sum->st; i++) {
        if (hs_stopped(S->poll, 2e4)) sum->st = HS_INTERRUPTED;
        else add_step(S, i, S->work + hs_thread() * HS_GRID_WORK, sum);
    }
}

/* What rules may be off by, of which `var` is the variance [theory: compression.near]. E|x|^3 of a step is not
 * analytic, but its bounds are: E x^3 + 2 B E x^2, and by Cauchy and Schwarz of the second and the fourth moment
 * [theory: compression.third]. */
static int add_near_fits(const hs_steps *S, double var, double *work, hs_tilted *T)
{
    hs_near N;
    if (hs_fit_near(S->fits, S->n_fits, S->add, T->t, work, &N)) return HS_BAD_ARGUMENT;
    T->fit = N.K;
    T->K_err += N.K; /* [theory: compression.smoothed] */
    T->mean_err += N.mean;
    T->var_err += N.var;
    T->r3_upper = fmin(sqrt((var + T->var_err) * (T->r4_upper + N.fourth)), T->side_upper + N.side) * (1 + 1e-7);
    return T->r3_upper < HUGE_VAL ? HS_OK : HS_TOO_WIDE;
}

/* Totals at tilt t, with bounds; chunks of fixed number, summed in order, so that results do not depend on the
 * threads. */
int hs_steps_tilted(hs_steps *S, double t, hs_tilted *T)
{
    double n = 3 * (S->b + 4) * HS_U;
    int chunks = S->b < 2 * HS_CHUNKS ? 1 : HS_CHUNKS, chunk;
    subtotal part[HS_CHUNKS];
#ifdef _OPENMP
    if (S->n_threads > 1) { /* one thread alone opens no region: that would take a microsecond */
#pragma omp parallel for num_threads(S->n_threads) schedule(dynamic, 1)
        for (chunk = 0; chunk < chunks; chunk++) add_chunk(S, t, chunk, chunks, &part[chunk]);
    } else
#endif
        for (chunk = 0; chunk < chunks; chunk++) add_chunk(S, t, chunk, chunks, &part[chunk]);
    for (chunk = 1; chunk < chunks; chunk++) join(&part[0], &part[chunk]);
    *T = part[0].T;
    if (part[0].st) return part[0].st;
    T->K_err = T->K_err * (1 + 1e-8) + n * part[0].size[0];
    T->mean_err = T->mean_err * (1 + 1e-8) + n * part[0].size[1];
    T->var_err = T->var_err * (1 + 1e-8) + n * T->d[2];
    T->r3_upper *= 1 + 1e-9;
    if (S->n_fits && (chunk = add_near_fits(S, part[0].var, S->work, T))) return chunk;
    T->kolmogorov = kolmogorov_upper(T, S->k[0], S->b == 1 && !part[0].plain && !S->n_fits);
    return T->d[2] > 0 && T->K_err < 1 ? HS_OK : HS_TOO_WIDE;
}

/* Totals at a given tilt: K and a bound of its error, six derivatives, and E|x|^3 with its bound. */
int hs_saddle_cumulants(const hs_run *run, double t, const hs_lent *lent, double *out)
{
    hs_steps S;
    hs_tilted T;
    int st, j;
    if ((st = hs_steps_open(&S, run, lent))) return st;
    if ((st = hs_steps_tilted(&S, t, &T))) return st;
    out[0] = T.K;
    out[1] = T.K_err;
    for (j = 1; j < 7; j++) out[1 + j] = T.d[j];
    out[8] = T.r3;
    out[9] = T.r3_upper;
    out[10] = T.mean_err;
    out[11] = T.var_err;
    out[12] = T.kolmogorov;
    out[13] = T.quad;
    return HS_OK;
}
