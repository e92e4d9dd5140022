"""k exponential mechanisms, each chosen after seeing the results of those before it: their optimal curve between two
curves.

With x = e^g and D_0 = (1 - x)_+, the largest curve of k adaptive steps of range e is [theory: range.recursion]
    D_{j+1}(g) = max_{0 <= s <= e} p_s D_j(g - s) + (1 - p_s) D_j(g - s + e),  p_s = (1 - e^{s-e})/(1 - e^-e),
convex in x, its own mirror image, and among other steps of any adaptive run it may stand for the k steps wherever they
come [theory: range.interleaving]. Both sides are computed at g = i h, h = e/m, i >= 0; for i < 0 D(-g) = 1 - e^-g +
e^-g D(g). What happens between lattice points: [theory: range.between].

Below. Only s = a h: the exact value, at every point of the lattice, of the best of the runs whose every s is on it.
That is a curve E <= D_k, convex in x, and between two lattice points lies at most (w/4)(right slope - left slope) below
its chord, w the length of the cell in x and the slopes those of the chords of the cells next to it. Points that much
lower, joined, lie below E. Above. U_j, chords between points above D_j, and the maximum over all s: csrc/curve/ranged.c
computes both. Rounding. All sums are of positive terms, a few u each in k steps: 16(k + 8)u in all; slopes and
intercepts enter errors only.

Steps of different ranges, in a known order: the operators in turn, the last step's first, on lattices on which all
ranges are multiples of h, rounded up above and down below."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _core, scratch
from ..bound import DomainError
from ..outward import UP, U
from .allocation import AllocationOfSeveral
from .given import FromCurve
from .mechanism import Mechanism, Run, compose, count
from .ranged import BoundedRange, bounded_range
from .replacement import WithReplacement

K_MAX = 2048
LOSS_MAX = 300.0
"""Largest k eps0."""

LATTICE = 13_300
FINEST = 512
"""Points of the lattice for all steps, and at most for the smallest range."""

FINE = 2000
"""Fewer points than these are met with the bound by pairs."""

ROOM = 1e-12
"""Relative room for a few operations in double precision."""


@dataclass(frozen=True, slots=True)
class TopK(Mechanism):
    """k adaptive steps of range eps0, or of the ranges in eps0; see `top_k`. It stands for two pairs, one below and one
    above."""

    eps0: float | tuple[float, ...]
    k: int
    if not TYPE_CHECKING:
        open = True

    @property
    def ranges(self) -> tuple[float, ...]:
        """Of the steps as they run."""
        return self.eps0 if isinstance(self.eps0, tuple) else (self.eps0,) * self.k


def top_k(eps0: float | Sequence[float], k: int | None = None) -> Mechanism:
    """k exponential mechanisms of range `eps0` each, every one chosen after seeing the results before it: top-k by
    peeling.

    Its curve is the largest of any such k steps, D_{j+1}(g) = max_s p_s D_j(g - s) + (1 - p_s) D_j(g - s + eps0),
    p_s = (1 - e^{s-eps0})/(1 - e^-eps0), s in [0, eps0], D_0 = (1 - e^g)_+, enclosed from both sides. In a run of other
    steps it bounds every interleaving with them, adaptive ones included. It is smaller than that of
    `bounded_range(eps0) * k`, since no k steps are the worst at every eps at once.

    Parameters
    ----------
    eps0 : float or sequence of float
        In nats, as in `bounded_range`; k eps0 at most 300. A sequence: the ranges of the steps in the order in which
        they run, which matters; in no known order add them up, ``hs.top_k(0.1, 50) + hs.top_k(0.2, 20)``.
    k : int
        1 to 2048; one step is `bounded_range(eps0)`. Not needed for a sequence.

    Returns
    -------
    Mechanism
        For `delta`, `log_delta` and `epsilon`, alone or composed, under the adjacency for which `eps0` holds. It has no
        pair of its own: Renyi curves and samples of it are refused.

    Raises
    ------
    DomainError
        If an argument is not a number in its range.

    References
    ----------
    [DDR20] for one step; docs/theory/ranged.md for the recursion, its proof, the interleaving and runs of several.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.epsilon(hs.top_k(0.5, 10), 1e-6):.3f}"    # of pairs 3.8134
    '[3.579, 3.580]'
    """
    if isinstance(eps0, Sequence | np.ndarray) and not isinstance(eps0, str | bytes):
        ranges = tuple(bounded_range(each).eps0 for each in eps0)
        if not 1 <= len(ranges) <= K_MAX or k not in (None, len(ranges)):
            raise DomainError(f"eps0 must hold 1 to {K_MAX} ranges, as many as k says, got {len(ranges)} and k={k!r}")
        least, k = ranges[0], len(ranges)
    else:
        least, k = bounded_range(eps0).eps0, count("k", k, 1, K_MAX)  # type: ignore[arg-type]  # bytes are refused
        ranges = (least,) * k
    if k == 1:
        return BoundedRange(least)
    if not math.fsum(ranges) <= LOSS_MAX:
        raise DomainError(
            f"the ranges must sum to at most {LOSS_MAX:g}, got k={k}, eps0={eps0!r}: add up bounded_range(eps0) * k"
        )
    return TopK(least if len(set(ranges)) == 1 else ranges, k)


BETWEEN: dict[type[Mechanism], str] = {
    TopK: "top_k",
    AllocationOfSeveral: "random_allocation",
    WithReplacement: "with_replacement",
}
"""Steps that are known between two pairs, by name."""

Parts = list[tuple[Mechanism, int]]


class Enclosure(NamedTuple):
    """Runs below and above one that holds steps known between two pairs; and one whose curve of add_remove lies
    below."""

    below: tuple[Run, ...]
    above: tuple[Run, ...]
    attained: Run | None = None


def enclosed(run: Run) -> Enclosure | None:
    """What encloses a run that has steps known between two pairs; None where it has none."""
    return _enclosed(run) if any(type(step) in BETWEEN for step, _ in run.parts) else None


@functools.lru_cache(8)
def _enclosed(run: Run) -> Enclosure:
    """Kept, for these runs keep the laws of their steps [theory: range.interleaving, range.several,
    allocation.blocks, allocation.seen, pair.with-replacement]."""
    below: list[Parts] = [[], []]
    above: list[Parts] = [[], []]
    for step, k in run.parts:
        lows: list[Parts] = [[(step, k)], [(step, k)]]
        highs = lows
        if isinstance(step, TopK):
            low, high = curves(step)
            lows, highs = [[(low, k)], [(low, k)]], [[(high, k)], [(BoundedRange(e), k) for e in step.ranges]]
        elif isinstance(step, AllocationOfSeveral):
            lows, highs = [[(seen, k)] for seen in step.below()], [[(part, n * k) for part, n in step.above()]] * 2
        elif isinstance(step, WithReplacement):
            one, two = step.above()[0], step.above()[-1]
            lows, highs = [[(step.below(), k)]] * 2, [[(one, k)], [(two, k)]]
        for i in (0, 1):
            below[i] += lows[i]
            above[i] += highs[i]
    low_runs, high_runs = (tuple(dict.fromkeys(compose(*parts) for parts in side)) for side in (below, above))
    drawn = [(step, k) for step, k in run.parts if isinstance(step, WithReplacement)]
    attained = compose(*((step.attained(), k) for step, k in drawn)) if len(drawn) == len(run.parts) else None
    return Enclosure(low_runs, high_runs, attained)


class Polygon(NamedTuple):
    """Points (eps >= 0, delta), the last delta 0, joined by chords in e^eps."""

    eps: np.ndarray
    delta: np.ndarray

    def curve(self) -> FromCurve:
        """The worst pair that has it."""
        return FromCurve(tuple(self.eps.tolist()), tuple(self.delta.tolist()), True)

    def at(self, eps: float, side: int) -> float:
        """Its delta at any eps, rounded to the side of sign `side`."""
        if eps < 0:  # [theory: pair.reversal]
            own = self.at(-eps, side)
            return min((-math.expm1(eps) + math.exp(eps) * own) * (1 + side * ROOM), 1.0)
        i = int(np.searchsorted(self.eps, eps, side="right")) - 1
        if i < 0 or i + 1 >= self.eps.size:
            return 0.0 if i >= 0 else 1.0 if side > 0 else 0.0
        x, e, d = eps - self.eps[i], self.eps[i + 1] - self.eps[i], self.delta[i : i + 2]
        part = min(max(math.expm1(x) / math.expm1(e) - side * ROOM, 0.0), 1.0)
        return min(float((d[0] * (1 - part) + d[1] * part) * (1 + side * ROOM)), 1.0)

    def root(self, delta: float, side: int) -> float:
        """The least eps >= 0 with at most this delta, rounded to the side of sign `side`."""
        i = int(np.searchsorted(-self.delta, -delta))  # the first point with delta or less
        if not i:
            return 0.0
        e, drop = self.eps[i] - self.eps[i - 1], self.delta[i - 1] - self.delta[i]
        part = min(max((self.delta[i - 1] - delta) / drop + side * ROOM, 0.0), 1.0)
        return max(0.0, float((self.eps[i - 1] + math.log1p(part * math.expm1(e))) * (1 + side * ROOM)))


def alone(run: Run, at: float, *, roots: bool, log: bool) -> tuple[float, float] | None:
    """Lower and upper end of the query of a run that is one `top_k` on a fine lattice; None of others."""
    step = run.parts[0][0] if len(run.parts) == 1 and run.parts[0][1] == 1 else None
    if not isinstance(step, TopK) or polygons(step)[0].eps.size < FINE:
        return None
    ends = [(p.root if roots else p.at)(at, side) for p, side in zip(polygons(step), (-1, 1), strict=True)]
    if log:
        ends = [
            math.log(end) * (1 - side * 4 * U) if end else -math.inf for end, side in zip(ends, (-1, 1), strict=True)
        ]
    return ends[0], max(ends)


@functools.lru_cache(32)
def polygons(step: TopK) -> tuple[Polygon, Polygon]:
    """Points of curves below and above the optimal one."""
    ranges = np.array(step.ranges[::-1])
    m = _places(ranges)
    ends = []
    for above in (0, 1):
        h = float((ranges / m).max() * UP if above else (ranges / m).min() / UP)
        work = _core.ranged_work(int(m.sum()) + 1, int(m.max()))
        side = scratch.lend(work, _core.ranged_curve, m, h, above)  # [theory: range.recursion, range.between]
        slack = (16 * (step.k + 8) + 8 * float(ranges.sum())) * U
        g = h * np.arange(side.size)
        ends.append(_upper(side * (1 + slack), g) if above else _lower(side * (1 - slack), g))
    return ends[0], ends[1]


@functools.lru_cache(32)
def curves(step: TopK) -> tuple[FromCurve, FromCurve]:
    """The same as the worst pairs that have these curves."""
    below, above = polygons(step)
    return below.curve(), above.curve()


def _places(ranges: np.ndarray) -> np.ndarray:
    """Multiples of one h for all ranges: the lattice, among those fine enough, that rounds them least."""
    least = ranges.min()
    fine = int(min(FINEST, max(8, LATTICE * least / ranges.sum())))
    if (ranges == least).all():
        return np.full(ranges.size, fine, np.int64)
    most = max(8, (2 * fine) // 3)
    tried = np.rint(np.multiply.outer(np.arange(most, fine + 1), np.unique(ranges)) / least)
    spread = (tried / np.unique(ranges)).max(axis=1) / (tried / np.unique(ranges)).min(axis=1)
    best = most + int(np.flatnonzero(spread <= spread.min() * (1 + 1e-12))[-1])
    return np.rint(best * ranges / least).astype(np.int64)


def _mirrored(side: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The curve at the negative points `left` and from 0 on, where it is `side`."""
    head = np.concatenate([side, np.zeros(left.size + 1)])[left.size : 0 : -1]
    return np.concatenate([-np.expm1(left) + np.exp(left) * head, side])


