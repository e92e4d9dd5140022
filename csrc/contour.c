/* contour.c - certified delta(eps) and eps(delta) of a composition, by the trapezoid rule on the vertical line Re z = c.
 *
 * Symbols. K(z) = sum_i k_i log M_i(z), c near the saddle of K(z) - eps z - log z - log(1+z), sd^2 = K''(c), dy the outer mesh,
 *   P = 2 pi/dy, f_n = e^{K(c+iny dy)-K(c)-i eps n dy}/(z_n(1+z_n)), lf(t) = t log t - (1+t) log1p t.
 *
 * Formula. T = (dy/2pi) e^{K(c)-c eps} [f_0 + 2 sum_{n>=1} Re f_n] = S + delta(eps) + aliases, by Poisson summation of
 *   e^{cx} delta(eps+x), exact for every law. The alias at eps - nP is split by put-call parity: with s the tilt used to bound it,
 *   S = 0 (s > 0), 1/(e^{cP}-1) (-1 < s < 0), 1/(e^{cP}-1) - e^eps/(e^{(c+1)P}-1) (s < -1).
 *
 * Error terms, all relative to e^{K(c)-c eps}, each in one field of hs_point:
 *   aliasing    right: e^{K(c+d)-K(c)-d eps+lf(c+d)-dP}/(1-e^{-dP}); left: the same at s = c - d' with lf(s), 0 or lf(-1-s).
 *               [Chernoff with optimal constants: (1-e^-x)_+ <= e^{lf(t)+tx}, min(1,e^-x) <= e^{sx}, (e^-x-1)_+ <= e^{lf(-1-s)+sx}.]
 *               The right one and, unless -1 < s < 0, the left one are positive: they only lower the lower end.
 *   truncation  (1/pi) e^{-B}/Y (1 + dy/Y), B a lower bound of -sum k log|phi| beyond Y: see tail_log_upper.
 *   inner       quadrature of M (transform.c), through each node and through K(c).
 *   rounding    of K(c), of every node, of the sum.
 *   The line is symmetric: only n >= 0 is evaluated. Plain Gaussian steps (q = 1) have M in closed form.
 *
 * What it does not do: atoms; c <= 0; laws whose |phi| does not fall within HS_OUTER_MAX nodes (HS_TOO_MANY_NODES).
 * Cost: O(b n_inner N). Steps are cut into chunks of fixed number, summed in order: results do not depend on the threads.
 */
#include "contour.h"
#include "twosided.h"

typedef struct { double K, K1, K2; } cgf;

/* Whether step j is a two-sided pair (in the direction asked) instead of (m, q). */
static int two(const hs_contour *C, long j) { return C->pair && C->pair[j].branches > 0; }

static double lf(double t) { return t > 0 ? t * log(t) - (1 + t) * log1p(t) : 0; }

/* K, K', K'' at tilt t (any accuracy). */
static cgf total_cgf(const hs_contour *C, double t)
{
    double a = C->add ? -t : 1 + t, part[HS_CHUNKS][3];
    cgf out = {0, 0, 0};
    int chunk, i;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(static) if (C->n_threads > 1)
#endif
    for (chunk = 0; chunk < C->chunks; chunk++) {
        long j, lo = (long)((double)C->b * chunk / C->chunks), hi = (long)((double)C->b * (chunk + 1) / C->chunks);
        part[chunk][0] = part[chunk][1] = part[chunk][2] = 0;
        for (j = lo; j < hi; j++) {
            double o[3];
            if (two(C, j)) { hs_two_cgf_estimate(&C->pair[j], t, o); if (C->add) o[1] = -o[1]; } /* pairs are turned already */
            else hs_cgf_estimate(C->m[j], C->q[j], a, o);
            for (int r = 0; r < 3; r++) part[chunk][r] += C->k[j] * o[r];
        }
    }
    for (i = 0; i < C->chunks; i++) { out.K += part[i][0]; out.K1 += part[i][1]; out.K2 += part[i][2]; }
    if (C->add) out.K1 = -out.K1;
    return out;
}

/* Saddle t: root of G(t) = K'(t) - eps - 1/t - 1/(1+t), or with eps eliminated (eps(t) = K' - 1/t - 1/(1+t)) of
 * log delta_est(t) = log delta. Newton in log t inside a bracket; t only places the contour. */
static int find_saddle(hs_contour *C, int have_eps, double log_delta)
{
    double lo = 0, hi = 0, t = C->t, G, F2, step;
    cgf k;
    int it;
    for (it = 0; it < 80; it++) {
        k = total_cgf(C, t);
        F2 = k.K2 + 1 / (t * t) + 1 / ((1 + t) * (1 + t));
        if (!(F2 > 0 && F2 < 1e300)) { hi = t; t = lo > 0 ? sqrt(lo * hi) : 0.1 * t; continue; }
        C->log_est = k.K - log(t) - log1p(t) - 0.5 * log(2 * HS_PI * F2);
        if (have_eps) {
            double want = C->eps + 1 / t + 1 / (1 + t);
            C->log_est -= C->eps * t;
            G = k.K1 - want;
            step = -G / (t * F2);
            if (k.K1 > 0 && want > 0) step = -log(k.K1 / want) / (t * (k.K2 / k.K1 + (F2 - k.K2) / want));
            if (fabs(G) < 0.1 * sqrt(F2)) break;
        } else {
            C->eps = k.K1 - 1 / t - 1 / (1 + t);
            C->log_est -= C->eps * t;
            G = log_delta - C->log_est;              /* increases with t, as log_est decreases */
            step = -G / (t * t * F2);
            if (fabs(G) < 0.03) break;
        }
        if (G < 0) lo = t; else hi = t;
        step = fmax(-1.2, fmin(1.2, step));
        step = t * exp(step);
        if ((lo > 0 && step <= lo) || (hi > 0 && step >= hi) || !(step > 0))
            step = lo > 0 && hi > 0 ? sqrt(lo * hi) : lo > 0 ? 2 * lo : 0.5 * hi;
        t = step;
        if (!(t > 1e-12 && t < 1e12)) return HS_NO_SADDLE;
    }
    if (it == 80) return HS_NO_SADDLE;
    C->t = t; C->sd = sqrt(k.K2);
    return HS_OK;
}

