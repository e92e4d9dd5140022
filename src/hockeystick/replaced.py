"""Random allocation under replace_one: between what an observer of sums sees and two bounds from above.

A record is zeroed, then another one put in its place: H(e1 + e2) <= delta_REMOVE(e1) + e^e1 delta_ADD(e2) for every e1.
Or the steps of the record are revealed, which leaves Gaussian noise. The sum of an epoch's outputs is a Gaussian
mechanism [theory: allocation.replaced]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arguments import exp_lower, exp_upper
from .bound import AccuracyError, Bound, Budget
from .outward import UP, U
from .what.allocation import AllocationOfSeveral, RandomAllocation
from .what.mechanism import Gaussian, Run, compose

SHARES = (0.25, 0.5, 0.75)
"""Parts of delta for the first neighbour; the best is taken. Of eps it is a half: what is less balanced asks for tails
that take long and are rarely better."""

LEAST = 1e-300


def replaced(run: Run, x: float, *, roots: bool, log: bool, direction: str, **settings: Any) -> Bound[Any]:
    """delta(x), its logarithm or, with `roots`, eps(x) of the run, whose two directions have one curve."""
    from . import query

    seen, shown = (compose(*((of(step), k) for step, k in run.parts)) for of in (_seen, _shown))
    ask = query.epsilon if roots else query.log_delta
    low, high = (ask(one, x, adjacency="replace_one", **settings) for one in (seen, shown))
    chain = (_root if roots else _point)(query, run, x, settings | {"adjacency": "zero_out"})
    least, most = low.lower, min(high.upper, chain)
    if not (roots or log):
        least, most = exp_lower(least), exp_upper(most)
    mid = least if least == -math.inf else 0.5 * (least + most)
    note = "between what the sum of all outputs shows and a record zeroed, then replaced"
    return Bound(least, mid, most, "exact", True, Budget({"chain": most - mid}, "eps" if roots else "delta"), note)


def _root(query: Any, run: Run, delta: float, chain: dict[str, Any]) -> float:
    best = math.inf
    for share in SHARES:
        try:
            first = query.epsilon(run, max(share * delta, LEAST), direction="remove", **chain).upper
            rest = (1 - share) * delta * math.exp(-first) * (1 - 1e-12)
            if min(share * delta, rest) > LEAST:
                second = query.epsilon(run, rest, direction="add", **chain).upper
                best = min(best, (first + second) * (1 + 4 * U))  # [theory: allocation.replaced]
        except AccuracyError:
            continue
    return best


def _point(query: Any, run: Run, eps: float, chain: dict[str, Any]) -> float:
    half = 0.5 * eps
    try:
        first, rest = (query.log_delta(run, half, direction=side, **chain).upper for side in ("remove", "add"))
    except AccuracyError:
        return 0.0
    total = float(np.logaddexp(first, half + rest))  # [theory: allocation.replaced]
    return min(0.0, total + 8 * U * (1 + abs(half) + max(abs(total), abs(rest) if rest > -math.inf else 0.0)))


def _seen(step: Any) -> Any:
    """What the sum of an epoch's outputs shows of a step."""
    return step.below()[0] if isinstance(step, RandomAllocation | AllocationOfSeveral) else step


def _shown(step: Any) -> Any:
    """A step of which it is known when the record takes part."""
    if isinstance(step, RandomAllocation):
        return Gaussian(step.base.sigma, step.base.sensitivity * math.sqrt(step.epochs) * UP)
    if isinstance(step, AllocationOfSeveral):
        return Gaussian(step.base.sigma, step.base.sensitivity * math.sqrt(step.participations) * UP)
    return step
