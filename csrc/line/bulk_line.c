/* bulk_line.c - certified delta(eps) and eps(delta) of k runs of one sampled Gaussian step, eps > 0, by the line of
 * contour.c through the law below a cut.
 *
 * Symbols. B, x0, l0, P, L of bulk.c; K(z) = k log B(z); c a tilt near the saddle of K(z) - eps z - log z - log(1+z);
 *   a = 1 + c (REMOVE) or -c (ADD), r(x) = w (1+U)^a/B(c) for x <= x0, phi(y) = B(c+iy)/B(c), s = (U+q)/(1+U); dy, P,
 *   f_n, lf as in contour.c.
 *
 * Formula. delta = H_0 + what runs with a loss beyond the cut add, which is >= 0 [theory: small.bulk-beyond]. H_0 is
 *   the curve of a measure of mass at most 1: T = H_0 + aliases for tilts s_left >= 0 [theory: line.aliasing,
 *   line.known-aliases]. Rare jumps no longer make K explode near the saddle: periods and nodes are those of a sum of
 *   alike losses.
 *
 * Error terms, relative to e^{K(c)-c eps}:
 *   jumps       runs with a loss beyond the cut: upper end alone [theory: small.bulk-beyond].
 *   aliasing    as in contour.c; both sides only lower the lower end.
 *   truncation  (1/pi) e^{-B}/Y (1 + dy/Y) [theory: line.truncation], by a path that leaves the real line the more the
 *               steeper the loss is [theory: small.bulk-far].
 *   inner       panels of bulk.c, through K(c) and every node [theory: small.bulk-line].
 *   rounding    as in contour.c [theory: rounding.line, rounding.nodes].
 *
 * What it does not do: several distinct steps.
 */
#include "law/bulk.h"
#include "line/root.h"
#include "line/saddle.h"
#include "line/sum.h"
#include "tuning.h"

#define SLACK 1e-8 /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */
#define NATS 31.0  /* by which aliases and tail stay below delta */
#define CELLS 2048 /* of the bound of |phi| */
#define LAYERS 24  /* of the jumps below eps */
#define SIDES 6    /* tilts of Chernoff's bound of the bulk there */
#define PLACES 8
#define MARGIN 23.0 /* nats below delta that jumps beyond a cut may weigh */

typedef struct {
    hs_bulk J;
    double eps, reach, c, dy;
    double P, s_left, s_right, log_est;
    double sd;
    double K[3], err[3]; /* at c, s_right, s_left */
    double log_tail;     /* of the truncation */
    double log_beyond;   /* of what runs with a loss above the cut add */
    int64_t N;
    int cells;
    double *mass, *most, *steep;   /* of cells left of the cut: mass under r, at least and at most; s at least */
    double left, edge, edge_steep; /* the mass left of the cells; the density r and s at the cut */
    double *nodes, *grid;
    hs_nodes F;
} bulk_line;

/* The tilt up to which exponents stay doubles. */
static double top_tilt(const hs_bulk *J) { return 599 / (J->add ? -log1p(J->q * expm1(-J->m * J->left)) : J->l0); }

/* K and its derivatives, as an estimate. */
HS_CLONES static hs_cgf cgf(void *self, double t)
{
    const hs_bulk *J = &((const bulk_line *)self)->J;
    double a = hs_bulk_exponent(J, t), s0 = 0, s1 = 0, s2 = 0;
    double scale = exp(J->log_unit), B;
    const double *c = J->columns;
    int64_t j, n = J->panels * J->per;
    hs_cgf out = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    if (!(t < top_tilt(J))) return out;
    for (j = 0; j < n; j++, c += HS_BULK_COLUMNS) {
        double w = c[0], L = c[2], E = a * L, e = hs_exp(E);
        double near = E < 0.1 && E > -0.1 ? 1 : 0;
        double h = near != 0 ? hs_expm1mx_small(near != 0 ? E : 0) : e - 1 - E;
        s0 += w * (h + a * c[3]);
        s1 += w * (L * (h + E) + c[3]);
        s2 += w * e * L * L;
    }
    s0 -= scale * (J->q_den + a * J->u);
    B = 1 + s0;
    if (!(B > 0.1 && B < 1e250)) return out;
    out.K1 = (s1 - scale * J->u) / B;
    out.K2 = J->k * (s2 / B - out.K1 * out.K1);
    out.K1 *= J->add ? -J->k : J->k;
    out.K = J->k * log1p(s0);
    return out;
}

