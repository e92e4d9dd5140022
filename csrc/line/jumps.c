/* jumps.c - certified delta(eps) and eps(delta) where one rare large loss makes nearly all of delta: a run of few
 * distinct steps, each a plain sampled step under REMOVE or a public mixture of two-sided branches, eps > 0.
 *
 * Symbols. Step i has the count k_i, k in all. One loss l parts the outcomes of every step: losses up to it are bulk,
 *   larger ones jumps. w the normal density, L the loss at x, s1 and s2 of bulk.c; B_i(t) = int w e^E over the bulk, B
 *   the product of all B_i^{k_i}; R_i the sum of all losses but one of step i, all of the bulk; f_i(x) = E (1 -
 *   e^{x-L})_+ of one step, F_i the same of its jumps alone; P_i, Q_i the masses of jumps under num and den. theta,
 *   mu_i, x_i = eps - mu_i: a tilt, and about the mean of R_i under it.
 *
 * Formula. delta is a sum over the number of jumps [theory: small.numbers]. One jump: sum k_i E F_i(eps - R_i),
 *   and with h(d) = e^{-theta d} f_i(x_i - d),   E f_i(eps - R_i) = B(theta)/B_i(theta) e^{-theta mu_i} E_theta h(R_i -
 *   mu_i): Taylor's polynomial of h in the central moments of R_i, which follow from the cumulants of all tilted
 *   losses; its coefficients from the series of the place of a loss [theory: small.place-series].
 *
 * Error terms, relative to the largest k_i B(theta)/B_i(theta) e^{-theta mu_i} f_i(x_i):
 *   jumps       no jump by Chernoff; two by sums over cells; all others by a union bound over three steps; of a pair
 *               what lies left of its panels: upper end alone.
 *   truncation  (sup |h| + sum |h_n| rho^n) E|R - mu|^N / rho^N, and what lies beyond rho [theory: small.expansion];
 *               sup |h| on the disc by [theory: small.complex, small.complex-pair].
 *   inner       Gauss-Legendre panels up to the cut, 20 nodes each: ellipses of parameter 4 [theory: law.gauss-panels,
 *               small.bulk].
 *   rounding    of nodes, moments, coefficients and exponents [theory: rounding.first-order].
 *
 * Nothing else answers its cases (`python benchmarks/widths.py`, seed 1). Without it 12 % of sparse questions are
 *   wider than 1e-6 (1.8 with it), 8 % wider than 1e-3 (0.2), and the 99th of 100 takes 65 ms (17). Without pairs:
 *   replaced records 0.3 % above 1e-3 (0), the slowest truncated one 179 ms (63). Without distinct steps: unlike 0.5
 *   % above 1e-3 (0.1). Two jumps by a union bound: sparse 2.8 % above 1e-6, 23 ms.
 *
 * What it does not do: ADD of plain steps, whose losses are bounded; bulks too wide for the expansion.
 */
#include "line/counts.h"
#include "tuning.h"

#define ORDER HS_BULK_ORDER
#define CELLS 32   /* of the disc, and of the first of two jumps at most */
#define COARSE 10  /* of the first of two jumps of pairs, and layers of their sum, while cut and root are sought */
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
    double b1 = expm1(x) * (1 - J->pair.q[r]), off, rel, units;
    hs_bulk_loss at = hs_bulk_loss_at(J, r, g);
    /* how far the place is off: by what its loss is, and by the rounding of v */
    off = (fabs(at.l1 - at.l2 - x) + HS_U * (8 * x + 6 * J->pair.q_err)) / (up * at.s1 + d * at.s2);
    off += HS_U * (8 * fabs(g) + 4 + 5 * fmax(up, d));
    rel = e[0] * R0 * (b1 + b->k2) + e[1] * b->R1 * b1 + e[2] * b->R2 * b->k2;
    units = (2 + pow(g - up, 2)) * R0 * (b1 + b->k2) + 2 * (b->R1 * b1 + b->R2 * b->k2);
    units = (units + J->pair.q_err * (b->f + b->k1 * b->R1)) / b->f;
    units += 3 * g * g + 4 * d * (fabs(g) + d) + 20 + J->pair.w_err + 3 * fabs(b->log_w);
    return rel / b->f + (fabs(g) + up + d + 3) * off + e[1] + e[2] + HS_U * units;
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

