/* transform.c - the transform of one Poisson-subsampled Gaussian step, by the trapezoid rule on an inner grid.
 *
 * Symbols. g: standard normal variable, w its density. v = m g - m^2/2, U = q (e^v - 1), l = log(1+U),
 *   rho = q e^v/(1-q). M(a) = E (1+U)^a, with a = 1+z (REMOVE) or a = -z (ADD). Tilted law: weights
 *   p_j = h w(g_j) (1+U_j)^a/M(a); phi(y) = M(a +- iy)/M(a) = sum r_j e^{iy l_j}, r_j = p_j/sum p.
 *   u = 2^-53. kap = 1 (a >= 0) or cos(b/2)^a (a < 0), b = d m.
 *
 * Formula. log M = log1p( sum h w [ (e^E - 1 - E) + a (log(1+U) - U) ] ), E = a l [theory: law.sampled-form].
 *
 * Error claims.
 *   quadrature  strip of analyticity |Im g| < pi/m [theory: law.strip, law.trapezoid], finite rectangle, for every
 *               |y'| <= y [theory: law.rectangle].
 *   ends        log-concave decay beyond the first and the last node [theory: law.ends].
 *   dropped     what the two dropped terms miss outside the range and between the nodes [theory: law.dropped].
 *   rounding    hs_moments.err for log M [theory: rounding.log-m]; for phi |y| (c1 + x c2), x = 0 for hs_grid_phase,
 *               64 2^i after i doublings, hs_grid_nodes_units for hs_grid_nodes [theory: rounding.phi].
 * First order in u; hs_squares_upper pays for the rest.
 *
 * What it does not do: other base laws, atoms, complex a beyond a +- iy.
 */
#include "law/transform.h"

/* Half widths d of the strips tried: a fraction of the distance pi/m to the branch points, capped. The first
 * HS_STRIPS are tried where nothing is known; the narrow ones after them where the frequency is high for what the
 * far nodes still weigh. */
enum { ALL_STRIPS = 7 };
static double strip(double m, int t)
{
    static const double part[ALL_STRIPS] = {0.9, 0.45, 0.2, 0.09, 0.04, 0.018, 0.008},
                        d_max[ALL_STRIPS] = {6, 5, 4, 4, 4, 4, 4};
    return fmin(part[t] * HS_PI / m, d_max[t]);
}

/* kap grows with -a, so that narrow strips may be better then. */
static int n_strips(double a) { return a < -30 ? ALL_STRIPS : HS_STRIPS; }

/* |M_h(a) - M(a)|/M(a) for the sum over ALL nodes [theory: law.real-mesh]. Best of the strips. */
double hs_grid_real_upper(double m, double a, double h)
{
    double best = HUGE_VAL, at = 0;
    int t;
    for (t = 0; t < n_strips(a); t++) {
        double d = strip(m, t), gain = 2 * HS_PI * d / h, x = 0.5 * d * d + hs_log_kap(a, d * m) - gain;
        if (x < best) {
            best = x;
            at = gain;
        }
    }
    return 2 * exp(best) / -expm1(-at) * (1 + 1e-9);
}

/* The largest h for which that is below e^-target, by its leading term. */
double hs_grid_real_h(double m, double a, double target)
{
    double best = 0;
    int t;
    for (t = 0; t < n_strips(a); t++) {
        double d = strip(m, t);
        best = fmax(best, 2 * HS_PI * d / (target + 0.7 + 0.5 * d * d + hs_log_kap(a, d * m)));
    }
    return best;
}

/* h rounded down to 12 bits, so that g_j and g_j^2/2 are exact. */
double hs_grid_mesh(double h)
{
    int e;
    h = frexp(h, &e);
    return ldexp(floor(h * 4096), e - 12);
}

enum { COARSE = 96 };
typedef struct { /* the tilted density on a coarse grid */
    int n;
    double h, lp[COARSE], rho[COARSE]; /* log of the density, -1e4 where it is cut; q e^v/(1 - q) */
    double rho_cut;                    /* the largest where it is not */
} coarse_density;

