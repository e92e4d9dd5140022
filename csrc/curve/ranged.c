/* ranged.c - the largest curve of adaptive steps of bounded range, from below or from above, on a lattice.
 *
 * Symbols. Steps j = 1..k, the last to run first, of range m_j h; x = e^g, g = i h; D the curve of the steps so far,
 *   0 from i = their sum on; for i < 0 D(-g) = 1 - e^-g + e^-g D(g). p_a = (1 - e^{(a-m)h})/(1 - e^{-mh}),
 *   q_a = 1 - p_a.
 *
 * Formula [theory: range.recursion]. D'(i) = max over 0 <= a <= m of v_a = p_a D(i-a) + q_a D(i-a+m). From above the
 *   maximum is over all s: between a-1 and a at most max(v_{a-1}, v_a) + E (1 - d/4E)^2 while d = |v_a - v_{a-1}| < 4E,
 *   E = (h^2/8) max -f'' of the chords of the cells of g - s and g - s + mh [theory: range.between]; the square is
 *   replaced by two chords, or by 1 - d/4E.
 *
 * Rounding: a few u of the result a step, all terms being positive; E is enlarged by what its slopes may be off.
 *
 * What it does not do: say what lies between the points (topk.py).
 */
#include "hs.h"
#include "special.h"

enum { TILE = 128, ROWS = 66 }; /* points handled together, and coarse values of a for each */

/* One step: its range and probabilities; D at 0 and E of the cells and of r cells together, at the one that begins
 * there; bend is NULL from below. */
typedef struct {
    int64_t m, r;
    const double *p, *q, *near;
    const double *bend, *coarse;
} lattice_step;

/* The curve at -m..size+3m, zeros beyond size, in ext + m. */
static void extend(const double *side, int64_t size, int64_t m, double h, double *ext)
{
    int64_t i;
    for (i = 0; i <= size + 3 * m + 1; i++) ext[m + i] = i < size ? side[i] : 0;
    for (i = 1; i <= m; i++) ext[m - i] = -expm1(-(double)i * h) + exp(-(double)i * h) * ext[m + i];
}

/* E of the cells [t, t+r], t = -m.., of g - s, in bend + m, x = e^{th} from t = -m on and back = 1/x. Slopes in x of
 * the chords, their intercepts; widths are known to 1e-10 of themselves and x within 300u. */
HS_CLONES static void bends(const double *restrict ext, const double *restrict x, const double *restrict back,
                            int64_t count, const lattice_step *S, int64_t r, double h, double *restrict slope,
                            double *restrict bend)
{
    double wide = (double)r * h, scale = wide * wide / 8 / -expm1(-(double)S->m * h), inverse = 1 / expm1(wide);
    int64_t t, m = S->m;
    for (t = 0; t < count; t++) slope[t] = (ext[t + r] - ext[t]) * back[t] * inverse;
    for (t = count; t < count + m; t++) slope[t] = 0; /* the curve is 0 there */
    for (t = 0; t < count; t++) {
        double next = x[t + r], left = slope[t], right = slope[t + m], turn = next * (right - left);
        double cut = ext[t] - left * x[t] - (ext[t + m] - right * x[t + m]);
        double known = 1e-9 * (ext[t] - next * left);
        bend[t] = scale * ((turn > 0 ? turn : 0) + (cut > 0 ? cut : 0) + known);
    }
}

/* v_a at n points, near = D at i. */
HS_CLONES static void value_of(const double *restrict near, double p, double q, int64_t a, int64_t m, int64_t n,
                               double *restrict v)
{
    int64_t i;
    for (i = 0; i < n; i++) v[i] = p * near[i - a] + q * near[i - a + m];
}

/* Whether the maximum between two neighbours v and w of a may exceed `best` anywhere. */
HS_CLONES static int may_exceed(const double *restrict v, const double *restrict w, const double *restrict E,
                                const double *restrict best, int64_t n)
{
    int64_t i, count = 0; /* of the width of a double, so that lanes are */
    for (i = 0; i < n; i++) {
        double gap = w[i] > v[i] ? w[i] - v[i] : v[i] - w[i], over = E[i] - 0.25 * gap;
        count += (w[i] > v[i] ? w[i] : v[i]) + (over > 0 ? over : 0) > best[i];
    }
    return count > 0;
}

