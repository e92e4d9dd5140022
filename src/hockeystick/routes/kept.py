"""Lines that an accountant keeps: asked the same again after a few more steps, they only take in what is new
(csrc/line/kept.c) [theory: line.kept]."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any, NamedTuple

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import Point, Root, larger, ordered
from ..arguments import log_lower
from ..what.pair import paired_steps
from . import contour
from .question import Question

GROWTH = 0.25
"""A line serves a run that has grown by this part of it: beyond, the saddle and the period have moved on."""
WIDER, NARROW = 4, 1e-10
"""An answer that is so many times wider than the line's first, and wider than this, asks for another line."""
DECIDES = 1e-4
"""The goal where a level is to be compared: an interval that holds it is narrowed by the routes."""
LINES = 8
"""Most lines of one accountant."""
FEWEST = 8
"""Distinct steps from which an accountant keeps lines: of fewer all are summed as fast as one is added."""
LOST = 1 << 62
"""The place of a line of which nobody knows what it holds: beyond that of every run."""


class Lines:
    """The lines of one accountant, and the steps that were recorded since the oldest of them was made.

    place : number of steps recorded since the start.   total : sum of the counts of all steps.
    """

    __slots__ = ("_first", "_kept", "_lock", "_missed", "_rows", "_tried", "place", "total")

    def __init__(self, total: float) -> None:
        self.place, self.total = 0, float(total)
        self._rows = np.empty((_core.KEPT_MORE, 3))
        self._first = 0  # place of the first row
        self._kept: dict[Any, _Line] = {}
        self._tried: dict[Any, float] = {}  # what was asked: the total for which a line was made last, or given up
        self._missed = False  # whether a step came while the lock was taken
        self._lock = threading.Lock()

    def record(self, m: float, q: float, count: int) -> None:
        """One more step. Who records may be in a signal handler during a query: nothing waits for the lock."""
        self.total += count
        self.place += 1
        if not self._lock.acquire(blocking=False):
            self._missed = True
            return
        try:
            at = self.place - self._first - 1
            if self._kept and at < len(self._rows):
                self._rows[at] = m, q, count
            elif self._kept:
                self._missed = True
        finally:
            self._lock.release()

    def _held(self) -> bool:
        """Whether nobody else is asking; whoever is told so gives the lock back."""
        if not self._lock.acquire(blocking=False):
            return False
        if self._missed:
            self._missed = False
            self._kept, self._tried = {}, dict.fromkeys(self._tried, 0.0)
        return True

    def ask(self, question: Question, have_eps: int, add: int, value: float, goal: float):
        """(Point or Root, upper bound of log delta in the other direction) of a run; None where no line is kept that
        serves. The second time that something is asked a line is made."""
        if not self._held():
            return None
        try:
            return self._asked(_Key(have_eps, add, sides_of(question.adjacency), value, goal), question)
        finally:
            self._lock.release()

    def again(self, roots: bool, sides: int, at: float, place: int, total: float) -> Point | Root | None:
        """eps(delta) or delta(eps) of so many steps, the larger over the directions, without a question, where a line
        of REMOVE that was made for the same says it alone, or with one of ADD, and need not be made anew; else None."""
        have_eps = int(not roots)
        key = _Key(have_eps, 0, sides, at if have_eps else math.log(at), contour.RTOL)
        if not total <= (1 + GROWTH) * self._tried.get(key, 0.0) or not self._held():
            return None
        try:
            answer = self._answer(key, place, total, _NOTHING)
            if answer is None:
                return None
            found, below = answer
            if sides == 1 and not _larger(found, below, have_eps, at):
                other = self._answer(key._replace(add=1), place, total, _NOTHING)
                if other is None or not (have_eps or found.lower > 0):
                    return None
                found = larger(found, other[0].within_a_curve(at))
        finally:
            self._lock.release()
        found = ordered(found.within_a_curve(at))
        return found if roots else found.of_delta()

    def far_upper(self, question: Question, add: int, eps: float) -> float:
        """Chernoff's bound of log delta(eps), at the tilt that was best when it was last placed."""
        run, key = question.run, _Key(_FAR, add, 1, eps, 0.0)
        if not self._held():
            return math.inf
        try:
            base, extra = run.recorded()
            if base.total > (1 + 2 * GROWTH) * self._tried.get(key, 0.0) and base.place == self.place:
                self._hold(key, _line_of_chernoff(_base_of(question, base), add, eps), base)
            line = self._kept.get(key)
            if line is None or base.place < line.place:
                return math.inf
            line.upper = _with_more(line, add, self._rows[line.place - self._first : base.place - self._first])
            line.place = base.place
            return _with_more(line, add, extra)
        finally:
            self._lock.release()

    def _asked(self, key: _Key, question: Question):
        base, extra = question.run.recorded()
        tried = self._tried.get(key)
        if tried is None:
            self._hold(key, None, None)
            return None
        current = base.place == self.place
        fresh = current and base.total > (1 + GROWTH) * tried
        if fresh:
            self._hold(key, _line_of(_base_of(question, base), key), base)
        answer = self._answer(key, base.place, base.total, extra)
        line = self._kept.get(key)
        if answer is None and line and (line.place == LOST or not len(extra)):  # the line has had its time
            if current and not fresh:
                self._hold(key, _line_of(_base_of(question, base), key), base)
                answer = self._answer(key, base.place, base.total, extra)
            else:
                self._tried[key] = base.total if fresh else 0.0
            if answer is None and (self._kept.get(key) is line or not len(extra)):
                self._kept.pop(key, None)
        return answer

    def _answer(self, key: _Key, place: int, total: float, extra):
        """What a line says of all steps up to `place`, so many, and some more; None where it does not serve."""
        line = self._kept.get(key)
        if len(extra):
            total += float(extra[:, 2].sum())
        if line is None or place < line.place or total > (1 + 2 * GROWTH) * line.total:
            return None
        have_eps, value = key.have_eps, key.value
        first, last = line.place - self._first, place - self._first
        rows = np.concatenate([self._rows[first:last], extra]) if len(extra) else self._rows[first:last]
        line.place = LOST  # where it has no room for what was recorded, or fails on the way
        work = scratch.borrow(_core.KEPT_WORK)
        found, below = _core.kept_ask(line.memory, rows, last - first, have_eps, value, line.route != "contour", work)
        scratch.give_back(work)
        if last == first or found.status in (_core.OK, _core.LOOSE):
            line.place = place
        if found.status != _core.OK:
            return None
        width = found.width
        line.width = min(line.width, width)
        if width <= max(WIDER * line.width, NARROW):
            return found.certified(line.route), below
        return None

    def _hold(self, key: _Key, line: _Line | None, base) -> None:
        """Keep a line for all steps of `base`, note that there is none, or, without `base`, that it was asked for."""
        if key not in self._tried and len(self._tried) >= LINES:
            self._kept, self._tried = {}, {}
        self._tried[key] = base.total if base else 0.0
        self._kept.pop(key, None)
        if line:
            line.place, line.total = base.place, base.total
            if not self._kept:
                self._first = base.place
            self._kept[key] = line


