"""What convexity alone says about a privacy curve between certified points, and where to place the points.

With x = e^eps, delta(x) = sup_S num(S) - x den(S) is convex and does not increase [theory: pair.curve]; p(x) = den[L >
eps] is minus its slope and delta + x p = num[L > eps]. A convex curve lies below its chords and above their
prolongations, so four certified points x0 < x1 < x2 < x3 bound min_x delta(x) + a x from both sides
[theory: risk.four-points]: above by any of them, below, between x1 and x2, by chords that end at x1 and begin at x2,
prolonged. Both ends meet to second order in the distance of the points, which is driven down until rounding and the
width of the deltas stop it. Curves of atoms are straight between corners: where such a one is expected a point is asked
on it, at which both ends meet at once. No density, atom or derivative is needed.

A chord between two deltas of widths w and w' tells its slope within (w + w')/(x' - x), and no better
[theory: risk.slopes]: with less of the slope than that a chord says nothing, and a corner is one only if the slopes'
intervals, not their middles, force it."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import query
from .outward import DOWN, UP, U

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPS_MAX = 690.0
"""Largest |eps| whose x = e^eps is used: a double still holds it, with room for a product. All points of a curve lie
within it: what any certified points bound they bound wherever the best ones are [theory: risk.four-points]."""

LARGE, FAR = 12.0, 5.0
"""The mu of a run from which digits of 1 - delta are asked, at eps so many deviations before the middle of a Gaussian
loss: there those of delta leave nothing of it."""

ROUNDS = 40
EVEN, THREE, FIVE = (-1.5, -0.5, 0.5, 1.5), (-1.0, 0.0, 1.0), (-4.0, -1.0, 0.0, 1.0, 4.0)
"""Where the points lie about their centre, in units of their distance: the first ones, those that close in, and the
last ones: the slopes of the nearest hardly tell on which side of the level they are, and the cells beyond are long."""

APART = 0.1
"""Distance of the first points, in deviations of the loss about them."""

NEAR = 1e-13
"""Distance, in units of 1 + |eps|, from which two points tell a slope, many times what rounds e^eps."""

ASIDE = 0.2
"""Part of a cell's length, next to its ends, in which a corner is not asked for that is told from one side alone."""

SNAP = 0.1
"""The same, by which a corner may lie from where it is told, if it is a sum of atoms."""

TIP_KNOWN = 1e-3
"""Part within which the slope is known that a curve ends with."""

STRAIGHT = 0.1
"""Part of what the slope changes by at a corner, by which it may along the line that ends there."""

FINE = 1e-12
"""Part of a rate within which deltas are narrow enough, whatever part of them that is."""

DEGREE = 5
"""Points that a polynomial goes through which stands for log delta."""

TOLD = 0.1
"""Part of a chord's slope by which it may be uncertain."""

SEEN = 2.0
"""Widths of the deltas that points are to bend by: nearer ones tell no more."""

LEAST, GROWN = 1e-250, 2.0**200
"""Rates below which slopes may be no normal doubles, and what all is multiplied by there."""


class Node(NamedTuple):
    """One certified point of a curve, as of Nodes."""

    eps: float
    x_dn: float
    x_up: float
    low: float
    mid: float
    high: float


class Nodes(NamedTuple):
    """Four certified points of a curve or more, eps rising: delta(x_dn) >= low, delta(x_up) <= high. x_dn and x_up
    enclose e^eps."""

    eps: tuple[float, ...]
    x_dn: tuple[float, ...]
    x_up: tuple[float, ...]
    low: tuple[float, ...]
    mid: tuple[float, ...]
    high: tuple[float, ...]

    def times(self, by: float) -> Nodes:
        """The same points of a curve that is so many times as high; `by` is a power of 2."""
        return self._replace(**{end: tuple(by * d for d in getattr(self, end)) for end in ("low", "mid", "high")})


