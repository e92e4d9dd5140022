/* Inner integrals of the hyperbola route: M(a) = E (1+U)^a at complex a, and upper bounds of |M|.

   Symbols   g      standard normal variable, continued to the complex plane; w(g) its density
             U      q (e^{m g - m^2/2} - 1), m = sensitivity/sigma;  l = log(1+U);  rho e^{ib} = q/(1-q) e^{m g - m^2/2}
             a      1+z (REMOVE) or -z (ADD) = x + iy
             xb     abscissa of the branch points of l: g = xb + i pi (2n+1)/m  (rho = 1, b = pi (2n+1))
             path   g(xi) = xi + i sum_r mu_r/2 (s_r + sqrt(s_r^2 + w^2)), s_r = xi - x_r, 0 <= mu_1+mu_2 < 1: real on
                    the left, slope mu_1, then mu_1+mu_2 on the right. "Line t": xi -> g(xi + it), |t| <= d <= w/sqrt 2.
             B      bound of int |w| |(1+U)^a| |dg| over a line

   Formulas and proofs.
   (1) Geometry. With s/sqrt(s^2+w^2) = tanh p and |Im p| <= pi/4 for |t| <= w/sqrt 2: |tanh p| <= 1, |Im tanh p| <= 1,
       so Re g' >= 1 - mu/2 > 0 and Im g' = Re eta' >= 0: on a line Re g and Im g increase with xi. Hence each line meets
       Re g = xb once, and if b < pi there (checked at the first sample behind xb; b > -pi always) no branch point lies
       between the real axis and the line: at fixed Re g = xb the height increases with t (d Im g/dt = |g'|^2/Re g'). On
       the line l = log(1-q) + Log(1 + rho e^{ib}) for rho <= 1, log(1-q) + log rho + ib + Log(1 + e^{-ib}/rho) beyond,
       is the continuous branch. By Cauchy every such line gives the same M(a).
   (2) B. With f = w (1+U)^a g', L(xi) = log|f|: between two samples L lies below its chord plus h^2/8 sup|L''|, and e^chord
       integrates to at most h/2 (f_0+f_1). L'' = Re( -(g'^2+g g'') + (log g')'' + a (l o g)'' ),
       (l o g)'' = m^2 s(1-s) g'^2 + m s g'', s = rho e^{ib}/(1+rho e^{ib}); the moduli are bounded over the half cell next
       to each sample: |1 + rho' e^{ib'}| >= |1+rho e^{ib}| - rho (e^{m h |g'|/2} - 1), |sqrt(s^2+w^2)| moves by <= h/2.
       So B = sum_j exp( lw_j + x lr_j - y li_j + |a| dd_j ) + left end + right end.
   (3) Ends. |s+r| = w^2/|r-s|: for Re s <= -S < 0 the bend is O(w^2/S); same with s-r on the right (e0, e1 in line_ends).
       Left: |l - log(1-q)| <= rho/(1-rho), d log|w|/dxi >= lam. Right: d log|f|/dxi <= -(lam0 - m (x - mu y + |a| merr)),
       merr from |1-s| <= 1/(rho-1). Geometric tails; both bound the integral and the sum of the nodes left out.
   (4) Every summand of B is exp of a convex function of (x,y) (linear + |a|; -log of a concave function at the right end):
       log B is JOINTLY CONVEX in (x,y). So the maximum over a polygon is attained at its corners (used by hyperbola_cells.c), and
       along a ray log B grows by at most hs_line_rate_upper per unit y (a maximum over the table).
   (5) Trapezoid. f is analytic in |Im xi| <= d: |M - h sum_j f(jh)| <= (B_{+d} + B_{-d})/(e^{2 pi d/h} - 1) + ends of line 0.
       For mu = 0 line -d is the mirror image of line +d.
   (6) Rounding of a node sum (first order in U = 2^-53; exp 3U, cos/sin 3U absolute, log1p/atan2/sqrt/log 2U): the term j has
       relative error c0_j + |a| c1_j + U|log of its size|: c0 collects 14U (exp 3, cos and sin 3 sqrt 2, product 1, log|g'| and
       arg g' 5: 13.3), 1.5 (|Re g| + |Im g|)^2 U for g^2/2 by its parts, log h, g'; c1 the error of l (through g, v, m = fl(.),
       log1p and the products x lr, y li), 48U(|lr|+|li|) also covers an error of 40U in a itself. Summation: see hs_sum.
       Rounding inside a bound is covered by INFLATE + 1e-14 |a| l_max on its logarithm (all exponents are below 1e6 there).

   Claim: hs_line_*_upper are upper bounds; out[2] of hs_line_node bounds its rounding. Not done here: choice of a or of the contour,
   atoms, q = 1. Needs round-to-nearest doubles without excess precision; no value-changing optimisation. */
