"""Queries: the privacy curve, its logarithm and its inverse.

A query finds the worst-case pairs of a run, asks a route for certified points (see routes/contour.py), returns one
`Bound`."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import quantile, worst
from .answers import ZERO, Point, Root, larger, meet, ordered
from .arguments import exp_ends, exp_lower, exp_upper, log_lower, numbers, one_of, respelled
from .bound import AccuracyError, Bound, Budget, contradiction
from .outward import DOWN, UP
from .routes import bounds, composed, general
from .routes.contour import MOST_NODES, POINT, ROOT, complement_of_gaussians
from .routes.kept import largest as largest_kept
from .routes.question import Question
from .routes.table import AUTO, EPS_BOTTOM, ROUTES, TABLE, TERMS
from .threads import in_order, threads
from .what.allocation import observers
from .what.mechanism import Run, as_run, within
from .what.pair import ADJACENCIES, DIRECTIONS, paired_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .types import Adjacency, Direction, Numbers, Query, Ran, Route

ASKED = frozenset(itertools.product(ADJACENCIES, DIRECTIONS, ROUTES))
"""All that may be asked, for one look-up a query."""
RTOL_RANGE = (1e-14, 0.5)
EPS_FAR = 1e3
"""Where no route answers at a larger eps, delta here is an upper end."""
SHARED = 8
"""Points of one call from which they share contours or convolutions."""
FEW_LAWS = 8
"""Distinct steps whose quantile is told at once."""
RESTS = 128
"""Distinct sampled Gaussian steps up to which digits of 1 - delta are asked: a line sums over each."""
GOOD_ENOUGH = 1e-3
"""Relative width above which `auto` looks for a narrower interval than a route's."""
NO_LONGER, NO_LONGER_PAIRS = 1e-5, 1e-4
"""Relative width from which lines are not asked that are longer than those asked before rare jumps, and of pairs."""
NEGLIGIBLE = math.log(1e-285)
"""An upper end of delta below it leaves nothing for a finer grid: products of two masses underflow."""


@overload
def delta(run: Ran, eps: float, **options: Unpack[Query]) -> Bound[float]: ...
@overload
def delta(run: Ran, eps: Numbers, **options: Unpack[Query]) -> Bound[NDArray[np.float64]]: ...
@respelled(epsilon="eps")
def delta(
    run: Ran,
    eps: float | Numbers,
    *,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    route: Route = "auto",
    rtol: float | None = None,
    n_threads: int = 1,
) -> Bound[Any]:
    """The privacy curve delta(eps) = sup_S num(S) - e^eps den(S) of the composed run, at every `eps`.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    eps : float or array_like
        Finite real numbers, in nats; negative values are allowed.
    adjacency : "add_remove", "replace_one" or "zero_out"
        Neighbouring relation: one record more or less, one record with another value, one record that contributes
        nothing.
    direction : "both", "remove" or "add"
        "both" is the larger of the two deltas.
    route : "auto", "contour", "prv", "pld", "saddlepoint" or "edgeworth"
        "auto" takes the certified route that meets the tolerance soonest; the result names it.
    rtol : float, optional
        Wanted width (upper - lower)/estimate of delta, 1e-14 to 0.5: met, or AccuracyError. Without it a route does
        what it can; the width is in the answer.
    n_threads : int, default 1
        Threads; 0 = all allowed cores. Results do not depend on it.

    Returns
    -------
    Bound
        Certified lower <= delta <= upper, of the shape of `eps`. `estimate` is not a bound. `budget` lists the error
        terms relative to delta.

    Raises
    ------
    DomainError
        For arguments outside their domain.
    AccuracyError
        If no route certifies an answer, or none within `rtol`.
    SoundnessError
        If certified bounds contradict each other: a defect to be reported, see `SoundnessError`.

    References
    ----------
    csrc/line/contour.c, csrc/curve/hyperbola.c (certificates); [GLW21, Thm 5.5] for the route "prv".

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.delta(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 1.0)
    >>> b.lower <= 2.612420578626924e-03 <= b.upper
    True
    """
    if worst.unsettled(run := as_run(run), adjacency):
        found = _maximum(_QUERIES, "delta", run, eps, adjacency, direction, route, rtol, n_threads)
        return found.answers("delta", eps)
    settings = _Settings(run, adjacency, direction, route, rtol, n_threads)
    flat = numbers("eps", eps, "a finite number", -math.inf, math.inf)
    return settings.deltas(flat, eps).answers("delta", eps)


