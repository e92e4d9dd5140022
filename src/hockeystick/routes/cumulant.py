"""K(t) = log E[e^{tY}; Y finite], t > 0, between proved bounds, for a run of any mechanisms.

Every step goes to the evaluation that knows it best:
  (subsampled) Gaussian       csrc/clt/saddle_step.c           two-sided sampled Gaussian   csrc/law/twosided.c
  (subsampled) Laplace        csrc/law/law.c, laplace.c        finitely many losses         csrc/clt/saddle_atoms.c
  discrete Gaussian           theta functions, or its table with bounds of what lies beyond
  public mixtures             M = sum_r w_r M_r, also under Poisson sampling (the choice is public)
  noise around random shifts  shifts.py
  all others                  cells of the loss, below

Cells. With r = num/den of the base step, u = q(r - 1), a = 1 + t (REMOVE) or -t (ADD, r that of REMOVE), E_den u = -q
d, d the num mass of infinite loss:
  M - 1 = E_den f(r) - a q d,   f(r) = (1+u)^a - 1 - a u >= 0, convex in r.
A cell of den mass x and num mass y holds the outcomes of losses between its ends, so, A and B the line that touches f
at any point and C and D the chord over the cell, A x + B y <= E[f; cell] <= C x + D y [theory: law.cells]: an error of
second order in the width of the cell, relative to M - 1 however small q is. x and y are differences of the tails of
loss.py, whose errors are added. f = (1+u)(e^{tL} - 1 - tL) + t((1+u)L - u) with L = log(1+u), or (e^{-tL} - 1 + tL) +
t(u - L): positive terms. Where M is large, (1+u)^a, scaled, stands for f.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from .. import _core
from .._core import Rows
from ..answers import Cumulant
from ..bound import AccuracyError
from ..outward import U
from ..what import sampling
from ..what.allocation import RandomAllocation, log_moment_ends
from ..what.discrete import DiscreteGaussian, shifted
from ..what.given import GaussianMixture, PublicMixture
from ..what.groups import Group
from ..what.loss import Loss, reversed_loss
from ..what.mechanism import Laplace, PoissonSubsampled
from ..what.pair import step_loss
from ..what.ranged import BoundedRange
from . import mixed, saddle_laws, shifts
from .saddlepoint import gaussian_cumulant

CELLS = 6144
"""Cells within nine deviations of the laws that matter: 18/6144 deviations wide, 1e-6 of K."""

LEAST = 1e-290
"""Probability of a sum of a group's contributions from which on it is a normal double."""

LARGE = 30.0
"""Log of the largest term from which on M is summed without its terms of first order."""

PANELS = 64
"""Gauss panels per unit of a Laplace step's base loss: the quadrature is below rounding."""

TABLE_MAX = 4_000_000
REACH = 40.0


def run_cumulant(run, adjacency: str, add: bool, t: float) -> Cumulant:
    """K(t) of the run; AccuracyError where some step has no certified one."""
    sums = np.zeros(4)
    for step, k in run.parts:
        sums += k * np.array(step_cumulant(step, adjacency, add, t))
    slack = (len(run.parts) + 4) * U * float(np.abs(sums[:3]).max())
    low, mid, high, quadrature = (float(x) for x in sums)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise _refusal(t, "K is out of range")
    return Cumulant(low - slack, mid, high + slack, quadrature)


