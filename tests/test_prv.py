"""The PRV route against exact answers, itself (two convolutions, two FFTs) and what it cannot certify."""

import math

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.bound import AccuracyError
from hockeystick.grid import _fft, convolve
from hockeystick.grid.cells import density_variation_upper, mesh, radius_upper
from hockeystick.outward import LONG_U
from hockeystick.routes import pld, prv
from hockeystick.what.law import gaussian_loss
from rows import gaussian_delta


def parts(*rows, add=False):
    """The losses of steps (sensitivity/sigma, q, k)."""
    return tuple((gaussian_loss(m, q, add), k) for m, q, k in rows)


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
def test_exact_gaussian(sigma, k, delta):  # [theory: grid.coupling, pair.gaussian]
    """k = 1e4 and 1e5 are where an untilted FFT accountant returns upper bounds below the truth."""
    mu = math.sqrt(k) / sigma
    for eps_error in (0.1, 0.01):
        found = prv.root(parts((1 / sigma, 1, k)), delta, None, eps_error=eps_error)
        mesh_term, truncation, rounding = found.terms
        assert gaussian_delta(mu, found.lower) >= delta >= gaussian_delta(mu, found.upper)
        assert found.upper - found.lower <= 2.1 * eps_error and mesh_term <= eps_error
        assert abs(gaussian_delta(mu, found.estimate) / delta - 1) < 0.05
        assert truncation + rounding <= 1e-3


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_squaring_equals_power(add, eps):  # [theory: grid.squaring, grid.power]
    run = parts((1.0, 0.01, 500), (0.5, 0.02, 37), (0.1, 1, 3), add=add)
    a, b = (prv.point(run, eps, None, eps_error=0.02, how=how) for how in ("power", "squaring"))
    assert abs(math.expm1(a.estimate - b.estimate)) <= a.terms[2] + b.terms[2]
    assert a.lower <= b.upper and b.lower <= a.upper


def test_scipy_fallback(monkeypatch):
    run = parts((0.01, 1, 10**4))
    first = prv.root(run, 1e-12, None)
    monkeypatch.setenv("HS_NO_PYFFTW", "1")
    assert _fft._pyfftw() is None
    found = prv.root(run, 1e-12, None)
    assert gaussian_delta(1, found.lower) >= 1e-12 >= gaussian_delta(1, found.upper)
    assert abs(found.estimate - first.estimate) < 1e-9


def test_fft_error_is_inside_its_bound():  # [theory: grid.fft, grid.fft-error]
    rng = np.random.default_rng(1)
    for n in (1 << 12, 5 << 11, 45 << 8):
        x = _fft.zeros(n)
        x[:] = rng.random(n)
        exact = np.fft.rfft(x.astype(np.longdouble))
        error = np.linalg.norm((_fft.forward(x) - exact).astype(complex)) / np.linalg.norm(exact.astype(complex))
        assert error < _fft.error_upper(n) < 400 * error
        assert np.allclose(_fft.inverse(_fft.forward(x)), x, rtol=0, atol=1e-14)


