/* twosided.c - the transform of one step whose pair is a public mixture of two-sided branches, one inner grid a branch.
 *
 * Symbols. Branch r, of weight w_r: num = (1-q) N(0,1) + q N(up,1), den = (1-q) N(0,1) + q N(-down,1), up, down >= 0,
 *   q < 1. g: standard normal, w its density; v1 = up g - up^2/2, v2 = -down g - down^2/2, U_i = q (e^{v_i} - 1),
 *   l_i = log(1+U_i), rho_i = q e^{v_i}/(1-q), s_i = rho_i/(1+rho_i); L = l1 - l2 the loss, increasing in g.
 *   M(z) = sum_r w_r E (1+U1)^{a1} (1+U2)^{a2}, a1 = 1+z, a2 = -z; E = a1 l1 + a2 l2 at real z. The other direction
 *   swaps up and down. Tilted weights p_j = w_r h w(g_j) e^{E_j}/M; phi(y) = M(z+iy)/M(z) = sum r_j e^{iy L_j},
 *   r_j = p_j/sum p. u = 2^-53.
 *
 * Formula. log M = log1p( sum w_r h w [ (e^E - 1 - E) + a1 (l1 - U1) + a2 (l2 - U2) ] ) [theory: law.sampled-form]; the
 *   case down = 0 (REMOVE) or up = 0 (ADD) with one branch is transform.c. The nodes of all branches stand in one row,
 *   so the node and phase sums of transform.c serve unchanged.
 *
 * Error claims. Quadrature, ends, dropped terms, Psi: those of transform.c with products and sums over both factors,
 *   and sums over branches [theory: law.two-sided, pair.mixture]. Rounding as there, summed over the factors;
 *   pair->q_err, pair->w_err (relative errors of q and w, in units of u) enter as errors of U, with derivative
 *   a_i (e^E/(1+U_i) - 1), of L, as |U_i|/(1+U_i), and of the weights [theory: rounding.log-m, rounding.phi].
 * First order in u, as there.
 *
 * What it does not do: q = 1, atoms, shifts of both laws to one side.
 */
#include "law/twosided.h"

enum { STRIDE = HS_TWO_MAX + 8, NODE_ROWS = 9 };

/* The n nodes (first + j) h of branch r from position `at` of the rows on. */
HS_CLONES static void two_fill(const hs_two *T, int r, double lh, double first, int n, int at)
{
    const hs_grid *G = &T->G;
    double *restrict g = G->g + at, *restrict lw = G->lw + at, *restrict L = G->l + at;
    double *restrict u1 = T->u1 + at, *restrict l1 = T->l1 + at, *restrict lm1 = T->lm1 + at;
    double *restrict u2 = T->u2 + at, *restrict l2 = T->l2 + at, *restrict lm2 = T->lm2 + at;
    double q = T->pair->q[r], up = T->pair->up[r], down = T->pair->down[r];
    double lq = log(q), h = T->h[r];
    int j;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double x = (first + (double)j) * h, U1, U2, a;
        double b, am, bm;
        hs_factor(up, q, lq, x, &U1, &a, &am);
        hs_factor(down, q, lq, -x, &U2, &b, &bm);
        g[j] = x;
        lw[j] = lh - 0.5 * x * x;
        L[j] = a - b;
        u1[j] = U1;
        l1[j] = a;
        lm1[j] = am;
        u2[j] = U2;
        l2[j] = b;
        lm2[j] = bm;
    }
}

