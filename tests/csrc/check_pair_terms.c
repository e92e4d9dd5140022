/* check_pair_terms.c - the error terms of the inner grids of one two-sided pair (twosided.c, twosided_shift.c), each
 * where it is large.
 *
 * Reference: the same integrals over a mesh so fine that their trapezoid error is below 1e-15, in long double.
 */
#define hs_sampling_truncation own_sampling_truncation /* sampling.c is read here for its static functions */
#define hs_sampling_tails own_sampling_tails
#include "sampling.c"
#include "terms.h"
#include "law/twosided.h"

static double *work;

typedef struct {
    long double M, re, im;
} exact_value; /* M(z), phi(y) */

static double exponent(const hs_pair *pair, int r, double z, double g, double *loss)
{
    double l1 = sampled_loss(pair->up[r], pair->q[r], g), l2 = sampled_loss(pair->down[r], pair->q[r], -g);
    *loss = l1 - l2;
    return (1 + z) * l1 - z * l2 - 0.5 * g * g - LOG_SQRT_2PI + log(pair->w[r]);
}

static exact_value exact(const hs_pair *pair, double z, double y)
{
    exact_value out = {0, 0, 0};
    int r;
    for (r = 0; r < pair->branches; r++) {
        double lo, hi, g;
        double m = fmax(pair->up[r], pair->down[r]), h = fmin(0.1 / fmax(m, 1), 1 / (4 + y * m)), l;
        hs_two_range(pair, r, z, z, 10, &lo, &hi);
        for (g = lo; g < hi; g += h) {
            long double p = h * expl((long double)exponent(pair, r, z, g, &l));
            out.M += p;
            out.re += p * cosl((long double)y * l);
            out.im += p * sinl((long double)y * l);
        }
    }
    out.re /= out.M;
    out.im /= out.M;
    return out;
}

static hs_pair any_pair(double *z)
{
    hs_pair pair = {0};
    double left = 1;
    int r, form = (int)(3 * uniform());
    pair.branches = 1 + (int)(HS_BRANCHES * uniform());
    for (r = 0; r < pair.branches; r++) {
        pair.w[r] = r == pair.branches - 1 ? left : left * between(0.2, 0.8);
        left -= pair.w[r];
        pair.q[r] = log_between(1e-3, 0.9);
        pair.up[r] = form == 1 ? 0 : log_between(0.1, 3);
        pair.down[r] = form == 2   ? 0
                       : form == 1 ? log_between(0.1, 3)
                                   : pair.up[r] * (uniform() < 0.5 ? 1 : between(0.3, 1));
    }
    *z = log_between(0.1, 6);
    if (uniform() < 0.3) *z = -1 - *z;
    return pair;
}

/* A grid whose ends lie `side` from every peak, on meshes of which the coarsest is that of the largest shift. */
static int grid(hs_two *T, const hs_pair *pair, double z, const double *h, double side)
{
    double mesh[HS_BRANCHES];
    int r;
    for (r = 0; r < pair->branches; r++) mesh[r] = hs_grid_mesh(h[r]);
    return hs_two_build(T, pair, mesh, z, z, side, work);
}

static void fine(const hs_pair *pair, double *h)
{
    int r;
    for (r = 0; r < pair->branches; r++) h[r] = 0.1 / fmax(1, fmax(pair->up[r], pair->down[r]));
}

static double dot(const hs_two *T, double z, double y, long double M, long double *re, long double *im)
{
    long double sum = 0;
    int j;
    *re = *im = 0;
    for (j = 0; j < T->G.n; j++) {
        long double p = expl((long double)(1 + z) * T->l1[j] - (long double)z * T->l2[j] + T->G.lw[j]) / M;
        sum += p;
        *re += p * cosl((long double)y * T->G.l[j]);
        *im += p * sinl((long double)y * T->G.l[j]);
    }
    return (double)(sum - 1);
}

