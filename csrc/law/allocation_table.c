/* allocation_table.c - H of allocation.c on rotated lines: what all tilts of a range share.
 *
 * Symbols as in allocation.c. The grid: x_i = i h, g_k = k H with h = a e, m H = b e for whole numbers a, b, so that
 *   log |sX| at node x_i + i th of the w-sum and node g_k - i tau of the normal variable is w0 - log t - v/2 +
 *   (ia + kb) e, and its phase th - m tau is that of all nodes of a line: exp(-sX) is made once for every ia + kb.
 *
 * Formulas.
 *     psi_j(s_i) = sum_k W_jk exp(-z_{ia+kb}),  W_jk = H n(g) X^j;  H(w) by the recurrence of powers of series.
 *   A node of a line keeps e^{lam w} H(w) h over a scale of its line, at the middle of a range of lam, and its error.
 *
 * Error claims. Every node's error is the sum of
 *   normal    2 e^{(tau+d)^2/2}/(e^{2 pi d/H} - 1) + e^{(tau^2-b^2)/2} of mu_j: aliases at distance d, and nodes
 *   beyond b deviations from those of order j, or where e^{-sX} is small [theory: allocation.normal];
 *   rounding  carried along term by term, first order in u with 2% to spare.
 * A node whose H is lost in its error has the bound of H for its error [theory: allocation.ends].
 *
 * What it does not do: lines whose nodes do not fit the room.
 */
#include "law/allocation.h"

#include <float.h>

#define JUMP 40.0 /* nats that a moment may exceed the one needed by, to have lines that turn less */
#define BEYOND(deep) sqrt(2 * (48 + (deep))) /* deviations at which sums in the normal variable end */
#define PEAK 0.39894228040143267794L         /* 1/sqrt(2 pi) */
#define LONG (0.5 * LDBL_EPSILON)
#define MORE 1.02 /* bounds of first order in u */
enum {
    BLOCK = 16,
    HS_NODES_NEAR = 24,
    HS_NODES_SUM = 8
}; /* nodes of the w-sum, and of g, handled together: their E fits the first cache; nodes of g in one sum */

/* log Gamma(nu) - nu w0 and a bound of its absolute error, Re nu > 0: Stirling's series where |nu| >= 16, whose rest
 * after eight terms is below 1e-18 there [theory: allocation.gamma]. */
double hs_allocation_log_gamma(double x, double y, double w0, double *re, double *im)
{
    static const double b[8] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400};
    double lr = 0, li = 0, size = 0, sr = 0;
    double si = 0, d, ir, ii;
    double qr, qi, l, a;
    double t;
    int k;
    for (; x * x + y * y < 256; x += 1) {
        l = log(hypot(x, y)) - w0;
        a = atan2(y, x);
        lr -= l;
        li -= a;
        size += fabs(l) + fabs(w0) + a + 1;
    }
    d = x * x + y * y;
    ir = x / d;
    ii = -y / d;
    qr = ir * ir - ii * ii;
    qi = 2 * ir * ii;
    for (k = 7; k >= 0; k--) {
        t = sr * qr - si * qi + b[k];
        si = sr * qi + si * qr;
        sr = t;
    }
    l = 0.5 * log(d) - w0;
    a = atan2(y, x);
    *re = lr + (x - 0.5) * l - y * a - 0.5 * w0 - x + HS_LOG_SQRT_2PI + (sr * ir - si * ii);
    *im = li + (x - 0.5) * a + y * l - y + (sr * ii + si * ir);
    return HS_U * (6 * size + (8 * (fabs(l) + a) + 4 * (fabs(w0) + 1)) * sqrt(d) + 8 * fabs(w0) + 40) + 1e-18;
}

/* psi_0 .. psi_{n+1} at BLOCK nodes, and in the last row psi_0 - 1; absolute errors; what additions to a sum lost. */
typedef struct {
    double re_low[HS_ALLOCATION_ORDER + 3][BLOCK], im_low[HS_ALLOCATION_ORDER + 3][BLOCK];
    double re[HS_ALLOCATION_ORDER + 3][BLOCK], im[HS_ALLOCATION_ORDER + 3][BLOCK], err[HS_ALLOCATION_ORDER + 3][BLOCK];
} psi_block;

/* E = exp(-z) at consecutive nodes: its parts, the real part less 1, the modulus, the error of E and that of E - 1. */
enum { E_RE, E_IM, E_LESS, E_SIZE, E_ERR, E_ERR_LESS, E_ROWS };

/* The rule in the normal variable for a line at angle th. Node k has g = (k - middle) H. */
typedef struct {
    double tau, mesh, beyond, alias; /* alias: of the integral of |f| on the edge of the strip */
    double co, si, edge;             /* cos, sin of th - m tau; least cos on the edges */
    double most;                     /* nats below which E is no longer told from 0 */
    double h, e, e_low;              /* h = a(e + e_low), m H = b(e + e_low); e has 28 bits */
    double w_low;                    /* what log |sX| at x = 0, g = 0 is beyond its double */
    int64_t count, middle, a, b;
    int64_t lanes, size; /* nodes x_i that a strip of E serves; doubles of one of its rows, */
    int64_t row, skip;   /* a times row: an index ia + kb by its remainder; what a node of g is beyond the one before */
    double *w, *E;       /* for every order rows re, im, modulus and error of the weights; then a strip */
} normal_rule;

/* The weights at node g of all orders: H n(g - i tau) X^j, X turned by `turn`, their parts, moduli and errors, in long
 * double, whose unit is LONG: mg is within it 1.5 times, g 2 and g^2 - tau^2 6 times, the phase of n 3 times, X within
 * (3|mg| + 2v) LONG and 2 more, and each order adds a complex product; one rounding to double. Then a complex product
 * with E, 3u, the additions of sums that begin anew every HS_NODES_SUM nodes, one less, and 1.5u of these sums' sum,
 * which keeps what additions lose; errors of the parts make up no more of the modulus than of each part [theory:
 * rounding.sums]. */
