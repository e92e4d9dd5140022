/* bulk_line.c - certified delta(eps) and eps(delta) of k runs of one pair, a public mixture of two-sided branches or a
 * plain sampled step, eps > 0, by the line of contour.c through the law below a cut.
 *
 * Symbols. B, x0, l0, P, L, E of bulk.c; K(z) = k log B(z); c a tilt near the saddle of K(z) - eps z - log z -
 *   log(1+z); r(x) = W w e^E/B(c) for x <= x0, at t = c; phi(y) = B(c+iy)/B(c), s_i = (U_i+q)/(1+U_i), S = up s1 +
 *   down s2; dy, P, f_n, lf as in contour.c.
 *
 * Formula. delta = H_0 + what runs with a loss beyond the cut add, which is >= 0 [theory: small.bulk-beyond]. H_0 is
 *   the curve of a measure of mass at most 1: T = H_0 + aliases for tilts s_left >= 0 [theory: line.aliasing,
 *   line.known-aliases]. Rare jumps no longer make K explode near the saddle: periods and nodes are those of a sum of
 *   alike losses. Where one jump matters beside the bulk, every cell of losses above the cut has a line of its own, of
 *   k-1 losses of the bulk and one of the cell [theory: small.bulk-cells]; jumps so large that the others hardly ever
 *   bring the sum back below eps are in closed form [theory: small.bulk-parity].
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
 * hs_bulk_upper bounds delta by the bulk's Chernoff bound and by what is beyond the cut, without a line.
 *
 * Without it 24 % of the extreme questions of `python benchmarks/widths.py` are wider than 1e-3 (0.2 with it).
 *   Without cells 9.6 % of sparse ones are wider than 1e-6 (1.8), 5.1 % of truncated ones (0.9); without closed forms
 *   of large jumps 2.1 % and 1.3 %, and the slowest takes 133 ms (63); without hs_bulk_upper the 99th of 100
 *   truncated ones takes 19.9 ms (14.7).
 *
 * What it does not do: several distinct steps; several jumps apart from the bulk.
 */
#include "law/bulk.h"
#include "line/counts.h"
#include "line/part.h"
#include "line/saddle.h"
#include "tuning.h"

#define SLACK 1e-8 /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */
#define NATS 31.0  /* by which aliases and tail stay below delta */
#define FEWER 10.0 /* nats less of a line of more than MANY_NODES, and of twice as many */
#define MUCH_FEWER 12.0
#define MANY_NODES 700
#define TILE 64           /* cells that are laid together */
#define CELLS 2048        /* of the bound of |phi|, all branches */
#define LAYERS 24         /* of the jumps below eps */
#define SIDES 6           /* tilts of Chernoff's bound of the bulk there */
#define PARTS 8           /* lines, the first without a jump */
#define MOST_VALUES 3e8   /* of inner at outer nodes, all lines that are tried */
#define ONE_LINE 6e7      /* the same of one line without jumps apart */
#define NEAR 5.0          /* deviations of the bulk that the cell about eps spans to either side */
#define ENOUGH 1e-8       /* relative width of delta from which no jumps are taken apart */
#define SMALL 7.0         /* the same of a part whose line fails */
#define JUMPS_ENOUGH 5e-7 /* the same where jumps come first, beside which a line costs as much again */
#define JUMPS_ROOM 1e7    /* inner at outer nodes with the jumps of a one-sided step apart: more hardly ever help */
#define COUNTED 0.5       /* sensitivity/sigma from which jumps are counted */
#define PAIRS 18.0        /* the same of two jumps */
#define MARGIN 23.0       /* nats below delta that jumps beyond a cut may weigh */
#define LOST 5.0          /* nats above delta that two jumps may weigh at most where no line helps */

typedef struct {
    hs_bulk J, G;  /* G: panels of the cell of losses in which one step jumps */
    double copies; /* steps in the bulk: all, or all but the one that jumps */
    int jump, parts;
    hs_line_part part[PARTS];
    int far; /* whether jumps from the places cell_from on, of the loss far_loss and more, are taken by parity */
    double far_loss, far_tilt, far_log, far_den; /* with Chernoff's bound of how the others bring them back */
    double cell_from[HS_BRANCHES], cell_end;     /* places where the cell begins, the loss at its end */
    double cut, top;                             /* where the bulk ends, in losses; the last cell's end, 0: no cells */
    double eps, reach, c, log_est;
    double sd;
    double log_beyond;                /* of what runs with a loss above the cut add */
    hs_line_part line;                /* the line at hand */
    int cells, from[HS_BRANCHES + 1]; /* of the bound of |phi|, and where those of a branch begin */
    double *mass, *most;              /* of cells left of the cut: mass under r, at least and at most */
    double *steep, *cost;             /* S at least and what a shifted path costs there, over d^2/2, at most */
    double left;                      /* the mass beyond all cells that is no jump */
    double edge[HS_BRANCHES], edge_steep[HS_BRANCHES], edge_cost[HS_BRANCHES]; /* the density r at the cut, S, cost */
    double *nodes, *grid;
    int64_t used;        /* of the nodes' room */
    double values, room; /* inner at outer nodes so far, and at most */
    int best, low;       /* of CUTS: those chosen at the eps asked before */
    double known;        /* relative width of delta from which an answer is of use, infinite: of any */
} bulk_line;

/* K and its derivatives, as an estimate. */
static hs_cgf cgf(void *self, double t)
{
    const bulk_line *A = (const bulk_line *)self;
    double one[3];
    hs_cgf out = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    if (!hs_bulk_estimate(&A->J, t, one)) return out;
    out.K = A->copies * one[0];
    out.K1 = A->copies * one[1];
    out.K2 = A->copies * one[2];
    if (!A->jump) return out;
    hs_bulk_cell_estimate(&A->G, t, one);
    out.K += log(A->J.k) + one[0];
    out.K1 += one[1];
    out.K2 += one[2];
    return out;
}

/* What a shifted path costs over d^2/2 by w and its own slope. */
static double path_cost(const hs_pair *pair, int r)
{
    double m = fmax(pair->up[r], pair->down[r]);
    return 1 + (pair->up[r] > 0 && pair->down[r] > 0 ? 4 : 1) * m * m;
}

