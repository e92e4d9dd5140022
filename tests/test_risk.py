"""Attack risk: certified from both sides against closed forms in 40 digits, and where other tools fail."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import chords, query
from hockeystick.routes import table

mp.mp.dps = 100
DPSGD = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000


def phi(x):
    return mp.ncdf(x)


def quantile(p):
    return mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p) - 1)


def gaussian_tpr(mu, fpr):
    return phi(quantile(fpr) + mp.mpf(mu))


RECORDED = [  # what two other tools say of the Gaussian of sigma = 1 and of DPSGD (benchmarks/bench_risk.py)
    (1e-12, 5.551e-14, 8.027e-14),
    (1e-8, 1.167e-11, 8.027e-14),
    (1e-7, 1.146e-5, 8.027e-14),
    (1e-6, 8.601e-5, 8.027e-14),
    (1e-4, 3.2734e-3, 4.778e-4),
]


@pytest.mark.parametrize("fpr, of_gaussian, of_dpsgd", RECORDED)
def test_small_rates_that_others_lose(fpr, of_gaussian, of_dpsgd):  # [theory: risk.fpr]
    """Theirs lie below the truth, and mostly below fpr, which costs an attacker nothing: here no answer does."""
    true = gaussian_tpr(1, fpr)
    bound = hs.true_positive_rate(hs.gaussian(1.0), fpr)
    assert of_gaussian < bound.lower <= true <= bound.upper and bound.width <= 2e-9 * true
    assert hs.tradeoff(hs.gaussian(1.0), fpr).upper < 1 - of_gaussian
    # A test that alarms where the loss exceeds eps has tpr = delta + e^eps fpr: the least over eps is the largest tpr.
    eps = np.linspace(0, 9, 600)
    sides = [hs.delta(DPSGD, eps, direction=side) for side in ("remove", "add")]
    least = max(float((side.estimate + np.exp(eps) * fpr).min()) for side in sides)
    bound = hs.true_positive_rate(DPSGD, fpr)
    assert max(fpr, of_dpsgd) < bound.lower <= least * (1 + 1e-9) and least <= bound.upper * (1 + 1e-3)


def test_mu_that_another_tool_underestimates():
    """0.99999993 elsewhere: nothing below 1 covers the Gaussian of mu = 1."""
    bound = hs.mu_gdp(hs.gaussian(1.0), 1e-9)
    assert bound.lower <= 1.0 <= bound.upper <= 1.0 + 1e-5 and bound.lower > 1 - 1e-7


@pytest.mark.parametrize("fpr", [1e-12, 1e-8, 1e-6])
def test_never_better_than_nothing(fpr):
    """fnr <= 1 - fpr always; a DP-SGD run at fpr 1e-6 breaks this elsewhere."""
    fnr, tpr = hs.tradeoff(DPSGD, fpr), hs.true_positive_rate(DPSGD, fpr)
    assert fnr.upper <= 1 - fpr and fpr < tpr.lower <= tpr.upper
    assert tpr.width < 1e-6 * tpr.estimate


def test_below_every_line_of_the_curve():  # [theory: risk.tpr]
    """fnr >= 1 - delta - e^eps fpr for every eps, and both ends near the best of many lines."""
    eps = np.linspace(0, 6, 400)
    delta = hs.delta(DPSGD, eps, direction="remove")
    for fpr in (1e-7, 1e-3, 0.1):
        lines = delta.estimate + np.exp(eps) * fpr
        tpr = hs.true_positive_rate(DPSGD, fpr, direction="remove")
        assert tpr.lower <= lines.min() * (1 + 1e-10) and tpr.upper >= lines.min() * (1 - 1e-3)


def test_both_is_the_worse_direction():
    run = hs.poisson_subsampled(hs.gaussian(0.7), 0.1) * 5
    for fpr in (1e-5, 0.2, 0.9):
        one, two, both = (hs.tradeoff(run, fpr, direction=d) for d in ("remove", "add", "both"))
        assert both.lower == min(one.lower, two.lower) and both.upper == min(one.upper, two.upper)


def test_arrays_keep_their_shape():
    rates = np.array([[1e-6, 0.1], [0.5, 0.9]])
    bound = hs.tradeoff(hs.gaussian(2.0), rates)
    assert bound.lower.shape == bound.upper.shape == bound.estimate.shape == rates.shape
    assert bound.upper[1, 0] == hs.tradeoff(hs.gaussian(2.0), 0.5).upper
    assert hs.tradeoff(hs.gaussian(2.0), []).lower.shape == (0,)
    assert isinstance(hs.tradeoff(hs.gaussian(2.0), 0.5).lower, float)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 20), st.floats(1e-10, 1 - 1e-10), st.floats(1e-10, 1 - 1e-10))
def test_laws(sigma, a, b):
    """fnr does not increase, is its own inverse for the symmetric Gaussian, and more noise never helps an attacker."""
    a, b = sorted((a, b))
    run = hs.gaussian(sigma)
    one, two = hs.tradeoff(run, a), hs.tradeoff(run, b)
    assert one.upper >= two.lower
    assert hs.tradeoff(hs.gaussian(1.3 * sigma), a).upper >= one.lower
    if 1e-12 < one.upper < 1 - 1e-12:
        assert hs.tradeoff(run, one.upper).lower <= a * (1 + 1e-6) + 1e-15


def enclosing(eps, delta, noise):
    """Points whose deltas are known within the factor 1 +- noise."""
    return chords.Nodes(
        tuple(eps),
        tuple(math.exp(e) * (1 - 4 * chords.U) for e in eps),
        tuple(math.exp(e) * (1 + 4 * chords.U) for e in eps),
        tuple(float(d * (1 - noise)) * (1 - 1e-15) for d in delta),
        tuple(float(d) for d in delta),
        tuple(float(d * (1 + noise)) * (1 + 1e-15) for d in delta),
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=4, max_size=4, unique=True),
    st.floats(0.05, 4),
    st.floats(1e-9, 0.999),
    st.floats(0, 1e-3),
)
def test_lower_end_is_a_lower_bound_anywhere(eps, mu, fpr, noise):  # [theory: risk.four-points]
    """Wherever the four points lie and however wide their deltas are."""
    eps = sorted(eps)
    if np.diff(eps).min() < 1e-6:
        return
    x = [mp.e ** mp.mpf(e) for e in eps]
    delta = [
        phi(mp.mpf(mu) / 2 - e / mp.mpf(mu)) - v * phi(-mp.mpf(mu) / 2 - e / mp.mpf(mu))
        for e, v in zip(eps, x, strict=True)
    ]
    nodes = enclosing(eps, delta, noise)
    true = gaussian_tpr(mu, fpr)
    assert fpr <= chords.tpr_lower(nodes, fpr) <= true
    assert chords.fpr_upper(nodes, float(true) * (1 + 1e-15), 0.0) >= fpr * (1 - 1e-14)


def test_advantage():  # [theory: risk.tpr]
    bound = hs.advantage(DPSGD)
    assert bound.lower == hs.delta(DPSGD, 0.0).lower
    exact = 2 * phi(mp.mpf(1) / 6) - 1
    assert hs.advantage(hs.gaussian(3.0)).lower <= exact <= hs.advantage(hs.gaussian(3.0)).upper


def test_bayes_risk_by_direction():
    run = hs.poisson_subsampled(hs.gaussian(0.5), 0.3)
    one, two = (hs.bayes_risk(run, 0.2, direction=d) for d in ("remove", "add"))
    both = hs.bayes_risk(run, 0.2)
    assert both.upper <= 0.2
    assert both.lower == min(one.lower, two.lower)
    mirrored = hs.bayes_risk(run, 0.8, direction="add")
    assert mirrored.lower <= one.upper and one.lower <= mirrored.upper


def test_what_nothing_ran_costs():
    """The empty run: the outputs say nothing, in either direction, at eps of either sign."""
    run = hs.compose()
    for direction in ("remove", "add", "both"):
        bound = hs.delta(run, [-1.0, 0.0, 1.0], direction=direction)
        assert bound.upper.tolist()[1:] == [0, 0] and bound.lower[0] <= -math.expm1(-1.0) <= bound.upper[0]
        assert (
            hs.tradeoff(run, 0.1, direction=direction).upper >= 0.9 >= hs.tradeoff(run, 0.1, direction=direction).lower
        )
    belief = hs.posterior(run, 0.3, tail=0.1)
    assert belief.lower <= 0.3 <= belief.upper <= 0.3 + 1e-6
    assert hs.mu_gdp(run, 1e-5).upper == 0 and hs.bayes_risk(run, 0.3).upper == 0.3


def test_bad_options():
    with pytest.raises(hs.DomainError, match="rtol"):
        hs.tradeoff(DPSGD, 0.1, rtol=1e-3)
    with pytest.raises(TypeError):
        hs.tradeoff(DPSGD, 0.1, tolerance=1)


def test_tradeoffs_are_about_as_narrow_as_the_deltas_behind_them():
    """Points too near for the width of the deltas say nothing of slopes; points farther apart do."""
    run = hs.pure_dp(0.1) * 70 + hs.laplace(10.0) * 10  # of fewer responses the deltas are narrow
    bound, width = hs.tradeoff(run, 1e-3), hs.delta(run, 1.8).width
    assert 1e-8 < bound.width < width


@pytest.mark.parametrize("options", [{}, {"route": "prv"}])
def test_how_many_deltas_a_rate_asks(monkeypatch, options):
    """At most three and five a round, whatever the widths of the deltas; mostly a tenth of that."""
    asked, deltas = [], query._Settings.deltas
    monkeypatch.setattr(
        query._Settings, "deltas", lambda s, flat, like: (asked.append(len(flat)), deltas(s, flat, like))[1]
    )
    runs = DPSGD, hs.randomized_response(0.4) * 28, hs.laplace(3.0) * 10, hs.pure_dp(0.1) * 30 + hs.laplace(10.0) * 10
    for run in runs[: 1 if options else 4]:
        for ask in (
            lambda run: hs.tradeoff(run, 0.01, direction="remove", **options),
            lambda run: hs.true_positive_rate(run, 1e-12, direction="remove", **options),
            lambda run: hs.posterior(run, 0.3, tail=1e-5, direction="remove", **options),
        ):
            asked.clear()
            ask(run)
            assert max(asked) <= len(chords.FIVE) and len(asked) <= 3 + chords.ROUNDS
            assert 3 + len(chords.FIVE) * chords.ROUNDS == 203 and 2 < sum(asked) < 40


@pytest.mark.parametrize("direction", ["remove", "add", "both"])
def test_an_attack_that_hardly_misses(monkeypatch, direction):  # [theory: risk.sure]
    """One look at 1 - delta tells that the attack is sure up to the last digit; a smaller rate takes a search."""
    asked, deltas = [], query._Settings.deltas
    monkeypatch.setattr(query._Settings, "deltas", lambda s, flat, like: (asked.extend(flat), deltas(s, flat, like))[1])
    run = hs.laplace(0.32) * 147
    bound = hs.true_positive_rate(run, 1e-18, direction=direction)
    assert bound.lower == 1 - 2**-53 and bound.upper == 1.0 and len(asked) < 10
    assert 0.994 < hs.true_positive_rate(run, 1e-120, direction=direction).upper < 0.995


def test_points_that_are_one_say_nothing_of_slopes():  # [theory: risk.four-points]
    """Two points a rounding apart once bounded a curve from above its own minimum."""
    eps = (0.2, 0.4, 0.4 + 1e-16, 0.6, 0.8)
    low = tuple(float(phi(0.5 - e) - mp.exp(e) * phi(-0.5 - e)) * (1 - 1e-9) for e in eps)
    x = [math.exp(e) for e in eps]
    nodes = chords.Nodes(eps, *(tuple(v * side for v in x) for side in (chords.DOWN, chords.UP)), low, low, low)
    assert chords.tpr_lower(nodes, 0.3) == 0.3


def test_a_corner_between_steps_that_are_nearly_one():
    """Points at a corner and next to it: trade-offs of answers, 28 randomised responses, at rates below it."""
    run = hs.randomized_response(0.4) * 28
    bound = hs.true_positive_rate(run, np.geomspace(1e-7, 0.9, 25))
    atoms = np.arange(29)
    den = np.array([math.comb(28, k) for k in atoms]) / (1 + math.exp(0.4)) ** 28 * np.exp(0.4 * (28 - atoms))
    num = den[::-1]  # the loss 0.4 (2k - 28) rises with k
    above = np.r_[np.cumsum(den[::-1]), 1.0], np.r_[np.cumsum(num[::-1]), 1.0]
    true = np.interp(np.geomspace(1e-7, 0.9, 25), np.r_[0, above[0]], np.r_[0, above[1]])
    assert (bound.lower <= true * (1 + 1e-12)).all() and (true * (1 - 1e-12) <= bound.upper).all()
    assert (bound.width <= 1e-8 * true).all()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=4, max_size=7, unique=True),
    st.floats(0.05, 4),
    st.floats(-3, 3),
    st.floats(0, 1e-3),
)
def test_quantiles_between_points(eps, mu, z, noise):  # [theory: risk.slope]
    """Wherever the points lie and however wide their deltas are: the loss is N(mu^2/2, mu^2) under num."""
    eps = sorted(eps)
    if np.diff(eps).min() < 1e-6:
        return
    exact = [phi(mu / 2 - e / mp.mpf(mu)) - mp.exp(e) * phi(-mu / 2 - e / mp.mpf(mu)) for e in eps]
    nodes = enclosing(eps, exact, noise)
    tail = float(phi(mp.mpf(z)))
    low, high = chords.tail_ends(nodes, tail)
    true = mu * (mp.mpf(mu) / 2 - quantile(tail))
    assert low <= true + 1e-13 and true - 1e-13 <= high


def test_corners_seen_in_rounding():  # [theory: risk.slopes]
    """Points too near for the width of their deltas were taken for a corner: 5e-6 wide for once."""
    run = hs.poisson_subsampled(hs.laplace(17.94851790104892), 0.161020941067318) * 13
    bound = hs.tradeoff(run, 0.09888, direction="remove")
    assert bound.width <= 1e-9 * (1 - bound.upper) * 10


ATOMS = {
    "top": (lambda: hs.laplace(0.32), 2.6e-5),
    "near the top": (lambda: hs.pure_dp(1.1228525) * 1 + hs.laplace(6.748) * 2, 6.5e-4),
    "corner": (lambda: hs.randomized_response(0.4) * 28, 1e-3),
    "two atoms": (lambda: hs.from_pmf([0.3, 0.7], [0.45, 0.55]) * 2, 0.116),
    "lattice": (lambda: hs.discrete_gaussian(3.1) * 9028, 0.04),
    "sampled": (lambda: hs.poisson_subsampled(hs.laplace(0.7), 1e-3) * 331, 0.02),
}


@pytest.mark.parametrize("k, level", [(1, 1e-4), (40, 1e-22)])
def test_levels_that_end_at_the_largest_loss(k, level):  # [theory: risk.top]
    """Where it is an atom, and next to it when the level is just more than the atom."""
    steps = hs.randomized_response(0.7) * k + hs.laplace(3.0)
    top = k * mp.mpf(0.7) + 1 / mp.mpf(3)
    num = (1 / (1 + mp.exp(-mp.mpf(0.7)))) ** k / 2
    den = num * mp.exp(-top)
    if level < den:
        bound = hs.true_positive_rate(steps, level, direction="remove")
        assert bound.lower <= level * mp.exp(top) <= bound.upper and bound.width <= 1e-10 * bound.upper
    for part in (0.3, 0.99):
        bound = hs.posterior(steps, 1e-3, tail=float(num) * part, direction="remove")
        assert bound.lower <= 1 / (1 + 999 * mp.exp(-top)) <= bound.upper
    bound = hs.posterior(steps, 1e-3, tail=float(num) * 1.01, direction="remove")
    assert bound.upper < 1 / (1 + 999 * mp.exp(-top))


def test_few_deltas_are_asked(monkeypatch):
    """Of both directions together; 18 to 149, 798 in all, once."""
    asked, deltas = [0], hs.query._Settings.deltas

    def counted(self, flat, like):
        asked[-1] += len(flat)
        return deltas(self, flat, like)

    monkeypatch.setattr(hs.query._Settings, "deltas", counted)
    for make, fpr in ATOMS.values():
        for ask in (hs.true_positive_rate, lambda run, tail: hs.posterior(run, 0.3, tail=tail)):
            bound = ask(make(), fpr)
            assert bound.width <= 1e-7 * bound.upper
            asked.append(0)
    assert max(asked) <= 40 and sum(asked) <= 150


@pytest.mark.parametrize("tail", [1e-9, 1e-6, 0.3, 0.9])
def test_where_a_search_begins(tail):
    """A hundredth of a deviation off, or so much of a lattice's step, and with a mass at infinity."""
    run = hs.approx_dp(0.5, 1e-30) * 3 + hs.laplace(1.3) * 40
    eps, deviation = query.Asker(run, direction="remove").loss_about(tail, True)
    x = [math.exp(eps + off * deviation) for off in (-0.01, 0.01)]
    below, above = (1 / (1 + 1 / at) for at in x)
    belief = hs.posterior(run, 0.5, tail=tail, direction="remove")
    assert below < belief.upper and belief.lower < above and (belief.upper < 1 or eps > 36)
    assert query.Asker(run, direction="remove").loss_about(1e-30, True) is None
    assert query.Asker(hs.gaussian(1.0), direction="remove").loss_about(tail, True) is None


