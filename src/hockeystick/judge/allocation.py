"""Random allocation: one epoch of t steps with a record in one of them, drawn uniformly; the direction "add".

With X_i = e^{m g_i - v/2}, g_i independent N(0, 1), v = m^2, V = (X_1 + .. + X_t)/t, the loss of "add" is L = -log V
[theory: allocation.pair]. From x^-z Gamma(z) = int e^{zu} e^{-x e^u} du, by parts in u, for z = c + iy, c > 0,

    M(z) = E V^{-z} = t^z/Gamma(z + 1) int e^{(z+1) u} t psi(u) phi(u)^{t-1} du,
    phi(u) = E exp(-e^u X) = int exp(-e^w) N((w - u + v/2)/m) dw/m,
    psi(u) = E X exp(-e^u X), the same with - v/2 for + v/2, as x N((x + v/2)/m) at x = log X moves the mean by v.

Both integrals are trapezoid sums on one mesh h, so that phi and psi at all nodes are products of polynomials.

Inner sums. Shifted to Im w = +-b, |b| <= pi/2, |exp(-e^w)| <= 1 and the normal density grows by e^{b^2/(2v)}: off by
at most 2 e^{b^2/(2v)}/(e^{2 pi b/h} - 1). Terms beyond R deviations add at most 2 Pr[N > R - h/m]; terms with w > W at
most 2 exp(-e^W).

Outer sum. On Im u = +-d, d < pi/2, |phi(u + id)| <= phi(u + log cos d), psi likewise, so that aliases move M(z) by at
most 2 e^{|y| d} (cos d)^{-(c+1)} Gamma(c+1)/|Gamma(z+1)| M(c)/(e^{2 pi d/h} - 1). At z = c the summand is log-concave:
phi(u) and e^u psi(u) are convolutions of log-concave functions of w [Prekopa]. So terms beyond either end are at most a
geometric series in the ratio of the last two, and for other y no larger.

Falling off. X_i = e^{m G/sqrt t} Y_i with G = sum g_i/sqrt t independent of all Y: |M(c + iy)| <= M(c) e^{-y^2 v/(2t)}.

The pair of "remove" has no transform here: its curve is 1 - e^eps (1 - delta_add(-eps))."""

from __future__ import annotations

import functools
import math

import numpy as np
from flint import acb, arb, arb_poly, ctx

from .balls import UndecidedError, about, exponential_sums, normal_above, precision

MAX_NODES = 12_000
MAX_BITS = 6_000
MAX_WORK = 3e6
"""Products of nodes and frequencies, of 500 bits: about two seconds."""

STEEP = 120.0


