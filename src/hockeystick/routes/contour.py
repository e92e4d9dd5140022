"""Route `contour`: Fourier inversion with a certificate, at a cost that does not depend on k.

Two contours share the name. The vertical line (contour.c) takes any number of distinct steps; where the transform
decays too slowly along it (few steps, small sampling rates), a hyperbola (csrc/curve/hyperbola.c) takes distinct
steps of up to six branches in all. One subsampled step is a Gaussian curve at a shifted eps, exactly.

Answers are those of answers.py, None where the route declines; `terms` follow TERMS.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import ZERO, Crossing, Point, Root, Scaled, larger, log_rows
from ..arguments import exp_upper, log_upper
from ..compression import Ruled
from ..outward import UP, U, log_floor, log_slack, log_sum
from ..what.pair import PairedSteps
from . import placed

TERMS = ("aliasing", "truncation", "inner_quadrature", "rounding")
RULED_TERMS = (*TERMS, "interpolation")
RTOL = 1e-9
"""Relative half-width of delta that a contour must reach, or the next one is tried as well."""

ROUGH = 1e-6
"""Relative width from which a long line is worth its milliseconds."""

CLOSE = 1e-3
"""Relative width of a long line from which a shorter one is as wide."""

GAINED = 0.5
"""Of the width of a pair's answer, what a line with a looser goal has to leave of it for another."""

HYPERBOLA_STEPS = 6
MOST_NODES = 2**31 - 1
"""No limit of outer nodes but that of the scratch."""

LONG_LINE, PAIR_LINE = 8192, 1024
"""Outer nodes up to which `auto` asks a line before it takes rare jumps apart, and the same of pairs: a longer one
takes tens of ms, and is seldom needed."""

LOOSER = (1e-6, 1e-4)
"""Where the nodes for rtol do not fit, the relative half-widths tried next: a shorter line, still better than a
grid."""

NARROW = 9.9e-11
"""The width from which the answer of a rule is taken, which leaves it below 1e-10 once its logarithms are rounded
outward. Of a wider one the sum over the steps may be narrower, as its line may be another."""

VERY_MANY = 10_000
"""Distinct steps beyond which a wider answer of a rule is taken before all are summed: a sum of so many takes 0.15 s
and more."""

MANY_PAIRS = 5_000
"""The same of two-sided pairs, each of which takes several times as long."""

SMALL_SHARE = 8
"""The error of a rule does not show where it is less than this part of the width."""

HOPELESS = (_core.NO_SADDLE, _core.TOO_WIDE, _core.NO_BRACKET)
"""Statuses of a line of plain steps that no other goal helps: no saddle, or more lost to rounding than there is."""


ONCE = np.ones(1)
"""The rate and the count of one step that is not sampled."""

POINT, ROOT = 1, 0
"""What is asked: delta at an eps, or eps at a log of delta."""

LONG_RUN = ((5.0, math.inf), (12.0, 1e6), (math.inf, 1e4))
"""(sensitivity/sigma, compositions) up to which long lines of few steps are tried: beyond, inner grids hardly ever
fit."""


@functools.lru_cache(16)
def margin(rtol: float) -> float:
    """Nats by which aliases and tail stay below delta: twelve below rtol; beyond 31 a double gains nothing."""
    return min(31.0, 12.0 - math.log(rtol))


MARGIN = margin(RTOL)


def all_nodes() -> int:
    """Of a line that may have all that it needs."""
    return MOST_NODES


FAR_FROM_ONE = -32.0
"""log(1 - delta) from which delta is known by its distance from 1: 1e-14."""


