/* law.c - the transform of one step with atoms: K at real tilts, log phi at nodes, decay; each with its error.
 *
 * Symbols. L: the loss under num; M(t) = E e^{tL}, K = log M; phi(y) = M(c+iy)/M(c); u = 2^-53; h2(x) = e^x - 1 - x.
 *   Kinds of law: HS_LAW_NORMAL (shift m), HS_LAW_LAPLACE (shift m, laplace.c), HS_LAW_POINTS (atoms l_j of mass
 *   e^{lp_j}), HS_LAW_SUBLAPLACE (two atoms and the quadrature points of a density, laplace.c), HS_LAW_SUBNORMAL
 *   (subnormal.c), HS_LAW_RANGE (bound m, range.c), HS_LAW_DENSITY (equidistant points of a density f with |f(l+i th)|
 *   <= f(l) e^{(m th)^2/2}, which a window makes small beyond the points), HS_LAW_MIXTURE (quadrature points of random
 *   shifts, mixture.c).
 *
 * Formula. For points M(t) - 1 = sum_j e^{lp_j} [ hs_h2(t l_j) + t hs_h2(-l_j) ] [theory: law.second-order]; with M >
 *   e^3 the plain sum of e^{lp + t l}. Nodes: phi - 1 = sum r_j (e^{iy x_j} - 1) with tilted masses r_j normalised by
 *   their own sum, x_j the loss, or the integer place on a lattice, less a reference.
 *
 * Error claims, first order in u, constants rounded up by more than the second order:
 *   K       hs_law_value.err: errors dl_j, dp_j of the data [theory: law.table], 45u of h2 (3u, or 20.3 times 2u where
 *           1 + x is subtracted at |x| = 0.1), the exponential 2u and its argument, (64 + n/64)u of the blocked sum.
 *   phi     |y| c1 + quad. e^{ix}-1 is off by 8u min(|x|,3) + 2u|x| and its argument by 3u|x|; a tilted mass by
 *           e_j = dp_j + u|lp_j + c l_j| + |c|(dl_j + 2u|l_j|) + 6u [theory: law.table, rounding.phi].
 *   quad    masses left out: atoms below e^-45/k of the tilted law, and beyond the ends of a log-concave table a
 *           geometric series [theory: law.log-concave].
 *
 * What it does not do: choose tilts; laws with a mass at infinity (divide it out first).
 */
#include "law/law.h"

#define LEFT_OUT 45.0
#define TILE 64

/* Mass beyond one end of a log-concave table under weights e^{lp + t l}, relative to e^top: geometric with the last
 * ratio. */
static double end_upper(const hs_law *w, double t, int right, double top)
{
    int64_t j = right ? w->n - 1 : 0, i = right ? w->n - 2 : 1;
    double at = w->lp[j] + t * w->l[j], ratio = at - (w->lp[i] + t * w->l[i]);
    if (!(ratio < -1e-3)) return HUGE_VAL;
    return exp(at + ratio - top) / -expm1(ratio) * (1 + 1e-6);
}

static double ends_upper(const hs_law *w, double t, double top)
{ return end_upper(w, t, 0, top) + end_upper(w, t, 1, top); }

/* n points of a tile, and those of no mass that fill its last lanes. */
static inline int lanes_of(int n) { return (n + 7) / 8 * 8; }

/* Sums over points: M(t), over e^top, or M(t) - 1, moduli of its terms, their errors, and of e^{lp + t l - top} times
 * 1, l, l^2. */
typedef struct {
    double of, size, err;
    double s0, s1, s2;
} point_sums;

/* A point's share of M(t) - 1, whose first orders cancel over all points, its modulus and its error
 * [theory: law.second-order, law.table]; big = e^{lp + t l}. Exponentials below e^-708 are 0. */
static inline double second_order(double t, double l, double lp, double dl, double dp, double big, double *size,
                                  double *err)
{
    double x = t * l, ax = fabs(x), al = fabs(l);
    double at = fabs(t), dx = 2 * HS_U * ax + at * dl;
    double p = hs_exp(lp), back = hs_exp(lp - l), xs = ax <= 0.1 ? x : 0, ls = al <= 0.1 ? l : 0;
    double f = ax <= 0.1 ? p * hs_expm1mx_small(xs) : big - p * (1 + x);
    double g = al <= 0.1 ? p * hs_expm1mx_small(-ls) : back - p * (1 - l);
    double off = (fabs(f) + fabs(t * g)) * (dp + 8 * HS_U);
    off += (fabs(big - p) + (big > p ? big : p) * dx) * dx + at * (fabs(back - p) + (back > p ? back : p) * dl) * dl;
    off += ax > 0.1 ? HS_U * (big * (fabs(lp + x) + 5) + p * (1 + ax) * 5) : 0;
    off += al > 0.1 ? HS_U * at * (back * (fabs(lp - l) + 5) + p * (1 + al) * 5) : 0;
    *size = fabs(f) + fabs(t * g);
    *err = off + 1e-300 * (1 + ax + at * (1 + al));
    return f + t * g;
}