/* Cells of a branch of the bulk from number `at` on, at most n: bounds of their masses under r, of S and of s2 in them
 * [theory: small.bulk-far]. log_b: log B(c) within err. Returns how many. */
static int lay_bulk_branch(bulk_line *A, int r, int at, int n, double log_b, double err)
{
    const hs_bulk *J = &A->J;
    double up = J->pair.up[r], down = J->pair.down[r], t = A->c;
    double width = J->x0[r] + J->left, h;
    double l1[2 * TILE + 1], l2[2 * TILE + 1], s1[2 * TILE + 1], s2[2 * TILE + 1];
    int i, j, count;
    n = (int)fmin(n, ceil(width / fmin(0.05, 0.1 / fmax(up, down))));
    h = width / n;
    for (i = 0; i < n; i += count) {
        count = n - i < TILE ? n - i : TILE;
        hs_bulk_losses(J, r, J->x0[r] - (n - i) * h, 0.5 * h, 2 * count + 1, l1, l2, s1, s2);
        for (j = 0; j < count; j++, at++) {
            double x = J->x0[r] - (n - i - j) * h, z = x + h, W = J->pair.w[r] * h;
            const int left = 2 * j, mid = left + 1, right = left + 2;
            A->most[at] = (1 + t) * l1[right] - t * l2[right] - 0.5 * pow(x > 0 ? x : fmin(z, 0), 2);
            A->most[at] = W * exp(A->most[at] - HS_LOG_SQRT_2PI - log_b + err) * (1 + 1e-6);
            A->mass[at] = (1 + t) * l1[mid] - 0.5 * t * (l2[left] + l2[right]) - (x * x + x * z + z * z) / 6;
            A->mass[at] = W * exp(A->mass[at] - HS_LOG_SQRT_2PI - log_b - err) * (1 - 1e-6);
            A->steep[at] = (up * s1[left] + down * s2[right]) * (1 - 1e-9);
            A->cost[at] = t * down * down * s2[left] * (1 + 1e-9);
        }
    }
    return n;
}

/* The density r at the cut of a branch, S and the cost there; none where it is not cut. */
static void lay_edge(bulk_line *A, int r, double log_b, double err)
{
    const hs_bulk *J = &A->J;
    double up = J->pair.up[r], down = J->pair.down[r], t = A->c, E;
    hs_bulk_loss at = hs_bulk_loss_at(J, r, J->x0[r]);
    A->edge[r] = A->edge_cost[r] = 0;
    A->edge_steep[r] = 1;
    if (!(J->cut[r] < HUGE_VAL)) return;
    E = (1 + t) * at.l1 - t * at.l2 - 0.5 * J->x0[r] * J->x0[r];
    A->edge[r] = J->pair.w[r] * exp(E - HS_LOG_SQRT_2PI - log_b + err) * (1 + 1e-6);
    A->edge_steep[r] = (up * at.s1 + down * at.s2) * (1 - 1e-9);
    A->edge_cost[r] = t * down * down * at.s2 * (1 + 1e-9);
}

static void lay_cells(bulk_line *A, double log_b, double err)
{
    int r, at = 0;
    for (r = 0; r < A->J.pair.branches; r++) {
        A->from[r] = at;
        at += lay_bulk_branch(A, r, at, CELLS / A->J.pair.branches, log_b, err);
        lay_edge(A, r, log_b, err);
    }
    A->from[r] = A->cells = at;
    A->left = hs_bulk_outside_upper(&A->J, A->c) * exp(err - log_b);
}

/* What the shifted path of branch r takes from |phi|, at least, and leaves of it, at most, and what its end adds, for
 * all y >= Y. */
HS_CLONES static void branch_decay(const bulk_line *A, int r, double Y, double turn, double *gain, double *rest)
{
    const hs_pair *pair = &A->J.pair;
    double slope = sin(turn) / turn * Y, cap = turn / fmax(pair->up[r], pair->down[r]), one = path_cost(pair, r);
    double more = 1 / pow(cos(0.5 * turn), 2), push = slope * A->edge_steep[r], end;
    int i;
    for (i = A->from[r]; i < A->from[r + 1]; i++) {
        double pull = slope * A->steep[i], d = pull / (one + more * A->cost[i]), fall;
        d = d < cap ? d : cap;
        fall = hs_expm1(-0.5 * pull * d);
        *gain -= A->mass[i] * fall;
        *rest += A->most[i] * (1 + fall);
    }
    end = fmin(fmin(push / (one + more * A->edge_cost[r]), cap), 2 / push) * A->edge[r] * (1 + 1e-8);
    *gain -= end;
    *rest += end;
}

/* A lower bound of -k log|phi(y)| for all y >= Y, by the turn after *turn first, which becomes that of the largest; one
 * of at least `enough` will do [theory: small.bulk-far]. */
static double turned_decay_lower(const bulk_line *A, double Y, double enough, int *turn)
{
    static const double TURN[] = {0.5, 1, 1.4};
    double best = 0;
    int i, t, r, first = *turn;
    for (i = 0; i < 3 && best * (1 - 1e-9) < enough; i++) {
        double gain = 0, rest = A->left, most, one;
        t = (first + i) % 3;
        for (r = 0; r < A->J.pair.branches; r++) branch_decay(A, r, Y, TURN[t], &gain, &rest);
        most = fmin(1 - gain + 1e-9 * fabs(gain), rest * (1 + 1e-9) + 1e-12);
        one = gain > 0 ? -A->copies * log(fmin(most, 1)) : 0;
        if (!(one > best)) continue;
        best = one;
        *turn = t;
    }
    return best * (1 - 1e-9);
}

static double bulk_decay_lower(const bulk_line *A, double Y)
{
    int turn = 0;
    return turned_decay_lower(A, Y, HUGE_VAL, &turn);
}

