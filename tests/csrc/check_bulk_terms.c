/* check_bulk_terms.c - the error terms of the law below a cut (bulk.c) and of its lines (bulk_line.c), each where it is
 * large: rules of few nodes, panels that begin late, periods and numbers of nodes as given here.
 *
 * References: integrals by panels a twentieth wide; the same line as planned, whose own budget is the `floor` of
 * terms.h. What bounds the truncation bounds the sum of moduli beyond the last node, so that sum is its actual error.
 */
#include "given_bulk.h"

static double turned_mass;

/* Masses off by as much as claimed, each to the side that makes more of one jump. */
static void given_masses(const hs_bulk *J, const double *x, double *p, double *u, double *den, double *rel)
{
    hs_bulk_masses(J, x, p, u, den, rel);
    *p *= 1 + turned_mass;
    *u *= 1 + turned_mass;
    *den *= 1 - turned_mass;
    *rel += turned_mass;
}

#define hs_bulk_line_work own_bulk_line_work
#define hs_bulk_line_delta own_bulk_line_delta
#define hs_bulk_line_eps own_bulk_line_eps
#define hs_bulk_upper own_bulk_upper
#define hs_bulk_masses given_masses
#include "line/bulk_line.c"
#include "terms.h"
#undef hs_bulk_cut
#undef hs_bulk_cell
#undef hs_nodes_freeze
#undef hs_bulk_masses
#include "own_bulk.h"
#include <complex.h>
#undef I

/* The integral of w e^{E + iyL} L^n over all branches, r from from[r] to end[r]. */
static void integral(const hs_bulk *J, const double *from, const double *end, double t, double y, int n, double *re,
                     double *im)
{
    long double sum = 0, other = 0;
    int j, r;
    for (r = 0; r < J->pair.branches; r++) {
        double up = J->pair.up[r], down = J->pair.down[r], q = J->pair.q[r];
        long i, panels = (long)ceil((end[r] - from[r]) / 0.05);
        double half = 0.5 * (end[r] - from[r]) / (double)panels;
        for (i = 0; i < panels; i++)
            for (j = 0; j < 20; j++) {
                double x = from[r] + half * (double)(2 * i + 1) + half * x20[j], l1, L, w;
                l1 = log1p(q * expm1(up * x - 0.5 * up * up));
                L = l1 - log1p(q * expm1(-down * x - 0.5 * down * down));
                w = half * w20[j] * exp(l1 + t * L - 0.5 * x * x - HS_LOG_SQRT_2PI) * (n ? pow(L, n) : 1);
                sum += J->pair.w[r] * w * cos(y * L);
                other += J->pair.w[r] * w * sin(y * L);
            }
    }
    *re = (double)sum;
    *im = (double)other;
}

/* Where the integral of the whole bulk begins and ends. */
static void whole(const hs_bulk *J, double *from, double *end)
{
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        from[r] = -40;
        end[r] = J->cut[r] < HUGE_VAL ? fmin(J->x0[r], 45) : 40;
    }
}

/* A plain step of either direction, a two-sided one, or two branches. */
static hs_pair any_pair(int plain)
{
    hs_pair pair = {.branches = 1, .w = {1}};
    double first = between(0.05, 0.95), m = log_between(0.1, 3);
    pair.q[0] = log_between(1e-4, 0.6);
    if (plain || uniform() < 0.5) {
        (uniform() < 0.7 || plain ? pair.up : pair.down)[0] = m;
    } else {
        pair.up[0] = m;
        pair.down[0] = uniform() < 0.5 ? m : 2 * m;
    }
    if (!plain && uniform() < 0.4) {
        pair.branches = 2;
        pair.w[0] = first;
        pair.w[1] = 1 - first;
        pair.q[1] = pair.q[0] * between(0.3, 1);
        pair.up[1] = pair.up[0] > 0 ? 2 * m : uniform() < 0.5 ? m : 0;
        pair.down[1] = uniform() < 0.5 || pair.up[1] == 0 ? m : 0;
    }
    return pair;
}

static int any_bulk(hs_bulk *J, int plain)
{
    hs_rule rule = {20, x20, w20};
    hs_pair pair = any_pair(plain);
    return hs_bulk_open(J, &pair, floor(log_between(1, 1e4)), &rule, work);
}

