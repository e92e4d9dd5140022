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
 *   alike losses. Where one jump matters beside the bulk, the cut is at eps, and every cell of losses above it has a
 *   line of its own, of k-1 losses of the bulk and one of the cell [theory: small.bulk-cells].
 *
 * Error terms, relative to e^{K(c)-c eps}:
 *   jumps       runs with a loss beyond the cut or all cells: upper end alone [theory: small.bulk-beyond,
 *               small.bulk-cells].
 *   aliasing    as in contour.c; both sides only lower the lower end.
 *   truncation  (1/pi) e^{-B}/Y (1 + dy/Y) [theory: line.truncation], by a path that leaves the real line the more the
 *               steeper the loss is [theory: small.bulk-far].
 *   inner       panels of bulk.c, through K(c) and every node [theory: small.bulk-line].
 *   rounding    as in contour.c [theory: rounding.line, rounding.nodes].
 *
 * What it does not do: several distinct steps; several jumps apart from the bulk.
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
#define PARTS 8     /* lines, the first without a jump */
#define NEAR 5.0    /* deviations of the bulk that the first cell spans; the others double */
#define ENOUGH 1e-8 /* relative width of delta from which no jumps are taken apart */
#define MARGIN 23.0 /* nats below delta that jumps beyond a cut may weigh */

typedef struct { /* one line: no jump, or one in a cell of losses */
    double c, dy, P, s_left;
    double s_right, log_tail, K[3], err[3];
    hs_nodes F;
} line_part;

typedef struct {
    hs_bulk J, G;  /* G: panels of the cell of losses in which one step jumps */
    double copies; /* steps in the bulk: all, or all but the one that jumps */
    int jump, parts;
    line_part part[PARTS];
    double cut, top; /* where the bulk ends, in losses; the last cell's end, 0: no cells */
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
    int64_t used; /* of the nodes' room */
    hs_nodes F;
} bulk_line;

/* The tilt up to which exponents stay doubles. */
static double top_tilt(const hs_bulk *J) { return 599 / (J->add ? -log1p(J->q * expm1(-J->m * J->left)) : J->l0); }

/* K and its derivatives, as an estimate. */
HS_CLONES static hs_cgf cgf(void *self, double t)
{
    const bulk_line *A = (const bulk_line *)self;
    const hs_bulk *J = &A->J;
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
    out.K2 = A->copies * (s2 / B - out.K1 * out.K1);
    out.K1 *= J->add ? -A->copies : A->copies;
    out.K = A->copies * log1p(s0);
    if (!A->jump) return out;
    for (s0 = s1 = s2 = 0, c = A->G.columns, n = A->G.panels * A->G.per, j = 0; j < n; j++, c += HS_BULK_COLUMNS) {
        double e = c[0] * hs_exp(a * (c[2] - A->G.l0));
        s0 += e;
        s1 += e * c[2];
        s2 += e * c[2] * c[2];
    }
    out.K += log(J->k) + log(s0) + a * A->G.l0;
    out.K1 += s1 / s0;
    out.K2 += s2 / s0 - s1 / s0 * (s1 / s0);
    return out;
}

/* Cells of the bulk: bounds of their masses under r, and of s in them [theory: small.bulk-far]. log_b: log B(c) within
 * err. */
static void lay_cells(bulk_line *A, double log_b, double err)
{
    const hs_bulk *J = &A->J;
    double m = J->m, q = J->q, a = hs_bulk_exponent(J, A->c), v = m * J->x0 - 0.5 * m * m;
    double U = q * expm1(v);
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
HS_CLONES static double bulk_decay_lower(const bulk_line *A, double Y)
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
        if (gain > end) best = fmax(best, -A->copies * log(fmin(most, 1)));
    }
    return best * (1 - 1e-9);
}

/* Upper bound of the log of what runs with a loss above the cut add to delta(eps): one jump in layers, two or more
 * [theory: small.bulk-beyond]. */
