"""The one table of routes, and the order in which `auto` tries them.

A route is a function of a question (question.py: the run, the tolerance, the number of threads) and of what is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..answers import ZERO, Point, Root, meet, reversed_rows
from ..arguments import log_lower, log_upper
from ..bound import AccuracyError
from ..outward import log_floor
from ..threads import together
from ..what.allocation import RandomAllocation, allocates
from ..what.loss import ends
from ..what.pair import paired_steps
from . import bounds, composed, contour, general, jumps, next_to_one, saddlepoint, single
from .question import SHARP

LOG_NEAR_ONE = -1e-3
"""log of a delta from which a wide one may be better known by its distance from 1."""

NOTHING = 45.0
"""Nats below 1 - e^eps from which on an upper end of e^eps delta'(-eps) is known well enough."""

NEAR_ONE = 0.5
"""A delta from which a root is asked first whether it is 0."""


class Route(NamedTuple):
    """One row of the table of routes.

    terms : names of the error terms that its answers carry, in order.
    ask : (question, have_eps, add, at) -> a Point at eps = at or a Root at delta = at (answers.py), None where the
    route declines. have_eps is contour.POINT or ROOT; add is 0 for REMOVE, 1 for ADD.
    points : (question, add, increasing eps) -> rows of log_lower, log_estimate, log_upper, terms: many points of one
    call share what they can; NaN where they do not.
    larger : (question, have_eps, at) -> the larger of REMOVE and ADD, or None, if that is cheaper than both.
    prune : whether it pays to ask first, by a cheap upper end, if the second direction can be the larger.
    """

    terms: tuple[str, ...]
    ask: Callable
    prune: bool = True
    points: Callable | None = None
    larger: Callable | None = None


def _contour(question, have_eps: int, add: int, at: float):
    if not have_eps:
        return _contour_root(question, add, at)
    found = _contour_point(question, add, at)
    if at >= 0 or (found and found.width <= question.sharp):
        return found
    return meet(found, _reversed_point(question, add, at), question.run)


def _reversed_point(question, add: int, eps: float) -> Point | None:
    """The point at eps < 0 by the other direction at -eps, of which an upper end will do where it is nothing next to
    1 - e^eps [theory: pair.reversal]; of runs whose directions are mirror images by their rows."""
    if not question.gaussian and paired_steps(question.run, question.adjacency, bool(add)) is None:
        return None
    found = _contour_point(question, 1 - add, -eps)
    if not (found and found.width <= question.sharp):
        found = bounds.far_below(question, 1 - add, -eps, log_floor(eps).lower - NOTHING) or found
    return found and found.reversed(eps)


def _contour_point(question, add: int, eps: float):
    if not question.gaussian:
        if not question.few and (found := contour.ruled(contour.POINT, question, 0, eps)):
            return found
        paired = paired_steps(question.run, question.adjacency, bool(add))
        if paired is None:
            return general.point(question, add, eps)
        if question.run.steps == 1:  # as for the Gaussian family, in closed form
            return _exact(question, contour.POINT, add, eps)
        said = contour.lined(contour.POINT, question, add, eps)
        found = contour.pair_point(paired, add, eps, question.goal, question.n_threads, question.most_nodes, said)
        if paired.dropped or _is_known(found):
            return found
        return contour.near_one(paired.steps, add, eps) or found
    if question.total == 1 and question.wall < math.inf:
        return contour.single_point(*_only_step(question.steps), add, eps)
    found = _of_steps(question, contour.POINT, add, eps)
    if _is_known(found) or not question.run.listed:
        return found
    return contour.near_one(question.steps, add, eps) or found


def _of_steps(question, have_eps: int, add: int, at: float):
    """What rules, kept lines or a line of its own say of a run of Gaussian steps, at an eps or a delta."""
    value = at if have_eps else math.log(at)
    if not question.few:
        asked = have_eps, question, add, value
        if found := contour.ruled(*asked) or contour.at_fixed_place(*asked):
            return found
    most = question.n_threads, question.most_nodes, contour.lined(have_eps, question, add, at)
    return contour.found(have_eps, question.steps, add, value, question.goal, *most)


def _is_known(found: Point | None) -> bool:
    """Whether a contour knows delta as well as its distance from 1 may tell."""
    return found is not None and not (found.upper > LOG_NEAR_ONE and found.width > SHARP)


