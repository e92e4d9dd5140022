/* laplace.c - the transform of a Laplace step and of a Poisson-subsampled one: two atoms and a density between them.
 *
 * Symbols. m: shift over scale of the noise; q sampling rate (1: plain Laplace); base loss u in [-m, m], under the base
 *   den Q0: atoms 1/2 at -m and e^-m/2 at m, density e^{-(u+m)/2}/4; U = q(e^u - 1). REMOVE: loss log(1+U),
 *   M(z) = E_Q0 (1+U)^{1+z}; ADD: loss -log(1+U), M(z) = E_Q0 (1+U)^{-z}. v = c + 1/2, z = c + iy,
 *   h2(x) = e^x - 1 - x. a: tilted mass of both atoms.
 *
 * Formulas. Plain [theory: law.laplace]: M(t) = e^{-m/2}[cosh vm + sinh(vm)/2v], v = t + 1/2, or its second-order form.
 *   Subsampled: Gauss-Legendre points on panels of u (hs_sublaplace_points); law.c treats them as atoms.
 *   k steps with no loss or one loss off the atoms, by positive terms [theory: law.few]; binomial weights by Stirling's
 *   series and deviances.
 *
 * Error claims, first order in u.
 *   K: hs_law_value.err. phi: |y| c1, for every term of phi - 1 carries |y| m, |y| or |y|(e^{cm}-1) with a factor below
 *   40u. Decay: |phi(y)| <= a + V/|y| for all larger y [theory: law.decay]. Quadrature: 8 hw B r^{-2n}/(1-1/r) a panel
 *   [theory: law.gauss-panels], B on the Bernstein ellipse of parameter r [theory: law.laplace-ellipse].
 *
 * What it does not do: sums apart of two Laplace laws, or beside a law of many outcomes.
 */
#include "law/law.h"

/* Plain Laplace: K with its error, mean, variance, at any real t. */
void hs_laplace_cgf(double m, double t, hs_law_value *out)
{
    double v = fabs(t + 0.5), x = v * m, e2 = exp(-2 * x), C = 0.5 * (1 + e2);
    double sc, sc1, sc2, g;
    double N, mean;
    double S = -0.5 * expm1(-2 * x); /* cosh, sinh, scaled by e^-x */
    if (x < 1e-2) {                  /* sinh(x)/x and its derivatives, scaled alike */
        double f = exp(-x);
        sc = f * (1 + x * x / 6 * (1 + x * x / 20));
        sc1 = f * x / 3 * (1 + x * x / 10);
        sc2 = f * (1 + 0.3 * x * x) / 3;
    } else {
        sc = S / x;
        sc1 = (C - sc) / x;
        sc2 = (S - 2 * sc1) / x;
    }
    g = 0.5 * m * sc;
    N = C + g;
    if (x > 18) { /* e^-36 is below u: K = (v - 1/2) m + log((1 + 1/2v)/2) */
        mean = m - 1 / (v * (2 * v + 1));
        out->var = (4 * v + 1) / (v * v * (2 * v + 1) * (2 * v + 1));
    } else {
        mean = (m * S + 0.5 * m * m * sc1) / N;
        out->var = fmax((m * m * C + 0.5 * m * m * m * sc2) / N - mean * mean, 0);
    }
    out->mean = t < -0.5 ? -mean : mean;
    if (t > 0 && t * m <= 3) {
        /* [theory: law.laplace] */
        double mu = ((1 + t) * hs_h2(t * m) + t * hs_h2(-(1 + t) * m)) / (1 + 2 * t);
        out->K = log1p(mu);
        out->err = HS_U * (80 + 4 * t * m) * mu / (1 + mu) + 3 * HS_U * out->K;
    } else {
        out->K = (v - 0.5) * m + log(N);
        out->err = HS_U * (8 * (v + 0.5) * m + 3 * fabs(log(N)) + 12);
    }
}

