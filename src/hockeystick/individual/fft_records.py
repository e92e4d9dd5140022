"""Route "fft" of individual_epsilons: the published accountant, transforms of the levels' grids and Plancherel's
identity.

The levels are discretised once on one lattice (grid.py: mean-matched, Theorem 5.5 coupling), and transformed once: F_j.
A record's law on the circle of n points has the transform B = prod_j F_j^{k_j}, and with g_r = 1 - e^{-r dx}, r =
1..n/2,

    D(m) = sum_r g_r b_{m+r} = (1/n) sum_w B(w) e^{i w m} conj(G(w)),   G(w) = sum_r g_r e^{-i w r}  in closed form,

so a record costs a sum over the frequencies that matter and no inverse transform [KTH23, App. D; the conjugate is
needed] [theory: individual.fft]. Lattice point m stands for the loss m dx + shift, shift = sum_j k_j mu_j.

Upper bound: delta(x + radius) <= D(x) + eta + lost + missing + rounding + dropped, each for the worst record:
    eta, lost   grid.py, for the total count k of the record that ran most.
    missing     Pr[S >= x + n dx/2] by Chernoff on the lattice law; mass that wraps around only raises D.
    rounding    |B^ - B| <= k (eta_f sqrt(n) |a|_2 + 80u) + (levels + 8)u (pi k + KEPT_NATS) at every kept frequency,
                times (1/n) sum |G|; eta_f is the constant of _fft.py. It is absolute, about 1e-12 k: below delta ~ 1e-9
                use the contour.
    dropped     (1/n) sum over the dropped |G|, times the largest exp(sum_j k_j max log|F_j|) of the block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..bound import AccuracyError
from ..grid import _fft
from ..grid import cells as grid
from ..outward import UP

EPS_ERROR = 0.005
"""Radius of the discretisation, in eps: what the bounds of this route are wide by."""

POINTS_MAX = 1 << 22
BLOCK = 512
KEPT_NATS = 40.0
DELTA_MIN = 1e-290
"""Parts of delta are given to windows and to rare errors: a double has to hold them."""


class Levels(NamedTuple):
    """All levels on one lattice: transforms at the kept frequencies 0..M-1 and what is bounded by them."""

    dx: float
    n: int
    radius: float
    slack: float  # eta + lost
    mu: np.ndarray
    log_abs: np.ndarray  # [levels, M]
    angle: np.ndarray
    beyond: np.ndarray  # log of the largest |F_j| among the dropped
    rounding: float  # error of F_j^k for one run
    log_mgf: np.ndarray  # upper bounds at `tilts`, of the lattice law with its shift
    tilts: np.ndarray


def fft_epsilons_upper(counts, m, q, delta: float, n_threads: int = 1, progress=None):
    """Certified upper bounds of eps(delta), the larger over both directions; see the head of the file."""
    if delta < DELTA_MIN:
        raise AccuracyError(
            f"route 'fft' answers for delta from {DELTA_MIN:g} on, got {delta!r}; ask for route='contour'"
        )
    total = float(counts.sum(axis=1, dtype=np.int64).max())
    if not total:
        return np.zeros(len(counts))
    upper = np.zeros(len(counts))
    ran = np.flatnonzero(counts.any(axis=1))
    for add in (False, True):
        levels = prepare(m, q, add, total, counts[ran], delta, EPS_ERROR, n_threads)
        weight, weight_sum, dropped = _weights(levels)
        for at in range(0, ran.size, BLOCK):
            part = ran[at : at + BLOCK]
            upper[part] = np.maximum(upper[part], _solve(levels, counts[part], delta, weight, weight_sum, dropped))
            if progress:
                progress((int(add) * ran.size + min(at + BLOCK, ran.size)) // 2, ran.size)
    return upper


def prepare(m, q, add: bool, total: float, counts, delta: float, eps_error: float, n_threads: int) -> Levels:
    """Discretise and transform the levels for records of at most `total` steps."""
    delta_error = 1e-3 * delta
    reach, log_out = grid.window_reach(total, delta_error)
    log_eta = math.log(delta_error / 4)
    variation = np.array([grid.density_variation_upper(a, b, add) for a, b in zip(m, q, strict=True)])
    worst = np.array([total]), variation.max(keepdims=True)  # all steps count as the worst kind
    dx = grid.mesh(*worst, 0.99 * eps_error, log_eta)
    parts, mu, error = [], np.empty(m.size), 0.0
    phi = math.exp(-0.5 * reach * reach) / math.sqrt(2 * math.pi)
    for j in range(m.size):
        lo, hi = _loss_at(-reach, m[j], q[j]), _loss_at(reach if add else reach + m[j], m[j], q[j])
        lo, hi = (-hi, -lo) if add else (lo, hi)
        first, last = math.floor(lo / dx) - 1, math.ceil(hi / dx) + 1
        if last - first > POINTS_MAX:
            raise AccuracyError(f"fft: a level needs {last - first} lattice points; use route='contour'")
        p, mass, mean, abs_mean, edge = _core.grid_prv(m[j], q[j], add, dx, first, last - first + 1)
        exact, exact_error = grid.mean_loss(m[j], q[j], add)
        mu[j] = (exact - mean) / mass
        outside = 2 * (m[j] * phi + 1.5 * m[j] ** 2 * math.exp(log_out))
        own = (exact_error + outside + 16 * grid.ULP * abs_mean + 4 * grid.ULP * abs(exact)) / mass + 2 * edge
        if edge > 1e-4 * dx or mass < 0.9995 or abs(mu[j]) > 0.5 * dx + own:
            raise AccuracyError("fft: rounding moves the edges of the lattice; use route='contour'")
        error = max(error, own)
        parts.append((first, p))
    radius = grid.radius_upper(dx, *worst, log_eta) + total * (error + 8 * grid.ULP * np.abs(mu).max())
    slack = math.exp(log_eta) + 2 * total * math.exp(log_out) * (1 + 1e-9)
    tilts = np.geomspace(0.05, 200.0, 48)
    log_mgf = _log_mgf_upper(parts, dx, mu, tilts)
    n = _circle(dx, log_mgf, tilts, counts, delta)
    return _transform(parts, dx, n, radius, slack, mu, log_mgf, tilts, counts, n_threads)


def _loss_at(x: float, m: float, q: float) -> float:
    """log(1 - q + q e^{m x - m^2/2})."""
    v = m * x - 0.5 * m * m
    return v if q == 1 else math.log1p(q * math.expm1(v)) if v < 30 else v + math.log(q + (1 - q) * math.exp(-v))


def _log_mgf_upper(parts, dx: float, mu, tilts) -> np.ndarray:
    """Upper bounds of log E e^{t (Y~ + mu)}, [levels, tilts]; rounding as in convolve.py."""
    out = np.empty((len(parts), tilts.size))
    for j, (first, p) in enumerate(parts):
        far = max(abs(first), abs(first + p.size)) * dx
        for i, t in enumerate(tilts):
            value = _core.grid_log_mgf(first, dx, p, float(t))
            out[j, i] = value + t * mu[j] + grid.ULP * (64 + 8 * t * far + 8 * abs(value)) + p.size * 2.0**-52
    return out


def _circle(dx: float, log_mgf, tilts, counts, delta: float) -> int:
    """Points of a circle on which half the circumference leaves `missing` below 1e-3 delta for every eps >= 0."""
    half = 1.0
    for at in range(0, len(counts), 1 << 14):
        K = counts[at : at + (1 << 14)].astype(float) @ log_mgf
        half = max(half, float(((K - math.log(1e-3 * delta)) / tilts).min(axis=1).max()))
    n = _fft.fast_length(math.ceil(2 * (2 * half) / dx) + 8)  # twice: what wraps from the left raises D
    if n > POINTS_MAX:
        raise AccuracyError(
            f"fft: the records' losses need a circle of {n} points (allowed: {POINTS_MAX}); use route='contour'"
        )
    return n


def _transform(parts, dx, n, radius, slack, mu, log_mgf, tilts, counts, n_threads) -> Levels:
    """F_j as logarithm and angle at the frequencies below the last one where any record's |B| exceeds e^-KEPT_NATS."""
    logs, angles, worst_norm = [], [], 0.0
    for first, p in parts:
        cells = _fft.zeros(n)
        _core.convolve_tilt(first, dx, p, 0.0, 0.0, cells)
        worst_norm = max(worst_norm, float(np.linalg.norm(cells)))
        spec = _fft.forward(cells, n_threads)
        logs.append(np.log(np.maximum(np.abs(spec), 1e-300)))
        angles.append(np.angle(spec))
    log_abs, rounding = np.array(logs), _fft.error_upper(n) * math.sqrt(n) * worst_norm * 1.01 + 80 * grid.ULP
    # sup over the frequencies from w on, so that a single number a level bounds all that is dropped
    tail = np.maximum.accumulate(log_abs[:, ::-1], axis=1)[:, ::-1]
    slowest = counts[np.argmin(counts.astype(float) @ -tail[:, min(n // 2, 64)])].astype(float)
    kept = int(np.argmax(slowest @ tail < -KEPT_NATS)) or n // 2 + 1
    kept = min(max(kept, 64), n // 2 + 1)
    beyond = tail[:, kept] if kept <= n // 2 else np.full(len(parts), -1e4)
    return Levels(
        dx, n, radius, slack, mu, log_abs[:, :kept], np.array(angles)[:, :kept], beyond, rounding, log_mgf, tilts
    )


def _weights(levels: Levels):
    """(conj(G)/n at the kept frequencies, doubled but at 0 and n/2; the sum of their moduli; that of the dropped)."""
    n, dx, half = levels.n, levels.dx, levels.n // 2
    w = np.exp(-2j * np.pi * np.arange(n // 2 + 1) / n)

    def series(z, power):  # z + .. + z^half
        out = np.full(z.shape, half, complex)
        other = np.abs(1 - z) > 1e-14
        out[other] = z[other] * (1 - power[other]) / (1 - z[other])
        return out

    turn = np.where(np.arange(n // 2 + 1) % 2, -1.0, 1.0)  # w^half, exactly
    total = series(w, turn) - series(w * math.exp(-dx), turn * math.exp(-half * dx))
    total *= np.where((np.arange(n // 2 + 1) == 0) | (np.arange(n // 2 + 1) == n // 2), 1.0, 2.0) / n
    kept = levels.log_abs.shape[1]
    size = np.abs(total) * (1 + 1e-9)
    return np.conj(total[:kept]), float(size[:kept].sum()), float(size[kept:].sum())


def _solve(levels: Levels, counts, delta: float, weight, weight_sum: float, dropped: float) -> np.ndarray:
    """The least lattice point of each record at which the bound is at or below delta, plus the radius."""
    k = counts.astype(float)
    log_b, angle = k @ levels.log_abs, k @ levels.angle
    total = k.sum(axis=1)
    phase = (levels.mu.size + 8) * grid.ULP * (total * math.pi + KEPT_NATS)
    rounding = weight_sum * (np.expm1(total * levels.rounding) + phase + 64 * grid.ULP)
    beyond = dropped * (np.exp(np.minimum(k @ levels.beyond, 0)) + np.expm1(total * levels.rounding))
    missing_log = k @ levels.log_mgf
    shift = k @ levels.mu
    b = np.exp(np.minimum(log_b, 0)) * weight
    frequency = 2 * np.pi * np.arange(b.shape[1]) / levels.n

    def bound(m, rows):
        x = m * levels.dx + shift[rows]
        turn = angle[rows] + np.multiply.outer(m, frequency)
        d = (b[rows].real * np.cos(turn) - b[rows].imag * np.sin(turn)).sum(axis=1)
        reach = x + levels.n // 2 * levels.dx
        gone = np.exp(np.minimum((missing_log[rows] - np.multiply.outer(reach, levels.tilts)).min(axis=1), 0))
        angle_error = 4 * grid.ULP * np.abs(m) * math.pi * 2  # of m w, reduced or not
        # [theory: individual.fft]
        return d + levels.slack + gone + beyond[rows] + rounding[rows] + weight_sum * angle_error

    rows = np.arange(len(k))
    low = np.floor((-levels.radius - shift) / levels.dx) - 1
    high = np.ceil((((missing_log - math.log(0.1 * delta)) / levels.tilts).min(axis=1) - shift) / levels.dx) + 2
    high = np.maximum(high, low + 1)
    done = bound(low, rows) <= delta
    if (bound(high, rows) > delta).any():
        worst = float((beyond + rounding).max() + levels.slack)
        raise AccuracyError(f"fft: delta is certified to {worst:.2g} at best, wanted {delta:.3g}; use route='contour'")
    while ((high - low) > 1).any():
        mid = np.floor(0.5 * (low + high))
        ok = bound(mid, rows) <= delta
        high, low = np.where(ok, mid, high), np.where(ok, low, mid)
    eps = np.where(done, 0.0, high * levels.dx + shift) + levels.radius
    return np.where(done, 0.0, np.maximum(eps * UP, 0))