static void any_few(int least)
{
    few_nodes = least + (int)(uniform() * 10);
    gauss_legendre(few_nodes, x_few, w_few);
}

/* The transform over panels of few nodes that begin late, and what lies left of them. */
static void phase(int cell)
{
    hs_bulk J;
    double t, y, re, im;
    double sr = 0, si = 0, size = 0;
    double from[HS_BRANCHES], end[HS_BRANCHES], least;
    const double *c;
    int64_t j;
    int r, st = any_bulk(&J, 0);
    if (st) return;
    t = between(0, 3);
    y = log_between(0.1, 30) / fmin(1, J.wide);
    if (!cell && uniform() < 0.6) J.left = between(0.5, 7);
    any_few(uniform() < 0.3 ? 10 : 2);
    few_of(&J);
    if (cell) {
        for (least = 0, r = 0; r < J.pair.branches; r++) {
            hs_bulk_loss at = hs_bulk_loss_at(&J, r, from[r] = between(0, 4));
            least = fmax(least, at.l1 - at.l2);
        }
        st = hs_bulk_cell(&J, from, least * between(1, 2), t, 0);
    } else st = hs_bulk_cut(&J, log_between(0.1, 3) * J.wide, t, 0);
    few_nodes = 0;
    if (st) return;
    if (!cell) whole(&J, from, end);
    else memcpy(end, J.x0, sizeof end);
    integral(&J, from, end, t, y, 0, &re, &im);
    for (c = J.columns, j = 0; j < J.panels * J.per; j++, c += HS_BULK_COLUMNS) {
        double w = c[0] * exp(c[1] + t * c[2]);
        sr += w * cos(y * c[2]);
        si += w * sin(y * c[2]);
        size += w;
    }
    term(cell ? "bulk-cell" : "bulk-phase", hypot(sr - re, si - im), exp(hs_bulk_log_phase_upper(&J, t, y, -HUGE_VAL)),
         1e-12 * size);
    if (cell) {
        integral(&J, from, end, t, 0, 0, &re, &im);
        size = hs_bulk_cell_at(&J, t, &y);
        term("bulk-jump", fabs(size - log(re)), y, 1e-13 * (1 + fabs(size)));
    }
    if (cell || J.left > 6) return;
    for (size = 0, r = 0; r < J.pair.branches; r++) {
        end[r] = -J.left;
        if (J.cut[r] == HUGE_VAL) return;
    }
    integral(&J, from, end, t, 0, 0, &re, &im);
    term("bulk-left", re, hs_bulk_outside_upper(&J, t), 1e-13 * re);
}

/* The transform under den of losses that bring a jump back, from about the loss -least on. */
static void back(void)
{
    hs_bulk J;
    double from[HS_BRANCHES], end[HS_BRANCHES], s, re;
    double im, least, den, bound;
    int r;
    if (any_bulk(&J, 0) || hs_bulk_cut(&J, log_between(0.1, 3) * J.wide, 0, 0)) return;
    least = log_between(0.01, 1);
    s = between(1, 8) / least;
    bound = hs_bulk_fall_upper(&J, s, least, &den);
    whole(&J, from, end);
    for (r = 0; r < J.pair.branches; r++) {
        int64_t p;
        for (from[r] = J.x0[r], p = J.first[r + 1] - 1; p >= J.first[r]; p--) {
            hs_bulk_loss at = hs_bulk_loss_at(&J, r, J.mid[p] - J.half[p]);
            if (at.l1 - at.l2 > -least) from[r] = J.mid[p] - J.half[p];
        }
        end[r] = J.x0[r];
    }
    integral(&J, from, end, -1 - s, 0, 0, &re, &im);
    term("bulk-back", re, exp(bound), 1e-12 * re);
}