/* Constants of phi at the tilt w->c. */
void hs_laplace_tilt(hs_law *w, double c)
{
    double m = w->m, v = c + 0.5, M = exp(w->log_m), x = exp(-2 * v * m);
    w->q = 1;
    w->add = 0;
    w->var_upper = w->var_upper * (1 + 1e-3) + 1e-12 * m * m;
    if ((1 + c) * m <= 1) {
        double e1 = expm1(c * m), e2 = -expm1(-(1 + c) * m), a = hs_h2(c * m);
        double b = hs_h2(-(1 + c) * m), mu = expm1(w->log_m);
        w->a = e1 / M;
        w->b = -e2 / M;
        w->w0 = 1 / M;
        w->flat = (a + b - 2 * mu) / M;
        w->c1 = 40 * HS_U / M * (m * (fabs(e1) + 2 + 0.5 * (e2 + 2)) + (a + b + 2 * fabs(mu)) / (2 * fabs(v)));
    } else {
        w->w0 = 0;
        w->a = 1 / (1 + c / (1 + c) * x);
        w->b = c * x / ((1 + c) + c * x);
        w->w1 = x / ((1 + c) + c * x); /* b/c */
        w->flat = w->a / (1 + c) + w->w1 - 1 / v;
        w->c1 = 40 * HS_U * (m + 2 * (fabs(w->a) / (1 + c) + w->w1 + 1 / fabs(v)));
    }
    if (c < 0) w->c1 *= 1 + 1 / fabs(v);          /* |1+z| and |z| over |1+2z| */
    w->half = 0.5;                                /* |S| <= A(c)/2y */
    w->log_atoms = -log1p(tanh(v * m) / (2 * v)); /* log a */
}

/* phi(y) - 1. Small (1+c)m: differences of the h2 form; else of the plain one. */
void hs_laplace_phi(const hs_law *w, double y, double *zr, double *zi)
{
    double c = w->c, er, ei;
    double nr, ni, dr;
    double di, den, th = y * w->m;
    if (th < 1e6) hs_cis_m1(th, &er, &ei);
    else {
        er = -2 * sin(0.5 * th) * sin(0.5 * th);
        ei = sin(th);
    }
    if (w->w0 > 0) {
        double pr = w->a * er + w->w0 * er, pi = w->a * ei + w->w0 * (ei - th);
        double sr = w->b * er + w->w0 * er, si = -w->b * ei - w->w0 * (ei - th);
        nr = (1 + c) * pr - y * pi + c * sr - y * si;
        ni = (1 + c) * pi + y * pr + c * si + y * sr + y * w->flat;
        dr = 1 + 2 * c;
        di = 2 * y;
    } else {
        double p = w->a / (1 + c);
        nr = (w->a + w->b) * er - y * (p - w->w1) * ei;
        ni = (w->a - w->b) * ei + y * (w->flat + (p + w->w1) * er);
        dr = 1;
        di = y / (c + 0.5);
    }
    den = dr * dr + di * di;
    *zr = (nr * dr + ni * di) / den;
    *zi = (ni * dr - nr * di) / den;
}

/* The smaller of a(1 + 1/|1+2z|) and, for c > 0, A (1+c part) + lower atom, both decreasing in y. */
double hs_laplace_decay_upper(const hs_law *w, double y)
{
    double c = w->c, x = exp(-(1 + 2 * c) * w->m), A = 1 / (1 + c / (1 + c) * x),
           low = (0.5 + c) * x / ((1 + c) + c * x);
    double p = y / (1 + c), r = y / (c + 0.5);
    double first = A * sqrt((1 + p * p) / (1 + r * r)) + low,
           second = exp(w->log_atoms) * (1 + 1 / hypot(1 + 2 * c, 2 * y));
    return (c > 0 ? fmin(first, second) : second) * (1 + 1e-12);
}

/* Points of a subsampled step: atom, panels of Gauss nodes on u in (-m, m), atom; node known to 4u, weight within
 * 30u. */
