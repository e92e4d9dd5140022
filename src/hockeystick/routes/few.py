"""One or two runs of one pair, in real space (csrc/curve/few.c): for the small rates and deltas whose digits a contour
loses. Answers are those of answers.py, of the route `jumps`; None where there is none."""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import _core
from ..answers import Root
from ..outward import log_slack

RUNS = 2
COARSE, FINE = 100, 2500
"""Cells of the first step while a root is sought, and at its ends."""

LEAST, MOST = 1e-12, 100.0
"""The range in which a root is sought."""

LOOKS = 30


@functools.lru_cache(1)
def _rule() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(20)


def at(pair: np.ndarray, k: float, eps: float, cells: int = FINE):
    """A certified point, or None."""
    work = np.empty(_core.few_work(cells))  # its length decides how many cells there are
    answer = _core.few_delta(pair, int(k), eps, *_rule(), work)
    return answer.point("jumps") if answer.status <= _core.LOOSE else None


def root(pair: np.ndarray, k: float, log_delta: float, log_less: float) -> Root | None:
    """A certified root: its upper end is where delta is at most e^log_less, its lower end where it is at least
    e^log_delta [theory: line.root]."""
    found = _about(pair, k, log_delta)
    if found is None:
        return None
    eps, steep = found
    point = at(pair, k, eps)
    if point is None:
        return None
    eps += (point.estimate - log_delta) / steep
    off = max((point.upper - point.lower) / steep, 1e-14 * eps)
    lower = _end(pair, k, eps, -off, lambda x: x.lower >= log_delta + log_slack(log_delta))
    upper = _end(pair, k, eps + (log_delta - log_less) / steep, off, lambda x: x.upper <= log_less)
    if lower is None or upper is None or not 0 < lower <= eps <= upper:
        return None
    return Root(lower, eps, upper, point.terms, "jumps")


def _about(pair: np.ndarray, k: float, log_delta: float):
    """(eps, -d log delta/d eps) near the root: that of one step for a k-th of delta, then secants on coarse points;
    None where it is out of range."""
    low, high = math.log(LEAST), math.log(MOST)
    while high - low > (1e-9 if k == 1 else 0.05):
        mid = 0.5 * (low + high)
        point = at(pair, 1, math.exp(mid))
        low, high = (mid, high) if point and point.estimate > log_delta - math.log(k) else (low, mid)
    x, move, steep, before, off_before = low, 0.02, math.nan, math.nan, math.nan
    for _ in range(LOOKS):
        point = at(pair, k, math.exp(x), COARSE)
        if point is None:
            return None
        off = point.estimate - log_delta
        if not math.isnan(before):
            steep = (off_before - off) / (x - before)
            move = max(-0.5, min(0.5, off / steep)) if steep > 0 else math.copysign(0.5, off)
            if abs(move) < 1e-4 and steep > 0:
                return math.exp(x + move), steep / math.exp(x)
        before, off_before = x, off
        x += move if abs(move) > 1e-6 else math.copysign(1e-6, move)
    return None


def _end(pair: np.ndarray, k: float, eps: float, move: float, holds):
    """The first of eps + move, eps + 2 move, eps + 4 move, ... where `holds`, or None."""
    for _ in range(12):
        point = at(pair, k, eps + move) if eps + move > 0 else None
        if point is not None and holds(point):
            return eps + move
        move *= 2
    return None
