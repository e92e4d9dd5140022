"""Lines at fixed places of delta, for the roots and points of a run of many distinct steps.

A line is certified wherever it is asked, and about as narrow a good third of a standard deviation of the loss from
where it was placed [theory: line.near]. So delta is cut into parts, which no question moves, each part has a line, made
when something in it is asked first, and a further question costs a sum over some tens of nodes, however many steps
there are. A point goes to the line of about its delta. No answer depends on what was asked before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core, scratch
from ..answers import Crossing, Scaled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._core import Rows

STEP = 0.75
"""Width of a part in standard deviations of a normal loss."""
FAR, NATS = 8.0, 6.0
"""Beyond so many standard deviations a part has so many nats of delta: a line reaches four either way
(csrc/line/contour_place.c)."""
HALVINGS = 2
"""Where its line is not as narrow, a part is halved, so often at most."""
ROOM = 4.0
"""Nats by which aliases and tail stay lower than at the middle of a part, so that they are low enough at its ends."""
WIDER = 2.0
"""How many times wider than at its middle an answer may be that misses its goal."""
MOST = 64
"""Lines of a run that are kept, the last ones."""
OCTAVE, PLACES = 16, 512
"""Places to the octave at which log delta is estimated, and most of them that are kept."""

_NO_ROWS = np.empty((0, 3))
_TOO_WIDE = Crossing(_core.TOO_WIDE, 0.0, 0.0, 0.0, (), 0)


class Goal(NamedTuple):
    """Relative half-width of delta asked of a line, and nats by which aliases and tail stay below delta."""

    rtol: float
    nats: float


def answer(
    have_eps: int, run: Any, steps: Rows, add: int, at: float, goal: Goal, n_threads: int
) -> Scaled | Crossing | None:
    """What a line says of delta(eps), or of eps(delta) at a log of delta; None where it does not reach its goal. Where
    a rule is too far off at the middle of a part, it is not asked there at all (TOO_WIDE). `steps` stay with the
    run."""
    about = _about(run, steps, add, at) if have_eps else at
    return None if about is None else _found(run, steps, add, (have_eps, at), about, goal, n_threads)


def _about(run: Any, steps: Rows, add: int, eps: float) -> float | None:
    """About log delta(eps), between estimates at fixed places that stay with the run: (-2 log delta)^{1/2} is nearly
    linear in eps, as of a normal law."""
    known: dict[Any, Any] = run._cache.setdefault("about", {})
    if not eps > 1e-9:
        return None
    i = math.floor(OCTAVE * math.log2(eps))
    left, right = (_height(known, i + more, steps, add) for more in (0, 1))
    if left is None or right is None:
        return None
    low, high = 2 ** (i / OCTAVE), 2 ** ((i + 1) / OCTAVE)
    height = left + (right - left) * (eps - low) / (high - low)
    return -0.5 * height * height


def _height(known: dict[Any, Any], i: int, steps: Rows, add: int) -> float | None:
    """(-2 log delta)^{1/2} at place i, None where there is no saddle."""
    key = id(steps), add, i
    of, height = known.get(key, (None, None))
    if of is not steps:
        size, at = _core.contour_work(1), 2 ** (i / OCTAVE)
        status, about = scratch.lend(size, _core.contour_estimate, steps, add, at)
        good = status == _core.OK and -math.inf < about < 0
        height = math.sqrt(-2 * about) if good else None
        known[key] = steps, height
        for old in list(known)[:-PLACES]:
            known.pop(old, None)
    return height


def _found(run, steps: Rows, add: int, asked: tuple[int, float], log_delta: float, goal: Goal, n_threads: int):
    have_eps, value = asked
    lines: dict[Any, Any] = run._cache.setdefault("placed", {})
    for halvings in range(HALVINGS + 1):
        part, middle = _part(log_delta, 0.5**halvings)
        key = id(steps), add, goal, halvings, part
        line = lines.get(key)
        if line is None or line.steps is not steps:
            line = lines[key] = _line(steps, add, middle, goal, n_threads)
            for old in list(lines)[:-MOST]:
                lines.pop(old, None)
        if line.status == _core.TOO_WIDE and steps.fits is not None and run.listed:
            return _TOO_WIDE
        if line.status != _core.OK and (have_eps or line.status != _core.LOOSE):
            return None  # of a point that misses its goal a line of its own may be much narrower
        found = _ask(line, have_eps, value)
        if found.status == _core.OK:
            return found
        if not have_eps and found.status == _core.LOOSE and found.width <= WIDER * line.width:
            return found
    return None


class _Line(NamedTuple):
    """A line of `steps`, which live as long as it does; what making it ended with, its memory (csrc/line/kept.c), and
    how wide it is where it was placed."""

    steps: Rows
    status: int
    memory: NDArray[np.float64]
    width: float


def _ask(line: _Line, have_eps: int, value: float) -> Any:
    """What a line says of eps or of log delta; of a rule with its own error."""
    asked = line.memory, _NO_ROWS, 0, have_eps, value, line.steps.fits is not None
    return scratch.lend(_core.KEPT_WORK, _core.kept_ask, *asked)[0]


def _part(log_delta: float, share: float) -> tuple[int, float]:
    """The part in which log_delta lies, `share` as wide as others, and its middle."""
    if log_delta > -0.5 * FAR * FAR:
        i = math.floor(math.sqrt(-2 * log_delta) / (share * STEP))
        return i, -0.5 * ((i + 0.5) * share * STEP) ** 2
    i = math.floor((-log_delta - 0.5 * FAR * FAR) / (share * NATS))
    return -1 - i, -0.5 * FAR * FAR - (i + 0.5) * share * NATS


def _line(steps: Rows, add: int, log_delta: float, goal: Goal, n_threads: int) -> _Line:
    """The line placed there."""
    memory = np.empty(_core.KEPT_ROOM)
    size = max(_core.contour_work(steps.shift.size, n_threads), _core.KEPT_WORK)
    asked = steps, add, 0, log_delta, goal.rtol, goal.nats + ROOM, memory
    status = scratch.lend(size, _core.kept_make, *asked, more=0, n_threads=n_threads)
    if status not in (_core.OK, _core.LOOSE):
        return _Line(steps, status, _NO_ROWS, math.inf)
    line = _Line(steps, status, memory[: _core.kept_size(memory)].copy(), math.inf)
    return line._replace(width=_ask(line, 0, log_delta).width)
