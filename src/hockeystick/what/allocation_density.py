"""The density of log(S/t), S the sum of t independent lognormals of mean one, on a lattice: the loss of an epoch of
random allocation where sqrt(t) sigma/sensitivity is not small.

Symbols. v = m^2, X = exp(m g - v/2), d = X - 1, W = S - t = d_1 + .. + d_t, x = t(e^l - 1) the value of W at the loss
l, a = sqrt(t)/m. A line: tilt r, cut b of the normal variable with chi(g) = Phi((b-g)/eta), C(s) = E chi e^{-sd}.

Formulas [theory: allocation.line, allocation.cut].
    density of W at x = (1/P) sum_n e^{s_n x} C(s_n)^t + errors,  s_n = -r + 2 pi i n/P,
    C(s) = 1 - q0 + s q1 + E chi h2(-sd),  h2(z) = e^z - 1 - z,  q0 = E(1-chi),  q1 = E(1-chi)d;
the expectation by the trapezoid rule of mesh H. Points of the law are l_j = jh with masses h f(l_j) w(l_j), w a window
of two normal distribution functions [theory: allocation.points].

Error claims. The relative error of a mass is the sum of: what the rule in g misses; nodes beyond the last; aliases of
period P; what the cut leaves out, or what is not known of it (allocation_jumps.py); rounding, first order in u with
room to spare. What the window leaves out of the law is a probability, `lost`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..outward import U
from .allocation_epoch import PATHS
from .allocation_jumps import Jumps
from .allocation_line import (
    LAST,
    MESH_MIN,
    Line,
    Rule,
    exp,
    first_beyond,
    log_normal_tail_upper,
    log_tails_alone_upper,
    normal_cdf,
    tail_of,
)

SEEN, MISSED = 9.3, 10.4
"""y in deviations that the points serve, and what their aliases are beyond: e^-54."""

CUT = 0.05
"""eta m: what a cut is smoothed by."""

RARER, LARGEST = 120.0, 37.4
"""Nats, and the least place of a normal variable, from which a cut may be sharp."""

LEFT = 46.0
"""Nats by which what a cut rejects is rarer than what it leaves."""

JUMP, LOWERED, SELDOM = 3.0, 4.0, 70.0
"""Deviations of W of a term at the cut of allocation_jumps.py, and those from which a cut is lowered to it, where such
a term is not so much rarer, in nats, than the deviations that it saves."""

WORST = 0.1
"""Relative error of a point that ends them: one far from a tilt may be known roughly."""

REACH, JUMPS_REACH = 90.0, (400.0, 60.0, 1e5)
"""Deviations of W beyond which no line goes, and no points where one large term makes them up: of shallow windows, and
of deep ones where paths know what is beyond, and where they do not."""

DEEP = 130.0
"""Nats from which windows are deep."""

CELLS = 16
"""Of what lies beyond the points, to beyond the centre of the window; they grow from half a deviation on."""

SPANS, FAR_SPANS = (1.4, 4.0, 12.0, 40.0), (1.4, 4.0, 12.0, 40.0, 120.0, 400.0, 1200.0)
GROWN, PLACES = 1.04, 240
"""A window's width is tried up to so many times the least one, each so much larger than the one before, by tails at so
many places."""

STEP, NEIGHBOURS, FINE = 5.0, 3, 1e-8
"""Deviations from one place about which there is a line to the next; how many of the nearest ones are asked for a
point, and the relative error from which the next one is."""


class Points(NamedTuple):
    """Losses of REMOVE and log masses under P and Q with the errors of both, ascending; a with its window; beyond each
    end (low, high) rows of losses, outwards, and bounds of the log masses beyond them under P and under Q; a bound of
    what the window leaves out; its centres. slow: whether one large term makes up the far points. left_out: of each
    side, what the window leaves out in cells, by their far ends, and logs of bounds of its mass."""

    loss: np.ndarray
    log_num: np.ndarray
    log_den: np.ndarray
    error: np.ndarray
    wide: float
    beyond: tuple[np.ndarray, np.ndarray]
    lost: float
    centres: tuple[float, float]
    width: float
    whole: bool
    slow: bool
    left_out: tuple[np.ndarray, np.ndarray]

    def left_out_of(self, add: int) -> np.ndarray:
        """The largest losses of cells, and logs of bounds of the mass in them that the window leaves out."""
        low, high = self.left_out[:: -1 if add else 1]
        top = float(low[1].max())
        whole = top + math.log(float(np.exp(low[1] - top).sum()))
        return np.append(np.array([[0.0], [whole]]), high, axis=1)

    def part(self, place: float) -> tuple[Part, Part] | None:
        """What is below `place`, smoothed as the window is, and what is above, of REMOVE, or None where either end of
        the window is too near [theory: allocation.parts]."""
        clear = min(max(CLEAR, math.sqrt(2 * (10 - math.log(self.lost)))), FARTHEST_CLEAR)
        side, (low, high) = clear * self.width, self.centres
        if self.loss[0] > place - side or low > place - 2 * side or min(self.loss[-1], high) < place + 2 * side:
            return None
        x = (self.loss - place) / self.width
        found = []
        for sign in (-1.0, 1.0):
            at = sign * x > -clear
            log = np.log(normal_cdf(sign * x[at]))
            error = self.error[at] + U * (40 + 8 * np.abs(log) + 8 * x[at] ** 2)
            ends = np.interp(place + self.width * np.array([-clear, 0.0]), self.loss, self.log_num)
            slope = max(float(ends[0] - ends[1]) / side, 0.0)
            factor, order = 0.0, np.argsort(error)
            for tilt in (0.0, 0.5 * slope, slope):
                of = self.log_num[at] + tilt * self.loss[at] + log
                sums = np.cumsum(np.exp(of - of.max())[order])
                factor = max(factor, float(error[order[int(np.searchsorted(sums, 0.99 * sums[-1]))]]))
            if not factor < 1e-3:
                return None
            end = self.loss[at][-1 if sign < 0 else 0] - sign * self.width * np.linspace(0.1, 4.0, CELLS)
            cells = np.array([end, *np.full((2, CELLS), math.log(2.4))])  # all of the law
            one = self._replace(
                loss=self.loss[at],
                log_num=self.log_num[at] + log,
                log_den=self.log_den[at] + log,
                error=1.2 * np.maximum(error - factor, 0.0),  # (1 - f)(1 - 1.2 (e - f)) <= 1 - e for f <= 1/6
                beyond=(self.beyond[0], cells) if sign < 0 else (cells, self.beyond[1]),
                centres=(low, place) if sign < 0 else (place, high),
            )
            mass = np.exp(one.log_num) @ (1 + error)
            beyond = np.exp(one.beyond[1][1] - 0.5 * (np.maximum(one.beyond[1][0] - high, 0.0) / self.width) ** 2)
            mass = float(mass + beyond.sum() + 40 * math.exp(-0.5 * clear**2)) * (1 + U * (100 + log.size))
            found.append(Part(one.columns(0), factor, mass))
        return found[0], found[1]

    def columns(self, add: int) -> np.ndarray:
        """As csrc/line/mixed.c takes a law: coordinate, loss, log mass under num, their errors; then what is beyond."""
        side = -1 if add else 1
        loss, log = side * self.loss[::side], (self.log_den if add else self.log_num)[::side]
        (low, *below), (high, *above) = self.beyond[::side]
        cells = np.array([side * high, above[add], side * low, below[add], 0 * low])
        shape = np.array([[self.wide, self.lost, *[side * x for x in self.centres][::side], self.width]]).T
        body = np.array([loss, loss, log, 0 * loss, self.error[::side]])
        return np.ascontiguousarray(np.concatenate([body, cells, shape], axis=1))


class Part(NamedTuple):
    """Columns of a part of a law, of masses within a factor e^{+-factor} of its own, and a bound of its own mass."""

    columns: np.ndarray
    factor: float
    mass: float


CLEAR, FARTHEST_CLEAR = 14.0, 37.4
"""Widths from the place at which a law is parted to where a part ends, at least: what is beyond is to be as rare as
what the window leaves out."""


OTHERS = -25.0, -20.0, -15.0, -10.0, -5.0, 5.0, 10.0, 15.0, 20.0, 25.0
"""Deviations about which lines see others, in deep windows."""


class _Law:
    """Lines for the density of W, and Chernoff's bounds of its tails."""

    __slots__ = ("deep", "eta", "far", "jumps", "lines", "m", "sd", "t")

    def __init__(self, m: float, t: int, deep: bool = False):
        self.m, self.t, self.deep = m, t, deep
        self.sd = math.sqrt(t * math.expm1(m * m))
        self.eta = min(0.7, CUT / m)
        self.lines: dict[float, Line | None] = {}
        self.far: dict[tuple[float, bool, float], Line] = {}
        self.jumps: Jumps | None = None

    def line(self, z: float) -> Line | None:
        """The line for W about z deviations; from LOWERED on its cut is that of `jumps`."""
        if z not in self.lines:
            b, low = self._cut(z), self._place(JUMP)
            eta, (r, held) = self.eta, self._tilt(z, b, self.eta)
            rare = 0.5 * low * low > JUMP * z + SELDOM  # a term at the lower cut, in nats
            lowered = z > 0 and b > self._place(LOWERED) and low > 1 + 17 * 2 * self.eta and (held or not rare)
            if lowered:
                b, eta = low, 2 * self.eta
                r, _ = self._tilt(z, b, eta)
            mean = max(1 + z * self.sd / self.t, 0.05)
            found = Line(self.m, self.t, r, b, eta, mean, math.inf if lowered else self._last(z))
            beyond = found.real(r + math.copysign(1 / self.sd, z))[0]
            known = math.isfinite(found.kappa) and math.isfinite(beyond) and found.rule.H > MESH_MIN
            self.lines[z] = found if known else None
            if known and lowered and self.jumps is None:
                others = {0.0: Line(self.m, self.t - 1, 0.0, b, eta, 0.7)}
                for at in OTHERS if self.deep else ():
                    tilt, mean = self._tilt(at, b, eta)[0], max(1 + at * self.sd / self.t, 0.05)
                    other = Line(self.m, self.t - 1, tilt, b, eta, mean)
                    if math.isfinite(other.kappa) and other.rule.H > MESH_MIN:
                        others[at] = other
                self.jumps = Jumps(self.sd, self.accepted, found, others, self.deep)
        return self.lines[z]

    def _last(self, z: float) -> float:
        """Where a cut may be sharp: beyond, a term is RARER nats rarer than what is z deviations off."""
        return max(math.sqrt(z * z + 2 * (RARER + math.log(self.t))) + self.m, LARGEST)

    def _place(self, z: float) -> float:
        """Where d is z deviations of W."""
        return math.log1p(z * self.sd) / self.m + 0.5 * self.m

    def _cut(self, z: float, left: float = LEFT) -> float:
        """The least cut for which samples with a rejected term are about `left` nats rarer near W = z sd than others:
        the term comes from g = b - s eta, is rejected about e^(-s^2/2) of the time, and what is beyond z is for the
        others to make up. Any cut is valid."""
        far = math.sqrt((1 + self.eta**2) * (z * z + 2 * left + 2 * math.log(self.t))) + self.m
        if z < 0:
            return far
        near, want = 0.0, 0.5 * z * z + left + math.log(self.t)
        part = np.linspace(0.0, 1.0, 65)
        for _ in range(3):
            b = np.linspace(near, far, 9)
            s, g = np.multiply.outer(b, part) / self.eta, np.multiply.outer(b, 1 - part)
            beyond = np.maximum(np.expm1(np.minimum(self.m * g - 0.5 * self.m**2, 600.0)) / self.sd - z - 1, 0.0)
            near, far = first_beyond(b, 0.5 * (g * g + s * s + beyond**2).min(axis=1) > want)
        return far

    def beyond_cut(self, line: Line | None) -> Jumps | None:
        """Samples with a term that the cut of `line` rejects, where it is the lowered one."""
        return self.jumps if line and self.jumps and line.rule.b == self.jumps.b else None

    def rare(self, z: float, lines: list[Line | None]) -> bool:
        """Whether samples without a rejected term are the fewer ones at z deviations, by the last of `lines`."""
        line = next((line for line in reversed(lines) if line), None)
        jumps = self.beyond_cut(line)
        if line is None or jumps is None:
            return False
        x = z * self.sd
        return float(jumps.density(np.array([x]))[0][0]) > exp(self.t * line.kappa - line.r * x) / self.sd

    def _tilt(self, z: float, b: float, eta: float) -> tuple[float, bool]:
        """z/sd, less where jumps would then be what the line mostly sees, and whether that is so; any tilt is valid."""
        if z == 0:
            return 0.0, False
        last = min(b + LAST * eta, self._last(z))
        R = Rule(self.m, b, eta, 0.2, 1.0, 12 + 1.5 * max(0.0, -z) / math.sqrt(self.t), last)
        low, high = sorted((0.0, (3 + abs(z) * self.m) * z / self.sd))
        log = np.log(R.w + 1e-320)
        for _ in range(3):
            r = np.linspace(low, high, 12)
            grown = log + np.multiply.outer(r, R.d)
            grown = np.exp(grown - grown.max(axis=1, keepdims=True))
            size, sums, squares = (grown @ np.array([np.ones(R.d.size), R.d, R.d**2]).T).T
            mean, var = sums / size, squares / size - (sums / size) ** 2
            wide = (z > 0) & (var * self.t > 6 * self.sd**2)
            low, high = first_beyond(r, (mean * self.t > z * self.sd) | wide)
        return low, bool(wide[int(np.searchsorted(r, high))])

    def log_tails_upper(
        self, at: np.ndarray, above: bool, depth: float, lines: list[Line]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Logs of bounds of Pr[L > at], or Pr[L < at], under P and under Q: Chernoff's for samples without a rejected
        term, at the tilts of `lines` [theory: allocation.cut], and the probability of the others, which is to be
        e^-depth for those far out; that of one large term, or of a small mean [theory: allocation.tail]."""
        m, t, x = self.m, self.t, self.t * np.expm1(at)
        num, den = log_tails_alone_upper(m, t, at, above)
        jumps = next((self.jumps for line in lines if self.beyond_cut(line)), None) if above else None
        if jumps:
            for tails, found in zip((num, den), jumps.log_tails_upper(x), strict=True):
                np.minimum(tails, found, out=tails)
        lines = [line for line in lines if line.r and (line.r > 0) == above and not (jumps and self.beyond_cut(line))]
        for line in lines + self._far(max((abs(line.r) for line in lines), default=0.0), above, depth):
            if not math.isfinite(line.kappa):
                continue
            out = t * (line.kappa + line.off) - line.r * x + 1e-6
            more, more_x = (line.rule.log_rejected_upper(shift) for shift in (0.0, m))
            more += math.log(t)
            den = np.minimum(den, np.logaddexp(out, more))
            out = out + math.log(1.01 * (1 + abs(line.slope)))
            num = np.minimum(num, np.logaddexp(out, np.logaddexp(more, more_x)))
        return num, den

    def _far(self, most: float, above: bool, depth: float) -> list[Line]:
        """Tilts up to `most` with a cut that rejects less than e^-depth, where e^{rd} fits a double."""
        b = math.sqrt((1 + self.eta**2) * 2 * (depth + math.log(self.t) + 3)) + self.m
        last = self._last(math.sqrt(2 * depth))
        if above:
            most = min(most, 550 / math.expm1(self.m * min(b + (LAST + 1) * self.eta, last)))
        keys = [(r, above, depth) for r in (most, 0.5 * most) if r > 0]
        for key in keys:
            if key not in self.far:
                self.far[key] = Line(self.m, self.t, key[0] if above else -key[0], b, self.eta, 1.0, last)
        return [self.far[key] for key in keys]

    def log_rejected_upper(self, line: Line, x: np.ndarray) -> np.ndarray:
        """log of a bound of the density at x of samples with terms g > b - 12 eta that the cut rejects: one, the others
        accepted; or two. One term by cells of the normal variable; others as one density times E e^{qd} of the rest.
        """
        R, cell, t, m = line.rule, 0.25 * self.eta, self.t, self.m
        g = np.arange(min(R.b - min(12 * self.eta, R.b), R.end - cell), R.end + 1.0, cell)
        less = np.where(g + cell < R.end, normal_cdf((g + cell - R.b) / self.eta), 1.0)
        mass = np.append(np.log(less + 1e-300) - 0.5 * g * g + math.log(cell), log_normal_tail_upper(R.end + 1.0))
        low = np.expm1(m * np.append(g, R.end + 1.0) - 0.5 * m * m)
        high = np.append(np.expm1(m * (g + cell) - 0.5 * m * m), np.inf)
        top = float(mass.max())
        whole = top + math.log(float(np.exp(mass - top).sum()))
        two = 2 * (math.log(t) + whole) + m * m + (t - 2) * 2 * R.q0 - math.log(m * 2.5)
        best, out = np.full((x.size, low.size), np.inf), np.full(x.size, np.inf)
        for q in (line.r, -4.0 / self.sd, -10.0 / self.sd, 0.0, 0.5 * line.r):
            kappa = line.real(q)[0]
            if not math.isfinite(kappa):
                continue
            log = line.log_peak_upper(q) - kappa - q * (x[:, None] - (high if q > 0 else low)[None, :])
            best = np.minimum(best, log)
            one = best + mass[None, :]
            most = one.max(axis=1)
            out = np.logaddexp(math.log(t) + most + np.log(np.exp(one - most[:, None]).sum(axis=1)), two)
            if (out + line.r * x - t * line.kappa + math.log(self.sd)).max() < -38:  # below rounding
                break
        return out

    def accepted(self, x: np.ndarray, line: Line) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The density at x of the sum of line.t accepted terms, a bound of its error, both over e to the third."""
        r, sd = line.r, self.sd
        base = line.t * line.kappa
        others = [
            (q, line.log_peak_upper(q) - base) for q in (r - 4 / sd, r - 1 / sd, r + 0.3 / sd, r + 1 / sd, r + 4 / sd)
        ]
        for P in (11, 14, 18, 24, 32, 48, 64):
            alias = np.zeros(x.size)
            for side in (1, -1):
                best = np.full(x.size, np.inf)
                for q, log_peak in others:
                    gap = (q - r) * side
                    if gap > 0 and math.isfinite(log_peak):
                        log = log_peak - (q - r) * (x + side * P * sd)
                        best = np.minimum(best, np.exp(np.minimum(log, 100)) / -math.expm1(-gap * P * sd))
                alias += best
            if (alias * sd).max() < 1e-11:
                break
        value, error = line.visit(x, P * sd)
        off = line.t * line.off + U * (20 + 6 * abs(base) + 8 * np.abs(r * x))
        return value, error + alias + (np.abs(value) + error) * np.expm1(off), base - r * x

    def density(self, x: np.ndarray, line: Line):
        """(log of the density of W at x, bound of its relative error) by the line for W about x."""
        value, error, base = self.accepted(x, line)
        jumps = self.beyond_cut(line)
        if jumps:
            more, off = jumps.density(x)
            scale = np.exp(base)
            value, error, base = value * scale + more, error * scale + off + 1e-300, 0 * base
        else:
            part = line.t * 2 * tail_of(min(12.0, line.rule.b / self.eta))  # of what `rejected` leaves out
            error = error + np.exp(self.log_rejected_upper(line, x) - base) + (value + error) * part
        bad = ~(value > 4 * error)
        with np.errstate(invalid="ignore", divide="ignore"):
            log = np.where(bad, 0.0, np.log(np.where(bad, 1.0, value)) + base)
            return log, np.where(bad, np.inf, error / (value - error))


@functools.lru_cache(8)
def _law(m: float, t: int, deep: bool) -> _Law:
    """Its lines serve all windows, or all deep ones."""
    return _Law(m, t, deep)


class Known(NamedTuple):
    """What points are made of: logs of bounds of Pr[L > at], or Pr[L < at], under P and under Q; the log of the density
    of W and a bound of its relative error; deviations of W up to which there are points, left and right; whether one
    large term makes up the far points; and how many points there may be."""

    tails: Callable[[np.ndarray, bool], tuple[np.ndarray, np.ndarray]]
    density: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    reached: list[float]
    slow: bool
    most: int


@functools.lru_cache(64)
@np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")
def points(m: float, t: int, depth: float, eta: float, reach: float) -> Points | None:
    """The law of one epoch where what is left out has a probability of at most e^-depth, or None. eta: the width of the
    window in units of 1/a. reach: deviations up to which there are points."""
    return points_of(m, t, depth, eta, known_by_lines(m, t, depth, reach))


def known_by_lines(m: float, t: int, depth: float, reach: float) -> Known:
    """By lines for W about places STEP deviations apart."""
    law = _law(m, t, depth > DEEP)
    found: dict[float, Line | None] = {}
    reached = [min(reach, REACH, 0.99 * t / law.sd if side < 0 else REACH) for side in (1, -1)]
    for side, last in zip((1, -1), reached, strict=True):
        for z in np.arange(0.0, last + 0.5 * STEP, STEP):
            if side > 0 and law.rare(float(z), [*found.values()]):
                break
            found[side * float(z)] = law.line(side * float(z))
            if found[side * float(z)] is None and z > 0:
                found[side * float(z - 0.5 * STEP)] = law.line(side * float(z - 0.5 * STEP))
    lines = {z: line for z, line in sorted(found.items()) if line is not None}
    slow = any(law.beyond_cut(line) for line in lines.values())  # the density then falls slower than a tilt rises
    if slow:
        reached[0] = JUMPS_REACH[(depth > DEEP) * (1 + (m < PATHS[0]))]

    def density(x: np.ndarray):
        order = np.abs(x[:, None] / law.sd - np.array(list(lines))[None, :]).argsort(axis=1)
        log, error = np.zeros(x.size), np.full(x.size, np.inf)
        for rank in range(min(NEIGHBOURS, len(lines))):
            poor = error > FINE
            for i, line in enumerate(lines.values()):
                at = np.flatnonzero(poor & (order[:, rank] == i))
                if at.size:
                    found, off = law.density(x[at], line)
                    better = off < error[at]
                    log[at[better]], error[at[better]] = found[better], off[better]
        return log, error

    def tails(at: np.ndarray, above: bool):
        return law.log_tails_upper(at, above, depth, [*lines.values()])

    most = DEEP_POINTS_MAX if slow and law.deep else POINTS_MAX
    return Known(tails, density, [z * law.sd for z in reached[::-1]], slow, most)


def points_of(m: float, t: int, depth: float, eta: float, known: Known) -> Points | None:
    """Points of relative errors below WORST between the ends of a window."""
    grown = math.sqrt(1 + 2 / eta**2)
    a = math.sqrt(t) / m
    h = 2 * math.pi / ((SEEN + MISSED) * a * grown)
    h = math.ldexp(math.floor(math.ldexp(h, 60 - math.frexp(h)[1] - 40)), math.frexp(h)[1] + 40 - 60)
    ends, centres, lost, left_out = [], [], 0.0, []
    for side, last in zip((1, -1), known.reached[::-1], strict=True):
        end = 9 if known.slow and side > 0 else 3.5 + eta
        width = math.sqrt(2 * (depth + 3)) * math.sqrt(1 + eta**2) / a
        tried = width
        for span in FAR_SPANS if depth > DEEP or last == math.inf else SPANS:
            at = side * np.linspace(0.0, span * tried + end * eta / a, PLACES)
            num, den = known.tails(at, side > 0)
            # E u(L), u what the window leaves out [theory: allocation.tail]
            widths = width * np.exp(math.log(GROWN) * np.arange(math.log(span * tried / width) / math.log(GROWN)))
            u = np.minimum(np.abs(at) - widths[:, None], 0.0) * (a / eta)
            u = np.append(-0.5 * u * u, np.zeros((widths.size, 1)), axis=1)
            sums = np.exp(np.maximum(num, den) + u[:, 1:] + depth).sum(axis=1) + np.exp(u[:, 0] + depth)
            enough = np.flatnonzero(sums < 0.4 * (1 - 1e-9))
            if enough.size:
                of_window = u[enough[0]]
                width, log_lost = float(widths[enough[0]]), math.log(max(float(sums[enough[0]]), 1e-300)) - depth + 1e-9
                break
            width = span * tried
        else:
            return None
        lost += math.exp(log_lost) + 1e-320
        further = side * np.geomspace(abs(at[-1]), max(2 * abs(at[-1]), FARTHEST), FURTHER)
        more = np.maximum(*known.tails(further, side > 0))
        cells = _coarse(np.abs(at), np.append(0.0, np.maximum(num, den))[:-1] + of_window[:-1])
        left_out.append(np.append(cells, np.array([np.append(np.abs(further[1:]), np.inf), more]), axis=1))
        centres.append(side * width)
        far = width + end * eta / a
        ends.append(side * math.ceil(min(far, abs(math.log1p(side * last / t))) / h))
    j = np.arange(ends[1] + 1, ends[0])
    if j.size > known.most:
        return None
    loss = j * h
    log, error = known.density(t * np.expm1(loss))
    middle = int(np.abs(loss).argmin())
    bad = np.flatnonzero(~(error < WORST))
    first = int(bad[bad < middle].max(initial=-1)) + 1
    last = int(bad[bad > middle].min(initial=loss.size))
    if middle in bad:
        return None
    loss, log, error = loss[first:last], log[first:last], error[first:last]
    beyond = []
    for side, at, centre in ((-1, loss[0] - h, centres[1]), (1, loss[-1] + h, centres[0])):
        far = max(abs(centre - at) * a, 15.0) + 10
        cells = at + side * far / a * np.linspace(0, 1, CELLS) ** (math.log(far / 0.5) / math.log(CELLS - 1))
        num, den = known.tails(cells - side * 2 * h, side > 0)  # [theory: allocation.smooth]
        beyond.append(np.array([cells, math.log(2.4) + num, math.log(2.4) + den]))
    window = normal_cdf((centres[0] - loss) * a / eta) * normal_cdf((loss - centres[1]) * a / eta)
    log_den = log + loss + math.log(t) + np.log(window) + math.log(h)
    error = error + U * (40 + 8 * np.abs(log_den) + np.abs(loss) * a * 4 * REACH)
    return Points(
        loss,
        log_den + loss,
        log_den,
        error,
        a * grown,
        (beyond[0], beyond[1]),
        lost,
        (centres[1], centres[0]),
        eta / a,
        not bad.size,
        known.slow,
        (left_out[1], left_out[0]),
    )


def _coarse(ends: np.ndarray, log: np.ndarray) -> np.ndarray:
    """Ends of COARSE cells made of those up to each of many ends, and logs of what is in them."""
    parts = np.array_split(np.arange(ends.size), COARSE)
    return np.array([[ends[part[-1]], max(np.logaddexp.reduce(log[part]), -1e4) + 1e-9] for part in parts]).T


COARSE, FARTHEST, FURTHER = 30, 250.0, 240
"""Cells of what a window leaves out, and further ones up to some loss."""

POINTS_MAX, DEEP_POINTS_MAX = 1 << 18, 1 << 12
"""Points, and those of which each is a sum over many nodes."""
