/* check_fit_terms.c - what fit.c and orders.c claim of rules that stand for many steps, and how a line adds it
 * (contour.c): rules of one or two shifts, which are off by much.
 *
 * References: the same nodes, tilts and frequencies with the steps themselves. A rule's `weight` is made here from the
 * Chebyshev moments of both sides, and its ellipse from points on it.
 */
#include "own_contour.h"
#define hs_orders_lay own_orders_lay
#define hs_orders_upper own_orders_upper
#define hs_orders_growth_upper own_orders_growth_upper
#define hs_orders_size_upper own_orders_size_upper
#include "line/orders.c"
#undef SLACK
#undef hs_orders_lay
#undef hs_orders_upper
#undef hs_orders_growth_upper
#undef hs_orders_size_upper
#include "terms.h"

enum { STEPS = 6, POINTS = 2, PARTS = 6, DEGREES = 16 };

/* Kinds of boxes: of sampled steps, of small shifts of such, of two-sided pairs. Terms of each. */
enum { SAMPLED, SMALL, PAIRS };
enum { K, ALIASES, NODES, UPPER, VALUE, INNER, FAR };
static const char *const NAME[3][7] = {
    {"fit-k", "fit-aliases", "fit-nodes", "fit-upper", "fit-value", "fit-inner", "fit-far"},
    {"orders-k", "orders-aliases", "orders-nodes", "orders-upper", "orders-value", "orders-inner", NULL},
    {"pairs-k", "pairs-aliases", "pairs-nodes", "pairs-upper", "pairs-value", "pairs-inner", "pairs-far"},
};

typedef struct { /* steps of one box, and their rule */
    double m[STEPS], q[STEPS], k[STEPS];
    double shift[POINTS], rate[POINTS], weight[POINTS];
    hs_pair pair[STEPS], pair_rule[POINTS];
    hs_fit fits[PARTS];
    hs_contour steps, rule;
    hs_sums S[HS_CHUNKS], R[HS_CHUNKS];
} box;

static double *work_steps, *work_rule;

/* The Gauss rule of one or two points of the steps at x in [-1, 1]. */
static void gauss(const double *x, const double *k, int points, double *at, double *weight)
{
    double total = 0, mean = 0, v = 0, skew = 0;
    double wide;
    int i;
    for (i = 0; i < STEPS; i++) {
        total += k[i];
        mean += k[i] * x[i];
    }
    mean /= total;
    for (i = 0; i < STEPS; i++) {
        double d = x[i] - mean;
        v += k[i] * d * d / total;
        skew += k[i] * d * d * d / total;
    }
    at[0] = mean;
    weight[0] = total;
    if (points == 1) return;
    skew /= v;
    wide = sqrt(skew * skew + 4 * v);
    at[0] = mean + 0.5 * (skew - wide);
    at[1] = mean + 0.5 * (skew + wide);
    weight[1] = total * (mean - at[0]) / wide;
    weight[0] = total - weight[1];
}

/* The largest over the upper half of an ellipse about `middle` with half axes a and b of m'^2, of F, and, of pairs, of
 * d, with their own F [theory: compression.strip, compression.pair]. */
static void ellipse_of(double middle, double a, double b, double q, int kind, double *out)
{
    int i;
    out[0] = out[2] = 0;
    out[1] = 1;
    for (i = 0; i <= 400; i++) {
        double x = middle + a * cos(HS_PI * i / 400), y = b * sin(HS_PI * i / 400), size = x * x + y * y;
        double turn = cos(2 * atan2(y, x)), m2 = turn > 0 ? size / turn : HUGE_VAL, d = 0.5 * (m2 - size * turn);
        double t = tan(x * y), steep = q > 0.5 ? log(q / (1 - q)) : 0, factor = exp(d / 4) / sqrt(turn);
        if (kind == PAIRS) {
            factor = (x * y * x * y + (0.65 + 0.4 * steep) * t * t + 0.15 * t * t * t * t) / (2 * size);
            factor = x * y < 1.5 ? (1 - q + q * exp(d)) * exp(factor) / sqrt(turn * cos(x * y)) : HUGE_VAL;
        }
        out[0] = fmax(out[0], m2);
        out[1] = fmax(out[1], factor);
        out[2] = fmax(out[2], d);
    }
}

