/* twosided_shift.c - phi at all nodes of the line for one two-sided pair, or one plain step, on inner paths that are
 * shifted to the damping side.
 *
 * Symbols as in twosided.c, c the tilt; branch r, path Im g = d, b_i = d up, d down. On it 1 + U_i are complex,
 *   1 + U1 = 1 - q + q e^{v1} e^{i b1},  1 + U2 = 1 - q + q e^{v2} e^{-i b2},  l_i = log(1+U_i),  L = l1 - l2,
 *   Im L >= 0; r_j = h w_r (2 pi)^{-1/2} e^{-(g_j + i d)^2/2 + a1 l1 + a2 l2}/M(c), complex;  w = y L.
 *
 * Formula. phi(y) - 1 = sum r_j (e^{iyL_j} - 1), y >= 0: on the real path e^{iyL} turns as fast as y max(up, down), and
 *   the mesh has to follow; here what turns fast is damped, and one mesh serves every y.
 *
 * Error terms of phi: quadrature, ends, M, trimmed nodes [theory: law.shifted, law.trim]; rounding |d phi| <= y slope,
 *   slope = sum |r_j| (dL_j + e_j |L_j|) + x u sum |r_j L_j|, for |e^{iw} - 1| <= |w|; dL_j and e_j (relative, of r_j)
 *   from `factor` and `fill`, x from hs_two_shift_nodes.
 * First order in u, as there. A plain step is one branch with up = m, down = 0, at the exponents (a, 0).
 *
 * What it does not do: y < 0; bounds beyond the nodes (twosided.c, transform.c).
 */
#include "law/twosided.h"

enum { HALF = HS_TWO_MAX / 2, PLAIN_HALF = HS_INNER_MAX / 2, TILE = 32, SEGMENT = 320 }; /* SEGMENT: a multiple of 32 */

/* log of what the strip costs: 1 + e^{2 d^2} kap2. */
static double log_strip(hs_exponents a, double d, double up, double down)
{
    double x = 2 * d * d;
    if (a.a1 < 0) x += a.a1 * log(cos(d * up));
    if (a.a2 < 0) x += a.a2 * log(cos(d * down));
    return x + log1p(exp(-x));
}

/* Shift and mesh (12 bits) of branch r for which the quadrature error should be below e^-target: the widest mesh of
 * a few. */
static double choose(const hs_pair *pair, int r, hs_exponents a, double target, double *shift)
{
    static const double part[6] = {0.97, 0.9, 0.75, 0.5, 0.3, 0.15};
    double m = fmax(pair->up[r], pair->down[r]), best = 0;
    int t;
    for (t = 0; t < 6; t++) {
        double d = fmin(part[t] * HS_PI / (2 * m), 1.5), h; /* weights, and their rounding, grow by e^{d^2/2} */
        h = 2 * HS_PI * d / (target + log_strip(a, d, pair->up[r], pair->down[r]));
        if (h > best) {
            best = h;
            *shift = d;
        }
    }
    return hs_grid_mesh(best);
}

/* How many nodes the paths would have at tilt z on grids for the tilts z_lo .. z_hi, with room for what pads them. */
double hs_two_shift_count(const hs_pair *pair, double z, double z_lo, double z_hi, double R, double target)
{
    double n = TILE, lo, hi, d;
    int r;
    for (r = 0; r < pair->branches; r++) {
        hs_two_range(pair, r, z_lo, z_hi, R, &lo, &hi);
        n += (hi - lo) / choose(pair, r, hs_at_tilt(z), target, &d) + 16;
    }
    return n;
}

static hs_pair plain(double m, double q)
{
    hs_pair one = {0};
    one.branches = 1;
    one.w[0] = 1;
    one.q[0] = q;
    one.up[0] = m;
    return one;
}

/* The same for a plain step at exponent a, whose grid on the real line has the width `range`. */
double hs_grid_shift_count(double m, double q, double a, double range, double target)
{
    hs_pair one = plain(m, q);
    hs_exponents e = {a, 0};
    double d;
    return range / choose(&one, 0, e, target, &d) + TILE + 16;
}