/* Cut where the density is below e^-least. */
HS_CLONES static void coarse_lay(coarse_density *D, double m, double q, double a, double least)
{
    double lo = -8.5 - hs_left_reach_upper(m, q, a), hi = fmax(a * m, m) + 9.5, all[8] = {0}, peak = 0;
    double norm, *lp = D->lp, h = D->h = fmax((hi - lo) / 95, 0.4 / (m > 1 ? m : 1));
    int j, t, n = (int)((hi - lo) / h) + 1;
    D->n = n = (n + 7) / 8 * 8;
    for (j = 0; j < n; j++) {
        double g = lo + j * h, v = m * g - 0.5 * m * m, ev = hs_exp(v > 600 ? 600 : v), x = 1 + q * (ev - 1);
        lp[j] = a * (v > 600 ? v + hs_log(q) : hs_log(x)) - 0.5 * g * g;
        D->rho[j] = q * ev / (1 - q);
    }
    for (j = 0; j < n; j++) peak = lp[j] > peak ? lp[j] : peak;
    for (j = 0; j < n; j += 8)
        for (t = 0; t < 8; t++) all[t] += hs_exp(lp[j + t] - peak);
    norm = peak + log(hs_lanes(all) * h) - HS_LOG_SQRT_2PI;
    for (j = 0; j < n; j++) lp[j] = lp[j] - norm < -least ? -1e4 : lp[j] - norm;
    for (j = n - 1; j > 0 && lp[j] < -9e3; j--);
    D->rho_cut = D->rho[j];
}

/* log J of the quadrature bound at frequency y on the strip whose edge turns U so, at least 0. */
HS_CLONES static double coarse_strip(const coarse_density *D, double y, hs_turn at)
{
    double part[8] = {0}, tops[8] = {0}, top = 0, x[COARSE];
    const double *lp = D->lp, *rho = D->rho;
    int j, t, n = D->n;
    for (j = 0; j < n; j++) { /* what is cut lies beyond G2 of hs_grid_quadrature_upper */
        double e = lp[j] + y * hs_angle(rho[j], at);
        x[j] = lp[j] > -9e3 ? e : -1e4;
    }
    for (j = 0; j < n; j += 8)
        for (t = 0; t < 8; t++) tops[t] = x[j + t] > tops[t] ? x[j + t] : tops[t];
    for (t = 0; t < 8; t++) top = tops[t] > top ? tops[t] : top;
    for (j = 0; j < n; j += 8)
        for (t = 0; t < 8; t++) part[t] += hs_exp(x[j + t] - top);
    return fmax(0, top + log(hs_lanes(part) * D->h));
}

/* A mesh h (hs_grid_mesh), no larger than h_max, for which the quadrature error at frequency y should be below
 * e^-target, on the strip *best_strip: J estimated on a coarse grid with the far side cut where p is below
 * e^-(target+8), where the rectangle may end. A strip that allows the largest mesh will do; narrow ones are tried
 * while the wider ones allow less. */
double hs_grid_choose_h(double m, double q, double a, double y, double target, double h_max, int *best_strip)
{
    static const int order[ALL_STRIPS] = {1, 0, 2, 3, 4, 5, 6};
    double best = 0, most = fmin(h_max, 2 * HS_PI / sqrt(2 * (target + 2)));
    coarse_density D;
    int i, of = 1;
    coarse_lay(&D, m, q, a, target + 8);
    for (i = 0; i < ALL_STRIPS && best < most; i++) {
        int t = order[i];
        double d = strip(m, t), lead = 0.5 * d * d + hs_log_kap(a, d * m), h;
        hs_turn at = hs_turned(d * m);
        if (i > 1 && of != (i == 2 ? 1 : order[i - 1])) break;
        h = 2 * HS_PI * d / (lead + fmax(target + coarse_strip(&D, y, at) + 4, y * hs_steepest(D.rho_cut, at)));
        if (!(h > best)) continue;
        best = h;
        of = t;
    }
    *best_strip = of;
    return hs_grid_mesh(fmin(best, most));
}

/* The rows of the n nodes (first + j) h: v, then U, l and l - U by it. Loops are short, so that the processor overlaps
 * their passes. */