def _contour_root(question, add: int, delta: float):
    if not question.gaussian:
        if found := None if question.few else _ruled_root(question, delta):
            return found
        paired = paired_steps(question.run, question.adjacency, bool(add))
        if paired is None:
            return general.root(question, add, delta)
        if question.run.steps == 1:
            return _exact(question, contour.ROOT, add, delta)
        return _pair_root(question, paired, add, delta)
    if question.few and (found := next_to_one.root(question.steps, add, delta)):
        return found
    if question.total == 1 and question.wall < math.inf:
        found = contour.single_root(*_only_step(question.steps), add, delta)
    else:
        found = _of_steps(question, contour.ROOT, add, delta)
    if found is None:
        if not question.few and (zero := _ruled_zero(question, add, delta)):
            return zero
        if _one_step_exceeds(question.steps, delta):
            return None
        return _zero_root(
            paired_steps(question.run, question.adjacency, bool(add)),
            delta,
            lambda: (
                bounds.beyond(question, add, 0.0) or contour.point(question.steps, add, 0.0, 1e-3, question.n_threads)
            ),
        )
    return found


def _ruled_root(question, delta: float) -> Root | None:
    """A root by a rule for two-sided pairs, whose directions have one curve; None where none is good enough."""
    if delta > NEAR_ONE and (zero := _ruled_zero(question, 0, delta)):
        return zero
    return contour.ruled(contour.ROOT, question, 0, math.log(delta)) or _ruled_zero(question, 0, delta)


def _ruled_zero(question, add: int, delta: float) -> Root | None:
    """The root 0 where a rule proves that delta(0) <= delta; else None."""
    zero = contour.ruled(contour.POINT, question, add, 0.0)
    return Root(0.0, 0.0, 0.0, zero.terms, zero.route) if zero and zero.at_most(delta) else None


def _long(question, have_eps: int, add: int, at: float):
    if question.gaussian:
        return contour.long(have_eps, question, add, at if have_eps else math.log(at))
    paired = paired_steps(question.run, question.adjacency, bool(add))
    found = paired and contour.long_pair(have_eps, paired, question, add, at)
    return found if have_eps or not found else _clipped(found)


def _larger_contour(question, have_eps: int, at: float):
    """None where the contour, or each direction, has to be asked on its own."""
    if not question.few or (have_eps and at < 0):
        return None
    if not question.gaussian:
        return _larger_of_pairs(question, have_eps, at)
    if not question.total > 1:
        return None
    if not have_eps:
        return contour.larger_of(have_eps, question, at, _wall(question))[0]
    kept = bounds.ceilings(question, 1)
    known = -math.inf if at >= _wall(question) else bounds.clearly_upper(kept, at)
    found, ceiling = contour.larger_of(have_eps, question, at, known)
    bounds.keep_ceiling(kept, *ceiling)
    return found


def _larger_of_pairs(question, have_eps: int, at: float):
    """The same of a run with pairs, of which nothing was dropped, and whose steps tell its directions apart."""
    remove, add = (paired_steps(question.run, question.adjacency, way) for way in (False, True))
    if question.run.steps == 1 or remove is None or add is None or remove.dropped or add.dropped:
        return None
    wall = 0.0 if question.mirrored else add.loss_upper
    if not have_eps:
        if max(remove.variation_upper, add.variation_upper) <= at:
            return None
        return contour.larger_of(have_eps, question, at, wall, (remove, add))[0]
    known = log_upper(add.variation_upper) if at < wall and add.variation_upper > 0 else -math.inf
    return contour.larger_of(have_eps, question, at, known, (remove, add))[0]


def _wall(question) -> float:
    """An eps from which ADD is not the larger: its largest loss, or 0 where both directions have one curve."""
    return 0.0 if question.mirrored else question.wall


def _only_step(steps) -> tuple[float, float]:
    """(m, q) of a run of one step."""
    return steps.shift.item(), steps.q.item()


def _one_step_exceeds(steps, delta: float) -> bool:
    """Whether some step has delta(0) = q (2 Phi(m/2) - 1) above twice delta; leaving out steps is post-processing."""
    return any(
        q * math.erf(m / math.sqrt(8)) > 2 * delta for m, q in zip(steps.shift.tolist(), steps.q.tolist(), strict=True)
    )


def _pair_root(question, paired, add: int, delta: float):
    said = contour.lined(contour.ROOT, question, add, delta)
    found = contour.pair_root(paired, add, delta, question.goal, question.n_threads, question.most_nodes, said)
    if found is None:
        if paired.variation_upper > 2 * delta * question.run.steps:
            return None  # some step's own distance, which is delta(0) of a run that shows less, exceeds delta
        return _zero_root(paired, delta, lambda: contour.pair_point(paired, add, 0.0, 1e-3, question.n_threads))
    return _clipped(found)


def _clipped(found: Root) -> Root:
    if found.lower >= 0:
        return found
    return Root(max(found.lower, 0.0), max(found.estimate, 0.0), max(found.upper, 0.0), found.terms, "contour")


