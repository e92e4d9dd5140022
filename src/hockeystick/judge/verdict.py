"""The judge: a claimed interval against the curve, computed again."""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, ctx

from ..arguments import numbers, one_of
from ..bound import Bound, DomainError
from ..what.allocation import RandomAllocation
from ..what.matrix import Failure
from ..what.mechanism import Run, as_run, real
from . import cyclic, finite, pairs, several, twofold
from .allocation import Allocation
from .atoms import Atoms
from .balls import UndecidedError, about, between, floor_log, normal_above, precision, rational
from .contour import Line
from .gauss import Gauss
from .laplace import Laplace, composed
from .result import Evidence, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ADJACENCIES = ("add_remove", "replace_one", "zero_out")
DIRECTIONS = ("both", "remove", "add")
PRECISIONS = (1, 2, 4, 8)
"""Multiples of the least precision, 128 bits and more for many steps, that are tried."""
ROUNDS = 9
PLACES = 4
"""Steps by which the best part of eps for the first of two neighbours is looked for."""


class _Deadline:
    def __init__(self, seconds: float):
        self.at = time.thread_time() + seconds

    def over(self) -> bool:
        return time.thread_time() > self.at

    def check(self) -> None:
        if self.over():
            raise UndecidedError("the seconds allowed are over")


