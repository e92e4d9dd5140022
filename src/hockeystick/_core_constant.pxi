# The gate to the constant-time routes: saddlepoint.c, edgeworth*.c, prawitz.c. Part of _core.pyx.

# saddlepoint.c


def saddle_work():
    """Doubles of scratch that every saddle-point function needs."""
    return hs_saddle_work()


cdef object saddle(int status, double estimate, const hs_saddle *s):
    terms = (s.berry_esseen, s.quadrature, s.rounding, s.interpolation)
    return Saddle(status, s.kind, s.lower, estimate, s.upper, s.raw_estimate, terms, s.tilt, s.skew)


def saddle_ask(Rows rows not None, int add, bint have_eps, double value, int kind, double[::1] work):
    """Saddle: log delta at eps = value, or eps at log delta = value; see hs.h."""
    cdef hs_saddle s
    cdef hs_poll poll = polling()
    cdef hs_run run = run_of(rows, add)
    cdef hs_lent lent = lent_of(work, &poll)
    cdef int status
    memset(&s, 0, sizeof(s))
    with nogil:
        if have_eps:
            status = hs_saddle_delta(&run, value, kind, &lent, &s)
        else:
            status = hs_saddle_eps(&run, value, kind, &lent, &s)
    passed(&poll)
    return saddle(status, s.log_estimate if have_eps else s.estimate, &s)


def saddle_eps_both(Rows rows not None, double log_delta, int kind, double wall, double[::1] work):
    """Saddle: the larger eps over both directions; see hs.h."""
    cdef hs_saddle s
    cdef hs_poll poll = polling()
    cdef hs_run run = run_of(rows, 0)
    cdef hs_lent lent = lent_of(work, &poll)
    cdef int status
    memset(&s, 0, sizeof(s))
    with nogil:
        status = hs_saddle_eps_both(&run, log_delta, kind, wall, &lent, &s)
    passed(&poll)
    return saddle(status, s.estimate, &s)


def saddle_cumulants(Rows rows not None, int add, double t, double[::1] work):
    """(status, 14 numbers) of the composition at tilt t; see hs.h."""
    out = np.empty(14)
    cdef double[::1] to = out
    cdef hs_poll poll = polling()
    cdef hs_run run = run_of(rows, add)
    cdef hs_lent lent = lent_of(work, &poll)
    cdef int status
    with nogil:
        status = hs_saddle_cumulants(&run, t, &lent, &to[0])
    passed(&poll)
    return status, out


def saddle_moments_upper(Rows rows not None, int add, int have_eps, double value, double[::1] work):
    """(status, tilt, upper): an upper bound of log delta at eps = value, or of eps at log delta = value; see hs.h."""
    cdef double tilt = 0, upper = 0
    cdef hs_poll poll = polling()
    cdef hs_run run = run_of(rows, add)
    cdef hs_lent lent = lent_of(work, &poll)
    cdef int status
    with nogil:
        status = hs_saddle_moments_upper(&run, have_eps, value, &lent, &tilt, &upper)
    passed(&poll)
    return status, tilt, upper


def saddle_delta_upper(Rows rows not None, int add, double eps, double enough, int n_threads,
                       cnp.ndarray work not None):
    """(status, log_delta, tilt, at_zero): bounds of log delta at eps, and by at_zero - tilt e at every e; see hs.h."""
    cdef hs_ceiling out = hs_ceiling(0, 0, 0)
    cdef int64_t n_lent = cnp.PyArray_SIZE(work)
    cdef hs_poll poll = polling()
    cdef hs_run run = run_of(rows, add)
    cdef hs_lent lent = hs_lent(doubles(work, n_lent), n_lent, n_threads, &poll)
    cdef int status
    with nogil:
        status = hs_saddle_delta_upper(&run, eps, enough, &lent, &out)
    passed(&poll)
    return status, out.log_delta, out.tilt, out.at_zero


def saddle_atoms(const int64_t[::1] first, const double[::1] loss, const double[::1] num, const double[::1] k,
                 const double[:, ::1] errors, int have_eps, double value, int kind):
    """Saddle: log delta or eps of steps of finitely many losses; errors: rows rel, edge, inf."""
    cdef hs_saddle s
    cdef hs_atoms a
    cdef int status, b = k.shape[0]
    memset(&s, 0, sizeof(s))
    lengths(b + 1, first.shape[0], b + 1)
    lengths(first[b], loss.shape[0], num.shape[0])
    lengths(3, errors.shape[0], 3)
    lengths(b, errors.shape[1], b)
    a.first, a.loss, a.num = &first[0], &loss[0], &num[0]
    a.rel, a.edge, a.inf = &errors[0, 0], &errors[1, 0], &errors[2, 0]
    with nogil:
        status = hs_saddle_atoms(b, &a, &k[0], have_eps, value, kind, &s)
    return saddle(status, s.log_estimate if have_eps else s.estimate, &s)