/* The loss of a branch at x, at least [theory: rounding.first-order]. */
static double loss_lower(const hs_bulk *J, int r, double x)
{
    hs_bulk_loss at = hs_bulk_loss_at(J, r, x);
    double up = J->pair.up[r], down = J->pair.down[r], place = 8 * fabs(x) + 4;
    double edge = up * at.s1 * (place + 5 * up) + down * at.s2 * (place + 5 * down);
    return at.l1 - at.l2 - SLACK * (fabs(at.l1) + fabs(at.l2) + 1e-3 * edge);
}

/* Logs of k times the mass under num of losses above `least` and of the cut of J, and, where asked for, of their
 * pay-off (1 - e^{least-Y})_+, at most [theory: small.bulk-beyond]. */
static double log_above_upper(const hs_bulk *J, double least, double *worth)
{
    double x[HS_BRANCHES];
    double p, u, den, rel;
    double low = least;
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        hs_bulk_loss loss;
        x[r] = J->cut[r];
        if (!(least > 0 && x[r] < HUGE_VAL)) continue;
        double at = hs_bulk_place(J, r, least), step = 1e-12 * (1 + fabs(at));
        for (at -= step; at > x[r]; at -= step, step *= 4) {
            loss = hs_bulk_loss_at(J, r, at);
            if (loss.l1 - loss.l2 <= least) break;
        }
        x[r] = fmax(x[r], at);
        low = fmin(low, loss_lower(J, r, x[r]));
    }
    hs_bulk_masses(J, x, &p, &u, &den, &rel);
    u += 4 * rel * p - expm1(fmin(fmax(low, 0), 600)) * den * (1 - 2 * rel);
    if (worth) *worth = log(J->k) + J->log_unit + log(fmax(u, rel * p));
    return log(J->k) + J->log_unit + log(p * (1 + 2 * rel));
}

/* Upper bound of the log of what runs with two jumps or more add to delta(eps) [theory: small.bulk-beyond]. */
static double two_jumps_upper(const hs_bulk *J, double eps)
{
    double u, p = log_above_upper(J, 0, &u), rest = -HUGE_VAL;
    if (!(J->k * hs_bulk_top_loss(J) * (1 + SLACK) < eps))
        rest = fmin(0, hs_bulk_above_upper(J, J->k - 2, eps) + 2 * exp(fmin(p, 3)));
    return fmin(2 * p - log(2), hs_log_add(p + u, 2 * p - log(2) + rest));
}

/* Upper bound of the log of what runs with a loss above the cut add to delta(eps): one jump in layers, two or more
 * [theory: small.bulk-beyond]. */
static double log_beyond_cut_upper(const bulk_line *A, double eps)
{
    const hs_bulk *J = &A->J;
    double one = log_above_upper(J, 0, NULL), total, step = eps / LAYERS, worth;
    int i;
    if (J->k >= 2 && A->top > 0) {
        one = two_jumps_upper(J, eps);
        if (!A->far) one = hs_log_add(one, log_above_upper(&A->G, 0, NULL));
    } else if (J->l0 < eps) {
        total = one + hs_bulk_above_upper(J, J->k - 1, eps);
        if (J->k >= 2) total = hs_log_add(total, two_jumps_upper(J, eps));
        for (i = 0; i < LAYERS; i++) {
            log_above_upper(J, eps - (i + 1) * step, &worth);
            total = hs_log_add(total, worth + (i ? hs_bulk_above_upper(J, J->k - 1, i * step) : 0));
        }
        one = fmin(one, total);
    }
    return one + SLACK * (1 + fabs(one));
}

/* Chernoff's tilts for `log_beyond_cut_upper`, up to c; none for c = 0. */
static void lay_tilts(hs_bulk *J, double c)
{
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        J->tilt[i] = c * (i + 1) / SIDES;
        J->log_b[i] = c > 0 && i < SIDES ? hs_bulk_log_upper(J, J->tilt[i]) : HUGE_VAL;
    }
}

/* How many nodes the line needs until its tail is below e^-goal; HS_TOO_MANY_NODES where it has no room for them. */
static int count_nodes(bulk_line *A, double goal)
{
    double low = 1 / A->sd, high = (double)(HS_BULK_NODES - A->used) * A->line.dy, fall = goal - log(HS_PI * high);
    int i, turn = 1;
    if (!(turned_decay_lower(A, high, fall, &turn) >= fall)) return HS_TOO_MANY_NODES;
    for (i = 0; i < 20 && high > 1.02 * low; i++) {
        double Y = sqrt(low * high);
        fall = goal - log(HS_PI * Y);
        if (turned_decay_lower(A, Y, fall, &turn) < fall) low = Y;
        else high = Y;
    }
    A->line.F.N = (int64_t)ceil(high / A->line.dy) + 1;
    return HS_OK;
}

/* The saddle for eps of the law as cut. */
static int seek_saddle(bulk_line *A, double eps, double *K)
{
    hs_saddle_search f = {cgf, A, 1, eps, 0.005, -HUGE_VAL, 0};
    hs_tilt at = {.t = A->c};
    f.top = hs_bulk_top_tilt(&A->J);
    if (!(at.t > 0 && at.t < f.top)) at.t = 0.1 * f.top;
    if (hs_saddle_find(&f, &at)) return HS_NO_SADDLE;
    A->c = hs_short_tilt(at.t);
    A->eps = eps;
    A->log_est = at.log_est;
    A->sd = sqrt(at.k.K2);
    *K = at.k.K;
    if (!A->jump) A->reach = 12 / A->c;
    return A->sd > 0 ? HS_OK : HS_NO_SADDLE;
}

/* The period and the nodes of the line through a saddle, where K is as given: aliases and tail `nats` below it. */
static int place_within(bulk_line *A, double K, double nats)
{
    hs_aliases S = {cgf, A, A->c, A->eps, A->sd, A->log_est - nats};
    double right = hs_alias_place(&S, 1, 7 / A->sd, -HUGE_VAL, HUGE_VAL, 0, &A->line.s_right);
    int jump = A->jump, st;
    A->line.P = fmax(right, hs_alias_place(&S, -1, fmin(7 / A->sd, 0.5 * A->c), 0, HUGE_VAL, right, &A->line.s_left));
    if (!(A->line.P < 1e12 && A->line.P > 0 && A->line.s_left >= 0)) return HS_OUT_OF_RANGE;
    A->line.dy = 2 * HS_PI / A->line.P;
    A->jump = 0;
    lay_cells(A, cgf(A, A->c).K / A->copies, 0);
    A->jump = jump;
    /* what the tail may be, but for its 1/Y */
    if ((st = count_nodes(A, nats - (A->log_est - K + A->c * A->eps)))) return st;
    return A->line.F.N + A->used <= HS_BULK_NODES ? HS_OK : HS_TOO_MANY_NODES;
}

