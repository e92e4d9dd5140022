/* The outer contours of the hyperbola route: where they run, and bounds of the integrand on them.
 *
 * Symbols   a = x + iy  1+z (REMOVE) or -z (ADD);  s = eps or -eps;  K(a) = sum_i k_i log M_i(a);
 *           wall = sum_i k_i log(1-q_i) < s, the largest of its branches for a pair, 0 for one of two sides;
 *           G(a) = e^{K(a) - s a}/(a(a-1));
 *           delta = [e^eps for REMOVE] (1/2 pi i) int G da, upwards on Re a = c, c > 1 (REMOVE) or c < 0 (ADD): with
 *           z = a-1 or -a both have the kernel z(1+z) = a(a-1).
 *           a(v) = a0 + A sin(gamma + iv) = (a0 + A sin gamma cosh v) + i A cos gamma sinh v,  0 < gamma < pi/4: opens
 *           to the right in BOTH directions;  v -> v +- i beta is the same family with gamma -+ beta ("lo", "up").
 *           t      saddle of e^{K - s a}/(a(a-1)) at a = 1+t or -t; vertices chosen where the integrand has grown by
 *                  e^HS_HYP_GROWTH.
 *
 * (1) The line may be moved to a(v) [theory: hyperbola.contour, hyperbola.two-sided]. Poles 0 and 1: a real point of
 *     the family is a vertex a0 + A sin gamma', checked in hs_hyp_place to be > 1 (REMOVE) or < 0 (ADD) at both ends of
 *     the strip.
 * (2) Trapezoid in v, and its two norms N [theory: hyperbola.trapezoid].
 * (3) N by cells, whose corners are meeting points of tangents [theory: hyperbola.cells]. Each step and each cell may
 *     use its own inner path. The corners of the rightmost cell lie beyond its arc, where K may rise like e^{m^2
 *     x^2/2}: the vertex is placed that much before HS_HYP_GROWTH is reached.
 * (4) Beyond v_end [theory: hyperbola.tail].
 *
 * What it does not do: M itself (hyperbola_bound.c), the sum and the assembly (hyperbola.c). real_cgf, tilt, saddle are
 * estimates: any contour gives a proof, a bad one only a wide interval.
 */
#include "curve/hyperbola.h"
#include "law/twosided.h"
#include "line/saddle.h"
#include <math.h>
#include <string.h>

#define PI 3.141592653589793

/* K in a on the real axis; any accuracy will do. */
static hs_cgf real_cgf(hs_job *J, double a)
{
    hs_cgf sum = {0, 0, 0};
    int i;
    for (i = 0; i < J->b; i++)
        hs_cgf_add(&sum, J->k[i],
                   J->pair && J->pair[i].branches
                       ? hs_two_cgf_estimate(&J->pair[i], a - 1)
                       : hs_cgf_nearby(&J->coarse[i], J->m[i], J->q[i], a, J->coarse_work + 4 * HS_COARSE_MAX * i));
    return sum;
}

/* K at the tilt t, where a is 1+t or -t. */
hs_cgf hs_hyp_tilt(hs_job *J, double t)
{
    hs_cgf k = real_cgf(J, J->add ? -t : 1 + t);
    k.K1 *= J->add ? -1 : 1;
    return k;
}

static hs_cgf cgf_on_axis(void *self, double t) { return hs_hyp_tilt((hs_job *)self, t); }

/* saddle from s (have_s) or from log delta; sets J->t, J->s, J->k2 */
int hs_hyp_saddle(hs_job *J, int have_s, double log_delta)
{
    double sign = J->add ? -1 : 1;
    hs_saddle_search f = {cgf_on_axis,           J,         have_s, have_s ? sign * J->s : log_delta,
                          have_s ? 0.005 : 0.03, -HUGE_VAL, 1e8};
    hs_tilt at = {.t = J->t > 0 ? J->t : 1};
    if (hs_saddle_find(&f, &at)) return HS_NO_SADDLE;
    J->k2 = at.k.K2;
    J->s = sign * at.eps;
    J->t = fmax(at.t, 0.7 / sqrt(J->k2 + 1e-300));
    return HS_OK;
}

