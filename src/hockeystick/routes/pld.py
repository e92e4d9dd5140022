"""Route `pld`: connect-the-dots with a certificate, for any run of losses.

The lattice laws of dots.py are convolved by convolve.py, which adds what the FFT, the circle and the tilt may have
done. The terms of its answers follow TERMS: "mesh" is the distance of the two lattice laws, "truncation" what windows
and circles leave out or wrap, "rounding" the FFT and the weights.

The lattice step is predicted from the tolerance and k, then the width is measured; where it is too wide the step
shrinks, at most ROUNDS times. The narrowest interval found is the answer, whatever the tolerance. Where only short
circles are allowed, a step that needs a longer one is tried again halfway to the last that fitted."""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

import numpy as np

from ..answers import Point, Root
from ..arguments import log_lower, log_upper
from ..bound import AccuracyError
from ..grid.cells import MAX_CELLS, ULP
from ..grid.convolve import Tail, convolve, fit_circle, plan_circle, rounding_lower
from ..grid.dots import CELLS, Laws, Plan, aligns, discretise, mesh, on_atoms, plan
from ..grid.evolve import doublings, stages
from ..outward import DOWN, UP
from ..threads import in_order
from ..what.loss import capped
from .walls import rest, seen, wall_upper


class Terms(NamedTuple):
    """The error terms of an answer; see the head of the file."""

    mesh: float
    truncation: float
    rounding: float


TERMS = Terms._fields
RTOL = 1e-3
"""Relative width aimed at when none is asked for."""

ROUNDS = 5
ROOM = 40.0
"""Losses so far above eps count as infinite: e^-40 of their probability is what that takes from the lower end."""

LOG_MIN = math.log(1e-285)
"""Below it masses of a double no longer carry a relative error."""

PLANS = 4
"""Most plans of one answer."""

REFUSALS = 4
"""Lattices too fine for the longest circle after which a root is given up, or left as it is."""

POINTS = 1 << 21
"""Longest circle when no tolerance is asked for: about a second. With one, the limit is MAX_CELLS."""

CIRCLE, QUICK = 1 << 15, 15_000
"""Longest circle, and lattice points of all laws together, where `auto` only wants what a few hundredths of a second
give."""

REACH = 6.0
"""Nats of delta that one convolution serves: its tilt is that of the largest eps, where the circle is longest for the
least."""

SHARE = 0.02
"""Part of the tolerance given to windows, and the same to circles: the lattice step gets the rest."""


class _Curve(NamedTuple):
    """Bounds of delta between two eps, from both convolutions."""

    laws: Laws
    above: Tail
    below: Tail

    def upper(self, eps: float) -> float:
        at = eps - self.move(self.laws.upper, self.above, eps)
        if at < self.above.y_lo:
            return 1.0
        at = min(at, self.above.y_hi)  # the curve falls
        value, truncated, _, rounding = self.above.at(at)
        extra = self.laws.stray_upper(at) + self.laws.inf_upper  # [theory: grid.run, grid.tilt]
        delta = (value + truncated + rounding + extra) * UP
        if delta < 1e-300:  # two products a point may have underflowed
            delta += 2 * (self.above.delta.size + 4) * 5e-324
        return min(1.0, delta)

    def lower(self, eps: float) -> float:
        at = eps + self.move(self.laws.lower, self.below, eps)
        finite = 0.0
        if at <= self.below.y_hi:
            value, _, wrapped, rounding = self.below.at(at)
            # [theory: grid.run, grid.tilt]
            finite = max(0.0, value - wrapped - rounding - self.laws.stray_upper(at)) * (1 - self.laws.short)
        short = math.exp(min(self.laws.log_cut + eps, 0.0)) * UP
        return max(-math.expm1(min(eps, 0.0)), finite + self.laws.inf_lower - short) * DOWN

    def estimate(self, eps: float) -> float:
        """The middle: the two laws are about as far from the truth [theory: grid.mesh]."""
        low, high = self.below.value(eps) + self.laws.inf_lower, self.above.value(eps) + self.laws.inf_upper
        return 0.5 * (low + high)

    def terms(self, eps: float) -> Terms:
        high, cut, _, above = self.above.at(eps)
        low, _, wrapped, below = self.below.at(eps)
        apart = abs(high + self.laws.inf_upper - low - self.laws.inf_lower)  # a loss above its window counts in either
        return Terms(apart, cut + wrapped, above + below + 2 * self.laws.stray_upper(eps))

    @staticmethod
    def move(grid, tail: Tail, eps: float) -> float:
        """How far rounding may have moved the sum of losses, or a lattice point."""
        return grid.radius + 32 * ULP * (abs(eps) + abs(tail.y_lo) + tail.width + abs(grid.shift))

    @property
    def ends(self) -> tuple[float, float]:
        above, below = self.above, self.below
        return max(above.y_lo + above.dx, below.y_lo + below.dx), min(above.y_hi, below.y_hi)


