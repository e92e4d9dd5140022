"""Laws at the ends of their domains: gaps of hundreds of nats, rates near 1, near ties, masses that cancel.

Truths in rationals, 60-digit numbers, or closed form."""

import re

import dp_accounting as dp
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.adapters.dp_accounting import HockeystickAccountant

GAUSSIAN = hs.gaussian(1.0)
NARROW = {"without": hs.without_replacement(GAUSSIAN, dataset_size=1000, batch=10)}
NARROW["truncated"] = hs.truncated_poisson_subsampled(GAUSSIAN, 0.1, dataset_size=100, max_batch=22)
NARROW["open"] = hs.truncated_poisson_subsampled(GAUSSIAN, 0.1, dataset_size=(50, 200), max_batch=22)
NARROW["cyclic"] = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, iterations=40, bands=2, dataset_size=199)


def gaussian_delta(mu, eps):
    """delta of N(mu, 1) against N(0, 1)."""
    mu, eps = mpf(mu), mpf(eps)
    return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


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
    """1 - (1 - q)^2 = 0.1: answered, or refused for the width of the bounds, and then the message encloses the truth."""
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
