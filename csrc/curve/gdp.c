/* gdp.c - which cells of a privacy curve a Gaussian curve covers, where the others are cut, and what Gaussian curves go
 * through points.
 *
 * Symbols. G_mu the Gaussian curve, x = e^eps; T_t its tangent at x = e^t; a cell: all eps between two points that lie
 *   next to each other.
 *
 * Formulas. T_t(x) = Phi(mu/2 - t/mu) - x Phi(-mu/2 - t/mu), and 1 - T_t(x) = Phi(t/mu - mu/2) + x Phi(-mu/2 - t/mu),
 *   of which nothing cancels. G_mu covers a cell if some T_t is at least delta at both its ends; where delta is next to
 *   1, if 1 - T_t is at most 1 - delta there [theory: risk.tangents].
 *
 * Error claim. erfc is within 16 u (libm), its argument within 4 u of the sum of the sizes of its terms, and Phi(z)
 *   changes by a factor of at most e^{(|z|+1) dz}, for which twice the exponent pays while that is below a half;
 *   beyond, the value at z + dz bounds both numbers, and so their distance. What underflows is below 1e-300, as
 *   x Phi(z) is one exponential times Mills' ratio where Phi(z) may be below all doubles. hs_gdp_tangent has bounds of
 *   both numbers; covers and needed_lower use these alone.
 *
 * What it does not do: ask for a point. Where cells are cut, and how many digits are asked, rests on estimates.
 */
#include "law/transform.h"

static const double LEAST = 1e-150; /* least mu, where none is known to be needed: its square and eps/mu are doubles */
static const double SHARE = 0.95;   /* of the longest cell that one tangent covers if slacks are what they seem */
static const double HALF_KNOWN = 0.5; /* relative errors from which on bounds of first order in them do not hold */
static const double FINE = 1e-15;     /* last step, as a part of mu, of the largest ones */
enum {
    TOUCHES = 6, /* tangents that are tried for a cell */
    SAMPLES = 5, /* places of a cell at which the slack is estimated before it is cut */
    NEAR = 4     /* points through whose mu a polynomial goes */
};

/* Phi(z), and what it may be off by where the terms of z have this size. */
static double normal_at(double z, double size, double *error)
{
    const double r = HS_SQRT_HALF, off = 32 * HS_U + 8 * HS_U * size * (fabs(z) + 1);
    double value = 0.5 * erfc(-z * r);
    *error = off < HALF_KNOWN ? value * off : erfc(-(z + 8 * HS_U * size) * r);
    return value;
}

/* x Phi(-mu/2 - t/mu) with a = mu/2 - t/mu, where that may be no small number though Phi is below all doubles:
 * x e^{-(mu/2 + t/mu)^2/2} is e^{eps - t} e^{-a^2/2}. */
static double priced_at(double mu, double t, double eps, double a, double size, double *error)
{
    double z = -mu / 2 - t / mu, value, rel;
    double power = eps - t - 0.5 * a * a;
    if (z > -30) {
        value = exp(eps) * normal_at(z, size, error);
        *error *= exp(eps);
        return value;
    }
    value = exp(power) * HS_NORMAL_PEAK * hs_mills(-z, &rel);
    rel += 32 * HS_U + 4 * HS_U * fabs(eps - t) + 8 * HS_U * size * (fabs(a) + 1);
    *error = rel < HALF_KNOWN ? value * rel : exp(power + rel);
    return value;
}

void hs_gdp_tangent(double mu, double t, double eps, hs_gdp_ends *out)
{
    double size = mu / 2 + fabs(t) / mu, a = mu / 2 - t / mu, wrong, off;
    double other, over = normal_at(a, size, &wrong), under = priced_at(mu, t, eps, a, size, &off);
    double left = normal_at(-a, size, &other), error;
    error = wrong + off + 8 * HS_U * (over + under) + 1e-300;
    out->lower = over - under - error;
    out->upper = over - under + error;
    error = other + off + 8 * HS_U * (left + under) + 1e-300;
    out->left_lower = left + under - error;
    out->left_upper = left + under + error;
}