/* B and its moments at a tilt. */
static void tilted(void)
{
    static const double small[] = {0, 0.05, 0.3, 1, 3};
    hs_bulk J;
    hs_bulk_tilted T;
    double from[HS_BRANCHES], end[HS_BRANCHES], t, re;
    double im, b, upper;
    int n, st, plain = uniform() < 0.65;
    if (any_bulk(&J, plain)) return;
    t = small[(int)(uniform() * 5)] * between(0.5, 1.5);
    if (uniform() < 0.3) J.left = between(2.5, 7);
    any_few(uniform() < 0.5 ? 8 : 2);
    few_of(&J);
    st = hs_bulk_cut(&J, log_between(0.05, 3) * J.wide, 0, 0) || hs_bulk_at(&J, t, plain ? 4 : 0, &T);
    few_nodes = 0;
    if (st) return;
    whole(&J, from, end);
    integral(&J, from, end, t, 0, 0, &b, &im);
    term("bulk-b", fabs(T.log_b - log(b)), T.err, 2e-13);
    upper = hs_bulk_log_upper(&J, t);
    term("bulk-b-upper", fmax(0, log(b) - upper), 0, 2e-13);
    term("bulk-b-upper-near", fabs(upper - T.log_b), 4 * T.err + 1e-10 * (1 + fabs(T.log_b)), 1e-300);
    if (!plain) return;
    integral(&J, from, end, t, 0, 1, &re, &im);
    term("bulk-mean", fabs(T.mean - re / b) / T.size[1], T.mean_err / T.size[1], 1e-12);
    for (n = 2; n <= 4; n++) {
        integral(&J, from, end, t, 0, n, &re, &im);
        term("bulk-moments", fabs(T.moment[n] - re / b) / T.size[n], T.wrong, 1e-12);
    }
}

/* Logs of both factors at nodes, by vectors and one by one, and the place of a loss, against long doubles. */
static void columns(void)
{
    hs_bulk J;
    int i, r;
    if (any_bulk(&J, 0) || hs_bulk_cut(&J, log_between(0.05, 3) * J.wide, 0, 0)) return;
    for (i = 0; i < 12; i++) {
        double least, l1, l2;
        double s1, s2, near;
        r = (int)(uniform() * J.pair.branches);
        const double *c =
            J.columns +
            (J.first[r] * 20 + (int64_t)(uniform() * 20 * (double)(J.first[r + 1] - J.first[r]))) * HS_BULK_COLUMNS;
        long double q = J.pair.q[r], up = J.pair.up[r], d = J.pair.down[r], x = c[7];
        long double a = log1pl(q * expm1l(up * x - up * up / 2)), b = log1pl(q * expm1l(-d * x - d * d / 2));
        hs_bulk_loss at;
        term("bulk-log", fabs((double)(a - (long double)c[1])), c[5] + 2 * HS_U * fabs(c[1]), 1e-18 * fabs(c[1]));
        least = 1e-13 * (double)(q + fabsl(a) + fabsl(b));
        hs_bulk_losses(&J, r, c[7], 0, 1, &l1, &l2, &s1, &s2);
        near = fmax(fabs((double)(a - l1)), fabs((double)(b - l2)));
        at = hs_bulk_loss_at(&J, r, hs_bulk_place(&J, r, c[2]));
        if (up > 0 && d > 0 && x > -9) near += fabs(at.l1 - at.l2 - c[2]); /* between the ends that are sought */
        at = hs_bulk_loss_at(&J, r, c[7]);
        if (near < least && fabs(at.s1 - s1) < 1e-12 && fabs(at.s2 - s2) < 1e-12) continue;
        printf("MISS places %g: %g %g\n", c[7], near, least);
        missed++;
    }
}

/* What is bounded of both factors on the ellipse about a panel, against its largest value on the rim
 * [theory: small.bulk]. */
