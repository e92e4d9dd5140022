"""Rules in boxes as wide as they can be.

Of every sampling rate the largest shifts m share rules over the variable (m^2 - s)/(m^2 + s), s the product of the ends
of the box: it carries the half plane Re m^2 > 0, where log M is analytic, onto the unit disc, so that an ellipse about
the box reaches nearly as far [theory: compression.disc]. All smaller shifts, down to 0, share a rule of a few points
over m^2, order by order in the rate (csrc/line/orders.c) [theory: compression.orders]; nothing bounds what that is off
by at all frequencies, so that the tail of a line counts on the larger shifts alone [theory: compression.light]. How
many points a rule has enters no bound: it comes from the variance of the run, as a normal law's frequencies do.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import compression
from .compression import ARCS, ROOM, Boxes, Ellipse, Fit, Ruled, boxes_of, plain_row, rows_of_rule
from .gauss import gauss_rule
from .outward import LONG_U
from .step_moments import StepMoments, chebyshev

if TYPE_CHECKING:
    from numpy.typing import NDArray


TARGET = 26.0
"""A rule has as many points as should leave e^-TARGET of a line's logarithms; at 24 some answers are ten times wider,
at 32 a quarter more rows bring nothing."""
FREQUENCY = 9.0
"""Of the exponents that matter, in standard deviations of the run's loss: its normal law is below e^-40 there."""
JUMPS = 2.5
"""Times what a normal law of the run's variance has, K at its saddle."""
LIGHT = 1 / 3
"""Most of the variance that small shifts may have."""
HEAVY = 0.6
"""Part of the variance that the tail of a line counts on: rows that it leaves out need coarser grids."""
SMALL = 0.03
"""log M of a step that counts as small, at most, by its normal law."""
MOST_ORDERS = 22
"""Orders of log M that are looked at, as in csrc/line/orders.c."""
REACHES = (0.96, 0.92, 0.86, 0.78, 0.68, 0.58, 0.48, 0.4, 0.32, 0.25, 0.18, 0.12)
"""Of the disc, the half axes tried."""
STRETCHES = np.array([1.4, 2.0, 3.0, 5.0, 9.0, 18.0, 45.0, 120.0])
"""Largest |m^2| on an ellipse about small shifts over that of the box."""
BOX_ELLIPSES = (16.0, 9.0)
"""Ellipses about the boxes of small shifts."""
OUTLINE, OUTLINE_LIGHT = 3, 2
"""Steps that stand for those of a box, and for small ones, where a line is placed."""
ORDERS = 10
NEAR = 0.06
"""As in csrc/line/orders.c."""


def wide_rule(moments: StepMoments, sides: int = 1) -> Ruled | None:
    """The rule in the widest boxes; None where all steps are plain or rare jumps rule the line. sides = 2: of two-sided
    pairs, whose small shifts have boxes like the others."""
    rows, fits, total, plain, rates = [], [], 0.0, 0, []
    for of in boxes_of(moments):
        total += float(of.steps.sum())
        if of.q < 1:
            rates.append(of)
            continue
        row, fit = plain_row(of, sides)
        rows.append(row)
        fits.append(fit)
        plain = 1
    if not rates:
        return None
    sizes = [np.sum(of.w * _variance(of.m, of.q, sides), axis=1) for of in rates]
    variance = sum(float(size.sum()) for size in sizes) + sum(row[2] for row in rows)
    tilt = 0.6 * FREQUENCY / math.sqrt(variance)
    if not sides**2 * _cost(rates, 1 + tilt) < JUMPS * 0.5 * tilt * (1 + tilt) * variance:
        return None  # rare jumps rule the line, whose nodes these boxes are too wide for
    cuts = _cuts(rates, sizes, variance) if sides == 1 else [0] * len(rates)
    groups = []
    for of, cut in zip(rates, cuts, strict=True):
        for here in _spans(of, cut, 1 + tilt, sides):
            rule, more = _on_a_disc(of, here, 1 + tilt, 2.0 * len(fits), sides=sides)
            groups.append(rule)
            fits += more
    weights, most = [], _heavy(groups, sum(row[2] for row in rows), variance)
    for of, cut in zip(rates, cuts, strict=True):
        if cut:
            rule, more = _by_orders(of, slice(0, cut), variance, 2.0 * len(fits))
            weights.append(rule)
            fits += more
    heavy = [[row for row in rule if _share(row) >= most] for rule in groups]
    light = [[row for row in rule if _share(row) < most] for rule in groups] + weights
    outline = [*rows, *itertools.chain(*(_outlined(rule, OUTLINE) for rule in heavy))]
    others = list(itertools.chain(*(_outlined(rule, OUTLINE_LIGHT) for rule in light)))
    rows += itertools.chain(*heavy)
    last = list(itertools.chain(*light))
    ruled = len(rows) + len(last) - plain
    steps = rows_of_rule(rows + last, fits, ruled, sides, len(last), outline + others, len(others))
    return Ruled(steps, total, wide=True)


