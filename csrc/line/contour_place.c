/* contour_place.c - where the contour of contour.c goes: tilt c and period P. contour_plan.c: how far.
 *
 * Nothing here enters a bound [theory: line.planning]: every choice is valid, a bad one only makes a bound wide. So at
 * most HS_SAMPLE of the steps are looked at closely; K of the others enters through its value and slope at c and the
 * ratio of curvatures.
 *
 * Symbols as in contour.c.
 */
#include "line/line.h"

/* K, K', K'' at z of all steps, or of so many that the rest does not matter (take_sample). */
static hs_cgf total_cgf(const hs_contour *C, const hs_sample *X, double z)
{
    double a = hs_contour_tilt(C, z);
    hs_cgf out = {0, 0, 0}, part[HS_CHUNKS];
    int chunk, i;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(static) if (C->n_threads > 1)
#endif
    for (chunk = 0; chunk < C->chunks; chunk++) {
        int64_t i, lo = hs_chunk_at(X->subsample, chunk, C->chunks),
                   hi = hs_chunk_at(X->subsample, chunk + 1, C->chunks);
        part[chunk] = (hs_cgf){0, 0, 0};
        for (i = lo; i < hi; i++) {
            int64_t j = X->who ? (int64_t)X->who[i] : i;
            hs_cgf one = hs_is_pair(C, j) ? hs_two_cgf_estimate(&C->run.pair[j], z)
                                          : hs_cgf_estimate(C->run.m[j], C->run.q[j], a);
            if (hs_is_pair(C, j) && C->run.add) one.K1 = -one.K1; /* pairs are turned to the direction already */
            hs_cgf_add(&part[chunk], X->who ? X->weight[i] : C->run.k[j], one);
        }
    }
    for (i = 0; i < C->chunks; i++) hs_cgf_add(&out, 1, part[i]);
    if (C->run.add) out.K1 = -out.K1;
    return out;
}

static hs_cgf sample_cgf(const hs_contour *C, hs_sample *X, double z)
{
    double a = hs_contour_tilt(C, z);
    hs_cgf out = {0, 0, 0}, one;
    int i;
    for (i = 0; i < X->n; i++) {
        double m = C->run.m[X->at[i]], q = C->run.q[X->at[i]], k = X->share[i];
        if (hs_is_pair(C, X->at[i])) {
            hs_two_coarse *T = &X->two[i];
            if (!(T->z_lo <= z && z <= T->z_hi))
                hs_two_coarse_build(T, &C->run.pair[X->at[i]], z - fabs(z) - 3, z + 1.2 * fabs(z) + 3,
                                    X->work + i * X->stride, X->stride);
            one =
                T->z_lo <= z && z <= T->z_hi ? hs_two_coarse_cgf(T, z) : hs_two_cgf_estimate(&C->run.pair[X->at[i]], z);
            hs_cgf_add(&out, k, one);
            continue;
        }
        one = hs_cgf_nearby(&X->grid[i], m, q, a, X->work + i * X->stride);
        if (C->run.add) one.K1 = -one.K1;
        hs_cgf_add(&out, k, one);
    }
    return out;
}

/* About the variance of the loss of step j; *m: how far its two normal laws are apart. */
static double rough_variance(const hs_contour *C, int64_t j, double *m)
{
    double q = C->run.q[j];
    *m = C->run.m[j];
    if (hs_is_pair(C, j)) {
        *m = C->run.pair[j].up[0] + C->run.pair[j].down[0];
        q = C->run.pair[j].q[0];
    }
    return hs_rough_variance(*m, q);
}

/* At most n steps that stand for all, by systematic sampling: who[i] stands for share[i] steps. The chance p_j of step
 * j, whose share is k_j/p_j, is by the share `even` the same for all, and half of the rest by its count, half by its
 * variance. How many they are. */
static int64_t sample_steps(const hs_contour *C, int64_t n, double even, double *who, double *share)
{
    double all = 0, sum = 0.5, picks = 0, m;
    int64_t j, found = 0;
    for (j = 0; j < C->run.b; j++) all += C->run.k[j] * rough_variance(C, j, &m);
    for (j = 0; j < C->run.b && found < n; j++) {
        double part = 0.5 * (1 - even) * C->run.k[j], now;
        double p = (double)n * (even / C->run.b + part / C->ktot + part * rough_variance(C, j, &m) / all);
        sum += p;
        now = floor(sum);
        if (now > picks) {
            who[found] = (double)j;
            share[found++] = C->run.k[j] * (now - picks) / p;
        }
        picks = now;
    }
    return found;
}