/* (K(s) - s eps + payoff + T0 - log delta_est)/d at s = c +- d: a period for which that side's aliases are small enough. */
static double period(const hs_contour *C, int left, double d, double *newton)
{
    double s = left ? C->c - d : C->c + d, num;
    cgf k = total_cgf(C, s);
    num = k.K - s * C->eps + (s > 0 ? lf(s) : s < -1 ? lf(-1 - s) : 0) - C->log_est + C->T0;
    *newton = d - (d * (left ? C->eps - k.K1 : k.K1 - C->eps) - num) / (d * fmax(k.K2, 1e-300));
    return num > 0 && num < 1e300 ? num / d : HUGE_VAL;
}

/* P = the larger of the two sides' least periods. num is convex in d, so num/d is unimodal: Newton while it gains, and where it
 * does not (K grows like e^{d^2} once rare jumps take over), steps by a factor. Any d gives a valid P. */
static void place(hs_contour *C)
{
    int left, it;
    C->P = 0;
    for (left = 0; left < 2; left++) {
        double d = 7 / C->sd, next, best = period(C, left, d, &next), factor = 0.5;
        for (it = 0; it < 14; it++) {
            double at, trial, newton;
            trial = it < 2 && best < HUGE_VAL ? fmax(0.4 * d, fmin(2.5 * d, next)) : d * factor;
            if (fabs(trial - d) < 0.05 * d) break;
            at = period(C, left, trial, &newton);
            if (at < best || !(best < HUGE_VAL)) {
                if (at > 0.97 * best && it > 0) it = 14;
                best = at; d = trial; next = newton;
            } else if (it >= 2) {
                if (factor < 0.6) factor = 1.6; else if (factor > 1.5) factor = 0.8; else break;
            }
        }
        *(left ? &C->s_left : &C->s_right) = left ? C->c - d : C->c + d;
        C->P = fmax(C->P, best);
    }
    C->dy = 2 * HS_PI / C->P;
}

/* One step on its inner grid: K at c and at both alias tilts, then every node and the tail points, added to the chunk's sums.
 * A plain Gaussian step is exact: log phi(y) = -m^2 y^2/2 + i m^2 (c + 1/2) y (REMOVE and ADD alike). */
static void visit_gaussian(const hs_contour *C, double m, double k, hs_sums *S)
{
    double v = m * m * k, z[3] = {C->c, C->s_right, C->s_left};
    long n;
    int i;
    for (i = 0; i < 3; i++) { S->K[i] += 0.5 * v * z[i] * (1 + z[i]); S->err[i] += 6 * HS_U * 0.5 * v * fabs(z[i] * (1 + z[i])); }
    for (n = 0; n <= C->N; n++) {
        double y = (double)n * C->dy;
        S->re[n] -= 0.5 * v * y * y; S->im[n] += v * (C->c + 0.5) * y;
        S->round[n] += 6 * HS_U * v * y * (0.5 * y + fabs(C->c + 0.5));
    }
    for (i = 0; i < C->doublings; i++) {
        double y = C->N * C->dy * ldexp(1, i);
        S->gauss[i] += 0.5 * v * y * y;
    }
}

/* k log phi of a block of nodes from Z = phi - 1, with the errors of phi divided by |phi|. For |Z|^2 small the modulus comes from
 * log1p(2 Re Z + |Z|^2) (as log x plus its own rounding (X - (x-1))/x), else from (1 + Re Z)^2 + (Im Z)^2. */
HS_CLONES static void add_nodes(const hs_contour *C, double k, int mirrored, double c1, double c2, double quad, long n0, int count,
                                const double *restrict zr, const double *restrict zi, hs_sums *S)
{
    double *restrict re = S->re + n0, *restrict im = S->im + n0, *restrict round = S->round + n0, *restrict node = S->node + n0;
    double sign = mirrored ? -k : k, dy = C->dy;
    int n, first = (int)n0;
    for (n = 0; n < count; n++) {
        double x = zr[n], w = zi[n], X = 2 * x + x * x + w * w, one = 1 + X, mod2 = (1 + x) * (1 + x) + w * w, near = X > -0.75 && X < 1 ? 1 : 0;
        double lr = 0.5 * (hs_log(near != 0 ? one : mod2) + (near != 0 ? (X - (one - 1)) / one : 0)), li = hs_atan2(w, 1 + x);
        double y = (double)(first + n) * dy, inv = 1 / sqrt(mod2), dz = y * (c1 + (double)n * c2) * inv, qz = quad * inv, size = sqrt(x * x + w * w);
        re[n] += k * lr; im[n] += sign * li;
        size = size < 3 ? size : 3;
        li = li < 0 ? -li : li; lr = lr < 0 ? -lr : lr;
        round[n] += dz < 0.5 ? k * (dz / (1 - dz) + 12 * HS_U * size) + 4 * HS_U * k * (lr + li) : HUGE_VAL;
        node[n] += qz < 0.5 ? k * qz / (1 - qz) : HUGE_VAL;
    }
}

