/* check_jumps_terms.c - the error terms of one rare large loss (jumps.c), each where it is large.
 *
 * Reference: of two runs, of one step or of two, delta and the part with one jump by integrals over the first run's
 * outcome; else the same answer without what is injected.
 */
#include "law/bulk.h"
static int given_at(const hs_bulk *J, double t, int order, hs_bulk_tilted *T);
#define hs_jumps_delta own_jumps_delta
#define hs_jumps_eps own_jumps_eps
#define hs_jumps_prepare own_jumps_prepare
#define hs_jumps_one own_jumps_one
#define hs_jumps_tilt own_jumps_tilt
#define hs_jumps_work own_jumps_work
#define hs_bulk_at given_at /* with errors of B and of its moments as large as claimed */
#include "line/jumps.c"
#undef hs_bulk_at
#include "terms.h"
int hs_bulk_at(const hs_bulk *J, double t, int order, hs_bulk_tilted *T);

static double *work, x20[20], w20[20];
static double wrong_log, wrong_moment;

static int given_at(const hs_bulk *J, double t, int order, hs_bulk_tilted *T)
{
    int st = hs_bulk_at(J, t, order, T);
    if (st || order < ORDER) return st;
    T->log_b += wrong_log;
    T->err += wrong_log;
    T->moment[2] += wrong_moment * T->size[2];
    T->wrong += wrong_moment;
    return HS_OK;
}

static double mass_above(double x) { return 0.5 * erfc(x * 0.70710678118654752440); }

/* E (1 - e^{x-L})_+ of one step, its losses above the cut alone where `jumps`. */
static double payoff(const hs_bulk *J, double x, int jumps)
{
    double sum = 0;
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        double w = J->pair.w[r], q = J->pair.q[r], up = J->pair.up[r], d = J->pair.down[r];
        double g = d > 0 || x > log1p(-q) ? hs_bulk_place(J, r, x) : -HUGE_VAL, one;
        branch_at b;
        if (jumps && !(J->cut[r] < HUGE_VAL)) continue;
        if (jumps) g = fmax(g, J->x0[r]);
        if (x > 0.5 && !(jumps && g == J->x0[r])) one = see_branch(J, r, x, &b) ? exp(b.log_w) * b.f : 0;
        else if (g < -38) one = -w * expm1(x);
        else {
            double mid = mass_above(g), far = d > 0 ? mass_above(g + d) : mid;
            one = w * (q * (mass_above(g - up) - mid) - exp(x) * q * (far - mid) - expm1(x) * mid);
        }
        sum += fmax(one, 0);
    }
    return sum;
}

/* Where outcomes of a branch have the loss x; -infinite where none is as small. */
static double place(const hs_bulk *J, int r, double x)
{
    double q = J->pair.q[r];
    return J->pair.down[r] > 0 || x > log1p(-q) ? hs_bulk_place(J, r, x) : -HUGE_VAL;
}

/* E payoff(eps - L) of the step `of` over the outcomes of J with losses above `least`, up to those beyond the cut by
 * `more`; panels shrink towards the bend of the pay-off. */
static double paid_above(const hs_bulk *J, const hs_bulk *of, double eps, double least, double more, int jumps)
{
    double sum = 0;
    int i, r;
    for (r = 0; r < J->pair.branches; r++) {
        double from = fmax(-12, least > -HUGE_VAL ? place(J, r, least) : -12), q = J->pair.q[r];
        double end = J->x0[r] + more;
        double bend = hs_bulk_place(J, r, jumps ? fmax(eps - of->l0, 0.5 * log1p(-q)) : eps);
        while (from < end) {
            double to = fmin(end, from + fmin(1.0 / 8, fmax(1e-9, 0.5 * fabs(bend - from)))), half, mid;
            if (from < bend && to > bend) to = bend;
            half = 0.5 * (to - from);
            mid = from + half;
            for (i = 0; i < 20; i++) {
                double x = mid + half * x20[i];
                hs_bulk_loss at = hs_bulk_loss_at(J, r, x);
                sum += J->pair.w[r] * half * w20[i] * exp(at.l1 - 0.5 * x * x - HS_LOG_SQRT_2PI) *
                       payoff(of, eps - at.l1 + at.l2, jumps);
            }
            from = to;
        }
    }
    return sum;
}

