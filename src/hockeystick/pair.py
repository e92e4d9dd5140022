"""From what ran to its worst-case pair, in both directions.

Every mechanism here is dominated by a pair of laws (num, den); the loss is log(num/den) under num. `losses` describes any run;
a family of pairs that one C kernel evaluates has a shorter description by plain arrays (`gaussian_steps`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from . import sampling
from .batches import SizeRange, TruncatedPoisson
from .bound import DomainError
from .discrete import ApproxDP, DiscreteGaussian, DiscreteLaplace, KAryRandomizedResponse, shifted
from .given import FromCurve, FromLossCdf, FromPmf, GaussianMixture, PublicMixture
from .law import LDBL_ULP, atomic_loss, cdf_loss, gaussian_loss, gaussian_mixture_loss, laplace_loss
from .loss import Lattice, Loss, U, mixture, poisson, reversed_loss
from .mechanism import Gaussian, Laplace, Mechanism, PoissonSubsampled, Run

ADJACENCIES = ("add_remove", "replace_one", "zero_out")
DIRECTIONS = ("both", "remove", "add")


class GaussianSteps(NamedTuple):
    """Poisson-subsampled Gaussian steps: arrays of equal length b (contiguous float64).

    shift : m = sensitivity/sigma > 0.   q : sampling rate, 1 for the plain Gaussian.   k : counts.
    """

    shift: np.ndarray
    q: np.ndarray
    k: np.ndarray


def gaussian_steps(run: Run, adjacency: str) -> GaussianSteps | None:
    """The run as arrays of (m, q, k), or None where some step's pair is not q N(m,1) + (1-q) N(0,1) against N(0,1).

    REMOVE has the mixture as num, ADD as den. For Poisson sampling this pair dominates [GLW21, App. B; ZDW22, Thm 11] under
    add_remove and zero_out; q = 1 is the Gaussian mechanism under any adjacency (sampling.py). Steps that use no record are
    left out.
    """
    cached = run._cache.get(adjacency, ...)
    if cached is ...:
        sampling.check_fixed_size(run, adjacency)
        rows = _rows(run, adjacency)
        cached = None
        if all(isinstance(row, tuple) and not isinstance(row, sampling.Pair) for row, _ in rows):
            table = np.array([(*row, k) for row, k in rows], dtype=float).reshape(-1, 3)
            cached = GaussianSteps(*table.T.copy())
        run._cache[adjacency] = cached
    return cached


def gaussian_facts(run: Run, steps: GaussianSteps) -> tuple[float, float, bool]:
    """(number of steps; sum k |log(1-q)|, the largest loss in the ADD direction; whether both directions have one curve)."""
    key = ("facts", id(steps))  # steps of one adjacency, kept by the run's cache
    facts = run._cache.get(key)
    if facts is None:
        total, wall, whole = 0.0, 0.0, True
        for n, x in zip(steps.k.tolist(), steps.q.tolist(), strict=True):  # most runs have one row
            total += n
            wall += -n * math.log1p(-x) if x < 1 else math.inf
            whole = whole and x == 1
        facts = run._cache[key] = total, wall, whole
    return facts


class PairedSteps(NamedTuple):
    """Gaussian steps and two-sided pairs together: rows of `steps` whose `pairs` has branches are placeholders.

    pairs : hs_pair bytes of every row, turned to the direction asked.   dropped : bound on the probability left out.
    variation_upper : bound of delta(0).   loss_upper : no loss exceeds it, except on what was dropped.
    """

    steps: GaussianSteps
    pairs: np.ndarray
    dropped: float
    variation_upper: float
    loss_upper: float


def paired_steps(run: Run, adjacency: str, add: bool) -> PairedSteps | None:
    """The run for the contour, or None where some step is neither of the Gaussian family nor a sampled Gaussian one."""
    key = (adjacency, add, "pairs")
    if key not in run._cache:
        sampling.check_fixed_size(run, adjacency)
        rows = _rows(run, adjacency)
        run._cache[key] = None if any(row is None for row, _ in rows) else _paired_steps(rows, add)
    return run._cache[key]


def _rows(run: Run, adjacency: str):
    """(sampling.family, count) of the steps that reveal anything."""
    key = (adjacency, "rows")
    if key not in run._cache:
        run._cache[key] = [(sampling.family(step, adjacency), k) for step, k in run.parts if sampling.reveals(step)]
    return run._cache[key]


def _paired_steps(rows, add: bool) -> PairedSteps:
    """Rounding of the two bounds: q_err and w_err units of q and w, 16 more of the few operations on them."""
    table, pairs, dropped, variation, top = [], [], 0.0, 0.0, 0.0
    for row, k in rows:
        two = isinstance(row, sampling.Pair)
        turned = row if two else sampling.Pair((sampling.Branch(1.0, row[1], row[0], 0.0),))
        turned = turned.reversed() if add else turned
        err = 1 + (turned.q_err + turned.w_err + 16) * U
        dropped += k * turned.dropped
        variation += k * (sampling.variation(turned.branches) * err + turned.dropped)
        top += k * max(math.inf if b.up or b.q * err >= 1 else -math.log1p(-b.q * err) * err for b in turned.branches)
        pairs.append(turned if two else None)
        table.append((*((1.0, 1.0) if two else row), k))
    columns = np.array(table, dtype=float).reshape(-1, 3).T
    more = 1 + (len(rows) + 4) * U
    steps = GaussianSteps(*map(np.ascontiguousarray, columns))
    return PairedSteps(steps, sampling.packed(pairs), dropped, min(variation * more, 1.0), top * more)


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
        sampling.check_fixed_size(run, adjacency)
        cached = run._cache[key] = tuple((step_loss(step, adjacency, direction == "add"), k) for step, k in run.parts)
    return cached


def step_loss(step: Mechanism, adjacency: str, add: bool) -> Loss:
    """The loss of one step in one direction, by the function of its kind in PAIRS."""
    return PAIRS[type(step)](step, adjacency, add)


def _only(step: Mechanism, adjacency: str, *allowed: str) -> None:
    if adjacency not in allowed:
        names = ", ".join(f'"{name}"' for name in allowed)
        raise DomainError(f"adjacency {adjacency!r} is not defined for {step!r}; allowed: {names}")


# One function a kind. Each takes (step, adjacency, add).


def gaussian_pair(step: Gaussian, adjacency: str, add: bool) -> Loss:
    """N(m, 1) against N(0, 1), its own mirror image [GLW21, Prop. B.1]; replace_one: N(m, 1) against N(-m, 1)."""
    m, _ = sampling.as_gaussian(step, adjacency)
    return gaussian_loss(m)


def laplace_pair(step: Laplace, adjacency: str, add: bool) -> Loss:
    """Laplace laws moved by the sensitivity (replace_one: by twice that), their own mirror image [GLW21, Prop. B.2]."""
    return laplace_loss((2 if adjacency == "replace_one" else 1) * step.sensitivity / step.scale)


def poisson_pair(step: PoissonSubsampled, adjacency: str, add: bool) -> Loss:
    """q num + (1-q) den against den for REMOVE; for ADD the mirror image of the same made from the mirrored ADD pair
    [ZDW22, Thm 11]. zero_out for additive noise: the zeroed record adds nothing, like an absent one. replace_one needs more
    than the pair of the base step: sampling.py."""
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
    """Integer noise x against D + x: loss D(D - 2x)/(2 sigma^2), its own mirror image [CKS20, Prop. 5: the worst shift is D].

    Outcomes of probability below e^-690 are left out; exponents are formed in long double.
    """
    step = shifted(step, adjacency)
    s2, d = np.longdouble(step.sigma) ** 2, step.sensitivity
    reach = int(step.sigma * math.sqrt(2 * 690.0)) + 1
    x = np.arange(d + reach, -reach - 1, -1)
    log_num, log_den = (-(np.asarray(y, dtype=np.longdouble) ** 2) / (2 * s2) for y in (x, x - d))
    ok = (log_num > -690) & (log_den > -690)
    x, num, den = x[ok], np.exp(log_num[ok]), np.exp(log_den[ok])
    z = np.exp(-(np.arange(-reach - 1, reach + 2, dtype=np.longdouble) ** 2) / (2 * s2)).sum()
    offset, gap = float(d * np.longdouble(d) / (2 * s2)), float(d / s2)
    at = (d * (d - 2 * x.astype(np.longdouble)) / (2 * s2)).astype(float)
    num, den = (num / z).astype(float), (den / z).astype(float)
    rel = 8 * U + (2200 + x.size) * LDBL_ULP
    lattice = Lattice(gap, offset, int(-x[0]), num, den, 1e-298)
    return atomic_loss(at, num, den, edge=4 * U * float(np.abs(at).max()), rel=rel, lattice=lattice, absolute=1e-304)


def discrete_laplace_pair(step: DiscreteLaplace, adjacency: str, add: bool) -> Loss:
    """Integer noise x against D + x: losses a(D - 2j) with a = 1/scale, j = 0..D; its own mirror image [maths B.5]."""
    step = shifted(step, adjacency)
    a, d = 1 / np.longdouble(step.scale), step.sensitivity
    j = np.arange(d, -1, -1).astype(np.longdouble)
    end = np.exp(-a * j) / (1 + np.exp(-a))
    num = np.where((j == 0) | (j == d), end, np.tanh(a / 2) * np.exp(-a * j)).astype(float)
    at = (a * (d - 2 * j)).astype(float)
    lattice = Lattice(float(2 * a), float(-a * d), 0, num, num[::-1], 0.0)
    return atomic_loss(at, num, num[::-1], edge=4 * U * at[-1], rel=8 * U + 600 * LDBL_ULP, lattice=lattice)


def approx_dp_pair(step: ApproxDP, adjacency: str, add: bool) -> Loss:
    """The pair that dominates every (eps0, delta0)-DP step [KOV15, Thm 3.4; GLW21, Prop. B.3], whatever the adjacency."""
    e0, d0 = step.eps0, step.delta0
    if e0 == 0:
        one = np.array([1 - d0])
        return atomic_loss([0.0], one, one, edge=0.0, rel=U, mass_inf=d0, mass_minus_inf=d0)._replace(exact_inf=Fraction(d0))
    num = (1 - d0) * np.array([math.exp(-e0), 1.0]) / (1 + math.exp(-e0))
    loss = atomic_loss([-e0, e0], num, num[::-1], edge=0.0, rel=16 * U, mass_inf=d0, mass_minus_inf=d0)
    return loss._replace(exact_inf=Fraction(d0))


def k_ary_pair(step: KAryRandomizedResponse, adjacency: str, add: bool) -> Loss:
    """replace_one: losses e0, 0, -e0. zero_out: the true answer against a uniform one [maths B.4]."""
    _only(step, adjacency, "replace_one", "zero_out")
    e0, k = step.eps0, step.k
    small = math.exp(-e0)
    a, b = 1 / (1 + (k - 1) * small), small / (1 + (k - 1) * small)
    if e0 == 0:
        return atomic_loss([0.0], [1.0], [1.0], edge=0.0, rel=0.0)
    if adjacency == "replace_one":
        masses = np.array([b, (k - 2) * b, a])
        if k == 2:
            return atomic_loss([-e0, e0], masses[::2], masses[::-2], edge=0.0, rel=16 * U)
        lattice = Lattice(e0, -e0, 0, masses, masses[::-1], 0.0)
        return atomic_loss([-e0, 0.0, e0], masses, masses[::-1], edge=0.0, rel=16 * U, lattice=lattice)
    top = -math.log1p((k - 1) / k * math.expm1(-e0))
    loss = atomic_loss([top - e0, top], [(k - 1) * b, a], [(k - 1) / k, 1 / k], edge=8 * U * (e0 + 1), rel=16 * U)
    return reversed_loss(loss) if add else loss


def gaussian_mixture_pair(step: GaussianMixture, adjacency: str, add: bool) -> Loss:
    """sum_i p_i N(m_i, 1) against N(0, 1): the pair itself, by definition of the mechanism."""
    _only(step, adjacency, "add_remove")
    loss = gaussian_mixture_loss(np.array(step.shifts) / step.sigma, np.array(step.probabilities))
    return reversed_loss(loss) if add else loss


def public_mixture_pair(step: PublicMixture, adjacency: str, add: bool) -> Loss:
    """The pair of the joint law of (part, output): its curve is the weighted sum of the parts' curves [ZDW22, Thm 10]."""
    return mixture(tuple(step_loss(part, adjacency, add) for part in step.parts), step.weights)


