/* check_line_terms.c - the error terms of a whole line (contour*.c), each where it is large: period, number of nodes
 * and inner mesh as given here, not as planned.
 *
 * References: for plain Gaussian steps the closed form of every alias; else the same line with a plan 25 nats finer,
 * whose own budget is asserted to be a thousandth of the error that it judges (`floor` of terms.h), and sums of |f_n|
 * over its nodes. What bounds the truncation bounds the sum of moduli beyond the last node, so that sum is its actual
 * error: phases may turn all of them one way.
 */
#include "own_contour.h"
#include "terms.h"

static double *work_fine, *work_coarse;
static const double FINE = 30;

typedef struct { /* a run and its fine line */
    double m[2], q[2], k[2];
    hs_pair pair[2];
    hs_contour C;
    hs_sums S[HS_CHUNKS];
    hs_value v;
} line;

enum { PLAIN, SAMPLED, BOTH, PAIR, KINDS };

/* The variance of the loss lies between lo and hi, roughly. */
static void any_run(line *L, int kind, double lo, double hi, double fewest)
{
    int j;
    memset(L, 0, sizeof *L);
    L->C.run.b = kind == BOTH ? 2 : 1;
    L->C.run.add = uniform() < 0.4;
    L->C.n_threads = 1;
    L->C.n_max = HS_OUTER_MAX;
    L->C.run.m = L->m;
    L->C.run.q = L->q;
    L->C.run.k = L->k;
    L->C.run.pair = kind == PAIR ? L->pair : NULL;
    L->C.rtol = exp(-FINE + 4);
    L->C.T0 = FINE;
    for (j = 0; j < 2; j++) {
        L->q[j] = kind == PLAIN || j == 1 ? 1 : log_between(0.02, 0.6);
        L->k[j] = ceil(log_between(fewest, 100 * fewest));
        L->m[j] = sqrt(log1p(log_between(lo, hi) / (L->k[j] * L->q[j] * L->q[j])));
    }
    L->pair[0].branches = 2;
    L->pair[0].w[0] = between(0.2, 0.8);
    L->pair[0].w[1] = 1 - L->pair[0].w[0];
    for (j = 0; j < 2; j++) {
        L->pair[0].q[j] = log_between(0.05, 0.6);
        L->pair[0].up[j] = sqrt(log1p(log_between(lo, hi) / (L->k[0] * pow(L->pair[0].q[j], 2))));
        L->pair[0].down[j] = j ? 0 : L->pair[0].up[j] * between(0.3, 1);
    }
}

/* Visits with what C says. */
static int on_line(hs_contour *C, double *work, hs_sums *S)
{
    int st = hs_contour_visit(C, work, S);
    C->S = S;
    if (!st) C->tail = exp(hs_contour_log_tail_upper(C, S));
    return st;
}

/* The line is moved to `depth` of the tilt that was placed, and has a period so many times as long. */
static int fine_line(line *L, double log_delta, double depth, double longer)
{
    hs_contour *C = &L->C;
    if (hs_contour_place(C, 0, log_delta, 1, work_fine)) return 0;
    C->c = ldexp(floor(ldexp(depth * C->c, 20)), -20);
    C->s_left = fmin(C->s_left, 0.5 * C->c);
    C->P *= longer;
    C->dy /= longer;
    if (hs_contour_plan(C, work_fine)) return 0;
    if (!(C->N < 3000)) return 0;
    C->N += C->N / 4 + 8;
    C->y_grid = (double)(C->N + 2) * C->dy;
    if (C->y_far > 0) C->y_far = fmax(C->y_far, (double)C->N * C->dy);
    return on_line(C, work_fine, L->S) == HS_OK;
}

/* |f_n|, f_n = phi^k/(z (1+z)), from log |phi|^k. */
static double modulus(const hs_contour *C, const hs_sums *S, long n)
{
    double y = (double)n * C->dy;
    return exp(S->re[n]) / (hypot(C->c, y) * hypot(1 + C->c, y));
}

