"""Route `prv`: k-fold convolution of mean-matched grids by FFT, with the Theorem 5.5 sandwich [GLW21].

D below is the tail functional of the exact convolution of the grids (grid.py: D(eps + radius) - eta <= delta(eps) <= D(eps - radius) +
eta + lost). It is computed from the law tilted by e^{t x}, on a circle of n points, W = n dx, labelled y_lo .. y_lo + W - dx:

  D^(eps) = sum_{y > eps} r_y e^{L - t x} (1 - e^{eps - y}),    r = inverse FFT of prod_i phi_i^{k_i},   eps >= y_lo.

Errors of D^, all proved here but for the FFT constant (_fft.py). S is the sum of the grid variables, K~ = log E e^{.S}.
  wrapped  a loss y outside the circle is met at y' = y - jW > eps with weight e^{t(y - y')}. From the right, y > eps + W: at most
           E[e^{t(S - eps)}; S > eps + W] <= exp(K~(t') - t'(eps + W) + tW), t' >= t. From the left: e^{-tW} Pr[S < y_lo].
           Both only raise D^.   truncated  Pr[S >= y_lo + W] <= exp(K~(t') - t'(y_lo + W)); it only lowers D^.
  fft      D^ is linear in r: by Cauchy-Schwarz at most ||c||_2 ||r^ - r||_2, where ||c||^2 <= e^{2(L - t x_eps)} (1 + min(W, 1/(t(2t+1)(2t+2)))/dx)
           (the integral of e^{-2ts}(1-e^{-s})^2 plus one maximum), and with phi sums of non-negative weights, |phi| <= 1,
             ||r^ - r||_2 <= sum_i k_i eta ||w_i||_2 e^{sum_i k_i sup|err phi_i|}  (|prod a^k - prod b^k| <= sum k |a-b| max^{..}; Parseval)
                             + u (20 k + 2500 b) ||r||_2   (powers, convolve.c) + eta ||r||_2   (inverse).
           Without the tilt the same term is absolute, ~1e-16 k sqrt(n): that is why plain FFT accountants fail for k >= 1e4, delta <= 1e-12.
  weights  rounding of positive weights: a factor (1 + theta)^k on D^, theta = u(16 + 6 max|t x|), and the tail sums.
  squaring the same, except ||r^ - r||_2 obeys e' = (2 + e_2 sqrt n..) recursions: see `_square`.

`how="power"` is the default: one forward transform per distinct step and one inverse. `how="squaring"` takes about 2 log2 k
transforms; it is slower and its bound is wider, since every doubling pays the FFT error of its own transforms again
(benchmarks/bench_prv.py). It serves as an independent check.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _core, _fft
from ..bound import AccuracyError, DomainError
from ..grid import MAX_CELLS, ULP, Cgf, Grid, cgf_table, discretise
from ..pair import GaussianSteps

LDBL_ULP = float(np.finfo(np.longdouble).eps)
DELTA_MIN = 1e-290
TILTS = (1.0, 0.85, 0.7, 0.5, 0.3, 0.15)
"""Fractions of the saddle point tried as tilt: a smaller tilt may need a shorter circle [maths E.4]."""


class Tail(NamedTuple):
    """D^ at lattice points y_lo, y_lo + dx, ..., and what bounds its error."""

    y_lo: float
    dx: float
    mass: np.ndarray
    delta: np.ndarray
    t: float
    width: float
    log_right: float  # log of the right-wrap bound at eps = 0 ..
    t_right: float  # .. and its rate: it falls like e^{-t_right eps}
    left: float
    truncated: float
    log_fft: float  # log of the FFT term at eps = y_lo: it falls like e^{-t (eps - y_lo)}
    sums: float
    relative: float

    def value(self, eps: float) -> float:
        """D^(eps): linear in e^eps between lattice points."""
        i = min(max(math.floor((eps - self.y_lo) / self.dx), 0), self.delta.size - 2)
        s = eps - (self.y_lo + (i + 1) * self.dx)
        return float(-math.expm1(s) * self.mass[i] + math.exp(s) * self.delta[i + 1])

    def errors(self, eps: float) -> tuple[float, float, float]:
        """(truncated, wrapped, rounding) at eps >= y_lo: bounds."""
        wrapped = _exp(self.log_right - self.t_right * eps) + self.left
        fft = _exp(self.log_fft - self.t * (eps - self.y_lo)) + self.sums
        return self.truncated, wrapped, fft + self.relative * abs(self.value(eps))

    @property
    def y_hi(self) -> float:
        return self.y_lo + (self.delta.size - 2) * self.dx


def _exp(x: float) -> float:
    return math.exp(x) * (1 + 1e-12) if x < 700 else math.inf


class Plan(NamedTuple):
    t: float
    n: int
    y_lo: float
    t_right: float
    t_left: float
    t_cut: float
    log_fft: float


def _plan(grid: Grid, table: Cgf, eps: float, log_tol: float) -> Plan:
    """The shortest circle among the tilts whose predicted FFT error is below the tolerance (else the most accurate one).

    eps is the least eps asked. Everything here is a prediction from the quadrature table; `_tail` certifies.
    """
    pos, neg = table.t > 0, table.t < 0
    tp, kp, tn, kn = table.t[pos], table.k0[pos], table.t[neg], table.k0[neg]
    saddle = tp[np.argmin(kp - tp * eps - np.log(tp) - np.log1p(tp))]
    low = float(np.max((kn - log_tol) / tn))  # Pr[S < low] <= tol
    at = int(np.argmax((kn - log_tol) / tn))
    cut = float(np.min((kp - log_tol) / tp))
    t_cut = float(tp[np.argmin((kp - log_tol) / tp)])
    total = sum(s.k for s in grid.steps)
    best, fallback = None, None
    for t in [f * saddle for f in TILTS] + [0.0]:
        for y_lo in {eps, min(eps, low)}:
            log_left = min(0.0, float(np.min(kn - tn * y_lo)))
            j_left = int(np.argmin(kn - tn * y_lo))
            above = tp > t * 1.02 + 1e-12
            if not above.any() or (t == 0 and y_lo > low):
                continue
            reach = (kp[above] - tp[above] * eps - log_tol) / (tp[above] - t)
            width = max(float(reach.min()), cut - y_lo, (log_left - log_tol) / t if t else 0.0, 8 * grid.radius + 64 * grid.dx)
            cells = width / grid.dx
            if cells > MAX_CELLS:
                continue
            n = _fft.fast_length(math.ceil(cells) + 4)
            k0 = float(np.interp(t, table.t, table.k0))
            log_fft = k0 - t * eps + math.log(total * _fft.error_upper(n)) + 0.5 * math.log(_weight2(t, width, grid.dx))
            t_left = float(tn[j_left]) if y_lo == eps else float(tn[at])
            plan = Plan(t, n, y_lo, float(tp[above][reach.argmin()]), t_left, t_cut, log_fft)
            if log_fft <= log_tol and (best is None or n < best.n):
                best = plan
            if fallback is None or log_fft < fallback.log_fft:
                fallback = plan
    if best is None and fallback is None:
        raise AccuracyError(
            f"the convolution would need more than {MAX_CELLS} points at a lattice step of {grid.dx:.2g}; "
            "ask for a larger eps_error"
        )
    return best or fallback


def _weight2(t: float, width: float, dx: float) -> float:
    """||c||^2 in units of e^{2(L - t x_eps)}; see the head of the file."""
    area = width if t <= 0 else min(width, 1 / (t * (2 * t + 1) * (2 * t + 2)))
    return 1 + area / dx


def _log_mgf(grid: Grid, t: float) -> tuple[float, list[float]]:
    """Upper bound on K~(t) = log E e^{tS}, shift included, and the value of each step's log sum."""
    parts = [_core.grid_log_mgf(s.j0, grid.dx, s.p, t) for s in grid.steps]
    total = t * grid.shift
    slack = 4 * ULP * abs(total)
    for s, log_m in zip(grid.steps, parts, strict=True):
        total += s.k * log_m
        far = max(abs(s.j0), abs(s.j0 + s.p.size)) * grid.dx
        slack += s.k * (ULP * (32 + 6 * abs(t) * far + 4 * abs(log_m)) + s.p.size * LDBL_ULP)
    return total + slack, parts