HS_CLONES static point_sums sum_points(const hs_law *w, double t, double top, int direct)
{
    HS_ALIGNED double l[TILE], lp[TILE], dl[TILE], dp[TILE];
    point_sums S = {0, 0, 0, 0, 0, 0};
    int64_t j;
    int i, k;
    for (j = 0; j < w->n; j += TILE) {
        double of[8] = {0}, size[8] = {0}, err[8] = {0}, s0[8] = {0};
        double s1[8] = {0}, s2[8] = {0};
        size_t n = w->n - j < TILE ? (size_t)(w->n - j) : TILE;
        const int full = lanes_of((int)n);
        for (i = (int)n; i < full; i++) {
            l[i] = dl[i] = dp[i] = 0;
            lp[i] = -1e4;
        }
        memcpy(l, w->l + j, n * sizeof *l);
        memcpy(lp, w->lp + j, n * sizeof *l);
        memcpy(dl, w->dl + j, n * sizeof *l);
        memcpy(dp, w->dp + j, n * sizeof *l);
        for (k = 0; k < full; k += 8)
            for (i = 0; i < 8; i++) {
                double L = l[k + i], x = t * L, big = hs_exp(lp[k + i] + x - top);
                double one, own;
                s0[i] += big;
                s1[i] += big * L;
                s2[i] += big * L * L;
                of[i] += second_order(t, L, lp[k + i], dl[k + i], dp[k + i], big, &one, &own);
                size[i] += one;
                own = direct ? big * (dp[k + i] + fabs(t) * dl[k + i] +
                                      HS_U * (2 * fabs(x) + 2 * fabs(lp[k + i]) + fabs(top) + 6))
                             : own;
                err[i] += own;
            }
        S.s0 += hs_lanes(s0);
        S.s1 += hs_lanes(s1);
        S.s2 += hs_lanes(s2);
        S.of += hs_lanes(of);
        S.size += hs_lanes(size);
        S.err += hs_lanes(err);
    }
    if (!direct) return S;
    S.of = S.size = S.s0;
    return S;
}

/* The tilted variance summed about the mean; total: the sum of e^{lp + t l - top}. */
static double centred_variance(const hs_law *w, double t, double top, double total, double mean)
{
    double v = 0;
    int64_t j;
    for (j = 0; j < w->n; j++) v += exp(w->lp[j] + t * w->l[j] - top) / total * (w->l[j] - mean) * (w->l[j] - mean);
    return v;
}

static void points_cgf(const hs_law *w, double t, hs_law_value *out)
{
    double top = -HUGE_VAL, err, M, mean;
    point_sums S;
    int64_t j;
    int direct;
    for (j = 0; j < w->n; j++) top = fmax(top, w->lp[j] + t * w->l[j]);
    direct = top > 3 || hs_law_is_part(w);
    if (!direct) top = 0;
    S = sum_points(w, t, top, direct);
    err = S.err + HS_U * (double)(w->n / 64 + 66) * S.size;
    if (w->tails)
        err += direct ? ends_upper(w, t, top)
                      : ends_upper(w, t, 0) + fabs(t) * (2 * ends_upper(w, -1, 0) + ends_upper(w, 1, 0));
    M = direct ? S.of : 1 + S.of;
    out->K = direct ? top + log(S.of) : log1p(S.of);
    out->err =
        err < 0.5 * M ? err / (M - err) + 3 * HS_U * (direct ? fabs(top) + fabs(log(S.of)) : fabs(out->K)) : HUGE_VAL;
    mean = S.s1 / S.s0;
    out->mean = mean;
    out->var = fmax(S.s2 / S.s0 - mean * mean, 0);
    if (out->var < 1e-6 * mean * mean) out->var = centred_variance(w, t, top, S.s0, mean); /* no digits are lost */
}

/* HS_LAW_DENSITY: a bound of the sum over points beyond both ends at the tilt c, over e^top: in cells, the last without
 * an end, the mass beyond the near end of one times the largest e^{cl} in it times the window, e^{-x^2/2} at x widths
 * beyond its centre [theory: allocation.points]. */
static double beyond_upper(const hs_law *w, double c, double top)
{
    double sum = 0;
    int high, j;
    for (high = 0; high < 2; high++) {
        const double *place = (high ? w->x : w->lp) + w->n, *mass = (high ? w->l : w->dl) + w->n;
        double side = high ? 1 : -1, centre = w->lambda[high], most = centre + c * w->flat * w->flat;
        for (j = 0; j < w->cells; j++) {
            double at = side * fmax(side * most, side * place[j]), x;
            if (j + 1 < w->cells) at = side * fmin(side * at, side * place[j + 1]);
            x = fmax(0, side * (at - centre) / w->flat);
            sum += exp(mass[j] + c * at - 0.5 * x * x - top);
        }
    }
    return sum * (1 + 1e-9);
}

