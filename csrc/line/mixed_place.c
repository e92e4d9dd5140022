/* mixed_place.c - where the contour of mixed.c goes: tilt, period; and what Chernoff's bound says where delta is near
 * one.
 *
 * Symbols as in mixed.c. Formulas: maths of the contour as in contour_place.c. With c > 0 the sum is delta; with -1 < c
 * < 0 it is delta - 1 = -E min(1, e^{eps-L}), for eps well below the bulk of the loss, where 1 - delta is what has
 * relative accuracy. None of this needs accuracy: any tilt and any period give valid bounds. hs_mixed_complement_upper
 * is a bound.
 *
 * What it does not do: c < -1.
 */
#include "line/mixed.h"
#include "tuning.h"

/* The sum over all laws at tilt t, certified or an estimate. */
static hs_law_value total_of(const hs_mixed *A, double t, void (*one_of)(const hs_law *, double, hs_law_value *))
{
    const hs_law *laws = (const hs_law *)A->laws;
    hs_law_value sum = {0, 0, 0, 0}, one;
    int i;
    for (i = 0; i < A->b; i++) {
        double k = laws[i].k;
        if (hs_stopped(A->poll, 20 * hs_law_cost(&laws[i]))) break;
        one_of(&laws[i], t, &one);
        sum.K += k * one.K;
        sum.err += k * one.err + 3 * HS_U * fabs(k * one.K);
        sum.mean += k * one.mean;
        sum.var += k * one.var;
    }
    return sum;
}

hs_law_value hs_mixed_total(const hs_mixed *A, double t) { return total_of(A, t, hs_law_cgf); }

hs_law_value hs_mixed_estimate(const hs_mixed *A, double t) { return total_of(A, t, hs_law_estimate); }

static hs_cgf cgf_of_laws(void *self, double t)
{
    hs_law_value k = hs_mixed_estimate((const hs_mixed *)self, t);
    hs_cgf out = {k.err < 1 ? k.K : HUGE_VAL, k.mean, k.var};
    return out;
}

/* c near the saddle; any c > 0 is valid. On a lattice e^{-cs} below e^-50 gains nothing. */
int hs_mixed_saddle(hs_mixed *A, int have_eps, double log_delta)
{
    hs_saddle_search f = {cgf_of_laws, A,   have_eps, have_eps ? A->eps : log_delta, have_eps ? 0.005 : 0.03,
                          -HUGE_VAL,   1e12};
    hs_tilt at = {.t = A->t};
    if (A->step > 0) f.top = 50 / A->step;
    if (hs_saddle_find(&f, &at) > HS_LOOSE) return HS_NO_SADDLE;
    A->t = at.t;
    A->eps = at.eps;
    A->log_est = at.log_est;
    A->sd = sqrt(fmax(at.k.K2, 1e-300));
    return HS_OK;
}

/* The same for c in (-1, 0), where K(t) - t eps - log(-t) - log(1+t) is convex: bisection on its derivative. */
void hs_mixed_saddle_below(hs_mixed *A)
{
    double lo = -1, hi = 0, t = -0.5, F2;
    hs_law_value k;
    int it;
    for (it = 0; it < 60 && hi - lo > 1e-6 * fmin(-lo, 1 + hi); it++) {
        t = 0.5 * (lo + hi);
        if (hs_mixed_estimate(A, t).mean - A->eps - 1 / t - 1 / (1 + t) > 0) hi = t;
        else lo = t;
    }
    k = hs_mixed_estimate(A, t);
    F2 = hs_saddle_bend(k.var, t);
    A->log_est = k.K - A->eps * t - log(-t) - log1p(t) - 0.5 * log(2 * HS_PI * F2);
    A->t = t;
    A->sd = sqrt(fmax(k.var, 1e-300));
}

/* Whether some law is a part of one. */
int hs_mixed_parts(const hs_mixed *A)
{
    const hs_law *laws = (const hs_law *)A->laws;
    int i;
    for (i = 0; i < A->b; i++)
        if (hs_law_is_part(&laws[i])) return 1;
    return 0;
}

/* The larger of the two sides' least periods. With c < 0 the rests are those of delta and of its complement: the tilts
 * lie beyond 0 and -1. Those of parts lie between 0 and c: no alias counts as known. A line for many eps has a longer
 * period. */
void hs_mixed_place(hs_mixed *A)
{
    const double nats = A->T0 + (A->keep > 1 ? HS_LINE_REACH : 0);
    hs_aliases line = {cgf_of_laws, A, A->c, A->eps, A->sd, A->log_est - nats};
    double d = fmin(7 / A->sd, A->step > 0 ? 60 / A->step : HUGE_VAL), right, left;
    const int parts = hs_mixed_parts(A);
    right = hs_alias_place(&line, 1, d, A->c < 0 ? 0 : -HUGE_VAL, HUGE_VAL, 0, &A->s_right);
    left = parts ? HUGE_VAL : hs_alias_place(&line, -1, d, -HUGE_VAL, A->c < 0 ? -1 : HUGE_VAL, right, &A->s_left);
    if (parts) left = hs_alias_place(&line, -1, fmin(d, 0.9 * A->c), 0.05 * A->c, A->c, right, &A->s_left);
    if (!parts && A->c > 0 &&
        0.9 * A->c < d) { /* next to the largest loss the search from beyond 0 does not come back */
        double tilt, low = hs_alias_place(&line, -1, 0.9 * A->c, 0, A->c, right, &tilt);
        if (low < left) {
            left = low;
            A->s_left = tilt;
        }
    }
    A->P = fmax(right, left);
}

/* log(1 - delta(eps)) <= min over -1 <= s <= 0 of K(s) - s eps [theory: line.chernoff]; 0 where that is no use. */
double hs_mixed_complement_upper(const hs_mixed *A, double eps)
{
    const hs_law *laws = (const hs_law *)A->laws;
    double lo = -1, hi = 0, s;
    hs_law_value k = hs_mixed_estimate(A, 0);
    int i;
    for (i = 0; i < A->b; i++)
        if (laws[i].kind == HS_LAW_SUBNORMAL) return 0; /* K there is an estimate */
    if (hs_mixed_parts(A) || !(k.mean - eps > 4 * sqrt(k.var))) return 0;
    for (i = 0; i < 30; i++) {
        s = 0.5 * (lo + hi);
        if (hs_mixed_estimate(A, s).mean > eps) hi = s;
        else lo = s;
    }
    if (lo == -1) hi = -1;
    k = hs_mixed_total(A, hi);
    return k.K + k.err - hi * eps + 1e-12 * (fabs(k.K) + fabs(eps) + 1) + (A->d_shift + fabs(eps) * A->d_step) * 2;
}