static void weigh_node(const normal_rule *R, double m, int n, int64_t k, const long double turn[2])
{
    const long double step = (long double)R->b * R->h / (long double)R->a, move = (long double)(k - R->middle) * step;
    const long double g = move / m, tau = R->tau, flat = 0.5L * (g - tau) * (g + tau), v = (long double)m * m;
    const long double X = expl(move - 0.5L * v), co = turn[0], si = turn[1];
    long double W = expl(-flat) * step / m * PEAK, wr = W * cosl(tau * g), wi = W * sinl(tau * g), r;
    double long_error = (double)(3 * (g * g + tau * tau) + 3 * fabsl(tau * g) + 16);
    double each = (double)(3 * fabsl(move) + 2 * v + 2 * m * tau + 10), *o = R->w + k;
    double sums = 1 + 3 + HS_NODES_SUM + 0.5;
    int j;
    for (j = 0; j <= n + 1; j++, o += 4 * R->count) {
        o[0] = (double)wr;
        o[R->count] = (double)wi;
        o[2 * R->count] = (double)W;
        o[3 * R->count] = (double)W * (HS_U * sums + LONG * (long_error + j * each));
        r = wr * X;
        wr = r * co - wi * X * si;
        wi = r * si + wi * X * co;
        W *= X;
    }
}

/* The first 28 bits of x > 0: products with whole numbers below 2^25 are exact. */
static double keep_bits(double x)
{
    int e;
    double part = frexp(x, &e);
    return ldexp(floor(ldexp(part, 28)), e - 28);
}

/* Whole numbers a and b whose ratio comes close to that of the meshes m H and h from below. */
static void meshes_place(normal_rule *R, double m, double h, double ratio)
{
    R->h = h;
    R->a = ratio >= 3 ? 1 : (int64_t)ceil((ratio > 0.2 ? 3 : 1) / ratio);
    R->b = (int64_t)floor(ratio * (double)R->a);
    R->e = keep_bits(h / (double)R->a);
    R->e_low = (double)((long double)h / (long double)R->a - R->e);
    R->mesh = (double)R->b * (h / (double)R->a) / m;
}

/* On Im g = -tau the phase of sX is th - m tau, and strips of half width d keep it within pi/2. Order j has the
 * weight H n(g) X^j. deep: nats that psi falls below its value at 0; h: the mesh in w. */
static int normal_place(const hs_allocation *A, double th, double deep, double h, normal_rule *R)
{
    const double m = A->m, t = A->t;
    const int n = A->n;
    double up = (HS_PI / 2 - th) / m, tau = fmin(fmax(3 - up, 0), th / m), d, want = A->depth + deep + log(t);
    long double turn[2];
    double b, ratio;
    double beyond = BEYOND(deep), top = beyond + (n + 1) * m;
    int64_t k;
    d = fmin(0.85 * fmin(up + tau, (HS_PI / 2 + th) / m - tau), 9.6);
    b = tau + d;
    if (!(d > 1e-4 && cos(th - m * tau) > 1e-3)) return HS_NO_PATH;
    R->tau = tau;
    ratio = m * 2 * HS_PI * d / (want + 0.5 * b * b) / h; /* of the meshes, which a and b come close to from below */
    if (!(ratio > 1e-4 && ratio < 1e9)) return HS_TOO_MANY_NODES;
    meshes_place(R, m, h, ratio);
    R->alias = 2 * exp(0.5 * b * b) / expm1(2 * HS_PI * d / R->mesh * (1 - 1e-12));
    R->edge = cos(fabs(th - m * tau) + m * d) * (1 - 1e-12);
    R->co = (double)cosl(th - (long double)m * tau);
    R->si = fmax((double)sinl(th - (long double)m * tau), 0); /* m tau <= th but for rounding */
    turn[0] = cosl((long double)m * R->tau);
    turn[1] = -sinl((long double)m * R->tau);
    R->middle = (int64_t)ceil(beyond / R->mesh);
    R->count = R->middle + (int64_t)ceil(top / R->mesh) + 1;
    R->beyond = beyond;
    R->most = fmax(600 - deep, 300); /* products with weights and with u stay normal numbers, which are fast */
    R->w = A->scratch;
    R->E = R->w + 4 * R->count * (n + 2);
    if (!(4 * (double)R->count * (n + 2) < HS_ALLOCATION_SCRATCH && top * m < 600)) return HS_TOO_MANY_NODES;
    for (k = 0; k < R->count; k++) weigh_node(R, m, n, k, turn);
    return HS_OK;
}

/* The nodes of order j end here: beyond the last deviation from jm. */
static int64_t order_end(const normal_rule *R, double m, int j)
{
    int64_t end = R->middle + (int64_t)ceil((R->beyond + j * m) / R->mesh) + 1;
    return end < R->count ? end : R->count;
}

/* Strips of E for `lanes` nodes, or the largest for which there is room. */
static int strips_place(normal_rule *R, int n, int64_t lanes)
{
    int64_t room = (HS_ALLOCATION_SCRATCH - 4 * R->count * (n + 2)) / E_ROWS;
    for (R->lanes = 32 * BLOCK; R->lanes > BLOCK && R->lanes / 2 >= lanes;) R->lanes /= 2;
    for (; R->lanes >= BLOCK; R->lanes /= 2) {
        R->skip = R->b / R->a;
        if (R->a == 1 && R->b >= R->lanes) R->skip = R->lanes; /* nothing is shared: one after the other */
        R->row = R->lanes + (R->a == 1 ? (R->count - 1) * R->skip : (R->count - 1) * R->b / R->a);
        R->size = R->a * R->row;
        if (R->size <= room) return HS_OK;
    }
    return HS_TOO_MANY_NODES;
}

/* E at log |z| = w + N e, for N = first, first + step, ..; off: relative error of z where N = 0, with that of the
 * phase and of what the parts of sX are. e has two parts, of which the first times N is exact below 2^25; what the sum
 * with w loses is at most 2^-44 and enters by 1 + it. E below e^-most stands for less, within itself. The exponential
 * is within 2u, 1 + c and a product 2u more, what cis is off by apart; E - 1 within 6u|m1|, 5u|c| in its real part and
 * 3u|s| in its imaginary one, together at most 4u min(b, 3). On the real line (turned = 0) no phase is made. */
