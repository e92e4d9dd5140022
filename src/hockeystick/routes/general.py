"""Route `contour` beyond the Gaussian family: one run, one direction, to the sum that takes it.

Laws on a common lattice go to lattice.py, Laplace and mixed runs to mixed.py (finite.py); where tables leave outcomes
out, windows.py says which of them are asked. Finite losses are composed; masses at infinity are divided out first
[theory: pair.infinite]: with D = 1 - prod (1 - d_i)^k_i, delta = D + (1 - D) delta_finite. Answers are those of
answers.py, None where nothing here takes the run."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..answers import ZERO, Point, Root, meet
from ..outward import U, log_slack
from . import mixed, option, parts
from .epochs import LOST
from .finite import Finite, asked
from .near import Lines
from .walls import rest, seen, wall_upper
from .windows import WIDE, as_option, between_points, narrower, told

ROUGHLY = 7.0
"""Nats of delta above the mass of what a table leaves out where there is no other answer."""

DEEPER, DEEPEST, CLOSE = (230.0, 450.0, 740.0), -710.0, 4.0
"""Depths of windows by which one is chosen where those of a larger delta see nothing, log delta below which none sees
anything, and what Chernoff's bound may be off."""

AIMED, MOST_WIDE = 0.1, 1e-6
"""Part of the width that will do of 1 - delta, up to the latter, that lines of it aim at: where atoms matter, nodes are
all that there may be before they reach what those of delta aim at."""

NOT_FOUND = "no line within its cost certifies an interval"
LEFT_OUT = "outcomes that its table leaves out may be all of delta"


def point(question, add: int, eps: float, about: float | None = None):
    """delta(eps). about: about its logarithm, where the question does not say."""
    about = question.about if about is None else about

    def others():
        def ask(found: Finite):
            return _point(question, found, add, eps)

        answer = narrower(question, add, about, ask)
        if answer is None and about == 0 and not question.rough and question.run._cache.get("cut"):
            log = min(_about_log(asked(question, add, about, depth), eps) for depth in DEEPER)
            answer = narrower(question, add, log - CLOSE, ask) if DEEPEST < log < 0 else None
        return answer

    return as_option(question, add, about, lambda step: option.point(step, add, eps), others)


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
    other = told(question, 0, "parts", lambda: parts.point(found.run, eps, question.goal))
    return meet(answer, other, question.run)


def _line_root(question, found: Finite, log_delta: float):
    """The same of eps."""
    near = {"near": question.place} if found.route is mixed else {}
    answer = found.route.root(found.run, log_delta, *found.tolerance(question), **near)
    if not _may_part(question, found, answer):
        return answer
    about = answer.estimate if answer else parts.about_root(found.run, log_delta)
    other = told(question, 0, "parts", lambda: parts.root(found.run, log_delta, question.goal, about))
    return meet(answer, other, question.run)


def _may_part(question, found: Finite, answer) -> bool:
    """Whether losses above a place and below it, each on a line of its own, may know more."""
    if question.rough or found.route is not mixed or parts.parted(found.run) is None:
        return False
    return not (answer and answer.width <= (WIDE if parts.slow(found.run) else mixed.ENOUGH))


def points(question, add: int, eps: np.ndarray) -> np.ndarray:
    """Points at ascending eps that share lines: rows (log_lower, log_estimate, log_upper, four terms), NaN where a
    point has to be asked on its own."""
    found = asked(question, add, 0.0)
    if found is None or found.lost or found.partial or (lines := _lines(question, found)) is None:
        return np.full((eps.size, 7), np.nan)
    rows = lines.curve(eps, lambda at: _line_point(question, found, at))
    if found.log_finite:
        rows = _rows_with_infinite(found.log_finite, rows)
    rows[~(np.expm1(rows[:, 2] - rows[:, 0]) <= question.sharp)] = np.nan  # `auto` asks other routes there
    return rows


