/* mixed.c - certified delta(eps) and eps(delta) of a composition of laws with atoms, by a tilted Fourier sum.
 *
 * Symbols. K(z) = sum_i k_i log M_i(z); c > 0 a tilt near the saddle; f(y) = e^{K(c+iy)-K(c)}; P the period of the
 *   aliases, dy = 2 pi/P; s the lattice step, V integers, F the constant part: losses are s(V + F); V0 the least V with
 *   s(V+F) >= eps, L0 = s(V0+F), x = L0 - eps in [0, s); u = 2^-53.
 *
 * Formulas. Line (no common lattice): that of contour.c [theory: line.aliasing]. Lattice [theory: line.lattice]:
 *       kappa(w) = [ (1-e^{-x}) + e^{-w}(e^{-x}-e^{-s}) ] / ((1-e^{-w})(1-e^{-w-s})),  w = cs + i theta,
 *       T = (1/N) e^{K(c)-c L0} sum_{n<N} f(theta_n) e^{-i theta_n V0} kappa(cs + i theta_n),  theta_n = 2 pi n/N:
 *   one period P = sN of the integral, on which the N-point rule is exact up to aliases. In both cases T = S +
 *   delta(eps) + aliases [theory: line.known-aliases, line.aliases]. With -1 < c < 0 delta - 1 stands for delta
 *   [theory: line.complement]. N is odd; only n <= (N-1)/2 is evaluated. The sums are those of sum.c, made once for all
 *   eps: the numerator of kappa, p + q e^{-w}, is two of them, one place apart.
 *
 * Atoms on the line. |f| has the floor a^k, a the tilted mass of the atoms. Where a^k is not negligible and the run is
 *   one Laplace step k times, or a plain one beside a law of few outcomes, those with no loss or one loss off the
 *   Laplace atoms are summed apart (hs_laplace_few, positive terms) [theory: law.few]; the integrand becomes
 *   f (1 - (1+k rho)(1+rho)^-k), rho the smooth part over the atomic part.
 *
 * Error terms (fields of hs_point, relative to e^{log_scale}). aliasing: as in contour.c. truncation: nodes not
 *   visited: lattice <= e^{-B} |kappa|; line: the area under the bound of the integrand [theory: line.truncation]; B a
 *   lower bound of -sum k log|phi| there, see decay_lower. inner: masses left out and quadrature of a density
 *   [theory: line.inner]. rounding: of K(c), of every node, of kappa, of eps against the lattice
 *   [theory: line.lattice-moved], of the sum. A line of parts of densities counts no alias as known
 *   [theory: allocation.parts].
 *
 * What it does not do: masses at infinity; c <= -1; laws whose transform neither decays nor has a common lattice.
 */
#include "line/mixed.h"
#include "tuning.h"

#define SLACK 1e-9 /* relative, of a bound that only widens: its exponents are known to 1e-12 of their size */

/* eps against the lattice: the loss below it is `rest` below, the one above `x` above; p = 1 - e^{-x}, q = e^{-x} (1 -
 * e^{-rest}). */
typedef struct {
    double x, rest;
    double p, q;
} gap;

/* A lower bound of -sum k log|phi| at every frequency from y on. */
static double far_lower(const hs_mixed *A, double y)
{
    const hs_law *laws = (const hs_law *)A->laws;
    double B = 0;
    int i;
    for (i = 0; i < A->b; i++) B -= laws[i].k * log(hs_law_far_upper(&laws[i], y));
    return B;
}

/* A lower bound B of -sum k log|phi(y)| for y >= Y, up to pi on a lattice, by the metric in steps h = A/(2 sd)
 * [theory: line.metric, line.doubling]; hs_law_far_upper, or the end of the period, ends the walk. Normal steps add
 * their exact part. area, on a line: a bound of (dy/pi) sum |f|/y^2 over the nodes y >= Y, piece by piece
 * [theory: line.truncation]. */
static double decay_lower(const hs_mixed *A, double Y, double *area)
{
    const hs_law *laws = (const hs_law *)A->laws;
    double sd = sqrt(A->var), least = HUGE_VAL, best = 0;
    double y = Y, at, normal = 0;
    double k = 0, end = HS_PI, far;
    int i, it, most;
    for (i = 0; i < A->b; i++)
        if (laws[i].kind == HS_LAW_NORMAL) normal += 0.5 * laws[i].k * laws[i].m * laws[i].m;
        else k += laws[i].k;
    for (at = 0, i = 0; i < A->b; i++)
        if (laws[i].kind != HS_LAW_NORMAL) at += laws[i].k * hs_law_gap_lower(&laws[i], y);
    most = far_lower(A, y + HS_FALL_LONG * 0.5 * sqrt(at) / sd) > A->T0 - 3 ? HS_FALL_LONG : HS_FALL_STEPS;
    for (*area = 0, far = 0, it = 0; it < most; it++) {
        double h, next, low, B = far_lower(A, y);
        far = fmax(far, B * (1 - 1e-12));
        best = fmax(best, fmin(least, far));
        if (best >= least) break;
        if (A->step > 0 && y >= end) {
            best = least;
            break;
        }
        h = 0.5 * sqrt(at) / sd;
        if (!(h > 1e-6 * y)) break;
        if (A->step > 0 && y + h > end) h = end - y;
        for (next = 0, i = 0; i < A->b; i++)
            if (laws[i].kind != HS_LAW_NORMAL) next += laws[i].k * hs_law_gap_lower(&laws[i], y + h);
        low = hs_metric_lower(at, next, h * sd * (1 + 1e-12), k) + normal * y * y;
        least = fmin(least, low);
        *area += exp(-fmax(low, far)) * (h / (y * (y + h)) + A->dy / (y * y));
        y += h;
        at = next;
    }
    *area = (*area + exp(-far) * (1 + A->dy / y) / y) / HS_PI * (1 + 1e-9);
    return best;
}

/* log of the kernel's modulus at frequency y, up to what is the same at every frequency. */
static double kernel_log(const hs_mixed *A, double y)
{
    double a = A->c * A->step;
    if (A->step == 0) return -log(hypot(A->c, y)) - log(hypot(1 + A->c, y));
    return -log(hypot(-expm1(-a), 2 * sin(y / 2) * exp(-a / 2))) -
           log(hypot(-expm1(-a - A->step), 2 * sin(y / 2) * exp(-(a + A->step) / 2)));
}

/* Nodes n0 to n0 + count - 1. */
static int visit_block(hs_mixed *A, int64_t n0, int count)
{
    hs_law *laws = (hs_law *)A->laws;
    int i, n;
    for (n = 0; n < count; n++) A->re[n0 + n] = A->im[n0 + n] = A->round[n0 + n] = A->node[n0 + n] = 0;
    for (i = 0; i < A->b; i++) {
        if (hs_stopped(A->poll, (double)count * hs_law_cost(&laws[i]))) return HS_INTERRUPTED;
        hs_law_nodes(&laws[i], A->dy, n0, count, A->re + n0, A->im + n0, A->round + n0, A->node + n0);
    }
    A->last = n0 + count - 1;
    return HS_OK;
}

