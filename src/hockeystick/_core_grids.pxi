# The gate to the grids: grid.c, convolve.c, tails.c, pld.c, pld_steps.c. Part of _core.pyx.

# grid.c, convolve.c


def grid_prv(double m, double q, int add, double dx, int64_t j0, int64_t n):
    """(p, mass, mean, abs_mean, edge_upper) of one step's loss on cells j0..j0+n-1."""
    p = np.empty(n)
    cdef double[::1] out = p
    cdef hs_cell_sums sums
    cdef int status
    with nogil:
        status = hs_grid_prv(m, q, add, dx, j0, n, &out[0], &sums)
    check(status, "grid")
    return p, sums.mass, sums.mean, sums.abs_mean, sums.edge_upper


cdef hs_cells cells_of(const int64_t[::1] j0, const int64_t[::1] start, double dx, const double[::1] p) except *:
    """Steps of which each has the masses p[start[i]..start[i+1]-1], from j0[i] on."""
    cdef int64_t n = j0.shape[0]
    lengths(n, n, min(start.shape[0] - 1, n))
    lengths(start[n], min(start[n], p.shape[0]), start[n])
    return hs_cells(n, &j0[0], &start[0], dx, &p[0])


def grid_log_mgf(int64_t j0, double dx, const double[::1] p, double t):
    """log sum_j p_j exp(t j dx)."""
    lengths(p.shape[0], p.shape[0], p.shape[0])
    cdef double log_mgf
    cdef int status
    with nogil:
        status = hs_grid_log_mgf(j0, p.shape[0], dx, &p[0], t, &log_mgf)
    check(status, "grid")
    return log_mgf


def grid_log_mgfs(const int64_t[::1] j0, const int64_t[::1] start, double dx, const double[::1] p, const double[::1] t):
    """log sum_j p_j exp(t j dx) of every step, a row for every t."""
    cdef hs_cells cells = cells_of(j0, start, dx, p)
    log_mgf = np.empty((t.shape[0], j0.shape[0]))
    cdef double[:, ::1] out = log_mgf
    cdef int status
    with nogil:
        status = hs_grid_log_mgfs(&cells, t.shape[0], &t[0], &out[0, 0])
    check(status, "grid")
    return log_mgf


def convolve_tilt(int64_t j0, double dx, const double[::1] p, double t, double log_mgf, double[::1] w):
    """Add the tilted masses to the zeroed circular array w."""
    cdef int status
    with nogil:
        status = hs_convolve_tilt(j0, p.shape[0], dx, &p[0], t, log_mgf, w.shape[0], &w[0])
    check(status, "convolve")


def convolve_tilts(const int64_t[::1] j0, const int64_t[::1] start, double dx, const double[::1] p, double t,
                   const double[::1] log_mgf, double[:, ::1] w):
    """Tilted masses of every step in the rows of w, but for those at index 0; (these, Euclidean norms, sums) of the
    rows."""
    cdef hs_cells cells = cells_of(j0, start, dx, p)
    lengths(w.shape[0], j0.shape[0], log_mgf.shape[0])
    out = np.empty((3, w.shape[0]))
    cdef double[:, ::1] o = out
    cdef int status
    with nogil:
        status = hs_convolve_tilts(&cells, t, &log_mgf[0], w.shape[1], &w[0, 0], &o[0, 0], &o[1, 0], &o[2, 0])
    check(status, "convolve")
    return out


def convolve_powers(const double complex[:, ::1] spec, const double[::1] point, const double[::1] k, int n_threads,
                    bint first, double complex[::1] product):
    """product (unless `first`, times what it holds) = the product over rows of (point + spec)**k; it may be the first
    row."""
    lengths(spec.shape[0], point.shape[0], k.shape[0])
    lengths(spec.shape[1], product.shape[0], spec.shape[1])
    cdef int status
    with nogil:
        status = hs_convolve_powers(spec.shape[1], spec.shape[0], <const double *>&spec[0, 0], &point[0], &k[0],
                                    n_threads, first, <double *>&product[0])
    check(status, "convolve")


def convolve_multiply(double complex[::1] a, const double complex[::1] b):
    """a *= b; a may be b."""
    lengths(a.shape[0], b.shape[0], a.shape[0])
    cdef int status
    with nogil:
        status = hs_convolve_multiply(a.shape[0], <double *>&a[0], <const double *>&b[0])
    check(status, "convolve")


def convolve_norms(double[::1] x, double scale):
    """(Euclidean norm, sum of absolute values) of x, which is multiplied by `scale` first."""
    cdef double norm2, norm1
    cdef int status
    with nogil:
        status = hs_convolve_norms(x.shape[0], &x[0], scale, &norm2, &norm1)
    check(status, "convolve")
    return norm2, norm1


