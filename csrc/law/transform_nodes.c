/* transform_nodes.c - phi of one step at all nodes of a line, from its inner grid (transform.c).
 *
 * Z_n = phi(n dy) - 1 = sum r_j E_n, E_n = e^{i n dy l_j} - 1 (which keeps the phase at 1e-9), for n = 0..N. Every n is
 * 17 g + k, |k| <= 8, and E_{a+b} = E_a + E_b + E_a E_b, so
 *   Z_n = Z_{17g} + Z_k + sum r E_{17g} E_k;
 * the real sums of products of parts serve k and -k alike: two products a node.
 * E_1 by its own series, E_2 .. E_8 by products, E_{17g} by the recurrence E <- E + E_17 (1 + E), restarted every 32 g.
 * Inner nodes come in tiles of 32, summed in order; nodes in segments of SEGMENT giant steps of 17, so that what is
 * summed stays in the cache.
 *
 * Error claim [theory: rounding.nodes]: |dZ_n| <= n dy u sum r|l| times 54 + 0.04 n_inner up to node 8, 173 + 0.17
 * n_inner up to node 16, 82 + 0.08 n_inner + min(32, N/17) beyond.
 *
 * What it does not do: phases beyond the range of hs_cis_m1; the caller keeps N dy |l| below it.
 */
#include "law/transform.h"

enum { TILE = 32, SEGMENT = 320 }; /* a multiple of the 32 giant steps between restarts */

/* Adds to out[0..31] the four sums A c, B s, A s, B c over j, for each of the eight k. */
#define PRODUCTS(V)                                                                                                    \
    int j, h;                                                                                                          \
    for (h = 0; h < 8; h += (int)(sizeof(V) / sizeof(double))) {                                                       \
        V p = {0}, q = {0}, t = {0}, w = {0};                                                                          \
        for (j = 0; j < n; j++) {                                                                                      \
            V x = *(const V *)(c + 8 * j + h), y = *(const V *)(s + 8 * j + h);                                        \
            p += x * A[j];                                                                                             \
            q += y * B[j];                                                                                             \
            t += y * A[j];                                                                                             \
            w += x * B[j];                                                                                             \
        }                                                                                                              \
        *(V *)(out + h) += p;                                                                                          \
        *(V *)(out + 8 + h) += q;                                                                                      \
        *(V *)(out + 16 + h) += t;                                                                                     \
        *(V *)(out + 24 + h) += w;                                                                                     \
    }
typedef void (*product_sums)(int n, const double *c, const double *s, const double *A, const double *B, double *out);
HS_TARGET("avx512f")
static void by8(int n, const double *c, const double *s, const double *A, const double *B, double *out){
    PRODUCTS(hs_v8)} HS_TARGET("avx2") static void by4(int n, const double *c, const double *s, const double *A,
                                                       const double *B, double *out)
{ PRODUCTS(hs_v4) }
static void by2(int n, const double *c, const double *s, const double *A, const double *B, double *out){PRODUCTS(hs_v2)}

/* E_1 .. E_8 of n inner nodes: bc + i bs, eight lanes each. */
HS_CLONES static void babies(int n, double dy, const double *l, double *bc, double *bs)
{
    double er[TILE], ei[TILE];
    int j, i;
    for (j = 0; j < n; j++) hs_cis_m1(dy * l[j], &er[j], &ei[j]);
    for (j = 0; j < n; j++) {
        double x1 = er[j], y1 = ei[j], x2 = 2 * x1 + (x1 * x1 - y1 * y1), y2 = 2 * (y1 + x1 * y1);
        double x4 = 2 * x2 + (x2 * x2 - y2 * y2), y4 = 2 * (y2 + x2 * y2), x3 = x1 + x2 + (x1 * x2 - y1 * y2),
               y3 = y1 + y2 + (x1 * y2 + y1 * x2);
        double *c = bc + 8 * j, *s = bs + 8 * j;
        c[0] = x1;
        c[1] = x2;
        c[2] = x3;
        c[3] = x4;
        s[0] = y1;
        s[1] = y2;
        s[2] = y3;
        s[3] = y4;
        for (i = 0; i < 4; i++) {
            c[4 + i] = x4 + c[i] + (x4 * c[i] - y4 * s[i]);
            s[4 + i] = y4 + s[i] + (x4 * s[i] + y4 * c[i]);
        }
    }
}

/* n nodes of the inner grid: losses l, weights r, and the baby steps' cosines and sines, eight a node. */
typedef struct {
    int n;
    const double *l, *r, *bc, *bs;
} tile;

/* The eighths of sum r E in lane[0..7] and lane[8..15], the products A + iB = r E, and E turned by one giant step. */
static inline void giant_step(const tile *T, const double *restrict sr, const double *restrict si, double *restrict er,
                              double *restrict ei, double *restrict A, double *restrict B, double *lane)
{
    double ta[8] = {0}, tb[8] = {0};
    int j, i;
    for (j = 0; j < T->n; j++) {
        double x = er[j], w = ei[j];
        A[j] = T->r[j] * x;
        B[j] = T->r[j] * w;
        er[j] = x + (sr[j] + (sr[j] * x - si[j] * w));
        ei[j] = w + (si[j] + (sr[j] * w + si[j] * x));
    }
    for (j = 0; j < T->n; j += 8)
        for (i = 0; i < 8; i++) {
            ta[i] += A[j + i];
            tb[i] += B[j + i];
        }
    for (i = 0; i < 8; i++) {
        lane[i] += ta[i];
        lane[8 + i] += tb[i];
    }
}

