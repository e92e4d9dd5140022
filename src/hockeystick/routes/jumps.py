"""Route `jumps`: few records sampled, delta far below the chance of one. A few distinct steps, also public mixtures of
two-sided branches: where one rare large loss makes nearly all of the curve, the expansion of csrc/line/jumps.c, else,
of one distinct step, the line through the law below a cut (csrc/line/bulk_line.c).
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import Point, Root
from ..gauss import legendre_rule
from ..outward import log_slack, log_sum
from ..what import sampling
from ..what.pair import PairedSteps
from . import contour
from .question import MOST_SAMPLED, SHARP

TERMS = ("jumps", "truncation", "inner_quadrature", "rounding")
MANY = 50.0
"""Records expected in all samples, k q, from which many losses of a step make delta together."""

NEAREST, FARTHEST, CLOSER = 1e-12, 100.0, 8.0
"""The range of eps in which the root of one step is sought, from the far end on by so much at a time."""

START = 2.0
"""Upper over lower end of what is known of a root, up to which the line starts from it."""


def rule() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights of a panel (csrc/law/bulk.c)."""
    return legendre_rule(20)


def point(steps: Rows, add: int, eps: float, sharp: float = SHARP):
    """A certified point of the curve, or None: the narrower of the two [theory: small.expansion, small.bulk-far]. Of
    one narrower than `sharp` no other is asked."""
    if not (eps > 0 and _serves(steps)):
        return None
    answer = _answer(1, steps, add, eps, sharp)
    return answer and answer.certified("jumps")


def root(steps: Rows, add: int, log_delta: float, sharp: float = SHARP, known: Root | None = None):
    """A certified root of delta(eps) = e^log_delta, or None; known: what is known of it, to start from."""
    if not _serves(steps):
        return None
    answer = _answer(0, steps, add, log_delta, sharp, known)
    return answer and answer.certified("jumps")


def pair_point(paired: PairedSteps, add: int, eps: float, sharp: float = SHARP):
    """A certified point of a run of pairs, or None. What was dropped is at +inf [theory: small.dropped]."""
    if not eps > 0:
        return None
    return _single(paired, add, eps) or _with_dropped(paired, _answer(1, paired.steps, add, eps, sharp))


def pair_root(paired: PairedSteps, add: int, delta: float, sharp: float = SHARP, known: Root | None = None):
    """A certified root of a run of pairs, or None; the upper end is that of delta less what was dropped. known: as of
    `root`."""
    if not paired.dropped < 0.5 * delta:
        return None
    if found := _single_root(paired, add, delta):
        return found
    steps, log_delta = paired.steps, math.log(delta)
    less = log_delta + math.log1p(-paired.dropped / delta) - log_slack(log_delta)
    answers = [_answer(0, steps, add, x, sharp, known) for x in ((log_delta, less) if paired.dropped else (log_delta,))]
    if not all(answers):
        return None
    found, last = answers[0].certified("jumps"), answers[-1].certified("jumps")
    return found._replace(upper=max(found.upper, last.upper))


def _with_dropped(paired: PairedSteps, answer) -> Point | None:
    if answer is None:
        return None
    found = answer.certified("jumps")
    return found._replace(upper=log_sum(found.upper, math.log(paired.dropped))) if paired.dropped else found


def _single(paired: PairedSteps, add: int, eps: float) -> Point | None:
    """The curve of one step in closed form (csrc/curve/single.c), or None."""
    if paired.steps.k.size > 1 or paired.steps.k[0] > 1:
        return None
    answer = _core.single_delta(_pair(paired.steps, add), eps)
    return _with_dropped(paired, answer) if answer.status <= _core.LOOSE else None


def _single_root(paired: PairedSteps, add: int, delta: float) -> Root | None:
    """A certified root of it, or None."""
    hi, log_delta = FARTHEST, math.log(delta)
    if _single(paired, add, NEAREST) is None:
        return None
    while hi > NEAREST and not ((at := _single(paired, add, hi / CLOSER)) and at.estimate > log_delta):
        hi /= CLOSER
    return contour.bracket(lambda eps: _single(paired, add, eps), delta, 0.0, hi)


def pair_log_upper(paired: PairedSteps, add: int, eps: float, enough: float) -> float:
    """An upper bound of log delta(eps) of a run of one pair, infinite where there is none; one at most `enough` will
    do."""
    if paired.steps.k.size != 1 or not eps > 0:
        return math.inf
    pair, k = _pair(paired.steps, add), paired.steps.k[0]
    status, upper = scratch.lend(_core.bulk_line_work(), _core.bulk_upper, pair, k, eps, enough, *rule())
    if status != _core.OK:
        return math.inf
    return log_sum(upper, math.log(paired.dropped)) if paired.dropped else upper


def _pair(steps: Rows, add: int) -> np.ndarray:
    """The pair of the only step, turned to the direction."""
    if steps.pairs is not None and steps.pairs.any():
        return steps.pairs
    return _plain(float(steps.shift[0]), float(steps.q[0]), add)


def _plain(m: float, q: float, add: int) -> np.ndarray:
    pair = sampling.Pair((sampling.Branch(1.0, q, m, 0.0),))
    return sampling.packed([pair.reversed() if add else pair])


def _line(have_eps: int, pair: np.ndarray, k: float, at: float, **near):
    return scratch.lend(_core.bulk_line_work(), _core.bulk_line_ask, pair, k, have_eps, at, *rule(), **near)


def _start(known: Root | None) -> dict:
    """The eps to start from, where one is known about."""
    return {"start": known.estimate} if known and known.upper < START * known.lower else {}


def _serves(steps: Rows) -> bool:
    return bool(steps.q.size <= _core.JUMPS_STEPS and steps.q.max() < MOST_SAMPLED)


def _sampled(steps: Rows) -> float:
    """Records that all samples of one of the steps hold, on average over its branches: of the step that has fewest."""
    rates = steps.q
    if steps.pairs is not None:
        rates = rates.copy()
        for i, (branches, *row) in enumerate(sampling.PACKED.iter_unpack(steps.pairs.tobytes())):
            if branches:
                rates[i] = sum(w * q for w, q in zip(row[:branches], row[sampling.MAX_BRANCHES :], strict=False))
    return float((rates * steps.k).min())


def _answer(have_eps, steps: Rows, add: int, at: float, sharp: float, known: Root | None = None):
    """The expansion's answer, and of one distinct step the line's where that is not narrow; None where neither has
    one."""
    answers, n = [], steps.k.size
    if n <= _core.JUMPS_STEPS and steps.k.sum() >= 2 and _sampled(steps) < MANY:
        answers.append(scratch.lend(_core.jumps_work(n), _core.jumps_ask, steps, add, have_eps, at, *rule()))
    if n == 1 and not (answers and answers[0].status <= _core.LOOSE and answers[0].width < sharp):
        near = _start(known)
        if answers and answers[0].status <= _core.LOOSE:
            near = {"known": math.fsum(answers[0].relative())}
            if not have_eps:
                near["start"] = answers[0].estimate
        answers.append(_line(have_eps, _pair(steps, add), steps.k[0], at, **near))
    answers = [answer for answer in answers if answer.status <= _core.LOOSE]
    return min(answers, key=lambda answer: answer.width) if answers else None
