"""The dp_accounting adapter, against the real package: contract, every event, truths, calibration."""

import math

import numpy as np
import pytest

import hockeystick as hs

dpa = pytest.importorskip("dp_accounting")

from dp_accounting import dp_event  # noqa: E402

from hockeystick.adapters import events  # noqa: E402
from hockeystick.adapters.dp_accounting import ADJACENCY, HockeystickAccountant  # noqa: E402

Relation = dpa.NeighboringRelation
Gaussian, Poisson = dpa.GaussianDpEvent, dpa.PoissonSampledDpEvent
Self, Composed = dpa.SelfComposedDpEvent, dpa.ComposedDpEvent
DPSGD = Self(Poisson(0.01, Gaussian(1.0)), 1000)
DPSGD_EPS = 1.828236666516577
"""eps(1e-5) of DPSGD, tests/reference."""


def account(event, relation=Relation.ADD_OR_REMOVE_ONE, count=1):
    return HockeystickAccountant(relation).compose(event, count)


def needs(*names):
    missing = [name for name in names if not hasattr(hs, name)]
    return pytest.mark.skipif(bool(missing), reason=f"this release has no {', '.join(missing)}")


def meets(event, relation, delta, peer, slack):
    """Our interval holds our own upper end, and the peer's pessimistic answer is not below our lower end."""
    bound = account(event, relation).epsilon_bound(delta)
    theirs = peer(relation).compose(event).get_epsilon(delta)
    assert 0 <= bound.lower <= bound.upper < math.inf
    assert bound.lower <= theirs * (1 + 1e-9)
    assert bound.upper <= theirs * (1 + slack) + slack
    return bound, theirs


def test_is_an_accountant():
    accountant = HockeystickAccountant()
    assert isinstance(accountant, dpa.PrivacyAccountant)
    assert accountant.neighboring_relation is Relation.ADD_OR_REMOVE_ONE
    assert isinstance(accountant.ledger, dp_event.NoOpDpEvent)
    assert accountant.get_epsilon(1e-5) == 0 and accountant.get_delta(0.0) == 0
    assert accountant.compose(DPSGD) is accountant
    assert accountant.ledger == DPSGD


def test_truth():
    accountant = account(DPSGD)
    bound = accountant.epsilon_bound(1e-5)
    assert bound.lower <= DPSGD_EPS <= bound.upper == accountant.get_epsilon(1e-5) < DPSGD_EPS + 1e-9
    back = accountant.delta_bound(DPSGD_EPS)
    assert back.lower <= 1e-5 * (1 + 1e-12) and 1e-5 * (1 - 1e-12) <= back.upper == accountant.get_delta(DPSGD_EPS)


@pytest.mark.parametrize(
    "event",
    [
        Composed([DPSGD]),
        Composed([Self(Poisson(0.01, Gaussian(1.0)), 600), Self(Self(Poisson(0.01, Gaussian(1.0)), 20), 20)]),
        Self(Composed([Poisson(0.01, Composed([Gaussian(1.0)])), dpa.NoOpDpEvent()]), 1000),
        Self(Poisson(0.01, Composed([Self(Gaussian(1.0), 1), dpa.NoOpDpEvent()])), 1000),
        Self(Poisson(0.1, Poisson(0.1, Gaussian(1.0))), 1000),
        Self(Poisson(1.0, Poisson(0.01, Gaussian(1.0))), 1000),
        Self(Poisson(0.01, Self(Gaussian(2.0), 4)), 1000),
        Self(Poisson(0.01, Composed([Gaussian(math.sqrt(2.0)), Gaussian(math.sqrt(2.0))])), 1000),
        Self(dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.99, 0.01]), 1000),
        Self(dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, -2.0, 0.0, 3.0], [0.5, 0.01, 0.49, 0.0]), 1000),
    ],
)
def test_nests_that_equal_dpsgd(event):
    bound = account(event).epsilon_bound(1e-5)
    assert bound.lower <= DPSGD_EPS <= bound.upper
    assert bound.upper - bound.lower < 1e-9


