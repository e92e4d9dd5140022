"""Laplace and bounded-range steps, Poisson-subsampled or not, alone or with Gaussian and atomic ones: the vertical
line.

The integral, its error terms and their proofs are in mixed.c, law.c and laplace.c. Answers are those of answers.py,
None where the route declines.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _core, scratch
from ..answers import Point, Root
from ..bound import AccuracyError
from ..gauss import legendre_rule
from ..outward import U
from ..what.condensed import Condensed
from . import contour, near
from .lattice import LatticeLaw
from .near import Lines
from .question import SHARP

if TYPE_CHECKING:
    from ..what.allocation_density import Points

NODES = 1 << 12, 1 << 15
"""Most nodes of a first line and of a last one."""

MORE_NODES = 1 << 17
"""The same where a width is asked for."""

ENOUGH = 1e-9
"""Relative width that is enough of one distinct step whose line is short, where none is asked for; of several, and of
sampled Laplace noise, whose tails fall with a power of the frequency and whose nodes cost most, SHARP is."""

WIDE = 1e-7
"""Relative width from which a lower line is tried."""

WIDER, LONGER = 1.2, 1.15
"""How many times wider a root may be that begins at another one's line, and how many times the nodes it has where that
is not as narrow as is asked."""

ORDER = 24
"""Gauss-Legendre nodes in a panel: about where a panel of half a unit of the base loss costs least."""

PANELS_MAX, PANELS_BLIND = 1 << 8, 1 << 4
"""Most of them, and of a planned line that has not answered at all."""
NATS = 48.0
"""About -log of what the rule for random shifts may miss."""

MIXTURE_POINTS, POINTS_EACH = 1 << 17, 1 << 10
"""Most quadrature points of all mixtures together, or of each of many: with more, placing a line takes longer than a
grid, which takes milliseconds for every distinct step."""
COST, DENSE_COST = 1 << 26, 1 << 32
"""Most values of points at nodes in one attempt, about a second of random shifts, and four of points of a density; of
these the first attempt may take more."""

_NO_POINTS = np.zeros((5, 1))
_LINE = np.zeros(5)


class LaplaceStep(NamedTuple):
    """k steps of Laplace noise of scale `sensitivity/m`, Poisson-subsampled at rate q (1: not), in one direction."""

    m: float
    q: float
    add: int
    k: int


class RangeStep(NamedTuple):
    """k bounded-range steps of bound m, Poisson-subsampled at rate q (1: not), in one direction."""

    m: float
    q: float
    add: int
    k: int


class NormalStep(NamedTuple):
    """k Gaussian steps with m = sensitivity/sigma, Poisson-subsampled at rate q (1: not), in one direction."""

    m: float
    q: float
    add: int
    k: int


class AllocationStep(NamedTuple):
    """k epochs of `steps` Gaussian steps with m = sensitivity/sigma, a record in one of them at random, in one
    direction."""

    m: float
    steps: int
    add: int
    k: int


class DensityStep(NamedTuple):
    """k steps of a law known by points of its density: the columns of csrc/line/mixed.c; outcomes of mass `lost` are
    left out of each. slow: whether its tail falls slower than tilts rise. partial: whether points end where they are
    not known well enough, and its transform may know more. left_out: the largest losses of cells, and logs of bounds of
    the mass in them that is left out. factor: where it is a part of a law, the log of what its masses may be off
    by beside their errors; points: what can be parted."""

    columns: np.ndarray
    lost: float
    k: int
    cells: int
    partial: bool
    slow: bool
    left_out: np.ndarray
    factor: float | None = None
    points: Points | None = None


class MixtureStep(NamedTuple):
    """k steps of Gaussian noise around a random shift, in units of sigma, in one direction; shifts of probability
    `lost` are left out of each. few: for what many shifts these stand, where they do."""

    shifts: np.ndarray
    weights: np.ndarray
    add: int
    k: int
    lost: float = 0.0
    few: Condensed | None = None


class AtomicStep(NamedTuple):
    """k steps of a law of atoms: losses, log masses under num, bounds of the errors of both; log_concave as in
    LatticeLaw."""

    loss: np.ndarray
    log_mass: np.ndarray
    d_loss: np.ndarray
    d_log_mass: np.ndarray
    log_concave: bool
    k: int


def off_lattice(law: LatticeLaw, k: int) -> AtomicStep:
    """A law of the lattice route where the line takes it."""
    loss = float(law.unit) * law.places + float(law.offset)
    error = law.d_loss + (np.abs(loss) + abs(float(law.offset))) * (law.d_unit + 3 * U)
    return AtomicStep(loss, law.log_mass, error, law.d_log_mass, law.log_concave, k)


def point(
    steps,
    eps: float,
    rtol: float = contour.RTOL,
    enough: float | None = 0.0,
    *,
    lines: Lines | None = None,
    wide: float = 0.0,
) -> Point | None:
    """A certified delta(eps), or None. lines: those of other eps, where they are kept. wide: a relative width that will
    do where none is asked for."""
    answer = near.asked(lines, eps, lambda: _answer(1, steps, eps, rtol, enough, lines, least=wide))
    return answer and answer.certified("contour")


class Place:
    """Where the line lay that answered a question, how many nodes it was allowed, how many panels, and how narrow it
    was: where the next root of the same question begins, which lies next to it where two directions, or both ends of a
    target, have about one curve."""

    __slots__ = ("at", "nodes", "of", "panels", "width")

    def __init__(self, delta: float) -> None:
        self.of, self.at, self.nodes, self.panels, self.width = delta, np.zeros(2), 0, 1, 0.0


def root(
    steps, log_delta: float, rtol: float = contour.RTOL, enough: float | None = 0.0, *, near: Place | None = None
) -> Root | None:
    """A certified eps(delta), or None. near: of the root before."""
    answer = near and near.nodes and _next_to(near, steps, log_delta, rtol, enough)
    answer = answer or _answer(0, steps, log_delta, rtol, enough, near=near)
    return answer and answer.certified("contour")


def _next_to(near: Place, steps, log_delta: float, rtol: float, enough: float | None):
    """What one line says that lies where the one before did, or None where that is not as narrow."""
    table, points = tables(steps, near.panels)
    width = fine(steps) if enough is None else enough
    found = _call(0, table, points, log_delta, rtol, width, near.nodes, near.at.copy(), None)
    good = found.status == _core.OK or (found.status == _core.LOOSE and found.width <= min(width, WIDER * near.width))
    return found if good else None


def _answer(
    have_eps: int,
    steps,
    at: float,
    rtol: float,
    enough: float | None,
    lines: Lines | None = None,
    near: Place | None = None,
    least: float = 0.0,
):
    """The first attempt that reaches rtol, or a relative width of `enough` (None: `fine`, or `least` if that is more),
    with ever more quadrature panels, then nodes, as long as these may be what falls short; else the narrowest, or None.
    What falls short is told by truncation, quadrature, and rounding, which quadrature enters; the points of a mixture
    bound its far frequencies, and with them truncation, too."""
    found, panels, before, lost = [], 1, (math.inf, math.inf), False
    place = np.zeros(2)  # of the line that answered, where the next ones are
    nodes, *more = (*NODES, *[MORE_NODES] * (enough is not None))
    if enough is None:
        enough = max(fine(steps), least)
    dense = any(isinstance(step, DensityStep) for step in steps)
    wide = 0.0 if dense else WIDE  # a line over points costs little
    plan = _planned(steps, at, not have_eps)
    while True:
        try:
            table, points = tables(steps, panels, plan)
        except AccuracyError:
            break
        mixed = (table[:, 0] == _core.MIXTURE).any()
        most = COST // points.shape[1] if mixed else MORE_NODES
        if dense and not mixed:
            most = min(max(DENSE_COST // points.shape[1], NODES[0]), most)
        answer = _call(have_eps, table, points, at, rtol, max(enough, wide), min(nodes, most), place, lines)
        if answer.status == _core.OK or (answer.status == _core.LOOSE and answer.width <= enough):
            if near is not None and place[0] > 0:
                longer = 1.0 if answer.status == _core.OK else LONGER
                near.at, near.nodes = place, int(longer * min(nodes, most))
                near.panels, near.width = panels, answer.width
            return answer
        if lost and answer.status == _core.NO_BRACKET:
            break  # four times the panels found no more
        lost = answer.status == _core.NO_BRACKET
        truncation = quadrature = rounding = math.inf
        used, short = nodes // 4, answer.status == _core.TOO_WIDE
        if answer.status == _core.LOOSE:
            found.append(answer)
            if answer.nodes:  # else of mixed_top.c, after a line that failed
                _, truncation, quadrature, rounding = answer.relative()
                used = answer.nodes + 1
            # the visit ended for want of nodes, or where these may reach next to another frequency of a lattice
            short = not answer.nodes or used > nodes - 64 or (len(steps) > 1 and nodes == NODES[0])
        helped = 0.1 * rtol < rounding < 0.5 * before[0] or (mixed and 0.1 * rtol < truncation < 0.5 * before[1])
        falls, before = quadrature >= 0.1 * max(rtol, truncation) or helped, (rounding, truncation)
        if (
            falls
            and table[table[:, 0] != _core.DENSITY, 6].any()  # points of a density are what they are
            and panels < (PANELS_MAX if found or not plan else PANELS_BLIND)
            and 4 * points.shape[1] * used < COST
        ):
            panels *= 4
        elif short and more and nodes < most and max(truncation, quadrature) > 0.1 * rtol:
            while len(more) > 1 and truncation * (nodes / more[0]) ** 3 > enough:
                more = more[1:]  # no tail falls faster
            if answer.status == _core.LOOSE and enough > 0 and nodes == NODES[0] and used > nodes - 64:
                more = [*_nodes_enough(nodes, answer.width / enough, more[0]), *more]
            nodes, *more = more
        else:
            break
    return min(found, key=lambda answer: answer.width) if found else None


def fine(steps) -> float:
    """The relative width that will do where none is asked for."""
    short = len(steps) == 1 and not (isinstance(steps[0], LaplaceStep) and steps[0].q < 1)
    return ENOUGH if short else SHARP


def _nodes_enough(nodes: int, over: float, most: int) -> tuple[int, ...]:
    """How many of `most` nodes make a width over times too wide narrow enough: tails fall with a power from 2 to 3 of
    the frequency. None where nearly all do."""
    found = int(1.3 * nodes * (4 * over) ** (1 / 3))
    return (found,) if found < 0.8 * most else ()


def log_delta_upper(steps, eps: float) -> float:
    """Chernoff's bound of log delta(eps) at the tilt of the line, infinite where there is none."""
    try:
        table, points = tables(steps, 1)
    except AccuracyError:
        return math.inf
    subnormal = int((table[:, 0] == _core.SUBNORMAL).sum())
    size = _core.mixed_work(len(table), points.shape[1], subnormal, 0)
    status, upper = lend(size, _core.mixed_upper, table, points, _LINE, eps, contour.MARGIN)
    return upper if status == _core.OK else math.inf


