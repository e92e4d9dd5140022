"""The certified maximum over what is not known: the dataset size within a range, the group of a record under cyclic
sampling.

Sizes. eps is not monotone in n: with n the weight w_n of truncation rises and its rate q_n falls (Bin(N, p) increases
in N in the likelihood ratio order, also given s >= B, and B/(s+1) falls in s). Up to n = B all sizes have one pair. For
n1 <= n <= n2
  (1-w_n) A + w_n B(q_n)  is dominated by  (1-w_n2) A + w_n1 B(q_n1) + (w_n2 - w_n1) C,   C = B(p) [theory: pair.sizes],
because C dominates A (half-lines: larger shifts, the same rate) and B(q) (monotone in q), so every part of the left
side is moved to one that dominates it (sampling.py). Branch and bound [theory: risk.worst-size]: sizes are evaluated, a
range between two of them is bounded by its dominating pair and halved, most promising first, until no range can exceed
the largest lower bound by more than the tolerance. What Chernoff's bound shows to lie below that lower bound is not
evaluated.

Groups. Given the rounds of the other groups [theory: pair.cyclic], which do not hold the record and are the same for
both data sets, its own R rounds are a composition of steps on a group of m records: m = floor or ceil n/b, or any of
1..n where every record is assigned on its own. That holds for add/remove wherever the neighbour leaves the other
records in their groups. Of the R sensitivities of a group's rounds only the multiset counts; one that is below another
entry by entry is dominated."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .bound import AccuracyError, Bound, Budget, DomainError, HockeystickError
from .outward import DOWN, UP, U
from .replaced import replaced
from .routes.bounds import certainly_below
from .what.allocation import allocates
from .what.batches import CyclicPoisson, SizeRange, TruncatedPoisson
from .what.given import FromCurve, FromPmf
from .what.groups import group
from .what.matrix import without_failures
from .what.mechanism import Gaussian, Run, compose, poisson_subsampled
from .what.pair import paired_steps
from .what.replacement import Multiplicities, WithReplacement
from .what.topk import BETWEEN, alone, enclosed

NEAR = (32.0, 128.0, 8.0, 2.0)
"""Orders of moments that may prove a curve negligible beside a failure, the likeliest first."""

RTOL = 1e-3
"""Relative width aimed at without `rtol`."""

MAX_ASKED = 400
"""Most sizes and ranges evaluated for one number."""

MAX_KINDS = 256


def unsettled(run: Run, adjacency: str = "") -> bool:
    """Whether the run leaves a size or a group open, or is known between two curves only."""
    found = run._cache.get("unsettled")
    if found is None:
        found = run._cache["unsettled"] = any(s.open for s, _ in run.parts)
    return found or (adjacency == "replace_one" and allocates(run))


def _named(run: Run, settings: dict) -> dict:
    """Many atoms on no lattice: no line."""
    atoms = run.steps > 1 and any(isinstance(step, FromCurve | FromPmf | Multiplicities) for step, _ in run.parts)
    return settings | {"route": "pld"} if atoms and settings.get("route") == "auto" else settings


class Queries(NamedTuple):
    """The queries, handed down by query.py, which stands above."""

    delta: Callable[..., Bound[Any]]
    log_delta: Callable[..., Bound[Any]]
    epsilon: Callable[..., Bound[Any]]


def maximum(queries: Queries, name: str, run: Run, at, *, rtol, adjacency: str, **settings) -> Bound[Any]:
    """The largest of the query of that name over everything that `run` leaves open; array arguments entry by entry.

    Of log_delta rtol is about delta."""
    query, log, roots = getattr(queries, name), name == "log_delta", name == "epsilon"
    moves = any(isinstance(s, CyclicPoisson) and s.bands > 1 and not s.per_record for s, _ in run.parts)
    if moves and adjacency == "add_remove":
        raise DomainError(
            "adjacency 'add_remove' is not defined for cyclic sampling: one record more or less moves others between"
            " groups; use 'zero_out' or 'replace_one', or per_record=True if the group of a record depends on that"
            " record alone"
        )
    if adjacency != "replace_one" and any(isinstance(s, WithReplacement) for s, _ in run.parts):
        raise DomainError(f"with_replacement is proved under adjacency 'replace_one', got {adjacency!r}")
    kinds = run._cache.get("kinds") or run._cache.setdefault("kinds", _kinds(run))
    entries = np.asarray(at, dtype=object).ravel().tolist()

    def ask(which, x):
        lost, which = without_failures(which)
        if not lost:
            return sure(which, x)
        if roots:
            return sure(which, (x - lost) * DOWN) if x > lost else Bound(*3 * (math.inf,), "exact", True, Budget({}))
        sides = {"adjacency": adjacency, "direction": settings.get("direction", "both")}
        few = len(which.parts) <= 32  # of more distinct steps a line costs less than moments
        rest = _negligible(which, x, lost * 1e-16, **sides) if few else None
        try:
            if rest is None:
                return _beside(sure(which, x), lost, log)
        except AccuracyError:
            rest = None if few else _negligible(which, x, lost * 1e-16, **sides)
            if rest is None:
                raise
        return _beside(Bound(0.0, 0.0, rest, "moments", True, Budget({"chernoff": rest})), lost, log, curve=False)

    def sure(which, x):
        if adjacency == "replace_one" and allocates(which):
            return replaced(queries, name, which, x, **settings)
        known = alone(which, x, roots=roots, log=log) if settings.get("route", "auto") == "auto" else None
        if known:
            low, high = known
            budget = Budget({"chords": high - low}, "eps" if roots else "delta")
            mid = 0.5 * (low + high) if low > -math.inf else low
            return Bound(low, mid, high, "exact", True, budget, "between curves below and above top_k")
        ends = enclosed(which)
        if ends is None:
            return query(which, x, adjacency=adjacency, rtol=rtol and 0.25 * rtol, **settings)
        under, over = (
            [query(end, x, adjacency=adjacency, **_named(end, settings)) for end in side]
            for side in (ends.below, ends.above)
        )
        if ends.attained:
            under.append(query(ends.attained, x, adjacency="add_remove", **settings))
        low, high = max(under, key=lambda b: b.lower), min(over, key=lambda b: b.upper)
        estimate = min(max(0.5 * (low.estimate + high.estimate), low.lower), high.upper)
        kinds = {BETWEEN[type(s)] for s, _ in which.parts if type(s) in BETWEEN}
        note = f"between curves below and above {' and '.join(sorted(kinds))}"
        return Bound(low.lower, estimate, high.upper, high.route, True, high.budget, note)

    def enough(value: float) -> float:
        return value + 0.25 * (rtol or RTOL) * (1.0 if log else value)

    directions = {"remove": (0,), "add": (1,), "both": (0, 1)}.get(settings.get("direction", "both"), (0, 1))

    def below(which: Run, x, value: float) -> bool:
        """Whether Chernoff's bound proves, at a fraction of the cost, that the query of `which` is at most `value`."""
        eps, log_delta = (
            (value, math.log(x)) if roots else (x, value if log else math.log(value) if value > 0 else -math.inf)
        )
        if not (eps >= 0 and -math.inf < log_delta < 0):
            return False
        paired = [paired_steps(which, adjacency, bool(add)) for add in directions]
        return all(p and certainly_below(p, add, eps, log_delta) for p, add in zip(paired, directions, strict=True))

    found = [_larger([_over_sizes(ask, below, kind, x, enough) for kind in kinds], len(kinds)) for x in entries]
    for x, bound in zip(entries, found, strict=True):
        if rtol is not None and not bound.upper - bound.lower <= rtol * (1.0 if log else bound.estimate):
            raise AccuracyError(
                f"the maximum at {x!r} is certified to [{bound.lower:.6g}, {bound.upper:.6g}] ({bound.note}), wider"
                f" than rtol={rtol:g}; ask for a larger rtol or a narrower dataset_size"
            )
    if np.ndim(at) == 0:
        return found[0]
    low, mid, high = (
        np.array([getattr(b, name) for b in found]).reshape(np.shape(at)) for name in ("lower", "estimate", "upper")
    )
    notes = "; ".join(dict.fromkeys(b.note for b in found))
    routes = "+".join(sorted({r for b in found for r in b.route.split("+")}))
    return Bound(low, mid, high, routes, True, found[0].budget, notes)


