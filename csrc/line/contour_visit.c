/* contour_visit.c - what every step adds to the sums of contour.c, and the bound of the tail that follows from them.
 *
 * Symbols as in contour.c; r_j, l_j, phi of one step as in transform.c; Y = N dy the last node.
 *
 * Tail. |int beyond Y| <= (1/pi) e^{-B}/Y (1 + dy/Y) [theory: line.truncation], B a lower bound of -sum k log|phi(y)|,
 *   y >= Y, in one of three ways [theory: line.far-frequencies]:
 *   Psi alone (y_far = Y): Psi(Y) of transform.c falls with y.
 *   moments (y_far > Y): -sum k log|phi| >= x V/2 - x^2 F/48 - slack, x = y^2, least at the ends of each of C->bands
 *     intervals from Y to y_far, which count pairs with |l|, |l'| <= cut, of the order of 1/y [theory: line.moments];
 *     Psi(y_far) beyond. slack = sum k sup | |phi| - |phi_h| |; none where the moments are bounds for the law itself.
 *   metric (y_far = 0): A(y) = (sum k 2 (1-|phi|))^{1/2} at the points Y, 2Y, 4Y ... [theory: line.metric,
 *     line.doubling]; the last of them is covered by Psi.
 */
#include "line/line.h"

/* A plain Gaussian step is exact: log phi(y) = -m^2 y^2/2 + i m^2 (c + 1/2) y (REMOVE and ADD alike). */
static void visit_gaussian(const hs_contour *C, double m, double k, hs_sums *S)
{
    double v = m * m * k, z[3] = {C->c, C->s_right, C->s_left}, units = (6 + hs_joins(C)) * HS_U;
    int64_t n;
    int i;
    for (i = 0; i < 3; i++) {
        S->K[i] += 0.5 * v * z[i] * (1 + z[i]); /* [theory: pair.gaussian] */
        S->err[i] += units * 0.5 * v * fabs(z[i] * (1 + z[i]));
    }
    for (n = 0; n <= C->N; n++) {
        double y = (double)n * C->dy;
        S->re[n] -= 0.5 * v * y * y;
        S->im[n] += v * (C->c + 0.5) * y;
        S->round[n] += units * v * y * (0.5 * y + fabs(C->c + 0.5));
    }
    for (i = 0; i < C->doublings; i++) {
        double y = C->N * C->dy * ldexp(1, i);
        S->gauss[i] += 0.5 * v * y * y;
    }
    for (i = 0; i < C->bands; i++) S->spread[i] += hs_down(v);
    S->far[0] -= C->y_far > 0 ? 0.5 * v * C->y_far * C->y_far : 0;
}

/* An upper bound of log x for x >= 1: by the exponent of x alone, log 2 rounded up. */
static inline double log_by_exponent_upper(double x)
{ return (hs_from_bits((hs_bits(x) >> 52) | 0x4330000000000000ULL) - (4503599627370496.0 + 1022.0)) * 0.69314719; }

/* k log phi of the nodes from .. to-1 from Z = phi - 1, with the errors of phi divided by |phi|
 * [theory: rounding.log-phi]. Z is off by dz |phi|, a bound of first order by products of errors that transform.c pays
 * for; the node is off by no more than prod (1 + dz) - 1 [theory: line.inner], log1p dz <= dz/sqrt(1 + dz), and where
 * phi is lost in rounding, so that dz is large, by the exponent of 1 + dz. Powers of a rule are real: there the
 * logarithm itself has to be known, to -log(1 - dz - qz) [theory: compression.real]. One root serves both errors, as
 * sqrt(1 + x) <= 1 + x/2, and 1/(1 - x) <= 1 + 2x up to 1/2 saves a quotient. */
