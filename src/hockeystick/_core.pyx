# cython: boundscheck=False, wraparound=False, cdivision=True
"""The gate: convert, allocate, release the GIL, one C call, check the status, return. Nothing else."""

import numpy as np
cimport cython
cimport numpy as cnp
from libc.limits cimport INT_MAX
from libc.math cimport HUGE_VAL
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from .answers import Crossing, Saddle, Scaled
from .bound import AccuracyError, DomainError

# What Python names of csrc/hs.h: statuses, kinds of law, bits of a record's word, sizes.
OK, LOOSE, NO_SADDLE, TOO_WIDE, NO_BRACKET = HS_OK, HS_LOOSE, HS_NO_SADDLE, HS_TOO_WIDE, HS_NO_BRACKET
NORMAL, LAPLACE, SUBLAPLACE, SUBNORMAL = HS_LAW_NORMAL, HS_LAW_LAPLACE, HS_LAW_SUBLAPLACE, HS_LAW_SUBNORMAL
POINTS, LOG_CONCAVE = HS_LAW_POINTS, HS_LAW_POINTS_LOGCONCAVE
RANGE, SUBRANGE = HS_LAW_RANGE, HS_LAW_SUBRANGE
ALLOCATION, DENSITY, MIXTURE = HS_LAW_ALLOCATION, HS_LAW_DENSITY, HS_LAW_MIXTURE
DROPPED, TURN, SHIFTS_MAX, JUMPS_STEPS = HS_DROPPED, HS_TURN, HS_SHIFTS_MAX, HS_JUMPS_STEPS
SHORT_LINE = HS_SHORT_LINE
SHORT_PAIR = HS_SHORT_PAIR

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
    (AccuracyError, "the call was interrupted"),
)


cnp.import_array()


cdef inline double *doubles(a, Py_ssize_t n) except NULL:
    """The n > 0 entries of an array of doubles; a memoryview of it costs ten times as much, which warm queries
    notice."""
    if (type(a) is not cnp.ndarray or cnp.PyArray_TYPE(<cnp.ndarray>a) != cnp.NPY_DOUBLE
            or not cnp.PyArray_IS_C_CONTIGUOUS(a)):
        check(HS_BAD_ARGUMENT, "doubles")
    lengths(n, cnp.PyArray_SIZE(<cnp.ndarray>a), n)
    return <double *>cnp.PyArray_DATA(<cnp.ndarray>a)


cdef int lengths(Py_ssize_t n, Py_ssize_t a, Py_ssize_t b) except -1:
    """n, if a and b are the same, from 1 to what an int holds; the C floor cannot see how long an array is."""
    if not (1 <= n <= INT_MAX and a == n and b == n):
        check(HS_BAD_ARGUMENT, "lengths of arrays")
    return <int>n


cdef int signalled() noexcept with gil:
    """Run the handlers of the signals that came (in Python's main thread). True: one raised, and `passed` hands that
    on."""
    return PyErr_CheckSignals() != 0


cdef inline hs_poll polling() noexcept nogil:
    cdef hs_poll poll
    poll.ask, poll.work, poll.stop = signalled, 0, 0
    return poll


cdef inline int passed(hs_poll *poll) except -1:
    """After a call: the exception that a signal handler raised during the call, if one did."""
    return -1 if poll.stop else 0


@cython.final
@cython.no_gc
cdef class Rows:
    """A run as the gate takes it: arrays (m, q, k) of equal length, contiguous doubles, that must not change.

    shift : m = sensitivity/sigma > 0, or sensitivity/scale of Laplace noise.   q : sampling rate, 1 of plain steps.
    k : counts.   kind : NORMAL or LAPLACE of every row; None: all are Gaussian.   pairs : bytes of hs_pair, of which
    those with branches are two-sided pairs, turned to the direction, in place of their rows; None: there are none.
    fits, ruled, light, outline, light_outline : of a rule (compression.py) what it is off by, rows of hs_fit; how many
    of the last rows are of rates below 1, and how many the tail of a line leaves out; m, q, k of a few steps that a
    line is placed by, the last of them light.
    """
    cdef readonly object shift, q, k, kind, pairs, fits, outline
    cdef readonly int ruled, light, light_outline
    cdef hs_run run

    def __cinit__(self, shift, q, k, kind=None, pairs=None, fits=None, int ruled=0, int light=0, outline=None,
                  int light_outline=0):
        cdef hs_run *run = &self.run
        cdef Py_ssize_t b = cnp.PyArray_SIZE(shift) if type(shift) is cnp.ndarray else -1
        self.shift, self.q, self.k, self.kind = shift, q, k, kind
        self.pairs, self.fits, self.outline = pairs, fits, outline
        self.ruled, self.light, self.light_outline = ruled, light, light_outline
        run.ruled, run.light, run.light_outline = ruled, light, light_outline
        if b == 0 and len(q) == len(k) == 0:
            return
        run.b = lengths(b, b, b)
        run.m, run.q, run.k = doubles(shift, b), doubles(q, b), doubles(k, b)
        if kind is not None:
            lend_kinds(run, kind)
        if pairs is not None:
            lend_pairs(run, pairs)
        if fits is not None:
            lend_fits(run, fits)
        if outline is not None:
            lend_outline(run, outline)
        if not (0 <= light <= ruled <= (run.b if run.n_fits else 0) and 0 <= light_outline <= run.n_outline):
            check(HS_BAD_ARGUMENT, "rows")

    def __iter__(self):
        return iter((self.shift, self.q, self.k))

    def __reduce__(self):
        return Rows, (self.shift, self.q, self.k, self.kind, self.pairs, self.fits, self.ruled, self.light,
                      self.outline, self.light_outline)


cdef int lend_kinds(hs_run *run, const int[::1] kind) except -1:
    lengths(run.b, kind.shape[0], run.b)
    run.kind = &kind[0]
    return 0


cdef int lend_pairs(hs_run *run, const unsigned char[::1] pairs) except -1:
    if pairs.shape[0] != run.b * <Py_ssize_t>sizeof(hs_pair):
        check(HS_BAD_ARGUMENT, "rows")
    run.pair = <const hs_pair *>&pairs[0]
    return 0


