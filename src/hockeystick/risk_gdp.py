"""A run summed up by one number: the smallest mu whose Gaussian curve covers it, and how much that says too much.

With x = e^eps the Gaussian curve is the largest of its tangents, which have a closed form [theory: risk.tangents]:

    G_mu(x) = sup_t T_t(x),        T_t(x) = Phi(mu/2 - t/mu) - x Phi(-mu/2 - t/mu),    touching at x = e^t.

The run's curve is convex in x, hence below the chord between two certified points. If one tangent lies above both ends
of the chord, then delta <= chord <= T_t <= G_mu on the whole interval: two comparisons prove a continuum of eps. The
intervals are halved until each is proved, so nothing rests on a grid.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import query
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

TOUCHES = 6
"""Tangents that are tried for an interval."""

SHARE, PIECES = 0.95, 4
"""Of the longest interval that one tangent covers if slacks are what they seem; intervals that one is cut into at once,
before more is known of them."""

ROOM = 0.01
"""Part of tol that the widths of deltas may take up."""

ROUGH, VAGUE = 1e-3, 0.1
"""Relative width of the first deltas; part of what a curve leaves to delta that the width of delta may be: of those
that are wider digits are asked."""

SAMPLES = 5
"""Places of an interval at which the slack is estimated before it is cut."""

SQRT2, SQRT2PI = math.sqrt(2), math.sqrt(2 * math.pi)
_NORMAL = NormalDist()

CLOSE = 1e-4
"""Last step, as a part of mu, of the estimate of it at a point; it is far nearer then."""


class _Point(NamedTuple):
    """delta(eps) between low and high, and about the mu of the Gaussian curve through low."""

    eps: float
    low: float
    mid: float
    high: float
    mu: float = 0.0


_Cell = tuple[_Point, _Point]


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
    routes: set[str] = set()
    ask = query.asker(run, **options)
    (first,) = _ask(ask, [0.0], routes)
    if not first.high:
        return Bound(0.0, 0.0, 0.0, "+".join(sorted(routes)), True, Budget({"cover": 0.0}, "mu"))
    fine = ROOM * tol * min(first.high, 1 - first.high)  # where delta is next to 1 little of it is much of mu
    points, best = [first], 0.0
    if end.upper > 0:  # delta is at least `delta` at end.lower, and at most that at end.upper
        last = _Point(end.upper, delta, delta, delta)
        best = _estimated([last._replace(eps=end.lower)], best, end.lower)[1] if end.lower > 0 else best
        points += [*_ask(ask, np.linspace(0.0, end.upper, FIRST)[1:-1].tolist(), routes, ROUGH), last]
    points, best = _estimated(points, best, end.lower)
    upper, count, rough = LEAST, len(points), {point.eps for point in points[1:-1]}
    cells = list(itertools.pairwise(points)) or [(points[0], points[0])]
    while True:
        upper = max(upper, best * (1 + PART * tol))
        slack = _slacks(upper, cells)
        vague = {
            p.eps: p
            for cell, ends in zip(cells, slack, strict=True)
            for p, over in zip(cell, ends, strict=True)
            if p.eps in rough and p.high - p.low > VAGUE * (over + p.high - p.low)
        }
        if vague:
            rough -= vague.keys()
            count += len(vague)
            found, best = _estimated(
                [p._replace(mu=vague[p.eps].mu) for p in _ask(ask, list(vague), routes, fine)], best, end.lower
            )
            better = {p.eps: p._replace(high=min(p.high, vague[p.eps].high)) for p in found}
            points = [better.get(p.eps, p) for p in points]
            cells = [(better.get(left.eps, left), better.get(right.eps, right)) for left, right in cells]
            continue
        stuck = [cell for cell, ends in zip(cells, slack, strict=True) if min(ends) < 0]  # until a larger mu is needed
        seen = [(cell, ends) for cell, ends in zip(cells, slack, strict=True) if min(ends) >= 0]
        todo = _uncovered(upper, seen)
        if not todo:
            break
        cuts = [_cuts(points, *cell, upper, tol) for cell in todo]
        count += sum(len(inner) for inner in cuts)
        if count > POINTS or not all(cuts):
            raise AccuracyError(_vague(run, best, upper, tol))
        inside = [(eps, *cell) for cell, inner in zip(todo, cuts, strict=True) for eps in inner]
        far = {eps for eps, left, right in inside if _is_far(upper, left, right, eps)}
        rough |= far
        groups = (
            ([eps for eps, *_ in inside if (eps in far) == is_far], ROUGH if is_far else fine) for is_far in (0, 1)
        )
        answers = {p.eps: p for group, wide in groups if group for p in _ask(ask, group, routes, wide)}
        new = [_bounded(left, right, answers[eps]) for eps, left, right in inside]
        new, best = _estimated(new, best, end.lower)
        between = iter(new)
        cells = stuck + [
            cell
            for (left, right), inner in zip(todo, cuts, strict=True)
            for cell in itertools.pairwise([left, *itertools.islice(between, len(inner)), right])
        ]
        points = sorted(points + new)
    if stuck:
        raise AccuracyError(_vague(run, best, upper, tol))
    mid = 0.5 * (best + upper)
    return Bound(best, mid, upper, "+".join(sorted(routes)), True, Budget({"cover": upper - best}, "mu"))


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
    routes: set[str] = set()
    ask = query.asker(run, **options)
    # Beyond `far` little is left, and it is added: G_mu(eps) < Phi(mu/2 - eps/mu), 8e-11 at 6.4; 1/(1 + e^45) is 3e-20.
    far = min(mu * (mu / 2 + 6.4), 45.0)
    grid = [-far / 32, *np.linspace(0.0, far, 17).tolist(), far * 33 / 32]
    points = {p.eps: p for p in _ask(ask, grid, routes)}
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
        (points[middle],) = _ask(ask, [middle], routes)
        best = max(best, _regret_lower(mu, points[middle]))
        for four in ((a, b, middle, c), (b, middle, c, d)):
            heapq.heappush(heap, (-_regret_upper(mu, [points[e] for e in four]), four))
    upper = max(best, -heap[0][0], beyond)
    return Bound(
        best, 0.5 * (best + upper), upper, "+".join(sorted(routes)), True, Budget({"chords": upper - best}, "rate")
    )


def _ask(ask, eps: list[float], routes: set[str], wide: float = 0.0) -> list[_Point]:
    bound = ask(np.array(eps), 0.0, wide)
    routes.update(bound.route.split("+"))
    ends = bound.lower.tolist(), bound.estimate.tolist(), bound.upper.tolist()
    return [_Point(*row) for row in zip(eps, *ends, strict=True)]


def _tangent(mu: float, t, eps, erfc=math.erfc, exp=math.exp):
    """Bounds of T_t(e^eps), of numbers or arrays, with its rounding: erfc within 16 u (libm), its argument within 4 u
    of the sum of the sizes of its terms, and Phi(z) changes by a factor of at most e^{(|z|+1) dz}."""
    ends = []
    for sign in (1.0, -1.0):
        z = sign * mu / 2 - t / mu
        value = 0.5 * erfc(-z / SQRT2)
        ends.append((value, value * (32 * U + 8 * U * (mu / 2 + abs(t) / mu) * (abs(z) + 1))))
    x = exp(eps)
    value = ends[0][0] - x * ends[1][0]
    error = ends[0][1] + x * ends[1][1] + 8 * U * (ends[0][0] + x * ends[1][0])
    return value - error, value + error


MANY = 24
"""Tangents that arrays take no longer for."""


def _tangents_lower(mu: float, t: list[float], eps: list[float]) -> list[float]:
    """Lower bounds of T_t(e^eps)."""
    if len(t) < MANY:
        return [_tangent(mu, *at)[0] for at in zip(t, eps, strict=True)]
    return _tangent(mu, np.array(t), np.array(eps), _erfc, np.exp)[0].tolist()


def _erfc(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.fromiter(map(math.erfc, z.tolist()), float, z.size)


def _slacks(mu: float, cells: list[_Cell]) -> list[tuple[float, float]]:
    """By how much G_mu lies above both ends of each cell."""
    points = list({point.eps: point for cell in cells for point in cell}.values())
    eps = [point.eps for point in points]
    over = {p.eps: low - p.high for p, low in zip(points, _tangents_lower(mu, eps, eps), strict=True)}
    return [(over[left.eps], over[right.eps]) for left, right in cells]


def _uncovered(mu: float, cells: list[tuple[_Cell, tuple[float, float]]]) -> list[_Cell]:
    """The cells above whose chord no tangent of G_mu is seen to lie: it covers the others [theory: risk.tangents]. With
    each cell comes by how much G_mu lies above its ends.

    The later a tangent touches, the lower it is at the left point and the higher at the right one: where it is below
    the chord at one of them, one that touches nearer to it may do, and none where it is below at both. It falls below
    G_mu with the square of the distance."""
    left, todo = list[_Cell](), []
    for cell, slack in cells:
        low, high = cell[0].eps, cell[1].eps
        before, after = (math.sqrt(over) for over in slack)
        todo.append((cell, low, high, low + (high - low) * (before / (before + after) if before + after else 0.5)))
    for _ in range(TOUCHES):
        t = [touch for *_, touch in todo]
        sides = [_tangents_lower(mu, t, [cell[side].eps for cell, *_ in todo]) for side in (0, 1)]
        rest = []
        for (cell, low, high, touch), *values in zip(todo, *sides, strict=True):
            above = [value >= point.high for value, point in zip(values, cell, strict=True)]
            if not any(above):
                left.append(cell)
            elif not all(above):
                low, high = (touch, high) if above[0] else (low, touch)
                rest.append((cell, low, high, 0.5 * (low + high)))
        todo = rest
        if not todo:
            break
    return left + [cell for cell, *_ in todo]


def _cuts(points: list[_Point], left: _Point, right: _Point, upper: float, tol: float) -> list[float]:
    """Where to cut an interval that is not covered: with s = upper/mu(eps) - 1 to spare, one tangent covers about
    2 upper sqrt(2 s) around eps. mu(eps) between the points by parabolas; no certificate rests on it."""
    i = bisect.bisect_left(points, (left.eps,))
    near = points[max(i - 1, 0) : i + 3]
    eps = [left.eps + (right.eps - left.eps) * (j + 0.5) / SAMPLES for j in range(SAMPLES)]
    known = _through(near, eps)
    most = max(upper, (1 + PART * tol) * max(known))
    dense = [1 / math.sqrt(2 * min(most / max(mu, 1e-9 * most) - 1, 1.0)) for mu in known]
    wanted = sum(dense) / SAMPLES * (right.eps - left.eps) / (2 * SHARE * upper)
    pieces = PIECES if wanted > 2 * PIECES else max(math.ceil(wanted), 2)
    found, done, whole = list[float](), 0.0, sum(dense)
    for j, d in enumerate(dense):  # each piece has its part of the whole
        while len(found) < pieces - 1 and done + d >= whole * (len(found) + 1) / pieces:
            part = (whole * (len(found) + 1) / pieces - done) / d
            found.append(left.eps + (right.eps - left.eps) * (j + part) / SAMPLES)
        done += d
    ends = [left.eps, *found, right.eps]
    return found if all(a < b for a, b in itertools.pairwise(ends)) else []


def _is_far(mu: float, left: _Point, right: _Point, eps: float) -> bool:
    """Whether G_mu seems to leave so much between two points that a few digits of delta will do."""
    needed = left.mu + (eps - left.eps) / (right.eps - left.eps) * (right.mu - left.mu)
    z = 0.5 * mu - eps / mu
    return math.exp(-0.5 * z * z) / SQRT2PI * (mu - needed) > 2 * ROUGH / VAGUE * 0.5 * math.erfc(-z / SQRT2)


def _through(near: list[_Point], eps: list[float]) -> list[float]:
    """The polynomial through the mu of a few points."""
    at, rows, values = [p.eps for p in near], [p.mu for p in near], list[float]()
    for k in range(1, len(at)):
        for j in range(len(at) - 1, k - 1, -1):
            rows[j] = (rows[j] - rows[j - 1]) / (at[j] - at[j - k])
    for e in eps:
        value = 0.0
        for row, own in zip(reversed(rows), reversed(at), strict=True):
            value = value * (e - own) + row
        values.append(value)
    return values


def _bounded(left: _Point, right: _Point, point: _Point) -> _Point:
    """A point between two, whose chord bounds it from above where its own answer is wide; and whose mu is about theirs
    until it is known."""
    share = math.expm1(point.eps - left.eps) / math.expm1(right.eps - left.eps)  # of the way from left to right, in x
    chord = (left.high + (right.high - left.high) * share) * UP + 16 * U * abs(left.high - right.high)
    part = (point.eps - left.eps) / (right.eps - left.eps)
    return point._replace(high=min(point.high, chord), mu=left.mu + part * (right.mu - left.mu))


def _estimated(new: list[_Point], best: float, end: float) -> tuple[list[_Point], float]:
    """The points with their mu, and the larger of `best` and the mu that is proved to be needed at one of them, up to
    eps = `end`."""
    found = []
    for point in new:
        mu = _mu_of(point, point.mu, CLOSE)
        if point.eps <= end and mu > best * (1 - CLOSE):
            mu = _mu_of(point, mu, 1e-15)
            if mu > best:
                best = max(best, _mu_lower(point, mu))
        found.append(point._replace(mu=mu))
    return found, best


def _mu_of(point: _Point, mu: float, close: float) -> float:
    """About the mu whose Gaussian curve goes through the lower end of a point, by Newton's rule for log G, which is
    concave in mu, so that steps rise from below. mu: where it begins, 0 where nothing is known; close: the last step,
    as a part of it."""
    eps, delta = point.eps, point.low
    if not delta > 0:
        return 0.0
    if not mu > 0:
        z = _NORMAL.inv_cdf(delta) if delta < 1 else 8.3
        mu = -2 * _NORMAL.inv_cdf(0.5 * max(1 - delta, U))  # of eps = 0: G falls with eps, and is below the normal tail
        mu = max(mu, z + math.sqrt(z * z + 2 * eps), LEAST)
    for _ in range(40):
        a, b = 0.5 * mu - eps / mu, -0.5 * mu - eps / mu
        value = 0.5 * (math.erfc(-a / SQRT2) - math.exp(eps) * math.erfc(-b / SQRT2))
        slope = math.exp(-0.5 * a * a) / SQRT2PI
        if not (value > 0 and slope > 0):
            break
        step = math.log(delta / value) * value / slope
        mu = max(mu + step, 0.5 * mu)
        if abs(step) <= close * mu:
            break
    return mu


def _mu_lower(point: _Point, near: float) -> float:
    """A mu whose Gaussian curve is proved not to lie above the run's at this point: G_mu(eps) <= delta(eps). near:
    about the largest one."""
    part = 1e-15
    while part < 1:
        mu = near * (1 - part)
        if _tangent(mu, point.eps, point.eps)[1] <= point.low:
            return mu
        part *= 4
    return 0.0


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