/* Nodes cut short, under every kind of bound of the tail: the largest |phi|^k beyond them (fall), and the sum
 * (tail). With inner meshes of their own where `coarse`: the moments and distances that the bound is made of then
 * have errors that it has to cover. */
static void truncation(int kind, int how, int coarse)
{
    static const char *falls[3][4] = {
        {"fall-psi", "fall-moments", "fall-bands", "fall-metric"},
        {"fall-pair-psi", "fall-pair-moments", "fall-pair-bands", "fall-pair-metric"},
        {"fall-coarse-psi", "fall-coarse-moments", "fall-coarse-bands", "fall-coarse-metric"}};
    static const char *tails[2] = {"tail", "tail-pair"};
    line *L = malloc(sizeof *L);
    hs_contour C;
    hs_sums S[HS_CHUNKS];
    double sum = 0, most = 0, Y;
    double fall, B;
    long n;
    any_run(L, kind, coarse ? 1 : 0.05, coarse ? 30 : 2, coarse ? 1 : 40);
    if (fine_line(L, -between(1, 6), between(0.05, 1), 8)) {
        C = L->C;
        for (fall = log_between(coarse ? 0.02 : 0.1, 10), n = 1; n < L->C.N && L->S->re[n] > -fall; n++) {}
        C.N = n;
        Y = (double)C.N * C.dy;
        C.y_grid = (double)(C.N + 2) * C.dy;
        C.far_shift = -1;
        C.far_mesh = 0;
        C.fine = !coarse;
        C.bands = 1;
        C.doublings = 6;
        if (coarse) C.nats = between(-8, 2) - log(C.ktot) - C.cancelled;
        C.y_far = how == 0 ? Y : how == 3 ? 0 : Y * (how == 1 ? between(1.1, 2) : between(2, 12));
        if (how == 2) C.bands = (int)fmin(HS_BANDS, 2 + log2(C.y_far / Y));
        if (on_line(&C, work_coarse, S) == HS_OK) {
            for (n = C.N; n <= L->C.N; n++) {
                if (n > C.N) sum += C.dy / HS_PI * modulus(&L->C, L->S, n);
                most = fmax(most, exp(L->S->re[n]));
            }
            B = -log(C.tail) - log(HS_PI * Y) + log1p(C.dy / Y);
            term(falls[coarse ? 2 : kind == PAIR][how], most, exp(-B), 1e-8 * most);
            if (sum > 1e-9) term(tails[kind == PAIR], sum, C.tail, 1e-8 * sum);
        }
    }
    free(L);
}

/* K(z), about. */
static double about_k(const line *L, double z)
{
    double K = 0;
    long j;
    for (j = 0; j < L->C.run.b; j++) {
        hs_cgf one = hs_is_pair(&L->C, j) ? hs_two_cgf_estimate(&L->pair[j], z)
                                          : hs_cgf_estimate(L->m[j], L->q[j], hs_contour_tilt(&L->C, z));
        K += L->k[j] * one.K;
    }
    return K;
}

static double exponent(const void *L, double s, double x) { return about_k(L, s) - s * x + hs_payoff(s); }

/* Of a normal loss with variance v: delta(e), 1 - delta(e), and delta(e) - 1 + e^e, none of which cancels where it
 * is small. */
static void closed(double v, double e, double *delta, double *rest, double *less)
{
    double mu = sqrt(v), a = e / mu - 0.5 * mu, b = e / mu + 0.5 * mu;
    *delta = normal_cdf(-a) - exp(e) * normal_cdf(-b);
    *rest = normal_cdf(a) + exp(e) * normal_cdf(-b);
    *less = exp(e) * normal_cdf(b) - normal_cdf(a);
}

/* A short period; the left tilt in (0, c), (-1, 0) or below -1. Plain steps: every alias by the closed form. Others:
 * what the sum is off in all, against the aliases of that sign. */
