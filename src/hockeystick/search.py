"""The search behind calibration: for the parameter whose cost just meets a target, with a proof on both sides.

The search runs on estimates (secant steps in the logarithm of the parameter, inside a bracket) and proves only its last
two points: `value` meets the target by its certified bound, `limit` provably does not, and the two are within the
tolerance [theory: risk.calibration], or as near as the two curves that a run is known between. That the best parameter
lies between them uses that the cost is monotone in the parameter; that `value` meets the target does not."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from .bound import AccuracyError, Bound, HockeystickError
from .what.allocation import allocates
from .what.mechanism import as_run
from .what.topk import enclosed

EVALUATIONS = 200
"""Limit of evaluations: bisection alone narrows twelve decades to 1e-12 in under 70."""

NARROWER = 1e-4, 1e-5, 1e-6
"""Relative widths asked for in turn where a bound does not decide: grids reach them where they are asked for."""

STEP = 2.0
"""Largest step in the log of the parameter while no bracket is known; it doubles as long as the side does not
change."""


PLACES, NEAR = 9, 0.02
"""Places at which a cheap score is asked for, from the middle of the range outwards, and how near to its root a search
begins, in the logarithm of the parameter."""


class Calibration(NamedTuple):
    """A calibrated parameter.

    Attributes
    ----------
    value : float or int
        Meets the target: `bound` proves it.
    limit : float or int or None
        Proved not to meet the target, within the tolerance of `value`: the best possible parameter lies between the
        two. Where a run is known between two curves only (`random_allocation` of several participations, or under
        replace_one, `top_k`)
        `value` is the best that the upper one proves, `limit` that of the lower one. None if even the end of the range
        that costs most meets the target, and is `value`.
    bound : Bound
        The quantity that the target limits, at `value`.
    evaluations : int
        How many parameters were tried.
    """

    value: float | int
    limit: float | int | None
    bound: Bound[float]
    evaluations: int


class _Tried(NamedTuple):
    """A parameter and its score; `meets` and `fails` are the proofs, and neither may hold."""

    x: float | int
    lower: float
    estimate: float
    upper: float
    meets: bool
    fails: bool
    bound: Any


class Search:
    """One calibration. `costly` and `private` are the ends of the range once the direction is known."""

    slope = 0.0  # of the score in the log of the parameter, near the root
    rises: bool | None = None  # whether costs rise with the parameter, where a cheap score tells
    advice = ""  # what helps where the range holds no parameter

    def __init__(self, make_run, target, lo, hi, whole: bool, tol: float):
        self.make_run, self.target = make_run, target
        self.lo, self.hi, self.whole, self.tol = lo, hi, whole, tol
        self.tried: dict[float | int, _Tried] = {}

    def at(self, x: float, width=None) -> _Tried:
        """What x costs, relative to the target. A cost that cannot be certified is between -inf and inf."""
        x = min(max(x, self.lo), self.hi)
        x = min(max(round(x), self.lo), self.hi) if self.whole else float(x)
        if x not in self.tried or width:
            if len(self.tried) >= EVALUATIONS:
                raise AccuracyError(
                    f"no parameter with {self.target.text} was certified within {EVALUATIONS} evaluations"
                )
            run = self.make_run(x)
            try:
                bound = self.target.ask(run, width)
                low, mid, high = sorted(self.target.score(end) for end in (bound.lower, bound.estimate, bound.upper))
                self.tried[x] = _Tried(x, low, mid, high, self.target.meets(bound), self.target.fails(bound), bound)
            except AccuracyError:
                self.tried.setdefault(x, _Tried(x, -math.inf, math.inf, math.inf, False, False, None))
        return self.tried[x]

    def near(self, about) -> float:
        """Where the search begins: about where a cheap score changes its sign, the middle of the range where it says
        nothing. Far from its root a cost may take long, or be known by no narrow bound."""
        ends = math.log(self.lo), math.log(self.hi)
        places = np.linspace(*ends, PLACES + 2)[1:-1]
        middle = PLACES // 2

        @functools.cache
        def sign(u: float) -> float:
            try:
                x = math.exp(u)
                return float(np.sign(about(as_run(self.make_run(round(x) if self.whole else x)))))
            except HockeystickError:
                return math.nan

        for i in range(middle):
            for one, other in ((middle - i, middle - i - 1), (middle + i, middle + i + 1)):
                low, high = float(places[one]), float(places[other])
                if sign(low) * sign(high) < 0:
                    while abs(high - low) > NEAR:
                        mid = 0.5 * (low + high)
                        low, high = (mid, high) if sign(mid) == sign(low) else (low, mid)
                    self.rises = (sign(low) < 0) == (low < high)
                    return min(max(math.exp(0.5 * (low + high)), self.lo), self.hi)
        return math.sqrt(self.lo) * math.sqrt(self.hi)

    def solve(self, first: float) -> Calibration:
        one = self.clear(first)
        other = self.apart(one)
        rises = (other.estimate > one.estimate) == (other.x > one.x) if other.estimate != one.estimate else self.whole
        self.private, self.costly = (self.lo, self.hi) if rises else (self.hi, self.lo)
        return self.prove(self.root(one, other))

    def apart(self, one: _Tried) -> _Tried:
        """A point whose cost is certainly another one, near if the bounds are narrow: it tells the direction. Where
        that is known, one towards the root."""
        if self.rises is not None and _side(one):
            x = one.x * math.exp(-2.5 * NEAR * _side(one) * (1 if self.rises else -1))
            if self.lo <= x <= self.hi and (other := self.at(x)).estimate != one.estimate:
                return other
        factor = 1.02
        while factor < self.hi / self.lo:
            for x in (max(one.x * factor, one.x + self.whole), min(one.x / factor, one.x - self.whole)):
                if self.lo <= x <= self.hi:
                    other = self.at(x)
                    if other.lower > one.upper or other.upper < one.lower:
                        return other
                    break
            factor **= 3
        ends = self.at(self.lo), self.at(self.hi)
        return max(ends, key=lambda end: (end.estimate != one.estimate, abs(math.log(end.x / one.x))))

    def clear(self, first: float) -> _Tried:
        """The first point, or one elsewhere in the range if its bound does not say on which side of the target it
        is."""
        point = self.at(first)
        for parts in (2, 4, 8, 16):
            for i in range(1, parts, 2):
                if _side(point):
                    return point
                point = self.at(self.lo ** (1 - i / parts) * self.hi ** (i / parts))
        return point

    def root(self, one: _Tried, other: _Tried) -> float:
        """Where the estimate meets the target, to a fraction of the tolerance; an end of the range if it lies
        beyond."""
        goal = 0.1 * self.tol
        ends = {-1: math.log(self.private), 1: math.log(self.costly)}  # where the target is met, and where it is not
        seen: set[int] = set()
        reach, stalled = STEP, 0

        def place(point: _Tried) -> None:
            """A point whose bound says nothing is taken for the side not seen yet: certain points lie the other way."""
            side = _side(point) or (-min(seen) if len(seen) == 1 else 1)
            ends[side] = math.log(point.x)
            seen.add(side)

        for point in sorted((one, other), key=lambda point: abs(point.estimate), reverse=True):
            place(point)
        for _ in range(EVALUATIONS):
            self.slope = (other.estimate - one.estimate) / (math.log(other.x) - math.log(one.x))
            gap = abs(ends[1] - ends[-1])
            if gap <= goal or (self.whole and abs(math.exp(ends[1]) - math.exp(ends[-1])) <= 1):
                break
            u, last = _secant(one, other), math.log(other.x)
            inside = min(ends.values()) < u < max(ends.values())
            if len(seen) == 2 and (not inside or stalled > 2):
                u, stalled = 0.5 * (ends[1] + ends[-1]), 0
            elif len(seen) == 1 and (not inside or abs(u - last) > reach):
                away = ends[-min(seen)] - last
                u, reach = last + math.copysign(min(reach, abs(away)), away), 2 * reach
            if inside and abs(u - last) <= goal:
                return math.exp(u)
            point = self.at(math.exp(u))
            if point.x in (one.x, other.x):
                return math.exp(u)
            place(point)
            stalled = stalled + 1 if abs(ends[1] - ends[-1]) > 0.5 * gap else 0
            if _side(point):
                one, other = other, point
        return math.exp(0.5 * (ends[1] + ends[-1])) if len(seen) == 2 else (self.costly if -1 in seen else self.private)

    def prove(self, root: float) -> Calibration:
        """A point that meets the target and one that does not, from the root outwards, then inwards to the
        tolerance."""
        value = self.outward(root, self.private, lambda point: point.meets)
        if value is None:
            raise AccuracyError(self.unmet())
        limit = self.outward(root, self.costly, lambda point: point.fails)
        if limit is None:
            end = self.at(self.costly)
            if end.meets:
                return Calibration(end.x, None, end.bound, len(self.tried))
            raise AccuracyError(self.vague(value, None))
        while not self.close(value, limit):
            middle = self.at(0.5 * (value.x + limit.x) if self.whole else math.sqrt(value.x) * math.sqrt(limit.x))
            between = enclosed(run := as_run(self.make_run(middle.x))) is not None or allocates(run)
            widths = () if between else NARROWER
            middle = self.decided(middle.x, widths)
            if middle.meets:
                value = middle
            elif middle.fails:
                limit = middle
            else:  # at the root no width decides, and between two curves none
                value = self.towards(value, middle, "upper", widths)
                limit = self.towards(limit, middle, "lower", widths)
                if not (between or self.close(value, limit)):
                    raise AccuracyError(self.vague(value, limit))
                break
        return Calibration(value.x, limit.x, value.bound, len(self.tried))  # [theory: risk.calibration]

    def decided(self, x: float, widths: tuple[float, ...]) -> _Tried:
        """A point with the first of the widths, after none, that says on which side of the target it is."""
        point = self.at(x)
        for width in widths:
            if point.meets or point.fails:
                break
            point = self.at(point.x, width=width)
        return point

    def towards(self, point: _Tried, other: _Tried, end: str, widths: tuple[float, ...]) -> _Tried:
        """The last point from `point` to `other` whose `end` of the score, "upper" or "lower", is on the side that
        that of `point` is on: a run that is known between two curves has one such point for each of them. By secants,
        to a little beyond the root, of which every third step is a half of what is left."""
        for i in itertools.count():
            if self.close(point, other, 0.4 if widths else 1.0):
                return point
            a, b = math.log(point.x), math.log(other.x)
            f, g = getattr(point, end), getattr(other, end)
            u = math.log(0.5 * (point.x + other.x)) if self.whole else 0.5 * (a + b)
            if i % 3 < 2 and not self.whole and math.isfinite(f - g) and f != g:
                root = a + f * (b - a) / (f - g)
                far = b if abs(root - a) < abs(root - b) else a
                if min(a, b) <= root <= max(a, b):
                    u = root + math.copysign(min(0.3 * self.tol, 0.5 * abs(far - root)), far - root)
            middle = self.decided(math.exp(u), widths)
            point, other = (middle, other) if (middle.meets if end == "upper" else middle.fails) else (point, middle)
        raise AssertionError

    def outward(self, root: float, end: float, holds) -> _Tried | None:
        """The first point from the root towards `end` where `holds`; None if not even the end does."""
        step = 0.25 * self.tol
        towards = 1.0 if end >= root else -1.0
        while True:
            x = root * math.exp(towards * step)
            if self.whole:  # the integers next to the root, then further out
                near = math.floor(root) + 1 if towards > 0 else math.ceil(root) - 1
                near = round(root) if self.at(root).x == round(root) and holds(self.at(round(root))) else near
                x = near if step <= 0.25 * self.tol else (max(x, near + 1) if towards > 0 else min(x, near - 1))
            beyond = x >= end if towards > 0 else x <= end
            point = self.at(end if beyond else x)
            if holds(point):
                return point
            if beyond:
                return None
            # Wide bounds need one step of their width, not many doublings.
            short = point.upper if end == self.private else -point.lower
            step = max(
                2 * step, min(1.1 * short / abs(self.slope), STEP) if self.slope and math.isfinite(short) else 0.0
            )

    def close(self, value: _Tried, limit: _Tried, part: float = 1.0) -> bool:
        gap = abs(value.x - limit.x)
        return gap <= part * self.tol * min(value.x, limit.x) or (self.whole and gap <= 1)

    def unmet(self) -> str:
        best = self.at(self.private)
        reached = "nothing could be certified there" if best.bound is None else f"the best reachable is {best.bound!r}"
        return (
            f"{self.target.text} cannot be met between {self.lo!r} and {self.hi!r}: at {best.x!r}"
            f" {reached}{self.advice}"
        )

    def vague(self, value: _Tried, limit: _Tried | None) -> str:
        other = "none is proved not to" if limit is None else f"{limit.x!r} is proved not to"
        return (
            f"{self.target.text} is met at {value.x!r}, but {other}: the certified bounds between are too wide "
            f"for tol={self.tol:g}; ask for a larger tol"
        )


def _side(point: _Tried) -> int:
    """1 if the point misses the target, -1 if it meets it, by its estimate; 0 if the bound is too wide to say."""
    if point.lower <= 0 < point.upper and not point.upper - point.lower < 3:
        return 0
    return 1 if point.estimate > 0 else -1


def _secant(one: _Tried, other: _Tried) -> float:
    """The log of the zero of the line through two points; NaN where there is none."""
    rise = other.estimate - one.estimate
    run = math.log(other.x) - math.log(one.x)
    return math.log(other.x) - other.estimate * run / rise if rise and math.isfinite(rise) else math.nan