class Curve:
    """The privacy curve of a run in one direction, and all points of it that have been asked."""

    def __init__(self, run, direction: str, options: dict, routes: set[str]):
        sided: dict[str, Any] = {**options, "direction": direction}
        self.ask = query.Asker(run, **sided)
        self.asked: list[Node] = []  # eps rising
        # Beyond the largest loss nothing changes, and no route is needed; curves of atoms have a corner there.
        top, self.tip, low = self.ask.top_lower()
        self.top = max(top, -EPS_MAX)
        self.mu, self.next_to_one = 1.0, False
        self.tip_slope = math.inf  # of the curve where it ends, where that is known
        self.routes: set[str] = set()
        if self.top < EPS_MAX - 1:
            self.add([self.top, EPS_MAX])
            if low > 0 and self.tip > -EPS_MAX:
                self.tip_slope = (low - self.asked[0].mid) / (math.exp(self.top) - math.exp(self.tip))
                self.keep(self.tip, low, 1.0, 1.0)
        self.routes = routes
        self.add([0.0])
        self.searched = False
        # The Gaussian curve of the same advantage: where the search starts and how far apart its points are.
        at_zero = min(self.asked, key=lambda p: abs(p.eps))
        adv = min(max(at_zero.mid, 1e-12), 1 - 1e-15)
        self.mu = 2 * NormalDist().inv_cdf(0.5 * (1 + adv))
        if self.mu > LARGE and self.ask.rest_first and (known := self.rest(np.zeros(1)))[2, 0] > 0:
            self.asked.remove(at_zero)
            self.keep(0.0, *known[:3, 0].tolist())
            self.mu, self.next_to_one = -2 * NormalDist().inv_cdf(max(0.5 * known[3, 0], 1e-300)), True

    def add(self, eps: list[float], narrow: float = 0.0) -> bool:
        """Ask what has not been asked; whether there was any. narrow: a width of delta that will do."""
        new: list[float] = []
        for e in sorted(e for e in eps if e <= max(self.top, 0.0) or e == EPS_MAX):
            i, near = bisect.bisect_left(self.asked, (e,)), NEAR * (1 + abs(e))
            around = [p.eps for p in self.asked[max(i - 1, 0) : i + 1]] + new[-1:]
            if all(abs(e - other) > near for other in around):
                new.append(e)
        if not new:
            return False
        at = np.array(new)
        deltas, tops = np.zeros((3, at.size)), 0.5 * self.mu - at / self.mu > FAR
        if self.next_to_one and tops.any():
            deltas[:, tops] = self.rest(at[tops])[:3]
        if (todo := ~(deltas[2] > 0)).any():
            bound = self.ask(at[todo], narrow)
            self.routes.update(bound.route.split("+"))
            deltas[:, todo] = bound.lower, bound.estimate, bound.upper
        for e, known in zip(new, deltas.T.tolist(), strict=True):
            self.keep(e, *known)
        return True

    def rest(self, eps: NDArray[np.float64]) -> NDArray[np.float64]:
        """delta by the digits of 1 - delta, rows of lower ends, estimates and upper ends, then 1 - delta at most; NaN
        where these are not known."""
        least, most = self.ask.rest(eps)
        told = least <= most
        low, high = np.maximum(np.nextafter(1 - most, -1.0), 0.0), np.minimum(np.nextafter(1 - least, 2.0), 1.0)
        if told.any():
            self.routes.add("contour")
        return np.where(told, np.array([low, 0.5 * (low + high), high, most]), np.nan)

    def keep(self, eps: float, low: float, mid: float, high: float) -> None:
        x = math.exp(eps)
        bisect.insort(self.asked, Node(eps, x * DOWN, x * UP, low, mid, high))

    def slope(self, level: float, dual: bool) -> float:
        """p where a line touches the curve that is searched for: the level itself, or of the line through it at 0."""
        return max((level - p.mid) / p.x_dn for p in self.asked) if dual else level

    def around(self, level: float, dual: bool, told: float = math.inf) -> tuple[list[Node], int]:
        """Points about the best one, up to four on either side, and its place. Those are left out whose chord to the
        next one has a slope that the widths of the deltas leave less certain than this part of it, unless it is
        certainly beyond the level."""
        a = self.slope(level, dual)
        best = min(range(len(self.asked)), key=lambda i: (self.asked[i].mid + a * self.asked[i].x_dn, -i))
        sides: list[list[Node]] = []
        for step in (-1, 1):
            side, i = [self.asked[best]], best + step
            while 0 <= i < len(self.asked) and len(side) < 5:
                p, q = self.asked[i], side[-1]
                says = p.high - p.low + q.high - q.low <= told * abs(p.mid - q.mid)  # [theory: risk.slopes]
                says = says or (step > 0 and q.high - p.low < a * (p.x_dn - q.x_up))
                if told == math.inf or (says and p.eps != self.tip):
                    side.append(p)
                i += step
            sides.append(side)
        return sides[0][:0:-1] + sides[1], len(sides[0]) - 1

    def start(self, level: float, dual: bool, far: float) -> list[float]:
        """Where a search begins."""
        about = self.ask.loss_about(level, dual)
        if about and about[0] > far + about[1]:
            return [min(e, EPS_MAX) for e in (far, far + about[1])]
        if about is None:
            h, z = min(0.3 * self.mu, 0.5), NormalDist().inv_cdf(level)
            about = self.mu * (self.mu / 2 if dual else -self.mu / 2) - self.mu * z, h / APART
        centre, h = about[0], min(APART * about[1], EPS_MAX / 2)  # so that all points lie within EPS_MAX
        centre = max(min(centre, EPS_MAX - 2 * h, self.top - 2 * min(h, 0.1 * abs(self.top))), 2 * h - EPS_MAX)
        last = self.top if self.top > -EPS_MAX else 0.0
        return [e for step in EVEN if (e := centre + h * step) < last]

    def rounds(self, level: float, dual: bool, ends: list[float] | None = None, far: float = math.inf):
        """Ever closer nodes around the eps where p = level, or where num[L > eps] = level with `dual`. ends: what is
        known of this eps, where that is wanted and not the height of the curve: these are asked last, as long as they
        come much nearer to each other. far: from where on nothing more is asked about it."""
        search = _Search(self, level, dual, min(0.3 * self.mu, 0.5))
        room = math.inf
        for _ in range(ROUNDS):
            windows = [self.around(level, dual, told)[0] for told in (math.inf, TOLD)]
            for nodes in windows[:1] if windows[0] == windows[1] else windows:
                if len(nodes) > 3:
                    yield Nodes(*zip(*nodes, strict=True))
            if not self.searched:
                self.searched = True
                if self.add(self.start(level, dual, far), FINE * level):
                    continue
            eps = [min(max(e, -EPS_MAX), EPS_MAX) for e in search.next()]
            if eps and (self.add(eps, search.narrow) or self.add(search.halves(), search.narrow)):
                continue
            low, high = ends or (0.0, math.inf)
            if not (high - low < 0.5 * room and self.add([low, high], search.narrow)):
                return
            room = high - low


