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

hs_law_value hs_mixed_total(const hs_mixed *A, double t)
{
    const hs_law *laws = (const hs_law *)A->laws;
    hs_law_value sum = {0, 0, 0, 0}, one;
    int i;
    for (i = 0; i < A->b; i++) {
        double k = laws[i].k;
        if (hs_stopped(A->poll, 20 * (double)laws[i].n)) break;
        hs_law_cgf(&laws[i], t, &one);
        sum.K += k * one.K;
        sum.err += k * one.err + 3 * HS_U * fabs(k * one.K);
        sum.mean += k * one.mean;
        sum.var += k * one.var;
    }
    return sum;
}

/* c near the minimum of K(t) - t eps - log t - log(1+t), with eps given or eliminated, as in contour.c; any c > 0 is
 * valid. On a lattice e^{-cs} below e^-50 gains nothing. */
int hs_mixed_saddle(hs_mixed *A, int have_eps, double log_delta)
{
    double lo = 0, hi = 0, t = A->t, G, F2, step, cap = A->step > 0 ? 50 / A->step : 1e12;
    hs_law_value k;
    int it;
    for (it = 0; it < 100; it++) {
        t = fmin(t, cap);
        k = hs_mixed_total(A, t);
        F2 = k.var + 1 / (t * t) + 1 / ((1 + t) * (1 + t));
        if (!(F2 > 0 && F2 < 1e300 && fabs(k.K) < 1e300)) {
            hi = t;
            t = lo > 0 ? sqrt(lo * hi) : 0.1 * t;
            continue;
        }
        if (!have_eps) A->eps = k.mean - 1 / t - 1 / (1 + t);
        A->log_est = k.K - A->eps * t - log(t) - log1p(t) - 0.5 * log(2 * HS_PI * F2);
        G = have_eps ? k.mean - A->eps - 1 / t - 1 / (1 + t) : log_delta - A->log_est;
        if (fabs(G) < (have_eps ? 0.1 * sqrt(F2) : 0.03)) break;
        step = have_eps ? -G / (t * F2) : -G / (t * t * F2);
        if (G < 0) {
            lo = t;
            if (t >= cap) break;
        } else hi = t;
        step = t * exp(fmax(-1.2, fmin(1.2, step)));
        if ((lo > 0 && step <= lo) || (hi > 0 && step >= hi) || !(step > 0))
            step = lo > 0 && hi > 0 ? sqrt(lo * hi) : lo > 0 ? 2 * lo : 0.5 * hi;
        t = step;
        if (!(t > 1e-13)) return HS_NO_SADDLE;
        if (hi > 0 && lo > 0 && hi / lo < 1 + 1e-9) break;
        if (t > 1e12) {
            t = 1e12;
            break;
        }
    }
    if (it == 100) return HS_NO_SADDLE;
    A->t = t;
    A->sd = sqrt(fmax(k.var, 1e-300));
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
        if (hs_mixed_total(A, t).mean - A->eps - 1 / t - 1 / (1 + t) > 0) hi = t;
        else lo = t;
    }
    k = hs_mixed_total(A, t);
    F2 = k.var + 1 / (t * t) + 1 / ((1 + t) * (1 + t));
    A->log_est = k.K - A->eps * t - log(-t) - log1p(t) - 0.5 * log(2 * HS_PI * F2);
    A->t = t;
    A->sd = sqrt(fmax(k.var, 1e-300));
}

static double period(const hs_mixed *A, int left, double d)
{
    double s = left ? A->c - d : A->c + d, num;
    hs_law_value k;
    if (A->c < 0 && (left ? s >= -1 : s <= 0)) return HUGE_VAL; /* the rests there are delta and R */
    k = hs_mixed_total(A, s);
    num = !(k.err < 1) ? HUGE_VAL : k.K - s * A->eps + hs_payoff(s) - A->log_est + A->T0;
    return num > 0 && num < 1e300 ? num / d : HUGE_VAL;
}

/* The larger of the two sides' least periods; any d gives a valid one. Both are unimodal in d: steps by a factor
 * while they gain. */
void hs_mixed_place(hs_mixed *A)
{
    int left, it;
    A->P = 0;
    for (left = 0; left < 2; left++) {
        double d = fmin(7 / A->sd, A->step > 0 ? 60 / A->step : HUGE_VAL), best, factor = 0.5;
        if (A->c < 0) d = fmax(d, 2 * (left ? 1 + A->c : -A->c));
        best = period(A, left, d);
        for (it = 0; it < 16; it++) {
            double at = period(A, left, d * factor);
            if (at < best || !(best < HUGE_VAL)) {
                best = at;
                d *= factor;
            } else if (factor < 0.6 && it == 0) factor = 1.6;
            else if (fabs(factor - 1) > 0.3) factor = factor > 1 ? 1.2 : 0.85;
            else break;
        }
        *(left ? &A->s_left : &A->s_right) = left ? A->c - d : A->c + d;
        A->P = fmax(A->P, best);
    }
}

/* log(1 - delta(eps)) <= min over -1 <= s <= 0 of K(s) - s eps [theory: line.chernoff]; 0 where that is no use. */
double hs_mixed_complement_upper(const hs_mixed *A, double eps)
{
    const hs_law *laws = (const hs_law *)A->laws;
    double lo = -1, hi = 0, s;
    hs_law_value k = hs_mixed_total(A, 0);
    int i;
    for (i = 0; i < A->b; i++)
        if (laws[i].kind == HS_LAW_SUBNORMAL) return 0; /* K there is an estimate */
    if (!(k.mean - eps > 4 * sqrt(k.var))) return 0;
    for (i = 0; i < 30; i++) {
        s = 0.5 * (lo + hi);
        if (hs_mixed_total(A, s).mean > eps) hi = s;
        else lo = s;
    }
    if (lo == -1) hi = -1;
    k = hs_mixed_total(A, hi);
    return k.K + k.err - hi * eps + 4 * HS_U * (fabs(k.K) + fabs(eps) + 1) + (A->d_shift + fabs(eps) * A->d_step) * 2;
}