HS_CLONES static void fill_grid(const hs_grid *G, double first)
{
    double m = G->m, q = G->q, h = G->h;
    double lq = log(q), lh = log(h) - HS_LOG_SQRT_2PI;
    double *restrict gg = G->g, *restrict gu = G->u, *restrict gl = G->l;
    double *restrict glm = G->lm, *restrict glw = G->lw;
    double *restrict gi = G->inv, *restrict gx = G->p, *restrict gw = G->w;
    int j, n = G->n;
    for (j = 0; j < n; j++) {
        double g = (first + (double)j) * h, v = m * g - 0.5 * m * m;
        gg[j] = g;
        glw[j] = lh - 0.5 * g * g;
        gl[j] = v;
        gi[j] = hs_exp_m1(v > 600 ? 600 : v, &gu[j]);
    }
    for (j = 0; j < n; j++) gw[j] = hs_exp(glw[j]);
    for (j = 0; j < n; j++) {
        double ev = gi[j], U = q * gu[j], x = 1 + U;
        double big = U > 0.5 || U < -0.5 ? 1 : 0, inv = 1 / x;
        gu[j] = U;
        gi[j] = inv;
        glm[j] = big != 0 ? 0 : (U - (x - 1)) * inv;
        gx[j] = big != 0 ? (1 - q) + q * ev : x;
    }
    for (j = 0; j < n; j++) {
        double U = gu[j], v = gl[j], small = U < 0.1 && U > -0.1 ? U : 0;
        double t = hs_log1pmx_small(small), l = hs_log(gx[j]) + glm[j];
        l = v > 600 ? v + lq : l;
        gl[j] = small != 0 ? U + t : l;
        glm[j] = small != 0 ? t : l - U;
    }
}

/* Nodes from lo to hi (widened to multiples of h). HS_TOO_MANY_NODES if they do not fit HS_INNER_MAX. Errors of v, U
 * and l: [theory: rounding.grid]. */
int hs_grid_build(hs_grid *G, double m, double q, double h, double lo, double hi, double *work)
{
    int64_t j0 = (int64_t)floor(lo / h), j1 = (int64_t)ceil(hi / h);
    int j, n = (int)(j1 - j0) + 1;
    if (!((double)j1 - (double)j0 < HS_INNER_MAX - 8)) return HS_TOO_MANY_NODES;
    G->strip = G->far_shift = -1;
    G->m = m;
    G->q = q;
    G->h = h;
    G->lo = j0 * h;
    G->hi = j1 * h;
    hs_grid_rows(G, work);
    G->n = G->last = (n + 7) / 8 * 8;
    G->first = 0;
    fill_grid(G, (double)j0);
    for (j = n; j < G->n; j++) {
        G->lw[j] = -1e4;
        G->w[j] = G->l[j] = G->u[j] = G->lm[j] = G->g[j] = 0;
        G->inv[j] = 1;
    }
    return HS_OK;
}

static double squares(const hs_grid *G, double a) { return hs_squares_upper(a, G->m, fmax(-G->lo, G->hi)); }

/* log M(a) when (1+U)^a dominates: plain log-sum-exp. The exponent of a term is off by |a|(dl + 3u|l|), by 3u|lw|
 * and u|top| for three sums and by u(3|log h| + 2) as lw is, |lw| <= g^2/2 + |log h| + 1; hs_exp adds 2u, the sums n
 * u. */
HS_CLONES static void moments_plain(hs_grid *G, double a, double top, hs_moments *out)
{
    double s0 = 0, s1 = 0, s2 = 0;
    double e0 = 0, fa = fabs(a), M;
    int j;
    for (j = 0; j < G->n; j++) G->p[j] = hs_exp(a * G->l[j] + G->lw[j] - top);
    for (j = 0; j < G->n; j++) {
        double g = G->g[j], dv = hs_v_error(G->m, g);
        s0 += G->p[j];
        s1 += G->p[j] * G->l[j];
        e0 += G->p[j] * (fa * (dv + 17 * fabs(G->l[j])) + 1.5 * g * g + fabs(top));
    }
    M = s0;
    s1 /= M;
    for (j = 0; j < G->n; j++) s2 += G->p[j] * (G->l[j] - s1) * (G->l[j] - s1);
    out->log_m = top + log(M);
    out->mean = s1;
    out->var = s2 / M;
    out->unit = 1 / M;
    out->err = HS_U * (e0 / M + 6 * fabs(log(G->h)) + 8 + G->n + 2 * (fabs(top) + fabs(log(M)))) * squares(G, a);
}

