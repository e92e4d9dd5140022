"""What convexity alone says about a privacy curve between certified points, and where to place the points.

With x = e^eps, delta(x) = sup_S num(S) - x den(S) is convex and does not increase [theory: pair.curve]; p(x) = den[L >
eps] is minus its slope and delta + x p = num[L > eps]. A convex curve lies below its chords and above their
prolongations, so four certified points x0 < x1 < x2 < x3 bound min_x delta(x) + a x from both sides
[theory: risk.four-points]: above by any of them, below, between x1 and x2, by the chords of (x0, x1) and (x2, x3)
prolonged. Both ends meet to second order in the distance of the points, which is driven down until rounding and the
width of the deltas stop it. Curves of atoms are straight between corners: where such a one is expected a fifth point
lies on it, at which both ends meet at once. No density, atom or derivative is needed."""

from __future__ import annotations

import collections
import itertools
import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from . import query
from .outward import DOWN, UP, U

EPS_MAX = 690.0
"""Largest eps whose x = e^eps is used: a double still holds it, with room for a product."""

ROUNDS = 40
EVEN = (-1.5, -0.5, 0.5, 1.5)
CORNER = (-1.5, -0.5, 0.0, 0.5, 1.5)
"""Where the points lie about their centre, in units of their distance; one more, where a corner is expected."""
STRAIGHT = 0.02
"""Part of the curvature about a corner that the line may have that ends in it."""
KEPT = 4

LEAST, GROWN = 1e-250, 2.0**200
"""Rates below which slopes may be no normal doubles, and what all is multiplied by there."""


class Nodes(NamedTuple):
    """Four or five certified points of a curve, eps rising: delta(x_dn) >= low, delta(x_up) <= high. x_dn and x_up
    enclose e^eps."""

    eps: tuple[float, ...]
    x_dn: tuple[float, ...]
    x_up: tuple[float, ...]
    low: tuple[float, ...]
    mid: tuple[float, ...]
    high: tuple[float, ...]

    def times(self, by: float) -> Nodes:
        """The same points of a curve that is so many times as high; `by` is a power of 2."""
        return self._replace(**{end: tuple(by * d for d in getattr(self, end)) for end in ("low", "mid", "high")})

    def width(self) -> float:
        """Of the deltas: nearer points do not help much beyond it."""
        return max(high - low for low, high in zip(self.low, self.high, strict=True))


