/* transform.h - the inner grid of one step and what is summed over it; not for the gate. */
#ifndef HS_TRANSFORM_H
#define HS_TRANSFORM_H

#include "hs.h"
#include "special.h"

#ifdef _OPENMP
#include <omp.h>
static inline int64_t hs_thread(void) { return omp_get_thread_num(); }
#else
static inline int64_t hs_thread(void) { return 0; }
#endif

#define HS_POLL_WORK 2e7 /* nanoseconds, about, between two questions whether to stop; a question takes under 0.1 us */

/* Whether the caller wants to stop; `work`: about how many nanoseconds the calling thread spends until it asks
 * again. */
static inline int hs_stopped(hs_poll *poll, double work)
{
    int stop;
    if (!poll) return 0;
    if (hs_thread() == 0 && !poll->stop && (poll->work += work) > HS_POLL_WORK) { /* only this thread writes */
        stop = poll->ask();
        poll->work = 0;
#ifdef _OPENMP
#pragma omp atomic write
#endif
        poll->stop = stop;
    }
#ifdef _OPENMP
#pragma omp atomic read
#endif
    stop = poll->stop;
    return stop;
}

/* Where chunk `chunk` of n steps begins. */
static inline int64_t hs_chunk_at(int64_t n, int chunk, int chunks) { return (int64_t)((double)n * chunk / chunks); }

/* Eight lanes of a sum, joined in a fixed order. */
static inline double hs_lanes(const double *acc)
{ return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7])); }

/* The sum of n terms, a multiple of 8, in eight lanes. */
static inline double hs_lane_sum(const double *restrict x, int64_t n)
{
    double acc[8] = {0};
    int64_t j, i;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) acc[i] += x[j + i];
    return hs_lanes(acc);
}

/* log |1 + Z| of X = |1 + Z|^2 - 1 and of `square` = |1 + Z|^2, which keeps its digits where X does not. X - (one - 1)
 * is what 1 + X loses, to nearest nothing of an X below u: in another direction it is up to 2u, whose square is then
 * more than X is known to, so that a small X has its series [theory: rounding.log-phi]. */
static inline double hs_log_modulus(double X, double square)
{
    double one = 1 + X, near = X > -0.75 && X < 1 ? 1 : 0;
    double of = hs_log(near != 0 ? one : square) + (near != 0 ? (X - (one - 1)) / one : 0);
    return 0.5 * (X > -1e-8 && X < 1e-8 ? X - 0.5 * X * X : of);
}

/* How far to the left the weight (1+U)^a moves a normal law, at most: -g = |a| m q e^{mg} has its root there, W(x)
 * <= log1p(x). */
static inline double hs_left_reach_upper(double m, double q, double a) { return a < 0 ? log1p(-a * m * m * q) / m : 0; }

/* s = q e^v/(1+U), the slope of l in v, at a node; inv = 1/(1+U). The computed U + q may lie below 0. */
static inline double hs_slope(double U, double q, double inv)
{
    double s = (U + q) * inv;
    return s > 0 ? s : 0;
}

/* w (e^x - 1 - x) and w (e^x - 1) where e = w e^x: neither cancels. At x = 0 e is w. */
static inline void hs_grown(double w, double x, double e, double *h2, double *e1)
{
    double xs = x < 0.34 && x > -0.34 ? x : 0, y = hs_expm1mx(xs);
    *h2 = xs != 0 ? w * y : e - w - w * x;
    *e1 = xs != 0 ? w * (y + xs) : e - w;
}

/* A line that turns U by b < pi, s = sin b, c = cos b, and arg(1+U) on it, rho = q e^v/(1-q) at its foot
 * [theory: law.strip]. Rounding: below 40 u of the angle for b <= 0.9 pi. */
typedef struct {
    double b, s, c;
} hs_turn;

static inline hs_turn hs_turned(double b)
{
    hs_turn at = {b, sin(b), cos(b)};
    return at;
}

static inline double hs_angle(double rho, hs_turn at)
{
    double r = rho < 1e300 ? rho : 1e300;
    return hs_atan2(r * at.s, 1 + r * at.c);
}

/* The largest angle on lines between this one and the real line, over the part of b that they turn by
 * [theory: law.turns]. */
static inline double hs_steepest(double rho, hs_turn at) { return fmax(at.b * rho / (1 + rho), hs_angle(rho, at)); }

/* The integral over an end of the rectangle, of half height 1 and where |f| falls by e^X to its corners
 * [theory: law.rectangle]. */
