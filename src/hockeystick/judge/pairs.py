"""From what ran to its dominating pair (num, den), direction "remove"; "add" is the pair turned round.

D and D' are the two data sets, D with the record. H_a(P | Q) = sup_S P(S) - a Q(S). A pair dominates a step if its H_a
is at least that of any two outputs, for all a >= 0; then products of pairs dominate compositions [ZDW22, Thm 10]. The
pairs, and why they dominate:

Gaussian, N(m, 1) | N(0, 1), m = sensitivity/sigma: H of N(u) | N(0) is one-dimensional, along u, and rises with |u|.
  replace_one: two outputs within 2m of each other, so 2m for m; zero_out: a zeroed record adds nothing, as an absent
  one.
Laplace, f_m | f_0, m = sensitivity/scale: H_a(f_u | f_v) = max(0, 1 - sqrt(a) e^{-|u-v|/2}) for |log a| <= |u-v|, which
  rises with |u - v| (scalar queries; for vectors of L1 sensitivity this pair is taken by definition of the mechanism).
Discrete Gaussian and Laplace: the same on the integers, shift D. For a log-concave pmf f the set S = {f(x-d) > a f(x)}
  is a half-line [t, oo), and f(S - d) - a f(S) does not fall as d grows with S fixed: the largest shift is worst.
approx_dp: an outcome of num probability delta0 and den probability 0, its mirror image, else truth with odds e^eps0
  [KOV15, Thm 3.4].
bounded_range: judge/ranged.py.
k-ary, b = 1/(e^eps0 + k - 1): masses e^eps0 b, b, (k-2) b against b, e^eps0 b, (k-2) b, by definition; zero_out:
against 1/k. Poisson sampling, add_remove: q num + (1-q) den | den. Given the other sampled records the outputs are q P
+ (1-q) Q and Q; H_a
  is jointly convex [theory: pair.convexity], and H_a(qP + (1-q)Q | Q) = q H_b(P | Q), b = (a - 1 + q)/q, keeps
  domination; the other order likewise. replace_one (Gaussian, Laplace): q N(m) + (1-q) N(0) | q N(-m) + (1-q) N(0),
  opposite contributions of full size [Gan25, Thm 3.4 where nothing is truncated]; for scalar Laplace noise both tails
  are monotone in the two contributions as well.
Truncated Poisson of n records at rate p, at most B: with probability 1-w as above, with probability w = Pr[Bin(n-1, p)
  >= B] b(q, 2) | N(0) (add_remove), b(q, 2) | b(q, -1) (zero_out), b(q, 2) | b(q, -2) (replace_one), b(c, u) = (1-c)
  N(0) + c N(u m) [Gan25, Thms 3.1, 3.3, 3.4], q = p E[B/(s+1) | s >= B], s ~ Bin(n-1, p). As C(n-1, s)/(s+1) = C(n,
  s+1)/n, q = B Pr[Bin(n, p) >= B+1]/(n w), and both tails are regularised incomplete beta functions. p = 1: w = 1, q =
  B/n.
group: given the other records, the centre moves by the sum of the contributions whose coins fell so; of mixtures of
  normal laws whose centres are no further out the worst lie on a line, those of num on one side of 0, of den on the
  other [theory: pair.comparison].
random_allocation: Q = N(0, I_t) against the mean of N(m e_i, I_t), i = 1..t [theory: allocation.comparison]; a bin kept
  for E epochs has m sqrt(E). Several participations: several.py.
from_pmf: the given vectors, each over its exact sum. Mixtures: by their definition; the choice of a part is public.
from_curve: H of a finite law is convex and piecewise linear in a = e^eps with H(0) = 1: den has the jump of slope at a
  corner a_i, num is a_i times as large, the rest of num is at +inf, the rest of den at -inf. A convex curve below the
  given points and 1 at a = 0 lies below their lower convex hull. Symmetric: H(1/a) = 1 - 1/a + H(a)/a gives the points
  mirrored, and the mass of den at -inf is that of num at +inf, which is taken from there: 1 + (the first slope) may
  cancel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from flint import arb, fmpq

from ..what.allocation import RandomAllocation
from ..what.batches import CyclicPoisson, TruncatedPoisson
from ..what.discrete import ApproxDP, DiscreteGaussian, DiscreteLaplace, KAryRandomizedResponse
from ..what.given import FromCurve, FromPmf, GaussianMixture, PublicMixture
from ..what.groups import Group, GroupOfTruncated
from ..what.mechanism import Gaussian, Mechanism, PoissonSubsampled
from ..what.mechanism import Laplace as LaplaceStep
from ..what.ranged import BoundedRange
from . import several
from .allocation import Allocation
from .atoms import Atoms, Mixture, joined
from .balls import UndecidedError, rational
from .gauss import Gauss
from .laplace import Laplace, ReplacedLaplace
from .ranged import Range

MAX_OUTCOMES = 6000
MAX_SUM = 2000


def law(step: Mechanism, adjacency: str):
    """The law of a step in the direction "remove", at the working precision; None where nothing is ever used."""
    make = _LAWS.get(type(step))
    if make is None:
        raise UndecidedError(f"no transform or finite law is written here for {type(step).__name__}")
    return make(step, adjacency)


def _arb(x) -> arb:
    return arb(rational(x))


def _branch(top, bottom, m: arb):
    """One branch: rates and shifts (in units of m) on both sides of N(0)."""
    sides = []
    for rate, shift in (top, bottom):
        sides.append(
            [(arb(1), arb(0))]
            if not shift
            else [(arb(1), shift * m)]
            if rate == 1
            else [(1 - rate, arb(0)), (rate, shift * m)]
        )
    return sides


def _gaussian(step: Gaussian, adjacency: str) -> Gauss:
    m = arb(rational(step.sensitivity) / rational(step.sigma)) * (2 if adjacency == "replace_one" else 1)
    return Gauss([(arb(1), [(arb(1), m)], [(arb(1), arb(0))])])


def _laplace(step: LaplaceStep, adjacency: str) -> Laplace:
    return Laplace(arb(rational(step.sensitivity) / rational(step.scale)) * (2 if adjacency == "replace_one" else 1))


def _sampled(step: PoissonSubsampled, adjacency: str):
    q, base = _arb(step.q), step.base
    noisy = isinstance(base, Gaussian | LaplaceStep | DiscreteGaussian | DiscreteLaplace)
    if adjacency == "replace_one" and isinstance(base, Gaussian):
        m = arb(rational(base.sensitivity) / rational(base.sigma))
        return Gauss([(arb(1), *_branch((q, 1), (q, -1), m))])
    if adjacency == "replace_one" and isinstance(base, LaplaceStep):
        return ReplacedLaplace(arb(rational(base.sensitivity) / rational(base.scale)), q)
    if adjacency != "add_remove" and not (noisy and adjacency == "zero_out"):
        raise UndecidedError(f"adjacency {adjacency!r} is not covered for {step!r}")
    _refuse_fixed(base)
    return law(base, "add_remove").sampled(q)  # [theory: pair.convexity, pair.poisson]


def _refuse_fixed(step) -> None:
    if isinstance(step, TruncatedPoisson | CyclicPoisson) or any(map(_fixed, getattr(step, "parts", ()))):
        raise UndecidedError("a sample of a step whose pair holds for one dataset size has no known pair")


def _fixed(step) -> bool:
    return isinstance(step, TruncatedPoisson | CyclicPoisson) or any(map(_fixed, getattr(step, "parts", ())))


def _truncated(step: TruncatedPoisson, adjacency: str):
    if isinstance(step.dataset_size, tuple):
        raise UndecidedError("a range of dataset sizes is open")
    n, cap, p = step.dataset_size, step.max_batch, rational(step.q)
    if n == 0 or cap == 0 or p == 0:
        return None
    m = arb(rational(step.base.sensitivity) / rational(step.base.sigma))
    if cap >= n:
        w, q, rest = arb(0), arb(0), arb(1)
    elif p == 1:
        w, q, rest = arb(1), arb(fmpq(cap, n)), arb(0)
    else:
        w, rest = _binomial_tail(n - 1, p, cap)
        q = cap * _binomial_tail(n, p, cap + 1)[0] / (n * w)
    down = {"add_remove": (0, 0), "zero_out": (0, -1), "replace_one": (-1, -2)}[adjacency]
    branches = []
    if not rest.is_zero():
        rate = arb(p) if p < 1 else 1
        branches.append((rest, *_branch((rate, 1), (rate, down[0]), m)))
    if not w.is_zero():
        branches.append((w, *_branch((q, 2), (q, down[1]), m)))
    return Gauss(branches)


def _group_of_truncated(step: GroupOfTruncated, adjacency: str):
    """By how many others are used. At least B of all n are sampled with probability w, and a uniform B of n are used
    then; else nothing is left out."""
    if adjacency == "add_remove":
        raise UndecidedError(f"adjacency {adjacency!r} is not defined for {step!r}")
    (n, _), cap, g = step.base.sizes, step.base.max_batch, step.records
    p, m = rational(step.base.q), arb(rational(step.base.base.sensitivity) / rational(step.base.base.sigma))

    def mass(size: int, k: int) -> arb:
        return arb.bin_uiui(size, k) * arb(p) ** k * arb(1 - p) ** (size - k) if 0 <= k <= size else arb(0)

    own = [mass(g, j) for j in range(g + 1)]
    rows = [own] if cap >= n else []
    if cap < n:
        w, whole = _binomial_tail(n, p, cap)[0], arb.bin_uiui(n, cap)
        for i in range(min(g, cap) + 1):
            others = mass(n - g, cap - i)
            full = w * arb.bin_uiui(g, i) * arb.bin_uiui(n - g, cap - i) / whole if cap - i <= n - g else arb(0)
            rows.append([*(others * q for q in own[:i]), full])
        if cap > g:
            rest = _binomial_tail(n - g, p, cap - g)[1]
            rows.append([rest * q for q in own])
    branches = []
    for row in rows:
        total = sum(row, arb(0))
        if not total.is_zero():
            top = [(q / total, j * m) for j, q in enumerate(row)]
            branches.append(
                (total, top, [(q, -s) for q, s in top] if adjacency == "replace_one" else [(arb(1), arb(0))])
            )
    return Gauss(branches)


def _binomial_tail(n: int, p: fmpq, b: int) -> tuple[arb, arb]:
    """Pr[Bin(n, p) >= b] and Pr[Bin(n, p) < b], 1 <= b <= n: a short sum, or the regularised incomplete beta function
    I_p(b, n - b + 1)."""
    if b <= MAX_SUM:
        term = (n * arb(1 - p).log()).exp()
        rest, odds = arb(0), arb(p / (1 - p))
        for s in range(b):
            rest += term
            term *= odds * (n - s) / (s + 1)
        if 1 - rest > rest:
            return 1 - rest, rest
    elif n * p > b and (n * p - b) ** 2 > 1600 * n * p:
        raise UndecidedError("a binomial tail is too near 1")
    found = arb(p).beta_lower(b, n - b + 1, regularized=True)
    if not (found.is_finite() and found > 0):
        raise UndecidedError("a binomial tail cannot be resolved")
    return found, 1 - found


def _discrete_gaussian(step: DiscreteGaussian, adjacency: str) -> Atoms:
    """num(x) = f(x), den(x) = f(x - D) up to mirroring x; the loss is D (D - 2x)/(2 sigma^2). Outcomes far out are left
    out: f falls by more than e^{-(2r+1)/(2 sigma^2)} from r to r + 1, a geometric series."""
    d, sigma = step.sensitivity * (2 if adjacency == "replace_one" else 1), _arb(step.sigma)
    s = step.sigma
    reach = math.ceil(min(max(60.0 * s, 3.0), max(0.5 * MAX_OUTCOMES, 12 * s))) + d
    if 2 * reach > 2 * MAX_OUTCOMES:
        raise UndecidedError(f"a discrete Gaussian law has more than {2 * MAX_OUTCOMES} outcomes")
    f = {x: (-(arb(x) ** 2) / (2 * sigma**2)).exp() for x in range(reach + d + 2)}
    last = reach + d + 1
    rest = f[last] / (1 - (-arb(2 * last + 1) / (2 * sigma**2)).exp())
    total = f[0] + 2 * sum((f[x] for x in range(1, last)), arb(0)) + arb(0).union(2 * rest)
    # Outcomes x = -reach .. reach + d: below and above, num and den are tails of f.
    outcomes = [(f[abs(x)] / total, f[abs(x - d)] / total) for x in range(-reach, reach + d + 1)]
    edge = f[reach + 1] / (1 - (-arb(2 * reach + 3) / (2 * sigma**2)).exp()) / total
    return Atoms(outcomes, arb(d) / sigma**2, [-x for x in range(-reach, reach + d + 1)], 2 * edge, 2 * edge)


def _discrete_laplace(step: DiscreteLaplace, adjacency: str) -> Atoms:
    """With r = e^{-1/scale}: f(x) = r^|x| (1-r)/(1+r) against f(x - D): the losses (D - 2j)/scale for x = j in 0..D,
    whose ends hold all outcomes beyond, of probability 1/(1+r) and r^D/(1+r)."""
    d = step.sensitivity * (2 if adjacency == "replace_one" else 1)
    if d > MAX_OUTCOMES:
        raise UndecidedError(f"a discrete Laplace law has more than {MAX_OUTCOMES} outcomes")
    r = (-1 / _arb(step.scale)).exp()
    num = [1 / (1 + r), *(r**j * (1 - r) / (1 + r) for j in range(1, d)), r**d / (1 + r)]
    return Atoms(zip(num, reversed(num), strict=True), 2 / _arb(step.scale), [-j for j in range(d + 1)])


def _approx(step: ApproxDP, adjacency: str) -> Atoms:
    d0, e0 = _arb(step.delta0), _arb(step.eps0)
    ends = [] if step.delta0 == 0 else [(d0, arb(0)), (arb(0), d0)]
    if step.eps0 == 0:
        return _ending(Atoms([*ends, (1 - d0, 1 - d0)]), e0)
    large = 1 / (1 + (-e0).exp())
    small = large * (-e0).exp()
    row = [((1 - d0) * large, (1 - d0) * small), ((1 - d0) * small, (1 - d0) * large)]
    return _ending(Atoms([*row, *ends], 2 * e0, [1, 0, *(9 for _ in ends)]), e0)


def _ending(law: Atoms, largest: arb) -> Atoms:
    """The law, its own mirror image, whose largest finite loss is known exactly."""
    law.largest, law.mirrored = largest, True
    return law


def _k_ary(step: KAryRandomizedResponse, adjacency: str) -> Atoms | None:
    e0, k = _arb(step.eps0), step.k
    if step.eps0 == 0:
        return None
    small = 1 / (e0.exp() + (k - 1))
    large = 1 / (1 + (k - 1) * (-e0).exp())
    if adjacency == "replace_one":
        outcomes = [(large, small), (small, large)]
        if k == 2:
            return Atoms(outcomes, 2 * e0, [1, 0])
        return Atoms([*outcomes, ((k - 2) * small, (k - 2) * small)], e0, [1, -1, 0])
    if adjacency != "zero_out":
        raise UndecidedError(f"adjacency {adjacency!r} is not defined for {step!r}")
    return Atoms([(large, arb(fmpq(1, k))), ((k - 1) * small, arb(fmpq(k - 1, k)))], e0, [1, 0])


def _gaussian_mixture(step: GaussianMixture, adjacency: str) -> Gauss:
    if adjacency != "add_remove":
        raise UndecidedError(f"adjacency {adjacency!r} is not covered for {step!r}")
    merged: dict[float, fmpq] = {}
    for p, s in zip(step.probabilities, step.shifts, strict=True):
        merged[s] = merged.get(s, fmpq(0)) + rational(p)
    total = sum(merged.values(), fmpq(0))
    top = [(arb(p / total), arb(rational(s) / rational(step.sigma))) for s, p in merged.items()]
    return Gauss([(arb(1), top, [(arb(1), arb(0))])])


def _group(step: Group, adjacency: str) -> Gauss:
    """Every record's coin moves the sum by its own part, or leaves it."""
    parts = [1.0] * step.records if isinstance(step.records, int) else list(step.records)
    q, noise = rational(step.base.q), step.noise
    laws = {fmpq(0): fmpq(1)}
    for part in map(rational, parts):
        more: dict[fmpq, fmpq] = {}
        for s, p in laws.items():
            more[s] = more.get(s, fmpq(0)) + p * (1 - q)
            more[s + part] = more.get(s + part, fmpq(0)) + p * q
        laws = more
    unit = rational(noise.sensitivity) / rational(noise.sigma)
    top = [(arb(p), arb(s * unit)) for s, p in laws.items()]
    if adjacency == "replace_one":
        return Gauss([(arb(1), top, [(p, -s) for p, s in top])])
    return Gauss([(arb(1), top, [(arb(1), arb(0))])])