static double beyond(const bulk_line *A, double eps)
{
    const hs_bulk *J = &A->J;
    double one = log(J->k) + J->log_unit + log((J->add ? J->q_den : J->p) * (1 + 2 * J->rel)), total,
           step = eps / LAYERS;
    double p, u, den, rel;
    int i;
    if (A->top > 0) {
        hs_bulk_masses(J, A->G.x0, &p, &u, &den, &rel);
        one = hs_log_add(log(J->k) + J->log_unit + log(p * (1 + 2 * rel)), 2 * one - log(2));
    } else if (!J->add && J->l0 < eps) {
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

/* How many nodes the line needs until its tail is below e^-goal; HS_TOO_MANY_NODES where it has no room for them. */
static int count_nodes(bulk_line *A, double goal)
{
    double low = 1 / A->sd, high = (double)(HS_BULK_NODES - A->used) * A->dy;
    int i;
    if (!(bulk_decay_lower(A, high) + log(HS_PI * high) >= goal)) return HS_TOO_MANY_NODES;
    for (i = 0; i < 20 && high > 1.02 * low; i++) {
        double Y = sqrt(low * high);
        if (bulk_decay_lower(A, Y) + log(HS_PI * Y) < goal) low = Y;
        else high = Y;
    }
    A->N = (int64_t)ceil(high / A->dy) + 1;
    return HS_OK;
}

/* The line for eps with the cut at the loss l: tilt, period, nodes. */
static int place_bulk_line(bulk_line *A, double eps, double l)
{
    hs_saddle_search f = {cgf, A, 1, eps, 0.005, -HUGE_VAL, 0};
    hs_tilt at = {.t = A->c};
    hs_aliases S = {cgf, A, 0, 0, 0, 0};
    double goal, right;
    int jump = A->jump, st = A->jump ? HS_OK : hs_bulk_cut(&A->J, l, 0, 0);
    if (st) return st;
    f.top = top_tilt(&A->J);
    if (!(at.t > 0 && at.t < f.top)) at.t = 0.1 * f.top;
    if (hs_saddle_find(&f, &at)) return HS_NO_SADDLE;
    A->c = hs_short_tilt(at.t);
    A->eps = eps;
    A->log_est = at.log_est;
    A->sd = sqrt(at.k.K2);
    if (!jump) A->reach = 12 / A->c;
    if (!(A->sd > 0)) return HS_NO_SADDLE;
    S.c = A->c;
    S.eps = A->eps;
    S.sd = A->sd;
    S.floor = A->log_est - NATS;
    right = hs_alias_place(&S, 1, 7 / A->sd, -HUGE_VAL, HUGE_VAL, 0, &A->s_right);
    A->P = fmax(right, hs_alias_place(&S, -1, fmin(7 / A->sd, 0.5 * A->c), 0, HUGE_VAL, right, &A->s_left));
    if (!(A->P < 1e12 && A->P > 0 && A->s_left >= 0)) return HS_OUT_OF_RANGE;
    A->dy = 2 * HS_PI / A->P;
    A->jump = 0;
    lay_cells(A, cgf(A, A->c).K / A->copies, 0);
    A->jump = jump;
    goal = NATS - (A->log_est - at.k.K + A->c * A->eps); /* what the tail may be, but for its 1/Y */
    if ((st = count_nodes(A, goal))) return st;
    if (!A->J.add && !jump) lay_tilts(A);
    A->log_beyond = beyond(A, A->eps);
    return A->N + A->used <= HS_BULK_NODES ? HS_OK : HS_TOO_MANY_NODES;
}

/* k log phi at the nodes from .. to-1 from phi - 1 in F.a, F.b, with the errors of phi: slope y and quad. As in law.c,
 * a node lost in its own error is replaced by a bound of it [theory: line.inner]. */
static void add_bulk_nodes(bulk_line *A, double k, double slope, double quad, int64_t from, int64_t to)
{
    double *round = A->F.re + 2 * (A->N + 1), *node = round + A->N + 1;
    int64_t n;
    for (n = from; n < to; n++) {
        double x = A->F.a[n], v = A->F.b[n], X = 2 * x + x * x + v * v, mod = hypot(1 + x, v);
        double y = (double)n * A->dy;
        double lr = X > -0.75 && X < 1 ? 0.5 * log1p(X) : log(mod), li = atan2(v, 1 + x);
        double dz = y * slope / mod, qz = quad / mod, b = mod + y * slope + quad + 8 * HS_U;
        if (!(dz + qz < 0.25)) {
            A->F.re[n] += k * log(b < 1 ? b : 1);
            round[n] += b < 1e300 ? 1.1 : HUGE_VAL;
            continue;
        }
        A->F.re[n] += k * lr;
        A->F.im[n] += k * li;
        round[n] += k * (dz / (1 - dz) + 12 * HS_U * fmin(hypot(x, v), 3)) + 4 * HS_U * k * (fabs(lr) + fabs(li));
        node[n] += k * qz / (1 - qz);
    }
}

/* phi - 1 at the nodes from the panels' own tilted masses, which sum to 1; a bound of its rounding over y
 * [theory: rounding.phi, rounding.nodes]. */
static double transform_nodes(bulk_line *A, const hs_bulk *J)
{
    double a = hs_bulk_exponent(J, A->c), total = 0, own = 0, size = 0;
    double mean = 0, base = A->jump ? J->l0 : 0;
    const double *c = J->columns;
    int64_t j, n = J->panels * J->per;
    hs_grid G;
    hs_grid_rows(&G, A->grid);
    G.first = 0;
    G.n = G.last = (int)(n + 7) / 8 * 8;
    for (j = 0; j < n; j++, c += HS_BULK_COLUMNS) total += G.r[j] = c[0] * exp(a * (c[2] - base));
    for (c = J->columns, j = 0; j < n; j++, c += HS_BULK_COLUMNS) {
        double x = c[5], L = c[2], dL = c[4] / (1 + c[1]) + 2 * HS_U * fabs(L), e;
        e = HS_U * (6 * x * x + 8 * fabs(x) + 30 + 4 * fabs(a) * (fabs(L) + base)) + fabs(a) * dL;
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

/* k log phi of a law known to e^log_m, its errors by quarters of the frequencies [theory: small.bulk-line]. */
static int visit_bulk(bulk_line *A, const hs_bulk *J, double k, double log_m)
{
    double slope = transform_nodes(A, J);
    int64_t from = 0, to;
    int i;
    for (i = 1; i <= 4; i++, from = to) {
        to = i < 4 ? A->N * i / 4 : A->N + 1;
        double bound = hs_bulk_phase_upper(J, hs_bulk_exponent(&A->J, A->c), (double)to * A->dy) * exp(-log_m);
        if (!(bound < 0.1)) return HS_TOO_WIDE;
        add_bulk_nodes(A, k, slope, 2.25 * bound, from, to);
    }
    return HS_OK;
}

/* log of the mass of the cell under num tilted by t, with its error: positive terms [theory: small.bulk-line]. */
static double jump_at(const hs_bulk *G, double t, double *err)
{
    double sum = 0, off = 0, a = 1 + t;
    const double *c = G->columns;
    int64_t j, n = G->panels * G->per;
    for (j = 0; j < n; j++, c += HS_BULK_COLUMNS) {
        double e = c[0] * exp(a * (c[2] - G->l0));
        sum += e;
        off +=
            e * (HS_U * (6 * c[5] * c[5] + 8 * fabs(c[5]) + 30 + 8 * a * (fabs(c[2]) + G->l0)) + a * c[4] / (1 + c[1]));
    }
    *err = off / sum + HS_U * (double)(n + 8) + hs_bulk_phase_upper(G, a, 0) * exp(-a * G->l0) / sum;
    *err = *err < 0.1 ? 1.2 * *err + 4 * HS_U * (fabs(log(sum)) + a * G->l0) : HUGE_VAL;
    return log(sum) + a * G->l0;
}

/* K of the whole line at three tilts with its error, from the bulk, left in T at the line's own tilt, and the cell. */
static int bulk_line_values(bulk_line *A, const double *tilt, hs_bulk_tilted *T)
{
    double off;
    int i, st;
    for (i = 2; i >= 0; i--) {
        if ((st = hs_bulk_at(&A->J, tilt[i], 0, T))) return st;
        A->K[i] = A->copies * T->log_b;
        A->err[i] = A->copies * T->err + 4 * HS_U * fabs(A->K[i]);
        if (!A->jump) continue;
        A->K[i] += log(A->J.k) + jump_at(&A->G, tilt[i], &off);
        A->err[i] += off + 4 * HS_U * (fabs(A->K[i]) + log(A->J.k));
    }
    return HS_OK;
}

/* The rows of the line's nodes, behind those of the parts before it: sums begin at 0. */
static void bulk_line_rows(bulk_line *A)
{
    double *row = A->nodes + 6 * A->used;
    memset(row, 0, sizeof(double) * 4 * (size_t)(A->N + 1));
    A->F = (hs_nodes){.c = A->c, .dy = A->dy, .eps = A->eps, .reach = A->reach, .N = A->N, .re = row};
    A->F.im = row += A->N + 1;
    A->F.round = row += A->N + 1;
    A->F.node = row += A->N + 1;
    A->F.a = row += A->N + 1;
    A->F.b = row + A->N + 1;
}

/* Puts the line behind the parts before it. */
static void keep_part(bulk_line *A)
{
    line_part *part = &A->part[A->parts++];
    *part = (line_part){.c = A->c, .dy = A->dy, .P = A->P, .s_left = A->s_left, .s_right = A->s_right, .F = A->F};
    part->log_tail = A->log_tail;
    memcpy(part->K, A->K, sizeof A->K);
    memcpy(part->err, A->err, sizeof A->err);
    A->used += A->N + 1;
}

/* The line as placed: panels made for its frequencies, K at its three tilts, nodes, tail. */
static int prepare_bulk_line(bulk_line *A, double l)
{
    const double tilt[3] = {A->c, A->s_right, A->s_left};
    double Y = (double)A->N * A->dy, a = hs_bulk_exponent(&A->J, A->c), off;
    hs_bulk_tilted T;
    int i, st = hs_bulk_cut(&A->J, l, a, Y);
    if (st) return st;
    if (A->jump && (st = hs_bulk_cell(&A->G, -A->G.left, A->G.x0, 1 + A->s_right, Y))) return st;
    if (A->J.panels * A->J.per > HS_INNER_MAX || A->G.panels * A->G.per > HS_INNER_MAX ||
        !((Y + A->dy) * fmax(fmax(A->J.l0, A->G.l0), -log1p(-A->J.q)) < 1e6))
        return HS_TOO_MANY_NODES;
    if ((st = bulk_line_values(A, tilt, &T))) return st;
    lay_cells(A, T.log_b, T.err);
    A->log_tail = -bulk_decay_lower(A, Y) - log(HS_PI * Y) + log1p(A->dy / Y) + 1e-9;
    bulk_line_rows(A);
    if (A->jump) {
        double log_g = jump_at(&A->G, A->c, &off);
        if ((st = visit_bulk(A, &A->G, 1, log_g - off))) return st;
    }
    i = A->jump;
    A->jump = 0;
    st = visit_bulk(A, &A->J, A->copies, T.log_b - T.err);
    A->jump = i;
    if (st) return st;
    hs_nodes_freeze(&A->F);
    keep_part(A);
    return HS_OK;
}

/* The sum of one line at eps, as in contour.c. */
static void part_at(const line_part *A, double eps, hs_value *v)
{
    double unit = A->dy / (2 * HS_PI), sum, der, whole = 2 * HS_U * (fabs(A->K[0]) + fabs(A->c * eps)) + A->err[0];
    double part, d, e;
    hs_nodes_sum(&A->F, eps, &sum, &der);
    v->log_scale = A->K[0] - A->c * eps;
    v->value = unit * sum;
    v->slope = unit * der;
    v->inner = unit * A->F.inner;
    v->truncation = exp(A->log_tail);
    v->rounding = unit * A->F.rounding + expm1(whole) * (fabs(v->value) + v->inner + v->truncation);
    part = 8 * HS_U * (fabs(A->K[0]) + fabs(A->K[1]) + fabs(A->K[2]) + (2 * A->s_right + A->c) * (eps + A->P));
    d = A->s_right - A->c;
    e = part + (A->K[1] + A->err[1] - A->K[0]) - d * eps + hs_payoff(A->s_right) - d * A->P;
    v->alias_right = exp(e) / -expm1(-d * A->P) * (1 + 1e-9); /* [theory: line.aliases] */
    d = A->c - A->s_left;
    e = part + (A->K[2] + A->err[2] - A->K[0]) + d * eps + hs_payoff(A->s_left) - d * A->P;
    v->alias_left = exp(e) / -expm1(-d * A->P) * (1 + 1e-9);
}

/* All lines and what lies beyond them, in the unit of the largest. Every line is one of a measure, so it is >= 0. */
static void bulk_line_at(const void *prepared, double eps, hs_value *v)
{
    const bulk_line *A = (const bulk_line *)prepared;
    hs_value one[PARTS];
    double e;
    int i;
    memset(v, 0, sizeof(*v));
    v->log_scale = -HUGE_VAL;
    for (i = 0; i < A->parts; i++) {
        part_at(&A->part[i], eps, &one[i]);
        e = one[i].log_scale + log(fmax(one[i].value, 1e-300));
        if (e > v->log_scale) v->log_scale = e;
    }
    for (i = 0; i < A->parts; i++) {
        const hs_value *w = &one[i];
        double unit = exp(w->log_scale - v->log_scale), off;
        if (!(unit < HUGE_VAL)) { /* a value that is lost in what the line is off by */
            v->upper = HUGE_VAL;
            continue;
        }
        off = w->rounding + w->inner + w->truncation;
        off += 8 * HS_U * (1 + fabs(w->log_scale) + fabs(v->log_scale)) * (fabs(w->value) + off);
        v->value += unit * w->value;
        v->slope += unit * w->slope;
        v->rounding += unit * (off - w->inner - w->truncation);
        v->inner += unit * w->inner;
        v->truncation += unit * w->truncation;
        v->alias_left += unit * (w->alias_left + w->alias_right);
        v->upper += unit * (w->value + off);
        v->lower += unit * fmax(0, w->value - off - w->alias_left - w->alias_right);
    }
    v->alias_right = exp(beyond(A, eps) - v->log_scale) * (1 + SLACK);
    v->upper = (v->upper + v->alias_right) * (1 + 64 * HS_U);
    v->lower *= 1 - 64 * HS_U;
}

/* No line yet. */
static void start_tilts(bulk_line *A)
{
    A->parts = A->jump = 0;
    A->used = 0;
    A->top = 0;
    A->copies = A->J.k;
}

/* How far left the panels have to begin for sums about eps: ADD has its mass there. */
static void begin_panels(hs_bulk *J, double eps)
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
        begin_panels(&A->J, e);
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

/* A line with a cut at eps, and others for one jump beyond it, in cells up to where jumps weigh MARGIN nats less than
 * delta, about e^log_delta. */
static int with_jumps(bulk_line *A, double eps, double log_delta)
{
    double width, top, end, from;
    int st;
    start_tilts(A);
    A->cut = eps;
    if ((st = place_bulk_line(A, eps, eps)) || (st = prepare_bulk_line(A, eps))) return st;
    top = fmax(1.01 * A->J.l0, one_loss(&A->G, log_delta - MARGIN));
    width = NEAR * A->sd;
    A->copies = A->J.k - 1; /* [theory: small.bulk-cells] */
    A->jump = 1;
    from = A->J.x0;
    for (end = A->J.l0; end < top && !st; width *= 2) {
        end = A->parts == PARTS - 1 || end + 1.5 * width > top ? top : end + width;
        A->c = 1 / A->sd;
        if ((st = hs_bulk_cell(&A->G, from, hs_bulk_place(&A->J, end), 0, 0))) break;
        from = A->G.x0;
        if (!(st = place_bulk_line(A, eps, eps))) st = prepare_bulk_line(A, eps);
    }
    A->jump = 0;
    A->top = top;
    A->copies = A->J.k;
    return st;
}

/* Lines for eps: the lowest cut beyond which jumps weigh nothing; where the sum of that line loses digits, a cut at eps
 * and cells of one jump beyond. */
static int best_line(bulk_line *A, double eps)
{
    double least = HUGE_VAL, width, log_delta;
    int i = CUT_ONE, chosen = -1, went = 0, st;
    hs_value v;
    begin_panels(&A->J, eps);
    start_tilts(A);
    while (i >= 0 && i <= CUT_LAST) {
        int step = -1;
        st = place_bulk_line(A, eps, CUTS[i] * eps);
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
    if (chosen < 0) return HS_TOO_WIDE;
    A->cut = CUTS[chosen] * eps;
    if (i != chosen && (st = place_bulk_line(A, eps, A->cut))) return st;
    if ((st = prepare_bulk_line(A, A->cut))) return st;
    bulk_line_at(A, eps, &v);
    width = v.lower > 0 ? v.upper / v.lower - 1 : HUGE_VAL;
    if (A->J.add || A->J.k < 2 || width < ENOUGH) return HS_OK;
    log_delta = v.value > 0 ? v.log_scale + log(v.value) : A->log_est - NATS;
    for (i = 0; i < 2 && !with_jumps(A, eps, log_delta); i++) {
        bulk_line_at(A, eps, &v);
        if (v.lower > 0 && v.upper / v.lower - 1 < width && (i || v.alias_right < ENOUGH * v.value)) return HS_OK;
        if (!(v.lower > 0)) break;
        log_delta = v.log_scale + log(v.lower);
    }
    start_tilts(A);
    A->cut = CUTS[chosen] * eps;
    if ((st = place_bulk_line(A, eps, A->cut))) return st;
    return prepare_bulk_line(A, A->cut);
}

int64_t hs_bulk_line_work(void) { return 2 * HS_BULK_WORK + HS_GRID_WORK + 3 * CELLS + 6 * (HS_BULK_NODES + 1); }

static int open_bulk_line(bulk_line *A, const hs_run *run, const hs_rule *rule, double *work, int64_t n_work)
{
    memset(A, 0, sizeof(*A));
    if (n_work < hs_bulk_line_work()) return HS_SCRATCH;
    A->grid = work + 2 * HS_BULK_WORK;
    A->mass = A->grid + HS_GRID_WORK;
    A->most = A->mass + CELLS;
    A->steep = A->most + CELLS;
    A->nodes = A->steep + CELLS;
    A->J.add = run->add;
    if (run->b != 1 || hs_bulk_open(&A->G, *run->m, *run->q, *run->k, rule, work + HS_BULK_WORK))
        return HS_BAD_ARGUMENT;
    if (hs_bulk_open(&A->J, *run->m, *run->q, *run->k, rule, work)) return HS_BAD_ARGUMENT;
    start_tilts(A);
    return HS_OK;
}

int hs_bulk_line_delta(const hs_run *run, double eps, const hs_rule *rule, double *work, int64_t n_work, hs_point *out)
{
    bulk_line A;
    hs_value v;
    int st = open_bulk_line(&A, run, rule, work, n_work);
    if (st) return st;
    if (!(eps > 0 && eps < 1e4)) return HS_OUT_OF_RANGE;
    if ((st = best_line(&A, eps))) return st;
    bulk_line_at(&A, eps, &v);
    if (!(v.lower > 0 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    v.value = fmin(fmax(v.value, v.lower), v.upper); /* lost in what one line is off by */
    hs_value_point(&v, A.N + 1, out);
    return HS_OK;
}

int hs_bulk_line_eps(const hs_run *run, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                     hs_crossing *out)
{
    bulk_line A;
    hs_value v;
    hs_curve curve = {.at = bulk_line_at, .self = &A, .log_delta = log_delta};
    double eps, left, move;
    int i, st = open_bulk_line(&A, run, rule, work, n_work);
    if (st) return st;
    eps = about(&A, log_delta);
    for (i = 0; i < PLACES; i++) { /* the saddle's own estimate of delta is far off where few jumps make it */
        if ((st = best_line(&A, eps))) return st;
        bulk_line_at(&A, eps, &v);
        if (!(v.value > 0 && v.slope > 0)) return HS_TOO_WIDE;
        move = (v.log_scale + log(v.value) - log_delta) * v.value / v.slope;
        if (12 * fabs(move) < A.reach) break;
        eps += fmax(-0.5 * eps, fmin(eps, move));
    }
    curve.start = eps;
    curve.reach = fmin(A.reach, 0.9 * eps);
    curve.step = curve.reach;
    curve.bend = 4 / A.reach;
    if ((st = hs_root_estimate(&curve, &out->estimate, &left, &v))) return st;
    if (hs_root_bracket(&curve, out->estimate, left, &v, &out->lower, &out->upper) != 3) return HS_NO_BRACKET;
    hs_value_point(&v, A.N + 1, &out->delta);
    return HS_OK;
}