cdef int lend_fits(hs_run *run, const double[:, ::1] fits) except -1:
    cdef int i
    lengths(10, fits.shape[1], 10)
    run.n_fits, run.fits = lengths(fits.shape[0], fits.shape[0], fits.shape[0]), <const hs_fit *>&fits[0, 0]
    for i in range(run.n_fits):
        run.apart = run.apart or run.fits[i].of == HS_FIT_TAIL
    return 0


cdef int lend_outline(hs_run *run, const double[:, ::1] outline) except -1:
    lengths(3, outline.shape[0], 3)
    run.n_outline, run.outline = lengths(outline.shape[1], outline.shape[1], outline.shape[1]), &outline[0, 0]
    return 0


cdef inline hs_run run_of(Rows rows, int add) except *:
    """The arrays of a run, which the caller keeps alive, in one direction."""
    cdef hs_run run = rows.run
    if run.b == 0:
        check(HS_BAD_ARGUMENT, "lengths of arrays")
    run.add = add
    return run


cdef const hs_pair *pair_of(const unsigned char[::1] pair) except NULL:
    if pair.shape[0] != <Py_ssize_t>sizeof(hs_pair):
        check(HS_BAD_ARGUMENT, "pair")
    return <const hs_pair *>&pair[0]


cdef hs_rule rule_of(const double[::1] x, const double[::1] w) except *:
    cdef hs_rule rule
    rule.n, rule.x, rule.w = lengths(x.shape[0], w.shape[0], x.shape[0]), &x[0], &w[0]
    return rule


cdef hs_lent lent_of(double[::1] work, hs_poll *poll, int n_threads=1) noexcept:
    cdef hs_lent lent
    lent.work, lent.n_work = &work[0] if work.shape[0] else NULL, work.shape[0]
    lent.n_threads, lent.poll = n_threads, poll
    return lent


def check(int status, where="core"):
    """Raise the error that a status of the C floor stands for; HS_OK and HS_LOOSE pass."""
    if status in (0, 1):
        return
    if not 0 < status <= hs_status_last():
        raise AccuracyError(f"{where}: unknown status {status}", status)
    kind, message = _STATUS[status]
    raise kind(f"{where}: {message}", status)


cdef object named = tuple.__new__  # a named tuple by its own constructor takes twice as long, which warm queries notice


cdef object scaled(int status, const hs_point *p, bint ruled=False):
    """A Scaled; of a run with rules the interpolation error is the fifth term."""
    terms = (p.aliasing, p.truncation, p.inner, p.rounding)
    if ruled:
        terms += (p.interpolation,)
    return named(Scaled, (status, p.log_scale, p.lower, p.estimate, p.upper, terms, p.n_nodes))


cdef object crossing(int status, const hs_crossing *at, bint ruled=False):
    cdef const hs_point *p = &at.delta
    if status > 1:
        return Crossing(status, 0.0, 0.0, 0.0, (), 0)
    terms = (p.aliasing / p.estimate, p.truncation / p.estimate, p.inner / p.estimate, p.rounding / p.estimate)
    if ruled:
        terms += (p.interpolation / p.estimate,)
    return named(Crossing, (status, at.lower, at.estimate, at.upper, terms, p.n_nodes))


cdef object answer(int status, bint have_eps, const hs_crossing *at, bint ruled=False):
    """A Scaled at eps, or a Crossing at a log of delta."""
    return scaled(status, &at.delta, ruled) if have_eps else crossing(status, at, ruled)


def jumps_work(int steps):
    """Doubles of scratch that a jumps function needs."""
    return hs_jumps_work(steps)


def jumps_ask(Rows rows not None, int add, bint have_eps, double value, const double[::1] node,
              const double[::1] weight, double[::1] work):
    """Scaled: one certified delta at eps = value; Crossing: one certified eps at log delta = value; see hs.h."""
    cdef hs_run run = run_of(rows, add)
    cdef hs_rule rule = rule_of(node, weight)
    cdef hs_crossing at
    cdef int status
    memset(&at, 0, sizeof(at))
    with nogil:
        if have_eps:
            status = hs_jumps_delta(&run, value, &rule, &work[0], work.shape[0], &at.delta)
        else:
            status = hs_jumps_eps(&run, value, &rule, &work[0], work.shape[0], &at)
    return answer(status, have_eps, &at)


def bulk_line_work():
    """Doubles of scratch that a bulk_line function needs."""
    return hs_bulk_line_work()


def bulk_line_ask(const unsigned char[::1] pair not None, double k, bint have_eps, double value,
                  const double[::1] node, const double[::1] weight, double[::1] work, double start=0,
                  double known=HUGE_VAL):
    """Scaled or Crossing, as of jumps_ask; start is of the latter; see hs.h."""
    cdef const hs_pair *one = pair_of(pair)
    cdef hs_rule rule = rule_of(node, weight)
    cdef hs_crossing at
    cdef int status
    memset(&at, 0, sizeof(at))
    with nogil:
        if have_eps:
            status = hs_bulk_line_delta(one, k, value, known, &rule, &work[0], work.shape[0], &at.delta)
        else:
            status = hs_bulk_line_eps(one, k, value, start, known, &rule, &work[0], work.shape[0], &at)
    return answer(status, have_eps, &at)


def bulk_upper(const unsigned char[::1] pair not None, double k, double eps, double enough, const double[::1] node,
               const double[::1] weight, double[::1] work):
    """(status, an upper bound of log delta) at eps; see hs.h."""
    cdef const hs_pair *one = pair_of(pair)
    cdef hs_rule rule = rule_of(node, weight)
    cdef double log_delta = 0
    cdef int status
    with nogil:
        status = hs_bulk_upper(one, k, eps, enough, &rule, &work[0], work.shape[0], &log_delta)
    return status, log_delta


