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
    """A line, where it was placed, how wide it may be, and distances to either side at which it was wider."""

    __slots__ = ("above", "below", "eps", "line", "width")

    def __init__(self, eps: float, line: _core.MixedLine, width: float):
        self.eps, self.line, self.width = eps, line, width
        self.below = self.above = math.inf

    def near(self, eps: float) -> Scaled | None:
        off = eps - self.eps
        if not -self.below < off < self.above:
            return None
        found = self.line.near(eps)
        if found.status <= _core.LOOSE and found.width <= self.width:
            return found
        if off < 0:
            self.below = -off
        else:
            self.above = off
        return None

    def curve(self, eps: np.ndarray) -> np.ndarray:
        """Rows as of `contour.points`, NaN where the line is too wide."""
        rows = self.line.curve(eps)
        status, _, lower, estimate, upper = rows.T[:5]
        with np.errstate(all="ignore"):
            narrow = (upper - lower) / estimate <= self.width
        return log_rows(rows, (status <= _core.LOOSE) & narrow)


class Lines:
    """The lines of one run in one direction, all placed with one tolerance. enough: a relative width that will do.
    complement: whether all that they say is about 1 - delta."""

    def __init__(self, enough: float, complement: bool = False) -> None:
        self._enough, self._complement = enough, complement
        self._kept: list[_Line] = []
        self._tried: list[tuple[Scaled, _core.MixedLine]] = []

    def near(self, eps: float) -> Scaled | None:
        """What the nearest line says of delta(eps), if that is as good as a line of its own; else None."""
        found = min(self._kept, key=lambda line: abs(line.eps - eps), default=None)
        return None if found is None else found.near(eps)

    def place(self, size: int, *arguments: Any) -> Scaled:
        """_core.mixed_ask with scratch of its own, on a line that may be kept."""
        line = _core.MixedLine(self._complement)
        found = line.ask(*(*arguments, np.empty(size)))
        self._tried.append((found, line))
        return found

    def keep(self, eps: float, answer: Scaled | None) -> None:
        """Keep the line of an answer of `place` at eps, and no other that was tried for it."""
        for found, line in self._tried:
            if found is answer and line.placed:
                self._kept = [*self._kept[1 - KEPT :], _Line(eps, line, max(WIDER * found.width, LEAST, self._enough))]
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
        off = eps - line.eps
        near = np.flatnonzero(todo & (off > -line.below) & (off < line.above))
        if near.size:
            rows[near] = line.curve(eps[near])
            todo[near] = np.isnan(rows[near, 0])