def _negligible(run: Run, eps: float, delta: float, **options: Any) -> float | None:
    """`delta`, if a few moments prove, at a fraction of the cost, that the curve at eps is at most that
    [theory: line.chernoff]."""
    from .routes.moments import rdp

    if not (eps > 0 and delta > 0) or not run.parts:
        return None
    for order in NEAR:
        try:
            one = rdp(run, order, **options).upper
        except HockeystickError:
            return None
        if (order - 1) * (one - eps) * (1 - 1e-12) < math.log(delta) - 1e-9:
            return delta
    return None


def _beside(bound: Bound, lost: float, log: bool, curve: bool = True) -> Bound:
    """A bound of delta, or of its logarithm where it is a `curve` of that, with the probability of a failure added
    [theory: matrix.conditional]."""
    low, mid, high = (math.exp(end) if log and curve else end for end in (bound.lower, bound.estimate, bound.upper))
    least = lost * (1 - 2**-48)  # `lost` is rounded up
    low, mid, high = (low + least) * DOWN, mid + lost, (high + lost) * UP
    ends = [
        math.log(end) + side * 4 * U * abs(math.log(end)) if log else end
        for end, side in ((low, -1), (mid, 0), (high, 1))
    ]
    low, mid, high = (min(end, 0.0 if log else 1.0) for end in ends)
    note = f"a failure of probability {lost:.6g} included"
    return Bound(low, min(max(mid, low), high), high, bound.route, True, bound.budget, note)


