/* prawitz.c - certified delta(eps) and eps(delta) from Prawitz' smoothing inequality, summed numerically under a tilt.
 *
 * Symbols. S the composed loss, K(t) = log E e^{tS} (= sum k log M), t > 0 the tilt, E~ the law tilted by e^{tS - K(t)}, f its
 *   characteristic function, F its distribution function, h(v) = e^{-tv}(1 - e^{-v}) for v > 0, else 0, so that
 *   delta(eps) = e^{K(t) - t eps} E~ h(S - eps). T the smoothing limit, dy the mesh, P = 2 pi/dy, N nodes, Y = N dy,
 *   s = |y|/T, lam(s) = (1-s) pi s cot(pi s) + s in [0, 1], lf(t) = t log t - (1+t) log1p t (so max h = e^{lf(t)}).
 *
 * Inequality [Pra72; DGG24, (7)]. A - W <= F(x-) <= F(x) <= A + W, A(x) = 1/2 - (1/T) int_0^T c(y) Im[e^{-ixy} f] dy,
 *   c(y) = (1-s) cot(pi s) + 1/pi, W(x) = (1/2T) int_{-T}^{T} (1-s) e^{-ixy} f dy >= 0 (a Fejer-smoothed density).
 *
 * What follows, with E~ h(S-eps) = int_0^inf h'(v) (1 - F(eps+v)) dv and int_0^inf h' e^{-ivy} dv = iy/((t+iy)(1+t+iy)):
 *   inserting A gives D(0), D(x) = (1/2pi) int_{-T}^{T} lam g(y) e^{-ixy} dy, g = e^{-i eps y} f/((t+iy)(1+t+iy)), because
 *   c(y) y/T = lam/pi; and |D(x) - E~ h(S-eps-x)| <= int |h'(v)| W(eps+x+v) dv. Poisson summation over x = jP (lam g vanishes
 *   beyond T, so all sums are finite) turns D into the trapezoid sum and sum_j W(x+jP) into (dy/2T) sum_{|n|dy<T} (1-s) e^{..} f:
 *     | (dy/2pi) sum_n lam g(n dy) - sum_j E~ h(S-eps-jP) | <= max h (dy/T) [1 + 2 sum_{0<n<T/dy} (1-s) |f(n dy)|].   (smoothing)
 *   It holds for every T > 0 and every law: no decay of f to infinity is needed. T -> inf is the plain inversion.
 *
 * Error terms, relative to e^{K(t) - t eps}:
 *   smoothing   the right side above; |f| beyond Y by the segments of tail_bounds.
 *   aliasing    j != 0: right e^{K(s)-K(t)-d eps+lf(s)-dP}/(1-e^{-dP}), s = t+d; left the same with s = t-d, lf(s) for s >= 0;
 *               for -1 < s < 0, delta(eps-jP) = 1 - deficit, the ones sum to 1/(e^{tP}-1), deficits <= Chernoff without lf.
 *   truncation  (1/pi) sum over segments of sup|f| (1/y_i - 1/y_{i+1} + dy/y_i^2): |g| <= |f|/y^2, a decreasing sum.
 *   inner       quadrature of M (transform.c, laplace_step.c), through each node and through K(t).
 *   rounding    of K(t), of every node, of the sums. First order in u; constants rounded up by more than u^2 terms could add.
 *   Upper ends are never above Chernoff's e^{K(t) - t eps + lf(t)}.
 *
 * What it does not do: other families; m > HS_LAPLACE_MAX. The interval is wide, never wrong, where |f| does not fall: few steps, or
 *   atoms of nearly all the mass. Cost O(b n_inner N), the same for every k. One thread.
 */
#include "edgeworth.h"

#define BLOCK 32
#define POINTS HS_PRAWITZ_POINTS
#define N_MAX HS_PRAWITZ_NODES
#define FAR 1.099511627776e12 /* 2^40: T for the plain inversion; smoothing is then below 2^-40 max h |f| sums */

typedef struct { double value, slope, log_scale, lower, upper, aliasing, inner, rounding; } hs_value;

static double lf(double t) { return t > 0 ? t * log(t) - (1 + t) * log1p(t) : 0; }