/* The same with what is useful: a line `below` nats below delta needs as many less, one of many nodes FEWER, and of
 * very many MUCH_FEWER. */
static int place_bulk_nodes(bulk_line *A, double K, double below)
{
    double nats = NATS - fmax(-FEWER, below);
    int st = place_within(A, K, nats);
    if (!st && A->line.F.N <= MANY_NODES) return st;
    st = place_within(A, K, nats - FEWER);
    return st || A->line.F.N > 2 * MANY_NODES ? place_within(A, K, nats - MUCH_FEWER) : HS_OK;
}

/* The cut at the loss l and the tilt for eps, and what lies beyond. */
static int cut_for(bulk_line *A, double eps, double l, double *K)
{
    int st = hs_bulk_cut(&A->J, l, 0, 0);
    if (st || (st = seek_saddle(A, eps, K))) return st;
    lay_tilts(&A->J, A->c);
    A->log_beyond = log_beyond_cut_upper(A, A->eps);
    return HS_OK;
}

/* The line for eps with the cut at the loss l: tilt, period, nodes. */
static int place_bulk_line(bulk_line *A, double eps, double l)
{
    double K;
    int st = cut_for(A, eps, l, &K);
    return st ? st : place_bulk_nodes(A, K, 0);
}

/* k log phi at the nodes from .. to-1 from phi - 1 in A->a, A->b, with the errors of phi: slope y and quad. A node lost
 * in its own error is replaced by a bound of it [theory: line.inner]. */
static void add_bulk_nodes(const hs_line_part *A, double k, double slope, double quad, int64_t from, int64_t to)
{
    const hs_nodes *F = &A->F;
    double *round = F->re + 2 * (F->N + 1), *node = round + F->N + 1, phi[4];
    int64_t n;
    for (n = from; n < to; n++) {
        int found = hs_line_part_log(A->a[n], A->b[n], (double)n * F->dy * slope, quad, phi);
        F->re[n] += k * phi[0];
        F->im[n] += found ? k * phi[1] : 0;
        round[n] += found ? k * phi[2] : 1.1;
        node[n] += found ? k * phi[3] : 0;
    }
}

/* k log phi of a law known to e^log_m, its errors by quarters of the frequencies [theory: small.bulk-line]. */
static int visit_bulk(bulk_line *A, const hs_bulk *J, double k, double log_m)
{
    int64_t to[5] = {0, A->line.F.N / 4, A->line.F.N / 2, A->line.F.N * 3 / 4, A->line.F.N + 1};
    double bound[5], slope, enough = log_m - 42 - log(J->k);
    int i;
    for (i = 4; i > 0; i--) {
        bound[i] = exp(hs_bulk_log_phase_upper(J, A->c, (double)to[i] * A->line.dy, enough) - log_m);
        if (!(bound[i] < 0.1)) return HS_TOO_WIDE;
    }
    slope = hs_bulk_nodes(J, A->c, A->line.dy, A->line.F.N, A->grid, A->line.a, A->line.b);
    for (i = 1; i <= 4; i++) add_bulk_nodes(&A->line, k, slope, 2.25 * bound[i], to[i - 1], to[i]);
    return HS_OK;
}

/* K of the whole line at three tilts with its error, from the bulk, left in T at the line's own tilt, and the cell. */
static int bulk_line_values(bulk_line *A, const double *tilt, hs_bulk_tilted *T)
{
    double off, size;
    int i, st;
    A->line.c = tilt[0];
    for (i = 2; i >= 0; i--) {
        if ((st = hs_bulk_at(&A->J, tilt[i], 0, T))) return st;
        A->line.K[i] = A->copies * T->log_b;
        A->line.err[i] = A->copies * T->err;
        size = fabs(A->line.K[i]);
        if (A->jump) {
            A->line.K[i] += log(A->J.k) + hs_bulk_cell_at(&A->G, tilt[i], &off);
            A->line.err[i] += off;
            size += fabs(A->line.K[i]) + log(A->J.k);
        }
        A->line.err[i] += 4 * HS_U * size;
    }
    return HS_OK;
}

/* Puts the line behind the parts before it. */
static void keep_part(bulk_line *A)
{
    A->part[A->parts++] = A->line;
    A->used += A->line.F.N + 1;
}

/* No loss of the panels is below its negative. */
static double least_loss(const hs_bulk *J)
{
    double least = 0;
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        hs_bulk_loss at = hs_bulk_loss_at(J, r, -J->left - 1);
        least = fmax(least, at.l2 - at.l1);
    }
    return least;
}

/* Whether losses are those of one sampled step under REMOVE. */
static int one_sided(const hs_pair *pair) { return pair->branches == 1 && pair->down[0] == 0; }