/* Log of the grid's plain sum of h w (1+U)^a, rounded up: an exponent a l + log(h w) - top is off by the errors of
 * moments_plain. */
HS_CLONES double hs_grid_log_m_upper(const hs_grid *G, double a)
{
    double s[8] = {0}, e[8] = {0}, fa = fabs(a), m = G->m;
    double lh = fabs(log(G->h)), top = hs_grid_top(G, a), M;
    const double *restrict gl = G->l, *restrict glw = G->lw, *restrict gg = G->g;
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double l = gl[j + i], g = gg[j + i], al = l < 0 ? -l : l, p = hs_exp(a * l + glw[j + i] - top);
            s[i] += p;
            e[i] += p * (fa * (hs_v_error(m, g) + 17 * al) + 1.5 * g * g);
        }
    M = hs_lanes(s);
    return top + log(M) +
           HS_U * (hs_lanes(e) / M + 6 * lh + 12 + 0.125 * n + 4 * (fabs(top) + fabs(log(M)))) * squares(G, a);
}

/* The largest a l + lw of n nodes, a multiple of 8. */
HS_CLONES double hs_top(int n, double a, const double *restrict l, const double *restrict lw)
{
    double top[8] = {-1e4, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4, -1e4};
    int j, i;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double x = a * l[j + i] + lw[j + i];
            top[i] = x > top[i] ? x : top[i];
        }
    for (i = 1; i < 8; i++) top[0] = fmax(top[0], top[i]);
    return top[0];
}

/* The log of the largest weight h w (1+U)^a of a node. */
double hs_grid_top(const hs_grid *G, double a) { return hs_top(G->n, a, G->l, G->lw); }

/* What the cap of U at v = 600 leaves out of the terms a U of M, for a step so strong that it is met
 * [theory: law.dropped]. */
static double capped_upper(const hs_grid *G, double a)
{
    double sum = 0, m = G->m;
    int j;
    if (m * G->hi - 0.5 * m * m <= 600) return 0;
    for (j = 0; j < G->n; j++)
        if (m * G->g[j] - 0.5 * m * m > 600) sum += exp(G->l[j] + G->lw[j]);
    return fabs(a) * sum * (1 + 1e-6);
}

/* |e/(1+U) - w|, inv = 1/(1+U), in the form that does not cancel; e1 = e - w. */
static inline double untilted(double U, double inv, double w, double e, double e1)
{ return fabs(U > 0.5 ? e * inv - w : e1 - e * U * inv); }

/* log M(a), mean and variance of l under the tilted law; in the plain form where some weight exceeds 1. `err` bounds
 * the rounding of log M [theory: rounding.log-m]. */
HS_CLONES void hs_grid_moments(hs_grid *G, double a, hs_moments *out)
{
    double s0[8] = {0}, s1[8] = {0}, s2[8] = {0}, e0[8] = {0};
    double fa = fabs(a), lh = fabs(log(G->h)), q = G->q, m = G->m;
    const double *restrict gl = G->l, *restrict glw = G->lw, *restrict glm = G->lm;
    const double *restrict gu = G->u, *restrict gg = G->g;
    const double *restrict gi = G->inv, *restrict gw = G->w;
    double *restrict gp = G->p, over[8] = {0}, s[3], base = 132 + 26 * lh + 0.125 * G->n;
    int j, i, n = G->n;
    for (j = 0; j < n; j++) gp[j] = hs_exp(a * gl[j] + glw[j]);
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double l = gl[j + i], E = a * l, w = gw[j + i], U = gu[j + i];
            double e = gp[j + i], lm = glm[j + i], g = gg[j + i];
            double alm = w * a * lm, h2, e1, size;
            hs_grown(w, E, e, &h2, &e1);
            size = fabs(h2) + fabs(alm);
            s0[i] += h2 + alm; /* [theory: law.sampled-form] */
            s1[i] += e1 * l + w * lm;
            s2[i] += e * l * l;
            over[i] += e > 1 ? 1 : 0;
            e0[i] += size * (base + 12 * g * g) + fabs(e1) * 13 * fabs(E) +
                     fa * untilted(U, gi[j + i], w, e, e1) * ((U + q) * hs_v_error(m, g) + 6 * fabs(U));
        }
    out->dropped = hs_lanes(over) == 0;
    if (!out->dropped) {
        moments_plain(G, a, hs_grid_top(G, a), out);
        return;
    }
    s[0] = hs_lanes(s0);
    s[1] = hs_lanes(s1);
    s[2] = hs_lanes(s2);
    hs_moments_of(s, hs_lanes(e0), squares(G, a), capped_upper(G, a), out);
}