HS_CLONES static void add_node_range(const hs_contour *C, double k, int mirrored, int ruled, double slope, double quad,
                                     int64_t from, int64_t to, hs_sums *S)
{
    double *restrict re = S->re, *restrict im = S->im, *restrict round = S->round, *restrict node = S->node;
    const double *restrict zr = S->zr, *restrict zi = S->zi;
    double sign = mirrored ? -k : k, times = fabs(k), dy = C->dy, joins = 4 + hs_joins(C);
    int n, count = (int)to;
    HS_SEPARATE
    for (n = (int)from; n < count; n++) {
        double x = zr[n], w = zi[n], mod2 = (1 + x) * (1 + x) + w * w;
        double lr = hs_log_modulus(2 * x + x * x + w * w, mod2), li = hs_atan2(w, 1 + x);
        double y = (double)n * dy, inv = 1 / sqrt(mod2), dz = y * slope * inv;
        double qz = quad * inv, size = sqrt(x * x + w * w), root = 1 / sqrt((1 + dz) * (1 + qz));
        double fits = dz < 1e150 && qz < 1e150 ? 1 : 0, off, moved, real;
        double top = log_by_exponent_upper(1 + dz), quad_top = log_by_exponent_upper(1 + qz);
        re[n] += k * lr;
        im[n] += sign * li;
        size = size < 3 ? size : 3;
        off = dz * (1 + 0.5 * qz) * root;
        off = off < top ? off : top;
        off = dz < 0.5 ? dz * (1 + 2 * dz) : off;
        off = times * (off + HS_U * (12 * size + joins * (fabs(lr) + fabs(li))));
        moved = qz * (1 + 0.5 * dz) * root; /* |prod (1+d) - 1| <= prod (1+|d|) - 1 */
        moved = times * (moved < quad_top ? moved : quad_top);
        real = dz + qz < 0.25 ? 1.6 * times * qz * (dz + qz) : HUGE_VAL;
        moved += ruled ? real : 0;
        round[n] += fits != 0 ? off : HUGE_VAL;
        node[n] += fits != 0 ? moved : HUGE_VAL;
    }
}

/* The same; slope: what rounding does to phi over y, in each of the ranges of hs_grid_nodes. */
static void add_nodes(const hs_contour *C, double k, int mirrored, int ruled, const double *slope, double quad,
                      int64_t from, int64_t to, hs_sums *S)
{
    int64_t end;
    int i;
    for (i = 0; i < HS_NODES_RANGES; i++, from = end) {
        end = hs_grid_nodes_end(i) < to ? hs_grid_nodes_end(i) : to;
        end = end > from ? end : from;
        add_node_range(C, k, mirrored, ruled, slope[i], quad, from, end, S);
    }
}

/* The slopes of hs_grid_nodes; c1, c2: see hs_grid_weights. */
static void grid_slopes(const hs_contour *C, const hs_grid *G, double c1, double c2, double *slope)
{
    int i;
    for (i = 0; i < HS_NODES_RANGES; i++) slope[i] = c1 + c2 * hs_grid_nodes_units(G, C->N, hs_grid_nodes_end(i) - 1);
}

/* What k copies of a step add to the moments of every band [theory: law.spread, line.moments], for the law on the grid
 * as it was computed, whose weights sum to 1 within n u. `quad`: how far |phi| is from that law's, up to y_far,
 * rounding included. */
static void band_moments(const hs_contour *C, const hs_grid *G, double q, double mean, double quad, double k,
                         hs_sums *S)
{
    double var, fourth;
    int i;
    for (i = 0; i < C->bands; i++) {
        hs_grid_spread(G, C->bands == 1 ? mean : 0, hs_band_cut(C, i, q), &var, &fourth);
        S->spread[i] += k * fmax(0, var);
        S->fourth[i] += k * fourth;
    }
    S->slack += k * (quad + 2 * G->n * HS_U);
}

/* The same for the law itself, whose density is known to the relative error `off`: no slack, so no mesh fine enough
 * for y_far. */
static void exact_moments(const hs_contour *C, const hs_grid *G, double a, double off, double k, hs_sums *S)
{
    double var, fourth;
    int i;
    for (i = 0; i < C->bands; i++) {
        hs_grid_band(G, a, hs_band_cut(C, i, G->q), &var, &fourth);
        S->spread[i] += k * var * (1 - off) * (1 - off);
        S->fourth[i] += k * fourth * (1 + off) * (1 + off);
    }
}

/* A lower bound of 2 (1 - |phi|) at y = Y 2^i, where phi on the grid is off by err; i rises by ones from 0. */
static double metric_lower(hs_grid *G, int i, double y, double err, double c2)
{
    double x, w, a2;
    if (i == 0) hs_grid_phase(G, y, &x, &w);
    else hs_grid_phase_double(G, &x, &w);
    /* 1 - |phi|^2, what its terms round by left out: |x|, |w| <= min(2, y E|l|) and c2 = u E|l| */
    a2 = -(2 * x + x * x + w * w) - 32 * y * c2;
    a2 = 2 * a2 / (1 + sqrt(fmax(0, 1 - a2))) - 2 * err;
    return fmax(a2, 0);
}

