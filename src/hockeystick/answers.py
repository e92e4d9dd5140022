"""What is known of one number of a run: the named answers of the routes and of the C floor, and how answers combine.

A route answers in one direction. A `Point` is about delta(eps) and holds logarithms; a `Root` is about eps(delta). Both
are certified: lower <= truth <= upper. The fields `terms` are the error terms behind the interval, relative to delta,
under the names that the table of routes lists for `route`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .arguments import exp_lower, exp_upper, log_lower
from .bound import contradiction
from .outward import log_floor, log_slack

named = tuple.__new__
"""named(Root, fields) takes half as long as Root(*fields), which warm queries notice."""

ZERO = (0.0,) * 4
"""The terms of an answer that is exact."""


class Point(NamedTuple):
    """log delta(eps) in [lower, upper], estimate between."""

    lower: float
    estimate: float
    upper: float
    terms: tuple[float, ...]
    route: str

    @property
    def width(self) -> float:
        """(upper - lower)/estimate of delta itself; 0 for an interval of one point."""
        if not self.lower < self.upper:
            return 0.0
        above = self.upper - self.estimate
        return math.expm1(above) - math.expm1(self.lower - self.estimate) if above < 700 else math.inf

    def within_a_curve(self, eps: float) -> Point:
        """The interval within max(0, 1 - e^eps) <= delta(eps) <= 1, which any curve obeys."""
        if self.upper <= 0 <= eps:
            return self
        low = log_floor(eps).lower if eps < 0 else -math.inf
        return self._replace(lower=max(self.lower, low), upper=min(self.upper, 0.0))

    def reversed(self, eps: float) -> Point:
        """What this says of the other order of both laws at -eps, eps < 0: see `reversed_rows`."""
        row = reversed_rows(np.array([(*self[:3], *self.terms)]), np.array([eps]))[0]
        low, mid, high, *terms = row.tolist()
        return Point(low, mid, high, tuple(terms), self.route)

    def of_delta(self) -> Point:
        """The same ends of delta itself, rounded outward."""
        lower, estimate, log_upper, terms, route = self
        upper = exp_upper(log_upper)
        return named(Point, (exp_lower(lower), min(math.exp(estimate), upper), upper, terms, route))

    def at_most(self, delta: float) -> bool:
        """Whether delta(eps) <= delta is proved."""
        return self.upper <= log_lower(delta)


def reversed_rows(rows: np.ndarray, eps: np.ndarray) -> np.ndarray:
    """log_lower, log_estimate, log_upper, terms at every eps < 0 from those of the other order of both laws at -eps:
    delta(eps) = 1 - e^eps + e^eps delta'(-eps) [theory: pair.reversal]. Both terms are positive, and each operation
    errs by u or two of what it makes."""
    floor, a = -np.expm1(eps), np.exp(eps)
    made = np.empty_like(rows)
    made[:, :3] = np.log(floor[:, None] + a[:, None] * np.exp(rows[:, :3]))
    made[:, 3:] = rows[:, 3:] * (a * np.exp(rows[:, 1] - made[:, 1]))[:, None]
    made[:, 0] -= log_slack(made[:, 0])
    made[:, 2] = np.minimum(made[:, 2] + log_slack(made[:, 2]), 0.0)
    return made


class Root(NamedTuple):
    """eps(delta) in [lower, upper], estimate between."""

    lower: float
    estimate: float
    upper: float
    terms: tuple[float, ...]
    route: str

    @property
    def width(self) -> float:
        """(upper - lower)/estimate; 0 where eps is 0 exactly."""
        lower, estimate, upper, _, _ = self
        if upper == lower or upper <= 0:
            return 0.0
        return (upper - lower) / (estimate if estimate > 1e-300 else 1e-300)

    def within_a_curve(self, _: float) -> Root:
        """The interval within eps(delta) >= 0, which any curve obeys."""
        return self if self.lower >= 0 else self._replace(lower=0.0, upper=max(self.upper, 0.0))


class Scaled(NamedTuple):
    """A certified delta of the C floor, e^log_scale times lower <= estimate <= upper; terms in the scale of these."""

    status: int
    log_scale: float
    lower: float
    estimate: float
    upper: float
    terms: tuple[float, ...]
    nodes: int

    @property
    def width(self) -> float:
        return (self.upper - self.lower) / self.estimate

    def relative(self) -> tuple[float, ...]:
        """The terms relative to delta."""
        value = self.estimate
        if len(self.terms) > 4:
            return tuple(term / value for term in self.terms)
        aliasing, truncation, inner, rounding = self.terms
        return aliasing / value, truncation / value, inner / value, rounding / value

    def certified(self, route: str) -> Point:
        """The logarithms, rounded outward [theory: rounding.outward]: the scale and the logarithms carry 4u(1 +
        |log|)."""
        log_upper = self.log_scale + math.log(self.upper)
        slack = log_slack(self.log_scale, log_upper - self.log_scale)
        lower = self.log_scale + math.log(self.lower) - slack if self.lower > 0 else -math.inf
        estimate = self.log_scale + math.log(self.estimate)
        return named(Point, (lower, estimate, log_upper + slack, self.relative(), route))


def log_rows(rows: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Rows (status, log_scale, lower, estimate, upper, terms) of `Scaled` as rows of log_lower, log_estimate, log_upper
    and terms relative to delta, rounded as `Scaled.certified` does; NaN where they are not good."""
    _, scale, lower, estimate, upper, *terms = rows.T
    with np.errstate(all="ignore"):
        slack = log_slack(scale, np.log(upper))
        low = np.where(lower > 0, scale + np.log(lower) - slack, -math.inf)
        ends = low, scale + np.log(estimate), scale + np.log(upper) + slack
        return np.where(good, np.array([*ends, *(term / estimate for term in terms)]), np.nan).T


