/* root.c - the certified root: eps(delta) from a curve whose points are certified.
 *
 * Symbols. d(eps) = e^{log_scale} value an estimate of delta(eps), between certified ends e^{log_scale} lower and
 *   e^{log_scale} upper; g = log d(eps) - log delta.
 *
 * Formula. The estimate: Newton's step g d/|d'| on log delta. Where it leaves the bracket of points seen on either
 *   side of the root, delta is convex in e^eps: the tangent there, from a point left of the root, falls short of it.
 *   From elsewhere, and where it falls too short, as between atoms that lie far apart, the bracket is halved. The ends:
 *   delta decreases, so that a certified lower end at or above the target proves that the root is not to the left, and
 *   an upper end at or below it that it is not to the right [theory: line.root].
 *
 * Error claim. The comparison of ends allows 4u (2 + |log_scale| + |log delta|) for the rounding of the logarithm, the
 *   sum and the rounded target; nothing else here enters a bound, wherever the estimate lies.
 *
 * What it does not do: find a curve on which the root lies within reach.
 */
#include "line/root.h"
#include "tuning.h"

int hs_root_estimate(const hs_curve *f, double *eps, double *left, hs_value *v)
{
    double e = f->start, lo = -HUGE_VAL, hi = HUGE_VAL;
    double gap, step, over;
    int it, lost = 0;
    for (it = 0; it < HS_ROOT_NEWTON && lost < HS_ROOT_LOST; it++) {
        f->at(f->self, e, v);
        lost += !(v->lower > 0);
        if (!(v->value > 0 && v->slope > 0 && v->upper < HUGE_VAL)) { /* eps may exceed every loss */
            if (!(lo > -HUGE_VAL)) return HS_TOO_WIDE;
            hi = e;
            e = 0.5 * (lo + hi);
            continue;
        }
        over = v->value / v->slope;
        gap = v->log_scale + log(v->value) - f->log_delta;
        if (gap > 0) lo = e;
        else hi = e;
        step = gap * over;
        *left = fabs(step) * fmin(1, f->bend * fabs(step));
        step = fmax(-f->step, fmin(f->step, step));
        if (*left <= 2e-16 * fabs(e) + fmax(f->enough, HS_ROOT_NEAR * (v->upper - v->lower) / v->slope)) {
            *eps = e + step;
            return fabs(*eps - f->start) <= f->reach ? HS_OK : HS_NO_BRACKET;
        }
        if (!(e + step > lo && e + step < hi)) {
            step = log1p(-expm1(-gap) * over);
            if (!(gap > 0) || (hi < HUGE_VAL && step < HS_ROOT_SHORT * (hi - e))) step = 0.5 * (lo + hi) - e;
        }
        e += step;
        if (!(fabs(e - f->start) < 0.8 * f->reach)) return HS_NO_BRACKET;
    }
    return HS_NO_BRACKET;
}

/* How far a certified end may be off the logarithm that it is compared with. */
static double slack(const hs_curve *f, const hs_value *v)
{ return 4 * HS_U * (2 + fabs(v->log_scale) + fabs(f->log_delta)); }

/* The first distance, never below 0, at which to ask for an end that lies `error` off the value there. */
static double first_step(const hs_curve *f, double eps, double left, const hs_value *v, double error)
{
    double r = v->slope > 0 ? (1.02 * error + slack(f, v) * fabs(v->value)) / v->slope + left : HUGE_VAL;
    return fmin(fmax(r, 0), 0.05 * f->reach) + 4 * HS_U * fabs(eps) + 1e-300;
}