/* The same for a two-sided pair (twosided.c). */
static int visit_two(const hs_contour *C, long j, hs_sums *S, double *work)
{
    const hs_pair *pair = &C->pair[j];
    double k = C->k[j], tilt[3] = {C->c, C->s_right, C->s_left}, est[3], o[3], h[HS_BRANCHES], R, ends, q0, c1, c2, level[4];
    double zr[HS_BLOCK], zi[HS_BLOCK], *g, *L;
    hs_two T;
    hs_moments mo[3];
    long n0;
    int i, r, st, last, count;
    R = C->T0 + log(C->ktot) + 6;
    for (i = 0; i < 3; i++) { hs_two_cgf_estimate(pair, tilt[i], o); est[i] = o[0]; }
    for (r = 0; r < pair->branches; r++) {
        h[r] = hs_two_choose_h(pair, r, tilt[0], C->y_grid, R, est[0]);
        for (i = 1; i < 3; i++) h[r] = fmin(h[r], hs_two_choose_h(pair, r, tilt[i], 0, 5 + log(C->ktot), est[i]));
        if (!(h[r] > 0)) return HS_TOO_MANY_NODES;
    }
    R = sqrt(2 * (R + 3)) + 1;
    if ((st = hs_two_build(&T, pair, h, fmin(fmin(tilt[0], tilt[1]), tilt[2]), fmax(fmax(tilt[0], tilt[1]), tilt[2]), R, work))) return st;
    for (i = 0; i < 3; i++) {
        double out;
        for (r = 0; r < pair->branches; r++) T.strip[r] = -1;
        hs_two_moments(&T, tilt[i], est[i], &mo[i]);
        hs_two_weights(&T, tilt[i], mo[i].log_m, &c1, &c2);
        out = hs_two_quadrature_upper(&T, tilt[i], 0) + hs_two_ends_upper(&T, tilt[i], mo[i].log_m);
        if (est[i] <= 3) out += hs_two_dropped_upper(&T, tilt[i]) / exp(fmax(mo[i].log_m, -1));
        if (i == 0 && !(out < 0.1)) return HS_TOO_WIDE;
        S->K[i] += k * mo[i].log_m; S->err[i] += k * mo[i].err + HS_U * 2 * fabs(k * mo[i].log_m); S->inner[i] += i ? k * log1p(out) : 1.1 * k * out;
    }
    hs_two_weights(&T, tilt[0], mo[0].log_m, &c1, &c2);
    ends = hs_two_ends_upper(&T, tilt[0], mo[0].log_m);
    q0 = hs_two_quadrature_upper(&T, tilt[0], 0) + 2 * ends;
    for (r = 0; r < pair->branches; r++) T.strip[r] = -1;
    for (i = 0; i < 4; i++) level[i] = q0 + hs_two_quadrature_upper(&T, tilt[0], C->y_grid * (4 - i) / 4);
    for (n0 = 0; n0 <= C->N; n0 += count) { /* blocks that stay within one quarter of the range */
        double quad = level[i = (int)fmax(0, fmin(3, floor(4 - 4 * (double)(n0 + 1) * C->dy / C->y_grid)))];
        count = (int)fmax(1, fmin(fmin(HS_BLOCK, C->N - n0 + 1), floor(C->y_grid * (4 - i) / 4 / C->dy) - (double)n0));
        hs_grid_nodes(&T.G, C->dy, n0, count, zr, zi);
        add_nodes(C, k, 0, c1, c2, quad, n0, count, zr, zi, S);
    }
    for (i = 0; i < C->doublings; i++) {
        double y = C->N * C->dy * ldexp(1, i), x, w, err, a2;
        if (i == 0) hs_grid_phase(&T.G, y, &x, &w); else hs_grid_phase_double(&T.G, &x, &w);
        err = y * (c1 + 64.0 * (1 << (i < 20 ? i : 20)) * c2) + q0 + hs_two_quadrature_upper(&T, tilt[0], y);
        a2 = -(2 * x + x * x + w * w);
        a2 = 2 * a2 / (1 + sqrt(fmax(0, 1 - a2))) - 2 * err;
        S->metric[i] += k * fmax(a2, 0);
        S->far[i] += k * log(fmin(1, hs_two_far_upper(&T, tilt[0], y) + 2 * ends));
    }
    g = T.G.g; L = T.G.l;
    for (r = 0, o[0] = 0; r < pair->branches; r++) {
        last = T.first[r] + T.nodes[r] - 1;
        o[1] = fmax(fabs(L[T.first[r]]), fabs(L[last])) + fmax(pair->up[r], pair->down[r]) * fmax(fabs(g[T.first[r]]), fabs(g[last]));
        o[0] = fmax(o[0], o[1] * o[1]);
    }
    S->var += k * (mo[0].var * (1 + 1e-9) + 10 * (o[0] + 16) * q0);
    S->k_smooth += k;
    return HS_OK;
}

