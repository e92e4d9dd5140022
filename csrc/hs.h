/* hs.h - the contract of the C floor: every function that the gate may call.
 *
 * Conventions. Arguments are scalars, pointers and lengths; outputs come last. A function returns a status:
 * HS_OK or the largest (worst) of the codes below; on anything but HS_OK its outputs are unspecified unless
 * said otherwise. Nothing here allocates, prints, reads errno or keeps state between calls: callers lend
 * scratch, `work` of n_work doubles, whose contents are overwritten; a function *_work says how many doubles its
 * namesakes need. Inputs are left as they are, unless a comment says that they are overwritten. Angles and losses are
 * natural (nats). u = 2^-53 is half a unit in the last place of 1. Sizes and indices that may exceed an int are
 * int64_t: a long has 32 bits on Windows.
 *
 * A step is (m, q, k): k runs of the Poisson-subsampled Gaussian with m = sensitivity/sigma > 0 and sampling
 * rate 0 < q <= 1 (q = 1: plain Gaussian). `add` is 0 for REMOVE (num = with the record), 1 for ADD.
 */
#ifndef HS_H
#define HS_H

#include <stddef.h>
#include <stdint.h>

/* Status codes: append only. The gate's table and the test of it follow this order. */
enum {
    HS_OK = 0,
    HS_LOOSE = 1,          /* proved, but wider than asked: the outputs are valid */
    HS_BAD_ARGUMENT = 2,   /* a length, pointer or value outside the documented domain */
    HS_SCRATCH = 3,        /* the lent scratch is too small */
    HS_NO_SADDLE = 4,      /* no saddle point or contour was found */
    HS_NO_PATH = 5,        /* no usable path of inner integration */
    HS_NO_DECAY = 6,       /* the integrand does not decay within the limits */
    HS_TOO_MANY_NODES = 7, /* the outer or inner sum would exceed its node limit */
    HS_TOO_WIDE = 8,       /* the proved error is not below the value */
    HS_NO_BRACKET = 9,     /* no certified bracket of eps was found */
    HS_OUT_OF_RANGE = 10,  /* a double cannot carry an intermediate value */
    HS_INTERRUPTED = 11    /* the caller asked to stop (hs_poll) */
};

/* How a caller stops a call that takes long: `ask` is called now and then by the calling thread, and once it returns
 * other than 0 the call ends soon, with any status and with outputs unspecified. work: about how many nanoseconds
 * went by since it was asked. NULL instead of one is never asked. Callers set `ask`, the others to 0. */
typedef struct {
    int (*ask)(void);
    double work;
    int stop;
} hs_poll;

/* A certified point of a privacy curve: delta in exp(log_scale) * [lower, upper]. The budget terms are
 * in the same unit (multiples of exp(log_scale)) and are already part of lower and upper. */
typedef struct {
    double log_scale, estimate, lower, upper;
    double aliasing, truncation, inner, rounding;
    double interpolation; /* of contour.c: fit.c */
    int64_t n_nodes;
} hs_point;

/* log_delta: an upper end of log delta(eps) at one eps. log delta(e) + tilt e is at most at_zero at every e: tilt > 0,
 * or 0 where nothing is known. */
typedef struct {
    double log_delta, tilt, at_zero;
} hs_ceiling;

/* What a caller lends to a call: n_work doubles of scratch, threads, and how to stop it (NULL: never). */
typedef struct {
    double *work;
    int64_t n_work;
    int n_threads;
    hs_poll *poll;
} hs_lent;

/* fit.c: a rule of few shifts stands for many steps of one sampling rate q. Error of sum k log M(a; m): within a group
 * the least over its rows of weight D/(1 - D), D = factor kappa |M(A; m) - 1|; see the head of the file. q = 1: weight
 * |z (1+z)|/2. count > 0: steps of small shifts, see orders.c, whose orders up to `least` are meant where that is
 * positive. turn > 0: a rule over rates, q the largest modulus of those on an ellipse, least their smallest real part,
 * turn the largest angle of 1 + U. A group is good for what `of` says: for all, for nodes and tilts alone, for the tail
 * alone; HS_FIT_LOSS is no group but says by how much the tail is less for rates above those of its rows. sides = 2:
 * M is that of the two-sided pair of shift m and rate q, else that of a sampled Gaussian step. */
typedef struct {
    double group, q, m;
    double factor, weight, count;
    double turn, least, of;
    double sides;
} hs_fit;

enum { HS_FIT_ALL = 0, HS_FIT_NODES = 1, HS_FIT_TAIL = 2, HS_FIT_LOSS = 3 };

enum { HS_FITS_MAX = 4096 };

/* twosided.c: a step whose pair is a public mixture of branches (w, q, up, down), in units of sigma; q_err, w_err:
 * relative errors of q and w in units of u. */
enum { HS_BRANCHES = 3 };
typedef struct {
    int branches;
    double w[HS_BRANCHES], q[HS_BRANCHES], up[HS_BRANCHES], down[HS_BRANCHES];
    double w_err, q_err;
} hs_pair;

/* Kinds of law. The first two are kinds of step: Gaussian and Laplace noise, sampled or not. */
enum { HS_LAW_NORMAL = 0, HS_LAW_LAPLACE = 1, HS_LAW_POINTS = 2, HS_LAW_POINTS_LOGCONCAVE = 3, HS_LAW_SUBLAPLACE = 4 };
enum { HS_LAW_SUBNORMAL = 5, HS_LAW_RANGE = 6, HS_LAW_SUBRANGE = 7, HS_LAW_ALLOCATION = 8 };
enum { HS_LAW_DENSITY = 9, HS_LAW_MIXTURE = 10 };

