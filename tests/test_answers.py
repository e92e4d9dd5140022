"""What leaves a query: ordered intervals, ends rounded outward, jumps of the curve, contradictions that are never
hidden."""

import math
import warnings

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core, answers, query
from hockeystick.routes import table
from hockeystick.what.pair import step_loss


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# Contradictions


def test_an_empty_interval_never_leaves():
    for ends in ((0.2, 0.2, 0.1), (0.1, math.nan, 0.2), (math.nan, 0.1, 0.2)):
        with pytest.raises(hs.SoundnessError, match="report it"):
            hs.Bound(*ends, "test", True, hs.Budget({}))
    with pytest.raises(hs.SoundnessError):
        hs.Bound(np.array([0.1, 0.3]), np.array([0.2, 0.2]), np.array([0.3, 0.3]), "test", True, hs.Budget({}))


def test_two_routes_that_contradict_each_other_are_reported(monkeypatch):
    """The second route's interval lies above the first's, which is too wide to end the search."""
    run = hs.gaussian(1.0) * 3

    def change(name, low, high):
        terms = (0.0,) * len(table.TERMS[name])
        found = answers.Point(math.log(low), math.log(low), math.log(high), terms, name)
        row = {"points": None, "larger": None}
        monkeypatch.setitem(table.TABLE, name, table.TABLE[name]._replace(**row, ask=lambda *_: found))

    change("contour", 0.1, 0.2)
    change("pld", 0.3, 0.4)
    with pytest.raises(hs.SoundnessError, match=r"Gaussian.*'contour'.*'pld'"):
        hs.delta(run, 1.0)
    change("pld", 0.15, 0.1501)
    assert 0.1499 < hs.delta(run, 1.0).lower <= hs.delta(run, 1.0).upper < 0.151


def test_a_curve_with_an_empty_interval_is_reported(monkeypatch):
    rows = lambda settings, add, eps: np.tile([-1.0, -1.5, -2.0, 0, 0, 0, 0], (eps.size, 1))  # noqa: E731
    monkeypatch.setitem(table.TABLE, "contour", table.TABLE["contour"]._replace(points=rows))
    with pytest.raises(hs.SoundnessError):
        hs.delta(hs.gaussian(1.0) * 3, np.linspace(0, 1, 9))


def test_widths_are_relative_to_the_estimate():
    ends = math.log(0.09), math.log(0.1), math.log(0.13)
    assert answers.Point(*ends, (), "a").width == pytest.approx(0.4)
    assert answers.Point(-math.inf, *ends[1:], (), "a").width == pytest.approx(1.3)
    assert answers.Point(-math.inf, -math.inf, -1e5, (), "a").width == math.inf
    assert answers.Point(-1e5, -1e5, -1.0, (), "a").width == math.inf
    assert answers.Point(-1e5, -1e5, -1e5, (), "a").width == answers.Point(*[-math.inf] * 3, (), "a").width == 0
    assert answers.Root(0.9, 1.0, 1.3, (), "a").width == pytest.approx(0.4)


def test_what_two_answers_leave():
    a, b = answers.Root(0.1, 0.3, 0.3, (), "a"), answers.Root(0.15, 0.17, 0.2, (), "b")
    assert answers.meet(a, b) == answers.meet(b, a) == (0.15, 0.17, 0.2, (), "b")
    assert answers.meet(None, a) == answers.meet(a, None) == a and answers.meet(None, None) is None
    with pytest.raises(hs.SoundnessError):
        answers.meet(a, answers.Root(0.4, 0.4, 0.5, (), "c"))


