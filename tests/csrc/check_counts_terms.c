/* check_counts_terms.c - the error terms of several large losses (counts.c), each where it is large: rules of few
 * nodes, periods, nodes and numbers of jumps as given here.
 *
 * References: the same line as planned, whose own budget is the `floor` of terms.h; binomial coefficients by long
 * double. What bounds the truncation bounds the sum of moduli beyond the last node, so that sum is its actual error.
 */
#include "given_bulk.h"
#define hs_counts_work own_counts_work
#define hs_counts_delta own_counts_delta
#define hs_counts_eps own_counts_eps
#include "line/counts.c"
#include "terms.h"

static double own(const hs_value *v) { return v->inner + v->rounding + v->truncation + v->alias_left; }
static double off(const hs_value *S, const hs_value *F)
{ return fabs(S->value - F->value * exp(F->log_scale - S->log_scale)); }

/* A line as planned for any run, one jump on it or apart from it. */
static int one_or_counts(jump_counts *A, int one, double *log_delta, hs_value *F)
{
    const hs_rule rule = {20, x20, w20};
    hs_tilt at;
    int i;
    for (i = 0; i < 12; i++) {
        double m = log_between(0.7, 20), q = log_between(1e-7, 0.7), k = floor(log_between(2, 1e6));
        *log_delta = -log_between(3, 600);
        if (open_counts(A, m, q, k, &rule, work, hs_counts_work())) continue;
        if (about_counts(A, 0, *log_delta, *log_delta - MARGIN, &at) || !(at.eps > 0)) continue;
        if (make_counts(A, at.eps, *log_delta) || A->one != one) continue;
        counts_at(A, A->eps, F);
        if (F->value > 0 && (one || own(F) < 1e-6 * F->value)) return 1;
    }
    return 0;
}

static int any_counts(jump_counts *A, double *log_delta, hs_value *F) { return one_or_counts(A, 0, log_delta, F); }

/* One jump apart from the line: the terms say how far the ends are. */
static void apart(jump_counts *A)
{
    hs_value F, L;
    double log_delta, size;
    if (!one_or_counts(A, 1, &log_delta, &F)) return;
    A->one = 0;
    counts_at(A, A->eps, &L);
    size = 1e-14 * (F.value + F.upper);
    if (L.lower > 0) term("counts-one", F.value - F.lower, own(&F), size);
}

static void ends(const hs_value *v)
{
    double size = 1e-13 * (fabs(v->value) + own(v) + v->alias_right);
    if (v->lower > 0) term("counts-end-lower", own(v), v->value - v->lower, size);
    term("counts-end-upper", own(v) - v->alias_left + v->alias_right, v->upper - v->value, size);
}

static double exponent_of(const void *run, double s, double x)
{ return counts_cgf((void *)run, s).K - s * x + hs_payoff(s); }

/* A period too short. */
static void alias(jump_counts *A)
{
    hs_value F, S;
    double log_delta, Y;
    if (!any_counts(A, &log_delta, &F)) return;
    Y = (double)A->part.F.N * A->part.dy;
    A->part.P *= between(0.05, 0.8);
    A->part.dy = 2 * HS_PI / A->part.P;
    A->part.F.N = (int64_t)ceil(Y / A->part.dy) + 1;
    A->part.s_right =
        best_tilt(exponent_of, A, A->c * 1.0001, fmin(0.99 * hs_bulk_top_tilt(&A->J), 20 * A->c), A->eps + A->part.P);
    A->part.s_left = best_tilt(exponent_of, A, 0, A->c * 0.999, A->eps - A->part.P);
    if (prepare_counts(A, log_delta)) return;
    counts_at(A, A->eps, &S);
    term("counts-alias", off(&S, &F), S.alias_left, own(&F) + S.inner + S.rounding + S.truncation);
    ends(&S);
}

/* Too few nodes. */
static void truncation(jump_counts *A)
{
    hs_value F, S;
    double log_delta, sum = 0, most = 0, fall = between(0.05, 6);
    double *size;
    int64_t n, N;
    if (!any_counts(A, &log_delta, &F)) return;
    N = A->part.F.N;
    size = room(N + 1);
    for (n = 0; n <= N; n++) size[n] = A->part.dy / (2 * HS_PI) * hypot(A->part.F.re[n], A->part.F.im[n]);
    for (n = 1; n < N; n++) {
        double y = (double)n * A->part.dy;
        if (log(size[n] * HS_PI / A->part.dy * hypot(A->c, y) * hypot(1 + A->c, y)) < -fall) break;
    }
    A->part.F.N = n;
    if (n > 1 && !prepare_counts(A, log_delta)) {
        counts_at(A, A->eps, &S);
        for (; n <= N; n++) {
            double y = (double)n * A->part.dy;
            if (n > A->part.F.N) sum += size[n];
            most = fmax(most, size[n] * HS_PI / A->part.dy * hypot(A->c, y) * hypot(1 + A->c, y));
        }
        term("counts-fall", most, exp(counts_decay_upper(A, (double)A->part.F.N * A->part.dy)), 1e-12);
        term("counts-truncation", sum, S.truncation, 1e-12 * F.value);
        ends(&S);
    }
    free(size);
}

