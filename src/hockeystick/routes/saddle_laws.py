"""Route `saddlepoint` for any run of losses (loss.py): the same interval and estimates on laws of finitely many losses.

Steps whose losses are atoms go to csrc/clt/saddle_atoms.c as they are. Where some step has a density, the interval
comes from the two lattice laws of dots.py, one above and one below the run, and the estimate from quadrature nodes
[theory: saddle.lattice]:
  D_lower(eps) + inf_lower <= delta(eps) <= D_upper(eps - radius) + inf_upper,
D the finite part of the curve of either law. An infinite loss is left out of D; its probability is added back.

Answers are those of routes/saddlepoint.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..answers import Point, Root, Saddle
from ..bound import AccuracyError
from ..grid.cells import Grid
from ..grid.dots import discretise, mesh, on_atoms, plan
from ..outward import DOWN, UP, U, log_of, log_slack, log_sum
from ..what.law import WELL_KNOWN
from ..what.loss import Atoms, Loss, log_finite
from .walls import rest, seen, wall_upper

RTOL = 1e-3
"""What the lattice may add to the width of delta: small against a Berry-Esseen interval."""

LATTICE_TILT = 0.1
"""Largest (lattice step) x tilt at which an estimate that takes the law for smooth is trusted: its error is the square
/ 24."""

UNTRUSTED = 1.0
NODE_TAIL = 1e-60

Parts = tuple[tuple[Loss, int], ...]


class _Run(NamedTuple):
    """Steps of finitely many losses, as csrc/clt/saddle_atoms.c takes them; exact: the steps themselves, not nodes of
    them."""

    first: np.ndarray
    loss: np.ndarray
    num: np.ndarray
    k: np.ndarray
    errors: np.ndarray
    exact: bool

    def ask(self, have_eps: int, value: float, kind: int = 0) -> Saddle | None:
        """What is found of log D or of eps, if anything."""
        if not abs(value) < math.inf or not np.diff(self.first).all():  # or a step all of whose losses are infinite
            return None
        answer = _core.saddle_atoms(*self[:5], have_eps, value, kind)
        return answer if answer.status == _core.OK else None


def _run(steps, counts, exact: bool) -> _Run:
    """steps: (losses, masses, relative error of masses, error of losses, mass of an infinite loss)."""
    losses, masses, *errors = zip(*steps, strict=True)
    first = np.cumsum([0, *(x.size for x in losses)], dtype=np.int64)
    return _Run(
        first, np.concatenate(losses), np.concatenate(masses), np.array(counts, dtype=float), np.array(errors), exact
    )


def _middle(parts: Parts) -> _Run:
    """The run's own atoms where it has nothing else, else quadrature nodes."""
    exact = all(not loss.smooth and loss.atoms() is not None for loss, _ in parts)
    steps = []
    for loss, _ in parts:
        atoms = loss.atoms() if exact else None
        if atoms is not None:
            at, num, _, rel, edge, absolute = atoms
            held = num > absolute / WELL_KNOWN
            rel = max(np.max(rel, initial=0.0) + absolute / num[held].min(initial=1.0), loss.mass_error)
            steps.append((at[held], num[held], rel, np.max(edge, initial=0.0), loss.mass_inf))
        else:
            at, log_den = loss.nodes(NODE_TAIL)
            num = np.exp(at + log_den)
            steps.append((at, num, U, 0.0, 1 - float(num.sum())))
    return _run(steps, [k for _, k in parts], exact)


def _of_grid(grid: Grid) -> _Run:
    """The finite masses of a lattice run, as they are; losses without the run's shift."""
    steps = []
    for i, j0 in enumerate(grid.steps.j0):
        p = grid.steps.masses(i)
        held = np.flatnonzero(p > 0)
        steps.append(((j0 + held) * grid.dx, p[held], 4 * U, 0.0, 1 - math.fsum(p)))
    return _run(steps, grid.steps.k, True)


def _infinite(parts: Parts) -> tuple[float, float]:
    """Bounds of the probability that some loss is infinite; the upper one counts outcomes that a lattice left out."""
    lost = sum(k * _left_out(loss.atoms()) for loss, k in parts if not loss.smooth)
    upper, lower = (-math.expm1(x) for x in log_finite(parts))
    return lower * DOWN, min(1.0, upper * UP + lost)


def _left_out(atoms: Atoms | None) -> float:
    """Mass that `_middle` leaves out, of outcomes whose mass is not well known: below `absolute` each time
    1/WELL_KNOWN."""
    return atoms.absolute * (1 + atoms.num.size / WELL_KNOWN) * 1.01 if atoms else 0.0