/* At most HS_SAMPLE steps that stand for all, the same whenever they are taken; how many they are: fewer of few steps,
 * as a look at one takes as long as a visit. */
int hs_contour_sample(const hs_contour *C, double *who, double *share)
{
    int64_t j;
    if (C->run.b > HS_SAMPLE)
        return (int)sample_steps(C, (int64_t)fmin(HS_SAMPLE, HS_SAMPLE / 2 + C->run.b / 12), HS_EVEN, who, share);
    for (j = 0; j < C->run.b; j++) {
        who[j] = (double)j;
        share[j] = C->run.k[j];
    }
    return C->run.b;
}

static void take_sample(hs_contour *C, hs_sample *X, double *work)
{
    double who[HS_SAMPLE];
    int64_t i;
    C->chunks = hs_chunks(C->run.b);
    for (C->ktot = 0, i = 0; i < C->run.b; i++) C->ktot += C->run.k[i];
    X->n = hs_contour_sample(C, who, X->share);
    X->k = 0;
    X->work = work;
    X->stride = HS_STEPS_WORK / X->n;
    for (i = 0; i < X->n; i++) {
        X->at[i] = (int64_t)who[i];
        X->k += X->share[i];
        X->grid[i].a_lo = X->two[i].z_lo = 1;
        X->grid[i].a_hi = X->two[i].z_hi = 0; /* the grid was not built */
    }
    X->subsample = C->run.b;
    X->who = X->weight = NULL;
    if (C->run.b <= 2 * HS_SUBSAMPLE) return;
    X->who = work + HS_STEPS_WORK;
    X->weight = X->who + HS_SUBSAMPLE;
    X->subsample = sample_steps(C, HS_SUBSAMPLE, 0, X->who, X->weight);
}

/* The search starts at the saddle of the normal law of variance sum k q^2 (e^{m^2} - 1), which is near where rare jumps
 * do not take over. */
static double guess_tilt(const hs_contour *C, double log_delta)
{
    double v = 0, m = 0, one;
    int64_t j;
    for (j = 0; j < C->run.b; j++) {
        v += C->run.k[j] * rough_variance(C, j, &one);
        m = fmax(m, one);
    }
    return fmax(1e-3, fmin(sqrt(fmax(0.5, -1.6 * log_delta)) / sqrt(v), 2 + 4 / (m * m)));
}

typedef struct { /* the run, and K, K', K'' at the line of all of it and of the sample where that is not all */
    hs_contour *C;
    hs_sample *X;
    hs_cgf all, part;
} placing;

static hs_cgf cgf_of_all(void *self, double t)
{
    const placing *W = (const placing *)self;
    return total_cgf(W->C, W->X, t);
}

/* The sample's, scaled to the run [theory: line.planning]. */
static hs_cgf cgf_of_sample(void *self, double t)
{
    placing *W = (placing *)self;
    hs_cgf k = sample_cgf(W->C, W->X, t);
    double scale = W->C->ktot / W->X->k;
    k.K *= scale;
    k.K1 *= scale;
    k.K2 *= scale;
    return k;
}

/* Finds the saddle on the sample, then on the whole run. */
static int saddle(placing *W, int have_eps, double log_delta)
{
    hs_contour *C = W->C;
    int whole = W->X->n == C->run.b, st;
    hs_saddle_search f = {cgf_of_sample, W, have_eps, have_eps ? C->eps : log_delta, 0, -HUGE_VAL, 1e12};
    hs_tilt at = {.t = C->t};
    if (!(C->t > 0)) at.t = have_eps ? 1 : guess_tilt(C, log_delta);
    f.tol = have_eps ? 0.005 : whole ? 0.1 : 0.3;
    st = hs_saddle_find(&f, &at);
    f.cgf = cgf_of_all;
    f.tol = have_eps ? 0.005 : 0.1;
    if (!whole) st = hs_saddle_find(&f, &at);
    C->t = at.t;
    C->eps = at.eps;
    C->log_est = at.log_est;
    C->sd = sqrt(at.k.K2);
    W->all = at.k;
    return st ? HS_NO_SADDLE : HS_OK;
}

/* C->t, the tilt of the saddle. work: HS_SAMPLE_WORK doubles. */
int hs_contour_saddle(hs_contour *C, int have_eps, double log_delta, double *work)
{
    hs_sample X;
    placing W = {.C = C, .X = &X};
    take_sample(C, &X, work);
    return saddle(&W, have_eps, log_delta);
}

