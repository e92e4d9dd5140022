"""The curve of a composition from its transform: a trapezoid rule on a line, every error proved.

Let M(z) be the transform of the finite losses of the composition (a product), H(e) = E[(1 - e^{e-L})^+; L finite] its
curve. For c > 0 the Fourier transform of e^{c e} H(e) is F(z) = M(z)/(z (1+z)) at z = c + iy, so by Poisson summation
with mesh h, T = 2 pi/h, and F(n) short for M(z) e^{-eps z}/(z (1+z)) at z = c + inh,

    (h/pi) Re( F(0)/2 + sum_{n >= 1} F(n) ) = sum_{j integer} H(eps + j T) e^{c j T}

(both sums converge absolutely: |F| <= const/y^2). All terms on the right are >= 0:
  j < 0: together at most 1/(e^{cT} - 1), as H <= M(0) <= 1;
  j > 0: (1 - e^-x)^+ e^{-s x} <= s^s/(1+s)^{1+s} gives H(e) <= M(s) e^{-s e} s^s/(1+s)^{1+s}; with s > c a geometric
  series.
Nodes beyond Y = N h: where |M(c+iy)| <= M(c) g for y >= Y they add at most (1/pi) M(c) e^{-eps c} g sum h/y^2 <= g M(c)
e^{-c eps}/(pi Y).

Losses on a lattice x_j = x_0 + g j: the same for sequences. T = N g, n runs over one period, and e^{-eps z}/(z (1+z))
becomes g sum_{x_j > eps} (1 - e^{eps - x_j}) e^{-z x_j}, two geometric series. Nodes beyond Y together are at most g(Y)
M(c) times the kernel at c."""

from __future__ import annotations

import math

from flint import acb, arb

from .balls import UndecidedError, about, between, floor_log

MAX_COUNT = 150_000


