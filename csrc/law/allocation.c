/* allocation.c - the transform of one epoch of random allocation: a record takes part in one of t steps, drawn
 * uniformly.
 *
 * Symbols. v = m^2, X lognormal of mean one, log X ~ N(-v/2, v); S = X_1 + .. + X_t; Q: all X so, P: one of them times
 *   e^v; loss log(S/t) under P for REMOVE, and its negative under Q for ADD. F(z) = E_P (S/t)^z, so that M(z) = F(z)
 *   for REMOVE, F(-1-z) for ADD. n an order, c > -n, lam = n + c, nu = lam + iy; a = sqrt(t)/m; w = x + i th; s =
 *   e^w/t; psi_j(s) = E X^j e^{-sX}, phi = psi_0, mu_j = psi_j(0) = e^{j(j-1)v/2}. u = 2^-53.
 *
 * Formulas [theory: allocation.mellin].
 *     F(-c-iy) = (1/Gamma(nu)) int e^{nu w} H(w) dw,  H(w) = E_P (S/t)^n exp(-e^w S/t)
 *              = t^-n n! [x^n] (sum psi_j x^j/j!)^{t-1} (sum psi_{j+1} x^j/j!),
 *   the w-integral by the trapezoid rule of mesh h on a line Im w = th, near arg nu, as 1/Gamma(nu) grows like e^{pi
 *   y/2}; psi_j by the trapezoid rule of mesh H in the normal variable, on the line Im g = -tau.
 *   |F(-c-iy)| <= F(-c) e^{-y^2/(2a^2)} [theory: allocation.decay].
 *
 * Error claims. Every value carries a bound, the sum of
 *   normal    2 e^{(tau+d)^2/2}/(e^{2 pi d/H} - 1) + e^{(tau^2-b^2)/2} of mu_j: aliases at distance d, and nodes
 *   beyond b
 *             deviations [theory: allocation.normal];
 *   aliases   of the w-sum, Gamma's decay times that of F [theory: allocation.aliases];
 *   ends      of the w-sum [theory: allocation.ends];
 *   rounding  carried along term by term, first order in u with 2% to spare.
 *
 * What it does not do: participations in more than one step; lines whose nodes do not fit HS_ALLOCATION_ROOM.
 */
#include "law/allocation.h"

#ifndef DEPTH
#define DEPTH 42.0 /* nats: what quadratures are made for; tests make it smaller */
#endif
#define JUMP 40.0 /* nats that a moment may exceed the one needed by, to have lines that turn less */
#define BEYOND(deep) sqrt(2 * (48 + (deep))) /* deviations at which sums in the normal variable end */
#define PEAK 0.39894228040143267794          /* 1/sqrt(2 pi) */
#define MORE 1.02                            /* bounds of first order in u */
enum { BLOCK = 16 };                         /* nodes of the w-sum handled together */

/* log Gamma(nu) - nu w0 and a bound of its absolute error, Re nu > 0: Stirling's series where |nu| >= 16, whose rest
 * after eight terms is below 1e-18 there [theory: allocation.gamma]. */
static double log_gamma(double x, double y, double w0, double *re, double *im)
{
    static const double b[8] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400};
    double lr = 0, li = 0, size = 0, sr = 0;
    double si = 0, d, ir, ii;
    double qr, qi, l, a;
    double t;
    int k;
    for (; x * x + y * y < 256; x += 1) {
        l = log(hypot(x, y)) - w0;
        a = atan2(y, x);
        lr -= l;
        li -= a;
        size += fabs(l) + fabs(w0) + a + 1;
    }
    d = x * x + y * y;
    ir = x / d;
    ii = -y / d;
    qr = ir * ir - ii * ii;
    qi = 2 * ir * ii;
    for (k = 7; k >= 0; k--) {
        t = sr * qr - si * qi + b[k];
        si = sr * qi + si * qr;
        sr = t;
    }
    l = 0.5 * log(d) - w0;
    a = atan2(y, x);
    *re = lr + (x - 0.5) * l - y * a - 0.5 * w0 - x + HS_LOG_SQRT_2PI + (sr * ir - si * ii);
    *im = li + (x - 0.5) * a + y * l - y + (sr * ii + si * ir);
    return HS_U * (6 * size + (8 * (fabs(l) + a) + 4 * (fabs(w0) + 1)) * sqrt(d) + 8 * fabs(w0) + 40) + 1e-18;
}

/* psi_0 .. psi_{n+1} at BLOCK nodes, and in the last row psi_0 - 1; absolute errors. */
typedef struct {
    double re[HS_ALLOCATION_ORDER + 3][BLOCK], im[HS_ALLOCATION_ORDER + 3][BLOCK], err[HS_ALLOCATION_ORDER + 3][BLOCK];
} psi_block;

/* The rule in the normal variable for a line at angle th. */
typedef struct {
    double tau, mesh, beyond, alias; /* alias: of the integral of |f| on the edge of the strip */
    double co, si, edge;             /* cos, sin of th - m tau; least cos on the edges */
    int64_t count;
    double *w; /* a node's g, then for every order re, im, modulus and error of its weight */
} normal_rule;

