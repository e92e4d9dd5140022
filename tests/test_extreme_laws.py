"""Laws at the ends of their domains: gaps of hundreds of nats, rates near 1, near ties, masses that cancel.

Truths in rationals, 60-digit numbers, or closed form."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.routes import single
from hockeystick.what.pair import step_loss
from rows import gaussian_delta

GAUSSIAN = hs.gaussian(1.0)
NARROW = {"without": hs.without_replacement(GAUSSIAN, dataset_size=1000, batch=10)}
NARROW["truncated"] = hs.truncated_poisson_subsampled(GAUSSIAN, 0.1, dataset_size=100, max_batch=22)
NARROW["open"] = hs.truncated_poisson_subsampled(GAUSSIAN, 0.1, dataset_size=(50, 200), max_batch=22)
NARROW["cyclic"] = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, iterations=40, bands=2, dataset_size=199)


def certain(chance):
    """Two steps that each reveal all with this chance, and else next to nothing."""
    return 1 - (1 - mpf(chance)) ** 2


FAR = [
    (hs.poisson_subsampled(hs.gaussian(0.02), 0.3) * 2, 5.0, certain(0.3)),
    (hs.gaussian_mixture(0.01, [0, 1.0, 2.0], [0.998, 0.001, 0.001]) * 2, 3.0, certain(0.002)),
    (
        hs.public_mixture([hs.gaussian(0.01), hs.gaussian(2.0)], [1e-3, 1 - 1e-3]) * 2,
        3.0,
        certain(1e-3) + mpf(0.999) ** 2 * gaussian_delta(mp.sqrt(2) / 2, 3.0),
    ),
    (hs.from_pmf([1e-3, 0.999], [1e-320, 1.0]) * 3, 1.0, 1 - mpf(0.999) ** 3),
]


@pytest.mark.parametrize(("run", "eps", "truth"), FAR, ids=["sampled", "mixture", "public", "pmf"])
def test_gaps_of_hundreds_of_nats(run, eps, truth):
    """A cell 710 nats below its group overflowed in the lower law, which then held all mass at its top."""
    bound = hs.delta(run, eps, route="pld", direction="remove")
    assert bound.lower <= truth * (1 + mpf(10) ** -12)
    assert bound.upper >= truth * (1 - mpf(10) ** -12)


def test_gaps_of_hundreds_of_nats_truncated():
    """The same for a two-sided pair: no interval turned round, and nothing above the distance of the laws."""
    step = hs.truncated_poisson_subsampled(hs.gaussian(0.01), 1e-3, dataset_size=1000, max_batch=5)
    bound = hs.delta(step * 2, 3.0)
    assert 0.9 * bound.upper <= bound.lower <= bound.upper <= 0.002


def test_gaps_of_hundreds_of_nats_eps():
    """0.3^2 (1 - e^{eps - 2 loss}) = 0.027 for the loss log(0.3/1e-310)."""
    bound = hs.epsilon(hs.from_pmf([0.3, 0.3, 0.4], [1e-310, 0.3, 0.7]) * 2, 0.027)
    with mp.workdps(30):
        truth = 2 * mp.log(mpf(0.3) / mpf(1e-310)) + mp.log(mpf(0.7))
        assert bound.lower <= truth + 1e-9
        assert bound.upper >= truth - 1e-9


@pytest.mark.parametrize("tol", [1e-6, 1e-5, 1e-4])
def test_calibrated_limit_is_not_met(tol):
    """1 - (1 - q)^2 = 0.1: answered, or refused for the width of the bounds, and then the message encloses the
    truth."""
    truth = 1 - mp.sqrt(mpf(0.9))
    try:
        found = hs.calibrate(
            lambda q: hs.poisson_subsampled(hs.gaussian(0.02), q) * 2, over=(1e-3, 0.9), epsilon=5.0, delta=0.1, tol=tol
        )
        met, limit = found.value, found.limit
    except hs.AccuracyError as refusal:
        met, limit = (float(x) for x in re.findall(r"0\.\d{10,}", str(refusal)))
    assert met <= truth <= limit


@pytest.mark.parametrize("name", NARROW)
def test_samples_of_steps_for_one_size_are_refused(name):
    """Their rate is that of a stated dataset size; on a sample it is larger. eps was 3 times too small."""
    step = NARROW[name]
    with pytest.raises(hs.DomainError, match="every size"):
        hs.poisson_subsampled(step, 0.1)
    assert hs.poisson_subsampled(step, 1.0) is step
    if name in ("open", "cyclic"):
        with pytest.raises(hs.DomainError, match="one known dataset_size"):
            hs.public_mixture([step], [1.0])
    else:
        mixture = hs.public_mixture([GAUSSIAN, hs.public_mixture([step], [1.0])], [0.5, 0.5])
        with pytest.raises(hs.DomainError, match="every size"):
            hs.poisson_subsampled(mixture, 0.1)


def test_fixed_sizes_inside_mixtures():
    """The statement about one dataset size is asked for wherever the step stands."""
    step = NARROW["truncated"]
    other = hs.truncated_poisson_subsampled(GAUSSIAN, 0.1, dataset_size=200, max_batch=22)
    alone = hs.public_mixture([step], [1.0]) * 10
    assert hs.epsilon(alone, 1e-5).upper >= hs.epsilon(step * 10, 1e-5).lower
    for run in (alone + GAUSSIAN, hs.public_mixture([step, other], [0.5, 0.5]) * 10, alone + other):
        with pytest.raises(hs.DomainError, match="assume_fixed_n"):
            hs.epsilon(run, 1e-5)
        assert hs.delta(run, 1.0, adjacency="zero_out").certified


def test_adapter_refuses_samples_of_steps_for_one_size():
    """By name, and `supports` says what `get_epsilon` does."""
    dp = pytest.importorskip("dp_accounting")
    from hockeystick.adapters.dp_accounting import HockeystickAccountant

    cut = dp.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 120, 1.0)
    fixed = dp.SampledWithoutReplacementDpEvent(1000, 10, dp.GaussianDpEvent(1.0))
    refused = [dp.PoissonSampledDpEvent(0.1, event) for event in (cut, fixed)]
    refused += [dp.ComposedDpEvent([cut, dp.GaussianDpEvent(1.0)]), dp.ComposedDpEvent([cut, dp.ZCDpEvent(0.1, 0.0)])]
    refused += [dp.ComposedDpEvent([cut, fixed, dp.TruncatedSubsampledGaussianDpEvent(999, 0.1, 120, 1.0)])]
    for event in refused:
        assert not HockeystickAccountant().supports(event)
    accountant = HockeystickAccountant().compose(cut)
    assert not accountant.supports(dp.GaussianDpEvent(1.0))
    assert not HockeystickAccountant().compose(dp.GaussianDpEvent(1.0)).supports(cut)
    assert accountant.compose(cut, 3).get_epsilon(1e-5) > 0
    relation = dp.NeighboringRelation.REPLACE_SPECIAL
    assert HockeystickAccountant(relation).compose(refused[2]).get_epsilon(1e-5) > 0


NEAR_ONE = 1 - 1e-12
ENDS = [
    (hs.poisson_subsampled(hs.laplace(1 / 30), NEAR_ONE), 5e-10, "27.541588073565641"),
    (hs.poisson_subsampled(hs.randomized_response(30.0), NEAR_ONE) * 10, 1e-6, "275.41587974565591"),
    (hs.poisson_subsampled(hs.randomized_response(20.0), 1 - 1e-9) * 10, 1e-6, "196.04473901144404"),
]


@pytest.mark.parametrize("route", ["auto", "pld", "prv"])
@pytest.mark.parametrize(("run", "delta", "truth"), ENDS, ids=["laplace", "response", "response 1e-9"])
def test_ends_of_sampled_laws_at_rates_near_one(run, delta, truth, route):
    """1 - q + q e^loss cancelled to u/(1-q): walls and atoms were off by up to 1e-5, upper ends too small."""
    bound = hs.epsilon(run, delta, direction="add", route=route)
    assert bound.lower <= mpf(truth) * (1 + mpf(10) ** -16)
    assert bound.upper >= mpf(truth) * (1 - mpf(10) ** -16)
    assert bound.width <= (1e-14 if route == "auto" else 1e-3) * bound.estimate


def test_end_of_sampled_responses_is_not_cut():
    """delta was 0, "exact", below the last loss."""
    run = hs.poisson_subsampled(hs.randomized_response(14.604096328459049), NEAR_ONE) * 12
    bound = hs.log_delta(run, 175.24912953874346, direction="add", rtol=None)
    assert bound.lower <= -32.07 <= bound.upper < -20


def pmf_delta(num, den, k, eps):
    """Exact delta of k independent outcomes of two laws, scaled to sum to 1, at e^eps = 1."""
    assert eps == 0 and len(num) == 2
    p, d = (Fraction(x[0]) / (Fraction(x[0]) + Fraction(x[1])) for x in (num, den))
    total = Fraction(0)
    for j in range(k + 1):
        a, b = p**j * (1 - p) ** (k - j), d**j * (1 - d) ** (k - j)
        total += math.comb(k, j) * max(a - b, 0)
    return mpf(total.numerator) / mpf(total.denominator)


CLOSE = [
    ([0.500000001, 0.499999999], [0.5, 0.5], 1),
    ([0.500001, 0.499999], [0.5, 0.5], 100),
    ([3.34e-19, 1.0], [1.7e-24, 1.0], 1),
    ([0.5, 0.5], [0.5, 0.5 + 2.0**-53], 3),
    ([1e-9, 1 - 1e-9], [1e-9 * (1 + 2.0**-40), 1 - 1e-9], 20),
]


@pytest.mark.parametrize(("num", "den", "k"), CLOSE, ids=range(len(CLOSE)))
def test_near_ties_of_a_pmf(num, den, k):
    """Scaling by a rounded sum moved every loss by 1e-16, which is much of a loss of 1e-9."""
    truth = pmf_delta(num, den, k, 0)
    for direction in ("remove", "add"):
        bound = hs.delta(hs.from_pmf(num, den) * k, 0.0, direction=direction)
        assert bound.lower <= truth <= bound.upper


def test_many_near_ties_of_a_pmf():
    bound = hs.delta(hs.from_pmf([0.500000001, 0.499999999], [0.5, 0.5]) * 10**6, 0.0, direction="remove")
    assert bound.lower <= 7.9788436170913147e-07 <= bound.upper
    assert bound.width <= 1e-9 * bound.estimate


def test_renyi_divergence_of_a_near_pair():
    step = hs.from_pmf([0.08530006479902341, 0.9146999352009765], [0.08530006131506478, 0.9146999386849352])
    bound = hs.rdp(step, 300.0, direction="remove")
    assert bound.lower <= 2.33352e-14 * 1.00001
    assert bound.upper >= 2.33352e-14 / 1.00001


UNIFORM = [
    (20.0, 10**9, 2, "0.79105101618854261"),
    (12.0, 10**4, 2, "5.6985636334907121"),
    (10.0, 10**6, 10, ".21786309077467233"),
]


@pytest.mark.parametrize(("eps0", "k", "count", "truth"), UNIFORM)
def test_answers_against_a_uniform_one(eps0, k, count, truth):
    """log k - log(1 + (k-1) e^-eps0) cancelled to u k."""
    run = hs.k_ary_randomized_response(eps0, k) * count
    bound = hs.epsilon(run, 1e-6, adjacency="zero_out", direction="add")
    assert bound.lower <= mpf(truth) <= bound.upper
    assert bound.width <= 1e-11


def test_end_of_answers_against_a_uniform_one():
    run = hs.k_ary_randomized_response(290.0, 10**9) * 2
    bound = hs.log_delta(run, 538.5534683261071, adjacency="zero_out", direction="add")
    assert bound.lower <= -30.52 <= bound.upper < -20


@pytest.mark.parametrize("delta", [1e-15, 1e-18, 1e-19, 1e-20, 1e-300])
def test_mass_at_minus_infinity_of_a_curve(delta):
    """1 + slope in long double has an absolute error of 1e-19."""
    bound = hs.delta(hs.from_curve([0.0], [delta], symmetric=False), 1.0, direction="add")
    assert bound.lower <= delta <= bound.upper <= 1.0001 * delta


@pytest.mark.parametrize("symmetric", [True, False])
def test_mass_at_minus_infinity_below_zero(symmetric):
    """Shared mass, at an eps below every loss: 1 - e^eps (1 - d)^5."""
    d, eps = 1.694371204314188e-08, -1e-12
    bound = hs.log_delta(hs.from_curve([0.0], [d], symmetric=symmetric) * 5, eps, direction="remove")
    with mp.workdps(40):
        truth = mp.log(1 - mp.exp(mpf(eps)) * (1 - mpf(d)) ** 5)
        assert bound.lower <= truth <= bound.upper


@pytest.mark.parametrize(
    ("sigma", "eps", "truth", "adjacency"),
    [
        (0.05, 500.0, -200.0, "add_remove"),
        (0.1, 290.0, -450.0, "add_remove"),
        (0.10497450497115342, 226.86752778336336, -408.3615496, "zero_out"),
    ],
)
def test_discrete_gaussian_far_out(sigma, eps, truth, adjacency):
    """Outcomes were cut where the other law has next to nothing: delta was 0, "exact"."""
    bound = hs.log_delta(hs.discrete_gaussian(sigma), eps, adjacency=adjacency, direction="remove")
    assert bound.lower <= truth + 1e-7
    assert truth - 1e-7 <= bound.upper < truth + 2


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("q", [1.0, 0.1])
def test_tie_beside_a_large_loss(direction, q):
    """Every loss had the edge of the largest: delta in [0, 6.5e-14] for 3.3e-19. At eps = 0 sampling multiplies it by
    q."""
    num, den = [3.34e-19, 1.0], [1.7e-24, 1.0]
    truth = pmf_delta(num, den, 1, 0) * mpf(q)
    step = hs.from_pmf(num, den)
    bound = hs.delta(hs.poisson_subsampled(step, q) if q < 1 else step, 0.0, direction=direction)
    assert bound.lower <= truth <= bound.upper
    assert bound.width <= 1e-12 * bound.estimate


def test_range_of_sizes_that_starts_where_all_are_taken():
    """A rate of 1 had a wall at log(1 - 1): ValueError. Up to 2 m all sizes together; the smallest alone is an m."""
    sigma, k = 1e4, 10
    step = hs.truncated_poisson_subsampled(
        hs.gaussian(sigma), 1.0, dataset_size=(50, 60), max_batch=50, assume_fixed_n=True
    )
    for direction in ("remove", "add"):
        bound = hs.log_delta(step * k, 1e-4, direction=direction, route="saddlepoint")
        least, most = (mp.log(gaussian_delta(m / sigma * math.sqrt(k), 1e-4)) for m in (1, 2))
        assert least <= bound.upper <= most + 0.5
        assert bound.lower <= most


@pytest.mark.parametrize("eps", [0.0, 0.1, 5.0])
def test_curve_that_promises_nothing(eps):
    """All mass at infinity: its logarithm of nothing was a ValueError, its den mass more than 1, and delta in [0,
    1]."""
    all_of_it = hs.from_curve([-63.04778261425075], [1.0], symmetric=False)
    for run in (all_of_it, all_of_it * 3, hs.compose((all_of_it, 2), (hs.gaussian(1.0), 3))):
        for direction in ("remove", "add"):
            bound = hs.delta(run, eps, direction=direction)
            assert 1 - 1e-14 <= bound.lower <= bound.upper == 1
    assert hs.advantage(all_of_it).lower >= 1 - 1e-14


@pytest.mark.parametrize("eps0, delta0", [(-5.0, 1 - 1e-9), (-30.0, 1 - 1e-14), (-1e-9, 0.25), (3.0, 1e-7)])
def test_den_mass_at_minus_infinity_of_one_point(eps0, delta0):
    """1 - (1 - delta)/e^eps: below eps = 0 the other form of it cancels."""
    step = hs.from_curve([eps0], [delta0], symmetric=False)
    truth = 1 - (1 - mpf(delta0)) * mp.exp(-mpf(eps0))
    bound = hs.delta(step, 600.0, direction="add")
    assert bound.lower <= truth <= bound.upper
    assert bound.width <= 1e-14 * bound.estimate


@pytest.mark.parametrize("route", ["auto", "pld", "prv"])
def test_samples_that_reveal_nothing(route):
    """The end of the losses was taken to be uncertain by 8u log(1-q), and the mesh for losses of 0 was a
    ZeroDivisionError."""
    for step in (hs.from_pmf([1.0], [1.0]), hs.from_pmf([0.3, 0.7], [0.3, 0.7])):
        assert hs.delta(hs.poisson_subsampled(step, 1 - 1e-9) * 2, 0.0, route=route).upper == 0


def test_outcomes_of_a_discrete_gaussian_are_limited():
    """A table of 8e12 outcomes was allocated."""
    with pytest.raises(hs.DomainError, match="outcomes"):
        hs.discrete_gaussian(1e11, sensitivity=10**6)
    assert hs.discrete_gaussian(1e5).sigma == 1e5


@pytest.mark.parametrize("q", [1.0, 0.3])
def test_laplace_noise_on_a_vector_is_dominated_by_that_on_a_scalar(q):
    """Two entries moved by a and b against one moved by a + b; without sampling the curves touch beyond a + b only."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        a, b = np.exp(rng.uniform(-3, 2, 2))
        both, one = hs.compose(hs.laplace(1 / a), hs.laplace(1 / b)), hs.laplace(1 / (a + b))
        if q < 1:  # one sample of a vector: eps is moved as in [ZDW22, Thm 11]
            one = hs.poisson_subsampled(one, q)
        eps = float(rng.uniform(-1, 1) * (a + b))
        e0 = eps if q == 1 else math.log1p(math.expm1(eps) / q) if math.exp(eps) > 1 - q else -math.inf
        if e0 > -math.inf:
            assert q * hs.delta(both, e0).lower <= hs.delta(one, eps, direction="remove").upper + 1e-15


