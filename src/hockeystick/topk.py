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
lower, joined, lie below E. Above. U_j, chords between points above D_j. For s in a cell [ah, (a+1)h] of the lattice the
bracket is concave in s, C - c1 e^-s - c2 e^s, so at most max of both ends + (h^2/8) max (c1 e^-s + c2 e^s), where with
slope B_t and intercept A_t of the chord of cell t, c1 e^-s + c2 e^s <= [x_{t+1} (B_{t+m} - B_t) + A_t - A_{t+m}]/(1 -
e^-e), t the cell of g - s. Rounding. All sums are of positive terms, a few u each in k steps: 16(k + 8)u in all; slopes
and intercepts enter errors only."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .allocation import AllocationOfSeveral
from .bound import DomainError
from .given import FromCurve
from .mechanism import Mechanism, Run, compose, count
from .outward import UP, U
from .ranged import BoundedRange, bounded_range

K_MAX = 2048
LOSS_MAX = 300.0
"""Largest k eps0."""

LATTICE = 17_000
FINEST = 512
"""Points of the lattice for k eps0, and at most for eps0."""


@dataclass(frozen=True, slots=True)
class TopK(Mechanism):
    """k adaptive steps of range eps0; see `top_k`. It stands for two pairs, one below and one above."""

    eps0: float
    k: int
    if not TYPE_CHECKING:
        open = True


def top_k(eps0: float, k: int) -> Mechanism:
    """k exponential mechanisms of range `eps0` each, every one chosen after seeing the results before it: top-k by
    peeling.

    Its curve is the largest of any such k steps, D_{j+1}(g) = max_s p_s D_j(g - s) + (1 - p_s) D_j(g - s + eps0),
    p_s = (1 - e^{s-eps0})/(1 - e^-eps0), s in [0, eps0], D_0 = (1 - e^g)_+, enclosed from both sides. In a run of other
    steps it bounds every interleaving with them, adaptive ones included. It is smaller than that of
    `bounded_range(eps0) * k`, since no k steps are the worst at every eps at once.

    Parameters
    ----------
    eps0 : float
        In nats, as in `bounded_range`; k eps0 at most 300.
    k : int
        1 to 2048; one step is `bounded_range(eps0)`.

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
    [DDR20] for one step; docs/theory/ranged.md for the recursion, its proof and the interleaving.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.epsilon(hs.top_k(0.5, 10), 1e-6):.3f}"    # of pairs 3.8134
    '[3.579, 3.580]'
    """
    eps0, k = bounded_range(eps0).eps0, count("k", k, 1, K_MAX)
    if k == 1:
        return BoundedRange(eps0)
    if not k * eps0 <= LOSS_MAX:
        raise DomainError(f"k eps0 must be at most {LOSS_MAX:g}, got k={k}, eps0={eps0!r}: use bounded_range(eps0) * k")
    return TopK(eps0, k)


Parts = list[tuple[Mechanism, int]]


class Ends(NamedTuple):
    """Runs below and above one that holds steps known between two pairs, and another above it."""

    below: tuple[Run, ...]
    above: tuple[Run, ...]


def enclosed(run: Run) -> Ends | None:
    """What encloses a run that has `top_k` or several participations; None where it has none."""
    return _enclosed(run) if any(isinstance(step, TopK | AllocationOfSeveral) for step, _ in run.parts) else None


@functools.lru_cache(8)
def _enclosed(run: Run) -> Ends:
    """Kept, for these runs keep the laws of their steps [theory: range.interleaving, allocation.blocks,
    allocation.seen]."""
    below: list[Parts] = [[], []]
    above: list[Parts] = [[], []]
    for step, k in run.parts:
        lows: list[Parts] = [[(step, k)], [(step, k)]]
        highs = lows
        if isinstance(step, TopK):
            low, high = curves(step)
            lows, highs = [[(low, k)], [(low, k)]], [[(high, k)], [(BoundedRange(step.eps0), k * step.k)]]
        elif isinstance(step, AllocationOfSeveral):
            lows, highs = [[(seen, k)] for seen in step.below()], [[(part, n * k) for part, n in step.above()]] * 2
        for i in (0, 1):
            below[i] += lows[i]
            above[i] += highs[i]
    low_runs, high_runs = (tuple(dict.fromkeys(compose(*parts) for parts in side)) for side in (below, above))
    return Ends(low_runs, high_runs)


