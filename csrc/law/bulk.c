/* bulk.c - the law of one step below a cut: B at real tilts, its moments, the error of its transform.
 *
 * Symbols. Branch r, of weight W: num = (1-q) N(0,1) + q N(up,1), den = (1-q) N(0,1) + q N(-down,1); w the normal
 *   density at the place x, v1 = up x - up^2/2, v2 = -down x - down^2/2, U_i = q (e^{v_i} - 1), l_i = log(1+U_i), L =
 *   l1 - l2, which increases with x. A plain step has down = 0 (REMOVE) or up = 0 (ADD, mirrored). The cut x0 parts
 *   the outcomes of every branch: losses up to l0 are bulk, larger ones jumps. B(z) = sum_r W int_{x <= x0} w
 *   (1+U1)^{1+z} (1+U2)^{-z}; P, Q the masses of jumps under num and den; t >= 0 a tilt, E = l1 + t L.
 *
 * Formula. B and its derivative from what is left of second order in U [theory: small.bulk].
 *
 * Error terms.
 *   inner      Gauss-Legendre panels up to x0, 20 nodes each: ellipses of a few parameters [theory: law.gauss-panels,
 *              small.bulk], for B(t) and its moments, and for int w e^{E + iyL} [theory: small.bulk-line].
 *   rounding   of nodes, moments and exponents [theory: rounding.first-order].
 *
 * What it does not do: negative tilts; moments of what lies beyond the panels of a pair.
 */
#include "law/bulk.h"
#include "law/law.h"

#define ELLIPSES 4
#define SLACK 1e-8     /* relative, of bounds that only widen: their exponents are known to 1e-12 of their size */
#define TINY 1e-11     /* relative, above all rounding of sums that only widen */
#define SHARP_NATS -44 /* nats of a panel's error over what it is part of from which no sharper bound is sought */
#define LEAP 12.0      /* nats that e^{(1+t)L} may rise on the ellipse of a panel */
#define ORDER HS_BULK_ORDER
#define COLUMNS HS_BULK_COLUMNS
#define PER 20 /* nodes of a panel, at most */

/* Parameters of the ellipses tried; a larger one serves a panel that is short beside 1/m. */
static const double ELLIPSE[ELLIPSES] = {4, 6, 9, 14};

int hs_bulk_plain(const hs_bulk *J) { return J->pair.branches == 1 && J->pair.down[0] == 0; }

static double widest(const hs_pair *pair, int r) { return fmax(pair->up[r], pair->down[r]); }

/* log(1+U) of one factor at x, and the share of e^v in it. */
static double bulk_share(double m, double q, double x, double *l)
{
    double v = m * x - 0.5 * m * m, U = q * expm1(fmin(v, 600));
    *l = v > 600 ? v + log(q) : log1p(U);
    return (U + q) / (1 + U);
}

hs_bulk_loss hs_bulk_loss_at(const hs_bulk *J, int r, double x)
{
    hs_bulk_loss at;
    at.s1 = bulk_share(J->pair.up[r], J->pair.q[r], x, &at.l1);
    at.s2 = bulk_share(J->pair.down[r], J->pair.q[r], -x, &at.l2);
    return at;
}

/* Pr[N > x] of a standard normal N, in units of e^log_unit. */
static double tail_mass(double x, double log_unit, double *err)
{
    double r;
    *err = HS_U * (2.5 * x * x + 3 * fabs(x) + 24 + 4 * fabs(log_unit));
    if (x < 5) return 0.5 * erfc(x * HS_SQRT_HALF) * exp(-log_unit);
    r = hs_mills(x, err);
    *err += HS_U * (4 * x * x + 4 * fabs(log_unit) + 20);
    return r * exp(-0.5 * x * x - HS_LOG_SQRT_2PI - log_unit);
}

/* Pr[N > x], within *rel of itself. */
double hs_bulk_tail(double x, double *rel) { return tail_mass(x, 0, rel); }

/* log_unit: about the largest of the masses above the places x. */
void hs_bulk_unit(hs_bulk *J, const double *x)
{
    int r;
    J->log_unit = -1e300;
    for (r = 0; r < J->pair.branches; r++) {
        double one = log(J->pair.q[r]) - 0.5 * pow(fmax(0, x[r] - J->pair.up[r]), 2);
        one = log(J->pair.w[r]) + fmax(one, log1p(-J->pair.q[r]) - 0.5 * pow(fmax(0, x[r]), 2));
        if (x[r] < HUGE_VAL) J->log_unit = fmax(J->log_unit, one);
    }
    if (J->log_unit < -1e299) J->log_unit = -1e3;
}

/* Masses above the places x, one a branch, in units of e^log_unit: num, num - den (off by 3 rel p), den. */
void hs_bulk_masses(const hs_bulk *J, const double *x, double *p, double *u, double *den, double *rel)
{
    const hs_pair *pair = &J->pair;
    double e0, e1, e2, most;
    int r;
    *p = *den = 1e-300; /* covers what underflows */
    *u = 0;
    *rel = 0;
    most = 40 + pair->q_err + pair->w_err;
    for (r = 0; r < pair->branches; r++) {
        double w = pair->w[r], q = pair->q[r], m = pair->up[r], d = pair->down[r];
        double up, mid, down;
        if (!(x[r] < HUGE_VAL)) continue;
        up = tail_mass(x[r] - m, J->log_unit, &e0);
        mid = tail_mass(x[r], J->log_unit, &e1);
        down = d > 0 ? tail_mass(x[r] + d, J->log_unit, &e2) : mid;
        if (m == 0) up = mid;
        e2 = d > 0 ? e2 : 0;
        *p += w * (q * up + (1 - q) * mid);
        *den += w * (q * down + (1 - q) * mid);
        *u += w * q * (up - down);
        *rel = fmax(*rel, e0 + e1 + e2);
        most = fmax(most, 40 + pair->q_err / (1 - q) + pair->w_err);
    }
    *rel += HS_U * most;
}

/* The place between low and high where a branch has the loss, from x on; low where no loss is as small. */
static double seek_place(const hs_bulk *J, int r, double loss, double x, double low, double high)
{
    double up = J->pair.up[r], d = J->pair.down[r];
    int i;
    for (i = 0; i < 100 && high - low > 1e-13 * (1 + fabs(high)); i++) {
        hs_bulk_loss at;
        double slope, more, bend, move;
        if (!(x > low && x < high)) x = i == 0 && x <= low ? low : 0.5 * (low + high);
        at = hs_bulk_loss_at(J, r, x);
        more = loss - (at.l1 - at.l2);
        if (more > 0) low = x;
        else if (x > low) high = x;
        else return x;
        if (fabs(more) < 1e-14 * fabs(loss)) break;
        slope = up * at.s1 + d * at.s2;
        bend = 0.5 * (up * up * at.s1 * (1 - at.s1) - d * d * at.s2 * (1 - at.s2)) / slope;
        move = more / slope;
        if (fabs(move * bend) < 0.5) move /= 1 + move * bend;
        x += move;
        if (fabs(move) * (1 + up + d) < 1e-5) break; /* what such a step leaves is about its cube */
    }
    return x;
}

