/* saddlepoint.c - the saddle-point accountant: delta(eps) and eps(delta) of a composition at a cost that does not depend on k.
 *
 * Symbols. K: cumulant function of the loss L = sum Y_i; t > 0 the tilt; x = L - eps; d = K'(t) - eps, s^2 = K''(t).
 *   f(x) = (e^{-tx} - e^{-(1+t)x}) 1{x > 0}, f_max = t^t/(1+t)^{1+t}. E_t: expectation under the law tilted by t.
 *   D: bound of the Kolmogorov distance of that law to N(K', s^2) (saddle_step.c). q: Mills' ratio.
 *
 * Formula. delta(eps) = e^{K(t) - eps t} E_t f, for every t in the domain [AGH+22, eqs 33-39]. Estimates are taken at the saddle
 *   K'(t) = eps + 1/t + 1/(1+t), certified ends (saddle_ends.c) at the tilt that is best for each of them, found by scanning
 *   Taylor's series of K about the saddle.
 *
 * Error claim. Ends of delta are those of saddle_ends.c at some tilt, ends of eps points at which such an end lies on the right side
 *   of the target: where the tilt is, how well the saddle was found, enters no bound.
 *
 * What it does not do: laws without a cumulant function; prove anything about an estimate.
 */
#include "hs.h"
#include "saddle.h"

#define NEAR 0.2                     /* in standard deviations: an end is worse by e^{0.2^2/2}, 2%, so far from its best tilt */

/* A start for the saddle [AGH+22, Prop. 8]: b = (eps - mean)/deviation of the loss, or what a normal law would need for
 * log delta; kept where rare jumps do not take over. */
static double guess(hs_steps *S, int have_eps, double value)
{
    double v = 0, m = 0, mean, b;
    int i;
    if (S->atoms) { hs_cgf3 c = hs_steps_cgf(S, 0, 1); v = sqrt(c.K2); mean = c.K1; }
    else {
        for (i = 0; i < S->b; i++) {
            v += S->k[i] * hs_rough_variance(S->m[i], S->q[i]);
            m = fmax(m, S->m[i]);
        }
        mean = 0.5 * v; v = sqrt(v);
    }
    b = have_eps ? (value - mean) / v : sqrt(fmax(0.5, -1.6 * value));
    b = (b > -1e6 ? 0.5 * (b + sqrt(b * b + 4)) : -1 / b) / v;
    return fmax(1e-9, S->atoms ? b : fmin(b, fmax(1, 1.5 / v) + 2 + 4 / (m * m) - (value < 0 ? value : 0) * 0.1));
}

/* Root of G(t) = K'(t) - eps - w(t), w = 1/t + 1/(1+t), or with eps eliminated of log MSD0(t) = log delta: Newton in log t inside
 * a bracket, until d log delta is below `tol` nats or so, or Chernoff's bound is below `enough`. */
static int newton(hs_steps *S, int have_eps, double value, int stride, double tol, double enough, double *tilt, double *eps)
{
    double lo = 0, hi = 0, t = *tilt, G, F2, step, w, log_est;
    hs_cgf3 k;
    int it;
    for (it = 0; it < 90; it++) {
        k = hs_steps_cgf(S, t, stride);
        w = 1 / t + 1 / (1 + t); F2 = k.K2 + 1 / (t * t) + 1 / ((1 + t) * (1 + t));
        if (!(F2 > 0 && F2 < 1e300)) { hi = t; t = lo > 0 ? sqrt(lo * hi) : 0.1 * t; continue; }
        *eps = have_eps ? value : k.K1 - w;
        log_est = k.K - *eps * t - log(t) - log1p(t) - 0.5 * log(2 * HS_PI * F2);
        if (enough > -HUGE_VAL && k.K - *eps * t + hs_f_max_log(t) < enough) { *tilt = t; return HS_OK; }
        G = have_eps ? k.K1 - value - w : value - log_est;
        if (have_eps ? G * G < 2 * tol * F2 : fabs(G) < tol) { *tilt = t; return HS_OK; }
        if (have_eps) {
            w += value;
            step = k.K1 > 0 && w > 0 ? -log(k.K1 / w) / (t * (k.K2 / k.K1 + (F2 - k.K2) / w)) : -G / (t * F2);
        } else step = -G / fmax(0.02, t * t * F2 - (1 / (t * t) + t / ((1 + t) * (1 + t) * (1 + t))) / F2); /* -d log MSD0/d log t, K3 left out */
        if (G < 0) lo = t; else hi = t;
        step = t * exp(fmax(-1.2, fmin(1.2, step)));
        if ((lo > 0 && step <= lo) || (hi > 0 && step >= hi) || !(step > 0))
            step = lo > 0 && hi > 0 ? sqrt(lo * hi) : lo > 0 ? 2 * lo : 0.5 * hi;
        if (lo > 0 && hi > 0 && hi - lo < 1e-14 * hi) return HS_NO_SADDLE;
        t = step;
        if (!(t > 1e-12 && t < 1e12)) return HS_NO_SADDLE;
    }
    return HS_NO_SADDLE;
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
        G = at.d[1] - eps - 1 / t - 1 / (1 + t); F2 = at.d[2] + 1 / (t * t) + 1 / ((1 + t) * (1 + t));
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
        e0 = e1; g0 = g1;
    }
    return g0 == g0 ? e0 : eps;
}

