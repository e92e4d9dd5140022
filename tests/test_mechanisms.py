"""Mechanisms through the public queries: exact single steps, infinite losses, ranges, state, and what is refused."""

import math

import numpy as np
import pytest

import hockeystick as hs

NAN, INF = math.nan, math.inf


def refuses(call, *words):
    with pytest.raises(hs.DomainError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))


def contains(bound, value, rtol=1e-3):
    assert bound.certified
    assert bound.lower <= value * (1 + 1e-14) and bound.upper >= value * (1 - 1e-14)
    assert bound.width <= rtol * max(value, 1e-300)


def test_infinite_losses_compose():  # [theory: pair.infinite]
    """20 steps of (0.2, 1e-3), whose deltas are among the known numbers."""
    run = hs.approx_dp(0.2, 1e-3) * 20
    lost = -math.expm1(20 * math.log1p(-1e-3))
    below = hs.epsilon(run, 0.5 * lost)
    assert below.lower == below.upper == INF and below.width == 0
    above = hs.epsilon(run, 1.01 * lost)
    assert 2.9 < above.lower <= above.upper <= 4
    # a loss of +inf under REMOVE is one of -inf under ADD
    assert hs.delta(hs.from_pmf([0.5, 0.3, 0.2], [0.6, 0.4, 0.0]) * 3, 5.0, direction="add").upper == 0


def test_public_mixture_is_a_weighted_sum():  # [theory: pair.mixture]
    parts = [hs.gaussian(1.0), hs.laplace(0.7)]
    mixed = hs.delta(hs.public_mixture(parts, [0.25, 0.75]), 0.6)
    single = [hs.delta(part, 0.6) for part in parts]
    assert mixed.lower <= 0.25 * single[0].upper + 0.75 * single[1].upper
    assert mixed.upper >= 0.25 * single[0].lower + 0.75 * single[1].lower


def test_curve_is_met_at_its_points():  # [theory: pair.given-curve]
    eps, delta = [0.0, 0.2, 0.7, 1.5], [0.3, 0.2, 0.05, 1e-4]
    for e, d in zip(eps, delta, strict=True):
        contains(hs.delta(hs.from_curve(eps, delta, symmetric=False), e, direction="remove", rtol=0.01), d, 0.01)
    symmetric = hs.from_curve(eps, delta)
    for direction in ("remove", "add"):
        bound = hs.delta(symmetric, 0.7, direction=direction, rtol=0.01)
        assert bound.lower <= 0.05


def test_bad_pmfs():
    refuses(lambda: hs.from_pmf([0.5, 0.6], [0.5, 0.5]), "num", "sum to 1", "1.1")
    refuses(lambda: hs.from_pmf([0.5, 0.5], [0.5, 0.4]), "den", "sum to 1")
    refuses(lambda: hs.from_pmf([1.5, -0.5], [0.5, 0.5]), "num", "-0.5", "entry 1")
    refuses(lambda: hs.from_pmf([0.5, NAN], [0.5, 0.5]), "num", "nan", "entry 1")
    refuses(lambda: hs.from_pmf([0.5, 0.5], [1.0]), "lengths", "2 and 1")
    refuses(lambda: hs.from_pmf([], []), "empty")
    refuses(lambda: hs.from_pmf([[0.5, 0.5]], [[0.5, 0.5]]), "one-dimensional")
    refuses(lambda: hs.from_pmf("ab", [0.5, 0.5]), "num")
    refuses(lambda: hs.from_pmf([True, False], [0.5, 0.5]), "num")


def test_bad_curves():
    refuses(lambda: hs.from_curve([0.1, 0.1], [0.2, 0.1]), "eps", "increasing", "entry 1")
    refuses(lambda: hs.from_curve([0.1, 0.2], [0.1, 0.2]), "delta", "non-increasing", "entry 1")
    refuses(lambda: hs.from_curve([0.1, 0.2], [1.5, 0.2]), "delta", "[0, 1]", "entry 0")
    refuses(lambda: hs.from_curve([0.1, 0.2, 0.3], [0.5, 0.49, 0.1]), "delta", "convex", "entry 1")
    refuses(lambda: hs.from_curve([0.1, NAN], [0.5, 0.4]), "eps", "entry 1")
    refuses(lambda: hs.from_curve([0.1, 0.2], [0.5, NAN]), "delta", "entry 1")
    refuses(lambda: hs.from_curve([-0.5, 0.2], [0.5, 0.1]), "eps", "entry 0")
    refuses(lambda: hs.from_curve([-0.5, 0.2], [0.1, 0.1], symmetric=False), "1 - e^eps", "entry 0")
    refuses(lambda: hs.from_curve([0.1], [0.5, 0.1]), "lengths")
    refuses(lambda: hs.from_curve([], []), "empty")
    refuses(lambda: hs.from_curve([0.1], [0.5], symmetric=1), "symmetric")


def step_function(values):
    return lambda s: np.interp(s, np.linspace(-50, 50, len(values)), values)


def test_bad_cdfs():
    good = step_function([0.0, 0.5, 1.0])
    refuses(lambda: hs.from_loss_cdf(3, good), "cdf_num", "function")
    refuses(lambda: hs.from_loss_cdf(lambda s: s * NAN, good), "cdf_num", "nan", "s=")
    refuses(lambda: hs.from_loss_cdf(good, step_function([0.0, 0.9, 0.3, 1.0])), "cdf_den", "fall", "s=")
    refuses(lambda: hs.from_loss_cdf(good, step_function([0.0, 1.2])), "cdf_den", "probabilities", "s=")
    refuses(lambda: hs.from_loss_cdf(lambda s: 0.5, good), "shape")
    refuses(lambda: hs.from_loss_cdf(good, good), "one loss", "s=")
    refuses(lambda: hs.from_loss_cdf(good, good, lo=1.0, hi=0.0), "lo")
    refuses(lambda: hs.from_loss_cdf(good, good, mass_inf=1.0), "mass_inf")
    refuses(lambda: hs.from_loss_cdf(good, good, error=NAN), "error")


