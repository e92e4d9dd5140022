"""From what ran to its worst-case pair, in both directions.

Every mechanism here is dominated by a pair of laws (num, den) [theory: pair.domination]; the loss is log(num/den) under
num [theory: pair.loss]. `losses` describes any run; a family of pairs that one C kernel evaluates has a shorter
description by plain arrays (`gaussian_steps`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np

from .._core import Rows
from ..bound import DomainError
from ..outward import LDBL_ULP, U
from . import sampling, shuffling
from .allocation import AllocationOfSeveral, RandomAllocation, allocation_loss
from .batches import SizeRange, TruncatedPoisson
from .condensed import condensed
from .discrete import ApproxDP, DiscreteGaussian, DiscreteLaplace, KAryRandomizedResponse, shifted
from .given import FromCurve, FromLossCdf, FromPmf, GaussianMixture, PublicMixture
from .groups import Group, GroupOfTruncated
from .law import (
    atomic_loss,
    cdf_loss,
    gaussian_loss,
    gaussian_mixture_loss,
    laplace_loss,
    opposite_mixtures_loss,
)
from .loss import Lattice, Loss, mixture, poisson, reversed_loss
from .matrix import Failure
from .mechanism import Gaussian, Laplace, Mechanism, PoissonSubsampled, Run
from .ranged import BoundedRange, range_loss
from .replacement import WithReplacement
from .shuffling import Shuffled
from .topk import TopK

ADJACENCIES = ("add_remove", "replace_one", "zero_out")
DIRECTIONS = ("both", "remove", "add")
PIECE = 1 << 17
"""Steps sorted at a time, in about 20 ms."""


def gaussian_steps(run: Run, adjacency: str) -> Rows | None:
    """The run as arrays of (m, q, k), or None where some step's pair is not q N(m,1) + (1-q) N(0,1) against N(0,1).

    REMOVE has the mixture as num, ADD as den. For Poisson sampling this pair dominates under add_remove and zero_out
    [theory: pair.poisson]; q = 1 is the Gaussian mechanism under any adjacency (sampling.py). Steps that use no record
    are left out."""
    cached = run._cache.get(adjacency, ...)
    if cached is ...:
        if run.gathered and cast(Any, run).is_gaussian(adjacency):
            cached = run._cache[adjacency] = cast(Any, run).gaussian_steps(adjacency)
            return cached
        rows = _rows(run, adjacency)
        cached = None
        if all(isinstance(row, tuple) and not isinstance(row, sampling.Pair) for row, _ in rows):
            table = np.array([(*row, k) for row, k in rows], dtype=float).reshape(-1, 3)
            cached = in_order(*table.T.copy())
        run._cache[adjacency] = cached
    return cached


def steps_of(run: Any, adjacency: str) -> Rows:
    """`gaussian_steps` of a run that is known to have them."""
    return cast(Rows, gaussian_steps(run, adjacency))


def sorted_by(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """np.lexsort((second, first)), in pieces that a signal need not wait long for, which then are merged."""
    both = np.empty(first.size, complex)
    both.real, both.imag = first, second
    pieces = [i + np.argsort(both[i : i + PIECE], kind="stable") for i in range(0, max(first.size, 1), PIECE)]
    order = np.concatenate(pieces)
    return order[np.argsort(both[order], kind="stable")] if len(pieces) > 1 else order


def in_order(m: np.ndarray, q: np.ndarray, k: np.ndarray) -> Rows:
    """The steps by ascending shift and rate, equal ones merged: sums do not depend on the order in which they came."""
    if m.size < 2:  # as most runs
        return Rows(m, q, k)
    order = sorted_by(m, q)
    m, q, k = m[order], q[order], k[order]
    first = np.flatnonzero(np.concatenate(([True], (m[1:] != m[:-1]) | (q[1:] != q[:-1]))))
    return Rows(m[first], q[first], np.add.reduceat(k, first))


def is_gaussian(run: Any, adjacency: str) -> bool:
    """Whether `gaussian_steps` has arrays of the run."""
    return run.is_gaussian(adjacency) if run.gathered else gaussian_steps(run, adjacency) is not None


def all_gaussian(run: Any) -> bool:
    """Whether all steps are Gaussian noise or Poisson samples of it: one-sided or plain unless a record is replaced."""
    found = run._cache.get("all gaussian")
    if found is None:
        found = run._cache["all gaussian"] = run.gathered or all(
            isinstance(step.base if isinstance(step, PoissonSubsampled) else step, Gaussian) for step, _ in run.parts
        )
    return found


class GaussianFacts(NamedTuple):
    """What is known of a run without a look at its steps; of a run not of the Gaussian family, only the last.

    gaussian : whether `gaussian_steps` has arrays of the run.   total : number of steps.
    wall : an upper bound of the largest loss in the ADD direction, sum k |log(1-q)|, of which b steps leave (b+4)u
    [theory: small.range].   mirrored : whether both directions have one curve.
    """

    gaussian: bool
    total: float
    wall: float
    mirrored: bool


def gaussian_facts(run: Any, adjacency: str) -> GaussianFacts:
    """The facts of a run, kept with it."""
    key = ("facts", adjacency)
    facts = run._cache.get(key)
    if facts is None:
        if is_gaussian(run, adjacency):
            total, wall, mirrored = run.gaussian_facts() if run.gathered else _facts(steps_of(run, adjacency))
            facts = GaussianFacts(True, total, wall * (1 + (run.distinct + 5) * U), mirrored)
        else:
            facts = GaussianFacts(False, 0.0, math.inf, _mirrored(run, adjacency))
        run._cache[key] = facts
    return facts


def _facts(steps: Rows) -> tuple[float, float, bool]:
    if steps.k.size > 8:
        plain = steps.q == 1
        wall = math.inf if plain.any() else math.fsum((-steps.k * np.log1p(-steps.q)).tolist())
        return float(steps.k.sum()), wall, bool(plain.all())
    total, wall, whole = 0.0, 0.0, True
    for n, x in zip(steps.k.tolist(), steps.q.tolist(), strict=True):  # most runs have one row
        total += n
        wall += -n * math.log1p(-x) if x < 1 else math.inf
        whole = whole and x == 1
    return total, wall, whole


class PairedSteps(NamedTuple):
    """Gaussian steps and two-sided pairs together, turned to a direction.

    steps : the rows, of which those that are pairs are placeholders.   dropped : bound on the probability left out.
    variation_upper : bound of delta(0).   loss_upper : no loss exceeds it, except on what was dropped.
    branches : the larger shift, the rate, and the expected number of uses of every branch.   whole : whether every row
    is a pair.
    """

    steps: Rows
    dropped: float
    variation_upper: float
    loss_upper: float
    branches: Rows
    whole: bool


def paired_steps(run: Run, adjacency: str, add: bool) -> PairedSteps | None:
    """The run for the contour, or None where some step is neither of the Gaussian family nor a sampled Gaussian one."""
    key = (adjacency, add, "pairs")
    if key not in run._cache:
        if not run.listed:
            cast(Any, run).require_list()
        rows = _rows(run, adjacency)
        run._cache[key] = None if any(row is None for row, _ in rows) else _paired_steps(rows, add)
    return run._cache[key]


def _rows(run: Run, adjacency: str):
    """(sampling.family, count) of the steps that reveal anything, whose data sets go together."""
    key = (adjacency, "rows")
    if key not in run._cache:
        sampling.check_fixed_size(run, adjacency)
        run._cache[key] = [(sampling.family(step, adjacency), k) for step, k in run.parts if sampling.reveals(step)]
    return run._cache[key]


def _paired_steps(rows, add: bool) -> PairedSteps:
    """Rounding of the two bounds: q_err and w_err units of q and w, 16 more of the few operations on them."""
    branches: list[tuple[float, float, float]] = []
    table: list[tuple[float, float, float]] = []
    pairs, dropped, variation, top = [], 0.0, 0.0, 0.0
    for row, k in rows:
        two = isinstance(row, sampling.Pair)
        turned = row if two else sampling.Pair((sampling.Branch(1.0, row[1], row[0], 0.0),))
        turned = turned.reversed() if add else turned
        err = 1 + (turned.q_err + turned.w_err + 16) * U
        dropped += k * turned.dropped
        variation += k * (sampling.variation(turned.branches) * err + turned.dropped)
        top += k * max(math.inf if b.up or b.q * err >= 1 else -math.log1p(-b.q * err) * err for b in turned.branches)
        pairs.append(turned if two else None)
        branches += [(max(up, down), q, k * weight) for weight, q, up, down in turned.branches]
        table.append((1.0, 1.0, k) if two else (*row, k))
    more = 1 + (len(rows) + 4) * U
    (m, q, counts), n = np.array(table + branches, dtype=float).reshape(-1, 3).T.copy(), len(table)
    steps = Rows(m[:n], q[:n], counts[:n], pairs=sampling.packed(pairs))
    sides, whole = Rows(m[n:], q[n:], counts[n:]), None not in pairs
    return PairedSteps(steps, dropped, min(variation * more, 1.0), top * more, sides, whole)


def losses(run: Run, adjacency: str, direction: str) -> tuple[tuple[Loss, int], ...]:
    """(loss, count) of every distinct step, in one direction: "remove" or "add".

    Raises
    ------
    DomainError
        Where the adjacency is not defined for a step.
    """
    key = (adjacency, direction)
    cached = run._cache.get(key)
    if cached is None:
        _rows(run, adjacency)  # refuses what does not go together
        # [theory: pair.composition]
        cached = run._cache[key] = tuple((step_loss(step, adjacency, direction == "add"), k) for step, k in run.parts)
    return cached


def step_loss(step: Mechanism, adjacency: str, add: bool) -> Loss:
    """The loss of one step in one direction, by the function of its kind in PAIRS."""
    return PAIRS[type(step)](step, adjacency, add)  # [theory: pair.loss, pair.domination]


def _only(step: Mechanism, adjacency: str, *allowed: str) -> None:
    if adjacency not in allowed:
        names = ", ".join(f'"{name}"' for name in allowed)
        raise DomainError(f"adjacency {adjacency!r} is not defined for {step!r}; allowed: {names}")


# One function a kind. Each takes (step, adjacency, add).


def gaussian_pair(step: Gaussian, adjacency: str, add: bool) -> Loss:
    """N(m, 1) against N(0, 1), its own mirror image [theory: pair.gaussian]; replace_one: N(m, 1) against N(-m, 1)."""
    m, _ = sampling.as_gaussian(step, adjacency)
    return gaussian_loss(m)


def laplace_pair(step: Laplace, adjacency: str, add: bool) -> Loss:
    """Laplace laws moved by the sensitivity (replace_one: by twice that), their own mirror image.

    Noise on every entry of a vector, moved by sum |v_i| <= m in all, is dominated by one entry moved by m
    [theory: pair.laplace]. Poisson samples under add_remove and zero_out inherit it [ZDW22, Thm 11].
    """
    return laplace_loss((2 if adjacency == "replace_one" else 1) * step.sensitivity / step.scale)


def poisson_pair(step: PoissonSubsampled, adjacency: str, add: bool) -> Loss:
    """q num + (1-q) den against den for REMOVE; for ADD the mirror image of the same made from the mirrored ADD pair
    [theory: pair.poisson]. zero_out for additive noise: the zeroed record adds nothing, like an absent one. replace_one
    needs more than the pair of the base step: sampling.py."""
    if isinstance(step.base, Gaussian | Laplace) and adjacency == "replace_one":
        return sampling.replace_one_loss(step)
    if isinstance(step.base, Gaussian | Laplace | DiscreteGaussian | DiscreteLaplace):
        _only(step, adjacency, "add_remove", "zero_out")
        adjacency = "add_remove"
    _only(step, adjacency, "add_remove")
    if isinstance(step.base, Gaussian):
        return gaussian_loss(sampling.as_gaussian(step.base, adjacency)[0], step.q, add)
    if isinstance(step.base, Laplace):
        return laplace_loss(step.base.sensitivity / step.base.scale, step.q, add)
    base = step_loss(step.base, adjacency, add)
    if not add:
        return poisson(base, step.q)
    return reversed_loss(poisson(base if isinstance(step.base, MIRRORED) else reversed_loss(base), step.q))


def discrete_gaussian_pair(step: DiscreteGaussian, adjacency: str, add: bool) -> Loss:
    """Integer noise x against D + x: loss D(D - 2x)/(2 sigma^2), its own mirror image [theory: pair.discrete-gaussian].
    The worst shift is D, as for every log-concave noise [theory: pair.log-concave].

    Exponents y^2/(2 sigma^2) and positions are formed in long double by four roundings each: a mass of exponent 745 or
    less is within 8u + 4 * 745 long double units, a position within 2u relative. Outcomes stay unless both masses are
    below e^-745. Exponents from 708 to 745, where masses are subnormal, take sigma on either side, and what is left out
    falls geometrically by e^{-38/sigma}: together fewer than 8 (sigma + 8) units of 2^-1074. The range is endless."""
    step = shifted(step, adjacency)
    s2, d = np.longdouble(step.sigma) ** 2, step.sensitivity
    reach = int(step.sigma * math.sqrt(2 * 745.2)) + 1
    x = np.arange(d + reach, -reach - 1, -1)
    log_num, log_den = (-(np.asarray(y, dtype=np.longdouble) ** 2) / (2 * s2) for y in (x, x - d))
    z = np.exp(-(np.arange(-reach - 1, reach + 2, dtype=np.longdouble) ** 2) / (2 * s2)).sum()
    offset, gap = float(d * np.longdouble(d) / (2 * s2)), float(d / s2)
    at = (d * (d - 2 * x.astype(np.longdouble)) / (2 * s2)).astype(float)
    num, den = ((np.exp(log) / z).astype(float) for log in (log_num, log_den))
    held = (num > 0) | (den > 0)
    x, at, num, den = x[held], at[held], num[held], den[held]
    rel = 8 * U + (4000 + x.size) * LDBL_ULP
    absolute = 8 * (step.sigma + 8) * 2.0**-1074
    lattice = Lattice(gap, offset, int(-x[0]), num, den, absolute, rel, 8 * U * float(np.abs(at).max()))
    edge = 3 * U * np.abs(at)
    return atomic_loss(at, num, den, edge=edge, rel=rel, lattice=lattice, absolute=absolute, endless=True)


def discrete_laplace_pair(step: DiscreteLaplace, adjacency: str, add: bool) -> Loss:
    """Integer noise x against D + x: losses a(D - 2j) with a = 1/scale, j = 0..D; its own mirror image
    [theory: pair.discrete-laplace]. The worst shift is D [theory: pair.log-concave].

    a and a j <= 600 in long double by two roundings: positions within 2u relative, masses within 8u + 4 * 600 long
    double ones."""
    step = shifted(step, adjacency)
    a, d = 1 / np.longdouble(step.scale), step.sensitivity
    j = np.arange(d, -1, -1).astype(np.longdouble)
    end = np.exp(-a * j) / (1 + np.exp(-a))
    num = np.where((j == 0) | (j == d), end, np.tanh(a / 2) * np.exp(-a * j)).astype(float)
    at, rel = (a * (d - 2 * j)).astype(float), 8 * U + 2400 * LDBL_ULP
    lattice = Lattice(float(2 * a), float(-a * d), 0, num, num[::-1], 0.0, rel, 8 * U * float(a * d))
    return atomic_loss(at, num, num[::-1], edge=3 * U * np.abs(at), rel=rel, lattice=lattice)


def approx_dp_pair(step: ApproxDP, adjacency: str, add: bool) -> Loss:
    """The pair that dominates every (eps0, delta0)-DP step, whatever the adjacency [theory: pair.approx-dp].

    The losses +-eps0 and the mass delta0 at infinity are the user's numbers, exact; a finite mass is 1 - delta0 (u),
    exp (2u), 1 + exp (3u), a product and a quotient: 8u."""
    e0, d0 = step.eps0, step.delta0
    if e0 == 0:
        one = np.array([1 - d0])
        return atomic_loss([0.0], one, one, edge=0.0, rel=U, mass_inf=d0, mass_minus_inf=d0)._replace(
            exact_inf=Fraction(d0)
        )
    num = (1 - d0) * np.array([math.exp(-e0), 1.0]) / (1 + math.exp(-e0))
    loss = atomic_loss([-e0, e0], num, num[::-1], edge=0.0, rel=8 * U, mass_inf=d0, mass_minus_inf=d0)
    return loss._replace(exact_inf=Fraction(d0))


def k_ary_pair(step: KAryRandomizedResponse, adjacency: str, add: bool) -> Loss:
    """replace_one: losses e0, 0, -e0, exact. zero_out: the true answer against a uniform one
    [theory: pair.k-ary].

    Masses: small = e^-e0 within 2u, 1 + (k-1) small 4u, quotients and products at most 9u. zero_out: the losses are log
    of k/(1 + (k-1) small), as log1p((k-1)(1 - small)/(1 + (k-1) small)), and -log1p(expm1(e0)/k): sums, products and
    quotients of positive numbers, 10u and 3u, of which log1p makes no more, and adds 2u."""
    _only(step, adjacency, "replace_one", "zero_out")
    e0, k = step.eps0, step.k
    small = math.exp(-e0)
    whole = 1 + (k - 1) * small
    a, b = 1 / whole, small / whole
    if e0 == 0:
        return atomic_loss([0.0], [1.0], [1.0], edge=0.0, rel=0.0)
    if adjacency == "replace_one":
        masses = np.array([b, (k - 2) * b, a])
        if k == 2:
            return atomic_loss([-e0, e0], masses[::2], masses[::-2], edge=0.0, rel=10 * U)
        lattice = Lattice(e0, -e0, 0, masses, masses[::-1], 0.0, 10 * U, 0.0)
        return atomic_loss([-e0, 0.0, e0], masses, masses[::-1], edge=0.0, rel=10 * U, lattice=lattice)
    at = np.array([-math.log1p(math.expm1(e0) / k), math.log1p((k - 1) * -math.expm1(-e0) / whole)])
    loss = atomic_loss(at, [(k - 1) * b, a], [(k - 1) / k, 1 / k], edge=12 * U * np.abs(at), rel=10 * U)
    return reversed_loss(loss) if add else loss


def range_pair(step: BoundedRange, adjacency: str, add: bool) -> Loss:
    """The pair that dominates every eps0-bounded-range step, whatever the adjacency: ranged.py."""
    return range_loss(step.eps0)


def allocation_pair(step: RandomAllocation, adjacency: str, add: bool) -> Loss:
    """Q moved by 1 in one of t entries, drawn uniformly, against Q = N(0, sigma^2 I)
    [theory: allocation.comparison, allocation.pair]."""
    _only(step, adjacency, "add_remove", "zero_out")
    loss = allocation_loss(step.shift, step.steps)
    return reversed_loss(loss) if add else loss


CHARGED: dict[type[Mechanism], str] = {
    TopK: "bounded_range",
    AllocationOfSeveral: "a random_allocation for each participation",
    WithReplacement: "a group of records, each in a Poisson sample",
}


def between_pair(step: Mechanism, adjacency: str, add: bool) -> Loss:
    """None: it is known between two pairs (topk.py), which the queries of query.py ask one by one."""
    raise DomainError(
        f"{step!r} is known between two curves: ask delta, log_delta or epsilon of it, or charge {CHARGED[type(step)]}"
    )


def failure_pair(step: Failure, adjacency: str, add: bool) -> Loss:
    """None: its delta is added to that of the other steps (matrix.py), which is the curve of no pair beside them."""
    raise DomainError(f"{step!r} adds its delta to a curve: ask delta, log_delta or epsilon of it")


def shuffled_pair(step: Shuffled, adjacency: str, add: bool) -> Loss:
    """One report among shuffled ones, its own mirror image [theory: shuffle.three]. A record replaced; one zeroed where
    the local guarantee holds for that, which for k-ary answers it does not: its pair is another one."""
    allowed = ("replace_one",) if isinstance(step.local, KAryRandomizedResponse) else ("replace_one", "zero_out")
    _only(step, adjacency, *allowed)
    return curve_pair(shuffling.curve(step), adjacency, add)


def gaussian_mixture_pair(step: GaussianMixture, adjacency: str, add: bool) -> Loss:
    """sum_i p_i N(m_i, 1) against N(0, 1): the pair itself, by definition of the mechanism
    [theory: pair.random-shift, pair.groups], also where a record that contributes nothing stands for its absence."""
    _only(step, adjacency, "add_remove", "zero_out")
    few = condensed(step)
    loss = gaussian_mixture_loss(few.shifts, few.weights, np.log(few.weights), few.off_upper)
    return reversed_loss(loss) if add else loss


def group_pair(step: Group, adjacency: str, add: bool) -> Loss:
    """Random shifts against none, or against as many the other way, which is its own mirror image
    [theory: pair.groups]."""
    if adjacency == "replace_one":
        return opposite_mixtures_loss(*step.shifts())
    loss = gaussian_mixture_loss(*step.shifts())
    return reversed_loss(loss) if add else loss


def truncated_group_pair(step: GroupOfTruncated, adjacency: str, add: bool) -> Loss:
    """A public mixture over how many other records were used: in each random shifts against none, or against as many
    the other way [theory: pair.groups-truncated]. What has a weight below FAINT may lie anywhere."""
    _only(step, adjacency, "zero_out", "replace_one")
    make = opposite_mixtures_loss if adjacency == "replace_one" else gaussian_mixture_loss
    still = atomic_loss([0.0], [1.0], [1.0], edge=0.0, rel=0.0)
    kept = [law for law in step.laws() if law[0] > FAINT]
    whole = mixture(tuple(make(*law) if law[0].any() else still for _, *law in kept), tuple(w for w, *_ in kept))
    if len(kept) < len(step.laws()):

        def tails(s):
            found = parts.tails(s)
            return found._replace(absolute=found.absolute + 64 * FAINT)

        parts, whole = whole, whole._replace(tails=tails, lo=-math.inf, hi=math.inf)
    return reversed_loss(whole) if add else whole


FAINT = 1e-290


def public_mixture_pair(step: PublicMixture, adjacency: str, add: bool) -> Loss:
    """The pair of the joint law of (part, output): its curve is the weighted sum of the parts' curves
    [theory: pair.mixture]."""
    return mixture(tuple(step_loss(part, adjacency, add) for part in step.parts), step.weights)


def pmf_pair(step: FromPmf, adjacency: str, add: bool) -> Loss:
    """The user's pair, each law divided by its sum; ADD is its mirror image [theory: pair.pmf].

    The sums S, T of num p and den d, and S - T, are rounded once each (fsum). A loss is log(p T/(d S)).
      p, d within a factor 2: log1p(((p - d)/d T - (S - T))/S), where p - d is exact: the argument is within 8u (|r| +
        |S - T|), r = (p - d)/d, log1p has slope at most 2.1 there and adds 2u; |r| <= 1.5 |loss| + 1.7 |S - T|.
      Others: log of the quotient of the mantissas, 3u, plus their exponents' difference times log 2, 4u (|loss| + 0.7),
        plus log1p((T - S)/S): all below 12u |loss|, as |loss| > 0.69.
    So a loss is within 48u (|loss| + |S - T|). Equal computed losses make one atom. A mass is a sum divided by a sum,
    u(n + 4); where that is subnormal, 2^-1074 for each of its outcomes besides."""
    num, den = np.array(step.num), np.array(step.den)
    s, t, more = math.fsum(num), math.fsum(den), math.fsum((*step.num, *(-x for x in step.den)))
    both = (num > 0) & (den > 0)
    p, d = num[both], den[both]
    near = (p < 2 * d) & (d < 2 * p)
    (p2, p_exp), (d2, d_exp) = np.frexp(p), np.frexp(d)
    far = np.log(p2 / d2) + (p_exp - d_exp) * math.log(2.0) + math.log1p(-more / s)
    ratio = np.divide(p - d, d, out=np.zeros(p.size), where=near)
    loss, at = np.unique(np.where(near, np.log1p((ratio * t - more) / s), far), return_inverse=True)
    p, d = np.bincount(at, p, loss.size) / s, np.bincount(at, d, loss.size) / t
    masses = [math.fsum(a[~both]) / total for a, total in ((num, s), (den, t))]
    small = min((x for x in (*step.num, *step.den) if x), default=1.0) < 2.0**-1021
    absolute = (num.size + 1) * 2.0**-1074 if small and not s == t == 1 else 0.0
    base = atomic_loss(
        loss,
        p,
        d,
        edge=48 * U * (np.abs(loss) + abs(more)),
        rel=U * (num.size + 4),
        mass_inf=masses[0],
        mass_minus_inf=masses[1],
        mass_error=U * (num.size + 4) + max((absolute / x for x in masses if x), default=0.0),
        absolute=absolute,
    )
    if add:
        return reversed_loss(base)
    if not masses[0]:
        return base
    return base._replace(exact_inf=sum(map(Fraction, num[~both]), Fraction()) / sum(map(Fraction, num), Fraction()))


def curve_pair(step: FromCurve, adjacency: str, add: bool) -> Loss:
    """Connect-the-dots on the given points [theory: pair.given-curve]: p_i = a_i (s_{i+} - s_{i-}), a = e^eps, s chord
    slopes.

    A symmetric guarantee bounds the mirrored curve as well [theory: pair.reversal]: delta(-eps) = 1 - e^-eps + e^-eps
    delta(eps). A convex curve below all points is below their lower convex hull, which is taken.

    Long double throughout, v = its ulp. Positions are the user's eps, exact. Deltas are the user's, or mirrored ones,
    sums of two positive terms: 6v each. Gaps of a are a expm1(difference of eps), the difference being within v: 6v. So
    a slope is within 8v of itself and the errors of two deltas over the gap, and a den mass within the sum for two
    slopes; one that comes out smaller than that is taken to be as large. A corner that such errors hide is left out,
    which raises the curve there by their difference times the shorter gap at most: by 64v of itself, as a slope times
    the gap to its right is at most delta. Mass at infinity: delta at the last point, the user's number. Den mass at
    minus infinity, at the first point of the hull: (expm1(eps) + delta)/e^eps = 1 - (1 - delta)/e^eps, the last delta
    for its mirror image; else delta, within 6v of itself if mirrored, moves it by 6v delta/e^eps, and operations err by
    4v of each of the terms added: the better form is taken."""
    eps, delta = (np.array(a, dtype=np.longdouble) for a in (step.eps, step.delta))
    if step.symmetric:
        mirrored = eps > 0
        e, d = -eps[mirrored][::-1], delta[mirrored][::-1]
        eps, delta = np.r_[e, eps], np.r_[-np.expm1(e) + np.exp(e) * d, delta]
    rough = np.r_[0, 6 * LDBL_ULP * delta * (eps < 0) * step.symmetric]
    a, delta = np.r_[0, np.exp(eps)], np.r_[1, delta]
    keep = np.arange(a.size)
    while True:  # what is not below the chord of its neighbours is no corner of the hull
        at = eps[keep[1:] - 1]
        gaps = np.r_[a[keep[1]], a[keep[1:-1]] * np.expm1(np.diff(at))]
        rise = np.diff(delta[keep])
        above = rise[1:] * gaps[:-1] <= rise[:-1] * gaps[1:]
        if not above.any():
            break
        keep = np.delete(keep, 1 + np.flatnonzero(above))
    a, delta = a[keep], delta[keep]
    slopes = np.minimum(np.r_[np.diff(delta) / gaps, 0.0], 0.0)
    rough = rough[keep]
    noise = np.r_[(rough[1:] + rough[:-1]) / gaps, 0.0] + 8 * LDBL_ULP * np.abs(slopes)
    error = noise[1:] + noise[:-1]
    den = np.maximum(np.diff(slopes), error)
    ok = den > 0
    den, error = den[ok], error[ok]
    num = den * a[1:][ok]
    rel = (4 * U + 4 * LDBL_ULP + 2 * error / den).astype(float)
    left, over = (1 - delta[1]) / a[1], np.expm1(at[0])
    forms = (
        ((abs(over) + delta[1]) / a[1], (over + delta[1]) / a[1]),
        (1 + left, 1 - left),
    )
    unsure, bottom = min(forms)
    unsure = 4 * LDBL_ULP * unsure + rough[1] / a[1]
    bottom = min(max(bottom, unsure), np.longdouble(1))
    error = 4 * U + float(2 * unsure / bottom) if bottom else 0.0
    if step.symmetric and at[0] == -at[-1]:
        bottom, error = delta[-1], 0.0
    base = atomic_loss(
        at[ok].astype(float),
        num.astype(float),
        den.astype(float),
        edge=0.0,
        rel=rel,
        mass_inf=float(delta[-1]),
        mass_minus_inf=float(bottom),
        mass_error=error,
    )
    return reversed_loss(base) if add and not step.symmetric else base._replace(exact_inf=Fraction(step.delta[-1]))


def cdf_pair(step: FromLossCdf, adjacency: str, add: bool) -> Loss:
    """The user's pair; ADD is its mirror image [theory: pair.cdf]."""
    base = cdf_loss(
        step.cdf_num,
        step.cdf_den,
        step.sf_num,
        step.sf_den,
        step.lo,
        step.hi,
        step.mass_inf,
        step.mass_minus_inf,
        step.error,
    )
    return reversed_loss(base) if add else base


