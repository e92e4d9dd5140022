/* Inner integrals of the hyperbola route: M(a) = E (1+U)^a at complex a, and upper bounds of |M|.
 *
 * Symbols   g      standard normal variable, continued to the complex plane; w(g) its density
 *           U      q (e^{m g - m^2/2} - 1), m = sensitivity/sigma;  l = log(1+U);  rho e^{ib} = q/(1-q) e^{m g - m^2/2}
 *           L      l, of a branch of two sides l1 - l2, where m = up in l1 and -down in l2: M(a) = E (1+U2) e^{aL}
 *           a      1+z (REMOVE) or -z (ADD) = x + iy
 *           xb     abscissa of the branch points of l: g = xb + i pi (2n+1)/m  (rho = 1, b = pi (2n+1))
 *           path   g(xi) = xi + i sum_r mu_r/2 (s_r + sqrt(s_r^2 + w^2)), s_r = xi - x_r, 0 <= mu_1+mu_2 < 1: real on
 *                  the left, slope mu_1, then mu_1+mu_2 on the right. "Line t": xi -> g(xi + it), |t| <= d <= w/sqrt 2.
 *           B      bound of int |w| |(1+U)^a| |dg| over a line
 *
 * Formulas.
 * (1) Every line gives the same M(a), if b < pi at the first sample behind xb; l = log(1-q) + Log(1 + rho e^{ib}) for
 *     rho <= 1, log(1-q) + log rho + ib + Log(1 + e^{-ib}/rho) beyond [theory: hyperbola.paths].
 *     Of two sides lr, li are of L, and the lines are lifted above the axis [theory: hyperbola.two-sheets].
 * (2) B = sum_j exp( lw_j + x lr_j - y li_j + |a| dd_j ) + left end + right end, from chords of log|w (1+U)^a g'| and
 *     its second derivative [theory: hyperbola.line-bound].
 * (3) Ends (e0, e1 in line_ends) [theory: hyperbola.line-ends].
 * (4) log B is JOINTLY CONVEX in (x,y): the maximum over a polygon is attained at its corners (hyperbola_cells.c), and
 *     along a ray log B grows by at most hs_line_rate_upper per unit y [theory: hyperbola.convex].
 * (5) Trapezoid: |M - h sum_j f(jh)| <= (B_{+d} + B_{-d})/(e^{2 pi d/h} - 1) + ends of line 0
 *     [theory: hyperbola.inner]. For mu = 0 line -d is the mirror image of line +d.
 * (6) Rounding of a node sum [theory: hyperbola.rounding] (first order in u = 2^-53; hs_exp, hs_log, libm's log 2u,
 *     hs_cis 3u absolute, hs_atan2 as claimed): the term j has relative error c0_j + |a| c1_j + u|log of its size|.
 *     With G = |Re g| + |Im g|, lw = log|w g'| + const,
 *       c0/u = 12 G Im g (|g| |dg|: hyperbola_line.c) + 8 (exp 2, cos and sin 3 sqrt 2, product 1, log|g'| 1/2) + 39
 *              Im g' (g' itself 20, arg g' 14, what is added to it 3, log|g'| 1) + 2 G^2 (g^2/2 by its parts, 4 |Re
 *              g Im g| <= G^2) + 3 |lw|;
 *       c1/u = |s| (12 m Im g + 4 (m G + m |xb| + m^2 + |log q| + |log(1-q)|) + 16): the error of v and b, of m =
 *              fl(.), of e^-|v| and its angle;
 *              + 24 rho (2+rho)/|1+rho e^{ib}|^2: |1+..|^2 - 1 = rho^2 + 2 rho cos b known to 10u rho^2 + 2u rho,
 *              its log, the angle 12u rho;
 *              + 48 (|lr| + |li| + 2|log(1-q)|): 8 for sums and the products x lr, y li, 40 for an error of 40u in a
 *                itself.
 *              + 2 q_err (|s| + q): an error of q <= 1/2.
 *     A branch of two sides adds the c1 of its second factor to both: (1+U2)^{1-a}.
 *     (rho <= 1 here: where rho > 1 the same holds for 1/rho.) Summation: see hs_sum.
 *     Rounding inside a bound is covered by INFLATE + 1e-14 |a| l_max on its logarithm (all exponents are below 1e6
 *       there).
 *
 * Claim: hs_line_*_upper are upper bounds; out[2] of hs_line_node bounds its rounding. Not done here: choice of a or
 * of the contour, atoms, q = 1. Needs round-to-nearest doubles without excess precision; no value-changing
 * optimisation. */
