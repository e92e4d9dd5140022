"""Per-record epsilons: against the query of the library record by record, routes against each other, anchors, bad
input."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.individual import epsilons
from hockeystick.individual.gaussian import gdp_epsilons_upper

LEVELS = 16
SIGMAS = 1 / np.sqrt(np.arange(1, LEVELS + 1) / LEVELS)  # uniform in 1/sigma^2


def random_counts(n, steps, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    return rng.multinomial(steps, rng.dirichlet(np.full(LEVELS, spread), n))


def truth(row, sigmas, q, delta):
    rates = np.broadcast_to(q, len(sigmas))
    steps = [
        (hs.poisson_subsampled(hs.gaussian(s), p), int(k)) for s, p, k in zip(sigmas, rates, row, strict=True) if k
    ]
    return hs.epsilon(hs.compose(*steps), delta)


CASES = [  # q, delta, steps, largest relative excess over the truth (a few records of 40 are wider, and counted)
    (0.01, 1e-5, 1000, 1e-5),
    (0.01, 1e-10, 1000, 1e-5),
    (0.01, 1e-30, 1000, 1e-3),
    (0.05, 1e-6, 300, 1e-5),
    (0.5, 1e-5, 50, 1e-5),
    (0.9, 1e-5, 50, 1e-5),
    (1e-3, 1e-5, 5000, 1e-3),
    (1e-3, 1e-5, 1000, 1e-3),  # delta lies where rare jumps take over
]


@pytest.mark.parametrize(("q", "delta", "steps", "excess"), CASES)
def test_above_the_truth_and_close(q, delta, steps, excess):  # [theory: individual.contour, individual.linear]
    counts = random_counts(40, steps)
    found = hs.individual_epsilons(counts, sigmas=SIGMAS, q=q, delta=delta)
    wide = 0
    for i in range(0, 40, 4):
        bound = truth(counts[i], SIGMAS, q, delta)
        assert found.upper[i] >= bound.lower
        wide += found.upper[i] > bound.upper * (1 + excess)
    assert wide <= found.wider <= (6 if q < 0.01 else 0) and found.route == "contour" and "ex post" in found.label


def test_records_far_apart_in_one_call():
    """From nothing to everything: one step to 20,000, each record on a contour that suits it."""
    counts = np.zeros((60, LEVELS), int)
    rng = np.random.default_rng(4)
    for i, total in enumerate(np.geomspace(1, 20_000, 59).astype(int)):
        counts[i + 1, rng.integers(LEVELS)] = total
    found = hs.individual_epsilons(counts, sigmas=SIGMAS, q=0.02, delta=1e-6)
    assert found.upper[0] == 0
    for i in range(1, 60, 3):
        bound = truth(counts[i], SIGMAS, 0.02, 1e-6)
        assert found.upper[i] >= bound.lower
        assert found.upper[i] <= bound.upper * (1 + 1e-3) + 1e-6 or found.wider


def test_small_norms_with_rare_large_ones():
    """Most of 100 steps at the lowest levels, a few far up: far nodes have no relative accuracy, and need none."""
    rng, sigmas = np.random.default_rng(1), 2.5 / np.sqrt(np.arange(1, 33) / 32)
    counts = np.zeros((60, 32), int)
    for row in counts:
        row[:8] = rng.multinomial(97, rng.dirichlet(np.geomspace(8, 0.5, 8)))
        row[rng.integers(8, 24, 3)] += 1
    found = hs.individual_epsilons(counts, sigmas=sigmas, q=0.1, delta=1e-5)
    assert found.wider == 0
    for row, upper in zip(counts[::6], found.upper[::6], strict=True):
        bound = truth(row, sigmas, 0.1, 1e-5)
        assert bound.lower <= upper <= bound.upper * (1 + 1e-6)


def test_a_curve_bent_by_rare_jumps():
    """Newton's steps overshoot on it: a bound twelve times too large passed for close."""
    sigmas = np.array([1.58, 1.29, 2.57, 2.02, 0.74, 0.35, 0.79, 1.1, 19.8])
    row = np.array([0, 1341, 167, 12, 2484, 19, 1178, 1, 36])
    found = hs.individual_epsilons(row[None], sigmas=sigmas, q=6.8e-4, delta=7.4e-3)
    bound = truth(row, sigmas, 6.8e-4, 7.4e-3)
    assert bound.lower <= found.upper[0] <= bound.upper * (1 + 1e-6)


def test_rates_of_their_own_and_plain_levels():
    q = np.where(np.arange(LEVELS) % 2, 1.0, 0.05)
    counts = random_counts(12, 60, seed=3)
    found = hs.individual_epsilons(counts, sigmas=4 * SIGMAS, q=q, delta=1e-5)
    for row, upper in zip(counts, found.upper, strict=True):
        bound = truth(row, 4 * SIGMAS, q, 1e-5)
        assert bound.lower <= upper <= bound.upper * (1 + 1e-4)


