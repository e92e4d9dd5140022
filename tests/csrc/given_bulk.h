/* given_bulk.h - what a check that reads a line over the law below a cut lends to that line: the law by a rule of few
 * nodes and panels for small frequencies where `few_nodes` is set, and nodes whose logarithms are off by as much as is
 * claimed. Files that are read after this header call these; the check calls the library's own after an #undef. */
#include "law/bulk.h"
#include "line/sum.h"

static double *work, x20[20], w20[20], x_few[20];
static double w_few[20], turned_node, turned_round;
static int few_nodes;

static void few_of(hs_bulk *J)
{
    J->per = few_nodes ? few_nodes : 20;
    J->node = few_nodes ? x_few : x20;
    J->weight = few_nodes ? w_few : w20;
}

static int given_cut(hs_bulk *J, double l, double t, double y)
{
    few_of(J);
    return hs_bulk_cut(J, l, t, few_nodes ? 0 : y);
}

static int given_cell(hs_bulk *J, const double *from, double end, double t, double y)
{
    few_of(J);
    return hs_bulk_cell(J, from, end, t, few_nodes ? 0 : y);
}

/* Errors of the nodes' logarithms as large as claimed, turned so that all add. */
static void given_freeze(hs_nodes *F)
{
    double d = turned_node + turned_round;
    int64_t n;
    for (n = 0; d > 0 && n <= F->N; n++) {
        double y = (double)n * F->dy, turn = F->im[n] - F->eps * y - atan2(y, F->c) - atan2(y, 1 + F->c);
        F->re[n] += d * cos(turn);
        F->im[n] -= d * sin(turn);
        ((double *)F->node)[n] += turned_node;
        ((double *)F->round)[n] += turned_round;
    }
    hs_nodes_freeze(F);
}

#define hs_bulk_cut given_cut
#define hs_bulk_cell given_cell
#define hs_nodes_freeze given_freeze
