"""The saddle-point route beyond the Gaussian family: exact sums, published errors, intersection with the lattice
route."""

import math

import hypothesis.strategies as st
import mpmath
import pytest
from hypothesis import assume, example, given, settings

import hockeystick as hs


def binomial_curve(eps0, k, eps, delta0=0.0):
    """delta(eps) of k rounds of the (eps0, delta0) pair, in multiprecision."""
    with mpmath.workdps(50):
        e, at = mpmath.mpf(eps0), mpmath.mpf(eps)
        p = mpmath.exp(e) / (1 + mpmath.exp(e))
        some = 1 - (1 - mpmath.mpf(delta0)) ** k
        sums = mpmath.fsum(
            math.comb(k, j) * p**j * (1 - p) ** (k - j) * -mpmath.expm1(at - (2 * j - k) * e)
            for j in range(k + 1)
            if (2 * j - k) * e > at
        )
        return some + (1 - some) * sums


@settings(max_examples=150, deadline=None)
@given(st.floats(-3.0, 0.7), st.integers(1, 400), st.floats(-2.0, 7.0), st.sampled_from([0.0, 1e-8, 1e-4]))
@example(math.log10(0.8359883385151299), 152, 6.946227564817059, 1e-4)  # delta is 4e-19 below the mass at infinity
def test_binomial_curve_is_inside(log_eps0, k, depth, delta0):  # [theory: saddle.atoms]
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
        # delta is rounded, at times below the mass at infinity: the curve at the root's ends is held against that delta
        assert root.lower == 0 or delta <= binomial_curve(eps0, k, root.lower * (1 - 1e-9), delta0)
        assert root.upper == math.inf or binomial_curve(eps0, k, root.upper * (1 + 1e-9), delta0) <= delta


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
def test_published_errors_on_laplace(eps, truth, errors):  # [theory: saddle.lattice]
    run = hs.laplace(20.0) * 1000
    for name, error in zip(("msd0", "msd1", "clt"), errors, strict=True):
        assert hs.saddlepoint_delta(run, eps, estimate=name).delta / truth - 1 == pytest.approx(error, rel=0.02)
    guess = hs.saddlepoint_delta(run, eps)
    assert guess.estimate == "edgeworth" and guess.trusted
    assert guess.delta == pytest.approx(truth, rel=4e-5)  # the reference itself has these digits


def test_infinite_losses():  # [theory: pair.infinite]
    run = hs.approx_dp(0.1, 1e-6) * 100
    some = -math.expm1(100 * math.log1p(-1e-6))
    far = hs.delta(run, 9.9, route="saddlepoint")
    assert far.lower <= some * (1 + 1e-3) and far.upper >= some
    assert hs.epsilon(run, 0.9 * some, route="saddlepoint").lower == math.inf
    root = hs.epsilon(run, 2 * some, route="saddlepoint")
    assert root.lower < root.upper < 10
