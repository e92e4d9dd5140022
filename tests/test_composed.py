"""Runs of few atoms as one law: exact rational arithmetic, and the trade-off curves of such runs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.routes import composed as composed_route


def composed(*steps):
    """num and den masses of every outcome of several steps (num, den), as fractions."""
    outcomes = itertools.product(*([(Fraction(p), Fraction(q)) for p, q in zip(*step, strict=True)] for step in steps))
    found = []
    for outcome in outcomes:
        p = q = Fraction(1)
        for a, b in outcome:
            p, q = p * a, q * b
        found.append((p, q))
    return found


def whole(rng, m):
    """Masses that sum to 1 exactly: multiples of 2^-30."""
    cuts = np.sort(rng.choice(2**30 - 1, m - 1, replace=False) + 1)
    return np.diff(np.concatenate(([0], cuts, [2**30]))) / 2**30


def test_the_inverse_is_at_the_sums():
    run = hs.from_pmf([0.5, 0.3, 0.2], [0.2, 0.35, 0.45]) * 4
    bound = hs.epsilon(run, 0.01)
    assert bound.route == "exact" and bound.upper - bound.lower < 1e-12 * bound.upper
    assert hs.delta(run, bound.upper).lower <= 0.01 <= hs.delta(run, bound.lower).upper


@pytest.mark.parametrize("fpr", [1e-4, 0.03, 0.3, 0.8])
@pytest.mark.parametrize("direction, sign", [("remove", 1), ("add", -1)])
def test_tradeoff_of_atoms_is_exact(fpr, direction, sign):
    """The likelihood ratio test, outcome by outcome; a corner of the curve is found at once."""
    rng = np.random.default_rng(1)
    step = whole(rng, 4), whole(rng, 4)
    pairs = sorted((pair[::sign] for pair in composed(step, step, step)), key=lambda pair: -pair[0] / pair[1])
    power, left = Fraction(0), Fraction(fpr)
    for p, q in pairs:
        share = min(Fraction(1), left / q)
        power, left = power + share * p, left - share * q
    bound = hs.tradeoff(hs.from_pmf(*step) * 3, fpr, direction=direction)
    fnr = float(1 - power)
    assert bound.lower - 1e-15 <= fnr <= bound.upper + 1e-15 and bound.upper - bound.lower < 1e-12


def multinomial(step, k):
    """Multiples of 2^-30k: num and den masses of every sum of k losses of a step."""
    num, den = ([int(x * 2**30) for x in side] for side in step)
    found = [(k, 1, 1)]
    for p, q in zip(num[:-1], den[:-1], strict=True):
        found = [
            (left - n, a * math.comb(left, n) * p**n, b * math.comb(left, n) * q**n)
            for left, a, b in found
            for n in range(left + 1)
        ]
    return [(a * num[-1] ** left, b * den[-1] ** left) for left, a, b in found]


@pytest.mark.parametrize("kinds", [((4, 31),), ((6, 13),), ((3, 5), (4, 7), (2, 2)), ((2, 60), (3, 12), (2, 1))])
def test_two_halves_in_rational_arithmetic(kinds):  # [theory: small.sums, small.halves]
    """Runs of more sums than are held, also next to the largest loss and far below 0."""
    rng = np.random.default_rng(len(kinds) + kinds[0][1])
    steps = [(whole(rng, m), whole(rng, m)) for m, _ in kinds]
    counts = [k for _, k in kinds]
    pairs, unit = [(1, 1)], 2 ** (30 * sum(counts))
    for step, k in zip(steps, counts, strict=True):
        pairs = [(a * p, b * q) for a, b in pairs for p, q in multinomial(step, k)]
    assert len(pairs) > composed_route.WHOLE
    run = hs.compose(*((hs.from_pmf(*step), k) for step, k in zip(steps, counts, strict=True)))
    for direction, sign in (("remove", 1), ("add", -1)):
        top = sum(k * max(np.log(step[0] / step[1]) * sign) for step, k in zip(steps, counts, strict=True))
        for eps in (-20.0, -1.0, 0.0, 1.5, 0.4 * top, 0.9 * top):
            at = Fraction(np.exp(eps))
            excess = (a * at.denominator - b * at.numerator for a, b in (pair[::sign] for pair in pairs))
            delta = float(Fraction(sum(max(0, x) for x in excess), unit * at.denominator))
            bound, moved = hs.delta(run, eps, direction=direction), 4e-16 * np.exp(eps)  # of e^eps here
            moved *= float(Fraction(sum(b for a, b in (pair[::sign] for pair in pairs) if a > at * b), unit))
            assert bound.lower - moved <= delta <= bound.upper + moved
            assert bound.route == "exact" and bound.upper - bound.lower <= 2e-11 * bound.upper


def test_too_many_sums_go_elsewhere():
    p, q = np.arange(1.0, 41.0), np.arange(40.0, 0.0, -1.0) ** 1.5
    bound = hs.delta(hs.from_pmf(p / p.sum(), q / q.sum()) * 8, 1.0)
    assert bound.route != "exact" and bound.lower <= bound.upper