def convolve_tail(const double[::1] r, int64_t j_lo, double dx, double t, double log_scale, int64_t n_keep):
    """(mass, delta): tail sums at the first n_keep lattice points from j_lo."""
    mass, delta = np.empty(n_keep), np.empty(n_keep)
    cdef double[::1] a = mass, d = delta
    cdef int status
    with nogil:
        status = hs_convolve_tail(r.shape[0], &r[0], j_lo, dx, t, log_scale, n_keep, &a[0], &d[0])
    check(status, "convolve")
    return mass, delta


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


def poisson_place(double q, const double[::1] s):
    """(base losses g of sampled losses s, first above the wall, edge, slope); see csrc/grid/tails.c."""
    out = np.empty(s.shape[0])
    cdef double[::1] g = out
    cdef double edge = 0, slope = 0
    cdef int64_t first = 0
    cdef int status = 0
    if s.shape[0]:
        with nogil:
            status = hs_poisson_place(q, s.shape[0], &s[0], &g[0], &first, &edge, &slope)
    check(status, "tails")
    return out, first, edge, slope


def poisson_tails(double q, double all_y, double all_x, int64_t first, double[:, ::1] o):
    """Rows of the base's tails to those of its Poisson sample, in place; see csrc/grid/tails.c."""
    lengths(5, o.shape[0], 5)
    cdef int status = 0
    if o.shape[1]:
        with nogil:
            status = hs_poisson_tails(q, all_y, all_x, first, o.shape[1], &o[0, 0])
    check(status, "tails")


# pld.c


def pld_cells(double s0, double w, double[:, ::1] tails, double edge, double absolute):
    """(y_upper, u_upper, y_lower, u_lower) of the fine cells between the points of the tails, which they overwrite."""
    cdef hs_fine fine = hs_fine(tails.shape[1] - 1, 1, s0, w, edge, absolute)
    cdef int status
    lengths(5, tails.shape[0], 5)
    with nogil:
        status = hs_pld_cells(&fine, &tails[0, 0])
    check(status, "pld")
    return tuple(np.asarray(tails)[:4, :-1])