static void aliasing(int kind, int side)
{
    static const char *names[3] = {"alias-left-above", "alias-left-between", "alias-left-below"};
    line *L = malloc(sizeof *L);
    hs_contour C;
    hs_sums S[HS_CHUNKS];
    hs_value fine, v;
    double right = 0, left = 0, delta;
    double rest, less, var;
    double scale, off, rounding;
    int n;
    any_run(L, kind, 0.05, 2, 40);
    if (fine_line(L, -between(1, 8), between(0.2, 1), 1)) {
        C = L->C;
        var = L->k[0] * L->m[0] * L->m[0];
        hs_line_freeze(&L->C, L->S);
        line_at(&L->C, C.eps, &fine);
        C.P = C.sd * between(1.5, 7) + between(0, 1);
        C.dy = 2 * HS_PI / C.P;
        C.s_right = best_tilt(exponent, L, C.c * 1.01, C.c + 30 + 20 / C.sd, C.eps + C.P);
        C.s_left = side == 0   ? best_tilt(exponent, L, 0.01 * C.c, 0.99 * C.c, C.eps - C.P)
                   : side == 1 ? best_tilt(exponent, L, -0.99, -0.01, C.eps - C.P)
                               : best_tilt(exponent, L, -40 / C.sd - 1, -1.01, C.eps - C.P);
        C.N = (long)((double)L->C.N * L->C.dy / C.dy) + 2;
        C.y_grid = (double)(C.N + 2) * C.dy;
        if (C.y_far > 0) C.y_far = fmax(C.y_far, (double)C.N * C.dy);
        if (on_line(&C, work_coarse, S) == HS_OK) {
            if (uniform() < 0.5) /* K known to a few nats at the tilts of the aliases */
                for (n = 1; n < 3; n++) {
                    double a = between(0, 3), b = between(0, 3);
                    S->K[n] -= a + b;
                    S->err[n] += a;
                    S->inner[n] += b;
                }
            hs_line_freeze(&C, S);
            line_at(&C, C.eps, &v);
            ends_hold(v.lower, v.value, v.upper, v.inner + v.rounding + v.truncation, v.alias_left, v.alias_right,
                      C.s_left);
            scale = exp(fine.log_scale - v.log_scale);
            rounding = v.rounding + v.inner + v.truncation + fine.rounding + fine.inner + fine.truncation;
            off = v.value - fine.value * scale;
            if (kind == PLAIN) {
                for (n = 1; n < 300; n++) {
                    closed(var, C.eps + n * C.P, &delta, &rest, &less);
                    right += delta > 1e-290 && C.eps + n * C.P < 300 ? exp(C.c * n * C.P - v.log_scale) * delta : 0;
                    closed(var, C.eps - n * C.P, &delta, &rest, &less);
                    left += exp(-C.c * n * C.P - v.log_scale) * (side == 0 ? delta : side == 1 ? rest : less);
                }
                term("alias-right", right, v.alias_right, 1e-9 * right);
                term(names[side], left, v.alias_left, 1e-9 * left);
                term("alias-sum", fabs(off - right + (side == 1 ? left : -left)), rounding,
                     1e-12 * (fabs(v.value) + left + right) + fine.alias_left + fine.alias_right);
            } else if (off > 0)
                term("alias-sampled", off, v.alias_right + (side == 1 ? 0 : v.alias_left), rounding + fine.alias_left);
            else
                term("alias-sampled-between", -off, side == 1 ? v.alias_left : 0,
                     rounding + fine.alias_left + fine.alias_right);
        }
    }
    free(L);
}

/* Inner meshes for a few nats only, nodes and K alike: what the sum moves by. The line is `longer` where shifted
 * paths are to pay. */