/* What the trapezoid rule of a density misses of phi at frequency y [theory: allocation.points]. */
static double density_miss(const hs_law *w, double y)
{
    double p = 2 * HS_PI / (w->l[1] - w->l[0]);
    if (!(y < 0.9 * p)) return HUGE_VAL;
    return 2.1 * exp(-0.5 * (p - y) * (p - y) / (w->m * w->m)) + 2.1 * exp(-0.5 * p * p / (w->m * w->m));
}

/* What quadrature misses of M(t + iy'), |y'| <= y, over e^log_m = M(t). */
static double missing_of(const hs_law *w, double t, double y, double log_m)
{
    if (w->kind == HS_LAW_MIXTURE) return hs_mixture_missing_upper(w, t, y, log_m);
    return hs_sublaplace_quadrature_upper(w, t, y, log_m);
}

/* K, its error, and estimates of the tilted mean and variance of the loss, for one copy at real tilt t. */
void hs_law_cgf(const hs_law *w, double t, hs_law_value *out)
{
    if (w->kind == HS_LAW_NORMAL) {
        out->K = 0.5 * w->m * w->m * t * (1 + t);
        out->err = 8 * HS_U * fabs(out->K);
        out->mean = w->m * w->m * (t + 0.5);
        out->var = w->m * w->m;
    } else if (w->kind == HS_LAW_LAPLACE) hs_laplace_cgf(w->m, t, out);
    else if (w->kind == HS_LAW_RANGE) hs_range_cgf(w->m, t, out);
    else if (w->kind == HS_LAW_ALLOCATION) hs_allocation_cgf(w, t, out);
    else if (w->kind == HS_LAW_SUBNORMAL) hs_subnormal_estimate(w, t, out);
    else points_cgf(w, t, out);
    if (w->kind == HS_LAW_SUBLAPLACE || w->kind == HS_LAW_MIXTURE) {
        double miss = missing_of(w, t, 0, out->K); /* of M */
        out->err = miss < 0.5 ? out->err - log1p(-miss) : HUGE_VAL;
    }
    if (w->kind == HS_LAW_DENSITY) { /* but of a part, the masses under num and den are 1 less at most w->level */
        double miss = beyond_upper(w, t, out->K) + density_miss(w, 0), back = (1 + 2 * fabs(t)) * exp(-out->K);
        if (!hs_law_is_part(w))
            miss += back * (density_miss(w, 0) + beyond_upper(w, 0, 0) + beyond_upper(w, -1, 0) + w->level);
        out->err = miss < 0.5 ? out->err - log1p(-miss) : HUGE_VAL;
    }
}

/* The sums of e^{lp + t l - top}, times 1, l - at, (l - at)^2 and the error dp; top: the largest lp + t l, and `at` the
 * loss there. */
typedef struct {
    double top, at;
    double s0, s1, s2, e;
} plain_sums;

HS_CLONES static plain_sums sum_plain(const hs_law *w, double t)
{
    HS_ALIGNED double a[TILE], b[TILE], d[TILE];
    double s0[8] = {0}, s1[8] = {0}, s2[8] = {0}, e[8] = {0};
    double most = -HUGE_VAL;
    plain_sums S = {-HUGE_VAL, 0, 0, 0, 0, 0};
    int64_t j, best = 0;
    int i, k;
    for (j = 0; j < w->n; j++) {
        double x = w->lp[j] + t * w->l[j];
        best = x > most ? j : best;
        most = x > most ? x : most;
    }
    S.top = most;
    S.at = w->l[best];
    for (j = 0; j < w->n; j += TILE) {
        int n = (int)(w->n - j < TILE ? w->n - j : TILE);
        const int full = lanes_of(n);
        for (i = n; i < full; i++) {
            a[i] = d[i] = 0;
            b[i] = -1e4;
        }
        for (i = 0; i < n; i++) a[i] = w->l[j + i] - S.at;
        memcpy(d, w->dp + j, sizeof(double) * (size_t)n);
        for (i = 0; i < n; i++) b[i] = w->lp[j + i] + t * w->l[j + i] - S.top;
        for (k = 0; k < full; k += 8)
            for (i = 0; i < 8; i++) {
                double x = a[k + i], p = hs_exp(b[k + i]);
                s0[i] += p;
                s1[i] += p * x;
                s2[i] += p * x * x;
                e[i] += p * d[k + i];
            }
    }
    S.e = hs_lanes(e);
    S.s0 = hs_lanes(s0);
    S.s1 = hs_lanes(s1);
    S.s2 = hs_lanes(s2);
    return S;
}