/* K away from the line: the sample's, with the value, slope and curvature of all steps at the line. */
static hs_cgf cgf_near_line(void *self, double s)
{
    const placing *W = (const placing *)self;
    hs_cgf k = sample_cgf(W->C, W->X, s);
    double ratio = W->all.K2 / W->part.K2, d = s - W->C->c;
    if (W->X->n == W->C->run.b) return k;
    k.K = W->all.K + W->all.K1 * d + ratio * (k.K - W->part.K - W->part.K1 * d);
    k.K1 = W->all.K1 + ratio * (k.K1 - W->part.K1);
    k.K2 *= ratio;
    return k;
}

/* P = the larger of the two sides' least periods; the second side is good enough once it is below the first. Where the
 * sample is not all, P is close to what all steps ask for at the tilts found. */
static void place_aliases(placing *W)
{
    hs_contour *C = W->C;
    hs_aliases A = {cgf_near_line, W, C->c, C->eps, C->sd, C->log_est - C->nats};
    double d = C->c < 0.95 * C->t ? C->t - C->c : 7 / C->sd, s;
    int side;
    for (C->P = 0, side = 1; side >= -1; side -= 2) {
        double best = hs_alias_place(&A, side, d, -HUGE_VAL, HUGE_VAL, C->P, &s);
        *(side < 0 ? &C->s_left : &C->s_right) = s;
        if (W->X->n < C->run.b) {
            hs_aliases whole = A;
            double at_all;
            whole.cgf = cgf_of_all;
            at_all = hs_alias_period(&whole, s);
            best = fmax(0.8 * best, at_all < HUGE_VAL ? at_all : best);
        }
        C->P = fmax(C->P, best);
        d = fmin(7 / C->sd, 2 * (C->s_right - C->c));
    }
    C->dy = 2 * HS_PI / C->P;
}

/* The parabola that K follows at the line. */
static hs_cgf cgf_of_parabola(void *self, double t)
{
    const placing *W = (const placing *)self;
    double x = t - W->C->c;
    hs_cgf k = {W->all.K + W->all.K1 * x + 0.5 * W->all.K2 * x * x, W->all.K1 + W->all.K2 * x, W->all.K2};
    return k;
}

/* A line at depth * t, for losses whose rare jumps explode K near its saddle t, so that aliases there need a long
 * period. The jumps do not matter at the line: eps, or delta, comes from the parabola of K there, and C->cancelled says
 * how many nats of delta the sum loses to cancellation. */
static int shallow(placing *W, int have_eps, double log_delta, double depth)
{
    hs_contour *C = W->C;
    double c = C->c = depth * C->t;
    hs_cgf k = W->all = W->X->n < C->run.b ? total_cgf(C, W->X, c) : sample_cgf(C, W->X, c);
    hs_saddle_search f = {cgf_of_parabola, W, have_eps, have_eps ? C->eps : log_delta, 0, -HUGE_VAL, 1e12};
    hs_tilt at = {.t = c};
    if (!(k.K2 > 0 && k.K2 < 1e300)) return HS_NO_SADDLE;
    C->sd = sqrt(k.K2);
    f.tol = have_eps ? 2e-4 : 0.02;
    if (hs_saddle_find(&f, &at)) return HS_NO_SADDLE;
    C->eps = at.eps;
    C->log_est = at.log_est;
    C->cancelled = fmax(0, k.K - c * C->eps - log(c * (1 + c) * C->sd) - 0.9 - C->log_est);
    /* the sum rounds to about e^{cancelled - 29}, so that aliases need not be smaller */
    C->nats = fmin(C->T0, fmax(-log(C->rtol), C->T0 - C->cancelled - 3));
    return C->cancelled < HS_LOSS_MAX ? HS_OK : HS_NO_SADDLE;
}

/* c to 24 bits, so that c + i n dy is exact, and K there where the sample is not all. */
static void shorten_tilt(placing *W, int again)
{
    hs_contour *C = W->C;
    C->c = hs_short_tilt(C->c);
    C->reach = 0.5 + (C->cancelled > 0 ? 12 : 4) /
                         C->c; /* the leading-order log delta may be off by nats, more so that of the bulk */
    if (W->X->n == C->run.b) return;
    W->part = sample_cgf(C, W->X, C->c);
    if (again) W->all = total_cgf(C, W->X, C->c);
}