HS_INLINE void turned_exponentials(const normal_rule *R, double w, double off, int64_t first, int64_t step,
                                   int64_t count, int turned, double *restrict o)
{
    const double co = R->co, si = R->si, most = R->most;
    const double e = R->e, e_low = R->e_low, w_low = R->w_low;
    const int64_t size = R->size;
    int64_t i;
    for (i = 0; i < count; i++) {
        double N = (double)(first + i * step), p = N * e, sum = w + p, part = sum - w;
        double low = (w - (sum - part)) + (p - part) + (N * e_low + w_low),
               z = hs_exp(sum < 700 ? sum : 700) * (1 + low);
        double at = z * co, b = 0, each = N < 33554432 && N > -33554432 ? 2 * LONG : HS_U + 2 * LONG;
        double s = 0, E, m1, d;
        double c = 0, phase, lost = at < most ? 0 : 2;
        at = at < most ? at : most;
        E = hs_exp_m1(-at, &m1);
        if (turned) {
            b = z * si;
            b = b < 8e5 ? b : 8e5;
            hs_cis_m1(b, &c, &s);
        }
        z = z < 1e290 ? z : 1e290;
        d = E * (z * (off + each * (p < 0 ? -p : p)) + lost);
        phase = E * (8 * (b < 3 ? b : 3) + 2 * b);
        o[E_RE * size + i] = E * (1 + c);
        o[E_IM * size + i] = -s * E;
        o[E_LESS * size + i] = m1 + (c + m1 * c);
        o[E_SIZE * size + i] = E;
        o[E_ERR * size + i] = d + HS_U * (phase + 4 * E);
        o[E_ERR_LESS * size + i] = d + HS_U * (phase + 6 * (m1 < 0 ? -m1 : m1) + 4 * (b < 3 ? b : 3));
    }
}

HS_CLONES static void exponentials(const normal_rule *R, double w, double off, int64_t first, int64_t step,
                                   int64_t count, double *restrict o)
{
    if (R->si > 0) turned_exponentials(R, w, off, first, step, count, 1, o);
    else turned_exponentials(R, w, off, first, step, count, 0, o);
}

/* The strip whose first node is x_first. w: log |z| at x = 0, g = 0, with w_low within w_off of itself. An exponential
 * is within 2u of itself, times 1 + low 2u more, what low is off by less than u; the parts of the phase and products
 * within u. */
static void fill_strip(const normal_rule *R, double w, double w_off, int64_t first)
{
    double off = HS_U * 7 + w_off;
    int64_t k, at = first * R->a - R->middle * R->b;
    if (R->a == 1 && R->skip < R->b)
        for (k = 0; k < R->count; k++) exponentials(R, w, off, at + k * R->b, 1, R->lanes, R->E + k * R->lanes);
    else
        for (k = 0; k < R->a; k++) exponentials(R, w, off, at + k, R->a, R->row, R->E + k * R->row);
}

/* A node of g in the strip: where its E begins, and the remainder of its index modulo a. */
typedef struct {
    int64_t k, at, phase;
} place_of_node;

static inline void next_node(const normal_rule *R, int64_t left, place_of_node *p)
{
    p->k++;
    p->at += R->skip + left * R->row;
    if ((p->phase += left) >= R->a) {
        p->phase -= R->a;
        p->at += 1 - R->a * R->row;
    }
}

/* Order j at BLOCK nodes: W E, and its error, of the nodes of g from p up to `end`; the last row for psi_0 - 1. E
 * points at the block's first node. On the real line all is real. */
HS_CLONES static void real_sums(const normal_rule *R, const double *W, const double *E, int less, place_of_node p,
                                int64_t end, int j, psi_block *restrict out)
{
    const int64_t n = R->count, size = R->size, left = R->b % R->a;
    const double *er = E + (less ? E_LESS : E_RE) * size, *ee = E + (less ? E_ERR_LESS : E_ERR) * size;
    double a[BLOCK], d[BLOCK];
    int i;
    for (i = 0; i < BLOCK; i++) d[i] = 0;
    while (p.k < end) {
        const int64_t stop = p.k + HS_NODES_SUM < end ? p.k + HS_NODES_SUM : end;
        for (i = 0; i < BLOCK; i++) a[i] = 0;
        for (; p.k < stop; next_node(R, left, &p)) {
            const double w = W[2 * n + p.k], e = W[3 * n + p.k];
            const int64_t at = p.at;
            for (i = 0; i < BLOCK; i++) {
                double x = er[at + i];
                a[i] += w * x;
                d[i] += w * ee[at + i] + fabs(x) * e;
            }
        }
        for (i = 0; i < BLOCK; i++) hs_add_kept(a[i], &out->re[j][i], &out->re_low[j][i]);
    }
    for (i = 0; i < BLOCK; i++) out->err[j][i] += d[i];
}

/* The same on any line. */
HS_CLONES static void order_sums(const normal_rule *R, const double *W, const double *E, int less, place_of_node p,
                                 int64_t end, int j, psi_block *restrict out)
{
    const int64_t n = R->count, size = R->size, left = R->b % R->a;
    double a[BLOCK], b[BLOCK], d[BLOCK];
    const double *er = E + (less ? E_LESS : E_RE) * size, *ee = E + (less ? E_ERR_LESS : E_ERR) * size;
    const double *ei = E + E_IM * size, *es = E + E_SIZE * size;
    int i;
    for (i = 0; i < BLOCK; i++) d[i] = 0;
    while (p.k < end) {
        const int64_t stop = p.k + HS_NODES_SUM < end ? p.k + HS_NODES_SUM : end;
        for (i = 0; i < BLOCK; i++) a[i] = b[i] = 0;
        for (; p.k < stop; next_node(R, left, &p)) {
            const double wr = W[p.k], wi = W[n + p.k], w = W[2 * n + p.k], e = W[3 * n + p.k];
            const int64_t at = p.at;
            for (i = 0; i < BLOCK; i++) {
                double x = er[at + i], y = ei[at + i], s = less ? fabs(x) + fabs(y) : es[at + i];
                a[i] += wr * x - wi * y;
                b[i] += wr * y + wi * x;
                d[i] += w * ee[at + i] + s * e;
            }
        }
        for (i = 0; i < BLOCK; i++) {
            hs_add_kept(a[i], &out->re[j][i], &out->re_low[j][i]);
            hs_add_kept(b[i], &out->im[j][i], &out->im_low[j][i]);
        }
    }
    for (i = 0; i < BLOCK; i++) out->err[j][i] += d[i];
}

/* log of a bound of E X^j e^{-rX}, log r = lr: (N/(e r))^N mu_{j-N} for every N >= 0, here near its least, where vN
 * e^{vN} = v e^{lr + (j - 1/2)v} [theory: allocation.normal]. */