/* t' on the side of t given by dir where F - s.. has grown by HS_HYP_GROWTH; rough */
static double reach(hs_job *J, double dir, double limit)
{
    hs_cgf at = hs_hyp_tilt(J, J->t);
    double sg = J->add ? -1 : 1, base = at.K - sg * J->s * J->t - log(J->t) - log1p(J->t);
    double x, good = 0, step;
    int i;
    x = step = fmin(limit, sqrt(2 * HS_HYP_GROWTH / hs_saddle_bend(at.K2, J->t)));
    for (i = 0; i < 8; i++) {
        double t = J->t + dir * x;
        if (hs_hyp_tilt(J, t).K - sg * J->s * t - log(t) - log1p(t) - base < HS_HYP_GROWTH) {
            good = x;
            if (x >= limit) break;
            if (i > 2 && good > 0.8 * step) break;
            x = fmin(limit, i < 3 ? 1.6 * x : 1.15 * x);
        } else {
            step = x;
            x = good > 0 ? 0.5 * (x + good) : 0.6 * x;
            if (good > 0.85 * x) break;
        }
    }
    return good > 0 ? good : x;
}

int hs_hyp_place(hs_job *J)
{
    double less = reach(J, -1, HS_HYP_LEFT * J->t), far = reach(J, 1, 4 * J->t),
           more = J->add ? far : fmax((far - HS_HYP_STRETCH * less) / (1 + HS_HYP_STRETCH), 0.3 * far);
    double left = J->add ? -J->t - more : 1 + J->t - less, right = J->add ? -J->t + less : 1 + J->t + more;
    J->A = (right - left) / (sin(HS_HYP_GAMMA + HS_HYP_BETA) - sin(HS_HYP_GAMMA - HS_HYP_BETA));
    J->a0 = left - J->A * sin(HS_HYP_GAMMA - HS_HYP_BETA);
    J->a_s = J->a0 + J->A * sin(HS_HYP_GAMMA);
    left = J->a0 + J->A * sin(HS_HYP_GAMMA - HS_HYP_BETA);
    right = J->a0 + J->A * sin(HS_HYP_GAMMA + HS_HYP_BETA);
    /* the poles 0 and 1 stay on their side of the whole strip [theory: hyperbola.contour] */
    return J->A > 0 && (J->add ? right < -1e-9 * J->A : left > 1 + 1e-9 * J->A) ? HS_OK : HS_NO_SADDLE;
}

int hs_hyp_plan(hs_job *J)
{
    int i, r, st;
    double xm = J->add ? -J->a_s : J->a0 + 2.4 * J->A * sin(HS_HYP_GAMMA + HS_HYP_BETA);
    for (i = 0; i < J->branches; i++)
        for (r = 0; r < HS_HYP_PATHS; r++) {
            st = hs_path_plan(&J->path[i][r], &J->branch[i], r, J->add, tan(HS_HYP_GAMMA + HS_HYP_BETA), fmax(xm, 1),
                              J->t_inner);
            if (st) J->path[i][r].state = -1;
        }
    return HS_OK;
}

static int usable(hs_job *J, int i, int r, int strip)
{
    hs_path *p = &J->path[i][r];
    if (p->state == 0) hs_path_build(p, &J->mem, J->tmp);
    if (strip && p->state == 1) hs_path_build_strip(p, &J->mem, J->tmp);
    return strip ? p->state == 2 : p->state > 0 || p->state == -2;
}

/* log of the inner quadrature error of path r of branch i */
static double log_err_upper(hs_job *J, int i, int r, double x, double y)
{
    const hs_path *p = &J->path[i][r];
    double w = 2 * PI * p->d / p->h;
    double up = hs_line_log_upper(&p->up, x, y, J->tmp);
    double dn = p->mu1 > 0 ? hs_line_log_upper(&p->dn, x, y, J->tmp) : hs_line_log_upper(&p->up, x, -y, J->tmp);
    double e = hs_log_add(up, dn) - w + 1e-6; /* [theory: hyperbola.inner] */
    return hs_log_add(e, hs_line_log_ends_upper(&p->mid, x, y));
}

enum { BOUND, ERROR }; /* log B of path r, log of its inner quadrature error */

/* what is known of one path at vertices: vertex v in slot v % 3 */
typedef struct {
    int at[2][3];
    double known[2][3];
} cache;