def _zero_root(paired, delta: float, at_zero: Callable):
    """The root 0 where the distances of the steps, or the contour, prove that delta(0) <= delta; else None."""
    if min(paired.variation_upper, bounds.square_variation_upper(paired)) <= delta:
        return Root(0.0, 0.0, 0.0, ZERO, "contour")
    point = at_zero()
    return Root(0.0, 0.0, 0.0, ZERO, "contour") if point and point.at_most(delta) else None


def _contour_points(question, add: int, eps):
    if not question.gaussian:
        return general.points(question, add, eps)
    return _points_of_steps(question, question.steps, add, eps)


def _ruled_points(question, add: int, eps):
    return _points_of_steps(question, next(iter(question.rules)).steps, add, eps)


def _points_of_steps(question, steps, add: int, eps):
    """Points at increasing eps, those below 0 by the other direction at -eps [theory: pair.reversal]."""
    asked = question.goal, question.n_threads
    below = np.count_nonzero(eps < 0)
    rows = contour.points(steps, add, eps[below:], *asked)
    if not below:
        return rows
    other = add if question.mirrored else 1 - add
    turned = contour.points(steps, other, -eps[:below][::-1], *asked)[::-1]
    return np.concatenate([reversed_rows(turned, eps[:below]), rows])


def _exact(question, have_eps: int, add: int, at: float):
    """A point or root of a run of one step, or of few sums, by the law of its loss."""
    run = question.run
    if run.steps == 1:
        on_the_line = question.auto and isinstance(run.parts[0][0], RandomAllocation)  # knows it better than its tails
        if on_the_line and (found := _of(general, have_eps)(question, add, at)):
            return found
        loss = question.losses(add)[0][0]
    elif run.steps > composed.STEPS or paired_steps(run, question.adjacency, bool(add)) is not None:
        return None
    else:
        loss = composed.only_loss(run, question.losses(add))
    if loss is None or _deep(question, have_eps, add, at):
        return None
    return _of_grid(question, lambda: _of(single, have_eps)(loss, at))


def _of(route: Any, have_eps: int) -> Callable:
    """The one of a module's two functions that answers."""
    return route.point if have_eps else route.root


EPS_GRID = 1e5
"""Largest |eps| for which a route on a grid is asked: beyond, its positions lose their digits."""


EPS_BOTTOM = 45.0
"""Below -EPS_BOTTOM, 1 - e^eps <= delta(eps) <= 1 is narrower than a double's last digit."""


TOP = 1e-9
"""Distance from the largest loss, in units of it, that no mesh resolves."""


LOG_DEEP = -69.0
"""log of a delta that no grid made of the tails of an epoch of random allocation resolves: where one is known to a
part in a hundred delta has been 1e-29 at least, of 3,000 random settings."""


def _deep(question, have_eps: int, add: int, at: float) -> bool:
    """Whether delta is below e^LOG_DEEP, for what that is certain of is not asked on a grid."""
    if not (question.auto and question.rtol is None and allocates(question.run)):
        return False
    if not have_eps:
        return math.log(at) < LOG_DEEP
    key = question.adjacency, add, at
    asked, found = question.run._cache.get("deep", (None, False))
    if asked != key:
        found = at > 0 and bounds.far_below(question, add, at, LOG_DEEP) is not None
        question.run._cache["deep"] = key, found
    return found


def _next_to_the_top(question, add: int, eps: float) -> bool:
    """Whether eps is so near the largest loss that a grid leaves nothing of what another route knows."""
    if not (question.auto and question.known and question.rtol is None):
        return False
    top = ends(question.losses(add)).upper
    return top < math.inf and eps > 0 and abs(top - eps) <= TOP * top


def _of_grid(question, ask: Callable):
    """What a grid says; None where it declines, and why is kept for the message to the caller."""
    try:
        return ask()
    except AccuracyError as refused:
        question.why = str(refused)
        return None


def _off_the_grid(question, have_eps: int, add: int, at: float) -> bool:
    """Whether a grid has nothing to say, or nothing that is not known."""
    far = have_eps and (abs(at) > EPS_GRID or _next_to_the_top(question, add, at))
    return far or _deep(question, have_eps, add, at)


def _prv(question, have_eps: int, add: int, at: float):
    if question.brief or _off_the_grid(question, have_eps, add, at):
        return None
    ask = _of(prv(), have_eps)
    return _of_grid(question, lambda: ask(question.losses(add), at, question.rtol, question.n_threads))