def tables(steps, panels: int, plan: tuple[float, float] | None = None):
    """Rows of laws and of their points for csrc/line/mixed.c. panels: per unit of a subsampled step's base loss
    range; plan: about the tilt of the line and the deviation of the whole loss there, where these are known."""
    rows: list[list[float]] = []
    columns: list[np.ndarray] = []
    random = [step for step in steps if isinstance(step, MixtureStep)]
    if random:
        held, rows = _mixtures(random, panels, plan)
        columns.append(held)
    for step in steps:
        if isinstance(step, MixtureStep):
            continue
        if isinstance(step, NormalStep):
            rows.append([_core.NORMAL if step.q == 1 else _core.SUBNORMAL, step.k, step.m, step.q, step.add, 0, 0])
        elif isinstance(step, AllocationStep):
            rows.append([_core.ALLOCATION, step.k, step.m, step.steps, step.add, 0, 0])
        elif isinstance(step, DensityStep):
            columns.append(step.columns)
            part = step.factor is not None
            rows.append([_core.DENSITY, step.k, step.factor or 0.0, part, 0, step.columns.shape[1], step.cells])
        elif isinstance(step, AtomicStep):
            columns.append(np.array([step.loss, step.loss, step.log_mass, step.d_loss, step.d_log_mass]))
            rows.append([_core.LOG_CONCAVE if step.log_concave else _core.POINTS, step.k, 0, 0, 0, step.loss.size, 0])
        elif step.q == 1:
            rows.append([_core.RANGE if isinstance(step, RangeStep) else _core.LAPLACE, step.k, step.m, 1, 0, 0, 0])
        else:
            n = panels * max(1, math.ceil(step.m))
            columns.append(_core.sublaplace_points(step.m, step.q, step.add, n, *legendre_rule(ORDER)))
            if bare := isinstance(step, RangeStep):
                columns[-1] = _without_atoms(columns[-1], step.m)
            rows.append(
                [
                    _core.SUBRANGE if bare else _core.SUBLAPLACE,
                    step.k,
                    step.m,
                    step.q,
                    step.add,
                    columns[-1].shape[1],
                    n,
                ]
            )
    points = np.ascontiguousarray(np.concatenate(columns, axis=1)) if columns else _NO_POINTS
    return np.array(rows, dtype=float), points


