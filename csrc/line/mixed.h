/* mixed.h - what mixed.c and mixed_place.c share; the public part is in hs.h. */
#ifndef HS_MIXED_H
#define HS_MIXED_H

#include "law/law.h"
#include "line/root.h"
#include "line/saddle.h"
#include "line/sum.h"

hs_law_value hs_mixed_total(const hs_mixed *A, double t);
hs_law_value hs_mixed_estimate(const hs_mixed *A, double t);
int hs_mixed_saddle(hs_mixed *A, int have_eps, double log_delta);
void hs_mixed_saddle_below(hs_mixed *A);
void hs_mixed_place(hs_mixed *A);
int hs_mixed_parts(const hs_mixed *A);
double hs_mixed_complement_upper(const hs_mixed *A, double eps);

/* mixed_bands.c: the law of a run whose lattice the others do not share. */
typedef struct {
    const hs_law *law;
    double T, X; /* 2 pi over its step; distance from a multiple of T beyond which nodes are left out */
} hs_bands;

/* The part of the variance of a smoothing step that bounds of nodes left out count, and the factor by which the rest
 * of the variance lets those of a density exceed them: y^2 e^{-(1-part) s y^2/2} <= 2/(e (1-part) s). */
#define HS_SMOOTH_PART 0.875
#define HS_SMOOTH_DENSITY 5.9

int hs_bands_find(const hs_mixed *A, double nats, hs_bands *out);
double hs_bands_reach(const hs_bands *bands, double to);
double hs_bands_off(const hs_bands *bands, double y);
double hs_bands_tail_upper(const hs_mixed *A, const hs_bands *bands, double Y, double to);

/* mixed_top.c: the answer where it lies next to the largest loss; whether it does, or a status. */
int hs_mixed_top_delta(const hs_mixed *A, double eps, hs_point *out);
int hs_mixed_top_eps(const hs_mixed *A, double log_delta, hs_crossing *out);

#endif
