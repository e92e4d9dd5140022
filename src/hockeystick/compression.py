"""Many distinct Gaussian steps as a rule: a few shifts with positive weights, whose line is that of all the steps.

Of steps of one sampling rate the moments of their shifts m = sensitivity/sigma are kept (step_moments.py). From its 16
moments every box gets a Gauss rule of at most eight shifts, and the rules of boxes within an octave become one.
log M(a; m) is analytic in m around a box [theory: compression.strip], so that the sum over the steps and the one over
the rule differ by little, and by how much is bounded from the moments of both [theory: compression.rule,
compression.moments]; csrc/line/fit.c turns that into an error of the line. How the rule was found enters no bound.

Where log M changes so fast along the shifts, at the tilt of a line for sparse samples, that a box of 16 moments is too
wide, the steps themselves, if they are known, give Gauss rules of as many points in narrower boxes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._core import Rows
from .gauss import gauss_rule
from .outward import LONG_U, U
from .step_moments import DEGREES, MOMENT_ERROR, RATES_MAX, StepMoments, chebyshev, places
from .what.sampling import two_sided

ROOM = 1 + 1e-12
"""Pays for the rounding of what is bounded by a few positive terms."""
POINTS = DEGREES // 2
PARTS = (0.85, 0.6, 0.42, 0.3, 0.2, 0.13)
"""Of the widest ellipse, those tried."""
REACH = 0.62
"""The ellipse for which a merged rule has as many points as leave e^-PRECISION."""
PRECISION = 35.0
ARCS = 32
FEWEST = 48
"""Fewer distinct steps are summed as they are."""
MISFIT = 4e-15
"""By so much the rule of a box may be off, of one step and on the ellipse of TYPICAL, before fewer points are tried."""
TYPICAL = 4.0
"""A narrow one of the ellipses that are tried."""
WORTH = 0.7
"""Of the number of distinct steps: a rule with more rows is none."""
LIKELY = 0.5
"""The same of the rows expected, from which the moments are taken at all."""
FEWEST_OF_MANY_RATES = 4000
"""Fewer distinct steps of more rates than that are summed as they are."""

FINE_BOXES, FINE_POINTS, FINE_ELLIPSES = 16, 16, (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
"""Boxes to the octave of a rule made from the steps, points of each, and its ellipses."""
FINE_COST, FINE_MOST = 64, 1 << 18
"""Such a box takes as long as so many steps of a sum; most steps."""
BLOCK = 1 << 12
"""Steps whose moments are taken in extended precision at a time."""


class Ruled(NamedTuple):
    """A rule in place of the steps that it stands for.

    steps : its rows, the one of rate 1 first, with what they are off by.   total : number of steps.
    fine : whether it was made from the steps, in narrow boxes.   wide : whether its boxes are as wide as can be
    (wide.py).   apart : whether its rows are for a tail or for all else (rates.py), never for both.
    """

    steps: Rows
    total: float
    fine: bool = False
    wide: bool = False
    apart: bool = False


class Fit(NamedTuple):
    """A row of hs_fit (csrc/hs.h): what a rule is off by; `steps` is its count."""

    group: float
    q: float
    m: float = 0.0
    factor: float = 0.0
    weight: float = 0.0
    steps: float = 0.0
    turn: float = 0.0
    least: float = 0.0
    of: float = 0.0
    sides: float = 1.0


class Strip(NamedTuple):
    """(q', m', F), of the sampled step whose |M - 1|, times F, bounds that of pairs."""

    rate: float
    most: float
    factor: float


class Ellipse(NamedTuple):
    """What bounds M - 1 on an ellipse about shifts, rho the sum of its half axes in half widths of the box.

    most, factor : m' and F of sampled Gaussian steps [theory: compression.strip].   grown, pair_factor, bend : of
    two-sided pairs, see `of_pairs`; infinite where nothing is proved.
    """

    rho: float
    most: float
    factor: float
    grown: float
    pair_factor: float
    bend: float

    def of_pairs(self, q: float) -> Strip:
        """Of two-sided pairs of rate q [theory: compression.pair]."""
        if not self.grown < 50.0:
            return Strip(q, math.inf, math.inf)
        more = math.exp(self.grown) * ROOM
        more_rate, both = q * more, (1 - q) + q * more
        rate, factor = more_rate / both * ROOM, math.exp(self.bend * max(0.0, math.log(q / (1 - q))))
        if not rate < 1:  # no double below 1 bounds q'
            return Strip(q, math.inf, math.inf)
        return Strip(rate, self.most, both * self.pair_factor * factor * ROOM)

    def fit(self, group: float, q: float, sides: int, weight: float) -> Fit:
        """What a rule is off by, of sampled steps or of two-sided pairs."""
        if sides == 1:
            return Fit(group, q, self.most, self.factor, weight)
        return Fit(group, *self.of_pairs(q), weight, sides=2.0)


class Boxes(NamedTuple):
    """Boxes of one sampling rate, in ascending order, with their rules.

    steps : number of steps.   m, w : [boxes, POINTS], points and weights.   off : bounds of what their moments are off
    by.
    """

    q: float
    box: NDArray[Any]
    middle: NDArray[Any]
    half: NDArray[Any]
    steps: NDArray[np.float64]
    m: NDArray[np.float64]
    w: NDArray[np.float64]
    off: NDArray[np.float64]

    def points(self, here: slice):
        """Shifts and weights of the rules of some boxes."""
        used = self.w[here] > 0
        return self.m[here][used], self.w[here][used]


def boxes_of(moments: StepMoments) -> list[Boxes]:
    """The boxes of every sampling rate that has steps, with a rule each, the highest rate first."""
    if moments.boxes is None:
        moments.boxes = list(_each_rate(moments))
    return moments.boxes


def _each_rate(kept: StepMoments) -> Iterator[Boxes]:
    for q in sorted(kept.sums, reverse=True):
        moments = _core.step_moments_read(kept.sums[q])
        box = np.flatnonzero(moments[:, 0])
        if not box.size:
            continue
        moments = moments[box]
        middle, half = places(box)
        x, w = gauss(moments)
        m = middle[:, None] + half[:, None] * x
        x = (m - middle[:, None]) / half[:, None]  # exactly, the half widths being powers of two
        off = _differences_upper(moments, chebyshev(x), w, MOMENT_ERROR)
        yield Boxes(q, box, middle, half, moments[:, 0], m, w, off)


def rule_of(moments: StepMoments, sides: int = 1) -> Ruled:
    """The rule of all steps, of which shifts up to an octave apart share one. sides = 2: sampled steps are two-sided
    pairs, and plain ones are moved twice as far."""
    rows, fits, total, plain = [], [], 0.0, 0
    for of in boxes_of(moments):
        total += float(of.steps.sum())
        if of.q == 1:
            row, fit = plain_row(of, sides)
            rows.append(row)
            fits.append(fit)
            plain = 1
            continue
        for here in _octaves(of.middle, of.half):
            group = 2.0 * len(fits)  # a name that no other group has
            boxes = tuple(of.box[here].tolist())
            for e in _ellipses_of(boxes):
                size = _weight(of.off[here], of.steps[here], of.w[here].sum(axis=1), e.rho)
                fits.append(e.fit(group, of.q, sides, size))
            points, weights = of.points(here)
            shift, weight, more = _one_rule(points, weights, (boxes[0], boxes[-1]))
            fits += [e.fit(group + 1, of.q, sides, size) for e, size in more]
            rows += [(one, of.q, count) for one, count in zip(shift.tolist(), weight.tolist(), strict=True)]
    return Ruled(rows_of_rule(rows, fits, len(rows) - plain, sides), total)


def plain_row(of: Boxes, sides: int = 1):
    """The row (m, q, k) of all steps without sampling, and what it is off by: log M = m^2 z (1+z)/2
    [theory: compression.gaussian]; of `sides` shifts each."""
    times = float(sides * sides)
    squares, off, middle, half = float(np.sum(of.w * of.m * of.m)), of.off, of.middle, of.half
    x_2 = off[:, 0] * (middle**2 + 0.5 * half**2) + 2 * middle * half * off[:, 1] + 0.5 * half**2 * off[:, 2]
    size = float(x_2.sum()) * (1 + 1e-9) + (of.w.size + 8) * U * squares
    return (1.0, 1.0, times * squares), Fit(0.0, 1.0, weight=times * size)


def rows_of_rule(rows, fits, ruled: int, sides: int = 1, light: int = 0, outline=(), light_outline: int = 0) -> Rows:
    """A rule's rows and what they are off by; outline: rows that a line is placed by, the last of them light. sides =
    2: of two-sided pairs, in place of which these are, and which are placed by themselves."""
    m, q, k = np.array(rows, dtype=float).reshape(-1, 3).T.copy()
    off = np.array(fits, dtype=float).reshape(-1, len(Fit._fields))
    if sides == 2:
        one = np.ones_like(k)
        return Rows(one, one, k, pairs=two_sided(m, q), fits=off, ruled=ruled, light=light)
    placed = np.array(outline, dtype=float).T.copy() if outline else None
    return Rows(m, q, k, fits=off, ruled=ruled, light=light, outline=placed, light_outline=light_outline)


def moments_of_steps(steps: Rows) -> StepMoments | None:
    """The moments of steps; None where so many are of rates of their own that no rule could have fewer rows."""
    rates = np.unique(steps.q).size
    if rates > RATES_MAX:
        if steps.q.size < FEWEST_OF_MANY_RATES:
            return None
    elif not _rows_expected(steps.shift, steps.q) < LIKELY * steps.shift.size:
        return None
    moments = StepMoments()
    moments.add_many(steps.shift, steps.q, None if (steps.k == 1).all() else steps.k.astype(np.int64))
    return moments


def _rows_expected(m, q) -> float:
    """About how many rows the merged rule of steps has: what an ellipse around the shifts of a rate asks for, an octave
    at a time, and no more than the rate has steps."""
    rates, which, count = np.unique(q, return_inverse=True, return_counts=True)
    low, high = np.full(rates.size, np.inf), np.zeros(rates.size)
    np.minimum.at(low, which, m)
    np.maximum.at(high, which, m)
    octaves = np.maximum(np.ceil(np.log2(high / low)), 1)
    ratio = np.minimum((high + low) / np.maximum(high - low, 1e-9 * high), 1e9)
    ratio = np.where(octaves > 1, 3.0, np.maximum(ratio, 3.0))  # of middle and half width of a box
    points = PRECISION / (2 * np.log(REACH * _widest(ratio, 1.0)))
    return float(np.minimum(np.where(rates == 1, 1, octaves * np.ceil(points)), count).sum())


def _octaves(middle, half) -> list[slice]:
    """Neighbouring boxes that lie within a factor of two."""
    low, high, found, first = middle - half, middle + half, [], 0
    for i in range(1, middle.size + 1):
        if i == middle.size or high[i] > 2.01 * low[first]:
            found.append(slice(first, i))
            first = i
    return found


@functools.lru_cache(256)
def _ellipses_of(boxes: tuple[int, ...], whole: bool = False) -> list[Ellipse]:
    """The ellipses tried around boxes, or, `whole`, around all between the first and the last."""
    middle, half = places(np.array(boxes))
    if whole:
        middle, half = (part[None] for part in _hull(middle, half))
    return [ellipse(middle, half, rho) for rho in _ellipses(middle, half)]


def _hull(middle, half):
    low, high = middle[0] - half[0], middle[-1] + half[-1]
    return 0.5 * (low + high), 0.5 * (high - low)


def _one_rule(m, w, ends: tuple[int, int]):
    """A Gauss rule of the weights w at m, and (ellipse, weight) of what it is off by; none where it has no fewer."""
    middle, half = (float(part) for part in _hull(*places(np.array(ends))))
    count = math.ceil(PRECISION / (2 * math.log(REACH * _widest(middle, half))))
    if not count < m.size:
        return m, w, []
    return _gauss_of(m, w, middle, half, count, _ellipses_of(ends, True))


def _gauss_of(m, w, middle: float, half: float, count: int, ellipses):
    """(points, weights, rows) of the Gauss rule of `count` points of the weights w at m in a box, with what it is off
    by on each of the ellipses."""
    points, weights = gauss_rule((m - middle) / half, w, count)
    shift = middle + half * points
    degrees = 2 * count + 8
    degree = np.arange(degrees)
    error = (3.5 * degree**2 + 2) * LONG_U  # of T_j at what the quotients below, within 2 units, stand for
    theirs, ours = (_moments(at, of, middle, half, degrees) for at, of in ((m, w), (shift, weights)))
    rounded = theirs[0] * (error + (m.size + 4) * LONG_U) + ours[0] * (error + (shift.size + 4) * LONG_U)
    off = ((np.abs(theirs - ours) + rounded) * (1 + 1e-9)).astype(float)[None]
    before, total = w.sum(keepdims=True), weights.sum(keepdims=True)
    return shift, weights, [(e, _weight(off, before, total, e.rho)) for e in ellipses]


def _moments(m, w, middle: float, half: float, degrees: int) -> NDArray[np.longdouble]:
    """The sums of w T_j over m in a box, in extended precision."""
    sums = np.zeros(degrees, np.longdouble)
    for first in range(0, m.size, BLOCK):
        x = (m[first : first + BLOCK].astype(np.longdouble) - middle) / half
        sums += w[first : first + BLOCK].astype(np.longdouble) @ chebyshev(x, degrees)
    return sums


def plain_fit(count: int, squares: float) -> Fit:
    """What the row of `count` steps without sampling is off by, `squares` the sum of their m^2."""
    return Fit(0.0, 1.0, weight=(count + 4) * 2 * U * squares)


def fine_rule(steps: Rows, sides: int = 1) -> Ruled | None:
    """A rule made from the steps in boxes of a 16th of an octave; None where it has too many rows or takes longer than
    a sum over the steps [theory: compression.rule]. `sides` as in `rule_of`."""
    plain = steps.q == 1
    squares = float(np.sum(steps.k[plain] * (sides * steps.shift[plain]) ** 2))
    rows = [(1.0, 1.0, squares)] * bool(plain.any())  # as in `rule_of`
    fits = [plain_fit(int(np.count_nonzero(plain)), squares)] * len(rows)
    order = np.lexsort((steps.shift[~plain], steps.q[~plain]))
    m, q, k = (column[~plain][order] for column in steps)
    mantissa, exponent = np.frexp(m)
    box = FINE_BOXES * (exponent - 1) + np.floor((2 * mantissa - 1) * FINE_BOXES).astype(int)
    first = np.flatnonzero(np.concatenate(([True], (box[1:] != box[:-1]) | (q[1:] != q[:-1])))) if m.size else box
    sizes = np.diff(first, append=m.size)
    ruled = np.count_nonzero(sizes > FINE_POINTS)
    expected = len(rows) + np.minimum(sizes, FINE_POINTS).sum() + FINE_COST * ruled
    if len(FINE_ELLIPSES) * ruled + len(fits) > _core.FITS_MAX or not expected < WORTH * steps.q.size:
        return None
    for at, size in zip(first.tolist(), sizes.tolist(), strict=True):
        here, rate = slice(at, at + size), float(q[at])
        shift, weight = m[here], k[here]
        if size > FINE_POINTS:
            middle, half, ellipses = _fine_box(int(box[at]))
            group = 2.0 * len(fits)
            shift, weight, more = _gauss_of(shift, weight, middle, half, FINE_POINTS, ellipses)
            fits += [e.fit(group, rate, sides, size) for e, size in more]
        rows += [(one, rate, n) for one, n in zip(shift.tolist(), weight.tolist(), strict=True)]
    if not fits:
        return None
    return Ruled(rows_of_rule(rows, fits, len(rows) - bool(plain.any()), sides), float(steps.k.sum()), fine=True)


@functools.lru_cache(1024)
def _fine_box(box: int) -> tuple[float, float, list[Ellipse]]:
    """Middle and half width of a box, exactly, and its ellipses."""
    octave, part = divmod(box, FINE_BOXES)
    half = math.ldexp(0.5 / FINE_BOXES, octave)
    middle = math.ldexp(1, octave) + (2 * part + 1) * half
    return middle, half, [ellipse(np.array([middle]), np.array([half]), rho) for rho in FINE_ELLIPSES]


def _widest(middle, half):
    """About the largest ellipse around a box that stays where log M is analytic."""
    return math.sqrt(1.96) * middle / half


def _ellipses(middle, half) -> list[float]:
    """Sums of the half axes, in half widths, of the ellipses tried around boxes."""
    most = _widest(1.0, float((half / middle).max()))
    return [max(1.2, part * most) for part in PARTS]


def gauss(moments: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(points, weights), [boxes, POINTS], of the Gauss rules of Chebyshev moments [boxes, 2 POINTS]; where fewer points
    carry all the weight the others have none. Shifts that lie close together, far from the middle of their box, leave
    little but rounding of the later points: where a rule misses its moments, the best of those with fewer is taken.
    """
    count = moments[:, 0]
    centre, square = _recurrence(moments)
    x, w = _points(centre, square)
    missed = _missed(moments, x, w)
    for most in range(POINTS - 1, 0, -1):
        bad = np.flatnonzero(missed > MISFIT)
        if not bad.size:
            break
        square[bad, most:] = 0
        fewer = _points(centre[bad], square[bad])
        left = _missed(moments[bad], *fewer)
        better = left < missed[bad]
        x[bad[better]], w[bad[better]] = (part[better] for part in fewer)
        missed[bad[better]] = left[better]
    return x, w * count[:, None]


