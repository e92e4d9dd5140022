"""What `auto` falls back to where the contour declines: the PRV accountant, and last the moments accountant (Chernoff bound).

Answers are those of answers.py; None where a route declines.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core, scratch
from ..answers import Point, Root
from ..arguments import exp_upper
from ..pair import GaussianSteps
from . import contour, jumps, saddlepoint

MOMENTS_TERMS = ("chernoff",)
U = 2.0**-53


def moments_point(steps: GaussianSteps, add: int, eps: float):
    """delta(eps) between that of its single most revealing step (dropping steps is post-processing) and Chernoff's bound
    e^{K(t) - eps t} t^t/(1+t)^(1+t) [CKS20, Prop. 12] [theory: pair.dropping, small.between], inside the interval of the route
    saddlepoint and that of one rare large loss (jumps.py). The estimate is the upper end."""
    upper = _chernoff(steps, add, 1, eps)
    if upper is None:
        return None
    lower = -math.inf
    for one in _single_steps(steps):
        if abs(eps) < -math.log1p(-one[1]) or (not add and eps > 0):
            point = contour.single_point(*one, add, eps)
            lower = max(lower, point.lower) if point else lower
    other = saddlepoint.point(steps, add, eps)
    if other:
        lower, upper = max(lower, other.lower), min(upper, other.upper)
    if not add and eps > 0 and jumps.serves(steps):
        lower, upper = max(lower, jumps.log_delta_lower(steps, eps)), min(upper, jumps.log_delta_upper(steps, eps))
    return Point(lower, upper, upper, (1.0,), "moments")


def moments_root(steps: GaussianSteps, add: int, log_delta: float):
    """eps(delta), clipped at 0, as `moments_point`; log_delta is log delta rounded to nearest."""
    least, most = (math.nextafter(log_delta, side) for side in (-math.inf, math.inf))
    upper = _chernoff(steps, add, 0, least)
    if upper is None:
        return None
    roots = [contour.single_root(*one, add, exp_upper(most)) for one in _single_steps(steps)]
    lower = max([0.0, *(root.lower for root in roots if root)])
    other = saddlepoint.root(steps, add, log_delta)
    if other:
        lower, upper = max(lower, other.lower), min(upper, other.upper)
    upper = max(upper, 0.0)
    if not add and lower < upper < math.inf and jumps.serves(steps):
        lower, upper = jumps.narrowed(steps, least, most, lower, upper)
    return Root(lower, upper, upper, (1.0,), "moments")


def certainly_below(steps: GaussianSteps, add: int, eps: float, log_delta: float, n_threads: int = 1) -> bool:
    """Whether the saddle-point accountant proves delta(eps) <= e^log_delta in this direction: it cannot be the larger then."""
    if log_delta == -math.inf:
        return False
    work = scratch.borrow(n_threads * _core.saddle_work())
    status, upper = _core.saddle_delta_upper(*steps, add, eps, log_delta, n_threads, work)
    scratch.give_back(work)
    return status == 0 and upper <= log_delta


def log_delta_upper(steps: GaussianSteps, add: int, eps: np.ndarray, lines: int = 16) -> np.ndarray:
    """Upper bounds of log delta at ascending eps: the least of `lines` Chernoff lines K(t) - eps t, tilts spread over eps."""
    best = np.zeros(eps.size)
    size = _core.contour_work(1)
    for at in eps[np.linspace(0, eps.size - 1, lines).astype(int)]:
        status, upper, tilt = scratch.lend(size, _core.chernoff_upper, *steps, add, 1, float(at))
        if status == 0:
            with np.errstate(over="ignore", invalid="ignore"):  # beyond doubles a line says nothing
                line = upper - (eps - at) * tilt
                best = np.fmin(best, line + 8 * U * (abs(upper) + tilt * (np.abs(eps) + abs(at))))
    return best


def _chernoff(steps: GaussianSteps, add: int, have_eps: int, value: float):
    status, _, upper = scratch.lend(_core.saddle_work(), _core.saddle_moments_upper, *steps, add, have_eps, value)
    return upper if status == 0 else None


def _single_steps(steps: GaussianSteps) -> list[tuple[float, float]]:
    """(m, q) of at most four subsampled steps, those of largest q."""
    order = np.argsort(-steps.q, kind="stable")[:4]
    return [(float(steps.shift[i]), float(steps.q[i])) for i in order if steps.q[i] < 1]