static void inner(int kind, int how)
{
    static const char *names[2][4] = {{"inner", "inner-bands", "inner-metric", "inner-shifted"},
                                      {"inner-pair", "inner-pair-bands", "inner-pair-metric", "inner-pair-shifted"}};
    line *L = malloc(sizeof *L);
    hs_contour C;
    hs_sums S[HS_CHUNKS];
    hs_value fine, v;
    any_run(L, kind, how == 3 ? 0.02 : 0.5, how == 3 ? 0.5 : 10, how == 3 ? 10 : 2);
    if (fine_line(L, -between(1, 12), 1, how == 3 ? 20 : 1)) {
        hs_line_freeze(&L->C, L->S);
        line_at(&L->C, L->C.eps, &fine);
        C = L->C;
        C.far_shift = -1;
        C.far_mesh = 0;
        C.fine = 0;
        C.bands = how == 1 ? 3 : 1;
        C.doublings = 6;
        C.y_far = how == 2 ? 0 : (double)C.N * C.dy * (how == 1 ? 3 : 1);
        C.nats = between(1, 20) - log(C.ktot) - C.cancelled;
        if (on_line(&C, work_coarse, S) == HS_OK) {
            hs_line_freeze(&C, S);
            line_at(&C, C.eps, &v);
            if (kind == SAMPLED)
                term("k-at-c", fabs(S->K[0] - L->S->K[0]), S->inner[0] + S->err[0], L->S->inner[0] + L->S->err[0]);
            else
                term("k-at-c-pair", fabs(S->K[0] - L->S->K[0]), S->inner[0] + S->err[0], L->S->inner[0] + L->S->err[0]);
            term(names[kind == PAIR][how], fabs(v.value - fine.value * exp(fine.log_scale - v.log_scale)), v.inner,
                 v.rounding + fine.rounding + fine.inner);
        }
    }
    free(L);
}

/* K at the tilts of the aliases, on grids for so few nats: at most what is said of it. */
static void k_at_aliases(void)
{
    line *L = malloc(sizeof *L);
    hs_contour C;
    hs_sums S[HS_CHUNKS];
    double few, log_m, err;
    int i;
    any_run(L, SAMPLED, 0.05, 10, 2);
    if (fine_line(L, -between(1, 6), 1, 1)) {
        C = L->C;
        few = exp(-between(1, 7));
        C.nats += log(C.ktot / few);
        C.ktot = few;
        if (on_line(&C, work_coarse, S) == HS_OK)
            for (i = 1; i < 3; i++) {
                double a = hs_contour_tilt(&C, i == 1 ? C.s_right : C.s_left);
                if (hs_log_m_nats_upper(L->m[0], L->q[0], a, FINE, work_coarse, &log_m, &err)) continue;
                term("k-at-aliases", fmax(0, L->k[0] * log_m - S->K[i]), S->err[i] + S->inner[i], L->k[0] * err);
            }
    }
    free(L);
}

/* A line planned for few nats: the sum of moduli beyond its last node. */
static void planned(int kind)
{
    line *L = malloc(sizeof *L);
    hs_contour C;
    hs_sums S[HS_CHUNKS];
    double sum = 0;
    long n;
    any_run(L, kind, 0.05, 2, 4);
    L->C.T0 = between(0.5, 12);
    if (line_prepare(&L->C, 0, -between(1, 8), 1, work_fine, hs_contour_work(1, 1, HS_OUTER_MAX), L->S) == HS_OK) {
        C = L->C;
        C.N = 4 * C.N + 16;
        C.y_grid = (double)(C.N + 2) * C.dy;
        C.nats += 20;
        C.far_mesh = C.fine = 0;
        if (C.y_far > 0) C.y_far = fmax(C.y_far, (double)C.N * C.dy);
        if (C.N < HS_OUTER_MAX && on_line(&C, work_coarse, S) == HS_OK) {
            for (n = L->C.N + 1; n <= C.N; n++) sum += C.dy / HS_PI * modulus(&C, S, n);
            term("tail-planned", sum, L->C.tail, 1e-8 * sum);
        }
    }
    free(L);
}