def test_compose_counts():
    accountant = HockeystickAccountant()
    for _ in range(10):
        accountant.compose(Poisson(0.01, Gaussian(1.0)), 100)
    assert accountant.get_epsilon(1e-5) == account(DPSGD).get_epsilon(1e-5)
    with pytest.raises(TypeError):
        accountant.compose(DPSGD, 1.5)
    with pytest.raises(ValueError, match="count"):
        accountant.compose(DPSGD, 0)


@pytest.mark.parametrize(
    "event",
    [
        dpa.NoOpDpEvent(),
        Composed([]),
        Poisson(0.0, Gaussian(1.0)),
        Poisson(0.0, dpa.NonPrivateDpEvent()),
        Poisson(0.5, dpa.NoOpDpEvent()),
        Poisson(0.5, Composed([])),
        dp_event.MixtureOfGaussiansDpEvent(0.0, [0.0], [1.0]),
        dpa.ZCDpEvent(0.0, 0.0),
        dpa.SampledWithoutReplacementDpEvent(10, 0, Gaussian(1.0)),
        dpa.TruncatedSubsampledGaussianDpEvent(10, 0.0, 5, 1.0),
        dpa.TruncatedSubsampledGaussianDpEvent(10, 0.1, 0, 0.0),
    ],
)
@pytest.mark.parametrize("delta", [0, 1e-300, 0.5])
def test_costs_nothing(event, delta):
    assert account(event).get_epsilon(delta) == 0
    assert account(event).get_delta(0.0) == 0


@pytest.mark.parametrize(
    "event",
    [
        dpa.NonPrivateDpEvent(),
        Gaussian(0.0),
        Poisson(0.1, Gaussian(0.0)),
        Poisson(0.1, dpa.NonPrivateDpEvent()),
        Composed([DPSGD, Self(dpa.NonPrivateDpEvent(), 3)]),
        dp_event.MixtureOfGaussiansDpEvent(0.0, [1.0], [1.0]),
        dpa.LaplaceDpEvent(0.0),
        dpa.TruncatedSubsampledGaussianDpEvent(10, 0.1, 5, 0.0),
        dpa.SampledWithoutReplacementDpEvent(10, 5, Gaussian(0.0)),
    ],
)
def test_non_private(event):
    accountant = account(event)
    assert accountant.get_epsilon(1e-5) == math.inf and accountant.get_epsilon(0) == math.inf
    assert accountant.get_delta(10.0) == 1 and accountant.get_delta(math.inf) == 1
    assert accountant.get_epsilon(1) == math.inf  # the contract of the peer's accountants


@pytest.mark.parametrize(
    "event",
    [
        Poisson(0.1, Gaussian(0.0)),
        Poisson(0.1, dpa.NonPrivateDpEvent()),
        dp_event.MixtureOfGaussiansDpEvent(0.0, [0.0, 1.0], [0.9, 0.1]),
        dpa.TruncatedSubsampledGaussianDpEvent(10, 0.1, 5, 0.0),
    ],
)
def test_a_sample_without_noise_may_still_be_private(event):
    """The record is seen with probability 0.1 at most: delta is, so eps(0.5) = 0, and the lower ends know it."""
    accountant = account(event)
    assert accountant.epsilon_bound(0.5).lower == 0 and accountant.delta_bound(3.0).lower <= 0.1
    bare = account(Composed([event, Gaussian(0.0)]))
    assert bare.epsilon_bound(0.5).lower == math.inf and bare.delta_bound(3.0).lower == 1


