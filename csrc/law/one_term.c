/* one_term.c - sums over nodes of the normal variable of one of the lognormal terms of an epoch of random allocation,
 * and over places where one or two of them are large: what what/allocation_density.py and allocation_jumps.py spend
 * their time on.
 *
 * Symbols. d = X - 1, X = exp(m g - m^2/2) at the nodes, w their weights; h2(z) = e^z - 1 - z; psi(g) = Phi((g-b)/eta),
 *   k = psi n/(mX) the density of d of rejected terms; u = 2^-53.
 *
 * Error claims, those of the functions of single arguments relative, in each function's head; a sum of n terms of one
 * sign adds n u of itself [theory: rounding.sums].
 *
 * What it does not do: where nodes lie, and what rules miss (the callers').
 */
#include "hs.h"
#include "special.h"

#define FAR_PHASE 5e5 /* beyond, a phase is not reduced */
enum { LANES = HS_TERM_LANES, BLOCK = 64 };

/* 1 - cos z and sin z - z for |z| < 1, within 8u and 14u: Taylor's polynomials up to z^20 and z^19, whose next terms
 * are below u/10 and whose terms fall by a factor of 12 or more. */
static inline void near_turned(double z, double *half, double *less)
{
    double q = z * z, c = 1.0 / 2432902008176640000.0, s = 1.0 / 121645100408832000.0;
    c = 1.0 / 6402373705728000.0 - q * c;
    c = 1.0 / 20922789888000.0 - q * c;
    c = 1.0 / 87178291200.0 - q * c;
    c = 1.0 / 479001600 - q * c;
    c = 1.0 / 3628800 - q * c;
    c = 1.0 / 40320 - q * c;
    c = 1.0 / 720 - q * c;
    c = 1.0 / 24 - q * c;
    c = 0.5 - q * c;
    s = 1.0 / 355687428096000.0 - q * s;
    s = 1.0 / 1307674368000.0 - q * s;
    s = 1.0 / 6227020800.0 - q * s;
    s = 1.0 / 39916800 - q * s;
    s = 1.0 / 362880 - q * s;
    s = 1.0 / 5040 - q * s;
    s = 1.0 / 120 - q * s;
    s = 1.0 / 6 - q * s;
    *half = q * c;
    *less = -(z * q * s);
}

/* The same for |z| <= FAR_PHASE; from 1 on each is within 14u of the sum of the moduli of both: 3u and the rounding of
 * a sum, where that is 0.6 and |z| - 1 at least. Beyond FAR_PHASE 1 and -z, off by 1 each, of which it returns 2. */
static inline double any_turned(double z, double *half, double *less)
{
    double size = z < 0 ? -z : z, lost = size < FAR_PHASE ? 0 : 2, co, si;
    hs_cis(lost > 0 ? 0 : z, &co, &si);
    near_turned(size < 1 ? z : 0, half, less);
    *half = lost > 0 ? 1 : size < 1 ? *half : 1 - co;
    *less = lost > 0 ? -z : size < 1 ? *less : si - z;
    return lost;
}

/* Adds a block of nodes at frequency y to the sums of turn_terms in every lane. */
HS_INLINE void turn_block(const double *restrict term, int64_t n, double y, int near, double (*restrict sums)[LANES])
{
    const double *d = term, *w = d + n, *off = w + n, *move = off + n;
    int k;
    for (k = 0; k < LANES; k++) {
        double z = -y * d[k], size = z < 0 ? -z : z, lost = 0;
        double half, less;
        if (near) near_turned(z, &half, &less);
        else lost = any_turned(z, &half, &less);
        sums[0][k] += w[k] * half;
        sums[1][k] += w[k] * less;
        sums[2][k] += off[k] * (half + (less < 0 ? -less : less)) + lost * w[k];
        sums[3][k] += move[k] * (size < 2 ? size : 2);
    }
}

/* Rows of n: d, weights of values, of errors, of moves. out: rows of n_y, at frequency y the sums of 1 - cos yd and of
 * yd - sin yd by the first weights, of their moduli by the second, of min(|yd|, 2) by the third. A phase beyond
 * FAR_PHASE counts as 1 and yd, with errors of 1 each [theory: allocation.line]. */