#include "hyperbola.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PI 3.141592653589793
#define U 1.1102230246251565e-16 /* 2^-53 */
static const double LOG_SQRT_2PI = 0.9189385332046728;
/* largest step of a strip line, in 1/m: keeps the second-order slack finite near the branch points */
static const double STRIP_STEP = 0.25;
static const double SKIP = 40.0; /* exponents below top - 40 are raised to it: upwards, harmless */
/* (6): every rounding of a bound, exp_bound's 1e-10 included */
static const double INFLATE = 1e-8;

/* e^x for -700 <= x <= 700 without branches (vectorises): x = n log 2 + r, |r| <= 0.347; degree 9: relative
   error < 1e-11; degree 13: < 3 U with its roundings (measured 1.4 U over 3e6 points, long double). */
static inline double bits_to_double(uint64_t b) { double d; memcpy(&d, &b, sizeof d); return d; }
static inline uint64_t double_to_bits(double d) { uint64_t b; memcpy(&b, &d, sizeof b); return b; }

#define EXP_REDUCE(x)                                                                          \
    double big_ = (x) * 1.4426950408889634 + 6755399441055744.0, n_ = big_ - 6755399441055744.0; \
    double r = ((x) - n_ * 0.6931471803691238) - n_ * 1.9082149292705877e-10;                   \
    uint64_t scale_ = (double_to_bits(big_) + 1023) << 52

static inline double exp_bound(double x) /* within 1e-10, for bounds only */
{
    EXP_REDUCE(x);
    double p = 1.0 / 40320 + r * (1.0 / 362880);
    p = 1.0 / 720 + r * (1.0 / 5040 + r * p);
    p = 1.0 / 24 + r * (1.0 / 120 + r * p);
    p = 1 + r * (1 + r * (0.5 + r * (1.0 / 6 + r * p)));
    return p * bits_to_double(scale_);
}

static inline double exp_full(double x) /* relative error < 3 U */
{
    EXP_REDUCE(x);
    double p = 1.0 / 479001600 + r * (1.0 / 6227020800.0);
    p = 1.0 / 3628800 + r * (1.0 / 39916800 + r * p);
    p = 1.0 / 40320 + r * (1.0 / 362880 + r * p);
    p = 1.0 / 720 + r * (1.0 / 5040 + r * p);
    p = 1.0 / 24 + r * (1.0 / 120 + r * p);
    p = 0.5 + r * (1.0 / 6 + r * p);
    p = 1 + (r + r * r * p);
    return p * bits_to_double(scale_);
}

/* cos, sin of |x| <= 8e5 without branches: x = n pi/2 + r in three pieces, Taylor to x^17; absolute error < 3 U (measured 1.9 U) */
static inline void cis_full(double x, double *co, double *si)
{
    double big = x * 0.6366197723675814 + 6755399441055744.0, n = big - 6755399441055744.0, r, z, c, s;
    uint64_t k = double_to_bits(big), m = (uint64_t)0 - (k & 1), cb, sb, ca, sa;
    r = ((x - n * 1.57079632673412561417) - n * 6.0771005063039659e-11) - n * 2.0222662487959506e-21;
    z = r * r;
    s = 1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0));
    s = -1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 + z * s))));
    s = r + r * z * s;
    c = -1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0);
    c = 1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600 + z * c))));
    c = (1 - 0.5 * z) + z * z * c;
    cb = double_to_bits(c); sb = double_to_bits(s);
    ca = (cb & ~m) | (sb & m); sa = (sb & ~m) | (cb & m);
    ca ^= ((k + 1) & 2) << 62; sa ^= (k & 2) << 62;
    *co = bits_to_double(ca); *si = bits_to_double(sa);
}

