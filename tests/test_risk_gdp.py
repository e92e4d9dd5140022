"""One number for a run: mu covers every eps, nothing smaller does, and the regret is what it says."""

import itertools
import math
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import _core, query, risk_gdp
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
    for mu in (0.05, 1.0, 7.0, 13.0, 30.0):
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
    assert hs.gdp_regret(hs.gaussian(1.0), 1e-50).upper < 1e-100  # of points that were one it was a ZeroDivisionError
    bound = hs.gdp_regret(hs.gaussian(1.0), 5e-324)  # 20,000 deltas and an AccuracyError
    assert bound.lower == 0 < bound.upper < 1e-149


def rows(eps, low, high):
    """Points as the core has them, known within doubles."""
    points = np.zeros((len(eps), 8))
    points[:, :5] = np.transpose([eps, low, high, np.maximum(1 - np.array(high), 0), 1 - np.array(low)])
    return points


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 60), st.floats(-3, 10), st.floats(-3, 10))
def test_tangents(mu, t, eps):  # [theory: risk.tangents]
    """A tangent, and 1 less that, in many digits; below the curve, which it touches."""
    low, high, left, left_high = _core.gdp_tangent(mu, t, eps)
    with mpmath.workdps(60):
        normal, m, a, x = mpmath.ncdf, mpmath.mpf(mu), mpmath.mpf(t), mpmath.exp(mpmath.mpf(eps))
        tangent, rest = (normal(side * (m / 2 - a / m)) - side * x * normal(-m / 2 - a / m) for side in (1, -1))
        assert low <= tangent <= high and left <= rest <= left_high
        assert left_high <= rest * (1 + 1e-13 * (1 + mu + abs(t) / mu) ** 2) + 3e-300
        assert high - low <= 1e-13 * (1 + mu + abs(t) / mu) ** 2 * max(1, math.exp(eps))
    touch = _core.gdp_tangent(mu, eps, eps)
    assert low <= touch[1] and left_high >= touch[2]


@settings(max_examples=60, deadline=None)
@given(st.floats(3, 10), st.floats(-60, 8))
@example(9.0, 5.0)
def test_tangents_of_little_noise(log_mu, z):  # [theory: risk.tangents]
    """Where eps is far beyond all exponents its price keeps its digits: what touches is known within a factor of 2."""
    mu = 10.0**log_mu
    t = mu * mu / 2 - z * mu
    low, high, left, left_high = _core.gdp_tangent(mu, t, t)
    with mpmath.workdps(60):
        m, a = mpmath.mpf(mu), mpmath.mpf(t)
        tail = lambda z: mpmath.erfc(-z / mpmath.sqrt(2)) / 2  # noqa: E731
        price = mpmath.exp(a) * tail(-m / 2 - a / m)
        assert low <= tail(m / 2 - a / m) - price <= high and left <= tail(a / m - m / 2) + price <= left_high
    assert left_high <= 2 * left + 3e-300


@pytest.mark.parametrize("mu", [0.05, 1.0, 7.0, 20.0])
@pytest.mark.parametrize("side", [0, 1])
def test_a_point_above_the_tangent_is_not_covered(mu, side):  # [theory: risk.tangents]
    """Two points some way below the tangent between them are covered; where one is on it and the other a millionth of
    its distance from the curve above it, no tangent does; from mu = 8 on by what 1 - delta is."""
    eps, of = [0.2 * mu, 0.9 * mu], 3 if mu > 8 else 0
    heights = [_core.gdp_tangent(mu, 0.55 * mu, e)[of] for e in eps]
    above = [_core.gdp_tangent(mu, e, e)[of] - height for e, height in zip(eps, heights, strict=True)]
    for covered in (True, False):
        parts = [-0.2 if covered else 1e-6 * (i == side) - 1e-11 for i in (0, 1)]
        known = [height + part * more for height, part, more in zip(heights, parts, above, strict=True)]
        points = rows(eps, [0.0, 0.0], [1.0, 1.0])
        points[:, 3 if of else 2] = known
        over = _core.gdp_cover(mu, points)
        assert (over > 0).all() and points[0, 7] == covered


def test_points_between_two_lie_on_their_chords():  # [theory: risk.tangents]
    """What is taken for known of a new point is the chord in e^eps, or worse by some roundings of e^eps, in cells of
    any length that are cut evenly or next to their end."""
    for left, right, start in itertools.product((0.0, 0.3, 20.7), (0.5, 7.1, 40.3, 500.9), (0.41, 0.1)):
        points = rows([left, left + right], [0.0, 0.0], [0.75, 0.2])
        points[:, 5] = start, 0.419999
        new = _core.gdp_cuts(0.42, 1.0, 0.02, points, np.array([0.1, 0.1]))
        assert len(new) and (np.diff(new[:, 0]) > 0).all()
        for row in new:
            with mpmath.workdps(300):
                first, last, at = (mpmath.mpf(e) for e in (*points[:, 0], row[0]))
                share = mpmath.expm1(at - first) / mpmath.expm1(last - first)
                for column, far in ((2, 1), (3, -1)):
                    one, other = (mpmath.mpf(x) for x in points[:, column])
                    assert 0 <= far * (row[column] - one - share * (other - one)) < 1e-15 * (10 + right)


