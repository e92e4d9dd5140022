"""Many compositions of one step by repeated powers on a mesh that grows with them [GKKM22] [theory: grid.stages].

A lattice law is raised to the power k1 = 4^c on a circle that just holds its tilted law, and put on a lattice 2^c times
coarser, above or below it as before (pld.c): the law has become 2^c times wider, so it is resolved as well as it was.
What is left of k is composed once more. Circles then keep their length while k grows, so time and memory grow like log
k. Laws with rare large losses gain little: the first circle must hold one of them at the finest mesh; `doublings` looks
at that.

Accounts are kept in tilted mass M(mu) = int e^{ty} dmu, with one t for all laws: a positive measure mu on losses has
D_mu(eps) = int (1 - e^{eps-y})_+ dmu <= c M(mu), c = e^{-t eps} f(t), f(t) = t^t/(1+t)^{1+t} the maximum of e^{-ty}(1 -
e^{-y}) [theory: grid.tilted-mass]. So for a law mu = nu + r, where nu is used and M(|r|) <= omega M(nu), the product
over all factors of the difference, expanded, gives
  |D of prod mu_i^{k_i} - D of prod nu_i^{k_i}| <= c prod M(nu_i)^{k_i} (prod (1 + omega_i)^{k_i} - 1).         (1)
For one power [theory: grid.power-omega], omega is at most: sqrt(n) times the Euclidean error of the convolution, what
is dropped for being below four times that error, and the tilted mass outside the circle, by Chernoff's bound at other
tilts; such mass is missed by the upper law and wrapped into the lower one. Stages. Let nu be used for mu, its coarsened
law nu' be used from there on, and rho for the k1-fold nu'. nu' bounds D of all powers of nu from its side, so that only
(1) and (1) of rho remain, whose sum is, with M(nu')^{k1} <= (1 + omega_1) M(rho),
  c M(rho)^{k2} ((1 + omega_1)^{k2} (1 + omega)^{k1 k2} - 1) (M(nu)/M(nu'))^{k1 k2}
where the last factor exceeds 1: the omega of rho becomes (1 + omega)^{k1} (1 + omega_1) - 1. Upper laws have M(nu') >=
M(nu). For lower ones `lost` carries log M(nu)/M(nu') on, and what rounding takes from their masses."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..bound import AccuracyError
from ..outward import LDBL_ULP
from ..threads import blocks
from . import _fft
from .cells import MAX_CELLS, ULP, Grid, Steps
from .convolve import tilted_power

TARGET = 1 << 16
"""Circle length at which the mesh stops doubling."""

WORTH = 8
"""The mesh evolves where that shortens the longest circle so many times: each stage has two powers, and a finer first
mesh."""

BLOCK = 1 << 18
"""Masses that are worked on at a time."""

STAGE = 3
"""Most doublings of the mesh in one stage: k1 = 64."""

LOG_OUTSIDE = math.log(1e-16)
"""Tilted mass left outside a circle, on each side: below the error of the convolution, so that it costs nothing."""

RATES = 10
"""Second tilts tried for Chernoff's bound, from 8/(width of one law), best for rare large losses, to 12/deviation: a
normal law at LOG_OUTSIDE wants 8.6/deviation."""


class Law(NamedTuple):
    """Masses p at at + (first + j) dx, omega (relative to tilted mass) by which they may be wrong, and the log of what
    tilted mass has fallen by on the way; see the head of the file."""

    first: int
    p: np.ndarray
    at: float
    omega: float = 0.0
    lost: float = 0.0


def doublings(points: float, narrow: float, k: float) -> int:
    """How often the mesh should double, for a circle of so many points, when one step's law is `narrow` points wide."""
    if points < WORTH * max(TARGET, narrow) or k < 4 * 4**STAGE:
        return 0
    return min(math.floor(math.log2(points / TARGET)), int(0.5 * math.log2(k)) - 1)