_NOTHING = np.empty((0, 3))
_FAR = 2
"""In place of have_eps: Chernoff's bound."""


class _Key(NamedTuple):
    """What a line is asked: whether it is given eps, in which direction, of pairs with how many sides, where, and how
    well."""

    have_eps: int
    add: int
    sides: int
    value: float
    goal: float


def sides_of(adjacency: str) -> int:
    """2 where a sampled step is a two-sided pair and a plain one has twice the shift."""
    return 2 if adjacency == "replace_one" else 1


class _Line:
    """A line, or a bound, and what it has taken in.

    memory : that of csrc/line/kept.c.   route : its name.   upper, tilt : Chernoff's bound and its tilt.
    """

    __slots__ = ("memory", "place", "route", "tilt", "total", "upper", "width")

    def __init__(self, route: str, upper: float = math.inf, tilt: float = 0.0) -> None:
        self.route, self.upper, self.tilt = route, upper, tilt
        self.memory = np.empty(0 if upper < math.inf else _core.KEPT_ROOM)
        self.place, self.total = 0, 0.0
        self.width = math.inf  # of its narrowest answer


def _base_of(question: Question, base) -> Question:
    """The same question of the steps that were recorded."""
    return Question(base, question.adjacency, question.auto, question.rtol, 1)


