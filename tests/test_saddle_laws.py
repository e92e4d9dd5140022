"""The saddle-point route beyond the Gaussian family: exact sums, published errors, intersection with the lattice route."""

import math

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings

import hockeystick as hs
from rows import overlap

RUNS = {
    "rr": (hs.randomized_response(0.3) * 30, 1.0, "add_remove"),
    "rr, many": (hs.randomized_response(0.01) * 10_000, 2.0, "add_remove"),
    "approx_dp": (hs.approx_dp(0.1, 1e-6) * 100, 2.0, "add_remove"),
    "discrete laplace": (hs.discrete_laplace(10.0, sensitivity=3) * 50, 3.0, "add_remove"),
    "discrete gaussian": (hs.discrete_gaussian(5.0, sensitivity=2) * 50, 3.0, "add_remove"),
    "k-ary": (hs.k_ary_randomized_response(0.5, 4) * 40, 3.0, "replace_one"),
    "zero-out": (hs.k_ary_randomized_response(0.5, 4) * 40, 3.0, "zero_out"),
    "laplace": (hs.laplace(20.0) * 1000, 3.0, "add_remove"),
    "subsampled laplace": (hs.poisson_subsampled(hs.laplace(2.0), 0.05) * 2000, 2.0, "add_remove"),
    "few subsampled laplace": (hs.poisson_subsampled(hs.laplace(2.0), 0.5) * 4, 0.113, "add_remove"),
    "subsampled discrete": (hs.poisson_subsampled(hs.discrete_laplace(2.0), 0.05) * 2000, 2.0, "add_remove"),
    "subsampled approx_dp": (hs.poisson_subsampled(hs.approx_dp(0.5, 1e-5), 0.05) * 2000, 2.0, "add_remove"),
    "mixed": (hs.poisson_subsampled(hs.laplace(2.0), 0.05) * 200 + hs.gaussian(5.0) * 10, 2.0, "add_remove"),
}


def binomial_curve(eps0, k, eps, delta0=0.0):
    """delta(eps) of k rounds of the (eps0, delta0) pair, in multiprecision."""
    with mpmath.workdps(50):
        e, at = mpmath.mpf(eps0), mpmath.mpf(eps)
        p = mpmath.exp(e) / (1 + mpmath.exp(e))
        some = 1 - (1 - mpmath.mpf(delta0)) ** k
        sums = mpmath.fsum(
            mpmath.binomial(k, j) * p**j * (1 - p) ** (k - j) * -mpmath.expm1(at - (2 * j - k) * e)
            for j in range(k + 1)
            if (2 * j - k) * e > at
        )
        return some + (1 - some) * sums


@settings(max_examples=150, deadline=None)
@given(st.floats(-3.0, 0.7), st.integers(1, 400), st.floats(-2.0, 7.0), st.sampled_from([0.0, 1e-8, 1e-4]))
def test_binomial_curve_is_inside(log_eps0, k, depth, delta0):
    eps0 = 10.0**log_eps0
    eps = k * eps0 * math.tanh(eps0 / 2) + depth * eps0 * math.sqrt(k)
    assume(eps < 0.99 * k * eps0)
    run = hs.approx_dp(eps0, delta0) * k
    try:
        bound = hs.log_delta(run, eps, route="saddlepoint")
    except hs.AccuracyError:
        assume(False)
    truth = mpmath.log(binomial_curve(eps0, k, eps, delta0))
    # eps0 enters through e^eps0: the table itself is off by 1e-13 of the exponent
    slack = 1e-12 * (1 + k * eps0)
    assert bound.lower - slack <= truth <= bound.upper + slack
    assert bound.certified
    if -600 < truth and eps > 0.01:
        delta = float(mpmath.exp(truth))
        try:
            root = hs.epsilon(run, delta, route="saddlepoint")
        except hs.AccuracyError:
            return
        assert root.lower <= eps * (1 + 1e-9) and eps * (1 - 1e-9) <= root.upper


