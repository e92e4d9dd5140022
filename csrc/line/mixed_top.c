/* mixed_top.c - delta(eps) and eps(delta) of one Laplace step k times, sampled or not, next to its largest loss.
 *
 * Symbols. l the largest loss of a step, an atom of mass p, and l' the loss of the other atom; s = kl - eps; f the
 *   density of a step's loss between its atoms, G_lo <= f <= G_hi in [l - s, l].
 *
 * Formula [theory: law.top]. For s <= |l - l'| and R(G) = p^k sum_{j>=2} C(k,j) (G/p)^j s^{j+1}/(j+1)!, delta(eps) is
 *   that of the outcomes with no loss or one off the atoms (hs_laplace_few) and between (1 - s/2) R(G_lo) and R(G_hi)
 *   more. Nothing is subtracted: no line, whose tilt would be about 1/s.
 *
 * Error claim. That of hs_laplace_few and those two ends.
 *
 * What it does not do: runs of several laws.
 */
#include "line/mixed.h"

typedef struct {
    const hs_law *w;
    double l, other, log_p; /* the largest loss, the other atom's, log of the mass at the largest */
    double f, bend;         /* the density at the largest loss, and the slope of its log away from there */
    double log_scale;
} near_top;

static const double MOST = 30; /* k f s/p beyond which nothing is gained */

static int top_read(const hs_mixed *A, near_top *T)
{
    const hs_law *w = (const hs_law *)A->laws;
    double l0, l1, u;
    if (A->b != 1 || A->step != 0 || w->k > 1e8) return 0;
    if (w->kind != HS_LAW_LAPLACE && (w->kind != HS_LAW_SUBLAPLACE || w->atoms == 0)) return 0;
    l0 = w->q < 1 ? log1p(w->q * expm1(-w->m)) : -w->m;
    l1 = w->q < 1 ? log1p(w->q * expm1(w->m)) : w->m;
    u = w->add ? -w->m : w->m; /* the base loss there */
    T->w = w;
    T->l = w->add ? -l0 : l1;
    T->other = w->add ? -l1 : l0;
    T->log_p = log(0.5) + (w->add ? 0 : l1 - w->m);
    T->f = exp((w->add ? l0 : 2 * l1) - 1.5 * u - 0.5 * w->m) / (4 * w->q);
    T->bend = 1.5 * exp((w->add ? l0 : l1) - u) / w->q;
    T->bend = w->add ? 1 - T->bend : T->bend - 2;
    return 1;
}

/* k f/p at its largest in [l - s, l]: log f is convex, its ends are its largest values. */
static double rate(const near_top *T, double s, double *G)
{
    const hs_law *w = T->w;
    double at = T->l - s, l = w->add ? -at : at, u = w->q < 1 ? log1p(expm1(l) / w->q) : l;
    double end = exp((w->add ? 1 : 2) * l - 1.5 * u - 0.5 * w->m) / (4 * w->q);
    *G = fmax(T->f, end) * (1 + 1e-9);
    return w->k * *G * exp(-T->log_p);
}

/* R(G) relative to e^log_scale, from above where `up`. */
static double several(const near_top *T, double s, double G, int up)
{
    double k = T->w->k, x = G * s * exp(-T->log_p), term = k * (k - 1) / 12 * x * x * s, sum = 0;
    double j;
    term *= exp(fmin(700, k * T->log_p - T->log_scale));
    for (j = 2; j <= k && j < 400; j++) {
        double next = term * (k - j) / ((j + 1) * (j + 2)) * x;
        sum += term;
        if (next < 0.5 * term && next < 1e-17 * sum) break;
        term = next;
    }
    if (j >= 400) return up ? HUGE_VAL : 0;
    return up ? (sum + term) * (1 + 1e-9) : sum * fmax(0, 1 - 0.5 * s) * (1 - 1e-9);
}

static void top_at(const void *self, double eps, hs_value *v)
{
    const near_top *T = (const near_top *)self;
    double k = T->w->k, most, least;
    hs_apart few;
    double U = fabs(expm1(T->w->add ? -T->l : T->l)), far, G;
    double s = fma(k, T->l, -eps),
           err_s = HS_U * (k * (4 * fabs(T->l) + 4 * U * exp(T->w->add ? T->l : -T->l)) + fabs(eps));
    far = fmax(0, s + err_s);
    memset(v, 0, sizeof *v);
    v->log_scale = T->log_scale;
    v->upper = HUGE_VAL;
    if (!(far <= 0.9 * (T->l - T->other)) || !(rate(T, far, &G) * far <= 2 * MOST)) return;
    hs_laplace_few(T->w, NULL, eps, v->log_scale, &few);
    most = several(T, far, G, 1); /* [theory: law.top] */
    s = fmax(0, s - err_s);
    least = several(T, s, T->f * fmin(1, exp(s * T->bend)) * (1 - 1e-9), 0);
    v->value = few.value + 0.5 * (most + least);
    v->slope = few.slope + (s > 0 ? 3 * least / s : 0);
    v->rounding = few.err;
    v->truncation = 0.5 * (most - least);
    v->lower = few.value + least - few.err;
    v->upper = few.value + most + few.err;
}

/* delta(eps): HS_OK, HS_LOOSE, or HS_NO_BRACKET where eps does not lie near the largest loss. */
int hs_mixed_top_delta(const hs_mixed *A, double eps, hs_point *out)
{
    near_top T;
    hs_value v;
    double s, G;
    if (!top_read(A, &T)) return HS_NO_BRACKET;
    s = T.w->k * T.l - eps;
    if (!(s > 0 && s < 0.9 * (T.l - T.other) && rate(&T, s, &G) * s <= MOST)) return HS_NO_BRACKET;
    T.log_scale = T.w->k * T.log_p + log(s);
    top_at(&T, eps, &v);
    if (!(v.lower > 0)) return HS_NO_BRACKET;
    hs_value_point(&v, 0, out);
    return v.upper - v.lower <= 2 * A->rtol * v.value ? HS_OK : HS_LOOSE;
}

/* eps(delta), likewise. delta is at least about p^k s: the start is left of the root. */
int hs_mixed_top_eps(const hs_mixed *A, double log_delta, hs_crossing *out)
{
    near_top T;
    hs_value v;
    hs_curve curve = {.at = top_at, .self = &T, .log_delta = log_delta, .reach = HUGE_VAL};
    double s, top, G;
    if (!top_read(A, &T)) return HS_NO_BRACKET;
    top = T.w->k * T.l;
    s = exp(log_delta - T.w->k * T.log_p);
    if (!(s < 0.9 * (T.l - T.other))) return HS_NO_BRACKET;
    if (rate(&T, s, &G) * s > MOST) return HS_NO_BRACKET;
    T.log_scale = log_delta;
    curve.start = top - s;
    curve.step = curve.bend = HUGE_VAL;
    if (s < 1e-13 * top || hs_root_find(&curve, out, &v)) { /* s is lost in the rounding of eps */
        memset(&v, 0, sizeof v);
        v.value = v.lower = v.upper = 1;
        v.slope = HUGE_VAL;
        out->estimate = curve.start;
        if (hs_root_bracket(&curve, out->estimate, 0, &v, &out->lower, &out->upper) != 3) return HS_NO_BRACKET;
    }
    top_at(&T, out->estimate, &v);
    hs_value_point(&v, 0, &out->delta);
    return out->upper - out->lower <= fmax(A->rtol * s, 1e-12 * top) ? HS_OK : HS_LOOSE;
}
