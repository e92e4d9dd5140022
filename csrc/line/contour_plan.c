/* contour_plan.c - how far the contour of contour.c goes, once contour_place.c has its tilt and period: number of nodes
 * N, how the tail beyond them is covered (contour_visit.c).
 *
 * Nothing here enters a bound: every choice is valid, a bad one only makes a bound wide. At most HS_SAMPLE of the steps
 * are looked at.
 *
 * Symbols as in contour.c; far: log Psi, fall: log |phi|^k at a frequency, both negative.
 */
#include "line/line.h"

typedef struct {
    double fall[HS_PROBES], spread, fourth;
    hs_grid G;
    hs_two T;
    int64_t built;
    double who[HS_SAMPLE], share[HS_SAMPLE]; /* the sample of contour_place.c */
    int n;
} decay; /* a pair's grid is T.G */

static void begin_decay(const hs_contour *C, decay *D)
{
    D->built = -1;
    D->n = hs_contour_sample(C, D->who, D->share);
}

/* The grid of step j at c, fine enough for the frequencies of the nodes. */
static int build(const hs_contour *C, int64_t j, decay *D, double *work)
{
    double m = C->run.m[j], q = C->run.q[j], a = hs_contour_tilt(C, C->c);
    double c1, c2, lo, hi;
    if (D->built == j) return HS_OK;
    D->built = j;
    if (hs_is_pair(C, j)) {
        double h[HS_BRANCHES];
        int r;
        for (r = 0; r < HS_BRANCHES; r++)
            h[r] = HS_FAR_MESH / fmax(fmax(C->run.pair[j].up[r], C->run.pair[j].down[r]), 1);
        if (hs_two_build(&D->T, &C->run.pair[j], h, C->c, C->c, 7, work)) return HS_TOO_MANY_NODES;
        hs_two_weights(&D->T, C->c, hs_two_cgf_estimate(&C->run.pair[j], C->c).K, &c1, &c2);
        D->G = D->T.G;
        return HS_OK;
    }
    lo = -7 - hs_left_reach_upper(m, q, a);
    hi = fmax(a * m, 0) + 7;
    if (hs_grid_build(&D->G, m, q, fmax(HS_FAR_MESH / fmax(m, 1), (hi - lo) / (HS_INNER_MAX - 16)), lo, hi, work))
        return HS_TOO_MANY_NODES;
    hs_grid_weights(&D->G, a, hs_grid_top(&D->G, a), &c1, &c2);
    return HS_OK;
}

/* log |phi|^k at y0 2^i and the moments of hs_sums, scaled from a sample to the whole run. */
static int sample_fall(const hs_contour *C, double y0, double target, decay *D, double *work)
{
    double total = 0, y, var;
    double fourth, zr, zi;
    int i, it;
    memset(D->fall, 0, sizeof D->fall);
    D->spread = D->fourth = 0;
    for (i = 0; i < D->n; i++) {
        int64_t j = (int64_t)D->who[i];
        double m = C->run.m[j], k = D->share[i];
        total += k;
        if (C->run.q[j] == 1 && !hs_is_pair(C, j)) {
            for (it = 0, y = y0; it < HS_PROBES; it++, y *= 2) D->fall[it] -= 0.5 * k * m * m * y * y;
            D->spread += k * m * m;
            continue;
        }
        if (build(C, j, D, work)) return HS_TOO_MANY_NODES;
        hs_grid_spread(&D->G, 0, HUGE_VAL, &var, &fourth);
        D->spread += hs_is_light(C, j) ? 0 : k * var;
        D->fourth += hs_is_light(C, j) ? 0 : k * fourth;
        for (it = 0, y = y0; it < HS_PROBES; it++, y *= 2) {
            if (it) hs_grid_phase_double(&D->G, &zr, &zi);
            else hs_grid_phase(&D->G, y, &zr, &zi);
            D->fall[it] += 0.5 * k * log(fmax((1 + zr) * (1 + zr) + zi * zi, 1e-300));
            if (C->run.b == 1 && D->fall[it] - 2 * log(hypot(C->c, y) / C->c) < -target) break;
        }
    }
    total = C->ktot / total;
    for (it = 0; it < HS_PROBES; it++) D->fall[it] *= total;
    D->spread *= total;
    D->fourth *= total;
    return HS_OK;
}

/* log Psi^k at y, or of a rule what stands for it in fit.c; scaled from the sample. */
static double sample_far(const hs_contour *C, double y, decay *D, double *work)
{
    double total = 0, far = 0, a = hs_contour_tilt(C, C->c);
    int i;
    for (i = 0; i < D->n; i++) {
        int64_t j = (int64_t)D->who[i];
        double k = D->share[i];
        total += k;
        if (hs_is_light(C, j)) continue;
        if (hs_is_pair(C, j))
            far += build(C, j, D, work) ? 0 : k * hs_far_log(hs_two_far_upper(&D->T, C->c, y), hs_is_ruled(C, j));
        else if (C->run.q[j] == 1) far -= 0.5 * k * C->run.m[j] * C->run.m[j] * y * y;
        else if (build(C, j, D, work) == HS_OK)
            far += k * hs_far_log(hs_grid_far_upper(&D->G, a, y), hs_is_ruled(C, j));
    }
    return far * C->ktot / total;
}