class _Search:
    """Where to ask next for the point at which a line of slope -p touches the curve.

    The best point known has cells to either side, whose chords lie on both sides of the level; what touches lies in one
    of them. Where these chords' slopes change much faster than those beyond, there is a corner: it is where the lines
    of both sides meet. Else a polynomial through the logarithms of the nearest deltas says where its tail is the level,
    and how far off that may be. Slopes are used within what the widths of their deltas leave of them."""

    def __init__(self, curve: Curve, level: float, dual: bool, h: float):
        self.curve, self.level, self.dual, self.h = curve, level, dual, h
        self.narrow = 0.0
        self.reach, self.gap, self.idle = max(8 * h, curve.mu), math.inf, 0
        self.corner: float | None = None  # where one is expected
        self.known = False  # whether it is a place that is known of the run

    def next(self) -> list[float]:
        points, i = self.curve.around(self.level, self.dual, TOLD)
        if i == 0 or i == len(points) - 1:
            flat = len(points) == 1  # as far as can be told: either nearly all losses lie beyond, or hardly any
            return self.walk(points, 1 if i or (flat and points[0].mid > 0.5) else -1)
        a = self.curve.slope(self.level, self.dual)
        at = points[i]
        whole = a * at.x_dn + (0.0 if self.dual else at.mid)
        self.narrow = FINE * whole
        slopes = _slopes(points)
        # What the lines of the cells beyond leave below the best point, in the cell before it and in that after it.
        sides = [_corner(points, slopes, c, self.curve.top) for c in (i - 1, i)]
        gaps = [max(at.mid + a * at.x_dn - (least + a * x), 0.0) for x, least in sides]
        gap = max(gaps)
        self.idle = self.idle + 1 if gap > 0.5 * self.gap else 0
        asked, known, self.gap, self.corner, self.known = self.corner, self.known, gap, None, False
        if gap <= at.high - at.low:
            return []
        if at.eps == self.curve.top:
            beyond = self.curve.tip_slope < a * (1 - TIP_KNOWN)  # the curve bends before it ends
            return self.halves() if beyond else self.close(points, slopes, i, gaps, whole, a)
        if known and at.eps == asked:
            return self.close(points, slopes, i, gaps, whole, a)
        side = gaps.index(gap)
        straight = 0 if self.idle and asked else self.lines(points, slopes, i - 1 + side)
        if straight:
            self.corner = math.log(sides[side][0])
            if straight == 1:  # on the other side it is a guess, which is to tell something
                low, high = points[i - 1 + side].eps, points[i + side].eps
                off = ASIDE * (high - low)
                self.corner = min(max(self.corner, low + off), high - off)
            guess = self.snapped(self.corner, points[i - 1 + side].eps, points[i + side].eps)
            self.corner, self.known = guess, guess != self.corner
            return [self.corner]
        if at.eps == asked:
            return self.close(points, slopes, i, gaps, whole, a)
        if self.idle:
            self.idle = 0
            return self.halves()
        return self.smooth(points, slopes, i, whole)

    def snapped(self, guess: float, low: float, high: float) -> float:
        """A corner inside of a cell, about where that is known of a run: the nearest, if it is near."""
        known = self.curve.ask.corners
        i = bisect.bisect_left(known, guess)
        near = min(known[max(i - 1, 0) : i + 1], key=lambda e: abs(e - guess), default=math.inf)
        return near if low < near < high and abs(near - guess) < SNAP * (high - low) else guess

    def halves(self) -> list[float]:
        """The middles of the cells beside the best point."""
        points, i = self.curve.around(self.level, self.dual, TOLD)
        return [0.5 * (points[j].eps + points[i].eps) for j in (i - 1, i + 1) if 0 <= j < len(points)]

    def walk(self, points: list[Node], way: int) -> list[float]:
        """Beyond the last point, where the secant of the log of the tail leads, and points about it."""
        if self.reach > 4 * EPS_MAX:
            return []
        ends = points[-3:] if way > 0 else points[2::-1]
        last = ends[-1]
        logs = [_tail(a, b, self.dual) for a, b in itertools.pairwise(ends if way > 0 else ends[::-1])]
        logs = logs if way > 0 else logs[::-1]
        step = self.reach
        if len(logs) == 2 and all(y > 0 for _, y in logs):
            (e, y), (f, z) = logs
            rise = (math.log(z) - math.log(y)) / (f - e)
            if rise < 0:
                wanted = (math.log(self.level) - math.log(z)) / rise - (last.eps - f)
                step = min(max(way * wanted, 2 * self.h), self.reach)
        self.reach *= 2 if logs else 4  # where nothing is told it is far
        self.h = max(self.h, 0.1 * step)
        return [last.eps + way * step + self.h * s for s in THREE]

    def lines(self, points, slopes, c: int) -> int:
        """On how many sides of cell c the curve is straight, as far as can be told, where it has a corner inside."""
        if not 0 < c < len(slopes) - 1:
            return 0
        logs = [(math.log(s.low), math.log(s.high)) if s.low > 0 else None for s in slopes]
        eps = [0.5 * (p.eps + q.eps) for p, q in itertools.pairwise(points)]
        before, after = logs[c - 1], logs[c + 1]
        if not (before and after and before[0] > after[1]):
            return 0
        found = 0
        for j, k in ((c - 2, c - 1), (c + 1, c + 2)):
            if j >= 0 and k < len(slopes) and (one := logs[j]) and (other := logs[k]):
                part = max(one[1] - other[0], other[1] - one[0]) / (before[0] - after[1])
                if part < STRAIGHT and part < 0.3 * (eps[k] - eps[j]) / (eps[c + 1] - eps[c - 1]):
                    found += 1
        return found

    def close(self, points, slopes, i: int, gaps, whole: float, a: float) -> list[float]:
        """A point on each side of a corner that the curve bends on, so near that its bend is small."""
        at, found = points[i], []
        part = max(10 * FINE * whole / max(gaps), 1e-4)
        for side, step in ((0, -1), (1, 1)):
            other, own = points[i + step], slopes[i - 1 + side]
            far = abs(other.x_dn - at.x_dn)
            least = 4 * (at.high - at.low + other.high - other.low) / max(abs(own.value - a), 1e-300)
            found.append(math.log(at.x_dn + step * min(max(part * far, least), 0.3 * far)))
        return found

    def smooth(self, points, slopes, i: int, whole: float) -> list[float]:
        """Three points about where the tail is the level."""
        at = points[i]
        low, high = points[i - 1].eps, points[i + 1].eps
        apart, known = 0.2 * min(at.eps - low, high - at.eps), list[Node]()
        for p in sorted(points, key=lambda p: abs(p.eps - at.eps)):
            if p.mid > 0 and all(abs(p.eps - q.eps) > apart for q in known):
                known.append(p)
        (guess, fall), (other, _) = (
            _touch(known[:n], self.level, self.dual, at.eps, low, high) for n in (DEGREE, DEGREE - 1)
        )
        bend = fall * self.level * (1.0 if self.dual else at.x_dn)
        fine, least = (
            math.sqrt(2 * SEEN * wide / bend) if bend > 0 else math.inf for wide in (FINE * whole, at.high - at.low)
        )
        off = 3 * abs(guess - other)
        if off < least and high - low < 2.2 * least and self.gap < 16 * (at.high - at.low):
            return []  # nearer points say no more
        fine = 0.0 if high - low < 3 * fine else fine  # as near as that they were, and it did not do
        self.h = min(max(off, least, fine, 4 * NEAR * (1 + abs(at.eps))), 0.3 * (high - low))
        steps = FIVE if self.h < 2 * least else THREE
        return [e for e in (guess + self.h * s for s in steps) if low < e < high]