int hs_sublaplace_points(double m, double q, int add, int64_t panels, const hs_rule *rule, double *l, double *lp,
                         double *dl, double *dp)
{
    int64_t j, at = 0, p;
    double hw = m / (double)panels;
    for (p = -1; p <= panels; p++) {
        int ends = p < 0 || p == panels;
        for (j = 0; j < (ends ? 1 : rule->n); j++, at++) {
            double u = ends ? (p < 0 ? -m : m) : m * ((2 * (double)p + 1) / (double)panels - 1) + hw * rule->x[j],
                   U = q * expm1(u), lg = log1p(U);
            double mass = ends ? -log(2.0) - (p < 0 ? 0 : m) : log(0.25 * hw * rule->w[j]) - 0.5 * (u + m);
            double d = (4 * HS_U * fabs(U) + q * exp(u) * 8 * HS_U * m) / (1 + U) + 2 * HS_U * fabs(lg);
            l[at] = add ? -lg : lg;
            lp[at] = add ? mass : mass + lg;
            dl[at] = d;
            dp[at] = HS_U * (40 + 8 * m + 2 * fabs(mass) + 2 * fabs(lp[at])) + (add ? 0 : d);
        }
    }
    return HS_OK;
}

/* Log of a bound of |(1+U)^alpha| e^{y |arg|} and of the base density on the ellipse of a panel, over the tilted total
 * e^log_m. */
static double ellipse_log_upper(double m, double q, double alpha, double y, double u0, double hw, double r)
{
    double reach = 0.5 * hw * (r + 1 / r), b = 0.5 * hw * (r - 1 / r), hi = u0 + reach;
    double lo = u0 - reach, th = b;
    if (b <= HS_PI / 2) th = fmin(b, q * exp(hi) / (1 - q) * sin(b));
    if (alpha >= 0) return alpha * log1p(q * expm1(hi)) + y * th - 0.5 * (lo + m);
    return alpha * (log(cos(0.5 * b)) + log1p(q * expm1(lo))) + y * th - 0.5 * (lo + m);
}

static double family_upper(const hs_law *w, double t, double y, double log_m)
{
    static const double sizes[7] = {1.5, 2.2, 3.2, 5, 8, 15, 30}; /* any r is valid; about one of each size */
    double alpha = w->add ? -t : 1 + t, hw = w->m / w->panels, total = 0, n = w->order;
    int64_t p;
    int i;
    for (p = 0; p < (int64_t)w->panels; p++) {
        double u0 = w->m * ((2 * (double)p + 1) / w->panels - 1), best = HUGE_VAL;
        for (i = 0; i < 7; i++) {
            double r = sizes[i], at;
            if (0.5 * hw * (r - 1 / r) > 0.95 * HS_PI) break; /* branch points at Im u = pi */
            /* [theory: law.gauss-panels] */
            at = ellipse_log_upper(w->m, w->q, alpha, y, u0, hw, r) - log_m - 2 * n * log(r) - log1p(-1 / r);
            best = fmin(best, at);
        }
        total += exp(fmin(best, 700)) * 2 * hw * w->smooth; /* 8 hw times the 1/4 of the density */
    }
    return total * (1 + 1e-9);
}

/* Quadrature error of M(t+iy'), |y'| <= y, over M(t) = e^log_m; at y = 0 also of the two terms that vanish exactly
 * [theory: law.laplace-ellipse]. */
double hs_sublaplace_quadrature_upper(const hs_law *w, double t, double y, double log_m)
{
    double out = family_upper(w, t, y, log_m);
    if (y == 0) out += fabs(t) * family_upper(w, -1, 0, log_m) + (1 + fabs(t)) * family_upper(w, 0, 0, log_m);
    return out;
}

/* Log of the tilted atoms' mass and V, |phi(y)| <= a + V/y; kept for the few-losses sum. */
static void atoms_of(const hs_law *w, double *low, double *high, double *var)
{
    double m = w->m, q = w->q, alpha = w->add ? -w->c : 1 + w->c;
    double l0 = log1p(q * expm1(-m)), l1 = log1p(q * expm1(m));
    *low = w->atoms * 0.5 * exp(alpha * l0 - w->log_m);
    *high = w->atoms * 0.5 * exp(alpha * l1 - m - w->log_m);
    *var = w->smooth * 0.5 / q * (exp((alpha + 1) * l0 + m - w->log_m) + exp((alpha + 1) * l1 - 2 * m - w->log_m));
}

