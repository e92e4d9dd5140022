/* saddlepoint.c - the saddle-point accountant: delta(eps) and eps(delta) of a composition at a cost that does not
 * depend on k.
 *
 * Symbols. K: cumulant function of the loss L = sum Y_i; t > 0 the tilt; x = L - eps; d = K'(t) - eps, s^2 = K''(t).
 *   f(x) = (e^{-tx} - e^{-(1+t)x}) 1{x > 0}, f_max = t^t/(1+t)^{1+t}. E_t: expectation under the law tilted by t.
 *   D: bound of the Kolmogorov distance of that law to N(K', s^2) (saddle_step.c). q: Mills' ratio.
 *
 * Formula. delta(eps) = e^{K(t) - eps t} E_t f, for every t in the domain [AGH+22, eqs 33-39]. Estimates are taken at
 *   the saddle K'(t) = eps + 1/t + 1/(1+t), certified ends (saddle_ends.c) at the tilt that is best for each of them,
 *   found by scanning Taylor's series of K about the saddle.
 *
 * Error claim. Ends of delta are those of saddle_ends.c at some tilt, ends of eps points at which such an end lies on
 *   the right side of the target: where the tilt is, how well the saddle was found, enters no bound.
 *
 * Both directions: eps_ADD <= e follows from delta_ADD(e) <= delta, e the lower end of REMOVE, and is asked at ADD's
 * first tilt.
 *
 * What it does not do: laws without a cumulant function; prove anything about an estimate.
 */
#include "hs.h"
#include "clt/saddlepoint.h"

#define BELOW (-1) /* status: this direction has been proved the smaller */
#define FEW 64     /* steps that are looked at four times without a thought */
#define NEAR 0.2   /* in standard deviations: an end is worse by e^{0.2^2/2}, 2%, so far from its best tilt */

/* A start for the saddle [AGH+22, Prop. 8]: b = (eps - mean)/deviation of the loss, or what a normal law would need for
 * log delta; below the tilt where rare jumps take over: k q^a e^{a(a-1)m^2/2} = |log delta| for one step, a = 1+t. */
static double guess(hs_steps *S, int have_eps, double value)
{
    double v = 0, m = 0, mean;
    double b, top = HUGE_VAL;
    int i;
    if (S->atoms) {
        hs_cgf c = hs_steps_cgf(S, 0, 1);
        v = sqrt(c.K2);
        mean = c.K1;
    } else {
        for (i = 0; i < S->b; i++) {
            v += S->k[i] * hs_rough_variance(S->m[i], S->q[i]);
            m = fmax(m, S->m[i]);
        }
        mean = 0.5 * v;
        v = sqrt(v);
        top = fmax(1, 1.5 / v) + 2 + 4 / (m * m) - (value < 0 ? value : 0) * 0.1;
        if (S->b == 1 && !S->add && S->q[0] < 1) {
            double c = 0.5 * m * m - log(S->q[0]), room = c * c - 2 * m * m * log(S->k[0] / fmax(1, fabs(value)));
            top = room > 0 ? fmax(0.5, (c + sqrt(room)) / (m * m) - 1) : HUGE_VAL;
        }
    }
    b = have_eps ? (value - mean) / v : sqrt(fmax(0.5, -1.6 * value));
    b = (b > -1e6 ? 0.5 * (b + sqrt(b * b + 4)) : -1 / b) / v;
    return fmax(1e-9, fmin(b, top));
}

typedef struct {
    hs_steps *S;
    int stride; /* of the steps that are summed */
} summing;

static hs_cgf cgf_of_summed(void *self, double t)
{
    const summing *W = (const summing *)self;
    return hs_steps_cgf(W->S, t, W->stride);
}

/* The saddle on every stride-th step, from *tilt, to `tol` nats of log delta, or a tilt at which Chernoff's bound is
 * below `enough`. */
static int newton(hs_steps *S, int have_eps, double value, int stride, double tol, double enough, double *tilt,
                  double *eps)
{
    summing W = {S, stride};
    hs_saddle_search f = {cgf_of_summed, &W, have_eps, value, tol, enough, 1e24};
    hs_tilt at = {.t = *tilt};
    int st = hs_saddle_find(&f, &at);
    *tilt = at.t;
    *eps = at.eps;
    return st ? HS_NO_SADDLE : HS_OK;
}

