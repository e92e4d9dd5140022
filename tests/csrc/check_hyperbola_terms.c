/* check_hyperbola_terms.c - the error terms of the hyperbola (hyperbola*.c), each where it is large: outer mesh, end
 * and inner meshes as given here, not as planned.
 *
 * Reference: the same hyperbola with a plan 20 nats finer, whose own budget is the `floor` of terms.h. What bounds the
 * truncation bounds the sum of moduli beyond the end, so that sum is its actual error.
 */
#define hs_hyperbola_work                                                                                              \
    own_hyperbola_work /* hyperbola.c is read here for its static functions: its public ones get names of their own */
#define hs_hyperbola_delta own_hyperbola_delta
#define hs_hyperbola_eps own_hyperbola_eps
#define hs_hyp_place                                                                                                   \
    given_place /* and the hyperbola may be moved to the right, where its upper neighbour weighs more */
#include "curve/hyperbola.c"
#undef hs_hyp_place
#include "terms.h"

int hs_hyp_place(hs_job *J);

static double *work, moved;
static long n_work;
static const double FINE = -24;
static int paired; /* whether steps are pairs */

typedef struct {
    hs_job J;
    double m[2], q[2], k[2], log_delta;
    hs_pair pair[2];
    hs_arena mem;
} run;

int given_place(hs_job *J)
{
    int st = hs_hyp_place(J);
    double width = J->A * (sin(HS_HYP_GAMMA + HS_HYP_BETA) - sin(HS_HYP_GAMMA - HS_HYP_BETA));
    if (!st && (!J->add || J->a0 + J->A * sin(HS_HYP_GAMMA + HS_HYP_BETA) + moved * width < 0)) {
        J->a0 += moved * width;
        J->a_s += moved * width;
    }
    return st;
}

/* As certify: the place from the saddle, then inner meshes for t_inner nats, cells until the bound is below `end`,
 * outer mesh h. */
static int lay(run *R, double t_inner, double end, double h)
{
    hs_job *J = &R->J;
    double floor_ = R->log_delta - log_factor(J, J->s) + FINE - 3;
    J->mem = R->mem;
    J->t_inner = t_inner;
    hs_hyp_plan(J);
    if (hs_hyp_march(J, &J->lo, HS_HYP_GAMMA - HS_HYP_BETA, 0, floor_) ||
        hs_hyp_march(J, &J->up, HS_HYP_GAMMA + HS_HYP_BETA, 0, floor_))
        return 0;
    if (hs_hyp_march(J, &J->mid, HS_HYP_GAMMA, 1, R->log_delta - log_factor(J, J->s) + end)) return 0;
    J->h_v = h;
    return hyperbola_nodes(J) == HS_OK;
}

/* A public mixture: one side of its second branch may not move. */
static hs_pair drawn_pair(double m, double q)
{
    double w = uniform() < 0.3 ? 1 : log_between(1e-6, 1), side = uniform() < 0.4 ? 1 : between(0, 1);
    hs_pair out = {.branches = w < 1 ? 2 : 1, .w = {w, 1 - w}, .q = {q, q * between(0.3, 1)}, .up = {m, 2 * m}};
    out.down[0] = uniform() < 0.2 ? 0 : m * side;
    out.down[1] = uniform() < 0.2 ? 0 : 2 * m * between(0.1, 1);
    return out;
}

static int fine(run *R, hs_value *F)
{
    int i, b = 1 + (uniform() < 0.3);
    hs_job *J = &R->J;
    hs_run steps;
    R->log_delta = -between(1.5, 16);
    for (i = 0; i < b; i++) {
        R->m[i] = log_between(0.4, 2);
        R->q[i] = log_between(2e-3, 0.5);
        R->k[i] = floor(log_between(2, 80));
        if (paired) R->pair[i] = drawn_pair(R->m[i], R->q[i]);
    }
    steps = (hs_run){.b = b, .add = !paired && uniform() < 0.4, .m = R->m, .q = R->q, .k = R->k};
    if (paired) steps.pair = R->pair;
    if (job_init(J, &steps, work, n_work)) return 0;
    R->mem = J->mem;
    if (hs_hyp_saddle(J, 0, R->log_delta) || !(J->s > J->wall) || certify(J, R->log_delta, FINE)) return 0;
    assemble(J, turned(J, J->s), F);
    return F->value > 0 && F->alias_right + F->truncation + F->inner + F->rounding < 1e-5 * F->value;
}

static double own(const hs_value *F) { return F->alias_right + F->truncation + F->inner + F->rounding; }