/* log of sum k f(x) over all steps, and its fall, the same. */
static double log_payoffs(const hs_jumps *A, double x, double *theta, double *rel)
{
    double sum = -HUGE_VAL, fall = 0;
    int i;
    *theta = *rel = HUGE_VAL;
    for (i = 0; i < A->n; i++) {
        double own, slope, off, one = log_payoff(&A->step[i], x, &slope, &off);
        if (!(one > -HUGE_VAL)) continue;
        if (!(one < HUGE_VAL)) return HUGE_VAL;
        one += log(A->step[i].k);
        own = 1 / (1 + exp(fmin(sum - one, 700)));
        fall += own * (slope - fall);
        sum = hs_log_add(sum, one);
        *rel = *rel < HUGE_VAL ? fmax(*rel, off) : off;
    }
    if (!(sum > -HUGE_VAL)) return sum;
    *theta = fall;
    *rel += HS_U * (8 + 4 * (double)A->n + 2 * fabs(sum));
    return sum;
}

/* e^log_unit of step i over that of the run, at least. */
static double unit_upper(const hs_jumps *A, int i) { return exp(fmax(-690, A->step[i].log_unit - A->log_unit)); }

/* An upper bound of log F_i(x). */
static double log_jump_upper(const hs_jumps *A, int i, double x)
{
    const hs_bulk *J = &A->step[i];
    double most = J->log_unit + log(J->p), theta, rel, u;
    if (x > A->low) return x > 0 ? fmin(most, log_payoff(J, x, &theta, &rel)) : most;
    u = J->u - expm1(x) * J->q_den + 4 * J->rel * J->p;
    return u > 0 ? fmin(most, J->log_unit + log(u)) : -HUGE_VAL;
}

/* The same of sum k_i F_i. */
static double log_jumps_upper(const hs_jumps *A, double x)
{
    double sum = -HUGE_VAL;
    int i;
    for (i = 0; i < A->n; i++) sum = hs_log_add(sum, log(A->step[i].k) + log_jump_upper(A, i, x));
    return sum;
}

/* For every step the sum of x over all steps but one of its own. */
static void all_but_one(const hs_jumps *A, const double *x, double *rest)
{
    double before = 0, after = 0;
    int i;
    for (i = 0; i < A->n; before += A->step[i].k * x[i], i++) rest[i] = (A->step[i].k - 1) * x[i] + before;
    for (i = A->n - 1; i >= 0; after += A->step[i].k * x[i], i--) rest[i] += after;
}

static double choose_cut(int n, int j) { return j == 0 ? 1 : choose_cut(n - 1, j - 1) * n / j; }

/* Cumulants of one loss, and what errors of its moments multiply: the same polynomial of sizes. */
static void cumulants(const hs_bulk_tilted *T, double *cum, double *big)
{
    int i, n;
    for (n = 1; n <= ORDER; n++) {
        cum[n] = T->moment[n];
        big[n] = T->size[n];
        for (i = 1; i < n; i++) {
            cum[n] -= choose_cut(n - 1, i - 1) * cum[i] * T->moment[n - i];
            big[n] += choose_cut(n - 1, i - 1) * big[i] * T->size[n - i];
        }
    }
}

/* Moments about `mean` of a sum with the cumulants cum: out, and bounds of their errors. wrong: of the moments of every
 * loss. wide[n]: what errors multiply, which is centred[n] for losses whose mean is known. */
