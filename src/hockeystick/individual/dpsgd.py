"""From the norms of a training step to what is charged: private gradient descent and DP-SGD.

A step releases sum_i clip(g_i) + N(0, s^2 I): record i has mu_i = min(|g_i|, clip)/s. With a noise multiplier z the
noise is s = z clip. Divide by a constant afterwards, never by the number of active or sampled records.

Poisson sampling, two sound ways, and a trap [theory: individual.every-step].
  (a) Amplified: the step is a subsampled Gaussian of rate q. Being sampled or not is part of the randomness, so every
      record is charged at every step, whether or not it was drawn, for the norm that it has (or would have) at that
      step. Where only the sampled records' norms are known, the others are charged the clip: `norms_of_all`.
  (b) Unamplified: the sample is treated as known (it does not depend on the data); sampled records are charged their
      full mu by `IndividualGDPFilter.charge(norms, sigma=s, indices=sampled)`, the others nothing.
  Trap: amplified charges (rate q) for the sampled records only. After k steps a record then has about q k charges
  instead of k: the sum is below the truth (tests/test_individual_dpsgd.py measures it).
"""

from __future__ import annotations

import numpy as np

from ..bound import DomainError
from ..outward import U
from ..what.mechanism import count, positive
from ..what.vectors import reals, require

MU_MIN = 2.0**-500
"""What a smaller positive mu counts as: rounding stays relative, and a square stays positive."""


def mu_from_norms(norms, *, sigma=None, noise_multiplier=None, clip=None) -> np.ndarray:
    """GDP parameter of one step for every record, rounded up: min(norm, clip)/sigma, sigma = noise_multiplier * clip.

    Parameters
    ----------
    norms : array_like
        L2 norms of the records' contributions, >= 0.
    sigma : float
        Standard deviation of the noise, in the unit of the norms.
    noise_multiplier : float
        Instead of sigma, together with `clip`: noise over clipping norm.
    clip : float, optional
        Clipping norm, if the step clips.

    Returns
    -------
    ndarray
        Upper bounds of mu, within 4 units in the last place; a positive one, and a positive norm/clip, is at least
        2^-500.

    Raises
    ------
    DomainError
        For arguments outside their domain. Without `clip`, norms must be finite.

    References
    ----------
    [KTH23], App. C.2.

    Examples
    --------
    >>> from hockeystick.individual import mu_from_norms
    >>> mu_from_norms([0.5, 3.0], noise_multiplier=2.0, clip=1.0).round(6).tolist()
    [0.25, 0.5]
    """
    if (sigma is None) == (noise_multiplier is None) or (noise_multiplier is not None and clip is None):
        raise DomainError(
            "give sigma (absolute), or noise_multiplier together with clip; "
            f"got sigma={sigma!r}, noise_multiplier={noise_multiplier!r}, clip={clip!r}"
        )
    clip = np.inf if clip is None else positive("clip", clip)
    clipped = np.minimum(_checked(norms, allow_infinite=clip < np.inf), clip)
    if sigma is not None:
        ratio, noise = clipped, positive("sigma", sigma)
    else:  # not divided by z clip: that may overflow, or underflow and lose its accuracy
        ratio, noise = np.maximum(clipped / clip, MU_MIN), positive("noise_multiplier", noise_multiplier)
    with np.errstate(over="ignore"):
        return np.where(clipped > 0, np.maximum(ratio / noise * (1 + 4 * U), MU_MIN), 0.0)


def norms_of_all(n_records, norms, indices, *, clip) -> np.ndarray:
    """Norms of all records where only those of `indices` were computed: the others stand at the clip, the most they can
    have.

    Parameters
    ----------
    n_records : int
        From 1.
    norms : array_like
        L2 norms >= 0 of the records of `indices`; larger ones are cut to `clip`.
    indices : array of int
        Distinct record numbers, one a norm.
    clip : float
        Clipping norm, > 0.

    Returns
    -------
    ndarray, shape (n_records,)
        Clipped norms, or the most they can be.

    Raises
    ------
    DomainError
        For bad sizes, indices that repeat or lie outside, norms < 0, or a clip that is not > 0.

    Examples
    --------
    >>> from hockeystick.individual import norms_of_all
    >>> norms_of_all(4, [0.2, 5.0], [3, 1], clip=1.0).tolist()
    [1.0, 1.0, 1.0, 0.2]
    """
    n, clip = count("n_records", n_records), positive("clip", clip)
    norms, indices = _checked(norms, allow_infinite=True), np.asarray(indices)
    if indices.shape != norms.shape or norms.ndim != 1 or indices.dtype.kind not in "iu":
        raise DomainError(
            f"indices must be integers, one a norm; got {indices.shape} {indices.dtype} for {norms.shape}"
        )
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        raise DomainError(f"indices must be from 0 to {n - 1}, got values from {indices.min()} to {indices.max()}")
    if np.unique(indices).size != indices.size:
        raise DomainError("indices must be distinct")
    out = np.full(n, clip)
    out[indices] = np.minimum(norms, clip)  # [theory: individual.every-step]
    return out


def _checked(norms, allow_infinite: bool) -> np.ndarray:
    norms = reals("norms", norms)
    finite = (norms < np.inf) | allow_infinite
    require("norms", norms, (norms >= 0) & finite, f">= 0{'' if allow_infinite else ' and finite'}")
    return norms