static double log_moment_upper(int j, double v, double lr)
{
    double y = lr + (j - 0.5) * v + log(v), W = y > 1 ? y - log(y) : exp(y) / (1 + exp(y));
    double step = 1, N;
    int it;
    for (it = 0; it < 3 && fabs(step) > 0.2; it++) W *= exp(-(step = (log(W) + W - y) / (1 + W)));
    N = fmax(W / v, 1e-300);
    return fmin(0.5 * j * (j - 1) * v, N * (log(N) - 1 - lr) + 0.5 * (j - N) * (j - N - 1) * v);
}

/* The nodes of g that order j takes at a block of nodes of the w-sum, and a bound of what the others are. */
typedef struct {
    int64_t begin[HS_ALLOCATION_ORDER + 2], end[HS_ALLOCATION_ORDER + 2];
    double lost[HS_ALLOCATION_ORDER + 2];
} order_windows;

/* For r0 <= |s| <= r1: those within b deviations of jm, b so large that what is left out is about as small as what the
 * rule misses of E X^j e^{-r1 X}, up to where e^{-sX} is [theory: allocation.normal]. */
static void windows_place(const normal_rule *R, double m, int n, double r0, double r1, order_windows *o)
{
    const double v = m * m, want = 4 + fmax(-log(R->alias + 1e-300), 0), lr = log(r1 * R->edge);
    double fall[HS_ALLOCATION_ORDER + 2], up = exp(0.5 * R->tau * R->tau), stop;
    double left, right, X, rest;
    int64_t last;
    int j;
    for (j = 0; j <= n + 1; j++) fall[j] = want + 0.5 * j * (j - 1) * v - log_moment_upper(j, v, lr);
    X = fmax(fall[n + 1], fall[0]) / (r0 * R->co);
    stop = (log(X) + 0.5 * v) / m;
    last = stop / R->mesh < (double)R->count ? R->middle + (int64_t)ceil(stop / R->mesh) : R->count;
    rest = last < R->count ? 2 * exp(-r0 * R->co * X * (1 - 1e-9)) : 0;
    for (j = 0; j <= n + 1; j++) {
        left = fmin(sqrt(2 * fall[j]), R->beyond + j * m);
        right = fmin(sqrt(2 * fall[j]), R->beyond);
        X = exp(m * (j * m + right) - 0.5 * v);
        o->begin[j] = R->middle + (int64_t)floor((j * m - left) / R->mesh);
        o->end[j] = R->middle + (int64_t)ceil((j * m + right) / R->mesh) + 1;
        if (o->begin[j] < 0) o->begin[j] = 0;
        if (o->end[j] > R->count) o->end[j] = R->count;
        if (o->end[j] > last) o->end[j] = last;
        right = exp(-0.5 * right * right - r0 * R->co * X * (1 - 1e-9));
        o->lost[j] = up * exp(0.5 * j * (j - 1) * v) * (exp(-0.5 * left * left) + right + rest);
    }
}

/* What the rule misses of psi_j, j = 0..n+1, at |s| >= r, and of psi_0 - 1 [theory: allocation.normal]. */
static void normal_miss(const normal_rule *R, double m, int n, double r, const double *lost, double *miss)
{
    double v = m * m, lr = log(r * R->edge), ends = exp(0.5 * (R->tau - R->beyond) * (R->tau + R->beyond));
    int j;
    for (j = 0; j <= n + 1; j++) miss[j] = (R->alias * exp(log_moment_upper(j, v, lr)) + lost[j]) * MORE + 1e-299;
    miss[n + 2] = 2 * (R->alias + 2 * ends) * MORE;
}

/* Order j, or psi_0 - 1 as row j, by the nodes from p and `begin` on up to `end`. */
static void sums_within(const normal_rule *R, const double *E, int64_t begin, int64_t end, place_of_node p, int j,
                        int less, psi_block *out)
{
    const double *W = R->w + 4 * (less ? 0 : j) * R->count;
    while (p.k < begin && p.k < end) next_node(R, R->b % R->a, &p);
    if (!(p.k < end)) return;
    if (R->tau == 0 && R->si == 0) real_sums(R, W, E, less, p, end, j, out);
    else order_sums(R, W, E, less, p, end, j, out);
}

/* psi at BLOCK nodes from x_first on; `from`: the first node of the strip at hand. */
static void psi_sums(const normal_rule *R, double m, double t, int n, double w0, int64_t first, int64_t from,
                     psi_block *out)
{
    double h = R->h, miss[HS_ALLOCATION_ORDER + 3], s = 0, base = w0 - log(t);
    order_windows o;
    place_of_node p = {0, 0, 0};
    int i, j;
    for (j = 0; j <= n + 2; j++)
        for (i = 0; i < BLOCK; i++)
            out->re[j][i] = out->im[j][i] = out->re_low[j][i] = out->im_low[j][i] = out->err[j][i] = 0;
    windows_place(R, m, n, exp((double)first * h + base) * (1 - 1e-12),
                  exp((double)(first + BLOCK - 1) * h + base) * (1 + 1e-12), &o);
    while (p.k < R->count) {
        int64_t end = p.k + HS_NODES_NEAR < R->count ? p.k + HS_NODES_NEAR : R->count;
        for (j = 0; j <= n + 2; j++) {
            int64_t begin = j <= n + 1 ? o.begin[j] : 0, last = j <= n + 1 ? o.end[j] : order_end(R, m, 0);
            sums_within(R, R->E + (first - from), begin, end < last ? end : last, p, j, j > n + 1, out);
        }
        while (p.k < end) next_node(R, R->b % R->a, &p);
    }
    for (i = 0; i < BLOCK; i++) {
        double x = (double)(first + i) * h;
        if (i == 0 || x > s + 0.7) { /* what is missed falls with |s| */
            s = x;
            normal_miss(R, m, n, exp(x + base) * (1 - 1e-12), o.lost, miss);
        }
        for (j = 0; j <= n + 2; j++) {
            out->re[j][i] += out->re_low[j][i];
            out->im[j][i] += out->im_low[j][i];
            out->err[j][i] = out->err[j][i] * MORE + miss[j];
        }
    }
}

