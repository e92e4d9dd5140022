/* prawitz_steps.c - what prawitz.c sums over the steps of a run: K at three tilts, log f at the nodes, |f| beyond them.
 *
 * Symbols: see prawitz.c. phi(y) = M(a +- iy)/M(a) of one step on its grid (transform.c: subsampled Gaussian;
 *   laplace_step.c: subsampled Laplace), a = 1+t (REMOVE) or -t (ADD); plain Gaussian steps are closed forms.
 *
 * Error claims. K[2] is within err (rounding) + inner[2] (quadrature) of K at t. K[0] + inner[0], K[1] + inner[1] are
 *   upper bounds of K at s_right and s_left but for (8 + b) u of themselves, the rounding of sums over steps: at one
 *   tilt K of every step has one sign. log f at node n is within round[n] + node[n], to first order in u. Tail points:
 *   far[j] <= -log|f(y)| for all y >= y_j, without plain Gaussian steps; metric[j] <= sum k 2 (1 - |phi(y_j)|);
 *   gauss[j] the plain Gaussian steps' part of -log|f(y_j)|. var bounds the variance of the tilted loss of all other
 *   steps. Phases beyond 2e6, where special.h ends its claim, lose 2u of themselves in its reduction: inside the 10u
 *   that hs_grid_weights counts.
 *
 * What it does not do: choose the line or the limit. hs_prawitz_plan and hs_prawitz_cgf_estimate only place things.
 */
#include "line/prawitz.h"
#include "line/fit.h"
#include "line/line.h"

#define LEVELS 8 /* parts of the frequency range with a quadrature error of their own */

static hs_cgf smoothed_step_cgf(const hs_prawitz *S, int i, double t)
{
    double a = S->run.add ? -t : 1 + t, m = S->run.m[i], q = S->run.q[i];
    hs_prawitz_kept *kept = (hs_prawitz_kept *)S->kept;
    if (S->run.b == 1 && hs_kind_of(&S->run, i) == HS_LAW_NORMAL &&
        q < 1) { /* all the tilts of one step share a grid, or a few */
        if (!(kept->G.a_lo <= a && a <= kept->G.a_hi)) {
            double lo = a < 0 ? 2 * a : 0, hi = a > 0 ? fmax(1.5 * a, 1) : 0;
            if (hs_coarse_build(&kept->G, m, q, lo, hi, HS_COARSE_ONE, kept->work)) kept->G.a_lo = 1, kept->G.a_hi = -1;
        }
        if (kept->G.a_lo <= a && a <= kept->G.a_hi) return hs_coarse_cgf(&kept->G, a);
    }
    return hs_kind_of(&S->run, i) == HS_LAW_NORMAL ? hs_cgf_estimate(m, q, a)
                                                   : hs_laplace_step_cgf_estimate(m, q, a, &S->rule);
}

int hs_prawitz_sparse(const hs_prawitz *S) { return S->run.b > 48 ? S->run.b / 48 : 1; }

/* One of the steps i .. i + stride - 1: scattered, for runs may be periodic. */
static int pick(const hs_prawitz *S, int i, int stride)
{
    double x = 0.61803398874989485 * (i / stride);
    i += (int)(stride * (x - floor(x)));
    return i < S->run.b ? i : S->run.b - 1;
}

hs_cgf hs_prawitz_cgf_estimate(const hs_prawitz *S, double t)
{
    hs_cgf out = {0, 0, 0};
    double total = 0, scale;
    int i;
    for (i = 0; i < S->run.b; i += S->stride) {
        int at = pick(S, i, S->stride);
        if (hs_stopped(S->poll, 1e3)) return out;
        total += S->run.k[at];
        hs_cgf_add(&out, S->run.k[at], smoothed_step_cgf(S, at, t));
    }
    scale = S->stride > 1 ? S->ratio * S->ktot / total : 1;
    return (hs_cgf){out.K * scale, out.K1 * (S->run.add ? -scale : scale), out.K2 * scale};
}

/* Essential range of k runs of step i, to 8u (1 + |value|). */
void hs_prawitz_support(const hs_prawitz *S, int i, double *low, double *high)
{
    double m = S->run.m[i], q = S->run.q[i], k = S->run.k[i], x;
    *low = hs_kind_of(&S->run, i) == HS_LAW_LAPLACE ? k * log((1 - q) + q * exp(-m))
           : q < 1                                  ? k * log1p(-q)
                                                    : -HUGE_VAL;
    *high = hs_kind_of(&S->run, i) == HS_LAW_LAPLACE ? k * log((1 - q) + q * exp(m)) : HUGE_VAL;
    if (S->run.add) {
        x = *low;
        *low = -*high;
        *high = -x;
    }
}

