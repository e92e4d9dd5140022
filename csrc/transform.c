/* transform.c - the transform of one Poisson-subsampled Gaussian step, by the trapezoid rule on an inner grid.
 *
 * Symbols. g: standard normal variable, w its density. v = m g - m^2/2, U = q (e^v - 1), l = log(1+U), rho = q e^v/(1-q).
 *   M(a) = E (1+U)^a, with a = 1+z (REMOVE) or a = -z (ADD). Tilted law: weights p_j = h w(g_j) (1+U_j)^a / M(a).
 *   phi(y) = M(a +- iy)/M(a) = sum r_j e^{iy l_j},  r_j = p_j / sum p.
 *   u = 2^-53. kap = 1 (a >= 0) or cos(b/2)^a (a < 0), b = d m.
 *
 * Formula. log M = log1p( sum h w [ (e^E - 1 - E) + a (log(1+U) - U) ] ), E = a l: the first-order terms integrate to 1 and 0
 *   exactly and are dropped (formed in floating point they would lose all digits for small q).
 *
 * Error claims, each proved where it is computed:
 *   quadrature  hs_grid_quadrature_upper: strip of analyticity |Im g| < pi/m, finite rectangle, for every |y'| <= y.
 *   ends        hs_grid_ends_upper: log-concave decay beyond the first and the last node.
 *   dropped     hs_grid_dropped_upper: what the two dropped terms miss outside the range and between the nodes.
 *   rounding    hs_moments.err for log M; c1, c2 of hs_grid_weights for phi: |dphi(y)| <= |y| (c1 + n' c2), n' nodes after
 *               a restart of the phase recurrence.
 * First order in u: terms of size u^2 are not carried; the constants are rounded up by more than they could add.
 *
 * What it does not do: other base laws, atoms, complex a beyond a +- iy.
 */
#include "transform.h"

#define LOG_SQRT_2PI 0.91893853320467274178

/* log M, its first two a-derivatives, to a relative 1e-6 or better: for placing contours, never for bounds. */
HS_CLONES void hs_cgf_estimate(double m, double q, double a, double *out)
{
    double h = 0.5 / (m > 1 ? m : 1), lo, hi, s0 = 0, s1 = 0, s2 = 0, top = 0, lq = log(q);
    double lw[64], l[64], E[64], lm[64], f0[64], f1[64], f2[64], plain;
    int j, n;
    if (q == 1) {
        out[0] = 0.5 * m * m * a * (a - 1); out[1] = m * m * (a - 0.5); out[2] = m * m;
        return;
    }
    lo = -8.5 - (a < 0 ? log1p(-a * m * q) / m : 0);
    hi = fmax(a * m, m) + 8.5;
    if (a > 1) { /* e^E w is largest near g = 0 or near g = a m, where v = (a - 1/2) m^2 */
        double v = (a - 0.5) * m * m, lv = v > 30 ? v + log(q) : log1p(q * expm1(v));
        top = fmax(0, a * lv - 0.5 * a * a * m * m);
    } else if (a < 0) top = a * log1p(-q);
    plain = top > 3 ? 1 : 0;
    if (!((hi - lo) / h < 16384)) { out[0] = out[1] = out[2] = HUGE_VAL; return; } /* a tilt beyond use */
    for (; lo <= hi; lo += 64 * h) {
        n = (hi - lo) / h < 63 ? (int)((hi - lo) / h) + 1 : 64;
        for (j = 0; j < 64; j++) {
            double g = lo + j * h, v = m * g - 0.5 * m * m, U = q * (hs_exp(v > 700 ? 700 : v) - 1), x = 1 + U;
            double small = U < 0.1 && U > -0.1 ? U : 0, t = hs_log1pmx_small(small), lg = hs_log(x);
            lg = v > 700 ? v + lq : lg;
            l[j] = small != 0 ? U + t : lg;
            lm[j] = small != 0 ? t : lg - U;
            lw[j] = j < n ? -0.5 * g * g - top : -1e4;
            E[j] = a * l[j];
        }
        for (j = 0; j < 64; j++) {
            double w = hs_exp(lw[j]), e = hs_exp(E[j] + lw[j]), es = E[j] < 0.1 && E[j] > -0.1 ? E[j] : 0, x = hs_expm1mx_small(es);
            double h2 = es != 0 ? w * x : e - w - w * E[j], e1 = es != 0 ? w * (x + es) : e - w;
            f0[j] = plain != 0 ? e : h2 + w * a * lm[j];
            f1[j] = plain != 0 ? e * l[j] : e1 * l[j] + w * lm[j];
            f2[j] = e * l[j] * l[j];
        }
        for (j = 0; j < 64; j++) { s0 += f0[j]; s1 += f1[j]; s2 += f2[j]; }
    }
    h /= 2.50662827463100050242;
    if (top > 3) {
        out[0] = top + log(s0 * h); out[1] = s1 / s0; out[2] = s2 / s0 - out[1] * out[1];
    } else {
        double M = exp(-top) + s0 * h;
        out[0] = top == 0 ? log1p(s0 * h) : top + log(M);
        out[1] = s1 * h / M; out[2] = s2 * h / M - out[1] * out[1];
    }
}