/* Leaves p_j (normalised by M) in p and r_j (by their own sum) in r; c1 and c2 bound the rounding of phi
 * [theory: rounding.phi]. See hs_grid_nodes for what its sums add. */
HS_CLONES void hs_grid_weights(hs_grid *G, double a, double log_m, double *c1, double *c2)
{
    double sum[8] = {0}, t1[8] = {0}, t2[8] = {0};
    double eb[8] = {0}, fa = fabs(a), lh = fabs(log(G->h));
    double m = G->m, q = G->q, inv;
    const double *restrict gl = G->l, *restrict glw = G->lw, *restrict gu = G->u;
    const double *restrict gg = G->g, *restrict gi = G->inv;
    double *restrict gp = G->p, *restrict gr = G->r;
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double p = hs_exp(a * gl[j + i] + glw[j + i] - log_m);
            gp[j + i] = p;
            sum[i] += p;
        }
    inv = 1 / hs_lanes(sum);
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double r = gp[j + i] * inv, g = gg[j + i], l = fabs(gl[j + i]), U = gu[j + i];
            double dl = hs_l_error(m, g, hs_slope(U, q, gi[j + i]), l), e;
            e = fa * dl + 3 * fa * l + 1.5 * g * g + 3 * lh + 6 + fabs(log_m);
            gr[j + i] = r;
            t1[i] += r * (dl + l * e);
            t2[i] += r * l;
            eb[i] += r * e;
        }
    *c2 = HS_U * hs_lanes(t2) * squares(G, a);
    *c1 = HS_U * hs_lanes(t1) * squares(G, a) + *c2 * (52 + 0.25 * n + hs_lanes(eb));
}

/* The rates at which the log of h w (1+U)^a falls beyond either end, at least. */
static void falls(const hs_grid *G, double a, double *left, double *right)
{
    double s = (G->u[0] + G->q) / (1 + G->u[0]);
    *right = G->hi - fmax(a, 0) * G->m;
    *left = -G->lo - fmax(-a, 0) * G->m * s;
}

/* The smaller of the two. */
double hs_grid_fall(const hs_grid *G, double a)
{
    double left, right;
    falls(G, a, &left, &right);
    return fmin(right, left);
}

/* What lies beyond the first and the last node, as sums and as integrals, relative to M [theory: law.ends]. Infinite
 * where a rate is not positive. */
double hs_grid_ends_upper(const hs_grid *G, double a, double log_m)
{
    int j1 = (int)((G->hi - G->lo) / G->h + 0.5);
    double pr = exp(a * G->l[j1] + G->lw[j1] - log_m), pl = exp(a * G->l[0] + G->lw[0] - log_m), left, right;
    falls(G, a, &left, &right);
    if (!(right > 0 && left > 0)) return HUGE_VAL;
    return (hs_end_upper(pr, G->h, right) + hs_end_upper(pl, G->h, left)) * (1 + 1e-6);
}

/* The dropped terms 1 and aU, outside the range and between the nodes [theory: law.dropped]. */
double hs_grid_dropped_upper(const hs_grid *G, double a)
{
    int j1 = (int)((G->hi - G->lo) / G->h + 0.5);
    double fa = fabs(a), right = G->hi - G->m, left = -G->lo;
    double far = G->u[j1] > 1e200 ? exp(G->lw[j1] + G->l[j1]) : 0; /* where the cap of U may be met */
    if (!(right > 0 && left > 0)) return HUGE_VAL;
    return ((exp(G->lw[j1]) * (1 + fa * (G->u[j1] + 2 * G->q)) + fa * far) * (1 / expm1(G->h * right) + 1) +
            exp(G->lw[0]) * (1 + 2 * fa * G->q) * (1 / expm1(G->h * left) + 1) +
            4.1 * exp(-2 * HS_PI * HS_PI / (G->h * G->h)) * (1 + 2 * fa * G->q)) *
           (1 + 1e-6);
}