HS_CLONES static void turn_terms(int64_t n, const double *restrict term, int64_t n_y, const double *restrict y,
                                 double *restrict out)
{
    int64_t i, j;
    int k, l;
    for (j = 0; j < n_y; j++) {
        double sums[4][LANES] = {{0}};
        for (i = 0; i < n; i += LANES) {
            double most = 0;
            for (k = 0; k < LANES; k++) most = fabs(term[i + k]) > most ? fabs(term[i + k]) : most;
            if (most * fabs(y[j]) < 0.999) turn_block(term + i, n, y[j], 1, sums);
            else turn_block(term + i, n, y[j], 0, sums);
        }
        for (l = 0; l < 4; l++)
            for (out[l * n_y + j] = 0, k = 0; k < LANES; k++) out[l * n_y + j] += sums[l][k];
    }
}

/* See turn_terms. */
int hs_term_turned(int64_t n, const double *term, int64_t n_y, const double *y, double *out)
{
    if (!(n > 0 && n % LANES == 0 && n_y > 0)) return HS_BAD_ARGUMENT;
    turn_terms(n, term, n_y, y, out);
    return HS_OK;
}

/* h2 within 24u, for z <= 709: terms up to z^15/15! below 1/2, where a sum is within 5u of itself; beyond, what is
 * within 5u cancels to no less than two ninths. */
static inline double h2(double z, double *m1)
{
    double size = z < 0 ? -z : z, y = size < 0.5 ? z : 0, p = 1.0 / 1307674368000.0;
    p = p * y + 1.0 / 87178291200.0;
    p = p * y + 1.0 / 6227020800.0;
    p = p * y + 1.0 / 479001600;
    p = p * y + 1.0 / 39916800;
    p = p * y + 1.0 / 3628800;
    p = p * y + 1.0 / 362880;
    p = p * y + 1.0 / 40320;
    p = p * y + 1.0 / 5040;
    p = p * y + 1.0 / 720;
    p = p * y + 1.0 / 120;
    p = p * y + 1.0 / 24;
    p = p * y + 1.0 / 6;
    p = p * y + 0.5;
    *m1 = hs_expm1(z);
    return size < 0.5 ? y * y * p : *m1 - z;
}

/* The sums over nodes of w h2(rd), w d (e^{rd} - 1), w |h2| size + moved |r (e^{rd} - 1)|, w e^{rho d}. Rows of n:
 * d, w, w times the relative error of a term, w times what d is off by [theory: allocation.cut]. */
HS_CLONES static void grow_terms(int64_t n, const double *restrict term, double r, double rho, double *restrict out)
{
    const double *d = term, *w = d + n, *off = w + n, *move = off + n;
    const double r1 = r < 0 ? -r : r;
    double a[LANES] = {0}, b[LANES] = {0}, e[LANES] = {0}, f[LANES] = {0};
    int64_t i;
    int k;
    for (i = 0; i < n; i += LANES)
        for (k = 0; k < LANES; k++) {
            double m1, x = h2(r * d[i + k], &m1);
            a[k] += w[i + k] * x;
            b[k] += w[i + k] * d[i + k] * m1;
            e[k] += off[i + k] * x + r1 * move[i + k] * (m1 < 0 ? -m1 : m1);
            f[k] += w[i + k] * hs_exp(rho * d[i + k]);
        }
    for (k = 0; k < LANES; k++) {
        out[0] += a[k];
        out[1] += b[k];
        out[2] += e[k];
        out[3] += f[k];
    }
}

int hs_term_grown(int64_t n, const double *term, double r, double rho, double *out)
{
    if (!(n > 0 && n % LANES == 0)) return HS_BAD_ARGUMENT;
    out[0] = out[1] = out[2] = out[3] = 0;
    grow_terms(n, term, r, rho, out);
    return HS_OK;
}