/* Makes the next strip where block `first` begins one; how far it is from the first node of all. */
static int64_t strip_at(normal_rule *R, double m, double t, double w0, int64_t start, int64_t first)
{
    int64_t from = start + (first - start) / R->lanes * R->lanes;
    const long double lt = logl(t), v = (long double)m * m;
    double w = (double)(w0 - lt - 0.5L * v);
    R->w_low = (double)(w0 - lt - 0.5L * v - w);
    if (first == from) fill_strip(R, w, LONG * (3 * (fabs(w0) + (double)(lt + v)) + 8), first);
    return from;
}

/* Terms of a series at the lanes of a block, upper bounds of their moduli, and their errors. */
typedef struct {
    double re[HS_ALLOCATION_ORDER + 1][BLOCK], im[HS_ALLOCATION_ORDER + 1][BLOCK];
    double size[HS_ALLOCATION_ORDER + 1][BLOCK], err[HS_ALLOCATION_ORDER + 1][BLOCK];
} terms_block;

/* An upper bound of |x + iy|: a sum of |x| and |y| in its place would grow by a power of the order. */
static inline double modulus_upper(double x, double y)
{
    double a = fabs(x), b = fabs(y), most = a > b ? a : b, part = (a > b ? b : a) / (most + 1e-307);
    return hs_up(most * sqrt(1 + part * part));
}

/* a = sum psi_j x^j/j! over psi_0, x in units of 1/t, and its power p = a^(t-1). */
typedef struct {
    terms_block a, p, square, product;
    double fr[BLOCK], fi[BLOCK], mod[BLOCK], e0[BLOCK]; /* phi, its modulus and error */
    double qr[BLOCK], qi[BLOCK], qe[BLOCK];             /* [x^n] p sum psi_{j+1} x^j/j! */
} series;

/* Term k of a; scale = t^-k/k!, within ku: products t k are exact. A complex product, 3u, m2, 2u, and two more. */
HS_CLONES static void quotient(const psi_block *P, int k, double scale, series *restrict S)
{
    int i;
    for (i = 0; i < BLOCK; i++) {
        double br = P->re[k][i], bi = P->im[k][i], fr = S->fr[i], fi = S->fi[i];
        double mod = S->mod[i], e0 = S->e0[i], m2 = fr * fr + fi * fi, size = modulus_upper(br, bi);
        double re = (br * fr + bi * fi) / m2 * scale, im = (bi * fr - br * fi) / m2 * scale;
        S->a.re[k][i] = re;
        S->a.im[k][i] = im;
        S->a.size[k][i] = modulus_upper(re, im);
        S->a.err[k][i] =
            1e-300 + MORE * scale * ((P->err[k][i] + size * e0 / mod) / (mod - e0) + (k + 7) * HS_U * size / mod);
    }
}

/* Term k of z: the sum of x_j y_{k-j}, or with T that of p by k p_k = sum_j ((T+1) j - k) a_j p_{k-j}. Term j, a
 * complex product with a factor, 5u, passes at most j additions. */
HS_CLONES static void product_term(const terms_block *x, const terms_block *y, int k, double T, terms_block *z)
{
    double sr[BLOCK] = {0}, si[BLOCK] = {0}, se[BLOCK] = {0};
    int i, j;
    for (j = k; j >= (T > 0); j--) {
        const double f = T > 0 ? (T * j - k + j) / k : 1, f1 = fabs(f), off = (5 + j) * HS_U;
        for (i = 0; i < BLOCK; i++) {
            double xr = x->re[j][i], xi = x->im[j][i], yr = y->re[k - j][i], yi = y->im[k - j][i];
            double x1 = x->size[j][i], y1 = y->size[k - j][i], ye = y->err[k - j][i];
            sr[i] += f * (xr * yr - xi * yi);
            si[i] += f * (xr * yi + xi * yr);
            se[i] += f1 * (x1 * (ye + off * y1) + x->err[j][i] * (y1 + ye));
        }
    }
    for (i = 0; i < BLOCK; i++) {
        z->re[k][i] = sr[i];
        z->im[k][i] = si[i];
        z->size[k][i] = modulus_upper(sr[i], si[i]);
        z->err[k][i] = MORE * se[i];
    }
}

static void multiply(const terms_block *x, terms_block *y, int n, terms_block *product)
{
    int k;
    for (k = 0; k <= n; k++) product_term(x, y, k, 0, product);
    memcpy(y, product, sizeof(*product));
}

/* Term n - k of p times term k of sum psi_{j+1} x^j/j!, added to q. */
HS_CLONES static void last_product(const psi_block *P, int n, int k, double scale, series *restrict S)
{
    int i;
    for (i = 0; i < BLOCK; i++) {
        double br = P->re[k + 1][i] * scale, bi = P->im[k + 1][i] * scale, size = modulus_upper(br, bi);
        double be = P->err[k + 1][i] * scale + (k + 2) * HS_U * size;
        double pr = S->p.re[n - k][i], pi = S->p.im[n - k][i], p1 = S->p.size[n - k][i], pe = S->p.err[n - k][i];
        S->qr[i] += pr * br - pi * bi;
        S->qi[i] += pr * bi + pi * br;
        S->qe[i] += size * pe + be * (p1 + pe) + (8 + n) * HS_U * size * p1;
    }
}

/* The power t - 1 of a, times sum psi_{j+1} x^j/j! [theory: allocation.mellin]. By its recurrence, whose factors are
 * positive up to order t; beyond, where they would cancel, by squares, whose terms do not. */
static void power_series(const psi_block *P, double t, int n, series *S)
{
    double scale = 1;
    int64_t T = (int64_t)t - 1;
    int i, k;
    for (i = 0; i < BLOCK; i++) {
        S->p.re[0][i] = S->a.re[0][i] = S->p.size[0][i] = S->a.size[0][i] = 1;
        S->p.im[0][i] = S->p.err[0][i] = S->a.im[0][i] = S->a.err[0][i] = 0;
        S->qr[i] = S->qi[i] = S->qe[i] = 0;
    }
    for (k = 1; k <= n; k++) {
        scale /= t * k;
        quotient(P, k, scale, S);
        if (n <= t) product_term(&S->a, &S->p, k, t - 1, &S->p);
        else
            for (i = 0; i < BLOCK; i++) S->p.re[k][i] = S->p.im[k][i] = S->p.size[k][i] = S->p.err[k][i] = 0;
    }
    if (n > t) {
        memcpy(&S->square, &S->a, sizeof(S->a));
        for (; T; T >>= 1) {
            if (T & 1) multiply(&S->square, &S->p, n, &S->product);
            if (T > 1) multiply(&S->square, &S->square, n, &S->product);
        }
    }
    for (scale = 1, k = 0; k <= n; k++) {
        last_product(P, n, k, scale, S);
        scale /= t * (k + 1);
    }
}

