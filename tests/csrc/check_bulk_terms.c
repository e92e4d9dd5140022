/* check_bulk_terms.c - the error terms of the law below a cut (bulk.c) and of its lines (bulk_line.c), each where it is
 * large: rules of few nodes, panels that begin late, periods and numbers of nodes as given here.
 *
 * References: integrals by panels a twentieth wide; the same line as planned, whose own budget is the `floor` of
 * terms.h. What bounds the truncation bounds the sum of moduli beyond the last node, so that sum is its actual error.
 */
#include "law/bulk.h"
static int given_cut(hs_bulk *J, double l, double a, double y);
static int given_cell(hs_bulk *J, double x, double end, double a, double y);
#define hs_bulk_line_work own_bulk_line_work
#define hs_bulk_line_delta own_bulk_line_delta
#define hs_bulk_line_eps own_bulk_line_eps
#define hs_bulk_cut given_cut /* with a rule of `few` nodes and panels for small frequencies */
#define hs_bulk_cell given_cell
#define hs_nodes_freeze given_freeze
#include "line/sum.h"
#include "line/bulk_line.c"
#include "terms.h"
#undef hs_bulk_cut
#undef hs_bulk_cell
#undef hs_nodes_freeze
int hs_bulk_cut(hs_bulk *J, double l, double a, double y);
int hs_bulk_cell(hs_bulk *J, double x, double end, double a, double y);
void hs_nodes_freeze(hs_nodes *F);

static double *work, x20[20], w20[20], x_few[20], w_few[20], turned_node, turned_round;
static int few_nodes;

static void few_of(hs_bulk *J)
{
    if (!few_nodes) return;
    J->per = few_nodes;
    J->node = x_few;
    J->weight = w_few;
}

static int given_cut(hs_bulk *J, double l, double a, double y)
{
    few_of(J);
    return hs_bulk_cut(J, l, a, few_nodes ? 0 : y);
}

static int given_cell(hs_bulk *J, double x, double end, double a, double y)
{
    few_of(J);
    return hs_bulk_cell(J, x, end, a, few_nodes ? 0 : y);
}

/* Errors of the nodes' logarithms as large as claimed, turned so that all add. */
void given_freeze(hs_nodes *F)
{
    double d = turned_node + turned_round;
    int64_t n;
    for (n = 0; d > 0 && n <= F->N; n++) {
        double y = (double)n * F->dy, turn = F->im[n] - F->eps * y - atan2(y, F->c) - atan2(y, 1 + F->c);
        F->re[n] += d * cos(turn);
        F->im[n] -= d * sin(turn);
        ((double *)F->node)[n] += turned_node;
        ((double *)F->round)[n] += turned_round;
    }
    hs_nodes_freeze(F);
}

static double loss_at(const hs_bulk *J, double x) { return log1p(J->q * expm1(J->m * x - 0.5 * J->m * J->m)); }

/* The integral of w (1+U)^{a+iy} L^n from `from` to `end`. */
static void integral(const hs_bulk *J, double from, double end, double a, double y, int n, double *re, double *im)
{
    long i, panels = (long)ceil((end - from) / 0.05);
    double half = 0.5 * (end - from) / (double)panels;
    long double sum = 0, other = 0;
    int j;
    for (i = 0; i < panels; i++)
        for (j = 0; j < 20; j++) {
            double x = from + half * (double)(2 * i + 1) + half * x20[j], L = loss_at(J, x);
            double w = half * w20[j] * exp(a * L - 0.5 * x * x - HS_LOG_SQRT_2PI) * (n ? pow(L, n) : 1);
            sum += w * cos(y * L);
            other += w * sin(y * L);
        }
    *re = (double)sum;
    *im = (double)other;
}

static int any_bulk(hs_bulk *J, int add)
{
    hs_rule rule = {20, x20, w20};
    J->add = add;
    return hs_bulk_open(J, log_between(0.1, 4), log_between(1e-4, 0.6), floor(log_between(1, 1e4)), &rule, work);
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
    double a, y, re, im, sr = 0, si = 0, size = 0;
    double end;
    const double *c;
    int64_t j;
    int add = !cell && uniform() < 0.3, st = any_bulk(&J, add);
    if (st) return;
    a = add ? -between(0.1, 3) : 1 + between(0, 3);
    y = log_between(0.1, 30) / fmin(1, J.m);
    if (!cell && uniform() < 0.6) J.left = between(0.5, 7);
    any_few(uniform() < 0.3 ? 10 : 2);
    few_of(&J);
    if (cell) {
        end = between(0, 4);
        st = hs_bulk_cell(&J, end, end + log_between(0.2, 3), a, 0);
    } else st = hs_bulk_cut(&J, log_between(0.1, 3) * J.m, a, 0);
    few_nodes = 0;
    if (st) return;
    end = add ? J.x0 : fmin(J.x0, 40);
    integral(&J, cell ? -J.left : -40, end, a, y, 0, &re, &im);
    for (c = J.columns, j = 0; j < J.panels * J.per; j++, c += HS_BULK_COLUMNS) {
        double w = c[0] * exp(a * c[2]);
        sr += w * cos(y * c[2]);
        si += w * sin(y * c[2]);
        size += w;
    }
    term(cell ? "bulk-cell" : "bulk-phase", hypot(sr - re, si - im), hs_bulk_phase_upper(&J, a, y), 1e-12 * size);
    if (cell) {
        integral(&J, -J.left, end, a, 0, 0, &re, &im);
        size = jump_at(&J, a - 1, &y);
        term("bulk-jump", fabs(size - log(re)), y, 1e-13 * (1 + fabs(size)));
    }
    if (cell || J.left > 6) return;
    integral(&J, -40, -J.left, a, 0, 0, &re, &im);
    term("bulk-left", re, hs_bulk_left_upper(&J, a), 1e-13 * re);
}