@overload
def log_delta(run: Ran, eps: float, **options: Unpack[Query]) -> Bound[float]: ...
@overload
def log_delta(run: Ran, eps: Numbers, **options: Unpack[Query]) -> Bound[NDArray[np.float64]]: ...
@respelled(epsilon="eps")
def log_delta(
    run: Ran,
    eps: float | Numbers,
    *,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    route: Route = "auto",
    rtol: float | None = None,
    n_threads: int = 1,
) -> Bound[Any]:
    """Natural logarithm of the privacy curve, for deltas that a double cannot hold; -inf where delta is 0.

    Parameters, errors and guarantees are those of `delta`; `rtol` is about delta itself.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.log_delta(hs.gaussian(1.0), 60.0)
    >>> b.lower <= b.estimate <= b.upper < -1770
    True
    """
    if worst.unsettled(run := as_run(run), adjacency):
        found = _maximum(_QUERIES, "log_delta", run, eps, adjacency, direction, route, rtol, n_threads)
        return found.answers("log_delta", eps)
    settings = _Settings(run, adjacency, direction, route, rtol, n_threads)
    flat = numbers("eps", eps, "a finite number", -math.inf, math.inf)
    if len(flat) >= SHARED:
        return settings.curve(np.array(flat), np.shape(eps), log=True).answers("log_delta", eps)
    return settings.bound([settings.point(e) for e in flat], eps).answers("log_delta", eps)


@overload
def epsilon(run: Ran, delta: float, **options: Unpack[Query]) -> Bound[float]: ...
@overload
def epsilon(run: Ran, delta: Numbers, **options: Unpack[Query]) -> Bound[NDArray[np.float64]]: ...
def epsilon(
    run: Ran,
    delta: float | Numbers,
    *,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    route: Route = "auto",
    rtol: float | None = None,
    n_threads: int = 1,
) -> Bound[Any]:
    """The inverse curve eps(delta) = max(0, inf{e : delta(e) <= delta}), at every `delta`.

    Parameters
    ----------
    delta : float or array_like
        In (0, 1).
    rtol : float, optional
        Wanted width (upper - lower)/estimate of eps, 1e-14 to 0.5: met, or AccuracyError.
    run, adjacency, direction, route, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified lower <= eps <= upper, of the shape of `delta`: certified deltas at both ends lie on the two sides of
        the target, and the curve is monotone. `budget` is relative to delta at the estimate.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 1e-5)
    >>> b.lower <= 1.828236666516577 <= b.upper and b.upper - b.lower < 1e-10
    True
    """
    if worst.unsettled(run := as_run(run), adjacency):
        found = _maximum(_QUERIES, "epsilon", run, delta, adjacency, direction, route, rtol, n_threads)
        return found.answers("epsilon", delta)
    settings = _Settings(run, adjacency, direction, route, rtol, n_threads)
    roots = [settings.root(d) for d in numbers("delta", delta, "in (0, 1)", 0.0, 1.0)]
    return settings.bound(roots, delta).answers("epsilon", delta)


_QUERIES = worst.Queries(delta, log_delta, epsilon)


def _maximum(queries, name: str, run: Run, at, adjacency, direction, route, rtol, n_threads) -> Bound[Any]:
    """The query of that name over all that the run leaves open."""
    options = dict(adjacency=adjacency, direction=direction, route=route, rtol=rtol, n_threads=n_threads)
    return worst.maximum(queries, name, run, at, **options)