/* About where a branch has the loss, at most where it ends. */
double hs_bulk_place(const hs_bulk *J, int r, double loss)
{
    double q = J->pair.q[r], up = J->pair.up[r], d = J->pair.down[r];
    double high = up > 0 ? up + HS_BULK_FAR : J->far, low = -10 - d, x, share_of;
    if (up > 0 && d == 0) return fmin(high, (loss < 600 ? log1p(expm1(loss) / q) : loss - log(q)) / up + 0.5 * up);
    if (up == 0) {
        share_of = expm1(-loss) / q;
        return share_of > -1 ? fmin(high, -log1p(share_of) / d - 0.5 * d) : high;
    }
    x = (loss < 600 ? log1p(expm1(loss) / q) : loss - log(q)) / up + 0.5 * up;
    if (loss < 0) x = -(loss > -600 ? log1p(expm1(-loss) / q) : -loss - log(q)) / d - 0.5 * d;
    if (up == d && loss >= 0 && loss < 300) { /* a quadratic equation of q e^{v1}/(1-q) */
        double rest = expm1(loss), c = q / (1 - q) * exp(-0.5 * up * up);
        return fmin(high, log((0.5 * rest + sqrt(0.25 * rest * rest + c * c * (1 + rest))) / c) / up);
    }
    return fmin(seek_place(J, r, loss, x, low, high), up + HS_BULK_FAR);
}

int hs_bulk_open(hs_bulk *J, const hs_pair *pair, double k, const hs_rule *rule, double *work)
{
    int r, good = pair->branches >= 1 && k >= 1 && k < 1e12 && rule->n == PER;
    memset(J, 0, sizeof(*J));
    J->pair = *pair;
    J->m = pair->up[0];
    J->q = pair->q[0];
    J->k = k;
    J->left = 10;
    J->far = HS_BULK_FAR;
    J->per = rule->n;
    J->node = rule->x;
    J->weight = rule->w;
    J->columns = work;
    J->mid = work + COLUMNS * HS_JUMPS_NODES;
    J->half = J->mid + HS_BULK_PANELS;
    J->ellipses = J->half + HS_BULK_PANELS;
    for (r = 0; r < pair->branches; r++) {
        J->wide = fmax(J->wide, widest(pair, r));
        good = good && pair->w[r] > 0 && pair->q[r] > 0 && pair->q[r] < 0.9 && widest(pair, r) > 0;
    }
    return good ? HS_OK : HS_BAD_ARGUMENT;
}

/* One factor 1 + U on an ellipse: ends of Re v, bounds of |U|, of log|1 + U| and of its angle; path: whether
 * 1 + lambda U stays as far from 0 for lambda in [0, 1]. */
typedef struct {
    double vl, vr, U;
    double low, top, turn;
    int path;
} bulk_side;

/* What panels need of an ellipse: the half width and half height, both factors on it, and the log of the rule's own
 * factor and of w; state: 1, or -1 where it may come near branch points, 0 where nothing of it is known yet. */
typedef struct {
    double R, b, near;
    bulk_side up, down;
    double rule;
    int state;
} ellipse;

enum { ELLIPSES_FIT = 1 / (HS_BULK_ELLIPSES * sizeof(double) >= ELLIPSES * sizeof(ellipse)) }; /* else no constant */

/* The factor of shift m where |Im v| <= beta; false where the ellipse may come near its branch points [theory:
 * small.bulk, small.bulk-apart]. */
static int side_of(bulk_side *s, double q, double beta)
{
    double ev = q * exp(fmin(s->vr, 700)), el = q * exp(fmin(s->vl, 700));
    if (s->vr > 700 && s->vl < 600) return 0;
    s->U = q * fmax(fabs(expm1(s->vl)), fabs(expm1(s->vr))) + ev * fmin(beta, 2);
    s->top = s->vr < 600 ? log1p(q * expm1(s->vr)) : s->vr + log(q) + 1e-12 * s->vr;
    s->path = 1;
    if (beta <= 1) {
        s->low = log1p(q * (exp(s->vl) * cos(beta) - 1));
        s->turn = atan2(ev * sin(beta), 1 - q + ev * cos(beta));
    } else if (4 * ev <= 1 - q) { /* [theory: small.bulk-apart] */
        s->low = log1p(-q - ev);
        s->turn = asin(ev / (1 - q)) * (1 + 1e-12);
    } else if (el >= 4 * (1 - q)) {
        s->low = s->vl < 600 ? log(el - (1 - q)) : s->vl + log(q) - 1e-12 * s->vl;
        s->turn = (beta + asin((1 - q) / el)) * (1 + 1e-12);
        s->path = 0;
    } else return 0;
    return 1;
}

static int ellipse_of(const hs_bulk *J, int r, double x, double half, double rho, ellipse *e)
{
    double up = J->pair.up[r], d = J->pair.down[r], q = J->pair.q[r];
    e->R = 0.5 * half * (rho + 1 / rho);
    e->b = 0.5 * half * (rho - 1 / rho);
    e->near = fmax(0, fmax(x - e->R, -x - e->R));
    e->up.vl = up * (x - e->R) - 0.5 * up * up;
    e->up.vr = up * (x + e->R) - 0.5 * up * up;
    e->down.vl = -d * (x + e->R) - 0.5 * d * d;
    e->down.vr = -d * (x - e->R) - 0.5 * d * d;
    return side_of(&e->up, q, up * e->b) && side_of(&e->down, q, d * e->b);
}

/* Log of the rule's own factor and of w on the ellipse. */
static double log_rule(const hs_bulk *J, int r, double half, double rho, const ellipse *e)
{
    return log(64.0 / 15 * half * J->pair.w[r] / (1 - 1 / (rho * rho))) - 2 * J->per * log(rho) +
           0.5 * (e->b * e->b - e->near * e->near) - HS_LOG_SQRT_2PI;
}

/* The ellipses of a panel. */
static ellipse *ellipses_of(const hs_bulk *J, int64_t p) { return (ellipse *)(void *)J->ellipses + ELLIPSES * p; }

