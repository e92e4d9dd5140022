"""Rules for steps of many sampling rates: points on a grid of shifts and rates with real weights of either sign.

A run with more rates than are kept apart is known by its moments in boxes of shifts and cells of rates. log M is
analytic in both [theory: compression.strip, compression.rates], so that first every box of a cell becomes a small grid
of points, whose weights have these moments: a signed measure in place of the steps. Its points lie in spans of shifts
and of rates, about an octave each, and those of a span become one grid of fewer points, whose weights are sums over
them of one Lagrange polynomial of the shift times one of the rate [theory: compression.grid]. Weights of either sign
serve the nodes and the tilts of a line. Its tail is a sum of numbers that are not negative and has a rule of its own:
the steps of one or two cells of rates, taken at the lowest of these, by the Gauss rule of their shifts
[theory: compression.rates-tail].
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import _core, compression, step_moments, wide
from ._core import Rows
from .compression import Boxes, Fit, Ruled, _weight, boxes_of, rows_of_rule
from .gauss import gauss_rule
from .outward import LONG_U, U
from .step_moments import (
    BOXES,
    MOMENT_ERROR,
    StepMoments,
    chebyshev,
    ends_of_cells,
    places,
    places_of_cells,
)
from .wide import FREQUENCY, JUMPS, SMALL, TARGET, disc_ellipses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

WORTH = 0.4
"""Of the number of distinct steps: a rule with more rows is none."""
MARGIN = 3.0
"""Nats by which all points together may miss more than one rate."""
SPAN = 1.2
"""Octaves of a span of shifts or rates, about."""
RATE_PARTS = (0.97, 0.8, 0.6, 0.45, 0.3, 0.2, 0.12, 0.07)
"""Of the widest ellipse about a span of rates, which reaches to 0, those tried."""
CELL_PARTS = (0.6, 0.4, 0.25, 0.15, 0.09, 0.05, 0.03)
"""The larger half axes of the ellipses about a cell of rates, in parts of its middle."""
ORDERS_PART = 0.3
"""The same of the ellipse that bounds what such a cell does to late orders of small shifts."""
CELLS = (2, 1)
"""Cells of rates that the tail's rule takes together: the first number that loses at most LOSS_MOST."""
LOSS_MOST = 0.25
LEAST_SHARE = 0.2
"""Of the decay: where less of it counts, a line is too long."""
TAIL_NATS = 12.0
"""What the tail's rule leaves out of the number of steps."""
TAIL_HEAVY = 0.7
"""Part of the variance that the tail counts on, where one octave of shifts has so much."""
RATE_ERROR = 2.0**-55 + 4 * LONG_U
"""What the moments of a step in a cell are off by for its T_j(rate), and for how they are read."""
MOST_HELD = 20_000
"""Boxes times cells of a run that has a rule, of 3 kB each."""
MOST_POINTS = 128
"""Points of a span in one variable."""
NODES, TAIL, LOSS = _core.FIT_NODES, _core.FIT_TAIL, _core.FIT_LOSS


class Span:
    """An interval of a variable that goes to [-1, 1] by an increasing map, and its Chebyshev points."""

    def __init__(self, place, back, error: float, low: float, high: float, count: int):
        self.place, self.error, self.count = place, error, count
        """error: of place, in units of long double."""
        theta = np.pi * (np.arange(count, dtype=np.longdouble) + np.longdouble(0.5)) / count
        self.points = np.clip(back(np.cos(theta)).astype(float), low, high)
        self.chebyshev = chebyshev(place(self.points), count)
        """[points, degrees] of what the points are after they were rounded."""
        weigh = 2 * np.cos(np.outer(theta, np.arange(count))) / count
        weigh[:, 0] *= 0.5
        self.weigh = 2 * weigh - weigh @ (self.chebyshev.T @ weigh)
        """[points, degrees]: the weight of a point is this times the moments of what it stands for; by one of Newton's
        steps to the inverse, as the points were rounded."""

        at_ideal = self.weigh @ np.cos(np.outer(theta, np.arange(count))).T
        self.lebesgue_upper = (
            (1 + 2 / math.pi * math.log(count)) * float(np.abs(at_ideal).sum(axis=0).max()) * (1 + 1e-9)
        )
        """sum_b |lambda_b(x)| is at most this, lambda_b the polynomial with the coefficients `weigh`: interpolated from
        the points before they were rounded [theory: compression.grid]."""

    def moved_upper(self):
        """Bounds, [degrees], of what sum_b lambda_b(x) T_i(x_b) differs from T_i(x) by at every x of the interval, and
        where place(x) is off."""
        each = self.chebyshev.T @ self.weigh
        off = np.abs(each - np.eye(self.count, dtype=np.longdouble)).sum(axis=1)
        degree = np.arange(self.count)
        return (off + (2 * self.count * (self.count + 4) + (8 + 5 * self.error) * degree**2) * LONG_U).astype(float)


