/* hs.h - the contract of the C floor: every function that the gate may call.
 *
 * Conventions. Arguments are scalars, pointers and lengths; outputs come last. A function returns a status:
 * HS_OK or the largest (worst) of the codes below; on anything but HS_OK its outputs are unspecified unless
 * said otherwise. Nothing here allocates, prints, reads errno or keeps state between calls: callers lend
 * scratch. Angles and losses are natural (nats). u = 2^-53 is half a unit in the last place of 1.
 *
 * A step is (m, q, k): k runs of the Poisson-subsampled Gaussian with m = sensitivity/sigma > 0 and sampling
 * rate 0 < q <= 1 (q = 1: plain Gaussian). `add` is 0 for REMOVE (num = with the record), 1 for ADD.
 */
#ifndef HS_H
#define HS_H

#include <stddef.h>

/* Status codes: append only. The gate's table and the test of it follow this order. */
enum {
    HS_OK = 0,
    HS_LOOSE = 1,            /* proved, but wider than asked: the outputs are valid */
    HS_BAD_ARGUMENT = 2,     /* a length, pointer or value outside the documented domain */
    HS_SCRATCH = 3,          /* the lent scratch is too small */
    HS_NO_SADDLE = 4,        /* no saddle point or contour was found */
    HS_NO_PATH = 5,          /* no usable path of inner integration */
    HS_NO_DECAY = 6,         /* the integrand does not decay within the limits */
    HS_TOO_MANY_NODES = 7,   /* the outer or inner sum would exceed its node limit */
    HS_TOO_WIDE = 8,         /* the proved error is not below the value */
    HS_NO_BRACKET = 9,       /* no certified bracket of eps was found */
    HS_OUT_OF_RANGE = 10     /* a double cannot carry an intermediate value */
};

/* A certified point of a privacy curve: delta in exp(log_scale) * [lower, upper]. The four budget terms are
 * in the same unit (multiples of exp(log_scale)) and are already part of lower and upper. */
#define HS_POINT_DEFINED
typedef struct {
    double log_scale, estimate, lower, upper;
    double aliasing, truncation, inner, rounding;
    long n_nodes;
} hs_point;

/* version.c */
int hs_status_last(void); /* the largest status code, for the test that walks them all */

/* hyperbola.c: certified delta(eps) and eps(delta) for at most 6 distinct steps with q < 1. log_tol is the log of
 * the relative half-width wanted for delta. HS_OK and HS_LOOSE leave valid outputs. work: 60,000 + 80,000 b doubles. */
int hs_hyperbola_delta(int b, const double *m, const double *q, const double *k, int add, double eps,
                       double log_tol, double *work, long n_work, hs_point *out);
int hs_hyperbola_eps(int b, const double *m, const double *q, const double *k, int add, double log_delta,
                     double log_tol, double *work, long n_work, double *eps_lower, double *eps_estimate,
                     double *eps_upper, hs_point *out);

/* twosided.c: a step whose pair is a public mixture of branches (w, q, up, down), in units of sigma; q_err, w_err: relative
 * errors of q and w in units of u. */
enum { HS_BRANCHES = 3 };
typedef struct {
    int branches;
    double w[HS_BRANCHES], q[HS_BRANCHES], up[HS_BRANCHES], down[HS_BRANCHES];
    double w_err, q_err;
} hs_pair;

/* contour.c: certified delta(eps) and eps(delta) of any number of steps on the vertical line. The caller fills the first block;
 * rtol is the relative half-width wanted for delta, T0 = -log of it plus a margin. HS_OK and HS_LOOSE leave valid outputs.
 * work: chunks * (HS_GRID_WORK + 6 (N+1)) doubles; hs_contour_work() tells how many for N = HS_OUTER_MAX. */
enum { HS_CHUNKS = 16, HS_OUTER_MAX = 4096 };
typedef struct {
    int b, add, n_threads;
    long n_max;                      /* decline when more outer nodes are planned; at most HS_OUTER_MAX */
    const double *m, *q, *k;
    const hs_pair *pair;             /* NULL, or b of them: one with branches > 0, turned to the direction, replaces (m, q) */
    double rtol, T0;
    /* filled by contour.c */
    int chunks, doublings;
    long N;
    double ktot, eps, t, c, sd, log_est, P, dy, s_right, s_left, y_grid, y_far, tail, reach, round, inner;
    const void *S;
} hs_contour;
long hs_contour_work(int b, long n_outer);
/* an upper bound of log delta(eps) (have_eps: value = eps) or of eps (value = log delta); C->t is the first tilt tried if > 0 */
int hs_contour_chernoff_upper(hs_contour *C, int have_eps, double value, double *work, long n_work, double *upper);
int hs_contour_delta(hs_contour *C, double eps, double *work, long n_work, hs_point *out);
int hs_contour_curve(hs_contour *C, long n, const double *eps, double *work, long n_work, double *out); /* out: 9 n */
int hs_contour_eps(hs_contour *C, double log_delta, double *work, long n_work, double *lower, double *estimate,
                   double *upper, hs_point *out);
/* grid.c: masses p[0..n-1] of cells j0..j0+n-1 of one step's loss, their sum, first and absolute moment, and how far an
 * edge may be off; log sum p_j exp(t j dx). */
int hs_grid_prv(double m, double q, int add, double dx, long j0, long n, double *p, double *mass, double *mean,
                double *abs_mean, double *edge_upper);
int hs_grid_log_mgf(long j0, long n, double dx, const double *p, double t, double *log_mgf);

/* convolve.c: around the FFT. Complex arrays are interleaved pairs; see the head of the file. */
int hs_convolve_tilt(long j0, long n, double dx, const double *p, double t, double log_mgf, long n_fft, double *w,
                     double *abs_exponent);
int hs_convolve_power(long n, const double *spec, double point, double k, int first, int n_threads, double *product);
int hs_convolve_multiply(long n, double *a, const double *b);
int hs_convolve_norms(long n, const double *x, double *norm2, double *norm1);
int hs_convolve_tail(long n, const double *r, long j_lo, double dx, double t, double log_scale, long n_keep,
                     double *mass, double *delta);

/* pld.c: tails of the normal law; see the head of the file for the others. */
int hs_normal_tails(long n, const double *x, double *below, double *above);
int hs_pld_cells(long n, double s0, double w, const double *y_below, const double *y_above, const double *x_below,
                 const double *x_above, const double *rel, double edge, double absolute, double *y_upper,
                 double *u_upper, double *y_lower, double *u_lower);
int hs_pld_upper(long n, double w, const double *y_upper, const double *u_upper, double bottom, double *p);
int hs_pld_lower(long n, double w, const double *y_lower, const double *u_lower, double top, double t, double *p);

/* sampling.c: truncated Poisson sampling of n records at rate 0 < p < 1, at most 1 <= max_batch <= n - 1 used: intervals of the
 * effective rate q, of log w and of log(1-w), w = Pr[Bin(n-1,p) >= max_batch], as out[0..1], out[2..3], out[4..5]. */
int hs_sampling_truncation(double p, double n, double max_batch, double *out);

/* tails of one branch at increasing losses; see the head of the file */
int hs_sampling_tails(double q, double q_err, double up, double down, long n, const double *s, double *y_below, double *y_above,
                      double *x_below, double *x_above, double *rel, double *edge);

/* twosided.c */
/* log M(z), mean and variance of the loss, phi(y) = M(z+iy)/M(z), with error bounds; see the function */
long hs_two_work(void);
int hs_two_transform(const hs_pair *pair, double z, double y, double target, double *work, long n_work, double *out);

#endif
