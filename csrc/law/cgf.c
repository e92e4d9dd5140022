/* cgf.c - quick values of K(a) = log E (1+U)^a and of two derivatives, for one step: they place contours and enter no
 * bound.
 *
 * Symbols. g: standard normal variable, v = m g - m^2/2, U = q (e^v - 1), l = log(1+U), E = a l.
 *
 * Formula. Trapezoid rule with h = 1/(2 max(1, m)), within 1e-6 of K relative to it:
 *   M - 1 = sum h w [ (e^E - 1 - E) + a (log(1+U) - U) ] where the first-order terms would cancel, else sum h w e^E.
 * A grid serves every tilt of its range: what depends on g alone is kept, one exponential a node is left.
 *
 * What it does not do: bounds (transform.c).
 */
#include "law/transform.h"

static double mesh(double m) { return 0.5 / (m > 1 ? m : 1); }
static double left_end(double m, double q, double a) { return -8.5 - hs_left_reach_upper(m, q, a); }
static double right_end(double m, double a) { return fmax(a * m, m) + 8.5; }

HS_CLONES static void fill(hs_coarse *G, double m, double q, double lo, int real, int room, double *work)
{
    double lq = log(q), h = mesh(m), *restrict l = work, *restrict lm = work + room;
    double *restrict lw = work + 2 * room, *restrict w = work + 3 * room;
    int j, n = (real + 7) / 8 * 8;
    G->n = n;
    G->m = m;
    G->q = q;
    G->l = l;
    G->lm = lm;
    G->lw = lw;
    G->w = w;
    for (j = 0; j < n; j++) {
        double g = lo + j * h, v = m * g - 0.5 * m * m, U = q * hs_expm1(v > 700 ? 700 : v), x = 1 + U;
        double small = U < 0.1 && U > -0.1 ? U : 0, t = hs_log1pmx_small(small), lg = hs_log(x);
        lg = v > 700 ? v + lq : lg;
        l[j] = small != 0 ? U + t : lg;
        lm[j] = small != 0 ? t : lg - U;
        lw[j] = -0.5 * g * g;
    }
    for (j = real; j < n; j++) {
        l[j] = 0;
        lm[j] = 0;
        lw[j] = -1e4;
    }
    for (j = 0; j < n; j++) w[j] = hs_exp(lw[j]);
}

/* The log of the largest weight e^E w, or 0 where none is above 3: there the first-order terms of M matter and are
 * dropped from every sum. Compilers make vectors of a count, and of a maximum none. */
HS_CLONES static double largest(const hs_coarse *G, double a)
{
    const double *restrict l = G->l, *restrict lw = G->lw;
    double over[8] = {0};
    int j, i, n = G->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) over[i] += a * l[j + i] + lw[j + i] > 3 ? 1 : 0;
    return hs_lanes(over) > 0 ? hs_top(n, a, l, lw) : 0;
}

/* The three sums, added to s. */
HS_CLONES static void sums(const hs_coarse *G, double a, double top, double *s)
{
    const double *restrict l = G->l, *restrict lm = G->lm, *restrict lw = G->lw, *restrict w = G->w;
    double s0[8] = {0}, s1[8] = {0}, s2[8] = {0};
    int j, i, n = G->n;
    if (top > 3) {
        for (j = 0; j < n; j += 8)
            for (i = 0; i < 8; i++) {
                double e = hs_exp(a * l[j + i] + lw[j + i] - top);
                s0[i] += e;
                s1[i] += e * l[j + i];
                s2[i] += e * l[j + i] * l[j + i];
            }
    } else
        for (j = 0; j < n; j += 8)
            for (i = 0; i < 8; i++) {
                double E = a * l[j + i], p = w[j + i], e = hs_exp(E + lw[j + i]);
                double es = E < 0.1 && E > -0.1 ? E : 0, x = hs_expm1mx_small(es);
                double h2 = es != 0 ? p * x : e - p - p * E, e1 = es != 0 ? p * (x + es) : e - p;
                s0[i] += h2 + p * a * lm[j + i];
                s1[i] += e1 * l[j + i] + p * lm[j + i];
                s2[i] += e * l[j + i] * l[j + i];
            }
    for (i = 0; i < 4; i++) {
        s[0] += s0[i] + s0[i + 4];
        s[1] += s1[i] + s1[i + 4];
        s[2] += s2[i] + s2[i + 4];
    }
}

