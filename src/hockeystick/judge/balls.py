"""Ball arithmetic: every number is a midpoint with a radius that holds the truth (Arb, through python-flint).

Notation of this package: a step has a pair of laws (num, den), its loss is L = log(num/den) under num, and its
transform is M(z) = E_num[e^{zL}; L finite] = sum or integral of num^{1+z} den^{-z}. A composition multiplies
transforms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from flint import acb, acb_mat, arb, ctx, fmpq


class UndecidedError(Exception):
    """No method here reaches an answer; the message says why."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with midpoints of `bits` bits."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def rational(x: float | int) -> fmpq:
    """The double or integer `x` itself, exactly."""
    return fmpq(*x.as_integer_ratio()) if isinstance(x, float) else fmpq(x)


def about(x) -> float:
    """The midpoint of a ball as a double, for planning only."""
    return float(arb(x).mid())


def within(error: arb) -> arb:
    """A ball around 0 that holds every number of size up to `error`."""
    return arb(0, error.abs_upper())


def between(low, high) -> arb:
    """A ball that holds the interval from `low` to `high`."""
    return arb(low).union(arb(high))


def floor_log(x: arb) -> float:
    """About log x; -inf where x may be 0. For planning only."""
    x = arb(x).mid()
    return about(x.log()) if x > 0 else -math.inf


def exponential_sums(weights: list, losses: list, h: arb, count: int) -> list[acb]:
    """sum_x weights[x] e^{i n h losses[x]} for n = 0..count-1, by one product of matrices: n = size * group + row."""
    size = max(1, math.isqrt(count))
    groups = -(-count // size)
    turns = [acb(0, 1) * h * x for x in losses]
    small, large = [t.exp() for t in turns], [(size * t).exp() for t in turns]
    left = _powers([acb(1)] * len(losses), small, size)
    right = _powers([acb(w) for w in weights], large, groups)
    table = acb_mat(left) * acb_mat(right).transpose()
    return [table[n % size, n // size] for n in range(count)]


def _powers(first: list[acb], ratio: list[acb], count: int) -> list[list[acb]]:
    rows = [first]
    for _ in range(count - 1):
        rows.append([a * r for a, r in zip(rows[-1], ratio, strict=True)])
    return rows


def normal_above(x: arb) -> arb:
    """Pr[N(0, 1) > x]."""
    return (x * arb(0.5).sqrt()).erfc() / 2


def tilted(logs, losses) -> tuple[float, float, float]:
    """log sum, mean and variance of losses under weights e^logs."""
    top = float(np.max(logs))
    p = np.exp(logs - top)
    total = float(p.sum())
    mean = float((p * losses).sum()) / total
    return top + math.log(total), mean, float((p * (losses - mean) ** 2).sum()) / total
