"""Laws whose losses are integer multiples of one unit: composed exactly on their lattice by a Fourier sum over one
period.

A step is a `LatticeLaw`; steps with commensurate units share a lattice. The sum, its error terms and their proofs are
in csrc/line/mixed.c. Answers are those of answers.py, None where the route declines."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .. import _core, scratch
from ..answers import Point, Root
from ..outward import U
from . import contour
from .near import Lines, asked

NODES = 1 << 16
GRID_MAX = 1 << 53
"""Largest place on a common lattice: a double holds it."""

MATCH = 16 * U
"""Units whose ratio is that close to a fraction of denominator at most 10^4 share a lattice; the mismatch is an error
term."""


class LatticeLaw(NamedTuple):
    """One step's loss: unit * places + offset (increasing), with log masses under num. E e^-loss = 1 must hold.

    unit is known to d_unit relative, every loss to d_loss absolute besides, log_mass to d_log_mass absolute.
    log_concave: an infinite table, cut where the masses are negligible for every tilt of use.
    """

    unit: Fraction
    d_unit: float
    places: np.ndarray
    log_mass: np.ndarray
    d_log_mass: np.ndarray
    log_concave: bool = False
    offset: Fraction = Fraction(0)
    d_loss: float = 0.0


def randomized_response(eps0: float) -> LatticeLaw:
    """Loss eps0 with probability e^eps0/(1 + e^eps0), else -eps0 [GLW21, Prop. B.3]."""
    rest = math.log1p(math.exp(-eps0))
    log_mass = np.array([-eps0 - rest, -rest])
    return LatticeLaw(Fraction(eps0), 0.0, np.array([-1, 1]), log_mass, _rounding(log_mass))


def k_ary_randomized_response(eps0: float, k: int) -> LatticeLaw:
    """Loss eps0, 0, -eps0 with probabilities in proportion e^eps0 : k-2 : 1, for two inputs that differ."""
    top = -math.log1p((k - 1) * math.exp(-eps0))
    log_mass = np.array([top - eps0, top - eps0 + math.log(k - 2), top]) if k > 2 else np.array([top - eps0, top])
    places = np.array([-1, 0, 1]) if k > 2 else np.array([-1, 1])
    return LatticeLaw(Fraction(eps0), 0.0, places, log_mass, _rounding(log_mass, eps0))


def discrete_laplace(scale: float, sensitivity: int) -> LatticeLaw:
    """Noise of mass tanh(a/2) e^{-a|x|}, a = 1/scale, moved by D: losses a(D - 2j), j = 0..D."""
    a, d = 1.0 / scale, int(sensitivity)
    j = np.arange(d, -1, -1)
    log_mass = math.log(math.tanh(0.5 * a)) - a * j
    log_mass[0] = -math.log1p(math.exp(-a)) - a * d
    log_mass[-1] = -math.log1p(math.exp(-a))
    return LatticeLaw(1 / Fraction(scale), 0.0, d - 2 * j, log_mass, _rounding(log_mass, a * d))


def discrete_gaussian(sigma: float, sensitivity: int, copies: int = 1) -> LatticeLaw:
    """Noise of mass in proportion e^{-x^2/2 sigma^2}, moved by D: losses D(D - 2x)/(2 sigma^2).

    The table ends 16 + 48/sqrt(copies) sigma out: at delta >= 1e-300 the tilt moves a step's mean by 38/sqrt(copies)
    sigma at most, and the aliases ask for tilts 8/sqrt(copies) sigma further. What is cut is an error term."""
    d = int(sensitivity)
    last = math.ceil((16 + 48 / math.sqrt(copies)) * sigma) + d + 2
    x = np.arange(last, -last - 1, -1)
    square = -0.5 * (x / sigma) ** 2
    seen = square[square > -60]  # what is left out is below 1e-25 of the sum
    log_mass = square - math.log(math.fsum(np.exp(seen).tolist()))
    error = _rounding(log_mass) + 4 * U * np.abs(square)
    return LatticeLaw(Fraction(d, 2) / Fraction(sigma) ** 2, 0.0, d - 2 * x, log_mass, error, True)


def of_masses(unit: float, offset: float, places: np.ndarray, num: np.ndarray, rel, d_loss: float) -> LatticeLaw:
    """A law given by its masses, each within `rel` relative, and losses, each within d_loss."""
    log_mass = np.log(num)
    return LatticeLaw(
        Fraction(unit), 0.0, places, log_mass, rel + 2 * U * np.abs(log_mass), False, Fraction(offset), d_loss
    )


def _rounding(log_mass: np.ndarray, size: float = 0.0) -> np.ndarray:
    """Elementary functions within 2u, a few of them; exponents up to `size` and |log_mass| rounded relatively."""
    return U * (12 + 4 * np.abs(log_mass) + 4 * size)


class Lattice(NamedTuple):
    """A run on one lattice, as csrc/line/mixed.c takes it."""

    table: np.ndarray
    points: np.ndarray
    lattice: np.ndarray


def compose(steps) -> Lattice | None:
    """The lattice of (law, count) pairs; None where their units are not commensurate.

    Units that miss a common one by rounding (0.3 and 3 * 0.1) are moved onto it [theory: line.commensurate]: surely the
    total loss moves by no more than the sum of count * mismatch * largest loss, so delta is that of the lattice at eps
    moved by as much."""
    first = steps[0][0]
    ratios = [r for r in (_ratio(law.unit, first.unit) for law, _ in steps) if r is not None]
    if len(ratios) < len(steps):
        return None
    base = math.lcm(*(r.denominator for r in ratios))
    far = [int(np.abs(law.places).max(initial=1)) for law, _ in steps]
    if any(abs(int(r * base)) * size > GRID_MAX for size, r in zip(far, ratios, strict=True)):
        return None
    unit = first.unit / base
    grids = [law.places.astype(np.int64) * int(r * base) for (law, _), r in zip(steps, ratios, strict=True)]
    gap = math.gcd(*(int(np.gcd.reduce(g[1:] - g[:-1])) for g in grids)) or 1
    origin = sum(k * (int(g[0]) + law.offset / unit) for g, (law, k) in zip(grids, steps, strict=True)) / gap
    step, shift = float(unit * gap), float(origin)
    d_step, d_shift = first.d_unit, abs(float(origin - Fraction(shift))) * step
    rows, columns = [], []
    d_place = d_step + 4 * U  # relative, of a place that is a multiple of the step
    for (law, k), grid, ratio in zip(steps, grids, ratios, strict=True):
        loss = float(unit) * grid + float(law.offset)
        mismatch = abs(float(law.unit / (ratio * first.unit) - 1)) + (law.d_unit + d_step if law is not first else 0.0)
        d_shift += k * (mismatch * float(np.abs(loss).max()) + law.d_loss)
        error = law.d_loss + (np.abs(loss) + abs(float(law.offset))) * (d_place + mismatch)
        columns.append([(grid - grid[0]) // gap, loss, law.log_mass, error, law.d_log_mass])
        rows.append([_core.LOG_CONCAVE if law.log_concave else _core.POINTS, k, 0, 0, 0, grid.size, 0])
    points = np.concatenate([np.array(c, dtype=float) for c in columns], axis=1)
    lattice = np.array([step, float(unit * gap - Fraction(step)), d_step, shift, d_shift])
    return Lattice(np.array(rows, dtype=float), points, lattice)


def _ratio(unit: Fraction, base: Fraction) -> Fraction | None:
    exact = unit / base
    near = exact.limit_denominator(10**4)
    return near if near and abs(exact / near - 1) <= MATCH else None


def point(run: Lattice, eps: float, rtol: float = contour.RTOL, *, lines: Lines | None = None) -> Point | None:
    """A certified delta(eps), or None. lines: those of other eps, where they are kept."""
    answer = asked(lines, eps, lambda: _call(1, run, eps, rtol, lines))
    return answer and answer.certified("contour")


def root(run: Lattice, log_delta: float, rtol: float = contour.RTOL) -> Root | None:
    """A certified eps(delta), or None."""
    answer = _call(0, run, log_delta, rtol)
    return answer and answer.certified("contour")


def _call(have_eps: int, run: Lattice, at: float, rtol: float, lines: Lines | None = None):
    size = _core.mixed_work(len(run.table), run.points.shape[1], 0, NODES)
    given = run.table, run.points, run.lattice, have_eps, at, rtol, contour.margin(rtol), 0.0, NODES, np.zeros(2)
    answer = lines.place(size, *given) if lines is not None else scratch.lend(size, _core.mixed_ask, *given)
    return answer if answer.status <= _core.LOOSE else None
