/* bulk.h - the law of one sampled Gaussian step below a cut, and the masses above it; not for the gate. */
#ifndef HS_BULK_H
#define HS_BULK_H

#include "law/transform.h"

#define HS_BULK_ORDER 12 /* moments */
#define HS_BULK_TILTS 24 /* of Chernoff's bounds */
#define HS_BULK_COLUMNS 6
#define HS_BULK_PANELS (HS_JUMPS_NODES / 20)

typedef struct {
    double m, q, k;
    double left; /* the panels begin at -left or before */
    int add;     /* ADD: no cut */
    int per;     /* nodes a panel */
    int64_t panels;
    const double *node, *weight;
    double *columns;    /* a node's w, U, L, L - U, a bound of the error of U, x */
    double *mid, *half; /* of each panel */
    double x0, l0;
    double log_unit, p, u;
    double q_den, rel; /* masses above the cut in units of e^log_unit: num, num - den, den; p's error */
    double tilt[HS_BULK_TILTS], log_b[HS_BULK_TILTS]; /* log B at most */
    double mean, square;                              /* E[R]/(k-1) at least and E L^2 at most, untilted */
} hs_bulk;

typedef struct {
    double log_b, err, mean, mean_err;
    double moment[HS_BULK_ORDER + 1], size[HS_BULK_ORDER + 1], wrong; /* raw moments, of |L|; their largest relative
                                                                         error */
} hs_bulk_tilted;

/* The exponent of 1 + U at the tilt t. */
static inline double hs_bulk_exponent(const hs_bulk *J, double t) { return J->add ? -t : 1 + t; }

int hs_bulk_open(hs_bulk *J, double m, double q, double k, const hs_rule *rule, double *work);
double hs_bulk_place(const hs_bulk *J, double loss);
void hs_bulk_masses(const hs_bulk *J, double x, double *p, double *u, double *den, double *rel);
int hs_bulk_cut(hs_bulk *J, double l, double a, double y);
int hs_bulk_cell(hs_bulk *J, double x, double end, double a, double y);
int hs_bulk_at(const hs_bulk *J, double t, int order, hs_bulk_tilted *T);
double hs_bulk_left_upper(const hs_bulk *J, double a);
double hs_bulk_phase_upper(const hs_bulk *J, double a, double y);
double hs_bulk_above(const hs_bulk *J, double n, double s);

#endif