/* The same for placing a contour: points by one exponential each, and err only tells whether K is known at all. */
void hs_law_estimate(const hs_law *w, double t, hs_law_value *out)
{
    int points = w->kind == HS_LAW_POINTS || w->kind == HS_LAW_POINTS_LOGCONCAVE;
    plain_sums S;
    double mean;
    if (w->kind == HS_LAW_MIXTURE) hs_mixture_estimate(w, t, out);
    else if (w->kind == HS_LAW_ALLOCATION) hs_allocation_estimate(w, t, out);
    else if (!points) hs_law_cgf(w, t, out);
    if (w->kind == HS_LAW_MIXTURE || !points) return;
    S = sum_plain(w, t);
    if (S.top + log(S.s0) < -20) { /* M - 1 is then known, M less well */
        hs_law_cgf(w, t, out);
        return;
    }
    mean = S.s1 / S.s0;
    out->K = S.top + log(S.s0);
    out->err = S.e / S.s0 + (w->tails ? ends_upper(w, t, out->K) : 0);
    out->mean = S.at + mean;
    out->var = fmax(S.s2 / S.s0 - mean * mean, 0);
}

int64_t hs_law_scratch(const hs_law *w)
{
    if (w->kind == HS_LAW_SUBNORMAL) return HS_GRID_WORK;
    if (w->kind == HS_LAW_RANGE || w->kind == HS_LAW_ALLOCATION) return 0;
    if (w->kind == HS_LAW_SUBLAPLACE) return 2 * w->n + HS_ENDS_WORK;
    return w->kind >= HS_LAW_POINTS ? 2 * w->n : 0;
}

/* e^{lp + c l - log_m} of the points from `first` on, n of them, to out where that is not NULL; their sum. */
HS_CLONES static double tilted_sum(const hs_law *w, double c, int64_t first, int64_t n, double *out)
{
    const double *restrict l = w->l + first, *restrict lp = w->lp + first;
    double r[TILE], sum[8] = {0}, log_m = w->log_m;
    int64_t j;
    int i, k;
    for (j = 0; j < n; j += TILE, l += TILE, lp += TILE) {
        int count = (int)(n - j < TILE ? n - j : TILE);
        for (i = 0; i < TILE; i++) r[i] = 0;
        for (i = 0; i < count; i++) r[i] = hs_exp(lp[i] + c * l[i] - log_m);
        for (k = 0; k < TILE; k += 8)
            for (i = 0; i < 8; i++) sum[i] += r[k + i];
        if (out) memcpy(out + j, r, (size_t)count * sizeof *r);
    }
    return hs_lanes(sum);
}

/* The points from the first to the last whose tilted mass counts, and the mass of all others; false if there are
 * none. */
static int kept(const hs_law *w, double c, int64_t *first, int64_t *last, double *out)
{
    double least = w->kind == HS_LAW_SUBLAPLACE ? -HUGE_VAL : w->log_m - LEFT_OUT - log(w->k);
    int64_t j;
    for (*first = -1, j = 0; j < w->n; j++)
        if (w->lp[j] + c * w->l[j] >= least) {
            if (*first < 0) *first = j;
            *last = j;
        }
    if (*first < 0) return 0;
    *out = tilted_sum(w, c, 0, *first, NULL) + tilted_sum(w, c, *last + 1, w->n - *last - 1, NULL) + 1e-300;
    if (w->tails) *out += ends_upper(w, c, w->log_m);
    if (w->kind == HS_LAW_DENSITY) *out += beyond_upper(w, c, w->log_m);
    return 1;
}

/* Tilted masses r of the nr points from the first on, of sum 1; returns their mean in the coordinate x. */
static double tilted_masses(hs_law *w, double c, int64_t first)
{
    double total = tilted_sum(w, c, first, w->nr, w->r), mean = 0;
    int64_t j;
    for (j = 0; j < w->nr; j++) {
        w->r[j] /= total;
        mean += w->r[j] * w->x[first + j];
    }
    return mean;
}

typedef struct { /* means over the tilted points, e the relative error of a mass, dl that of a place */
    double e, x, dl;
    double size, size_e;     /* of |x| and |x| e */
    double var, var_e;       /* of (x - mean)^2 and e times it */
    double top, worst, edge; /* the largest mass, e and dl */
} tilted_sums;

static tilted_sums sum_tilted(hs_law *w, double c, int64_t first, double mean)
{
    tilted_sums S = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    int64_t j;
    for (j = 0; j < w->nr; j++) {
        int64_t i = first + j;
        double x = w->xr[j] = w->x[i] - w->ref, at = fabs(w->lp[i] + c * w->l[i]);
        double e = w->dp[i] + HS_U * (at + fabs(w->log_m)) + fabs(c) * (w->dl[i] + 2 * HS_U * fabs(w->l[i])) + 6 * HS_U;
        S.top = fmax(S.top, w->r[j] * (1 + e));
        S.worst = fmax(S.worst, e);
        S.e += w->r[j] * e;
        S.size_e += w->r[j] * e * fabs(x);
        S.size += w->r[j] * fabs(x);
        if (w->unit == 1) { /* on a lattice the places are exact */
            S.dl += w->r[j] * w->dl[i];
            S.edge = fmax(S.edge, w->dl[i]);
        }
        S.x += w->r[j] * x;
        S.var += w->r[j] * (w->x[i] - mean) * (w->x[i] - mean);
        S.var_e += w->r[j] * e * (w->x[i] - mean) * (w->x[i] - mean);
    }
    return S;
}

