"""Pairs of Laplace laws moved by m scales, plain, Poisson-sampled, and sampled under replace_one.

With f_u the density e^{-|x-u|}/2 and f_0 as the reference, f_m/f_0 = e^l, l = -m below 0, 2x - m on [0, m], m above.

plain     f_m | f_0:  M(z) = e^{mz} (1+z)/(1+2z) + e^{-m(1+z)} z/(1+2z), and the curve is 1 - e^{(eps-m)/2} for |eps| <=
          m.
sampled   q f_m + (1-q) f_0 | f_0: L = log w(l), w(l) = 1 - q + q e^l: den masses 1/2 at w(-m), e^{-m}/2 at w(m), and on
          [0, m] the den density e^{-x}/2. H_a(q P + (1-q) Q | Q) = q H_b(P | Q) with b = 1 + (a-1)/q for a > 1 - q,
          else 1 - a.
replaced  q f_m + (1-q) f_0 | q f_{-m} + (1-q) f_0: w(2|x| - m) over w(-m) for x > 0, the inverse for x < 0; odd in x.

k plain steps, in closed form. Expanding M(z)^k e^{-eps z}/(z (1+z)) gives terms
    C(k, j) e^{-m(k-j)} e^{az} (1+z)^{j-1} z^{k-j-1}/(1+2z)^k,  a = m (2j - k) - eps,  j = 0..k.
Each falls like |z|^-2: its integral over Re z = c is 0 for a <= 0 (close to the right) and for a > 0 the sum of
residues: at -1/2 it is e^{-a/2} 2^-k times the coefficient of w^{k-1} in e^{aw} (1/2 + w)^{j-1} (w - 1/2)^{k-j-1}; at 0
it is 1 if j = k; at -1 it is -e^{-a} if j = 0.

Falling off. |1+z|/|1+2z| falls and |z|/|1+2z| rises (to 1/2) as Im z grows, since (1+c)/(1+2c) >= 1/2 >= c/(1+2c). For
the other two the masses at the ends keep their size, and int_0^m f e^{iyL} dx = [f e^{iyL}/(iyL')] - (1/iy) int (f/L')'
e^{iyL} dx is at most 1/y times f/L' at both ends plus its variation. There f/L' is a constant times e^{-3x} w^p, p = 2
+ c or 1 - c, with
|x| for x: for p >= 0 its logarithm is convex, so it falls and then rises; for p < 0 it only falls: either way the
variation is at most the sum of both ends."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import acb, arb, ctx, fmpq, fmpq_poly

from .balls import UndecidedError, about, exponential_sums, precision, tilted

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_NODES = 4000
MAX_COMPOSED = 400
STEEP = 1e17
"""Largest tilt of an exponent."""


class _Step:
    """A law of finite losses that share no lattice."""

    lattice = None
    mass_inf = arb(0)

    def least_gap(self) -> float:
        """0: no law with few outcomes is near this one."""
        return 0.0

    def steepest(self) -> float:
        """A tilt beyond which nothing is gained. For planning only."""
        return STEEP


class Mirrored(_Step):
    """A law on [-m, m], its own mirror image."""

    def __init__(self, m: arb):
        self.m = m

    def reversed(self) -> Self:
        return self

    def top(self) -> arb:
        """The largest loss."""
        return self.m


class Laplace(Mirrored):
    """f_m | f_0."""

    def sampled(self, q: arb) -> SampledLaplace:
        """The law of a Poisson sample of rate q."""
        return SampledLaplace(self.m, q)

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), and mean and variance of the loss tilted by c. For planning only."""
        m = about(self.m)
        x = (np.arange(400) + 0.5) * (m / 400)
        loss = np.r_[-m, m - 2 * x, m]
        logs = np.r_[-m + c * -m, -x + c * (m - 2 * x) + math.log(m / 400), c * m] - math.log(2)
        return tilted(logs, loss)

    def mgf(self, c: arb, nats: float) -> arb:
        return ((self.m * c).exp() * (1 + c) + (-self.m * (1 + c)).exp() * c) / (1 + 2 * c)

    def values(self, c: arb, h: arb, count: int, nats: float) -> list[acb]:
        m, out = self.m, []
        for n in range(count):
            z = acb(c, n * h)
            out.append(((m * z).exp() * (1 + z) + (-m * (1 + z)).exp() * z) / (1 + 2 * z))
        return out

    def falloff_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')|/M(c) for all y' >= y."""
        z = acb(c, y)
        size = (self.m * c).exp() * abs((1 + z) / (1 + 2 * z)) + (-self.m * (1 + c)).exp() / 2
        return (size / self.mgf(c, 0.0)).upper()

    def delta(self, eps: arb) -> arb:
        """The curve of one step."""
        m = self.m
        if eps <= -m:
            return 1 - eps.exp()
        inside = 1 - ((eps - m) / 2).exp()
        return (
            inside if eps < m and eps > -m else arb(0) if eps >= m else inside.nonnegative_part().union(1 - eps.exp())
        )


def composed(m: arb, k: int, eps: arb) -> arb:
    """The curve of k >= 2 plain steps: the head of the file."""
    if k > MAX_COMPOSED:
        raise UndecidedError("too many Laplace steps for the closed form")
    with precision(ctx.prec + 6 * k):
        total = arb(0)
        for j in range(k + 1):
            a = m * (2 * j - k) - eps
            if a <= 0:
                continue
            half = fmpq(1, 2)
            up = _series(half, j - 1, k)
            row = up * _series(-half, k - j - 1, k)
            term, power = arb(0), arb(1)
            for i in range(k):
                term += power * arb(row[k - 1 - i])
                power *= a / (i + 1)
            term *= (-a / 2).exp() / arb(2) ** k
            if j == k:
                term += 1
            if j == 0:
                term -= (-a).exp()
            term *= math.comb(k, j) * (-m * (k - j)).exp()
            total += term if a > 0 else term.union(arb(0))
        return total


def _series(x: fmpq, power: int, count: int) -> fmpq_poly:
    """(x + w)^power up to w^{count-1}, power >= -1."""
    if power >= 0:
        return fmpq_poly([x, 1]) ** power
    return fmpq_poly([(-1) ** i / x ** (i + 1) for i in range(count)])


class _Pieces(_Step):
    """A law with two masses and a smooth part on [0, m], by Gauss-Legendre quadrature.

    On a piece of half length s the integrand f is analytic in the Bernstein ellipse of parameter rho, which reaches a =
    s (rho + 1/rho)/2 along the axis and b = s (rho - 1/rho)/2 across it. Its Chebyshev coefficients are at most 2
    max|f| rho^-k; the rule with n nodes is exact up to degree 2n - 1, has positive weights of sum 2 s, and |T_k| <= 1:
    so it misses at most sum_{k >= 2n} 2 max|f| rho^-k 4 s = 8 s max|f| rho^-2n/(1 - 1/rho). There |w(2x - m)| lies
    between cos(b) and 1 times w(2 Re x - m), and arg w is at most 2b < pi."""

    m: arb
    q: arb
    _plan: tuple[np.ndarray, np.ndarray]

    def _points(self, c: arb, y: arb, nats: float) -> tuple[list[arb], list[arb], arb]:
        """Weights and losses of the law tilted by c, and a ball for what they miss of the transform up to c + iy."""
        raise NotImplementedError

    def _far_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')| for all y' >= y."""
        raise NotImplementedError

    def mgf(self, c: arb, nats: float) -> arb:
        weights, _, error = self._points(c, arb(0), nats)
        return sum(weights, arb(0)) + error

    def values(self, c: arb, h: arb, count: int, nats: float) -> list[acb]:
        weights, losses, error = self._points(c, count * h, nats)
        return [v + acb(error, error) for v in exponential_sums(weights, losses, h, count)]

    def falloff_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')|/M(c) for all y' >= y."""
        return (self._far_upper(c, y) / self.mgf(c, 45.0)).upper().min(arb(1))

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), and mean and variance of the loss tilted by c. For planning only."""
        if not hasattr(self, "_plan"):
            weights, losses, _ = self._points(arb(0), arb(0), 30.0)
            self._plan = (
                np.array([math.log(max(about(w), 1e-300)) for w in weights]),
                np.array([about(x) for x in losses]),
            )
        return tilted(self._plan[0] + c * self._plan[1], self._plan[1])

    def _w(self, loss: arb) -> arb:
        return 1 + self.q * loss.expm1()

    def _smooth(self, smooth, bound, steep: arb, y: arb, nats: float):
        """Nodes (weight, loss) of int_0^m, and a ball for what they miss. `smooth(x)` is (f, loss), `bound(low, high,
        b)` bounds |f| for Re x in [low, high], |Im x| <= b at y = 0; pieces are as short as `steep` asks."""
        m = about(self.m)
        pieces = max(1, math.ceil(m * (0.5 + about(steep))))
        half = self.m / (2 * pieces)
        ellipse = 2.0
        while ellipse < 64 and about(half) * ellipse < 1:
            ellipse *= 1.25
        rise = about(half) * (ellipse - 1 / ellipse) / 2
        n = 8 * math.ceil((nats + 2 * rise * about(y)) / (16 * math.log(ellipse)) + 1)
        if pieces * n > MAX_NODES:
            raise UndecidedError(f"the transform of a Laplace step needs {pieces * n} nodes, more than {MAX_NODES}")
        rho = arb(ellipse)
        reach, b = half * (rho + 1 / rho) / 2, half * (rho - 1 / rho) / 2
        if not 2 * b < 3:
            raise UndecidedError("the pieces of a Laplace step are too long")
        out, largest = [], arb(0)
        for p in range(pieces):
            mid = half * (2 * p + 1)
            for x, w in _legendre(n, ctx.prec):
                f, loss = smooth(mid + half * x)
                out.append((half * w * f, loss))
            largest += bound(mid - reach, mid + reach, b)
        missed = largest * half * 8 * rho ** (-2 * n) / (1 - 1 / rho) * (2 * y * b).exp()
        return out, arb(0, missed.abs_upper())