/* Error of M at real tilt a, relative to M, without the terms of first order that log M drops; *dropped is what
 * those add. */
static double real_error_upper(hs_opened *O, double a, int first_order, double log_m, double *dropped)
{
    double scale = exp(-fmin(log_m, 0)), fa = fabs(a), m = O->m, q = O->q;
    *dropped = 0;
    if (O->kind == HS_LAW_NORMAL) {
        if (first_order) *dropped = hs_grid_dropped_upper(&O->G, a) * scale;
        return hs_grid_real_upper(m, a, O->G.h) + hs_grid_ends_upper(&O->G, a, log_m);
    }
    if (first_order)
        *dropped = ((1 + fa) * hs_laplace_step_quadrature_upper(m, q, 0, 0, 0, O->n_gl) +
                    fa * hs_laplace_step_quadrature_upper(m, q, 1, 0, 0, O->n_gl)) *
                   scale;
    return hs_laplace_step_quadrature_upper(m, q, a, 0, log_m, O->n_gl);
}

/* The grid of step i for the line's tilt tilt[2] and frequencies up to y_grid. For ADD it would do for the alias
 * tilts as well, which costs little there and leaves room where |f| falls slowly. */
static int smoothed_build(const hs_prawitz *S, int i, const double *tilt, double y_grid, double R, hs_opened *O,
                          double *work)
{
    double m = S->run.m[i], q = S->run.q[i], a = tilt[2];
    double h, width, nats = 5 + log(S->ktot);
    double lo = S->run.add ? fmin(a, fmin(tilt[0], tilt[1])) : a, hi = S->run.add ? fmax(a, fmax(tilt[0], tilt[1])) : a;
    int strip = 0, st;
    if (O->kind == HS_LAW_LAPLACE) return hs_laplace_step_grid(&O->G, m, q, &S->rule, work);
    h = S->fine ? 0.15 / fmax(m, 1) : 1; /* as hs_prawitz_plan saw the far bound */
    if (S->run.add) h = fmin(h, fmin(hs_grid_real_h(m, tilt[0], nats), hs_grid_real_h(m, tilt[1], nats)));
    h = hs_grid_choose_h(m, q, a, y_grid, R, h, &strip);
    if (!(h > 0)) return HS_TOO_MANY_NODES;
    width = sqrt(2 * (R + 3)) + 1; /* the ends of the rectangle carry e^{d^2/2} p, d <= 6 */
    st = hs_grid_build(&O->G, m, q, h, -width - hs_left_reach_upper(m, q, lo), fmax(m, hi * m) + width, work);
    O->G.strip = strip;
    return st;
}

/* The variance of an opened step's loss: see hs_grid_var_upper. A Laplace step: v off by 10 m u and l by 14 u of
 * itself, at most m; on the ellipses of laplace_step.c |Im v| <= 1.4 and |Re v| <= m + 1.4, so |l - mean| is at most
 * 1.4 + log(1/cos 0.7) + 1.4 above what the nodes, two of which are at v = -m and m, have. */
static double var_upper(const hs_opened *O, double mean)
{
    const hs_grid *G = &O->G;
    double m = O->m, far = fmax(-G->lo, G->hi), squares = hs_squares_upper(O->a, G->m, far);
    if (O->kind == HS_LAW_LAPLACE) return hs_grid_var_upper(G, mean, squares, 24 * m, 3.1, O->level);
    return hs_grid_var_upper(G, mean, squares, 20 * m * (far + m), 3.4 + m * 2.61 * (G->h + 1 / hs_grid_fall(G, O->a)),
                             O->level);
}

/* A coarse grid for an alias tilt: K there, of all the steps, to a nat. */
static int build_alias(const hs_prawitz *S, double a, hs_opened *O, double *work)
{
    double m = O->m, q = O->q, nats = 5 + log(S->ktot), width = sqrt(2 * (nats + 3)) + 1;
    double h = hs_grid_mesh(fmin(hs_grid_real_h(m, a, nats), 2 * HS_PI / sqrt(2 * (nats + 2))));
    return hs_grid_build(&O->G, m, q, h, -width - hs_left_reach_upper(m, q, a), fmax(m, a * m) + width, work);
}

