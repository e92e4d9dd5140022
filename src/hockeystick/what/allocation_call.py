"""One epoch of random allocation alone under REMOVE, where delta is no small part of E|S-t|/t: one line without a pole.

Symbols as in allocation_epoch.py; W = S - t, psi(s) = phi(s) e^s = E e^{-sW}, f(x) = E(W-x)_+; N a normal variable of
mean 0 and variance V; s_n = c + iy_n, y_n = 2 pi n/P.

Formula [theory: allocation.call].
    f(x) = E(N-x)_+ + (e^{cx}/P) sum_n e^{i y_n x} (psi(s_n)^t - e^{V s_n^2/2}) s_n^-2 + aliases:
both transforms are 1 at 0 with no slope there, so that the summands have no pole and the line may be near it.

Error claims. Relative to f, the sum of: aliases; nodes beyond the last; rounding and what the rule for psi misses,
carried along node by node. Each is computed.

What it does not do: prices that are a small part of E|W|, which rounding loses; terms so large that the line is long.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..outward import U
from .allocation_epoch import MORE, _log, _Rule
from .allocation_line import normal_cdf, tail_of

RISE, NATS, ALIAS, DEPTH, NODES_MAX = 1.6, 34.0, 25.0, 38.0, 800
"""cx at most, of whose exponential rounding is a multiple; nats of the last node, of the first alias and of those of
the rule for psi; most nodes."""

LEAST, MANY = 3.5e-5, 0.09
"""Least f over the deviation of N that a line knows well; where v < MANY, MANY/v times as much, as the rule turns."""

SHIFTS, STEPS = (0.06, 2.2), 30_000
"""m between which lines are asked, and most steps: no period is less."""

TURNED = np.array([1.0, 0.75, 0.5, 0.3, 0.15])
"""Parts of yv by which g is turned to bound phi at iy."""


class CallLine:
    """f(x) for x > 0 up to about `most`; not `known` where it would have too many nodes."""

    def __init__(self, m: float, t: int, most: float):
        self.m, self.t, self.most = m, t, most
        far = about_end(m, t)
        self.V = 2 * NATS / (far * far)
        self.c = min(RISE / most, 1 / math.sqrt(self.V))
        self.period = period = max(ALIAS / self.c, 1.01 * most + max(float(t), 14 * math.sqrt(self.V)))
        n = math.ceil(far * period / (2 * math.pi))
        turned = max(min(0.8, 1.2 * m), 0.5 * math.pi - 1.35)
        self.known = n < NODES_MAX and turned < 25 * m
        if not self.known:
            return
        self.y = y = 2 * math.pi / period * np.arange(n + 1)
        s = self.c + 1j * y
        self.rule = _Rule(m, t, turned, max(turned, 0.5 * math.pi - turned), abs(complex(s[-1])), depth=DEPTH)
        log, off = _log(*self.rule.at(s, rough=True), False)
        self.known = bool(off.max() < math.inf)
        if not self.known:
            return
        z, g = t * log, 0.5 * self.V * s * s
        E, G = _expm1(z), _expm1(g)
        weight = np.where(y > 0, 2.0, 1.0) / period / (s * s)
        self.part = (E - G) * weight  # [theory: allocation.call]
        self.rate = s * self.part
        size = np.minimum(np.abs(z), 3 + np.abs(E)) + np.minimum(np.abs(g), 3 + np.abs(G))
        err = np.abs(weight) * (np.abs(1 + E) * np.expm1(t * off) + 24 * U * size)
        self.error = float((err + U * (32 + y.size) * np.abs(self.part)).sum())
        self.turned = 4 * U * float(y @ np.abs(self.part))  # of phases, times x
        self.ends = self._ends_upper(float(y[-1]))

    def _ends_upper(self, y: float) -> float:
        """Of nodes beyond y, but for e^{cx}."""
        angle = np.minimum(y * self.m**2 * TURNED, 1.5)
        q = self.c * np.cos(angle) + y * np.sin(angle)
        bound = 0.5 * (angle / self.m) ** 2 + self.log_upper(q) + self.c - q
        normal = math.exp(0.5 * self.V * (self.c**2 - y * y))
        return (math.exp(min(self.t * float(bound.min()), 600.0)) + normal) / (math.pi * y) * MORE

    def log_upper(self, q: np.ndarray) -> np.ndarray:
        """log of a bound of psi(q) at real q between c and |s| of the last node."""
        log, off = _log(*self.rule.at(q + 0j, rough=True), False)
        return log.real + off

    def value(self, x: float) -> tuple[float, float]:
        """About f and its slope."""
        turned = math.exp(self.c * x) * np.exp(1j * x * self.y)
        value, slope = float((turned @ self.part).real), float((turned @ self.rate).real)
        return value + self._normal(x), slope - tail_of(x / math.sqrt(self.V))

    def _normal(self, x: float) -> float:
        """E(N-x)_+, within 40u(1 + z^2) e^{-z^2/2} deviations."""
        z = x / math.sqrt(self.V)
        return math.sqrt(self.V) * (math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) - z * tail_of(z))

    def at(self, x: float) -> tuple[float, float, float, float]:
        """f(x), where x is within 4u of itself, and bounds of its errors: aliases, ends, and the rest."""
        value, _ = self.value(x)
        if not x <= 1.01 * self.most:
            return value, math.inf, math.inf, math.inf
        up, z, normal = math.exp(self.c * x), x / math.sqrt(self.V), self._normal(x)
        inner = up * (self.error + self.turned * x)
        inner += U * (40 * math.sqrt(self.V) * (1 + z * z) * math.exp(-0.5 * z * z) + 8 * (normal + abs(value)))
        inner += 8 * U * min(x, self.t * math.expm1(self.m**2) / x)  # what x is off by, times Pr[W > x] <= Var W/x^2
        later = math.expm1(min(self.c * self.period * (1 - 1e-12), 600.0))
        pull = (self.period - x) / self.V  # of N beyond the period
        left = self.c * self.period - 0.5 * pull * (self.period - x) - 1 - math.log(pull)
        aliases = (value + normal + 2 * (inner + up * self.ends)) / later + 2 * math.exp(min(left, 600.0))
        return value, aliases * MORE, up * self.ends * MORE, inner * MORE


def _expm1(z: np.ndarray) -> np.ndarray:
    """Both parts by functions within 4u of themselves."""
    half = np.sin(0.5 * z.imag)
    return np.expm1(z.real) * np.cos(z.imag) - 2 * half * half + 1j * (np.exp(z.real) * np.sin(z.imag))


@functools.lru_cache(64)
def about_end(m: float, t: int) -> float:
    """About the y from which the bound of |psi(iy)|^t is below e^-NATS; infinite where that is far."""
    v, g = m * m, np.arange(-7.0, 7.0, 0.5)
    y = math.sqrt(2 * NATS / t / math.expm1(min(v, 600.0))) * 1.15 ** np.arange(48)
    angle = np.minimum(np.multiply.outer(v * TURNED, y), 1.5)
    terms = np.exp(-np.multiply.outer(y * np.sin(angle), np.exp(m * g - 0.5 * v)))
    fall = -0.5 * angle * angle / v - np.log(terms @ np.exp(-0.5 * g * g) * (0.5 / math.sqrt(2 * math.pi)) + 1e-300)
    beyond = fall.max(axis=0) * t > NATS
    return float(y[np.argmax(beyond)]) if beyond[-1] else math.inf


@functools.lru_cache(64)
def _line(m: float, t: int, power: int) -> CallLine:
    return CallLine(m, t, 2.0 ** (0.5 * power))


def line_at(m: float, t: int, x: float) -> CallLine | None:
    """The line of all x up to the next power of the root of 2."""
    if not _served(m, t):
        return None
    line = _line(m, t, math.ceil(2 * math.log2(x)))
    return line if line.known else None


def _served(m: float, t: int) -> bool:
    return SHIFTS[0] < m < SHIFTS[1] and t <= STEPS and about_end(m, t) < math.inf


def is_large(m: float, t: int, log_delta: float) -> bool:
    """Whether a line knows a price of about t e^log_delta well."""
    if not _served(m, t):
        return False
    part = t * math.exp(log_delta) * about_end(m, t) / math.sqrt(2 * NATS)
    return LEAST * max(1.0, MANY / (m * m)) < part < 0.5


def root(m: float, t: int, goal: float) -> tuple[CallLine, float, float] | None:
    """A line, and where about log delta(eps) is `goal`, with its slope there; None where there is none."""
    if not is_large(m, t, goal):
        return None
    price, V = t * math.exp(goal), t * math.expm1(m * m)
    z = np.geomspace(1e-3, 30.0, 32)  # a normal variable, or one term alone
    x = math.sqrt(V) * z
    d = np.log1p(x) / m
    about = math.sqrt(V) * (np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) - z * normal_cdf(-z))
    about += t * (normal_cdf(0.5 * m - d) - (1 + x) * normal_cdf(-0.5 * m - d))
    if not 0 < about[-1] < price < about[0]:
        return None
    at, line = float(np.exp(np.interp(-math.log(price), -np.log(about), np.log(x)))), None
    for _ in range(12):
        line = line or line_at(m, t, at)
        if line is None:
            return None
        value, slope = line.value(at)
        if not (value > 0 and slope < 0):
            return None
        move = (math.log(price) - math.log(value)) * value / slope
        at += max(min(move, at), -0.5 * at)
        if abs(move) < 1e-4 * at:
            if 0.4 * line.most < at <= line.most:
                return line, math.log1p(at / t), slope / value * (t + at)
            line = None
    return None
