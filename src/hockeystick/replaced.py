"""Random allocation under replace_one: from above by two neighbours, from below by what an observer sees.

A record is zeroed, then another one put in its place: H(e1 + e2) <= delta_REMOVE(e1) + e^e1 delta_ADD(e2) for every e1
[theory: allocation.replaced]. The sum of the outputs is a Gaussian mechanism.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .bound import AccuracyError, Bound, Budget
from .outward import U
from .routes.bounds import moments_upper
from .what.allocation import AllocationOfSeveral, RandomAllocation
from .what.mechanism import Gaussian, Run, compose

SHARES = (0.25, 0.5, 0.75)
"""Parts of delta for the first neighbour; the best is taken. Of eps it is a half: what is less balanced asks for tails
that take long and are rarely better."""

LEAST = 1e-300
NOTHING = 30.0
"""Nats below the first neighbour from which Chernoff's bound of the second will do."""


def replaced(run: Run, x: float, *, roots: bool, log: bool, direction: str, **settings: Any) -> Bound[Any]:
    """delta(x), its logarithm or, with `roots`, eps(x) of the run, whose two directions have one curve."""
    from . import query

    chain: dict[str, Any] = settings | {"adjacency": "zero_out"}
    seen = compose(*((_seen(step), k) for step, k in run.parts))
    if roots:
        low = query.epsilon(seen, x, adjacency="replace_one", **settings).lower
        high = min(_root(query, run, x, share, chain) for share in SHARES)
        if high == math.inf:
            raise AccuracyError(f"eps at delta={x!r} is beyond the two curves whose sum bounds it")
    else:
        low = query.log_delta(seen, x, adjacency="replace_one", **settings).lower
        high = min(0.0, _point(query, run, x, chain))
        if not log:
            low, high = math.exp(low) * (1 - 4 * U * (1 + abs(low))), min(math.exp(high) * (1 + 4 * U * abs(high)), 1.0)
    mid = low if low == -math.inf else 0.5 * (low + high)
    note = "between what the sum of all outputs shows and a record zeroed, then replaced"
    return Bound(low, mid, high, "exact", True, Budget({"chain": high - mid}, "eps" if roots else "delta"), note)


def _root(query: Any, run: Run, delta: float, share: float, chain: dict[str, Any]) -> float:
    first = query.epsilon(run, max(share * delta, LEAST), direction="remove", **chain).upper
    rest = (1 - share) * delta * math.exp(-first) * (1 - 1e-12)
    if not min(share * delta, rest) > LEAST:
        return math.inf
    return (first + query.epsilon(run, rest, direction="add", **chain).upper) * (1 + 4 * U)


def _point(query: Any, run: Run, eps: float, chain: dict[str, Any]) -> float:
    half = 0.5 * eps
    first = query.log_delta(run, half, direction="remove", **chain).upper
    enough = first - half - NOTHING
    rest = moments_upper(run, "zero_out", True, half, enough) if half > 0 else 0.0
    if rest > enough:
        rest = min(rest, query.log_delta(run, half, direction="add", **chain).upper)
    total = float(np.logaddexp(first, half + rest))  # [theory: allocation.replaced]
    return total + 8 * U * (1 + abs(half) + max(abs(total), abs(rest) if rest > -math.inf else 0.0))


def _seen(step: Any) -> Any:
    """What the sum of all outputs shows of a step."""
    if isinstance(step, AllocationOfSeveral):
        return step.below()[0]
    if isinstance(step, RandomAllocation):
        return Gaussian(math.sqrt(step.steps) / step.shift * (1 + 16 * U), 1.0)
    return step