/* Adds k times the K of an opened step at exponent a and its error to entry j of the sums for alias tilts. */
static void add_alias_value(hs_prawitz *S, int j, double k, double a, hs_opened *O)
{
    double log_m = hs_grid_log_m_upper(&O->G, a), dropped, out = real_error_upper(O, a, 0, log_m, &dropped);
    out = out < 1 ? -log1p(-out) : HUGE_VAL;
    S->K[j] += k * log_m;
    S->inner[j] += k * out;
    if (S->run.n_fits) S->excess[j] += k * hs_excess(log_m, out);
}

/* Opens step i for |y| <= y_grid at the line's tilt; adds its K, errors and variance bound to the sums. */
static int open_step(hs_prawitz *S, int i, double y_grid, double R, hs_opened *O, double *work)
{
    double a[3], m = S->run.m[i], k = S->run.k[i];
    double out, dropped;
    hs_moments mo;
    int j, st;
    a[0] = S->s_right;
    a[1] = S->s_left;
    a[2] = S->t;
    for (j = 0; j < 3; j++) a[j] = S->run.add ? -a[j] : 1 + a[j];
    O->kind = hs_kind_of(&S->run, i);
    O->m = m;
    O->q = S->run.q[i];
    O->n_gl = S->rule.n;
    if (O->kind == HS_LAW_LAPLACE && (st = smoothed_build(S, i, a, y_grid, R, O, work))) return st;
    for (j = 0; j < 2; j++) {
        if (O->kind == HS_LAW_NORMAL && (st = build_alias(S, a[j], O, work))) return st;
        add_alias_value(S, j, k, a[j], O);
    }
    if (O->kind == HS_LAW_NORMAL && (st = smoothed_build(S, i, a, y_grid, R, O, work))) return st;
    hs_grid_moments(&O->G, a[2], &mo);
    out = real_error_upper(O, a[2], mo.dropped, mo.log_m, &dropped);
    if (!(out + dropped < 1e-3)) return HS_TOO_WIDE;
    S->K[2] += k * mo.log_m;
    S->err += k * mo.err + HS_U * (2 + S->run.b) * fabs(k * mo.log_m);
    S->inner[2] += 1.1 * k * (out + dropped);
    O->a = a[2];
    O->log_m = mo.log_m;
    O->level = 2 * out;
    hs_grid_weights(&O->G, a[2], mo.log_m, &O->c1, &O->c2);
    S->var += k * var_upper(O, mo.mean);
    S->k_smooth += k;
    return HS_OK;
}

/* A plain Gaussian step: M(a) in closed form, log phi(y) = -m^2 y^2/2 + i m^2 (t + 1/2) y for REMOVE and ADD alike. */
static void smoothed_visit_gaussian(hs_prawitz *S, double m, double k)
{
    double v = m * m * k, z[3];
    int64_t n;
    int j;
    z[0] = S->s_right;
    z[1] = S->s_left;
    z[2] = S->t;
    for (j = 0; j < 3; j++) S->K[j] += 0.5 * v * z[j] * (1 + z[j]);
    S->err += (8 + S->run.b) * HS_U * 0.5 * v * fabs(S->t * (1 + S->t));
    for (n = 0; n <= S->N; n++) {
        double y = (double)n * S->dy;
        S->re[n] -= 0.5 * v * y * y;
        S->im[n] += v * (S->t + 0.5) * y;
        S->round[n] += (6 + S->run.b) * HS_U * v * y * (0.5 * y + S->t + 0.5);
    }
    for (j = 0; j < POINTS; j++) S->gauss[j] += 0.5 * v * S->y[j] * S->y[j] * (1 - 1e-12);
}

/* k log phi at the nodes n0 .. n1-1 from Z = phi - 1. log|phi| = log1p(X)/2, X = 2 Re Z + |Z|^2 known to 4u |Z| (2 +
 * |Z|), or from (1 + Re Z)^2 + (Im Z)^2 where that is below 1/4; the functions of special.h give it to 4u, the
 * argument to 11u of themselves. Errors dz of phi count as dz/(|phi| - dz). */
