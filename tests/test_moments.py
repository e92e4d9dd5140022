"""Renyi curve, moments bounds and the Gaussian limit."""

import math

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings

import hockeystick as hs

U = 2.0**-53


def sgm(sigma, q, k=1):
    return hs.poisson_subsampled(hs.gaussian(sigma), q) * k


# Renyi curve


def binomial_rdp(m, q, alpha):
    """E_den (1+u)^alpha by the binomial sum, exact for integers."""
    with mpmath.workdps(60):
        m, q = mpmath.mpf(m), mpmath.mpf(q)
        total = mpmath.fsum(
            mpmath.binomial(alpha, i) * (1 - q) ** (alpha - i) * q**i * mpmath.exp(i * (i - 1) * m * m / 2)
            for i in range(alpha + 1)
        )
        return mpmath.log(total) / (alpha - 1)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.3, 50.0), st.floats(-9.0, -0.05), st.integers(2, 40), st.integers(1, 10**9))
def test_rdp_is_the_binomial_sum(sigma, log_q, alpha, k):
    q = 10.0**log_q
    truth = k * binomial_rdp(1 / sigma, q, alpha)
    try:
        bound = hs.rdp(sgm(sigma, q, k), alpha, direction="remove")
    except hs.AccuracyError:
        assume(False)
    assert bound.certified
    # 1/sigma is rounded before the kernel sees it: the curve moves by less than 2u times its logarithmic slope
    slack = 4 * U * truth * (2 + 2 * alpha * alpha / sigma**2)
    assert bound.lower <= truth + slack and truth - slack <= bound.upper
    assert bound.width <= 1e-9 * bound.estimate


def fractional_rdp(m, q, alpha, add):
    with mpmath.workdps(40):
        m, q, a = mpmath.mpf(m), mpmath.mpf(q), mpmath.mpf(1 - alpha if add else alpha)
        ends = [-20, -10, -5, -2, 0, 2, 5, 10, 20, 30]
        total = mpmath.quad(lambda g: mpmath.npdf(g) * mpmath.exp(a * mpmath.log1p(q * mpmath.expm1(m * g - m * m / 2))), ends)
        return mpmath.log(total) / (alpha - 1)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("m, q, alpha", [(1.0, 0.01, 2.5), (0.5, 1e-6, 4.0), (1.25, 0.2, 1.1), (0.25, 0.5, 17.3)])
def test_rdp_both_directions(m, q, alpha, direction):
    truth = fractional_rdp(m, q, alpha, direction == "add")
    bound = hs.rdp(sgm(1 / m, q), alpha, direction=direction)
    assert bound.lower <= truth <= bound.upper
    assert bound.width <= 1e-9 * bound.estimate


def test_rdp_of_the_plain_gaussian():
    bound = hs.rdp(hs.gaussian(2.0) * 8, [1.5, 3.0, 1000.0])
    assert bound.upper == pytest.approx([1.5, 3.0, 1000.0], rel=1e-13)  # alpha m^2 k / 2
    assert np.all(bound.lower <= bound.upper)


def test_rdp_grows_with_the_order_and_both_is_the_larger():
    run = sgm(1.0, 0.01, 1000)
    orders = [1.001, 1.5, 2.0, 7.7, 30.0]
    remove, add, both = (hs.rdp(run, orders, direction=d) for d in ("remove", "add", "both"))
    for bound in (remove, add):
        assert np.all(np.diff(bound.lower) > 0)
    assert np.array_equal(both.upper, np.maximum(remove.upper, add.upper))
    assert np.all(add.upper < remove.lower)


@settings(max_examples=80, deadline=None)
@given(st.floats(-6.0, 1.0), st.floats(1.001, 200.0), st.integers(1, 10**6))
def test_rdp_of_randomized_response(log_eps0, alpha, k):
    eps0 = 10.0**log_eps0
    with mpmath.workdps(60):
        e, a = mpmath.mpf(eps0), mpmath.mpf(alpha)
        truth = k * mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)
    bound = hs.rdp(hs.randomized_response(eps0) * k, alpha)
    assert bound.certified
    assert bound.lower <= truth * (1 + 4 * U) and truth * (1 - 4 * U) <= bound.upper
    assert bound.width <= 1e-11 * k * max(eps0, 1e-3 / (alpha - 1))


def test_rdp_of_other_losses():
    step = hs.poisson_subsampled(hs.discrete_laplace(2.0), 0.1)
    remove, add = (hs.rdp(step * 100, 3.0, direction=d) for d in ("remove", "add"))
    assert add.upper < remove.lower
    for run in (hs.laplace(2.0) * 3, hs.approx_dp(0.1, 1e-6)):
        with pytest.raises(hs.AccuracyError, match="alpha=3"):
            hs.rdp(run, 3.0)
    zero = hs.rdp(hs.k_ary_randomized_response(0.5, 4), 2.0, adjacency="zero_out")
    assert zero.lower > 0
    with pytest.raises(hs.DomainError, match="adjacency"):
        hs.rdp(hs.k_ary_randomized_response(0.5, 4), 2.0)


@pytest.mark.parametrize("alpha", [1.0, 0.5, -2.0, math.nan, math.inf, 1e9, "2", None, True])
def test_bad_orders(alpha):
    with pytest.raises(hs.DomainError, match="alpha"):
        hs.rdp(sgm(1.0, 0.01), alpha)


