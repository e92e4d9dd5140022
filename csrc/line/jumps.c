/* jumps.c - certified delta(eps) and eps(delta) where one rare large loss makes nearly all of delta: k runs of one
 * pair, a plain sampled step under REMOVE or a public mixture of two-sided branches, eps > 0.
 *
 * Symbols. The cut x0 parts a step's outcomes: losses up to l0 are bulk, larger ones jumps. w the normal density, L the
 *   loss at x, s1 and s2 of bulk.c; B(t) = int w e^E over the bulk; R the sum of k-1 losses, all of the bulk; F the
 *   pay-off E (1 - e^{x-L})_+ of one step, f of all its losses and F_1 of its jumps alone; P, Q the masses of jumps
 *   under num and den. theta, mu, x = eps - mu: a tilt, and about the mean of R under it.
 *
 * Formula. delta = sum_j C(k,j) H_j over the number j of jumps [theory: small.numbers]. H_1 = E F_1(eps - R), and with
 *   h(d) = e^{-theta d} f(x - d),   E f(eps - R) = B(theta)^{k-1} e^{-theta mu} E_theta h(R - mu):
 *   Taylor's polynomial of h in the central moments of R, which follow from the cumulants of one tilted loss; its
 *   coefficients from the series of the place of a loss [theory: small.place-series].
 *
 * Error terms, relative to k B(theta)^{k-1} e^{-theta mu} f(x):
 *   jumps       H_0 by Chernoff; H_2 by sums over cells; all others by C(k,3) P^3; of a pair what lies left of its
 *               panels: upper end alone.
 *   truncation  (sup |h| + sum |h_n| rho^n) E|R - mu|^N / rho^N, and what lies beyond rho [theory: small.expansion];
 *               sup |h| on the disc by [theory: small.complex, small.complex-pair].
 *   inner       Gauss-Legendre panels up to x0, 20 nodes each: ellipses of parameter 4 [theory: law.gauss-panels,
 *               small.bulk].
 *   rounding    of nodes, moments, coefficients and exponents [theory: rounding.first-order].
 *
 * What it does not do: ADD of a plain step, whose losses are bounded; several distinct steps; bulks too wide for the
 * expansion.
 */
#include "clt/saddlepoint.h"
#include "line/counts.h"
#include "tuning.h"

#define ORDER HS_BULK_ORDER
#define LAYERS 24  /* of a sum beyond the expansion */
#define CELLS 32   /* of the first of two jumps */
#define SLACK 1e-8 /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */

/* One branch at the loss x > 0: its place g, log W w(g), and over W w(g) its pay-off f = b1 (R(g-up) - R(g)) + k2
 * (R(g-up) - R(g+down)) and -f' = k1 R1 + k2 R2, with R1 = R(g), R2 = R(g+down), b1 = (e^x - 1)(1-q), k1 = e^x (1-q),
 * k2 = e^x q e^{-down g - down^2/2}, of down = 0 all in k1; rel: bound of the relative error of both. */
typedef struct {
    double g, log_w, f, rel;
    double k1, k2, R1, R2;
} branch_at;

/* The relative error of f and of f' of one branch at the loss x, of place and rounding; R0 = R(g-up), e: errors of
 * R(g-up), R(g), R(g+down) [theory: small.place-series]. */
static double branch_error(const hs_bulk *J, int r, double x, const branch_at *b, double R0, const double *e)
{
    double up = J->pair.up[r], d = J->pair.down[r], g = b->g;
    double b1 = expm1(x) * (1 - J->pair.q[r]), off, rel;
    hs_bulk_loss at = hs_bulk_loss_at(J, r, g);
    /* how far the place is off: by what its loss is, and by the rounding of v */
    off = (fabs(at.l1 - at.l2 - x) + HS_U * (8 * x + 6 * J->pair.q_err)) / (up * at.s1 + d * at.s2);
    off += HS_U * (8 * fabs(g) + 4 + 5 * fmax(up, d));
    rel = (e[0] + HS_U * (2 + pow(g - up, 2))) * R0 * (b1 + b->k2) + (e[1] + 2 * HS_U) * b->R1 * b1;
    rel += (e[2] + 2 * HS_U) * b->R2 * b->k2 + HS_U * J->pair.q_err * (b->f + b->k1 * b->R1);
    rel = rel / b->f + (fabs(g) + up + d + 3) * off + e[1] + e[2];
    return rel + HS_U * (3 * g * g + 4 * d * (fabs(g) + d) + 20 + J->pair.w_err + 3 * fabs(b->log_w));
}