/* Bound of |phi - phi on the grid| at y = Y 2^i from the weights and phases; see hs_grid_weights. */
static double doubled_error_upper(double y, int i, double c1, double c2) { return y * (c1 + 64.0 * (1 << i) * c2); }

/* Whether the phases of nodes from .. to lie where hs_cis_m1 is proved, with room for those of shifted paths; l is
 * monotone there. */
static int turns_fit(const hs_contour *C, const hs_grid *G, int from, int to)
{ return C->y_grid * fmax(fabs(G->l[from]), fabs(G->l[to])) < 1e6; }

/* Whether shifted paths (twosided_shift.c), each of whose nodes costs about twice, pay for a step that would have
 * `n` nodes on the real line: then the real line serves y = 0, Psi and exact moments only, with `rows` nodes. There
 * is `room` for either. */
static int shifts(const hs_contour *C, int exact, double n, double n_shifted, double rows, double room)
{
    int tail = C->y_far < 0 || (C->y_far > 0 && (exact || !(C->y_far > (double)C->N * C->dy)));
    return C->N > HS_SHIFT_NODES && tail && fmax(rows, n_shifted) < room && 2.2 * n_shifted < n;
}

/* K of the aliases of k subsampled steps, to a nat over all steps. */
static int subsampled_aliases(const hs_contour *C, double m, double q, double k, int ruled, hs_sums *S, double *work)
{
    int i, st;
    for (i = 1; i < 3; i++) {
        double s = i == 1 ? C->s_right : C->s_left, log_m, err;
        if ((st = hs_log_m_nats_upper(m, q, C->run.add ? -s : 1 + s, 7 + log(C->ktot), work, &log_m, &err))) return st;
        S->K[i] += k * log_m;
        S->err[i] += fabs(k) * err + HS_U * (2 + hs_joins(C)) * fabs(k * log_m);
        if (ruled) S->excess[i] += fmax(k, 0) * hs_excess(log_m, err);
    }
    return HS_OK;
}

/* The inner grid of a subsampled step, tilted by a, to e^-R: its mesh and ends, the strip of its quadrature bound,
 * whether shifted paths serve the nodes, and whether the moments are those of the law itself. */
typedef struct {
    double a, R;
    double h, lo, hi;
    int strip, shifted, exact;
} inner_grid;

/* h <= 0 if there is none. */
static inner_grid inner_grid_of(const hs_contour *C, double m, double q, int light)
{
    inner_grid I = {C->run.add ? -C->c : 1 + C->c,
                    C->nats + C->cancelled + log(C->ktot) + (C->run.add || light ? 6 : 2),
                    0,
                    0,
                    0,
                    0,
                    0,
                    0};
    double far_h, width;
    double h_max = light             ? 1
                   : C->far_mesh > 0 ? C->far_mesh
                   : C->fine         ? HS_FAR_MESH / fmax(m, 1)
                                     : 1; /* Psi needs that mesh at small phases, as its prediction has it */
    I.h = hs_grid_choose_h(m, q, I.a, C->y_grid, I.R, h_max, &I.strip);
    if (C->bands > 1 && !light) {
        /* moments of the grid's law need |phi| up to y_far, to e^-4 over all steps: unless that takes too many nodes */
        int other = 0;
        double fine = hs_grid_choose_h(m, q, I.a, C->y_far, log(C->ktot) + 4, I.h, &other);
        I.exact = fine < 0.5 * I.h;
        I.h = I.exact ? hs_grid_mesh(fmin(I.h, HS_BAND_MESH / fmax(m, 1))) : fine;
    }
    width = sqrt(2 * (I.R + 2)) + 0.5 * I.h; /* half a cell before its end p is e^-(R+2) */
    I.lo = -width - hs_left_reach_upper(m, q, I.a);
    I.hi = fmax(m, I.a * m) + width;
    far_h = (C->bands > 1 ? HS_BAND_MESH : HS_FAR_MESH) / fmax(m, 1);
    far_h = hs_grid_mesh(fmin(hs_grid_real_h(m, I.a, I.R + 2), far_h));
    I.shifted = C->N > 2 * HS_SHIFT_NODES /* nodes cost less than a pair's */
                && shifts(C, C->bands > 1, (I.hi - I.lo) / I.h, hs_grid_shift_count(m, q, I.a, I.hi - I.lo, I.R),
                          (I.hi - I.lo) / far_h + 16, HS_INNER_MAX / 2);
    if (I.shifted) {
        I.h = far_h;
        I.exact = C->bands > 1;
    }
    return I;
}