static int visit(const hs_contour *C, long j, hs_sums *S, double *work)
{
    double m = C->m[j], q = C->q[j], k = C->k[j], tilt[3], est[3], o[3], h, lo, hi, R, ends, q0, c1, c2, level[4], zr[HS_BLOCK], zi[HS_BLOCK];
    hs_grid G;
    hs_moments mo[3];
    long n0;
    int i, st;
    if (two(C, j)) return visit_two(C, j, S, work);
    if (q == 1) { visit_gaussian(C, m, k, S); return HS_OK; }
    tilt[0] = C->c; tilt[1] = C->s_right; tilt[2] = C->s_left;
    for (i = 0; i < 3; i++) { tilt[i] = C->add ? -tilt[i] : 1 + tilt[i]; hs_cgf_estimate(m, q, tilt[i], o); est[i] = o[0]; }
    R = C->T0 + log(C->ktot) + 6;
    h = hs_grid_choose_h(m, q, tilt[0], C->y_grid, R, est[0]);
    for (i = 1; i < 3; i++) h = fmin(h, hs_grid_choose_h(m, q, tilt[i], 0, 5 + log(C->ktot), est[i])); /* K there to a nat */
    if (!(h > 0)) return HS_TOO_MANY_NODES;
    R = sqrt(2 * (R + 3)) + 1; /* the ends of the rectangle carry e^{d^2/2} p, d <= 6 */
    lo = fmin(fmin(tilt[0], tilt[1]), tilt[2]); hi = fmax(fmax(tilt[0], tilt[1]), tilt[2]);
    if ((st = hs_grid_build(&G, m, q, h, -R - (lo < 0 ? log1p(-lo * m * q) / m : 0), fmax(m, hi * m) + R, work))) return st;
    for (i = 0; i < 3; i++) {
        double out;
        G.strip = -1; /* each tilt has its own best strip */
        hs_grid_moments(&G, tilt[i], est[i], &mo[i]);
        hs_grid_weights(&G, tilt[i], mo[i].log_m, &c1, &c2);
        out = hs_grid_quadrature_upper(&G, tilt[i], 0) + hs_grid_ends_upper(&G, tilt[i], mo[i].log_m);
        if (est[i] <= 3) out += hs_grid_dropped_upper(&G, tilt[i]) / exp(fmax(mo[i].log_m, -1));
        if (i == 0 && !(out < 0.1)) return HS_TOO_WIDE;
        S->K[i] += k * mo[i].log_m; S->err[i] += k * mo[i].err + HS_U * 2 * fabs(k * mo[i].log_m); S->inner[i] += i ? k * log1p(out) : 1.1 * k * out; /* at the aliases only the upper end is used */
    }
    hs_grid_weights(&G, tilt[0], mo[0].log_m, &c1, &c2);
    ends = hs_grid_ends_upper(&G, tilt[0], mo[0].log_m);
    q0 = hs_grid_quadrature_upper(&G, tilt[0], 0) + 2 * ends;
    G.strip = -1;
    for (i = 0; i < 4; i++) level[i] = q0 + hs_grid_quadrature_upper(&G, tilt[0], C->y_grid * (4 - i) / 4); /* all y up to that */
    for (n0 = 0; n0 <= C->N; n0 += HS_BLOCK) {
        int count = (int)(C->N - n0 < HS_BLOCK ? C->N - n0 + 1 : HS_BLOCK);
        double quad = level[(int)fmax(0, fmin(3, floor(4 - 4 * (double)(n0 + count) * C->dy / C->y_grid)))];
        hs_grid_nodes(&G, C->dy, n0, count, zr, zi);
        add_nodes(C, k, C->add, c1, c2, quad, n0, count, zr, zi, S);
    }
    for (i = 0; i < C->doublings; i++) {
        double y = C->N * C->dy * ldexp(1, i), x, w, err, a2;
        if (i == 0) hs_grid_phase(&G, y, &x, &w); else hs_grid_phase_double(&G, &x, &w);
        err = y * (c1 + 64.0 * (1 << (i < 20 ? i : 20)) * c2) + q0 + hs_grid_quadrature_upper(&G, tilt[0], y);
        a2 = -(2 * x + x * x + w * w); /* 1 - |phi|^2; a^2 = 2 (1 - |phi|) */
        a2 = 2 * a2 / (1 + sqrt(fmax(0, 1 - a2))) - 2 * err;
        S->metric[i] += k * fmax(a2, 0);
        if (i == 0 || y * sqrt(mo[0].var) * 2 * HS_PI > 3 * h) /* before that Psi says nothing; 0 is always a bound */
            S->far[i] += k * log(fmin(1, hs_grid_far_upper(&G, tilt[0], y) + 2 * ends));
    }
    S->var += k * (mo[0].var * (1 + 1e-9) + 10 * (G.l[0] * G.l[0] + 16 + G.m * G.m * G.hi * G.hi) * q0);
    S->k_smooth += k;
    return HS_OK;
}