static void rim(void)
{
    hs_bulk J;
    ellipse e;
    double x = between(-8, 8), half = log_between(0.01, 0.5), rho = ELLIPSE[(int)(uniform() * ELLIPSES)];
    double t = uniform() < 0.3 ? 0 : log_between(0.01, 5), power, L, left, first, most[4] = {0}, beside = 1e-9;
    int i, r;
    if (any_bulk(&J, 0)) return;
    r = (int)(uniform() * J.pair.branches);
    if (!ellipse_of(&J, r, x, half, rho, &e)) return;
    left = bulk_remainder_upper(t, &e, &power);
    L = log_side_upper(&e.up, J.pair.q[r]) + log_side_upper(&e.down, J.pair.q[r]);
    first = first_remainder_upper(t, &e, L, power);
    for (i = 0; i < 400; i++) {
        double turn = HS_PI * i / 200, up = J.pair.up[r], d = J.pair.down[r], q = J.pair.q[r];
        double complex z = x + 0.5 * half * (rho * cexp(_Complex_I * turn) + cexp(-_Complex_I * turn) / rho);
        double complex U1 = q * (cexp(up * z - 0.5 * up * up) - 1), U2 = q * (cexp(-d * z - 0.5 * d * d) - 1);
        double complex l1 = clog(1 + U1), l2 = clog(1 + U2), E = cexp(l1 + t * (l1 - l2));
        if (!(cabs(E) < 1e200)) return;
        if (fabs(cimag(l1)) + fabs(cimag(l2)) > 3) return; /* another branch of the logarithm */
        most[0] = fmax(most[0], cabs(E - 1 - (1 + t) * U1 + t * U2));
        most[1] = fmax(most[1], cabs(E * (l1 - l2) - U1 + U2));
        most[2] = fmax(most[2], cabs(l1 - l2));
        most[3] = fmax(most[3], cabs(E));
        beside = fmax(beside, 1 + cabs(E) + cabs(U1) + cabs(U2));
    }
    if (most[0] > 1e-6 * beside) log_term("bulk-rim", log(most[0]), log(left));
    if (most[1] > 1e-6 * beside) log_term("bulk-rim-first", log(most[1]), log(first));
    log_term("bulk-rim-log", log(most[2]), log(L));
    log_term("bulk-rim-power", log(most[3]), log(power));
}

static double own(const hs_value *v) { return v->inner + v->rounding + v->truncation + v->alias_left; }
static double off(const hs_value *S, const hs_value *F)
{ return fabs(S->value - F->value * exp(F->log_scale - S->log_scale)); }

/* A line as planned for any run, below a cut. */
static int one_line(bulk_line *A, double *l, hs_value *F)
{
    hs_pair pair = any_pair(0);
    hs_rule rule = {20, x20, w20};
    double eps, log_delta = -log_between(0.3, 14);
    if (open_bulk_line(A, &pair, floor(log_between(2, 300)), &rule, work, hs_bulk_line_work())) return 0;
    eps = about(A, log_delta);
    if (!(eps > 0 && eps < 1e3)) return 0;
    end_branches(&A->J, eps);
    start_tilts(A);
    A->cut = *l = log_between(0.3, 3) * eps;
    if (place_bulk_line(A, eps, *l) || prepare_bulk_line(A)) return 0;
    bulk_line_at(A, eps, F);
    return F->value > 0 && own(F) < 1e-6 * F->value;
}

static int any_line(bulk_line *A, double *l, hs_value *F)
{
    int i;
    for (i = 0; i < 3; i++)
        if (one_line(A, l, F)) return 1;
    return 0;
}

/* Errors of U as large as their claims, all of one sign: of B, the mean and the moments of one branch. */
static void moved(void)
{
    double d = log_between(1e-9, 1e-5), t = log_between(0.05, 20), off = 0;
    double at;
    hs_pair pair = {.branches = 1, .w = {1}, .q = {log_between(1e-4, 0.5)}, .up = {log_between(0.1, 3)}};
    hs_bulk J = {0};
    hs_bulk_tilted T, S;
    const hs_rule rule = {20, x20, w20};
    int64_t j;
    int n;
    few_nodes = 0;
    if (hs_bulk_open(&J, &pair, 100, &rule, work)) return;
    if (hs_bulk_cut(&J, log_between(0.01, 3), 0, 0) || hs_bulk_at(&J, t, HS_BULK_ORDER, &T)) return;
    for (j = 0; j < J.panels * J.per; j++) {
        double *c = J.columns + j * HS_BULK_COLUMNS;
        at = expm1(c[1]) * (1 + d);
        c[5] += fabs(log1p(at) - c[1]);
        c[1] = c[2] = log1p(at);
        c[3] = c[4] = (double)(log1pl((long double)at) - (long double)at);
    }
    if (hs_bulk_at(&J, t, HS_BULK_ORDER, &S)) return;
    term("bulk-moved-b", fabs(S.log_b - T.log_b), S.err, 4 * T.err);
    term("bulk-moved-mean", fabs(S.mean - T.mean) / T.size[1], S.mean_err / T.size[1], 4 * T.mean_err / T.size[1]);
    for (n = 2; n <= HS_BULK_ORDER; n++) off = fmax(off, fabs(S.moment[n] - T.moment[n]) / S.size[n]);
    term("bulk-moved-moments", off, S.wrong, 4 * T.wrong);
}

