/* grid.c - DiscretizePRV: the law of one step's loss as masses on the lattice {j dx} [GLW21, Alg. 2].
 *
 * Symbols: m = sensitivity/sigma, q sampling rate, v = m x - m^2/2, l(x) = log1p(q expm1(v)), x the noise;
 *   g(s) = log1p(expm1(s)/q), the inverse of v -> l;  x0(s) = g/m + m/2,  x1(s) = g/m - m/2.
 * REMOVE: loss l(x), x ~ (1-q) N(0,1) + q N(m,1):   mass of (a,b] = (1-q) dPhi(x0) + q dPhi(x1).
 * ADD:    loss -l(x), x ~ N(0,1):                    mass of (a,b] = dPhi(x0) over (-b,-a] [theory: law.prv-cells].
 * Cell j is ((j-1/2) dx, (j+1/2) dx]. dPhi is a difference of lower tails for x <= 0, of upper tails for x >= 0,
 * so nothing cancels: a difference Phi(b)-Phi(a) loses every digit in the right tail.
 *
 * Error claim: p_j = (1 + 8u)^{+-1} x the mass of a cell whose two edges are off by at most
 *   edge_upper = 32 u (|s| + [q < 1] expm1(-min(s,0)) + |g| + m (|x| + 4)),   maximum over the edges used
 *   [theory: rounding.edges].
 *
 * What it does not do: atoms, other laws.
 */
#include "hs.h"
#include "special.h"
#include <math.h>

/* tail masses at x: lower for x <= 0, upper (negated, so that a difference is one subtraction) for x > 0 */
static double tail(double x)
{
    double a = 0.5 * erfc(fabs(x) * HS_SQRT_HALF);
    return x > 0 ? -a : a;
}

/* Phi(b) - Phi(a), a <= b, from tail(a), tail(b) */
static double between(double a, double ta, double b, double tb) { return a <= 0 && b > 0 ? 1 + tb - ta : tb - ta; }

static double inverse_loss(double s, double q)
{
    double z;
    if (q == 1) return s;
    if (s > 30) return s - log(q) + log1p(-(1 - q) * exp(-s));
    z = expm1(s) / q;
    return z > -1 ? log1p(z) : -HUGE_VAL;
}

typedef struct {
    double x0, x1, t0, t1;
} edge;

static void edge_at(double s, double m, double q, int add, edge *e, double *edge_upper)
{
    double g = inverse_loss(s, q), err;
    if (g == -HUGE_VAL) { /* the edge lies below the support */
        e->x0 = e->x1 = g;
        e->t0 = e->t1 = 0;
        return;
    }
    e->x0 = g / m + 0.5 * m;
    e->x1 = g / m - 0.5 * m;
    e->t0 = tail(e->x0);
    e->t1 = add ? 0 : tail(e->x1);
    /* [theory: rounding.edges] */
    err = 32 * HS_U * (fabs(s) + (q < 1 && s < 0 ? expm1(-s) : 0) + fabs(g) + m * (fmax(fabs(e->x0), fabs(e->x1)) + 4));
    if (err > *edge_upper) *edge_upper = err;
}

typedef struct {
    long double sum, carry;
} neumaier;

static void add_to(neumaier *a, long double v)
{
    volatile long double s = a->sum + v;
    a->carry += fabsl(a->sum) >= fabsl(v) ? (a->sum - s) + v : (v - s) + a->sum;
    a->sum = s;
}

int hs_grid_prv(double m, double q, int add, double dx, int64_t j0, int64_t n, double *p, hs_cell_sums *sums)
{
    neumaier total = {0, 0}, first = {0, 0};
    double spread = 0;
    edge a, b;
    int64_t i;
    if (!(m > 0 && q > 0 && q <= 1 && dx > 0 && n > 0 && p)) return HS_BAD_ARGUMENT;
    sums->edge_upper = 0;
    /* ADD runs over the mirrored cells: mass of cell j is the mass of cell -j of l(x) under N(0,1) */
    edge_at(((double)(add ? -j0 - n + 1 : j0) - 0.5) * dx, m, q, add, &a, &sums->edge_upper);
    for (i = 0; i < n; i++) {
        int64_t jl = add ? -j0 - n + 1 + i : j0 + i, at = add ? n - 1 - i : i;
        double v, x = (double)(add ? -jl : jl) * dx;
        edge_at(((double)jl + 0.5) * dx, m, q, add, &b, &sums->edge_upper);
        v = between(a.x0, a.t0, b.x0, b.t0);
        if (!add) v = (1 - q) * v + q * between(a.x1, a.t1, b.x1, b.t1); /* [theory: law.prv-cells] */
        if (!(v >= 0)) v = 0; /* both tails underflow, or differ in the last place: an edge within its error */
        p[at] = v;
        add_to(&total, v);
        add_to(&first, (long double)x * v);
        spread += fabs(x) * v;
        a = b;
    }
    sums->mass = (double)(total.sum + total.carry);
    sums->mean = (double)(first.sum + first.carry);
    sums->abs_mean = spread;
    return HS_OK;
}

/* log sum_j p_j exp(t j dx): positive terms only, scaled by the largest, known within a factor 2 from its exponent.
 * Relative error of the sum: 4u + 2u max|t j dx| per term, and the accumulation n 2^-53 at worst (long double =
 * double). */
int hs_grid_log_mgf(int64_t j0, int64_t n, double dx, const double *p, double t, double *log_mgf)
{
    double top = -HUGE_VAL;
    long double sum = 0;
    int64_t i;
    for (i = 0; i < n; i++)
        if (p[i] > 0) {
            double size = t * ((double)(j0 + i) * dx) + HS_LOG_2 * ilogb(p[i]);
            if (size > top) top = size;
        }
    if (!(top > -HUGE_VAL && top < HUGE_VAL)) return HS_OUT_OF_RANGE;
    for (i = 0; i < n; i++)
        if (p[i] > 0) {
            double e = t * ((double)(j0 + i) * dx) - top;
            if (fabs(e) < 690) sum += p[i] * exp(e);
            else sum += expl(logl((long double)p[i]) + (long double)e);
        }
    *log_mgf = top + (double)logl(sum);
    return HS_OK;
}

int hs_grid_log_mgfs(const hs_cells *cells, int64_t tilts, const double *t, double *log_mgf)
{
    int64_t i, j;
    int st = HS_OK;
    for (i = 0; i < cells->steps; i++)
        for (j = 0; j < tilts && !st; j++) {
            int64_t first = cells->start[i], n = cells->start[i + 1] - first;
            st = hs_grid_log_mgf(cells->j0[i], n, cells->dx, cells->p + first, t[j], log_mgf + j * cells->steps + i);
        }
    return st;
}
