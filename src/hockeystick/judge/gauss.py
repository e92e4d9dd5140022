"""Pairs of Gaussian mixtures: plain, sampled, truncated, without replacement, random shifts.

A branch is num = sum_i a_i N(alpha_i, 1), den = sum_j b_j N(beta_j, 1) with weights that sum to 1; a law is a public
mixture of branches. With A(x) = sum a_i e^{alpha_i x - alpha_i^2/2}, B likewise, num = phi A, den = phi B, L(x) = log A
- log B, and

    M(z) = int phi A^{1+z} B^{-z} dx,    z = c + iy, c > 0.

Every pair used has all alpha >= 0 >= beta or all alpha <= 0 <= beta, so that L is monotone.

Quadrature. Let b > 0 with b (max alpha - min alpha) < pi and the same for beta. The terms of A(x + ib) lie in a sector
of angle below pi, so A(x + ib) is not 0, |A(x + ib)| <= A(x), |B(x + ib)| >= cos(b (max beta - min beta)/2) B(x), and
the integrand is analytic in the strip. A trapezoid rule of mesh h on a line inside, at distance t from both edges,
misses the integral by at most (J1 + J2)/(e^{2 pi t/h} - 1), J = int |f| on an edge [Trefethen and Weideman 2014, Thm
5.1]. At y = 0 the line is the real axis. For y > 0 it is Im x = +-t between 0 and +-2t, with the sign that makes arg A
- arg B >= 0: then |f| falls with y on all of the strip, no node turns fast, and J at y = 0 serves. On Im x = b, with f
at y = 0 on the right,
    |f(x + ib)| <= f(x) e^{E}, E = b^2/2 + (1+c) log|A(x+ib)/A(x)| - c log|B(x+ib)/B(x)|,
and J is summed over cells of width d: E is bounded over a cell by ball arithmetic, and the mass of f is at most d
f(mid) e^{G d^2/8 + |s| d/2}, s = (log f)'(mid), G >= |(log f)''| on the cell: 1 and variances of shifts, at most
spread^2/4 [Popoviciu] and at most the mean square distance from any one shift. Beyond x = R cells follow in each of
which f is at most its bound from the ends of the cell, A and B being monotone, up to an R' from which on A grows at
most by e^{max alpha (x - R')}, B at least by e^{min beta (x - R')}, phi at least by e^{-R' (x - R')}: an exponential
with exponent R' - (1+c) max alpha + c min beta > 0. A sum with mesh h over a cell of width w has at most w/h + 1 terms,
and over an exponential of exponent r it is at most h + 1/r. Mirrored on the left.

Falling off. Move the path of integration to x + i l(x), l continuous, piecewise linear and 0 far out, with the sign
that makes arg A - arg B >= 0. Then for y > 0
    |M(c + iy)| <= int f(x) e^{E(x)} dx,
    E = l^2/2 + (1+c) log|A(x+il)/A(x)| - c log|B(x+il)/B(x)| - y (arg A - arg B)(x + il) + log(1 + l'^2)/2,
which does not rise with y: its value at Y serves all y >= Y. M(c) less that is summed over cells: E is bounded over a
cell by ball arithmetic; where E < 0 the mass of f counts at least d f(mid) e^{-G d^2/24} (Jensen), elsewhere at most as
above."""

from __future__ import annotations

import itertools
import math

import numpy as np
from flint import acb, arb

from .atoms import Atoms
from .balls import UndecidedError, about, between, exponential_sums, floor_log, normal_above, tilted

MAX_NODES = 20_000
CELLS = 160
WIDEST = 1e4
"""The largest tilt times largest distance of shifts: planning visits so many places."""
MAX_CELLS = 5000
"""Cells of a tail, which grow as they can."""