def _share(row: tuple[float, float, float]) -> float:
    """About the variance of a row, or a fourth of it."""
    m, q, k = row
    return float(k * _variance(np.array(m), q, 1))


def _variance(m: NDArray[np.float64], q: float, sides: int) -> NDArray[np.float64]:
    """About the variance of the loss of a step."""
    s = np.minimum(m * m, 50.0)
    return q * q * (np.expm1(s) if sides == 1 else 4 * np.sinh(s))


def _heavy(groups, left: float, variance: float) -> float:
    """The least share of a row that the tail counts on: together they have the part HEAVY of the variance."""
    for share in sorted((_share(row) for rule in groups for row in rule), reverse=True):
        left += share
        if left > HEAVY * variance:
            return share
    return 0.0


def _outlined(rows, count: int):
    """As many rows at most, with the moments of low order of m^2 under m^2 times the steps."""
    if len(rows) <= count:
        return rows
    m, q, k = np.array(rows).T
    s, mass = gauss_rule(m * m / m.max() ** 2, k * m * m, count)
    s = s * m.max() ** 2
    return _rows(float(q[0]), np.sqrt(s), mass / s)


def _cuts(rates: list[Boxes], sizes: list[NDArray[np.float64]], variance: float) -> list[int]:
    """How many boxes of every rate hold small shifts: so many that the others have most of the variance."""
    cuts, left = [], 0.0
    for of, size in zip(rates, sizes, strict=True):
        most = math.log1p(2 * SMALL * variance / (FREQUENCY * of.q) ** 2)
        squares = (of.middle + of.half) ** 2
        small = (squares < most) & (_rest(of.q, squares, float(of.steps.sum()), variance) < -TARGET)
        cuts.append(int(np.argmin(small)) if not small.all() else small.size)
        left += float(size[: cuts[-1]].sum())
    while left > LIGHT * variance:
        each = [float(size[:cut].sum()) for size, cut in zip(sizes, cuts, strict=True)]
        i = int(np.argmax(each))
        of, cut = rates[i], cuts[i]
        ends = of.middle + of.half
        cuts[i] = int(np.searchsorted(ends[:cut], 0.51 * ends[cut - 1]))
        left -= float(sizes[i][cuts[i] : cut].sum())
    return cuts


def _rest(q: float, squares: NDArray[np.float64], count: float, variance: float) -> NDArray[np.float64]:
    """About the log of what orders leave out of a line whose small shifts have m^2 up to each of `squares`."""
    return orders(q, squares, count, variance).min(axis=0)


def orders(q: float, squares: NDArray[np.float64], count: float, variance: float) -> NDArray[np.float64]:
    """About the log of order 2, 4 ... MOST_ORDERS of such a line, [orders, squares]."""
    a = FREQUENCY / math.sqrt(variance) * complex(-0.6, 0.7)
    found, log_choose, log_odd = [], 0.0, 0.0
    for j in range(1, MOST_ORDERS + 1):
        log_choose += math.log(abs(a - (j - 1)) / j)
        if j % 2:
            log_odd += math.log(j)  # of j!!
            continue
        log_size = 0.5 * j * np.log(squares) + 0.5 * j * (j - 1) * squares
        log_rate = j * math.log(q) + (a.real - j) * math.log1p(-q)
        found.append(log_choose + log_odd + log_rate + log_size)
    return np.array(found) + math.log(count)


