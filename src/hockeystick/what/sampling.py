"""Dominating pairs of sampled Gaussian steps for the three adjacencies, and their losses.

b(c, u) is the law (1-c) N(0, 1) + c N(u, 1), in units of the noise with u in units of m = sensitivity/sigma; D holds
the record.

              Poisson sampling, rate p    truncated: weight 1-w     weight w
add_remove    b(p, 1)  | N(0)             b(p, 1) | N(0)            b(q, 2) | N(0)
zero_out      b(p, 1)  | N(0)             b(p, 1) | N(0)            b(q, 2) | b(q, -1)
replace_one   b(p, 1)  | b(p, -1)         b(p, 1) | b(p, -1)        b(q, 2) | b(q, -2)

num | den for the direction "remove"; "add" swaps them, which mirrors x and swaps the two shifts. The right half is
[Gan25, Thms 3.1, 3.3, 3.4], w = Pr[Bin(n-1, p) >= B] and q = p E[B/(s+1) | s >= B] (csrc/sampling.c)
[theory: pair.truncated]; the branch is public and drawn anew in every step. The left half: add_remove and zero_out are
one pair, [ZDW22, Thm 11]; replace_one is the right half's first branch [theory: pair.replace-one]. Laplace noise under
replace_one: `laplace_replace_one`.

What rounding does to a pair. Every pair here is monotone in its rate [theory: pair.rate]: b(q', u) is b(q, u) mixed
with N(0) for q' < q, on both sides alike, so a rounded-up q is safe for upper bounds. A weight has no safe direction
(at p = 1 the second branch can reveal less). So q and w are carried as doubles with bounds `q_err`, `w_err` of their
relative error in units of u = 2^-53, which every route adds to both ends. A branch whose weight is below 1e-300 is
dropped and its weight stays as `dropped`, an absolute error of every probability [theory: small.dropped]: never
silently lost."""

from __future__ import annotations

import itertools
import math
import struct
from typing import NamedTuple, overload

import numpy as np

from .. import _core
from ..bound import DomainError
from ..outward import U
from .batches import SizeRange, TruncatedPoisson
from .loss import Atoms, Loss, Tails, mixture, sampled, subsample
from .mechanism import Gaussian, Laplace, Mechanism, PoissonSubsampled, Run, leaves

MAX_BRANCHES = 3
PACKED = struct.Struct(f"@i{4 * MAX_BRANCHES + 2}d")
"""hs_pair of csrc/hs.h: number of branches, w, q, up, down of each, w_err, q_err."""

UNITS = 1 / U
"""Units u in 1."""

LOG_LEAST = -690.0
"""Log of the least weight that is kept, about 1e-300."""


class Branch(NamedTuple):
    """num = b(q, up), den = b(q, -down), shifts in units of the noise, q < 1; up, down >= 0, not both 0."""

    weight: float
    q: float
    up: float
    down: float


class Pair(NamedTuple):
    """A public mixture of branches; errors as in the head of the file."""

    branches: tuple[Branch, ...]
    q_err: float = 0.0
    w_err: float = 0.0
    dropped: float = 0.0

    def reversed(self) -> Pair:
        """num and den swapped."""
        return self._replace(branches=tuple(Branch(w, q, down, up) for w, q, up, down in self.branches))


NO_PAIR = Pair(())


def packed(pairs) -> np.ndarray:
    """The pairs (None: no branches) as the bytes of an array of hs_pair."""
    out = []
    for pair in pairs:
        branches, q_err, w_err, _ = pair or NO_PAIR
        rows = zip(*branches, *((0.0,) * 4,) * (MAX_BRANCHES - len(branches)), strict=True)
        out.append(PACKED.pack(len(branches), *itertools.chain(*rows), w_err, q_err))
    return np.frombuffer(b"".join(out), np.uint8)


