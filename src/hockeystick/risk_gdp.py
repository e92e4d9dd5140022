"""A run summed up by one number: the smallest mu whose Gaussian curve covers it, and how much that says too much.

With x = e^eps the Gaussian curve is the largest of its tangents, which have a closed form [theory: risk.tangents]:

    G_mu(x) = sup_t T_t(x),        T_t(x) = Phi(mu/2 - t/mu) - x Phi(-mu/2 - t/mu),    touching at x = e^t.

The run's curve is convex in x, hence below the chord between two certified points. If one tangent lies above both ends
of the chord, then delta <= chord <= T_t <= G_mu on the whole interval: two comparisons prove a continuum of eps. The
intervals are halved until each is proved, so nothing rests on a grid.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import query
from .bound import AccuracyError, Bound, Budget, DomainError
from .chords import EPS_MAX
from .outward import DOWN, UP, U
from .what.mechanism import real

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .types import Asked, Ran

POINTS = 20_000
"""Limit of points asked of a curve; a run that is Gaussian but for the last digit needs about 1/sqrt(tol)."""


LEAST = 1e-150
"""Least mu that is tried, where none is known to be needed: its square and eps/mu are doubles."""


PART = 0.9
"""Of the tolerance, by which the mu that is proved exceeds the one that is needed."""


TOUCHES = 6
"""Tangents that are tried for an interval."""


class _Point(NamedTuple):
    """delta(eps) between low and high, and the mu of the Gaussian curve through its estimate."""

    eps: float
    low: float
    mid: float
    high: float


def mu_gdp(run: Ran, delta: float, *, tol: float = 1e-5, **options: Unpack[Asked]) -> Bound[float]:
    """Certified bounds of the smallest mu whose Gaussian curve G_mu lies on or above the run's, at every delta from
    `delta` up.

    G_mu(eps) >= delta(eps) for all eps >= 0 with delta(eps) >= `delta` (and, with direction "both", for the eps < 0
    that mirror them): whoever reports mu reports a valid eps at every delta from `delta` to 1. Below `delta` a
    subsampled run may leave the curve.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    delta : float
        In (0, 1): where the cover begins.
    tol : float, default 1e-5
        Relative width of the answer, 1e-9 to 0.5.
    adjacency, direction, route, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified bounds of mu: at `lower` some eps is not covered, at `upper` all are proved to be.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`; AccuracyError also if `tol` cannot be reached.

    References
    ----------
    [DRS22] for Gaussian differential privacy; the head of risk_gdp.py for the proof.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.mu_gdp(hs.gaussian(2.0) * 4, 1e-6)
    >>> b.lower <= 1.0 <= b.upper < 1.0 + 1e-5
    True
    """
    options = _checked(options)
    delta, tol = _inside("delta", delta, 0, 1), _inside("tol", tol, 0.999e-9, 0.5001)
    end = query.epsilon(run, delta, **options)
    if end.lower == math.inf:  # delta(eps) stays above `delta`, and every Gaussian curve falls to 0
        return Bound(math.inf, math.inf, math.inf, end.route, True, Budget({"cover": 0.0}, "mu"))
    if end.upper > EPS_MAX:
        raise AccuracyError(f"eps at delta={delta!r} is up to {end.upper:.6g}, and e^eps beyond a double")
    routes: set[str] = set()
    ask = query.asker(run, **options)
    grid = np.unique(np.linspace(0.0, end.lower, 9))
    points = _ask(ask, grid, routes)
    if not max(point.high for point in points):
        return Bound(0.0, 0.0, 0.0, "+".join(sorted(routes)), True, Budget({"cover": 0.0}, "mu"))
    best = functools.reduce(_needed, points, 0.0)
    if end.upper > grid[-1]:
        points += _ask(ask, np.array([end.upper]), routes)
    todo = [(points[i], points[i + 1]) for i in range(len(points) - 1)] or [(points[0], points[0])]
    upper, count = max(best * (1 + PART * tol), LEAST), len(points)
    stuck: list[tuple[_Point, _Point]] = []  # an end is above the curve of `upper`: no halving helps, a larger mu may
    while todo or stuck:
        if not todo:
            todo, stuck = stuck, []
            if not all(_above(upper, point) for pair in todo for point in pair):
                raise AccuracyError(_vague(run, best, upper, tol))
        todo = [pair for pair in todo if not _covered(upper, *pair)]
        halved = [_above(upper, left) and _above(upper, right) for left, right in todo]
        stuck += itertools.compress(todo, (not half for half in halved))
        todo = list(itertools.compress(todo, halved))
        middles = [0.5 * (left.eps + right.eps) for left, right in todo]
        count += len(middles)
        if count > POINTS or not all(
            left.eps < middle < right.eps for (left, right), middle in zip(todo, middles, strict=True)
        ):
            raise AccuracyError(_vague(run, best, upper, tol))
        parts = []
        for (left, right), point in zip(todo, _ask(ask, np.array(middles), routes) if todo else [], strict=True):
            middle = point._replace(high=min(point.high, _chord_upper(left, right, point.eps)))
            if point.eps <= end.lower:
                best = _needed(best, middle)
            parts += [(left, middle), (middle, right)]
        todo, upper = parts, max(upper, best * (1 + PART * tol))
    mid = 0.5 * (best + upper)
    return Bound(best, mid, upper, "+".join(sorted(routes)), True, Budget({"cover": upper - best}, "mu"))


def gdp_regret(run: Ran, mu: float, *, tol: float = 1e-6, **options: Unpack[Asked]) -> Bound[float]:
    """How much reporting mu-GDP overstates the run: the smallest r with f(a + r) - r <= G_mu's trade-off curve at all
    a.

    sup over eps >= 0 of (G_mu(eps) - delta(eps)) / (1 + e^eps), with direction "both" for both orders. This is also the
    largest difference, over all priors, of the Bayes risks of the run and of what is reported. Where the run is not
    mu-GDP, the parts that stick out count as 0.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    mu : float
        In (0, 100): what is reported, for instance `mu_gdp(run, delta).upper`.
    tol : float, default 1e-6
        Absolute width of the answer, 1e-10 to 0.1.
    adjacency, direction, route, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified.

    Raises
    ------
    DomainError, AccuracyError
        As in `mu_gdp`.

    References
    ----------
    [KKB24] for the divergence between trade-off curves; by convex duality f(a + r) - r <= g(a) for all a if and only if
    delta_f(x) + r (1 + x) >= delta_g(x) for all x.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.gdp_regret(hs.gaussian(1.0), 1.0)
    >>> b.lower == 0.0 and b.upper < 2e-6
    True
    """
    options = _checked(options)
    mu, tol = _inside("mu", mu, 0, 100), _inside("tol", tol, 0.999e-10, 0.1001)
    routes: set[str] = set()
    ask = query.asker(run, **options)
    # Beyond `far` little is left, and it is added: G_mu(eps) < Phi(mu/2 - eps/mu), 8e-11 at 6.4; 1/(1 + e^45) is 3e-20.
    far = min(mu * (mu / 2 + 6.4), 45.0)
    grid = [-far / 32, *np.linspace(0.0, far, 17).tolist(), far * 33 / 32]
    points = {p.eps: p for p in _ask(ask, np.array(grid), routes)}
    order, best = sorted(points), 0.0
    for eps in order[1:-1]:
        best = max(best, _regret_lower(mu, points[eps]))
    heap: list[Any] = [
        (-_regret_upper(mu, [points[e] for e in order[i - 1 : i + 3]]), order[i - 1 : i + 3])
        for i in range(1, len(order) - 2)
    ]
    heapq.heapify(heap)
    beyond = _tangent(mu, far, far)[1] / (1 + math.exp(far))
    while -heap[0][0] > best + tol:
        if len(points) >= POINTS:
            raise AccuracyError(f"gdp_regret reached [{best:g}, {-heap[0][0]:g}], tol={tol:g} was asked for")
        _, (a, b, c, d) = heapq.heappop(heap)
        middle = 0.5 * (b + c)
        if not b < middle < c:
            raise AccuracyError(f"gdp_regret: the deltas are too wide for tol={tol:g}; ask for a larger one")
        (points[middle],) = _ask(ask, np.array([middle]), routes)
        best = max(best, _regret_lower(mu, points[middle]))
        for four in ((a, b, middle, c), (b, middle, c, d)):
            heapq.heappush(heap, (-_regret_upper(mu, [points[e] for e in four]), four))
    upper = max(best, -heap[0][0], beyond)
    return Bound(
        best, 0.5 * (best + upper), upper, "+".join(sorted(routes)), True, Budget({"chords": upper - best}, "rate")
    )


def _ask(ask, eps: np.ndarray, routes: set[str]) -> list[_Point]:
    bound = ask(eps)
    routes.update(bound.route.split("+"))
    return [_Point(*map(float, row)) for row in zip(eps, bound.lower, bound.estimate, bound.upper, strict=True)]


def _tangent(mu: float, t: float, eps: float) -> tuple[float, float]:
    """Bounds of T_t(e^eps), computed with its rounding: erfc within 16 u (libm), its argument within 4 u of the sum of
    the sizes of its terms, and Phi(z) changes by a factor of at most e^{(|z|+1) dz}."""
    ends = []
    for sign in (1.0, -1.0):
        z = sign * mu / 2 - t / mu
        value = 0.5 * math.erfc(-z / math.sqrt(2))
        ends.append((value, value * (32 * U + 8 * U * (mu / 2 + abs(t) / mu) * (abs(z) + 1))))
    x = math.exp(eps)
    value = ends[0][0] - x * ends[1][0]
    error = ends[0][1] + x * ends[1][1] + 8 * U * (ends[0][0] + x * ends[1][0])
    return value - error, value + error


def _covered(mu: float, left: _Point, right: _Point) -> bool:
    """Whether one tangent of G_mu lies above the chord of two points: then G_mu covers the interval.

    The later a tangent touches, the lower it is at the left point and the higher at the right one: where it is below
    the chord at one of them, one that touches nearer to it may do, and none where it is below at both."""
    low, high = left.eps, right.eps
    for _ in range(TOUCHES):
        t = 0.5 * (low + high)
        above = [_tangent(mu, t, point.eps)[0] >= point.high for point in (left, right)]  # [theory: risk.tangents]
        if all(above) or not any(above):
            return all(above)
        low, high = (t, high) if above[0] else (low, t)
    return False


def _above(mu: float, point: _Point) -> bool:
    """Whether G_mu lies above a point."""
    return _tangent(mu, point.eps, point.eps)[0] >= point.high


def _chord_upper(left: _Point, right: _Point, eps: float) -> float:
    """An upper bound of delta(eps) between two points: where a single answer is wide, its neighbours bound it."""
    share = math.expm1(eps - left.eps) / math.expm1(right.eps - left.eps)  # of the way from left to right, in x
    return (left.high + (right.high - left.high) * share) * UP + 16 * U * abs(left.high - right.high)


def _needed(best: float, point: _Point) -> float:
    """The larger of `best` and the mu that is proved to be needed at a point."""
    if best > 0 and _tangent(best, point.eps, point.eps)[1] > point.low:
        return best
    return max(best, _mu_lower(point))


def _mu_lower(point: _Point) -> float:
    """A mu whose Gaussian curve is proved not to lie above the run's at this point: G_mu(eps) <= delta(eps)."""
    if not point.low > 0:
        return 0.0
    lo, hi = 0.0, 1.0
    while _tangent(hi, point.eps, point.eps)[1] < point.low and hi < 1e6:
        lo, hi = hi, 2 * hi
    for _ in range(100):
        mid = 0.5 * (lo + hi)
        if not lo < mid < hi or hi - lo <= 1e-13 * hi:
            break
        if _tangent(mid, point.eps, point.eps)[1] <= point.low:
            lo = mid
        else:
            hi = mid
    return lo


def _regret_lower(mu: float, point: _Point) -> float:
    return (_tangent(mu, point.eps, point.eps)[0] - point.high) / (1 + math.exp(point.eps)) * DOWN


def _regret_upper(mu: float, four: list[_Point]) -> float:
    """An upper bound of (G_mu - delta) / (1 + x) between the inner two of four points [theory: risk.regret].

    G_mu is below its chord, delta above the outer chords prolonged and so above their mixtures; a ratio of linear
    functions is largest at an end."""
    x = [math.exp(point.eps) for point in four]
    inner = [_tangent(mu, point.eps, point.eps)[1] for point in four[1:3]]
    low, high = [point.low for point in four], [point.high for point in four]
    r = (x[2] - x[1]) / (x[1] - x[0]), (x[2] - x[1]) / (x[3] - x[2])
    slack = [32 * U * (low[1 + i] + high[3 * i] * (1 + r[i])) * (1 + r[i]) for i in (0, 1)]
    after = max(0.0, low[1] + (low[1] - high[0]) * r[0] - slack[0])  # the left chord at the right end
    before = max(0.0, low[2] + (low[2] - high[3]) * r[1] - slack[1])  # the right chord at the left end
    best = math.inf
    for mix in (0.0, 0.5, 1.0):
        floor = (mix * low[1] + (1 - mix) * before, mix * after + (1 - mix) * low[2])
        ends = [(inner[i] - floor[i]) / (1 + x[1 + i]) for i in (0, 1)]
        best = min(best, max(ends))
    return best * UP + 16 * U


def _checked(options: Asked) -> Asked:
    if "rtol" in options:
        raise DomainError("rtol is not an option here; ask for a width with tol")
    return options


def _inside(name: str, value, lo: float, hi: float) -> float:
    number = real(name, value, f"between {lo:g} and {hi:g}")
    if not lo < number < hi:
        raise DomainError(f"{name} must be between {lo:g} and {hi:g}, got {value!r}")
    return number


def _vague(run, lower: float, upper: float, tol: float) -> str:
    return (
        f"mu_gdp reached mu >= {lower:g} without proving {upper:g} for {run!r}: tol={tol:g} is too small for its deltas"
    )
