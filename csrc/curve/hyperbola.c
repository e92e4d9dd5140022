/* Certified delta(eps) and eps(delta) of a few Poisson-subsampled Gaussian steps, or public mixtures of two-sided
 * branches (total count about 1..1000), where the vertical line of the contour route needs too many nodes: trapezoid
 * rule on a hyperbola.
 *
 * Symbols and contour: head of hyperbola_cells.c.  Inner integrals, their bounds and rounding: head of
 * hyperbola_bound.c.
 * Formula   delta = [e^eps] (h_v/2 pi) Re sum'_n 2 G(a_n) A cos(gamma + i n h_v),  n >= 0, first term halved.
 *
 * Error terms, all in units of exp(log_scale):
 *   aliasing    (N_lo + N_up)/(e^{2 pi beta/h_v} - 1) [theory: hyperbola.contour, hyperbola.trapezoid, hyperbola.cells]
 *   truncation  nodes with v >= v_end [theory: hyperbola.tail]
 *   inner       sum_n |G_n a'_n| h_v/2 pi (prod_i (1 + e_i/|M_i|)^{k_i} - 1), e_i the inner quadrature error
 *               [theory: hyperbola.inner]
 *   rounding    node sums of hyperbola_bound.c in the same product [theory: hyperbola.rounding];
 *               u(7 + 3|log M| + 2|arg M| + 2|shift|) k for the logarithm (modulus 2, scaling 3, log 2, sum 1); the
 *               position a_n is off by at most 22u(|a0| + A cosh v + 1), for v <= 16 carries u v: kernel 24u(..)/|a|,
 *               /|a-1|, factor e^{-s a} 40u|s|(..), which also pays for the reduction of a long phase (u/2 of it); 30u
 *               for e^x, cos and sin (6.3), the weight a'/(a(a-1)) (19) and the product (2.9); final sum n u.
 * eps(delta): Newton on the stored nodes (a new eps only multiplies G_n by e^{-(s'-s) a_n}); then certified deltas at
 * both ends [theory: line.root], every bound re-evaluated there with the stored cells.
 *
 * Claim: status 0 or 1: lower <= delta <= upper (of eps(delta) likewise) for the exact real q, k, eps
 * and sigma, m = fl(1/sigma) allowed to be off by 2^-53 relative. Measured: 1080 cases k = 2..100, q = .001...05,
 * sigma = .6..2, delta = 1e-5..1e-9, both directions: all answered, 86% within 1e-9 of delta; relative width of eps
 * at most 2.7e-7 (rounding against
 * cancellation: q = .001, delta = 1e-9).
 * A step that is a pair: M = sum W_r M_r over its branches, whose weights and rates are known to w_err and q_err units
 * of u [theory: hyperbola.two-sided].
 * Not done: q = 1, other laws, branches with down > up, or q > 1/2 and two sides, pairs beside plain steps in the
 * direction ADD, eps at or below the wall (exact answers exist there for plain steps), width below the rounding term:
 * that is status 1 or a decline.
 *
 * Status: 0 proved, width within log_tol; 1 proved, wider (out is valid); 2 bad argument; 3 work too small; 4 no
 * saddle or contour; 5 no inner path; 6 bound does not decay / tail too long; 7 more than HS_HYP_MAX_NODES nodes; 8
 * error not below the value; 9 no bracket.
 * work: at least 4 HS_HYP_TMP + HS_HYP_ARRAYS HS_HYP_MAX_NODES doubles, plus the tables: 35,000 + 80,000 b was
 * enough in all tests; too little gives 3 or 5. */
#include "curve/hyperbola.h"
#include "line/root.h"
#include "line/saddle.h"

/* M of step i at node n on the inner paths of its cell: e^{o[4]} (o[0] + i o[1]), within e^{o[4]} o[2] of rounding and
 * e^{o[4]} o[3] of the inner mesh. */