/* Grids of all branches for tilts z_lo .. z_hi, R beyond every peak, mesh h[r]. work: HS_TWO_WORK doubles. */
int hs_two_build(hs_two *T, const hs_pair *pair, const double *h, double z_lo, double z_hi, double R, double *work)
{
    hs_grid *G = &T->G;
    double **row[HS_TWO_ARRAYS] = {&G->g, &G->lw, &T->u1, &G->l, &T->lm1, &T->u2, &T->l1, &T->l2, &T->lm2,
                                   /* the last four: one scratch array of hs_grid_nodes */
                                   &G->p, &G->s, &G->r, &G->er, &G->ei, &G->er1, &G->ei1};
    int r, j, i, total = 0;
    for (i = 0; i < HS_TWO_ARRAYS; i++) *row[i] = work + (size_t)i * STRIDE;
    G->u = T->u1;
    G->lm = T->lm1;
    G->strip = -1;
    T->pair = pair;
    for (r = 0; r < pair->branches; r++) {
        double lw = log(pair->w[r]), lh = log(h[r]), lo;
        double hi, first, last;
        int n, padded;
        hs_two_range(pair, r, z_lo, z_hi, R, &lo, &hi);
        first = floor(lo / h[r]);
        last = ceil(hi / h[r]);
        if (!(last - first < HS_TWO_MAX - 8 - total)) return HS_TOO_MANY_NODES;
        n = (int)(last - first) + 1;
        padded = (n + 7) / 8 * 8;
        T->first[r] = total;
        T->nodes[r] = n;
        T->strip[r] = -1;
        T->h[r] = h[r];
        T->size[r] = fabs(lh) + fabs(lw) + 1;
        two_fill(T, r, lh - HS_LOG_SQRT_2PI + lw, first, padded, total);
        for (i = 0; i < NODE_ROWS; i++)
            for (j = n; j < padded; j++) work[(size_t)i * STRIDE + total + j] = i == 1 ? -1e4 : 0;
        total += padded;
    }
    T->first[r] = G->n = G->last = total;
    G->first = 0;
    return HS_OK;
}

static double two_squares(const hs_two *T, hs_exponents a)
{
    double most = 1;
    int r;
    for (r = 0; r < T->pair->branches; r++) {
        double g = fmax(-T->G.g[T->first[r]], T->G.g[T->first[r] + T->nodes[r] - 1]);
        most = fmax(most, hs_squares_upper(a.a1, T->pair->up[r], g) * hs_squares_upper(a.a2, T->pair->down[r], g));
    }
    return most;
}

/* The log of the largest weight of a node. */
HS_CLONES static double two_largest(const hs_two *T, hs_exponents a)
{
    const double *restrict l1 = T->l1, *restrict l2 = T->l2, *restrict lw = T->G.lw;
    double top[8] = {-1e4, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4};
    int64_t j, i, n = T->G.n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double x = a.a1 * l1[j + i] + a.a2 * l2[j + i] + lw[j + i];
            top[i] = x > top[i] ? x : top[i];
        }
    for (i = 1; i < 8; i++) top[0] = fmax(top[0], top[i]);
    return top[0];
}

/* log M where e^E dominates: plain log-sum-exp, relative error of each term its exponent's. */
HS_CLONES static void two_moments_plain(hs_two *T, hs_exponents a, double top, hs_moments *out)
{
    const hs_pair *pair = T->pair;
    double s0 = 0, s1 = 0, s2 = 0;
    double e0 = 0, f1 = fabs(a.a1), f2 = fabs(a.a2);
    hs_grid *G = &T->G;
    int64_t j;
    int r;
    for (j = 0; j < G->n; j++) G->p[j] = hs_exp(a.a1 * T->l1[j] + a.a2 * T->l2[j] + G->lw[j] - top);
    for (r = 0; r < pair->branches; r++)
        for (j = T->first[r]; j < T->first[r + 1]; j++) {
            double g = fabs(G->g[j]), up = pair->up[r], down = pair->down[r], rq = pair->q_err;
            double d1 = hs_v_error(up, g) + 18 * fabs(T->l1[j]) + rq * fabs(T->u1[j]) / (1 + T->u1[j]);
            double d2 = hs_v_error(down, g) + 18 * fabs(T->l2[j]) + rq * fabs(T->u2[j]) / (1 + T->u2[j]);
            s0 += G->p[j];
            s1 += G->p[j] * G->l[j];
            e0 += G->p[j] * (f1 * d1 + f2 * d2 + 1.5 * g * g + fabs(top) + 6 * T->size[r]);
        }
    s1 /= s0;
    for (j = 0; j < G->n; j++) s2 += G->p[j] * (G->l[j] - s1) * (G->l[j] - s1);
    out->log_m = top + log(s0);
    out->mean = s1;
    out->var = s2 / s0;
    out->err = HS_U * (e0 / s0 + 8 + G->n + pair->w_err + 2 * (fabs(top) + fabs(log(s0)))) * two_squares(T, a);
}