class Gauss:
    """A public mixture of branches (weight, [(a_i, alpha_i)], [(b_j, beta_j)]), all arb."""

    lattice = None
    atoms = None

    def __init__(self, branches):
        self.branches = [(w, sorted(a, key=_shift), sorted(b, key=_shift)) for w, a, b in branches]
        self.mass_inf = arb(0)
        self._least = {}

    def reversed(self) -> Gauss:
        return Gauss([(w, b, a) for w, a, b in self.branches])

    def sampled(self, q: arb) -> Gauss:
        """The law of a Poisson sample of rate q: q num + (1-q) den against den."""
        return Gauss(
            [(w, [*((q * x, s) for x, s in a), *(((1 - q) * x, s) for x, s in b)], b) for w, a, b in self.branches]
        )

    @property
    def plain(self) -> arb | None:
        """The shift, where the law is that of N(m) against N(0)."""
        (_, a, b), *others = self.branches
        return None if others or len(a) > 1 or len(b) > 1 else abs(a[0][1] - b[0][1])

    def steepest(self) -> float:
        """A tilt beyond which a quadrature has too many nodes. For planning only."""
        return 1e17 if self.plain is not None else WIDEST / max(about(_rate(a, b)) for _, a, b in self.branches)

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), and mean and variance of the loss tilted by c. For planning only."""
        if self.plain is not None:
            m2 = about(self.plain) ** 2
            return 0.5 * m2 * c * (1 + c), m2 * (0.5 + c), m2
        logs, losses = [], []
        for w, a, b in self._doubles():
            x = np.linspace(*_span((a, b), c, 40.0), 600)
            log_a, log_b = _log_sum(a, x), _log_sum(b, x)
            losses.append(log_a - log_b)
            logs.append(
                math.log(w)
                - 0.5 * x * x
                + (1 + c) * log_a
                - c * log_b
                + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
            )
        return tilted(np.concatenate(logs), np.concatenate(losses))

    def _doubles(self):
        return [
            (max(about(w), 1e-300), *(tuple(np.array([about(t[i]) for t in side]) for i in (0, 1)) for side in (a, b)))
            for w, a, b in self.branches
        ]

    # The transform

    def mgf(self, c: arb, nats: float) -> arb:
        """M(c), to about e^-nats relative."""
        if self.plain is not None:
            return (self.plain**2 * c * (1 + c) / 2).exp()
        weights, _, error = self._points(c, False, nats)
        return sum(weights, arb(0)) + error

    def values(self, c: arb, h: arb, count: int, nats: float) -> list[acb]:
        """M(c + inh), n = 0..count-1."""
        if self.plain is not None:
            half = self.plain**2 / 2
            return [(half * (z * (1 + z))).exp() for z in (acb(c, n * h) for n in range(count))]
        weights, losses, error = self._points(c, True, nats)
        return [v + acb(error, error) for v in exponential_sums(weights, losses, h, count)]

    def _points(self, c: arb, lifted: bool, nats: float):
        """Weights and losses of a quadrature for M(c), `lifted`: for M(c + iy), y >= 0, and a ball for what it
        misses."""
        weights, losses, error = [], [], arb(0)
        for w, a, b in self.branches:
            part = _trapezoid(a, b, c, lifted, nats)
            weights += [w * x for x in part[0]]
            losses += part[1]
            error += w * part[2]
        return weights, losses, error

    def falloff_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')|/M(c) for all y' >= y."""
        if self.plain is not None:
            return (-(self.plain**2) * y * y / 2).exp().upper()
        total, gap = arb(0), arb(0)
        for w, a, b in self.branches:
            mass = self._mass(a, b, c)
            total += w * mass
            gap += w * _gap_lower(a, b, c, y)
        return (1 - gap / total).upper()

    def _mass(self, a, b, c: arb) -> arb:
        key = id(a), about(c)
        if key not in self._least:
            self._least[key] = _mass(a, b, c)
        return self._least[key]

    def top(self) -> arb | None:
        """The largest loss; None where there is none."""
        best = None
        for _, a, b in self.branches:
            if a[-1][1] - b[0][1] < b[-1][1] - a[0][1]:
                a, b = a[::-1], b[::-1]
            if not (a[-1][1] - b[-1][1]).is_zero():
                return None
            end = (a[-1][0] / b[-1][0]).log()
            best = end if best is None else best.max(end)
        return best

    # Laws with few outcomes on both sides of this one

    def revealed(self) -> Atoms:
        """A law that dominates this one: the component of the mixture is told with the output, components of one shift
        on both sides being one. Leaving the name of the component out is post-processing."""
        outcomes = []
        for w, a, b in self.branches:
            for x, s in a:
                shared = [y for y, t in b if (t - s).is_zero()]
                outcomes.append((w * x, w * shared[0] if shared else arb(0)))
            outcomes += [(arb(0), w * y) for y, t in b if not any((t - s).is_zero() for _, s in a)]
        return Atoms(outcomes)

    def least_gap(self) -> float:
        """About the least distance of two shifts of one branch. For planning only."""
        gaps = [math.inf]
        for _, a, b in self.branches:
            shifts = sorted({about(s) for _, s in (*a, *b)})
            gaps += [t - s for s, t in itertools.pairwise(shifts)]
        return min(gaps)

    def coarse(self) -> Atoms:
        """A law that this one dominates: of the output only the interval between midpoints of shifts is told, counted
        from the one around 0, and the branch is not."""
        told: dict[int, tuple[arb, arb]] = {}
        for w, a, b in self.branches:
            shifts = sorted({about(s): s for _, s in (*a, *b)}.items())
            middles = [((s + t) / 2).mid() for (_, s), (_, t) in itertools.pairwise(shifts)]
            above = [
                [arb(1), *(sum((x * normal_above(m - s) for x, s in side), arb(0)) for m in middles), arb(0)]
                for side in (a, b)
            ]
            pairs = zip(itertools.pairwise(above[0]), itertools.pairwise(above[1]), strict=True)
            first = -sum(about(s) < 0 for _, s in shifts)
            for place, ((p, r), (q, s)) in enumerate(pairs, first):
                num, den = told.get(place, (arb(0), arb(0)))
                told[place] = num + w * (p - r), den + w * (q - s)
        return Atoms([(n.nonnegative_part(), d.nonnegative_part()) for n, d in told.values()])

    # One step

    def delta(self, eps: arb) -> arb:
        """The curve of one step."""
        return sum((w * _one_step(a, b, eps) for w, a, b in self.branches), arb(0))