REFUSED = [
    (dpa.UnsupportedDpEvent(), "no translation"),
    (dpa.SampledWithReplacementDpEvent(100, 10, dpa.LaplaceDpEvent(1.0)), "takes Gaussian"),
    (dpa.RandomizedResponseDpEvent(0.5, 2), "REPLACE_ONE"),
    (dpa.SingleEpochTreeAggregationDpEvent(1.0, 7), "REPLACE_SPECIAL"),
    (Poisson(0.1, Composed([Gaussian(1.0), dpa.NonPrivateDpEvent()])), None),
    (Poisson(0.1, dpa.ZCDpEvent(1.0)), "takes one step"),
    (Poisson(0.1, Self(DPSGD, 2)), "takes one step"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, -1.0], [0.5, 0.25, 0.25]), "both signs"),
    (dp_event.RepeatAndSelectDpEvent(dpa.ZCDpEvent(1.0), 10.0, 1.0), "ZCDpEvent"),
    (dp_event.RepeatAndSelectDpEvent(Gaussian(1.0), 0.5, 1.0), "0.5"),
    (dpa.SampledWithoutReplacementDpEvent(10, 5, dpa.ZCDpEvent(1.0)), "Gaussian"),
    (Gaussian(-1.0), "-1.0"),
    (Gaussian(math.nan), "nan"),
    (Gaussian(math.inf), "inf"),
    (Gaussian("1"), "'1'"),
    (Gaussian(None), "None"),
    (Gaussian(1e-9), "sigma"),
    (Poisson(1.5, Gaussian(1.0)), "1.5"),
    (Poisson(-0.1, Gaussian(1.0)), "-0.1"),
    (Poisson(math.nan, Gaussian(1.0)), "nan"),
    (Self(Gaussian(1.0), 0), "count"),
    (Self(Gaussian(1.0), 10**13), "count"),
    (Self(Self(Gaussian(1.0), 10**7), 10**7), "steps"),
    (dpa.ZCDpEvent(-1.0), "-1.0"),
    (dpa.ZCDpEvent(math.nan), "nan"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.6]), "add up"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0], [0.5, 0.5]), "one per"),
    (dpa.SampledWithoutReplacementDpEvent(5, 10, Gaussian(1.0)), "sample_size"),
    (dpa.TruncatedSubsampledGaussianDpEvent(-1, 0.1, 5, 1.0), "dataset_size"),
]


@pytest.mark.parametrize("event, word", REFUSED)
def test_refused(event, word):
    accountant = HockeystickAccountant().compose(Gaussian(3.0))
    before = accountant.get_epsilon(1e-5)
    for nested in (event, Composed([Gaussian(2.0), event])):
        if word is None:
            assert accountant.supports(nested) is True
            continue
        assert accountant.supports(nested) is False
        with pytest.raises(dpa.UnsupportedEventError, match=word):
            accountant.compose(nested)
        assert accountant.get_epsilon(1e-5) == before
        assert accountant.ledger == Gaussian(3.0)


def test_every_event_type_is_known():
    """Every event class of the installed package has a row, or is refused on purpose."""
    classes = {name for name, value in vars(dp_event).items() if isinstance(value, type) and name.endswith("DpEvent")}
    refused = {"DpEvent", "UnsupportedDpEvent"}
    assert classes - refused <= set(events.SUPPORTED)


@pytest.mark.parametrize("bad", [-1e-9, 1.1, math.nan, "0.1", None, True, math.inf])
def test_bad_delta(bad):
    with pytest.raises(hs.DomainError, match="target_delta"):
        account(DPSGD).get_epsilon(bad)


@pytest.mark.parametrize("bad", [math.nan, -math.inf, "1", None, True])
def test_bad_epsilon(bad):
    with pytest.raises(hs.DomainError, match="target_epsilon"):
        account(DPSGD).get_delta(bad)


def test_bad_construction():
    with pytest.raises(hs.DomainError, match="neighboring_relation"):
        HockeystickAccountant("add_remove")
    with pytest.raises(hs.DomainError, match="n_threads"):
        HockeystickAccountant(n_threads=-1)


def test_extreme_arguments():
    accountant = account(DPSGD)
    assert 0 < accountant.get_delta(-3.0) <= 1
    assert 0 <= accountant.get_delta(math.inf) < 1e-250
    assert accountant.get_epsilon(0) == math.inf
    eps = accountant.get_epsilon(1e-300)
    assert eps < 100 and hs.log_delta(accountant.run, eps).upper <= math.log(1e-300) + 1e-9


@pytest.mark.parametrize("rho, xi", [(0.1, 0.0), (0.01, 0.02), (2.0, 0.0)])
def test_zcdp(rho, xi):
    """Never below the RDP conversion minimised over a fine grid of orders, and within a percent of it; holds the
    Gaussian."""
    bound = account(dpa.ZCDpEvent(rho, xi)).epsilon_bound(1e-5)
    alphas = [1 + 10 ** (i / 500) for i in range(-500, 2000)]
    conversion = min(
        a * rho + xi + (-math.log(1e-5) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1) for a in alphas
    )
    assert conversion * (1 - 1e-4) <= bound.upper <= conversion * 1.01
    exact = hs.epsilon(hs.gaussian(1 / math.sqrt(2 * rho)), 1e-5)
    assert exact.upper <= bound.upper and bound.lower == 0
    delta = account(dpa.ZCDpEvent(rho, xi)).delta_bound(bound.upper)
    assert 1e-5 * 0.95 <= delta.upper <= 1e-5 * (1 + 1e-9) * 1.05


