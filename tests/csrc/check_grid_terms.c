/* check_grid_terms.c - the error terms of one sampled Gaussian step's inner grid (transform.c, twosided_shift.c), each
 * where it is large.
 *
 * Reference: the same integrals over a mesh so fine that their trapezoid error is below 1e-15, in long double.
 */
#include "terms.h"
#include "law/twosided.h"

static double *work;

typedef struct {
    long double log_m, re, im;
} exact_value;

/* log of w(g) (1+U)^a. */
static double log_weight(double m, double q, double a, double g)
{ return a * sampled_loss(m, q, g) - 0.5 * g * g - 0.91893853320467274178; }

static double left_of(double m, double q, double a) { return -hs_left_reach_upper(m, q, a); }
static double right_of(double m, double a) { return fmax(a * m, m); }

/* log M(a) and phi(y) = M(a +- iy)/M(a). */
static exact_value exact(double m, double q, double a, double y)
{
    double lo = left_of(m, q, a) - 10, hi = right_of(m, a) + 10, h = fmin(0.1 / fmax(m, 1), 1 / (4 + y * m));
    double g, top = -HUGE_VAL;
    long double sum = 0, re = 0, im = 0;
    exact_value out;
    for (g = lo; g < hi; g += 8 * h) top = fmax(top, log_weight(m, q, a, g));
    for (g = lo; g < hi; g += h) {
        double l = sampled_loss(m, q, g);
        long double p = expl((long double)(a * l - 0.5 * g * g) - top);
        sum += p;
        re += p * cosl((long double)y * l);
        im += p * sinl((long double)y * l);
    }
    out.log_m = top + logl(sum * h) - 0.91893853320467274178L;
    out.re = re / sum;
    out.im = im / sum;
    return out;
}

typedef struct {
    double m, q, a;
} step;

static step any_step(double most)
{
    step s;
    double z;
    s.m = log_between(0.03, 4);
    s.q = log_between(1e-4, 0.95);
    if (uniform() < 0.25) {
        s.m = between(0.7, 3);
        s.q = between(0.3, 0.95);
        s.a = -between(1, 8);
        return s;
    } /* 1+U near 0 off the real line */
    z = log_between(0.1, fmax(1, most / s.m));
    s.a = uniform() < 0.5 ? 1 + z : -z;
    return s;
}

static int grid(hs_grid *G, step s, double h, double left, double right)
{ return hs_grid_build(G, s.m, s.q, hs_grid_mesh(h), left_of(s.m, s.q, s.a) - left, right_of(s.m, s.a) + right, work); }

/* The real mesh: sum of h w (1+U)^a over a coarse mesh against M(a). */
static void real_mesh(void)
{
    step s = any_step(12);
    double h = hs_grid_real_h(s.m, s.a, between(2, 18)) * between(0.8, 1);
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    long double sum = 0;
    int j;
    if (grid(&G, s, h, 10, 10)) return;
    for (j = 0; j < G.n; j++) sum += expl((long double)s.a * G.l[j] + G.lw[j] - M.log_m);
    term("real-mesh", fabs((double)(sum - 1)), hs_grid_real_upper(s.m, s.a, G.h), 1e-13);
}

/* log M in the form that drops 1 and aU, on a coarse mesh, with all its terms as hs_contour_visit joins them. */
static void log_of_m(void)
{
    step s = any_step(4);
    double h = hs_grid_real_h(s.m, s.a, between(2, 18)), out;
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    hs_moments mo;
    if (grid(&G, s, h, 10, 10)) return;
    hs_grid_moments(&G, s.a, &mo);
    out = hs_grid_real_upper(s.m, s.a, G.h) + hs_grid_ends_upper(&G, s.a, mo.log_m);
    if (!mo.dropped) return;
    out += hs_grid_dropped_upper(&G, s.a) / exp(fmin(mo.log_m, 0));
    if (out < 0.1) term("log-m", fabs((double)(mo.log_m - M.log_m)), 1.1 * out + mo.err, 1e-14);
}

/* Steps so strong that U is capped among the nodes: log M in the form that drops 1 and aU. */
static void capped(void)
{
    step s = {between(34, 45), log_between(1e-4, 0.5),
              uniform() < 0.5 ? 1 + between(-0.2, 1e-3) : -log_between(0.01, 3)};
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    hs_moments mo;
    if (grid(&G, s, 0.6 / s.m, 8, 8)) return;
    hs_grid_moments(&G, s.a, &mo);
    if (mo.dropped) term("capped", fabs((double)(mo.log_m - M.log_m)), mo.err, 1e-12);
}