def single_delta(const unsigned char[::1] pair not None, double eps):
    """Scaled: one certified delta of one step; see hs.h."""
    cdef const hs_pair *one = pair_of(pair)
    cdef hs_point p
    cdef int status
    memset(&p, 0, sizeof(p))
    status = hs_single_delta(one, eps, &p)
    return scaled(status, &p)


def hyperbola_ask(Rows rows not None, int add, bint have_eps, double value, double log_tol, double[::1] work):
    """Scaled or Crossing, as of jumps_ask; see hs.h."""
    cdef hs_run run = run_of(rows, add)
    cdef hs_crossing at
    cdef int status
    memset(&at, 0, sizeof(at))
    with nogil:
        if have_eps:
            status = hs_hyperbola_delta(&run, value, log_tol, &work[0], work.shape[0], &at.delta)
        else:
            status = hs_hyperbola_eps(&run, value, log_tol, &work[0], work.shape[0], &at)
    return answer(status, have_eps, &at)


cdef hs_contour contour_of(Rows rows, int add, hs_poll *poll) except *:
    cdef hs_contour C
    memset(&C, 0, sizeof(C))
    C.run, C.n_threads, C.n_max, C.poll = run_of(rows, add), 1, HS_OUTER_MAX, poll
    return C


def contour_ask(Rows rows not None, int add, bint have_eps, double value, double rtol, double T0, int n_threads,
                cnp.ndarray work not None, int64_t n_max=HS_OUTER_MAX):
    """Scaled or Crossing, as of jumps_ask; see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_contour C = contour_of(rows, add, &poll)
    cdef hs_crossing at
    cdef int status
    cdef int64_t n_lent = cnp.PyArray_SIZE(work)
    cdef double *lent = doubles(work, n_lent)
    memset(&at, 0, sizeof(at))
    C.n_threads, C.n_max, C.rtol, C.T0 = n_threads, n_max, rtol, T0
    with nogil:
        status = hs_contour_ask(&C, have_eps, value, lent, n_lent, &at)
    passed(&poll)
    return answer(status, have_eps, &at, C.run.n_fits > 0)


def contour_curve(Rows rows not None, int add, const double[::1] eps, double rtol, double T0, int n_threads,
                  double[::1] work):
    """Rows (status, log_scale, lower, estimate, upper, five terms) of deltas at ascending eps; see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_contour C = contour_of(rows, add, &poll)
    cdef int status
    out = np.empty((eps.shape[0], 10))
    cdef double[:, ::1] o = out
    C.n_threads, C.rtol, C.T0 = n_threads, rtol, T0
    with nogil:
        status = hs_contour_curve(&C, eps.shape[0], &eps[0], &work[0], work.shape[0], &o[0, 0])
    passed(&poll)
    check(status, "contour")
    return out


def contour_larger(Rows rows not None, bint have_eps, double value, double known, double rtol, double T0,
                   int n_threads, cnp.ndarray work not None, int64_t n_max=HS_OUTER_MAX, Rows add=None):
    """(Scaled or Crossing of REMOVE, of ADD or None where that is left out, tilt, at_zero); see hs.h. add: the rows
    of ADD, where these are pairs, in the order of those of REMOVE."""
    cdef hs_poll poll = polling()
    cdef hs_contour C = contour_of(rows, 0, &poll)
    cdef hs_crossing at[2]
    cdef hs_ceiling upper = hs_ceiling(0, 0, 0)
    cdef int status, second
    cdef int64_t n_lent = cnp.PyArray_SIZE(work)
    cdef double *lent = doubles(work, n_lent)
    memset(at, 0, sizeof(at))
    C.n_threads, C.n_max, C.rtol, C.T0 = n_threads, n_max, rtol, T0
    if add is not None:
        C.other = add.run.pair
        if add.run.b != rows.run.b or (C.other == NULL) != (C.run.pair == NULL):
            check(HS_BAD_ARGUMENT, "rows")
    with nogil:
        status = hs_contour_larger(&C, have_eps, value, known, lent, n_lent, at, &second, &upper)
    passed(&poll)
    return (answer(status, have_eps, &at[0]), answer(second, have_eps, &at[1]) if second != HS_LEFT_OUT else None,
            upper.tilt, upper.at_zero)


def chernoff_upper(Rows rows not None, int add, int have_eps, double value, double[::1] work, double tilt=0.0):
    """(status, bound, tilt): an upper bound of log delta at eps = value, or of eps at log delta = value, or with a tilt
    in (-1, 0) of log(1 - delta); see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_contour C = contour_of(rows, add, &poll)
    cdef double upper = 0
    cdef int status
    C.t = tilt
    with nogil:
        status = hs_contour_chernoff_upper(&C, have_eps, value, &work[0], work.shape[0], &upper)
    passed(&poll)
    return status, upper, C.t


def contour_estimate(Rows rows not None, int add, double eps, double[::1] work):
    """(status, about log delta at eps); see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_contour C = contour_of(rows, add, &poll)
    cdef double log_delta = 0
    cdef int status
    with nogil:
        status = hs_contour_estimate(&C, eps, &work[0], work.shape[0], &log_delta)
    passed(&poll)
    return status, log_delta


FITS_MAX = HS_FITS_MAX
FIT_NODES, FIT_TAIL, FIT_LOSS = HS_FIT_NODES, HS_FIT_TAIL, HS_FIT_LOSS
KEPT_MORE, KEPT_ROOM, KEPT_WORK = HS_KEPT_MORE, hs_kept_room(), hs_kept_work()


