"""Losses that were sampled beside steps that are known: delta with a failure probability, never certified.

delta(eps) = E delta_B(eps - s) over losses s of the sampled mechanism under its own num, delta_B the curve of the other
steps in the same direction [theory: sampled.mean]. The mean of n values in [0, 1] gives an interval by the
Chernoff-Hoeffding inequality [theory: sampled.interval].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import query
from .arguments import one_of, respelled
from .bound import Bound, Budget, DomainError
from .outward import UP, U
from .what.mechanism import as_run, within
from .what.pair import ADJACENCIES
from .what.vectors import reals, require

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

    from .types import Adjacency, Numbers, Ran

POINTS = 4096
"""Points of the other steps' curve, between which chords stand for it."""


@respelled(epsilon="eps")
def monte_carlo(
    losses: Numbers,
    eps: float,
    *,
    run: Ran | None = None,
    direction: Literal["remove", "add"] = "remove",
    failure: float = 1e-9,
    adjacency: Adjacency = "add_remove",
) -> Bound[float]:
    """delta(eps) of a mechanism of which only losses can be sampled, composed with the steps of `run`, in one
    direction.

    Parameters
    ----------
    losses : array_like
        Independent samples of log(num/den) under num of that direction; inf where den is 0. Those of matrix mechanisms
        come from `draw_balls_and_bins` and `draw_min_separation`.
    eps : float
        Finite, in nats.
    run : Run or Mechanism, optional
        Other steps, whose certified curve is averaged at eps - loss. They may be chosen after seeing the sampled
        mechanism's output, and the other way round: their pair dominates them.
    direction : "remove" or "add"
        Which law is num, of the samples and of `run` alike. The larger of both directions is bounded by asking each
        with half of `failure`.
    failure : float, default 1e-9
        Probability, over the samples, with which the interval may miss; 1e-300 to 0.5.
    adjacency : "add_remove", "replace_one" or "zero_out"
        Of `run`.

    Returns
    -------
    Bound
        With `certified` False: lower <= delta(eps) <= upper with probability at least 1 - `failure`, provided that the
        samples are what they are said to be. `note` says so. `estimate` is their mean.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    AccuracyError
        If the curve of `run` cannot be certified.

    Notes
    -----
    Number of samples, direction, eps and `run` must not be chosen by looking at the samples.

    References
    ----------
    docs/theory/sampled.md; [Hoe63] for the interval.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import numpy as np
    >>> losses = np.random.default_rng(7).normal(0.5, 1.0, 100_000)           # of gaussian(1.0)
    >>> b = hs.monte_carlo(losses, 1.0, run=hs.gaussian(2.0))
    >>> exact = hs.delta(hs.gaussian(1.0) + hs.gaussian(2.0), 1.0)
    >>> b.lower < exact.lower and exact.upper < b.upper < 1.05 * exact.upper, b.certified
    (True, False)
    """
    one_of("direction", direction, ("remove", "add"))
    one_of("adjacency", adjacency, ADJACENCIES)
    s = reals("losses", losses)
    if s.ndim != 1 or not s.size:
        raise DomainError(f"losses must be one-dimensional and not empty, got an array of shape {s.shape}")
    require("losses", s, s > -math.inf, "numbers or inf")
    eps = within("eps", eps, -math.inf, math.inf, "()")
    failure = within("failure", failure, 1e-300, 0.5)
    at = eps - s
    if run is None:
        low = high = -np.expm1(np.minimum(at, 0.0))
    else:
        # [theory: sampled.mean]
        low, high = _averaged(run, at, {"adjacency": adjacency, "direction": direction})
    room = math.log(2 / failure) / s.size * (1 + 8 * U)
    mean = float(0.5 * (low.mean() + high.mean()))
    lower = _end(max(0.0, float(low.mean()) * (1 - 1e-12)), room, 0.0)
    upper = _end(min(1.0, float(high.mean()) * (1 + 1e-12)), room, 1.0)
    note = f"holds with probability 1 - {failure:g} over {s.size} samples; not certified"
    budget = Budget({"sampling": upper - lower}, "delta")
    return Bound(lower, min(max(mean, lower), upper), upper, "monte_carlo", False, budget, note)


def _averaged(run: Ran, at: NDArray[np.float64], options: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of delta of `run` at every `at`: 1 at -inf; between points of a grid the chord in e^eps from
    above [theory: pair.curve], the next point from below."""
    ran = as_run(run)
    finite = np.clip(at[at > -math.inf], -600.0, 600.0)
    if not finite.size:
        return np.ones(at.size), np.ones(at.size)
    first, last = float(finite.min()), float(finite.max())
    wide = max(last - first, 1e-9 * (1 + abs(last)))
    spread = np.quantile(finite, np.linspace(0.0, 1.0, POINTS // 2))
    grid = np.unique(np.r_[np.linspace(first - 1e-6 * wide, last + 1e-6 * wide, POINTS // 2), spread])
    found = query.delta(ran, grid, **options)
    below, above = np.asarray(found.lower), np.asarray(found.upper)
    i = np.clip(np.searchsorted(grid, np.clip(at, -600.0, 600.0), side="right") - 1, 0, grid.size - 2)
    with np.errstate(over="ignore", invalid="ignore"):
        part = np.expm1(np.clip(at, -600.0, 600.0) - grid[i]) / np.expm1(grid[i + 1] - grid[i])
    part = np.clip(part * (1 - 1e-9) - 1e-12, 0.0, 1.0)
    high = above[i] + (above[i + 1] - above[i]) * part
    low = below[i + 1]
    certain = at == -math.inf
    far = at > 600.0
    return np.where(certain, 1.0, np.where(far, 0.0, low)), np.where(certain, 1.0, high * UP)


def _end(mean: float, room: float, side: float) -> float:
    """The last x from `mean` towards `side` with KL(mean || x) <= room, rounded outward [theory: sampled.interval]."""
    inside, outside = mean, side
    for _ in range(200):
        x = 0.5 * (inside + outside)
        inside, outside = (x, outside) if _divergence(mean, x) <= room else (inside, x)
    return outside


def _divergence(p: float, x: float) -> float:
    """KL of coins of chance p and x."""
    first = p * math.log(p / x) if p else 0.0
    return max(first + ((1 - p) * (math.log1p(-p) - math.log1p(-x)) if p < 1 else 0.0), 0.0) if 0 < x < 1 else math.inf