static void ends(const hs_value *v)
{
    double size = 1e-14 * (fabs(v->value) + own(v) + v->alias_right);
    if (v->lower > 0) term("bulk-end-lower", own(v), v->value - v->lower, size);
    term("bulk-end-upper", own(v) - v->alias_left + v->alias_right, v->upper - v->value, size);
}

static double right_exponent(const void *run, double s, double x)
{ return cgf((void *)run, s).K - s * x + hs_payoff(s); }

/* A period too short. */
static void alias(bulk_line *A)
{
    hs_value F, S;
    double l, Y, c = A->c;
    if (!any_line(A, &l, &F)) return;
    c = A->c;
    Y = (double)A->line.F.N * A->line.dy;
    A->line.P *= between(0.2, 0.8);
    A->line.dy = 2 * HS_PI / A->line.P;
    A->line.F.N = (int64_t)ceil(Y / A->line.dy) + 1;
    A->line.s_right =
        best_tilt(right_exponent, A, c * 1.0001, fmin(0.99 * hs_bulk_top_tilt(&A->J), 20 * c), A->eps + A->line.P);
    A->line.s_left = best_tilt(right_exponent, A, 0, c * 0.999, A->eps - A->line.P);
    start_tilts(A);
    if (prepare_bulk_line(A)) return;
    bulk_line_at(A, A->eps, &S);
    term("bulk-alias", off(&S, &F), S.alias_left, own(&F) + S.inner + S.rounding + S.truncation);
    ends(&S);
}

/* Too few nodes. */
static void truncation(bulk_line *A)
{
    hs_value F, S;
    double l, sum = 0, most = 0, fall;
    double *size;
    int64_t n, N;
    if (!any_line(A, &l, &F)) return;
    N = A->line.F.N;
    size = room(N + 1);
    for (n = 0; n <= N; n++) size[n] = A->line.dy / (2 * HS_PI) * hypot(A->line.F.re[n], A->line.F.im[n]);
    fall = between(0.1, 5);
    for (n = 1; n < N; n++) {
        double y = (double)n * A->line.dy;
        if (log(size[n] * HS_PI / A->line.dy * hypot(A->c, y) * hypot(1 + A->c, y)) < -fall) break;
    }
    A->line.F.N = n;
    start_tilts(A);
    if (A->line.F.N > 1 && !prepare_bulk_line(A)) {
        double Y = (double)A->line.F.N * A->line.dy;
        bulk_line_at(A, A->eps, &S);
        for (n = A->line.F.N; n <= N; n++) {
            double y = (double)n * A->line.dy;
            if (n > A->line.F.N) sum += size[n];
            most = fmax(most, size[n] * HS_PI / A->line.dy * hypot(A->c, y) * hypot(1 + A->c, y));
        }
        term("bulk-fall", most, exp(-bulk_decay_lower(A, Y)), 1e-12);
        sum *= exp(A->line.K[0] - A->c * A->eps - S.log_scale);
        term("bulk-truncation", sum, S.truncation, 1e-12 * F.value);
        ends(&S);
    }
    free(size);
}

