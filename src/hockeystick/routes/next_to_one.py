"""Roots where delta is next to its largest value, 1 of plain Gaussian steps, q of one sampled step under REMOVE: its
logarithm has no digits left there, its distance from that value has all.

With g = log(1 + (e^eps - 1)/q), x = m/2 - g/m, y = m/2 + g/m and Mills' ratio R [theory: small.next-to-one],
    1 - delta/q = Phi(-x) + phi(x) R(y),
which rises with g.

Error claim: u (64 + 16 (1 + x)(1 + y)) of it, for 1 <= x <= 37.
"""

from __future__ import annotations

import math

from .._core import Rows
from ..answers import ZERO, Point, Root
from ..outward import U
from .contour import bracket

PART = 1e-4
"""1 - delta/q below which lines know less."""

FAR, FRACTION, DEPTHS = 37.0, 10.0, (11, 12)
"""The largest x, below which no number here underflows; y from which Mills' ratio is Laplace's continued fraction,
between convergents of these depths."""


def root(steps: Rows, add: int, delta: float) -> Root | None:
    """A certified root, at least 0; None where delta is not next to its largest value, or these are other steps."""
    if steps.k.size > 1:
        return None
    m, q, k = (x.item() for x in (steps.shift, steps.q, steps.k))
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
    """log(1 - delta) of one plain step at g."""
    x, y = 0.5 * m - g / m, 0.5 * m + g / m
    if x > FAR:
        return None
    first, density = 0.5 * math.erfc(x * math.sqrt(0.5)), math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    if y < FRACTION:
        ends = [math.exp(0.5 * y * y) * math.sqrt(0.5 * math.pi) * math.erfc(y * math.sqrt(0.5))]
    else:
        ends = [_mills(y, depth) for depth in DEPTHS]
    off = U * (64 + 16 * (1 + x) * (1 + y))  # [theory: small.next-to-one]
    low, high = (math.log(first + density * end) for end in (min(ends), max(ends)))
    return Point(low - off, 0.5 * (low + high), high + off, (off,), "contour")


def _mills(y: float, depth: int) -> float:
    """A convergent of Mills' ratio 1/(y + 1/(y + 2/(y + 3/(y + ...)))): those of even and of odd depth lie on its two
    sides."""
    down = y
    for n in range(depth, 0, -1):
        down = y + n / down
    return 1 / down
