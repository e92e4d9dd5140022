/* range.c - the transform of a bounded-range step: a Laplace step without its atoms.
 *
 * Symbols. m: the bound of the range (eps0); L: the loss, of density e^{l/2}/(4 sinh(m/2)) on [-m, m] under num and its
 *   mirror image under den [theory: range.law]; M(z) = E e^{zL}; c the tilt, v = c + 1/2, phi(y) =
 *   M(c+iy)/M(c), theta = y m, u = 2^-53.
 *
 * Formulas. M(z) = sinh((z+1/2)m)/((2z+1) sinh(m/2)), even about z = -1/2. With g(x) = x coth x - 1 > 0,
 *     M(t) - 1 = [2 sinh^2(tm/2) + coth(m/2)(sinh(tm) - tm) + 2t g(m/2)]/(1+2t),
 *   positive terms of second order in m for t > 0; or K = log M from log(sinh(x)/x) at x = vm and at m/2, whichever is
 *   known better.
 *     phi = v/(v+iy) (cos theta + i coth(vm) sin theta),
 *     phi - 1 = [v(cos theta - 1) + i(v coth(vm)(sin theta - theta) + y g(vm))]/(v+iy).
 *   Mean of the tilted loss: g(vm)/v. Variance: (1 - (vm/sinh vm)^2)/v^2.
 *
 * Error claims, first order in u. g: the continued fraction x^2/(3 + x^2/(5 + ..)) of positive terms, 8u (17 levels
 *   leave nothing for x <= 2), beyond x/tanh x - 1, 8u. sinh y - y and sin y - y: their series, 8u.
 *   K       the terms of the first form are within (32 + 4|tm|)u, the second form within (16 + 3|tm| + 3|log|..)u.
 *   phi     |y| c1, c1 = 160 m u: the three terms over |v+iy| are at most theta, 2.6 theta (as v coth(vm) <= v + 1/m)
 *           and theta, each is known to 26u of its size, the quotient to 8u.
 *   log phi theta <= 1: that over |phi|. Beyond: theta is known to u theta, which moves log phi by at most u theta
 *           |v sin + i v coth cos|/|v cos + i v coth sin| (times 1.12, where that is below 0.1), the rest is within
 *           24u. Elsewhere the bound of |phi| stands for it, as in law.c.
 *   far     |phi(y')| <= v coth(vm)/|v+iy| for every y' >= y, as |sinh((v+iy)m)| <= cosh(vm).
 *
 * What it does not do: Poisson samples; these are the points of laplace.c without the atoms.
 */
#include "law/law.h"

/* x coth x - 1 for x >= 0. */
static double coth_rest(double x)
{
    double f = 37;
    int j;
    if (x > 2) return x / tanh(x) - 1;
    for (j = 35; j >= 3; j -= 2) f = j + x * x / f;
    return x * x / f;
}

/* sinh y - y (sign 1, |y| <= 3) or sin y - y (sign -1, |y| <= 1). */
static double odd_rest(double y, double sign)
{
    double s = sign * y * y, f = 1;
    int j;
    for (j = 15; j >= 2; j--) f = 1 + s / (2.0 * j * (2.0 * j + 1)) * f;
    return s * y / 6 * f;
}

/* log M(t) by the form whose terms are small where M is near 1. */
static double near_one(double m, double t, double *err)
{
    double y = t * m, s = sinh(0.5 * y), g = coth_rest(0.5 * m);
    /* [theory: range.law] */
    double a = 2 * s * s, b = 2 * (1 + g) / m * odd_rest(y, 1), d = 2 * t * g;
    double mu = (a + b + d) / (1 + 2 * t), size = (a + fabs(b) + fabs(d)) / (1 + 2 * t);
    double d_mu = HS_U * (32 + 4 * fabs(y)) * size;
    *err = mu > -0.9 ? d_mu / (1 + mu) + 3 * HS_U * fabs(log1p(mu)) : HUGE_VAL;
    return mu > -0.9 ? log1p(mu) : 0;
}