/* log of the largest modulus of the integrand from node n0 to the last, relative to that at 0, at most: the kernel
 * falls. */
static double top_of(const hs_mixed *A, int64_t n0)
{
    double most = -HUGE_VAL;
    int64_t n;
    for (n = n0; n <= A->last; n++) most = fmax(most, A->re[n]);
    return most + kernel_log(A, (double)n0 * A->dy) - kernel_log(A, 0);
}

/* The last node that a first visit reaches where quadrature grids have a largest frequency: a normal integrand has
 * fallen by 45 nats there. */
static double first_reach(const hs_mixed *A) { return 9.5 / (A->sd * A->dy) + HS_LAW_BLOCK; }

/* Nodes that are visited together: few where the error of a rule grows fast beyond where the integrand is small. */
static int block_of(const hs_mixed *A)
{
    const hs_law *laws = (const hs_law *)A->laws;
    int64_t i;
    for (i = 0; i < A->b; i++)
        if (laws[i].kind == HS_LAW_MIXTURE) return 8;
    return HS_LAW_BLOCK;
}

/* The nodes from n0 to the last below `to` whose distance from the lattice's frequencies is below X; others are 0. */
static int visit_bands(hs_mixed *A, const hs_bands *bands, int64_t n0, double to)
{
    int64_t end = (int64_t)(to / A->dy), n;
    int st, count;
    for (; n0 <= end; n0 += count) {
        count = (int)(end - n0 < HS_LAW_BLOCK ? end - n0 + 1 : HS_LAW_BLOCK);
        for (n = n0; n < n0 + count; n++)
            if (hs_bands_off(bands, (double)n * A->dy) < bands->X) break;
        if (n < n0 + count) {
            if ((st = visit_block(A, n0, count))) return st;
            continue;
        }
        for (n = n0; n < n0 + count; n++) {
            A->re[n] = -1e4;
            A->im[n] = A->round[n] = A->node[n] = 0;
        }
    }
    A->last = end;
    return HS_OK;
}

/* About the density of the loss at eps with a normal step of variance 2E, from the logarithms of the nodes. */
static double density_of(const hs_mixed *A, double E)
{
    double sum = 0;
    int64_t n;
    for (n = 0; n <= A->last; n++) {
        double y = (double)n * A->dy;
        sum += (n ? 2 : 1) * hs_exp(A->re[n] - E * y * y) * cos(A->im[n] - A->eps * y);
    }
    return fabs(sum) * A->dy / (2 * HS_PI) + 1e-300;
}

/* A normal step of variance s beside the run, where that is narrower than what nodes left out may weigh
 * [theory: line.smoothed]: the sum is then that of the two, whose excess over the run's own delta is between 0 and
 * s e^{s/8} times its density at eps. R: a frequency below which no node left out counts. */
static void smooth(hs_mixed *A, double R)
{
    const double tilts[3] = {A->c, A->s_right, A->s_left};
    double density = density_of(A, 16 / (R * R)), E = 16, s;
    int64_t n;
    int i;
    for (i = 0; i < 3; i++) E = fmin(fmax(log(100 * A->tail * R * R / (2 * E * density)) / HS_SMOOTH_PART, 3), 60);
    s = 2 * E / (R * R);
    if (!(s * density < A->tail)) return;
    A->smooth = s;
    for (n = 0; n <= A->last; n++) {
        double y = (double)n * A->dy;
        A->re[n] -= 0.5 * s * y * y;
        A->im[n] += s * (A->c + 0.5) * y;
        A->round[n] += 8 * HS_U * s * y * (0.5 * y + fabs(A->c + 0.5));
    }
    for (i = 0; i < 3; i++) {
        A->K[i] += 0.5 * s * tilts[i] * (1 + tilts[i]);
        A->err[i] += HS_U * (4 * s * fabs(tilts[i] * (1 + tilts[i])) + fabs(A->K[i]));
    }
}

/* The tail where one law lies on a lattice of its own, after more nodes near its frequencies as long as they help, up
 * to node `half`. log_most: of the tail wanted. */
static int finish_bands(hs_mixed *A, const hs_bands *bands, int64_t half, double log_most)
{
    double Y = (double)A->last * A->dy, to = Y, most = (double)half * A->dy, tail;
    int st;
    A->tail = hs_bands_tail_upper(A, bands, Y, Y);
    if (log(A->tail) < log_most) return HS_OK;
    if (A->y_max > 0) return HS_NO_DECAY;
    if (!(most * 1e-9 < 0.01 * bands->X)) return HS_OK;
    do {
        to = fmin(fmax(2 * to, 1.01 * bands->X), most);
        tail = hs_bands_tail_upper(A, bands, Y, to);
    } while (to < most && log(tail) > log_most);
    if (!(tail < 0.5 * A->tail))
        to = fmin(1.01 * bands->X, most); /* what is left is next to other frequencies of the lattice */
    if (to > Y) {
        if ((st = visit_bands(A, bands, A->last + 1, to))) return st;
        A->tail = hs_bands_tail_upper(A, bands, Y, (double)A->last * A->dy);
    }
    to = (double)A->last * A->dy;
    smooth(A, hs_bands_reach(bands, to));
    A->tail = hs_bands_tail_upper(A, bands, Y, to);
    return HS_OK;
}

/* The nodes from *n0 to `end` by blocks, up to one where the integrand has fallen by `want` nats, the log of its
 * largest modulus over the first one's being left in *top; or up to node `stop` with `near_atoms`. */
static int visit_until(hs_mixed *A, double want, int64_t stop, int64_t end, int64_t *n0, double *top)
{
    int st, block = block_of(A);
    while (*n0 <= end) {
        int count = (int)(end - *n0 < block ? end - *n0 + 1 : block);
        if ((st = visit_block(A, *n0, count))) return st;
        *top = top_of(A, *n0);
        if (block < HS_LAW_BLOCK && *n0 > 0 && A->round[*n0] >= 1 && A->re[*n0] >= A->re[*n0 - block])
            return HS_TOO_MANY_NODES; /* lost in that error, which only grows: a finer rule is needed */
        *n0 += count;
        if (A->near_atoms ? A->last >= stop : *top < -want) break;
    }
    return HS_OK;
}

/* The nodes of a line of parts, whose metric says little where they are few: up to where the bound for all larger
 * frequencies has fallen far enough, or as many as there may be [theory: line.truncation]. */