/* What p grows by at most over the cell of node j, rho taken at the right end [theory: law.cell]. */
static double over_cell_upper(const hs_grid *G, double a, int j)
{
    double h = G->h, rho = (G->u[j] + G->q) * exp(0.5 * G->m * h) / (1 - G->q);
    return exp((fabs(G->g[j]) + fabs(a) * G->m * fmin(1, rho)) * 0.5 * h + 0.125 * h * h);
}

/* The first node right of the rectangle for frequency y on a strip, n if there is none: up to its half node y theta
 * takes no more than `room`, so that no cell weighs more than p beyond. */
static int first_beyond(const hs_grid *G, double y, hs_turn at, double room, int n)
{
    double odds = exp(0.5 * G->m * G->h) / (1 - G->q);
    int lo = 0, hi = n;
    if (!(y * at.b > room)) return n;
    while (lo < hi) { /* the angles rise with the nodes */
        int mid = (lo + hi) / 2;
        if (y * hs_steepest((G->u[mid] + G->q) * odds, at) <= room) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* Sums over the n nodes by strip t of the rectangle that ends before node `cut`: J, an upper Riemann sum of p e^{y
 * theta}, with the gain of the mesh [theory: law.trapezoid, law.cell], both ends of the rectangle, and p beyond it. */
HS_CLONES static double grid_strip_upper(hs_grid *G, double a, double y, int t, int n)
{
    double h = G->h, m = G->m, q = G->q, fa = fabs(a);
    double d = strip(m, t), out = 0, ends, gain = 2 * HS_PI * d / h;
    double odds = exp(0.5 * m * h) / (1 - q), lead = 0.5 * d * d + hs_log_kap(a, d * m);
    hs_turn at = hs_turned(d * m);
    double *restrict gs = G->s;
    const double *restrict gu = G->u, *restrict gp = G->p, *restrict gg = G->g;
    int j, cut = first_beyond(G, y, at, gain - lead, n), padded = (cut + 7) / 8 * 8;
    if (!cut) return HUGE_VAL;
    for (j = 0; j < padded; j++) {
        double rho = (gu[j] + q) * odds;
        gs[j] = y * hs_angle(rho, at) - gain; /* y theta <= gain where j < cut */
    }
    for (j = 0; j < padded; j++) {
        double rho = (gu[j] + q) * odds;
        gs[j] = gp[j] * hs_exp(gs[j] + (fabs(gg[j]) + fa * m * (rho < 1 ? rho : 1)) * 0.5 * h + 0.125 * h * h);
    }
    for (j = cut; j < padded; j++) gs[j] = 0;
    for (j = cut; j < n; j++) out += G->p[j] * (1 + over_cell_upper(G, a, j));
    ends = G->p[0] * over_cell_upper(G, a, 0) * hs_side_upper(gain - lead - y * hs_steepest((gu[0] + q) * odds, at)) +
           G->p[cut - 1] * over_cell_upper(G, a, cut - 1) *
               hs_side_upper(gain - lead - y * hs_steepest((gu[cut - 1] + q) * odds, at));
    return 2 * exp(lead) * (hs_lane_sum(gs, padded) + 1e-290) / -expm1(-gain) + 2 * d / h * ends + out;
}

/* |M_h(a + iy') - M(a + iy')|/M(a) for all |y'| <= y, without the ends of hs_grid_ends_upper, on a rectangle that ends
 * at the half nodes at the end of the grid, or at the last at which that is allowed [theory: law.rectangle].
 * Needs the p of hs_grid_weights. On the strip G->strip, or the best one where that is negative. */
double hs_grid_quadrature_upper(hs_grid *G, double a, double y)
{
    double best = HUGE_VAL;
    int n = (int)((G->hi - G->lo) / G->h + 0.5) + 1, t;
    for (t = G->strip < 0 ? 0 : G->strip; t < (G->strip < 0 ? n_strips(a) : G->strip + 1); t++) {
        double x = grid_strip_upper(G, a, y, t, n);
        if (x < best) best = x;
    }
    return best * (1 + 1e-6);
}

HS_CLONES static void phase_sum(const hs_grid *G, double *zr, double *zi)
{
    double ar[8] = {0}, ai[8] = {0};
    const double *restrict r = G->r, *restrict er = G->er, *restrict ei = G->ei;
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            ar[i] += r[j + i] * er[j + i];
            ai[i] += r[j + i] * ei[j + i];
        }
    *zr = hs_lanes(ar);
    *zi = hs_lanes(ai);
}

/* phi(y) - 1, leaving e^{iy l} - 1 in er, ei; and the same at twice the frequency: E <- E (2 + E). */
HS_CLONES void hs_grid_phase(hs_grid *G, double y, double *zr, double *zi)
{
    const double *restrict l = G->l;
    double *restrict er = G->er, *restrict ei = G->ei;
    int j, n = G->n;
    HS_SEPARATE
    for (j = 0; j < n; j++) hs_cis_m1(y * l[j], &er[j], &ei[j]);
    phase_sum(G, zr, zi);
}

HS_CLONES void hs_grid_phase_double(hs_grid *G, double *zr, double *zi)
{
    double *restrict er = G->er, *restrict ei = G->ei;
    int j, n = G->n;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double x = er[j], w = ei[j];
        er[j] = 2 * x + (x * x - w * w);
        ei[j] = 2 * w + 2 * x * w;
    }
    phase_sum(G, zr, zi);
}

