"""Bounds where one rare large loss makes nearly all of the curve: against certified intervals, and how close they
come."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.pair import gaussian_steps
from hockeystick.routes import jumps


def sparse_runs(count, seed):
    """(steps, eps, certified log delta) at random where the contour is narrow, up to three distinct steps."""
    rng = np.random.default_rng(seed)
    while count:
        parts = [
            (
                hs.poisson_subsampled(hs.gaussian(10 ** rng.uniform(-0.7, 0.69)), 10 ** rng.uniform(-6, -1.3)),
                int(10 ** rng.uniform(0, 4)),
            )
            for _ in range(rng.integers(1, 4))
        ]
        run = hs.compose(*parts)
        steps = gaussian_steps(run, "add_remove")
        if not jumps.serves(steps):
            continue
        try:
            root = hs.epsilon(run, 10 ** rng.uniform(-14, -2), direction="remove", route="contour")
            eps = root.estimate * rng.uniform(0.5, 1.2)
            truth = hs.log_delta(run, eps, direction="remove", route="contour") if eps > 0 else None
        except hs.AccuracyError:
            continue
        if truth and truth.upper - truth.lower < 1e-3:
            count -= 1
            yield steps, eps, truth


def test_both_sides():  # [theory: small.jumps]
    off, said = [], 0
    for steps, eps, truth in sparse_runs(300, 3):
        lower, upper = jumps.log_delta_lower(steps, eps), jumps.log_delta_upper(steps, eps)
        assert lower <= truth.upper and truth.lower <= upper
        said += lower > -math.inf
        off.append(upper - truth.upper)
    assert said > 200
    assert np.quantile(off, 0.25) < 2  # nats


@pytest.mark.parametrize(
    ("sigma", "q", "k", "delta", "ratio"),
    [
        (1.0, 1e-6, 10**3, 1e-30, 1.03),  # [0.0344, 2.4] without these bounds
        (1.0, 1e-9, 10**3, 1e-30, 1.06),
        (3.0, 1e-6, 10**3, 1e-300, 1.03),
        (1.74, 2.22e-6, 19, 1e-30, 1.2),
        (1.01, 2.96e-6, 15680, 1e-15, 2.0),
    ],
)
def test_what_nothing_else_narrows(sigma, q, k, delta, ratio):
    step = hs.poisson_subsampled(hs.gaussian(sigma), q)
    b = hs.epsilon(step * k, delta)
    assert b.certified and 0 < b.lower < b.upper < ratio * b.lower
    assert b.upper > hs.epsilon(step, delta / k).lower * 0.99  # k steps reveal more than one, of which each is one of k
    at = hs.log_delta(step * k, math.sqrt(b.lower * b.upper))
    assert at.lower <= at.upper and at.lower - 40 < math.log(delta) < at.upper + 40


def test_empty_hands():
    """Where losses do not say anything there is no bound, and no number that is not one."""
    steps = gaussian_steps(hs.poisson_subsampled(hs.gaussian(0.02), 1e-6) * 10, "add_remove")
    for eps in (1e-300, 1e-9, 1.0, 1e4):
        lower, upper = jumps.log_delta_lower(steps, eps), jumps.log_delta_upper(steps, eps)
        assert lower == lower and upper == upper and lower <= upper
