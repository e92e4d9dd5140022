/* root.h - a certified point of a privacy curve, and the certified root of one; not for the gate. */
#ifndef HS_ROOT_H
#define HS_ROOT_H

#include "hs.h"
#include "special.h"

/* delta(eps) lies in e^log_scale [lower, upper]. value: an estimate of it, and slope one of -d delta/d eps, in the same
 * unit, as are the error terms; aliases of one sign enter only one of the two ends. */
typedef struct {
    double log_scale, value, slope;
    double lower, upper;
    double alias_left, alias_right, truncation;
    double inner, rounding, fit;
} hs_value;

/* A decreasing curve delta(eps), certified by `at` within `reach` of `start`, and the value sought on it. */
typedef struct {
    void (*at)(const void *self, double eps, hs_value *v);
    const void *self;
    double log_delta;
    double start, reach;
    double step;   /* the longest Newton step */
    double bend;   /* a Newton step of x leaves an error of about bend x^2, never more than |x| */
    double enough; /* an error of the estimate that needs no further step */
} hs_curve;

/* About the eps at which the curve is e^log_delta: Newton on log delta inside a bracket. *left: about its error; *v:
 * the curve at the last point seen, at most a step that leaves *left away. HS_TOO_WIDE: the curve has no positive
 * estimate where the search was; HS_NO_BRACKET: no root within reach. */
int hs_root_estimate(const hs_curve *f, double *eps, double *left, hs_value *v);

/* Outwards from an estimate eps that is about `left` off, *v a point of the curve near it: *lower, a point where delta
 * is proved to be at least e^log_delta, and *upper, one where it is proved to be at most that. The curve decreases: the
 * root is between. Returned: 1 if *lower was found, plus 2 if *upper was, within reach; what was not found is left as
 * it is, and *lower is not sought where it is NULL. */
int hs_root_bracket(const hs_curve *f, double eps, double left, const hs_value *v, double *lower, double *upper);

/* Both, from the curve's start: HS_NO_BRACKET, HS_TOO_WIDE, or HS_OK with out->delta left to the caller. */
int hs_root_find(const hs_curve *f, hs_crossing *out, hs_value *v);

/* A curve whose points are certified near the place where a line is made: `make` makes it for eps, delta being about
 * e^log_delta; *reach: how far from there it is good, once made. */
typedef struct {
    int (*make)(void *self, double eps, double log_delta);
    void (*at)(const void *self, double eps, hs_value *v);
    void *self;
    const double *reach;
} hs_placed_curve;

/* The root where lines are made at one place after another, from eps > 0 on, until it is within reach. */
int hs_root_walk(const hs_placed_curve *f, double eps, double log_delta, hs_crossing *out, hs_value *v);

/* The ends of a sum from its value and error terms. The aliases on the left, bounded at the tilt s, raise the upper end
 * for -1 <= s < 0 and lower the lower one elsewhere [theory: line.aliases]. */
void hs_value_ends(hs_value *v, double s);

/* *v as a point of the gate; the ends that leave are rounded outwards. */
void hs_value_point(const hs_value *v, int64_t n_nodes, hs_point *p);

#endif