static void step_cgf(const hs_prawitz *S, int i, double t, double *o)
{
    double a = S->add ? -t : 1 + t;
    if (S->family[i] == 0) hs_cgf_estimate(S->m[i], S->q[i], a, o);
    else hs_laplace_cgf_estimate(S->m[i], S->q[i], a, S->x, S->w, S->n_gl, o);
}

/* K, K', K'' at t, as estimates. */
static void total_cgf(const hs_prawitz *S, double t, double *out)
{
    double o[3];
    int i, r;
    out[0] = out[1] = out[2] = 0;
    for (i = 0; i < S->b; i++) {
        step_cgf(S, i, t, o);
        for (r = 0; r < 3; r++) out[r] += S->k[i] * o[r];
    }
    if (S->add) out[1] = -out[1];
}

/* t where K'(t) = eps + 1/t + 1/(1+t), or with eps eliminated where the saddle-point value is log_delta. t only places the line. */
static int find_saddle(hs_prawitz *S, int have_eps, double log_delta)
{
    double lo = 0, hi = 0, t = S->t, o[3], F2, G, step;
    int it;
    for (it = 0; it < 80; it++) {
        double want = S->eps + 1 / t + 1 / (1 + t);
        total_cgf(S, t, o);
        F2 = o[2] + 1 / (t * t) + 1 / ((1 + t) * (1 + t));
        if (!(F2 > 0 && F2 < 1e300)) { hi = t; t = lo > 0 ? sqrt(lo * hi) : 0.1 * t; continue; }
        if (!have_eps) S->eps = o[1] - 1 / t - 1 / (1 + t);
        S->log_est = o[0] - log(t) - log1p(t) - 0.5 * log(2 * HS_PI * F2) - S->eps * t;
        S->sd = sqrt(o[2]);
        if (have_eps) {
            G = o[1] - want;
            step = o[1] > 0 && want > 0 ? -log(o[1] / want) / (t * (o[2] / o[1] + (F2 - o[2]) / want)) : -G / (t * F2);
            if (fabs(G) < 0.1 * sqrt(F2)) break;
        } else {
            G = log_delta - S->log_est;
            step = -G / (t * t * F2);
            if (fabs(G) < 0.03) break;
        }
        if (G < 0) lo = t; else hi = t;
        step = t * exp(fmax(-1.2, fmin(1.2, step)));
        if ((lo > 0 && step <= lo) || (hi > 0 && step >= hi) || !(step > 0))
            step = lo > 0 && hi > 0 ? sqrt(lo * hi) : lo > 0 ? 2 * lo : 0.5 * hi;
        t = step;
        if (!(t > 1e-12 && t < 1e12)) return HS_NO_SADDLE;
    }
    if (it == 80 || !(S->sd > 0)) return HS_NO_SADDLE;
    S->t = fmax(t, 0.7 / S->sd);
    S->t = frexp(S->t, &it); /* 24 bits are enough to place it */
    S->t = ldexp(floor(ldexp(S->t, 24)), it - 24);
    return HS_OK;
}

static double period(const hs_prawitz *S, int left, double d)
{
    double s = left ? S->t - d : S->t + d, o[3], num;
    if (s < -0.99) return HUGE_VAL;
    total_cgf(S, s, o);
    num = o[0] - s * S->eps + lf(s) + S->T0 - S->log_est;
    return num > 0 && num < 1e300 ? num / d : HUGE_VAL;
}

/* P = the larger of the two sides' least periods (num/d is unimodal); any d > 0 gives a valid one. */
static int place(hs_prawitz *S)
{
    int left, it;
    S->P = 0;
    for (left = 0; left < 2; left++) {
        double d = fmin(7 / S->sd, left ? S->t + 0.99 : HUGE_VAL), best = period(S, left, d), factor = 0.6;
        for (it = 0; it < 24; it++) {
            double next = d * factor, at = period(S, left, next);
            if (at < best || !(best < HUGE_VAL)) {
                if (at > 0.97 * best && at < HUGE_VAL) it = 24;
                best = at; d = next;
            } else if (factor < 1 && it == 0) factor = 1.5;
            else break;
        }
        *(left ? &S->s_left : &S->s_right) = left ? S->t - d : S->t + d;
        S->P = fmax(S->P, best);
    }
    S->dy = 2 * HS_PI / S->P;
    return S->P > 0 && S->P < 1e12 ? HS_OK : HS_OUT_OF_RANGE;
}

