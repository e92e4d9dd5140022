"""Every event of dp_accounting: our interval beside its accountants, the truth where it is known, all three
relations."""

import math
from types import SimpleNamespace

import mpmath as mp
import pytest

import hockeystick as hs

attr = pytest.importorskip("attr")
dpa = pytest.importorskip("dp_accounting")

from dp_accounting import dp_event as events  # noqa: E402

from hockeystick.adapters.dp_accounting import ADJACENCY, HockeystickAccountant  # noqa: E402
from hockeystick.adapters.events import NonPrivate, RefusedError, down, translate  # noqa: E402

ADD, ONE, ZERO = ADJACENCY
Self, Composed, Poisson, Gaussian = (
    dpa.SelfComposedDpEvent,
    dpa.ComposedDpEvent,
    dpa.PoissonSampledDpEvent,
    dpa.GaussianDpEvent,
)
Laplace, Response = dpa.LaplaceDpEvent, dpa.RandomizedResponseDpEvent
DELTA = 1e-5


def ours(event, relation=ADD):
    accountant = HockeystickAccountant(relation)
    if not accountant.supports(event):
        why = accountant._maybe_compose(event, 0, False).error_message
        if "not defined" in why or "does not have" in why:
            pytest.skip(why)  # an adjacency or a constructor of a later release
        raise AssertionError(why)
    return accountant.compose(event)


def response_epsilon(p, buckets, count, delta):
    """eps of `count` k-ary responses under replace-one: losses -e0, 0, e0, convolved in 50 digits."""
    with mp.workdps(50):
        b = mp.mpf(p) / buckets
        a, e0 = 1 - mp.mpf(p) + b, mp.log((1 - mp.mpf(p) + b) / b)
        law = {0: mp.mpf(1)}
        for _ in range(count):
            new = {}
            for j, mass in law.items():
                for step, q in ((1, a), (0, 1 - a - b), (-1, b)):
                    new[j + step] = new.get(j + step, 0) + mass * q
            law = new

        def curve(eps):
            return sum(mass * (1 - mp.e ** (eps - j * e0)) for j, mass in law.items() if j * e0 > eps)

        lo, hi = mp.mpf(0), count * e0
        for _ in range(120):
            mid = (lo + hi) / 2
            lo, hi = (mid, hi) if curve(mid) > delta else (lo, mid)
        return lo


@pytest.mark.parametrize("p, buckets, count", [(0.5, 2, 1), (0.5, 2, 10), (0.5, 4, 30), (0.9, 3, 50)])
def test_randomised_response_counts(p, buckets, count):
    """PLDAccountant of dp_accounting 0.6 drops the count: 1.0987 for 1, 10 and 100 of the first."""
    true = response_epsilon(p, buckets, count, DELTA)
    for event in (Self(Response(p, buckets), count), Composed([Response(p, buckets)] * count)):
        bound = ours(event, ONE).epsilon_bound(DELTA)
        assert bound.lower <= true <= bound.upper <= true * 1.001
    total = HockeystickAccountant(ONE).compose(Response(p, buckets), count).get_epsilon(DELTA)
    assert total == bound.upper
    if count > 1:
        assert dpa.rdp.RdpAccountant(neighboring_relation=ONE).compose(event).get_epsilon(DELTA) >= bound.lower


def test_randomised_response_to_the_special_record():
    bound = ours(Self(Response(0.5, 4), 40), ZERO).epsilon_bound(DELTA)
    peer = dpa.rdp.RdpAccountant(neighboring_relation=ZERO).compose(Self(Response(0.5, 4), 40)).get_epsilon(DELTA)
    one = dpa.pld.PLDAccountant(ZERO).compose(Response(0.5, 4)).get_epsilon(DELTA)
    single = ours(Response(0.5, 4), ZERO).epsilon_bound(DELTA)
    assert single.lower <= one <= single.upper * (1 + 1e-4) and bound.lower <= bound.upper <= peer


@pytest.mark.parametrize("p, buckets", [(1.0, 3), (0.3, 1), (0.0, 1)])
def test_responses_that_say_nothing(p, buckets):
    assert ours(Response(p, buckets), ONE).get_epsilon(0) == 0


def test_a_response_without_noise():
    assert ours(Response(0.0, 2), ONE).get_epsilon(0.5) == math.inf


BESIDE_PLD = [
    (Laplace(1.0), 1e-4),
    (Self(Laplace(3.0), 10), 1e-4),
    (Self(Poisson(0.1, Laplace(1.0)), 20), 2e-3),
    (events.DiscreteLaplaceDpEvent(0.5, 2), 1e-4),
    (Self(events.DiscreteLaplaceDpEvent(0.5, 1), 10), 1e-4),
    (Composed([Gaussian(3.0), Laplace(2.0)]), 1e-3),
    pytest.param(
        events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.8, 0.15, 0.05]), 1e-3, marks=pytest.mark.slow
    ),  # the peer takes 25 s
]