/* On Im g = -tau the phase of sX is th - m tau, and strips of half width d keep it within pi/2. Order j has the
 * weight H n(g) X^j, the last row that of order 0. deep: nats that psi falls below its value at 0. */
static int normal_place(double m, double t, double th, double deep, int n, double *w, normal_rule *R)
{
    double up = (HS_PI / 2 - th) / m, tau = fmin(fmax(3 - up, 0), th / m), d, want = DEPTH + deep + log(t);
    double b;
    double beyond = BEYOND(deep), top = beyond + (n + 1) * m, v = m * m;
    int64_t i;
    int j;
    d = fmin(0.85 * fmin(up + tau, (HS_PI / 2 + th) / m - tau), 9.6);
    b = tau + d;
    if (!(d > 1e-4 && cos(th - m * tau) > 1e-3)) return HS_NO_PATH;
    R->tau = tau;
    R->mesh = 2 * HS_PI * d / (want + 0.5 * b * b);
    R->alias = 2 * exp(0.5 * b * b) / expm1(2 * HS_PI * d / R->mesh * (1 - 1e-12));
    R->edge = cos(fabs(th - m * tau) + m * d) * (1 - 1e-12);
    R->co = cos(th - m * tau);
    R->si = sin(th - m * tau);
    R->count = (int64_t)((top + beyond) / R->mesh) + 2;
    R->beyond = beyond;
    R->w = w;
    if (!(R->count * (4 * n + 13) <= HS_ALLOCATION_SCRATCH && top * m < 600)) return HS_TOO_MANY_NODES;
    for (i = 0; i < R->count; i++) {
        double g = -beyond + i * R->mesh, flat = 0.5 * (g - tau) * (g + tau), *o = w + i * (4 * n + 13);
        *o++ = g;
        for (j = 0; j <= n + 2; j++, o += 4) {
            double k = j <= n + 1 ? j : 0, ph = tau * (g - k * m),
                   W = exp(k * (m * g - 0.5 * v) - flat) * R->mesh * PEAK;
            o[0] = W * cos(ph);
            o[1] = W * sin(ph);
            o[2] = W;
            o[3] = W * HS_U *
                   (7 * (k * (fabs(m * g) + v) + g * g + tau * tau) + 4 * (fabs(ph) + k * tau * m) + 16 +
                    (double)R->count);
        }
    }
    return HS_OK;
}

/* One node of the normal variable: E = exp(-z) - 1, z = sX, at all lanes; its weights for every order. `off`:
 * relative error of z. Terms beyond |z| cos = 690 are below 1e-299 and left to the error. */
HS_CLONES static void normal_node(const normal_rule *R, double m, int n, const double *w, double off,
                                  const double *restrict sx, psi_block *restrict out)
{
    double er[BLOCK], ei[BLOCK], eo[BLOCK], d[BLOCK];
    double d_less[BLOCK], size[BLOCK], v = m * m, X = hs_exp(m * *w++ - 0.5 * v);
    int i, j;
    for (i = 0; i < BLOCK; i++) {
        double z = sx[i] * X, at = z * R->co, b, c;
        double s, e, m1;
        at = at < 690 ? at : 690;
        b = z * R->si;
        b = b < 8e5 ? b : 8e5;
        e = hs_exp_m1(-at, &m1);
        hs_cis_m1(b, &c, &s);
        er[i] = e * (1 + c);
        ei[i] = -s * e;
        eo[i] = m1 + (c + m1 * c);
        d[i] = e * (HS_U * (6 + 8 * (b < 3 ? b : 3) + 2 * b) + (z < 1e290 ? z : 1e290) * off);
        d_less[i] = d[i] + HS_U * (8 * fabs(m1) + 12 * (b < 3 ? b : 3));
        size[i] = e;
    }
    for (j = 0; j <= n + 2; j++, w += 4) {
        const double wr = w[0], wi = w[1], W = w[2], e = w[3];
        if (j <= n + 1)
            for (i = 0; i < BLOCK; i++) {
                out->re[j][i] += wr * er[i] - wi * ei[i];
                out->im[j][i] += wr * ei[i] + wi * er[i];
                out->err[j][i] += W * d[i] + size[i] * e;
            }
        else
            for (i = 0; i < BLOCK; i++) {
                out->re[j][i] += wr * eo[i] - wi * ei[i];
                out->im[j][i] += wr * ei[i] + wi * eo[i];
                out->err[j][i] += W * d_less[i] + (fabs(eo[i]) + fabs(ei[i])) * e;
            }
    }
}

/* What the rule misses of psi_j, j = 0..n+1, at |s| = r: E X^j e^{-rX} <= (N/(e r))^N mu_{j-N} for every N >= 0, N near
 * its least by Newton's method [theory: allocation.normal]. */