/* False where no loss of the branch is as large, or hardly any: e^-1000 of it lies beyond HS_BULK_FAR. */
static int see_branch(const hs_bulk *J, int r, double x, branch_at *b)
{
    double up = J->pair.up[r], d = J->pair.down[r], q = J->pair.q[r];
    double R0, e[3];
    if (up == 0) return 0;
    b->g = d > 0 ? hs_bulk_place(J, r, x) : log1p(expm1(x) / q) / up + 0.5 * up;
    if (b->g >= up + HS_BULK_FAR) return 0;
    b->k1 = exp(x) * (1 - q);
    b->k2 = exp(x) * q * exp(-d * b->g - 0.5 * d * d);
    R0 = hs_mills(b->g - up, &e[0]);
    b->R1 = hs_mills(b->g, &e[1]);
    b->R2 = hs_mills(b->g + d, &e[2]);
    b->f = expm1(x) * (1 - q) * (R0 - b->R1) + b->k2 * (R0 - b->R2);
    b->log_w = log(J->pair.w[r]) - 0.5 * b->g * b->g - HS_LOG_SQRT_2PI;
    b->rel = branch_error(J, r, x, b, R0, e);
    if (d > 0) return 1;
    b->k1 += b->k2;
    b->k2 = 0;
    return 1;
}

/* log f(x) for x > 0; *theta: -f'/f, infinite where f is not known; *rel: bound of the relative error of f. */
static double log_payoff(const hs_bulk *J, double x, double *theta, double *rel)
{
    double sum = 0, fall = 0, unit = -HUGE_VAL;
    branch_at b;
    int r;
    *rel = *theta = HUGE_VAL;
    for (r = 0; r < J->pair.branches; r++) {
        double size;
        if (!see_branch(J, r, x, &b)) continue;
        if (!(b.f > 0 && b.log_w > -1e300)) return HUGE_VAL;
        size = exp(-fabs(b.log_w - unit));
        if (b.log_w > unit) {
            sum = sum * size + b.f;
            fall = fall * size + b.k1 * b.R1 + b.k2 * b.R2;
            unit = b.log_w;
        } else {
            sum += size * b.f;
            fall += size * (b.k1 * b.R1 + b.k2 * b.R2);
        }
        *rel = *rel < HUGE_VAL ? fmax(*rel, b.rel) : b.rel;
    }
    if (!(sum > 0 && *rel < 1)) return sum > 0 ? HUGE_VAL : -HUGE_VAL;
    *theta = fall / sum;
    *rel += HS_U * (8 + 3 * fabs(unit) + fabs(log(sum)));
    return unit + log(sum);
}

/* An upper bound of log F_1(x). */
static double log_jump_upper(const hs_bulk *J, double x)
{
    double most = J->log_unit + log(J->p), theta, rel, u;
    if (x >= J->l0 * (1 + 1e-9)) return fmin(most, log_payoff(J, x, &theta, &rel));
    u = J->u - expm1(x) * J->q_den + 4 * J->rel * J->p;
    return u > 0 ? fmin(most, J->log_unit + log(u)) : -HUGE_VAL;
}

static double choose_cut(int n, int j) { return j == 0 ? 1 : choose_cut(n - 1, j - 1) * n / j; }

/* Moments about `mean` of the sum of r losses: out, and bounds of their errors. wide[n]: what errors multiply, the same
 * polynomial of sizes, which is centred[n] for losses whose mean is known. */