static double *take(hs_arena *mem, long n)
{
    double *p = mem->p;
    if (mem->left < n) return NULL;
    mem->p += n;
    mem->left -= n;
    return p;
}

int hs_path_plan(hs_path *p, double m, double q, int rung, int add, double kappa, double reach, double t_inner)
{
    static const double sh[HS_HYP_PATHS] = {0, 1.0, 1.0, 0.5, 2.0, 3.5, 5.0, 7.0, 9.5, 12.5, 16.0};
    static const double more[HS_HYP_PATHS] = {0, 0, 0, 0, 0, 1.5, 3.0, 5.0, 8.0, 12.0, 17.0};
    static const double lift[HS_HYP_PATHS] = {0, 0, 0, 1, 0.8, 0.9, 1.0, 1.2, 1.5, 1.7, 1.8};
    double mu = fmin(kappa + 0.15, 0.85), at = sh[rung];
    if (add && rung > 3) at = fmax(2, log(reach) - 2) + more[rung];
    p->m = m; p->q = q; p->logq1 = log1p(-q); p->logq = log(q);
    p->xb = (p->logq1 - p->logq) / m + 0.5 * m;
    p->w = (rung < 3 ? 2.0 : rung < 4 ? 1.4 : 1.0) / m;
    p->d = 0.7 * p->w;
    p->mu1 = rung == 0 ? 0 : rung == 1 ? 0.2 : rung == 2 ? 0.45 : fmin(mu, (add ? lift[rung] : rung == 4 ? 1.2 : 1.7) / at);
    if (add && rung == 1) { p->mu1 = 0; p->d *= 0.5; }
    if (add && rung > 3) p->d *= 0.85;
    p->mu2 = rung < 3 ? 0 : mu - p->mu1;
    p->x1 = p->xb - at / m; p->x2 = rung < 3 ? p->x1 : p->xb + 0.5 / m;
    if (p->d > 7.0) p->d = 7.0;
    p->h = 2 * PI * p->d / (t_inner + 0.5 * p->d * p->d);
    if (p->h > 0.45) p->h = 0.45;
    p->h = ldexp(floor(ldexp(p->h, 20)), -20);
    p->lo = -sqrt(2.0 * t_inner) - 1.0;
    if (add) p->lo -= log1p(reach * q * m) / m;
    if (rung > 0 && p->lo > p->x1 - 2.0 * p->w) p->lo = p->x1 - 2.0 * p->w;
    p->hi = fmax(sqrt(2.0 * t_inner) + 1.0, p->xb + 4.0 / m);
    if (rung < 4 && !add) p->hi = fmax(p->hi, reach * m + sqrt(2.0 * t_inner) + 1.0);
    p->state = 0;
    return p->h > 0 && (p->hi - p->lo) / p->h < 4000 ? HS_OK : HS_NO_PATH;
}