def pld_upper(int m, double w, const double[::1] y_upper, const double[::1] u_upper, double bottom):
    """Masses of the dominating law on the lattice."""
    p = np.empty(y_upper.shape[0] // m + 1)
    cdef double[::1] out = p
    lengths(y_upper.shape[0], u_upper.shape[0], (out.shape[0] - 1) * m)
    cdef int status
    with nogil:
        status = hs_pld_upper(out.shape[0] - 1, m, w, &y_upper[0], &u_upper[0], bottom, &out[0])
    check(status, "pld")
    return p


def pld_lower(int m, double w, const double[::1] y_lower, const double[::1] u_lower, double top, double t):
    """Masses of a dominated law on the lattice."""
    p = np.empty(y_lower.shape[0] // m + 1)
    cdef double[::1] out = p
    lengths(y_lower.shape[0], u_lower.shape[0], (out.shape[0] - 1) * m)
    cdef int status
    with nogil:
        status = hs_pld_lower(out.shape[0] - 1, m, w, &y_lower[0], &u_lower[0], top, t, &out[0])
    check(status, "pld")
    return p


def pld_laws(int m, double s0, double w, double[:, ::1] tails, double edge, double absolute, double t, bint cut=False):
    """(upper masses, lower masses, bound of the mass above) on a lattice, from rows of tails, which are overwritten;
    with `cut` the mass above is not in the lower law."""
    cdef int64_t n = (tails.shape[1] - 1) // m
    cdef hs_fine fine = hs_fine(n * m, m, s0, w, edge, absolute)
    lengths(5, tails.shape[0], 5)
    lengths(tails.shape[1], n * m + 1, tails.shape[1])
    upper, lower = np.empty(n + 1), np.empty(n + 1)
    cdef double[::1] p = upper, r = lower
    cdef double p_inf = 0
    cdef int status
    with nogil:
        status = hs_pld_laws(&fine, &tails[0, 0], t, cut, &p[0], &r[0], &p_inf)
    check(status, "pld")
    return upper, lower, p_inf


# pld_steps.c


def step_tails(const double[::1] step, const double[::1] s):
    """(rows y_below, y_above, x_below, x_above, rel at s, edge) of one step; see csrc/grid/pld_steps.c."""
    lengths(HS_STEP_COLUMNS, step.shape[0], HS_STEP_COLUMNS)
    out = np.empty((5, s.shape[0]))
    cdef double[:, ::1] o = out
    cdef double edge = 0
    cdef int status = 0
    if s.shape[0]:
        with nogil:
            status = hs_step_tails(&step[0], s.shape[0], &s[0], &o[0, 0], &edge)
    check(status, "pld")
    return out, edge


def step_nodes(const double[::1] step, double p, const double[::1] x, const double[::1] w):
    """(losses, log den masses): a quadrature rule of one step until tails of mass p. Estimates."""
    lengths(HS_STEP_COLUMNS, step.shape[0], HS_STEP_COLUMNS)
    cdef hs_rule rule = rule_of(x, w)
    cdef int64_t n, room = hs_step_nodes(1, &step[0], p, rule.n)
    loss, log_den = np.empty(room), np.empty(room)
    cdef double[::1] a = loss, b = log_den
    cdef int status
    with nogil:
        status = hs_pld_step_nodes(&step[0], p, &rule, room, &n, &a[0], &b[0])
    check(status, "pld")
    return loss[:n], log_den[:n]


def pld_windows(const double[:, ::1] table, double p_low, double p_high):
    """(lo, hi): windows of all steps."""
    lengths(HS_STEP_COLUMNS, table.shape[1], HS_STEP_COLUMNS)
    lo, hi = np.empty(table.shape[0]), np.empty(table.shape[0])
    cdef double[::1] a = lo, b = hi
    cdef int status
    with nogil:
        status = hs_pld_windows(table.shape[0], &table[0, 0], p_low, p_high, &a[0], &b[0])
    check(status, "pld")
    return lo, hi


def pld_steps(const double[:, ::1] table, int m, double dx, double t, const double[::1] at, const int64_t[::1] first,
              const int64_t[::1] start, const int64_t[::1] size, double[::1] p_upper, double[::1] p_lower):
    """Masses of all steps into p_upper and p_lower; (edge, bound of the mass above) of each."""
    lengths(HS_STEP_COLUMNS, table.shape[1], HS_STEP_COLUMNS)
    lengths(table.shape[0], at.shape[0], first.shape[0])
    lengths(table.shape[0], start.shape[0], size.shape[0])
    lengths(p_upper.shape[0], p_lower.shape[0], p_upper.shape[0])
    if not (np.min(start) >= 0 and np.max(np.add(start, size)) <= p_upper.shape[0]):
        check(HS_BAD_ARGUMENT, "lengths of arrays")
    out, lent = np.empty((2, table.shape[0])), np.empty(5 * (m * np.max(size) + 1))
    cdef double[:, ::1] o = out
    cdef double[::1] work = lent
    cdef hs_windows windows = hs_windows(m, dx, t, &at[0], &first[0], &start[0], &size[0])
    cdef int status
    with nogil:
        status = hs_pld_steps(table.shape[0], &table[0, 0], &windows, &work[0], &p_upper[0], &p_lower[0], &o[0, 0],
                              &o[1, 0])
    check(status, "pld")
    return out[0], out[1]


def pld_table(int64_t up, int64_t down, double t0, const double[::1] loss, const double[::1] log_den, double k):
    """Rows K, K', K'' of k copies of a step at t0 2^(i/8), -t0 2^(i/4), 0, by its nodes. Estimates."""
    lengths(loss.shape[0], log_den.shape[0], loss.shape[0])
    out, lent = np.zeros((3, up + down + 1)), np.empty(3 * (loss.shape[0] + HS_PLD_LANES))
    cdef double[:, ::1] o = out
    cdef double[::1] work = lent
    cdef hs_ladder tilts = hs_ladder(up, down, t0)
    cdef int status
    with nogil:
        status = hs_pld_table(&tilts, loss.shape[0], &loss[0], &log_den[0], k, &work[0], &o[0, 0])
    check(status, "pld")
    return out


def pld_tables(const double[:, ::1] table, const double[::1] k, double p, const double[::1] x, const double[::1] w,
               int64_t up, int64_t down, double t0):
    """The same of all steps together, and the largest loss of a node."""
    lengths(HS_STEP_COLUMNS, table.shape[1], HS_STEP_COLUMNS)
    lengths(table.shape[0], k.shape[0], table.shape[0])
    cdef hs_rule rule = rule_of(x, w)
    cdef hs_ladder tilts = hs_ladder(up, down, t0)
    cdef int64_t room = hs_step_nodes(table.shape[0], &table[0, 0], p, rule.n)
    out, lent = np.zeros((3, up + down + 1)), np.empty(5 * room + 3 * HS_PLD_LANES)
    cdef double[:, ::1] o = out
    cdef double[::1] work = lent
    cdef double far = 0
    cdef int status
    with nogil:
        status = hs_pld_tables(table.shape[0], &table[0, 0], &k[0], p, &rule, &tilts, &work[0], &o[0, 0], &far)
    check(status, "pld")
    return out, far
