"""Lines for the density of log(S/t): the rule over the normal variable of one term, and the sum over nodes.

Symbols, formulas and error claims: allocation_density.py. chi(g) = Phi((b-g)/eta) is the cut, q0 = E(1-chi) and q1 =
E(1-chi)d what it rejects [theory: allocation.line, allocation.cut].
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from ..outward import DOWN, U

LAST = 16.0
"""A cut is sharp LAST eta beyond b, or before that."""

TAUS = (9.0, 6.5, 4.5, 3.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05)
NATS = 46.0
MESH_MIN = 4e-3


def normal_cdf(x: np.ndarray) -> np.ndarray:
    return _core.normal_tails(np.ascontiguousarray(x))[0]


def tail_of(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def log_normal_tail_upper(x: float) -> float:
    """log of an upper bound of Pr[g > x], of x within 16u of itself."""
    if x <= 0:
        return 0.0
    x *= DOWN
    return math.log(tail_of(x) * (1 + 1e-9)) if x < 30 else -0.5 * x * x - math.log(2.5 * x)


def log_normal_tails_upper(x: np.ndarray) -> np.ndarray:
    """Logs of upper bounds of Pr[g > x], of x within 16u of themselves: the density over x, from 1/2 on."""
    y = np.maximum(x * DOWN, 0.5)
    return np.where(x > 0.5, -0.5 * y * y - np.log(2.5 * y), 0.0)


def log_tails_alone_upper(m: float, t: int, at: np.ndarray, above: bool) -> tuple[np.ndarray, np.ndarray]:
    """Logs of bounds of Pr[L > at], or Pr[L < at], under P and under Q: of one large term, or of a small mean [theory:
    allocation.tail]."""
    if above:
        den = log_normal_tails_upper(at / m + 0.5 * m) + math.log(t)
        num = np.logaddexp(den, log_normal_tails_upper(at / m - 0.5 * m))
    else:
        den = log_normal_tails_upper((-at / m - 0.5 * m) * math.sqrt(t))
        num = den + np.minimum(at, 0.0)
    return np.minimum(num, 0.0), np.minimum(den, 0.0)


LANES = _core.TERM_LANES
"""Nodes come in multiples of this many."""


def lanes(*rows: np.ndarray) -> np.ndarray:
    """A row of each, 0 up to a multiple of LANES."""
    out = np.zeros((len(rows), -(-rows[0].size // LANES) * LANES))
    for mine, row in zip(out, rows, strict=True):
        mine[: row.size] = row
    return out


def exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def first_beyond(x: np.ndarray, beyond: np.ndarray) -> tuple[float, float]:
    """The cell of x that ends where x is first `beyond`; the last one at the latest."""
    at = int(np.argmax(np.append(beyond[1:-1], True))) + 1
    return float(x[at - 1]), float(x[at])


class Rule:
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
        "sharp",
        "size",
        "tau",
        "top",
        "w",
    )

    def __init__(self, m: float, b: float, eta: float, H: float, tau: float, wide: float, last: float):
        """last: where the cut is sharp, about."""
        H = math.ldexp(math.floor(math.ldexp(H, 30)), -30)  # so that the nodes are numbers of a double
        self.m, self.b, self.eta, self.H, self.tau = m, b, eta, H, tau
        self.g = g = H * np.arange(-math.ceil(wide / H), math.ceil(last / H) + 1)
        self.d = np.expm1(m * g - 0.5 * m * m)
        self.X = 1 + self.d
        at = (b - g) / eta
        normal = H / math.sqrt(2 * math.pi) * np.exp(-0.5 * g * g)
        self.chi = normal_cdf(at)
        self.w = normal * self.chi
        self.size = U * (g * g + 6 * np.minimum(at, 0.0) ** 2 + 72 + g.size / LANES + LANES)
        """Relative errors of w, 40u, of the terms that they weigh, 30u, and of sums in LANES parts."""
        self.moved = U * ((4 * np.abs(m * g) + 3 * m * m) * self.X + 4 * np.abs(self.d))  # errors of d
        self.end = float(g[-1]) + 0.5 * H
        self.sharp = max(self.end - b, 0.0) / eta
        self.top = math.exp(m * self.end - 0.5 * m * m)  # X there
        scale = math.sqrt(1 + eta * eta)
        self.q0 = tail_of(b / scale)
        self.q1 = tail_of((b - m) / scale) - self.q0
        rate = 2 * math.pi * tau / H
        self.miss = 2 * math.exp(0.5 * tau**2 * (1 + eta**-2)) / math.expm1(rate) if rate < 700 else 0.0
        self._term: np.ndarray | None = None
        self._cells: tuple[np.ndarray, ...] | None = None

    @property
    def term(self) -> np.ndarray:
        """As term_grown takes it: a term of its sums is within 24u by itself, 3u by products."""
        if self._term is None:
            self._term = lanes(self.d, self.w, self.w * self.size, self.w * self.moved)
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
        smooth = log_normal_tail_upper((self.b - shift) / math.sqrt(1 + self.eta**2))
        sharp = log_normal_tail_upper(self.end - shift) + math.log(2) - 0.5 * self.sharp**2
        return float(np.logaddexp(smooth, sharp)) + 1e-6

    def log_inverse_upper(self, q: float) -> float:
        """log of an upper bound of E chi e^{-qX}/X by cells."""
        left, _, more, _ = self.cells
        up = more - q * left - (self.m * (self.g - self.H) - 0.5 * self.m**2)
        top = float(up.max())
        return top + math.log(float(self.w @ np.exp(up - top)) + 1e-300)

    def log_end_upper(self, tau: float) -> float:
        """log of a bound of |n chi| within tau of the last place."""
        log_chi = -0.5 * self.sharp**2 - (0.69 if self.end > self.b else 0.0)
        return 0.5 * tau * tau * (1 + self.eta**-2) - 0.5 * self.end**2 + log_chi - 0.91


class Line:
    """C(s)^t on Re s = -r. kappa: log C(-r); slope: its derivative; off: error of kappa."""

    __slots__ = ("_peaks", "kappa", "known", "last", "m", "off", "r", "rule", "slope", "t", "top")

    def __init__(self, m: float, t: int, r: float, b: float, eta: float, mean: float, last: float = math.inf):
        """last: where the cut is sharp, if not LAST eta beyond b."""
        self.m, self.t, self.r, self.last = m, t, r, min(b + LAST * eta, last)
        self.known: dict[float, tuple[float, float, float]] = {}
        self.top = 9.8 / (m * math.sqrt(t) * min(1.0, mean))
        self.rule = self._place(b, eta)
        self._peaks: np.ndarray | None = None
        self.kappa, self.slope, self.off = self.real(r)

    def _place(self, b: float, eta: float) -> Rule:
        """The widest mesh for which the rule misses less than e^-NATS/t."""
        m, r, want = self.m, self.r, NATS + math.log(self.t)
        turn = max(0.0, -r) * m  # e^{rd} as far as it moves the normal variable
        wide = min(math.sqrt(2 * (want + 6 + max(0.0, -r))), turn + math.sqrt(2 * (want + 6) + turn * (turn + m)))
        coarse = Rule(m, b, eta, min(0.25, 0.5 * eta), 1.0, wide, self.last)
        best = (0.0, 1.0)
        taus = [tau for tau in TAUS if m * tau <= 1.4]
        rhos = np.array([max(r, r * math.cos(m * tau) + self.top * math.sin(m * tau)) for tau in taus])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not held to be small
            edges = np.log(np.exp(np.multiply.outer(rhos, coarse.d)) @ coarse.w) + rhos - r
        for tau, rho, edge in zip(taus, rhos.tolist(), edges.tolist(), strict=True):
            if coarse.log_end_upper(tau) + rho * coarse.top - r > -want:
                continue
            total = want + 2 + max(edge, 0.0) + 0.5 * tau * tau * (1 + eta**-2)
            best = max(best, (2 * math.pi * tau / total, tau))
        return Rule(m, b, eta, max(best[0], MESH_MIN), best[1], wide, self.last)

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
        right += 2 * tail_of(R.end - self.m) * math.exp(-0.5 * R.sharp**2) * side
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
        rows = lanes(R.d, wide, wide * R.size, wide * R.moved)
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