/* A mesh h, rounded down to 12 bits so that g_j and g_j^2/2 are exact, for which the quadrature error at frequency y should be
 * below e^-target: best of four strips d, J estimated on a coarse grid with the far side cut where p is below e^-(target+8). */
HS_CLONES double hs_grid_choose_h(double m, double q, double a, double y, double target, double log_m)
{
    static const double part[4] = {0.9, 0.5, 0.28, 0.14};
    double best = 0, lp[96], rho[96], hc, lo, hi, h;
    int i, j, n, e;
    lo = -8.5 - (a < 0 ? log1p(-a * m * q) / m : 0);
    hi = fmax(a * m, m) + 9.5;
    hc = fmax((hi - lo) / 95, 0.2 / (m > 1 ? m : 1));
    n = (int)((hi - lo) / hc) + 1;
    for (j = 0; j < 96; j++) {
        double g = lo + j * hc, v = m * g - 0.5 * m * m, ev = hs_exp(v > 600 ? 600 : v), x = 1 + q * (ev - 1);
        lp[j] = j < n ? a * (v > 600 ? v + hs_log(q) : hs_log(x)) - 0.5 * g * g - log_m : -1e4;
        rho[j] = q * ev / (1 - q);
        if (lp[j] < -target - 8) lp[j] = -1e4;
    }
    for (i = 0; i < 4; i++) {
        double b = part[i] * HS_PI, d = b / m, sb = sin(b), cb = cos(b), J = 0, cap = fmin(d * m, b);
        if (d > 6) { d = 6; b = d * m; sb = sin(b); cb = cos(b); cap = b; }
        for (j = 0; j < 96; j++) {
            double th = b <= HS_PI / 2 ? rho[j] * sb / (1 + rho[j] * cb) : rho[j] * b;
            double x = lp[j] + y * (th < cap ? th : cap);
            J += hs_exp(x < 700 ? x : 700);
        }
        J = log(fmax(J * hc, 1));
        h = 2 * HS_PI * d / (target + 0.5 * d * d + J - (a < 0 ? -a * log(cos(0.5 * b)) : 0) + 4);
        if (h > best) best = h;
    }
    best = fmin(best, 2 * HS_PI / sqrt(2 * (target + 2)));
    best = frexp(best, &e);
    return ldexp(floor(best * 4096), e - 12);
}

