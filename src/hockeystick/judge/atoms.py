"""Laws with countably many outcomes, and mixtures of laws of different kinds.

The curve of one step is sum (num_i - e^eps den_i)^+ whatever the losses are, outcomes of den 0 (loss +inf) included.

Falling off on a lattice. Let losses be offset + gap j and f_j = num_j^{1+c} den_j^{-c}. Two neighbours contribute to
|M(c+iy)| at most f_j + f_{j+1} - 2 min(f_j, f_{j+1}) (1 - |cos(y gap/2)|), since |1 + e^{iy gap}| = 2 |cos(y gap/2)|.
So with W the sum of min(f_j, f_{j+1}) over disjoint neighbours, |M(c+iy)| <= M(c) - 2 W (1 - cos(y gap/2)) for 0 <= y
<= pi/gap, which falls with y."""

from __future__ import annotations

import math

import numpy as np
from flint import acb, arb

from .balls import about, exponential_sums, floor_log, tilted

STEEP = 1e17
"""Largest tilt of an exponent."""


class Atoms:
    """(num, den) of every outcome, arb; zeros are exact.

    lost, lost_den: balls of the num and den probability of outcomes left out.
    gap, indices: with them the loss of outcome i is some offset + gap * indices[i].
    """

    def __init__(self, outcomes, gap: arb | None = None, indices=None, lost=0, lost_den=0):
        self.outcomes = list(outcomes)
        self.gap, self.indices = gap, indices
        self.lost, self.lost_den = arb(lost), arb(lost_den)
        self.mass_inf = sum((n for n, d in self.outcomes if d.is_zero()), arb(0))
        self._finite = None
        self.largest: arb | None = None
        self.mirrored = False

    def reversed(self) -> Atoms:
        gap, indices = self.gap, self.indices
        out = Atoms(
            [(d, n) for n, d in self.outcomes], gap, indices and [-i for i in indices], self.lost_den, self.lost
        )
        out.largest = self.largest if self.mirrored else None
        return out

    def sampled(self, q: arb) -> Atoms:
        """The law of a Poisson sample of rate q."""
        mixed = [(q * n + (1 - q) * d, d) for n, d in self.outcomes]
        law = Atoms(mixed, None, None, q * self.lost + (1 - q) * self.lost_den, self.lost_den)
        if len(mixed) == 2 and self.gap is not None and not any(n.is_zero() or d.is_zero() for n, d in mixed):
            (n0, d0), (n1, d1) = mixed
            law.gap, law.indices = abs((n1 * d0 / (n0 * d1)).log()), [0, 1]
            if not n1 * d0 > n0 * d1:
                law.indices = [1, 0]
        return law

    @property
    def finite(self) -> list[tuple[arb, arb]]:
        """Outcomes of finite loss."""
        return [(n, d) for n, d in self.outcomes if not (n.is_zero() or d.is_zero())]

    def least_gap(self) -> float:
        """Infinite: the law is its own neighbour on both sides."""
        return math.inf

    def revealed(self) -> Atoms:
        """This law."""
        return self

    coarse = revealed

    def top(self) -> arb | None:
        """The largest finite loss; None where outcomes are left out."""
        if self.lost > 0:
            return None
        if self.largest is not None:
            return self.largest
        best = None
        for x in self._logs()[1]:
            best = x if best is None else best.max(x)
        return arb(0) if best is None else best

    @property
    def lattice(self) -> arb | None:
        return self.gap

    def _logs(self):
        if self._finite is None:
            found = self.finite
            self._finite = [n for n, _ in found], [(n / d).log() for n, d in found]
        return self._finite

    def _tilted(self, c: arb) -> tuple[list[arb], list[arb]]:
        num, losses = self._logs()
        return [n * (c * x).exp() for n, x in zip(num, losses, strict=True)], losses

    def steepest(self) -> float:
        """A tilt beyond which nothing is gained. For planning only."""
        return STEEP

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), and mean and variance of the loss tilted by c. For planning only."""
        num, losses = self._logs()
        at = np.array([about(x) for x in losses])
        return tilted(np.array([max(floor_log(n), -1e6) for n in num]) + c * at, at)

    def mgf(self, c: arb, nats: float) -> arb:
        return sum(self._tilted(c)[0], arb(0))

    def values(self, c: arb, h: arb, count: int, nats: float) -> list[acb]:
        return exponential_sums(*self._tilted(c), h, count)

    def falloff_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')|/M(c) for y' >= y, on a lattice up to y' = pi/gap; losses off a lattice need not fall
        off."""
        if self.gap is None:
            return arb(1)
        at = dict(
            zip(
                (i for i, (n, d) in zip(self.indices, self.outcomes, strict=True) if not (n.is_zero() or d.is_zero())),
                self._tilted(c)[0],
                strict=True,
            )
        )
        best = arb(0)
        for start in (0, 1):
            pairs = [at[i].min(at[i + 1]) for i in at if i % 2 == start and i + 1 in at]
            best = best.max(sum(pairs, arb(0)))
        total = sum(at.values(), arb(0))
        return (1 - 2 * best / total * (1 - (y * self.gap / 2).cos())).upper()

    def delta(self, eps: arb) -> arb:
        """The curve of one step."""
        price = eps.exp()
        total = sum(((n - price * d).nonnegative_part() for n, d in self.outcomes), arb(0))
        return total + arb(0).union(self.lost) if self.lost > 0 else total