/* k copies of a subsampled step on its inner grid, and what its nodes and its tail are bounded by. */
typedef struct {
    inner_grid I;
    hs_grid G;
    hs_moments mo;
    double k, c1, c2; /* see hs_grid_weights */
    double out;       /* relative error of M(c) by the quadrature, the ends and what was dropped */
    double level;     /* error of phi on the neighbourhood of the real line: ends and y = 0 */
    double rest;      /* level and what the trimmed weights leave out */
    double quad;      /* error of phi at the nodes visited, but for rounding */
    int ruled, light, apart;
} gridded;

/* The nodes of a step on its grid of the real line: an error bound for all or, where that is not small beside the
 * aliases, one for those up to half of y_grid, which carry most of the sum, and one for the others. */
static void plain_nodes(const hs_contour *C, gridded *V, hs_sums *S)
{
    double slope[HS_NODES_RANGES], half = 0.5 * C->y_grid, near;
    int64_t mid;
    grid_slopes(C, &V->G, V->c1, V->c2, slope);
    V->quad = hs_grid_quadrature_upper(&V->G, V->I.a, C->y_grid) + V->rest;
    mid = (int64_t)fmin((double)C->N + 1, floor(half / C->dy));
    if ((fabs(V->k) + C->more) * V->quad < exp(-C->nats)) mid = 0; /* so many more steps may be like this one */
    hs_grid_nodes(&V->G, C->dy, C->N, S->zr, S->zi);
    if (mid) {
        near = hs_grid_quadrature_upper(&V->G, V->I.a, half) + V->rest;
        add_nodes(C, V->k, C->run.add, V->ruled, slope, near, 0, mid, S);
    }
    add_nodes(C, V->k, C->run.add, V->ruled, slope, V->quad, mid, C->N + 1, S);
}

/* What a subsampled step adds to the bound of the tail. */
static void subsampled_tail(const hs_contour *C, gridded *V, hs_sums *S)
{
    hs_grid *G = &V->G;
    double a = V->I.a, m = G->m, k = V->k;
    double reach = fmax(-G->lo, G->hi), sd = sqrt(V->mo.var);
    int i;
    if (C->y_far > 0) {
        if (V->I.exact) exact_moments(C, G, a, 1.1 * V->out + V->mo.err, k, S);
        else if (C->y_far > C->N * C->dy) {
            if (C->y_far > 2 * C->y_grid) G->strip = -1;
            if (C->y_far > C->y_grid) V->quad = hs_grid_quadrature_upper(G, a, C->y_far) + V->rest;
            band_moments(C, G, G->q, V->mo.mean, V->quad + C->y_far * V->c1, k, S);
        }
        S->far[0] += k * hs_far_log(fmin(1, hs_grid_far_upper(G, a, C->y_far) + V->level), V->ruled);
    }
    if (C->y_far != 0) return;
    for (i = 0; i < C->doublings; i++) {
        double y = C->N * C->dy * ldexp(1, i),
               err = doubled_error_upper(y, i, V->c1, V->c2) + V->level + hs_grid_quadrature_upper(G, a, y);
        S->metric[i] += k * metric_lower(G, i, y, err, V->c2);
        if (i == 0 || y * sd * 2 * HS_PI > 3 * G->h) /* Psi bounds nothing before; 0 is always a bound */
            S->far[i] += k * log(fmin(1, hs_grid_far_upper(G, a, y) + V->level));
    }
    S->var += k * hs_grid_var_upper(G, V->mo.mean, hs_squares_upper(a, m, reach), 20 * m * (reach + m),
                                    3.4 + m * 2.61 * (G->h + 1 / hs_grid_fall(G, a)), V->level);
}