def test_zcdp_composes():
    both = account(Composed([dpa.ZCDpEvent(0.05), DPSGD, dpa.ZCDpEvent(0.05)])).epsilon_bound(1e-5)
    peer = dpa.rdp.RdpAccountant().compose(Composed([dpa.ZCDpEvent(0.1), DPSGD])).get_epsilon(1e-5)
    assert both.lower <= DPSGD_EPS < both.upper
    assert peer * 0.99 <= both.upper <= peer * 1.01


def test_against_pld_accountant():
    peer = dpa.pld.PLDAccountant
    for event in (DPSGD, Composed([Gaussian(5.0), Self(Gaussian(7.0), 3)]), Poisson(0.3, Gaussian(0.8))):
        for delta in (1e-3, 1e-8):
            meets(event, Relation.ADD_OR_REMOVE_ONE, delta, peer, 1e-4)


def test_calibration():
    sigma = dpa.calibrate_dp_mechanism(
        HockeystickAccountant, lambda s: Self(Poisson(0.01, Gaussian(s)), 1000), target_epsilon=1.0, target_delta=1e-5
    )
    assert sigma == pytest.approx(1.41462, abs=2e-5)
    assert account(Self(Poisson(0.01, Gaussian(sigma)), 1000)).get_epsilon(1e-5) <= 1.0
    steps = dpa.calibrate_dp_mechanism(
        HockeystickAccountant,
        lambda n: Self(Poisson(0.01, Gaussian(1.0)), n),
        1.0,
        1e-5,
        dpa.LowerEndpointAndGuess(1, 100),
        discrete=True,
    )
    assert steps == 254 and type(steps) is int


def test_accountant_fn():
    """jax-privacy's hook: a callable that takes the relation as its one argument."""
    for relation in ADJACENCY:
        assert HockeystickAccountant(relation).neighboring_relation is relation


TRUNCATED = dpa.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 20, 1.0)
SMALLER = dpa.TruncatedSubsampledGaussianDpEvent(900, 0.01, 20, 1.0)


@pytest.mark.parametrize("other", [Gaussian(1.0), SMALLER, Composed([Gaussian(1.0), Self(DPSGD, 3)])])
def test_what_cannot_be_composed_is_not_supported(other):
    """A truncated sample has an add/remove pair for one data set size: alone, or with its like."""
    assert not HockeystickAccountant().supports(Composed([TRUNCATED, other]))
    accountant = HockeystickAccountant().compose(TRUNCATED, 5)
    alone = accountant.get_epsilon(1e-5)
    assert not accountant.supports(other) and accountant.supports(Self(TRUNCATED, 2))
    with pytest.raises(dpa.UnsupportedEventError, match="its own fixed dataset_size"):
        accountant.compose(other)
    assert accountant.get_epsilon(1e-5) == alone
    replaced = HockeystickAccountant(dpa.NeighboringRelation.REPLACE_ONE)
    assert replaced.supports(Composed([TRUNCATED, other])) == replaced.supports(other)


class EpsilonDeltaDpEvent(dp_event.DpEvent):
    """As in newer releases than the one installed may be."""

    def __init__(self, epsilon, delta):
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


def test_true_positive_rates():
    accountant = account(DPSGD, count=1000)
    run = accountant.run
    rates = accountant.get_true_positive_rates([1e-3, 0.1])
    assert rates.tolist() == hs.true_positive_rate(run, [1e-3, 0.1]).upper.tolist()
    assert accountant.get_true_positive_rates(0.1) == rates[1] and accountant.get_true_positive_rates(1.0) == 1
    assert account(EpsilonDeltaDpEvent(1.0, 0.01)).get_true_positive_rates(0.0) == pytest.approx(0.01, rel=1e-9)
    assert account(dpa.NoOpDpEvent()).get_true_positive_rates(0.25) == 0.25
    assert account(dpa.NonPrivateDpEvent()).get_true_positive_rates([0.0, 0.5]).tolist() == [1, 1]
    for bad in (-0.1, 1.1, [0.5, math.nan], np.longdouble(1) / 3):
        with pytest.raises(hs.DomainError):
            accountant.get_true_positive_rates(bad)
    with pytest.raises(hs.DomainError, match="zCDP"):
        account(dpa.ZCDpEvent(0.1)).get_true_positive_rates(0.1)