/* Psi(y) by the path moved by d, the slopes in s [theory: law.far]. */
HS_CLONES static double grid_far(hs_grid *G, double a, double y, double d)
{
    double b = d * G->m, sb = sin(b), s2 = sin(0.5 * b) * sin(0.5 * b);
    double f = a > 0 ? 2 * a * s2 : 2.7726 * a * s2;
    double *restrict ge = G->er1; /* er, ei: the phases in use */
    const double *restrict gs = G->s, *restrict gr = G->r;
    int j, n = G->n;
    for (j = 0; j < n; j++) ge[j] = gr[j] * hs_exp(-f * gs[j] * (1 - gs[j]) - y * gs[j] * sb);
    return exp(0.5 * d * d) * hs_lane_sum(ge, n) +
           2 * exp(d * d) * (a < 0 ? pow(cos(b), a) : 1) / expm1(2 * HS_PI * d / G->h);
}

/* Leaves the slopes of l in s and returns their mean under r. */
HS_CLONES static double mean_slope(hs_grid *G)
{
    double part[8] = {0}, q = G->q, *restrict gs = G->s;
    const double *restrict gu = G->u, *restrict gr = G->r, *restrict gi = G->inv;
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            gs[j + i] = hs_slope(gu[j + i], q, gi[j + i]);
            part[i] += gr[j + i] * gs[j + i];
        }
    return hs_lanes(part);
}

/* Psi(y) >= |phi(y')| for every y' >= y [theory: law.far]; ends are added by the caller. Best of three d at the first
 * call on a grid, which the later ones keep (any d is valid). */
double hs_grid_far_upper(hs_grid *G, double a, double y)
{
    double best = 1, cap = fmin(6, 0.95 * HS_PI / 2 / G->m);
    double d0 = y * G->m * mean_slope(G); /* e^{d^2/2 - y d m E s} is least there; any d is valid */
    int t, found = G->far_shift;
    G->shift = 0;
    for (t = G->far_shift < 0 ? 0 : G->far_shift; t < (G->far_shift < 0 ? 3 : G->far_shift + 1); t++) {
        double d = fmin(d0 * (t == 0 ? 1 : t == 1 ? 0.5 : 2), cap), x = grid_far(G, a, y, d);
        if (x < best) {
            best = x;
            found = t;
            G->shift = d;
        }
        if (0.5 * d0 >= cap) break; /* the three strips are the same */
    }
    G->far_shift = found;
    return fmin(1, best * (1 + 1e-9));
}

/* What of the grid carries phi: nodes outside [first, last) hold less than `tol` of r [theory: law.trim]. */
void hs_grid_trim(hs_grid *G, double tol)
{
    double sum = 0;
    int j = 0, i = G->n;
    while (j < i && sum + G->r[j] < 0.5 * tol) sum += G->r[j++];
    for (sum = 0; i > j && sum + G->r[i - 1] < 0.5 * tol; i--) sum += G->r[i - 1];
    G->first = j / 8 * 8;
    G->last = (i + 7) / 8 * 8;
}

