/* The tables of an inner path: what of (1+U)^a w(g) g', or (1+U1)^a (1+U2)^{1-a} w(g) g', does not depend on a, at the
 * samples of one line.
 *
 * Symbols, paths, lines and the formulas (1)-(3), (6): head of hyperbola_bound.c.
 * Formula   bend_r = s_r + sqrt(s_r^2 + w^2), on node lines as w^2/(sqrt - s_r) where s_r < 0: no cancellation;
 *           g = xi' + i sum mu_r/2 bend_r, g' = 1 + i sum mu_r/2 bend_r/sqrt, with xi' = xi + i t and s_r = xi' - x_r.
 * Error claim: on a node line (t = 0) Re g and Re g' are exact, |dg| <= 12u Im g, |dg'| <= 20u Im g': s u, s^2 + w^2
 * 4u, sqrt 3u, bend 6u, bend/sqrt 10u, all summands of the two sums positive. The slacks of (2) are inflated by the
 * evaluation. Points are taken in chunks that a compiler vectorises; a point where (2) fails gets an infinite slack.
 * Not done here: sums over a line (hyperbola_bound.c), the choice of paths for a cell (hyperbola_cells.c). */
#include "curve/hyperbola.h"
#include "special.h"
#include <stddef.h>

/* largest step of a strip line, in 1/m: keeps the second-order slack finite near the branch points */
static const double STRIP_STEP = 0.25;

/* Largest height of a path on the left, where 1 + U2 must not turn against the phase: w grows there like e^{d^2/2}. */
static const double MOST_LIFT = 2.0;

enum { CHUNK = 64 };

typedef struct { /* of one factor 1 + U: log(1+U)/(1-q); rho^(+-1) <= 1 and |1 + rho^(+-1) e^{+-ib}|^2 */
    double lr[CHUNK], li[CHUNK], rho[CHUNK], mod2[CHUNK];
} factor;

typedef struct { /* g, g', bounds of |g''| and |g'''| over a half cell; both factors */
    double g0[CHUNK], g1[CHUNK], p0[CHUNK], p1[CHUNK];
    double d0[CHUNK], d1[CHUNK];
    factor num, den;
} chunk;

static double *take(hs_arena *mem, int64_t n)
{
    double *p = mem->p;
    if (mem->left < n) return NULL;
    mem->p += n;
    mem->left -= n;
    return p;
}

/* The bends of a rung's path and the width of its strip. Rung 0 is the real line; 1 and 2 rise by a fixed slope from x1
 * on (ADD: 1 is the real line with a narrower strip); from 3 on a path rises by mu1 from x1 on and by mu1 + mu2 from x2
 * on, right of xb. `at`: how far x1 lies left of xb, in 1/m. */
static void choose_bends(hs_path *p, int rung, int add, double kappa, double at)
{
    static const double lift[HS_HYP_PATHS] = {0, 0, 0, 1, 0.8, 0.9, 1.0, 1.2, 1.5, 1.7, 1.8};
    double mu = fmin(kappa + 0.15, 0.85), rise = add ? lift[rung] : rung == 4 ? 1.2 : 1.7;
    p->mu1 = rung == 0 ? 0 : rung == 1 ? 0.2 : rung == 2 ? 0.45 : fmin(mu, rise / at);
    p->w = (rung < 3 ? 2.0 : rung < 4 ? 1.4 : 1.0) / p->m;
    p->d = 0.7 * p->w;
    if (add && rung == 1) {
        p->mu1 = 0;
        p->d *= 0.5;
    }
    if (add && rung > 3) p->d *= 0.85;
    p->mu2 = rung < 3 ? 0 : mu - p->mu1;
    p->x1 = p->xb - at / p->m;
    p->x2 = rung < 3 ? p->x1 : p->xb + 0.5 / p->m;
    if (p->d > 7.0) p->d = 7.0;
    p->lift = 0;
    if (p->down > 0 && p->mu1 > 0) p->lift = p->d = fmin((rung < 4 ? 0.7 : 0.4) / p->m, MOST_LIFT);
}