/* The density up to the base loss u counts with a bound of its mass, the rest by parts: the best u of sixteen. */
double hs_sublaplace_far_upper(const hs_law *w, double y)
{
    double alpha = w->add ? -w->c : 1 + w->c, m = w->m;
    double low, high, var, best;
    double least = alpha * log1p(w->q * expm1(-m)), most = w->smooth * exp(alpha * log1p(w->q * expm1(m)) - w->log_m);
    int i;
    atoms_of(w, &low, &high, &var);
    best = var / y; /* [theory: law.decay] */
    for (i = 1; i < 16; i++) {
        double u = m * (0.125 * i - 1), l = log1p(w->q * expm1(u)), left, end;
        left = -0.5 * expm1(-0.5 * (u + m)) * w->smooth * exp(fmax(alpha * l, least) - w->log_m);
        end = w->smooth * exp((alpha + 1) * l - 1.5 * u - 0.5 * m - w->log_m) / (4 * w->q);
        end += most * exp(log1p(w->q * expm1(m)) - 2 * m) / (4 * w->q);
        best = fmin(best, left + 2 * end / y); /* [theory: law.laplace-far] */
    }
    return (low + high + best) * (1 + 1e-12 + 2 * w->err) * (1 + 8 * HS_U * (fabs(w->log_m) + w->c * w->m));
}

/* Outcomes with at most one loss off the atoms. */

int hs_laplace_floor_matters(hs_law *w, double T0)
{
    double low, high, var;
    if (w->kind == HS_LAW_SUBLAPLACE && w->atoms > 0) {
        atoms_of(w, &low, &high, &var);
        w->log_atoms = fmin(0, log(low + high)) + 2 * w->err + 1e-12;
        w->half = var / (low + high) * (1 + 1e-9);
    } else if (w->kind != HS_LAW_LAPLACE) return 0;
    return -w->k * w->log_atoms < T0 + 6;
}

double hs_laplace_tail_upper(const hs_law *w, double Y)
{
    double k = w->k, r = w->half / Y;
    return exp(k * w->log_atoms + k * r) * 0.5 * k * (k - 1) * r * r / (3 * HS_PI * Y) * (1 + 1e-9);
}

double hs_laplace_reach(const hs_law *w, double target)
{
    double Y = fmax(w->k * w->half * 0.25, 1e-3);
    while (hs_laplace_tail_upper(w, Y) > target && Y < 1e18) Y *= 1.1;
    return Y;
}

/* rho = S/A at z = c + iy, and a bound of its relative error. log_mod + i arg: the log of phi there, known to d_log. */
static void ratio(const hs_law *w, double y, double log_mod, double arg, double d_log, double *rr, double *ri,
                  double *rel)
{
    double er, ei, pr, pi;
    double sr, si, den, dphi;
    if (w->kind == HS_LAW_LAPLACE) { /* tanh(zeta) = (1-x)/(1+x), x = e^{-2 zeta}; divided by 1 + 2z */
        double dr = fabs(1 + 2 * w->c), di = w->c < -0.5 ? -2 * y : 2 * y; /* even in zeta */
        double a = dr * w->m, g = exp(-a), th = di * w->m;
        double br, bi;
        er = -2 * sin(0.5 * th) * sin(0.5 * th);
        ei = -sin(th);
        pr = -expm1(-a) - g * er;
        pi = -g * ei;
        sr = 1 + g * (1 + er);
        si = g * ei;
        br = sr * dr - si * di;
        bi = sr * di + si * dr;
        den = br * br + bi * bi;
        *rr = (pr * br + pi * bi) / den;
        *ri = (pi * br - pr * bi) / den;
        *rel = HS_U *
               (30 + 8 * g * (1 + fabs(th) + a) * (1 / fmax(hypot(sr, si), 1e-300) + 1 / fmax(hypot(pr, pi), 1e-300)));
        return;
    }
    hs_ends_atoms(w, y, &sr, &si); /* rho = phi/alpha - 1, phi from its log */
    den = sr * sr + si * si;
    pr = exp(log_mod);
    er = pr * cos(arg);
    ei = pr * sin(arg);
    *rr = (er * sr + ei * si) / den - 1;
    *ri = (ei * sr - er * si) / den;
    dphi = pr * (d_log + 4 * HS_U * (2 + fabs(arg))) + (w->c1 * y + 8 * HS_U + 2 * w->err) * (1 + pr / sqrt(den));
    *rel = dphi / sqrt(den) / fmax(hypot(*rr, *ri), 1e-300) + 8 * HS_U;
}