/* Panels of few nodes, or that begin late. */
static void inner(bulk_line *A)
{
    hs_value F, S;
    double l, re, im;
    double tilt[3], from[HS_BRANCHES], end[HS_BRANCHES];
    int i, st;
    if (!any_line(A, &l, &F)) return;
    tilt[0] = A->c;
    tilt[1] = A->line.s_right;
    tilt[2] = A->line.s_left;
    if (uniform() < 0.6) A->J.left = between(2, 7);
    any_few(uniform() < 0.5 ? 10 : 2);
    start_tilts(A);
    st = prepare_bulk_line(A);
    few_nodes = 0;
    if (st) return;
    for (i = 0; i < 3; i++) {
        whole(&A->J, from, end);
        integral(&A->J, from, end, tilt[i], 0, 0, &re, &im);
        term("bulk-k", fabs(A->line.K[i] - A->J.k * log(re)), A->line.err[i], A->J.k * 2e-13);
    }
    bulk_line_at(A, A->eps, &S);
    term("bulk-inner", off(&S, &F), S.inner + S.rounding, own(&F));
    ends(&S);
}

/* K of one jump and of a bulk of all other steps, by panels of few nodes. */
static void jump(bulk_line *A)
{
    hs_value F;
    double l, b, g, im;
    double tilt[3], from[HS_BRANCHES], end[HS_BRANCHES], begin[HS_BRANCHES];
    int i, st;
    if (!any_line(A, &l, &F)) return;
    start_tilts(A);
    A->cut = A->eps;
    if (place_bulk_line(A, A->eps, A->cut)) return;
    A->copies = A->J.k - 1;
    A->jump = 1;
    memcpy(begin, A->J.cut, sizeof begin);
    memcpy(A->cell_from, A->J.cut, sizeof begin);
    A->cell_end = A->J.l0 + between(0.3, 3) * A->sd;
    any_few(3);
    st = hs_bulk_cell(&A->G, A->cell_from, A->cell_end, 0, 0) || seek_saddle(A, A->eps, &g) ||
         place_bulk_nodes(A, g, 0) || prepare_bulk_line(A);
    few_nodes = 0;
    A->jump = 0;
    if (st) return;
    tilt[0] = A->c;
    tilt[1] = A->line.s_right;
    tilt[2] = A->line.s_left;
    for (i = 0; i < 3; i++) {
        whole(&A->J, from, end);
        integral(&A->J, from, end, tilt[i], 0, 0, &b, &im);
        integral(&A->J, begin, A->G.x0, tilt[i], 0, 0, &g, &im);
        term("bulk-jump-k", fabs(A->line.K[i] - (A->J.k - 1) * log(b) - log(A->J.k) - log(g)), A->line.err[i],
             1e-13 + A->J.k * 2e-14);
    }
}

/* Errors of K and of the nodes as large as claimed. */
static void injected(bulk_line *A, int what)
{
    static const char *names[] = {"bulk-inner-nodes", "bulk-rounding-nodes", "bulk-rounding-k"};
    hs_value F, S;
    double l, d = log_between(1e-7, 0.3);
    int st;
    if (!any_line(A, &l, &F)) return;
    turned_node = what == 0 ? d : 0;
    turned_round = what == 1 ? d : 0;
    start_tilts(A);
    st = prepare_bulk_line(A);
    turned_node = turned_round = 0;
    if (st) return;
    if (what == 2) {
        A->part[0].K[0] -= d;
        A->part[0].err[0] += d;
    }
    bulk_line_at(A, A->eps, &S);
    term(names[what], off(&S, &F), what ? S.rounding : S.inner, own(&F));
    ends(&S);
}

/* A cut too low, whose jumps above it weigh, and lines of one jump. */
static void beyond_cut(bulk_line *A)
{
    const hs_rule rule = {20, x20, w20};
    hs_value F, S;
    hs_pair pair;
    double l, width, upper;
    if (!any_line(A, &l, &F) || best_line(A, A->eps, NAN)) return;
    bulk_line_at(A, A->eps, &F);
    if (!(F.lower > 0)) return;
    width = F.upper - F.lower;
    if (A->parts > 1) ends(&F);
    start_tilts(A);
    A->cut = between(0.2, 1) * A->eps;
    if (place_bulk_line(A, A->eps, A->cut) || prepare_bulk_line(A)) return;
    bulk_line_at(A, A->eps, &S);
    width *= exp(F.log_scale - S.log_scale);
    term("bulk-beyond", fmax(0, F.value * exp(F.log_scale - S.log_scale) - S.value), S.alias_right, width + own(&S));
    pair = A->J.pair;
    if (own_bulk_upper(&pair, A->J.k, A->eps, -HUGE_VAL, &rule, work, hs_bulk_line_work(), &upper)) return;
    width *= exp(S.log_scale); /* in units of 1, as all that follows */
    term("bulk-upper", F.value * exp(F.log_scale), exp(upper), width);
}