static void take_branch(hs_path *p, const hs_hyp_branch *branch)
{
    double m = branch->up, down = branch->down;
    p->m = m;
    p->down = down;
    p->q = branch->q;
    p->q_err = branch->q_err;
    p->logq1 = log1p(-p->q);
    p->logq = log(p->q);
    p->floor = down > 0 ? 0 : p->logq1;
    p->xb = (p->logq1 - p->logq) / m + 0.5 * m;
    p->xd = down > 0 ? -((p->logq1 - p->logq) / down + 0.5 * down) : -HUGE_VAL;
}

int hs_path_plan(hs_path *p, const hs_hyp_branch *branch, int rung, int add, double kappa, double reach, double t_inner)
{
    static const double sh[HS_HYP_PATHS] = {0, 1.0, 1.0, 0.5, 2.0, 3.5, 5.0, 7.0, 9.5, 12.5, 16.0};
    static const double more[HS_HYP_PATHS] = {0, 0, 0, 0, 0, 1.5, 3.0, 5.0, 8.0, 12.0, 17.0};
    double m = branch->up;
    take_branch(p, branch);
    choose_bends(p, rung, add, kappa, add && rung > 3 ? fmax(2, log(reach) - 2) + more[rung] : sh[rung]);
    p->h = 2 * HS_PI * p->d / (t_inner + 0.5 * (p->d + p->lift) * (p->d + p->lift));
    if (p->h > 0.45) p->h = 0.45;
    p->h = ldexp(floor(ldexp(p->h, 20)), -20);
    p->lo = -sqrt(2.0 * t_inner) - 1.0;
    if (add) p->lo -= log1p(reach * p->q * m) / m;
    if (rung > 0 && p->lo > p->x1 - 2.0 * p->w) p->lo = p->x1 - 2.0 * p->w;
    if (p->lift > 0) p->lo = fmin(p->lo, p->x1 - 6.0 * p->w);
    p->hi = fmax(sqrt(2.0 * t_inner) + 1.0, p->xb + 4.0 / m);
    if (rung < 4 && !add) p->hi = fmax(p->hi, reach * m + sqrt(2.0 * t_inner) + 1.0);
    p->state = 0;
    return p->h > 0 && (p->hi - p->lo) / p->h < 4000 ? HS_OK : HS_NO_PATH;
}

/* Adds a = mu/2 times the bend at x to g, g', and what it gives to the bounds of |g''|, |g'''| within xi +- h/2; t =
 * 0 apart. */
HS_CLONES static void add_bend(double a, double w, double x, double t, double h, double j0, int n, chunk *restrict c)
{
    double w2 = w * w, half = 0.5 * h, least = 0.05 * w;
    int j;
    if (t == 0)
        for (j = 0; j < n; j++) {
            double s = (j0 + j) * h - x, r = sqrt(s * s + w2), up = (s < 0 ? w2 : s + r) / (s < 0 ? r - s : 1);
            double near = 1 / (r - half), curl;
            near = r - half > least ? near : HUGE_VAL; /* a line that is too coarse is refused */
            curl = a * w2 * near * near * near;
            c->g1[j] += a * up;
            c->p1[j] += a * (up / r);
            c->d0[j] += curl;
            c->d1[j] += 3 * curl * near;
        }
    else
        for (j = 0; j < n; j++) {
            double s = (j0 + j) * h - x, re = s * s - t * t + w2, im = 2 * s * t; /* re > 0 */
            double mod = sqrt(re * re + im * im), rr = sqrt(0.5 * (mod + re)), ri = 0.5 * im / rr,
                   size = sqrt(mod) - half;
            double near = 1 / size, inv = 1 / mod, curl;
            near = size > least ? near : HUGE_VAL;
            curl = a * w2 * near * near * near;
            c->g0[j] -= a * (t + ri);
            c->g1[j] += a * (s + rr);
            c->p0[j] -= a * ((t * rr - s * ri) * inv);
            c->p1[j] += a * (1 + (s * rr + t * ri) * inv);
            c->d0[j] += curl;
            c->d1[j] += 3 * curl * near;
        }
}

static void fill_curve(const hs_path *p, double t, double h, double j0, int n, chunk *c)
{
    int j;
    for (j = 0; j < n; j++) {
        c->g0[j] = (j0 + j) * h;
        c->g1[j] = t + p->lift;
        c->p0[j] = 1;
        c->p1[j] = c->d0[j] = c->d1[j] = 0;
    }
    if (p->mu1 > 0) add_bend(0.5 * p->mu1, p->w, p->x1, t, h, j0, n, c);
    if (p->mu2 > 0) add_bend(0.5 * p->mu2, p->w, p->x2, t, h, j0, n, c);
}