def test_a_curve_beyond_its_grid_is_not_read():
    """Beyond the lattice of one convolution there is nothing to read; a lower end of 1 was certified there."""
    run = hs.poisson_subsampled(hs.gaussian(1.1926773029936264), 0.012141319998344472) * 2
    eps = [9.95904097167596, 15.639378015650793, 28.013042214842155, 29.13924552292059, 31.17697415327809]
    eps += [33.80660861075046, 33.94375407335268, 35.606101479300925, 35.67803085085279]
    b = hs.delta(run, eps, adjacency="replace_one")
    assert (b.lower <= b.estimate).all() and (b.estimate <= b.upper).all() and b.lower[4:].max() < 1e-240
    for i, log_truth in ((3, -509.527972643), (5, -641.109253686)):  # integrals over the first loss in 40 digits
        assert math.log(b.lower[i]) <= log_truth <= math.log(b.upper[i])


# Rounding


def test_lower_ends_below_the_least_normal_number():
    """Those of delta and of its logarithm agree."""
    eps = np.linspace(37.4, 38.55, 40)
    log, curve = hs.log_delta(hs.gaussian(1.0), eps), hs.delta(hs.gaussian(1.0), eps)
    batch = hs.delta_batch(1.0, 1.0, 1, eps)
    from mpmath import mp, mpf

    with mp.workdps(40):
        for low, high, *ends in zip(
            log.lower, log.upper, curve.lower, curve.upper, batch.lower, batch.upper, strict=True
        ):
            assert mpf(float(ends[0])) <= mp.exp(mpf(float(high))) and mpf(float(ends[2])) <= mp.exp(mpf(float(high)))
            assert mpf(float(ends[1])) >= mp.exp(mpf(float(low))) and mpf(float(ends[3])) >= mp.exp(mpf(float(low)))


def test_one_step_next_to_the_wall():
    """delta lies between 1 - e^eps and q where eps is at log(1-q) to all digits but a few."""
    step = hs.poisson_subsampled(hs.gaussian(1.858605396557365), 0.9983180365333977)
    b = hs.log_delta(step, -6.3877934378799015, direction="remove")
    assert b.lower <= math.log(-math.expm1(-6.3877934378799015)) <= b.upper and b.upper - b.lower < 1e-11
    for q in (0.3, 0.9, 0.999, 1 - 1e-9, 1 - 2.0**-53):
        wall = math.log1p(-q)
        for move in (-1e-15, 0.0, 1e-16, 1e-15, 1e-14, 1e-12, 1e-9):
            for direction in ("add", "remove"):
                eps = wall * (1 + move) if direction == "remove" else -wall * (1 + move)
                b = hs.log_delta(hs.poisson_subsampled(hs.gaussian(1.5), q), eps, direction=direction)
                assert b.lower <= b.estimate <= b.upper


@pytest.mark.parametrize("q", [0.5, 1 - 1e-9, 0.9999999999999992, 1 - 2.0**-53])
@pytest.mark.parametrize("delta", [1e-10, 1e-15, 1.2e-20, 1e-300])
def test_the_root_of_one_step_next_to_the_wall(q, delta):
    """With hardly any noise delta(eps) = 1 - (1 - q) e^eps up to e^-100, so eps = log(1 - delta) - log(1 - q)."""
    from mpmath import mp, mpf

    with mp.workdps(400):
        truth = mp.log1p(-mpf(delta)) - mp.log1p(-mpf(q))
        for route in ("auto", "contour"):
            b = hs.epsilon(hs.poisson_subsampled(hs.gaussian(0.03), q), delta, direction="add", route=route)
            assert mpf(b.lower) <= truth <= mpf(b.upper) and b.upper - b.lower < 1e-12


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one", "zero_out"])
def test_the_estimate_lies_between_the_ends_next_to_delta_1(adjacency):
    for run in (
        hs.poisson_subsampled(hs.gaussian(0.5), 0.3) * 50,
        hs.truncated_poisson_subsampled(hs.gaussian(0.3), 0.5, dataset_size=10, max_batch=4) * 50,
        hs.gaussian(0.1) * 4,
    ):
        eps = np.linspace(-40.0, 5.0, 60)
        for found in (hs.delta(run, eps, adjacency=adjacency), hs.log_delta(run, eps[::7], adjacency=adjacency)):
            assert (found.lower <= found.estimate).all() and (found.estimate <= found.upper).all()
        one = hs.delta(run, -3.0, adjacency=adjacency)
        assert one.lower <= one.estimate <= one.upper <= 1