def pmf_pair(step: FromPmf, adjacency: str, add: bool) -> Loss:
    """The user's pair; ADD is its mirror image. log(num/den) by log1p of an exact difference where the two are close."""
    num, den = np.array(step.num), np.array(step.den)
    sums = math.fsum(num), math.fsum(den)
    both = (num > 0) & (den > 0)
    p, d = num[both], den[both]
    near = (p < 2 * d) & (d < 2 * p)
    with np.errstate(divide="ignore", over="ignore"):
        loss = np.where(near, np.log1p((p - d) / d), np.log(p) - np.log(d))
    shift = math.log1p((sums[1] - sums[0]) / sums[0])
    loss, at = np.unique(loss + shift, return_inverse=True)
    p, d = np.bincount(at, p, loss.size) / sums[0], np.bincount(at, d, loss.size) / sums[1]
    edge = 8 * U * (float(np.abs(np.log(np.array([p, d]))).max(initial=0.0)) + 1) if not near.all() else 0.0
    edge += 8 * U * (float(np.abs(loss).max(initial=0.0)) + abs(shift))
    rel = U * (num.size + 8)
    mass_inf, mass_minus_inf = (math.fsum(a[~both]) / total for a, total in zip((num, den), sums, strict=True))
    base = atomic_loss(loss, p, d, edge=edge, rel=rel, mass_inf=mass_inf, mass_minus_inf=mass_minus_inf)
    if add:
        return reversed_loss(base)
    return base._replace(exact_inf=sum(map(Fraction, num[~both])) / sum(map(Fraction, num))) if mass_inf else base