/* Cells of the bulk: bounds of their masses under r, and of s in them [theory: small.bulk-far]. log_b: log B(c) within
 * err. */
static void lay_cells(bulk_line *A, double log_b, double err)
{
    const hs_bulk *J = &A->J;
    double m = J->m, q = J->q, a = hs_bulk_exponent(J, A->c), v = m * J->x0 - 0.5 * m * m;
    double U = q * expm1(fmin(v, 600));
    double width = J->x0 + J->left, n = fmin(CELLS, ceil(width / fmin(0.05, 0.1 / m))), h = width / n, last = 0;
    int i;
    A->cells = (int)n;
    for (i = 0; i < A->cells; i++) {
        double x = J->x0 - (A->cells - i) * h, z = x + h, left = q * expm1(m * x - 0.5 * m * m);
        double L = log1p(q * expm1(m * (a > 0 ? x + 0.5 * h : z) - 0.5 * m * m)), mean = L;
        if (a < 0) mean = 0.5 * (L + (i ? last : log1p(left)));
        last = L;
        A->most[i] = a * (a > 0 ? log1p(q * expm1(m * z - 0.5 * m * m)) : log1p(left));
        A->most[i] -= 0.5 * pow(x > 0 ? x : fmin(z, 0), 2) + HS_LOG_SQRT_2PI + log_b - err;
        A->most[i] = h * exp(A->most[i]) * (1 + 1e-6);
        A->mass[i] = h * exp(a * mean - (x * x + x * z + z * z) / 6 - HS_LOG_SQRT_2PI - log_b - err) * (1 - 1e-6);
        A->steep[i] = (left + q) / (1 + left) * (1 - 1e-9);
    }
    A->edge = exp(a * log1p(U) - 0.5 * J->x0 * J->x0 - HS_LOG_SQRT_2PI - log_b + err) * (1 + 1e-6);
    A->left = hs_bulk_left_upper(J, a) * exp(err - log_b);
    A->edge_steep = (U + q) / (1 + U);
}

/* A lower bound of -k log|phi(y)| for all y >= Y [theory: small.bulk-far]. */
HS_CLONES static double decay_lower(const bulk_line *A, double Y)
{
    static const double TURN[] = {0.5, 1, 1.4};
    double m = A->J.m, best = 0;
    int i, t;
    for (t = 0; t < 3; t++) {
        double sine = sin(TURN[t]) / TURN[t], slope = sine * Y * m, cap = TURN[t] / m, end;
        double one = 1 + m * m;
        double gain = 0, rest = 0, most;
        double more = A->J.add ? A->c * m * m / pow(cos(0.5 * TURN[t]), 2) : 0;
        for (i = 0; i < A->cells; i++) {
            double s = A->steep[i], cost = one + more * s, d = slope * s / cost;
            d = d < cap ? d : cap;
            most = hs_expm1(-0.5 * cost * d * d);
            gain -= A->mass[i] * most;
            rest += A->most[i] * (1 + most);
        }
        end = A->edge_steep;
        end = fmin(fmin(slope * end / (one + more * end), cap), 2 / (slope * end));
        end *= A->edge * (1 + 1e-9);
        most = fmin(1 - (gain * (1 - 1e-9) - end), (rest + A->left) * (1 + 1e-9) + 1e-12 + end);
        if (gain > end) best = fmax(best, -A->J.k * log(fmin(most, 1)));
    }
    return best * (1 - 1e-9);
}

/* Upper bound of the log of what runs with a loss above the cut add to delta(eps): one jump in layers, two or more
 * [theory: small.bulk-beyond]. */
static double beyond(const hs_bulk *J, double eps)
{
    double one = log(J->k) + J->log_unit + log((J->add ? J->q_den : J->p) * (1 + 2 * J->rel)), total,
           step = eps / LAYERS;
    double p, u, den, rel;
    int i;
    if (!J->add && J->l0 < eps) {
        total = hs_log_add(one + hs_bulk_above(J, J->k - 1, eps), 2 * one - log(2));
        for (i = 0; i < LAYERS; i++) {
            double least = eps - (i + 1) * step;
            double x = fmax(J->x0, hs_bulk_place(J, fmax(least, J->l0)) * (1 - 1e-12) - 1e-12);
            hs_bulk_masses(J, x, &p, &u, &den, &rel);
            total = hs_log_add(total, log(J->k) + J->log_unit + log(p * (1 + 2 * rel)) +
                                          (i ? hs_bulk_above(J, J->k - 1, i * step) : 0));
        }
        one = fmin(one, total);
    }
    return one + SLACK * (1 + fabs(one));
}