/* The i-th ellipse of panel p of branch r, made at its first use; NULL where it may come near branch points. */
static const ellipse *ellipse_at(const hs_bulk *J, int r, int64_t p, int i)
{
    ellipse *e = ellipses_of(J, p) + i;
    if (e->state == 0) {
        e->state = ellipse_of(J, r, J->mid[p], J->half[p], ELLIPSE[i], e) ? 1 : -1;
        if (e->state > 0) e->rule = log_rule(J, r, J->half[p], ELLIPSE[i], e);
    }
    return e->state > 0 ? e : NULL;
}

/* Panel p is that at `mid`. */
static void put_panel(hs_bulk *J, int64_t p, double mid, double half)
{
    ellipse *e = ellipses_of(J, p);
    int i;
    J->mid[p] = mid;
    J->half[p] = half;
    for (i = 0; i < ELLIPSES; i++) e[i].state = 0;
}

/* Log of the error of Gauss-Legendre on one panel, of int w |e^{E + iyL}| at its best ellipse, or at the first that
 * leaves at most `enough`, for any t [theory: small.bulk-line]. */
static double panel_upper(const hs_bulk *J, int r, int64_t p, double t, double y, double enough)
{
    double best = HUGE_VAL;
    int i;
    for (i = 0; i < ELLIPSES && best > enough; i++) {
        const ellipse *e = ellipse_at(J, r, p, i);
        double most;
        if (!e) break;
        most = (1 + t) * (t > -1 ? e->up.top : e->up.low) - t * (t < 0 ? e->down.top : e->down.low);
        best = fmin(best, e->rule + most + y * (e->up.turn + e->down.turn));
    }
    return best + SLACK * (1 + fabs(best));
}

/* sum W int w e^{E} at most over what lies beyond the panels and is no jump; nothing of a cell of jumps
 * [theory: small.bulk-line]. */
double hs_bulk_outside_upper(const hs_bulk *J, double t)
{
    double sum = 0, c = J->left;
    int r;
    if (J->cell) return 0;
    for (r = 0; r < J->pair.branches; r++) {
        hs_bulk_loss at = hs_bulk_loss_at(J, r, -c);
        double x = J->x0[r], one = exp(-0.5 * c * c - HS_LOG_SQRT_2PI) / c, fall;
        sum += J->pair.w[r] * one * exp(-t * at.l2);
        if (J->cut[r] < HUGE_VAL) continue;
        at = hs_bulk_loss_at(J, r, x);
        fall = x - t * J->pair.down[r] * at.s2;
        if (!(fall > 0.1)) return HUGE_VAL;
        sum += J->pair.w[r] * exp(-0.5 * x * x - HS_LOG_SQRT_2PI - t * at.l2) / fall;
    }
    return sum * (1 + SLACK);
}

/* An upper bound of the log of the error of the sum over all panels of w e^{E + iy'L}, |y'| <= y, and of what lies
 * beyond them; of a panel not much sharper than `enough`. */
double hs_bulk_log_phase_upper(const hs_bulk *J, double t, double y, double enough)
{
    double most = log(hs_bulk_outside_upper(J, t)), sum = most > -HUGE_VAL ? 1 : 0;
    int64_t p;
    int r;
    for (r = 0; r < J->pair.branches; r++)
        for (p = J->first[r]; p < J->first[r + 1]; p++) {
            double one = panel_upper(J, r, p, t, y, enough);
            if (one > most) {
                sum = sum * exp(most - one) + 1;
                most = one;
            } else sum += exp(one - most);
        }
    return most + log(sum) + SLACK;
}

/* Whether a panel, which is put beyond the last one, is short enough: its least ellipse stays away from branch points,
 * e^{tL} does not leap on it unless it only falls there as t grows, and where y > 0 the transform at t + iy is known to
 * e^-target. */
static int serves_panel(hs_bulk *J, int r, double mid, double half, double t, double y, double target)
{
    const ellipse *e;
    int slow;
    put_panel(J, J->panels, mid, half);
    if (!(e = ellipse_at(J, r, J->panels, 0))) return 0;
    slow = (1 + fabs(t)) * (e->up.top - fmax(e->up.low, -1) + e->down.top - fmax(e->down.low, -1)) < LEAP;
    slow = slow || (t > 0 && e->up.top <= 0 && e->down.low > 0);
    return slow && (!(y > 0) || panel_upper(J, r, J->panels, t, y, -target) <= -target);
}

/* Room for one more panel, of which nothing is known yet: scratch may hold the places of an earlier law's. */
static int room_for_panel(hs_bulk *J)
{
    if (J->panels == HS_BULK_PANELS) return 0;
    J->half[J->panels] = 0;
    return 1;
}

/* The panel at `mid` after all others; where `serves_panel` has put it there, with what is known of it. */
static void add_panel(hs_bulk *J, double mid, double half)
{
    if (J->mid[J->panels] != mid || J->half[J->panels] != half) put_panel(J, J->panels, mid, half);
    J->panels++;
}

/* Panels of a branch up to its end, their ends exact: as wide as `serves_panel` allows. */
static int branch_panels(hs_bulk *J, int r, double t, double y, double target)
{
    double end = J->x0[r], least = ldexp(1, (int)floor(log2(fmin(0.5, 0.5 / widest(&J->pair, r))))), half;
    double from = end - 2 * least * ceil((end + J->left) / (2 * least));
    J->start[r] = from;
    for (half = 0.25; from < end; from += 2 * half) {
        half = fmin(0.5, 2 * half);
        if (!room_for_panel(J)) return HS_TOO_MANY_NODES;
        while (half > least / 64 &&
               (fmod(end - from, 2 * half) != 0 || !serves_panel(J, r, from + half, half, t, y, target)))
            half *= 0.5;
        add_panel(J, from + half, half);
    }
    return HS_OK;
}

/* log(1+U) from U, and v where e^v is no double, and the same less U: within 3u and 3u, or the former's error more
 * [theory: rounding.grid]. */
static inline double bulk_log(double U, double v, double log_q, double *less)
{
    double one = 1 + U, small = U < 0.1 && U > -0.1 ? U : 0, near = hs_log1pmx_small(small);
    double far = hs_log(one) + (U < 1 ? (U - (one - 1)) / one : 0);
    far = v > 600 ? v + log_q : far;
    *less = small != 0 ? near : far - U;
    return small != 0 ? U + near : far;
}