class Curve:
    """The privacy curve of a run in one direction, asked at four points at a time.

    `kept`: the last nodes of levels asked before. A curve of few atoms has few corners, at which many levels end.
    """

    def __init__(self, run, direction: str, options: dict, routes: set[str]):
        sided: dict[str, Any] = {**options, "direction": direction}
        self.ask = query.asker(run, **sided)
        self.routes = routes
        self.kept: collections.deque[Nodes] = collections.deque(maxlen=KEPT)
        # The Gaussian curve of the same advantage: where the search starts and how far apart its points are.
        adv = min(max(float(self.ask(np.zeros(1)).estimate[0]), 1e-12), 1 - 1e-15)
        self.mu = 2 * NormalDist().inv_cdf(0.5 * (1 + adv))

    def nodes(self, centre: float, h: float, steps: tuple[float, ...]) -> Nodes:
        eps = [centre + h * step for step in steps]
        bound = self.ask(np.array(eps))
        self.routes.update(bound.route.split("+"))
        x = [math.exp(e) for e in eps]
        ends = (bound.lower, bound.estimate, bound.upper)
        dn, up = tuple(v * DOWN for v in x), tuple(v * UP for v in x)
        return Nodes(tuple(eps), dn, up, *(tuple(map(float, end)) for end in ends))

    def rounds(self, level: float, dual: bool):
        """Ever closer nodes around the eps where p = level, or where num[L > eps] = level with `dual`.

        A chord's slope is the mean of p over its cell, so it says on which side of one of its ends the wanted eps lies:
        these ends bracket it. Inside the bracket the next centre is read off the slopes in the middle of the cells.
        """
        z = NormalDist().inv_cdf(level)
        centre = self.mu * (self.mu / 2 if dual else -self.mu / 2) - self.mu * z
        h = min(0.3 * self.mu, 0.5)
        below, above = -EPS_MAX, EPS_MAX
        known: dict[float, tuple[float, float, float]] = {}  # by x
        corner, last, near, walk = None, 0.1 * h, False, 1.0
        for _ in range(ROUNDS):
            centre = min(max(centre, -EPS_MAX + 2 * h), EPS_MAX - 2 * h)
            nodes = self.nodes(centre, h, EVEN if corner is None else CORNER)
            yield nodes
            points = list(zip(nodes.eps, nodes.x_dn, nodes.mid, strict=True))
            known |= {point[1]: point for point in points}
            slopes, tails = _slopes(points, dual)
            middles = []
            for (left, _, _), (right, _, _), both in zip(points, points[1:], tails, strict=False):
                if both[0] > level:
                    below = max(below, left)
                if both[1] <= level:
                    above = min(above, right)
                value = 0.5 * sum(both)
                middles.append((0.5 * (left + right), math.log(value / level) if value > 0 else -math.inf))
            guess, inside = _zero(middles, max(walk, 8.0) * h)
            walk = 1.0 if inside else 2 * walk  # longer steps, where the first ones were short
            room, off = above - below, abs(guess - centre)
            bend = (slopes[0] - slopes[-1]) * (points[1][1] - points[0][1])
            # Points apart by a factor of this show a bend four times as large as the width of the deltas.
            least = math.sqrt(4 * nodes.width() / bend) if bend > 0 else 3.0
            near, before_last = least > 0.7 and off < 0.5 * h, near
            if room <= 1e-9 * (1 + abs(centre)) or (near and before_last):
                return
            corner = _corner(sorted(known.values()), level, dual) if corner is None else None  # not twice in a row
            if corner is not None:
                centre, h = corner, 0.3 * h
                continue
            before, last = last, h
            if not inside:
                h = min(2 * h, 0.5, room / 3)
            elif off < 0.3 * h:  # the error of a guess falls as the square of the distance of the points
                h *= max(min(max(5 * off * h / before**2, 0.003), 0.1), min(least, 3.0))
            else:
                h *= 0.3
            both_sides = below > -EPS_MAX and above < EPS_MAX
            centre = 0.5 * (below + above) if both_sides and not below < guess < above else guess


def _slopes(points, dual: bool) -> tuple[list[float], list[tuple[float, float]]]:
    """Of every cell between points (eps, x, delta): p, minus its chord's slope, and p at both ends, or num[L > eps]
    there with `dual`."""
    cells = list(itertools.pairwise(points))
    slopes = [(a[2] - b[2]) / (b[1] - a[1]) for a, b in cells]
    return slopes, [
        (a[2] + a[1] * p, b[2] + b[1] * p) if dual else (p, p) for p, (a, b) in zip(slopes, cells, strict=True)
    ]


def _corner(points, level: float, dual: bool) -> float | None:
    """The eps of a corner at which the curve through points (eps, x, delta) seems to cross the level, as curves of few
    atoms do: there the line on one side, along which three points lie, meets the chord of the other side."""
    slopes, tails = _slopes(points, dual)

    def curvature(i: int, j: int) -> float:
        middles = (points[k][1] + points[k + 1][1] for k in (j, i))
        return abs(slopes[i] - slopes[j]) / sum(sign * x for sign, x in zip((1, -1), middles, strict=True))

    last = sum(sum(both) > 2 * level for both in tails) - 1  # the last cell before the crossing
    for cell, line in ((last, (last + 1, last + 2)), (last + 1, (last - 1, last))):
        if not (1 <= cell <= len(slopes) - 2 and 0 <= line[0] and line[1] < len(slopes)):
            continue
        left, right = slopes[cell - 1], slopes[cell + 1]
        if not curvature(*line) < STRAIGHT * curvature(cell - 1, cell + 1):
            continue
        (a, x, d), (b, y, e) = points[cell : cell + 2]
        at = (d + left * x - e - right * y) / (left - right)
        if x < at < y:
            return min(max(math.log(at), a), b)
    return None