/* One step on its grid: what is needed to bound phi at any frequency. */
typedef struct { hs_grid G; int family, n_gl; double m, q, a, log_m, var, c1, c2, q0, ends; } opened;

static double quadrature_upper(opened *O, double y)
{
    double x = O->family == 0 ? hs_grid_quadrature_upper(&O->G, O->a, y)
                              : hs_laplace_quadrature_upper(O->m, O->q, O->a, y, O->log_m, O->n_gl);
    return x + O->q0; /* the sum r is normalised by has its own error */
}

static double far_upper(opened *O, double y)
{
    if (O->family) return hs_laplace_far_upper(O->m, O->q, O->a, y, O->log_m);
    return fmin(1, hs_grid_far_upper(&O->G, O->a, y) + 2 * O->ends);
}

/* Error of M from the grid alone, relative to M, at real tilt a. */
static double real_error_upper(opened *O, double a, double est, double log_m)
{
    double out, scale = exp(-fmax(log_m, -1)), fa = fabs(a);
    if (O->family == 0) {
        out = hs_grid_quadrature_upper(&O->G, a, 0) + hs_grid_ends_upper(&O->G, a, log_m);
        return est <= 3 ? out + hs_grid_dropped_upper(&O->G, a) * scale : out;
    }
    out = hs_laplace_quadrature_upper(O->m, O->q, a, 0, log_m, O->n_gl);
    if (est <= 3) out += ((1 + fa) * hs_laplace_quadrature_upper(O->m, O->q, 0, 0, 0, O->n_gl)
                          + fa * hs_laplace_quadrature_upper(O->m, O->q, 1, 0, 0, O->n_gl)) * scale;
    return out;
}

/* Opens step i for |y| <= y_grid at the line's tilt; adds its K, errors and variance bound to the sums. */
static int open_step(hs_prawitz *S, int i, double y_grid, opened *O, double *work)
{
    double tilt[3], est[3], o[3], h, R, lo = 0, hi = 0, m = S->m[i], q = S->q[i], k = S->k[i], reach;
    hs_moments mo;
    int j, st;
    O->family = S->family[i]; O->m = m; O->q = q; O->n_gl = S->n_gl;
    tilt[0] = S->s_right; tilt[1] = S->s_left; tilt[2] = S->t;
    for (j = 0; j < 3; j++) {
        step_cgf(S, i, tilt[j], o); est[j] = o[0];
        tilt[j] = S->add ? -tilt[j] : 1 + tilt[j];
        lo = fmin(lo, tilt[j]); hi = fmax(hi, tilt[j]);
    }
    if (O->family == 0) {
        R = S->T0 + log(S->ktot) + 6;
        h = hs_grid_choose_h(m, q, tilt[2], y_grid, R, est[2]);
        for (j = 0; j < 2; j++) h = fmin(h, hs_grid_choose_h(m, q, tilt[j], 0, 5 + log(S->ktot), est[j])); /* K there to a nat */
        if (!(h > 0)) return HS_TOO_MANY_NODES;
        R = sqrt(2 * (R + 3)) + 1;
        st = hs_grid_build(&O->G, m, q, h, -R - (lo < 0 ? log1p(-lo * m * q) / m : 0), fmax(m, hi * m) + R, work);
    } else st = hs_laplace_grid(&O->G, m, q, S->x, S->w, S->n_gl, work);
    if (st) return st;
    for (j = 0; j < 3; j++) { /* the line's own tilt comes last: its weights stay in the grid */
        O->G.strip = -1;
        hs_grid_moments(&O->G, tilt[j], est[j], &mo);
        hs_grid_weights(&O->G, tilt[j], mo.log_m, &O->c1, &O->c2);
        o[0] = real_error_upper(O, tilt[j], est[j], mo.log_m);
        if (j == 2 && !(o[0] < 0.1)) return HS_TOO_WIDE;
        S->K[j] += k * mo.log_m; S->err[j] += k * mo.err + HS_U * (2 + S->b) * fabs(k * mo.log_m);
        S->inner[j] += j < 2 ? k * log1p(o[0]) : 1.1 * k * o[0];
    }
    O->a = tilt[2]; O->log_m = mo.log_m; O->ends = 0;
    O->q0 = O->family == 0 ? hs_grid_quadrature_upper(&O->G, O->a, 0) : hs_laplace_quadrature_upper(m, q, O->a, 0, mo.log_m, S->n_gl);
    if (O->family == 0) { O->ends = hs_grid_ends_upper(&O->G, O->a, mo.log_m); O->q0 += 2 * O->ends; }
    reach = O->family == 0 ? O->G.l[0] * O->G.l[0] + 16 + m * m * O->G.hi * O->G.hi : (3 * m + 10) * (3 * m + 10);
    S->var += k * (mo.var * (1 + 1e-9) + 10 * reach * O->q0);
    S->k_smooth += k;
    O->G.strip = -1;
    return HS_OK;
}