/* delta(eps) is at least delta at the lower end of eps, at most at the upper: by lines planned for 30 nats. */
static void eps_ends(int kind)
{
    line *L = malloc(sizeof *L);
    double log_delta = -between(0.5, 12), delta[2] = {0, 0};
    const int64_t room = hs_contour_work(1, 1, HS_OUTER_MAX);
    hs_crossing e, at;
    int i;
    any_run(L, kind, 0.05, 4, 4);
    L->C.T0 = between(1, 12);
    L->C.rtol = 1;
    if (own_contour_ask(&L->C, 0, log_delta, work_fine, room, &e) <= HS_LOOSE) {
        for (i = 0; i < 2; i++) {
            L->C.T0 = FINE;
            L->C.rtol = 1e-11;
            L->C.n_max = HS_OUTER_MAX;
            if (own_contour_ask(&L->C, 1, i ? e.upper : e.lower, work_fine, room, &at) <= HS_LOOSE)
                delta[i] = at.delta.estimate * exp(at.delta.log_scale - log_delta);
        }
        if (delta[0] > 0) term("eps-lower", 0.5 / delta[0], 0.5, 1e-9);
        if (delta[1] > 0) term("eps-upper", 0.5 * delta[1], 0.5, 1e-9);
    }
    free(L);
}

/* Plain steps: K, nodes and delta against long double. */
static void plain(void)
{
    line *L = malloc(sizeof *L);
    any_run(L, PLAIN, 0.05, uniform() < 0.5 ? 2 : 50, 40);
    if (fine_line(L, -between(1, 6), between(0.2, 1), 1)) {
        hs_contour *C = &L->C;
        long double v = (long double)L->m[0] * L->m[0] * L->k[0], c = C->c, mu = sqrtl(v);
        long double a = C->eps / mu - 0.5L * mu, truth;
        long n;
        term("plain-k", (double)fabsl(0.5L * v * c * (1 + c) - L->S->K[0]), L->S->err[0], 1e-18 * fabs(L->S->K[0]));
        for (n = 1; n <= C->N; n += 1 + C->N / 8) {
            long double y = (long double)C->dy * n;
            term("plain-node", (double)hypotl(0.5L * v * y * y + L->S->re[n], v * (c + 0.5L) * y - L->S->im[n]),
                 L->S->round[n], 1e-18 * (fabs(L->S->re[n]) + fabs(L->S->im[n])));
        }
        hs_line_freeze(C, L->S);
        line_at(C, C->eps, &L->v);
        truth = 0.5L * (erfcl(a * sqrtl(0.5L)) - expl(C->eps) * erfcl((a + mu) * sqrtl(0.5L))) *
                expl(-(long double)L->v.log_scale);
        term("plain-value", (double)fabsl(L->v.value - truth),
             L->v.rounding + L->v.truncation + L->v.alias_left + L->v.alias_right,
             4e-19 * (double)erfcl(a * sqrtl(0.5L)) * exp(-L->v.log_scale));
    }
    free(L);
}

/* Errors as large as their claims, put into a fine line: K at c, or every node turned so that all errors add, or
 * both. */