/* The two dropped sums, by a coarse mesh or by a short range. */
static void dropped(int range)
{
    step s = any_step(4);
    double h = range ? 0.05 : between(0.7, 2), R = range ? between(2.5, 6) : 10, L = range && uniform() < 0.5 ? 10 : R;
    double sw = 0, su = 0;
    hs_grid G;
    int j, n;
    if (hs_grid_build(&G, s.m, s.q, hs_grid_mesh(h), -L, s.m + R, work)) return;
    n = (int)((G.hi - G.lo) / G.h + 0.5) + 1;
    for (j = 0; j < n; j++) {
        sw += G.w[j];
        su += G.w[j] * G.u[j];
    }
    term(range ? "dropped-range" : "dropped-mesh", fabs(sw - 1) + fabs(s.a * su), hs_grid_dropped_upper(&G, s.a),
         1e-13 * (1 + fabs(s.a)));
}

/* What lies beyond a short grid, as sum and as integral. */
static void ends(void)
{
    step s = any_step(12);
    double side = between(2, 7), fine, g, out = 0;
    int left = uniform() < 0.5, i;
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    if (grid(&G, s, between(0.02, 0.5) / fmax(1, s.m), left ? side : 10, left ? 10 : side)) return;
    for (i = 1; i < 4000; i++) {
        g = left ? G.lo - i * G.h : G.hi + i * G.h;
        out += G.h * exp(log_weight(s.m, s.q, s.a, g) - (double)M.log_m);
        if (fabs(g) > 60 + right_of(s.m, s.a) - left_of(s.m, s.q, s.a)) break;
    }
    fine = G.h / 64;
    for (i = 0; i < 64 * 4000; i++) {
        g = left ? G.lo - (i + 0.5) * fine : G.hi + (i + 0.5) * fine;
        out += fine * exp(log_weight(s.m, s.q, s.a, g) - (double)M.log_m);
        if (fabs(g - (left ? G.lo : G.hi)) > 12) break;
    }
    term(left ? "ends-left" : "ends-right", out, hs_grid_ends_upper(&G, s.a, (double)M.log_m), 1e-6 * out);
}

/* The trapezoid sum at complex exponents a +- iy', |y'| <= y. */
static void strip(int wild)
{
    step s = any_step(10);
    double y = log_between(0.1, 60 / fmin(s.m, 1)), worst = 0, h;
    double c1, c2, claimed;
    int which = -1, j, i;
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    h = hs_grid_choose_h(s.m, s.q, s.a, y, between(1, 16), 4, &which);
    if (wild) {
        y = log_between(3, 60) / s.m;
        h = between(0.3, 2) / fmax(s.m, 0.5);
        which = -1;
    }
    if (!(h > 0) || grid(&G, s, h, 10, 10)) return;
    hs_grid_weights(&G, s.a, (double)M.log_m, &c1, &c2);
    G.strip = uniform() < 0.5 ? which : -1;
    claimed = hs_grid_quadrature_upper(&G, s.a, y);
    for (i = 0; i < 4; i++) {
        double at = y * (1 - 0.12 * i);
        exact_value phi = exact(s.m, s.q, s.a, at);
        long double re = 0, im = 0;
        for (j = 0; j < G.n; j++) {
            re += G.p[j] * cosl((long double)at * G.l[j]);
            im += G.p[j] * sinl((long double)at * G.l[j]);
        }
        worst = fmax(worst, (double)hypotl(re - phi.re, im - phi.im));
    }
    term(y * s.m <= 2 * HS_PI / G.h ? "strip" : wild ? "strip-wild" : "strip-cut", worst, claimed, 1e-12);
}

/* The ends of the rectangle, where a grid ends before its law does: against the integral between their half nodes, by
 * Gauss' rule in every cell. */
static void rectangle_ends(void)
{
    step s = any_step(10);
    double y = log_between(0.1, 3) / s.m, h = between(0.05, 0.3) / fmax(s.m, 1), node[8], weight[8];
    double c1, c2, claimed;
    long double re = 0, im = 0;
    int i, j;
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    if (grid(&G, s, h, between(0.5, 4), between(0.5, 4))) return;
    hs_grid_weights(&G, s.a, (double)M.log_m, &c1, &c2);
    G.strip = -1;
    claimed = hs_grid_quadrature_upper(&G, s.a, y);
    gauss_legendre(8, node, weight);
    for (j = 0; G.lo + j * G.h < G.hi + 0.5 * G.h; j++) {
        re += G.p[j] * cosl((long double)y * G.l[j]);
        im += G.p[j] * sinl((long double)y * G.l[j]);
        for (i = 0; i < 8; i++) {
            double g = G.g[j] + 0.5 * G.h * node[i];
            long double p = 0.5L * G.h * weight[i] * expl(log_weight(s.m, s.q, s.a, g) - M.log_m);
            re -= p * cosl((long double)y * sampled_loss(s.m, s.q, g));
            im -= p * sinl((long double)y * sampled_loss(s.m, s.q, g));
        }
    }
    term("strip-ends", (double)hypotl(re, im), claimed, 1e-12);
}

