# cython: boundscheck=False, wraparound=False, cdivision=True
"""The gate: convert, allocate, release the GIL, one C call, check the status, return. Nothing else."""

import numpy as np
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from .bound import AccuracyError, DomainError

_STATUS = (
    (None, ""),
    (None, "proved, but wider than asked"),
    (DomainError, "an argument lies outside the domain of the kernel"),
    (AccuracyError, "the lent scratch is too small"),
    (AccuracyError, "no saddle point or contour was found"),
    (AccuracyError, "no usable path of inner integration"),
    (AccuracyError, "the integrand does not decay within the limits"),
    (AccuracyError, "the sum needs more nodes than its limit"),
    (AccuracyError, "the proved error is not below the value"),
    (AccuracyError, "no certified bracket of eps was found"),
    (AccuracyError, "an intermediate value does not fit a double"),
)


def check(int status, where="core"):
    """Raise the error that a status of the C floor stands for; HS_OK and HS_LOOSE pass."""
    if status in (0, 1):
        return
    if not 0 < status <= hs_status_last():
        raise AccuracyError(f"{where}: unknown status {status}", status)
    kind, message = _STATUS[status]
    raise kind(f"{where}: {message}", status)


def hyperbola_delta(double[::1] m, double[::1] q, double[::1] k, int add, double eps, double log_tol):
    """(status, log_scale, lower, estimate, upper, terms, nodes) of one certified delta; see hs.h."""
    cdef int b = m.shape[0], status
    cdef double[::1] work = np.empty(60_000 + 80_000 * b)
    cdef hs_point p
    with nogil:
        status = hs_hyperbola_delta(b, &m[0], &q[0], &k[0], add, eps, log_tol, &work[0], work.shape[0], &p)
    return status, p.log_scale, p.lower, p.estimate, p.upper, (p.aliasing, p.truncation, p.inner, p.rounding), p.n_nodes


def hyperbola_eps(double[::1] m, double[::1] q, double[::1] k, int add, double log_delta, double log_tol):
    """(status, lower, estimate, upper, terms relative to delta, nodes) of one certified eps; see hs.h."""
    cdef int b = m.shape[0], status
    cdef double[::1] work = np.empty(60_000 + 80_000 * b)
    cdef double lower = 0, estimate = 0, upper = 0
    cdef hs_point p
    with nogil:
        status = hs_hyperbola_eps(b, &m[0], &q[0], &k[0], add, log_delta, log_tol, &work[0], work.shape[0],
                                  &lower, &estimate, &upper, &p)
    terms = () if status > 1 else tuple(t / p.estimate for t in (p.aliasing, p.truncation, p.inner, p.rounding))
    return status, lower, estimate, upper, terms, 0 if status > 1 else p.n_nodes


cdef const hs_pair *_pairs(const unsigned char[::1] pairs, int b) except? NULL:
    if pairs is None:
        return NULL
    if pairs.shape[0] != b * <Py_ssize_t>sizeof(hs_pair):
        check(HS_BAD_ARGUMENT, "contour")
    return <const hs_pair *>&pairs[0]


def contour_delta(double[::1] m, double[::1] q, double[::1] k, int add, double eps, double rtol, double T0,
                  int n_threads, double[::1] work, long n_max=HS_OUTER_MAX,
                  const unsigned char[::1] pairs=None):
    """(status, log_scale, lower, estimate, upper, terms, nodes) of one certified delta; see hs.h."""
    cdef hs_contour C
    cdef hs_point p
    cdef int status
    C.b, C.add, C.n_threads, C.n_max, C.rtol, C.T0 = m.shape[0], add, n_threads, n_max, rtol, T0
    C.m, C.q, C.k, C.pair = &m[0], &q[0], &k[0], _pairs(pairs, C.b)
    with nogil:
        status = hs_contour_delta(&C, eps, &work[0], work.shape[0], &p)
    return status, p.log_scale, p.lower, p.estimate, p.upper, (p.aliasing, p.truncation, p.inner, p.rounding), p.n_nodes


