/* check_range_terms.c - what range.c claims of the transform of a bounded-range step, against long double. */
#include "law/law.h"
#include "terms.h"

/* log(sinh(x)/x) - log(sinh(h)/h) for x^2 - h^2 = d, by the series of log(sinh x/x) in x^2 where both are small. */
static long double quotient(long double x, long double h, long double d)
{
    static const long double c[8] = {1 / 6.0L,      -1 / 180.0L,          1 / 2835.0L,      -1 / 37800.0L,
                                     1 / 467775.0L, -691 / 3831077250.0L, 2 / 127702575.0L, -3617 / 2605132530000.0L};
    long double sum = 0, diff = d, power = h * h;
    int n;
    if (x > 0.02L || h > 0.02L) return x - h + logl(-expm1l(-2 * x) / (2 * x)) - logl(-expm1l(-2 * h) / (2 * h));
    for (n = 0; n < 8; n++) {
        sum += c[n] * diff;
        diff = x * x * diff + power * d;
        power *= h * h;
    }
    return sum;
}

static void one(void)
{
    double m = log_between(1e-9, 300), t = uniform() < 0.6 ? log_between(1e-3, 30 / m) : -log_between(1e-3, 30 / m);
    double y = uniform() < 0.5 ? log_between(1e-4, 1e3) / m : exp(between(-5, 5)) * fabs(t + 0.5), re = 0, im = 0;
    double round = 0, zr, zi;
    long double z = t, h = 0.5L * m, v = fabsl(z + 0.5L), th = (long double)y * m;
    long double C, a, b, d;
    long double pr, pi, mod;
    hs_law w;
    hs_law_value g;
    if (!(v > 1e-3L)) return;
    hs_range_cgf(m, t, &g);
    d = quotient(v * m, h, (long double)m * m * z * (1 + z));
    term("range-k", (double)fabsl(d - g.K), g.err,
         1e-18 * ((v * m > 0.02L || h > 0.02L) ? 1 + m * (1 + fabs(t)) : fabs(g.K)));
    memset(&w, 0, sizeof w);
    w.kind = HS_LAW_RANGE;
    w.m = m;
    w.k = 1;
    hs_range_tilt(&w, t);
    hs_range_phi(&w, y, &zr, &zi);
    C = 1 / tanhl(v * m);
    a = cosl(th);
    b = C * sinl(th);
    d = v * v + (long double)y * y; /* (a + ib) v (v - iy)/d */
    pr = v * (a * v + b * y) / d;
    pi = (z < -0.5L ? -1 : 1) * v * (b * v - a * y) / d;
    term("range-phi", (double)hypotl(pr - 1 - zr, pi - zi), y * w.c1, (double)(2e-19L * (1 + C * (1 + th))));
    hs_range_nodes(&w, y, 1, 1, &re, &im, &round);
    mod = hypotl(pr, pi);
    a = expl(re) * cosl(im) - pr;
    b = expl(re) * sinl(im) - pi;
    if (round < 0.1)
        term("range-node", (double)(hypotl(a, b) / mod), round * 1.06,
             (double)(2e-19L * (1 + C * (1 + th)) * (1 + 1 / mod)));
    term("range-far", (double)mod, hs_law_far_upper(&w, y), 1e-12);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    for (i = 0; i < cases(4000); i++) one();
    median("range-k", 1500, 60, 12);
    median("range-phi", 500, 800, 150);
    median("range-node", 400, 60, 6);
    median("range-far", 900, 1.1, 1.001);
    return terms_end();
}