def curve_pair(step: FromCurve, adjacency: str, add: bool) -> Loss:
    """Connect-the-dots on the given points [DGK+22, Alg. 1; maths C.8]: p_i = a_i (s_{i+} - s_{i-}), a = e^eps, s chord slopes.

    A symmetric guarantee bounds the mirrored curve as well [maths A10]: delta(-eps) = 1 - e^-eps + e^-eps delta(eps). A convex
    curve below all points is below their lower convex hull, which is taken. Long double throughout: a slope is known to
    `LDBL_ULP` times the deltas over the gap, which is each mass's error.
    """
    eps, delta = (np.array(a, dtype=np.longdouble) for a in (step.eps, step.delta))
    if step.symmetric:
        mirrored = eps > 0
        e, d = -eps[mirrored][::-1], delta[mirrored][::-1]
        eps, delta = np.r_[e, eps], np.r_[-np.expm1(e) + np.exp(e) * d, delta]
    a, delta = np.r_[0, np.exp(eps)], np.r_[1, delta]
    keep: list[int] = []
    for i in range(a.size):
        while len(keep) > 1 and (delta[i] - delta[keep[-1]]) * (a[keep[-1]] - a[keep[-2]]) <= (
            delta[keep[-1]] - delta[keep[-2]]
        ) * (a[i] - a[keep[-1]]):
            keep.pop()
        keep.append(i)
    a, delta, at = a[keep], delta[keep], eps[[i - 1 for i in keep[1:]]]
    gaps = np.diff(a)
    slopes = np.minimum(np.r_[np.diff(delta) / gaps, 0.0], 0.0)
    noise = np.r_[16 * LDBL_ULP * delta[:-1] / gaps, 0.0]
    den = np.diff(slopes)
    error = noise[1:] + noise[:-1] + 4 * LDBL_ULP * np.abs(slopes[:-1])
    ok = den > 0
    den, error, at = den[ok], error[ok], at[ok].astype(float)
    num = den * a[1:][ok]
    rel = (4 * U + 4 * LDBL_ULP + error / den).astype(float)
    tail = float(delta[-1]), float(max(0.0, 1 + slopes[0]))
    base = atomic_loss(at, num.astype(float), den.astype(float), edge=0.0, rel=rel, mass_inf=tail[0], mass_minus_inf=tail[1])
    return reversed_loss(base) if add and not step.symmetric else base._replace(exact_inf=Fraction(step.delta[-1]))