static double at_vertex(hs_job *J, const hs_arc *C, int v, int i, int r, int kind, cache *T)
{
    int slot = v % 3;
    if (T->at[kind][slot] != v) {
        T->at[kind][slot] = v;
        T->known[kind][slot] = kind == ERROR ? log_err_upper(J, i, r, C->x[v], C->y[v])
                                             : hs_line_log_upper(&J->path[i][r].mid, C->x[v], C->y[v], J->tmp);
    }
    return T->known[kind][slot];
}

/* The largest value at the vertices of a cell, or any value of at least `enough`. */
static double worst(hs_job *J, const hs_arc *C, int cell, int i, int r, int kind, double enough, cache *T)
{
    double w = -HUGE_VAL;
    int j;
    for (j = 2; j >= 0 && w < enough; j--) w = fmax(w, at_vertex(J, C, cell + j, i, r, kind, T));
    return w;
}

static double log_kernel_upper(const hs_job *J, const hs_arc *C, int cell)
{
    double v1 = cell * HS_HYP_DV, v2 = v1 + HS_HYP_DV, sg = J->A * sin(C->gamma), y1 = J->A * cos(C->gamma) * sinh(v1);
    double xa = J->a0 + sg * cosh(v1), xb = J->a0 + sg * cosh(v2), x1 = fmin(xa, xb), x2 = fmax(xa, xb);
    double p = fmax(0, fmax(x1, -x2)), r = fmax(0, fmax(x1 - 1, 1 - x2));
    return log(J->A * cosh(v2)) - 0.5 * log((p * p + y1 * y1) * (r * r + y1 * y1));
}

/* Log of the bound of M of step i at vertex v, on the paths `cur` of its branches, weights rounded up. */
static double log_step(hs_job *J, const hs_arc *C, int v, int i, const int *cur, cache T[][HS_HYP_PATHS])
{
    double sum = -HUGE_VAL;
    int l;
    for (l = J->from[i]; l < J->from[i + 1]; l++) {
        double w = J->branch[l].w, b = at_vertex(J, C, v, l, cur[l], BOUND, &T[l][cur[l]]);
        if (w == 1) sum = b;
        else sum = hs_log_add(sum, b + log(w) + (J->branch[l].w_err + 8) * HS_U * (1 + fabs(log(w))));
    }
    return sum;
}

static void set_vertex(const hs_job *J, hs_arc *C, int j)
{
    /* [theory: hyperbola.cells] */
    double vm = j == 0 ? 0 : (j - 0.5) * HS_HYP_DV, f = j == 0 ? 1 : 1 / cosh(0.5 * HS_HYP_DV);
    C->x[j] = J->a0 + J->A * sin(C->gamma) * cosh(vm) * f;
    C->y[j] = J->A * cos(C->gamma) * sinh(vm) * f;
}

/* The path of branch l at the end of the arc, from `first` on, with its bound and both its rates; false where none
 * decays. */
static int end_path(hs_job *J, const hs_arc *C, int l, int first, double *phi, double *rate)
{
    const hs_path *path = J->path[l];
    double k = J->k[J->branch[l].step], best = HUGE_VAL;
    double room = 0.3 * (J->s - J->wall) * fmax(fabs(C->kap0), 1e-3) / (k * J->b);
    int r;
    for (r = first > 0 ? first : 1; r < HS_HYP_PATHS && (r <= first + 2 || best > 1e5); r++) {
        double at, steep = HUGE_VAL, score;
        if (!usable(J, l, r, 0)) continue;
        at = hs_line_log_upper(&path[r].mid, C->end_x, C->end_y, J->tmp);
        score = k * at;
        if (score < best) {
            steep = hs_line_rate_upper(&path[r].mid, C->kap1);
            if (steep - C->kap1 * path[0].floor > room) score += 1e6;
        }
        if (score < best) {
            best = score;
            *phi = at;
            rate[0] = hs_line_rate_upper(&path[r].mid, C->kap0);
            rate[1] = steep;
        } else if (score > best + 2 && best < 1e5) break;
    }
    return best < HUGE_VAL;
}

