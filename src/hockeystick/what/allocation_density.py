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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _core
from ..outward import DOWN, U

if TYPE_CHECKING:
    from .allocation_jumps import Jumps

SEEN, MISSED = 9.3, 10.4
"""y in deviations that the points serve, and what their aliases are beyond: e^-54."""

CUT, LAST = 0.05, 12.0
"""eta m: what a cut is smoothed by; it is sharp LAST eta beyond b."""

LEFT = 46.0
"""Nats by which what a cut rejects is rarer than what it leaves."""

JUMP, LOWERED = 3.0, 4.0
"""Deviations of W of a term at the cut of allocation_jumps.py, and those from which a cut is lowered to it."""

WORST, ROUGHEST = 1e-4, 0.1
"""Relative errors of a point that ends them, and that does where one far from a tilt may be known roughly."""

REACH, JUMPS_REACH = 90.0, 400.0
"""Deviations of W beyond which no line goes, and no points where one large term makes them up."""

CELLS = 16
"""Of what lies beyond the points, to beyond the centre of the window; they grow from half a deviation on."""

SPANS, FAR_SPANS = (1.4, 4.0, 12.0, 40.0), (1.4, 4.0, 12.0, 40.0, 120.0, 400.0, 1200.0)
GROWN, PLACES = 1.04, 240
"""A window's width is tried up to so many times the least one, each so much larger than the one before, by tails at so
many places."""

STEP = 5.0
TAUS = (9.0, 6.5, 4.5, 3.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05)
NATS = 46.0
NODES_MAX = 1 << 17


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

    def columns(self, add: int) -> np.ndarray:
        """As csrc/line/mixed.c takes a law: coordinate, loss, log mass under num, their errors; then what is beyond."""
        side = -1 if add else 1
        loss, log = side * self.loss[::side], (self.log_den if add else self.log_num)[::side]
        (low, *below), (high, *above) = self.beyond[::side]
        cells = np.array([side * high, above[add], side * low, below[add], 0 * low])
        shape = np.array([[self.wide, self.lost, *[side * x for x in self.centres][::side], self.width]]).T
        body = np.array([loss, loss, log, 0 * loss, self.error[::side]])
        return np.ascontiguousarray(np.concatenate([body, cells, shape], axis=1))


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    return _core.normal_tails(np.ascontiguousarray(x))[0]


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def _log_tail_upper(x: float) -> float:
    """log of an upper bound of Pr[g > x], of x within 16u of itself."""
    if x <= 0:
        return 0.0
    x *= DOWN
    return math.log(_tail(x) * (1 + 1e-9)) if x < 30 else -0.5 * x * x - math.log(2.5 * x)


def _log_tails_upper(x: np.ndarray) -> np.ndarray:
    """Logs of upper bounds of Pr[g > x], of x within 16u of themselves: the density over x, from 1/2 on."""
    y = np.maximum(x * DOWN, 0.5)
    return np.where(x > 0.5, -0.5 * y * y - np.log(2.5 * y), 0.0)


LANES = _core.TERM_LANES
"""Nodes come in multiples of this many."""