#include "curve/hyperbola.h"
#include "special.h"

static const double SKIP = 40.0; /* exponents below top - 40 are raised to it, which only raises the bound */
/* (6): every rounding of a bound, exp_bound's 1e-10 included */
static const double INFLATE = 1e-8;

/* e^x within 1e-10 for |x| <= 700, for bounds only: x = n log 2 + r, |r| <= 0.347, degree 9 */
static inline double exp_bound(double x)
{
    double big = x * 1.4426950408889634 + HS_MAGIC, n = big - HS_MAGIC, p;
    double r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    p = 1.0 / 40320 + r * (1.0 / 362880);
    p = 1.0 / 720 + r * (1.0 / 5040 + r * p);
    p = 1.0 / 24 + r * (1.0 / 120 + r * p);
    p = 1 + r * (1 + r * (0.5 + r * (1.0 / 6 + r * p)));
    return p * hs_from_bits((hs_bits(big) + 1023) << 52);
}

/* n a multiple of 8 */
static inline double hs_max(const double *v, int n)
{
    double a[8], top;
    int i, j;
    for (i = 0; i < 8; i++) a[i] = v[i];
    for (j = 8; j < n; j += 8)
        for (i = 0; i < 8; i++) a[i] = v[j + i] > a[i] ? v[j + i] : a[i];
    for (top = a[0], i = 1; i < 8; i++) top = a[i] > top ? a[i] : top;
    return top;
}

/* Eight chains in blocks of 64, n a multiple of 8: |error| <= (n/64 + 11) u sum|v|: 7 adds in a block, n/64 of
 * blocks, 3 to join, one for all that is of second order. */
static inline double hs_sum(const double *v, int n)
{
    double s[8] = {0};
    int i, j, k;
    for (j = 0; j < n; j += 64) {
        double t[8] = {0};
        int end = n - j < 64 ? n : j + 64;
        for (k = j; k < end; k += 8)
            for (i = 0; i < 8; i++) t[i] += v[k + i];
        for (i = 0; i < 8; i++) s[i] += t[i];
    }
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/* logs of what the left end holds, and of the right end times its rate; false where the right rate is not positive */
static int ends(const hs_line *L, double x, double y, double a, double *left, double *right, double *lam)
{
    *lam = L->lam0 - L->m * (x - L->mslope * y + a * L->merr); /* [theory: hyperbola.line-ends] */
    *left = L->left_lw + x * L->floor + a * L->left_rho + (y < 0 ? -y * L->left_turn : 0);
    *right = L->right_lw + x * L->right_lr - y * L->right_li;
    return *lam > 0;
}

HS_CLONES double hs_line_log_upper(const hs_line *L, double x, double y, double *restrict tmp)
{
    double a = sqrt(x * x + y * y), sums[8] = {0}, top, sum;
    double lam, el, er;
    const double *restrict lw = L->lw, *restrict lr = L->lr, *restrict li = L->li, *restrict dd = L->dd;
    int i, j, n = L->n;
    if (!ends(L, x, y, a, &el, &er, &lam)) return HUGE_VAL;
    for (j = 0; j < n; j++) tmp[j] = (lw[j] + x * lr[j]) + (a * dd[j] - y * li[j]); /* [theory: hyperbola.line-bound] */
    top = hs_max(tmp, n);
    el -= top;
    er -= top;
    if (!(el < 600 && er < 600)) return HUGE_VAL;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double e = tmp[j + i] - top;
            sums[i] += exp_bound(e > -SKIP ? e : -SKIP);
        }
    sum = hs_sum(sums, 8) + exp_bound(fmax(el, -600)) + exp_bound(fmax(er, -600)) * (1 / lam + L->h);
    lam = top + log(sum) + INFLATE + 1e-14 * a * L->l_max;
    return fabs(lam) < 1e300 ? lam : HUGE_VAL;
}

