"""Attack risk read off the privacy curve: trade-off curve, advantage, Bayes risk, posterior belief.

A test of false positive rate a has, with x = e^eps [DRS22, Prop. 2.13] [theory: risk.tpr],

    tpr(a) = min_x delta(x) + a x,        fnr(a) = 1 - tpr(a) = max_x 1 - delta(x) - a x,

so that everything follows from certified deltas; chords.py has the proof of both ends. Bayes risk:
[theory: risk.bayes]; posterior: [theory: risk.posterior]."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from . import arguments, query, worst
from .bound import Bound, Budget, DomainError
from .chords import EPS_MAX, Curve, Nodes, fpr_upper, rate_lower, rate_upper, tail_ends, tpr_lower
from .outward import DOWN, UP, U, log_slack
from .what.mechanism import as_run, within
from .what.pair import ADJACENCIES, mirrored

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .types import Asked, Direction, Numbers, Query, Ran, Sided, SidedTol

GOOD_ENOUGH = 1e-10
"""Relative width at which the rounds stop; the curve's own certificates are rarely narrower than a tenth of it."""

MOST = 15.8
"""The mu from which on all rates below its own are asked of the curve: of the reverse one 1 less that is 1."""

TOLD = 64 * U
"""Width of a tpr next to 1 that is narrow enough: what 1 less it is known to is asked by `tradeoff`."""

SURE = 37.0
"""Log odds beyond which a belief is 1 but for the last digit."""

SURELY = 38.13
"""A little more than the log of 4/U: where delta of the reverse curve there is 1 within a rate, an attack at this rate
misses less than a last digit."""

REVERSE = {"remove": "add", "add": "remove"}


def advantage(run: Ran, **options: Unpack[Query]) -> Bound[float]:
    """Largest tpr - fpr of a membership attack, which is delta(0), the total variation distance.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    adjacency, direction, route, rtol, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified: one delta.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.advantage(hs.gaussian(1.0))
    >>> b.lower <= 0.3829249225480263 <= b.upper
    True
    """
    return query.delta(run, 0.0, **options)  # [theory: risk.tpr]


@overload
def tradeoff(run: Ran, fpr: float, **options: Unpack[Asked]) -> Bound[float]: ...
@overload
def tradeoff(run: Ran, fpr: Numbers, **options: Unpack[Asked]) -> Bound[NDArray[np.float64]]: ...
def tradeoff(run: Ran, fpr: float | Numbers, *, direction: Direction = "both", **options: Unpack[Sided]) -> Bound[Any]:
    """Smallest false negative rate of an attack whose false positive rate is at most `fpr`.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    fpr : float or array_like
        In (0, 1).
    direction : "both", "remove" or "add"
        "remove": a false negative misses a record that is there. "both": the smaller of the two.
    adjacency, route, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified bounds of fnr, of the shape of `fpr`. Near 1 a double cannot show the distance to 1: there
        `true_positive_rate` has the digits. `budget`: what the width of the deltas and the distance of the points
        leave: 1e-10 of fnr or of 1 - fnr, whichever is smaller, or the narrowest that the deltas allow. A direction
        asks at most 203 deltas a rate (5 in each of 40 rounds and 3 before), 11 at the median.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`.

    References
    ----------
    [DRS22] for the curve; chords.py for the proof.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.tradeoff(hs.gaussian(1.0), 0.05)     # exactly Phi(Phi^-1(0.95) - 1)
    >>> b.lower <= 0.7404889771585559 <= b.upper and b.upper - b.lower < 1e-9
    True
    """
    return _rates(run, fpr, direction, options, 1)


@overload
def true_positive_rate(run: Ran, fpr: float, **options: Unpack[Asked]) -> Bound[float]: ...
@overload
def true_positive_rate(run: Ran, fpr: Numbers, **options: Unpack[Asked]) -> Bound[NDArray[np.float64]]: ...
def true_positive_rate(
    run: Ran, fpr: float | Numbers, *, direction: Direction = "both", **options: Unpack[Sided]
) -> Bound[Any]:
    """Largest true positive rate of an attack of false positive rate at most `fpr`: 1 - `tradeoff`, with relative
    accuracy.

    Parameters, errors and guarantees are those of `tradeoff`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.true_positive_rate(hs.gaussian(1.0), 1e-8)
    >>> b.lower <= 1.99405303596551322e-06 <= b.upper and b.upper < b.lower * (1 + 1e-7)
    True
    """
    return _rates(run, fpr, direction, options, 0)


