/* law.h - the transform of one step whose loss has atoms, as a line or period contour visits it; not for the gate.
 *
 * A contour asks a law four things: estimates of K to place itself; K at a real tilt with its error; after hs_law_tilt,
 * the logs of phi(y) = M(c+iy)/M(c) at nodes y_n = n dy with their errors; and bounds of |phi| beyond a frequency.
 */
#ifndef HS_LAW_H
#define HS_LAW_H

#include "law/twosided.h"

#define HS_LAW_BLOCK 32  /* nodes handled together */
#define HS_FALLS 25      /* orders of differences of the masses of a lattice */
#define HS_ENDS_TERMS 32 /* terms of the expansion at each end of a subsampled Laplace loss */
#define HS_ENDS_COEFS 28 /* of the series of an octave below that */
#define HS_ENDS_OCTAVES 48
#define HS_ENDS_WORK (4 * (HS_ENDS_TERMS + 1) + 2 * HS_ENDS_OCTAVES * (2 * HS_ENDS_COEFS + 2))

typedef struct {
    int kind, tails, add;
    double k, m, q; /* copies; shift of the normal or Laplace base; sampling rate */
    int64_t n;      /* atoms or quadrature points: */
    const double *x, *l, *lp;
    const double *dl, *dp; /* phase coordinate, loss, log mass, bounds of the errors of the last two */
    double unit;           /* loss = unit (x + constant): 1 where x is the loss itself */
    /* set by hs_law_tilt at the tilt c: */
    double c, log_m, err;
    double mean, var_upper; /* K with its error; mean and an upper bound of the variance of x */
    double *r, *xr, ref;
    double c1, quad; /* tilted masses, x - ref; |dphi(y)| <= |y| c1 + quad */
    int64_t nr;
    double peak;    /* log-concave on consecutive integers: bound of its largest tilted mass, else HUGE_VAL */
    double spacing; /* log-concave on a line: the step of its lattice, 0 where it has none; */
    double fall[HS_FALLS], off; /* sums of the moduli of differences of its tilted masses, and what these miss */
    double panels, order;       /* HS_LAW_SUBLAPLACE: Gauss panels and nodes in each; HS_LAW_MIXTURE: the mesh */
    double a, b, w0;
    double w1, flat;     /* Laplace: constants of phi; HS_LAW_MIXTURE: flat is the largest error of a loss;
                          * HS_LAW_DENSITY: its width, w0 the log of a factor that masses of a part are known within */
    double *ri, *xi;     /* HS_LAW_SUBNORMAL: the imaginary parts of r and xr, NULL on the real line */
    double log_mt[2];    /* HS_LAW_SUBNORMAL: K at the tilts of the aliases, */
    double err_t[2];     /* with its errors */
    double reach, level; /* the largest |xr|; the error of |phi| beyond the nodes */
    hs_grid grid;
    double *ends, y_ends, y_out[2], lost[2];
    int cells; /* HS_LAW_DENSITY: entries after the points, of what lies beyond them */
    /* HS_LAW_SUBLAPLACE: from y_ends on, see laplace_ends.c. HS_LAW_MIXTURE: the largest power and a frequency; lost,
     * mass: logs of what lies beyond the points, see mixture.c; rho: of E e^{y theta}; level_f: the slope at the end */
    double lambda[2], mass[2], rho[2], level_f[2];
    double atoms, smooth;   /* HS_LAW_SUBLAPLACE: 1 and 1; without its atoms 0 and 2/(1 - e^-m), see range.c */
    double half, log_atoms; /* Laplace kinds: |rho(y)| <= half/y; log of the atoms' tilted mass */
    double *allocation;     /* HS_LAW_ALLOCATION: tables, kept from one call to the next; q is the number of steps */
} hs_law;

typedef struct {
    double K, err, mean, var;
} hs_law_value; /* log M(t), bound of its error,
    tilted mean and variance of the loss */