/* The step of the lattice on which the points of a log-concave law lie, known to 1e-9 of itself, or 0. */
static double spacing_of(const hs_law *w)
{
    double span = w->x[w->n - 1] - w->x[0], s = span / (double)(w->n - 1);
    int64_t j;
    if (w->n < 8 || !(w->dl[0] + w->dl[w->n - 1] <= 1e-10 * span)) return 0; /* a difference and a quotient: 2u */
    for (j = 1; j < w->n; j++)
        if (!(fabs(w->x[j] - w->x[j - 1] - s) < 1e-3 * s)) return 0;
    return s;
}

/* fall[m]: the sum of the moduli of the m-th differences of the masses r, with their rounding [theory:
 * law.differences]. */
static void differences(hs_law *w)
{
    double before[HS_FALLS] = {0}, size = 1;
    int64_t j;
    int m;
    for (m = 0; m < HS_FALLS; m++, size *= 2) w->fall[m] = size * (m + 4) * HS_U;
    for (j = 0; j < w->nr + HS_FALLS - 1; j++) {
        double at = j < w->nr ? w->r[j] : 0;
        for (m = 0; m < HS_FALLS; m++) {
            double next = at - before[m];
            w->fall[m] += fabs(at);
            before[m] = at;
            at = next;
        }
    }
    for (m = 0; m < HS_FALLS; m++) w->fall[m] *= 1 + HS_U * ((double)w->nr + 100);
}

/* A bound of |phi| at every frequency whose distance from the nearest multiple of 2 pi/spacing is at least x
 * [theory: law.differences]. */
double hs_law_spaced_upper(const hs_law *w, double x)
{
    double side = 2 * sin(0.5 * fmin(x * w->spacing * (1 - 1e-8), HS_PI)), power = 1, best = 1;
    int m;
    for (m = 1; m < HS_FALLS && power > 1e-300; m++) {
        power *= side;
        best = fmin(best, w->fall[m] / power);
    }
    return fmin(1, (best + w->off) * (1 + 1e-12));
}

/* What the points of random shifts miss at the tilt c, nodes beyond both ends included; edge: the largest error of a
 * loss. */
static double mixture_level(hs_law *w, double c, double edge)
{
    double level;
    hs_mixture_tilt(w);
    w->flat = edge;
    level = missing_of(w, c, 1e-300, w->log_m);
    w->quad += level;
    return level;
}

/* Tilted masses of the points, their mean and variance in the coordinate x [theory: law.point-variance], the constants
 * of the error of phi. */
static int points_tilt(hs_law *w, double c, double *scratch)
{
    double mean, out, level = 0, range = w->x[w->n - 1] - w->x[0];
    tilted_sums S;
    int64_t first, last;
    if (!kept(w, c, &first, &last, &out)) return HS_OUT_OF_RANGE;
    w->r = scratch;
    w->xr = scratch + w->n;
    w->nr = last - first + 1;
    mean = tilted_masses(w, c, first);
    w->ref = w->unit != 1 ? nearbyint(mean) : 0;
    S = sum_tilted(w, c, first, mean);
    w->peak = HUGE_VAL;
    if (w->tails && w->unit != 1 && w->x[last] - w->x[first] == (double)(last - first))
        w->peak =
            S.top * (1 + 2 * S.e + HS_U * (80 + (double)w->nr)); /* the sum of positive r is off by (n + ..)u at most */
    w->spacing = w->tails && w->unit == 1 ? spacing_of(w) : 0;
    if (w->spacing > 0) differences(w);
    w->off = 2.2 * (S.e + out + HS_U * (80 + (double)w->nr));
    w->mean = S.x + w->ref;
    w->c1 = S.size_e + S.dl + S.size * (S.e + HS_U * (15 + 2 * (66 + (double)w->nr / 64)));
    w->c1 *= 1 + 1e-6;
    w->quad = 2.1 * out;
    if (w->kind == HS_LAW_SUBLAPLACE) level = missing_of(w, c, 1e-300, w->log_m);
    if (w->kind == HS_LAW_MIXTURE) {
        if (!(S.worst < 1e-6)) return HS_TOO_WIDE;
        level = mixture_level(w, c, S.edge);
    }
    w->var_upper = pow(sqrt((S.var + S.var_e) / fmax(1 - S.e, 1e-300)) + S.edge, 2) * (1 + 1e-6) + 1e-14 * mean * mean +
                   16 * out * pow(fabs(range) + fabs(mean), 2);
    w->var_upper = (w->var_upper + level * pow(fabs(range) + 31, 2)) * (1 + 3.75 * level); /* [theory: law.mixture] */
    return out < 0.1 ? HS_OK : HS_TOO_WIDE;
}

/* Fix the tilt c = tilts[0]; the two others are those at which K is wanted as well. T0: the accuracy in nats that a
 * quadrature grid is made for; y_max: the frequencies, 0: all. scratch (hs_law_scratch doubles) stays lent as long as
 * the law is used. */