/* A run: b steps in one direction, each k runs of (m, q). The arrays are lent; a field without a use is 0 or NULL.
 * contour.c and hyperbola.c alone read pairs; prawitz.c and edgeworth.c alone read kinds; contour.c, prawitz.c
 * and saddlepoint.c know rules, the last two where n_fits > 0 as all steps with q < 1. */
typedef struct {
    int b, add;
    const int *kind; /* of each step: HS_LAW_NORMAL, or HS_LAW_LAPLACE with m = sensitivity/scale; NULL: all normal */
    const double *m, *q, *k;
    const hs_pair *pair; /* of each step: one with branches > 0, turned to the direction, replaces (m, q) */
    int ruled, n_fits;   /* the last `ruled` steps are rules; n_fits rows of what they are off by */
    int light;           /* so many of the last are left out of the tail, all of fits with count > 0 among them */
    int apart;           /* whether the rows of rules that the tail counts on are in no other sum */
    const hs_fit *fits;
    int n_outline, light_outline; /* steps that stand for all where a line is placed, the last of them light; 0: none */
    const double *outline;        /* their m, then their q, then their k */
} hs_run;

/* A Gauss-Legendre rule on [-1, 1]. */
typedef struct {
    int n;
    const double *x, *w;
} hs_rule;

/* Where a privacy curve is a given delta: lower <= eps <= upper, and the certified delta near the estimate. */
typedef struct {
    double lower, estimate, upper;
    hs_point delta;
} hs_crossing;

/* version.c */
int hs_status_last(void); /* the largest status code, for the test that walks them all */

/* jumps.c: certified delta(eps) and eps(delta) of a run of at most HS_JUMPS_STEPS distinct steps with q < 0.9, where
 * one rare large loss makes nearly all of delta. `rule` has 20 nodes. The terms of a point are what more jumps add to
 * the upper end (aliasing), truncation, quadrature (inner) and rounding. */
enum { HS_JUMPS_STEPS = 16 };
int64_t hs_jumps_work(int steps);
int hs_jumps_delta(const hs_run *run, double eps, const hs_rule *rule, double *work, int64_t n_work, hs_point *out);
int hs_jumps_eps(const hs_run *run, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                 hs_crossing *out);

/* bulk_line.c: certified delta(eps) and eps(delta) of k >= 1 runs of one pair, turned to the direction, by lines
 * through its law below a cut. A plain sampled step is a branch with down = 0 (REMOVE) or up = 0 (ADD). `rule` has 20
 * nodes. What runs with a loss above the cut add is in the upper end alone, and in `aliasing`. start: an eps near the
 * root, or 0; known: the relative width of delta from which an answer is of use, infinite where any is. */
int64_t hs_bulk_line_work(void);
int hs_bulk_line_delta(const hs_pair *pair, double k, double eps, double known, const hs_rule *rule, double *work,
                       int64_t n_work, hs_point *out);
int hs_bulk_line_eps(const hs_pair *pair, double k, double log_delta, double start, double known, const hs_rule *rule,
                     double *work, int64_t n_work, hs_crossing *out);
/* An upper bound of log delta(eps) by no line: one at most `enough` will do. */
int hs_bulk_upper(const hs_pair *pair, double k, double eps, double enough, const hs_rule *rule, double *work,
                  int64_t n_work, double *log_delta);

/* single.c: certified delta(eps) of one step of a pair. */
int hs_single_delta(const hs_pair *pair, double eps, hs_point *out);

/* hyperbola.c: certified delta(eps) and eps(delta) for distinct steps with q < 1, of at most 6 branches in all (a step
 * that is no pair has one). log_tol is the logarithm of the relative half-width wanted for delta. HS_OK and HS_LOOSE
 * leave valid outputs. */
int64_t hs_hyperbola_work(int branches);
int hs_hyperbola_delta(const hs_run *run, double eps, double log_tol, double *work, int64_t n_work, hs_point *out);
int hs_hyperbola_eps(const hs_run *run, double log_delta, double log_tol, double *work, int64_t n_work,
                     hs_crossing *out);

/* step_moments.c: moments of the shifts m of many steps of one sampling rate, in boxes of an eighth of an octave: for
 * box and degree j < HS_STEP_MOMENTS the sum of k round(2^50 T_j(x)), x = -1..1 over the box, as two words, the lower
 * one first. `sums` holds HS_STEP_BOXES HS_STEP_MOMENTS pairs. add: those of n steps are added (sign 1) or taken away
 * (-1), k = NULL for ones; HS_BAD_ARGUMENT, with nothing changed, for an m outside 2^HS_STEP_LOWEST ..
 * 2^(HS_STEP_LOWEST + HS_STEP_BOXES/8) or a k outside 1..2^41. read: the moments over 2^50, within 3u.
 *
 * rate_moments: of the steps of one box, and of rates q in one of HS_RATE_CELLS cells to the octave from
 * 2^HS_RATE_LOWEST to 1, HS_STEP_MOMENTS HS_RATE_DEGREES sums of k round(2^50 T_i(x)) round(2^60 T_j(y)) of three
 * words. rate_moments_of: those of a box of steps of the rate q, which are known by their own moments, are added.
 *
 * moments_join: sums += sign * others, n sums of two or three words. */