static void normal_miss(const normal_rule *R, double m, int n, double r, psi_block *out, int i)
{
    double N = 0.5, v = m * m, lr = log(r * R->edge), ends = exp(0.5 * (R->tau - R->beyond) * (R->tau + R->beyond));
    double low, top, bound;
    int j, it;
    low = exp(-m * R->beyond - 0.5 * v);
    top = exp(-r * R->co * exp(m * (R->beyond + (n + 1) * m) - 0.5 * v) * (1 - 1e-9));
    for (j = 0; j <= n + 1; j++) {
        for (it = 0; it < 3; it++) N *= exp(-(log(N) - lr - (j - N - 0.5) * v) / (1 + v * N));
        bound = fmin(0.5 * j * (j - 1) * v, N * (log(N) - 1 - lr) + 0.5 * (j - N) * (j - N - 1) * v);
        out->err[j][i] +=
            (R->alias * exp(bound) + ends * (pow(low, j) + exp(0.5 * j * (j - 1) * v) * top)) * MORE + 1e-299;
        N = fmax(N, 1e-3);
    }
    out->err[n + 2][i] += 2 * (R->alias + 2 * ends) * MORE;
}

/* psi at BLOCK nodes of positions x + w0. */
static void psi_sums(const normal_rule *R, double m, double t, int n, const double *x, double w0, psi_block *out)
{
    double sx[BLOCK], lt = log(t), far = 0;
    int64_t j;
    int i, k;
    memset(out, 0, sizeof *out);
    for (i = 0; i < BLOCK; i++) {
        sx[i] = exp(x[i] + w0 - lt);
        far = fmax(far, fabs(x[i]) + fabs(w0) + lt);
    }
    for (j = 0; j < R->count; j++) {
        const double *w = R->w + j * (4 * n + 13);
        normal_node(R, m, n, w, HS_U * (7 * (m * fabs(*w) + m * m) + 4 * far + 24), sx, out);
    }
    for (k = 0; k <= n + 2; k++)
        for (i = 0; i < BLOCK; i++) out->err[k][i] *= MORE;
    for (i = 0; i < BLOCK; i++) normal_miss(R, m, n, sx[i], out, i);
}

/* log H at node i of a block, its argument and relative error: the power of the series by its recurrence
 * k p_k = sum_j ((t-1) j - k + j) a_j p_{k-j}, errors alongside [theory: allocation.mellin]. 1: the value stands
 * above its error; 0: lr is a bound; -1: neither. */
static int log_h(const psi_block *P, int i, double t, int n, double *lr, double *li, double *rel)
{
    double ar[HS_ALLOCATION_ORDER + 1], ai[HS_ALLOCATION_ORDER + 1], ae[HS_ALLOCATION_ORDER + 1];
    double pr[HS_ALLOCATION_ORDER + 1], pi[HS_ALLOCATION_ORDER + 1], pe[HS_ALLOCATION_ORDER + 1];
    double x = P->re[n + 2][i], y = P->im[n + 2][i], fr = 1 + x, mod = hypot(fr, y);
    double e0 = P->err[n + 2][i] + HS_U * mod, X = 2 * x + x * x + y * y, qr = 0, qi = 0;
    double qe = 0, scale = 1, size, T = t - 1;
    int j, k;
    if (!(X > -0.75)) { /* phi is below 1/2 */
        fr = P->re[0][i];
        y = P->im[0][i];
        mod = hypot(fr, y);
        e0 = P->err[0][i];
    }
    if (!(mod > 4 * e0)) {
        if (n > 0) return -1;
        *lr = T * log(mod + e0) + log(hypot(P->re[1][i], P->im[1][i]) + P->err[1][i]);
        return 0;
    }
    *lr = X > -0.75 && X < 1 ? 0.5 * log1p(X) : log(mod);
    *li = atan2(y, fr);
    *rel = T * (e0 / (mod - e0) + 10 * HS_U * (fabs(*lr) + fabs(*li)));
    *lr *= T;
    *li *= T;
    pr[0] = 1;
    pi[0] = pe[0] = 0;
    for (k = 1; k <= n; k++) {
        double sr = 0, si = 0, se = 0, m2 = mod * mod;
        double br = P->re[k][i], bi = P->im[k][i];
        scale /= t * k;
        ar[k] = (br * fr + bi * y) / m2 * scale;
        ai[k] = (bi * fr - br * y) / m2 * scale;
        ae[k] = 1e-300 + MORE * scale *
                             ((P->err[k][i] + hypot(br, bi) * e0 / mod) / (mod - e0) +
                              (3 * k + 12) * HS_U * hypot(br, bi) / mod);
        for (j = 1; j <= k; j++) {
            double f = (T * j - k + j) / k, a1 = fabs(ar[j]) + fabs(ai[j]), p1 = fabs(pr[k - j]) + fabs(pi[k - j]);
            sr += f * (ar[j] * pr[k - j] - ai[j] * pi[k - j]);
            si += f * (ar[j] * pi[k - j] + ai[j] * pr[k - j]);
            se += fabs(f) * (a1 * pe[k - j] + ae[j] * (p1 + pe[k - j]) + (8 + k) * HS_U * a1 * p1);
        }
        pr[k] = sr;
        pi[k] = si;
        pe[k] = MORE * se;
    }
    for (scale = 1, k = 0; k <= n; k++) {
        double br = P->re[k + 1][i] * scale, bi = P->im[k + 1][i] * scale, be = (P->err[k + 1][i]) * scale;
        be += (3 * k + 3) * HS_U * (fabs(br) + fabs(bi));
        qr += pr[n - k] * br - pi[n - k] * bi;
        qi += pr[n - k] * bi + pi[n - k] * br;
        size = fabs(br) + fabs(bi);
        qe += size * pe[n - k] + be * (fabs(pr[n - k]) + fabs(pi[n - k]) + pe[n - k]) +
              (8 + n) * HS_U * size * (fabs(pr[n - k]) + fabs(pi[n - k]));
        scale /= t * (k + 1);
    }
    size = hypot(qr, qi);
    if (!(size < HUGE_VAL)) return -1;
    if (!(size > 4 * qe && *rel < 0.02)) {
        *lr += log(size + qe) + *rel;
        return 0;
    }
    *lr += log(size);
    *li += atan2(qi, qr);
    *rel = MORE * (*rel + qe / (size - qe) + 8 * HS_U);
    return 1;
}