/* The sums over one tile, added to at[32 per giant step], single[16 per giant step] (r E_17g, eight lanes each of
 * its parts), for the `giants` steps that follow the first `before`, a multiple of 32. */
HS_CLONES static void giant_steps(const tile *T, double dy, int before, int giants, product_sums products, double *at,
                                  double *single)
{
    HS_ALIGNED double A[2][TILE], B[2][TILE], er[TILE], ei[TILE], sr[TILE], si[TILE];
    int j, g, t, n = T->n;
    for (j = 0; j < n; j++) {
        hs_cis_m1(17 * (dy * T->l[j]), &sr[j], &si[j]);
        er[j] = sr[j];
        ei[j] = si[j];
    }
    for (j = 0; before && j < n; j++) hs_cis_m1(17 * ((before + 1) * (dy * T->l[j])), &er[j], &ei[j]);
    for (g = 0; g < giants; g += 2) {
        int pair = g + 1 < giants ? 2 : 1;
        for (t = 0; t < pair; t++) {
            /* [theory: rounding.nodes] */
            if ((g + t) % 32 == 31) /* node 17 (before + g + t + 1) */
                for (j = 0; j < n; j++) hs_cis_m1(17 * ((before + g + t + 1) * (dy * T->l[j])), &er[j], &ei[j]);
            giant_step(T, sr, si, er, ei, A[t], B[t], single + 16 * (g + t));
        }
        products(n, T->bc, T->bs, A[0], B[0], at + 32 * g);
        if (pair == 2) products(n, T->bc, T->bs, A[1], B[1], at + 32 * (g + 1));
    }
}

/* The nodes around every giant step, from the sums; zc + i zs: Z_1 .. Z_8. */
static void put(const double *at, const double *single, int before, int giants, const double *zc, const double *zs,
                int64_t N, double *zr, double *zi)
{
    int g, i;
    for (g = 0; g < giants; g++) {
        const double *p = at + 32 * g;
        int64_t n0 = 17L * (before + g + 1);
        double x = hs_lanes(single + 16 * g), w = hs_lanes(single + 16 * g + 8);
        if (n0 <= N) {
            zr[n0] = x;
            zi[n0] = w;
        }
        for (i = 0; i < 8; i++) {
            double a = x + zc[i], b = w;
            if (n0 + i + 1 <= N) {
                zr[n0 + i + 1] = a + (p[i] - p[8 + i]);
                zi[n0 + i + 1] = b + zs[i] + (p[16 + i] + p[24 + i]);
            }
            if (n0 - i - 1 <= N) {
                zr[n0 - i - 1] = a + (p[i] + p[8 + i]);
                zi[n0 - i - 1] = b - zs[i] + (p[24 + i] - p[16 + i]);
            }
        }
    }
}

double hs_grid_nodes_units(const hs_grid *G, int64_t N, int64_t n)
{ return n < 9 ? 6 : n < 17 ? 126 + 0.05 * G->n : 36 + fmin(32, (double)N / 17); }

/* Uses er..ei1 of G as one scratch array: 48 doubles a giant step of a segment. */
HS_CLONES void hs_grid_nodes(hs_grid *G, double dy, int64_t N, double *zr, double *zi)
{
    HS_ALIGNED double bc[TILE * 8], bs[TILE * 8];
    double zc[8] = {0}, zs[8] = {0}, *at = G->er;
    product_sums products = HS_PICK(by8, by4, by2);
    int j, j0, i;
    int all = (int)((N + 8) / 17), before = 0;
    do {
        int giants = all - before < SEGMENT ? all - before : SEGMENT;
        double *single = at + 32L * giants;
        memset(at, 0, sizeof(double) * 48 * (size_t)giants);
        for (j0 = G->first; j0 < G->last; j0 += TILE) {
            const double *r = G->r + j0;
            int n = G->last - j0 < TILE ? G->last - j0 : TILE;
            const tile T = {n, G->l + j0, r, bc, bs};
            babies(n, dy, T.l, bc, bs);
            if (!before) {
                double tc[8] = {0}, ts[8] = {0};
                for (j = 0; j < n; j++)
                    for (i = 0; i < 8; i++) {
                        tc[i] += r[j] * bc[8 * j + i];
                        ts[i] += r[j] * bs[8 * j + i];
                    }
                for (i = 0; i < 8; i++) {
                    zc[i] += tc[i];
                    zs[i] += ts[i];
                }
            }
            giant_steps(&T, dy, before, giants, products, at, single);
        }
        put(at, single, before, giants, zc, zs, N, zr, zi);
        before += giants;
    } while (before < all);
    zr[0] = zi[0] = 0;
    for (i = 0; i < 8 && i < N; i++) {
        zr[i + 1] = zc[i];
        zi[i + 1] = zs[i];
    }
}