def _larger(bounds: list[Bound], kinds: int) -> Bound:
    top = max(bounds, key=lambda b: b.upper)
    lower, estimate = max(b.lower for b in bounds), max(b.estimate for b in bounds)
    note = top.note if kinds == 1 else f"maximum over {kinds} kinds of groups, all evaluated; {top.note}"
    return Bound(lower, max(estimate, lower), top.upper, top.route, True, top.budget, note)


# Sizes


class _Cell(NamedTuple):
    """The sizes between two that were asked; rank: the upper end that holds for all of them, negated."""

    rank: float
    low: int
    high: int


def _over_sizes(ask, below, run: Run, x, enough) -> Bound:
    """Branch and bound over the sizes of one kind of run; see the head of the file."""
    steps = [s for s, _ in run.parts if isinstance(s, TruncatedPoisson) and s.open]
    if not steps:
        return ask(run, x)
    sizes = {s.sizes for s in steps}
    if len(sizes) > 1:
        raise DomainError(f"steps of one run must leave the same range of dataset_size open, got {sorted(sizes)}")
    lo, hi = sizes.pop()
    least = min(s.max_batch for s in steps)
    evaluated: dict[int, Bound] = {}

    def at(n: int) -> None:
        alone = _resized(run, lambda s: s.at(n))
        if n not in evaluated and not (evaluated and below(alone, x, goal())):
            evaluated[n] = ask(alone, x)

    def goal() -> float:
        return max(b.lower for b in evaluated.values())

    lo = max(lo, min(hi, least))  # up to the least max_batch all sizes are alike
    for n in (lo, math.isqrt(lo * hi), hi):  # far ends may cost most and matter least: from the middle out
        at(min(max(n, lo), hi))
    cells: list[_Cell] = []

    def split(n1: int, n2: int) -> int:
        """Evaluate one size between two, and bound what lies on its two sides; returns the number of questions."""
        mid = math.isqrt(n1 * n2) if n2 > 2 * n1 else (n1 + n2) // 2
        mid = min(max(mid, n1 + 1), n2 - 1)
        at(mid)
        asked = 1
        for a, b in ((n1, mid), (mid, n2)):
            if b - a <= 1:
                continue
            above = _resized(run, lambda s, a=a, b=b: SizeRange(s, a + 1, b - 1))
            if not below(above, x, goal()):
                heapq.heappush(cells, _Cell(-ask(above, x).upper, a, b))  # [theory: risk.worst-size]
                asked += 1
        return asked

    asked = split(lo, hi) if hi - lo > 1 else 0
    while cells and asked < MAX_ASKED:
        top = max(b.upper for b in evaluated.values())
        # wide answers do not get better by being many
        if -cells[0].rank <= max(enough(goal()), top + 0.5 * (top - goal())):
            break
        widest = heapq.heappop(cells)
        asked += split(widest.low, widest.high)
    best, top = max(evaluated, key=lambda n: evaluated[n].estimate), max(b.upper for b in evaluated.values())
    rest = max((-cell.rank for cell in cells), default=-math.inf)
    others = hi - lo + 1 - len(evaluated)
    how = f"the other {others} bounded by pairs that dominate them" if others else "no other"
    note = (
        f"maximum over dataset_size {steps[0].sizes[0]}..{hi}: {len(evaluated)} sizes evaluated, largest at {best},"
        f" {how}"
    )
    if lo > steps[0].sizes[0]:
        note += f", all up to {lo} alike"
    lower, one = goal(), evaluated[best]
    return Bound(lower, max(one.estimate, lower), max(top, rest), one.route, True, one.budget, note)