/* log of a bound of n! [x^n] (sum psi_j (x/t)^j/j!)^{t-1} (sum psi_{j+1} (x/t)^j/j!) for real psi_j with upper
 * bounds up: the terms of the recurrence that are negative, where n > t, are left out. */
static double log_h_upper(const double *up, double t, int n)
{
    double a[HS_ALLOCATION_ORDER + 1], p[HS_ALLOCATION_ORDER + 1], scale = 1, sum = 0;
    double T = t - 1;
    int j, k;
    p[0] = 1;
    for (k = 1; k <= n; k++) {
        scale /= t * k;
        a[k] = up[k] / up[0] * scale + 1e-300;
        for (p[k] = 0, j = 1; j <= k; j++) p[k] += fmax(0, (T * j - k + j) / k) * a[j] * p[k - j];
    }
    for (scale = 1, k = 0; k <= n; k++) {
        sum += p[n - k] * (up[k + 1] * scale + 1e-300);
        scale /= t * (k + 1);
    }
    return T * log(up[0]) + log(sum) + lgamma(n + 1.0) + 1e-9;
}

/* Bounds of H on the real line: everywhere (A->log_top = log E_P (S/t)^n), and beyond x_end, where H falls by at least
 * e^{-fall} a unit [theory: allocation.ends]. x_end is where e^{lam x} H is below e^goal. */
static int find_ends(hs_allocation *A, double goal)
{
    double up[HS_ALLOCATION_ORDER + 2], x[BLOCK], from = 0, step;
    double v = A->m * A->m;
    psi_block P;
    normal_rule R;
    int i, j, it, st;
    for (j = 0; j <= A->n + 1; j++) up[j] = exp(0.5 * j * (j - 1) * v);
    A->log_top = log_h_upper(up, A->t, A->n);
    step = fmin(0.75, 3 / sqrt(A->lam)) / 8;
    if ((st = normal_place(A->m, A->t, 0, 2 * (DEPTH + A->lam) / A->t, A->n, A->scratch, &R))) return st;
    for (it = 0; it < HS_ALLOCATION_BOUNDS / BLOCK; it++, from += BLOCK * step, step *= 1.5) {
        for (i = 0; i < BLOCK; i++) x[i] = from + i * step;
        psi_sums(&R, A->m, A->t, A->n, x, A->w0, &P);
        for (i = 0; i < BLOCK; i++) {
            for (j = 0; j <= A->n + 1; j++) up[j] = P.re[j][i] + P.err[j][i];
            A->at[BLOCK * it + i] = A->x_end = x[i];
            A->bound[BLOCK * it + i] = A->log_end = log_h_upper(up, A->t, A->n);
            A->fall = exp(x[i] + A->w0) * (P.re[1][i] - P.err[1][i]) / up[0] * (1 - 1e-9);
            A->bounds = BLOCK * it + i + 1;
            if (A->fall > A->lam * (1 + 1e-3) && A->log_end + A->lam * x[i] - log(A->fall / A->lam - 1) < goal)
                return HS_OK;
        }
    }
    return HS_TOO_MANY_NODES;
}

/* log of a bound of H at real x, which falls in x. */
static double bound_at(const hs_allocation *A, double x)
{
    double best = A->log_top;
    int i;
    if (x >= A->x_end) return A->log_end - A->fall * (x - A->x_end);
    for (i = 0; i < A->bounds && A->at[i] <= x; i++) best = fmin(best, A->bound[i]);
    return best;
}

/* log of h sum over nodes x' >= x of e^{lam x'} |H(x' + i th)|, for x + log cos th >= x_end. */
static double log_right_upper(const hs_allocation *A, double x, double log_cos)
{
    return A->lam * x + A->log_end - A->fall * (x + log_cos - A->x_end) + log(A->h) -
           log(-expm1((A->lam - A->fall) * A->h)) + 1e-9;
}

