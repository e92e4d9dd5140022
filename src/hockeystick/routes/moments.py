"""Moments accountant, Renyi curve and the Gaussian-limit approximation.

All of it is read off K(t) = log E e^{tY}, the cumulant function of the loss [theory: saddle.renyi], which
csrc/clt/saddle_step.c (Gaussian steps) and cumulant.py (all others) evaluate with a proved error in both directions:
nothing here sums alternating binomials. `gdp_*` is the one thing here that is no bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import Cumulant, between
from ..arguments import exp_upper, numbers, one_of, respelled, shaped
from ..bound import AccuracyError, Bound, Budget, DomainError
from ..outward import DOWN, UP, U, log_slack
from ..what.loss import ends, log_finite
from ..what.mechanism import as_run
from ..what.pair import ADJACENCIES, DIRECTIONS, gaussian_steps, losses
from .saddlepoint import gaussian_cumulant, gaussian_family

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ..types import Adjacency, Direction, Numbers, Ran, Sides

RDP_TERMS = ("quadrature", "rounding")
GDP_TERMS = ("clt_approximation",)
ALPHA_RANGE = (1 + 1e-6, 1e6)


@overload
def rdp(run: Ran, alpha: float, **options: Unpack[Sides]) -> Bound[float]: ...
@overload
def rdp(run: Ran, alpha: Numbers, **options: Unpack[Sides]) -> Bound[NDArray[np.float64]]: ...
def rdp(
    run: Ran, alpha: float | Numbers, *, adjacency: Adjacency = "add_remove", direction: Direction = "both"
) -> Bound[Any]:
    """The Renyi divergence of order alpha, rho(alpha) = K(alpha-1)/(alpha-1), K the cumulant function of the composed
    loss.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    alpha : float or array_like
        Orders, real, from 1.000001 to 1e6.
    adjacency : "add_remove", "replace_one" or "zero_out"
        Neighbouring relation.
    direction : "both", "remove" or "add"
        "both" is the larger of the two divergences.

    Returns
    -------
    Bound
        Certified lower <= rho(alpha) <= upper, in nats, of the shape of `alpha`: quadrature and rounding included.
        `budget` lists both in the unit of rho. Infinite where a loss can be infinite. Relative width about 1e-13, to
        1e-10 for Gaussian noise around random shifts; 1e-6 for losses given by their distribution functions, and
        sampled Laplace noise under replace_one.

    Raises
    ------
    DomainError
        For arguments outside their domain.
    AccuracyError
        Where the order is beyond the evaluation: too many nodes, or nothing known of a user's law that far out.

    References
    ----------
    [MTZ19, Sec. 3.3] defines the curve; csrc/clt/saddle_step.c and routes/cumulant.py evaluate it.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.rdp(hs.poisson_subsampled(hs.gaussian(1.0), 0.01), 2.5)
    >>> b.lower <= 3.2636299842282e-04 / 1.5 <= b.upper
    True
    """
    one_of("adjacency", adjacency, ADJACENCIES)
    one_of("direction", direction, DIRECTIONS)
    run = as_run(run)
    if not run.parts:
        raise DomainError("an empty run has no Renyi curve; compose one or more steps")
    lo, hi = ALPHA_RANGE
    orders = numbers(
        "alpha", alpha, f"a number from {lo!r} to {hi:g}", math.nextafter(lo, 0), math.nextafter(hi, math.inf)
    )
    adds = {"remove": (0,), "add": (1,), "both": (0, 1)}[direction]
    found = [_larger([_divergence(run, adjacency, add, a) for add in adds]) for a in orders]
    low, mid, high, *terms = (shaped(column, alpha) for column in zip(*found, strict=True))
    return Bound(low, mid, high, "rdp", True, Budget(dict(zip(RDP_TERMS, terms, strict=True)), "nats"))


class _Divergence(NamedTuple):
    """Of one order: certified ends, an estimate between, and RDP_TERMS."""

    lower: float
    estimate: float
    upper: float
    quadrature: float = 0.0
    rounding: float = 0.0


def _larger(found: list[_Divergence]) -> _Divergence:
    """Elementwise maximum, with the terms of the one that ends higher."""
    low, top = max(each.lower for each in found), max(found, key=lambda each: each.upper)
    return top._replace(lower=low, estimate=min(max(top.estimate, low), top.upper))


def _divergence(run, adjacency: str, add: int, alpha: float) -> _Divergence:
    t = alpha - 1
    if _infinite_upper(run, adjacency, add):
        return _Divergence(math.inf, math.inf, math.inf)
    low, mid, high, quadrature = cumulant(run, adjacency, add, t)
    rounding = max(0.0, 0.5 * (high - low) - quadrature) + 4 * U * abs(mid)
    lower, upper = max(0.0, low) / t * DOWN, high / t * UP  # [theory: saddle.renyi]
    return _Divergence(lower, between(lower, mid / t, upper, "rdp", run), upper, quadrature / t, rounding / t)


def cumulant(run, adjacency: str, add: int, t: float) -> Cumulant:
    """K(t), the infinite losses left out; AccuracyError where there is none."""
    steps = gaussian_steps(run, adjacency)
    if steps is None:
        from .cumulant import run_cumulant

        return run_cumulant(run, adjacency, bool(add), t)
    return gaussian_cumulant(steps, add, t)


def _infinite_upper(run, adjacency: str, add: int) -> float:
    """A bound of the probability that some loss of the run is infinite; 0 where none can be."""
    if gaussian_steps(run, adjacency) is not None:
        return 0.0
    parts = losses(run, adjacency, "add" if add else "remove")
    return -math.expm1(log_finite(parts).lower) * UP


@overload
def moments_delta_upper(run: Ran, eps: float, **options: Unpack[Sides]) -> float: ...
@overload
def moments_delta_upper(run: Ran, eps: Numbers, **options: Unpack[Sides]) -> NDArray[np.float64]: ...
@respelled(epsilon="eps")
def moments_delta_upper(
    run: Ran, eps: float | Numbers, *, adjacency: Adjacency = "add_remove", direction: Direction = "both"
) -> Any:
    """Upper bound of delta(eps) by the moments accountant at its best real order: min_t e^{K(t) - eps t}
    t^t/(1+t)^(1+t).

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    eps : float or array_like
        Finite real numbers, in nats.
    adjacency, direction
        As in `hs.delta`.

    Returns
    -------
    float or ndarray
        A certified upper bound, quadrature and rounding included; the order is found numerically, and every order is
        valid.

    Raises
    ------
    DomainError, AccuracyError
        As in `hs.delta`.

    References
    ----------
    [CKS20, Prop. 12; BBG+20, Thm 21; AGH+22, eq. 43].

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    >>> print(f"{hs.moments_delta_upper(run, 1.0):.6e}")
    8.346452e-03
    """
    return _upper(
        run, eps, numbers("eps", eps, "a finite number", -math.inf, math.inf), 1, adjacency, direction, exp_upper
    )


@overload
def moments_epsilon_upper(run: Ran, delta: float, **options: Unpack[Sides]) -> float: ...
@overload
def moments_epsilon_upper(run: Ran, delta: Numbers, **options: Unpack[Sides]) -> NDArray[np.float64]: ...
def moments_epsilon_upper(
    run: Ran, delta: float | Numbers, *, adjacency: Adjacency = "add_remove", direction: Direction = "both"
) -> Any:
    """Upper bound of eps(delta) by the moments accountant at its best real order:

    min_t (K(t) + log(t^t/(1+t)^(1+t)) - log delta)/t.

    Parameters
    ----------
    delta : float or array_like
        In (0, 1).
    run, adjacency, direction
        As in `moments_delta_upper`.

    Returns
    -------
    float or ndarray
        A certified upper bound of max(0, eps).

    Raises
    ------
    DomainError, AccuracyError
        As in `hs.epsilon`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * 1000
    >>> print(f"{hs.moments_epsilon_upper(run, 2.5e-9):.3f}")
    5.789
    """
    logs = [math.log(d) * UP for d in numbers("delta", delta, "in (0, 1)", 0.0, 1.0)]
    return _upper(run, delta, logs, 0, adjacency, direction, lambda e: max(0.0, e))


def _upper(run, like, values, have_eps: int, adjacency, direction, finish):
    one_of("direction", direction, DIRECTIONS)
    one_of("adjacency", adjacency, ADJACENCIES)
    run = as_run(run)
    if not run.parts:
        raise DomainError("an empty run has no moments bound; compose one or more steps")
    adds = {"remove": (0,), "add": (1,), "both": (0, 1)}[direction]
    found = (finish(max(_best_upper(run, adjacency, add, have_eps, value) for add in adds)) for value in values)
    return shaped(found, like)


def log_delta_upper_of(run, adjacency: str, add: int, eps: float) -> float:
    """The logarithm of `moments_delta_upper` in one direction."""
    return _best_upper(run, adjacency, add, 1, eps)


def eps_upper_of(run, adjacency: str, add: int, log_delta: float) -> float:
    """`moments_epsilon_upper` in one direction."""
    return max(0.0, _best_upper(run, adjacency, add, 0, log_delta))


def _best_upper(run, adjacency: str, add: int, have_eps: int, value: float) -> float:
    """An upper bound of log delta at eps = value, or of eps at log delta = value."""
    steps = gaussian_steps(run, adjacency)
    if steps is not None:
        return _best_order(steps, add, have_eps, value)
    return _best_order_upper(run, adjacency, add, have_eps, value)


def _best_order(steps: Rows, add: int, have_eps: int, value: float) -> float:
    if add and have_eps and (steps.q < 1).all():
        wall = -math.fsum((steps.k * np.log1p(-steps.q)).tolist())  # within 4u
        if value >= wall * UP:
            return -math.inf  # eps exceeds every loss
    status, _, upper = scratch.lend(_core.saddle_work(), _core.saddle_moments_upper, steps, add, have_eps, value)
    if status:
        what = f"eps={value!r}" if have_eps else f"log delta={value!r}"
        raise AccuracyError(f"no order was found for {what}; hs.delta and hs.epsilon have other routes", status)
    return upper


def _best_order_upper(run, adjacency: str, add: int, have_eps: int, value: float) -> float:
    """The bound for any run: the order is chosen on estimates, the bound at that order is certified. With D the
    probability of an infinite loss, delta <= D + e^{K(t) - eps t} t^t/(1+t)^(1+t), K that of the finite losses."""
    parts = losses(run, adjacency, "add" if add else "remove")
    gone = _infinite_upper(run, adjacency, add)
    high = ends(parts).upper
    if have_eps:
        if value >= high or gone >= 1:
            return min(0.0, _log_up(gone))
    else:
        rest = math.exp(value - log_slack(value)) - gone
        if not rest > 0:
            return math.inf
        value = math.log(rest) - log_slack(math.log(rest))
    t = _order(parts, have_eps, value)
    for _ in range(8):
        try:
            K = cumulant(run, adjacency, add, t).upper
            break
        except AccuracyError:
            t *= 0.5  # every order is valid
    else:
        K = cumulant(run, adjacency, add, t).upper
    log_max = -t * math.log1p(1 / t) - math.log1p(t)
    bound = K - value * t + log_max if have_eps else (K + log_max - value) / t
    bound += 8 * U * (abs(K) + abs(log_max) + abs(value) * (1 + t) + 1) / (1 if have_eps else t)
    if not have_eps:
        return min(bound, high)
    return min(0.0, _log_up(gone + math.exp(min(bound, 0.0))) if gone else bound)


def _order(parts, have_eps: int, value: float) -> float:
    """t near the minimum of K - eps t + t log t - (1+t) log(1+t), or of the eps where that is log delta; estimates."""
    low, high = 1e-6, 1e6
    for _ in range(3):
        t = np.geomspace(low, high, 60)
        with np.errstate(all="ignore"):
            K = sum(k * loss.cgf(t, 1e-200) for loss, k in parts) - t * np.log1p(1 / t) - np.log1p(t)
            goal = K - value * t if have_eps else (K - value) / t
        i = int(np.argmin(np.where(np.isfinite(goal), goal, math.inf)))
        low, high = float(t[max(i - 1, 0)]), float(t[min(i + 1, 59)])
    return float(t[i])


def _log_up(x: float) -> float:
    return math.log(x) + log_slack(math.log(x)) if x > 0 else -math.inf


# [theory: saddle.gdp-limit]
def gdp_mu(run: Ran, *, adjacency: Adjacency = "add_remove") -> float:
    """An estimate, no bound: mu of the Gaussian limit, sqrt(sum_i k_i q_i^2 (e^{m_i^2} - 1)), with m_i^2 where q_i = 1.

    An approximation for many steps with small q; see `gdp_delta`.

    References
    ----------
    [BDLS20, Thm 5].

    Examples
    --------
    >>> import hockeystick as hs
    >>> round(hs.gdp_mu(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000), 4)
    0.4145
    """
    one_of("adjacency", adjacency, ADJACENCIES)
    m, q, k = gaussian_family(run, adjacency)
    with np.errstate(over="ignore"):
        variances = np.where(q == 1, m * m, q * q * np.expm1(m * m))
    mu = math.sqrt(float(np.dot(k, variances)))
    if not mu < math.inf:
        raise DomainError("the Gaussian limit has no finite mu here: sigma/sensitivity is too small")
    return mu


@respelled(epsilon="eps")
def gdp_delta(run: Ran, eps: float | Numbers, *, adjacency: Adjacency = "add_remove") -> Bound[Any]:
    """An estimate, no bound: delta(eps) of N(mu, 1) against N(0, 1) at the run's `gdp_mu`, which can under-report.

    It is a central-limit approximation, for comparison: `lower` and `upper` are 0 and 1. At sigma=1, q=0.01, 1000
    steps, eps=4 it reports 7.5e-23 where the truth is 5.4e-13.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    eps : float or array_like
        Finite real numbers, in nats.
    adjacency : "add_remove"
        Neighbouring relation.

    Returns
    -------
    Bound
        With certified=False; only `estimate` says something.

    References
    ----------
    [BDLS20, Thm 5]; csrc/clt/saddlepoint.c evaluates the curve.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    >>> b = hs.gdp_delta(run, 1.0)
    >>> print(b.certified, f"{b.estimate:.4e}")
    False 1.7594e-03
    """
    values = numbers("eps", eps, "a finite number", -math.inf, math.inf)
    return _approximation([math.exp(_gdp(1, run, adjacency, e).raw) for e in values], eps, 1.0)


def gdp_epsilon(run: Ran, delta: float | Numbers, *, adjacency: Adjacency = "add_remove") -> Bound[Any]:
    """An estimate, no bound: eps >= 0 at which `gdp_delta` is `delta`, the same approximation; lower = 0, upper = inf.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    >>> hs.gdp_epsilon(run, 1e-9).estimate < hs.epsilon(run, 1e-9).lower     # it under-reports
    True
    """
    values = [math.log(d) for d in numbers("delta", delta, "in (0, 1)", 0.0, 1.0)]
    return _approximation([max(0.0, _gdp(0, run, adjacency, v).estimate) for v in values], delta, math.inf)


def _gdp(have_eps: int, run, adjacency, at: float):
    one = np.ones(1)
    rows = Rows(np.array([gdp_mu(run, adjacency=adjacency)]), one, one)
    answer = scratch.lend(_core.saddle_work(), _core.saddle_ask, rows, 0, have_eps, at, 3)
    if answer.status:
        raise AccuracyError(f"the Gaussian curve has no saddle at {at!r}", answer.status)
    return answer


def _approximation(values, like, top: float) -> Bound[Any]:
    low, high, unknown = (shaped([x] * len(values), like) for x in (0.0, top, math.inf))
    return Bound(low, shaped(values, like), high, "gdp", False, Budget({GDP_TERMS[0]: unknown}))