def bayes_risk(run: Ran, prior: float, *, direction: Direction = "both", **options: Unpack[SidedTol]) -> Bound[float]:
    """Error probability of the best guess whether the record is there, if it is with probability `prior`.

    prior (1 - delta(log((1 - prior)/prior))), through the reverse curve where prior > 1/2. Never above
    min(prior, 1 - prior), the risk of an attacker who sees nothing.

    Parameters
    ----------
    prior : float
        In (0, 1): probability of the law that is num in `direction`. "both": the smaller risk of the two.
    run, adjacency, route, rtol, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified, within the width of the one delta that a direction asks.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.bayes_risk(hs.gaussian(1.0), 0.5)
    >>> b.lower <= (1 - 0.3829249225480263) / 2 <= b.upper
    True
    """
    pi = within("prior", prior, 0, 1, "()")
    odds = min(pi, 1 - pi)  # 1 - pi is exact where it is the smaller
    eps = math.log1p(-odds) - math.log(odds)
    slack = 2 * log_slack(eps)
    found: list[tuple[Any, ...]] = []
    for side in _sides(run, direction, options):
        asked: Any = side if pi <= 0.5 else REVERSE[side]
        at = query.delta(run, eps, direction=asked, **options)
        # [theory: risk.bayes]
        ends = [odds * (1 - end) for end in (at.upper, at.estimate, at.lower)]
        least = max(0.0, ends[0] * (1 - slack) * DOWN - 1e-323)
        most = min(ends[2] * (1 + 2 * slack) * UP + 5e-324, odds)
        found.append((least, min(max(ends[1], least), most), most, at))
    low, mid, high = (min(each[i] for each in found) for i in range(3))
    return Bound(low, mid, high, found[0][3].route, True, found[0][3].budget)


def posterior(
    run: Ran, prior: float, *, tail: float, direction: Direction = "both", **options: Unpack[Sided]
) -> Bound[float]:
    """The belief that an attacker's posterior exceeds with probability at most `tail`.

    prior e^L / (1 - prior + prior e^L) at the loss L that num exceeds with probability `tail`: an attacker who holds
    the record for present with probability `prior` believes it with more than this after seeing the output of a run
    with the record, with probability at most `tail`.

    Parameters
    ----------
    prior : float
        In (0, 1).
    tail : float
        In (0, 1).
    run, adjacency, direction, route, n_threads
        As in `delta`; "both" is the larger belief.

    Returns
    -------
    Bound
        Certified: the loss within 1e-8, or as near as the deltas allow. A direction asks at most 203 deltas.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.posterior(hs.gaussian(1.0), 0.5, tail=0.5)     # the loss is N(1/2, 1): its median is 1/2
    >>> b.lower <= 0.6224593312018546 <= b.upper and b.upper - b.lower < 1e-6
    True
    """
    pi, tau = within("prior", prior, 0, 1, "()"), within("tail", tail, 0, 1, "()")
    logit = math.log(pi) - math.log1p(-pi)
    ends: list[tuple[float, float, float]] = []
    routes: set[str] = set()
    for side in _sides(run, direction, options):
        known, curve = [-math.inf, math.inf], Curve(run, side, dict(options), routes)
        for nodes in curve.rounds(tau, True, known, SURE - logit):
            least, most = tail_ends(nodes, tau)
            known[:] = max(known[0], least), min(known[1], most)
            if known[1] - known[0] <= 1e-8 or known[0] + logit > SURE:
                break
        low, high = known
        low = max([low, *(p.eps for p in curve.asked if p.low > tau)])  # num[L > eps] is delta(eps) at least
        ends.append((low, 0.5 * (low + high) if math.isfinite(low + high) else min(max(low, 0.0), high), high))
    low, mid, high = (max(end[i] for end in ends) for i in range(3))
    slack = 2 * log_slack(logit)
    return Bound(
        max(0.0, _logistic(low + logit - slack) * DOWN - 1e-323),  # [theory: risk.posterior]
        _logistic(mid + logit),
        min(1.0, _logistic(high + logit + slack) * UP + 1e-323),
        "+".join(sorted(routes)),
        True,
        Budget({"loss": high - low}, "eps"),
    )


def _rates(run: Ran, fpr: float | Numbers, direction: str, options: Any, which: int) -> Bound[Any]:
    """Bounds of (tpr, fnr)[which] at every fpr."""
    if "rtol" in options:
        raise DomainError("rtol is not an option here; the bounds are as narrow as the deltas allow")
    flat = arguments.numbers("fpr", fpr, "in (0, 1)", 0.0, 1.0)
    routes: set[str] = set()
    rows = []
    sides = _sides(run, direction, options)
    curve = functools.cache(lambda side: Curve(run, side, options, routes))
    for a in flat:
        found: list[_Rates] = []
        for side in sides:
            sure = which == 0 and found and found[0].tpr == (1 - U, 1.0)
            if not (sure or (found and _weaker(run, side, options, found[0]))):
                found.append(_point(curve, side, a, found, which))
        tpr, fnr = (
            (max(s.tpr[0] for s in found), max(s.tpr[1] for s in found)),
            (min(s.fnr[0] for s in found), min(s.fnr[1] for s in found)),
        )
        low, high = (tpr, fnr)[which]
        rows.append((low, 0.5 * (low + high), high))
    low, mid, high = (arguments.shaped((row[i] for row in rows), fpr) for i in range(3))
    gap = high - low
    return Bound(low, mid, high, "+".join(sorted(routes)), True, Budget({"chords": gap}, "rate"))