static void injected(int what)
{
    static const char *names[4] = {"inner-k", "inner-nodes", "rounding-k", "rounding-nodes"};
    line *L = malloc(sizeof *L);
    hs_sums *S = L->S;
    hs_contour *C = &L->C;
    hs_value fine, v;
    double d = log_between(1e-7, 0.5), *re;
    long n, N;
    any_run(L, SAMPLED, 0.05, 2, 40);
    re = malloc(sizeof *re * 2 * HS_OUTER_MAX);
    if (re && fine_line(L, -between(1, 6), between(0.2, 1), 1)) {
        N = C->N;
        for (n = 0; n <= N; n++) {
            re[n] = S->re[n];
            re[N + 1 + n] = S->im[n];
        }
        hs_line_freeze(C, S);
        line_at(C, C->eps, &fine);
        for (n = 0; n <= N; n++) {
            double y = (double)n * C->dy, turn = re[N + 1 + n] - C->eps * y - atan2(y, C->c) - atan2(y, 1 + C->c);
            S->re[n] = re[n] + (what % 2 ? d * cos(turn) : 0);
            S->im[n] = re[N + 1 + n] - (what % 2 ? d * sin(turn) : 0);
            S->node[n] = what == 1 ? d : 0;
            S->round[n] = what == 3 ? d : 0;
        }
        if (what == 0) {
            S->K[0] -= d;
            S->inner[0] += d;
        }
        if (what == 2) {
            S->K[0] -= d;
            S->err[0] += d;
        }
        hs_line_freeze(C, S);
        C->tail = d;
        line_at(C, C->eps, &v);
        ends_hold(v.lower, v.value, v.upper, v.inner + v.rounding + v.truncation, v.alias_left, v.alias_right,
                  C->s_left);
        term(names[what], fabs(v.value * exp(v.log_scale - fine.log_scale) - fine.value),
             (what < 2 ? v.inner : v.rounding), fine.rounding + 1e-13);
    }
    free(re);
    free(L);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    work_fine = room(hs_contour_work(1, 1, HS_OUTER_MAX));
    work_coarse = room(hs_contour_work(1, 1, HS_OUTER_MAX));
    for (i = 0; i < cases(1600); i++) {
        truncation(i % KINDS, i / KINDS % 4, 0);
        truncation(i % 3 ? SAMPLED : PAIR, i / 3 % 4, 1);
        injected(i % 4);
        inner(i % 2 ? SAMPLED : PAIR, i / 2 % 4);
        aliasing(i % KINDS, i / KINDS % 3);
    }
    for (i = 0; i < cases(200); i++) {
        plain();
        k_at_aliases();
        planned(i % KINDS);
        eps_ends(i % KINDS);
    }
    free(work_fine);
    free(work_coarse);
    median("fall-psi", 90, 1.2, 1.01);
    median("fall-moments", 90, 1.2, 1.01);
    median("fall-bands", 90, 1.2, 1.01);
    median("fall-metric", 90, 1.2, 1.01);
    median("fall-pair-psi", 15, 4, 1.2);
    median("fall-pair-moments", 20, 1.5, 1.05);
    median("fall-pair-bands", 20, 1.5, 1.05);
    median("fall-pair-metric", 20, 1.5, 1.05);
    median("fall-coarse-psi", 8, 40, 6);
    median("fall-coarse-moments", 0, HUGE_VAL,
           HUGE_VAL); /* meshes that coarse leave moments no use: covered, never near */
    median("fall-coarse-bands", 4, 100, 10);
    median("fall-coarse-metric", 20, 15, 1.5);
    median("tail", 500, 40, 8);
    median("tail-pair", 200, 40, 8);
    median("tail-planned", 80, 1e7, 200);
    median("k-at-aliases", 20, 1000, 10);
    median("eps-lower", 100, 1.02, 1.001);
    median("eps-upper", 100, 1.02, 1.001);
    median("inner-k", 150, 1.1, 1.001);
    median("inner-nodes", 150, 1.1, 1.001);
    median("plain-k", 150, 18, 6);
    median("plain-node", 900, 18, 6);
    median("plain-value", 150, 300, 50);
    median("rounding-k", 150, 1.1, 1.001);
    median("rounding-nodes", 150, 1.1, 1.001);
    median("k-at-c", 150, 300, 4);
    median("k-at-c-pair", 150, 1000, 60);
    median("inner", 40, 10000, 50);
    median("inner-bands", 40, 3000, 40);
    median("inner-metric", 40, 5000, 50);
    median("inner-shifted", 40, 5e+06, 500);
    median("inner-pair", 40, 10000, 100);
    median("inner-pair-bands", 40, 5000, 100);
    median("inner-pair-metric", 40, 5000, 50);
    median("inner-pair-shifted", 40, 20000, 200);
    median("alias-right", 150, 15, 5);
    median("alias-left-above", 50, 1.2, 1.02);
    median("alias-left-between", 50, 1.2, 1.02);
    median("alias-left-below", 50, 10, 2);
    median("alias-sum", 0, HUGE_VAL, HUGE_VAL); /* an identity: nothing is left to bound */
    median("alias-sampled", 200, 4, 1.05);
    median("alias-sampled-between", 100, 1.2, 1.05);
    return terms_end();
}
