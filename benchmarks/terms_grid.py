"""Error terms of the grid routes and of bounds in closed form, each where it is large: (actual, claimed) of many cases.

Every function returns two arrays. A circle is given to convolve.py instead of planned: too short, too far to the left,
hardly tilted. The step has two losses on the lattice, so that D, the tail functional of the exact convolution, is a
binomial sum with 60 digits. Sizes are relative to D, or to delta."""

from __future__ import annotations

import math

import mpmath
import numpy as np

import hockeystick as hs
from hockeystick.grid import convolve
from hockeystick.grid.cells import Grid, Steps
from hockeystick.routes import prv
from hockeystick.what import pair

CASES = 60


class TwoPoints:
    """k steps of losses j dx and -j dx with probabilities p and 1 - p: D exactly, K and the grid."""

    def __init__(self, rng):
        self.dx = 2.0 ** -int(rng.integers(4, 9))
        self.j, self.k = int(rng.integers(1, 6)), int(rng.integers(2, 60))
        self.p = float(rng.uniform(0.2, 0.8))
        masses = np.zeros(2 * self.j + 1)
        masses[0], masses[-1] = 1 - self.p, self.p
        self.grid = Grid(self.dx, Steps.of([(-self.j, masses, self.k)]), 0.0, 0.0, 0.0, 0.0)
        self.spread = self.j * self.dx
        self.mean = self.k * self.spread * (2 * self.p - 1)
        self.deviation = self.spread * 2 * math.sqrt(self.k * self.p * (1 - self.p))

    def delta(self, eps: float) -> mpmath.mpf:
        with mpmath.workdps(60):
            p, total = mpmath.mpf(self.p), mpmath.mpf(0)
            other = mpmath.mpf(1 - self.p)
            for i in range(self.k + 1):
                loss = self.spread * (2 * i - self.k)
                if loss > eps:
                    weight = mpmath.binomial(self.k, i) * p**i * other ** (self.k - i)
                    total += weight * -mpmath.expm1(mpmath.mpf(eps) - loss)
            return total

    def saddle(self, eps: float) -> float:
        """The tilt whose mean is eps; at most 30 deviations' worth."""
        share = min(max(0.5 * (1 + eps / (self.k * self.spread)), 1e-6), 1 - 1e-6)
        t = math.log(share / (1 - share) * (1 - self.p) / self.p) / (2 * self.spread)
        return max(t, 1e-3 / self.deviation)


def _circles(seed: int, choose):
    """Errors of D^ on circles that `choose` makes bad, against the bound of the term that is then the largest."""
    rng, actual, claimed = np.random.default_rng(seed), [], []
    while len(actual) < CASES:
        law = TwoPoints(rng)
        eps = law.mean + float(rng.uniform(-0.5, 2.5)) * law.deviation
        if eps >= law.k * law.spread:
            continue
        truth = law.delta(eps)
        found = convolve.convolve(law.grid, choose(rng, law, eps), eps, "power", 1)
        value, truncated, wrapped, rounding = found.at(eps)
        if truth < 1e-12 or not found.y_lo <= eps <= found.y_hi:
            continue
        error = float(mpmath.mpf(value) - truth)
        actual.append((max(0.0, error), max(0.0, -error)))
        claimed.append((wrapped + rounding, truncated + rounding))
        actual[-1], claimed[-1] = (np.array(x) / float(truth) for x in (actual[-1], claimed[-1]))
    return np.array(actual), np.array(claimed)


def _plan(law, eps, t, width, y_lo):
    n = max(16, 2 * math.ceil(width / law.dx / 2))
    top = max(law.saddle(min(y_lo + n * law.dx, 0.98 * law.k * law.spread)), 1.1 * t, 1.0 / law.deviation)
    return convolve.Plan(t, n, y_lo, top, -1.0 / law.deviation, top, 0.0)


def wrapped():
    """From the right: a circle that ends inside the law, its start at eps."""

    def choose(rng, law, eps):
        width = float(rng.uniform(1.0, 4.0)) * law.deviation + 16 * law.dx
        return _plan(law, eps, law.saddle(eps) * float(rng.uniform(0.3, 0.9)), width, eps - 2 * law.dx)

    actual, claimed = _circles(1, choose)
    return actual[:, 0], claimed[:, 0]


def truncated():
    """A circle that ends soon after eps: what lies beyond is met far below eps, where it does not count."""

    def choose(rng, law, eps):
        width = float(rng.uniform(2.0, 6.0)) * law.deviation + 16 * law.dx
        return _plan(law, eps, law.saddle(eps) * 0.5, width, eps - float(rng.uniform(0.5, 0.9)) * width)

    actual, claimed = _circles(2, choose)
    return actual[:, 1], claimed[:, 1]