/* The line as placed: panels made for its frequencies, K at its three tilts, nodes, tail. */
static int prepare_bulk_line(bulk_line *A)
{
    const double tilt[3] = {A->c, A->line.s_right, A->line.s_left};
    double Y = (double)A->line.F.N * A->line.dy, off, values;
    hs_bulk_tilted T;
    int i, has_room, st = hs_bulk_cut(&A->J, A->cut, A->c, Y);
    if (st) return st;
    if (A->jump && (st = hs_bulk_cell(&A->G, A->cell_from, A->cell_end, A->line.s_right, Y))) return st;
    values = (double)((A->J.panels + (A->jump ? A->G.panels : 0)) * A->J.per) * (double)A->line.F.N;
    has_room = A->values + values < A->room && (Y + A->line.dy) * fmax(fmax(A->J.l0, A->G.l0), least_loss(&A->J)) < 1e6;
    /* Of what has no room nothing is computed; but a one-sided step is then given up soon. */
    if (has_room || one_sided(&A->J.pair)) A->values += values;
    if (!has_room) return HS_TOO_MANY_NODES;
    if ((st = bulk_line_values(A, tilt, &T))) return st;
    lay_cells(A, T.log_b, T.err);
    A->line.log_tail = -bulk_decay_lower(A, Y) - log(HS_PI * Y) + log1p(A->line.dy / Y) + 1e-9;
    hs_line_part_rows(&A->line, A->eps, A->reach, A->nodes + 6 * A->used);
    if (A->jump) {
        double log_g = hs_bulk_cell_at(&A->G, A->c, &off);
        if ((st = visit_bulk(A, &A->G, 1, log_g - off))) return st;
    }
    i = A->jump;
    A->jump = 0;
    st = visit_bulk(A, &A->J, A->copies, T.log_b - T.err);
    A->jump = i;
    if (st) return st;
    hs_nodes_freeze(&A->line.F);
    keep_part(A);
    return HS_OK;
}

/* A part of which Chernoff's bound is enough: it raises the upper end alone. */
static int bound_part(bulk_line *A)
{
    const double tilt[3] = {A->c, A->c, A->c};
    hs_bulk_tilted T;
    int st = hs_bulk_cut(&A->J, A->cut, A->c, 0);
    if (st || (A->jump && (st = hs_bulk_cell(&A->G, A->cell_from, A->cell_end, A->c, 0)))) return st;
    if ((st = bulk_line_values(A, tilt, &T))) return st;
    A->line.F.N = -1;
    keep_part(A);
    return HS_OK;
}

/* Upper bound of the log of what far jumps add to their parity form: e^eps times the chance under den that the others
 * bring such a loss back below eps [theory: small.bulk-parity]. */
static double brought_back_upper(const bulk_line *A, double eps)
{
    double fall = (A->J.k - 1) * A->far_log - A->far_tilt * (A->far_loss - eps);
    return eps + log((A->J.k - 1) * A->far_den + exp(fmin(fall, 0)) * (1 + SLACK * (1 + fabs(fall))));
}

/* One jump above all cells, whose sum with the others hardly ever ends below eps [theory: small.bulk-parity]. */
static void far_at(const bulk_line *A, double eps, hs_value *v)
{
    const hs_bulk *J = &A->J;
    double n = J->k - 1, scale = exp(J->log_unit), p = scale * J->p, den = scale * J->q_den;
    double shifted = eps + n * (log1p(-den) - log1p(-p)), off;
    double P, u, Q, rel;
    memset(v, 0, sizeof(*v));
    hs_bulk_masses(J, A->cell_from, &P, &u, &Q, &rel);
    v->log_scale = log(J->k) + J->log_unit + n * log1p(-p);
    v->value = u - Q * expm1(shifted);
    v->slope = Q * exp(shifted);
    off = 4 * n * (p + den) * J->rel + 8 * HS_U * (2 * n * (p + den) + fabs(shifted) + fabs(v->log_scale));
    v->rounding = 4 * rel * (P + Q * (1 + fabs(expm1(shifted)))) + 2 * off * (fabs(v->value) + v->slope) + 4e-300;
    v->upper = Q * exp(brought_back_upper(A, eps) - n * log1p(-p)) * (1 + 4 * rel + SLACK);
}

/* All lines and what lies beyond them, in the unit of the largest. Every line is one of a measure, so it is >= 0. */
static void bulk_line_at(const void *prepared, double eps, hs_value *v)
{
    const bulk_line *A = (const bulk_line *)prepared;
    hs_value one[PARTS + 1];
    double e;
    int i, all = A->parts + A->far;
    memset(v, 0, sizeof(*v));
    v->log_scale = -HUGE_VAL;
    for (i = 0; i < all; i++) {
        if (i < A->parts) hs_line_part_at(&A->part[i], eps, &one[i]);
        else far_at(A, eps, &one[i]);
        e = one[i].log_scale + log(fmax(fmax(one[i].value, one[i].upper), 1e-300));
        if (e > v->log_scale) v->log_scale = e;
    }
    for (i = 0; i < all; i++) {
        const hs_value *w = &one[i];
        double unit = exp(w->log_scale - v->log_scale), off;
        if (!(unit < HUGE_VAL)) { /* a value that is lost in what the line is off by */
            v->upper = HUGE_VAL;
            continue;
        }
        v->alias_right += unit * w->upper;
        if (i < A->parts && A->part[i].F.N < 0) continue;
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
    v->alias_right += exp(log_beyond_cut_upper(A, eps) - v->log_scale) * (1 + SLACK);
    v->upper = (v->upper + v->alias_right) * (1 + 64 * HS_U);
    v->lower *= 1 - 64 * HS_U;
}

/* No line yet. */
static void start_tilts(bulk_line *A)
{
    A->parts = A->jump = A->far = 0;
    A->used = 0;
    A->top = 0;
    A->copies = A->J.k;
}

/* How far out branches of bounded loss have to go for sums about eps: nearly all of these lie there. */
static void end_branches(hs_bulk *J, double eps)
{
    double mean = 0;
    int r;
    for (r = 0; r < J->pair.branches; r++) mean += J->pair.w[r] * J->pair.q[r] * J->pair.down[r];
    J->far = mean > 0 ? 10 + fmin(30, ceil(2 + 1.5 * eps / (J->k * mean))) : HS_BULK_FAR;
}

/* Cuts over eps, from the lowest. */
static const double CUTS[] = {0.015, 0.03, 0.06, 0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1, 1.5, 2.2, 3.3, 5, 8, 13, 20};
enum { CUT_ONE = 9, CUT_LAST = 16 };

/* The loss at which k steps make e^log_delta: by the chance of a larger one, or by what one alone is worth there. */
static double one_loss(hs_bulk *J, double log_delta, int worth)
{
    double low = 1e-18, high = 0, far = J->far, x[HS_BRANCHES];
    double p, u, den, rel;
    int i, r;
    J->far = HS_BULK_FAR;
    for (r = 0; r < J->pair.branches; r++) {
        hs_bulk_loss at = hs_bulk_loss_at(J, r, J->pair.up[r] + HS_BULK_FAR);
        high = fmax(high, at.l1 - at.l2);
    }
    for (i = 0; i < 45; i++) {
        double mid = sqrt(low * high);
        for (r = 0; r < J->pair.branches; r++) x[r] = hs_bulk_place(J, r, mid);
        hs_bulk_unit(J, x);
        hs_bulk_masses(J, x, &p, &u, &den, &rel);
        if (worth) p = fmax(u - expm1(mid) * den, 1e-300);
        if (log(J->k) + J->log_unit + log(p) > log_delta) low = mid;
        else high = mid;
    }
    J->far = far;
    return low;
}

/* About the log of what k steps are worth at eps one by one. */
static double log_worth(hs_bulk *J, double eps)
{
    double x[HS_BRANCHES];
    double p, u, den, rel;
    int r;
    for (r = 0; r < J->pair.branches; r++) x[r] = hs_bulk_place(J, r, eps);
    hs_bulk_unit(J, x);
    hs_bulk_masses(J, x, &p, &u, &den, &rel);
    return fmin(-1e-9, log(J->k) + J->log_unit + log(fmax(u - expm1(eps) * den, 1e-300)));
}

/* About the standard deviation of the sum. */
static double spread(const hs_bulk *J)
{
    double sum = 0;
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        double up = J->pair.up[r], down = J->pair.down[r];
        sum += J->pair.w[r] * pow(J->pair.q[r], 2) *
               (expm1(fmin(up * up, 30)) + expm1(fmin(down * down, 30)) - 2 * expm1(-up * down));
    }
    return sqrt(J->k * sum);
}