/* Adds a block of nodes at s = sr + i si to the sums of transform_terms in every lane. */
HS_INLINE void transform_block(const double *restrict term, int64_t n, int whole, double sr, double si,
                               double (*restrict sums)[LANES])
{
    const double *dr = term, *di = dr + n, *wr = di + n, *wi = wr + n;
    const double *off = wi + n, *move = off + n;
    const double mod = (sr < 0 ? -sr : sr) + (si < 0 ? -si : si);
    int k;
    for (k = 0; k < LANES; k++) {
        double x = -(sr * dr[k] - si * di[k]), y = -(sr * di[k] + si * dr[k]), m1;
        double half, less, lost, real = h2(x, &m1);
        double E = whole ? hs_exp(x) : 1 + m1, y1 = y < 0 ? -y : y;
        double turned, re, im, size;
        lost = any_turned(y, &half, &less);
        turned = half + (less < 0 ? -less : less);
        re = (whole ? E : real) - E * half;
        im = E * less + y * (whole ? E : m1);
        m1 = m1 < 0 ? -m1 : m1;
        size = whole ? E * (1 + turned + y1) : real + (1 + E) * turned + y1 * m1;
        sums[0][k] += wr[k] * re - wi[k] * im;
        sums[1][k] += wr[k] * im + wi[k] * re;
        y1 = y1 < 2 ? y1 : 2;
        sums[2][k] += off[k] * size + mod * move[k] * (whole ? E : m1 + E * y1) +
                      lost * E * ((wr[k] < 0 ? -wr[k] : wr[k]) + (wi[k] < 0 ? -wi[k] : wi[k]));
    }
}

/* Rows of n: parts of d, parts of weights, their moduli times the relative error of a term, times what d is off by.
 * out: rows of n_s, parts of the sum of w h2(-sd) at s, of w e^{-sd} where `whole`, and a bound of its error. With
 * z = -sd = x + iy, the real part of h2 is h2(x) - e^x (1 - cos y), its imaginary part e^x (sin y - y) + y (e^x - 1):
 * e^x = 1 + m1 is within 5u|m1| + u, so that both together are within 48u of h2(x) + (1 + e^x)(1 - cos y + |sin y - y|)
 * + |y m1|; those of e^z, with e^x by itself, within 48u of e^x (1 + 1 - cos y + |sin y - y| + |y|), 0 below e^-708
 * [theory: allocation.epoch]. */
HS_CLONES static void transform_terms(int64_t n, const double *restrict term, int whole, int64_t n_s,
                                      const double *restrict s, double *restrict out)
{
    int64_t i, j;
    int k, l;
    for (j = 0; j < n_s; j++) {
        double sums[3][LANES] = {{0}}, sr = s[j], si = s[n_s + j];
        if (whole)
            for (i = 0; i < n; i += LANES) transform_block(term + i, n, 1, sr, si, sums);
        else
            for (i = 0; i < n; i += LANES) transform_block(term + i, n, 0, sr, si, sums);
        for (l = 0; l < 3; l++)
            for (out[l * n_s + j] = 0, k = 0; k < LANES; k++) out[l * n_s + j] += sums[l][k];
    }
}

/* See transform_terms. */
int hs_term_transform(int64_t n, const double *term, int whole, int64_t n_s, const double *s, double *out)
{
    if (!(n > 0 && n % LANES == 0 && n_s > 0)) return HS_BAD_ARGUMENT;
    transform_terms(n, term, whole, n_s, s, out);
    return HS_OK;
}

/* Up to BLOCK of k at d = x - y but for psi, with psi's argument and in units u what k is off by in parts of itself:
 * d by 4(|x| + |y| + 2X); log X, and what g is made of, by 3u more each; n and psi by their arguments; 60u for
 * functions. k = 0 where psi's argument is below -last. */
