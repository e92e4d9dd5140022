/* check_rates_terms.c - what fit.c claims of rules over sampling rates: the interpolation of steps between one or two
 * rates at their own shifts, with weights of either sign, and a tail of the steps at the lowest rate.
 *
 * References: the same nodes, tilts and frequencies with the steps themselves.
 */
#include "line/line.h"
#include "terms.h"

enum { STEPS = 5, POINTS = 2, PARTS = 6, ROWS = STEPS * (POINTS + 1) };

typedef struct { /* steps of one span of rates, and their rule: the rows of the tail, then those of the nodes */
    double m[STEPS], q[STEPS], k[STEPS];
    double outline[3 * STEPS];
    double shift[ROWS], rate[ROWS], weight[ROWS];
    hs_fit fits[PARTS + 1];
    hs_contour steps, rule;
    hs_sums S[HS_CHUNKS], R[HS_CHUNKS];
} span;

static double *work_steps, *work_rule;

/* lambda of [theory: compression.rates-tail]. */
static double tail_loss(double ratio, double m)
{
    double worst = 0, part = 1 - 1 / ratio, step = 3 * m * m / 4000;
    int i;
    for (i = 0; i < 4000; i++) {
        double g = log1p(part * expm1((i + 1) * step));
        worst = fmax(worst, g * fmax(0, 1.5 - (2 * i * step - g) / (2 * m * m)));
    }
    return log(ratio) + worst;
}

/* The rows of fit.c: ellipses about the span, as far as the theory goes [theory: compression.rates, compression.grid],
 * and the loss of the tail. How many they are. */
static int lay_fits(span *B, double low, double high, int points, double sizes, double total)
{
    static const double part[PARTS] = {0.97, 0.8, 0.6, 0.45, 0.3, 0.2};
    double middle = 0.5 * (low + high), half = 0.5 * (high - low), top = 0;
    int i, n = 0;
    for (i = 0; i < STEPS; i++) top = fmax(top, B->m[i]);
    for (i = 0; i < PARTS; i++) {
        double rho = part[i] * (middle + sqrt(low * high)) / half, a = half * 0.5 * (rho + 1 / rho),
               b = half * 0.5 * (rho - 1 / rho);
        double r = middle + a, least = middle - a, weight = 2 * pow(rho, -points) / (1 - 1 / rho) * (total + sizes);
        double turn;
        if (!(least > 0 && r < 1 && r * r < 2 * least)) continue;
        turn = fmax(atan2(b, sqrt(middle * middle - a * a)), atan2(b, 1 - r));
        B->fits[n++] = (hs_fit){0, r, top, 1, weight * (1 + 1e-9), 0, turn, least, HS_FIT_NODES, 1};
    }
    B->fits[n] = (hs_fit){-1, high, top, exp(-2 * tail_loss(high / low, top)), 0, 0, 0, 0, HS_FIT_LOSS, 1};
    return n + 1;
}

/* Any steps and their rule; how many rows of fit.c it has. */
static int any_rule(span *B, int points)
{
    double low = log_between(0.001, 0.3), high = fmin(low * log_between(1.0003, 1.3), 0.5), var = log_between(0.2, 30);
    double scale = log_between(0.1, 1.5), each, total = 0;
    double sizes = 0, at[POINTS];
    int i, b, c, row = STEPS;
    each = fmax(1, var / (STEPS * low * high * expm1(scale * scale)));
    for (b = 0; b < points; b++) at[b] = 0.5 * (low + high) + 0.5 * (high - low) * cos(HS_PI * (b + 0.5) / points);
    for (i = 0; i < STEPS; i++) {
        B->m[i] = scale * between(0.5, 1);
        B->q[i] = between(low, high);
        B->k[i] = ceil(each * between(0.2, 2));
        B->outline[i] = B->shift[i] = B->m[i];
        B->outline[STEPS + i] = B->q[i];
        B->outline[2 * STEPS + i] = B->weight[i] = B->k[i];
        B->rate[i] = low;
        total += B->k[i];
        for (b = 0; b < points; b++, row++) {
            double weight = B->k[i];
            for (c = 0; c < points; c++)
                if (c != b) weight *= (B->q[i] - at[c]) / (at[b] - at[c]);
            B->shift[row] = B->m[i];
            B->rate[row] = at[b];
            B->weight[row] = weight;
            sizes += fabs(weight);
        }
    }
    return lay_fits(B, low, high, points, sizes, total);
}

