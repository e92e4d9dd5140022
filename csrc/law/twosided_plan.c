/* twosided_plan.c - quick values of log M for a two-sided pair, and a mesh for its grids: they place contours and enter
 * no bound.
 *
 * Symbols and formula as in twosided.c; trapezoid rule with h = 1/(2 max(1, up, down)), within 1e-6 of log M relative
 * to it.
 *
 * What it does not do: bounds (twosided.c, for any mesh).
 */
#include "law/twosided.h"

static double plan_mesh(const hs_pair *pair, int r) { return 0.5 / fmax(fmax(pair->up[r], pair->down[r]), 1); }

/* l1, L = l1 - l2, lm1, lm1 - lm2, log weight and weight at n nodes of branch r from lo on, in rows `stride` apart. */
HS_CLONES static void plan_fill(const hs_pair *pair, int r, double lo, int n, double *rows, int64_t stride)
{
    double *restrict l1 = rows, *restrict L = rows + stride, *restrict lm1 = rows + 2 * stride;
    double *restrict dm = rows + 3 * stride, *restrict lw = rows + 4 * stride, *restrict w = rows + 5 * stride;
    double q = pair->q[r], up = pair->up[r], down = pair->down[r];
    double lq = log(q), h = plan_mesh(pair, r), shift = log(pair->w[r] * h) - HS_LOG_SQRT_2PI;
    int j;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double g = lo + j * h, U, a, b;
        double am, bm, x = shift - 0.5 * g * g;
        hs_factor(up, q, lq, g, &U, &a, &am);
        hs_factor(down, q, lq, -g, &U, &b, &bm);
        l1[j] = a;
        L[j] = a - b;
        lm1[j] = am;
        dm[j] = am - bm;
        lw[j] = x;
        w[j] = hs_exp(x);
    }
}

/* Branch r from lo on in n columns of six rows `stride` apart; from `real` on nodes of weight zero. */
static void plan_put(const hs_pair *pair, int r, double lo, int real, int n, double *x, int64_t stride)
{
    int i;
    plan_fill(pair, r, lo, n, x, stride);
    for (; real < n; real++)
        for (i = 0; i < 6; i++) x[i * stride + real] = i == 4 ? -1e4 : 0;
}

/* Rows for all tilts z_lo .. z_hi; HS_TOO_MANY_NODES if they do not fit `size` doubles. */
int hs_two_coarse_build(hs_two_coarse *G, const hs_pair *pair, double z_lo, double z_hi, double *work, int64_t size)
{
    double lo[HS_BRANCHES], hi;
    int r, real[HS_BRANCHES], n = 0;
    G->n = 0;
    G->z_lo = 1;
    G->z_hi = 0;
    G->x = work;
    for (r = 0; r < pair->branches; r++) {
        double count;
        hs_two_range(pair, r, z_lo, z_hi, 8.5, &lo[r], &hi);
        count = (hi - lo[r]) / plan_mesh(pair, r) + 1;
        if (!(6 * (n + count + 8) < (double)size)) return HS_TOO_MANY_NODES;
        real[r] = (int)count;
        n += (real[r] + 7) / 8 * 8;
    }
    for (G->n = n, n = r = 0; r < pair->branches; n += (real[r] + 7) / 8 * 8, r++)
        plan_put(pair, r, lo[r], real[r], (real[r] + 7) / 8 * 8, work + n, G->n);
    G->z_lo = z_lo;
    G->z_hi = z_hi;
    return HS_OK;
}