def kept_make(Rows rows not None, int add, int have_eps, double value, double rtol, double T0, double[::1] kept,
              double[::1] work, int more=HS_KEPT_MORE, int n_threads=1, int sides=1):
    """The status of a line that was made to be kept in KEPT_ROOM doubles; see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_contour C = contour_of(rows, add, &poll)
    cdef int status
    lengths(kept.shape[0], hs_kept_room(), hs_kept_room())
    C.rtol, C.T0, C.more, C.sides, C.n_threads = rtol, T0, more, sides, n_threads
    with nogil:
        status = hs_kept_make(&C, have_eps, value, &work[0], work.shape[0], &kept[0])
    passed(&poll)
    return status


def kept_size(const double[::1] kept):
    """Of the doubles of a line those that it needs, the first ones."""
    lengths(kept.shape[0], hs_kept_room(), hs_kept_room())
    return hs_kept_size(&kept[0], kept.shape[0])


def kept_ask(double[::1] kept, const double[:, ::1] rows, int n_kept, int have_eps, double value, bint ruled,
             double[::1] work):
    """(Crossing or Scaled, upper bound of log delta in the other direction) of a kept line; see hs.h."""
    cdef hs_crossing at
    cdef double below = HUGE_VAL
    cdef int status
    cdef hs_more more
    more.n, more.n_kept, more.rows = rows.shape[0], n_kept, &rows[0, 0] if rows.shape[0] else NULL
    if kept.shape[0] != hs_kept_size(&kept[0], kept.shape[0]):
        lengths(kept.shape[0], hs_kept_room(), hs_kept_room())
    lengths(rows.shape[1], 3, 3)
    memset(&at, 0, sizeof(at))
    with nogil:
        status = hs_kept_ask(&kept[0], &more, have_eps, value, &work[0], work.shape[0], &at, &below)
    return answer(status, have_eps, &at, ruled), below


def hyperbola_work(int b):
    """Doubles of scratch that the hyperbola may need for steps of b branches in all."""
    return hs_hyperbola_work(b)


def contour_work(int b, int n_threads=1):
    """Doubles of scratch that the line contour may need for b distinct steps."""
    return hs_contour_work(b, n_threads, HS_OUTER_MAX)


include "_core_grids.pxi"

# step_moments.c

STEP_LOWEST, STEP_BOXES, STEP_MOMENTS = HS_STEP_LOWEST, HS_STEP_BOXES, HS_STEP_MOMENTS
RATE_CELLS, RATE_DEGREES, RATE_LOWEST = HS_RATE_CELLS, HS_RATE_DEGREES, HS_RATE_LOWEST


def step_moments_add(const double[::1] m, const int64_t[::1] k, int sign, uint64_t[:, :, ::1] sums):
    """Add the moments of steps of one rate to `sums`, or with sign -1 take them away; k may be None, for ones: hs.h."""
    cdef int64_t n = m.shape[0]
    cdef int status
    _words(sums, HS_STEP_BOXES, HS_STEP_MOMENTS, 2)
    if n == 0 and (k is None or k.shape[0] == 0):
        return
    lengths(n, k.shape[0] if k is not None else n, n)
    cdef const int64_t *counts = &k[0] if k is not None else NULL
    with nogil:
        status = hs_step_moments_add(n, &m[0], counts, sign, &sums[0, 0, 0])
    check(status, "moments")


def step_moments_add_one(double m, int64_t n, uint64_t[:, :, ::1] sums):
    """Add the moments of one step n times to `sums`."""
    _words(sums, HS_STEP_BOXES, HS_STEP_MOMENTS, 2)
    check(hs_step_moments_add(1, &m, &n, 1, &sums[0, 0, 0]), "moments")


def rate_moments_add(const double[::1] m, const double[::1] q, const int64_t[::1] k, int sign,
                     uint64_t[:, :, ::1] sums):
    """The same of steps of one box of shifts and one cell of rates: hs.h."""
    cdef int64_t n = lengths(m.shape[0], q.shape[0], m.shape[0])
    cdef int status
    _words(sums, HS_STEP_MOMENTS, HS_RATE_DEGREES, 3)
    lengths(n, k.shape[0] if k is not None else n, n)
    cdef const int64_t *counts = &k[0] if k is not None else NULL
    with nogil:
        status = hs_rate_moments_add(n, &m[0], &q[0], counts, sign, &sums[0, 0, 0])
    check(status, "moments")


def rate_moments_add_one(double m, double q, int64_t n, uint64_t[:, :, ::1] sums):
    """Add the moments of one step n times to `sums`."""
    _words(sums, HS_STEP_MOMENTS, HS_RATE_DEGREES, 3)
    check(hs_rate_moments_add(1, &m, &q, &n, 1, &sums[0, 0, 0]), "moments")


def rate_moments_of(double q, const uint64_t[:, ::1] box, uint64_t[:, :, ::1] sums):
    """Add the moments of one box of steps of rate q to those of their cell."""
    lengths(box.shape[0], HS_STEP_MOMENTS, HS_STEP_MOMENTS)
    lengths(box.shape[1], 2, 2)
    _words(sums, HS_STEP_MOMENTS, HS_RATE_DEGREES, 3)
    check(hs_rate_moments_of(q, &box[0, 0], &sums[0, 0, 0]), "moments")


def moments_join(int sign, const uint64_t[:, :, ::1] others, uint64_t[:, :, ::1] sums):
    """Add others to sums, or with sign -1 take them away."""
    _words(others, sums.shape[0], sums.shape[1], sums.shape[2])
    check(hs_moments_join(sign, sums.shape[2], sums.shape[0] * sums.shape[1], &others[0, 0, 0], &sums[0, 0, 0]),
          "moments")


def step_moments_read(const uint64_t[:, :, ::1] sums):
    """The moments of one rate as doubles, [boxes, degrees]; see hs.h."""
    out = np.empty((HS_STEP_BOXES, HS_STEP_MOMENTS))
    cdef double[:, ::1] moments = out
    _words(sums, HS_STEP_BOXES, HS_STEP_MOMENTS, 2)
    check(hs_step_moments_read(&sums[0, 0, 0], &moments[0, 0]), "moments")
    return out


cdef int _words(const uint64_t[:, :, ::1] sums, int64_t boxes, int64_t degrees, int64_t words) except -1:
    lengths(boxes, sums.shape[0], boxes)
    lengths(degrees, sums.shape[1], degrees)
    lengths(words, sums.shape[2], words)
    return 0


# individual.c


ctypedef fused real_t:
    float
    double


def individual_charge(const real_t[::1] norms, double scale, double top, int64_t limit, int sticky, int turn,
                      const int64_t[::1] spent, int64_t[::1] after, uint8_t[::1] active, int n_threads,
                      int with_checksum):
    """(status, checksum, first bad record) of one step over all records; see hs.h. after, active may be None, none
    empty."""
    cdef uint64_t checksum = 0
    cdef int64_t bad = 0
    cdef hs_charge step = hs_charge(&norms[0], scale, top, limit, real_t is float, sticky, turn)
    cdef int status
    lengths(norms.shape[0], spent.shape[0], norms.shape[0] if after is None else after.shape[0])
    lengths(norms.shape[0], norms.shape[0], norms.shape[0] if active is None else active.shape[0])
    with nogil:
        status = hs_individual_charge(norms.shape[0], &step, &spent[0], NULL if after is None else &after[0],
                                      NULL if active is None else &active[0], n_threads,
                                      &checksum if with_checksum else NULL, &bad)
    return status, checksum, bad


def individual_charge_some(const real_t[::1] norms, const int64_t[::1] index, double scale, double top, int64_t limit,
                           int sticky, const int64_t[::1] spent, int64_t[::1] after, uint8_t[::1] active):
    """(status, change of the checksum, first bad position) of one step over some records; see hs.h."""
    cdef uint64_t change = 0
    cdef int64_t bad = 0
    cdef hs_charge step = hs_charge(&norms[0], scale, top, limit, real_t is float, sticky, 0)
    cdef int status
    lengths(norms.shape[0], index.shape[0], after.shape[0])
    lengths(norms.shape[0], norms.shape[0], active.shape[0])
    with nogil:
        status = hs_individual_charge_some(spent.shape[0], norms.shape[0], &step, &index[0], &spent[0], &after[0],
                                           &active[0], &change, &bad)
    return status, change, bad


def individual_scatter(const int64_t[::1] index, const int64_t[::1] words, int64_t[::1] spent):
    """spent[index] = words."""
    cdef int status
    lengths(index.shape[0], words.shape[0], index.shape[0])
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


def individual_tilts(Rows rows not None, int add, double k_total, const double[::1] t, int n_threads):
    """Upper bounds of log M of every level at every tilt, [levels, tilts]."""
    cdef hs_run levels = run_of(rows, add)
    up = np.empty((levels.b, t.shape[0]))
    cdef double[:, ::1] out = up
    cdef double[::1] work = np.empty(hs_contour_work(1, HS_CHUNKS, 1))
    cdef hs_poll poll = polling()
    cdef hs_lent lent = lent_of(work, &poll, n_threads)
    cdef int status
    with nogil:
        status = hs_individual_tilts(&levels, k_total, t.shape[0], &t[0], &lent, &out[0, 0])
    passed(&poll)
    check(status, "individual")
    return up


def individual_chernoff(const int32_t[:, ::1] counts, const double[::1] t, const double[:, ::1] up, double log_delta,
                        int n_threads):
    """(bound of eps, index of its tilt) of every record."""
    best, which = np.empty(counts.shape[0]), np.empty(counts.shape[0], np.int32)
    cdef double[::1] b = best
    cdef int32_t[::1] w = which
    cdef hs_poll poll = polling()
    cdef hs_lent lent = hs_lent(NULL, 0, n_threads, &poll)
    cdef hs_counts table = hs_counts(counts.shape[0], counts.shape[1], &counts[0, 0])
    cdef int status
    lengths(counts.shape[1], up.shape[0], counts.shape[1])
    lengths(t.shape[0], up.shape[1], t.shape[0])
    with nogil:
        status = hs_individual_chernoff(&table, t.shape[0], &t[0], &up[0, 0], log_delta, &lent, &b[0], &w[0])
    passed(&poll)
    check(status, "individual")
    return best, which


def individual_group(Rows rows not None, int add, double margin, double T0, double k_total,
                     const int32_t[:, ::1] counts, double log_delta, int n_threads, double[::1] eps_upper,
                     double[::1] gap):
    """The status: eps_upper is lowered to the bounds on one contour, gap filled; see hs.h."""
    cdef hs_run levels = run_of(rows, add)
    cdef hs_counts table = hs_counts(counts.shape[0], counts.shape[1], &counts[0, 0])
    cdef double[::1] work = np.empty(hs_individual_work(levels.b))
    cdef hs_poll poll = polling()
    cdef hs_lent lent = lent_of(work, &poll, n_threads)
    cdef int status
    lengths(levels.b, counts.shape[1], levels.b)
    lengths(counts.shape[0], eps_upper.shape[0], gap.shape[0])
    with nogil:
        status = hs_individual_group(&levels, &table, margin, T0, k_total, log_delta, &lent, &eps_upper[0], &gap[0])
    passed(&poll)
    return status
# batch.c


def batch(const double[::1] m, const double[::1] q, const double[::1] k, const double[::1] at, int want_eps,
          int directions, int replaced, double rtol, double T0, double widest, int n_threads, double[:, ::1] ends,
          unsigned char[::1] done):
    """Fill ends = (lower, estimate, upper) and done of every query; see hs.h."""
    cdef int status, n = lengths(m.shape[0], q.shape[0], k.shape[0])
    lengths(n, at.shape[0], ends.shape[1])
    lengths(3, ends.shape[0], 3)
    lengths(n, done.shape[0], n)
    cdef double[::1] work = np.empty(hs_batch_work(n_threads))
    cdef hs_poll poll = polling()
    cdef hs_lent lent = lent_of(work, &poll, n_threads)
    cdef hs_asked asked = hs_asked(want_eps, directions, replaced, rtol, T0, widest)
    with nogil:
        status = hs_batch(n, &m[0], &q[0], &k[0], &at[0], &asked, &lent, &ends[0, 0], &done[0])
    passed(&poll)
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
        status = hs_sampling_tails(q, q_err, up, down, s.shape[0], &s[0], &t[0, 0], &edge)
    check(status, "sampling")
    return table, edge


# cgf_upper.c


def two_log_m(const unsigned char[::1] pair, double z, double nats=40.0):
    """(log M(z), error) of an hs_pair."""
    cdef double log_m = 0.0, err = 0.0
    cdef double[::1] work = np.empty(hs_two_work())
    cdef const hs_pair *one = pair_of(pair)
    cdef int status
    with nogil:
        status = hs_two_log_m_upper(one, z, nats, &work[0], &log_m, &err)
    check(status, "two-sided transform")
    return log_m, err


include "_core_constant.pxi"

# mixed.c, laplace.c


cdef int lend_laws(hs_mixed *A, const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice,
                   double[::1] tables, hs_poll *poll) except -1:
    """Pointers and settings shared by the calls below: points holds the rows x, l, lp, dl, dp."""
    memset(A, 0, sizeof(hs_mixed))
    lengths(7, table.shape[1], 7)
    lengths(5, points.shape[0], lattice.shape[0])
    cdef double n = 0
    cdef Py_ssize_t i
    for i in range(table.shape[0]):
        n += table[i, 5]
    if not n <= points.shape[1]:
        check(HS_BAD_ARGUMENT, "lengths of arrays")
    A.poll, A.b, A.table = poll, table.shape[0], &table[0, 0]
    A.x, A.l, A.lp, A.dl, A.dp = &points[0, 0], &points[1, 0], &points[2, 0], &points[3, 0], &points[4, 0]
    A.step, A.step_low, A.d_step, A.shift, A.d_shift = lattice[0], lattice[1], lattice[2], lattice[3], lattice[4]
    if tables is not None and tables.shape[0]:
        A.tables, A.n_tables = &tables[0], tables.shape[0]


def mixed_ask(const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice, bint have_eps,
              double value, double rtol, double T0, double wide, int64_t n_nodes, double[::1] place, double[::1] work,
              double[::1] tables=None):
    """Scaled or Crossing, as of jumps_ask; place: (part, place) of hs.h, read and written."""
    cdef hs_mixed A
    return mixed_asked(&A, 0, 0, table, points, lattice, have_eps, value, rtol, T0, wide, n_nodes, place, work, tables)


cdef mixed_asked(hs_mixed *A, int keep, int complement, const double[:, ::1] table, const double[:, ::1] points,
                 const double[::1] lattice, bint have_eps, double value, double rtol, double T0, double wide,
                 int64_t n_nodes, double[::1] place, double[::1] work, double[::1] tables):
    """The same by A, or 1 - delta at eps; the line of a delta is kept where that is asked for."""
    cdef hs_poll poll = polling()
    cdef hs_crossing at
    cdef int status
    lengths(2, place.shape[0], 2)
    lend_laws(A, table, points, lattice, tables, &poll)
    memset(&at, 0, sizeof(at))
    A.rtol, A.T0, A.wide, A.n_nodes, A.keep, A.part, A.place = rtol, T0, wide, n_nodes, keep, place[0], place[1]
    A.complement = complement
    with nogil:
        if have_eps:
            status = hs_mixed_delta(A, value, &work[0], work.shape[0], &at.delta)
        else:
            status = hs_mixed_eps(A, value, &work[0], work.shape[0], &at)
    A.poll = NULL
    place[0], place[1] = A.part, A.place
    passed(&poll)
    return answer(status, have_eps, &at)


@cython.final
cdef class MixedLine:
    """The line of a delta, or with `complement` of 1 - delta, which is asked once, and then of those near it, or with
    `wide` of many that lie apart."""
    cdef hs_mixed A
    cdef int complement, keep
    cdef object table, points, lattice, work

    def __cinit__(self, bint complement=False, bint wide=False):
        self.complement = complement
        self.keep = 1 + wide

    @property
    def placed(self):
        """Whether there is a line."""
        return bool(self.A.placed)

    def ask(self, const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice, bint have_eps,
            double value, double rtol, double T0, double wide, int64_t n_nodes, double[::1] place, double[::1] work,
            double[::1] tables=None):
        """mixed_ask, whose arrays but `place` are kept and must not change."""
        self.table, self.points, self.lattice, self.work = table, points, lattice, work
        return mixed_asked(&self.A, self.keep, self.complement, table, points, lattice, have_eps, value, rtol, T0, wide,
                           n_nodes, place, work, tables)

    def near(self, double eps):
        """Scaled: a certified delta on the same line; see hs.h."""
        cdef hs_poll poll = polling()
        cdef hs_point p
        cdef int status
        memset(&p, 0, sizeof(p))
        self.A.poll = &poll
        with nogil:
            status = hs_mixed_near(&self.A, eps, &p)
        self.A.poll = NULL
        passed(&poll)
        return scaled(status, &p)

    def curve(self, const double[::1] eps):
        """Rows (status, log_scale, lower, estimate, upper, four terms) of deltas on the same line."""
        cdef hs_poll poll = polling()
        cdef hs_point p
        cdef Py_ssize_t i
        out = np.empty((eps.shape[0], 9))
        cdef double[:, ::1] rows = out
        self.A.poll = &poll
        memset(&p, 0, sizeof(p))
        with nogil:
            for i in range(eps.shape[0]):
                rows[i, 0] = hs_mixed_near(&self.A, eps[i], &p)
                rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4] = p.log_scale, p.lower, p.estimate, p.upper
                rows[i, 5], rows[i, 6], rows[i, 7], rows[i, 8] = p.aliasing, p.truncation, p.inner, p.rounding
        self.A.poll = NULL
        passed(&poll)
        return out


def mixed_cgf(const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice, double t,
              double[::1] work, double[::1] tables=None):
    """(status, K, bound of its error) at tilt t; see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_mixed A
    cdef double value = 0, err = 0
    cdef int status
    lend_laws(&A, table, points, lattice, tables, &poll)
    A.n_nodes = 0
    with nogil:
        status = hs_mixed_cgf(&A, t, &work[0], work.shape[0], &value, &err)
    passed(&poll)
    return status, value, err


