"""eps(delta) of many Gaussian compositions at once: each record's is the curve of one number, its mu.

Fix delta. Along delta(eps; mu) = Phi(-z1) - e^eps Phi(-z2) [theory: line.gaussian], z1 = eps/mu - mu/2, z2 = eps/mu +
mu/2, one has d eps/d mu = phi(z2)/Phi(-z2) = 1/R(z2), R the Mills ratio, as e^eps phi(z2) = phi(z1). And z2 grows along
the curve: mu dz2/dmu = 1/R(z2) - z1 >= z2 - z1 = mu > 0, because R(x) < 1/x. R falls, so d eps/d mu grows: eps is a
convex function of mu [theory: individual.convex]. Chords between certified upper values therefore stay above it, and so
does their maximum with 0."""

from __future__ import annotations

import math

import numpy as np

from .. import query
from ..bound import DomainError
from ..outward import DOWN, UP
from ..what.mechanism import gaussian, within
from . import units

NODES = 1024
"""Most chords; spaced geometrically over a factor of 1e3 their excess is below 1e-5 relative:
(ln 1e3/1024)^2/8 eps'' mu^2/eps."""


def gdp_epsilons_upper(mu: np.ndarray, delta: float) -> np.ndarray:
    """Upper bounds of eps(delta) for every mu >= 0 of an array, by chords of the convex curve.

    Raises
    ------
    DomainError
        If a mu is not a number from 0 to 1e3, or delta is not in (0, 1).
    """
    mu = np.asarray(mu, dtype=float)
    delta = within("delta", delta, 0, 1, "()")
    if not mu.size:
        return np.zeros(mu.shape)
    top = float(mu.max())
    if not (float(mu.min()) >= 0 and top <= units.MU_RANGE[1]):
        raise DomainError(f"mu must be from 0 to {units.MU_RANGE[1]:g}, got values from {mu.min()!r} to {top!r}")
    if top == 0:
        return np.zeros(mu.shape)
    # eps(delta) = 0 up to the mu at which delta(0) = 2 Phi(mu/2) - 1 < mu phi(0) reaches delta: below that one chord is
    # enough
    free = min(delta * 2.5, top)
    low = max(float(mu[mu > 0].min()) * (1 - 1e-12), free * (1 - 1e-12), 1e-9)
    low = min(low, top)
    nodes = min(NODES, 2 + math.ceil(math.log(top / low) * 150))
    at = np.unique(np.concatenate(([0.0], np.geomspace(low, top * (1 + 1e-12), nodes))))
    values = _curve_upper(at[1:], delta)
    upper = np.interp(mu.ravel(), at, np.concatenate(([0.0], values)))  # [theory: individual.convex]
    return (upper * UP).reshape(mu.shape)  # interp rounds a product and a sum of numbers >= 0


def _curve_upper(at: np.ndarray, delta: float) -> np.ndarray:
    """Certified eps(delta) at each node. Near the zero of the curve the route may decline: then the next value
    serves."""
    values = np.empty(at.size)
    above = units.epsilon_upper(float(at[-1]), delta)
    for i in range(at.size - 1, -1, -1):
        sigma = 1 / float(at[i]) * DOWN
        # [theory: line.gaussian]
        above = values[i] = min(above, query.epsilon(gaussian(sigma), delta, direction="remove").upper)
    return values
