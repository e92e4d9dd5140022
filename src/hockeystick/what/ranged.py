"""Bounded range: exponential mechanisms, and the worst pair of a step whose losses lie in an interval of length eps0.

The pair, why it dominates every such step in adaptive compositions, and its transform:
[theory: range.two-points, range.pair, range.law].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..outward import U
from .discrete import EPS0_MAX, ApproxDP, pure_dp
from .loss import TINY, Loss, Tails, gauss_legendre
from .mechanism import Mechanism, within

EPS0_MIN = 1e-9
"""Least range of a step."""


@dataclass(frozen=True, slots=True)
class BoundedRange(Mechanism):
    """The worst step of bounded range; see `bounded_range`."""

    eps0: float


def _range(eps0: object) -> float:
    return within("eps0", eps0, EPS0_MIN, EPS0_MAX)


def bounded_range(eps0: float) -> BoundedRange:
    """The worst step of `eps0`-bounded range: log P(y)/P'(y) - log P(z)/P'(z) <= eps0 for all outputs y, z and
    neighbours.

    One pair dominates every such step: delta(g) = (1 - e^{(g-eps0)/2})^2/(1 - e^-eps0) for |g| <= eps0, loss density
    e^{l/2}/(4 sinh(eps0/2)) on [-eps0, eps0]. It is its own mirror image, so both directions have one curve. The pair
    dominates every such step, so its products, with itself and with the pairs of any other steps, dominate every
    adaptive composition [ZDW22, Thm 10]. At each eps some mechanism attains the curve of one step; that of several
    steps is not attained: `top_k`.

    Parameters
    ----------
    eps0 : float
        In nats, 1e-9 <= eps0 <= 300, under the adjacency for which the caller knows it; the relation must be symmetric,
        or the bound must hold in both orders. A Poisson sample is defined for "add_remove".

    Raises
    ------
    DomainError
        If `eps0` is not a number in its range.

    Notes
    -----
    Noisy maxima with Gumbel noise are exponential mechanisms. Permute-and-flip, and noisy maxima with Laplace or
    exponential noise, are eps0-DP and so have a range of 2 eps0 only: `permute_and_flip`.

    References
    ----------
    [DDR20] for the two-point pairs; docs/theory/ranged.md for the supremum over them.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.delta(hs.bounded_range(1.0), 0.2):.6f}"
    '[0.171943, 0.171944]'
    >>> f"{hs.epsilon(hs.bounded_range(0.1) * 100, 1e-6):.4f}"    # of randomised response: 4.7746
    '[2.6117, 2.6118]'
    """
    return BoundedRange(_range(eps0))


def exponential_mechanism(eps0: float) -> BoundedRange:
    """The exponential mechanism with Pr[y] in proportion to exp(eps0 u(y)/(2 D)), D the sensitivity of every utility
    u(y).

    It has eps0-bounded range: `bounded_range(eps0)`. Where all utilities move the same way (monotone), exp(eps0 u/D)
    has it as well; else that one is `exponential_mechanism(2 * eps0)`.

    Parameters, errors and guarantees are those of `bounded_range`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.epsilon(hs.exponential_mechanism(0.5) * 10 + hs.gaussian(5.0) * 10, 1e-6):.4f}"
    '[5.1890, 5.1891]'
    """
    return bounded_range(eps0)


def permute_and_flip(eps0: float) -> ApproxDP:
    """Permute-and-flip, or a noisy maximum with exponential noise, of parameter `eps0`: the worst eps0-DP step.

    It is `pure_dp(eps0)`. Permute-and-flip is eps0-DP but not of range eps0: of two candidates with equal utilities
    each has probability 1/2, and after both utilities have moved apart e^-eps0/2 and 1 - e^-eps0/2, losses eps0 + log(2
    - e^-eps0) apart. So neither `exponential_mechanism(eps0)` nor its zero-concentrated bound eps0^2/8 holds for it.

    Under "add_remove" and "zero_out" `laplace(1 / eps0)` may be charged instead, and costs less in a composition:
    permute-and-flip is a threshold of a release with Laplace noise at worst [theory: range.flip].

    Parameters
    ----------
    eps0 : float
        In nats, 0 <= eps0 <= 300, under the adjacency for which it holds.

    Raises
    ------
    DomainError
        If `eps0` is not a number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.permute_and_flip(0.5) == hs.pure_dp(0.5)
    True
    """
    return pure_dp(eps0)


def range_loss(m: float) -> Loss:
    """The loss of the worst step of range m. With F(s) = expm1((s+m)/2)/expm1(m), G(s) = expm1((s-m)/2)/expm1(-m):
    Pr[Y <= s] = F(s), Pr[Y > s] = G(s), and X = -Y in law.

    Rounding. m is the user's number. s + m is within u of itself, which moves F by at most (1 + m)u of itself and G by
    u, as
    |x e^x/expm1(x)| <= 1 + x_+; expm1 twice, a quotient: 6u. A tail next to 0 may be subnormal.
    """

    def tails(s):
        s = np.clip(s, -m, m)
        low, high = np.expm1(0.5 * (s + m)), np.expm1(0.5 * (m - s))
        up, down = math.expm1(m), math.expm1(-m)
        y = low / up, np.expm1(-0.5 * (m - s)) / down  # [theory: range.law]
        x = np.expm1(-0.5 * (s + m)) / down, high / up
        return Tails(*y, *x, np.full(s.size, U * (m + 10)), 0.0, TINY)

    def nodes(p):
        """Gauss nodes on panels that grow from both ends inwards."""
        near = np.minimum(np.r_[0.0, np.geomspace(1.0, 512.0, 10)], m)
        cuts = np.unique(np.r_[near - m, m - near])
        x, w = gauss_legendre()
        half = 0.5 * np.diff(cuts)[:, None]
        at = (cuts[:-1, None] + half * (1 + x)).ravel()
        with np.errstate(divide="ignore"):
            log_w = np.log(half * w).ravel()
        return at, log_w - 0.5 * (at + m) - math.log(-2 * math.expm1(-m))

    def curve(eps):
        """expm1((eps-m)/2) is within 3u of itself."""
        if eps <= -m:
            return -math.expm1(eps), 4 * U
        # [theory: range.two-points, range.pair]
        return math.expm1(0.5 * min(eps - m, 0.0)) ** 2 / -math.expm1(-m), 12 * U

    return Loss(tails, nodes, -m, m, curve=curve)
