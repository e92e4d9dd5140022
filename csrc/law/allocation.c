/* allocation.c - the transform of one epoch of random allocation: a record takes part in one of t steps, drawn
 * uniformly.
 *
 * Symbols. v = m^2, X lognormal of mean one, log X ~ N(-v/2, v); S = X_1 + .. + X_t; Q: all X so, P: one of them times
 *   e^v; loss log(S/t) under P for REMOVE, and its negative under Q for ADD. F(z) = E_P (S/t)^z, so that M(z) = F(z)
 *   for REMOVE, F(-1-z) for ADD. n an order, c > -n, lam = n + c, nu = lam + iy; a = sqrt(t)/m; w = x + i th; s =
 *   e^w/t; psi_j(s) = E X^j e^{-sX}, phi = psi_0, mu_j = psi_j(0) = e^{j(j-1)v/2}. u = 2^-53.
 *
 * Formulas [theory: allocation.mellin].
 *     F(-c-iy) = (1/Gamma(nu)) int e^{nu w} H(w) dw,  H(w) = E_P (S/t)^n exp(-e^w S/t)
 *              = t^-n n! [x^n] (sum psi_j x^j/j!)^{t-1} (sum psi_{j+1} x^j/j!),
 *   the w-integral by the trapezoid rule of mesh h on a line Im w = th, near arg nu, as 1/Gamma(nu) grows like e^{pi
 *   y/2}; psi_j by the trapezoid rule of mesh H in the normal variable, on the line Im g = -tau.
 *   H knows of no tilt: allocation_table.c makes e^{from w} H at the nodes of lines. Times e^{(lam - from) w} they
 *   serve all lam of a range, in this call and in later ones.
 *   |F(-c-iy)| <= F(-c) e^{-y^2/(2a^2)} [theory: allocation.decay].
 *
 * Error claims. Every value carries a bound, the sum of
 *   nodes     that of the table's nodes;
 *   aliases   of the w-sum, Gamma's decay times that of F [theory: allocation.aliases];
 *   ends      of the w-sum [theory: allocation.ends];
 *   rounding  carried along term by term, first order in u with 2% to spare.
 *
 * What it does not do: participations in more than one step.
 */
#include "law/allocation.h"

#define MORE 1.02 /* bounds of first order in u */
#ifndef DEPTH
#define DEPTH 42.0 /* nats that quadratures and frequencies are made for; tests make it smaller */
#endif
#ifndef NEAR
#define NEAR 22.0 /* the same where a contour is placed */
#endif
enum { LANES = 16, BLOCKS = 64 }; /* nodes of a line are a multiple of LANES; blocks whose phases are made together */

/* e^{dx} of a line's nodes, the parts of their weights, and the sums of the head: `change` is lam - from. e^{dx} is
 * that of the first node of a block times that of a place in it. */
HS_CLONES static void weigh_line(const double *restrict g, int64_t count, double first, double h, double change,
                                 double *restrict wr, double *restrict wi, double *restrict sums)
{
    double size[LANES] = {0}, moved[LANES] = {0}, up[LANES];
    int64_t j;
    int i;
    for (i = 0; i < LANES; i++) up[i] = hs_exp(change * (i * h));
    for (j = 0; j < count; j += LANES) {
        double x = first + (double)j, f0 = hs_exp(change * (x * h));
        double off = HS_U * (4 * (fabs(change) * h * (fabs(x) + LANES)) + 16 + (double)count / LANES + LANES);
        for (i = 0; i < LANES; i++) {
            double f = f0 * up[i], r = g[j + i] * f, s = g[count + j + i] * f, mod = fabs(r) + fabs(s);
            wr[j + i] = r;
            wi[j + i] = s;
            size[i] += g[2 * count + j + i] * f + mod * off;
            moved[i] += mod * (fabs(first) + (double)(j + i)) * h; /* how its phase is formed */
        }
    }
    for (i = 1; i < LANES; i++) {
        size[0] += size[i];
        moved[0] += moved[i];
    }
    sums[0] = size[0];
    sums[1] = moved[0];
}