static double paid(const hs_bulk *J, const hs_bulk *of, double eps, double more, int jumps)
{ return paid_above(J, of, eps, -HUGE_VAL, more, jumps); }

/* The mass of the bulk of J where losses exceed s, or where they are below it. */
static double bulk_beside(const hs_bulk *J, double s, int above)
{
    double sum = 0;
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        double g = fmin(place(J, r, s), J->x0[r]), q = J->pair.q[r], up = J->pair.up[r], x = J->x0[r];
        double from = above ? mass_above(g) - mass_above(x) : mass_above(-g);
        double moved = above ? mass_above(g - up) - mass_above(x - up) : mass_above(up - g);
        sum += J->pair.w[r] * ((1 - q) * from + q * moved);
    }
    return sum;
}

static void ends(const hs_value *v)
{
    double both = v->inner + v->truncation + v->rounding, size = 1e-14 * (fabs(v->value) + both + v->alias_right);
    term("jumps-end-lower", both, v->value - v->lower, size);
    term("jumps-end-upper", both + v->alias_right, v->upper - v->value, size);
}

/* A run of n distinct steps, 4 of `kinds` kinds of which are no plain steps, its eps, a cut, and what is said
 * there. */
static int any(hs_jumps *A, hs_bulk *step, int n, double k, int kinds, double *eps, hs_value *v)
{
    hs_rule rule = {20, x20, w20};
    hs_pair pair[2];
    double theta, m[2] = {1, 1}, q[2] = {0.5, 0.5}, ks[2] = {k, k};
    hs_run run = {.b = n, .m = m, .q = q, .k = ks, .pair = pair};
    int i;
    for (i = 0; i < n; i++) {
        double up = log_between(0.3, 4), rate = log_between(1e-6, 0.1);
        int kind = (int)(uniform() * kinds) - kinds + 6;
        pair[i] =
            (hs_pair){.branches = 1 + (kind > 2), .w = {1}, .q = {rate, rate * between(0.2, 1)}, .up = {up, 2 * up}};
        if (kind == 2 || kind > 3) pair[i].down[0] = up;
        if (kind > 2) pair[i].w[0] = 1 - (pair[i].w[1] = log_between(1e-6, 0.9));
        if (kind > 3) pair[i].down[1] = kind == 4 ? up : 2 * up;
    }
    if (opened(A, step, &run, &rule, work, hs_jumps_work(2))) return 0;
    *eps = log_between(0.05, 20);
    theta = hs_jumps_tilt(A, *eps);
    if (!(theta < HUGE_VAL) || prepare(A, *eps * between(0.03, 0.9), theta)) return 0;
    lay_two(A, *eps, 1);
    jumps_at(A, *eps, v);
    return v->value > 0;
}

/* Two runs: what the expansion leaves of one jump, and what none and two add. */
static void two(int n)
{
    hs_bulk step[2];
    hs_jumps A;
    hs_value v;
    double eps, one, all, unit;
    if (!any(&A, step, n, 3.0 - n, 36, &eps, &v) || !(v.log_scale > -500)) return;
    unit = exp(-v.log_scale);
    one = (paid(&step[0], &step[n - 1], eps, 0, 1) + paid(&step[n - 1], &step[0], eps, 0, 1)) * unit;
    all = paid(&step[0], &step[n - 1], eps, 38, 0) * unit;
    term("jumps-truncation", fabs(v.value - one), v.truncation, v.inner + v.rounding + 1e-11 * one);
    term("jumps-others", all - one, v.alias_right, 1e-11 * all);
    ends(&v);
}