static void real_mesh(void)
{
    double z, h[HS_BRANCHES], t = between(2, 18);
    hs_pair pair = any_pair(&z);
    exact_value at = exact(&pair, z, 0);
    hs_two T;
    long double re, im;
    int r;
    for (r = 0; r < pair.branches; r++) h[r] = hs_two_real_h(&pair, r, z, t);
    if (grid(&T, &pair, z, h, 10)) return;
    term("pair-real-mesh", fabs(dot(&T, z, 0, at.M, &re, &im)), hs_two_real_upper(&T, z), 1e-13);
}

/* log M in the form that drops the first-order terms, with all its terms as the visit of a line joins them. */
static void log_of_m(void)
{
    double z, h[HS_BRANCHES], t = between(2, 18), out;
    hs_pair pair = any_pair(&z);
    exact_value at = exact(&pair, z, 0);
    hs_two T;
    hs_moments mo;
    int r;
    for (r = 0; r < pair.branches; r++) h[r] = hs_two_real_h(&pair, r, z, t);
    if (grid(&T, &pair, z, h, 10)) return;
    hs_two_moments(&T, z, &mo);
    if (!mo.dropped) return;
    out = hs_two_real_upper(&T, z) + hs_two_ends_upper(&T, z, mo.log_m) +
          hs_two_dropped_upper(&T, z) / exp(fmin(mo.log_m, 0));
    if (out < 0.1) term("pair-log-m", fabs((double)(mo.log_m - logl(at.M))), 1.1 * out + mo.err, 1e-14);
}

/* A pair so strong that U1 is capped among the nodes: log M in the form that drops the first-order terms. */
static void capped(void)
{
    double z = between(-0.2, 1e-3), m = between(34, 45), h = 0.6 / m;
    hs_pair pair = {0};
    exact_value at;
    hs_two T;
    hs_moments mo;
    pair.branches = 1;
    pair.w[0] = 1;
    pair.q[0] = log_between(1e-4, 0.5);
    pair.up[0] = m;
    pair.down[0] = uniform() < 0.5 ? 0 : between(0, 3);
    at = exact(&pair, z, 0);
    if (grid(&T, &pair, z, &h, 8)) return;
    hs_two_moments(&T, z, &mo);
    if (mo.dropped) term("pair-capped", fabs((double)(mo.log_m - logl(at.M))), mo.err, 1e-11);
}

/* The three dropped sums, by a coarse mesh or a short range. */
static void dropped(int range)
{
    double z, h[HS_BRANCHES], sum = 0, claimed;
    double s0, s1, s2;
    hs_pair pair = any_pair(&z);
    hs_two T;
    int r, j;
    for (r = 0; r < pair.branches; r++) h[r] = range ? 0.05 : between(0.7, 2);
    z = range ? between(-1, 0) : z;
    if (grid(&T, &pair, z, h, range ? between(2.5, 6) : 10)) return;
    claimed = hs_two_dropped_upper(&T, z);
    for (r = 0; r < pair.branches; r++) {
        for (s0 = s1 = s2 = 0, j = T.first[r]; j < T.first[r] + T.nodes[r]; j++) {
            double w = exp(T.G.lw[j]);
            s0 += w;
            s1 += w * T.u1[j];
            s2 += w * T.u2[j];
        }
        sum += fabs(s0 - pair.w[r]) + fabs((1 + z) * s1) + fabs(z * s2);
    }
    term(range ? "pair-dropped-range" : "pair-dropped-mesh", sum, claimed, 1e-13 * (2 + fabs(z)));
}

static void ends(void)
{
    double z, h[HS_BRANCHES], out = 0, l;
    hs_pair pair = any_pair(&z);
    exact_value at = exact(&pair, z, 0);
    hs_two T;
    int r, side, i;
    for (r = 0; r < pair.branches; r++) h[r] = between(0.02, 0.5) / fmax(1, fmax(pair.up[r], pair.down[r]));
    if (grid(&T, &pair, z, h, between(2, 7))) return;
    for (r = 0; r < pair.branches; r++)
        for (side = -1; side < 2; side += 2) {
            double end = T.G.g[side < 0 ? T.first[r] : T.first[r] + T.nodes[r] - 1], s = T.h[r], f = s / 64;
            for (i = 1; i * s < 12; i++) out += s * exp(exponent(&pair, r, z, end + side * i * s, &l));
            for (i = 0; i * f < 12; i++) out += f * exp(exponent(&pair, r, z, end + side * (i + 0.5) * f, &l));
        }
    out /= (double)at.M;
    term("pair-ends", out, hs_two_ends_upper(&T, z, log((double)at.M)), 1e-6 * out);
}