BELOW = [
    (hs.poisson_subsampled(hs.gaussian(20.0), 0.0034443093849338326) * 42001, {}),
    (hs.poisson_subsampled(hs.gaussian(607.8), 0.9235) * 1066, {}),
    (hs.gaussian(105622325.77) * 10**12, {"adjacency": "replace_one"}),
    (hs.compose_arrays(np.linspace(1.0, 2.0, 300), 0.01, 10), {"adjacency": "replace_one"}),
    (
        hs.truncated_poisson_subsampled(hs.gaussian(2.0), 0.01, dataset_size=1000, max_batch=20) * 200,
        {"adjacency": "zero_out"},
    ),
]


@pytest.mark.parametrize("direction", ["both", "remove", "add"])
@pytest.mark.parametrize("run, options", BELOW, ids=range(len(BELOW)))
def test_below_zero_is_the_other_direction_above(run, options, direction):  # [theory: pair.reversal]
    """delta(eps) = 1 - e^eps + e^eps delta'(-eps), also where the last term is far below the digits of the first; one
    by one and many at once."""
    mirror = {"remove": "add", "add": "remove"}.get(direction, "both")
    eps = -np.geomspace(1e-9, 9.0, 40)
    many = hs.delta(run, eps, direction=direction, **options)
    other = hs.log_delta(run, -eps, direction=mirror, **options)
    for i, e in enumerate(eps.tolist()):
        one = hs.delta(run, e, direction=direction, **options)
        low, high = (-math.expm1(e) + math.exp(e + end[i]) for end in (other.lower, other.upper))
        for found in (one, many[i]):
            assert found.lower <= high * (1 + 1e-15) and low * (1 - 1e-15) <= found.upper
            assert found.upper - found.lower < 1e-7 * found.upper


# Jumps


def test_delta_on_the_jump_of_one_step():
    for step in (hs.approx_dp(1.0, 1e-5), hs.from_curve([1.0], [1e-5])):
        assert hs.epsilon(step, math.nextafter(1e-5, 0)).lower == math.inf
    assert hs.epsilon(hs.approx_dp(0.0, 1e-5), 1e-5).upper == 0


@pytest.mark.parametrize("route", ["auto", "pld", "prv", "contour"])
def test_delta_next_to_the_jump_of_a_run(route):
    """(1 - 0.1)(1 - 0.2) of doubles leaves 1.2e-17 between 0.28 and the jump: below 3, by nothing that a double
    shows."""
    for direction in ("both", "add"):
        b = hs.epsilon(hs.approx_dp(1.0, 0.1) + hs.approx_dp(2.0, 0.2), 0.28, route=route, direction=direction)
        assert 2.9 < b.lower <= 3.0 <= b.upper < 3.1
    b = hs.epsilon(hs.approx_dp(1.0, 0.1) * 2 + hs.approx_dp(2.0, 0.2), 1 - 0.9 * 0.9 * 0.8, route=route)
    assert b.lower == math.inf  # the double is below the jump by 8e-17


@pytest.mark.parametrize("route", ["auto", "pld", "prv", "contour"])
def test_delta_on_a_jump_of_unbounded_losses(route):
    """Every eps leaves more than delta: the answer says what eps exceeds, and that no end is known."""
    b = hs.epsilon(hs.approx_dp(1.0, 0.1) + hs.gaussian(2.0), 0.1, route=route)
    assert 4 < b.lower < b.upper == math.inf


def test_refusals_advise_what_helps():
    run = hs.gaussian(1.0) * 10
    with pytest.raises(hs.AccuracyError) as refused:
        hs.delta(hs.approx_dp(1.0, 0.1) + hs.laplace(1.0) * 3, 1.0, route="prv", rtol=1e-13)
    assert "ask for a larger rtol or route='auto'" in str(refused.value)
    settings = query._Settings(run, "add_remove", "both", "auto", None, 1)
    assert "rtol" not in settings._refusal("delta", None) and "auto'" in settings._refusal("delta", None)