/* Nodes from lo to hi (widened to multiples of h). HS_TOO_MANY_NODES if they do not fit HS_INNER_MAX. */
HS_CLONES int hs_grid_build(hs_grid *G, double m, double q, double h, double lo, double hi, double *work)
{
    long j0 = (long)floor(lo / h), j1 = (long)ceil(hi / h);
    int j, n = (int)(j1 - j0) + 1, stride = HS_INNER_MAX + 8;
    double lh = log(h) - LOG_SQRT_2PI, lq = log(q), base = (double)j0;
    if (!((double)j1 - (double)j0 < HS_INNER_MAX - 8)) return HS_TOO_MANY_NODES;
    G->strip = -1; G->m = m; G->q = q; G->h = h; G->lo = j0 * h; G->hi = j1 * h;
    G->g = work; G->lw = work + stride; G->u = work + 2 * stride; G->l = work + 3 * stride; G->lm = work + 4 * stride;
    G->p = work + 5 * stride; G->s = work + 6 * stride; G->r = work + 7 * stride; G->er = work + 8 * stride;
    G->ei = work + 9 * stride; G->er1 = work + 10 * stride; G->ei1 = work + 11 * stride;
    G->n = (n + 7) / 8 * 8;
    {
    double *restrict gg = G->g, *restrict gu = G->u, *restrict gl = G->l, *restrict glm = G->lm, *restrict glw = G->lw;
    int nn = G->n;
    for (j = 0; j < nn; j++) {
        double g = (base + (double)j) * h, v = m * g - 0.5 * m * m, ev = hs_exp(v > 600 ? 600 : v), U = q * (ev - 1);
        double x = 1 + U, x2 = (1 - q) + q * ev, c = (U - (x - 1)) / x, t, l, big = U > 0.5 || U < -0.5 ? 1 : 0;
        double small = U < 0.1 && U > -0.1 ? U : 0;
        t = hs_log1pmx_small(small);
        l = hs_log(big != 0 ? x2 : x) + (big != 0 ? 0 : c);
        l = v > 600 ? v + lq : l;
        gg[j] = g; gu[j] = U;
        gl[j] = small != 0 ? U + t : l;
        glm[j] = small != 0 ? t : l - U;
        glw[j] = lh - 0.5 * g * g;
    }
    }
    for (j = n; j < G->n; j++) { G->lw[j] = -1e4; G->l[j] = 0; G->u[j] = 0; G->lm[j] = 0; G->g[j] = 0; }
    return HS_OK;
}

