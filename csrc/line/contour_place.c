/* contour_place.c - where the contour of contour.c goes: tilt c and period P. contour_plan.c: how far.
 *
 * Nothing here enters a bound [theory: line.planning]: every choice is valid, a bad one only makes a bound wide. So at
 * most HS_SAMPLE of the steps are looked at closely; K of the others enters through its value and slope at c and the
 * ratio of curvatures.
 *
 * Symbols as in contour.c.
 */
#include "line/contour.h"

/* K, K', K'' at z of all steps, or of so many that the rest does not matter (take_crowd). */
static hs_cgf total_cgf(const hs_contour *C, const hs_sample *X, double z)
{
    double a = hs_contour_tilt(C, z), part[HS_CHUNKS][3];
    hs_cgf out = {0, 0, 0};
    int chunk, i;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(static) if (C->n_threads > 1)
#endif
    for (chunk = 0; chunk < C->chunks; chunk++) {
        int64_t i, lo = hs_chunk_at(X->crowd, chunk, C->chunks), hi = hs_chunk_at(X->crowd, chunk + 1, C->chunks);
        part[chunk][0] = part[chunk][1] = part[chunk][2] = 0;
        for (i = lo; i < hi; i++) {
            int64_t j = X->who ? (int64_t)X->who[i] : i;
            double o[3], k = X->who ? X->weight[i] : C->k[j];
            if (hs_is_pair(C, j)) {
                hs_two_cgf_estimate(&C->pair[j], z, o);
                if (C->add) o[1] = -o[1];
            } /* turned already */
            else
                hs_cgf_estimate(C->m[j], C->q[j], a, o);
            for (int r = 0; r < 3; r++) part[chunk][r] += k * o[r];
        }
    }
    for (i = 0; i < C->chunks; i++) {
        out.K += part[i][0];
        out.K1 += part[i][1];
        out.K2 += part[i][2];
    }
    if (C->add) out.K1 = -out.K1;
    return out;
}

static hs_cgf sample_cgf(const hs_contour *C, hs_sample *X, double z)
{
    double a = hs_contour_tilt(C, z), o[3];
    hs_cgf out = {0, 0, 0};
    int i;
    for (i = 0; i < X->n; i++) {
        double m = C->m[X->at[i]], q = C->q[X->at[i]], k = C->k[X->at[i]];
        hs_coarse *G = &X->grid[i];
        if (hs_is_pair(C, X->at[i])) {
            hs_two_coarse *T = &X->two[i];
            if (!(T->z_lo <= z && z <= T->z_hi))
                hs_two_coarse_build(T, &C->pair[X->at[i]], z - fabs(z) - 3, z + 1.2 * fabs(z) + 3,
                                    X->work + i * X->stride, X->stride);
            if (T->z_lo <= z && z <= T->z_hi) hs_two_coarse_cgf(T, z, o);
            else hs_two_cgf_estimate(&C->pair[X->at[i]], z, o);
            out.K += k * o[0];
            out.K1 += k * o[1];
            out.K2 += k * o[2];
            continue;
        }
        if (q < 1 && !(G->a_lo <= a && a <= G->a_hi)) /* room for the alias tilts as well */
            hs_coarse_build(G, m, q, a - fabs(a) - 3, a + 1.2 * fabs(a) + 3, HS_COARSE_MAX, X->work + i * X->stride);
        if (q < 1 && G->a_lo <= a && a <= G->a_hi) hs_coarse_cgf(G, a, o);
        else hs_cgf_estimate(m, q, a, o);
        out.K += k * o[0];
        out.K1 += k * (C->add ? -o[1] : o[1]);
        out.K2 += k * o[2];
    }
    return out;
}

/* About the variance of the loss of step j; *m: how far its two normal laws are apart. */
static double rough_variance(const hs_contour *C, int64_t j, double *m)
{
    double q = C->q[j];
    *m = C->m[j];
    if (hs_is_pair(C, j)) {
        *m = C->pair[j].up[0] + C->pair[j].down[0];
        q = C->pair[j].q[0];
    }
    return hs_rough_variance(*m, q);
}

/* At most HS_CROWD steps that stand for all: step j with chance p_j, half by its count and half by its share of the
 * variance, by systematic sampling, with weight k_j/(n p_j). */
static void take_crowd(const hs_contour *C, hs_sample *X, double *work)
{
    double all = 0, sum = 0, picks = 0, m;
    int64_t j;
    X->crowd = C->b;
    X->who = X->weight = NULL;
    if (C->b <= 2 * HS_CROWD) return;
    X->who = work;
    X->weight = work + HS_CROWD + 1;
    for (j = 0; j < C->b; j++) all += C->k[j] * rough_variance(C, j, &m);
    for (X->crowd = j = 0; j < C->b && X->crowd <= HS_CROWD; j++) {
        double p = HS_CROWD * C->k[j] * (0.5 / C->ktot + 0.5 * rough_variance(C, j, &m) / all), now;
        sum += p;
        now = floor(sum);
        if (now > picks) {
            X->who[X->crowd] = (double)j;
            X->weight[X->crowd++] = C->k[j] * (now - picks) / p;
        }
        picks = now;
    }
}