/* Newton for the saddle of eps on Taylor's series about T; the result is within reach of the series. */
static double polish(const hs_tilted *T, double eps, double *moved)
{
    double t = T->t, reach = 0.5 / sqrt(T->d[2]);
    hs_tilted at;
    int it;
    for (it = 0; it < 8; it++) {
        double G, F2, step;
        hs_tilted_move(T, t, &at);
        G = at.d[1] - eps - 1 / t - 1 / (1 + t);
        F2 = hs_saddle_bend(at.d[2], t);
        step = F2 > 0 ? -G / F2 : 0;
        step = fmax(-0.5 * t, fmin(0.5 * t, step));
        t = fmax(fmax(T->t - reach, 0.3 * T->t), fmin(T->t + reach, t + step));
        if (fabs(step) < 1e-13 * t) break;
    }
    *moved = fabs(t - T->t) * sqrt(T->d[2] + 1 / (T->t * T->t));
    return t;
}

/* eps at which the estimate, with the tilt held, is log_delta. */
static double solve_estimate(const hs_tilted *T, double eps, double log_delta, int kind)
{
    double slope = -T->t, e0 = eps, g0, g1;
    int it, use = kind;
    g0 = hs_pick_estimate(T, e0, &use) - log_delta;
    for (it = 0; it < 12 && g0 == g0 && fabs(g0) > 1e-14 * (1 + fabs(log_delta)); it++) {
        double e1 = e0 - fmax(-2, fmin(2, g0)) / slope, s;
        g1 = hs_pick_estimate(T, e1, &use) - log_delta;
        if (!(g1 == g1) || e1 == e0) break;
        s = (g1 - g0) / (e1 - e0);
        if (s < 0.2 * -T->t && s > 5 * -T->t) slope = s;
        if (fabs(g1) >= fabs(g0)) break;
        e0 = e1;
        g0 = g1;
    }
    return g0 == g0 ? e0 : eps;
}

/* Totals at, or within 0.2 standard deviations of, the saddle of eps or of the estimate's root for log_delta; and
 * the same carried to the saddle, for estimates. BELOW where delta at `floor` (if not infinite) is at most the
 * target. */
static int settle_saddle(hs_steps *S, int have_eps, double value, int kind, double floor, double *eps, hs_tilted *T,
                         hs_tilted *saddle)
{
    double t = guess(S, have_eps, value), moved;
    hs_ends E;
    int st, round;
    if ((st = newton(S, have_eps, value, S->stride, S->stride > 1 ? 0.05 : 2e-3, -HUGE_VAL, &t, eps))) return st;
    /* totals with bounds take five times as long as an estimate of K: they are not left to correct a sample's tilt */
    if (S->stride > 1 && (st = newton(S, have_eps, value, 1, 0.02, -HUGE_VAL, &t, eps))) return st;
    for (round = 0; round < 4; round++) {
        if ((st = hs_steps_tilted(S, t, T))) return st;
        if (round == 0 && floor > -HUGE_VAL) {
            hs_ends_at(T, floor, &E);
            if (E.log_upper <= value) return BELOW;
        }
        if (!have_eps) {
            *eps = T->d[1] - 1 / t - 1 / (1 + t);
            *eps = solve_estimate(T, *eps, value, kind);
        }
        t = polish(T, *eps, &moved);
        if (moved < (kind >= HS_MSD_K2 ? 1e-6 : S->b > 8 ? 0.2 : 0.02)) break; /* K6 is not moved */
        if (round == 1 && moved > 0.3 && (st = newton(S, have_eps, value, 1, 0.02, -HUGE_VAL, &t, eps))) return st;
    }
    hs_tilted_move(T, t, saddle);
    if (!have_eps) *eps = solve_estimate(saddle, *eps, value, kind);
    return HS_OK;
}

/* The objective of `search`: the upper end at eps, or minus the lower end, by Taylor's series and without its error
 * terms. */
static double end_at(const hs_tilted *T, double t, double eps, int up)
{
    hs_tilted M;
    hs_ends E;
    hs_tilted_move(T, t, &M);
    if (!(t > 0.2 * T->t && M.d[2] > 0)) return HUGE_VAL;
    M.K_err = M.mean_err = M.var_err = 0;
    hs_ends_at(&M, eps, &E);
    return up ? E.log_upper : -E.log_lower;
}