/* What the caps of U1 and U2 leave out of their terms in M. */
static double two_capped_upper(const hs_two *T, hs_exponents a)
{
    double sum = 0;
    int64_t j;
    int r;
    for (r = 0; r < T->pair->branches; r++) {
        double up = T->pair->up[r], down = T->pair->down[r], lo = T->G.g[T->first[r]],
               hi = T->G.g[T->first[r] + T->nodes[r] - 1];
        if (up * hi - 0.5 * up * up <= 600 && -down * lo - 0.5 * down * down <= 600) continue;
        for (j = T->first[r]; j < T->first[r + 1]; j++) {
            if (up * T->G.g[j] - 0.5 * up * up > 600) sum += fabs(a.a1) * exp(T->l1[j] + T->G.lw[j]);
            if (-down * T->G.g[j] - 0.5 * down * down > 600) sum += fabs(a.a2) * exp(T->l2[j] + T->G.lw[j]);
        }
    }
    return sum * (1 + 1e-6);
}

/* Sums over the nodes in eight lanes: M - 1, E l and E l^2 under the tilted law times M, the rounding of the first. */
typedef struct {
    double s0[8], s1[8], s2[8], e0[8];
} two_sums;

/* The rounding of one factor's part of E and of what it drops, exponent apart, in u: e = w e^E, e1 = e - w, q known to
 * rq u [theory: rounding.log-m]. The form of e/(1+U) - w does not cancel. */
static inline double factor_error(double U, double q, double rq, double v_error, double w, double e, double e1)
{
    double d = fabs(U > 1 ? e / (1 + U) - w : e1 - (e * U) / (1 + U));
    return d * ((U + q) * v_error + (6 + rq) * fabs(U));
}

/* What branch r adds. */
HS_CLONES static void branch_moments(const hs_two *T, int r, hs_exponents a, two_sums *sums)
{
    const double *restrict lw_ = T->G.lw, *restrict g_ = T->G.g, *restrict L_ = T->G.l;
    const double *restrict u1 = T->u1, *restrict u2 = T->u2;
    const double *restrict l1 = T->l1, *restrict l2 = T->l2, *restrict lm1 = T->lm1, *restrict lm2 = T->lm2;
    double q = T->pair->q[r], up = T->pair->up[r], down = T->pair->down[r], rq = T->pair->q_err;
    double f1 = fabs(a.a1), f2 = fabs(a.a2), base = 132 + 26 * T->size[r] + 0.125 * T->G.n + T->pair->w_err;
    two_sums S = *sums;
    int64_t j, i;
    for (j = T->first[r]; j < T->first[r + 1]; j += 8)
        for (i = 0; i < 8; i++) {
            double E1 = a.a1 * l1[j + i], E2 = a.a2 * l2[j + i], E = E1 + E2, L = L_[j + i];
            double lw = lw_[j + i], w = hs_exp(lw), e = hs_exp(E + lw), g = g_[j + i];
            double m1 = w * a.a1 * lm1[j + i], m2 = w * a.a2 * lm2[j + i], size;
            double h2, e1;
            hs_grown(w, E, e, &h2, &e1);
            size = fabs(h2) + fabs(m1) + fabs(m2);
            S.s0[i] += h2 + (m1 + m2); /* [theory: law.sampled-form, law.two-sided] */
            S.s1[i] += e1 * L + w * (lm1[j + i] - lm2[j + i]);
            S.s2[i] += e * L * L;
            S.e0[i] += size * (base + 12 * g * g) + fabs(e1) * 14 * (fabs(E1) + fabs(E2)) +
                       f1 * factor_error(u1[j + i], q, rq, hs_v_error(up, g), w, e, e1) +
                       f2 * factor_error(u2[j + i], q, rq, hs_v_error(down, g), w, e, e1);
        }
    *sums = S;
}

/* log M(z), mean and variance of L under the tilted law, bound of the rounding of log M [theory: rounding.log-m], with
 * both factors; E rounds by 2u(|E1| + |E2|). */
void hs_two_moments(hs_two *T, double z, hs_moments *out)
{
    hs_exponents a = hs_at_tilt(z);
    two_sums S;
    double s[3], top = two_largest(T, a);
    int r;
    out->dropped = !(top > 0);
    if (!out->dropped) {
        two_moments_plain(T, a, top, out);
        return;
    }
    memset(&S, 0, sizeof S);
    for (r = 0; r < T->pair->branches; r++) branch_moments(T, r, a, &S);
    s[0] = hs_lanes(S.s0);
    s[1] = hs_lanes(S.s1);
    s[2] = hs_lanes(S.s2);
    hs_moments_of(s, hs_lanes(S.e0), two_squares(T, a), two_capped_upper(T, a), out);
}

