"""One step's loss in one direction: Y = log(num/den) under num, X the same under den.

A `Loss` says all that a route may ask about one step, whatever the mechanism: tails of both laws, essential range,
masses at infinity, atoms, a lattice where there is one, and nodes to estimate moments with. Base losses are in law.py;
`reversed_loss`, `poisson` and `mixture` build the others from them.

Errors. Nothing is known of a loss but what its builder states and proves (law.py, pair.py, sampling.py, below):
`Tails`, `Atoms`, `Lattice` and `Loss` carry the error of every number in them; the combinators here prove how errors
pass through; what asks (walls, ends, lattices, contours) takes its slack from there. exp, log, expm1, log1p are taken
to be within 2u.

On finite values the laws determine each other: dPr[Y = s] = e^s dPr[X = s] [theory: pair.exponent].
`poisson` [theory: pair.sampled-laws], with g(s) = log1p(expm1(s)/q) the base loss whose subsampled loss is s:
  Pr[X <= s] = Pr[X0 <= g(s)],   Pr[Y <= s] = q Pr[Y0 <= g(s)] + (1-q) Pr[X0 <= g(s)].
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .. import _core
from .._core import LAPLACE
from ..outward import DOWN, Ends, U

COARSE_NODES = 512
"""Nodes are for planning: a law is cut into this many cells, and more atoms than this are merged."""


class Tails(NamedTuple):
    """Tail probabilities of the finite parts of Y and X at an increasing array s, with what rounding may have done to
    them [theory: law.tails].

    y_below = Pr[-inf < Y <= s], y_above = Pr[s < Y < inf], x_below, x_above: the same of X.

    Between two entries s_i < s_{i+1} of the array lies one and the same set of outcomes for all four; its losses are in
    [s_i - edge, s_{i+1} + edge]. Each entry is the exact probability of its set within a relative error `rel` and an
    absolute error `absolute`. So rounding may move an edge, or put it on the other side of an atom, but never
    differently for Y and X."""

    y_below: np.ndarray
    y_above: np.ndarray
    x_below: np.ndarray
    x_above: np.ndarray
    rel: np.ndarray
    edge: float
    absolute: float = 0.0


class Atoms(NamedTuple):
    """Points of positive probability, increasing, each within `edge` absolute; masses within `rel` relative and
    `absolute` besides, which bounds outcomes left out as well. rel and edge are one number, or one an atom."""

    loss: np.ndarray
    num: np.ndarray
    den: np.ndarray
    rel: float | np.ndarray
    edge: float | np.ndarray
    absolute: float = 0.0


class Lattice(NamedTuple):
    """All finite losses lie at offset + step j, j = first, first+1, ..., each within `edge` absolute.

    num, den: masses of Y and X there (some may be 0), within `rel` relative. lost: bound on the num and den mass left
    out."""

    step: float
    offset: float
    first: int
    num: np.ndarray
    den: np.ndarray
    lost: float
    rel: float | np.ndarray
    edge: float


def no_atoms() -> None:
    """The `atoms` of a loss without any: known without a call."""


class Additive(NamedTuple):
    """Additive noise, Poisson-sampled at rate q (1: not): its kind, sensitivity over scale, q, and 1 where num and den
    are swapped."""

    kind: int
    m: float
    q: float
    back: float


class Loss(NamedTuple):
    """One step's loss; see the head of the file.

    tails : s -> Tails, for an increasing float64 array s of finite values.
    nodes : p -> (losses, log den masses), a quadrature rule for E_X that is good until tails of mass p. Estimates.
    lo, hi : essential range of the finite losses, possibly infinite; finite ends are within ends_error absolute.
    mass_inf : Pr[Y = +inf].   mass_minus_inf : Pr[X = -inf].   Both within mass_error relative; 0 is exact.
    exact_inf : Pr[Y = +inf] as a fraction, where that is known.
    cut : where losses are cut (see `capped`); tails still count what lies above.
    atoms : () -> Atoms or None.   lattice : () -> Lattice or None.
    smooth : whether there is a part with a density.
    curve : eps -> (delta(eps), its relative error) of this step alone, where that has a closed form.
    exponent : t -> K(t), an estimate, where that takes no nodes; NaN where it is out of reach.
    distance_upper : bound of the total variation distance, where that is cheaper than tails.
    additive : the row of csrc/grid/pld_steps.c that says all of this, for additive noise; else None.
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
    ends_error: float = 0.0
    mass_error: float = 0.0
    exact_inf: Fraction | None = None
    cut: float = math.inf
    curve: Callable[[float], tuple[float, float]] | None = None
    distance_upper: float | None = None
    exponent: Callable[[float], float] | None = None

    def cgf(self, t, p: float = 1e-30) -> np.ndarray:
        """K(t) = log E[e^{tY}; Y finite] at every t, from the nodes; -inf of no mass. An estimate, for planning
        only."""
        if self.exponent is not None:
            return np.array([self.exponent(x) for x in np.atleast_1d(t).tolist()])
        values, log_den = self.nodes(p)
        if not values.size:
            return np.full(np.size(t), -math.inf)
        # [theory: pair.exponent]
        terms = np.multiply.outer(1.0 + np.atleast_1d(np.asarray(t, dtype=float)), values) + log_den
        top = terms.max(axis=-1)
        return top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))