static hs_cgf finish(const double *s, double h, double top)
{
    hs_cgf out;
    double M;
    h /= HS_SQRT_2PI;
    M = top > 3 ? s[0] * h : 1 + s[0] * h;
    out.K = top > 3 ? top + log(M) : log1p(s[0] * h);
    out.K1 = s[1] * h / M;
    out.K2 = s[2] * h / M - out.K1 * out.K1;
    return out;
}

/* The grid for all tilts from a_lo to a_hi; HS_TOO_MANY_NODES if it has not room for
 * that many nodes, a multiple of 8. work: 4 room doubles. */
int hs_coarse_build(hs_coarse *G, double m, double q, double a_lo, double a_hi, int room, double *work)
{
    double lo = left_end(m, q, a_lo), real = (right_end(m, a_hi) - lo) / mesh(m);
    G->a_lo = G->a_hi = 0;
    if (!(real < room - 1)) return HS_TOO_MANY_NODES;
    fill(G, m, q, lo, (int)real + 1, room, work);
    G->a_lo = a_lo;
    G->a_hi = a_hi;
    return HS_OK;
}

/* K and its derivatives in a, at a tilt of the grid's range. */
hs_cgf hs_coarse_cgf(const hs_coarse *G, double a)
{
    double s[3] = {0}, top = largest(G, a);
    sums(G, a, top, s);
    return finish(s, mesh(G->m), top);
}

/* The same for one tilt, however far it reaches: the nodes come in blocks. */
hs_cgf hs_cgf_estimate(double m, double q, double a)
{
    double work[4 * HS_COARSE_MAX], s[3] = {0}, h = mesh(m), lo = left_end(m, q, a);
    double hi = right_end(m, a), at, top = 0;
    int pass, n;
    hs_coarse G;
    if (q == 1) return (hs_cgf){0.5 * m * m * a * (a - 1), m * m * (a - 0.5), m * m};
    if (!((hi - lo) / h < HS_INNER_MAX)) return (hs_cgf){HUGE_VAL, HUGE_VAL, HUGE_VAL}; /* a tilt beyond use */
    for (pass = 0; pass < 2; pass++) /* the largest weight, the sums: one block is filled once */
        for (at = lo; at <= hi; at += HS_COARSE_MAX * h) {
            n = (hi - at) / h < HS_COARSE_MAX - 1 ? (int)((hi - at) / h) + 1 : HS_COARSE_MAX;
            if (!pass || hi - lo >= (HS_COARSE_MAX - 1) * h) fill(&G, m, q, at, n, HS_COARSE_MAX, work);
            if (pass) sums(&G, a, top, s);
            else top = fmax(top, largest(&G, a));
        }
    return finish(s, h, top);
}

/* The same from G, which is made anew where it does not reach a, for tilts such as those of a saddle and its aliases,
 * if HS_COARSE_MAX nodes are enough. work: 4 HS_COARSE_MAX doubles. */
hs_cgf hs_cgf_nearby(hs_coarse *G, double m, double q, double a, double *work)
{
    if (q < 1 && !(G->a_lo <= a && a <= G->a_hi))
        hs_coarse_build(G, m, q, a - fabs(a) - 3, a + 1.2 * fabs(a) + 3, HS_COARSE_MAX, work);
    return q < 1 && G->a_lo <= a && a <= G->a_hi ? hs_coarse_cgf(G, a) : hs_cgf_estimate(m, q, a);
}