/* Both logs and both shares at n places from x on, `step` apart. */
HS_CLONES void hs_bulk_losses(const hs_bulk *J, int r, double x, double step, int n, double *restrict l1,
                              double *restrict l2, double *restrict s1, double *restrict s2)
{
    double up = J->pair.up[r], d = J->pair.down[r], q = J->pair.q[r], log_q = log(q);
    int i;
    HS_SEPARATE
    for (i = 0; i < n; i++) {
        double at = x + i * step, v1 = up * at - 0.5 * up * up, v2 = -d * at - 0.5 * d * d, less;
        double U1 = q * hs_expm1(v1 < 600 ? v1 : 600), U2 = q * hs_expm1(v2 < 600 ? v2 : 600);
        l1[i] = bulk_log(U1, v1, log_q, &less);
        l2[i] = bulk_log(U2, v2, log_q, &less);
        s1[i] = (U1 + q) / (1 + U1);
        s2[i] = (U2 + q) / (1 + U2);
    }
}

/* At the places x of the nodes of a panel log(1+U) of one factor, the same less U, and a bound of the error of the
 * former but for u of itself; U is within 6u. */
HS_CLONES static void bulk_factors(const hs_bulk *J, double m, double q, const double *restrict x, double *restrict l,
                                   double *restrict lm, double *restrict err)
{
    double log_q = log(q), units = 8 + J->pair.q_err;
    int i;
    HS_SEPARATE
    for (i = 0; i < PER; i++) {
        double dv = HS_U * m * (8 * fabs(x[i]) + 4 + 5 * m), v = m * x[i] - 0.5 * m * m;
        double e = hs_expm1(v < 600 ? v : 600), U = q * e, less;
        l[i] = bulk_log(U, v, log_q, &less);
        lm[i] = less;
        err[i] = (q * (1 + e) * dv + units * HS_U * fabs(U)) / (1 + U) + 2 * HS_U * fabs(l[i]);
    }
}

/* The nodes of panel p of branch r. Where `turned`, w (1 + U1) is written as the density of N(up,1) times e^{l1 - v1},
 * as w alone may be below all doubles. */
HS_CLONES static void fill_panel(const hs_bulk *J, int r, int64_t p, int turned)
{
    const hs_pair *pair = &J->pair;
    double up = pair->up[r], q = pair->q[r], w = pair->w[r] * J->half[p], *c = J->columns + p * J->per * COLUMNS;
    double x[PER], back[PER], l1[PER], lm1[PER];
    double err1[PER], l2[PER], lm2[PER], err2[PER];
    int i;
    for (i = 0; i < PER; i++) {
        x[i] = i < J->per ? J->mid[p] + J->half[p] * J->node[i] : 0;
        back[i] = -x[i];
    }
    bulk_factors(J, up, q, x, l1, lm1, err1);
    bulk_factors(J, pair->down[r], q, back, l2, lm2, err2);
    for (i = 0; i < J->per; i++, c += COLUMNS) {
        double at = turned ? x[i] - up : x[i];
        c[0] = w * J->weight[i] * exp(-0.5 * at * at - HS_LOG_SQRT_2PI);
        c[1] = turned ? log(q + (1 - q) * exp(-up * x[i] + 0.5 * up * up)) : l1[i];
        c[2] = l1[i] - l2[i];
        c[3] = lm1[i];
        c[4] = lm1[i] - lm2[i];
        c[5] = err1[i];
        c[6] = err2[i];
        c[7] = x[i];
    }
}

/* What the nodes of the panels hold, and the largest loss. */
static void fill_bulk(hs_bulk *J)
{
    int64_t p;
    int r;
    J->l0 = J->n0 = 0;
    for (r = 0; r < J->pair.branches; r++) {
        hs_bulk_loss end = hs_bulk_loss_at(J, r, J->x0[r]);
        int turned = 0;
        if (J->cell && J->first[r] == J->first[r + 1]) continue;
        if (J->cell && J->pair.down[r] == 0)
            turned = hs_bulk_loss_at(J, r, J->mid[J->first[r]] - J->half[J->first[r]]).s1 >= 0.5;
        J->l0 = fmax(J->l0, end.l1 - end.l2);
        if (!turned) J->n0 = fmax(J->n0, end.l1);
        for (p = J->first[r]; p < J->first[r + 1]; p++) fill_panel(J, r, p, turned);
    }
}

/* Panels of a branch from x to `last`, as wide as `serves_panel` allows. */
static int cell_panels(hs_bulk *J, int r, double x, double last, double t, double y)
{
    double least = fmin(0.5, 0.5 / widest(&J->pair, r)), half;
    for (; x < last; x += 2 * half) {
        if (!room_for_panel(J)) return HS_TOO_MANY_NODES;
        for (half = fmin(0.5, 0.5 * (last - x)); half > least / 64; half *= 0.5) {
            hs_bulk_loss at = hs_bulk_loss_at(J, r, x + half);
            double own = log(J->pair.w[r]) + (1 + t) * at.l1 - t * at.l2 - 0.5 * pow(x + half, 2);
            if (serves_panel(J, r, x + half, half, t, y, 34 - own)) break;
        }
        if (last - x - 2 * half < 1e-6 * half) half = 0.5 * (last - x);
        add_panel(J, x + half, half);
    }
    return HS_OK;
}

/* Panels and nodes of the outcomes of every branch from its place to the loss `end`, for frequencies up to y at the
 * tilt t. Their ends are known to u, which the errors of the nodes cover. */
int hs_bulk_cell(hs_bulk *J, const double *from, double end, double t, double y)
{
    int r, st;
    J->cell = 1;
    for (J->panels = 0, r = 0; r < J->pair.branches; r++) {
        double x = from[r], last;
        J->first[r] = J->panels;
        J->first[r + 1] = J->panels;
        J->x0[r] = J->cut[r] = x;
        if (!(x < HUGE_VAL) || !((last = hs_bulk_place(J, r, end)) > x)) continue;
        J->x0[r] = J->cut[r] = last;
        if ((st = cell_panels(J, r, x, last, t, y))) return st;
        J->first[r + 1] = J->panels;
    }
    if (!J->panels) return HS_OUT_OF_RANGE;
    fill_bulk(J);
    return HS_OK;
}

/* Masses left of the panels, and beyond the end of branches whose losses are not cut. */
static void masses_outside(hs_bulk *J)
{
    double err;
    int r;
    J->out_p = J->out_u = 0;
    for (r = 0; r < J->pair.branches; r++) {
        double w = J->pair.w[r], q = J->pair.q[r], up = J->pair.up[r], d = J->pair.down[r];
        double c = -J->start[r], x = J->x0[r];
        J->out_p += w * (q * tail_mass(c + up, 0, &err) + (1 - q) * tail_mass(c, 0, &err));
        J->out_u += w * q * (tail_mass(c + up, 0, &err) - tail_mass(c - d, 0, &err));
        if (J->cut[r] < HUGE_VAL) continue;
        J->out_p += w * (q * tail_mass(x - up, 0, &err) + (1 - q) * tail_mass(x, 0, &err));
        J->out_u += w * q * (tail_mass(x - up, 0, &err) - tail_mass(x + d, 0, &err));
    }
}