static int visit(hs_contour *C, double *work, hs_sums *S)
{
    int st = hs_contour_visit(C, work, S);
    C->S = S;
    return st;
}

/* Any steps, the line as planned by them, and the nodes of both on it. */
static int any(span *B)
{
    int points = 1 + (uniform() < 0.3);
    hs_contour *C = &B->rule;
    hs_run run;
    memset(B, 0, sizeof *B);
    run = (hs_run){.b = STEPS * (points + 1), .ruled = STEPS * (points + 1), .light = STEPS * points, .apart = 1};
    run.n_fits = any_rule(B, points);
    run.add = uniform() < 0.4;
    run.m = B->shift;
    run.q = B->rate;
    run.k = B->weight;
    run.fits = B->fits;
    run.n_outline = STEPS;
    run.outline = B->outline;
    C->run = hs_outline(&run);
    C->n_threads = 1;
    C->n_max = HS_OUTER_MAX;
    C->rtol = 1e-10;
    C->T0 = 30;
    if (hs_contour_place(C, 0, -between(1, 9), 1, work_rule) || hs_contour_plan(C, work_rule)) return 0;
    C->run = run;
    C->chunks = 1;
    if (!(C->N < 3000) || visit(C, work_rule, B->R)) return 0;
    B->steps = *C;
    B->steps.run = (hs_run){.b = STEPS, .add = run.add, .m = B->m, .q = B->q, .k = B->k};
    return visit(&B->steps, work_steps, B->S) == HS_OK;
}

/* 1 - |phi|^2 of one step at node n of the line. */
static double missing(const hs_contour *line, double m, double q, int64_t n)
{
    hs_contour C = *line;
    hs_sums S[HS_CHUNKS];
    double one = 1;
    C.run = (hs_run){.b = 1, .add = line->run.add, .m = &m, .q = &q, .k = &one};
    return visit(&C, work_steps, S) ? NAN : -expm1(2 * S->re[n]);
}

/* Nodes, tilts and upper ends of the rule against those of its steps. */
static void nodes(span *B)
{
    hs_contour *C = &B->rule;
    double excess = 0, tail = 0, whole = 0;
    double noise, log_m, err;
    int64_t n;
    int i;
    if (!any(B)) return;
    for (i = 0; i < 3; i++)
        term(i ? "rates-upper" : "rates-k", i ? fmax(0, B->S->K[i] - B->R->K[i]) : fabs(B->S->K[0] - B->R->K[0]),
             B->R->fitted[i], B->S->err[i] + B->R->err[i] + B->S->inner[i] + B->R->inner[i]);
    for (i = 1; i < 8; i++) {
        n = C->N * i / 8;
        term("rates-nodes", hypot(B->S->re[n] - B->R->re[n], B->S->im[n] - B->R->im[n]), B->R->fit[n],
             B->S->round[n] + B->R->round[n] + B->S->node[n] + (B->R->node[n] - B->R->fit[n]));
    }
    for (i = STEPS; i < C->run.b; i++)
        if (!hs_log_m_upper(B->shift[i], B->rate[i], hs_contour_tilt(C, C->c), fabs(B->weight[i]), work_rule, &log_m,
                            &err))
            excess += fmax(B->weight[i], 0) * hs_excess(log_m, err);
    noise = B->S->err[0] + B->R->err[0] + B->S->inner[0] + B->R->inner[0];
    term("rates-upper", fmax(0, B->S->K[0] - B->R->K[0]), hs_fit_upper(C, C->c, excess, work_rule), noise);
    n = (int64_t)((double)C->N * uniform());
    for (i = 0; i < STEPS; i++) {
        tail += 0.5 * B->weight[i] * missing(C, B->shift[i], B->rate[i], n);
        whole += 0.5 * B->k[i] * missing(C, B->m[i], B->q[i], n);
    }
    term("rates-tail", B->R->share * tail, whole, 1e-12);
}

int main(int argc, char **argv)
{
    span *B = malloc(sizeof *B);
    int i;
    terms_begin(argc, argv);
    if (!B) return 2;
    work_steps = room(hs_contour_work(STEPS, 1, HS_OUTER_MAX));
    work_rule = room(hs_contour_work(ROWS, 1, HS_OUTER_MAX));
    for (i = 0; i < cases(8000); i++) nodes(B);
    free(work_steps);
    free(work_rule);
    free(B);
    median("rates-k", 700, 200, 50);
    median("rates-nodes", 2000, 1000, 250);
    median("rates-upper", 100, 400, 60);
    median("rates-tail", 40, 3, 1.2);
    return terms_end();
}