/* A plain Gaussian step: M(a) in closed form, log phi(y) = -m^2 y^2/2 + i m^2 (t + 1/2) y for REMOVE and ADD alike. */
static void visit_gaussian(hs_prawitz *S, double m, double k)
{
    double v = m * m * k, z[3];
    long n;
    int j;
    z[0] = S->s_right; z[1] = S->s_left; z[2] = S->t;
    for (j = 0; j < 3; j++) {
        S->K[j] += 0.5 * v * z[j] * (1 + z[j]);
        S->err[j] += (8 + S->b) * HS_U * 0.5 * v * fabs(z[j] * (1 + z[j]));
    }
    for (n = 0; n <= S->N; n++) {
        double y = (double)n * S->dy;
        S->re[n] -= 0.5 * v * y * y; S->im[n] += v * (S->t + 0.5) * y;
        S->round[n] += (6 + S->b) * HS_U * v * y * (0.5 * y + S->t + 0.5);
    }
    for (j = 0; j < POINTS; j++) S->gauss[j] += 0.5 * v * S->y[j] * S->y[j] * (1 - 1e-12);
}

/* k log phi of a block of nodes from Z = phi - 1. log|phi| = log1p(X)/2, X = 2 Re Z + |Z|^2 known to 4u |Z| (2 + |Z|), or from
 * (1 + Re Z)^2 + (Im Z)^2 where that is below 1/4. Errors dz of phi count as dz/(|phi| - dz). */
static void add_nodes(hs_prawitz *S, double k, const opened *O, double quad, long n0, int count, const double *zr, const double *zi)
{
    int i;
    for (i = 0; i < count; i++) {
        long n = n0 + i;
        double x = zr[i], w = zi[i], X = 2 * x + x * x + w * w, mod2 = (1 + x) * (1 + x) + w * w, inv = 1 / sqrt(mod2);
        double lr = 0.5 * (X > -0.75 ? log1p(X) : log(mod2)), li = atan2(w, 1 + x), dz, qz;
        dz = (double)n * S->dy * (O->c1 + (double)i * O->c2) * inv; qz = quad * inv;
        S->re[n] += k * lr; S->im[n] += S->add ? -k * li : k * li;
        S->round[n] += dz < 0.5 ? k * (dz / (1 - dz) + 12 * HS_U * sqrt(x * x + w * w) * inv * inv)
                                  + (4 + S->b) * HS_U * k * (fabs(lr) + fabs(li)) : HUGE_VAL;
        S->node[n] += qz < 0.5 ? k * qz / (1 - qz) : HUGE_VAL;
    }
}

/* -log|phi| at the tail points: as a squared distance a^2 = 2 (1 - |phi|) there, and as a bound for all larger |y|. */
static void add_points(hs_prawitz *S, double k, opened *O)
{
    int j;
    for (j = 0; j < S->points; j++) {
        double y = S->y[j], x, w, err, a2;
        S->far[j] -= k * log(far_upper(O, y));
        if (S->b == 1 && S->far[j] >= S->T0 + 2) S->points = j + 1; /* enough for all that follows */
        if (S->points == 1) return;
        O->G.strip = -1; /* each frequency has its own best strip */
        hs_grid_phase(&O->G, y, &x, &w);
        O->G.strip = -1;
        err = y * (O->c1 + 64 * O->c2) + quadrature_upper(O, y);
        a2 = fmin(1, fmax(0, -(2 * x + x * x + w * w))); /* 1 - |phi|^2 */
        S->metric[j] += k * fmax(0, 2 * a2 / (1 + sqrt(1 - a2)) - 2 * err - 8 * HS_U);
    }
}