def _curve(
    made: Plan, dx: float, t: float, eps: tuple[float, float], log_delta: float, rtol: float, limits: _Limits
) -> _Curve:
    """Both convolutions over a range of eps whose smallest delta is about e^log_delta."""
    share = SHARE * rtol / made.k
    n_threads, points, cells, evolving, asked = limits
    count = _doublings(made, dx, t) if evolving else 0
    dx = on_atoms(made.parts, dx / math.sqrt(1 + 1.4 * stages(count)))
    log_tol = log_delta + math.log(SHARE * rtol)
    if not count:  # whether the circle is short enough, and how it rounds, is known before the laws are
        circle = fit_circle(dx, 0.0, made.k, made.table, eps[0] - 4 * dx, log_tol, points)
        rounding = 2 * rounding_lower(circle)
        if rounding > asked and not made.beyond and not any(loss.mass_inf for loss, _ in made.parts):
            raise AccuracyError(f"a convolution of {circle.n} points rounds by {rounding:.2g} of delta")
    laws = discretise(made, dx, t, share, max(1e-300, share * math.exp(log_delta)), count, n_threads, cells)
    return convolved(made, laws, eps, log_tol, n_threads, points)


def _doublings(made: Plan, dx: float, t: float) -> int:
    """How often the mesh may double, by the widths of the tilted laws of the run and of its steps."""
    deviation = math.sqrt(max(0.0, float(np.interp(t, made.table.t, made.table.k2))))  # k2 may be rounded below 0
    points = 16 * deviation / dx
    if points < 1 << 19:
        return 0
    wide = 0.0
    for loss, _ in made.parts:
        values, log_den = loss.nodes(1e-30)
        law = (1 + t) * values + log_den
        seen = values[law > law.max() - 40.0]
        wide = max(wide, float(seen.max() - seen.min()))
    return doublings(points, wide / dx, min(k for _, k in made.parts))


def convolved(
    made: Plan,
    laws: Laws,
    eps: tuple[float, float],
    log_tol: float,
    n_threads: int,
    points: int = MAX_CELLS,
    how: str = "power",
) -> _Curve:
    """The convolutions over a range of eps, with circles long enough for an error of e^log_tol."""
    margin = 4 * laws.upper.dx + 2 * laws.upper.radius
    circle = plan_circle(laws.upper, made.table, eps[0] - margin, log_tol, points)
    grids = (laws.upper,) if laws.lower is laws.upper else (laws.upper, laws.lower)
    share = (n_threads + len(grids) - 1) // len(grids)
    above, *below = in_order(lambda grid: convolve(grid, circle, eps[1] + margin, how, share), grids, n_threads)
    return _Curve(laws, above, *(below or (above,)))


class _Limits(NamedTuple):
    """Threads, longest circle, lattice points of the laws together, whether the mesh may evolve, and the relative width
    of delta that was asked for, infinite if none was."""

    n_threads: int
    points: int
    cells: int
    evolving: bool
    asked: float = math.inf

    @classmethod
    def of(cls, rtol: float | None, n_threads: int, quick: bool) -> _Limits:
        points = MAX_CELLS if rtol else CIRCLE if quick else POINTS
        return cls(n_threads, points, QUICK if quick else min(2 * points, CELLS), not quick, rtol or math.inf)

    def after(self, curve: _Curve, quick: bool) -> _Limits:
        """What is left: of a quick answer the laws are paid for, as they take most of its time."""
        return self._replace(cells=self.cells - curve.laws.upper.steps.p.size) if quick else self