def _lattices(parts: Parts, tilt: float, log_delta: float):
    """The lattice laws above and below, or None where they would be too long."""
    share = 0.1 * RTOL / sum(k for _, k in parts)
    mass = share * math.exp(max(log_delta, -650.0))
    try:
        made = plan(parts, mass)
        return discretise(made, on_atoms(made.parts, mesh(made, tilt, RTOL)), tilt, share, mass)
    except AccuracyError:
        return None


def _trust(parts: Parts, tilt: float, skewness: float) -> float:
    """The skewness, or what stands for it on a lattice that the formulas would have to see."""
    steps = [loss.lattice() for loss, _ in parts if not loss.smooth]
    seen = [found.step * tilt for found in steps if found is not None]
    return max(skewness, UNTRUSTED) if len(seen) == len(parts) and max(seen) > LATTICE_TILT else skewness


def point(parts: Parts, eps: float, kind: int = 0):
    """A certified point of the curve, or None."""
    middle = _middle(parts)
    found = middle.ask(1, eps, kind)
    if found is None:
        return None
    low, mid, high = found.lower, found.estimate, found.upper
    inf_lower, inf_upper = _infinite(parts)
    if not middle.exact:
        laws = _lattices(parts, found.tilt, mid)
        if laws is None:
            return None
        above = _of_grid(laws.upper).ask(1, eps - _reach(laws.upper, eps))
        below = _of_grid(laws.lower).ask(1, eps - laws.lower.shift + _slack(laws.lower, eps))
        if above is None:
            return None
        low, high = below.lower if below else -math.inf, above.upper
        inf_lower, inf_upper = laws.inf_lower, laws.inf_upper  # [theory: saddle.lattice]
    low, high = log_sum(log_of(inf_lower), low, -1), min(0.0, log_sum(log_of(inf_upper), high))
    mid = log_sum(log_of(0.5 * (inf_lower + inf_upper)), mid if math.isnan(found.raw) else found.raw, 0)
    return Point(low, mid, high, (*found.terms, _trust(parts, found.tilt, found.skewness)), "saddlepoint")


def cgf(parts: Parts, t: float):
    """(K(t), bound of its error) of a run of finitely many losses, the infinite one left out; None where out of
    range."""
    status, value, error = _core.saddle_atoms_cgf(*_middle(parts)[:5], t)
    return None if status else (value, error)


def estimate(parts: Parts, eps: float, kind: int):
    """(log delta or nan, number of the formula used, tilt, skewness), or None."""
    answer = _middle(parts).ask(1, eps, kind)
    if answer is None:
        return None
    log_delta = log_sum(log_of(0.5 * sum(_infinite(parts))), answer.raw, 0)
    return log_delta, answer.kind, answer.tilt, _trust(parts, answer.tilt, answer.skewness)


def root(parts: Parts, delta: float, kind: int = 0):
    """A certified root, or None; infinite where delta is below the probability of an infinite loss."""
    inf_lower, inf_upper = _infinite(parts)
    least, most = rest(parts, delta)
    if most < 0:
        return Root(math.inf, math.inf, math.inf, (0.0,) * 4, "saddlepoint")
    middle = _middle(parts)
    visible, largest = seen(least, most, delta)
    found = middle.ask(0, math.log(max(0.5 * (least + most), 0.5 * largest)), kind)
    if found is None:
        return None
    if middle.exact:
        below, above = (middle.ask(0, _log_rest(delta, inf, sign)) for inf, sign in ((inf_lower, 1), (inf_upper, -1)))
        low, high = below.lower if below else -math.inf, above.upper if above else math.inf
    else:
        laws = _lattices(parts, found.tilt, math.log(delta))
        if laws is None:
            return None
        below = _of_grid(laws.lower).ask(0, _log_rest(delta, laws.inf_lower, 1))
        above = _of_grid(laws.upper).ask(0, _log_rest(delta, laws.inf_upper, -1))
        low = below.lower + laws.lower.shift - _slack(laws.lower, below.lower) if below else -math.inf
        high = above.upper + _reach(laws.upper, above.upper) if above else math.inf
    high = min(high, wall_upper(parts, least))
    if not high < math.inf and visible:
        return None
    low, high = max(0.0, low), max(0.0, high)
    return Root(low, found.raw, high, (*found.terms, _trust(parts, found.tilt, found.skewness)), "saddlepoint")


def _slack(grid: Grid, eps: float) -> float:
    """What moving eps by the shift may lose to rounding, and more, as a radius is never so small."""
    return 1e-12 * (abs(eps) + abs(grid.shift) + grid.radius)


def _reach(grid: Grid, eps: float) -> float:
    return grid.shift + grid.radius + _slack(grid, eps)


def _log_rest(delta: float, inf: float, sign: int) -> float:
    """log(delta - inf), rounded towards `sign`; -inf where nothing is left."""
    if not delta > inf:
        return -math.inf
    value = math.log(delta - inf)
    return value + sign * log_slack(value, inf / (delta - inf))
