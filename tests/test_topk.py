"""Adaptive steps of bounded range: the enclosure against nested maxima, random adaptive trees, and other mechanisms
between."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.what.topk import curves

ANCHORS = (
    (100, 0.1, 2.249407, 2.254796, 1e-4),
    (10, 0.5, 3.579387, 3.579878, 5e-5),
    (50, 0.2, 3.289804, 3.293810, 1e-4),
)


@pytest.mark.parametrize("k, eps0, low, high, width", ANCHORS)
def test_brackets_meet(k, eps0, low, high, width):
    b = hs.epsilon(hs.top_k(eps0, k), 1e-6)
    assert b.lower <= high and low <= b.upper and b.upper - b.lower < width and b.certified
    assert b.upper < hs.epsilon(hs.bounded_range(eps0) * k, 1e-6).lower


def best(curve, g, eps0, grid):
    """max over s of the two-point step, by a grid and two refinements: a lower bound of the maximum, nearly it."""
    lo, hi = 0.0, eps0
    for _ in range(3):
        s = np.linspace(lo, hi, grid)
        p = np.expm1(s - eps0) / math.expm1(-eps0)
        value = p * curve(g - s) + (1 - p) * curve(g - s + eps0)
        i = int(np.argmax(value))
        lo, hi = s[max(i - 1, 0)], s[min(i + 1, grid - 1)]
    return float(value.max())


def one(eps0):
    def curve(g):
        inside = np.expm1((np.minimum(g, eps0) - eps0) / 2) ** 2 / -math.expm1(-eps0)
        return np.where(g <= -eps0, -np.expm1(np.minimum(g, 0)), inside)

    return curve


@pytest.mark.parametrize("eps0", [0.05, 0.7, 4.0])
def test_two_and_three_steps(eps0):  # [theory: range.recursion, range.between]
    """D_2 and D_3 by nested maxima of the closed form of D_1."""
    two = np.vectorize(lambda g: best(one(eps0), g, eps0, 201))
    for part in (-0.7, -0.1, 0.0, 0.35, 0.8):
        b = hs.delta(hs.top_k(eps0, 2), 2 * eps0 * part)
        true = float(two(2 * eps0 * part))
        assert b.lower * (1 - 1e-9) <= true <= b.upper * (1 + 1e-9) and b.upper - b.lower < 3e-4 * b.upper
    for part in (0.0, 0.5):
        b = hs.delta(hs.top_k(eps0, 3), 3 * eps0 * part)
        true = best(two, 3 * eps0 * part, eps0, 31)
        assert b.lower * (1 - 1e-5) <= true <= b.upper * (1 + 1e-9) and b.upper - b.lower < 3e-4 * b.upper


def tree(random, g, eps0, k, others, weight=1.0):
    """The curve at g of a random adaptive run of k steps of range eps0, of 2 to 4 outcomes, and `others` coins of eps
    0.4 between them, in random order."""
    if not k and not others:
        return weight * max(-math.expm1(g), 0.0)
    if others and (not k or random.random() < others / (k + others)):
        loss, p = np.array([0.4, -0.4]), 1 / (1 + math.exp(-0.4))
        return sum(w * tree(random, g - x, eps0, k, others - 1) for w, x in zip((p, 1 - p), loss, strict=True))
    x = random.uniform(0, 1, int(random.integers(2, 5)))
    x[:2] = 0, 1
    den = random.dirichlet(np.ones(x.size))
    num = den * np.exp(eps0 * x)
    num, loss = num / num.sum(), eps0 * x - math.log(num.sum())
    return sum(w * tree(random, g - y, eps0, k - 1, others) for w, y in zip(num, loss, strict=True))


def test_random_adaptive_runs_lie_below():  # [theory: range.recursion, range.interleaving]
    random = np.random.default_rng(8)
    for eps0 in (0.3, 1.5):
        for k, others in ((2, 0), (3, 1), (2, 2)):
            run = hs.top_k(eps0, k) + hs.pure_dp(0.4) * others if others else hs.top_k(eps0, k)
            for part in (-0.3, 0.0, 0.2, 0.6):
                g = part * (k * eps0 + others * 0.4)
                upper = hs.delta(run, g).upper
                assert all(tree(random, g, eps0, k, others) <= upper * (1 + 1e-12) for _ in range(10))


def test_among_other_steps():
    """Between what the lower and the upper curve give; below the pairs; more steps are worse."""
    rest = hs.gaussian(3.0) * 5 + hs.poisson_subsampled(hs.laplace(1.0), 0.1) * 3
    run = hs.top_k(0.2, 10) + rest
    b = hs.epsilon(run, 1e-5)
    assert b.upper - b.lower < 1e-3 * b.estimate and "top_k" in b.note
    assert (
        hs.epsilon(rest, 1e-5).lower < b.lower and b.upper <= hs.epsilon(hs.bounded_range(0.2) * 10 + rest, 1e-5).upper
    )
    assert hs.epsilon(hs.top_k(0.2, 11) + rest, 1e-5).lower > b.upper
    for direction in ("remove", "add"):
        own = hs.epsilon(run, 1e-5, direction=direction)
        assert own.lower <= b.upper
    twice = hs.epsilon(hs.top_k(0.2, 5) * 2, 1e-5)
    assert twice.upper >= hs.epsilon(hs.top_k(0.2, 10), 1e-5).lower


def test_curves_are_curves():
    """Convex between 1 - e^g and 1, lower below upper at all of both's points."""
    for eps0, k in ((0.01, 3), (0.5, 10), (30.0, 10), (1e-9, 2), (0.1, 300)):
        below, above = curves(hs.top_k(eps0, k))
        at = np.array(above.eps)
        low = np.interp(np.exp(at), np.exp(below.eps), below.delta, right=0.0)
        assert (low <= np.array(above.delta) * (1 + 1e-12)).all() and above.delta[-1] == 0.0
        assert (np.diff(above.delta) <= 0).all()


