"""Sampled losses: the interval against exact binomial tails, the mean against exact compositions, both directions."""

import math

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.sampled import _end

RANDOM = np.random.default_rng(2)


@pytest.mark.parametrize("n, y", [(10, 0.3), (50, 0.02), (200, 0.9)])
def test_interval_of_coins(n, y):
    """Intervals of coin counts miss the chance no more often than stated, by exact sums [theory: sampled.interval]."""
    for failure in (0.2, 0.01):
        room = math.log(2 / failure) / n
        ends = [(_end(k / n, room, 0.0), _end(k / n, room, 1.0)) for k in range(n + 1)]
        missed = sum(stats.binom.pmf(k, n, y) for k, (low, high) in enumerate(ends) if not low <= y <= high)
        assert missed <= failure
        assert all(low <= k / n <= high for k, (low, high) in enumerate(ends))
        width = ends[n // 2][1] - ends[n // 2][0]
        assert width < 2.1 * math.sqrt(2 * room * 0.25)


def losses(mu, n):
    return RANDOM.normal(mu * mu / 2, mu, n)


@pytest.mark.parametrize(
    "rest", [None, hs.gaussian(2.0), hs.laplace(2.0), hs.poisson_subsampled(hs.gaussian(0.8), 0.2)]
)
def test_composition(rest):
    """Sampled Gaussian losses with other steps beside the exact composition, both directions, eps of both signs
    [theory: sampled.mean]."""
    sampled, exact = losses(1.0, 40_000), hs.gaussian(1.0) if rest is None else hs.gaussian(1.0) + rest
    for direction in ("remove", "add"):
        for eps in (-1.0, 0.5, 2.0):
            b = hs.monte_carlo(sampled, eps, run=rest, direction=direction)
            true = hs.delta(exact, eps, direction=direction)
            assert b.lower <= true.lower and true.upper <= b.upper and not b.certified and "1e-09" in b.note
            assert b.upper - b.lower < 0.08 and abs(b.estimate - true.estimate) < 0.02


def test_directions_are_not_mixed_up():
    """Sampled losses of a Poisson sample, whose directions differ, beside steps whose directions differ."""
    q, n = 0.3, 200_000
    there = RANDOM.random(n) < q
    with_record, without = RANDOM.normal(there * 1.0, 0.5), RANDOM.normal(0.0, 0.5, n)
    loss = lambda x: np.log1p(q * np.expm1((x - 0.5) / 0.25))  # noqa: E731
    step = hs.poisson_subsampled(hs.gaussian(0.5), q)
    for direction, sampled in (("remove", loss(with_record)), ("add", -loss(without))):
        b = hs.monte_carlo(sampled, 0.6, run=step, direction=direction, failure=1e-6)
        true = hs.delta(step * 2, 0.6, direction=direction)
        assert b.lower <= true.lower and true.upper <= b.upper and b.upper - b.lower < 0.02


def test_infinite_losses():
    """Where den has nothing, delta counts fully."""
    sampled = np.r_[np.full(1000, math.inf), np.zeros(999_000)]
    b = hs.monte_carlo(sampled, 1.0, run=hs.gaussian(100.0))
    assert b.lower <= 1e-3 <= b.upper < 1.4e-3
    assert hs.monte_carlo([math.inf], 0.0, run=hs.gaussian(1.0)).upper == 1.0


@pytest.mark.parametrize("bad", [[], [math.nan], [-math.inf], [[0.1]], "losses", [True]])
def test_bad_losses(bad):
    with pytest.raises(hs.DomainError):
        hs.monte_carlo(bad, 1.0)


def test_bad_options():
    for options in ({"failure": 0.0}, {"failure": 0.9}, {"direction": "both"}, {"run": "gaussian"}):
        with pytest.raises(hs.DomainError):
            hs.monte_carlo([0.1], 1.0, **options)
    for eps in (math.nan, math.inf):
        with pytest.raises(hs.DomainError):
            hs.monte_carlo([0.1], eps)
