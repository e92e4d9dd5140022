"""One epoch of random allocation alone, as the price of an option on a sum of lognormals: what/allocation_epoch.py.

Under ADD delta is the price of a put. Under REMOVE it is that of a call: by a line without its pole where it is no
small part of E|S-t|, of the put by parity where they do not cancel, else along the cut, or, where a few large terms lie
beside many, by half lines from a part of it. Answers are those of answers.py, None where the prices decline."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..answers import Point, Root
from ..outward import U
from ..what import allocation_call as call
from ..what import allocation_epoch as epoch
from ..what.allocation import RandomAllocation
from ..what.allocation_epoch import Value

LEAST_SHIFT = 1e-3
"""Sensitivity/sigma below which a price has more nodes than memory, and lines know delta."""

ENOUGH = 1e-11
"""Relative width that is enough of parity."""

STEPS, LARGE, DEEP = 10_000, 1.05, -230.0
"""Steps and sensitivity/sigma, or log delta, from which the price is asked before other lines: these take longer."""


def first(step: RandomAllocation, add: int, log_delta: float) -> bool:
    """Whether the price is asked before other lines."""
    if (step.steps >= STEPS and step.shift >= LARGE) or log_delta < DEEP:
        return True
    return not add and call.is_large(step.shift, step.steps, log_delta)


def _price(m: float, t: int, add: int, eps: float) -> Value | None:
    """That of delta(eps)."""
    if not -30 < eps < 600 or m < LEAST_SHIFT:
        return None
    side = -1 if add else 1
    x, K = t * math.expm1(side * eps), t * math.exp(side * eps)
    if add:
        put = epoch.log_put(m, t, x, K)
        return put and _of_delta(put, t, eps)
    line = call.line_at(m, t, x) if x > 0 else None
    found = _on_line(line, x) if line else None
    if found and found.error < LEAST_SEEN:
        return found
    cut = math.log(LEAST_UNITS * U) + epoch.about_call(m, t, x)[1]
    parity = math.log(16 * U * max(math.expm1(eps), 1e-300)) if x > 0 else -math.inf
    for least, ask in sorted(((parity, _by_parity), (cut, _along_cut)), key=lambda way: way[0]):
        if found and (found.error < ENOUGH or least > found.log + math.log(found.error)):
            break
        found = _better(found, ask(m, t, x, K) if least < math.inf else None)
    if x > 0 and (found is None or found.error > ENOUGH_PATH) and has_path(m, t):
        found = _better(found, _by_path(m, t, x))
    return found


def _better(one: Value | None, other: Value | None) -> Value | None:
    return min((value for value in (one, other) if value), key=lambda value: value.error, default=None)


LEAST_UNITS = 30
"""Units that a sum along the cut claims at least of the sum of its moduli; parity claims 16 of e^eps - 1. What is off
by more than is known is not asked."""


def _by_parity(m: float, t: int, x: float, K: float) -> Value | None:
    """(S-K)_+ = (K-S)_+ + S - K; where that cancels, what is known is that delta is about off or less."""
    put = epoch.log_put(m, t, x, K)
    if not put or put.log - math.log(t) > 700:
        return None
    part, less = math.exp(put.log - math.log(t)), x / t
    rounding = 8 * U * (part * (1 + abs(put.log) + math.log(t)) + abs(less))
    value = max(part - less, 0.5 * (part * put.error + rounding))
    ratio = part / value
    return Value(math.log(value), ratio * put.aliases, ratio * put.ends, ratio * put.inner, rounding / value)


LEAST_SEEN = 1e-6
"""Relative error that is enough of a call on its line, beyond which other ways are asked, too."""


def _on_line(line: call.CallLine, x: float) -> Value | None:
    value, *errors = line.at(x)
    if not value > 2 * sum(errors):
        return None
    return _of_delta(Value(math.log(value), *(error / value for error in errors)), line.t)


def _along_cut(m: float, t: int, x: float, K: float) -> Value | None:
    value = epoch.log_call(m, t, x)
    return value and _of_delta(value, t)


def _by_path(m: float, t: int, x: float) -> Value | None:
    """Of a few large terms beside many, by half lines left of 0 and the cut up to there [theory: allocation.path]."""
    from ..what import allocation_path  # at its first use

    log, off = (float(found[0]) for found in allocation_path.law(m, t).at(np.array([x]), 2))
    return _of_delta(Value(log, 0.0, 0.0, off), t) if off < 0.5 else None


def has_path(m: float, t: int) -> bool:
    """Whether paths of allocation_path.py are not too long."""
    return epoch.PATHS[0] < m <= epoch.PATHS[1] and t >= FEWEST * m * m


FEWEST, ENOUGH_PATH = 20.0, 1e-9
"""Least steps over the square of m of a path, and the relative width from which it is asked for a call."""


def _of_delta(price: Value, t: int, eps: float = 0.0) -> Value:
    """Of e^eps times a price over t."""
    log = price.log + eps - math.log(t)
    return price._replace(log=log, rounding=8 * U * (1 + abs(log) + abs(price.log)))


@np.errstate(all="ignore")  # what is not finite declines
def point(step: RandomAllocation, add: int, eps: float) -> Point | None:
    """delta(eps)."""
    return _point(_price(step.shift, step.steps, add, eps))


def _point(found: Value | None) -> Point | None:
    if found is None or not (off := found.error * (1 + 1e-9)) < 0.5:
        return None
    log, *terms = found
    return Point(log - off / (1 - off) - 1e-15, log, min(log + off + 1e-15, 0.0), tuple(terms), "contour")


@np.errstate(all="ignore")
def root(step: RandomAllocation, add: int, delta: float) -> Root | None:
    """eps(delta): about where it is, a few steps, and two places at which delta is certainly above and below."""
    m, t, goal = step.shift, step.steps, math.log(delta)
    if not add and (found := call.root(m, t, goal)):
        line, mid, slope = found
        answer = bracket(lambda eps: _point(_on_line(line, t * math.expm1(eps))), mid, slope, goal)
        if answer and answer.width < LEAST_SEEN:
            return answer
    if m < (LEAST_SHIFT if add else epoch.LEAST_SHIFT):
        return None
    about = epoch.about_root(m, t, add, goal)
    return about and bracket(lambda eps: point(step, add, eps), *about, goal)


def bracket(ask: Callable[[float], Point | None], mid: float, slope: float, goal: float) -> Root | None:
    """The root of ask(eps) = goal, which is about at mid, where its slope is about that."""
    wide = 0.0
    terms: tuple[float, ...] = (0.0,) * 4
    last: tuple[float, float] | None = None
    for _ in range(8):
        found = ask(mid)
        if found is None or not slope < 0:
            return None
        if last is not None and mid != last[0] and (found.estimate - last[1]) / (mid - last[0]) < 0:
            slope = (found.estimate - last[1]) / (mid - last[0])
        last = mid, found.estimate
        terms, move = found.terms, (goal - found.estimate) / slope
        wide = (found.upper - found.lower + 4e-16 * (1 + abs(goal))) / -slope
        mid = max(mid + move, 0.0)
        if abs(move) < max(0.2 * wide, 1e-13 * mid):
            break
    ends = []
    for side in (-1, 1):
        reach = 0.6 * wide + 2e-15 * mid  # an interval, of which it is not in the middle
        for _ in range(6):
            at = max(mid + side * reach, 0.0)
            one = ask(at)
            if one is None:
                return None
            if (one.lower >= goal + 1e-15 * abs(goal)) if side < 0 else (one.upper <= goal - 1e-15 * abs(goal)):
                break
            if side < 0 and at == 0:
                break
            reach *= 2
        else:
            return None
        ends.append(at)
    return Root(ends[0], min(max(mid, ends[0]), ends[1]), ends[1], terms, "contour")