def contour_curve(double[::1] m, double[::1] q, double[::1] k, int add, const double[::1] eps, double rtol, double T0,
                  int n_threads, double[::1] work):
    """Rows (status, log_scale, lower, estimate, upper, four terms) of deltas at ascending eps; see hs.h."""
    cdef hs_contour C
    cdef int status
    out = np.empty((eps.shape[0], 9))
    cdef double[:, ::1] rows = out
    C.b, C.add, C.n_threads, C.n_max, C.rtol, C.T0 = m.shape[0], add, n_threads, HS_OUTER_MAX, rtol, T0
    C.m, C.q, C.k, C.pair = &m[0], &q[0], &k[0], NULL
    with nogil:
        status = hs_contour_curve(&C, eps.shape[0], &eps[0], &work[0], work.shape[0], &rows[0, 0])
    check(status, "contour")
    return out


def contour_eps(double[::1] m, double[::1] q, double[::1] k, int add, double log_delta, double rtol, double T0,
                int n_threads, double[::1] work, long n_max=HS_OUTER_MAX,
                const unsigned char[::1] pairs=None):
    """(status, lower, estimate, upper, terms relative to delta, nodes) of one certified eps; see hs.h."""
    cdef hs_contour C
    cdef hs_point p
    cdef int status
    cdef double lower = 0, estimate = 0, upper = 0
    C.b, C.add, C.n_threads, C.n_max, C.rtol, C.T0 = m.shape[0], add, n_threads, n_max, rtol, T0
    C.m, C.q, C.k, C.pair = &m[0], &q[0], &k[0], _pairs(pairs, C.b)
    with nogil:
        status = hs_contour_eps(&C, log_delta, &work[0], work.shape[0], &lower, &estimate, &upper, &p)
    if status > 1:
        return status, 0.0, 0.0, 0.0, (), 0
    terms = (p.aliasing / p.estimate, p.truncation / p.estimate, p.inner / p.estimate, p.rounding / p.estimate)
    return status, lower, estimate, upper, terms, p.n_nodes


def chernoff_upper(double[::1] m, double[::1] q, double[::1] k, int add, int have_eps, double value, double[::1] work,
                   const unsigned char[::1] pairs=None):
    """(status, bound, tilt): an upper bound of log delta at eps = value, or of eps at log delta = value; see hs.h."""
    cdef hs_contour C
    cdef double upper = 0
    cdef int status
    C.b, C.add, C.n_threads, C.t = m.shape[0], add, 1, 0
    C.m, C.q, C.k, C.pair = &m[0], &q[0], &k[0], _pairs(pairs, C.b)
    with nogil:
        status = hs_contour_chernoff_upper(&C, have_eps, value, &work[0], work.shape[0], &upper)
    return status, upper, C.t


def contour_work(int b):
    """Doubles of scratch that the line contour may need for b distinct steps."""
    return hs_contour_work(b, HS_OUTER_MAX)
# grid.c, convolve.c


def grid_prv(double m, double q, int add, double dx, long j0, long n):
    """(p, mass, mean, abs_mean, edge_upper) of one step's loss on cells j0..j0+n-1."""
    p = np.empty(n)
    cdef double[::1] out = p
    cdef double mass, mean, abs_mean, edge_upper
    cdef int status
    with nogil:
        status = hs_grid_prv(m, q, add, dx, j0, n, &out[0], &mass, &mean, &abs_mean, &edge_upper)
    check(status, "grid")
    return p, mass, mean, abs_mean, edge_upper


def grid_log_mgf(long j0, double dx, const double[::1] p, double t):
    """log sum_j p_j exp(t j dx)."""
    cdef double log_mgf
    cdef int status
    with nogil:
        status = hs_grid_log_mgf(j0, p.shape[0], dx, &p[0], t, &log_mgf)
    check(status, "grid")
    return log_mgf


def convolve_tilt(long j0, double dx, const double[::1] p, double t, double log_mgf, double[::1] w):
    """Add the tilted masses to the zeroed circular array w; the largest exponent used."""
    cdef double abs_exponent
    cdef int status
    with nogil:
        status = hs_convolve_tilt(j0, p.shape[0], dx, &p[0], t, log_mgf, w.shape[0], &w[0], &abs_exponent)
    check(status, "convolve")
    return abs_exponent


def convolve_power(const double complex[::1] spec, double point, double k, int first, int n_threads, double complex[::1] product):
    """product *= (point + spec)**k, or = with `first`."""
    cdef int status
    with nogil:
        status = hs_convolve_power(spec.shape[0], <const double *>&spec[0], point, k, first, n_threads,
                                   <double *>&product[0])
    check(status, "convolve")