def stages(count: int) -> int:
    """Stages that this many doublings take: each adds about the discretisation error of the first lattice."""
    return -(-count // STAGE)


def evolve(law: Law, k: int, dx: float, t: float, count: int, upper: bool, n_threads: int) -> list[tuple[Law, int]]:
    """The k-fold law as [(law, its count), ...] on the lattice of step dx 2^count."""
    out: list = []
    while count:
        c = min(count, STAGE)
        k, rest = divmod(k, 4**c)
        out = [(coarsened(one, dx, t, c, upper), 1) for one, _ in out]
        if rest:
            out.append((coarsened(power(law, rest, dx, t, upper, n_threads), dx, t, c, upper), 1))
        if not k:
            return out
        law = coarsened(power(law, 4**c, dx, t, upper, n_threads), dx, t, c, upper)
        dx, count = dx * 2**c, count - c
    return [*out, (law, k)]


def power(law: Law, k: int, dx: float, t: float, upper: bool, n_threads: int) -> Law:
    """The k-fold convolution, within omega."""
    x = (law.first + np.arange(law.p.size)) * dx
    log_m = _core.grid_log_mgf(law.first, dx, law.p, t)
    ok = law.p > 0
    w = np.exp(np.log(law.p[ok]) + t * x[ok] - log_m)
    mean = float(w @ x[ok])
    deviation = math.sqrt(k * float(w @ (x[ok] - mean) ** 2)) + dx
    rates = np.geomspace(min(8 / (law.p.size * dx), 4 / deviation), 12 / deviation, RATES)
    lo, hi = _reach(law, k, dx, t, log_m, -rates), _reach(law, k, dx, t, log_m, rates)
    if not hi - lo < MAX_CELLS * dx:
        raise AccuracyError(f"a {k}-fold law needs more than {MAX_CELLS} points at a lattice step of {dx:.2g}")
    first = math.floor(lo / dx) - 1
    n = _fft.fast_length(math.ceil(hi / dx) + 2 - first)
    alone = Grid(dx, Steps.of([(law.first, law.p, k)]), 0.0, 0.0, 0.0, 0.0)
    r, error2 = tilted_power(alone, t, np.array([log_m]), n, n_threads)
    r = np.roll(r, -(first % n))
    kept = r > 4 * error2
    # [theory: grid.power-omega]
    omega = math.sqrt(n) * error2 + float(np.abs(r[~kept]).sum()) + 2.1 * math.exp(LOG_OUTSIDE)
    parts = blocks(n, BLOCK)  # which a signal need not wait long for

    def exponent(part: slice) -> np.ndarray:
        return k * log_m - t * ((first + np.arange(part.start, part.stop)) * dx)

    most = max(float(np.abs(exponent(part)[kept[part]]).max(initial=0.0)) for part in parts)
    far = max(abs(law.first), abs(law.first + law.p.size)) * dx
    theta = ULP * (k * (20 + 6 * abs(t) * far + 4 * abs(log_m)) + 16 + 4 * most)
    theta += k * law.p.size * LDBL_ULP
    if not theta < 0.01 or not omega < 0.01:
        raise AccuracyError(f"a {k}-fold law loses its digits (relative error {max(theta, omega):.2g})")
    p, outward = r, 1 + (2 if upper else -2) * theta
    for part in parts:
        p[part] = np.where(kept[part], r[part], 0.0) * np.exp(np.minimum(exponent(part), 700.0)) * outward
    used = np.flatnonzero(kept)
    omega /= 1 - omega  # relative to the tilted mass that is left
    grown = math.expm1(k * math.log1p(law.omega)) * (1 + omega)  # [theory: grid.stages]
    lost = k * law.lost + (0.0 if upper else 3 * theta)
    return Law(
        first + int(used[0]), p[used[0] : used[-1] + 1], k * law.at, (grown + omega) * (1 + 8 * theta + 1e-9), lost
    )


def _reach(law: Law, k: int, dx: float, t: float, log_m: float, rates: np.ndarray) -> float:
    """A point beyond which, on the side of the sign of the rates, the tilted k-fold law has mass at most
    e^LOG_OUTSIDE."""
    ends = []
    for s in rates.tolist():
        log_ratio = k * (_core.grid_log_mgf(law.first, dx, law.p, t + s) - log_m)
        ends.append((log_ratio - LOG_OUTSIDE + 1e-6 * abs(log_ratio) + 1e-6) / s)
    return min(ends) if rates[0] > 0 else max(ends)


def coarsened(law: Law, dx: float, t: float, count: int, upper: bool) -> Law:
    """The law on a lattice of step dx 2^count, above or below it; its masses lie on the left edges of fine cells."""
    p = law.p
    at, w = law.at + law.first * dx, dx
    for _ in range(count):
        p = np.r_[p, np.zeros(2 - p.size % 2)]
        none = np.zeros(p.size)
        p = _core.pld_upper(2, w, p, none, 0.0) if upper else _core.pld_lower(2, w, p, none, 0.0, t)
        w *= 2
    fallen = 0.0 if upper else _core.grid_log_mgf(0, dx, law.p, t) - _core.grid_log_mgf(0, w, p, t)
    return Law(0, p, at, law.omega, law.lost + max(fallen, 0.0))