HS_CLONES static void add_range(const hs_prawitz *S, double k, double c, double quad, int n0, int n1)
{
    double sign = S->run.add ? -k : k, slack = (16 + S->run.b) * HS_U * k, step = S->dy * c;
    const double *restrict zr = S->zr, *restrict zi = S->zi;
    double *restrict re = S->re, *restrict im = S->im, *restrict round = S->round, *restrict node = S->node;
    int n;
    HS_SEPARATE
    for (n = n0; n < n1; n++) {
        double x = zr[n], w = zi[n], ax = x < 0 ? -x : x;
        double aw = w < 0 ? -w : w, X = 2 * x + x * x + w * w, y = 1 + X;
        double mod2 = (1 + x) * (1 + x) + w * w, inv2 = 1 / mod2, inv = sqrt(inv2);
        double lr, li = hs_atan2(w, 1 + x);
        double small = X < 0.1 && X > -0.1 ? X : 0, far = X > -0.75 ? 0 : 1, dz = (double)n * step * inv,
               qz = quad * inv;
        double l = hs_log(far != 0 ? mod2 : y) + (far != 0 ? 0 : (X - (y - 1)) * inv2);
        lr = 0.5 * (small != 0 ? X + hs_log1pmx_small(small) : l);
        re[n] += k * lr;
        im[n] += sign * li;
        dz = dz < 0.5 ? dz + 2 * dz * dz : HUGE_VAL;
        qz = qz < 0.5 ? qz + 2 * qz * qz : HUGE_VAL; /* >= d/(1-d) */
        round[n] += k * (dz + 12 * HS_U * (ax + aw) * inv2) + slack * ((lr < 0 ? -lr : lr) + (li < 0 ? -li : li));
        node[n] += k * qz;
    }
}

/* All nodes of an opened step; level: the quadrature errors of the parts of their range. */
static void smoothed_add_nodes(hs_prawitz *S, double k, const hs_opened *O, const double *level)
{
    int j, i, n0 = 0, n1;
    for (j = 0; j < LEVELS; j++) {
        int last = (int)ceil((j + 1) * (double)(S->N + 1) / LEVELS);
        for (i = 0; i < HS_NODES_RANGES; i++, n0 = n1) {
            int64_t end = hs_grid_nodes_end(i);
            n1 = end < last ? (int)end : last;
            n1 = n1 > n0 ? n1 : n0;
            add_range(S, k, O->c1 + O->c2 * hs_grid_nodes_units(&O->G, S->N, end - 1), level[j], n0, n1);
        }
    }
}

/* -log|phi| at the tail points: as a squared distance a^2 = 2 (1 - |phi|) there, and as a bound for all larger |y|. */
static void add_points(hs_prawitz *S, double k, hs_opened *O)
{
    int j, strip = O->G.strip;
    for (j = 0; j < S->points; j++) {
        double y = S->y[j], x, w;
        double err, a2;
        S->far[j] -= k * hs_far_log(hs_opened_far_upper(O, y), S->run.n_fits);
        if (S->run.b == 1 && S->far[j] >= S->T0 + 2) S->points = j + 1; /* enough for all that follows */
        if (S->points == 1) return;
        hs_grid_phase(&O->G, y, &x, &w);
        O->G.strip = strip;
        err = hs_opened_quadrature_upper(O, y);
        if (err > 1e-9) {
            O->G.strip = -1;
            err = hs_opened_quadrature_upper(O, y);
        } /* each frequency has its own best strip */
        err += y * (O->c1 + 64 * O->c2);
        /* 1 - |phi|^2: c2 = u E|l|, and |x|, |w| <= min(2, y E|l|): products and sums lose 20 y c2, what follows
         * 15 y c2, part of err's 64 y c2, which one frequency alone does not need [theory: rounding.phi] */
        a2 = fmin(1, fmax(0, -(2 * x + x * x + w * w) - 32 * y * O->c2));
        if (S->run.n_fits) a2 -= (2 + err) * err; /* of 1 - |phi|^2 */
        else a2 = 2 * a2 / (1 + sqrt(1 - a2)) - 2 * err;
        S->metric[j] += k * fmax(0, a2);
    }
}

/* What the rules are off by at the line's tilts and nodes, and near its tilt: before the steps are visited. */
static int visit_fits(hs_prawitz *S, double *work, hs_sums *F, hs_near *near)
{
    hs_contour C = {.run = S->run, .c = S->t, .s_right = S->s_right, .s_left = S->s_left, .dy = S->dy, .N = S->N};
    int st;
    memset(F, 0, sizeof *F);
    memset(near, 0, sizeof *near);
    F->fit = S->fit;
    st = hs_fit_visit(&C, work, F);
    return st || !S->run.n_fits ? st : hs_fit_near(S->run.fits, S->run.n_fits, S->run.add, S->t, work, near);
}

/* That, added to the sums of the rules. Beyond the nodes sum k (1 - |phi|^2) is known of the steps, which is the square
 * of a metric too [theory: compression.tail, compression.metric]. */