/* The maximum over first <= a <= last, from above with what lies between. */
HS_CLONES static void refine(const lattice_step *S, int64_t first, int64_t last, int64_t i0, int64_t n,
                             double *restrict best)
{
    const double *restrict near = S->near + i0;
    double before[TILE];
    int64_t a, i;
    value_of(near, S->p[first], S->q[first], first, S->m, n, before);
    for (a = first + 1; a <= last; a++) {
        const double *restrict low = near - a, *restrict high = near - a + S->m;
        double p = S->p[a], q = S->q[a];
        if (!S->bend)
            for (i = 0; i < n; i++) {
                double v = p * low[i] + q * high[i];
                best[i] = v > best[i] ? v : best[i];
            }
        else {
            const double *restrict E = S->bend + i0 - a;
            for (i = 0; i < n; i++) {
                double v = p * low[i] + q * high[i], gap = v > before[i] ? v - before[i] : before[i] - v;
                double near_by = E[i] - 0.375 * gap, far_off = 0.5 * E[i] - 0.125 * gap;
                double over = near_by > far_off ? near_by : far_off;
                double top = (v > before[i] ? v : before[i]) + (over > 0 ? over : 0);
                best[i] = top > best[i] ? top : best[i];
                before[i] = v;
            }
        }
    }
}

/* D' at n points from i0 on: every r-th a, then all a between two of these where more may be found. Chords over r cells
 * lie above D as well, so nothing above is missed; below, any a will do. */
static void best_of(const lattice_step *S, int64_t i0, int64_t n, double *out)
{
    double v[ROWS][TILE], best[TILE];
    int64_t rows = (S->m + S->r - 1) / S->r, c, i;
    for (i = 0; i < n; i++) best[i] = 0;
    for (c = 0; c <= rows; c++) {
        int64_t a = c < rows ? c * S->r : S->m;
        value_of(S->near + i0, S->p[a], S->q[a], a, S->m, n, v[c]);
        for (i = 0; i < n; i++) best[i] = v[c][i] > best[i] ? v[c][i] : best[i];
    }
    for (i = 0; i < n; i++) out[i] = best[i];
    for (c = 0; c < rows; c++) {
        int64_t first = c * S->r, last = c + 1 < rows ? first + S->r : S->m;
        if (last - first < S->r || may_exceed(v[c], v[c + 1], S->coarse + i0 - last, best, n))
            refine(S, first, last, i0, n, out);
    }
}

int64_t hs_ranged_work(int64_t points, int64_t widest) { return 6 * (points + 5 * widest + 8) + 2 * (widest + 1); }

/* p_a and q_a of a step of range m h. */
static void ranged_weights(int64_t m, double h, double *p, double *q)
{
    double whole = expm1(-(double)m * h);
    int64_t a;
    for (a = 0; a <= m; a++) {
        p[a] = a < m ? expm1((double)(a - m) * h) / whole : 0;
        q[a] = a ? exp((double)(a - m) * h) * expm1(-(double)a * h) / whole : 0;
    }
}

int hs_ranged_curve(int64_t k, const int64_t *m, double h, int above, double *work, int64_t n_work, double *side)
{
    int64_t j, i, size = 1;
    int64_t widest = 0, points = 1, room;
    double *ext = work, *slope, *bend, *coarse;
    double *p, *q, *x, *back;
    lattice_step one;
    for (j = 0; j < k; j++) {
        if (m[j] < 1) return HS_BAD_ARGUMENT;
        widest = m[j] > widest ? m[j] : widest;
        points += m[j];
    }
    if (n_work < hs_ranged_work(points, widest)) return HS_SCRATCH;
    room = points + 5 * widest + 8;
    slope = ext + room;
    bend = slope + room;
    x = bend + room;
    coarse = x + room;
    back = coarse + room;
    p = back + room;
    q = p + widest + 1;
    one.p = p;
    one.q = q;
    for (i = 0; i < points + 4 * widest; i++) {
        x[i] = exp((double)(i - widest) * h);
        back[i] = 1 / x[i];
    }
    side[0] = 0; /* the curve of no steps */
    for (j = 0; j < k; j++) {
        int64_t range = m[j], n = size + range;
        ranged_weights(range, h, p, q);
        extend(side, size, range, h, ext);
        one.m = range;
        one.r = range < 16 ? range : range / (ROWS - 2) + 1 > 8 ? range / (ROWS - 2) + 1 : 8;
        one.near = ext + range;
        if (above) bends(ext, x + widest - range, back + widest - range, n + range, &one, 1, h, slope, bend);
        bends(ext, x + widest - range, back + widest - range, n + range, &one, one.r, h, slope, coarse);
        one.bend = above ? bend + range : NULL;
        one.coarse = coarse + range;
        for (i = 0; i < n; i += TILE) best_of(&one, i, n - i < TILE ? n - i : TILE, side + i);
        size = n;
        side[n - 1] = 0;
        for (i = 0; i < n; i++) side[i] = side[i] < 1 ? side[i] : 1;
    }
    return HS_OK;
}
