"""Chernoff's bound for runs of Gaussian steps and two-sided pairs: which direction cannot be the larger one.

For every t > 0, log delta(eps) <= K(t) - t eps + t log t - (1+t) log1p(t), K the sum of the steps' log M(t), each rounded up
[CKS20, Prop. 12]. A few t on a geometric grid are enough to see that one direction is far below the other.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from ..bound import AccuracyError
from ..pair import PairedSteps
from ..sampling import PACKED, Branch, Pair, packed

TILTS = (4.0, 16.0, 1.0, 64.0, 256.0, 0.25, 1024.0, 4096.0)
U = 2.0**-53


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
