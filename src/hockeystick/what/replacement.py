"""Batches drawn with replacement: a record may be in one batch several times.

Drawn j of the m times, with the probability w_j that j of m coins of chance 1/n show heads, the record moves the sum by
at most 2j times its norm when its value changes, and so do other records in its places. Two bounds of every curve
follow [theory: pair.with-replacement]: that of a group of m records of twice the sensitivity, each with a coin of its
own; and, with eta = 1 - w_0 and the curve gamma_u of N(u, 1) against N(0, 1), for eps >= 0,
delta(log(1 + eta (e^eps - 1))) <= sum_j w_j gamma_{2j}(eps), its own mirror image. From below: all others contribute
the opposite of what the record does, or nothing.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..bound import DomainError
from ..outward import DOWN, UP
from .groups import SIZE_MAX, group
from .mechanism import Gaussian, Mechanism, count, gaussian, poisson_subsampled

N_MAX, OFTEN = 10**9, 10
"""Records, and the largest mean number of times that one is in a batch."""

LEFT_OUT = 1e-45


@dataclass(frozen=True, slots=True)
class WithReplacement(Mechanism):
    """A Gaussian step on a batch drawn with replacement; see `with_replacement`."""

    base: Gaussian
    dataset_size: int
    batch: int
    sized: ClassVar[bool] = True
    if not TYPE_CHECKING:
        open = True

    @property
    def _twice(self) -> Gaussian:
        return gaussian(self.base.sigma, sensitivity=2 * self.base.sensitivity)

    def below(self) -> Mechanism:
        """A step that is no worse, under replace_one: of a record that is drawn, one draw."""
        return poisson_subsampled(self.base, drawn(self.dataset_size, self.batch) * DOWN)

    def attained(self) -> Mechanism:
        """A step that is no worse, under its own add_remove."""
        if self.batch > SIZE_MAX:
            return poisson_subsampled(self._twice, drawn(self.dataset_size, self.batch) * DOWN)
        return group(poisson_subsampled(self._twice, DOWN / self.dataset_size), self.batch)

    def above(self) -> tuple[Mechanism, ...]:
        """Steps that are no better, under replace_one."""
        if self.batch > SIZE_MAX:
            return (Multiplicities(self),)
        return group(poisson_subsampled(self._twice, UP / self.dataset_size), self.batch), Multiplicities(self)


@dataclass(frozen=True, slots=True)
class Multiplicities(Mechanism):
    """The second bound, as a step: the worst pair below it (inner/replacement.py)."""

    of: WithReplacement


def with_replacement(mechanism: Mechanism, *, dataset_size: int, batch: int) -> Mechanism:
    """A Gaussian step on a batch of `batch` draws from `dataset_size` records, each draw from all of them: with
    replacement.

    A record is in the batch j times with the probability that j of `batch` coins of chance 1/dataset_size show heads,
    and then moves the sum by up to 2 j sensitivities, since it may stand in the places of others. Answers lie between
    what is attained, by data whose other records are as far away as can be, and the least of two proved bounds.

    Parameters
    ----------
    mechanism : Mechanism
        `gaussian(sigma)`; its `sensitivity` is the largest L2 norm of one record's contribution.
    dataset_size : int
        n, from 2; public.
    batch : int
        Draws, from 1 to 10 dataset_size.

    Returns
    -------
    Mechanism
        For `delta`, `log_delta` and `epsilon` under "replace_one", alone or composed, in both directions the same. It
        has no pair of its own: Renyi curves and samples of it are refused.

    Raises
    ------
    DomainError
        If `mechanism` is not Gaussian or an argument is outside its range; on asking under another adjacency.

    References
    ----------
    [BBG18] for the multiplicities; docs/theory/pairs.md, pair.with-replacement, for the proof of both bounds.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.with_replacement(hs.gaussian(20.0), dataset_size=10_000, batch=100)
    >>> print(f"{hs.epsilon(step * 1000, 1e-5, adjacency='replace_one'):.3f}")
    [0.097, 0.102]
    """
    if not isinstance(mechanism, Gaussian):
        raise DomainError(f"with_replacement takes gaussian(sigma), got {mechanism!r}")
    n = count("dataset_size", dataset_size, 2, N_MAX)
    return WithReplacement(mechanism, n, count("batch", batch, 1, OFTEN * n))


def drawn(n: int, m: int) -> float:
    """Probability to be drawn at all, within 8u of itself."""
    return -math.expm1(m * math.log1p(-1 / n))


def chances_upper(n: int, m: int) -> tuple[list[float], float]:
    """Upper ends of w_1, w_2, .. and of what all further ones add up to."""
    found = []
    with decimal.localcontext(decimal.Context(prec=50, Emin=-(10**9), Emax=10**9)):
        w, j = (1 - decimal.Decimal(1) / n) ** m, 0
        while j < m and (w > LEFT_OUT or j < 2 * OFTEN or j < 3 * m / n):
            w, j = w * (m - j) / ((j + 1) * (n - 1)), j + 1
            found.append(float(w) * (1 + 1e-15) + 5e-324)
        rest = float(w) if j < m else 0.0  # from here on they fall by half and more
    return found, rest