/* The rows of fit.c for a box about `middle`, an ellipse each [theory: compression.rule]. */
static void lay_fits(box *B, double middle, double half, int points, int kind)
{
    static const double part[PARTS] = {0.85, 0.6, 0.42, 0.3, 0.2, 0.13};
    int i, j, p;
    for (p = 0; p < PARTS; p++) {
        double rho = fmax(1.2, part[p] * 1.4 * middle / half), total = 0, sum = 0;
        double most[3], q = B->q[0];
        ellipse_of(middle, 0.5 * half * (rho + 1 / rho), 0.5 * half * (rho - 1 / rho), q, kind, most);
        if (kind == PAIRS) q = q * exp(most[2]) / (1 - q + q * exp(most[2]));
        for (j = 0; j < DEGREES; j++) {
            double off = 0;
            for (i = 0; i < STEPS; i++) off += B->k[i] * cos(j * acos((B->m[i] - middle) / half));
            for (i = 0; i < points; i++) off -= B->weight[i] * cos(j * acos((B->shift[i] - middle) / half));
            sum += (j ? 2 : 1) * fabs(off) * pow(rho, -j);
        }
        for (i = 0; i < STEPS; i++) total += 2 * B->k[i];
        sum += 2 * pow(rho, -DEGREES) / (1 - 1 / rho) * total;
        B->fits[p] = (hs_fit){0, q, sqrt(most[0]) * 1.001, most[1] * 1.001, sum * (1 + 1e-9), 0, 0, 0, HS_FIT_ALL, 1};
        if (kind == PAIRS) B->fits[p].sides = 2;
    }
}

/* The rows of orders.c for shifts up to m_1, an ellipse each [theory: compression.orders]. */
static void lay_orders_of(box *B, double m_1, int points)
{
    static const double stretch[PARTS] = {1.3, 2, 4, 9, 25, 80};
    double S = m_1 * m_1;
    int i, j, p;
    for (p = 0; p < PARTS; p++) {
        double axis = 2 * stretch[p] - 1, rho = axis + sqrt(axis * axis - 1), sum = 0;
        double total = 0, r = S * stretch[p];
        for (j = 0; j < DEGREES; j++) {
            double off = 0;
            for (i = 0; i < STEPS; i++) {
                double s = B->m[i] * B->m[i];
                off += B->k[i] * s * cos(j * acos(2 * s / S - 1));
            }
            for (i = 0; i < points; i++) {
                double s = B->shift[i] * B->shift[i];
                off -= B->weight[i] * s * cos(j * acos(2 * s / S - 1));
            }
            sum += (j ? 2 : 1) * fabs(off) * pow(rho, -j);
        }
        for (i = 0; i < STEPS; i++) total += 2 * B->k[i] * B->m[i] * B->m[i];
        sum += 2 * pow(rho, -DEGREES) / (1 - 1 / rho) * total * (1 + 1e-9);
        B->fits[p] = (hs_fit){0, B->q[0],    m_1, r * (1 + 1e-9), sum / r * (1 + 1e-9), total / S * (1 + 1e-9), 0,
                              0, HS_FIT_ALL, 1};
    }
}

/* Any steps of small shifts and their rule. */
static void any_small(box *B, int points)
{
    double m_1 = log_between(0.03, 0.6), q = log_between(0.001, 0.5), S = m_1 * m_1;
    double x[STEPS], mass[STEPS], at[POINTS];
    double var = log_between(1e-4, 3), each;
    int i;
    each = fmax(1, var / (STEPS * q * q * expm1(S)));
    for (i = 0; i < STEPS; i++) {
        x[i] = between(-0.99, 0.99);
        B->m[i] = sqrt(0.5 * S * (1 + x[i]));
        B->q[i] = q;
        B->k[i] = ceil(each * between(0.2, 2));
        mass[i] = B->k[i] * B->m[i] * B->m[i];
    }
    gauss(x, mass, points, at, B->weight);
    for (i = 0; i < points; i++) {
        B->shift[i] = sqrt(0.5 * S * (1 + at[i]));
        B->rate[i] = q;
        B->weight[i] /= B->shift[i] * B->shift[i];
    }
    lay_orders_of(B, m_1, points);
}