/* Chernoff's tilts for `beyond`, up to the saddle. */
static void lay_tilts(bulk_line *A)
{
    hs_bulk *J = &A->J;
    hs_bulk_tilted T;
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        J->tilt[i] = A->c * (i + 1) / SIDES;
        J->log_b[i] = i < SIDES && !hs_bulk_at(J, J->tilt[i], 0, &T) ? T.log_b + T.err : HUGE_VAL;
    }
}

/* The line for the cut at the loss l: tilt, period, nodes; A->eps where that is not given. */
static int place(bulk_line *A, int have_eps, double value, double l)
{
    hs_saddle_search f = {cgf, A, have_eps, value, have_eps ? 0.005 : 0.1, -HUGE_VAL, 0};
    hs_tilt at = {.t = A->c};
    hs_aliases S = {cgf, A, 0, 0, 0, 0};
    double goal, low, high, right;
    int i, st = hs_bulk_cut(&A->J, l, 0, 0);
    if (st) return st;
    f.top = top_tilt(&A->J);
    if (!(at.t > 0 && at.t < f.top)) at.t = 0.1 * f.top;
    if (hs_saddle_find(&f, &at)) return HS_NO_SADDLE;
    A->c = hs_short_tilt(at.t);
    A->eps = at.eps;
    A->log_est = at.log_est;
    A->sd = sqrt(at.k.K2);
    A->reach = 12 / A->c;
    if (!(A->eps > 0 && A->sd > 0)) return HS_NO_SADDLE;
    S.c = A->c;
    S.eps = A->eps;
    S.sd = A->sd;
    S.floor = A->log_est - NATS;
    right = hs_alias_place(&S, 1, 7 / A->sd, -HUGE_VAL, HUGE_VAL, 0, &A->s_right);
    A->P = fmax(right, hs_alias_place(&S, -1, fmin(7 / A->sd, 0.5 * A->c), 0, HUGE_VAL, right, &A->s_left));
    if (!(A->P < 1e12 && A->P > 0 && A->s_left >= 0)) return HS_OUT_OF_RANGE;
    A->dy = 2 * HS_PI / A->P;
    lay_cells(A, at.k.K / A->J.k, 0);
    goal = NATS - (A->log_est - at.k.K + A->c * A->eps); /* what the tail may be, but for its 1/Y */
    low = 1 / A->sd;
    high = HS_BULK_NODES * A->dy;
    if (!(decay_lower(A, high) + log(HS_PI * high) >= goal)) return HS_TOO_MANY_NODES;
    for (i = 0; i < 20 && high > 1.02 * low; i++) {
        double Y = sqrt(low * high);
        if (decay_lower(A, Y) + log(HS_PI * Y) < goal) low = Y;
        else high = Y;
    }
    A->N = (int64_t)ceil(high / A->dy) + 1;
    if (!A->J.add) lay_tilts(A);
    A->log_beyond = beyond(&A->J, A->eps);
    return A->N <= HS_BULK_NODES ? HS_OK : HS_TOO_MANY_NODES;
}

/* k log phi at the nodes from .. to-1 from phi - 1 in F.a, F.b, with the errors of phi: slope y and quad. As in law.c,
 * a node lost in its own error is replaced by a bound of it [theory: line.inner]. */