def found(
    have_eps: int,
    steps: Rows,
    add: int,
    at: float,
    rtol: float = RTOL,
    n_threads: int = 1,
    nodes: Callable[[], int] = all_nodes,
    said: Scaled | Crossing | None = None,
):
    """A certified point of the curve at eps, or root of delta(eps) = e^at, where certified deltas at both ends bracket
    the target [theory: line.root]; or None. Proof: headers of csrc/line/contour.c and csrc/curve/hyperbola.c. nodes: at
    most so many outer ones of a line. said: what the first line has said, where it was asked."""
    answer = _answer(have_eps, steps, add, at, rtol, n_threads, nodes, said=said)
    return answer and answer.certified("contour")


point, root = functools.partial(found, POINT), functools.partial(found, ROOT)


def near_one(steps: Rows, add: int, eps: float) -> Point | None:
    """delta(eps) between 1 - e^x and 1, where that is narrow: x is K(t) - t eps at a tilt in (-1, 0)
    [theory: line.chernoff], the middle one or that of the parabola through it, which is exact of a Gaussian loss. Ten
    of 5,200 random deltas are told by it to the last digit, where lines and others leave up to [0.8, 1]."""
    tilt, work = -0.5, scratch.borrow(_core.contour_work(1))
    try:
        for _ in range(2):
            status, x, used = _core.chernoff_upper(steps, add, 1, eps, work, tilt=tilt)
            if status != _core.OK or used != tilt:
                return None
            if x < FAR_FROM_ONE:
                return Point(math.log1p(-exp_upper(x)) * UP, 0.0, 0.0, ZERO, "contour")
            fall, curved = eps - 4 * x, 2 * eps - 4 * x  # K(t) - t eps is 0 at 0 and eps at -1
            if not 0 < fall < 2 * curved:
                return None
            tilt = -0.5 * fall / curved
    finally:
        scratch.give_back(work)
    return None


def complement_of_gaussians(steps: Rows, eps: np.ndarray) -> np.ndarray:
    """Ends of 1 - delta of plain Gaussian steps [theory: line.gaussian], which falls as they move further."""
    m = math.sqrt(math.fsum((steps.k * steps.shift**2).tolist()))
    near, far = m * (1 - 8 * U), m * (1 + 8 * U)
    ends = [(_core.gdp_tangent(far, e, e)[2], _core.gdp_tangent(near, e, e)[3]) for e in eps.tolist()]
    return np.array(ends).T


def points(steps: Rows, add: int, eps: np.ndarray, rtol: float, n_threads: int) -> np.ndarray:
    """Certified points at ascending eps that share contours: rows (log_lower, log_estimate, log_upper, four terms, of a
    rule five), NaN where the line gives less than rtol."""
    size = _core.contour_work(steps.shift.size, n_threads)
    rows = scratch.lend(size, _core.contour_curve, steps, add, eps, rtol, margin(rtol), n_threads)
    return log_rows(rows, rows[:, 0] == _core.OK)[:, : None if steps.fits is not None else -1]


def larger_of(have_eps: int, question, at: float, known: float, turned: tuple[PairedSteps, PairedSteps] | None = None):
    """(The larger Point at eps >= 0, or Root at delta, over both directions, None where the line is not tried first or
    misses its goal; the ceiling of ADD that was found at a point) [theory: line.both]. known: an eps from which ADD is
    not the larger; of a point, an upper end of its log delta. turned: of a run with pairs, both directions."""
    n_threads = question.n_threads
    steps, other = (way.steps for way in turned) if turned else (question.steps, None)
    work = scratch.borrow(_core.contour_work(steps.shift.size, n_threads))
    branches = turned[0].branches if turned else steps
    short = _core.SHORT_PAIR if turned else _core.SHORT_LINE
    most = short if branches.shift.size <= HYPERBOLA_STEPS else question.most_nodes()
    value = at if have_eps else math.log(at)
    asked = steps, have_eps, value, known, RTOL, MARGIN, n_threads, work, most, other
    remove, add, *ceiling = _core.contour_larger(*asked)
    scratch.give_back(work)
    if not (_is_last(remove, branches) and (add is None or _is_last(add, branches))):
        question.lined = have_eps, at, (remove, add)
        return None, ceiling
    best = remove.certified("contour")
    return larger(best, add.certified("contour")) if add else best, ceiling