def exact_transform(x):
    n = x.size
    root = [mpmath.expjpi(mpmath.mpf(-2 * i) / n) for i in range(n)]
    return [mpmath.fsum(mpmath.mpf(float(v)) * root[i * j % n] for j, v in enumerate(x)) for i in range(n // 2 + 1)]


@pytest.mark.parametrize("n", [64, 90, 160])
def test_long_doubles_have_their_own_unit(n, monkeypatch):  # [theory: grid.fft]
    """Transforms forward and back, powers between them; where long doubles are doubles the units are alike."""
    monkeypatch.setattr(mpmath.mp, "dps", 40)
    x = np.random.default_rng(n).random(n)
    exact, found = exact_transform(x), _fft.forward_extended(x)
    errors = [split(a) - b for a, b in zip(found, exact, strict=True)]
    size = math.sqrt(sum(abs(b) ** 2 for b in exact))
    assert math.sqrt(sum(abs(e) ** 2 for e in errors)) < _fft.error_upper(n, LONG_U) * size
    back = _fft.inverse_extended(found) - x.astype(np.longdouble)
    assert float(np.sqrt(np.sum(back**2))) < 2 * _fft.error_upper(n, LONG_U) * np.linalg.norm(x)
    k, scaled = 1001, found / abs(found).max()
    power, worst = convolve._raised(scaled.copy(), k), 0
    for a, z in zip(power, scaled, strict=True):
        true = split(z) ** k
        worst = max(worst, abs(split(a) - true) / max(abs(true), mpmath.mpf("1e-4000")))
    assert worst < 4 * k * LONG_U


def split(z):
    """A complex long double with all its digits."""
    parts = []
    for x in (z.real, z.imag):
        part, exponent = np.frexp(x)
        high = float(part)
        parts.append((mpmath.mpf(high) + float(part - high)) * mpmath.mpf(2) ** int(exponent))
    return mpmath.mpc(*parts)


@pytest.mark.parametrize("powers", [[3], [64, 7, 1], [65, 2.5], [1e5], [300, 40, 1e3]])
def test_powers_are_inside_their_bound(powers):  # [theory: grid.power]
    rng, n, k = np.random.default_rng(2), 1 << 11, np.array(powers, float)
    for _ in range(4):
        w = rng.random((k.size, n)) * np.exp(-np.arange(n) * np.exp(rng.uniform(-4, 4)))
        spec = np.fft.fft(w / w.sum(1)[:, None])
        point, found = np.zeros(k.size), np.empty(n, complex)
        exact = np.prod([np.exp(a * np.log(z)) for a, z in zip(k, spec.astype(np.clongdouble), strict=True)], axis=0)
        _core.convolve_powers(spec, point, k, 1, True, found)
        sup = max(0.0, float(k @ np.log(np.abs(spec).max(1))))
        error, size = (float(np.sqrt(np.sum(np.abs(x) ** 2))) for x in (found - exact, exact))
        assert error <= convolve._powers_upper(k, n, sup) * 2.0**-53 * size


def test_the_norm_of_an_error_is_one_where_the_computed_one_may_be_off(monkeypatch):  # [theory: grid.fft-error]
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    found = hs.delta(run, 1.0, route="prv")
    monkeypatch.setattr(convolve, "NORMED", 0.0)
    wide = hs.delta(run, 1.0, route="prv")
    assert wide.lower <= found.lower and found.upper <= wide.upper
    assert wide.upper - wide.lower > found.upper - found.lower


def test_fast_length():
    for n in (1, 2, 3, 100, 12345, 1 << 20, (1 << 20) + 1):
        m = _fft.fast_length(n)
        assert n <= m <= max(2, 1.25 * n + 2)
        assert m % 2 == 0


def test_splitting_a_step_changes_nothing():
    a = prv.root(parts((1, 0.01, 1000)), 1e-6, None)
    b = prv.root(parts((1, 0.01, 300), (1, 0.01, 700)), 1e-6, None)
    assert abs(a.estimate - b.estimate) < 1e-6


@pytest.mark.parametrize(("m", "q", "add"), [(1, 0.01, False), (1, 0.01, True), (3, 0.2, False), (0.1, 1, True)])
def test_grid_is_mean_matched(m, q, add):  # [theory: grid.mean, law.prv-cells]
    made, _, _ = pld.prepare(parts((m, q, 50), add=add), lambda made: pld.at_eps(made, 1.0), 1e-3)
    laws = prv._matched(made, 0.05, math.log(1e-5))
    z = np.linspace(-12, 12 + m, 400_001)
    v = m * z - m * m / 2
    loss = np.log1p(q * np.expm1(v)) * (-1 if add else 1)
    law = np.exp(-z * z / 2) * (1 if add else 1 - q + q * np.exp(v)) * (z[1] - z[0]) / math.sqrt(2 * math.pi)
    mean = float((law * loss).sum())
    grid, p = laws.upper, laws.upper.steps.masses(0)
    assert abs(p.sum() - 1) < 1e-9 and grid.radius <= 0.05 and 0 < laws.short < 50 * 1e-13
    x = (grid.steps.j0[0] + np.arange(p.size)) * grid.dx
    assert abs(x @ p + grid.shift / 50 - mean) < grid.dx**2 / 4 + 1e-8
    right = x >= np.quantile(x, 0.5)  # masses against the mass of the same cells counted on the fine noise grid
    assert abs(p[right].sum() - float(law[loss >= x[right][0] - grid.dx / 2].sum())) < 1e-4


def test_radius_is_an_error_quantile():  # [theory: grid.radius]
    """The radius is above the empirical quantile of summed rounding errors, and not far above; Hoeffding without a
    density."""
    rng = np.random.default_rng(7)
    k, dx, m = 200, 0.05, 0.4
    y = rng.normal(m * m / 2, m, (20_000, k))
    e = np.sort((y - dx * np.rint(y / dx)).sum(axis=1))
    variation = 2 / (m * math.sqrt(2 * math.pi))
    radius = radius_upper(dx, np.array([float(k)]), np.array([variation]), math.log(1e-2))
    quantile = e[int(0.99 * e.size)]
    assert quantile <= radius <= 1.6 * quantile
    assert density_variation_upper(m, 1, False) >= variation
    none = radius_upper(dx, np.array([float(k)]), np.array([math.inf]), math.log(1e-2))
    assert none == pytest.approx(dx * math.sqrt(0.5 * k * math.log(1e2)), rel=1e-3)
    assert mesh(np.array([float(k)]), np.array([variation]), radius, math.log(1e-2)) == pytest.approx(dx, rel=2e-3)


def test_refuses_what_it_cannot_certify():
    assert prv.root(parts((1, 0.01, 1000)), 1e-295, None) is None
    with pytest.raises(AccuracyError, match="lattice"):
        prv.root(parts((1, 0.01, 1000)), 1e-5, None, eps_error=1e-8)


def test_a_billion_tiny_steps():
    """k times the rounding of a transform in doubles exceeds delta; that of long doubles is a hundredth of it."""
    run = hs.poisson_subsampled(hs.gaussian(1.0), 1e-9) * 10**9
    found, truth = prv.root(parts((1, 1e-9, 10**9)), 1e-8, None), hs.epsilon(run, 1e-8, direction="remove")
    assert found.lower <= truth.upper and truth.lower <= found.upper and found.terms[2] < 0.02


@pytest.mark.parametrize(
    ("row", "delta", "eps_error"),
    [((1, 1e-6, 10**6), 1e-9, 0.01), ((10, 0.01, 10), 1e-5, 0.05), ((1, 0.01, 1000), 0.9999, 0.01)],
)
def test_corners_answer(row, delta, eps_error):
    found = prv.root(parts(row), delta, None, eps_error=eps_error)
    assert 0 <= found.lower <= found.upper <= found.lower + 2.2 * eps_error


def test_beyond_the_support():
    """ADD: delta is 0 above -k log(1 - q), and near 1 - e^eps far below every loss."""
    found = prv.point(parts((1, 0.01, 10), add=True), 0.2, None)
    assert found.lower == -math.inf and found.upper < -20  # a query knows the range of the loss, this route does not
    found = prv.point(parts((1, 0.01, 10)), -5.0, None, eps_error=1e-3).of_delta()
    assert found.lower <= 1 - math.exp(-5) <= found.upper < found.lower + 2e-3


def test_a_window_without_mass_is_refused():
    """Losses near 2e6 on a lattice of 0.01: the 29 cells that the query leaves hold nothing of them."""
    with pytest.raises(hs.AccuracyError):
        hs.delta(hs.gaussian(1e-3), 1e6, route="prv", adjacency="replace_one")


@pytest.mark.parametrize("route", ("pld", "prv"))
@pytest.mark.parametrize("sigma, k, eps", ((12.183480977498263, 2, 3.151928438249206), (3.0, 3, 12.0), (0.7, 2, 40.0)))
def test_far_beyond_what_a_first_plan_reaches(route, sigma, k, eps):
    """The plan's nodes ended before the answer: prv declined, pld said [0, 1]."""
    run = hs.gaussian(sigma) * k
    truth, bound = (hs.log_delta(run, eps, direction="add", route=name) for name in ("contour", route))
    assert bound.lower <= truth.upper and truth.lower <= bound.upper
    assert bound.upper - bound.lower < (6 if route == "prv" else 2e-3)
