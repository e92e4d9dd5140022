"""Cyclic sampling: a run whose curve is the largest of those of several runs.

Round i releases row i of C x plus noise, x_i a sum over a sample of group i mod b. A record of group g takes part in
rounds g, g + b, .. alone, whose columns of C, b-banded, meet no common row: with these columns for axes the noise has
independent entries, and each of these rounds is a (truncated) Poisson sample of the group with the norm of its column
for sensitivity. What other rounds add is known from the outputs before. So, given g and the size of the group, the run
is that composition, and a record may be there: the curve is the largest over groups and sizes: floor and ceil of n/b,
or any up to n where records are assigned one by one. A group of records has, of every rank of its parts' norms, the
largest: what is judged is the curve of that pair.

Of two lists of norms in falling order the larger one, entry by entry, dominates: a step of sensitivity c m, c < 1, is c
times one of sensitivity m with noise of variance 1 - c^2 added, also for mixtures of shifts."""

from __future__ import annotations

import itertools
import math
from typing import cast

from flint import fmpq

from ..what.batches import CyclicPoisson, TruncatedPoisson
from ..what.groups import Group
from ..what.mechanism import Gaussian, Mechanism, PoissonSubsampled, Run
from .balls import UndecidedError, rational

MAX_RUNS = 64
"""Most runs of which the largest curve is looked for."""


def settled(run: Run, adjacency: str) -> list[Run]:
    """The runs without cyclic steps of which the largest curve is that of `run`."""
    choices = [
        [[(one, n * k) for one, n in part] for part in _places(step, adjacency)]
        if isinstance(step, CyclicPoisson)
        else [[(step, k)]]
        for step, k in run.parts
    ]
    if math.prod(map(len, choices)) > MAX_RUNS:
        raise UndecidedError(f"cyclic steps leave more than {MAX_RUNS} kinds of groups")
    return [Run(tuple(itertools.chain(*parts))) for parts in itertools.product(*choices)]


def _places(step: CyclicPoisson, adjacency: str) -> list[list[tuple[Mechanism, int]]]:
    """The rounds of a record, for every place where it may be."""
    if adjacency == "add_remove" and step.bands > 1 and not step.per_record:
        raise UndecidedError("adjacency 'add_remove' is not defined where a record more changes the groups of others")
    sizes: set[int | None] = {None}
    if step.max_batch is not None:
        n, b = step.dataset_size, step.bands
        every = step.per_record and b > 1
        if every and n > MAX_RUNS:
            raise UndecidedError(f"a group of any size up to {n} is open")
        sizes = set(range(1, n + 1)) if every else {n // b, -(-n // b)}
    return [
        [(_round(step, norm, size), len(list(same))) for norm, same in itertools.groupby(norms)]
        if step.column_norms is not None
        else [(_round(step, norms[0], size), -(-step.iterations // step.bands))]
        for norms in _norms(step)
        for size in sizes
    ]


def _norms(step: CyclicPoisson) -> list[tuple[float, ...]]:
    """The norms of a record's rounds, of every part that no other dominates; (1,) for any number of rounds of 1."""
    if step.column_norms is None:
        return [(1.0,)]
    kinds = {
        tuple(sorted(step.column_norms[g :: step.bands], reverse=True)) for g in range(min(step.bands, step.iterations))
    }
    if step.records != 1:
        kinds = {tuple(map(max, itertools.zip_longest(*kinds, fillvalue=0.0)))}
    if len(kinds) > 1000:
        raise UndecidedError("cyclic steps leave too many kinds of groups")
    return [a for a in kinds if not any(a != b and _below(a, b) for b in kinds)]


def _below(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return len(a) <= len(b) and all(x <= y for x, y in zip(a, b, strict=False))


def _round(step: CyclicPoisson, norm: float, size: int | None) -> Mechanism:
    """One round, its sensitivity exact."""
    records = step.records

    def base(parts: fmpq) -> Gaussian:
        exact = rational(step.base.sensitivity) * rational(norm) * parts
        return Gaussian(step.base.sigma, cast(float, exact))

    if step.max_batch is not None:
        return TruncatedPoisson(base(fmpq(1)), step.q, cast(int, size), step.max_batch)
    if step.q == 1:
        return base(fmpq(records) if isinstance(records, int) else sum(map(rational, records), fmpq(0)))
    sampled = PoissonSubsampled(base(fmpq(1)), step.q)
    return sampled if records == 1 else Group(sampled, records)