/* K with its error, mean and variance of the loss tilted by t, at any real t. */
void hs_range_cgf(double m, double t, hs_law_value *out)
{
    double s = t < -0.5 ? -1 - t : t, v = fmax(s + 0.5, 1e-150), x = v * m;
    double q, err, K;
    double near = log(-expm1(-2 * x) / (2 * x)), base = log(-expm1(-m) / m);
    out->K = s * m + near - base;
    out->err = HS_U * (16 + 3 * fabs(s * m) + 3 * fabs(near) + 3 * fabs(base));
    if (fabs(s * m) <= 3 && s > -0.49) {
        K = near_one(m, s, &err);
        if (err < out->err) {
            out->K = K;
            out->err = err;
        }
    }
    out->mean = (t < -0.5 ? -1 : 1) * coth_rest(x) / v;
    q = x / sinh(fmin(x, 700));
    out->var = x < 0.3 ? m * m * (1.0 / 3 - x * x * (1.0 / 15 - x * x * (2.0 / 189))) : (1 - q * q) / (v * v);
}

/* Constants of phi at the tilt c: a = |v|, w0 = |v| coth(|v| m), flat = g(|v| m), b the sign of v. */
void hs_range_tilt(hs_law *w, double c)
{
    double m = w->m, v = fmax(fabs(c + 0.5), 1e-150), g = coth_rest(v * m);
    w->a = v;
    w->b = c < -0.5 ? -1 : 1;
    w->w0 = (1 + g) / m;
    w->flat = g;
    w->c1 = 160 * HS_U * m;
}

/* phi(y) - 1, within y c1. */
void hs_range_phi(const hs_law *w, double y, double *zr, double *zi)
{
    double er, ei, nr;
    double ni, den = w->a * w->a + y * y, theta = y * w->m;
    if (theta < 1e6) hs_cis_m1(theta, &er, &ei);
    else {
        er = -2 * sin(0.5 * theta) * sin(0.5 * theta);
        ei = sin(theta);
    }
    nr = w->a * er;
    ni = w->w0 * (theta <= 1 ? odd_rest(theta, -1) : ei - theta) + y * w->flat;
    *zr = (nr * w->a + ni * y) / den;
    *zi = w->b * (ni * w->a - nr * y) / den;
}

/* An upper bound of |phi| at every frequency >= y. */
double hs_range_far_upper(const hs_law *w, double y) { return fmin(1, w->w0 / hypot(w->a, y) * (1 + 1e-12)); }

/* Add k log phi at count nodes from n0 to re, im, and a bound of its rounding to round. */
void hs_range_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round)
{
    int n;
    for (n = 0; n < count; n++) {
        double y = (double)(n0 + n) * dy, theta = y * w->m, v = w->a;
        double lr, li, err;
        if (theta <= 1) {
            double x, z, mod;
            hs_range_phi(w, y, &x, &z);
            mod = hypot(1 + x, z);
            lr = mod * mod > 0.25 ? 0.5 * log1p(2 * x + x * x + z * z) : log(mod);
            li = atan2(z, 1 + x);
            err = y * w->c1 / mod * 1.12 + 12 * HS_U * hypot(x, z);
        } else {
            double co = cos(theta), si = sin(theta), mod = hypot(v * co, w->w0 * si);
            lr = log(mod / hypot(v, y));
            li = w->b * (atan2(w->w0 * si, v * co) - atan2(y, v));
            err = HS_U * (24 + theta * hypot(v * si, w->w0 * co) / mod * 1.12);
        }
        if (!(err < 0.1)) {
            re[n] += w->k * log(hs_range_far_upper(w, y));
            round[n] += 1.1;
            continue;
        }
        re[n] += w->k * lr;
        im[n] += w->k * li;
        round[n] += w->k * (err + 4 * HS_U * (fabs(lr) + fabs(li)));
    }
}