def mixed_upper(const double[:, ::1] table, const double[:, ::1] points, const double[::1] lattice, double eps,
                double T0, double[::1] work, double[::1] tables=None):
    """(status, an upper bound of log delta) at eps; see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_mixed A
    cdef double log_delta = 0
    cdef int status
    lend_laws(&A, table, points, lattice, tables, &poll)
    A.T0, A.n_nodes = T0, 0
    with nogil:
        status = hs_mixed_upper(&A, eps, &work[0], work.shape[0], &log_delta)
    passed(&poll)
    return status, log_delta


def mixed_work(int64_t n_laws, int64_t n_points, int64_t n_subnormal, int64_t n_nodes):
    """Doubles of scratch for n_laws laws of n_points points in all, n_subnormal subsampled normal laws, at most n_nodes
    nodes."""
    return hs_mixed_work(n_laws, n_points, n_subnormal, n_nodes)


def allocation_work():
    """Doubles of the tables of one epoch of random allocation in one direction, zeros at first."""
    return hs_allocation_work()


def allocation_line(double m, double t, double c, const double[::1] y, double[::1] tables):
    """(log F(-c), bound of its error, rows re, im, err of F(-c-iy)/F(-c) at every y), or None; see
    csrc/law/allocation.c."""
    cdef int64_t n = y.shape[0]
    out = np.empty(2 + 3 * n)
    cdef double[::1] w = tables, o = out
    if w.shape[0] < hs_allocation_work():
        check(HS_BAD_ARGUMENT, "tables")
    cdef int status
    with nogil:
        status = hs_allocation_line(m, t, c, n, &y[0] if n else NULL, &w[0], &o[0])
    return None if status else (float(out[0]), float(out[1]), out[2:].reshape(3, n))


TERM_LANES = HS_TERM_LANES


def term_turned(const double[:, ::1] term, const double[::1] y):
    """Rows of sums over one term's nodes at frequencies y; see turn_terms of csrc/law/one_term.c."""
    out = np.empty((4, lengths(4, term.shape[0], 4) and y.shape[0]))
    cdef double[:, ::1] o = out
    cdef int status = HS_BAD_ARGUMENT
    if term.shape[1] and y.shape[0]:
        with nogil:
            status = hs_term_turned(term.shape[1], &term[0, 0], y.shape[0], &y[0], &o[0, 0])
    check(status, "turned")
    return out