/* f = e^{re + i im} times chi = 1 - (1+k rho)(1+rho)^-k = -expm1(g), g = log(1+k rho) - k log(1+rho). round and node
 * bound the errors of the log of f. Where chi is lost in its own error d > |chi|/4, 2d stands for it: off by at most
 * 7d, which (e^1.6 - 1) 2d covers. */
void hs_laplace_rest(const hs_law *w, double y, double node, double *re, double *im, double *round)
{
    double k = w->k, r, i, rel;
    double lost = *round >= 1 ? HUGE_VAL : 0, gr, gi, e;
    double xr, xi, d, size;
    double one, two;
    ratio(w, y, *re / k, *im / k, (*round + (node < 1 ? node * (1 + node) : HUGE_VAL)) / k, &r, &i, &rel);
    one = hypot(1 + r, i);
    gr = 0.5 * log1p(k * (2 * r + k * (r * r + i * i)));
    gi = atan2(k * i, 1 + k * r);
    if (hypot(r, i) < 0.5) gr -= 0.5 * k * log1p(2 * r + r * r + i * i);
    else gr -= k * log(one);
    gi -= k * atan2(i, 1 + r);
    two = fmax(hypot(1 + k * r, k * i), 1e-300); /* g' = k (1/(1+k rho) - 1/(1+rho)) */
    size = k * hypot(r, i);
    d = size * rel * fmin(1 / one + 1 / two, (k + 1) * hypot(r, i) / (one * two)) + size * 12 * HS_U / one +
        8 * HS_U * (fabs(gr) + fabs(gi) + 1) + 4 * HS_U * size * (2 + size) / (two * two);
    if (gr > 40) { /* chi = -e^g up to e^-40 relative, and f e^g may be in range where neither is */
        d += exp(-gr) + HS_U * (fabs(*re) + gr);
        xr = -1;
        xi = 0;
        *re += gr;
        *im += gi;
    } else {
        e = exp(gr);
        xr = -expm1(gr) + 2 * e * sin(0.5 * gi) * sin(0.5 * gi);
        xi = -e * sin(gi);
        d = e * d + 4 * HS_U * hypot(xr, xi);
    }
    size = hypot(xr, xi);
    if (d < 0.25 * size) {
        *re += log(size);
        *im += atan2(xi, xr);
        *round += d / size * 1.2 + 8 * HS_U;
    } else {
        *re += log(2 * fmax(d, 0.1 * size));
        *round += 1.6 + (d < 1e300 ? 0 : HUGE_VAL);
    }
    *round += lost;
}

/* log n! - Stirling's leading terms. */
static double stirling_rest(double n)
{
    double s = 1 / (n * n);
    if (n < 16) return lgamma(n + 1) - (n + 0.5) * log(n) + n - HS_LOG_SQRT_2PI;
    return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s / 1188)))) / n;
}

/* x log(x/y) + y - x >= 0 without cancellation. */
static double laplace_deviance(double x, double y)
{
    double d = (x - y) / (x + y), s, term;
    int j;
    if (fabs(d) > 0.1) return x * log(x / y) + y - x;
    s = (x - y) * d;
    term = 2 * x * d;
    for (j = 1; j < 40; j++) {
        term *= d * d;
        if (fabs(term) < 1e-18 * fabs(s)) break;
        s += term / (2 * j + 1);
    }
    return s;
}