def _joined(steps):
    """Shifts and weights of all steps, where those of each start, and how many times each runs."""
    shifts, weights = (np.concatenate(c) for c in ([s.shifts for s in steps], [s.weights for s in steps]))
    starts = np.r_[0, np.cumsum([step.shifts.size for step in steps])[:-1]]
    return shifts, weights, starts, np.array([float(step.k) for step in steps])


def _planned(steps, at: float, root: bool) -> tuple[float, float] | None:
    """About the tilt of the line, or more, and the deviation of the loss there, by the random shifts alone; None where
    these are none or many, or nothing is found. at: eps, or log delta of a `root`."""
    random = [step for step in steps if isinstance(step, MixtureStep)]
    if not random or sum(step.shifts.size for step in random) > PLANNED:
        return None
    top, sign = max(float(step.shifts.max()) for step in random), -1.0 if random[0].add else 1.0
    places = np.arange(-14.0, top + 40.0, 0.25)
    power = -TILTS if sign < 0 else 1 + TILTS
    cumulant, mean = np.zeros(TILTS.size), np.zeros(TILTS.size)
    for step in random:
        inner = np.multiply.outer(places, step.shifts) + (np.log(step.weights) - 0.5 * step.shifts**2)
        peak = inner.max(axis=1)
        loss = peak + np.log(np.exp(inner - peak[:, None]).sum(axis=1))
        terms = np.multiply.outer(power, loss) - 0.5 * places * places
        peak = terms.max(axis=1)
        parts = np.exp(terms - peak[:, None])
        total = parts.sum(axis=1)
        cumulant += step.k * (peak + np.log(total * 0.25 / math.sqrt(2 * math.pi)))
        mean += step.k * sign * (parts @ loss) / total
    spread = np.maximum(np.gradient(mean, TILTS), 1e-300)
    if root:
        goal = cumulant - TILTS * mean - np.log(TILTS * (1 + TILTS)) - 0.5 * np.log(2 * math.pi * spread) <= at
    else:
        goal = mean - 1 / TILTS - 1 / (1 + TILTS) >= at
    i = int(np.argmax(goal))
    return (float(TILTS[i]), math.sqrt(spread[i])) if goal[i] else None