_ROW = np.dtype(
    {
        "names": ["branches", "w", "q", "up", "down", "errors"],
        "formats": ["i4", *[f"{MAX_BRANCHES}f8"] * 4, "2f8"],
        "offsets": [0, *range(8, 8 + 32 * MAX_BRANCHES, 8 * MAX_BRANCHES), 8 + 32 * MAX_BRANCHES],
        "itemsize": PACKED.size,
    }
)


def two_sided(m: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The same of pairs b(q, m) | b(q, -m), where q < 1; none of the others."""
    rows, sampled = np.zeros(m.size, _ROW), q < 1
    rows["branches"] = sampled
    rows["w"][sampled, 0] = 1.0
    for name, column in (("q", q), ("up", m), ("down", m)):
        rows[name][sampled, 0] = column[sampled]
    return rows.view(np.uint8)


def variation(branches) -> float:
    """Total variation distance of a pair [theory: pair.branch-variation]: b(q, up) - b(q, -down) is q times N(up) -
    N(-down), of distance erf((up + down)/sqrt 8)."""
    return math.fsum(w * q * math.erf((up + down) * math.sqrt(0.125)) for w, q, up, down in branches)


DOWN = {"add_remove": 0, "zero_out": 0, "replace_one": 1}
"""Sensitivities by which den of a branch is moved the other way."""

DOWN_CUT = {"add_remove": 0, "zero_out": 1, "replace_one": 2}
"""Sensitivities by which den of the truncated branch is moved the other way [Gan25]."""


class Truncation(NamedTuple):
    """Weight w of the truncating branch, its rate q, the weight of the other branch, and relative errors in units of u.

    A weight below 1e-300 is 0 here and bounded by `dropped`.
    """

    weight: float
    q: float
    rest: float
    w_err: float = 0.0
    q_err: float = 0.0
    dropped: float = 0.0


def truncation(p: float, n: int, max_batch: int) -> Truncation:
    """w and q of n >= 1 records sampled at rate p > 0 and cut to max_batch >= 1 of them; w = 0 exactly if max_batch >=
    n."""
    if max_batch >= n:
        return Truncation(0.0, p, 1.0)
    if p == 1:
        q = max_batch / n
        return Truncation(1.0, q, 0.0, q_err=0.0 if q * n == max_batch and _dyadic(max_batch, n) else 1.0)
    rate, log_w, log_rest = _core.sampling_truncation(p, n, max_batch)
    dropped = sum(max(math.exp(x[1]), 5e-324) for x in (log_w, log_rest) if x[1] < LOG_LEAST)
    kept = [x for x in (log_w, log_rest) if not x[1] < LOG_LEAST]
    spread = max(0.5 * (x[1] - x[0]) * UNITS for x in kept) + 8
    weight, rest = (0.0 if x[1] < LOG_LEAST else math.exp(0.5 * (x[0] + x[1])) for x in (log_w, log_rest))
    w_err, q_err = spread + 2 * max(abs(x[1]) for x in kept), (rate[1] - rate[0]) / rate[0] * UNITS + 1
    return Truncation(weight, rate[1], rest, w_err, q_err, dropped)


def truncation_of(step: TruncatedPoisson) -> Truncation:
    """The same of a step that states one size of the data set."""
    if not isinstance(step.dataset_size, int):
        raise DomainError(f"expected a step of one dataset size, got {step!r}")
    return truncation(step.q, step.dataset_size, step.max_batch)


def _dyadic(a: int, b: int) -> bool:
    """Whether a/b is a binary fraction."""
    b //= math.gcd(a, b)
    return b & (b - 1) == 0


def shift(step: Gaussian) -> float:
    """m = sensitivity/sigma."""
    return step.sensitivity / step.sigma


def family(step: Mechanism, adjacency: str) -> tuple[float, float] | Pair | None:
    """What a Gaussian step's pair is: (shift, rate) as in `as_gaussian`, else that of `pair`; None for other steps."""
    cut = truncation_of(step) if isinstance(step, TruncatedPoisson) else None
    row = as_gaussian(step, adjacency, cut)
    return row or (pair(step, adjacency, cut) if is_sampled_gaussian(step) else None)


@overload
def as_gaussian(step: Gaussian, adjacency: str, cut: Truncation | None = None) -> tuple[float, float]: ...
@overload
def as_gaussian(step: Mechanism, adjacency: str, cut: Truncation | None = None) -> tuple[float, float] | None: ...
def as_gaussian(step: Mechanism, adjacency: str, cut: Truncation | None = None) -> tuple[float, float] | None:
    """(shift, rate) of a step whose pair is that of a Poisson-subsampled (rate 1: plain) Gaussian, known exactly; else
    None.

    Plain Gaussian: N(m) | N(0), replace_one N(m) | N(-m), a shift of 2m. Truncation that never happens changes nothing.
    Where a range of sizes at rate 1 holds one that is not truncated and one that is, its pair has rate 1
    (`_range_pair`)."""
    base, rate, moves = step, 1.0, 1
    if isinstance(step, PoissonSubsampled):
        base, rate = step.base, step.q
    elif isinstance(step, SizeRange):  # every record in every batch: b(1, 2) | b(1, -2) at most; upper bounds only
        everyone = step.step.q == 1 and step.lo <= step.step.max_batch
        return ((2 if adjacency == "add_remove" else 4) * shift(step.step.base), 1.0) if everyone else None
    elif isinstance(step, TruncatedPoisson) and reveals(step):
        cut = cut or truncation_of(step)
        base, rate = step.base, step.q
        if cut.weight == 1 and adjacency == "add_remove" and not cut.q_err:
            rate, moves = cut.q, 2
        elif cut.weight:
            return None
        elif cut.dropped:
            return None
    if not isinstance(base, Gaussian):
        return None
    if adjacency == "replace_one":
        if rate < 1:
            return None
        moves = 2
    return moves * shift(base), rate


def reveals(step: Mechanism) -> bool:
    """Whether any record can ever be used."""
    return not isinstance(step, TruncatedPoisson) or (step.q > 0 and step.max_batch > 0 and step.sizes[1] > 0)


def is_sampled_gaussian(step: Mechanism) -> bool:
    """Whether `pair` knows the step."""
    if isinstance(step, PoissonSubsampled):
        return isinstance(step.base, Gaussian)
    return isinstance(step, TruncatedPoisson | SizeRange)


def check_fixed_size(run: Run, adjacency: str) -> None:
    """Refuse a run that leaves n open, and to compose add/remove for one fixed n with anything else unless told so.

    Raises
    ------
    DomainError
        See `assume_fixed_n` in `batches.truncated_poisson_subsampled`.
    """
    for step, _ in run.parts:
        if step.sized or step.open or step.inner:
            break
    else:
        return
    steps = [leaf for step, _ in run.parts for leaf in leaves(step) if reveals(leaf)]
    for step in steps:
        if step.open:
            raise DomainError(
                f"{step!r} leaves a dataset size or a group open, or is known between two curves, which only delta,"
                " log_delta and epsilon take; give one dataset_size, or the steps of one group, or bounded_range for"
                " top_k"
            )
    cut = [step for step in steps if isinstance(step, TruncatedPoisson)]
    if adjacency != "add_remove" or not cut or all(step.assume_fixed_n for step in cut):
        return
    sizes = {step.dataset_size for step in cut}
    if len(sizes) > 1 or len(cut) < len(steps):
        raise DomainError(
            "a truncated step holds add/remove-one for its own fixed dataset_size only, so it cannot be composed or"
            " mixed with other mechanisms or sizes under adjacency 'add_remove' (sizes here:"
            f" {sorted(map(str, sizes))}, other steps: {len(steps) - len(cut)}); use 'zero_out' or 'replace_one', or"
            " state assume_fixed_n=True"
        )


def replace_one_loss(step: PoissonSubsampled) -> Loss:
    """Poisson-sampled Gaussian or Laplace noise under replace_one; its own mirror image."""
    if isinstance(step.base, Laplace):
        return laplace_replace_one(step.base.sensitivity / step.base.scale, step.q)
    return pair_loss(pair(step, "replace_one"))


def pair(step: Mechanism, adjacency: str, cut: Truncation | None = None) -> Pair:
    """The pair of a sampled Gaussian step in the direction "remove", rate below 1; see the head of the file.

    Raises
    ------
    DomainError
        For steps that are not sampled Gaussian ones.
    """
    down = DOWN[adjacency]
    if isinstance(step, PoissonSubsampled) and isinstance(step.base, Gaussian):
        m = shift(step.base)
        return Pair((Branch(1.0, step.q, m, down * m),))  # [theory: pair.replace-one, pair.comparison]
    down_cut = DOWN_CUT[adjacency]
    if isinstance(step, SizeRange):
        return _range_pair(step, down, down_cut)
    if not isinstance(step, TruncatedPoisson) or not reveals(step):
        raise DomainError(f"no two-sided pair for {step!r}")
    cut, m = cut or truncation_of(step), shift(step.base)
    # [theory: pair.truncated, pair.comparison]
    branches = (Branch(cut.rest, step.q, m, down * m), Branch(cut.weight, cut.q, 2 * m, down_cut * m))
    return Pair(tuple(b for b in branches if b.weight > 0), cut.q_err, cut.w_err, cut.dropped)


def _range_pair(of: SizeRange, down: int, down_cut: int) -> Pair:
    """A pair that dominates those of all sizes lo..hi [theory: pair.sizes]: b(p, 1) | .. with weight 1-w_hi, the
    truncated branch at q_lo with weight w_lo, the rest of the weight on the truncated branch at rate p (worst.py). Both
    weights may be rounded down, so they are exact."""
    step, m = of.step, shift(of.step.base)
    low, high = (truncation(step.q, n, step.max_batch) for n in (of.lo, of.hi))
    # [theory: pair.rate]
    rest, weight = (x * (1 - (cut.w_err + 2) * U) for x, cut in ((high.rest, high), (low.weight, low)))
    branches: tuple[Branch, ...] = (
        Branch(rest, step.q, m, down * m),
        Branch(weight, low.q, 2 * m, down_cut * m),
        Branch(math.fsum((1.0, -rest, -weight)), step.q, 2 * m, down_cut * m),
    )
    if step.q == 1:
        branches = (branches[1]._replace(weight=1.0),)
    return Pair(tuple(b for b in branches if b.weight > 0), max(low.q_err, high.q_err), 1.0)


def laplace_replace_one(m: float, q: float) -> Loss:
    """Poisson-sampled Laplace noise on a scalar query under replace_one: (1-q) f_0 + q f_m against (1-q) f_0 + q f_-m,
    f_u moved by u scales.

    This pair dominates for scalar symmetric log-concave noise [theory: pair.replace-one-laplace].

    The loss is odd in x [theory: pair.replaced-laplace-loss]: with c = log(1-q+q e^-m), L = log(1-q+q e^{2x-m}) - c on
    [0, m], constant beyond, so atoms at both ends. L > s is x > (m + log1p(expm1(s+c)/q))/2 for s >= 0. As in
    csrc/sampling.c all tails are those at one and the same x, and the edge is measured: |L(x) - s|, plus the rounding
    of L: 8u of each of its two parts (loss.py: sampled), u of their difference, and 4um of 2x - m, whose slope is at
    most 1. The ends are the difference of two such parts, and m is within u. The mass of an end is a sum of products of
    exponentials of at most 2m: u(12 + 2m)."""
    low = sampled(-m, q)
    top = sampled(m, q) - low
    rounding = U * (6 * m + 10 * (top + 2 * abs(low)))

    def tails(s):
        size = np.minimum(np.abs(s), top)
        over = np.maximum(np.exp(size + low) - (1 - q), 1e-300) / q  # e^{2x-m}
        with np.errstate(divide="ignore"):  # log 0 where x is 0
            near = np.log1p(np.expm1(size + low) / q)
        x = np.clip(0.5 * (m + np.where(size + low > -1, near, np.log(over))), 0.0, m)
        edge = np.abs(subsample(2 * x - m, q) - low - size).max(initial=0.0) + rounding
        x = np.where(s < 0, -x, x)
        none, everything = s >= top, s < -top

        def above(u):
            return np.where(x >= u, 0.5 * np.exp(-np.abs(x - u)), 1 - 0.5 * np.exp(-np.abs(x - u)))

        laws = []
        for sign in (1.0, -1.0):
            over = (1 - q) * above(0.0) + q * above(sign * m)
            x = -x
            under = (1 - q) * above(0.0) + q * above(-sign * m)
            x = -x
            laws += [
                np.where(none, 1.0, np.where(everything, 0.0, under)),
                np.where(none, 0.0, np.where(everything, 1.0, over)),
            ]
        return Tails(*laws, np.full(s.shape, U * (24 + 4 * m)), float(edge))

    def nodes(_):
        at, w = np.polynomial.legendre.leggauss(60)
        x, w = 0.5 * m * np.r_[at - 1, at + 1], 0.5 * m * np.r_[w, w]
        loss = np.sign(x) * (subsample(2 * np.abs(x) - m, q) - low)
        den = 0.5 * ((1 - q) * np.exp(-np.abs(x)) + q * np.exp(-np.abs(x + m)))
        return np.r_[-top, loss, top], np.log(np.r_[ends[0], w * den, ends[1]])

    def atoms():
        return Atoms(np.array([-top, top]), np.array(ends[::-1]), np.array(ends), U * (12 + 2 * m), rounding)

    tail = (1 - q) * math.exp(-m)
    ends = 0.5 * (tail + q), 0.5 * (tail + q * math.exp(-2 * m))
    return Loss(tails, nodes, -top, top, atoms=atoms, ends_error=rounding)


# Losses


def branch_loss(branch: Branch, q_err: float) -> Loss:
    """The loss of one branch; tails by csrc/sampling.c. An end is log(1-q) or its negative: 2u of itself, and what
    q_err u of q moves it by, q_err u q/(1-q) to first order and at most 1.5 times that where q_err u q <= (1-q)/3 (else
    it has no end)."""
    _, q, up, down = branch
    wall, moved = -math.log1p(-q), q_err * U * q
    error = 2 * U * wall + 1.5 * moved / (1 - q)
    if not moved <= (1 - q) / 3:
        wall, error = math.inf, 0.0

    def tails(s):
        (y_below, y_above, x_below, x_above, rel), edge = _core.sampling_tails(
            q, q_err, up, down, np.ascontiguousarray(s, dtype=float)
        )
        return Tails(y_below, y_above, x_below, x_above, rel, edge, 1e-307)

    def nodes(p):
        reach = math.sqrt(2 * max(1.0, -math.log(p))) + 0.5
        n = math.ceil((2 * reach + up + down) * min(max(1.0, up, down), 8.0) / 0.2)
        x, dx = np.linspace(-reach - down, reach + up, n, retstep=True)
        top, bottom = (np.logaddexp(math.log1p(-q), math.log(q) + m * x - 0.5 * m * m) for m in (up, -down))
        return top - bottom, bottom - 0.5 * x * x + math.log(dx / math.sqrt(2 * math.pi))

    return Loss(tails, nodes, -math.inf if down else -wall, math.inf if up else wall, ends_error=error)


def pair_loss(of: Pair) -> Loss:
    """The loss of a public mixture of branches. What was dropped may lie anywhere."""
    parts = tuple(branch_loss(b, of.q_err) for b in of.branches)
    whole = parts[0] if len(parts) == 1 else mixture(parts, tuple(b.weight for b in of.branches))

    def tails(s):
        t = whole.tails(s)
        return t._replace(rel=t.rel + of.w_err * U, absolute=t.absolute + of.dropped)

    if of.dropped:
        whole = whole._replace(lo=-math.inf, hi=math.inf)
    return whole._replace(tails=tails)