/* The weights of line i, in the order of its nodes. */
static double *weights_of(const hs_allocation *A, int i)
{ return A->weights + 2 * (A->start[i] - i * HS_LINE_HEAD) / 3; }

/* One line at the tilt lam. */
static int line_at_tilt(hs_allocation *A, int i)
{
    double *line = A->g + A->start[i], *w = weights_of(A, i), first = line[HS_LINE_FIRST], count = line[HS_LINE_COUNT];
    double log_cos = log(cos(line[HS_LINE_ANGLE])), change = A->lam - A->from;
    double left, right, sums[2];
    if (!(fabs(change) * fmax(fabs(first), fabs(first + count)) * A->h < 600)) return HS_OUT_OF_RANGE;
    weigh_line(line + HS_LINE_HEAD, (int64_t)count, first, A->h, change, w, w + (int64_t)count, sums);
    left = hs_allocation_left_upper(A, (first - 1) * A->h, log_cos) - A->log_gamma;
    right = hs_allocation_right_upper(A, (first + count) * A->h, log_cos) - A->log_gamma;
    line[HS_LINE_SIZE] = sums[0] * exp(line[HS_LINE_TOP] - A->log_gamma) * MORE;
    line[HS_LINE_MOVED] = sums[1] * exp(line[HS_LINE_TOP] - A->log_gamma) * 4 * HS_U;
    line[HS_LINE_MISS] = (exp(left) + exp(right)) * (1 + 1e-6);
    return HS_OK;
}

/* cos and sin of x0 + j step, j = 0, 1, .. below count. */
HS_CLONES static void turns_of(double x0, double step, int count, double *restrict co, double *restrict si)
{
    int j;
    for (j = 0; j < count; j++) {
        double c, s;
        hs_cis(x0 + j * step, &c, &s);
        co[j] = c;
        si[j] = s;
    }
}

/* Adds to re, im in every lane the nodes of `blocks` blocks, turned by the phase of their block. */
HS_CLONES static void turn_blocks(const double *restrict gr, const double *restrict gi, int blocks,
                                  const double *restrict co, const double *restrict si, double *restrict re,
                                  double *restrict im)
{
    double a[LANES], b[LANES];
    int i, k;
    for (i = 0; i < LANES; i++) a[i] = b[i] = 0;
    for (k = 0; k < blocks; k++) {
        const double c = co[k], s = si[k];
        for (i = 0; i < LANES; i++) {
            const double r = gr[k * LANES + i], m = gi[k * LANES + i];
            a[i] += r * c - m * s;
            b[i] += r * s + m * c;
        }
    }
    for (i = 0; i < LANES; i++) {
        re[i] += a[i];
        im[i] += b[i];
    }
}

/* sum g e^{iyx} over the nodes of a line: in every lane over the first nodes of blocks, then over lanes. */
static void phases(const double *gr, const double *gi, int64_t count, double x0, double step, double *re, double *im)
{
    double a[LANES] = {0}, b[LANES] = {0}, co[BLOCKS], si[BLOCKS];
    int64_t j;
    int i;
    for (j = 0; j < count; j += BLOCKS * LANES) {
        int blocks = (int)(count - j < BLOCKS * LANES ? (count - j) / LANES : BLOCKS);
        turns_of(x0 + (double)j * step, LANES * step, blocks, co, si);
        turn_blocks(gr + j, gi + j, blocks, co, si, a, b);
    }
    turns_of(0, step, LANES, co, si);
    for (*re = *im = 0, i = 0; i < LANES; i++) {
        *re += a[i] * co[i] - b[i] * si[i];
        *im += a[i] * si[i] + b[i] * co[i];
    }
}