/* The bound of |phi| beyond a frequency; on coarse meshes next to all of it is its own trapezoid error. */
static void far(int coarse)
{
    step s = any_step(8);
    double y = log_between(0.5, 60) / s.m, worst = 0, c1, c2;
    int i;
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    if (grid(&G, s, (coarse ? between(0.4, 3) : 0.1) / fmax(s.m, coarse ? 0.5 : 1), 10, 10)) return;
    hs_grid_weights(&G, s.a, (double)M.log_m, &c1, &c2);
    for (i = 0; i < 6; i++) {
        exact_value phi = exact(s.m, s.q, s.a, y * (1 + 0.1 * i * i));
        worst = fmax(worst, (double)hypotl(phi.re, phi.im));
    }
    term(coarse ? "far-mesh" : "far", worst, hs_grid_far_upper(&G, s.a, y), 1e-13);
}

/* Nodes of the grid left out of phi. */
static void trim(void)
{
    step s = any_step(10);
    double tol = log_between(1e-8, 1e-2), y = log_between(0.1, 30), c1, c2;
    double re = 0, im = 0, re0 = 0, im0 = 0;
    exact_value M = exact(s.m, s.q, s.a, 0);
    hs_grid G;
    int j;
    if (grid(&G, s, 0.1 / fmax(s.m, 1), 10, 10)) return;
    hs_grid_weights(&G, s.a, (double)M.log_m, &c1, &c2);
    hs_grid_trim(&G, tol);
    for (j = 0; j < G.n; j++) {
        double c, w;
        hs_cis_m1(y * G.l[j], &c, &w);
        re0 += G.r[j] * c;
        im0 += G.r[j] * w;
        if (j >= G.first && j < G.last) {
            re += G.r[j] * c;
            im += G.r[j] * w;
        }
    }
    term("trim", hypot(re - re0, im - im0), 2 * tol, 1e-14);
}

/* phi at all nodes by a path shifted to the damping side: on a coarse mesh of it, between ends that lie near, or
 * with M off by `out`. */
static void shifted(int what)
{
    static const char *names[4] = {"shifted", "shifted-much-noise", "shifted-ends", "shifted-m"};
    step s = any_step(6);
    double dy, worst = 0, c1;
    double c2, out = what == 3 ? log_between(1e-7, 1e-2) : 1e-13, side = what == 2 ? between(3, 6) : 10;
    hs_grid G;
    hs_moments mo;
    hs_two_shift P;
    double zr[80], zi[80], *scratch = work + HS_GRID_WORK;
    int i;
    s.m = what == 1 ? log_between(0.03, 0.9) : log_between(0.9, 4);
    dy = log_between(0.01, 0.5) / s.m;
    if (grid(&G, s, 0.1 / fmax(s.m, 1), side, side)) return;
    hs_grid_moments(&G, s.a, &mo);
    if (what == 2) mo.log_m = (double)exact(s.m, s.q, s.a, 0).log_m;
    hs_grid_weights(&G, s.a, mo.log_m, &c1, &c2);
    mo.log_m -= what == 3 ? log1p(out) : 0;
    if (hs_grid_shift_build(&G, s.a, mo.log_m, mo.err, out, what < 2 ? between(1, 14) : 24, &P)) return;
    hs_two_shift_nodes(&P, dy, 64, scratch, zr, zi);
    for (i = 1; i < 65; i = 2 * i + 1) {
        exact_value phi = exact(s.m, s.q, s.a, i * dy);
        worst = fmax(worst, (double)hypotl(phi.re - 1 - zr[i], fabsl(phi.im) - fabs(zi[i])));
    }
    term(names[what], worst, P.quad, 1e-12);
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    work = room(HS_GRID_WORK + 34 * 400);
    for (i = 0; i < cases(400); i++) {
        real_mesh();
        log_of_m();
        dropped(0);
        dropped(1);
        ends();
        strip(0);
        strip(1);
        far(0);
        far(1);
        trim();
        shifted(i % 4);
    }
    for (i = 0; i < cases(100); i++) capped();
    for (i = 0; i < cases(200); i++) rectangle_ends();
    free(work);
    median("real-mesh", 200, 20, 1.2);
    median("log-m", 200, 100000, 100);
    median("capped", 20, 2, 1.1);
    median("dropped-mesh", 200, 3, 2.2);
    median("dropped-range", 200, 4, 1.6);
    median("ends-left", 100, 1.5, 1.1);
    median("ends-right", 100, 1.5, 1.1);
    median("strip", 150, 300, 4);
    median("strip-cut", 50, 20, 3);
    median("strip-wild", 50, 20, 3);
    median("strip-ends", 100, 80, 40);
    median("far", 100, 1.5, 1.1);
    median("far-mesh", 25, 5, 1.3);
    median("trim", 200, 500, 6);
    median("shifted", 50, 100000, 100);
    median("shifted-much-noise", 50, 100000, 50);
    median("shifted-ends", 50, 500, 8);
    median("shifted-m", 50, 500, 2);
    return terms_end();
}
