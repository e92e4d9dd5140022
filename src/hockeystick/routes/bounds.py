"""What is known of a run without a route: before one is asked, and where all decline.

Beyond the range of the losses a curve is known exactly. Total variation distances of steps add up: for eps >= 0,
delta(eps) <= delta(0) <= sum k_i delta_i(0) [theory: pair.variation]. Chernoff's bound: log delta(eps) <= K(t) - t eps
+ t log t - (1+t) log1p(t) for every t > 0, K the sum of the steps' log M(t), rounded up [CKS20, Prop. 12]
[theory: line.chernoff]. The saddle-point accountant bounds a run of Gaussian steps from above. A direction that these
prove to be the smaller one is not asked."""

from __future__ import annotations

import math

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import ZERO, Point, Root
from ..arguments import exp_lower, exp_upper, log_lower
from ..bound import AccuracyError, DomainError
from ..outward import DOWN, UP, Ends, U, log_floor, log_of, log_slack, log_sum
from ..what.loss import ends, log_finite
from ..what.pair import PairedSteps, paired_steps, steps_of
from ..what.sampling import PACKED
from . import contour, general, jumps, saddlepoint
from .single import variation_upper
from .walls import rest, wall_upper

MOMENTS_TERMS = ("chernoff",)
ZERO_ROOT = Root(0.0, 0.0, 0.0, ZERO, "exact")


def beyond(question, add: int, eps: float) -> Point | None:
    """What is known of delta(eps) beyond the sum of the losses' ranges: the mass at infinity, or 1 - e^eps (shared
    mass); or where that mass leaves less than e^-35 to anything else. Else None.

    Ends and masses at infinity with the errors that the losses state; e^x and its complement add 4u each.
    """
    if question.gaussian:
        return _beyond_wall(question, add, eps)
    if question.replaced:
        return None  # losses have no end
    parts = question.losses(add)
    low, high = ends(parts)
    if eps >= high:
        log_none = log_finite(parts)
    elif any(loss.mass_inf > 0.5 for loss, _ in parts) and log_finite(parts).upper < -35:
        log_none = Ends(-math.inf, log_finite(parts).upper)
    elif eps <= low and eps < 0:
        least, most = log_finite(parts, minus=True)
        log_none = Ends(eps + least, eps + most)  # u of a sum x: u|x|e^x/(1-e^x) < u of what follows
    else:
        return None
    upper, lower = (_log_one_minus_exp(min(x, 0.0)) for x in log_none)
    lower, upper = (x + side * log_slack(x) if x > -math.inf else x for x, side in ((lower, -1), (upper, 1)))
    upper = min(upper, 0.0)
    value = upper if lower == -math.inf else 0.5 * (lower + upper)
    return Point(lower, value, upper, ZERO, "exact")


TIP = 1e-12
"""Distance from the largest loss, in units of 1 + |it|, at which a bound of delta is known where it is an atom."""


def top_lower(question, add: int) -> tuple[float, float, float]:
    """An eps from which on `beyond` knows delta, or infinity; another one shortly below it, and a lower bound of delta
    there: that of the test for outcomes with all losses at their largest, and for infinite ones [theory: risk.top]."""
    if question.gaussian or question.replaced:
        top = question.wall if add or not question.total else math.inf
        return top, top, 0.0
    parts = question.losses(add)
    top = ends(parts).upper
    tip = top - TIP * (1 + abs(top))
    log_num = log_den = size = 0.0
    for loss, k in parts if top < math.inf else ():
        at = loss.tails(np.array([loss.hi - loss.ends_error - 0.1 * TIP * (1 + abs(loss.hi))]))
        rel, off = at.rel.item() + 4 * U, at.absolute + 1e-300
        num, den = at.y_above.item() * (1 - rel) - off, at.x_above.item() * (1 + rel) + off
        if not num > 0:
            return top, tip, 0.0
        log_num, log_den, size = log_num + k * math.log(num), log_den + k * math.log(den), size + k * abs(math.log(den))
    if top == math.inf:
        return top, top, 0.0
    if tip > 700:  # e^tip is no double
        return top, tip, 0.0
    slack = 4 * U * (2 + len(parts)) * (1 + size + abs(log_num))
    infinite = max(0.0, -math.expm1(log_finite(parts).upper)) * DOWN
    low = exp_lower(log_num - slack) - exp_upper(log_den + slack) * math.exp(tip) * UP
    return top, tip, max(0.0, infinite + low * (1 - 4 * U) - 4 * U * exp_lower(log_num)) * DOWN