/* The p_j: weights tilted by a over M. Returns their sum. */
HS_CLONES static double two_tilted(hs_two *T, hs_exponents a, double log_m)
{
    double sum[8] = {0};
    hs_grid *G = &T->G;
    int64_t j, i;
    for (j = 0; j < G->n; j += 8)
        for (i = 0; i < 8; i++) {
            double p = hs_exp(a.a1 * T->l1[j + i] + a.a2 * T->l2[j + i] + G->lw[j + i] - log_m);
            G->p[j + i] = p;
            sum[i] += p;
        }
    return hs_lanes(sum);
}

/* Error of one factor's log(1+U), in u, q known to rq u [theory: rounding.grid]; l its modulus. */
static inline double factor_l_error(double U, double q, double rq, double v_error, double l)
{ return ((U + q > 0 ? U + q : 0) * v_error + rq * fabs(U)) / (1 + U) + 14 * l; }

/* Leaves p_j and r_j; |dphi(y)| <= |y| (c1 + n' c2) as for hs_grid_weights, with both factors in dL_j and in the
 * weight's error e_j. */
HS_CLONES void hs_two_weights(hs_two *T, double z, double log_m, double *c1, double *c2)
{
    hs_exponents a = hs_at_tilt(z);
    const hs_pair *pair = T->pair;
    double t1[8] = {0}, t2[8] = {0}, eb[8] = {0};
    double f1 = fabs(a.a1), f2 = fabs(a.a2), inv = 1 / two_tilted(T, a, log_m), spread;
    double unit = HS_U * two_squares(T, a);
    hs_grid *G = &T->G;
    int64_t j, i;
    int r;
    for (r = 0; r < pair->branches; r++) {
        const double *restrict g_ = G->g, *restrict u1 = T->u1, *restrict u2 = T->u2;
        const double *restrict l1 = T->l1, *restrict l2 = T->l2, *restrict gp = G->p;
        double *restrict gr = G->r;
        double q = pair->q[r], up = pair->up[r], down = pair->down[r], rq = pair->q_err;
        double base = 6 * T->size[r] + 8 + fabs(log_m) + pair->w_err;
        for (j = T->first[r]; j < T->first[r + 1]; j += 8)
            for (i = 0; i < 8; i++) {
                double p = gp[j + i] * inv, g = g_[j + i], e;
                double k1 = fabs(l1[j + i]), k2 = fabs(l2[j + i]);
                double d1 = factor_l_error(u1[j + i], q, rq, hs_v_error(up, g), k1);
                double d2 = factor_l_error(u2[j + i], q, rq, hs_v_error(down, g), k2);
                e = f1 * (d1 + 4 * k1) + f2 * (d2 + 4 * k2) + 1.5 * g * g + base;
                gr[j + i] = p;
                t1[i] += p * (d1 + d2 + (k1 + k2) * (e + 1));
                t2[i] += p * (k1 + k2);
                eb[i] += p * e;
            }
    }
    spread = hs_lanes(eb);
    *c2 = unit * hs_lanes(t2);
    *c1 = unit * hs_lanes(t1) + *c2 * (52 + 0.25 * G->n + spread);
}

/* The rates at which the log of the weights of branch r falls beyond either end, at least. */
static void branch_falls(const hs_two *T, int r, hs_exponents a, double *left, double *right)
{
    int j0 = T->first[r], j1 = j0 + T->nodes[r] - 1;
    double q = T->pair->q[r], up = T->pair->up[r], down = T->pair->down[r];
    double s1 = fmax(0, T->u1[j0] + q) / (1 + T->u1[j0]), s2 = fmax(0, T->u2[j1] + q) / (1 + T->u2[j1]);
    *right = T->G.g[j1] - fmax(a.a1, 0) * up - fmax(-a.a2, 0) * down * s2;
    *left = -T->G.g[j0] - fmax(a.a2, 0) * down - fmax(-a.a1, 0) * up * s1;
}

/* The smaller of the two. */
double hs_two_fall(const hs_two *T, double z, int r)
{
    double left, right;
    branch_falls(T, r, hs_at_tilt(z), &left, &right);
    return fmin(right, left);
}