/* The three sums of e^E w L^i, scaled by e^-top, added to s; top = 0: of log M in the form that does not cancel. */
HS_CLONES static void plan_sums(const hs_two_coarse *G, double z, double top, double *s)
{
    const double *restrict l1 = G->x, *restrict L = G->x + G->n, *restrict lm = G->x + 2 * G->n,
                           *restrict dm = G->x + 3 * G->n;
    const double *restrict lw = G->x + 4 * G->n, *restrict w = G->x + 5 * G->n;
    double s0[8] = {0}, s1[8] = {0}, s2[8] = {0};
    int64_t j, i, n = G->n;
    if (top > 0)
        for (j = 0; j < n; j += 8)
            for (i = 0; i < 8; i++) {
                double e = hs_exp(l1[j + i] + z * L[j + i] + lw[j + i] - top), eL = e * L[j + i];
                s0[i] += e;
                s1[i] += eL;
                s2[i] += eL * L[j + i];
            }
    else
        for (j = 0; j < n; j += 8)
            for (i = 0; i < 8; i++) {
                double E = l1[j + i] + z * L[j + i], p = w[j + i], e = hs_exp(E + lw[j + i]);
                double es = E < 0.1 && E > -0.1 ? E : 0, x = hs_expm1mx_small(es);
                double h2 = es != 0 ? p * x : e - p - p * E, e1 = es != 0 ? p * (x + es) : e - p;
                s0[i] += h2 + p * (lm[j + i] + z * dm[j + i]);
                s1[i] += e1 * L[j + i] + p * dm[j + i];
                s2[i] += e * L[j + i] * L[j + i];
            }
    s[0] += hs_lanes(s0);
    s[1] += hs_lanes(s1);
    s[2] += hs_lanes(s2);
}

static hs_cgf plan_finish(const double *s, double top)
{
    double M = top > 0 ? s[0] : 1 + s[0];
    hs_cgf out = {top > 0 ? top + log(M) : log1p(s[0]), s[1] / M, 0};
    out.K2 = s[2] / M - out.K1 * out.K1;
    return out;
}

/* log M(z), its first two derivatives, at a tilt of the range. */
HS_CLONES hs_cgf hs_two_coarse_cgf(const hs_two_coarse *G, double z)
{
    const double *restrict l1 = G->x, *restrict L = G->x + G->n, *restrict lw = G->x + 4 * G->n;
    double top8[8] = {0}, top = 0, s[3] = {0};
    int64_t j, i;
    for (j = 0; j < G->n; j += 8)
        for (i = 0; i < 8; i++) {
            double x = l1[j + i] + z * L[j + i] + lw[j + i];
            top8[i] = x > top8[i] ? x : top8[i];
        }
    for (i = 0; i < 8; i++) top = fmax(top, top8[i]);
    if (top < 1.5) top = 0; /* weights hold log h - log sqrt(2 pi) < -1.6: as below */
    plan_sums(G, z, top, s);
    return plan_finish(s, top);
}

/* E - g^2/2 at g, in the branch r */
static double exponent(const hs_pair *pair, int r, hs_exponents a, double g)
{
    double U, l1, l2;
    double lm, q = pair->q[r], lq = log(q);
    hs_factor(pair->up[r], q, lq, g, &U, &l1, &lm);
    hs_factor(pair->down[r], q, lq, -g, &U, &l2, &lm);
    return a.a1 * l1 + a.a2 * l2 - 0.5 * g * g;
}

/* The same for one tilt, however far it reaches: the nodes come in blocks. */
hs_cgf hs_two_cgf_estimate(const hs_pair *pair, double z)
{
    enum { BLOCK = 128 };
    double work[6 * BLOCK], s[3] = {0}, top = 0;
    hs_two_coarse G = {BLOCK, z, z, work};
    hs_exponents a = hs_at_tilt(z);
    int r;
    for (r = 0; r < pair->branches; r++) {
        top = fmax(top, exponent(pair, r, a, 0));
        top = fmax(top, exponent(pair, r, a, fmax(0, a.a1) * pair->up[r]));
        top = fmax(top, exponent(pair, r, a, -fmax(0, a.a2) * pair->down[r]));
    }
    if (top < 3) top = 0;
    for (r = 0; r < pair->branches; r++) {
        double lo, hi, h = plan_mesh(pair, r);
        hs_two_range(pair, r, z, z, 8.5, &lo, &hi);
        if (!((hi - lo) / h < 16384)) return (hs_cgf){HUGE_VAL, HUGE_VAL, HUGE_VAL};
        for (; lo <= hi; lo += BLOCK * h) {
            plan_put(pair, r, lo, (hi - lo) / h < BLOCK - 1 ? (int)((hi - lo) / h) + 1 : BLOCK, BLOCK, work, BLOCK);
            plan_sums(&G, z, top, s);
        }
    }
    return plan_finish(s, top);
}