/* The grid of a subsampled step and K at c with its error. work: HS_STEP_WORK doubles, where the grid lies. */
static int lay_grid(const hs_contour *C, double m, double q, gridded *V, double *work)
{
    hs_grid *G = &V->G;
    double a;
    int st;
    V->I = inner_grid_of(C, m, q, V->light);
    if (!(V->I.h > 0)) return HS_TOO_MANY_NODES;
    if ((st = hs_grid_build(G, m, q, V->I.h, V->I.lo, V->I.hi, work))) return st;
    a = V->I.a;
    hs_grid_moments(G, a, &V->mo);
    V->out = hs_grid_real_upper(m, a, V->I.h) + hs_grid_ends_upper(G, a, V->mo.log_m);
    V->level = 2 * V->out;
    V->rest = V->level + 4 * exp(-V->I.R - 2);
    if (V->mo.dropped) V->out += hs_grid_dropped_upper(G, a) / exp(fmin(V->mo.log_m, 0));
    if (!(V->out < 0.1)) return HS_TOO_WIDE;
    hs_grid_weights(G, a, V->mo.log_m, &V->c1, &V->c2);
    hs_grid_trim(G, exp(-V->I.R - 2));
    if (!turns_fit(C, G, 0, (int)((G->hi - G->lo) / G->h + 0.5))) return HS_OUT_OF_RANGE;
    G->strip = V->I.strip;
    G->far_shift = C->far_shift;
    return HS_OK;
}

/* One subsampled step on its inner grid: K at c, every node, the tail unless it is light. */
static int visit_subsampled(const hs_contour *C, double m, double q, gridded *V, hs_sums *S, double *work)
{
    hs_two_shift P;
    double slope, k = V->k;
    int st, ruled = V->ruled;
    if (!V->apart && (st = subsampled_aliases(C, m, q, k, ruled, S, work))) return st;
    if ((st = lay_grid(C, m, q, V, work))) return st;
    if (V->apart) {
        V->quad = hs_grid_quadrature_upper(&V->G, V->I.a, C->y_grid) + V->rest;
        subsampled_tail(C, V, S);
        return HS_OK;
    }
    S->K[0] += k * V->mo.log_m;
    S->err[0] += fabs(k) * V->mo.err + HS_U * (2 + hs_joins(C)) * fabs(k * V->mo.log_m);
    S->inner[0] += 1.1 * fabs(k) * V->out;
    if (V->I.shifted) {
        if ((st = hs_grid_shift_build(&V->G, V->I.a, V->mo.log_m, V->mo.err, 1.1 * V->out, V->I.R, &P))) return st;
        slope = hs_two_shift_nodes(&P, C->dy, C->N, V->G.er, S->zr, S->zi);
        add_node_range(C, k, C->run.add, ruled, slope, V->quad = P.quad, 0, C->N + 1, S);
    } else plain_nodes(C, V, S);
    if (!V->light) subsampled_tail(C, V, S); /* [theory: compression.light] */
    S->k_smooth += k;
    return HS_OK;
}

/* Nats below which inner grids of pairs leave everything out. */
static double pair_depth(const hs_contour *C) { return C->nats + C->cancelled + log(C->ktot) + 2; }

/* Meshes of a pair at the tilts z and whether its nodes are worth the shifted paths. 0 if there is no mesh. */
static int pair_meshes(const hs_contour *C, const hs_pair *pair, const double *z, double log_m, double R, double *h,
                       int *shifted)
{
    double count = 0, rows = 0, lo;
    double hi, width = sqrt(2 * (R + 3)) + 1, far_h[HS_BRANCHES];
    int i, r, e;
    for (r = 0; r < pair->branches; r++) {
        double far_mesh = ldexp(614, -12) / fmax(fmax(pair->up[r], pair->down[r]), 1); /* about 0.15 */
        h[r] = fmin(hs_two_choose_h(pair, r, z[0], C->y_grid, R, log_m), C->fine ? far_mesh : HUGE_VAL);
        far_h[r] = fmin(hs_two_real_h(pair, r, z[0], R + 2), far_mesh);
        for (i = 1; i < 3; i++) { /* K is needed there to a nat */
            double m = hs_two_real_h(pair, r, z[i], 5 + log(C->ktot));
            h[r] = fmin(h[r], m);
            far_h[r] = fmin(far_h[r], m);
        }
        hs_two_range(pair, r, fmin(z[0], z[2]), fmax(z[0], z[1]), width, &lo, &hi);
        count += (hi - lo) / h[r];
        rows += (hi - lo) / far_h[r] + 16;
    }
    *shifted = shifts(C, 0, count, hs_two_shift_count(pair, z[0], fmin(z[0], z[2]), fmax(z[0], z[1]), width, R), rows,
                      HS_TWO_MAX / 2);
    for (r = 0; r < pair->branches; r++) {
        if (*shifted) h[r] = far_h[r];
        h[r] = frexp(h[r], &e);
        h[r] = ldexp(floor(h[r] * 4096), e - 12); /* so that nodes and their squares are exact */
        if (!(h[r] > 0)) return 0;
    }
    return 1;
}