def convolve_multiply(double complex[::1] a, const double complex[::1] b):
    """a *= b; a may be b."""
    cdef int status
    with nogil:
        status = hs_convolve_multiply(a.shape[0], <double *>&a[0], <const double *>&b[0])
    check(status, "convolve")


def convolve_norms(const double[::1] x):
    """(Euclidean norm, sum of absolute values)."""
    cdef double norm2, norm1
    cdef int status
    with nogil:
        status = hs_convolve_norms(x.shape[0], &x[0], &norm2, &norm1)
    check(status, "convolve")
    return norm2, norm1


def convolve_tail(const double[::1] r, long j_lo, double dx, double t, double log_scale, long n_keep):
    """(mass, delta): tail sums at the first n_keep lattice points from j_lo."""
    mass, delta = np.empty(n_keep), np.empty(n_keep)
    cdef double[::1] a = mass, d = delta
    cdef int status
    with nogil:
        status = hs_convolve_tail(r.shape[0], &r[0], j_lo, dx, t, log_scale, n_keep, &a[0], &d[0])
    check(status, "convolve")
    return mass, delta
# individual.c


ctypedef fused real_t:
    float
    double


def individual_charge(const real_t[::1] norms, double scale, double top, int64_t limit, int sticky, const int64_t[::1] spent,
                      int64_t[::1] after, uint8_t[::1] active, int n_threads, int with_checksum):
    """(status, checksum, first bad record) of one step over all records; see hs.h. Empty arrays are not allowed."""
    cdef uint64_t checksum = 0
    cdef int64_t bad = 0
    cdef int status
    with nogil:
        status = hs_individual_charge(norms.shape[0], real_t is float, &norms[0], scale, top, limit, sticky, &spent[0],
                                      &after[0], &active[0], n_threads, &checksum if with_checksum else NULL, &bad)
    return status, checksum, bad


def individual_charge_some(const real_t[::1] norms, const int64_t[::1] index, double scale, double top, int64_t limit,
                           int sticky, const int64_t[::1] spent, int64_t[::1] after, uint8_t[::1] active):
    """(status, change of the checksum, first bad position) of one step over some records; see hs.h."""
    cdef uint64_t change = 0
    cdef int64_t bad = 0
    cdef int status
    with nogil:
        status = hs_individual_charge_some(spent.shape[0], norms.shape[0], real_t is float, &norms[0], &index[0], scale, top,
                                           limit, sticky, &spent[0], &after[0], &active[0], &change, &bad)
    return status, change, bad


def individual_scatter(const int64_t[::1] index, const int64_t[::1] words, int64_t[::1] spent):
    """spent[index] = words."""
    cdef int status
    with nogil:
        status = hs_individual_scatter(spent.shape[0], index.shape[0], &index[0], &words[0], &spent[0])
    check(status, "individual")


def individual_checksum(const int64_t[::1] spent, int64_t limit, int n_threads):
    """(status, checksum) of all words."""
    cdef uint64_t checksum = 0
    cdef int status
    with nogil:
        status = hs_individual_checksum(spent.shape[0], &spent[0], limit, n_threads, &checksum)
    return status, checksum


def individual_tilts(const double[::1] m, const double[::1] q, int add, double k_total, const double[::1] t, int n_threads):
    """Upper bounds of log M of every level at every tilt, [levels, tilts]."""
    up = np.empty((m.shape[0], t.shape[0]))
    cdef double[:, ::1] out = up
    cdef double[::1] work = np.empty(hs_contour_work(1 << 20, 1))
    cdef int status
    with nogil:
        status = hs_individual_tilts(m.shape[0], &m[0], &q[0], add, k_total, t.shape[0], &t[0], n_threads, &work[0],
                                     work.shape[0], &out[0, 0])
    check(status, "individual")
    return up


def individual_chernoff(const int32_t[:, ::1] counts, const double[::1] t, const double[:, ::1] up, double log_delta,
                        int n_threads):
    """(bound of eps, index of its tilt) of every record."""
    best, which = np.empty(counts.shape[0]), np.empty(counts.shape[0], np.int32)
    cdef double[::1] b = best
    cdef int32_t[::1] w = which
    cdef int status
    with nogil:
        status = hs_individual_chernoff(counts.shape[0], counts.shape[1], &counts[0, 0], t.shape[0], &t[0], &up[0, 0],
                                        log_delta, n_threads, &b[0], &w[0])
    check(status, "individual")
    return best, which