/* A tilt near which the upper (up = 1) or lower end at eps is best: downhill in steps of 0.4 standard deviations
 * from the tilt whose mean is at the top of f, then the vertex of the last three points. Any tilt is valid. */
static double search(const hs_tilted *T, double eps, int up, double *value)
{
    double s = sqrt(T->d[2] + 1 / (T->t * T->t)), x = fmax(-1, (eps + log1p(1 / T->t) - T->d[1]) / s), y;
    double left, right, step = 0.4;
    int it;
    y = end_at(T, T->t + x / s, eps, up);
    left = end_at(T, T->t + (x - step) / s, eps, up);
    right = end_at(T, T->t + (x + step) / s, eps, up);
    for (it = 0; it < 5 && fmin(left, right) < y; it++) {
        if (right < left) {
            x += step;
            left = y;
            y = right;
            right = end_at(T, T->t + (x + step) / s, eps, up);
        } else {
            x -= step;
            right = y;
            y = left;
            left = end_at(T, T->t + (x - step) / s, eps, up);
        }
    }
    if (y < left && y < right && left + right < HUGE_VAL) x += 0.5 * step * (left - right) / (left - 2 * y + right);
    *value = up ? y : -y;
    return T->t + x / s;
}

/* How far a tilt is from the one wanted for Chebyshev's end, increasing with t: K'(t) - kap s(t) = eps (in units of
 * kap - 1), or that end itself = log_delta; kap minimises 2 t s kap - log(1 - 1/kap^2). */
static double chebyshev_gap(const hs_tilted *T, int have_eps, double value, double *eps)
{
    double s = sqrt(T->d[2]), kap = 1.3, t = T->t;
    int i;
    if (!(T->d[2] > 0)) return HUGE_VAL;
    for (i = 0; i < 6; i++) kap -= (kap * kap * kap - kap - 1 / (t * s)) / (3 * kap * kap - 1);
    *eps = have_eps ? value : T->d[1] - kap * s;
    return have_eps ? ((T->d[1] - value) / s - kap) / (kap - 1)
                    : value - (T->K - *eps * t + hs_log_chebyshev_lower(t, kap * s, T->d[2]));
}

/* Totals at a tilt for Chebyshev's end, by bisection on Taylor's series about the last totals; the eps that it is
 * good for. That eps and the gap grow with the tilt but for jumps: after `patience` rounds, where it is not above
 * `floor` and the tilt is too large, no such end is expected above `floor`. */
static int chebyshev_totals(hs_steps *S, int have_eps, double value, double floor, int patience, hs_tilted *at,
                            double *eps)
{
    hs_tilted M;
    int round, i, st;
    *eps = have_eps ? value : HUGE_VAL;
    for (round = 0; round < (S->b > 8 ? 3 : 10); round++) {
        double reach = 1 / sqrt(at->d[2]), lo = fmax(0.3 * at->t, at->t - reach), hi = at->t + reach, g;
        g = chebyshev_gap(at, have_eps, value, eps);
        if (round && fabs(g) < (have_eps ? 0.3 : 0.1)) break; /* d/s - 1 within 0.7 and 1.3 of kap - 1 */
        if (!have_eps && round >= patience && g > 0 && *eps <= floor) return HS_NO_BRACKET;
        for (i = 0; i < 9; i++) {
            double t = 0.5 * (lo + hi);
            hs_tilted_move(at, t, &M);
            if (chebyshev_gap(&M, have_eps, value, eps) < 0) lo = t;
            else hi = t;
        }
        if ((st = hs_steps_tilted(S, 0.5 * (lo + hi), at))) return st;
    }
    chebyshev_gap(at, have_eps, value, eps);
    return HS_OK;
}

/* Tilts that are close to each other, or to the one at hand, become one. */
static void share(const hs_tilted *T, double *tilt, const double *value)
{
    double near = NEAR / sqrt(T->d[2] + 1 / (T->t * T->t));
    int up;
    if (fabs(value[0]) < HUGE_VAL && fabs(value[1]) < HUGE_VAL && fabs(tilt[0] - tilt[1]) < 2 * near)
        tilt[0] = tilt[1] = 0.5 * (tilt[0] + tilt[1]);
    for (up = 0; up < 2; up++)
        if (fabs(tilt[up] - T->t) < 0.5 * near) tilt[up] = T->t;
}