/* The eps at which the law cut at about the loss e makes e^log_delta, in at->eps; a lower cut where tilts are too small
 * below that one. HS_NO_SADDLE where there is none. */
static int eps_of_bulk(bulk_line *A, double e, double log_delta, hs_tilt *at)
{
    hs_saddle_search f = {cgf, A, 0, log_delta, 0.3, -HUGE_VAL, 0};
    double share;
    int st;
    for (share = 1; share > 0.02; share *= 0.4) {
        if (hs_bulk_cut(&A->J, share * e, 0, 0)) return HS_NO_SADDLE;
        f.top = hs_bulk_top_tilt(&A->J);
        at->t = A->c > 0 && A->c < f.top ? A->c : 0.1 * f.top;
        if ((st = hs_saddle_find(&f, at)) != HS_LOOSE) return st;
    }
    return HS_NO_SADDLE;
}

/* About eps(delta), to start from: the fixed point of the eps of the law cut there, or `one_loss` if that is more. */
static double about(bulk_line *A, double log_delta)
{
    hs_bulk *J = &A->J;
    double one = one_loss(J, log_delta, 1), e = fmax(one, spread(J) * sqrt(2 * (1 - log_delta)));
    hs_tilt at;
    int i;
    for (i = 0; i < 12; i++) {
        end_branches(J, e);
        if (eps_of_bulk(A, e, log_delta, &at)) at.eps = 0.5 * e;
        else A->c = at.t;
        if (fabs(at.eps - e) < 0.1 * e) return fmax(at.eps, one);
        e = fmax(0.1 * e, fmin(10 * e, at.eps > e ? sqrt(at.eps * e) : at.eps));
    }
    return fmax(e, one);
}

/* The part as cut: its line, or where it is far below delta, about e^log_delta, or has no line, Chernoff's bound. */
static int add_part(bulk_line *A, double eps, double log_delta)
{
    double K, most = A->copies * hs_bulk_top_loss(&A->J) + (A->jump ? A->G.l0 : 0);
    int st = seek_saddle(A, eps, &K);
    if (st) return most * (1 + SLACK) < eps ? HS_OK : st; /* no loss is so large */
    if (!A->jump) lay_tilts(&A->J, A->c);
    if (A->log_est < log_delta - MARGIN - 2) return bound_part(A);
    if (!(st = place_bulk_nodes(A, K, log_delta - A->log_est))) {
        if (!(st = prepare_bulk_line(A))) return HS_OK;
    }
    return A->log_est > log_delta - SMALL ? st : bound_part(A);
}

/* Whether jumps from the places cell_from on may be taken by parity, beside e^log_delta. */
static int far_enough(bulk_line *A, double eps, double log_delta)
{
    static const double NATS_BACK[] = {14, 18, 22, 28, 36};
    const hs_bulk *J = &A->J;
    double best = HUGE_VAL, P, u, Q, rel, chosen[3] = {0, 0, 0};
    int i, r;
    A->far_loss = HUGE_VAL;
    for (r = 0; r < J->pair.branches; r++) {
        hs_bulk_loss at = hs_bulk_loss_at(J, r, A->cell_from[r]);
        if (A->cell_from[r] < HUGE_VAL) A->far_loss = fmin(A->far_loss, (at.l1 - at.l2) * (1 - 1e-12));
    }
    if (!(A->far_loss > eps && A->far_loss < HUGE_VAL)) return 0;
    hs_bulk_masses(J, A->cell_from, &P, &u, &Q, &rel);
    for (i = 0; i < 5; i++) {
        double back;
        A->far_tilt = NATS_BACK[i] / (A->far_loss - eps);
        A->far_log = hs_bulk_fall_upper(J, A->far_tilt, A->far_loss - eps, &A->far_den);
        back = brought_back_upper(A, eps);
        if (!(back < best)) continue;
        best = back;
        chosen[0] = A->far_tilt;
        chosen[1] = A->far_log;
        chosen[2] = A->far_den;
    }
    A->far_tilt = chosen[0];
    A->far_log = chosen[1];
    A->far_den = chosen[2];
    return best + log(J->k) + J->log_unit + log(Q) < log_delta - PAIRS;
}

/* Parts with a cut at the loss l: one jump, in cells up to where jumps weigh MARGIN nats less than delta, about
 * e^log_delta, or are far, and none beyond the cut, whose line is the longest and so the last. */