/* [theory: hyperbola.tail] */
static int arc_end(hs_job *J, hs_arc *C, int *cur)
{
    double v = C->n * HS_HYP_DV, sg = sin(C->gamma), cg = cos(C->gamma);
    int i, l;
    C->v_end = v;
    C->end_x = J->a0 + J->A * sg * cosh(v);
    C->end_y = J->A * cg * sinh(v);
    C->kap1 = sg / cg;
    C->kap0 = C->kap1 * tanh(v);
    C->end_phi = C->rate0 = C->rate1 = 0;
    for (i = 0; i < J->b; i++) {
        double sum = -HUGE_VAL, most[2] = {-HUGE_VAL, -HUGE_VAL};
        for (l = J->from[i]; l < J->from[i + 1]; l++) {
            double phi = 0, rate[2] = {0, 0}, w = J->branch[l].w;
            if (!end_path(J, C, l, cur[l], &phi, rate)) return HS_NO_DECAY;
            if (w != 1) phi += log(w) + (J->branch[l].w_err + 8) * HS_U * (1 + fabs(log(w)));
            sum = l > J->from[i] ? hs_log_add(sum, phi) : phi;
            most[0] = fmax(most[0], rate[0]); /* [theory: hyperbola.convex] */
            most[1] = fmax(most[1], rate[1]);
        }
        C->end_phi += J->k[i] * sum;
        C->rate0 += J->k[i] * most[0];
        C->rate1 += J->k[i] * most[1];
    }
    return HS_OK;
}

/* The path of branch i on cell c, from `first` on: the first one below `bar`, else the best of those that follow;
 * HS_HYP_PATHS if none. */
static int choose_path(hs_job *J, const hs_arc *C, int c, int i, int first, int kind, double bar, double *w, cache *T)
{
    int r, best = HS_HYP_PATHS;
    double last = *w, next, k = J->k[J->branch[i].step];
    *w = HUGE_VAL;
    for (r = first; r < HS_HYP_PATHS; r++) {
        if (best < r && r > best + (c > 0 ? 2 : 4) && (c == 0 || k * (*w - last) < 1)) break;
        if (!usable(J, i, r, kind == ERROR)) continue;
        next = worst(J, C, c, i, r, kind, *w, &T[r]);
        if (next < *w) {
            *w = next;
            best = r;
        }
        if (next < bar) break;
    }
    return best;
}

/* What the nodes need to know of cell c and of the path taken there; its part of the bound. */
static double enter(hs_job *J, hs_arc *C, int c, const int *cur, int kind, cache T[][HS_HYP_PATHS])
{
    double top = -HUGE_VAL;
    int i, j;
    C->kernel[c] = log_kernel_upper(J, C, c);
    for (j = 0; j < 3; j++) {
        C->phi[c][j] = 0;
        for (i = 0; i < J->b; i++) C->phi[c][j] += J->k[i] * log_step(J, C, c + j, i, cur, T);
        top = fmax(top, C->phi[c][j] - J->s * C->x[c + j]);
    }
    for (i = 0; i < J->branches; i++) {
        C->rung[c][i] = cur[i];
        C->log_e[c][i] = -HUGE_VAL; /* relative to e^{floor x}, whose log is affine: the bound stays convex */
        for (j = 0; j < 3 && kind == ERROR; j++)
            C->log_e[c][i] = fmax(C->log_e[c][i], at_vertex(J, C, c + j, i, cur[i], ERROR, &T[i][cur[i]]) -
                                                      C->x[c + j] * J->path[i][0].floor);
    }
    C->n = c + 1;
    return top + C->kernel[c];
}

/* Log of the inner error of branch l that no longer matters on cell c, judged on the paths `cur`: it adds less than
 * e^(log_floor - 1), and k times its ratio to M is small. */
static double fine_error(hs_job *J, const hs_arc *C, int c, const int *cur, int l, double log_floor,
                         cache T[][HS_HYP_PATHS])
{
    double level = -HUGE_VAL, low = HUGE_VAL;
    int i, j, own = J->branch[l].step;
    for (i = 0; i < J->branches; i++)
        if (!usable(J, i, cur[i], 0)) return -HUGE_VAL;
    for (j = 0; j < 3; j++) {
        double sum = -J->s * C->x[c + j];
        for (i = 0; i < J->b; i++) {
            double w = log_step(J, C, c + j, i, cur, T);
            sum += J->k[i] * w;
            if (i == own) low = fmin(low, w);
        }
        level = fmax(level, sum);
    }
    level += log_kernel_upper(J, C, c);
    low -= log(J->k[own]) + log(J->branch[l].w);
    return level < HUGE_VAL ? low + fmin(log_floor - 1 - level, -3) : -HUGE_VAL;
}