static int visit_all(hs_prawitz *S, double *work)
{
    double zr[BLOCK], zi[BLOCK], level[4], y_grid = (double)(S->N + 2) * S->dy;
    int i, j, st;
    long n0;
    opened O;
    for (j = 0; j < 4; j++) memset(S->re + j * N_MAX, 0, sizeof(double) * (size_t)(S->N + 1));
    for (j = 0; j < 3; j++) S->K[j] = S->err[j] = S->inner[j] = 0;
    for (j = 0; j < POINTS; j++) S->metric[j] = S->far[j] = S->gauss[j] = 0;
    S->var = S->k_smooth = 0;
    for (i = 0; i < S->b; i++) {
        if (S->family[i] == 0 && S->q[i] == 1) { visit_gaussian(S, S->m[i], S->k[i]); continue; }
        if ((st = open_step(S, i, y_grid, &O, work))) return st;
        for (j = 0; j < 4; j++) level[j] = quadrature_upper(&O, y_grid * (4 - j) / 4);
        for (n0 = 0; n0 <= S->N; n0 += BLOCK) {
            int count = (int)(S->N - n0 < BLOCK ? S->N - n0 + 1 : BLOCK);
            double quad = level[(int)fmax(0, fmin(3, floor(4 - 4 * (double)(n0 + count) * S->dy / y_grid)))];
            hs_grid_nodes(&O.G, S->dy, n0, count, zr, zi);
            add_nodes(S, S->k[i], &O, quad, n0, count, zr, zi);
        }
        add_points(S, S->k[i], &O);
    }
    return HS_OK;
}

/* Lower bounds seg[j] of -log|f| on [y_j, y_{j+1}], and beyond the last point. A(y) = (sum k a^2)^{1/2} is a metric with
 * A(x) <= |x| sd, so on a segment of length d, A >= (A(y_j) + A(y_{j+1}) - d sd)/2; and -sum k log|phi| >= -k log(1 - A^2/2k)
 * by convexity (k the number of steps that are not plain Gaussian). */
static void tail_bounds(const hs_prawitz *S, double *seg)
{
    double sd = sqrt(S->var), best = 0;
    int j, n = S->points;
    for (j = 0; j < n; j++) {
        double a = 0, x = 0;
        if (j + 1 < n) a = 0.5 * (sqrt(S->metric[j]) + sqrt(S->metric[j + 1]) - (S->y[j + 1] - S->y[j]) * sd * (1 + 1e-12));
        if (a > 0) x = a * a < 2 * S->k_smooth ? -S->k_smooth * log1p(-a * a / (2 * S->k_smooth)) : 0;
        best = fmax(best, S->far[j]);
        seg[j] = fmax(x, best) * (1 - 1e-9) - 1e-9 + S->gauss[j];
    }
}

/* The smoothing and truncation terms for the T asked for, or the T for which their sum is least. */
static void choose_limit(hs_prawitz *S)
{
    double seg[POINTS], near = 1, mass = 0, cut = 0, top = exp(lf(S->t)), best = HUGE_VAL, Y = (double)S->N * S->dy;
    long n;
    int j;
    tail_bounds(S, seg);
    for (n = 1; n <= S->N; n++) near += 2 * exp(S->re[n]) * (S->T > 0 ? fmax(0, 1 - (double)n * S->dy / S->T) : 1);
    near *= 1 + 1e-9; /* the rounding of the sum; next, the nodes' own errors */
    for (n = 1; n <= S->N; n++) near += 2 * exp(S->re[n]) * expm1(fmin(700, S->round[n] + S->node[n]));
    if (S->T > 0 && S->T <= Y + S->dy) {
        S->limit = S->T; S->smooth = top * S->dy / S->T * near; S->tail = 0;
        return;
    }
    for (j = 0; j < S->points; j++) {
        double F = exp(-seg[j]), lo = S->y[j], hi = j + 1 < S->points ? S->y[j + 1] : FAR * lo, smooth;
        if (S->T > 0) hi = j + 1 < S->points ? fmin(hi, S->T) : S->T;
        if (!(hi > lo)) break;
        mass += F * (hi - lo + S->dy); cut += F * (1 / lo - 1 / hi + S->dy / (lo * lo)) / HS_PI; /* one node more: lo is off the mesh */
        smooth = top / hi * (S->dy * near + 2 * mass) * (1 + 1e-6);
        if (S->T > 0 || smooth + cut < best) { best = smooth + cut; S->smooth = smooth; S->tail = cut * (1 + 1e-6); S->limit = hi; }
    }
}

