"""Bounded range: the pair of a step against its definition, sums of k of them against powers, samples against
quadrature."""

import functools
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from exact import mp, mpf, ranges_curve
from hockeystick.what.pair import step_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
cases = pytest.importorskip("cases")


@pytest.mark.parametrize("k, eps0, eps", cases.RANGED)
def test_published_digits(k, eps0, eps):
    b = hs.epsilon(hs.bounded_range(eps0) * k, 1e-6)
    assert abs(b.estimate - eps) < 5e-6 and b.upper - b.lower < 1e-11 and b.route == "contour"
    curve = ranges_curve(mpf(eps0), k)
    assert curve(mpf(b.lower))[1] >= 1e-6 >= curve(mpf(b.upper))[0]


def flipped(scores: np.ndarray) -> np.ndarray:
    """The law of permute-and-flip: candidates in random order, one is taken with probability e^(score - largest)."""
    law, orders = np.zeros(scores.size), list(itertools.permutations(range(scores.size)))
    for order in orders:
        left = 1.0
        for i in order:
            law[i] += left * math.exp(scores[i] - scores.max()) / len(orders)
            left *= -math.expm1(scores[i] - scores.max())
    return law


def test_permute_and_flip_is_a_threshold_of_laplace_noise_at_worst():  # [theory: range.flip]
    """Every set of four candidates, every way in which a neighbour moves their utilities; two candidates attain it."""
    rng = np.random.default_rng(20)
    for eps0, g in itertools.product((0.3, 2.0), (0.0, 0.2, 0.6, 0.9)):
        g *= eps0
        b = hs.delta(hs.laplace(1 / eps0), g)
        for scores in (*rng.uniform(0, 1.5 * eps0, (12, 4)), np.zeros(4)):
            before = flipped(scores)
            for moved in itertools.product((-0.5, 0.5), repeat=4):
                gain = flipped(scores + eps0 * np.array(moved)) - math.exp(g) * before
                assert gain[gain > 0].sum() <= b.upper * (1 + 1e-12)
        behind = np.array([-0.5 * (eps0 + g), 0.0])
        gain = flipped(behind + eps0 * np.array([0.5, -0.5])) - math.exp(g) * flipped(behind)
        assert b.lower * (1 - 1e-12) <= gain[0] <= b.upper * (1 + 1e-12)


def test_the_supremum_over_two_point_pairs():  # [theory: range.two-points, range.pair]
    """delta(g) is the largest over s of p_s (1 - e^{g-s})_+ + (1 - p_s)(1 - e^{g-s+eps0})_+."""
    for eps0 in (1e-3, 0.7, 9.0):
        s = np.linspace(0, eps0, 20001)
        p = -np.expm1(s - eps0) / -math.expm1(-eps0)
        for g in np.array([-0.9, -0.3, 0.0, 0.2, 0.95]) * eps0:
            best = np.max(p * np.maximum(-np.expm1(g - s), 0) + (1 - p) * np.maximum(-np.expm1(g - s + eps0), 0))
            b = hs.delta(hs.bounded_range(eps0), g)
            assert b.lower * (1 - 1e-7) <= best * (1 + 1e-7) and best <= b.upper * (1 + 1e-12)


@mp.workdps(30)
@functools.cache
def gauss_legendre():
    return np.polynomial.legendre.leggauss(400)