static inline double hs_side_upper(double X) { return fabs(X) > 1e-9 ? -expm1(-X) / X : 1 + 1e-9; }

/* What lies beyond a node of weight p from which on weights fall at the rate `fall`, as a sum and as an integral
 * [theory: law.ends]. */
static inline double hs_end_upper(double p, double h, double fall)
{ return p * (1 / expm1(h * fall) + 1 / (h * fall)); }

/* Errors in units of u [theory: rounding.grid]: of v at the node g, and of l where its slope in v is s. */
static inline double hs_v_error(double m, double g) { return 3 * m * fabs(g) + 2 * m * m; }
static inline double hs_l_error(double m, double g, double s, double l) { return s * hs_v_error(m, g) + 14 * fabs(l); }

/* What error bounds of first order in u are multiplied with [theory: rounding.squares, rounding.first-order]. */
static inline double hs_squares_upper(double a, double m, double g)
{
    double x = 20 * HS_U * fabs(a) * m * (g + m);
    return x < 0.01 ? 1 + 1.1 * (x + 1e-7) : HUGE_VAL;
}

/* The exponent of Chernoff's bound with the optimal constant [theory: line.payoffs], in a form that does not cancel. */
static inline double hs_payoff(double s)
{ return s > 1e-300 ? -s * log1p(1 / s) - log1p(s) : s < -1 ? hs_payoff(-1 - s) : 0; }

/* K(t) = log E e^{tL} and its first two derivatives; as an estimate, unless it is said otherwise. */
typedef struct {
    double K, K1, K2;
} hs_cgf;

static inline void hs_cgf_add(hs_cgf *sum, double k, hs_cgf one)
{
    sum->K += k * one.K;
    sum->K1 += k * one.K1;
    sum->K2 += k * one.K2;
}

/* Log of the factor by which a path at distance b from the real line may raise |1 + U|^a [theory: law.strip]. */
static inline double hs_log_kap(double a, double b) { return a < 0 ? a * log(cos(0.5 * b)) : 0; }

/* At least e^x - 1, for x >= 0: x^3 and the rounding are below x^2/2 where the short form is used. */
static inline double hs_grown_upper(double x)
{
    double far = x < 1e-3 ? 0 : 1, grown = hs_expm1(x) * (1 + 1e-12);
    return far != 0 ? grown : x * (1 + x);
}

/* The same outside of a vector's loop: what is small, as most is, costs no exponential. */
static inline double hs_one_grown_upper(double x) { return x < 1e-3 ? x * (1 + x) : hs_grown_upper(x); }

/* About the variance of the loss of a subsampled step. */
static inline double hs_rough_variance(double m, double q) { return q * (q == 1 ? m * m : q * expm1(fmin(m * m, 50))); }

#define HS_INNER_MAX 4096 /* inner nodes of one step, a multiple of 8 */
#define HS_GRID_ARRAYS 14
#define HS_GRID_WORK (HS_GRID_ARRAYS * (HS_INNER_MAX + 8))
#define HS_COARSE_MAX 128 /* nodes of a coarse grid */
#define HS_COARSE_ONE 512 /* of the grid of a run of one step: large tilts of small shifts fit */
#define HS_STRIPS 3

typedef struct { /* cgf.c: a coarse grid for the tilts a_lo..a_hi */
    int n;
    double m, q, a_lo, a_hi;
    double *l, *lm, *lw, *w;
} hs_coarse;

typedef struct {
    int strip;       /* which strip of analyticity bounds the quadrature, -1: the best */
    int far_shift;   /* which inner shift bounds the far range, -1: the best, which later calls keep */
    int first, last; /* the nodes that carry phi, multiples of 8; see hs_grid_trim */
    int n;           /* nodes, padded to a multiple of 8 by nodes of weight zero */
    double m, q, h;
    double lo, hi; /* lo, hi: first and last node */
    double shift;  /* the inner shift that hs_grid_far_upper took last */
    double *g, *lw, *w, *u;
    double *inv, *l, *lm; /* node; log(h w(g)); h w(g); U; 1/(1+U); log(1+U); log(1+U)-U */
    double *p, *s, *r, *er;
    double *ei, *er1, *ei1; /* scratch of the sums */
} hs_grid;