/* The decay of |f| sampled at geometric y on middling grids of at most 48 steps: how many nodes are worth having. */
static int plan_nodes(hs_prawitz *S, double *work)
{
    double target = S->T0 + 4, y0 = sqrt(2 * target) / S->sd, sum[16] = {0}, total = 0, y, prev = 0, prev_y = 0, far = -HUGE_VAL;
    int stride = S->b > 48 ? S->b / 48 : 1, j, it;
    for (j = 0; j < S->b; j += stride) {
        double m = S->m[j], q = S->q[j], a = S->add ? -S->t : 1 + S->t, o[3], zr, zi, c1, c2;
        int plain = S->family[j] == 0 && q == 1;
        hs_grid G;
        total += S->k[j];
        if (!plain) {
            step_cgf(S, j, S->t, o);
            if (S->family[j] ? hs_laplace_grid(&G, m, q, S->x, S->w, S->n_gl, work)
                             : hs_grid_build(&G, m, q, 0.15 / fmax(m, 1), -7 - (a < 0 ? log1p(-a * m * q) / m : 0), fmax(a * m, 0) + 7, work))
                return HS_TOO_MANY_NODES;
            hs_grid_weights(&G, a, o[0], &c1, &c2);
        }
        for (it = 0, y = y0; it < 16; it++, y *= 1.35) {
            if (!plain) hs_grid_phase(&G, y, &zr, &zi);
            sum[it] += plain ? -0.5 * S->k[j] * m * m * y * y : 0.5 * S->k[j] * log(fmax((1 + zr) * (1 + zr) + zi * zi, 1e-300));
            if (S->b == 1 && sum[it] - 2 * log(hypot(S->t, y) / S->t) < -target) break;
        }
        if (S->b == 1 && S->family[j] == 0 && !plain) far = S->k[j] * log(hs_grid_far_upper(&G, a, y)); /* it sees less than |f| */
    }
    for (it = 0, y = y0; it < 16; it++, prev_y = y, y *= 1.35) {
        double at = sum[it] * S->ktot / total - 2 * log(hypot(S->t, y) / S->t);
        if (at < -target) {
            total = y;
            if (it > 0) y = prev_y + (y - prev_y) * fmin(1, (target + prev) / (prev - at) + 0.05);
            if (far > -S->T0 - 3) y = fmin(2.5 * y, total * pow((S->T0 + 3) / fmax(-far, 1), 0.8));
            break;
        }
        prev = at;
    }
    if (S->T > 0) y = fmin(y, S->T * (1 - 1e-9));
    S->N = y / S->dy < N_MAX - 8 ? (long)(1.02 * y / S->dy) + 3 : N_MAX - 4;
    if (S->T > 0 && (double)S->N * S->dy >= S->T) S->N = (long)fmax(0, ceil(S->T / S->dy) - 1);
    return HS_OK;
}

/* lam(s), to 16 u absolutely: reflected above 1/2, where the cotangent has its pole. */
static double weight(double s)
{
    double x = HS_PI * (s > 0.5 ? 1 - s : s), c = x > 1e-8 ? x / tan(x) : 1;
    return s > 0.5 ? s * (1 - c) : (1 - s) * c + s;
}

/* Nodes to coefficients of value and slope, weighted 1, 2, 2, ..., with |eps| up to `reach` away in the error sums. */
static void freeze(hs_prawitz *S)
{
    double abs_sum = 0, inner = 0, round = 0, t = S->t, top = fabs(S->eps) + S->reach;
    long n;
    for (n = 0; n <= S->N; n++) {
        double y = (double)n * S->dy, ph = S->im[n] - S->eps * y, mag = exp(S->re[n]) * (n ? 2 : 1), co = cos(ph), si = sin(ph);
        double dr = t * (1 + t) - y * y, di = y * (1 + 2 * t), den = dr * dr + di * di, a = mag / sqrt(den);
        double grow = expm1(fmin(700, S->round[n] + 2 * HS_U * (fabs(S->re[n]) + fabs(S->im[n]) + top * y) + 12 * HS_U * S->reach * y));
        double quad = expm1(fmin(700, S->node[n])), lam = weight(y / S->limit);
        abs_sum += a; inner += a * quad; round += a * (grow * (1 + quad) + 40 * HS_U);
        mag *= lam;
        S->re[n] = mag * (co * dr + si * di) / den;
        S->im[n] = mag * (si * dr - co * di) / den;
        den = (1 + t) * (1 + t) + y * y;
        S->round[n] = mag * (co * (1 + t) + si * y) / den;
        S->node[n] = mag * (si * (1 + t) - co * y) / den;
    }
    S->round_sum = round + (double)S->N * HS_U * abs_sum; S->inner_sum = inner;
}

