"""One large term of a sum of t lognormals: what a low cut of the normal variable rejects.

Symbols as in allocation_density.py. A term is rejected with probability psi(g) = Phi((g-b)/eta) = 1 - chi; k(w) =
psi(g) n(g)/(mX), X = 1 + w = exp(m g - v/2), is the density of d = w of rejected terms, p_n that of the sum of n
accepted ones, phi the least number with k <= phi to the right of a place.

Formulas [theory: allocation.jump].
    density of W = p_t(x) + t int k(x-y) p_(t-1)(y) dy + that of samples with two rejected terms;
the integral by the trapezoid rule of mesh h on a window of the others' deviations, in which all terms are positive.

Error claims. The absolute error of the integral is the sum of: aliases of the mesh; nodes beyond the window; errors of
p_(t-1) at the nodes; rounding of k, first order in u with room to spare. Samples with two rejected terms, and tails,
are bounded by shells of what the others sum to.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import _core
from ..outward import U
from .allocation_line import LAST, Line, log_normal_tail_upper, normal_cdf

NEAR_WINDOW, DEEP_WINDOW = (13.0, 18.0), (38.0, 45.0)
"""Deviations between which others sum, where what is left out of them may be e^-80, and where it may not."""

SHELLS = np.array([*np.arange(0.0, 11.0), 12.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0])
FINE = np.array([*np.arange(0.0, 9.0, 0.5), *SHELLS[9:]])
FAR = np.array([*SHELLS, *90 * 1.5 ** np.arange(1.0, 25.0)])
"""Deviations at which shells of sums begin, for tails, and for two large terms."""

MESHES = (0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.025, 0.02, 0.015, 0.01, 0.0075, 0.005, 0.0035, 0.0025)
NEAR_NATS, DEEP_NATS = 56.0, 600.0
"""Nats that aliases are below the mass of a jump."""

FREQUENCIES = 1.3, 2.6
"""Those up to which the transform of others is held to be large, over the last that their line visits."""

FAR_FROM, CORE = 45.0, (-14.0, 16.0)
"""Deviations from which what is beyond the others' core, in deviations too, adds little."""

SEEN = LAST, 36.0
"""How far below a cut, over what it is smoothed by, rejected terms are seen."""

APART, MANY = (8.0, 16.0, 30.0), (1, 7)
"""Deviations that terms which are not rejected are left when a tail is bounded, and how many others are counted."""

TILTS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 14.0, 18.0, 24.0, 32.0, 42.0)
"""Of bounds of others, times their deviation."""


