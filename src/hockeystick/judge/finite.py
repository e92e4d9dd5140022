"""Compositions with few outcomes, or whose outcomes lie on a lattice: the sum of (num - e^eps den)^+ over all of them.

Joining outcomes of equal loss changes nothing, so on a lattice the powers of two polynomials serve.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any

from flint import arb, arb_poly

from .balls import UndecidedError

MAX_STATES = 100_000
SLACK = 1e-7
MAX_DEGREE = 3_000


def curve(steps, eps: arb, deadline) -> arb:
    """A ball for E[(1 - e^{eps-L})^+; L finite] of [(Atoms, count)]."""
    price = eps.exp()
    try:
        joint = _joint(steps, deadline)
    except UndecidedError:
        return _in_halves(*_halved(steps, deadline), price, deadline)
    total = arb(0)
    for i, (n, d) in enumerate(joint):
        total += (n - price * d).nonnegative_part()
        if i % 4096 == 0:
            deadline.check()
    return total


def _joint(steps, deadline):
    """(num, den) of all outcomes of a composition."""
    states = sorted((_states(law, k) for law, k in steps), key=len)
    if math.prod(map(len, states)) > MAX_STATES:
        raise UndecidedError("a composition of discrete laws has too many outcomes")
    joint = states[0]
    for own in states[1:]:
        deadline.check()
        joint = [(a * n, b * d) for a, b in joint for n, d in own]
    return joint


def _halved(steps, deadline) -> tuple[Any, Any]:
    """The outcomes of both halves of a composition."""
    if len(steps) == 1:
        ((law, k),) = steps
        if k == 1:
            raise UndecidedError("a discrete law has too many outcomes")
        first = _joint([(law, k // 2)], deadline)
        return first, first if k % 2 == 0 else _joint([(law, k - k // 2)], deadline)
    sizes = sorted(((len(_states(law, k)), i) for i, (law, k) in enumerate(steps)), reverse=True)
    left: list[Any] = []
    right: list[Any] = []
    a = b = 1
    for size, i in sizes:
        if a <= b:
            left, a = [*left, steps[i]], a * size
        else:
            right, b = [*right, steps[i]], b * size
    return _joint(left, deadline), _joint(right, deadline)


def _in_halves(first, second, price: arb, deadline) -> arb:
    """sum over pairs of outcomes of (n n' - price d d')^+.

    For one outcome of the first half those of the second are taken from the largest ratio down to some place. Any place
    gives a value that is not too large; pairs within SLACK of the true place in the logarithm, more than doubles can be
    wrong by, are evaluated one by one."""
    second = sorted(((math.inf if d.is_zero() else _log_ratio(n, d), n, d) for n, d in second), key=lambda row: -row[0])
    falling = [-row[0] for row in second]
    sums = [(arb(0), arb(0))]
    for _, n, d in second:
        sums.append((sums[-1][0] + n, sums[-1][1] + d))
    log_price, total = float(price.log().mid()), arb(0)
    for i, (n, d) in enumerate(first):
        if i % 1024 == 0:
            deadline.check()
        place = log_price - _log_ratio(n, d)  # pairs of larger ratio count
        sure, maybe = bisect_left(falling, -place - SLACK), bisect_right(falling, -place + SLACK)
        total += n * sums[sure][0] - price * d * sums[sure][1]
        for _, m, e in second[sure:maybe]:
            total += (n * m - price * d * e).nonnegative_part()
    return total


def _log_ratio(n: arb, d: arb) -> float:
    ratio = (n / d).log()
    if not (ratio.rad() < 1e-12 and abs(ratio) < 1e5):
        raise UndecidedError("a ratio of probabilities is not resolved")
    return float(ratio.mid())


def _states(law, k: int):
    atoms = law.finite
    if not atoms:
        return []
    if k == 1 or len(atoms) == 1:
        return [(n**k, d**k) for n, d in atoms]
    if len(atoms) == 2:
        if k > MAX_STATES:
            raise UndecidedError("a composition of discrete laws has too many outcomes")
        return _binomial(atoms, k)
    if law.indices is not None:
        places = {
            i: o for i, o in zip(law.indices, law.outcomes, strict=True) if not (o[0].is_zero() or o[1].is_zero())
        }
        first, last = min(places), max(places)
        if (last - first) * k <= MAX_DEGREE:
            rows = [places.get(i, (arb(0), arb(0))) for i in range(first, last + 1)]
            num, den = (arb_poly([r[side] for r in rows]) ** k for side in (0, 1))
            return [(num[i], den[i]) for i in range((last - first) * k + 1)]
    if math.comb(k + len(atoms) - 1, len(atoms) - 1) > MAX_STATES:
        raise UndecidedError("a composition of discrete laws has too many outcomes")
    powers = [[*_powers(n, d, k)] for n, d in atoms]
    rows = [(arb(math.factorial(k)), arb(math.factorial(k)), k)]
    for own in powers[:-1]:
        rows = [(n * own[j][0], d * own[j][1], left - j) for n, d, left in rows for j in range(left + 1)]
    return [(n * powers[-1][left][0], d * powers[-1][left][1]) for n, d, left in rows]


def _powers(n: arb, d: arb, k: int):
    """(n^j/j!, d^j/j!), j = 0..k."""
    num = den = arb(1)
    for j in range(k + 1):
        yield num, den
        num, den = num * n / (j + 1), den * d / (j + 1)


def _binomial(atoms, k: int):
    (a, b), (c, d) = atoms
    first, second, all_ = [*_powers(a, b, k)], [*_powers(c, d, k)], arb(math.factorial(k))
    return [(all_ * n * m, all_ * e * f) for (n, e), (m, f) in zip(first, reversed(second), strict=True)]
