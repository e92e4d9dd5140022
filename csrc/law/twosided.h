/* twosided.h - the inner grids of one step whose pair is a public mixture of two-sided branches; not for the gate. */
#ifndef HS_TWOSIDED_H
#define HS_TWOSIDED_H

#include "law/transform.h"

#define HS_TWO_ARRAYS 16
#define HS_TWO_MAX 8192 /* inner nodes of one step, all branches */
#define HS_TWO_WORK (HS_TWO_ARRAYS * (HS_TWO_MAX + 8))

typedef struct {
    hs_grid G; /* all branches in one row of nodes: G.l is the loss L, G.lw includes log w */
    const hs_pair *pair;
    int first[HS_BRANCHES + 1], nodes[HS_BRANCHES],
        strip[HS_BRANCHES];                   /* where a branch starts (multiples of 8), its nodes */
    double h[HS_BRANCHES], size[HS_BRANCHES]; /* mesh; |log h| + |log w| */
    double *u1, *u2, *l1;
    double *l2, *lm1, *lm2;
} hs_two;

typedef struct { /* twosided_plan.c: all branches in rows l1, L, lm1, lm1 - lm2, log weight, weight */
    int n;
    double z_lo, z_hi, *x;
} hs_two_coarse;

typedef struct { /* twosided_shift.c: nodes of the shifted paths; rounding of phi at y is at most y (c1 + x c2) */
    int n;
    double *Lr, *Li, *rr, *ri;
    double c1, c2, quad; /* quad: every other error of phi, the same at all y >= 0 */
} hs_two_shift;

typedef struct {
    double a1, a2;
} hs_exponents; /* of 1+U1 and 1+U2 at real z */

static inline hs_exponents hs_at_tilt(double z)
{
    hs_exponents a = {1 + z, -z};
    return a;
}

/* U, log(1+U), log(1+U) - U of one factor at v = m g - m^2/2. */
static inline void hs_factor(double m, double q, double lq, double g, double *U, double *l, double *lm)
{
    double v = m * g - 0.5 * m * m, m1, ev = hs_exp_m1(v > 600 ? 600 : v, &m1), x;
    double x2, c, t, lg;
    double big, small;
    *U = q * m1;
    x = 1 + *U;
    x2 = (1 - q) + q * ev;
    c = (*U - (x - 1)) / x;
    big = *U > 0.5 || *U < -0.5 ? 1 : 0;
    small = *U < 0.1 && *U > -0.1 ? *U : 0;
    t = hs_log1pmx_small(small);
    lg = hs_log(big != 0 ? x2 : x) + (big != 0 ? 0 : c);
    lg = v > 600 ? v + lq : lg;
    *l = small != 0 ? *U + t : lg;
    *lm = small != 0 ? t : lg - *U;
}

/* The range of g in which a branch has weight at the tilts z_lo .. z_hi, R away from every peak. */
static inline void hs_two_range(const hs_pair *pair, int r, double z_lo, double z_hi, double R, double *lo, double *hi)
{
    double q = pair->q[r], up = pair->up[r], down = pair->down[r];
    double neg1 = fmax(0, -1 - z_lo), neg2 = fmax(0, z_hi);
    *hi = fmax(fmax(1, 1 + z_hi) * up, neg2 * down * q > 0 ? log1p(neg2 * down * q) / down : 0) + R;
    *lo = -fmax(fmax(1, -z_lo) * down, neg1 * up * q > 0 ? log1p(neg1 * up * q) / up : 0) - R;
}

/* e^{iyL} - 1 = (e^{-t} - 1) + e^{-t} (e^{ix} - 1), x = y Re L, t = y Im L, within 48 u y |L|: the products u each,
 * e^{-t} - 1 to 5 u t, e^{ix} - 1 to 10 u |x|, and what joins them. */
static inline void hs_turns(int n, double y, const double *Lr, const double *Li, double *re, double *im)
{
    int j;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double x = hs_expm1(-(y * Li[j])), c, s;
        hs_cis_m1(y * Lr[j], &c, &s);
        re[j] = x + (c + x * c);
        im[j] = s + x * s;
    }
}

/* twosided_plan.c */
int hs_two_coarse_build(hs_two_coarse *G, const hs_pair *pair, double z_lo, double z_hi, double *work, int64_t size);
hs_cgf hs_two_coarse_cgf(const hs_two_coarse *G, double z);
hs_cgf hs_two_cgf_estimate(const hs_pair *pair, double z);
double hs_two_choose_h(const hs_pair *pair, int r, double z, double y, double target, double log_m);
/* twosided.c */
int hs_two_build(hs_two *T, const hs_pair *pair, const double *h, double z_lo, double z_hi, double R, double *work);
void hs_two_moments(hs_two *T, double z, hs_moments *out);
void hs_two_weights(hs_two *T, double z, double log_m, double *c1, double *c2);
double hs_two_real_h(const hs_pair *pair, int r, double z, double target);
double hs_two_quadrature_upper(hs_two *T, double z, double y);
double hs_two_real_upper(const hs_two *T, double z);
double hs_two_fall(const hs_two *T, double z, int r);
double hs_two_ends_upper(const hs_two *T, double z, double log_m);
double hs_two_dropped_upper(const hs_two *T, double z);
double hs_two_far_upper(hs_two *T, double z, double y);
/* twosided_shift.c */
double hs_two_shift_count(const hs_pair *pair, double z, double z_lo, double z_hi, double R, double target);
double hs_grid_shift_count(double m, double q, double a, double range, double target);
int hs_two_shift_build(hs_two *T, double z, double log_m, double rounding, double out, double target, hs_two_shift *P);
int hs_grid_shift_build(hs_grid *G, double a, double log_m, double rounding, double out, double target,
                        hs_two_shift *P);
double hs_two_shift_nodes(const hs_two_shift *P, double dy, int64_t N, double *scratch, double *zr, double *zi);

#endif
