/* cgf_upper.c - certified values at one exponent, each on a grid made for it: log M of a sampled Gaussian step; log M,
 * mean, variance and phi of a public mixture.
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

/* The same of a pair of one branch at the tilt z, against log M itself. */
int hs_two_log_m_upper(const hs_pair *pair, double z, double *work, double *log_m, double *err)
{
    double nats, h, out;
    hs_two T;
    hs_moments mo;
    int st;
    nats = fmax(12, 10 - fmin(0, log(fmax(fabs(hs_two_cgf_estimate(pair, z).K), 1e-300))));
    h = hs_grid_mesh(fmin(hs_two_real_h(pair, 0, z, nats), 2 * HS_PI / sqrt(2 * (nats + 2))));
    if (!(h > 0)) return HS_TOO_MANY_NODES;
    if ((st = hs_two_build(&T, pair, &h, z, z, sqrt(2 * (nats + 3)) + 1, work))) return st;
    hs_two_moments(&T, z, &mo);
    out = hs_two_real_upper(&T, z) + hs_two_ends_upper(&T, z, mo.log_m);
    if (mo.dropped) out += hs_two_dropped_upper(&T, z) / exp(fmin(mo.log_m, 0));
    if (!(out < 1)) return HS_OUT_OF_RANGE;
    *log_m = mo.log_m;
    *err = mo.err - log1p(-out);
    return fabs(*log_m) + *err < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
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

/* As hs.h says; errors aim at e^-target. work: HS_TWO_WORK doubles. */
int hs_two_transform(const hs_pair *pair, double z, double y, double target, double *work, int64_t n_work,
                     hs_transformed *out)
{
    hs_two T;
    hs_moments mo;
    double est, h[HS_BRANCHES], c1, c2;
    double edge, R = sqrt(2 * (target + 3)) + 1;
    int r, st;
    if (n_work < HS_TWO_WORK) return HS_SCRATCH;
    if (!(is_mixture(pair) && y >= 0 && target > 0)) return HS_BAD_ARGUMENT;
    est = hs_two_cgf_estimate(pair, z).K;
    if (!(fabs(est) < HUGE_VAL)) return HS_OUT_OF_RANGE;
    for (r = 0; r < pair->branches; r++) {
        h[r] = hs_two_choose_h(pair, r, z, y, target, est);
        if (!(h[r] > 0)) return HS_TOO_MANY_NODES;
    }
    if ((st = hs_two_build(&T, pair, h, z, z, R, work))) return st;
    hs_two_moments(&T, z, &mo);
    hs_two_weights(&T, z, mo.log_m, &c1, &c2);
    edge = hs_two_ends_upper(&T, z, mo.log_m);
    out->log_m = mo.log_m;
    out->mean = mo.mean;
    out->var = mo.var;
    out->err = hs_two_real_upper(&T, z) + edge;
    out->phi_err = out->err + edge;
    if (mo.dropped) out->err += hs_two_dropped_upper(&T, z) / exp(fmin(mo.log_m, 0));
    if (!(out->err < 0.1)) return HS_TOO_WIDE;
    out->err = 1.1 * out->err + mo.err;
    hs_grid_phase(&T.G, y, &out->re, &out->im);
    for (r = 0; r < pair->branches; r++) T.strip[r] = -1;
    out->phi_err += hs_two_quadrature_upper(&T, z, y) + y * c1;
    out->beyond = fmin(1, hs_two_far_upper(&T, z, y) + 2 * edge);
    return out->err < HUGE_VAL && out->phi_err < HUGE_VAL ? HS_OK : HS_TOO_WIDE;
}