/* g, g' at xi + i t; g2, g3 >= |g''|, |g'''| within xi +- h/2 */
static void curve(const hs_path *p, double h, double xi, double t, double *g, double *gp, double *d)
{
    double mu[2], xc[2];
    int i;
    mu[0] = p->mu1; mu[1] = p->mu2; xc[0] = p->x1; xc[1] = p->x2;
    g[0] = xi; g[1] = t; gp[0] = 1; gp[1] = 0; d[0] = d[1] = 0;
    for (i = 0; i < 2 && p->mu1 > 0; i++) {
        double s = xi - xc[i], re = s * s - t * t + p->w * p->w, im = 2 * s * t;
        double mod = sqrt(re * re + im * im), rr = sqrt(0.5 * (mod + re)), ri = 0.5 * im / rr; /* re > 0 */
        double er = 1 + (s * rr + t * ri) / mod, ei = (t * rr - s * ri) / mod; /* 1 + s/r */
        double a = 0.5 * mu[i];
        g[0] -= a * (t + ri); g[1] += a * (s + rr);
        gp[0] -= a * ei; gp[1] += a * er;
        mod = sqrt(mod) - 0.5 * h;
        if (!(mod > 0.05 * p->w)) { d[0] = d[1] = HUGE_VAL; return; } /* too coarse: the caller refuses */
        er = a * p->w * p->w / (mod * mod * mod);
        d[0] += er; d[1] += 3 * er / mod;
    }
}

/* log(1+U) along the continuous branch; rho^(+-1) <= 1 returned with |1 + rho^(+-1) e^{+-ib}| */
static void log_one_plus_u(const hs_path *p, const double *g, double *lr, double *li, double *rho, double *mod, int *big)
{
    double v = p->m * (g[0] - p->xb), b = p->m * g[1], r, c, s, n2;
    *big = v > 0;
    r = exp_full(-fmin(fabs(v), 650));
    if (fabs(b) < 8e5) cis_full(b, &c, &s);
    else { c = cos(b); s = sin(b); }
    c *= r; s *= *big ? -r : r;
    n2 = r * r + 2 * c;
    if (r < 0.02) { /* z - z^2/2 + ... - z^8/8, rest < 0.02^9/8.8 = 6e-17 |z| 1e-1 */
        double u = 0, w = 0, t;
        int k;
        for (k = 8; k > 0; k--) { t = 1.0 / k - (u * c - w * s); w = -(u * s + w * c); u = t; }
        *lr = u * c - w * s + p->logq1; *li = u * s + w * c;
    } else { *lr = 0.5 * log1p(n2) + p->logq1; *li = atan2(s, 1 + c); }
    if (*big) { *lr += v; *li += b; }
    *rho = r; *mod = sqrt(fmax(1 + n2, 0));
}

static int line_ends(hs_line *L, const hs_path *p, double h, double t, int j0, int j1, double gpmax)
{
    double lo = j0 * L->h, hi = j1 * L->h, mu = p->mu1 + p->mu2, w2 = p->w * p->w, at = fabs(t);
    double e0 = 0, e1 = 0, g[2], gp[2], d[2], lam, rho, lead = 0;
    if (mu > 0) {
        double a = p->x1 - lo, c = p->x2 - lo;
        if (!(a >= p->w)) return HS_NO_PATH;
        e0 = w2 * (p->mu1 / (2 * a) + p->mu2 / (2 * c)); e1 = w2 * (p->mu1 / (2 * a * a) + p->mu2 / (2 * c * c));
    }
    curve(p, h, lo, t, g, gp, d);
    lam = (-lo - e0) * (1 - e1) - (at + e0) * e1;
    rho = exp(p->m * (g[0] - p->xb));
    if (!(lam > 0.5 && rho < 0.5 && e1 < 0.5)) return HS_NO_PATH;
    L->left_lw = -0.5 * (g[0] * g[0] - g[1] * g[1]) - LOG_SQRT_2PI + log((1 / lam + L->h) * gpmax);
    L->left_rho = rho / (1 - rho);
    e0 = e1 = 0;
    if (mu > 0) {
        double a = hi - p->x1, c = hi - p->x2;
        if (!(c >= p->w)) return HS_NO_PATH;
        e0 = w2 * (p->mu1 / (2 * a) + p->mu2 / (2 * c)); e1 = w2 * (p->mu1 / (2 * a * a) + p->mu2 / (2 * c * c));
        lead = p->mu1 * a + p->mu2 * c;
    }
    curve(p, h, hi, t, g, gp, d);
    rho = exp(p->m * (g[0] - p->xb));
    if (!(rho > 4 && 1 - e1 - mu * (mu + e1) > 0.05)) return HS_NO_PATH;
    L->lam0 = (hi - mu * at - e0) * (1 - e1) - (at + lead + e0) * (mu + e1);
    L->mslope = mu;
    L->merr = e1 + (1 + mu + e1) / (rho - 1);
    L->right_lw = -0.5 * (g[0] * g[0] - g[1] * g[1]) - LOG_SQRT_2PI + log(gpmax);
    return HS_OK;
}