/* One factor 1 + U with phase b of either sign: cs = cos b, cm = cos b - 1, sn = sin b, lq = log q. */
typedef struct {
    double m, q, q_err, lq;
    double b, cs, cm, sn;
} turned;

static turned turned_by(double m, double d, const hs_pair *pair, int r)
{
    double b = d * m, t = sin(0.5 * b), q = pair->q[r];
    turned f = {fabs(m), q, pair->q_err, log(q), b, cos(b), -2 * t * t, sin(b)};
    return f;
}

/* log(1+U) of one factor at g; beyond e^300 log X: and the bound of its error in u, of both parts together
 * [theory: rounding.shifted]. */
static inline void factor(turned f, double g, double *re, double *im, double *err)
{
    double m = f.m, q = f.q, cm = f.cm;
    double v = m * g - 0.5 * m * m, m1, ev = hs_exp_m1(v > 300 ? 300 : v, &m1);
    double x = q * (m1 * f.cs + cm), w = q * ev * f.sn;
    double X = 2 * x + x * x + w * w, mod2 = (1 + x) * (1 + x) + w * w, near = X > -0.75 && X < 1 ? 1 : 0;
    double lr = hs_log_modulus(X, mod2), li = hs_atan2(w, 1 + x);
    double size = sqrt(x * x + w * w), inv = 1 / sqrt(mod2);
    double l0, l1;
    lr = v > 300 ? v + f.lq : lr;
    li = v > 300 ? f.b : li; /* less than (1-q)/X off, e^-270 for q > 1e-13 */
    l0 = lr < 0 ? -lr : lr;
    l1 = li < 0 ? -li : li;
    *re = lr;
    *im = li;
    *err =
        (q * (ev * hs_v_error(m, g) + 9 * (m1 < 0 ? -m1 : m1) - 7 * cm) + 6 * (w < 0 ? -w : w) + (2 + f.q_err) * size) *
            inv +
        (near != 0 ? (2 + 1.5 * size) * size * inv * inv : 2) + 3 * l0 + 5 * l1 + (l1 > 0.39 ? 4 : 0);
}

typedef struct { /* what branches are laid with, and the sums over them */
    const hs_pair *pair;
    hs_exponents a;
    int room, total;
    double log_m, rounding, out, target;
    double edge, *slope, *reach, c1;
    double c2, quad, mass, dropped;
} layer;

/* The n nodes (first + j) h of one branch: L, r, and the two parts of the slope: |r| (dL + e |L|) and |r L|, in u.
 * e: the errors of both logs and what products and sums with them round; g^2/2 is exact and joins other terms; the
 * turn by e^{i turn}, 24 + 2 |turn|; and what all nodes share. */
HS_CLONES static void shift_fill(const layer *B, int r, double d, double h, double first, int n, hs_two_shift *P)
{
    const hs_pair *pair = B->pair;
    const hs_exponents a = B->a;
    const turned one = turned_by(pair->up[r], d, pair, r), two = turned_by(-pair->down[r], d, pair, r);
    double lh = log(h), lw = log(pair->w[r]), f1 = fabs(a.a1), f2 = fabs(a.a2);
    double shift = lh - HS_LOG_SQRT_2PI + lw + 0.5 * d * d - B->log_m;
    double base = 2 * (fabs(lh) + fabs(lw)) + 2 * d * d + 32 + 2 * fabs(B->log_m) + pair->w_err;
    double *restrict slope = B->slope + B->total, *restrict reach = B->reach + B->total;
    int at = B->total;
    double *restrict Lr = P->Lr + at, *restrict Li = P->Li + at, *restrict rr = P->rr + at, *restrict ri = P->ri + at;
    int j;
    HS_SEPARATE
    for (j = 0; j < n; j++) {
        double g = (first + (double)j) * h, x1, y1, e1;
        double x2, y2, e2, p;
        double turn, cr, ci, k1;
        double k2, e, size;
        factor(one, g, &x1, &y1, &e1);
        factor(two, -g, &x2, &y2, &e2);
        e2 = two.m > 0 ? e2 : 0;
        p = hs_exp(shift - 0.5 * g * g + a.a1 * x1 + a.a2 * x2);
        turn = a.a1 * y1 + a.a2 * y2 - g * d;
        hs_cis_m1(turn, &cr, &ci);
        rr[j] = p + p * cr;
        ri[j] = p * ci;
        Lr[j] = x1 - x2;
        Li[j] = y1 - y2;
        k1 = sqrt(x1 * x1 + y1 * y1);
        k2 = sqrt(x2 * x2 + y2 * y2);
        size = k1 + k2;
        e = f1 * (e1 + 5 * k1) + f2 * (e2 + 5 * k2) + g * g + 2 * d * fabs(g) + 2 * fabs(turn) + base;
        slope[j] = p * (e1 + e2 + size * (e + 1));
        reach[j] = p * size;
    }
}