static void moments_of_sum(const hs_bulk_tilted *T, double r, double off, double *out, double *err)
{
    double cum[ORDER + 1], big[ORDER + 1], wide[ORDER + 1] = {1}, centred[ORDER + 1] = {1};
    int i, n;
    for (n = 1; n <= ORDER; n++) {
        cum[n] = T->moment[n];
        big[n] = T->size[n];
        for (i = 1; i < n; i++) {
            cum[n] -= choose_cut(n - 1, i - 1) * cum[i] * T->moment[n - i];
            big[n] += choose_cut(n - 1, i - 1) * big[i] * T->size[n - i];
        }
    }
    for (out[0] = 1, err[0] = 0, n = 1; n <= ORDER; n++) {
        out[n] = wide[n] = centred[n] = 0;
        for (i = 1; i <= n; i++) {
            double c = choose_cut(n - 1, i - 1);
            out[n] += i > 1 ? c * r * cum[i] * out[n - i] : 0;
            centred[n] += i > 1 ? c * r * big[i] * centred[n - i] : 0;
            wide[n] += c * (i > 1 ? r * big[i] : off) * wide[n - i];
        }
        err[n] = 1.01 * n * (T->wrong + 200 * HS_U) * wide[n] + (wide[n] - centred[n]) + 1e-14 * wide[n];
    }
}

/* Coefficients of a function about x, and of a majorant that errors multiply. */
typedef struct {
    double of[ORDER + 1], most[ORDER + 1];
} series;

/* Coefficient n >= 1 of p where p' = -s q. */
static void less_product(const series *s, const series *q, int n, series *p)
{
    double sum = 0, most = 0;
    int i;
    for (i = 0; i < n; i++) {
        sum -= s->of[i] * q->of[n - 1 - i];
        most += s->most[i] * q->most[n - 1 - i];
    }
    p->of[n] = sum / n;
    p->most[n] = most / n;
}

/* l = g' at the loss x of a branch: w = up g' is A'/A of A = (q/(1-q)) e^{v1}. With C = e^z (q/(1-q)) e^{v2}, A = e^z
 * - 1 + C, C' = C (1 - ratio w), and w (A + ratio C) = e^z + C; without a second side A = e^z/(1-q) - 1, w A =
 * e^z/(1-q) [theory: small.place-series]. */
static void place_series(const hs_bulk *J, int r, double x, double g, series *l)
{
    double up = J->pair.up[r], d = J->pair.down[r], q = J->pair.q[r], ratio = d / up;
    double e = exp(x) / (d > 0 ? 1 : 1 - q);
    series C = {{0}, {0}}, w, S = {{0}, {0}}; /* S = A + ratio C */
    int i, n;
    if (d > 0) C.of[0] = C.most[0] = exp(x) * q / (1 - q) * exp(-d * g - 0.5 * d * d);
    S.of[0] = d > 0 ? expm1(x) + (1 + ratio) * C.of[0] : (q + expm1(x)) / (1 - q);
    for (n = 0; n <= ORDER; n++) {
        w.of[n] = e + C.of[n];
        w.most[n] = e + C.most[n];
        for (i = 1; i <= n; i++) {
            w.of[n] -= S.of[i] * w.of[n - i];
            w.most[n] += S.most[i] * w.most[n - i];
        }
        l->of[n] = (w.of[n] /= S.of[0]) / up;
        l->most[n] = (w.most[n] /= S.of[0]) / up;
        if (n == ORDER) break;
        C.of[n + 1] = C.of[n];
        C.most[n + 1] = C.most[n];
        for (i = 0; i <= n; i++) {
            C.of[n + 1] -= ratio * w.of[i] * C.of[n - i];
            C.most[n + 1] += ratio * w.most[i] * C.most[n - i];
        }
        C.of[n + 1] /= n + 1;
        C.most[n + 1] /= n + 1;
        e /= n + 1;
        S.of[n + 1] = e + (1 + ratio) * C.of[n + 1];
        S.most[n + 1] = e + (1 + ratio) * C.most[n + 1];
    }
}

/* Phi^c(g)/w(g0) at x, g = g0 there, and its majorant: R = Mills' ratio at g0, l = g'. */
static void tail_series(const series *l, double g0, double R, series *out)
{
    series slope, p = {{1}, {1}}; /* g g', w(g)/w(g0) */
    int i, n;
    *out = (series){{R}, {R}};
    for (n = 0; n <= ORDER; n++) {
        slope.of[n] = g0 * l->of[n];
        slope.most[n] = fabs(g0) * l->most[n];
        for (i = 1; i <= n; i++) {
            slope.of[n] += l->of[i - 1] / i * l->of[n - i];
            slope.most[n] += l->most[i - 1] / i * l->most[n - i];
        }
    }
    for (n = 1; n <= ORDER; n++) {
        less_product(&slope, &p, n, &p);
        less_product(l, &p, n, out);
    }
}