static int line_build(hs_line *L, const hs_path *p, double t, double h, int node, hs_arena *mem)
{
    double mu = p->mu1 + p->mu2, gpmax = 1 + mu, g[2], gp[2], d[2];
    double ex = p->m * 0.5 * h * gpmax, em = expm1(ex), ed = em + 1, logh = log(h) - LOG_SQRT_2PI, s_prev = 0, s_prev2 = 0;
    int j0 = (int)floor(p->lo / h), j1 = (int)ceil(p->hi / h), n = j1 - j0 + 1, j, crossed = 0;
    double *mem0 = take(mem, (long)n * (node ? 8 : 4));
    if (!mem0) return HS_SCRATCH;
    if (n > HS_HYP_TMP) return HS_NO_PATH;
    L->n = n; L->h = h; L->m = p->m; L->logq1 = p->logq1;
    L->lr = mem0; L->li = mem0 + n; L->lw = mem0 + 2 * n; L->dd = mem0 + 3 * n;
    if (node) { L->cr = mem0 + 4 * n; L->ci = mem0 + 5 * n; L->c0 = mem0 + 6 * n; L->c1 = mem0 + 7 * n; }
    for (j = 0; j < n; j++) {
        double xi = (j0 + j) * h, rho, mod, den, s1, s2, ga, gl, gh, gm, slack;
        int big;
        curve(p, h, xi, t, g, gp, d);
        log_one_plus_u(p, g, &L->lr[j], &L->li[j], &rho, &mod, &big);
        if (!crossed && g[0] >= p->xb) { /* sheet: |b| < pi where the curve passes the branch abscissa */
            crossed = 1;
            if (!(p->m * g[1] < 0.999 * PI)) return HS_NO_PATH;
        }
        den = big ? mod - em : mod - rho * em;
        if (!(den > 0.02)) return HS_NO_PATH;
        s1 = (big ? 1 : rho) * ed / den; s2 = (big ? rho : 1) / den;
        ga = gp[0] * gp[0] + gp[1] * gp[1];
        gm = mu > 0 ? 0.5 * log(ga) : 0;
        ga = sqrt(ga); gl = ga - 0.5 * h * d[0]; gh = fmin(gpmax, ga + 0.5 * h * d[0]);
        if (!(gl > 0.3 && d[1] < 1e300)) return HS_NO_PATH;
        ga = fabs(g[0]) + fabs(g[1]) + h * gpmax;
        L->dd[j] = h * h / 8 * p->m * s1 * (p->m * s2 * gh * gh + d[0]);
        slack = h * h / 8 * (gh * gh + ga * d[0] + d[1] / gl + (d[0] / gl) * (d[0] / gl));
        L->lw[j] = -0.5 * (g[0] * g[0] - g[1] * g[1]) + logh + gm;
        if (j > 0) L->lw[j - 1] += fmax(slack, fmax(s_prev, s_prev2));
        s_prev2 = s_prev; s_prev = slack;
        if (node) {
            double dg = mu > 0 ? 16 * U * (fabs(xi) + fabs(xi - p->x1) + fabs(xi - p->x2) + p->w) : 0, s = s1;
            double dv = 8 * U * (p->m * (ga + fabs(p->xb)) + p->m * p->m + 2 * fabs(p->logq) + 1);
            L->cr[j] = -0.5 * (g[0] * g[0] - g[1] * g[1]) + logh + gm;
            L->ci[j] = -g[0] * g[1] + (mu > 0 ? atan2(gp[1], gp[0]) : 0);
            L->c0[j] = ga * dg + U * (14 + 1.5 * ga * ga + 2 * fabs(L->cr[j]));
            L->c1[j] = s * (p->m * dg + dv + 16 * U) + 16 * U * rho * (2 + rho) / (mod * mod)
                     + 48 * U * (fabs(L->lr[j]) + fabs(L->li[j]) + 2 * fabs(L->logq1));
        }
    }
    if (!crossed) return HS_NO_PATH;
    L->lw[n - 1] += fmax(s_prev, s_prev2);
    for (j = 0, s_prev = 0; j < n; j++) { /* a cell takes the worse of its two ends */
        double cur = L->dd[j];
        L->dd[j] = fmax(cur, fmax(s_prev, j + 1 < n ? L->dd[j + 1] : 0));
        s_prev = cur;
    }
    L->l_max = 1 + 2 * fabs(L->logq1) + fabs(L->lr[n - 1]) + fabs(L->li[n - 1]) + p->m * (fabs(p->xb) + p->hi - p->lo);
    L->right_lr = L->lr[n - 1]; L->right_li = L->li[n - 1];
    return line_ends(L, p, h, t, j0, j1, gpmax);
}