def _log_one_minus_exp(x: float) -> float:
    """log(1 - e^x) for x <= 0."""
    return math.log(-math.expm1(x)) if x < 0 else -math.inf


def _beyond_wall(question, add: int, eps: float) -> Point | None:
    """Where the loss cannot exceed eps (0), or cannot fall below it (1 - e^eps): essential range of the loss
    [theory: small.range].

    ADD: loss <= sum k |log(1-q)| <= wall; REMOVE: loss >= -that."""
    wall = question.wall if question.total else 0.0
    if eps >= wall and (add or not question.total):
        return Point(-math.inf, -math.inf, -math.inf, ZERO, "exact")
    if eps <= -wall and eps < 0 and (not add or not question.total):
        return Point(*log_floor(eps), ZERO, "exact")
    return None


def known_root(question, add: int, delta: float, cheaply: bool) -> Root | None:
    """eps(delta) where no route is needed: of no steps, at a jump of the curve, or (`cheaply`) where the distances
    alone keep delta(0) below delta. Else None."""
    if question.gaussian:
        return None if question.total else ZERO_ROOT
    if cheaply and _variation_upper(question, add) <= delta:
        return ZERO_ROOT
    # no loss of a Gaussian step, sampled or not, is infinite, and the largest is positive
    plain = question.replaced or paired_steps(question.run, question.adjacency, bool(add)) is not None
    return None if plain else _at_jump(question, add, delta)


def _at_jump(question, add: int, delta: float) -> Root | None:
    """The root where delta is below D; or equal to D, where the curve of atoms jumps from its largest sum; or where no
    finite sum of losses is positive. Else None."""
    parts = question.losses(add)
    if all(loss.hi > 0 and not loss.mass_inf for loss, _ in parts):
        return None
    high = ends(parts).upper
    if high > 0 and not any(loss.mass_inf for loss, _ in parts):
        return None
    least, most = rest(parts, delta)
    low = math.inf
    if most >= 0:
        if high > 0 and (most > 0 or high == math.inf or any(loss.smooth for loss, _ in parts)):
            return None
        low = max(0.0, 2 * math.fsum(k * loss.hi for loss, k in parts) - high)
    high = max(0.0, high) if least >= 0 else math.inf
    return Root(low, low, high, ZERO, "exact")


CEILINGS = 8
"""Ceilings of a run and a direction that are kept: log delta(e) <= at_zero - tilt e at every e
[theory: saddle.any-eps]."""
CLEARLY = 0.25
"""Nats by which a kept one has to be lower than asked: then the bound at the question's own saddle, which is within 0.1
of the best tilt's, is low enough as well, and no answer depends on what was asked before. It pays for the rounding of
at_zero - tilt e, too: K is known to a nat, so that at_zero is below 1e15."""


MANY_ROWS = 128
"""Rows of a rule from which the saddle's bound takes longer than an answer of a line that is kept."""


def ceilings(question, add: int) -> list[tuple[float, float]]:
    """(tilt, at_zero) of those that are kept, the latest first."""
    return question.run._cache.setdefault((question.adjacency, add, "ceilings"), [])


def keep_ceiling(known: list[tuple[float, float]], tilt: float = 0.0, at_zero: float = 0.0) -> None:
    """One more of them; tilt 0: none was found."""
    if tilt:
        known[:] = [(tilt, at_zero), *known[: CEILINGS - 1]]


def clearly_upper(known: list[tuple[float, float]], eps: float) -> float:
    """An upper end of log delta(eps) by ceilings that are kept, moved up so far that it decides nothing which the
    question's own saddle would not."""
    return min((at_zero - tilt * eps for tilt, at_zero in known), default=math.inf) + CLEARLY