int hs_law_tilt(hs_law *w, const double *tilts, double y_max, double T0, double *scratch)
{
    double c = tilts[0];
    hs_law_value g;
    if (w->kind == HS_LAW_SUBNORMAL) return hs_subnormal_tilt(w, tilts, y_max, T0, scratch);
    if (w->kind == HS_LAW_ALLOCATION) return hs_allocation_tilt(w, c, T0);
    hs_law_cgf(w, c, &g);
    w->c = c;
    w->log_m = g.K;
    w->err = g.err;
    w->mean = g.mean;
    w->var_upper = g.var * (1 + 1e-6);
    w->c1 = w->quad = w->ref = 0;
    w->nr = 0;
    if (!(g.err < 0.1)) return HS_TOO_WIDE;
    if (w->kind == HS_LAW_LAPLACE) hs_laplace_tilt(w, c);
    if (w->kind == HS_LAW_RANGE) {
        hs_range_tilt(w, c);
        return HS_OK;
    }
    if (w->kind == HS_LAW_SUBLAPLACE) hs_ends_tilt(w, scratch + 2 * w->n);
    return w->kind >= HS_LAW_POINTS ? points_tilt(w, c, scratch) : HS_OK;
}

static int by_ends(const hs_law *w, double y) { return w->kind == HS_LAW_SUBLAPLACE && y >= w->y_ends; }

/* What masses left out and quadrature may do to phi at frequencies in [low, y]; no bound where e^{iyx} - 1 is beyond
 * hs_cis_m1. */
static double missing_upper(const hs_law *w, double low, double y)
{
    if (w->kind < HS_LAW_POINTS || w->kind == HS_LAW_RANGE) return 0;
    if (w->kind == HS_LAW_SUBNORMAL) return hs_subnormal_missing(w, y);
    if (by_ends(w, low)) return hs_ends_missing(w, low, y);
    if (!(y * fmax(fabs(w->xr[0]), fabs(w->xr[w->nr - 1])) < 1e6)) return HUGE_VAL;
    if (w->kind == HS_LAW_DENSITY) return w->quad + 2.25 * density_miss(w, y);
    if (w->kind != HS_LAW_SUBLAPLACE && w->kind != HS_LAW_MIXTURE) return w->quad;
    /* [theory: law.quotient] */
    return w->quad + 2.25 * missing_of(w, w->c, fmax(y, 1e-300), w->log_m);
}

/* Adds d = a + ib of a tile to eight lanes, and makes d + f + d E of it. */
static inline void turned_sum(double *restrict a, double *restrict b, const double *restrict fr,
                              const double *restrict fi, const double *restrict er, const double *restrict ei,
                              double *restrict re, double *restrict im)
{
    int i;
    for (i = 0; i < 8; i++) {
        re[i] += ((a[i] + a[i + 8]) + (a[i + 16] + a[i + 24])) + ((a[i + 32] + a[i + 40]) + (a[i + 48] + a[i + 56]));
        im[i] += ((b[i] + b[i + 8]) + (b[i + 16] + b[i + 24])) + ((b[i + 32] + b[i + 40]) + (b[i + 48] + b[i + 56]));
    }
    for (i = 0; i < TILE; i++) {
        double x = a[i], y = b[i];
        a[i] = x + (fr[i] + (x * er[i] - y * ei[i]));
        b[i] = y + (fi[i] + (x * ei[i] + y * er[i]));
    }
}

/* Whether e^{iy x} has fallen below e^-45 at all of the 64 points on a path from number j on
 * [theory: rounding.blocks]. */
static int fallen(const hs_law *w, int64_t j, double y)
{
    double least = HUGE_VAL;
    int64_t i;
    if (w->kind != HS_LAW_SUBNORMAL || !w->ri) return 0;
    for (i = j; i < w->nr && i < j + TILE; i++) least = fmin(least, w->xi[i]);
    return y * least > 45;
}

/* Of 64 points d = r E_n at the first node, r E_1 and E_1; points of the real line have imaginary parts 0. */
typedef struct {
    double a[TILE], b[TILE], fr[TILE];
    double fi[TILE], er[TILE], ei[TILE];
} turned_points;

HS_CLONES static void turn_points(const hs_law *w, int64_t j, double y, double dy, turned_points *restrict T)
{
    HS_ALIGNED double rr[TILE] = {0}, ri[TILE] = {0}, xr[TILE] = {0}, xi[TILE] = {0};
    size_t size = sizeof(double) * (size_t)(w->nr - j < TILE ? w->nr - j : TILE);
    int i;
    memcpy(rr, w->r + j, size);
    memcpy(xr, w->xr + j, size);
    if (w->kind == HS_LAW_SUBNORMAL && w->ri) {
        memcpy(ri, w->ri + j, size);
        memcpy(xi, w->xi + j, size);
    }
    hs_turns(TILE, y, xr, xi, T->fr, T->fi);
    hs_turns(TILE, dy, xr, xi, T->er, T->ei);
    for (i = 0; i < TILE; i++) {
        double x = T->fr[i], v = T->fi[i];
        T->a[i] = rr[i] * x - ri[i] * v;
        T->b[i] = rr[i] * v + ri[i] * x;
        T->fr[i] = rr[i] * T->er[i] - ri[i] * T->ei[i];
        T->fi[i] = rr[i] * T->ei[i] + ri[i] * T->er[i];
    }
}