def test_gdp_parameter_estimate():
    mu = account(Gaussian(2.0)).get_gdp_parameter_estimate()
    assert 0.5 <= mu <= 0.5 * (1 + 1e-6)
    assert account(dpa.NonPrivateDpEvent()).get_gdp_parameter_estimate() == math.inf
    assert account(EpsilonDeltaDpEvent(1.0, 0.01)).get_gdp_parameter_estimate() == math.inf
    assert account(EpsilonDeltaDpEvent(1.0, 0.01)).get_gdp_parameter_estimate([0.1, 0.3]) < 3
    assert account(dpa.NoOpDpEvent()).get_gdp_parameter_estimate() == 0
    with pytest.raises(hs.DomainError):
        account(DPSGD).get_gdp_parameter_estimate([0.0])


def test_mixtures_are_narrow():
    """Without a tolerance a grid leaves eps 6e-4 wide, wider than the peer's default."""
    bound = account(dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.8, 0.15, 0.05]), count=1).epsilon_bound(
        1e-6
    )
    assert bound.upper - bound.lower <= 1e-7 * bound.upper


def test_pure_eps_add_up_exactly():
    accountant = account(EpsilonDeltaDpEvent(1.0, 0.0), count=3)
    assert accountant.get_epsilon(0) == 3 and accountant.get_delta(3.0) == 0
    assert account(Composed([EpsilonDeltaDpEvent(0.1, 0.0)] * 3)).get_epsilon(0) >= 0.30000000000000004


def test_what_is_stated_about_sizes_composes():
    event = Composed([TRUNCATED, Gaussian(10.0)])
    assert not HockeystickAccountant().supports(event)
    stated = HockeystickAccountant(assume_fixed_n=True)
    assert stated.supports(event) and stated.compose(event).get_epsilon(1e-5) > account(TRUNCATED).get_epsilon(1e-5)
    with pytest.raises(hs.DomainError):
        HockeystickAccountant(assume_fixed_n=1)


@pytest.mark.parametrize("relation", list(Relation))
def test_what_is_supported_is_answered(relation):
    """Events of two kinds together: where `supports` says yes, no query refuses them."""
    several = [
        Gaussian(2.0), DPSGD, dpa.LaplaceDpEvent(2.0), EpsilonDeltaDpEvent(0.1, 1e-7), dpa.ZCDpEvent(0.01), TRUNCATED,
        SMALLER, dpa.RandomizedResponseDpEvent(0.5, 4), Poisson(0.1, dpa.LaplaceDpEvent(1.0)),
        Self(dpa.LaplaceDpEvent(3.0), 2),
        dpa.SampledWithoutReplacementDpEvent(1000, 10, Gaussian(2.0)), dpa.SingleEpochTreeAggregationDpEvent(2.0, 7),
    ]  # fmt: skip
    answered = 0
    for one, other in zip(several, several[1:] + several[:1], strict=True):
        event = Composed([one, other])
        accountant = HockeystickAccountant(relation)
        if accountant.supports(event):
            answered += 1
            accountant.compose(event)
            assert 0 <= accountant.get_delta(0.1) <= 1
        else:
            with pytest.raises(dpa.UnsupportedEventError):
                accountant.compose(event)
    assert answered > 2


def test_many_steps_of_a_mixture_are_answered_below_the_value_of_the_peer():
    """DP-SGD whose users have two records each, 10,000 steps: jax-privacy's test has 5.00008 for it."""
    q = 1024 / 50_000
    event = dp_event.MixtureOfGaussiansDpEvent(4.0, [0, 1, 2], [(1 - q) ** 2, 2 * q * (1 - q), q**2])
    bound = account(event, count=10_000).epsilon_bound(1e-5)
    assert bound.certified and bound.upper - bound.lower <= 1e-5 * bound.estimate and bound.upper < 4.6046