def _shift(term) -> float:
    return about(term[1])


def _log_sum(side, x):
    coefficient, shift = side
    terms = np.log(np.maximum(coefficient, 1e-300))[:, None] + shift[:, None] * x - 0.5 * shift[:, None] ** 2
    top = terms.max(axis=0)
    return top + np.log(np.exp(terms - top).sum(axis=0))


def _sum(side, x: arb) -> arb:
    """A(x) or B(x)."""
    return sum((a * (s * (x - s / 2)).exp() for a, s in side), arb(0))


def _spread(side) -> arb:
    return side[-1][1] - side[0][1]


def _rate(a, b) -> arb:
    return abs(a[-1][1] - b[0][1]).max(abs(b[-1][1] - a[0][1]))


def _phi(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def _trapezoid(a, b, c: arb, lifted: bool, nats: float):
    """Weights, losses and a ball for the error of the trapezoid rule on the real axis, or on the line Im x =
    +-strip."""
    tilt = about(c)
    strip, log_mass = _plan_strip(a, b, tilt, lifted, nats)
    edge = arb(strip)
    missed = _on_strip_upper(a, b, c, 2 * edge if lifted else edge, nats)
    missed += _on_strip_upper(a, b, c, arb(0), nats) if lifted else missed
    h = 2 * math.pi * strip / (nats + 1 + max(floor_log(missed) - log_mass, 0.0))
    lost = -c * (edge * _spread(b) / 2).cos().log() if lifted else arb(0)
    low, high = _span(_doubles(a, b), tilt, nats + 6 + about(lost))
    first, last = math.floor(low / h), math.ceil(high / h)
    if last - first > MAX_NODES:
        raise UndecidedError(f"the transform of a step needs {last - first} nodes, more than {MAX_NODES}")
    rises = not a[-1][1] - b[0][1] < b[-1][1] - a[0][1]
    line = acb(0, strip if rises else -strip) if lifted else arb(0)
    scale = arb(h) / (2 * arb.pi()).sqrt()
    weights, losses = [], []
    for j in range(first, last + 1):
        x = arb(j) * h + line
        top, bottom = _log(a, x), _log(b, x)
        losses.append(top - bottom)
        weights.append(scale * ((1 + c) * top - c * bottom - x * x / 2).exp())
    beyond = _beyond_upper(a, b, c, arb(last) * h, h) + _beyond_upper(*_mirrored(a, b), c, -arb(first) * h, h)
    if lifted:
        beyond *= (edge * edge / 2 + lost).exp()
    missed /= (2 * arb.pi() * edge / h).exp() - 1
    return weights, losses, arb(0, (missed + beyond).abs_upper())


def _log(side, x):
    """log A(x) or log B(x), real on the real axis and continuous in the strip: what is left of e^{first shift x} has an
    angle below pi."""
    s = side[0][1]
    rest = sum((a * ((t - s) * (x - (t + s) / 2)).exp() for a, t in side[1:]), side[0][0])
    return s * (x - s / 2) + rest.log()


def _plan_strip(a, b, tilt: float, lifted: bool, nats: float) -> tuple[float, float]:
    """The distance of the line from the edges of the strip that allows the largest mesh, and log M(c). For planning
    only."""
    doubles = _doubles(a, b)
    spread, width = (max(float(np.ptp(doubles[i][1])) for i in own) for own in ((0, 1), (1,)))
    limit = min(0.99 * math.pi / spread if spread > 0 else math.inf, 10 * math.sqrt(nats))
    x, dx = np.linspace(*_span(doubles, tilt, nats - tilt * math.log(math.cos(limit * width / 2))), 500, retstep=True)
    log_f, _, turned = _at(doubles, x, tilt)
    total = log_f.max() + math.log(np.exp(log_f - log_f.max()).sum())
    log_f -= total
    best = (0.0, 0.0)
    for i in range(16):
        edge = limit * 0.75**i
        size_a, size_b, _ = turned(np.full(500, edge))
        e = log_f + (1 + tilt) * np.log(size_a) - tilt * np.log(size_b)
        cost = nats + 2 + edge**2 / 2 + max(float(e.max()) + math.log(np.exp(e - e.max()).sum()), 0.0)
        strip = edge / 2 if lifted else edge
        if 2 * math.pi * strip / cost > best[1]:
            best = strip, 2 * math.pi * strip / cost
    return best[0], float(total + math.log(dx / math.sqrt(2 * math.pi)))


def _on_strip_upper(a, b, c: arb, up: arb, nats: float) -> arb:
    """At least int |f| on the line Im x = +-up at y = 0: cell by cell, in ball arithmetic."""
    spread_a, spread_b = _spread(a), _spread(b)
    if not (up * spread_a < arb.pi() and up * spread_b < arb.pi()):
        raise UndecidedError("the strip of a step's transform is too wide")
    least = (up * spread_b / 2).cos()
    nats -= about(c) * math.log(about(least))
    low, high = _span(_doubles(a, b), about(c), nats)
    cells = max(min(int((high - low) / 0.25), 300), 40)
    d = (high - low) / cells
    total = arb(0)
    for i in range(cells):
        at = low + d * (i + 0.5)
        whole, point = arb(at, 0.5000001 * d), arb(at)
        top, bottom = _sum(a, point), _sum(b, point)
        slope = abs((1 + c) * _mean(a, point) / top - c * _mean(b, point) / bottom - point)
        grows = slope * d / 2 + _curved_upper(a, b, c, whole) * arb(d) ** 2 / 8
        if not up.is_zero():
            size_a, size_b = _turned(a, whole, up)[0], _turned(b, whole, up)[0]
            grows += (1 + c) * size_a.upper().min(arb(1)).log() - c * size_b.lower().max(least).log()
        total += (grows.upper() + c * (top / bottom).log()).exp() * d * top * _phi(point)
    ends = _beyond_upper(a, b, c, arb(high), 0.0) + _beyond_upper(*_mirrored(a, b), c, -arb(low), 0.0)
    return (total + ends * (-c * least.log()).exp()) * (up * up / 2).exp()


def _mean(side, x: arb) -> arb:
    return sum((a * s * (s * (x - s / 2)).exp() for a, s in side), arb(0))


def _curved_upper(a, b, c: arb, x: arb) -> arb:
    """At least |(log f)''| on the ball x; where the cell is short for the spread alone, that bound serves."""
    anywhere = 1 + (1 + c) * _spread(a) ** 2 / 4 + c * _spread(b) ** 2 / 4
    if anywhere * x.rad() * x.rad() < 0.1:
        return anywhere
    return 1 + (1 + c) * _variance_upper(a, x) + c * _variance_upper(b, x)


def _variance_upper(side, x: arb) -> arb:
    """At least the variance of the shifts with the weights of the terms of A, or of B, at any place of the ball x."""
    _, first = max((about(a.log() + s * (x - s / 2)), i) for i, (a, s) in enumerate(side))
    base = side[first][1]
    square = arb(0)
    for a, s in side:
        rest = sum((o / a * ((t - s) * (x - (t + s) / 2)).exp() for o, t in side), arb(0)).lower()
        square += (s - base) * (s - base) / rest.max(arb(1))
    return square.upper().min((_spread(side) ** 2 / 4).upper())


def _mirrored(a, b) -> tuple[list, list]:
    """The branch with x for -x."""
    return [(w, -s) for w, s in reversed(a)], [(w, -s) for w, s in reversed(b)]


def _doubles(a, b):
    """Weights and shifts of both sides as doubles. For planning only."""
    return [tuple(np.array([about(t[i]) for t in side]) for i in (0, 1)) for side in (a, b)]


def _span(doubles, tilt: float, nats: float) -> tuple[float, float]:
    """Ends of an interval outside of which f at y = 0 is e^-nats of its largest value and less. For planning only."""
    (_, alpha), (_, beta) = doubles
    room = math.sqrt(2 * nats) + 2
    low = min((1 + tilt) * alpha.min() - tilt * beta.max(), 0.0) - room
    high = max((1 + tilt) * alpha.max() - tilt * beta.min(), 0.0) + room
    if high - low < 4 * room:
        return low, high
    x = np.linspace(low, high, int((high - low) / 0.25) + 100)
    log_f = (1 + tilt) * _log_sum(doubles[0], x) - tilt * _log_sum(doubles[1], x) - 0.5 * x * x
    inside = np.flatnonzero(log_f > log_f.max() - nats)
    return float(x[max(inside[0] - 1, 0)]), float(x[min(inside[-1] + 1, x.size - 1)])


def _beyond_upper(a, b, c: arb, edge: arb, h: float) -> arb:
    """At least int f over [edge, inf), and at least h times the sum of f at places there at distances h."""
    far = (1 + c) * a[-1][1] - c * b[0][1] + 8

    def size(top: arb, bottom: arb, near: arb) -> arb:
        return ((1 + c) * top.log() - c * bottom.log() - near * near / 2).exp()

    here, width = (_sum(a, edge), _sum(b, edge)), 0.25
    enough, total = 8 * size(*here, edge), arb(0)
    for _ in range(MAX_CELLS):
        if edge >= far and edge > 0:
            return (total + size(*here, edge) * (h + 1 / (edge - far + 8))) / (2 * arb.pi()).sqrt()
        next_edge = (edge + width).mid()
        there = _sum(a, next_edge), _sum(b, next_edge)
        near = arb(0) if edge <= 0 <= next_edge else min(abs(edge), abs(next_edge), key=about)
        own = size(here[0].max(there[0]), here[1].min(there[1]), near) * (next_edge - edge + h)
        if own <= enough or width < 1e-3:
            total, edge, here, width = total + own, next_edge, there, 1.5 * width
        else:
            width /= 2
    raise UndecidedError("the tail of a step's transform was not reached")


def _mass(a, b, c: arb) -> arb:
    weights, _, error = _trapezoid(a, b, c, False, 45.0)
    return sum(weights, arb(0)) + error


def _turned(side, x: arb, lift: arb) -> tuple[arb, arb]:
    """(|A(x + ib)|/A(x), arg A(x + ib)) for x and b in balls. With weights p of the terms at x the ratio is e^{i b s_0}
    (1 + sum_{j > 0} p_j (e^{i b (s_j - s_0)} - 1)), which loses nothing where b or p is small."""
    inner, first = acb(1), side[0][1]
    for a, s in side[1:]:
        ratio = sum((o / a * ((t - s) * (x - (t + s) / 2)).exp() for o, t in side), arb(0))
        inner += acb(0, lift * (s - first)).expm1() / ratio
    return abs(inner), lift * first + inner.arg()


def _gap_lower(a, b, c: arb, y: arb) -> arb:
    """At most M(c) - |M(c + iy')| for all y' >= y: the head of the file."""
    tilt, reach = about(c), about(y)
    edges, lifts = _path(a, b, tilt, reach)
    total = arb(0)
    for low, high, one, two in zip(edges, edges[1:], lifts, lifts[1:], strict=False):
        if one == two == 0:
            continue
        whole, lift = between(low, high), between(one, two)
        d = arb(high) - arb(low)
        (size_a, angle_a), (size_b, angle_b) = _turned(a, whole, lift), _turned(b, whole, lift)
        angle = (angle_a - angle_b).lower()
        angle = angle if angle > 0 else arb(0)
        size = size_b.lower().max((abs(lift).upper() * _spread(b) / 2).cos())
        if not size > 0:
            return arb(0)
        slant = (arb(two) - arb(one)) / d
        e = (
            lift * lift / 2
            + (1 + c) * size_a.upper().min(arb(1)).log()
            - c * size.log()
            - y * angle
            + (1 + slant**2).log() / 2
        )
        e, curved = e.upper(), _curved_upper(a, b, c, whole)
        point = ((arb(low) + arb(high)) / 2).mid()
        top, bottom = _sum(a, point), _sum(b, point)
        here = d * _phi(point) * top * (c * (top / bottom).log()).exp()
        if e < 0:
            total += here * (-curved * d**2 / 24 - d**2 * 2.0**-40).exp() * (1 - e.exp())
        else:
            slope = abs((1 + c) * _mean(a, point) / top - c * _mean(b, point) / bottom - point)
            total -= here * (curved * d**2 / 8 + slope * d).exp() * (e.exp() - 1)
    total = total.lower()
    return total if total > 0 else arb(0)


def _path(a, b, tilt: float, reach: float):
    """Edges of cells and heights of the path there, for about the largest gap; height 0 at both ends. For planning
    only."""
    doubles = _doubles(a, b)
    spread = [float(np.ptp(shift)) for _, shift in doubles]
    widest = max(*spread, 1e-9)
    x = np.linspace(*_span(doubles, tilt, 30.0), 1200)
    log_f = _at(doubles, x, tilt)[0]
    bulk = np.flatnonzero(log_f > log_f.max() - 25)
    curve = 1 + (1 + tilt) * spread[0] ** 2 / 4 + tilt * spread[1] ** 2 / 4
    low, high = float(x[bulk[0]]), float(x[bulk[-1]])
    x = np.linspace(low, high, int(min(max((high - low) * math.sqrt(curve), 48), CELLS)) + 1)
    log_f, slope, turned = _at(doubles, x, tilt)
    f = np.exp(log_f - log_f.max())
    best, most = np.zeros(x.size), 0.0
    for cap in (1.0, 2.0, 2.8):
        for theta in (1.0, 0.6, 0.3, 0.1, 0.03):
            lift = np.clip(theta * reach * slope, -cap / widest, cap / widest)
            lift = np.clip(lift, -6.0, 6.0)
            lift[[0, -1]] = 0.0
            size_a, size_b, angle = turned(lift)
            e = lift**2 / 2 + (1 + tilt) * np.log(size_a) - tilt * np.log(size_b) - reach * angle
            e += 0.5 * np.log1p(np.gradient(lift, x) ** 2)
            gain = float((f * -np.expm1(np.minimum(e, 500.0))).sum())
            if gain > most:
                best, most = lift, gain
    return x.tolist(), best.tolist()


def _at(doubles, x, tilt: float):
    """log f, the slope of the loss, and (|A(x+ib)/A(x)|, |B(x+ib)/B(x)|, arg A - arg B) as a function of b. For
    planning."""
    parts, tops = [], []
    for coefficient, shift in doubles:
        logs = np.log(np.maximum(coefficient, 1e-300))[:, None] + shift[:, None] * x - 0.5 * shift[:, None] ** 2
        top = logs.max(axis=0)
        part = np.exp(logs - top)
        tops.append(top + np.log(part.sum(axis=0)))
        parts.append(part / part.sum(axis=0))

    def turned(lift):
        turns = [(p * np.exp(1j * lift * s[:, None])).sum(axis=0) for p, (_, s) in zip(parts, doubles, strict=True)]
        return (*(np.maximum(np.abs(t), 1e-300) for t in turns), np.angle(turns[0]) - np.angle(turns[1]))

    slope = [(p * s[:, None]).sum(axis=0) for p, (_, s) in zip(parts, doubles, strict=True)]
    return -0.5 * x * x + (1 + tilt) * tops[0] - tilt * tops[1], slope[0] - slope[1], turned


def _one_step(a, b, eps: arb) -> arb:
    """H = num(S) - e^eps den(S), S where A > e^eps B: a half-line. A ball that holds its end holds the curve."""
    if a[-1][1] - b[0][1] < b[-1][1] - a[0][1]:  # the loss falls: mirror x
        a, b = [[(w, -s) for w, s in reversed(side)] for side in (a, b)]
    price = eps.exp()

    def sign(x: arb) -> int:
        v = _sum(a, x) - price * _sum(b, x)
        return 1 if v > 0 else -1 if v < 0 else 0

    low, high, reach = arb(-1), arb(1), arb(2)
    while sign(low) >= 0 and reach < 2**34:
        low, reach = -reach, reach * 2
    reach = arb(2)
    while sign(high) <= 0 and reach < 2**34:
        high, reach = reach, reach * 2
    if sign(low) == 0 or sign(high) == 0:
        raise UndecidedError("eps is too near the end of a step's losses")
    if sign(low) > 0:  # S is all of the line, but for what lies below `low`
        return 1 - price + between(0, price * sum((w * normal_above(s - low) for w, s in b), arb(0)))
    if sign(high) < 0:
        last = a[-1][1] - b[-1][1]
        if last == 0 and a[-1][0] < price * b[-1][0]:
            return arb(0)
        return between(0, sum((w * normal_above(high - s) for w, s in a), arb(0)))
    while True:
        mid = ((low + high) / 2).mid()
        where = sign(mid)
        if where == 0 or not (low < mid < high):
            break
        low, high = (low, mid) if where > 0 else (mid, high)
    at = between(low, high) if where else between(*_around(sign, mid, low, high))
    return sum((w * normal_above(at - s) for w, s in a), arb(0)) - price * sum(
        (w * normal_above(at - s) for w, s in b), arb(0)
    )


def _around(sign, mid: arb, low: arb, high: arb) -> tuple[arb, arb]:
    """Points on both sides of `mid` at which the sign is certain, as near as can be."""
    step = (high - low).mid() / 2**8
    for _ in range(8):
        if sign((mid - step).mid()) < 0:
            low = (mid - step).mid()
        if sign((mid + step).mid()) > 0:
            high = (mid + step).mid()
        step = (step / 2**4).mid()
    return low, high
