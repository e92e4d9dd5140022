"""Route `contour` beyond the Gaussian family: one run, one direction, to the sum that takes it.

Laws on a common lattice go to lattice.py, Laplace and mixed runs to mixed.py. Finite losses are composed; masses at
infinity are divided out first [theory: pair.infinite]: with D = 1 - prod (1 - d_i)^k_i, delta = D + (1 - D)
delta_finite. Answers are those of answers.py, None where nothing here takes the run."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..answers import ZERO, Point, Root, meet
from ..outward import U, log_slack
from ..what.allocation import RandomAllocation, allocates
from ..what.condensed import condensed
from ..what.discrete import ApproxDP, DiscreteGaussian, DiscreteLaplace, KAryRandomizedResponse, shifted
from ..what.given import GaussianMixture
from ..what.groups import Group
from ..what.mechanism import Gaussian, Laplace, PoissonSubsampled
from ..what.ranged import BoundedRange
from . import lattice, mixed, option, parts
from .near import Lines
from .walls import rest, seen, wall_upper

LOST, SEEN, ROUGHLY = 30.0, 22.0, 7.0
"""Nats of delta above the mass of outcomes that a table leaves out, which adds at most e^-30 of delta then; the least
where a deeper table is no narrower; and where there is no other answer."""

DEPTHS = (44.0, 55.0, 70.0, 90.0, 120.0, 165.0, 230.0, 320.0, 450.0, 520.0, 610.0, 740.0)
"""Nats of what tables leave out, of which the first that serves a question is taken."""

PATHS_FROM = 5e4
"""Steps over the square of sensitivity/sigma from which that is so at once under REMOVE: what the transform is asked
for there takes tens of seconds, and is not found."""

MANY = 1 << 16
"""Points of a law from which a line takes seconds."""

PLACES = 800
"""Those at which the curve of a run is bounded for what is left out of it."""

DEEPER = -90.0, -200.0, -400.0, -690.0
"""What log delta may be about where windows of a larger one see nothing."""

SHALLOW = 44.0, 70.0, 120.0
"""Some of these that may be narrower though they leave out more: one large loss may be most of a tilted law, and what
it adds to delta little."""

TABLES_MAX, LAWS_MAX = 128, 20_000
"""Distinct steps that a line takes by tables of their points, more of which cost more than convolution, and all."""

SHIFT_MAX = 10.0
"""Largest shift of these, in units of sigma: beyond it convolution is as good."""


POINTS_FROM = ((0.55, 300.0), (1.3, 20_000.0)), ((0.55, 300.0), (0.85, 25_000.0), (1.3, 1e5))
"""Of REMOVE and of ADD, whose transform reaches further: up to some sensitivity/sigma the steps over its square from
which an epoch is taken by points of its density."""

SLOW, ENOUGH = 1600.0, -45.0
"""Steps over the square of sensitivity/sigma from which that is done by all points that there are, or where what lies
beyond their far end is so small (its logarithm)."""


PARTIAL, WIDE = 8e3, 1e-6
"""Steps over the square of sensitivity/sigma up to which its transform may know more than points that end too soon, and
the relative width from which it is asked."""


class Finite(NamedTuple):
    """The finite losses of a run as one of the two routes takes them, and log(1 - D). Outcomes of mass `lost` may be
    missing. partial: whether the transforms of all steps may know more; untried: whether points of an epoch's density,
    which it does without, may; by_points: whether these were asked for, see describe."""

    run: lattice.Lattice | list
    log_finite: float
    lost: float = 0.0
    partial: bool = False
    untried: bool = False
    by_points: int = 0

    @property
    def route(self):
        return lattice if isinstance(self.run, lattice.Lattice) else mixed

    def tolerance(self, question) -> tuple[float | None, ...]:
        """The relative half-width that a line aims at, and the width that ends it where there are longer lines."""
        enough = 10 * question.goal if question.rough else question.rtol
        return (question.goal, enough) if self.route is mixed else (question.goal,)

    def lost_upper(self, eps: float, log_delta: float) -> float:
        """A bound of what outcomes that are missing add to delta(eps): other steps are to make up for what a loss is
        short of eps. curve: a bound of that of the whole run, at places from 0 up to eps [theory: allocation.left-out].
        """
        if not self.lost or math.log(self.lost) < log_delta - LOST:
            return self.lost
        held = [step for step in self.run if isinstance(step, mixed.DensityStep)]
        if self.lost > math.fsum(step.k * step.lost for step in held) * (1 + 1e-9):  # of others no more is known
            return self.lost
        cells = [(step.left_out, math.log(step.k)) for step in held]
        loss = np.concatenate([of[0] for of, _ in cells])
        mass = np.exp(np.concatenate([of[1] + log_k for of, log_k in cells]))
        if not eps > 0 or not mass.sum() < 0.5:
            return self.lost
        y = np.linspace(0.0, eps, PLACES) * (1 - 1e-12)
        near = loss <= 0
        back = np.ceil(np.minimum(loss[~near] / y[1] * (1 + 1e-12), PLACES)).astype(int)
        least = 1 - float(mass[near].sum())
        curve, kept = np.ones(PLACES), [mixed.log_delta_upper(self.run, x) for x in y[1:].tolist()]
        for i, log in enumerate(kept, 1):
            others = float(mass[~near] @ curve[np.maximum(i - back, 0)])
            curve[i] = min((math.exp(min(log, 0.0)) + others) / least, curve[i - 1])
        total = float(mass[near].sum()) * curve[-1] + float(mass[~near] @ curve[np.maximum(PLACES - 1 - back, 0)])
        total *= 1 + 1e-9
        return min(total + 1e-320, self.lost)


def describe(run, losses, add: int, adjacency: str, depth: float, by_points: int = 0) -> Finite | str:
    """What the run is made of, or why no line takes it. losses: (Loss, count) of every step, by which the adjacency has
    been accepted. What is left out is to have a probability of e^-depth; with depth = inf all is by transforms.
    by_points: 1: epochs by points of their density wherever there are some; 2: of paths also where others know them
    sooner; 3: or some that are known roughly."""
    key = ("finite", add, id(losses))
    kept, _ = run._cache.setdefault(key, ({}, losses))  # the losses live as long as their id is used
    if "cut" not in run._cache:
        run._cache["cut"] = any(isinstance(step, RandomAllocation | Group) for step, _ in run.parts)
    if not run._cache["cut"]:
        depth = math.inf
    how = depth, by_points
    if how not in kept:  # another one would serve, but answers shall not depend on what was asked before
        kept[how] = _describe(run, losses, add, adjacency, *how)
    return kept[how]


def _describe(run, losses, add: int, adjacency: str, depth: float, by_points: int) -> Finite | str:
    if len(run.parts) > TABLES_MAX:
        held = sum(not _brief(step) for step, _ in run.parts)
        if held > TABLES_MAX or len(run.parts) > LAWS_MAX:
            return f"a line takes {LAWS_MAX} distinct steps, {TABLES_MAX} of them by tables"
    for (step, _), (loss, _) in zip(run.parts, losses, strict=True):
        if not 1 > loss.mass_inf == loss.mass_minus_inf:
            return f"{step!r} has other infinite losses under one law than under the other"
    log_finite = math.fsum(k * math.log1p(-loss.mass_inf) for loss, k in losses)
    laws = [_lattice_law(step, loss, adjacency, k) for (step, k), (loss, _) in zip(run.parts, losses, strict=True)]
    if None not in laws:
        common = lattice.compose([(law, k) for law, (_, k) in zip(laws, losses, strict=True)])
        if common is not None:
            return Finite(common, log_finite)
    moves = 2 if adjacency == "replace_one" else 1
    steps = [
        _line_step(step, loss, law, add, k, moves, depth, by_points)
        for (step, k), (loss, _), law in zip(run.parts, losses, laws, strict=True)
    ]
    for taken, (step, _) in zip(steps, run.parts, strict=True):
        if taken is None:
            return f"no line takes {step!r} under {adjacency}"
    lost = math.fsum(k * _lost(step, loss) for step, (loss, k) in zip(steps, losses, strict=True))
    partial = any(isinstance(step, mixed.DensityStep) and step.partial for step in steps)
    untried = any(isinstance(step, mixed.AllocationStep) for step in steps) and depth < math.inf and not by_points
    return Finite(steps, log_finite, lost, partial, untried, by_points)


def _brief(step) -> bool:
    """Whether a node costs a step no more than a closed form, the quadrature of one sampled Gaussian or one mixture."""
    sampled = isinstance(step, PoissonSubsampled) and isinstance(step.base, Gaussian)
    return sampled or isinstance(step, Gaussian | Laplace | BoundedRange | GaussianMixture)


def _lost(step, loss) -> float:
    """Probability of what the line does not know of a step, such as atoms that a table leaves out."""
    if isinstance(step, mixed.DensityStep | mixed.MixtureStep):
        return step.lost
    cut = isinstance(step, mixed.AtomicStep) and not step.log_concave
    return loss.tails(np.zeros(1)).absolute if cut else 0.0


def _lattice_law(step, loss, adjacency: str, k: int) -> lattice.LatticeLaw | None:
    if isinstance(step, ApproxDP) and step.eps0 > 0:
        return lattice.randomized_response(step.eps0)
    if isinstance(step, DiscreteLaplace):
        return lattice.discrete_laplace(step.scale, shifted(step, adjacency).sensitivity)
    if isinstance(step, DiscreteGaussian):
        return lattice.discrete_gaussian(step.sigma, shifted(step, adjacency).sensitivity, k)
    if isinstance(step, KAryRandomizedResponse) and step.eps0 > 0 and adjacency == "replace_one":
        return lattice.k_ary_randomized_response(step.eps0, step.k)
    given = None if loss.smooth else loss.lattice()
    if given is None or given.lost or loss.mass_inf:
        return None
    keep = np.flatnonzero((given.num > 0) & (given.den > 0))
    if keep.size != np.count_nonzero(given.num + given.den):
        return None
    rel = given.rel[keep] if np.ndim(given.rel) else given.rel
    return lattice.of_masses(given.step, given.offset, given.first + keep, given.num[keep], rel, given.edge)


def _line_step(step, loss, law, add: int, k: int, moves: int, depth: float, by_points: int):
    """moves: sensitivities between the two laws of additive noise, 2 under replace_one, where a sampled step is
    two-sided."""
    base, q = (step.base, step.q) if isinstance(step, PoissonSubsampled) else (step, 1.0)
    if moves == 2 and q < 1:
        return None
    if isinstance(base, Gaussian):
        return mixed.NormalStep(moves * base.sensitivity / base.sigma, q, add, k)
    if isinstance(base, Laplace):
        return mixed.LaplaceStep(moves * base.sensitivity / base.scale, q, add, k)
    if isinstance(step, RandomAllocation):
        return _allocation_step(step.shift, step.steps, add, k, depth, by_points)
    if isinstance(step, GaussianMixture):
        few = condensed(step)
        return _mixture_step(mixed.MixtureStep(few.shifts, few.weights, add, k, 0.0, few if few.half else None))
    if isinstance(step, Group) and moves == 1:
        return _group_step(step, add, k, depth)
    if isinstance(base, BoundedRange):
        return mixed.RangeStep(base.eps0, q, add, k)
    if law is not None:
        return mixed.off_lattice(law, k)
    found = None if loss.smooth or loss.mass_inf else loss.atoms()
    if found is None or not (found.num > 0).all():
        return None
    log_mass = np.log(found.num)
    d_log_mass = found.rel + found.absolute / found.num + 2 * U * np.abs(log_mass)
    return mixed.AtomicStep(found.loss, log_mass, np.broadcast_to(found.edge, log_mass.shape), d_log_mass, False, k)


def _mixture_step(step):
    """The step, where the line takes it."""
    fits = step.shifts.size <= _core.SHIFTS_MAX and step.shifts.max() <= SHIFT_MAX and step.weights.min() > 0
    return step if fits else None


def _group_step(step: Group, add: int, k: int, depth: float):
    """The probability of the largest sums, e^-depth in all, is moved to the next one [theory: pair.groups]."""
    shifts, weights, _ = step.shifts()
    above = np.cumsum(weights[::-1])[::-1]  # that of a sum and all larger ones
    n = max(int(np.count_nonzero(above > math.exp(-min(max(depth, SUMS), 640.0)) / k)), 2)
    lost = math.fsum(weights[n:].tolist())  # within 2u, of the 1e-9 that it is taken larger
    return _mixture_step(mixed.MixtureStep(shifts[:n], np.append(weights[: n - 1], above[n - 1]), add, k, lost))


SUMS = 44.0

AIMED, MOST_WIDE = 0.1, 1e-6
"""Part of the width that will do of 1 - delta, up to the latter, that lines of it aim at: where atoms matter, nodes are
all that there may be before they reach what those of delta aim at."""


WIDTHS, DEEP = (0.7, 0.4), 130.0
"""Of the window of points of an epoch's density, and nats from which it is the narrower one: large tilts see the fall
of a wide one."""


SOONER = (0.92, 0.0), (1.02, 3e5), (1.12, 1e6)
"""As POINTS_FROM: where points of the density know an epoch sooner than paths; beyond, they are often in vain."""


def _is_any(m: float, t: int, kinds) -> bool:
    """Whether sensitivity/sigma and steps over its square are of one of the kinds."""
    return any(m <= shift and t > least * m * m for shift, least in kinds)


def _allocation_step(m: float, t: int, add: int, k: int, depth: float, by_points: int):
    """By points of the density of its loss where they know most of it, or there are some at all and they are asked for,
    else by its transform on rotated lines."""
    found = None
    dense = _is_any(m, t, POINTS_FROM[add])
    sooner = dense and (add or _is_any(m, t, SOONER))
    paths = by_points > 0 or (not add and t > PATHS_FROM * m * m)
    paths = paths and k > 1 and option.has_path(m, t) and (not sooner or by_points > 1)
    dense = dense or (by_points > 0 and m <= POINTS_FROM[add][0][0])
    if depth < math.inf and (paths or dense):
        from ..what import allocation_density, allocation_path  # at their first use

        reach = 11 + 1.1 * math.sqrt(2 * max(depth - LOST, 0.0) / k)  # of a tilt at delta, and beyond, of alike losses
        reach = math.inf if by_points else math.expm1(min(reach * m / math.sqrt(t), 50.0)) * math.sqrt(t) / m
        for nats in (depth, *[x for x in reversed(DEPTHS) if x < depth]):  # fewer where bounds do not reach that far
            window = nats + math.log(k), WIDTHS[nats > DEEP]
            if paths:
                found = allocation_path.points(m, t, *window, by_points == 3)
            else:
                found = allocation_density.points(m, t, *window, reach, by_points == 3)
            if found is not None:
                break
    far, near = [side[1:, 0].max() for side in found.beyond[:: 1 if add else -1]] if found else (0.0, 0.0)
    enough = by_points or t > SLOW * m * m or (far < ENOUGH and near < 0.5 * ENOUGH)
    if not (found and (found.whole or enough)):
        return mixed.AllocationStep(m, t, add, k)
    partial = not found.whole and t < PARTIAL * m * m
    cells = found.left_out_of(add)
    step = mixed.DensityStep(found.columns(add), found.lost, k, allocation_density.CELLS, partial, found.slow, cells)
    return step._replace(points=found) if found.slow and not add else step


def _depth(log_delta: float) -> float:
    """Nats of what is left out that is not seen at log_delta."""
    return next((x for x in DEPTHS if x > LOST + 2 - log_delta), DEPTHS[-1])


def _asked(question, add: int, log_delta: float, depth: float | None = None, by_points: int = 0) -> Finite | None:
    """What the run is made of, without what is not seen at log_delta, or what has a probability of e^-depth; None where
    no line takes it, and why."""
    depth = _depth(log_delta) if depth is None else depth
    found = describe(question.run, question.losses(add), add, question.adjacency, depth, by_points)
    if isinstance(found, str):
        question.why = found
        return None
    return found


NOT_FOUND = "no line within its cost certifies an interval"
LEFT_OUT = "outcomes that its table leaves out may be all of delta"
NO_POINTS = "no bound of its tails reaches so far that points of the density would serve"


def _narrower(question, add: int, log_delta: float, ask: Callable):
    """ask(run as it is at log_delta), or by transforms alone, or by what points there are, where that may be narrower;
    by points that are known roughly where there is no other answer."""
    answer = _told(question, add, "line", functools.partial(_other_way, question, add, log_delta, None, 0, ask))
    found = _asked(question, add, log_delta)
    for depth, by_points in _ways(found, question.run, add) if found else ():
        if answer and (question.rough or by_points == 3 or answer.width <= WIDE):
            break
        other = functools.partial(_other_way, question, add, log_delta, depth, by_points, ask)
        way = WAYS[by_points] + (f" e^-{depth:g}" if by_points and depth else "")
        answer = meet(answer, _told(question, add, way, other), question.run)
    return answer


WAYS = "transform", "points", "paths", "rough points"


def _other_way(question, add: int, log_delta: float, depth: float | None, by_points: int, ask: Callable, *least):
    """What that way says, its tables included; nothing where it is asked for points and there are none."""
    found = _asked(question, add, log_delta, depth, by_points)
    if found and by_points and not _has_points(found):
        question.why = NO_POINTS
        return None
    return ask(found, *least) if found else None


def _told(question, add: int, way: str, ask: Callable):
    """ask(), of which the question is told for runs with random allocation: each way may take long."""
    if question.rough or not (question.run._cache.get("cut", True) and allocates(question.run)):
        return ask()
    before, question.why, start = question.why, "", time.perf_counter()
    answer = ask()
    question.tell(way, add, answer, time.perf_counter() - start)
    question.why = before if question.why in ("", NO_POINTS) else question.why
    return answer


def _has_points(found: Finite) -> bool:
    """Whether an epoch is taken by points of its density."""
    return isinstance(found.run, list) and any(isinstance(step, mixed.DensityStep) for step in found.run)


def _ways(found: Finite, run, add: int):
    """(depth, by_points) that may know more."""
    if found.partial:
        yield math.inf, 0
    if found.untried or _has_points(found):
        epochs = [step for step, _ in run.parts if isinstance(step, RandomAllocation)]
        if any(_is_any(step.shift, step.steps, SOONER) and option.has_path(step.shift, step.steps) for step in epochs):
            yield None, 2
        yield None, 1
        for depth in SHALLOW:
            yield depth, 1
        yield None, 3


def point(question, add: int, eps: float, about: float | None = None):
    """delta(eps). about: about its logarithm, where the question does not say."""
    about = question.about if about is None else about

    def others():
        def ask(found: Finite, least_lost: float = LOST):
            return _point(question, found, add, eps, least_lost)

        answer = _narrower(question, add, about, ask)
        for deeper in DEEPER if answer is None and about == 0 and question.run._cache.get("cut") else ():
            answer = answer or (None if question.rough else _narrower(question, add, deeper, ask))
        if answer and answer.width <= WIDE:
            return answer
        return _shallower(question, add, answer.lower if answer else about, answer, ask)

    return _as_option(question, add, about, lambda step: option.point(step, add, eps), others)


def _one_epoch(run) -> RandomAllocation | None:
    """The step of a run of one epoch of random allocation."""
    step = run.parts[0][0]
    return step if run.steps == 1 and isinstance(step, RandomAllocation) else None


def _as_option(question, add: int, log_delta: float, ask: Callable, others: Callable):
    """What the price of an option says of one epoch alone, where it is asked first or others are wide."""
    step = _one_epoch(question.run)
    if step is None or question.rough:
        return others()
    ways = others, lambda: _told(question, add, "option", lambda: ask(step))
    answer = None
    for one in reversed(ways) if option.first(step, add, log_delta) else ways:
        answer = meet(answer, one(), question.run)
        if answer and answer.width <= mixed.ENOUGH:
            break
    return answer


def _lines(question, found: Finite, complement: bool = False) -> Lines | None:
    """The lines that are kept, where the question keeps them. complement: those of 1 - delta."""
    if question.lines is None:
        return None
    key = id(found), complement
    if key not in question.lines:
        question.lines[key] = found, Lines(complement=complement)
    _, lines = question.lines[key]
    if question.loose:
        fine = mixed.fine(found.run) if found.route is mixed and question.rtol is None else 0.0
        lines.enough, lines.wide = max(fine, 2 * question.goal, question.wide), question.wide > 0
    return lines


def _line_point(question, found: Finite, eps: float):
    """What the line says."""
    wide = {"wide": question.wide} if found.route is mixed else {}
    answer = found.route.point(found.run, eps, *found.tolerance(question), lines=_lines(question, found), **wide)
    if not _may_part(question, found, answer):
        return answer
    other = _told(question, 0, "parts", lambda: parts.point(found.run, eps, question.goal))
    return meet(answer, other, question.run)


def _line_root(question, found: Finite, log_delta: float):
    """The same of eps."""
    near = {"near": question.place} if found.route is mixed else {}
    answer = found.route.root(found.run, log_delta, *found.tolerance(question), **near)
    if not _may_part(question, found, answer):
        return answer
    about = answer.estimate if answer else parts.about_root(found.run, log_delta)
    other = _told(question, 0, "parts", lambda: parts.root(found.run, log_delta, question.goal, about))
    return meet(answer, other, question.run)


def _may_part(question, found: Finite, answer) -> bool:
    """Whether losses above a place and below it, each on a line of its own, may know more."""
    narrow = question.rough or (answer and answer.width <= _enough(found))
    return not narrow and found.route is mixed and parts.parted(found.run) is not None


def _enough(found: Finite) -> float:
    """The relative width from which other means are asked: a larger one where a line takes seconds."""
    many = any(isinstance(step, mixed.DensityStep) and step.columns.shape[1] > MANY for step in found.run)
    return WIDE if many else mixed.ENOUGH


def points(question, add: int, eps: np.ndarray) -> np.ndarray:
    """Points at ascending eps that share lines: rows (log_lower, log_estimate, log_upper, four terms), NaN where a
    point has to be asked on its own."""
    found = _asked(question, add, 0.0)
    if found is None or found.lost or found.partial or (lines := _lines(question, found)) is None:
        return np.full((eps.size, 7), np.nan)
    rows = lines.curve(eps, lambda at: _line_point(question, found, at))
    if found.log_finite:
        rows = _rows_with_infinite(found.log_finite, rows)
    rows[~(np.expm1(rows[:, 2] - rows[:, 0]) <= question.sharp)] = np.nan  # `auto` asks other routes there
    return rows


def complement(question, add: int, eps: np.ndarray) -> np.ndarray:
    """Ends of log(1 - delta) at ascending eps, by lines that know it [theory: line.complement]; NaN where none does."""
    found = _asked(question, add, 0.0)
    if found is None or found.lost or found.partial or (lines := _lines(question, found, True)) is None:
        return np.full((2, eps.size), np.nan)
    goal, *enough = found.tolerance(question)
    given: dict[str, Any] = {"lines": lines, **({"wide": question.wide} if found.route is mixed else {})}
    goal = max(goal, AIMED * min(question.wide, MOST_WIDE))
    rows = lines.curve(eps, lambda at: found.route.point(found.run, at, goal, *enough, **given))
    logs = rows[:, [0, 2]].T
    slack = np.array([[-1.0], [1.0]]) * log_slack(logs, found.log_finite)
    return logs + found.log_finite + slack  # 1 - delta is (1 - D) (1 - delta_finite) [theory: pair.infinite]


def _point(question, found: Finite, add: int, eps: float, least_lost: float = LOST):
    answer = _line_point(question, found, eps)
    lost = found.lost_upper(eps, answer.lower if answer else 0.0)
    if lost and not (answer and answer.lower > math.log(lost) + least_lost) and least_lost == LOST:
        deeper = _asked(question, add, answer.lower if answer else -math.inf, by_points=found.by_points) or found
        other = _line_point(question, deeper, eps)
        if other and answer:  # what a window holds bounds delta from below
            other = other._replace(lower=max(other.lower, answer.lower), estimate=max(other.estimate, answer.lower))
        if other or not (found.by_points and answer):
            found, answer, lost = deeper, other, deeper.lost_upper(eps, other.lower if other else 0.0)
        else:  # a tilt at delta sees more of a wider window than is known
            least_lost = ROUGHLY
    if not answer:
        question.why = NOT_FOUND
        return None
    if lost and not answer.lower > math.log(lost) + (least_lost if lost == found.lost else 0):
        question.why = LEFT_OUT
        return None
    low, mid, high, terms = answer.lower, answer.estimate, answer.upper, answer.terms
    if lost:
        left_out = math.exp(math.log(lost) + 1e-9 - low)
        high = min(math.nextafter(high + left_out, math.inf), 0.0)
        terms = _of_whole(terms, 1.0, left_out, 0.0)
    if found.log_finite:
        low, mid, high, terms = _with_infinite_too(found.log_finite, low, mid, high, terms)
    return Point(low, mid, high, terms, "contour")


def _with_infinite_too(log_finite: float, low: float, mid: float, high: float, terms):
    """Ends, estimate and error terms of the whole delta, where those of its finite losses are given."""
    ends = [_with_infinite(x, log_finite, side) for x, side in ((low, -1), (mid, 0), (high, 1))]
    logs = [math.log(end) if end > 0 else -math.inf for end in ends]
    least, most = (min(math.nextafter(logs[1 + side], side * math.inf), 0.0) for side in (-1, 1))
    about = min(logs[1], 0.0)
    return least, about, most, _of_whole(terms, math.exp(min(log_finite + mid - about, 0.0)), 0.0, 32 * U)


def _rows_with_infinite(log_finite: float, rows: np.ndarray) -> np.ndarray:
    """The same of rows of `points`."""
    low, mid, high, *terms = rows.T
    ends = [_with_infinite(x, log_finite, side, np.exp) for x, side in ((low, -1), (mid, 0), (high, 1))]
    with np.errstate(all="ignore"):
        least, about, most = (np.minimum(np.log(np.maximum(end, 0.0)), 0.0) for end in ends)
        least, most = least - log_slack(least), np.minimum(most + log_slack(most), 0.0)
    whole = _of_whole(tuple(terms), np.exp(np.minimum(log_finite + mid - about, 0.0)), 0.0, 32 * U)
    return np.array([least, about, most, *whole]).T


def _of_whole(terms: tuple[float, ...], share: float, truncation: float, rounding: float) -> tuple[float, ...]:
    """The terms of a part of delta, relative to the whole, of which it is `share`, and what is added to two of them."""
    aliasing, before, inner, own = terms
    return share * aliasing, share * before + truncation, share * inner, share * own + rounding


def below(question, add: int, eps: float, log_delta: float) -> bool:
    """Whether Chernoff's bound at the tilt of the line proves that delta(eps) <= e^log_delta, of a run without infinite
    losses; outcomes that the line leaves out add their mass [theory: line.chernoff]."""
    one = add and _one_epoch(question.run)
    if one and option.below(one, eps, log_delta):
        return True
    found = _asked(question, add, log_delta)
    if found is None or found.route is not mixed or found.log_finite:
        return False
    if not found.lost:
        return mixed.log_delta_upper(found.run, eps) <= log_delta
    left_out = math.exp(min(math.log(found.lost) + 1e-9 - log_delta, 0.0))
    return left_out < 0.5 and mixed.log_delta_upper(found.run, eps) <= log_delta + math.log1p(-left_out) - 1e-12


def _with_infinite(log_delta, log_finite: float, side: int, exp: Any = math.exp):
    """D + (1 - D) e^log_delta, of a number or an array, moved to the given side by more than what is rounded:
    log_finite is a sum of logs within 4u each. Below 2^-1022 this sum is off by units of 5e-324, and its logarithm by a
    unit in the last place wherever that is large."""
    value = -math.expm1(log_finite) + exp(log_finite + log_delta)  # [theory: pair.infinite]
    return value + side * (16 * U * (abs(log_finite) * math.exp(log_finite) + value) + 1e-322)


def root(question, add: int, delta: float):
    """eps(delta), clipped at 0."""

    def others():
        def ask(found: Finite, least_lost: float = LOST):
            return _root(question, found, add, delta, least_lost)

        return _shallower(question, add, math.log(delta), _narrower(question, add, math.log(delta), ask), ask)

    answer = _as_option(question, add, math.log(delta), lambda step: option.root(step, add, delta), others)
    return _between_points(question, add, math.log(delta), answer)


def _between_points(question, add: int, log_delta: float, answer):
    """`answer`, or what narrower points at two eps say: a root has one window, delta may have deeper ones."""
    cut = question.run._cache.get("cut")
    if question.rough or not cut or not answer or not answer.lower > 0 or answer.width <= WIDE:
        return answer
    ask = functools.partial(point, question, add, about=log_delta)
    mid, beside = answer.estimate, answer.estimate * (1 + parts.BESIDE)
    here, there = ask(mid), ask(beside)
    slope = (there.estimate - here.estimate) / (beside - mid) if here and there else 0.0
    if not (slope < 0 and 2 * here.width < -slope * (answer.upper - answer.lower)):
        return answer
    return meet(answer, option.bracket(ask, mid, slope, log_delta), question.run)


def _has_paths(run) -> bool:
    """Whether points of some epoch are by paths, which take seconds."""
    return any(isinstance(step, RandomAllocation) and option.has_path(step.shift, step.steps) for step, _ in run.parts)


def _shallower(question, add: int, log_delta: float, answer, ask: Callable):
    """`answer`, or a narrower one of windows less deep than log_delta asks for: in a deeper one a large term may be
    most of the line."""
    if question.rough or log_delta == -math.inf or (answer and answer.width <= mixed.ENOUGH):
        return answer
    first = _asked(question, add, log_delta)
    if first and first.route is mixed and answer and answer.width <= _enough(first):
        return answer
    jumps = first and any(isinstance(step, mixed.DensityStep) and step.slow for step in first.run)
    untried = first is not None and first.untried
    dear = first is not None and (parts.parted(first.run) is not None or (untried and _has_paths(question.run)))
    known = dear and answer and answer.width <= WIDE
    shallower = reversed(DEPTHS) if (jumps or untried) and not known else ()
    for depth in shallower:
        if SEEN - log_delta < depth < _depth(log_delta):
            other = functools.partial(_other_way, question, add, log_delta, depth, int(untried), ask, SEEN)
            answer = meet(answer, _told(question, add, f"line e^-{depth:g}", other), question.run)
            found = _asked(question, add, log_delta, depth, int(untried))
            if answer and answer.width <= (WIDE if found and parts.parted(found.run) is not None else mixed.ENOUGH):
                break
    return answer


def _root(question, found: Finite, add: int, delta: float, least_lost: float = LOST):
    losses = question.losses(add)
    least, most = rest(losses, delta)
    visible, most = seen(least, most, delta)
    if not visible and found.route is mixed and question.auto:  # a grid sees the lower end sooner
        question.why = "delta is within errors of the mass at infinity"
        return None
    if question.place is None or question.place.of != delta:
        question.place = mixed.Place(delta)

    def root_of(x: float, lost: float, side: int):
        """Where the finite losses have x, less what is left out of it, as the line has it."""
        left_out = math.exp(math.log(lost) + 1e-9 - math.log(x)) if lost and side < 0 else 0.0
        log_x = math.log(x)
        at = log_x + math.log1p(-left_out) - found.log_finite + side * 2 * log_slack(log_x, found.log_finite)
        return _line_root(question, found, min(at, -1e-300))

    inexact = found.log_finite or found.lost
    if not inexact:
        first = last = _line_root(question, found, min(math.log(delta), -1e-300))
    else:
        first = last = root_of(most, 0.0, 1) if most > 0 else None
    lost = found.lost_upper(first.lower, math.log(delta)) if first else found.lost
    if lost and not math.log(visible or most) > math.log(lost) + (least_lost if lost == found.lost else 1):
        question.why = LEFT_OUT
        return None
    if inexact and first and visible > 0:
        last = root_of(visible, lost, -1)
    if first is None or last is None:
        question.why = NOT_FOUND
        at_zero = _point(question, found, add, 0.0)
        return Root(0.0, 0.0, 0.0, ZERO, "contour") if at_zero and at_zero.at_most(delta) else None
    mid, high = 0.5 * (first.estimate + last.estimate), last.upper if visible else wall_upper(losses, least)
    left_out = math.exp(math.log(lost) + 1e-9) / delta if lost else 0.0
    terms = _of_whole(last.terms, min(most / delta, 1.0), left_out, (most - visible) / delta if inexact else 0.0)
    return Root(max(first.lower, 0.0), max(mid, 0.0), max(high, 0.0), terms, "contour")