# Corners that were exceptions


def test_tilts_at_which_the_variance_underflows():
    """Masses whose second cumulant at a tilt of 400 is a difference of equal subnormal numbers."""
    num, den = [0.08, 0.40, 0.125, 0.112, 0.283], [0.511, 0.3604, 0.00099, 0.00068, 0.12693]
    step = hs.from_pmf([x / sum(num) for x in num], [x / sum(den) for x in den])
    b = hs.epsilon(step * 5, 1e-6, route="pld")
    assert b.upper - b.lower < 0.01 * b.upper


def test_numbers_that_a_double_does_not_hold_are_refused():
    third = np.longdouble(1) / 3
    if float(third) == third:
        pytest.skip("longdouble is double here")
    for ask in (
        lambda: hs.gaussian(third),
        lambda: hs.gaussian(2**60 + 1, sensitivity=2**60),
        lambda: hs.gaussian(np.int64(2**60 + 129), sensitivity=2.0**60),
        lambda: hs.epsilon(hs.gaussian(1.0), np.array([third])),
        lambda: hs.epsilon_batch(np.array([third + 1]), 0.1, 10, 1e-5),
        lambda: hs.from_curve([1.0], np.array([third])),
        lambda: hs.from_pmf(np.array([third, 1 - third]), [0.5, 0.5]),
        lambda: hs.matrix_mechanism(np.array([[third]]), 1.0, 0.1, failure=1e-6),
        lambda: hs.monte_carlo(np.array([third]), 0.5),
        lambda: hs.compose_arrays(np.array([2**60 + 129]), sensitivity=2.0**60),
        lambda: hs.epsilon_batch(1.0, 0.1, np.array([2**64 - 1], np.uint64), 1e-5),
    ):
        with pytest.raises(hs.DomainError, match="a double holds"):
            ask()
    assert hs.gaussian(np.longdouble(0.5)) == hs.gaussian(0.5)


def test_an_individual_bound_below_the_library_is_reported(monkeypatch):
    """The group's upper end of a record against the interval of its run."""
    from hockeystick.individual import epsilons

    counts, false = np.array([[1000]], dtype=np.int32), hs.Bound(9.0, 9.5, 10.0, "test", True, hs.Budget({}))
    monkeypatch.setattr(epsilons, "_is_loose", lambda gap, upper: np.ones(np.shape(gap), bool))
    monkeypatch.setattr(epsilons, "_query", lambda *_: false)
    with pytest.raises(hs.SoundnessError, match=r"'individual'.*'test'"):
        hs.individual_epsilons(counts, sigmas=[1.0], q=0.01, delta=1e-5)


@pytest.mark.parametrize("delta0", [6.35e-321, 1e-310, 3e-300, 1e-200])
def test_log_delta_of_tiny_masses_at_infinity_is_rounded_outward(delta0):
    """Beyond nearly all finite losses delta is D = 1 - (1 - delta0)^(10^12), on the contour as well as by the wall."""
    run = hs.approx_dp(3.594946729635224e-11, delta0) * 10**12
    with mpmath.workdps(400):
        truth = mpmath.log(-mpmath.expm1(10**12 * mpmath.log1p(-mpmath.mpf(delta0))))
        for eps in (0.010011820539339062, 40.0):
            b = hs.log_delta(run, eps, direction="add")
            assert mpmath.mpf(b.lower) < truth < mpmath.mpf(b.upper) < truth + mpmath.mpf("1e-9")


@pytest.mark.parametrize("eps", [-46.0, -600.0, -708.5, -710.0, -744.0, -746.0, -1e6])
def test_log_delta_far_below_zero_is_rounded_down(eps):
    """delta >= 1 - e^eps, whose logarithm is negative however small e^eps is."""
    b = hs.log_delta(hs.gaussian(0.1), eps)
    with mpmath.workdps(400):
        truth = mpmath.log1p(-mpmath.exp(mpmath.mpf(eps)))
        assert mpmath.mpf(b.lower) < truth <= b.upper


