/* tuning.h - constants that cost speed or width and never soundness: every bound holds whatever they are.
 * `python benchmarks/tune.py NAME` builds the library with several values of one and prints what time and width each
 * has on the questions of its part below.
 */
#ifndef HS_TUNING_H
#define HS_TUNING_H

/* The line. */
#define HS_FAR_MESH 0.15     /* mesh times shift for which Psi is good at small phases */
#define HS_BAND_MESH 0.05    /* mesh times shift where moments are bounded cell by cell */
#define HS_BAND_CUT 1.7      /* a band counts losses that lie no further apart than this over its last frequency */
#define HS_BAND_BOTH 1.1     /* losses that reach as far to both sides count up to this over the last frequency */
#define HS_LOSS_MAX 28       /* nats that cancellation may take from the 36 of a double */
#define HS_FEW_NODES 64      /* outer nodes that cost less than placing the line */
#define HS_LONG_LINE 512     /* outer nodes from which a visit that has to be repeated costs most of the answer */
#define HS_SHIFT_NODES 128   /* outer nodes that shifted paths, which round about three times more, do not pay for */
#define HS_SAMPLE 48         /* steps on which a line is placed */
#define HS_EVEN 0.33         /* part of its chances that a sample spreads evenly over the steps */
#define HS_SUBSAMPLE 2048    /* steps that stand for all where K is summed to place a line */
#define HS_LINE_PERIOD 24    /* deviations: a longer period at the saddle asks for a line below it */
#define HS_LINE_LOWER 0.6    /* the tilt of that line over the saddle's */
#define HS_LINE_BETWEEN 0.75 /* and where that loses too much, of one between */
#define HS_LINE_LOWEST 0.42  /* and of one further down, for a period above HS_LINE_LONG deviations */
#define HS_LINE_LONG 28
#define HS_NEAR_NATS 1e-9 /* what a rule is off by on a disc of tilts, below which no smaller disc is tried */
#define HS_FIT_NATS 3     /* what a rule may be off by at the tilts of the aliases */

#define HS_KEPT_SOME 1024  /* steps that a line which is kept may take in at least, */
#define HS_KEPT_RULED 4096 /* and one by a rule, which is soon made again */
#define HS_KEPT_WIDE 1e-6  /* relative width of an answer from which a line is not kept */

/* The saddle and the period. */
#define HS_LINE_REACH 40     /* nats by which aliases of a line that shall serve many eps lie further below delta */
#define HS_SADDLE_STEPS 90   /* evaluations of K in search of a saddle */
#define HS_SADDLE_SECANTS 8  /* evaluations from which on secants replace Newton's steps between two signs */
#define HS_ALIAS_STEPS 14    /* tilts tried for the least period */
#define HS_ALIAS_HALVINGS 30 /* halvings to a tilt at which K is known at all */

/* How far the modulus of a line has fallen beyond its last node. */
#define HS_FALL_STEPS 400 /* of the metric at most, */
#define HS_FALL_LONG 3000 /* and where so many lead to frequencies at which a bound for all larger ones is enough */

/* The certified root. */
#define HS_ROOT_NEWTON 60    /* evaluations of the curve for the estimate */
#define HS_ROOT_LOST 16      /* of these with a value lost in its errors, where no end will be certified */
#define HS_ROOT_SHORT 0.01   /* of the bracket: a shorter step of the tangent is none */
#define HS_ROOT_OUTWARD 30   /* evaluations for each end */
#define HS_ROOT_NEARBY 10    /* after so many the distance is doubled from one trial to the next */
#define HS_ROOT_NEAR 0.05    /* of the width of the curve at a point: what Newton may leave of the distance */
#define HS_ROOT_GROWTH 1.25  /* of the distance from one trial of an end to the next */
#define HS_ROOT_PLACES 8     /* at which lines are made until a root is within reach */
#define HS_ROOT_HOPELESS 1e3 /* upper over lower end; from a second such place on no other is tried */

/* The hyperbola. */
#define HS_HYP_JUMPS 4    /* nats that phi falls by before it levels off, below which it is asked before a short line */
#define HS_HYP_RECORDS 1  /* in ADD: records expected in all samples, of which the same is said */
#define HS_HYP_PAIR 0.5   /* of both, of pairs, whose lines may be longer */
#define HS_HYP_MARGIN 7.0 /* planned log of (strip integral / |M|) */
#define HS_HYP_GROWTH 4.0 /* rise of log |integrand| allowed at the two shifted vertices */
#define HS_HYP_LEFT 0.4   /* of the saddle: how far left of it the left vertex may lie; wider arcs round more */
#define HS_HYP_STRETCH 0.065 /* part of the vertices' distance that the polygon reaches beyond the right one */
#define HS_HYP_QUIET 2.0     /* nats below the largest cell at which a cell adds little to a norm */
#define HS_HYP_DEEP 20.0     /* nats below the floor at which a slow tail is taken as it is */

/* One large loss (widths.py, rows of small k q). */
#define HS_JUMPS_ENOUGH 1e-7  /* relative width of delta at which no lower cut is tried */
#define HS_JUMPS_VAIN 6       /* cuts that say nothing from which no lower one is tried */
#define HS_JUMPS_WON 0.8      /* of the width of one cut, from which the next is the last */
#define HS_JUMPS_HOPELESS 2.0 /* upper over lower end at the first place from which no root is sought */
#define HS_JUMPS_SPREAD 12.0  /* theta^2 var of the bulk from which Taylor's polynomial is hopeless */

#define HS_BULK_NODES 16384 /* outer nodes of the line through the law below a cut */

#endif