class Asker:
    """What is asked of one run many times: `delta` as a function of arrays of eps, all of whose calls share lines; of a
    width of delta that is narrow enough, whatever part of delta that is; and of a part of delta that is."""

    def __init__(self, run: Ran, **options: Any) -> None:
        self.run, self.options = as_run(run), options
        self.settings: _Settings | None = None
        if not worst.unsettled(self.run, options.get("adjacency", "")):
            self.settings = _Settings(self.run, **options)
            self.settings.lines, self.settings.loose = {}, True

    def __call__(self, eps: NDArray[np.float64], narrow: float = 0.0, wide: float = 0.0) -> Bound[NDArray[np.float64]]:
        if self.settings is None:
            return delta(self.run, eps, **self.options)
        self.settings.narrow, self.settings.enough = narrow, math.log(narrow) if narrow > 0 else None
        self.settings.wide = wide
        return self.settings.deltas(eps.tolist(), eps)  # type: ignore[return-value]

    def root(self, delta: float, wide: float = 0.0) -> Bound[float]:
        """`epsilon`. wide: a part of delta that is narrow enough."""
        if self.settings is None:
            return epsilon(self.run, delta, **self.options)
        self.settings.wide = wide
        return bound_of(self.settings.root(delta))

    @property
    def rest_first(self) -> bool:
        """Whether digits of 1 - delta cost no more than those of delta: of sampled Gaussian steps they take a line that
        sums over each distinct one."""
        return not (self.settings and self.settings.gaussian and not self.settings.mirrored)

    def rest(self, eps: NDArray[np.float64], wide: float = 0.0) -> NDArray[np.float64]:
        """Ends of 1 - delta with digits of its own; NaN where none are known. wide: a part that is narrow enough."""
        if self.settings is None or self.settings.route not in ("auto", "contour"):
            return np.full((2, eps.size), np.nan)
        self.settings.wide = wide
        return self.settings.rest(eps)

    def top_lower(self) -> tuple[float, float, float]:
        """An eps from which on delta does not change, in the one direction asked for: the largest finite loss or a
        little more, or infinity; another one shortly below it, and a lower bound of delta there."""
        if self.settings is None:
            return math.inf, math.inf, 0.0
        return bounds.top_lower(self.settings, self.settings.directions[0])

    def _few_losses(self) -> Any:
        """The losses in the one direction asked for, where they are few; None of others."""
        asked = self.settings
        if asked is None or asked.gaussian or asked.replaced or self.run.distinct > FEW_LAWS:
            return None
        return asked.losses(asked.directions[0])

    def loss_about(self, level: float, under_num: bool) -> tuple[float, float] | None:
        """About the eps that the loss exceeds with probability `level`, under num or den, and the deviation of the loss
        around it (quantile.py); None where that is not told at once."""
        losses = self._few_losses()
        return quantile.about(losses, level, under_num) if losses else None

    @functools.cached_property
    def corners(self) -> list[float]:
        """About where the curve may have corners, increasing; empty where that is not told at once."""
        losses = self._few_losses()
        return composed.corners(losses).tolist() if losses else []


def delta_or_less(
    run: Ran,
    eps: float,
    enough: float,
    *,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    route: Route = "auto",
    rtol: float | None = None,
    n_threads: int = 1,
) -> Bound[float]:
    """`delta` at one eps, of which an upper end will do where the contour declines and that end is at most `enough`."""
    if worst.unsettled(run := as_run(run), adjacency):
        cheap = _QUERIES._replace(delta=lambda one, at, **rest: delta_or_less(one, at, enough, **rest))
        return _maximum(cheap, "delta", run, eps, adjacency, direction, route, rtol, n_threads)
    settings = _Settings(run, adjacency, direction, route, rtol, n_threads, math.log(enough))
    return settings.bound([settings.point(eps).of_delta()], eps)


def about(run: Run, eps: float, log_delta: float, **options: Any) -> float:
    """About log delta(eps), which may be about `log_delta`, by a rough contour; NaN where it declines."""
    if worst.unsettled(run, options.get("adjacency", "")):
        return math.nan
    settings = _Settings(run, **options)
    settings.rough, settings.about = True, log_delta
    found = [settings._ask("contour", POINT, add, eps) for add in settings.directions]
    return max((one.estimate for one in found if one and one.lower > -math.inf), default=math.nan)