def joined(parts) -> Atoms:
    """The public mixture of weighted laws with outcomes."""
    lost = [sum((w * getattr(p, name) for w, p in parts), arb(0)) for name in ("lost", "lost_den")]
    return Atoms([(w * n, w * d) for w, p in parts for n, d in p.outcomes], None, None, *lost)


class Mixture:
    """A public mixture of laws of any kinds: transforms and curves are weighted sums [Zhu, Dong, Wang 2022, Thm 10]."""

    gap = lattice = None

    def __init__(self, parts):
        self.parts = list(parts)
        self.mass_inf = sum((w * p.mass_inf for w, p in self.parts), arb(0))
        self.lost = sum((w * getattr(p, "lost", arb(0)) for w, p in self.parts), arb(0))

    def reversed(self) -> Mixture:
        return Mixture([(w, p.reversed()) for w, p in self.parts])

    def sampled(self, q: arb) -> Mixture:
        """The law of a Poisson sample of rate q: the choice of the part is public."""
        return Mixture([(w, p.sampled(q)) for w, p in self.parts])

    def steepest(self) -> float:
        """A tilt beyond which nothing is gained. For planning only."""
        return min(p.steepest() for _, p in self.parts)

    def moments(self, c: float) -> tuple[float, float, float]:
        """About log M(c), and mean and variance of the loss tilted by c. For planning only."""
        found = [(floor_log(w), p.moments(c)) for w, p in self.parts]
        total, mean, _ = tilted(np.array([w + m[0] for w, m in found]), np.array([m[1] for _, m in found]))
        second = [m[2] + (m[1] - mean) ** 2 for _, m in found]
        return total, mean, float(sum(np.exp(w + m[0] - total) * v for (w, m), v in zip(found, second, strict=True)))

    def mgf(self, c: arb, nats: float) -> arb:
        return sum((w * p.mgf(c, nats) for w, p in self.parts), arb(0))

    def values(self, c: arb, h: arb, count: int, nats: float) -> list[acb]:
        found = [[w * v for v in p.values(c, h, count, nats)] for w, p in self.parts]
        return [sum(row, acb(0)) for row in zip(*found, strict=True)]

    def falloff_upper(self, c: arb, y: arb) -> arb:
        """At least |M(c + iy')|/M(c) for all y' >= y; a lattice part, which comes back, is counted whole."""
        found = [
            (w * p.mgf(c, 45.0), arb(1) if p.lattice is not None else p.falloff_upper(c, y)) for w, p in self.parts
        ]
        return (sum((m * f for m, f in found), arb(0)) / sum((m for m, _ in found), arb(0))).upper()

    def least_gap(self) -> float:
        """That of the parts. For planning only."""
        return min(p.least_gap() for _, p in self.parts)

    def revealed(self) -> Atoms:
        """A law with few outcomes that dominates this one."""
        return joined([(w, p.revealed()) for w, p in self.parts])

    def coarse(self) -> Atoms:
        """A law with few outcomes that this one dominates."""
        return joined([(w, p.coarse()) for w, p in self.parts])

    def top(self) -> arb | None:
        """The largest finite loss; None where there is none."""
        found = [p.top() for _, p in self.parts]
        if any(x is None for x in found):
            return None
        best = found[0]
        for x in found[1:]:
            best = best.max(x)
        return best

    def delta(self, eps: arb) -> arb:
        """The curve of one step."""
        return sum((w * p.delta(eps) for w, p in self.parts), arb(0))
