"""About where the loss of a run is exceeded with a given probability: an estimate, for planning alone.

With K(t) = log E e^{tL} of the finite losses under either law, t the tilt at which K'(t) = eps, w = sign(t)
sqrt(2 (t eps - K(t))) and u = t sqrt(K''(t)), the tail at eps is about Phi(-r), r = w + log(u/w)/w: the formula of
Lugannani and Rice as Barndorff-Nielsen wrote it. r rises with eps, nearly as a line, so that few tilts and a polynomial
through them do."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from .outward import U

NODE_TAIL = 1e-60
TILTS = np.array([-1.0, -0.4, 0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 1.0, 1.12, 1.3, 1.6, 2.0, 2.6, 3.5, 5.0, 8.0, 14.0])
"""In units of what the normal law would ask for."""
LEAST = 0.3
"""Deviations from the mean that this is at least."""

SEEN = 1e-11
"""Distance of delta from 1 from which chords tell slopes."""


def about(parts, level: float, under_num: bool) -> tuple[float, float] | None:
    """(eps, deviation of the loss tilted to it): the finite losses and +inf exceed eps with probability `level`; None
    where that is not found, or delta is next to 1 there. parts: [(Loss, count), ...]."""
    rows = []
    for loss, k in parts:
        values, log_mass = loss.nodes(NODE_TAIL)
        if not values.size:  # all losses are infinite
            return None
        rows.append((values, log_mass + values if under_num else log_mass, float(k)))
    _, var, finite = _cumulant(rows, np.zeros(1))
    part = math.exp(min(finite.item(), 0.0))
    if not part > 0:  # next to all losses are infinite
        return None
    level = (level - (1 - part if under_num else 0.0)) / part
    if not 0 < level < 1:
        return None
    z, sd = -NormalDist().inv_cdf(level), math.sqrt(var.item())
    if not sd > 0:
        return None
    tilts = math.copysign(max(abs(z), LEAST), z) / sd * TILTS
    eps, var, log_mgf = _cumulant(rows, tilts)
    with np.errstate(all="ignore"):
        w = np.copysign(np.sqrt(2 * (tilts * eps - log_mgf + finite)), tilts)
        r = w + np.log(tilts * np.sqrt(var) / w) / w
    known = np.flatnonzero(np.isfinite(r))
    order = known[np.argsort(r[known])]
    r, eps, var = r[order], eps[order], var[order]
    near = np.argsort(np.abs(r - z), kind="stable")[:4]
    if near.size < 4 or not r[0] < z < r[-1]:
        return None
    ends = eps[np.searchsorted(r, z) - 1], eps[np.searchsorted(r, z)]
    found = 0.0
    for i in near:
        others = near[near != i]
        found += eps[i] * np.prod((z - r[others]) / (r[i] - r[others]))
    found, tilt = float(min(max(found, min(ends)), max(ends))), tilts[order[near[0]]] - (not under_num)
    # Between the poles 1 - delta is num[L <= eps] + e^eps den[L > eps], which are about as 1 + tilt to -tilt.
    seen = (1 - level) / (1 + tilt) if under_num else level * math.exp(min(found, 700.0)) / max(-tilt, U)
    return (found, math.sqrt(var[near[0]])) if tilt > 0 or (tilt > -1 and seen > SEEN) else None


def _cumulant(rows, tilts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K', K'' and K at the tilts."""
    sums = np.zeros((3, tilts.size))
    for values, log_mass, k in rows:
        terms = np.multiply.outer(tilts, values) + log_mass
        top = terms.max(axis=1)
        weights = np.exp(terms - top[:, None])
        whole = weights.sum(axis=1)
        mean = weights @ values / whole
        second = weights @ (values * values) / whole - mean * mean
        sums += k * np.array([mean, second, top + np.log(whole)])
    return sums[0], np.maximum(sums[1], 0.0), sums[2]
