"""The PRV route against exact answers, the truth table, itself (two convolutions, two FFTs) and bad
settings."""

import math

import numpy as np
import pytest

from hockeystick import _fft
from hockeystick.bound import AccuracyError, DomainError
from hockeystick.grid import discretise, radius_upper
from hockeystick.pair import GaussianSteps
from hockeystick.routes.fft import prv_delta, prv_epsilon
from rows import gaussian_delta


def steps(*rows):
    return GaussianSteps(*(np.ascontiguousarray(column) for column in np.array(rows, dtype=float).T))


@pytest.mark.parametrize(
    ("sigma", "k", "delta"),
    [
        (1.0, 1, 1e-5),
        (3.0, 7, 1e-8),
        (100.0, 10**4, 1e-12),
        (math.sqrt(1e5), 10**5, 1e-13),
        (50.0, 2500, 1e-40),
    ],
)
def test_exact_gaussian(sigma, k, delta):
    """k = 1e4 and 1e5 are where an untilted FFT accountant returns upper bounds below the truth."""
    mu = math.sqrt(k) / sigma
    for eps_error in (0.1, 0.01):
        lower, estimate, upper, terms = prv_epsilon(steps((1 / sigma, 1, k)), False, [delta], eps_error=eps_error)
        assert gaussian_delta(mu, lower[0]) >= delta >= gaussian_delta(mu, upper[0])
        assert upper[0] - lower[0] <= 2.1 * eps_error
        assert abs(gaussian_delta(mu, estimate[0]) / delta - 1) < 0.05
        assert terms["truncation"][0] + terms["fft_rounding"][0] <= 1e-3 * delta


def test_curve_of_deltas():
    """One call, deltas from 1 to 1e-60: sound on both sides, monotone, and tight against shifted truth."""
    eps = np.array([-3.0, 0.0, 1.0, 4.0, 9.0, 16.0])
    lower, estimate, upper, _ = prv_delta(steps((0.1, 1, 100)), False, eps, eps_error=0.01)
    for e, lo, est, up in zip(eps, lower, estimate, upper, strict=True):
        assert lo <= gaussian_delta(1, e) <= up
        assert lo <= est <= up
        assert gaussian_delta(1, e + 0.0101) * (1 - 0.01) <= lo
        assert up <= gaussian_delta(1, e - 0.0101) * (1 + 0.01)


@pytest.mark.parametrize("add", [False, True])
def test_squaring_equals_power(add):
    run = steps((1.0, 0.01, 500), (0.5, 0.02, 37), (0.1, 1, 3))
    eps = np.array([0.5, 2.0])
    a = prv_delta(run, add, eps, eps_error=0.02)
    b = prv_delta(run, add, eps, eps_error=0.02, how="squaring")
    assert np.all(np.abs(a[1] - b[1]) <= a[3]["fft_rounding"] + b[3]["fft_rounding"])
    assert np.all((a[0] <= b[2]) & (b[0] <= a[2]))


def test_scipy_fallback(monkeypatch):
    run = steps((0.01, 1, 10**4))
    first = prv_epsilon(run, False, [1e-12])
    monkeypatch.setenv("HS_NO_PYFFTW", "1")
    assert _fft._pyfftw() is None
    lower, estimate, upper, _ = prv_epsilon(run, False, [1e-12])
    assert gaussian_delta(1, lower[0]) >= 1e-12 >= gaussian_delta(1, upper[0])
    assert abs(estimate[0] - first[1][0]) < 1e-9


def test_fft_error_is_inside_its_bound():
    rng = np.random.default_rng(1)
    for n in (1 << 12, 5 << 11, 45 << 8):
        x = _fft.zeros(n)
        x[:] = rng.random(n)
        exact = np.fft.rfft(x.astype(np.longdouble))
        error = np.linalg.norm((_fft.forward(x) - exact).astype(complex)) / np.linalg.norm(exact.astype(complex))
        assert error < _fft.error_upper(n)
        assert np.allclose(_fft.inverse(_fft.forward(x)), x, rtol=0, atol=1e-14)


def test_fast_length():
    for n in (1, 2, 3, 100, 12345, 1 << 20, (1 << 20) + 1):
        m = _fft.fast_length(n)
        assert n <= m <= max(2, 1.25 * n + 2)
        assert m % 2 == 0


def test_heterogeneous_splits_like_one():
    """Gaussians of different scales compose to one Gaussian; splitting a step changes nothing."""
    run = steps((0.1, 1, 40), (0.2, 1, 10), (0.05, 1, 80))
    lower, _, upper, _ = prv_epsilon(run, False, [1e-6, 1e-3])
    for lo, up, delta in zip(lower, upper, (1e-6, 1e-3), strict=True):
        assert gaussian_delta(1, lo) >= delta >= gaussian_delta(1, up)
    a = prv_epsilon(steps((1, 0.01, 1000)), False, [1e-6])
    b = prv_epsilon(steps((1, 0.01, 300), (1, 0.01, 700)), False, [1e-6])
    assert abs(a[1][0] - b[1][0]) < 1e-6


