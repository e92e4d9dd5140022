"""One or two runs of one pair, in real space (csrc/curve/few.c): for the small rates and deltas whose digits a contour
loses. Answers are those of answers.py, of the route `jumps`; None where there is none."""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from ..answers import Root
from ..gauss import legendre_rule
from ..outward import log_slack

RUNS = 2
COARSE, FINE, FIRST = 100, 2000, 240
"""Cells of the first step while a root is sought, and next to it at most; how many there always are beside."""

LEAST, MOST = 1e-12, 100.0
"""The range in which a root is sought."""

LOOKS = 30

PART, NEAR, NEARBY, USEFUL = 0.05, 6.0, 1e-4, 0.3
"""What log delta falls by from the fine point to a rough one, how many of its widths it may be off the root, how far a
rough one may be off it relative to eps, and how wide the fine one should be of what is useful."""

OUTWARD = 1e-12
"""Relative, of the distance from a point to an end: far above what rounding takes from it."""


def rule() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights of a panel (csrc/law/bulk.c)."""
    return legendre_rule(20)


def at(pair: np.ndarray, k: float, eps: float, cells: int = FINE):
    """A certified point, or None."""
    work = np.empty(_core.few_work(cells))  # its length decides how many cells there are
    answer = _core.few_delta(pair, int(k), eps, *rule(), work)
    return answer.certified("jumps") if answer.status <= _core.LOOSE else None


def root(
    pair: np.ndarray, k: float, log_delta: float, log_less: float, start: float = 0.0, sharp: float = 1e-9
) -> Root | None:
    """A certified root: its lower end is one of delta = e^log_delta, its upper end one of e^log_less, by chords to
    rough points on either side of a fine one [theory: line.chord-ends]. start: about where it lies, 0: unknown; sharp:
    the relative width that is useful."""
    seen = _about(pair, k, log_delta, start)
    if seen is None:
        return None
    eps, steep, rough, *others = seen
    finer = math.sqrt(rough / (USEFUL * sharp * steep * eps))  # errors fall with the square of all cells
    cells = min(FINE, max(COARSE, int((COARSE + FIRST) * finer) - FIRST))
    point = at(pair, k, eps, cells)
    if point and abs(_middle(point) - log_delta) > NEAR * (point.upper - point.lower):
        eps += (_middle(point) - log_delta) / steep
        point = at(pair, k, eps, cells)
    if point is None:
        return None
    off = _middle(point) - log_delta
    left = right = None
    if point.lower >= log_delta or point.upper <= log_less:
        left = _side(pair, k, eps, -PART / steep, others)
    if point.lower < log_delta or point.upper > log_less:
        right = _side(pair, k, eps, PART / steep, others)
    lower, upper = chord_ends(eps, point, left, right, log_delta, log_less)
    if not 0 < lower <= upper < math.inf:
        return None
    return Root(lower, min(max(eps + off / steep, lower), upper), upper, point.terms, "jumps")


def _side(pair, k: float, eps: float, step: float, others):
    """(eps, log of an upper end of delta there) of a rough point about as far from eps as `step`, or None."""
    for x, point in others:
        if 0.5 < (x - eps) / step < 5:
            return x, point.upper
    point = at(pair, k, eps + step, COARSE) if eps + step > 0 else None
    return point and (eps + step, point.upper)


def chord_ends(eps: float, point, left, right, log_delta: float, log_less: float) -> tuple[float, float]:
    """Ends of the root of a curve with the certified `point` at eps: where it is surely above e^log_delta, and at most
    e^log_less, by chords to (eps, log of an upper end) on either side; infinite where they do not say
    [theory: line.chord-ends]."""

    def above(log: float, target: float, side: int) -> float:  # e^log less e^target over it, outward
        return math.expm1(log - target + side * 2 * log_slack(log_delta, log))

    low, up = above(point.lower, log_delta, -1), above(point.upper, log_less, 1)
    lower, upper = -math.inf, math.inf  # of e^(x - eps) - 1 at the ends x
    if right:
        more, least, most = math.expm1(right[0] - eps), above(right[1], log_delta, 1), above(right[1], log_less, 1)
        if least < low < 0:
            lower = low / (low - least) * more
        if most <= 0 < up:
            upper = up / (up - most) * more
    if left:
        less, least, most = -math.expm1(left[0] - eps), above(left[1], log_delta, 1), above(left[1], log_less, 1)
        if 0 <= low < least:
            lower = low / (least - low) * less
        if up <= 0 <= most and up < most:
            upper = up / (most - up) * less
    lower -= OUTWARD * abs(lower)
    upper += OUTWARD * abs(upper)
    bottom = eps + math.log1p(lower) if lower > -0.5 else -math.inf
    top = eps + math.log1p(upper) if upper < 1 else math.inf
    return bottom - 2 * math.ulp(eps), top + 2 * math.ulp(eps)


def _middle(point) -> float:
    """About log delta: chords miss twice of what their middles do, on the other side."""
    return point.lower + (point.upper - point.lower) / 3


def _about(pair: np.ndarray, k: float, log_delta: float, start: float):
    """eps and -d log delta/d eps near the root, the width of a coarse point, and the last two of these with their eps:
    from `start`, or that of one step for a k-th of delta, secants; None where it is out of range."""
    low, high = math.log(LEAST), math.log(MOST)
    if start > 0:
        low = high = math.log(start)
    while high - low > (1e-9 if k == 1 else 0.05):
        mid = 0.5 * (low + high)
        point = at(pair, 1, math.exp(mid))
        low, high = (mid, high) if point and point.estimate > log_delta - math.log(k) else (low, mid)
    x, move, last = low, 0.02, None
    for _ in range(LOOKS):
        point = at(pair, k, math.exp(x), COARSE)
        if point is None:
            return None
        off = _middle(point) - log_delta
        if last is not None:
            steep = (last[1] - off) / (x - last[0])
            for from_x, from_off in ((x, off), last[:2]):
                if steep > 0 and abs(from_off) < NEARBY * steep:
                    eps = math.exp(from_x + from_off / steep)
                    others = (math.exp(x), point), (math.exp(last[0]), last[2])
                    return eps, steep / eps, point.upper - point.lower, *others
            move = max(-0.5, min(0.5, off / steep)) if steep > 0 else math.copysign(0.5, off)
        last = x, off, point
        x += move if abs(move) > 1e-6 else math.copysign(1e-6, move)
    return None