static void report(const hs_tilted *T, const hs_tilted *saddle, const hs_ends *E, double eps, int kind, hs_saddle *out)
{
    double unit = exp(T->K - eps * T->t - out->log_estimate);
    out->kind = kind;
    out->tilt = saddle->t;
    out->skew = hs_skew(saddle);
    out->berry_esseen = E->error * unit;
    out->quadrature = T->quad;
    out->interpolation = T->fit;
    out->rounding = E->rounding;
}

/* Certified ends of log delta(eps), and an estimate, clipped into them. */
static int answer_delta(hs_steps *S, double eps, int kind, hs_saddle *out)
{
    hs_tilted T, at, saddle;
    hs_ends E, first;
    double value[2], tilt[2], found;
    int st, up;
    if ((st = settle_saddle(S, 1, eps, kind, -HUGE_VAL, &eps, &T, &saddle))) return st;
    out->raw_estimate = out->log_estimate = hs_pick_estimate(&saddle, eps, &kind);
    hs_ends_at(&T, eps, &first);
    out->lower = first.log_lower;
    out->upper = first.log_upper;
    for (up = 0; up < 2; up++) tilt[up] = search(&T, eps, up, &value[up]);
    share(&T, tilt, value);
    for (up = 0; up < 2; up++) {
        if (!(fabs(value[up]) < HUGE_VAL) || tilt[up] == T.t || (up && tilt[1] == tilt[0])) continue;
        if (hs_steps_tilted(S, tilt[up], &at)) continue;
        hs_ends_at(&at, eps, &E);
        out->lower = fmax(out->lower, E.log_lower);
        out->upper = fmin(out->upper, E.log_upper);
    }
    if (out->lower < out->upper - 3 && (at = T, !chebyshev_totals(S, 1, eps, 0, 0, &at, &found))) {
        hs_ends_at(&at, eps, &E);
        out->lower = fmax(out->lower, E.log_lower);
    }
    if (!(out->log_estimate > out->lower)) out->log_estimate = out->lower;
    if (!(out->log_estimate < out->upper)) out->log_estimate = out->upper;
    report(&T, &saddle, &first, eps, kind, out);
    return HS_OK;
}

/* eps at which one end, at one tilt, meets log_delta, a rounded log, on the safe side; HUGE_VAL (up) or -HUGE_VAL if
 * it never does. */
static double end_root(const hs_tilted *T, double eps, double log_delta, int up)
{
    double e0 = eps, g0 = 0, slope = -T->t, tiny = 1e-14 * (1 + fabs(log_delta));
    double slack = 4 * HS_U * (2 + fabs(log_delta)), out, last = 0;
    hs_ends E;
    int it;
    for (it = 0; it < 16; it++) {
        double g;
        hs_ends_at(T, e0, &E);
        g = (up ? E.log_upper : E.log_lower) - log_delta;
        if (g == -HUGE_VAL) {
            e0 -= 1 / sqrt(T->d[2]) + 1 / T->t;
            g0 = 0;
            continue;
        }
        if (fabs(g) < tiny + (E.clt > 0 ? fmin(1e-2, 1e-2 * E.error / E.clt) : 1e-2)) break;
        if (g0 != 0) {
            double s = (g - g0) / (e0 - last);
            if (s < 0.1 * -T->t && s > 10 * -T->t) slope = s;
        }
        last = e0;
        g0 = g;
        e0 -= fmax(-4, fmin(4, g)) / slope;
    }
    out = e0;
    if (it == 16) hs_ends_at(T, out, &E); /* E belongs to `out` from here on */
    for (it = 0; it < 50; it++) {         /* the safe side: a distance of the order of what is left, then ever larger */
        double g = (up ? E.log_upper : E.log_lower) - log_delta;
        if (up ? g <= -slack : g >= slack) return out;
        out = e0 + (up ? 1 : -1) * ldexp(1.05 * fmin(fabs(g) + slack, 1) / T->t, it);
        hs_ends_at(T, out, &E);
    }
    return up ? HUGE_VAL : -HUGE_VAL;
}

/* The eps at which the best upper (up = 1) or lower end is about log_delta, by secant steps from eps, where that end
 * is `gap` above it at the saddle; the tilt for it, and the end there. */