def below(question, add: int, eps: float, log_delta: float) -> bool:
    """Whether it is proved, cheaply, that delta(eps) <= e^log_delta in this direction."""
    if log_delta == -math.inf:
        return False
    if question.gaussian:
        known = ceilings(question, add)
        if clearly_upper(known, eps) <= log_delta:
            return True
        for ruled in question.rules:
            if ruled.apart or ruled.steps.shift.size > MANY_ROWS:
                return False  # a line, which is kept, is the cheapest way to find out
            status, *found = _saddle_upper(ruled.steps, add, eps, log_delta, 1)
            if status == _core.OK or not ruled.wide:
                break
        else:
            status, *found = _saddle_upper(question.steps, add, eps, log_delta, question.n_threads)
        upper, tilt, at_zero = found
        if status == _core.OK:
            keep_ceiling(known, tilt, at_zero)
        return status == _core.OK and upper <= log_delta
    if eps >= 0 and _variation_upper(question, add) * UP <= exp_lower(log_delta):
        return True
    paired = paired_steps(question.run, question.adjacency, bool(add))
    if paired is not None:
        return (
            certainly_below(paired, add, eps, log_delta)
            or jumps.pair_log_upper(paired, add, eps, log_delta) <= log_delta
        )
    parts = question.losses(add)
    if eps >= ends(parts).upper and not any(loss.mass_inf for loss, _ in parts):
        return True  # beyond the largest loss
    return general.below(question, add, eps, log_delta)


def _saddle_upper(steps: Rows, add: int, eps: float, log_delta: float, n_threads: int):
    """(status, an upper end of log delta(eps), which may be any below log_delta, and tilt and at_zero of a
    ceiling, tilt 0 where there is none)."""
    work = scratch.borrow(n_threads * _core.saddle_work())
    found = _core.saddle_delta_upper(steps, add, eps, log_delta, n_threads, work)
    scratch.give_back(work)
    return found


def ruled_far_below(question, eps: float, log_enough: float) -> Point | None:
    """An upper end of the larger delta(eps) alone, where a rule proves at most e^log_enough."""
    upper = math.inf
    if ruled := next(iter(question.rules), None):
        upper = max(_chernoff_upper(ruled.steps, add, 1, eps) for add in question.directions)
    return Point(-math.inf, upper, upper, (1.0,), "moments") if upper <= log_enough else None


def far_below(question, add: int, eps: float, log_enough: float) -> Point | None:
    """An upper end of delta(eps) alone, by the moments accountant at its best order, where that is at most
    e^log_enough."""
    from .moments import log_delta_upper_of

    try:
        upper = log_delta_upper_of(question.run, question.adjacency, add, eps)
    except (AccuracyError, DomainError):  # no order is found, or the run is empty
        return None
    return Point(-math.inf, upper, upper, (1.0,), "moments") if upper <= log_enough else None


def last_point(question, add: int, eps: float) -> Point | None:
    """Where every route declines: delta(eps) is at least D, the mass of infinite losses, and 1 - e^eps; at most
    max(0, 1 - e^eps) and the distance of both laws, D + 1 - e^{eps-h} where no finite sum of losses exceeds h, and what
    the moments accountant says [theory: small.ends]. None where these say no more than 0 <= delta <= 1."""
    upper = -math.expm1(min(eps, 0.0)) + _variation_upper(question, add)
    least, most, high = 0.0, 0.0, question.wall if add else math.inf
    if not question.gaussian and not question.replaced:
        parts = question.losses(add)
        most, least = (-math.expm1(min(x, 0.0)) for x in log_finite(parts))
        high = ends(parts).upper
    if high < math.inf:
        gap = max(high - eps, 0.0) + U * (abs(high) + abs(eps))
        upper = min(upper, most - math.expm1(-gap))
    at = log_of(upper)
    lower = max(log_floor(eps).lower if eps < 0 else -math.inf, log_of(least * DOWN) - log_slack(log_of(most)))
    top = min(at + log_slack(at), 0.0) if upper > 0 else 0.0
    if far := far_below(question, add, eps, top):
        top = far.upper
    if top == 0.0 and lower == -math.inf:
        return None
    return Point(lower, top if lower == -math.inf else 0.5 * (lower + top), top, (0.0, 0.0, 0.0, 1.0), "exact")