static void add_fits(hs_prawitz *S, const hs_sums *F, const hs_near *near)
{
    int64_t n;
    int i, j;
    for (j = 0; j < 2; j++) S->inner[j] += fmin(F->fitted[1 + j], F->loose[1 + j] + S->excess[j] * (1 + HS_SUMS));
    S->inner[2] += S->fitted = F->fitted[0];
    for (n = 0; n <= S->N; n++) S->node[n] += S->fit[n]; /* [theory: compression.smoothed] */
    S->var += near->var;
    for (j = 0; j < POINTS; j++) {
        S->far[j] = fmax(0, S->far[j] - F->slack);
        S->metric[j] = fmax(0, S->metric[j] - 2 * F->slack);
        for (i = 0; i < S->run.n_fits; i++)
            if (S->run.fits[i].q == 1) S->gauss[j] -= 0.5 * (1 + 1e-12) * S->run.fits[i].weight * S->y[j] * S->y[j];
    }
}

/* The quadrature error of phi for every frequency up to each of the LEVELS parts of y_grid, of a grid trimmed to
 * e^-(R + 2): a part takes the error of a larger one where that is small enough, for it can only fall. */
static void node_levels(const hs_prawitz *S, hs_opened *O, double y_grid, double R, double *quad)
{
    int j;
    for (j = LEVELS - 1; j >= 0; j--) { /* 4 e^..: the trimming, twice */
        quad[j] = hs_opened_quadrature_upper(O, y_grid * (j + 1) / LEVELS) + 4 * exp(-R - 2);
        if (quad[j] < 20 * exp(-R))
            for (; j > 0; j--) quad[j - 1] = quad[j];
        else if (S->N < 64 && j > 0) {
            quad[j - 1] = quad[j];
            j--;
        }
    }
}

/* The sums of the nodes and of the tail points, of no steps. */
static void clear_sums(hs_prawitz *S)
{
    int j;
    for (j = 0; j < 4; j++) memset(S->re + j * N_MAX, 0, sizeof(double) * (size_t)(S->N + 1));
    for (j = 0; j < 3; j++) S->K[j] = S->inner[j] = 0;
    for (j = 0; j < POINTS; j++) S->metric[j] = S->far[j] = S->gauss[j] = 0;
    S->err = S->var = S->k_smooth = S->excess[0] = S->excess[1] = S->fitted = 0;
}

int hs_prawitz_visit(hs_prawitz *S, double *work)
{
    double y_grid = (double)(S->N + 2) * S->dy, R = S->T0 + log(S->ktot) + (S->tight_grids ? 0 : 6);
    int i, st;
    hs_near near;
    hs_sums F;
    hs_opened O;
    if (S->N > N_MAX - 4) return HS_TOO_MANY_NODES;
    if ((st = visit_fits(S, work, &F, &near))) return st;
    clear_sums(S);
    for (i = 0; i < S->run.b; i++) {
        double quad[LEVELS];
        if (hs_stopped(S->poll, 2e4 + 100 * (double)S->N)) return HS_INTERRUPTED;
        if (hs_kind_of(&S->run, i) == HS_LAW_NORMAL && S->run.q[i] == 1) {
            smoothed_visit_gaussian(S, S->run.m[i], S->run.k[i]);
            continue;
        }
        if ((st = open_step(S, i, y_grid, R, &O, work))) return st;
        node_levels(S, &O, y_grid, R, quad);
        hs_grid_trim(&O.G, exp(-R - 2));
        hs_grid_nodes(&O.G, S->dy, S->N, S->zr, S->zi);
        smoothed_add_nodes(S, S->run.k[i], &O, quad);
        add_points(S, S->run.k[i], &O);
    }
    if (S->run.n_fits) add_fits(S, &F, &near);
    return HS_OK;
}

/* A middling grid of step j at the line's tilt, for planning only. Plain Gaussian steps need none. */
static int open_coarse(const hs_prawitz *S, int j, hs_grid *G, double *log_m, double *work)
{
    double m = S->run.m[j], q = S->run.q[j], a = S->run.add ? -S->t : 1 + S->t;
    double c1, c2;
    int st;
    *log_m = smoothed_step_cgf(S, j, S->t).K;
    if (hs_kind_of(&S->run, j) == HS_LAW_LAPLACE) st = hs_laplace_step_grid(G, m, q, &S->rule, work);
    else st = hs_grid_build(G, m, q, 0.15 / fmax(m, 1), -7 - hs_left_reach_upper(m, q, a), fmax(a * m, 0) + 7, work);
    if (st) return st;
    hs_grid_weights(G, a, *log_m, &c1, &c2);
    return HS_OK;
}