def test_mass_at_infinity():
    """delta = d + (1 - d) delta_finite, and eps is infinite where delta < d."""
    run, d = steps((0.1, 1, 100)), 1e-4
    lower, _, upper, _ = prv_delta(run, False, [1.0], mass_inf=d)
    assert lower[0] <= d + (1 - d) * gaussian_delta(1, 1) <= upper[0]
    lower, _, upper, _ = prv_epsilon(run, False, [1e-5, 1e-3], mass_inf=d)
    assert lower[0] == upper[0] == math.inf
    finite = (1e-3 - d) / (1 - d)
    assert gaussian_delta(1, lower[1]) >= finite >= gaussian_delta(1, upper[1])


def test_large_delta_gives_zero_eps():
    lower, estimate, upper, _ = prv_epsilon(steps((0.01, 0.1, 10)), False, [0.5, 0.9])
    assert np.all(lower == 0) and np.all(estimate == 0) and np.all(upper == 0)


@pytest.mark.parametrize(("m", "q", "add"), [(1, 0.01, False), (1, 0.01, True), (3, 0.2, False), (0.1, 1, True)])
def test_grid_is_mean_matched(m, q, add):
    run = steps((m, q, 50))
    grid = discretise(run, add, 0.05, 1e-8)
    p = grid.steps.masses(0)
    assert abs(p.sum() - 1) < 1e-9
    assert grid.radius <= 0.05
    x = (grid.steps.j0[0] + np.arange(p.size)) * grid.dx
    z = np.linspace(-12, 12 + m, 400_001)
    v = m * z - m * m / 2
    loss = np.log1p(q * np.expm1(v))
    law = np.exp(-z * z / 2) * (1 if add else 1 - q + q * np.exp(v)) * (z[1] - z[0]) / math.sqrt(2 * math.pi)
    mean = float((law * loss).sum()) * (-1 if add else 1)
    assert abs(x @ p + grid.shift / 50 - mean) < 1e-8
    # masses against the mass of the same cells counted on the fine noise grid
    right = x >= np.quantile(x, 0.5)
    counted = float(law[(-loss if add else loss) >= x[right][0] - grid.dx / 2].sum())
    assert abs(p[right].sum() - counted) < 1e-4


def test_radius_is_an_error_quantile():
    """The radius is above the empirical quantile of summed rounding errors, and not far above."""
    rng = np.random.default_rng(7)
    k, dx, m = 200, 0.05, 0.4
    y = rng.normal(m * m / 2, m, (20_000, k))
    e = np.sort((y - dx * np.rint(y / dx)).sum(axis=1))
    radius = radius_upper(dx, np.array([float(k)]), np.array([2 / (m * math.sqrt(2 * math.pi))]), math.log(1e-2))
    quantile = e[int(0.99 * e.size)]
    assert quantile <= radius <= 1.6 * quantile


@pytest.mark.parametrize(
    "bad",
    [
        {"eps_error": 0.0},
        {"eps_error": math.nan},
        {"delta_error": 0.0},
        {"delta_error": math.nan},
        {"how": "fast"},
        {"n_threads": 0},
        {"mass_inf": 1.0},
        {"mass_inf": math.nan},
    ],
)
def test_bad_settings(bad):
    with pytest.raises(DomainError):
        prv_delta(steps((1, 0.01, 10)), False, [1.0], **bad)


def test_bad_queries():
    run = steps((1, 0.01, 10))
    for delta in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(DomainError):
            prv_epsilon(run, False, [delta])
    with pytest.raises(DomainError):
        prv_delta(run, False, [math.inf])
    with pytest.raises(DomainError):
        prv_epsilon(GaussianSteps(*np.empty((3, 0))), False, [0.1])


def test_refuses_what_it_cannot_certify():
    with pytest.raises(AccuracyError):
        prv_epsilon(steps((1, 0.01, 1000)), False, [1e-295])
    with pytest.raises(AccuracyError, match="eps_error"):
        prv_epsilon(steps((1, 0.01, 1000)), False, [1e-5], eps_error=1e-7)


def test_refuses_a_billion_tiny_steps():
    """k times the rounding of a spectrum power exceeds delta here: a named error, not a loose answer."""
    with pytest.raises(AccuracyError, match="certified"):
        prv_epsilon(steps((1, 1e-9, 10**9)), False, [1e-8])


@pytest.mark.parametrize(
    ("row", "delta", "eps_error"),
    [((1, 1e-6, 10**6), 1e-9, 0.01), ((1000, 0.01, 1000), 1e-5, 1e3), ((1, 0.01, 1000), 0.9999, 0.01)],
)
def test_corners_answer(row, delta, eps_error):
    lower, _, upper, _ = prv_epsilon(steps(row), False, [delta], eps_error=eps_error)
    assert 0 <= lower[0] <= upper[0] <= lower[0] + 2.2 * eps_error


def test_beyond_the_support():
    """ADD: delta is 0 above -k log(1 - q), and near 1 - e^eps far below every loss."""
    run = steps((1, 0.01, 10))
    lower, _, upper, _ = prv_delta(run, True, [0.2])
    assert lower[0] == 0 and upper[0] < 1e-50
    lower, _, upper, _ = prv_delta(run, False, [-5.0], eps_error=1e-3)
    assert lower[0] <= 1 - math.exp(-5) <= upper[0]
    assert upper[0] - lower[0] < 2e-3
