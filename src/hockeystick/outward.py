"""Numbers moved outward by what a few floating-point operations may have lost [theory: rounding.outward]; u = 2^-53.

Products, quotients, square roots, sums of positive numbers and libm's functions of exact arguments: what seven of them
make is within 14u of itself, so that times UP it is an upper bound, times DOWN a lower one. Not below 2^-1022, where an
operation may lose more than a part. Of a sum of logarithms the largest of them says what it may have lost.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

U = 2.0**-53
LDBL_ULP = float(np.finfo(np.longdouble).eps)
LONG_U = max(0.5 * LDBL_ULP, 2.0**-64)
"""Spacing of long doubles next to 1, and what one operation on them loses."""
UP, DOWN = 1 + 16 * U, 1 - 16 * U


class Ends(NamedTuple):
    """Certified ends of a number."""

    lower: float
    upper: float


def log_slack(a: Any, b: Any = 0.0) -> Any:
    """What the sum of logarithms a and b may have lost: each is within 2u(1 + |.|) of itself, their sum is rounded."""
    return 4 * U * (2 + abs(a) + abs(b))


def log_of(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def log_sum(a: float, b: float, side: int = 1) -> float:
    """log(e^a + e^b), rounded up or, for `side` -1, down; a and b are bounds or within 2u(1 + |.|) of themselves."""
    low, high = sorted((a, b))
    if high == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high)) + side * log_slack(high)


class Interval(NamedTuple):
    """Certified ends of a number and an estimate between."""

    lower: float
    estimate: float
    upper: float


def log_floor(eps: float) -> Interval:
    """log(1 - e^eps), eps < 0, which no curve lies below; the upper end is at most 0."""
    value = math.log(-math.expm1(eps))
    slack = log_slack(value)
    return Interval(value - slack, value, min(value + slack, 0.0))