def _spans(of: Boxes, first: int, a: float, sides: int) -> list[slice]:
    """The boxes from `first` on in parts of about an octave, as wide as each other, and where that is fewer points in
    halves of these."""
    low, high = of.middle - of.half, of.middle + of.half
    if first == len(low):
        return []
    parts = max(1, round(math.log2(float(high[-1] / low[first])) / 1.2))
    ends = low[first] * (high[-1] / low[first]) ** (np.arange(1, parts) / parts)
    at = [first, *(np.searchsorted(of.middle[first:], ends) + first).tolist(), len(low)]
    return [each for i, j in itertools.pairwise(at) if i < j for each in _halves(of, slice(i, j), a, sides)]


def _halves(of: Boxes, here: slice, a: float, sides: int) -> list[slice]:
    half = (here.start + here.stop) // 2
    if here.stop - here.start < 4:
        return [here]
    parts = slice(here.start, half), slice(half, here.stop)
    whole, *each = (_plan_of_disc(of, part, a, sides=sides).points for part in (here, *parts))
    if whole < math.inf and whole <= sum(each):
        return [here]
    return [each for part in parts for each in _halves(of, part, a, sides)]


class _DiscPlan(NamedTuple):
    """Points that a rule for some boxes needs, infinitely many where no ellipse will do; the ellipses, and the place
    of the best."""

    points: float
    ellipses: list[Ellipse]
    best: int


def _plan_of_disc(of: Boxes, here: slice, a: float, target: float = TARGET, sides: int = 1) -> _DiscPlan:
    low, high = float(of.middle[here][0] - of.half[here][0]), float(of.middle[here][-1] + of.half[here][-1])
    nats = math.log(float(of.steps[here].sum())) + target
    found = disc_ellipses(low, high)
    points = [math.inf]
    exponents = sides**2 * _exponent(of.q, np.array([e.most for e in found]), a)
    for e, exponent in zip(found, exponents.tolist(), strict=True):
        size, rho = (e.factor if sides == 1 else e.of_pairs(of.q).factor) * exponent, e.rho
        points.append((nats + math.log(4 * size / (1 - 1 / rho))) / (2 * math.log(rho)) if size < 0.5 else math.inf)
    best = int(np.argmin(points))
    return _DiscPlan(max(1.0, points[best]), found, best - 1)


def _on_a_disc(of: Boxes, here: slice, a: float, group: float, target: float = TARGET, sides: int = 1):
    """Rows and fits of the rule of some boxes over (m^2 - s)/(m^2 + s)."""
    boxes = tuple(of.box[here].tolist())
    low, high = float(of.middle[here][0] - of.half[here][0]), float(of.middle[here][-1] + of.half[here][-1])
    needed, found, best = _plan_of_disc(of, here, a, target, sides)
    fits = []
    for e in compression._ellipses_of(boxes)[1::2]:
        size = compression._weight(of.off[here], of.steps[here], of.w[here].sum(axis=1), e.rho)
        fits.append(e.fit(group, of.q, sides, size))
    shift, weight = of.points(here)
    if needed == math.inf and found:  # as good as any
        best = len(found) // 2
        needed = compression.PRECISION / (2 * math.log(found[best].rho))
    if not needed < shift.size:
        return _rows(of.q, shift, weight), fits
    count = math.ceil(needed)
    tangent, centre = _tangent(low, high), low * high

    def place(m):
        s = m.astype(np.longdouble) ** 2
        return (s - centre) / ((s + centre) * tangent)

    x, weights = gauss_rule(place(shift).astype(float), weight, count)
    shifts = np.sqrt(centre * (1 + tangent * x) / (1 - tangent * x))
    shifts = np.clip(shifts, shift.min(), shift.max())
    off = misfit_upper(place, (8 + 1 / tangent) * LONG_U, (shift, weight), (shifts, weights), 2 * count + 8)
    before, total = weight.sum(keepdims=True), weights.sum(keepdims=True)
    narrower = [i for i in (best + 2, best + 4, best + 6) if i < len(found)]
    for e in (found[i] for i in (best, *narrower)):
        fits.append(e.fit(group + 1, of.q, sides, compression._weight(off, before, total, e.rho)))
    return _rows(of.q, shifts, weights), fits