def _is_last(said: Scaled | Crossing, branches: Rows) -> bool:
    """Whether no other contour is asked once a short line has said this, see `_answer`."""
    if said.status != _core.LOOSE or said.width > ROUGH:
        return said.status == _core.OK
    return not (branches.shift.size <= HYPERBOLA_STEPS and _curved(branches))


def lined(have_eps: int, question, add: int, at: float):
    """What the line said of one direction where both were asked at once and one fell short, or None."""
    kept = question.lined
    return kept[2][add] if kept and kept[:2] == (have_eps, at) else None


def ruled(have_eps: int, question, add: int, at: float):
    """A certified point at eps, or root at log delta, of many steps by the first of their rules that is as good as all
    the steps, or None."""
    answer = _ruled_answer(have_eps, question, add, at)
    return answer and answer.certified("compressed")


def at_fixed_place(have_eps: int, question, add: int, at: float):
    """The same of many steps as they are, by the line of its part of delta."""
    goal = placed.Goal(question.goal, margin(question.goal))
    answer = placed.answer(have_eps, question.run, question.steps, add, at, goal, question.n_threads)
    return answer and answer.certified("contour")


def _ruled_answer(have_eps: int, question, add: int, at: float):
    """The answer of a rule where it is narrow; of many steps also one that meets the goal, or a looser goal, or misses
    the goal for other reasons than the rule's own error."""
    goal, very_many = question.goal, question.very_many
    goals = (goal, *(x for x in LOOSER if x > goal)) if very_many else (goal,)
    for rtol in goals:
        for ruled in question.rules:
            answer = _by_rule(have_eps, question, ruled, add, at, rtol)
            if answer.status not in (_core.OK, _core.LOOSE):
                continue
            fine = very_many and SMALL_SHARE * answer.relative()[-1] < answer.width
            if ruled.wide:  # the next has more rows, and may be narrower
                if answer.status == _core.OK and (fine or answer.width <= NARROW):
                    return answer
                continue
            if fine or (answer.status == _core.OK and (very_many or answer.width <= NARROW)):
                return answer
    return None


def _by_rule(have_eps: int, question, ruled: Ruled, add: int, at: float, rtol: float):
    n_threads, goal = question.n_threads, placed.Goal(rtol, margin(rtol))
    answer = placed.answer(have_eps, question.run, ruled.steps, add, at, goal, n_threads)
    if answer:
        return answer
    work = scratch.borrow(_core.contour_work(ruled.steps.shift.size, n_threads))
    answer = _core.contour_ask(ruled.steps, add, have_eps, at, *goal, n_threads, work)
    scratch.give_back(work)
    return answer


def shape(steps: Rows, add: int, eps: float, rtol: float = RTOL, n_threads: int = 1) -> tuple[str, int] | None:
    """Which contour answers `point`, "line" or "hyperbola", and its nodes; None where both decline."""
    bent: list = []
    answer = _answer(POINT, steps, add, eps, rtol, n_threads, bent=bent)
    return answer and ("hyperbola" if any(answer is one for one in bent) else "line", answer.nodes)


def pair(
    have_eps: int,
    paired: PairedSteps,
    add: int,
    at: float,
    rtol: float = RTOL,
    n_threads: int = 1,
    nodes: Callable[[], int] = all_nodes,
    said: Scaled | Crossing | None = None,
):
    """A certified point at eps, or root at delta, of a run with pairs, or None. nodes, said: as in `found`."""
    return _of_pairs(
        have_eps, paired, at, lambda x: _answer(have_eps, paired.steps, add, x, rtol, n_threads, nodes, paired, said)
    )


pair_point, pair_root = functools.partial(pair, POINT), functools.partial(pair, ROOT)