static void step_node(hs_job *J, int n, int cell, int i, double *o)
{
    double x = J->nx[n], y = J->ny[n], one[HS_BRANCHES][4], size;
    int l, first = J->from[i], count = J->from[i + 1] - first;
    for (o[4] = -HUGE_VAL, l = 0; l < count; l++) {
        hs_line_node(&J->path[first + l][J->mid.rung[cell][first + l]].mid, x, y, one[l], J->tmp);
        o[4] = fmax(o[4], one[l][3]);
    }
    for (o[0] = o[1] = o[2] = o[3] = 0, l = 0; l < count; l++) {
        const hs_hyp_branch *branch = &J->branch[first + l];
        double d = one[l][3] - o[4], e = J->mid.log_e[cell][first + l] + x * J->path[first + l][0].floor - o[4];
        double scale = branch->w * exp(d);
        o[0] += scale * one[l][0];
        o[1] += scale * one[l][1];
        o[2] += scale * one[l][2];
        o[3] += branch->w * exp(fmin(e, 700)) * (1 + 1e-9);
        if (branch->w == 1) continue;
        size = scale * (fabs(one[l][0]) + fabs(one[l][1]) + one[l][2]); /* the weight, e^d, products and sums */
        o[2] += HS_U * (branch->w_err + 12 + 2 * fabs(d)) * size;
    }
}

/* K and its errors at node n, on the inner paths of its cell */
static int node(hs_job *J, int n, int cell)
{
    double v = n * J->h_v;
    double kr = 0, ki = 0, ab = 0;
    double ein = 0, ern = 0, o[5];
    int i;
    J->nx[n] = J->a0 + J->A * sin(HS_HYP_GAMMA) * cosh(v);
    J->ny[n] = J->A * cos(HS_HYP_GAMMA) * sinh(v);
    for (i = 0; i < J->b; i++) {
        double mod, lm, th;
        double e, r;
        step_node(J, n, cell, i, o);
        mod = sqrt(o[0] * o[0] + o[1] * o[1]);
        lm = log(mod) + o[4];
        th = atan2(o[1], o[0]);
        e = o[3] / mod;
        r = o[2] / mod;
        if (!(mod > 0 && e < 1e15 && r < 1e15)) return HS_TOO_WIDE;
        kr += J->k[i] * lm;
        ki += J->k[i] * th;
        ab += J->k[i] * (fabs(lm) + fabs(th));
        /* |(M+d)^k - M^k| <= |M|^k ((1+|d/M|)^k - 1), k whole */
        ein += J->k[i] * (log1p(e + r) - log1p(r)); /* [theory: hyperbola.inner] */
        ern += J->k[i] * (log1p(r) + HS_U * (7 + 3 * fabs(lm) + 2 * fabs(th) + 2 * fabs(o[4])));
    }
    J->kr[n] = kr;
    J->ki[n] = ki;
    J->ein[n] = ein;
    J->ern[n] = ern + 2 * HS_U * ab * (J->b + 1);
    J->ki_max = fmax(n ? J->ki_max : 0, fabs(ki));
    return HS_OK;
}

/* What multiplies e^{K - s a} at node n, and what its rounding adds. */
static void hyperbola_weigh(hs_job *J, int n)
{
    double v = n * J->h_v, ch = cosh(v), sh = sinh(v), x = J->nx[n];
    double y = J->ny[n], p = x * (x - 1) - y * y, r = (2 * x - 1) * y; /* a (a-1) */
    double dr = cos(HS_HYP_GAMMA) * ch, di = -sin(HS_HYP_GAMMA) * sh,
           f = (n ? 2 : 1) * J->A * J->h_v / (2 * HS_PI * (p * p + r * r));
    J->wr[n] = f * (dr * p + di * r);
    J->wi[n] = f * (di * p - dr * r);
    J->pos[n] = fabs(J->a0) + J->A * ch + 1;
    J->ern[n] += HS_U * (30 + 24 * J->pos[n] * (1 / sqrt((x - 1) * (x - 1) + y * y) + 1 / sqrt(x * x + y * y)));
}