def _upper(high: np.ndarray, g: np.ndarray) -> Polygon:
    """Points moved to the right."""
    delta = np.minimum.accumulate(np.minimum(high, 1.0))
    last = int(np.flatnonzero(delta == 0)[0])
    at = np.nextafter(g * UP, np.inf)
    at[0] = 0.0
    return Polygon(at[: last + 1], delta[: last + 1])


def _lower(low: np.ndarray, g: np.ndarray) -> Polygon:
    """Points at g >= 0 moved down by what the cells beside them bend, and to the left; 0 from where they are not known
    to be above 0. Their mirror images are joined by the mirror images of their chords."""
    at = np.concatenate([-g[1:2], g])
    value = _mirrored(low, at[:1])
    width = np.diff(np.exp(at))
    slope = np.concatenate([np.diff(value) / width, [0.0]])
    bend = (
        0.25 * width[1:] * (np.maximum(slope[2:] - slope[:-2], 0.0) + 1e-9 * (np.abs(slope[2:]) + np.abs(slope[:-2])))
    )
    value = (1 - 64 * U) * low - np.maximum(np.concatenate([bend, [0.0]]), np.concatenate([[0.0], bend]))
    sure = int(np.argmax(np.append(value, 0.0) <= 0))
    value = value[: max(sure, 1)]
    value[-1] = 0.0
    return Polygon((g - 8 * U * g)[: value.size], value)
