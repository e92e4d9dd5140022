"""One step of any law, without composition: delta(eps) = num(S) - e^eps den(S) at the set S of losses above eps
[theory: small.single].

`Tails` (loss.py) give both masses of one and the same set S, whose losses are >= eps - edge and which holds every loss
above eps + edge. Any S bounds delta from below. Where S is not the best set it misses at most p |1 - e^{eps-L}| on
losses within `edge` of eps, so
  num(S) - e^eps den(S) <= delta <= num(S) - e^eps den(S) + expm1(edge) Pr_num[L >= eps - edge].
With the complement T of S among the finite losses, and d, d' the masses of infinite losses under num and den,
  d + num(S) - e^eps den(S) = 1 - e^eps + e^eps (d' + den(T)) - num(T),
whose right side keeps its digits where S is nearly everything. Rounding: the masses carry `rel` and `absolute`, e^eps
and the difference 4u. Where one edge for all losses says little, or the difference of the masses is lost in rounding,
atoms are taken one by one, each with its own edge: `_atom_by_atom`.

Answers are those of answers.py; below 1e-290, of atoms 1e-303, an upper end alone.
"""

from __future__ import annotations

import math

import numpy as np

from .._core import LAPLACE
from ..answers import ZERO, Point, Root
from ..arguments import exp_upper
from ..bound import AccuracyError
from ..outward import DOWN, UP, U, log_slack
from ..what.loss import Atoms, Loss, Tails
from . import contour, walls

LOG_LEAST = math.log(1e-290)
"""Of deltas that masses tell."""

ATOM_LEAST = 1e-303
"""The same where atoms are taken one by one."""

WIDE = 1e-9
"""Part of delta from which on an error of losses or masses is worth a look at every atom."""


def point(loss: Loss, eps: float) -> Point | None:
    """A certified point of the curve of one step, or None."""
    if eps > 700:
        return None
    if loss.curve:
        value, rel = loss.curve(eps)
        if value > 1e-300:
            mid = math.log(value)
            slack = rel * 1.01 + log_slack(mid)
            return Point(mid - slack, mid, min(0.0, mid + slack), (0.0, 0.0, 0.0, rel), "exact")
    t = loss.tails(np.array([eps]))
    a, rel, known = math.exp(eps), float(t.rel[0]) + 4 * U, loss.mass_error + 4 * U
    forms = []
    for over, under, rest, gone in (
        (float(t.y_above[0]), a * float(t.x_above[0]), 0.0, loss.mass_inf),
        (a * float(t.x_below[0]), float(t.y_below[0]), -math.expm1(eps), a * loss.mass_minus_inf),
    ):
        rounding = rel * (over + under) + known * gone + 4 * U * abs(rest) + (1 + a) * t.absolute
        forms.append((rounding, rest + gone + (over - under)))
    rounding, value = min(forms)
    wrong, least = 0.0, math.exp(LOG_LEAST)
    if t.edge > 0:
        near = loss.tails(np.array([eps - 3 * t.edge]))
        wrong = math.expm1(t.edge) * (float(near.y_above[0]) * (1 + float(near.rel[0])) + near.absolute)
    atoms = None if loss.smooth or not (rounding + wrong > WIDE * value and eps < 600) else loss.atoms()
    if atoms is not None:
        other, mid = _atom_by_atom(loss, atoms, eps)
        if 2 * other < 2 * rounding + wrong:
            rounding, value, wrong, least = other, mid, 0.0, ATOM_LEAST
    lower, upper = value - rounding, value + rounding + wrong  # [theory: small.single]
    floor = -math.expm1(eps)  # delta(eps) >= 1 - e^eps
    lower, value, upper = max(lower, floor * DOWN), max(value, floor), min(1.0, max(upper, floor * UP))
    if eps >= loss.hi + loss.ends_error and not loss.mass_inf and eps >= 0:
        return Point(-math.inf, -math.inf, -math.inf, ZERO, "exact")
    if not value > least:  # also 0, of masses that underflow
        return _next_to_nothing(loss, t, rel, wrong, value)
    log_lower = math.log(lower) if lower > 0 else -math.inf
    slack = log_slack(math.log(upper))
    terms = (0.0, 0.0, 0.0, (rounding + wrong) / value)
    return Point(log_lower - slack, math.log(value), min(0.0, math.log(upper) + slack), terms, "exact")


