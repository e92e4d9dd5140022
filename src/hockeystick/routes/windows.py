"""Which tables of a run a question is asked of: how deep their windows are, and how epochs of random allocation are
taken.

Tables are as deep as the question asks. Where their answer is wide, epochs are taken by transforms alone, or by points
wherever there are some, of shallow windows, too."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable

from ..answers import meet
from ..what.allocation import RandomAllocation, allocates
from . import epochs, mixed, option, parts
from .finite import Finite, asked

WIDE = 1e-6
"""The relative width from which other ways are asked."""

SHALLOW = 44.0
"""A depth that may be narrower though it leaves out more: one large loss may be most of a tilted law, and what it adds
to delta little."""

NO_POINTS = "no bound of its tails reaches so far that points of the density would serve"

WAYS = {epochs.AUTO: "transform", epochs.POINTS: "points", epochs.PATHS: "paths"}


def narrower(question, add: int, log_delta: float, ask: Callable):
    """ask(run as it is at log_delta), or by transforms alone, or by what points there are, where that may be
    narrower."""

    def by(depth: float | None, how: int):
        found = asked(question, add, log_delta, depth, how)
        if found and how != epochs.AUTO and not _has_points(found):
            question.why = NO_POINTS
            return None
        return ask(found) if found else None

    answer = told(question, add, "line", functools.partial(by, None, epochs.AUTO))
    found = asked(question, add, log_delta)
    for depth, how in _ways(found, question.run) if found else ():
        if answer and (question.rough or answer.width <= WIDE):
            break
        way = "shallow points" if depth == SHALLOW else WAYS[how]
        answer = meet(answer, told(question, add, way, functools.partial(by, depth, how)), question.run)
    return answer


def told(question, add: int, way: str, ask: Callable):
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


def _ways(found: Finite, run):
    """(depth, how an epoch is taken) that may know more."""
    if found.partial:
        yield math.inf, epochs.AUTO
    if found.untried or _has_points(found):
        held = [(step.shift, step.steps) for step, _ in run.parts if isinstance(step, RandomAllocation)]
        if any(epochs.any_of(*of, epochs.SOONER) and option.has_path(*of) for of in held):
            yield None, epochs.PATHS
        yield None, epochs.POINTS
        yield SHALLOW, epochs.POINTS


def one_epoch(run) -> RandomAllocation | None:
    """The step of a run of one epoch of random allocation."""
    step = run.parts[0][0]
    return step if run.steps == 1 and isinstance(step, RandomAllocation) else None


def as_option(question, add: int, log_delta: float, ask: Callable, others: Callable):
    """What the price of an option says of one epoch alone, where it is asked first or others are wide."""
    step = one_epoch(question.run)
    if step is None or question.rough:
        return others()
    ways = others, lambda: told(question, add, "option", lambda: ask(step))
    answer = None
    for one in reversed(ways) if option.first(step, add, log_delta) else ways:
        answer = meet(answer, one(), question.run)
        if answer and answer.width <= mixed.ENOUGH:
            break
    return answer


def between_points(question, log_delta: float, answer, ask: Callable):
    """`answer`, or what narrower points at two eps say, ask(eps): a root has one window, delta may have deeper ones."""
    cut = question.run._cache.get("cut")
    if question.rough or not cut or not answer or not answer.lower > 0 or answer.width <= WIDE:
        return answer
    mid, beside = answer.estimate, answer.estimate * (1 + parts.BESIDE)
    here, there = ask(mid), ask(beside)
    slope = (there.estimate - here.estimate) / (beside - mid) if here and there else 0.0
    if not (slope < 0 and 2 * here.width < -slope * (answer.upper - answer.lower)):
        return answer
    return meet(answer, option.bracket(ask, mid, slope, log_delta), question.run)