class _Curve:
    """The privacy curve of a run in one direction, as balls."""

    def __init__(self, run: Run, adjacency: str, add: bool, deadline: _Deadline):
        self.run, self.adjacency, self.add, self.deadline = run, adjacency, add, deadline
        self.steps: dict[int, list] = {}
        self.base = 128 + 2 * max(sum(k for _, k in run.parts), 1).bit_length()

    def at(self, eps, log_goal: float, rough: bool = False) -> arb:
        """delta(eps) at the rational `eps` (or inf), to about e^log_goal, `rough`: or to some percent."""
        if self._turns(eps):  # delta(eps) = 1 - e^eps (1 - delta'(-eps)), delta' of the pair turned round
            goal = min(-45.0, log_goal - float(eps)) if eps > 0 else -45.0
            turned = _Curve(self.run, self.adjacency, not self.add, self.deadline).at(-eps, goal)
            with precision(self.base + 2 * abs(int(eps))):
                return 1 - arb(eps).exp() * (1 - turned)
        best, reason = arb(0).union(arb(1)), None
        for times in PRECISIONS:
            with precision(self.base * times):
                try:
                    found = self._at(eps, log_goal, rough)
                except UndecidedError as error:
                    reason = error
                    continue
                if rough and found.is_finite():
                    return found
                before = floor_log(best.rad())
                if found.is_finite():
                    best = best.intersection(found)
                if floor_log(best.rad()) <= log_goal or (before < -1 and before < floor_log(best.rad()) + 5):
                    return best  # narrow enough, or more digits do not help
        if reason is not None and floor_log(best.rad()) > -1:
            raise reason
        return best

    def _turns(self, eps) -> bool:
        """Whether the curve is that of the pair turned round: allocation.py knows one direction."""
        if any(isinstance(step, RandomAllocation) for step, _ in self.run.parts):
            return not self.add and -3000 < eps < 3000
        return -3000 < eps < -20

    def delta_upper(self, eps) -> arb:
        """At least delta(eps), by one evaluation of the transform; 1 where that says nothing."""
        with precision(self.base):
            try:
                laws = self._laws()
                if eps == math.inf or not laws:
                    return arb(1)
                lost = sum((k * getattr(law, "lost", arb(0)) for law, k in laws), arb(0))
                return (self.floor() + Line(laws, self.deadline).delta_upper(arb(eps)) + lost).upper().min(arb(1))
            except UndecidedError:
                return arb(1)

    def roughly(self, eps) -> arb:
        """delta(eps) to some percent, or else between that of one of the steps and a bound by the transform."""
        try:
            return self.at(eps, -45.0, True)
        except UndecidedError:
            least = arb(0)
            with precision(self.base):
                try:
                    for law, _ in self._laws():  # what else is released reveals no less
                        if not isinstance(law, Allocation):
                            least = least.max(law.delta(arb(eps)).lower())
                except UndecidedError:
                    pass
            return between(least, self.delta_upper(eps).max(least))

    def floor(self) -> arb:
        """Pr[L = inf]."""
        rest = arb(1)
        for law, k in self._laws():
            rest *= (1 - law.mass_inf) ** k
        return 1 - rest

    def top(self) -> arb | None:
        """The largest finite loss, where it is known exactly or to a ball."""
        total = arb(0)
        for law, k in self._laws():
            own = law.top()
            if own is None:
                return None
            total += k * own
        return total

    def _laws(self) -> list:
        if ctx.prec not in self.steps:
            found = []
            for step, k in self.run.parts:
                law = pairs.law(step, self.adjacency)
                if law is not None:
                    found.append((law.reversed() if self.add else law, k))
            self.steps[ctx.prec] = found
        return self.steps[ctx.prec]

    def _at(self, eps, log_goal: float, rough: bool) -> arb:
        laws = self._laws()
        if eps == math.inf:
            return self.floor()
        eps = arb(eps)
        if not laws:
            return (-eps.expm1()).nonnegative_part()
        top = self.top()
        if top is not None and eps >= top:
            return self.floor()
        if sum(k for _, k in laws) == 1 and not isinstance(laws[0][0], Allocation):
            return laws[0][0].delta(eps)
        lost = sum((k * getattr(law, "lost", arb(0)) for law, k in laws), arb(0))
        around = None if all(isinstance(law, Atoms) for law, _ in laws) else self._around(laws, eps, log_goal)
        if around is not None and floor_log(around.rad()) <= log_goal:
            return around + between(0, lost)
        try:
            return self.floor() + self._finite(laws, eps, log_goal, rough) + between(0, lost)
        except UndecidedError:
            if around is None:
                raise
            return around + between(0, lost)

    def _finite(self, laws, eps: arb, log_goal: float, rough: bool) -> arb:
        if all(isinstance(law, Gauss) and law.plain is not None for law, _ in laws):
            m = sum((k * law.plain**2 for law, k in laws), arb(0)).sqrt()
            return normal_above(eps / m - m / 2) - eps.exp() * normal_above(eps / m + m / 2)
        if all(isinstance(law, Atoms) for law, _ in laws):
            return self._atomic(laws, eps, log_goal)
        try:
            return Line(laws, self.deadline).curve(eps, log_goal, rough)
        except UndecidedError:
            if len(laws) == 1 and type(laws[0][0]) is Laplace:  # the closed form is of no class derived from it
                return composed(laws[0][0].m, laws[0][1], eps)
            turned = [(law.reversed(), k) for law, k in laws]
            if twofold.applies(laws):
                return twofold.curve(laws, eps, log_goal, self.deadline)
            if twofold.applies(turned):  # H(eps) = 1 - e^eps + e^eps H'(-eps), H' of the pair turned round
                price = eps.exp()
                return 1 - price + price * twofold.curve(turned, -eps, log_goal - about(eps), self.deadline)
            raise

    def _atomic(self, laws, eps: arb, log_goal: float) -> arb:
        try:
            return finite.curve(laws, eps, self.deadline)
        except UndecidedError:
            if len(laws) > 1 or laws[0][0].lattice is None:
                raise
            return Line(laws, self.deadline).curve(eps, log_goal)

    def _around(self, laws, eps: arb, log_goal: float) -> arb | None:
        """Between two laws with few outcomes, for large shifts; None where there are none."""
        if min(law.least_gap() for law, _ in laws) < 4:
            return None
        ends = []
        try:
            for side in ("coarse", "revealed"):
                own = [(getattr(law, side)(), k) for law, k in laws]
                rest = arb(1)
                for law, k in own:
                    rest *= (1 - law.mass_inf) ** k
                ends.append(1 - rest + self._atomic(own, eps, log_goal))
        except UndecidedError:
            return None
        return between(*ends)


