/* saddle.h - where a line goes: the saddle's tilt, and the tilts at which aliases are bounded; not for the gate. */
#ifndef HS_SADDLE_H
#define HS_SADDLE_H

#include "law/transform.h"

/* K of a run, as an estimate; a K2 or K that is not finite says that t is too large for it. */
typedef hs_cgf (*hs_cgf_at)(void *self, double t);

/* The second derivative of K(t) - log t - log(1+t). */
static inline double hs_saddle_bend(double K2, double t) { return K2 + 1 / (t * t) + 1 / ((1 + t) * (1 + t)); }

/* The saddle of `value`: eps (have_eps) or log delta. */
typedef struct {
    hs_cgf_at cgf;
    void *self;
    int have_eps;
    double value;
    double tol;    /* nats that log delta may be off */
    double enough; /* with eps given: Chernoff's bound of log delta below which a tilt will do; -HUGE_VAL for none */
    double top;    /* the largest tilt of use */
} hs_saddle_search;

/* A tilt near the saddle; eps; the leading-order estimate of log delta(eps); K there. */
typedef struct {
    double t, eps, log_est;
    hs_cgf k;
} hs_tilt;

/* From at->t > 0: HS_OK, HS_LOOSE if the saddle is not below `top` (at->t = top), or HS_NO_SADDLE. */
int hs_saddle_find(const hs_saddle_search *f, hs_tilt *at);

/* A line through tilt c for eps, and what its aliases are bounded with. */
typedef struct {
    hs_cgf_at cgf;
    void *self;
    double c, eps, sd;
    double floor; /* log of what an alias may be */
} hs_aliases;

/* The period for which the aliases of one side are below e^floor by Chernoff's bound at s; HUGE_VAL: for none. */
double hs_alias_period(const hs_aliases *A, double s);

/* *s: the tilt left (side = -1) or right (1) of c for which that period is about least, or at most `enough`, and the
 * period. Sought from c + side d on, between lo and hi. */
double hs_alias_place(const hs_aliases *A, int side, double d, double lo, double hi, double enough, double *s);

/* t to 24 bits, so that t + i n dy is exact: at most t for t > 0. */
double hs_short_tilt(double t);

#endif