def _next_to_nothing(loss: Loss, t: Tails, rel: float, wrong: float, value: float) -> Point:
    """A delta of about `value`, too small to be told: an upper end alone, num(S) and what S misses; operations on
    numbers below 2^-1022 err by less than 1e-300."""
    most = float(t.y_above[0]) * (1 + rel) + t.absolute + loss.mass_inf * (1 + loss.mass_error) + wrong + 1e-300
    upper = math.log(most * UP)
    upper = min(upper + log_slack(upper), 0.0)
    estimate = min(math.log(value), upper) if value > 0 else -math.inf
    return Point(-math.inf, estimate, upper, (0.0, 0.0, 0.0, 1.0), "exact")


def _atom_by_atom(loss: Loss, atoms: Atoms, eps: float) -> tuple[float, float]:
    """(error, delta) of a loss that is nothing but atoms L_i of masses n_i under num, d_i under den, by
      d + sum n_i (1 - e^{eps-L_i})_+ = 1 - e^eps + e^eps (d' + sum d_i (1 - e^{L_i-eps})_+),
    whichever errs less. A term rises (falls) with L_i, by at most n_i (d_i) times the change: the edge of L_i and
    u(|eps| + |L_i|) of the difference; expm1, products and a sum of N < 2^30 terms (numpy adds pairs of blocks of 128:
    24u) make 32u. What masses are off besides counts at most once. Infinite masses, e^eps and the sum of the parts: 8u.
    """
    at, num, den, rel, edge, absolute = atoms
    a, gap = math.exp(eps), at - eps
    moved = edge + 2 * U * (np.abs(at) + abs(eps))
    forms = []
    for side, mass, gone, rest, scale in (
        (gap, num, loss.mass_inf, 0.0, 1.0),
        (-gap, den, loss.mass_minus_inf, -math.expm1(eps), a),
    ):
        reach = side > -moved
        size, off = mass * -np.expm1(-np.maximum(side, 0.0)), mass * moved * (1 + 1e-9)
        known = float((size * (rel + 32 * U) + np.where(reach, off * (1 + rel), 0.0)).sum()) * (1 + 1e-9) + absolute
        value = scale * (gone + float(size.sum()))
        error = scale * (known + loss.mass_error * gone) + 8 * U * (abs(rest) + value + scale * gone)
        error += at.size * 1e-322  # what underflows
        forms.append((error, rest + value))
    return min(forms)


def root(loss: Loss, delta: float) -> Root | None:
    """A certified root, at least 0, or None."""
    at_zero, log_delta = point(loss, 0.0), math.log(delta)
    if at_zero is None or (log_delta < LOG_LEAST and not loss.curve):
        return None
    if at_zero.at_most(delta):
        return Root(0.0, 0.0, 0.0, at_zero.terms, "exact")
    least, _ = walls.rest(((loss, 1),), delta)
    wall = walls.wall_upper(((loss, 1),), least)
    hi = 1.0 if loss.hi == math.inf else min(loss.hi + loss.ends_error, 701.0)
    while loss.hi == math.inf:
        at = point(loss, hi)
        if at is not None and at.estimate <= log_delta:
            break
        if hi > 700 or at is None:
            return None
        hi = min(2 * hi, 701.0)
    return contour.bracket(lambda e: point(loss, e), delta, 0.0, hi, wall if least <= 0 or wall < math.inf else None)


MANY = 32


def variation_upper(parts) -> float:
    """Upper bound of delta(0) of a composition: total variation distances of the steps add up. 1 where a step
    declines, or so many have no closed form that a route is sooner done."""
    if sum(loss.additive is None for loss, _ in parts) > MANY:
        return 1.0
    found = [(_distance_upper(loss), k) for loss, k in parts]
    if any(distance is None for distance, _ in found):
        return 1.0
    return min(1.0, math.fsum(k * distance for distance, k in found) * UP)


def _distance_upper(loss: Loss) -> float | None:
    """Upper bound of delta(0) of one step; additive noise: q (1 - e^{-m/2}) or q (2 Phi(m/2) - 1)."""
    if loss.additive:
        kind, m, q, _ = loss.additive
        return q * (-math.expm1(-0.5 * m) if kind == LAPLACE else math.erf(m * 0.35355339059327379)) * UP
    if loss.distance_upper is not None:
        return loss.distance_upper
    try:
        at = point(loss, 0.0)
    except AccuracyError:  # tails that are not known here
        return None
    return at and exp_upper(at.upper)
