/* check_individual_terms.c - the error terms of upper bounds from shared tables (individual_epsilon.c,
 * individual_levels.c), each where it is large: period, number of nodes and inner meshes as given here, not as planned.
 *
 * Reference: delta of the record's steps on a line of its own (contour.c), certified to 1e-11 of it.
 */
#define hs_individual_chernoff                                                                                         \
    own_individual_chernoff /* individual_epsilon.c is read here for its static functions: its public */
#define hs_individual_work own_individual_work /* ones get names of their own */
#define hs_individual_group own_individual_group
#include "line/individual_epsilon.c"
#include "terms.h"

enum { LEVELS = 3 };
static double *work, *line_work, *head;
static double *re, *im;
static long n_work;

typedef struct {
    double m[LEVELS], q[LEVELS], k[LEVELS];
    double log_delta, truth; /* truth: log delta at eps0 of the fine record */
    int32_t counts[LEVELS];
    hs_contour C;
    record R;
} run;

/* The record on the contour C. */
static int lay(run *W, const hs_contour *C, record *R)
{
    long stride = (C->N + 8) / 8 * 8;
    if (stride > HS_STRIDE_MAX || hs_individual_table(C, stride, work, n_work, head, re, im)) return 0;
    gather(R, C, LEVELS, W->counts, stride, head, re, im);
    return 1;
}

/* The eps at which the fine record is frozen. */
static double start(const run *W)
{ return (W->R.head[HS_K0] - W->log_delta - log(W->C.c * (1 + W->C.c) * W->C.sd * 2.5)) / W->C.c; }

static int fine(run *W)
{
    hs_contour *C = &W->C, own = {0};
    hs_crossing at;
    const hs_point *p = &at.delta;
    int j;
    memset(C, 0, sizeof *C);
    W->log_delta = -between(1.5, 14);
    for (j = 0; j < LEVELS; j++) {
        W->m[j] = log_between(0.3, 1.5);
        W->q[j] = log_between(0.01, 0.4);
        W->counts[j] = (int32_t)log_between(5, 400);
        W->k[j] = W->counts[j];
    }
    C->run.b = LEVELS;
    C->run.m = W->m;
    C->run.q = W->q;
    C->run.k = W->k;
    C->run.add = uniform() < 0.4;
    C->n_threads = 1;
    C->T0 = 30;
    C->n_max = HS_STRIDE_MAX;
    if (hs_individual_plan(C, W->log_delta, 1.2, work, n_work)) return 0;
    if (C->N > 1500) return 0;
    hs_individual_lengthen(C, 1.3);
    C->y_far = (double)C->N * C->dy;
    C->bands = 1;
    if (!lay(W, C, &W->R)) return 0;
    own = *C;
    own.T0 = 31;
    own.rtol = 1e-11;
    own.n_max = HS_OUTER_MAX;
    if (hs_contour_ask(&own, 1, start(W), line_work, hs_contour_work(LEVELS, 1, HS_OUTER_MAX), &at) > HS_LOOSE)
        return 0;
    if (p->upper - p->lower > 1e-9 * p->estimate) return 0;
    W->truth = p->log_scale + log(p->estimate);
    return 1;
}

/* At the eps at which the fine record is frozen: what it claims above its estimate, what that misses; relative to
 * the truth. */
static void judge(const char *name, run *W, record *R, int only_above)
{
    double est;
    hs_value v;
    record_freeze(R, W->log_delta);
    record_at(R, start(W), &v);
    est = v.log_scale + log(v.value);
    if (!(fabs(est) < HUGE_VAL)) return;
    term(name, fmax(0, only_above ? -expm1(est - W->truth) : fabs(expm1(est - W->truth))),
         (v.upper - v.value) * exp(v.log_scale - W->truth), 1.1e-8);
}