/* Adds one branch to the coefficients c of f(x + d)/f(x) and to their majorant C. */
static void add_branch(const hs_bulk *J, int r, double x, double log_f, double *c, double *C)
{
    series l, t;
    branch_at b;
    int i, n, side;
    if (!see_branch(J, r, x, &b)) return;
    place_series(J, r, x, b.g, &l);
    for (side = 0; side < 2; side++) { /* f' is -e^x times tails of den */
        double size = (side ? b.k2 : b.k1) * exp(b.log_w - log_f);
        if (size == 0) continue;
        tail_series(&l, side ? b.g + J->pair.down[r] : b.g, side ? b.R2 : b.R1, &t);
        for (n = 1; n <= ORDER; n++) {
            double s = 0, S = 0, inverse = 1;
            for (i = n - 1; i >= 0; inverse /= n - i, i--) {
                s += t.of[i] * inverse;
                S += t.most[i] * inverse;
            }
            c[n] -= size * s / n;
            C[n] += size * S / n;
        }
    }
}

/* Coefficients in d of e^{theta d} f(x + d)/f(x), and in big[] those of a majorant that errors multiply; *coarse: the
 * relative error of f' / f. */
static void expansion(const hs_bulk *J, double x, double theta, double *h, double *big, double *coarse)
{
    double c[ORDER + 1] = {1}, C[ORDER + 1] = {1}, power = 1;
    double unused, rel, log_f = log_payoff(J, x, &unused, &rel);
    int i, n;
    for (i = 0; i < J->pair.branches; i++) add_branch(J, i, x, log_f, c, C);
    for (n = 0; n <= ORDER; n++) h[n] = big[n] = 0;
    for (i = 0; i <= ORDER; power *= theta / ++i)
        for (n = i; n <= ORDER; n++) {
            h[n] += power * c[n - i];
            big[n] += power * C[n - i];
        }
    *coarse = 2 * rel + 3e-13;
}

/* An upper bound of log|f| of one branch for Re x >= at, |Im x| <= y [theory: small.complex, small.complex-pair]. */
static double log_beside_upper(const hs_bulk *J, int r, double at, double y)
{
    double up = J->pair.up[r], d = J->pair.down[r], q = J->pair.q[r];
    double c = (1 - q) * exp(-at), slack = 0, turn;
    branch_at b;
    if (d > 0) {
        double a = hs_bulk_place(J, r, 0.5 * at), far = q / (1 - q) * exp(-d * a - 0.5 * d * d) * (1 + SLACK);
        hs_bulk_loss loss = hs_bulk_loss_at(J, r, a);
        if (!(far < 0.5 && up * loss.s1 * (1 - far) > 1.01 * d * far)) return HUGE_VAL;
        slack = log((1 + far) / (1 - far)) * (1 + SLACK);
        if (!((loss.l1 - loss.l2) * (1 + SLACK) + slack < at)) return HUGE_VAL;
        c = exp(-at) / (1 - far);
        y += asin(far);
    }
    if (!(c < 1)) return HUGE_VAL;
    turn = y + asin(c);
    if (y < 3) turn = fmin(turn, atan2(sin(y), cos(y) - c));
    if (!see_branch(J, r, at - slack, &b)) return -HUGE_VAL;
    return b.log_w + log(b.f) + slack + 0.5 * pow(turn / up, 2);
}

/* An upper bound of log |e^{-theta d} f(x-d)| on |d| <= rho < x. */
static double log_disc_upper(const hs_bulk *J, double x, double theta, double rho)
{
    double worst = -HUGE_VAL;
    int i, r;
    for (i = 0; i < CELLS; i++) {
        double left = rho * (2.0 * i / CELLS - 1), right = rho * (2.0 * (i + 1) / CELLS - 1), all = -HUGE_VAL;
        double near = fmax(0, fmax(left, -right)), at = fmax(x - right, x - rho);
        double y = sqrt(fmax(0, rho * rho - near * near));
        for (r = 0; r < J->pair.branches; r++)
            if (J->pair.up[r] > 0) all = hs_log_add(all, log_beside_upper(J, r, at, y));
        worst = fmax(worst, all - theta * left);
    }
    return worst + SLACK * (1 + fabs(worst));
}