static int hyperbola_nodes(hs_job *J)
{
    double v_end = J->mid.v_end;
    int n, st;
    for (n = 0; n * J->h_v < v_end; n++) {
        int cell = (int)(n * J->h_v / HS_HYP_DV);
        if (n >= HS_HYP_MAX_NODES) return HS_TOO_MANY_NODES;
        if (cell >= J->mid.n) cell = J->mid.n - 1;
        st = node(J, n, cell);
        if (st) return st;
        hyperbola_weigh(J, n);
    }
    for (J->n = n; n % 8; n++) { /* the node has no weight */
        J->nx[n] = J->nx[n - 1];
        J->ny[n] = J->ny[n - 1];
        J->kr[n] = J->kr[n - 1];
        J->ki[n] = J->ki[n - 1];
        J->ein[n] = J->ern[n] = J->pos[n] = J->wr[n] = J->wi[n] = 0;
    }
    return HS_OK;
}

/* at least e^z - 1 for z >= 0: z + z^2 up to 1 */
static inline double grown_upper(double z)
{
    double e = hs_exp(z < 700 ? z : 700);
    return z < 1 ? z + z * z : z < 700 ? e * (1 + 1e-15) : HUGE_VAL;
}

/* in units of e^top, from the phases in tmp: value, slope, inner, rounding, sum |terms| */
HS_CLONES static void hyperbola_sums(const hs_job *J, double s, double top, double *out)
{
    const double *restrict nx = J->nx, *restrict ny = J->ny, *restrict kr = J->kr;
    const double *restrict phase = J->tmp, *restrict ein = J->ein;
    const double *restrict ern = J->ern, *restrict wr = J->wr, *restrict wi = J->wi, *restrict pos = J->pos;
    double sum[5][8] = {{0}}, far = 40 * HS_U * fabs(s), flat = 4 * HS_U * fabs(top);
    double sign = J->add ? -1 : 1, shift = J->add ? 0 : 1;
    int i, j, n = J->n;
    for (j = 0; j < n; j += 8)
        for (i = 0; i < 8; i++) {
            double x = nx[j + i], y = ny[j + i], a = wr[j + i], b = wi[j + i];
            double d = kr[j + i] - s * x - top, f = hs_exp(d), c, t;
            double re, im, size;
            hs_cis(phase[j + i], &c, &t);
            re = f * (c * a - t * b);
            im = f * (c * b + t * a);
            size = f * sqrt(a * a + b * b);
            sum[0][i] += re;
            sum[1][i] += sign * (re * (x - shift) - im * y); /* z = a - 1 or -a */
            sum[2][i] += size * grown_upper(ein[j + i]) * (1 + grown_upper(ern[j + i]));
            sum[3][i] += size * grown_upper(ern[j + i] + far * pos[j + i] + flat + 2 * HS_U * fabs(d));
            sum[4][i] += size;
        }
    for (i = 0; i < 5; i++)
        for (out[i] = 0, j = 0; j < 8; j++) out[i] += sum[i][j];
}

/* s of eps, and eps of s. */
static double turned(const hs_job *J, double x) { return J->add ? -x : x; }

static double log_factor(const hs_job *J, double s) { return J->add ? 0 : s; }

/* The curve at eps from the stored nodes; the sums have n/8 + 3 of the n + 8 roundings claimed, the ends the others.
 * Beyond the wall delta is exact: no loss of ADD lies above -wall, none of REMOVE below wall, and delta = 1 - e^eps at
 * or below the least loss. */