def individual_group(const double[::1] m, const double[::1] q, const double[::1] k, int add, double margin,
                     double T0, double k_total, const int32_t[:, ::1] counts, double log_delta, int n_threads,
                     double[::1] eps_upper, double[::1] gap):
    """The status: eps_upper is lowered to the bounds on one contour, gap filled; see hs.h."""
    cdef double[::1] work = np.empty(hs_individual_work(m.shape[0]))
    cdef int status
    with nogil:
        status = hs_individual_group(m.shape[0], &m[0], &q[0], &k[0], add, margin, T0, k_total, counts.shape[0],
                                     &counts[0, 0], log_delta, n_threads, &work[0], work.shape[0], &eps_upper[0], &gap[0])
    return status
# tails.c


def normal_tails(const double[::1] x):
    """(Pr[N <= x], Pr[N > x]) of the standard normal law."""
    below, above = np.empty(x.shape[0]), np.empty(x.shape[0])
    cdef double[::1] a = below, b = above
    cdef int status
    if not x.shape[0]:
        return below, above
    with nogil:
        status = hs_normal_tails(x.shape[0], &x[0], &a[0], &b[0])
    check(status, "tails")
    return below, above


def gaussian_tails(double m, const double[::1] s):
    """Rows y_below, y_above, x_below, x_above, rel at s; see csrc/tails.c."""
    out = np.empty((5, s.shape[0]))
    cdef double[:, ::1] o = out
    cdef int status = 0
    if s.shape[0]:
        with nogil:
            status = hs_gaussian_tails(m, s.shape[0], &s[0], &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], &o[4, 0])
    check(status, "tails")
    return out


def laplace_tails(double m, const double[::1] s):
    """Rows y_below, y_above, x_below, x_above, rel at s; see csrc/tails.c."""
    out = np.empty((5, s.shape[0]))
    cdef double[:, ::1] o = out
    cdef int status = 0
    if s.shape[0]:
        with nogil:
            status = hs_laplace_tails(m, s.shape[0], &s[0], &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], &o[4, 0])
    check(status, "tails")
    return out


def poisson_place(double q, const double[::1] s):
    """(base losses g of sampled losses s, first above the wall, edge, slope); see csrc/tails.c."""
    out = np.empty(s.shape[0])
    cdef double[::1] g = out
    cdef double edge = 0, slope = 0
    cdef long first = 0
    cdef int status = 0
    if s.shape[0]:
        with nogil:
            status = hs_poisson_place(q, s.shape[0], &s[0], &g[0], &first, &edge, &slope)
    check(status, "tails")
    return out, first, edge, slope


def poisson_tails(double q, double all_y, double all_x, long first, double[:, ::1] o):
    """Rows of the base's tails to those of its Poisson sample, in place; see csrc/tails.c."""
    cdef int status = 0
    if o.shape[1]:
        with nogil:
            status = hs_poisson_tails(q, all_y, all_x, first, o.shape[1], &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], &o[4, 0])
    check(status, "tails")


# pld.c


def pld_cells(double s0, double w, const double[::1] yb, const double[::1] ya, const double[::1] xb, const double[::1] xa,
              const double[::1] rel, double edge, double absolute):
    """(y_upper, u_upper, y_lower, u_lower) of the fine cells between the points of the tails."""
    cdef long n = rel.shape[0] - 1
    out = np.empty((4, n))
    cdef double[:, ::1] o = out
    cdef int status
    with nogil:
        status = hs_pld_cells(n, s0, w, &yb[0], &ya[0], &xb[0], &xa[0], &rel[0], edge, absolute,
                              &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0])
    check(status, "pld")
    return out[0], out[1], out[2], out[3]