enum { HS_STEP_MOMENTS = 16, HS_STEP_BOXES = 328, HS_STEP_LOWEST = -30 };
enum { HS_RATE_CELLS = 32, HS_RATE_DEGREES = 10, HS_RATE_LOWEST = -40 };
int hs_step_moments_add(int64_t n, const double *m, const int64_t *k, int sign, uint64_t *sums);
int hs_rate_moments_add(int64_t n, const double *m, const double *q, const int64_t *k, int sign, uint64_t *sums);
int hs_rate_moments_of(double q, const uint64_t *box, uint64_t *sums);
int hs_moments_join(int sign, int words, int64_t n, const uint64_t *others, uint64_t *sums);
int hs_step_moments_read(const uint64_t *sums, double *moments);

/* contour.c: certified delta(eps) and eps(delta) of any number of steps on the vertical line. The caller fills the
 * first block; rtol is the relative half-width wanted for delta, T0 = -log of it plus a margin. HS_OK and HS_LOOSE
 * leave valid outputs. `work` holds scratch of a step for each thread and sums for each chunk of at most n_outer
 * nodes. */
/* HS_SHORT_LINE: outer nodes up to which the line is faster than the hyperbola; HS_SHORT_PAIR: the same of pairs, where
 * that sums over all branches. */
enum { HS_CHUNKS = 16, HS_SHORT_LINE = 700, HS_SHORT_PAIR = 2800, HS_OUTER_MAX = 65536 };
typedef struct
{ /* one side's aliases of a line of period P at c: a tilt s, at least K(s), payoff(s), 1 - e^{-|s-c| P} */
    double s, K, payoff, gap;
} hs_side;
typedef struct {
    hs_run run;
    int n_threads;
    int more;             /* room for so many steps that kept.c adds */
    int sides;            /* 2: these are those of a replaced record, two-sided pairs and shifts twice as large */
    const hs_pair *other; /* hs_contour_larger: the pairs of ADD, where run.pair are those of REMOVE; NULL: the same */
    int64_t n_max;        /* most outer nodes; no more than HS_OUTER_MAX, or a 16th of it for 32 steps and more; with
                           * HS_SHORT_LINE or HS_SHORT_PAIR a run for the hyperbola is declined soon */
    double rtol, T0;
    hs_poll *poll;
    /* filled by contour.c */
    int chunks;               /* of the steps, summed apart */
    int doublings;            /* points at which the metric and Psi bound the tail */
    int fine;                 /* Psi gets the inner mesh that its prediction had, */
    int far_shift;            /* and the shift, see hs_grid */
    int bands;                /* of frequencies beyond the nodes whose moments bound the tail */
    int64_t N;                /* the last node */
    double ktot;              /* steps in all */
    double eps, t;            /* where the line is placed, and the saddle there */
    double c, depth;          /* the line, at `depth` of the saddle */
    double sd, log_est;       /* of the loss at c; log delta, estimated */
    double cancelled, nats;   /* nats of delta lost to cancellation; below delta, at which errors aim */
    double P, dy;             /* period, mesh */
    double s_right, s_left;   /* tilts of the aliases */
    double y_grid, y_far;     /* frequencies up to which inner grids are good for phi, and moments bound the tail */
    double far_mesh;          /* inner mesh for Psi, 0: as `fine` says */
    double tail, reach;       /* what lies beyond the nodes; how far from eps the nodes serve */
    double round, inner, fit; /* sums of the nodes' errors: rounding, quadrature, rules */
    double scaled, fitted;    /* what quadrature and rules move M(c) by, relative to it */
    hs_side right, left;      /* of the aliases */
    const void *S;            /* sums over the steps */
} hs_contour;
int64_t hs_contour_work(int b, int n_threads, int64_t n_outer);
/* delta at eps = value (have_eps), out->delta, or eps at log delta = value */
int hs_contour_ask(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, hs_crossing *out);
/* at n ascending eps, a row of ten numbers each: the status, log_scale, lower, estimate, upper and the five terms */
int hs_contour_curve(hs_contour *C, int64_t n, const double *eps, double *work, int64_t n_work, double *out);
/* An upper bound of log delta(eps) (have_eps: value = eps) or of eps (value = log delta); C->t is the first tilt tried
 * if it is not 0. With -1 < C->t < 0, and have_eps, of log(1 - delta(eps)). */
int hs_contour_chernoff_upper(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, double *upper);
/* About log delta(eps), by the saddle of a sample of the steps; no bound. */
int hs_contour_estimate(hs_contour *C, double eps, double *work, int64_t n_work, double *log_delta);

/* both.c: what hs_contour_ask finds of REMOVE, out[0], and where that is valid of ADD, out[1] with the status *second,
 * or HS_LEFT_OUT where ADD is proved not to be the larger. known: have_eps, log delta of ADD is at most that; else the
 * wall, above which ADD has no loss. upper: what was found to prove it, of tilt 0 if nothing was. `work` holds
 * hs_contour_work(b, n_threads, n_max) doubles; C->run.add and C->run.pair are overwritten. */
enum { HS_LEFT_OUT = -1 };
int hs_contour_larger(hs_contour *C, int have_eps, double value, double known, double *work, int64_t n_work,
                      hs_crossing *out, int *second, hs_ceiling *upper);
