"""Lines that were placed for one eps and are asked at others near it, for as long as one user's question lasts.

What a line of csrc/line/mixed.c says is certified at every eps [theory: line.near]; only its width depends on how far
eps lies from where it was placed. A question of many deltas, such as one about a trade-off curve, places few lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..answers import log_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..answers import Scaled

KEPT = 8
"""Lines that are kept, the last ones: a line holds up to four numbers for each of its nodes."""

WIDER, LEAST = 2.0, 1e-13
"""How many times wider than where it was placed an answer of a line may be, and a width that it always may have."""


def asked(lines: Lines | None, eps: float, ask: Callable[[], Scaled | None]) -> Scaled | None:
    """What a line that is kept says of delta(eps), else ask(), whose line is kept from then on."""
    if lines is None:
        return ask()
    answer = lines.near(eps)
    if answer is None:
        answer = ask()
        lines.keep(eps, answer)
    return answer


class _Line:
    """A line, where it was placed, with which width that would do, and how wide it was there; and by the width that it
    may have, the distances to either side at which it was wider."""

    __slots__ = ("aim", "eps", "far", "line", "width")

    def __init__(self, eps: float, line: _core.MixedLine, width: float, aim: float):
        self.eps, self.line, self.width, self.aim = eps, line, width, aim
        self.far: dict[float, list[float]] = {}

    def within(self, enough: float) -> tuple[float, list[float]]:
        """How wide an answer may be where `enough` will do, and from where on it is wider."""
        width = max(WIDER * self.width if self.aim <= enough else 0.0, LEAST, enough)
        return width, self.far.setdefault(width, [-math.inf, math.inf])

    def near(self, eps: float, enough: float) -> Scaled | None:
        off, (width, far) = eps - self.eps, self.within(enough)
        if not far[0] < off < far[1]:
            return None
        found = self.line.near(eps)
        if found.status <= _core.LOOSE and found.width <= width:
            return found
        far[off > 0] = off
        return None

    def curve(self, eps: np.ndarray, enough: float) -> np.ndarray:
        """Rows as of `contour.points`, NaN where the line is too wide."""
        rows = self.line.curve(eps)
        status, _, lower, estimate, upper = rows.T[:5]
        with np.errstate(all="ignore"):
            narrow = (upper - lower) / estimate <= self.within(enough)[0]
        return log_rows(rows, (status <= _core.LOOSE) & narrow)


class Lines:
    """The lines of one run in one direction, all placed for one tolerance. enough: a relative width that will do, now;
    with 0, of a question whose lines are to be as narrow as those of its own eps. wide: whether lines shall serve eps
    that lie apart, which costs some of the width of those whose nodes are limited. complement: whether all that they
    say is about 1 - delta."""

    def __init__(self, enough: float = 0.0, complement: bool = False) -> None:
        self.enough, self.wide, self._complement = enough, False, complement
        self._kept: list[_Line] = []
        self._tried: list[tuple[Scaled, _core.MixedLine]] = []

    def near(self, eps: float) -> Scaled | None:
        """What the nearest line says of delta(eps), if that is as good as a line of its own; else None."""
        found = min(self._kept, key=lambda line: abs(line.eps - eps), default=None)
        return None if found is None else found.near(eps, self.enough)

    def place(self, size: int, *arguments: Any) -> Scaled:
        """_core.mixed_ask with scratch of its own, on a line that may be kept."""
        line = _core.MixedLine(self._complement, self.wide)
        found = line.ask(*(*arguments, np.empty(size)))
        self._tried.append((found, line))
        return found

    def keep(self, eps: float, answer: Scaled | None) -> None:
        """Keep the line of an answer of `place` at eps, and no other that was tried for it."""
        for found, line in self._tried:
            if found is answer and line.placed:
                self._kept = [*self._kept[1 - KEPT :], _Line(eps, line, found.width, self.enough)]
        self._tried.clear()

    def curve(self, eps: np.ndarray, ask) -> np.ndarray:
        """Rows as of `contour.points` at ascending eps, by lines that ask(eps) places one at a time as they are needed:
        in the middle of what none has answered yet. NaN where a line of its own is too wide."""
        rows, todo = np.full((eps.size, 7), np.nan), np.ones(eps.size, dtype=bool)
        for line in self._kept:
            self._answer(line, eps, rows, todo)
        while todo.any():
            left = np.flatnonzero(todo)
            i = left[left.size // 2]
            kept = self._kept
            found = ask(float(eps[i]))
            todo[i] = False
            if found is not None:
                rows[i] = *found[:3], *found.terms
            if self._kept is not kept:
                self._answer(self._kept[-1], eps, rows, todo)
        return rows

    def _answer(self, line: _Line, eps, rows, todo) -> None:
        """What a line says where none has answered."""
        off, (_, far) = eps - line.eps, line.within(self.enough)
        near = np.flatnonzero(todo & (off > far[0]) & (off < far[1]))
        if near.size:
            rows[near] = line.curve(eps[near], self.enough)
            todo[near] = failed = np.isnan(rows[near, 0])
            for side, way in enumerate((-1.0, 1.0)):  # nothing further on than its answers is asked of this line again
                ahead = way * off[near]
                beyond = ahead[failed & (ahead > ahead[~failed].max(initial=0.0))]
                far[side] = way * min(beyond.min(initial=math.inf), way * far[side])