int hs_root_bracket(const hs_curve *f, double eps, double left, const hs_value *v, double *lower, double *upper)
{
    double down = first_step(f, eps, left, v, v->value - v->lower),
           up = first_step(f, eps, left, v, v->upper - v->value), room = f->reach - fabs(eps - f->start);
    int it, found = lower ? 0 : 1;
    hs_value at;
    double grown = HS_ROOT_GROWTH;
    for (it = 0; it < HS_ROOT_OUTWARD && found != 3; it++, down *= grown, up *= grown) {
        if (it == HS_ROOT_NEARBY) grown = 2;
        if (!(found & 1) && down <= room) {
            f->at(f->self, eps - down, &at);
            if (at.lower > 0 && at.log_scale + log(at.lower) - slack(f, &at) >= f->log_delta) {
                *lower = eps - down;
                found |= 1;
            }
        }
        if (!(found & 2) && up <= room) {
            f->at(f->self, eps + up, &at);
            if (at.upper <= 0 || at.log_scale + log(at.upper) + slack(f, &at) <= f->log_delta) {
                *upper = eps + up;
                found |= 2;
            }
        }
    }
    return found;
}

int hs_root_find(const hs_curve *f, hs_crossing *out, hs_value *v)
{
    double left;
    int st = hs_root_estimate(f, &out->estimate, &left, v);
    if (st) return st;
    return hs_root_bracket(f, out->estimate, left, v, &out->lower, &out->upper) == 3 ? HS_OK : HS_NO_BRACKET;
}

/* The length of the way to a target of log delta `gap` below, over Newton's step, where delta falls as those of normal
 * laws do: the square root of -log delta is about linear. */
static double root_share(double gap, double log_delta)
{
    double now = gap + log_delta;
    return now < 0 ? 2 * sqrt(-now) / (sqrt(-log_delta) + sqrt(-now)) : 1;
}

int hs_root_walk(const hs_placed_curve *f, double eps, double log_delta, hs_crossing *out, hs_value *v)
{
    hs_curve curve = {.at = f->at, .self = f->self, .log_delta = log_delta};
    double move, gap, last[2] = {0, 0};
    int i, st, lost = 0;
    for (i = 0; i < HS_ROOT_PLACES; i++) { /* the saddle's own estimate of delta is far off where few jumps make it */
        if (!(eps > 0)) return HS_NO_BRACKET;
        if ((st = f->make(f->self, eps, log_delta))) return st;
        f->at(f->self, eps, v);
        lost += !(v->upper < HS_ROOT_HOPELESS * v->lower);
        if (!(v->value > 0 && v->slope > 0 && lost < 2)) return HS_TOO_WIDE;
        gap = v->log_scale + log(v->value) - log_delta;
        move = gap * v->value / v->slope;
        if (3 * fabs(move) < *f->reach) break;
        move *= root_share(gap, log_delta);
        if (gap * last[1] < 0 && !(move * (last[0] - eps) > 0 && fabs(move) < fabs(last[0] - eps)))
            move = -gap * (eps - last[0]) / (gap - last[1]); /* between two, the secant */
        last[0] = eps;
        last[1] = gap;
        eps += fmax(-0.5 * eps, fmin(eps, move));
    }
    curve.start = eps;
    curve.reach = curve.step = fmin(*f->reach, 0.9 * eps);
    curve.bend = 4 / *f->reach;
    return hs_root_find(&curve, out, v);
}

void hs_value_ends(hs_value *v, double s)
{
    int raise = s < 0 && s >= -1;
    v->lower =
        v->value - v->alias_right - v->inner - v->fit - v->rounding - v->truncation - (raise ? 0 : v->alias_left);
    v->upper = v->value + v->inner + v->fit + v->rounding + v->truncation + (raise ? v->alias_left : 0);
}

void hs_value_point(const hs_value *v, int64_t n_nodes, hs_point *p)
{
    p->log_scale = v->log_scale;
    p->estimate = v->value;
    p->lower = v->lower > 0 ? hs_down(v->lower) : 0;
    p->upper = hs_up(v->upper);
    p->aliasing = v->alias_right + v->alias_left;
    p->truncation = v->truncation;
    p->inner = v->inner;
    p->rounding = v->rounding;
    p->interpolation = v->fit;
    p->n_nodes = n_nodes;
}