HS_CLONES static void rejected_at(const hs_rejected *R, double x, const double *restrict y, int64_t n,
                                  double *restrict k, double *restrict at, double *restrict off)
{
    const double m = R->m, v = m * m, b = R->b, eta = R->eta;
    const double scale = HS_NORMAL_PEAK / m, x1 = x < 0 ? -x : x, last = R->last;
    const double by_m = 1 / m, by_eta = 1 / eta;
    int64_t i;
    for (i = 0; i < n; i++) {
        double X = x - y[i] + 1, y1 = y[i] < 0 ? -y[i] : y[i], log, size;
        double g, g1, z, far;
        double part, moved, moved_g;
        int seen = X > 1e-3;
        X = seen ? X : 1e-3;
        log = hs_log(X);
        size = log < 0 ? -log : log;
        g = (log + 0.5 * v) / m;
        g1 = g < 0 ? -g : g;
        z = (g - b) / eta;
        far = z < 0 ? -z : 0;
        part = 1 / X;
        moved = 4 * (x1 + y1 + 2 * X) * part;
        moved_g = (moved + 3 * (size + v)) * by_m + 2 * g1;
        off[i] = moved + moved_g * (g1 + (far + 2) * by_eta) + 2 * g * g + 6 * far * far + 60;
        at[i] = z;
        k[i] = seen && z > -last ? hs_exp(-0.5 * g * g) * (scale * part) : 0;
    }
}

/* Rows: y, which rises, and two weights. out: rows of n_x, sums over y of k(x-y) by the first weights, of k(x-y) by the
 * second, and of k(x-y) times what it is off by in parts of itself, in units u, by the moduli of the first. */
int hs_term_jumps(const hs_rejected *R, int64_t n_x, const double *x, int64_t n_y, const double *y, double *out)
{
    const double *p = y + n_y, *off = p + n_y;
    double k[BLOCK], at[BLOCK], rough[BLOCK];
    int64_t i, j, l;
    if (!(R->m > 0 && R->eta > 0 && n_x > 0 && n_y > 0)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n_x; i++) {
        double sum = 0, lost = 0, moved = 0;
        for (j = 0; j < n_y; j += BLOCK) {
            int64_t n = n_y - j < BLOCK ? n_y - j : BLOCK;
            rejected_at(R, x[i], y + j, n, k, at, rough);
            if (!(at[0] > -R->last)) break; /* nor is a later one */
            for (l = 0; l < n; l++) {
                if (k[l] > 0 && at[l] < 8.5) k[l] *= 0.5 * erfc(-HS_SQRT_HALF * at[l]);
                sum += k[l] * p[j + l];
                lost += k[l] * off[j + l];
                moved += k[l] * rough[l] * fabs(p[j + l]);
            }
        }
        out[i] = sum;
        out[n_x + i] = lost;
        out[2 * n_x + i] = moved;
    }
    return HS_OK;
}

/* k without psi at the larger of d and x - end of a shell, from 0 on. */
HS_CLONES static void later_terms(double m, double scale, double d, double x, int64_t n, const double *restrict end,
                                  double *restrict k)
{
    int64_t l;
    for (l = 0; l < n; l++) {
        double least = x - end[l], w = 1 + (d > least ? d : least), log = hs_log(w > 1 ? w : 1);
        double g = log / m + 0.5 * m;
        k[l] = hs_exp(-0.5 * g * g - log) * scale;
    }
}

/* At every place x the sum over cells and shells of mass times the chance of a shell times the least of `peak` and of k
 * without psi at the larger of the cell's d and x - end of the cell - end of the shell, from 0 on [theory:
 * allocation.jump]; within 1e-12 of itself. Rows: d, ends, masses of cells; ends, chances of shells. */
int hs_term_two(double m, double peak, int64_t n_x, const double *x, int64_t n, const double *cell, int64_t shells,
                const double *shell, double *out)
{
    const double scale = HS_NORMAL_PEAK / m;
    int64_t i, j, l;
    if (!(m > 0 && n_x > 0 && n > 0 && shells > 0 && shells <= BLOCK)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n_x; i++) {
        for (out[i] = 0, j = 0; j < n; j++) {
            double sum = 0, room[BLOCK];
            later_terms(m, scale, cell[j], x[i] - cell[n + j], shells, shell, room);
            for (l = 0; l < shells; l++) sum += fmin(room[l], peak) * shell[shells + l];
            out[i] += cell[2 * n + j] * sum;
        }
    }
    return HS_OK;
}