TILTS = np.geomspace(1e-2, 1e5, 90)
PLANNED = 4096
"""Tilts among which that of a line is looked for, and most shifts of which it is."""


def _mixtures(steps, panels: int, plan: tuple[float, float] | None = None):
    """Points and rows of random shifts. The rule is made for the tilts and frequencies that a run of so many nats needs
    if its loss is about normal, or for those that are planned, and for higher frequencies with more panels;
    csrc/law/mixture.c bounds what it misses."""
    shifts, weights, starts, k = _joined(steps)
    sizes = np.diff(np.append(starts, shifts.size))
    top = np.maximum.reduceat(shifts, starts)
    size = np.add.reduceat(weights * np.sqrt(np.expm1(np.minimum(shifts, 4.0) ** 2)), starts)
    more = math.sqrt(panels / max(float(k @ (size * size)), 1e-300))  # over the deviation of the whole loss
    reach, most, turn = min(18 * more, 1e7) + 3, 7 * more, min(20 * more, 1e7)
    if plan:
        reach, most = max(3 * plan[0] + 4, 12 / plan[1] + 3), 1.2 * plan[0] + 1  # aliases are bounded at other tilts
        turn = max(turn, 20 * math.sqrt(panels) / plan[1])
    wide, add = np.minimum(1.5 / top, 9.0), steps[0].add
    whole = 9.5 + (reach + 2) * top + np.sqrt(2 * turn * wide * top)
    places = np.r_[-2:13:0.75, np.geomspace(13.5, max(14.0, whole.max()), 24)]
    loss, slope = _losses(places, shifts, weights, starts)
    tilted = (-most if add else 1 + most) * loss - 0.5 * places * places
    far = reach * loss - 0.5 * places * places
    angle = wide[:, None] * np.minimum(slope / np.cos(0.5 * wide * top)[:, None], top[:, None])
    bend = np.max(tilted + turn * angle, axis=1) - tilted.max(axis=1)
    mesh = 2 * math.pi / (NATS / wide + 0.5 * wide + bend / wide)
    power = np.exp2(np.floor(np.log2(mesh)) - 12)
    mesh = np.floor(mesh / power) * power  # 12 bits: nodes are exact
    left = np.ceil(np.maximum(9.5 + np.log1p(reach * top * size) / top, 1.2 * top + 1) / mesh)
    small = (tilted < tilted.max(axis=1)[:, None] - NATS - 4) & (far < far.max(axis=1)[:, None] - 8)
    beyond = np.logical_and.accumulate(small[:, ::-1], axis=1)[:, ::-1] & (places > 9.5)
    last = places[np.argmax(beyond, axis=1)]
    right = np.ceil(np.where(last > 9.5, np.minimum(last, whole), whole) / mesh)
    nodes, beyond = left + right + 1, np.ceil(whole / mesh) - right + 2
    if not (nodes + beyond).sum() < max(MIXTURE_POINTS, POINTS_EACH * k.size):
        raise AccuracyError("random shifts need too many nodes")
    ends = np.broadcast_to([reach, turn], (k.size, 2))
    table = np.ascontiguousarray(np.column_stack([sizes, -left * mesh, mesh, nodes, beyond, ends]))
    points = _core.mixture_points(table, shifts, weights, add)
    ends = np.cumsum(nodes + 2).astype(int)
    for i, step in enumerate(steps):
        if step.few is not None:
            far = (nodes[i] - 1 + beyond[i] - left[i]) * mesh[i]
            _stand(points[:, ends[i] - int(nodes[i]) - 2 : ends[i]], step.few, mesh[i], -left[i] * mesh[i], far, add)
    rows = np.column_stack(
        [np.full(k.size, _core.MIXTURE), k, top, -left * mesh, np.full(k.size, add), nodes + 2, mesh]
    )
    return points, rows.tolist()