def _allocation(step: RandomAllocation, adjacency: str) -> Allocation:
    if adjacency == "replace_one":
        raise UndecidedError(f"adjacency {adjacency!r} is not covered for {step!r}")
    m = arb(rational(step.base.sensitivity) / rational(step.base.sigma)) * arb(step.epochs).sqrt()
    return Allocation(m, step.steps)


def _public_mixture(step: PublicMixture, adjacency: str):
    total = sum(map(rational, step.weights), fmpq(0))
    parts: list[tuple[arb, Any]] = []
    for part, weight in zip(step.parts, step.weights, strict=True):
        own = law(part, adjacency)
        parts.append((arb(rational(weight) / total), Atoms([(arb(1), arb(1))]) if own is None else own))
    if len(parts) == 1:
        return parts[0][1]
    if all(isinstance(p, Gauss) for _, p in parts):
        return Gauss([(w * v, a, b) for w, p in parts for v, a, b in p.branches])
    if all(isinstance(p, Atoms) for _, p in parts):
        return joined(parts)
    return Mixture(parts)


def _from_pmf(step: FromPmf, adjacency: str) -> Atoms:
    """Outcomes of one ratio are joined, in exact arithmetic."""
    num, den = ([rational(x) for x in side] for side in (step.num, step.den))
    sums = sum(num, fmpq(0)), sum(den, fmpq(0))
    same: dict = {}
    for n, d in zip(num, den, strict=True):
        key = n / d if d != 0 else None
        a, b = same.get(key, (fmpq(0), fmpq(0)))
        same[key] = a + n, b + d
    out = Atoms([(arb(a / sums[0]), arb(b / sums[1])) for a, b in same.values()])
    finite = [i for i, (n, d) in enumerate(out.outcomes) if not (n.is_zero() or d.is_zero())]
    if len(finite) == 2:
        first, second = (out.outcomes[i][0] / out.outcomes[i][1] for i in finite)
        larger = finite[0] if first > second else finite[1] if second > first else None
        if larger is not None:
            out.gap = abs((first / second).log())
            out.indices = [1 if i == larger else 0 for i in range(len(out.outcomes))]
    return out


