/* check_few_terms.c - what hs_laplace_few (laplace.c) claims of the rounding of delta of the outcomes with no or one loss
 * off the atoms, against the same sums in long double. */
#include "law/law.h"
#include <float.h>
#include "terms.h"

/* log of the binomial weight C(n,i) p^i r^(n-i). */
static long double weight_log(long double n, long double i, long double p, long double r)
{ return lgammal(n + 1) - lgammal(i + 1) - lgammal(n - i + 1) + i * logl(p) + (n - i) * logl(r); }

/* E (1 - e^{e-L})_+ of the losses of one step that are not atoms: outcomes 0 < x < m of density e^{-x}/2 under den. */
static long double smooth(const hs_law *w, long double e)
{
    long double m = w->m, q = w->q, E = expl(e), x, rest;
    if (w->add) { /* num has that density: e^{-x}/2 (1 - E ((1-q) + q e^{2x-m})) from 0 to x */
        rest = 1 - E * (1 - q);
        x = rest > 0 ? fminl(m, fmaxl(0, 0.5L * (m + logl(rest / (E * q))))) : 0;
        return 0.5L * (rest * -expm1l(-x) - E * q * expl(-m) * expm1l(x));
    }
    rest = 1 - q - E; /* e^{-x}/2 (rest + q e^{2x-m}) from x to m */
    x = rest < 0 ? fminl(m, fmaxl(0, 0.5L * (m + logl(-rest / q)))) : 0;
    return 0.5L * expl(-x) * (rest * -expm1l(x - m) + q * expl(2 * x - m) * expm1l(m - x));
}

static void few_losses(void)
{
    hs_law w;
    double pm, qm, value, slope;
    double err, eps, log_scale;
    long double m, q, k, l0, l1, low, high, sum = 0, i, sd, mean, x;
    memset(&w, 0, sizeof w);
    w.kind = HS_LAW_SUBLAPLACE;
    w.add = uniform() < 0.5;
    w.m = log_between(1e-3, 3);
    w.q = uniform() < 0.2 ? 1 : log_between(0.01, 1);
    w.k = floor(log_between(1, 3000));
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
    hs_laplace_few(&w, eps, log_scale, &pm, &qm, &value, &slope, &err);
    if (!(value > 1e-280)) return;
    for (i = 0; i <= k; i++) {
        x = (w.add ? -1 : 1) * (i * l1 + (k - i) * l0);
        if (x > eps) sum += expl(weight_log(k, i, high, low)) * -expm1l(eps - x);
        if (i == k) break;
        x = (w.add ? -1 : 1) * (i * l1 + (k - 1 - i) * l0);
        sum += k * expl(weight_log(k - 1, i, high, low)) * smooth(&w, eps - x);
    }
    sum *= expl(-(long double)log_scale);
    term("few-rounding", (double)(fabsl(value - sum) / sum), err / (double)sum, 1e-16);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    if (LDBL_MANT_DIG < 64) { /* nothing that the sums could be compared with */
        printf("no long double here\n");
        return 0;
    }
    for (i = 0; i < cases(800); i++) few_losses();
    median("few-rounding", 150, 200, 40);
    return terms_end();
}