def fft_rounding(log_tol=math.inf):
    """Next to no tilt, far out in the tail: the error of the transforms is absolute, delta is small."""

    def choose(rng, law, eps):
        width, y_lo = 2.2 * law.k * law.spread + 16 * law.dx, -1.05 * law.k * law.spread
        return _plan(law, eps, 1e-3 / law.deviation, width, y_lo)._replace(log_tol=log_tol)

    rng, actual, claimed = np.random.default_rng(3), [], []
    while len(actual) < CASES:
        law = TwoPoints(rng)
        eps = law.k * law.spread * float(rng.uniform(0.6, 0.95))
        truth = law.delta(eps)
        found = convolve.convolve(law.grid, choose(rng, law, eps), eps, "power", 1)
        value, *_, rounding = found.at(eps)
        if not 1e-40 < truth < 1e-10:
            continue
        actual.append(abs(float(mpmath.mpf(value) - truth)) / 1e-10)
        claimed.append(rounding / 1e-10)
    return np.array(actual), np.array(claimed)


def fft_rounding_extended():
    """The same in long doubles, the tolerance being nothing."""
    return fft_rounding(-math.inf)


def _gaussian_run(rng):
    sigma, q, k = math.exp(rng.uniform(-0.5, 1.5)), math.exp(rng.uniform(-6, -0.3)), int(math.exp(rng.uniform(1, 8)))
    return hs.poisson_subsampled(hs.gaussian(sigma), q) * k


def prv_radius():
    """A coarse mesh of the PRV accountant: eps of its middle curve against eps, over the radius."""
    rng, actual, claimed = np.random.default_rng(4), [], []
    for _ in range(CASES // 2):
        run, delta = _gaussian_run(rng), 10.0 ** rng.uniform(-8, -1)
        truth = hs.epsilon(run, delta, direction="remove").estimate
        if not truth > 0.05:
            continue
        parts, error = pair.losses(run, "add_remove", "remove"), float(rng.uniform(0.1, 0.9)) * truth
        found = prv.root(parts, delta, None, eps_error=error)
        actual.append(abs(found.estimate - truth))
        claimed.append(max(found.upper - found.estimate, found.estimate - found.lower))
    return np.array(actual), np.array(claimed)


def pld_mesh():
    """A coarse lattice of connect-the-dots: the error of the estimate, over the half width of the interval."""
    rng, actual, claimed = np.random.default_rng(5), [], []
    for i in range(CASES // 2):
        base = hs.laplace(math.exp(rng.uniform(0, 2))) if i % 2 else hs.gaussian(math.exp(rng.uniform(-0.5, 1.5)))
        run = hs.poisson_subsampled(base, math.exp(rng.uniform(-4, -0.5))) * int(math.exp(rng.uniform(1, 6)))
        eps = float(rng.uniform(0.1, 2))
        truth = hs.log_delta(run, eps, direction="remove").estimate
        if truth < -200:
            continue
        found = hs.log_delta(run, eps, direction="remove", route="pld", rtol=0.5)
        actual.append(abs(math.expm1(found.estimate - truth)))
        claimed.append(max(math.expm1(found.upper - truth), -math.expm1(found.lower - truth)))
    return np.array(actual), np.array(claimed)


def moments():
    """delta against the moments accountant's upper bound, both over delta."""
    rng, claimed = np.random.default_rng(7), []
    for _ in range(CASES):
        run, eps = _gaussian_run(rng), float(rng.uniform(0.1, 3))
        truth = hs.log_delta(run, eps).estimate
        if truth > -300:
            claimed.append(0.01 * math.exp(min(50.0, math.log(hs.moments_delta_upper(run, eps)) - truth)))
    return np.full(len(claimed), 0.01), np.array(claimed)


TERMS = {
    "grid-wrapped": (wrapped, 10.0, 2.0),
    "grid-truncated": (truncated, 50.0, 10.0),
    "grid-fft": (fft_rounding, 30000.0, 5000.0),
    "grid-fft-extended": (fft_rounding_extended, 30000.0, 5000.0),
    "prv-radius": (prv_radius, 100.0, 20.0),
    "pld-interval": (pld_mesh, 10.0, 3.0),
    "moments-upper": (moments, 15.0, 1.2),
}
"""A term's name: its function, the largest median of claimed/actual, and what one case in twenty has to lie within."""