static void alias(run *W)
{
    record *R = malloc(sizeof *R);
    hs_contour C;
    double d;
    int j, it;
    if (fine(W)) {
        C = W->C;
        C.P = C.sd * between(1.5, 6);
        C.dy = 2 * HS_PI / C.P;
        C.N = (long)ceil((double)W->C.N * W->C.dy / C.dy / 8) * 8 - 1;
        if (C.N < 7) C.N = 7;
        C.y_far = (double)C.N * C.dy;
        C.y_grid = (double)(C.N + 2) * C.dy;
        for (C.s_left = -0.5, it = 0, d = 0.25; it < 20; it++, d *= 0.7) { /* the best tilt in (-1, 0), about */
            double s[2] = {fmin(-1e-3, C.s_left + d), fmax(-1 + 1e-3, C.s_left - d)}, x[2];
            int i;
            for (i = 0; i < 2; i++)
                for (x[i] = -s[i] * (start(W) - C.P), j = 0; j < LEVELS; j++)
                    x[i] += W->k[j] * hs_cgf_estimate(W->m[j], W->q[j], hs_contour_tilt(&C, s[i])).K;
            C.s_left = x[0] < x[1] ? s[0] : s[1];
        }
        if (lay(W, &C, R)) judge("individual-alias", W, R, 1);
    }
    free(R);
}

/* A contour cut short: moduli beyond it. */
static void truncation(run *W)
{
    record *R = malloc(sizeof *R);
    hs_contour C;
    double sum = 0, fall = log_between(0.5, 10), scale;
    long n;
    if (fine(W)) {
        C = W->C;
        for (n = 7; n + 8 < C.N && W->R.fr[n] > -fall; n += 8) {}
        C.N = n;
        C.y_far = (double)C.N * C.dy * (uniform() < 0.5 ? 1 : between(1.1, 2));
        C.y_grid = fmax((double)(C.N + 2) * C.dy, C.y_far);
        if (lay(W, &C, R)) {
            for (n = C.N + 1; n <= W->C.N; n++) {
                double y = (double)n * C.dy;
                sum += C.dy / HS_PI * exp(W->R.fr[n]) / hypot(C.c, y) / hypot(1 + C.c, y);
            }
            record_freeze(R, W->log_delta);
            scale = C.c * (1 + C.c); /* f_0 = 1/scale */
            term("individual-tail", sum * scale, R->tail * scale, 1e-7 * sum * scale);
        }
    }
    free(R);
}

/* Inner meshes for a few nats. */
static void inner(run *W)
{
    record *R = malloc(sizeof *R);
    hs_contour C;
    if (fine(W)) {
        C = W->C;
        C.nats = between(-6, 8) - log(C.ktot);
        if (lay(W, &C, R)) judge("individual-inner", W, R, 0);
    }
    free(R);
}

/* Errors as large as claimed: K at c, or the nodes turned so that all take away. */
static void injected(run *W, int nodes)
{
    record *R = malloc(sizeof *R);
    double d = log_between(1e-6, 0.2), eps0;
    int i, n;
    if (fine(W)) {
        *R = W->R;
        eps0 = start(W);
        if (!nodes) {
            R->head[HS_K0] -= d;
            R->head[HS_K0_ERR] += d;
        }
        for (i = 0; nodes && i < 8; i++) R->head[HS_NODES + i] += d;
        for (n = 0; nodes && n <= W->C.N; n++) {
            double y = (double)n * W->C.dy, turn = R->fi[n] - eps0 * y - atan2(y, W->C.c) - atan2(y, 1 + W->C.c);
            R->fr[n] -= d * cos(turn);
            R->fi[n] += d * sin(turn);
        }
        judge(nodes ? "individual-nodes" : "individual-k", W, R, 0);
    }
    free(R);
}

int main(int argc, char **argv)
{
    run *W = malloc(sizeof *W);
    int i;
    terms_begin(argc, argv);
    n_work = hs_individual_work(LEVELS);
    work = room(n_work);
    line_work = room(hs_contour_work(LEVELS, 1, HS_OUTER_MAX));
    head = room(LEVELS * HS_HEADS);
    re = room(LEVELS * HS_STRIDE_MAX);
    im = room(LEVELS * HS_STRIDE_MAX);
    if (!W) return 2;
    for (i = 0; i < cases(120); i++) {
        alias(W);
        truncation(W);
        inner(W);
        injected(W, i % 2);
    }
    free(W);
    free(work);
    free(line_work);
    free(head);
    free(re);
    free(im);
    median("individual-alias", 30, 2, 1.05);
    median("individual-tail", 60, 1500, 150);
    median("individual-inner", 40, 1000, 80);
    median("individual-k", 40, 1.1, 1.001);
    median("individual-nodes", 40, 1.1, 1.001);
    return terms_end();
}
