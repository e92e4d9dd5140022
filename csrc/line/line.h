/* line.h - what the files contour*.c and individual_*.c share; the public part is in hs.h. */
#ifndef HS_LINE_H
#define HS_LINE_H

#include "law/twosided.h"
#include "line/fit.h"
#include "line/root.h"
#include "line/saddle.h"
#include "line/sum.h"
#include "tuning.h"

#define HS_DOUBLINGS 20 /* tail points Y, 2Y, 4Y, ... */
#define HS_PROBES 12    /* frequencies at which the decay is sampled, ratio 2 */
#define HS_BANDS 8      /* of frequencies beyond the nodes, each with its own moments */
#define HS_STEPS_WORK (HS_SAMPLE * 4 * HS_COARSE_MAX)
#define HS_SAMPLE_WORK (HS_STEPS_WORK + 2 * HS_SUBSAMPLE)
#define HS_SUMS_WORK(N) (7 * ((int64_t)(N) + 1))

#define HS_STEP_WORK HS_TWO_WORK /* scratch of one step: the larger of HS_GRID_WORK and HS_TWO_WORK */

typedef struct { /* at most HS_SAMPLE of the steps, with a grid each and how many steps each stands for */
    int n;
    int64_t at[HS_SAMPLE];
    double share[HS_SAMPLE];
    hs_coarse grid[HS_SAMPLE];
    hs_two_coarse two[HS_SAMPLE]; /* of the steps that are pairs */
    int64_t stride;               /* doubles of work a step */
    double k, *work;              /* total count of the sample */
    int64_t subsample;            /* so many steps, who[i] with weight[i]; all of them where who is NULL */
    double *who, *weight;
} hs_sample;

typedef struct {                              /* sums over steps; index 0, 1, 2: tilts c, s_right, s_left */
    double K[3], err[3], inner[3], fitted[3]; /* fitted: what the rules of fit.c may be off by */
    double loose[3], excess[3];     /* the same of M - 1, and by how much that exceeds log M over the rows of rules */
    double *re, *im, *round, *node; /* k log phi at the nodes; bounds of its rounding, and of its quadrature and fit */
    double *fit;                    /* the part of fit.c in node, kept by the first chunk */
    double *zr, *zi;                /* scratch: phi - 1 of one step */
    double metric[HS_DOUBLINGS], far[HS_DOUBLINGS], gauss[HS_DOUBLINGS];
    double var, k_smooth, share; /* share: of the tail, see fit.c */
    double spread[HS_BANDS], fourth[HS_BANDS],
        slack; /* sums of k Var l, k E(l-l')^4 for each band, k times the error of |phi| up to y_far */
} hs_sums;

/* How often a sum over all steps is rounded on the way of one term [theory: rounding.sums]. */
static inline double hs_joins(const hs_contour *C)
{ return ceil((double)C->run.b / C->chunks) + C->chunks - 2 + C->more; }

/* Sums are kept for chunks of many steps; few steps have one, with room for as many nodes as all have together. */
static inline int hs_chunks(int b) { return b < 2 * HS_CHUNKS ? 1 : HS_CHUNKS; }

/* Whether step j is a two-sided pair, already turned to the direction asked, instead of (m, q). */
static inline int hs_is_pair(const hs_contour *C, int64_t j) { return C->run.pair && C->run.pair[j].branches > 0; }

/* The exponent of a step's M at z. */
static inline double hs_contour_tilt(const hs_contour *C, double z) { return C->run.add ? -z : 1 + z; }

/* Whether step j is one of a rule that stands for many steps: its k is a real number, and fit.c bounds what the rule is
 * off by. */
static inline int hs_is_ruled(const hs_contour *C, int64_t j) { return j >= C->run.b - C->run.ruled; }

/* Whether step j is one whose decay the tail leaves out: its rule may be good for nodes alone, or others may do. */
static inline int hs_is_light(const hs_contour *C, int64_t j) { return j >= C->run.b - C->run.light; }

/* Whether the tail alone counts on step j. */
static inline int hs_is_apart(const hs_contour *C, int64_t j)
{ return C->run.apart && hs_is_ruled(C, j) && !hs_is_light(C, j); }

/* log Psi; of a rule -(1 - Psi^2)/2, which is more: the rule is good for 1 - |phi|^2 [theory: compression.tail]. */
static inline double hs_far_log(double psi, int ruled) { return ruled ? -0.5 * (1 - psi) * (1 + psi) : log(psi); }

/* By how much M - 1 exceeds log_m, which is within err of log M. */
static inline double hs_excess(double log_m, double err)
{ return fmax(0, hs_up(expm1(log_m + err) - log_m) + 8 * HS_U * fabs(log_m)); }

static inline int hs_has_pairs(const hs_contour *C)
{
    int64_t j;
    for (j = 0; C->run.pair && j < C->run.b; j++)
        if (hs_is_pair(C, j)) return 1;
    return 0;
}

/* Band i of the frequencies beyond the nodes, up to C->y_far: from hs_band(C, i) to hs_band(C, i + 1), the first the
 * narrowest; its moments are those of the losses |l| <= hs_band_cut(C, i, q), which are above about -q. */
static inline double hs_band(const hs_contour *C, int i)
{
    double Y = (double)C->N * C->dy;
    return i == 0 ? Y : i == C->bands ? C->y_far : Y * pow(C->y_far / Y, pow((double)i / C->bands, 1.5));
}

static inline double hs_band_cut(const hs_contour *C, int i, double q)
{
    double y = hs_band(C, i + 1);
    return C->bands == 1 ? HUGE_VAL : fmax(HS_BAND_BOTH / y, HS_BAND_CUT / y - q);
}

/* The bound of contour_visit.c on -log|phi| at the lower (i even) and upper end of band i/2: the least of it lies at
 * one of them. */
static inline double hs_band_lower(const hs_contour *C, const hs_sums *S, int i)
{
    double y = hs_band(C, (i + 1) / 2), x = y * y;
    return 0.5 * x * S->spread[i / 2] * (1 - HS_SUMS) - (x * x * S->fourth[i / 2] / 48 + S->slack) * (1 + HS_SUMS);
}

int hs_contour_place(hs_contour *C, int have_eps, double log_delta, double depth, double *work); /* contour_place.c */
int hs_contour_saddle(hs_contour *C, int have_eps, double log_delta, double *work);
int hs_contour_sample(const hs_contour *C, double *who, double *share);
int hs_contour_plan(hs_contour *C, double *work); /* contour_plan.c */
int hs_contour_extend(hs_contour *C, double *work);
int hs_contour_visit(const hs_contour *C, double *work, hs_sums *S); /* contour_visit.c */
int hs_contour_visit_more(const hs_contour *C, double m, double q, double k, hs_sums *S, double *work);
double hs_contour_log_tail_upper(const hs_contour *C, const hs_sums *S);
enum { HS_DEPTHS = 5 };
extern const double hs_depths[HS_DEPTHS]; /* of lines below the saddle, in the order in which they are tried */
int hs_line_visit(hs_contour *C, int have_eps, double log_delta, double depth, double *work, int64_t n_work,
                  hs_sums *S); /* contour.c */
void hs_line_freeze(hs_contour *C, hs_sums *S);
int hs_line_point(const hs_contour *C, double eps, hs_point *out);
int hs_line_answer(hs_contour *C, int have_eps, double value, hs_crossing *out);
double hs_fit_upper(const hs_contour *C, double s, double excess, double *work); /* fit.c */
int hs_fit_visit(const hs_contour *C, double *work, hs_sums *S);

#endif