def _by_orders(of: Boxes, here: slice, variance: float, group: float):
    """Rows and fits of the rule of boxes of small shifts over m^2, by the measure of m^2 times the steps."""
    middle, half = of.middle[here], of.half[here]
    high = float(middle[-1] + half[-1])
    square = high * high
    shift, weight = of.points(here)
    mass = weight * shift**2
    fits, most = [], (float((of.steps[here] * (middle + half) ** 2).sum()) + float(mass.sum())) / square * (1 + 1e-9)
    for rho in BOX_ELLIPSES:  # |f| <= (r_b/r) sup f of a smaller one
        r = (middle + half * 0.5 * (rho + 1 / rho)) ** 2
        each = [
            compression._weight(of.off[here][i : i + 1], of.steps[here][i : i + 1], of.w[here][i : i + 1].sum(), rho)
            for i in range(r.size)
        ]
        share = float(each @ r) / float(r.max()) * (1 + 1e-9)
        fits.append(Fit(group, of.q, high, float(r.max()) * (1 + 1e-12), share, most))
    count, best = _count_of_orders(of.q, square, float(mass.sum()), variance)
    if not count < shift.size:
        return _rows(of.q, shift, weight), fits

    def place(m):
        return 2 * m.astype(np.longdouble) ** 2 / np.longdouble(square) - 1

    x, masses = gauss_rule(place(shift).astype(float), mass, count)
    shifts = np.clip(np.sqrt(0.5 * square * (1 + x)), shift.min(), shift.max())
    weights = masses / shifts**2
    long, longs = shift.astype(np.longdouble), shifts.astype(np.longdouble)
    mine, its = weight.astype(np.longdouble) * long**2, weights.astype(np.longdouble) * longs**2
    off = misfit_upper(place, 9 * LONG_U, (shift, mine), (shifts, its), 2 * count + 8)
    before, total = (w.astype(float).sum(keepdims=True) * (1 + 1e-9) for w in (mine, its))
    both = float(before[0] + total[0]) / square * (1 + 1e-9)
    for stretch in STRETCHES[best]:
        axis = 2 * float(stretch) - 1
        reach, rho = square * float(stretch) * (1 + 1e-12), axis + math.sqrt(axis * axis - 1)
        share = float(compression._weight(off, before, total, rho)) / reach * (1 + 1e-9)
        fits.append(Fit(group + 1, of.q, high, reach, share, both))
    return _rows(of.q, shifts, weights), fits