/* The 14 rows of a grid, in scratch. */
static inline void hs_grid_rows(hs_grid *G, double *work)
{
    const int stride = HS_INNER_MAX + 8;
    G->g = work;
    G->lw = work + stride;
    G->u = work + 2 * stride;
    G->l = work + 3 * stride;
    G->lm = work + 4 * stride;
    G->p = work + 5 * stride;
    G->s = work + 6 * stride;
    G->r = work + 7 * stride;
    G->er = work + 8 * stride;
    G->ei = work + 9 * stride;
    G->er1 = work + 10 * stride;
    G->ei1 = work + 11 * stride;
    G->inv = work + 12 * stride;
    G->w = work + 13 * stride;
}

typedef struct { /* log M(a); bound of its error; E l, Var l under the tilted law; what makes the p that are left */
    double log_m, err, mean;
    double var, unit; /* weights of total 1; whether the first-order terms were dropped */
    int dropped;
} hs_moments;

/* Moments from the sums M - 1, M E l, M E l^2; e0: the rounding of the first in u, squares: see hs_squares_upper; cut:
 * what caps leave out of M. */
static inline void hs_moments_of(const double *s, double e0, double squares, double cut, hs_moments *out)
{
    double M = 1 + s[0], mean = s[1] / M;
    out->log_m = log1p(s[0]);
    out->unit = 1 / M;
    out->mean = mean;
    out->var = s[2] / M - mean * mean;
    out->err = HS_U * (e0 / M + 3 * fabs(out->log_m)) * squares + (cut < M ? cut / (M - cut) : HUGE_VAL);
}

hs_cgf hs_cgf_estimate(double m, double q, double a);
hs_cgf hs_cgf_nearby(hs_coarse *G, double m, double q, double a, double *work);
int hs_coarse_build(hs_coarse *G, double m, double q, double a_lo, double a_hi, int room, double *work);
hs_cgf hs_coarse_cgf(const hs_coarse *G, double a);
int hs_grid_build(hs_grid *G, double m, double q, double h, double lo, double hi, double *work);
double hs_grid_choose_h(double m, double q, double a, double y, double target, double h_max, int *best_strip);
double hs_grid_mesh(double h);
double hs_grid_real_h(double m, double a, double target);
double hs_grid_real_upper(double m, double a, double h);
double hs_grid_log_m_upper(const hs_grid *G, double a);
double hs_top(int n, double a, const double *l, const double *lw);
double hs_grid_top(const hs_grid *G, double a);
void hs_grid_moments(hs_grid *G, double a, hs_moments *out);
void hs_grid_weights(hs_grid *G, double a, double log_m, double *c1, double *c2);
void hs_grid_trim(hs_grid *G, double tol);
void hs_grid_spread(const hs_grid *G, double mean, double cut, double *var, double *fourth);
double hs_grid_var_upper(const hs_grid *G, double mean, double squares, double off, double wider, double level);
void hs_grid_band(const hs_grid *G, double a, double cut, double *var_lower, double *fourth_upper);
double hs_grid_quadrature_upper(hs_grid *G, double a, double y);
double hs_grid_fall(const hs_grid *G, double a);
double hs_grid_ends_upper(const hs_grid *G, double a, double log_m);
double hs_grid_dropped_upper(const hs_grid *G, double a);
/* Nodes up to N. Rounding at node n is at most y (c1 + x c2), c1 and c2 those of hs_grid_weights, x from
 * hs_grid_nodes_units, which is the same in each of three ranges that end before node hs_grid_nodes_end(range)
 * [theory: rounding.nodes]. */
enum { HS_NODES_RANGES = 3 };
static inline int64_t hs_grid_nodes_end(int range) { return range == 0 ? 9 : range == 1 ? 17 : INT64_MAX; }
void hs_grid_nodes(hs_grid *G, double dy, int64_t N, double *zr, double *zi);
double hs_grid_nodes_units(const hs_grid *G, int64_t N, int64_t n);
void hs_grid_phase(hs_grid *G, double y, double *zr, double *zi);
void hs_grid_phase_double(hs_grid *G, double *zr, double *zi);
double hs_grid_far_upper(hs_grid *G, double a, double y);

/* cgf_upper.c: log M(a) of a sampled Gaussian step is at most *log_m + *err, of a quadrature error about e^-nats, or
 * of one that is small over k steps and against log M itself. work: HS_GRID_WORK doubles, overwritten. HS_OK, or
 * HS_TOO_MANY_NODES, HS_OUT_OF_RANGE where no grid carries a. */
int hs_log_m_nats_upper(double m, double q, double a, double nats, double *work, double *log_m, double *err);
int hs_log_m_upper(double m, double q, double a, double k, double *work, double *log_m, double *err);

/* mills.c: Mills' ratio, and a bound of its relative error. */
double hs_mills(double z, double *rel_err);

#endif