@functools.lru_cache(32)
def curves(step: TopK) -> tuple[FromCurve, FromCurve]:
    """Curves below and above the optimal one, as the worst pairs that have them."""
    eps0, k = step.eps0, step.k
    m = min(FINEST, max(8, LATTICE // k))
    h = eps0 / m
    a = np.arange(m + 1)
    p = np.expm1((a - m) * h) / math.expm1(-eps0)
    q = np.exp((a - m) * h) * np.expm1(-a * h) / math.expm1(-eps0)
    q[0], p[m] = 0.0, 0.0
    low = high = np.zeros(1)  # D_0 at i >= 0
    at = h * np.arange(-2 * m - 1, k * m + 2 * m + 2)
    x = np.exp(at)
    for j in range(k):
        n = (j + 1) * m + 1  # points i = 0..(j+1)m, beyond which the curve is 0
        low, high = (np.concatenate([side, np.zeros(n + m + m - side.size)]) for side in (low, high))
        below, above = _mirrored(low, at[: 2 * m + 1]), _mirrored(high, at[: 2 * m + 1])
        gap = _gaps(above, x, m, h, eps0)
        best, top = np.zeros(n), np.zeros(n)
        for i in range(m + 1):
            near, far = (slice(f * m + 1 - i, f * m + 1 - i + n) for f in (2, 3))
            np.maximum(best, p[i] * below[near] + q[i] * below[far], out=best)  # [theory: range.recursion]
            np.maximum(top, p[i] * above[near] + q[i] * above[far] + gap[near], out=top)
        low, high = best, np.minimum(top, 1.0)
        high[-1] = 0.0
    slack = (16 * (k + 8) + 8 * k * eps0) * U
    g = h * np.arange(k * m + 1)
    return _lower(low * (1 - slack), g), _upper(high * (1 + slack), g)


def _mirrored(side: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The curve at the negative points `left` and from 0 on, where it is `side`."""
    head = np.concatenate([side, np.zeros(left.size + 1)])[left.size : 0 : -1]
    return np.concatenate([-np.expm1(left) + np.exp(left) * head, side])


def _gaps(above: np.ndarray, x: np.ndarray, m: int, h: float, eps0: float) -> np.ndarray:
    """What the maximum over s in the two cells next to a lattice point may exceed the values at lattice points by."""
    size = above.size
    slope = np.diff(above) / np.diff(x[:size])
    cut = above[:-1] - slope * x[: size - 1]
    slope, cut = (np.concatenate([c, np.zeros(m)]) for c in (slope, cut))
    bend = np.maximum(x[1:size] * (slope[m:] - slope[:-m]), 0.0) + np.maximum(cut[:-m] - cut[m:], 0.0)
    known = 1e-9 * (above[:-1] + x[1:size] * np.abs(slope[:-m]))  # x is within 300u, a width within 1e-10 of itself
    cell = h * h / 8 / -math.expm1(-eps0) * (bend + known)  # [theory: range.between]
    return np.maximum(np.concatenate([cell, [0.0]]), np.concatenate([[0.0], cell]))


def _upper(high: np.ndarray, g: np.ndarray) -> FromCurve:
    """Points moved to the right."""
    delta = np.minimum.accumulate(np.minimum(high, 1.0))
    last = int(np.flatnonzero(delta == 0)[0])
    at = np.nextafter(g * UP, np.inf)
    at[0] = 0.0
    return FromCurve(tuple(at[: last + 1].tolist()), tuple(delta[: last + 1].tolist()), True)


def _lower(low: np.ndarray, g: np.ndarray) -> FromCurve:
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
    return FromCurve(tuple((g - 8 * U * g)[: value.size].tolist()), tuple(value.tolist()), True)
