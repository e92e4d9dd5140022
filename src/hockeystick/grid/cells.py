"""Discretisation of losses on a lattice: the mean-matched grid of the PRV accountant.

The coupling [GLW21, Lemma C.5, Thm 5.5] [theory: grid.coupling], with constants rederived so that every event is paid
for once. Let Y_i be the loss of step i, W_i its window, J_i the lattice point of its cell, mu_i = E[Y_i - J_i | W_i],
e_i = Y_i - J_i - mu_i. With all Y_i inside their windows the e_i are independent, have mean 0 and lie in an interval of
width h, so with probability at least 1 - eta (one-sided) their sum is at most the `radius` [theory: grid.radius], the
least of

  (a) h sqrt(k/2 log(1/eta))                                          Hoeffding, as in [GLW21, Lemma C.6];
  (b) k h;
  (c) inf_s (sum_i k_i R_i (sinh(sh/2)/(sh/2) - 1) + log(1/eta)) / s,   R_i = 1 + h TV(f_i), about h sqrt(k/6
  log(1/eta)).

Proof of (c): psi(u) = e^{su} - 1 - su >= 0 and the density f of Y is at most (mass + h osc f)/h on a cell, so
E psi(Y - J) <= (1 + h TV f) E psi(U), U uniform on a cell; and E e^{s e} <= e^{-s mu} (1 + s mu + E psi(Y -
J)) <= exp(R (sinh(sh/2)/(sh/2) - 1)). Chernoff. For any law R = 3 will do: E e^{s e} <= e^{(sh)^2/8} by Hoeffding's
lemma, and
sinh(a)/a - 1 >= a^2/6.   TV f: f' has the sign of -x - m + 2 m pi(x) (REMOVE), -x +
m pi(x) - m (ADD) in the noise x, pi the logistic weight q e^v/(1 - q + q e^v); as pi' = m pi (1 - pi) <= m/4
there is one zero for m^2 <= 2 (4), else at
most three; all lie in [-m, m]. So TV f <= 2 max f, else 4 max f.

Then for every eps, D being the tail functional of the exact k-fold convolution of the (partial) masses,
  D(eps + radius) - eta <= delta(eps) <= D(eps - radius) + eta + sum_i k_i Pr[Y_i not in W_i].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..outward import U as ULP

MAX_CELLS = 1 << 24
"""Most cells of one transform, and of all steps together: 128 MB an array."""


class Steps(NamedTuple):
    """Discretised steps: step i, k[i] times, has the masses p[start[i]..start[i+1]-1] at cells j0[i], j0[i] + 1, ..."""

    j0: np.ndarray
    start: np.ndarray
    p: np.ndarray
    k: np.ndarray

    @classmethod
    def of(cls, laws) -> Steps:
        """From (j0, masses, k) of every step."""
        first, masses, k = zip(*laws, strict=True)
        start = np.cumsum([0, *(p.size for p in masses)], dtype=np.int64)
        p = np.ascontiguousarray(masses[0]) if len(masses) == 1 else np.concatenate(masses)
        return cls(np.array(first, dtype=np.int64), start, p, np.array(k, dtype=float))

    def masses(self, i: int) -> np.ndarray:
        return self.p[self.start[i] : self.start[i + 1]]

    @property
    def far(self) -> np.ndarray:
        """The largest |cell| of every step, and one more."""
        return np.maximum(np.abs(self.j0), np.abs(self.j0 + np.diff(self.start)))


class Grid(NamedTuple):
    """Discretised steps on one lattice of step dx. A sum of lattice points j dx stands for the loss j dx +
    shift.

    radius : bound on the summed discretisation error outside an event of probability eta (each side).
    lost : bound on the probability that some loss leaves its window.
    """

    dx: float
    steps: Steps
    shift: float
    radius: float
    eta: float
    lost: float


class Cgf(NamedTuple):
    """K(t) = log E e^{tY} of the whole run at t, and two derivatives. Estimates: for planning only."""

    t: np.ndarray
    k0: np.ndarray
    k1: np.ndarray
    k2: np.ndarray


def window_reach(total: float, delta_error: float) -> tuple[float, float]:
    """(X, log p_out): windows are |x - centre| <= X in the noise, 2 total Pr[N > X] <= 2 total p_out =
    delta_error/8."""
    # never wider than 1e-9 outside: the mean of what is outside is an error of the shift
    from scipy.special import ndtri_exp

    log_out = math.log(min(delta_error, 1e-9) / 16) - math.log(total)
    return -float(ndtri_exp(log_out)) * (1 + 1e-9) + 1e-6, log_out


def mean_loss(m: float, q: float, add: bool) -> tuple[float, float]:
    """(E Y, bound on its error). Trapezoid rule on |x| <= 40 + m [theory: grid.mean].

    The integrand is analytic for |Im x| < pi/m, where the argument of the logarithm vanishes. On |Im x| <= d
    <= 0.9 pi/m it is at most e^{d^2/2} phi(x) (|l(x)| + 8) (1 + e^{v}), so the aliasing error is below 2
    e^{d^2/2 - 2 pi d/hx} (|E Y| + 8 + m) ~ 1e-19 for
    the hx chosen; the rest is rounding, 64 u relative to E|Y|, and 1e-300 of truncation.
    """
    if q == 1:
        return 0.5 * m * m, 4 * ULP * m * m
    d = min(0.9 * math.pi / m, 6.0)
    hx = min(0.1, 2 * math.pi * d / (46 + 0.5 * d * d))
    x = np.arange(-40.0, 40.0 + m, hx)
    v = m * x - 0.5 * m * m
    loss = np.where(v < 30, np.log1p(q * np.expm1(np.minimum(v, 30))), v + math.log(q))
    base = np.exp(-0.5 * x * x) * (hx / math.sqrt(2 * math.pi))
    shifted = np.exp(-0.5 * (x - m) ** 2) * (hx / math.sqrt(2 * math.pi))
    law = base if add else (1 - q) * base + q * shifted
    mean = math.fsum((law * loss).tolist())
    size = float((law * np.abs(loss)).sum()) * (1 + 1e-9)  # of one sign: within 40 u
    return (-mean if add else mean), 64 * ULP * size + 1e-19 * (8 + m + size)


def density_variation_upper(m: float, q: float, add: bool) -> float:
    """Bound on the total variation of the density of one loss [theory: grid.variation].

    max f over [-m, m] from n points: |d log f/dx| <= 2 m there (REMOVE: |x| + m; ADD: the same).
    """
    n = int(min(200 * m * m + 64, 4096))
    x, step = np.linspace(-m, m, n, retstep=True)
    v = m * x - 0.5 * m * m
    log_w = np.logaddexp(math.log1p(-q), math.log(q) + v) if q < 1 else v
    log_f = -0.5 * x * x + (1 if add else 2) * log_w - v
    # tilts in use reach 2/dx
    peak = math.exp(min(log_f.max() + m * step + 1e-9 - math.log(math.sqrt(2 * math.pi) * m * q), 700))
    return (2 if q == 1 or m * m <= (4 if add else 2) else 4) * peak


def radius_upper(dx: float, k: np.ndarray, variation: np.ndarray, log_eta: float) -> float:
    """The least of (a), (b), (c) at the head of the file. variation : of the density of every step's loss, infinite
    where none is known. 1.001 covers edges off by 1e-4 dx and windows of mass > 0.9995."""
    total = float(k.sum())
    hoeffding = dx * math.sqrt(-0.5 * total * log_eta)
    weight = float((k * np.minimum(1 + dx * variation, 3.0)).sum()) * 1.001
    a = math.sqrt(-6 * log_eta / weight)
    chernoff = dx * (weight * (math.sinh(a) / a - 1) - log_eta) / (2 * a) if a < 30 else math.inf
    return min(hoeffding, total * dx, chernoff) * (1 + 1e-12)  # [theory: grid.radius]


def mesh(k: np.ndarray, variation: np.ndarray, eps_error: float, log_eta: float) -> float:
    """Largest lattice step with radius <= eps_error, to 1e-3 relative [GLW21, Thm 5.5]."""
    lo, hi = 0.0, 2 * eps_error
    while hi - lo > 1e-3 * hi:
        mid = 0.5 * (lo + hi) if lo > 0 else 0.25 * hi
        if radius_upper(mid, k, variation, log_eta) <= eps_error:
            lo = mid
        else:
            hi = mid
    return lo