@pytest.mark.parametrize("event, slack", BESIDE_PLD)
def test_beside_pld(event, slack):
    bound = ours(event).epsilon_bound(DELTA)
    theirs = dpa.pld.PLDAccountant().compose(event).get_epsilon(DELTA)
    assert 0 < bound.lower <= bound.estimate <= bound.upper <= theirs * (1 + slack)
    assert bound.lower <= theirs * (1 + 1e-9)
    back = ours(event).delta_bound(bound.estimate)
    assert back.lower <= DELTA * 1.01 and DELTA * 0.99 <= back.upper


def test_laplace_exactly():
    bound = ours(Laplace(1.0)).epsilon_bound(DELTA)
    with mp.workdps(30):
        true = 1 + 2 * mp.log1p(-mp.mpf(DELTA))  # delta = 1 - e^{(eps - m)/2}
    assert bound.lower <= true <= bound.upper and bound.width < 1e-6
    assert 1.0 <= ours(Laplace(1.0)).get_epsilon(0) <= 1 + 1e-12
    assert ours(Self(Laplace(2.0), 6)).get_delta(3.0 + 1e-9) == 0


@pytest.mark.parametrize("relation", [ONE, ZERO])
@pytest.mark.parametrize("event", [Self(Gaussian(2.0), 4), Self(Poisson(0.05, Gaussian(1.0)), 100), Laplace(1.0)])
def test_other_relations(event, relation):
    """Beside PLD where it answers; replacing is never cheaper than adding or removing."""
    bound = ours(event, relation).epsilon_bound(DELTA)
    peer = dpa.pld.PLDAccountant(relation)
    if peer.supports(event):
        theirs = peer.compose(event).get_epsilon(DELTA)
        assert bound.lower <= theirs * (1 + 1e-9) and theirs * (1 - 2e-3) <= bound.upper <= theirs * 1.001
    assert bound.upper >= ours(event).epsilon_bound(DELTA).lower


@pytest.mark.parametrize("relation", [ADD, ONE, ZERO])
def test_truncated(relation):
    event = Self(dpa.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 20, 1.0), 10)
    bound = ours(event, relation).epsilon_bound(DELTA)
    theirs = dpa.pld.PLDAccountant(relation).compose(event).get_epsilon(DELTA)
    assert bound.lower <= theirs * (1 + 1e-6)


def test_without_replacement():
    """Replacing a record moves a sum of norms at most C by up to 2 C. dp_accounting's RDP accountant moves it by C: it
    is asked with half the noise."""
    event = Self(dpa.SampledWithoutReplacementDpEvent(1000, 10, Gaussian(2.0)), 10)
    peer = Self(dpa.SampledWithoutReplacementDpEvent(1000, 10, Gaussian(1.0)), 10)
    bound = ours(event, ONE).epsilon_bound(DELTA)
    theirs = dpa.rdp.RdpAccountant(neighboring_relation=ONE).compose(peer).get_epsilon(DELTA)
    assert 0.2 * theirs < bound.lower <= bound.upper <= theirs


def test_all_records_are_the_sample():
    event = dpa.SampledWithoutReplacementDpEvent(7, 7, Gaussian(2.0))
    assert ours(event).get_epsilon(DELTA) == ours(Gaussian(2.0)).get_epsilon(DELTA)


def test_tree_aggregation():
    """Seven leaves: a record meets three nodes."""
    event = dpa.SingleEpochTreeAggregationDpEvent(2.0, [3, 7])
    bound = ours(event, ZERO).epsilon_bound(DELTA)
    exact = hs.epsilon(hs.gaussian(2.0 / math.sqrt(3)), DELTA)
    assert bound.lower <= exact.upper and exact.lower <= bound.upper <= exact.upper * (1 + 1e-9)


def test_repeat_and_select():
    """Geometric repetition (shape 1) of a 1/2-DP step is 3/2-DP; of Gaussian steps, below the peer's Renyi
    divergences."""
    accountant = ours(events.RepeatAndSelectDpEvent(Laplace(2.0), 10.0, 1.0))
    assert accountant.get_epsilon(0) == pytest.approx(1.5) and accountant.get_epsilon(0) >= 1.5
    assert accountant.get_epsilon(DELTA) <= accountant.get_epsilon(0)
    assert accountant.epsilon_bound(DELTA).lower == 0  # known by its guarantee only
    for inner in (Gaussian(2.0), Self(Poisson(0.01, Gaussian(1.0)), 300), Composed([Laplace(2.0), Gaussian(5.0)])):
        for mean, shape in ((10.0, 1.0), (30.0, 0.0), (5.0, math.inf)):
            event = events.RepeatAndSelectDpEvent(inner, mean, shape)
            peer = dpa.rdp.RdpAccountant().compose(event).get_epsilon(DELTA)
            assert ours(inner).get_epsilon(DELTA) < ours(event).get_epsilon(DELTA) < peer
    nothing = events.RepeatAndSelectDpEvent(dpa.NonPrivateDpEvent(), 10.0, 1.0)
    assert ours(nothing).get_epsilon(DELTA) == math.inf