def step_cumulant(step, adjacency: str, add: bool, t: float) -> Cumulant:
    """K(t) of one step."""
    if not sampling.reveals(step):
        return Cumulant(0.0, 0.0, 0.0)
    row = sampling.as_gaussian(step, adjacency)
    if row:
        m, q = row
        return gaussian_cumulant(Rows(np.array([m]), np.array([q]), np.ones(1)), int(add), t)
    if sampling.is_sampled_gaussian(step):
        return _two_sided(sampling.pair(step, adjacency), add, t)
    q, base = (step.q, step.base) if isinstance(step, PoissonSubsampled) else (1.0, step)
    if isinstance(base, PublicMixture):
        parts = [_sampled(part, q) for part in base.parts]
        return _mixture([step_cumulant(part, adjacency, add, t) for part in parts], base.weights)
    loss = step_loss(step, adjacency, add)  # refuses adjacencies
    if isinstance(base, Laplace) and (q == 1 or adjacency != "replace_one"):
        moves = 2 if adjacency == "replace_one" else 1
        return _laplace(mixed.LaplaceStep(moves * base.sensitivity / base.scale, q, int(add), 1), t)
    if isinstance(step, RandomAllocation):
        return _allocation(step, add, t)
    if isinstance(base, BoundedRange):
        return _laplace(mixed.RangeStep(base.eps0, q, int(add), 1), t)
    if isinstance(base, DiscreteGaussian):
        return _theta(shifted(base, adjacency), t) if q == 1 else _table(base, q, -t if add else 1 + t, t)
    if not loss.smooth and loss.atoms() is not None:
        return _atoms(loss, t)
    if isinstance(base, GaussianMixture):
        return _shifts(np.array(base.shifts) / base.sigma, base.probabilities, q, -t if add else 1 + t, t)
    if isinstance(step, Group) and adjacency != "replace_one" and (law := step.shifts())[1].min() > LEAST:
        return _shifts(*law[:2], 1.0, -t if add else 1 + t, t)
    if q < 1 and adjacency == "add_remove":
        of = step_loss(base, adjacency, add)
        return _cells(reversed_loss(of) if add else of, q, -t if add else 1 + t, t)
    return _cells(loss, 1.0, 1 + t, t)


def _sampled(part, q: float):
    if isinstance(part, PoissonSubsampled):
        return PoissonSubsampled(part.base, part.q * q)
    return PoissonSubsampled(part, q) if q < 1 else part


def _refusal(t: float, why: str) -> AccuracyError:
    return AccuracyError(f"no certified divergence of order alpha={1 + t!r}: {why}")


# Steps that a C kernel knows


def _two_sided(pair, add: bool, t: float) -> Cumulant:
    """What was dropped for its weight (a branch of shifts up to u, v) has M at most e^{(u+v)^2 t(1+t)/2}
    [theory: line.monotone]."""
    try:
        log_m, error = _core.two_log_m(sampling.packed([pair.reversed() if add else pair]), t)
    except AccuracyError as reason:
        raise _refusal(t, f"{reason}, try a smaller one") from None
    if not pair.dropped:
        return Cumulant.within(error, log_m)
    reach = 2 * max(b.up + b.down for b in pair.branches)
    rest = math.log(pair.dropped) + 0.5 * reach * reach * t * (1 + t)
    return Cumulant(log_m - error - 2 * pair.dropped, log_m, float(np.logaddexp(log_m + error, rest)))


