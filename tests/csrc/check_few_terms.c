/* check_few_terms.c - what hs_laplace_few (laplace.c) claims of the rounding of delta of the outcomes with no or one
 * loss off the atoms, against the same sums in long double; what single.c takes for missed by a set of outcomes that
 * ends beside the best one, against integrals between both. */
#define hs_single_delta own_single_delta
#include "curve/single.c"
#include "law/law.h"
#include <float.h>
#include "terms.h"

/* log of the binomial weight C(n,i) p^i r^(n-i). */
static long double weight_log(long double n, long double i, long double p, long double r)
{ return lgammal(n + 1) - lgammal(i + 1) - lgammal(n - i + 1) + i * logl(p) + (n - i) * logl(r); }

/* E (1 - e^{e-L})_+ of the losses of one step that are not atoms: outcomes 0 < x < m of density e^{-x}/2 under den. */
static long double smooth(const hs_law *w, long double e)
{
    long double m = w->m, q = w->q, E = expl(e);
    long double x, rest;
    if (w->add) { /* num has that density: e^{-x}/2 (1 - E ((1-q) + q e^{2x-m})) from 0 to x */
        rest = 1 - E * (1 - q);
        x = rest > 0 ? fminl(m, fmaxl(0, 0.5L * (m + logl(rest / (E * q))))) : 0;
        return 0.5L * (rest * -expm1l(-x) - E * q * expl(-m) * expm1l(x));
    }
    rest = 1 - q - E; /* e^{-x}/2 (rest + q e^{2x-m}) from x to m */
    x = rest < 0 ? fminl(m, fmaxl(0, 0.5L * (m + logl(-rest / q)))) : 0;
    return 0.5L * expl(-x) * (rest * -expm1l(x - m) + q * expl(2 * x - m) * expm1l(m - x));
}

/* Two atoms a few times, or a few atoms once, known within what their logarithms are rounded by and some more. */
static void any_beside(hs_law *w)
{
    static double loss[8], log_mass[8], off[8], moved[8];
    double sum = 0;
    int i;
    memset(w, 0, sizeof *w);
    w->kind = HS_LAW_POINTS;
    w->n = uniform() < 0.5 ? 2 : 1 + (int64_t)(8 * uniform());
    w->k = w->n == 2 ? floor(log_between(1, 64)) : 1;
    w->l = loss;
    w->lp = log_mass;
    w->dl = moved;
    w->dp = off;
    for (i = 0; i < w->n; i++) {
        loss[i] = between(-1, 1) * log_between(1e-3, 3);
        sum += log_mass[i] = log_between(1e-6, 1);
        moved[i] = uniform() < 0.5 ? 0 : log_between(1e-16, 1e-12);
    }
    for (i = 0; i < w->n; i++) {
        log_mass[i] = log(log_mass[i] / sum);
        off[i] = HS_U * (2 + 2 * fabs(log_mass[i])); /* of their sum, which is 1 */
    }
}

/* The same sums in long double, at eps and relative to e^log_scale; losses of the law beside as far off as they may be,
 * to one side. */
static long double sum_of_few(const hs_law *w, const hs_law *beside, double eps, double side)
{
    long double m = w->m, q = w->q, k = w->k;
    long double l0 = log1pl(q * expm1l(-m)), l1 = log1pl(q * expm1l(m)), sum = 0;
    long double low = 0.5L * expl(w->add ? 0 : l0), high = 0.5L * expl(w->add ? -m : l1 - m), i, x;
    int j, last = !beside ? 0 : beside->k == 1 ? (int)beside->n - 1 : (int)beside->k;
    for (j = 0; j <= last; j++) {
        long double at = eps, weight = 1, part = 0;
        if (beside && beside->k == 1) {
            at -= beside->l[j] + side * (long double)beside->dl[j];
            weight = expl(beside->lp[j]);
        } else if (beside) {
            long double n = beside->k, first = beside->l[0] + side * (long double)beside->dl[0];
            at -= j * (beside->l[1] + side * (long double)beside->dl[1]) + (n - j) * first;
            weight = expl(weight_log(n, j, expl(beside->lp[1]), expl(beside->lp[0])));
        }
        for (i = 0; i <= k; i++) {
            x = (w->add ? -1 : 1) * (i * l1 + (k - i) * l0);
            if (x > at) part += expl(weight_log(k, i, high, low)) * -expm1l(at - x);
            if (i == k) break;
            x = (w->add ? -1 : 1) * (i * l1 + (k - 1 - i) * l0);
            part += k * expl(weight_log(k - 1, i, high, low)) * smooth(w, (double)(at - x));
        }
        sum += weight * part;
    }
    return sum;
}