/* log((1+U)/(1-q)) of a factor along the continuous branch, at side g; |b| < 8e5. xb: where rho is 1. */
HS_CLONES static void fill_log(double m, double xb, double side, int n, const chunk *restrict c, factor *restrict f)
{
    int j;
    for (j = 0; j < n; j++) {
        double v = m * (side * c->g0[j] - xb), b = m * (side * c->g1[j]), far = v < 0 ? -v : v;
        double r = hs_exp(-(far < 650 ? far : 650)), x, y;
        double n2, small, l;
        hs_cis(b, &x, &y);
        x *= r;
        y *= v > 0 ? -r : r;
        n2 = r * r + 2 * x;
        small = n2 < 0.1 && n2 > -0.1 ? n2 : 0;
        l = small + hs_log1pmx_small(small);
        x += 1;
        n2 = 1 + n2 > 1e-300 ? 1 + n2 : 1e-300;
        l = small != 0 ? l : hs_log(n2);
        f->lr[j] = 0.5 * l + (v > 0 ? v : 0);
        f->li[j] = hs_atan2(y, x) + (v > 0 ? b : 0);
        f->rho[j] = r;
        f->mod2[j] = n2;
    }
}

/* L = log(1+U1) - log(1+U2) from both factors; a pair of one side has U2 = 0. */
static void fill_loss(const hs_path *p, int n, chunk *restrict c, double *restrict lr, double *restrict li)
{
    int j;
    fill_log(p->m, p->xb, 1, n, c, &c->num);
    if (p->down > 0) {
        fill_log(p->down, -p->xd, -1, n, c, &c->den);
        for (j = 0; j < n; j++) {
            lr[j] = c->num.lr[j] - c->den.lr[j];
            li[j] = c->num.li[j] - c->den.li[j];
        }
    } else
        for (j = 0; j < n; j++) {
            lr[j] = c->num.lr[j] + p->logq1;
            li[j] = c->num.li[j];
        }
}

/* Bound of h^2/8 times the second derivative of log(1+U) along the line, over the half cells about sample j; infinite
 * near a branch point. far: whether rho is 1 or more. */
static inline double log_slack_upper(const factor *f, int j, double m, int far, double em, double part, double gh,
                                     double d0)
{
    double r = f->rho[j], near = far != 0 ? 1 : r, other = far != 0 ? r : 1, den = sqrt(f->mod2[j]) - near * em;
    double inv = 1 / den, x = part * m * near * (em + 1) * inv * (m * other * inv * gh * gh + d0);
    return den > 0.02 ? x : HUGE_VAL;
}

/* lw, the slacks of (2) before they are taken over cells; see hs_line for the names */
HS_CLONES static void fill_slack(const hs_path *p, double h, int n, const chunk *restrict c, double *restrict lw,
                                 double *restrict slack, double *restrict dd)
{
    double gpmax = 1 + p->mu1 + p->mu2, logh = log(h) - HS_LOG_SQRT_2PI, part = h * h / 8;
    double em = expm1(p->m * 0.5 * h * gpmax), em2 = expm1(p->down * 0.5 * h * gpmax);
    int j;
    for (j = 0; j < n; j++) {
        double g0 = c->g0[j], g1 = c->g1[j], d0 = c->d0[j], d1 = c->d1[j];
        double g2 = c->p0[j] * c->p0[j] + c->p1[j] * c->p1[j], ga = sqrt(g2), gl = ga - 0.5 * h * d0;
        double gh = ga + 0.5 * h * d0, x, y;
        int ok = (gl > 0.3) & (d1 < 1e300);
        gh = gh < gpmax ? gh : gpmax;
        gl = 1 / gl;
        x = log_slack_upper(&c->num, j, p->m, g0 > p->xb, em, part, gh, d0);
        y = part * (gh * gh + (fabs(g0) + fabs(g1) + h * gpmax) * d0 + d1 * gl + d0 * gl * d0 * gl);
        lw[j] = -0.5 * (g0 * g0 - g1 * g1) + logh + 0.5 * hs_log(g2);
        dd[j] = ok ? x : HUGE_VAL;
        slack[j] = ok ? y : HUGE_VAL;
    }
    if (!(p->down > 0)) return;
    for (j = 0; j < n; j++) { /* (1+U2)^{1-a} */
        double ga = sqrt(c->p0[j] * c->p0[j] + c->p1[j] * c->p1[j]) + 0.5 * h * c->d0[j];
        double x = log_slack_upper(&c->den, j, p->down, c->g0[j] < p->xd, em2, part, ga < gpmax ? ga : gpmax, c->d0[j]);
        lw[j] += p->logq1 + c->den.lr[j];
        dd[j] += x;
        slack[j] += x;
    }
}