/* log of H/n!, its argument and relative error at one node. */
typedef struct {
    double lr, li, rel;
    int known; /* 1: the value stands above its error; 0: lr is a bound; -1: neither */
} h_value;

/* phi at the lanes: by psi_0 - 1 where it is above 1/2. A modulus of 0 becomes 1 with an error of 1. */
static void phi_of(const psi_block *P, int n, series *S)
{
    int i;
    for (i = 0; i < BLOCK; i++) {
        double x = P->re[n + 2][i], y = P->im[n + 2][i];
        S->fr[i] = 1 + x;
        S->fi[i] = y;
        S->mod[i] = hypot(1 + x, y);
        S->e0[i] = P->err[n + 2][i] + HS_U * S->mod[i];
        if (!(2 * x + x * x + y * y > -0.75)) {
            S->fr[i] = P->re[0][i];
            S->fi[i] = P->im[0][i];
            S->mod[i] = hypot(S->fr[i], S->fi[i]);
            S->e0[i] = P->err[0][i];
        }
        if (!(S->mod[i] > 0)) S->mod[i] = S->e0[i] = S->fr[i] = 1;
    }
}

static h_value h_at(const psi_block *P, const series *S, int i, double t, int n)
{
    h_value o = {-HUGE_VAL, 0, 0, -1};
    double x = P->re[n + 2][i], y = P->im[n + 2][i], X = 2 * x + x * x + y * y;
    double mod = S->mod[i], e0 = S->e0[i];
    double size, T = t - 1;
    if (!(mod > 4 * e0)) {
        if (n > 0) return o;
        o.lr = T * log(mod + e0) + log(hypot(P->re[1][i], P->im[1][i]) + P->err[1][i]);
        o.known = 0;
        return o;
    }
    o.lr = X > -0.75 && X < 1 ? 0.5 * log1p(X) : log(mod);
    o.li = atan2(S->fi[i], S->fr[i]);
    if (X > -0.75 && X < 1) /* x is known better than 1 + x, which the logarithm does not see */
        o.rel = P->err[n + 2][i] / (mod - e0) + HS_U * (3 * fabs(x) + 2 * x * x + 2 * y * y) / (mod * mod);
    else o.rel = e0 / (mod - e0);
    o.rel = T * (o.rel + 4 * HS_U * (fabs(o.lr) + fabs(o.li)));
    o.lr *= T;
    o.li *= T;
    size = hypot(S->qr[i], S->qi[i]);
    if (!(size < HUGE_VAL && S->qe[i] < HUGE_VAL)) return o;
    if (!(size > 4 * S->qe[i] && o.rel < 0.02)) {
        o.lr += log(size + S->qe[i]) + o.rel;
        o.known = 0;
        return o;
    }
    o.lr += log(size);
    o.li += atan2(S->qi[i], S->qr[i]);
    o.rel = MORE * (o.rel + S->qe[i] / (size - S->qe[i]) + 8 * HS_U);
    o.known = 1;
    return o;
}

/* log of a bound of n! [x^n] (sum psi_j (x/t)^j/j!)^{t-1} (sum psi_{j+1} (x/t)^j/j!) for real psi_j with upper
 * bounds up: the terms of the recurrence that are negative, where n > t, are left out. */
static double log_h_upper(const double *up, double t, int n)
{
    double a[HS_ALLOCATION_ORDER + 1], p[HS_ALLOCATION_ORDER + 1], scale = 1, sum = 0;
    double T = t - 1;
    int j, k;
    p[0] = 1;
    for (k = 1; k <= n; k++) {
        scale /= t * k;
        a[k] = up[k] / up[0] * scale + 1e-300;
        for (p[k] = 0, j = 1; j <= k; j++) p[k] += fmax(0, (T * j - k + j) / k) * a[j] * p[k - j];
    }
    for (scale = 1, k = 0; k <= n; k++) {
        sum += p[n - k] * (up[k + 1] * scale + 1e-300);
        scale /= t * (k + 1);
    }
    return T * log(up[0]) + log(sum) + lgamma(n + 1.0) + 1e-9;
}

/* About the nats that psi falls below its value at 0 where e^{lam x} H does not matter any more: log psi is about
 * -W(W + 2)/2v, where its slope in x is -W/v, and log H that times t; F(-c) is about e^{lam^2 v/2t}. */
static double depth_of(const hs_allocation *A)
{
    double v = A->m * A->m, middle = A->lam_hi * v / A->t, W = middle + sqrt(2 * A->depth * v / A->t + middle * middle);
    return fmax(2 * (A->depth + A->lam_hi) / A->t, 0.5 * W * (W + 2) / v);
}

/* Bounds of H on the real line: everywhere (A->log_top = log E_P (S/t)^n), and beyond x_end, where H falls by at least
 * e^{-fall} a unit [theory: allocation.ends]. x_end is where e^{lam x} H is below e^goal, lam = lam_hi. */
static int find_ends(hs_allocation *A, double goal)
{
    double up[HS_ALLOCATION_ORDER + 2], from = 0, step = fmin(0.75, 3 / sqrt(A->lam_hi)) / 4;
    double v = A->m * A->m, lam = A->lam_hi, x;
    psi_block P;
    normal_rule R;
    int i, j, it, st;
    for (j = 0; j <= A->n + 1; j++) up[j] = exp(0.5 * j * (j - 1) * v);
    A->log_top = log_h_upper(up, A->t, A->n);
    for (it = 0; it < HS_ALLOCATION_BOUNDS / BLOCK; it++, from += BLOCK * step, step *= 1.5) {
        if ((st = normal_place(A, 0, depth_of(A), step, &R))) return st;
        if ((st = strips_place(&R, A->n, BLOCK))) return st;
        strip_at(&R, A->m, A->t, A->w0 + from, 0, 0);
        psi_sums(&R, A->m, A->t, A->n, A->w0 + from, 0, 0, &P);
        for (i = 0; i < BLOCK; i++) {
            for (j = 0; j <= A->n + 1; j++) up[j] = P.re[j][i] + P.err[j][i];
            x = from + i * step;
            A->at[BLOCK * it + i] = A->x_end = x;
            A->bound[BLOCK * it + i] = A->log_end = log_h_upper(up, A->t, A->n);
            A->fall = exp(x + A->w0) * (P.re[1][i] - P.err[1][i]) / up[0] * (1 - 1e-9);
            A->bounds = BLOCK * it + i + 1;
            if (A->fall > lam * (1 + 1e-3) && A->log_end + lam * x - log(A->fall / lam - 1) < goal) return HS_OK;
        }
    }
    return HS_TOO_MANY_NODES;
}