static void take_sample(hs_contour *C, hs_sample *X, double *work)
{
    int64_t i;
    for (C->ktot = 0, i = 0; i < C->b; i++) C->ktot += C->k[i];
    X->n = C->b < HS_SAMPLE ? C->b : HS_SAMPLE;
    X->k = 0;
    X->work = work;
    X->stride = HS_STEPS_WORK / X->n;
    for (i = 0; i < X->n; i++) {
        X->at[i] = (int64_t)((double)C->b * i / X->n);
        X->k += C->k[X->at[i]];
        X->grid[i].a_lo = X->two[i].z_lo = 1;
        X->grid[i].a_hi = X->two[i].z_hi = 0; /* not built */
    }
    take_crowd(C, X, work + HS_STEPS_WORK);
}

/* Saddle t: root of G(t) = K'(t) - eps - 1/t - 1/(1+t), or with eps eliminated (eps(t) = K' - 1/t - 1/(1+t)) of
 * log delta_est(t) = log delta. Newton in log t inside a bracket. On the whole run, or on the sample scaled to it. */
static int find_saddle(hs_contour *C, hs_sample *X, int whole, int have_eps, double log_delta, hs_cgf *at)
{
    double lo = 0, hi = 0, t = C->t, G, F2, step, scale = whole ? 1 : C->ktot / X->k,
           done = !whole && X->n < C->b ? 0.3 : 0.1;
    int it;
    for (it = 0; it < 80; it++) {
        hs_cgf k = whole ? total_cgf(C, X, t) : sample_cgf(C, X, t);
        k.K *= scale;
        k.K1 *= scale;
        k.K2 *= scale;
        F2 = k.K2 + 1 / (t * t) + 1 / ((1 + t) * (1 + t));
        if (!(F2 > 0 && F2 < 1e300)) {
            hi = t;
            t = lo > 0 ? sqrt(lo * hi) : 0.1 * t;
            continue;
        }
        *at = k;
        C->log_est = k.K - log(t) - log1p(t) - 0.5 * log(2 * HS_PI * F2);
        if (have_eps) {
            double want = C->eps + 1 / t + 1 / (1 + t);
            C->log_est -= C->eps * t;
            G = k.K1 - want;
            step = -G / (t * F2);
            if (k.K1 > 0 && want > 0) step = -log(k.K1 / want) / (t * (k.K2 / k.K1 + (F2 - k.K2) / want));
            if (fabs(G) < 0.1 * sqrt(F2)) break;
        } else {
            C->eps = k.K1 - 1 / t - 1 / (1 + t);
            C->log_est -= C->eps * t;
            G = log_delta - C->log_est; /* increases with t, as log_est decreases */
            step = -G / (t * t * F2);   /* or for the log of log delta, for K may grow like e^{t^2} */
            if (C->log_est < 0) step = log(C->log_est / log_delta) * C->log_est / (t * t * F2);
            if (fabs(G) < done) break;
        }
        if (G < 0) lo = t;
        else hi = t;
        step = fmax(-1.2, fmin(1.2, step));
        step = t * exp(step);
        if ((lo > 0 && step <= lo) || (hi > 0 && step >= hi) || !(step > 0))
            step = lo > 0 && hi > 0 ? sqrt(lo * hi) : lo > 0 ? 2 * lo : 0.5 * hi;
        t = step;
        if (!(t > 1e-12 && t < 1e12)) return HS_NO_SADDLE;
    }
    if (it == 80) return HS_NO_SADDLE;
    C->t = t;
    C->sd = sqrt(at->K2);
    return HS_OK;
}

/* A start: the normal law of variance sum k q^2 (e^{m^2} - 1), kept where rare jumps do not take over. */
static double guess_tilt(const hs_contour *C, double log_delta)
{
    double v = 0, m = 0, one;
    int64_t j;
    for (j = 0; j < C->b; j++) {
        v += C->k[j] * rough_variance(C, j, &one);
        m = fmax(m, one);
    }
    return fmax(1e-3, fmin(sqrt(fmax(0.5, -1.6 * log_delta)) / sqrt(v), 2 + 4 / (m * m)));
}

static int saddle(hs_contour *C, hs_sample *X, int have_eps, double log_delta, hs_cgf *at)
{
    int st;
    C->chunks = hs_chunks(C->b);
    if (!(C->t > 0)) C->t = have_eps ? 1 : guess_tilt(C, log_delta);
    st = find_saddle(C, X, 0, have_eps, log_delta, at);
    return st || X->n == C->b ? st : find_saddle(C, X, 1, have_eps, log_delta, at);
}

