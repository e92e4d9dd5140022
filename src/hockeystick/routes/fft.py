"""Route `prv`: the PRV accountant, a mean-matched grid convolved by FFT, with the sandwich of [GLW21].

grid.py proves D(x) - eta <= delta(x - radius) and delta(x + radius) <= D(x) + eta + lost for the exact tail
functional D of the convolved grid; convolve.py computes D with bounds on every other error. So delta(eps)
needs D at eps -+ radius, and eps(delta) only needs D where it equals delta: the radius is added to the root.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..bound import AccuracyError, DomainError
from ..convolve import Tail, convolve, plan_circle
from ..grid import ULP, Cgf, Grid, cgf_table, discretise, window_reach
from ..pair import GaussianSteps

DELTA_MIN = 1e-290


class _Query(NamedTuple):
    grid: Grid
    mass_inf: float
    delta_error: float

    def radius(self, tail: Tail, x: float) -> float:
        """The discretisation radius, and the rounding of positions on the lattice."""
        grid = self.grid
        return grid.radius + 32 * ULP * (abs(x) + 2 * grid.radius + abs(tail.y_lo) + tail.width + abs(grid.shift))

    def lower(self, tail: Tail, x: float) -> float:
        """Lower bound on delta(x - radius)."""
        if x > tail.y_hi:
            return self.mass_inf * (1 - 8 * ULP)
        _, wrapped, rounding = tail.errors(x)
        return self._whole(max(0.0, tail.value(x) - wrapped - rounding - self.grid.eta)) * (1 - 8 * ULP)

    def upper(self, tail: Tail, x: float) -> float:
        """Upper bound on delta(x + radius)."""
        if x < tail.y_lo:
            return 1.0
        x = min(x, tail.y_hi)  # the curve falls
        truncated, _, rounding = tail.errors(x)
        delta = tail.value(x) + truncated + rounding + self.grid.eta + self.grid.lost
        return min(1.0, self._whole(delta) * (1 + 8 * ULP))

    def estimate(self, tail: Tail, eps: float) -> float:
        return self._whole(min(1.0, max(0.0, tail.value(eps))))

    def _whole(self, delta: float) -> float:
        return self.mass_inf + (1 - self.mass_inf) * delta

    def terms(self, tail: Tail, x: float) -> tuple[float, float, float]:
        """(mesh: of eps; truncation and fft_rounding: of delta)."""
        truncated, wrapped, rounding = tail.errors(x)
        return self.radius(tail, x), self.grid.eta + self.grid.lost + truncated + wrapped, rounding


def _table(steps: GaussianSteps, add: bool, delta_error: float) -> Cgf:
    """CGF of the cut losses at tilts of both signs, from 1e-6 to 1e4 times 45/m (45 deviations: delta <
    1e-300)."""
    grow = np.geomspace(1e-6, 1e4, 300) * (45 / float(steps.shift.max()))
    X, _ = window_reach(float(steps.k.sum()), delta_error)
    return cgf_table(steps, add, np.concatenate((-grow[::-2], [0.0], grow)), X)


def _default_delta_error(steps: GaussianSteps, add: bool, eps: float) -> float:
    """1e-3 of a saddle-point estimate of delta(eps), twice: the window of the first depends on the second."""
    delta_error = 1e-10
    for _ in range(2):
        _, curve_eps, curve_log = _saddle_curve(_table(steps, add, delta_error))
        log_delta = float(np.interp(eps, curve_eps, curve_log))
        delta_error = max(DELTA_MIN, 1e-3 * math.exp(max(-690.0, min(log_delta, math.log(0.5)))))
    return delta_error


def _saddle_curve(table: Cgf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, eps, log delta) along positive saddle points: eps increases, log delta falls. Estimates
    [theory: saddle.estimates]."""
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