static void few_losses(void)
{
    hs_law w, other, *beside = uniform() < 0.5 ? NULL : &other;
    hs_apart few;
    double eps, log_scale;
    long double m, q, k, l0;
    long double l1, low, high, sum;
    long double sd, mean, x;
    memset(&w, 0, sizeof w);
    w.kind = HS_LAW_SUBLAPLACE;
    w.add = uniform() < 0.5;
    w.m = log_between(1e-3, 3);
    w.q = uniform() < 0.2 ? 1 : log_between(0.01, 1);
    w.k = floor(log_between(1, beside ? 100 : 3000));
    m = w.m;
    q = w.q;
    k = w.k;
    l0 = log1pl(q * expm1l(-m));
    l1 = log1pl(q * expm1l(m));
    low = 0.5L * expl(w.add ? 0 : l0); /* num's masses of the two atoms */
    high = 0.5L * expl(w.add ? -m : l1 - m);
    x = high / (low + high);
    mean = k * (x * l1 + (1 - x) * l0);
    sd = sqrtl(k * x * (1 - x)) * (l1 - l0);
    eps = (double)((w.add ? -mean : mean) + sd * (long double)between(-1, 20));
    log_scale = -between(0, 3);
    if (beside) any_beside(beside);
    hs_laplace_few(&w, beside, eps, log_scale, &few);
    if (!(few.value > 1e-280)) return;
    sum = sum_of_few(&w, beside, eps, (double)(int)(3 * uniform()) - 1) * expl(-(long double)log_scale);
    term(beside ? "few-beside" : "few-rounding", (double)(fabsl(few.value - sum) / sum), few.err / (double)sum, 1e-16);
}

/* num - e^y den of a branch between two places, over its weight, in absolute value. */
static double between_places(const hs_pair *pair, double from, double to, double y, const double *x20,
                             const double *w20)
{
    long double up = pair->up[0], down = pair->down[0], q = pair->q[0], sum = 0;
    int i, n = 1 + (int)(fabs(to - from) / 0.1), j;
    for (i = 0; i < n; i++)
        for (j = 0; j < 20; j++) {
            long double half = 0.5L * ((long double)to - (long double)from) / n, x = from + half * (2 * i + 1 + x20[j]);
            long double num = q * expm1l(up * x - 0.5L * up * up), den = q * expm1l(-down * x - 0.5L * down * down);
            sum += half * w20[j] * (num - den - expm1l(y) * (1 + den)) * expl(-0.5L * x * x - HS_LOG_SQRT_2PI);
        }
    return fabs((double)sum);
}

/* A set of outcomes that ends a little or much off the place of the loss y [theory: small.one-pair]. */
static void missed_outcomes(double *work, const hs_rule *rule)
{
    hs_pair pair = {.branches = 1, .w = {1}, .q = {log_between(1e-4, 0.5)}, .up = {between(0.3, 5)}};
    double at = between(-6, 6), g = at + (uniform() < 0.5 ? -1 : 1) * log_between(1e-7, 3), y;
    double edge, off, missed;
    hs_bulk J;
    masses above, right;
    if (uniform() < 0.5) pair.down[0] = pair.up[0];
    if (hs_bulk_open(&J, &pair, 2, rule, work)) return;
    y = loss_near(&J, 0, at, &edge);
    off = fabs(loss_near(&J, 0, g, &edge) - y);
    above = masses_above(&pair, 0, g);
    right = masses_above(&pair, 0, at);
    missed = fmin(between_places(&pair, g, at, y, rule->x, rule->w), right.gap - expm1(y) * right.den);
    if (missed > 1e-14 * (above.num + normal_cdf(g)))
        log_term(off < 1e-6 ? "single-missed-near" : "single-missed", log(missed),
                 log(single_missed_upper(&J, 0, g, y, &above)));
}

int main(int argc, char **argv)
{
    double *work = room(HS_BULK_WORK), x20[20], w20[20];
    const hs_rule rule = {20, x20, w20};
    int i;
    terms_begin(argc, argv);
    gauss_legendre(20, x20, w20);
    for (i = 0; i < cases(2000); i++) missed_outcomes(work, &rule);
    free(work);
    median("single-missed", 200, 2e5, 30);
    median("single-missed-near", 50, 1e5, 100);
    if (LDBL_MANT_DIG < 64) { /* nothing that the sums could be compared with */
        printf("no long double here\n");
        return 0;
    }
    for (i = 0; i < cases(1600); i++) few_losses();
    median("few-rounding", 150, 200, 40);
    median("few-beside", 150, 200, 40);
    return terms_end();
}