/* The same over nodes x' <= x, x + log cos th <= 0: log E e^{-rS} is convex in r, so that at r = e^{x + w0} it lies
 * below its chord from 0 to r_0 = e^{w0}. */
static double log_left_upper(const hs_allocation *A, double x, double log_cos)
{
    double fall = fmax(0, A->log_top - A->bound[0]) * exp(x + log_cos), flat, best;
    flat = A->lam * x + A->log_top + log(A->h) - log(-expm1(-A->lam * A->h));
    best = fall < A->lam ? flat - fall + log(-expm1(-A->lam * A->h)) - log(-expm1((fall - A->lam) * A->h)) : flat;
    return fmin(flat, best) + 1e-9;
}

/* The nodes of line i: both ends below e^goal. */
static void window(hs_allocation *A, int i, double depth, int64_t *first, int64_t *count)
{
    double th = atan(sinh(i * A->turn)), log_cos = log(cos(th)), lo = -100, hi = 0;
    double mid, goal = A->log_gamma, re, im;
    double y;
    int it;
    for (it = 0; it < 2 && A->turn > 0; it++) {
        y = A->lam * sinh(fmax(0, i + it - 0.5) * A->turn);
        log_gamma(A->lam, y, A->w0, &re, &im);
        goal = it ? fmin(goal, re + y * th) : re + y * th;
    }
    goal -= depth;
    for (it = 0; it < 40; it++) {
        mid = 0.5 * (lo + hi);
        if (log_left_upper(A, mid - log_cos, log_cos) < goal) lo = mid;
        else hi = mid;
    }
    *first = (int64_t)floor((lo - log_cos) / A->h);
    *count = (int64_t)ceil((A->x_end - log_cos) / A->h) - *first + 1;
    *count = (*count + BLOCK - 1) / BLOCK * BLOCK;
}

/* Aliases of the w-sum on the line th at frequency y, over |Gamma(nu)| F(-c) [theory: allocation.aliases].
 * log_ratio: log Gamma(lam)/|Gamma(nu)|. */
static double aliases_upper(const hs_allocation *A, double y, double th, double log_ratio)
{
    double p = 2 * HS_PI / A->h, far = p + y, near = p - y, al;
    double q, sum;
    if (!(near > 0)) return HUGE_VAL;
    al = atan2(far, A->lam);
    if (!(al > th)) return HUGE_VAL;
    q = (al - th) * p;
    sum = exp(log_ratio - A->lam * log(cos(al)) - al * y - 0.5 * far * far / (A->a * A->a) - q) / -expm1(-q);
    al = atan2(near, A->lam);
    q = (al + th) * p;
    sum += exp(log_ratio - A->lam * log(cos(al)) + al * y - 0.5 * near * near / (A->a * A->a) - q) / -expm1(-q);
    return sum * (1 + 1e-9);
}

/* The head of a line: log scale; sums of |g| err and |g x|; what the ends miss; angle, first node, number of nodes. */
enum { TOP, SIZE, MOVED, MISS, ANGLE, FIRST, COUNT, HEAD = 8 };

/* Weights of one line. Where H is lost in its error, its bound stands for the error. */
static int fill_line(hs_allocation *A, double *line)
{
    normal_rule R;
    psi_block P;
    int64_t j, start = (int64_t)line[FIRST], count = (int64_t)line[COUNT];
    double *lr = line + HEAD, *li = lr + count, th = line[ANGLE], x[BLOCK];
    double lost = 0, top = -HUGE_VAL, log_cos = log(cos(th));
    double left, right, size = 0, first = 0;
    double fact = lgamma(A->n + 1.0), rel[BLOCK];
    int i, st = normal_place(A->m, A->t, th, 2 * (DEPTH + A->lam) / A->t, A->n, A->scratch, &R);
    if (st) return st;
    for (j = 0; j < count; j += BLOCK) {
        for (i = 0; i < BLOCK; i++) x[i] = (double)(start + j + i) * A->h;
        psi_sums(&R, A->m, A->t, A->n, x, A->w0, &P);
        for (i = 0; i < BLOCK && j + i < count; i++) {
            double up = A->lam * x[i] + log(A->h);
            int known = log_h(&P, i, A->t, A->n, &lr[j + i], &li[j + i], &rel[i]);
            if (known < 1) {
                double bound = bound_at(A, x[i] + log_cos);
                if (known == 0) bound = fmin(bound, lr[j + i] + fact);
                lost += exp(fmin(up + bound - A->log_gamma, 700));
                lr[j + i] = -HUGE_VAL;
                continue;
            }
            lr[j + i] += up + fact;
            li[j + i] += A->lam * th;
            rel[i] += HS_U * (6 * (fabs(up) + fact + fabs(lr[j + i]) + fabs(li[j + i])) + 20);
            size += rel[i] * exp(lr[j + i] - A->log_gamma);
            top = fmax(top, lr[j + i]);
        }
    }
    if (!(top > -HUGE_VAL)) return HS_OUT_OF_RANGE;
    for (j = 0; j < count; j++) {
        double mod = exp(lr[j] - top), ph = li[j];
        size += HS_U * (12 + (double)count) * mod * exp(top - A->log_gamma);
        first += mod * (fabs((double)start) + (double)j) * A->h; /* how its phase is formed */
        lr[j] = mod > 0 ? mod * cos(ph) : 0;
        li[j] = mod > 0 ? mod * sin(ph) : 0;
    }
    left = log_left_upper(A, (double)(start - 1) * A->h, log_cos) - A->log_gamma;
    right = log_right_upper(A, (double)(start + count) * A->h, log_cos) - A->log_gamma;
    line[TOP] = top - A->log_gamma;
    line[SIZE] = size * MORE;
    line[MOVED] = first * exp(line[TOP]) * 4 * HS_U;
    line[MISS] = (exp(left) + exp(right) + lost) * (1 + 1e-6);
    return HS_OK;
}