class Allocation:
    """The loss of one epoch in direction "add", m = sensitivity/sigma; `turned`: in direction "remove", of which only
    the parameters are known."""

    lattice = None

    def __init__(self, m: arb, t: int, turned: bool = True):
        self.m, self.t, self.turned = m, t, turned
        self.mass_inf = arb(0)

    def reversed(self) -> Allocation:
        return Allocation(self.m, self.t, not self.turned)

    def sampled(self, q: arb):
        raise UndecidedError("no transform is written here for a sample of random allocation")

    def least_gap(self) -> float:
        """0: no law with few outcomes is near this one."""
        return 0.0

    def steepest(self) -> float:
        """A tilt beyond which a quadrature has too many nodes. For planning only."""
        return STEEP

    def top(self) -> None:
        """No largest loss."""

    @functools.cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """u, and about log psi and log of t psi phi^{t-1}, in doubles."""
        if self.turned:
            raise UndecidedError("no transform is written here for random allocation in direction 'remove'")
        m, u = about(self.m), np.arange(-60.0, 60.0, 0.05)
        g = np.linspace(-25.0, 25.0, 1001)
        weight = np.exp(-0.5 * g * g) * 0.05 / math.sqrt(2 * math.pi)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            phi, psi = (np.exp(-np.exp(np.add.outer(u, m * g + s * m * m / 2))) @ weight for s in (-1, 1))
            rest = (self.t - 1) * np.maximum(np.log(np.minimum(phi, 1.0)), -1e4)
            return u, np.log(psi), math.log(self.t) + np.log(psi) + rest

    def _log(self, c: float) -> float:
        u, _, log_g = self._table
        terms = (c + 1) * u + log_g
        top = float(terms.max())
        return c * math.log(self.t) - math.lgamma(c + 1) + top + math.log(float(np.exp(terms - top).sum()) * 0.05)

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), and mean and variance of the loss tilted by c. For planning only."""
        step = 0.01 * (c + 0.5)
        low, mid, high = (self._log(c + i * step) for i in (-1, 0, 1))
        return mid, (high - low) / (2 * step), max((low - 2 * mid + high) / step**2, about(self.m) ** 2 / self.t)

    def mgf(self, c: arb, nats: float) -> arb:
        """M(c), to about e^-nats relative."""
        return self.values(c, arb(1), 1, nats)[0].real

    def falloff_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')|/M(c) for all y' >= y."""
        return (-((self.m * y) ** 2) / (2 * self.t)).exp().upper()

    def values(self, c: arb, h: arb, count: int, nats: float) -> list[acb]:
        """M(c + inh), n = 0..count-1."""
        u, log_psi, log_g = self._table
        far = about(h) * (count - 1)
        deep = nats + 20 + 0.5 * math.pi * far  # Gamma(z + 1) falls by e^{-pi y/2}
        bits = ctx.prec + int(1.5 * deep)
        if bits > MAX_BITS:
            raise UndecidedError(f"the transform of random allocation needs {bits} bits, more than {MAX_BITS}")
        with precision(bits):
            terms = (about(c) + 1) * u + log_g
            seen = np.flatnonzero(terms > terms.max() - deep)
            inner = max(deep, 1.1 * -float(log_psi[seen[-1]])) + math.log(self.t) + 20  # psi to some digits at the end
            mesh, d = self._mesh(about(c), far, deep, inner)
            if not mesh * MAX_NODES > u[seen[-1]] - u[seen[0]]:  # with next to no loss no double holds a mesh
                raise UndecidedError("the transform of random allocation needs too many nodes")
            first, last = math.floor(u[seen[0]] / mesh) - 2, math.ceil(u[seen[-1]] / mesh) + 2
            if last - first > MAX_NODES or (last - first) * count * (1 + bits / 500) > MAX_WORK:
                raise UndecidedError("the transform of random allocation needs too many nodes")
            weights, rest = self._weights(c, arb(mesh), first, last, inner)
            places = [mesh * arb(j) for j in range(first, last + 1)]
            sums = exponential_sums(weights, places, h, count)
            return self._scaled(sums, rest, c, h, (arb(d), arb(mesh)))

    def _mesh(self, c: float, far: float, deep: float, wanted: float) -> tuple[float, float]:
        """A mesh for both sums, and the height d of the strip of the outer one. For planning only."""
        outer, d = max(
            (2 * math.pi * d / (far * d - (c + 1) * math.log(math.cos(d)) + deep), d)
            for d in np.arange(0.1, 1.57, 0.05)
        )
        m = about(self.m)
        inner = max(2 * math.pi * b / (wanted + b * b / (2 * m * m)) for b in np.geomspace(0.01, 1.57, 60))
        return math.ldexp(math.floor(math.ldexp(min(inner, outer), 30)), -30), float(d)

    def _weights(self, c: arb, mesh: arb, first: int, last: int, deep: float) -> tuple[list[arb], arb]:
        """The summands at y = 0 times the mesh, and a bound of what was left out beyond the ends."""
        phi, psi = (self._smoothed(mesh, first, last, deep, sign) for sign in (1, -1))
        out = [
            mesh * self.t * ((c + 1) * mesh * j).exp() * b * a ** (self.t - 1)
            for j, a, b in zip(range(first, last + 1), phi, psi, strict=True)
        ]
        rest = arb(0)
        for end, next_to in ((out[0], out[1]), (out[-1], out[-2])):
            ratio = end.abs_upper() / next_to.abs_lower()
            if not ratio < 1:
                raise UndecidedError("the transform of random allocation is cut too early")
            rest += end.abs_upper() * ratio / (1 - ratio)
        return out, rest

    def _smoothed(self, mesh: arb, first: int, last: int, deep: float, sign: int) -> list[arb]:
        """phi (sign 1) or psi (sign -1) at the nodes first..last."""
        m, v = self.m, self.m**2
        reach = math.sqrt(2 * deep + 20)
        wide = math.ceil((reach * about(m) + about(v)) / about(mesh)) + 1
        most = min(math.ceil(math.log(deep + 10) / about(mesh)), last + wide)
        tops = [(-(mesh * k).exp()).exp() for k in range(first - wide, most + 1)]
        scale = mesh / (m * (2 * arb.pi()).sqrt())
        kernel = [scale * (-(((mesh * d + sign * v / 2) / m) ** 2) / 2).exp() for d in range(-wide, wide + 1)]
        product = (arb_poly(tops) * arb_poly(kernel[::-1])).coeffs()
        b = 2 * arb.pi() * v / mesh
        b = b if b < 1.57 else arb(1.57)
        error = 2 * (b * b / (2 * v)).exp() / ((2 * arb.pi() * b / mesh).exp() - 1)
        error += 2 * normal_above((mesh * wide - v / 2) / m - mesh / m) + 2 * (-(mesh * most).exp()).exp()
        near = arb(0, error.abs_upper())
        return [
            (product[2 * wide + j] if 2 * wide + j < len(product) else arb(0)) + near for j in range(last - first + 1)
        ]

    def _scaled(self, sums: list[acb], rest: arb, c: arb, h: arb, strip: tuple[arb, arb]) -> list[acb]:
        d, mesh = strip
        root = arb(self.t).log()
        none = (c * root).exp() / (c + 1).gamma()
        alias = 2 * d.cos() ** -(c + 1) / ((2 * arb.pi() * d / mesh).exp() - 1)
        if not alias < 0.5:
            raise UndecidedError("the mesh for random allocation is too coarse")
        most = none * (sums[0].real + arb(0, rest.abs_upper())) / (1 - alias)  # at least M(c)
        out = []
        for n, value in enumerate(sums):
            z = acb(c, n * h)
            scale = (z * root).exp() * (z + 1).rgamma()
            error = abs(scale) * rest + alias * (n * h * d).exp() * abs((z + 1).rgamma()) * (c + 1).gamma() * most
            off = arb(0, error.abs_upper())
            out.append(scale * value + acb(off, off))
        return out