/* An upper bound of the log of Pr[sum of n losses < s, all of the bulk], of a pair with two sides: under den, where
 * such sums are e^-s times as likely at least, one of them lies left of where losses are s, or Chernoff's bound
 * [theory: small.numbers]. */
static double log_fall_upper(const hs_bulk *J, double n, double s)
{
    static const double NATS_BACK[] = {8, 14, 22, 34};
    double best = 0, den;
    int i;
    if (!(s < 0)) return 0;
    for (i = 0; i < 4; i++) {
        double t = -NATS_BACK[i] / s, one = n * hs_bulk_fall_upper(J, t, -s, &den) + t * s;
        best = fmin(best, s + hs_log_add(log(n) + log(den), one));
    }
    return best + SLACK * (1 + fabs(best));
}

/* The same of any law. */
static double log_under_upper(const hs_bulk *J, double n, double s)
{
    double best = 0, reach = -log1p(-J->q);
    int i;
    if (!hs_bulk_plain(J)) return log_fall_upper(J, n, s);
    for (i = 0; i < HS_BULK_TILTS; i++) {
        double t = J->tilt[i], one = 0.5 * t * t * exp(fmin(600, t * reach)) * J->square - t * J->mean;
        best = fmin(best, t * s + n * one);
    }
    return best + SLACK * fabs(best);
}

/* The first branch that jumps. */
static int first_cut(const hs_bulk *J)
{
    int r = 0;
    while (r < J->pair.branches - 1 && !(J->cut[r] < HUGE_VAL)) r++;
    return r;
}

/* Places of every branch that jumps about the loss at the place g of branch `own`, none below its cut; the largest of
 * their losses. */
static double all_places(const hs_bulk *J, int own, double g, double *place)
{
    hs_bulk_loss at = hs_bulk_loss_at(J, own, g);
    double loss = at.l1 - at.l2, most = loss;
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        place[r] = J->cut[r];
        if (r == own) place[r] = g;
        if (r == own || !(J->cut[r] < HUGE_VAL)) continue;
        place[r] = fmax(J->cut[r], hs_bulk_place(J, r, loss));
        at = hs_bulk_loss_at(J, r, place[r]);
        most = fmax(most, at.l1 - at.l2);
    }
    return most * (1 + 1e-12);
}

/* An upper bound of log F_2(x), the pay-off of two jumps. */
static double log_two_upper(const hs_bulk *J, double x)
{
    double all = 2 * J->log_unit, total = 0, last = J->p;
    double place[HS_BRANCHES], end, at;
    double p, u, den, rel;
    int i, own = first_cut(J);
    if (x <= 2 * J->l0) {
        at = J->u * (J->p + J->q_den) - expm1(x) * J->q_den * J->q_den;
        return all + log(fmax(at + 8 * J->rel * J->p * J->p, 1e-300));
    }
    end = hs_bulk_place(J, own, x - J->l0);
    for (i = 1; i <= CELLS; i++) {
        at = all_places(J, own, J->x0[own] + (end - J->x0[own]) * i / CELLS, place);
        hs_bulk_masses(J, place, &p, &u, &den, &rel);
        total += (fmax(0, last - p) + 2 * rel * last) * exp(log_jump_upper(J, x - at) - J->log_unit);
        last = p;
    }
    at = u * J->p + den * J->u - expm1(x) * den * J->q_den;
    return all + log(total + fmax(0, at) + 8 * (rel + J->rel) * p * J->p);
}

/* An upper bound of the log of E[F(eps - S); S > from] for a decreasing F, S the sum of n losses, all of the bulk:
 * layers up to eps, and `most` beyond [theory: small.numbers]. */
