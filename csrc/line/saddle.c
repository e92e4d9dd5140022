/* saddle.c - the only search for the saddle of a line, and for the tilts of its aliases.
 *
 * Symbols. K(t) the cumulant function of the loss; w(t) = 1/t + 1/(1+t); F2 = K'' + 1/t^2 + 1/(1+t)^2.
 *
 * Formula. The saddle of e^{K - eps t}/(t(1+t)): K'(t) = eps + w(t); with eps eliminated, log MSD0(t) = K - eps(t) t -
 *   log t(1+t) - log(2 pi F2)/2 = log delta, eps(t) = K' - w [AGH+22]. Aliases at distance P beyond eps weigh
 *   e^{K(s) - s eps + payoff(s) - |s - c| P} (contour.c): the period is the least over s of (K(s) - s eps + payoff(s) -
 *   floor)/|s - c|.
 *
 * Error claim: none. Every tilt and every period gives a valid bound, a bad one a wide or a slow one.
 *
 * What it does not do: tilts in (-1, 0).
 */
#include "line/saddle.h"
#include "tuning.h"

typedef struct { /* a bracket of the saddle, and the last step's gap there */
    double lo, hi, gap, x;
} saddle_bracket;

/* How far t is from the saddle: *H, of the sign of the gap, and its slope in log t. Where rare jumps take over, both
 * sides grow like exponentials of t: H is the difference of their logarithms, log K'/(eps + w) or log(log
 * MSD0/log delta). Returned: whether t is near enough. */
static int saddle_gap(const hs_saddle_search *f, const hs_tilt *at, double F2, double *H, double *slope)
{
    double t = at->t, w = at->k.K1 - at->eps, K1 = at->k.K1;
    if (f->have_eps) {
        w = 1 / t + 1 / (1 + t) + f->value;
        *H = K1 - w;
        if (*H * *H < 2 * f->tol * F2) return 1;
        *slope = t * F2;
        if (!(K1 > 0 && w > 0)) return 0;
        *H = log(K1 / w);
        *slope = t * (at->k.K2 / K1 + (F2 - at->k.K2) / w);
        return 0;
    }
    *H = f->value - at->log_est;
    if (fabs(*H) < f->tol) return 1;
    *slope = fmax(0.02, t * t * F2 - (1 / (t * t) + t / ((1 + t) * (1 + t) * (1 + t))) / F2); /* K''' is left out */
    if (!(at->log_est < 0 && f->value < 0)) return 0;
    *H = log(at->log_est / f->value);
    *slope /= -at->log_est;
    return 0;
}

/* The next tilt: Newton in log t, or with `secants` between two gaps of opposite sign and alike in size; within the
 * bracket, or between its ends. */
static double next_tilt(saddle_bracket *B, double t, double H, double slope, int secants)
{
    double x = log(t), step = -H / slope;
    if (secants && H * B->gap < 0 && fabs(log(-H / B->gap)) < 1.5) step = -H * (x - B->x) / (H - B->gap);
    B->gap = H;
    B->x = x;
    if (H < 0) B->lo = t;
    else B->hi = t;
    t *= exp(fmax(-1.2, fmin(1.2, step)));
    if ((B->lo > 0 && t <= B->lo) || (B->hi > 0 && t >= B->hi) || !(t > 0))
        t = B->lo > 0 && B->hi > 0 ? sqrt(B->lo * B->hi) : B->lo > 0 ? 2 * B->lo : 0.5 * B->hi;
    return t;
}