static int with_jumps(bulk_line *A, double eps, double l, double log_delta)
{
    double width, top, end, K;
    int st;
    start_tilts(A);
    A->cut = l;
    A->sd = 0;
    A->reach = 0.3 * eps;
    if ((st = hs_bulk_cut(&A->J, l, 0, 0))) return st;
    lay_tilts(&A->J, 0);
    if (!seek_saddle(A, eps, &K)) {
        lay_tilts(&A->J, A->c);
        if (two_jumps_upper(&A->J, eps) > fmax(log_delta, A->log_est) + LOST) return HS_TOO_WIDE;
    }
    top = fmax(1.01 * A->J.l0, one_loss(&A->G, log_delta - MARGIN, 0));
    width = fmax(NEAR * A->sd, A->J.l0);
    A->reach = fmin(A->reach, 0.3 * eps);
    A->copies = A->J.k - 1; /* [theory: small.bulk-cells] */
    A->jump = 1;
    memcpy(A->cell_from, A->J.cut, sizeof A->cell_from);
    for (end = A->J.l0; end < top && !st; width *= 2) {
        if ((A->far = far_enough(A, eps, log_delta))) break;
        end = A->parts == PARTS - 1 || end + 1.5 * width > top ? top : end + width;
        A->c = A->sd > 0 ? 1 / A->sd : 0;
        A->cell_end = end;
        if ((st = hs_bulk_cell(&A->G, A->cell_from, end, 0, 0))) break;
        st = add_part(A, eps, log_delta);
        memcpy(A->cell_from, A->G.cut, sizeof A->cell_from);
    }
    A->jump = 0;
    A->top = top;
    A->copies = A->J.k;
    if (st || (st = hs_bulk_cut(&A->J, l, 0, 0)) || (st = add_part(A, eps, log_delta))) return st;
    A->reach = fmin(A->reach, 0.3 * eps);
    return HS_OK;
}

/* The lowest cut, from A->low on, above which two jumps weigh nothing beside e^log_delta, or the highest of those below
 * which none does either; eps where there is none. */
static double jump_cut(bulk_line *A, double eps, double log_delta)
{
    double l = 0, K;
    int i;
    start_tilts(A);
    for (i = A->low; i <= CUT_LAST; i++) {
        A->c = 0;
        if (hs_bulk_cut(&A->J, CUTS[i] * eps, 0, 0)) continue;
        lay_tilts(&A->J, 0);
        if (two_jumps_upper(&A->J, eps) > log_delta - PAIRS) continue;
        if (l > 0 && !seek_saddle(A, eps, &K) && A->log_est > log_delta - MARGIN - 2) break;
        l = CUTS[i] * eps;
        A->low = i > 2 ? i - 2 : 0;
    }
    return l > 0 ? l : eps;
}

/* The line at the cut `chosen` of CUTS, or where there is no room for its nodes, at a lower one, which needs fewer; but
 * pairs, whose nodes cost more, are left to their jumps. Returns the cut, or -1: also where jumps beyond the cut leave
 * nothing of what the line knows. */
static int line_from(bulk_line *A, double eps, int chosen)
{
    double spent = A->values;
    int st;
    start_tilts(A);
    A->room = fmin(spent + ONE_LINE, MOST_VALUES);
    for (; chosen >= 0; chosen--) {
        A->values = spent;
        A->cut = CUTS[chosen] * eps;
        st = place_bulk_line(A, eps, A->cut);
        if (!st && A->log_beyond - A->log_est > log(A->known)) break;
        if (st) continue;
        if (!(st = prepare_bulk_line(A))) return chosen;
        if (st != HS_TOO_MANY_NODES || !one_sided(&A->J.pair)) break;
    }
    return -1;
}

/* A cut below eps and cells of one jump beyond, for delta about e^log_delta: the relative width there, infinite where
 * such lines say nothing. least: a width from which they are taken. */
static double jump_lines(bulk_line *A, double eps, double log_delta, double least)
{
    hs_value v;
    double K;
    int i;
    if (A->J.k < 2) return HUGE_VAL;
    A->room = one_sided(&A->J.pair) ? A->values + JUMPS_ROOM : MOST_VALUES;
    if (!(log_delta < 0)) {
        log_delta = log_worth(&A->J, eps);
        if (!hs_bulk_cut(&A->J, eps, 0, 0) && !seek_saddle(A, eps, &K)) log_delta = fmax(log_delta, A->log_est - 2);
    }
    for (i = 0; i < 3 && !with_jumps(A, eps, jump_cut(A, eps, log_delta), log_delta); i++) {
        double width = HUGE_VAL;
        bulk_line_at(A, eps, &v);
        if (v.lower > 0) width = v.upper / v.lower - 1;
        if (width < least && (i || v.alias_right < ENOUGH * v.value)) return width;
        if (width < 1 && fabs(v.log_scale + log(v.lower) - log_delta) < 1) return width; /* cells would be the same */
        if (v.lower > 0) log_delta = v.log_scale + log(v.lower);
        else if (v.log_scale + log(v.upper) < log_delta - 0.5 * MARGIN) log_delta = v.log_scale + log(v.upper) - 3;
        else break; /* lost; above, delta there is far below what it was taken for */
    }
    A->low = 0;
    return HUGE_VAL;
}

/* The lowest of CUTS beyond which jumps weigh nothing, or weigh least, from A->best on; -1 where there is none. */
static int best_cut_of(bulk_line *A, double eps)
{
    double least = HUGE_VAL, K;
    int i = A->best, chosen = -1, went = 0;
    start_tilts(A);
    while (i >= 3 && i <= CUT_LAST) {
        int step = -1;
        if (!cut_for(A, eps, CUTS[i] * eps, &K)) {
            double over = A->log_beyond - A->log_est;
            if (over < least) {
                least = over;
                chosen = i;
            }
            if (over < -MARGIN) break;
            step = 1;
        }
        if (went && step != went) break;
        went = step;
        i += step;
    }
    if (chosen >= 0) A->best = chosen;
    return chosen;
}