/* B and its moments at a tilt. */
static void tilted(void)
{
    static const double small[] = {0, 0.05, 0.3, 1, 3};
    hs_bulk J;
    hs_bulk_tilted T;
    double a, t, re, im, b;
    int n, st, add = uniform() < 0.3;
    if (any_bulk(&J, add)) return;
    t = small[(int)(uniform() * 5)] * between(0.5, 1.5);
    if (uniform() < 0.3) J.left = between(2.5, 7);
    any_few(uniform() < 0.5 ? 8 : 2);
    few_of(&J);
    st = hs_bulk_cut(&J, log_between(0.05, 3) * J.m, 0, 0) || hs_bulk_at(&J, t, add ? 0 : 4, &T);
    few_nodes = 0;
    if (st) return;
    a = hs_bulk_exponent(&J, t);
    integral(&J, -40, J.x0, a, 0, 0, &b, &im);
    term("bulk-b", fabs(T.log_b - log(b)), T.err, 2e-13);
    if (add) return;
    integral(&J, -40, J.x0, a, 0, 1, &re, &im);
    term("bulk-mean", fabs(T.mean - re / b) / T.size[1], T.mean_err / T.size[1], 1e-12);
    for (n = 2; n <= 4; n++) {
        integral(&J, -40, J.x0, a, 0, n, &re, &im);
        term("bulk-moments", fabs(T.moment[n] - re / b) / T.size[n], T.wrong, 1e-12);
    }
}

static double own(const hs_value *v) { return v->inner + v->rounding + v->truncation + v->alias_left; }
static double off(const hs_value *S, const hs_value *F)
{ return fabs(S->value - F->value * exp(F->log_scale - S->log_scale)); }

/* A line as planned for any run, below a cut. */
static int any_line(bulk_line *A, double *l, hs_value *F)
{
    double m = log_between(0.05, 3), q = log_between(1e-4, 0.5), k = floor(log_between(2, 300));
    hs_run run = {.b = 1, .add = uniform() < 0.3, .m = &m, .q = &q, .k = &k};
    hs_rule rule = {20, x20, w20};
    double eps, log_delta = -log_between(0.3, 14);
    if (open_bulk_line(A, &run, &rule, work, hs_bulk_line_work())) return 0;
    eps = about(A, log_delta);
    if (!(eps > 0 && eps < 1e3)) return 0;
    begin_panels(&A->J, eps);
    start_tilts(A);
    *l = log_between(0.3, 3) * eps;
    if (place_bulk_line(A, eps, *l) || prepare_bulk_line(A, *l)) return 0;
    bulk_line_at(A, eps, F);
    return F->value > 0 && own(F) < 1e-6 * F->value;
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
    Y = (double)A->N * A->dy;
    A->P *= between(0.2, 0.8);
    A->dy = 2 * HS_PI / A->P;
    A->N = (int64_t)ceil(Y / A->dy) + 1;
    A->s_right = best_tilt(right_exponent, A, c * 1.0001, fmin(0.99 * top_tilt(&A->J), 20 * c), A->eps + A->P);
    A->s_left = best_tilt(right_exponent, A, 0, c * 0.999, A->eps - A->P);
    start_tilts(A);
    if (prepare_bulk_line(A, l)) return;
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
    N = A->N;
    size = room(N + 1);
    for (n = 0; n <= N; n++) size[n] = A->dy / (2 * HS_PI) * hypot(A->F.re[n], A->F.im[n]);
    fall = between(0.1, 5);
    for (n = 1; n < N; n++) {
        double y = (double)n * A->dy;
        if (log(size[n] * HS_PI / A->dy * hypot(A->c, y) * hypot(1 + A->c, y)) < -fall) break;
    }
    A->N = n;
    start_tilts(A);
    if (A->N > 1 && !prepare_bulk_line(A, l)) {
        double Y = (double)A->N * A->dy;
        bulk_line_at(A, A->eps, &S);
        for (n = A->N; n <= N; n++) {
            double y = (double)n * A->dy;
            if (n > A->N) sum += size[n];
            most = fmax(most, size[n] * HS_PI / A->dy * hypot(A->c, y) * hypot(1 + A->c, y));
        }
        term("bulk-fall", most, exp(-bulk_decay_lower(A, Y)), 1e-12);
        sum *= exp(A->K[0] - A->c * A->eps - S.log_scale);
        term("bulk-truncation", sum, S.truncation, 1e-12 * F.value);
        ends(&S);
    }
    free(size);
}