def _jumps(question, have_eps: int, add: int, at: float):
    if question.gaussian:
        if have_eps:
            return jumps.point(question.steps, add, at, question.sharp)
        return jumps.root(question.steps, add, math.log(at), question.sharp, question.known)
    paired = paired_steps(question.run, question.adjacency, bool(add))
    if paired is None:
        return None
    if have_eps:
        return jumps.pair_point(paired, add, at, question.sharp)
    return jumps.pair_root(paired, add, at, question.sharp, question.known)


def _moments(question, have_eps: int, add: int, at: float):
    if question.gaussian:
        if have_eps:
            return bounds.moments_point(question.steps, add, at, jumped=question.auto)
        return bounds.moments_root(question.steps, add, math.log(at), jumped=question.auto)
    paired = paired_steps(question.run, question.adjacency, bool(add))
    if paired is None:
        return None
    if have_eps:
        floor, upper = log_floor(at).lower if at < 0 else -math.inf, bounds.log_delta_upper(paired, add, at)
        return Point(min(floor, upper), upper, upper, (1.0,), "moments")
    upper = max(bounds.root_upper(paired, add, log_lower(at)), 0.0)
    return Root(0.0, upper, upper, (1.0,), "moments") if upper < math.inf else None


def _pld(question, have_eps: int, add: int, at: float):
    if _off_the_grid(question, have_eps, add, at):
        return None
    ask = _of(pld(), have_eps)
    asked = question.losses(add), at, question.rtol, question.n_threads, question.brief
    return _of_grid(question, lambda: together(lambda: ask(*asked), question.n_threads))


def _pld_points(question, add: int, eps):
    parts = question.losses(add)
    low, high = ends(parts)
    rows = np.full((eps.size, 6), np.nan)
    inside = (eps > max(low, -EPS_BOTTOM)) & (eps < min(high, EPS_GRID))
    if inside.any():
        ask = parts, eps[inside], question.rtol, question.n_threads
        rows[inside] = together(lambda: pld().points(*ask), question.n_threads)
    return rows


def _saddle(question, have_eps: int, add: int, at: float):
    if not question.gaussian:
        return _of(laws(), have_eps)(question.losses(add), at)
    return saddlepoint.of(question, have_eps, add, at if have_eps else math.log(at))


def _larger_saddle(question, have_eps: int, at: float):
    if have_eps or not question.total:
        return None
    return saddlepoint.larger_root(question, math.log(at), _wall(question))


def laws():
    """routes/saddle_laws.py, imported at its first use."""
    from . import saddle_laws

    return saddle_laws


def pld():
    """routes/pld.py, imported at its first use: most programs never need it."""
    from . import pld

    return pld


def prv():
    """routes/prv.py, likewise."""
    from . import prv

    return prv


def _edgeworth(question, have_eps: int, add: int, at: float):
    route, value = edgeworth(), at if have_eps else math.log(at)
    if found := route.ruled(question, have_eps, add, value):
        return found
    steps = route.steps_of(question.run, question.adjacency)
    return _of(route, have_eps)(steps, add, value, question.goal)


def edgeworth():
    """routes/edgeworth.py, imported at its first use."""
    from . import edgeworth

    return edgeworth


TABLE = {
    "contour": Route(contour.TERMS, _contour, points=_contour_points, larger=_larger_contour),
    "prv": Route(("mesh", "truncation", "fft_rounding"), _prv),
    "pld": Route(("mesh", "truncation", "rounding"), _pld, points=_pld_points),
    "edgeworth": Route(
        ("smoothing", "aliasing", "truncation", "inner_quadrature", "rounding", "interpolation", "finite_sample"),
        _edgeworth,
    ),
    "jumps": Route(jumps.TERMS, _jumps),
    "moments": Route(bounds.MOMENTS_TERMS, _moments),
    "saddlepoint": Route(saddlepoint.TERMS, _saddle, prune=False, larger=_larger_saddle),
    "exact": Route(contour.TERMS, _exact),
    "long": Route((), _long),
    "compressed": Route(contour.RULED_TERMS, _contour, points=_ruled_points),
}
"""The one table of routes. "exact", "jumps", "moments" and "compressed" are names of answers, not of choices; "long" is
the contour, whose name its answers have, by lines that `auto` does not ask before rare jumps are taken apart: longer
ones, or of pairs those that aim at less."""

AUTO = ("exact", "contour", "jumps", "long", "pld", "prv", "moments")
"""What `auto` tries, in order, until an interval is good enough; of Gaussian steps not the first, which their contour
does itself."""

ROUTES = ("auto", *(name for name in TABLE if name not in ("exact", "jumps", "moments", "long", "compressed")))
"""What a caller may ask for."""

TERMS = {name: route.terms for name, route in TABLE.items()}