@pytest.mark.parametrize(
    "eps0, k", [(0.5, 0), (0.5, 2049), (0.5, 1.0), (200.0, 2), (0.0, 3), (math.nan, 3), (0.5, True)]
)
def test_bad_input(eps0, k):
    with pytest.raises(hs.DomainError):
        hs.top_k(eps0, k)


def test_what_it_does_not_have():
    step = hs.top_k(0.5, 10)
    for ask in (
        lambda: hs.rdp(step, 2.0),
        lambda: hs.poisson_subsampled(step, 0.1),
        lambda: hs.public_mixture([step], [1.0]),
    ):
        with pytest.raises(hs.DomainError):
            ask()
    with pytest.raises(hs.AccuracyError):
        hs.epsilon(step, 1e-6, rtol=1e-12)
    assert hs.top_k(0.5, 1) == hs.bounded_range(0.5)
    assert hs.permute_and_flip(0.5) == hs.pure_dp(0.5)


@pytest.mark.parametrize("eps0", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("m", [4, 40])
def test_between_two_steps_of_the_lattice(eps0, m):  # [theory: range.between]
    """The second step from above, against the bracket with chords of the first one's curve at every s."""
    h, work = eps0 / m, np.empty(_core.ranged_work(2 * m + 1, m))
    first, second = (_core.ranged_curve(np.full(k, m), h, 1, work) for k in (1, 2))
    g = h * np.arange(-2 * m - 1, 3 * m + 1)
    above = np.concatenate([first, np.zeros(2 * m)])
    above = np.concatenate([-np.expm1(g[: 2 * m + 1]) + np.exp(g[: 2 * m + 1]) * above[2 * m + 1 : 0 : -1], above])[
        : g.size
    ]
    s = eps0 * np.linspace(0, 1, 32 * m + 1)
    p = np.expm1(s - eps0) / math.expm1(-eps0)
    for j in range(2 * m):
        ours, theirs = (np.interp(np.exp(j * h - s + move), np.exp(g), above) for move in (0.0, eps0))
        top = float((p * ours + (1 - p) * theirs).max())
        assert top * (1 - 1e-12) <= second[j]
        assert j > m or second[j] <= top * (1.3 if m == 4 else 1.03)  # far out a cell's bend is all that is left


def test_steps_of_different_ranges_in_order():  # [theory: range.several]
    """Between what the recursion attains on a fine grid and what any order costs; equal ranges are one."""
    ranges = [0.4, 0.2, 0.2]
    curve = lambda g: np.maximum(-np.expm1(g), 0.0)  # noqa: E731
    for eps0 in reversed(ranges):
        at = np.linspace(-2.0, 2.0, 4001)
        value = np.array([best(curve, g, eps0, 41) for g in at])
        curve = lambda g, at=at, value=value: np.where(  # noqa: E731
            g >= -2, np.interp(g, at, value, right=0.0), -np.expm1(g)
        )
    for g in (0.0, 0.2, 0.5):
        b = hs.delta(hs.top_k(ranges), g)
        assert b.lower <= float(curve(np.float64(g))) * (1 + 1e-5) and b.upper >= float(curve(np.float64(g))) * (
            1 - 1e-5
        )
    forth, back = (hs.epsilon(hs.top_k(r), 1e-4) for r in (ranges, ranges[::-1]))
    free = hs.epsilon(hs.top_k(0.2, 2) + hs.bounded_range(0.4), 1e-4)
    assert (
        max(forth.lower, back.lower) <= free.upper and forth.upper < hs.epsilon(hs.bounded_range(0.4) * 3, 1e-4).upper
    )
    many = [0.1] * 50 + [0.2] * 20
    assert hs.epsilon(hs.top_k(many), 1e-6).lower > hs.epsilon(hs.top_k(many[::-1]), 1e-6).upper + 0.01
    assert hs.top_k([0.5, 0.5]) == hs.top_k(0.5, 2)
    odd = hs.epsilon(hs.top_k([0.1, 0.1 * 2**0.5] * 10), 1e-6)
    assert odd.upper - odd.lower < 1e-3 * odd.lower
    for wrong in (([], None), ([0.1, -1.0], None), ([0.1, 0.2], 3), ("0.1", 2)):
        with pytest.raises(hs.DomainError):
            hs.top_k(*wrong)


def test_alone_and_as_a_pair_agree():
    step = hs.top_k(0.1, 60)
    for eps in (-0.7, 0.0, 0.3, 1.5, 4.0, 7.0):
        a, b = hs.delta(step, eps), hs.delta(step, eps, route="pld")
        assert a.lower <= b.upper and b.lower <= a.upper, eps
        if eps < 6:
            assert abs(hs.log_delta(step, eps).upper - math.log(a.upper)) < 1e-9
    for delta in (0.1, 1e-3, 1e-12):
        a = hs.epsilon(step, delta)
        assert hs.delta(step, a.upper).lower <= delta <= hs.delta(step, a.lower).upper * (1 + 1e-9)


@pytest.mark.parametrize("eps0", [1e-9, 1.1293141334827204e-09, 1e-6])
def test_below_the_least_loss_nothing_is_left_to_know(eps0):
    """There delta is 1 - e^eps; corners of the curve below are not lost to rounding [theory: pair.given-curve]."""
    for part in (1.001, 1.015, 1.3, 40.0):
        bound = hs.delta(hs.top_k(eps0, 3), -3 * eps0 * part)
        true = -math.expm1(-3 * eps0 * part)
        assert bound.lower <= true * (1 + 4e-16) and true * (1 - 4e-16) <= bound.upper


def test_delta_is_at_most_one():
    assert hs.delta(hs.top_k(49.61155880461834, 5), 0.01661667411068604, direction="add").upper == 1