class _Failing:
    """A curve to which the probability of failures is added at every eps, up to 1 in all."""

    def __init__(self, curve: _Curve | _Chain, lost):
        self.curve, self.lost, self.base = curve, lost, curve.base

    def at(self, eps, log_goal: float, rough: bool = False) -> arb:
        return self._beside(self.curve.at(eps, log_goal, rough))

    def delta_upper(self, eps) -> arb:
        return self._beside(self.curve.delta_upper(eps))

    def roughly(self, eps) -> arb:
        return self._beside(self.curve.roughly(eps))

    def floor(self) -> arb:
        return self._beside(self.curve.floor())

    def top(self) -> arb | None:
        return self.curve.top()

    def _beside(self, value: arb) -> arb:
        with precision(2 * self.base):
            return (value + self.lost).min(arb(1))


class _Chain:
    """At least the curve of a run in which a record is replaced, by those of the run in which it is zeroed: several.py.
    Its values are balls around bounds from above."""

    def __init__(self, first: _Curve, second: _Curve):
        self.first, self.second, self.base = first, second, first.base
        self.places: dict[Any, Any] = {}

    def at(self, eps, log_goal: float, rough: bool = False) -> arb:
        """By a half and by about the best part of eps for the first neighbour."""
        if eps == math.inf:
            return self.floor()
        if eps not in self.places:
            self.places[eps] = self._place(eps)
        return self._split(eps, eps / 2, log_goal, rough).min(self._split(eps, self.places[eps], log_goal, rough))

    def delta_upper(self, eps) -> arb:
        with precision(self.base):
            price = arb(eps / 2).exp()
            return (self.first.delta_upper(eps / 2) + price * self.second.delta_upper(eps / 2)).upper().min(arb(1))

    def roughly(self, eps) -> arb:
        return between(0, self.at(eps, -45.0, True).upper())

    def floor(self) -> arb:
        return between(0, 1)

    def top(self) -> None:
        """Not known."""

    def _split(self, eps, x, log_goal: float, rough: bool) -> arb:
        with precision(self.base):
            return sum(self._parts(eps, x, log_goal, rough), arb(0))

    def _parts(self, eps, x, log_goal: float, rough: bool) -> tuple[arb, arb]:
        first = self.first.at(x, log_goal - 1, rough)
        second = self.second.at(eps - x, log_goal - 1 - float(x), rough)
        with precision(self.base):
            return first, arb(x).exp() * second

    def _place(self, eps):
        """Where the bound is about least: of a e^{-ux} + b e^{wx} through the last two places. For planning only."""

        def logs(x: float) -> np.ndarray:
            return np.array([floor_log(part) for part in self._parts(eps, rational(x), -45.0, True)])

        x, other = 0.5 * float(eps), 0.5 * float(eps) + 0.05 * max(1.0, abs(float(eps)))
        here, there = logs(x), logs(other)
        for _ in range(PLACES):
            fall, rise = (there - here) / (other - x) * [-1, 1]
            if not (fall > 0 and rise > 0 and abs(other - x) > 1e-4 * abs(x)):
                break
            other, there = x, here
            x += float(np.log(fall / rise) + here[0] - here[1]) / (fall + rise)
            here = logs(x)
        best = x if np.logaddexp(*here) < np.logaddexp(*there) else other
        return rational(best)


def _whole(run: Run) -> tuple[Run, Any]:
    """The run without failures, and the probability of these."""
    lost = sum(k * rational(step.delta) for step, k in run.parts if isinstance(step, Failure))
    return Run(tuple(part for part in run.parts if not isinstance(part[0], Failure))), lost