/* What log(1+U) of a factor is off by at sample j, in units of u, but for sums and products; `known`: what does not
 * depend on the sample of what is known of its logarithm. */
static inline double log_off(const factor *f, int j, double m, int far, double known, double size, double dg)
{
    double r = f->rho[j], inv = 1 / f->mod2[j], share = sqrt(inv);
    share = far != 0 ? share : share * r; /* |dlog(1+U)/dv| */
    return share * (m * (dg + 4 * size) + known) + 24 * r * (2 + r) * inv;
}

/* What only a node line has: w (1+U2) g' e^{aL} without the power; its rounding per unit and per |a|, (6), in u. */
HS_CLONES static void fill_node(const hs_path *p, int n, const chunk *restrict c, const hs_line *L, int64_t at)
{
    double m = p->m, xb = p->xb, q_err = 2 * p->q_err;
    double logq1 = fabs(p->logq1), own = p->down > 0 ? 0 : p->logq1;
    double known = 4 * (fabs(p->logq) + logq1) + 16 + 4 * m * (fabs(xb) + m) + q_err;
    double flat = 48 * 2 * logq1 + q_err * p->q;
    double *restrict cr = L->cr + at, *restrict ci = L->ci + at, *restrict c0 = L->c0 + at, *restrict c1 = L->c1 + at;
    int j;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double g0 = c->g0[j], g1 = c->g1[j], p0 = c->p0[j], p1 = c->p1[j];
        double size = fabs(g0) + g1, dg = 12 * g1;
        double lw = -0.5 * (g0 * g0 - g1 * g1) + 0.5 * hs_log(p0 * p0 + p1 * p1);
        double off = log_off(&c->num, j, m, g0 > xb, known, size, dg);
        cr[j] = lw;
        ci[j] = hs_atan2(p1, p0) - g0 * g1;
        c0[j] = size * dg + 8 + 39 * p1 + 2 * size * size + 3 * fabs(lw);
        c1[j] = off + 48 * (fabs(c->num.lr[j] + own) + fabs(c->num.li[j])) + flat;
    }
}

/* The same of (1+U2)^{1-a}, added. */
HS_CLONES static void fill_node_den(const hs_path *p, int n, const chunk *restrict c, const hs_line *L, int64_t at)
{
    double down = p->down, xd = p->xd, own = p->logq1, q_err = 2 * p->q_err;
    double known = 4 * (fabs(p->logq) + fabs(own)) + 16 + 4 * down * (fabs(xd) + down) + q_err;
    double flat = 48 * 2 * fabs(own) + q_err * p->q;
    double *restrict cr = L->cr + at, *restrict ci = L->ci + at, *restrict c0 = L->c0 + at, *restrict c1 = L->c1 + at;
    int j;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double g1 = c->g1[j], size = fabs(c->g0[j]) + g1, lr = c->den.lr[j], li = c->den.li[j];
        double off = log_off(&c->den, j, down, c->g0[j] < xd, known, size, 12 * g1);
        off += 48 * (fabs(lr) + fabs(li)) + flat;
        cr[j] += own + lr;
        ci[j] += li;
        c0[j] += off;
        c1[j] += off;
    }
}

/* e0, e1 of (3) for the end whose distances from the two turns are a and c. */
static void bend_errors(const hs_path *p, double a, double c, double *e0, double *e1)
{
    double w2 = p->w * p->w;
    *e0 = w2 * (p->mu1 / (2 * a) + p->mu2 / (2 * c));
    *e1 = w2 * (p->mu1 / (2 * a * a) + p->mu2 / (2 * c * c));
}