Accepted = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A density, its error, and the log of the unit of both."""


class Jumps:
    """Samples with a rejected term where the cut is b."""

    def __init__(
        self, sd: float, accepted: Callable[..., Accepted], line: Line, others: dict[float, Line], deep: bool = False
    ):
        """sd: of W; accepted: the density of W by a line; line: of t terms; others: of t - 1 with the same cut, at
        tilt 0 and others by about where they see, in deviations. deep: whether points are asked far beyond where the
        density is e^-130."""
        self.nats, (left, right) = (DEEP_NATS, DEEP_WINDOW) if deep else (NEAR_NATS, NEAR_WINDOW)
        self.deep, self.seen, self.frequencies = deep, SEEN[deep], FREQUENCIES[deep]
        self.sd, self.line, self.others = sd, line, others[0.0]
        self.m, self.t, self.b, self.eta = line.rule.m, line.t, line.rule.b, line.rule.eta
        self.log_rejected, self.log_moved = (line.rule.log_rejected_upper(shift) for shift in (0.0, self.m))
        self.peak = self._peak_upper()
        self.mesh, self.missed = self._mesh()
        self.y = self.mesh * np.arange(-math.ceil(left * sd / self.mesh), math.ceil(right * sd / self.mesh))
        value, error = np.zeros(self.y.size), np.zeros(self.y.size)
        nearest = np.abs(self.y[:, None] / sd - np.array([*others])).argmin(axis=1)
        for i, of in enumerate(others.values()):
            at = nearest == i
            value[at], error[at], base = accepted(self.y[at], of)
            value[at], error[at] = value[at] * np.exp(base), error[at] * np.exp(base) + 1e-300
        least = 0.5 * np.exp(np.minimum(np.min([log - q * self.y for q, log in self._peaks()], axis=0), 700.0))
        self.p, self.off = np.where(least < error, least, value), np.minimum(least, error) * (1 + 1e-9)
        self.beyond = self._beyond_upper()

    def _cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal variables from beyond the last that matters on, rising."""
        g = np.arange(max(self.b - (self.seen + 2) * self.eta, 1.0), self.b + 30.0, 0.1 * self.eta)
        return g, normal_cdf((g - self.b) / self.eta)

    def _peak_upper(self) -> float:
        """An upper bound of k: by cells from g >= 1 on, to the left by psi's value there."""
        g, psi = self._cells()
        high = psi[1:] * np.exp(-0.5 * g[:-1] ** 2 - self.m * g[:-1] + 0.5 * self.m**2)
        left = float(psi[0]) * math.exp(self.m**2)
        return (float(high.max()) + left) / (self.m * math.sqrt(2 * math.pi)) * (1 + 1e-9)

    def _decay_upper(self, tau: float, near: float, whole: float) -> float:
        """Bound of int psi n e^{-near X s}/(1 - e^{-whole X s}) dg, s = sin(m tau)."""
        g, psi = self._cells()
        s = math.sin(self.m * tau)
        X = np.exp(self.m * g[:-1] - 0.5 * self.m**2) * s
        one = psi[1:] * np.exp(-0.5 * g[:-1] ** 2 - near * X) / -np.expm1(-whole * X)
        left = float(psi[0]) * (1 + math.exp(self.m**2) / (whole * s))  # 1/(1 - e^-z) <= 1 + 1/z; E X^-1 = e^v
        right = 2 * math.exp(log_normal_tail_upper(float(g[-1])))
        cell = float(g[1] - g[0])
        return float(one.sum()) * cell / math.sqrt(2 * math.pi) * (1 + 1e-9) + left + right

    def _mesh(self) -> tuple[float, float]:
        """The widest mesh whose aliases are rare enough, and a bound of the error of the integral by it."""
        top, t = self.frequencies * self.others.top, self.t
        far = math.exp(min(self.others.log_tail_upper(top), 50.0))  # C(0)^(t-1) <= 1
        mass = math.exp(self.log_rejected)
        best = (math.inf, MESHES[-1])
        for part in MESHES:
            whole = 2 * math.pi / (part * self.sd)
            near = whole - top
            if not near > 0:
                continue
            for tau in (0.2, 0.4, 0.7, 1.1, 1.5):
                if self.m * tau > 1.5:
                    continue
                grown = math.exp(0.5 * tau * tau * (1 + self.eta**-2))
                sums = grown * self._decay_upper(tau, near, whole)
                bound = t / math.pi * (2 * top * sums + 2 * far * (mass + sums)) * (1 + 1e-6)
                best = min(best, (bound, part))
            if best[0] < math.exp(-self.nats) * t * mass / self.sd:
                break
        return best[1] * self.sd, best[0]

    def _peaks(self) -> list[tuple[float, float]]:
        """Tilts q and logs of bounds of e^{qy} p(y)."""
        tilts = [side * q / self.sd for side in (1, -1) for q in TILTS]
        peaks = [(q, self.others.log_peak_upper(q)) for q in tilts]
        return [(q, log) for q, log in peaks if log < 300]  # not NaN

    def _beyond_upper(self) -> float:
        """Bound of the integral's nodes beyond the window."""
        total = 0.0
        for side, end in ((1, float(self.y[-1]) + self.mesh), (-1, self.mesh - float(self.y[0]))):
            sums = [
                math.exp(log - abs(q) * end) / -math.expm1(-abs(q) * self.mesh)
                for q, log in self._peaks()
                if q * side > 0
            ]
            total += min(sums) * self.mesh
        return total * self.t * self.peak * (1 + 1e-9)

    def density(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """That of samples with a rejected term at x, and a bound of its absolute error: far out by the others' core and
        a bound of the rest."""
        value, error = np.empty(x.size), np.empty(x.size)
        far = x > FAR_FROM * self.sd if self.deep else np.zeros(x.size, dtype=bool)
        core = slice(*np.searchsorted(self.y, np.multiply(CORE, self.sd)).tolist())
        for at, nodes in ((~far, slice(None)), (far, core)):
            if at.any():
                value[at], error[at] = self._over(x[at], nodes)
        if far.any():
            error[far] += self._rest_upper(x[far], core)
        return value, error + self.two_upper(x)

    def _over(self, x: np.ndarray, nodes: slice) -> tuple[np.ndarray, np.ndarray]:
        """What those nodes sum to, and a bound of all its errors but that of other nodes in the window."""
        rows = np.array([self.y[nodes], self.p[nodes], self.off[nodes]])
        value, off, rough = _core.term_jumps(self.m, self.b, self.eta, self.seen, np.ascontiguousarray(x), rows)
        last = self.b - self.seen * self.eta
        rises = self.seen / self.eta > last + self.m  # psi n/X, psi bounded by a normal density, if n/X falls slower
        far = 0.5 * last * last + self.m * last - 0.5 * self.m**2 if rises else -(self.m**2)
        unseen = (math.exp(-0.5 * self.seen**2 - far) + 1e-307) / self.m  # or e^{-g^2/2} below all doubles
        scale = self.t * self.mesh  # [theory: allocation.jump]
        error = scale * (off * (1 + 1e-9) + U * (rough + (rows.shape[1] + 2) * (value + 2 * off)))
        error += self.missed + self.beyond + scale * unseen * float((np.abs(self.p) + self.off).sum())
        return scale * value, error * (1 + 1e-9)

    def _rest_upper(self, x: np.ndarray, core: slice) -> np.ndarray:
        """Bound of the sum over nodes beside the core, in blocks: k is at most n/(mX), which falls right of 0."""
        edges = np.arange(0, self.y.size, max(int(self.sd / self.mesh), 1))
        edges = np.unique(np.append(edges, [core.start, core.stop]))
        sums = np.add.reduceat(np.abs(self.p) + self.off, edges)
        beside = (edges < core.start) | (edges >= core.stop)
        top = self.y[np.append(edges[1:], self.y.size) - 1][beside]
        log = np.log(np.maximum(1 + x[:, None] - top, 1.0))
        g = log / self.m + 0.5 * self.m
        k = np.where(log > 0, np.exp(-0.5 * g * g - log) / (self.m * math.sqrt(2 * math.pi)), self.peak)
        return self.t * self.mesh * (np.minimum(k, self.peak) @ sums[beside]) * (1 + 1e-9)

    def _accepted_upper(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of Chernoff's bounds of Pr[sum of up to t accepted terms > y], under Q and under P."""
        den, num = np.zeros(y.size), np.zeros(y.size)
        for q in (1.0, *TILTS):
            tilt = q / self.sd
            kappa, slope, off = self.line.real(tilt)
            if not math.isfinite(kappa):
                continue
            out = self.t * (max(kappa, 0.0) + off) - tilt * y + 1e-6
            den = np.minimum(den, out)
            num = np.minimum(num, out + math.log(1.01 * (1 + abs(slope))))
        return den, num

    def _jump_upper(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of bounds of t Pr[a term is rejected and its d > w], and of that of one moved by m."""
        low = np.log(np.maximum(1 + w, 1e-300)) / self.m + 0.5 * self.m - 1e-9
        den, num = (np.maximum(x, 0.5) for x in (low, low - self.m))
        den, num = (-0.5 * x * x - np.log(2.5 * x) for x in (den, num))  # the density over x
        return math.log(self.t) + np.minimum(den, self.log_rejected), np.minimum(num, self.log_moved)

    def beyond_upper(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of Pr[W > y] under Q and under P: none rejected; or the others beyond `apart`; or j of them, of which
        one is beyond a j-th of what is left, for j up to MANY; or more."""
        many = MANY[self.deep]
        den, num = (np.exp(log) for log in self._accepted_upper(y))
        any_den = math.exp(math.log(self.t) + self.log_rejected)
        any_num = any_den + math.exp(self.log_moved)
        best, best_x = np.ones(y.size), np.ones(y.size)
        for apart in APART[: 3 if self.deep else 1]:
            far, far_x = (math.exp(log[0]) for log in self._accepted_upper(np.array([apart * self.sd])))
            out = den + math.expm1(any_den) * far + any_den ** (many + 1)
            out_x = num + math.expm1(any_num) * far_x + any_num ** (many + 1)
            for j in range(1, many + 1):
                one, one_x = (np.exp(log) for log in self._jump_upper((y - apart * self.sd) / j))
                out += any_den ** (j - 1) * one
                out_x += any_num ** (j - 1) * (one + one_x)
            best, best_x = np.minimum(best, out), np.minimum(best_x, out_x)
        return best * (1 + 1e-9), best_x * (1 + 1e-9)

    def log_tails_upper(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of bounds of Pr[W > x] under P and under Q: a rejected term makes up for what the others, in a shell,
        leave."""
        den, num = self._accepted_upper(x)
        shells = FAR if self.deep else SHELLS
        others, others_x = self.beyond_upper(shells * self.sd)
        others[0] = others_x[0] = 1.0
        ends = np.append(shells[1:], np.inf) * self.sd
        one, one_x = self._jump_upper((x[:, None] - ends[None, :]).ravel())
        one, one_x = (np.exp(z).reshape(x.size, ends.size) for z in (one, one_x))
        return np.log(np.exp(num) + (one + one_x) @ others_x) + 1e-9, np.log(np.exp(den) + one @ others) + 1e-9

    def two_upper(self, x: np.ndarray) -> np.ndarray:
        """Bound of the density at x of samples with two rejected terms or more [theory: allocation.jump]: the smaller
        one by cells of the normal variable, what is neither by shells; the larger one makes up for the rest."""
        g = np.append(
            self.b + self.eta * np.append(np.arange(-self.seen, -4.0), np.arange(-4.0, 3.0, 0.25)),
            self.b + 3 * self.eta + 6 * np.linspace(0.0, 1.0, 40) ** 2,
        )
        psi = normal_cdf((g - self.b) / self.eta)
        d = np.expm1(self.m * g - 0.5 * self.m**2)
        mass = np.append(
            0.4 * psi[1:] * np.exp(-0.5 * g[:-1] ** 2) * np.diff(g), math.exp(log_normal_tail_upper(float(g[-1])))
        )
        starts = np.append(FINE, FAR[SHELLS.size :] if self.deep else []) * self.sd
        others = self.beyond_upper(starts)[0]
        others[0] = 1.0
        first = max(4 * self.sd, float(x.min()))
        places = np.geomspace(first, max(1.25 * first, float(x.max())), min(x.size, 40))  # the bound falls
        cells = np.array([d, np.append(d[1:], np.inf), mass])
        shells = np.array([np.append(starts[1:], np.inf), others])
        sums = _core.term_two(self.m, self.peak, places, cells, shells) * (1 + 1e-9)
        total = np.append(mass.sum() * self.peak, sums) + psi[0] * self.peak  # and left of the cells
        at = np.searchsorted(places, x, side="right")
        return self.t * self.t * total[at] * (1 + 1e-9)