def _resized(run: Run, change) -> Run:
    """The run with its open steps changed."""
    return compose(*((change(s) if isinstance(s, TruncatedPoisson) and s.open else s, k) for s, k in run.parts))


# Groups


def _kinds(run: Run) -> list[Run]:
    """One run for every combination of groups that may be the worst, group sizes left open."""
    choices = [
        [compose((g, k)) for g in _groups(s)] if isinstance(s, CyclicPoisson) else [compose((s, k))]
        for s, k in run.parts
    ]
    total = math.prod(map(len, choices))
    if total > MAX_KINDS:
        raise DomainError(
            f"the groups of cyclic steps combine in {total} ways, more than {MAX_KINDS}; compose fewer distinct runs"
        )
    return [compose(*parts) for parts in itertools.product(*choices)]


def _groups(step: CyclicPoisson) -> list[Run]:
    """The runs of the parts that no other part dominates: rounds of a record with their sensitivities. Several records
    are dominated by all of them in one part, of the largest sensitivity of every round [theory: pair.groups]."""
    b, n = min(step.bands, step.iterations), step.dataset_size
    norms = step.column_norms
    if norms is None:
        kinds = {(1.0,) * -(-step.iterations // step.bands)}
    else:
        kinds = {tuple(sorted(norms[g :: step.bands], reverse=True)) for g in range(b)}  # [theory: pair.cyclic]
    if step.records != 1:
        kinds = {tuple(map(max, itertools.zip_longest(*kinds, fillvalue=0.0)))}
    worst = [
        a
        for a in kinds
        if not any(a != c and len(a) <= len(c) and all(x <= y for x, y in zip(a, c, strict=False)) for c in kinds)
    ]
    sizes = (1, n) if step.per_record and step.bands > 1 else (n // step.bands, -(-n // step.bands))

    def one(norm: float):
        base = Gaussian(step.base.sigma, step.base.sensitivity * norm)
        if step.max_batch is None:
            return group(poisson_subsampled(base, step.q), step.records)
        return TruncatedPoisson(base, step.q, sizes if sizes[0] < sizes[1] else sizes[1], step.max_batch)

    return [
        compose(*((one(norm), len(list(same))) for norm, same in itertools.groupby(rounds))) for rounds in sorted(worst)
    ]
