"""The published fit of one mu to a privacy curve [KTH23, Sec. 5] [theory: individual.fit]. A heuristic, kept apart from
everything certified.

Claim fitted: delta(eps) <= H(eps; mu) for all eps, H the curve of N(mu,1) against N(0,1); the transcript would then
obey the Renyi curve alpha mu^2/2. The fit looks at finitely many eps. For subsampled Gaussian steps the claim for all
eps forces mu = sqrt(sum 1/sigma^2), no amplification at all; a fit over small eps is below that, and the eps read off
it can lie below the truth: q = 0.01, sigma = 0.8, 1000 steps, delta = 1e-5 gives 3.068, the truth is 3.141
(tests/test_individual_dpsgd.py). Use a filter for a guarantee."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import query
from ..bound import DomainError
from ..what.mechanism import as_run, count, within
from . import units

LABEL = "heuristic: a fit at finitely many eps, not a bound"


class FittedMu(NamedTuple):
    """A fitted mu. No bound of anything; see the head of the file.

    Attributes
    ----------
    mu : float
        The fit: an estimate.
    eps : tuple of float
        Where the curve was looked at.
    label : str
        That it is a heuristic.
    """

    mu: float
    eps: tuple[float, ...]
    label: str = LABEL

    def epsilon(self, delta: float) -> float:
        """eps(delta) read off the Renyi curve alpha mu^2/2, least over orders: an estimate, possibly below the
        truth."""
        delta = within("delta", delta, 0, 1, "()")
        rho = 0.5 * self.mu**2
        alpha = 1 + np.geomspace(1e-3, 1e4, 4000)
        eps = alpha * rho + np.log1p(-1 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1)
        return max(0.0, float(eps.min()))


def fit_mu(run, *, eps_max=None, points=30) -> FittedMu:
    """The largest mu that any of `points` eps needs, both directions: delta(eps) = H(eps; mu) solved at each.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    eps_max : float, optional
        Largest eps looked at. Default: where delta is about 1e-12.
    points : int, default 30
        eps = eps_max/points, ..., eps_max.

    Returns
    -------
    FittedMu
        Labelled a heuristic.

    Raises
    ------
    DomainError
        If eps_max is not a number > 0, or points no whole number from 1.

    References
    ----------
    [KTH23], Sec. 5.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.individual import fit_mu
    >>> round(fit_mu(hs.gaussian(2.0) * 4, points=5).mu, 5)
    1.0
    """
    run, points = as_run(run), count("points", points)
    if eps_max is None:
        eps_max = query.epsilon(run, 1e-12).estimate
    if not 0 < eps_max < math.inf:
        raise DomainError(f"eps_max must be a finite number > 0, got {eps_max!r}")
    eps = tuple(float(e) for e in np.linspace(eps_max / points, eps_max, points))
    return FittedMu(max(units.mu_lower(e, query.log_delta(run, e).upper) for e in eps), eps)  # [theory: individual.fit]
