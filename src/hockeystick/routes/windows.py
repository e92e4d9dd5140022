"""Which tables of a run a question is asked of: how deep their windows are, and how epochs of random allocation are
taken.

A table that leaves out less sees more of rare large losses, which may be most of a tilted law and add little to delta;
so the answer of one that is as deep as the question asks is followed, while it is wide, by others."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable

from ..answers import meet
from ..what.allocation import RandomAllocation, allocates
from . import epochs, mixed, option, parts
from .epochs import DEPTHS
from .finite import Finite, asked, depth_of

SEEN = 22.0
"""Nats of delta above the mass of what a table leaves out from which a deeper one is no narrower, at the least."""

WIDE = 1e-6
"""The relative width from which other ways are asked."""

MANY = 1 << 16
"""Points of a law from which a line takes seconds."""

SHALLOW = 44.0, 70.0, 120.0
"""Some depths that may be narrower though they leave out more: one large loss may be most of a tilted law, and what it
adds to delta little."""

NO_POINTS = "no bound of its tails reaches so far that points of the density would serve"

WAYS = {epochs.AUTO: "transform", epochs.POINTS: "points", epochs.PATHS: "paths", epochs.ROUGH: "rough points"}


def narrower(question, add: int, log_delta: float, ask: Callable):
    """ask(run as it is at log_delta), or by transforms alone, or by what points there are, where that may be narrower;
    by points that are known roughly where there is no other answer."""
    answer = told(
        question, add, "line", functools.partial(_other_way, question, add, log_delta, None, epochs.AUTO, ask)
    )
    found = asked(question, add, log_delta)
    for depth, how in _ways(found, question.run, add) if found else ():
        if answer and (question.rough or how == epochs.ROUGH or answer.width <= WIDE):
            break
        other = functools.partial(_other_way, question, add, log_delta, depth, how, ask)
        way = WAYS[how] + (f" e^-{depth:g}" if how and depth else "")
        answer = meet(answer, told(question, add, way, other), question.run)
    return answer


def _other_way(question, add: int, log_delta: float, depth: float | None, how: int, ask: Callable, *least):
    """What that way says, its tables included; nothing where it is asked for points and there are none."""
    found = asked(question, add, log_delta, depth, how)
    if found and how and not _has_points(found):
        question.why = NO_POINTS
        return None
    return ask(found, *least) if found else None


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


def _ways(found: Finite, run, add: int):
    """(depth, how an epoch is taken) that may know more."""
    if found.partial:
        yield math.inf, epochs.AUTO
    if found.untried or _has_points(found):
        held = [(step.shift, step.steps) for step, _ in run.parts if isinstance(step, RandomAllocation)]
        if any(epochs.any_of(*of, epochs.SOONER) and option.has_path(*of) for of in held):
            yield None, epochs.PATHS
        yield None, epochs.POINTS
        for depth in SHALLOW:
            yield depth, epochs.POINTS
        yield None, epochs.ROUGH


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


def shallower(question, add: int, log_delta: float, answer, ask: Callable):
    """`answer`, or a narrower one of windows less deep than log_delta asks for: in a deeper one a large term may be
    most of the line."""
    if question.rough or log_delta == -math.inf or (answer and answer.width <= mixed.ENOUGH):
        return answer
    first = asked(question, add, log_delta)
    if first and first.route is mixed and answer and answer.width <= wide_from(first):
        return answer
    jumps = first and any(isinstance(step, mixed.DensityStep) and step.slow for step in first.run)
    untried = first is not None and first.untried
    dear = first is not None and (parts.parted(first.run) is not None or (untried and _has_paths(question.run)))
    known = dear and answer and answer.width <= WIDE
    shallower = reversed(DEPTHS) if (jumps or untried) and not known else ()
    for depth in shallower:
        if SEEN - log_delta < depth < depth_of(log_delta):
            other = functools.partial(
                _other_way, question, add, log_delta, depth, epochs.POINTS if untried else epochs.AUTO, ask, SEEN
            )
            answer = meet(answer, told(question, add, f"line e^-{depth:g}", other), question.run)
            found = asked(question, add, log_delta, depth, epochs.POINTS if untried else epochs.AUTO)
            if answer and answer.width <= (WIDE if found and parts.parted(found.run) is not None else mixed.ENOUGH):
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


def _has_paths(run) -> bool:
    """Whether points of some epoch are by paths, which take seconds."""
    return any(isinstance(step, RandomAllocation) and option.has_path(step.shift, step.steps) for step, _ in run.parts)


def wide_from(found: Finite) -> float:
    """The relative width from which other means are asked: a larger one where a line takes seconds."""
    many = any(isinstance(step, mixed.DensityStep) and step.columns.shape[1] > MANY for step in found.run)
    return WIDE if many else mixed.ENOUGH