/* At eps within `reach` of S->eps: all share the nodes. */
static void evaluate(const hs_prawitz *S, double eps, hs_value *v)
{
    double de = eps - S->eps, unit = S->dy / (2 * HS_PI), sum = 0, der = 0, t = S->t, P = S->P, s = S->s_left, d, S1 = 0, whole, A, left;
    long n;
    v->log_scale = S->K[2] - t * eps;
    for (n = 0; n <= S->N; n++) {
        double re, im;
        hs_cis_m1(-de * ((double)n * S->dy), &re, &im);
        sum += S->re[n] + (S->re[n] * re - S->im[n] * im);
        der += S->round[n] + (S->round[n] * re - S->node[n] * im);
    }
    if (s < 0) S1 = exp(-v->log_scale) / expm1(t * P);
    v->value = unit * sum - S1; v->slope = unit * der;
    whole = 2 * HS_U * (fabs(S->K[2]) + fabs(t * eps)) + S->err[2];
    v->rounding = unit * S->round_sum + expm1(whole) * fabs(unit * sum) * (1 + S->inner[2]) + 16 * HS_U * (2 + t * P + fabs(v->log_scale)) * S1;
    v->inner = unit * S->inner_sum + expm1(S->inner[2]) * fabs(unit * sum);
    d = S->s_right - t;
    A = S->K[0] + S->err[0] + S->inner[0] - S->K[2] - d * eps + lf(S->s_right) - d * P;
    A = exp(A + 1e-12 * fabs(d * eps)) / -expm1(-d * P) * (1 + 1e-9);
    d = t - s;
    left = S->K[1] + S->err[1] + S->inner[1] - S->K[2] + d * eps + lf(s) - d * P;
    left = exp(left + 1e-12 * fabs(d * eps)) / -expm1(-d * P) * (1 + 1e-9);
    v->aliasing = A + left;
    v->lower = v->value - A - v->inner - v->rounding - S->tail - S->smooth - (s < 0 ? 0 : left);
    v->upper = v->value + v->inner + v->rounding + S->tail + S->smooth + (s < 0 ? left : 0);
    whole = exp(lf(t) + whole + S->inner[2]);
    v->upper = (v->upper < whole ? v->upper : whole) * (1 + 4 * HS_U); /* also where the sum is not a number */
    v->lower = v->lower > 0 ? v->lower * (1 - 4 * HS_U) : 0;
}

/* Tail points: from the last node in steps of 0.7 over the rms deviation of a step, in which the metric can see; then doubling. */
static void place_points(hs_prawitz *S)
{
    double step = 0.7 * sqrt(S->ktot) / S->sd;
    int j;
    S->y[0] = (double)(S->N > 1 ? S->N : 1) * S->dy;
    for (j = 1; j < POINTS; j++) S->y[j] = S->y[j - 1] + fmin(S->y[j - 1], j < POINTS / 2 ? step : S->y[j - 1]);
    S->points = POINTS;
    if (S->T > 0 && S->T <= S->y[0] + S->dy) S->points = 0; /* the nodes are all there is */
    else if (S->b > 1) for (S->points = 6; S->points < POINTS && S->y[S->points - 6] < 2 * step; S->points++) {}
}