/* One far jump from masses off by as much as claimed [theory: small.bulk-parity]. */
static void far_one(bulk_line *A)
{
    hs_value F, S;
    double loss;
    int r;
    loss = A->eps * between(1.1, 3);
    for (r = 0; r < A->J.pair.branches; r++) A->cell_from[r] = hs_bulk_place(&A->J, r, loss);
    A->far_loss = loss;
    A->far_tilt = A->far_log = A->far_den = 0;
    far_at(A, A->eps, &F);
    if (!(F.value > 1e6 * F.rounding)) return;
    turned_mass = log_between(1e-6, 1e-2);
    far_at(A, A->eps, &S);
    turned_mass = 0;
    term("bulk-far-one", fabs(S.value - F.value) / F.value, S.rounding / F.value, F.rounding / F.value);
}

/* A part without a line: Chernoff's bound holds the rounding of its own exponent [theory: line.chernoff]. */
static void part_apart(const bulk_line *A, double eps)
{
    hs_line_part part = A->part[0];
    long double c = part.c, exact;
    hs_value v;
    part.F.N = -1;
    hs_line_part_at(&part, eps, &v);
    exact = (long double)part.K[0] + part.err[0] - c * eps + c * logl(c) - (1 + c) * log1pl(c);
    term("part-chernoff", fmax(0, (double)expm1l(exact - v.log_scale)), v.upper - 1, 1e-18 * fabs(v.log_scale));
}

/* Chernoff's bound of the only part, which raises the upper end as what is left out of it does. */
static void part_left_out(bulk_line *A, double eps)
{
    hs_value F, S;
    int64_t N = A->part[0].F.N;
    bulk_line_at(A, eps, &F);
    A->part[0].F.N = -1;
    bulk_line_at(A, eps, &S);
    A->part[0].F.N = N;
    log_term("bulk-part", log(F.value) + F.log_scale, log(S.alias_right) + S.log_scale);
    ends(&S);
}

/* Of two steps: the other one brings a far jump back below eps [theory: small.bulk-parity]. */
static void brought_back(bulk_line *A, double eps)
{
    double k = A->J.k, mass = 0, wide = 0.5 * A->J.wide, g;
    int r;
    for (r = 0; r < A->J.pair.branches; r++)
        if (A->J.pair.down[r] == 0) wide = fmin(wide, -log1p(-A->J.pair.q[r]));
    wide *= between(0.05, 0.95);
    for (r = 0; r < A->J.pair.branches; r++) A->cell_from[r] = hs_bulk_place(&A->J, r, eps + wide);
    A->J.k = 2;
    far_enough(A, eps, 0);
    for (r = 0; r < A->J.pair.branches; r++) {
        const hs_pair *pair = &A->J.pair;
        g = fmin(hs_bulk_place(&A->J, r, eps - A->far_loss), A->J.x0[r]);
        mass += pair->w[r] * ((1 - pair->q[r]) * normal_cdf(g) + pair->q[r] * normal_cdf(g + pair->down[r]));
    }
    if (A->far_loss < HUGE_VAL && mass > 1e-250) log_term("bulk-far-back", eps + log(mass), brought_back_upper(A, eps));
    A->J.k = k;
}