static void add_nodes(bulk_line *A, double slope, double quad, int64_t from, int64_t to)
{
    double k = A->J.k, *round = A->nodes + 2 * (HS_BULK_NODES + 1), *node = round + HS_BULK_NODES + 1;
    int64_t n;
    for (n = from; n < to; n++) {
        double x = A->F.a[n], v = A->F.b[n], X = 2 * x + x * x + v * v, mod = hypot(1 + x, v);
        double y = (double)n * A->dy;
        double lr = X > -0.75 && X < 1 ? 0.5 * log1p(X) : log(mod), li = atan2(v, 1 + x);
        double dz = y * slope / mod, qz = quad / mod, b = mod + y * slope + quad + 8 * HS_U;
        node[n] = 0;
        if (!(dz + qz < 0.25)) {
            A->F.re[n] = k * log(b < 1 ? b : 1);
            A->F.im[n] = 0;
            round[n] = b < 1e300 ? 1.1 : HUGE_VAL;
            continue;
        }
        A->F.re[n] = k * lr;
        A->F.im[n] = k * li;
        round[n] = k * (dz / (1 - dz) + 12 * HS_U * fmin(hypot(x, v), 3)) + 4 * HS_U * k * (fabs(lr) + fabs(li));
        node[n] = k * qz / (1 - qz);
    }
}

/* phi - 1 at the nodes from the panels' own tilted masses, which sum to 1; a bound of its rounding over y
 * [theory: rounding.phi, rounding.nodes]. */
static double transform_nodes(bulk_line *A)
{
    const hs_bulk *J = &A->J;
    double a = hs_bulk_exponent(J, A->c), total = 0, own = 0, size = 0;
    double mean = 0;
    const double *c = J->columns;
    int64_t j, n = J->panels * J->per;
    hs_grid G;
    hs_grid_rows(&G, A->grid);
    G.first = 0;
    G.n = G.last = (int)(n + 7) / 8 * 8;
    for (j = 0; j < n; j++, c += HS_BULK_COLUMNS) total += G.r[j] = c[0] * exp(a * c[2]);
    for (c = J->columns, j = 0; j < n; j++, c += HS_BULK_COLUMNS) {
        double x = c[5], L = c[2], dL = c[4] / (1 + c[1]) + 2 * HS_U * fabs(L), e;
        e = HS_U * (6 * x * x + 8 * fabs(x) + 30 + 4 * fabs(a * L)) + fabs(a) * dL;
        G.r[j] /= total;
        G.l[j] = J->add ? -L : L;
        own += G.r[j] * (dL + fabs(L) * e);
        size += G.r[j] * fabs(L);
        mean += G.r[j] * e;
    }
    for (; j < G.n; j++) G.r[j] = G.l[j] = 0;
    hs_grid_nodes(&G, A->dy, A->N, A->F.a, A->F.b);
    return 1.01 * (own + size * (mean + HS_U * (52 + 0.25 * (double)n + 274 + 2 * fmin(32, (double)A->N / 17))));
}

/* The line as placed: panels made for its frequencies, K at its three tilts, nodes, tail. */
static int prepare(bulk_line *A, double l)
{
    const double tilt[3] = {A->c, A->s_right, A->s_left};
    double Y = (double)A->N * A->dy, slope, *row = A->nodes;
    int64_t from = 0, to;
    hs_bulk_tilted T;
    int i, st = hs_bulk_cut(&A->J, l, hs_bulk_exponent(&A->J, A->c), Y);
    if (st) return st;
    if (A->J.panels * A->J.per > HS_INNER_MAX || !((Y + A->dy) * fmax(A->J.l0, -log1p(-A->J.q)) < 1e6))
        return HS_TOO_MANY_NODES;
    for (i = 2; i >= 0; i--) {
        if ((st = hs_bulk_at(&A->J, tilt[i], 0, &T))) return st;
        A->K[i] = A->J.k * T.log_b;
        A->err[i] = A->J.k * T.err + 4 * HS_U * fabs(A->K[i]);
    }
    lay_cells(A, T.log_b, T.err);
    A->log_tail = -decay_lower(A, Y) - log(HS_PI * Y) + log1p(A->dy / Y) + 1e-9;
    A->F.c = A->c;
    A->F.dy = A->dy;
    A->F.eps = A->eps;
    A->F.reach = A->reach;
    A->F.N = A->N;
    A->F.re = row;
    A->F.im = row += HS_BULK_NODES + 1;
    A->F.round = row += HS_BULK_NODES + 1;
    A->F.node = row += HS_BULK_NODES + 1;
    A->F.a = row += HS_BULK_NODES + 1;
    A->F.b = row + HS_BULK_NODES + 1;
    slope = transform_nodes(A);
    for (i = 1; i <= 4; i++, from = to) { /* [theory: small.bulk-line] */
        double bound = exp(-T.log_b + T.err);
        to = i < 4 ? A->N * i / 4 : A->N + 1;
        bound *= hs_bulk_phase_upper(&A->J, hs_bulk_exponent(&A->J, A->c), (double)to * A->dy);
        if (!(bound < 0.1)) return HS_TOO_WIDE;
        add_nodes(A, slope, 2.25 * bound, from, to);
    }
    hs_nodes_freeze(&A->F);
    return HS_OK;
}