def _rows(*rows: np.ndarray) -> np.ndarray:
    """A row of each, 0 up to a multiple of LANES."""
    out = np.zeros((len(rows), -(-rows[0].size // LANES) * LANES))
    for mine, row in zip(out, rows, strict=True):
        mine[: row.size] = row
    return out


def exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _first(x: np.ndarray, beyond: np.ndarray) -> tuple[float, float]:
    """The cell of x that ends where x is first `beyond`; the last one at the latest."""
    at = int(np.argmax(np.append(beyond[1:-1], True))) + 1
    return float(x[at - 1]), float(x[at])


class _Rule:
    """Nodes in the normal variable for a cut b, with d and weights; tau: half the width of its strip."""

    __slots__ = (
        "H",
        "X",
        "_cells",
        "_term",
        "b",
        "chi",
        "d",
        "end",
        "eta",
        "g",
        "m",
        "miss",
        "moved",
        "q0",
        "q1",
        "size",
        "tau",
        "top",
        "w",
    )

    def __init__(self, m: float, b: float, eta: float, H: float, tau: float, wide: float):
        H = math.ldexp(math.floor(math.ldexp(H, 30)), -30)  # so that the nodes are numbers of a double
        self.m, self.b, self.eta, self.H, self.tau = m, b, eta, H, tau
        self.g = g = H * np.arange(-math.ceil(wide / H), math.ceil((b + LAST * eta) / H) + 1)
        self.d = np.expm1(m * g - 0.5 * m * m)
        self.X = 1 + self.d
        at = (b - g) / eta
        normal = H / math.sqrt(2 * math.pi) * np.exp(-0.5 * g * g)
        self.chi = _normal_cdf(at)
        self.w = normal * self.chi
        self.size = U * (g * g + 6 * np.minimum(at, 0.0) ** 2 + 72 + g.size / LANES + LANES)
        """Relative errors of w, 40u, of the terms that they weigh, 30u, and of sums in LANES parts."""
        self.moved = U * ((4 * np.abs(m * g) + 3 * m * m) * self.X + 4 * np.abs(self.d))  # errors of d
        self.end = float(g[-1]) + 0.5 * H
        self.top = math.exp(m * self.end - 0.5 * m * m)  # X there
        scale = math.sqrt(1 + eta * eta)
        self.q0 = _tail(b / scale)
        self.q1 = _tail((b - m) / scale) - self.q0
        rate = 2 * math.pi * tau / H
        self.miss = 2 * math.exp(0.5 * tau**2 * (1 + eta**-2)) / math.expm1(rate) if rate < 700 else 0.0
        self._term: np.ndarray | None = None
        self._cells: tuple[np.ndarray, ...] | None = None

    @property
    def term(self) -> np.ndarray:
        """As term_grown takes it: a term of its sums is within 24u by itself, 3u by products."""
        if self._term is None:
            self._term = _rows(self.d, self.w, self.w * self.size, self.w * self.moved)
        return self._term

    @property
    def cells(self) -> tuple[np.ndarray, ...]:
        """X at one node left and right of each, the log of how much larger weights are there, and least squares of n
        and chi up to there."""
        if self._cells is None:
            H, at, half = self.H, np.abs(self.b - self.g) / self.eta, 0.5 * self.m**2
            left, right = (np.exp(self.m * (self.g + move) - half) for move in (-H, H))
            least = -0.5 * np.maximum(np.abs(self.g) - H, 0) ** 2 - 0.5 * np.maximum(at - H / self.eta, 0) ** 2
            self._cells = left, right, H * np.abs(self.g), least
        return self._cells

    def log_peaks_upper(self) -> np.ndarray:
        """log of mX times a bound of the density of d on the cell right of a node."""
        least = np.minimum(np.abs(self.g), np.abs(self.g + self.H)) * (self.g * (self.g + self.H) > 0)
        return -0.5 * least**2 + np.log(self.chi + 1e-300) - self.m * self.g + 0.5 * self.m**2

    def rounding_cut_upper(self, s):
        """Bound of the rounding errors of q0 and s q1."""
        return U * (20 + 6 * (self.b + self.m) ** 2) * (self.q0 + s * (2 * self.q0 + self.q1))

    def log_turned_upper(self, tau: float, q: float) -> float:
        """log of a bound of E (|chi(g - i tau)| - chi(g)) e^{-qX}, by cells [theory: allocation.cut]."""
        x, (left, right, _, least) = tau / self.eta, self.cells
        up = least - q * (right if q < 0 else left)
        top = float(up.max())
        return math.log(x * self.H / 6) + 0.5 * x * x + top + math.log(float(np.exp(up - top).sum()))

    def log_mean(self, q: float, by_cells: bool = False) -> float:
        """log of about E chi e^{-qX}; of an upper bound by cells."""
        left, _, more, _ = self.cells
        up = more - q * left if by_cells else -q * self.X
        top = float(up.max())
        return top + math.log(float(self.w @ np.exp(up - top)) + 1e-300)

    def log_rejected_upper(self, shift: float) -> float:
        """log of a bound of Pr[a term is rejected], its normal variable moved by `shift`."""
        smooth = _log_tail_upper((self.b - shift) / math.sqrt(1 + self.eta**2))
        return float(np.logaddexp(smooth, _log_tail_upper(self.end - shift) + math.log(2) - 0.5 * LAST**2)) + 1e-6

    def log_inverse_upper(self, q: float) -> float:
        """log of an upper bound of E chi e^{-qX}/X by cells."""
        left, _, more, _ = self.cells
        up = more - q * left - (self.m * (self.g - self.H) - 0.5 * self.m**2)
        top = float(up.max())
        return top + math.log(float(self.w @ np.exp(up - top)) + 1e-300)

    def log_end_upper(self, tau: float) -> float:
        """log of a bound of |n chi| within tau of the last place."""
        x = (self.end - self.b) / self.eta
        return 0.5 * tau * tau * (1 + self.eta**-2) - 0.5 * self.end**2 - 0.5 * x * x - 1.6


class _Line:
    """C(s)^t on Re s = -r. kappa: log C(-r); slope: its derivative; off: error of kappa."""

    __slots__ = ("_peaks", "kappa", "known", "m", "off", "r", "rule", "slope", "t", "top")

    def __init__(self, m: float, t: int, r: float, b: float, eta: float, mean: float):
        self.m, self.t, self.r = m, t, r
        self.known: dict[float, tuple[float, float, float]] = {}
        self.top = 9.8 / (m * math.sqrt(t) * min(1.0, mean))
        self.rule = self._place(b, eta)
        self._peaks: np.ndarray | None = None
        self.kappa, self.slope, self.off = self.real(r)

    def _place(self, b: float, eta: float) -> _Rule:
        """The widest mesh for which the rule misses less than e^-NATS/t."""
        m, r, want = self.m, self.r, NATS + math.log(self.t)
        turn = max(0.0, -r) * m  # e^{rd} as far as it moves the normal variable
        wide = min(math.sqrt(2 * (want + 6 + max(0.0, -r))), turn + math.sqrt(2 * (want + 6) + turn * (turn + m)))
        coarse = _Rule(m, b, eta, min(0.25, 0.5 * eta), 1.0, wide)
        best = (0.0, 1.0)
        taus = [tau for tau in TAUS if m * tau <= 1.4]
        rhos = np.array([max(r, r * math.cos(m * tau) + self.top * math.sin(m * tau)) for tau in taus])
        edges = np.log(np.exp(np.multiply.outer(rhos, coarse.d)) @ coarse.w) + rhos - r
        for tau, rho, edge in zip(taus, rhos.tolist(), edges.tolist(), strict=True):
            if coarse.log_end_upper(tau) + rho * coarse.top - r > -want:
                continue
            total = want + 2 + max(edge, 0.0) + 0.5 * tau * tau * (1 + eta**-2)
            best = max(best, (2 * math.pi * tau / total, tau))
        return _Rule(m, b, eta, max(best[0], MESH_MIN), best[1], wide)

    def real(self, r: float) -> tuple[float, float, float]:
        """log C(-r), its derivative, and a bound of the error of the first."""
        R = self.rule
        if r in self.known:
            return self.known[r]
        h, slope, off, edge = _core.term_grown(R.term, r, self.grown(r, 0.0))
        z, first = h - R.q0 - r * R.q1, slope - R.q1
        off += self.missed_upper(r, 0.0, edge) + R.rounding_cut_upper(abs(r))
        if not (z > -0.9 and off < 0.1 * (1 + z) and math.isfinite(first)):
            self.known[r] = math.inf, math.nan, math.inf
        else:
            self.known[r] = math.log1p(z), first / (1 + z), off / (1 + z - off) + 2 * U * abs(math.log1p(z))
        return self.known[r]

    def log_left_upper(self, r: float, g: float) -> float:
        """log of a bound of e^{rd}, summed over nodes left of -g, over e^{-g^2/2}: d >= -1, and d >= mg - m^2/2."""
        m, r = self.m, max(0.0, -r)
        return min(r, r * m * (g + 0.5 * m)) if g > 1 + m + r * m else r

    def log_beyond_upper(self, r: float, f: float, inverse: float) -> float:
        """log of a bound of E e^{rd - fX} X^-inverse left of the nodes: on as far again twice, and further left."""
        g, m = -float(self.rule.g[0]), self.m
        out = []
        for start, end in ((g, 3 * g), (3 * g, math.inf)):
            low = math.exp(-m * end - 0.5 * m * m) if end < math.inf else 0.0
            out.append(self.log_left_upper(r, start) - 0.5 * start * start - f * low + inverse * m * (start + m))
        return float(np.logaddexp(out[0], out[1]))

    def grown(self, r: float, y: float) -> float:
        """rho: |e^{-sX}| <= e^{rho X} on the edges of the strip, s = -r + iy' with |y'| <= y."""
        turn = self.m * self.rule.tau
        return math.hypot(r, y) if turn > math.atan2(y, r) else max(r, r * math.cos(turn) + y * math.sin(turn))

    def missed_upper(self, r: float, y: float, edge: float | None = None) -> float:
        """What the rule and its ends miss of E chi h2(-sd), s = -r + iy' with |y'| <= y [theory: allocation.cut]. edge:
        the sum of w e^{rho d}."""
        R, rho = self.rule, self.grown(r, y)
        side = 1 + 2 * math.hypot(r, y)
        edge = _core.term_grown(R.term, 0.0, rho)[3] if edge is None else edge
        edge = (edge + R.miss) / max(1 - R.miss, 0.5) * exp(rho - r)
        left = math.exp(-0.5 * float(R.g[0]) ** 2) * (exp(self.log_left_upper(r, -float(R.g[0]))) + side)
        last, top = R.log_end_upper(R.tau), R.top
        right = 2 * R.tau * (math.exp(min(last + rho * top - r, 700)) + side * top * math.exp(last))
        right += 2 * _tail(R.end - self.m) * math.exp(-0.5 * LAST**2) * side
        return R.miss * (edge + right + side) + left + right

    def log_tail_upper(self, y: float) -> float:
        """log of a bound of the integral of |C(-r + iy')|^t over y' > y, over C(-r)^t [theory: allocation.line]."""
        R, m, t, r = self.rule, self.m, self.t, self.r
        total, top, least = -math.inf, R.top, self.kappa
        most = R.eta * math.sqrt(max(R.b**2 / (1 + R.eta**2) - 2 * math.log(t) - 20, 1.0))  # turned cuts stay rare
        for _ in range(400):
            tau = min(y * m, 1.3 / m, 6.0, most)
            si, co, half = math.sin(m * tau), math.cos(m * tau), 2 * math.sin(0.5 * m * tau) ** 2
            q = y * si - r * co
            first, last = R.log_end_upper(0.0), R.log_end_upper(tau) - y * si * top
            grown = (r if r > 0 else r * co) * top - r
            cut = math.exp(min(max(first, last) + grown, 300.0)) * tau / max(1.0, abs(first - last))
            more = R.log_turned_upper(tau, q)
            if q < 1:
                log, _, off = self.real(-q)
                rest = float(np.logaddexp(log + off, more + q))
                found = -y * si - r * half + 0.5 * tau * tau + rest
            else:
                lost = math.log(R.miss + 1e-300) + R.log_mean(q * math.cos(m * R.tau), by_cells=True)
                rest = float(np.logaddexp(R.log_mean(q) + 1e-12, np.logaddexp(lost, more)))
                found = -r + 0.5 * tau * tau + rest
            edge = self.log_beyond_upper(r, max(0.0, y * si - max(r, 0.0) * co), 0)
            found = float(np.logaddexp(found, 0.5 * tau * tau + edge + max(-r, 0.0) * half))
            least = min(least, float(np.logaddexp(found, math.log(cut + 1e-300))))
            total = float(np.logaddexp(total, math.log(3 * y) + t * (least - self.kappa)))
            y *= 4
            far = y * si - max(r, 0.0) * co
            if far > 1:  # e^{-qX} <= e^{-bX}/(efX), q = b + f
                back = max(-r, 0.0) * co
                more = float(np.logaddexp(R.log_inverse_upper(back), R.log_turned_upper(tau, back)))
                more = float(np.logaddexp(more, self.log_beyond_upper(r, 0.0, 1) - back))
                one = -1 - r + 0.5 * tau * tau - math.log(far) + more
                one = float(np.logaddexp(one, math.log(cut + 1e-300)))
                rest = math.log(y) + t * (one - self.kappa) - math.log(t - 1)
                if rest < total - 2:
                    return float(np.logaddexp(total, rest)) + 1e-6
        return math.inf

    def log_peak_upper(self, r: float) -> float:
        """log of a bound of the density of W, times e^{rW}: that of one term on cells, times C(-r)^(t-1)."""
        R, kappa = self.rule, self.real(r)[0]
        if self._peaks is None:
            self._peaks = R.log_peaks_upper()
        one = r * R.d + self._peaks
        if r > 0:
            one = np.append(r * R.d[1:], r * (R.top - 1)) + self._peaks
        far = 0.5 * R.m**2 - R.m * R.g[0] - 0.5 * R.g[0] ** 2 + self.log_left_upper(r, -R.g[0])  # left of the nodes
        return max(float(one.max()), far) - math.log(R.m * 2.5) + (self.t - 1) * (kappa + 1e-6 / self.t)

    def visit(self, x: np.ndarray, P: float) -> tuple[np.ndarray, np.ndarray]:
        """The sum for e^{rx} density(x)/C(-r)^t at period P, and a bound of its error without aliases."""
        R, t, r = self.rule, self.t, self.r
        n = math.ceil(self.top * P / (2 * math.pi))
        y = np.asarray(2 * math.pi / P * np.arange(n + 1), dtype=np.float64)
        h, slope, off_real, _ = _core.term_grown(R.term, r, r)
        grown = np.expm1(r * R.d)
        wide = R.w * (1 + grown)
        rows = _rows(R.d, wide, wide * R.size, wide * R.moved)
        half, less, off, move = _core.term_turned(rows, y)
        re, im = h - half - R.q0 - r * R.q1, less - y * (slope - R.q1)
        # errors: of weights and sums, of d, of the rule
        off += off_real + y * float((R.w * np.abs(grown) * (np.abs(R.d) * R.size + R.moved)).sum())
        off += (abs(r) + y) * move
        off += np.array([self.missed_upper(r, float(y[-1]))]) + R.rounding_cut_upper(abs(r) + y)
        log_mod = 0.5 * np.log1p(2 * re + re * re + im * im)
        turn = np.arctan2(im, 1 + re)
        mod = np.exp(t * (log_mod - self.kappa))
        lost = np.log1p(off / np.maximum(np.exp(log_mod), 1e-300))
        err = mod * np.expm1(np.minimum(t * lost, 600.0))  # |C^t - c^t| <= (|c| + |C-c|)^t - |c|^t
        weight = np.where(y > 0, 2.0, 1.0) / P
        angle = np.multiply.outer(x, y) + t * turn
        value = np.cos(angle) @ (weight * mod)
        # of powers, phases and the sum: first order, of what was computed
        units = 20 + 2 * len(y) + t * (4 * np.minimum(np.abs(log_mod), 750.0) + 8 * np.abs(turn))  # beyond, mod is 0
        sums = (weight * mod) @ np.array([units, 4 * y]).T
        error = (weight * err).sum() + U * (sums[0] + np.abs(x) * sums[1])
        tail = math.exp(min(self.log_tail_upper(float(y[-1])), 50.0)) / math.pi
        return value, error + tail


class _Law:
    """Lines for the density of W, and Chernoff's bounds of its tails."""

    __slots__ = ("eta", "far", "jumps", "lines", "m", "sd", "t")

    def __init__(self, m: float, t: int):
        self.m, self.t = m, t
        self.sd = math.sqrt(t * math.expm1(m * m))
        self.eta = min(0.7, CUT / m)
        self.lines: dict[float, _Line | None] = {}
        self.far: dict[tuple[float, bool, float], _Line] = {}
        self.jumps: Jumps | None = None

    def line(self, z: float) -> _Line | None:
        """The line for W about z deviations; from LOWERED on its cut is that of `jumps`."""
        if z not in self.lines:
            b, low = self._cut(z), self._place(JUMP)
            lowered = z > 0 and b > self._place(LOWERED) and low > 1 + 17 * 2 * self.eta
            b, eta = (low, 2 * self.eta) if lowered else (b, self.eta)
            r, mean = self._tilt(z, b, eta), max(1 + z * self.sd / self.t, 0.05)
            found = _Line(self.m, self.t, r, b, eta, mean)
            beyond = found.real(r + math.copysign(1 / self.sd, z))[0]
            known = math.isfinite(found.kappa) and math.isfinite(beyond) and found.rule.H > MESH_MIN
            self.lines[z] = found if known else None
            if known and lowered and self.jumps is None:
                from .allocation_jumps import Jumps  # at its first use

                self.jumps = Jumps(self, found, _Line(self.m, self.t - 1, 0.0, b, eta, 0.7))
        return self.lines[z]

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
            near, far = _first(b, 0.5 * (g * g + s * s + beyond**2).min(axis=1) > want)
        return far

    def beyond_cut(self, line: _Line | None) -> Jumps | None:
        """Samples with a term that the cut of `line` rejects, where it is the lowered one."""
        return self.jumps if line and self.jumps and line.rule.b == self.jumps.b else None

    def rare(self, z: float, lines: list[_Line | None]) -> bool:
        """Whether samples without a rejected term are the fewer ones at z deviations, by the last of `lines`."""
        line = next((line for line in reversed(lines) if line), None)
        jumps = self.beyond_cut(line)
        if line is None or jumps is None:
            return False
        x = z * self.sd
        return float(jumps.density(np.array([x]))[0][0]) > exp(self.t * line.kappa - line.r * x) / self.sd

    def _tilt(self, z: float, b: float, eta: float) -> float:
        """z/sd, less where jumps would then be what the line mostly sees; any tilt is valid."""
        if z == 0:
            return 0.0
        R = _Rule(self.m, b, eta, 0.2, 1.0, 12 + 1.5 * max(0.0, -z) / math.sqrt(self.t))
        low, high = sorted((0.0, (3 + abs(z) * self.m) * z / self.sd))
        log = np.log(R.w + 1e-320)
        for _ in range(3):
            r = np.linspace(low, high, 12)
            grown = log + np.multiply.outer(r, R.d)
            grown = np.exp(grown - grown.max(axis=1, keepdims=True))
            size, sums, squares = (grown @ np.array([np.ones(R.d.size), R.d, R.d**2]).T).T
            mean, var = sums / size, squares / size - (sums / size) ** 2
            low, high = _first(r, (mean * self.t > z * self.sd) | ((z > 0) & (var * self.t > 6 * self.sd**2)))
        return low

    def log_tails_upper(
        self, at: np.ndarray, above: bool, depth: float, lines: list[_Line]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Logs of bounds of Pr[L > at], or Pr[L < at], under P and under Q: Chernoff's for samples without a rejected
        term, at the tilts of `lines` [theory: allocation.cut], and the probability of the others, which is to be
        e^-depth for those far out; that of one large term, or of a small mean [theory: allocation.tail]."""
        m, t, x = self.m, self.t, self.t * np.expm1(at)
        if above:
            den = _log_tails_upper(at / m + 0.5 * m) + math.log(t)
            num = np.logaddexp(den, _log_tails_upper(at / m - 0.5 * m))
        else:
            den = _log_tails_upper((-at / m - 0.5 * m) * math.sqrt(t))
            num = den + np.minimum(at, 0.0)
        num, den = np.minimum(num, 0.0), np.minimum(den, 0.0)
        jumps = next((self.jumps for line in lines if self.beyond_cut(line)), None) if above else None
        if jumps:
            for tails, found in zip((num, den), jumps.log_tails_upper(x), strict=True):
                np.minimum(tails, found, out=tails)
            return num, den
        lines = [line for line in lines if line.r and (line.r > 0) == above]
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

    def _far(self, most: float, above: bool, depth: float) -> list[_Line]:
        """Tilts up to `most` with a cut that rejects less than e^-depth, where e^{rd} fits a double."""
        b = math.sqrt((1 + self.eta**2) * 2 * (depth + math.log(self.t) + 3)) + self.m
        if above:
            most = min(most, 550 / math.expm1(self.m * (b + (LAST + 1) * self.eta)))
        keys = [(r, above, depth) for r in (most, 0.5 * most) if r > 0]
        for key in keys:
            if key not in self.far:
                self.far[key] = _Line(self.m, self.t, key[0] if above else -key[0], b, self.eta, 1.0)
        return [self.far[key] for key in keys]

    def log_rejected_upper(self, line: _Line, x: np.ndarray) -> np.ndarray:
        """log of a bound of the density at x of samples with terms g > b - 12 eta that the cut rejects: one, the others
        accepted; or two. One term by cells of the normal variable; others as one density times E e^{qd} of the rest.
        """
        R, cell, t, m = line.rule, 0.25 * self.eta, self.t, self.m
        g = np.arange(R.b - min(12 * self.eta, R.b), R.end + 1.0, cell)
        less = np.where(g + cell < R.end, _normal_cdf((g + cell - R.b) / self.eta), 1.0)
        mass = np.append(np.log(less + 1e-300) - 0.5 * g * g + math.log(cell), _log_tail_upper(R.end + 1.0))
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

    def accepted(self, x: np.ndarray, line: _Line) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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

    def density(self, x: np.ndarray, line: _Line):
        """(log of the density of W at x, bound of its relative error) by the line for W about x."""
        value, error, base = self.accepted(x, line)
        jumps = self.beyond_cut(line)
        if jumps:
            more, off = jumps.density(x)
            scale = np.exp(base)
            value, error, base = value * scale + more, error * scale + off + 1e-300, 0 * base
        else:
            part = line.t * 2 * _tail(min(12.0, line.rule.b / self.eta))  # of what `rejected` leaves out
            error = error + np.exp(self.log_rejected_upper(line, x) - base) + (value + error) * part
        bad = ~(value > 4 * error)
        with np.errstate(invalid="ignore", divide="ignore"):
            log = np.where(bad, 0.0, np.log(np.where(bad, 1.0, value)) + base)
            return log, np.where(bad, np.inf, error / (value - error))


MESH_MIN = 4e-3


@functools.lru_cache(4)
def _law(m: float, t: int) -> _Law:
    """Its lines serve all windows."""
    return _Law(m, t)


class Known(NamedTuple):
    """What points are made of: logs of bounds of Pr[L > at], or Pr[L < at], under P and under Q; the log of the density
    of W and a bound of its relative error; deviations of W up to which there are points, left and right; whether one
    large term makes up the far points."""

    tails: Callable[[np.ndarray, bool], tuple[np.ndarray, np.ndarray]]
    density: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    reached: list[float]
    slow: bool


@functools.lru_cache(64)
@np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")
def points(m: float, t: int, depth: float, eta: float, reach: float, rough: bool = False) -> Points | None:
    """The law of one epoch where what is left out has a probability of at most e^-depth, or None. eta: the width of the
    window in units of 1/a. reach: deviations up to which there are points. rough: whether some may be known roughly."""
    return points_of(m, t, depth, eta, _known(m, t, depth, reach), ROUGHEST if rough else WORST)


def _known(m: float, t: int, depth: float, reach: float) -> Known:
    """By lines for W about places STEP deviations apart."""
    law = _law(m, t)
    found: dict[float, _Line | None] = {}
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
        reached[0] = JUMPS_REACH

    def density(x: np.ndarray):
        nearest = np.abs(x[:, None] / law.sd - np.array(list(lines))[None, :]).argmin(axis=1)
        log, error = np.zeros(x.size), np.zeros(x.size)
        for i, line in enumerate(lines.values()):
            at = nearest == i
            if at.any():
                log[at], error[at] = law.density(x[at], line)
        return log, error

    def tails(at: np.ndarray, above: bool):
        return law.log_tails_upper(at, above, depth, [*lines.values()])

    return Known(tails, density, [z * law.sd for z in reached[::-1]], slow)


def points_of(m: float, t: int, depth: float, eta: float, known: Known, worst: float) -> Points | None:
    """Points of relative errors below `worst` between the ends of a window."""
    grown = math.sqrt(1 + 2 / eta**2)
    a = math.sqrt(t) / m
    h = 2 * math.pi / ((SEEN + MISSED) * a * grown)
    h = math.ldexp(math.floor(math.ldexp(h, 60 - math.frexp(h)[1] - 40)), math.frexp(h)[1] + 40 - 60)
    ends, centres, lost, left_out = [], [], 0.0, []
    for side, last in zip((1, -1), known.reached[::-1], strict=True):
        end = 9 if known.slow and side > 0 else 3.5 + eta
        width = math.sqrt(2 * (depth + 3)) * math.sqrt(1 + eta**2) / a
        tried = width
        for span in SPANS if last < math.inf else FAR_SPANS:
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
    if j.size > POINTS_MAX:
        return None
    loss = j * h
    log, error = known.density(t * np.expm1(loss))
    middle = int(np.abs(loss).argmin())
    bad = np.flatnonzero(~(error < worst))
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
    window = _normal_cdf((centres[0] - loss) * a / eta) * _normal_cdf((loss - centres[1]) * a / eta)
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

POINTS_MAX = 1 << 18