/* What (1+U2)^{1-a} takes from the rate of the right end, which begins at Re g = at; g' is at most `most` there. */
static int den_end(hs_line *L, const hs_path *p, double at, double most)
{
    double s, fall;
    if (!(p->down > 0)) return HS_OK;
    s = exp(-p->down * (at - p->xd));
    fall = p->down * s / (1 - s) * most * (1 + 1e-9);
    if (!(s < 0.5)) return HS_NO_PATH;
    L->lam0 -= fall;
    L->merr += fall / p->m;
    return HS_OK;
}

/* Both open ends of the line, (3): lo, hi its first and last xi, left, right its first and last g, weight log|1+U2| at
 * the last one. */
static int line_ends(hs_line *L, const hs_path *p, double t, double lo, double hi, const double *left,
                     const double *right, double weight)
{
    double mu = p->mu1 + p->mu2, gpmax = 1 + mu, size = fabs(t) + p->lift, e0 = 0;
    double e1 = 0, lam, rho, lead = 0;
    if (mu > 0) {
        double a = p->x1 - lo, c = p->x2 - lo;
        if (!(a >= p->w)) return HS_NO_PATH;
        bend_errors(p, a, c, &e0, &e1);
    }
    lam = (-lo - e0) * (1 - e1) - (size + e0) * e1;
    rho = exp(p->m * (left[0] - p->xb));
    L->left_turn = p->down * left[1] * (1 + 1e-9);
    if (!(lam > 0.5 && rho < 0.5 && e1 < 0.5)) return HS_NO_PATH;
    if (p->down > 0 && !(L->left_turn < 1.57 && t + p->lift >= 0)) return HS_NO_PATH;
    L->left_lw = -0.5 * (left[0] * left[0] - left[1] * left[1]) - HS_LOG_SQRT_2PI + log((1 / lam + L->h) * gpmax);
    L->left_rho = rho / (1 - rho);
    e0 = e1 = 0;
    if (mu > 0) {
        double a = hi - p->x1, c = hi - p->x2;
        if (!(c >= p->w)) return HS_NO_PATH;
        bend_errors(p, a, c, &e0, &e1);
        lead = p->mu1 * a + p->mu2 * c;
    }
    rho = exp(p->m * (right[0] - p->xb));
    if (!(rho > 4 && 1 - e1 - mu * (mu + e1) > 0.05)) return HS_NO_PATH;
    L->lam0 = (hi - mu * fabs(t) - e0) * (1 - e1) - (size + lead + e0) * (mu + e1);
    L->mslope = mu;
    L->merr = e1 + (1 + mu + e1) / (rho - 1);
    L->right_lw = -0.5 * (right[0] * right[0] - right[1] * right[1]) - HS_LOG_SQRT_2PI + log(gpmax) + weight;
    return den_end(L, p, right[0], 1 + mu + e1);
}

/* lw += slack and dd, each the worst over the cells that a sample ends: over the sample and its neighbours. */
HS_CLONES static int over_cells(hs_line *L, double *restrict slack, double *restrict raw)
{
    double worst[8] = {0}, *restrict lw = L->lw, *restrict dd = L->dd, top = 0;
    int j, i, n = L->n;
    slack[-1] = slack[0];
    slack[n] = slack[n - 1];
    raw[-1] = raw[0];
    raw[n] = raw[n - 1];
    for (j = 0; j < n; j++) {
        double s = slack[j - 1] > slack[j + 1] ? slack[j - 1] : slack[j + 1],
               r = raw[j - 1] > raw[j + 1] ? raw[j - 1] : raw[j + 1];
        lw[j] += s > slack[j] ? s : slack[j];
        dd[j] = r > raw[j] ? r : raw[j];
    }
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++)
            worst[i] = dd[j + i] + fabs(lw[j + i]) > worst[i] ? dd[j + i] + fabs(lw[j + i]) : worst[i];
    for (i = 0; i < 8; i++) top = worst[i] > top ? worst[i] : top;
    return top < 1e300; /* every sum of (2) is finite */
}

/* Room in `mem` for the tables of n samples. */
static int line_room(hs_line *L, int node, int64_t n, hs_arena *mem)
{
    double *at = take(mem, n * (node ? 8 : 4));
    if (!at) return HS_SCRATCH;
    L->n = (int)n;
    L->lr = at;
    L->li = at + n;
    L->lw = at + 2 * n;
    L->dd = at + 3 * n;
    if (node) {
        L->cr = at + 4 * n;
        L->ci = at + 5 * n;
        L->c0 = at + 6 * n;
        L->c1 = at + 7 * n;
    }
    return HS_OK;
}