static int visit_all(hs_contour *C, double *work, hs_sums *S)
{
    int chunk, i, st[HS_CHUNKS];
    long n, stride = HS_TWO_WORK + HS_SUMS_WORK(C->N);
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->n_threads) schedule(dynamic, 1) if (C->n_threads > 1)
#endif
    for (chunk = 0; chunk < C->chunks; chunk++) {
        long j, lo = (long)((double)C->b * chunk / C->chunks), hi = (long)((double)C->b * (chunk + 1) / C->chunks);
        hs_sums *s = &S[chunk];
        memset(s, 0, sizeof *s);
        s->re = work + chunk * stride; s->im = s->re + C->N + 1; s->round = s->im + C->N + 1; s->node = s->round + C->N + 1;
        memset(s->re, 0, sizeof(double) * 4 * (size_t)(C->N + 1));
        st[chunk] = HS_OK;
        for (j = lo; j < hi && st[chunk] == HS_OK; j++) st[chunk] = visit(C, j, s, work + chunk * stride + HS_SUMS_WORK(C->N));
    }
    for (chunk = 0; chunk < C->chunks; chunk++) {
        const hs_sums *s = &S[chunk];
        if (st[chunk]) return st[chunk];
        if (chunk == 0) continue;
        for (i = 0; i < 3; i++) { S->K[i] += s->K[i]; S->err[i] += s->err[i]; S->inner[i] += s->inner[i]; }
        for (n = 0; n <= C->N; n++) {
            S->re[n] += s->re[n]; S->im[n] += s->im[n]; S->round[n] += s->round[n]; S->node[n] += s->node[n];
        }
        for (i = 0; i < HS_DOUBLINGS; i++) { S->metric[i] += s->metric[i]; S->far[i] += s->far[i]; S->gauss[i] += s->gauss[i]; }
        S->var += s->var; S->k_smooth += s->k_smooth;
    }
    return HS_OK;
}

/* Log of (1/pi) e^{-B}/Y (1 + dy/Y), Y = N dy the last node (which the sum keeps; counting it twice is on the safe side).
 * A(y) = (sum k a_i^2)^{1/2}, a_i^2 = 2 (1-|phi_i|), is a metric: A(y+x) <= A(y) + A(x), A(x) <= |x| sd. So on [Y, 2Y]
 * A >= (A(Y) + A(2Y) - Y sd)/2, and -sum k log|phi| >= -k log(1 - A^2/2k) by convexity (k the number of steps). The last point
 * is covered to infinity by Psi (transform.c). Gaussian steps add their exact part at the left end. */
static double tail_log_upper(const hs_contour *C, const hs_sums *S)
{
    double Y = C->N * C->dy, sd = sqrt(S->var), best = -HUGE_VAL; /* best: of the lower bounds B */
    int i, stop;
    for (stop = 0; stop < C->doublings; stop++) { /* Psi from point `stop` on, the metric before it */
        double y = Y, last = -S->far[stop] + S->gauss[stop], least = last;
        for (i = 0; i < stop; i++, y *= 2) {
            double a = 0.5 * (sqrt(S->metric[i]) + sqrt(S->metric[i + 1]) - y * sd * (1 + 1e-12)), x = 0;
            if (a > 0) x = a * a / (2 * S->k_smooth) < 1 ? -S->k_smooth * log1p(-a * a / (2 * S->k_smooth)) : 0;
            least = fmin(least, x + S->gauss[i]);
        }
        best = fmax(best, least);
    }
    return -best - log(HS_PI * Y) + log1p(C->dy / Y) + 1e-9;
}

/* Number of nodes and frequency range: the decay of |phi| is sampled at geometric y on a middling grid, for at most 48 steps;
 * and whether Psi alone will cover the tail, so that the doublings are not needed. */
static int plan_nodes(hs_contour *C, double *work)
{
    double target = C->T0 + 4, y0 = sqrt(2 * target) / C->sd, a = C->add ? -C->c : 1 + C->c, sum[HS_PROBES] = {0}, far = 0, total = 0;
    double y = y0, prev_y = 0, prev = 0;
    long stride = C->b > 48 ? C->b / 48 : 1, j;
    int it, probes = HS_PROBES, near = 0;
    for (j = 0; j < C->b; j += stride) {
        double m = C->m[j], q = C->q[j], o[3], zr, zi, c1, c2;
        hs_grid G;
        hs_two T;
        total += C->k[j];
        if (two(C, j)) {
            double h[HS_BRANCHES];
            for (it = 0; it < HS_BRANCHES; it++) h[it] = 0.15 / fmax(fmax(C->pair[j].up[it], C->pair[j].down[it]), 1);
            hs_two_cgf_estimate(&C->pair[j], C->c, o);
            if (hs_two_build(&T, &C->pair[j], h, C->c, C->c, 7, work)) return HS_TOO_MANY_NODES;
            hs_two_weights(&T, C->c, o[0], &c1, &c2);
            G = T.G; q = 0;
        } else if (q < 1) {
            hs_cgf_estimate(m, q, a, o);
            if (hs_grid_build(&G, m, q, 0.15 / fmax(m, 1), -7 - (a < 0 ? log1p(-a * m * q) / m : 0), fmax(a * m, 0) + 7, work))
                return HS_TOO_MANY_NODES;
            hs_grid_weights(&G, a, o[0], &c1, &c2);
        }
        for (it = 0, y = y0; it < probes; it++, y *= 1.35) {
            if (q < 1) hs_grid_phase(&G, y, &zr, &zi);
            sum[it] += q == 1 ? -0.5 * C->k[j] * m * m * y * y : 0.5 * C->k[j] * log(fmax((1 + zr) * (1 + zr) + zi * zi, 1e-300));
            if (C->b == 1 && sum[it] - 2 * log(hypot(C->c, y) / C->c) < -target) probes = it + 1;
        }
        if (q < 1 && C->b == 1) far = C->k[j] * log(two(C, j) ? hs_two_far_upper(&T, C->c, y / 1.35) : hs_grid_far_upper(&G, a, y / 1.35));
    }
    for (it = 0, y = y0; it < probes; it++, y *= 1.35) {
        double at = sum[it] * C->ktot / total - 2 * log(hypot(C->c, y) / C->c);
        if (at < -target) {
            if (it > 0) {
                double power = fmax(0.5, log(at / prev) / log(1.35)), whole = y;
                y = prev_y + (y - prev_y) * fmin(1, (target + prev) / (prev - at) + 0.05);
                if (far < -1) { y *= pow(fmax(1, fmin(2, sum[it] / far)), 1 / power); near = far * pow(y / whole, power) < -(C->T0 - 2); }
            } else near = far < -(C->T0 - 2);
            break;
        }
        prev_y = y; prev = at;
    }
    if (it == HS_PROBES || !(y / C->dy < fmin(C->n_max, HS_OUTER_MAX - 8))) return HS_TOO_MANY_NODES;
    C->N = (long)(1.02 * y / C->dy) + 3;
    C->y_grid = (double)(C->N + 2) * C->dy;
    C->doublings = near ? 1 : (int)fmax(3, fmin(HS_DOUBLINGS, 3 + ceil(log2(3 * sqrt(C->ktot) / 8))));
    return HS_OK;
}