static void plan_root(const hs_tilted *T, double eps, double log_delta, int up, double gap, double *target,
                      double *tilt, double *value)
{
    double slope = T->t, last = 0, g0 = 0, g;
    int round;
    *target = eps + (fabs(gap) < HUGE_VAL ? fmax(-2, fmin(2, gap)) / T->t : 0);
    for (round = 0; round < 10; round++) {
        *tilt = search(T, *target, up, value);
        g = *value - log_delta;
        if (fabs(g) < 0.2) break;
        if (!(fabs(g) < HUGE_VAL)) { /* no end here */
            if (up || round > 5) break;
            *target = round && g0 != 0 ? 0.5 * (*target + last) : *target - 1 / T->t;
            continue;
        }
        if (g0 != 0) slope = fmax(0.3 * T->t, fmin(3 * T->t, (g0 - g) / (*target - last)));
        last = *target;
        g0 = g;
        *target += fmax(-2, fmin(2, g)) / slope;
    }
}

/* Certified ends of eps(delta): each is a point where a certified end of delta lies on the right side of the target.
 * BELOW where they are not wanted because eps(delta) <= floor. T: the totals at the saddle. */
static int clt_ends(hs_steps *S, double log_delta, int kind, double floor, hs_tilted *T, hs_saddle *out)
{
    hs_tilted at, saddle;
    hs_ends E;
    double eps, target[2], value[2], tilt[2];
    int st, up;
    if ((st = settle_saddle(S, 0, log_delta, kind, floor, &eps, T, &saddle))) return st;
    out->log_estimate = log_delta;
    hs_pick_estimate(&saddle, eps, &kind);
    hs_ends_at(T, eps, &E);
    report(T, &saddle, &E, eps, kind, out);
    out->lower = value[0] = -HUGE_VAL;
    out->upper = HUGE_VAL;
    tilt[0] = T->t; /* far from normal Chebyshev's end is all there is below */
    if (E.error < 4 * E.clt) plan_root(T, eps, log_delta, 0, E.log_lower - log_delta, &target[0], &tilt[0], &value[0]);
    plan_root(T, eps, log_delta, 1, E.log_upper - log_delta, &target[1], &tilt[1], &value[1]);
    share(T, tilt, value);
    at = *T;
    for (up = 0; up < 2; up++) {
        if (!(fabs(value[up]) < HUGE_VAL)) {
            if (up) out->upper = end_root(T, eps, log_delta, 1);
            continue;
        }
        if (tilt[up] != at.t && hs_steps_tilted(S, tilt[up], &at)) at = *T;
        if (up) out->upper = end_root(&at, target[1], log_delta, 1);
        else out->lower = end_root(&at, target[0], log_delta, 0);
    }
    out->raw_estimate = eps;
    return out->upper < HUGE_VAL ? HS_OK : HS_NO_BRACKET;
}

/* A better lower end by Chebyshev's inequality, if there is one above `floor`; and at its tilt, left of the jumps,
 * where the law may be near normal, a better upper one. */
static void chebyshev_ends(hs_steps *S, double log_delta, double floor, int patience, const hs_tilted *T,
                           hs_saddle *out)
{
    hs_tilted at = *T;
    hs_ends E;
    double found;
    if (!(out->lower < out->raw_estimate - (out->lower > 0 ? 4 : 1.5) / T->t)) return;
    if (chebyshev_totals(S, 0, log_delta, fmax(floor, out->lower), patience, &at, &found)) return;
    out->lower = fmax(out->lower, end_root(&at, found, log_delta, 0));
    hs_ends_at(&at, out->upper, &E);
    if (E.log_upper < log_delta) out->upper = fmin(out->upper, end_root(&at, out->upper, log_delta, 1));
}

static int answer_eps(hs_steps *S, double log_delta, int kind, double floor, hs_saddle *out)
{
    hs_tilted T;
    int st = clt_ends(S, log_delta, kind, floor, &T, out);
    if (st) return st;
    chebyshev_ends(S, log_delta, fmax(floor, 0), out->lower > 0 ? 0 : 2, &T, out);
    out->estimate = fmax(out->lower, fmin(out->upper, out->raw_estimate));
    return HS_OK;
}