def _missed(moments, x, w):
    """By how much the rules of weight 1 miss the moments, of one step and on a typical ellipse."""
    falling = TYPICAL ** -np.arange(float(DEGREES))
    return np.abs(moments / moments[:, :1] - np.einsum("bp,bpj->bj", w, chebyshev(x))) @ falling


def _recurrence(moments: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(centre, square), [boxes, POINTS], of the polynomials that are orthogonal to each other in these moments, by the
    modified Chebyshev algorithm."""
    boxes = len(moments)
    count = moments[:, 0]
    now = (moments / count[:, None]).astype(np.longdouble)
    now[:, 1:] *= np.ldexp(1.0, -np.arange(DEGREES - 1))  # of monic polynomials
    own = np.full(DEGREES, 0.25)
    own[:2] = 0, 0.5  # the recurrence of those: P_{j+1} = x P_j - own_j P_{j-1}
    centre, square = np.zeros((2, boxes, POINTS), np.longdouble)
    centre[:, 0] = now[:, 1] / now[:, 0]
    before, alive = np.zeros_like(now), np.ones(boxes, bool)
    for n in range(1, POINTS):
        new, at = np.zeros_like(now), slice(n, DEGREES - n)
        new[:, at] = (
            now[:, n + 1 : DEGREES - n + 1]
            - centre[:, n - 1, None] * now[:, at]
            - square[:, n - 1, None] * before[:, at]
        )
        new[:, at] += own[at] * now[:, n - 1 : DEGREES - n - 1]
        alive = alive & (new[:, n] > 2e-14 * 0.25**n)  # else what is left is rounding
        safe = np.where(alive, new[:, n], 1)
        centre[:, n] = np.where(alive, new[:, n + 1] / safe - now[:, n] / now[:, n - 1], 0)
        square[:, n] = np.where(alive, safe / now[:, n - 1], 0)
        before, now = now, np.where(alive[:, None], new, 1)
    return centre, square


def _points(centre, square):
    """(points, weights) from the vectors of Jacobi's matrix."""
    jacobi = np.zeros((len(centre), POINTS, POINTS))
    i = np.arange(POINTS)
    jacobi[:, i, i] = centre
    jacobi[:, i[1:], i[:-1]] = np.sqrt(square[:, 1:])
    x, vectors = np.linalg.eigh(jacobi)
    w = vectors[:, 0] ** 2
    w[w < 1e-25] = 0  # of points that are not coupled to the first
    return np.clip(x, -1, 1), w


def _differences_upper(moments, t, w, error):
    """Bounds of |sum k T_j(x_i) - sum w t_j|, [boxes, degrees], t = T_j at the points; error: of both."""
    ours = np.einsum("bp,bpj->bj", w, t)
    total = w.sum(axis=1)
    off = np.abs(moments - ours) + 4 * U * np.abs(moments)
    off += moments[:, :1] * error + total[:, None] * (error + (w.shape[1] + 4) * U)
    return off * (1 + 1e-9)


def _weight(off, count, total, rho: float) -> float:
    """The sum over boxes of what the sums over steps and rule of an f with |f| <= 1 on the ellipse may differ by
    [theory: compression.rule]."""
    degrees = off.shape[1]
    known = off[:, 0] + 2 * (off[:, 1:] * rho ** -np.arange(1.0, degrees)).sum(axis=1)
    rest = 2 * rho**-degrees / (1 - 1 / rho) * (count + total)
    return float((known + rest).sum()) * (1 + 1e-9)


def ellipse(middle, half, rho: float) -> Ellipse:
    """The largest bounds over the ellipses with sum of half axes rho * half around boxes, by arcs up to the largest
    arg m [theory: compression.arcs]; infinite where an ellipse leaves the sector."""
    a, b = half * 0.5 * (rho + 1 / rho), half * 0.5 * (rho - 1 / rho)
    if not np.all(a * a + b * b < 0.98 * middle**2):
        return Ellipse(rho, *[math.inf] * 5)
    t = np.arccos(-a / middle)[:, None] * np.linspace(0, 1, ARCS + 1)
    x, y = middle[:, None] + a[:, None] * np.cos(t), b[:, None] * np.sin(t)
    size2 = x * x + y * y
    turn = np.arctan2(y, x)[:, 1:] * ROOM + 1e-15
    cos2, most = np.cos(2 * turn) / ROOM, size2[:, :-1] * ROOM
    found = on_arcs(most / cos2, most * cos2, cos2, most * np.sin(2 * turn) * ROOM, size2[:, 1:] / ROOM)
    return Ellipse(rho, *(bound.max().item() for bound in found))


def on_arcs(most2, real, cos2, imag, size_lower):
    """m', F and what Ellipse says of pairs, the largest of each row of arcs, from upper bounds of m'^2 and |Im s|, s =
    m^2, lower ones of cos 2 arg m and |s|, and `real`, which bounds m'^2 - Re s [theory: compression.strip,
    compression.pair]."""
    half = np.minimum(0.5 * imag * ROOM, 1.5)
    tan2 = np.tan(half) ** 2 * ROOM
    with np.errstate(over="ignore"):  # shifts of 50 and more: no bound
        factor = np.exp(((most2 - real) / 8 - 0.5 * np.log(cos2)).max(axis=-1)) * ROOM
        turned = (0.65 * tan2 + 0.15 * tan2 * tan2 + half * half) / (2 * size_lower) * ROOM
        pair = np.exp((turned - 0.5 * np.log(cos2) - 0.5 * np.log(np.cos(half))).max(axis=-1)) * ROOM
    pair = np.where((half < 1.5).all(axis=-1), pair, np.inf)
    bend = (0.2 * tan2 / size_lower).max(axis=-1) * ROOM
    return np.sqrt(most2.max(axis=-1)) * ROOM, factor, 0.5 * (most2 - real).max(axis=-1) * ROOM, pair, bend