def _from_curve(step: FromCurve, adjacency: str) -> Atoms:
    eps, delta = [rational(x) for x in step.eps], [arb(rational(x)) for x in step.delta]
    points = [(arb(e).exp(), d) for e, d in zip(eps, delta, strict=True)]
    if step.symmetric:
        mirrored = [(1 / a, 1 - 1 / a + d / a) for (a, d), e in zip(points, eps, strict=True) if e > 0]
        points = [*reversed(mirrored), *points]
    hull = [(arb(0), arb(1))]
    for a, d in points:
        while len(hull) > 1:
            (a0, d0), (a1, d1) = hull[-2:]
            turn = (d - d1) * (a1 - a0) - (d1 - d0) * (a - a1)
            if turn > 0:
                break
            if not turn <= 0:
                raise UndecidedError("three points of a curve lie on one line within rounding")
            hull.pop()
        hull.append((a, d))
    slopes = [(d1 - d0) / (a1 - a0) for (a0, d0), (a1, d1) in itertools.pairwise(hull)]
    slopes = [s if s < 0 else arb(0) if s >= 0 else s for s in slopes] + [arb(0)]
    outcomes = []
    for (a, _), before, after in zip(hull[1:], slopes[:-1], slopes[1:], strict=True):
        den = after - before
        if den > 0:
            outcomes.append((a * den, den))
        elif not den.is_zero():
            raise UndecidedError("two chords of a curve have one slope within rounding")
    last = hull[-1][1]
    a, d = hull[1]
    rest = last if step.symmetric else (d - (1 - a)) / a
    if not last.is_zero():
        outcomes.append((last, arb(0)))
    if rest > 0:
        outcomes.append((arb(0), rest))
    elif not rest.is_zero():
        raise UndecidedError("a curve starts below 1 - e^eps, or there within rounding")
    return Atoms(outcomes)


_LAWS: dict[type[Mechanism], Callable[..., Any]] = {
    Gaussian: _gaussian,
    LaplaceStep: _laplace,
    PoissonSubsampled: _sampled,
    TruncatedPoisson: _truncated,
    DiscreteGaussian: _discrete_gaussian,
    DiscreteLaplace: _discrete_laplace,
    ApproxDP: _approx,
    BoundedRange: lambda step, _: Range(_arb(step.eps0)),
    KAryRandomizedResponse: _k_ary,
    GaussianMixture: _gaussian_mixture,
    Group: _group,
    GroupOfTruncated: _group_of_truncated,
    RandomAllocation: _allocation,
    PublicMixture: _public_mixture,
    FromPmf: _from_pmf,
    FromCurve: _from_curve,
    several.Moved: several.law,
    several.Largest: several.law,
}
