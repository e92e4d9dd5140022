/* saddlepoint.h - the tilted law of a composition: sums over inner grids, and what saddle_ends.c and saddlepoint.c make
 * of them; not for the gate. */
#ifndef HS_SADDLEPOINT_H
#define HS_SADDLEPOINT_H

#include "hs.h"
#include "line/fit.h"
#include "line/saddle.h"

/* Totals of a composition at tilt t. Errors bound the difference to the exact value. */
typedef struct {
    double t, K, K_err, quad; /* quad: the part of K_err that is quadrature */
    double d[7];              /* d[1..6]: derivatives of K */
    double mean_err, var_err; /* of d[1], d[2] */
    double fit;               /* the part of K_err that is rules' */
    double r3, r3_upper;      /* sum k E|Y - E Y|^3 over the steps that are not plain Gaussian */
    double r4_upper;          /* the same of the fourth powers; 0 of atoms */
    double side_upper;        /* sum k (E x^3 + 2 B E x^2) >= sum k E|x|^3, x = l - E l >= -B; 0 of atoms */
    double kolmogorov;        /* sup |F - Phi((x - d[1])/sqrt d[2])| is at most this */
} hs_tilted;

typedef struct {                   /* the steps, as in hs.h, and a sample of them for planning */
    int b, add, stride, n_threads; /* work: HS_GRID_WORK doubles for each thread */
    const double *m, *q, *k;
    const hs_atoms *atoms; /* instead of m and q */
    int n_fits;
    const hs_fit *fits;
    hs_poll *poll;
    double *work, scale; /* scale: all counts / counts in the sample */
    hs_grid grid;        /* of the only step, where there is one, for exponents grid_lo..grid_hi */
    double grid_lo, grid_hi;
    hs_coarse coarse; /* likewise */
    double coarse_work[4 * HS_COARSE_ONE];
} hs_steps;

/* clt, error (times e^{K - eps t}), rounding (relative): for the budget */
typedef struct {
    double log_lower, log_upper, clt;
    double error, rounding;
} hs_ends;

int hs_steps_open(hs_steps *S, const hs_run *run, const hs_lent *lent); /* for one thread */
hs_cgf hs_steps_cgf(hs_steps *S, double t, int stride);
int hs_steps_tilted(hs_steps *S, double t, hs_tilted *T);
int hs_step_tilted(hs_grid *G, double a, hs_tilted *T); /* one step on a grid of any mesh */
int hs_atoms_tilted(const hs_atoms *A, int i, double t, hs_tilted *T);
void hs_tilted_cumulants(hs_tilted *T, double mean, const double *s); /* d[1..6], from the sums of p x^j, j < 7 */
hs_cgf hs_atoms_cgf(const hs_atoms *A, int i, double t);
void hs_tilted_move(const hs_tilted *T, double t, hs_tilted *to);
double hs_log_chebyshev_lower(double t, double d, double var);
void hs_ends_at(const hs_tilted *T, double eps, hs_ends *E); /* of log delta, from the totals at one tilt */
double hs_skew(const hs_tilted *T);
double hs_pick_estimate(const hs_tilted *T, double eps,
                        int *kind); /* log of the estimate, NaN where it is not positive */

#endif
