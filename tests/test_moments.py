"""Renyi curve, moments bounds and the Gaussian limit."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

import hockeystick as hs
from rows import sgm

# Renyi curve


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


def test_rdp_of_other_losses():
    step = hs.poisson_subsampled(hs.discrete_laplace(2.0), 0.1)
    remove, add = (hs.rdp(step * 100, 3.0, direction=d) for d in ("remove", "add"))
    assert add.upper < remove.lower
    infinite = hs.rdp(hs.approx_dp(0.1, 1e-6), 3.0)
    assert infinite.lower == infinite.upper == math.inf
    zero = hs.rdp(hs.k_ary_randomized_response(0.5, 4), 2.0, adjacency="zero_out")
    assert zero.lower > 0
    with pytest.raises(hs.DomainError, match="adjacency"):
        hs.rdp(hs.k_ary_randomized_response(0.5, 4), 2.0)


def test_rdp_adds_over_steps_of_all_kinds():
    parts = [
        (sgm(1.0, 0.01), 3),
        (hs.laplace(2.0), 2),
        (hs.discrete_gaussian(4.0), 5),
        (hs.randomized_response(0.3), 4),
    ]
    parts += [(hs.public_mixture([hs.gaussian(2.0), hs.laplace(3.0)], [0.25, 0.75]), 2)]
    whole, alone = hs.rdp(hs.compose(*parts), 3.0), [hs.rdp(step * k, 3.0) for step, k in parts]
    assert whole.lower <= sum(b.upper for b in alone) and sum(b.lower for b in alone) <= whole.upper
    mix = [hs.rdp(step, 3.0).estimate for step in (hs.gaussian(2.0), hs.laplace(3.0))]
    want = math.log(0.25 * math.exp(2 * mix[0]) + 0.75 * math.exp(2 * mix[1])) / 2
    assert hs.rdp(parts[-1][0], 3.0).estimate == pytest.approx(want, rel=1e-12)
    sampled = hs.poisson_subsampled(parts[-1][0], 0.5)
    each = [hs.rdp(hs.poisson_subsampled(step, 0.5), 3.0).estimate for step in (hs.gaussian(2.0), hs.laplace(3.0))]
    want = math.log(0.25 * math.exp(2 * each[0]) + 0.75 * math.exp(2 * each[1])) / 2
    assert hs.rdp(sampled, 3.0).estimate == pytest.approx(want, rel=1e-12)


def test_rdp_of_a_users_law():  # [theory: law.cells]
    """Laplace losses given by their distribution functions: the cells find what the closed form says."""
    from hockeystick.what.law import laplace_loss

    of = laplace_loss(0.5)
    step = hs.from_loss_cdf(lambda s: of.tails(s).y_below, lambda s: of.tails(s).x_below, lo=-0.5, hi=0.5, error=1e-15)
    given, known = hs.rdp(step, 4.0), hs.rdp(hs.laplace(2.0), 4.0)
    assert given.lower <= known.upper and known.lower <= given.upper and given.width < 1e-5 * given.upper


MOMENTS_RUNS = {
    "laplace": (hs.laplace(20.0) * 1000, {}),
    "responses": (hs.randomized_response(0.1) * 100, {}),
    "discrete": (hs.discrete_gaussian(10.0) * 100, {}),
    "sampled": (hs.poisson_subsampled(hs.laplace(2.0), 0.01) * 1000, {}),
    "infinite": (hs.approx_dp(0.1, 1e-9) * 100, {}),
    "truncated": (hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.01, dataset_size=1000, max_batch=20) * 100, {}),
    "replaced": (sgm(1.0, 0.01, 100), {"adjacency": "replace_one"}),
}


@pytest.mark.parametrize("name", MOMENTS_RUNS)
def test_moments_bound_of_any_run(name):
    """Above the certified curve, within the factor that a moments bound costs; eps and delta invert each other."""
    run, options = MOMENTS_RUNS[name]
    upper = hs.moments_epsilon_upper(run, 1e-5, **options)
    assert hs.epsilon(run, 1e-5, **options).lower <= upper <= 2 * hs.epsilon(run, 1e-5, **options).upper
    assert hs.moments_delta_upper(run, upper, **options) == pytest.approx(1e-5, rel=1e-3)
    assert hs.moments_delta_upper(run, upper, **options) >= hs.delta(run, upper, **options).lower
    if name == "infinite":
        assert hs.moments_epsilon_upper(run, 9e-8) == math.inf and hs.moments_delta_upper(run, 11.0) >= 1e-7 * (
            1 - 1e-6
        )


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
    st.floats(0.4, 20.0),
    st.floats(1e-4, 0.5),
    st.integers(1, 10**7),
    st.floats(0.05, 40.0),
    st.sampled_from(["remove", "add"]),
)
def test_moments_bound_is_above_the_truth(sigma, q, k, eps, direction):  # [theory: line.chernoff]
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
        # near normal: loose by a factor like t s sqrt(2 pi)
        assert upper <= delta * 8 * (1 + math.sqrt(-truth.estimate))
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
        with np.errstate(over="ignore"):
            every = np.exp(t * (rho - eps) + t * np.log(t) - (1 + t) * np.log1p(t))
        assert best <= every.min() * (1 + 1e-9)
        assert best >= every.min() * (1 - 1e-3)


def test_moments_bound_beyond_the_largest_loss():
    run = sgm(1.0, 0.01, 10)
    assert hs.moments_delta_upper(run, 0.2, direction="add") == 0
    assert hs.moments_delta_upper(run, [0.05, 0.2], direction="both").shape == (2,)


# the Gaussian limit


def test_gdp_is_an_approximation_that_under_reports():  # [theory: saddle.gdp-limit]
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


@pytest.mark.slow
def test_beyond_doubles_the_bound_is_not_zero():
    """delta is about e^-945: no route can hold it as a double, none may call it 0."""
    run = sgm(15.0, 1e-4, 36627)
    estimate = hs.saddlepoint_delta(run, 0.0546875, direction="add").log_delta
    for route in ("auto", "pld", "contour"):
        assert hs.log_delta(run, 0.0546875, direction="add", route=route).upper >= estimate
    assert hs.log_delta(run, 0.0546875, direction="add").upper <= estimate + 10