/* Whether the phase of the factor of rate m is below pi at the first sample behind its branch points, whose abscissa is
 * x; `behind`: whether that sample has come. Re g increases along a line [theory: hyperbola.paths]
 * [theory: hyperbola.two-sheets]. */
static int on_sheet(double m, double x, const chunk *c, int n, int *behind)
{
    int i = 0;
    if (*behind || c->g0[n - 1] < x) return 1;
    while (c->g0[i] < x) i++;
    *behind = 1;
    return m * c->g1[i] < 0.999 * HS_PI;
}

/* The last loss of a line of that length, and what the rounding of its bounds is in proportion to. */
static void line_size(hs_line *L, const hs_path *p, double length)
{
    L->right_lr = L->lr[L->n - 1];
    L->right_li = L->li[L->n - 1];
    L->l_max = 1 + 2 * fabs(p->logq1) + fabs(L->right_lr) + fabs(L->right_li) + p->m * (fabs(p->xb) + length);
    L->l_max += 4 * p->q_err + (p->down > 0 ? p->down * (fabs(p->xd) + length) : 0);
}

/* tmp: 2 HS_HYP_TMP doubles. */
static int line_build(hs_line *L, const hs_path *p, double t, double h, int node, hs_arena *mem, double *tmp)
{
    double *slack = tmp + 8, *raw = tmp + HS_HYP_TMP + 8, lo;
    double hi, left[2] = {0}, right[2] = {0}, weight = 0;
    int64_t j0 = (int64_t)floor(p->lo / h), n = ((int64_t)ceil(p->hi / h) - j0 + 8) / 8 * 8, j;
    int behind[2] = {0, 0};
    chunk c;
    if (n > HS_HYP_TMP - 16) return HS_NO_PATH;
    if (line_room(L, node, n, mem)) return HS_SCRATCH;
    L->h = h;
    L->m = p->m;
    L->floor = p->floor;
    for (j = 0; j < n; j += CHUNK) {
        int size = n - j < CHUNK ? (int)(n - j) : CHUNK;
        fill_curve(p, t, h, (double)(j0 + j), size, &c);
        if (j == 0) {
            left[0] = c.g0[0];
            left[1] = c.g1[0];
        }
        right[0] = c.g0[size - 1];
        right[1] = c.g1[size - 1];
        if (!on_sheet(p->m, p->xb, &c, size, behind) || !on_sheet(p->down, p->xd, &c, size, behind + 1))
            return HS_NO_PATH;
        if (!(p->m * fabs(right[1]) < 8e5)) return HS_NO_PATH;
        fill_loss(p, size, &c, L->lr + j, L->li + j);
        fill_slack(p, h, size, &c, L->lw + j, slack + j, raw + j);
        if (node) fill_node(p, size, &c, L, j);
        if (node && p->down > 0) fill_node_den(p, size, &c, L, j);
        if (p->down > 0) weight = p->logq1 + c.den.lr[size - 1];
    }
    lo = (double)j0 * h;
    hi = (double)(j0 + n - 1) * h;
    if (!behind[0] || !behind[1] || !over_cells(L, slack, raw)) return HS_NO_PATH;
    line_size(L, p, hi - lo);
    return line_ends(L, p, t, lo, hi, left, right, weight);
}

int hs_path_build(hs_path *p, hs_arena *mem, double *tmp)
{
    hs_arena save = *mem;
    int st = line_build(&p->mid, p, 0, p->h, 1, mem, tmp);
    if (st != HS_OK) *mem = save;
    p->state = st == HS_OK ? 1 : -1;
    return st;
}

int hs_path_build_strip(hs_path *p, hs_arena *mem, double *tmp)
{
    hs_arena save = *mem;
    double h = fmin(2 * p->h, STRIP_STEP / p->m);
    int st = line_build(&p->up, p, p->d, h, 0, mem, tmp);
    if (st == HS_OK && p->mu1 > 0) st = line_build(&p->dn, p, -p->d, h, 0, mem, tmp);
    if (st != HS_OK) *mem = save;
    p->state = st == HS_OK ? 2 : -2;
    return st;
}