@functools.cache
def gauss_legendre() -> tuple[np.ndarray, np.ndarray]:
    """The rule for what lies between the atoms of a Laplace loss."""
    return np.polynomial.legendre.leggauss(60)


TINY = 16 * 2.0**-1074
"""Absolute error of a tail whose value is subnormal: a few units of the last place there."""


def additive_loss(row: Additive) -> Loss:
    """Gaussian noise [GLW21, Prop. B.1] or Laplace noise, whose atoms are 1/2 at m and e^-m/2 at -m, with density
    e^{(s-m)/2}/4 between [GLW21, Prop. B.2]; errors of tails in csrc/grid/tails.c and csrc/grid/pld_steps.c.

    m is a quotient of the user's numbers, within u. So atoms and ends before sampling are within um, masses within u(m
    + 4); `Sampled` says what sampling adds."""
    kind, m, q, back = row

    def tails(s):
        rows, edge = _core.step_tails(np.array(row), np.ascontiguousarray(s))
        return Tails(*rows, edge, TINY)

    def nodes(p):
        return _core.step_nodes(np.array(row), p, *gauss_legendre())

    def atoms():
        small = 0.5 * math.exp(-m)
        found = Atoms(np.array([-m, m]), np.array([small, 0.5]), np.array([0.5, small]), U * (m + 4), U * m)
        if q < 1:
            found = _sampled_atoms(found, q)
        return _turned_atoms(found) if back else found

    top = m if kind == LAPLACE else math.inf
    ends = sampled(-top, q), sampled(top, q)
    lo, hi = (-ends[1], -ends[0]) if back else ends
    error = (U * m if kind == LAPLACE else 0.0) + (
        8 * U * max(abs(x) for x in ends if abs(x) < math.inf) if q < 1 else 0.0
    )
    return Loss(tails, nodes, lo, hi, atoms=atoms if kind == LAPLACE else no_atoms, additive=row, ends_error=error)


# Combinators


def reversed_loss(base: Loss) -> Loss:
    """num and den swapped: Y' = -X, X' = -Y [theory: pair.reversal]. Atoms on an edge fall on its other side, as
    `Tails` allows. A sign rounds nothing: every error stays."""
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
        return found and _turned_atoms(found)

    def lattice():
        found = base.lattice()
        if found is None:
            return None
        step, offset, first, num, den, lost, rel, edge = found
        return Lattice(step, -offset, -(first + num.size - 1), den[::-1], num[::-1], lost, _turned(rel), edge)

    if base.atoms is no_atoms:
        atoms = no_atoms
    return base._replace(
        tails=tails,
        nodes=nodes,
        lo=-base.hi,
        hi=-base.lo,
        mass_inf=base.mass_minus_inf,
        mass_minus_inf=base.mass_inf,
        exact_inf=None,
        exponent=base.exponent and functools.partial(_turned_exponent, base.exponent),
        atoms=atoms,
        lattice=lattice,
        curve=None,
    )


def _turned_exponent(exponent: Callable[[float], float], t: float) -> float:
    return exponent(-1 - t)