def _tilted(grid: Grid, step, t: float, log_m: float, n: int) -> np.ndarray:
    w = _fft.zeros(n)
    _core.convolve_tilt(step.j0, grid.dx, step.p, t, log_m, w)
    return w


def _power(grid: Grid, t: float, logs: list[float], n: int, n_threads: int) -> tuple[np.ndarray, float]:
    """(r^, bound on ||r^ - r||_2) by powers of the spectrum."""
    eta = _fft.error_upper(n)
    product, forward, sup, rel = None, 0.0, 0.0, 0.0
    for step, log_m in zip(grid.steps, logs, strict=True):
        w = _tilted(grid, step, t, log_m, n)
        norm2, _ = _core.convolve_norms(w)
        spec = _fft.forward(w, n_threads)
        if product is None:
            product, first = spec, 1  # in place: every coefficient is read before it is written
        else:
            first = 0
        _core.convolve_power(spec, step.k, first, n_threads, product)
        forward += step.k * eta * norm2 * 1.01
        sup += step.k * (eta * math.sqrt(n) * norm2 + 64 * ULP) * 1.01
        rel += ULP * (20 * step.k + 2500)
    r = _fft.inverse(product, n_threads)
    norm2, _ = _core.convolve_norms(r)
    if sup > 30 or rel > 0.1:
        raise AccuracyError(f"spectrum powers lose all digits (relative error {max(sup, rel):.2g}); ask for fewer steps")
    return r, (forward * math.exp(sup) + (rel + eta) * norm2) * 1.02