static double log_layers_upper(const hs_bulk *J, double (*F)(const hs_bulk *, double), double n, double eps,
                               double from, double most)
{
    double total = most + hs_bulk_above_upper(J, n, eps), step = (eps - from) / LAYERS;
    int i;
    for (i = 0; i < LAYERS; i++)
        total = hs_log_add(total, F(J, eps - (from + (i + 1) * step)) + hs_bulk_above_upper(J, n, from + i * step));
    return total + SLACK * (1 + fabs(total));
}

/* Runs with no jump, or with two or more, relative to e^scale. */
static double others(const hs_bulk *J, double eps, double scale)
{
    double none = HUGE_VAL, two = -HUGE_VAL, more = -HUGE_VAL, pairs = log(J->k) + log(0.5 * (J->k - 1));
    double low = (J->k - 2) * J->mean, one = J->log_unit + log(J->p);
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        double t = J->tilt[i];
        none = fmin(none, J->k * J->log_b[i] - t * eps - t * log1p(1 / t) - log1p(t));
    }
    low = fmin(low, 0.5 * eps);
    two = hs_log_add(log_two_upper(J, eps - low), log_layers_upper(J, log_two_upper, J->k - 2, eps, low, 2 * one)) +
          pairs;
    if (J->k > 2) more = 3 * one + pairs + log((J->k - 2) / 3);
    more = hs_log_add(more, 2 * log(J->k) - 1000);          /* what lies beyond HS_BULK_FAR */
    none = hs_log_add(none, hs_log_add(two, more)) - scale; /* [theory: small.numbers] */
    return exp(none + SLACK * (2 + fabs(none) + fabs(scale)));
}

/* What is shared by all eps near one at which theta is the tilt, of a law that is cut. */
int hs_jumps_prepare(hs_bulk *J, double theta)
{
    hs_bulk_tilted T;
    int i, st = hs_bulk_at(J, theta, 2, &T);
    if (st) return st;
    if (!(theta * theta * (J->k - 1) * T.moment[2] < HS_JUMPS_SPREAD)) return HS_TOO_WIDE;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        J->tilt[i] = theta * exp2((i - 8) / 3.0);
        J->log_b[i] = hs_bulk_log_upper(J, J->tilt[i]);
    }
    if ((st = hs_bulk_at(J, 0, 2, &T))) return st;
    J->mean = T.mean - T.mean_err;
    J->square = T.moment[2] + T.wrong * T.size[2];
    return HS_OK;
}

/* The same with the cut at the loss l, above all losses of branches whose losses are bounded. */
static int prepare(hs_bulk *J, double l, double theta)
{
    int r, st;
    for (r = 0; r < J->pair.branches; r++)
        if (J->pair.up[r] == 0 && !(expm1(-l) < -J->pair.q[r] * (1 + SLACK))) return HS_OUT_OF_RANGE;
    st = hs_bulk_cut(J, l, theta, 0);
    return st ? st : hs_jumps_prepare(J, theta);
}

/* What the expansion leaves, relative to e^scale, at the best of a few radii: Taylor's remainder, with `top` at least
 * E|R - mu|^ORDER, and what lies beyond. */
static double left_over_upper(const hs_bulk *J, double eps, double x, double theta, double scale, const double *h,
                              double top)
{
    double best = HUGE_VAL, radius = 0, taylor = 0;
    double unused, rel, here = log_payoff(J, x, &unused, &rel);
    double n = J->k - 1, each = log(J->k) - scale, right, left;
    int i, j;
    for (i = 1; i <= 8; i++) {
        double rho = (x - J->l0) * i / 8.001, sum = exp(fmin(600, log_disc_upper(J, x, theta, rho) - here)), power = 1,
               all;
        for (j = 0; j < ORDER; j++, power *= rho) sum += fabs(h[j]) * power;
        all = sum * top / power + /* [theory: small.expansion] */
              exp(each + log_jump_upper(J, x - rho) + hs_bulk_above_upper(J, n, eps - x + rho));
        if (!(all < best)) continue;
        best = all;
        taylor = sum * top / power;
        radius = rho;
    }
    if (!(best < HUGE_VAL)) return HUGE_VAL;
    right = each + log_layers_upper(J, log_jump_upper, n, eps, eps - x + radius, J->log_unit + log(J->p));
    left = each + log_payoff(J, x + radius, &unused, &rel) + log_under_upper(J, n, eps - x - radius);
    return (exp(right) + exp(left) + taylor) * (1 + SLACK * (1 + fabs(scale)));
}