@pytest.mark.parametrize("eps", [1.4359, 22.7])
def test_much_noise_within_a_mixture_is_not_nothing(eps):
    """Masses that underflow were taken for none: log delta was -inf, "exact", for about -1e17."""
    parts = [hs.laplace(26.2), hs.poisson_subsampled(hs.gaussian(3.4e7), 0.002), hs.gaussian(2e7)]
    found = single.point(step_loss(hs.public_mixture(parts, [0.25, 0.25, 0.5]), "add_remove", False), eps)
    assert found is None or found[2] > -1e17


@pytest.mark.parametrize(
    "run, delta, low, high",
    [
        (hs.randomized_response(7.834913652240326) * 686573004694, 1e-5, 5374986114787.33, 5374986114787.38),
        (hs.discrete_gaussian(0.16067221104083346) * 30000, 1e-5, 581083.58015776798, 581083.58015776868),
        (
            hs.poisson_subsampled(hs.gaussian(40.0), 0.3174741252753468) * 2
            + hs.approx_dp(300.0, 0.0) * 2
            + hs.approx_dp(0.01707313411027383, 0.0) * 150,
            1.053870428647044e-47,
            602.5624753692157,
            602.5624754514448,
        ),
    ],
    ids=("coarse lattice", "flat beside an atom", "a lattice that returns to 1"),
)
def test_roots_between_atoms_that_lie_far_apart(run, delta, low, high):
    """Where Newton's step is cut, the tangent crawls, or a grid does not fall beyond the frequencies that it was made
    for."""
    bound = hs.epsilon(run, delta)
    assert bound.lower <= high and low <= bound.upper
    assert bound.upper - bound.lower <= 2 * (high - low) + 1e-15 * high