def pld_upper(int m, double w, const double[::1] y_upper, const double[::1] u_upper, double bottom):
    """Masses of the dominating law on the lattice."""
    p = np.empty(y_upper.shape[0] // m + 1)
    cdef double[::1] out = p
    cdef int status
    with nogil:
        status = hs_pld_upper(out.shape[0] - 1, m, w, &y_upper[0], &u_upper[0], bottom, &out[0])
    check(status, "pld")
    return p


def pld_lower(int m, double w, const double[::1] y_lower, const double[::1] u_lower, double top, double t):
    """Masses of a dominated law on the lattice."""
    p = np.empty(y_lower.shape[0] // m + 1)
    cdef double[::1] out = p
    cdef int status
    with nogil:
        status = hs_pld_lower(out.shape[0] - 1, m, w, &y_lower[0], &u_lower[0], top, t, &out[0])
    check(status, "pld")
    return p


def pld_laws(int m, double s0, double w, const double[:, ::1] tails, double edge, double absolute, double t):
    """(upper masses, lower masses, bound of the mass above) on a lattice, from rows of tails as in csrc/tails.c."""
    cdef long n = (tails.shape[1] - 1) // m
    upper, lower, work = np.empty(n + 1), np.empty(n + 1), np.empty(4 * m * n)
    cdef double[::1] p = upper, r = lower, v = work
    cdef double p_inf = 0
    cdef int status
    with nogil:
        status = hs_pld_laws(n, m, s0, w, &tails[0, 0], &tails[1, 0], &tails[2, 0], &tails[3, 0], &tails[4, 0], edge, absolute, t,
                             &v[0], &p[0], &r[0], &p_inf)
    check(status, "pld")
    return upper, lower, p_inf


def pld_table(const double[::1] t, const double[::1] loss, const double[::1] log_den, double k):
    """Rows K, K', K'' of k copies of a step at tilts t, by its nodes. Estimates."""
    out = np.zeros((3, t.shape[0]))
    cdef double[:, ::1] o = out
    cdef int status
    with nogil:
        status = hs_pld_table(t.shape[0], &t[0], loss.shape[0], &loss[0], &log_den[0], k, &o[0, 0], &o[1, 0], &o[2, 0])
    check(status, "pld")
    return out

# batch.c


def batch(const double[::1] m, const double[::1] q, const double[::1] k, const double[::1] at, int want_eps, int directions,
          int replaced, double rtol, double T0, double widest, int n_threads, double[:, ::1] ends, unsigned char[::1] done):
    """Fill ends = (lower, estimate, upper) and done of every query; see hs.h."""
    cdef long n = m.shape[0]
    cdef int status
    if not n or min(q.shape[0], k.shape[0], at.shape[0], ends.shape[1], done.shape[0]) < n or ends.shape[0] < 3:
        return
    cdef double[::1] work = np.empty(hs_batch_work(n_threads))
    with nogil:
        status = hs_batch(n, &m[0], &q[0], &k[0], &at[0], want_eps, directions, replaced, rtol, T0, widest, n_threads,
                          &work[0], work.shape[0], &ends[0, 0], &ends[1, 0], &ends[2, 0], &done[0])
    check(status, "batch")

# sampling.c


def sampling_truncation(double p, double n, double max_batch):
    """((q_lower, q_upper), (log_w_lower, log_w_upper), (log_rest_lower, log_rest_upper)); rest = 1 - w. See hs.h."""
    cdef double out[6]
    cdef int status
    with nogil:
        status = hs_sampling_truncation(p, n, max_batch, out)
    check(status, "sampling")
    return (out[0], out[1]), (out[2], out[3]), (out[4], out[5])


def sampling_tails(double q, double q_err, double up, double down, const double[::1] s):
    """(tails, edge): rows y_below, y_above, x_below, x_above and relative error of one branch; see hs.h."""
    table = np.empty((5, s.shape[0]))
    cdef double[:, ::1] t = table
    cdef double edge
    cdef int status
    if s.shape[0] == 0:
        return table, 0.0
    with nogil:
        status = hs_sampling_tails(q, q_err, up, down, s.shape[0], &s[0], &t[0, 0], &t[1, 0], &t[2, 0], &t[3, 0],
                                   &t[4, 0], &edge)
    check(status, "sampling")
    return table, edge


# twosided.c


def two_transform(const unsigned char[::1] pair, double z, double y, double target=40.0):
    """(log M(z), error, mean, variance, Re phi - 1, Im phi at y, error of phi, bound of |phi| beyond) of an hs_pair."""
    cdef double out[8]
    cdef double[::1] work = np.empty(hs_two_work())
    cdef int status
    if pair.shape[0] != <Py_ssize_t>sizeof(hs_pair):
        check(HS_BAD_ARGUMENT, "two-sided transform")
    with nogil:
        status = hs_two_transform(<const hs_pair *>&pair[0], z, y, target, &work[0], work.shape[0], out)
    check(status, "two-sided transform")
    return tuple(out[i] for i in range(8))
# saddlepoint.c


def saddle_work():
    """Doubles of scratch that every saddle-point function needs."""
    return hs_saddle_work()


def saddle_delta(double[::1] m, double[::1] q, double[::1] k, int add, double eps, int kind, double[::1] work):
    """(status, kind, lower, estimate, upper, raw estimate, terms, tilt, skew) of log delta; see hs.h."""
    cdef hs_saddle s
    cdef int status
    with nogil:
        status = hs_saddle_delta(m.shape[0], &m[0], &q[0], &k[0], add, eps, kind, &work[0], work.shape[0], &s)
    terms = (s.berry_esseen, s.quadrature, s.rounding)
    return status, s.kind, s.lower, s.log_estimate, s.upper, s.raw_estimate, terms, s.tilt, s.skew


def saddle_eps(double[::1] m, double[::1] q, double[::1] k, int add, double log_delta, int kind, double[::1] work):
    """(status, kind, lower, estimate, upper, raw estimate, terms, tilt, skew) of eps; see hs.h."""
    cdef hs_saddle s
    cdef int status
    with nogil:
        status = hs_saddle_eps(m.shape[0], &m[0], &q[0], &k[0], add, log_delta, kind, &work[0], work.shape[0], &s)
    terms = (s.berry_esseen, s.quadrature, s.rounding)
    return status, s.kind, s.lower, s.estimate, s.upper, s.raw_estimate, terms, s.tilt, s.skew


def saddle_cumulants(double[::1] m, double[::1] q, double[::1] k, int add, double t, double[::1] work):
    """(status, 14 numbers) of the composition at tilt t; see hs.h."""
    out = np.empty(14)
    cdef double[::1] to = out
    cdef int status
    with nogil:
        status = hs_saddle_cumulants(m.shape[0], &m[0], &q[0], &k[0], add, t, &work[0], work.shape[0], &to[0])
    return status, out


def saddle_moments_upper(double[::1] m, double[::1] q, double[::1] k, int add, int have_eps, double value, double[::1] work):
    """(status, tilt, upper): an upper bound of log delta at eps = value, or of eps at log delta = value; see hs.h."""
    cdef double tilt = 0, upper = 0
    cdef int status
    with nogil:
        status = hs_saddle_moments_upper(m.shape[0], &m[0], &q[0], &k[0], add, have_eps, value, &work[0], work.shape[0],
                                         &tilt, &upper)
    return status, tilt, upper


def saddle_atoms(const long[::1] first, const double[::1] loss, const double[::1] num, const double[::1] k,
                 const double[:, ::1] errors, int have_eps, double value, int kind):
    """The same tuple for steps of finitely many losses; errors: rows rel, edge, inf."""
    cdef hs_saddle s
    cdef hs_atoms a
    cdef int status, b = k.shape[0]
    a.first, a.loss, a.num, a.rel, a.edge, a.inf = &first[0], &loss[0], &num[0], &errors[0, 0], &errors[1, 0], &errors[2, 0]
    with nogil:
        status = hs_saddle_atoms(b, &a, &k[0], have_eps, value, kind, &s)
    terms = (s.berry_esseen, s.quadrature, s.rounding)
    mid = s.log_estimate if have_eps else s.estimate
    return status, s.kind, s.lower, mid, s.upper, s.raw_estimate, terms, s.tilt, s.skew


def saddle_atoms_cgf(const long[::1] first, const double[::1] loss, const double[::1] num, const double[::1] k,
                     const double[:, ::1] errors, double t):
    """(status, K, bound of its error) at tilt t of steps of finitely many losses; errors: rows rel, edge, inf."""
    cdef hs_atoms a
    cdef double value = 0, err = 0
    cdef int status, b = k.shape[0]
    a.first, a.loss, a.num, a.rel, a.edge, a.inf = &first[0], &loss[0], &num[0], &errors[0, 0], &errors[1, 0], &errors[2, 0]
    with nogil:
        status = hs_saddle_atoms_cgf(b, &a, &k[0], t, &value, &err)
    return status, value, err
# edgeworth.c


def edgeworth_moments(int family, double m, double q, const double[::1] x, const double[::1] w):
    """(A, B): mean and cumulants 2 to 5 of one step's loss under both laws."""
    A, B = np.empty(5), np.empty(5)
    cdef double[::1] a = A, b = B
    cdef int status
    with nogil:
        status = hs_edgeworth_moments(family, m, q, &x[0], &w[0], x.shape[0], &a[0], &b[0])
    check(status, "edgeworth")
    return A, B


def edgeworth_totals(const int[::1] family, const double[::1] m, const double[::1] q, const double[::1] k, int add,
                     const double[::1] x, const double[::1] w):
    """(Y, X): the run's mean and cumulants 2 to 5."""
    Y, X = np.empty(5), np.empty(5)
    cdef double[::1] y = Y, z = X
    cdef int status
    with nogil:
        status = hs_edgeworth_totals(m.shape[0], &family[0], &m[0], &q[0], &k[0], add, &x[0], &w[0], x.shape[0], &y[0], &z[0])
    check(status, "edgeworth")
    return Y, X


def edgeworth_delta(const double[::1] Y, const double[::1] X, int form, int order, double eps):
    """(log_scale, value) of the estimate exp(log_scale) value."""
    cdef double log_scale, value
    cdef int status
    with nogil:
        status = hs_edgeworth_delta(&Y[0], &X[0], form, order, eps, &log_scale, &value)
    check(status, "edgeworth")
    return log_scale, value


def edgeworth_eps(const double[::1] Y, const double[::1] X, int form, int order, double log_delta):
    """The largest eps at which the estimate is exp(log_delta)."""
    cdef double eps
    cdef int status
    with nogil:
        status = hs_edgeworth_eps(&Y[0], &X[0], form, order, log_delta, &eps)
    check(status, "edgeworth")
    return eps
# prawitz.c


def prawitz_delta(const int[::1] family, const double[::1] m, const double[::1] q, const double[::1] k, int add,
                  const double[::1] x, const double[::1] w, double eps, double T0, double T, double[::1] work):
    """(status, log_scale, lower, estimate, upper, terms, limit) of one certified delta; see hs.h."""
    cdef hs_prawitz S
    cdef hs_point p
    cdef int status
    S.b, S.add, S.n_gl, S.T0, S.T = m.shape[0], add, x.shape[0], T0, T
    S.family, S.m, S.q, S.k, S.x, S.w = &family[0], &m[0], &q[0], &k[0], &x[0], &w[0]
    with nogil:
        status = hs_prawitz_delta(&S, eps, &work[0], work.shape[0], &p)
    return (status, p.log_scale, p.lower, p.estimate, p.upper,
            (S.smooth, p.aliasing, p.truncation, p.inner, p.rounding), S.limit)


def prawitz_eps(const int[::1] family, const double[::1] m, const double[::1] q, const double[::1] k, int add,
                const double[::1] x, const double[::1] w, double log_delta, double T0, double T, double[::1] work):
    """(status, lower, estimate, upper, delta's estimate, its terms, limit) of one certified eps; see hs.h."""
    cdef hs_prawitz S
    cdef hs_point p
    cdef int status
    cdef double lower = 0, estimate = 0, upper = 0
    S.b, S.add, S.n_gl, S.T0, S.T = m.shape[0], add, x.shape[0], T0, T
    S.family, S.m, S.q, S.k, S.x, S.w = &family[0], &m[0], &q[0], &k[0], &x[0], &w[0]
    with nogil:
        status = hs_prawitz_eps(&S, log_delta, &work[0], work.shape[0], &lower, &estimate, &upper, &p)
    return status, lower, estimate, upper, p.estimate, (S.smooth, p.aliasing, p.truncation, p.inner, p.rounding), S.limit


def prawitz_work():
    """Doubles of scratch that one call takes."""
    return hs_prawitz_work()
# edgeworth_bound.c


def edgeworth_absolute(int family, double m, double q, const double[::1] x, const double[::1] w):
    """(A, B): first and third absolute central moment of one step's loss under both laws."""
    A, B = np.empty(2), np.empty(2)
    cdef double[::1] a = A, b = B
    cdef int status
    with nogil:
        status = hs_edgeworth_absolute(family, m, q, &x[0], &w[0], x.shape[0], &a[0], &b[0])
    check(status, "edgeworth")
    return A, B


def edgeworth_modulus_upper(int family, double m, double q, int which, const double[::1] x, const double[::1] w, double y0,
                            double y1, double[::1] work):
    """The largest modulus of the step's characteristic function on [y0, y1], from above."""
    cdef double modulus
    cdef int status
    with nogil:
        status = hs_edgeworth_modulus_upper(family, m, q, which, &x[0], &w[0], x.shape[0], y0, y1, &work[0],
                                            work.shape[0], &modulus)
    check(status, "edgeworth")
    return modulus


# mixed.c, laplace.c


cdef void lend_laws(hs_mixed *A, const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice):
    """Pointers and settings shared by the two calls below: points holds the rows x, l, lp, dl, dp."""
    A.b, A.table = table.shape[0], &table[0, 0]
    A.x, A.l, A.lp, A.dl, A.dp = &points[0, 0], &points[1, 0], &points[2, 0], &points[3, 0], &points[4, 0]
    A.step, A.step_low, A.d_step, A.shift, A.d_shift = lattice[0], lattice[1], lattice[2], lattice[3], lattice[4]


def mixed_delta(const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice, double eps, double rtol,
                double T0, long n_nodes, double[::1] work):
    """(status, log_scale, lower, estimate, upper, terms, nodes) of one certified delta; see hs.h."""
    cdef hs_mixed A
    cdef hs_point p
    cdef int status
    lend_laws(&A, table, points, lattice)
    A.rtol, A.T0, A.n_nodes = rtol, T0, n_nodes
    with nogil:
        status = hs_mixed_delta(&A, eps, &work[0], work.shape[0], &p)
    return status, p.log_scale, p.lower, p.estimate, p.upper, (p.aliasing, p.truncation, p.inner, p.rounding), p.n_nodes


def mixed_eps(const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice, double log_delta, double rtol,
              double T0, long n_nodes, double[::1] work):
    """(status, lower, estimate, upper, terms relative to delta, nodes) of one certified eps; see hs.h."""
    cdef hs_mixed A
    cdef hs_point p
    cdef double lower = 0, estimate = 0, upper = 0
    cdef int status
    lend_laws(&A, table, points, lattice)
    A.rtol, A.T0, A.n_nodes = rtol, T0, n_nodes
    with nogil:
        status = hs_mixed_eps(&A, log_delta, &work[0], work.shape[0], &lower, &estimate, &upper, &p)
    terms = () if status > 1 else tuple(t / p.estimate for t in (p.aliasing, p.truncation, p.inner, p.rounding))
    return status, lower, estimate, upper, terms, 0 if status > 1 else p.n_nodes


def mixed_cgf(const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice, double t, double[::1] work):
    """(status, K, bound of its error) at tilt t; see hs.h."""
    cdef hs_mixed A
    cdef double value = 0, err = 0
    cdef int status
    lend_laws(&A, table, points, lattice)
    A.n_nodes = 0
    with nogil:
        status = hs_mixed_cgf(&A, t, &work[0], work.shape[0], &value, &err)
    return status, value, err


def mixed_work(long n_points, long n_subnormal, long n_nodes):
    """Doubles of scratch for laws of n_points points in all, n_subnormal subsampled normal laws, at most n_nodes nodes."""
    return hs_mixed_work(n_points, n_subnormal, n_nodes)


def sublaplace_points(double m, double q, int add, long panels, const double[::1] node, const double[::1] weight):
    """Rows x, l, lp, dl, dp of the quadrature points of a subsampled Laplace step; see csrc/laplace.c."""
    out = np.empty((5, 2 + panels * node.shape[0]))
    cdef double[:, ::1] o = out
    cdef int status
    with nogil:
        status = hs_sublaplace_points(m, q, add, panels, node.shape[0], &node[0], &weight[0], &o[1, 0], &o[2, 0], &o[3, 0],
                                      &o[4, 0])
    check(status, "laplace")
    out[0] = out[1]
    return out