def test_more_of_anything_never_costs_less():
    base = random_counts(50, 500, seed=7)
    more = base + random_counts(50, 20, seed=8)
    low, high = (hs.individual_epsilons(c, sigmas=SIGMAS, q=0.02, delta=1e-5).upper for c in (base, more))
    assert (low <= high).all()


def test_same_bits_for_every_thread_count_and_type():
    counts = random_counts(500, 800, seed=2)
    reference = hs.individual_epsilons(counts, sigmas=SIGMAS, q=0.01, delta=1e-5).upper
    for threads in (2, 3):
        assert np.array_equal(
            reference, hs.individual_epsilons(counts, sigmas=SIGMAS, q=0.01, delta=1e-5, n_threads=threads).upper
        )
    for kind in (np.uint16, np.int32, np.uint64):
        given = np.asfortranarray(counts.astype(kind))
        assert np.array_equal(reference, hs.individual_epsilons(given, sigmas=SIGMAS, q=0.01, delta=1e-5).upper)


def test_plain_levels_are_one_number_a_record():
    counts = random_counts(300, 40, seed=5)
    found = hs.individual_epsilons(counts, sigmas=10 * SIGMAS, delta=1e-5)
    assert found.route == "gaussian"
    for i in range(0, 300, 30):
        bound = truth(counts[i], 10 * SIGMAS, 1.0, 1e-5)
        assert bound.lower <= found.upper[i] <= bound.upper * (1 + 1e-5)


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12, 1e-100])
def test_chords_stay_above_a_convex_curve(delta):  # [theory: individual.convex]
    mu = np.concatenate(([0.0, 1e-12, 1e-7], np.geomspace(1e-5, 50, 400)))
    upper = gdp_epsilons_upper(mu, delta)
    assert (np.diff(upper) >= 0).all() and upper[0] == 0
    for i in range(3, mu.size, 37):
        bound = hs.epsilon(hs.gaussian(1 / mu[i]), delta)
        assert bound.lower <= upper[i] <= bound.upper * (1 + 1e-4) + 1e-4 * mu[i]


def test_progress_and_empty():
    seen = []
    counts = random_counts(100, 100)
    hs.individual_epsilons(counts, sigmas=SIGMAS, q=0.1, delta=1e-5, progress=lambda *at: seen.append(at))
    assert (100, 100) in seen and seen == sorted(seen)
    assert hs.individual_epsilons(counts[:0], sigmas=SIGMAS, q=0.1, delta=1e-5).upper.size == 0


ONE = np.ones((2, 2), int)
BAD = [
    (dict(counts=np.ones((2, 2)), sigmas=[1, 2], delta=1e-5), "array of integers"),
    (dict(counts=np.ones(2, int), sigmas=[1, 2], delta=1e-5), "array of integers"),
    (dict(counts=-ONE, sigmas=[1, 2], delta=1e-5), "from 0 to"),
    (dict(counts=ONE * 2**40, sigmas=[1, 2], delta=1e-5), "from 0 to"),
    (dict(counts=ONE, sigmas=[1], delta=1e-5), "each of 2 levels"),
    (dict(counts=ONE, sigmas=[1, math.nan], delta=1e-5), "sigmas"),
    (dict(counts=ONE, sigmas=[1, 0], delta=1e-5), "sigmas"),
    (dict(counts=ONE, sigmas=["a", "b"], delta=1e-5), "sigmas"),
    (dict(counts=ONE, sigmas=[1, 2], delta=1e-5, q=[0.1]), "q must"),
    (dict(counts=ONE, sigmas=[1, 2], delta=1e-5, q=[0.1, math.nan]), "q must"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call, message):
    with pytest.raises(hs.DomainError, match=message):
        hs.individual_epsilons(call.pop("counts"), **call)


def test_a_record_that_its_group_does_not_suit_keeps_a_certified_bound(monkeypatch):
    """With one tilt for all and nobody taken up singly, bounds get wide, are counted, and stay above the truth."""
    monkeypatch.setattr(epsilons, "_tilts", lambda *_: np.array([4.0]))
    monkeypatch.setattr(epsilons, "SINGLY", 0)
    monkeypatch.setattr(epsilons, "GRIDS", 0)
    counts = np.zeros((4, LEVELS), int)
    counts[:, 3] = (1, 100, 10_000, 1_000_000)
    found = hs.individual_epsilons(counts, sigmas=SIGMAS, q=0.02, delta=1e-6)
    assert found.wider > 0
    for row, upper in zip(counts, found.upper, strict=True):
        assert math.isfinite(upper) and upper >= truth(row, SIGMAS, 0.02, 1e-6).lower


def test_fft_refuses_deltas_whose_parts_underflow():
    with pytest.raises(hs.AccuracyError, match="contour"):
        hs.individual_epsilons([[45], [0]], sigmas=[0.7], delta=5e-324, q=0.007, route="fft")