/* About how many nanoseconds a twentieth of a call of hs_law_cgf takes, and at most a value of the transform. */
static inline double hs_law_cost(const hs_law *w) { return w->kind == HS_LAW_ALLOCATION ? 1e5 : 100 + (double)w->n; }

/* Whether it is a part of a density, whose mass is not known to be 1. */
static inline int hs_law_is_part(const hs_law *w) { return w->kind == HS_LAW_DENSITY && w->q > 0; }

void hs_law_cgf(const hs_law *w, double t, hs_law_value *out);
void hs_law_estimate(const hs_law *w, double t, hs_law_value *out);
int hs_law_tilt(hs_law *w, const double *tilts, double y_max, double T0, double *scratch);
int64_t hs_law_scratch(const hs_law *w);
void hs_law_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round,
                  double *node);
double hs_law_gap_lower(const hs_law *w, double y);
double hs_law_far_upper(const hs_law *w, double y);
double hs_law_spaced_upper(const hs_law *w, double x);

/* subnormal.c */
void hs_subnormal_estimate(const hs_law *w, double t, hs_law_value *out);
int hs_subnormal_tilt(hs_law *w, const double *tilts, double y_max, double T0, double *scratch);
double hs_subnormal_missing(const hs_law *w, double y);
double hs_subnormal_far_upper(const hs_law *w, double y);

/* laplace_ends.c */
void hs_ends_tilt(hs_law *w, double *scratch);
void hs_ends_atoms(const hs_law *w, double y, double *ar, double *ai);
void hs_ends_phi(const hs_law *w, double dy, int64_t n0, int count, double *zr, double *zi);
double hs_ends_missing(const hs_law *w, double low, double y);

/* mixture.c */
void hs_mixture_estimate(const hs_law *w, double t, hs_law_value *out);
void hs_mixture_tilt(hs_law *w);
double hs_mixture_missing_upper(const hs_law *w, double t, double y, double log_m);
double hs_mixture_far_upper(const hs_law *w, double y);

/* range.c */
void hs_range_cgf(double m, double t, hs_law_value *out);
void hs_range_tilt(hs_law *w, double c);
void hs_range_phi(const hs_law *w, double y, double *zr, double *zi);
void hs_range_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round);
double hs_range_far_upper(const hs_law *w, double y);

/* allocation.c */
void hs_allocation_estimate(const hs_law *w, double t, hs_law_value *out);
void hs_allocation_cgf(const hs_law *w, double t, hs_law_value *out);
int hs_allocation_tilt(hs_law *w, double c, double T0);
void hs_allocation_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round);
double hs_allocation_gap_lower(const hs_law *w, double y);
double hs_allocation_far_upper(const hs_law *w, double y);

/* laplace.c */
void hs_laplace_cgf(double m, double t, hs_law_value *out);
void hs_laplace_tilt(hs_law *w, double c);
void hs_laplace_phi(const hs_law *w, double y, double *zr, double *zi);
double hs_laplace_decay_upper(const hs_law *w, double y);
double hs_sublaplace_quadrature_upper(const hs_law *w, double t, double y, double log_m);
double hs_sublaplace_far_upper(const hs_law *w, double y);
int hs_laplace_floor_matters(hs_law *w, double T0);
double hs_laplace_tail_upper(const hs_law *w, double Y);
double hs_laplace_reach(const hs_law *w, double target);
void hs_laplace_rest(const hs_law *w, double y, double node, double *re, double *im, double *round);
/* delta of outcomes that are summed apart, minus its derivative and a bound of its error, relative to e^log_scale; the
 * mass of all others, under num and den alike. */
typedef struct {
    double value, slope, err;
    double others;
} hs_apart;
int hs_laplace_beside(const hs_law *w);
void hs_laplace_few(const hs_law *w, const hs_law *beside, double eps, double log_scale, hs_apart *out);

#endif