/* lower end, estimate and upper end of log delta */
void hs_point_logs(const hs_point *p, double *out);

/* kept.c: a line for delta(eps) (have_eps: value = eps) or eps(delta) (value = log delta), kept in hs_kept_room()
 * doubles, is asked for either again while its run grows: of the n rows (m, q, k) that are new, the first n_kept are
 * added to `kept`. Then log delta(eps) in the other direction is at most *below, at eps or, for a root, at its lower
 * end. Making a line ends with HS_OK or HS_LOOSE as hs_contour_ask does. */
enum { HS_KEPT_MORE = 32768, HS_KEPT_NODES = 8192, HS_KEPT_LOOSE = 8 };
int64_t hs_kept_room(void);
int64_t hs_kept_size(const double *kept, int64_t n); /* of n doubles those that the line has */
int64_t hs_kept_work(void);
int hs_kept_make(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, double *kept);
typedef struct {
    int64_t n, n_kept;
    const double *rows;
} hs_more;
int hs_kept_ask(double *kept, const hs_more *more, int have_eps, double value, double *work, int64_t n_work,
                hs_crossing *out, double *below);

/* mixed.c: certified delta(eps) and eps(delta) of a composition of laws, on the vertical line or on one period of a
 * lattice. The caller fills the first block. HS_OK and HS_LOOSE leave valid outputs.
 *
 * table: b rows (kind, k, m, q, add, n, panels): one of the kinds of law below, copies, shift of the base law, sampling
 * rate, direction, and how many of the points that follow belong to it. The arrays x, l, lp, dl, dp hold all laws'
 * points one after the other: coordinate, loss, log mass, and bounds of the errors of loss and log mass.
 *   HS_LAW_POINTS_LOGCONCAVE: the points are cut out of a log-concave law.
 *   HS_LAW_ALLOCATION: q is the number of steps of an epoch. `tables`: hs_allocation_work() doubles for each, zeros at
 *     first, then what a call with the same rows of that kind left.
 *   HS_LAW_DENSITY: equidistant points of a density, see law.c; `panels` entries more hold cells beyond them (a loss
 *     above, log of 2.4 times the mass above it, a loss below, the same for the mass below), outwards; one more holds
 *     (wide, mass that the window leaves out, its low, high centre, its width). q = 1: a part of such a law, of
 *     any mass, whose masses are off by a factor within e^{+-m} beside their errors; lines of parts have c > 0.
 *   HS_LAW_MIXTURE: q is the first node and panels the mesh of hs_mixture_points, whose last two entries are no points.
 * step > 0: every loss is (step + step_low)(x + constant) with integers x, and the constants sum to `shift` over all
 * copies; step + step_low is known to d_step (relative), all losses together to d_shift (absolute). step = 0: the
 * vertical line.
 * hs_mixed_work is of b laws, of which n_subnormal are of that kind, n_points points and n_nodes nodes. */
typedef struct {
    int64_t b;
    double step, step_low, d_step;
    double shift, d_shift;
    const double *table, *x, *l;
    const double *lp, *dl, *dp;
    double rtol, T0;
    double wide;     /* relative width of eps or delta from which another line is tried */
    int64_t n_nodes; /* at most so many nodes */
    double *tables;
    int64_t n_tables;
    hs_poll *poll;
    int keep; /* whether a delta shall leave its line for hs_mixed_near, with 2 at many eps that lie apart */
    /* Whether what hs_mixed_delta and hs_mixed_near say is about 1 - delta, in digits of its own [theory:
     * line.complement]. */
    int complement;
    /* Filled by mixed.c, or with what an earlier call about the same eps or delta left: the part of the saddle at which
     * the line lay that answered, and the root it gave. Then one line is placed there; part = 0: none is known. */
    double part, place;
    /* filled by mixed.c */
    int placed;     /* whether it has */
    int near_atoms; /* whether outcomes with at most one loss off the atoms are summed apart, */
    int apart;      /* and those of which law */
    int64_t N;      /* nodes of a period */
    int64_t last;   /* last node visited */
    double eps, t, c, sd;
    double log_est, P, dy, s_right;
    double s_left, y_max; /* y_max: frequencies for which grids are made, 0: all */
    double K[3], err[3];
    double places, tail, var, factor; /* factor: the log of what masses of parts may be off by, in all */
    double lower;                     /* the part of the saddle at which the line lies */
    double smooth;                    /* variance of the normal step that stands beside the run on the nodes, 0: none */
    double *re, *im, *round, *node;
    /* of the nodes as sum.c leaves them: the eps, or place, that they are for, what they are off by, and what beside */
    double frozen, rounding, inner;
    double turned, sums[3];
    const void *laws;
} hs_mixed;
int64_t hs_mixed_work(int64_t b, int64_t n_points, int64_t n_subnormal, int64_t n_nodes);
int hs_mixed_delta(hs_mixed *A, double eps, double *work, int64_t n_work, hs_point *out);
/* delta at another eps on the line that hs_mixed_delta has placed, while its scratch and arrays are as they were. */
int hs_mixed_near(hs_mixed *A, double eps, hs_point *out);
int hs_mixed_eps(hs_mixed *A, double log_delta, double *work, int64_t n_work, hs_crossing *out);
/* K(t) = log E e^{tL} of the same run at t > 0 and a bound of its error; no HS_LAW_SUBNORMAL rows. */
int hs_mixed_cgf(hs_mixed *A, double t, double *work, int64_t n_work, double *K, double *err);
/* An upper bound of log delta(eps) without nodes, eps right of the mean of the loss; n_nodes 0, step 0. */
int hs_mixed_upper(hs_mixed *A, double eps, double *work, int64_t n_work, double *log_delta);