/* The values at the nodes as coefficients: f_n and z_n f_n at C->eps, weighted 1, 2, 2, ...; and the error sums, with |eps| taken
 * one unit of reach larger, so that every eps' with |eps' - eps| <= C->reach shares them. */
static void freeze(hs_contour *C, hs_sums *S)
{
    double abs_sum = 0, inner = 0, round = 0, c = C->c, top = fabs(C->eps) + C->reach;
    long n;
    for (n = 0; n <= C->N; n++) {
        double y = (double)n * C->dy, ph = S->im[n] - C->eps * y, mag = exp(S->re[n]) * (n ? 2 : 1), co = cos(ph), si = sin(ph);
        double dr = c * (1 + c) - y * y, di = y * (1 + 2 * c), den = dr * dr + di * di, a = mag / sqrt(den), node = S->node[n];
        double r = S->round[n] + 2 * HS_U * (fabs(S->re[n]) + fabs(S->im[n]) + top * y) + 12 * HS_U * C->reach * y;
        double grow = r < 1e-3 ? r * (1 + r) : expm1(r);
        abs_sum += a;
        round += a * (grow * (node < 1e-3 ? 1 + 2e-3 : 1 + expm1(fmin(node, 1))) + 24 * HS_U);
        inner += a * (node < 1e-3 ? node * (1 + node) : expm1(node));
        S->re[n] = mag * (co * dr + si * di) / den;
        S->im[n] = mag * (si * dr - co * di) / den;
        den = (1 + c) * (1 + c) + y * y;
        S->round[n] = mag * (co * (1 + c) + si * y) / den;
        S->node[n] = mag * (si * (1 + c) - co * y) / den;
    }
    C->round = round + (double)C->N * HS_U * abs_sum; C->inner = inner;
}

/* The sum at eps, |eps - C->eps| <= C->reach: all such eps share the nodes. Value, its log-scale, -d delta/d eps, error terms. */
HS_CLONES static void evaluate(const hs_contour *C, double eps, hs_value *v)
{
    const hs_sums *S = (const hs_sums *)C->S;
    const double *restrict fr = S->re, *restrict fi = S->im, *restrict gr = S->round, *restrict gi = S->node;
    double de = eps - C->eps, unit = C->dy / (2 * HS_PI), sum = 0, der = 0, c = C->c, P = C->P, part[64], slope[64];
    double s = C->s_left, d, A, S1 = 0, S2 = 0, scale, whole, w_in;
    double dy = C->dy;
    long n0;
    v->log_scale = S->K[0] - c * eps;
    for (n0 = 0; n0 <= C->N; n0 += 64) {
        int n, count = C->N - n0 < 63 ? (int)(C->N - n0) + 1 : 64;
        double base = (double)n0;
        for (n = 0; n < count; n++) { /* e^{-i de y} = 1 + re + i im */
            double re, im;
            hs_cis_m1(-de * ((base + (double)n) * dy), &re, &im);
            part[n] = fr[n0 + n] + (fr[n0 + n] * re - fi[n0 + n] * im);
            slope[n] = gr[n0 + n] + (gr[n0 + n] * re - gi[n0 + n] * im);
        }
        for (n = 0; n < count; n++) { sum += part[n]; der += slope[n]; }
    }
    scale = -v->log_scale;
    if (s < 0) S1 = exp(scale) / expm1(c * P);
    if (s < -1) S2 = exp(scale + eps) / expm1((c + 1) * P);
    v->value = unit * sum - (S1 - S2);
    v->slope = unit * der;
    whole = 2 * HS_U * (fabs(S->K[0]) + fabs(c * eps)) + S->err[0]; w_in = S->inner[0];
    v->rounding = unit * C->round + expm1(whole) * fabs(unit * sum) * (1 + w_in)
                + 16 * HS_U * (2 + c * P + P + fabs(eps) + fabs(v->log_scale)) * (S1 + S2);
    v->inner = unit * C->inner + expm1(w_in) * fabs(unit * sum);
    v->truncation = C->tail;
    d = C->s_right - c;
    A = (S->K[1] + S->err[1] + S->inner[1] - S->K[0]) - d * eps + lf(C->s_right) - d * P;
    v->alias_right = exp(A) / -expm1(-d * P) * (1 + 1e-9);
    d = c - s;
    A = (S->K[2] + S->err[2] + S->inner[2] - S->K[0]) + d * eps + (s > 0 ? lf(s) : s < -1 ? lf(-1 - s) : 0) - d * P;
    v->alias_left = exp(A) / -expm1(-d * P) * (1 + 1e-9);
    v->lower = v->value - v->alias_right - v->inner - v->rounding - v->truncation - (s > 0 || s < -1 ? v->alias_left : 0);
    v->upper = v->value + v->inner + v->rounding + v->truncation + (s <= 0 && s >= -1 ? v->alias_left : 0);
}

