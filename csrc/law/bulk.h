/* bulk.h - the law of one sampled Gaussian step, or of a public mixture of two-sided branches, below a cut, and the
 * masses above it; not for the gate. */
#ifndef HS_BULK_H
#define HS_BULK_H

#include "law/transform.h"

#define HS_JUMPS_NODES 16000
#define HS_BULK_WORK (8 * HS_JUMPS_NODES + HS_BULK_PANELS * (2 + HS_BULK_ELLIPSES)) /* doubles of scratch of one law */
#define HS_BULK_ORDER 12                                                            /* moments */
#define HS_BULK_TILTS 24                                                            /* of Chernoff's bounds */
#define HS_BULK_COLUMNS 8
#define HS_BULK_PANELS (HS_JUMPS_NODES / 20)
#define HS_BULK_ELLIPSES 76 /* doubles of the ellipses of a panel */
#define HS_BULK_FAR 45.0    /* a branch ends at up + HS_BULK_FAR, beyond which lies e^-1000 */

typedef struct {
    hs_pair pair; /* turned to the direction: losses increase with the place x */
    double m, q;  /* of the first branch: up, the rate */
    double k, left, wide;
    double far;                             /* where a branch of bounded loss ends if the cut is not below its losses */
    int cell;                               /* the law of one cell of losses: nothing lies left of the panels */
    int per;                                /* nodes a panel */
    int64_t panels, first[HS_BRANCHES + 1]; /* panels of a branch: first[r] to first[r + 1] - 1 */
    const double *node, *weight;
    double *columns;    /* a node's w, l1, L, l1 - U1, (l1 - U1) - (l2 - U2), bounds of the errors of l1 and l2, x */
    double *mid, *half; /* of each panel */
    double *ellipses;   /* of each panel, in bulk.c */
    double x0[HS_BRANCHES],
        cut[HS_BRANCHES]; /* where branches end; the same, infinite where none of its losses is cut */
    double l0, n0;        /* the largest loss and the largest l1 */
    double log_unit, p, u;
    double q_den, rel;         /* masses above the cut in units of e^log_unit: num, num - den, den; p's error */
    double start[HS_BRANCHES]; /* where the panels begin */
    double out_p, out_u;       /* masses beyond the panels that are not above the cut: num, num - den */
    double tilt[HS_BULK_TILTS], log_b[HS_BULK_TILTS]; /* log B at most */
    double mean, square;                              /* E[R]/(k-1) at least and E L^2 at most, untilted */
} hs_bulk;

typedef struct {
    double log_b, err, mean, mean_err;
    double moment[HS_BULK_ORDER + 1], size[HS_BULK_ORDER + 1], wrong; /* raw moments, of |L|; their largest relative
                                                                         error */
} hs_bulk_tilted;

typedef struct {
    double l1, l2, s1, s2;
} hs_bulk_loss; /* logs of both factors, and the shares of e^v in them */

int hs_bulk_open(hs_bulk *J, const hs_pair *pair, double k, const hs_rule *rule, double *work);
int hs_bulk_plain(const hs_bulk *J); /* whether it is one plain step of REMOVE */
hs_bulk_loss hs_bulk_loss_at(const hs_bulk *J, int r, double x);
void hs_bulk_losses(const hs_bulk *J, int r, double x, double step, int n, double *l1, double *l2, double *s1,
                    double *s2);
double hs_bulk_place(const hs_bulk *J, int r, double loss);
double hs_bulk_tail(double x, double *rel);
void hs_bulk_unit(hs_bulk *J, const double *x);
void hs_bulk_masses(const hs_bulk *J, const double *x, double *p, double *u, double *den, double *rel);
int hs_bulk_cut(hs_bulk *J, double l, double t, double y);
int hs_bulk_cell(hs_bulk *J, const double *from, double end, double t, double y);
double hs_bulk_log_upper(const hs_bulk *J, double t);
int hs_bulk_at(const hs_bulk *J, double t, int order, hs_bulk_tilted *T);
double hs_bulk_top_tilt(const hs_bulk *J);
double hs_bulk_top_loss(const hs_bulk *J);
int hs_bulk_estimate(const hs_bulk *J, double t, double *out);
void hs_bulk_cell_estimate(const hs_bulk *G, double t, double *out);
double hs_bulk_cell_at(const hs_bulk *G, double t, double *err);
double hs_bulk_nodes(const hs_bulk *J, double t, double dy, int64_t N, double *grid, double *re, double *im);
double hs_bulk_outside_upper(const hs_bulk *J, double t);
double hs_bulk_log_phase_upper(const hs_bulk *J, double t, double y, double enough);
double hs_bulk_above_upper(const hs_bulk *J, double n, double s);
double hs_bulk_fall_upper(const hs_bulk *J, double s, double least, double *den);

#endif