static void strip(int wild)
{
    double z, h[HS_BRANCHES], y = log_between(0.1, 40), worst = 0;
    double target = between(1, 16), c1, c2, claimed;
    hs_pair pair = any_pair(&z);
    exact_value at = exact(&pair, z, 0);
    hs_two T;
    int r, i;
    for (r = 0; r < pair.branches; r++)
        if (!((h[r] = hs_two_choose_h(&pair, r, z, y, target, log((double)at.M))) > 0)) return;
    for (r = 0; wild && r < pair.branches; r++) {
        y = between(2, 9);
        h[r] = between(0.3, 2) / fmax(fmax(pair.up[r], pair.down[r]), 0.5);
    }
    if (grid(&T, &pair, z, h, 10)) return;
    hs_two_weights(&T, z, log((double)at.M), &c1, &c2);
    claimed = hs_two_quadrature_upper(&T, z, y);
    for (i = 0; i < 4; i++) {
        double f = y * (1 - 0.12 * i);
        exact_value phi = exact(&pair, z, f);
        long double re, im;
        dot(&T, z, f, at.M, &re, &im);
        worst = fmax(worst, (double)hypotl(re - phi.re, im - phi.im));
    }
    term(wild ? "pair-strip-wild" : "pair-strip", worst, claimed, 1e-12);
}

/* The ends of the rectangles, where a grid ends before its law does: against the integral between the half nodes of
 * every branch, by Gauss' rule in every cell. */
static void rectangle_ends(void)
{
    double z, h[HS_BRANCHES], m = 0, c1;
    double c2, claimed, node[8], weight[8];
    hs_pair pair = any_pair(&z);
    exact_value at = exact(&pair, z, 0);
    double log_m = log((double)at.M), y, l;
    long double re, im;
    hs_two T;
    int r, i, j;
    for (r = 0; r < pair.branches; r++) {
        m = fmax(m, fmax(pair.up[r], pair.down[r]));
        h[r] = between(0.05, 0.3) / fmax(1, fmax(pair.up[r], pair.down[r]));
    }
    y = log_between(0.1, 3) / m;
    if (grid(&T, &pair, z, h, between(0.5, 4))) return;
    hs_two_weights(&T, z, log_m, &c1, &c2);
    claimed = hs_two_quadrature_upper(&T, z, y);
    dot(&T, z, y, at.M, &re, &im);
    gauss_legendre(8, node, weight);
    for (r = 0; r < pair.branches; r++)
        for (j = T.first[r]; j < T.first[r] + T.nodes[r]; j++)
            for (i = 0; i < 8; i++) {
                double g = T.G.g[j] + 0.5 * T.h[r] * node[i];
                long double p = 0.5L * T.h[r] * weight[i] * expl(exponent(&pair, r, z, g, &l) - log_m);
                re -= p * cosl((long double)y * l);
                im -= p * sinl((long double)y * l);
            }
    term("pair-strip-ends", (double)hypotl(re, im), claimed, 1e-12);
}

static void far(int coarse)
{
    double z, h[HS_BRANCHES], y, worst = 0;
    double c1, c2, m = 0;
    hs_pair pair = any_pair(&z);
    exact_value at = exact(&pair, z, 0);
    hs_two T;
    int r, i;
    for (r = 0; r < pair.branches; r++) m = fmax(m, fmax(pair.up[r], pair.down[r]));
    y = log_between(0.5, 30) / m;
    for (r = 0; r < pair.branches; r++) h[r] = (coarse ? between(0.4, 3) : 0.1) / fmax(m, coarse ? 0.5 : 1);
    if (grid(&T, &pair, z, h, 10)) return;
    hs_two_weights(&T, z, log((double)at.M), &c1, &c2);
    for (i = 0; i < 6; i++) {
        exact_value phi = exact(&pair, z, y * (1 + 0.1 * i * i));
        worst = fmax(worst, (double)hypotl(phi.re, phi.im));
    }
    term(coarse ? "pair-far-mesh" : "pair-far", worst, hs_two_far_upper(&T, z, y), 1e-13);
}