static int visit_parts(hs_mixed *A)
{
    const double nats = A->T0 + fmax(0, A->K[0] - A->c * A->eps - A->log_est);
    int64_t low = 1, high = A->n_nodes - 1, n0 = 0;
    double top, Y;
    int st;
    while (high - low > HS_LAW_BLOCK) {
        int64_t mid = low + (high - low) / 2;
        if (far_lower(A, (double)mid * A->dy) < nats) low = mid;
        else high = mid;
    }
    if ((st = visit_until(A, HUGE_VAL, -1, high, &n0, &top))) return st;
    Y = (double)A->last * A->dy;
    A->tail = exp(-far_lower(A, Y) * (1 - 1e-12)) * (1 + A->dy / Y) / (HS_PI * Y) * (1 + 1e-9);
    A->tail *= exp(A->factor);
    return HS_OK;
}

/* Nodes in blocks until the integrand has fallen by T0 + 4 nats (with `near_atoms`: until the tail is below `goal`),
 * then the tail; more where that is too large. HS_NO_DECAY if grids for all frequencies may do better. */
static int visit(hs_mixed *A, double goal)
{
    const hs_law *laws = (const hs_law *)A->laws;
    double want = A->T0 + 4, rel = A->K[0] - A->c * A->eps - A->log_est, top = 0;
    double B, area;
    int64_t whole = A->step > 0 ? (A->N - 1) / 2 : A->n_nodes;
    int64_t half = whole < A->n_nodes ? (int64_t)whole : A->n_nodes - 1, n0 = 0, stop = -1;
    int64_t end = A->y_max > 0 ? (int64_t)fmin((double)half, A->y_max / A->dy) : half;
    int tries, st;
    hs_bands bands;
    if (A->near_atoms) stop = (int64_t)fmin(hs_laplace_reach(&laws[A->apart], goal) / A->dy + 2, (double)half);
    for (tries = 0; tries < 6; tries++) {
        if ((st = visit_until(A, want, stop, end, &n0, &top))) return st;
        if (A->step > 0 && A->last == whole) {
            A->tail = 0;
            return HS_OK;
        }
        if (A->near_atoms) {
            A->tail = hs_laplace_tail_upper(&laws[A->apart], (double)A->last * A->dy);
            return HS_OK;
        }
        if (A->y_max > 0 && !(top < -want)) return HS_NO_DECAY;
        if (hs_bands_find(A, A->T0 + 8, &bands)) return finish_bands(A, &bands, half, -(A->T0 - 3) - rel);
        B = decay_lower(A, (double)A->last * A->dy, &area);
        A->tail = A->step > 0 ? exp(-B) : area;
        if ((A->step > 0 ? -B : log(area) + rel) < -(A->T0 - 3)) return HS_OK;
        if (n0 > end) break;
        want = A->T0 + 4 + 4 * (tries + 1);
        if (A->step == 0 && n0 > 4096 && tries > 2) break;
    }
    if (A->y_max > 0) return HS_NO_DECAY;
    if (A->step == 0) {
        double Y = (double)A->last * A->dy;
        smooth(A, Y);
        A->tail *= exp(-HS_SMOOTH_PART * 0.5 * A->smooth * Y * Y);
    }
    return HS_OK;
}

/* The known part S of the aliases [theory: line.known-aliases], for a law of masses pm under num and qm under den. */
static void known(const hs_mixed *A, double eps, double log_scale, double pm, double qm, double *S1, double *S2)
{
    *S1 = *S2 = 0;
    if (A->c < 0) {
        *S1 = -pm * exp(-log_scale) / expm1(-A->c * A->P);
        *S2 = qm * exp(eps - log_scale) / expm1((A->c + 1) * A->P);
        return;
    }
    if (A->s_left < 0) *S1 = pm * exp(-log_scale) / expm1(A->c * A->P);
    if (A->s_left < -1) *S2 = qm * exp(eps - log_scale) / expm1((A->c + 1) * A->P);
}

/* Aliases, known part and both ends, once value, slope, truncation, inner and rounding hold the sum's. L: the point at
 * which log_scale is taken. */
static void mixed_ends(const hs_mixed *A, double eps, double pm, double qm, double whole, hs_value *v)
{
    double S1, S2, s = A->s_left, inner = A->err[0];
    known(A, eps, v->log_scale, pm, qm, &S1, &S2);
    v->rounding +=
        expm1(whole + inner) * fabs(v->value) +
        (24 * HS_U * (2 + fabs(A->c) * A->P + A->P + fabs(eps) + fabs(v->log_scale)) + A->d_shift) * (fabs(S1) + S2);
    v->value -= S1 - S2;
    if (A->c < 0 && !A->complement) {
        v->value += pm * exp(-v->log_scale); /* [theory: line.complement] */
        v->rounding += 8 * HS_U * exp(-v->log_scale) * (1 + fabs(v->log_scale));
    }
    v->alias_right =
        hs_aliases_upper(A->c, A->P, eps, v->log_scale, hs_side_at(A->c, A->P, A->s_right, A->K[1] + A->err[1]));
    v->alias_left = hs_aliases_upper(A->c, A->P, eps, v->log_scale, hs_side_at(A->c, A->P, s, A->K[2] + A->err[2]));
    v->fit = 0;
    hs_value_ends(v, s);
}

/* What the step of the lattice may be off by, in parts of it. */
static double step_error(const hs_mixed *A) { return A->d_step + fabs(A->step_low) / A->step; }

/* The nodes as sum.c has them. */
static hs_nodes mixed_nodes(const hs_mixed *A)
{
    hs_nodes F = {.c = A->c, .dy = A->dy, .eps = A->frozen, .N = A->last, .re = A->re, .im = A->im};
    F.round = A->round;
    F.node = A->node;
    if (A->step == 0) return F;
    F.c *= A->step;
    F.step = A->step;
    F.period = (double)A->N;
    F.kernel = (2 + fabs(F.c)) * (step_error(A) + 2 * HS_U);
    return F;
}

/* Half of what the smoothing step may add to delta at eps, s e^{s/8} times an upper bound of the density there,
 * relative to e^{K(c) - c eps} [theory: line.smoothed]: the sum of f_n z_n (1 + z_n). whole: the rounding of that
 * factor. */
static double smoothing_upper(const hs_mixed *A, double eps, double whole)
{
    const double s = A->smooth, c = A->c, turn = eps - A->frozen;
    double density = 0;
    int64_t n;
    if (s == 0) return 0;
    for (n = 0; n <= A->last; n++) {
        double y = (double)n * A->dy, co = cos(turn * y), si = sin(turn * y);
        density += (c * (1 + c) - y * y) * (A->re[n] * co + A->im[n] * si);
        density -= y * (1 + 2 * c) * (A->im[n] * co - A->re[n] * si);
    }
    density = fmax(density, 0) + A->sums[0] + 5 * HS_U * fabs(turn) * A->sums[1];
    density *= A->dy / (2 * HS_PI) * (1 + 1e-9);
    return 0.5 * exp(s / 8 + A->err[0] + whole) * (s * density + HS_SMOOTH_DENSITY * A->tail);
}

