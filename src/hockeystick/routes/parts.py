"""Several epochs of random allocation whose largest losses are rare and large: by how many of them are above a place.

A vertical line sees all losses at one tilt, and one at which few rare losses outweigh everything else knows little of
delta. So the law of one epoch is the sum of two measures, of losses below a smoothed place and above, and of k of them
    delta(eps) = sum_j C(k, j) D_j(eps),  D_j of j factors above and k - j below,
each by a line with a tilt of its own [theory: allocation.parts]. Once C(k, j) times the mass above to the power j is
far below what has been summed, that is a bound of the rest. Points of the law are known within a
factor, which k of them take to the power k.

What it does not do: runs with two such laws; eps at which delta is not small.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, cast

import numpy as np

from ..answers import Point, Root, meet
from ..outward import U
from . import mixed, option
from .near import Lines

if TYPE_CHECKING:
    from ..what.allocation_density import Points

MOST = 24
"""Losses above the place that are counted."""

LOG_SMALL, FINE = math.log(1e-14), 1e-11
"""The logarithm of what is left of the sum where it ends, and the relative width asked of its terms, of the whole."""

PLACES, ENOUGH = (1.0, 0.5, 0.25, 0.1), 1e-6
"""Where a law is parted, over eps: lower ones where one large loss and many small ones make up eps; and the relative
width that is enough."""

TRIES, NEAR, BESIDE = 8, 0.1, 1e-3
"""Places at which a law is parted until the root lies so near one of them, over itself; and how far beside it the slope
is taken."""


def parted(steps) -> int | None:
    """Which one of the steps is to be parted."""
    held = [i for i, step in enumerate(steps) if isinstance(step, mixed.DensityStep)]
    return held[0] if len(held) == 1 and steps[held[0]].points is not None and steps[held[0]].k > 1 else None


MANY = 1 << 16
"""Points of a law from which a line takes seconds."""


def slow(steps) -> bool:
    """Whether a law has so many points."""
    return any(isinstance(step, mixed.DensityStep) and step.columns.shape[1] > MANY for step in steps)


class _Sum:
    """delta(eps) where one law is parted at `place`; lines are kept from one eps to the next."""

    def __init__(self, steps, at: int, place: float):
        self.at, self.steps, self.step = at, steps, steps[at]
        self.parts = self.step.points.part(place)
        self.lines: dict[int, Lines] = {}

    def run(self, j: int) -> list:
        """What j losses above the place and all others below are made of."""
        k = self.step.k
        held = [
            self.step._replace(columns=of.columns, factor=of.factor, k=count)
            for of, count in zip(self.parts, (k - j, j), strict=True)
            if count
        ]
        return [*self.steps[: self.at], *held, *self.steps[self.at + 1 :]]

    def point(self, eps: float, rtol: float) -> Point | None:
        """Its ends; None where a term is not known."""
        if self.parts is None:
            return None
        k, log_mass, log_count = self.step.k, math.log(self.parts[1].mass), 0.0
        known: list[tuple[float, Point]] = []
        small: list[float] = []
        top, sum_low, log_rest = -math.inf, 0.0, -math.inf
        for j in range(k + 1):
            log_rest = log_count + j * log_mass * (1 - 4 * U)
            if sum_low > 0 and log_rest < top + math.log(sum_low) + LOG_SMALL:
                break
            if j > MOST:
                return None
            run = self.run(j)
            most = log_count + min(mixed.log_delta_upper(run, eps), 0.0)
            if sum_low > 0 and most < top + math.log(sum_low) + LOG_SMALL:
                small.append(most)
            else:
                share = math.exp(min(log_rest - top - math.log(sum_low), 0.0)) if sum_low > 0 else 1.0
                lines = self.lines.setdefault(j, Lines(min(FINE / share, 0.1)))
                one = mixed.point(run, eps, rtol, min(FINE / share, 0.1), lines=lines)
                if one is None:
                    small.append(most)
                else:
                    known.append((log_count, one))
                    top = max(count + one.upper for count, one in known)
                    sum_low = math.fsum(math.exp(count + one.lower - top) for count, one in known)
            log_count += math.log((k - j) / (j + 1)) if j < k else 0.0
            log_rest = -math.inf
        if not sum_low > 0:
            return None
        rest = math.fsum(math.exp(min(log + 1e-9 - top, 600.0)) for log in [log_rest, *small])
        return _total(known, top, rest) if rest < sum_low else None


def _total(found: list[tuple[float, Point]], top: float, rest: float) -> Point | None:
    """The sum of e^count times the points; rest: a bound of what is left out, over e^top."""
    off = U * (20 + 8 * max(abs(count) + abs(one.upper) + abs(top) for count, one in found)) * (1 + len(found))
    low, mid, high = (
        math.fsum(math.exp(count + value - top) for count, value in zip([c for c, _ in found], values, strict=True))
        for values in zip(*[one[:3] for _, one in found], strict=True)
    )
    if not low > 0:
        return None
    shares = [math.exp(count + one.estimate - top) / mid for count, one in found]
    each = zip(*[one.terms for _, one in found], strict=True)
    terms = [math.fsum(share * term for share, term in zip(shares, of, strict=True)) for of in each]
    terms[1] += rest / mid
    terms[3] += off
    ends = top + math.log(low) - off, top + math.log(mid), top + math.log((high + rest) * (1 + 4 * U)) + off
    return Point(*ends, tuple(terms), "contour")


def point(steps, eps: float, rtol: float) -> Point | None:
    """delta(eps), parted there or below."""
    best, at = None, parted(steps)
    if at is None or not eps > 0:
        return None
    for part in PLACES:
        one, before = _Sum(steps, at, part * eps).point(eps, rtol), best
        best = meet(best, one)
        if best and (best.width <= ENOUGH or (before and slow(steps) and not (one and one.width < before.width))):
            break  # still lower places seldom help where this one did not
    return best


def root(steps, log_delta: float, rtol: float, about: float) -> Root | None:
    """eps(delta), which is about `about`."""
    best, at = None, parted(steps)
    if at is None:
        return None
    for part in PLACES:
        if not about > 0:
            break
        best = meet(best, _root(steps, at, part, log_delta, rtol, about))
        if best and best.width <= ENOUGH:
            break
        about = best.estimate if best else about
    return best


def _root(steps, at: int, part: float, log_delta: float, rtol: float, about: float) -> Root | None:
    """The same, parted at that part of eps."""
    for _ in range(TRIES):
        ask = functools.partial(_Sum(steps, at, part * about).point, rtol=rtol)
        here, there = ask(about), ask(about * (1 + BESIDE))
        if here is None or there is None:
            break
        slope = (there.estimate - here.estimate) / (about * BESIDE)
        next_about = about + (log_delta - here.estimate) / slope if slope < 0 else 0.0
        if abs(next_about - about) < NEAR * about:
            return option.bracket(ask, next_about, slope, log_delta)
        about = min(max(next_about, 0.5 * about), 2 * about)
    return None


def about_root(steps, log_delta: float) -> float:
    """The loss that one epoch of k exceeds with probability delta, about."""
    step = next(step for step in steps if isinstance(step, mixed.DensityStep))
    points = cast("Points", step.points)
    above = np.cumsum(np.exp(points.log_num)[::-1])[::-1]
    return float(points.loss[int(np.argmax(above * step.k < math.exp(log_delta)))])
