"""Sparse sampling: rare jumps explode K near its saddle, the contour lies below it. Checked against the certified
grids."""

import math

import pytest

import hockeystick as hs
from hockeystick import _core, scratch
from hockeystick.what.pair import gaussian_steps
from rows import sgm

QUICK = [
    (2.0, 1e-4, 10**4, 1e-8, 1e-6),
    (2.0, 1e-4, 10**5, 1e-8, 1e-6),
    (1.0, 1e-3, 1000, 1e-5, 1e-8),
]
LONG = [
    (2.0, 1e-5, 10**5, 1e-8, 1e-3),
    (2.0, 1e-4, 100, 1e-5, 1e-8),
    (1.0, 1e-4, 10**4, 1e-5, 1e-7),
    (1.0, 1e-4, 10**5, 1e-8, 1e-5),
    (1.0, 1e-5, 10**6, 1e-5, 1e-6),
    (0.7, 1e-4, 10**5, 1e-5, 1e-7),
    (0.5, 1e-5, 10**6, 1e-5, 1e-6),
]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("sigma", "q", "k", "delta", "width"), QUICK + [pytest.param(*case, marks=pytest.mark.slow) for case in LONG]
)
def test_two_routes_meet_and_the_contour_is_narrow(sigma, q, k, delta, width, direction):  # [theory: line.depth]
    run = sgm(sigma, q, k)
    line = hs.epsilon(run, delta, route="contour", direction=direction)
    grid = hs.epsilon(run, delta, route="pld", direction=direction)
    assert max(line.lower, grid.lower) <= min(line.upper, grid.upper)
    assert line.upper - line.lower <= width * line.estimate
    at = hs.log_delta(run, line.estimate, route="contour", direction=direction)
    assert at.lower <= math.log(delta) + 1e-3 and at.upper >= math.log(delta) - 1e-3
    by_grid = hs.log_delta(run, line.estimate, route="pld", direction=direction)
    assert max(at.lower, by_grid.lower) <= min(at.upper, by_grid.upper)


@pytest.mark.parametrize("q", [1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("sigma", [0.3, 0.5, 0.7, 1.0, 2.0])
def test_large_training_runs_are_narrow(sigma, q):
    for k in (100, 10**4, 10**5, 10**6):
        for delta in (1e-5, 1e-8):
            bound = hs.epsilon(sgm(sigma, q, k), delta)
            assert bound.upper - bound.lower <= 2e-3 * bound.estimate


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("delta", [1e-5, 1e-30, 1e-300])
def test_every_corner_ends(delta, direction):
    """Down to noise of 0.05 and rates of 1e-9: an answer in order, or a status that declines; never a loop, never a
    NaN."""
    for sigma in (0.05, 0.3, 1.0, 10.0, 1e4):
        for q in (1e-9, 1e-6, 1e-3, 0.01, 0.5):
            for k in (10, 1000, 10**6, 10**9):
                steps = gaussian_steps(sgm(sigma, q, k), "add_remove")
                work = scratch.borrow(_core.contour_work(1))
                status, low, mid, high, *_ = _core.contour_ask(
                    steps, direction, 0, math.log(delta), 1e-9, 31.0, 1, work
                )
                scratch.give_back(work)
                assert status > 1 or low <= mid <= high
