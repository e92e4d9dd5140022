"""Noise levels: which of a few noise multipliers stands for a record at a step, rounded in the safe direction.

A record's charge at a step is set by mu = clipped norm/noise deviation. Levels are spaced uniformly in mu^2 =
1/sigma^2, in which the variance of the loss is about linear; a mu goes up to the next level (less noise than there was:
more noise is a post-processing of less, so the result only gets larger) [theory: individual.noise-levels]. A mu above
the last level has no safe level: it is refused, never clamped."""

from __future__ import annotations

import numpy as np

from ..bound import DomainError
from ..outward import UP
from ..what.mechanism import count, positive
from ..what.vectors import reals, require
from .dpsgd import MU_MIN

SPACINGS = ("variance", "linear")


class NoiseLevels:
    """`levels` noise multipliers for every mu from 0 to `mu_max`.

    Parameters
    ----------
    mu_max : float
        Largest mu of a step: clip/noise deviation, 1/noise multiplier. The last level lies 16u (2e-15, relative) above
        it, u = 2^-53, for a quotient rounded by the caller and for `mu_from_norms`, which rounds the mu of a norm at
        the clip up.
    levels : int, default 32
        1 to 4096.
    spacing : "variance" or "linear"
        Uniform in 1/sigma^2 (the default), or in sigma from 1/mu_max to 16/mu_max, the published choice, which is
        coarser where it matters.

    Raises
    ------
    DomainError
        For arguments outside their domain.

    References
    ----------
    [KTH23], App. D, with the spacing changed and the norms above the last level refused.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick.individual import NoiseLevels
    >>> levels = NoiseLevels(1.0, levels=4)
    >>> levels.index(np.array([0.0, 0.3, 0.5, 0.51, 1.0])).tolist()
    [-1, 0, 0, 1, 3]
    """

    def __init__(self, mu_max, *, levels=32, spacing="variance"):
        self.mu_max = positive("mu_max", mu_max)
        n = count("levels", levels, 1, 4096)
        if spacing not in SPACINGS:
            raise DomainError(f"spacing must be one of {SPACINGS}, got {spacing!r}")
        # mu_from_norms is within 8u above clip/noise deviation or at MU_MIN; a mu_max up to 6u too small still holds
        # that.
        top = max(self.mu_max * UP, MU_MIN)
        self.mu = top * np.sqrt(np.arange(1, n + 1) / n) if spacing == "variance" else top / np.linspace(16.0, 1.0, n)
        self.mu[-1] = top

    @property
    def sigmas(self) -> np.ndarray:
        """Noise multiplier of each level, 1/mu rounded down: no more noise than the level stands for."""
        return 1 / self.mu * (1 - 2.0**-52)

    def index(self, mu) -> np.ndarray:
        """Level of each mu: the least that is not below it; -1 for mu = 0, which costs nothing.

        Parameters
        ----------
        mu : array_like
            From 0 to the last level.

        Returns
        -------
        ndarray of int, of the shape of mu

        Raises
        ------
        DomainError
            For a mu that is negative, not a number, or above the last level.
        """
        mu = reals("mu", mu)
        allowed = f"from 0 to {self.mu_max!r} (no level is safe above: clip)"
        require("mu", mu, (mu >= 0) & (mu <= self.mu[-1]), allowed)
        return np.where(mu > 0, np.searchsorted(self.mu, mu, side="left"), -1)  # [theory: individual.noise-levels]

    def add(self, counts: np.ndarray, mu, indices=None) -> None:
        """Count one step in place: counts[i, level of mu_i] += 1 for all records or those of `indices`.

        Every record must be counted at every step of a subsampled run, sampled or not; see dpsgd.py.

        Parameters
        ----------
        counts : array of int, shape (records, levels)
            What `individual_epsilons` takes.
        mu : array_like
            One entry a record, or one an entry of `indices`: norm over noise deviation, as `mu_from_norms` gives it.
        indices : array of int, optional
            Distinct record numbers.

        Raises
        ------
        DomainError
            For other shapes, indices that repeat or lie outside, a mu without a level, a count that would overflow.
        """
        level = self.index(mu)
        rows = np.arange(len(counts)) if indices is None else np.asarray(indices)
        if (
            counts.dtype.kind not in "iu"
            or counts.ndim != 2
            or counts.shape[1] != self.mu.size
            or level.shape != rows.shape
        ):
            raise DomainError(
                f"counts must be integers of shape (records, {self.mu.size}), mu one entry a record; "
                f"got {counts.dtype} {counts.shape}, {level.shape}"
            )
        if indices is not None and rows.size:
            if rows.dtype.kind not in "iu" or not 0 <= rows.min() <= rows.max() < len(counts):
                raise DomainError(f"indices must be integers from 0 to {len(counts) - 1}, got {indices!r}")
            if np.unique(rows).size != rows.size:
                raise DomainError("indices must be distinct")
        at = rows[level >= 0], level[level >= 0]
        if (counts[at] == np.iinfo(counts.dtype).max).any():
            raise DomainError(f"counts of {counts.dtype} are full; use a wider type. Nothing was counted")
        counts[at] += 1