def _failed(query: _Query, reached: float, eps: float) -> AccuracyError:
    return AccuracyError(
        f"prv: delta near eps={eps:.6g} is certified to {reached:.3g}, wanted {query.delta_error:.3g} "
        "(delta_error); ask for a larger delta_error or use the contour route"
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
        Bound on the discretisation error, in eps: lower and upper are those of eps + eps_error and eps -
        eps_error.
    delta_error : float, optional
        Budget of delta for all other errors together. Default: 1e-3 of a saddle-point estimate of the least
        delta asked, at least 1e-290.
    how : {"power", "squaring"}
        Self-convolution; see the head of the file.
    mass_inf : float, default 0
        Probability that some loss of the run is infinite, 1 - prod(1 - d_i); the steps here stand for the
        finite part.

    Returns
    -------
    (lower, estimate, upper, terms)
        Arrays of the shape of eps (one-dimensional): bounds, and an estimate between. terms: "mesh" (of eps),
        "truncation" and "fft_rounding" (of delta).

    Raises
    ------
    DomainError, AccuracyError
        AccuracyError if the lattice is too long or the errors exceed 2 delta_error (a relative 1e-3 is always
        allowed).

    References
    ----------
    [GLW21], Theorem 5.5.
    """
    eps = _check(steps, eps, "eps", eps_error, delta_error, how, n_threads, mass_inf)
    if delta_error is None:
        delta_error = _default_delta_error(steps, add, float(eps.max()))
    table = _table(steps, add, delta_error)
    query = _Query(discretise(steps, add, eps_error, delta_error), float(mass_inf), delta_error)
    out, todo = np.empty((6, eps.size)), list(np.argsort(eps, kind="stable"))
    margin = 1.01 * query.grid.radius + 4 * query.grid.dx
    log_tol = math.log(delta_error / 16)
    while todo:
        first, last = float(eps[todo[0]]), float(eps[todo[-1]])
        circle = plan_circle(query.grid, table, first - margin, log_tol)
        tail = convolve(query.grid, circle, last + margin, how, n_threads)
        left = []
        for i in todo:
            at, own = float(eps[i]), i == todo[0]
            r = query.radius(tail, at)
            covered = at - r >= tail.y_lo + tail.dx and at + r <= tail.y_hi
            reached = sum(tail.errors(at - r)) if covered else math.inf
            if reached <= delta_error * (2 if own else 1) + (1e-3 * tail.value(at - r) if own else 0):
                bounds = query.lower(tail, at + r), query.estimate(tail, at), query.upper(tail, at - r)
                out[:, i] = *bounds, *query.terms(tail, at - r)
            elif own:
                raise _failed(query, reached, at)
            else:
                left.append(i)
        todo = left
    return out[0], out[1], out[2], _terms(out)


def _terms(out) -> dict[str, np.ndarray]:
    return {"mesh": out[3], "truncation": out[4], "fft_rounding": out[5]}


def _last(holds, lo: float, hi: float) -> float:
    """A point of [lo, hi] where `holds` is true, as close as bisection comes to where it turns false;
    holds(lo) is true."""
    for _ in range(70):
        mid = 0.5 * (lo + hi)
        if not lo < mid < hi and not hi < mid < lo:
            break
        if holds(mid):
            lo = mid
        else:
            hi = mid
    return lo


def _invert(query: _Query, tail: Tail, target: float, lo: float, hi: float, floor: float):
    """(lower, estimate, upper) of eps(target), clipped at 0; or on which side of [lo, hi] its ends lie.

    At lo = floor <= -radius the lower end is 0 whatever D is.
    """
    if lo > floor and not query.lower(tail, lo) >= target:
        return "below"
    if not query.upper(tail, hi) <= target:
        return "above"
    r = query.radius(tail, max(abs(lo), abs(hi)))
    lower = upper = estimate = lo
    if query.lower(tail, lo) >= target:
        lower = _last(lambda x: query.lower(tail, x) >= target, lo, hi)
    if query.upper(tail, lo) > target:
        upper = _last(lambda x: query.upper(tail, x) <= target, hi, lo)
    if query.estimate(tail, lo) >= target:
        estimate = _last(lambda x: query.estimate(tail, x) >= target, lo, hi)
    lower, upper = max(0.0, lower - r), max(0.0, upper + r)
    return lower, min(max(estimate, lower), upper), upper


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

    delta_error defaults to 1e-3 of the least delta asked. Returned are bounds of width <= 2.1 eps_error, or
    wider ones whose terms of delta stay within 2 delta_error: their width is 2 eps_error + 2 delta_error/(t
    delta), t the saddle point. Otherwise AccuracyError. Where delta < mass_inf every bound is inf.
    """
    delta = _check(steps, delta, "delta", eps_error, delta_error, how, n_threads, mass_inf)
    finite = (delta - mass_inf) / (1 - mass_inf)
    out = np.full((6, delta.size), math.inf)
    out[3:] = 0.0
    if not np.any(finite > 0):
        return out[0], out[1], out[2], _terms(out)
    if delta_error is None:
        delta_error = 1e-3 * float(finite[finite > 0].min())
        if delta_error < DELTA_MIN:
            raise AccuracyError(f"prv reaches delta = {DELTA_MIN * 1e3:g}; use the contour route below")
        delta_error = min(delta_error, 1e-3)
    table = _table(steps, add, delta_error)
    curve_t, curve_eps, curve_log = _saddle_curve(table)
    query = _Query(discretise(steps, add, eps_error, delta_error), float(mass_inf), delta_error)
    for i in np.flatnonzero(finite > 0):
        log_f = math.log(finite[i])
        guess = float(np.interp(-log_f, -curve_log, curve_eps))
        slack = min(1.0 / float(np.interp(-log_f, -curve_log, curve_t)), 2.0 + abs(guess))
        out[:, i] = _solve(query, table, float(delta[i]), guess, slack, how, n_threads)
    return out[0], out[1], out[2], _terms(out)


def _solve(query: _Query, table: Cgf, target: float, guess: float, slack: float, how: str, n_threads: int):
    """One target: transforms on widening windows around the guess."""
    margin, floor = 4 * query.grid.dx, -1.5 * query.grid.radius
    reached = math.inf
    log_tol = math.log(query.delta_error / 16)
    for _ in range(12):
        lo = max(floor, guess - slack)
        hi = max(lo, guess) + slack
        circle = plan_circle(query.grid, table, lo - margin, log_tol)
        tail = convolve(query.grid, circle, hi + margin, how, n_threads)
        hi = min(hi, tail.y_hi - tail.dx)
        found = _invert(query, tail, target, lo, hi, floor) if hi > lo else "above"
        at = min(max(lo, guess), hi) if isinstance(found, str) else min(max(lo, found[1]), hi)
        reached = sum(tail.errors(at))
        if not isinstance(found, str):
            if reached <= 2 * query.delta_error or found[2] - found[0] <= 2.1 * query.grid.radius:
                return *found, *query.terms(tail, at)
            slack = 0.3 * slack  # a narrower window: less loss at its lower end
        else:
            guess, slack = (lo if found == "below" else hi), 1.5 * slack
    raise _failed(query, reached, guess)