static double lanes(const double *acc)
{
    return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

/* log M(a) when (1+U)^a dominates: plain log-sum-exp. Relative error of a term: exponent input a l, -g^2/2, log h, shift. */
HS_CLONES static void moments_plain(hs_grid *G, double a, double top, hs_moments *out)
{
    double s0 = 0, s1 = 0, s2 = 0, e0 = 0, fa = fabs(a), M;
    int j;
    for (j = 0; j < G->n; j++) G->p[j] = hs_exp(a * G->l[j] + G->lw[j] - top);
    for (j = 0; j < G->n; j++) {
        double g = G->g[j], dv = 3 * G->m * fabs(g) + 2 * G->m * G->m;
        s0 += G->p[j]; s1 += G->p[j] * G->l[j];
        e0 += G->p[j] * (fa * (dv + 17 * fabs(G->l[j])) + 1.5 * g * g + fabs(top));
    }
    M = s0; s1 /= M;
    for (j = 0; j < G->n; j++) s2 += G->p[j] * (G->l[j] - s1) * (G->l[j] - s1);
    out->log_m = top + log(M); out->mean = s1; out->var = s2 / M;
    out->err = HS_U * (e0 / M + 2 * fabs(log(G->h)) + 14 + G->n + 2 * fabs(out->log_m));
}

/* log M(a), mean and variance of l under the tilted law. `err` bounds the rounding of log M:
 *   sum w [ 85u(|h2|+|a lm|) + |e^E-1| 3u|a l| + |a||e^E/(1+U)-1| ((U+q) dv + 3u|U|) + (6+|log h|+g^2/2+n+20)u (|h2|+|a lm|) ]/M:
 * every term is second order in U. 85: at the switch |E|, |U| = 0.1 the ratio of |expm1| to |h2| is 20.3. */
HS_CLONES void hs_grid_moments(hs_grid *G, double a, double log_m_estimate, hs_moments *out)
{
    double s0[8] = {0}, s1[8] = {0}, s2[8] = {0}, e0[8] = {0}, fa = fabs(a), lh = fabs(log(G->h)), q = G->q, m = G->m, M, mean;
    const double *restrict gl = G->l, *restrict glw = G->lw, *restrict glm = G->lm, *restrict gu = G->u, *restrict gg = G->g;
    int j, i, n = G->n;
    if (log_m_estimate > 3) {
        double top = -1e4;
        for (j = 0; j < n; j++) { double x = a * G->l[j] + G->lw[j]; top = x > top ? x : top; }
        moments_plain(G, a, top, out);
        return;
    }
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double l = gl[j + i], lw = glw[j + i], E = a * l, w = hs_exp(lw), e = hs_exp(E + lw), lm = glm[j + i];
            double es = E < 0.1 && E > -0.1 ? E : 0, x = hs_expm1mx_small(es);
            double h2 = es != 0 ? w * x : e - w - w * E, e1 = es != 0 ? w * (x + es) : e - w, alm = w * a * lm;
            double U = gu[j + i], g = gg[j + i], dv = 3 * m * fabs(g) + 2 * m * m, size = fabs(h2) + fabs(alm);
            h2 = l == 0 ? 0 : h2; e1 = l == 0 ? 0 : e1;
            s0[i] += h2 + alm;
            s1[i] += e1 * l + w * lm;
            s2[i] += e * l * l;
            e0[i] += size * (111 + lh + 0.5 * g * g + n) + fabs(e1) * 3 * fabs(E)
                   + fa * fabs(e1 - (e * U) / (1 + U)) * ((U + q) * dv + 3 * fabs(U)); /* e/(1+U) - w = e1 - e U/(1+U) */
        }
    M = 1 + lanes(s0); mean = lanes(s1) / M;
    out->log_m = log1p(lanes(s0)); out->mean = mean; out->var = lanes(s2) / M - mean * mean;
    out->err = HS_U * (lanes(e0) / M + 3 * fabs(out->log_m)) * (1 + 1e-9);
}

/* Leaves p_j (normalised by M) in p and r_j (by their own sum) in r. With e_j the relative error of the weight,
 *   c1 = sum r_j [ dl_j + u |l_j| (28 + e_j/u + ebar/u + n/4 + 24) ],  c2 = u sum r_j |l_j|,  dl_j = min(1, 1+U) dv + 14u|l|:
 * the phase of a node carries 10u|y l| from its seed, 13.3u a step from the recurrence and u a step from its own size. */
HS_CLONES void hs_grid_weights(hs_grid *G, double a, double log_m, double *c1, double *c2)
{
    double sum[8] = {0}, t1[8] = {0}, t2[8] = {0}, eb[8] = {0}, fa = fabs(a), lh = fabs(log(G->h)), m = G->m, q = G->q, inv;
    const double *restrict gl = G->l, *restrict glw = G->lw, *restrict gu = G->u, *restrict gg = G->g;
    double *restrict gp = G->p, *restrict gr = G->r;
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double p = hs_exp(a * gl[j + i] + glw[j + i] - log_m);
            gp[j + i] = p; sum[i] += p;
        }
    inv = 1 / lanes(sum);
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double r = gp[j + i] * inv, g = gg[j + i], l = fabs(gl[j + i]), U = gu[j + i];
            double dl = (U + q) / (1 + U) * (3 * m * fabs(g) + 2 * m * m) + 14 * l, e;
            dl = U + q < 0 ? 14 * l : dl;
            e = fa * dl + 3 * fa * l + g * g + 2 * lh + 8 + fabs(log_m);
            gr[j + i] = r;
            t1[i] += r * (dl + l * e); t2[i] += r * l; eb[i] += r * e;
        }
    *c2 = HS_U * lanes(t2) * (1 + 1e-9);
    *c1 = HS_U * lanes(t1) * (1 + 1e-9) + *c2 * (52 + 0.25 * n + lanes(eb));
}

