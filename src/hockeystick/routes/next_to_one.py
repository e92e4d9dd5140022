"""Roots where delta is next to its largest value, 1 of plain Gaussian steps, q of one sampled step under REMOVE: its
logarithm has no digits left there, its distance from that value has all.

With g = log(1 + (e^eps - 1)/q) the distance is q (1 - G(g)), G the curve of the plain step [theory: small.next-to-one],
which rises with g; csrc/curve/gdp.c has bounds of 1 - G.
"""

from __future__ import annotations

import math

from .. import _core
from .._core import Rows
from ..answers import ZERO, Point, Root
from ..outward import U, log_slack
from .contour import bracket

PART = 1e-4
"""1 - delta/q below which lines know less."""


def root(steps: Rows, add: int, delta: float) -> Root | None:
    """A certified root, at least 0; None where delta is not next to its largest value, or these are other steps."""
    if steps.k.size > 1:
        return None
    m, q, k = steps.shift.item(), steps.q.item(), steps.k.item()
    if q < 1 and (add or k > 1):
        return None
    part = (q - delta) / q  # q - delta is exact
    if not 0 < part < PART:
        return None
    m *= math.sqrt(k)
    if (at_zero := _distance(m, 0.0)) and at_zero.lower >= math.log(part):
        return Root(0.0, 0.0, 0.0, ZERO, "contour")
    found = bracket(lambda x: _distance(m, -x), part, m - 0.5 * m * m, 0.0)
    if found is None:
        return None
    lower, estimate, upper = (_sampled(max(-end, 0.0), q) for end in (found.upper, found.estimate, found.lower))
    return Root(lower * (1 - 16 * U), estimate, upper * (1 + 16 * U), (0.0, 0.0, 0.0, found.terms[-1]), "contour")


def _sampled(g: float, q: float) -> float:
    """log(1 + q (e^g - 1)), g >= 0, within 8u."""
    return math.log1p(q * math.expm1(g)) if g < 700 else g + math.log(q)


def _distance(m: float, g: float) -> Point | None:
    """log(1 - delta) of one plain step at g, m known within 4u."""
    low = _core.gdp_tangent(m * (1 + 8 * U), g, g)[2]
    high = _core.gdp_tangent(m * (1 - 8 * U), g, g)[3]
    if not low > 0:
        return None
    ends = math.log(low), math.log(high)  # [theory: small.next-to-one]
    off = log_slack(*ends) + 2 * U  # the quotient of `root`
    return Point(ends[0] - off, 0.5 * (ends[0] + ends[1]), ends[1] + off, (ends[1] - ends[0] + 2 * off,), "contour")