static void report(const hs_value *v, hs_point *p)
{
    p->log_scale = v->log_scale; p->estimate = v->value;
    p->lower = v->lower > 0 ? v->lower * (1 - 4 * HS_U) : 0; p->upper = v->upper * (1 + 4 * HS_U);
    p->aliasing = v->alias_right + v->alias_left; p->truncation = v->truncation; p->inner = v->inner; p->rounding = v->rounding;
}

/* A start for the saddle: the normal law of variance sum k q^2 (e^{m^2} - 1), kept where rare jumps do not take over. */
static double guess_tilt(const hs_contour *C, double log_delta)
{
    double v = 0, m = 0;
    int i;
    for (i = 0; i < C->b; i++) {
        if (two(C, i)) {
            double o[3];
            hs_two_cgf_estimate(&C->pair[i], 0, o);
            v += C->k[i] * o[2]; m = fmax(m, C->pair[i].up[0] + C->pair[i].down[0]);
            continue;
        }
        v += C->k[i] * C->q[i] * (C->q[i] == 1 ? C->m[i] * C->m[i] : C->q[i] * expm1(fmin(C->m[i] * C->m[i], 50)));
        m = fmax(m, C->m[i]);
    }
    return fmax(1e-3, fmin(sqrt(fmax(0.5, -1.6 * log_delta)) / sqrt(v), 2 + 4 / (m * m)));
}

/* Place the contour for C->eps (or log_delta), visit the steps, bound the tail. Retries once with more nodes. */
static int prepare(hs_contour *C, int have_eps, double log_delta, double *work, long n_work, hs_sums *S)
{
    int st, attempt, i;
    double e;
    C->ktot = 0;
    C->chunks = C->b < 2 * HS_CHUNKS ? 1 : HS_CHUNKS;
    for (i = 0; i < C->b; i++) C->ktot += C->k[i];
    C->t = have_eps ? 1 : guess_tilt(C, log_delta);
    if (n_work < (long)C->chunks * (HS_TWO_WORK + HS_SUMS_WORK(0))) return HS_SCRATCH;
    if ((st = find_saddle(C, have_eps, log_delta))) return st;
    C->c = fmax(C->t, 0.7 / C->sd);
    C->c = frexp(C->c, &i); C->c = ldexp(floor(C->c * 16777216) / 16777216, i);
    C->reach = 0.5 + 4 / C->c; /* the leading-order log delta may be off by nats */
    place(C);
    if (!(C->P > 0 && C->P < 1e12)) return HS_OUT_OF_RANGE;
    if ((st = plan_nodes(C, work))) return st;
    for (attempt = 0; attempt < 6; attempt++) {
        if (C->N > HS_OUTER_MAX) return HS_TOO_MANY_NODES;
        if (n_work < (long)C->chunks * (HS_TWO_WORK + HS_SUMS_WORK(C->N))) return HS_SCRATCH;
        if ((st = visit_all(C, work, S))) return st;
        C->S = S;
        e = tail_log_upper(C, S);
        C->tail = exp(e);
        e += C->T0 - 2 + log(C->c * (1 + C->c) * C->sd); /* the value is about 1/(c (1+c) sd sqrt(2 pi)) */
        if (e < 0 || attempt == 5) break;
        if (C->doublings == 1) { C->doublings = (int)fmax(3, fmin(HS_DOUBLINGS, 3 + ceil(log2(3 * sqrt(C->ktot) / 8)))); continue; }
        C->N = (long)(C->N * fmin(1.5, 1.06 + e / C->T0)) + 2;
        C->y_grid = (double)(C->N + 2) * C->dy;
    }
    freeze(C, S);
    return HS_OK;
}