static void evaluate_line(const hs_mixed *A, double eps, hs_value *v)
{
    const hs_law *laws = (const hs_law *)A->laws;
    const hs_nodes F = mixed_nodes(A);
    double c = A->c, unit = A->dy / (2 * HS_PI), whole = 3 * HS_U * (fabs(A->K[0]) + fabs(c * eps));
    hs_apart few = {0, 0, 0, 1};
    double off, sum, slope;
    memset(v, 0, sizeof *v);
    v->upper = HUGE_VAL;
    if (!(fabs(eps - A->frozen) * (double)A->last * A->dy <= 8e5)) return;
    hs_nodes_sum(&F, eps, &sum, &slope);
    v->log_scale = A->K[0] - c * eps;
    v->value = unit * sum; /* [theory: line.aliasing] */
    v->slope = unit * slope;
    v->truncation = A->tail;
    v->inner = unit * A->inner;
    v->rounding = unit * (A->rounding + 2 * HS_U * fabs(eps - A->frozen) * A->turned);
    if (A->factor > 0) { /* [theory: allocation.parts] */
        double Y = (double)A->last * A->dy;
        v->inner += expm1(A->factor) * (fabs(v->value) + 2 * (1 + A->dy / Y) / (HS_PI * Y)) * (1 + 1e-6);
    }
    if (A->near_atoms) hs_laplace_few(&laws[A->apart], A->b > 1 ? &laws[1 - A->apart] : NULL, eps, v->log_scale, &few);
    mixed_ends(A, eps, few.others, few.others, whole, v);
    off = smoothing_upper(A, eps, whole);
    v->truncation += off;
    v->value -= off;
    v->lower -= 2 * off;
    v->value += few.value;
    v->slope += few.slope;
    v->rounding += few.err;
    v->lower += few.value - few.err;
    v->upper += few.value + few.err;
}

/* s(V + F) - eps; V + F is exact up to d_shift. */
static double from_lattice(const hs_mixed *A, double V, double eps)
{ return fma(V + A->shift, A->step, -eps) + (V + A->shift) * A->step_low; }

/* The least place V0 whose loss is at or above eps, and eps between it and the place below. */
static gap place_of(const hs_mixed *A, double eps, double *V0)
{
    gap at = {0, 0, 0, 0};
    *V0 = ceil(eps / A->step - A->shift);
    if (!(fabs(*V0) < 2e15 && fabs(A->shift) < 2e15)) return at; /* places would not be exact */
    while ((at.x = from_lattice(A, *V0, eps)) < 0) *V0 += 1;
    while (from_lattice(A, *V0 - 1, eps) >= 0) {
        *V0 -= 1;
        at.x = from_lattice(A, *V0, eps);
    }
    at.rest = -from_lattice(A, *V0 - 1, eps);
    at.p = -expm1(-at.x);
    at.q = exp(-at.x) * -expm1(-at.rest);
    return at;
}

/* Places without whole periods. */
static double within_period(const hs_mixed *A, double places)
{
    double N = (double)A->N, at = fmod(places, N);
    return at > 0.5 * N ? at - N : at < -0.5 * N ? at + N : at;
}

static void evaluate_period(const hs_mixed *A, double eps, hs_value *v)
{
    const double s = A->step, a = A->c * s, ds = step_error(A);
    const double far = exp(-a), unit = 1 / (double)A->N;
    double V0;
    const gap at = place_of(A, eps, &V0);
    const hs_nodes F = mixed_nodes(A);
    double L0 = s * (V0 + A->shift), dx, edge, size;
    double place, one, other, slope;
    memset(v, 0, sizeof *v);
    v->upper = HUGE_VAL;
    if (!(at.rest > 0)) return;
    dx = 2 * HS_U * at.x + fabs(L0) * (A->d_step + 1e-31) + A->d_shift; /* steps are known to twice a double's digits */
    v->log_scale = A->K[0] - A->c * L0;
    edge = (at.x <= 2 * dx ? 1 : 0) + (at.rest <= 2 * dx ? exp(a) : 0);
    /* |V0|, N < 2^53 and n places < 2^53: products are exact */
    place = A->frozen + within_period(A, V0 - A->places - A->frozen);
    hs_nodes_sum(&F, place, &one, &slope);
    hs_nodes_sum(&F, place + 1, &other, &slope);
    size = at.p + at.q * far;
    v->value = unit * (at.p * one + at.q * far * other); /* [theory: line.lattice] */
    v->slope = unit * exp(-at.x) * (one - far * other);
    v->truncation = A->tail * size * exp(kernel_log(A, (double)A->last * A->dy)) * (1 + 1e-9);
    v->inner = unit * size * A->inner;
    /* [theory: line.lattice-moved] */
    v->rounding = size * A->rounding + dx * (exp(-at.x) * A->sums[1] + edge * A->sums[0]);
    v->rounding = unit * (v->rounding + ds * s * exp(-at.x - a - s) * A->sums[2]);
    mixed_ends(A, eps, 1, 1, 3 * HS_U * (fabs(A->K[0]) + fabs(A->c * L0)) + fabs(A->c) * (fabs(L0) * ds + A->d_shift),
               v);
}

/* delta - 1 becomes 1 - delta. */
static void turn_over(hs_value *v)
{
    const double lower = v->lower;
    v->value = -v->value;
    v->slope = -v->slope;
    v->lower = -v->upper;
    v->upper = -lower;
}

static void mixed_at(const void *prepared, double eps, hs_value *v)
{
    const hs_mixed *A = (const hs_mixed *)prepared;
    if (hs_stopped(A->poll, 50 * (double)A->last)) {
        memset(v, 0, sizeof *v);
        v->upper = HUGE_VAL;
    } else if (A->step > 0) evaluate_period(A, eps, v);
    else evaluate_line(A, eps, v);
    if (A->complement) turn_over(v);
}

/* Doubles that hold one law. */
enum { LAW_WORK = (sizeof(hs_law) + sizeof(double) - 1) / sizeof(double) };

int64_t hs_mixed_work(int64_t b, int64_t n_points, int64_t n_subnormal, int64_t n_nodes)
{ return 2 * n_points + b * (HS_ENDS_WORK + LAW_WORK) + n_subnormal * HS_GRID_WORK + 4 * (n_nodes + HS_LAW_BLOCK); }

/* The laws, at the end of the n_work doubles, which are fewer then; NULL where there are too few. */
static hs_law *room_of_laws(const hs_mixed *A, double *work, int64_t *n_work)
{
    *n_work -= A->b * LAW_WORK;
    return A->b < 1 || *n_work < 0 ? NULL : (hs_law *)(void *)(work + *n_work);
}