/* sum g e^{iyx} over the nodes of a line. */
HS_CLONES static void phases(const double *restrict gr, const double *restrict gi, int64_t count, double x0,
                             double step, double *re, double *im)
{
    double a[8] = {0}, b[8] = {0};
    int64_t j;
    int i;
    for (j = 0; j < count; j += 8)
        for (i = 0; i < 8; i++) {
            double c, s;
            hs_cis(x0 + (double)(j + i) * step, &c, &s);
            a[i] += gr[j + i] * c - gi[j + i] * s;
            b[i] += gr[j + i] * s + gi[j + i] * c;
        }
    *re = hs_lanes(a);
    *im = hs_lanes(b);
}

/* F(-c-iy)/F(-c) within err, for y >= 0. */
void hs_allocation_value(const hs_allocation *A, double y, double *re, double *im, double *err)
{
    int i = A->turn > 0 ? (int)fmin(floor(asinh(y / A->lam) / A->turn + 0.5), A->lines - 1) : 0;
    const double *line = A->g + A->start[i];
    int64_t count = (int64_t)line[COUNT];
    double th = line[ANGLE], x0 = line[FIRST] * A->h, gr, gi;
    double d, sr, si, up;
    double ratio, co, sn;
    *re = *im = 0;
    *err = HUGE_VAL;
    if (!(y * (fabs(x0) + (double)count * A->h) < 8e5)) return;
    d = log_gamma(A->lam, y, A->w0, &gr, &gi) + A->d_gamma + A->d_f;
    phases(line + HEAD, line + HEAD + count, count, y * x0, y * A->h, &sr, &si);
    ratio = A->log_gamma - gr; /* log Gamma(lam)/|Gamma(nu)| */
    up = exp(ratio - y * th + line[TOP] - A->log_f);
    co = cos(gi);
    sn = -sin(gi);
    *re = up * (sr * co - si * sn);
    *im = up * (sr * sn + si * co);
    d += HS_U * (8 * (fabs(ratio) + y * th + fabs(line[TOP]) + fabs(A->log_f) + fabs(gi)) + 20);
    up = exp(ratio - y * th - A->log_f);
    *err = up * (line[SIZE] + line[MISS] + line[MOVED] * y) + hypot(*re, *im) * d + aliases_upper(A, y, th, ratio);
    *err *= MORE;
}

/* About psi(x) - log x and psi'(x), for estimates. */
static void digamma(double x, double w0, double *first, double *second)
{
    double r;
    *first = *second = 0;
    for (; x < 12; x += 1) {
        *first -= 1 / x;
        *second += 1 / (x * x);
    }
    r = 1 / (x * x);
    *first += log(x) - w0 - 0.5 / x - r / 12 + r * r / 120 - r * r * r / 252;
    *second += 1 / x + 0.5 * r + r / x * (1.0 / 6 - r / 30 + r * r / 42 - r * r * r / 30);
}

/* log F(-c) from the line th = 0, with mean and variance. */
static int real_value(hs_allocation *A)
{
    const double *line = A->g, *gr = line + HEAD;
    double sum = 0, mean = 0, var = 0, f;
    double f1, total, miss, x;
    int64_t j, count = (int64_t)line[COUNT];
    for (j = 0; j < count; j++) sum += gr[j];
    for (j = 0; j < count; j++) mean += gr[j] / sum * (line[FIRST] + (double)j) * A->h;
    for (j = 0; j < count; j++) {
        x = (line[FIRST] + (double)j) * A->h - mean;
        var += gr[j] / sum * x * x;
    }
    if (!(sum > 0)) return HS_OUT_OF_RANGE;
    total = exp(line[TOP]) * sum;
    A->log_f = line[TOP] + log(sum);
    miss = (line[SIZE] + line[MISS]) / total;
    miss += aliases_upper(A, 0, 0, 0);
    A->d_f = miss < 0.5 ? miss / (1 - miss) + A->d_gamma + HS_U * (6 * fabs(line[TOP]) + 8 * fabs(A->log_gamma) + 30)
                        : HUGE_VAL;
    digamma(A->lam, A->w0, &f, &f1);
    A->mean = f - mean;
    A->var = fmax(var - f1, 0);
    return A->d_f < 0.5 ? HS_OK : HS_TOO_WIDE;
}

