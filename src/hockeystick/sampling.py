"""Dominating pairs of sampled Gaussian steps for the three adjacencies, and their losses.

b(c, u) is the law (1-c) N(0, 1) + c N(u, 1), in units of the noise with u in units of m = sensitivity/sigma; D holds the record.

              Poisson sampling, rate p    truncated: weight 1-w     weight w
add_remove    b(p, 1)  | N(0)             b(p, 1) | N(0)            b(q, 2) | N(0)
zero_out      b(p, 1)  | N(0)             b(p, 1) | N(0)            b(q, 2) | b(q, -1)
replace_one   b(p, 1)  | b(p, -1)         b(p, 1) | b(p, -1)        b(q, 2) | b(q, -2)

num | den for the direction "remove"; "add" swaps them, which mirrors x and swaps the two shifts. The right half is [Gan25, Thms 3.1,
3.3, 3.4], w = Pr[Bin(n-1, p) >= B] and q = p E[B/(s+1) | s >= B] (csrc/sampling.c); the branch is public and drawn anew in every
step. The left half: add_remove and zero_out are one pair, [ZDW22, Thm 11]; replace_one is proved at `replace_one_poisson`.

What rounding does to a pair. Every pair here is monotone in its rate: b(q', u) is b(q, u) mixed with N(0) for q' < q, on both sides
alike, so a rounded-up q is safe for upper bounds. A weight has no safe direction (at p = 1 the second branch can reveal less).
So q and w are carried as doubles with bounds `q_err`, `w_err` of their relative error in units of u = 2^-53, which every route adds
to both ends. A branch whose weight is below 1e-300 is dropped and its weight stays as `dropped`, an absolute error of every
probability: never silently lost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from . import _core
from .batches import TruncatedPoisson
from .bound import DomainError
from .loss import Loss, mixture
from .mechanism import Gaussian, Mechanism, PoissonSubsampled

U = 2.0**-53
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
    """w and q of n >= 1 records sampled at rate p > 0 and cut to max_batch >= 1 of them; w = 0 exactly from max_batch = n on."""
    if max_batch >= n:
        return Truncation(0.0, p, 1.0)
    if p == 1:
        q = max_batch / n
        return Truncation(1.0, q, 0.0, q_err=0.0 if q * n == max_batch and _dyadic(max_batch, n) else 1.0)
    q, log_w, log_rest = _core.sampling_truncation(p, n, max_batch)
    dropped = sum(max(math.exp(x[1]), 5e-324) for x in (log_w, log_rest) if x[1] < LOG_LEAST)
    kept = [x for x in (log_w, log_rest) if not x[1] < LOG_LEAST]
    spread = max((x[1] - x[0]) / (2 * U) for x in kept) + 8
    weight, rest = (0.0 if x[1] < LOG_LEAST else math.exp(0.5 * (x[0] + x[1])) for x in (log_w, log_rest))
    return Truncation(weight, q[1], rest, spread + 2 * max(abs(x[1]) for x in kept), (q[1] - q[0]) / (q[0] * U) + 1, dropped)


def _dyadic(a: int, b: int) -> bool:
    """Whether a/b is a binary fraction."""
    b //= math.gcd(a, b)
    return b & (b - 1) == 0


def shift(step: Gaussian) -> float:
    """m = sensitivity/sigma."""
    return step.sensitivity / step.sigma


def gaussian_pair(step: Mechanism, adjacency: str) -> tuple[float, float] | None:
    """(shift, rate) of a step whose pair is that of a Poisson-subsampled (rate 1: plain) Gaussian, known exactly; else None.

    Plain Gaussian: N(m) | N(0), replace_one N(m) | N(-m), a shift of 2m. Truncation that never happens changes nothing.
    """
    base, rate, moves = step, 1.0, 1
    if isinstance(step, PoissonSubsampled):
        base, rate = step.base, step.q
    elif isinstance(step, TruncatedPoisson) and reveals(step):
        cut = truncation(step.q, step.dataset_size, step.max_batch)
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


def reveals(step: TruncatedPoisson) -> bool:
    """Whether any record can ever be used."""
    return step.q > 0 and step.max_batch > 0 and step.sizes[1] > 0


def pair(step: Mechanism, adjacency: str) -> Pair:
    """The pair of a sampled Gaussian step in the direction "remove", rate below 1; see the head of the file.

    Raises
    ------
    DomainError
        For steps that are not sampled Gaussian ones.
    """
    down = {"add_remove": 0, "zero_out": 0, "replace_one": 1}[adjacency]
    if isinstance(step, PoissonSubsampled) and isinstance(step.base, Gaussian):
        m = shift(step.base)
        return Pair((Branch(1.0, step.q, m, down * m),))
    if not isinstance(step, TruncatedPoisson) or not reveals(step):
        raise DomainError(f"no two-sided pair for {step!r}")
    cut, m = truncation(step.q, step.dataset_size, step.max_batch), shift(step.base)
    down_cut = {"add_remove": 0, "zero_out": 1, "replace_one": 2}[adjacency]
    branches = (Branch(cut.rest, step.q, m, down * m), Branch(cut.weight, cut.q, 2 * m, down_cut * m))
    return Pair(tuple(b for b in branches if b.weight > 0), cut.q_err, cut.w_err, cut.dropped)


def replace_one_poisson(base: Loss, q: float) -> Loss:
    """Poisson sampling under replace_one: (1-q) f_0 + q f_1 against (1-q) f_0 + q f_-1, f_u the noise moved by u sensitivities.

    This pair dominates for scalar log-concave symmetric noise, Laplace among it. Given the other sampled records the centre is the
    same in both data sets, so by joint convexity one record's contributions u, v in [-1, 1] remain: F = (1-q) f_0 + q f_u against
    G = (1-q) f_0 + q f_v; tails f_u[x, inf) increase in u. Let H_a = sup_S F(S) - a G(S).
      v <= 0 <= u: F/G increases in x, so S is a half-line and F(S) - a G(S) is largest at u = 1, v = -1.
      u >= v >= 0, a >= 1: by advanced joint convexity H_a = q H_a'(f_u | (1-t) f_0 + t f_v), a ratio increasing in x: half-lines again.
      v >= u >= 0, a >= 1: the same H_a' <= (1-t) H_a'(f_u | f_0) + t H_a'(f_u | f_v) <= H_a'(f_1 | f_0), as |u-v| <= 1, which is below the
      value at (1, -1): f_-1 has lighter upper tails than f_0.
      The other signs by mirroring, a < 1 by swapping F and G.
    For Gaussian vectors: [Gan25, Thm 3.4] without truncation.
    """
    raise NotImplementedError


# Losses


def branch_loss(branch: Branch, q_err: float) -> Loss:
    """The loss of one branch; tails by csrc/sampling.c."""
    _, q, up, down = branch
    wall = -math.log1p(-q)

    def tails(s):
        from .loss import Tails

        (y_below, y_above, x_below, x_above, rel), edge = _core.sampling_tails(q, q_err, up, down, np.ascontiguousarray(s, dtype=float))
        return Tails(y_below, y_above, x_below, x_above, rel, edge, 1e-307)

    def nodes(p):
        reach = math.sqrt(2 * max(1.0, -math.log(p))) + 0.5
        n = math.ceil((2 * reach + up + down) * min(max(1.0, up, down), 8.0) / 0.2)
        x, dx = np.linspace(-reach - down, reach + up, n, retstep=True)
        top, bottom = (np.logaddexp(math.log1p(-q), math.log(q) + m * x - 0.5 * m * m) for m in (up, -down))
        return top - bottom, bottom - 0.5 * x * x + math.log(dx / math.sqrt(2 * math.pi))

    return Loss(tails, nodes, -math.inf if down else -wall, math.inf if up else wall)


def pair_loss(of: Pair) -> Loss:
    """The loss of a public mixture of branches."""
    parts = tuple(branch_loss(b, of.q_err) for b in of.branches)
    whole = parts[0] if len(parts) == 1 else mixture(parts, tuple(b.weight for b in of.branches))

    def tails(s):
        t = whole.tails(s)
        return t._replace(rel=t.rel + of.w_err * U, absolute=t.absolute + of.dropped)

    return whole._replace(tails=tails)
