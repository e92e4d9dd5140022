/* orders.h - what rules for steps of small shifts are off by; not for the gate. */
#ifndef HS_ORDERS_H
#define HS_ORDERS_H

#include "hs.h"
#include "special.h"

enum { HS_ORDERS = 24, HS_ORDER_ROWS = 8 };

typedef struct
{ /* a group of rows with count > 0, and q^j E (e^v - 1)^j at most: on its box, on the ellipse of a row */
    const hs_fit *fits;
    int rows;
    double box[HS_ORDERS + 1], row[HS_ORDER_ROWS][HS_ORDERS + 1];
} hs_orders;

/* rows <= HS_ORDER_ROWS of one group. */
void hs_orders_lay(const hs_fit *fits, int rows, hs_orders *O);

/* What sum k log M(a; m), of_log, or sum k (M - 1) is off by at every a within r of A + iy', |y'| <= y. grown: that of
 * hs_orders_growth_upper at A + r. */
double hs_orders_upper(const hs_orders *O, double A, double r, double y, double grown, int of_log);

/* 1 + max(1, M(2 (A - 4); m_1)) for A > 4, at most; below, nothing needs it. work: HS_STEP_WORK doubles. */
double hs_orders_growth_upper(const hs_orders *O, double A, double *work);

/* L: |log M(a; m)| <= (m/m_1)^2 L for |a - A| <= r and every shift of the group [theory: compression.small-near]. */
double hs_orders_size_upper(const hs_orders *O, double A, double r, double grown);

#endif