/* The sum at eps, as in contour.c. */
static void line_at(const void *prepared, double eps, hs_value *v)
{
    const bulk_line *A = (const bulk_line *)prepared;
    double unit = A->dy / (2 * HS_PI), sum, der, whole = 2 * HS_U * (fabs(A->K[0]) + fabs(A->c * eps)) + A->err[0];
    double part, d, e;
    memset(v, 0, sizeof(*v));
    hs_nodes_sum(&A->F, eps, &sum, &der);
    v->log_scale = A->K[0] - A->c * eps;
    v->value = unit * sum;
    v->slope = unit * der;
    v->rounding = unit * A->F.rounding + expm1(whole) * (fabs(v->value) + unit * A->F.inner);
    v->inner = unit * A->F.inner;
    v->truncation = exp(A->log_tail);
    part = 8 * HS_U * (fabs(A->K[0]) + fabs(A->K[1]) + fabs(A->K[2]) + (2 * A->s_right + A->c) * (eps + A->P));
    d = A->s_right - A->c;
    e = part + (A->K[1] + A->err[1] - A->K[0]) - d * eps + hs_payoff(A->s_right) - d * A->P;
    v->alias_right = exp(e) / -expm1(-d * A->P) * (1 + 1e-9); /* [theory: line.aliases] */
    d = A->c - A->s_left;
    e = part + (A->K[2] + A->err[2] - A->K[0]) + d * eps + hs_payoff(A->s_left) - d * A->P;
    v->alias_left = exp(e) / -expm1(-d * A->P) * (1 + 1e-9);
    v->lower = v->value - v->alias_right - v->alias_left - v->inner - v->rounding - v->truncation;
    e = exp(fmin(600, beyond(&A->J, eps) - v->log_scale)) * (1 + SLACK);
    v->upper = v->value + v->inner + v->rounding + v->truncation + e;
    v->alias_right += e;
}

/* How far left the panels have to begin for sums about eps: ADD leans there. */
static void lean(hs_bulk *J, double eps)
{
    if (J->add) J->left = 10 + fmin(30, ceil(2 + 1.5 * eps / (J->k * J->q * J->m)));
}

/* Cuts over eps, from the lowest. */
static const double CUTS[] = {0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1, 1.5, 2.2, 3.3, 5, 8, 13, 20};
enum { CUT_ONE = 6, CUT_LAST = 13 };

/* The loss above which k steps have one with the chance e^log_delta. */
static double one_loss(hs_bulk *J, double log_delta)
{
    double low = 0, high = J->m + 45, p, u;
    double den, rel;
    int i;
    for (i = 0; i < 40; i++) {
        double x = 0.5 * (low + high), z = x - J->m;
        J->log_unit = log(J->q) - 0.5 * z * z - HS_LOG_SQRT_2PI;
        hs_bulk_masses(J, x, &p, &u, &den, &rel);
        if (log(J->k) + J->log_unit + log(p) > log_delta) low = x;
        else high = x;
    }
    return log1p(J->q * expm1(J->m * low - 0.5 * J->m * J->m));
}

/* About eps(delta), to start from: the fixed point of the eps of the law cut there, or one loss if that is more. */
static double about(bulk_line *A, double log_delta)
{
    hs_bulk *J = &A->J;
    double one = J->add ? 0 : one_loss(J, log_delta),
           e = J->q * sqrt(J->k * expm1(fmin(J->m * J->m, 30)) * 2 * (1 - log_delta));
    int i;
    if (!A->J.add) e = fmax(e, one);
    for (i = 0; i < 12; i++) {
        lean(&A->J, e);
        hs_saddle_search f = {cgf, A, 0, log_delta, 0.3, -HUGE_VAL, 0};
        hs_tilt at;
        if (hs_bulk_cut(&A->J, e, 0, 0)) break;
        f.top = top_tilt(&A->J);
        at.t = A->c > 0 && A->c < f.top ? A->c : 0.1 * f.top;
        if (hs_saddle_find(&f, &at)) at.eps = 0.5 * e;
        else A->c = at.t;
        if (fabs(at.eps - e) < 0.1 * e) return fmax(at.eps, one);
        e = fmax(0.1 * e, fmin(10 * e, at.eps > e ? sqrt(at.eps * e) : at.eps));
    }
    return fmax(e, one);
}

