"""Route `prv`: the mean-matched grid of the PRV accountant [GLW21, Alg. 2, Thm 5.5], for any run of losses, from tails
alone.

Y is rounded to the lattice point J of its cell of width h; mu = E[Y - J | window]. With all losses in their windows the
errors Y_i - J_i - mu_i are independent, have mean 0 and lie in an interval of width h + 2 edge, so with probability 1 -
eta their sum is at most the radius of grid.py, one-sided: sharper where the density of a loss has a known variation,
Hoeffding's [GLW21, Lemma C.6] elsewhere. mu is bracketed from the same tails: with u = E[1 - e^{a-Y}; cell], a its left
end and y its mass,
  y (-log(1 - u/y)) <= E[Y - a; cell] <= u h/(1 - e^-h)      (Jensen; chord of a convex function)
      [theory: grid.bracketed-mean],
which leaves at most h^2/8 a step. So, with the masses rounded down and up (csrc/grid/pld.c) and the masses at infinity
of dots.py,
  D_lower(eps + radius) - eta + inf <= delta(eps) <= D_upper(eps - radius) + eta + lost + inf.
D is a sum of products of masses: where the lower masses are at least 1 - r_i of the upper ones, D_lower >= prod (1 -
r_i)^k_i D_upper, and the upper law alone is convolved. So it is for Gaussian steps, whose masses and mean have kernels
of their own.

It serves laws whose atoms no common lattice carries: there the laws of dots.py are first order in their mesh. Terms:
mesh is the radius (of eps), truncation and fft_rounding are of delta."""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._core import NORMAL
from ..answers import Point, Root
from ..bound import AccuracyError
from ..grid.cells import ULP, Grid, Steps, density_variation_upper, mean_loss, radius_upper
from ..grid.cells import mesh as mesh_of
from ..grid.dots import Laws, Plan, windows
from ..outward import DOWN, UP
from ..what.loss import Loss, log_finite
from . import pld
from .walls import rest, seen, wall_upper

EPS_ERROR = 0.01
"""Default radius, in eps."""

DELTA_SHARE = 1e-4
"""Part of delta given to windows and to the probability of large errors."""


WELL_RESOLVED = 1e-4, 0.9995
"""The most that an edge may be off by, in cells, and the least mass of a window, for the sharp radius."""


ALIKE = 1 - 1e-13
"""Where all lower masses are that near to the upper ones, these are the only ones that are convolved."""


NO_MASS = "the lattice carries no mass of a loss that can be resolved"


def _matched(made: Plan, eps_error: float, log_delta: float) -> Laws:
    """Both laws with a radius of about eps_error."""
    log_share = log_delta + math.log(DELTA_SHARE)
    eta, p_out = math.exp(log_share), math.exp(min(log_share, math.log(1e-9))) / (4 * made.k)
    counts = np.array([k for _, k in made.parts], dtype=float)
    variation = np.array([_variation_upper(loss) for loss, _ in made.parts])
    h = mesh_of(counts, variation, 0.95 * eps_error, log_share)
    first, size = windows(made, h, p_out, p_out, np.zeros(len(made.parts)))
    up, low, shifts, radius, lost, widest, short = [], [], [], 0.0, 0.0, 0.0, 0.0
    for i, (loss, k) in enumerate(made.parts):
        j0 = int(first[i])
        cells = _gaussian_cells if variation[i] < math.inf else _cells
        p_up, p_lo, mu, error, edge, outside = cells(loss, h, j0, j0 + int(size[i]) - 1)
        up.append((j0, p_up, k))
        low.append((j0, p_lo, k))
        shifts.append(k * mu)
        radius += k * error
        widest = max(widest, edge)
        lost += k * outside
        held = p_up > 0
        short += k * float(np.max(1 - p_lo[held] / p_up[held])) if (p_lo >= ALIKE * p_up).all() else math.inf
        if not (edge <= WELL_RESOLVED[0] * h and p_lo.sum() >= WELL_RESOLVED[1]):
            variation[i] = math.inf
    # [theory: grid.coupling]
    radius += radius_upper(h + 2 * widest, counts, variation, log_share)
    shift = math.fsum(shifts)
    radius += 1e-12 * math.fsum(map(abs, shifts))  # u of each and of the sum, and more, as a radius is never so small
    none = log_finite(made.parts)
    upper = Grid(h, Steps.of(up), shift, radius * (1 + 1e-9), eta, lost)
    return Laws(
        upper,
        upper if short < math.inf else Grid(h, Steps.of(low), shift, radius * (1 + 1e-9), eta, lost),
        -math.expm1(none.lower) * UP + (eta + lost) * (1 + 1e-9),
        -math.expm1(none.upper) * DOWN - eta * (1 + 1e-9),
        short=min(short * (1 + 1e-9) + 4 * ULP * made.k, 1.0) if short < math.inf else 0.0,
    )


def _variation_upper(loss: Loss) -> float:
    """Bound on the total variation of the density of a loss; infinite where there is an atom, or none is known."""
    if loss.additive is None or loss.additive.kind != NORMAL:
        return math.inf
    _, m, q, back = loss.additive
    return density_variation_upper(m, q, bool(back))