def cdf_pair(step: FromLossCdf, adjacency: str, add: bool) -> Loss:
    """The user's pair; ADD is its mirror image."""
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
    """The public mixture of [Gan25, Thms 3.1, 3.3, 3.4]; sampling.py. A SizeRange: one that dominates many of them."""
    if not sampling.reveals(step):
        return atomic_loss([0.0], [1.0], [1.0], edge=0.0, rel=0.0)
    plain = sampling.as_gaussian(step, adjacency)
    if plain and plain[1] == 1:
        return gaussian_loss(plain[0])
    pair = sampling.pair(step, adjacency)
    return sampling.pair_loss(pair.reversed() if add else pair)


PAIRS = {
    Gaussian: gaussian_pair,
    Laplace: laplace_pair,
    PoissonSubsampled: poisson_pair,
    TruncatedPoisson: truncated_pair,
    SizeRange: truncated_pair,
    DiscreteGaussian: discrete_gaussian_pair,
    DiscreteLaplace: discrete_laplace_pair,
    ApproxDP: approx_dp_pair,
    KAryRandomizedResponse: k_ary_pair,
    GaussianMixture: gaussian_mixture_pair,
    PublicMixture: public_mixture_pair,
    FromPmf: pmf_pair,
    FromCurve: curve_pair,
    FromLossCdf: cdf_pair,
}
"""The one table of mechanisms: class -> function(step, adjacency, add) -> Loss."""

MIRRORED = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace, ApproxDP)
"""Kinds whose pair is its own mirror image under any adjacency: both directions have one curve."""


def mirrored(run: Run, adjacency: str) -> bool:
    """Whether REMOVE and ADD have one curve: every pair is its own mirror image; under replace_one so are sampled steps'."""
    kinds = MIRRORED + ((PoissonSubsampled, TruncatedPoisson, SizeRange) if adjacency == "replace_one" else ())
    return all(isinstance(step, kinds) for step, _ in run.parts)
