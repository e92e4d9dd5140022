"""Rules for steps of many sampling rates: points on a grid of shifts and rates with real weights of either sign.

A run whose rates are all different has no measure over the shifts of one rate for wide.py to compress. Its steps lie in
spans of shifts and spans of rates, about an octave each, and log M is analytic in both
[theory: compression.strip, compression.rates]: interpolation between Chebyshev points in each of the two turns the
steps of a span into a grid of points, whose weights are sums over the steps, k times one Lagrange polynomial of the
shift times one of the rate. Weights of either sign serve the nodes and the tilts of a line. Its tail is a sum of
numbers that are not negative and has a rule of its own: the steps of a narrow cell of rates, taken at the lowest of
these, by the Gauss rule of their shifts [theory: compression.rates-tail].
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from . import _core, compression, wide
from .compression import UNIT, Fit, Ruled, _weight, ruled_of
from .what.pair import GaussianSteps
from .wide import FREQUENCY, JUMPS, SMALL, TARGET, disc_ellipses

U = 2.0**-53
FEWEST = 4000
"""Fewer distinct steps are summed as they are: no rule has a quarter of their rows."""
WORTH = 0.4
"""Of the number of steps: a rule with more rows is none."""
MARGIN = 3.0
"""Nats by which all points together may miss more than one rate."""
SPAN = 1.2
"""Octaves of a span of shifts or rates, about."""
RATE_PARTS = (0.97, 0.8, 0.6, 0.45, 0.3, 0.2, 0.12, 0.07)
"""Of the widest ellipse about a span of rates, which reaches to 0, those tried."""
CELLS = (16, 32, 64, 128)
"""Cells of rates to the octave of the tail's rule, the first of which loses at most LOSS_MOST."""
LOSS_MOST = 0.25
LEAST_SHARE = 0.2
"""Of the decay: where less of it counts, a line is too long."""
TAIL_NATS = 12.0
"""What the tail's rule leaves out of the number of steps."""
TAIL_HEAVY = 0.7
"""Part of the variance that the tail counts on, where one octave of shifts has so much."""
SLAB = 1 << 14
"""Steps whose moments are taken at a time."""
NODES, TAIL, LOSS = _core.FIT_NODES, _core.FIT_TAIL, _core.FIT_LOSS


class Span:
    """An interval of a variable that goes to [-1, 1] by an increasing map, and its Chebyshev points."""

    def __init__(self, place, back, error: float, low: float, high: float, count: int):
        self.place, self.error, self.count = place, error, count
        """error: of place, in units of long double."""
        theta = np.pi * (np.arange(count, dtype=np.longdouble) + np.longdouble(0.5)) / count
        self.points = np.clip(back(np.cos(theta)).astype(float), low, high)
        self.chebyshev = compression.chebyshev(place(self.points), count)
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
        return (off + (2 * self.count * (self.count + 4) + (8 + 4 * self.error) * degree**2) * UNIT).astype(float)


def rule(steps: GaussianSteps) -> Ruled | None:
    """The rule of steps of any rates; None where it is no smaller than they are or rare jumps rule the line."""
    plain = steps.q == 1
    squares = float(np.sum(steps.k[plain] * steps.shift[plain] ** 2))
    rows = [(1.0, 1.0, squares)] * bool(plain.any())
    fits = [compression.plain_fit(int(np.count_nonzero(plain)), squares)] * len(rows)
    m, q, k = (column[~plain] for column in steps)
    size = k * q * q * np.expm1(np.minimum(m * m, 50.0))
    variance = float(size.sum()) + squares
    tilt = 0.6 * FREQUENCY / math.sqrt(variance)
    if not _cost(m, q, k, 1 + tilt) < JUMPS * 0.5 * tilt * (1 + tilt) * variance:
        return None
    used = slice(0, 1 + int(np.searchsorted(np.cumsum(size), 0.9 * size.sum())))  # a few large shifts would loosen all
    tail, share = _tail(m[used], q[used], k[used], 1 + tilt, variance, squares, fits)
    if share < LEAST_SHARE:
        return None
    nodes: list[tuple[float, float, float]] = []
    outline, edges = [], [0.0, *_cuts(float(q.min()), float(q.max())), 1.0]
    for low, high in itertools.pairwise(edges):
        here = (low <= q) & (q < high)
        if here.any():
            span = GaussianSteps(m[here], q[here], k[here])
            _in_rates(span, 1 + tilt, variance, nodes, fits)
            outline.append(span)
    if len(fits) > _core.FITS_MAX or not len(rows) + len(tail) + len(nodes) < WORTH * steps.q.size:
        return None
    drawn, light = _outline(outline, share)
    return ruled_of(
        rows + tail + nodes,
        fits,
        float(steps.k.sum()),
        len(tail) + len(nodes),
        wide=True,
        apart=True,
        light=len(nodes),
        outline=np.array(rows + drawn + light, dtype=float).T.copy(),
        light_outline=len(light),
    )


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


