"""Pairs of bounded-range steps: density e^{l/2}/(4 sinh(m/2)) of the loss on [-m, m], plain and Poisson-sampled.

Every curve below it. A step of range m has its loss in [s - m, s] for some s in [0, m]; with U = e^-L, E U = 1 under
num, H_a = E (1 - a U)_+ is convex in U and so largest for the two ends of U. At a = e^g that is (1 + e^{g-m} - e^{s-m}
- e^{g-s})/(1 - e^-m) for s - m <= g <= s, which is largest at s = (g + m)/2. The supremum H over s is a curve, and its
loss has den density H''(a) a da and num density a times that, which gives the density above.

M(z) = int e^{(z + 1/2) l} dl/(4 sinh(m/2)) = sinh((z + 1/2) m)/((1 + 2z) sinh(m/2)), and |sinh(x + iy)| <= cosh(x).
With the density 1/(1 - e^-m) times that between the atoms of Laplace laws moved by m, samples are those of laplace.py
without atoms."""

from __future__ import annotations

import math

from flint import acb, arb

from .balls import about
from .laplace import Mirrored, SampledLaplace


class Range(Mirrored):
    """The worst step of range m."""

    def sampled(self, q: arb) -> SampledRange:
        """The law of a Poisson sample of rate q."""
        return SampledRange(self.m, q)

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), and mean and variance of the loss tilted by c. For planning only."""
        m, v = about(self.m), max(c + 0.5, 1e-3)
        x = v * m
        log_m = (v - 0.5) * m + math.log(math.expm1(-2 * x) / (2 * v * math.expm1(-m)))
        if x < 1e-2:
            return log_m, m * x / 3, m * m / 3
        y = x / math.sinh(min(x, 300.0))
        return log_m, m / math.tanh(x) - 1 / v, (1 - y * y) / (v * v)

    def mgf(self, c: arb, nats: float) -> arb:
        v = c + arb(0.5)
        return (v * self.m).sinh() / (2 * v * (self.m / 2).sinh())

    def values(self, c: arb, h: arb, count: int, nats: float) -> list[acb]:
        scale = 2 * (self.m / 2).sinh()
        lines = (acb(c + arb(0.5), n * h) for n in range(count))
        return [(v * self.m).sinh() / (v * scale) for v in lines]

    def falloff_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')|/M(c) for all y' >= y."""
        v = c + arb(0.5)
        return (v * (v * self.m).coth() / abs(acb(v, y))).upper().min(arb(1))

    def delta(self, eps: arb) -> arb:
        """The curve of one step."""
        m = self.m
        if eps <= -m:
            return -eps.expm1()
        inside = ((eps - m) / 2).expm1() ** 2 / -(-m).expm1()
        return inside if eps < m and eps > -m else arb(0) if eps >= m else inside.union(arb(0)).union(-eps.expm1())


class SampledRange(SampledLaplace):
    """q num + (1-q) den | den."""

    plain = Range

    def _points(self, c: arb, y: arb, nats: float):
        weights, losses, error = super()._points(c, y, nats)
        scale = 2 / -(-self.m).expm1()
        return [scale * w for w in weights[:-2]], losses[:-2], scale * error

    def _far_upper(self, c: arb, y: arb) -> arb:
        low, high = self._w(-self.m), self._w(self.m)
        power = self._power(c)
        masses = low**power / 2 + (-self.m).exp() * high**power / 2
        return 2 / -(-self.m).expm1() * (super()._far_upper(c, y) - masses).abs_upper()
