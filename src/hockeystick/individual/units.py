"""Squared GDP parameters in whole units: sums are exact and do not depend on their order.

A budget B is laid out once as (divisor D, half h, limit): a step of parameter mu costs ceil((mu/D)^2 4^h) units,
computed exactly [theory: individual.units], and the steps must stay within `limit` units <= (B/D)^2 4^h. The rounding
is upward for every charge and downward for the budget, so nothing is under-charged; it costs at most one unit a step,
2^-48 of the budget or less.

Where B has at most 25 significant bits, D = 1 and the limit is B^2 exactly (3, 4 fill 5); otherwise D = B and the
limit is 2^50 (any B: B fills B, four times B/2 fill B). Spending exactly the budget is allowed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import query
from ..arguments import log_lower
from ..bound import DomainError
from ..outward import DOWN, UP
from ..what.mechanism import SIGMA_RANGE, gaussian, within

LIMIT_BITS = 50
"""Limits lie in (2^48, 2^50]: a charge, cut at 2^51, and every sum stay whole numbers of a double."""

MU_RANGE = (1e-6, 1e3)
"""Budgets allowed, in mu. 1e3 is the inverse of the least sigma/sensitivity of a mechanism."""


class Units(NamedTuple):
    """The whole units of one budget; see the head of the file."""

    divisor: float
    half: int
    limit: int

    def cost(self, mu: Fraction) -> int:
        """Units of a step of parameter `mu`, rounded up: exact."""
        ratio = (mu / Fraction(self.divisor)) ** 2 * Fraction(4) ** self.half
        return -(-ratio.numerator // ratio.denominator)  # [theory: individual.units]

    def scale_lower(self, sigma: float) -> float:
        """sigma D 2^-h rounded down: what a norm is divided by before squaring."""
        exact = Fraction(sigma) * Fraction(self.divisor) / Fraction(2) ** self.half
        scale = float(exact)
        return scale if Fraction(scale) <= exact else math.nextafter(scale, 0.0)

    def mu_upper(self, units: int) -> float:
        """The mu of `units` spent, rounded up."""
        mu = self.divisor * math.sqrt(units) / 2.0**self.half
        return mu * UP if units else 0.0

    def all_mu_upper(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same of many records."""
        return self.divisor * np.sqrt(units) * (2.0**-self.half * UP)

    def left_mu_lower(self, spent: int) -> float:
        """The mu that still fits when `spent` units are gone: its cost is within what is left."""
        left = max(0, self.limit - spent)
        mu = self.divisor * math.sqrt(left) / 2.0**self.half
        return mu if self.cost(Fraction(mu)) <= left else mu * DOWN


def units_of(mu: float) -> Units:
    """The units in which a budget of `mu` is kept."""
    significand, exponent = math.frexp(mu)
    whole = int(significand * 2**53)
    odd = whole // (whole & -whole)
    if odd.bit_length() > 25:
        return Units(mu, LIMIT_BITS // 2, 1 << LIMIT_BITS)
    half = LIMIT_BITS // 2 - exponent  # mu^2 4^half = (significand 2^25)^2 in [2^48, 2^50)
    return Units(1.0, half, int(significand * 2 ** (LIMIT_BITS // 2)) ** 2)


def budget(budget_mu: float | None, epsilon: float | None, delta: float | None) -> float:
    """The budget in mu: as given, or the largest whose certified delta(epsilon) stays within `delta`.

    Raises
    ------
    DomainError
        Unless exactly one of `budget_mu` and (`epsilon`, `delta`) is given, inside its domain.
    """
    if (budget_mu is None) == (epsilon is None) or (epsilon is None) != (delta is None):
        raise DomainError(
            "give the budget either as budget_mu=... or as eps=..., delta=...; "
            f"got budget_mu={budget_mu!r}, eps={epsilon!r}, delta={delta!r}"
        )
    if budget_mu is not None:
        return within("budget_mu", budget_mu, *MU_RANGE)
    epsilon, delta = within("eps", epsilon, 0, math.inf, "[)"), within("delta", delta, 0, 1, "()")
    mu = mu_lower(epsilon, log_lower(delta))
    if not mu:
        raise DomainError(f"eps={epsilon!r} at delta={delta!r} allows no budget: mu would be below {MU_RANGE[0]:g}")
    return mu


def mu_lower(epsilon: float, log_delta: float) -> float:
    """A mu, as large as bisection finds it, whose Gaussian curve certifiedly has log delta(epsilon) <= log_delta; 0
    where none of MU_RANGE has."""

    def fits(mu: float) -> bool:
        sigma = 1 / mu * DOWN  # no more noise than mu stands for
        return query.log_delta(gaussian(max(sigma, SIGMA_RANGE[0])), epsilon).upper <= log_delta

    lo, hi = MU_RANGE
    if not fits(lo):
        return 0.0
    if fits(hi * (1 - 1e-12)):
        return hi * (1 - 1e-12)
    while hi / lo - 1 > 4e-15:
        mid = math.sqrt(lo * hi)
        if not lo < mid < hi:
            break
        lo, hi = (mid, hi) if fits(mid) else (lo, mid)
    return lo


def epsilon_upper(mu: float, delta: float) -> float:
    """Certified upper bound of eps(delta) of a mu-GDP transcript."""
    if mu == 0:
        return 0.0
    sigma = 1 / mu * DOWN
    if not SIGMA_RANGE[0] <= sigma:
        raise DomainError(f"mu={mu!r} is beyond {1 / SIGMA_RANGE[0]:g}")
    return query.epsilon(gaussian(min(sigma, SIGMA_RANGE[1])), delta, direction="remove").upper
