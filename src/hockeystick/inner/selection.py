"""The curve that is charged for a private selection (what/selection.py), from the curve of the run that is repeated.

Let r = min psi(b)/psi(a) over the tests of Q against P of rates b and a, and Phi(u) = 1 - phi(1 - u). The curve of a
selection at eps >= 0 is at most the sum of Phi's increments along the losses l of one run, each times
(1 - r e^{eps - l})_+ [theory: select.curve], and at most what its Renyi divergences give [theory: select.renyi]. Upper
ends of one run's curve, joined by chords, stand for that curve in both [theory: select.dots].
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..bound import AccuracyError, DomainError
from ..outward import LDBL_ULP as V
from ..query import delta, epsilon
from ..what.given import FromCurve
from ..what.pair import PAIRS, curve_pair, gaussian_steps, mirrored
from ..what.selection import Number, Select, number
from ..what.topk import enclosed

if TYPE_CHECKING:
    from ..types import Adjacency, Direction
    from ..what.loss import Loss
    from ..what.mechanism import Run

LEAST = 1e-40
"""Deltas of one run below it are not asked for; what is left counts as an infinite loss."""

POINTS = {True: 1200, False: 300}
"""Points on the curve of one run: of the Gaussian family, whose points are cheap, and of others."""

ORDERS = np.r_[1 + np.geomspace(0.05, 1.0, 12), np.geomspace(2.2, 64.0, 28), np.geomspace(80.0, 2e4, 14)]
EPS_MAX = 300.0
SLACK = 1e-12
"""Relative room for a few operations in double precision, losses up to 300 in an exponential included."""


class Tests(NamedTuple):
    """The corners of the tests of P against Q under chords between points above one curve, the hardest first: `loss` l,
    `tpr` = P[L >= l] and `fpr` = Q[L >= l], each within its error; `rest` = P[L > the largest l]. Below the last corner
    tpr is 1."""

    loss: np.ndarray
    tpr: np.ndarray
    fpr: np.ndarray
    tpr_error: np.ndarray
    fpr_error: np.ndarray
    rest: float


def _tests(own: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> Tests:
    """From points (eps >= 0, delta) above both orders' curves: delta(-e) = 1 - e^-e + e^-e delta'(e) [theory:
    pair.reversal].

    Long double, v its ulp: a mirrored delta is moved up by 8v, more than it errs by, and then stands for itself; a gap
    of e^eps is within 8v of itself, a difference of two deltas v of the larger, a corner a sum of two positive terms.
    """
    (e, d), (f, g) = ((np.asarray(a, dtype=np.longdouble) for a in side) for side in (own, other))
    left = f > 0
    f, g = -f[left][::-1], g[left][::-1]
    e, d = np.r_[f, e], np.minimum(np.r_[(-np.expm1(f) + np.exp(f) * g) * (1 + 8 * V), d], 1)
    x = np.exp(e)
    keep = np.arange(e.size)
    while True:
        gap, drop = _chords(e[keep], x[keep], d[keep])
        above = drop[:-1] * gap[1:] <= drop[1:] * gap[:-1]
        if not above.any():
            break
        keep = np.delete(keep, np.flatnonzero(above))
    e, x, d = e[keep], x[keep], d[keep]
    fpr = drop / gap
    rough = 16 * V * fpr + 2 * V * np.r_[1, d[:-1]] / gap
    tpr = d + x * fpr
    tpr_error = x * rough + 8 * V * tpr
    return Tests(e[::-1].astype(float), tpr[::-1], fpr[::-1], tpr_error[::-1], rough[::-1], float(d[-1]))


def _chords(e, x, d):
    """Widths in e^eps, and falls, of the chords from (0, 1) on; what rises by rounding falls by 0."""
    gap = np.r_[x[0], x[:-1] * np.expm1(np.diff(e))]
    return gap, np.maximum(-np.diff(np.r_[1, d]), 0)


def _upper(run: Run, law: Number, own: Tests, back: Tests, options: dict) -> tuple[np.ndarray, np.ndarray]:
    """Points (eps >= 0, delta) above the curve of the selection in the order of `own`; `back` are the other order's
    tests."""
    a, b = np.maximum(back.fpr - back.fpr_error, 0), np.minimum(back.tpr + back.tpr_error, 1)
    a, b = np.r_[0, np.minimum.accumulate(a[::-1])[::-1]], np.maximum.accumulate(np.r_[back.rest, b])
    ratio, error = law.log_ratio(a, b)  # [theory: select.law, select.curve]
    move = float(np.max(ratio) + error) * (1 + SLACK)  # log 1/r
    weight, error = law.at_least_one(np.minimum(np.maximum.accumulate(own.tpr + own.tpr_error), 1))
    first, _ = law.at_least_one(np.longdouble(own.rest))
    x = np.exp(own.loss.astype(np.longdouble))
    slope = np.cumsum(np.diff(np.r_[first, weight]) / x)  # [theory: select.dots]
    value = first + np.r_[0, np.cumsum(slope[:-1] * -np.diff(x))]  # at the losses, falling
    orders, top = _renyi(run, law, a, b, options)
    eps = np.r_[0.0, own.loss + move]
    if orders.size:
        rough = np.linspace(0.0, min(float(np.min((top + 95) / (orders - 1))), EPS_MAX), 129)
        eps = np.r_[eps, spread(rough, np.min(top[:, None] - (orders[:, None] - 1) * rough, axis=0), POINTS[False])]
    eps = np.unique(eps)
    eps = eps[(eps >= 0) & (eps <= EPS_MAX)]
    knots, heights = np.r_[0, x[::-1]], np.r_[value[-1] + slope[-1] * x[-1], value[::-1]]
    at = np.exp(np.asarray(eps, dtype=np.longdouble) - move) * (1 - SLACK)
    i = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, knots.size - 2)
    gap = knots[i + 1] - knots[i]  # 0 where losses differ by less than e^loss can tell
    part = np.clip(np.divide(at - knots[i], gap, out=np.zeros_like(at), where=gap > 0) - SLACK, 0, 1)
    delta = (heights[i] * (1 - part) + heights[i + 1] * part) * (1 + SLACK + error)
    if orders.size:
        log = np.min(top[:, None] - (orders[:, None] - 1) * eps, axis=0)
        delta = np.minimum(delta, np.exp(np.minimum(log, 0)) * (1 + SLACK))
    return eps, np.minimum(delta, 1).astype(float)


def _renyi(run: Run, law: Number, a, b, options: dict) -> tuple[np.ndarray, np.ndarray]:
    """(orders, tops): at order o, delta(eps) <= exp(top - (o - 1) eps) [theory: select.renyi]. None where they are
    infinite."""
    from ..routes.moments import rdp  # at its first use: most programs never need it

    try:
        one = rdp(run, ORDERS, **options).upper
    except (AccuracyError, DomainError):
        return np.zeros(0), np.zeros(0)
    known = np.isfinite(one)
    o, one = ORDERS[known], one[known]
    top = (o - 1) * one + _log_spread(law, a, b, o) - (o - 1) * -np.log1p(-1 / o) - np.log(o)
    return o, top + 1e-12 * (1 + (o - 1) * one)


def _log_spread(law: Number, a, b, orders) -> np.ndarray:
    """log of the maximum over the tests of psi(a)^o psi(b)^{1-o} [theory: select.renyi]. Between two corners b is
    linear in a, and o log(1 + s a) - (o - 1) log(1 + s b) has at most one stationary point, a minimum where s > 0; else
    corners do."""
    o = np.asarray(orders, dtype=np.longdouble)[:, None]
    a, b = np.r_[a, 1], np.r_[b, 1]
    log_mean = math.log(law.mean)
    if law.kappa == math.inf:
        best = log_mean + np.max(law.mean * ((o - 1) * b - o * a), axis=1)
        return (best + 1e-12 * law.mean * orders).astype(float)

    def value(x, y):
        return -law.kappa * (o * np.log1p(law.s * x) - (o - 1) * np.log1p(law.s * y))

    best = np.max(value(a, b), axis=1)
    if law.s > 0:
        width, rise = np.diff(a), np.diff(b)
        a, b, width, rise = (c[(width > 0) & (rise > 0)] for c in (a[:-1], b[:-1], width, rise))
        slope = rise / width
        part = np.clip((((o - 1) * slope - o * (1 + law.s * (b - slope * a))) / (law.s * slope) - a) / width, 0, 1)
        best = np.maximum(best, np.max(value(a + part * width, b + part * rise), axis=1, initial=-math.inf))
    room = abs(law.kappa) * (2 * law.error + 1e-12) * 2 * orders
    return (log_mean + best + room).astype(float)


def _curve(run: Run, adjacency: Adjacency, direction: Direction, many: bool) -> tuple[np.ndarray, np.ndarray]:
    """Points (eps >= 0, upper end of delta) of one run; the last delta is 0, or what is left."""

    def ask(eps) -> np.ndarray:
        return np.asarray(delta(run, eps, adjacency=adjacency, direction=direction).upper)

    least = max(LEAST, 1.01 * float(ask([EPS_MAX])[0]))
    if not least < 1:
        return np.zeros(1), np.ones(1)
    end = min(float(epsilon(run, least, adjacency=adjacency, direction=direction).upper), EPS_MAX)
    if not end > 0:
        return np.zeros(1), ask([0.0])
    rough = np.linspace(0.0, end, 65)
    eps = spread(rough, np.log(np.maximum(ask(rough), 1e-45)), POINTS[many])
    return eps, np.minimum.accumulate(ask(eps))


def spread(eps: np.ndarray, log_delta: np.ndarray, points: int) -> np.ndarray:
    """About so many points where the eps given are, half of them evenly, half where log delta falls."""
    fall = np.abs(np.diff(log_delta))
    metric = np.r_[0.0, np.cumsum(fall + max(float(fall.sum()), 1.0) / fall.size)]
    return np.unique(np.interp(np.linspace(0.0, metric[-1], points), metric, eps))


@functools.lru_cache(32)
def curve(step: Select, adjacency: Adjacency) -> FromCurve:
    """The worst pair below the proved curves of both orders, under the adjacency asked for."""
    run, law = step.base, number(step)
    if not run.parts:
        return FromCurve((0.0,), (0.0,))
    ends = enclosed(run)
    run = run if ends is None else ends.above[0]
    many = gaussian_steps(run, adjacency) is not None
    one_side = mirrored(run, adjacency)
    sides: list[Direction] = ["remove"] if one_side else ["remove", "add"]
    points = [_curve(run, adjacency, side, many) for side in sides]
    forth, back = points[0], points[-1]
    tests = [_tests(forth, back)] if one_side else [_tests(forth, back), _tests(back, forth)]
    found = [
        _upper(run, law, own, tests[-1 - i], {"adjacency": adjacency, "direction": side})
        for i, (own, side) in enumerate(zip(tests, sides, strict=True))
    ]
    (eps, delta), (far, rear) = found[0], found[-1]
    if one_side:
        return FromCurve(tuple(eps.tolist()), tuple(delta.tolist()), True)
    left, delta[0] = far > 0, min(delta[0], rear[0])
    far, rear = -far[left][::-1], (-np.expm1(-far[left]) + np.exp(-far[left]) * rear[left])[::-1] * (1 + SLACK)
    eps, delta = np.r_[far, eps], np.minimum(np.r_[rear, delta], 1.0)
    return FromCurve(tuple(eps.tolist()), tuple(delta.tolist()), False)


def select_pair(step: Select, adjacency: Adjacency, add: bool) -> Loss:
    """The worst pair below the proved curve of the selection [theory: select.pair]."""
    return curve_pair(curve(step, adjacency), adjacency, add)


PAIRS[Select] = select_pair
