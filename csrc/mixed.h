/* mixed.h - what mixed.c and mixed_place.c share; the public part is in hs.h. */
#ifndef HS_MIXED_H
#define HS_MIXED_H

#include "law.h"

/* exponent of Chernoff's bound with the optimal constant, for the pay-off that tilt s > 0, -1 <= s <= 0 or s < -1 bounds */
static inline double hs_payoff(double s) { return s > 0 ? s * log(s) - (1 + s) * log1p(s) : s < -1 ? hs_payoff(-1 - s) : 0; }

hs_law_value hs_mixed_total(const hs_mixed *A, double t);
int hs_mixed_saddle(hs_mixed *A, int have_eps, double log_delta);
void hs_mixed_saddle_below(hs_mixed *A);
void hs_mixed_place(hs_mixed *A);
double hs_mixed_complement_upper(const hs_mixed *A, double eps);

#endif