static void assemble(const void *prepared, double eps, hs_value *v)
{
    const hs_job *J = (const hs_job *)prepared;
    double top = -HUGE_VAL, out[5], s = turned(J, eps), sum;
    int n;
    memset(v, 0, sizeof *v);
    if (!(s > J->wall)) {
        if (J->add) v->upper = s < J->wall * (1 + 1e-12) ? 0 : HUGE_VAL;
        else {
            v->value = -expm1(eps);
            v->slope = exp(eps);
            v->upper = J->paired ? HUGE_VAL : 1;
        }
        return;
    }
    for (n = 0; n < J->n; n++) top = fmax(top, J->kr[n] - s * J->nx[n]);
    for (n = 0; n < J->n || n % 8; n++) J->tmp[n] = J->ki[n] - s * J->ny[n];
    if (J->ki_max + fabs(s) * J->ny[J->n - 1] > 7e5) /* beyond hs_cis; the rounding of 2 pi adds u/2 of the phase */
        for (n = 0; n < J->n; n++) J->tmp[n] = remainder(J->tmp[n], 2 * HS_PI);
    hyperbola_sums(J, s, top, out);
    v->value = sum = out[0];
    v->slope = out[1];
    v->log_scale = top + log_factor(J, s);
    v->inner = out[2] * (1 + 1e-6);
    v->rounding =
        /* [theory: hyperbola.rounding] */
        out[3] * (1 + 1e-6) + (J->n + 8) * HS_U * out[4] + 4 * HS_U * (fabs(top) + fabs(s) + 1) * fabs(out[0]);
    /* [theory: hyperbola.tail] */
    v->truncation = exp(hs_hyp_log_tail_upper(J, &J->mid, s, J->h_v) - top) / HS_PI * (1 + 1e-6);
    v->alias_right = exp(hs_hyp_log_norm_upper(J, &J->lo, s) - top) + exp(hs_hyp_log_norm_upper(J, &J->up, s) - top);
    v->alias_right *= 1 / expm1(2 * HS_PI * HS_HYP_BETA / J->h_v) * (1 + 1e-6); /* [theory: hyperbola.trapezoid] */
    v->lower = sum - v->alias_right - v->truncation - v->inner - v->rounding;
    v->upper = sum + v->alias_right + v->truncation + v->inner + v->rounding;
}

int64_t hs_hyperbola_work(int branches) { return 60000 + (int64_t)80000 * branches; }

/* The branches of step i, behind those of the steps before it; its part of the wall. */
static int job_step(hs_job *J, const hs_run *run, int i)
{
    const hs_pair *pair = J->pair && J->pair[i].branches > 0 ? &J->pair[i] : NULL;
    int r, n = pair ? pair->branches : 1;
    double wall = -HUGE_VAL;
    J->from[i] = J->branches;
    if (pair && (J->add || !(pair->q_err < 1e3 && pair->w_err < 1e6))) return HS_BAD_ARGUMENT;
    if (J->branches + n > HS_HYP_MAX_STEPS) return HS_BAD_ARGUMENT;
    for (r = 0; r < n; r++) {
        hs_hyp_branch *out = &J->branch[J->branches++];
        *out = (hs_hyp_branch){.step = i, .w = 1, .q = run->q[i], .up = run->m[i]};
        if (pair)
            *out = (hs_hyp_branch){i, pair->w[r], pair->q[r], pair->up[r], pair->down[r], pair->q_err, pair->w_err};
        if (!(out->up > 1e-6 && out->up < 100 && out->q > 1e-300 && out->q < 1 && out->w > 0 && out->w <= 1))
            return HS_BAD_ARGUMENT;
        if (pair && !(out->q <= 0.5)) return HS_BAD_ARGUMENT;
        if (out->down != 0 && !(out->down > 1e-6 && out->down <= out->up)) return HS_BAD_ARGUMENT;
        wall = fmax(wall, out->down > 0 ? 0 : log1p(-out->q)); /* [theory: hyperbola.two-sided] */
        J->paired += pair != NULL;
    }
    J->from[i + 1] = J->branches;
    J->wall += J->k[i] * wall;
    return HS_OK;
}

