"""Route `jumps`: few records sampled, delta far below the chance of one. A few distinct steps, also public mixtures of
two-sided branches: where one rare large loss makes nearly all of the curve, the expansion of csrc/line/jumps.c, else,
of one distinct step, the line through the law below a cut (csrc/line/bulk_line.c).
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import Root
from ..outward import log_slack, log_sum
from ..what import sampling
from ..what.pair import PairedSteps
from . import few
from .question import MOST_SAMPLED, ROUGH, SHARP

TERMS = ("jumps", "truncation", "inner_quadrature", "rounding")
MANY = 50.0
"""Records expected in all samples, k q, from which many losses of a step make delta together."""

START = 2.0
"""Upper over lower end of what is known of a root, up to which the line starts from it."""


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
    steps = paired.steps
    brief = _few(steps)
    answer = _answer(1, steps, add, eps, sharp, line=not brief)
    found = answer and answer.certified("jumps")
    if brief and not (found and found.width < sharp):
        cells, pair = few.COARSE if sharp >= ROUGH else few.FINE, _pair(steps, add)
        found = _narrower(found, few.at(pair, steps.k[0], eps, cells))
        if not (found and found.width < sharp):
            line = _line(1, pair, steps.k[0], eps)
            found = _narrower(found, line.certified("jumps") if line.status <= _core.LOOSE else None)
    if found is None or not paired.dropped:
        return found
    return found._replace(upper=log_sum(found.upper, math.log(paired.dropped)))


def pair_root(paired: PairedSteps, add: int, delta: float, sharp: float = SHARP, known: Root | None = None):
    """A certified root of a run of pairs, or None; the upper end is that of delta less what was dropped. known: as of
    `root`."""
    if not paired.dropped < 0.5 * delta:
        return None
    steps, dropped, log_delta = paired.steps, paired.dropped, math.log(delta)
    less = log_delta + math.log1p(-dropped / delta) - log_slack(log_delta)
    targets = (log_delta, less) if dropped else (log_delta,)
    if not _few(steps):
        return _between([_answer(0, steps, add, x, sharp, known) for x in targets])
    found = _between([_answer(0, steps, add, x, sharp, line=False) for x in targets])
    if found and found.width < sharp:
        return found
    near, pair, k = found or known, _pair(steps, add), steps.k[0]
    start = near.estimate if near and near.upper < START * near.lower else 0.0
    found = _narrower(found, few.root(pair, k, log_delta, targets[-1], start, sharp))
    if found and found.width < sharp:
        return found
    answers = [_line(0, pair, k, x, **_start(found or known)) for x in targets]
    return _narrower(found, _between([a if a.status <= _core.LOOSE else None for a in answers]))


def _between(answers) -> Root | None:
    """The root of which the last answer gives the upper end; None where one of them is missing."""
    if not all(answers):
        return None
    found, last = answers[0].certified("jumps"), answers[-1].certified("jumps")
    return found._replace(upper=max(found.upper, last.upper))


def pair_log_upper(paired: PairedSteps, add: int, eps: float, enough: float) -> float:
    """An upper bound of log delta(eps) of a run of one pair, infinite where there is none; one at most `enough` will
    do."""
    if paired.steps.k.size != 1 or not eps > 0:
        return math.inf
    pair, k = _pair(paired.steps, add), paired.steps.k[0]
    status, upper = scratch.lend(_core.bulk_line_work(), _core.bulk_upper, pair, k, eps, enough, *few.rule())
    if status != _core.OK:
        return math.inf
    return log_sum(upper, math.log(paired.dropped)) if paired.dropped else upper


def _narrower(*answers):
    """The narrowest of them, or None."""
    return min((answer for answer in answers if answer), key=lambda answer: answer.width, default=None)


def _few(steps: Rows) -> bool:
    """Whether it is so few runs of one step that real space takes them."""
    return steps.k.size == 1 and steps.k[0] <= few.RUNS


def _pair(steps: Rows, add: int) -> np.ndarray:
    """The pair of the only step, turned to the direction."""
    if steps.pairs is not None and steps.pairs.any():
        return steps.pairs
    return _plain(float(steps.shift[0]), float(steps.q[0]), add)


def _plain(m: float, q: float, add: int) -> np.ndarray:
    pair = sampling.Pair((sampling.Branch(1.0, q, m, 0.0),))
    return sampling.packed([pair.reversed() if add else pair])


def _line(have_eps: int, pair: np.ndarray, k: float, at: float, **near):
    return scratch.lend(_core.bulk_line_work(), _core.bulk_line_ask, pair, k, have_eps, at, *few.rule(), **near)


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


def _answer(have_eps, steps: Rows, add: int, at: float, sharp: float, known: Root | None = None, line: bool = True):
    """The expansion's answer, and the line's, if that may be asked, of one distinct step where that is not narrow; None
    where neither has one."""
    answers, n = [], steps.k.size
    if n <= _core.JUMPS_STEPS and steps.k.sum() >= 2 and _sampled(steps) < MANY:
        answers.append(scratch.lend(_core.jumps_work(n), _core.jumps_ask, steps, add, have_eps, at, *few.rule()))
    if line and n == 1 and not (answers and answers[0].status <= _core.LOOSE and answers[0].width < sharp):
        near = _start(known)
        if answers and answers[0].status <= _core.LOOSE:
            near = {"known": math.fsum(answers[0].relative())}
            if not have_eps:
                near["start"] = answers[0].estimate
        answers.append(_line(have_eps, _pair(steps, add), steps.k[0], at, **near))
    answers = [answer for answer in answers if answer.status <= _core.LOOSE]
    return min(answers, key=lambda answer: answer.width) if answers else None