/* Panels of few nodes [theory: small.bulk-apart]. */
static void inner(jump_counts *A)
{
    hs_value F, S;
    double log_delta, K, err;
    int st;
    if (!any_counts(A, &log_delta, &F)) return;
    K = A->part.K[0];
    err = A->part.err[0];
    few_nodes = 3 + (int)(uniform() * 12);
    gauss_legendre(few_nodes, x_few, w_few);
    st = prepare_counts(A, log_delta);
    few_nodes = 0;
    if (st) return;
    counts_at(A, A->eps, &S);
    term("counts-k", fabs(A->part.K[0] - K), A->part.err[0], err);
    term("counts-inner", off(&S, &F), S.inner + S.rounding, own(&F));
    ends(&S);
}

/* Errors of K and of the nodes as large as claimed. */
static void injected(jump_counts *A, int what)
{
    static const char *names[] = {"counts-inner-nodes", "counts-rounding-nodes", "counts-rounding-k"};
    hs_value F, S;
    double log_delta, d = log_between(1e-7, 0.3);
    int st;
    if (!any_counts(A, &log_delta, &F)) return;
    turned_node = what == 0 ? d : 0;
    turned_round = what == 1 ? d : 0;
    st = prepare_counts(A, log_delta);
    turned_node = turned_round = 0;
    if (st) return;
    if (what == 2) {
        A->part.K[0] -= d;
        A->part.err[0] += d;
    }
    counts_at(A, A->eps, &S);
    term(names[what], off(&S, &F), what ? S.rounding : S.inner, own(&F));
    ends(&S);
}

/* Numbers of jumps that are left out. */
static void others(jump_counts *A)
{
    hs_value F, S;
    double log_delta, most;
    if (!any_counts(A, &log_delta, &F)) return;
    most = A->least + floor(between(0, 1) * (A->most - A->least));
    if (uniform() < 0.5) A->least = most;
    else A->most = most;
    if (prepare_counts(A, log_delta)) return;
    counts_at(A, A->eps, &S);
    term("counts-others", off(&S, &F), S.alias_right, own(&F) + own(&S) + F.alias_right);
    ends(&S);
}

/* Binomial coefficients [theory: small.counts-sum]. */
static void choices(void)
{
    double k = floor(log_between(2, 1e12)), j = floor(log_between(1, fmin(k, 1e5))), err, got;
    long double sum = 0;
    int i;
    if (uniform() < 0.3) j = k < 2e5 ? k - floor(between(0, 0.3) * k) : j;
    got = log_choices(k, j, &err);
    j = fmin(j, k - j);
    for (i = 0; i < (int)j; i++) sum += logl(((long double)k - i) / (i + 1));
    term("counts-choices", (double)fabsl(got - sum), err, 1e-19 * j * (double)sum + 1e-18);
}

int main(int argc, char **argv)
{
    jump_counts *A = malloc(sizeof *A);
    int i;
    terms_begin(argc, argv);
    if (!A) return 2;
    work = room(hs_counts_work());
    gauss_legendre(20, x20, w20);
    for (i = 0; i < cases(160); i++) {
        alias(A);
        truncation(A);
        inner(A);
        injected(A, i % 3);
        others(A);
        choices();
    }
    for (i = 0; i < cases(80); i++) apart(A);
    free(work);
    free(A);
    median("counts-alias", 20, 100, 20);
    median("counts-fall", 20, 100, 20);
    median("counts-truncation", 20, 2000, 100);
    median("counts-inner-nodes", 10, 1.1, 1.001);
    median("counts-rounding-nodes", 10, 1.1, 1.001);
    median("counts-rounding-k", 10, 1.1, 1.001);
    median("counts-others", 20, 100, 20);
    median("counts-one", 10, 1.01, 1.001);
    median("counts-end-lower", 100, 1.01, 1.001);
    median("counts-end-upper", 100, 1.01, 1.001);
    return terms_end();
}