/* The path of branch r over lo .. hi of the real line, mu its part of M(c). */
static int lay(layer *B, int r, double lo, double hi, double mu, hs_two_shift *P)
{
    double d = 0, h = choose(B->pair, r, B->a, B->target, &d), up = B->pair->up[r], down = B->pair->down[r];
    double factor, kap, first, last;
    double tol = exp(-B->target - 2) / HALF;
    int j, n, kept = B->total;
    first = floor(lo / h);
    last = ceil(hi / h); /* the ends lie within */
    if (!(last - first < B->room - TILE - B->total)) return HS_TOO_MANY_NODES;
    n = (int)(last - first) + 1;
    mu = fmin(1, 1.01 * mu + B->out);
    kap = exp((B->a.a1 < 0 ? B->a.a1 * log(cos(0.5 * d * up)) : 0) +
              (B->a.a2 < 0 ? B->a.a2 * log(cos(0.5 * d * down)) : 0));
    factor = exp(0.5 * d * d) * kap;
    /* [theory: law.shifted] */
    B->quad += 2 * exp(log_strip(B->a, d, up, down)) * mu / expm1(2 * HS_PI * d / h) + 2 * factor * B->edge;
    B->mass += factor * (mu + B->edge);
    shift_fill(B, r, d, h, first, n, P);
    for (j = B->total; j < B->total + n; j++) {
        double size = fabs(P->rr[j]) + fabs(P->ri[j]);
        B->c1 += B->slope[j];
        B->c2 += B->reach[j];
        if (size < tol) {
            B->dropped += size;
            continue;
        }
        P->Lr[kept] = P->Lr[j];
        P->Li[kept] = P->Li[j];
        P->rr[kept] = P->rr[j];
        P->ri[kept] = P->ri[j];
        kept++;
    }
    B->total = kept;
    return HS_OK;
}

static int laid(layer *B, hs_two_shift *P)
{
    int n = B->total;
    double unit = HS_U * (1 + 1e-9);
    for (; n % TILE; n++) P->Lr[n] = P->Li[n] = P->rr[n] = P->ri[n] = 0;
    P->n = n;
    P->c1 = unit * B->c1 + B->rounding * B->c2 * (1 + 1e-9); /* that of log M is one of e, of all nodes */
    P->c2 = unit * B->c2;
    P->quad = (B->quad + 2 * B->dropped + 2 * B->out * (B->mass + B->quad)) * (1 + 1e-6);
    return P->quad < HUGE_VAL ? HS_OK : HS_TOO_WIDE;
}

/* Paths of all branches at tilt z, log M known as log_m to `rounding` and, besides, to the relative error `out`; T:
 * the grids on the real line, of which mu and the ends are read, and in whose rows' second halves the nodes are put.
 * They hold phi to e^-target. */
int hs_two_shift_build(hs_two *T, double z, double log_m, double rounding, double out, double target, hs_two_shift *P)
{
    layer B = {T->pair,       hs_at_tilt(z), HALF, 0, log_m, rounding, out, target, hs_two_ends_upper(T, z, log_m),
               T->lm1 + HALF, T->lm2 + HALF, 0,    0, 0,     0,        0};
    int r, i, st;
    if (T->G.n > HALF) return HS_TOO_MANY_NODES;
    P->Lr = T->u1 + HALF;
    P->Li = T->u2 + HALF;
    P->rr = T->l1 + HALF;
    P->ri = T->l2 + HALF;
    for (r = 0; r < T->pair->branches; r++) {
        double mu = 0;
        for (i = T->first[r]; i < T->first[r + 1]; i++) mu += T->G.p[i];
        if ((st = lay(&B, r, T->G.g[T->first[r]], T->G.g[T->first[r] + T->nodes[r] - 1], mu, P))) return st;
    }
    return laid(&B, P);
}