double hs_two_ends_upper(const hs_two *T, double z, double log_m)
{
    hs_exponents a = hs_at_tilt(z);
    double sum = 0;
    int r;
    for (r = 0; r < T->pair->branches; r++) {
        int j0 = T->first[r], j1 = j0 + T->nodes[r] - 1;
        double pr = exp(a.a1 * T->l1[j1] + a.a2 * T->l2[j1] + T->G.lw[j1] - log_m), left, right;
        double pl = exp(a.a1 * T->l1[j0] + a.a2 * T->l2[j0] + T->G.lw[j0] - log_m);
        branch_falls(T, r, a, &left, &right);
        if (!(right > 0 && left > 0)) return HUGE_VAL;
        sum += hs_end_upper(pr, T->h[r], right) + hs_end_upper(pl, T->h[r], left);
    }
    return sum * (1 + 1e-6);
}

double hs_two_dropped_upper(const hs_two *T, double z)
{
    hs_exponents a = hs_at_tilt(z);
    const hs_pair *pair = T->pair;
    double sum = 0, f1 = fabs(a.a1), f2 = fabs(a.a2);
    int r;
    for (r = 0; r < pair->branches; r++) {
        int j0 = T->first[r], j1 = j0 + T->nodes[r] - 1;
        double q = pair->q[r], h = T->h[r], right = T->G.g[j1] - pair->up[r], left = -T->G.g[j0] - pair->down[r];
        double far1 = T->u1[j1] > 1e200 ? exp(T->G.lw[j1] + T->l1[j1]) : 0,
               far2 = T->u2[j0] > 1e200 ? exp(T->G.lw[j0] + T->l2[j0]) : 0;
        if (!(right > 0 && left > 0)) return HUGE_VAL;
        sum += (exp(T->G.lw[j1]) * (1 + f1 * (fabs(T->u1[j1]) + 2 * q) + f2 * 2 * q) + f1 * far1) *
                   (1 / expm1(h * right) + 1) +
               (exp(T->G.lw[j0]) * (1 + f2 * (fabs(T->u2[j0]) + 2 * q) + f1 * 2 * q) + f2 * far2) *
                   (1 / expm1(h * left) + 1) +
               pair->w[r] * 4.1 * exp(-2 * HS_PI * HS_PI / (h * h)) * (1 + 2 * q * (f1 + f2));
    }
    return sum * (1 + 1e-6);
}

/* Half widths of the strips tried, as in transform.c. */
static double two_strip(double m, int t)
{
    static const double part[HS_STRIPS] = {0.9, 0.45, 0.2}, d_max[HS_STRIPS] = {6, 5, 4};
    return fmin(part[t] * HS_PI / m, d_max[t]);
}

/* |M_h(z) - M(z)|/M(z) for the sum over ALL nodes at real z [theory: law.real-mesh, law.two-sided]. */
double hs_two_real_upper(const hs_two *T, double z)
{
    hs_exponents a = hs_at_tilt(z);
    double sum = 0;
    int r, t;
    for (r = 0; r < T->pair->branches; r++) {
        double up = T->pair->up[r], down = T->pair->down[r], best = HUGE_VAL;
        for (t = 0; t < HS_STRIPS; t++) {
            double d = two_strip(fmax(up, down), t), gain = 2 * HS_PI * d / T->h[r];
            best = fmin(best, 0.5 * d * d + hs_log_kap(a.a1, d * up) + hs_log_kap(a.a2, d * down) - gain -
                                  log1p(-exp(-gain)));
        }
        sum += 2 * exp(best);
    }
    return sum * (1 + 1e-9);
}

/* The largest mesh of branch r for which its part of that is below e^-target, by the leading term. */
double hs_two_real_h(const hs_pair *pair, int r, double z, double target)
{
    hs_exponents a = hs_at_tilt(z);
    double up = pair->up[r], down = pair->down[r], best = 0;
    int t;
    for (t = 0; t < HS_STRIPS; t++) {
        double d = two_strip(fmax(up, down), t);
        best = fmax(best, 2 * HS_PI * d /
                              (target + 0.7 + 0.5 * d * d + hs_log_kap(a.a1, d * up) + hs_log_kap(a.a2, d * down)));
    }
    return best;
}

/* What the loss's phase at frequency y may gain along the half node of node j, to the corners of a strip
 * [theory: law.turns]. odds: rho = (U + q) odds there at most, for both factors. */
