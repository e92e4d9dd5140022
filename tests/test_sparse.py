"""Sparse sampling: rare jumps explode K near its saddle, the contour lies below it. Checked against the certified
grids."""

import math

import numpy as np
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
def test_two_routes_meet_and_the_contour_is_narrow(sigma, q, k, delta, width, direction):
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


# -- where rare jumps, a long tail and a short line meet: an inversion of its own, in long double ----------------------


def long_double_log_delta(sigma, q, k, eps, c, period, reach, mesh):
    """log delta(eps), REMOVE, by trapezoid sums up to `reach` on Re z = c over an inner grid; K in its second-order
    form."""
    ld = np.longdouble
    m, q, k, eps, c = 1 / ld(sigma), ld(q), ld(k), ld(eps), ld(c)
    g = np.arange(math.floor(-12 / mesh), math.ceil((float((1 + c) * m) + 12) / mesh) + 1).astype(ld) * ld(mesh)
    U = q * np.expm1(m * g - m * m / 2)
    loss = np.log1p(U)
    E, log_density = (1 + c) * loss, -g * g / 2 + np.log(ld(mesh) / np.sqrt(2 * ld(np.pi)))
    density, tilted = np.exp(log_density), np.exp(E + log_density)
    second = np.where(np.abs(E) < 1, density * (np.expm1(np.minimum(E, 1)) - E), tilted - density * (1 + E))
    K = k * np.log1p((second + density * (1 + c) * (loss - U)).sum())
    r = tilted / tilted.sum()
    r, loss = r[r > 1e-28], loss[r > 1e-28]
    dy, total = 2 * ld(np.pi) / ld(period), ld(0)
    for n in range(int(reach / dy) + 1):
        y = n * dy
        x, w = (-2 * r * np.sin(y * loss / 2) ** 2).sum(), (r * np.sin(y * loss)).sum()
        size, turn = np.exp(k * np.log1p(2 * x + x * x + w * w) / 2), k * np.arctan2(w, 1 + x) - eps * y
        re, im = c * (1 + c) - y * y, y * (1 + 2 * c)
        total += (2 if n else 1) * size * (np.cos(turn) * re + np.sin(turn) * im) / (re * re + im * im)
    return float(K - c * eps + np.log(total * dy / (2 * ld(np.pi))))


CROSSINGS = [
    (1.0, 0.01, 10**4, 1e-30, 6.3, 60, 12, 0.01),
    (1.0, 1e-3, 10**6, 1e-300, 12.0, 300, 9, 0.01),
    (0.3, 1e-6, 10**9, 1e-30, 0.8, 400, 4, 0.004),
    (0.3, 1e-6, 10**9, 1e-5, 0.5, 200, 4, 0.004),
    pytest.param(0.3, 1e-3, 10**5, 1e-12, 0.17, 600, 8, 0.002, marks=pytest.mark.slow),
    pytest.param(0.4, 1e-5, 10**6, 1e-5, 0.8, 60, 160, 0.004, marks=pytest.mark.slow),
    pytest.param(0.7, 1e-4, 10**5, 1e-20, 6.0, 260, 300, 0.004, marks=pytest.mark.slow),
]


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is double here")
@pytest.mark.parametrize(("sigma", "q", "k", "delta", "c", "period", "reach", "mesh"), CROSSINGS)
def test_contour_where_bulk_and_jumps_meet(sigma, q, k, delta, c, period, reach, mesh):
    run = sgm(sigma, q, k)
    root = hs.epsilon(run, delta, direction="remove")
    assert root.route == "contour" and root.upper - root.lower <= 1e-9 * root.estimate
    at = hs.log_delta(run, root.estimate, direction="remove")
    truth = long_double_log_delta(sigma, q, k, root.estimate, c, period, reach, mesh)
    slack = 1e-14 * abs(truth)
    assert at.lower - slack <= truth <= at.upper + slack
    assert abs(at.estimate - truth) <= 1e-10