/* Log of the binomial weight C(n,i) p^i (1-p)^(n-i) and a bound of its error; p and 1 - p given, each within 4u. */
static double binomial_log(double n, double i, double p, double not_p, double *err)
{
    double out;
    if (n == 0) {
        *err = 0;
        return 0;
    }
    if (i == 0 || i == n) {
        double here = i == 0 ? not_p : p, there = i == 0 ? p : not_p;
        out = n * (there > 0.5 ? log(here) : log1p(-there));
        *err = HS_U * (8 * fabs(out) + 8 * n * there);
        return out;
    }
    out = stirling_rest(n) - stirling_rest(i) - stirling_rest(n - i) - laplace_deviance(i, n * p) -
          laplace_deviance(n - i, n * not_p) + 0.5 * log(n / (2 * HS_PI * i * (n - i)));
    *err = HS_U * (250 + 60 * fabs(out) + 12 * fabs(i - n * p));
    return out;
}

/* The loss's smooth part alone: delta of it at e (relative to one), and -d delta/d e. */
static void smooth_delta(const hs_law *w, double e, double *delta, double *slope)
{
    double m = w->m, q = w->q, all = -0.5 * expm1(-m);
    double x, t;
    double lo = w->add ? -log1p(q * expm1(m)) : log1p(q * expm1(-m)),
           hi = w->add ? -log1p(q * expm1(-m)) : log1p(q * expm1(m));
    if (e >= hi) {
        *delta = *slope = 0;
        return;
    }
    if (e <= lo) {
        *delta = all * -expm1(e);
        *slope = all * exp(e);
        return;
    }
    x = log1p(expm1(w->add ? -e : e) / q);
    if (!w->add) {
        t = -expm1(0.5 * (x - m));
        *delta = 0.5 * q * t * t;
        *slope = 0.5 * exp(e) * exp(-0.5 * (x + m)) * t;
    } else {
        t = expm1(0.5 * (x + m));
        *delta = 0.5 * q * exp(e - m) * t * t;
        *slope = exp(e) * 0.5 * exp(-0.5 * (x + m)) * t * ((1 - q) + q * exp(0.5 * (x - m)));
    }
}

/* Two atoms, the lower loss l0 with probability not_p, the upper l1 with p; how far either loss, or eps, may be off. */
typedef struct {
    double l0, l1, p, not_p;
    double d0, d1, moved;
} two_atoms;

/* delta, minus its derivative, a bound of its error. */
typedef struct {
    double value, slope, err;
} atom_sum;

/* Adds the sum over i of the binomial(n) weights of the atoms times e^log_factor times the pay-off at eps: of atoms
 * alone, or with one smooth loss. */
static void add_atoms(const hs_law *w, two_atoms at, double n, int smooth, double log_factor, double eps, atom_sum *sum)
{
    double top = w->add ? -log1p(w->q * expm1(-w->m)) : log1p(w->q * expm1(w->m)); /* the largest smooth loss */
    double first = fmax(0, floor((eps - (smooth ? top : 0) - n * at.l0) / (at.l1 - at.l0))), i;
    int64_t steps = 0;
    for (i = first; i <= n; i++) {
        double x = i * at.l1 + (n - i) * at.l0, e = eps - x, le;
        double lw = binomial_log(n, i, at.p, at.not_p, &le) + log_factor, wt = exp(fmin(lw, 700));
        double d = e < 0 ? -expm1(e) : 0, s = e <= 0 ? exp(e) : 0;
        double ratio_up = (n - i) / (i + 1) * at.p / at.not_p; /* falls with i: the rest is below a geometric series */
        double shift = i * at.d1 + (n - i) * at.d0 + HS_U * (4 * (i * fabs(at.l1) + (n - i) * fabs(at.l0) + fabs(eps)));
        shift += at.moved;
        if (smooth) { /* the base loss is found within (8 + 2m)u, the loss within the largest slope of that */
            smooth_delta(w, e, &d, &s);
            shift += HS_U * (8 + 2 * w->m) * fmin(1, w->q * exp(w->m));
        }
        sum->value += wt * d;
        sum->slope += wt * s;
        if (!smooth && e > 0 && e < shift) s = 1;
        sum->err += wt * (d * (le + HS_U * (40 + 2 * fabs(lw))) + (s + (smooth ? d : 0)) * shift);
        if (ratio_up < 1 && wt * ratio_up / (1 - ratio_up) < 1e-17 * sum->value) {
            sum->err += wt * ratio_up / (1 - ratio_up);
            return;
        }
        if (++steps > 200000) {
            sum->err = HUGE_VAL;
            return;
        }
    }
}