def _laplace(step: mixed.LaplaceStep | mixed.RangeStep, t: float) -> Cumulant:
    return _of_line(step, 1 if step.q == 1 else min(PANELS, max(1, mixed.PANELS_MAX // math.ceil(step.m))), t)


def _allocation(step: RandomAllocation, add: bool, t: float) -> Cumulant:
    low, high = log_moment_ends(step.shift, step.steps, -1 - t if add else t)
    try:
        found = _of_line(mixed.AllocationStep(step.shift, step.steps, int(add), 1), 1, t)
    except AccuracyError:
        return Cumulant(low, 0.5 * (low + high), high)
    low, high = max(found.lower, low), min(found.upper, high)
    return Cumulant(low, min(max(found.estimate, low), high), high, found.quadrature)


def _of_line(step, panels: int, t: float) -> Cumulant:
    table, points = mixed.tables([step], panels)
    size = _core.mixed_work(1, points.shape[1], 0, 0)
    status, value, error = mixed.lend(size, _core.mixed_cgf, table, points, np.zeros(5), t)
    if status:
        raise _refusal(t, "K is out of range")
    return Cumulant.within(error, value)


def _atoms(loss: Loss, t: float) -> Cumulant:
    found = saddle_laws.cgf(((loss, 1),), t)
    if found is None:
        raise _refusal(t, "the sum over the losses is out of range")
    value, error = found
    return Cumulant.within(error, value)


def _mixture(parts: list[Cumulant], weights) -> Cumulant:
    """log sum w e^K, from M - 1 where that is moderate."""

    def mixed_with_weights(values) -> float:
        K = np.array(values)
        top = float(K.max())
        if top > LARGE:
            return top + math.log(np.dot(weights, np.exp(K - top)))
        return math.log1p(np.dot(weights, np.expm1(K)))

    *ends, quadratures = zip(*parts, strict=True)
    low, mid, high = map(mixed_with_weights, ends)
    slack = 16 * U * len(parts) * max(abs(low), abs(mid), abs(high))
    return Cumulant(low - slack, mid, high + slack, max(quadratures))


def _shifts(places, probabilities, q: float, a: float, t: float) -> Cumulant:
    found = shifts.cumulant(places, probabilities, q, a, _convex)
    if found is None:
        raise _refusal(t, "its integral would take too many nodes, try a smaller one")
    return _log_of(*found)


# The discrete Gaussian


def _theta(step: DiscreteGaussian, t: float) -> Cumulant:
    """K = D^2 t(1+t)/(2 s^2) + log Z(tD)/Z(0), Z(c) = sum_x e^{-(x+c)^2/2s^2}, of period 1: from the sum, or from its
    dual [theory: law.theta] 1 + 2 sum_j e^{-2 pi^2 s^2 j^2} cos(2 pi j c), whose first term tells the size."""
    s, d = step.sigma, step.sensitivity
    c = float(Fraction(t) * d % 1)
    lead = 0.5 * (d / s) ** 2 * t * (1 + t)
    if s < 0.4:
        x = np.arange(-18, 19)
        both = [math.fsum(np.exp(-0.5 * ((x + shift) / s) ** 2)) for shift in (c if c < 0.5 else c - 1, 0.0)]
        ratio, rough = math.log(both[0] / both[1]), 1.0
    else:
        j = np.arange(1, 8)
        size = 2 * np.exp(-2 * (math.pi * s * j) ** 2)
        ratio = math.log1p(float(size @ (-2 * np.sin(math.pi * j * c) ** 2)) / (1 + float(size.sum())))
        rough = (1 + s * s) * float(size[0])
    return Cumulant.within(U * (8 * lead + 200 * rough), lead + ratio)


def _table(step: DiscreteGaussian, q: float, a: float, t: float) -> Cumulant:
    """Sum over noise x from where the tilted law has fallen by e^-800 on both sides. Beyond, terms fall by e^{-40/s} a
    step; all masses there are below e^-800/(1 - e^{-40/s}), so u and 1 are left out for less than 1e-300 (1 + t)."""
    s, d = step.sigma, step.sensitivity
    last = d + math.ceil(REACH * s)
    first = -math.ceil(REACH * s) - (math.ceil(t * d) if a > 0 else 0)
    if last - first > TABLE_MAX:
        raise _refusal(t, "its table would have more than four million entries")
    x = np.arange(first, last + 1, dtype=float)
    l0, square = d * (d - 2 * x) / (2 * s * s), 0.5 * ((x - d) / s) ** 2
    if not l0[0] < 600:
        raise _refusal(t, "losses are beyond 600, try a smaller one")
    y = np.arange(-math.ceil(REACH * s), math.ceil(REACH * s) + 1) / s
    log_den = -square - math.log(math.fsum(np.exp(-0.5 * y * y)))
    u = q * np.expm1(l0)
    L = _sampled_loss(l0, q)
    each = log_den + a * L
    top = float(each.max())
    error = U * (40 + 4 * square + abs(a) * (8 * np.abs(l0) + 8 * np.abs(L) + 4))
    beyond = math.exp(min(each[0] - max(top, 0), 0.0)) / -math.expm1(-REACH / s) if a > 0 else 0.0
    if top > LARGE:
        terms = np.exp(each - top)
        return _log_of(math.fsum(terms), beyond + math.fsum(terms * error), top)
    far = a * L > 300  # 1 + a u is below e^-200 of the rest there
    terms = np.where(far, np.exp(np.where(far, each, 0.0)), np.exp(log_den) * _convex(u, np.where(far, 0.0, L), a))
    beyond += 1e-290 * (1 + t)
    return _log_of(math.fsum(terms), beyond + math.fsum(terms * error), None)


def _log_of(total: float, error: float, top: float | None) -> Cumulant:
    """log1p(total), or top + log(total), where total is within `error`."""
    if top is None:
        low, mid, high = (math.log1p(total + s * error) for s in (-1, 0, 1))
    else:
        low, mid, high = (top + math.log(total + s * error) for s in (-1, 0, 1))
    slack = 4 * U * (abs(top or 0.0) + abs(mid))
    return Cumulant(low - slack, mid, high + slack, high - low)


# Cells


def _sampled_loss(s, q: float):
    """log(1 - q + q e^s), to 8 u relative and 4 u absolute."""
    if q == 1:
        return s
    return np.where(s > -1, np.log1p(q * np.expm1(np.maximum(s, -1.0))), np.logaddexp(math.log1p(-q), math.log(q) + s))


def _past_exp(x):
    """e^x - 1 - x, to 20 u relative."""
    near = np.clip(x, -0.1, 0.1)
    series = np.zeros_like(near)
    for n in range(14, 1, -1):
        series = (series * near / (n + 1)) + 1.0
    return np.where(np.abs(x) <= 0.1, 0.5 * near * near * series, np.expm1(x) - x)


def _past_log(u, L):
    """u - log(1+u), L = log(1+u), to 40 u relative."""
    near = np.clip(u, -0.1, 0.1)
    series = np.zeros_like(near)
    for n in range(20, 1, -1):
        series = 1.0 / n - near * series
    return np.where(np.abs(u) <= 0.1, near * near * series, u - L)


def _convex(u, L, a: float):
    """(1+u)^a - 1 - a u, a > 1 or a < 0."""
    t = a - 1 if a > 0 else -a
    rest = _past_log(u, L)
    if a > 0:
        return (1 + u) * _past_exp(t * L) + t * (u * L - rest)
    return _past_exp(-t * L) + t * rest


def _cells(base: Loss, q: float, a: float, t: float) -> Cumulant:
    """K from cells of the base loss, whose functions must resolve its largest value."""
    s = _ends(base, q, a)
    if not s[-1] < 600:
        raise _refusal(t, "losses are beyond 600, try a smaller one")
    x, y, dx, dy, edge = _masses(base, s)
    ends = np.r_[-math.inf, s]  # cell i: (ends[i], ends[i+1]]
    if not (x[0] or y[0] or dx[0] or dy[0]):
        ends, x, y, dx, dy = ends[1:], x[1:], y[1:], dx[1:], dy[1:]
    below, above = ends[:-1] - edge, ends[1:] + edge
    lo, hi = np.exp(below), np.exp(above)
    wide = hi * -np.expm1(below - above)
    dx, dy = dx + U * x, dy + U * (4 + np.abs(above)) * y
    r = np.clip(np.divide(y, x, out=hi.copy(), where=x > 0), np.maximum(lo, 1e-3 * hi), hi)
    all_u = q * np.expm1(below), q * np.expm1(above), q * (r - 1)
    with np.errstate(divide="ignore"):
        all_L = [_sampled_loss(v, q) for v in (below, above, np.log(r))]
    with np.errstate(all="ignore"):
        top = float(np.max(a * all_L[2] + np.log(x + y / np.maximum(r, 1e-300))))
        scaled = top > LARGE
        at_lo, at_hi, at_r = (
            np.exp(a * L - top) if scaled else _convex(u, L, a) for u, L in zip(all_u, all_L, strict=True)
        )
        slope = a * q * (np.exp((a - 1) * all_L[2] - top) if scaled else np.expm1((a - 1) * all_L[2]))
        if lo[0] == 0 and q == 1:  # the end u = -1 of the first cell
            at_lo[0] = 0.0 if scaled else t
        chord = (at_hi - at_lo) / wide
        low = x * at_r + slope * (y - r * x) - np.abs(at_r - slope * r) * dx - np.abs(slope) * dy  # [theory: law.cells]
        high = x * at_lo + chord * (y - lo * x) + np.abs(at_lo - chord * lo) * dx + np.abs(chord) * dy
    low, high = float(np.maximum(low, 0).sum()), float(np.maximum(high, 0).sum())
    with np.errstate(over="ignore"):
        high += _beyond_upper(base, q, a, t, s[-1], top if scaled else None)
    slack = 1e-12 + 16 * U * abs(a) * (1 + max(float(np.abs(L).max()) for L in all_L[1:]))
    low, high = low * (1 - slack), high * (1 + slack)
    if not (math.isfinite(low) and math.isfinite(high) and high > 0):
        raise _refusal(t, "the sum over its cells is out of range, try a smaller one")
    if scaled:
        ends = (top + math.log(max(z, 5e-324)) for z in (low, low + (high - low) / 3, high))
    else:
        gone = a * q * base.mass_inf
        error = abs(gone) * _known(base)
        ends = (math.log1p(max(z - gone, U - 1)) for z in (low - error, low + (high - low) / 3, high + error))
    low, mid, high = ends
    slack = 8 * U * (abs(low) + abs(high) + (top if scaled else 0))
    return Cumulant(low - slack, mid, high + slack, high - low)


def _known(base: Loss) -> float:
    """The relative error of a product with a mass of infinite losses."""
    return base.mass_error + 4 * U


def _masses(base: Loss, s: np.ndarray):
    """Masses of den and num in the cells that end at s, their errors, and the edge. The first has den's -inf, too."""
    t = base.tails(s)

    def cells(below, above, extra):
        left = np.r_[below[0] + extra, np.diff(below)]
        right = np.r_[left[0], -np.diff(above)]
        use_right = np.r_[False, above[:-1] < below[1:]]
        mass = np.maximum(np.where(use_right, right, left), 0.0)
        size = np.where(use_right, np.r_[0.0, above[:-1] + above[1:]], np.r_[left[0], below[1:] + below[:-1]])
        rel = np.r_[t.rel[0], np.maximum(t.rel[1:], t.rel[:-1])] + 4 * U
        return mass, rel * size + 2 * t.absolute + _known(base) * extra * (np.arange(s.size) == 0)

    x, dx = cells(t.x_below, t.x_above, base.mass_minus_inf)
    y, dy = cells(t.y_below, t.y_above, 0.0)
    return x, y, dx, dy, t.edge


def _ends(base: Loss, q: float, a: float) -> np.ndarray:
    """Ends of the cells: fine within nine deviations of den's law and of the tilted one, coarse to the ends of the
    range, and close to every atom."""
    values, log_den = base.nodes(1e-60)
    L = _sampled_loss(np.minimum(values, 600.0), q)
    inner = []
    for b in (0.0, 1.0, a):
        w = log_den + (values if b == 1 else b * L)
        w = np.exp(w - w.max())
        mean = float(w @ values) / float(w.sum())
        inner.append((mean, 9 * math.sqrt(float(w @ (values - mean) ** 2) / float(w.sum())) + 1e-300))
    lo, hi = base.lo, base.hi
    wide = min(m - d for m, d in inner), max(m + d for m, d in inner)
    if not lo > -math.inf:
        lo = min(wide[0], float(values.min()))
    if not hi < math.inf:
        hi = max(wide[1], float(values.max()))
    left, right = max(lo, wide[0]), min(hi, wide[1])
    room = 1e-15 * (abs(lo) + abs(hi)) + 1e-13 * (hi - lo)  # any edges will do
    s = [np.linspace(lo - room, left, 513), np.linspace(left, right, CELLS), np.linspace(right, hi + room, 513)]
    atoms = base.atoms()
    if atoms is not None and atoms.loss.size <= 2048:
        near = 1e-10 * (hi - lo) + 2e-15 * np.abs(atoms.loss)
        s += [atoms.loss - near, atoms.loss + near]
    return np.unique(np.concatenate(s))


def _beyond_upper(base: Loss, q: float, a: float, t: float, end: float, top: float | None) -> float:
    """A bound of E_den[f; loss > end], or of the scaled (1+u)^a."""
    if base.hi <= end:
        return 0.0
    if a > 0:
        raise _refusal(t, "nothing is known of its losses beyond the last one that its functions resolve")
    tails = base.tails(np.array([end]))
    y, x = float(tails.y_above[0]) * (1 + 1e-9) + tails.absolute, float(tails.x_above[0]) * (1 + 1e-9) + tails.absolute
    return t * q * y if top is None else x * math.exp(-top)  # (1+u)^a <= 1
