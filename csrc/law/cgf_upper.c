/* cgf_upper.c - log M with a bound of its error at one exponent, on a grid made for it: of a sampled Gaussian step, and
 * of a public mixture.
 *
 * Symbols and error claims: transform.c, twosided.c. What it does not do: share a grid between exponents.
 */
#include "law/twosided.h"

/* |log M(a) - log_m| <= err on a grid of its own, whose quadrature error is about e^-nats. */
int hs_log_m_nats_upper(double m, double q, double a, double nats, double *work, double *log_m, double *err)
{
    double h = hs_grid_mesh(fmin(hs_grid_real_h(m, a, nats), 2 * HS_PI / sqrt(2 * (nats + 2)))),
           width = sqrt(2 * (nats + 3)) + 1, out;
    hs_grid G;
    hs_moments mo;
    int st;
    if (!(h > 0)) return HS_TOO_MANY_NODES;
    if ((st = hs_grid_build(&G, m, q, h, -width - hs_left_reach_upper(m, q, a), fmax(m, a * m) + width, work)))
        return st;
    hs_grid_moments(&G, a, &mo);
    out = hs_grid_real_upper(m, a, h) + hs_grid_ends_upper(&G, a, mo.log_m);
    if (mo.dropped) out += hs_grid_dropped_upper(&G, a) / exp(fmin(mo.log_m, 0));
    if (!(out < 1)) return HS_OUT_OF_RANGE;
    *log_m = mo.log_m;
    *err = mo.err - log1p(-out);
    return fabs(*log_m) + *err < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* The same with an error that is small over k steps, and against log M itself. */
int hs_log_m_upper(double m, double q, double a, double k, double *work, double *log_m, double *err)
{
    double K = hs_cgf_estimate(m, q, a).K;
    return hs_log_m_nats_upper(m, q, a, fmax(12 + log(k), 10 - fmin(0, log(fmax(fabs(K), 1e-300)))), work, log_m, err);
}

/* Whether a pair has branches whose weights, rates and shifts are in range. */
static int is_mixture(const hs_pair *pair)
{
    int r;
    for (r = 0; r < pair->branches && r < HS_BRANCHES; r++) {
        double q = pair->q[r], up = pair->up[r], down = pair->down[r];
        if (!(pair->w[r] > 0 && q > 0 && q < 1 && up >= 0 && down >= 0 && up + down > 0)) return 0;
    }
    return r >= 1 && r == pair->branches;
}

int64_t hs_two_work(void) { return HS_TWO_WORK; }

/* The same of a public mixture at the tilt z, and against log M itself. */
int hs_two_log_m_upper(const hs_pair *pair, double z, double nats, double *work, double *log_m, double *err)
{
    double K, out, h[HS_BRANCHES];
    hs_two T;
    hs_moments mo;
    int r, st;
    if (!is_mixture(pair) || !(nats > 0)) return HS_BAD_ARGUMENT;
    K = hs_two_cgf_estimate(pair, z).K;
    if (!(fabs(K) < HUGE_VAL)) return HS_OUT_OF_RANGE;
    nats = fmax(nats, 10 - fmin(0, log(fmax(fabs(K), 1e-300))));
    for (r = 0; r < pair->branches; r++) {
        h[r] = hs_two_choose_h(pair, r, z, 0, nats, K);
        if (!(h[r] > 0)) return HS_TOO_MANY_NODES;
    }
    if ((st = hs_two_build(&T, pair, h, z, z, sqrt(2 * (nats + 3)) + 1, work))) return st;
    hs_two_moments(&T, z, &mo);
    out = hs_two_real_upper(&T, z) + hs_two_ends_upper(&T, z, mo.log_m);
    if (mo.dropped) out += hs_two_dropped_upper(&T, z) / exp(fmin(mo.log_m, 0));
    if (!(out < 1)) return HS_OUT_OF_RANGE;
    *log_m = mo.log_m;
    *err = mo.err - log1p(-out);
    return fabs(*log_m) + *err < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}