/* Panels of few nodes, or that begin late. */
static void inner(bulk_line *A)
{
    hs_value F, S;
    double l, re, im, tilt[3];
    int i, st;
    if (!any_line(A, &l, &F)) return;
    tilt[0] = A->c;
    tilt[1] = A->s_right;
    tilt[2] = A->s_left;
    if (uniform() < 0.6) A->J.left = between(2, 7);
    any_few(uniform() < 0.5 ? 10 : 2);
    start_tilts(A);
    st = prepare_bulk_line(A, l);
    few_nodes = 0;
    if (st) return;
    for (i = 0; i < 3; i++) {
        integral(&A->J, -40, A->J.x0, hs_bulk_exponent(&A->J, tilt[i]), 0, 0, &re, &im);
        term("bulk-k", fabs(A->K[i] - A->J.k * log(re)), A->err[i], A->J.k * 2e-13);
    }
    bulk_line_at(A, A->eps, &S);
    term("bulk-inner", off(&S, &F), S.inner + S.rounding, own(&F));
    ends(&S);
}

/* K of one jump and of a bulk of all other steps, by panels of few nodes. */
static void jump(bulk_line *A)
{
    hs_value F;
    double l, b, g, im, tilt[3];
    int i, st;
    if (!any_line(A, &l, &F) || A->J.add) return;
    any_few(3);
    st = with_jumps(A, A->eps, F.log_scale + log(F.value));
    few_nodes = 0;
    if (st || A->parts < 2) return;
    tilt[0] = A->c;
    tilt[1] = A->s_right;
    tilt[2] = A->s_left;
    for (i = 0; i < 3; i++) {
        integral(&A->J, -40, A->J.x0, 1 + tilt[i], 0, 0, &b, &im);
        integral(&A->J, -A->G.left, A->G.x0, 1 + tilt[i], 0, 0, &g, &im);
        term("bulk-jump-k", fabs(A->K[i] - (A->J.k - 1) * log(b) - log(A->J.k) - log(g)), A->err[i],
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
    st = prepare_bulk_line(A, l);
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
    hs_value F, S;
    double l, width;
    if (!any_line(A, &l, &F) || best_line(A, A->eps)) return;
    bulk_line_at(A, A->eps, &F);
    if (!(F.lower > 0)) return;
    width = F.upper - F.lower;
    if (A->parts > 1) ends(&F);
    start_tilts(A);
    l = between(0.2, 1) * A->eps;
    if (A->J.add || place_bulk_line(A, A->eps, l) || prepare_bulk_line(A, l)) return;
    bulk_line_at(A, A->eps, &S);
    width *= exp(F.log_scale - S.log_scale);
    term("bulk-beyond", fmax(0, F.value * exp(F.log_scale - S.log_scale) - S.value), S.alias_right, width + own(&S));
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
        alias(A);
        truncation(A);
        inner(A);
        jump(A);
        injected(A, i % 3);
        beyond_cut(A);
        beyond_cut(A);
    }
    free(work);
    free(A);
    median("bulk-phase", 60, 40, 4);
    median("bulk-cell", 10, 10000, 150);
    median("bulk-jump", 10, 10000, 150);
    median("bulk-left", 40, 1.5, 1.1);
    median("bulk-b", 8, 100000, 60);
    median("bulk-mean", 8, 200, 30);
    median("bulk-moments", 40, 500, 8);
    median("bulk-alias", 80, 2, 1.1);
    median("bulk-fall", 80, 5, 1.3);
    median("bulk-truncation", 60, 150, 40);
    median("bulk-k", 100, 500, 30);
    median("bulk-jump-k", 20, 10000, 600);
    median("bulk-inner", 30, 5000, 120);
    median("bulk-inner-nodes", 30, 1.1, 1.001);
    median("bulk-rounding-nodes", 30, 1.1, 1.001);
    median("bulk-rounding-k", 30, 1.1, 1.001);
    median("bulk-beyond", 8, 600, 40);
    median("bulk-end-lower", 200, 1.01, 1.001);
    median("bulk-end-upper", 150, 1.01, 1.001);
    return terms_end();
}