def saddle_atoms_cgf(const int64_t[::1] first, const double[::1] loss, const double[::1] num, const double[::1] k,
                     const double[:, ::1] errors, double t):
    """(status, K, bound of its error) at tilt t of steps of finitely many losses; errors: rows rel, edge, inf."""
    cdef hs_atoms a
    cdef double value = 0, err = 0
    cdef int status, b = k.shape[0]
    lengths(b + 1, first.shape[0], b + 1)
    lengths(first[b], loss.shape[0], num.shape[0])
    lengths(3, errors.shape[0], 3)
    lengths(b, errors.shape[1], b)
    a.first, a.loss, a.num = &first[0], &loss[0], &num[0]
    a.rel, a.edge, a.inf = &errors[0, 0], &errors[1, 0], &errors[2, 0]
    with nogil:
        status = hs_saddle_atoms_cgf(b, &a, &k[0], t, &value, &err)
    return status, value, err
# edgeworth.c


def edgeworth_totals(Rows rows not None, int add, const double[::1] x, const double[::1] w):
    """(Y, X): the run's mean and cumulants 2 to 5."""
    Y, X = np.empty(5), np.empty(5)
    cdef double[::1] y = Y, z = X
    cdef hs_poll poll = polling()
    cdef hs_run run = run_of(rows, add)
    cdef hs_rule rule = rule_of(x, w)
    cdef int status
    with nogil:
        status = hs_edgeworth_totals(&run, &rule, &poll, &y[0], &z[0])
    passed(&poll)
    check(status, "edgeworth")
    return Y, X


def edgeworth_delta(const double[::1] Y, const double[::1] X, int form, int order, double eps):
    """(log_scale, value) of the estimate exp(log_scale) value."""
    cdef double log_scale, value
    cdef int status
    lengths(5, Y.shape[0], X.shape[0])
    with nogil:
        status = hs_edgeworth_delta(&Y[0], &X[0], form, order, eps, &log_scale, &value)
    check(status, "edgeworth")
    return log_scale, value


def edgeworth_eps(const double[::1] Y, const double[::1] X, int form, int order, double log_delta):
    """The largest eps at which the estimate is exp(log_delta)."""
    cdef double eps
    cdef int status
    lengths(5, Y.shape[0], X.shape[0])
    with nogil:
        status = hs_edgeworth_eps(&Y[0], &X[0], form, order, log_delta, &eps)
    check(status, "edgeworth")
    return eps
# prawitz.c


def prawitz_ask(Rows rows not None, int add, bint have_eps, double value, const double[::1] x, const double[::1] w,
                double T0, double T, double[::1] work):
    """(status, log_scale, lower, estimate, upper, terms, limit) of one certified delta at eps = value, or (status,
    lower, estimate, upper, delta's estimate, its terms, limit) of one certified eps at log delta = value; see hs.h."""
    cdef hs_poll poll = polling()
    cdef hs_prawitz S
    cdef hs_crossing at
    cdef hs_point *p = &at.delta
    cdef int status
    memset(&S, 0, sizeof(S))
    memset(&at, 0, sizeof(at))
    S.run = run_of(rows, add)
    S.rule, S.T0, S.T, S.poll = rule_of(x, w), T0, T, &poll
    with nogil:
        if have_eps:
            status = hs_prawitz_delta(&S, value, &work[0], work.shape[0], p)
        else:
            status = hs_prawitz_eps(&S, value, &work[0], work.shape[0], &at)
    passed(&poll)
    terms = S.smooth, p.aliasing, p.truncation, p.inner, p.rounding, p.interpolation
    if have_eps:
        return status, p.log_scale, p.lower, p.estimate, p.upper, terms, S.limit
    return status, at.lower, at.estimate, at.upper, p.estimate, terms, S.limit


def prawitz_work():
    """Doubles of scratch that one call takes."""
    return hs_prawitz_work()
# edgeworth_bound.c


def edgeworth_bounded(int kind, double m, double q, int which, const double[::1] x, const double[::1] w):
    """(values, bounds of their errors): mean, E d^2, E d^3, E d^4, E|d|, E|d|^3 of one step's loss under one law."""
    out = np.empty((2, 6))
    cdef double[:, ::1] to = out
    cdef hs_rule rule = rule_of(x, w)
    cdef int status
    with nogil:
        status = hs_edgeworth_bounded(kind, m, q, which, &rule, &to[0, 0])
    check(status, "edgeworth")
    return out[0], out[1]


def edgeworth_modulus_upper(int kind, double m, double q, int which, const double[::1] x, const double[::1] w,
                            double y0, double y1, double[::1] work):
    """The largest modulus of the step's characteristic function on [y0, y1], from above."""
    cdef double modulus
    cdef hs_rule rule = rule_of(x, w)
    cdef hs_lent lent = lent_of(work, NULL)
    cdef int status
    with nogil:
        status = hs_edgeworth_modulus_upper(kind, m, q, which, &rule, y0, y1, &lent, &modulus)
    check(status, "edgeworth")
    return modulus