/* About log B(t), at least 0: the largest integrand. */
static double peak(const hs_bulk *J, double t)
{
    double best = 0, x;
    int r;
    for (r = 0; t > 0 && r < J->pair.branches; r++)
        for (x = J->x0[r]; x > 0; x -= 0.25) {
            hs_bulk_loss at = hs_bulk_loss_at(J, r, x);
            best = fmax(best, log(J->pair.w[r]) + (1 + t) * at.l1 - t * at.l2 - 0.5 * x * x - 1);
        }
    return best;
}

/* Panels and nodes up to the cut at the loss l, for tilts about t and frequencies up to y; y = 0: for small ones. A
 * branch of bounded loss whose end lies below l is not cut. */
int hs_bulk_cut(hs_bulk *J, double l, double t, double y)
{
    double most;
    int r, st;
    for (r = 0; r < J->pair.branches; r++) {
        double x = hs_bulk_place(J, r, l);
        J->x0[r] = ldexp(floor(ldexp(x, 20)), -20);
        J->cut[r] = J->pair.up[r] == 0 && x >= J->far ? HUGE_VAL : J->x0[r];
        if (!(x > -5)) return HS_TOO_MANY_NODES;
    }
    hs_bulk_unit(J, J->cut);
    hs_bulk_masses(J, J->cut, &J->p, &J->u, &J->q_den, &J->rel);
    if (!(J->rel < 1e-10)) return HS_TOO_MANY_NODES;
    for (most = peak(J, t), J->panels = 0, r = 0; r < J->pair.branches; r++) {
        J->first[r] = J->panels;
        if ((st = branch_panels(J, r, t, y, 40 + log(J->k) - most))) return st;
        J->first[r + 1] = J->panels;
    }
    masses_outside(J);
    fill_bulk(J);
    return J->l0 > 0 ? HS_OK : HS_TOO_MANY_NODES;
}

/* A bound of |e^E - 1 - (1+t) U1 + t U2| on an ellipse: the remainder of second order along 1 + lambda U_i, or term by
 * term; *power: of |e^E| [theory: small.bulk]. */
static double bulk_remainder_upper(double t, const ellipse *e, double *power)
{
    double a = 1 + t, top = fmax(0, e->up.top), n = fmin(0, e->up.low), d = e->down.low;
    double U1 = e->up.U, U2 = e->down.U, whole, part;
    *power = exp(a * top - t * d);
    whole = *power + 1 + a * U1 + t * U2;
    if (!(e->up.path && e->down.path)) return whole;
    d = fmin(0, d);
    part = 0.5 * a * t * U1 * U1 * exp((a - 2) * (a >= 2 ? top : n) - t * d);
    part += a * t * U1 * U2 * exp(t * top - (t + 1) * d) + 0.5 * t * (t + 1) * U2 * U2 * exp(a * top - (t + 2) * d);
    return fmin(whole, part);
}

/* A bound of |log(1 + lambda U)| for lambda in [0, 1], of lambda = 1 alone without a path. */
static double log_side_upper(const bulk_side *s, double q)
{
    double low = fmin(log1p(-q), s->low), L = fmax(-low, fmax(0, s->top)) + s->turn;
    return s->path ? fmin(s->U * exp(-low), L) : L;
}

/* A bound of |e^E L - U1 + U2| on an ellipse: half the second derivative along 1 + lambda U_i, or term by term; L: of
 * |L|, power: of |e^E| [theory: small.bulk]. */
static double first_remainder_upper(double t, const ellipse *e, double L, double power)
{
    double a = 1 + t, top = fmax(0, e->up.top), n = fmin(0, e->up.low), d = fmin(0, e->down.low);
    double U1 = e->up.U, U2 = e->down.U, whole = power * L + U1 + U2, part;
    if (!(e->up.path && e->down.path)) return whole;
    part = U1 * U1 * exp((a - 2) * (a >= 2 ? top : n) - t * d) * (a * t * L + 2 * a - 1);
    part += 2 * U1 * U2 * exp(t * top - (t + 1) * d) * (a * t * L + a + t);
    part += U2 * U2 * exp(a * top - (t + 2) * d) * (t * a * L + 2 * t + 1);
    return fmin(whole, 0.5 * part);
}

/* Error of Gauss-Legendre on panel p by its i-th ellipse: of B, returned, and added to out[n] of the first
 * `order` raw moments times B; infinite where the ellipse meets the branch points [theory: small.bulk]. */
static double panel_moments(const hs_bulk *J, int r, int64_t p, int i, double t, int order, double *out)
{
    const ellipse *e = ellipse_at(J, r, p, i);
    double L, w, power, second;
    int n;
    if (!e) return HUGE_VAL;
    w = exp(e->rule);
    second = w * bulk_remainder_upper(t, e, &power);
    if (!order) return second;
    L = log_side_upper(&e->up, J->pair.q[r]) + log_side_upper(&e->down, J->pair.q[r]);
    out[1] += w * first_remainder_upper(t, e, L, power);
    for (power *= w * L, n = 2; n <= order; n++) out[n] += power *= L;
    return second;
}

/* Error of Gauss-Legendre over all panels, of B (out[0], of a panel not much sharper than `enough`) and of the first
 * `order` raw moments times B (out[n]) at the tilt t; also of what lies beyond them, but of the moments of a plain step
 * alone. */
static void quadrature(const hs_bulk *J, double t, int order, double enough, double *out)
{
    double c = J->left, far = exp(-0.5 * c * c - HS_LOG_SQRT_2PI), deep;
    int64_t i;
    int n, e, r;
    deep = fmin(J->q * J->m * (c + 0.5 * J->m) / (1 - J->q), -log1p(-J->q));
    for (n = 1; n <= order; n++) out[n] = hs_bulk_plain(J) ? far * pow(deep, n) / (c - n / c) : 0;
    out[0] = hs_bulk_outside_upper(J, t);
    for (r = 0; r < J->pair.branches; r++)
        for (i = J->first[r]; i < J->first[r + 1]; i++) {
            double best = HUGE_VAL;
            for (e = 0; e < (order ? 1 : ELLIPSES) && best > enough; e++)
                best = fmin(best, panel_moments(J, r, i, e, t, order, out));
            out[0] += best;
        }
}

/* Sums over the nodes: of what B and its raw moments hold, of the moduli of that, and of its errors; in lanes. */
typedef struct {
    double of[ORDER + 1][8], size[ORDER + 1][8], err[ORDER + 1][8];
} bulk_lanes;