/* ranged.c: the largest curve of k adaptive steps of bounded ranges m[k-1] h, .., m[0] h, in the order in which they
 * run, bounded from below or, with `above`, from above, at g = 0, h, ..: m[0] + .. + m[k-1] + 1 values, the last of
 * them 0. hs_ranged_work is of that many points and the largest m. */
int64_t hs_ranged_work(int64_t points, int64_t widest);
int hs_ranged_curve(int64_t k, const int64_t *m, double h, int above, double *work, int64_t n_work, double *side);

/* halves.c: the n sums of k losses of one step, in any order: losses, num and den masses, what losses are off by, and
 * the parts that masses are, n each. step: losses of m atoms, and the same of these; terms: of num and of den k + 1 of
 * every atom, of which a sum has start times the product. */
int64_t hs_halves_work(int64_t m);
void hs_halves_sums(int64_t m, int64_t k, const double *step, const double *terms, double start, double *work,
                    int64_t n, double *out);
/* Tails y_below, y_above, x_below, x_above after the first 0, 1, .., n atoms of masses num and den, four each. */
void hs_halves_table(int64_t n, const double *num, const double *den, double *out);
/* The same of the sum of two laws of atoms at n_s places s. a: n losses,
 * increasing, then their num and den masses; b: n_b losses, increasing; tails: the table of the second law. */
void hs_halves_tails(int64_t n, const double *a, int64_t n_b, const double *b, const double *tails, int64_t n_s,
                     const double *s, double *out);

/* gdp.c: the smallest mu whose Gaussian curve G_mu covers a privacy curve, from points of that.
 *
 * eps rises along the points; delta(eps) lies between low and high, 1 - delta(eps) between left and left_high. mu:
 * about that of the Gaussian curve through low, 0 where nothing is known; rough: whether few digits were asked, or need
 * be; covered: whether G_mu covers the cell from here to the next point, or with one point alone the point. */
typedef struct {
    double eps, low, high;
    double left, left_high;
    double mu, rough, covered;
} hs_gdp_point;
/* Ends of a tangent of G_mu at eps, and of 1 less that. */
typedef struct {
    double lower, upper;
    double left_lower, left_upper;
} hs_gdp_ends;
/* Most cells that one is cut into at once, before more is known of them; half of that where more would be needed. */
enum { HS_GDP_PIECES = 8 };
/* The tangent that touches at t. */
void hs_gdp_tangent(double mu, double t, double eps, hs_gdp_ends *out);
/* over: by how much G_mu lies above the n points, at least, HUGE_VAL where no cell beside one is left; and which cells
 * it covers. */
void hs_gdp_cover(double mu, int64_t n, hs_gdp_point *p, double *over);
/* Points inside the cells that are not covered and above whose ends G_mu lies, at most HS_GDP_PIECES - 1 in each, and
 * how many; -1 where one is too short to be cut. room: what will be tried, over the largest mu of the points; far: few
 * digits will do of a point where G_mu leaves more than this part of 2 Phi. */
int64_t hs_gdp_cuts(double mu, double room, double far, int64_t n, const hs_gdp_point *p, const double *over,
                    hs_gdp_point *out);
/* The mu of the points, found to within `close` of it; and the larger of `best` and what is proved to be needed at one
 * of them up to eps = `end`. */
double hs_gdp_fit(double best, double end, double close, int64_t n, hs_gdp_point *p);

/* mixture.c: a Gaussian step whose shift is random: `weight`, of sum 1, on `shift` >= 0 in units of sigma. Its points
 * at the nodes first, first + h, .., which double precision holds exactly; rows as for mixed.c, without x. The masses
 * of all further nodes are bounded, for powers up to `reach` and frequencies up to `turn`, from `beyond` more of them.
 * Two entries after the points hold (reach, log of the bound at power 0, at `reach`) and (turn, the same at `turn`). */
enum { HS_SHIFTS_MAX = 4096 };
typedef struct {
    int n;
    const double *shift, *weight;
    double first, h;
    int64_t nodes, beyond;
    double reach, turn;
} hs_mixture;
void hs_mixture_points(const hs_mixture *g, int add, double *l, double *lp, double *dl, double *dp);

/* allocation.c: the transform of one epoch of random allocation at given frequencies; see its end. */
int64_t hs_allocation_work(void);
int hs_allocation_line(double m, double t, double c, int64_t n, const double *y, double *work, double *out);

/* one_term.c: sums over one term of an epoch, whose nodes come in multiples of HS_TERM_LANES; psi rejects it about b,
 * none beyond `last` of eta below. */
enum { HS_TERM_LANES = 16 };
typedef struct {
    double m, b, eta, last;
} hs_rejected;
int hs_term_turned(int64_t n, const double *term, int64_t n_y, const double *y, double *out);
int hs_term_transform(int64_t n, const double *term, int whole, int64_t n_s, const double *s, double *out);
int hs_term_grown(int64_t n, const double *term, double r, double rho, double *out);
int hs_term_jumps(const hs_rejected *R, int64_t n_x, const double *x, int64_t n_y, const double *y, double *out);
int hs_term_two(double m, double peak, int64_t n_x, const double *x, int64_t n, const double *cell, int64_t shells,
                const double *shell, double *out);