/* C->t, the tilt of the saddle. work: HS_SAMPLE_WORK doubles. */
int hs_contour_saddle(hs_contour *C, int have_eps, double log_delta, double *work)
{
    hs_sample X;
    hs_cgf at;
    take_sample(C, &X, work);
    return saddle(C, &X, have_eps, log_delta, &at);
}

typedef struct {
    hs_contour *C;
    hs_sample *X;
    hs_cgf all, part;
} window;

/* (K(s) - s eps + payoff + nats - log delta_est)/d at s = c +- d: a period for which that side's aliases are small
 * enough. */
static double period(const window *W, int left, double d, double *newton)
{
    const hs_contour *C = W->C;
    double s = left ? C->c - d : C->c + d, num, ratio = W->all.K2 / W->part.K2;
    hs_cgf k = sample_cgf(C, W->X, s);
    if (W->X->n < C->b) {
        k.K = W->all.K + W->all.K1 * (s - C->c) + ratio * (k.K - W->part.K - W->part.K1 * (s - C->c));
        k.K1 = W->all.K1 + ratio * (k.K1 - W->part.K1);
        k.K2 *= ratio;
    }
    num = k.K - s * C->eps + hs_payoff(s) - C->log_est + C->nats;
    *newton = d - (d * (left ? C->eps - k.K1 : k.K1 - C->eps) - num) / (d * fmax(k.K2, 1e-300));
    return num > 0 && num < 1e300 ? num / d : HUGE_VAL;
}

/* P = the larger of the two sides' least periods; the second side is good enough once it is below the first. num is
 * convex in d, so num/d is unimodal: Newton while it gains, and where it does not (K grows like e^{d^2} once rare
 * jumps take over), steps by a factor. Any d gives a valid P. */
static void place(window *W)
{
    hs_contour *C = W->C;
    int left, it;
    C->P = 0;
    for (left = 0; left < 2; left++) {
        double d = left                 ? fmin(7 / C->sd, 2 * (C->s_right - C->c))
                   : C->c < 0.95 * C->t ? C->t - C->c
                                        : 7 / C->sd,
               next, best = period(W, left, d, &next), factor = 0.65;
        for (it = 0; it < 14 && !(best <= C->P); it++) {
            double at, trial, newton;
            trial = fmax(0.25 * d, fmin(2.5 * d, next));
            if (it < 2 && fabs(trial - d) < 0.1 * d) {
                if (best < 9.5 * C->sd) break; /* a normal law has P = sqrt(2 T0) sd */
                it = 2;                        /* Newton creeps where K explodes */
            }
            if (it >= 2 || !(best < HUGE_VAL)) trial = d * factor;
            if (fabs(trial - d) < 0.1 * d) break;
            at = period(W, left, trial, &newton);
            if (at < best || !(best < HUGE_VAL)) {
                if (at > 0.95 * best && it > 0) it = 14;
                best = at;
                d = trial;
                next = newton;
            } else if (it >= 2) {
                if (factor < 0.7) factor = 1.5;
                else if (factor > 1.4) factor = 0.85;
                else break;
            }
        }
        *(left ? &C->s_left : &C->s_right) = left ? C->c - d : C->c + d;
        if (W->X->n < C->b) {
            double s = left ? C->c - d : C->c + d;
            best = fmax(0.8 * best, (total_cgf(C, W->X, s).K - s * C->eps + hs_payoff(s) - C->log_est + C->nats) / d);
        }
        C->P = fmax(C->P, best);
    }
    C->dy = 2 * HS_PI / C->P;
}

/* A line at depth * t, for losses whose rare jumps explode K near its saddle t, so that aliases there need a long
 * period. The jumps do not matter at the line: eps, or delta, comes from the parabola of K there, and C->loss is how
 * many nats of delta the sum loses to cancellation. */