/* phi - 1 at the nodes n0 .. n0 + count - 1, by 64 points at a time: with d = r E_n, E_n = e^{i n dy x} - 1, the next
 * node has d + r E_1 + d E_1 [theory: rounding.blocks]. */
HS_CLONES static void points_phi(const hs_law *w, double dy, int64_t n0, int count, double *restrict zr,
                                 double *restrict zi)
{
    HS_ALIGNED turned_points T;
    HS_ALIGNED double re[HS_LAW_BLOCK][8], im[HS_LAW_BLOCK][8];
    double gone_r = 0, gone_i = 0;
    int64_t j, i;
    int n;
    memset(re, 0, sizeof re);
    memset(im, 0, sizeof im);
    for (j = 0; j < w->nr; j += TILE) {
        if (fallen(w, j, (double)n0 * dy)) {
            for (i = j; i < w->nr && i < j + TILE; i++) {
                gone_r += w->r[i];
                gone_i += w->ri[i];
            }
            continue;
        }
        turn_points(w, j, (double)n0 * dy, dy, &T);
        for (n = 0; n < count; n++) turned_sum(T.a, T.b, T.fr, T.fi, T.er, T.ei, re[n], im[n]);
    }
    for (n = 0; n < count; n++) {
        zr[n] = hs_lanes(re[n]) - gone_r;
        zi[n] = hs_lanes(im[n]) - gone_i;
    }
    for (n = 0; n < count && w->kind == HS_LAW_SUBNORMAL && w->add; n++) zi[n] = -zi[n];
}

static void phi(const hs_law *w, double dy, int64_t n0, int count, double *zr, double *zi)
{
    int n;
    if (by_ends(w, (double)n0 * dy)) hs_ends_phi(w, dy, n0, count, zr, zi);
    else if (w->kind == HS_LAW_RANGE)
        for (n = 0; n < count; n++) hs_range_phi(w, (double)(n0 + n) * dy, zr + n, zi + n);
    else if (w->kind >= HS_LAW_POINTS) points_phi(w, dy, n0, count, zr, zi);
    else
        for (n = 0; n < count; n++) hs_laplace_phi(w, (double)(n0 + n) * dy, zr + n, zi + n);
}

static void normal_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round)
{
    double v = w->m * w->m * w->k, at = w->c + 0.5;
    int n;
    for (n = 0; n < count; n++) {
        double y = (double)(n0 + n) * dy;
        re[n] -= 0.5 * v * y * y;
        im[n] += v * at * y;
        round[n] += 8 * HS_U * v * y * (0.5 * y + fabs(at));
    }
}

/* Where phi, or its power, is lost in its own error, an upper bound b of |phi| stands for it: |phi^k - b^k| <= 2 b^k <=
 * (e^1.1 - 1) b^k [theory: line.inner]. */
static void add_lost(const hs_law *w, double y, double x, double v, double quad, double *re, double *round)
{
    double b = hs_up(hypot(1 + x, v) + y * w->c1 + quad);
    if (w->kind == HS_LAW_DENSITY) b = fmin(b, hs_law_far_upper(w, y));
    *re += w->k * log(b < 1 ? b : 1);
    *round += b < 1e300 ? 1.1 : HUGE_VAL;
}

/* Rows of logs at nodes: real and imaginary parts, bounds of what rounding and quadrature put into both. */
typedef struct {
    double *re, *im, *round, *node;
} log_rows;

/* Adds k log phi from x + iv = phi - 1, whose error is y c1 + quad. The modulus is within 8u min(|phi - 1|, 3)
 * [theory: rounding.log-phi]; the angle, of 1 + x that is rounded once, within 5u of itself and 4u more above 0.39; the
 * products with k and the sums have 3u of either. Squares below 1e-280 have lost their digits. */