int hs_path_build(hs_path *p, hs_arena *mem)
{
    hs_arena save = *mem;
    int st = line_build(&p->mid, p, 0, p->h, 1, mem);
    if (st != HS_OK) *mem = save;
    p->state = st == HS_OK ? 1 : -1;
    return st;
}

int hs_path_build_strip(hs_path *p, hs_arena *mem)
{
    hs_arena save = *mem;
    double h = fmin(2 * p->h, STRIP_STEP / p->m);
    int st = line_build(&p->up, p, p->d, h, 0, mem);
    if (st == HS_OK && p->mu1 > 0) st = line_build(&p->dn, p, -p->d, h, 0, mem);
    if (st != HS_OK) *mem = save;
    p->state = st == HS_OK ? 2 : -2;
    return st;
}

static double hs_max(const double *v, int n)
{
    double a = v[0], b = v[0], c = v[0], d = v[0];
    int j;
    for (j = 0; j + 3 < n; j += 4) {
        a = v[j] > a ? v[j] : a; b = v[j + 1] > b ? v[j + 1] : b;
        c = v[j + 2] > c ? v[j + 2] : c; d = v[j + 3] > d ? v[j + 3] : d;
    }
    for (; j < n; j++) a = v[j] > a ? v[j] : a;
    a = a > b ? a : b; c = c > d ? c : d;
    return a > c ? a : c;
}

/* Eight chains in blocks of 64: |error| <= (n/64 + 11) U sum|v|: 7 adds in a block, n/64 of blocks, 3 to join, one for all that is of
   second order. */
