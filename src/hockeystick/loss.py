"""One step's loss in one direction: Y = log(num/den) under num, X the same under den.

A `Loss` says all that a route may ask about one step, whatever the mechanism: tails of both laws, essential range, masses at
infinity, atoms, a lattice where there is one, and nodes to estimate moments with. Base losses are in law.py; `reversed_loss`,
`poisson` and `mixture` build the others from them.

On finite values the laws determine each other: dPr[Y = s] = e^s dPr[X = s] [GLW21, Prop. C.9]. `poisson` is [maths B8],
with g(s) = log1p(expm1(s)/q) the base loss whose subsampled loss is s:
  Pr[X <= s] = Pr[X0 <= g(s)],   Pr[Y <= s] = q Pr[Y0 <= g(s)] + (1-q) Pr[X0 <= g(s)].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from . import _core

U = 2.0**-53
COARSE_NODES = 512
"""Nodes are for planning: a law is cut into this many cells, and more atoms than this are merged."""


class Tails(NamedTuple):
    """Tail probabilities of the finite parts of Y and X at an increasing array s, with what rounding may have done to them.

    y_below = Pr[-inf < Y <= s], y_above = Pr[s < Y < inf], x_below, x_above: the same of X.

    Between two entries s_i < s_{i+1} of the array lies one and the same set of outcomes for all four; its losses are in
    [s_i - edge, s_{i+1} + edge]. Each entry is the exact probability of its set within a relative error `rel` and an
    absolute error `absolute`. So rounding may move an edge, or put it on the other side of an atom, but never differently
    for Y and X.
    """

    y_below: np.ndarray
    y_above: np.ndarray
    x_below: np.ndarray
    x_above: np.ndarray
    rel: np.ndarray
    edge: float
    absolute: float = 0.0


class Atoms(NamedTuple):
    """Points of positive probability, increasing (each within `edge` of its tails), and masses within `rel` relative."""

    loss: np.ndarray
    num: np.ndarray
    den: np.ndarray
    rel: float = 64 * U


class Lattice(NamedTuple):
    """All finite losses lie at offset + step j, j = first, first+1, ...: exact up to 8 u relative in step and offset.

    num, den: masses of Y and X there (some may be 0), within 64 u relative. lost: bound on the num and den mass left out.
    """

    step: float
    offset: float
    first: int
    num: np.ndarray
    den: np.ndarray
    lost: float


def no_atoms() -> None:
    """The `atoms` of a loss without any: known without a call."""


GAUSSIAN, LAPLACE = 0.0, 1.0


class Additive(NamedTuple):
    """Additive noise, Poisson-sampled at rate q (1: not): its kind, sensitivity over scale, q, and 1 where num and den are
    swapped."""

    kind: float
    m: float
    q: float
    back: float


class Loss(NamedTuple):
    """One step's loss; see the head of the file.

    tails : s -> Tails, for an increasing float64 array s of finite values.
    nodes : p -> (losses, log den masses), a quadrature rule for E_X that is good until tails of mass p. Estimates.
    lo, hi : essential range of the finite losses, possibly infinite; ends within 8 u relative.
    mass_inf : Pr[Y = +inf], within 64 u relative.   mass_minus_inf : Pr[X = -inf], likewise.
    exact_inf : Pr[Y = +inf] as a fraction, where that is known.
    atoms : () -> Atoms or None.   lattice : () -> Lattice or None.
    smooth : whether there is a part with a density.
    additive : the row of csrc/pld_steps.c that says all of this, for additive noise; else None.
    """

    tails: Callable[[np.ndarray], Tails]
    nodes: Callable[[float], tuple[np.ndarray, np.ndarray]]
    lo: float = -math.inf
    hi: float = math.inf
    mass_inf: float = 0.0
    mass_minus_inf: float = 0.0
    atoms: Callable[[], Atoms | None] = no_atoms
    lattice: Callable[[], Lattice | None] = lambda: None
    smooth: bool = True
    additive: Additive | None = None
    exact_inf: Fraction | None = None

    def cgf(self, t, p: float = 1e-30) -> np.ndarray:
        """K(t) = log E[e^{tY}; Y finite] at every t, from the nodes. An estimate, for planning only."""
        values, log_den = self.nodes(p)
        terms = np.multiply.outer(1.0 + np.atleast_1d(np.asarray(t, dtype=float)), values) + log_den
        top = terms.max(axis=-1)
        return top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))


@functools.cache
def gauss_legendre() -> tuple[np.ndarray, np.ndarray]:
    """The rule for what lies between the atoms of a Laplace loss."""
    return np.polynomial.legendre.leggauss(60)


def additive_loss(row: Additive) -> Loss:
    """Gaussian noise [GLW21, Prop. B.1] or Laplace noise, whose atoms are 1/2 at m and e^-m/2 at -m, with density
    e^{(s-m)/2}/4 between [GLW21, Prop. B.2]; errors in csrc/tails.c and csrc/pld_steps.c.
    """
    kind, m, q, back = row

    def tails(s):
        rows, edge = _core.step_tails(np.array(row), np.ascontiguousarray(s))
        return Tails(*rows, edge)

    def nodes(p):
        return _core.step_nodes(np.array(row), p, *gauss_legendre())

    def atoms():
        small = 0.5 * math.exp(-m)
        loss, num, den = np.array([-m, m]), np.array([small, 0.5]), np.array([0.5, small])
        if q < 1:
            loss, num = subsample(loss, q), q * num + (1 - q) * den
        return Atoms(-loss[::-1], den[::-1], num[::-1]) if back else Atoms(loss, num, den)

    top = m if kind == LAPLACE else math.inf
    ends = _sampled(-top, q), _sampled(top, q)
    lo, hi = (-ends[1], -ends[0]) if back else ends
    return Loss(tails, nodes, lo, hi, atoms=atoms if kind == LAPLACE else no_atoms, additive=row)


def _sampled(loss: float, q: float) -> float:
    """`subsample` of one number."""
    if q == 1:
        return loss
    return math.log1p(q * math.expm1(loss)) if loss < 700.0 else loss + math.log(q)


# Combinators


def reversed_loss(base: Loss) -> Loss:
    """num and den swapped: Y' = -X, X' = -Y [GLW21, Prop. C.9]. Atoms on an edge fall on its other side, as `Tails` allows."""
    if base.additive:
        return additive_loss(base.additive._replace(back=1.0 - base.additive.back))

    def tails(s):
        t = base.tails(np.ascontiguousarray(-s[::-1]))
        y_below, y_above, x_below, x_above = (a[::-1] for a in (t.x_above, t.x_below, t.y_above, t.y_below))
        return Tails(y_below, y_above, x_below, x_above, t.rel[::-1], t.edge, t.absolute)

    def nodes(p):
        values, log_den = base.nodes(p)
        return -values, log_den + values

    def atoms():
        found = base.atoms()
        return found and Atoms(-found.loss[::-1], found.den[::-1], found.num[::-1], found.rel)

    def lattice():
        found = base.lattice()
        if found is None:
            return None
        last = found.first + found.num.size - 1
        return Lattice(found.step, -found.offset, -last, found.den[::-1], found.num[::-1], found.lost)

    if base.atoms is no_atoms:
        atoms = no_atoms
    return Loss(tails, nodes, -base.hi, -base.lo, base.mass_minus_inf, base.mass_inf, atoms, lattice, smooth=base.smooth)


def subsample(loss, q: float):
    """log1p(q expm1(loss)), for arrays and for losses beyond the range of expm1; +-inf map to +inf and log1p(-q)."""
    loss = np.asarray(loss, dtype=float)
    with np.errstate(over="ignore"):
        near = np.log1p(q * np.expm1(np.minimum(loss, 700.0)))
    return np.where(loss < 700.0, near, loss + math.log(q))


def poisson(base: Loss, q: float) -> Loss:
    """num -> q num + (1-q) den against den: Poisson sampling, record present in num [ZDW22, Thm 11; maths B8]. Errors in
    csrc/tails.c; losses within rounding of the wall log(1-q), where the base loss runs to -inf, are taken to lie above it.
    """
    if q == 1:
        return base
    lo, hi = float(subsample(base.lo, q)), float(subsample(base.hi, q))
    wall = math.log1p(-q)

    def tails(s):
        g, first, edge, slope = _core.poisson_place(q, np.ascontiguousarray(s))
        t = base.tails(g)
        rows = np.array(t[:5])
        _core.poisson_tails(q, 1.0 - base.mass_inf, 1.0 - base.mass_minus_inf, first, rows)
        return Tails(*rows, edge + slope * t.edge, t.absolute)

    def nodes(p):
        values, log_den = base.nodes(p)
        return subsample(values, q), log_den

    def atoms():
        found = base.atoms()
        if found is None and not base.mass_minus_inf:
            return None
        loss, num, den, rel = found if found else Atoms(*(np.zeros(0),) * 3)
        loss, num = subsample(loss, q), q * num + (1 - q) * den
        if base.mass_minus_inf:  # den-only outcomes: loss log(1-q)
            extra = base.mass_minus_inf
            loss, num, den = np.r_[wall, loss], np.r_[(1 - q) * extra, num], np.r_[extra, den]
        return Atoms(loss, num, den, max(rel + 4 * U, 64 * U))

    exact = None if base.exact_inf is None else Fraction(q) * base.exact_inf
    if base.mass_minus_inf:
        return _with_wall(base, q, wall, hi, tails, nodes, atoms)._replace(exact_inf=exact)
    if base.atoms is no_atoms:
        return Loss(tails, nodes, lo, hi, q * base.mass_inf, exact_inf=exact)
    return Loss(tails, nodes, lo, hi, q * base.mass_inf, 0.0, atoms, _lattice_of(atoms, base), base.smooth, exact_inf=exact)


def _with_wall(base: Loss, q: float, wall: float, hi: float, tails, nodes, atoms) -> Loss:
    """The same where den has outcomes that num lacks: they make an atom at log(1-q)."""
    extra = base.mass_minus_inf
    y_extra = (1 - q) * extra

    def all_tails(s):
        t, at = tails(s), s >= wall
        return t._replace(
            y_below=t.y_below + np.where(at, y_extra, 0.0),
            y_above=t.y_above + np.where(at, 0.0, y_extra),
            x_below=t.x_below + np.where(at, extra, 0.0),
            x_above=t.x_above + np.where(at, 0.0, extra),
            rel=t.rel + 4 * U,
            edge=t.edge + 4 * U * abs(wall) + 32 * U * math.expm1(-wall),
        )

    def all_nodes(p):
        values, log_den = nodes(p)
        return np.r_[wall, values], np.r_[math.log(extra), log_den]

    return Loss(all_tails, all_nodes, wall, hi, q * base.mass_inf, 0.0, atoms, _lattice_of(atoms, base), base.smooth)


def _lattice_of(atoms, base: Loss):
    return lambda: None if base.smooth else two_points(*atoms()[:3])


def mixture(parts: tuple[Loss, ...], weights: tuple[float, ...]) -> Loss:
    """Part i with probability weights[i] (summing to 1), the choice public: every law is the weighted sum."""

    def tails(s):
        found = [part.tails(s) for part in parts]
        sums = [sum(w * t[i] for w, t in zip(weights, found, strict=True)) for i in range(4)]
        rel = np.max([t.rel for t in found], axis=0) + (len(parts) + 4) * U
        return Tails(*sums, rel, max(t.edge for t in found), max(t.absolute for t in found))

    def nodes(p):
        found = [part.nodes(p) for part in parts]
        return (
            np.concatenate([v for v, _ in found]),
            np.concatenate([d + math.log(w) for w, (_, d) in zip(weights, found, strict=True)]),
        )

    def atoms():
        found = [(w, part.atoms()) for w, part in zip(weights, parts, strict=True)]
        found = [(w, a) for w, a in found if a is not None]
        if not found:
            return None
        loss = np.concatenate([a.loss for _, a in found])
        order = np.argsort(loss, kind="stable")
        num, den = (np.concatenate([w * a[i] for w, a in found])[order] for i in (1, 2))
        return Atoms(loss[order], num, den, max(a.rel for _, a in found) + 4 * U)

    ends = [part.lo for part in parts], [part.hi for part in parts]
    mass = [
        math.fsum(w * getattr(p, name) for w, p in zip(weights, parts, strict=True)) for name in ("mass_inf", "mass_minus_inf")
    ]
    return Loss(tails, nodes, min(ends[0]), max(ends[1]), *mass, atoms, smooth=any(p.smooth for p in parts))


def two_points(loss, num, den):
    """Two atoms (or one) always form a lattice."""
    if not 1 <= loss.size <= 2:
        return None
    return Lattice(float(loss[-1] - loss[0]) or 1.0, float(loss[0]), 0, num, den, 0.0)


# Nodes and windows from tails


def window(loss: Loss, p_low: float, p_high: float) -> tuple[float, float]:
    """(lo, hi) with Pr[Y <= lo] <= p_low and Pr[Y > hi] <= p_high, nearly the narrowest: bisection on the computed tails."""
    lo, hi = loss.lo, loss.hi
    if not lo > -math.inf:
        lo = _edge(lambda s: loss.tails(s).y_below <= p_low, -1.0)
    if not hi < math.inf:
        hi = _edge(lambda s: loss.tails(s).y_above <= p_high, 1.0)
    for _ in range(4):
        s = np.linspace(lo, hi, 33)
        t = loss.tails(s)
        a, b = np.flatnonzero(t.y_below <= p_low), np.flatnonzero(t.y_above <= p_high)
        new_lo, new_hi = s[a[-1]] if a.size else lo, s[b[0]] if b.size else hi
        if not lo <= new_lo < new_hi <= hi or (new_lo == lo and new_hi == hi):
            break
        lo, hi = float(new_lo), float(new_hi)
    return lo, hi


def _edge(holds, sign: float) -> float:
    """sign 2^j / 2^20 with the smallest j for which `holds`; 2^20 at most."""
    s = sign * 2.0 ** np.arange(-20, 21)
    found = np.flatnonzero(holds(s if sign > 0 else s[::-1]))
    if sign > 0:
        return float(s[found[0]]) if found.size else float(s[-1])
    return float(s[::-1][found[-1]]) if found.size else float(s[-1])


def nodes_of_tails(tails, lo: float, hi: float, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes from differences of the tails over COARSE_NODES cells: each cell's mass at log(num mass / den mass)."""
    lo, hi = window(Loss(tails, None, lo, hi), p, p)
    t = tails(np.linspace(lo - 1e-9 * (1 + abs(lo)), hi, COARSE_NODES + 1))
    upper = t.y_above[:-1] < t.y_below[1:]
    y = np.where(upper, -np.diff(t.y_above), np.diff(t.y_below))
    x = np.where(upper, -np.diff(t.x_above), np.diff(t.x_below))
    ok = (y > 0) & (x > 0)
    return np.log(y[ok] / x[ok]), np.log(x[ok])
