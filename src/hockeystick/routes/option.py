"""One epoch of random allocation alone, as the price of an option on a sum of lognormals: what/allocation_epoch.py.

Under ADD delta is the price of a put. Under REMOVE it is that of a call: of the put by parity where they do not cancel,
else along the cut. Answers are those of answers.py, None where the prices decline."""

from __future__ import annotations

import math

import numpy as np

from ..answers import Point, Root
from ..outward import U
from ..what import allocation_epoch as epoch
from ..what.allocation import RandomAllocation

ENOUGH = 1e-11
"""Relative width that is enough of parity."""

STEPS, LARGE, DEEP = 10_000, 0.9, -230.0
"""Steps and sensitivity/sigma, or log delta, from which the price is asked before other lines: these take longer."""


def first(step: RandomAllocation, log_delta: float) -> bool:
    """Whether the price is asked before other lines."""
    return (step.steps >= STEPS and step.shift >= LARGE) or log_delta < DEEP


def _price(m: float, t: int, add: int, eps: float) -> tuple[float, float, tuple[float, ...]] | None:
    """log delta(eps), a bound of its relative error, and its parts."""
    if not -30 < eps < 600:
        return None
    side = -1 if add else 1
    x, K = t * math.expm1(side * eps), t * math.exp(side * eps)
    put = epoch.log_put(m, t, x, K)
    if add:
        return put and _told(put, put.log + eps - math.log(t))
    found: tuple[float, float, tuple[float, ...]] | None = None
    if put and put.log - math.log(t) < 700:
        part = math.exp(put.log - math.log(t))
        value = part - math.expm1(eps)  # (S-K)_+ = (K-S)_+ + S - K
        off = part * (put.error + 8 * U * (1 + abs(put.log) + math.log(t))) + 8 * U * abs(math.expm1(eps))
        if value > 2 * off:
            ratio = part / value
            parts = ratio * put.aliases, ratio * put.ends, ratio * put.inner, 8 * U * (1 + abs(put.log))
            found = math.log(value), off / value * (1 + 1e-9), parts
            if found[1] < ENOUGH:
                return found
    if x > 0 and m >= epoch.LEAST_SHIFT:
        call = epoch.log_call(m, t, x, K)
        other = call and _told(call, call.log - math.log(t))
        if other and (found is None or other[1] < found[1]):
            found = other
    return found


def _told(value: epoch.Value, log: float) -> tuple[float, float, tuple[float, ...]]:
    rounding = 8 * U * (1 + abs(log) + abs(value.log))
    return log, value.error + rounding, (value.aliases, value.ends, value.inner, rounding)


@np.errstate(all="ignore")  # what is not finite declines
def point(step: RandomAllocation, add: int, eps: float) -> Point | None:
    """delta(eps)."""
    found = _price(step.shift, step.steps, add, eps)
    if found is None or not found[1] < 0.5:
        return None
    log, off, terms = found
    return Point(log - off / (1 - off) - 1e-15, log, min(log + off + 1e-15, 0.0), terms, "contour")


@np.errstate(all="ignore")
def root(step: RandomAllocation, add: int, delta: float) -> Root | None:
    """eps(delta): about where it is, a few steps, and two places at which delta is certainly above and below."""
    m, t, goal = step.shift, step.steps, math.log(delta)
    if not add and m < epoch.LEAST_SHIFT:
        return None
    about = epoch.about_root(m, t, add, goal)
    if about is None:
        return None
    mid, slope = about
    wide = 0.0
    terms: tuple[float, ...] = (0.0,) * 4
    for _ in range(8):
        found = point(step, add, mid)
        if found is None or not slope < 0:
            return None
        terms, move = found.terms, (goal - found.estimate) / slope
        wide = (found.upper - found.lower + 4e-16 * (1 + abs(goal))) / -slope
        mid = max(mid + move, 0.0)
        if abs(move) < max(0.2 * wide, 1e-13 * mid):
            break
    ends = []
    for side in (-1, 1):
        reach = 2 * wide + 2e-15 * mid
        for _ in range(6):
            at = max(mid + side * reach, 0.0)
            one = point(step, add, at)
            if one is None:
                return None
            if (one.lower >= goal + 1e-15 * abs(goal)) if side < 0 else (one.upper <= goal - 1e-15 * abs(goal)):
                break
            if side < 0 and at == 0:
                break
            reach *= 4
        else:
            return None
        ends.append(at)
    return Root(ends[0], min(max(mid, ends[0]), ends[1]), ends[1], terms, "contour")