static int visit(hs_contour *C, double *work, hs_sums *S)
{
    int st = hs_contour_visit(C, work, S);
    C->S = S;
    return st;
}

/* Any steps of one box and their rule. */
static void any_large(box *B, int points, int kind)
{
    double middle = log_between(0.2, 2), half = middle * log_between(0.02, 0.3), q = log_between(0.003, 0.5);
    double x[STEPS], at[POINTS], var = log_between(1e-4, 3), each;
    int i;
    each = fmax(1, var / (STEPS * q * q * expm1(middle * middle)));
    for (i = 0; i < STEPS; i++) {
        x[i] = between(-1, 1);
        B->m[i] = middle + half * x[i];
        B->q[i] = q;
        B->k[i] = ceil(each * between(0.2, 2));
    }
    gauss(x, B->k, points, at, B->weight);
    for (i = 0; i < points; i++) {
        B->shift[i] = middle + half * at[i];
        B->rate[i] = q;
    }
    lay_fits(B, middle, half, points, kind);
}

/* The pair that is its own mirror image. */
static hs_pair pair_of(double m, double q)
{
    hs_pair pair = {1, {1}, {q}, {m}, {m}, 0, 0};
    return pair;
}

/* Any steps, their rule and its line as planned, and the nodes of both on it. */
static int any(box *B, int kind)
{
    int points = 1 + (uniform() < 0.5), i;
    hs_contour *C = &B->rule;
    memset(B, 0, sizeof *B);
    if (kind == SMALL) any_small(B, points);
    else any_large(B, points, kind);
    for (i = 0; i < STEPS; i++) B->pair[i] = pair_of(B->m[i], B->q[i]);
    for (i = 0; i < points; i++) B->pair_rule[i] = pair_of(B->shift[i], B->rate[i]);
    C->run.b = C->run.ruled = points;
    C->run.add = uniform() < 0.4;
    C->n_threads = 1;
    C->n_max = HS_OUTER_MAX;
    C->run.m = B->shift;
    C->run.q = B->rate;
    C->run.k = B->weight;
    if (kind == PAIRS) C->run.pair = B->pair_rule;
    C->run.fits = B->fits;
    C->run.n_fits = PARTS;
    C->rtol = 1e-10;
    C->T0 = 30;
    if (hs_contour_place(C, 0, -between(1, 9), 1, work_rule) || hs_contour_plan(C, work_rule)) return 0;
    if (!(C->N < 3000) || visit(C, work_rule, B->R)) return 0;
    B->steps = *C;
    B->steps.run.b = STEPS;
    B->steps.run.ruled = B->steps.run.n_fits = 0;
    B->steps.run.m = B->m;
    B->steps.run.q = B->q;
    B->steps.run.k = B->k;
    if (kind == PAIRS) B->steps.run.pair = B->pair;
    return visit(&B->steps, work_steps, B->S) == HS_OK;
}

/* 1 - |phi|^2 of one step at node n of the line. */
static double missing(const hs_contour *line, double m, double q, int64_t n)
{
    hs_contour C = *line;
    hs_sums S[HS_CHUNKS];
    hs_pair pair = pair_of(m, q);
    double one = 1;
    C.run.b = 1;
    C.run.ruled = C.run.n_fits = 0;
    C.run.m = &m;
    C.run.q = &q;
    C.run.k = &one;
    if (C.run.pair) C.run.pair = &pair;
    return visit(&C, work_steps, S) ? NAN : -expm1(2 * S->re[n]);
}