/* Moves the line to depth `low`, unless that loses more than it is worth, `most` nats apart: the more, the larger
 * the share of rare jumps, which the nodes would have to follow, in the variance at the saddle, sd^2; *ratio: sd
 * over what is left of it. */
static int lowered(placing *W, int have_eps, double log_delta, double low, double sd, double most, double *ratio)
{
    hs_contour above = *W->C;
    placing before = *W;
    int st = shallow(W, have_eps, log_delta, low);
    *ratio = sd / W->C->sd;
    if (st || W->C->cancelled > most + fmin(7, 2 + 1.5 * log2(*ratio))) {
        *W->C = above;
        *W = before;
        return 0;
    }
    W->C->depth = low;
    shorten_tilt(W, 0);
    return 1;
}

/* Of a line at the saddle whose aliases ask for a much longer period than a normal law's 8 sd, one below it; and one
 * further down where next to all of the variance is that of jumps, or the period is still long. */
static void place_low(placing *W, int have_eps, double log_delta)
{
    double sd = W->C->sd, ratio, deep;
    hs_aliases A = {cgf_near_line, W, W->C->c, W->C->eps, sd, W->C->log_est - W->C->nats};
    if (hs_alias_period(&A, W->C->c + 7 / sd) > HS_LINE_PERIOD * sd &&
        !lowered(W, have_eps, log_delta, HS_LINE_LOWER, sd, 0, &ratio) && ratio < 6)
        lowered(W, have_eps, log_delta, HS_LINE_BETWEEN, sd, 0, &ratio);
    if (W->C->depth == HS_LINE_LOWER && ratio > 5) lowered(W, have_eps, log_delta, HS_LINE_LOWEST, sd, 2, &deep);
    place_aliases(W);
    if (W->C->depth == HS_LINE_LOWER && W->C->P > HS_LINE_LONG * W->C->sd &&
        lowered(W, have_eps, log_delta, HS_LINE_LOWEST, sd, 0, &deep))
        place_aliases(W);
}

/* Whether phi levels off early, at what no jump of any step leaves of it, so that the line would be long: by how many
 * nats, at the saddle of REMOVE, or in ADD, where few jumps weigh less than none, for how many jumps. */
static int levels_off(const placing *W)
{
    const hs_contour *C = W->C;
    double fall = C->run.add ? 0 : W->all.K;
    int i;
    for (i = 0; i < W->X->n; i++) {
        int64_t j = W->X->at[i];
        int pair = hs_is_pair(C, j);
        double none = W->X->share[i] * log1p(-(pair ? C->run.pair[j].q[0] : C->run.q[j]));
        fall -= none * (pair || C->run.add ? 1 : 1 + C->t);
    }
    return fall < (C->run.add ? HS_HYP_RECORDS : HS_HYP_JUMPS) * (C->n_max == HS_SHORT_PAIR ? HS_HYP_PAIR : 1);
}

/* c near the saddle of C->eps (or of log_delta, then C->eps as well) or below it, at C->depth <= depth times the
 * saddle; P, the alias tilts. At depth < 1 the saddle is that of a call before. HS_NO_SADDLE: no smaller depth will
 * do. work: HS_SAMPLE_WORK doubles. */
int hs_contour_place(hs_contour *C, int have_eps, double log_delta, double depth, double *work)
{
    hs_sample X;
    placing W = {.C = C, .X = &X};
    int st, pairs = hs_has_pairs(C);
    take_sample(C, &X, work);
    C->cancelled = 0;
    C->nats = C->T0;
    C->depth = depth;
    if (depth == 1) {
        C->t = 0;
        if ((st = saddle(&W, have_eps, log_delta))) return st;
        if ((C->n_max == HS_SHORT_LINE || C->n_max == HS_SHORT_PAIR) && levels_off(&W)) return HS_TOO_MANY_NODES;
        /* two standard units left of the saddle K grows later and P is smaller, at e^2 times the rounding */
        C->c = fmax(pairs ? fmax(C->t - 2 / C->sd, 0.5 * C->t) : C->t, 0.7 / C->sd);
    } else if ((st = shallow(&W, have_eps, log_delta, depth))) return st;
    shorten_tilt(&W, C->c != C->t && depth == 1);
    if (depth == 1 && !pairs) place_low(&W, have_eps, log_delta);
    else place_aliases(&W);
    return C->P > 0 && C->P < 1e12 ? HS_OK : HS_OUT_OF_RANGE;
}