def term_transform(const double[:, ::1] term, bint whole, const double[:, ::1] s):
    """Rows of sums over one term's nodes at complex s; see transform_terms of csrc/law/one_term.c."""
    out = np.empty((3, lengths(6, term.shape[0], 6) and lengths(2, s.shape[0], 2) and s.shape[1]))
    cdef double[:, ::1] o = out
    cdef int status = HS_BAD_ARGUMENT
    if term.shape[1] and s.shape[1]:
        with nogil:
            status = hs_term_transform(term.shape[1], &term[0, 0], whole, s.shape[1], &s[0, 0], &o[0, 0])
    check(status, "transform")
    return out


def term_grown(const double[:, ::1] term, double r, double rho):
    """Sums over one term's nodes at tilt r; see grow_terms of csrc/law/one_term.c."""
    cdef double out[4]
    cdef int status = HS_BAD_ARGUMENT
    lengths(4, term.shape[0], 4)
    if term.shape[1]:
        status = hs_term_grown(term.shape[1], &term[0, 0], r, rho, out)
    check(status, "grown")
    return out[0], out[1], out[2], out[3]


def term_jumps(double m, double b, double eta, double last, const double[::1] x, const double[:, ::1] rows):
    """Rows of sums over y at x, rows being y and two weights; see csrc/law/one_term.c."""
    out = np.empty((3, lengths(3, rows.shape[0], 3) and x.shape[0]))
    cdef double[:, ::1] o = out
    cdef hs_rejected of = hs_rejected(m, b, eta, last)
    cdef int status = HS_BAD_ARGUMENT
    if rows.shape[1] and x.shape[0]:
        with nogil:
            status = hs_term_jumps(&of, x.shape[0], &x[0], rows.shape[1], &rows[0, 0], &o[0, 0])
    check(status, "jumps")
    return out