def complement(question, add: int, eps: np.ndarray) -> np.ndarray:
    """Ends of log(1 - delta) at ascending eps, by lines that know it [theory: line.complement]; NaN where none does."""
    found = asked(question, add, 0.0)
    if found is None or found.lost or found.partial or (lines := _lines(question, found, True)) is None:
        return np.full((2, eps.size), np.nan)
    goal, *enough = found.tolerance(question)
    given: dict[str, Any] = {"lines": lines, **({"wide": question.wide} if found.route is mixed else {})}
    goal = max(goal, AIMED * min(question.wide, MOST_WIDE))
    rows = lines.curve(eps, lambda at: found.route.point(found.run, at, goal, *enough, **given))
    logs = rows[:, [0, 2]].T
    slack = np.array([[-1.0], [1.0]]) * log_slack(logs, found.log_finite)
    return logs + found.log_finite + slack  # 1 - delta is (1 - D) (1 - delta_finite) [theory: pair.infinite]


def _point(question, found: Finite, add: int, eps: float):
    answer, least_lost = _line_point(question, found, eps), LOST
    lost = found.lost_upper(eps, answer.lower if answer else 0.0)
    if lost and not (answer and answer.lower > math.log(lost) + LOST):
        deeper = asked(question, add, answer.lower if answer else -math.inf, how=found.how) or found
        other = _line_point(question, deeper, eps)
        if other and answer:  # what a window holds bounds delta from below
            other = other._replace(lower=max(other.lower, answer.lower), estimate=max(other.estimate, answer.lower))
        if other or not (found.how and answer):
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
    low, mid, high = np.minimum(rows[:, :3].T, 0.0)  # no delta exceeds 1, whatever a line says far from its place
    terms = rows[:, 3:].T
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
    found = asked(question, add, log_delta)
    if found is None or found.route is not mixed or found.log_finite:
        return False
    if not found.lost:
        return mixed.log_delta_upper(found.run, eps) <= log_delta
    left_out = math.exp(min(math.log(found.lost) + 1e-9 - log_delta, 0.0))
    return left_out < 0.5 and mixed.log_delta_upper(found.run, eps) <= log_delta + math.log1p(-left_out) - 1e-12


def _about_log(found: Finite | None, eps: float) -> float:
    """About log delta(eps) without infinite losses, by Chernoff's bound and what is left out; 0 where no line is."""
    if found is None or found.route is not mixed:
        return 0.0
    return float(np.logaddexp(mixed.log_delta_upper(found.run, eps), math.log(found.lost + 1e-320)))


def _with_infinite(log_delta, log_finite: float, side: int, exp: Any = math.exp):
    """D + (1 - D) e^log_delta, of a number or an array, moved to the given side by more than what is rounded:
    log_finite is a sum of logs within 4u each. Below 2^-1022 this sum is off by units of 5e-324, and its logarithm by a
    unit in the last place wherever that is large."""
    value = -math.expm1(log_finite) + exp(log_finite + log_delta)  # [theory: pair.infinite]
    return value + side * (16 * U * (abs(log_finite) * math.exp(log_finite) + value) + 1e-322)


def root(question, add: int, delta: float):
    """eps(delta), clipped at 0."""

    def others():
        return narrower(question, add, math.log(delta), lambda found: _root(question, found, add, delta))

    log_delta = math.log(delta)
    answer = as_option(question, add, log_delta, lambda step: option.root(step, add, delta), others)
    return between_points(question, log_delta, answer, functools.partial(point, question, add, about=log_delta))


def _root(question, found: Finite, add: int, delta: float):
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
    if lost and not math.log(visible or most) > math.log(lost) + (LOST if lost == found.lost else 1):
        question.why = LEFT_OUT
        return None
    if inexact and first and visible > 0:
        last = root_of(visible, lost, -1)
    if first is None or last is None:
        question.why = NOT_FOUND
        at_zero = _point(question, found, add, 0.0)
        return Root(0.0, 0.0, 0.0, ZERO, "contour") if at_zero and at_zero.at_most(delta) else None
    high = min(last.upper if visible else math.inf, wall_upper(losses, least))
    mid = min(0.5 * (first.estimate + last.estimate), high)
    left_out = math.exp(math.log(lost) + 1e-9) / delta if lost else 0.0
    terms = _of_whole(last.terms, min(most / delta, 1.0), left_out, (most - visible) / delta if inexact else 0.0)
    return Root(max(first.lower, 0.0), max(mid, 0.0), max(high, 0.0), terms, "contour")
