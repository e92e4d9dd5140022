"""Sampled losses: the interval against exact binomial tails, the mean against exact compositions, both directions."""

import math
from concurrent.futures import ThreadPoolExecutor

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


DRAWN = {
    "one row": (lambda n, **o: hs.draw_balls_and_bins([[2.0]], 3.0, 1, n, **o), hs.gaussian(1.5)),
    "bins": (lambda n, **o: hs.draw_balls_and_bins(np.eye(8), 1.0, 4, n, **o),
             hs.balls_and_bins(hs.gaussian(1.0), 4, epochs=2)),
    "allocation": (lambda n, **o: hs.draw_balls_and_bins(np.eye(5), 0.8, 5, n, **o),
                   hs.random_allocation(hs.gaussian(0.8), 5)),
    "Poisson": (lambda n, **o: hs.draw_min_separation(np.eye(6), 1.0, 0.3, 1, n, **o),
                hs.poisson_subsampled(hs.gaussian(1.0), 0.3) * 6),
    "one round": (lambda n, **o: hs.draw_min_separation([[1]], 0.7, 0.2, 1, n, **o),
                  hs.poisson_subsampled(hs.gaussian(0.7), 0.2)),
    "turns": (lambda n, **o: hs.draw_min_separation(np.eye(6), 2.0, 1.0, 3, n, **o), hs.gaussian(2.0) * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_draws_of_known_mechanisms(name, direction):
    """Where a matrix mechanism is one that has a formula: alone, and beside other steps [theory: sampled.matrix]."""
    draw, step = DRAWN[name]
    sampled = draw(60_000, rng=np.random.default_rng(5), direction=direction)
    for eps, rest in ((0.2, None), (1.0, hs.laplace(3.0))):
        b = hs.monte_carlo(sampled, eps, run=rest, direction=direction, failure=1e-7)
        true = hs.delta(step if rest is None else step + rest, eps, direction=direction)
        assert b.lower <= true.lower and true.upper <= b.upper and b.upper - b.lower < 0.03


@pytest.mark.parametrize("name", ["bins", "allocation", "Poisson"])
def test_intervals_cover_as_often_as_stated(name):
    """Of 300 intervals with failure probability 0.1, 30 are allowed to miss: Chernoff's bound leaves far fewer."""
    draw, step = DRAWN[name]
    true, sampled = hs.delta(step, 0.3, direction="remove"), draw(300 * 1000, rng=11).reshape(300, 1000)
    found = [hs.monte_carlo(row, 0.3, failure=0.1) for row in sampled]
    assert sum(not b.lower <= true.estimate <= b.upper for b in found) <= 15
    assert all(b.upper - b.lower < 5 * math.sqrt(true.estimate / 1000) for b in found)
    assert abs(np.mean([b.estimate for b in found]) - true.estimate) < 5 * math.sqrt(true.estimate / 300_000)


def _mixture_delta(shifts, chances, eps, add):
    """delta of normal laws around shifts in three rounds against one around 0, by a product rule of ample accuracy."""
    x, dx = np.linspace(-6, 6 + float(shifts.max()), 80, retstep=True)
    axes = np.meshgrid(x, x, x, indexing="ij")
    base = np.exp(-0.5 * sum(a * a for a in axes)) * (dx / math.sqrt(2 * math.pi)) ** 3
    ratio = sum(
        p * np.exp(sum(s * a - 0.5 * s * s for s, a in zip(shift, axes, strict=True)))
        for shift, p in zip(shifts, chances, strict=True)
    )
    gain = np.maximum(1 - math.exp(eps) * ratio, 0) if add else np.maximum(ratio - math.exp(eps), 0)
    return float((base * gain).sum())


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_draws_of_correlated_rounds(direction):
    """Three rounds of full and of banded matrices, bins and rounds kept apart listed one by one."""
    full = np.array([[1.0, 0, 0], [0.7, 1.0, 0], [0.2, 0.5, 0.9]])
    banded, q = full * (full != 0.2), 0.4
    bins = np.array([[1, 0, 1], [0, 1, 0]])
    apart = {(): (1 - q) ** 3, (0,): q * (1 - q), (1,): (1 - q) * q, (2,): (1 - q) ** 2 * q, (0, 2): q * q}
    rounds = np.array([[float(j in taken) for j in range(3)] for taken in apart])
    assert sum(apart.values()) == pytest.approx(1)
    for sampled, shifts, chances in (
        (hs.draw_balls_and_bins(full, 0.8, 2, 100_000, rng=3, direction=direction), bins @ full.T, [0.5, 0.5]),
        (
            hs.draw_min_separation(banded, 0.8, q, 2, 100_000, rng=4, direction=direction),
            rounds @ banded.T,
            apart.values(),
        ),
    ):
        b = hs.monte_carlo(sampled, 0.4, direction=direction, failure=1e-6)
        true = _mixture_delta(shifts / 0.8, chances, 0.4, direction == "add")
        assert b.lower < true < b.upper < 1.1 * true


def test_seeds_and_generators():
    """A seed names the losses, a generator moves on, and what threads draw from their own is what one draws."""
    draw = lambda rng: hs.draw_min_separation(np.eye(9), 1.0, 0.3, 2, 400, rng=rng)  # noqa: E731
    random = np.random.default_rng(3)
    assert np.array_equal(draw(3), draw(random)) and not np.array_equal(draw(3), draw(random))
    assert np.array_equal(draw(3), draw(np.int64(3)))
    with ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(draw, np.random.default_rng(8).spawn(6)))
    assert np.array_equal(threads, [draw(each) for each in np.random.default_rng(8).spawn(6)])


def test_bad_draws():
    wide = [[1.0, 0, 0], [1.0, 1.0, 0], [0.5, 0, 1.0]]
    for text, ask in (
        ("bins must be an integer from 1 to 3, got 4", lambda: hs.draw_balls_and_bins(wide, 1.0, 4, 9, rng=1)),
        ("draws must be an integer", lambda: hs.draw_balls_and_bins(wide, 1.0, 2, 0, rng=1)),
        ("rng must be an integer", lambda: hs.draw_balls_and_bins(wide, 1.0, 2, 9, rng=None)),
        ("rng must be an integer", lambda: hs.draw_balls_and_bins(wide, 1.0, 2, 9, rng=-1)),
        ("direction must be", lambda: hs.draw_balls_and_bins(wide, 1.0, 2, 9, rng=1, direction="both")),
        ("sigma must be a number > 0", lambda: hs.draw_balls_and_bins(wide, 0.0, 2, 9, rng=1)),
        ("lower triangular", lambda: hs.draw_balls_and_bins([[1, 2], [0, 1]], 1.0, 2, 9, rng=1)),
        ("0 from 2 columns left.*got 0.5 at row 2", lambda: hs.draw_min_separation(wide, 1.0, 0.1, 2, 9, rng=1)),
        ("separation must be an integer from 1 to 3", lambda: hs.draw_min_separation(wide, 1.0, 0.1, 4, 9, rng=1)),
        (r"q must be in \(0, 1\], got 0.0", lambda: hs.draw_min_separation(wide, 1.0, 0.0, 3, 9, rng=1)),
    ):
        with pytest.raises(hs.DomainError, match=text):
            ask()
