"""A run summed up by one number: the smallest mu whose Gaussian curve covers it, and how much that says too much.

With x = e^eps the Gaussian curve is the largest of its tangents, which have a closed form [theory: risk.tangents]:

    G_mu(x) = sup_t T_t(x),        T_t(x) = Phi(mu/2 - t/mu) - x Phi(-mu/2 - t/mu),    touching at x = e^t.

The run's curve is convex in x, hence below the chord between two certified points. If one tangent lies above both ends
of the chord, then delta <= chord <= T_t <= G_mu on the whole interval: two comparisons prove a continuum of eps. The
intervals are halved until each is proved, so nothing rests on a grid.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _core, query
from .bound import AccuracyError, Bound, Budget, DomainError
from .chords import EPS_MAX
from .outward import DOWN, UP, U
from .what.mechanism import as_run, real
from .what.topk import Enclosure, enclosed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .types import Asked, Ran

POINTS = 20_000
"""Limit of points asked of a curve; a run that is Gaussian but for the last digit needs about 1/sqrt(tol)."""

FIRST = 9
"""Points from which the search starts: with a tenth of mu to spare a tail of six deviations takes about so many."""

LEAST = 1e-150
"""Least mu that is tried, where none is known to be needed: its square and eps/mu are doubles."""

PART = 0.9
"""Of the tolerance, by which the mu that is proved exceeds the one that is needed."""

ROOM = 0.01
"""Part of tol that the widths of deltas may take up."""

REST = 0.25
"""Part of what tol of mu is worth in delta, from whose width on the digits of 1 - delta are asked."""

ROUGH, VAGUE = 1e-3, 0.1
"""Relative width of the first deltas; part of what a curve leaves to delta that the width of delta may be: of those
that are wider digits are asked."""

SQRT2PI = math.sqrt(2 * math.pi)

CLOSE = 1e-4
"""Last step, as a part of mu, of the estimate of it at a point; it is far nearer where it is about the largest."""

EPS, LOW, HIGH, LEFT, LEFT_HIGH, MU, IS_ROUGH, COVERED = range(8)
"""Columns of the rows of points, along which eps rises (gdp.c of the C core)."""


def mu_gdp(run: Ran, delta: float, *, tol: float = 1e-5, **options: Unpack[Asked]) -> Bound[float]:
    """Certified bounds of the smallest mu whose Gaussian curve G_mu lies on or above the run's, at every delta from
    `delta` up.

    G_mu(eps) >= delta(eps) at 0 and for all eps > 0 with delta(eps) >= `delta` (and, with direction "both", for the
    eps < 0 that mirror them): whoever reports mu reports a valid eps at every delta from `delta` to 1. Below `delta` a
    subsampled run may leave the curve.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    delta : float
        In (0, 1): where the cover begins.
    tol : float, default 1e-5
        Relative width of the answer, 1e-9 to 0.5; of a run that is known between two curves, that of both of their mu.
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
    ends = enclosed(as_run(run))
    if ends:
        return _between(ends, delta, tol, options)
    ask = _Asker(run, tol, options)
    points = ask(np.zeros(1))
    if not points[0, HIGH]:
        return Bound(0.0, 0.0, 0.0, ask.route, True, Budget({"cover": 0.0}, "mu"))
    ask.fine = ROOM * tol * min(points[0, HIGH], 1 - points[0, HIGH])  # next to 1 little of delta is much of mu
    best = 0.0
    if end.upper > 0:  # delta is at least `delta` at end.lower, and at most that at end.upper
        if end.lower > 0:
            best = _core.gdp_fit(best, end.lower, CLOSE, _known(end.lower, delta))
        points = np.concatenate(
            [points, ask(np.linspace(0.0, end.upper, FIRST)[1:-1], ROUGH), _known(end.upper, delta)]
        )
    best, upper, count = _core.gdp_fit(best, end.lower, CLOSE, points), LEAST, len(points)
    while True:
        upper = ask.mu = max(upper, best * (1 + PART * tol))
        over = _core.gdp_cover(upper, points)
        wide = points[:, HIGH] - points[:, LOW]
        vague = (points[:, IS_ROUGH] > 0) & (wide > VAGUE * (over + wide))
        if vague.any():
            count += int(vague.sum())
            points[vague, IS_ROUGH] = 0
            points[vague] = ask.better(points[vague])
            best = _core.gdp_fit(best, end.lower, CLOSE, points)
            continue
        new = _core.gdp_cuts(upper, 1 + PART * tol, 2 * ROUGH / VAGUE, points, over)
        if new is not None and not len(new):
            break
        count += 0 if new is None else len(new)
        if new is None or count > POINTS:
            raise AccuracyError(_vague(run, best, upper, tol))
        new = ask.better(new)
        best = _core.gdp_fit(best, end.lower, CLOSE, new)
        points = np.concatenate([points, new])
        points = points[np.argsort(points[:, EPS])]
    if not points[: max(len(points) - 1, 1), COVERED].all():
        raise AccuracyError(_vague(run, best, upper, tol))
    mid = 0.5 * (best + upper)
    return Bound(best, mid, upper, ask.route, True, Budget({"cover": upper - best}, "mu"))