/* The shape of a density, which its last column holds, after the cells beyond its points. */
static int read_density(hs_law *w)
{
    const int64_t end = w->n - 1;
    if (end < 3) return HS_BAD_ARGUMENT;
    w->w0 = w->m;
    w->m = w->x[end];
    w->level = w->l[end];
    w->lambda[0] = w->lp[end];
    w->lambda[1] = w->dl[end];
    w->flat = w->dp[end];
    w->cells = (int)w->panels;
    w->n = end - w->cells;
    return w->cells > 0 && w->n > 1 ? HS_OK : HS_BAD_ARGUMENT;
}

/* What hs_mixture_points writes after the points of random shifts. */
static int read_mixture(hs_law *w)
{
    const int64_t end = w->n -= 2;
    int j;
    if (end < 2) return HS_BAD_ARGUMENT;
    for (j = 0; j < 2; j++) {
        w->lambda[j] = w->l[end + j];
        w->level_f[j] = w->dp[end + j];
    }
    w->lost[0] = w->lp[end];
    w->lost[1] = w->dl[end];
    w->mass[0] = w->lp[end + 1];
    w->mass[1] = w->dl[end + 1];
    return HS_OK;
}

/* The law of one row of the table, whose points begin at `at`. */
static int read_row(const hs_mixed *A, const double *row, int64_t at, hs_law *w)
{
    w->kind = (int)row[0];
    w->k = row[1];
    w->m = row[2];
    w->q = row[3];
    w->add = row[4] != 0;
    w->n = (int64_t)row[5];
    w->panels = row[6];
    w->atoms = w->kind == HS_LAW_SUBRANGE ? 0 : 1;
    w->smooth = w->kind == HS_LAW_SUBRANGE ? -2 / expm1(-w->m) : 1;
    if (w->kind == HS_LAW_SUBRANGE) w->kind = HS_LAW_SUBLAPLACE;
    w->order = row[6] > 0 ? (row[5] - 2 * w->atoms) / row[6] : 0;
    w->tails = w->kind == HS_LAW_POINTS_LOGCONCAVE;
    w->x = A->x + at;
    w->l = A->l + at;
    w->lp = A->lp + at;
    w->dl = A->dl + at;
    w->dp = A->dp + at;
    w->unit = A->step > 0 ? 0 : 1;
    if (w->kind == HS_LAW_MIXTURE) return read_mixture(w);
    return w->kind == HS_LAW_DENSITY ? read_density(w) : HS_OK;
}

static int read_table(hs_mixed *A, hs_law *laws, double *work, int64_t n_work)
{
    int64_t at = 0, grids = 0, allocations = 0, ends = 0;
    int i, st;
    if (!laws) return HS_SCRATCH;
    memset(laws, 0, sizeof(hs_law) * (size_t)A->b);
    A->factor = 0;
    for (i = 0; i < A->b; i++) {
        const double *row = A->table + 7 * i;
        if ((st = read_row(A, row, at, &laws[i]))) return st;
        at += (int64_t)row[5];
        grids += laws[i].kind == HS_LAW_SUBNORMAL;
        if (laws[i].kind == HS_LAW_ALLOCATION) laws[i].allocation = A->tables + allocations++ * hs_allocation_work();
        ends += laws[i].kind == HS_LAW_SUBLAPLACE;
        if (hs_law_is_part(&laws[i])) A->factor += laws[i].k * laws[i].w0;
    }
    if (A->n_tables < allocations * hs_allocation_work()) return HS_SCRATCH;
    if (n_work < hs_mixed_work(0, at, grids, A->n_nodes) + ends * HS_ENDS_WORK) return HS_SCRATCH;
    A->re = work + 2 * at + ends * HS_ENDS_WORK + grids * HS_GRID_WORK;
    A->im = A->re + A->n_nodes + HS_LAW_BLOCK;
    A->round = A->im + A->n_nodes + HS_LAW_BLOCK;
    A->node = A->round + A->n_nodes + HS_LAW_BLOCK;
    A->laws = laws;
    return HS_OK;
}

/* What else a sum over the nodes is off by: of a period the sums of |f|, of |f|/|1 - e^{-w-s}| and of its square; of a
 * smoothed line what errors of the nodes and what a turn by one unit of eps do to the density at most. */
static void lay_sums(hs_mixed *A)
{
    const double a = A->c * A->step + A->step, above = -expm1(-a), bend = 2 * exp(-0.5 * a);
    int64_t n;
    A->sums[0] = A->sums[1] = A->sums[2] = 0;
    if (A->step == 0 && A->smooth == 0) return;
    for (n = 0; n <= A->last; n++) {
        double y = (double)n * A->dy, size = (n ? 2 : 1) * exp(A->re[n]) * (1 + 1e-9);
        if (A->step > 0) {
            double b = 1 / hypot(above, bend * sin(0.5 * y));
            A->sums[0] += size;
            A->sums[1] += size * b;
            A->sums[2] += size * b * b;
        } else {
            double off = A->round[n] + A->node[n] + HS_U * (200 + (double)A->last + 5 * fabs(A->im[n] - A->eps * y));
            A->sums[0] += size * hs_one_grown_upper(off + 5 * HS_U * fabs(A->eps) * y);
            A->sums[1] += size * y;
        }
    }
}

/* The logarithms become terms, for A->eps and all others. */
static void freeze(hs_mixed *A)
{
    const hs_law *laws = (const hs_law *)A->laws;
    hs_nodes F;
    double V0;
    int64_t n;
    for (n = 0; n <= A->last; n++) A->round[n] += 3 * HS_U * (1 + fabs(A->re[n]));
    for (n = 0; n <= A->last && A->near_atoms; n++) {
        if (hs_stopped(A->poll, 20 * sqrt(laws[A->apart].k))) return;
        hs_laplace_rest(&laws[A->apart], (double)n * A->dy, A->node[n], &A->re[n], &A->im[n], &A->round[n]);
        A->round[n] += 3 * HS_U * (1 + fabs(A->re[n]));
    }
    A->frozen = A->eps;
    if (A->step > 0) A->frozen = place_of(A, A->eps, &V0).rest > 0 ? within_period(A, V0 - A->places) : 0;
    lay_sums(A);
    F = mixed_nodes(A);
    hs_nodes_freeze(&F);
    A->rounding = F.rounding;
    A->inner = F.inner;
    for (A->turned = 0, n = 1; n <= A->last; n++)
        A->turned += (fabs(A->re[n]) + fabs(A->im[n])) * (double)n * A->dy * (1 + HS_SUMS);
}

/* Whether a law makes tables at c, which serve other questions there. */
static int keeps_tables(const hs_mixed *A)
{
    const hs_law *laws = (const hs_law *)A->laws;
    int i;
    for (i = 0; i < A->b; i++)
        if (laws[i].kind == HS_LAW_ALLOCATION) return A->c > 0;
    return 0;
}