def _multiply(a, b, n_threads: int):
    """Circular convolution of (x, bound on its error e_2, bound on the exact sum s) pairs; a may be b.

    ||x^ y^ - x y||_2 <= s_y e_x + ||x^||_1 e_y: Young's inequality. The transforms add eta ||x^||_2 ||y^||_1 (sup of the
    other spectrum) + eta ||y^||_2 (||x^||_1 + eta sqrt n ||x^||_2) and (eta + 4u) times the result.
    """
    (x, ex, sx), (y, ey, sy) = a, b
    n = x.shape[0]
    eta = _fft.error_upper(n)
    (x2, x1), (y2, y1) = _core.convolve_norms(x), _core.convolve_norms(y)
    fx = _fft.forward(x, n_threads)
    fy = fx if y is x else _fft.forward(y, n_threads)
    _core.convolve_multiply(fx, fy)
    out = _fft.inverse(fx, n_threads)
    e = sy * ex + x1 * ey + eta * x2 * y1 + eta * y2 * (x1 + eta * math.sqrt(n) * x2)
    return out, (e + (eta + 4 * ULP) * _core.convolve_norms(out)[0]) * (1 + 1e-6), sx * sy


def _square(grid: Grid, t: float, logs: list[float], n: int, n_threads: int) -> tuple[np.ndarray, float]:
    """(r^, bound on ||r^ - r||_2) by repeated squaring: binary powers of each step, multiplied as they come."""
    result = None
    for step, log_m in zip(grid.steps, logs, strict=True):
        k, base = int(step.k), (_tilted(grid, step, t, log_m, n), 0.0, 1 + 1e-12)
        while k:
            if k & 1:
                result = base if result is None else _multiply(result, base, n_threads)
            k >>= 1
            if k:
                base = _multiply(base, base, n_threads)
    return result[0], result[1]