/* What lies beyond the first and the last node, as sums and as integrals, relative to M. The log of h w (1+U)^a falls at least
 * at the rate G - max(a,0) m to the right of G (0 <= l' <= m) and |lo| - max(-a,0) m s(lo) to the left (l' = m s increases), so
 * each side is below a geometric series plus an exponential integral. Infinite where a rate is not positive. */
double hs_grid_ends_upper(const hs_grid *G, double a, double log_m)
{
    int j1 = (int)((G->hi - G->lo) / G->h + 0.5);
    double s = (G->u[0] + G->q) / (1 + G->u[0]), right = G->hi - fmax(a, 0) * G->m, left = -G->lo - fmax(-a, 0) * G->m * s;
    double pr = exp(a * G->l[j1] + G->lw[j1] - log_m), pl = exp(a * G->l[0] + G->lw[0] - log_m);
    if (!(right > 0 && left > 0)) return HUGE_VAL;
    return (pr * (1 / expm1(G->h * right) + 1 / (G->h * right)) + pl * (1 / expm1(G->h * left) + 1 / (G->h * left))) * (1 + 1e-6);
}

/* The dropped terms 1 and aU: outside the range, w (1 + |a| q (1 + e^v)) with rates hi - m and |lo|; between the nodes their
 * exact grid sums are 1 + e', |e'| <= 2.01 e^{-2 pi^2/h^2} (Poisson summation for the normal law and its shift by m). */
double hs_grid_dropped_upper(const hs_grid *G, double a)
{
    int j1 = (int)((G->hi - G->lo) / G->h + 0.5);
    double fa = fabs(a), right = G->hi - G->m, left = -G->lo;
    if (!(right > 0 && left > 0)) return HUGE_VAL;
    return (exp(G->lw[j1]) * (1 + fa * (G->u[j1] + 2 * G->q)) * (1 / expm1(G->h * right) + 1)
          + exp(G->lw[0]) * (1 + 2 * fa * G->q) * (1 / expm1(G->h * left) + 1)
          + 4.1 * exp(-2 * HS_PI * HS_PI / (G->h * G->h)) * (1 + 2 * fa * G->q)) * (1 + 1e-6);
}

/* |M_h(a + iy') - M(a + iy')| / M(a) for all |y'| <= y, without the ends of hs_grid_ends_upper. Residues on [G1, G2] x [-d, d]
 * with G1, G2 at half nodes, where |e^{2 pi i z/h} - 1| = 1 + e^{2 pi t/h}:
 *   2 e^{d^2/2} kap J/(e^{2 pi d/h} - 1) + ends 2 d kap e^{d^2/2} p(G)/h e^{sig(G)} + what p has outside [G1, G2], twice;
 * J is an upper Riemann sum of p e^{y theta}, theta = arg(1+U(g+id)) <= min(b, rho sin b/(1 + rho cos b)) (b <= pi/2; tan) or
 * min(1, rho) b, each taken at the right end of its cell and p bounded over it with |(log p)'| <= |g| + |a| m.
 * G1 and G2 lie where y m rho <= 2 pi/h, so that sig = 0: the end of the grid, or just below equality. Needs the p of hs_grid_weights. Best of three d at the first
 * call on a grid, which the later ones keep (any d is valid). */