def _exponent(q: float, m: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    """About |M(a'; m) - 1| at exponents a' that matter beside a, between those at whole exponents."""
    n = min(max(2, math.floor(a)), 23)
    size, more = _whole_exponent(q, m, n), _whole_exponent(q, m, n + 1)
    return 3 * size * (0.5 * a * (a - 1) if a < 2 else np.minimum(more / size, 1e150) ** min(a - n, 1))


def _whole_exponent(q: float, m: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    j = np.arange(2, n + 1)[:, None]
    log_choose = np.array([[math.log(math.comb(n, i))] for i in range(2, n + 1)]) + j * math.log(q)
    power = np.minimum(0.5 * j * (j - 1) * m * m, 300.0)
    return np.sum(np.exp(log_choose + power) * -np.expm1(-power), axis=0)


def _cost(rates: list[Boxes], a: float) -> float:
    """About K at an exponent, in nats."""
    return sum(float(of.steps @ _exponent(of.q, of.middle, a)) for of in rates) / 3


def _rows(q: float, shift, weight):
    return [(m, q, k) for m, k in zip(shift.tolist(), weight.tolist(), strict=True)]


def _tangent(low: float, high: float) -> float:
    """Half the width of a box on the disc, rounded up."""
    return (high - low) / (high + low) * (1 + 1e-12)


@functools.lru_cache(1024)
def disc_ellipses(low: float, high: float) -> list[Ellipse]:
    """The ellipses on the disc about the box with the larger half axes REACHES, as far as these are wider than the
    box [theory: compression.disc]."""
    tangent, centre = _tangent(low, high), low * high
    reach = np.array([[reach] for reach in REACHES if reach > 1.05 * tangent])
    rho = reach / tangent + np.sqrt((reach / tangent) ** 2 - 1)
    x, y = _circle()
    x, y = reach * x, 0.5 * tangent * (rho - 1 / rho) * y
    inside, ahead, behind = 1 - (x * x + y * y), (1 + x) ** 2 + y * y, (1 - x) ** 2 + y * y
    inside = np.minimum(inside[:, :-1], inside[:, 1:]) - 1e-12
    high2, back = ahead[:, :-1] * ROOM, behind[:, 1:] * ROOM
    imag = 2 * centre * np.maximum(y[:, :-1], y[:, 1:]) / behind[:, :-1] * ROOM
    size_lower = centre * np.sqrt(ahead[:, 1:] / back) / ROOM
    found = compression.on_arcs(
        centre * high2 / inside * ROOM,
        centre * inside / back / ROOM,
        inside / np.sqrt(high2 * back) / ROOM,
        imag,
        size_lower,
    )
    return [Ellipse(*row) for row in zip(rho[:, 0].tolist(), *(bound.tolist() for bound in found), strict=True)]


@functools.lru_cache(1)
def _circle():
    t = np.pi * np.arange(2 * ARCS + 1) / (2 * ARCS)
    return np.cos(t), np.sin(t)


def misfit_upper(place, error: float, steps, rule, degrees: int):
    """Bounds of what the Chebyshev moments of two sides (m, weights) differ by, place(m) being off by `error`
    [theory: compression.moments]."""
    degree = np.arange(degrees)
    each = (1.5 * LONG_U + error) * degree**2 + 4 * LONG_U
    sums, rounded = [], np.zeros(degrees, np.longdouble)
    for m, w in (steps, rule):
        w = w.astype(np.longdouble)
        sums.append(w @ chebyshev(place(m), degrees))
        rounded += sums[-1][0] * (each + (m.size + 4) * LONG_U)
    return ((np.abs(sums[0] - sums[1]) + rounded) * (1 + 1e-9)).astype(float)[None]


@functools.lru_cache(1)
def _signs():
    """The binomials of (e^v - 1)^j with their signs."""
    return np.array([[(-1) ** (j - i) * math.comb(j, i) for i in range(ORDERS)] for j in range(ORDERS)], dtype=float)


def _powers(r: NDArray[np.float64]) -> NDArray[np.float64]:
    """About E (e^v - 1)^j, [j, r]."""
    at, i = np.maximum(r, NEAR), np.arange(ORDERS)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        found = _signs() @ np.exp(np.minimum(0.5 * i * (i - 1) * at, 300.0))
    return np.maximum(found, 0) * (r / at) ** np.ceil(i / 2)


def _count_of_orders(q: float, square: float, mass: float, variance: float):
    """(number of points, stretches that serve an order best) of a rule for small shifts."""
    a = 1 + FREQUENCY / math.sqrt(variance)
    r = square * STRETCHES
    rho = 2 * STRETCHES - 1 + np.sqrt((2 * STRETCHES - 1) ** 2 - 1)
    size, term = _powers(r), np.ones(1)
    terms = []
    for j in range(ORDERS):
        terms.append(term * size[j])
        term = term * abs(a - j) / (j + 1) * q if j else term * a * q
    terms = np.array(terms)[2:] * 4 * mass / r / (1 - 1 / rho)
    for count in range(2, 16):
        left = terms * rho ** (-2.0 * count)
        if left.min(axis=1).sum() < math.exp(-TARGET):
            break
    return count, sorted({0, 1, *left.argmin(axis=1).tolist()})