/* The shifted paths: on a coarse mesh, between ends that lie near, or with M off by `out`. */
static void shifted(int what)
{
    static const char *names[3] = {"pair-shifted", "pair-shifted-ends", "pair-shifted-m"};
    double z, h[HS_BRANCHES], dy, worst = 0;
    double c1, c2, out = what == 2 ? log_between(1e-7, 1e-2) : 1e-13, zr[80];
    double zi[80], log_m;
    hs_pair pair = any_pair(&z);
    hs_two T;
    hs_two_shift P;
    int i;
    dy = log_between(0.01, 0.5) / fmax(pair.up[0], pair.down[0]);
    log_m = (double)logl(exact(&pair, z, 0).M);
    fine(&pair, h);
    if (grid(&T, &pair, z, h, what == 1 ? between(3, 6) : 10)) return;
    hs_two_weights(&T, z, log_m, &c1, &c2);
    log_m -= what == 2 ? log1p(out) : 0;
    if (hs_two_shift_build(&T, z, log_m, 1e-14, out, what ? 24 : between(1, 14), &P)) return;
    hs_two_shift_nodes(&P, dy, 64, work + HS_TWO_WORK, zr, zi);
    for (i = 1; i < 65; i = 2 * i + 1) {
        exact_value phi = exact(&pair, z, i * dy);
        worst = fmax(worst, (double)hypotl(phi.re - 1 - zr[i], phi.im - zi[i]));
    }
    term(names[what], worst, P.quad, 1e-12);
}

/* Rounding of the loss of one branch at x, against long double. */
static void branch(void)
{
    double q = log_between(1e-6, 0.99), up = uniform() < 0.2 ? 0 : log_between(0.01, 10),
           down = up == 0 || uniform() < 0.5 ? log_between(0.01, 10) : 0;
    double x = between(-6 - down, 6 + up), slope, err, L = loss_at(q, 0, up, down, x, &slope, &err);
    long double a = up * (long double)x - 0.5L * up * up, b = -down * (long double)x - 0.5L * down * down;
    term("sampled-loss", (double)fabsl(log1pl(q * expm1l(a)) - log1pl(q * expm1l(b)) - L), err, 1e-18 * (1 + fabs(L)));
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    work = room(HS_TWO_WORK + 34 * 400);
    for (i = 0; i < cases(240); i++) {
        real_mesh();
        log_of_m();
        dropped(0);
        dropped(1);
        ends();
        strip(0);
        strip(1);
        far(0);
        far(1);
        shifted(i % 3);
    }
    for (i = 0; i < cases(100); i++) capped();
    for (i = 0; i < cases(200); i++) rectangle_ends();
    for (i = 0; i < cases(400); i++) branch();
    free(work);
    median("pair-real-mesh", 150, 15, 1.3);
    median("pair-log-m", 100, 20000, 100);
    median("pair-capped", 20, 2, 1.1);
    median("pair-dropped-mesh", 150, 4, 2.2);
    median("pair-dropped-range", 150, 4, 2);
    median("pair-ends", 150, 1.5, 1.1);
    median("pair-strip", 150, 40, 5);
    median("pair-strip-wild", 50, 60, 6);
    median("pair-strip-ends", 100, 80, 40);
    median("pair-far", 100, 1.5, 1.1);
    median("pair-far-mesh", 40, 3, 1.1);
    median("pair-shifted", 50, 20000, 100);
    median("pair-shifted-ends", 50, 300, 30);
    median("pair-shifted-m", 50, 200, 6);
    median("sampled-loss", 60, 75, 30);
    return terms_end();
}
