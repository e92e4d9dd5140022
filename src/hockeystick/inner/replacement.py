"""The curve above draws with replacement (what/replacement.py), from those of Gaussian steps of 2j sensitivities."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from ..outward import UP
from ..query import delta
from ..what.given import FromCurve
from ..what.mechanism import gaussian
from ..what.pair import PAIRS, curve_pair
from ..what.replacement import Multiplicities, WithReplacement, chances_upper, drawn
from .selection import spread

if TYPE_CHECKING:
    from ..types import Adjacency
    from ..what.loss import Loss

RESOLVED, EPS_MAX, POINTS = 1e-36, 24.0, 1000
"""The curve is followed down to RESOLVED, by so many points: from there on the loss is taken to be infinite."""


@functools.lru_cache(32)
def curve(step: WithReplacement) -> FromCurve:
    """The worst pair below points above the curve, its own mirror image."""
    n, m, base = step.dataset_size, step.batch, step.base
    chances, rest = chances_upper(n, m)
    eta = drawn(n, m) * UP
    moved = [gaussian(base.sigma, sensitivity=2 * j * base.sensitivity) for j in range(1, len(chances) + 1)]

    def upper(eps: np.ndarray) -> np.ndarray:
        inner = np.log1p(np.expm1(eps) / eta) * (1 - 1e-14)
        parts = [w * np.asarray(delta(one, inner).upper) for w, one in zip(chances, moved, strict=True)]
        return np.minimum((np.sum(parts, axis=0) + rest) * (1 + 1e-13), 1.0)  # [theory: pair.with-replacement]

    end = 1e-12
    while end < EPS_MAX and upper(np.array([end]))[0] > RESOLVED + rest:
        end = min(1.5 * end, EPS_MAX)
    first = 1e-2 * eta * min(1.0, base.sensitivity / base.sigma)  # small beside the losses of one draw
    rough = np.r_[0.0, np.geomspace(min(first, 0.5 * end), end, 128)]
    eps = spread(rough, np.log(upper(rough)), POINTS)
    return FromCurve(tuple(eps.tolist()), tuple(np.minimum.accumulate(upper(eps)).tolist()), True)


def multiplicity_pair(step: Multiplicities, adjacency: Adjacency, add: bool) -> Loss:
    """The worst pair below the curve, its own mirror image."""
    return curve_pair(curve(step.of), adjacency, add)


PAIRS[Multiplicities] = multiplicity_pair