def last_root(question, add: int, delta: float) -> Root | None:
    """The same of a root: at most the largest finite sum of losses, where delta is at least the mass of infinite ones,
    and at most what the moments accountant says."""
    found, high = root_below(question, add, delta), question.wall if add else math.inf
    if not question.gaussian and not question.replaced:
        parts = question.losses(add)
        high = max(wall_upper(parts, rest(parts, delta)[0]), 0.0)
    if high < (found.upper if found else math.inf):
        found = Root(0.0, high, high, (0.0, 0.0, 0.0, 1.0), "exact")
    return found


def root_below(question, add: int, delta: float) -> Root | None:
    """An upper end of eps(delta) alone, by the moments accountant at its best order, where that is finite."""
    from .moments import eps_upper_of

    try:
        upper = eps_upper_of(question.run, question.adjacency, add, log_lower(delta))
    except (AccuracyError, DomainError):
        return None
    return Root(0.0, upper, upper, (1.0,), "moments") if upper < math.inf else None


def _variation_upper(question, add: int) -> float:
    """Upper bound of delta(0)."""
    if not question.few and question.replaced:
        return _replaced_upper(question)
    paired = paired_steps(question.run, question.adjacency, bool(add))
    if paired is not None:
        return paired.variation_upper
    cache, key = question.run._cache, (question.adjacency, add, "variation")
    if key not in cache:
        cache[key] = variation_upper(question.losses(add))  # [theory: pair.variation]
    return cache[key]


def _replaced_upper(question) -> float:
    """The same of many Gaussian steps, sampled or not, with a record replaced: sum k q erf(m/sqrt 2)
    [theory: pair.branch-variation], erf x <= 2x/sqrt pi; 1 where the steps are not known."""
    if not question.run.listed:
        return 1.0
    m, q, k = steps_of(question.run, "add_remove")
    return min(1.0, float(np.sum(k * q * np.minimum(1.0, math.sqrt(2 / math.pi) * m))) * (1 + (m.size + 16) * U))


def square_variation_upper(paired: PairedSteps) -> float:
    """Upper bound of delta(0): (1/2) sqrt(E_den (num/den)^2 - 1), by Cauchy and Schwarz, with log E_den (num/den)^2 =
    K(1); 1 where a transform declines. Distances that add up grow like k, this like sqrt(k): of 213 random runs
    without a root on a line two have eps 0 by it that are [0, 2e-4] otherwise."""
    total = paired.dropped and -2 * math.log1p(-min(paired.dropped, 0.5))
    for i, (m, q, k) in enumerate(zip(*paired.steps, strict=True)):
        pair = paired.steps.pairs[i * PACKED.size : (i + 1) * PACKED.size]
        if pair[:4].any():
            try:
                log_m, error = _core.two_log_m(pair, 1.0, 40.0 + math.log(k))
            except AccuracyError:
                return 1.0
            total += k * (log_m + error)
        else:
            total += k * math.log1p(q * q * math.expm1(min(m * m, 700.0))) if m * m < 700 else math.inf
    return min(1.0, 0.5 * math.sqrt(math.expm1(min(total * (1 + 64 * U), 700.0))) * UP + paired.dropped)


def certainly_below(paired: PairedSteps, add: int, eps: float, log_delta: float) -> bool:
    """Whether eps is beyond every loss, or beyond Chernoff's bound of eps(e^log_delta)."""
    return (eps >= paired.loss_upper and _log_kept(paired, log_delta) > -math.inf) or root_upper(
        paired, add, log_delta
    ) <= eps


def root_upper(paired: PairedSteps, add: int, log_delta: float) -> float:
    """Chernoff's bound of eps(e^log_delta), infinite where it says nothing."""
    kept = _log_kept(paired, log_delta)
    if kept == -math.inf:
        return math.inf
    return min(_chernoff_upper(paired.steps, add, 0, kept), paired.loss_upper)


def log_delta_upper(paired: PairedSteps, add: int, eps: float) -> float:
    """Chernoff's bound of log delta(eps), at most 0."""
    upper = min(0.0, _chernoff_upper(paired.steps, add, 1, eps))
    if paired.dropped:
        upper = log_sum(upper, math.log(paired.dropped))
    return min(0.0, upper)


