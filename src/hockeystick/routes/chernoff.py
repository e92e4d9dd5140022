"""What is known of a run beyond the Gaussian family before a route is asked.

Total variation distances of steps add up: for eps >= 0, delta(eps) <= delta(0) <= sum k_i delta_i(0). Chernoff's bound, for
runs of Gaussian steps and two-sided pairs: log delta(eps) <= K(t) - t eps + t log t - (1+t) log1p(t) for every t > 0, K the sum
of the steps' log M(t), rounded up [CKS20, Prop. 12]; a few t are enough to see that one direction is far below the other.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from ..bound import AccuracyError
from ..pair import PairedSteps, paired_steps
from ..sampling import PACKED, Branch, Pair, packed
from .single import variation_upper

TILTS = (4.0, 16.0, 1.0, 64.0, 256.0, 0.25, 1024.0, 4096.0)
U = 2.0**-53


def beyond(settings, add: int, eps: float):
    """A point of the curve beyond the sum of the losses' ranges: the mass at infinity, or 1 - e^eps (shared mass); else None.

    Ends of one loss are known to 8 u relative, masses to 64 u.
    """
    parts = settings.losses(add)
    low, high = ends(parts)
    if eps >= high:
        log_none = math.fsum(k * math.log1p(-loss.mass_inf) for loss, k in parts)
    elif eps <= low and eps < 0:
        log_none = eps + math.fsum(k * math.log1p(-loss.mass_minus_inf) for loss, k in parts)
    else:
        return None
    value = _log_one_minus_exp(log_none)
    spread = 160 * U * (1 + abs(log_none) / max(-math.expm1(log_none), 1e-300))
    return value - spread, value, min(value + spread, 0.0), (0.0,) * 4, "exact"


def ends(parts) -> tuple[float, float]:
    """No finite sum of losses lies outside, rounding included."""
    high = math.fsum(k * (loss.hi + 16 * U * abs(loss.hi)) for loss, k in parts)
    return math.fsum(k * (loss.lo - 16 * U * abs(loss.lo)) for loss, k in parts), high


def _log_one_minus_exp(x: float) -> float:
    """log(1 - e^x) for x <= 0."""
    return math.log(-math.expm1(x)) if x < 0 else -math.inf


def below(settings, add: int, eps: float, log_delta: float) -> bool:
    """Whether it is proved that delta(eps) <= e^log_delta for the run of a query's settings."""
    if log_delta == -math.inf:
        return False
    if eps >= 0 and variation_upper(settings.losses(add)) * (1 + 8 * U) <= math.exp(log_delta):
        return True
    paired = paired_steps(settings.run, settings.adjacency, bool(add))
    return paired is not None and certainly_below(paired, bool(add), eps, log_delta)


def no_root(settings, add: int, delta: float):
    """The root (0, 0, 0, terms, "exact") where the distances alone keep delta(0) below delta, or None."""
    return (0.0, 0.0, 0.0, (0.0,) * 4, "exact") if variation_upper(settings.losses(add)) <= delta else None


def certainly_below(paired: PairedSteps, add: bool, eps: float, log_delta: float) -> bool:
    """Whether some tilt proves delta(eps) <= e^log_delta."""
    spare = log_delta - math.log(2.0) if paired.dropped else log_delta
    if paired.dropped and not math.log(paired.dropped) <= spare:
        return False
    for t in TILTS:
        k = _cgf_upper(paired, add, t)
        if k is None:
            continue
        bound = k - t * eps + t * math.log(t) - (1 + t) * math.log1p(t)
        if bound + 8 * U * (abs(k) + t * abs(eps) + t * (1 + abs(math.log(t)))) <= spare:
            return True
    return False


def _cgf_upper(paired: PairedSteps, add: bool, t: float) -> float | None:
    """K(t), rounded up, or None where a transform declines."""
    total = 0.0
    one = PACKED.itemsize
    for i, (m, q, k) in enumerate(zip(*paired.steps, strict=True)):
        pair = paired.pairs[i * one : (i + 1) * one]
        if not pair.view(np.intc)[0]:
            if q == 1:
                total += k * 0.5 * m * m * t * (1 + t) * (1 + 8 * U)
                continue
            pair = packed([Pair((Branch(1.0, q, 0.0, m) if add else Branch(1.0, q, m, 0.0),))])
        try:
            log_m, error, *_ = _core.two_transform(pair, t, 0.0, 20.0 + math.log(k))
        except AccuracyError:
            return None
        total += k * (log_m + error) + 4 * U * k * abs(log_m)
    return total * (1 + 4 * U * paired.steps.k.size) if total > 0 else total