/* E (l - l')^2/2 and E (l - l')^4 over two copies under r that both lie in |l| <= cut [theory: law.spread]. The first
 * is rounded down, the second up: every sum of n/8 terms a lane is off by (n/8 + 10) u of its terms' sizes, which are
 * at most m_0 m_2 and, by Cauchy-Schwarz, m_0 m_4. */
HS_CLONES void hs_grid_spread(const hs_grid *G, double mean, double cut, double *var, double *fourth)
{
    double s0[8] = {0}, s1[8] = {0}, s2[8] = {0}, s3[8] = {0};
    double s4[8] = {0}, all, a, b;
    const double *restrict r = G->r, *restrict l = G->l;
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double x = l[j + i] - mean, x2 = x * x, kept = fabs(l[j + i]) <= cut ? r[j + i] : 0, rx = kept * x;
            s0[i] += kept;
            s1[i] += rx;
            s2[i] += rx * x;
            s3[i] += rx * x2;
            s4[i] += rx * x2 * x;
        }
    all = hs_lanes(s0);
    a = hs_lanes(s1);
    b = hs_lanes(s2);
    *var = all * b - a * a - (0.5 * n + 40) * HS_U * all * b;
    *fourth = 2 * all * hs_lanes(s4) - 8 * hs_lanes(s3) * a + 6 * b * b + (4 * n + 360) * HS_U * all * hs_lanes(s4);
}

/* The variance of the loss under the law itself, at most [theory: law.variance]. Losses are off by at most u `off`,
 * weights by the relative `squares` - 1; `wider`: what |l - mean| may exceed its largest value at the nodes by, in the
 * strip and beyond the grid; level: twice the error of M without that factor. */
double hs_grid_var_upper(const hs_grid *G, double mean, double squares, double off, double wider, double level)
{
    double var, fourth, X = 0, sd;
    int j;
    hs_grid_spread(G, mean, HUGE_VAL, &var, &fourth);
    for (j = 0; j < G->n; j++) X = fmax(X, fabs(G->l[j] - mean));
    X += wider;
    sd = sqrt(fmax(0, var)) * squares * (1 + 1e-9) + HS_U * off;
    return (sd * sd + level * X * X) * (1 + 3 * level);
}

/* Bounds of the same for the law itself instead of its grid, from the masses of cells [theory: law.spread, law.cell].
 * Needs the p of hs_grid_weights. l is off by 14u of itself where a mesh of l' does not hold more. */
HS_CLONES void hs_grid_band(const hs_grid *G, double a, double cut, double *var_lower, double *fourth_upper)
{
    double lo0 = 0, lo2 = 0, hi0 = 0, hi2 = 0;
    double mean_lo = 0, mean_hi = 0, mean, h = G->h;
    double m = G->m, from = HUGE_VAL, to = -HUGE_VAL;
    double bend = (1 + 0.25 * fabs(a) * m * m) * 0.125 * h * h + 2 * (squares(G, a) - 1); /* with p_j's own error */
    int j, n = (int)((G->hi - G->lo) / h + 0.5);
    for (j = 1; j < n; j++) {
        double rise = fabs(a * m * (G->u[j] + G->q) * G->inv[j] - G->g[j]) * 0.5 * h + bend, t = hs_exp(rise),
               few = G->p[j] / t, many = G->p[j] * t;
        double left = G->l[j - 1], right = G->l[j + 1], top = fmax(fabs(left), fabs(right)),
               low = left > 0    ? left
                     : right < 0 ? -right
                                 : 0;
        if (top > cut || !(rise < 700)) continue;
        from = fmin(from, left);
        to = fmax(to, right);
        lo0 += few;
        lo2 += few * low * low;
        hi0 += many;
        hi2 += many * top * top;
        mean_hi += right > 0 ? many * right : few * right;
        mean_lo += left > 0 ? few * left : many * left;
    }
    mean = fmax(fabs(mean_lo), fabs(mean_hi));
    *var_lower = fmax(0, lo0 * lo2 - mean * mean - 1e-11 * hi0 * hi2) * (1 - 1e-9); /* 4096 terms a sum */
    *fourth_upper = to > from ? 2 * (to - from) * (to - from) * hi0 * hi2 * (1 + 1e-9) : 0;
}