class _Slope(NamedTuple):
    """p over a cell, minus its chord's slope: between low and high; and the middle of the cell in x."""

    low: float
    value: float
    high: float
    at: float


def _slopes(points: list[Node]) -> list[_Slope]:
    return [
        _Slope(
            (p.low - q.high) / (q.x_dn - p.x_dn),
            (p.mid - q.mid) / (q.x_dn - p.x_dn),
            (p.high - q.low) / (q.x_dn - p.x_dn),
            0.5 * (p.x_dn + q.x_dn),
        )
        for p, q in itertools.pairwise(points)
    ]


def _tail(p: Node, q: Node, dual: bool) -> tuple[float, float]:
    """p, or num[L > eps] with `dual`, in the middle of two points, and where that is."""
    slope = (p.mid - q.mid) / (q.x_dn - p.x_dn)
    return 0.5 * (p.eps + q.eps), 0.5 * (p.mid + q.mid + (p.x_dn + q.x_dn) * slope) if dual else slope


def _corner(points: list[Node], slopes: list[_Slope], c: int, top: float) -> tuple[float, float]:
    """Where the lines of the cells before and after cell c meet in it, or come nearest, and their height there."""
    p, q = points[c], points[c + 1]
    before = slopes[c - 1].value if c > 0 else (1 - p.mid) / p.x_dn  # the chord from x = 0
    after = slopes[c + 1].value if c + 1 < len(slopes) else 0.0
    if p.eps >= top or not before > after:
        return p.x_dn, p.mid
    x = min(max((p.mid + before * p.x_dn - q.mid - after * q.x_dn) / (before - after), p.x_dn), q.x_dn)
    slack = 8 * U * (p.mid + before * x)
    return x, max(p.mid - before * (x - p.x_dn), q.mid + after * (q.x_dn - x)) - slack