/* By how much the tangent at t lies above a point, at least. */
static double slack_lower(double mu, double t, const hs_gdp_point *p)
{
    hs_gdp_ends at;
    hs_gdp_tangent(mu, t, p->eps, &at);
    return fmax(at.lower - p->high, p->left - at.left_upper);
}

/* Whether some tangent lies above a chord, above whose ends G_mu lies by `before` and `after`. The later a tangent
 * touches, the lower it is at the left end and the higher at the right one: where it is below the chord at one of them,
 * one that touches nearer to it may do, and none where it is below at both. It falls below G_mu with the square of the
 * distance. */
static int covers(double mu, const hs_gdp_point *p, const hs_gdp_point *q, double before, double after)
{
    double low = p->eps, high = q->eps, b = sqrt(before), a = sqrt(after);
    double t = low + (high - low) * (b + a > 0 ? b / (b + a) : 0.5);
    int i;
    for (i = 0; i < TOUCHES; i++) {
        int one = slack_lower(mu, t, p) >= 0, other = slack_lower(mu, t, q) >= 0;
        if (one == other) return one; /* [theory: risk.tangents] */
        if (one) low = t;
        else high = t;
        t = 0.5 * (low + high);
    }
    return 0;
}

void hs_gdp_cover(double mu, int64_t n, hs_gdp_point *p, double *over)
{
    const int64_t cells = n > 1 ? n - 1 : 1;
    int64_t i;
    for (i = 0; i < n; i++) {
        int open = (i < cells && p[i].covered == 0) || (i > 0 && p[i - 1].covered == 0);
        over[i] = open ? slack_lower(mu, p[i].eps, &p[i]) : HUGE_VAL;
    }
    for (i = 0; i < cells; i++) {
        const int64_t j = n > 1 ? i + 1 : i;
        if (p[i].covered == 0 && fmin(over[i], over[j]) >= 0) p[i].covered = covers(mu, &p[i], &p[j], over[i], over[j]);
    }
}

/* The polynomial through the mu of a few points, of which row holds the divided differences. */
static double through(const hs_gdp_point *p, const double *row, int count, double eps)
{
    double value = 0;
    int j;
    for (j = count - 1; j >= 0; j--) value = value * (eps - p[j].eps) + row[j];
    return value;
}

/* How densely cells lie at SAMPLES places of a cell: with s = mu/mu(eps) - 1 to spare one tangent covers about 2 mu
 * sqrt(2 s) of eps. */
static void densities(double mu, double room, int64_t n, const hs_gdp_point *p, int64_t i, double *dense)
{
    const int count = n < NEAR ? (int)n : NEAR;
    const int64_t last = n - count, first = i < 1 ? 0 : i - 1 > last ? last : i - 1;
    double row[NEAR], most = mu, wide = p[i + 1].eps - p[i].eps;
    int j, k;
    p += first;
    i -= first;
    for (j = 0; j < count; j++) row[j] = p[j].mu;
    for (k = 1; k < count; k++)
        for (j = count - 1; j >= k; j--) row[j] = (row[j] - row[j - 1]) / (p[j].eps - p[j - k].eps);
    for (j = 0; j < SAMPLES; j++) {
        dense[j] = through(p, row, count, p[i].eps + wide * (j + 0.5) / SAMPLES);
        most = fmax(most, room * dense[j]);
    }
    for (j = 0; j < SAMPLES; j++) dense[j] = 1 / sqrt(2 * fmin(most / fmax(dense[j], 1e-9 * most) - 1, 1));
}

/* What the chord of two points says of one between them: an end of delta, one of 1 - delta, and about its mu; and
 * whether G_mu seems to leave so much that few digits of delta will do. */
static hs_gdp_point on_chord(double mu, double far, const hs_gdp_point *p, const hs_gdp_point *q, double eps)
{
    double share = expm1(eps - p->eps) / expm1(q->eps - p->eps); /* of the way, in x */
    double fall = q->high - p->high, rise = q->left - p->left, z = 0.5 * mu - eps / mu;
    double wide = (16 + 4 * (q->eps - p->eps)) * HS_U; /* expm1 turns what its argument is off by into a part */
    hs_gdp_point at = {eps, 0, 0, 0, 1, 0, 0, 0};
    at.high = (p->high + fall * share) * (1 + 16 * HS_U) + wide * fabs(fall);
    at.left = (p->left + rise * share) * (1 - 16 * HS_U) - wide * fabs(rise);
    at.mu = p->mu + (q->mu - p->mu) * ((eps - p->eps) / (q->eps - p->eps));
    at.rough = exp(-0.5 * z * z - HS_LOG_SQRT_2PI) * (mu - at.mu) > far * erfc(-z * HS_SQRT_HALF);
    return at;
}