/* The loss x of the one jump and the tilt theta = -f'/f there, by which the bulk, left in T, has the rest as its mean;
 * *log_f: log f(x), *rel its error. False where there is none above the cut. */
static int meet(const hs_bulk *J, double eps, double *x, double *theta, double *log_f, double *rel, hs_bulk_tilted *T)
{
    int i;
    for (*x = eps, *log_f = *rel = *theta = 0, i = 0; i < 5; i++) {
        double bulk[3];
        if (!(*x > 1.02 * J->l0)) return 0;
        *log_f = log_payoff(J, *x, theta, rel);
        if (!(*theta < HUGE_VAL)) return 0;
        if (i == 4) return !hs_bulk_at(J, *theta, ORDER, T);
        if (!hs_bulk_estimate(J, *theta, bulk)) return 0;
        *x = eps - (J->k - 1) * bulk[1];
    }
    return 0;
}

/* What runs with one jump add to delta(eps), with the cut as prepared; value 0 where this says nothing. */
void hs_jumps_one(const hs_bulk *J, double eps, hs_value *v)
{
    double h[ORDER + 1], big[ORDER + 1], m[ORDER + 1], err[ORDER + 1];
    double x, theta, rel, n = J->k - 1;
    double here, coarse, whole, off;
    hs_bulk_tilted T;
    int i;
    memset(v, 0, sizeof(*v));
    v->upper = HUGE_VAL;
    if (!meet(J, eps, &x, &theta, &here, &rel, &T)) return;
    v->log_scale = log(J->k) + n * T.log_b - theta * (eps - x) + here;
    off = n * T.mean_err + fabs(n * T.mean - (eps - x)) + 8 * HS_U * (eps + fabs(eps - x) + n * fabs(T.mean));
    moments_of_sum(&T, n, off, m, err);
    expansion(J, x, theta, h, big, &coarse);
    for (i = 0; i < ORDER; i++) {
        v->value += (i % 2 ? -1 : 1) * h[i] * m[i];
        v->inner += fabs(h[i]) * err[i] + (i ? coarse * big[i] * (fabs(m[i]) + err[i]) : 0);
    }
    v->truncation = left_over_upper(J, eps, x, theta, v->log_scale, h, m[ORDER] + err[ORDER]);
    whole = n * T.err + 8 * HS_U * (fabs(n * T.log_b) + theta * (eps + fabs(x)) + fabs(here) + log(J->k)) + rel;
    v->rounding = fabs(v->value) * expm1(whole) + 32 * HS_U * fabs(v->value);
    v->slope = theta * v->value;
    v->lower = v->value - v->inner - v->truncation - v->rounding;
    v->upper = v->value + (v->inner + v->truncation) * (1 + expm1(whole)) + v->rounding;
    if (v->lower > 0 && v->upper < HUGE_VAL) return;
    v->value = 0;
    v->upper = HUGE_VAL;
}

/* delta(eps), the same. */
static void jumps_at(const void *self, double eps, hs_value *v)
{
    const hs_bulk *J = (const hs_bulk *)self;
    hs_jumps_one(J, eps, v);
    if (!(v->value > 0)) return;
    v->alias_right = others(J, eps, v->log_scale);
    if (!hs_bulk_plain(J)) v->alias_right += 2 * J->k * J->out_p * (v->upper + v->alias_right);
    v->upper += v->alias_right * (1 + SLACK);
    if (!(v->upper < HUGE_VAL)) v->value = 0;
}

/* -d log f/d eps of one step's curve f. */
double hs_jumps_tilt(const hs_bulk *J, double eps)
{
    double theta, rel;
    log_payoff(J, eps, &theta, &rel);
    return theta;
}

static const double CUTS[] = {0.5, 0.4, 0.3, 0.22, 0.15, 0.1, 0.07, 0.05, 0.03};