def test_order_beyond_the_quadrature():
    with pytest.raises(hs.AccuracyError, match="smaller order"):
        hs.rdp(sgm(0.1, 0.5), 1e5)


# moments bounds


@pytest.mark.parametrize("eps, want", [(1.0, 8.346452e-3), (2.0, 1.981055e-5), (4.0, 1.341907e-11)])
def test_published_moments_bound(eps, want):
    assert hs.moments_delta_upper(sgm(1.0, 0.01, 1000), eps) == pytest.approx(want, rel=1e-6)


@settings(max_examples=80, deadline=None)
@given(
    st.floats(0.4, 20.0), st.floats(1e-4, 0.5), st.integers(1, 10**7), st.floats(0.05, 40.0), st.sampled_from(["remove", "add"])
)
def test_moments_bound_is_above_the_truth(sigma, q, k, eps, direction):
    run = sgm(sigma, q, k)
    try:
        truth = hs.log_delta(run, eps, direction=direction, route="contour")
        upper = hs.moments_delta_upper(run, eps, direction=direction)
        normal = truth.lower > -600 and hs.saddlepoint_delta(run, eps, direction=direction).trusted
    except hs.AccuracyError:
        assume(False)
    assert upper >= math.exp(truth.lower)
    if normal:
        delta = math.exp(truth.estimate)
        assert upper <= delta * 8 * (1 + math.sqrt(-truth.estimate))  # near normal: loose by a factor like t s sqrt(2 pi)
        if 1e-250 < delta < 0.5:
            at = hs.moments_epsilon_upper(run, delta, direction=direction)
            assert at >= eps * (1 - 1e-6)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.5, 10.0), st.floats(1e-3, 0.5), st.integers(10, 10**6), st.floats(-40.0, -1.0))
def test_moments_epsilon_inverts_moments_delta(sigma, q, k, log10_delta):
    run, delta = sgm(sigma, q, k), 10.0**log10_delta
    try:
        eps = hs.moments_epsilon_upper(run, delta, direction="remove")
        assume(eps > 1e-3)
        assert hs.moments_delta_upper(run, eps, direction="remove") == pytest.approx(delta, rel=1e-3)
    except hs.AccuracyError:
        assume(False)


def test_no_order_is_better():
    run = sgm(1.0, 0.01, 1000)
    for eps in (0.5, 1.0, 4.0):
        best = hs.moments_delta_upper(run, eps, direction="remove")
        t = np.geomspace(0.5, 12.0, 400)
        rho = hs.rdp(run, 1 + t, direction="remove").estimate
        every = np.exp(t * (rho - eps) + t * np.log(t) - (1 + t) * np.log1p(t))
        assert best <= every.min() * (1 + 1e-9)
        assert best >= every.min() * (1 - 1e-3)


def test_moments_bound_beyond_the_largest_loss():
    run = sgm(1.0, 0.01, 10)
    assert hs.moments_delta_upper(run, 0.2, direction="add") == 0
    assert hs.moments_delta_upper(run, [0.05, 0.2], direction="both").shape == (2,)


# the Gaussian limit


def test_gdp_is_an_approximation_that_under_reports():
    run = sgm(1.0, 0.01, 1000)
    assert hs.gdp_mu(run) == pytest.approx(0.4145216313, rel=1e-9)
    bound = hs.gdp_delta(run, [1.0, 2.0, 4.0])
    assert not bound.certified and bound.route == "gdp"
    assert np.all(bound.lower == 0) and np.all(bound.upper == 1)
    assert bound.estimate == pytest.approx([1.7594e-3, 1.4887e-7, 7.5065e-23], rel=1e-4)
    assert np.all(bound.estimate < hs.delta(run, [1.0, 2.0, 4.0]).lower)
    back = hs.gdp_epsilon(run, 1.4887154451512811e-07)
    assert back.estimate == pytest.approx(2.0, rel=1e-9)
    assert not back.certified and back.upper == math.inf


def test_gdp_of_gaussians_is_exact():
    run = hs.gaussian(5.0) * 10
    bound = hs.delta(run, 1.0)
    assert bound.lower * (1 - 1e-12) <= hs.gdp_delta(run, 1.0).estimate <= bound.upper * (1 + 1e-12)


def test_auto_never_asks_for_it():
    for run in (sgm(1.0, 0.01, 1000), hs.gaussian(1.0) * 3, sgm(0.3, 1e-6, 3)):
        assert "gdp" not in hs.delta(run, 1.0).route
    with pytest.raises(hs.DomainError, match="route"):
        hs.delta(run, 1.0, route="gdp")


def test_empty_run():
    for query in (hs.rdp, hs.moments_delta_upper, hs.gdp_delta, hs.saddlepoint_delta):
        with pytest.raises(hs.DomainError, match="one or more"):
            query(hs.compose(), 2.0)
    with pytest.raises(hs.DomainError, match="direction"):
        hs.rdp(sgm(1.0, 0.01), 2.0, direction="up")


def test_beyond_doubles_the_bound_is_not_zero():
    """delta is about e^-945: no route can hold it as a double, none may call it 0."""
    run = sgm(15.0, 1e-4, 36627)
    estimate = hs.saddlepoint_delta(run, 0.0546875, direction="add").log_delta
    for route in ("auto", "pld", "contour"):
        assert hs.log_delta(run, 0.0546875, direction="add", route=route).upper >= estimate
    assert hs.log_delta(run, 0.0546875, direction="add").upper <= estimate + 10