HS_CLONES static void add_log_phi(const hs_law *w, double dy, int64_t n0, int count, double (*z)[HS_LAW_BLOCK],
                                  double quad, const log_rows *row)
{
    const double k = w->k, c1 = w->c1, first = (double)n0;
    const double *restrict zr = z[0], *restrict zi = z[1];
    double *restrict re = row->re, *restrict im = row->im;
    double *restrict round = row->round, *restrict node = row->node;
    double known[HS_LAW_BLOCK];
    int n;
    HS_SEPARATE
    for (n = 0; n < count; n++) {
        double x = zr[n], v = zi[n], one = 1 + x, square = one * one + v * v;
        double mod = sqrt(square);
        double lr = hs_log_modulus(2 * x + x * x + v * v, square), li = hs_atan2(v, one);
        double size = sqrt(x * x + v * v), dz = (first + n) * dy * c1 / mod, qz = quad / mod;
        double off = li > 0.39 || li < -0.39 ? 4 : 0, good = dz + qz < 0.25 && k * (dz + qz) < 30 ? 1 : 0;
        size = size < 3 ? size : 3;
        off = dz / (1 - dz) + HS_U * (8 * size + off + 4 * fabs(lr) + 8 * fabs(li));
        good = square > 1e-280 ? good : 0;
        re[n] += good != 0 ? k * lr : 0;
        im[n] += good != 0 ? k * li : 0;
        round[n] += good != 0 ? k * off : 0;
        node[n] += good != 0 ? k * qz / (1 - qz) : 0;
        known[n] = good;
    }
    for (n = 0; n < count; n++)
        if (known[n] == 0) add_lost(w, (double)(n0 + n) * dy, zr[n], zi[n], quad, re + n, round + n);
}

/* Add k log phi at count <= HS_LAW_BLOCK nodes from n0 to re, im, and bounds of its rounding and quadrature errors to
 * round and node. */
void hs_law_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round,
                  double *node)
{
    const log_rows row = {re, im, round, node};
    double z[2][HS_LAW_BLOCK], quad;
    if (w->kind == HS_LAW_NORMAL) {
        normal_nodes(w, dy, n0, count, re, im, round);
        return;
    }
    if (w->kind == HS_LAW_RANGE) {
        hs_range_nodes(w, dy, n0, count, re, im, round);
        return;
    }
    if (w->kind == HS_LAW_ALLOCATION) {
        hs_allocation_nodes(w, dy, n0, count, re, im, round);
        return;
    }
    quad = missing_upper(w, (double)n0 * dy, (double)(n0 + count - 1) * dy);
    if (w->kind == HS_LAW_SUBLAPLACE && !by_ends(w, (double)n0 * dy)) { /* its error grows with y, up to y_ends */
        int piece = (int)fmax(1, fmin(count, fmin(0.1 * w->y_ends / dy, ceil(w->y_ends / dy - (double)n0))));
        if (piece < count) {
            hs_law_nodes(w, dy, n0, piece, re, im, round, node);
            hs_law_nodes(w, dy, n0 + piece, count - piece, re + piece, im + piece, round + piece, node + piece);
            return;
        }
        quad = missing_upper(w, (double)n0 * dy, (double)(n0 + count - 1) * dy);
    }
    phi(w, dy, n0, count, z[0], z[1]);
    add_log_phi(w, dy, n0, count, z, quad, &row);
}

/* A lower bound of a(y)^2 = 2 (1 - |phi(y)|) [theory: line.metric]. */
double hs_law_gap_lower(const hs_law *w, double y)
{
    double zr[HS_LAW_BLOCK], zi[HS_LAW_BLOCK], a2;
    if (w->kind == HS_LAW_ALLOCATION) return hs_allocation_gap_lower(w, y);
    if (w->kind == HS_LAW_DENSITY && y > 6 * w->m) return 2 * (1 - hs_law_far_upper(w, y));
    phi(w, y, 1, 1, zr, zi);
    a2 = -(2 * zr[0] + zr[0] * zr[0] + zi[0] * zi[0]); /* 1 - |phi|^2 */
    return fmax(0,
                2 * a2 / (1 + sqrt(fmax(0, 1 - a2))) - 2 * (y * w->c1 + missing_upper(w, y, y)) - 8 * HS_U * fabs(a2));
}

/* An upper bound of |phi| at every frequency >= y, up to pi on a lattice [theory: law.log-concave, law.decay]. */
double hs_law_far_upper(const hs_law *w, double y)
{
    if (w->kind == HS_LAW_NORMAL) return exp(-0.5 * w->m * w->m * y * y) * (1 + 1e-12);
    if (w->kind == HS_LAW_DENSITY) return fmin(1, exp(-0.5 * y * y / (w->m * w->m)) * (1 + 1e-12));
    if (w->kind == HS_LAW_LAPLACE) return fmin(1, hs_laplace_decay_upper(w, y));
    if (w->kind == HS_LAW_RANGE) return hs_range_far_upper(w, y);
    if (w->kind == HS_LAW_ALLOCATION) return hs_allocation_far_upper(w, y);
    if (w->kind == HS_LAW_SUBNORMAL) return hs_subnormal_far_upper(w, y);
    if (w->kind == HS_LAW_SUBLAPLACE) return fmin(1, hs_sublaplace_far_upper(w, y));
    if (w->kind == HS_LAW_MIXTURE) return hs_mixture_far_upper(w, y);
    if (w->kind == HS_LAW_POINTS_LOGCONCAVE) return fmin(1, w->peak / sin(0.5 * fmin(y, HS_PI)) * (1 + 1e-12));
    return 1;
}