/* -log|f| that the far bound will see at y, from the sampled steps; G: the grid of the last of them, open. */
static double far_estimate(const hs_prawitz *S, double y, int stride, hs_grid *G, double *work)
{
    double far = 0, total = 0, log_m;
    int i, j;
    for (i = 0; i < S->run.b; i += stride) {
        double m, a = S->run.add ? -S->t : 1 + S->t;
        j = pick(S, i, stride);
        m = S->run.m[j];
        total += S->run.k[j];
        if (hs_kind_of(&S->run, j) == HS_LAW_NORMAL && S->run.q[j] == 1) {
            far += 0.5 * S->run.k[j] * m * m * y * y;
            continue;
        }
        if (hs_kind_of(&S->run, j) == HS_LAW_LAPLACE || (S->run.b > 1 && open_coarse(S, j, G, &log_m, work))) continue;
        far -= S->run.k[j] * log(hs_grid_far_upper(G, a, y));
    }
    return far * S->ktot / total;
}

enum { SAMPLES = 16 };

/* What 1/|z(1 + z)| has fallen by at frequency y, in nats. */
static double kernel_fall(const hs_prawitz *S, double y) { return 2 * log(hypot(S->t, y) / S->t); }

/* log|f| at the frequencies y0 1.35^j, estimated from some of the steps; G: the grid of the last of them, open. One
 * step is not followed beyond the target. */
static int sample_decay(const hs_prawitz *S, double y0, double target, hs_grid *G, double *work, double *log_f)
{
    double total = 0, log_m;
    int stride = hs_prawitz_sparse(S), i, j;
    for (j = 0; j < SAMPLES; j++) log_f[j] = 0;
    for (i = 0; i < S->run.b; i += stride) {
        int at = pick(S, i, stride), plain = hs_kind_of(&S->run, at) == HS_LAW_NORMAL && S->run.q[at] == 1;
        double m = S->run.m[at], k = S->run.k[at], y = y0;
        double zr, zi;
        total += k;
        if (!plain && open_coarse(S, at, G, &log_m, work)) return HS_TOO_MANY_NODES;
        for (j = 0; j < SAMPLES; j++, y *= 1.35) {
            if (!plain) hs_grid_phase(G, y, &zr, &zi);
            log_f[j] += plain ? -0.5 * k * m * m * y * y : 0.5 * k * log(fmax((1 + zr) * (1 + zr) + zi * zi, 1e-300));
            if (S->run.b == 1 && log_f[j] - kernel_fall(S, y) < -target) break;
        }
    }
    for (j = 0; j < SAMPLES; j++) log_f[j] = log_f[j] * S->ktot / total;
    return HS_OK;
}

/* The decay of |f| sampled at geometric y on middling grids of at most 48 steps: how many nodes are worth having.
 * `far_only`: the far bound at the last of them should do. */
int hs_prawitz_plan(hs_prawitz *S, double *work)
{
    double target = S->T0 + 4, y0 = sqrt(2 * target) / S->sd, log_f[SAMPLES];
    double y = y0, prev = 0, prev_y = 0, far;
    int i, st;
    hs_grid G;
    if ((st = sample_decay(S, y0, target, &G, work, log_f))) return st;
    S->fine = S->far_only = 0;
    for (i = 0; i < SAMPLES; i++, prev_y = y, y *= 1.35) {
        double at = log_f[i] - kernel_fall(S, y);
        if (at < -target) {
            double end = y;
            if (i > 0) y = prev_y + (y - prev_y) * fmin(1, (target + prev) / (prev - at) + 0.05);
            far = far_estimate(S, end, hs_prawitz_sparse(S), &G, work); /* less than |f|, but of all that follows */
            S->fine = far > 0 ? 1 : 0;
            S->far_only = far > 0.4 * target && S->run.b > 1 ? 1 : 0;
            if (S->fine) y = fmax(y, end * fmin(2.5, pow(target / far, 0.8)));
            break;
        }
        prev = at;
    }
    if (S->T > 0) y = fmin(y, S->T * (1 - 1e-9));
    S->N = (int64_t)fmin(1.02 * y / S->dy + 3, N_MAX - 4);
    if (S->T > 0 && (double)S->N * S->dy >= S->T) S->N = (int64_t)fmax(0, ceil(S->T / S->dy) - 1);
    return HS_OK;
}