def binomial(eps0, k):
    """num and den of all outcomes of randomised responses, in many digits."""
    p = 1 / (1 + mpmath.exp(-mpmath.mpf(eps0)))
    return [(mpmath.binomial(k, j) * p**j * (1 - p) ** (k - j), (1 - p) ** j * p ** (k - j)) for j in range(k + 1)]


@pytest.mark.parametrize("eps0, k, lost", [(3.0, 60, 0.0), (2.0, 80, 1e-9)])
def test_where_delta_is_next_to_one(eps0, k, lost):  # [theory: line.complement, risk.tangents]
    """mu above 12, where delta(0) is 1 within a double: from exact sums of 1 - delta, at every corner and between."""
    run, delta = hs.approx_dp(eps0, lost) * k, 1e-5
    bound = hs.mu_gdp(run, delta)
    assert 12 < bound.lower < bound.upper < bound.lower * (1 + 1e-5)
    with mpmath.workdps(60):
        rest = (1 - mpmath.mpf(lost)) ** k
        outcomes = [(rest * num, rest * mpmath.binomial(k, j) * den) for j, (num, den) in enumerate(binomial(eps0, k))]
        needed = []
        for e in np.linspace(0.0, hs.epsilon(run, delta).lower, 12 * k):
            x = mpmath.exp(mpmath.mpf(e))
            left = mpmath.fsum(min(num, x * den) for num, den in outcomes)
            mus = [mpmath.mpf(mu) for mu in (bound.lower * (1 - 1e-3), bound.upper)]
            small, large = (mpmath.ncdf(e / mu - mu / 2) + x * mpmath.ncdf(-mu / 2 - e / mu) for mu in mus)
            assert large <= left
            needed.append(small > left)
        assert any(needed)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("lost", [0.0, 1e-6])
def test_digits_of_what_delta_leaves(direction, lost):  # [theory: line.complement]
    """1 - delta on a lattice to 1e-8 of itself, from 1e-30 on; and of Laplace noise, where a double shows it too."""
    eps0, k = 2.5, 60
    with mpmath.workdps(60):
        outcomes = [
            ((1 - mpmath.mpf(lost)) ** k * num, (1 - mpmath.mpf(lost)) ** k * mpmath.binomial(k, j) * den)
            for j, (num, den) in enumerate(binomial(eps0, k))
        ]
        eps = np.array([0.0, 0.3, 20.0, 70.0, 125.0])
        low, high = query.Asker(hs.approx_dp(eps0, lost) * k, direction=direction).rest(eps)
        for i, e in enumerate(eps.tolist()):
            exact = mpmath.fsum(min(num, mpmath.exp(mpmath.mpf(e)) * den) for num, den in outcomes)
            assert low[i] <= exact <= high[i] < low[i] * (1 + 1e-8)
    run = hs.laplace(0.7) * 20 + hs.gaussian(2.0)
    eps = np.array([0.0, 3.0, 8.0, 15.0])
    bound, (low, high) = hs.delta(run, eps, direction=direction), query.Asker(run, direction=direction).rest(eps)
    assert (low <= 1 - bound.lower).all() and (1 - bound.upper <= high).all() and (high - low < 1e-5 * low).all()


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
    low, high, *_ = _core.gdp_tangent(mu, eps, eps)
    points = rows([eps], [high], [high])
    room = 4 * (high - low) / phi(mu / 2 - eps / mu)
    needed = _core.gdp_fit(0.0, eps, 1e-4, points)
    assert mu * (1 - 1e-13) - 2 * room <= needed <= mu + room and abs(points[0, 5] - mu) <= room
    _, most, left, _ = _core.gdp_tangent(needed, eps, eps)
    assert most <= high or left >= 1 - high
    points[0, 5] *= 1 + 1e-9
    assert _core.gdp_fit(0.0, eps - 1e-9, 1e-4, points) == 0.0  # beyond the end nothing is needed


@pytest.mark.parametrize("mu", [13.0, 30.0, 60.0])
def test_a_mu_that_is_needed_next_to_one(mu):  # [theory: risk.tangents]
    *_, left, left_high = _core.gdp_tangent(mu, 0.0, 0.0)
    points = rows([0.0], [1.0], [1.0])
    points[0, 3:5] = left, left_high
    assert mu * (1 - 1e-11) <= _core.gdp_fit(0.0, 0.0, 1e-4, points) <= mu


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


