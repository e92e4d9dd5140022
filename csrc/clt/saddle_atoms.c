/* saddle_atoms.c - the sums of saddle_step.c for a step of finitely many losses: no quadrature, only rounding.
 *
 * Symbols. l_j, n_j: losses and their probabilities under the numerator, d_inf that of an infinite loss; M(t) = sum n
 *   e^{tl}; p_j = n_j e^{t l_j}/M; c: the computed mean, x = l - c. rel, edge: errors of n_j and l_j as given. u =
 *   2^-53.
 *
 * Formula. M = 1 - d_inf + sum n_j (e^{t l_j} - 1), for the n_j and d_inf sum to 1: where losses are small the ones
 *   cancel exactly, and so does their rounding. Beyond t l = 30 the sum is scaled by its largest term instead.
 *
 * Error claims, first order in u, n atoms [theory: saddle.atoms].
 *   K     relative error of M: sum n |e^{tl} - 1| (rel + 4u + n u) + n e^{tl} t (edge + u|l|) + d_inf rel, over M;
 *         scaled: every term carries rel + t (edge + 2u|l|) + u (8 + |top|).
 *   K'    |E x| as computed, plus sum p (e |x| + edge + 2u (|l| + |c|)), e the relative error of a weight; K'' and
 *         E|x|^3 likewise, with x changed by the error of c.
 */
#include "clt/saddlepoint.h"

hs_cgf hs_atoms_cgf(const hs_atoms *A, int i, double t)
{
    const double *l = A->loss + A->first[i], *n = A->num + A->first[i];
    int64_t j, count = A->first[i + 1] - A->first[i];
    double top = 0, s0 = 0, s1 = 0;
    double s2 = 0, scale;
    hs_cgf out;
    for (j = 0; j < count; j++) top = fmax(top, t * l[j]);
    if (top < 30) top = 0;
    for (j = 0; j < count; j++) {
        double e = n[j] * hs_exp(t * l[j] - top);
        s0 += top > 0 ? e : n[j] * expm1(t * l[j]);
        s1 += e * l[j];
        s2 += e * l[j] * l[j];
    }
    out.K = top > 0 ? top + log(s0) : log1p(s0 - A->inf[i]);
    scale = top > 0 ? s0 : 1 + s0 - A->inf[i];
    out.K1 = s1 / scale;
    out.K2 = s2 / scale - out.K1 * out.K1;
    return out;
}

typedef struct {
    double s[7], abs1, abs3; /* sums of p x^j, p |x|, p |x|^3 */
    double e0, e1, e2, e3;   /* what the errors of losses and masses move them by */
    double top, size, shift; /* the largest exponent (at least 0); sums for the error of K */
} atom_sums;

/* Sums over the atoms of step i, weighted by e^{t l - K}, x = l - c. */
static void sum_atoms(const hs_atoms *A, int i, double t, double K, double c, atom_sums *S)
{
    const double *l = A->loss + A->first[i], *n = A->num + A->first[i];
    double rel = A->rel[i], edge = A->edge[i];
    int64_t j, count = A->first[i + 1] - A->first[i];
    memset(S, 0, sizeof *S);
    for (j = 0; j < count; j++) S->top = fmax(S->top, t * l[j]);
    for (j = 0; j < count; j++) {
        double p = n[j] * hs_exp(t * l[j] - K), x = l[j] - c, y = fabs(x), x2 = x * x;
        double dx = edge + 2 * HS_U * (fabs(l[j]) + fabs(c)), pw = p;
        double e = rel + t * (edge + 2 * HS_U * fabs(l[j])) + HS_U * (8 + fabs(K));
        int k;
        for (k = 0; k < 7; k++, pw *= x) S->s[k] += pw;
        S->abs1 += p * y;
        S->abs3 += p * x2 * y;
        S->e0 += p * e;
        S->e1 += p * (e * y + dx);
        S->e2 += p * (e * x2 + 2 * y * dx + dx * dx);
        S->e3 += p * (e * x2 * y + 3 * x2 * dx + 3 * y * dx * dx + dx * dx * dx);
        S->size += S->top < 30 ? n[j] * fabs(expm1(t * l[j])) : p;
        S->shift += p * t * (edge + HS_U * fabs(l[j]));
    }
}

int hs_atoms_tilted(const hs_atoms *A, int i, double t, hs_tilted *T)
{
    int64_t count = A->first[i + 1] - A->first[i];
    double rel = A->rel[i], nu = (double)count * HS_U, K;
    double M, r;
    atom_sums S;
    hs_cgf g;
    if (count < 1 || !(rel < 1e-6)) return HS_BAD_ARGUMENT;
    g = hs_atoms_cgf(A, i, t);
    K = g.K;
    sum_atoms(A, i, t, K, g.K1, &S);
    M = exp(K);
    T->K = K;
    T->quad = 0;
    /* [theory: saddle.atoms] */
    if (S.top < 30) T->K_err = (S.size * (rel + 4 * HS_U + nu) + A->inf[i] * rel) / M + S.shift + HS_U * 4 * fabs(K);
    else T->K_err = S.size * (rel + nu + HS_U * (10 + S.top)) + S.shift * 2 + HS_U * 4 * fabs(K);
    T->K_err = T->K_err * (1 + 1e-6) + 2 * HS_U; /* the masses sum to 1 - d_inf to within 2u */
    if (!(T->K_err < 1e-3)) return HS_OUT_OF_RANGE;
    M = 1 + 2 * T->K_err; /* the weights are off by that factor together */
    T->mean_err = (fabs(S.s[1]) + S.e1 + nu * S.abs1) * M * (1 + 1e-6);
    T->var_err = (S.e2 + (nu + 4 * HS_U) * S.s[2] + S.s[2] * (S.e0 + nu) + T->mean_err * T->mean_err) * M * (1 + 1e-6);
    r = cbrt((S.abs3 + S.e3 + (nu + 4 * HS_U) * S.abs3) * M) + T->mean_err;
    T->r3 = S.abs3 / S.s[0];
    T->r3_upper = r * r * r * (1 + 1e-6);
    T->r4_upper = T->side_upper = 0;
    hs_tilted_cumulants(T, g.K1, S.s);
    return HS_OK;
}

/* K = log E[e^{tY}; Y finite] of a run of such steps at tilt t > 0 and a bound of its error. */
int hs_saddle_atoms_cgf(int b, const hs_atoms *A, const double *k, double t, double *K, double *err)
{
    hs_tilted one;
    double sum = 0, e = 0;
    int i, st;
    if (b < 1 || !(t > 0)) return HS_BAD_ARGUMENT;
    for (*K = 0, i = 0; i < b; i++) {
        if ((st = hs_atoms_tilted(A, i, t, &one))) return st;
        *K += k[i] * one.K;
        sum += k[i] * fabs(one.K);
        e += k[i] * one.K_err;
    }
    *err = e * (1 + 1e-9) + (b + 4) * HS_U * sum;
    return HS_OK;
}