def _between(ends: Enclosure, delta: float, tol: float, options: Any) -> Bound[float]:
    """mu of a run that is known between two curves: a larger curve needs no smaller one."""
    below, above = ([mu_gdp(one, delta, tol=tol, **options) for one in side] for side in (ends.below, ends.above))
    if ends.attained:
        below.append(mu_gdp(ends.attained, delta, tol=tol, **{**options, "adjacency": "add_remove"}))
    low, high = max(below, key=lambda b: b.lower), min(above, key=lambda b: b.upper)
    mid, gap = 0.5 * (low.lower + high.upper), high.upper - low.lower
    return Bound(low.lower, mid, high.upper, high.route, True, Budget({"cover": gap}, "mu"), "between two curves")


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
    ask = _Asker(run, tol, options)
    # Beyond `far` little is left, and it is added: G_mu(eps) < Phi(mu/2 - eps/mu), 8e-11 at 6.4; 1/(1 + e^45) is 3e-20.
    far = min(mu * (mu / 2 + 6.4), 45.0)
    grid = [-far / 32, *np.linspace(0.0, far, 17).tolist(), far * 33 / 32]
    points = {p.eps: p for p in ask.points(grid)}
    order, best = sorted(points), 0.0
    for eps in order[1:-1]:
        best = max(best, _regret_lower(mu, points[eps]))
    heap: list[Any] = [
        (-_regret_upper(mu, [points[e] for e in order[i - 1 : i + 3]]), order[i - 1 : i + 3])
        for i in range(1, len(order) - 2)
    ]
    heapq.heapify(heap)
    beyond = _core.gdp_tangent(mu, far, far)[1] / (1 + math.exp(far))
    while -heap[0][0] > best + tol:
        if len(points) >= POINTS:
            raise AccuracyError(f"gdp_regret reached [{best:g}, {-heap[0][0]:g}], tol={tol:g} was asked for")
        _, (a, b, c, d) = heapq.heappop(heap)
        middle = 0.5 * (b + c)
        if not b < middle < c:
            raise AccuracyError(f"gdp_regret: the deltas are too wide for tol={tol:g}; ask for a larger one")
        (points[middle],) = ask.points([middle])
        best = max(best, _regret_lower(mu, points[middle]))
        for four in ((a, b, middle, c), (b, middle, c, d)):
            heapq.heappush(heap, (-_regret_upper(mu, [points[e] for e in four]), four))
    upper = max(best, -heap[0][0], beyond)
    return Bound(best, 0.5 * (best + upper), upper, ask.route, True, Budget({"chords": upper - best}, "rate"))