/* The same for a plain step at exponent a, with its grid on the real line. */
int hs_grid_shift_build(hs_grid *G, double a, double log_m, double rounding, double out, double target, hs_two_shift *P)
{
    hs_pair one = plain(G->m, G->q);
    layer B = {&one,
               {a, 0},
               PLAIN_HALF,
               0,
               log_m,
               rounding,
               out,
               target,
               hs_grid_ends_upper(G, a, log_m),
               G->lw + PLAIN_HALF,
               G->lm + PLAIN_HALF,
               0,
               0,
               0,
               0,
               0};
    int st;
    if (G->n > PLAIN_HALF) return HS_TOO_MANY_NODES;
    P->Lr = G->u + PLAIN_HALF;
    P->Li = G->l + PLAIN_HALF;
    P->rr = G->inv + PLAIN_HALF;
    P->ri = G->g + PLAIN_HALF;
    st = lay(&B, 0, G->lo, G->hi, 1, P);
    return st ? st : laid(&B, P);
}

/* E_k, k = 0..15, of one node from E_1: at most four products E_{a+b} = E_a + E_b + E_a E_b deep. */
static inline void shift_babies(double x1, double y1, double *restrict c, double *restrict s)
{
    double x2 = 2 * x1 + (x1 * x1 - y1 * y1), y2 = 2 * (y1 + x1 * y1), x4 = 2 * x2 + (x2 * x2 - y2 * y2);
    double y4 = 2 * (y2 + x2 * y2), x8, y8;
    int i;
    c[0] = s[0] = 0;
    c[1] = x1;
    s[1] = y1;
    c[2] = x2;
    s[2] = y2;
    c[4] = x4;
    s[4] = y4;
    c[3] = x1 + x2 + (x1 * x2 - y1 * y2);
    s[3] = y1 + y2 + (x1 * y2 + y1 * x2);
    for (i = 1; i < 4; i++) {
        c[4 + i] = x4 + c[i] + (x4 * c[i] - y4 * s[i]);
        s[4 + i] = y4 + s[i] + (x4 * s[i] + y4 * c[i]);
    }
    x8 = 2 * x4 + (x4 * x4 - y4 * y4);
    y8 = 2 * (y4 + x4 * y4);
    for (i = 0; i < 8; i++) {
        c[8 + i] = x8 + c[i] + (x8 * c[i] - y8 * s[i]);
        s[8 + i] = y8 + s[i] + (x8 * s[i] + y8 * c[i]);
    }
}

/* Adds to out[0..31] the sums over a tile of A c - B s and A s + B c, for each of the sixteen k. */
#define PRODUCTS(V)                                                                                                    \
    int j, h;                                                                                                          \
    for (h = 0; h < 16; h += (int)(sizeof(V) / sizeof(double))) {                                                      \
        V p = {0}, t = {0};                                                                                            \
        for (j = 0; j < TILE; j++) {                                                                                   \
            V x = *(const V *)(c + 16 * j + h), y = *(const V *)(s + 16 * j + h);                                      \
            p += x * A[j] - y * B[j];                                                                                  \
            t += y * A[j] + x * B[j];                                                                                  \
        }                                                                                                              \
        *(V *)(out + h) += p;                                                                                          \
        *(V *)(out + 16 + h) += t;                                                                                     \
    }
typedef void (*product_sums)(const double *c, const double *s, const double *A, const double *B, double *out);
HS_TARGET("avx512f")
static void shift_by8(const double *c, const double *s, const double *A, const double *B, double *out){
    PRODUCTS(hs_v8)} HS_TARGET("avx2") static void shift_by4(const double *c, const double *s, const double *A,
                                                             const double *B, double *out)
{ PRODUCTS(hs_v4) }
static void shift_by2(const double *c, const double *s, const double *A, const double *B, double *out){PRODUCTS(hs_v2)}