def sampled_delta(eps0: float, q: float, k: int, eps: float, add: bool) -> float:
    """delta of k samples: cells of losses of one step, convolved by sums over all tuples of few cells; k is 1 or 2."""
    top = mpf(eps0)
    norm = 4 * mp.sinh(top / 2)
    loss = lambda u: mp.log1p(q * mp.expm1(u))  # noqa: E731

    def step(u):  # density of the base loss under num, and the loss
        den = mp.exp(-u / 2) / norm
        return (den, -loss(u)) if add else (den * (1 + q * mp.expm1(u)), loss(u))

    if k == 1:
        f = lambda u: step(u)[0] * max(1 - mp.exp(eps - step(u)[1]), 0)  # noqa: E731
        inner = 1 + mp.expm1(-eps if add else eps) / q
        kink = mp.log(inner) if inner > 0 else -top
        return float(mp.quad(f, sorted({-top, min(max(kink, -top), top), top})))
    x, w = gauss_legendre()
    u = float(top) * x
    den = float(top) * w * np.exp(-u / 2) / float(norm)
    at = np.log1p(q * np.expm1(u))
    num, at = (den, -at) if add else (den * np.exp(at), at)
    return float(np.sum(np.outer(num, num) * np.maximum(-np.expm1(eps - np.add.outer(at, at)), 0)))