/* The cut that leaves least at eps, from number *at on, which becomes its own; HS_TOO_WIDE where none serves. */
static int best_cut(hs_bulk *J, double eps, int *at, hs_value *v)
{
    double theta, rel, best = HUGE_VAL, last;
    int i, from = *at, chosen = -1;
    log_payoff(J, eps, &theta, &rel);
    if (!(theta < HUGE_VAL)) return HS_OUT_OF_RANGE;
    for (i = from; i < (int)(sizeof CUTS / sizeof *CUTS) && best > HS_JUMPS_ENOUGH; i++) {
        if (chosen < 0 && i - from == HS_JUMPS_VAIN) break;
        if (prepare(J, CUTS[i] * eps, theta)) continue;
        jumps_at(J, eps, v);
        if (!(v->value > 0)) continue;
        last = best;
        if (!(v->upper / v->lower - 1 < best)) break;
        best = v->upper / v->lower - 1;
        chosen = i;
        if (best > HS_JUMPS_WON * last) break;
    }
    if (chosen < 0) return HS_TOO_WIDE;
    *at = chosen;
    if (i == chosen || best <= HS_JUMPS_ENOUGH) return HS_OK; /* the last one tried */
    if (prepare(J, CUTS[chosen] * eps, theta)) return HS_TOO_WIDE;
    jumps_at(J, eps, v);
    return v->value > 0 ? HS_OK : HS_TOO_WIDE;
}

static int opened(hs_bulk *J, const hs_pair *pair, double k, const hs_rule *rule, double *work, int64_t n_work)
{
    int r, jumps = 0;
    if (n_work < HS_BULK_WORK) return HS_SCRATCH;
    for (r = 0; r < pair->branches; r++) {
        if (!(pair->up[r] < 10 && pair->down[r] < 10 && (pair->up[r] == 0 || pair->up[r] > 1e-3)))
            return HS_BAD_ARGUMENT;
        jumps += pair->up[r] > 0;
    }
    return jumps && k >= 2 ? hs_bulk_open(J, pair, k, rule, work) : HS_BAD_ARGUMENT;
}

int hs_jumps_delta(const hs_pair *pair, double k, double eps, const hs_rule *rule, double *work, int64_t n_work,
                   hs_point *out)
{
    hs_bulk J;
    hs_value v;
    int at = 0, st = opened(&J, pair, k, rule, work, n_work);
    if (st) return st;
    if (!(eps > 0 && eps < 500)) return HS_OUT_OF_RANGE;
    if ((st = best_cut(&J, eps, &at, &v))) return st;
    hs_value_point(&v, J.panels * J.per, out);
    return HS_OK;
}

/* Where k one-step pay-offs make e^log_delta: the start of a root; 0 where none do. */
static double start_of(const hs_bulk *J, double log_delta)
{
    double lo = 1e-300, hi = 500, theta, rel;
    int i;
    for (i = 0; i < 60; i++) {
        double mid = sqrt(lo * hi);
        if (log(J->k) + log_payoff(J, mid, &theta, &rel) > log_delta) lo = mid;
        else hi = mid;
    }
    return lo > 1e-200 ? lo : 0;
}

int hs_jumps_eps(const hs_pair *pair, double k, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                 hs_crossing *out)
{
    hs_bulk J;
    hs_value v;
    hs_curve curve = {.at = jumps_at, .self = &J, .log_delta = log_delta, .reach = HUGE_VAL};
    double left, eps;
    int i, at = 0, st = opened(&J, pair, k, rule, work, n_work);
    if (st) return st;
    eps = start_of(&J, log_delta);
    for (i = 0; i < 2; i++) {
        if (!(eps > 0)) return HS_NO_BRACKET;
        if ((st = best_cut(&J, eps, &at, &v))) return st;
        if (!(v.upper < HS_JUMPS_HOPELESS * v.lower)) return HS_TOO_WIDE;
        curve.start = eps;
        curve.step = 0.3 * eps;
        curve.bend = 2 / eps;
        curve.reach = 0.9 * eps;
        if ((st = hs_root_estimate(&curve, &eps, &left, &v))) return st;
        if (fabs(eps - curve.start) < 0.03 * eps) break;
        at -= at > 0;
    }
    out->estimate = eps;
    if (hs_root_bracket(&curve, eps, left, &v, &out->lower, &out->upper) != 3) return HS_NO_BRACKET;
    hs_value_point(&v, J.panels * J.per, &out->delta);
    return HS_OK;
}
