"""Mechanisms with discrete output: integer noise, randomised response, the worst (eps0, delta0)-DP step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

from ..bound import DomainError
from .mechanism import LAPLACE_RANGE, Mechanism, count, noise, within

DISCRETE_SIGMA_RANGE = (0.05, 1e5)
"""Allowed sigma/sensitivity of the discrete Gaussian: below it losses overflow, above it its lattice has millions of
points."""

OUTCOMES_MAX = 1 << 24
"""Most outcomes of a discrete Gaussian, sensitivity + 78 sigma of them within its tables (pair.py): about 2 GB of
memory."""

EPS0_MAX = 300.0
"""Largest loss of one pure-DP step: its exponential must fit a double with room for products."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Mechanism):
    """Discrete Gaussian noise; see `discrete_gaussian`."""

    sigma: float
    sensitivity: int = 1


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace (geometric) noise; see `discrete_laplace`."""

    scale: float
    sensitivity: int = 1


@dataclass(frozen=True, slots=True)
class ApproxDP(Mechanism):
    """The worst (eps0, delta0)-DP step; see `approx_dp` and `randomized_response`."""

    eps0: float
    delta0: float = 0.0


@dataclass(frozen=True, slots=True)
class KAryRandomizedResponse(Mechanism):
    """Randomised response on k answers; see `k_ary_randomized_response`."""

    eps0: float
    k: int


def discrete_gaussian(sigma: float, *, sensitivity: int = 1) -> DiscreteGaussian:
    """Integer noise with Pr[x] proportional to exp(-x^2/(2 sigma^2)), on an integer query of integer sensitivity.

    `sigma`/sensitivity lies in [0.05, 1e5]; sensitivity from 1 to 1e6; sensitivity + 78 sigma, the number of outcomes
    that are tabled, is at most 2^24; under adjacency "replace_one" all hold for twice the sensitivity.

    Raises
    ------
    DomainError
        If an argument is not a number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.epsilon(hs.discrete_gaussian(10.0) * 20, 1e-6):.4f}"
    '[1.9945, 1.9946]'
    """
    sensitivity = count("sensitivity", sensitivity, 1, 10**6)
    sigma = noise("sigma", sigma, sensitivity, DISCRETE_SIGMA_RANGE)
    if not sensitivity + 78 * sigma <= OUTCOMES_MAX:
        raise DomainError(
            f"sigma must leave at most {OUTCOMES_MAX} outcomes, sensitivity + 78 sigma, got sigma={sigma!r} "
            f"(sensitivity={sensitivity!r})"
        )
    return DiscreteGaussian(sigma, sensitivity)


def discrete_laplace(scale: float, *, sensitivity: int = 1) -> DiscreteLaplace:
    """Integer noise with Pr[x] proportional to exp(-|x|/scale), on an integer query of integer sensitivity.

    `scale`/sensitivity lies in [1/300, 1e9]; sensitivity from 1 to 1e6;
    under adjacency "replace_one" both hold for twice the sensitivity.

    Raises
    ------
    DomainError
        If an argument is not a number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.delta(hs.discrete_laplace(2.0) * 4, 1.0):.4f}"
    '[0.0948, 0.0949]'
    """
    sensitivity = count("sensitivity", sensitivity, 1, 10**6)
    return DiscreteLaplace(noise("scale", scale, sensitivity, LAPLACE_RANGE), sensitivity)


@overload
def shifted(step: DiscreteGaussian, adjacency: str) -> DiscreteGaussian: ...
@overload
def shifted(step: DiscreteLaplace, adjacency: str) -> DiscreteLaplace: ...
def shifted(step: DiscreteGaussian | DiscreteLaplace, adjacency: str) -> DiscreteGaussian | DiscreteLaplace:
    """The step whose pair under add_remove is that of `step` under the adjacency: a zeroed record adds nothing, like an
    absent one; a replaced record moves the query by up to twice the sensitivity, as for continuous noise."""
    if adjacency != "replace_one":
        return step
    if isinstance(step, DiscreteGaussian):
        return discrete_gaussian(step.sigma, sensitivity=2 * step.sensitivity)
    return discrete_laplace(step.scale, sensitivity=2 * step.sensitivity)


def approx_dp(eps0: float, delta0: float) -> ApproxDP:
    """The worst (eps0, delta0)-DP step: loss +inf with probability delta0, else +-eps0 as in randomised response.

    Every (eps0, delta0)-DP mechanism is post-processing of it [KOV15, Thm 3.4; GLW21, Prop. B.3], so composing it
    bounds the composition of any mechanisms known only by their (eps0, delta0), under the adjacency for which they
    hold.

    Parameters
    ----------
    eps0 : float
        In nats, 0 <= eps0 <= 300.
    delta0 : float
        0 <= delta0 < 1.

    Raises
    ------
    DomainError
        If an argument is not a number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.epsilon(hs.approx_dp(0.1, 1e-7) * 100, 1e-4):.4f}"    # never above 100 * 0.1
    '[3.7756, 3.7757]'
    """
    return ApproxDP(within("eps0", eps0, 0, EPS0_MAX), within("delta0", delta0, 0, 1, "[)"))


def randomized_response(eps0: float) -> ApproxDP:
    """Binary randomised response that tells the truth with odds e^eps0: the worst pure eps0-DP step.

    `pure_dp` is another name for it. 0 <= eps0 <= 300, in nats.

    Raises
    ------
    DomainError
        If `eps0` is not a number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.randomized_response(0.5) == hs.pure_dp(0.5) == hs.approx_dp(0.5, 0.0)
    True
    """
    return approx_dp(eps0, 0.0)


pure_dp = randomized_response


def k_ary_randomized_response(eps0: float, k: int) -> KAryRandomizedResponse:
    """One of k answers: the true one with e^eps0 times the probability of each other one.

    Defined for adjacency "replace_one" (a record changes its answer) and "zero_out" (a record's answer against a
    uniform one).

    Parameters
    ----------
    eps0 : float
        In nats, 0 <= eps0 <= 300.
    k : int
        Number of answers, 2 to 1e9.

    Raises
    ------
    DomainError
        If an argument is not a number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.epsilon(hs.k_ary_randomized_response(1.0, 10) * 5, 1e-3, adjacency='replace_one'):.4f}"
    '[3.9415, 3.9416]'
    """
    return KAryRandomizedResponse(approx_dp(eps0, 0.0).eps0, count("k", k, 2, 10**9))