static double turned_at_upper(const hs_two *T, int r, double y, const hs_turn *at, const double *odds, int64_t j)
{
    double q = T->pair->q[r], rho1 = (T->u1[T->first[r] + j] + q) * odds[0],
           rho2 = (T->u2[T->first[r] + j] + q) * odds[1];
    return y * (hs_steepest(rho1, at[0]) + hs_steepest(rho2, at[1]));
}

/* The nodes j0 <= j < j1 of branch r at which a rectangle for frequency y may end on a strip. */
static void allowed_cells(const hs_two *T, int r, double y, const hs_turn *at, double room, const double *odds,
                          int64_t *j0, int64_t *j1)
{
    *j0 = 0;
    *j1 = T->nodes[r];
    if (y * (at[0].b + at[1].b) <= room) return;
    while (*j0 < *j1 && turned_at_upper(T, r, y, at, odds, *j0) > room) ++*j0;
    while (*j0 < *j1 && turned_at_upper(T, r, y, at, odds, *j1 - 1) > room) --*j1;
}

/* What |1 + U1|^a1 |1 + U2|^a2 may grow by on lines that turn the factors by 2 b1 and 2 b2, exponents below 0. */
static double two_kap(hs_exponents a, double b1, double b2)
{ return pow(cos(b1), fmin(a.a1, 0)) * pow(cos(b2), fmin(a.a2, 0)); }

/* h times the largest tilted density over the cell of every node of branch r, in s [theory: law.cell]. */
HS_CLONES static void cell_tops(const hs_two *T, int r, hs_exponents a)
{
    double h = T->h[r], grow = fabs(a.a1) * T->pair->up[r] + fabs(a.a2) * T->pair->down[r];
    const double *restrict g = T->G.g + T->first[r], *restrict p = T->G.p + T->first[r];
    double *restrict x = T->G.s + T->first[r];
    int64_t j, n = T->nodes[r];
    for (j = 0; j < n; j++) {
        double e = (fabs(g[j]) + grow) * 0.5 * h + 0.125 * h * h;
        x[j] = p[j] * hs_exp(e);
    }
}

/* What lies outside the nodes j0 <= j < j1 as nodes and as cells, which are left out of x. */
static double drop_outside(const double *p, double *x, int64_t j0, int64_t j1, int64_t n)
{
    double out = 0;
    int64_t j;
    for (j = 0; j < (n + 7) / 8 * 8; j++) {
        if (j0 <= j && j < j1) continue;
        if (j < n) out += p[j] + x[j];
        x[j] = 0;
    }
    return out;
}

/* One branch of the quadrature bound at strip t; +infinity if no rectangle is allowed. */
HS_CLONES static double strip_upper(const hs_two *T, int r, hs_exponents a, double y, int t)
{
    double h = T->h[r], q = T->pair->q[r], up = T->pair->up[r], down = T->pair->down[r];
    double odds[2] = {exp(0.5 * up * h) / (1 - q), exp(0.5 * down * h) / (1 - q)}, d = two_strip(fmax(up, down), t);
    double lead = 0.5 * d * d + log(two_kap(a, 0.5 * (d * up), 0.5 * (d * down)));
    double ends, out, gain = 2 * HS_PI * d / h;
    hs_turn at[2] = {hs_turned(d * up), hs_turned(d * down)};
    const double *restrict p = T->G.p + T->first[r];
    const double *restrict u1 = T->u1 + T->first[r], *restrict u2 = T->u2 + T->first[r];
    double *restrict x = T->G.s + T->first[r];
    int64_t j, j0, j1, n = T->nodes[r];
    allowed_cells(T, r, y, at, gain - lead, odds, &j0, &j1);
    if (j0 == j1) return HUGE_VAL;
    cell_tops(T, r, a);
    ends = x[j0] * hs_side_upper(gain - lead - turned_at_upper(T, r, y, at, odds, j0)) +
           x[j1 - 1] * hs_side_upper(gain - lead - turned_at_upper(T, r, y, at, odds, j1 - 1));
    for (j = j0; j < j1; j++)
        x[j] *= hs_exp(y * (hs_angle((u1[j] + q) * odds[0], at[0]) + hs_angle((u2[j] + q) * odds[1], at[1])) - gain);
    out = drop_outside(p, x, j0, j1, n);
    return 2 * exp(lead) * (hs_lane_sum(x, n) + 1e-290) / -expm1(-gain) + 2 * d / h * ends + out;
}