/* Lines for eps: with jumps apart; where these are not narrow, one at the lowest cut beyond which jumps weigh nothing;
 * the narrower of the two. log_delta: what delta should be near, or NAN. */
static int best_line(void *made, double eps, double log_delta)
{
    bulk_line *A = (bulk_line *)made;
    double width = HUGE_VAL, jumps;
    int chosen, unknown = !(log_delta < 0);
    hs_value v;
    end_branches(&A->J, eps);
    if ((jumps = jump_lines(A, eps, log_delta, HUGE_VAL)) < JUMPS_ENOUGH) return HS_OK;
    chosen = line_from(A, eps, best_cut_of(A, eps));
    if (chosen >= 0) {
        bulk_line_at(A, eps, &v);
        if (v.lower > 0) width = v.upper / v.lower - 1;
        if (A->J.k < 2 || width < fmin(ENOUGH, jumps)) return HS_OK;
        if (unknown) log_delta = v.value > 0 ? v.log_scale + log(v.value) : A->log_est - NATS;
    }
    if (jumps < width || unknown) {
        if (jump_lines(A, eps, log_delta, width) < width) return HS_OK;
        if (chosen >= 0) chosen = line_from(A, eps, chosen);
    }
    return chosen < 0 ? HS_TOO_WIDE : HS_OK;
}

int64_t hs_bulk_line_work(void)
{
    int64_t own = 2 * HS_BULK_WORK + HS_GRID_WORK + 4 * CELLS + 6 * (HS_BULK_NODES + 1), counts = hs_counts_work();
    return own > counts ? own : counts;
}

static int open_bulk_line(bulk_line *A, const hs_pair *pair, double k, const hs_rule *rule, double *work,
                          int64_t n_work)
{
    int st;
    memset(A, 0, sizeof(*A));
    if (n_work < hs_bulk_line_work()) return HS_SCRATCH;
    A->grid = work + 2 * HS_BULK_WORK;
    A->mass = A->grid + HS_GRID_WORK;
    A->most = A->mass + CELLS;
    A->steep = A->most + CELLS;
    A->cost = A->steep + CELLS;
    A->nodes = A->cost + CELLS;
    A->room = MOST_VALUES;
    A->best = CUT_ONE;
    A->known = HUGE_VAL;
    if ((st = hs_bulk_open(&A->G, pair, k, rule, work + HS_BULK_WORK))) return st;
    if ((st = hs_bulk_open(&A->J, pair, k, rule, work))) return st;
    start_tilts(A);
    return HS_OK;
}

/* Whether jumps may be so much larger than the bulk that their number tells them apart. */
static int several_jumps(const hs_pair *pair) { return one_sided(pair) && pair->up[0] > COUNTED; }

int hs_bulk_line_delta(const hs_pair *pair, double k, double eps, double known, const hs_rule *rule, double *work,
                       int64_t n_work, hs_point *out)
{
    bulk_line A;
    hs_value v;
    int st;
    if (several_jumps(pair) && !hs_counts_delta(pair->up[0], pair->q[0], k, eps, rule, work, n_work, out)) return HS_OK;
    if ((st = open_bulk_line(&A, pair, k, rule, work, n_work))) return st;
    if (!(eps > 0 && eps < 1e4)) return HS_OUT_OF_RANGE;
    A.known = known;
    if ((st = best_line(&A, eps, NAN))) return st;
    bulk_line_at(&A, eps, &v);
    if (!(v.lower > 0 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    v.value = fmin(fmax(v.value, v.lower), v.upper); /* lost in what one line is off by */
    hs_value_point(&v, A.line.F.N + 1, out);
    return HS_OK;
}

/* Cuts over eps of which the bulk and the jumps beyond are bounded; the first serves nearly always. */
static const double UPPER_CUTS[] = {1.5, 0.7, 4};

/* Chernoff's bound of the bulk, and what runs with a loss beyond the cut add [theory: line.chernoff,
 * small.bulk-beyond]. */
int hs_bulk_upper(const hs_pair *pair, double k, double eps, double enough, const hs_rule *rule, double *work,
                  int64_t n_work, double *log_delta)
{
    bulk_line A;
    hs_bulk_tilted T;
    double K, one;
    int i, st = open_bulk_line(&A, pair, k, rule, work, n_work);
    if (st) return st;
    if (!(eps > 0 && eps < 1e4)) return HS_OUT_OF_RANGE;
    end_branches(&A.J, eps);
    *log_delta = HUGE_VAL;
    for (i = 0; i < 3 && *log_delta > enough; i++) {
        if (hs_bulk_cut(&A.J, UPPER_CUTS[i] * eps, 0, 0) || seek_saddle(&A, eps, &K)) continue;
        if (hs_bulk_cut(&A.J, UPPER_CUTS[i] * eps, A.c, 0) || hs_bulk_at(&A.J, A.c, 0, &T)) continue;
        lay_tilts(&A.J, A.c);
        one = k * (T.log_b + T.err) - A.c * eps + hs_payoff(A.c);
        one += SLACK * (1 + k * fabs(T.log_b) + fabs(A.c * eps));
        *log_delta = fmin(*log_delta, hs_log_add(one, log_beyond_cut_upper(&A, eps)));
    }
    return *log_delta < HUGE_VAL ? HS_OK : HS_TOO_WIDE;
}

int hs_bulk_line_eps(const hs_pair *pair, double k, double log_delta, double start, double known, const hs_rule *rule,
                     double *work, int64_t n_work, hs_crossing *out)
{
    bulk_line A;
    hs_placed_curve curve = {best_line, bulk_line_at, &A, &A.reach};
    hs_value v;
    int st;
    if (several_jumps(pair) && !hs_counts_eps(pair->up[0], pair->q[0], k, log_delta, rule, work, n_work, out))
        return HS_OK;
    st = open_bulk_line(&A, pair, k, rule, work, n_work);
    A.known = known;
    if (st) return st;
    if ((st = hs_root_walk(&curve, start > 0 ? start : about(&A, log_delta), log_delta, out, &v))) return st;
    hs_value_point(&v, A.line.F.N + 1, &out->delta);
    return HS_OK;
}