/* laplace.c: points of a subsampled Laplace step, by a rule of n nodes on each of `panels` panels: 2 + n panels entries
 * in each array. */
int hs_sublaplace_points(double m, double q, int add, int64_t panels, const hs_rule *rule, double *l, double *lp,
                         double *dl, double *dp);

/* grid.c: masses p[0..n-1] of cells j0..j0+n-1 of width dx of one step's loss; their sum, first moment and first
 * absolute moment; how far an edge may be off. hs_grid_log_mgf: log sum p_j exp(t j dx). */
typedef struct {
    double mass, mean, abs_mean, edge_upper;
} hs_cell_sums;
int hs_grid_prv(double m, double q, int add, double dx, int64_t j0, int64_t n, double *p, hs_cell_sums *sums);
int hs_grid_log_mgf(int64_t j0, int64_t n, double dx, const double *p, double t, double *log_mgf);
/* Masses of many steps on {j dx}: step i has p[start[i]..start[i+1]-1], from j = j0[i] on. */
typedef struct {
    int64_t steps;
    const int64_t *j0, *start;
    double dx;
    const double *p;
} hs_cells;
int hs_grid_log_mgfs(const hs_cells *cells, int64_t tilts, const double *t, double *log_mgf); /* a row for each tilt */

/* convolve.c: around the FFT. Complex arrays are interleaved pairs; see the head of the file. */
int hs_convolve_tilt(int64_t j0, int64_t n, double dx, const double *p, double t, double log_mgf, int64_t n_fft,
                     double *w);
int hs_convolve_tilts(const hs_cells *cells, double t, const double *log_mgf, int64_t n_fft, double *w, double *point,
                      double *norm2, double *norm1);
int hs_convolve_powers(int64_t n, int64_t rows, const double *spec, const double *point, const double *k, int n_threads,
                       int first, double *product);
int hs_convolve_multiply(int64_t n, double *a, const double *b);
int hs_convolve_norms(int64_t n, double *x, double scale, double *norm2, double *norm1);
int hs_convolve_tail(int64_t n, const double *r, int64_t j_lo, double dx, double t, double log_scale, int64_t n_keep,
                     double *mass, double *delta);

/* individual.c: the individual GDP filter. norms: float (is_float) or double; scale: a norm's quotient by it,
 * squared, is its cost in units; top: the largest norm allowed; a word is the units spent, with the bit HS_DROPPED
 * once a sticky filter has refused, and HS_TURN as the last kept step left it. turn: 0 words without it; 1 this step
 * sets it; 2 this step clears it. */
#define HS_DROPPED ((int64_t)1 << 62)
#define HS_TURN ((int64_t)1 << 61)
typedef struct {
    const void *norms;
    double scale, top;
    int64_t limit;
    int is_float, sticky, turn;
} hs_charge;
int hs_individual_charge(int64_t n, const hs_charge *step, const int64_t *spent, int64_t *after, uint8_t *active,
                         int n_threads, uint64_t *checksum, int64_t *bad);
int hs_individual_charge_some(int64_t n, int64_t m, const hs_charge *step, const int64_t *index, const int64_t *spent,
                              int64_t *after, uint8_t *active, uint64_t *change, int64_t *bad);
int hs_individual_scatter(int64_t n, int64_t m, const int64_t *index, const int64_t *words, int64_t *spent);
int hs_individual_checksum(int64_t n, const int64_t *spent, int64_t limit, int n_threads, uint64_t *checksum);

/* individual_levels.c, individual_epsilon.c: upper bounds of eps of many records that share noise levels (m, q), from
 * their counts [records][levels], of at most k_total runs a record. hs_individual_tilts gives upper bounds `up` of
 * log M at the tilts t, hs_individual_chernoff the least bound of each record and the tilt that gives it,
 * hs_individual_group, for records of similar tilts, lowers these bounds to those of one contour, see there. */
int hs_individual_tilts(const hs_run *levels, double k_total, int tilts, const double *t, const hs_lent *lent,
                        double *up);
typedef struct {
    int64_t records;
    int levels;
    const int32_t *k;
} hs_counts;
int hs_individual_chernoff(const hs_counts *counts, int tilts, const double *t, const double *up, double log_delta,
                           const hs_lent *lent, double *best, int32_t *which);
int64_t hs_individual_work(int levels);
int hs_individual_group(const hs_run *levels, const hs_counts *counts, double margin, double T0, double k_total,
                        double log_delta, const hs_lent *lent, double *eps_upper, double *gap);

/* tails.c: at n losses s, `tails` gets five rows of n numbers: Pr[Y <= s], Pr[Y > s], the same of X, and relative
 * errors of these; s may be the last row. The functions are of base losses and of their Poisson samples. */
int hs_normal_tails(int64_t n, const double *x, double *below, double *above);
int hs_gaussian_tails(double m, int64_t n, const double *s, double *tails);
int hs_laplace_tails(double m, int64_t n, const double *s, double *tails);
int hs_poisson_place(double q, int64_t n, const double *s, double *g, int64_t *first, double *edge, double *slope);
int hs_poisson_tails(double q, double all_y, double all_x, int64_t first, int64_t n, double *tails);