static void moments_of_sum(const double *cum, const double *big, double wrong, double off, double *out, double *err)
{
    double wide[ORDER + 1] = {1}, centred[ORDER + 1] = {1};
    int i, n;
    for (out[0] = 1, err[0] = 0, n = 1; n <= ORDER; n++) {
        out[n] = wide[n] = centred[n] = 0;
        for (i = 1; i <= n; i++) {
            double c = choose_cut(n - 1, i - 1);
            out[n] += i > 1 ? c * cum[i] * out[n - i] : 0;
            centred[n] += i > 1 ? c * big[i] * centred[n - i] : 0;
            wide[n] += c * (i > 1 ? big[i] : off) * wide[n - i];
        }
        err[n] = 1.01 * n * (wrong + 200 * HS_U) * wide[n] + (wide[n] - centred[n]) + 1e-14 * wide[n];
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

/* Upper bound of the log of Pr[R > s], R the sum of all losses but `less`, all of the bulk. */
static double log_rest_upper(const hs_jumps *A, int less, double s)
{
    double best = 0;
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++)
        best = fmin(best, A->log_all[i] - less * A->log_least[i] - A->step->tilt[i] * s);
    return best + SLACK * fabs(best);
}

/* An upper bound of the log of Pr[sum of all losses but one < s, all of the bulk], of pairs with two sides: under den,
 * where such sums are e^-s times as likely at least, one of them lies left of where losses are s, or Chernoff's bound
 * [theory: small.numbers]. */
static double log_fall_upper(const hs_jumps *A, double s)
{
    static const double NATS_BACK[] = {8, 14, 22, 34};
    double best = 0;
    int i, j;
    if (!(s < 0)) return 0;
    for (i = 0; i < 4; i++) {
        double t = -NATS_BACK[i] / s, all = 0, least = HUGE_VAL, dens = 0;
        for (j = 0; j < A->n; j++) {
            double den, one = hs_bulk_fall_upper(&A->step[j], t, -s, &den);
            all += A->step[j].k * one;
            least = fmin(least, one);
            dens += A->step[j].k * den;
        }
        best = fmin(best, s + hs_log_add(log(dens), all - least + t * s));
    }
    return best + SLACK * (1 + fabs(best));
}

/* The same of any law. */
static double log_under_upper(const hs_jumps *A, double s)
{
    double best = 0;
    int i, j;
    if (!A->plain) return log_fall_upper(A, s);
    for (i = 0; i < HS_BULK_TILTS; i++) {
        double t = A->step->tilt[i], all = 0, least = HUGE_VAL;
        for (j = 0; j < A->n; j++) {
            const hs_bulk *J = &A->step[j];
            double one = 0.5 * t * t * exp(fmin(600, -t * log1p(-J->q))) * J->square - t * J->mean;
            all += J->k * one;
            least = fmin(least, one);
        }
        best = fmin(best, t * s + all - least);
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

/* Places of every branch that jumps about the loss `loss`, none below its cut; *most: at least the largest of their
 * losses. */
static void all_places(const hs_bulk *J, double loss, double *place, double *most)
{
    int r;
    for (r = 0; r < J->pair.branches; r++) {
        hs_bulk_loss at;
        place[r] = J->cut[r];
        if (!(J->cut[r] < HUGE_VAL)) continue;
        place[r] = fmax(J->cut[r], hs_bulk_place(J, r, loss));
        at = hs_bulk_loss_at(J, r, place[r]);
        *most = fmax(*most, (at.l1 - at.l2) * (1 + 1e-12));
    }
}

/* Half the sum over all steps of k_i times (p_i P_j - e^x q_i Q_j) over all others, at most: the first jump of `a`, the
 * second any; all their sums exceed x. */
static double above_both_upper(const hs_jumps *A, const hs_jump_masses *a, double x)
{
    const hs_jump_masses *b = &A->masses;
    double P[HS_JUMPS_STEPS], U[HS_JUMPS_STEPS], Q[HS_JUMPS_STEPS];
    double sum = 0, size = 0;
    int i;
    all_but_one(A, b->p, P);
    all_but_one(A, b->u, U);
    all_but_one(A, b->den, Q);
    for (i = 0; i < A->n; i++) {
        sum += 0.5 * A->step[i].k * (a->u[i] * P[i] + a->den[i] * U[i] - expm1(x) * a->den[i] * Q[i]);
        size += 0.5 * A->step[i].k * a->p[i] * P[i];
    }
    return fmax(0, sum) + 8 * (a->rel + b->rel + A->n * HS_U) * size;
}

/* An upper bound of the log of the pay-off F_2(x) of any two jumps, summed over all pairs of steps. */
static double log_two_upper(const hs_jumps *A, double x)
{
    double total = 0, F[HS_JUMPS_STEPS], rest[HS_JUMPS_STEPS], place[HS_BRANCHES];
    const hs_bulk *own = &A->step[A->own];
    hs_jump_masses last = A->masses, now;
    int i, c, cut = first_cut(own);
    double end;
    if (x <= 2 * A->low) return 2 * A->log_unit + log(fmax(above_both_upper(A, &last, x), 1e-300));
    end = hs_bulk_place(own, cut, x - A->low);
    for (c = 1; c <= A->cells; c++, last = now) {
        hs_bulk_loss level = hs_bulk_loss_at(own, cut, own->x0[cut] + (end - own->x0[cut]) * c / A->cells);
        double most = c < A->cells ? level.l1 - level.l2 : fmax(level.l1 - level.l2, x - A->low), at = most;
        for (now.rel = 0, i = 0; i < A->n; i++) {
            double unit = unit_upper(A, i), rel;
            all_places(&A->step[i], at, place, &most);
            hs_bulk_masses(&A->step[i], place, &now.p[i], &now.u[i], &now.den[i], &rel);
            now.p[i] *= unit;
            now.u[i] *= unit;
            now.den[i] *= unit;
            now.rel = fmax(now.rel, rel);
        }
        for (i = 0; i < A->n; i++) F[i] = exp(log_jump_upper(A, i, x - most) - A->log_unit);
        all_but_one(A, F, rest);
        for (i = 0; i < A->n; i++)
            total += 0.5 * A->step[i].k * (fmax(0, last.p[i] - now.p[i]) + 2 * fmax(last.rel, now.rel) * last.p[i]) *
                     rest[i];
    }
    return 2 * A->log_unit + log(total + above_both_upper(A, &last, x) + 1e-300);
}

/* The pay-off of two jumps at losses from eps, less the mean of the others, down to 0. */
static void lay_two(hs_jumps *A, double eps, int fine)
{
    int i;
    A->cells = fine || A->plain ? CELLS : COARSE;
    A->layers = fine || A->plain ? HS_JUMPS_LAYERS : COARSE;
    A->two_at[0] = eps - fmin((A->count - 2) * A->mean, 0.5 * eps);
    for (i = 0; i <= A->layers; i++) {
        A->two_at[i] = A->two_at[0] * (1 - pow((double)i / A->layers, 2));
        A->two[i] = log_two_upper(A, A->two_at[i]);
    }
}

/* log(e^a - e^b), -infinite where b is not below a. */
static double log_less(double a, double b) { return b < a ? a + log(-expm1(b - a)) : -HUGE_VAL; }

/* An upper bound of the log of E[sum k_i F_i(eps - R); R > from], R the sum of all losses but one, all of the bulk:
 * layers up to eps, and beyond [theory: small.numbers]. */
static double log_layers_upper(const hs_jumps *A, double eps, double from)
{
    double total = -HUGE_VAL, last = -HUGE_VAL, step = (eps - from) / HS_JUMPS_LAYERS;
    int i;
    for (i = 0; i <= HS_JUMPS_LAYERS; i++) {
        double at = from + i * step;
        double F = log_jumps_upper(A, i < HS_JUMPS_LAYERS ? eps - (at + step) : -HUGE_VAL);
        total = hs_log_add(total, log_less(F, last) + log_rest_upper(A, 1, i < HS_JUMPS_LAYERS ? at : eps));
        last = fmax(last, F);
    }
    return total + SLACK * (1 + fabs(total));
}

/* log of the sums over pairs and over triples of steps of the products of their masses, at most. */
static void log_products(const hs_jumps *A, double *two, double *three)
{
    double rest[HS_JUMPS_STEPS], pairs = 0;
    double p1 = 0, p2 = 0, p3 = 0;
    int i;
    all_but_one(A, A->masses.p, rest);
    for (i = 0; i < A->n; i++) {
        double k = A->step[i].k, p = A->masses.p[i];
        pairs += 0.5 * k * p * rest[i];
        p1 += k * p;
        p2 += k * p * p;
        p3 += k * p * p * p;
    }
    *two = log(pairs) + 2 * A->log_unit;
    *three = log(fmax(0, p1 * (p1 * p1 - 3 * p2) + 2 * p3) / 6 + 1e-13 * p1 * p1 * p1) + 3 * A->log_unit;
}

/* Runs with no jump, or with two or more, relative to e^scale. */
static double other_jumps_upper(const hs_jumps *A, double eps, double scale)
{
    double none = HUGE_VAL, two, more;
    double most, last;
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        double t = A->step->tilt[i];
        none = fmin(none, A->log_all[i] - t * eps - t * log1p(1 / t) - log1p(t));
    }
    log_products(A, &most, &more);
    two = last = A->two[0];
    for (i = 0; i <= A->layers; i++) {
        double F = i < A->layers ? A->two[i + 1] : most;
        two = hs_log_add(two, log_less(F, last) + log_rest_upper(A, 2, eps - A->two_at[i]));
        last = fmax(last, F);
    }
    two += SLACK * (1 + fabs(two));
    more = hs_log_add(more, 2 * log(A->count) - 1000);      /* what lies beyond HS_BULK_FAR */
    none = hs_log_add(none, hs_log_add(two, more)) - scale; /* [theory: small.numbers] */
    return exp(none + SLACK * (2 + fabs(none) + fabs(scale)));
}

/* The least loss of a jump and the largest of a bulk, and the masses of jumps; branches that end at HS_BULK_FAR jump
 * with e^-1000, which is bounded apart. */
static void part_losses(hs_jumps *A)
{
    double most = -1;
    int i, r;
    A->low = HUGE_VAL;
    A->high = A->count = A->mean = A->masses.rel = 0;
    A->log_unit = -HUGE_VAL;
    A->plain = 1;
    for (i = 0; i < A->n; i++) {
        const hs_bulk *J = &A->step[i];
        A->count += J->k;
        A->high = fmax(A->high, J->l0);
        A->log_unit = fmax(A->log_unit, J->log_unit);
        A->plain = A->plain && hs_bulk_plain(J);
        for (r = 0; r < J->pair.branches; r++) {
            hs_bulk_loss at = hs_bulk_loss_at(J, r, J->x0[r]);
            if (J->cut[r] < J->pair.up[r] + HS_BULK_FAR - 1e-3) A->low = fmin(A->low, (at.l1 - at.l2) * (1 - 1e-12));
        }
    }
    for (i = 0; i < A->n; i++) {
        const hs_bulk *J = &A->step[i];
        double unit = unit_upper(A, i);
        A->masses.p[i] = unit * J->p;
        A->masses.u[i] = unit * J->u;
        A->masses.den[i] = unit * J->q_den;
        A->masses.rel = fmax(A->masses.rel, J->rel);
        if (J->k * J->p * unit > most) A->own = i;
        most = fmax(most, J->k * J->p * unit);
    }
}

/* What is shared by all eps near one at which theta is the tilt, of steps that are cut at one loss. */
int hs_jumps_prepare(hs_jumps *A, double theta)
{
    double var = 0, bulk[3];
    hs_bulk_tilted T;
    int i, j, st;
    part_losses(A);
    for (j = 0; j < A->n; j++) {
        if (!hs_bulk_estimate(&A->step[j], theta, bulk)) return HS_OUT_OF_RANGE;
        var += A->step[j].k * (bulk[2] + bulk[1] * bulk[1]);
    }
    if (!(theta * theta * (1 - 1 / A->count) * var < HS_JUMPS_SPREAD)) return HS_TOO_WIDE;
    for (i = 0; i < HS_BULK_TILTS; i++) {
        A->log_all[i] = 0;
        A->log_least[i] = HUGE_VAL;
        for (j = 0; j < A->n; j++) {
            hs_bulk *J = &A->step[j];
            J->tilt[i] = theta * exp2((i - 8) / 3.0);
            J->log_b[i] = hs_bulk_log_upper(J, J->tilt[i]);
            A->log_all[i] += J->k * J->log_b[i];
            A->log_least[i] = fmin(A->log_least[i], J->log_b[i]);
        }
        if (!(A->log_all[i] < HUGE_VAL)) A->log_least[i] = 0;
    }
    for (j = 0; j < A->n; j++) {
        hs_bulk *J = &A->step[j];
        if ((st = hs_bulk_at(J, 0, 2, &T))) return st;
        J->mean = T.mean - T.mean_err;
        J->square = T.moment[2] + T.wrong * T.size[2];
        A->mean += J->k * J->mean / A->count;
    }
    return HS_OK;
}

/* The same with the cut at the loss l, above all losses of branches whose losses are bounded. */
static int prepare(hs_jumps *A, double l, double theta)
{
    int i, r, st;
    for (i = 0; i < A->n; i++) {
        hs_bulk *J = &A->step[i];
        for (r = 0; r < J->pair.branches; r++)
            if (J->pair.up[r] == 0 && !(expm1(-l) < -J->pair.q[r] * (1 + SLACK))) return HS_OUT_OF_RANGE;
        if ((st = hs_bulk_cut(J, l, theta, 0))) return st;
    }
    if ((st = hs_jumps_prepare(A, theta))) return st;
    A->radius = 0;
    return HS_OK;
}

/* One jump of one step: its loss x, log f there and its error, the bulk of the step at the tilt; log k B/B_i e^{-theta
 * mu} f and a bound of its error; the coefficients of h and the moments of the sum of all others. */
typedef struct {
    double x, log_f, rel, log_size;
    double whole, h[ORDER + 1], top;
    hs_bulk_tilted T;
} one_jump;

/* What the expansion leaves, relative to e^scale, at the best of a few radii, or at that numbered *radius: Taylor's
 * remainder, and what lies beyond. */
static double left_over_upper(const hs_jumps *A, const one_jump *at, double eps, double theta, double scale,
                              int *radius)
{
    double best = HUGE_VAL, rho = 0, taylor = 0;
    double least = HUGE_VAL, most = 0;
    double right, left, unused, rel;
    int i, j, s, fixed = *radius;
    for (s = 0; s < A->n; s++) {
        least = fmin(least, at[s].x);
        most = fmax(most, at[s].x);
    }
    for (i = fixed ? fixed : 1; i <= (fixed ? fixed : 8); i++) {
        double r = (least - A->high) * i / 8.001, sum = 0, all;
        for (s = 0; s < A->n; s++) {
            double one, power = 1;
            if (!(at[s].log_f > -HUGE_VAL)) continue;
            one = exp(fmin(600, log_disc_upper(&A->step[s], at[s].x, theta, r) - at[s].log_f));
            for (j = 0; j < ORDER; j++, power *= r) one += fabs(at[s].h[j]) * power;
            sum += exp(at[s].log_size - scale) * one * at[s].top / power; /* [theory: small.expansion] */
        }
        all = sum + exp(log_jumps_upper(A, least - r) + log_rest_upper(A, 1, eps - most + r) - scale);
        if (!(all < best)) continue;
        best = all;
        taylor = sum;
        rho = r;
        *radius = i;
    }
    if (!(best < HUGE_VAL)) return HUGE_VAL;
    right = log_layers_upper(A, eps, eps - most + rho) - scale;
    left = log_payoffs(A, least + rho, &unused, &rel) + log_under_upper(A, eps - least - rho) - scale;
    return (exp(right) + exp(left) + taylor) * (1 + SLACK * (1 + fabs(scale)));
}

/* The loss x of the one jump of every step and the tilt theta, about that of the sum of their pay-offs, by which the
 * bulks have the rest as their mean. False where there is none above the cut. */
static int meet(const hs_jumps *A, double eps, one_jump *at, double *theta)
{
    double mean[HS_JUMPS_STEPS] = {0}, rest[HS_JUMPS_STEPS] = {0}, bulk[3];
    int i, s;
    for (*theta = 0, i = 0; i < 5; i++) {
        double sum = -HUGE_VAL, fall = 0;
        for (s = 0; s < A->n; s++) {
            double own, slope;
            at[s].x = eps - rest[s];
            if (!(at[s].x > 1.02 * A->high)) return 0;
            at[s].log_f = log_payoff(&A->step[s], at[s].x, &slope, &at[s].rel);
            if (!(at[s].log_f > -HUGE_VAL)) continue;
            if (!(at[s].log_f < HUGE_VAL)) return 0;
            own = 1 / (1 + exp(fmin(700, sum - at[s].log_f - log(A->step[s].k))));
            fall += own * (slope - fall);
            sum = hs_log_add(sum, at[s].log_f + log(A->step[s].k));
        }
        if (!(sum > -HUGE_VAL)) return 0;
        *theta = fall;
        if (i == 4) break;
        for (s = 0; s < A->n; s++) {
            if (!hs_bulk_estimate(&A->step[s], *theta, bulk)) return 0;
            mean[s] = bulk[1];
        }
        all_but_one(A, mean, rest);
    }
    for (s = 0; s < A->n; s++)
        if (hs_bulk_at(&A->step[s], *theta, ORDER, &at[s].T)) return 0;
    return 1;
}

/* Sums over all losses but one of step s: of logs of B and their errors, of means and theirs, of cumulants and of what
 * their errors multiply. */
typedef struct {
    double log_b, log_size, b_err, mean;
    double mean_size, mean_err, wrong;
    double cum[ORDER + 1], big[ORDER + 1];
} rest_sums;

static void sum_rest(const hs_jumps *A, const one_jump *at, double (*cum)[ORDER + 1], double (*big)[ORDER + 1], int s,
                     rest_sums *R)
{
    int i, n;
    memset(R, 0, sizeof(*R));
    for (i = 0; i < A->n; i++) {
        double k = A->step[i].k - (i == s);
        const hs_bulk_tilted *T = &at[i].T;
        R->log_b += k * T->log_b;
        R->log_size += k * fabs(T->log_b);
        R->b_err += k * T->err;
        R->mean += k * T->mean;
        R->mean_size += k * fabs(T->mean);
        R->mean_err += k * T->mean_err;
        R->wrong = fmax(R->wrong, T->wrong);
        for (n = 1; n <= ORDER; n++) {
            R->cum[n] += k * cum[i][n];
            R->big[n] += k * big[i][n];
        }
    }
}

/* What jumps of step s add, relative to e^log_size of it; its inner error. */
static double jumps_of_step(const hs_jumps *A, double eps, double theta, const rest_sums *R, int s, one_jump *at,
                            double *inner)
{
    double big[ORDER + 1], m[ORDER + 1], err[ORDER + 1];
    double coarse, value = 0;
    double x = at->x, k = A->step[s].k, off = eps - x, units = HS_U * (7 + A->n);
    int i;
    at->log_size = log(k) + R->log_b - theta * off + at->log_f;
    at->whole = R->b_err + units * (R->log_size + theta * (eps + fabs(x)) + fabs(at->log_f) + log(k)) + at->rel;
    off = R->mean_err + fabs(R->mean - off) + units * (eps + fabs(off) + R->mean_size);
    moments_of_sum(R->cum, R->big, R->wrong, off, m, err);
    expansion(&A->step[s], x, theta, at->h, big, &coarse);
    for (*inner = 0, i = 0; i < ORDER; i++) {
        value += (i % 2 ? -1 : 1) * at->h[i] * m[i];
        *inner += fabs(at->h[i]) * err[i] + (i ? coarse * big[i] * (fabs(m[i]) + err[i]) : 0);
    }
    at->top = m[ORDER] + err[ORDER];
    return value;
}

/* What runs with one jump add to delta(eps), with the cut as prepared; value 0 where this says nothing. */
static void one_jump_at(const hs_jumps *A, double eps, int *radius, hs_value *v)
{
    one_jump at[HS_JUMPS_STEPS];
    double cum[HS_JUMPS_STEPS][ORDER + 1], big[HS_JUMPS_STEPS][ORDER + 1], value[HS_JUMPS_STEPS];
    double inner[HS_JUMPS_STEPS], theta, whole = 0;
    rest_sums R;
    int s;
    memset(v, 0, sizeof(*v));
    v->upper = HUGE_VAL;
    if (!meet(A, eps, at, &theta)) return;
    for (s = 0; s < A->n; s++) cumulants(&at[s].T, cum[s], big[s]);
    for (v->log_scale = -HUGE_VAL, s = 0; s < A->n; s++) {
        if (!(at[s].log_f > -HUGE_VAL)) continue;
        sum_rest(A, at, cum, big, s, &R);
        value[s] = jumps_of_step(A, eps, theta, &R, s, &at[s], &inner[s]);
        v->log_scale = fmax(v->log_scale, at[s].log_size);
        whole = fmax(whole, at[s].whole);
    }
    for (s = 0; s < A->n; s++) {
        double part = exp(at[s].log_size - v->log_scale);
        if (!(at[s].log_f > -HUGE_VAL)) continue;
        v->value += part * value[s];
        v->inner += part * inner[s];
        v->rounding +=
            part * fabs(value[s]) * (expm1(at[s].whole) + 4 * HS_U * (8 + A->n + fabs(at[s].log_size - v->log_scale)));
    }
    v->truncation = left_over_upper(A, at, eps, theta, v->log_scale, radius);
    v->slope = theta * v->value;
    v->lower = v->value - v->inner - v->truncation - v->rounding;
    v->upper = v->value + (v->inner + v->truncation) * (1 + 2 * whole) + v->rounding;
    if (v->lower > 0 && v->upper < HUGE_VAL && whole < 0.1) return;
    v->value = 0;
    v->upper = HUGE_VAL;
}

void hs_jumps_one(const hs_jumps *A, double eps, hs_value *v)
{
    int radius = A->radius;
    one_jump_at(A, eps, &radius, v);
}

/* Adds to what one jump adds, in v, all that others may: their pay-offs are laid. */
static void add_others(const hs_jumps *A, double eps, hs_value *v)
{
    double outside = 0;
    int i;
    if (!(v->value > 0)) return;
    v->alias_right = other_jumps_upper(A, eps, v->log_scale);
    for (i = 0; i < A->n && !A->plain; i++) outside += 2 * A->step[i].k * A->step[i].out_p;
    v->alias_right += outside * (v->upper + v->alias_right);
    v->upper += v->alias_right * (1 + SLACK);
    if (!(v->upper < HUGE_VAL)) v->value = 0;
}

static void jumps_at(const void *self, double eps, hs_value *v)
{
    const hs_jumps *A = (const hs_jumps *)self;
    int radius = A->radius;
    one_jump_at(A, eps, &radius, v);
    add_others(A, eps, v);
}

/* -d log f/d eps of the curve of one step, summed over all. */
double hs_jumps_tilt(const hs_jumps *A, double eps)
{
    double theta, rel;
    log_payoffs(A, eps, &theta, &rel);
    return theta;
}

static const double CUTS[] = {0.5, 0.4, 0.3, 0.22, 0.15, 0.1, 0.07, 0.05, 0.03};

/* The cut at the loss l, for eps, where one jump alone leaves less than the relative width `best`; that with all
 * others, infinite where it says nothing. */
static double width_at(hs_jumps *A, double eps, double l, double theta, double best, hs_value *v)
{
    v->value = 0;
    if (prepare(A, l, theta)) return HUGE_VAL;
    one_jump_at(A, eps, &A->radius, v);
    if (!(v->value > 0) || v->upper / v->lower - 1 > best) return HUGE_VAL;
    lay_two(A, eps, 0);
    add_others(A, eps, v);
    return v->value > 0 ? v->upper / v->lower - 1 : HUGE_VAL;
}

/* The cut that leaves least at eps, from number *at on, which becomes its own; HS_TOO_WIDE where none serves. */
static int best_cut(hs_jumps *A, double eps, int *at, hs_value *v)
{
    double best = HUGE_VAL, last, now, theta = hs_jumps_tilt(A, eps);
    int i, from = *at, chosen = -1;
    if (!(theta < HUGE_VAL)) return HS_OUT_OF_RANGE;
    for (i = from; i < (int)(sizeof CUTS / sizeof *CUTS) && best > HS_JUMPS_ENOUGH; i++) {
        if (chosen < 0 && i - from == HS_JUMPS_VAIN) break;
        now = width_at(A, eps, CUTS[i] * eps, theta, best, v);
        if (!(v->value > 0)) continue;
        last = best;
        if (!(now < best)) break;
        best = now;
        chosen = i;
        if (best > HS_JUMPS_WON * last) break;
    }
    if (chosen < 0) return HS_TOO_WIDE;
    *at = chosen;
    if (best <= HS_JUMPS_ENOUGH) return HS_OK; /* the last one tried */
    return width_at(A, eps, CUTS[chosen] * eps, theta, HUGE_VAL, v) < HUGE_VAL ? HS_OK : HS_TOO_WIDE;
}

int64_t hs_jumps_work(int n) { return n * (int64_t)HS_BULK_WORK; }

/* The run, its steps in step[], which has room for HS_JUMPS_STEPS. */
static int opened(hs_jumps *A, hs_bulk *step, const hs_run *run, const hs_rule *rule, double *work, int64_t n_work)
{
    double count = 0;
    int i, r, st, jumps = 0;
    memset(A, 0, sizeof(*A));
    if (run->b < 1 || run->b > HS_JUMPS_STEPS) return HS_BAD_ARGUMENT;
    if (n_work < hs_jumps_work(run->b)) return HS_SCRATCH;
    A->n = run->b;
    A->step = step;
    for (i = 0; i < A->n; i++) {
        hs_pair plain = {.branches = 1, .w = {1}}, pair;
        plain.q[0] = run->q[i];
        plain.up[0] = run->add ? 0 : run->m[i];
        plain.down[0] = run->add ? run->m[i] : 0;
        pair = run->pair && run->pair[i].branches ? run->pair[i] : plain;
        for (r = 0; r < pair.branches; r++) {
            if (!(pair.up[r] < 10 && pair.down[r] < 10 && (pair.up[r] == 0 || pair.up[r] > 1e-3)))
                return HS_BAD_ARGUMENT;
            jumps += pair.up[r] > 0;
        }
        count += run->k[i];
        if ((st = hs_bulk_open(&step[i], &pair, run->k[i], rule, work + hs_jumps_work(i)))) return st;
    }
    return jumps && count >= 2 ? HS_OK : HS_BAD_ARGUMENT;
}

/* The nodes of all steps. */
static int64_t jump_nodes(const hs_jumps *A)
{
    int64_t n = 0;
    int i;
    for (i = 0; i < A->n; i++) n += A->step[i].panels * A->step[i].per;
    return n;
}

int hs_jumps_delta(const hs_run *run, double eps, const hs_rule *rule, double *work, int64_t n_work, hs_point *out)
{
    hs_bulk step[HS_JUMPS_STEPS];
    hs_jumps A;
    hs_value v;
    int at = 0, st = opened(&A, step, run, rule, work, n_work);
    if (st) return st;
    if (!(eps > 0 && eps < 500)) return HS_OUT_OF_RANGE;
    if ((st = best_cut(&A, eps, &at, &v))) return st;
    lay_two(&A, eps, 1);
    jumps_at(&A, eps, &v);
    if (!(v.value > 0)) return HS_TOO_WIDE;
    hs_value_point(&v, jump_nodes(&A), out);
    return HS_OK;
}

/* Where k one-step pay-offs make e^log_delta: the start of a root; 0 where none do. */
static double start_of(const hs_jumps *A, double log_delta)
{
    double lo = 1e-300, hi = 500, theta, rel;
    int i;
    for (i = 0; i < 60; i++) {
        double mid = sqrt(lo * hi);
        if (log_payoffs(A, mid, &theta, &rel) > log_delta) lo = mid;
        else hi = mid;
    }
    return lo > 1e-200 ? lo : 0;
}

int hs_jumps_eps(const hs_run *run, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                 hs_crossing *out)
{
    hs_bulk step[HS_JUMPS_STEPS];
    hs_jumps A;
    hs_value v;
    hs_curve curve = {.at = jumps_at, .self = &A, .log_delta = log_delta, .reach = HUGE_VAL};
    double left, eps;
    int i, at = 0, st = opened(&A, step, run, rule, work, n_work);
    if (st) return st;
    eps = start_of(&A, log_delta);
    for (i = 0; i < 2; i++) {
        if (!(eps > 0)) return HS_NO_BRACKET;
        if ((st = best_cut(&A, eps, &at, &v))) return st;
        if (!(v.upper < HS_JUMPS_HOPELESS * v.lower)) return HS_TOO_WIDE;
        curve.start = eps;
        curve.step = 0.3 * eps;
        curve.bend = 2 / eps;
        curve.reach = 0.9 * eps;
        if ((st = hs_root_estimate(&curve, &eps, &left, &v))) return st;
        if (fabs(eps - curve.start) < 0.03 * eps) break;
        at -= at > 0;
    }
    lay_two(&A, eps, 1);
    out->estimate = eps;
    if (hs_root_bracket(&curve, eps, left, &v, &out->lower, &out->upper) != 3) return HS_NO_BRACKET;
    hs_value_point(&v, jump_nodes(&A), &out->delta);
    return HS_OK;
}