class _Curves:
    """The curves of which the largest is asked for, by what they are of."""

    def __init__(self, adjacency: str, direction: str, deadline: _Deadline):
        self.adjacency, self.deadline = adjacency, deadline
        self.names = ("remove", "add") if direction == "both" else (direction,)

    def of(self, run: Run) -> dict[Any, Any]:
        rest, lost = _whole(run)
        runs = cyclic.settled(rest, self.adjacency)
        curves = {
            (name, i): _Curve(one, self.adjacency, name == "add", self.deadline)
            for i, one in enumerate(runs)
            for name in self.names
        }
        return {key: _Failing(curve, lost) if lost else curve for key, curve in curves.items()}

    def chained(self, run: Run) -> dict[Any, Any]:
        """What is at least the curve of a run under replace_one."""
        rest, lost = _whole(run)
        chains = [
            _Chain(*(_Curve(one, "zero_out", add, self.deadline) for add in (False, True)))
            for one in cyclic.settled(rest, "zero_out")
        ]
        return {(self.names[0], i): _Failing(chain, lost) if lost else chain for i, chain in enumerate(chains)}


def judged(run, bound, eps, delta, log, adjacency, direction, seconds) -> Verdict:
    """What `verify` returns."""
    run = as_run(run)
    one_of("adjacency", adjacency, ADJACENCIES)
    one_of("direction", direction, DIRECTIONS)
    query, at = _question(bound, eps, delta, log)
    low, high = _ends(bound)
    if np.shape(low) != np.shape(at) or np.shape(high) != np.shape(at):
        raise DomainError(f"bound and question must have one shape, got {np.shape(low)} and {np.shape(at)}")
    deadline = _Deadline(real("seconds", seconds, "> 0"))
    curves = _Curves(adjacency, direction, deadline)
    try:
        within = several.encloses(run, adjacency)
        ask = _between(curves, run) if within else functools.partial(_asked, curves.of(run))
    except UndecidedError as error:
        return Verdict("not decided", str(error))
    found = [
        ask(query, x, a, b)
        for x, a, b in zip(*(np.asarray(v, dtype=float).ravel().tolist() for v in (at, low, high)), strict=True)
    ]
    for wanted in ("refuted", "not decided"):
        for one in found:
            if one.verdict == wanted:
                return one
    return Verdict(
        "confirmed", found[0].why if len(found) == 1 else "", tuple(e for one in found for e in one.evidence)
    )


def _asked(curves, query: str, at: float, low: float, high: float) -> Verdict:
    try:
        return _judge(curves, query, at, low, high)
    except UndecidedError as error:
        try:
            return _roughly(curves, query, at, low, high) or Verdict("not decided", str(error))
        except (UndecidedError, ArithmeticError):
            return Verdict("not decided", str(error))
    except ArithmeticError as error:  # of doubles, which only plan
        return Verdict("not decided", f"a plan in doubles fails: {error}")


def _between(curves: _Curves, run: Run):
    """The verdict where the curve is known to lie above some curves and below others: an end of the interval that
    lies beyond them is shown to be right, one that lies within is not decided."""
    below = [curves.of(one) for one in several.below(run, curves.adjacency)]
    if curves.adjacency == "replace_one":
        above = [curves.of(several.told(run)), curves.chained(several.blocks(run))]
    else:
        above = [curves.of(several.blocks(run))]

    def first(asked: Iterator[Verdict]) -> Verdict:
        verdicts = []
        for one in asked:
            if one.confirmed:
                return one
            verdicts.append(one)
        return verdicts[0]

    def ask(query: str, at: float, low: float, high: float) -> Verdict:
        least, most = {"delta": (0.0, 1.0), "log_delta": (-math.inf, 0.0), "epsilon": (0.0, math.inf)}[query]
        if not low <= high:
            return _judge({}, query, at, low, high)
        upper = first(_asked(one, query, at, least, high) for one in above)
        lower = first(_asked(one, query, at, low, most) for one in below)
        if upper.confirmed and lower.confirmed:
            why = "a curve above and one below lie within the interval"
            return Verdict("confirmed", why, lower.evidence + upper.evidence)
        for wrong in (
            *(_asked(one, query, at, low, most) for one in above),
            *(_asked(one, query, at, least, high) for one in below),
        ):
            if wrong.refuted:
                return wrong
        end = "lower" if upper.confirmed else "upper"
        return Verdict("not decided", f"the {end} end lies between the curves known to be above and below")

    return ask


