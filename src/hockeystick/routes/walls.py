"""Where the curve of a run ends: the largest sum of finite losses, and what its infinite losses take of delta.

With D = 1 - prod (1 - d_i)^k_i the probability that some loss is infinite, delta(eps) is D and a finite part, which is
0 from the largest finite sum on. So eps(delta) jumps at delta = D: it is infinite below, at most that sum from D on
[theory: small.walls]."""

from __future__ import annotations

import math
from fractions import Fraction

from ..outward import U
from ..what.loss import ends, log_finite

EXACT = 4096
"""Most steps of infinite losses whose probabilities are multiplied as fractions: about a millisecond."""

NEAR = 1e-13
"""Part of delta, above the error of D, from which on delta - D is small: then the lower end is that of this part."""


def rest(parts, delta: float) -> tuple[float, float]:
    """Bounds of delta - D, D = 1 - prod (1 - d_i)^k_i the probability that some loss is infinite: in exact fractions
    where that alone tells its sign and the masses are exact."""
    held = [(loss, k) for loss, k in parts if loss.mass_inf]
    if not held:
        return delta, delta
    upper, lower = (-math.expm1(x) for x in log_finite(held))
    lost, error = 0.5 * (lower + upper), 0.5 * (upper - lower) + U * (8 * upper + delta)
    least, most = (delta - lost) - error, (delta - lost) + error  # [theory: small.walls]
    if least <= 0 <= most and all(loss.exact_inf is not None for loss, _ in held) and sum(k for _, k in held) <= EXACT:
        exact = Fraction(delta) - 1 + math.prod((1 - loss.exact_inf) ** k for loss, k in held)
        if exact <= 0:
            return (0.0, 0.0) if exact == 0 else (-error, -5e-324)
        least, most = max(0.0, math.nextafter(float(exact), 0.0)), math.nextafter(float(exact), 1.0)
    return least, most


def seen(least: float, most: float, delta: float) -> tuple[float, float]:
    """The same bounds as a route sees them beside D: nothing, 0, is left of one too small; the larger, of which eps is
    a lower bound of eps(delta), is made no smaller."""
    return (least if least >= NEAR * delta else 0.0), max(most, NEAR * delta, 5e-324)


def wall_upper(parts, least: float) -> float:
    """An upper bound of the root where delta - D >= `least`: all finite sums of losses, or infinite."""
    return ends(parts).upper if least >= 0 else math.inf