def term_two(double m, double peak, const double[::1] x, const double[:, ::1] cell, const double[:, ::1] shell):
    """Sums over cells and shells at every x; see csrc/law/one_term.c."""
    lengths(3, cell.shape[0], 3)
    out = np.empty(lengths(2, shell.shape[0], 2) and x.shape[0])
    cdef double[::1] o = out
    cdef int status = HS_BAD_ARGUMENT
    if x.shape[0] and cell.shape[1] and shell.shape[1]:
        with nogil:
            status = hs_term_two(m, peak, x.shape[0], &x[0], cell.shape[1], &cell[0, 0], shell.shape[1], &shell[0, 0],
                                 &o[0])
    check(status, "two")
    return out


def ranged_curve(const int64_t[::1] m, double h, int above, double[::1] work):
    """The curve of adaptive steps of bounded range at 0, h, ..; see csrc/curve/ranged.c."""
    cdef int64_t points = 1, i
    cdef int status
    if not m.shape[0]:
        check(HS_BAD_ARGUMENT, "ranged")
    for i in range(m.shape[0]):
        if not 1 <= m[i] <= 1 << 24:
            check(HS_BAD_ARGUMENT, "ranged")
        points += m[i]
    side = np.empty(points)
    cdef double[::1] o = side
    with nogil:
        status = hs_ranged_curve(m.shape[0], &m[0], h, above, &work[0], work.shape[0], &o[0])
    check(status, "ranged")
    return side


def ranged_work(int64_t points, int64_t widest):
    """Doubles of scratch for a curve of so many points and steps as wide as that."""
    return hs_ranged_work(points, widest)


def halves_sums(int64_t k, const double[:, ::1] step, const double[:, :, ::1] terms, double start, int64_t n):
    """The n sums of k losses of one step, a column each; see csrc/curve/halves.c."""
    cdef int64_t m = lengths(terms.shape[1], step.shape[1], step.shape[1])
    lengths(3, step.shape[0], 3)
    lengths(2, terms.shape[0], 2)
    lengths(k + 1, terms.shape[2], k + 1)
    out, work = np.empty((5, lengths(n, n, n))), np.empty(hs_halves_work(m))
    cdef double[:, ::1] o = out
    cdef double[::1] w = work
    with nogil:
        hs_halves_sums(m, k, &step[0, 0], &terms[0, 0, 0], start, &w[0], n, &o[0, 0])
    return out