class _Point(NamedTuple):
    """delta(eps) between low and high."""

    eps: float
    low: float
    high: float


class _Asker:
    """Deltas of one run, as rows of points. mu: about the one that is looked for, once something is known of it; fine:
    a part of delta that its width may always be."""

    def __init__(self, run: Ran, tol: float, options: Asked) -> None:
        self.asker, self.tol, self.mu, self.fine = query.Asker(run, **options), tol, 0.0, 0.0
        self.routes: set[str] = set()

    @property
    def route(self) -> str:
        return "+".join(sorted(self.routes))

    def points(self, eps: list[float]) -> list[_Point]:
        """With all digits of delta, and none of 1 - delta."""
        return [_Point(*row) for row in self._asked(np.array(eps), 0.0)[:, : HIGH + 1].tolist()]

    def __call__(self, eps: NDArray[np.float64], wide: float = 0.0) -> NDArray[np.float64]:
        """Points of which nothing is known; where digits matter, with those of 1 - delta where delta has too few."""
        found = self._asked(eps, wide or self.fine)
        found[:, IS_ROUGH] = wide > 0
        if not wide and (found[:, LOW] > 0.5).any():
            z = 0.5 * self.mu - eps / self.mu if self.mu else 0.0
            worth = self.tol * (self.mu * np.exp(-0.5 * z * z) / SQRT2PI if self.mu else found[:, LEFT_HIGH])
            short = (found[:, LOW] > 0.5) & (found[:, HIGH] - found[:, LOW] > REST * worth)
            if short.any():
                least, most = self.asker.rest(eps[short])  # NaN where it is not known
                found[short, LEFT] = np.fmax(found[short, LEFT], least)
                found[short, LEFT_HIGH] = np.fmin(found[short, LEFT_HIGH], most)
        return found

    def better(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same points, of which something is known, with the digits that are wanted of them."""
        found, far = np.empty_like(points), points[:, IS_ROUGH] > 0
        for mine, wide in ((~far, 0.0), (far, ROUGH)):
            if mine.any():
                found[mine] = self(points[mine, EPS], wide)
        found[:, HIGH] = np.minimum(found[:, HIGH], points[:, HIGH])
        found[:, LEFT] = np.maximum(found[:, LEFT], points[:, LEFT])
        found[:, [MU, COVERED]] = points[:, [MU, COVERED]]
        return found

    def _asked(self, eps: NDArray[np.float64], wide: float) -> NDArray[np.float64]:
        bound = self.asker(eps, 0.0, wide)
        self.routes.update(bound.route.split("+"))
        return _rows(eps, bound.lower, bound.upper)


def _rows(eps, low, high) -> NDArray[np.float64]:
    found = np.zeros((np.size(eps), 8))
    found[:, EPS], found[:, LOW], found[:, HIGH] = eps, low, high
    found[:, LEFT] = np.maximum(np.nextafter(1 - found[:, HIGH], -1.0), 0.0)
    found[:, LEFT_HIGH] = np.nextafter(1 - found[:, LOW], 2.0)
    return found


def _known(eps: float, delta: float) -> NDArray[np.float64]:
    """A point that is known without a query."""
    return _rows([eps], delta, delta)


def _regret_lower(mu: float, point: _Point) -> float:
    return (_core.gdp_tangent(mu, point.eps, point.eps)[0] - point.high) / (1 + math.exp(point.eps)) * DOWN


def _regret_upper(mu: float, four: list[_Point]) -> float:
    """An upper bound of (G_mu - delta) / (1 + x) between the inner two of four points [theory: risk.regret].

    G_mu is below its chord, delta above the outer chords prolonged and so above their mixtures; a ratio of linear
    functions is largest at an end."""
    x = [math.exp(point.eps) for point in four]
    inner = [_core.gdp_tangent(mu, point.eps, point.eps)[1] for point in four[1:3]]
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