/* The nodes of a pair on the grids of the real line; the quadrature bound is taken for four ranges of frequencies, the
 * highest first, whose strip serves the others, too. */
static void pair_nodes(const hs_contour *C, hs_two *T, double k, int ruled, double c1, double c2, double rest,
                       hs_sums *S)
{
    double slope[HS_NODES_RANGES];
    int64_t from, to = C->N + 1;
    int i;
    grid_slopes(C, &T->G, c1, c2, slope);
    hs_grid_nodes(&T->G, C->dy, C->N, S->zr, S->zi);
    for (i = 4; i >= 1; i--, to = from) { /* |y| <= i/4 y_grid */
        double quad = hs_two_quadrature_upper(T, C->c, C->y_grid * i / 4) + rest;
        from = (int64_t)fmin((double)to, floor(C->y_grid * (i - 1) / 4 / C->dy));
        add_nodes(C, k, 0, ruled, slope, quad, from, to, S);
    }
}

/* An upper bound of the variance of the pair's loss at the tilt c. */
static double pair_var_upper(const hs_contour *C, hs_two *T, double mean, double level)
{
    double squares = 1, off = 0, wider = 0;
    int r;
    for (r = 0; r < T->pair->branches; r++) {
        double up = T->pair->up[r], down = T->pair->down[r],
               g = fmax(-T->G.g[T->first[r]], T->G.g[T->first[r] + T->nodes[r] - 1]);
        squares = fmax(squares, hs_squares_upper(1 + C->c, up, g) * hs_squares_upper(C->c, down, g));
        off = fmax(off, 20 * (up * (g + up) + down * (g + down)));
        wider = fmax(wider, 36.2 + (up + down) * 2.61 * (T->h[r] + 1 / hs_two_fall(T, C->c, r)));
    }
    return hs_grid_var_upper(&T->G, mean, squares, off, wider, level);
}

/* What a pair adds to the bound of the tail, on the grids of the real line. */
static void pair_tail(const hs_contour *C, hs_two *T, double k, int ruled, double c1, double c2, double level,
                      const hs_moments *mo, hs_sums *S)
{
    double rest = level + 4 * exp(-pair_depth(C) - 2);
    int i;
    if (C->y_far > 0) {
        if (C->y_far > C->N * C->dy)
            band_moments(C, &T->G, HUGE_VAL, mo->mean,
                         hs_two_quadrature_upper(T, C->c, fmax(C->y_far, C->y_grid)) + rest + C->y_far * c1, k, S);
        S->far[0] += k * hs_far_log(fmin(1, hs_two_far_upper(T, C->c, C->y_far) + level), ruled);
        return;
    }
    for (i = 0; i < C->doublings; i++) {
        double y = C->N * C->dy * ldexp(1, i),
               err = doubled_error_upper(y, i, c1, c2) + level + hs_two_quadrature_upper(T, C->c, y);
        S->metric[i] += k * metric_lower(&T->G, i, y, err, c2);
        S->far[i] += k * log(fmin(1, hs_two_far_upper(T, C->c, y) + level));
    }
    S->var += k * pair_var_upper(C, T, mo->mean, level);
}

/* K of the pair at c and at the tilts of the aliases, on the grids of the real line, added to the sums. *out: the
 * relative error of M(c) by the quadrature, the ends and what was dropped; *level: that of phi on the neighbourhood of
 * the real line. */
static int pair_cgfs(const hs_contour *C, hs_two *T, const double *z, double k, int ruled, hs_sums *S, hs_moments *mo,
                     double *out, double *level)
{
    int i;
    for (i = 2; i >= 0; i--) {
        hs_two_moments(T, z[i], &mo[i]);
        *out = hs_two_real_upper(T, z[i]) + hs_two_ends_upper(T, z[i], mo[i].log_m);
        *level = 2 * *out;
        if (mo[i].dropped) *out += hs_two_dropped_upper(T, z[i]) / exp(fmin(mo[i].log_m, 0));
        if (i == 0 && !(*out < 0.1)) return HS_TOO_WIDE;
        S->K[i] += k * mo[i].log_m;
        S->err[i] += k * mo[i].err + HS_U * (2 + hs_joins(C)) * fabs(k * mo[i].log_m);
        S->inner[i] += !i ? 1.1 * k * *out : *out < 1 ? -k * log1p(-*out) : HUGE_VAL;
        if (ruled && i) S->excess[i] += k * (*out < 1 ? hs_excess(mo[i].log_m, mo[i].err - log1p(-*out)) : HUGE_VAL);
    }
    return HS_OK;
}