/* The abscissa c near the saddle for A->eps (or log_delta), so that 1 + c is exact; within 1/16 of it where that saves
 * tables. */
static int place_tilt(hs_mixed *A, int have_eps, double log_delta)
{
    hs_law_value bulk = hs_mixed_estimate(A, 0);
    double sd = sqrt(bulk.var);
    int i, st;
    const int below = have_eps && A->eps < bulk.mean - 2 * sd && !hs_mixed_parts(A);
    if (A->complement || below) hs_mixed_saddle_below(A);
    else if ((st = hs_mixed_saddle(A, have_eps, log_delta))) return st;
    A->c = A->t;
    if (A->c > 0 &&
        A->eps < bulk.mean) /* far to the left t would fall like 1/(mean - eps): the sum then cancels against S */
        A->c = fmax(A->c, A->step > 0 ? fmin(0.7 / sd, 50 / A->step) : 0.7 / sd);
    if (hs_mixed_parts(A) && !(A->c > 0)) return HS_NO_SADDLE;
    if (A->c > 0) A->c *= A->lower;
    if (A->c > -0.5) {
        A->c = frexp(A->c, &i);
        A->c = ldexp(keeps_tables(A) ? floor(A->c * 16 + 0.5) / 16 : floor(A->c * 16777216) / 16777216, i);
    } else A->c = floor(A->c * 16777216) / 16777216 + 1.0 / 16777216;
    if (fabs(A->c + 0.5) < 0.0625)
        A->c = A->c < -0.5 ? -0.5625 : -0.4375; /* the closed form of laplace.c has 1/(1+2z) */
    return A->c < 1e14 ? HS_OK : HS_NO_SADDLE;
}

/* The period and the distance of nodes. */
static int place_nodes(hs_mixed *A)
{
    A->sd = sqrt(hs_mixed_estimate(A, A->c).var);
    hs_mixed_place(A);
    if (!(A->P > 0 && A->P < 1e14)) return HS_OUT_OF_RANGE;
    if (A->step > 0) {
        double N = 2 * ceil(0.5 * A->P / A->step) + 1;
        if (!(N < 1e11)) return HS_TOO_MANY_NODES; /* times 2^16 nodes it must stay below 2^53 */
        A->N = (int64_t)N;
        A->P = N * A->step;
        A->dy = 2 * HS_PI / N;
    } else A->dy = 2 * HS_PI / A->P;
    return HS_OK;
}

/* Every law tilted by c; K at c and at the abscissas of the aliases, with its error. nodes: whether some are visited,
 * for which laws of allocation make tables. */
static int tilt_laws(hs_mixed *A, int nodes, double *work)
{
    hs_law *laws = (hs_law *)A->laws;
    const double tilts[3] = {A->c, A->s_right, A->s_left};
    int i, j, st;
    A->places = A->var = A->smooth = 0;
    for (i = 0; i < A->b; i++) {
        if (hs_stopped(A->poll, 100 * hs_law_cost(&laws[i]))) return HS_INTERRUPTED;
        if (!nodes && laws[i].kind == HS_LAW_ALLOCATION) continue;
        if ((st = hs_law_tilt(&laws[i], tilts, A->y_max, A->T0, work))) return st;
        work += hs_law_scratch(&laws[i]);
        A->places += laws[i].k * laws[i].ref;
        if (laws[i].kind != HS_LAW_NORMAL) A->var += laws[i].k * laws[i].var_upper;
    }
    for (j = 2; j >= 0; j--)
        for (A->K[j] = A->err[j] = 0, i = 0; i < A->b; i++) {
            hs_law_value g;
            double k = laws[i].k;
            if (j == 0 && laws[i].kind != HS_LAW_ALLOCATION) {
                g.K = laws[i].log_m;
                g.err = laws[i].err;
            } else if (laws[i].kind == HS_LAW_SUBNORMAL) {
                g.K = laws[i].log_mt[j - 1];
                g.err = laws[i].err_t[j - 1];
            } else hs_law_cgf(&laws[i], tilts[j], &g);
            A->K[j] += k * g.K;
            if (j > 0 && hs_law_is_part(&laws[i])) A->err[j] += k * laws[i].w0;
            A->err[j] += k * g.err + HS_U * (3 * fabs(k * g.K) + fabs(A->K[j])); /* of one addition */
        }
    return A->err[0] < 0.1 && A->err[1] < 700 && A->err[2] < 700 ? HS_OK : HS_TOO_WIDE;
}

/* Whether one Laplace step k times is all, or a plain one beside a law of few outcomes; which law that is. */
static int may_part_atoms(hs_mixed *A)
{
    const hs_law *laws = (const hs_law *)A->laws;
    A->apart = A->b == 2 && laws[1].kind == HS_LAW_LAPLACE;
    if (A->step > 0 || A->complement || A->b > 2 || laws[A->apart].k > 1e8 /* sums of sqrt k terms */) return 0;
    return A->b == 1 || (laws[A->apart].kind == HS_LAW_LAPLACE && hs_laplace_beside(&laws[1 - A->apart]));
}

/* Place the contour for A->eps (or log_delta), tilt the laws, visit the nodes. */
static int mixed_prepare(hs_mixed *A, int have_eps, double log_delta, double *work)
{
    hs_law *laws = (hs_law *)A->laws;
    const double part = A->b > 1 ? 0.05 : 0.2; /* of a tail: beside another law all nodes often told 1e-13 of delta */
    hs_value v;
    double goal;
    int st;
    int i;
    A->placed = 0;
    if ((st = place_tilt(A, have_eps, log_delta)) || (st = place_nodes(A))) return st;
    for (A->y_max = 0, i = 0; i < A->b; i++)
        if (laws[i].kind == HS_LAW_SUBNORMAL) A->y_max = first_reach(A) * A->dy;
    for (i = 0; i < 2; i++, A->y_max = 0) {
        if ((st = tilt_laws(A, 1, work))) return st;
        goal = part * A->rtol * exp(A->log_est - (A->K[0] - A->c * A->eps));
        A->near_atoms = may_part_atoms(A) && hs_laplace_floor_matters(&laws[A->apart], A->T0) &&
                        hs_laplace_tail_upper(&laws[A->apart], A->dy * (double)A->n_nodes) <
                            1e-3 / part * goal / A->rtol; /* 1e-3 of delta: of use */
        if ((st = hs_mixed_parts(A) ? visit_parts(A) : visit(A, goal)) != HS_NO_DECAY) break;
    }
    if (st) return st;
    freeze(A);
    A->placed = 1;
    if (!A->near_atoms) return HS_OK;
    mixed_at(A, A->eps, &v);
    if (A->tail > 2 * part * A->rtol * v.value && v.value > 0) {
        A->placed = 0;
        if ((st = visit(A, part * A->rtol * v.value))) return st;
        freeze(A);
        A->placed = 1;
    }
    return HS_OK;
}

