"""Attacks by name, and the audit in one run: against closed forms, the published recursion, and attacks carried out."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import hockeystick as hs


def test_reconstruction_is_a_rate():
    """Phi(Phi^-1(baseline) + mu) for Gaussian noise; num is the law with the record [theory: risk.guess]."""
    for baseline in (1e-6, 0.01, 0.5, 0.9):
        b = hs.reconstruction(hs.gaussian(2.0), baseline)
        true = ndtr(ndtri(baseline) + 0.5)
        assert b.lower <= true * (1 + 1e-9) and true <= b.upper * (1 + 1e-9)
        assert b.upper < b.lower * (1 + 1e-6)
    run = hs.poisson_subsampled(hs.gaussian(0.7), 0.1)
    one, other = (hs.true_positive_rate(run, 0.01, direction=d) for d in ("remove", "add"))
    assert hs.reconstruction(run, 0.01) == one != other


def test_guessing_carried_out():
    """Four records, one with noise added: the best guess of which is right no more often than the bound, and nearly."""
    noise, sums = np.random.default_rng(4).normal(0, 1.0, 200_000), np.array([-1.0, -1 / 3, 1 / 3, 1.0])
    which = np.arange(noise.size) % 4
    right = np.mean(np.abs((sums[which] + noise)[:, None] - sums).argmin(axis=1) == which)
    assert 0.35 < right < hs.reconstruction(hs.gaussian(1.0), 0.25).upper


def test_attribute_advantage():
    for run in (hs.gaussian(1.0), hs.poisson_subsampled(hs.gaussian(0.7), 0.1) * 5):
        by = [hs.attribute_advantage(run, p) for p in (0.001, 0.1, 0.3, 0.5, 0.9)]
        assert all(0 <= b.lower <= b.upper <= hs.advantage(run).upper * (1 + 1e-9) for b in by)
        assert by[2].lower > by[0].upper
    assert hs.attribute_advantage(hs.gaussian(0.01), 1.5e-90).upper == 1


def test_calibration():
    make = lambda s: hs.gaussian(s) * 3  # noqa: E731
    found = hs.calibrate(make, over=(0.5, 50.0), reconstruction=0.03, baseline=0.01)
    assert hs.reconstruction(make(found.value), 0.01).upper <= 0.03 < hs.reconstruction(make(found.limit), 0.01).lower
    found = hs.calibrate(make, over=(0.5, 50.0), attribute_advantage=0.1, baseline=0.5)
    true = lambda s: ndtr(math.sqrt(3) / s) - 0.5  # noqa: E731
    assert true(found.value) <= 0.1 + 1e-12 and abs(true(found.value) / 0.1 - 1) < 1e-5
    found = hs.calibrate(make, over=(0.5, 50.0), reidentification=0.03, records=100)
    assert hs.reidentification(make(found.value), 100).upper <= 0.03
    assert hs.reidentification(make(found.value), 100) == hs.reconstruction(make(found.value), 0.01)
    for target in ({"reconstruction": 0.1}, {"baseline": 0.1}, {"reconstruction": 1.5, "baseline": 0.1}):
        with pytest.raises(hs.DomainError):
            hs.calibrate(make, over=(0.5, 50.0), **target)


def rejected(mu, m, g, v, s):
    """The published recursion for the Gaussian curve [MMC24]."""
    r, h = s * v / m, s * (g - v) / m
    for i in range(v - 1, -1, -1):
        more = max(h, ndtr(ndtri(r) - mu))
        if more <= h:
            break
        r, h = min(1.0, r + i / (g - i) * (more - h)), more
    return r + h > g / m


RUNS = [(0.5, 1000, 1000, 800), (1.0, 1000, 300, 290), (1.0, 10000, 2000, 1800), (0.1, 100, 90, 85)]


@pytest.mark.parametrize("mu, m, g, v", RUNS)
def test_audit_is_the_published_test(mu, m, g, v):
    """The p-value is where the published test of the Gaussian curve turns [theory: risk.one-run]."""
    p = hs.one_run_audit(hs.gaussian(1 / mu), canaries=m, guesses=g, correct=v)
    assert p == 1.0 or rejected(mu, m, g, v, p * (1 + 1e-9))
    assert p <= 1e-12 or not rejected(mu, m, g, v, p * 10 ** (-2 / 24))


PUBLISHED = [(406, 379, 386, 2.164749), (938, 934, 374, 4.7218075), (5436, 5436, 140, 9.133752)]


@pytest.mark.parametrize("guesses, correct, rules, eps", PUBLISHED)
def test_published_estimates_of_gaussian_noise(guesses, correct, rules, eps):
    """jax_privacy's own cases: scores at the quantiles of a normal law, moved by 1, 2 and 4, at the best corner of the
    concave majorant of the rates, significance 0.05 over their number; its curve is exact, ours has points
    [theory: risk.family]."""
    seen = {"canaries": 20000, "guesses": guesses, "correct": correct, "delta": 1e-6}
    found = hs.one_run_epsilon_lower(hs.gaussian, over=(0.2, 50.0), significance=0.05 / rules, **seen)
    assert eps * (1 - 4e-3) < found <= eps


def test_no_estimate_without_a_rejection():
    seen = {"over": (0.5, 5.0), "canaries": 100, "delta": 1e-5}
    assert hs.one_run_epsilon_lower(hs.gaussian, guesses=100, correct=50, **seen) == 0
    narrow = seen | {"over": (4, 5), "significance": 0.5}
    least = hs.one_run_epsilon_lower(hs.gaussian, guesses=100, correct=100, **narrow)
    assert least == hs.epsilon(hs.gaussian(4.0), 1e-5).lower


def test_audit_keeps_its_level():
    """Canaries of exactly the claimed noise, the best threshold: the claim is refuted no more often than its level."""
    random, m, g = np.random.default_rng(11), 400, 100
    refuted = 0
    table = [hs.one_run_audit(hs.gaussian(1.0), canaries=m, guesses=g, correct=v) for v in range(60, g + 1, 5)]
    assert table == sorted(table, reverse=True) and table[-1] < 0.01
    least = {v: p for v, p in zip(range(60, g + 1, 5), table, strict=True)}
    for _ in range(2000):
        status = random.integers(0, 2, m)
        score = status + random.normal(0, 1, m) - 0.5
        chosen = np.argsort(-np.abs(score))[:g]
        v = int(np.sum((score[chosen] > 0) == status[chosen]))
        refuted += least[max(5 * (v // 5), 60)] <= 0.05 if v >= 60 else 0
    assert refuted <= 0.05 * 2000


def test_audit_refutes_less_noise():
    """Scores with a third of the claimed noise; a stronger claim is refuted first."""
    claims = [hs.one_run_audit(hs.gaussian(s), canaries=1000, guesses=500, correct=480) for s in (0.3, 0.5, 1.0, 3.0)]
    assert claims == sorted(claims, reverse=True) and claims[0] == 1.0 and claims[-1] < 1e-6


@pytest.mark.parametrize("numbers", [(10, 11, 5), (10, 5, 6)])
def test_bad_numbers(numbers):
    canaries, guesses, correct = numbers
    with pytest.raises(hs.DomainError):
        hs.one_run_audit(hs.gaussian(1.0), canaries=canaries, guesses=guesses, correct=correct)
