"""Privacy loss distributions of dp_accounting, to and from this library.

To: the certified upper curve on dp_accounting's grid, joined by straight lines in x = e^eps [DGK+22, Thm 3.1]. The true
curve is convex, hence below the lines between points above it, and below the greatest convex minorant of these lines,
which makes all masses positive. From: the masses as a discrete pair.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as dpa_pld

import hockeystick

from .. import arguments, query
from ..bound import DomainError
from ..what.mechanism import Mechanism, as_run, within

POINTS = 2_000_000
PAD = 1e-12
"""Relative: far above the rounding of slopes (differences of neighbours in long double) and of their sums in double."""


def to_dp_accounting_pld(
    run,
    *,
    value_discretization_interval: float = 1e-4,
    tail: float = 1e-15,
    adjacency: str = "add_remove",
    n_threads: int = 1,
):
    """A pessimistic PrivacyLossDistribution of dp_accounting that dominates the run.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    value_discretization_interval : float, default 1e-4
        Step of the grid of losses, 1e-8 to 10.
    tail : float, default 1e-15
        In (0, 0.1): what delta is left beyond the grid, as mass at infinity.
    adjacency, n_threads
        As in `delta`.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Its delta at every eps is at least the run's; at points of the grid at most 1e-11 (relative) above our upper end
        plus what lies beyond the grid.

    Raises
    ------
    DomainError
        If an argument is outside its domain, or the grid would have more than two million points.
    AccuracyError
        As in `delta`.
    """
    dx = within("value_discretization_interval", value_discretization_interval, 1e-8, 10)
    tail = within("tail", tail, 0, 0.1, "()")
    options: dict[str, Any] = {"adjacency": adjacency, "n_threads": n_threads}
    run = as_run(run)
    ends = {
        side: math.ceil(query.epsilon(run, tail, **{**options, "direction": side}).upper / dx) + 1
        for side in ("remove", "add")
    }
    if sum(ends.values()) > POINTS:
        raise DomainError(
            f"the grid would have {sum(ends.values())} points; ask for a larger value_discretization_interval"
        )
    upper = {
        side: query.delta(run, dx * np.arange(end + 1), **{**options, "direction": side}).upper.astype(np.longdouble)
        for side, end in ends.items()
    }
    remove, add = (_pmf(dx, upper[side], upper[other]) for side, other in (("remove", "add"), ("add", "remove")))
    return dpa_pld.PrivacyLossDistribution(remove, add)


def _pmf(dx: float, right: np.ndarray, reverse: np.ndarray):
    """The law of the losses from upper points of the curve at 0, dx, ... and of the reverse curve at the same places.

    delta(-eps) = 1 - e^-eps + e^-eps delta_reverse(eps) continues the curve to the left.
    """
    index = np.arange(1 - reverse.size, right.size)
    x = np.exp(np.longdouble(dx) * index)
    left = x[: reverse.size - 1]
    curve = np.append(1 - left + left * reverse[:0:-1], right)
    curve = np.minimum(curve * (1 + np.longdouble(PAD)), 1)
    kept = _convex(np.append(0, x), np.append(1, curve))
    x, curve = np.append(0, x)[kept], np.append(1, curve)[kept]
    slope = np.append(np.diff(curve) / np.diff(x), 0)
    masses = x[1:] * np.diff(slope)
    probs = np.zeros(index.size)
    probs[kept[1:] - 1] = masses
    return pld_pmf.DensePLDPmf(dx, int(index[0]), probs, float(curve[-1]) * (1 + PAD), pessimistic_estimate=True)


def _convex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Indices of the greatest convex minorant of points in order of x; it does not increase if it ends lowest."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2:]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)


def from_dp_accounting_pld(pld, *, direction: str = "remove") -> Mechanism:
    """One direction of a PrivacyLossDistribution as a step.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Its masses are taken as they are, rounding of whoever made it included.
    direction : "remove" or "add"
        Which of its two laws. The step's REMOVE curve is that law's curve, so ask it with direction="remove"; a
        symmetric distribution has one law, and its step serves both.

    Returns
    -------
    Mechanism
        From `hockeystick.from_pmf`.

    Raises
    ------
    DomainError
        If the arguments are not such, or the masses do not add up to 1.
    """
    if not isinstance(pld, dpa_pld.PrivacyLossDistribution):
        raise DomainError(f"expected a PrivacyLossDistribution of dp_accounting, got {pld!r:.80}")
    arguments.one_of("direction", direction, ("remove", "add"))
    pmf = (pld._pmf_remove if direction == "remove" else pld._pmf_add).to_dense_pmf()
    losses = pmf._discretization * (pmf._lower_loss + np.arange(pmf.size))
    num = np.maximum(pmf._probs, 0.0)  # convolutions by FFT leave tiny negative masses
    den = num * np.exp(-losses)
    # What num gives to +inf, den never gives; what is left of den has a loss of -inf.
    num, den = np.append(num, [pmf._infinity_mass, 0.0]), np.append(den, [0.0, max(0.0, 1 - math.fsum(den))])
    return hockeystick.from_pmf(num.tolist(), den.tolist())