int64_t hs_gdp_cuts(double mu, double room, double far, int64_t n, const hs_gdp_point *p, const double *over,
                    hs_gdp_point *out)
{
    int64_t i, found = 0;
    for (i = 0; i + 1 < n; i++) {
        double dense[SAMPLES], whole = 0, done = 0, wanted;
        double at = p[i].eps, wide = p[i + 1].eps - at;
        int pieces, made = 0, j;
        if (p[i].covered != 0 || !(fmin(over[i], over[i + 1]) >= 0)) continue;
        densities(mu, room, n, p, i, dense);
        for (j = 0; j < SAMPLES; j++) whole += dense[j];
        wanted = whole / SAMPLES * wide / (2 * SHARE * mu);
        pieces = wanted > HS_GDP_PIECES ? HS_GDP_PIECES / 2 : (int)fmax(ceil(wanted), 2);
        for (j = 0; j < SAMPLES; done += dense[j++]) /* each piece has its part of the whole */
            while (made < pieces - 1 && done + dense[j] >= whole * (made + 1) / pieces) {
                double eps = p[i].eps + wide * (j + (whole * ++made / pieces - done) / dense[j]) / SAMPLES;
                if (!(at < eps && eps < p[i + 1].eps)) return -1;
                out[found++] = on_chord(mu, far, &p[i], &p[i + 1], eps);
                at = eps;
            }
    }
    return found;
}

/* About the mu of the Gaussian curve through the lower end of a point, by Newton's rule for log G or log(1 - G),
 * whichever is smaller, which are concave in mu. It begins at p->mu, or where that is 0 below: G falls with eps, is at
 * most mu/sqrt(2 pi) at 0, and below the normal tail. close: the last step, as a part of mu. */
static double fitted(const hs_gdp_point *p, double close)
{
    const double side = p->low > 0.5 ? -1 : 1, aim = p->low > 0.5 ? p->left_high : p->low, eps = p->eps;
    double mu = p->mu, w = sqrt(-2 * log(fmin(2 * p->low, 1)));
    int i;
    if (!(p->low > 0 && aim > 0)) return 0;
    if (!(mu > 0)) mu = fmax(LEAST, fmax(2.5 * p->low, sqrt(w * w + 2 * eps) - w));
    for (i = 0; i < 60; i++) {
        double a = 0.5 * mu - eps / mu, b = -0.5 * mu - eps / mu, r = HS_SQRT_HALF, last = mu;
        double value = 0.5 * (erfc(-side * a * r) - side * exp(eps) * erfc(-b * r));
        double slope = side * exp(-0.5 * a * a - HS_LOG_SQRT_2PI);
        if (!(value > 0 && slope != 0)) break;
        mu = fmin(fmax(mu + log(aim / value) * value / slope, 0.5 * mu), 2 * mu);
        if (fabs(mu - last) <= close * mu) break;
    }
    return mu;
}

/* A mu next to p->mu whose Gaussian curve is proved not to lie above the run's at this point, or 0. */
static double needed_lower(const hs_gdp_point *p)
{
    double part, mu;
    hs_gdp_ends at;
    for (part = FINE; part < 1; part *= 4) {
        mu = p->mu * (1 - part);
        hs_gdp_tangent(mu, p->eps, p->eps, &at);
        if (at.upper <= p->low || at.left_lower >= p->left_high) return mu;
    }
    return 0;
}

double hs_gdp_fit(double best, double end, double close, int64_t n, hs_gdp_point *p)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        p[i].mu = fitted(&p[i], close);
        if (!(p[i].eps <= end && p[i].mu > best * (1 - close))) continue;
        p[i].mu = fitted(&p[i], FINE);
        if (p[i].mu > best) best = fmax(best, needed_lower(&p[i]));
    }
    return best;
}