@pytest.mark.parametrize("value", [NAN, 1.5, 0.1])
def test_cdfs_that_are_bad_where_a_query_looks(value):
    """A hole too narrow for the checks of the constructor: refused by the query that meets it, by name and place."""

    def normal(mean, hole=None):
        def cdf(s):
            out = np.array([0.5 * math.erfc((mean - x) / math.sqrt(2)) for x in s])
            return out if hole is None else np.where(np.abs(s - 1.003) < 1e-3, hole, out)

        return cdf

    step = hs.from_loss_cdf(normal(0.5, value), normal(-0.5), error=1e-15)
    for run in (step, step * 5):
        refuses(lambda run=run: hs.delta(run, 1.003, route="pld", rtol=1e-6), "cdf_num", str(value), "s=1.00")


def test_bad_mixtures():
    refuses(lambda: hs.gaussian_mixture(1.0, [1.0, 2.0], [0.5, 0.4]), "probabilities", "sum to 1")
    refuses(lambda: hs.gaussian_mixture(1.0, [1.0], [0.5, 0.5]), "lengths")
    refuses(lambda: hs.gaussian_mixture(1.0, [1.0, -1.0], [0.5, 0.5]), "shifts[1]", "-1.0")
    refuses(lambda: hs.gaussian_mixture(1.0, [0.0], [1.0]), "shifts")
    refuses(lambda: hs.gaussian_mixture(1.0, [NAN], [1.0]), "shifts")
    refuses(lambda: hs.public_mixture([hs.gaussian(1.0)], [0.5]), "weights", "sum to 1")
    refuses(lambda: hs.public_mixture([hs.gaussian(1.0) * 2], [1.0]), "parts", "entry 0")
    refuses(lambda: hs.public_mixture([], []), "sum to 1")
    refuses(lambda: hs.public_mixture([hs.gaussian(1.0)], [NAN]), "weights")


def test_undefined_adjacencies():
    refuses(lambda: hs.delta(hs.k_ary_randomized_response(1.0, 3), 0.1), "add_remove", "replace_one", "zero_out")
    sampled = hs.poisson_subsampled(hs.randomized_response(1.0), 0.1)
    refuses(lambda: hs.delta(sampled, 0.1, adjacency="replace_one"), "add_remove")
    # a pure-DP step and a user's pair hold for whatever adjacency they were stated for
    for step in (hs.pure_dp(1.0), hs.from_pmf([0.6, 0.4], [0.4, 0.6])):
        for adjacency in ("replace_one", "zero_out"):
            a, b = hs.delta(step * 3, 0.5, adjacency=adjacency), hs.delta(step * 3, 0.5)
            assert (a.lower, a.upper) == (b.lower, b.upper)


@pytest.mark.parametrize("make, scale", [(hs.discrete_gaussian, 7.0), (hs.discrete_laplace, 3.0)])
def test_integer_noise_under_other_adjacencies(make, scale):
    """zero_out is add_remove, also when sampled; replace_one doubles the shift; sampled: no theorem here."""
    step, wide = make(scale, sensitivity=2), make(scale, sensitivity=4)
    for route in ("auto", "pld", "saddlepoint"):
        for run, same in (
            ((step * 9, "replace_one"), wide * 9),
            ((step * 9, "zero_out"), step * 9),
            ((hs.poisson_subsampled(step, 0.2) * 9, "zero_out"), hs.poisson_subsampled(step, 0.2) * 9),
        ):
            a, b = hs.epsilon(run[0], 1e-4, adjacency=run[1], route=route), hs.epsilon(same, 1e-4, route=route)
            assert (a.lower, a.estimate, a.upper) == (b.lower, b.estimate, b.upper)
    sampled = hs.poisson_subsampled(step, 0.2)
    refuses(lambda: hs.delta(sampled, 0.1, adjacency="replace_one"), "replace_one", "zero_out")
    narrow = hs.discrete_gaussian(0.05)
    refuses(lambda: hs.delta(narrow, 0.1, adjacency="replace_one"), "sigma", "sensitivity")


@pytest.mark.parametrize("eps0", [1.0986122886681098, 1.0986122886681102])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_k_ary_zero_out_is_its_own_pair(eps0, k):  # [theory: pair.k-ary]
    """The true answer against a uniform one: not the pair of two inputs, whatever k is."""
    run = hs.k_ary_randomized_response(eps0, k) * 10
    found = hs.epsilon(run, 1e-5, adjacency="zero_out")
    other = hs.epsilon(run, 1e-5, adjacency="zero_out", route="pld")
    assert found.lower <= other.upper and other.lower <= found.upper
    assert found.upper < hs.epsilon(run, 1e-5, adjacency="replace_one").lower


def test_points_on_one_line_are_a_curve():
    """Deltas of randomized response, linear in e^eps, as close as users round them: chords that fall by rounding alone
    are taken."""
    rng = np.random.default_rng(8)
    for _ in range(50):
        top = float(rng.uniform(0.5, 5.0))
        eps = np.sort(rng.uniform(0.0, top, 30)) * float(rng.choice([1.0, 0.01]))
        delta = (math.exp(top) - np.exp(eps)) / (math.exp(top) + 1)
        step = hs.from_curve(eps, delta, symmetric=False)
        bound = hs.delta(step, float(eps[7]), direction="remove")
        assert bound.lower <= delta[7] * (1 + 1e-15) and delta[7] * (1 - 1e-15) <= bound.upper
