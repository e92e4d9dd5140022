"""Random allocation that is known between two curves only: k participations in t steps, and any under replace_one.

Above. A k-set drawn uniformly is one step of each of k blocks, the steps cut into blocks at random: given the cut the
participations are independent, and the divergence is convex in the law. By symmetry all cuts have one divergence, that
of k epochs of one participation each, of t//k or t//k + 1 steps.

Below: what a function of the outputs shows.
  Their sum is N(k, t) against N(0, t), in units of sensitivity and sigma.
  Their maximum M has Pr[M <= C] = Phi(C - m)^k Phi(C)^{t-k} against Phi(C)^t. Cells between cuts C are outcomes. Of
  several epochs cuts are placed, in doubles, so that losses are about multiples of one mesh; a cell (n, d) becomes one
  of exactly the loss x a little below its multiple, (d e^x, d) with d e^x <= n. As (n - a d)^+ rises in n, the curve of
  all cells does not rise, nor does that of a product with any other law. Direction "add" is the same with n and d
  exchanged.

replace_one: P1 with a record, P2 with another in its place, Q with a zeroed one, in the same steps.
  Above, for every split eps = x + y and every event, P1 <= e^x Q + delta_remove(x) and Q <= e^y P2 + delta_add(y), by
  the curves of the run with zeroed records: delta(x + y) <= delta_remove(x) + e^x delta_add(y). Also: an observer who
  is told the steps of the record sees k Gaussian steps moved by 2 each.
  Below, opposite contributions: the sum is N(k, t) against N(-k, t)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, fmpq
from scipy.special import log_ndtr

from ..what.allocation import AllocationOfSeveral, RandomAllocation
from ..what.mechanism import Gaussian, Mechanism, Run
from .atoms import Atoms
from .balls import UndecidedError, about, normal_above, rational
from .finite import MAX_DEGREE
from .gauss import Gauss

CELLS = 400
"""Most cells of a maximum."""

FINE = 20_000
"""Places among which cuts are chosen."""


@dataclass(frozen=True, slots=True)
class Moved(Mechanism):
    """A Gaussian mechanism that is moved by the root of `square` of its sensitivities."""

    base: Gaussian
    square: fmpq


@dataclass(frozen=True, slots=True)
class Largest(Mechanism):
    """What an observer of the maximum of an epoch's outputs sees, `count` times."""

    base: Gaussian
    steps: int
    participations: int
    count: int


def encloses(run: Run, adjacency: str) -> bool:
    """Whether the curve of the run is known here between others only."""
    kinds = (AllocationOfSeveral, RandomAllocation) if adjacency == "replace_one" else (AllocationOfSeveral,)
    return any(isinstance(step, kinds) for step, _ in run.parts)


def _changed(run: Run, change: Callable[[Any, int], list[tuple[Mechanism, int]]]) -> Run:
    """The run with others in place of its epochs of random allocation."""
    parts: list[tuple[Mechanism, int]] = []
    for step, n in run.parts:
        parts += change(step, n) if isinstance(step, AllocationOfSeveral | RandomAllocation) else [(step, n)]
    return Run(tuple(parts))


def blocks(run: Run) -> Run:
    """The run with blocks in place of epochs."""

    def change(step, n):
        if isinstance(step, RandomAllocation):
            return [(step, n)]
        size, longer = divmod(step.steps, step.participations)
        both = (size, step.participations - longer), (size + 1, longer)
        return [(step.base if t == 1 else RandomAllocation(step.base, t), n * k) for t, k in both if k]

    return _changed(run, change)


def told(run: Run) -> Run:
    """The run of an observer who is told the steps of the record."""
    return _changed(run, lambda step, n: [(Moved(step.base, fmpq(_parts(step) * _epochs(step))), n)])


def below(run: Run, adjacency: str) -> list[Run]:
    """The run as observers of sums and of maxima see its epochs; one epoch of one participation is known by itself but
    under replace_one, where maxima are of no use."""
    replaced = adjacency == "replace_one"

    def total(step, n):
        if isinstance(step, RandomAllocation) and not replaced:
            return [(step, n)]
        return [(Moved(step.base, fmpq(_parts(step) ** 2 * _epochs(step), step.steps)), n)]

    def largest(step, n):
        if isinstance(step, RandomAllocation):
            return [(step, n)]
        return [(Largest(step.base, step.steps, step.participations, n), n)]

    return [_changed(run, seen) for seen in ((total,) if replaced else (total, largest))]