def _touch(points: list[Node], level: float, dual: bool, start: float, low: float, high: float):
    """The eps next to `start`, between low and high, at which the polynomial through log delta at the points has the
    tail `level`, and how fast the log of the tail falls there."""
    at = [p.eps for p in points]
    rows = [math.log(p.mid) for p in points]
    for k in range(1, len(rows)):
        for j in range(len(rows) - 1, k - 1, -1):
            rows[j] = (rows[j] - rows[j - 1]) / (at[j] - at[j - k])

    def excess(e: float) -> float:
        value, slope = rows[-1], 0.0
        for r, own in zip(rows[-2::-1], at[-2::-1], strict=True):
            slope = slope * (e - own) + value
            value = value * (e - own) + r
        tail = 1 - slope if dual else -slope
        return value + math.log(tail) - (0.0 if dual else e) - log_level if tail > 0 else -math.inf

    log_level = math.log(level)
    here = start, excess(start)
    way, step = (1.0 if here[1] > 0 else -1.0), min((abs(e - start) for e in at if e != start), default=high - low)
    while True:
        there = min(max(here[0] + way * step, low), high)
        ends = [here, (there, excess(there))]
        if (ends[1][1] > 0) != (way > 0):
            break
        if there in (low, high):
            return 0.5 * (start + there), 0.0
        here, step = ends[1], 2 * step
    ends.sort()
    kept = 0
    for _ in range(60):
        (a, f), (b, g) = ends
        e = a + (b - a) * f / (f - g) if math.isfinite(f) and math.isfinite(g) else 0.5 * (a + b)
        if not a < e < b:
            break
        value = excess(e)
        side = 0 if value > 0 else 1
        if kept == side + 1:  # the other end has stayed: take half of it, as the Illinois rule does
            ends[1 - side] = ends[1 - side][0], 0.5 * ends[1 - side][1]
        kept = side + 1
        ends[side] = e, value
        if abs(value) < 1e-13:
            break
    off = 1e-3 * min(abs(p - q) for p, q in itertools.pairwise(at))
    fall = (excess(e - off) - excess(e + off)) / (2 * off)
    return e, fall if math.isfinite(fall) else 0.0


