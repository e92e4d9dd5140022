"""Groups of records that come and go together: a user with several records, a family, a company.

One step without sampling moves by the sum of the records' contributions. On a Poisson sample each record has a coin of
its own: the sum that takes part is random, and of all contributions of these norms those along one line are the worst
[theory: pair.groups].
"""

from __future__ import annotations

import dataclasses
import decimal
import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, cast, overload

import numpy as np

from ..bound import DomainError
from .batches import CyclicPoisson, TruncatedPoisson
from .discrete import DiscreteGaussian, DiscreteLaplace, discrete_gaussian, discrete_laplace
from .mechanism import (
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSubsampled,
    Run,
    compose,
    count,
    gaussian,
    laplace,
    positive,
)

SIZE_MAX, SUMS_MAX = 1000, 4096
CUT_MAX, BATCH_MAX = 32, 10**6
"""Most records of a group in truncated samples, and the largest batch."""


@dataclass(frozen=True, slots=True)
class Group(Mechanism):
    """A Poisson-sampled Gaussian step and several records together; see `group`. records: how many, or the part of
    the step's sensitivity that each may contribute."""

    base: PoissonSubsampled
    records: int | tuple[float, ...]

    @property
    def noise(self) -> Gaussian:
        """The step without sampling."""
        return cast(Gaussian, self.base.base)

    def shifts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of contributions over sigma within 4u of themselves, their probabilities within u, the logarithms of
        these within 2u."""
        return _shifts(self)


@functools.lru_cache(64)
def _shifts(step: Group) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unit, parts = _parts(step.records)
    with decimal.localcontext(decimal.Context(prec=40, Emin=-(10**9), Emax=10**9)):
        q = decimal.Decimal(step.base.q)
        law = {0: decimal.Decimal(1)}
        for part in parts:
            found = {s: p * (1 - q) for s, p in law.items()}
            for s, p in law.items():
                found[s + part] = found.get(s + part, 0) + p * q
            law = found
        sums = sorted(law)
        logs = np.array([_log(law[s]) for s in sums])
    noise = step.noise
    m = noise.sensitivity / noise.sigma
    return np.array([float(s * unit) * m for s in sums]), np.array([float(law[s]) for s in sums]), logs


@dataclass(frozen=True, slots=True)
class GroupOfTruncated(Mechanism):
    """A Gaussian step on a truncated Poisson sample and several records together; see `group`."""

    base: TruncatedPoisson
    records: int
    sized: ClassVar[bool] = True

    def laws(self) -> tuple[tuple[float, np.ndarray, np.ndarray, np.ndarray], ...]:
        """For every number of other records in the batch that matters: its probability within u, and of the group how
        far the sum may move over sigma, the probabilities, and their logarithms, errors as in `Group.shifts`
        [theory: pair.groups-truncated]."""
        return _laws(self)


@functools.lru_cache(64)
def _laws(step: GroupOfTruncated) -> tuple[tuple[float, np.ndarray, np.ndarray, np.ndarray], ...]:
    """With S of all n records sampled and rho = Pr[S >= B]/Pr[S = B], of B - i others and j of the group the weights
    are Pr[others = B - i] Pr[group = j], j < i, and rho times that, j = i. Sums of positive terms, to 40 digits."""
    n, g, most, noise = step.base.sizes[0], step.records, step.base.max_batch, step.base.base
    found = []
    with decimal.localcontext(decimal.Context(prec=40, Emin=-(10**15), Emax=10**15)):
        odds = decimal.Decimal(step.base.q) / (1 - decimal.Decimal(step.base.q))
        own = [math.comb(g, j) * odds**j for j in range(g + 1)]
        unit = (1 - decimal.Decimal(step.base.q)) ** g
        if most >= n:
            found.append((unit, own))
        else:
            rho = _ratios(odds * (n - k) / (k + 1) for k in range(most, n))
            others = n - g
            at = _binomial(others, min(most, others), decimal.Decimal(step.base.q))  # of B others, or of all
            for m in range(min(most, others), max(most - g, 0) - 1, -1):
                i = most - m
                found.append((at * unit, [*own[:i], rho * own[i]]))
                at *= m / (odds * (others - m + 1))
            m = most - g - 1
            if m >= 0:
                found.append((at * unit * _ratios((k / (odds * (others - k + 1)) for k in range(m, 0, -1))), own))
        shift, out = noise.sensitivity / noise.sigma, []
        for weight, law in found:
            total = sum(law)
            parts = [p / total for p in law]
            each = np.array([float(p) for p in parts]), np.array([_log(p) for p in parts])
            out.append((float(weight * total), np.arange(len(law)) * shift, *each))
    return tuple(out)


def _ratios(factors: Iterable[decimal.Decimal]) -> decimal.Decimal:
    """1 + f_1 + f_1 f_2 + .., of falling factors."""
    total = term = decimal.Decimal(1)
    for factor in factors:
        term *= factor
        total += term
        if factor < 1 and term * factor < decimal.Decimal("1e-40") * total * (1 - factor):
            break
    return total


def _binomial(n: int, k: int, q: decimal.Decimal) -> decimal.Decimal:
    """Pr[Bin(n, q) = k]."""
    k, q = (k, q) if 2 * k <= n else (n - k, 1 - q)
    found = (1 - q) ** (n - k)
    for j in range(1, k + 1):
        found *= q * (n - j + 1) / j
    return found


def _log(p: decimal.Decimal) -> float:
    """decimal takes a while for logarithms: it is asked where a double does not hold p."""
    x = float(p)
    return math.log(x) if 1e-290 < x < 0.5 else math.log1p(-float(1 - p)) if x >= 0.5 else float(p.ln())


def _parts(records: int | tuple[float, ...]) -> tuple[Fraction, list[int]]:
    """The records' parts of a sensitivity as whole multiples of one unit."""
    if isinstance(records, int):
        return Fraction(1), [1] * records
    exact = [Fraction(x) for x in records]
    common = math.lcm(*(x.denominator for x in exact))
    whole = [int(x * common) for x in exact]
    divisor = math.gcd(*whole)
    return Fraction(divisor, common), [x // divisor for x in whole]


@overload
def group(step: Mechanism, size: int | Sequence[float]) -> Mechanism: ...
@overload
def group(step: Run, size: int | Sequence[float]) -> Run: ...
def group(step: Mechanism | Run, size: int | Sequence[float]) -> Mechanism | Run:
    """What `step` reveals about `size` records together: a user with several records, say.

    Without sampling the sensitivity is the group's. On a Poisson sample of rate q every record of the group takes part
    by a coin of its own, and j of them move the sum by at most j: sum_j binom(size, j) q^j (1-q)^(size-j) N(j, sigma^2)
    against N(0, sigma^2), for vectors, in both orders. This is the worst pair, attained, and so the answer is the curve
    itself, below post-hoc group privacy (eps times `size`, delta times an exponential of it).

    Parameters
    ----------
    step : Mechanism or Run
        Gaussian, Laplace or discrete noise; a Poisson sample of a Gaussian step; a truncated one, under "zero_out" and
        "replace_one"; cyclic sampling without `max_batch`, where all of a group in one part is the worst. In a run
        every step is that of the group.
    size : int or sequence of float
        Records, 1 to 1000, of truncated samples 32; or, for every record, its clip as a multiple > 0 of the sensitivity
        of `step`: records with clips of their own, whose sums may take 4096 different values.

    Returns
    -------
    Mechanism or Run
        Under "add_remove" and "zero_out" all records of the group come or go; under "replace_one" all are replaced by
        as many others of the same clips: sums on one side of 0 against sums on the other.

    Raises
    ------
    DomainError
        If nothing is proved about groups for a step: batches of a fixed size, truncated samples of a range of sizes or
        of records with clips of their own, random allocation, and mechanisms known by a curve (their group privacy is a
        bound that follows from the curve alone).

    Notes
    -----
    On a truncated sample the group's records and all others compete for places: given the others that are used, and how
    many, the group's are few or as many as there is room for. Records that are zeroed keep their places; records that
    come or go ("add_remove") would move others, and are refused. A group of one is the step itself, whose published
    pair [Gan25] may lie above that of two.

    Conditions C1 to C5 of `random_allocation` hold for every record of the group, with a coin of its own in every step
    in place of the step that is drawn: coins are independent of the data, of all outputs, of each other and of those
    of all other records (C1), sums are divided by public constants (C2), the contribution of every record is within
    its clip (C3), nobody learns who took part or how many (C4), noise and rates are fixed in advance (C5).

    References
    ----------
    docs/theory/pairs.md, pair.groups and pair.groups-truncated.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.poisson_subsampled(hs.gaussian(2.0), 0.01)
    >>> one, four = (hs.epsilon(hs.group(step, size) * 1000, 1e-6) for size in (1, 4))
    >>> f"{one:.6f} {four:.6f}"
    '[0.720916, 0.720917] [3.269887, 3.269888]'
    """
    if isinstance(step, Run):
        return compose(*((group(part, size), k) for part, k in step.parts))
    if not isinstance(step, Mechanism):
        raise DomainError(f"group takes a mechanism or a run, got {step!r}")
    records = _records(size)
    total = float(sum(map(Fraction, records))) if isinstance(records, tuple) else records
    if total == 1 and records in (1, (1.0,)):
        return step
    if isinstance(step, Gaussian):
        return gaussian(step.sigma, sensitivity=step.sensitivity * total)
    if isinstance(step, Laplace):
        return laplace(step.scale, sensitivity=step.sensitivity * total)
    if isinstance(step, DiscreteGaussian | DiscreteLaplace):
        if not float(total).is_integer():
            raise DomainError(f"clips of integer noise must add up to an integer, got {size!r}")
        whole = step.sensitivity * int(total)
        if isinstance(step, DiscreteGaussian):
            return discrete_gaussian(step.sigma, sensitivity=whole)
        return discrete_laplace(step.scale, sensitivity=whole)
    if isinstance(step, PoissonSubsampled) and isinstance(step.base, Gaussian):
        gaussian(step.base.sigma, sensitivity=step.base.sensitivity * total)  # refuses what a double cannot carry
        return Group(step, records)
    if isinstance(step, TruncatedPoisson) and not step.open and step.q < 1 and isinstance(records, int):
        n, large = step.sizes[0], max(step.max_batch, step.q * step.sizes[0])
        if records > min(CUT_MAX, n) or large > BATCH_MAX:
            raise DomainError(
                f"a group in a truncated sample must have at most {CUT_MAX} records, of the dataset_size={n}, where"
                f" max_batch and the expected batch are at most {BATCH_MAX}, got {records} and {large:g}"
            )
        return GroupOfTruncated(step, records) if step.q > 0 and step.max_batch > 0 else step
    if isinstance(step, CyclicPoisson) and step.max_batch is None:
        return dataclasses.replace(step, records=records)
    raise DomainError(
        "group takes Gaussian, Laplace or discrete noise, a Poisson sample of a Gaussian step, a truncated one of one"
        f" dataset_size and equal clips, or cyclic sampling without max_batch, got {step!r}"
    )


def _records(size: int | Sequence[float]) -> int | tuple[float, ...]:
    if not isinstance(size, Sequence | np.ndarray) or isinstance(size, str) or not np.ndim(size):
        return count("size", size, 1, SIZE_MAX)
    clips = tuple(sorted(positive(f"size[{i}]", x) for i, x in enumerate(size)))
    if not 1 <= len(clips) <= SIZE_MAX:
        raise DomainError(f"size must hold 1 to {SIZE_MAX} clips, got {len(clips)}")
    if set(clips) == {1.0}:
        return len(clips)
    sums = {0}
    for part in _parts(clips)[1]:
        sums |= {s + part for s in sums}
        if len(sums) > SUMS_MAX:
            raise DomainError(
                f"clips of size must have at most {SUMS_MAX} different sums: round them up to multiples of one number, "
                f"got {clips[:4]!r}, ..."
            )
    return clips