/* Totals at, or within 0.2 standard deviations of, the saddle of eps or of the estimate's root for log_delta; and the same
 * carried to the saddle, for estimates. */
static int settle(hs_steps *S, int have_eps, double value, int kind, double *eps, hs_tilted *T, hs_tilted *saddle)
{
    double t = guess(S, have_eps, value), moved;
    int st, round;
    if ((st = newton(S, have_eps, value, S->stride, S->stride > 1 ? 0.05 : 1e-4, -HUGE_VAL, &t, eps))) return st;
    for (round = 0; round < 4; round++) {
        if ((st = hs_steps_tilted(S, t, T))) return st;
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

/* The objective of `search`: the upper end at eps, or minus the lower end, by Taylor's series and without its error terms. */
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

/* A tilt near which the upper (up = 1) or lower end at eps is best: downhill in steps of 0.4 standard deviations from the tilt
 * whose mean is at the top of f, then the vertex of the last three points. Any tilt is valid. */
static double search(const hs_tilted *T, double eps, int up, double *value)
{
    double s = sqrt(T->d[2] + 1 / (T->t * T->t)), x = fmax(-1, (eps + log1p(1 / T->t) - T->d[1]) / s), y, left, right, step = 0.4;
    int it;
    y = end_at(T, T->t + x / s, eps, up);
    left = end_at(T, T->t + (x - step) / s, eps, up);
    right = end_at(T, T->t + (x + step) / s, eps, up);
    for (it = 0; it < 5 && fmin(left, right) < y; it++) {
        if (right < left) { x += step; left = y; y = right; right = end_at(T, T->t + (x + step) / s, eps, up); }
        else { x -= step; right = y; y = left; left = end_at(T, T->t + (x - step) / s, eps, up); }
    }
    if (y < left && y < right && left + right < HUGE_VAL) x += 0.5 * step * (left - right) / (left - 2 * y + right);
    *value = up ? y : -y;
    return T->t + x / s;
}

/* How far a tilt is from the one wanted for Chebyshev's end, increasing with t: K'(t) - kap s(t) = eps (in units of kap - 1), or
 * that end itself = log_delta; kap minimises 2 t s kap - log(1 - 1/kap^2). */
static double chebyshev_gap(const hs_tilted *T, int have_eps, double value, double *eps)
{
    double s = sqrt(T->d[2]), kap = 1.3, t = T->t;
    int i;
    if (!(T->d[2] > 0)) return HUGE_VAL;
    for (i = 0; i < 6; i++) kap -= (kap * kap * kap - kap - 1 / (t * s)) / (3 * kap * kap - 1);
    *eps = have_eps ? value : T->d[1] - kap * s;
    return have_eps ? ((T->d[1] - value) / s - kap) / (kap - 1) : value - (T->K - *eps * t + hs_log_chebyshev(t, kap * s, T->d[2]));
}

/* Totals at a tilt for Chebyshev's end, by bisection on Taylor's series about the last totals; the eps that it is good for. */
static int chebyshev_totals(const hs_steps *S, int have_eps, double value, hs_tilted *at, double *eps)
{
    hs_tilted M;
    int round, i, st;
    for (round = 0; round < (S->b > 8 ? 3 : 10); round++) {
        double reach = 1 / sqrt(at->d[2]), lo = fmax(0.3 * at->t, at->t - reach), hi = at->t + reach, g;
        for (i = 0; i < 9; i++) {
            double t = 0.5 * (lo + hi);
            hs_tilted_move(at, t, &M);
            if (chebyshev_gap(&M, have_eps, value, eps) < 0) lo = t; else hi = t;
        }
        if ((st = hs_steps_tilted(S, 0.5 * (lo + hi), at))) return st;
        g = chebyshev_gap(at, have_eps, value, eps);
        if (fabs(g) < (have_eps ? 0.3 : 0.1)) break; /* d/s - 1 within 0.7 and 1.3 of kap - 1 */
    }
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
    out->kind = kind; out->tilt = saddle->t; out->skew = hs_skew(saddle);
    out->berry_esseen = E->error * unit; out->quadrature = T->quad; out->rounding = T->K_err - T->quad;
}

/* Certified ends of log delta(eps), and an estimate, clipped into them. */
static int answer_delta(hs_steps *S, double eps, int kind, hs_saddle *out)
{
    hs_tilted T, at, saddle;
    hs_ends E, first;
    double value[2], tilt[2], found;
    int st, up;
    if ((st = settle(S, 1, eps, kind, &eps, &T, &saddle))) return st;
    out->raw_estimate = out->log_estimate = hs_pick_estimate(&saddle, eps, &kind);
    hs_ends_at(&T, eps, &first);
    out->lower = first.log_lower; out->upper = first.log_upper;
    for (up = 0; up < 2; up++) tilt[up] = search(&T, eps, up, &value[up]);
    share(&T, tilt, value);
    for (up = 0; up < 2; up++) {
        if (!(fabs(value[up]) < HUGE_VAL) || tilt[up] == T.t || (up && tilt[1] == tilt[0])) continue;
        if (hs_steps_tilted(S, tilt[up], &at)) continue;
        hs_ends_at(&at, eps, &E);
        out->lower = fmax(out->lower, E.log_lower); out->upper = fmin(out->upper, E.log_upper);
    }
    if (out->lower < out->upper - 3 && (at = T, !chebyshev_totals(S, 1, eps, &at, &found))) {
        hs_ends_at(&at, eps, &E);
        out->lower = fmax(out->lower, E.log_lower);
    }
    if (!(out->log_estimate > out->lower)) out->log_estimate = out->lower;
    if (!(out->log_estimate < out->upper)) out->log_estimate = out->upper;
    report(&T, &saddle, &first, eps, kind, out);
    return HS_OK;
}

/* eps at which one end, at one tilt, meets log_delta, on the safe side; HUGE_VAL (up) or -HUGE_VAL if it never does. */
static double end_root(const hs_tilted *T, double eps, double log_delta, int up)
{
    double e0 = eps, g0 = 0, slope = -T->t, tiny = 1e-14 * (1 + fabs(log_delta)), out, last = 0;
    hs_ends E;
    int it;
    for (it = 0; it < 16; it++) {
        double g;
        hs_ends_at(T, e0, &E);
        g = (up ? E.log_upper : E.log_lower) - log_delta;
        if (g == -HUGE_VAL) { e0 -= 1 / sqrt(T->d[2]) + 1 / T->t; g0 = 0; continue; }
        if (fabs(g) < tiny + (E.clt > 0 ? fmin(1e-2, 1e-2 * E.error / E.clt) : 1e-2)) break;
        if (g0 != 0) { double s = (g - g0) / (e0 - last); if (s < 0.1 * -T->t && s > 10 * -T->t) slope = s; }
        last = e0; g0 = g;
        e0 -= fmax(-4, fmin(4, g)) / slope;
    }
    out = e0;
    if (it == 16) hs_ends_at(T, out, &E); /* E belongs to `out` from here on */
    for (it = 0; it < 50; it++) { /* the safe side: a distance of the order of what is left, then ever larger */
        double g = (up ? E.log_upper : E.log_lower) - log_delta;
        if (up ? g <= 0 : g >= 0) return out;
        out = e0 + (up ? 1 : -1) * ldexp(fmax(1.05 * fmin(fabs(g), 1) / T->t, 4 * HS_U * fabs(e0)), it);
        hs_ends_at(T, out, &E);
    }
    return up ? HUGE_VAL : -HUGE_VAL;
}

/* The eps at which the best upper (up = 1) or lower end is about log_delta, by secant steps from eps, where that end is `gap`
 * above it at the saddle; the tilt for it, and the end there. */
static void plan_root(const hs_tilted *T, double eps, double log_delta, int up, double gap, double *target, double *tilt,
                      double *value)
{
    double slope = T->t, last = 0, g0 = 0, g;
    int round;
    *target = eps + (fabs(gap) < HUGE_VAL ? fmax(-2, fmin(2, gap)) / T->t : 0);
    for (round = 0; round < 10; round++) {
        *tilt = search(T, *target, up, value);
        g = *value - log_delta;
        if (fabs(g) < 0.2) break;
        if (!(fabs(g) < HUGE_VAL)) { /* no end here */
            if (up) break;
            *target = round && g0 != 0 ? 0.5 * (*target + last) : *target - 1 / T->t;
            continue;
        }
        if (g0 != 0) slope = fmax(0.3 * T->t, fmin(3 * T->t, (g0 - g) / (*target - last)));
        last = *target; g0 = g;
        *target += fmax(-2, fmin(2, g)) / slope;
    }
}

/* Certified ends of eps(delta): each is a point where a certified end of delta lies on the right side of the target. */
static int answer_eps(hs_steps *S, double log_delta, int kind, hs_saddle *out)
{
    hs_tilted T, at, saddle;
    hs_ends E;
    double eps, target[2], value[2], tilt[2], found;
    int st, up;
    if ((st = settle(S, 0, log_delta, kind, &eps, &T, &saddle))) return st;
    out->log_estimate = log_delta;
    hs_pick_estimate(&saddle, eps, &kind);
    hs_ends_at(&T, eps, &E);
    report(&T, &saddle, &E, eps, kind, out);
    out->lower = -HUGE_VAL; out->upper = HUGE_VAL;
    plan_root(&T, eps, log_delta, 0, E.log_lower - log_delta, &target[0], &tilt[0], &value[0]);
    plan_root(&T, eps, log_delta, 1, E.log_upper - log_delta, &target[1], &tilt[1], &value[1]);
    share(&T, tilt, value);
    at = T;
    for (up = 0; up < 2; up++) {
        if (!(fabs(value[up]) < HUGE_VAL)) { if (up) out->upper = end_root(&T, eps, log_delta, 1); continue; }
        if (tilt[up] != at.t && hs_steps_tilted(S, tilt[up], &at)) at = T;
        if (up) out->upper = end_root(&at, target[1], log_delta, 1); else out->lower = end_root(&at, target[0], log_delta, 0);
    }
    if (out->lower < eps - 1.5 / T.t && (at = T, !chebyshev_totals(S, 0, log_delta, &at, &found)))
        out->lower = fmax(out->lower, end_root(&at, found, log_delta, 0));
    out->raw_estimate = eps; out->estimate = fmax(out->lower, fmin(out->upper, eps));
    return out->upper < HUGE_VAL ? HS_OK : HS_NO_BRACKET;
}

int hs_saddle_delta(int b, const double *m, const double *q, const double *k, int add, double eps, int kind, double *work,
                    long n_work, hs_saddle *out)
{
    hs_steps S;
    int st = hs_steps_open(&S, b, m, q, k, add, work, n_work);
    return st ? st : answer_delta(&S, eps, kind, out);
}

int hs_saddle_eps(int b, const double *m, const double *q, const double *k, int add, double log_delta, int kind, double *work,
                  long n_work, hs_saddle *out)
{
    hs_steps S;
    int st = hs_steps_open(&S, b, m, q, k, add, work, n_work);
    return st ? st : answer_eps(&S, log_delta, kind, out);
}

int hs_saddle_atoms(int b, const hs_atoms *atoms, const double *k, int have_eps, double value, int kind, hs_saddle *out)
{
    hs_steps S = {b, 0, 1, 1, NULL, NULL, k, atoms, NULL, 1, {0}, {0}};
    return b < 1 ? HS_BAD_ARGUMENT : have_eps ? answer_delta(&S, value, kind, out) : answer_eps(&S, value, kind, out);
}

/* Log of e^{K(t) - eps t} f_max(t), rounded up (have_eps), or the eps where that is log_delta. */
static double moments_at(const hs_tilted *T, int have_eps, double value)
{
    double lf = hs_f_max_log(T->t), x = T->K + T->K_err + lf;
    x += HS_U * (8 * fabs(T->K) + 8 * fabs(lf) + 8 * fabs(value) * (1 + T->t) + 8);
    return have_eps ? fmin(0, x - value * T->t) : (x - value) / T->t + 8 * HS_U * fabs((x - value) / T->t);
}

/* The moments accountant: that bound at its best tilt, as log delta at eps (have_eps) or as eps at log delta. Where the saddle is
 * out of reach (next to the largest loss), the best of a ladder of tilts; every tilt is valid. */
int hs_saddle_moments_upper(int b, const double *m, const double *q, const double *k, int add, int have_eps, double value,
                            double *work, long n_work, double *tilt, double *upper)
{
    hs_steps S;
    hs_tilted T, M, saddle;
    double eps = value, x, t;
    int it, st = hs_steps_open(&S, b, m, q, k, add, work, n_work);
    if (st) return st;
    *upper = HUGE_VAL;
    if (settle(&S, have_eps, value, HS_MSD0, &eps, &T, &saddle)) {
        for (t = 1e4; t > 1e-4; t *= 0.5)
            if (!hs_steps_tilted(&S, t, &T) && moments_at(&T, have_eps, value) < *upper) {
                *upper = moments_at(&T, have_eps, value); *tilt = t;
            }
        return *upper < HUGE_VAL ? HS_OK : HS_NO_SADDLE;
    }
    for (it = 0; it < 3; it++) { /* K'(t) = eps + log(1 + 1/t), by Newton on Taylor's series about the last tilt */
        double reach = 0.7 / sqrt(T.d[2]);
        int i;
        for (i = 0, t = T.t; i < 8; i++) {
            hs_tilted_move(&T, t, &M);
            if (!have_eps) eps = (M.K + hs_f_max_log(t) - value) / t;
            x = (M.d[1] - eps - log1p(1 / t)) / (M.d[2] + 1 / (t * (1 + t)));
            t = fmax(fmax(0.4 * t, T.t - reach), fmin(T.t + reach, t - x));
        }
        if (fabs(t - T.t) < 1e-6 * t) break;
        if (hs_steps_tilted(&S, t, &saddle)) break;
        T = saddle;
    }
    *tilt = T.t; *upper = moments_at(&T, have_eps, value);
    return *upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* One upper end of log delta(eps), at the saddle: Chernoff's, and where the law is near normal the CLT's, which is close to delta.
 * Or at the first tilt tried at which Chernoff's is about 0.1 below `enough`. */
int hs_saddle_delta_upper(int b, const double *m, const double *q, const double *k, int add, double eps, double enough, int n_threads,
                          double *work, long n_work, double *upper)
{
    hs_steps S;
    hs_tilted T;
    hs_ends E;
    double t;
    int st = hs_steps_open(&S, b, m, q, k, add, work, n_work);
    if (st) return st;
    if (n_threads < 1 || n_work < n_threads * HS_GRID_WORK) return HS_SCRATCH;
    S.n_threads = n_threads;
    t = guess(&S, 1, eps);
    if ((st = newton(&S, 1, eps, S.stride, 0.02, enough - 0.1, &t, &eps)) || (st = hs_steps_tilted(&S, t, &T))) return st;
    hs_ends_at(&T, eps, &E);
    *upper = E.log_upper;
    return HS_OK;
}