static int mixed_point(const hs_mixed *A, const hs_value *v, hs_point *out)
{
    if (!(v->value > 0 && v->upper < HUGE_VAL)) return HS_TOO_WIDE;
    hs_value_point(v, A->last + 1, out);
    return v->lower > 0 && v->upper - v->lower <= 2 * A->rtol * v->value ? HS_OK : HS_LOOSE;
}

/* Parts of the saddle at which lines are tried. Tilted at the saddle, a law of a bulk and rare large losses may be
 * mostly the latter: then eps lies between the two, and delta far below the size of the line. Further down the bulk is
 * what is left. */
static const double LOWER[] = {1, 0.7, 0.3, 0.1};

/* Keeps the place of the line whose period is the least so far: more nodes carry it furthest. */
static void keep_place(hs_mixed *A, double eps, double *least)
{
    if (!(A->P < *least)) return;
    *least = A->P;
    A->part = A->lower;
    A->place = eps;
}

/* delta on a line at `part` of the saddle for A->eps. */
static int delta_on_line(hs_mixed *A, double part, double *work, hs_value *v, double *least)
{
    int st;
    A->lower = part;
    if ((st = mixed_prepare(A, 1, 0, work))) return st;
    mixed_at(A, A->eps, v);
    keep_place(A, A->eps, least);
    return HS_OK;
}

/* How many lines of delta are tried, *lower, and a relative width that will do, *enough. Of a sum of parts of a law the
 * saddle may lie where few of the largest losses outweigh all others at once. */
static int lines_tried(const hs_mixed *A, const double **lower, double *enough)
{
    const int parts = hs_mixed_parts(A);
    *lower = !parts && A->part > 0 ? &A->part : LOWER;
    *enough = parts ? 1e-6 : A->wide;
    if (parts) return 4;
    return A->part > 0 || A->step > 0 || A->near_atoms || A->complement ? 1 : 2;
}

/* The narrowest of the lines until one is narrow enough; with `keep` it is left to be asked again. */
static int delta_on_lines(hs_mixed *A, double *work, hs_value *v)
{
    const double *lowers;
    double least = HUGE_VAL, known = HUGE_VAL, best = 0, enough;
    hs_value w;
    int i, st = HS_NO_SADDLE, n = lines_tried(A, &lowers, &enough);
    for (i = 0; i < n && !(best > 0 && v->upper - v->lower < enough * v->upper); i++) {
        double part = lowers[i];
        int one = delta_on_line(A, part, work, &w, &least);
        if (one == HS_INTERRUPTED) return one;
        if (one && !i) st = one;
        if (one || (best > 0 && !(w.log_scale + log(w.upper - w.lower) < known))) continue;
        known = w.log_scale + log(w.upper - w.lower);
        best = part;
        *v = w;
        st = HS_OK;
    }
    return A->keep && best > 0 && best != A->lower ? delta_on_line(A, best, work, v, &least) : st;
}

int hs_mixed_delta(hs_mixed *A, double eps, double *work, int64_t n_work, hs_point *out)
{
    hs_law *laws = room_of_laws(A, work, &n_work);
    hs_value v;
    hs_point top;
    double far;
    int st, near;
    A->eps = eps;
    A->t = 1;
    A->placed = 0;
    if ((st = read_table(A, laws, work, n_work))) return st;
    near = A->complement ? HS_BAD_ARGUMENT : hs_mixed_top_delta(A, eps, &top);
    if (near == HS_OK) {
        *out = top;
        return HS_OK;
    }
    far = A->complement ? 0 : hs_mixed_complement_upper(A, eps);
    if (far < log(A->rtol)) {
        memset(out, 0, sizeof *out);
        out->lower = hs_down(-expm1(far));
        out->upper = 1;
        out->estimate = 0.5 * (out->lower + 1);
        out->truncation = exp(far);
        return HS_OK;
    }
    st = delta_on_lines(A, work, &v);
    if (st == HS_INTERRUPTED) return st;
    if (near == HS_LOOSE &&
        (st || !(v.value > 0) || v.log_scale + log(v.upper - v.lower) > top.log_scale + log(top.upper - top.lower))) {
        *out = top;
        return HS_LOOSE;
    }
    return st ? st : mixed_point(A, &v, out);
}

int hs_mixed_near(hs_mixed *A, double eps, hs_point *out)
{
    hs_value v;
    if (!A->placed) return HS_BAD_ARGUMENT;
    mixed_at(A, eps, &v); /* [theory: line.near] */
    return mixed_point(A, &v, out);
}

/* The root on the prepared contour. The curve has a kink at each atom, or nearly one, which Newton's error does not
 * see: a whole step has to be small. */
static int mixed_root(const hs_mixed *A, double log_delta, hs_crossing *out)
{
    hs_curve curve = {.at = mixed_at, .self = A, .log_delta = log_delta, .start = A->eps, .reach = HUGE_VAL};
    hs_value v;
    int st;
    curve.step = 4 / fabs(A->c) + 2 * A->step;
    curve.bend = HUGE_VAL;
    if ((st = hs_root_find(&curve, out, &v))) return st;
    hs_value_point(&v, A->last + 1, &out->delta);
    return v.upper - v.lower <= 2 * A->rtol * v.value ? HS_OK : HS_LOOSE;
}

/* The narrowest root of the lines tried, or the last estimate of one if none is proved, infinite where there is none;
 * its status, and the least of their periods. */
typedef struct {
    hs_crossing at;
    int st;
    double least;
} tried;

/* The root on a line at `part` of the saddle for A->eps, or for log_delta. */
static void try_root(hs_mixed *A, int have_eps, double log_delta, double part, double *work, tried *known)
{
    hs_crossing found = {.estimate = HUGE_VAL};
    int st;
    A->lower = part;
    A->t = 1;
    st = mixed_prepare(A, have_eps, log_delta, work);
    if (st == HS_OK) st = mixed_root(A, log_delta, &found);
    if (st == HS_INTERRUPTED || (known->st > HS_LOOSE && st > HS_LOOSE)) {
        known->st = st;
        known->at = found;
    }
    if (st > HS_LOOSE) return;
    keep_place(A, found.estimate, &known->least);
    if (known->st <= HS_LOOSE && !(found.upper - found.lower < known->at.upper - known->at.lower)) return;
    known->at = found;
    known->st = st;
}