def _turned_atoms(found: Atoms) -> Atoms:
    loss, num, den, rel, edge, absolute = found
    return Atoms(-loss[::-1], den[::-1], num[::-1], _turned(rel), _turned(edge), absolute)


def _turned(error):
    """An error of each of several atoms, in reverse order."""
    return error[::-1] if np.ndim(error) else error


def sampled(loss: float, q: float) -> float:
    """log(1 - q + q e^loss) within 8u relative [theory: rounding.sampled-loss]; +-inf map to +inf and log(1-q).

    With v = q expm1(loss), within 3u: log1p(v) has the relative condition |v/((1+v) log1p(v))| <= 1.45 for v >= -1/2.
    Below, it is -log1p(-v/(1 - q + q e^loss)) of positive numbers, 1-q being exact as q > 1/2: 2u + (3 + 4 + 1)u/1.4,
    the condition of log1p at 1 and beyond being at most 1/(2 log 2). Beyond 700 what is left out is below e^-600."""
    if q == 1:
        return loss
    if loss > 700.0:
        return loss + math.log(q)
    v = q * math.expm1(loss)
    return math.log1p(v) if v > -0.5 else -math.log1p(-v / (1 - q + q * math.exp(loss)))


def subsample(loss, q: float):
    """`sampled` of an array."""
    loss = np.asarray(loss, dtype=float)
    low = np.minimum(loss, 700.0)
    v = q * np.expm1(low)
    near = np.log1p(np.maximum(v, -0.5))
    if q > 0.5:
        near = np.where(v > -0.5, near, -np.log1p(np.maximum(-v, 0.0) / (1 - q + q * np.exp(low))))
    return np.where(loss <= 700.0, near, loss + math.log(q))


def _sampled_atoms(base: Atoms, q: float) -> Atoms:
    """Atoms of the sampled law [theory: law.edges]. A position s moves by ds/dg = q e^{g-s} <= 1 times that of g, which
    rises in g, and is rounded by 8u; a mass of num is a sum of positive products, 4u."""
    loss, num, den, rel, edge, absolute = base
    at = subsample(loss, q)
    slope = np.minimum(1.0, q * np.exp(np.minimum(loss - at, 700.0)) * (1 + 2 * edge + 1e-9))
    return Atoms(at, q * num + (1 - q) * den, den, rel + 4 * U, edge * slope + 8 * U * np.abs(at), absolute)


def poisson(base: Loss, q: float) -> Loss:
    """num -> q num + (1-q) den against den: Poisson sampling, record present in num [ZDW22, Thm 11]
    [theory: pair.poisson]. Errors of tails in tails.c; losses within rounding of the wall log(1-q), where the base loss
    runs to -inf, are taken to lie above it.

    Ends and atoms: `sampled`, `_sampled_atoms`; the slope at the upper end bounds that at the lower. Masses at
    infinity: one product each, u."""
    if q == 1:
        return base
    lo, hi = sampled(base.lo, q), sampled(base.hi, q)
    wall = sampled(-math.inf, q)
    all_error = base.mass_error * max(x / max(1 - x, U) for x in (base.mass_inf, base.mass_minus_inf))

    def tails(s):
        g, first, edge, slope = _core.poisson_place(q, np.ascontiguousarray(s))
        t = base.tails(g)
        rows = np.array(t[:5])
        # [theory: pair.sampled-laws]
        _core.poisson_tails(q, 1.0 - base.mass_inf, 1.0 - base.mass_minus_inf, first, rows)
        return Tails(*rows[:4], rows[4] + all_error, edge + slope * t.edge, t.absolute)

    def nodes(p):
        values, log_den = base.nodes(p)
        return subsample(values, q), log_den

    known, moved = base.mass_error + 4 * U, 8 * U * abs(wall)  # of the mass and the place of what den has alone

    def atoms():
        found = base.atoms()
        if found is None and not base.mass_minus_inf:
            return None
        found = _sampled_atoms(found, q) if found else Atoms(*(np.zeros(0),) * 3, 0.0, 0.0)
        if base.mass_minus_inf:  # den-only outcomes: loss log(1-q)
            loss, num, den, rel, edge, absolute = found
            extra = base.mass_minus_inf
            loss, num, den = np.r_[wall, loss], np.r_[(1 - q) * extra, num], np.r_[extra, den]
            rel, edge = (np.r_[first, np.broadcast_to(e, loss.size - 1)] for first, e in ((known, rel), (moved, edge)))
            found = Atoms(loss, num, den, rel, edge, absolute)
        return found

    slope = (
        min(1.0, q * math.exp(min(base.hi - hi, 700.0)) * (1 + 2 * base.ends_error + 1e-9))
        if base.hi < math.inf
        else 1.0
    )
    limits = (lo, hi, wall) if base.mass_minus_inf else (lo, hi)
    error = slope * base.ends_error + 8 * U * max((abs(x) for x in limits if abs(x) < math.inf), default=0.0)
    exact = None if base.exact_inf is None else Fraction(q) * base.exact_inf
    mass_inf, mass_error = q * base.mass_inf, base.mass_error + U
    if base.mass_inf and mass_inf < 1e-290:  # a product next to 0, or rounded to 0, keeps an absolute error only
        mass_inf = max(mass_inf, 5e-324)
        mass_error += 5e-324 / mass_inf
    made = Loss(tails, nodes, lo, hi, mass_inf, ends_error=error, mass_error=mass_error, exact_inf=exact)
    if base.mass_minus_inf:
        made = made._replace(atoms=atoms, lattice=_lattice_of(atoms, base), smooth=base.smooth)
        return _with_wall(base, q, (wall, known, moved), made)
    if base.atoms is no_atoms:
        return made
    return made._replace(atoms=atoms, lattice=_lattice_of(atoms, base), smooth=base.smooth)