def halves_table(const double[::1] num, const double[::1] den):
    """Rows y_below, y_above, x_below, x_above after the first 0, 1, .. atoms of one law; see csrc/curve/halves.c."""
    cdef int64_t n = lengths(num.shape[0], den.shape[0], num.shape[0])
    out = np.empty((n + 1, 4))
    cdef double[:, ::1] o = out
    with nogil:
        hs_halves_table(n, &num[0], &den[0], &o[0, 0])
    return out


def halves_tails(const double[:, ::1] a, const double[::1] b, const double[:, ::1] tails, const double[::1] s):
    """Rows y_below, y_above, x_below, x_above of the sum of two laws at every s; see csrc/curve/halves.c."""
    lengths(3, a.shape[0], 3)
    lengths(a.shape[1], a.shape[1], a.shape[1])
    lengths(4, tails.shape[1], 4)
    lengths(b.shape[0], tails.shape[0] - 1, b.shape[0])
    out = np.empty((lengths(s.shape[0], s.shape[0], s.shape[0]), 4))
    cdef double[:, ::1] o = out
    with nogil:
        hs_halves_tails(a.shape[1], &a[0, 0], b.shape[0], &b[0], &tails[0, 0], s.shape[0], &s[0], &o[0, 0])
    return out


# gdp.c


cdef hs_gdp_point *gdp_points(const double[:, ::1] points) except NULL:
    """Rows (eps, low, high, left, left_high, mu, rough, covered) of points; see hs.h."""
    lengths(8, points.shape[1], 8)
    if not points.shape[0]:
        check(HS_BAD_ARGUMENT, "no points")
    return <hs_gdp_point *> &points[0, 0]


def gdp_tangent(double mu, double t, double eps):
    """(lower, upper) of the tangent of G_mu at t, at eps, then of 1 less that."""
    cdef hs_gdp_ends at
    hs_gdp_tangent(mu, t, eps, &at)
    return at.lower, at.upper, at.left_lower, at.left_upper


def gdp_cover(double mu, double[:, ::1] points):
    """By how much G_mu lies above the points; writes which cells it covers."""
    cdef hs_gdp_point *p = gdp_points(points)
    over = np.empty(points.shape[0])
    cdef double[::1] o = over
    with nogil:
        hs_gdp_cover(mu, points.shape[0], p, &o[0])
    return over


def gdp_cuts(double mu, double room, double far, const double[:, ::1] points, const double[::1] over):
    """New points in cells that are not covered; None where one is too short to be cut."""
    cdef hs_gdp_point *p = gdp_points(points)
    cdef int64_t found
    lengths(points.shape[0], over.shape[0], points.shape[0])
    out = np.empty((points.shape[0] * (HS_GDP_PIECES - 1), 8))
    cdef double[:, ::1] o = out
    with nogil:
        found = hs_gdp_cuts(mu, room, far, points.shape[0], p, &over[0], <hs_gdp_point *> &o[0, 0])
    return out[:found] if found >= 0 else None


def gdp_fit(double best, double end, double close, double[:, ::1] points):
    """The larger of `best` and the mu that is proved to be needed at one of the points; writes their mu."""
    cdef hs_gdp_point *p = gdp_points(points)
    with nogil:
        best = hs_gdp_fit(best, end, close, points.shape[0], p)
    return best


def mixture_points(const double[:, ::1] rows, const double[::1] shifts, const double[::1] weights, int add):
    """Rows x, l, lp, dl, dp of all laws' quadrature points and two entries more, one law after the other; see
    csrc/law/mixture.c. rows: (shifts, first node, mesh, nodes, nodes beyond, reach, turn) of every law."""
    cdef Py_ssize_t i, at = 0, start = 0
    cdef double n = 0, held = 0
    lengths(7, rows.shape[1], 7)
    lengths(shifts.shape[0], weights.shape[0], shifts.shape[0])
    for i in range(rows.shape[0]):
        held += rows[i, 0]
        n += rows[i, 3] + 2
        if not (1 <= rows[i, 0] <= HS_SHIFTS_MAX and rows[i, 3] >= 2 and 1 <= rows[i, 4] < 1e9):
            check(HS_BAD_ARGUMENT, "mixture")
    if held != shifts.shape[0] or not n < 1e9:
        check(HS_BAD_ARGUMENT, "lengths of arrays")
    out = np.empty((5, <Py_ssize_t>n))
    cdef double[:, ::1] o = out
    cdef hs_mixture g
    with nogil:
        for i in range(rows.shape[0]):
            g.n, g.first, g.h, g.nodes = <int>rows[i, 0], rows[i, 1], rows[i, 2], <int64_t>rows[i, 3]
            g.beyond, g.reach, g.turn = <int64_t>rows[i, 4], rows[i, 5], rows[i, 6]
            g.shift, g.weight = &shifts[start], &weights[start]
            hs_mixture_points(&g, add, &o[1, at], &o[2, at], &o[3, at], &o[4, at])
            start += g.n
            at += g.nodes + 2
    out[0] = out[1]
    return out


def sublaplace_points(double m, double q, int add, int64_t panels, const double[::1] node, const double[::1] weight):
    """Rows x, l, lp, dl, dp of the quadrature points of a subsampled Laplace step; see csrc/law/laplace.c."""
    cdef hs_rule rule = rule_of(node, weight)
    out = np.empty((5, 2 + panels * node.shape[0]))
    cdef double[:, ::1] o = out
    cdef int status
    with nogil:
        status = hs_sublaplace_points(m, q, add, panels, &rule, &o[1, 0], &o[2, 0], &o[3, 0], &o[4, 0])
    check(status, "laplace")
    out[0] = out[1]
    return out