class _Rates(NamedTuple):
    """Lower and upper ends of tpr and fnr in one direction. Another direction is a weaker attack if its curve, or the
    reversed one with `dual`, is at most `level` at eps."""

    tpr: tuple[float, float]
    fnr: tuple[float, float]
    dual: bool
    eps: float
    level: float


def _weaker(run, side: str, options: dict, other: _Rates) -> bool:
    """Whether a direction is seen, cheaply, to be a weaker attack than another one [theory: risk.tpr, risk.fpr]."""
    return query.at_most(run, other.eps, other.level, direction=REVERSE[side] if other.dual else side, **options)


def _point(curve: Callable[[str], Curve], side: str, a: float, others: list[_Rates], which: int) -> _Rates:
    """The rates at fpr a in one direction. curve: those of the directions; `others`: what was found for these, above
    whose tpr nothing is asked further. which: 0 where tpr is wanted, 1 where fnr is.

    Where the threshold lies below 0 (a large), fnr is the small number. It is the fpr of the reverse test whose tpr is
    1 - a, so that fnr = max_x (1 - a - delta_rev(x)) / x, and f bounds it from above if delta_rev(x) + f x >= 1 - a for
    all x: both are read off the points of the reverse curve, and a delta near 1 is never subtracted from 1.
    """

    if which == 0 and curve(side).next_to_one:
        if curve(REVERSE[side]).ask.rest(np.array([SURELY]))[1, 0] <= a:
            return _Rates((_one_minus(0.25 * U, -1), 1.0), (0.0, 0.25 * U), True, SURELY, 0.0)  # [theory: risk.sure]
    if a <= 0.5 * math.erfc(min(curve(side).mu, MOST) / math.sqrt(8)):

        def ends(nodes: Nodes, low: float) -> tuple[float, float]:  # [theory: risk.tpr]
            return tpr_lower(nodes, a), min(rate_upper(d + a * x) for d, x in zip(nodes.high, nodes.x_up, strict=True))

        def lesser(low: float, high: float) -> bool:
            told = which == 0 and curve(side).next_to_one and high - low < TOLD
            return told or any(high <= other.tpr[0] for other in others)

        low, high = _narrowed(curve(side), a, False, (a, 1.0), ends, lesser)
        best = min(curve(side).asked, key=lambda p: p.high + a * p.x_up)
        level = (low - a * best.x_up * UP) * DOWN
        return _Rates((low, high), (_one_minus(high, -1), _one_minus(low, 1)), False, best.eps, level)
    tpr_low, tpr_high = _one_minus(a, -1), _one_minus(a, 1)

    def reverse_ends(nodes: Nodes, low: float) -> tuple[float, float]:
        low = max(low, *(rate_lower((tpr_low - d) / x) for d, x in zip(nodes.high, nodes.x_up, strict=True)))
        return low, fpr_upper(nodes, tpr_high, low)

    def larger(low: float, high: float) -> bool:
        return any(low >= other.fnr[1] for other in others) or (which == 0 and high - low < 0.5 * U)

    reverse = curve(REVERSE[side])
    low, high = _narrowed(reverse, 1 - a, True, (0.0, tpr_high), reverse_ends, larger)
    best = max(reverse.asked, key=lambda p: (tpr_low - p.high) / p.x_up)
    level = (tpr_low - high * best.x_up * UP) * DOWN
    return _Rates((_one_minus(high, -1), _one_minus(low, 1)), (low, high), True, best.eps, level)


def _narrowed(curve: Curve, level: float, dual: bool, widest: tuple[float, float], ends, settled):
    """The narrowest [low, high] that ends(nodes, low) gives, or the first that is settled(low, high)."""
    low, high = widest
    for nodes in curve.rounds(level, dual):
        inner = ends(nodes, low)
        low, high = max(low, inner[0]), min(high, inner[1])
        least = 0.0 if dual else 2 * min(top - end for end, top in zip(nodes.low, nodes.high, strict=True))
        if settled(low, high) or high - low <= max(GOOD_ENOUGH * (high if dual else min(high, 1 - high)), least):
            break
    return low, high


def _one_minus(value: float, toward: int) -> float:
    """1 - value, rounded up (toward = 1) or down."""
    exact = 1.0 - value
    return min(max(math.nextafter(exact, math.inf * toward), 0.0), 1.0)


def _sides(run: Ran, direction: str, options: Any) -> tuple[str, ...]:
    """The directions to ask, one where both have one curve."""
    arguments.one_of("direction", direction, query.DIRECTIONS)
    if direction != "both":
        return (direction,)
    adjacency = options.get("adjacency", ADJACENCIES[0])
    arguments.one_of("adjacency", adjacency, ADJACENCIES)
    one = not worst.unsettled(run := as_run(run), adjacency) and mirrored(run, adjacency)
    return ("remove",) if one else ("remove", "add")


def _logistic(t: float) -> float:
    return 1 / (1 + math.exp(-t)) if t >= -EPS_MAX else math.exp(t)
