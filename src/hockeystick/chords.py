"""What convexity alone says about a privacy curve between certified points, and where to place the points.

With x = e^eps, delta(x) = sup_S num(S) - x den(S) is convex and does not increase [theory: pair.curve]; p(x) = den[L >
eps] is minus its slope and delta + x p = num[L > eps]. A convex curve lies below its chords and above their
prolongations, so four certified points x0 < x1 < x2 < x3 bound min_x delta(x) + a x from both sides
[theory: risk.four-points]: above by any of them, below, between x1 and x2, by the chords of (x0, x1) and (x2, x3)
prolonged. Both ends meet to second order in the distance of the points, which is driven down until rounding and the
width of the deltas stop it. No density, atom or derivative is needed."""

from __future__ import annotations

import collections
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from . import query
from .outward import DOWN, UP, U

EPS_MAX = 690.0
"""Largest eps whose x = e^eps is used: a double still holds it, with room for a product."""

ROUNDS = 40
KEPT = 4


class Nodes(NamedTuple):
    """Four certified points of a curve, eps rising: delta(x_dn) >= low, delta(x_up) <= high. x_dn and x_up enclose
    e^eps."""

    eps: tuple[float, ...]
    x_dn: tuple[float, ...]
    x_up: tuple[float, ...]
    low: tuple[float, ...]
    mid: tuple[float, ...]
    high: tuple[float, ...]

    def width(self) -> float:
        """Of the deltas: nearer points do not help much beyond it."""
        return max(high - low for low, high in zip(self.low, self.high, strict=True))


class Curve:
    """The privacy curve of a run in one direction, asked at four points at a time.

    `kept`: the last nodes of levels asked before. A curve of few atoms has few corners, at which many levels end.
    """

    def __init__(self, run, direction: str, options: dict, routes: set[str]):
        sided: dict[str, Any] = {**options, "direction": direction}
        self.ask = lambda eps: query.delta(run, eps, **sided)
        self.routes = routes
        self.kept: collections.deque[Nodes] = collections.deque(maxlen=KEPT)
        # The Gaussian curve of the same advantage: where the search starts and how far apart its points are.
        adv = min(max(self.ask(0.0).estimate, 1e-12), 1 - 1e-15)
        self.mu = 2 * normal_quantile(0.5 * (1 + adv))

    def nodes(self, centre: float, h: float) -> Nodes:
        eps = [centre + h * step for step in (-1.5, -0.5, 0.5, 1.5)]
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
        z = normal_quantile(level)
        centre = self.mu * (self.mu / 2 if dual else -self.mu / 2) - self.mu * z
        h = min(0.3 * self.mu, 0.5)
        below, above = -EPS_MAX, EPS_MAX
        for _ in range(ROUNDS):
            centre = min(max(centre, -EPS_MAX + 2 * h), EPS_MAX - 2 * h)
            nodes = self.nodes(centre, h)
            yield nodes
            middles = []
            for i in range(3):
                p = (nodes.mid[i] - nodes.mid[i + 1]) / (nodes.x_dn[i + 1] - nodes.x_dn[i])
                tails = [nodes.mid[j] + nodes.x_dn[j] * p if dual else p for j in (i, i + 1)]
                if tails[0] > level:
                    below = max(below, nodes.eps[i])
                if tails[1] <= level:
                    above = min(above, nodes.eps[i + 1])
                value = 0.5 * (tails[0] + tails[1])
                middles.append(
                    (0.5 * (nodes.eps[i] + nodes.eps[i + 1]), math.log(value / level) if value > 0 else -math.inf)
                )
            guess, inside = _zero(middles, 8 * h)
            room = above - below
            if room <= 1e-9 * (1 + abs(centre)):
                return
            h = h * (0.1 if abs(guess - centre) < 0.3 * h else 0.3) if inside else min(2 * h, 0.5, room / 3)
            both = below > -EPS_MAX and above < EPS_MAX
            centre = 0.5 * (below + above) if both and not below < guess < above else guess