/* A two-sided pair (twosided.c), by the same steps; of V what is said about the step. */
static int visit_pair(const hs_contour *C, const hs_pair *pair, const gridded *V, hs_sums *S, double *work)
{
    double z[3] = {C->c, C->s_right, C->s_left};
    double h[HS_BRANCHES], R = pair_depth(C), level = 0, k = V->k;
    double out = 0, c1, c2;
    hs_two T;
    hs_two_shift P;
    hs_moments mo[3];
    int i, st, shifted, ruled = V->ruled;
    if (!pair_meshes(C, pair, z, hs_two_cgf_estimate(pair, z[0]).K, R, h, &shifted)) return HS_TOO_MANY_NODES;
    if ((st = hs_two_build(&T, pair, h, fmin(fmin(z[0], z[1]), z[2]), fmax(fmax(z[0], z[1]), z[2]),
                           sqrt(2 * (R + 3)) + 1, work)))
        return st;
    if ((st = pair_cgfs(C, &T, z, k, ruled, S, mo, &out, &level))) return st;
    hs_two_weights(&T, z[0], mo[0].log_m, &c1, &c2);
    hs_grid_trim(&T.G, exp(-R - 2));
    for (i = 0; i < pair->branches; i++)
        if (!turns_fit(C, &T.G, T.first[i], T.first[i] + T.nodes[i] - 1)) return HS_OUT_OF_RANGE;
    if (shifted) {
        if ((st = hs_two_shift_build(&T, z[0], mo[0].log_m, mo[0].err, 1.1 * out, R, &P))) return st;
        c1 = hs_two_shift_nodes(&P, C->dy, C->N, T.G.er, S->zr, S->zi);
        add_node_range(C, k, 0, ruled, c1, P.quad, 0, C->N + 1, S);
    } else pair_nodes(C, &T, k, ruled, c1, c2, level + 4 * exp(-R - 2), S);
    if (!V->light && C->y_far >= 0) pair_tail(C, &T, k, ruled, c1, c2, level, mo, S);
    S->k_smooth += k;
    return HS_OK;
}

/* The sums of one chunk of steps, added to those of all. */
static void add_sums(const hs_contour *C, const hs_sums *s, hs_sums *S)
{
    int64_t n;
    int i;
    for (i = 0; i < 3; i++) {
        S->K[i] += s->K[i];
        S->err[i] += s->err[i];
        S->inner[i] += s->inner[i];
        S->excess[i] += s->excess[i];
    }
    for (n = 0; n <= C->N; n++) {
        S->re[n] += s->re[n];
        S->im[n] += s->im[n];
        S->round[n] += s->round[n];
        S->node[n] += s->node[n];
    }
    for (i = 0; i < HS_DOUBLINGS; i++) {
        S->metric[i] += s->metric[i];
        S->far[i] += s->far[i];
        S->gauss[i] += s->gauss[i];
    }
    S->var += s->var;
    S->k_smooth += s->k_smooth;
    for (i = 0; i < C->bands; i++) {
        S->spread[i] += s->spread[i];
        S->fourth[i] += s->fourth[i];
    }
    S->slack += s->slack;
}

/* One more step of a line whose tail is known, C->y_far < 0. work: HS_STEP_WORK doubles. */
int hs_contour_visit_more(const hs_contour *C, double m, double q, double k, hs_sums *S, double *work)
{
    const hs_pair replaced = {1, {1}, {q}, {m}, {m}, 0, 0};
    gridded V = {.k = k};
    if (q < 1) return C->sides == 2 ? visit_pair(C, &replaced, &V, S, work) : visit_subsampled(C, m, q, &V, S, work);
    visit_gaussian(C, C->sides == 2 ? 2 * m : m, k, S);
    return HS_OK;
}

