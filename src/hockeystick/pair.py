"""From what ran to its worst-case pair, in both directions.

Every mechanism here is dominated by a pair of one-dimensional laws (num, den); the loss is log(num/den) under
num. A family of pairs that one C kernel evaluates is described by plain arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .bound import DomainError
from .mechanism import Gaussian, Mechanism, PoissonSubsampled, Run

ADJACENCIES = ("add_remove", "replace_one", "zero_out")
DIRECTIONS = ("both", "remove", "add")


class GaussianSteps(NamedTuple):
    """Poisson-subsampled Gaussian steps: arrays of equal length b (contiguous float64).

    shift : m = sensitivity/sigma > 0.   q : sampling rate, 1 for the plain Gaussian.   k : counts.
    """

    shift: np.ndarray
    q: np.ndarray
    k: np.ndarray


def subsampled_gaussian(step: Mechanism) -> tuple[float, float]:
    """(m, q) of a (Poisson-subsampled) Gaussian step: the pair is q N(m,1) + (1-q) N(0,1) against N(0,1).

    REMOVE has the mixture as num, ADD as den. For add-or-remove-one adjacency under Poisson sampling this
    pair dominates [GLW21, App. B; ZDW22, Thm 11]; q = 1 is the Gaussian mechanism.
    """
    q = 1.0
    if isinstance(step, PoissonSubsampled):
        q, step = step.q, step.base
    if not isinstance(step, Gaussian):
        raise DomainError(f"no Gaussian pair for {step!r}")
    return step.sensitivity / step.sigma, q


def gaussian_steps(run: Run, adjacency: str) -> GaussianSteps:
    """The run as arrays of (m, q, k). Raises DomainError where the adjacency is not defined for a step."""
    if adjacency != "add_remove":
        raise DomainError(f'adjacency {adjacency!r} is not defined for this run; allowed: "add_remove"')
    cached = run._cache.get(adjacency)
    if cached is None:
        table = np.array([(*subsampled_gaussian(step), k) for step, k in run.parts], dtype=float)
        cached = GaussianSteps(*(np.ascontiguousarray(column) for column in table.reshape(-1, 3).T))
        run._cache[adjacency] = cached
    return cached