def _in_rates(here: GaussianSteps, a: float, variance: float, nodes: list, fits: list) -> None:
    """Points and fits of the steps of a span of rates."""
    m, q, k = here
    top = float(q.max())
    squares = m * m
    most = math.log1p(2 * SMALL * variance / (FREQUENCY * top) ** 2)
    edges = squares[0] * 2.0 ** np.arange(0, max(1, math.ceil(math.log2(squares[-1] / squares[0]))) + 1)
    small = edges[(edges < most) & (wide._rest(top, edges, float(k.sum()), variance) < -TARGET)]
    cut = int(np.searchsorted(squares, small[-1], side="right")) if small.size else 0
    if cut:
        _by_orders(m[:cut], q[:cut], k[:cut], variance, nodes, fits)
    if cut < m.size:
        ends = cut + np.searchsorted(m[cut:], _cuts(m[cut], m[-1]))
        for first, last in zip([cut, *ends], [*ends, m.size], strict=True):
            if first < last:
                _on_a_disc(m[first:last], q[first:last], k[first:last], a, nodes, fits)


def _points_of_rates(q, m_top: float, count: float, a: float) -> float:
    """About how many points of rates leave e^-TARGET of a line's logarithms; infinitely many where no ellipse will
    do."""
    low, high = float(q.min()), float(q.max())
    if low == high:
        return 1
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


def _grid(shifts: Span, rates: Span, m, q, k):
    """The moments [degrees of the shift, degrees of the rate] of steps and a bound of what each is off by; and the
    number of steps."""
    sums = np.zeros((shifts.count, rates.count), np.longdouble)
    for at in range(0, m.size, SLAB):
        x, y = shifts.place(m[at : at + SLAB]), rates.place(q[at : at + SLAB])
        each = _core.rate_moments(x, y, k[at : at + SLAB], shifts.count, rates.count).astype(np.longdouble)
        sums += each[0] + each[1]
    degree = np.arange(max(shifts.count, rates.count), dtype=float) ** 2
    joins = 2.0**-69 + SLAB * 2.0**-76 + (m.size / SLAB + 8) * UNIT  # the squares of (SLAB + 8) u are below 2^-78
    total = float(k.sum()) * (1 + 1e-12)
    of_shifts, of_rates = (2 + shifts.error) * degree[: shifts.count], 2 * degree[: rates.count]
    off = joins + UNIT * (2 + of_shifts[:, None] + of_rates)  # a rate is off as the span's moved_upper() has it
    return sums, total * off, total


def _weights(shifts: Span, rates: Span, sums, off, total: float):
    """Weights [shifts, rates] of the points; what the moments of the shifts are off by at most over all rates, [1,
    degrees]; the number of steps of all rates and of all points, without signs."""
    per_rate = rates.weigh @ sums.T
    weights = (shifts.weigh @ per_rate.T).astype(float)
    ours = weights.T.astype(np.longdouble) @ shifts.chebyshev
    degree = np.arange(shifts.count, dtype=float)
    rounded = (
        np.abs(weights).sum(axis=0)[:, None] * (4 * (shifts.count + 8) + (8 + 4 * shifts.error) * degree**2) * UNIT
    )
    rounded = (
        rounded + np.abs(rates.weigh) @ off.T + 4 * (rates.count + 4) * UNIT * np.abs(rates.weigh) @ np.abs(sums.T)
    )
    missed = (np.abs(per_rate - ours) + rounded) * (1 + 1e-9)
    both = total * rates.lebesgue_upper + float(np.abs(weights).sum())
    return weights, missed.astype(float).sum(axis=0)[None], both * (1 + 1e-9)