def test_corners_of_small_losses():
    """A run of selections: far below 0 delta is 1 - e^eps and next to nothing more."""
    run = hs.select(hs.top_k(4.308996365158488e-05, 3), mean=1.0) * 14960
    far = hs.delta(run, -0.24788274166262655, adjacency="zero_out", direction="remove")
    near = hs.delta(run, 0.24788274166262655, adjacency="zero_out", direction="add")
    assert far.lower + math.expm1(-0.24788274166262655) <= near.upper + 1e-15  # [theory: pair.reversal]


@pytest.mark.parametrize("weight", [1.2349734988236558e-254, 2.852816670244288e-222])
def test_shifts_that_next_to_never_happen(weight):
    """Refused, or enclosed; no other error."""
    run = hs.gaussian_mixture(25467.444670603487, [0.0, 2.0], [1.0, weight]) * 2
    for ask in (lambda: hs.epsilon(run, 4.8e-284), lambda: hs.log_delta(run, 0.03)):
        try:
            bound = ask()
        except hs.AccuracyError:
            continue
        assert bound.lower <= bound.upper


@pytest.mark.filterwarnings("error")
def test_moments_of_a_far_shift():
    run = hs.gaussian_mixture(0.03928832457995849, [2.0], [1.0]) * 2
    assert 0 < hs.moments_delta_upper(run, 926.4521340875972, direction="add") <= 1


def test_losses_that_are_all_infinite():
    run = hs.select(hs.approx_dp(40.651918371798864, 8.307502520728871e-53), mean=46076.87699999999, trials=46123)
    with pytest.raises(hs.AccuracyError):
        hs.saddlepoint_delta(run, 495.5014961685254)
