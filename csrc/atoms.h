/* atoms.h - what atoms.c and atoms_place.c share; the public part is in hs.h. */
#ifndef HS_ATOMS_H
#define HS_ATOMS_H

#include "law.h"

/* exponent of Chernoff's bound with the optimal constant, for the pay-off that tilt s > 0, -1 <= s <= 0 or s < -1 bounds */
static inline double hs_payoff(double s) { return s > 0 ? s * log(s) - (1 + s) * log1p(s) : s < -1 ? hs_payoff(-1 - s) : 0; }

hs_law_value hs_atoms_total(const hs_atoms *A, double t);
int hs_atoms_saddle(hs_atoms *A, int have_eps, double log_delta);
void hs_atoms_saddle_below(hs_atoms *A);
void hs_atoms_place(hs_atoms *A);
double hs_atoms_complement_upper(const hs_atoms *A, double eps);

#endif