/* The least over the bands of what B of hs_contour_log_tail_upper is in them, from the sample. */
static double sample_bands(const hs_contour *C, decay *D, double *work)
{
    double V[HS_BANDS] = {0}, F[HS_BANDS] = {0}, total = 0;
    double least = HUGE_VAL, var, fourth;
    int i, r;
    for (i = 0; i < D->n; i++) {
        int64_t j = (int64_t)D->who[i];
        double k = D->share[i], m = C->run.m[j];
        int plain = C->run.q[j] == 1 && !hs_is_pair(C, j);
        total += k;
        if (hs_is_light(C, j)) continue;
        if (!plain && build(C, j, D, work)) return 0;
        for (r = 0; r < C->bands; r++) {
            if (plain) {
                V[r] += k * m * m;
                continue;
            }
            hs_grid_spread(&D->G, 0, hs_band_cut(C, r, C->run.q[j]), &var, &fourth);
            V[r] += k * var;
            F[r] += k * fourth;
        }
    }
    for (r = 0; r < 2 * C->bands; r++) {
        double y = hs_band(C, (r + 1) / 2), x = y * y;
        least = fmin(least, (0.5 * x * V[r / 2] - x * x * F[r / 2] / 48) * C->ktot / total);
    }
    return least;
}

/* What B of hs_contour_log_tail_upper should be at y. */
static double needed(const hs_contour *C, double y)
{ return fmax(1, C->nats + C->cancelled - 2 + log(C->c * (1 + C->c) * C->sd / (HS_PI * y))); }

static double longest(const hs_contour *C) { return 0.97 * fmin(C->n_max, HS_OUTER_MAX / C->chunks) - 8; }

/* Together with that at 0 a multiple of eight, as vectors take the rest one by one; of pairs a node costs more, and of
 * few nodes as many again would reach frequencies for which a step has no grid. */
static int64_t nodes_up_to(const hs_contour *C, double y)
{
    int64_t n = (int64_t)(1.02 * y / C->dy);
    return hs_has_pairs(C) || n < 32 ? n + 3 : (n + 1) | 7;
}

/* The first frequency found, up to cap, from which Psi is enough; HUGE_VAL if there is none. 1 - Psi is about d^2/2
 * less its trapezoid error, so nothing below shifts d of about one mesh, and log Psi ~ -y^2 from there. */
static double find_far(const hs_contour *C, double y, double need, double cap, decay *D, double *work)
{
    double want = 1.02 * need + 0.3, prev = y, before = 0;
    double far = 0, end = fmin(cap, y * fmax(1, 0.17 * sqrt(C->ktot / (2 * need)))), next;
    int it, closely = hs_has_pairs(C) || C->run.b > HS_SAMPLE; /* a second visit would cost more than a closer look */
    for (; end <= cap; end = end < cap ? fmin(next, cap) : HUGE_VAL) {
        far = -sample_far(C, end, D, work);
        if (!(far > want || far > 1.2 * before) && C->run.b == 1 && before > 0) { /* another shift is better by then */
            D->G.far_shift = -1;
            far = -sample_far(C, end, D, work);
        }
        if (far > want) break;
        prev = end;
        before = far;
        next = end * (far > 0 ? fmax(1.25, fmin(2, 1.1 * sqrt(want / far))) : 1.5);
    }
    if (!(end <= cap)) return HUGE_VAL;
    if (!closely && before > 0) {
        next = prev * pow(end / prev, fmin(1, log(1.1 * want / before) / log(far / before)));
        for (it = 0; it < 2; it++, next = end) {
            D->G.far_shift = -1;
            if (-sample_far(C, next, D, work) > want) break;
        }
        return next;
    }
    if (!closely) return end;
    for (it = 0; it < 4; it++) {
        double mid = sqrt(prev * end);
        if (-sample_far(C, mid, D, work) > want) end = mid;
        else prev = mid;
    }
    return end;
}

/* The first frequency from y up from which bands lead to y_far, where Psi takes over; C->bands. Y = y_far with one
 * band if there is none that saves enough nodes. */
static double lead(hs_contour *C, double y, double y_far, double need, decay *D, double *work)
{
    double worth = y / C->dy < 128 ? 0.6 : 0.8;
    C->y_far = y_far;
    for (; y < worth * y_far && y / C->dy < longest(C); y *= 1.2) {
        C->N = nodes_up_to(C, y);
        C->bands = (int)fmin(HS_BANDS, 2 + log2(y_far / y));
        if (sample_bands(C, D, work) > 1.3 * need + 0.5) return y; /* moments taken cell by cell are smaller */
    }
    C->bands = 1;
    return y_far;
}

/* The frequency from which |phi| is below the target, if one alone decides, from the sample; and the power of y that
 * -log |phi| grows like. 0 if the sample has no grid or does not fall that far. */