def _dyadic(t):
    return np.rint(t * 2.0**40) * 2.0**-40


def _fine(count: int) -> Span:
    """The points of a box or a cell, which scaling and moving leave exact."""
    return Span(lambda x: x.astype(np.longdouble), _dyadic, 0, -1.0, 1.0, count)


SHIFTS, RATES = _fine(step_moments.DEGREES), _fine(step_moments.RATE_DEGREES)


def _off_upper() -> NDArray[np.float64]:
    """Bounds, [1, degrees], of what the moments of the points of a box and a cell differ by from those of a step there,
    over all rates of the points [theory: compression.cells]."""
    sizes = float(np.abs(RATES.weigh).sum())
    degree = np.arange(SHIFTS.count)
    joins = (2 * (SHIFTS.count + RATES.count + 8) + 1.5 * degree**2) * LONG_U * float(np.abs(SHIFTS.weigh).sum())
    off = MOMENT_ERROR * RATES.lebesgue_upper + sizes * (RATE_ERROR + SHIFTS.moved_upper() + joins)
    return off[None] * (1 + 1e-9)


OFF_UPPER = _off_upper()


def _read(sums: NDArray[np.uint64]) -> NDArray[np.longdouble]:
    """Sums of three words over 2^110, each within four of its units."""
    minus = sums[..., 2] >> np.uint64(63) == 1
    size = np.where(minus[..., None], ~sums, sums).astype(np.longdouble)  # of a negative number less 1
    size = ((size[..., 2] * 2.0**64 + size[..., 1]) * 2.0**64 + size[..., 0] + minus) * np.longdouble(2.0) ** -110
    return np.where(minus, -size, size)