/* Place the line for S->eps (or log_delta), visit the steps, bound the tail, choose the smoothing limit. */
static int prepare(hs_prawitz *S, int have_eps, double log_delta, double *work, long n_work)
{
    long last;
    int st, j;
    if (n_work < hs_prawitz_work() || S->b < 1) return HS_SCRATCH;
    for (S->ktot = 0, j = 0; j < S->b; j++) S->ktot += S->k[j];
    S->t = 1;
    if (!have_eps) { /* the tilt of the normal law of the same variance */
        double o[3];
        total_cgf(S, 0, o);
        S->t = fmax(1e-3, fmin(1e3, sqrt(fmax(0.5, -1.6 * log_delta) / o[2])));
    }
    if ((st = find_saddle(S, have_eps, log_delta)) || (st = place(S))) return st;
    S->reach = 0.5 + 4 / S->t;
    if ((st = plan_nodes(S, work + 4 * N_MAX))) return st;
    S->re = work; S->im = work + N_MAX; S->round = work + 2 * N_MAX; S->node = work + 3 * N_MAX;
    place_points(S);
    if ((st = visit_all(S, work + 4 * N_MAX))) return st;
    for (last = 1; last < S->N && S->round[last + 1] + S->node[last + 1] < 1e-3; last++) {}
    if (last < S->N) { /* no further than the grids carry */
        S->N = last;
        place_points(S);
        if ((st = visit_all(S, work + 4 * N_MAX))) return st;
    }
    choose_limit(S);
    freeze(S);
    return HS_OK;
}

long hs_prawitz_work(void) { return 4 * N_MAX + HS_GRID_WORK; }

int hs_prawitz_delta(hs_prawitz *S, double eps, double *work, long n_work, hs_point *out)
{
    hs_value v;
    int st;
    S->eps = eps;
    if ((st = prepare(S, 1, 0, work, n_work))) return st;
    evaluate(S, eps, &v);
    out->log_scale = v.log_scale; out->estimate = v.value; out->lower = v.lower; out->upper = v.upper;
    out->aliasing = v.aliasing; out->truncation = S->tail; out->inner = v.inner; out->rounding = v.rounding; out->n_nodes = S->N + 1;
    return v.upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* Ends at which certified deltas lie on both sides of the target; where there is none within reach, Chernoff's eps above and
 * -infinity below. */
int hs_prawitz_eps(hs_prawitz *S, double log_delta, double *work, long n_work, double *lower, double *estimate, double *upper, hs_point *out)
{
    double e, r, step;
    int st, it, ok_lo = 0, ok_up = 0;
    hs_value v;
    if ((st = prepare(S, 0, log_delta, work, n_work))) return st;
    for (e = S->eps, it = 0; it < 12; it++) {
        evaluate(S, e, &v);
        if (!(v.value > 0 && v.slope > 0)) break;
        step = (v.log_scale + log(v.value) - log_delta) * v.value / v.slope;
        e += fmax(-0.4 * S->reach, fmin(0.4 * S->reach, step));
        if (!(fabs(e - S->eps) < 0.8 * S->reach)) { e = S->eps; break; }
        if (fabs(step) < 2e-16 * fabs(e) + 1e-3 * (v.upper - v.lower) / v.slope) break;
    }
    evaluate(S, e, &v);
    *lower = -HUGE_VAL; *estimate = e;
    *upper = (S->K[2] + S->err[2] + S->inner[2] + lf(S->t) - log_delta) / S->t;
    *upper += 8 * HS_U * (fabs(*upper) + (fabs(S->K[2]) + fabs(log_delta)) / S->t);
    r = v.slope > 0 ? 0.75 * (v.upper - v.lower) / v.slope + fabs(v.log_scale + log(fmax(v.value, 1e-300)) - log_delta) * v.value / v.slope : 0;
    r = fmax(fmin(r, 0.05 * S->reach), 4 * HS_U * fabs(e)) + 1e-300;
    for (it = 0; it < 100 && !(ok_lo && ok_up) && r < 0.5 * S->reach; it++, r *= it < 8 ? 1.5 : 1.1) {
        double slack = 4 * HS_U * (2 + fabs(v.log_scale) + fabs(log_delta));
        if (!ok_lo) {
            evaluate(S, e - r, &v);
            ok_lo = v.lower > 0 && v.log_scale + log(v.lower) - slack >= log_delta;
            if (ok_lo) *lower = e - r;
        }
        if (!ok_up) {
            evaluate(S, e + r, &v);
            ok_up = v.log_scale + log(v.upper) + slack <= log_delta;
            if (ok_up) *upper = fmin(*upper, e + r);
        }
    }
    evaluate(S, e, &v);
    out->log_scale = v.log_scale; out->estimate = v.value; out->lower = v.lower; out->upper = v.upper;
    out->aliasing = v.aliasing; out->truncation = S->tail; out->inner = v.inner; out->rounding = v.rounding; out->n_nodes = S->N + 1;
    return *upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}