@pytest.mark.parametrize("rho, xi", [(0.1, 0.0), (0.01, 0.02), (2.0, 0.0)])
def test_zcdp_with_other_steps(rho, xi):
    zcdp = dpa.ZCDpEvent(rho, xi)
    alone, curve = ours(zcdp).get_epsilon(DELTA), ours(zcdp, ZERO).get_epsilon(DELTA)
    assert alone <= curve <= alone * 1.005  # the second goes through the worst pair under the curve
    both = ours(Composed([Laplace(2.0), zcdp])).epsilon_bound(DELTA)
    peer = dpa.rdp.RdpAccountant().compose(Composed([Laplace(2.0), zcdp])).get_epsilon(DELTA)
    assert max(ours(Laplace(2.0)).epsilon_bound(DELTA).lower, 0) <= both.lower
    assert max(alone, ours(Laplace(2.0)).get_epsilon(DELTA)) <= both.upper <= peer * 1.05


def event_of(name, **fields):
    """An event type of a newer dp_accounting, by name."""
    return type(name, (SimpleNamespace,), {})(**fields)


@pytest.mark.parametrize(
    "event, exact",
    [
        (event_of("EpsilonDeltaDpEvent", epsilon=0.5, delta=0.0), lambda: hs.pure_dp(0.5)),
        (event_of("EpsilonDeltaDpEvent", epsilon=0.5, delta=1e-6), lambda: hs.approx_dp(0.5, 1e-6)),
        (event_of("ExponentialMechanismDpEvent", epsilon=0.5), lambda: hs.bounded_range(0.5)),
        (event_of("PermuteAndFlipDpEvent", epsilon=0.5), lambda: hs.laplace(down(2.0))),
        (
            event_of("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=1.0, dimension=1),
            lambda: hs.discrete_gaussian(3.0),
        ),
        (
            event_of("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=2, dimension=1),
            lambda: hs.discrete_gaussian(3.0, sensitivity=2),
        ),
        (
            event_of("RandomAllocationDpEvent", event=Gaussian(2.0), num_selected=1, num_steps=100),
            lambda: hs.random_allocation(hs.gaussian(2.0), 100),
        ),
        (
            event_of("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=1.2, dimension=None),
            lambda: hs.discrete_gaussian(3.0),
        ),
    ],
)
def test_newer_events(event, exact):
    ((step, k, pure),) = translate(event, "add_remove", worse=True)
    assert step == exact() and k == 1 and pure > 0
    ((mild, _, _),) = translate(event, "add_remove", worse=False)
    guaranteed = type(event).__name__ in ("ExponentialMechanismDpEvent", "PermuteAndFlipDpEvent")
    assert mild == (None if guaranteed else exact())


@pytest.mark.parametrize(
    "event",
    [
        event_of("EpsilonDeltaDpEvent", epsilon=-0.5, delta=0.0),
        event_of("EpsilonDeltaDpEvent", epsilon=0.5, delta=1.5),
        event_of("EpsilonDeltaDpEvent", epsilon=math.nan, delta=0.1),
        event_of("ExponentialMechanismDpEvent", epsilon=math.inf),
        event_of("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=1.0, dimension=0),
        event_of("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=1.5, dimension=1),
        event_of("RandomAllocationDpEvent", event=Gaussian(2.0), num_selected=3, num_steps=2),
        event_of("RandomAllocationDpEvent", event=Laplace(2.0), num_selected=1, num_steps=2),
        event_of("RandomAllocationDpEvent", event=Gaussian(0.1), num_selected=1, num_steps=2),
        event_of("BrandNewDpEvent", noise=1.0),
    ],
)
def test_newer_events_refused(event):
    with pytest.raises((hs.DomainError, RefusedError)):
        translate(event, "add_remove", worse=True)


@pytest.mark.parametrize("relation", [ADD, ONE, ZERO])
@pytest.mark.parametrize("dimension", [3, None])
def test_a_discrete_gaussian_of_several_coordinates_covers_all_directions(relation, dimension):
    """The shifts of norm 2: the upper end is above the curves of (2), (1, 1) and (1, 1, 1, 1), and that of a Gaussian
    step by zCDP [CKS20]."""
    event = event_of("DiscreteGaussianDpEvent", sigma=0.7, sensitivity=2.0, dimension=dimension)
    moved = 2 if relation is ONE else 1
    accountant, delta = HockeystickAccountant(relation), 1e-6
    assert accountant._maybe_compose(event, 1, True) is None
    upper = accountant.get_epsilon(delta)
    for length, coordinates in ((2, 1), (1, 2), (1, 4)):
        shifts = hs.discrete_gaussian(0.7, sensitivity=moved * length) * coordinates
        assert hs.epsilon(shifts, delta).upper <= upper
    rho = 0.5 * (2 * moved / 0.7) ** 2
    assert upper <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_newer_events_without_guarantee():
    event = event_of("EpsilonDeltaDpEvent", epsilon=0.5, delta=1)
    assert translate(event, "add_remove", worse=True) == [(NonPrivate(), 1, math.inf)]
    assert translate(event_of("EpsilonDeltaDpEvent", epsilon=0.0, delta=0.0), "add_remove", worse=True) == []


def test_random_allocation():
    """Epochs with fresh assignments, a step of several Gaussian outputs on one batch, steps that say nothing or all."""

    names = ("event", "num_selected", "num_steps")
    event = attr.make_class("RandomAllocationDpEvent", names, bases=(dpa.DpEvent,), frozen=True)
    accountant = ours(Self(event(Gaussian(1.0), 1, 100), 10))
    bound, run = accountant.epsilon_bound(DELTA), hs.random_allocation(hs.gaussian(1.0), 100) * 10
    assert accountant.run == run and bound.upper == hs.epsilon(run, DELTA).upper
    twice = ours(event(Self(Gaussian(2.0), 4), 1, 100)).epsilon_bound(DELTA)
    assert twice.lower <= hs.epsilon(hs.random_allocation(hs.gaussian(1.0), 100), DELTA).estimate <= twice.upper
    assert twice.width < 1e-9
    assert ours(event(Gaussian(3.0), 5, 5)).run == hs.gaussian(3.0) * 5
    assert translate(event(Gaussian(3.0), 0, 5), "add_remove", worse=True) == []
    assert translate(event(dpa.NoOpDpEvent(), 1, 5), "add_remove", worse=True) == []
    assert translate(event(Gaussian(0.0), 1, 5), "add_remove", worse=True) == [(NonPrivate(), 1, math.inf)]


@pytest.mark.parametrize("relation", [ADD, ONE, ZERO])
@pytest.mark.parametrize(("taken", "steps"), [(4, 100), (3, 10), (2, 3)])
def test_random_allocation_of_several(relation, taken, steps):
    """Blocks of one participation are charged, and the lower end is that of the sum of the outputs: both ends are
    about what a query of the step says, among others as well."""
    names = ("event", "num_selected", "num_steps")
    event = attr.make_class("RandomAllocationDpEvent", names, bases=(dpa.DpEvent,), frozen=True)
    accountant = HockeystickAccountant(relation)
    accountant.compose(event(Gaussian(2.0), taken, steps), 10).compose(Gaussian(5.0), 2)
    run = hs.random_allocation(hs.gaussian(2.0), steps, participations=taken) * 10 + hs.gaussian(5.0) * 2
    bound, known = accountant.epsilon_bound(DELTA), hs.epsilon(run, DELTA, adjacency=ADJACENCY[relation])
    assert known.upper * (1 - 1e-9) <= bound.upper and (relation is ONE or bound.upper <= known.upper * (1 + 1e-9))
    summed = hs.gaussian(2.0 * math.sqrt(steps) / taken) * 10 + hs.gaussian(5.0) * 2
    shown = hs.epsilon(summed, DELTA, adjacency=ADJACENCY[relation])
    assert shown.upper * (1 - 1e-9) <= bound.lower * (1 + 1e-9) and bound.lower <= known.upper
    far = translate(event(Gaussian(1e6), 2, 10**6 + 1), "add_remove", worse=False)
    assert all(mild is None or mild.sigma <= 1e9 for mild, _, _ in far)


def test_rounded_numbers_enclose():
    """1/a and sigma/sqrt(k) are not doubles: the worse step has less noise, the milder one more."""
    event = events.DiscreteLaplaceDpEvent(0.3, 1)
    worse, mild = (translate(event, "add_remove", worse=side)[0][0] for side in (True, False))
    assert worse.scale < 1 / 0.3 < mild.scale <= worse.scale * (1 + 1e-14)
    event = Poisson(0.1, Self(Gaussian(3.0), 7))
    worse, mild = (translate(event, "add_remove", worse=side)[0][0].base for side in (True, False))
    assert mp.mpf(worse.sigma) < 3 / mp.sqrt(7) < mp.mpf(mild.sigma) <= worse.sigma * (1 + 1e-14)