/* |M_h(z + iy') - M(z + iy')|/M(z) for all |y'| <= y, without the ends [theory: law.rectangle, law.two-sided]. Needs
 * the p of hs_two_weights. Best of three strips at the first call on a grid, which the later ones keep (any strip is
 * valid). */
double hs_two_quadrature_upper(hs_two *T, double z, double y)
{
    hs_exponents a = hs_at_tilt(z);
    double sum = 0;
    int r, t;
    for (r = 0; r < T->pair->branches; r++) {
        double best = HUGE_VAL;
        int which = T->strip[r], lo = which < 0 ? 0 : which, hi = which < 0 ? HS_STRIPS : which + 1;
        for (t = lo; t < hi; t++) {
            double x = strip_upper(T, r, a, y, t);
            if (x < best) {
                best = x;
                T->strip[r] = t;
            }
        }
        sum += best;
    }
    return sum * (1 + 1e-6);
}

/* Mass of branch r and its mean slope of the loss under the weights of hs_two_weights. */
HS_CLONES static void branch_slope(const hs_two *T, int r, double *mass, double *slope)
{
    double q = T->pair->q[r], up = T->pair->up[r], down = T->pair->down[r], s0[8] = {0}, s1[8] = {0};
    const double *restrict u1 = T->u1, *restrict u2 = T->u2, *restrict gr = T->G.r;
    int64_t j, i;
    for (j = T->first[r]; j < T->first[r + 1]; j += 8)
        for (i = 0; i < 8; i++) {
            s0[i] += gr[j + i];
            s1[i] += gr[j + i] * (up * (u1[j + i] + q) / (1 + u1[j + i]) + down * (u2[j + i] + q) / (1 + u2[j + i]));
        }
    *mass = hs_lanes(s0);
    *slope = hs_lanes(s1);
}

/* Branch r of Psi(y) by the path moved by d. */
HS_CLONES static double branch_far(hs_two *T, int r, hs_exponents a, double y, double d, double mass)
{
    double q = T->pair->q[r], b1 = d * T->pair->up[r], b2 = d * T->pair->down[r];
    double y1 = y * sin(b1), y2 = y * sin(b2);
    double f1 = (a.a1 > 0 ? 2 : 2.7726) * a.a1 * sin(0.5 * b1) * sin(0.5 * b1),
           f2 = (a.a2 > 0 ? 2 : 2.7726) * a.a2 * sin(0.5 * b2) * sin(0.5 * b2), kap = two_kap(a, b1, b2);
    const double *restrict u1 = T->u1, *restrict u2 = T->u2, *restrict gr = T->G.r;
    double *restrict x = T->G.s;
    int64_t j, n = T->first[r + 1];
    for (j = T->first[r]; j < n; j++) {
        double s1 = (u1[j] + q) / (1 + u1[j]), s2 = (u2[j] + q) / (1 + u2[j]);
        s1 = s1 > 0 ? s1 : 0;
        s2 = s2 > 0 ? s2 : 0;
        x[j] = gr[j] * hs_exp(-f1 * s1 * (1 - s1) - f2 * s2 * (1 - s2) - y1 * s1 - y2 * s2);
    }
    return exp(0.5 * d * d) * hs_lane_sum(x + T->first[r], n - T->first[r]) +
           2 * mass * exp(d * d) * kap / expm1(2 * HS_PI * d / T->h[r]);
}

/* Psi(y), without the ends [theory: law.far, law.two-sided]; 1 if nothing better is proved. Best of three d a branch.
 */
double hs_two_far_upper(hs_two *T, double z, double y)
{
    hs_exponents a = hs_at_tilt(z);
    double total = 0;
    int r, t;
    for (r = 0; r < T->pair->branches; r++) {
        double cap = fmin(6, 0.95 * HS_PI / 2 / fmax(T->pair->up[r], T->pair->down[r])), best = HUGE_VAL;
        double mass, slope, d0;
        branch_slope(T, r, &mass, &slope);
        d0 = y * slope / fmax(mass, 1e-300); /* near the least of e^{d^2/2 - y d slope}; any d is valid */
        for (t = 0; t < 3; t++) {
            best = fmin(best, branch_far(T, r, a, y, fmin(d0 * (t == 0 ? 1 : t == 1 ? 0.5 : 2), cap), mass));
            if (0.5 * d0 >= cap) break; /* the three are the same */
        }
        total += fmin(best, mass * (1 + 1e-9));
    }
    return fmin(1, total * (1 + 1e-9));
}