def _log_kept(paired: PairedSteps, log_delta: float) -> float:
    """log of delta less what was dropped; -inf where that is not the smaller by a factor e."""
    if not paired.dropped:
        return log_delta
    log_part = math.log(paired.dropped) - log_delta
    if not log_part <= -1:
        return -math.inf
    return log_delta + math.log1p(-math.exp(log_part)) - 1e-12  # log_part is within 1e-12


def _chernoff_upper(steps: Rows, add: int, have_eps: int, at: float) -> float:
    status, upper, _ = scratch.lend(_core.contour_work(1), _core.chernoff_upper, steps, add, have_eps, at)
    return upper if status == _core.OK else math.inf


LINES = 16
"""Chernoff lines that bound a curve."""


def curve_upper(question, add: int, eps: np.ndarray) -> np.ndarray:
    """Upper bounds of log delta at ascending eps: the least of LINES Chernoff lines K(t) - eps t, tilts spread over
    eps."""
    best = np.zeros(eps.size)
    size = _core.contour_work(1)
    ruled = next(iter(question.rules), None)
    steps = ruled.steps if ruled else question.steps
    with np.errstate(over="ignore", invalid="ignore"):  # beyond doubles a line says nothing
        for at in eps[np.linspace(0, eps.size - 1, LINES).astype(int)].tolist():
            status, upper, tilt = scratch.lend(size, _core.chernoff_upper, steps, add, 1, at)
            if status == _core.OK:
                line = upper - (eps - at) * tilt
                best = np.fmin(best, line + 8 * U * (abs(upper) + tilt * (np.abs(eps) + abs(at))))
    return best


def moments_point(steps: Rows, add: int, eps: float, jumped: bool = False) -> Point | None:
    """delta(eps) between that of its single most revealing step (dropping steps is post-processing) and Chernoff's
    bound e^{K(t) - eps t} t^t/(1+t)^(1+t) [CKS20, Prop. 12] [theory: pair.dropping, small.between], inside the interval
    of the route saddlepoint and, unless these were asked (`jumped`), that of rare large losses (jumps.py). The estimate
    is the upper end."""
    upper = _best_order_upper(steps, add, 1, eps)
    if upper is None:
        return None
    lower = -math.inf
    for m, q in _single_steps(steps):
        if abs(eps) < -math.log1p(-q) or (not add and eps > 0):
            point = contour.single_point(m, q, add, eps)
            lower = max(lower, point.lower) if point else lower
    for other in (saddlepoint.point(steps, add, eps), None if jumped else jumps.point(steps, add, eps)):
        if other:
            lower, upper = max(lower, other.lower), min(upper, other.upper)
    return Point(lower, upper, upper, (1.0,), "moments")


def moments_root(steps: Rows, add: int, log_delta: float, jumped: bool = False) -> Root | None:
    """eps(delta), clipped at 0, as `moments_point`; log_delta is log delta rounded to nearest."""
    least, most = (math.nextafter(log_delta, side) for side in (-math.inf, math.inf))
    upper = _best_order_upper(steps, add, 0, least)
    if upper is None:
        return None
    roots = [contour.single_root(*one, add, exp_upper(most)) for one in _single_steps(steps)]
    lower = max([0.0, *(root.lower for root in roots if root)])
    for other in (saddlepoint.root(steps, add, log_delta), None if jumped else jumps.root(steps, add, log_delta)):
        if other:
            lower, upper = max(lower, other.lower), min(upper, other.upper)
    upper = max(upper, 0.0)
    return Root(lower, upper, upper, (1.0,), "moments")


def _best_order_upper(steps: Rows, add: int, have_eps: int, value: float):
    status, _, upper = scratch.lend(_core.saddle_work(), _core.saddle_moments_upper, steps, add, have_eps, value)
    return upper if status == _core.OK else None


def _single_steps(steps: Rows) -> list[tuple[float, float]]:
    """(m, q) of at most four subsampled steps, those of largest q. Without them nine of 79 random
    roots of unlike steps by `edgeworth` have a lower end of 0, or half as large."""
    order = np.argsort(-steps.q, kind="stable")[:4]
    return [(float(steps.shift[i]), float(steps.q[i])) for i in order if steps.q[i] < 1]
