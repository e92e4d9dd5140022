"""Route `prv` for any run of losses: the mean-matched grid of the PRV accountant [GLW21, Alg. 2, Thm 5.5] from tails alone.

Y is rounded to the lattice point J of its cell of width h; mu = E[Y - J | window]. With all losses in their windows the errors
Y_i - J_i - mu_i are independent, have mean 0 and lie in an interval of width h + 2 edge, so with probability 1 - eta their sum
is at most radius = (h + 2 edge) sqrt(k/2 log(1/eta)) [GLW21, Lemma C.6], one-sided. mu is bracketed from the same tails: with
u = E[1 - e^{a-Y}; cell], a its left end and y its mass,
  y (-log(1 - u/y)) <= E[Y - a; cell] <= u h/(1 - e^-h)      (Jensen; chord of a convex function) [theory: grid.bracketed-mean],
which leaves at most h^2/8 a step. So, with the masses rounded down and up (pld.c) and the masses at infinity of dots.py,
  D_lower(eps + radius) - eta + inf <= delta(eps) <= D_upper(eps - radius) + eta + lost + inf.

It serves laws whose atoms no common lattice carries: there the laws of dots.py are first order in their mesh. For Gaussian runs
routes/fft.py has the sharper radius. Terms: mesh is the radius (of eps), truncation and rounding are of delta.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from ..answers import Point, Root
from ..bound import AccuracyError
from ..dots import Laws, Plan, windows
from ..grid import ULP, Grid, Steps
from ..loss import log_finite
from . import pld
from .walls import rest, seen, wall

EPS_ERROR = 0.01
"""Default radius, in eps."""

DELTA_SHARE = 1e-3
"""Part of delta given to windows and to the probability of large errors."""


def _matched(made: Plan, eps_error: float, log_delta: float) -> Laws:
    """Both laws with a radius of about eps_error."""
    log_share = log_delta + math.log(DELTA_SHARE)
    eta, p_out = math.exp(log_share), math.exp(log_share) / (4 * made.k)
    spread = math.sqrt(-0.5 * made.k * log_share)
    h = 0.9 * eps_error / min(spread, made.k)
    first, size = windows(made, h, p_out, p_out, np.zeros(len(made.parts)))
    up, low, shift, radius, lost, widest = [], [], 0.0, 0.0, 0.0, 0.0
    for i, (loss, k) in enumerate(made.parts):
        j0 = int(first[i])
        p_up, p_lo, mu, error, edge, outside = _cells(loss, h, j0, j0 + int(size[i]) - 1)
        up.append((j0, p_up, k))
        low.append((j0, p_lo, k))
        shift += k * mu
        radius += k * error
        widest = max(widest, edge)
        lost += k * outside
    radius += (h + 2 * widest) * min(spread, made.k) + 8 * ULP * abs(shift) * len(up)
    none = log_finite(made.parts)
    return Laws(
        Grid(h, Steps.of(up), shift, radius * (1 + 1e-9), eta, lost),
        Grid(h, Steps.of(low), shift, radius * (1 + 1e-9), eta, lost),
        -math.expm1(none[0]) * (1 + 4 * ULP) + (eta + lost) * (1 + 1e-9),
        -math.expm1(none[1]) * (1 - 4 * ULP) - eta * (1 + 1e-9),
    )


def _cells(loss, h: float, first: int, last: int):
    """(masses rounded up, down, mean offset mu, bound on its error, edge, mass outside the window) of one step."""
    s0 = (first - 0.5) * h
    tails = loss.tails(s0 + h * np.arange(last - first + 2))
    edge = tails.edge + 4 * ULP * float(abs(s0) + abs(last * h))
    yb, ya, xb, xa, rel = (np.ascontiguousarray(column) for column in tails[:5])
    y_up, u_up, y_lo, u_lo = _core.pld_cells(s0, h, yb, ya, xb, xa, rel, edge, tails.absolute)
    if not (y_up.sum() < 1.5 and y_lo.sum() > 0):
        raise AccuracyError("the tails of a loss carry no mass that can be resolved")
    y = np.maximum(y_lo, 1e-300)
    low = np.where(y_lo > 0, -y * np.log1p(-np.clip(u_lo / y, 0.0, -math.expm1(-h))), 0.0)
    high = np.minimum(u_up * (h / -math.expm1(-h)), h * y_up)
    mass = float(y_up.sum()), float(y_lo.sum())
    ends = (float(low.sum()) - 0.5 * h * mass[0]) / mass[1], (float(high.sum()) - 0.5 * h * mass[1]) / mass[1]
    mu = 0.5 * (ends[0] + ends[1])
    rounding = (ULP * (y_up.size + 8)) * h
    outside = (tails.y_below[0] + tails.y_above[-1]) * (1 + 1e-9) + 2 * tails.absolute
    return y_up, y_lo, mu, 0.5 * (ends[1] - ends[0]) * (1 + 1e-9) + rounding + 2 * edge, edge, float(outside)


def _terms(curve, eps: float, delta: float) -> tuple[float, float, float]:
    _, truncation, rounding = pld.relative(curve.terms(eps), delta)
    return curve.laws.upper.radius, truncation, rounding


def point(parts, eps: float, rtol: float | None, n_threads: int = 1):
    """delta(eps) of a run of losses, None where it cannot be certified; AccuracyError where no lattice is short enough."""
    made, log_delta, t = pld.prepare(parts, lambda made: pld.at_eps(made, eps), DELTA_SHARE)
    if pld.out_of_reach(made, eps):
        return None
    eps_error = EPS_ERROR if rtol is None else min(EPS_ERROR, rtol / (2.5 * t))
    laws = _matched(made, eps_error, log_delta)
    curve = pld.convolved(made, laws, (eps, eps), log_delta + math.log(DELTA_SHARE), n_threads)
    low, high = curve.lower(eps), curve.upper(eps)
    mid = min(max(curve.estimate(eps), low), high)
    return Point(*pld.logs(low, mid, high), _terms(curve, eps, mid), "prv")


def root(parts, delta: float, rtol: float | None, n_threads: int = 1):
    """eps(delta) of a run of losses, clipped at 0, or None."""
    least, most = rest(parts, delta)
    if most < 0:
        return Root(math.inf, math.inf, math.inf, (0.0, 0.0, 0.0), "prv")
    visible, most = seen(least, most, delta)
    target = math.log(most)
    if target < pld.LOG_MIN:
        return None
    made, guess, t = pld.prepare(parts, lambda made: pld.at_delta(made, target), DELTA_SHARE)
    eps_error = EPS_ERROR if rtol is None else min(EPS_ERROR, rtol * max(guess, 1e-9) / 2.4)
    slack, end = min(1.5 / t, 1.0 + abs(guess)) + 2 * eps_error, wall(parts, least)
    for _ in range(8):
        lo, hi = max(0.0, guess - slack), max(0.0, guess) + slack
        laws = _matched(made, eps_error, target)
        curve = pld.convolved(made, laws, (lo, hi), target - t * slack + math.log(DELTA_SHARE), n_threads)
        found = pld.invert(curve, delta, lo, min(hi, curve.ends[1]), end, not visible and end == math.inf)
        if not isinstance(found, str):
            lower, estimate, upper = found
            return Root(lower, estimate, upper, _terms(curve, estimate, delta), "prv")
        guess, slack = (lo if found == "below" else hi), 2 * slack
    return None