int hs_saddle_delta(const hs_run *run, double eps, int kind, const hs_lent *lent, hs_saddle *out)
{
    hs_steps S;
    int st = hs_steps_open(&S, run, lent);
    return st ? st : answer_delta(&S, eps, kind, out);
}

int hs_saddle_eps(const hs_run *run, double log_delta, int kind, const hs_lent *lent, hs_saddle *out)
{
    hs_steps S;
    int st = hs_steps_open(&S, run, lent);
    return st ? st : answer_eps(&S, log_delta, kind, -HUGE_VAL, out);
}

/* The larger over the directions. No loss of ADD exceeds `wall`; ADD is left out where it ends at the lower end of
 * REMOVE, and Chebyshev's end of REMOVE where it is not expected above that of ADD. */
int hs_saddle_eps_both(const hs_run *run, double log_delta, int kind, double wall, const hs_lent *lent, hs_saddle *out)
{
    hs_run turned = *run;
    hs_steps S;
    hs_saddle add;
    hs_tilted T;
    double lower, mid;
    int st;
    turned.add = 0;
    st = hs_steps_open(&S, &turned, lent);
    if (st || (st = clt_ends(&S, log_delta, kind, -HUGE_VAL, &T, out))) return st;
    add.lower = add.estimate = add.upper = -HUGE_VAL;
    if (out->lower < wall) {
        turned.add = 1;
        hs_steps_open(&S, &turned, lent);
        st = answer_eps(&S, log_delta, kind, out->lower, &add);
        if (st && st != BELOW) return st;
        turned.add = 0;
        hs_steps_open(&S, &turned, lent);
    }
    chebyshev_ends(&S, log_delta, fmax(0, add.lower), add.lower > 0 ? 0 : 2, &T, out);
    lower = fmax(out->lower, add.lower);
    mid = fmax(fmin(out->upper, out->raw_estimate), add.estimate);
    if (add.upper > out->upper) *out = add;
    out->lower = lower;
    out->estimate = fmax(mid, lower);
    return HS_OK;
}

int hs_saddle_atoms(int b, const hs_atoms *atoms, const double *k, int have_eps, double value, int kind, hs_saddle *out)
{
    hs_steps S = {.b = b, .stride = 1, .n_threads = 1, .k = k, .atoms = atoms, .scale = 1};
    return b < 1      ? HS_BAD_ARGUMENT
           : have_eps ? answer_delta(&S, value, kind, out)
                      : answer_eps(&S, value, kind, -HUGE_VAL, out);
}

/* Log of e^{K(t) - eps t} f_max(t), rounded up (have_eps), or the eps where that is log_delta. */
static double moments_at(const hs_tilted *T, int have_eps, double value)
{
    double lf = hs_payoff(T->t), x = T->K + T->K_err + lf;
    x += HS_U * (8 * fabs(T->K) + 8 * fabs(lf) + 8 * fabs(value) * (1 + T->t) + 8);
    return have_eps ? fmin(0, x - value * T->t) : (x - value) / T->t + 8 * HS_U * fabs((x - value) / T->t);
}

/* The moments accountant: that bound at its best tilt, as log delta at eps (have_eps) or as eps at log delta. Where
 * the saddle is out of reach (next to the largest loss), the best of a ladder of tilts; every tilt is valid. */