def _zero(points: list[tuple[float, float]], reach: float) -> tuple[float, bool]:
    """The zero of a decreasing function given at three points, and whether it lies between two of them; else a step
    that way, at most `reach`."""
    for (a, fa), (b, fb) in itertools.pairwise(points):
        if fa > 0 >= fb:
            return (a + (b - a) * fa / (fa - fb) if math.isfinite(fb) else 0.5 * (a + b)), True
    (a, fa), (b, fb) = points[1:] if points[0][1] > 0 else points[:2]
    away = reach if points[0][1] > 0 else -reach
    slope = (fb - fa) / (b - a) if math.isfinite(fa) and math.isfinite(fb) else 0.0
    step = -fb / slope if slope < 0 else away
    return b + (step if abs(step) < reach else away), False


def fpr_upper(nodes: Nodes, tpr: float, start: float) -> float:
    """An upper bound of max_x (tpr - delta(x)) / x: an f with delta(x) + f x >= tpr for all x > 0
    [theory: risk.fpr]."""
    # Where delta(x) >= tpr, smaller x add nothing and larger ones at most tpr / x.
    best = min([tpr] + [tpr / x * UP for d, x in zip(nodes.low, nodes.x_dn, strict=True) if d >= tpr])
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
    x, low, high, xu = nodes.x_dn, nodes.low, nodes.high, nodes.x_up
    parts = [low[i] + a * x[i] for i in range(4)]

    def right(i: int, j: int, at: float) -> float:  # chord (i, j) prolonged to at >= x[j]
        r = (at - x[j]) / (x[j] - xu[i])
        return low[j] + (low[j] - high[i]) * r + a * at - 8 * U * (low[j] + abs(low[j] - high[i]) * r)

    def left(i: int, j: int, at: float) -> float:  # chord (i, j) prolonged to at <= x[i]
        r = (x[i] - at) / (xu[j] - x[i])
        return low[i] + (low[i] - high[j]) * r + a * at - 8 * U * (low[i] + abs(low[i] - high[j]) * r)

    if (low[3] - high[2]) / (x[3] - xu[2]) * UP + a < 0:
        return a  # nothing bounds the curve beyond the last point
    parts += [left(0, 1, 0.0), left(1, 2, x[0]), right(1, 2, x[3])]
    # Between the inner points the curve is above both prolonged chords, hence above each of their mixtures; the flat
    # one.
    down = (low[1] - high[0]) / (x[1] - xu[0]) + a
    up = (high[3] - low[2]) / (xu[3] - x[2]) + a
    mix = min(max(up / (up - down), 0.0), 1.0) if up > down else 0.5
    for at in (x[1], x[2]):
        parts.append(mix * right(0, 1, at) + (1 - mix) * left(2, 3, at))
    return max(a, min(parts) * DOWN)


def chord_slope(nodes: Nodes, i: int, worse: bool) -> float:
    """p between the points i and i+1 [theory: risk.slope]: at least what the chord's slope says at the left point, at
    most that at the right."""
    if worse:
        return max(0.0, nodes.high[i] - nodes.low[i + 1]) / (nodes.x_dn[i + 1] - nodes.x_up[i]) * UP
    return max(0.0, nodes.low[i] - nodes.high[i + 1]) / (nodes.x_up[i + 1] - nodes.x_dn[i]) * DOWN


def normal_quantile(p: float) -> float:
    """About the p-quantile of N(0, 1): a starting point, nothing more."""
    q, lo, hi = min(p, 1 - p), -38.0, 0.0
    for _ in range(40):
        middle = 0.5 * (lo + hi)
        lo, hi = (middle, hi) if 0.5 * math.erfc(-middle / math.sqrt(2)) < q else (lo, middle)
    return lo if p < 0.5 else -lo