HS_CLONES double hs_grid_quadrature_upper(hs_grid *G, double a, double y)
{
    static const double part[3] = {0.9, 0.45, 0.2}, d_max[3] = {6, 5, 4};
    double h = G->h, m = G->m, q = G->q, rim = exp(0.5 * m * h), best = HUGE_VAL, fa = fabs(a);
    int n = (int)((G->hi - G->lo) / h + 0.5) + 1, j, t, cut = n, which = 0;
    double *restrict gs = G->s;
    const double *restrict gu = G->u, *restrict gp = G->p, *restrict gg = G->g;
    if (y * m > 2 * HS_PI / h)
        for (cut = 0; cut < n && y * m * (G->u[cut] + q) * rim <= 2 * HS_PI / h * (1 - q); cut++) {}
    for (t = G->strip < 0 ? 0 : G->strip; t < (G->strip < 0 ? 3 : G->strip + 1); t++) {
        double d = part[t] * HS_PI / m, b, sb, cb, kap, J = 0, out = 0, ends, den, gain, x;
        if (d > d_max[t]) d = d_max[t];
        b = d * m; sb = sin(b); cb = cos(b);
        kap = a < 0 ? pow(cos(0.5 * b), a) : 1;
        if (b <= HS_PI / 2)
            for (j = 0; j < cut; j++) {
                double rho = (gu[j] + q) * rim / (1 - q), th = rho * sb / (1 + rho * cb);
                gs[j] = y * (th < b ? th : b);
            }
        else
            for (j = 0; j < cut; j++) {
                double rho = (gu[j] + q) * rim / (1 - q);
                gs[j] = y * b * (rho < 1 ? rho : 1);
            }
        for (j = 0; j < cut; j++) {
            double e = gs[j] + (fabs(gg[j]) + fa * m) * 0.5 * h + 0.125 * h * h;
            gs[j] = gp[j] * hs_exp(e < 700 ? e : 700);
        }
        for (j = 0; j < cut; j++) J += gs[j];
        for (j = cut; j < n; j++) out += G->p[j] * (1 + exp((fabs(G->g[j]) + fa * m) * 0.5 * h + 0.125 * h * h));
        gain = 2 * HS_PI * d / h; den = expm1(gain);
        ends = 2 * d * kap * exp(0.5 * d * d) / h
             * (G->p[0] * exp((fabs(G->lo) + fa * m) * 0.5 * h + 0.125 * h * h)
              + (cut > 0 ? G->p[cut - 1] * exp((fabs(G->g[cut - 1]) + fa * m) * 0.5 * h + 0.125 * h * h) : 0));
        x = 2 * exp(0.5 * d * d) * kap * J / den + ends + out;
        if (x < best) { best = x; which = t; }
    }
    G->strip = which;
    return cut > 0 ? best * (1 + 1e-6) : HUGE_VAL;
}

/* Z_n = phi(n dy) - 1 = sum r_j (e^{i n dy l_j} - 1) for n = n0 .. n0+count-1: e^{i th} - 1 is carried, not e^{i th}, which would
 * lose the phase at th ~ 1e-9. E_{n+1} = E_n + E_1 (1 + E_n). Seeded at n0; needs r of hs_grid_weights. */
HS_CLONES void hs_grid_nodes(hs_grid *G, double dy, long n0, int count, double *zr, double *zi)
{
    int n = G->n, j, k;
    double y = (double)n0 * dy;
    const double *restrict r = G->r, *restrict l = G->l;
    double *restrict er = G->er, *restrict ei = G->ei, *restrict c = G->er1, *restrict s = G->ei1;
    for (j = 0; j < n; j++) hs_cis_m1(dy * l[j], &c[j], &s[j]);
    for (j = 0; j < n; j++) hs_cis_m1(y * l[j], &er[j], &ei[j]);
    for (k = 0; k < count; k++) {
#if HS_HAVE_V8
        hs_v8 ar = {0}, ai = {0};
        for (j = 0; j < n; j += 8) {
            hs_v8 x = *(const hs_v8 *)(er + j), w = *(const hs_v8 *)(ei + j), C = *(const hs_v8 *)(c + j);
            hs_v8 S = *(const hs_v8 *)(s + j), R = *(const hs_v8 *)(r + j);
            ar += R * x; ai += R * w;
            *(hs_v8 *)(er + j) = x + (C + (C * x - S * w));
            *(hs_v8 *)(ei + j) = w + (S + (C * w + S * x));
        }
        zr[k] = lanes((const double *)&ar); zi[k] = lanes((const double *)&ai);
#else
        double ar[8] = {0}, ai[8] = {0};
        int i;
        for (j = 0; j < n; j += 8)
            for (i = 0; i < 8; i++) {
                double x = er[j + i], w = ei[j + i];
                ar[i] += r[j + i] * x; ai[i] += r[j + i] * w;
                er[j + i] = x + (c[j + i] + (c[j + i] * x - s[j + i] * w));
                ei[j + i] = w + (s[j + i] + (c[j + i] * w + s[j + i] * x));
            }
        zr[k] = lanes(ar); zi[k] = lanes(ai);
#endif
    }
}