@pytest.mark.parametrize("eps", [1e5, 9e5, 1e6, 1e12, 1e150])
def test_delta_far_beyond_every_answers_reach(eps):
    """A grid of many tilts that failed at the first of them served the others."""
    b = hs.log_delta(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, eps)
    assert b.upper < -1e6


def test_masses_that_vanish_in_a_product_and_losses_near_700():
    tiny = hs.poisson_subsampled(hs.from_curve([0.53, 4.404], [0.5092871043950772, 5e-324]), 0.00137)
    b = hs.log_delta(tiny, 5.0)  # 6.8e-327
    assert b.lower == -math.inf and -753 < b.upper
    far = hs.poisson_subsampled(hs.gaussian(764.6), 4.22e-7)
    tails = step_loss(far, "add_remove", False).tails(np.array([30.0, 695.0, 699.0, 701.0]))
    assert tails.edge < 1e-11 and tails.rel.max() < 1e-2


def test_calibration_where_every_parameter_meets_the_target():
    assert hs.max_steps(q=2.4e-11, sigma=0.001, epsilon=1e4, delta=1.7e-112, direction="add").value == 10**12


def test_a_prior_at_which_delta_is_next_to_nothing():
    run = hs.poisson_subsampled(hs.gaussian(8.12), 0.03)
    assert hs.bayes_risk(run, 2.782391155420867e-303).lower < 2.782391155420867e-303


@pytest.mark.parametrize(
    "run, options",
    [
        (hs.poisson_subsampled(hs.laplace(68.0), 0.2) * 461, {}),
        (hs.poisson_subsampled(hs.laplace(24.6), 1e-2) * 274, {}),
        (hs.compose(hs.poisson_subsampled(hs.gaussian(0.9), 0.02) * 40, hs.laplace(3.0) * 5), {}),
        (
            hs.truncated_poisson_subsampled(hs.gaussian(1.05), 5.1e-5, dataset_size=287, max_batch=1) * 6682,
            {"adjacency": "zero_out"},
        ),
    ],
)
def test_a_direction_that_is_left_out_is_the_smaller(run, options):  # [theory: pair.directions, line.both]
    for delta in (1e-9, 1e-6):
        both = hs.epsilon(run, delta, **options)
        own = [hs.epsilon(run, delta, direction=side, **options) for side in ("remove", "add")]
        assert both.lower <= max(one.upper for one in own)
        assert both.upper >= max(one.lower for one in own)
        assert both.upper - both.lower < 1e-6 * both.upper


@pytest.mark.parametrize(
    "run, eps, asked",
    [  # ADD is left out by its saddle, has the same curve, ends below eps, is computed; the line is loose, falls short
        (hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 1.0, 0),
        (hs.gaussian(1.0) * 10, 1.0, 0),
        (hs.poisson_subsampled(hs.gaussian(1.0), 0.2) * 10, 3.0, 0),
        (hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 0.0, 0),
        (hs.poisson_subsampled(hs.gaussian(5.0), 0.5) * 10**6, 1.0, 0),
        (hs.poisson_subsampled(hs.gaussian(1.0), 1e-3) * 10, 1.0, 1),
    ],
)
def test_both_directions_at_once_are_each_on_its_own(monkeypatch, run, eps, asked):  # [theory: line.both]
    """Bit for bit with all error terms, of a first question and of one that knows more of ADD; no line is asked
    twice."""
    lines, line = [], _core.contour_ask
    monkeypatch.setattr(_core, "contour_ask", lambda rows, add, *a: (lines.append(add), line(rows, add, *a))[1])
    first = hs.delta(run, eps)
    assert len(lines) == asked
    again = hs.delta(run, eps)
    monkeypatch.setitem(table.TABLE, "contour", table.TABLE["contour"]._replace(larger=None))
    lines.clear()
    own = hs.delta(hs.compose(run), eps)
    assert 0 in lines
    for bound in (first, again):
        assert (bound, bound.budget) == (own, own.budget)