def _zero(points: list[tuple[float, float]], reach: float) -> tuple[float, bool]:
    """The zero of a decreasing function given at several points, and whether it lies between two of them; else a step
    that way, at most `reach`."""
    for (a, fa), (b, fb) in itertools.pairwise(points):
        if fa > 0 >= fb:
            return (a + (b - a) * fa / (fa - fb) if math.isfinite(fb) else 0.5 * (a + b)), True
    (a, fa), (b, fb) = points[-2:] if points[0][1] > 0 else points[:2]
    away = reach if points[0][1] > 0 else -reach
    slope = (fb - fa) / (b - a) if math.isfinite(fa) and math.isfinite(fb) else 0.0
    step = -fb / slope if slope < 0 else away
    return b + (step if abs(step) < reach else away), False


def rate_upper(x: float) -> float:
    """A few positive operations that gave x, rounded up, also where x is no normal double."""
    return math.nextafter(x * UP, math.inf)


def rate_lower(x: float) -> float:
    """The same rounded down."""
    return math.nextafter(x * DOWN, -math.inf)


def fpr_upper(nodes: Nodes, tpr: float, start: float) -> float:
    """An upper bound of max_x (tpr - delta(x)) / x: an f with delta(x) + f x >= tpr for all x > 0
    [theory: risk.fpr]."""
    # Where delta(x) >= tpr, smaller x add nothing and larger ones at most tpr / x.
    best = min([tpr] + [rate_upper(tpr / x) for d, x in zip(nodes.low, nodes.x_dn, strict=True) if d >= tpr])
    f = start
    for _ in range(8):
        short = tpr - tpr_lower(nodes, f)
        if short <= 0:
            return min(best, f)
        f += (short * (1 + 1e-6) + 16 * U * tpr) / nodes.x_dn[1]
    return best


def tpr_lower(nodes: Nodes, a: float) -> float:  # [theory: pair.curve, risk.four-points]
    """A lower bound of delta(x) + a x over all x > 0 (head of the file); a, which no tpr is below, if the points lie
    wrong."""
    if 0 < a < LEAST:
        return max(a, rate_lower(tpr_lower(nodes.times(GROWN), GROWN * a) / GROWN))
    x, low, high, xu = nodes.x_dn, nodes.low, nodes.high, nodes.x_up
    n = len(x)
    parts = [low[i] + a * x[i] for i in range(n)]

    def right(i: int, j: int, at: float) -> float:  # chord (i, j) prolonged to at >= x[j]
        r = (at - x[j]) / (x[j] - xu[i])
        return low[j] + (low[j] - high[i]) * r + a * at - 8 * U * (low[j] + abs(low[j] - high[i]) * r)

    def left(i: int, j: int, at: float) -> float:  # chord (i, j) prolonged to at <= x[i]
        r = (x[i] - at) / (xu[j] - x[i])
        return low[i] + (low[i] - high[j]) * r + a * at - 8 * U * (low[i] + abs(low[i] - high[j]) * r)

    if (low[-1] - high[-2]) / (x[-1] - xu[-2]) * UP + a < 0:
        return a  # nothing bounds the curve beyond the last point
    parts += [left(0, 1, 0.0), left(1, 2, x[0]), right(n - 3, n - 2, x[-1])]
    # Between inner points the curve is above both prolonged chords, hence above each of their mixtures; the flat one.
    for i in range(1, n - 2):
        down = (low[i] - high[i - 1]) / (x[i] - xu[i - 1]) + a
        up = (high[i + 2] - low[i + 1]) / (xu[i + 2] - x[i + 1]) + a
        mix = min(max(up / (up - down), 0.0), 1.0) if up > down else 0.5
        for at in (x[i], x[i + 1]):
            parts.append(mix * right(i - 1, i, at) + (1 - mix) * left(i + 1, i + 2, at))
    return max(a, min(parts) * DOWN)


def chord_share(nodes: Nodes, i: int, worse: bool) -> float:
    """x p between the points i and i+1 [theory: risk.slope]: at least what the chord's slope says at the left point, at
    most that at the right, at that point."""
    x, xu = nodes.x_dn, nodes.x_up
    if worse:
        return rate_upper(max(0.0, nodes.high[i] - nodes.low[i + 1]) * (xu[i + 1] / (x[i + 1] - xu[i])))
    return rate_lower(max(0.0, nodes.low[i] - nodes.high[i + 1]) * (x[i] / (xu[i + 1] - x[i])))