/* The cut whose line has nodes enough for HS_BULK_NODES and the least beyond it: upwards while jumps weigh too much,
 * downwards where no line fits. */
static int best_line(bulk_line *A, int have_eps, double value, double eps)
{
    double least = HUGE_VAL;
    int i = CUT_ONE, chosen = -1, went = 0, st;
    lean(&A->J, eps);
    while (i >= 0 && i <= CUT_LAST) {
        int step = -1;
        st = place(A, have_eps, value, CUTS[i] * eps);
        if (!st) {
            double over = A->log_beyond - A->log_est;
            if (over < least) {
                least = over;
                chosen = i;
            }
            if (over < -MARGIN || A->J.add) break;
            step = 1;
        }
        if (A->J.add || (went && step != went)) break;
        went = step;
        i += step;
    }
    if (chosen < 0 || !(least < 0)) return HS_TOO_WIDE;
    if (i != chosen && (st = place(A, have_eps, value, CUTS[chosen] * eps))) return st;
    return prepare(A, CUTS[chosen] * eps);
}

int64_t hs_bulk_line_work(void) { return HS_BULK_WORK + HS_GRID_WORK + 3 * CELLS + 6 * (HS_BULK_NODES + 1); }

static int opened(bulk_line *A, const hs_run *run, const hs_rule *rule, double *work, int64_t n_work)
{
    memset(A, 0, sizeof(*A));
    if (n_work < hs_bulk_line_work()) return HS_SCRATCH;
    A->grid = work + HS_BULK_WORK;
    A->mass = A->grid + HS_GRID_WORK;
    A->most = A->mass + CELLS;
    A->steep = A->most + CELLS;
    A->nodes = A->steep + CELLS;
    A->J.add = run->add;
    return run->b == 1 ? hs_bulk_open(&A->J, *run->m, *run->q, *run->k, rule, work) : HS_BAD_ARGUMENT;
}

int hs_bulk_line_delta(const hs_run *run, double eps, const hs_rule *rule, double *work, int64_t n_work, hs_point *out)
{
    bulk_line A;
    hs_value v;
    int st = opened(&A, run, rule, work, n_work);
    if (st) return st;
    if (!(eps > 0 && eps < 1e4)) return HS_OUT_OF_RANGE;
    if ((st = best_line(&A, 1, eps, eps))) return st;
    line_at(&A, eps, &v);
    if (!(v.lower > 0 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    hs_value_point(&v, A.N + 1, out);
    return HS_OK;
}

int hs_bulk_line_eps(const hs_run *run, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                     hs_crossing *out)
{
    bulk_line A;
    hs_value v;
    hs_curve curve = {.at = line_at, .self = &A, .log_delta = log_delta};
    double eps, left, move;
    int i, st = opened(&A, run, rule, work, n_work);
    if (st) return st;
    eps = about(&A, log_delta);
    for (i = 0; i < PLACES; i++) { /* the saddle's own estimate of delta is far off where few jumps make it */
        if ((st = best_line(&A, 1, eps, eps))) return st;
        line_at(&A, eps, &v);
        if (!(v.value > 0 && v.slope > 0)) return HS_TOO_WIDE;
        move = (v.log_scale + log(v.value) - log_delta) * v.value / v.slope;
        if (fabs(move) * A.c < 1) break;
        eps += fmax(-0.5 * eps, fmin(eps, move));
    }
    curve.start = eps;
    curve.reach = fmin(A.reach, 0.9 * eps);
    curve.step = curve.reach;
    curve.bend = 1 / A.sd;
    if ((st = hs_root_estimate(&curve, &out->estimate, &left, &v))) return st;
    if (hs_root_bracket(&curve, out->estimate, left, &v, &out->lower, &out->upper) != 3) return HS_NO_BRACKET;
    hs_value_point(&v, A.N + 1, &out->delta);
    return HS_OK;
}