/* F(-c-iy) over e^log_f within err, for y >= 0: what log_f is off by is no error of a sum of these. */
void hs_allocation_value(const hs_allocation *A, double y, double *re, double *im, double *err)
{
    int i = A->turn > 0 ? (int)fmin(floor(asinh(y / A->lam) / A->turn + 0.5), A->lines - 1) : 0;
    const double *line = A->g + A->start[i];
    int64_t count = (int64_t)line[HS_LINE_COUNT];
    double th = line[HS_LINE_ANGLE], x0 = line[HS_LINE_FIRST] * A->h, gr, gi;
    double d, sr, si, up;
    double ratio, co, sn, top = line[HS_LINE_TOP] - A->log_gamma;
    const double *w = weights_of(A, i);
    *re = *im = 0;
    *err = HUGE_VAL;
    if (!(y * (fabs(x0) + (double)count * A->h) < 8e5)) return;
    d = hs_allocation_log_gamma(A->lam, y, A->w0, &gr, &gi) + A->d_gamma;
    phases(w, w + count, count, y * x0, y * A->h, &sr, &si);
    ratio = A->log_gamma - gr; /* log Gamma(lam)/|Gamma(nu)| */
    gi -= (A->lam - A->from) * th;
    up = exp(ratio - y * th + top - A->log_f);
    co = cos(gi);
    sn = -sin(gi);
    *re = up * (sr * co - si * sn);
    *im = up * (sr * sn + si * co);
    d += HS_U * (8 * (fabs(ratio) + y * th + fabs(line[HS_LINE_TOP]) + fabs(A->log_gamma) + fabs(A->log_f) + fabs(gi) +
                      A->lam) +
                 20);
    up = exp(ratio - y * th - A->log_f);
    *err = up * (line[HS_LINE_SIZE] + line[HS_LINE_MISS] + line[HS_LINE_MOVED] * y) + hypot(*re, *im) * d +
           hs_allocation_aliases_upper(A, y, th, ratio);
    *err *= MORE;
}

/* About psi(x) - log x and psi'(x), for estimates. */
static void digamma(double x, double w0, double *first, double *second)
{
    double r;
    *first = *second = 0;
    for (; x < 12; x += 1) {
        *first -= 1 / x;
        *second += 1 / (x * x);
    }
    r = 1 / (x * x);
    *first += log(x) - w0 - 0.5 / x - r / 12 + r * r / 120 - r * r * r / 252;
    *second += 1 / x + 0.5 * r + r / x * (1.0 / 6 - r / 30 + r * r / 42 - r * r * r / 30);
}

/* log F(-c) from the line th = 0, with mean and variance. */
static int real_value(hs_allocation *A)
{
    const double *line = A->g, *gr = A->weights;
    double sum = 0, mean = 0, var = 0, f;
    double f1, total, miss, x;
    double top = line[HS_LINE_TOP] - A->log_gamma;
    int64_t j, count = (int64_t)line[HS_LINE_COUNT];
    for (j = 0; j < count; j++) sum += gr[j];
    for (j = 0; j < count; j++) mean += gr[j] / sum * (line[HS_LINE_FIRST] + (double)j) * A->h;
    for (j = 0; j < count; j++) {
        x = (line[HS_LINE_FIRST] + (double)j) * A->h - mean;
        var += gr[j] / sum * x * x;
    }
    if (!(sum > 0)) return HS_OUT_OF_RANGE;
    total = exp(top) * sum;
    A->log_f = top + log(sum);
    miss = (line[HS_LINE_SIZE] + line[HS_LINE_MISS]) / total;
    miss += hs_allocation_aliases_upper(A, 0, 0, 0);
    A->d_f = miss < 0.5 ? miss / (1 - miss) + A->d_gamma +
                              HS_U * (6 * fabs(line[HS_LINE_TOP]) + fabs(A->log_gamma) + 8 * fabs(A->log_gamma) + 30)
                        : HUGE_VAL;
    digamma(A->lam, A->w0, &f, &f1);
    A->mean = f - mean;
    A->var = fmax(var - f1, 0);
    return A->d_f < 0.5 ? HS_OK : HS_TOO_WIDE;
}

/* F on Re z = -c by the lines of a table whose range holds n + c. */
int hs_allocation_turn(hs_allocation *A, double c)
{
    double im;
    int i, st;
    if (A->c == c) return HS_OK;
    A->c = NAN;
    A->lam = A->n + c;
    A->d_gamma = hs_allocation_log_gamma(A->lam, 0, A->w0, &A->log_gamma, &im);
    for (i = 0; i < A->lines; i++)
        if ((st = line_at_tilt(A, i))) return st;
    if ((st = real_value(A))) return st;
    A->c = c;
    return HS_OK;
}