typedef struct {
    double of[ORDER + 1], size[ORDER + 1], err[ORDER + 1];
} bulk_sums;

/* The columns of the nodes of a panel, and after them nodes of weight 0; e^E - 1, the relative error of the weight. */
enum { ROWS = (PER + 7) / 8 * 8 };
typedef struct {
    double w[ROWS], l1[ROWS], L[ROWS], lm1[ROWS];
    double lm[ROWS], err1[ROWS], err2[ROWS], x[ROWS];
    double m1[ROWS], rel[ROWS];
} panel_rows;

static void load_rows(const hs_bulk *J, int64_t p, panel_rows *P)
{
    const double *c = J->columns + p * J->per * COLUMNS;
    int i;
    memset(P, 0, sizeof *P);
    for (i = 0; i < J->per; i++, c += COLUMNS) {
        P->w[i] = c[0];
        P->l1[i] = c[1];
        P->L[i] = c[2];
        P->lm1[i] = c[3];
        P->lm[i] = c[4];
        P->err1[i] = c[5];
        P->err2[i] = c[6];
        P->x[i] = c[7];
    }
}

/* What the nodes of a panel add at the tilt t; rel: of all weights. */
HS_CLONES static void add_panel_nodes(panel_rows *P, double t, double rel, bulk_lanes *S)
{
    int i, k;
    for (k = 0; k < ROWS; k += 8)
        for (i = 0; i < 8; i++) {
            double l1 = P->l1[k + i], L = P->L[k + i], E = l1 + t * L, m1 = hs_expm1(E);
            double near = E < 0.34 && E > -0.34 ? E : 0, h = hs_expm1mx(near), h2 = near != 0 ? h : m1 - E;
            double first = P->lm1[k + i] + t * P->lm[k + i], a = fabs(P->lm1[k + i]), l2 = l1 - L;
            double sizes = h2 + a + t * (2 * a + fabs(P->lm[k + i]));
            double own, off, x = P->x[k + i];
            own = rel + HS_U * (6 * x * x + 8 * fabs(x) + 24);
            /* d(l1) and d(l2) leave e^E - 1 - (1+t) U1 + t U2 off by the differences of e^E and 1 + U_i */
            off = (1 + t) * fabs(m1 - hs_expm1(l1)) * P->err1[k + i] + t * fabs(m1 - hs_expm1(l2)) * P->err2[k + i];
            off += own * sizes +
                   HS_U * (150 * sizes + fabs(m1) * (6 * fabs(E) + 4 * (fabs(l1) + t * (fabs(l1) + fabs(l2)))));
            S->of[0][i] += P->w[k + i] * (h2 + first);
            S->err[0][i] += P->w[k + i] * off;
            P->m1[k + i] = m1;
            P->rel[k + i] = own;
        }
}

/* What they add to the first `order` raw moments. */
HS_CLONES static void add_panel_moments(const panel_rows *P, double t, int order, bulk_lanes *S)
{
    int i, k, n;
    for (k = 0; k < ROWS; k += 8) {
        double power[8], dL[8], off[8];
        for (i = 0; i < 8; i++) {
            double w = P->w[k + i], l1 = P->l1[k + i], L = P->L[k + i], l2 = l1 - L;
            double m1 = P->m1[k + i], e = m1 + 1, E = l1 + t * L, rel = P->rel[k + i];
            double size = fabs(L * m1) + fabs(P->lm[k + i]), d1 = P->err1[k + i], d2 = P->err2[k + i], one;
            one = fabs(e * ((1 + t) * L + 1) - hs_exp(l1)) * d1 + fabs(e * (t * L + 1) - hs_exp(l2)) * d2;
            one += rel * size + HS_U * (150 * size + 6 * fabs(L) * e * fabs(E) + 2 * fabs(l2) * fabs(m1));
            S->of[1][i] += w * (L * m1 + P->lm[k + i]);
            S->err[1][i] += w * one;
            dL[i] = d1 + d2 + 2 * HS_U * (fabs(L) + fabs(l2));
            off[i] = rel + (1 + t) * d1 + t * d2;
            off[i] += HS_U * ((1 + t) * 2 * fabs(l1) + t * 3 * fabs(l2) + 4 * fabs(E) + 30);
            power[i] = w * e * L;
        }
        for (n = 2; n <= order; n++)
            for (i = 0; i < 8; i++) {
                double L = P->L[k + i];
                S->err[n][i] += fabs(power[i]) * (n * dL[i] + fabs(L) * off[i]);
                power[i] *= L;
                S->of[n][i] += power[i];
                S->size[n][i] += fabs(power[i]);
            }
    }
}

/* The sums over all nodes. */
static void sum_bulk(const hs_bulk *J, double t, double rel, int order, bulk_sums *S)
{
    bulk_lanes lanes;
    panel_rows P;
    int64_t p;
    int n;
    memset(&lanes, 0, sizeof lanes);
    for (p = 0; p < J->panels; p++) {
        load_rows(J, p, &P);
        add_panel_nodes(&P, t, rel, &lanes);
        if (order) add_panel_moments(&P, t, order, &lanes);
    }
    for (n = 0; n <= order; n++) {
        S->of[n] = hs_lanes(lanes.of[n]);
        S->size[n] = hs_lanes(lanes.size[n]);
        S->err[n] = hs_lanes(lanes.err[n]);
    }
}

/* The moments from the sums, what the panels miss of them, and the error `part` of B; false where they are not
 * known to 1e-3. */
static int set_moments(const hs_bulk *J, int order, bulk_sums *S, const double *lost, double part, hs_bulk_tilted *T)
{
    double scale = exp(J->log_unit), u = scale * J->u + J->out_u;
    int n;
    T->wrong = 0;
    T->size[1] = 1.001 * sqrt(S->size[2] * exp(-T->log_b));
    for (n = 1; n <= order; n++) {
        T->moment[n] = S->of[n] * exp(-T->log_b);
        if (n > 1) T->size[n] = S->size[n] * exp(-T->log_b);
        S->err[n] += lost[n] * (n > 1) + part * (fabs(S->of[n]) + S->err[n] + S->size[n]);
        if (n > 1) T->wrong = fmax(T->wrong, S->err[n] / S->size[n] + T->err);
    }
    T->mean = T->moment[1] = (S->of[1] - u) * exp(-T->log_b);
    T->mean_err = 1.2 * exp(-T->log_b) * (lost[1] + S->err[1] + scale * 3 * J->rel * J->p) +
                  fabs(T->mean) * 2 * T->err + HS_U * (5 * exp(-T->log_b) * scale * J->u + 8 * fabs(T->mean)) +
                  1e-12 * fabs(J->out_u);
    T->wrong = fmax(T->wrong, T->mean_err / T->size[1]);
    return T->wrong < 1e-3;
}