def _question(bound, eps, delta, log: bool):
    if eps is not None and delta is not None:
        raise DomainError("give eps (for an interval of delta) or delta (for an interval of eps), not both")
    if eps is not None:
        numbers("eps", eps, "a finite number", -math.inf, math.inf)
        return "log_delta" if log else "delta", eps
    if delta is not None:
        numbers("delta", delta, "in (0, 1)", 0.0, 1.0)
        return "epsilon", delta
    if isinstance(bound, Bound) and bound.asked is not None:
        return bound.asked
    raise DomainError("say which question the interval answers: eps=... for one of delta, delta=... for one of eps")


def _ends(bound: Any) -> tuple[Any, Any]:
    """Both ends of the interval or intervals claimed: doubles, infinite ones as well."""
    if isinstance(bound, Bound):
        return bound.lower, bound.upper
    if not (isinstance(bound, tuple | list | np.ndarray) and len(bound) == 2):
        raise DomainError(f"bound must be a Bound or (lower, upper), got {bound!r}")
    for end in bound:
        for x in np.asarray(end, dtype=object).ravel():
            if math.isnan(real("bound", x, "in both places")):
                raise DomainError(f"bound must hold two numbers, got {bound!r}")
    return bound[0], bound[1]


def _judge(curves, query: str, at: float, low: float, high: float) -> Verdict:
    if not low <= high:
        return Verdict("refuted", f"the interval [{low!r}, {high!r}] is empty")
    return _judge_root(curves, at, low, high) if query == "epsilon" else _judge_delta(curves, query, at, low, high)


def _roughly(curves, query: str, at: float, low: float, high: float) -> Verdict | None:
    """Where the curve cannot be told from the interval's ends to all their digits: whether some digits refute it."""
    places = (high, low) if query == "epsilon" else (at,)
    for eps in places:
        if not abs(eps) < math.inf:
            continue
        found = {name: curve.roughly(rational(eps)) for name, curve in curves.items()}
        evidence = tuple(_evidence(name, eps, value) for (name, _), value in found.items())
        with precision(4096):
            worst = arb(0)
            for value in found.values():
                worst = worst.max(value)
            if query == "epsilon":
                if eps == high and worst > arb(at):
                    return Verdict("refuted", f"delta({high!r}) > {at!r}: eps lies above {high!r}", evidence)
                if eps == low > 0 and worst < arb(at):
                    return Verdict("refuted", f"delta({low!r}) < {at!r}: eps lies below {low!r}", evidence)
            elif worst < _end(low, query) or worst > _end(high, query):
                return Verdict("refuted", f"delta({at!r}) lies outside the interval [{low!r}, {high!r}]", evidence)
    return None


def _end(x: float, query: str) -> arb:
    """The delta that an end of an interval of `query` stands for."""
    if query == "delta":
        return arb(x)
    return arb(0) if x == -math.inf else arb(x).exp()


def _judge_delta(curves, query: str, at: float, low: float, high: float) -> Verdict:
    """Whether low <= max over directions of delta(at) <= high."""
    eps = rational(at)
    with precision(256):
        bottom, ceiling = _end(low, query), _end(high, query)
        width = floor_log(ceiling - bottom)
        top = floor_log(ceiling)
    with precision(4096):  # 1 - e^eps <= delta <= 1
        easy_below = _end(low, query) <= (-arb(eps).expm1()).nonnegative_part()
        easy_above = _end(high, query) >= 1
    if easy_below and not easy_above:
        above = {name: curve.delta_upper(eps) for name, curve in curves.items()}
        if all(value <= ceiling for value in above.values()):
            evidence = tuple(_evidence(name, at, between(0, value)) for (name, _), value in above.items())
            return Verdict(
                "confirmed", "a bound by the transform lies below the upper end; the lower end says nothing", evidence
            )
    if easy_below and easy_above:
        return Verdict("confirmed", "any curve lies within the interval")
    goal = max(width, top - 45, -750.0) - 2
    rough = not ceiling > 0  # any digit refutes an upper end of 0
    for _ in range(ROUNDS):
        found: dict = {}
        for name, curve in curves.items():
            if found and (above := curve.delta_upper(eps)) <= next(iter(found.values())).lower():
                found[name] = between(0, above)
            else:
                found[name] = curve.at(eps, goal, rough)
        with precision(4096):
            bottom, ceiling = _end(low, query), _end(high, query)
            worst = arb(0)
            for value in found.values():
                worst = worst.max(value)
            evidence = tuple(_evidence(name, at, value) for (name, _), value in found.items())
            if worst < bottom or worst > ceiling:
                side = "below" if worst < bottom else "above"
                return Verdict("refuted", f"delta({at!r}) lies {side} the interval [{low!r}, {high!r}]", evidence)
            if (easy_below or worst >= bottom) and (easy_above or worst <= ceiling):
                return Verdict("confirmed", "the enclosure of the curve lies within the interval", evidence)
        if all(floor_log(value.rad()) > goal + 5 for value in found.values()):
            break
        goal -= 9
    return Verdict("not decided", "the curve is nearer to an end than the precision allowed can tell", evidence)