/* What a law keeps: tables of the real line, one of rotated lines, and scratch. */
typedef struct {
    hs_allocation *real, *tilted;
    double *lines;
} layout;

enum { OBJECT = (sizeof(hs_allocation) + sizeof(double) - 1) / sizeof(double), WEIGHTS = 2 * HS_ALLOCATION_FEW / 3 };

static layout parts(double *work)
{
    layout o = {(hs_allocation *)work, (hs_allocation *)work + HS_ALLOCATION_REAL, 0};
    double *few = work + (HS_ALLOCATION_REAL + 1) * OBJECT;
    int i;
    o.lines = few + HS_ALLOCATION_REAL * (HS_ALLOCATION_FEW + WEIGHTS);
    for (i = 0; i <= HS_ALLOCATION_REAL; i++, few += HS_ALLOCATION_FEW + WEIGHTS) {
        o.real[i].g = few;
        o.real[i].weights = few + (i < HS_ALLOCATION_REAL ? HS_ALLOCATION_FEW : HS_ALLOCATION_ROOM);
        o.real[i].scratch = o.lines + HS_ALLOCATION_ROOM + HS_ALLOCATION_WEIGHTS;
    }
    return o;
}

int64_t hs_allocation_work(void)
{
    return (HS_ALLOCATION_REAL + 1) * OBJECT + HS_ALLOCATION_REAL * (HS_ALLOCATION_FEW + WEIGHTS) + HS_ALLOCATION_ROOM +
           HS_ALLOCATION_WEIGHTS + HS_ALLOCATION_SCRATCH;
}

/* What a table is of: two tables of one key are the same. */
typedef struct {
    double m, t, centre, part;
    double y_max, depth;
} key_of_table;

static int same_key(const hs_allocation *A, const key_of_table *k)
{
    return A->m == k->m && A->t == k->t && A->centre == k->centre && A->part == k->part && A->y_max == k->y_max &&
           A->depth == k->depth;
}

/* Tables are made at tilts of a grid, whose step is a power of 2 near what they reach: which one serves c, and so every
 * answer, is the same whatever was asked before. */
static double centre_of(const key_of_table *k, double c)
{
    double wide, step;
    int e;
    hs_allocation_range(k->m, k->t, c, k->y_max, k->part, &wide);
    frexp(1.4 * wide, &e);
    step = ldexp(0.5, e);
    return step * floor(c / step + 0.5);
}

/* The table of a key among `count`, made in place of that which was not used for longest where there is none. */
static hs_allocation *table_of(hs_allocation *A, int count, const key_of_table *k, int64_t room)
{
    hs_allocation *found = A;
    int i, last = 0;
    for (i = 0; i < count; i++) {
        last = A[i].used > last ? A[i].used : last;
        if (A[i].used < found->used) found = &A[i];
    }
    for (i = 0; i < count; i++)
        if (same_key(&A[i], k)) found = &A[i];
    found->used = last + 1;
    if (same_key(found, k)) return found;
    found->m = k->m;
    found->t = k->t;
    found->centre = k->centre;
    found->part = k->part;
    found->y_max = k->y_max;
    found->depth = k->depth;
    hs_allocation_table(found, room);
    return found;
}

/* The table that holds c, turned to c: with all tilts that are within reach, or a tenth of them, which reaches
 * further. */
static int turned_table(hs_allocation *A, int count, key_of_table k, double c, int64_t room, hs_allocation **found)
{
    static const double parts[2] = {1, 0.1};
    double wide;
    int i, n;
    for (i = 0; i < 2; i++) {
        k.part = parts[i];
        n = hs_allocation_range(k.m, k.t, c, k.y_max, k.part, &wide);
        if (!(n + c > 0.5)) return HS_OUT_OF_RANGE;
        k.centre = centre_of(&k, c);
        n = hs_allocation_range(k.m, k.t, k.centre, k.y_max, k.part, &wide);
        if (!(fabs((n + c) - (n + k.centre)) <= wide)) continue;
        *found = table_of(A, count, &k, room);
        if ((*found)->lines) return hs_allocation_turn(*found, c);
    }
    return HS_TOO_MANY_NODES;
}