def _with_wall(base: Loss, q: float, at_wall: tuple[float, float, float], made: Loss) -> Loss:
    """The same where den has outcomes that num lacks: they make an atom at log(1-q). at_wall: it, the relative error of
    its mass, and the error of its place."""
    wall, known, moved = at_wall
    extra = base.mass_minus_inf
    y_extra = (1 - q) * extra

    def tails(s):
        t, at = made.tails(s), s >= wall
        return t._replace(
            y_below=t.y_below + np.where(at, y_extra, 0.0),
            y_above=t.y_above + np.where(at, 0.0, y_extra),
            x_below=t.x_below + np.where(at, extra, 0.0),
            x_above=t.x_above + np.where(at, 0.0, extra),
            rel=t.rel + known,
            edge=t.edge + moved,
        )

    def nodes(p):
        values, log_den = made.nodes(p)
        return np.r_[wall, values], np.r_[math.log(extra), log_den]

    return made._replace(tails=tails, nodes=nodes, lo=wall)


def _lattice_of(atoms, base: Loss):
    return lambda: None if base.smooth else two_points(atoms())


def mixture(parts: tuple[Loss, ...], weights: tuple[float, ...]) -> Loss:
    """Part i with probability weights[i] (summing to 1), the choice public: every law is the weighted sum
    [theory: pair.mixture].

    The weights sum to 1 to within 4e-16 = 3.7u each (given.py) and stand for weights scaled to sum to 1: each is within
    (4n + 2)u of that. A weighted sum of n terms adds (n + 1)u. Positions and ends are those of the parts.
    """
    weighing = (5 * len(parts) + 4) * U

    def tails(s):
        found = [part.tails(s) for part in parts]
        sums = [sum(w * t[i] for w, t in zip(weights, found, strict=True)) for i in range(4)]
        rel = np.max([t.rel for t in found], axis=0) + weighing
        return Tails(*sums, rel, max(t.edge for t in found), max(t.absolute for t in found) + TINY)

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
        rel, edge = (np.concatenate([np.broadcast_to(a[i], a.loss.size) for _, a in found])[order] for i in (3, 4))
        return Atoms(loss[order], num, den, rel + weighing, edge, max(a.absolute for _, a in found))

    inf, minus_inf = (
        math.fsum(w * getattr(p, name) for w, p in zip(weights, parts, strict=True))
        for name in ("mass_inf", "mass_minus_inf")
    )
    return Loss(
        tails,
        nodes,
        min(part.lo for part in parts),
        max(part.hi for part in parts),
        inf,
        minus_inf,
        atoms,
        smooth=any(p.smooth for p in parts),
        ends_error=max(part.ends_error for part in parts),
        mass_error=max(part.mass_error for part in parts) + weighing,
    )


