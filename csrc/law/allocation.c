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
#define DEPTH 42.0 /* nats that frequencies are made for; tests make it smaller */
#endif

/* Aliases of the w-sum on the line th at frequency y, over |Gamma(nu)| F(-c) [theory: allocation.aliases].
 * log_ratio: log Gamma(lam)/|Gamma(nu)|. */
static double aliases_upper(const hs_allocation *A, double y, double th, double log_ratio)
{
    double p = 2 * HS_PI / A->h, far = p + y, near = p - y, al;
    double q, sum;
    if (!(near > 0)) return HUGE_VAL;
    al = atan2(far, A->lam);
    if (!(al > th)) return HUGE_VAL;
    q = (al - th) * p;
    sum = exp(log_ratio - A->lam * log(cos(al)) - al * y - 0.5 * far * far / (A->a * A->a) - q) / -expm1(-q);
    al = atan2(near, A->lam);
    q = (al + th) * p;
    sum += exp(log_ratio - A->lam * log(cos(al)) + al * y - 0.5 * near * near / (A->a * A->a) - q) / -expm1(-q);
    return sum * (1 + 1e-9);
}

/* e^{dx} of a line's nodes, the parts of their weights, and the sums of the head: `change` is lam - from. */
HS_CLONES static void weigh_line(const double *restrict g, int64_t count, double first, double h, double change,
                                 double *restrict wr, double *restrict wi, double *restrict sums)
{
    double size = 0, moved = 0;
    int64_t j;
    for (j = 0; j < count; j++) {
        double x = (first + (double)j) * h, d = change * x, f = hs_exp(d);
        wr[j] = g[j] * f;
        wi[j] = g[count + j] * f;
    }
    for (j = 0; j < count; j++) {
        double x = (first + (double)j) * h, d = fabs(change * x), f = hs_exp(change * x);
        double mod = fabs(wr[j]) + fabs(wi[j]);
        size += g[2 * count + j] * f + mod * HS_U * (4 * d + 12 + (double)count);
        moved += mod * (fabs(first) + (double)j) * h; /* how its phase is formed */
    }
    sums[0] = size;
    sums[1] = moved;
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

/* sum g e^{iyx} over the nodes of a line. */
HS_CLONES static void phases(const double *restrict gr, const double *restrict gi, int64_t count, double x0,
                             double step, double *re, double *im)
{
    double a[8] = {0}, b[8] = {0};
    int64_t j;
    int i;
    for (j = 0; j < count; j += 8)
        for (i = 0; i < 8; i++) {
            double c, s;
            hs_cis(x0 + (double)(j + i) * step, &c, &s);
            a[i] += gr[j + i] * c - gi[j + i] * s;
            b[i] += gr[j + i] * s + gi[j + i] * c;
        }
    *re = hs_lanes(a);
    *im = hs_lanes(b);
}

/* F(-c-iy)/F(-c) within err, for y >= 0. */
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
    d = hs_allocation_log_gamma(A->lam, y, A->w0, &gr, &gi) + A->d_gamma + A->d_f;
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
           aliases_upper(A, y, th, ratio);
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
    miss += aliases_upper(A, 0, 0, 0);
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
    A->c = c;
    A->lam = A->n + c;
    A->d_gamma = hs_allocation_log_gamma(A->lam, 0, A->w0, &A->log_gamma, &im);
    for (i = 0; i < A->lines; i++)
        if ((st = line_at_tilt(A, i))) return st;
    return real_value(A);
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

/* Whether the table, of which nothing but zeros may be known, is that of frequencies up to y at c, or could not be
 * made there. */
static int serves(const hs_allocation *A, double m, double t, double c, double y)
{ return A->m == m && A->t == t && A->lam_lo <= A->n + c && A->n + c <= A->lam_hi && y <= A->y_max; }

/* F(-c) by one of the tables of the real line, or a new one in place of that which was not used for longest. */
static int real_at(layout o, double m, double t, double c, hs_allocation **found)
{
    hs_allocation *A = o.real;
    int i, last = 0, st;
    for (i = 0; i < HS_ALLOCATION_REAL; i++) {
        last = o.real[i].used > last ? o.real[i].used : last;
        if (o.real[i].used < A->used) A = &o.real[i];
    }
    for (i = 0; i < HS_ALLOCATION_REAL; i++)
        if (serves(&o.real[i], m, t, c, 0)) A = &o.real[i];
    A->used = last + 1;
    *found = A;
    if (!serves(A, m, t, c, 0) && (st = hs_allocation_table(A, m, t, c, 0, HS_ALLOCATION_FEW))) return st;
    return A->lines ? hs_allocation_turn(A, c) : HS_TOO_MANY_NODES;
}

/* Lines for frequencies up to y at c. */
static int tilted_at(layout o, double m, double t, double c, double y)
{
    hs_allocation *A = o.tilted;
    int st;
    if (!serves(A, m, t, c, y) && (st = hs_allocation_table(A, m, t, c, y, HS_ALLOCATION_ROOM))) return st;
    return A->lines ? hs_allocation_turn(A, c) : HS_TOO_MANY_NODES;
}

static double at_tilt(const hs_law *w, double t) { return w->add ? 1 + t : -t; }

/* K with its error, mean and variance of the loss tilted by t; an error of HUGE_VAL where that is out of reach. */
void hs_allocation_cgf(const hs_law *w, double t, hs_law_value *out)
{
    hs_allocation *A;
    memset(out, 0, sizeof *out);
    out->err = HUGE_VAL;
    if (real_at(parts(w->allocation), w->m, w->q, at_tilt(w, t), &A)) return;
    out->K = A->log_f;
    out->err = A->d_f;
    out->mean = w->add ? -A->mean : A->mean;
    out->var = A->var;
}

/* E (L-b)^2 <= (E e^{h(L-b)} + E e^{-h(L-b)} - 2)/h^2 [theory: allocation.variance]. */
static double variance_upper(const hs_law *w, double c, const hs_law_value *at)
{
    double h = 0.25 / sqrt(at->var), best = HUGE_VAL, sum;
    hs_law_value up, down;
    int it;
    for (it = 0; it < 6 && !(best < HUGE_VAL); it++, h *= 0.4) {
        hs_allocation_cgf(w, c + h, &up);
        hs_allocation_cgf(w, c - h, &down);
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
    hs_law_value at;
    hs_allocation_cgf(w, c, &at);
    if (!(at.err < 0.1 && at.var > 0)) return HS_TOO_WIDE;
    w->c = c;
    w->log_m = at.K;
    w->err = at.err;
    w->mean = at.mean;
    w->var_upper = variance_upper(w, c, &at);
    if (!(w->var_upper < HUGE_VAL)) return HS_TOO_WIDE;
    return tilted_at(parts(w->allocation), w->m, w->q, at_tilt(w, c), y_max);
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
    return fmax(0, 2 * (1 - fmin(far, hypot(re, im) * (1 + 4 * HS_U) + err)));
}

/* Add k log phi at count nodes from n0 to re, im, and a bound of its error to round; where phi is lost in its error,
 * a bound stands for it [theory: line.inner]. */
void hs_allocation_nodes(const hs_law *w, double dy, int64_t n0, int count, double *re, double *im, double *round)
{
    const hs_allocation *A = parts(w->allocation).tilted;
    int n;
    for (n = 0; n < count; n++) {
        double y = (double)(n0 + n) * dy, x = 1, v = 0, err = HUGE_VAL;
        double mod, lr, li;
        if (y == 0) continue;
        if (y <= A->y_max) hs_allocation_value(A, y, &x, &v, &err);
        mod = hypot(x, v);
        if (!(err < 0.1 * mod)) {
            re[n] += w->k * fmin(-0.5 * w->m * w->m * y * y / w->q * (1 - 1e-12), mod + err < 1 ? log(mod + err) : 0);
            round[n] += 1.1;
            continue;
        }
        lr = mod * mod > 0.25 ? 0.5 * log1p((x - 1) * (x + 1) + v * v) : log(mod);
        li = atan2(w->add ? v : -v, x);
        re[n] += w->k * lr;
        im[n] += w->k * li;
        round[n] += w->k * (err / (mod - err) + HS_U * (8 + 4 * (fabs(lr) + fabs(li))));
    }
}

/* out: log F(-c), a bound of its error, then rows of n: re, im of F(-c-iy)/F(-c) at frequencies y, bounds of their
 * errors; n = 0: no rows. work: hs_allocation_work() doubles, zeros at first, then what a call with the same m and t
 * left. */
int hs_allocation_line(double m, double t, double c, int64_t n, const double *y, double *work, double *out)
{
    layout o = parts(work);
    hs_allocation *A = o.tilted;
    double y_max = 0, *re = out + 2, *im = re + n, *err = im + n;
    int64_t j;
    int st;
    for (j = 0; j < n; j++) {
        if (!(y[j] >= 0)) return HS_BAD_ARGUMENT;
        y_max = fmax(y_max, y[j]);
    }
    if (!(m > 0 && t >= 2)) return HS_BAD_ARGUMENT;
    st = y_max > 0 ? tilted_at(o, m, t, c, y_max) : real_at(o, m, t, c, &A);
    if (st) return st;
    out[0] = A->log_f;
    out[1] = A->d_f;
    for (j = 0; j < n; j++) {
        hs_allocation_value(A, y[j], &re[j], &im[j], &err[j]);
        if (!(err[j] < HUGE_VAL)) return HS_OUT_OF_RANGE;
    }
    return HS_OK;
}