/* The bulk at the tilt t >= 0, with `order` raw moments, of a pair those of its panels alone; HS_OUT_OF_RANGE where B
 * says nothing. */
int hs_bulk_at(const hs_bulk *J, double t, int order, hs_bulk_tilted *T)
{
    double lost[ORDER + 1], scale = exp(J->log_unit), part = HS_U * (double)(J->panels * J->per + 20);
    double linear = scale * (J->p + t * J->u) + J->out_p + t * J->out_u;
    double rel = HS_U * (J->pair.w_err + 10 * J->pair.q_err);
    bulk_sums S;
    if (!(J->n0 + t * J->l0 < 600)) return HS_OUT_OF_RANGE;
    sum_bulk(J, t, rel, order, &S);
    quadrature(J, t, order, 1e-3 * S.err[0] / (double)J->panels, lost);
    T->log_b = log1p(S.of[0] - linear);
    part = lost[0] + S.err[0] + part * (fabs(S.of[0]) + S.err[0]) +
           (3 * J->rel + 8 * HS_U) * scale * (J->p * (2 + t) + J->q_den) +
           (1e-12 + 4 * rel) * (J->out_p + t * fabs(J->out_u));
    T->err = 1.2 * exp(-T->log_b) * part + 8 * HS_U * fabs(T->log_b);
    if (!(T->log_b > -9 && T->log_b < 600 && T->err < 0.1)) return HS_OUT_OF_RANGE;
    return !order || set_moments(J, order, &S, lost, part, T) ? HS_OK : HS_OUT_OF_RANGE;
}

/* What the nodes hold of B at the tilt t, and a bound of what rounding may take from it: TINY of the moduli of its
 * terms is above (6 x^2 + 8 |x| + ...) u of weights, 4 u (e^E + 1 + |E|) of a term of second order and 16,000 u of
 * the sum [theory: rounding.first-order]. */
HS_CLONES static double rough_sum(const hs_bulk *J, double t, double *err)
{
    double sum = 0, off = 0;
    const double *c = J->columns;
    int64_t j, n = J->panels * J->per;
    for (j = 0; j < n; j++, c += COLUMNS) {
        double E = c[1] + t * c[2], e = hs_exp(E), l2 = c[1] - c[2], near = E < 0.1 && E > -0.1 ? 1 : 0;
        double h = near != 0 ? hs_expm1mx_small(near != 0 ? E : 0) : e - 1 - E, m = h + E, first = c[3] + t * c[4];
        double U1 = c[1] - c[3], U2 = l2 - (c[3] - c[4]), size = fabs(m) + fabs(U1) + fabs(U2);
        double part = h + fabs(c[3]) + t * (2 * fabs(c[3]) + fabs(c[4]));
        part += 1e-3 * fabs(m) * (fabs(E) + fabs(c[1]) + t * (fabs(c[1]) + fabs(l2)));
        sum += c[0] * (h + first);
        off += c[0] *
               (TINY * part + (1 + t) * (fabs(m - U1) + TINY * size) * c[5] + t * (fabs(m - U2) + TINY * size) * c[6]);
    }
    *err = off;
    return sum;
}

/* An upper bound of log B(t), t >= 0, within about 1e-11 of what is of second order in U; HUGE_VAL where it says
 * nothing. As hs_bulk_at, in whose place it saves 8 % of the median sparse question, but of a panel's ellipses the
 * first that will do [theory: small.bulk]. */
double hs_bulk_log_upper(const hs_bulk *J, double t)
{
    double scale = exp(J->log_unit), linear = scale * (J->p + t * J->u) + J->out_p + t * J->out_u;
    double err, sum, off, far = 0;
    hs_bulk_tilted T;
    int64_t i;
    int e, r;
    if (!(J->n0 + t * J->l0 < 600)) return HUGE_VAL;
    for (r = 0; r < J->pair.branches; r++) far = fmax(far, fmax(J->x0[r], J->left) + 1);
    if (!(HS_U * (J->pair.w_err + 10 * J->pair.q_err + 6 * far * far) < 0.25 * TINY))
        return hs_bulk_at(J, t, 0, &T) ? HUGE_VAL : T.log_b + T.err;
    sum = rough_sum(J, t, &off);
    off += TINY * fabs(sum) + (3 * J->rel + TINY) * scale * (J->p * (2 + t) + J->q_den) +
           2 * TINY * (J->out_p + t * fabs(J->out_u));
    err = 1e-3 * off / (double)J->panels;
    off += hs_bulk_outside_upper(J, t);
    for (r = 0; r < J->pair.branches; r++)
        for (i = J->first[r]; i < J->first[r + 1]; i++) {
            double best = HUGE_VAL;
            for (e = 0; e < ELLIPSES && best > err; e++) best = fmin(best, panel_moments(J, r, i, e, t, 0, NULL));
            off += best;
        }
    sum = log1p(sum - linear + off);
    return sum > -9 && sum < 600 ? sum + TINY * fabs(sum) : HUGE_VAL;
}

/* Upper bound of the log of Pr[sum of n losses > s, all of the bulk] at the tilts J->tilt. */
double hs_bulk_above_upper(const hs_bulk *J, double n, double s)
{
    double best = 0;
    int i;
    for (i = 0; i < HS_BULK_TILTS; i++) best = fmin(best, n * J->log_b[i] - J->tilt[i] * s);
    return best + SLACK * fabs(best);
}

/* An upper bound of the log of sum W int w (1+U2) e^{-sL} over the panels where L >= -least; *den: one of the mass of
 * den left of them [theory: small.bulk-parity]. */
double hs_bulk_fall_upper(const hs_bulk *J, double s, double least, double *den)
{
    double sum = 0, t = -1 - s, err;
    int64_t p;
    int r, i;
    for (*den = 0, r = 0; r < J->pair.branches; r++) {
        double q = J->pair.q[r], x = J->start[r];
        for (p = J->first[r]; p < J->first[r + 1]; p++) {
            hs_bulk_loss at = hs_bulk_loss_at(J, r, x = J->mid[p] - J->half[p]);
            if (at.l1 - at.l2 > -least) break;
        }
        if (p == J->first[r + 1]) x = J->x0[r];
        *den += J->pair.w[r] * (q * tail_mass(-x - J->pair.down[r], 0, &err) + (1 - q) * tail_mass(-x, 0, &err));
        for (; p < J->first[r + 1]; p++) {
            const double *c = J->columns + p * J->per * COLUMNS;
            for (i = 0; i < J->per; i++, c += COLUMNS) {
                double E = c[1] + t * c[2], l2 = fabs(c[1] - c[2]);
                double slip = 6 * c[7] * c[7] + 8 * fabs(c[7]) + 60 + J->pair.w_err + 8 * fabs(E);
                slip = HS_U * (slip + 2 * s * fabs(c[1]) - 3 * t * l2) + s * c[5] - t * c[6];
                sum += c[0] * exp(E) * (1 + 1.1 * slip);
            }
            sum += exp(panel_upper(J, r, p, t, 0, log(sum) + SHARP_NATS));
        }
    }
    *den *= 1 + SLACK;
    return log(sum) + 1e-11;
}