/* Cells outwards: for nodes (kind ERROR) until the bound is below log_floor; for the norm (kind BOUND) as soon as
 * the rest adds little. A path is looked for where it matters: where the inner error would be felt, where the cell
 * adds to the norm, where decay stops. */
int hs_hyp_march(hs_job *J, hs_arc *C, double gamma, int kind, double log_floor)
{
    cache T[HS_HYP_MAX_STEPS][HS_HYP_PATHS];
    double w[HS_HYP_MAX_STEPS] = {0}, level = HUGE_VAL, high = -HUGE_VAL, tail;
    int cur[HS_HYP_MAX_STEPS] = {0}, i, c, st;
    memset(T, -1, sizeof T);
    C->gamma = gamma;
    C->n = 0;
    set_vertex(J, C, 0);
    set_vertex(J, C, 1);
    for (i = 0; i < J->branches && kind == ERROR; i++) cur[i] = J->up.rung[0][i];
    for (c = 0; c < HS_HYP_CELLS; c++) {
        set_vertex(J, C, c + 2);
        for (i = 0; i < J->branches; i++) {
            double bar = kind == ERROR                          ? fine_error(J, C, c, cur, i, log_floor, T)
                         : c > 0 && level < high - HS_HYP_QUIET ? w[i] - 1 / J->k[J->branch[i].step]
                                                                : -HUGE_VAL;
            cur[i] = choose_path(J, C, c, i, cur[i], kind, bar, &w[i], T[i]);
            if (c == 0 && !(w[i] < bar) && kind == ERROR) cur[i] = choose_path(J, C, c, i, 0, kind, bar, &w[i], T[i]);
            if (cur[i] == HS_HYP_PATHS) return HS_NO_PATH;
        }
        level = enter(J, C, c, cur, kind, T);
        if (!(level < HUGE_VAL)) return HS_NO_PATH;
        high = fmax(high, level);
        if (c < 3 || level > (kind == ERROR ? log_floor : high - HS_HYP_QUIET)) continue;
        st = arc_end(J, C, cur);
        tail = st == HS_OK ? hs_hyp_log_tail_upper(J, C, J->s, 0) : HUGE_VAL;
        if (tail < (kind == ERROR       ? log_floor + 2
                    : level < log_floor ? HUGE_VAL
                                        : high) ||
            level < log_floor - HS_HYP_DEEP)
            return st;
    }
    return HS_NO_DECAY;
}

/* log of the bound on int_{v_end}^inf |G| |da|/dv dv, one side; with h > 0 on the sum over any nodes beyond v_end */
double hs_hyp_log_tail_upper(const hs_job *J, const hs_arc *C, double s, double h)
{
    double r = fmin(s * C->kap0 - C->rate0, s * C->kap1 - C->rate1);
    if (!(r > 0)) return HUGE_VAL;
    r = fmin(1 / r, C->end_y) / cos(C->gamma) + h * J->A * cosh(C->v_end); /* integral, and h times its first value */
    return C->end_phi - s * C->end_x + log(r / (C->end_y * C->end_y)) + 1e-6;
}

/* log of (1/2 pi) int |G da| over a whole shifted hs_arc */
double hs_hyp_log_norm_upper(const hs_job *J, const hs_arc *C, double s)
{
    double term[HS_HYP_CELLS], tail = hs_hyp_log_tail_upper(J, C, s, 0), top = tail, sum;
    int c;
    if (!(tail < HUGE_VAL)) return HUGE_VAL;
    for (c = 0; c < C->n; c++) {
        const double *phi = C->phi[c], *x = C->x + c;
        term[c] = fmax(fmax(phi[0] - s * x[0], phi[1] - s * x[1]), phi[2] - s * x[2]) + C->kernel[c] + log(HS_HYP_DV);
        top = fmax(top, term[c]);
    }
    for (sum = exp(tail - top), c = 0; c < C->n; c++) sum += exp(term[c] - top);
    return top + log(sum / PI) + 1e-5;
}