def _of_pairs(have_eps: int, paired: PairedSteps, at: float, ask):
    """What was dropped is at +inf: it can only raise delta, and the upper end of a root is that of delta less it
    [theory: small.dropped]. ask: the answer at an eps, or for the log of a delta."""
    dropped, upper = paired.dropped, None
    if not have_eps and not dropped < 0.5 * at:
        return None
    answer = ask(at if have_eps else math.log(at))
    whole = answer and answer.certified("contour")
    if not (whole and dropped):
        return whole
    if have_eps:
        upper = log_sum(whole.upper, math.log(dropped))
    elif less := ask(math.log(at) + math.log1p(-dropped / at) - log_slack(math.log(at))):
        upper = max(whole.upper, less.upper)
    return None if upper is None else whole._replace(upper=upper)


def long(have_eps: int, question, add: int, at: float):
    """A certified point or root, or None, by lines alone that are longer than those `auto` asks first."""
    answer = _long_answer(have_eps, question, add, at) if _long(question.steps) else None
    return answer and answer.certified("contour")


def long_pair(have_eps: int, paired: PairedSteps, question, add: int, at: float):
    """The same of a run of pairs, at an eps or a delta."""
    return _of_pairs(have_eps, paired, at, lambda x: _long_answer(have_eps, question, add, x, paired))


def _long_answer(have_eps: int, question, add: int, at: float, paired: PairedSteps | None = None):
    if question.most_nodes() == MOST_NODES:
        return None
    steps = paired.steps if paired else question.steps
    goals = _goals(question.goal, bool(paired) or steps.shift.size <= HYPERBOLA_STEPS)
    work = scratch.borrow(_core.contour_work(steps.shift.size, question.n_threads))
    try:
        lines = _long_lines((steps, add, have_eps, at), goals, question.n_threads, work, [], MOST_NODES)
    finally:
        scratch.give_back(work)
    return _narrowest(lines)


def _narrowest(found):
    return min(found, key=lambda answer: answer.width) if found else None


def _goals(rtol: float, own: bool) -> tuple[float, ...]:
    """The relative half-widths that long lines aim at, looser and looser: from rtol on, or without it where a line of
    so many nodes has aimed at it already (not `own`)."""
    return (*((rtol,) if own else ()), *(x for x in LOOSER if x > rtol))


def _long_lines(asked, goals, n_threads, work, found, nodes):
    """`found` and the lines of at most so many nodes by looser and looser goals, until one is as good as its goal; one
    line where longer ones are asked later. asked: the run, the direction, what and the place."""
    paired = asked[0].pairs is not None
    for goal in goals if nodes == MOST_NODES else goals[:1]:
        least = min((answer.width for answer in found), default=math.inf)
        if least <= max(goal, ROUGH):
            break
        answer = _core.contour_ask(*asked, goal, margin(goal), n_threads, work, nodes)
        if answer.status <= _core.LOOSE:
            found.append(answer)
        if answer.status == _core.LOOSE and (answer.width <= CLOSE or (paired and answer.width > GAINED * least)):
            break
        if answer.status in HOPELESS and not paired:  # of pairs a shorter line may still hold an end
            break
    return found


