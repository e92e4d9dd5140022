"""The density of log(S/t), S the sum of t independent lognormals of mean one, where noise is low: by the transform of
one term, continued to its cut.

Symbols. v = m^2, X = exp(m g - v/2), d = X - 1, phi(s) = E e^{-sX}, continued to all arg s, psi(s) = phi(s) e^s; W =
S - t, x a value of W; p the place where a path leaves the real axis, r0 = -p where p < 0.

Formulas [theory: allocation.path]. j = 0: the density of W at x, 1: Pr[W > x], 2: E(W-x)_+, the latter two at p < 0,
    (1/pi) Im int_p^{p + w inf} e^{sx} psi(s)^t (-1/s)^j ds,  w = i, or left of it where p < 0, and there
    (1/pi) int_0^{r0} e^{-rx} Im[psi(r e^{-i pi})^t] r^{-j} dr more;
both by Gauss-Legendre panels, in |s - p| and in log r.

Error claims. The relative error of a value is the sum of: what Gauss rules miss, by bounds of psi on their ellipses;
what lies beyond the last panels; rounding and what the rules in g miss, carried along node by node. Each is computed.

What it does not do: much noise, where turning g costs all digits; so few terms that psi^t falls slowly.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..gauss import legendre_rule
from ..outward import U
from . import allocation_epoch as epoch
from .allocation_density import POINTS_MAX, Known, Points, known_by_lines, points_of
from .allocation_epoch import MORE
from .allocation_line import log_tails_alone_upper

ORDER, ELLIPSE = 32, 4.0
"""Gauss nodes of a panel of a half line, and the parameter of its ellipse."""

MAJOR, MINOR = ((ELLIPSE + side / ELLIPSE) / 4 for side in (1, -1))
"""Half axes of the ellipse over the length of the panel."""

MISSED = 64 / 15 / 2 * ELLIPSE ** (-2 * ORDER) / (1 - ELLIPSE**-2)
"""What the rule misses over the length and the bound [theory: law.gauss-panels]."""

NATS, SLACK = 41.0, 46.0
"""Nats below the value at p that lie beyond the last panel, and by which a bound on an ellipse may exceed it."""

PANELS_MAX, LEAST = 800, 1e-6
"""Most panels, and the least length of one over what it is at."""

LEFT, FARTHEST = 4.5, 0.5
"""How far paths that begin left of 0 turn to the left: at a turn bounds of psi^t cost (turn/m)^2 t/2 nats."""

CELLS, ALONG = 6, 2
"""Boxes across an ellipse and along it in which psi is bounded."""

BESIDE = 0.05
"""How far beside a panel a bound holds that says what errors of nodes cost, over its length."""

CUT_ORDER, CUT_HALF, CUT_ELLIPSE, CUT_CELLS = 12, 0.125, 5.0, 6
"""Gauss nodes of a panel of the cut, half its length in log r, the parameter of its ellipse, and cells of |r| there."""

CUT_MAJOR, CUT_TURN = (CUT_HALF * (CUT_ELLIPSE + side / CUT_ELLIPSE) / 2 for side in (1, -1))
CUT_MISSED = 64 / 15 * CUT_HALF * CUT_ELLIPSE ** (-2 * CUT_ORDER) / (1 - CUT_ELLIPSE**-2)

CUT_BESIDE = 0.03
"""How far beside one a bound holds that says what errors of nodes cost."""

NODES_OFF, WEIGHTS_OFF = 1e-15, 1e-15
"""Errors of Gauss nodes over half a panel, and of their weights over themselves; a test has them in many digits."""

COST, FAR = 2.5, 44.0
"""Nats by which a path may exceed the best one at an x, and by which it is below a value that needs no more than a
bound of it."""

LARGEST, LOOSE = 100.0, 5.0
"""The largest p, and nats by which a bound of psi^t at p < 0 may exceed it."""

LOW, TOGETHER = 9.0, 48
"""Normal deviations of the largest X that the cut of an x sees, and panels that begin together."""

APART, ROWS, LEFT_OUT = 0.05, 64, 60.0
"""Logarithms of places at which bounds that fall are taken for many x are so far apart; x at a time; nats from which
nodes are left out for these."""

TURNS = np.array([1.0, 0.5, 0.2])
TAIL_TURNS = np.array([1.0, 0.6, 0.3, 0.1, 0.03])


def _at_some(f, x: np.ndarray) -> np.ndarray:
    """A function that falls, at x >= 0; of many x at the nearest of some that are not greater."""
    low, high = float(x.min()), float(x.max())
    first = max(low, 1e-30 * high, 1e-300)
    n = math.ceil(math.log(max(high / first, 1.0)) / APART) + 2
    if x.size <= n:
        return f(x)
    some = np.geomspace(first, max(high, first), n)
    some = np.unique(np.append(np.minimum(some, high), low))
    return f(some)[np.searchsorted(some, x, side="right") - 1]


def _power_above(x: float) -> float:
    """The least of 0 and +-2^(n/2) above x."""
    n = 2 * math.log2(abs(x)) if x else -math.inf
    return math.copysign(2 ** (0.5 * (math.floor(n) + 1 if x > 0 else math.ceil(n) - 1)), x) if x else 0.0


class _Law:
    """Paths for W, and the cut that those share that leave the axis left of 0.

    place, h: where paths may leave, and about t log |psi| there; chord: places from 0 on and log psi at most, which is
    convex and rises; width: about the deviation of W."""

    def __init__(self, m: float, t: int):
        self.m, self.t = m, t
        self.paths: dict[tuple[float, tuple[float, float]], _Path] = {}
        self.cuts: dict[tuple[int, int], _Cut] = {}
        self.edges, right = self._right()
        p, left = self._left()
        self.chord = np.append(0.0, p), np.append(0.0, left) / t + 1e-3 / t
        place, h = np.concatenate([-np.exp(self.edges[::-1]), p]), np.concatenate([right[::-1], left])
        known = np.isfinite(h)
        self.place, self.h = place[known], h[known]
        self.width = float((1 / p[left > 0.5]).max(initial=0.0)) or float(t)

    def _left(self) -> tuple[np.ndarray, np.ndarray]:
        """Places p > 0, and t log psi there within 1e-3."""
        p = np.exp(np.arange(-80.0, math.log(LARGEST), 0.1))
        log, off = epoch._log_real(self.m, self.t, p, False)
        good = off * self.t < 1e-3
        last = p.size if good.all() else int(np.argmin(good))
        return p[:last], self.t * log[:last]

    def _right(self) -> tuple[np.ndarray, np.ndarray]:
        """Edges of panels of the cut up to where psi is known there and bounds of it are tight, in log r, and t
        log|psi|, which rises: beyond, it is what is rare."""
        m, t = self.m, self.t
        far = -(46 * m + math.log(t) + 4)
        edges = np.arange(math.floor(far / (2 * CUT_HALF)), math.ceil(4.0 / (2 * CUT_HALF)) + 1) * 2 * CUT_HALF
        axis = epoch._Axis(m, t, edges / epoch.STEP)
        h, r = t * axis.log, axis.r
        loose = t * epoch.log_most_upper(m, r, r, 0.5 * math.pi + CUT_TURN) - h > LOOSE
        falls = np.append(np.diff(h) < 0, True) & (np.arange(h.size) > h.size // 4)
        last = int(np.argmax(axis.bad | loose | falls))
        return edges[:last], h[:last]

    def log_upper(self, q: np.ndarray) -> np.ndarray:
        """log of a bound of psi at q >= 0: chords."""
        return np.where(q <= self.chord[0][-1], np.interp(q, *self.chord), np.inf)

    def log_phi_upper(self, q: np.ndarray) -> np.ndarray:
        """log of a bound of phi at q >= 0: as it falls, at the last place that is known."""
        q = np.minimum(q, self.chord[0][-1])
        return self.log_upper(q) - q

    def groups(self, x: np.ndarray, j: int = 0) -> list[tuple[float, np.ndarray]]:
        """Places of paths, and the x of each: ascending runs for which it costs little."""
        order = np.argsort(x)
        even = np.linspace(x.min(), min(x.max(), 40 * self.width), 300)
        some = np.append(np.linspace(0, x.size - 1, min(x.size, 300)).astype(int), np.searchsorted(x[order], even))
        some = order[np.unique(np.minimum(some, x.size - 1))]
        size = np.abs(self.place)
        cost = np.multiply.outer(x[some], self.place) + self.h
        if j:
            cost[:, self.place > 0] = np.inf  # a pole is to the right
        else:
            cost[np.ix_(x[some] < 0, self.place < 0)] = np.inf
        cost -= cost.min(axis=1)[:, None]
        found, at = [], 0
        while at < some.size:
            dear = ~(cost[at:] < COST)
            runs = np.where(dear.any(axis=0), dear.argmax(axis=0), some.size - at)
            ties = np.flatnonzero(runs == runs.max())
            n = int(runs.max())
            best = int(ties[np.argmin(cost[at : at + n, ties].mean(axis=0) - 0.5 * np.log(size[ties]))])
            first = np.searchsorted(x[order], x[some[at]])
            last = np.searchsorted(x[order], x[some[at + n]]) if at + n < some.size else x.size
            found.append((float(self.place[best]), order[first:last]))
            at += n
        return found

    def at(self, x: np.ndarray, j: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """log of the value of kernel j at x, where j > 0 x > 0, and a bound of its relative error."""
        log, off = np.zeros(x.size), np.full(x.size, np.inf)
        for p, here in self.groups(x, j):
            xs, near = x[here], np.ones(here.size, dtype=bool)
            if p < 0:
                more, more_error, more_base = self._cut(p, xs, j)
                near = p * xs + self.h[self.place == p] > np.log(np.abs(more)) + more_base - FAR
            value, error, base = self._path(p, xs[near]).at(xs, j, near)
            if p < 0:
                top = np.maximum(base, more_base)
                a, b = np.exp(base - top), np.exp(more_base - top)
                value, error, base = value * a + more * b, (error * a + more_error * b) * (1 + 1e-9), top
            good = value > 2 * error
            log[here] = np.where(good, np.log(np.where(good, value, 1.0)) + base, 0.0)
            off[here] = np.where(good, error / np.where(good, value - error, 1.0) + U * (8 + 4 * np.abs(base)), np.inf)
        return log, off

    def _path(self, p: float, x: np.ndarray) -> _Path:
        """A path for x, that of all ranges whose ends lie between the same powers of two, whatever was asked before."""
        if not x.size:  # what it is at most is asked
            i = max(int(np.flatnonzero(self.place == p)[0]), 1)
            x = np.diff(self.h[i - 1 : i + 1]) / -np.diff(self.place[i - 1 : i + 1])
        ends = -_power_above(-float(x.min())), _power_above(float(x.max()))
        if (p, ends) not in self.paths:
            self.paths[p, ends] = _Path(self, p, *ends)
        return self.paths[p, ends]

    def _cut(self, p: float, x: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        last = int(np.searchsorted(self.edges, math.log(-p) - 1e-9))
        first = int(np.searchsorted(self.edges, -math.log(max(float(x.max()), 1.0)) - LOW * self.m - 4))
        first = min(max(first // TOGETHER * TOGETHER, 0), last - 1)
        if (first, last) not in self.cuts:
            self.cuts[first, last] = _Cut(self.m, self.t, self.edges[first : last + 1])
        return self.cuts[first, last].at(x, j)

    def log_tails_upper(self, at: np.ndarray, above: bool) -> tuple[np.ndarray, np.ndarray]:
        """Logs of bounds of Pr[L > at], or Pr[L < at], under P and under Q: by paths left of 0, or Chernoff's; or that
        of one large term, or of a small mean [theory: allocation.tail]. E[S; S > K] = E(S-K)_+ + K Pr[S > K]."""
        t, x = self.t, self.t * np.expm1(at)
        num, den = log_tails_alone_upper(self.m, t, at, above)
        if not above:
            right = self.place > 0
            den = np.minimum(den, (np.multiply.outer(x, self.place[right]) + self.h[right]).min(axis=1) + 2e-3)
            return den + np.minimum(at, 0.0), den
        far = np.flatnonzero((x > 3 * self.width) & (x < 1e290))
        if far.size:
            (tail, tail_off), (call, call_off) = (self.at(x[far], j) for j in (1, 2))
            known = (tail_off < 1) & (call_off < 1)
            tail, call = tail + np.log1p(np.minimum(tail_off, 1.0)) + 1e-9, call + np.log1p(np.minimum(call_off, 1.0))
            den[far] = np.where(known, np.minimum(den[far], tail), den[far])
            whole = np.logaddexp(tail + at[far], call - math.log(t)) + 1e-9
            num[far] = np.where(known, np.minimum(num[far], whole), num[far])
        return num, den


@functools.lru_cache(4)
def law(m: float, t: int) -> _Law:
    """Its paths serve all windows."""
    return _Law(m, t)


@functools.lru_cache(64)
@np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")
def points(m: float, t: int, depth: float, eta: float) -> Points | None:
    """As allocation_density.points, as far as the window reaches."""
    of = law(m, t)

    def density(x: np.ndarray):
        """By paths, or by lines, which know more of what is as rare without a large term as with one."""
        log, error = of.at(x)
        poor = np.flatnonzero(~(error < POOR))
        if poor.size and m <= LINES:
            found, off = known_by_lines(m, t, depth, math.inf).density(x[poor])
            better = off < error[poor]
            log[poor[better]], error[poor[better]] = found[better], off[better]
        return log, error

    known = Known(of.log_tails_upper, density, [t * (1 - 1e-9), math.inf], True, POINTS_MAX)
    return points_of(m, t, depth, eta, known)


POOR, LINES = 1e-8, 1.3
"""Relative error from which lines are asked as well, and sensitivity/sigma up to which."""


def _boxes(centre: complex, way: complex, half: float, wide: float, across: int, oval: bool = True) -> np.ndarray:
    """Boxes that cover an ellipse of half axes `half` along `way` and `wide` across, and are not beyond all of it, or a
    rectangle: rows of the least and the largest real and imaginary part."""
    u = np.linspace(-half, half, ALONG + 1)
    near = np.where(u[:-1] * u[1:] < 0, 0.0, np.minimum(abs(u[:-1]), abs(u[1:]))) / half
    most = wide * np.sqrt(1 - near * near) if oval else np.full(ALONG, wide)
    v = np.multiply.outer(most, np.linspace(-1, 1, across + 1))
    x1, x2 = u[1:, None] * way.real + v[:, :-1] * way.imag, u[:-1, None] * way.real + v[:, 1:] * way.imag
    y1, y2 = u[:-1, None] * way.imag - v[:, :-1] * way.real, u[1:, None] * way.imag - v[:, 1:] * way.real
    if oval:
        x = math.hypot(half * way.real, wide * way.imag) * (1 + 1e-12)
        y = math.hypot(half * way.imag, wide * way.real) * (1 + 1e-12)
        x1, x2, y1, y2 = np.maximum(x1, -x), np.minimum(x2, x), np.maximum(y1, -y), np.minimum(y2, y)
    move = np.array([centre.real, centre.real, centre.imag, centre.imag])
    return np.array([x1, x2, y1, y2]).reshape(4, -1) + move[:, None]


class _Path:
    """Up from p by panels, and left where p < 0, for x between low and high. base: about t log|psi(p)|, the logarithm
    of what all is over."""

    def __init__(self, law: _Law, p: float, low: float, high: float):
        self.law, self.m, self.t, self.p, self.low, self.high = law, law.m, law.t, p, low, high
        left = min(LEFT * self.m / math.sqrt(self.t), FARTHEST) if p < 0 else 0.0
        self.way = complex(-math.sin(left), math.cos(left))
        self.base = float(law.h[law.place == p][0])
        self.edge: list[np.ndarray] = []
        self.beside: list[np.ndarray] = []
        self.least: list[float] = []
        self.tail = math.inf
        starts, length, y = [0.0], 0.3 * abs(p), 0.0
        while not self.tail < -NATS and len(self.edge) < PANELS_MAX:
            length = self._lay(y, 2.4 * length)
            if not length:
                break
            y += length
            starts.append(y)
            self.tail = self._log_tail_upper(y)
        self.end = y
        if not self.tail < -NATS:
            return
        x, w = legendre_rule(ORDER)
        self.length = np.diff(starts)
        mid = 0.5 * (np.array(starts[1:]) + np.array(starts[:-1]))
        self.y = (mid[:, None] + np.multiply.outer(0.5 * self.length, x)).ravel()
        self.s = p + self.way * self.y
        self.w = np.multiply.outer(0.5 * self.length, w).ravel()
        on_line = epoch._on_line(self.m, self.t, self.s, False)
        if on_line is None:
            self.tail = math.inf
            return
        self.nodes = on_line

    def _lay(self, y: float, length: float) -> float:
        """The next panel, as long as bounds on its ellipse let it be; its length, 0 where there is none."""
        p = self.p
        while length > LEAST * max(abs(p), y):
            centre = p + self.way * (y + 0.5 * length)
            boxes = _boxes(centre, self.way, MAJOR * length, MINOR * length, CELLS)
            low, high, below, _ = boxes
            if below.min() > 0 or low.min() > 0 or high.max() < 0:  # neither 0 nor what is on another sheet
                edge = self._bounded(boxes)
                moved = [(edge[:2] * x).max(axis=0) + edge[2] for x in (self.low, self.high)]
                if np.max(moved) < SLACK:
                    near = min(BESIDE * length, 0.5 * abs(p))
                    self.edge.append(edge)
                    around = _boxes(centre, self.way, 0.5 * length + near, near, 1, oval=False)
                    self.beside.append(self._bounded(around))
                    gap = np.hypot(np.maximum(np.maximum(low, -high), 0.0), np.maximum(below, 0.0))
                    self.least.append(float(gap.min()))
                    return length
            length *= 0.6
        return 0.0

    def _bounded(self, boxes: np.ndarray) -> np.ndarray:
        """Both ends of Re s - p in each, and log of a bound of psi^t over e^base."""
        low, high = boxes[:2] - self.p
        return np.array([low, high, self.t * self._log_psi_upper(*boxes) - self.base])

    def _log_psi_upper(self, low: np.ndarray, high: np.ndarray, y1: np.ndarray, y2: np.ndarray) -> np.ndarray:
        """log of a bound of |psi| in boxes, on the sheet of the upper half plane; where some y1 <= 0 all are on one
        side of 0 [theory: allocation.path]."""
        m, v = self.m, self.m * self.m
        # arg s - pi/2 at most where Re s < 0
        turned = 0.5 * math.pi - np.arctan2(y1, np.where(y1 > 0, -low, np.maximum(-high, 1e-300)))
        out, left = self.law.log_upper(np.maximum(high, 0.0)), low < 0
        if left.any():
            size = np.maximum(np.hypot(low, np.minimum(y1, 0.0)), 1e-3 * y2)[left]
            most = float(turned[left].max())
            out[left] = np.maximum(out[left], epoch.log_most_upper(m, -low[left], size, most))
        least = float(y1.min())
        for T in TURNS * min(least * v, 1.4) if least > 0 else ():
            q = y1 * math.sin(T) + low * math.cos(T)
            one, up = np.full(low.size, np.inf), q > 0
            one[up] = self.law.log_phi_upper(q[up])
            if not up.all():
                size = np.maximum(-q, 1e-3 * y2)[~up]
                one[~up] = epoch.log_most_upper(m, -q[~up], size, max(float(turned.max()), T)) - q[~up]
            out = np.minimum(out, one + 0.5 * T * T / v + high)
        return out

    def _log_tail_upper(self, y: float) -> float:
        """log of a bound of the integral of |psi|^t e^{Re(s - p)x} beyond y over y, infinite where it is not small: in
        cells, and by phi(x) <= E X^-1/(ex)."""
        m, t, p, first, total = self.m, self.t, self.p, y, -math.inf
        v, way, theta = m * m, self.way, math.atan2(self.way.imag, self.way.real)
        part = 0.9 * math.cos(theta - 1.4)
        for _ in range(400):
            T = np.concatenate([np.minimum(TAIL_TURNS * y * v, 1.4), [0.2, 0.5, 1.0, 1.4]])
            rise = np.cos(theta - T) * y
            q = p * np.cos(T) + np.minimum(rise, 4 * rise)
            bound, up = np.full(T.size, np.inf), q > 0
            bound[up] = self.law.log_phi_upper(q[up])
            if not up.all():
                turned = max(0.5 * math.pi - math.atan2(y * way.imag, -(p + y * way.real)), 1.4)
                bound[~up] = epoch.log_most_upper(m, -q[~up], np.maximum(-q[~up], 1e-3 * y), turned) - q[~up]
            best = float((bound + 0.5 * T * T / v).min()) + p + y * way.real
            wide = min(3 * y, 1 / max(-way.real * (t + self.low), 1e-300))  # of what falls by e^{Re s}
            total = np.logaddexp(total, t * best - self.base + y * way.real * self.low + math.log(wide))
            y *= 4
            if total - math.log(first) > -NATS:
                return math.inf
            if p * math.cos(1.4) + y * math.cos(theta - 1.4) > part * y:
                one = v - 1 - math.log(part * y) + 0.5 * 1.4**2 / v + p + y * way.real
                rest = math.log(y) + t * one - self.base + y * way.real * self.low
                if rest < total:
                    return float(np.logaddexp(total, rest)) - math.log(first) + 1e-9
        return math.inf

    def at(self, x: np.ndarray, j: int, near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The integral over pi e^base for x, of others than those `near` 0; a bound of its error; base."""
        p, base = self.p, self.p * x + self.base
        if not self.tail < -NATS:
            return np.zeros(x.size), np.full(x.size, np.inf), base
        t, y, (log, off) = self.t, self.y, self.nodes
        known = off < np.inf
        kernel = (-1 / self.s) ** j * self.w * (self.way / 1j)
        power = np.where(known, np.exp(t * log - self.base), 0.0) * kernel
        size, units = np.abs(power), 60 + y.size + 8 * t * np.abs(log) + 4 * abs(self.base)
        err = size * (np.expm1(np.minimum(np.where(known, t * off, 0.0) + U * units, 600.0)) + WEIGHTS_OFF)
        # nodes are off by so much; |psi'| <= |psi| + |phi' e^s|, |phi'| <= e^{T^2/2v} with T = arg s - pi/2, or 0
        start = np.repeat(np.cumsum(self.length), ORDER)
        moved = NODES_OFF * np.repeat(self.length, ORDER) + 4 * U * (start + abs(p))
        turned = np.maximum(np.angle(self.s) - 0.5 * math.pi, 0.0) / self.m
        slope = t * (1 + np.exp(max(p, 0.0) + 0.5 * turned**2 - np.where(known, log.real, 0.0))) + j / np.abs(self.s)
        err += size * moved * slope * (1 + 1e-6)
        err += np.abs(kernel) * np.where(known, 0.0, np.exp(np.minimum(t * log.real - self.base, 700.0)))
        errors = np.array([err, size * (4 * U * y + moved) * (1 + 1e-6)]).T
        out, error = np.zeros(x.size), np.full(x.size, np.inf)
        asked = np.flatnonzero(near)
        for part in np.array_split(asked, 1 + asked.size * y.size // (1 << 18)):
            xy = np.multiply.outer(x[part], y)
            fall = np.exp(np.maximum(self.way.real * xy, -700.0))
            out[part] = (fall * np.exp(1j * self.way.imag * xy) @ power).real
            of_x = fall @ errors
            error[part] = of_x[:, 0] + of_x[:, 1] * np.abs(x[part])
        missed, whole = np.where(near, 0.0, np.inf), np.zeros(x.size)
        place = 0.0
        for length, edge, beside, least in zip(self.length, self.edge, self.beside, self.least, strict=True):
            missed[near] += MISSED * length * least**-j * np.exp(_log_most_at(x[near], edge))
            whole += length * (0.5 * abs(p + place * self.way)) ** -j * np.exp(_log_most_at(x, beside))
            place += length
        ends = math.exp(self.tail) * self.end * abs(p + self.end * self.way) ** -j
        error = error + missed
        less = ~(error < whole)  # then nothing is said of it but how large it may be
        error = np.where(less, whole, error) + ends
        return np.where(less, 0.0, out) / math.pi, error / math.pi * MORE, base


def _log_most_at(x: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """log of the largest bound in boxes, of psi^t e^{(Re s - p)x}."""
    most = np.maximum(np.multiply.outer(x, edge[0]), np.multiply.outer(x, edge[1])) + edge[2]
    return np.minimum(most.max(axis=1, initial=-np.inf), 700.0)


def _log_sum_upper(cells: tuple[np.ndarray, np.ndarray, np.ndarray, float], j: int, x: np.ndarray) -> np.ndarray:
    """log of the sum over panels of the largest bound of r times the integrand on the cells of each, falling in x."""
    r1, r2, bound, c = cells
    per = bound + (1 - j) * np.log(r1 if j > 1 else r2) - c * np.multiply.outer(x + 1, r1)
    per = per.reshape(x.size, -1, CUT_CELLS).max(axis=2)
    most = per.max(axis=1)
    return most + np.log(np.exp(per - most[:, None]).sum(axis=1))


class _Cut:
    """Panels in log r between edges."""

    def __init__(self, m: float, t: int, edges: np.ndarray):
        self.m, self.t = m, t
        x, w = legendre_rule(CUT_ORDER)
        mid = 0.5 * (edges[1:] + edges[:-1])
        self.axis = epoch._Axis(m, t, (mid[:, None] + CUT_HALF * x).ravel() / epoch.STEP)
        self.w = np.tile(CUT_HALF * w, mid.size)
        self.bounds = [
            self._about(mid, *about) for about in ((CUT_MAJOR, CUT_TURN), (CUT_HALF + CUT_BESIDE, CUT_BESIDE))
        ]
        self.first = np.exp(edges[:1]) * epoch.GREATER
        self.low = float(epoch.log_cut_upper(m, t, self.first, self.first, 0.0, loop=True)[0])
        self.power = float(epoch._larger_root(m, self.first)[0]) / m

    def _about(self, mid: np.ndarray, reach: float, turn: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Cells of |r| about the middle of each panel, logs of bounds in them where r is turned, and the cosine."""
        cells = np.linspace(-reach, reach, CUT_CELLS + 1)
        r1 = (np.exp(np.add.outer(mid, cells[:-1])) * epoch.LESS).ravel()
        r2 = (np.exp(np.add.outer(mid, cells[1:])) * epoch.GREATER).ravel()
        parts = zip(epoch._parts(r1), epoch._parts(r2), strict=True)
        logs = [epoch.log_cut_upper(self.m, self.t, *cells, turn) for cells in parts]
        return r1, r2, np.concatenate(logs), math.cos(turn)

    def at(self, x: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The integral over pi e^base for x >= 0, a bound of its error, base."""
        t, axis = self.t, self.axis
        u, r = axis.u, axis.r
        turned = np.exp(np.minimum(axis.log_turned, 300.0))
        part = np.where(turned < 1e-4, 1 - turned * turned / 6, np.sin(turned) / np.maximum(turned, 1e-4))
        log = t * axis.log + axis.log_turned + (1 - j) * u
        units = 16 + u.size + 12 * (t * np.abs(axis.log) + 3 * np.abs(u) + np.abs(axis.log_turned))
        off = np.minimum(t * axis.off + U * units + WEIGHTS_OFF, 600.0)
        value, lost = axis.sign * part * self.w, np.minimum(axis.off_turned, 2 / np.maximum(turned, 1e-300))
        err = self.w * (np.abs(part) * np.expm1(off) + np.exp(off) * lost)
        err = np.where(axis.bad, np.inf, err)
        moved = 2 * CUT_HALF * (NODES_OFF + 4 * U * float(np.abs(u).max())) / CUT_BESIDE
        missed = np.full(x.size, -np.inf)
        for factor, cells in zip((CUT_MISSED, moved), self.bounds, strict=True):
            most = _at_some(functools.partial(_log_sum_upper, cells, j), x)
            missed = np.logaddexp(missed, most + math.log(factor))
        power = self.power + 1 - j
        low = self.low + (1 - j) * math.log(self.first[0]) - math.log(power) if power > 0.5 else math.inf
        out, error, base = np.empty(x.size), np.empty(x.size), np.empty(x.size)
        for at in np.array_split(np.argsort(x), 1 + x.size // ROWS):
            xs = x[at]
            ends = log - np.multiply.outer(xs[[0, -1]], r)
            least = float(ends.max(axis=1).min()) - LEFT_OUT
            above = np.flatnonzero(ends.max(axis=0) > least)
            seen = slice(int(above[0]), int(above[-1]) + 1)
            size = log[seen] - np.multiply.outer(xs, r[seen])
            base[at] = top = size.max(axis=1)
            terms = np.exp(np.maximum(size - top[:, None], -700.0))
            out[at] = terms @ value[seen]
            off_x = 14 * U * xs * (terms @ (np.abs(value) * r)[seen])
            beyond = float((np.abs(value) + err).sum()) * np.exp(least - top)
            error[at] = terms @ err[seen] + off_x + beyond + np.exp(np.logaddexp(missed[at], low) - top)
        return out / math.pi, error / math.pi * MORE + np.abs(out) * U * (8 + 4 * np.abs(base)), base