HS_CLONES static void phase_sum(const hs_grid *G, double *zr, double *zi)
{
    double ar[8] = {0}, ai[8] = {0};
    const double *restrict r = G->r, *restrict er = G->er, *restrict ei = G->ei;
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) { ar[i] += r[j + i] * er[j + i]; ai[i] += r[j + i] * ei[j + i]; }
    *zr = lanes(ar); *zi = lanes(ai);
}

/* phi(y) - 1, leaving e^{iy l} - 1 in er, ei; and the same at twice the frequency: E <- E (2 + E). */
HS_CLONES void hs_grid_phase(hs_grid *G, double y, double *zr, double *zi)
{
    const double *restrict l = G->l;
    double *restrict er = G->er, *restrict ei = G->ei;
    int j, n = G->n;
    for (j = 0; j < n; j++) hs_cis_m1(y * l[j], &er[j], &ei[j]);
    phase_sum(G, zr, zi);
}

HS_CLONES void hs_grid_phase_double(hs_grid *G, double *zr, double *zi)
{
    int j;
    for (j = 0; j < G->n; j++) {
        double x = G->er[j], w = G->ei[j];
        G->er[j] = 2 * x + (x * x - w * w);
        G->ei[j] = 2 * w + 2 * x * w;
    }
    phase_sum(G, zr, zi);
}

/* Psi(y) >= |phi(y')| for every y' >= y: the inner path shifted to the damping side, b = d m < pi/2,
 *   Psi = e^{d^2/2} sum r_j rho_j e^{-y th_j} + 2 e^{d^2} kap/(e^{2 pi d/h} - 1),
 * th >= s sin b, log rho_j = a log(|1+rho e^{ib}|/(1+rho)) <= -2a s(1-s) sin^2(b/2) (a > 0; for a < 0 the factor is 1.3863 * 2),
 * kap = cos(b)^min(a,0). The last term bounds the trapezoid error: f is zero free in the strip and, by Cauchy-Schwarz, its modulus
 * there is controlled by the shifts 0 and 2d, both damping. Ends are added by the caller. Best of three d. */
HS_CLONES double hs_grid_far_upper(hs_grid *G, double a, double y)
{
    double best = 1, h = G->h, q = G->q, mean = 0, d0, *restrict gs = G->s;
    const double *restrict gu = G->u, *restrict gr = G->r;
    int t, j, n = G->n;
    for (j = 0; j < G->n; j++) mean += G->r[j] * (G->u[j] + q) / (1 + G->u[j]);
    d0 = y * G->m * mean; /* where e^{d^2/2 - y d m E s} is least; any d is valid */
    for (t = 0; t < 3; t++) {
        double d = fmin(fmin(d0 * (t == 0 ? 1 : t == 1 ? 0.5 : 2), 6), 0.95 * HS_PI / 2 / G->m), b = d * G->m, sb, s2, f, sum = 0, kap;
        sb = sin(b); s2 = sin(0.5 * b) * sin(0.5 * b); f = a > 0 ? 2 * a * s2 : 2.7726 * a * s2;
        kap = a < 0 ? pow(cos(b), a) : 1;
        for (j = 0; j < n; j++) {
            double s = (gu[j] + q) / (1 + gu[j]);
            s = s > 0 ? s : 0;
            gs[j] = gr[j] * hs_exp(-f * s * (1 - s) - y * s * sb);
        }
        for (j = 0; j < G->n; j++) sum += G->s[j];
        sum = exp(0.5 * d * d) * sum + 2 * exp(d * d) * kap / expm1(2 * HS_PI * d / h);
        if (sum < best) best = sum;
    }
    return fmin(1, best * (1 + 1e-9));
}