/* Adds e^log_weight times delta at eps of the outcomes with no or one loss off the atoms. moved: what eps may be off
 * by; off: the weight, relative. */
static void add_few(const hs_law *w, double eps, double moved, double log_weight, double off, hs_apart *out)
{
    double m = w->m, q = w->q, k = w->k, all = -0.5 * expm1(-m); /* both atoms, under num and den alike: 1 - all */
    double l0 = q < 1 ? log1p(q * expm1(-m)) : -m, l1 = q < 1 ? log1p(q * expm1(m)) : m, la = log1p(-all);
    double d0 = HS_U * (4 * q * -expm1(-m) / exp(l0) + 2 * fabs(l0)), d1 = 6 * HS_U * l1, lam = k * all / (1 - all);
    double low = 0.5 * (w->add ? 1 : exp(l0)), high = 0.5 * exp(-m) * (w->add ? 1 : exp(l1)); /* num masses at -m, m */
    two_atoms at = {l0, l1, high / (low + high), low / (low + high), q < 1 ? d0 : 0, q < 1 ? d1 : 0, moved};
    atom_sum sum = {0, 0, 0};
    if (w->add) at = (two_atoms){-l1, -l0, low / (low + high), high / (low + high), d1, d0, moved};
    out->others = fmax(0, -expm1(k * la + log1p(lam)));
    add_atoms(w, at, k, 0, k * la + log_weight, eps, &sum);
    add_atoms(w, at, k - 1, 1, (k - 1) * la + log(k) + log_weight, eps, &sum);
    out->value += sum.value;
    out->slope += sum.slope;
    out->err += sum.err + sum.value * (off + HS_U * (20 + 6 * k * fabs(la)));
}

enum { FEW_BESIDE = 64 }; /* outcomes of the other law, each of which takes a sum of its own */

/* Whether it has few outcomes, and the sums over them are known: one step of few atoms, or two atoms a few times. */
int hs_laplace_beside(const hs_law *w)
{ return w->kind == HS_LAW_POINTS && ((w->k == 1 && w->n <= FEW_BESIDE) || (w->n == 2 && w->k < FEW_BESIDE)); }

/* The outcomes with no or one loss off the atoms, beside each outcome of another law, if there is one
 * [theory: law.few]. */
void hs_laplace_few(const hs_law *w, const hs_law *beside, double eps, double log_scale, hs_apart *out)
{
    const double least = -50; /* log of what an outcome must weigh */
    double k, p = 0, not_p = 0;
    int i, last;
    memset(out, 0, sizeof *out);
    out->others = 1; /* where no outcome weighs enough to be summed */
    if (!beside) {
        add_few(w, eps, 0, -log_scale, 0, out);
        return;
    }
    k = beside->k;
    last = k == 1 ? (int)beside->n - 1 : (int)k;
    if (k > 1) {
        p = exp(beside->lp[1]);
        not_p = exp(beside->lp[0]);
    }
    for (i = 0; i <= last; i++) {
        double x, size, moved, weight;
        double off;
        if (k > 1) { /* i losses of the second atom */
            x = (k - i) * beside->l[0] + i * beside->l[1];
            size = (k - i) * fabs(beside->l[0]) + i * fabs(beside->l[1]);
            moved = (k - i) * beside->dl[0] + i * beside->dl[1];
            weight = binomial_log(k, i, p, not_p, &off);
            off += 2 * k * fmax(beside->dp[0], beside->dp[1]);
        } else {
            x = beside->l[i];
            size = fabs(x);
            moved = beside->dl[i];
            weight = beside->lp[i];
            off = beside->dp[i];
        }
        if (weight - log_scale < least) {
            out->err += exp(weight - log_scale + off);
            continue;
        }
        off = expm1(off + HS_U * (fabs(weight) + fabs(log_scale)));
        add_few(w, eps - x, moved + HS_U * (4 * size + fabs(eps)), weight - log_scale, off, out);
    }
}
