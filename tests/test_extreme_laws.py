"""Laws at the ends of their domains: gaps of hundreds of nats, rates near 1, near ties, masses that cancel.

Truths in rationals, 60-digit numbers, or closed form."""

import math
import re

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


def test_gaps_of_hundreds_of_nats_truncated():
    """The same for a two-sided pair: no interval turned round, and nothing above the distance of the laws."""
    step = hs.truncated_poisson_subsampled(hs.gaussian(0.01), 1e-3, dataset_size=1000, max_batch=5)
    bound = hs.delta(step * 2, 3.0)
    assert 0.9 * bound.upper <= bound.lower <= bound.upper <= 0.002


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


def test_end_of_sampled_responses_is_not_cut():
    """delta was 0, "exact", below the last loss."""
    run = hs.poisson_subsampled(hs.randomized_response(14.604096328459049), NEAR_ONE) * 12
    bound = hs.log_delta(run, 175.24912953874346, direction="add", rtol=None)
    assert bound.lower <= -32.07 <= bound.upper < -20


def test_renyi_divergence_of_a_near_pair():
    step = hs.from_pmf([0.08530006479902341, 0.9146999352009765], [0.08530006131506478, 0.9146999386849352])
    bound = hs.rdp(step, 300.0, direction="remove")
    assert bound.lower <= 2.33352e-14 * 1.00001
    assert bound.upper >= 2.33352e-14 / 1.00001


def test_end_of_answers_against_a_uniform_one():
    run = hs.k_ary_randomized_response(290.0, 10**9) * 2
    bound = hs.log_delta(run, 538.5534683261071, adjacency="zero_out", direction="add")
    assert bound.lower <= -30.52 <= bound.upper < -20


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


def test_corners_of_small_losses():
    """A run of selections: far below 0 delta is 1 - e^eps and next to nothing more."""
    run = hs.select(hs.top_k(4.308996365158488e-05, 3), mean=1.0) * 14960
    far = hs.delta(run, -0.24788274166262655, adjacency="zero_out", direction="remove")
    near = hs.delta(run, 0.24788274166262655, adjacency="zero_out", direction="add")
    assert far.lower + math.expm1(-0.24788274166262655) <= near.upper + 1e-15  # [theory: pair.reversal]