/* log of a bound of H at real x, which falls in x. */
static double log_h_at_upper(const hs_allocation *A, double x)
{
    double best = A->log_top;
    int i;
    if (x >= A->x_end) return A->log_end - A->fall * (x - A->x_end);
    for (i = 0; i < A->bounds && A->at[i] <= x; i++) best = fmin(best, A->bound[i]);
    return best;
}

/* log of h sum over nodes x' >= x of e^{lam x'} |H(x' + i th)|, for x + log cos th >= x_end. */
double hs_allocation_right_upper(const hs_allocation *A, double x, double log_cos)
{
    return A->lam * x + A->log_end - A->fall * (x + log_cos - A->x_end) + log(A->h) -
           log(-expm1((A->lam - A->fall) * A->h)) + 1e-9;
}

/* The same over nodes x' <= x, x + log cos th <= 0: log E e^{-rS} is convex in r, so that at r = e^{x + w0} it lies
 * below its chord from 0 to r_0 = e^{w0}. */
double hs_allocation_left_upper(const hs_allocation *A, double x, double log_cos)
{
    double fall = fmax(0, A->log_top - A->bound[0]) * exp(x + log_cos), flat, best;
    flat = A->lam * x + A->log_top + log(A->h) - log(-expm1(-A->lam * A->h));
    best = fall < A->lam ? flat - fall + log(-expm1(-A->lam * A->h)) - log(-expm1((fall - A->lam) * A->h)) : flat;
    return fmin(flat, best) + 1e-9;
}

/* The nodes of line i: both ends below e^goal, for lam_lo on the left and lam_hi on the right. */
static void window(hs_allocation *A, int i, double depth, int64_t *first, int64_t *count)
{
    double th = atan(sinh(i * A->turn)), log_cos = log(cos(th)), lo = -400, hi = 0;
    double mid, re, im, goal;
    double y;
    int it;
    A->lam = A->lam_lo;
    hs_allocation_log_gamma(A->lam, 0, A->w0, &goal, &im);
    for (it = 0; it < 2 && A->turn > 0; it++) {
        y = A->lam * sinh(fmax(0, i + it - 0.5) * A->turn);
        hs_allocation_log_gamma(A->lam, y, A->w0, &re, &im);
        goal = it ? fmin(goal, re + y * th) : re + y * th;
    }
    goal -= depth;
    for (it = 0; it < 42; it++) {
        mid = 0.5 * (lo + hi);
        if (hs_allocation_left_upper(A, mid - log_cos, log_cos) < goal) lo = mid;
        else hi = mid;
    }
    *first = (int64_t)floor((lo - log_cos) / A->h);
    *count = (int64_t)ceil((A->x_end - log_cos) / A->h) - *first + 1;
    *count = (*count + BLOCK - 1) / BLOCK * BLOCK;
}

/* Logs, arguments and relative errors of e^{from w} H h at the nodes of a line, over e^{from w0}; where H is lost in
 * its error -HUGE_VAL, 0 and the log of its bound. Returns the largest log, of either. */