def capped(base: Loss, cap: float) -> Loss:
    """The same loss, cut at `cap`: window, nodes and atoms end there. Its tails still count what lies above, its masses
    at infinity do not: dots.py says what becomes of it."""
    if base.hi <= cap:
        return base

    def nodes(p):
        values, log_den = base.nodes(p)
        near = (values <= cap) & (values + log_den > math.log(p))  # far below 0 den may have much where num has nothing
        return values[near], log_den[near]

    def atoms():
        found = base.atoms()
        if found is None:
            return None
        near = found.loss <= cap
        loss, num, den, rel, edge = (x[near] if np.ndim(x) else x for x in found[:5])
        return Atoms(loss, num, den, rel, edge, found.absolute)

    atoms = no_atoms if base.atoms is no_atoms else atoms
    return base._replace(nodes=nodes, hi=cap, atoms=atoms, additive=None, ends_error=0.0, cut=cap, curve=None)


def two_points(atoms: Atoms) -> Lattice | None:
    """Two atoms (or one) always form a lattice; its second point is rounded twice."""
    loss, num, den, rel, edge, absolute = atoms
    if not 1 <= loss.size <= 2 or absolute:
        return None
    error = float(np.max(edge)) + 2 * U * float(np.abs(loss).max())
    return Lattice(float(loss[-1] - loss[0]) or 1.0, float(loss[0]), 0, num, den, 0.0, rel, error)


# Runs


def ends(parts) -> Ends:
    """No finite sum of losses of a run [(loss, count), ...] lies outside: errors of the ends, a product and a sum for
    each."""
    low = math.fsum(k * (loss.lo - loss.ends_error) for loss, k in parts)
    high = math.fsum(k * (loss.hi + loss.ends_error) for loss, k in parts)
    below = 4 * U * math.fsum(k * abs(loss.lo) for loss, k in parts)
    above = 4 * U * math.fsum(k * abs(loss.hi) for loss, k in parts)
    return Ends(low - below if low > -math.inf else low, high + above if high < math.inf else high)


def log_finite(parts, minus: bool = False, cut=()) -> Ends:
    """Bounds of log Pr[no loss of a run is infinite]: under num, or under den with `minus`; the upper one
    also for outcomes of num that are cut, at least cut[i] of each step i. Each log1p is within 2u of its value, the
    products and the sum 2u more."""
    low = high = 0.0
    for (loss, k), more in zip(parts, itertools.chain(cut, itertools.repeat(0.0)), strict=False):
        mass = loss.mass_minus_inf if minus else loss.mass_inf
        if mass or more:
            off = loss.mass_error + 2 * U
            low += k * math.log1p(-min(mass * (1 + off), 1 - U))
            high += k * math.log1p(-max(mass * (1 - off) + more * DOWN, 0.0))
    slack = U * (8 + len(parts))
    return Ends(low * (1 + slack), high * (1 - slack))


# Nodes and windows from tails


def window(loss: Loss, p_low: float, p_high: float) -> tuple[float, float]:
    """(lo, hi) with Pr[Y <= lo] <= p_low and Pr[hi < Y <= cut] <= p_high, nearly the narrowest: bisection on the
    computed tails."""
    lo, hi = loss.lo, loss.hi
    if loss.cut < math.inf:
        p_high += loss.tails(np.array([loss.cut])).y_above.item()
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
    lo, hi = window(Loss(tails, functools.partial(nodes_of_tails, tails, lo, hi), lo, hi), p, p)
    t = tails(np.linspace(lo - 1e-9 * (1 + abs(lo)), hi, COARSE_NODES + 1))
    upper = t.y_above[:-1] < t.y_below[1:]
    y = np.where(upper, -np.diff(t.y_above), np.diff(t.y_below))
    x = np.where(upper, -np.diff(t.x_above), np.diff(t.x_below))
    ok = (y > 0) & (x > 0)
    return np.log(y[ok] / x[ok]), np.log(x[ok])