class Held(NamedTuple):
    """What is known of the steps in cells: by place, the boxes of shifts and the cells of rates that hold some, and
    matrices over these, [boxes, cells].

    cell, box : in ascending order.   low, high : ends of the cells.   moments : [boxes, cells, DEGREES, RATE_DEGREES].
    steps : number of steps.   m, q : mean shift and rate of each.
    """

    cell: NDArray[np.int64]
    box: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    moments: NDArray[np.longdouble]
    steps: NDArray[np.float64]
    m: NDArray[np.float64]
    q: NDArray[np.float64]

    @classmethod
    def of(cls, moments: StepMoments) -> Held | None:
        """What the moments say; None where the matrices would be too large."""
        keys = np.array(sorted(moments.cells))
        read = _read(np.stack([moments.cells[key] for key in keys.tolist()]))
        keys, read = keys[read[:, 0, 0] > 0], read[read[:, 0, 0] > 0]
        (cell, which), (box, where) = (np.unique(x, return_inverse=True) for x in (keys // BOXES, keys % BOXES))
        if not 0 < box.size * cell.size <= MOST_HELD:
            return None
        table = np.zeros((box.size, cell.size, *read.shape[1:]), np.longdouble)
        table[where, which] = read
        low, high = ends_of_cells(cell)
        steps: NDArray[np.float64] = table[..., 0, 0].astype(np.float64)
        middle, half = places(box)
        some = np.maximum(steps, 1.0)
        m = middle[:, None] + half[:, None] * table[..., 1, 0].astype(np.float64) / some
        q = 0.5 * (low + high) + 0.5 * (high - low) * table[..., 0, 1].astype(np.float64) / some
        return cls(cell, box, low, high, table, steps, m, q)

    def part(self, boxes: slice | NDArray[np.intp], cells: slice) -> Held:
        """The same of some boxes and cells."""
        steps, m, q = (x[boxes, cells] for x in (self.steps, self.m, self.q))
        moments = self.moments[boxes, cells]
        return Held(self.cell[cells], self.box[boxes], self.low[cells], self.high[cells], moments, steps, m, q)

    def mean_steps(self) -> Rows:
        """A step of the mean shift and the mean rate for each that holds some: what is planned by them enters no
        bound."""
        some = self.steps > 0
        order = np.argsort(self.m[some], kind="stable")
        m, q, k = (x[some][order] for x in (self.m, self.q, self.steps))
        return Rows(m, q, k)


def rule(moments: StepMoments, distinct: float = math.inf) -> Ruled | None:
    """The rule of steps in cells of rates, and of plain steps beside; None where it has hardly fewer rows than there
    are distinct steps, or rare jumps rule the line."""
    held = Held.of(moments)
    if held is None:
        return None
    rows, fits, squares = [], [], 0.0
    for of in boxes_of(moments):  # of plain steps
        row, fit = compression.plain_row(of)
        rows.append(row)
        fits.append(fit)
        squares = row[2]
    m, q, k = means = held.mean_steps()
    size = k * q * q * np.expm1(np.minimum(m * m, 50.0))
    variance = float(size.sum()) + squares
    tilt = 0.6 * FREQUENCY / math.sqrt(variance)
    if not _cost(m, q, k, 1 + tilt) < JUMPS * 0.5 * tilt * (1 + tilt) * variance:
        return None
    last = m[min(int(np.searchsorted(np.cumsum(size), 0.9 * size.sum())), m.size - 1)]  # larger ones would loosen all
    used = int(np.searchsorted(np.subtract(*places(held.box)), last, side="right"))
    tail, share = _tail(held.part(slice(0, used), slice(None)), 1 + tilt, variance, squares, fits)
    if share < LEAST_SHARE:
        return None
    nodes: list[tuple[float, float, float]] = []
    outline = []
    for here in _spans(held, 1 + tilt):
        if not _in_rates(here, 1 + tilt, variance, nodes, fits):
            return None
        outline.append(here.mean_steps())
    if len(fits) > _core.FITS_MAX or not len(rows) + len(tail) + len(nodes) < WORTH * distinct:
        return None
    drawn, light = _outline(outline, share)
    ruled = len(tail) + len(nodes)
    steps = rows_of_rule(rows + tail + nodes, fits, ruled, 1, len(nodes), rows + drawn + light, len(light))
    total = float(means.k.sum()) + sum(float(of.steps.sum()) for of in boxes_of(moments))
    return Ruled(steps, total, wide=True, apart=True)


def _spans(held: Held, a: float) -> Iterator[Held]:
    """Cells of about SPAN octaves of rates, and halves of these where one grid will not do."""
    edges = [0.0, *_cuts(float(held.low[0]), float(held.high[-1])), 1.0]
    for low, high in itertools.pairwise(edges):
        here = held.part(slice(None), slice(*np.searchsorted(held.low, (low, high)).tolist()))
        yield from _halves(here, a)


def _halves(here: Held, a: float) -> Iterator[Held]:
    here = here.part(np.flatnonzero(here.steps.any(axis=1)), slice(None))
    half = here.cell.size // 2
    if not here.cell.size:
        return
    parts = [here.part(slice(None), which) for which in (slice(0, half), slice(half, None))]
    if half and not _points_about(here, a) <= min(MOST_POINTS, sum(_points_about(part, a) for part in parts)):
        for part in parts:
            yield from _halves(part, a)
    else:
        yield here


def _points_about(here: Held, a: float) -> float:
    top = float(np.add(*places(here.box))[-1])
    return _points_of_rates(float(here.low[0]), float(here.high[-1]), top, float(here.steps.sum()), a)


def _cuts(low: float, high: float):
    """What divides an interval into parts of about SPAN octaves, as wide as each other."""
    parts = max(1, round(math.log2(high / low) / SPAN))
    return low * (high / low) ** (np.arange(1, parts) / parts)


def _cost(m, q, k, a: float) -> float:
    """About K at an exponent, in nats: a quarter of an octave of rates and shifts has its means."""
    total = 0.0
    for here in _cells(np.floor(4 * np.log2(q))):
        place = np.floor(4 * np.log2(m[here])).astype(int)
        place -= place.min()
        count = np.bincount(place, k[here])
        middle = np.bincount(place, k[here] * m[here])[count > 0] / count[count > 0]
        total += float(count[count > 0] @ wide._exponent(math.sqrt(np.mean(q[here] ** 2)), middle, a)) / 3
    return total


def _cells(cell):
    """The places of every value of `cell`, from the least on, each in their order."""
    cell = np.maximum(cell - cell.max(), -32768.0).astype(np.int16)  # of few bits, for the sort
    order = np.argsort(cell, kind="stable")
    ends = np.flatnonzero(np.diff(cell[order])) + 1
    return np.split(order, ends)


def _in_rates(here: Held, a: float, variance: float, nodes: list, fits: list) -> bool:
    """Points and fits of the steps of a span of rates; False where no ellipse will do."""
    middle, half = places(here.box)
    low, squares, top = middle - half, (middle + half) ** 2, float(here.high[-1])
    most = math.log1p(2 * SMALL * variance / (FREQUENCY * top) ** 2)
    small = (squares < most) & (wide._rest(top, squares, float(here.steps.sum()), variance) < -TARGET)
    cut = int(np.argmin(small)) if not small.all() else small.size
    parts: list[tuple[Callable[..., bool], Held, float]] = []
    if cut:
        parts = [(_by_orders, here.part(slice(0, cut), slice(None)), variance)]
    if cut < low.size:
        ends = cut + np.searchsorted(low[cut:], _cuts(low[cut], math.sqrt(squares[-1])))
        parts += [
            (_on_a_disc, here.part(slice(i, j), slice(None)), a) for i, j in itertools.pairwise([cut, *ends, low.size])
        ]
    return all(place(part, size, nodes, fits) for place, part, size in parts if part.box.size)


class Measure(NamedTuple):
    """The signed measure in place of steps: w[m, q] at shifts m and rates q.

    steps : number of steps of every box.   size : total variation of the points of every box.   low, high : ends of the
    shifts.   bottom, top : of the rates.
    """

    m: NDArray[np.float64]
    q: NDArray[np.float64]
    w: NDArray[np.float64]
    steps: NDArray[np.float64]
    size: NDArray[np.float64]
    low: float
    high: float
    bottom: float
    top: float

    @classmethod
    def of(cls, here: Held) -> Measure:
        """The one whose moments these are [theory: compression.cells]."""
        middle, half = places(here.box)
        centre, radius = places_of_cells(here.cell)
        m = middle[:, None] + half[:, None] * SHIFTS.points
        q = centre[:, None] + radius[:, None] * RATES.points
        per_rate = here.moments @ RATES.weigh.T
        w = (SHIFTS.weigh @ per_rate).astype(float).swapaxes(1, 2)  # [boxes, shifts, cells, rates]
        size = np.abs(w).sum(axis=(1, 2, 3)) * (1 + 1e-9)
        ends = float((middle - half)[0]), float((middle + half)[-1]), float(here.low[0]), float(here.high[-1])
        return cls(m.ravel(), q.ravel(), w.reshape(m.size, q.size), here.steps.sum(axis=1), size, *ends)

    def weights(self, boxes: slice, rho: float) -> float:
        """What the sums of an f over steps and points differ by at most in some boxes, |f| <= 1 on the ellipses about
        the boxes and at the rates of the points."""
        steps, size = float(self.steps[boxes].sum()), float(self.size[boxes].sum())
        off = steps * OFF_UPPER + 2 * U * size
        return _weight(off, steps * RATES.lebesgue_upper, size, rho)


def _about_cells(here: Held, high: float, weight_of, group: float) -> list[Fit]:
    """Fits of what the points of cells of rates are off by: of ellipses about all of them, as wide in parts of their
    middles as each other [theory: compression.cells]. weight_of: of a rho."""
    centre, radius = places_of_cells(here.cell)
    top, found = float(centre[-1]), []
    room = 0.97 * (1 / top - 1)
    for part in (part for part in (*CELL_PARTS, room, 0.5 * room) if part <= room and part < 1):
        most, least = top * (1 + part) * (1 + 1e-12), top * (1 - part) * (1 - 1e-12)
        axis = part * float((centre / radius).min()) * (1 - 1e-12)
        if axis > 1.5 and most < 1 and most * most < 2 * least:
            turn = max(math.asin(part), math.atan2(part * top, 1 - most)) * (1 + 1e-12)
            weight = weight_of(axis + math.sqrt(axis * axis - 1))
            found.append(Fit(group, most, high, 1.0, weight, turn=turn, least=least, of=NODES))
    return found


def _points_of_rates(low: float, high: float, m_top: float, count: float, a: float) -> float:
    """About how many points of rates leave e^-TARGET of a line's logarithms; infinitely many where no ellipse will
    do."""
    points = math.inf
    for rho, most, _, turn in _rate_ellipses(low, high):
        y = 0.55 * (a - 1)  # five standard deviations, as a - 1 is 0.6 FREQUENCY of them
        size = math.exp(min(y * turn, 300.0)) * 2 * float(wide._exponent(most, np.array([m_top]), a)[0])
        if size < 0.5:
            points = min(points, (math.log(count * 4 * size / (1 - 1 / rho)) + TARGET + MARGIN) / math.log(rho))
    return max(2.0, points)


def _rate_ellipses(low: float, high: float):
    """(rho, largest modulus, least real part, largest angle of 1 + U) of ellipses about a span of rates
    [theory: compression.rates]."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-12)
    found: list[tuple[float, float, float, float]] = []
    if not half > 0:
        return found
    for rho in (part * (middle + math.sqrt(low * high)) / half for part in RATE_PARTS):
        if rho < 1.2:
            continue
        wide_axis, axis = half * 0.5 * (rho + 1 / rho), half * 0.5 * (rho - 1 / rho)
        most, least = (middle + wide_axis) * (1 + 1e-12), (middle - wide_axis) * (1 - 1e-12)
        if least > 0 and most < 1 and most * most < 2 * least:
            turn = math.atan2(axis, math.sqrt(middle * middle - wide_axis * wide_axis))
            found.append((rho, most, least, max(turn, math.atan2(axis, 1 - most)) * (1 + 1e-12)))
    return found


def _grid(shifts: Span, rates: Span, m, q, w):
    """The moments [degrees of the shift, degrees of the rate] of a measure and a bound of what each is off by; and its
    total variation."""
    x, y = (chebyshev(span.place(at), span.count) for span, at in ((shifts, m), (rates, q)))
    sums = x.T @ w.astype(np.longdouble) @ y
    degree = np.arange(max(shifts.count, rates.count), dtype=float) ** 2
    total = float(np.abs(w).sum()) * (1 + 1e-9)
    of_shifts, of_rates = (2 + shifts.error) * degree[: shifts.count], 2 * degree[: rates.count]
    off = LONG_U * (m.size + q.size + 12 + of_shifts[:, None] + of_rates)  # a rate is off as moved_upper() has it
    return sums, total * off, total


def _weights(shifts: Span, rates: Span, sums, off, total: float):
    """Weights [shifts, rates] of the points; what the moments of the shifts are off by at most over all rates, [1,
    degrees]; the number of steps of all rates and of all points, without signs."""
    per_rate = rates.weigh @ sums.T
    weights = (shifts.weigh @ per_rate.T).astype(float)
    ours = weights.T.astype(np.longdouble) @ shifts.chebyshev
    degree = np.arange(shifts.count, dtype=float)
    rounded = (
        np.abs(weights).sum(axis=0)[:, None] * (4 * (shifts.count + 8) + (8 + 4 * shifts.error) * degree**2) * LONG_U
    )
    rounded = (
        rounded + np.abs(rates.weigh) @ off.T + 4 * (rates.count + 4) * LONG_U * np.abs(rates.weigh) @ np.abs(sums.T)
    )
    missed = (np.abs(per_rate - ours) + rounded) * (1 + 1e-9)
    both = total * rates.lebesgue_upper + float(np.abs(weights).sum())
    return weights, missed.astype(float).sum(axis=0)[None], both * (1 + 1e-9)


def _span_of_rates(low: float, high: float, count: int) -> Span:
    middle, half = 0.5 * (np.longdouble(low) + high), 0.5 * (np.longdouble(high) - low) * (1 + 1e-12)
    return Span(lambda x: (x.astype(np.longdouble) - middle) / half, lambda t: middle + half * t, 4, low, high, count)


def _append(m, q, weights, nodes: list) -> None:
    rows = zip(m.tolist(), weights.tolist(), strict=True)
    nodes += [(x, y, w) for x, row in rows for y, w in zip(q.tolist(), row, strict=True) if w]


def _on_a_disc(here: Held, a: float, nodes: list, fits: list) -> bool:
    """Points and fits of the steps of a span of shifts and rates, over (m^2 - s)/(m^2 + s)."""
    of = Measure.of(here)
    total, group = float(here.steps.sum()), 4.0 * len(fits) + 4
    moved, both = RATES.moved_upper()[None], 1 + RATES.lebesgue_upper
    about = _about_cells(here, of.high, lambda rho: _weight(total * moved, total * both, 0.0, rho), group + 3)
    for e in compression._ellipses_of(tuple(here.box.tolist()))[1::2]:
        fits.append(e.fit(group + 2, of.top, 1, of.weights(slice(None), e.rho))._replace(of=NODES))
    fits += about
    found = disc_ellipses(of.low, of.high)
    exponents = wide._exponent(of.top, np.array([e.most for e in found] or [1.0]), a)
    nats, points, best = math.log(total) + TARGET + MARGIN, math.inf, 0
    for i, (e, exponent) in enumerate(zip(found, exponents.tolist(), strict=False)):
        size, rho = e.factor * exponent, e.rho
        needed = (nats + math.log(4 * size / (1 - 1 / rho))) / math.log(rho) if size < 0.5 else math.inf
        points, best = min((points, best), (max(2.0, needed), i))
    per_rate = _points_of_rates(of.bottom, of.top, of.high, total, a)
    if not points * per_rate < 0.8 * of.w.size or max(points, per_rate) > MOST_POINTS:
        _append(of.m, of.q, of.w, nodes)
        return bool(about)
    tangent, centre = wide._tangent(of.low, of.high), of.low * of.high

    def place(x):
        s = x.astype(np.longdouble) ** 2
        return (s - centre) / ((s + centre) * tangent)

    def back(x):
        return np.sqrt(centre * (1 + tangent * x) / (1 - tangent * x))

    shifts = Span(place, back, 8 + 1 / tangent, of.low, of.high, math.ceil(points))
    rates = _span_of_rates(of.bottom, of.top, math.ceil(per_rate))
    sums, off, total = _grid(shifts, rates, of.m, of.q, of.w)
    weights, missed, both = _weights(shifts, rates, sums, off, total)
    _append(shifts.points, rates.points, weights, nodes)
    for e in (found[i] for i in (best, best + 2, best + 4, best + 6) if i < len(found)):
        fits.append(e.fit(group, of.top, 1, _weight(missed, both, 0.0, e.rho))._replace(of=NODES))
    for rho, most, least, turn in _rate_ellipses(of.bottom, of.top):
        size = _weight(total * rates.moved_upper()[None], total * (1 + rates.lebesgue_upper), 0.0, rho)
        fits.append(Fit(group + 1, most, of.high, 1.0, size, turn=turn, least=least, of=NODES))
    return bool(about)


def _by_orders(here: Held, variance: float, nodes: list, fits: list) -> bool:
    """The same of small shifts, by the measure of m^2 times the steps; orders of log M are powers of the rate, which
    interpolation carries exactly."""
    of = Measure.of(here)
    square = of.high * of.high * (1 + 1e-15)
    w = of.w * (of.m**2)[:, None]
    group = 4.0 * len(fits) + 4
    if not _cells_by_orders(here, of, square, float(np.abs(w).sum()), group + 2, fits):
        return False
    count, best = wide._count_of_orders(of.top, square, float((here.steps * here.m**2).sum()), variance)
    count *= 2
    small = np.flatnonzero(
        wide.orders(of.top, np.array([square]), float(here.steps.sum()), variance)[:, 0] < -TARGET - MARGIN
    )
    per_rate = 2 + 2 * int(small[0]) if small.size else wide.MOST_ORDERS
    if not count * per_rate < 0.8 * w.size:
        _append(of.m, of.q, of.w, nodes)
        return True

    def place(x):
        return 2 * x.astype(np.longdouble) ** 2 / np.longdouble(square) - 1

    def back(x):
        return np.sqrt(np.longdouble(square) * (1 + x) / 2)

    shifts, rates = Span(place, back, 9, 0.0, of.high, count), _span_of_rates(of.bottom, of.top, per_rate)
    sums, off, total = _grid(shifts, rates, of.m, of.q, w)
    masses, missed, both = _weights(shifts, rates, sums, off, total)
    weights = masses / (shifts.points**2)[:, None]
    missed = missed + 4 * U * (np.abs(masses).sum() + float(np.abs(rates.weigh).sum()) * total)  # and of m^2 w
    _append(shifts.points, rates.points, weights, nodes)
    everything = (total * (1 + rates.lebesgue_upper) + both) / square * (1 + 1e-9)
    for stretch in wide.STRETCHES[best]:
        axis = 2 * float(stretch) - 1
        rho, reach = axis + math.sqrt(axis * axis - 1), square * float(stretch) * (1 + 1e-12)
        share = _weight(missed, both, 0.0, rho) / reach * (1 + 1e-9)
        fits.append(Fit(group, of.top, of.high, reach, share, everything, of=NODES))
    moved = float(rates.moved_upper().max()) * total / square * (1 + 1e-9)
    fits.append(
        Fit(group + 1, of.top, of.high, square * (1 + 1e-12), moved, everything, least=float(per_rate), of=NODES)
    )
    return True


def _cells_by_orders(here: Held, of: Measure, square: float, size: float, group: float, fits: list) -> bool:
    """Fits of what the points of boxes of small shifts and cells of rates are off by, size the total variation of m^2
    times their weights; False where no ellipse will do [theory: compression.cells]."""
    middle, half = places(here.box)
    centre, radius = places_of_cells(here.cell)
    steps = float(of.steps @ (middle + half) ** 2) / square * (1 + 1e-9)
    count = (steps * RATES.lebesgue_upper + size / square) * (1 + 1e-9)
    for rho in wide.BOX_ELLIPSES:
        r = (middle + half * 0.5 * (rho + 1 / rho)) ** 2
        each = np.array([of.weights(slice(i, i + 1), rho) for i in range(r.size)])
        share = float(each @ r) / float(r.max()) * (1 + 1e-9)
        fits.append(Fit(group, of.top, of.high, float(r.max()) * (1 + 1e-12), share, count, of=NODES))
    both = 1 + RATES.lebesgue_upper
    part = min(ORDERS_PART, 0.5 * (1 / of.top - 1))
    axis = part * float((centre / radius).min()) * (1 - 1e-12)
    if not axis > 1.5:
        return False
    rho = axis + math.sqrt(axis * axis - 1)
    moved = steps * float(RATES.moved_upper().max()) * (1 + 1e-9)
    late = 2 * both * steps * rho ** float(-RATES.count) * (1 + 1e-9)
    reach, count = square * (1 + 1e-12), both * steps * (1 + 1e-9)
    fits.append(Fit(group + 1, of.top, of.high, reach, moved, count, of=NODES))
    fits.append(Fit(group + 2, of.top * (1 + part) * (1 + 1e-12), of.high, reach, late, count, of=NODES))
    return True


def _tail(here: Held, a: float, variance: float, squares: float, fits: list):
    """Rows for the tail alone, with their fits, and about which part of the steps' decay they count."""
    middle, half = places(here.box)
    top = float((middle + half)[-1])
    together = next(
        (n for n in CELLS if loss_of_rates_upper(2 ** (n / step_moments.CELLS), top) < 0.5 * LOSS_MOST), CELLS[-1]
    )
    first = np.flatnonzero(np.diff(here.cell // together, prepend=-1))
    last = np.append(first[1:], here.cell.size) - 1
    moments = (
        np.add.reduceat(here.moments[..., 0], first, axis=1).swapaxes(0, 1).astype(float)
    )  # [groups, boxes, degrees]
    group, box = np.nonzero(moments[..., 0])
    x, w = compression.gauss(moments[group, box])
    m = middle[box, None] + half[box, None] * x
    x = (m - middle[box, None]) / half[box, None]  # exactly, the half widths being powers of two
    t, error = chebyshev(x), MOMENT_ERROR + 4 * LONG_U
    off = compression._differences_upper(moments[group, box], t, w, error)
    parts, left, rows, most = [], squares, [], 1.0
    for i in range(first.size):
        at = np.flatnonzero(group == i)
        b = box[at]
        rate = float(here.low[first[i]])
        of = Boxes(rate, here.box[b], middle[b], half[b], moments[i, b, 0], m[at], w[at], off[at])
        sizes = rate**2 * np.sum(of.w * np.expm1(np.minimum(of.m**2, 50.0)), axis=1)
        for octave in np.unique(of.box // 8).tolist():
            part = slice(*np.searchsorted(of.box, (8 * octave, 8 * octave + 8)).tolist())
            parts.append((float(sizes[part].sum()), of, part, float(here.high[last[i]]) / rate))
    for size, of, part, ratio in sorted(parts, key=lambda part: -part[0]):
        if left > TAIL_HEAVY * variance:
            break
        left += size
        most = max(most, ratio * (1 + 1e-15))
        rule, more = wide._on_a_disc(of, part, a, 4.0 * len(fits) + 4, TAIL_NATS)
        rows += rule
        fits += [row._replace(of=TAIL) for row in more]
    share = math.exp(-2 * loss_of_rates_upper(most, top)) * (1 - 1e-9)
    fits.append(Fit(-1.0, float(here.high[-1]), top * (1 + 1e-12), share, of=LOSS))
    return rows, share * min(1.0, (left - squares) / (variance - squares))


def loss_of_rates_upper(ratio: float, m: float) -> float:
    """lambda with f_q(U) >= e^-lambda f_Q(U), the densities of U at rates 1 <= q/Q <= ratio and shifts up to m
    [theory: compression.rates-tail]."""
    if m > 10:  # far beyond use
        return math.inf
    part = 1 - 1 / ratio
    t = np.linspace(0, 3 * m * m, 4001)
    moved = np.log1p(part * np.expm1(t)) * (1 + 1e-12)
    bracket = 1.5 - (2 * t[:-1] - moved[1:]) / (2 * m * m)
    worst = float((moved[1:] * np.maximum(bracket, 0)).max())
    return (math.log(ratio) + worst) * (1 + 1e-9)


def _outline(spans: list[Rows], heavy: float):
    """A few steps that a line is placed by: those whose part `heavy` counts in the tail, and the rest of them."""
    drawn, light = [], []
    for m, q, k in spans:
        s, mass = m * m, k * m * m
        rate, place = math.sqrt(float(mass @ (q * q)) / float(mass.sum())), np.floor(8 * np.log2(m)).astype(int)
        place -= place.min()
        sums, masses = np.bincount(place, mass * s), np.bincount(place, mass)
        x, mass = gauss_rule(sums[masses > 0] / masses[masses > 0] / s[-1], masses[masses > 0], wide.OUTLINE)
        shift = np.sqrt(x * s[-1])
        count = mass / shift**2
        drawn += [(a, rate, n * heavy) for a, n in zip(shift.tolist(), count.tolist(), strict=True)]
        light += [(a, rate, n * (1 - heavy)) for a, n in zip(shift.tolist(), count.tolist(), strict=True)]
    return drawn, light