/* pld.c: laws on a lattice above and below a loss; see the head of the file. n fine cells lie between the tails at
 * s0 + i w, i = 0..n, m of them to a cell of the lattice; losses are known within `edge`, tails within `absolute` and
 * their relative errors. */
typedef struct {
    int64_t n;
    int m;
    double s0, w, edge, absolute;
} hs_fine;
int hs_pld_cells(const hs_fine *fine, double *tails);
enum { HS_PLD_FINE = 8 }; /* most fine cells between two lattice points */
int hs_pld_upper(int64_t n, int m, double w, const double *y_upper, const double *u_upper, double bottom, double *p);
int hs_pld_lower(int64_t n, int m, double w, const double *y_lower, const double *u_lower, double top, double t,
                 double *p);
int hs_pld_laws(const hs_fine *fine, double *tails, double t, int cut, double *p_upper, double *p_lower, double *p_inf);

/* pld_steps.c: many steps at once, rows of HS_STEP_COLUMNS numbers (kind 0 Gaussian or 1 Laplace, m, q, back); see
 * its head. */
enum { HS_STEP_COLUMNS = 4, HS_PLD_OCTAVE = 8, HS_PLD_LANES = 8 };
int hs_step_tails(const double *step, int64_t n, const double *s, double *tails, double *edge);
int64_t hs_step_nodes(int64_t steps, const double *table, double p, int64_t gl);
int hs_pld_step_nodes(const double *step, double p, const hs_rule *rule, int64_t room, int64_t *n, double *loss,
                      double *log_den);
int hs_pld_windows(int64_t steps, const double *table, double p_low, double p_high, double *lo, double *hi);
/* Where the laws of many steps go: step i has size[i] points at[i] + j dx, j = first[i], .., each of m fine cells, and
 * its masses from start[i] on; t is that of hs_pld_lower. */
typedef struct {
    int m;
    double dx, t;
    const double *at;
    const int64_t *first, *start, *size;
} hs_windows;
int hs_pld_steps(int64_t steps, const double *table, const hs_windows *windows, double *work, double *p_upper,
                 double *p_lower, double *edge, double *p_inf);
/* The tilts t0 2^{i/8}, i < up, then -t0 2^{i/4}, i < down, then 0; `sums` gets rows K, K', K'' at these. */
typedef struct {
    int64_t up, down;
    double t0;
} hs_ladder;
int hs_pld_table(const hs_ladder *tilts, int64_t n, const double *loss, const double *log_den, double k, double *work,
                 double *sums);
int hs_pld_tables(int64_t steps, const double *table, const double *k, double p, const hs_rule *rule,
                  const hs_ladder *tilts, double *work, double *sums, double *far);

/* saddlepoint.c: the saddle-point accountant. `kind` is one of the estimates; HS_AUTO chooses by skewness. */
enum { HS_AUTO = 0, HS_MSD0 = 1, HS_MSD1 = 2, HS_CLT = 3, HS_EDGEWORTH = 4, HS_MSD_K2 = 5, HS_MSD_K3 = 6 };
typedef struct {
    double lower, estimate, upper; /* certified ends and estimate: of log delta, or of eps */
    double log_estimate;           /* the estimate clipped into the ends of log delta */
    double raw_estimate;           /* as the formula gives it; NaN where it is not positive */
    double tilt, skew;             /* the saddle, and max(|K3|/K2^1.5, |K4|^0.5/K2) there */
    double berry_esseen, quadrature, rounding, interpolation; /* relative to the estimate of delta */
    int kind;                                                 /* the estimate that was used */
} hs_saddle;
int64_t hs_saddle_work(void);
int hs_saddle_delta(const hs_run *run, double eps, int kind, const hs_lent *lent, hs_saddle *out);
int hs_saddle_eps(const hs_run *run, double log_delta, int kind, const hs_lent *lent, hs_saddle *out);
/* the larger eps over the directions, where ADD has no loss above `wall` */
int hs_saddle_eps_both(const hs_run *run, double log_delta, int kind, double wall, const hs_lent *lent, hs_saddle *out);
/* The same for steps of finitely many losses: step i has atoms first[i] .. first[i+1]-1, with losses `loss` (each
 * within edge[i]) of probability `num` under the numerator (each within rel[i], relative), and probability inf[i]
 * (within rel[i]) of an infinite loss, which is left out: `out` is about sup over S of num(S) - e^eps den(S), S
 * without infinite losses. value: eps (have_eps) or log delta. */
typedef struct {
    const int64_t *first;
    const double *loss, *num, *rel;
    const double *edge, *inf;
} hs_atoms;
int hs_saddle_atoms(int b, const hs_atoms *atoms, const double *k, int have_eps, double value, int kind,
                    hs_saddle *out);
int hs_saddle_atoms_cgf(int b, const hs_atoms *atoms, const double *k, double t, double *K, double *err);
/* out[14]: K, a bound of its error, K', .., K6, the estimate of sum k E|x|^3 and its upper bound, then bounds of the
 * errors of K' and K'', of the Kolmogorov distance to the normal law, of quadrature in the error of K */
int hs_saddle_cumulants(const hs_run *run, double t, const hs_lent *lent, double *out);
int hs_saddle_moments_upper(const hs_run *run, int have_eps, double value, const hs_lent *lent, double *tilt,
                            double *upper);
/* The search for the least log_delta stops at one that is at most `enough`. The scratch lent is n_threads
 * hs_saddle_work() doubles. */