@pytest.mark.parametrize(
    "step, number, scale, tail", [((0.3028, 3.1e-7), 11, 0.6242, 3e-4), ((0.0236, 2.7e-7), 4, 0.515, 1.5e-4)]
)
def test_before_the_largest_loss(monkeypatch, step, number, scale, tail):
    """What the slope at the end of a curve tells is not asked of convolutions: 1.2 and 0.5 s were spent on these."""
    monkeypatch.setattr(table, "pld", None)
    run = hs.approx_dp(*step) * (1 if number == 11 else 16) + hs.laplace(scale) * number
    assert hs.posterior(run, 0.3, tail=tail).width < 1e-7


@pytest.mark.parametrize("k, tail", [(2, 0.99998448), (12, 0.9999974)])
def test_tails_next_to_1(k, tail):  # [theory: risk.slope]
    """Where rounding lets no crossing be proved within 1e-11 it is moved as far as it has to be: 0.3 wide once."""
    run = hs.k_ary_randomized_response(0.5193, 13) * k
    bound = hs.posterior(run, 0.3, tail=tail, direction="remove", adjacency="replace_one")
    assert bound.upper - bound.lower <= 1e-5 * bound.upper


def test_masses_at_infinity_beside_atoms():
    """Where delta stays at more than the tail, or the rate is far below what its width says of a slope."""
    run = hs.approx_dp(0.5, 1e-5) * 3 + hs.laplace(3.0)
    assert hs.posterior(run, 0.3, tail=1e-6, direction="remove").lower > 1 - 1e-14
    bound = hs.true_positive_rate(run, 3e-27, direction="remove")
    assert 2.9e-5 < bound.lower <= bound.upper <= bound.lower * (1 + 1e-9)