def point(parts, eps: float, rtol: float | None, n_threads: int = 1, quick: bool = False):
    """delta(eps) of a run of losses, None where it cannot be certified; AccuracyError where no lattice is short
    enough."""
    goal, best, narrowest, rounded = rtol or RTOL, None, math.inf, math.inf
    made, log_delta, t = prepare_at(parts, eps, goal, n_threads)
    far = out_of_reach(made, eps)
    if far:  # only an upper end can be had, which a quick answer gives
        rtol, quick = None, True
    limits = _Limits.of(rtol, n_threads, quick)
    dx = first = last = mesh(made, t, goal)
    aligned = aligns(parts)
    for _ in range(7 if quick else ROUNDS):
        try:
            curve = _curve(made, dx, t, (eps, eps), log_delta, goal, limits)
        except AccuracyError:
            if made.beyond and best is None:  # of what is left below the cut, far below eps: tilts beyond doubles
                made, log_delta, t = prepare(parts, lambda made: at_eps(made, eps), goal, n_threads)
                dx = first = last = mesh(made, t, goal)
                continue
            if best is None and not quick:
                raise
            if not quick:
                break
            dx = 4 * dx if best is None else math.sqrt(dx * last)
            continue
        finer, last, limits = dx < last, dx, limits.after(curve, quick)
        low, high = curve.lower(eps), curve.upper(eps)
        mid, terms = min(max(curve.estimate(eps), low), high), curve.terms(eps)
        if best is None or high - low < narrowest:
            best, narrowest = Point(*logs(low, mid, high), relative(terms, mid), "pld"), high - low
        elif finer and aligned:
            break  # the masses' own rounding, which grows with their number
        width = (high - low) / mid if mid > 0 else math.inf
        if far or width <= goal or (width == math.inf and dx < first):
            break
        if low <= 0 and dx < first and terms.mesh > 0.9 * (high - low):
            break  # of a curve that lies below what its tails are known to
        # Rounding (that of the stages, or a floor, which finer meshes raise) makes the width, or more than was asked
        # for; or it will, if it grows once more as it did, and that takes long to see.
        ahead, rounded = terms.rounding * terms.rounding / rounded if finer and rounded else 0.0, terms.rounding
        in_vain = ahead > 0.9 * narrowest and curve.laws.upper.steps.p.size > QUICK
        if in_vain or terms.rounding > min(0.4 * (high - low), goal * mid if rtol else math.inf):
            if not limits.evolving:
                break
            limits = limits._replace(evolving=False)
            continue
        log_delta = min(log_delta, max(LOG_MIN, log(mid)))
        dx *= _shrink(goal, width, aligned)
    return best


def points(parts, eps: np.ndarray, rtol: float | None, n_threads: int = 1) -> np.ndarray:
    """Rows (log_lower, log_estimate, log_upper, *terms) at increasing eps, as `point` gives them; NaN where no
    convolution is good enough. One serves as many eps as its tilt keeps accurate: from the first one left, over REACH
    nats of delta."""
    goal, limits = rtol or RTOL, _Limits.of(rtol, n_threads, False)
    made, *_ = prepare_at(parts, float(eps[-1]), goal, n_threads)
    rows, todo = np.full((eps.size, 3 + len(TERMS)), np.nan), list(range(eps.size))
    tighter = 0.7
    while todo:
        first = float(eps[todo[0]])
        start = at_eps(made, first).log_delta
        group = [i for i in todo if at_eps(made, float(eps[i])).log_delta > start - REACH]
        last = float(eps[group[-1]])
        log_delta, t, _ = at_eps(made, last)
        try:
            curve = _curve(made, tighter * mesh(made, t, goal), t, (first, last), log_delta, goal, limits)
        except AccuracyError:
            todo = todo[1:]
            continue
        found = []
        for i in group:
            low, high = curve.lower(float(eps[i])), curve.upper(float(eps[i]))
            mid = min(max(curve.estimate(float(eps[i])), low), high)
            if low > 0 and high - low <= goal * mid:
                rows[i] = *logs(low, mid, high), *relative(curve.terms(float(eps[i])), mid)
                found.append(i)
        if todo[0] not in found and tighter > 0.1:
            tighter *= 0.5
        else:
            found.append(todo[0])
        todo = [i for i in todo if i not in set(found)]
    return rows


