"""What is known of a run beyond the Gaussian family before a route is asked.

Total variation distances of steps add up: for eps >= 0, delta(eps) <= delta(0) <= sum k_i delta_i(0) [theory: pair.variation].
Chernoff's bound, for runs of Gaussian steps and two-sided pairs: log delta(eps) <= K(t) - t eps + t log t - (1+t) log1p(t) for
every t > 0, K the sum of the steps' log M(t), rounded up [CKS20, Prop. 12] [theory: line.chernoff].
"""

from __future__ import annotations

import math

from .. import _core, scratch
from ..answers import ZERO, Point, Root
from ..arguments import exp_lower
from ..bound import AccuracyError
from ..loss import ends, log_finite
from ..pair import PairedSteps, paired_steps
from ..sampling import PACKED
from .single import variation_upper
from .walls import rest

U = 2.0**-53


def beyond(settings, add: int, eps: float):
    """A point of the curve beyond the sum of the losses' ranges: the mass at infinity, or 1 - e^eps (shared mass); or where
    that mass leaves less than e^-35 to anything else. Else None.

    Ends and masses at infinity with the errors that the losses state; e^x and its complement add 4u each.
    """
    parts = settings.losses(add)
    low, high = ends(parts)
    if eps >= high:
        log_none = log_finite(parts)
    elif any(loss.mass_inf > 0.5 for loss, _ in parts) and log_finite(parts)[1] < -35:
        log_none = -math.inf, log_finite(parts)[1]
    elif eps <= low and eps < 0:
        least, most = (eps + x for x in log_finite(parts, minus=True))
        log_none = least - U * abs(least), most + U * abs(most)
    else:
        return None
    upper, lower = (_log_one_minus_exp(min(x, 0.0)) for x in log_none)
    lower, upper = (x + side * 8 * U * (1 + abs(x)) if x > -math.inf else x for x, side in ((lower, -1), (upper, 1)))
    upper = min(upper, 0.0)
    value = upper if lower == -math.inf else 0.5 * (lower + upper)
    return Point(lower, value, upper, ZERO, "exact")


def _log_one_minus_exp(x: float) -> float:
    """log(1 - e^x) for x <= 0."""
    return math.log(-math.expm1(x)) if x < 0 else -math.inf


def at_jump(settings, delta: float, add: int):
    """The root where delta is below D; or equal to D, where the curve of atoms jumps from its largest sum; or where no finite
    sum of losses is positive. Else None."""
    parts = settings.losses(add)
    if all(loss.hi > 0 and not loss.mass_inf for loss, _ in parts):
        return None
    high = ends(parts)[1]
    if high > 0 and not any(loss.mass_inf for loss, _ in parts):
        return None
    least, most = rest(parts, delta)
    low = math.inf
    if most >= 0:
        if high > 0 and (most > 0 or high == math.inf or any(loss.smooth for loss, _ in parts)):
            return None
        low = max(0.0, 2 * math.fsum(k * loss.hi for loss, k in parts) - high)
    high = max(0.0, high) if least >= 0 else math.inf
    return Root(low, low, high, ZERO, "exact")


def below(settings, add: int, eps: float, log_delta: float) -> bool:
    """Whether it is proved that delta(eps) <= e^log_delta for the run of a query's settings."""
    if log_delta == -math.inf:
        return False
    if eps >= 0 and _variation_upper(settings, add) * (1 + 8 * U) <= exp_lower(log_delta):
        return True
    paired = paired_steps(settings.run, settings.adjacency, bool(add))
    return paired is not None and certainly_below(paired, add, eps, log_delta)


def no_root(settings, add: int, delta: float):
    """The root 0 where the distances alone keep delta(0) below delta, or None."""
    return Root(0.0, 0.0, 0.0, ZERO, "exact") if _variation_upper(settings, add) <= delta else None


def _variation_upper(settings, add: int) -> float:
    """Upper bound of delta(0)."""
    paired = paired_steps(settings.run, settings.adjacency, bool(add))
    if paired is not None:
        return paired.variation_upper
    cache, key = settings.run._cache, (settings.adjacency, add, "variation")
    if key not in cache:
        cache[key] = variation_upper(settings.losses(add))
    return cache[key]


def square_variation_upper(paired: PairedSteps) -> float:
    """Upper bound of delta(0): (1/2) sqrt(E_den (num/den)^2 - 1), by Cauchy and Schwarz, with log E_den (num/den)^2 = K(1); 1
    where a transform declines. Distances that add up grow like k, this like sqrt(k)."""
    total = paired.dropped and -2 * math.log1p(-min(paired.dropped, 0.5))
    for i, (m, q, k) in enumerate(zip(*paired.steps, strict=True)):
        pair = paired.pairs[i * PACKED.size : (i + 1) * PACKED.size]
        if pair[:4].any():
            try:
                log_m, error, *_ = _core.two_transform(pair, 1.0, 0.0, 40.0 + math.log(k))
            except AccuracyError:
                return 1.0
            total += k * (log_m + error)
        else:
            total += k * math.log1p(q * q * math.expm1(min(m * m, 700.0))) if m * m < 700 else math.inf
    return min(1.0, 0.5 * math.sqrt(math.expm1(min(total * (1 + 64 * U), 700.0))) * (1 + 16 * U) + paired.dropped)


def certainly_below(paired: PairedSteps, add: int, eps: float, log_delta: float) -> bool:
    """Whether eps is beyond every loss, or beyond Chernoff's bound of eps(e^log_delta)."""
    return (eps >= paired.loss_upper and _spare(paired, log_delta) > -math.inf) or root_upper(paired, add, log_delta) <= eps


def root_upper(paired: PairedSteps, add: int, log_delta: float) -> float:
    """Chernoff's bound of eps(e^log_delta), infinite where it says nothing."""
    spare = _spare(paired, log_delta)
    return min(_chernoff(paired, add, 0, spare), paired.loss_upper) if spare > -math.inf else math.inf


def log_delta_upper(paired: PairedSteps, add: int, eps: float) -> float:
    """Chernoff's bound of log delta(eps), at most 0."""
    upper = min(0.0, _chernoff(paired, add, 1, eps))
    if paired.dropped:
        dropped = math.log(paired.dropped)
        upper = max(upper, dropped) + math.log1p(math.exp(-abs(upper - dropped))) + 4 * U
    return min(0.0, upper)


def _spare(paired: PairedSteps, log_delta: float) -> float:
    """log of delta less what was dropped; -inf where that is not the smaller by a factor e."""
    if not paired.dropped:
        return log_delta
    log_part = math.log(paired.dropped) - log_delta
    if not log_part <= -1:
        return -math.inf
    return log_delta + math.log1p(-math.exp(log_part)) - 1e-12  # log_part is within 1e-12


def _chernoff(paired: PairedSteps, add: int, have_eps: int, at: float) -> float:
    asked = *paired.steps, add, have_eps, at
    status, upper, _ = scratch.lend(_core.contour_work(1), _core.chernoff_upper, *asked, pairs=paired.pairs)
    return upper if status == 0 else math.inf