@pytest.mark.parametrize("name, error", [("msd0", -5.0e-2), ("msd1", 1.9e-3), ("clt", 6.5e-3), ("edgeworth", -6.9e-3)])
def test_published_errors_on_a_lattice(name, error):
    guess = hs.saddlepoint_delta(hs.randomized_response(0.3) * 30, 1.0, estimate=name)
    assert guess.delta / 0.3793827861 - 1 == pytest.approx(error, rel=0.04)
    assert not guess.trusted  # 0.6 x tilt is no small lattice step


@pytest.mark.parametrize(
    "eps, truth, errors",
    [
        (1.0, 0.347427023, (-5.2e-2, 8.9e-3, 3.9e-4)),
        (3.0, 0.059141495, (-1.8e-2, 4.5e-3, 4.0e-4)),
        (6.0, 3.5651741e-4, (-3.3e-3, 5.6e-4, 3.7e-4)),
    ],
)
def test_published_errors_on_laplace(eps, truth, errors):
    run = hs.laplace(20.0) * 1000
    for name, error in zip(("msd0", "msd1", "clt"), errors, strict=True):
        assert hs.saddlepoint_delta(run, eps, estimate=name).delta / truth - 1 == pytest.approx(error, rel=0.02)
    guess = hs.saddlepoint_delta(run, eps)
    assert guess.estimate == "edgeworth" and guess.trusted
    assert guess.delta == pytest.approx(truth, rel=4e-5)  # the reference itself has these digits


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", RUNS)
def test_intersects_the_lattice_route(name, direction):
    run, eps, adjacency = RUNS[name]
    options = {"adjacency": adjacency, "direction": direction}
    narrow = hs.delta(run, eps, route="pld", **options)
    wide = hs.delta(run, eps, route="saddlepoint", **options)
    assert overlap(narrow, wide) and wide.certified
    assert wide.lower > 0 and wide.upper < 4 * narrow.upper  # usable from both sides
    assert wide.lower <= wide.estimate <= wide.upper
    if wide.budget.terms["skewness"] < 0.1:
        assert abs(wide.estimate / narrow.estimate - 1) < 2e-3
    narrow = hs.epsilon(run, narrow.estimate, route="pld", **options)
    wide = hs.epsilon(run, hs.delta(run, eps, route="pld", **options).estimate, route="saddlepoint", **options)
    assert overlap(narrow, wide)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.5, 20.0), st.floats(0.01, 0.9), st.integers(2, 3000), st.floats(-1.0, 5.0), st.sampled_from(["remove", "add"])
)
def test_subsampled_laplace_intersects(scale, q, k, depth, direction):
    run = hs.poisson_subsampled(hs.laplace(scale), q) * k
    width = q / scale * math.sqrt(k)
    eps = 0.5 * width * width + depth * width
    try:
        narrow = hs.delta(run, eps, direction=direction, route="pld")
        wide = hs.delta(run, eps, direction=direction, route="saddlepoint")
    except hs.AccuracyError:
        assume(False)
    assert overlap(narrow, wide)


def test_infinite_losses():
    run = hs.approx_dp(0.1, 1e-6) * 100
    some = -math.expm1(100 * math.log1p(-1e-6))
    far = hs.delta(run, 9.9, route="saddlepoint")
    assert far.lower <= some * (1 + 1e-3) and far.upper >= some
    assert hs.epsilon(run, 0.9 * some, route="saddlepoint").lower == math.inf
    root = hs.epsilon(run, 2 * some, route="saddlepoint")
    assert root.lower < root.upper < 10


def test_arrays():
    run, eps = hs.laplace(20.0) * 1000, np.array([[1.0, 2.0], [3.0, 4.0]])
    bound = hs.delta(run, eps, route="saddlepoint")
    assert bound.upper.shape == (2, 2)
    assert np.all(np.diff(bound.upper.ravel()) < 0)
    assert hs.saddlepoint_delta(run, eps).delta.shape == (2, 2)
