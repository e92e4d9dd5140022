"""Route `contour`: Fourier inversion with a certificate, at a cost that does not depend on k.

Two contours share the name. The vertical line (contour.c) takes any number of distinct steps; where the transform decays
too slowly along it (few steps, small sampling rates), a hyperbola (csrc/curve/hyperbola.c) takes up to six distinct steps. One
subsampled step is a Gaussian curve at a shifted eps, exactly.

A point of the curve is (log_lower, log_estimate, log_upper, terms) of delta, a root is (lower, estimate, upper, terms) of
eps; `terms` are relative to delta and follow TERMS. None means that the route declines.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import _core
from ..arguments import log_lower, log_upper
from ..pair import GaussianSteps, PairedSteps

TERMS = ("aliasing", "truncation", "inner_quadrature", "rounding")
RTOL = 1e-9
"""Relative half-width of delta that a contour must reach, or the next one is tried as well."""

ROUGH = 1e-6
"""Relative width from which a long line is worth its milliseconds."""

HYPERBOLA_STEPS = 6
SHORT_LINE = 700
"""Outer nodes up to which the line is faster than the hyperbola."""

MANY = 1.0
"""Records expected in all samples, sum k q, from which the line is tried first: fewer leave it an atom that hardly decays."""

U = 2.0**-53
_NONE = np.zeros(0)

LOOSER = (1e-6, 1e-4)
"""Where the nodes for rtol do not fit, the relative half-widths tried next: a shorter line, still better than a grid."""

HOPELESS = (4, 8, 9)
"""Statuses of a line that no other goal helps: no saddle, or more lost to rounding than there is."""

LONG_RUN = ((5.0, math.inf), (12.0, 1e6), (math.inf, 1e4))
"""(sensitivity/sigma, compositions) up to which long lines of few steps are tried: beyond, inner grids hardly ever fit."""

_scratch: list[np.ndarray] = []  # lent to one call at a time: list.pop and list.append are atomic


def borrow(size: int) -> np.ndarray:
    try:
        work = _scratch.pop()
    except IndexError:
        work = _NONE
    return work if work.size >= size else np.empty(size)


def give_back(work: np.ndarray) -> None:
    if not _scratch and work.size < 1 << 20:
        _scratch.append(work)


@functools.lru_cache(16)
def _margin(rtol: float) -> float:
    """Nats by which aliases and tail stay below delta: twelve below rtol; beyond 31 a double gains nothing."""
    return min(31.0, 12.0 - math.log(rtol))


def point(steps: GaussianSteps, add: int, eps: float, rtol: float = RTOL, n_threads: int = 1):
    """A certified point of the curve, or None. Proof: headers of csrc/line/contour.c and csrc/curve/hyperbola.c."""
    answer = _answer(_core.contour_delta, _core.hyperbola_delta, _point_width, steps, add, eps, rtol, n_threads)
    return answer and _logs(answer)


def points(steps: GaussianSteps, add: int, eps: np.ndarray, rtol: float, n_threads: int) -> np.ndarray:
    """Certified points at ascending eps that share contours: rows (log_lower, log_estimate, log_upper, four terms), NaN where
    the line gives less than rtol."""
    work = borrow(_core.contour_work(steps.shift.size, n_threads))
    try:
        rows = _core.contour_curve(*steps, add, eps, rtol, _margin(rtol), n_threads, work)
    finally:
        give_back(work)
    status, scale, lower, estimate, upper, *terms = rows.T
    good = status == 0
    with np.errstate(all="ignore"):
        log_upper = scale + np.log(upper)
        slack = 4 * U * (2 + np.abs(scale) + np.abs(np.log(upper)))
        ends = scale + np.log(lower) - slack, scale + np.log(estimate), log_upper + slack
        return np.where(good, np.array([*ends, *(t / estimate for t in terms)]), np.nan).T


def root(steps: GaussianSteps, add: int, log_delta: float, rtol: float = RTOL, n_threads: int = 1):
    """A certified root of delta(eps) = e^log_delta, or None: certified deltas at both ends bracket the target
    [theory: line.root]."""
    answer = _answer(_core.contour_eps, _core.hyperbola_eps, _root_width, steps, add, log_delta, rtol, n_threads)
    return answer and answer[1:5]


def shape(steps: GaussianSteps, add: int, eps: float, rtol: float = RTOL, n_threads: int = 1) -> tuple[str, int] | None:
    """Which contour answers `point`, "line" or "hyperbola", and its nodes; None where both decline."""
    made = []

    def noted(name: str, ask):
        def answer(*settings):
            made.append((name, ask(*settings)))
            return made[-1][1]

        return answer

    ask = noted("line", _core.contour_delta), noted("hyperbola", _core.hyperbola_delta)
    answer = _answer(*ask, _point_width, steps, add, eps, rtol, n_threads)
    return next(((name, int(own[-1])) for name, own in made if own is answer), None)


def pair_point(paired: PairedSteps, add: int, eps: float, rtol: float = RTOL, n_threads: int = 1):
    """A certified point of a run with two-sided pairs, or None. What was dropped is at +inf: it can only raise delta
    [theory: small.dropped]."""
    answer = _pair_answer(_core.contour_delta, paired, add, eps, rtol, n_threads)
    if answer is None:
        return None
    low, mid, high, terms = _logs(answer)
    if paired.dropped:
        high = max(high, math.log(paired.dropped)) + math.log1p(math.exp(-abs(high - math.log(paired.dropped)))) + 4 * U
    return low, mid, high, terms


def pair_root(paired: PairedSteps, add: int, delta: float, rtol: float = RTOL, n_threads: int = 1):
    """A certified root of a run with two-sided pairs, or None; the upper end is that of delta less what was dropped."""
    if not paired.dropped < 0.5 * delta:
        return None
    log_delta = math.log(delta)
    answer = _pair_answer(_core.contour_eps, paired, add, log_delta, rtol, n_threads)
    if answer is None:
        return None
    low, mid, high, terms = answer[1:5]
    if paired.dropped:
        less = _pair_answer(
            _core.contour_eps, paired, add, log_delta + math.log1p(-paired.dropped / delta) - 4 * U, rtol, n_threads
        )
        if less is None:
            return None
        high = max(high, less[3])
    return low, mid, high, terms


def _pair_answer(line, paired: PairedSteps, add: int, at: float, rtol: float, n_threads: int):
    m, q, k = paired.steps
    work = borrow(_core.contour_work(m.size, n_threads))
    try:
        for goal in (rtol, *(x for x in LOOSER if x > rtol)):
            answer = line(m, q, k, add, at, goal, _margin(goal), n_threads, work, pairs=paired.pairs)
            if answer[0] <= 1:
                return answer
        return None
    finally:
        give_back(work)


def _point_width(answer) -> float:
    return (answer[4] - answer[2]) / answer[3]


def _root_width(answer) -> float:
    return (answer[3] - answer[1]) / max(abs(answer[2]), 1e-300)


def _answer(line, hyperbola, width, steps: GaussianSteps, add: int, at: float, rtol: float, n_threads: int):
    """The first contour to reach rtol: hyperbola and short line in the likely order, long lines; else the narrowest or None."""
    m, q, k = steps
    few = m.size <= HYPERBOLA_STEPS
    work = borrow(max(_core.contour_work(m.size, n_threads), _core.hyperbola_work(m.size) if few else 0))
    try:
        margin = _margin(rtol)
        found = []
        for straight in _order(steps):
            if straight:
                answer = line(m, q, k, add, at, rtol, margin, n_threads, work, *((SHORT_LINE,) if few else ()))
            elif not _curved(steps):
                continue
            else:
                answer = hyperbola(m, q, k, add, at, math.log(rtol), work)
            if answer[0] == 0:
                return answer
            if answer[0] == 1:
                found.append(answer)
        for goal in (*((rtol,) if few else ()), *(x for x in LOOSER if x > rtol)) if _long(steps) else ():
            if found and min(map(width, found)) <= max(goal, ROUGH):
                break
            answer = line(m, q, k, add, at, goal, _margin(goal), n_threads, work)
            if answer[0] <= 1:
                found.append(answer)
            elif answer[0] in HOPELESS:
                break
        return min(found, key=width) if found else None
    finally:
        give_back(work)


def _order(steps: GaussianSteps) -> tuple[bool, ...]:
    """The contours to try, the likely one first: True for the line, False for the hyperbola."""
    if steps.shift.size > HYPERBOLA_STEPS:
        return (True,)
    return (True, False) if steps.k.dot(steps.q) >= MANY else (False, True)


def _long(steps: GaussianSteps) -> bool:
    """Whether long lines are worth trying."""
    shift, total = steps.shift.max(), steps.k.sum()
    return total <= next(most for reach, most in LONG_RUN if shift <= reach)


def _curved(steps: GaussianSteps) -> bool:
    """Whether the hyperbola is worth trying: the range in which its certificate has been seen to succeed."""
    m, q, k = (x.tolist() for x in steps)
    return sum(k) <= 2e4 and 0.05 <= min(m) and max(m) <= 10 and 1e-7 <= min(q) and max(q) < 1


def _logs(answer):
    """Logs of a point in scaled form, rounded outward [theory: rounding.outward]: the scale and the logs carry 4u(1 +
    |log|)."""
    _, scale, lower, estimate, upper, terms, _ = answer
    log_upper = scale + math.log(upper)
    slack = 4 * U * (2 + abs(scale) + abs(log_upper - scale))
    log_lower = scale + math.log(lower) - slack if lower > 0 else -math.inf
    return log_lower, scale + math.log(estimate), log_upper + slack, tuple(t / estimate for t in terms)


def single_point(m: float, q: float, add: int, eps: float):
    """One subsampled Gaussian step through the plain Gaussian curve delta_G (amplification, exact)
    [theory: pair.one-sampled-step].

    REMOVE, eps > log(1-q):  delta = q delta_G(g),  g = log1p(expm1(eps)/q).
    ADD, eps < -log(1-q):    delta = (1 - (1-q)e^eps) delta_G(x),  x = log q + eps - log(1 - (1-q)e^eps).
    The shift of eps is known to `slack`; the curve is monotone, so its ends are taken at the two ends of the shift.
    """
    wall = math.log1p(-q)
    if add:
        weight = -math.expm1(eps + wall)
        if weight <= 0:
            return (-math.inf, -math.inf, -math.inf, (0.0,) * 4) if eps >= -wall * (1 + 4 * U) else None
        spoiled = 8 * U * (abs(eps) + abs(wall)) / weight * math.exp(eps + wall) + 8 * U
        log_weight = math.log(weight)
        at = math.log(q) + eps - log_weight
    else:
        ratio = math.expm1(min(eps, 600.0)) / q
        if ratio < 1e-12 - 1:  # 1 - e^eps <= delta(eps), and delta(eps) <= delta(log(1-q)) = q from the wall on
            floor = math.log(-math.expm1(eps))
            slack = 4 * U * (1 - floor)
            return floor - slack, floor, min(max(floor, math.log(q)) + slack, 0.0), (0.0,) * 4
        log_weight, spoiled = math.log(q), 8 * U
        at = math.log1p(ratio) if eps < 600 else eps - log_weight
        spoiled += 8 * U * abs(ratio) / (1 + ratio)
    slack = spoiled + 8 * U * (1 + abs(at) + abs(log_weight))
    one = GaussianSteps(np.array([m]), np.ones(1), np.ones(1))
    left, mid, right = (point(one, 0, at + move) for move in (-slack, 0.0, slack))
    if left is None or mid is None or right is None:
        return None
    *terms, rounding = mid[3]
    moved = max(left[1] - mid[1], mid[1] - right[1]) + slack  # what the shift is known to moves delta as well
    rounding += math.expm1(min(moved, 700.0))
    return right[0] + log_weight - slack, mid[1] + log_weight, left[2] + log_weight + slack, (*terms, rounding)


def single_root(m: float, q: float, add: int, delta: float):
    """eps of one subsampled step: closed form for REMOVE; for ADD a bracket of certified points around the root."""
    if not add:
        if delta >= q:  # delta(0) = q (2 Phi(m/2) - 1) < q: two rounded logs would not tell
            return 0.0, 0.0, 0.0, (0.0,) * 4
        log_delta, log_q = math.log(delta), math.log(q)
        target = log_delta - log_q
        one = GaussianSteps(np.array([m]), np.ones(1), np.ones(1))
        slack = 4 * U * (2 - log_delta - log_q)
        low, high = (root(one, 0, target + slack) if target + slack < 0 else None), root(one, 0, target - slack)
        if high is None:
            return None
        if low is None:  # all that is known is eps > log(1-q), where expm1(g) = -1
            low = (-800.0, *high[1:])
        ends = [
            math.log1p(q * math.expm1(g)) if g < 700 else g + math.log(q) for g in (low[0], 0.5 * (low[1] + high[1]), high[2])
        ]
        widen = 16 * U * (1 + max(abs(low[0]), abs(high[2])) * q)
        return ends[0] - widen * abs(ends[0]), ends[1], ends[2] + widen * abs(ends[2]), low[3]
    return bracket(lambda e: single_point(m, q, 1, e), delta, 0.0, -math.log1p(-q))


def bracket(curve, delta: float, lo: float, hi: float, wall: float | None = None):
    """Certified root in (lo, hi) from certified points of a decreasing curve: bisection on the estimate, then outward steps.
    `wall` is an upper bound of the root that holds anyway."""
    log_delta, above, below = math.log(delta), log_upper(delta), log_lower(delta)
    for _ in range(200):
        mid = 0.5 * (lo + hi)
        if not lo < mid < hi:
            break
        at = curve(mid)  # None: a delta too small to be seen, as a rule; both ends are certified below
        lo, hi = (mid, hi) if at and at[1] > log_delta else (lo, mid)
    lower = _outward(curve, lo, -16 * U * hi, lambda at: at[0] >= above)
    upper = _outward(curve, hi, 16 * U * hi, lambda at: at[2] <= below)
    if lower is None or (upper is None and wall is None):
        return None
    end = wall if upper is None else upper[0] if wall is None else min(upper[0], wall)
    return lower[0], 0.5 * (lo + hi), end, lower[1][3]


def _outward(curve, start: float, step: float, holds):
    """(eps, point of the curve) from `start` on, where `holds`, in steps that double; None where none is found."""
    for _ in range(60):
        at = curve(start + step)
        if at is None:
            return None
        if holds(at):
            return start + step, at
        step *= 2
    return None