/* Whether another line may be narrower; far: than one that lay where it was placed. */
static int may_narrow(const hs_mixed *A, const tried *known, int far)
{
    const hs_crossing *at = &known->at;
    if (known->st == HS_INTERRUPTED || (far && !(fabs(at->estimate) < HUGE_VAL))) return 0;
    if (known->st == HS_OK || (known->st == HS_LOOSE && at->upper - at->lower <= A->wide * fabs(at->upper))) return 0;
    return !far || fabs(at->estimate - A->eps) >= 0.25 * A->sd;
}

/* A line at the root that is known or estimated, where that lies far from where the last one was placed. */
static void try_at_root(hs_mixed *A, double log_delta, double *work, tried *known)
{
    if (!may_narrow(A, known, 1)) return;
    A->eps = known->at.estimate;
    try_root(A, 1, log_delta, 1, work, known);
}

/* Newton steps that place the contour anew each time, from the bulk outwards: log delta is nearly linear in the tail;
 * where that overshoots, delta is convex in e^eps, so that the tangent there falls short. Then the root on the contour
 * that is near enough. Some lines that do not end cost as much as a line may; more of them would not tell more. Steps
 * of an epoch at delta 1e-30 need it: their points end between the mean and the first estimate. */
static int chase(hs_mixed *A, double log_delta, double *work, hs_crossing *out)
{
    double e = hs_mixed_estimate(A, 0).mean, lo = -HUGE_VAL, hi = HUGE_VAL;
    double gap, next;
    int64_t nodes = 0;
    hs_value v;
    int it, st;
    for (it = 0; it < 60 && nodes < 2 * A->n_nodes; it++, nodes += A->last) {
        if (hs_stopped(A->poll, 0)) return HS_INTERRUPTED;
        A->eps = e;
        A->t = 1;
        st = mixed_prepare(A, 1, 0, work);
        if (st == HS_OK) mixed_at(A, e, &v);
        if (st == HS_TOO_MANY_NODES) return st;
        if (st || !(v.value > 0 && v.slope > 0)) {
            hi = e;
            next = 0.5 * (lo + hi);
        } else {
            gap = v.log_scale + log(v.value) - log_delta;
            if (fabs(gap) < 0.3) return mixed_root(A, log_delta, out);
            if (gap > 0) lo = e;
            else hi = e;
            next = e + gap * v.value / v.slope;
            if (!(next < hi && next > lo))
                next = gap > 0 ? e + log1p(-expm1(-gap) * v.value / v.slope) : 0.5 * (lo + hi);
        }
        if (!(next > lo && next < hi && fabs(next) < 1e300)) return HS_NO_BRACKET;
        e = next;
    }
    return HS_NO_BRACKET;
}

/* The leading-order estimate of eps places the first line; where that is poor, the root found places another, or a line
 * at the mean does, and where it is wide, one lies lower. Where a place is known, one line. */
int hs_mixed_eps(hs_mixed *A, double log_delta, double *work, int64_t n_work, hs_crossing *out)
{
    hs_law *laws = room_of_laws(A, work, &n_work);
    tried known = {.at = {.estimate = HUGE_VAL}, .st = HS_NO_BRACKET, .least = HUGE_VAL};
    hs_crossing top;
    int st, near;
    if ((st = read_table(A, laws, work, n_work))) return st;
    if (A->part > 0) {
        A->eps = A->place;
        try_root(A, 1, log_delta, A->part, work, &known);
        *out = known.at;
        return known.st;
    }
    if ((near = hs_mixed_top_eps(A, log_delta, &top)) == HS_OK) {
        *out = top;
        return HS_OK;
    }
    try_root(A, 0, log_delta, 1, work, &known);
    if (known.st == HS_LOOSE) try_at_root(A, log_delta, work, &known);
    if (A->step == 0 && !A->near_atoms && may_narrow(A, &known, 0))
        try_root(A, known.st == HS_LOOSE, log_delta, LOWER[1], work, &known);
    if (near == HS_LOOSE && known.st != HS_INTERRUPTED &&
        (known.st > HS_LOOSE || top.upper - top.lower < known.at.upper - known.at.lower)) {
        *out = top;
        A->part = 0;
        return HS_LOOSE;
    }
    if (known.st > HS_LOOSE && known.st != HS_INTERRUPTED) { /* a line at the mean is near enough next to delta = 1 */
        A->eps = hs_mixed_estimate(A, 0).mean;
        try_root(A, 1, log_delta, 1, work, &known);
        try_at_root(A, log_delta, work, &known);
    }
    if (known.st == HS_NO_BRACKET) {
        A->lower = 1;
        if ((known.st = chase(A, log_delta, work, &known.at)) <= HS_LOOSE)
            keep_place(A, known.at.estimate, &known.least);
    }
    *out = known.at;
    return known.st;
}

/* Chernoff's bound at the tilt c [theory: line.chernoff]. */
static double chernoff_upper(hs_mixed *A, double c, double *work)
{
    A->c = A->s_right = A->s_left = c;
    A->y_max = c; /* no node is visited */
    if (tilt_laws(A, 0, work)) return HUGE_VAL;
    return A->K[0] + A->err[0] + A->factor - c * A->eps + hs_payoff(c) + SLACK * (1 + fabs(A->K[0]) + fabs(c * A->eps));
}

/* That at the tilt of the line, or, where no loss may be so large, at tilts that grow as long as it falls. */
int hs_mixed_upper(hs_mixed *A, double eps, double *work, int64_t n_work, double *log_delta)
{
    hs_law *laws = room_of_laws(A, work, &n_work);
    double next = -HUGE_VAL;
    int st;
    A->eps = eps;
    A->t = A->lower = 1;
    if ((st = read_table(A, laws, work, n_work))) return st;
    if (A->step > 0) return HS_BAD_ARGUMENT;
    if (place_tilt(A, 1, 0) || !(A->c > 0)) { /* every tilt is valid */
        *log_delta = HUGE_VAL;
        for (A->c = 60 / fabs(eps); (next = chernoff_upper(A, A->c, work)) < *log_delta; A->c *= 2) *log_delta = next;
    } else {
        *log_delta = chernoff_upper(A, A->c, work);
    }
    return *log_delta < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* K(t) of a run of Laplace kinds and points at t > 0, and a bound of its error; no contour, no nodes. */
int hs_mixed_cgf(hs_mixed *A, double t, double *work, int64_t n_work, double *K, double *err)
{
    hs_law *laws = room_of_laws(A, work, &n_work);
    hs_law_value total;
    int i, st;
    if ((st = read_table(A, laws, work, n_work))) return st;
    for (i = 0; i < A->b; i++)
        if (laws[i].kind == HS_LAW_SUBNORMAL) return HS_BAD_ARGUMENT; /* hs_saddle_cumulants has those */
    if (!(t > 0)) return HS_BAD_ARGUMENT;
    total = hs_mixed_total(A, t);
    *K = total.K;
    *err = total.err + (A->b + 4) * HS_U * fabs(total.K);
    return fabs(total.K) < HUGE_VAL && total.err < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}
