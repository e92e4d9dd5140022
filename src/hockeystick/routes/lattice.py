"""Laws whose losses are integer multiples of one unit: composed exactly on their lattice by a Fourier sum over one period.

A step is a `LatticeLaw`; steps with commensurate units share a lattice. The sum, its error terms and their proofs are in
csrc/atoms.c. Points and roots are those of routes/contour.py, or None where the route declines.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .. import _core
from . import contour

U = 2.0**-53
POINTS, LOG_CONCAVE = 2.0, 3.0
"""Kinds of table, csrc/hs.h."""

NODES = 1 << 16
MATCH = 16 * U
"""Units whose ratio is that close to a fraction of denominator at most 10^4 share a lattice; the mismatch is an error term."""


class LatticeLaw(NamedTuple):
    """One step's loss: unit * places, with log masses under num. E e^-loss = 1 must hold (no masses at infinity).

    unit is known to d_unit relative, log_mass to d_log_mass absolute. log_concave: an infinite table was cut at negligible ends.
    """

    unit: float
    d_unit: float
    places: np.ndarray
    log_mass: np.ndarray
    d_log_mass: np.ndarray
    log_concave: bool = False


def randomized_response(eps0: float) -> LatticeLaw:
    """Loss eps0 with probability e^eps0/(1 + e^eps0), else -eps0 [GLW21, Prop. B.3]."""
    log_mass = np.array([-eps0 - math.log1p(math.exp(-eps0)), -math.log1p(math.exp(-eps0))])
    return LatticeLaw(eps0, 0.0, np.array([-1, 1]), log_mass, _rounding(log_mass))


def k_ary_randomized_response(eps0: float, k: int) -> LatticeLaw:
    """Loss eps0, 0, -eps0 with probabilities in proportion e^eps0 : k-2 : 1; two inputs that differ."""
    top = -math.log1p((k - 1) * math.exp(-eps0))
    log_mass = np.array([top - eps0, top - eps0 + math.log(k - 2) if k > 2 else -math.inf, top])
    keep = log_mass > -math.inf
    return LatticeLaw(eps0, 0.0, np.array([-1, 0, 1])[keep], log_mass[keep], _rounding(log_mass[keep], eps0))


def discrete_laplace(scale: float, sensitivity: int) -> LatticeLaw:
    """Noise of mass tanh(a/2) e^{-a|x|}, a = 1/scale, moved by D: losses a(D - 2j), j = 0..D."""
    a, d = 1.0 / scale, int(sensitivity)
    j = np.arange(d, -1, -1)
    log_mass = math.log(math.tanh(0.5 * a)) - a * j
    log_mass[0] = -math.log1p(math.exp(-a)) - a * d
    log_mass[-1] = -math.log1p(math.exp(-a))
    return LatticeLaw(a, U, d - 2 * j, log_mass, _rounding(log_mass, a * d))


def discrete_gaussian(sigma: float, sensitivity: int, reach: float = 60.0) -> LatticeLaw:
    """Noise of mass proportional to e^{-x^2/2 sigma^2}, moved by D: losses D(D - 2x)/(2 sigma^2). The table ends `reach` sigma out."""
    d = int(sensitivity)
    last = math.ceil(reach * sigma) + d + 2
    x = np.arange(last, -last - 1, -1)
    square = -0.5 * (x / sigma) ** 2
    log_mass = square - math.log(math.fsum(np.exp(square)))
    return LatticeLaw(0.5 * d / sigma / sigma, 3 * U, d - 2 * x, log_mass, _rounding(log_mass) + 4 * U * np.abs(square), True)


def _rounding(log_mass: np.ndarray, size: float = 0.0) -> np.ndarray:
    return U * (12 + 4 * np.abs(log_mass) + 4 * size)


class Lattice(NamedTuple):
    """A run on one lattice, as csrc/atoms.c takes it, and the ends of its support (exact up to d_end)."""

    table: np.ndarray
    points: np.ndarray
    lattice: np.ndarray
    bottom: float
    top: float
    d_end: float


def compose(steps) -> Lattice | None:
    """The lattice of (law, count) pairs; None where their units are not commensurate."""
    fractions = [_ratio(law.unit, steps[0][0].unit) for law, _ in steps]
    if None in fractions:
        return None
    base = math.lcm(*(f.denominator for f in fractions))
    unit = Fraction(steps[0][0].unit) / base
    scales = [int(f * base) for f in fractions]
    grids = [law.places.astype(object) * scale for (law, _), scale in zip(steps, scales, strict=True)]
    gap = math.gcd(*(int(v - g[0]) for g in grids for v in g)) or 1
    step = float(unit * gap)
    origin = Fraction(sum(int(g[0]) * k for g, (_, k) in zip(grids, steps, strict=True)), gap)
    shift = float(origin)
    d_step = steps[0][0].d_unit + (0.0 if Fraction(step) == unit * gap else U)
    d_shift = abs(float(origin - Fraction(shift))) * step
    rows, columns = [], []
    for (law, k), grid, scale in zip(steps, grids, scales, strict=True):
        mismatch = abs(float(Fraction(law.unit) / (unit * scale) - 1)) + (law.d_unit + steps[0][0].d_unit if law is not steps[0][0] else 0.0)
        if law.unit == steps[0][0].unit and law.d_unit == steps[0][0].d_unit:
            mismatch = 0.0 if law.d_unit == 0 or law is steps[0][0] else 2 * law.d_unit
        loss = float(unit) * grid.astype(float)
        size = np.abs(loss)
        d_shift += k * mismatch * float(size.max())
        columns.append([((grid - grid[0]) // gap).astype(float), loss, law.log_mass, size * (d_step + mismatch + 4 * U), law.d_log_mass])
        rows.append([LOG_CONCAVE if law.log_concave else POINTS, k, 0, 0, 0, grid.size, 0])
    bottom, top = (
        float(unit * sum(int(f(g)) * k for g, (_, k) in zip(grids, steps, strict=True))) if not infinite else sign * math.inf
        for f, sign, infinite in ((min, -1, any(law.log_concave for law, _ in steps)), (max, 1, any(law.log_concave for law, _ in steps)))
    )
    d_end = 0.0 if math.isinf(top) else (d_step + 4 * U) * max(abs(top), abs(bottom)) + d_shift
    points = np.ascontiguousarray(np.concatenate([np.array(c) for c in columns], axis=1))
    return Lattice(np.array(rows, dtype=float), points, np.array([step, d_step, shift, d_shift]), bottom, top, d_end)


def _ratio(unit: float, base: float) -> Fraction | None:
    exact = Fraction(unit) / Fraction(base)
    near = exact.limit_denominator(10**4)
    return near if near and abs(float(exact / near - 1)) <= MATCH else None


def point(run: Lattice, eps: float, rtol: float = contour.RTOL):
    """(log_lower, log_estimate, log_upper, terms) of a certified delta(eps), or None."""
    answer = _call(_core.atoms_delta, run, eps, rtol)
    return answer and contour._logs(answer)


def root(run: Lattice, log_delta: float, rtol: float = contour.RTOL):
    """(lower, estimate, upper, terms) of a certified eps(delta), or None."""
    answer = _call(_core.atoms_eps, run, log_delta, rtol)
    return answer and answer[1:5]


def _call(function, run: Lattice, at: float, rtol: float):
    work = contour.borrow(_core.atoms_work(run.points.shape[1], 0, NODES))
    try:
        answer = function(run.table, run.points, run.lattice, at, rtol, contour._margin(rtol), NODES, work)
    finally:
        contour.give_back(work)
    return answer if answer[0] <= 1 else None