def _stand(points, few: Condensed, mesh: float, first: float, far: float, add: int) -> None:
    """The points of few shifts as those of the many for which they stand: R is within a factor at each node, further
    ones with it; slopes l' are off by at most the width of a cell and thrice that factor [theory: law.condensed]."""
    count = points.shape[1] - 2
    off = few.off_upper(first + mesh * np.arange(count))
    points[3, :count] += off
    points[4, :count] += 0.0 if add else off
    (reach, turn), top = points[1, count:], float(few.shifts[-1])
    beyond, wide = float(few.off_upper(far)), min(WIDEST / top, DEEPEST)
    slope = min(2 * few.half + 3 * (top + 1) * beyond, top)
    points[2, count:] += 4 * beyond
    points[3, count:] += (4 + reach) * beyond
    points[2:4, count + 1] += turn * wide / math.cos(0.5 * top * wide) * slope
    points[4, count] += slope


WIDEST, DEEPEST = 1.5, 9.0
"""Of the strip in csrc/law/mixture.c."""


def _losses(places, shifts, weights, starts):
    """l = log R of mixture.c at a few places, and its slope: a row for every step."""
    loss, slope = [], []
    for x in places:
        part = weights * np.exp(np.minimum(shifts * (x - 0.5 * shifts), 700.0))
        whole = np.add.reduceat(part, starts)
        loss.append(np.log(whole))
        slope.append(np.add.reduceat(part * shifts, starts) / whole)
    return np.array(loss).T, np.array(slope).T


def _without_atoms(points, m: float):
    """The points of a bounded-range step: those between the atoms of Laplace noise, whose masses under num and den are
    both (1 - e^-m)/2 in all, over that. Logs of masses gain 6u and the rounding of one sum."""
    found = np.ascontiguousarray(points[:, 1:-1])
    found[2] += math.log(-2 / math.expm1(-m))
    found[4] += U * (6 + 2 * np.abs(found[2]))
    return found


def _call(have_eps: int, table, points, at: float, rtol: float, wide: float, nodes: int, place, lines: Lines | None):
    size = _core.mixed_work(len(table), points.shape[1], int((table[:, 0] == _core.SUBNORMAL).sum()), nodes)
    asked = table, points, _LINE, have_eps, at, rtol, contour.margin(rtol), wide, nodes, place
    return lend(size, _core.mixed_ask, *asked, lines=lines)


def lend(size: int, function, table, *arguments, lines: Lines | None = None):
    """function(table, *arguments, scratch), and with the tables of epochs of random allocation where there are some.
    lines: where the line is kept that mixed_ask places."""
    epochs = table[table[:, 0] == _core.ALLOCATION, 2:5]
    if not epochs.size:
        if lines is not None:
            return lines.place(size, table, *arguments)
        return scratch.lend(size, function, table, *arguments)
    work = scratch.borrow(size)
    try:
        room = len(epochs) * _core.allocation_work()
        return scratch.lend_tables(epochs.tobytes(), room, function, table, *arguments, work)
    finally:
        scratch.give_back(work)