def at_most(run: Ran, eps: float, level: float, **options: Any) -> bool:
    """Whether it is proved, cheaply, that delta(eps) in the one direction asked for is at most `level`."""
    if not level > 0 or worst.unsettled(run := as_run(run), options.get("adjacency", "")):
        return False
    settings = _Settings(run, **options)
    at = settings.directions[0], eps, log_lower(level)
    return settings._below(*at) or settings._seen_below(*at)


class _Settings(Question):
    """The validated settings of one call, and what they decide: directions, exact cases, choice of route."""

    __slots__ = ("directions", "enough", "narrow", "route", "shares")

    def __init__(
        self, run, adjacency=ADJACENCIES[0], direction="both", route="auto", rtol=None, n_threads=1, enough=None
    ):
        if not (type(adjacency) is type(direction) is type(route) is str and (adjacency, direction, route) in ASKED):
            one_of("adjacency", adjacency, ADJACENCIES)
            one_of("direction", direction, DIRECTIONS)
            one_of("route", route, ROUTES)
        if rtol is not None:
            rtol = within("rtol, unless it is None,", rtol, *RTOL_RANGE)
        super().__init__(run, adjacency, route == "auto", rtol, threads(n_threads))
        self.route = route
        self.shares: str | None = None  # the route whose points are shared, once it is known
        self.enough = enough  # below this log delta an upper end is answer enough; None: never
        self.narrow = 0.0  # a width of delta that is narrow enough, whatever part of delta that is
        self.directions = (0,) if self.mirrored or direction == "remove" else (1,) if direction == "add" else (0, 1)

    def deltas(self, flat: list[float], like) -> Bound:
        """Deltas at the eps in `flat`, of the shape of `like`."""
        if len(flat) > 1 and self.lines is None:
            self.lines = {}
        if len(flat) >= (SHARED if self.gaussian or self.shares is None else 2):
            return self.curve(np.array(flat), np.shape(like), log=False)
        return self.bound([self.point(e).of_delta() for e in flat], like)

    def rest(self, eps: np.ndarray) -> np.ndarray:
        """Ends of 1 - delta at ascending eps, the smaller one over the directions, by lines that know it
        [theory: line.complement], or of Gaussian steps alone by their closed form; NaN where there is none."""
        if self.gaussian and self.mirrored:
            return complement_of_gaussians(self.steps, eps)
        if self.replaced or (self.gaussian and self.run.distinct > RESTS):
            return np.full((2, eps.size), np.nan)
        logs = np.minimum.reduce([general.complement(self, add, eps) for add in self.directions])
        return np.exp(logs) * np.array([[DOWN], [UP]])

    def curve(self, eps: np.ndarray, shape, log: bool) -> Bound:
        """Deltas (or their logs) at many eps: what a route shares where that certifies, other points are asked one by
        one."""
        order = np.argsort(eps, kind="stable")
        if self.shares is None:
            self.shares = self._shared(float(eps[order[0]]))
        name = self.shares
        rows = np.full((eps.size, 3), np.nan)
        if name:
            share: Any = TABLE[name].points
            at = eps[order]
            rows = share(self, self.directions[0], at)
            for add in self.directions[1:]:  # only where it is not certainly the smaller
                matters = self._matters(add, at, rows[:, 0])
                if matters.any():
                    rows[matters] = _larger_rows(rows[matters], share(self, add, at[matters]))
            rows[order] = rows.copy()
        shared = ~np.isnan(rows[:, 0])
        rows[:, 2] = np.minimum(rows[:, 2], 0.0)
        for i in np.flatnonzero(shared & ~(rows[:, 0] <= rows[:, 2])):
            raise contradiction(self.run, (*rows[i, :3].tolist(), name))
        rows[:, 1] = np.clip(rows[:, 1], rows[:, 0], rows[:, 2])
        routes = {name} if name and shared.any() else set()
        terms = {term: np.where(shared, rows[:, 3 + i], 0.0) for found in routes for i, term in enumerate(TERMS[found])}
        for i in np.flatnonzero(~shared):
            found = self.point(float(eps[i]))
            rows[i, :3] = found.lower, found.estimate, found.upper
            routes.add(found.route)
            for term, value in zip(TERMS[found.route], found.terms, strict=True):
                terms.setdefault(term, np.zeros(eps.size))[i] = value
        low, mid, high = rows[:, :3].T if log else exp_ends(rows[:, :3])
        budget = Budget({name: value.reshape(shape) for name, value in terms.items()})
        return Bound(
            low.reshape(shape), mid.reshape(shape), high.reshape(shape), "+".join(sorted(routes)), True, budget
        )

    def _shared(self, eps: float) -> str:
        """The route whose points are shared: the one asked for, or what `auto` takes at one of the points; "" where
        there is none."""
        if self.route in ("auto", "contour"):
            if not self.few and any(True for _ in self.rules):
                return "compressed"
            if self.gaussian and self.total > 1:
                return "contour"
        if self.route == "pld":
            return "pld"
        if self.run.steps <= 1 or self.route not in ("auto", "contour"):
            return ""
        took = self.point(eps).route if self.route == "auto" else "contour"
        if took == "contour" and paired_steps(self.run, self.adjacency, False) is not None:
            return ""
        return took if took in ("contour", "pld") else ""

    def _matters(self, add: int, eps: np.ndarray, log_lower: np.ndarray) -> np.ndarray:
        """Where this direction is not certainly the smaller."""
        if not self.gaussian:
            return np.full(eps.size, True)
        return ~(bounds.curve_upper(self, add, eps) <= log_lower)

    def point(self, eps: float) -> Point:
        """delta(eps), the larger over the directions."""
        if eps < -EPS_BOTTOM:
            # the second where e^eps is subnormal or 0
            least = min(math.log1p(-math.exp(eps)) * UP, -exp_upper(eps))
            return Point(least, 0.5 * least, 0.0, ZERO, "exact")
        return self._largest(POINT, eps)

    def root(self, delta: float) -> Root:
        """eps(delta), clipped at 0, the larger over the directions."""
        return self._largest(ROOT, delta)

    def _at_once(self, have_eps: int, at: float) -> Point | Root | None:
        """The larger over the directions, where one call into C is tried first and enough."""
        if self.rtol is not None or not (self.mirrored or len(self.directions) > 1):
            return None
        way = TABLE["contour" if self.route == "auto" else self.route]
        best = way.larger and way.larger(self, have_eps, at)
        best = best and best.within_a_curve(at)
        return best if best and (self.route != "auto" or best.width <= self.sharp) else None

    def _largest(self, have_eps: int, at: float):
        """The larger over the directions. One is left out where both have the same losses, or it is proved to be the
        smaller [theory: pair.directions, line.both]."""
        best = self._at_once(have_eps, at)
        if best:
            return ordered(best, self.run)
        found = None
        if self.run.gathered and self.run.lines and self.route in ("auto", "contour"):
            found = largest_kept(self, have_eps, at)
        elif self.enough is not None and self.route == "auto" and self.gaussian and have_eps:
            found = bounds.ruled_far_below(self, at, self.enough)
        if found:
            return ordered(found.within_a_curve(at), self.run)
        first, *others = self.directions
        if not others:
            return self._one(have_eps, first, at)
        if self.n_threads > 1 and self._apart():
            both = in_order(lambda half: half[0]._one(have_eps, half[1], at), self._halves(), self.n_threads)
            best = next(both)
        else:
            both = (self._one(have_eps, add, at) for add in others)
            best = self._one(have_eps, first, at)
        if have_eps:
            smaller = self._below(others[0], at, best.lower)
        else:
            ask = others[0], best.lower, log_lower(at)
            smaller = best.lower > 0 and (self._below(*ask) or (best.lower < math.inf and self._seen_below(*ask)))
        return best if smaller else larger(best, next(both))

    def _one(self, have_eps: int, add: int, at: float):
        """The answer in one direction."""
        if have_eps:
            return bounds.beyond(self, add, at) or self._try(have_eps, add, at)
        if self.total:
            return self._try(have_eps, add, at)
        return bounds.known_root(self, add, at, self._prune()) or self._try(have_eps, add, at)

    def _apart(self) -> bool:
        """Whether both directions are asked at once, on threads of their own: where a convolution takes long, and the
        first seldom proves that the second is the smaller."""
        return self.route == "pld" and paired_steps(self.run, self.adjacency, False) is None

    def _halves(self):
        """(settings, direction) of both directions, with half of the threads each."""
        halves = [(copy.copy(self), add) for add in self.directions]
        for i, (own, _) in enumerate(halves):
            own.n_threads = (self.n_threads + 1 - i) // 2
        return halves

    def _below(self, add: int, eps: float, log_delta: float) -> bool:
        """Whether it is proved, cheaply, that delta(eps) <= e^log_delta in this direction."""
        if add and eps >= self.wall:
            return True  # eps exceeds every loss
        return self._prune() and bounds.below(self, add, eps, log_delta)

    def _seen_below(self, add: int, eps: float, log_delta: float) -> bool:
        """The same by a rough contour, or with rare jumps apart, which cost less than a root that is not needed."""
        if self.gaussian or self.route not in ("auto", "contour"):
            return False
        rough = copy.copy(self)
        rough.rough, rough.about = True, log_delta
        asked = (rough._ask(name, POINT, add, eps) for name in ("contour", "jumps")[: 1 + self.auto])
        return any(found.upper <= log_delta for found in asked if found)

    def _prune(self) -> bool:
        return self.route == "auto" or TABLE[self.route].prune

    def _ask(self, name: str, have_eps: int, add: int, at: float):
        """What one route answers in one direction, or None."""
        found = TABLE[name].ask(self, have_eps, add, at)
        return found and found.within_a_curve(at)

    def _try(self, have_eps: int, add: int, at: float):
        """The route asked for, or with `auto` all in turn until the answer is good enough: what they leave."""
        found, wanted = None, GOOD_ENOUGH if self.rtol is None else self.rtol
        names = AUTO[1:] if self.gaussian else AUTO
        for name in names if self.route == "auto" else (self.route,):
            if name in ("pld", "prv") and self.rtol is None and have_eps and found and found.upper < NEGLIGIBLE:
                continue
            self.known = found
            found = meet(found, self._ask(name, have_eps, add, at), self.run)
            goal = self.sharp if name == "contour" else wanted
            if name == "jumps" and self.most_nodes() < MOST_NODES and self.rtol is None:
                goal = NO_LONGER if self.gaussian else NO_LONGER_PAIRS
            if found and (found.width <= goal or found.upper == math.inf):  # a jump to infinity: no route knows more
                break
            if found and self._narrow(found):
                break
            if name == "contour" and not (found and found.width <= wanted):
                _note(self, have_eps, at, found)
                far = self.enough and bounds.far_below(self, add, at, self.enough)
                if far:
                    return meet(found, far, self.run)
        enough = found and (found.width <= GOOD_ENOUGH or self._narrow(found))
        if self.rtol is None and self.route == "auto" and not enough:
            found = self._seen(have_eps, add, at, found)
        if found is None and have_eps and at > EPS_FAR and self.rtol is None:
            far = self._try(have_eps, add, EPS_FAR)
            return far._replace(lower=-math.inf, estimate=-math.inf)  # delta does not increase
        if found is None and self.rtol is None and self.route == "auto":
            found = self._patiently(have_eps, add, at)
        if found is None or (self.rtol is not None and not found.width <= self.rtol):
            asked = f"delta at eps={at!r}" if have_eps else f"eps at delta={at!r}"
            raise AccuracyError(self._refusal(asked, found and found.width))
        return found

    def _patiently(self, have_eps: int, add: int, at: float):
        """What is left where every route declined: a grid that takes as long as it takes, then what distances and the
        largest losses prove."""
        grid = None
        if self.brief:
            patient = copy.copy(self)
            patient.auto = False
            grid = patient._ask("pld", have_eps, add, at)
        last = bounds.last_point if have_eps else bounds.last_root
        return grid or last(self, add, at)

    def _narrow(self, found) -> bool:
        """Whether a point is narrow enough, where many deltas are asked to be added to something larger."""
        return self.narrow > 0 and exp_upper(found.upper) - exp_lower(found.lower) <= self.narrow

    def _seen(self, have_eps: int, add: int, at: float, found):
        """`found`, of a run with random allocation also between what observers of parts of its outputs see and the
        moments accountant [theory: allocation.seen, allocation.moment-ends]."""
        runs = observers(self.run)
        if not runs:
            return found
        above = bounds.root_below(self, add, at) if not have_eps else bounds.far_below(self, add, at, 0.0)
        found = meet(found, above, self.run)
        for run in runs:
            if add and run.steps < self.run.steps:
                continue  # a maximum shows that a record took part, not that it did not
            route = "auto" if run.steps == 1 else "contour"
            own = _Settings(run, self.adjacency, "add" if add else "remove", route, None, self.n_threads)
            try:
                least = own.point(at) if have_eps else own.root(at)
            except AccuracyError:
                continue
            if found:
                found = meet(found, least._replace(upper=found.upper, route=found.route, terms=found.terms), self.run)
        return found

    def _refusal(self, asked: str, width) -> str:
        why = self.why and f" ({self.why})"
        reached = f"no certified interval was found{why}"
        if width is not None:
            reached = f"the certified interval has relative width {width:.2g}"
        wanted = "" if self.rtol is None else f", rtol={self.rtol:g} was asked for"
        grids = self.why and self.route != "contour"  # whose reasons are meshes too fine
        looser = self.rtol is not None and (grids if width is None else width < math.inf)
        helps = ["a larger rtol"] * bool(looser) + ["route='auto'"] * (self.route != "auto")
        advice = helps and f"; ask for {' or '.join(helps)}"
        return f"cannot certify {asked} by route {self.route!r}: {reached}{wanted}{advice or ''}"

    def bound(self, answers, like) -> Bound[Any]:
        """A Bound of the shape of `like` from the answer for every entry."""
        if isinstance(like, float) or np.ndim(like) == 0:
            return bound_of(answers[0])
        shape = np.shape(like)
        ends = np.array([(found.lower, found.estimate, found.upper) for found in answers], dtype=float).reshape(-1, 3)
        low, mid, high = (column.reshape(shape) for column in ends.T.copy())
        routes = sorted({found.route for found in answers})
        terms = {name: np.zeros(len(answers)) for route in routes for name in TERMS[route]}
        for i, found in enumerate(answers):
            for name, value in zip(TERMS[found.route], found.terms, strict=True):
                terms[name][i] = value
        return Bound(low, mid, high, "+".join(routes), True, Budget({n: v.reshape(shape) for n, v in terms.items()}))


def bound_of(found: Point | Root) -> Bound[float]:
    """What one answer says, of delta itself if it is a Point `of_delta`."""
    low, mid, high, terms, route = found
    return Bound(low, mid, high, route, True, (TERMS[route], terms))


def _note(settings: _Settings, have_eps: int, at: float, found) -> None:
    """A line for the logger "hockeystick", level DEBUG, about a query that the contour did not answer well."""
    import logging

    said = "declined" if found is None else f"left a relative width of {found.width:.2g}"
    asked = "delta at eps" if have_eps else "eps at delta"
    log = logging.getLogger("hockeystick")
    log.debug("%s=%r of %r: the contour %s%s", asked, at, settings.run, said, settings.why and f" ({settings.why})")


def _larger_rows(a, b):
    """answers.larger for rows of log_lower, log_estimate, log_upper, terms; NaN where either is."""
    rows = np.where(a[:, 2:3] >= b[:, 2:3], a, b)
    rows[:, :2] = np.maximum(a[:, :2], b[:, :2])
    return rows