def _tail(grid: Grid, table: Cgf, eps: float, eps_max: float, log_tol: float, how: str, n_threads: int) -> Tail:
    """D^ on [eps, eps_max] (less where the circle ends), with certified errors."""
    plan = _plan(grid, table, eps, log_tol)
    t, n, dx = plan.t, plan.n, grid.dx
    j_lo = math.floor((plan.y_lo - grid.shift) / dx) - 1
    y_lo, width = j_lo * dx + grid.shift, n * dx
    right, left = _log_mgf(grid, plan.t_right)[0], _log_mgf(grid, plan.t_left)[0]
    cut = _log_mgf(grid, plan.t_cut)[0]
    _, logs = _log_mgf(grid, t)
    r, error2 = (_power if how == "power" else _square)(grid, t, logs, n, n_threads)
    log_l = math.fsum(s.k * log_m for s, log_m in zip(grid.steps, logs, strict=True))
    keep = min(n, max(8, math.ceil((eps_max - y_lo) / dx) + 4))
    scale = log_l - t * (j_lo * dx)
    mass, delta, size = _core.convolve_tail(r, j_lo, dx, t, scale, keep)
    theta = 0.0
    for s, log_m in zip(grid.steps, logs, strict=True):
        far = max(abs(s.j0), abs(s.j0 + s.p.size)) * dx
        theta += s.k * ULP * (16 + 6 * t * far + 2 * abs(log_m))
    theta += ULP * (16 + 4 * abs(log_l) + 6 * t * (abs(y_lo) + abs(grid.shift) + width))
    if not theta < 0.1:
        raise AccuracyError(f"the weights of the convolution lose all digits ({theta:.2g}); ask for fewer steps")
    return Tail(
        y_lo=y_lo,
        dx=dx,
        mass=mass,
        delta=delta,
        t=t,
        width=width,
        log_right=right - plan.t_right * width + t * width,
        t_right=plan.t_right,
        left=_exp(-t * width + min(0.0, left - plan.t_left * y_lo)),
        truncated=_exp(cut - plan.t_cut * (y_lo + width)),
        log_fft=scale + math.log(error2) + 0.5 * math.log(_weight2(t, width, dx)) + 2 * theta,
        sums=8 * n * LDBL_ULP * size,
        relative=2 * theta,
    )


class _Query(NamedTuple):
    grid: Grid
    mass_inf: float
    delta_error: float

    def shift(self, tail: Tail, eps: float) -> float:
        """radius, and the rounding of positions on the lattice."""
        return self.grid.radius + 32 * ULP * (abs(eps) + abs(tail.y_lo) + tail.width + abs(self.grid.shift))

    def covers(self, tail: Tail, eps: float) -> bool:
        s = self.shift(tail, eps)
        return eps - s >= tail.y_lo + tail.dx and eps + s <= tail.y_hi

    def lower(self, tail: Tail, eps: float) -> float:
        """Lower bound on delta(eps)."""
        at = eps + self.shift(tail, eps)
        _, wrapped, rounding = tail.errors(at)
        return self._whole(max(0.0, tail.value(at) - wrapped - rounding - self.grid.eta)) * (1 - 8 * ULP)

    def upper(self, tail: Tail, eps: float) -> float:
        """Upper bound on delta(eps)."""
        at = eps - self.shift(tail, eps)
        truncated, _, rounding = tail.errors(at)
        grid = self.grid
        return min(1.0, self._whole(tail.value(at) + truncated + rounding + grid.eta + grid.lost) * (1 + 8 * ULP))

    def estimate(self, tail: Tail, eps: float) -> float:
        return self._whole(min(1.0, max(0.0, tail.value(eps))))

    def _whole(self, delta: float) -> float:
        return self.mass_inf + (1 - self.mass_inf) * delta

    def terms(self, tail: Tail, eps: float) -> tuple[float, float, float]:
        """(mesh: of eps; truncation and fft_rounding: of delta)."""
        truncated, wrapped, rounding = tail.errors(eps - self.shift(tail, eps))
        return self.shift(tail, eps), self.grid.eta + self.grid.lost + truncated + wrapped, rounding


def _table(steps: GaussianSteps, add: bool) -> Cgf:
    """CGF at tilts of both signs. Tilts with m t > 45 shift the noise by more than 45 deviations: delta < 1e-300."""
    high = 45 / float(steps.shift.max())
    grow = np.geomspace(1e-6, 1.0, 160) * high
    return cgf_table(steps, add, np.concatenate((-grow[::-2], [0.0], grow)))