class Cumulant(NamedTuple):
    """K(t) in [lower, upper], an estimate between, and the part of upper - lower that is quadrature."""

    lower: float
    estimate: float
    upper: float
    quadrature: float = 0.0

    @classmethod
    def within(cls, error: float, value: float, quadrature: float = 0.0) -> Cumulant:
        return cls(value - error, value, value + error, quadrature)


class Crossing(NamedTuple):
    """A certified eps of the C floor; terms relative to delta there."""

    status: int
    lower: float
    estimate: float
    upper: float
    terms: tuple[float, ...]
    nodes: int

    @property
    def width(self) -> float:
        return (self.upper - self.lower) / max(abs(self.estimate), 1e-300)

    def relative(self) -> tuple[float, ...]:
        return self.terms

    def certified(self, route: str) -> Root:
        _, lower, estimate, upper, terms, _ = self
        return named(Root, (lower, estimate, upper, terms, route))


class Saddle(NamedTuple):
    """What the saddle-point accountant says of log delta or of eps: ends, the mid-point of its kind, and the estimate
    `raw` by the formula number `kind`; terms relative to delta."""

    status: int
    kind: int
    lower: float
    estimate: float
    upper: float
    raw: float
    terms: tuple[float, ...]
    tilt: float
    skewness: float


def between(lower: float, estimate: float, upper: float, route: str, run: Any = None) -> float:
    """The estimate, which is no bound, moved between certified ends; SoundnessError where these are no interval or one
    of the three is NaN."""
    if lower <= estimate <= upper:
        return estimate
    if lower <= upper and estimate == estimate:
        return min(max(estimate, lower), upper)
    raise contradiction(run, (lower, estimate, upper, route))


def ordered(found, run: Any = None):
    """A Point or Root as it may leave: see `between`."""
    if found.lower <= found.estimate <= found.upper:
        return found
    return found._replace(estimate=between(found.lower, found.estimate, found.upper, found.route, run))


def meet(a, b, run: Any = None):
    """What two Points or two Roots about one number leave of it; terms and route are those of the narrower
    [theory: small.consistent]. SoundnessError where nothing is left. Either may be None."""
    if a is None or b is None:
        found = a or b
        return found if found is None or found.lower <= found.estimate <= found.upper else ordered(found, run)
    own = a if not b.upper - b.lower < a.upper - a.lower else b
    low, high = max(a.lower, b.lower), min(a.upper, b.upper)
    if not low <= high:
        raise contradiction(run, a, b)
    return ordered(own._replace(lower=low, upper=high), run)


def larger(a, b):
    """The elementwise maximum of two Points or Roots; terms and route of the one with the larger upper end."""
    top = a if a.upper >= b.upper else b
    return top._replace(lower=max(a.lower, b.lower), estimate=max(a.estimate, b.estimate))
