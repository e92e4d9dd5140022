"""Runs under replace-one between those of the same noise under REMOVE: for rare large losses and the small deltas whose
digits a line of two-sided pairs loses. Answers are those of answers.py, of the route `jumps`; None where there is none.

Symbols. num = b(q, m) and den = b(q, -m) of a step, its loss L_1 - l, L_1 = log num/N(0), l = log den/N(0); Z the sum
of -l over all steps, r = -log(1-q) its largest value in one step; delta_1 the curve with N(0) for every den.

Formula. delta_1(eps) <= delta(eps) <= delta_1(eps - s) + Pr[Z > s] for every s, and with A = e^{m^2} - 1, u > 0
  log Pr[Z > s] <= sum k ((e^{ur} - 1 - u q) A + q (e^{ur} - 1)) - u s;  Z <= sum k r   [theory: small.one-sided].

Of 28 random roots that came here five are narrower by it, all of noise below 0.4 at rates below 1e-6: 7e-9 to 3e-4 wide
where a grid leaves 1e-5 to 0.15.

What it does not do: public mixtures; rates that are not known to the last digit.
"""

from __future__ import annotations

import math

import numpy as np

from .._core import Rows
from ..answers import Point, Root, meet
from ..outward import UP, log_slack, log_sum
from ..what.pair import PairedSteps
from ..what.sampling import MAX_BRANCHES, PACKED
from . import contour, jumps
from .question import SHARP

PART = 1e-4
"""Part of delta that Pr[Z > s] may be."""

TILTS = np.geomspace(1e-4, 30, 64)
"""u times the largest r."""

DIGITS = 1e-6
"""A smaller x leaves e^x - 1 - x fewer than half of its digits."""

SLACK = 1e-8
"""Relative, of the exponents of a bound that only widens: far above what their differences lose."""


def one_sided(paired: PairedSteps) -> Rows | None:
    """The steps with N(0) for every den, REMOVE; None where some step is not one symmetric pair or plain noise."""
    shift, q, k = (column.copy() for column in paired.steps)
    if paired.dropped:
        return None
    for i, (branches, *row) in enumerate(PACKED.iter_unpack(paired.steps.pairs.tobytes())):
        weight, rate, up, down = row[: 4 * MAX_BRANCHES : MAX_BRANCHES]
        if branches == 1 and weight == 1 and up == down and not any(row[4 * MAX_BRANCHES :]):
            shift[i], q[i] = up, rate
        elif branches or q[i] < 1:
            return None
    return Rows(shift, q, k)


def reach_upper(steps: Rows, log_lost: float) -> tuple[float, bool]:
    """An s that Z exceeds with probability at most e^log_lost, and whether it exceeds it at all."""
    m, q, k = (column[steps.q < 1][:, None] for column in steps)
    r = -np.log1p(-q)
    whole = float((k * r).sum()) * (1 + SLACK)
    with np.errstate(over="ignore", invalid="ignore"):
        u = TILTS / r.max()
        lift = np.expm1(u * r)
        # Where u r is small the difference loses its digits, and e^x - 1 - x <= x^2 e^x/2, r - q <= q^2/(2 - 2q).
        bend = np.where(u * r < DIGITS, 0.5 * ((u * r) ** 2 * np.exp(u * r) + u * q * q / (1 - q)), lift - u * q)
        # [theory: small.one-sided]
        exponent = (k * (bend * np.expm1(m * m) + q * lift)).sum(axis=0)
        s = float(np.fmin.reduce((exponent * (1 + SLACK) - log_lost) / u)) * (1 + SLACK)  # without the NaN of 0 inf
    return (s, True) if s < whole else (whole, False)


def point(paired: PairedSteps, eps: float) -> Point | None:
    """A certified point of the curve, or None."""
    steps = one_sided(paired)
    if steps is None:
        return None
    least = _point(steps, eps)
    if not (least and least.lower > -math.inf):
        return None
    log_lost = least.lower + math.log(PART)
    s, lost = reach_upper(steps, log_lost)
    most = _point(steps, eps - s - 1e-15 * (abs(eps) + s))
    if most is None:
        return None
    upper = log_sum(most.upper, log_lost) if lost else most.upper  # [theory: small.one-sided]
    terms = math.expm1(min(upper - least.lower, 700.0)), *least.terms[1:]
    return Point(least.lower, min(least.estimate, upper), upper, terms, "jumps")


def root(paired: PairedSteps, delta: float, known: Root | None = None) -> Root | None:
    """A certified root of delta(eps) = delta, or None: its upper end is where delta_1(eps - s) is at most (1 - PART)
    delta, or delta where Z cannot exceed s. None also where s is more than what is known of the root leaves open."""
    steps, log_delta = one_sided(paired), math.log(delta)
    if steps is None:
        return None
    s, lost = reach_upper(steps, log_delta + math.log(PART) - log_slack(log_delta))
    if known and s > known.upper - known.lower:
        return None
    least = _root(steps, log_delta)
    most = _root(steps, log_delta + math.log1p(-PART) - 2 * log_slack(log_delta)) if lost else least
    if least is None or most is None:
        return None
    upper = (max(most.upper, 0.0) + s) * UP
    end = _point(steps, upper)
    terms = -math.expm1(min(end.estimate - log_delta, 0.0)) if end else 1.0, *least.terms[1:]
    return Root(max(least.lower, 0.0), min(max(least.estimate, 0.0), upper), upper, terms, "jumps")


def _point(steps: Rows, eps: float) -> Point | None:
    found = contour.point(steps, 0, eps)
    return found if found and found.width < SHARP else meet(found, jumps.point(steps, 0, eps))


def _root(steps: Rows, log_delta: float) -> Root | None:
    found = contour.root(steps, 0, log_delta)
    return found if found and found.width < SHARP else meet(found, jumps.root(steps, 0, log_delta))