/* log E (1+U)^a, or, of a real a, its mean without Taylor's polynomial below the order J. */
static void mean_of(double m, double q, double a, double b, int J, double *re, double *im)
{
    double sr = 0, si = 0, h = 0.04;
    double end = 12 + m * (fabs(a) + J), g;
    int j;
    for (g = -end; g < end; g += h) {
        double U = q * expm1(m * g - 0.5 * m * m), l = log1p(U), w = h * exp(-0.5 * g * g - HS_LOG_SQRT_2PI);
        double c = 1, sum = 0, far = 0;
        for (j = 1; J && j <= J + 60; j++) {
            if (j <= J) sum += c;
            else far += c;
            c *= (a - j + 1) / j * U;
        }
        if (J) sr += w * (fabs(U) < 0.5 ? far : exp(a * l) - sum);
        else sr += w * exp(a * l) * cos(b * l);
        si += w * exp(a * l) * sin(b * l);
    }
    *re = J ? sr : log(hypot(sr, si));
    *im = atan2(si, sr);
}

/* What orders.c says of one step, term by term [theory: compression.rest, compression.orders,
 * compression.small-near]. */
static void order_bounds(void)
{
    double m = log_between(0.05, 0.9), q = log_between(0.003, 0.6), r = uniform() < 0.5 ? 0 : log_between(0.01, 2);
    double A = between(-6, 12), turn = between(0, HS_PI), part = between(0.3, 1), re;
    double im, grown, b;
    double c[HS_ORDERS + 1] = {1, fabs(A) + r}, l[160] = {0}, sum = 0;
    int J = 4 + 2 * (int)(uniform() * 5), d, j;
    hs_fit f = {.q = q, .m = m, .factor = m * m, .count = 1};
    hs_orders O;
    own_orders_lay(&f, 1, &O);
    for (d = 2; d <= J; d++) c[d] = c[d - 1] * (fabs(A - (d - 1)) + r) / d;
    if (!((grown = own_orders_growth_upper(&O, A + r, work_rule)) < HUGE_VAL)) return;
    mean_of(m, q, 2 * (A + r - 4), 0, 0, &re, &im);
    if (A + r > 4) log_term("order-growth", log1p(fmax(1, exp(re))), log(grown));
    b = A + r * (uniform() < 0.5 ? -1 : 1);
    mean_of(m, q, b, 0, J, &re, &im);
    if (fabs(re) > 1e-200) log_term("order-rest", log(fabs(re)), log(c[J] * rest_upper(&O, A, r, J, grown)));
    mean_of(m * part, q, A + r * cos(turn), r * sin(turn), 0, &re, &im);
    term("order-size", hypot(re, im) / (part * part), own_orders_size_upper(&O, A, r, grown), 1e-12);
    for (d = 2; d < 160; d++) {
        l[d] = d < J ? c[d] * O.box[d] : 0;
        for (j = 2; j < J && j < d - 1; j++) l[d] += (double)(d - j) / d * l[d - j] * c[j] * O.box[j];
        if (d >= J) sum += l[d];
    }
    if (sum > 1e-200) log_term("order-later", log(sum), log(later_upper(&O, c, J)));
}