def root(parts, delta: float, rtol: float | None, n_threads: int = 1, quick: bool = False):
    """eps(delta) of a run of losses, clipped at 0, or None; infinite where delta is below the mass at infinity."""
    least, most = rest(parts, delta)
    if most < 0:
        return Root(math.inf, math.inf, math.inf, (0.0, 0.0, 0.0), "pld")
    visible, most = seen(least, most, delta)
    log_delta = math.log(most)
    goal, best = rtol or RTOL, None
    made, guess, t = prepare_root(parts, most, goal, n_threads)
    end = wall_upper(parts, least)
    near = end - 0.25 * goal * abs(end)  # as good as the end of the range: no need to see smaller deltas
    if guess > near or (end < math.inf and log_delta < made.log_delta[-1]):
        guess = min(near, float(made.eps[-1]))
        log_delta, t, _ = at_eps(made, guess)
    if log_delta < LOG_MIN:
        return None
    asked = goal * max(guess, 1e-9) * t if delta <= 0.5 else math.inf  # next to 1 the rounding is that of 1 - delta
    limits = _Limits.of(rtol, n_threads, quick)._replace(asked=asked if rtol else math.inf)
    room = min(1.5 / t, 1.0 + abs(guess))
    tolerance = _of_delta(goal, guess, t)
    dx = last = mesh(made, t, tolerance)
    aligned, refused = aligns(parts), 0
    for _ in range(7 if quick else ROUNDS + 4):
        lo, hi = max(0.0, guess - room), max(0.0, guess) + room
        try:
            curve = _curve(made, dx, t, (lo, hi), log_delta - t * room, tolerance, limits)
        except AccuracyError:
            refused += 1
            if (best and (rtol or not quick)) or refused == REFUSALS:
                break
            if rtol:
                raise
            dx = math.sqrt(dx * last) if best else 8 * dx
            continue
        limits = limits.after(curve, quick)
        found = invert(curve, delta, lo, min(hi, curve.ends[1]), end, not visible and end == math.inf)
        if isinstance(found, str):
            guess, room = (lo if found == "below" else hi), 2 * room
            if best:  # the root lies in what is certified
                guess, room = 0.5 * (best.lower + best.upper), 0.5 * (best.upper - best.lower) + 8 * dx
            continue
        low, mid, high = found
        terms = curve.terms(mid)
        if best is None or high - low < best.upper - best.lower:
            best = Root(low, mid, high, relative(terms, delta), "pld")
        elif dx < last and aligned:
            break  # as in `point`
        last = dx
        if high - low <= goal * max(mid, 1e-300) or high == math.inf:
            break
        if terms.rounding > t * delta * min(0.4 * (high - low), goal * mid if rtol else math.inf):  # as in `point`
            if not limits.evolving:
                break
            limits = limits._replace(evolving=False)
            continue
        dx *= _shrink(goal * mid, high - low, aligned)
        tolerance = min(tolerance, _of_delta(goal, mid, t))
        guess, room = mid, min(room, 2 * (high - low) + 8 * dx)
    return best


def prepare(parts, locate, goal: float, n_threads: int = 1):
    """(plan, what `locate` finds, t): twice, as nodes must reach as far as the answer needs and no further, and again
    where the answer lies beyond what the nodes reached; bounded losses have nodes all over."""
    reach, batch = 1e-20, None
    open_ended = not all(-math.inf < loss.lo and loss.hi < math.inf for loss, _ in parts)
    for again in range(PLANS):
        made = plan(parts, reach, n_threads, batch)
        batch = made.batch
        value, t, log_delta = locate(made)
        needed = max(1e-300, 1e-3 * goal * math.exp(max(-680.0, log_delta)) / made.k)
        if not (needed < reach * (1e-6 if again else 1) or (open_ended and not again)):
            break
        reach = needed
    return made, value, t


def prepare_at(parts, eps: float, goal: float, n_threads: int = 1):
    """The same for delta at eps and below. Where losses reach far beyond, they are cut at eps + ROOM."""
    made, log_delta, t = prepare(parts, lambda made: at_eps(made, eps), goal, n_threads)
    found = None
    if made.far >= 2 * (eps + ROOM) > 0:
        found = _cut(parts, eps + ROOM, lambda made, _: at_eps(made, eps), goal, n_threads)
    return found or (made, log_delta, t)


def prepare_root(parts, delta: float, goal: float, n_threads: int = 1):
    """The same for eps(delta), cut at the first of a rising sequence that is ROOM above the root."""
    made, guess, t = prepare(parts, lambda made: at_delta(made, math.log(delta)), goal, n_threads)
    cap = 2 * ROOM
    while 2 * cap < made.far:
        found = _cut(parts, cap, lambda made, rest: at_delta(made, math.log(rest)), goal, n_threads, delta)
        if found:
            _, eps, _ = found
            if eps + ROOM <= cap:
                return found
        cap *= 2
    return made, guess, t


def _cut(parts, cap: float, locate, goal: float, n_threads: int, delta: float = math.inf):
    """What `prepare` finds for losses that are cut at `cap`; None where what is above the cap is next to `delta` or
    more, or all of a step."""
    cut = tuple((capped(loss, cap), k) for loss, k in parts)
    above = ((min(loss.tails(np.array([cap])).y_above.item(), 1 - ULP), k) for loss, k in cut if loss.cut == cap)
    beyond = -math.expm1(math.fsum(k * math.log1p(-p) for p, k in above))
    rest = delta - beyond
    if rest < 1e-3 * min(delta, 1.0):
        return None
    try:
        made, value, t = prepare(cut, lambda made: locate(made._replace(beyond=beyond), rest), goal, n_threads)
    except AccuracyError:  # no node of a step lies below the cap
        return None
    return made._replace(beyond=beyond), value, t