def _cells(loss, h: float, first: int, last: int):
    """(masses rounded up, down, mean offset mu, bound on its error, edge, mass outside the window) of one step."""
    s0 = (first - 0.5) * h
    tails = loss.tails(s0 + h * np.arange(last - first + 2))
    edge = tails.edge + 4 * ULP * float(abs(s0) + abs(last * h))
    y_up, u_up, y_lo, u_lo = _core.pld_cells(s0, h, np.array(tails[:5]), edge, tails.absolute)
    if not (y_up.sum() < 1.5 and y_lo.sum() > 0):
        raise AccuracyError(NO_MASS)
    y = np.maximum(y_lo, 1e-300)
    # [theory: grid.bracketed-mean]
    low = np.where(y_lo > 0, -y * np.log1p(-np.clip(u_lo / y, 0.0, -math.expm1(-h))), 0.0)
    high = np.minimum(u_up * (h / -math.expm1(-h)), h * y_up)
    most, least = float(y_up.sum()), float(y_lo.sum())
    left, right = (float(low.sum()) - 0.5 * h * most) / least, (float(high.sum()) - 0.5 * h * least) / least
    mu = 0.5 * (left + right)
    rounding = (ULP * (y_up.size + 8)) * h
    outside = (tails.y_below[0] + tails.y_above[-1]) * (1 + 1e-9) + 2 * tails.absolute
    return y_up, y_lo, mu, 0.5 * (right - left) * (1 + 1e-9) + rounding + 2 * edge, edge, float(outside)


def _gaussian_cells(loss, h: float, first: int, last: int):
    """The same for a Gaussian step, sampled or not, with masses within 9u of their size, and the mean by quadrature.

    The mean counts what is outside the window, of probability p: |Y| <= m |z| + 3 m^2/2 with z standard normal, under
    both laws. E[|z|; A] for Pr A = p is largest for A = {|z| > a}, 2 Q(a) = p: there it is 2 w(a) <= p (a + 1/a), as
    Q(a) >= w(a) a/(1 + a^2), and a^2 <= 2 log(1/p)."""
    _, m, q, back = loss.additive
    p, mass, mean, abs_mean, edge = _core.grid_prv(m, q, int(back), h, first, last - first + 1)
    if not mass > 0:
        raise AccuracyError(NO_MASS)
    exact, exact_error = mean_loss(m, q, bool(back))
    tails = loss.tails((np.array([first, last]) + np.array([-0.5, 0.5])) * h)
    outside = float(tails.y_below[0] + tails.y_above[-1]) * (1 + 1e-9) + 2 * tails.absolute
    mu = (exact - mean) / mass
    reach = 1 + math.sqrt(-2 * math.log(max(outside, 1e-300)))
    beyond = outside * m * (reach + 1.5 * m) if outside < 0.1 else math.inf
    error = (exact_error + beyond + 16 * ULP * abs_mean + 4 * ULP * abs(exact)) / mass + 2 * edge
    if abs(mu) > 0.5 * h + error:
        raise AccuracyError(f"rounding moves the edges of a lattice of step {h:.2g} by {edge:.2g}")
    return p * UP, p * DOWN, mu, error, edge, outside


def _terms(curve, eps: float, delta: float) -> tuple[float, float, float]:
    _, truncation, rounding = pld.relative(curve.terms(eps), delta)
    return curve.laws.upper.radius, truncation, rounding


def point(
    parts, eps: float, rtol: float | None, n_threads: int = 1, *, eps_error: float = EPS_ERROR, how: str = "power"
):
    """delta(eps) of a run of losses, None where it cannot be certified; AccuracyError where no lattice is short enough.

    eps_error : bound on the radius, smaller where rtol asks for that.   how : self-convolution, see convolve.py.
    """
    made, log_delta, t = pld.prepare(parts, lambda made: pld.at_eps(made, eps), DELTA_SHARE)
    eps_error = eps_error if rtol is None else min(eps_error, rtol / (2.8 * t))
    for _ in range(2):
        laws = _matched(made, eps_error, log_delta)
        curve = pld.convolved(made, laws, (eps, eps), log_delta + math.log(DELTA_SHARE), n_threads, how=how)
        low, high = curve.lower(eps), curve.upper(eps)
        mid = min(max(curve.estimate(eps), low), high)
        if not 0 < mid < math.exp(log_delta - 1):  # the shares of delta were those of a far larger one
            break
        log_delta = max(pld.LOG_MIN, math.log(mid))
    return Point(*pld.logs(low, mid, high), _terms(curve, eps, mid), "prv")


def root(
    parts, delta: float, rtol: float | None, n_threads: int = 1, *, eps_error: float = EPS_ERROR, how: str = "power"
):
    """eps(delta) of a run of losses, clipped at 0, or None; options as in `point`."""
    least, most = rest(parts, delta)
    if most < 0:
        return Root(math.inf, math.inf, math.inf, (0.0, 0.0, 0.0), "prv")
    visible, most = seen(least, most, delta)
    target = math.log(most)
    if target < pld.LOG_MIN:
        return None
    made, guess, t = pld.prepare(parts, lambda made: pld.at_delta(made, target), DELTA_SHARE)
    eps_error = eps_error if rtol is None else min(eps_error, rtol * max(guess, 1e-9) / 2.5)
    room, end = min(1.5 / t, 1.0 + abs(guess)) + 2 * eps_error, wall_upper(parts, least)
    for _ in range(8):
        lo, hi = max(0.0, guess - room), max(0.0, guess) + room
        laws = _matched(made, eps_error, target)
        curve = pld.convolved(made, laws, (lo, hi), target - t * room + math.log(DELTA_SHARE), n_threads, how=how)
        found = pld.invert(curve, delta, lo, min(hi, curve.ends[1]), end, not visible and end == math.inf)
        if not isinstance(found, str):
            lower, estimate, upper = found
            return Root(lower, estimate, upper, _terms(curve, estimate, delta), "prv")
        guess, room = (lo if found == "below" else hi), 2 * room
    return None