/* Centre, mesh, angles and ends of the w-sums. */
static int place(hs_allocation *A, double y_max)
{
    double reach = A->a * sqrt(2 * DEPTH), period = fmin(reach, 50 + 10 * sqrt(A->lam)), im;
    if (y_max > 0) period = fmin(reach, y_max) + 1.1 * reach;
    A->h = 2 * HS_PI / period;
    A->w0 = log(A->lam);
    A->d_gamma = log_gamma(A->lam, 0, A->w0, &A->log_gamma, &im);
    A->turn = y_max > 0 ? sqrt(24 / A->lam) : 0;
    A->lines = y_max > 0 ? 1 + (int)ceil(asinh(fmin(y_max, reach) / A->lam) / A->turn) : 1;
    return A->lines <= HS_ALLOCATION_LINES ? find_ends(A, A->log_gamma - DEPTH - 2) : HS_TOO_MANY_NODES;
}

/* The order for lam = n + c >= want, less where rare jumps would make E_P (S/t)^n, about e^jump, much larger than
 * F(-c): what is left out is bounded by multiples of that moment. lam >= 3 where the weights fit a double. */
static int order(double m, double t, double c, double want)
{
    int n, least = (int)fmin(fmax(0, ceil(3 - c)), HS_ALLOCATION_ORDER);
    int most = (int)fmin(fmax(0, ceil(want - c)), HS_ALLOCATION_ORDER);
    double first = fmax(0, 0.5 * (least + 1) * least * m * m - (least - 1) * log(t)), jump;
    for (n = most; n > 0; n--) {
        jump = 0.5 * (n + 1) * n * m * m - (n - 1) * log(t);
        if (jump < (n > least ? fmin(first + JUMP, 500) : 500) && (20 + (n + 1) * m) * m < 600) break;
    }
    return n;
}

/* Order, mesh and lines for y <= y_max, then the weights; y_max = 0: F(-c) alone. room: doubles at g, kept;
 * HS_ALLOCATION_SCRATCH of them at scratch, overwritten. */
int hs_allocation_prepare(hs_allocation *A, double m, double t, double c, double y_max, double *g, int64_t room,
                          double *scratch)
{
    int64_t at = 0, first, count;
    int i, st;
    A->m = m;
    A->t = t;
    A->c = c;
    A->a = sqrt(t) / m;
    A->y_max = y_max;
    A->g = g;
    A->scratch = scratch;
    A->log_f = A->d_f = 0;
    A->n = order(m, t, c, y_max > 0 ? fmax(3, 1.5 * fmin(A->a, 40)) : 3);
    A->lam = A->n + c;
    if (!(A->lam > 0.5 && A->lam < 1e7)) return HS_OUT_OF_RANGE;
    if ((st = place(A, y_max))) return st;
    for (i = 0; i < A->lines; i++) {
        window(A, i, DEPTH + 2, &first, &count);
        if (at + HEAD + 2 * count > room) return HS_TOO_MANY_NODES;
        A->start[i] = at;
        g[at + ANGLE] = atan(sinh(i * A->turn));
        g[at + FIRST] = (double)first;
        g[at + COUNT] = (double)count;
        if ((st = fill_line(A, g + at))) return st;
        at += HEAD + 2 * count;
    }
    return real_value(A);
}

/* Where a law keeps what: two objects, for its tilt and for other tilts, then their lines, then scratch. */
typedef struct {
    hs_allocation *tilted, *other;
    double *lines, *few, *scratch;
} layout;

enum { OBJECT = (sizeof(hs_allocation) + sizeof(double) - 1) / sizeof(double) };

static layout parts(double *work)
{
    layout o = {(hs_allocation *)work, (hs_allocation *)(work + OBJECT), work + 2 * OBJECT, 0, 0};
    o.few = o.lines + HS_ALLOCATION_ROOM;
    o.scratch = o.few + HS_ALLOCATION_FEW;
    return o;
}

int64_t hs_allocation_work(void) { return 2 * OBJECT + HS_ALLOCATION_ROOM + HS_ALLOCATION_FEW + HS_ALLOCATION_SCRATCH; }

static double at_tilt(const hs_law *w, double t) { return w->add ? 1 + t : -t; }

/* K with its error, mean and variance of the loss tilted by t; an error of HUGE_VAL where that is out of reach. */
void hs_allocation_cgf(const hs_law *w, double t, hs_law_value *out)
{
    layout o = parts(w->allocation);
    int st;
    memset(o.other, 0, sizeof *o.other);
    st = hs_allocation_prepare(o.other, w->m, w->q, at_tilt(w, t), 0, o.few, HS_ALLOCATION_FEW, o.scratch);
    out->K = o.other->log_f;
    out->err = st ? HUGE_VAL : o.other->d_f;
    out->mean = w->add ? -o.other->mean : o.other->mean;
    out->var = o.other->var;
}