def truncated_pair(step: TruncatedPoisson | SizeRange, adjacency: str, add: bool) -> Loss:
    """The public mixture of [Gan25, Thms 3.1, 3.3, 3.4] [theory: pair.truncated]; sampling.py. A SizeRange: one that
    dominates many of them."""
    if not sampling.reveals(step):
        return atomic_loss([0.0], [1.0], [1.0], edge=0.0, rel=0.0)
    row = sampling.family(step, adjacency)
    if not isinstance(row, sampling.Pair):
        if row and row[1] == 1:
            return gaussian_loss(row[0])
        row = sampling.pair(step, adjacency)
    pair = row
    return sampling.pair_loss(pair.reversed() if add else pair)


PAIRS: dict[type[Mechanism], Callable[..., Loss]] = {
    Gaussian: gaussian_pair,
    Laplace: laplace_pair,
    PoissonSubsampled: poisson_pair,
    TruncatedPoisson: truncated_pair,
    SizeRange: truncated_pair,
    DiscreteGaussian: discrete_gaussian_pair,
    DiscreteLaplace: discrete_laplace_pair,
    ApproxDP: approx_dp_pair,
    BoundedRange: range_pair,
    RandomAllocation: allocation_pair,
    TopK: between_pair,
    AllocationOfSeveral: between_pair,
    Failure: failure_pair,
    Shuffled: shuffled_pair,
    WithReplacement: between_pair,
    KAryRandomizedResponse: k_ary_pair,
    GaussianMixture: gaussian_mixture_pair,
    Group: group_pair,
    GroupOfTruncated: truncated_group_pair,
    PublicMixture: public_mixture_pair,
    FromPmf: pmf_pair,
    FromCurve: curve_pair,
    FromLossCdf: cdf_pair,
}
"""The one table of mechanisms: class -> function(step, adjacency, add) -> Loss. Pairs that are read off the curves of
other runs are entered by inner/."""

MIRRORED = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace, ApproxDP, BoundedRange, Shuffled)
"""Kinds whose pair is its own mirror image under any adjacency: both directions have one curve."""


def mirrored(run: Run, adjacency: str) -> bool:
    """Whether REMOVE and ADD have one curve."""
    return gaussian_facts(run, adjacency).mirrored


def _mirrored(run: Run, adjacency: str) -> bool:
    """The same of runs not of the Gaussian family: every pair is its own mirror image; under replace_one so are those
    of sampled steps and of k-ary randomised response."""
    if adjacency == "replace_one" and all_gaussian(run):
        return True
    replaced = (PoissonSubsampled, TruncatedPoisson, SizeRange, Group, KAryRandomizedResponse)
    kinds = MIRRORED + (replaced if adjacency == "replace_one" else ())
    return all(isinstance(step, kinds) for step, _ in run.parts)