static double first_end(hs_contour *C, double target, decay *D, double *power, double *work)
{
    double y0 = sqrt(2 * target) / C->sd, y = y0, at = 0, prev = 0;
    int it;
    *power = 2;
    if (sample_fall(C, y0, target, D, work)) return 0;
    for (it = 0; it < HS_PROBES; it++, y *= 2, prev = at)
        if ((at = D->fall[it] - 2 * log(hypot(C->c, y) / C->c)) < -target) break;
    if (it == HS_PROBES) return 0;
    if (it > 0) *power = fmax(0.3, log(at / prev) / log(2));
    return y * (pow(target / -at, 1 / *power) * (it > 0 ? 1.05 : 1));
}

/* Where the tail begins if not at y, and C->y_far: moments serve up to the larger root of x V/2 - x^2 F/48 = need, x =
 * y^2, if they do at x = lo; from C->y_far on Psi does. */
static double tail_start(hs_contour *C, double y, double need, decay *D, double *work)
{
    double root = 0.25 * D->spread * D->spread - D->fourth * (need + 0.3) / 12, lo, end, far;
    root = root > 0 ? (0.5 * D->spread + sqrt(root)) * 24 / D->fourth : 0;
    lo = (need + 0.3) / (0.5 * D->spread - D->fourth * y * y / 48);
    if (!(root > 2 * y * y && lo > 0 && lo < 1.7 * y * y)) root = 0;
    far = hs_has_pairs(C) && !C->run.ruled ? fmin(fmax(sqrt(root), 6 * y), 64 * y) : 1e6 * y;
    end = find_far(C, y, need, far, D, work);
    if (end * end <= root) {
        y = fmax(y, sqrt(lo));
        C->y_far = fmax(end, 1.05 * y);
    } else if (end < HUGE_VAL) y = lead(C, y, end, need, D, work);
    return y;
}

/* N, y_grid, and how the tail beyond Y = N dy is covered (hs_contour_log_tail_upper): C->y_far > Y by moments up to
 * y_far, == Y by Psi alone, 0 by the metric at C->doublings points. A long line has a tail eight nats below rtol,
 * not twelve. */
int hs_contour_plan(hs_contour *C, double *work)
{
    double target = C->nats + C->cancelled + 4, surplus = C->nats + log(C->rtol) - 8, power, need;
    decay D;
    double y;
    int own = C->run.b == 1 && !hs_has_pairs(C) && C->run.q[0] < 1; /* whether D.G is the grid of the only step */
    begin_decay(C, &D);
    y = first_end(C, target, &D, &power, work);
    if (!(y > 0 && y < 1e9 * C->dy)) return HS_TOO_MANY_NODES;
    if (surplus > 0 && y > HS_FEW_NODES * C->dy) { /* nodes cost more than these nats bring */
        y *= pow(1 - surplus / target, 1 / power);
        C->nats -= surplus;
    }
    need = needed(C, y);
    if (C->run.b > HS_SAMPLE) need *= 1.1; /* a second visit would cost more */
    C->y_far = C->far_mesh = 0;
    C->fine = 0;
    C->bands = 1;
    y = tail_start(C, y, need, &D, work);
    if (!(y / C->dy < longest(C))) return HS_TOO_MANY_NODES;
    if (C->run.ruled && !(C->y_far > 0)) return HS_TOO_MANY_NODES;
    C->N = nodes_up_to(C, y);
    y = (double)C->N * C->dy;
    if (C->y_far > 0) C->y_far = fmax(C->y_far, y);
    C->far_shift = own ? D.G.far_shift : -1;
    C->fine = C->y_far > y || (C->y_far > 0 && C->N <= HS_FEW_NODES / 2);
    if (own && C->y_far > 0) C->far_mesh = fmax(D.G.h, 2 * HS_PI * D.G.shift / (log(C->ktot / need) + 4));
    C->y_grid = (double)(C->N + 2) * C->dy;
    C->doublings = (int)fmax(3, fmin(HS_DOUBLINGS, 3 + ceil(log2(3 * sqrt(C->ktot) / 8))));
    return HS_OK;
}

/* More nodes where the tail was not small enough: the first point beyond N dy, on a geometric grid, from which Psi
 * should cover it. */
int hs_contour_extend(hs_contour *C, double *work)
{
    double y = C->N * C->dy, need = needed(C, y);
    decay D;
    begin_decay(C, &D);
    for (y *= 1.15; y / C->dy < longest(C); y *= 1.15)
        if (-sample_far(C, y, &D, work) > 1.02 * need + 0.3) break;
    if (!(y / C->dy < longest(C))) return HS_TOO_MANY_NODES;
    C->N = (int64_t)(y / C->dy) + 1;
    C->y_far = (double)C->N * C->dy;
    C->fine = 1;
    C->bands = 1;
    C->far_mesh = 0;
    C->y_grid = (double)(C->N + 2) * C->dy;
    return HS_OK;
}