/* F(-c) by a table of the real line. */
static int real_at(layout o, double m, double t, double c, double depth, hs_allocation **found)
{
    const key_of_table k = {m, t, 0, 0, 0, depth};
    return turned_table(o.real, HS_ALLOCATION_REAL, k, c, HS_ALLOCATION_FEW, found);
}

/* Lines for frequencies up to y at c: up to the next root of a root of 2, for the same reason. */
static int tilted_at(layout o, double m, double t, double c, double y, hs_allocation **found)
{
    const double reach = sqrt(2 * t * DEPTH) / m;
    const key_of_table k = {m, t, 0, 0, reach * exp2(0.25 * ceil(4 * log2(y / reach))) * (1 + 1e-9), DEPTH};
    return turned_table(o.tilted, 1, k, c, HS_ALLOCATION_ROOM, found);
}

static double at_tilt(const hs_law *w, double t) { return w->add ? 1 + t : -t; }

static void values_of(const hs_law *w, const hs_allocation *A, hs_law_value *out)
{
    out->K = A->log_f;
    out->err = A->d_f;
    out->mean = w->add ? -A->mean : A->mean;
    out->var = A->var;
}

/* K with its error, mean and variance of the loss tilted by t, to NEAR nats, or DEPTH where rare jumps make that too
 * few; an error of HUGE_VAL where it is out of reach. */
void hs_allocation_estimate(const hs_law *w, double t, hs_law_value *out)
{
    hs_allocation *A;
    memset(out, 0, sizeof *out);
    out->err = HUGE_VAL;
    if (!real_at(parts(w->allocation), w->m, w->q, at_tilt(w, t), NEAR, &A)) values_of(w, A, out);
    if (!(out->err < 1e-3) && !real_at(parts(w->allocation), w->m, w->q, at_tilt(w, t), DEPTH, &A))
        values_of(w, A, out);
}

/* The same, and to DEPTH nats at the tilt of the lines, once there are some. */
void hs_allocation_cgf(const hs_law *w, double t, hs_law_value *out)
{
    if (w->var_upper > 0 && w->c == t) values_of(w, parts(w->allocation).tilted, out);
    else hs_allocation_estimate(w, t, out);
}

/* E (L-b)^2 <= (E e^{h(L-b)} + E e^{-h(L-b)} - 2)/h^2 [theory: allocation.variance]. */
static double variance_upper(const hs_law *w, double c, const hs_law_value *at)
{
    double h = 0.25 / sqrt(at->var), best = HUGE_VAL, sum;
    hs_law_value up, down;
    int it;
    for (it = 0; it < 6 && !(best < HUGE_VAL); it++, h *= 0.4) {
        hs_allocation_estimate(w, c + h, &up);
        hs_allocation_estimate(w, c - h, &down);
        sum = expm1(up.K - at->K - h * at->mean + up.err + at->err) +
              expm1(down.K - at->K + h * at->mean + down.err + at->err);
        sum += 16 * HS_U * (1 + fabs(at->K) + fabs(h * at->mean));
        if (up.err < 0.1 && down.err < 0.1 && sum > 0) best = sum / (h * h) * (1 + 1e-9);
    }
    return best;
}

/* Lines for all frequencies up to that where the bound of |phi|^k is below e^-(T0+8). */
int hs_allocation_tilt(hs_law *w, double c, double T0)
{
    double a = sqrt(w->q) / w->m, y_max = a * sqrt(2 * fmin((T0 + 8) / w->k, DEPTH));
    hs_allocation *lines;
    hs_law_value at;
    double var_upper;
    int st;
    w->var_upper = 0;
    hs_allocation_estimate(w, c, &at);
    if (!(at.err < 0.1 && at.var > 0)) return HS_TOO_WIDE;
    var_upper = variance_upper(w, c, &at);
    if (!(var_upper < HUGE_VAL)) return HS_TOO_WIDE;
    if ((st = tilted_at(parts(w->allocation), w->m, w->q, at_tilt(w, c), y_max, &lines))) return st;
    values_of(w, lines, &at);
    w->var_upper = var_upper;
    w->c = c;
    w->log_m = at.K;
    w->err = at.err;
    w->mean = at.mean;
    return at.err < 0.1 ? HS_OK : HS_TOO_WIDE;
}