@lru_cache(64)
def _legendre(n: int, bits: int):
    return [arb.legendre_p_root(n, i, weight=True) for i in range(n)]


class SampledLaplace(_Pieces):
    """q f_m + (1-q) f_0 | f_0."""

    plain: type[Any] = Laplace

    def __init__(self, m: arb, q: arb, turned: bool = False):
        self.m, self.q, self.turned = m, q, turned

    def reversed(self):
        return type(self)(self.m, self.q, not self.turned)

    def _power(self, c: arb) -> arb:
        """f is w^power e^{-x}/2 in the direction taken: num^{1+c} den^{-c} = w^{1+c}, or w^{-c} with the two laws
        turned."""
        return -c if self.turned else 1 + c

    def _points(self, c: arb, y: arb, nats: float):
        m, power, sign = self.m, self._power(c), -1 if self.turned else 1

        def smooth(x):
            log_w = self._w(2 * x - m).log()
            return (power * log_w - x).exp() / 2, sign * log_w

        def bound(low, high, b):
            sizes = [self._w(2 * x - m) for x in (low, high)]
            if not (sizes[0] > 0 and b.cos() > 0):
                raise UndecidedError("the pieces of a Laplace step are too long")
            return ((sizes[1] if power > 0 else sizes[0] * b.cos()).log() * power - low).exp() / 2

        out, error = self._smooth(smooth, bound, abs(power) + 1, y, nats)
        for loss, den in ((-m, arb(0.5)), (m, (-m).exp() / 2)):
            log_w = self._w(loss).log()
            out.append((den * (power * log_w).exp(), sign * log_w))
        return [w for w, _ in out], [x for _, x in out], error

    def _far_upper(self, c: arb, y: arb) -> arb:
        m, power = self.m, self._power(c)
        low, high = self._w(-m), self._w(m)
        masses = low**power / 2 + (-m).exp() * high**power / 2
        # f/L' = e^{-x} w^{power}/2 / (2 q e^{2x-m}/w)
        ends = [(-x).exp() * w ** (power + 1) / (4 * self.q * (2 * x - m).exp()) for x, w in ((arb(0), low), (m, high))]
        return masses + 2 * (ends[0] + ends[1]) / y

    def top(self) -> arb:
        """The largest loss."""
        return -self._w(-self.m).log() if self.turned else self._w(self.m).log()

    def delta(self, eps: arb) -> arb:
        """The curve of one step; turned by H_a(Q|P) = 1 - a + a H_{1/a}(P|Q)."""
        if self.turned:
            price = eps.exp()
            return 1 - price + price * type(self)(self.m, self.q).delta(-eps)
        inner = 1 + eps.expm1() / self.q
        if inner <= 0:
            return 1 - eps.exp()
        if not inner > 0:
            raise UndecidedError("eps is too near the least loss of a sampled Laplace step")
        return self.q * self.plain(self.m).delta(inner.log())