def relative(terms: tuple[float, ...], delta: float) -> tuple[float, ...]:
    return tuple(x / delta if x else 0.0 for x in terms) if delta > 0 else (math.inf,) * len(terms)


def _of_delta(goal: float, eps: float, t: float) -> float:
    """The relative tolerance of delta that makes one of eps."""
    return min(0.3, max(1e-9, goal * max(eps, 1e-9) * t))


class Place(NamedTuple):
    """A point of the curve: the eps or log delta that was not given, the saddle point, log delta. Estimates."""

    found: float
    t: float
    log_delta: float


def at_eps(made: Plan, eps: float) -> Place:
    """The place at eps, losses above the cap included."""
    log_delta = max(float(np.interp(eps, made.eps, made.log_delta)), log(made.beyond))
    if made.beyond:  # no steeper than where the other losses make as much of delta
        eps = min(eps, float(np.interp(-log_delta, -made.log_delta, made.eps)))
    t = math.exp(float(np.interp(eps, made.eps, np.log(made.t))))
    log_delta = min(math.log(0.5), max(LOG_MIN, log_delta))
    return Place(log_delta, t, log_delta)


def out_of_reach(made: Plan, eps: float) -> bool:
    """Whether delta(eps) is far too small for masses of doubles."""
    return max(float(np.interp(eps, made.eps, made.log_delta)), log(made.beyond)) < 1.1 * LOG_MIN


def at_delta(made: Plan, log_delta: float) -> Place:
    """The place where delta is e^log_delta."""
    falls = -made.log_delta
    eps = float(np.interp(-log_delta, falls, made.eps))
    t = math.exp(float(np.interp(-log_delta, falls, np.log(made.t))))
    return Place(eps, t, log_delta)


def invert(curve: _Curve, delta: float, lo: float, hi: float, wall: float, endless: bool = False):
    """(lower, estimate, upper) of the root in [lo, hi], or on which side of it an end lies. lo = 0 is the floor, and no
    loss exceeds `wall`, where the curve falls to its mass at infinity, which is below delta. `endless`: delta may be
    below that."""
    if lo > 0 and not curve.lower(lo) >= delta:
        return "below"
    if hi < wall and not curve.upper(hi) <= delta and not endless:
        return "above"
    lower = min(_split(curve.lower, operator.ge, delta, lo, hi)[0], wall)
    upper = wall
    if curve.upper(hi) <= delta:
        upper = max(0.0, min(_split(curve.upper, operator.gt, delta, lo, hi)[1], wall))
    return lower, min(max(_split(curve.estimate, operator.gt, delta, lo, hi)[1], lower), upper), upper


def _split(value, above, delta: float, lo: float, hi: float) -> tuple[float, float]:
    """Neighbours between which a falling curve stops being `above` delta: false position on its logarithm (Illinois).

    lo twice where the curve is not above at lo; near hi where it still is above there.
    """
    left, right, level = value(lo), value(hi), log(delta)
    if not above(left, delta):
        return lo, lo
    left, right, same = log(left) - level, log(right) - level, 0
    for i in range(100):
        least = 1e-13 * max(abs(lo), abs(hi))
        if hi - lo <= least:
            break
        smooth = 0 <= left < math.inf and -math.inf < right < 0 and (i < 20 or i % 2)
        part = left / (left - right) if smooth else 0.5
        mid = min(max(lo + part * (hi - lo), lo + 0.25 * least), hi - 0.25 * least)
        if not lo < mid < hi:
            break
        at = value(mid)
        if above(at, delta):
            lo, left, right = mid, log(at) - level, 0.5 * right if same > 0 else right
            same = 1
        else:
            hi, right, left = mid, log(at) - level, 0.5 * left if same < 0 else left
            same = -1
    return lo, hi


def log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def logs(low: float, mid: float, high: float) -> tuple[float, float, float]:
    """Logs of an interval's ends, rounded outward."""
    return log_lower(low) if low > 0 else -math.inf, log(mid), log_upper(high) if high > 0 else -math.inf


def _shrink(goal: float, width: float, aligned: bool) -> float:
    """Width goes like dx^2; where atoms lie between points, by a power between 1 and 2 (1.3 in
    benchmarks/bench_pld.py)."""
    power = 2.0 if aligned else 1.25
    return min(0.7, max(0.1, (0.8 * goal / width) ** (1 / power))) if width < math.inf else 0.1
