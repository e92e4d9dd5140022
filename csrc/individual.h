/* individual.h - the tables that many records share; not for the gate. */
#ifndef HS_INDIVIDUAL_H
#define HS_INDIVIDUAL_H

#include "contour.h"

enum { HS_K0, HS_K0_ERR, HS_K_LEFT, HS_FAR, HS_NODES, HS_HEADS = HS_NODES + 8 }; /* a level's columns; 8 parts of nodes */
#define HS_STRIDE_MAX 4096 /* nodes of a table */
#define HS_CAP 1e200 /* stands for infinity: 0 times it is 0 */

/* The eighth of the nodes that node n belongs to: number i starts at node ceil(i (N+1)/8). */
static inline int hs_part(const hs_contour *C, long n) { return (int)(8 * n / (C->N + 1)); }

int hs_individual_plan(hs_contour *C, double tilt, double log_delta, double margin, double *work, long n_work);
int hs_individual_table(const hs_contour *C, long stride, double *work, long n_work, double *head, double *re, double *im);

#endif