static int line_logs(hs_allocation *A, double th, int64_t start, int64_t count, double *lr, double *li, double *rel,
                     double *top)
{
    normal_rule R;
    psi_block P;
    series S;
    double log_cos = log(cos(th)), fact = lgamma(A->n + 1.0);
    int64_t j;
    int i, st = normal_place(A, th, depth_of(A), A->h, &R);
    if (st || (st = strips_place(&R, A->n, count))) return st;
    *top = -HUGE_VAL;
    for (j = 0; j < count; j += BLOCK) {
        int64_t from = strip_at(&R, A->m, A->t, A->w0, start, start + j);
        psi_sums(&R, A->m, A->t, A->n, A->w0, start + j, from, &P);
        phi_of(&P, A->n, &S);
        power_series(&P, A->t, A->n, &S);
        for (i = 0; i < BLOCK; i++) {
            double x = (double)(start + j + i) * A->h, up = A->from * x + log(A->h);
            h_value H = h_at(&P, &S, i, A->t, A->n);
            lr[j + i] = -HUGE_VAL;
            li[j + i] = 0;
            if (H.known < 1) {
                double bound = log_h_at_upper(A, x + log_cos);
                rel[j + i] = up + (H.known == 0 ? fmin(bound, H.lr + fact) : bound);
            } else {
                lr[j + i] = H.lr + up + fact;
                li[j + i] = H.li + A->from * th;
                rel[j + i] = H.rel + HS_U * (6 * (fabs(up) + fact + fabs(lr[j + i]) + fabs(li[j + i])) + 20);
                *top = fmax(*top, lr[j + i]);
            }
        }
    }
    return *top > -HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* The nodes of one line, over e^top: parts and errors. */
static int fill_line(hs_allocation *A, double *line)
{
    int64_t j, start = (int64_t)line[HS_LINE_FIRST], count = (int64_t)line[HS_LINE_COUNT];
    double *re = line + HS_LINE_HEAD, *im = re + count, *err = im + count, top;
    int st = line_logs(A, line[HS_LINE_ANGLE], start, count, re, im, err, &top);
    if (st) return st;
    for (j = 0; j < count; j++) {
        double mod = exp(re[j] - top), ph = im[j];
        if (re[j] == -HUGE_VAL) err[j] = exp(fmin(err[j] - top, 700)) * (1 + 1e-9);
        else err[j] = mod * (err[j] + 12 * HS_U) * MORE;
        re[j] = mod > 0 ? mod * cos(ph) : 0;
        im[j] = mod > 0 ? mod * sin(ph) : 0;
    }
    line[HS_LINE_TOP] = top;
    return HS_OK;
}

/* The order for lam = n + c >= want, less where rare jumps would make E_P (S/t)^n, about e^jump, much larger than
 * F(-c): what is left out is bounded by multiples of that moment. lam >= 3 where the weights fit a double. */
static int order(double m, double t, double c, double want)
{
    int n, least = (int)fmin(fmax(0, ceil(3 - c)), HS_ALLOCATION_ORDER);
    int most = (int)fmin(fmax(0, ceil(want - c)), HS_ALLOCATION_ORDER);
    double first = fmax(0, 0.5 * (least + 1) * least * m * m - (least - 1) * log(t)), jump;
    for (n = most; n > 0; n--) {
        jump = 0.5 * (n + 1) * n * m * m - (n - 1) * log(t);
        if (jump < (n > least ? fmin(first + JUMP, 500) : 500) && (20 + (n + 1) * m) * m < 600) break;
    }
    return n;
}

/* Aliases of the w-sum on the line th at frequency y, over |Gamma(nu)| F(-c) [theory: allocation.aliases].
 * log_ratio: log Gamma(lam)/|Gamma(nu)|. */
double hs_allocation_aliases_upper(const hs_allocation *A, double y, double th, double log_ratio)
{
    double p = 2 * HS_PI / A->h, far = p + y, near = p - y, al;
    double q, sum;
    if (!(near > 0)) return HUGE_VAL;
    al = atan2(far, A->lam);
    if (!(al > th)) al = 0.5 * (th + HS_PI / 2); /* every angle in between is valid */
    q = (al - th) * p;
    sum = exp(log_ratio - A->lam * log(cos(al)) - al * y - 0.5 * far * far / (A->a * A->a) - q) / -expm1(-q);
    al = atan2(near, A->lam);
    q = (al + th) * p;
    sum += exp(log_ratio - A->lam * log(cos(al)) + al * y - 0.5 * near * near / (A->a * A->a) - q) / -expm1(-q);
    return sum * (1 + 1e-9);
}

/* The largest log of the aliases that frequencies up to y_max meet, at the ends of the range of tilts and of what each
 * line serves. */
static double worst_alias(hs_allocation *A, double y_max)
{
    double lg, re, im, y;
    double worst = -HUGE_VAL;
    int i, side;
    for (i = 0; i < 2 * A->lines; i++)
        for (side = -1; side <= 1; side += 2) {
            A->lam = i % 2 ? A->lam_hi : A->lam_lo;
            y = fmin(y_max, A->lam * sinh(fmax(0, (i / 2 + 0.5 * side) * A->turn)));
            hs_allocation_log_gamma(A->lam, 0, A->w0, &lg, &im);
            hs_allocation_log_gamma(A->lam, y, A->w0, &re, &im);
            worst = fmax(worst, log(hs_allocation_aliases_upper(A, y, atan(sinh(i / 2 * A->turn)), lg - re)));
        }
    return worst;
}

/* The order of a table at the tilt c; it serves lam within `wide` of n + c, `part` of the widest range. */
int hs_allocation_range(double m, double t, double c, double y_max, double part, double *wide)
{
    int n = order(m, t, c, y_max > 0 ? fmax(3, 1.5 * fmin(sqrt(t) / m, 40)) : 6);
    double lam = n + c;
    *wide = part * fmin(0.5 * lam, y_max > 0 ? fmax(1, 0.15 * lam) : fmax(3, 6 * sqrt(fmax(lam, 0))));
    return n;
}

/* Order and range of tilts, mesh, angles, and bounds of H of the table of m, t, depth, y_max, centre and part. A node
 * of a line loses at most lam_hi turn^2/8 = 1.5 nats where the line serves the frequency farthest from its own. */
static int place(hs_allocation *A)
{
    double reach, period, wide, re;
    double im, low, y_max = A->y_max;
    int st, i;
    A->a = sqrt(A->t) / A->m;
    A->n = hs_allocation_range(A->m, A->t, A->centre, y_max, A->part, &wide);
    A->from = A->n + A->centre;
    A->lines = 0;
    if (!(A->from > 0.5 && A->from < 1e7)) return HS_OUT_OF_RANGE;
    A->lam_lo = A->from - wide;
    A->lam_hi = A->from + wide;
    reach = A->a * sqrt(2 * A->depth);
    period = fmin(reach, 50 + 10 * sqrt(A->lam_hi));
    if (y_max > 0) period = fmin(reach, y_max) + 1.1 * reach;
    A->h = 2 * HS_PI / period;
    A->w0 = log(A->from);
    A->turn = y_max > 0 ? sqrt(12 / A->lam_hi) : 0;
    hs_allocation_log_gamma(A->lam_hi, 0, A->w0, &re, &im);
    if ((st = find_ends(A, re - A->depth - 2))) return st;
    A->lines = y_max > 0 ? 1 + (int)ceil(asinh(fmin(y_max, reach) / A->lam_lo) / A->turn) : 1;
    for (low = fmin(y_max, reach), i = 0; i < 8; i++) {
        A->h = 2 * HS_PI / (0.5 * (low + period));
        if (worst_alias(A, fmin(y_max, reach)) < -A->depth - 2) period = 0.5 * (low + period);
        else low = 0.5 * (low + period);
    }
    A->h = 2 * HS_PI / period;
    return A->lines <= HS_ALLOCATION_LINES ? HS_OK : HS_TOO_MANY_NODES;
}

/* All lines; depth: nats of what the ends of their windows leave out. */
static int fill_lines(hs_allocation *A, double depth, int64_t room)
{
    int64_t at = 0, first, count;
    int i, st;
    for (i = 0; i < A->lines; i++) {
        window(A, i, depth, &first, &count);
        if (at + HS_LINE_HEAD + 3 * count > room) return HS_TOO_MANY_NODES;
        A->start[i] = at;
        A->g[at + HS_LINE_ANGLE] = atan(sinh(i * A->turn));
        A->g[at + HS_LINE_FIRST] = (double)first;
        A->g[at + HS_LINE_COUNT] = (double)count;
        if ((st = fill_line(A, A->g + at))) return st;
        at += HS_LINE_HEAD + 3 * count;
    }
    return HS_OK;
}

/* H for tilts near A->centre, for y <= A->y_max; y_max = 0: on the real line alone. Where that fails A has no lines.
 * room: doubles at A->g, kept; HS_ALLOCATION_SCRATCH of them at A->scratch, overwritten. */
int hs_allocation_table(hs_allocation *A, int64_t room)
{
    int st = place(A);
    A->c = NAN;
    if (!st) st = fill_lines(A, A->depth + 2, room);
    if (st) A->lines = 0;
    return st;
}