def _sums(question: Question):
    """(rows, route) of what may stand for the steps of a question: rules, and they themselves where they are
    known; and whether these would hardly be narrower."""
    others = (ruled for ruled in question.rules if ruled.apart or not question.gaussian)
    for ruled in itertools.chain(question.narrower_rules, others):  # made so seldom that its width matters more
        yield ruled.steps, "compressed", ruled.fine
    if question.run.listed and question.gaussian:
        yield question.steps, "contour", True
    elif question.run.listed:
        paired = paired_steps(question.run, question.adjacency, False)
        assert paired is not None  # `replaced`
        yield paired.steps, "contour", True


def _line_of(question: Question, key: _Key) -> _Line | None:
    """A line that answers."""
    for steps, route, last in _sums(question):
        line = _Line(route)
        size = max(_core.contour_work(steps.shift.size), _core.KEPT_WORK)
        asked = steps, key.add, key.have_eps, key.value, key.goal, contour.margin(key.goal), line.memory
        status = scratch.lend(size, _core.kept_make, *asked, sides=key.sides)
        if status == _core.OK or (status == _core.LOOSE and last):
            return line
    return None


def _line_of_chernoff(question: Question, add: int, eps: float) -> _Line | None:
    """Chernoff's bound, where there is one."""
    for steps, *_ in _sums(question):
        status, upper, tilt = scratch.lend(_core.contour_work(1), _core.chernoff_upper, steps, add, 1, eps)
        if status == _core.OK and upper < math.inf:
            return _Line("moments", upper, tilt)
    return None


def _with_more(line: _Line, add: int, rows) -> float:
    """Chernoff's bound with rows (m, q, k), rounded up [theory: line.kept]."""
    if not len(rows):
        return line.upper
    m, q, k = rows.T.copy()
    up = _core.individual_tilts(Rows(m, q, k), add, float(k.max()), np.array([line.tilt]), 1)[:, 0]
    return math.nextafter(line.upper + float(k @ up) * (1 + 1e-9), math.inf)


def _larger(found: Point | Root, below: float, have_eps: int, at: float) -> bool:
    """Whether an answer is proved to be the larger over the directions, by an upper bound of log delta in the other."""
    return below <= found.lower if have_eps else found.lower > 0 and below <= log_lower(at)


def largest(question, have_eps: int, at: float) -> Point | Root | None:
    """The larger over the directions, where lines are kept for them."""
    lines = question.run.lines
    if lines is None or question.rtol is not None or not lines.total:
        return None
    goal = question.goal
    value = at if have_eps else math.log(at)
    wall = question.wall  # from which ADD has no delta
    directions = question.directions
    if have_eps and at >= wall:
        directions = [add for add in directions if not add]
    if question.enough is not None and have_eps:
        if question.gaussian and question.adjacency != "replace_one":
            upper = max((lines.far_upper(question, add, at) for add in directions), default=math.inf)
            if upper <= question.enough:
                return Point(-math.inf, upper, upper, (1.0,), "moments")
        goal = DECIDES
    first, *others = directions or (1,)
    answer = lines.ask(question, have_eps, first, value, goal)
    if answer is None:
        return None
    found, below = answer
    if not have_eps and not found.lower > 0:
        return None
    if not others or (not have_eps and found.lower >= wall) or _larger(found, below, have_eps, at):
        return found
    if goal == DECIDES and below < 0:
        return found._replace(upper=max(found.upper, below))
    answer = lines.ask(question, have_eps, others[0], value, goal)
    return answer and larger(found, answer[0].within_a_curve(at))