def rate_upper(x: float) -> float:
    """A few positive operations that gave x, rounded up, also where x is no normal double."""
    return math.nextafter(x * UP, math.inf)


def rate_lower(x: float) -> float:
    """The same rounded down."""
    return math.nextafter(x * DOWN, -math.inf)


def fpr_upper(nodes: Nodes, tpr: float, start: float) -> float:
    """An upper bound of max_x (tpr - delta(x)) / x: an f with delta(x) + f x >= tpr for all x > 0
    [theory: risk.fpr]."""
    # Where delta(x) >= tpr, smaller x add nothing and larger ones at most tpr / x.
    best = min([tpr] + [rate_upper(tpr / x) for d, x in zip(nodes.low, nodes.x_dn, strict=True) if d >= tpr])
    f = start
    touched = max(range(len(nodes.x_dn)), key=lambda i: (tpr - nodes.high[i]) / nodes.x_up[i])
    for i in range(8):
        short = tpr - tpr_lower(nodes, f)
        if short <= 0:
            return min(best, f)
        f += (short * (1 + 1e-6) + 16 * U * tpr) / nodes.x_dn[max(touched - 1 - i // 3, 0)]
    return best


def _after_lower(nodes: Nodes, i: int, at: float) -> float:
    """A lower end of delta at `at` >= x[i], i > 0: the best of the chords that end at point i prolonged."""
    x, low = nodes.x_dn, nodes.low[i]
    fall = min((nodes.high[j] - low) / (x[i] - nodes.x_up[j]) for j in range(i)) * (at - x[i])
    return low - fall - 16 * U * (low + abs(fall))


def _before_lower(nodes: Nodes, i: int, at: float) -> float:
    """A lower end of delta at `at` <= x[i], i < n: the best of the chords that begin at point i prolonged."""
    x, low = nodes.x_dn, nodes.low[i]
    rise = max((low - nodes.high[j]) / (nodes.x_up[j] - x[i]) for j in range(i + 1, len(x))) * (x[i] - at)
    return low + rise - 16 * U * (low + abs(rise))


class _Floor(NamedTuple):
    """Lower ends of delta: (x, delta) at points, and at both ends of the cell between x and y those of a line from
    before it, and of one from beyond it."""

    points: list[tuple[float, float]]
    cells: list[tuple[float, float, tuple[float, float], tuple[float, float]]]
    end: tuple[tuple[float, float], tuple[float, float]]  # of the last cell: delta falls, or as before it
    last: float  # slope


@functools.lru_cache(8)
def _floor(nodes: Nodes) -> _Floor | None:
    """What the chords of these points say, prolonged; None if no slope is known [theory: risk.four-points]."""
    x, low, n = nodes.x_dn, nodes.low, len(nodes.eps)
    if not all(left < right for left, right in zip(nodes.x_up, x[1:], strict=False)):
        return None
    points = [*zip(x, low, strict=True), (0.0, _before_lower(nodes, 0, 0.0)), (x[0], _before_lower(nodes, 1, x[0]))]
    cells = []
    for i in range(1, n - 2):
        before = low[i], _after_lower(nodes, i, x[i + 1])
        cells.append((x[i], x[i + 1], before, (_before_lower(nodes, i + 1, x[i]), low[i + 1])))
    end = (x[-2], low[-1]), (x[-1], _after_lower(nodes, n - 2, x[-1]))
    return _Floor(points, cells, end, (low[-1] - nodes.high[-2]) / (x[-1] - nodes.x_up[-2]) * UP)


def tpr_lower(nodes: Nodes, a: float) -> float:  # [theory: pair.curve, risk.four-points]
    """A lower bound of delta(x) + a x over all x > 0 (head of the file); a, which no tpr is below, if the points lie
    wrong."""
    if 0 < a < LEAST:
        return max(a, rate_lower(tpr_lower(nodes.times(GROWN), GROWN * a) / GROWN))
    floor = _floor(nodes)
    if floor is None or floor.last + a < 0:
        return a  # nothing bounds the curve beyond the last point
    least = min(min(d + a * x for x, d in floor.points), max(d + a * x for x, d in floor.end))
    # In a cell the curve is above both lines, hence above each of their mixtures; the flat one.
    for x, y, before, after in floor.cells:
        p, q, r, s = before[0] + a * x, before[1] + a * y, after[0] + a * x, after[1] + a * y
        down, up = q - p, s - r
        mix = min(max(up / (up - down), 0.0), 1.0) if up > down else 0.5
        least = min(least, mix * p + (1 - mix) * r, mix * q + (1 - mix) * s)
    return max(a, least * DOWN)


def height_upper(left: Node, right: Node) -> float:
    """Where the chord of two points meets x = 0, at most: num[L > eps] is no more at the right point
    [theory: risk.slope]."""
    return rate_upper(left.high + max(0.0, left.high - right.low) * (left.x_up / (right.x_dn - left.x_up)))


def height_lower(left: Node, right: Node) -> float:
    """The same at least: num[L > eps] is no less at the left point [theory: risk.slope]."""
    return rate_lower(left.low + max(0.0, left.low - right.high) * (left.x_dn / (right.x_up - left.x_dn)))


LEAST_BACK, BACK, HALVINGS = 1e-15, 16.0, 4
"""Part of 1 + |eps| by which a crossing is moved towards the end that is proved; how many times more where rounding, or
the widths of deltas, do not allow it; halvings of the logarithm of what then does."""


def tail_ends(nodes: Nodes, tail: float) -> tuple[float, float]:
    """Certified ends of the eps that num exceeds with probability `tail`, infinite where the points do not tell
    [theory: risk.slope]."""
    low, high, points = -math.inf, math.inf, [Node(*row) for row in zip(*nodes, strict=True)]
    if not all(p.x_up < q.x_dn for p, q in itertools.pairwise(points)):
        return low, high  # no slope is known
    cells = list(enumerate(itertools.pairwise(points)))
    after = [i for i, (p, q) in cells if height_lower(p, q) > tail * UP]
    before = [i for i, (p, q) in cells if height_upper(p, q) < tail * DOWN]
    if after:
        low = _crossing(nodes, points, after[-1], tail, False)
    if before:
        high = _crossing(nodes, points, before[0], tail, True)
    return low, high


def _crossing(nodes: Nodes, points: list[Node], i: int, tail: float, worse: bool) -> float:
    """The last eps from the left end of cell i on at which prolonged chords show that num[L > eps] is above `tail`, or
    with `worse` the first one before its right end at which they show that it is below."""
    left, right = points[i], points[i + 1]
    lines, crossings = [(right.low, right.low)], []
    if i > 0:
        lines.append((left.low, _after_lower(nodes, i, right.x_dn)))
    if i + 2 < len(points):
        lines.append((_before_lower(nodes, i + 1, left.x_dn), right.low))
    for first, last in lines:  # where the chord from a point on this line to an end of the cell is `tail` high at 0
        fall = (first - last) / (right.x_dn - left.x_dn)
        above = first + fall * left.x_dn - tail
        if worse and tail > left.high + fall * left.x_dn:
            crossings.append(left.x_dn * -above / (tail - left.high - fall * left.x_dn))
        if not worse and right.high + fall * right.x_dn > tail:
            crossings.append(right.x_dn * above / (right.high + fall * right.x_dn - tail))
    sure = right.eps if worse else left.eps
    if not crossings:
        return sure
    x = min(max((min if worse else max)(crossings), left.x_up), right.x_dn)

    def shown(eps: float) -> bool:
        x = math.exp(eps)
        dn, up = x * DOWN, x * UP
        if not left.x_up < dn < up < right.x_dn:
            return False
        low = max(
            right.low,
            _after_lower(nodes, i, up) if i > 0 else 0.0,
            min(_before_lower(nodes, i + 1, at) for at in (dn, up)) if i + 2 < len(points) else 0.0,
        )
        here = Node(eps, dn, up, low, low, low)  # no upper end is used
        return height_upper(left, here) < tail * DOWN if worse else height_lower(here, right) > tail * UP

    crossing, way, back = math.log(x), 1 if worse else -1, LEAST_BACK
    size, far = 1 + abs(crossing), abs(crossing - sure)
    while not shown(crossing + way * back * size):
        back *= BACK
        if back * size >= far:
            return sure
    less = back / BACK  # this much is too little, unless it is the least
    for _ in range(HALVINGS if back > LEAST_BACK else 0):
        mid = math.sqrt(less * back)
        less, back = (less, mid) if shown(crossing + way * mid * size) else (mid, back)
    return crossing + way * back * size