static double hs_sum(const double *v, int n)
{
    double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    int i, j, k;
    for (j = 0; j < n; j += 64) {
        double t[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        int count = n - j < 64 ? n - j : 64, rows = count / 8 * 8;
        for (k = 0; k < rows; k += 8)
            for (i = 0; i < 8; i++) t[i] += v[j + k + i];
        for (k = rows; k < count; k++) t[k - rows] += v[j + k];
        for (i = 0; i < 8; i++) s[i] += t[i];
    }
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

double hs_line_log_upper(const hs_line *L, double x, double y, double *tmp)
{
    double a = sqrt(x * x + y * y), top, sum, lam, el, er;
    int j, n = L->n;
    lam = L->lam0 - L->m * (x - L->mslope * y + a * L->merr);
    if (!(lam > 0)) return HUGE_VAL;
    el = L->left_lw + x * L->logq1 + a * L->left_rho;
    er = L->right_lw + x * L->right_lr - y * L->right_li + log(1 / lam + L->h);
    {
        const double *lw = L->lw, *lr = L->lr, *li = L->li, *dd = L->dd;
        for (j = 0; j < n; j++) tmp[j] = (lw[j] + x * lr[j]) + (a * dd[j] - y * li[j]);
    }
    top = hs_max(tmp, n);
    for (j = 0; j < n; j++) { /* max(e, -SKIP) without a branch */
        double e = tmp[j] - top;
        tmp[j] = exp_bound(0.5 * (e - SKIP + fabs(e + SKIP)));
    }
    sum = hs_sum(tmp, n);
    sum += exp(el - top) + exp(er - top);
    lam = top + log(sum) + INFLATE + 1e-14 * a * L->l_max;
    return fabs(lam) < 1e300 ? lam : HUGE_VAL;
}

/* the two open ends of the line alone */
double hs_line_log_ends_upper(const hs_line *L, double x, double y)
{
    double a = sqrt(x * x + y * y), lam = L->lam0 - L->m * (x - L->mslope * y + a * L->merr), el, er, hi;
    if (!(lam > 0)) return HUGE_VAL;
    el = L->left_lw + x * L->logq1 + a * L->left_rho;
    er = L->right_lw + x * L->right_lr - y * L->right_li + log(1 / lam + L->h);
    hi = fmax(el, er);
    hi += log1p(exp(fmin(el, er) - hi)) + INFLATE + 1e-14 * a * L->l_max;
    return hi < 1e300 ? hi : HUGE_VAL;
}

/* growth of the bound per unit y along the direction (kappa, 1), for all later points; needs lam not to shrink */
double hs_line_rate_upper(const hs_line *L, double kappa)
{
    double s = sqrt(1 + kappa * kappa), r = kappa * L->logq1 + s * L->left_rho;
    int j;
    if (!(L->mslope >= kappa + s * L->merr)) return HUGE_VAL;
    for (j = 0; j < L->n; j++) r = fmax(r, kappa * L->lr[j] - L->li[j] + s * L->dd[j]);
    return fabs(r) < 1e300 ? r + 1e-14 * s * L->l_max : HUGE_VAL;
}

/* out: e^{-out[4]} times Re, Im of the trapezoid sum, its rounding bound, sum |terms| */
void hs_line_node(const hs_line *L, double x, double y, double *out, double *tmp)
{
    double a = sqrt(x * x + y * y), top, big, *f = tmp, *re = tmp + HS_HYP_TMP, *im = tmp + 2 * HS_HYP_TMP, *dp = tmp + 3 * HS_HYP_TMP;
    const double *cr = L->cr, *ci = L->ci, *lr = L->lr, *li = L->li;
    int j, lo = 0, hi = L->n;
    for (j = 0; j < hi; j++) f[j] = cr[j] + x * lr[j] - y * li[j];
    top = hs_max(f, hi);
    while (f[lo] <= top - 45) lo++;
    while (f[hi - 1] <= top - 45) hi--;
    for (j = lo; j < hi; j++) {
        im[j] = ci[j] + x * li[j] + y * lr[j];
        re[j] = fabs(im[j]) + fabs(f[j] - top) * 1000; /* one test for both ranges below */
        f[j] -= top;
        dp[j] = f[j];
    }
    big = hs_max(re + lo, hi - lo);
    if (big < 6e5)
        for (j = lo; j < hi; j++) {
            double c, s, e = exp_full(f[j]);
            cis_full(im[j], &c, &s);
            f[j] = e; re[j] = e * c; im[j] = e * s;
        }
    else
        for (j = lo; j < hi; j++) {
            double th = im[j], e = exp(f[j]);
            f[j] = e; re[j] = e * cos(th); im[j] = e * sin(th);
        }
    out[0] = hs_sum(re + lo, hi - lo); out[1] = hs_sum(im + lo, hi - lo); out[3] = hs_sum(f + lo, hi - lo);
    for (j = lo; j < hi; j++) f[j] *= L->c0[j] + a * L->c1[j] - U * dp[j];
    out[2] = hs_sum(f + lo, hi - lo) + ((hi - lo) / 64.0 + 11) * U * out[3] + L->n * 2.9e-20; /* e^-45 for each skipped term */
    out[4] = top;
}