class ReplacedLaplace(_Pieces):
    """q f_m + (1-q) f_0 | q f_{-m} + (1-q) f_0, its own mirror image."""

    def __init__(self, m: arb, q: arb):
        self.m, self.q = m, q

    def reversed(self) -> ReplacedLaplace:
        return self

    def _points(self, c: arb, y: arb, nats: float):
        m = self.m
        low, high = self._w(-m), self._w(m)

        def right(x):
            log_w = self._w(2 * x - m).log()
            loss = log_w - low.log()
            return (log_w - x + c * loss).exp() / 2, loss

        def left(x):
            f, loss = right(x)
            return f * (-(1 + 2 * c) * loss).exp(), -loss

        def bound_right(a, b, rise):
            size = self._w(2 * b - m)
            return ((1 + c) * size.log() - c * low.log() - a).exp() / 2

        def bound_left(a, b, rise):
            size = self._w(2 * a - m) * rise.cos()
            if not size > 0:
                raise UndecidedError("the pieces of a Laplace step are too long")
            return ((1 + c) * low.log() - c * size.log() - a).exp() / 2

        out, error = self._smooth(right, bound_right, 2 + c, y, nats)
        more, missed = self._smooth(left, bound_left, 2 + c, y, nats)
        out += more
        end, top = (-m).exp() / 2, (high / low).log()
        out += [(end * high * (c * top).exp(), top), (end * low * (-c * top).exp(), -top)]
        return [w for w, _ in out], [x for _, x in out], error + missed

    def _far_upper(self, c: arb, y: arb) -> arb:
        m, q = self.m, self.q
        low, high = self._w(-m), self._w(m)
        end, top = (-m).exp() / 2, (high / low).log()
        total = end * high * (c * top).exp() + end * low * (-c * top).exp()
        for x, w in ((arb(0), low), (m, high)):
            slope = 2 * q * (2 * x - m).exp() / w
            right = (-x).exp() / 2 * w ** (1 + c) * low ** (-c) / slope
            left = (-x).exp() / 2 * w ** (-c) * low ** (1 + c) / slope
            total += 2 * (right + left) / y
        return total

    def top(self) -> arb:
        """The largest loss."""
        return (self._w(self.m) / self._w(-self.m)).log()

    def delta(self, eps: arb) -> arb:
        """The curve of one step: S = [x, inf) where the loss reaches eps >= 0."""
        if eps < 0:
            price = eps.exp()
            return 1 - price + price * self.delta(-eps)
        m, q = self.m, self.q
        top = self.top()
        if eps >= top:
            return arb(0)
        if not (eps >= 0 and eps < top):
            raise UndecidedError("eps is too near the largest loss of a sampled Laplace step")
        x = (m + ((eps.exp() * self._w(-m) - 1 + q) / q).log()) / 2
        above, near, far = (-x).exp() / 2, 1 - (x - m).exp() / 2, (-x - m).exp() / 2
        return q * near + (1 - q) * above - eps.exp() * (q * far + (1 - q) * above)