def _saddle_curve(table: Cgf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, eps, log delta) along positive saddle points: eps increases, log delta falls. Estimates (maths D.8)."""
    ok = table.t > 0
    t, k0, k1, k2 = (a[ok] for a in table)
    eps = k1 - 1 / t - 1 / (1 + t)
    f2 = k2 + 1 / t**2 + 1 / (1 + t) ** 2
    return t, eps, k0 - t * eps - np.log(t * (1 + t)) - 0.5 * np.log(2 * math.pi * f2)


def _check(steps, values, name, eps_error, delta_error, how, n_threads, mass_inf) -> np.ndarray:
    values = np.atleast_1d(np.asarray(values, dtype=float))
    if not steps.k.size or not np.all(steps.k >= 1):
        raise DomainError("the prv route needs at least one step with a count >= 1")
    if not np.all(np.isfinite(values)) or (name == "delta" and not np.all((values > 0) & (values < 1))):
        raise DomainError(f"{name} must be finite{' and in (0, 1)' if name == 'delta' else ''}, got {values!r}")
    if not 0 < eps_error < math.inf:
        raise DomainError(f"eps_error must be a finite number > 0, got {eps_error!r}")
    if delta_error is not None and not DELTA_MIN <= delta_error < 0.5:
        raise DomainError(f"delta_error must be in [{DELTA_MIN:g}, 0.5), got {delta_error!r}")
    if how not in ("power", "squaring"):
        raise DomainError(f'how must be "power" or "squaring", got {how!r}')
    if not n_threads >= 1 or not 0 <= mass_inf < 1:
        raise DomainError(f"need n_threads >= 1 and 0 <= mass_inf < 1, got {n_threads!r}, {mass_inf!r}")
    return values


def _setup(steps, add, log_delta, eps_error, delta_error, mass_inf):
    if delta_error is None:
        delta_error = max(DELTA_MIN, 1e-3 * math.exp(max(-690.0, min(log_delta, math.log(0.5)))))
    grid = discretise(steps, add, eps_error, delta_error)
    return _Query(grid, float(mass_inf), delta_error)


def _failed(query: _Query, reached: float, eps: float) -> AccuracyError:
    return AccuracyError(
        f"prv: delta near eps={eps:.6g} is certified to {reached:.3g}, wanted {query.delta_error:.3g} (delta_error); "
        "ask for a larger delta_error or use the contour route"
    )


def prv_delta(
    steps: GaussianSteps,
    add: bool,
    eps,
    *,
    eps_error: float = 0.01,
    delta_error: float | None = None,
    how: str = "power",
    n_threads: int = 1,
    mass_inf: float = 0.0,
):
    """Certified delta(eps) by the PRV accountant.

    Parameters
    ----------
    steps : GaussianSteps
        Poisson-subsampled Gaussian steps; counts are whole numbers.
    add : bool
        Direction: False for REMOVE, True for ADD.
    eps : array of float
        Any finite values.
    eps_error : float, default 0.01
        Bound on the discretisation error, in eps: lower and upper are those of eps + eps_error and eps - eps_error.
    delta_error : float, optional
        Budget of delta for all other errors together. Default: 1e-3 of a saddle-point estimate of the least delta
        asked, at least 1e-290.
    how : {"power", "squaring"}
        Self-convolution; see the head of the file.
    mass_inf : float, default 0
        Probability that some loss of the run is infinite, 1 - prod(1 - d_i); the steps here stand for the finite part.

    Returns
    -------
    (lower, estimate, upper, terms)
        Arrays of the shape of eps (one-dimensional): bounds, and an estimate between. terms: "mesh" (of eps), "truncation" and
        "fft_rounding" (of delta).

    Raises
    ------
    DomainError, AccuracyError
        AccuracyError if the lattice is too long or the errors exceed 2 delta_error (a relative 1e-3 is always allowed).

    References
    ----------
    [GLW21], Theorem 5.5.
    """
    eps = _check(steps, eps, "eps", eps_error, delta_error, how, n_threads, mass_inf)
    table = _table(steps, add)
    _, curve_eps, curve_log = _saddle_curve(table)
    query = _setup(
        steps, add, float(np.interp(eps.max(), curve_eps, curve_log)), eps_error, delta_error, mass_inf
    )
    out, todo = np.empty((6, eps.size)), list(np.argsort(eps, kind="stable"))
    margin = 1.01 * query.grid.radius + 4 * query.grid.dx
    while todo:
        tail = _tail(
            query.grid, table, eps[todo[0]] - margin, eps[todo[-1]] + margin, math.log(query.delta_error / 16), how, n_threads
        )
        left = []
        for i in todo:
            at, first = float(eps[i]), i == todo[0]
            reached = sum(tail.errors(at - query.shift(tail, at))) if query.covers(tail, at) else math.inf
            if reached <= query.delta_error * (2 if first else 1) + 1e-3 * tail.value(at) * first:
                bounds = query.lower(tail, at), query.estimate(tail, at), query.upper(tail, at)
                out[:, i] = *bounds, *query.terms(tail, at)
            elif first:
                raise _failed(query, reached, at)
            else:
                left.append(i)
        todo = left
    return out[0], out[1], out[2], _terms(out)


def _terms(out) -> dict[str, np.ndarray]:
    return {"mesh": out[3], "truncation": out[4], "fft_rounding": out[5]}


def _last(holds, lo: float, hi: float) -> float:
    """A point of [lo, hi] where `holds` is true, as close as bisection comes to where it turns false; holds(lo) is true."""
    for _ in range(70):
        mid = 0.5 * (lo + hi)
        if not lo < mid < hi and not hi < mid < lo:
            break
        if holds(mid):
            lo = mid
        else:
            hi = mid
    return lo


def _invert(query: _Query, tail: Tail, target: float, lo: float, hi: float):
    """(lower, estimate, upper) of eps(target), clipped at 0; None where [lo, hi] does not hold them."""
    if lo > 0 and not query.lower(tail, lo) >= target or not query.upper(tail, hi) <= target:
        return None
    lower = 0.0
    if query.lower(tail, lo) >= target:
        lower = _last(lambda e: query.lower(tail, e) >= target, lo, hi)
    upper = lo if query.upper(tail, lo) <= target else _last(lambda e: query.upper(tail, e) <= target, hi, lo)
    estimate = _last(lambda e: query.estimate(tail, e) >= target, lo, hi)
    return max(0.0, lower), min(max(estimate, lower, 0.0), upper), max(0.0, upper)


def prv_epsilon(
    steps: GaussianSteps,
    add: bool,
    delta,
    *,
    eps_error: float = 0.01,
    delta_error: float | None = None,
    how: str = "power",
    n_threads: int = 1,
    mass_inf: float = 0.0,
):
    """Certified eps(delta) >= 0, the inverse of `prv_delta`, with its parameters, terms and errors.

    delta_error defaults to 1e-3 of the least delta asked. The width is 2 eps_error and what delta_error costs in eps, about
    2 delta_error/(t delta), t the saddle point. Where delta < mass_inf every bound is inf.
    """
    delta = _check(steps, delta, "delta", eps_error, delta_error, how, n_threads, mass_inf)
    table = _table(steps, add)
    curve_t, curve_eps, curve_log = _saddle_curve(table)
    finite = (delta - mass_inf) / (1 - mass_inf)
    out = np.full((6, delta.size), math.inf)
    out[3:] = 0.0
    if not np.any(finite > 0):
        return out[0], out[1], out[2], _terms(out)
    log_min = float(np.log(finite[finite > 0].min()))
    if delta_error is None and log_min < math.log(DELTA_MIN) + 7:
        raise AccuracyError(f"prv reaches delta = {DELTA_MIN * 1e3:g}; use the contour route below")
    query = _setup(steps, add, log_min, eps_error, delta_error, mass_inf)
    for i in np.flatnonzero(finite > 0):
        log_f = math.log(finite[i])
        guess = max(0.0, float(np.interp(-log_f, -curve_log, curve_eps)))
        slack = min(1.0 / float(np.interp(-log_f, -curve_log, curve_t)), 2.0 + guess)
        out[:, i] = _solve(query, table, float(delta[i]), guess, slack, how, n_threads)
    return out[0], out[1], out[2], _terms(out)


def _solve(query: _Query, table: Cgf, target: float, guess: float, slack: float, how: str, n_threads: int):
    """One target: transforms on widening windows around the guess."""
    margin = 1.01 * query.grid.radius + 4 * query.grid.dx
    reached = math.inf
    for _ in range(6):
        lo, hi = max(0.0, guess - slack - 2 * margin), guess + slack + 2 * margin
        tail = _tail(query.grid, table, lo - margin, hi + margin, math.log(query.delta_error / 16), how, n_threads)
        hi = min(hi, tail.y_hi - margin)
        found = _invert(query, tail, target, lo, hi) if hi > lo else None
        if found:
            return *found, *query.terms(tail, found[1] if query.covers(tail, found[1]) else lo)
        reached = sum(tail.errors(max(lo, guess) - query.shift(tail, guess)))
        slack *= 3
    raise _failed(query, reached, guess)
