/* hyperbola.h - what the four hyperbola files share; not for the gate. */
#ifndef HS_HYPERBOLA_H
#define HS_HYPERBOLA_H

#include "law/transform.h"
#include "tuning.h"

enum {
    HS_HYP_MAX_STEPS = 6,
    HS_HYP_PATHS = 11,
    HS_HYP_CELLS = 64,
    HS_HYP_MAX_NODES = 1024,
    HS_HYP_TMP = 4096,
    HS_HYP_ARRAYS = 9
};

/* One curve xi -> g(xi + i t) of the inner plane, sampled at xi_j = (j0 + j) h. */
typedef struct {
    int n;
    double h;
    double *lr, *li, *lw, *dd; /* L; log(h |w (1+U2)|/sqrt(2 pi)) + slack; slack per unit |a| */
    double *cr, *ci, *c0, *c1; /* node line only: log(w (1+U2) g' sqrt(2 pi)); rounding per unit, per |a| */
    double floor, left_lw, left_rho, left_turn;
    double right_lw, right_lr, right_li; /* both open ends */
    double lam0, mslope, merr;
    double m, l_max;
} hs_line;

/* A branch of a step's pair: num (1-q) N(0,1) + q N(up,1), den (1-q) N(0,1) + q N(-down,1), 0 <= down <= up; of weight
 * w in its step, whose relative errors in units of u are those of hs_pair. */
typedef struct {
    int step;
    double w, q, up, down;
    double q_err, w_err;
} hs_hyp_branch;

typedef struct { /* an inner path and its two shifted copies */
    int state;   /* 0 not built, 1 built, -1 unusable */
    double m, q, logq, logq1;
    double down, q_err, floor, xd; /* floor: log|e^L| left of all samples is at most floor x; xd: as xb, of 1 + U2 */
    double xb, mu1, mu2, x1;
    double x2, w, d, h;
    double lo, hi, lift;
    hs_line mid, up, dn;
} hs_path;

typedef struct {
    double *p;
    int64_t left;
} hs_arena;

int hs_path_plan(hs_path *path, const hs_hyp_branch *branch, int rung, int add, double kappa, double reach,
                 double t_inner);
int hs_path_build(hs_path *path, hs_arena *mem, double *tmp);
int hs_path_build_strip(hs_path *path, hs_arena *mem, double *tmp);
double hs_line_log_upper(const hs_line *line, double x, double y, double *tmp);
double hs_line_log_ends_upper(const hs_line *line, double x, double y);
double hs_line_rate_upper(const hs_line *line, double kappa);
void hs_line_node(const hs_line *line, double x, double y, double *out, double *tmp);

/* angle of the main hyperbola, half-width of the strip in v, cell of the bounds */
#define HS_HYP_GAMMA 0.30
#define HS_HYP_BETA 0.28
#define HS_HYP_DV 0.25

typedef struct { /* cells of one hyperbola, v in [i DV, (i+1) DV] */
    int n;
    double gamma, v_end, kernel[HS_HYP_CELLS]; /* kernel: log of the bound of |a'/(a (a-1))| */
    double phi[HS_HYP_CELLS][3], x[HS_HYP_CELLS + 2], y[HS_HYP_CELLS + 2]; /* sum k log B at three vertices; vertices */
    double log_e[HS_HYP_CELLS][HS_HYP_MAX_STEPS];
    int rung[HS_HYP_CELLS][HS_HYP_MAX_STEPS];
    double end_phi, end_x, end_y;
    double rate0, rate1; /* tail: sum k log B at the end, sum k Lambda per unit y */
    double kap0, kap1;
} hs_arc;

typedef struct {
    int b, add, n;
    const double *m, *q, *k;
    const hs_pair *pair;            /* of each step, or NULL */
    int branches, paired;           /* of all steps; whether any step is a pair */
    int from[HS_HYP_MAX_STEPS + 1]; /* where the branches of a step begin */
    hs_hyp_branch branch[HS_HYP_MAX_STEPS];
    double ktot, wall; /* wall = sum k log(1-q), 0 for log(1-q) of a step of two sides: s > wall */
    double s, t, a_s;
    double k2, a0, A;
    double h_v, t_inner, ki_max;
    hs_path path[HS_HYP_MAX_STEPS][HS_HYP_PATHS];
    hs_coarse coarse[HS_HYP_MAX_STEPS]; /* of each step, for K on the real axis */
    double *coarse_work;
    hs_arena mem;
    /* node position, its |error| over 22U; K, relative inner and rounding error; A h_v a'/(2 pi i a (a-1)), doubled
     * after the first */
    double *tmp, *nx, *ny, *pos;
    double *kr, *ki, *ein, *ern;
    double *wr, *wi;
    hs_arc lo, up, mid;
} hs_job;

hs_cgf hs_hyp_tilt(hs_job *J, double t);
int hs_hyp_saddle(hs_job *J, int have_s, double log_delta);
int hs_hyp_place(hs_job *J);
int hs_hyp_plan(hs_job *J);
int hs_hyp_march(hs_job *J, hs_arc *C, double gamma, int kind, double log_floor);
double hs_hyp_log_tail_upper(const hs_job *J, const hs_arc *C, double s, double h);
double hs_hyp_log_norm_upper(const hs_job *J, const hs_arc *C, double s);

#endif
