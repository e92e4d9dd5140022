/* twosided_plan.c - quick values of log M for a two-sided pair, and a mesh for its grids: they place contours and enter no
 * bound.
 *
 * Symbols and formula as in twosided.c; trapezoid rule with h = 1/(2 max(1, up, down)), within 1e-6 of log M relative to it.
 *
 * What it does not do: bounds (twosided.c, for any mesh).
 */
#include "twosided.h"

/* E - g^2/2 at g, in the branch r */
static double exponent(const hs_pair *pair, int r, hs_exponents a, double g)
{
    double U, l1, l2, lm, q = pair->q[r], lq = log(q);
    hs_factor(pair->up[r], q, lq, g, &U, &l1, &lm);
    hs_factor(pair->down[r], q, lq, -g, &U, &l2, &lm);
    return a.a1 * l1 + a.a2 * l2 - 0.5 * g * g;
}

/* log M, its first two z-derivatives: for placing contours, never for bounds. */
HS_CLONES void hs_two_cgf_estimate(const hs_pair *pair, double z, double *out)
{
    hs_exponents a = hs_at_tilt(z);
    double S0 = 0, S1 = 0, S2 = 0, top = 0;
    double lw[64], L[64], E[64], lm[64], dm[64], f0[64], f1[64], f2[64], plain;
    int r, j;
    for (r = 0; r < pair->branches; r++) {
        top = fmax(top, exponent(pair, r, a, 0));
        top = fmax(top, exponent(pair, r, a, fmax(0, a.a1) * pair->up[r]));
        top = fmax(top, exponent(pair, r, a, -fmax(0, a.a2) * pair->down[r]));
    }
    plain = top > 3 ? 1 : 0;
    for (r = 0; r < pair->branches; r++) {
        double q = pair->q[r], up = pair->up[r], down = pair->down[r], lq = log(q), m = fmax(up, down), lo, hi,
               h = 0.5 / (m > 1 ? m : 1);
        double shift = log(pair->w[r]) - (plain != 0 ? top : 0), s0 = 0, s1 = 0, s2 = 0;
        hs_two_range(pair, r, z, z, 8.5, &lo, &hi);
        if (!((hi - lo) / h < 16384)) { out[0] = out[1] = out[2] = HUGE_VAL; return; }
        for (; lo <= hi; lo += 64 * h) {
            int n = (hi - lo) / h < 63 ? (int)((hi - lo) / h) + 1 : 64;
            for (j = 0; j < 64; j++) {
                double g = lo + j * h, U, l1, l2, lm1, lm2;
                hs_factor(up, q, lq, g, &U, &l1, &lm1);
                hs_factor(down, q, lq, -g, &U, &l2, &lm2);
                lw[j] = j < n ? shift - 0.5 * g * g : -1e4;
                L[j] = l1 - l2; E[j] = a.a1 * l1 + a.a2 * l2; lm[j] = a.a1 * lm1 + a.a2 * lm2; dm[j] = lm1 - lm2;
            }
            for (j = 0; j < 64; j++) {
                double w = hs_exp(lw[j]), e = hs_exp(E[j] + lw[j]), es = E[j] < 0.1 && E[j] > -0.1 ? E[j] : 0,
                       x = hs_expm1mx_small(es);
                double h2 = es != 0 ? w * x : e - w - w * E[j], e1 = es != 0 ? w * (x + es) : e - w;
                f0[j] = plain != 0 ? e : h2 + w * lm[j];
                f1[j] = plain != 0 ? e * L[j] : e1 * L[j] + w * dm[j];
                f2[j] = e * L[j] * L[j];
            }
            for (j = 0; j < 64; j++) { s0 += f0[j]; s1 += f1[j]; s2 += f2[j]; }
        }
        h /= 2.50662827463100050242;
        S0 += s0 * h; S1 += s1 * h; S2 += s2 * h;
    }
    if (plain != 0) {
        out[0] = top + log(S0); out[1] = S1 / S0; out[2] = S2 / S0 - out[1] * out[1];
    } else {
        out[0] = log1p(S0); out[1] = S1 / (1 + S0); out[2] = S2 / (1 + S0) - out[1] * out[1];
    }
}

/* A mesh for branch r, 12 bits, for which the quadrature error at frequency y should be below e^-target: best of four strips.
 * */
HS_CLONES double hs_two_choose_h(const hs_pair *pair, int r, double z, double y, double target, double log_m)
{
    static const double part[4] = {0.9, 0.5, 0.28, 0.14};
    hs_exponents a = hs_at_tilt(z);
    double q = pair->q[r], up = pair->up[r], down = pair->down[r], m = fmax(up, down), lq = log(q),
           scale = log(pair->w[r]) - log_m;
    double best = 0, lp[96], rho1[96], rho2[96], hc, lo, hi, h;
    int i, j, t, n, e;
    hs_two_range(pair, r, z, z, 9.5, &lo, &hi);
    hc = fmax((hi - lo) / 95, 0.2 / (m > 1 ? m : 1));
    n = (int)((hi - lo) / hc) + 1;
    for (j = 0; j < 96; j++) {
        double g = lo + j * hc, U1, U2, l1, l2, lm;
        hs_factor(up, q, lq, g, &U1, &l1, &lm);
        hs_factor(down, q, lq, -g, &U2, &l2, &lm);
        lp[j] = j < n ? a.a1 * l1 + a.a2 * l2 - 0.5 * g * g + scale : -1e4;
        rho1[j] = (U1 + q) / (1 - q); rho2[j] = (U2 + q) / (1 - q);
        if (lp[j] < -target - 8) lp[j] = -1e4;
    }
    for (i = 0; i < 4; i++) {
        double d = fmin(part[i] * HS_PI / m, 6), b1 = d * up, b2 = d * down, J[8] = {0};
        double s1 = b1 <= HS_PI / 2 ? sin(b1) : b1, c1 = b1 <= HS_PI / 2 ? cos(b1) : 0, s2 = b2 <= HS_PI / 2 ? sin(b2) : b2,
               c2 = b2 <= HS_PI / 2 ? cos(b2) : 0;
        for (j = 0; j < 96; j += 8)
            for (t = 0; t < 8; t++) {
                double x = lp[j + t] + y * (hs_angle_upper(rho1[j + t], b1, s1, c1) + hs_angle_upper(rho2[j + t], b2, s2, c2));
                J[t] += hs_exp(x < 700 ? x : 700);
            }
        h = 2 * HS_PI * d / (target + 0.5 * d * d + log(fmax(hs_lanes(J) * hc, 1)) + fmin(a.a1,
            0) * log(cos(0.5 * b1)) + fmin(a.a2, 0) * log(cos(0.5 * b2)) + 4);
        if (h > best) best = h;
    }
    best = fmin(best, 2 * HS_PI / sqrt(2 * (target + 2)));
    best = frexp(best, &e);
    return ldexp(floor(best * 4096), e - 12);
}