/* The sums of one chunk of steps, which start as `fits` in the first and lie in the room for that chunk. */
static int visit_chunk(const hs_contour *C, int chunk, double *sums, double *own, const hs_sums *fits, hs_sums *s)
{
    int64_t j, lo = hs_chunk_at(C->run.b, chunk, C->chunks), hi = hs_chunk_at(C->run.b, chunk + 1, C->chunks),
               size = C->N + 1;
    int st = HS_OK;
    memset(s, 0, sizeof *s);
    if (!chunk) *s = *fits;
    s->re = sums + chunk * HS_SUMS_WORK(C->N);
    s->im = s->re + size;
    s->round = s->im + size;
    s->node = s->round + size;
    s->fit = s->node + size;
    s->zr = s->fit + size;
    s->zi = s->zr + size;
    memset(s->re, 0, sizeof(double) * 4 * (size_t)size);
    if (!chunk && C->run.n_fits) memcpy(s->node, s->fit, sizeof(double) * (size_t)size);
    for (j = lo; j < hi && st == HS_OK; j++) {
        if (hs_stopped(C->poll, 1e4 + 100 * (double)size)) st = HS_INTERRUPTED;
        else if (C->run.q[j] == 1 && !hs_is_pair(C, j)) visit_gaussian(C, C->run.m[j], C->run.k[j], s);
        else {
            gridded V = {
                .k = C->run.k[j], .ruled = hs_is_ruled(C, j), .light = hs_is_light(C, j), .apart = hs_is_apart(C, j)};
            st = hs_is_pair(C, j) ? visit_pair(C, &C->run.pair[j], &V, s, own)
                                  : visit_subsampled(C, C->run.m[j], C->run.q[j], &V, s, own);
        }
    }
    return st;
}

/* Visits every step; chunks of fixed number, summed in order. Memory: see hs_contour_work. */
int hs_contour_visit(const hs_contour *C, double *work, hs_sums *S)
{
    int chunk, i, st[HS_CHUNKS];
    double *sums = work + (int64_t)C->n_threads * HS_STEP_WORK;
    hs_sums fits;
    memset(&fits, 0, sizeof fits);
    fits.fit = sums + 4 * (C->N + 1);
    if ((st[0] = hs_fit_visit(C, work, &fits))) return st[0];
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(dynamic, 1) if (C->n_threads > 1)
#endif
    for (chunk = 0; chunk < C->chunks; chunk++)
        st[chunk] = visit_chunk(C, chunk, sums, work + hs_thread() * HS_STEP_WORK, &fits, &S[chunk]);
    for (chunk = 0; chunk < C->chunks; chunk++) {
        if (st[chunk]) return st[chunk];
        if (chunk) add_sums(C, &S[chunk], S);
    }
    for (i = 0; i < 3; i++) {
        S->err[i] *= 1 + HS_SUMS;
        S->inner[i] *= 1 + HS_SUMS;
        if (i && C->run.n_fits) S->fitted[i] = fmin(S->fitted[i], S->loose[i] + S->excess[i] * (1 + HS_SUMS));
    }
    return HS_OK;
}

/* Log of the tail bound. Y = N dy is the last node, which the sum keeps: counting it twice is on the safe side. */
double hs_contour_log_tail_upper(const hs_contour *C, const hs_sums *S)
{
    /* [theory: line.far-frequencies] */
    double Y = C->N * C->dy, sd = sqrt(S->var) * (1 + HS_SUMS), best = -HUGE_VAL,
           k = S->k_smooth * (1 + HS_SUMS); /* best is the largest of the bounds B */
    int i, stop;
    if (C->run.ruled && !(C->y_far > 0))
        return HUGE_VAL; /* the metric is one of 1 - |phi|, of which fit.c knows nothing */
    if (C->y_far > 0) {
        best = -S->far[0];
        for (i = 0; C->y_far > Y && i < 2 * C->bands; i++)
            if (!(best <= hs_band_lower(C, S, i))) best = hs_band_lower(C, S, i); /* a NaN stays */
    } else
        for (stop = 0; stop < C->doublings; stop++) { /* Psi serves from point `stop` on, the metric before */
            double y = Y, last = -S->far[stop] + S->gauss[stop], least = last;
            for (i = 0; i < stop; i++, y *= 2) {
                double x = hs_metric_lower(S->metric[i], S->metric[i + 1], y * sd, k);
                least = fmin(least, x + S->gauss[i]);
            }
            best = fmax(best, least);
        }
    if (C->run.apart) best *= S->share; /* [theory: compression.rates-tail] */
    return -best + HS_SUMS * fabs(best) - log(HS_PI * Y) + log1p(C->dy / Y) + 1e-9; /* [theory: line.truncation] */
}