def _parts(step: AllocationOfSeveral | RandomAllocation) -> int:
    return step.participations if isinstance(step, AllocationOfSeveral) else 1


def _epochs(step: AllocationOfSeveral | RandomAllocation) -> int:
    return step.epochs if isinstance(step, RandomAllocation) else 1


def law(step: Moved | Largest, adjacency: str) -> Gauss | Atoms:
    """The law of an observer, at the working precision."""
    m = arb(rational(step.base.sensitivity) / rational(step.base.sigma))
    if isinstance(step, Largest):
        return Maximum(m, step.participations, step.steps, step.count)
    m *= arb(step.square).sqrt() * (2 if adjacency == "replace_one" else 1)
    return Gauss([(arb(1), [(arb(1), m)], [(arb(1), arb(0))])])


class Maximum(Atoms):
    """Cells of the maximum of an epoch's outputs, of which `count` are composed."""

    def __init__(self, m: arb, k: int, t: int, count: int, add: bool = False):
        self.of = m, k, t, count, add
        cuts, mesh = _cuts(about(m), k, t, count)
        rows = [(arb(0), arb(0)), *(_below(arb(cut), m, k, t) for cut in cuts), (arb(1), arb(1))]
        held: dict[int, tuple[arb, arb]] = {}
        unit, lower = arb(mesh), 1.5 * arb(NEAR)
        for (n0, d0), (n, d) in itertools.pairwise(rows):
            most, own = (d - d0, n - n0) if add else (n - n0, d - d0)
            if not (most > 0 and own > 0):
                raise UndecidedError("a cell of the maximum is not resolved")
            if count == 1:  # nothing is composed: cells as they are
                held[len(held)] = most, own
                continue
            i = math.floor(about((most / own).log() / unit) + NEAR)
            part = own * (unit * (i - lower)).exp()
            if not part <= most:
                raise UndecidedError("a cell of the maximum lies off its multiple")
            before = held.get(i, (arb(0), arb(0)))
            held[i] = before[0] + part, before[1] + own
        super().__init__(held.values(), *((unit, list(held)) if count > 1 else ()))

    def reversed(self) -> Maximum:
        m, k, t, count, add = self.of
        return Maximum(m, k, t, count, not add)

    def top(self) -> None:
        """Not known: the largest loss here is below that of the pair that is judged."""


def _below(cut: arb, m: arb, k: int, t: int) -> tuple[arb, arb]:
    """Pr[M <= C] with the record and without it."""
    free, own = normal_above(-cut), normal_above(m - cut)
    return free ** (t - k) * own**k, free**t


def _cuts(m: float, k: int, t: int, count: int) -> tuple[list[float], float]:
    """Cuts, and the mesh: in doubles, which any choice may be. From the largest outcomes down, every cell reaches as
    far as its loss is a multiple."""
    place = np.linspace(-6.0, 9.0 + m, FINE)
    logs = np.array([k * log_ndtr(place - m) + (t - k) * log_ndtr(place), t * log_ndtr(place)])  # of Pr[M <= C]
    seen = (logs[0] > -30.0) & (np.expm1(logs[0]) < -1e-13) & (np.expm1(logs[1]) < -1e-250)
    place, logs = place[seen], logs[:, seen]
    losses = np.subtract(*_mass(logs[:, :-1], logs[:, 1:]))
    mesh = float(losses.max() - losses.min()) / max(4, min(CELLS, MAX_DEGREE // count))
    cuts, last, end = [float(place[-1])], place.size - 1, logs[:, -1:]
    while last > 2:
        goal = mesh * math.floor(float(losses[last - 2]) / mesh - 1e-3)
        whole = np.subtract(*_mass(logs[:, :last], end))  # the loss of all from a place to the last cut
        last = min(max(int(np.searchsorted(whole, goal)), 1), last - 1)
        part = (goal - whole[last - 1]) / (whole[last] - whole[last - 1])
        cuts.append(float(place[last - 1] + part * (place[last] - place[last - 1])))
        end = logs[:, last - 1 : last] + part * (logs[:, last : last + 1] - logs[:, last - 1 : last])
    return cuts[::-1], mesh


NEAR = 2e-3
"""Part of the mesh within which doubles put losses at their multiples."""


def _mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """About the logarithm of what lies between two places, from those of what lies below them."""
    return high + np.log(-np.expm1(low - high))