/* E (L-b)^2 <= (E e^{h(L-b)} + E e^{-h(L-b)} - 2)/h^2 [theory: allocation.variance]. */
static double variance_upper(const hs_law *w, double c, const hs_law_value *at)
{
    double h = 0.25 / sqrt(at->var), best = HUGE_VAL, sum;
    hs_law_value up, down;
    int it;
    for (it = 0; it < 6 && !(best < HUGE_VAL); it++, h *= 0.4) {
        hs_allocation_cgf(w, c + h, &up);
        hs_allocation_cgf(w, c - h, &down);
        sum = expm1(up.K - at->K - h * at->mean + up.err + at->err) +
              expm1(down.K - at->K + h * at->mean + down.err + at->err);
        sum += 16 * HS_U * (1 + fabs(at->K) + fabs(h * at->mean));
        if (up.err < 0.1 && down.err < 0.1 && sum > 0) best = sum / (h * h) * (1 + 1e-9);
    }
    return best;
}

/* Lines for all frequencies up to that where the bound of |phi|^k is below e^-(T0+8). */
int hs_allocation_tilt(hs_law *w, double c, double T0)
{
    layout o = parts(w->allocation);
    double a = sqrt(w->q) / w->m, y_max = a * sqrt(2 * fmin((T0 + 8) / w->k, DEPTH));
    hs_law_value at;
    int st;
    hs_allocation_cgf(w, c, &at);
    if (!(at.err < 0.1 && at.var > 0)) return HS_TOO_WIDE;
    w->c = c;
    w->log_m = at.K;
    w->err = at.err;
    w->mean = at.mean;
    w->var_upper = variance_upper(w, c, &at);
    if (!(w->var_upper < HUGE_VAL)) return HS_TOO_WIDE;
    st = hs_allocation_prepare(o.tilted, w->m, w->q, at_tilt(w, c), y_max, o.lines, HS_ALLOCATION_ROOM, o.scratch);
    return st;
}

/* An upper bound of |phi| at every frequency >= y [theory: allocation.decay]. */
double hs_allocation_far_upper(const hs_law *w, double y)
{ return fmin(1, exp(-0.5 * w->m * w->m * y * y / w->q) * (1 + 1e-12)); }

/* A lower bound of 2 (1 - |phi(y)|). */
double hs_allocation_gap_lower(const hs_law *w, double y)
{
    const hs_allocation *A = parts(w->allocation).tilted;
    double re, im, err, far = hs_allocation_far_upper(w, y);
    if (!(y <= A->y_max)) return 2 * (1 - far);
    hs_allocation_value(A, y, &re, &im, &err);
    return fmax(0, 2 * (1 - fmin(far, hypot(re, im) * (1 + 4 * HS_U) + err)));
}

/* Add k log phi at count nodes from n0 to re, im, and a bound of its error to round; where phi is lost in its error,
 * a bound stands for it [theory: line.inner]. */
void hs_allocation_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round)
{
    const hs_allocation *A = parts(w->allocation).tilted;
    int n;
    for (n = 0; n < count; n++) {
        double y = (double)(n0 + n) * dy, x = 1, v = 0, err = HUGE_VAL;
        double mod, lr, li;
        if (y == 0) continue;
        if (y <= A->y_max) hs_allocation_value(A, y, &x, &v, &err);
        mod = hypot(x, v);
        if (!(err < 0.1 * mod)) {
            re[n] += w->k * fmin(-0.5 * w->m * w->m * y * y / w->q * (1 - 1e-12), mod + err < 1 ? log(mod + err) : 0);
            round[n] += 1.1;
            continue;
        }
        lr = mod * mod > 0.25 ? 0.5 * log1p((x - 1) * (x + 1) + v * v) : log(mod);
        li = atan2(w->add ? v : -v, x);
        re[n] += w->k * lr;
        im[n] += w->k * li;
        round[n] += w->k * (err / (mod - err) + HS_U * (8 + 4 * (fabs(lr) + fabs(li))));
    }
}

/* out: log F(-c), a bound of its error, then rows of n: re, im of F(-c-iy)/F(-c) at frequencies y, bounds of their
 * errors; n = 0: no rows. work: hs_allocation_work() doubles. */
int hs_allocation_line(double m, double t, double c, int64_t n, const double *y, double *work, double *out)
{
    layout o = parts(work);
    double y_max = 0, *re = out + 2, *im = re + n, *err = im + n;
    int64_t j;
    int st;
    for (j = 0; j < n; j++) {
        if (!(y[j] >= 0)) return HS_BAD_ARGUMENT;
        y_max = fmax(y_max, y[j]);
    }
    if (!(m > 0 && t >= 2)) return HS_BAD_ARGUMENT;
    st = hs_allocation_prepare(o.tilted, m, t, c, y_max, o.lines, HS_ALLOCATION_ROOM, o.scratch);
    if (st) return st;
    out[0] = o.tilted->log_f;
    out[1] = o.tilted->d_f;
    for (j = 0; j < n; j++) {
        hs_allocation_value(o.tilted, y[j], &re[j], &im[j], &err[j]);
        if (!(err[j] < HUGE_VAL)) return HS_OUT_OF_RANGE;
    }
    return HS_OK;
}