def _judge_root(curves, at: float, low: float, high: float) -> Verdict:
    """Whether low <= max(0, inf{e: delta(e) <= at}) <= high: delta is continuous and does not rise, and it falls
    strictly until it reaches Pr[L = inf]."""
    if high < 0:
        return Verdict("refuted", "eps(delta) is never negative")
    scale = min(0.05, max((high - low) / max(high, 0.1), 0.0) / 30) if high < math.inf else 0.05
    start = math.log(at) + math.log(max(scale, 1e-17))
    evidence: list = []
    if high < math.inf:
        verdict = _side(curves, at, high, start, scale > 1e-6, evidence)
        if verdict > 0:
            return Verdict("refuted", f"delta({high!r}) > {at!r}: eps lies above {high!r}", tuple(evidence))
        if verdict == 0:
            return Verdict("not decided", f"delta({high!r}) cannot be told from {at!r}", tuple(evidence))
    if low > 0:
        for curve in curves.values():
            with precision(curve.base):
                top = curve.top()
                if top is not None and low <= top and curve.floor() >= arb(at):
                    return Verdict(
                        "confirmed", "delta falls to Pr[L = inf] at the largest finite loss only", tuple(evidence)
                    )
        verdict = _side(curves, at, low, start, scale > 1e-6, evidence)
        if verdict < 0:
            return Verdict("refuted", f"delta({low!r}) < {at!r}: eps lies below {low!r}", tuple(evidence))
        if verdict != 1:
            return Verdict("not decided", f"delta({low!r}) cannot be told from {at!r}", tuple(evidence))
    return Verdict("confirmed", "delta at the two ends lies on the two sides of the target", tuple(evidence))


def _side(curves, at: float, eps: float, goal: float, wide: bool, evidence: list) -> int:
    """1 where the largest delta(eps) > at, -1 where it is < at, -2 where it is = at, 0 where neither is shown."""
    exact, target = math.inf if eps == math.inf else rational(eps), arb(at)
    for times in range(ROUNDS):
        found: list[Evidence] = []
        worst, rough = arb(0), wide and times == 0
        for (name, _), curve in curves.items():
            above = curve.delta_upper(exact) if found or rough else target
            value = between(0, above) if above < target else curve.at(exact, goal, rough)
            found.append(_evidence(name, eps, value))
            if value > target:
                evidence += found
                return 1
            with precision(1024):
                worst = worst.max(value)
        if worst < target or worst == target:
            evidence += found
            return -1 if worst < target else -2
        if rough:
            continue
        if floor_log(worst.rad()) > goal + 5:
            break
        goal -= 9
    evidence += found
    return 0


def _evidence(direction: str, eps: float, value: arb) -> Evidence:
    with precision(64):
        low, high = float(value.lower()), float(value.upper())
    low = max(0.0, math.nextafter(low, -math.inf))
    return Evidence(direction, eps, low, math.nextafter(high, math.inf), value.str(25))