/* Z_n = phi(n dy) - 1 = sum r_j E_n, E_n = e^{i n dy L_j} - 1, n = 0..N, and the slope of their rounding. Every n is
 *   16 g + k, and Z_n = Z_{16g} + Z_k + sum r E_{16g} E_k.
 * E_{16g} by the recurrence E <- E + E_16 (1 + E), restarted every 32 g; nodes in segments of SEGMENT such steps, so
 * that what is summed stays in the cache. scratch: 34 min(N/16 + 1, SEGMENT) doubles. x of the slope:
 * [theory: rounding.shifted]. */
HS_CLONES
    double hs_two_shift_nodes(const hs_two_shift *P, double dy, int64_t N, double *scratch, double *zr, double *zi)
{
    double bc[TILE * 16], bs[TILE * 16], A[TILE], B[TILE];
    double er[TILE], ei[TILE], sr[TILE], si[TILE];
    double z[32] = {0}, *single;
    product_sums products = HS_PICK(shift_by8, shift_by4, shift_by2);
    int j, j0, k, g;
    int all = (int)(N / 16), before = 0, giants;
    do {
        giants = all - before < SEGMENT ? all - before : SEGMENT;
        memset(scratch, 0, sizeof(double) * 34 * (size_t)giants);
        single = scratch + 32L * giants;
        for (j0 = 0; j0 < P->n; j0 += TILE) {
            const double *Lr = P->Lr + j0, *Li = P->Li + j0, *restrict rr = P->rr + j0, *restrict ri = P->ri + j0;
            hs_turns(TILE, dy, Lr, Li, er, ei);
            for (j = 0; j < TILE; j++) shift_babies(er[j], ei[j], bc + 16 * j, bs + 16 * j);
            if (!before) products(bc, bs, rr, ri, z);
            if (!giants) continue;
            hs_turns(TILE, 16 * dy, Lr, Li, sr, si);
            if (before) hs_turns(TILE, 16 * (before + 1) * dy, Lr, Li, er, ei);
            else
                for (j = 0; j < TILE; j++) {
                    er[j] = sr[j];
                    ei[j] = si[j];
                }
            for (g = 0; g < giants; g++) {
                double s0[8] = {0}, s1[8] = {0};
                if (g % 32 == 31)
                    hs_turns(TILE, 16 * (before + g + 1) * dy, Lr, Li, er, ei); /* node 16 (before + g + 1) */
                for (j = 0; j < TILE; j++) {
                    double x = er[j], w = ei[j];
                    A[j] = rr[j] * x - ri[j] * w;
                    B[j] = rr[j] * w + ri[j] * x;
                    er[j] = x + (sr[j] + (sr[j] * x - si[j] * w));
                    ei[j] = w + (si[j] + (sr[j] * w + si[j] * x));
                }
                for (j = 0; j < TILE; j += 8)
                    for (k = 0; k < 8; k++) {
                        s0[k] += A[j + k];
                        s1[k] += B[j + k];
                    }
                single[2 * g] += hs_lanes(s0);
                single[2 * g + 1] += hs_lanes(s1);
                products(bc, bs, A, B, scratch + 32 * g);
            }
        }
        for (g = 0; g < giants; g++)
            for (k = 0; k < 16 && 16L * (before + g + 1) + k <= N; k++) {
                int64_t n = 16L * (before + g + 1) + k;
                zr[n] = single[2 * g] + z[k] + scratch[32 * g + k];
                zi[n] = single[2 * g + 1] + z[16 + k] + scratch[32 * g + 16 + k];
            }
        before += giants;
    } while (before < all);
    for (k = 0; k < 16 && k <= N; k++) {
        zr[k] = z[k];
        zi[k] = z[16 + k];
    }
    return P->c1 + P->c2 * (80 + 50 + 8 * fmin(32, (double)all) + 20 + 6 * (TILE + 4 + (double)P->n / TILE));
}
