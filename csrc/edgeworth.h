/* edgeworth.h - what edgeworth.c and prawitz.c share; not for the gate. */
#ifndef HS_EDGEWORTH_H
#define HS_EDGEWORTH_H

#include "hs.h"
#include "special.h"

#define HS_LAPLACE_MAX 40.0 /* largest m of a Laplace step: 20 panels */

int hs_laplace_panels(double m); /* Gauss-Legendre panels of length at most 2 on (0, m) */

#endif
