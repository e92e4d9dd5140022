/* check_mixture_terms.c - what mixture.c and law.c claim of the points of random shifts (HS_LAW_MIXTURE), with meshes
 * too wide and points that end too soon, against fine sums over a wide range [theory: law.mixture, law.mixture-turn].
 */
#include "law/law.h"
#include "terms.h"

enum { POINTS = 6000, SHIFTS = 4 };

typedef struct {
    double shift[SHIFTS], weight[SHIFTS], reach;
    int n, add;
} random_shift;

static double points[4][POINTS], scratch[2 * POINTS];

/* E R^a e^{iy log R} at fine points, over that of y = 0 at the same power. */
static void fine(const random_shift *D, double a, double y, double *re, double *im, double *log_size)
{
    double s = D->shift[D->n - 1], low = -14 + fmin(a, 0) * s, high = 14 + fmax(a, 0) * s, top = -HUGE_VAL;
    double h = fmin(0.05, 0.4 / (s * (1 + y))), total = 0;
    long j, n = (long)((high - low) / h);
    int i, pass;
    for (pass = 0, *re = *im = 0; pass < 2; pass++)
        for (j = 0; j <= n; j++) {
            double x = low + (double)j * h, R = 0, l, at;
            for (i = 0; i < D->n; i++) R += D->weight[i] * expm1(D->shift[i] * (x - 0.5 * D->shift[i]));
            l = log1p(R);
            at = a * l - 0.5 * x * x;
            if (pass == 0) top = fmax(top, at);
            else {
                total += exp(at - top);
                *re += exp(at - top) * cos(y * l);
                *im += exp(at - top) * sin(y * l);
            }
        }
    *re /= total;
    *im /= (D->add ? -1 : 1) * total;
    *log_size = top + log(total * h) - HS_LOG_SQRT_2PI;
}

static random_shift drawn(void)
{
    random_shift D;
    double rest = 1, s = log_between(0.02, 2);
    int i;
    D.n = 2 + (int)(3 * uniform());
    for (i = 1; i < D.n; i++) {
        D.shift[i] = i + 1 < D.n ? s * uniform() : s;
        D.weight[i] = log_between(1e-4, 0.3);
        rest -= D.weight[i];
    }
    D.shift[0] = 0;
    D.weight[0] = rest;
    D.add = uniform() < 0.4;
    return D;
}

/* A law of this mesh, whose last point lies at `last`. */
static int law_of(random_shift *D, double h, double last, double turn, hs_law *w)
{
    hs_mixture g = {D->n, D->shift, D->weight, 0, h, 0, 0, D->reach, turn};
    double s = D->shift[D->n - 1];
    int64_t left = (int64_t)(between(5, 12) / h), j;
    g.first = -(double)left * h;
    g.nodes = left + 1 + (int64_t)(last / h);
    g.beyond = (int64_t)((10 + (g.reach + 2) * s + sqrt(2 * turn * s * fmin(1.5 / s, 9))) / h) + 3;
    if (g.nodes < 2 || g.nodes + 2 > POINTS) return 0;
    hs_mixture_points(&g, D->add, points[0], points[1], points[2], points[3]);
    memset(w, 0, sizeof *w);
    w->kind = HS_LAW_MIXTURE;
    w->k = w->unit = 1;
    w->m = s;
    w->q = g.first;
    w->add = D->add;
    w->panels = h;
    w->n = g.nodes;
    w->x = w->l = points[0];
    w->lp = points[1];
    w->dl = points[2];
    w->dp = points[3];
    for (j = 0; j < 2; j++) {
        w->lambda[j] = points[0][g.nodes + j];
        w->level_f[j] = points[3][g.nodes + j];
        w->lost[j] = points[1 + j][g.nodes];
        w->mass[j] = points[1 + j][g.nodes + 1];
    }
    return 1;
}

static void laws(void)
{
    random_shift D = drawn();
    hs_law w;
    hs_law_value out;
    double s = D.shift[D.n - 1], d = fmin(1.5 / s, 9), t = between(0.1, 8);
    double tilts[3], turn = log_between(1, 60), y;
    double re, im, size, h = ldexp(floor(512 * 2 * HS_PI / (between(3, 25) / d + 0.5 * d)) + 1, -9);
    int i;
    D.reach = 12;
    tilts[0] = tilts[1] = tilts[2] = D.add && uniform() < 0.3 ? -t : t;
    if (!law_of(&D, h, between(3, 12), turn, &w)) return;
    fine(&D, D.add ? -tilts[0] : 1 + tilts[0], 0, &re, &im, &size);
    hs_law_cgf(&w, tilts[0], &out);
    term("mixture-k", fabs(out.K - size), out.err, 1e-12);
    if (hs_law_tilt(&w, tilts, 0, 30, scratch) != HS_OK) return;
    for (i = 0; i < 4; i++) {
        double lr = 0, li = 0, round = 0, node = 0;
        y = turn * between(0, 1.5);
        fine(&D, D.add ? -w.c : 1 + w.c, y, &re, &im, &size);
        hs_law_nodes(&w, y, 1, 1, &lr, &li, &round, &node);
        if (node > 0)
            term("mixture-phi", hypot(exp(lr) * cos(li) - re, exp(lr) * sin(li) - im), exp(lr) * expm1(node + round),
                 1e-12);
        term("mixture-far", hypot(re, im), hs_law_far_upper(&w, y), 1e-12);
        term("mixture-gap", 0.25 * hs_law_gap_lower(&w, y), 0.5 * (1 - hypot(re, im)), 1e-12);
    }
}

int main(int argc, char **argv)
{
    int i;
    terms_begin(argc, argv);
    for (i = 0; i < cases(1500); i++) laws();
    median("mixture-k", 200, 1e5, 200);
    median("mixture-phi", 200, 2e4, 200);
    median("mixture-far", 800, 20, 2);
    median("mixture-gap", 300, 2, 2);
    return terms_end();
}