def _span_of_rates(q, count: int) -> Span:
    low, high = float(q.min()), float(q.max())
    middle, half = 0.5 * (np.longdouble(low) + high), 0.5 * (np.longdouble(high) - low) * (1 + 1e-12)
    if half == 0:
        half = np.longdouble(1)
    return Span(lambda x: (x.astype(np.longdouble) - middle) / half, lambda t: middle + half * t, 4, low, high, count)


def _append(m, q, weights, nodes: list) -> None:
    nodes += [(x, y, w) for x, row in zip(m, weights.tolist(), strict=True) for y, w in zip(q, row, strict=True) if w]


def _keep(m, q, k, nodes: list) -> None:
    nodes += zip(m.tolist(), q.tolist(), k.tolist(), strict=True)


def _on_a_disc(m, q, k, a: float, nodes: list, fits: list) -> None:
    """Points and fits of the steps of a span of shifts and rates, over (m^2 - s)/(m^2 + s)."""
    low, high, top, total = float(m[0]), float(m[-1]), float(q.max()), float(k.sum())
    found = disc_ellipses(low, high) if low < high else []
    exponents = wide._exponent(top, np.array([e.most for e in found] or [1.0]), a)
    nats, points, best = math.log(total) + TARGET + MARGIN, math.inf, 0
    for i, (e, exponent) in enumerate(zip(found, exponents.tolist(), strict=False)):
        size, rho = e.factor * exponent, e.rho
        needed = (nats + math.log(4 * size / (1 - 1 / rho))) / math.log(rho) if size < 0.5 else math.inf
        points, best = min((points, best), (max(2.0, needed), i))
    per_rate = _points_of_rates(q, high, total, a)
    if not points * per_rate < 0.8 * m.size or max(points, per_rate) > _core.RATE_DEGREES:
        return _keep(m, q, k, nodes)
    tangent, centre = wide._tangent(low, high), low * high

    def place(x):
        s = x.astype(np.longdouble) ** 2
        return (s - centre) / ((s + centre) * tangent)

    def back(x):
        return np.sqrt(centre * (1 + tangent * x) / (1 - tangent * x))

    shifts = Span(place, back, 8 + 1 / tangent, low, high, math.ceil(points))
    rates = _span_of_rates(q, math.ceil(per_rate))
    sums, off, total = _grid(shifts, rates, m, q, k)
    weights, missed, both = _weights(shifts, rates, sums, off, total)
    _append(shifts.points.tolist(), rates.points.tolist(), weights, nodes)
    group = 2.0 * len(fits) + 2
    for e in (found[i] for i in (best, best + 2, best + 4, best + 6) if i < len(found)):
        fits.append(e.fit(group, top, 1, _weight(missed, both, 0.0, e.rho))._replace(of=NODES))
    for rho, most, least, turn in _rate_ellipses(float(q.min()), top):
        size = _weight(total * rates.moved_upper()[None], total * (1 + rates.lebesgue_upper), 0.0, rho)
        fits.append(Fit(group + 1, most, high, 1.0, size, turn=turn, least=least, of=NODES))
    return None