enum { NODES = 96 };

/* Branch r on a coarse mesh: the log of its tilted density over M, -1e4 where that is below e^-(target + 8), and rho of
 * both factors. */
typedef struct {
    double h, lp[NODES], rho1[NODES], rho2[NODES];
} coarse_branch;

HS_CLONES static void lay_branch(coarse_branch *D, const hs_pair *pair, int r, double z, double log_m, double least)
{
    hs_exponents a = hs_at_tilt(z);
    double q = pair->q[r], up = pair->up[r], down = pair->down[r], m = fmax(up, down);
    double lq = log(q), scale = log(pair->w[r]) - log_m, lo, hi;
    int j, n;
    hs_two_range(pair, r, z, z, 9.5, &lo, &hi);
    D->h = fmax((hi - lo) / (NODES - 1), 0.2 / (m > 1 ? m : 1));
    n = (int)((hi - lo) / D->h) + 1;
    for (j = 0; j < NODES; j++) {
        double g = lo + j * D->h, U1, U2, l1;
        double l2, lm;
        hs_factor(up, q, lq, g, &U1, &l1, &lm);
        hs_factor(down, q, lq, -g, &U2, &l2, &lm);
        D->lp[j] = j < n ? a.a1 * l1 + a.a2 * l2 - 0.5 * g * g + scale : -1e4;
        D->rho1[j] = (U1 + q) / (1 - q);
        D->rho2[j] = (U2 + q) / (1 - q);
        if (D->lp[j] < -least) D->lp[j] = -1e4;
    }
}

/* J of the quadrature bound at frequency y on the strip whose edge turns the factors by at1 and at2. */
HS_CLONES static double branch_strip(const coarse_branch *D, double y, hs_turn at1, hs_turn at2)
{
    double x[NODES];
    int j;
    for (j = 0; j < NODES; j++) {
        double e = D->lp[j] + y * (hs_angle(D->rho1[j], at1) + hs_angle(D->rho2[j], at2));
        x[j] = hs_exp(e < 700 ? e : 700);
    }
    return hs_lane_sum(x, NODES) * D->h;
}

/* A mesh for branch r, 12 bits, for which the quadrature error at frequency y should be below e^-target: best of four
 * strips. */
double hs_two_choose_h(const hs_pair *pair, int r, double z, double y, double target, double log_m)
{
    static const double part[4] = {0.9, 0.5, 0.28, 0.14};
    hs_exponents a = hs_at_tilt(z);
    double up = pair->up[r], down = pair->down[r], best = 0;
    coarse_branch D;
    int i;
    lay_branch(&D, pair, r, z, log_m, target + 8);
    for (i = 0; i < 4; i++) {
        double d = fmin(part[i] * HS_PI / fmax(up, down), 6), b1 = d * up, b2 = d * down, h;
        double J = branch_strip(&D, y, hs_turned(b1), hs_turned(b2));
        h = 2 * HS_PI * d /
            (target + 0.5 * d * d + log(fmax(J, 1)) + fmin(a.a1, 0) * log(cos(0.5 * b1)) +
             fmin(a.a2, 0) * log(cos(0.5 * b2)) + 4);
        if (h > best) best = h;
    }
    return hs_grid_mesh(fmin(best, 2 * HS_PI / sqrt(2 * (target + 2))));
}