static void bounded(const char *name, double actual, double log_upper)
{
    if (actual > 1e-280) log_term(name, log(actual), log_upper);
}

/* The bounds that those of two runs are made of, each against an integral over one run or two. */
static void bounds(int n)
{
    hs_bulk step[2];
    hs_jumps A;
    hs_value v;
    double eps, x, s, theta;
    double r, power, most, h[ORDER + 1];
    double big[ORDER + 1], coarse, rel;
    const hs_bulk *last = &step[n - 1];
    int i;
    if (!any(&A, step, n, 3.0 - n, 8, &eps, &v)) return;
    x = A.low * log_between(0.3, 4);
    bounded("jumps-payoff", payoff(&step[0], x, 1) + payoff(last, x, 1), log_jumps_upper(&A, x));
    s = A.high * between(0.3, 1);
    bounded("jumps-rest", fmax(bulk_beside(&step[0], s, 1), bulk_beside(last, s, 1)), log_rest_upper(&A, 1, s));
    s = A.plain ? log1p(-step[0].pair.q[0]) * between(0.01, 0.99) : -between(0.1, 3) * step[0].pair.up[0];
    bounded(A.plain ? "jumps-under" : "jumps-fall", fmax(bulk_beside(&step[0], s, 0), bulk_beside(last, s, 0)),
            log_under_upper(&A, s));
    s = A.high * between(-0.5, 0.5);
    x = fmax(A.low * between(1, 2), s);
    bounded("jumps-layers", paid_above(&step[0], last, x, s, 0, 1) + paid_above(last, &step[0], x, s, 0, 1),
            log_layers_upper(&A, x, s));
    x = A.low * log_between(1.1, 4);
    if (!(log_payoff(&step[0], x, &theta, &rel) > -600)) return;
    r = x * log_between(0.01, 0.9);
    expansion(&step[0], x, theta, h, big, &coarse);
    for (most = power = 1, i = 1; i <= ORDER; i++) most = fmax(most, fabs(h[i]) * (power *= r));
    bounded("jumps-disc", most * payoff(&step[0], x, 0), log_disc_upper(&step[0], x, theta, r));
}

/* An error of log B or of a moment. */
static void injected(int what)
{
    hs_bulk step[2];
    hs_jumps A;
    hs_value v, w;
    double eps, d = log_between(1e-9, 1e-2);
    if (!any(&A, step, 1 + what / 2, floor(log_between(2, 1e6)), 36, &eps, &v)) return;
    wrong_log = what % 2 ? 0 : d;
    wrong_moment = what % 2 ? d : 0;
    jumps_at(&A, eps, &w);
    wrong_log = wrong_moment = 0;
    if (!(w.value > 0)) return;
    term(what % 2 ? "jumps-inner" : "jumps-rounding", fabs(w.value - v.value * exp(v.log_scale - w.log_scale)),
         what % 2 ? w.inner : w.rounding, v.inner + v.rounding);
    ends(&w);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    work = room(hs_jumps_work(2));
    gauss_legendre(20, x20, w20);
    for (i = 0; i < cases(450); i++) {
        two(1 + i / 2 % 2);
        if (i % 2) bounds(1 + i / 2 % 2);
        injected(i % 4);
    }
    free(work);
    median("jumps-truncation", 15, 50000, 400);
    median("jumps-others", 100, 10, 3);
    median("jumps-payoff", 80, 1.001, 1.001);
    median("jumps-rest", 60, 60, 5);
    median("jumps-under", 60, 10, 3);
    median("jumps-fall", 5, 20, 4);
    median("jumps-layers", 60, 4, 1.2);
    median("jumps-disc", 80, 1.3, 1.01);
    median("jumps-inner", 40, 8, 5);
    median("jumps-rounding", 60, 1.1, 1.001);
    median("jumps-end-lower", 250, 1.01, 1.001);
    median("jumps-end-upper", 250, 1.01, 1.001);
    return terms_end();
}