static int shallow(hs_contour *C, hs_sample *X, int have_eps, double log_delta, double depth, hs_cgf *at)
{
    double c = C->c = depth * C->t, lo = -0.9 * c, hi, x = 0, sd;
    hs_cgf k = *at = X->n < C->b ? total_cgf(C, X, c) : sample_cgf(C, X, c);
    int it;
    if (!(k.K2 > 0 && k.K2 < 1e300)) return HS_NO_SADDLE;
    sd = C->sd = sqrt(k.K2);
    for (hi = 40 / sd, it = 0; it < 60; it++) { /* Newton inside a bracket, as in find_saddle */
        double t = c + x, w = 1 / t + 1 / (1 + t), F2 = k.K2 + 1 / (t * t) + 1 / ((1 + t) * (1 + t)), G;
        if (!have_eps) C->eps = k.K1 + k.K2 * x - w;
        C->log_est = k.K + k.K1 * x + 0.5 * k.K2 * x * x - t * C->eps - log(t * (1 + t)) - 0.5 * log(2 * HS_PI * F2);
        G = have_eps ? k.K1 + k.K2 * x - w - C->eps : log_delta - C->log_est;
        if (fabs(G) < (have_eps ? 0.02 * sqrt(F2) : 0.02)) break;
        if (G < 0) lo = x;
        else hi = x;
        x -= G / (have_eps ? F2 : t * F2);
        if (!(lo < x && x < hi)) x = 0.5 * (lo + hi);
    }
    C->loss = fmax(0, k.K - c * C->eps - log(c * (1 + c) * sd) - 0.9 - C->log_est);
    C->nats = fmin(
        C->T0, fmax(-log(C->rtol), C->T0 - C->loss - 3)); /* the sum rounds to about e^{loss - 29}: no need for less */
    return C->loss < HS_LOSS_MAX ? HS_OK : HS_NO_SADDLE;
}

/* c to 24 bits, so that c + i n dy is exact, and K there where the sample is not all. */
static void settle(window *W, int again)
{
    hs_contour *C = W->C;
    int e;
    C->c = frexp(C->c, &e);
    C->c = ldexp(floor(C->c * 16777216) / 16777216, e);
    C->reach = 0.5 + (C->loss > 0 ? 12 : 4) /
                         C->c; /* the leading-order log delta may be off by nats, more so that of the bulk */
    if (W->X->n == C->b) return;
    W->part = sample_cgf(C, W->X, C->c);
    if (again) W->all = total_cgf(C, W->X, C->c);
}

/* Moves the line to depth `low`, unless that loses more than it is worth, `spare` nats apart: the more, the larger
 * the share of rare jumps, which the nodes would have to follow, in the variance at the saddle, sd^2; *ratio: sd
 * over what is left of it. */
static int moved(window *W, int have_eps, double log_delta, double low, double sd, double spare, double *ratio)
{
    hs_contour above = *W->C;
    window before = *W;
    int st = shallow(W->C, W->X, have_eps, log_delta, low, &W->all);
    *ratio = sd / W->C->sd;
    if (st || W->C->loss > spare + fmin(7, 2 + 1.5 * log2(*ratio))) {
        *W->C = above;
        *W = before;
        return 0;
    }
    W->C->depth = low;
    settle(W, 0);
    return 1;
}

/* Of a line at the saddle whose aliases ask for a much longer period than a normal law's 8 sd, one below it; and one
 * further down where next to all of the variance is that of jumps, or the period is still long. */
static void place_low(window *W, int have_eps, double log_delta)
{
    double sd = W->C->sd, newton, ratio, deep;
    if (period(W, 0, 7 / sd, &newton) > 24 * sd && !moved(W, have_eps, log_delta, 0.6, sd, 0, &ratio) && ratio < 6)
        moved(W, have_eps, log_delta, 0.75, sd, 0, &ratio);
    if (W->C->depth == 0.6 && ratio > 5) moved(W, have_eps, log_delta, 0.42, sd, 2, &deep);
    place(W);
    if (W->C->depth == 0.6 && W->C->P > 28 * W->C->sd && moved(W, have_eps, log_delta, 0.42, sd, 0, &deep)) place(W);
}

/* c near the saddle of C->eps (or of log_delta, then C->eps as well) or below it, at C->depth <= depth times the
 * saddle; P, the alias tilts. At depth < 1 the saddle is that of a call before. HS_NO_SADDLE: no smaller depth will
 * do. work: HS_SAMPLE_WORK doubles. */
int hs_contour_place(hs_contour *C, int have_eps, double log_delta, double depth, double *work)
{
    hs_sample X;
    window W = {C, &X, {0, 0, 0}, {0, 0, 0}};
    int st, pairs = hs_has_pairs(C);
    take_sample(C, &X, work);
    C->loss = 0;
    C->nats = C->T0;
    C->depth = depth;
    if (depth == 1) {
        C->t = 0;
        if ((st = saddle(C, &X, have_eps, log_delta, &W.all))) return st;
        /* two standard units left of the saddle K grows later and P is smaller, at e^2 times the rounding */
        C->c = fmax(pairs ? fmax(C->t - 2 / C->sd, 0.5 * C->t) : C->t, 0.7 / C->sd);
    } else if ((st = shallow(C, &X, have_eps, log_delta, depth, &W.all))) return st;
    settle(&W, C->c != C->t && depth == 1);
    if (depth == 1 && !pairs) place_low(&W, have_eps, log_delta);
    else place(&W);
    return C->P > 0 && C->P < 1e12 ? HS_OK : HS_OUT_OF_RANGE;
}