def _answer(have_eps, steps, add, at, rtol, n_threads, nodes=all_nodes, paired=None, said=None, bent=None):
    """The first contour to reach rtol: a short line, the hyperbola, long lines; else the narrowest or None. said: what
    the short line has said. bent: where the answer of a hyperbola is noted."""
    branches = paired.branches if paired else steps
    few = branches.shift.size <= HYPERBOLA_STEPS
    size = _core.contour_work(steps.shift.size, n_threads)
    work = scratch.borrow(max(size, _core.hyperbola_work(branches.shift.size)) if few else size)
    try:
        goal, short = (rtol, margin(rtol), n_threads, work), _core.SHORT_PAIR if paired else _core.SHORT_LINE
        most = short if few else nodes()
        first = said or _core.contour_ask(steps, add, have_eps, at, *goal, most)
        answers = [first]
        if few and first.status != _core.OK and _curved(branches):
            turned = 0 if paired and paired.whole else add
            answers.append(_core.hyperbola_ask(steps, turned, have_eps, at, math.log(rtol), work))
            if answers[1].status == _core.TOO_WIDE and rtol < LOOSER[0]:
                answers[1] = _core.hyperbola_ask(steps, turned, have_eps, at, math.log(LOOSER[0]), work)
            if bent is not None:
                bent.append(answers[1])
        if answers[-1].status == _core.OK:
            return answers[-1]
        found = [answer for answer in answers if answer.status == _core.LOOSE]
        most = nodes()
        longer = most == MOST_NODES or (few and first.status not in (*HOPELESS, _core.LOOSE))
        if longer and first.status != _core.NO_SADDLE and (paired or _long(steps)):  # lines at several depths
            _long_lines((steps, add, have_eps, at), _goals(rtol, few), n_threads, work, found, most)
        return _narrowest(found)
    finally:
        scratch.give_back(work)


def _long(steps: Rows) -> bool:
    """Whether long lines are worth trying."""
    shift, total = steps.shift.max(), steps.k.sum()
    return total <= next(most for reach, most in LONG_RUN if shift <= reach)


def _curved(steps: Rows) -> bool:
    """Whether the hyperbola is worth trying: the range in which its certificate has been seen to succeed."""
    m, q, k = steps.shift.tolist(), steps.q.tolist(), steps.k.tolist()
    return sum(k) <= 2e4 and 0.05 <= min(m) and max(m) <= 10 and 1e-7 <= min(q) and max(q) < 1


def single_point(m: float, q: float, add: int, eps: float):
    """One subsampled Gaussian step through the plain Gaussian curve delta_G (amplification, exact)
    [theory: pair.one-sampled-step].

    REMOVE, eps > log(1-q):  delta = q delta_G(g),  g = log1p(expm1(eps)/q).
    ADD, eps < -log(1-q):    delta = (1 - (1-q)e^eps) delta_G(x),  x = log q + eps - log(1 - (1-q)e^eps).
    The shift of eps is known to `slack`; the curve is monotone, so its ends are taken at the two ends of the shift.
    """
    wall = math.log1p(-q)
    if add:
        weight = -math.expm1(eps + wall)
        if weight <= 0:
            return Point(-math.inf, -math.inf, -math.inf, ZERO, "contour") if eps >= -wall * UP else None
        spoiled = 8 * U * (abs(eps) + abs(wall)) / weight * math.exp(eps + wall) + 8 * U
        log_weight = math.log(weight)
        at = math.log(q) + eps - log_weight
    else:
        ratio = math.expm1(min(eps, 600.0)) / q
        if ratio < 1e-12 - 1:  # 1 - e^eps <= delta(eps), and delta(eps) <= delta(log(1-q)) = q from the wall on
            lower, floor, upper = log_floor(eps)
            at_wall = math.log(q)
            return Point(lower, floor, min(max(upper, at_wall + log_slack(at_wall)), 0.0), ZERO, "contour")
        log_weight, spoiled = math.log(q), 8 * U
        at = math.log1p(ratio) if eps < 600 else eps - log_weight
        spoiled += 8 * U * abs(ratio) / (1 + ratio)
    slack = spoiled + 2 * log_slack(at, log_weight)
    one = Rows(np.array([m]), ONCE, ONCE)
    left, mid, right = (point(one, 0, at + move) for move in (-slack, 0.0, slack))
    if left is None or mid is None or right is None:
        return None
    *terms, rounding = mid.terms
    moved = max(left.estimate - mid.estimate, mid.estimate - right.estimate) + slack
    rounding += math.expm1(min(moved, 700.0))  # the shift is known to `slack`, and so moves delta
    lower, upper = right.lower + log_weight - slack, left.upper + log_weight + slack
    return Point(lower, mid.estimate + log_weight, upper, (*terms, rounding), "contour")