def test_no_loss_is_finite():
    run = hs.from_pmf([0.0, 1.0], [1.0, 0.0]) * 2
    assert hs.posterior(run, 0.5, tail=0.1).lower > 1 - 1e-14
    assert hs.true_positive_rate(run, 1e-9).lower > 1 - 1e-14


@pytest.mark.parametrize("run", [hs.laplace(1 / 300) * 10**12, hs.from_pmf([0.5, 0.5], [1.0, 0.0]) * 2000])
@pytest.mark.parametrize("side", ["remove", "add"])
def test_losses_whose_exponential_is_no_double(run, side):  # [theory: risk.posterior]
    """Nearly all losses lie beyond 690, where the search began (an OverflowError), or all finite ones below -690, where
    the curve ends (a ZeroDivisionError)."""
    for fpr in (1e-9, 0.5, 1 - 1e-9):
        assert hs.true_positive_rate(run, fpr, direction=side).lower > 1 - 1e-14
        missed = hs.tradeoff(run, fpr, direction=side)
        assert 0 <= missed.lower <= missed.upper < 1e-14
    assert hs.posterior(run, 1e-9, tail=0.9, direction=side).lower > 1 - 1e-14


@pytest.mark.parametrize(
    ("run", "ask", "wide"),
    [
        (hs.laplace(5.470740959709265) * 192, lambda r: hs.true_positive_rate(r, 1.3785654983407433e-20), 1e-9),
        (hs.laplace(1.7857108697217006) * 145, lambda r: hs.posterior(r, 0.2, tail=0.8244173604801058), 1e-9),
    ],
)
def test_the_last_points_bound_the_cells_beyond_them(run, ask, wide):  # [theory: risk.slopes]
    """Three alone left 6e-7 and 2e-6, where the deltas leave 3e-10."""
    found = ask(run)
    assert found.upper - found.lower <= wide * found.upper