def plain_rest(shift, q, k, add, eps):
    """log(1 - delta) of sampled Gaussian steps: a sum over a line between the poles at -1 and 0, in plain numpy."""
    x = np.arange(-14.0, 14 + 3 * shift, 0.02)
    loss = np.log1p(q * np.expm1(shift * x - shift**2 / 2))

    def exponent(z):
        terms = np.multiply.outer(-z if add else 1 + z, loss) - x * x / 2
        top = terms.real.max(axis=-1)
        sums = np.exp(terms - top[..., None]).sum(axis=-1) * 0.02 / math.sqrt(2 * math.pi)
        return k * (top + np.log(sums)) - z * eps - np.log(-z) - np.log1p(z)

    tilts = np.linspace(-0.99, -0.01, 50)
    c = tilts[np.argmin(exponent(tilts + 0j).real)]
    y = np.arange(400) * 0.03 * min(-c, 1 + c)  # a period of 400: 16 deviations and more
    logs = exponent(c + 1j * y)
    parts = np.exp(logs - logs[0]).real * np.where(y == 0, 1, 2)
    assert abs(parts[-1]) < 1e-14
    return logs[0].real + math.log(parts.sum() * y[1] / (2 * math.pi))


@pytest.mark.parametrize(("shift", "q", "k"), [(1.0, 0.5, 1000), (2.0, 0.3, 700), (0.5, 0.9, 3000)])
@pytest.mark.parametrize("side", ["remove", "add"])
def test_sampled_gaussian_runs_far_above_twelve(shift, q, k, side):  # [theory: line.complement]
    """They were refused above 12, as lines of delta have no digits of 1 - delta."""
    run = hs.poisson_subsampled(hs.gaussian(1 / shift), q) * k
    bound = hs.mu_gdp(run, 1e-5, direction=side)
    assert 15 < bound.lower < bound.upper <= bound.lower * (1 + 1e-5)
    eps = np.array([0.0, 0.4]) * hs.epsilon(run, 0.5, direction=side).estimate
    low, high = np.log(query.Asker(run, direction=side).rest(eps))
    for i, e in enumerate(eps.tolist()):
        assert low[i] - 1e-9 <= plain_rest(shift, q, k, side == "add", e) <= high[i] + 1e-9
        assert high[i] - low[i] < 1e-9


@pytest.mark.parametrize(
    ("mu", "delta", "tol"), [(0.1, 1e-6, 1e-5), (1.0, 1e-12, 1e-5), (4.0, 1e-6, 1e-5), (15.0, 0.01, 1e-4)]
)
def test_how_many_deltas_a_cover_asks(monkeypatch, mu, delta, tol):
    asked, deltas, rest = [], query._Settings.deltas, query._Settings.rest
    monkeypatch.setattr(query._Settings, "deltas", lambda s, flat, like: (asked.extend(flat), deltas(s, flat, like))[1])
    monkeypatch.setattr(query._Settings, "rest", lambda s, eps: (asked.extend(eps), rest(s, eps))[1])
    bound = hs.mu_gdp(hs.gaussian(1 / mu), delta, tol=tol)
    assert bound.upper <= bound.lower * (1 + tol)
    most = 0.6 * (mu / 2 + NormalDist().inv_cdf(1 - delta)) / math.sqrt(tol)
    assert 0.5 * most < len(asked) <= most
    asked.clear()
    hs.mu_gdp(hs.laplace(1.0) * 20, delta, tol=tol)
    assert len(asked) < 100


def test_an_eps_beyond_doubles_is_refused_by_name():
    with pytest.raises(hs.AccuracyError, match=r"up to eps = 690, .* at delta=1e-05 eps is 969\.\d+: ask for a larger"):
        hs.mu_gdp(hs.gaussian(0.1) * 16, 1e-5)


def test_a_relative_tolerance_is_no_option():
    with pytest.raises(hs.DomainError, match="rtol"):
        hs.mu_gdp(hs.gaussian(1.0), 1e-5, rtol=1e-3)


def test_a_tolerance_out_of_reach_is_an_error(monkeypatch):
    monkeypatch.setattr(risk_gdp, "POINTS", 40)
    with pytest.raises(hs.AccuracyError, match="mu_gdp reached"):
        hs.mu_gdp(sgm(5.0, 0.05, 10**4), 1e-9, tol=1e-9)
    with pytest.raises(hs.AccuracyError, match="gdp_regret reached"):
        hs.gdp_regret(sgm(5.0, 0.05, 10**4), 1.0, tol=1e-10)


@pytest.mark.parametrize(("mu", "eps"), [(26.441963664821163, 676.4), (21.94, 600.0), (16.4758, 565.0), (10.36, 404.8)])
def test_a_tail_below_all_doubles_times_a_large_price(mu, eps):  # [theory: risk.tangents]
    """e^600 times a Phi(z) that a double holds with few digits, or as 0: mu was above 21.940001 for 21.94."""
    run = hs.gaussian(1 / mu)
    bound = hs.mu_gdp(run, hs.delta(run, eps).estimate)
    assert bound.lower <= mu * (1 + 1e-15) and bound.upper >= mu * (1 - 1e-15)