def single_root(m: float, q: float, add: int, delta: float):
    """eps of one subsampled step: closed form for REMOVE; for ADD a bracket of certified points around the root."""
    if not add:
        if delta >= q:  # delta(0) = q (2 Phi(m/2) - 1) < q: two rounded logs would not tell
            return Root(0.0, 0.0, 0.0, ZERO, "contour")
        log_delta, log_q = math.log(delta), math.log(q)
        target = log_delta - log_q
        one = Rows(np.array([m]), ONCE, ONCE)
        slack = log_slack(log_delta, log_q)
        low, high = (root(one, 0, target + slack) if target + slack < 0 else None), root(one, 0, target - slack)
        if high is None:
            return None
        if low is None:  # all that is known is eps > log(1-q), where expm1(g) = -1
            low = high._replace(lower=-800.0)
        at = low.lower, 0.5 * (low.estimate + high.estimate), high.upper
        lower, estimate, upper = (math.log1p(q * math.expm1(g)) if g < 700 else g + math.log(q) for g in at)
        widen = 16 * U * (1 + max(abs(low.lower), abs(high.upper)) * q)
        return Root(lower - widen * abs(lower), estimate, upper + widen * abs(upper), low.terms, "contour")
    wall = -math.log1p(-q)  # beyond it delta is 0, which points next to it need not see
    return bracket(lambda e: single_point(m, q, 1, e), delta, 0.0, wall, wall * UP)


def bracket(curve, delta: float, lo: float, hi: float, wall: float | None = None) -> Root | None:
    """Certified root in (lo, hi) from certified points of a decreasing curve: secants of the estimate's logarithm, and
    halves where these are no shorter, then outward steps. `wall` is an upper bound of the root that holds anyway."""
    log_delta, above = math.log(delta), log_upper(delta)
    high = low = math.inf  # log delta - log_delta at lo, its negative at hi
    mid, least = 0.5 * (lo + hi), 2 * math.ulp(max(abs(lo), abs(hi)))
    ended = False  # whether the chord to a delta of 0 has been tried: next to the largest loss it is about the curve
    while hi - lo > 2 * least:
        length, mid = hi - lo, min(max(mid, lo + least), hi - least)
        at = curve(mid)  # None: a delta too small to be seen, as a rule; both ends are certified below
        off = at.estimate - log_delta if at else -math.inf
        after = off > 0  # the root lies after mid
        moved = mid - lo if after else hi - mid
        lo, high, hi, low = (mid, off, hi, low) if after else (lo, high, mid, -off)
        least = 2 * math.ulp(max(abs(lo), abs(hi)))
        if high + low == math.inf:
            mid = 0.5 * (lo + hi) if ended or high == math.inf else lo - math.expm1(-high) * (hi - lo)
            ended = high < math.inf
        elif hi - lo <= 0.5 * length:
            mid = lo + high / (high + low) * (hi - lo)
        else:  # beyond the root, if the end that moved is as near to it as it seems
            mid = lo + min(4 * moved, 0.5 * (hi - lo)) if after else hi - min(4 * moved, 0.5 * (hi - lo))
    step = 8 * math.ulp(hi)
    lower = _outward(curve, lo, -step, lambda at: at.lower >= above)
    upper = _outward(curve, hi, step, lambda at: at.at_most(delta))
    ends = [end for end in (upper and upper[0], wall) if end is not None]
    if lower is None or not ends:
        return None
    start, at = lower
    return Root(start, 0.5 * (lo + hi), min(ends), at.terms, at.route)


def _outward(curve, start: float, step: float, holds):
    """(eps, point of the curve) from `start` on, where `holds`, in steps that double; None where none is found."""
    for _ in range(60):
        at = curve(start + step)
        if at is None:
            return None
        if holds(at):
            return start + step, at
        step *= 2
    return None