@pytest.mark.parametrize("eps0, q", [(0.5, 0.1), (1.0, 0.02), (0.05, 0.9)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_poisson_samples(eps0, q, direction):
    step = hs.poisson_subsampled(hs.bounded_range(eps0), q)
    for k, slack in ((1, 1e-11), (2, 3e-5)):
        top = math.log1p(q * math.expm1(eps0)) if direction == "remove" else -math.log1p(q * math.expm1(-eps0))
        for part in (0.0, 0.3):
            true = sampled_delta(eps0, q, k, part * k * top, direction == "add")
            found = [
                hs.delta(step * k, part * k * top, direction=direction, route=r) for r in ("auto", "contour", "pld")
            ]
            assert all(b.lower * (1 - slack) <= true <= b.upper * (1 + slack) for b in found)
            assert max(b.lower for b in found) <= min(b.upper for b in found)
            assert found[0].upper - found[0].lower <= 1e-7 * found[0].estimate


def test_among_other_steps():
    run = hs.bounded_range(0.5) * 10 + hs.gaussian(5.0) * 10 + hs.laplace(4.0) * 3 + hs.pure_dp(0.2) * 5
    run += hs.poisson_subsampled(hs.bounded_range(1.0), 0.05) * 7
    found = [hs.epsilon(run, 1e-6, route=route) for route in ("contour", "pld", "saddlepoint")]
    assert found[0].upper - found[0].lower < 1e-9 and found[1].upper - found[1].lower < 0.01
    assert max(b.lower for b in found) <= min(b.upper for b in found)


def test_against_others_known():
    """Randomised response is worse, and no pair of range eps0/2 is; an eps0-DP step has range 2 eps0."""
    for eps in (0.1, 0.5, 0.9):
        ours = hs.delta(hs.bounded_range(1.0), eps)
        assert ours.upper < hs.delta(hs.pure_dp(1.0), eps).lower
        assert ours.lower > hs.delta(hs.bounded_range(0.5), eps).upper
        assert hs.delta(hs.pure_dp(1.0), eps).upper <= hs.delta(hs.bounded_range(2.0), eps).lower
    assert hs.epsilon(hs.bounded_range(0.1) * 100, 1e-6).upper < hs.epsilon(hs.pure_dp(0.1) * 100, 1e-6).lower


def test_an_exponential_mechanism():  # [theory: range.pair]
    """Random utilities and neighbours: every curve lies below the pair's."""
    random = np.random.default_rng(5)
    for _ in range(200):
        eps0, n = float(np.exp(random.uniform(-3, 2))), int(random.integers(2, 8))
        u = random.uniform(-3, 3, n)
        v = u + random.uniform(-1, 1, n)
        p, d = (np.exp(eps0 * x / 2) / np.exp(eps0 * x / 2).sum() for x in (u, v))
        for eps in np.array([-0.8, -0.1, 0.0, 0.3, 0.7]) * eps0:
            own = np.maximum(p - np.exp(eps) * d, 0).sum()
            assert own <= hs.delta(hs.exponential_mechanism(eps0), eps).upper + 1e-15


def test_renyi_divergence():  # [theory: range.law]
    for eps0, alpha in ((1e-9, 2.0), (0.3, 1.5), (5.0, 40.0), (300.0, 3.0)):
        m, t = mpf(eps0), mpf(alpha) - 1
        true = mp.log(mp.sinh((t + 0.5) * m) / ((2 * t + 1) * mp.sinh(m / 2))) / t
        b = hs.rdp(hs.bounded_range(eps0), alpha)
        assert b.lower <= true <= b.upper <= b.lower * (1 + 1e-13)


def test_tails_of_the_loss():
    for m in (1e-9, 0.4, 300.0):
        s = np.array([-1.1, -1.0, -0.99, -0.2, 0.0, 1e-9, 0.7, 1.0, 2.0]) * m
        t = step_loss(hs.bounded_range(m), "add_remove", False).tails(s)
        for i, x in enumerate(s):
            x = min(max(mpf(x), -mpf(m)), mpf(m))
            y_below, y_above = mp.expm1((x + m) / 2) / mp.expm1(m), mp.expm1((x - m) / 2) / mp.expm1(-m)
            x_above, x_below = mp.expm1((m - x) / 2) / mp.expm1(m), mp.expm1((-x - m) / 2) / mp.expm1(-m)
            for found, true in zip(t[:4], (y_below, y_above, x_below, x_above), strict=True):
                assert abs(mpf(found[i]) - true) <= t.rel[i] * true + t.absolute


@pytest.mark.parametrize("eps0", [1e-9, math.nextafter(1e-9, 1), 1e-3, 40.0, 300.0])
@pytest.mark.parametrize("k", [1, 2, 17, 10**6, 10**12])
def test_the_whole_domain(eps0, k):
    """An answer that a Chernoff bound confirms, or a named error."""
    for delta in (1e-300, 1e-9, 0.3):
        try:
            b = hs.epsilon(hs.bounded_range(eps0) * k, delta)
        except hs.AccuracyError:
            continue
        assert 0 <= b.lower <= b.upper <= k * eps0 * (1 + 1e-12)
        assert b.lower <= hs.moments_epsilon_upper(hs.bounded_range(eps0) * k, delta)


@pytest.mark.parametrize("bad", [0.0, 9e-10, 300.1])
@pytest.mark.parametrize("make", [hs.bounded_range, hs.exponential_mechanism])
def test_bad_input(make, bad):
    with pytest.raises(hs.DomainError, match="eps0 must be"):
        make(bad)


def test_relations():
    """The guarantee is the caller's under any relation; a sample of it is known under add_remove."""
    run = hs.bounded_range(0.5) * 3
    relations = ("add_remove", "replace_one", "zero_out")
    found = [hs.epsilon(run, 1e-3, adjacency=a, direction=d) for a in relations for d in ("remove", "add")]
    assert len(set(found)) == 1
    for adjacency in ("replace_one", "zero_out"):
        with pytest.raises(hs.DomainError, match="adjacency"):
            hs.epsilon(hs.poisson_subsampled(hs.bounded_range(0.5), 0.1), 1e-3, adjacency=adjacency)
    assert hs.exponential_mechanism(0.5) == hs.bounded_range(0.5)


def test_the_judge():
    pytest.importorskip("flint")
    runs = (hs.bounded_range(0.7), hs.bounded_range(0.3) * 10, hs.poisson_subsampled(hs.bounded_range(0.5), 0.3) * 300)
    for run in (*runs, hs.bounded_range(0.3) * 10 + hs.gaussian(4.0) * 2):
        for direction in ("remove", "add"):
            b = hs.epsilon(run, 1e-5, direction=direction)
            assert hs.verify(run, b, direction=direction).verdict == "confirmed"
            wrong = hs.Bound(*(x * 1.0001 for x in (b.lower, b.estimate, b.upper)), b.route, True, b.budget)
            assert hs.verify(run, wrong, delta=1e-5, direction=direction).verdict == "refuted"
