"""Compositions with few outcomes, or whose outcomes lie on a lattice: the sum of (num - e^eps den)^+ over all of them.

Joining outcomes of equal loss changes nothing, so on a lattice the powers of two polynomials serve.
"""

from __future__ import annotations

import math

from flint import arb, arb_poly

from .balls import UndecidedError

MAX_STATES = 120_000
MAX_DEGREE = 1_500


def curve(steps, eps: arb, deadline) -> arb:
    """A ball for E[(1 - e^{eps-L})^+; L finite] of [(Atoms, count)]."""
    states = [_states(law, k) for law, k in steps]
    if math.prod(len(s) for s in states) > MAX_STATES:
        raise UndecidedError("a composition of discrete laws has too many outcomes")
    price = eps.exp()
    joint = [(arb(1), arb(1))]
    for own in sorted(states, key=len):
        deadline.check()
        if own is states[-1] and len(joint) == 1:
            joint = own
            continue
        joint = [(a * n, b * d) for a, b in joint for n, d in own]
    total = arb(0)
    for i, (n, d) in enumerate(joint):
        total += (n - price * d).nonnegative_part()
        if i % 4096 == 0:
            deadline.check()
    return total


def _states(law, k: int):
    atoms = law.finite
    if k == 1 or len(atoms) == 1:
        return [(n**k, d**k) for n, d in atoms]
    if len(atoms) == 2:
        if k > MAX_STATES:
            raise UndecidedError("a composition of discrete laws has too many outcomes")
        return _binomial(atoms, k)
    if law.indices is not None:
        places = {i: o for i, o in zip(law.indices, law.outcomes, strict=True) if not (o[0].is_zero() or o[1].is_zero())}
        first, last = min(places), max(places)
        if (last - first) * k <= MAX_DEGREE:
            rows = [places.get(i, (arb(0), arb(0))) for i in range(first, last + 1)]
            num, den = (arb_poly([r[side] for r in rows]) ** k for side in (0, 1))
            return [(num[i], den[i]) for i in range((last - first) * k + 1)]
    if math.comb(k + len(atoms) - 1, len(atoms) - 1) > MAX_STATES:
        raise UndecidedError("a composition of discrete laws has too many outcomes")
    powers = [[(n**j / math.factorial(j), d**j / math.factorial(j)) for j in range(k + 1)] for n, d in atoms]
    rows = [(arb(math.factorial(k)), arb(math.factorial(k)), k)]
    for own in powers[:-1]:
        rows = [(n * own[j][0], d * own[j][1], left - j) for n, d, left in rows for j in range(left + 1)]
    return [(n * powers[-1][left][0], d * powers[-1][left][1]) for n, d, left in rows]


def _binomial(atoms, k: int):
    (a, b), (c, d) = atoms
    num, den, out = a**k, b**k, []
    up, down = c / a, d / b
    for j in range(k + 1):
        out.append((num, den))
        step = arb(k - j) / (j + 1)
        num, den = num * up * step, den * down * step
    return out