static int job_init(hs_job *J, const hs_run *run, double *work, int64_t n_work)
{
    const double *k = run->k;
    double **arrays[HS_HYP_ARRAYS];
    int i, b = run->b;
    if (!(b >= 1 && b <= HS_HYP_MAX_STEPS)) return HS_BAD_ARGUMENT;
    J->b = b;
    J->m = run->m;
    J->q = run->q;
    J->k = k;
    J->pair = run->pair;
    J->add = run->add != 0;
    J->ktot = J->wall = 0;
    J->t = 0;
    J->n = J->branches = J->paired = 0;
    for (i = 0; i < b; i++) {
        if (!(k[i] >= 1 && k[i] < 1e15 && k[i] == floor(k[i])) || job_step(J, run, i)) return HS_BAD_ARGUMENT;
        J->ktot += k[i];
        J->coarse[i].a_lo = 1;
        J->coarse[i].a_hi = -1;
    }
    n_work -= 4 * HS_HYP_TMP + HS_HYP_ARRAYS * HS_HYP_MAX_NODES + 4 * HS_COARSE_MAX * b;
    if (n_work < 0) return HS_SCRATCH;
    J->tmp = work;
    work += 4 * HS_HYP_TMP;
    J->coarse_work = work;
    work += 4 * HS_COARSE_MAX * b;
    arrays[0] = &J->nx;
    arrays[1] = &J->ny;
    arrays[2] = &J->pos;
    arrays[3] = &J->kr;
    arrays[4] = &J->ki;
    arrays[5] = &J->ein;
    arrays[6] = &J->ern;
    arrays[7] = &J->wr;
    arrays[8] = &J->wi;
    for (i = 0; i < HS_HYP_ARRAYS; i++) *arrays[i] = work + i * HS_HYP_MAX_NODES;
    J->mem.p = work + HS_HYP_ARRAYS * HS_HYP_MAX_NODES;
    J->mem.left = n_work;
    return HS_OK;
}

/* contour, bounds, nodes for the present s; log_delta = rough size of the answer, log_tol its relative width */
static int certify(hs_job *J, double log_delta, double log_tol)
{
    double floor_, norm, cancel;
    int st;
    if ((st = hs_hyp_place(J))) return st;
    cancel = hs_hyp_tilt(J, J->t).K - (J->add ? -1 : 1) * J->s * J->t - log(J->t) - log1p(J->t) - log_delta;
    J->t_inner = -log_tol + log(J->ktot) + HS_HYP_MARGIN + fmax(0, cancel);
    hs_hyp_plan(J);
    floor_ = log_delta - log_factor(J, J->s) + log_tol - 3;
    if ((st = hs_hyp_march(J, &J->lo, HS_HYP_GAMMA - HS_HYP_BETA, 0, floor_))) return st;
    if ((st = hs_hyp_march(J, &J->up, HS_HYP_GAMMA + HS_HYP_BETA, 0, floor_))) return st;
    norm = hs_log_add(hs_hyp_log_norm_upper(J, &J->lo, J->s), hs_hyp_log_norm_upper(J, &J->up, J->s)) -
           (log_delta - log_factor(J, J->s));
    if (!(norm < 500)) return HS_NO_DECAY;
    J->h_v = 2 * HS_PI * HS_HYP_BETA / (fmax(norm, 0) - log_tol + 3);
    if ((st = hs_hyp_march(J, &J->mid, HS_HYP_GAMMA, 1, floor_))) return st;
    if (!(fabs(J->s) * (fabs(J->a0) + J->A * cosh(fmax(J->lo.v_end, fmax(J->up.v_end, J->mid.v_end)))) < 1e8))
        return HS_NO_DECAY;
    return hyperbola_nodes(J);
}