class Line:
    """A composition [(law, count)] of finite losses, ready for curves at any eps."""

    def __init__(self, steps, deadline):
        self.steps, self.deadline = steps, deadline
        self.lattice = steps[0][0].lattice if len(steps) == 1 else None
        self._known = {}

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), mean and variance of the tilted total. For planning only."""
        if c not in self._known:
            self.deadline.check()
            found = [[k * x for x in law.moments(c)] for law, k in self.steps]
            self._known[c] = tuple(sum(x) for x in zip(*found, strict=True))
        return self._known[c]

    def mgf(self, c: arb, nats: float) -> arb:
        out = arb(1)
        for law, k in self.steps:
            out *= law.mgf(c, nats + math.log(k)) ** k
        return out

    def _solve(self, slope, low: float, high: float) -> float:
        """Where slope(log c), which rises, is about 0."""
        for _ in range(24):
            mid = 0.5 * (low + high)
            low, high = (mid, high) if slope(math.exp(mid)) < 0 else (low, mid)
        return math.exp(0.5 * (low + high))

    def saddle(self, eps: float) -> float:
        """About the c at which M(c) e^{-c eps}/(c (1+c)) is least."""
        steepest = min(law.steepest() for law, _ in self.steps)
        return self._solve(lambda c: self.moments(c)[1] - eps - 1 / c - 1 / (1 + c), -30.0, math.log(steepest))

    def curve(self, eps: arb, log_goal: float, rough: bool = False) -> arb:
        """A ball for H(eps), aiming at the width e^log_goal; `rough`: at some percent of the curve, if that is more."""
        at, goal = about(eps), log_goal - math.log(8)
        deepest = self.saddle(at)
        if rough:
            goal = max(goal, self.moments(deepest)[0] - deepest * at - math.log(deepest) - math.log1p(deepest) - 9)
        slopes = [deepest * 1.3**i for i in range(-9, 12)]
        logs = [self.moments(s)[0] - s * at + s * math.log(s / (1 + s)) - math.log1p(s) for s in slopes]
        found = []
        for c in [deepest, *(s for s in slopes if s < 0.95 * deepest)]:
            period, s = self._period(c, goal, list(zip(slopes, logs, strict=True)))
            size = self.moments(c)[0] - c * at - math.log(c) - math.log1p(c)
            cost = period * math.sqrt(max(size - goal, 1.0) / max(self.moments(c)[2], 1e-300))
            found.append((cost, c, s, period, size))
        _, c, s, period, size = min(found, key=lambda line: line[0])
        return self._sum(eps, c, s, period, goal, size)

    def _period(self, c: float, goal: float, table) -> tuple[float, float]:
        """About the least period at which both kinds of aliases are below the goal, and the exponent s of the right
        ones."""
        period = max(
            (math.log1p(math.exp(-goal)) if goal > -700 else -goal) / c, 4 * math.sqrt(max(self.moments(c)[2], 0.0))
        )
        while True:
            least, s = min(((log - (s - c) * period, s) for s, log in table if s > 1.1 * c))
            if least <= goal or not period < 1e300:
                return period, s
            period *= 1.1

    def delta_upper(self, eps: arb) -> arb:
        """At least H(eps), by the inequality of the right aliases at the best exponent."""
        s = arb(self.saddle(about(eps)))
        return self.mgf(s, 30.0) * (-s * eps).exp() * (s / (1 + s)) ** s / (1 + s)

    def _reach(self, c: arb, prefix: float, goal: float, h: float):
        """(Y, ball of the fall-off at Y) such that prefix times it is below the goal, Y a multiple of h."""
        variance = max(self.moments(about(c))[2], 1e-300)
        most = math.pi / about(self.lattice) if self.lattice is not None else math.inf
        y = math.sqrt(max(2 * (prefix - goal), 1.0) / variance)
        while True:
            self.deadline.check()
            count = math.ceil(y / h)
            if count * h >= most:
                return None, arb(0)
            if count > MAX_COUNT:
                raise UndecidedError(f"the transform falls off too slowly: more than {MAX_COUNT} nodes")
            edge = arb(h) * count
            fall = arb(1)
            for law, k in self.steps:
                if law.lattice is self.lattice:  # a lattice law among others comes back after its period
                    fall *= law.falloff_upper(c, edge) ** k
            own = -floor_log(fall)
            wanted = prefix - (0 if self.lattice is not None else math.log(about(edge))) - goal
            if own >= wanted:
                return count, fall
            y = count * h * min(max(math.sqrt(max(wanted, 0.0) / max(own, 1e-9)), 1.15), 1.7)

    def _sum(self, eps: arb, c: float, s: float, period: float, goal: float, size: float) -> arb:
        nats = max(size - goal, 0.0) + 12
        tilt, right = arb(c), arb(s)
        gap = self.lattice
        if gap is None:
            h = arb(2 * math.pi / period)
            whole = 2 * arb.pi() / h
            last, fall = self._reach(tilt, self.moments(c)[0] - c * about(eps), goal, about(h))
            count = last
        else:
            nodes = 2 * math.ceil(period / about(gap) / 2) + 1
            whole = nodes * gap
            h = 2 * arb.pi() / whole
            prefix = size + max(math.log1p(c), -math.log(about(gap)))  # of the kernel over the mesh of the lattice
            last, fall = self._reach(tilt, prefix, goal, about(h))
            count = (nodes - 1) // 2 if last is None else min(last, (nodes - 1) // 2)
            if count > MAX_COUNT:
                raise UndecidedError(f"the period of a lattice needs {count} nodes, more than {MAX_COUNT}")
        if last is None and gap is None:
            raise UndecidedError("the transform does not fall off")
        tables = [(law.values(tilt, h, count + 1, nats + math.log(k)), k) for law, k in self.steps]
        self.deadline.check()
        kernel, vague = self._kernel(eps)
        total = arb(0)
        for n in range(count + 1):
            z = acb(tilt, n * h)
            value = kernel(z)
            for table, k in tables:
                value *= table[n] ** k
            total += value.real / 2 if n == 0 else value.real
            if n % 256 == 0:
                self.deadline.check()
        total *= h / arb.pi()
        mass = self.mgf(tilt, nats)
        left = 1 / ((tilt * whole).exp() - 1)
        decay = (right - tilt) * whole
        above = self.mgf(right, 45.0) * (-right * eps).exp() * (right / (1 + right)) ** right / (1 + right)
        above = above / (decay.exp() - 1)
        if not (decay > 0 and above.is_finite()):
            raise UndecidedError("the aliases of the contour cannot be bounded")
        total -= between(0, left) + between(0, above)
        if last is not None:
            if gap is None:
                beyond = fall * mass * (-tilt * eps).exp() / (arb.pi() * count * h)
            else:
                beyond = fall * mass * abs(kernel(acb(tilt))) / gap
            total += arb(0, beyond.abs_upper())
        return total + vague

    def _kernel(self, eps: arb):
        gap = self.lattice
        if gap is None:
            return lambda z: (-eps * z).exp() / (z * (1 + z)), arb(0)
        ((law, k),) = self.steps
        losses, indices = (
            law._logs()[1],
            [i for i, (n, d) in zip(law.indices, law.outcomes, strict=True) if not (n.is_zero() or d.is_zero())],
        )
        origin = k * (losses[0] - gap * indices[0])
        place = ((eps - origin) / gap).mid()
        first = int(place.floor().unique_fmpz()) + 1
        vague = arb(0)
        for j in (first - 1, first):  # the sign of either may be uncertain: its loss is within rounding of eps
            if (origin + gap * j).overlaps(eps):
                vague += arb(0, (eps - origin - gap * j).expm1().abs_upper())
        if not (origin + gap * (first - 1) <= eps or (origin + gap * (first - 1)).overlaps(eps)):
            raise UndecidedError("the place of eps on a lattice is uncertain")
        if not (origin + gap * first >= eps or (origin + gap * first).overlaps(eps)):
            raise UndecidedError("the place of eps on a lattice is uncertain")
        at = origin + gap * first

        def kernel(z: acb) -> acb:
            one = (-z * at).exp() / (1 - (-gap * z).exp())
            two = (eps - (z + 1) * at).exp() / (1 - (-gap * (z + 1)).exp())
            return gap * (one - two)

        return kernel, vague


__all__ = ["Line"]
