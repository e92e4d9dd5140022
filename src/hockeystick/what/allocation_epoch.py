"""One epoch of random allocation alone: delta is the price of an option on S, the sum of t independent lognormals.

Symbols. v = m^2, X = exp(m g - v/2), d = X - 1, phi(s) = E e^{-sX}, continued to all arg s by turning g; K = t e^eps
for REMOVE, t e^-eps for ADD; h2(z) = e^z - 1 - z; x = K - t.

Formulas [theory: allocation.option].
    delta_REMOVE = E(S-K)_+/t,  delta_ADD = e^eps E(K-S)_+/t,
    E(K-S)_+ = (1/2 pi i) int_{Re s = c > 0} e^{sK} phi(s)^t s^-2 ds,  E(S-K)_+ = E(K-S)_+ + t - K
             = (1/pi) int_0^inf e^{-rK} Im [phi(r e^{-i pi})^t] r^-2 dr;
phi(s) e^s = 1 + E h2(-sd) by the trapezoid rule on a line Im g = -tau, on the cut of phi its imaginary part by that on
X = X0 (1 + ip)^2 [theory: allocation.epoch, allocation.edge].

Error claims. Relative to delta, the sum of: aliases of the rule in s or in log r; what is beyond its ends; rounding and
what the rules in g and p miss, carried along node by node. Each is computed.

What it does not do: several epochs; the cut with so much noise that turning g costs all digits.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..outward import U
from .allocation_line import LANES, lanes

DEPTH = 44.0
"""Nats that aliases and ends are below what is asked."""

LARGEST = 600.0
"""Largest exponent of a node."""

NODES_MAX = 1 << 14
STRIPS = np.array([0.15, 0.3, 0.6, 1.0, 1.5, 2.2, 3.0, 4.5, 6.0])
ANGLE = 1.47
"""Half widths of strips in g, and the largest angle of sX in one."""

MORE = 1.02
"""Bounds of first order in u."""


class Value(NamedTuple):
    """The log of a price, or of delta; bounds, relative to it, of aliases, ends, what inner rules miss with rounding;
    and of what is rounded on the way from a price to delta."""

    log: float
    aliases: float
    ends: float
    inner: float
    rounding: float = 0.0

    @property
    def error(self) -> float:
        return self.aliases + self.ends + self.inner + self.rounding


GRID = 0.25 * np.arange(-180, 60)
LEFT = -45.0 * 1.2 ** np.arange(40)
"""Left of the grid: growing cells, the last of which has no end."""
GRID_NEAR = np.where(GRID < 0, GRID + 0.25, GRID)


def _log_phi_upper(m: float, q: np.ndarray) -> np.ndarray:
    """log of a crude bound of phi at real q >= 0: cells of n at its largest, of e^{-qX} at the left."""
    cells = -0.5 * GRID_NEAR**2 - np.multiply.outer(q, np.exp(m * GRID - 0.5 * m * m))
    top = cells.max(axis=1)
    log = top + np.log(np.exp(np.maximum(cells - top[:, None], -700.0)).sum(axis=1) * 0.1)
    ends = np.append(np.exp(m * LEFT[1:] - 0.5 * m * m), 0.0)
    left = np.logaddexp.reduce(-0.5 * LEFT**2 - np.multiply.outer(q, ends), axis=1)
    return np.minimum(np.logaddexp(log, left), 0.0) + 1e-9


def _peak(m: float, pull: float) -> float:
    """Where n(g) e^{-pull X} is largest."""
    g = 0.0
    for _ in range(80):
        force = m * pull * math.exp(min(m * g - 0.5 * m * m, 600.0))
        move = (g + force) / (1 + m * force)
        g -= move
        if abs(move) < 1e-9:
            break
    return g


class _Rule:
    """phi(s) e^s - 1 by nodes on Im g = -tau, for angles of sX within `turn` of 0 there and |s| <= size."""

    def __init__(
        self,
        m: float,
        t: int,
        turned: float,
        turn: float,
        size: float,
        edge: float = 0.0,
        least: float = 0.0,
        depth: float | None = None,
    ):
        """turned: m tau; depth: nats that aliases and ends are below, if not
        DEPTH. edge: the largest frequency, by which edges of strips exceed what is asked. least: where
        positive, phi(s) itself, at |s| >= least."""
        self.m, self.turned, self.tau, self.whole = m, turned, turned / m, least > 0
        want = (depth or DEPTH) + math.log(t) + (0.0 if self.whole else math.log1p(2 * size))
        peak = _peak(m, size)
        strips = np.minimum(STRIPS, (ANGLE - turn) / m)
        more = -abs(peak) / m * np.log(np.cos(turn + m * strips))
        more += edge * math.exp(m * peak - 0.5 * m * m) * np.sin(m * strips)
        if self.whole:
            more = _log_phi_upper(m, least * np.cos(turn + m * strips)) - _log_phi_upper(m, np.array([least])) + 8
        mesh = 2 * math.pi * strips / (want + 0.5 * (self.tau + strips) ** 2 + np.minimum(more, 650.0))
        best = int(mesh.argmax())
        self.strip = float(strips[best])
        self.H = H = math.ldexp(math.floor(math.ldexp(float(mesh[best]), 30)), -30)  # so that nodes are doubles
        far = math.sqrt(2 * (want + 4) + self.tau**2)
        k = np.arange(math.floor((peak - far) / H), math.ceil((far + m) / H) + 1)
        self.g = g = H * k
        part = np.expm1(m * g - 0.5 * m * m)
        sine = math.sin(turned)
        d = part * complex(math.cos(turned), -sine) - 2 * math.sin(0.5 * turned) ** 2 - 1j * sine  # X turned, less 1
        if self.whole:
            d = np.exp(m * g - 0.5 * m * m) * complex(math.cos(turned), -sine)
        w = H / math.sqrt(2 * math.pi) * np.exp(-0.5 * (g - self.tau) * (g + self.tau))
        W = w * np.exp(1j * self.tau * g)
        # relative errors of weights; of terms, 52u; of sums in LANES parts
        off = U * (2 * g * g + 2 * self.tau**2 + 4 * np.abs(self.tau * g) + 72 + g.size / LANES + LANES)
        move = U * ((6 * np.abs(m * g) + 5 * m * m + 4 * turned + 4) * (1 + part) + 12 * np.abs(d) + 4 * turned)
        self.term = lanes(d.real.copy(), d.imag.copy(), W.real.copy(), W.imag.copy(), w * off, w * move)
        b = self.tau + self.strip
        rate = 2 * math.pi * self.strip / H * (1 - 1e-12)  # its exponential may be beyond a double
        self.alias = 2 * math.exp(0.5 * b * b - rate) / -math.expm1(-rate) * MORE

    def at(self, s: np.ndarray, rough: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """phi(s) e^s - 1, phi(s) where `whole`, and a bound of its error; a real s < 0 is on the cut, reached from
        above. rough: for Re s > 0, by a bound that knows |phi| <= 1 alone."""
        m, H, tau = self.m, self.H, self.tau
        re, im, err = _core.term_transform(self.term, self.whole, np.array([s.real, s.imag]))
        size, up = np.abs(s), np.zeros(s.size) if self.whole else s.real
        angle = np.abs(np.where(s.real < 0, math.pi, np.angle(s)) - self.turned)
        edge = up
        if not rough:
            least = np.cos(np.minimum(angle + m * self.strip, 0.5 * math.pi)) * (1 - 1e-12)
            edge = edge + _log_phi_upper(m, size * least)
        with np.errstate(over="ignore"):
            edge = np.exp(edge) * (1 + 8 * U * size)
        err = err * MORE + self.alias * (edge if self.whole else edge + 1 + 2 * size)
        if self.whole:
            err = err + 4e-308 * math.exp(0.5 * tau * tau)  # e^x below e^-708
        pull = size * np.maximum(np.cos(angle), 0.0) * (1 - 1e-12)
        for end, side in ((float(self.g[0]), -1), (float(self.g[-1]), 1)):
            X = math.exp(m * end - 0.5 * m * m)
            log = up + 0.5 * (tau - end) * (tau + end) - pull * X
            fall = np.minimum(side * (end + m * pull * X) * H, 700.0)  # of the logarithm, which is concave
            with np.errstate(over="ignore"):
                beyond = H * np.exp(log) * (1 + 8 * U * size) / np.expm1(np.maximum(fall, 1e-9))
            err = err + np.where(fall > 0, beyond, math.inf)
            if not self.whole:
                plain, of_X = (math.exp(0.5 * tau * tau - 0.5 * x * x) for x in (end, max(abs(end - m), 1.0)))
                err = err + plain * (1 + size) + of_X * size
        return re + 1j * im, err * MORE


def _log(h: np.ndarray, err: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """log(1 + h), log h where `whole`, with a bound of its error, infinite where h is lost in its own: then log of a
    bound of the modulus."""
    one = h if whole else 1 + h
    mod = np.abs(one)
    known = err < 0.1 * mod
    x = np.where(known & (mod > 0.5) & (mod < 2) & (not whole), h, 0)
    log = 0.5 * np.log1p(2 * x.real + x.real**2 + x.imag**2)
    log = np.where(x != 0, log, np.log(mod + 1e-300)) + 1j * np.angle(one)
    off = err / np.maximum(mod - err, 1e-300) + U * (40 * np.abs(log) + 4 * (x == 0))
    return np.where(known, log, np.log(mod + err + 1e-300)), np.where(known, off, math.inf)


@functools.lru_cache(8)
def _largest(m: float) -> float:
    """The largest s whose nodes stay within LARGEST."""
    low, high = 0.0, 40.0  # its logarithm
    for _ in range(40):
        s = math.exp(0.5 * (low + high))
        far = -s * math.expm1(m * (_peak(m, s) - 12) - 0.5 * m * m)
        low, high = (0.5 * (low + high), high) if far < LARGEST else (low, 0.5 * (low + high))
    return math.exp(low)


@functools.lru_cache(64)
def _real(m: float, t: int, whole: int) -> _Rule:
    """whole: 0, or the power of 16 up to which s may be."""
    return _Rule(m, t, 0.0, 0.0, 16.0**whole if whole else _largest(m), least=16.0 ** (whole - 1) if whole else 0.0)


def _log_real(m: float, t: int, q: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """log phi(q) + q at q > 0, log phi(q) where `whole`, and a bound of its error."""
    log, off = np.zeros(q.size), np.full(q.size, math.inf)
    kinds = np.maximum(np.ceil(np.log2(q) / 4), 1).astype(int) if whole else np.zeros(q.size, dtype=int)
    for kind in set(kinds.tolist()):
        at = (kinds == kind) & (q < LAST if whole else q < _largest(m))
        if at.any():
            found, off[at] = _log(*_real(m, t, kind).at(q[at] + 0j), whole)
            log[at] = found.real
    return log, off


LAST = 1e60


# E(K-S)_+


@functools.lru_cache(256)
def log_put(m: float, t: int, x: float, K: float) -> Value | None:
    """log E(K-S)_+, K = t + x, both within 4u of themselves."""
    for whole, at in ((False, x), (True, K)):
        found = _put(m, t, at, whole)
        if found is not None:
            return found
    return None


def _put(m: float, t: int, x: float, whole: bool) -> Value | None:
    """By phi e^s, or phi itself with K for x."""
    found = _saddle(m, t, x, whole)
    if found is None:
        return None
    s, width = found
    log, _ = _log_real(m, t, np.array([s]), whole)
    top = s * x + t * log[0] - 2 * math.log(s)
    period, aliases = _period(m, t, x, s, width, top, whole)
    n, ends = _end(m, t, s, width, float(log[0]), period, whole)
    if not n:
        return None
    y = 2 * math.pi / period * np.arange(n + 1)
    z = s + 1j * y
    on_line = _on_line(m, t, z, whole)
    if on_line is None:
        return None
    log_z, off_z = on_line
    known = off_z < math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.where(known, np.exp(1j * y * x + t * (log_z - log[0])), 0.0) * (s / z) ** 2
        size = np.abs(value)
        lost = np.exp(np.minimum(t * (log_z.real - log[0]), 600.0)) * np.abs(s / z) ** 2
        lost_z = np.where(known, t * off_z + U * (30 + 8 * y * abs(x) + 8 * t * (np.abs(log_z) + abs(log[0]))), 0.0)
        err = np.where(known, size * np.expm1(np.minimum(lost_z, 600.0)), lost)
    weight = np.where(y > 0, 2.0, 1.0) / period
    total = float(weight @ value.real)
    inner = float(weight @ (err + U * (y.size + 4) * size)) / max(total, 1e-300)
    inner += U * (8 * (abs(s * x) + t * abs(log[0]) + 2 * abs(math.log(s))) + 20)
    if not total > 0:
        return None
    return Value(top + math.log(total), aliases / total * MORE, ends / total * MORE, inner * MORE)


def _saddle(m: float, t: int, x: float, whole: bool) -> tuple[float, float] | None:
    """About the least of sx + t log phi e^s - 2 log s over s > 0, and the square root of its second derivative."""
    low, high = (0.0, math.log(LAST / 10)) if whole else (math.log(1e-4 / t), math.log(_largest(m) / 1.2))
    for _ in range(4):
        u = np.linspace(low, high, PLACES)
        s = np.exp(u)
        log, off = _log_real(m, t, s, whole)
        f = np.where(off < math.inf, s * x + t * log - 2 * u, math.inf)
        best = int(f.argmin())
        low, high = u[max(best - 1, 0)], u[min(best + 1, PLACES - 1)]
    s = np.exp(0.5 * (low + high) + np.array([-0.01, 0.0, 0.01]))
    log, off = _log_real(m, t, s, whole)
    f = s * x + t * log - 2 * np.log(s)
    h = 0.5 * float(s[2] - s[0])
    second = float(f[0] - 2 * f[1] + f[2]) / (h * h)
    return (float(s[1]), math.sqrt(second)) if second > 0 and off.max() < 0.1 else None


PLACES = 12
"""Of which the best is looked for, four times."""


def _period(m: float, t: int, x: float, s: float, width: float, top: float, whole: bool) -> tuple[float, float]:
    """The least period whose aliases are rare, and a bound of them: (K-S)_+ <= e^{q(K-S)-1}/q [theory:
    allocation.option]."""
    q = s + np.array([-0.95, -0.85, -0.7, -0.5, -0.3, -0.15, 0.15, 0.3, 0.6, 1, 2, 3, 4, 6, 9]) * np.where(
        np.arange(15) < 6, s, 1 / width
    )
    q = np.append(q, s - np.array([1.0, 2.0, 3.0, 4.0, 6.0, 9.0]) / width)
    q = q[(q > 0) & (np.abs(q - s) > 1e-9 * s)]
    log, off = _log_real(m, t, q, whole)
    f = np.where(off < math.inf, q * x + t * (log + np.minimum(off, 1.0)) - 1 - np.log(q) - top, math.inf)
    for period in width * 8 * 1.15 ** np.arange(60):
        with np.errstate(over="ignore"):
            each = np.exp(np.minimum(f - np.abs(q - s) * period, 600.0)) / -np.expm1(-np.abs(q - s) * period)
        bound = float(each[q < s].min(initial=math.inf) + each[q > s].min(initial=math.inf))
        if bound * width < math.exp(-DEPTH + 8):
            break
    return float(period), bound


def _end(m: float, t: int, s: float, width: float, log: float, period: float, whole: bool) -> tuple[int, float]:
    """How many nodes there are, and a bound of those beyond: |phi| <= e^{tau^2/2} phi(s cos m tau + y sin m tau)
    [theory: allocation.option]."""
    mean = 1.0 if not whole else -float(np.diff(_log_real(m, t, s * np.array([0.99, 1.01]), whole)[0])[0]) / (0.02 * s)
    for y in np.split(6 / width * 1.5 ** np.arange(24), 8):
        tau = np.minimum(np.multiply.outer(y * m * mean, [1.0, 0.6, 0.3, 0.1]), min(6.0, 1.5 / m))
        q = s * np.cos(m * tau) + y[:, None] * np.sin(m * tau)
        at, off = _log_real(m, t, q.ravel(), whole)
        bound = 0.5 * tau**2 + (at + off).reshape(q.shape) - log + (0.0 if whole else s - q)
        with np.errstate(over="ignore"):
            beyond = s * s / (math.pi * y) * np.exp(np.minimum(t * bound.min(axis=1), 600.0))
        enough = np.flatnonzero(beyond * width < math.exp(-DEPTH + 8))
        if enough.size or not y[-1] * period < 2 * math.pi * NODES_MAX:
            break
    if not enough.size or not y[enough[0]] * period < 2 * math.pi * NODES_MAX:
        return 0, math.inf
    return math.ceil(y[enough[0]] * period / (2 * math.pi)), float(beyond[enough[0]])


TURNS = (-1.0, 0.45, 0.9, 1.6, 2.2, 2.7, 3.2)


def _on_line(m: float, t: int, z: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """log phi(z) + z on a line, by rules turned as far as arg z asks."""
    angle = np.angle(z)
    log, off = np.zeros(z.size, dtype=complex), np.zeros(z.size)
    for low, high in itertools.pairwise(TURNS):
        at = (angle > low) & (angle <= high)
        if not at.any():
            continue
        last = float(angle[at].max())
        turned = 0.0 if low < 0 else min(0.6 * last, 2.5 * m)
        turned = max(turned, last - 1.35)
        if turned > 25 * m:
            return None
        turn = max(last - turned, turned - low if low > 0 else 0.0)
        rule = _Rule(
            m, t, turned, turn, float(np.abs(z[at]).max()), float(z[at].imag.max()), float(z[0].real) if whole else 0.0
        )
        log[at], off[at] = _log(*rule.at(z[at]), whole)
    return log, off


# E(S-K)_+ along the cut

STEP, TURN = 0.03125, 0.3
"""Mesh in log r, and half the width of its strip."""

SPAN = 0.03
"""Cells of X by which phi is bounded are so wide in log X."""

LOOP = 45.0


def _larger_root(m: float, r: np.ndarray) -> np.ndarray:
    """About the larger g with rX = g/m, where r X - g^2/2 is least; where there is none the smallest that one can
    be."""
    most = np.maximum(0.5 * m * m - np.log(r * (m * m)), 1.0)  # y - log y at y = mg
    y = most + np.log(most) + 1  # no less than the root, towards which Newton's steps fall
    for _ in range(12):
        y = np.maximum((np.log(y) + most - 1) * y / np.maximum(y - 1, 1e-3), 1.0)
    return y / m


def _log_loop_upper(m: float, g: np.ndarray, R: np.ndarray, turn: float = 0.0) -> np.ndarray:
    """log of a bound of the integral along X = X0 e^{i turn} (1 + ip)^2, R = |r| X0, of the modulus
    [theory: allocation.edge]."""
    v = m * m
    q = np.maximum((2.5 if turn else 2.0) / v - g / m - 0.5, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        log = R - 0.5 * g * g + 2.5 * turn * turn / v + 0.5 * np.log(0.5 / (R - q)) - math.log(m)
    return np.where(R > q, log, math.inf)


def _discontinuity(m: float, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """-Im phi(r e^{i pi}) over e to the third, a bound of its error over the same: the trapezoid rule in p."""
    g = _larger_root(m, r)
    R = r * np.exp(m * g - 0.5 * m * m)
    base = R - 0.5 * g * g
    end = np.sqrt(LOOP / R)
    strip = np.minimum(0.5, np.sqrt(2.0 / (1 + g / m)))
    mesh = 2 * math.pi * strip / LOOP
    count = np.ceil(end / mesh).astype(int)
    n = int(count.max())
    p = np.multiply.outer(mesh, np.arange(n + 1))
    log = np.log1p(1j * p)
    at = g[:, None] + 2 / m * log
    exponent = R[:, None] * (2j * p - p * p) - (at - g[:, None]) * (at + g[:, None]) / 2 - log
    with np.errstate(under="ignore"):
        value = np.exp(exponent)
    weight = np.where(np.arange(n + 1) > 0, 2.0, 1.0) * mesh[:, None] / (m * math.sqrt(2 * math.pi))
    total = (weight * value.real).sum(axis=1)
    units = 20 + n + (R * (12 + 6 * m * g + 5 * m * m))[:, None] * (1 + p) ** 2 + 24 * np.abs(at) ** 2
    err = U * (weight * np.abs(value) * units).sum(axis=1)
    edges = [_log_loop_upper(m, g + 2 / m * np.log(1 + x * strip), R * (1 + x * strip) ** 2) for x in (1, -1)]
    q = np.maximum(2 / (m * m) - g / m - 0.5, 0.0)
    rate = 2 * math.pi * strip / mesh
    with np.errstate(over="ignore"):
        err = err + np.exp(np.logaddexp(*edges) - base) / np.expm1(rate)
        last = (R - q) * (mesh * n) ** 2
        ends = (
            np.exp(-last) / (m * math.sqrt(2 * math.pi)) * (mesh + 2 * np.sqrt(math.pi / np.maximum(4 * (R - q), 1e-9)))
        )
    return total, np.where(R > q, (err + ends) * MORE, math.inf), base


@functools.lru_cache(32)
def _bulk_cells(m: float, top: int) -> tuple[np.ndarray, ...]:
    """Cells of g up to `top`: d at their ends, masses at least as large as theirs, ends."""
    step = SPAN / m
    g = np.arange(-9.0, top, step)
    d = np.expm1(m * np.append(g, g[-1] + step) - 0.5 * m * m)
    mass = np.maximum(0.4 * step * np.exp(-0.5 * np.where(g < 0, np.minimum(g + step, 0.0), g) ** 2), 1e-300)
    return d, mass, g + step


@np.errstate(over="ignore", under="ignore")
def log_most_upper(m: float, q: np.ndarray, size: np.ndarray, turned: float) -> np.ndarray:
    """log of a bound of |psi(s)|, Re s >= -q, q >= 0, size >= q, and >= |s| where Im s < 0: along the real line up to
    the best g1, down to Im g = -turned/m, where Re sX >= 0, and to the right [theory: allocation.path]."""
    to = float(_larger_root(m, np.array([size.min()]))[0]) + 1
    d, mass, end = _bulk_cells(m, math.ceil(min(to, 40.0)))
    beta = turned / m
    z = np.minimum(np.multiply.outer(q, d), 1e300)
    h2 = np.where(np.abs(z) < 1e-3, 0.51 * z * z, np.expm1(z) - z) * (1 + 1e-9)
    sums = np.cumsum(np.maximum(h2[:, 1:], h2[:, :-1]) * mass, axis=1) + 2e-19 * (1 + q[:, None])
    low = 0.5 * (beta - end) * (beta + end)
    upright = math.log(0.4 * beta + 1e-300) + low + np.multiply.outer(size, 1 + d[1:]) * (1 + 1e-12)
    flat = np.where(end > 1, low - np.log(2.5 * np.maximum(end, 1.0)), 0.5 * beta * beta)
    more = (sums + np.exp(upright) + np.exp(flat)).min(axis=1)
    return np.log1p(more * (1 + 1e-9))


def log_cut_upper(m: float, t: int, r1: np.ndarray, r2: np.ndarray, turn: float, loop: bool = False) -> np.ndarray:
    """Logs of bounds of |Im psi(-r)^t| e^{c|r|}, c the cosine, for |r| in cells and |arg r| <= turn; loop: by that of
    the loop alone [theory: allocation.edge]."""
    most = log_most_upper(m, r2, r2, 0.5 * math.pi + turn)
    at = _larger_root(m, r2)
    X = np.exp(m * at - 0.5 * m * m)
    one = math.log(t) + _log_loop_upper(m, at, r1 * X, turn) + (r2 - r1) * X  # t times half of |a - b|
    return (t - 1) * most + (one if loop else np.minimum(one, most + math.cos(turn) * r2)) + 1e-6


class _Axis:
    """phi at -r for r = e^{STEP j} with whole j, and bounds beside."""

    def __init__(self, m: float, t: int, j: np.ndarray):
        self.m, self.t = m, t
        self.u = STEP * j
        self.r = r = np.exp(self.u)
        turned = min(max(1.3 + 0.5 * m, 1.75), 2.5)
        rule = _Rule(m, t, turned, math.pi - turned, float(r[-1]))
        h, err = rule.at(-r + 0j)
        jump, jump_err, base = _discontinuity(m, r)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            scale = np.exp(np.minimum(base - r, 300.0))
            better = jump_err * scale < err
            im = np.where(better, jump * scale, -h.imag)
            rel = np.where(better, jump_err / np.abs(jump) + U * (8 + 4 * np.abs(base - r)), err / np.abs(h.imag))
            log_im = np.where(better, np.log(np.abs(jump)) + base - r, np.log(np.abs(h.imag)))
            mod = np.hypot(1 + h.real, im)
            part = err / np.maximum(mod - err, 1e-300)
            more = 1 / np.maximum(1 - part - rel, 1e-3)  # log and arg of 1 + z are within |z|/(1 - |z|)
            self.log = 0.5 * np.log1p(2 * h.real + h.real**2 + im**2)
            self.off = (part + rel * np.abs(im) / mod) * more + 8 * U * (np.abs(self.log) + np.abs(h.real) + np.abs(im))
            angle = np.arctan2(im, 1 + h.real)
            small = np.abs(im) < 1e-20 * mod
            self.sign = np.sign(np.where(better, jump, -h.imag))
            self.log_turned = math.log(t) + np.where(small, log_im - self.log, np.log(np.abs(angle)))
            self.off_turned = (rel + part) * more + 8 * U * (1 + np.abs(self.log_turned))  # relative
        self.bad = ~((err < 0.1 * mod) & (rel < 0.03)) | (small & (h.real < -0.9))

    def logs(self, x: float) -> np.ndarray:
        """Logs of about the moduli of terms."""
        with np.errstate(over="ignore", under="ignore"):
            log = self.t * self.log - self.r * x - self.u + np.minimum(self.log_turned, 0.0)
        return np.where(self.bad, -math.inf, log)

    def price(self, x: float) -> Value | None:
        """log E(S-K)_+, K = t + x, x > 0."""
        t, r, u, K = self.t, self.r, self.u, self.t + x
        logs = self.logs(x)
        top = float(logs.max())
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            turned = np.exp(np.minimum(self.log_turned, 300.0))
            part = np.where(
                turned < 1e-4, 1 - turned * turned / 6, np.sin(turned) / np.maximum(turned, 1e-4)
            )  # within 2u
            size = np.exp(np.minimum(logs - np.minimum(self.log_turned, 0.0) + self.log_turned - top, 600.0))
            off = t * self.off + U * (16 + 12 * (r * x + t * np.abs(self.log) + np.abs(u) + np.abs(self.log_turned)))
            off, lost = np.minimum(off, 600.0), np.minimum(self.off_turned, 2 / np.maximum(turned, 1e-300))
            err = size * (np.abs(part) * (np.expm1(off) + U * (u.size + 30)) + np.exp(off) * lost)
        seen = ~self.bad & (size > 0)
        total = float((self.sign * size * part)[seen].sum()) * STEP / math.pi
        if not total > 0 or self.bad.any():
            return None
        inner = float(err[seen].sum() + 1e-300) * STEP / math.pi / total
        edges, ends = self._missed_upper(K, top)
        inner += U * (30 + 8 * abs(top) + 1.3 * edges / TURN / total)  # e^u is within 2u
        alias = edges / math.expm1(2 * math.pi * TURN / STEP * (1 - 1e-9)) / total / math.pi
        return Value(top + math.log(total), alias * MORE, ends / total / math.pi * MORE, inner * MORE)

    def _cells_upper(self, r1: np.ndarray, r2: np.ndarray, K: float, turn: float, loop: bool = False) -> np.ndarray:
        """Logs of bounds of |e^{-rK} Im phi(-r)^t / r| for |r| in cells, |arg r| = turn."""
        less = math.cos(turn) * r1 * (K - self.t + 1)  # e^{-cr(K-t+1)} falls
        return log_cut_upper(self.m, self.t, r1, r2, turn, loop) - less - np.log(r1)

    def _missed_upper(self, K: float, top: float) -> tuple[float, float]:
        """Bounds, over e^top, of the integrals of the moduli on both edges of the strip, and of the nodes beyond the
        ends."""
        m, t, c = self.m, self.t, math.cos(TURN)
        first, last, grown = float(self.u[0]), float(self.u[-1]), t * (0.5 * math.pi + TURN) ** 2 / (2 * m * m)
        far = max(last + 1.0, math.log((grown + 90 + abs(top) + abs(math.log(K))) / (c * K)))
        edge = self._integral_upper(np.exp(np.append(np.arange(first - 2.0, far, CELL), far)), K, top)
        u = np.append(first - STEP * np.arange(64, 0, -1), np.arange(last + STEP, far + STEP, STEP))
        r = np.exp(u)
        logs = np.concatenate([self._cells_upper(x * LESS, x * GREATER, K, 0.0) for x in _parts(r)])
        with np.errstate(over="ignore"):
            ends = STEP * float(np.exp(np.minimum(logs - top, 600.0)).sum())
        high = (1 + STEP) * math.exp(min(grown - c * K * math.exp(far) - far - top, 600.0))
        edge += self._low_upper(math.exp(first - 2.0), K, top, TURN) + high
        return 2 * edge, ends + self._low_upper(float(r[0]), K, top, 0.0) + high

    def _integral_upper(self, r: np.ndarray, K: float, top: float) -> float:
        """A bound of the integral between the first and the last r on one edge, over e^top, by cells; those that are
        not small are divided."""
        r1, r2, total = r[:-1], r[1:], 0.0
        for divided in (False, True):
            logs = [self._cells_upper(*cells, K, TURN) for cells in zip(_parts(r1), _parts(r2), strict=True)]
            with np.errstate(over="ignore"):
                bounds = np.exp(np.minimum(np.concatenate(logs) - top, 600.0)) * np.log(r2 / r1) * MORE
            large = (bounds > SMALL) & (not divided)
            total += float(bounds[~large].sum())
            loose = (r2 - r1) * (K - self.t + 1 + self.t * self.m**2 * r2)  # about, in nats
            parts = np.clip(np.ceil(loose[large] / LOOSE), 1, CELLS_MAX).astype(int)
            cells = [np.linspace(a, b, n + 1) for a, b, n in zip(r1[large], r2[large], parts, strict=True)]
            if not cells:
                break
            r1, r2 = (np.concatenate([x[side] for x in cells]) for side in (slice(None, -1), slice(1, None)))
        return total

    def _low_upper(self, r: float, K: float, top: float, turn: float) -> float:
        """Of what lies below r, where rX is kept [theory: allocation.edge]."""
        at = float(_larger_root(self.m, np.array([r]))[0])
        power = at / self.m - 1
        if not power > 0.5:
            return math.inf
        log = float(self._cells_upper(np.array([r]), np.array([r]), K, turn, loop=True)[0]) - top
        log += math.cos(turn) * r * (K - self.t + 1)  # e^{-r(K-t+1)} is up to 1 there
        return math.exp(min(log, 600.0)) * (1 / power + STEP)


CELL, SMALL, LOOSE, CELLS_MAX = 0.1, 1e-3, 3.0, 80
"""Cells of log r; what one may be of e^top; else it is divided until a bound varies by about so many nats, in so many
at most."""

LESS, GREATER = 1 - 1e-12, 1 + 1e-12


def _parts(x: np.ndarray) -> list[np.ndarray]:
    """So few cells at a time that their sums stay in a cache."""
    return np.array_split(x, 1 + x.size // 64)


@functools.lru_cache(4)
def _coarse(m: float, t: int) -> _Axis:
    """Nodes for all K, so far apart that they place others and give about the price."""
    return _Axis(m, t, np.arange(math.floor(-(46 * m + math.log(t) + 4) / STEP), math.ceil(2.5 / STEP), FAR))


FAR = 12
"""Nodes of STEP from one to the next of these."""


@functools.lru_cache(256)
def log_call(m: float, t: int, x: float) -> Value | None:
    """log E(S-K)_+, K = t + x, x > 0, along the cut; None where that is out of reach."""
    coarse = _coarse(m, t)
    log = coarse.logs(x)
    seen = np.flatnonzero(log > log.max() - DEPTH)
    if not seen.size or seen[0] == 0 or seen[-1] == log.size - 1:
        return None
    first, last = (round(float(coarse.u[i]) / STEP) for i in (seen[0] - 1, seen[-1] + 1))
    return _Axis(m, t, np.arange(first, last + 1)).price(x)


def about_root(m: float, t: int, add: int, goal: float) -> tuple[float, float] | None:
    """About where log delta(eps) is `goal`, and its slope there."""
    about = functools.partial(_about, m, t, add)
    low, high, step = 0.0, 1e-3, 4.0
    while (value := about(high)) is not None and value > goal:
        low, high = high, high * step
        if high > 600:
            return None
    if value is None:
        return None
    for _ in range(60):
        mid = math.sqrt(low * high) if low > 0 else 0.5 * high
        value = about(mid)
        if value is None:
            return None
        low, high = (mid, high) if value > goal else (low, mid)
        if high - low < 1e-3 * high or high < 1e-9:
            break
    mid = 0.5 * (low + high)
    h = 1e-2 * mid
    up, down = about(mid + h), about(mid - h)
    return None if up is None or down is None else (mid, (up - down) / (2 * h))


def _about(m: float, t: int, add: int, eps: float) -> float | None:
    """About log delta(eps)."""
    if add:
        x, K = t * math.expm1(-eps), t * math.exp(-eps)
        for whole, at in ((False, x), (True, K)):
            found = _saddle(m, t, at, whole)
            if found is not None:
                s, width = found
                log = float(_log_real(m, t, np.array([s]), whole)[0][0])
                return eps + s * at + t * log - 2 * math.log(s) - math.log(width * math.sqrt(2 * math.pi) * t)
        return None
    log, moduli = about_call(m, t, t * math.expm1(eps))
    if min(0.0, log) >= moduli + math.log(0.03):
        return log
    put = log_put(m, t, t * math.expm1(eps), t * math.exp(eps))
    if put and put.log - math.log(t) < 600:
        part = math.exp(put.log - math.log(t))
        off = part * (put.error + 1e-15) + 1e-15 * math.expm1(eps)
        return min(moduli, math.log(max(part - math.expm1(eps), 3 * off)))
    return moduli if moduli < math.inf else None


def about_call(m: float, t: int, x: float) -> tuple[float, float]:
    """Logs of about E(S-K)_+/t and of the sum of the moduli whose terms sum to it, by every FARth node of the cut."""
    if m < LEAST_SHIFT or x <= 0:
        return -math.inf, math.inf
    coarse = _coarse(m, t)
    logs = coarse.logs(x)
    top = float(logs.max())
    sizes, turned = np.exp(logs - top), np.exp(np.minimum(coarse.log_turned, 300.0))
    part = np.where(turned < 1e-4, 1.0, np.sin(turned) / np.clip(turned, 1e-4, 1.0))
    total = float((coarse.sign * sizes * part).sum())
    scale = top + math.log(STEP * FAR / math.pi / t)
    return scale + math.log(total) if total > 0 else -math.inf, scale + math.log(float(sizes.sum()))


PATHS = 0.4, 3.6
"""m between which a path (allocation_path.py) knows more: below, turning costs its digits, beyond, many panels are
mostly in vain."""

LEAST_SHIFT = 0.25
"""m from which the cut is asked: with more noise turning g costs all digits."""