/* An upper bound of |phi| at every frequency >= y [theory: allocation.decay]. */
double hs_allocation_far_upper(const hs_law *w, double y)
{ return fmin(1, exp(-0.5 * w->m * w->m * y * y / w->q) * (1 + 1e-12)); }

/* A lower bound of 2 (1 - |phi(y)|). */
double hs_allocation_gap_lower(const hs_law *w, double y)
{
    const hs_allocation *A = parts(w->allocation).tilted;
    double re, im, err, far = hs_allocation_far_upper(w, y);
    if (!(y <= A->y_max)) return 2 * (1 - far);
    hs_allocation_value(A, y, &re, &im, &err);
    return fmax(0, 2 * (1 - fmin(far, (hs_up(hypot(re, im)) + err) * (1 + 1.1 * A->d_f))));
}

/* Add k log phi at count nodes from n0 to re, im, and a bound of its error to round; where phi is lost in its error,
 * a bound stands for it [theory: line.inner]. phi is F over e^log_f, which the sum is scaled by: at y = 0 it is not
 * exactly 1 [theory: allocation.scale]. */
void hs_allocation_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round)
{
    const hs_allocation *A = parts(w->allocation).tilted;
    int n;
    for (n = 0; n < count; n++) {
        double y = (double)(n0 + n) * dy, x = 1, v = 0, err = HUGE_VAL;
        double mod, lr, li;
        if (y == 0) {
            round[n] += w->k * A->d_f;
            continue;
        }
        if (y <= A->y_max) hs_allocation_value(A, y, &x, &v, &err);
        mod = hypot(x, v);
        if (!(err < 0.1 * mod)) {
            re[n] += w->k * fmin(-0.5 * w->m * w->m * y * y / w->q * (1 - 1e-12), mod + err < 1 ? log(mod + err) : 0);
            round[n] += 1.1 + w->k * A->d_f;
            continue;
        }
        lr = mod * mod > 0.25 ? 0.5 * log1p((x - 1) * (x + 1) + v * v) : log(mod);
        li = atan2(w->add ? v : -v, x);
        re[n] += w->k * lr;
        im[n] += w->k * li;
        round[n] += w->k * (err / (mod - err) + HS_U * (8 + 4 * (fabs(lr) + fabs(li))));
    }
}

/* out: log F(-c), a bound of its error, then rows of n: re, im of F(-c-iy) over e to the first at frequencies y,
 * bounds of their errors; n = 0: no rows. work: hs_allocation_work() doubles, zeros at first, then what a call with
 * the same m and t left. */
int hs_allocation_line(double m, double t, double c, int64_t n, const double *y, double *work, double *out)
{
    layout o = parts(work);
    hs_allocation *A = NULL;
    double y_max = 0, *re = out + 2, *im = re + n, *err = im + n;
    int64_t j;
    int st;
    for (j = 0; j < n; j++) {
        if (!(y[j] >= 0)) return HS_BAD_ARGUMENT;
        y_max = fmax(y_max, y[j]);
    }
    if (!(m > 0 && t >= 2)) return HS_BAD_ARGUMENT;
    st = y_max > 0 ? tilted_at(o, m, t, c, y_max, &A) : real_at(o, m, t, c, DEPTH, &A);
    if (st) return st;
    out[0] = A->log_f;
    out[1] = A->d_f;
    for (j = 0; j < n; j++) {
        hs_allocation_value(A, y[j], &re[j], &im[j], &err[j]);
        if (!(err[j] < HUGE_VAL)) return HS_OUT_OF_RANGE;
    }
    return HS_OK;
}