static double off(const hs_value *S, const hs_value *F)
{ return fabs(S->value - F->value * exp(F->log_scale - S->log_scale)); }

/* An outer mesh too wide. */
static void alias(run *R)
{
    hs_value F, S;
    int st;
    moved = uniform() < 0.5 ? 0 : between(0.1, 0.6);
    st = fine(R, &F);
    moved = 0;
    if (!st) return;
    R->J.h_v *= between(1.3, 4);
    if (hyperbola_nodes(&R->J)) return;
    assemble(&R->J, turned(&R->J, R->J.s), &S);
    term(paired ? "hyperbola-alias-sides" : "hyperbola-alias", off(&S, &F), S.alias_right,
         own(&F) + S.rounding + S.inner + S.truncation);
    ends_hold(S.lower, S.value, S.upper, own(&S), 0, 0, 0);
}

/* An end too near. */
static void truncation(run *R)
{
    hs_value F, S;
    hs_job *J = &R->J;
    double sum = 0, *size = malloc(sizeof(double) * HS_HYP_MAX_NODES), h, top;
    int n, N;
    if (fine(R, &F)) {
        N = J->n;
        top = F.log_scale - log_factor(J, J->s);
        h = J->h_v;
        for (n = 0; n < N; n++) size[n] = exp(J->kr[n] - J->s * J->nx[n] - top) * hypot(J->wr[n], J->wi[n]);
        if (lay(R, J->t_inner, -between(-2, 12), h) && J->n < N) {
            assemble(J, turned(J, J->s), &S);
            for (n = 0; n < N; n++)
                if (n * h >= J->mid.v_end) sum += size[n];
            sum *= exp(F.log_scale - S.log_scale);
            term(paired ? "hyperbola-truncation-sides" : "hyperbola-truncation", sum, S.truncation,
                 1e-6 * sum + 1e-300);
            ends_hold(S.lower, S.value, S.upper, own(&S), 0, 0, 0);
        }
    }
    free(size);
}

/* Inner meshes too wide. */
static void inner(run *R)
{
    hs_value F, S;
    if (!fine(R, &F)) return;
    if (!lay(R, between(2, 16), FINE - 3, R->J.h_v)) return;
    assemble(&R->J, turned(&R->J, R->J.s), &S);
    term(paired ? "hyperbola-inner-sides" : "hyperbola-inner", off(&S, &F), S.inner, own(&F) + S.rounding);
    ends_hold(S.lower, S.value, S.upper, own(&S), 0, 0, 0);
}

/* Errors of K at the nodes as large as claimed, turned so that all add. */
static void injected(run *R, int what)
{
    hs_value F, S;
    hs_job *J = &R->J;
    double d = log_between(1e-7, 0.3);
    int n;
    if (!fine(R, &F)) return;
    for (n = 0; n < J->n; n++) {
        double turn = J->ki[n] - J->s * J->ny[n] + atan2(J->wi[n], J->wr[n]);
        J->kr[n] += d * cos(turn);
        J->ki[n] -= d * sin(turn);
        (what ? J->ern : J->ein)[n] += d;
    }
    assemble(J, turned(J, J->s), &S);
    term(what ? "hyperbola-rounding-nodes" : "hyperbola-inner-nodes", off(&S, &F), what ? S.rounding : S.inner,
         F.rounding + 1e-13);
    ends_hold(S.lower, S.value, S.upper, own(&S), 0, 0, 0);
}

int main(int argc, char **argv)
{
    run *R = malloc(sizeof *R);
    int i;
    terms_begin(argc, argv);
    n_work = hs_hyperbola_work(HS_HYP_MAX_STEPS);
    work = room(n_work);
    if (!R) return 2;
    for (paired = 0; paired < 2; paired++)
        for (i = 0; i < cases(150); i++) {
            memset(R, 0, sizeof *R);
            alias(R);
            truncation(R);
            inner(R);
            injected(R, i % 2);
        }
    free(work);
    free(R);
    median("hyperbola-alias", 80, 2000, 50);
    median("hyperbola-truncation", 80, 1500, 4);
    median("hyperbola-inner", 50, 2000, 30);
    median("hyperbola-alias-sides", 80, 2000, 50);
    median("hyperbola-truncation-sides", 80, 1500, 4);
    median("hyperbola-inner-sides", 50, 100000, 60);
    median("end-lower", 80, 1 + 1e-6, 1 + 1e-6);
    median("end-upper", 80, 1 + 1e-6, 1 + 1e-6);
    median("hyperbola-inner-nodes", 50, 1.1, 1.001);
    median("hyperbola-rounding-nodes", 50, 1.1, 1.001);
    return terms_end();
}