int hs_saddle_find(const hs_saddle_search *f, hs_tilt *at)
{
    saddle_bracket B = {0, 0, 0, 0};
    double F2, H, slope, t;
    int it;
    at->t = fmin(at->t, f->top);
    for (it = 0; it < HS_SADDLE_STEPS; it++) {
        t = at->t;
        at->k = f->cgf(f->self, t);
        F2 = hs_saddle_bend(at->k.K2, t);
        if (!(F2 > 0 && F2 < 1e300 && fabs(at->k.K) < 1e300)) {
            B.hi = t;
            B.gap = 0;
            at->t = B.lo > 0 ? sqrt(B.lo * B.hi) : 0.1 * t;
            continue;
        }
        at->eps = f->have_eps ? f->value : at->k.K1 - 1 / t - 1 / (1 + t);
        at->log_est = at->k.K - at->eps * t - log(t) - log1p(t) - 0.5 * log(2 * HS_PI * F2);
        if (f->have_eps && at->k.K - at->eps * t + hs_payoff(t) < f->enough) return HS_OK;
        if (saddle_gap(f, at, F2, &H, &slope)) return HS_OK;
        if (H < 0 && t >= f->top) return HS_LOOSE;
        if (B.lo > 0 && B.hi > 0 && B.hi - B.lo < 1e-14 * B.hi) return HS_NO_SADDLE;
        at->t = fmin(next_tilt(&B, t, H, slope, it >= HS_SADDLE_SECANTS), f->top);
        if (!(at->t > 1e-12)) return HS_NO_SADDLE;
    }
    return HS_NO_SADDLE;
}

/* Evaluates the period at c + side d; *newton is Newton's next d. */
static double alias_try(const hs_aliases *A, int side, double d, double *newton)
{
    double s = A->c + side * d, over;
    hs_cgf k = A->cgf(A->self, s);
    over = k.K - s * A->eps + hs_payoff(s) - A->floor;
    *newton = d - (side * d * (k.K1 - A->eps) - over) / (d * fmax(k.K2, 1e-300));
    return over > 0 && over < 1e300 ? over / d : HUGE_VAL;
}

double hs_alias_period(const hs_aliases *A, double s)
{
    double newton;
    return alias_try(A, s < A->c ? -1 : 1, fabs(s - A->c), &newton);
}

/* The exponent is convex in d, so that the period is unimodal: Newton while it gains, and where it does not (K grows
 * like e^{d^2} once rare jumps take over), steps by a factor. */
double hs_alias_place(const hs_aliases *A, int side, double d, double lo, double hi, double enough, double *s)
{
    double least = side < 0 ? A->c - hi : lo - A->c, most = side < 0 ? A->c - lo : hi - A->c, best;
    double next, factor = 0.65;
    int it;
    d = fmax(fmin(d, most), fmin(2 * fmax(least, 0), most));
    best = alias_try(A, side, d, &next);
    for (it = 0; it < HS_ALIAS_HALVINGS && !(best < HUGE_VAL) && 0.5 * d > least; it++)
        best = alias_try(A, side, d *= 0.5, &next);
    for (it = 0; it < HS_ALIAS_STEPS && best < HUGE_VAL && !(best <= enough); it++) {
        double at, newton, trial = fmax(0.25 * d, fmin(2.5 * d, next));
        if (it < 2 && fabs(trial - d) < 0.1 * d) {
            if (best < 9.5 * A->sd) break; /* a normal law has P = sqrt(2 T0) sd */
            it = 2;                        /* where K grows like e^{d^2} Newton's steps are far too short */
        }
        if (it >= 2) trial = d * factor;
        if (fabs(trial - d) < 0.1 * d) break;
        at = trial > least && trial <= most ? alias_try(A, side, trial, &newton) : HUGE_VAL;
        if (at < best) {
            if (at > 0.95 * best && it > 0) it = HS_ALIAS_STEPS;
            best = at;
            d = trial;
            next = newton;
        } else if (it >= 2) {
            if (factor < 0.7) factor = 1.5;
            else if (factor > 1.4) factor = 0.85;
            else break;
        }
    }
    *s = A->c + side * d;
    return best;
}

double hs_short_tilt(double t)
{
    int e;
    t = frexp(t, &e);
    return ldexp(floor(ldexp(t, 24)), e - 24);
}