/* Nodes, tilts, upper ends and the decay of the rule against those of its steps. */
static void nodes(box *B, int kind)
{
    hs_contour *C = &B->rule;
    double less = 0, excess = 0, log_m, err;
    hs_sums fits;
    int64_t n;
    int i, j, st;
    if (!any(B, kind)) return;
    for (i = 0; i < 3; i++)
        term(NAME[kind][i ? ALIASES : K], i ? fmax(0, B->S->K[i] - B->R->K[i]) : fabs(B->S->K[0] - B->R->K[0]),
             B->R->fitted[i], B->S->err[i] + B->R->err[i] + B->S->inner[i] + B->R->inner[i]);
    for (i = 1; i < 8; i++) {
        n = C->N * i / 8;
        term(NAME[kind][NODES], hypot(B->S->re[n] - B->R->re[n], B->S->im[n] - B->R->im[n]), B->R->fit[n],
             B->S->round[n] + B->R->round[n] + B->S->node[n] + (B->R->node[n] - B->R->fit[n]));
    }
    for (j = 0; j < C->run.b; j++) {
        double m = B->shift[j], q = B->rate[j];
        st = kind == PAIRS ? hs_two_log_m_upper(&B->pair_rule[j], C->c, 12, work_rule, &log_m, &err)
                           : hs_log_m_upper(m, q, hs_contour_tilt(C, C->c), B->weight[j], work_rule, &log_m, &err);
        if (!st) excess += B->weight[j] * hs_excess(log_m, err);
    }
    term(NAME[kind][UPPER], fmax(0, B->S->K[0] - B->R->K[0]), hs_fit_upper(C, C->c, excess, work_rule),
         B->S->err[0] + B->R->err[0] + B->S->inner[0] + B->R->inner[0]);
    if (kind == SMALL) return; /* and no tail */
    memset(&fits, 0, sizeof fits);
    fits.fit = room(C->N + 1);
    n = (int64_t)((double)C->N * uniform());
    for (i = 0; i < C->run.b; i++) less += 0.5 * B->weight[i] * missing(C, B->shift[i], B->rate[i], n);
    for (i = 0; i < STEPS; i++) less -= 0.5 * B->k[i] * missing(C, B->m[i], B->q[i], n);
    if (!hs_fit_visit(C, work_rule, &fits)) term(NAME[kind][FAR], fmax(0, less), fmin(fits.slack, fits.far[0]), 1e-12);
    free(fits.fit);
}

typedef struct
{ /* of a run at a tilt: its K, K', K'', sum k E x^4, sum k (E x^3 + 2 B E x^2), and what they are off by */
    double K, mean, var;
    double fourth, side;
    double K_err, mean_err, var_err;
} near_sums;

static int sum_near(const hs_contour *C, int b, const double *m, const double *q, const double *k, double t,
                    near_sums *sum)
{
    hs_lent lent = {work_steps, hs_contour_work(STEPS, 1, HS_OUTER_MAX), 1, NULL};
    int i;
    memset(sum, 0, sizeof *sum);
    for (i = 0; i < b; i++) {
        double o[14], one = 1, sign = C->run.add ? -1 : 1;
        hs_run run = {.b = 1, .add = C->run.add, .m = m + i, .q = q + i, .k = &one};
        if (hs_saddle_cumulants(&run, t, &lent, o)) return 0;
        sum->K += k[i] * o[0];
        sum->mean += k[i] * o[2];
        sum->var += k[i] * o[3];
        sum->fourth += k[i] * (o[5] + 3 * o[3] * o[3]);
        sum->side += k[i] * (sign * o[4] + 2 * (sign * o[2] - log1p(-q[i])) * o[3]);
        sum->K_err += k[i] * (o[1] + o[13]);
        sum->mean_err += k[i] * o[10];
        sum->var_err += k[i] * o[11];
    }
    return 1;
}

/* What hs_fit_near claims, near the tilt of the line and far from it [theory: compression.small-near]. */
static void near(box *B, int small)
{
    double t;
    near_sums P, Q;
    hs_near N;
    const hs_contour *C = &B->rule;
    if (!any(B, small)) return;
    t = C->c * log_between(0.2, 1.5);
    if (hs_fit_near(B->fits, PARTS, C->run.add, t, work_rule, &N) || !(N.var < HUGE_VAL)) return;
    if (!sum_near(C, STEPS, B->m, B->q, B->k, t, &P) || !sum_near(C, C->run.b, B->shift, B->rate, B->weight, t, &Q))
        return;
    term(small ? "orders-near-k" : "near-k", fabs(P.K - Q.K), N.K, P.K_err + Q.K_err);
    term(small ? "orders-near-mean" : "near-mean", fabs(P.mean - Q.mean), N.mean, P.mean_err + Q.mean_err);
    term(small ? "orders-near-var" : "near-var", fabs(P.var - Q.var), N.var, P.var_err + Q.var_err);
    term(small ? "orders-near-fourth" : "near-fourth", fabs(P.fourth - Q.fourth), N.fourth, 1e-9 * P.fourth);
    term(small ? "orders-near-side" : "near-side", fabs(P.side - Q.side), N.side, 1e-9 * P.side);
}