/* log M(a) <= log_m + err, on a grid made for real tilts; k tells how small the error has to be. */
static int log_m_upper(double m, double q, double a, double k, double *work, double *log_m, double *err)
{
    double o[3], h, R, c1, c2, out, width;
    hs_grid G;
    hs_moments mo;
    int st;
    hs_cgf_estimate(m, q, a, o);
    R = fmax(12 + log(k), 10 - fmin(0, log(fmax(o[0], 1e-300)))); /* small against log M itself */
    h = hs_grid_choose_h(m, q, a, 0, R, o[0]);
    width = sqrt(2 * (R + 3)) + 1;
    if (!(h > 0)) return HS_TOO_MANY_NODES;
    if ((st = hs_grid_build(&G, m, q, h, -width - (a < 0 ? log1p(-a * m * q) / m : 0), fmax(m, a * m) + width, work))) return st;
    hs_grid_moments(&G, a, o[0], &mo);
    hs_grid_weights(&G, a, mo.log_m, &c1, &c2);
    out = hs_grid_quadrature_upper(&G, a, 0) + hs_grid_ends_upper(&G, a, mo.log_m);
    if (o[0] <= 3) out += hs_grid_dropped_upper(&G, a) / exp(fmax(mo.log_m, -1));
    *log_m = mo.log_m; *err = mo.err + log1p(out);
    return fabs(*log_m) + *err < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

/* K(t) + lf(t) with K rounded up and its quadrature error added: for every t > 0, delta(eps) <= e^{that - eps t} (Chernoff with
 * the optimal constant), so also eps(delta) <= (that - log delta)/t. t is the saddle; the bound holds for any t. */
int hs_contour_chernoff_upper(hs_contour *C, int have_eps, double value, double *work, long n_work, double *upper)
{
    double K = 0, slack = 0, t;
    long j;
    int st;
    if (n_work < HS_TWO_WORK) return HS_SCRATCH;
    C->chunks = C->b < 2 * HS_CHUNKS ? 1 : HS_CHUNKS;
    C->eps = value;
    if (!(C->t > 0)) C->t = have_eps ? 1 : guess_tilt(C, value);
    if ((st = find_saddle(C, have_eps, value))) return st;
    for (t = C->t, j = 0; j < C->b; j++) {
        double m = C->m[j], q = C->q[j], k = C->k[j], term, err;
        if (two(C, j)) {
            double o[8];
            st = hs_two_transform(&C->pair[j], t, 0, 20 + log(k), work, n_work, o);
            term = o[0]; err = o[1];
        } else st = q == 1 ? (term = 0.5 * m * m * t * (1 + t), err = 0, HS_OK) : log_m_upper(m, q, C->add ? -t : 1 + t, k, work, &term, &err);
        if (st) {
            if (!(t > 1e-6)) return st;
            t *= 0.5; K = slack = 0; j = -1; /* the tilt reaches too far for the grid: a smaller one bounds as well */
            continue;
        }
        K += k * term; slack += k * err + 2 * HS_U * fabs(k * term);
    }
    K += slack + (double)C->b * HS_U * fabs(K) + lf(t);
    K += 8 * HS_U * (fabs(K) + fabs(value) * (1 + t));
    *upper = have_eps ? K - value * t : (K - value) / t * (1 + 4 * HS_U);
    return *upper < HUGE_VAL ? HS_OK : HS_OUT_OF_RANGE;
}

long hs_contour_work(int b, long n_outer)
{
    return (b < 2 * HS_CHUNKS ? 1 : HS_CHUNKS) * (HS_TWO_WORK + HS_SUMS_WORK(n_outer));
}

int hs_contour_delta(hs_contour *C, double eps, double *work, long n_work, hs_point *out)
{
    hs_sums S[HS_CHUNKS];
    hs_value v;
    int st;
    C->eps = eps;
    if ((st = prepare(C, 1, 0, work, n_work, S))) return st;
    evaluate(C, eps, &v);
    if (!(v.value > 0 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
    report(&v, out);
    out->n_nodes = C->N + 1;
    return v.lower > 0 && v.upper - v.lower <= 2 * C->rtol * v.value ? HS_OK : HS_LOOSE;
}

int hs_contour_eps(hs_contour *C, double log_delta, double *work, long n_work, double *lower, double *estimate, double *upper, hs_point *out)
{
    hs_sums S[HS_CHUNKS];
    hs_value v, w;
    double e, r, step;
    int st, it, ok_lo = 0, ok_up = 0;
    if ((st = prepare(C, 0, log_delta, work, n_work, S))) return st;
    for (e = C->eps, it = 0; it < 12; it++) {
        evaluate(C, e, &v);
        if (!(v.value > 0 && v.slope > 0 && v.upper < HUGE_VAL)) return HS_TOO_WIDE;
        step = (v.log_scale + log(v.value) - log_delta) * v.value / v.slope;
        step = fmax(-0.4 * C->reach, fmin(0.4 * C->reach, step));
        e += step;
        if (!(fabs(e - C->eps) < 0.8 * C->reach)) return HS_NO_BRACKET;
        if (fabs(step) < 2e-16 * fabs(e) + 1e-3 * (v.upper - v.lower) / v.slope) break;
    }
    evaluate(C, e, &v);
    report(&v, out);
    out->n_nodes = C->N + 1;
    r = (v.upper - v.lower) / v.slope * 0.75 + fabs(v.log_scale + log(v.value) - log_delta) * v.value / v.slope + 4 * HS_U * fabs(e);
    *estimate = e;
    for (it = 0; it < 12 && !(ok_lo && ok_up); it++, r *= 1.5) {
        if (!ok_lo) { /* delta(e - r) >= lower >= delta: the root lies above */
            evaluate(C, e - r, &w);
            ok_lo = w.lower > 0 && w.log_scale + log(w.lower) - 4 * HS_U * (2 + fabs(w.log_scale) + fabs(log_delta)) >= log_delta;
            *lower = e - r;
        }
        if (!ok_up) {
            evaluate(C, e + r, &w);
            ok_up = w.log_scale + log(w.upper) + 4 * HS_U * (2 + fabs(w.log_scale) + fabs(log_delta)) <= log_delta;
            *upper = e + r;
        }
    }
    if (!ok_lo || !ok_up) return HS_NO_BRACKET;
    return v.upper - v.lower <= 2 * C->rtol * v.value ? HS_OK : HS_LOOSE;
}
