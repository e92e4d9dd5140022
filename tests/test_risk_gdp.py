"""One number for a run: mu covers every eps, nothing smaller does, and the regret is what it says."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import query, risk_gdp
from rows import sgm


def phi(z):
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def gaussian_curve(mu, eps):
    return hs.delta(hs.gaussian(1.0 / mu), eps)


RUNS = [
    (sgm(1.0, 0.01, 1000), 1e-5),
    (sgm(1.0, 0.01, 1000), 1e-9),
    (sgm(5.0, 0.05, 10**4), 1e-9),
    (sgm(1.0, 0.05, 10), 1e-5),
]


@pytest.mark.parametrize("run, delta", RUNS)
def test_covers_and_is_the_smallest(run, delta):  # [theory: risk.tangents]
    """The other query on a fine grid, which the proof does not use."""
    mu = hs.mu_gdp(run, delta)
    assert mu.certified and mu.lower <= mu.estimate <= mu.upper <= mu.lower * (1 + 1e-5)
    end = hs.epsilon(run, delta)
    eps = np.linspace(0.0, end.lower, 300)
    ours, cover, less = hs.delta(run, eps), gaussian_curve(mu.upper, eps), gaussian_curve(mu.lower * (1 - 1e-9), eps)
    assert (cover.upper >= ours.lower).all()
    near = hs.delta(run, np.append(eps, end.upper))
    below = gaussian_curve(mu.lower * (1 - 3e-4), np.append(eps, end.upper))
    assert (below.upper < near.lower).any() or (less.upper < ours.lower).any()
    assert hs.epsilon(hs.gaussian(1 / mu.upper), delta).upper >= end.lower


def test_gaussian_is_its_own_mu():
    for mu in (0.05, 1.0, 7.0):
        bound = hs.mu_gdp(hs.gaussian(2.0 / mu) * 4, 1e-6, tol=1e-4)
        assert bound.lower <= mu * (1 + 1e-15) and mu * (1 - 1e-15) <= bound.upper


def test_grows_with_the_tail():
    run = sgm(1.0, 0.01, 1000)
    bounds = [hs.mu_gdp(run, delta) for delta in (1e-3, 1e-6, 1e-9, 1e-12)]
    assert all(a.lower <= b.upper for a, b in itertools.pairwise(bounds))
    assert bounds[0].upper < bounds[-1].lower


def test_below_the_advantage_only_zero_matters():
    run = sgm(2.0, 0.001, 10)
    assert hs.mu_gdp(run, 0.5).certified
    assert hs.mu_gdp(run, 0.5).upper >= hs.mu_gdp(run, 0.5).lower > 0


@pytest.mark.parametrize("run, delta", RUNS)
def test_regret(run, delta):  # [theory: risk.regret]
    mu = hs.mu_gdp(run, delta).upper
    regret = hs.gdp_regret(run, mu)
    assert regret.certified and 0 <= regret.upper - regret.lower <= 1e-6
    eps = np.linspace(0, 8, 2000)
    gap = (gaussian_curve(mu, eps).estimate - hs.delta(run, eps).estimate) / (1 + np.exp(eps))
    assert regret.lower - 1e-9 <= gap.max() * (1 + 1e-3) and gap.max() <= regret.upper + 1e-12


def test_regret_is_the_largest_difference_of_bayes_risks():  # [theory: risk.regret]
    run, mu = sgm(1.0, 0.05, 10), 1.0
    regret = hs.gdp_regret(run, mu)
    reported = hs.gaussian(1 / mu)
    gaps = [hs.bayes_risk(run, p).estimate - hs.bayes_risk(reported, p).estimate for p in np.linspace(0.02, 0.5, 200)]
    assert max(gaps) <= regret.upper + 1e-12 and max(gaps) >= regret.lower - 1e-4


def test_regret_of_the_truth_is_nothing():
    bound = hs.gdp_regret(hs.gaussian(1.0), 1.0)
    assert bound.lower == 0 and bound.upper <= 1e-6
    assert hs.gdp_regret(hs.gaussian(1.0), 0.5).lower == 0  # sticks out everywhere


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 20), st.floats(-3, 10), st.floats(-3, 10))
def test_tangents(mu, t, eps):  # [theory: risk.tangents]
    """Never above the curve they touch, which another route knows."""
    low, high = risk_gdp._tangent(mu, t, eps)
    curve = hs.log_delta(hs.gaussian(1 / mu), eps)
    assert low <= high and low <= math.exp(curve.upper) * (1 + 1e-12)
    touch = risk_gdp._tangent(mu, eps, eps)
    assert touch[0] <= math.exp(curve.upper) * (1 + 1e-12) and touch[1] >= math.exp(curve.lower) * (1 - 1e-12)


@pytest.mark.parametrize("mu", [0.05, 1.0, 7.0])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_point_above_the_tangent_is_not_covered(mu, side):  # [theory: risk.tangents]
    """Two points on the tangent between them are covered; one of them a billionth higher is not."""
    eps = {"left": 0.2 * mu, "right": 0.9 * mu}
    heights = {name: risk_gdp._tangent(mu, 0.55 * mu, e) for name, e in eps.items()}
    for factor, covered in ((1 - 1e-9, True), (1 + 1e-9, False)):
        high = {name: low * (factor if name == side else 1 - 1e-9) for name, (low, _) in heights.items()}
        points = [risk_gdp._Point(eps[name], 0.0, 0.0, high[name]) for name in ("left", "right")]
        cell = tuple(points), (1.0, 1.0)
        for many in (1, 2 * risk_gdp.MANY):  # one at a time, or arrays
            assert len(risk_gdp._uncovered(mu, [cell] * many)) == (0 if covered else many)


@pytest.mark.parametrize("k, scale, delta, most", [(9, 0.446, 5e-4, 30), (1, 2.0, 1e-3, 12), (153, 1.36, 1e-3, 95)])
def test_few_deltas_are_asked(monkeypatch, k, scale, delta, most):
    """Few digits of those that lie far below the Gaussian curve, and as many more as their slack asks for; against a
    curve of 300 points."""
    asked, deltas = [0], query._Settings.deltas

    def counted(self, flat, like):
        asked[0] += len(flat)
        return deltas(self, flat, like)

    monkeypatch.setattr(query._Settings, "deltas", counted)
    run = hs.laplace(scale) * k
    mu = hs.mu_gdp(run, delta)
    assert asked[0] <= most and 0 < mu.lower < mu.upper <= mu.lower * (1 + 1e-5)
    eps = np.linspace(0.0, hs.epsilon(run, delta).lower, 300)
    ours = hs.delta(run, eps)
    assert (gaussian_curve(mu.upper, eps).upper >= ours.lower).all()
    assert (gaussian_curve(mu.lower * (1 - 3e-4), eps).upper < ours.lower).any()


@pytest.mark.parametrize("eps, mu", [(0.0, 0.3), (3.0, 0.5), (40.0, 9.0), (0.0, 7.9)])
def test_a_mu_that_is_needed(eps, mu):  # [theory: risk.tangents]
    """Proved from a start that is too large, and within rounding of the largest that is needed."""
    low, high = risk_gdp._tangent(mu, eps, eps)
    point = risk_gdp._Point(eps, 0.5 * (low + high), high, high)
    found = risk_gdp._mu_of(point, 0.0, 1e-15)
    room = 4 * (high - low) / phi(mu / 2 - eps / mu)
    assert abs(found - mu) <= room
    needed = risk_gdp._mu_lower(point, found * (1 + 1e-9))
    assert needed <= mu + room and risk_gdp._tangent(needed, eps, eps)[1] <= point.low
    assert risk_gdp._mu_lower(point, found) >= mu * (1 - 1e-13) - 2 * room


@pytest.mark.parametrize("run", [hs.top_k(0.5, 10), hs.random_allocation(hs.gaussian(2.0), 100, participations=5)])
def test_a_run_between_two_curves(run):
    """At mu every eps that the run is known to need is covered, below mu one of those that it may need is not."""
    delta, b = 1e-6, hs.mu_gdp(run, 1e-6)
    end = hs.epsilon(run, delta)
    eps = np.linspace(0.0, end.upper, 40)
    curve, most, least = hs.delta(run, eps), *(hs.delta(hs.gaussian(1 / mu), eps) for mu in (b.upper, b.lower * 0.999))
    assert np.all(curve.lower <= most.upper)
    assert np.any(curve.upper > least.lower) and b.lower < b.upper < 1.1 * b.lower
    with pytest.raises(hs.DomainError, match="proved under adjacency 'replace_one'"):
        hs.mu_gdp(hs.with_replacement(hs.gaussian(20.0), dataset_size=1000, batch=10), 1e-6)


@pytest.mark.parametrize("bad", [0, 1, -1.0, math.nan, "0.1", None])
def test_bad_input(bad):
    with pytest.raises(hs.DomainError, match="delta"):
        hs.mu_gdp(hs.gaussian(1.0), bad)
    if bad != 1:
        with pytest.raises(hs.DomainError, match="mu"):
            hs.gdp_regret(hs.gaussian(1.0), bad)
    with pytest.raises(hs.DomainError, match="tol"):
        hs.mu_gdp(hs.gaussian(1.0), 1e-5, tol=bad if bad != 1 else 2)
    with pytest.raises(hs.DomainError, match="rtol"):
        hs.mu_gdp(hs.gaussian(1.0), 1e-5, rtol=1e-3)


def test_a_tolerance_out_of_reach_is_an_error(monkeypatch):
    monkeypatch.setattr(risk_gdp, "POINTS", 40)
    with pytest.raises(hs.AccuracyError, match="mu_gdp reached"):
        hs.mu_gdp(sgm(5.0, 0.05, 10**4), 1e-9, tol=1e-9)
    with pytest.raises(hs.AccuracyError, match="gdp_regret reached"):
        hs.gdp_regret(sgm(5.0, 0.05, 10**4), 1.0, tol=1e-10)