/* No loss of the bulk is larger, but for the rounding of a rate: those of a branch that is not cut lie beyond its
 * panels, too. */
double hs_bulk_top_loss(const hs_bulk *J)
{
    double top = J->l0;
    int r;
    for (r = 0; r < J->pair.branches; r++)
        if (!(J->cut[r] < HUGE_VAL)) top = fmax(top, -log1p(-J->pair.q[r]));
    return top;
}

/* The tilt up to which exponents stay doubles. */
double hs_bulk_top_tilt(const hs_bulk *J) { return (599 - J->n0) / J->l0; }

/* log B and its derivatives, as an estimate; false where it says nothing. */
HS_CLONES int hs_bulk_estimate(const hs_bulk *J, double t, double *out)
{
    double s0 = 0, s1 = 0, s2 = 0;
    double scale = exp(J->log_unit), p = scale * J->p + J->out_p, u = scale * J->u + J->out_u, B;
    const double *c = J->columns;
    int64_t j, n = J->panels * J->per;
    if (!(t < hs_bulk_top_tilt(J))) return 0;
    for (j = 0; j < n; j++, c += COLUMNS) {
        double w = c[0], L = c[2], E = c[1] + t * L, e = hs_exp(E);
        double near = E < 0.1 && E > -0.1 ? 1 : 0;
        double h = near != 0 ? hs_expm1mx_small(near != 0 ? E : 0) : e - 1 - E;
        s0 += w * (h + c[3] + t * c[4]);
        s1 += w * (L * (h + E) + c[4]);
        s2 += w * e * L * L;
    }
    s0 -= p + t * u;
    B = 1 + s0;
    if (!(B > 1e-4 && B < 1e250)) return 0;
    out[0] = log1p(s0);
    out[1] = (s1 - u) / B;
    out[2] = s2 / B - out[1] * out[1];
    return 1;
}

/* The same of the mass of a cell. */
void hs_bulk_cell_estimate(const hs_bulk *G, double t, double *out)
{
    double s0 = 0, s1 = 0, s2 = 0;
    const double *c = G->columns;
    int64_t j, n = G->panels * G->per;
    for (j = 0; j < n; j++, c += COLUMNS) {
        double e = c[0] * hs_exp(c[1] - G->n0 + t * (c[2] - G->l0));
        s0 += e;
        s1 += e * c[2];
        s2 += e * c[2] * c[2];
    }
    out[0] = log(s0) + G->n0 + t * G->l0;
    out[1] = s1 / s0;
    out[2] = s2 / s0 - out[1] * out[1];
}

/* log of the mass of the cell under num tilted by t, with its error: positive terms [theory: small.bulk-line]. */
double hs_bulk_cell_at(const hs_bulk *G, double t, double *err)
{
    double sum = 0, off = 0, top = G->n0 + t * G->l0;
    const double *c = G->columns;
    int64_t j, n = G->panels * G->per;
    for (j = 0; j < n; j++, c += HS_BULK_COLUMNS) {
        double e = c[0] * exp(c[1] - G->n0 + t * (c[2] - G->l0)), x = c[7], l2 = fabs(c[1] - c[2]);
        double slip =
            6 * x * x + 8 * fabs(x) + 30 + G->pair.w_err + 8 * (fabs(c[1]) + G->n0 + t * (fabs(c[2]) + G->l0));
        sum += e;
        off += e * (HS_U * (slip + (1 + t) * 2 * fabs(c[1]) + 3 * t * l2) + (1 + t) * c[5] + t * c[6]);
    }
    *err = off / sum + HS_U * (double)(n + 8) +
           exp(hs_bulk_log_phase_upper(G, t, 0, top + log(sum) + SHARP_NATS) - top) / sum;
    *err = *err < 0.1 ? 1.2 * *err + 4 * HS_U * (fabs(log(sum)) + top) : HUGE_VAL;
    return log(sum) + top;
}

/* phi - 1 at the nodes from the panels' own tilted masses, which sum to 1; a bound of its rounding over y
 * [theory: rounding.phi, rounding.nodes]. */
double hs_bulk_nodes(const hs_bulk *J, double t, double dy, int64_t N, double *grid, double *re, double *im)
{
    double own = 0, size = 0, mean = 0;
    double total = 0, part = 0;
    const double *c = J->columns;
    int64_t j, n = J->panels * J->per;
    hs_grid G = {.first = 0, .n = (int)(n + 7) / 8 * 8, .r = grid};
    G.last = G.n;
    G.l = G.r + HS_JUMPS_NODES + 8;
    G.er = G.l + HS_JUMPS_NODES + 8;
    for (j = 0; j < n; j++, c += HS_BULK_COLUMNS) { /* in blocks of 64 [theory: rounding.sums] */
        part += G.r[j] = c[0] * exp(c[1] - J->n0 + t * (c[2] - J->l0));
        if (j % 64 < 63 && j < n - 1) continue;
        total += part;
        part = 0;
    }
    for (c = J->columns, j = 0; j < n; j++, c += HS_BULK_COLUMNS) {
        double x = c[7], L = c[2], l2 = fabs(c[1] - L), e;
        double dL = c[5] + c[6] + 3 * HS_U * (fabs(c[1]) + l2);
        e = HS_U * (6 * x * x + 8 * fabs(x) + 30 + J->pair.w_err + 8 * (fabs(c[1]) + J->n0 + t * (fabs(L) + J->l0)) +
                    (1 + t) * 2 * fabs(c[1]) + t * 3 * l2);
        e += (1 + t) * c[5] + t * c[6];
        G.r[j] /= total;
        G.l[j] = L;
        own += G.r[j] * (dL + fabs(L) * e);
        size += G.r[j] * fabs(L);
        mean += G.r[j] * e;
    }
    for (; j < G.n; j++) G.r[j] = G.l[j] = 0;
    hs_grid_nodes(&G, dy, N, re, im);
    return 1.01 * (own + size * (mean + HS_U * (114 + 0.25 * (double)n +
                                                fmax(hs_grid_nodes_units(&G, N, 16), hs_grid_nodes_units(&G, N, 17)))));
}
