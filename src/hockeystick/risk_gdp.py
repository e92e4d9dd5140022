"""A run summed up by one number: the smallest mu whose Gaussian curve covers it, and how much that says too much.

With x = e^eps the Gaussian curve is the largest of its tangents, which have a closed form [theory: risk.tangents]:

    G_mu(x) = sup_t T_t(x),        T_t(x) = Phi(mu/2 - t/mu) - x Phi(-mu/2 - t/mu),    touching at x = e^t.

The run's curve is convex in x, hence below the chord between two certified points. If one tangent lies above both ends
of the chord, then delta <= chord <= T_t <= G_mu on the whole interval: two comparisons prove a continuum of eps. The
intervals are halved until each is proved, so nothing rests on a grid.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, query
from .bound import AccuracyError, Bound, Budget, DomainError
from .chords import EPS_MAX, rate_lower, rate_upper
from .outward import DOWN, UP, U
from .what.mechanism import as_run, within
from .what.topk import Enclosure, enclosed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .types import Asked, Ran

POINTS = 20_000
"""Limit of points asked of a curve; a run that is Gaussian but for the last digit needs about 1/sqrt(tol)."""

FIRST = 7
"""Points from which the search starts: with a tenth of mu to spare a tail of six deviations takes about so many."""

LEAST = 1e-150
"""Least mu that is tried, where none is known to be needed: its square and eps/mu are doubles."""

PART = 0.9
"""Of the tolerance, by which the mu that is proved exceeds the one that is needed."""

ROOM = 0.05
"""Part of tol that the widths of deltas may take up."""

SIDE, LINE, REST = 3.0, 1e-9, 0.25
"""Deviations by which eps lies below the middle of a Gaussian loss, from which on digits of 1 - delta are asked, not of
delta, in runs where the width that delta has on a line is more than a part of what tol of mu is worth in it at 0; from
which width on, these are asked elsewhere too."""

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
        Certified bounds of mu: at `lower` some eps is not covered, at `upper`, at most (1 + tol) times that, all are
        proved to be. What is asked of the curve is at most 20,000 points, each once or twice. Runs that are Gaussian
        but for `tol` need most, as a chord is to stay that near to the curve: up to 0.6 (mu/2 + z)/sqrt(tol) deltas, z
        the normal quantile of 1 - delta. Most runs take 5 to 20 times as long as one delta.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`; AccuracyError also if `tol` cannot be reached, or where eps at `delta` is above 690 and e^eps no
        double.

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
    delta, tol = within("delta", delta, 0, 1, "()"), within("tol", tol, 1e-9, 0.5)
    ask, best = _Asker(run, tol, options), 0.0
    end = ask.asker.root(delta, ROOM * tol)
    if end.lower == math.inf:  # delta(eps) stays above `delta`, and every Gaussian curve falls to 0
        return Bound(math.inf, math.inf, math.inf, end.route, True, Budget({"cover": 0.0}, "mu"))
    if end.upper > EPS_MAX:
        raise AccuracyError(
            f"mu_gdp follows the curve up to eps = {EPS_MAX:g}, where e^eps is a double; at delta={delta!r} eps is"
            f" {end.upper:.6g}: ask for a larger delta, or report `epsilon`"
        )
    ends = enclosed(as_run(run))
    if ends:
        return _between(ends, delta, tol, options)
    if end.lower > 0:
        best = ask.mu = _core.gdp_fit(best, end.lower, CLOSE, _known(end.lower, delta))
    if end.upper > 0:  # delta is at least `delta` at end.lower, and at most that at end.upper
        points = np.concatenate([ask(np.linspace(0.0, end.upper, FIRST)[:-1], ROUGH), _known(end.upper, delta)])
    else:
        points = ask(np.zeros(1))
    if not points[0, HIGH]:
        return Bound(0.0, 0.0, 0.0, ask.route, True, Budget({"cover": 0.0}, "mu"))
    best, upper, count = _core.gdp_fit(best, end.lower, CLOSE, points), LEAST, len(points)
    while True:
        upper = ask.mu = max(upper, best * (1 + PART * tol))
        over = _core.gdp_cover(upper, points)
        wide = _widths(points)
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
    mu, tol = within("mu", mu, 0, 100, "()"), within("tol", tol, 1e-10, 0.1)
    tiny, mu = mu < LEAST, max(mu, LEAST)
    ask = _Asker(run, tol, options)
    # Beyond `far` little is left, and it is added: G_mu(eps) < Phi(mu/2 - eps/mu), 8e-11 at 6.4; 1/(1 + e^45) is 3e-20.
    far = max(min(mu * (mu / 2 + 6.4), 45.0), 1e-9)  # points that doubles tell apart
    beyond = _core.gdp_tangent(mu, far, far)[1] / (1 + math.exp(far))
    points = ask.deltas(np.array([-far / 32, *np.linspace(0.0, far, 17), far * 33 / 32]))
    best = max(0.0, *(_regret_lower(mu, point) for point in points[1:-1]))
    upper = np.array([_regret_upper(mu, points[i : i + 4]) for i in range(len(points) - 3)])
    while (wide := np.flatnonzero(upper > best + tol)).size:
        middle = 0.5 * (points[wide + 1, EPS] + points[wide + 2, EPS])
        if len(points) >= POINTS:
            raise AccuracyError(f"gdp_regret reached [{best:g}, {upper.max():g}], tol={tol:g} was asked for")
        if not ((points[wide + 1, EPS] < middle) & (middle < points[wide + 2, EPS])).all():
            raise AccuracyError(f"gdp_regret: the deltas are too wide for tol={tol:g}; ask for a larger one")
        new = ask.deltas(middle)
        best = max(best, *(_regret_lower(mu, point) for point in new))
        points = np.insert(points, wide + 2, new, axis=0)
        upper = np.insert(upper, wide + 1, upper[wide])  # both halves of a cell are known as the whole was
        halves = wide + np.arange(wide.size)
        for i in (*halves, *(halves + 1)):
            upper[i] = min(upper[i], _regret_upper(mu, points[i : i + 4]))
    high = max(best, float(upper.max()), beyond)
    if tiny:  # G_mu rises with mu, by less than mu does
        best, high = max(rate_lower(best - LEAST), 0.0), rate_upper(high + LEAST)
    return Bound(best, 0.5 * (best + high), high, ask.route, True, Budget({"chords": high - best}, "rate"))


class _Asker:
    """Deltas of one run, as rows of points. mu: about the one that is looked for, once something is known of it."""

    def __init__(self, run: Ran, tol: float, options: Asked) -> None:
        self.asker, self.tol, self.mu = query.Asker(run, **options), tol, 0.0
        self.routes: set[str] = set()

    @property
    def route(self) -> str:
        return "+".join(sorted(self.routes))

    def deltas(self, eps: NDArray[np.float64], wide: float = 0.0) -> NDArray[np.float64]:
        """Points, and none of the digits of 1 - delta."""
        bound = self.asker(eps, 0.0, wide)
        self.routes.update(bound.route.split("+"))
        return _rows(eps, bound.lower, bound.upper)

    def rest(self, found: NDArray[np.float64], at: NDArray[np.bool_], wide: float) -> NDArray[np.bool_]:
        """Some of the points by the digits of 1 - delta; of which there are some."""
        least, most = self.asker.rest(found[at, EPS], wide)
        told = np.zeros(len(found), dtype=bool)
        told[at] = least <= most  # NaN where it is not known
        found[told, LEFT], found[told, LEFT_HIGH] = least[told[at]], most[told[at]]
        found[told, LOW] = np.maximum(found[told, LOW], np.maximum(np.nextafter(1 - found[told, LEFT_HIGH], -1.0), 0.0))
        found[told, HIGH] = np.minimum(found[told, HIGH], np.nextafter(1 - found[told, LEFT], 2.0))
        if told.any():
            self.routes.add("contour")
        return told

    def __call__(self, eps: NDArray[np.float64], wide: float = 0.0) -> NDArray[np.float64]:
        """Points of which nothing is known, with ROOM of what tol of mu is worth in the smaller one of delta and 1 -
        delta, or with `wide` of it: next to 1 little of delta is much of mu."""
        part = wide or ROOM * self.tol
        z = 0.5 * self.mu - eps / self.mu if self.mu else np.zeros(eps.size)
        worth = REST * self.tol * self.mu * np.exp(-0.5 * z * z) / SQRT2PI
        found, told = _rows(eps, np.zeros(eps.size), np.ones(eps.size)), np.zeros(eps.size, dtype=bool)
        first = REST * self.tol * self.mu * math.exp(-self.mu * self.mu / 8) < LINE * SQRT2PI and self.asker.rest_first
        tops = (z > SIDE) & first
        if tops.any():
            told = self.rest(found, tops, part)
        if not told.all():
            left = 0.5 * math.erfc(max(float(z[~told].max()), 0.0) / math.sqrt(2)) if self.mu else 0.0
            found[~told] = self.deltas(eps[~told], wide or part * left)
            worth = worth if self.mu else REST * self.tol * found[:, LEFT_HIGH]
            short = ~tops & (found[:, LOW] > 0.5) & (_widths(found) > worth)
            if not wide and short.any():
                self.rest(found, short, part)
        found[:, IS_ROUGH] = wide > 0
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


def _rows(eps, low, high) -> NDArray[np.float64]:
    found = np.zeros((np.size(eps), 8))
    found[:, EPS], found[:, LOW], found[:, HIGH] = eps, low, high
    found[:, LEFT] = np.maximum(np.nextafter(1 - found[:, HIGH], -1.0), 0.0)
    found[:, LEFT_HIGH] = np.nextafter(1 - found[:, LOW], 2.0)
    return found


def _widths(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.minimum(points[:, HIGH] - points[:, LOW], points[:, LEFT_HIGH] - points[:, LEFT])


def _known(eps: float, delta: float) -> NDArray[np.float64]:
    """A point that is known without a query."""
    return _rows([eps], delta, delta)


def _regret_lower(mu: float, point: NDArray[np.float64]) -> float:
    eps, _, high = point[: HIGH + 1].tolist()
    return (_core.gdp_tangent(mu, eps, eps)[0] - high) / (1 + math.exp(eps)) * DOWN


def _regret_upper(mu: float, four: NDArray[np.float64]) -> float:
    """An upper bound of (G_mu - delta) / (1 + x) between the inner two of four points [theory: risk.regret].

    G_mu is below its chord, delta above the outer chords prolonged and so above their mixtures; a ratio of linear
    functions is largest at an end."""
    eps, low, high = four[:, : HIGH + 1].T.tolist()
    x = [math.exp(e) for e in eps]
    inner = [_core.gdp_tangent(mu, e, e)[1] for e in eps[1:3]]
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


def _vague(run, lower: float, upper: float, tol: float) -> str:
    return (
        f"mu_gdp reached mu >= {lower:g} without proving {upper:g} for {run!r}: tol={tol:g} is too small for its deltas"
    )
