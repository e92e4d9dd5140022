"""Many random shifts as few: in every cell of shifts the rule of Gauss for the shifts that lie there.

R(x) = sum_i w_i e^{s_i x - s_i^2/2} of the few is that of the many within a factor that is known at every x
[theory: law.condensed]. Zero and the largest shift stay as they are, so that a loss has the ends that it had.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..gauss import gauss_rule
from ..outward import LDBL_ULP, UP, U

if TYPE_CHECKING:
    from .given import GaussianMixture

MANY, TOP = 256, 10.0
"""Shifts from which they are condensed, and the largest one, in deviations of the noise."""

CELLS, POINTS = 32, 8
"""Cells to a deviation of the noise, and the points of each, which have its first 2 POINTS moments."""


class Condensed(NamedTuple):
    """Shifts in deviations of the noise, increasing, and their weights; half: of the width of a cell, 0 where all
    shifts are as they were; apart: at most the difference of a cell's Chebyshev moments, over its weight."""

    shifts: np.ndarray
    weights: np.ndarray
    half: float = 0.0
    apart: float = 0.0

    def off_upper(self, x) -> np.ndarray:
        """At least |log| of the factor between both R at x [theory: law.condensed]."""
        if not self.half:
            return np.zeros(np.shape(x))
        h, n = self.half, 2 * POINTS - 1
        k = h * (np.abs(x) + float(self.shifts[-1]))
        rho = np.maximum(2.0, np.minimum(2 * n / k, 0.5 / h))
        far = 1 + 0.5 * (rho + 1 / rho)
        rest = -n * np.log(rho) - np.log(rho - 1) + k * far + 0.5 * h * h + 0.125 * (h * (rho - 1 / rho)) ** 2
        part = self.apart * np.exp(np.minimum(2 * k + h * h, 600.0)) + 4.1 * np.exp(np.minimum(rest, 600.0))
        # next to 1 a logarithm is at most 1.01 times what is added; otherwise terms of a cell are within e^{2k+h^2}
        part += 8 * U * (1 + k)  # the places of shifts in their cells
        return np.where(part < 0.01, 1.01 * part, 2 * k + h * h + 1e-6)


@functools.lru_cache(8)
def condensed(step: GaussianMixture) -> Condensed:
    """The shifts of a step over its noise."""
    shifts, weights = np.array(step.shifts) / step.sigma, np.array(step.probabilities)
    top = float(shifts.max())
    if shifts.size < MANY or top > TOP:
        return Condensed(shifts, weights)
    order = np.argsort(shifts, kind="stable")
    shifts, weights = shifts[order], weights[order] / math.fsum(weights.tolist())
    inside = (shifts > 0) & (shifts < top)
    ends = [(s, math.fsum(weights[shifts == s].tolist())) for s in (0.0, top)]
    inner, held = shifts[inside], weights[inside]
    at, mass, apart = [0.0, top], [w for _, w in ends], 0.0
    for own, p in _cells(inner, held):
        s, w, lost = _gauss(own, p)
        at += s
        mass += w
        apart = max(apart, lost)
    found = np.array(at), np.array(mass)
    order = np.argsort(found[0], kind="stable")
    order = order[found[1][order] > 0]
    return Condensed(found[0][order], found[1][order], 0.5 / CELLS, apart)


def _cells(shifts: np.ndarray, weights: np.ndarray):
    """(shifts, weights) of every cell that holds some."""
    cell = np.floor(shifts * CELLS)
    starts = np.r_[0, np.flatnonzero(np.diff(cell)) + 1, shifts.size]
    for a, b in itertools.pairwise(starts):
        if b > a:
            yield shifts[a:b], weights[a:b]


def _gauss(shifts: np.ndarray, weights: np.ndarray) -> tuple[list[float], list[float], float]:
    """Points and weights in place of a cell's, and what their moments are off by."""
    if shifts.size <= POINTS:
        return shifts.tolist(), weights.tolist(), 4 * U
    middle = (math.floor(shifts[0] * CELLS) + 0.5) / CELLS
    t, total = (shifts - middle) * (2 * CELLS), math.fsum(weights.tolist())
    p = weights / total
    points, new = gauss_rule(t, p, POINTS)
    points, new = middle + points / (2 * CELLS), new / new.sum()
    lost = _apart_upper((shifts, p), (points, new), middle)
    if not lost < 1e-12 or not (points > 0).all():
        return shifts.tolist(), weights.tolist(), 4 * U
    return points.tolist(), (new * total).tolist(), lost


def _apart_upper(one, other, middle: float) -> float:
    """At least the largest difference of the Chebyshev moments of two laws of weight 1, their rounding included
    [theory: law.condensed]."""
    moments, lost = [], 0.0
    for shifts, weights in (one, other):
        t = ((shifts - middle) * (2 * CELLS)).astype(np.longdouble)
        p = weights.astype(np.longdouble)
        before, now = np.ones_like(t), t
        rows = [p.sum(), (p * now).sum()]
        for _ in range(2, 2 * POINTS):
            before, now = now, 2 * t * now - before
            rows.append((p * now).sum())
        moments.append(np.array(rows))
        lost += 2 * LDBL_ULP * ((2 * POINTS) ** 2 + 64 + t.size / 64)
    return (float(np.abs(moments[0] - moments[1]).max()) + lost) * UP + 8 * U
