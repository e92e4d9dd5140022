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


def replaced(queries: Any, name: str, run: Run, x: float, *, direction: str, **settings: Any) -> Bound[Any]:
    """The query of that name, of the run, whose two directions have one curve; `queries` as in worst.py."""
    roots = name == "epsilon"
    seen, shown = (compose(*((of(step), k) for step, k in run.parts)) for of in (_seen, _shown))
    ask = queries.epsilon if roots else queries.log_delta
    low, high = (ask(one, x, adjacency="replace_one", **settings) for one in (seen, shown))
    chain = (_root if roots else _point)(ask, run, x, settings | {"adjacency": "zero_out"})
    least, most = low.lower, min(high.upper, chain)
    if name == "delta":
        least, most = exp_lower(least), exp_upper(most)
    mid = least if least == -math.inf else 0.5 * (least + most)
    note = "between what the sum of all outputs shows and a record zeroed, then replaced"
    return Bound(least, mid, most, "exact", True, Budget({"chain": most - mid}, "eps" if roots else "delta"), note)


def _root(epsilon: Any, run: Run, delta: float, chain: dict[str, Any]) -> float:
    best = math.inf
    for share in SHARES:
        try:
            first = epsilon(run, max(share * delta, LEAST), direction="remove", **chain).upper
            rest = (1 - share) * delta * math.exp(-first) * (1 - 1e-12)
            if min(share * delta, rest) > LEAST:
                second = epsilon(run, rest, direction="add", **chain).upper
                best = min(best, (first + second) * (1 + 4 * U))  # [theory: allocation.replaced]
        except AccuracyError:
            continue
    return best


def _point(log_delta: Any, run: Run, eps: float, chain: dict[str, Any]) -> float:
    half = 0.5 * eps
    try:
        first, rest = (log_delta(run, half, direction=side, **chain).upper for side in ("remove", "add"))
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