def _by_orders(m, q, k, variance: float, nodes: list, fits: list) -> None:
    """The same of small shifts, by the measure of m^2 times the steps; orders of log M are powers of the rate, which
    interpolation carries exactly."""
    low, high, top = float(m[0]), float(m[-1]), float(q.max())
    square = high * high * (1 + 1e-15)
    mass = k * m * m
    count, best = wide._count_of_orders(top, square, float(mass.sum()), variance)
    count *= 2
    small = np.flatnonzero(wide.orders(top, np.array([square]), float(k.sum()), variance)[:, 0] < -TARGET - MARGIN)
    per_rate = 1 if float(q.min()) == top else 2 + 2 * int(small[0]) if small.size else wide.MOST_ORDERS
    if not count * per_rate < 0.8 * m.size or low == high:
        return _keep(m, q, k, nodes)

    def place(x):
        return 2 * x.astype(np.longdouble) ** 2 / np.longdouble(square) - 1

    def back(x):
        return np.sqrt(np.longdouble(square) * (1 + x) / 2)

    shifts, rates = Span(place, back, 9, 0.0, high, count), _span_of_rates(q, per_rate)
    sums, off, total = _grid(shifts, rates, m, q, mass)
    masses, missed, both = _weights(shifts, rates, sums, off, total)
    weights = masses / (shifts.points**2)[:, None]
    missed = missed + 4 * U * (np.abs(masses).sum() + float(np.abs(rates.weigh).sum()) * total)  # and of m^2 k
    _append(shifts.points.tolist(), rates.points.tolist(), weights, nodes)
    everything = (total * (1 + rates.lebesgue_upper) + both) / square * (1 + 1e-9)
    group = 2.0 * len(fits) + 2
    for stretch in wide.STRETCHES[best]:
        axis = 2 * float(stretch) - 1
        rho, reach = axis + math.sqrt(axis * axis - 1), square * float(stretch) * (1 + 1e-12)
        share = _weight(missed, both, 0.0, rho) / reach * (1 + 1e-9)
        fits.append(Fit(group, top, high, reach, share, everything, of=NODES))
    moved = float(rates.moved_upper().max()) * total / square * (1 + 1e-9)
    exact = per_rate if per_rate > 1 else 0  # orders that interpolation carries, of a single rate all
    fits.append(Fit(group + 1, top, high, square * (1 + 1e-12), moved, everything, least=exact, of=NODES))
    return None


def _tail(m, q, k, a: float, variance: float, squares: float, fits: list):
    """Rows for the tail alone, with their fits, and about which part of the steps' decay they count."""
    parts, most, counts = [], 1.0, None if (k == 1).all() else k.astype(np.int64)
    top = float(m.max())
    to_octave = next((n for n in CELLS if loss_of_rates_upper(2 ** (1 / n), top) < 0.5 * LOSS_MOST), CELLS[-1])
    size, left = k * q * q * np.expm1(np.minimum(m * m, 50.0)), squares
    for here in sorted(_cells(np.floor(to_octave * np.log2(q))), key=lambda here: -float(size[here].sum())):
        if left > (TAIL_HEAVY + 1) / 2 * variance:
            break  # what is left is not counted
        left += float(size[here].sum())
        moments, rate = compression.StepMoments(), float(q[here].min())
        moments.add(m[here], rate, None if counts is None else counts[here])
        (of,) = moments.boxes()
        most = max(most, float(q[here].max()) / rate)
        sizes = rate**2 * np.sum(of.w * np.expm1(np.minimum(of.m**2, 50.0)), axis=1)
        for octave in np.unique(of.box // 8).tolist():
            part = slice(*np.searchsorted(of.box, (8 * octave, 8 * octave + 8)).tolist())
            parts.append((float(sizes[part].sum()), of, part))
    parts.sort(key=lambda part: -part[0])
    left, rows = squares, []
    for size, of, part in parts:
        if left > TAIL_HEAVY * variance:
            break
        left += size
        rule, more = wide._on_a_disc(of, part, a, 2.0 * len(fits) + 2, TAIL_NATS)
        rows += rule
        fits += [row._replace(of=TAIL) for row in more]
    share = math.exp(-2 * loss_of_rates_upper(most, top)) * (1 - 1e-9)
    fits.append(Fit(-1.0, float(q.max()), top * (1 + 1e-12), share, of=LOSS))
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


def _outline(spans: list[GaussianSteps], heavy: float):
    """A few steps that a line is placed by: those whose part `heavy` counts in the tail, and the rest of them."""
    drawn, light = [], []
    for m, q, k in spans:
        s, mass = m * m, k * m * m
        rate, place = math.sqrt(float(mass @ (q * q)) / float(mass.sum())), np.floor(8 * np.log2(m)).astype(int)
        place -= place.min()
        sums, masses = np.bincount(place, mass * s), np.bincount(place, mass)
        x, mass = compression.stieltjes(sums[masses > 0] / masses[masses > 0] / s[-1], masses[masses > 0], wide.OUTLINE)
        shift = np.sqrt(x * s[-1])
        count = mass / shift**2
        drawn += [(a, rate, n * heavy) for a, n in zip(shift.tolist(), count.tolist(), strict=True)]
        light += [(a, rate, n * (1 - heavy)) for a, n in zip(shift.tolist(), count.tolist(), strict=True)]
    return drawn, light
