/* pld_steps.c - what route pld asks of many distinct steps at once: tails, windows, lattice laws, and the planning
 * table.
 *
 * A step is a row (kind, m, q, back): the pair of HS_LAW_NORMAL or HS_LAW_LAPLACE of shift m, Poisson-sampled at
 *   rate q (1: not), with num and den swapped where back is not 0. Tails, cells and laws are those of tails.c and
 *   pld.c, with their claims.
 * Swapping [GLW21, Prop. C.9]: Y' = -X, X' = -Y, so Pr[Y' <= s] = Pr[X >= -s]; atoms on an edge fall on its other
 *   side, as the claims of tails.c allow.
 * Nodes: a quadrature rule for E_X, losses l_j and log den masses. Gaussian: trapezoid rule in the noise, as far as
 *   the tails of mass p; Laplace: a Gauss-Legendre rule of the caller's between the two atoms. Estimates, for
 *   planning.
 * Table: K(t) = log sum_j w_j e^{t l_j}, w_j the num masses, and two derivatives at t = +-t0 2^{i/c}: e^{t l} is
 *   squared from one octave to the next, i to i + c, l counted from its largest value (t > 0; else the smallest), so
 *   that nothing overflows. An octave doubles the relative error; after FRESH of them the exponentials are formed
 *   anew. Estimates.
 * Not done: other laws, masses at infinity. */
#include "hs.h"
#include "special.h"
#include <math.h>

#define TINY 8e-323 /* absolute error of tails: 16 units of subnormal numbers, as in loss.py */

enum {
    KIND,
    SHIFT,
    RATE,
    BACK,
    COLUMNS = HS_STEP_COLUMNS,
    FRESH = 8,
    LANES = HS_PLD_LANES
}; /* LANES is 8, as in special.h */

/* The tails at s_0 < .. < s_{n-1}, and `edge`; see tails.c. */
int hs_step_tails(const double *step, int64_t n, const double *s, double *o, double *edge)
{
    double m = step[SHIFT], q = step[RATE], move = 0;
    double slope = 1, *at = o, *g = o + 4 * n;
    int laplace = step[KIND] == HS_LAW_LAPLACE, back = step[BACK] != 0, st;
    int64_t i, first = 0;
    if (!(n >= 0 && m > 0 && q > 0 && q <= 1)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n; i++) at[i] = back ? -s[n - 1 - i] : s[i];
    if (q < 1) {
        if ((st = hs_poisson_place(q, n, at, g, &first, &move, &slope))) return st;
    } else
        for (i = 0; i < n; i++) g[i] = at[i];
    st = (laplace ? hs_laplace_tails : hs_gaussian_tails)(m, n, g, o);
    if (!st && q < 1) st = hs_poisson_tails(q, 1, 1, first, n, o);
    *edge = move + slope * (laplace ? 2 * HS_U * m : 0);
    for (i = 0; back && i < (n + 1) / 2; i++) {
        int64_t e = n - 1 - i;
        double low[5], high[5];
        int r;
        for (r = 0; r < 5; r++) {
            low[r] = o[r * n + i];
            high[r] = o[r * n + e];
        }
        for (r = 0; r < 5; r++) {
            o[r * n + i] = high[r < 4 ? 3 - r : 4];
            o[r * n + e] = low[r < 4 ? 3 - r : 4];
        }
    }
    return st;
}

/* log(1 - q + q e^loss) without cancellation: loss.py has the error */
static double sampled(double loss, double q)
{
    double v;
    if (q == 1) return loss;
    if (loss > 700) return loss + log(q);
    v = q * expm1(loss);
    return v > -0.5 ? log1p(v) : -log1p(-v / (1 - q + q * exp(loss)));
}

/* a computed tail at one point: Pr[Y <= s], or with `above` Pr[Y > s] */
static double one_tail(const double *step, double s, int above)
{
    double o[5], edge;
    return hs_step_tails(step, 1, &s, o, &edge) ? 1 : o[above];
}