/* Of two steps: both jump, by panels over both; and the least loss at a place, in long double. */
static void both_jump(const bulk_line *A, double eps)
{
    hs_bulk J = A->J;
    const hs_pair *pair = &J.pair;
    double sum = 0;
    int i, j, r;
    int s, n = 12;
    J.k = 2;
    for (r = 0; r < pair->branches; r++) {
        double x = between(-6, 8), low = loss_lower(&J, r, x);
        long double up = pair->up[r], down = pair->down[r], q = pair->q[r], loss;
        loss = log1pl(q * expm1l(up * x - 0.5L * up * up)) - log1pl(q * expm1l(-down * x - 0.5L * down * down));
        if (low > 0) log_term("bulk-loss-least", log(low), (double)logl(loss));
        for (s = 0; s < pair->branches; s++)
            for (i = 0; i < 20 * n && pair->up[r] > 0 && pair->up[s] > 0; i++)
                for (j = 0; j < 20 * n; j++) {
                    double y = J.cut[r] + i / 20 + 0.5 * (1 + x20[i % 20]);
                    double z = J.cut[s] + j / 20 + 0.5 * (1 + x20[j % 20]);
                    hs_bulk_loss a = hs_bulk_loss_at(&J, r, y), b = hs_bulk_loss_at(&J, s, z);
                    double L = a.l1 - a.l2 + b.l1 - b.l2;
                    if (L > eps)
                        sum -= 0.25 * pair->w[r] * pair->w[s] * w20[i % 20] * w20[j % 20] * expm1(eps - L) *
                               exp(a.l1 + b.l1 - 0.5 * (y * y + z * z) - 2 * HS_LOG_SQRT_2PI);
                }
    }
    if (sum > 1e-250) log_term("bulk-two", log(sum), two_jumps_upper(&J, eps));
}

int main(int argc, char **argv)
{
    bulk_line *A = malloc(sizeof *A);
    int i;
    terms_begin(argc, argv);
    if (!A) return 2;
    work = room(hs_bulk_line_work());
    gauss_legendre(20, x20, w20);
    for (i = 0; i < cases(240); i++) {
        phase(i % 3 == 2);
        tilted();
        back();
        moved();
        alias(A);
        truncation(A);
        truncation(A);
        truncation(A);
        inner(A);
        inner(A);
        jump(A);
        jump(A);
        injected(A, i % 3);
        beyond_cut(A);
        beyond_cut(A);
    }
    for (i = 0; i < cases(160); i++) {
        hs_value F;
        double l;
        if (!any_line(A, &l, &F)) continue;
        part_apart(A, A->eps);
        far_one(A);
        part_left_out(A, A->eps);
        brought_back(A, A->eps);
        if (i % 4 == 0) both_jump(A, A->eps);
    }
    for (i = 0; i < cases(960); i++) rim();
    for (i = 0; i < cases(240); i++) columns();
    free(work);
    free(A);
    median("bulk-log", 500, 100, 15);
    median("bulk-phase", 60, 40, 4);
    median("bulk-cell", 10, 10000, 150);
    median("bulk-jump", 10, 10000, 150);
    median("bulk-left", 40, 1.5, 1.1);
    median("bulk-back", 30, 1.1, 1.01);
    median("bulk-b", 8, 100000, 60);
    median("bulk-mean", 8, 200, 30);
    median("bulk-moments", 40, 500, 8);
    median("bulk-moved-b", 60, 1.3, 1.21);
    median("bulk-moved-mean", 60, 1.3, 1.21);
    median("bulk-moved-moments", 60, 1.1, 1.01);
    median("bulk-rim", 80, 2, 1.1);
    median("bulk-rim-first", 80, 2, 1.1);
    median("bulk-rim-log", 80, 1.5, 1.1);
    median("bulk-rim-power", 80, 1.1, 1.01);
    median("bulk-alias", 80, 2, 1.1);
    median("bulk-fall", 80, 6, 1.3);
    median("bulk-truncation", 60, 300, 40);
    median("bulk-k", 100, 500, 30);
    median("bulk-jump-k", 20, 10000, 600);
    median("bulk-inner", 30, 5000, 120);
    median("bulk-inner-nodes", 30, 1.1, 1.001);
    median("bulk-rounding-nodes", 30, 1.1, 1.001);
    median("bulk-rounding-k", 30, 1.1, 1.001);
    median("bulk-beyond", 8, 600, 40);
    median("bulk-upper", 8, 100, 40);
    median("bulk-far-one", 8, 8, 4.1);
    median("bulk-part", 60, 20, 4);
    median("bulk-far-back", 40, 3, 1.1);
    median("bulk-two", 5, 100, 4);
    median("bulk-loss-least", 5, 1.001, 1.001);
    median("bulk-end-lower", 200, 1.01, 1.001);
    median("bulk-end-upper", 150, 1.01, 1.001);
    return terms_end();
}