int hs_hyperbola_delta(const hs_run *run, double eps, double log_tol, double *work, int64_t n_work, hs_point *out)
{
    hs_job J_, *J = &J_;
    hs_value v;
    hs_cgf at;
    double log_est;
    hs_arena mem;
    int round, st = job_init(J, run, work, n_work);
    if (st) return st;
    J->s = run->add ? -eps : eps;
    if (!(J->s > J->wall && fabs(eps) < 1e6 && log_tol < -0.5 && log_tol > -60)) return HS_BAD_ARGUMENT;
    if ((st = hs_hyp_saddle(J, 1, 0))) return st;
    at = hs_hyp_tilt(J, J->t);
    log_est = at.K - (run->add ? -1 : 1) * J->s * J->t - log(J->t) - log1p(J->t);
    log_est -= 0.5 * log(2 * HS_PI * hs_saddle_bend(at.K2, J->t));
    mem = J->mem;
    for (round = 0; round < 2; round++) {
        J->mem = mem;
        if ((st = certify(J, log_est, log_tol))) return st;
        assemble(J, eps, &v);
        if (v.upper - v.value <= exp(log_tol) * v.value || !(v.value > 0)) break;
        log_est = log(v.value) + v.log_scale;
    }
    hs_value_point(&v, J->n, out);
    if (!(out->lower > 0)) return HS_TOO_WIDE;
    return out->upper - out->lower <= 2 * exp(log_tol) * out->estimate ? HS_OK : HS_LOOSE;
}

/* eps of "one step jumps": sum k_i delta_i(eps) = delta, closed forms where one side does not move, else about that;
 * REMOVE only, a starting point */
static double one_jump(const hs_job *J, double log_delta)
{
    double lo = 0, hi = 700, eps = 1;
    int i, it;
    for (it = 0; it < 40; it++) {
        double d = 0;
        for (i = 0; i < J->branches; i++) {
            const hs_hyp_branch *at = &J->branch[i];
            double m = at->up, g = log(expm1(eps) / at->q + (at->down > 0 ? 1e-300 : 1)) / m, r2 = HS_SQRT_HALF;
            d += J->k[at->step] * at->w * at->q * 0.5 *
                 (erfc((g - 0.5 * m) * r2) - exp(g * m) * erfc((g + 0.5 * m) * r2));
        }
        if (d > exp(log_delta)) lo = eps;
        else hi = eps;
        eps = it < 10 ? sqrt(fmax(lo, 1e-12) * hi) : 0.5 * (lo + hi);
        if (hi - lo < 0.02 * lo) break;
    }
    return eps;
}

int hs_hyperbola_eps(const hs_run *run, double log_delta, double log_tol, double *work, int64_t n_work,
                     hs_crossing *out)
{
    hs_job J_, *J = &J_;
    hs_curve curve = {
        .at = assemble, .self = J, .log_delta = log_delta, .reach = HUGE_VAL, .step = 1e6, .bend = HUGE_VAL};
    hs_value v;
    hs_arena mem;
    double left;
    int round, st = job_init(J, run, work, n_work);
    if (st) return st;
    if (!(log_delta < -1e-6 && log_delta > -1e4 && log_tol < -0.5 && log_tol > -60)) return HS_BAD_ARGUMENT;
    mem = J->mem;
    for (round = 0; round < 4; round++) {
        J->mem = mem;
        if ((st = hs_hyp_saddle(J, round > 0, log_delta))) return st;
        if (round == 0 && !run->add && hs_hyp_tilt(J, J->t).K < 0.15 * J->s * J->t) {
            J->s = one_jump(J, log_delta);
            if ((st = hs_hyp_saddle(J, 1, log_delta))) return st;
        }
        if (!(J->s > J->wall)) return HS_NO_SADDLE;
        if ((st = certify(J, log_delta, log_tol))) return st;
        curve.start = turned(J, J->s);
        if ((st = hs_root_estimate(&curve, &out->estimate, &left, &v))) return st;
        J->s = turned(J, out->estimate);
        if (v.upper - v.value - v.rounding <= exp(log_tol) * v.value || /* more nodes do not lower rounding */
            fabs(out->estimate - curve.start) * J->t < 0.3)
            break;
    }
    if (!(v.upper - v.value < 0.5 * v.value)) return HS_TOO_WIDE;
    hs_value_point(&v, J->n, &out->delta);
    if (hs_root_bracket(&curve, out->estimate, left, &v, &out->lower, &out->upper) != 3) return HS_NO_BRACKET;
    return v.upper - v.value <= exp(log_tol) * v.value ? HS_OK : HS_LOOSE;
}