/* windows: the tail below lo[i] is at most p_low, that above hi[i] at most p_high, as computed; ends of the support
 * elsewhere */
int hs_pld_windows(int64_t steps, const double *table, double p_low, double p_high, double *lo, double *hi)
{
    int64_t i;
    if (!(steps >= 0 && p_low > 0 && p_high > 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < steps; i++) {
        const double *step = table + COLUMNS * i;
        double top = step[KIND] == HS_LAW_LAPLACE ? step[SHIFT] : HUGE_VAL, end[2];
        int side, pass, back = step[BACK] != 0;
        end[back] = sampled(-top, step[RATE]) * (back ? -1 : 1);
        end[!back] = sampled(top, step[RATE]) * (back ? -1 : 1);
        for (side = 0; side < 2; side++) /* the search goes outwards from 2^-20, to 2^20 at most */
            for (pass = -20; pass <= 20 && fabs(end[side]) == HUGE_VAL; pass++) {
                double s = ldexp(side ? 1 : -1, pass);
                if (pass == 20 || one_tail(step, s, side) <= (side ? p_high : p_low)) end[side] = s;
            }
        lo[i] = end[0];
        hi[i] = end[1];
        for (side = 0; side < 2; side++) { /* 2^-22 of the range is left */
            double good = end[side], bad = end[!side], p = side ? p_high : p_low;
            for (pass = 0; pass < 22 && one_tail(step, good, side) <= p; pass++) {
                double mid = 0.5 * (good + bad);
                if (one_tail(step, mid, side) <= p) good = mid;
                else bad = mid;
            }
            if (side) hi[i] = good;
            else lo[i] = good;
        }
    }
    return HS_OK;
}

/* Laws of all steps on their windows of at least two points; edge[i], p_inf[i] as in hs_pld_laws. work: 5 (m (size - 1)
 * + 1) doubles for the largest size. */
int hs_pld_steps(int64_t steps, const double *table, const hs_windows *W, double *work, double *p_upper,
                 double *p_lower, double *edge, double *p_inf)
{
    int64_t i, j;
    if (!(steps >= 0 && W->dx > 0 && W->m > 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < steps; i++) {
        int64_t n = W->m * (W->size[i] - 1), rows = n + 1, start = W->start[i];
        hs_fine f = {n, W->m, W->at[i] + (double)W->first[i] * W->dx, W->dx / W->m, 0, TINY};
        double *s = work + 4 * rows;
        int st;
        if (n <= 0) return HS_BAD_ARGUMENT;
        for (j = 0; j < rows; j++) s[j] = f.s0 + f.w * (double)j;
        if ((st = hs_step_tails(table + COLUMNS * i, rows, s, work, edge + i))) return st;
        edge[i] += 16 * HS_U * (fmax(fabs(f.s0), fabs(f.s0 + f.w * (double)n)) + fabs(W->at[i]));
        f.edge = edge[i];
        if ((st = hs_pld_laws(&f, work, W->t, 0, p_upper + start, p_lower + start, p_inf + i))) return st;
    }
    return HS_OK;
}

/* The most nodes of a step: of a Gaussian one, fifths of a deviation, or of 1/m where the loss is steep, up to 8 of
 * them. */
int64_t hs_step_nodes(int64_t steps, const double *table, double p, int64_t gl)
{
    double reach = sqrt(2 * fmax(1.0, -log(p))) + 0.5, most = (double)gl + 2;
    int64_t i;
    for (i = 0; i < steps; i++) {
        double m = table[COLUMNS * i + SHIFT];
        if (table[COLUMNS * i + KIND] == 0)
            most = fmax(most, ceil((2 * reach + m) * fmin(fmax(1.0, m), 8.0) / 0.2) + 1);
    }
    return (int64_t)most;
}

/* Nodes of one step, at most `room` of them: their number, 0 where there is no room. p: mass of the tails that they
 * leave out. */
static int64_t nodes(const double *step, double p, const hs_rule *rule, int64_t room, double *loss, double *log_den)
{
    double m = step[SHIFT], reach = sqrt(2 * fmax(1.0, -log(p))) + 0.5;
    int laplace = step[KIND] == HS_LAW_LAPLACE;
    int64_t i, n = laplace ? rule->n + 2 : hs_step_nodes(1, step, p, 0);
    double dx = (2 * reach + m) / (double)(n - 1);
    if (n > room) return 0;
    for (i = 0; i < n; i++) {
        double v, d;
        if (!laplace) {
            double at = -reach + dx * (double)i;
            v = m * at - 0.5 * m * m;
            d = -0.5 * at * at + log(dx) - HS_LOG_SQRT_2PI;
        } else if (i < rule->n) {
            v = m * rule->x[i];
            d = log(0.25 * m * rule->w[i]) - 0.5 * m * (1 + rule->x[i]);
        } else {
            v = i == rule->n ? -m : m;
            d = (i == rule->n ? 0 : -m) - HS_LOG_2;
        }
        v = sampled(v, step[RATE]);
        loss[i] = step[BACK] != 0 ? -v : v;
        log_den[i] = step[BACK] != 0 ? d + v : d;
    }
    return n;
}

int hs_pld_step_nodes(const double *step, double p, const hs_rule *rule, int64_t room, int64_t *n, double *loss,
                      double *log_den)
{
    *n = nodes(step, p, rule, room, loss, log_den);
    return *n > 0 ? HS_OK : HS_SCRATCH;
}

typedef struct {
    int64_t n;                /* nodes, padded to a multiple of LANES by nodes of mass 0 */
    double lift, least, most; /* w holds masses times e^lift; the smallest and largest loss of any mass */
    double *w, *d, *e;        /* masses; losses less the end that t counts from; e^{t d} */
} masses;

/* num masses w_j, scaled so that those of far tails stay normal numbers */
static void pld_weigh(masses *L, int64_t n, const double *loss, const double *log_den)
{
    double least = 0;
    int64_t j;
    for (j = 0; j < n; j++) least = fmin(least, log_den[j] + loss[j]);
    L->lift = least < -600 ? 300 : 0; /* the tilts have both signs: no mass exceeds e^300 */
    L->least = HUGE_VAL;
    L->most = -HUGE_VAL;
    for (j = 0; j < L->n; j++) L->w[j] = j < n ? exp(log_den[j] + loss[j] + L->lift) : 0;
    for (j = 0; j < n; j++) {
        if (!(L->w[j] > 0)) continue;
        L->least = fmin(L->least, loss[j]);
        L->most = fmax(L->most, loss[j]);
    }
}

/* a[i] = sum w e d^i, i = 0, 1, 2, in eight lanes; then e is squared. */
#define CLIMB(V)                                                                                                       \
    int64_t j;                                                                                                         \
    int h;                                                                                                             \
    for (h = 0; h < LANES; h += (int)(sizeof(V) / sizeof(double))) {                                                   \
        V s0 = {0}, s1 = {0}, s2 = {0};                                                                                \
        for (j = h; j < n; j += LANES) {                                                                               \
            V f = *(const V *)(e + j), x = *(const V *)(d + j), p = *(const V *)(w + j) * f, px = p * x;               \
            s0 += p;                                                                                                   \
            s1 += px;                                                                                                  \
            s2 += px * x;                                                                                              \
            *(V *)(e + j) = f * f;                                                                                     \
        }                                                                                                              \
        *(V *)(a + h) = s0;                                                                                            \
        *(V *)(a + LANES + h) = s1;                                                                                    \
        *(V *)(a + 2 * LANES + h) = s2;                                                                                \
    }
HS_TARGET("avx512f")
static void pld_by8(int64_t n, const double *w, const double *d, double *e, double *a){
    CLIMB(hs_v8)} HS_TARGET("avx2") static void pld_by4(int64_t n, const double *w, const double *d, double *e,
                                                        double *a)
{ CLIMB(hs_v4) }
static void pld_by2(int64_t n, const double *w, const double *d, double *e, double *a) { CLIMB(hs_v2) }

/* The three sums, their lanes joined in order: the same bits for every width of a vector. */
static void climb(int64_t n, const double *w, const double *d, double *e, double *s)
{
    double a[3 * LANES];
    int i, l;
    HS_PICK(pld_by8, pld_by4, pld_by2)(n, w, d, e, a);
    for (i = 0; i < 3; i++)
        for (s[i] = 0, l = 0; l < LANES; l++) s[i] += a[i * LANES + l];
}

HS_CLONES static void form(int64_t n, double t, const double *restrict d, double *restrict e)
{
    int64_t j;
    for (j = 0; j < n; j++) e[j] = hs_exp(t * d[j]);
}

/* Adds k copies of a step to K, K', K'', a row each, at t, t 2, t 4, .., `octaves` of them, `stride` apart. */
static void ascend(const masses *L, double end, double k, double t, int64_t octaves, int64_t stride, int64_t row,
                   double *sums)
{
    double s[3];
    int64_t o;
    for (o = 0; o < octaves; o++, t *= 2, sums += stride) {
        if (o % FRESH == 0) form(L->n, t, L->d, L->e);
        climb(L->n, L->w, L->d, L->e, s);
        s[1] /= s[0];
        sums[0] += k * (log(s[0]) - L->lift + t * end);
        sums[row] += k * (end + s[1]);
        sums[2 * row] += k * fmax(0.0, s[2] / s[0] - s[1] * s[1]);
    }
}

/* Adds k copies of a step of n nodes to the sums. work: 3 (n + LANES) doubles. */
int hs_pld_table(const hs_ladder *tilts, int64_t n, const double *loss, const double *log_den, double k, double *work,
                 double *sums)
{
    int64_t up = tilts->up, down = tilts->down, row = up + down + 1;
    int64_t i, j;
    masses L;
    int side;
    if (!(up > 0 && down > 0 && tilts->t0 > 0 && n > 0)) return HS_BAD_ARGUMENT;
    L.n = (n + LANES - 1) / LANES * LANES;
    L.w = work;
    L.d = work + L.n;
    L.e = work + 2 * L.n;
    pld_weigh(&L, n, loss, log_den);
    for (side = 0; side < 2; side++) {
        double end = side ? L.least : L.most, t0 = side ? -tilts->t0 : tilts->t0;
        int64_t from = side ? up : 0, count = side ? down : up, per = side ? HS_PLD_OCTAVE / 2 : HS_PLD_OCTAVE;
        for (j = 0; j < L.n; j++) L.d[j] = L.w[j] > 0 ? loss[j] - end : 0; /* e^{t d} may be infinite at weight 0 */
        for (i = 0; i < per && i < count; i++)
            ascend(&L, end, k, t0 * exp2((double)i / (double)per), (count - i + per - 1) / per, per, row,
                   sums + from + i);
    }
    ascend(&L, L.least, k, 0, 1, 1, row, sums + up + down);
    return HS_OK;
}

/* The same for many steps by their own nodes, at most `room` = hs_step_nodes() of them. work: 5 room + 3 LANES doubles.
 * far: the largest |loss|. */
int hs_pld_tables(int64_t steps, const double *table, const double *k, double p, const hs_rule *rule,
                  const hs_ladder *tilts, double *work, double *sums, double *far)
{
    int64_t room = hs_step_nodes(steps, table, p, rule->n), i, j;
    double *loss = work, *log_den = work + room;
    *far = 0;
    for (i = 0; i < steps; i++) {
        int64_t n = nodes(table + COLUMNS * i, p, rule, room, loss, log_den);
        int st;
        if (!n) return HS_SCRATCH;
        for (j = 0; j < n; j++) *far = fmax(*far, fabs(loss[j]));
        if ((st = hs_pld_table(tilts, n, loss, log_den, k[i], work + 2 * room, sums))) return st;
    }
    return HS_OK;
}