int hs_saddle_moments_upper(const hs_run *run, int have_eps, double value, const hs_lent *lent, double *tilt,
                            double *upper)
{
    hs_steps S;
    hs_tilted T, M, saddle;
    double eps = value, x, t;
    int it, st = hs_steps_open(&S, run, lent);
    if (st) return st;
    *upper = HUGE_VAL;
    if (settle_saddle(&S, have_eps, value, HS_MSD0, -HUGE_VAL, &eps, &T, &saddle)) {
        for (t = 1e4; t > 1e-4; t *= 0.5)
            if (!hs_steps_tilted(&S, t, &T) && moments_at(&T, have_eps, value) < *upper) {
                *upper = moments_at(&T, have_eps, value);
                *tilt = t;
            }
        return *upper < HUGE_VAL ? HS_OK : HS_NO_SADDLE;
    }
    for (it = 0; it < 3; it++) { /* K'(t) = eps + log(1 + 1/t), by Newton on Taylor's series about the last tilt */
        double reach = 0.7 / sqrt(T.d[2]);
        int i;
        for (i = 0, t = T.t; i < 8; i++) {
            hs_tilted_move(&T, t, &M);
            if (!have_eps) eps = (M.K + hs_payoff(t) - value) / t;
            x = (M.d[1] - eps - log1p(1 / t)) / (M.d[2] + 1 / (t * (1 + t)));
            t = fmax(fmax(0.4 * t, T.t - reach), fmin(T.t + reach, t - x));
        }
        if (fabs(t - T.t) < 1e-6 * t) break;
        if (hs_steps_tilted(&S, t, &saddle)) break;
        T = saddle;
    }
    *tilt = T.t;
    *upper = moments_at(&T, have_eps, value);
    return *upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* log delta(eps) + eps t is at most this at every eps: Chernoff's bound, or where that is less the largest density of
 * the normal law that the tilted law is near [theory: saddle.any-eps]. */
static double ceiling_upper(const hs_tilted *T)
{
    double t = T->t, lf = hs_payoff(t);
    double top = HS_NORMAL_PEAK / (sqrt(T->d[2]) * t * (1 + t)) + 2 * exp(lf) * T->kolmogorov;
    lf = fmin(lf, log(top));
    return T->K + T->K_err + lf + HS_U * (8 * fabs(T->K) + 16 * (1 + fabs(lf)));
}

int hs_saddle_ceiling_upper(const hs_run *run, double tilt, const hs_lent *lent, double *at_zero)
{
    hs_steps S;
    hs_tilted T;
    int st = hs_steps_open(&S, run, lent);
    if (st || (st = hs_steps_tilted(&S, tilt, &T))) return st;
    *at_zero = ceiling_upper(&T);
    return *at_zero < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* An upper bound of log delta(eps) in the ADD direction without any grid, at the best of a few tilts
 * [theory: saddle.add]. */
static double add_upper(const hs_steps *S, double eps)
{
    double v = 0, best = HUGE_VAL, t;
    int i, it;
    for (i = 0; i < S->b; i++) v += S->k[i] * S->q[i] * S->q[i] * expm1(S->m[i] * S->m[i]);
    for (it = 0, t = eps / v; it < 4 && t > 0; it++, t *= 0.7) {
        double K = 0, lf = hs_payoff(t);
        for (i = 0; i < S->b; i++) {
            double m = S->m[i], q = S->q[i], x = (t + 2) * log1p(-q);
            K += S->k[i] * 0.5 * t * (t + 1) * q * q * expm1(m * m) *
                 exp(-x); /* |x| < 710, or K is infinite: its 4u are within 1e-12 */
        }
        best = fmin(best, K * (1 + 1e-12) - eps * t + lf + 4 * HS_U * (eps * t - lf));
    }
    return best;
}

/* One upper end of log delta(eps), at the saddle: Chernoff's, and where the law is near normal the CLT's, which is
 * close to delta. Or one that is below `enough`: without a grid, or at the first tilt tried at which Chernoff's is
 * about 0.1 below it. The tilt of a rule is that of its outline. */
int hs_saddle_delta_upper(const hs_run *run, double eps, double enough, const hs_lent *lent, hs_ceiling *out)
{
    hs_steps S;
    hs_tilted T;
    hs_ends E;
    double t;
    hs_run outline = hs_outline(run);
    int st = hs_steps_open(&S, &outline, lent);
    if (st) return st;
    if (lent->n_threads < 1 || lent->n_work < lent->n_threads * HS_GRID_WORK) return HS_SCRATCH;
    S.n_threads = lent->n_threads;
    out->tilt = out->at_zero = 0;
    if (run->add && run->b <= FEW && !run->n_fits && (out->log_delta = add_upper(&S, eps)) <= enough) return HS_OK;
    t = guess(&S, 1, eps);
    if ((st = newton(&S, 1, eps, S.stride, 0.02, enough - 0.1, &t, &eps))) return st;
    if (run->n_outline && (st = hs_steps_open(&S, run, lent))) return st;
    S.n_threads = lent->n_threads;
    if ((st = hs_steps_tilted(&S, t, &T))) return st;
    hs_ends_at(&T, eps, &E);
    out->log_delta = E.log_upper;
    out->tilt = t;
    out->at_zero = ceiling_upper(&T);
    return HS_OK;
}