int hs_saddle_delta_upper(const hs_run *run, double eps, double enough, const hs_lent *lent, hs_ceiling *out);
/* at_zero of a tilt; n_threads is 1. */
int hs_saddle_ceiling_upper(const hs_run *run, double tilt, const hs_lent *lent, double *at_zero);

/* sampling.c: truncated Poisson sampling of n records at rate 0 < p < 1, at most 1 <= max_batch <= n - 1 used:
 * intervals of the effective rate q, of log w and of log(1-w), w = Pr[Bin(n-1,p) >= max_batch], as out[0..1],
 * out[2..3], out[4..5]. */
int hs_sampling_truncation(double p, double n, double max_batch, double *out);

/* The tails of one branch of hs_pair at n increasing losses, as those of tails.c. */
int hs_sampling_tails(double q, double q_err, double up, double down, int64_t n, const double *s, double *tails,
                      double *edge);

/* cgf_upper.c: log M(z) of a pair within *err, about e^-nats and small beside log M. work: hs_two_work() doubles. */
int64_t hs_two_work(void);
int hs_two_log_m_upper(const hs_pair *pair, double z, double nats, double *work, double *log_m, double *err);

/* edgeworth.c: a law is five numbers, mean and cumulants 2 to 5: of one step under the laws A and B, and their sums
 * over a run for Y and X. kind as in hs_run. Estimates of delta are e^log_scale value, where value may be negative;
 * form 1 is the form of one sequence, 2 the published one; the order is 0 to 3. */
int hs_edgeworth_moments(int kind, double m, double q, const hs_rule *rule, double *A, double *B);
int hs_edgeworth_totals(const hs_run *run, const hs_rule *rule, hs_poll *poll, double *Y, double *X);
int hs_edgeworth_delta(const double *Y, const double *X, int form, int order, double eps, double *log_scale,
                       double *value);
int hs_edgeworth_eps(const double *Y, const double *X, int form, int order, double log_delta, double *eps);

/* edgeworth_bound.c: of law A (which = 0) or B (1) the mean and E d^2, E d^3, E d^4, E|d|, E|d|^3 about it, then bounds
 * of their errors; and the largest modulus of the characteristic function of the loss on [y0, y1], for which
 * hs_prawitz_work() doubles suffice. */
#define HS_EDGEWORTH_BOUNDED 6
#define HS_EDGEWORTH_M_MAX 20.0 /* of a sampled Gaussian step */
int hs_edgeworth_bounded(int kind, double m, double q, int which, const hs_rule *rule, double *out);
int hs_edgeworth_modulus_upper(int kind, double m, double q, int which, const hs_rule *rule, double y0, double y1,
                               const hs_lent *lent, double *modulus);

/* prawitz.c: certified delta(eps) and eps(delta) from Prawitz' inequality. The caller fills the first block: T0 as in
 * hs_contour, T the smoothing limit, or 0 to have it chosen. HS_OK leaves valid outputs, however wide. The terms of an
 * hs_point are those of hs_contour, and `smooth` is one more, in the same unit. */
enum { HS_PRAWITZ_POINTS = 48, HS_PRAWITZ_NODES = 4096 };
typedef struct {
    hs_run run;
    hs_rule rule; /* for Laplace steps */
    double T0, T;
    hs_poll *poll;
    /* filled by prawitz.c */
    int points, fine;
    int far_only;               /* the tail is bounded at its first point alone */
    int tight_grids;            /* grids without nats to spare, where many steps round more than those would bring */
    int stride, representative; /* of the steps that a cumulant is estimated from; how like all those are: 0 to 2 */
    double ratio;               /* of their sums */
    int64_t N;
    double ktot, low, high, eps;
    double t, sd, log_est, s_right;
    double s_left, P, dy, reach;
    double limit, smooth, tail, round_sum;
    double inner_sum, fit_sum;
    double K[3], inner[3], err; /* at s_right, s_left, t; err at t */
    double excess[2], fitted;   /* of fit.c: see hs_sums; part of inner[2] */
    double var, k_smooth;
    double y[HS_PRAWITZ_POINTS], metric[HS_PRAWITZ_POINTS], far[HS_PRAWITZ_POINTS], gauss[HS_PRAWITZ_POINTS];
    double *re, *im, *round;
    double *node, *zr, *zi;
    double *fit; /* the part of node that is fit.c's */
    void *kept;  /* while the line is placed */
} hs_prawitz;
int64_t hs_prawitz_work(void);
int hs_prawitz_delta(hs_prawitz *S, double eps, double *work, int64_t n_work, hs_point *out);
int hs_prawitz_eps(hs_prawitz *S, double log_delta, double *work, int64_t n_work, hs_crossing *out);

/* batch.c: n independent queries; see the head of the file. work: hs_batch_work(n_threads) doubles. want_eps: `at`
 * holds deltas and the answers are eps; else `at` holds eps and the answers are logs of delta. ends: rows lower,
 * estimate, upper. done[i]: 1 within `widest`, 2 an upper end only, 0 unspecified. */
int64_t hs_batch_work(int n_threads);
typedef struct {
    int want_eps, directions, replaced;
    double rtol, T0, widest;
} hs_asked;
int hs_batch(int64_t n, const double *m, const double *q, const double *k, const double *at, const hs_asked *asked,
             const hs_lent *lent, double *ends, unsigned char *done);

#endif