/* The line's value; with errors of the nodes beside the rule's, as large as claimed. */
static void values(box *B, int what, int kind)
{
    hs_contour *C = &B->rule;
    hs_value v, w;
    double d = what ? log_between(1e-6, 0.1) : 0;
    int64_t n;
    if (!any(B, kind)) return;
    C->tail = B->steps.tail = 0;
    own_line_freeze(&B->steps, B->S);
    line_at(&B->steps, C->eps, &v);
    for (n = 0; n <= C->N; n++) {
        double y = (double)n * C->dy;
        double turn = B->R->im[n] - C->eps * y - atan2(y, C->c) - atan2(y, 1 + C->c);
        B->R->re[n] += d * cos(turn);
        B->R->im[n] -= d * sin(turn);
        B->R->node[n] += d;
    }
    own_line_freeze(C, B->R);
    line_at(C, C->eps, &w);
    v.value *= exp(v.log_scale - w.log_scale);
    ends_hold(w.lower, w.value, w.upper, w.inner + w.rounding + w.truncation + w.fit, w.alias_left, w.alias_right,
              C->s_left);
    if (what) term(NAME[kind][INNER], fabs(v.value - w.value), w.inner, w.fit + w.rounding + v.rounding + v.inner);
    else term(NAME[kind][VALUE], fabs(v.value - w.value), w.fit, w.rounding + v.rounding + w.inner + v.inner);
}

int main(int argc, char **argv)
{
    box *B = malloc(sizeof *B);
    int i;
    terms_begin(argc, argv);
    if (!B) return 2;
    work_steps = room(hs_contour_work(STEPS, 1, HS_OUTER_MAX));
    work_rule = room(hs_contour_work(POINTS, 1, HS_OUTER_MAX));
    for (i = 0; i < cases(4000); i++) {
        nodes(B, i % 2);
        values(B, i / 2 % 2, i % 2);
        if (i % 4 < 2) near(B, i % 2);
        if (i % 8 == 3) order_bounds();
        if (i % 8) continue;
        nodes(B, PAIRS);
        values(B, i / 8 % 2, PAIRS);
    }
    free(work_steps);
    free(work_rule);
    free(B);
    median("fit-k", 200, 600, 30);
    median("fit-aliases", 25, 40, 20);
    median("fit-nodes", 1400, 1000, 40);
    median("fit-upper", 200, 500, 30);
    median("fit-far", 40, 60000, 400);
    median("fit-value", 100, 2500, 150);
    median("fit-inner", 20, 1.1, 1.01);
    median("near-k", 100, 300, 25);
    median("near-mean", 100, 1000, 60);
    median("near-var", 100, 4000, 200);
    median("near-fourth", 80, 2e6, 10000);
    median("near-side", 80, 40000, 2000);
    median("orders-near-k", 150, 100, 10);
    median("orders-near-mean", 150, 200, 25);
    median("orders-near-var", 150, 600, 60);
    median("orders-near-fourth", 150, 4e6, 100000);
    median("orders-near-side", 120, 80000, 3000);
    median("orders-k", 500, 60, 10);
    median("orders-aliases", 4, 20, 10);
    median("orders-nodes", 2500, 150, 25);
    median("orders-upper", 400, 40, 10);
    median("orders-value", 200, 300, 40);
    median("orders-inner", 200, 1.1, 1.01);
    median("pairs-k", 80, 1500, 60);
    median("pairs-aliases", 100, 2500, 60);
    median("pairs-nodes", 400, 3000, 60);
    median("pairs-upper", 70, 1500, 60);
    median("pairs-far", 5, 60000, 400);
    median("pairs-value", 25, 3000, 120);
    median("pairs-inner", 5, 1.1, 1.01);
    median("order-growth", 100, 1.001, 1.001);
    median("order-rest", 100, 20, 2);
    median("order-size", 100, 1.5, 1.1);
    median("order-later", 100, 500, 40);
    median("end-lower", 200, 1 + 1e-6, 1 + 1e-6);
    median("end-upper", 200, 1 + 1e-6, 1 + 1e-6);
    return terms_end();
}