/* only the two open ends of the line */
double hs_line_log_ends_upper(const hs_line *L, double x, double y)
{
    double a = sqrt(x * x + y * y), lam, el;
    double er, hi;
    if (!ends(L, x, y, a, &el, &er, &lam)) return HUGE_VAL;
    er += log(1 / lam + L->h);
    hi = fmax(el, er);
    hi += log1p(exp(fmin(el, er) - hi)) + INFLATE + 1e-14 * a * L->l_max;
    return hi < 1e300 ? hi : HUGE_VAL;
}

/* growth of the bound per unit y along the direction (kappa, 1), for all later points; needs lam not to shrink */
HS_CLONES double hs_line_rate_upper(const hs_line *L, double kappa)
{
    double s = sqrt(1 + kappa * kappa), r = kappa * L->floor + s * L->left_rho, top[8];
    const double *restrict lr = L->lr, *restrict li = L->li, *restrict dd = L->dd;
    int i, j, n = L->n;
    if (!(L->mslope >= kappa + s * L->merr)) return HUGE_VAL;
    for (i = 0; i < 8; i++) top[i] = r;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double x = kappa * lr[j + i] - li[j + i] + s * dd[j + i]; /* [theory: hyperbola.convex] */
            top[i] = x > top[i] ? x : top[i];
        }
    r = hs_max(top, 8);
    return fabs(r) < 1e300 ? r + 1e-14 * s * L->l_max : HUGE_VAL;
}

/* e^{d + i th} of n nodes, d = f - top, th in im, |th| in re: re, im become its parts, f its size. Phases beyond the
 * range of hs_cis take libm. */
static inline void turn_line(int n, double top, double *restrict f, double *restrict re, double *restrict im)
{
    int j;
    if (hs_max(re, n) < 6e5)
        for (j = 0; j < n; j++) {
            double c, s, e = hs_exp(f[j] - top);
            hs_cis(im[j], &c, &s);
            re[j] = e * c;
            im[j] = e * s;
            f[j] = e;
        }
    else
        for (j = 0; j < n; j++) {
            double th = im[j], e = exp(f[j] - top);
            re[j] = e * cos(th);
            im[j] = e * sin(th);
            f[j] = e;
        }
}

/* out: e^{-out[3]} times Re, Im of the trapezoid sum, its rounding bound (the last scaling, 3u, apart) */
HS_CLONES void hs_line_node(const hs_line *L, double x, double y, double *out, double *tmp)
{
    double a = sqrt(x * x + y * y), top;
    double size, scale = L->h * HS_NORMAL_PEAK;
    double *restrict f = tmp, *restrict re = tmp + HS_HYP_TMP, *restrict im = tmp + 2 * HS_HYP_TMP,
                     *restrict er = tmp + 3 * HS_HYP_TMP;
    const double *restrict cr = L->cr, *restrict ci = L->ci, *restrict lr = L->lr;
    const double *restrict li = L->li, *restrict c0 = L->c0, *restrict c1 = L->c1;
    int j, lo = 0, hi = L->n;
    for (j = 0; j < hi; j++) f[j] = cr[j] + x * lr[j] - y * li[j];
    top = hs_max(f, hi);
    while (f[lo] <= top - 45) lo++;
    while (f[hi - 1] <= top - 45) hi--;
    lo = lo / 8 * 8;
    hi = (hi + 7) / 8 * 8;
    for (j = lo; j < hi; j++) {
        im[j] = ci[j] + x * li[j] + y * lr[j];
        re[j] = fabs(im[j]);
        er[j] = HS_U * (c0[j] + a * c1[j] - (f[j] - top));
    }
    turn_line(hi - lo, top, f + lo, re + lo, im + lo);
    for (j = lo; j < hi; j++) er[j] *= f[j];
    size = hs_sum(f + lo, hi - lo);
    out[0] = scale * hs_sum(re + lo, hi - lo);
    out[1] = scale * hs_sum(im + lo, hi - lo);
    /* [theory: hyperbola.rounding] */
    out[2] = scale * (hs_sum(er + lo, hi - lo) + ((hi - lo) / 64.0 + 11) * HS_U * size +
                      L->n * 2.9e-20); /* e^-45 for each skipped term */
    out[3] = top;
}
