"""Filters and odometers for whole data sets: exact semantics, anchors, bad input."""

import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import hockeystick as hs
from hockeystick.individual import units

TRACE = (0.6, 0.7, 0.5, 0.9, 0.3)
MUS = st.floats(0.0, 2.0)


def charging(kind, budget, **options):
    """(charge(norm, sigma) of a filter, the filter): of a data set, or of one record whose norms have a type."""
    if kind == "set":
        filter = hs.GDPFilter(budget_mu=budget, **options)
        return (lambda norm, sigma=1.0: filter.charge(sigma=sigma, sensitivity=norm)), filter
    filter = hs.IndividualGDPFilter(1, budget_mu=budget, **options)
    return (lambda norm, sigma=1.0: bool(filter.charge(np.array([norm], kind), sigma=sigma)[0])), filter


@pytest.mark.parametrize("kind", ["set", np.float32, np.float64])
def test_trace(kind):
    charge, filter = charging(kind, 1.0)
    assert [charge(mu) for mu in TRACE] == [True, True, False, False, True]
    spent = float(np.ravel(filter.spent_mu_upper if kind == "set" else filter.spent_mu_upper())[0])
    assert spent**2 == pytest.approx(0.94, rel=1e-7) and (kind == np.float32 or 0.94 <= spent**2 <= 0.94 * (1 + 1e-13))
    assert filter.steps == 5
    charge, filter = charging(kind, 1.0, sticky=True)  # ends at the first refusal
    assert [charge(mu) for mu in TRACE] == [True, True, False, False, False] and not charge(0.0)


@pytest.mark.parametrize("kind", ["set", np.float64])
@pytest.mark.parametrize(
    ("budget", "sigma", "norms"),
    [
        (1.0, 1.0, [0.5] * 4),
        (5.0, 1.0, [3.0, 4.0]),
        (0.3, 1.0, [0.3]),
        (0.3, 1.0, [0.15] * 4),
        (2.5, 1.0, [1.5, 2.0]),
        (0.1, 1.0, [0.05] * 4),
        (1e3, 1.0, [500.0] * 4),
        (1e-6, 1.0, [5e-7] * 4),
        (1.0, 0.6, [0.3] * 4),
        (5.0, 2.0, [6.0, 8.0]),
        (0.3, 2.0, [0.3] * 4),
        (1.5, 100.0, [75.0] * 4),
    ],
)
def test_spending_exactly_the_budget_is_allowed(kind, budget, sigma, norms):
    assert sum((Fraction(x) / Fraction(sigma)) ** 2 for x in norms) == Fraction(budget) ** 2
    charge, _ = charging(kind, budget)
    assert all(charge(x, sigma) for x in norms)
    assert not charge(1e-300, sigma) and charge(0.0, sigma)


@given(st.floats(1e-3, 10.0), st.lists(MUS, max_size=8))
def test_a_last_step_spends_what_is_left(budget, mus):
    filter = hs.GDPFilter(budget_mu=budget)
    for mu in mus:
        filter.charge(mu)
    left = filter.left_mu_lower
    unit = budget * 2.0**-24  # the square root of a unit
    assert not filter.charge(left * (1 + 1e-12) + unit) and filter.charge(left)
    assert filter.left_mu_lower <= left * 1e-7 + unit
    sticky = hs.GDPFilter(budget_mu=budget, sticky=True)
    assert sticky.left_mu_lower == budget and not sticky.charge(2 * budget) and sticky.left_mu_lower == 0


@given(st.floats(1e-3, 10.0), st.lists(MUS, max_size=30))
def test_never_under_charged_and_tight(budget, mus):  # [theory: individual.units]
    """Against the rule over the rationals with the budget as it is, and with one smaller by the units of rounding."""
    filter = hs.GDPFilter(budget_mu=budget)
    charged = [mu for mu in mus if filter.charge(mu)]
    exact = sum((Fraction(mu) ** 2 for mu in charged), Fraction(0))
    assert exact <= Fraction(budget) ** 2
    assert Fraction(filter.spent_mu_upper) ** 2 >= exact
    unit = Fraction(budget) ** 2 / 2**48
    spent = filter._spent * Fraction(filter._units.divisor) ** 2 / Fraction(4) ** filter._units.half
    assert exact <= spent <= exact + len(charged) * unit


@given(st.floats(1e-3, 10.0), st.lists(MUS, max_size=12), st.randoms())
def test_sums_do_not_depend_on_the_order(budget, mus, random):
    layout = units.units_of(budget)
    costs = [layout.cost(Fraction(mu)) for mu in mus]
    shuffled = list(mus)
    random.shuffle(shuffled)
    assert sum(costs) == sum(layout.cost(Fraction(mu)) for mu in shuffled)
    assert 2**48 <= layout.limit <= 2**50


def test_odometer_moves_at_refills_only():
    odometer = hs.GDPOdometer(increment_mu=1.0)
    assert odometer.mu_upper == 0
    shown = []
    for mu in (0.6, 0.6, 0.6, 0.8, 1.0, 0.1, 0.0):
        shown.append((odometer.charge(mu), odometer.mu_upper))
    # 0.6 and 0.8 as doubles have squares that add up to more than 1
    assert [n for n, _ in shown] == [1, 1, 2, 3, 4, 5, 5]
    for n, mu in shown:
        assert math.sqrt(n) <= mu <= math.sqrt(n) * (1 + 1e-15)
    assert odometer.epsilon_upper(1e-5) >= hs.epsilon(hs.gaussian(0.5), 1e-5).lower


def test_odometer_refuses_what_no_filter_holds():
    odometer = hs.GDPOdometer(increment_mu=0.5)
    odometer.charge(0.5)
    with pytest.raises(hs.DomainError, match="fits no increment"):
        odometer.charge(0.5000001)
    assert (odometer.filters, odometer.steps) == (1, 1)


@given(st.lists(st.floats(0.0, 1.0), max_size=40))
def test_odometer_never_says_less_than_what_ran(mus):  # [theory: individual.odometer]
    odometer = hs.GDPOdometer(increment_mu=1.0)
    for mu in mus:
        odometer.charge(mu)
    assert Fraction(odometer.mu_upper) ** 2 >= sum((Fraction(mu) ** 2 for mu in mus), Fraction(0))


def test_rdp_every_order_within_its_budget():  # [theory: individual.rdp-filter]
    filter = hs.RDPFilter(orders=[2, 8], budgets=[1.0, 2.0])
    assert [filter.charge([0.5, 0.5]) for _ in range(3)] == [True, True, False]
    assert filter.charge([0.0, 1.0]) and not filter.charge([0.0, 1e-12])
    assert filter.spent_rho_upper == pytest.approx((1.0, 2.0))


def test_rdp_some_order_within_its_budget():  # [theory: individual.rdp-shares]
    one = hs.RDPFilter(epsilon=2.0, delta=1e-5, orders=[16])
    both = hs.RDPFilter(epsilon=2.0, delta=1e-5, orders=[2, 16])  # order 2 alone has no budget
    with pytest.raises(hs.DomainError, match="leaves none"):
        hs.RDPFilter(epsilon=2.0, delta=1e-5, orders=[2])
    step = hs.gaussian(20.0)
    n_one, n_both = (sum(f.charge(step) for _ in range(1000)) for f in (one, both))
    assert n_both < n_one <= n_both * 1.1  # the union bound over two orders costs log(2)/15 of rho
    for n, orders in ((n_one, 1), (n_both, 2)):
        rho = 16 * n / 800
        delta = math.exp(15 * (rho - 2.0)) * orders / 16 * (15 / 16) ** 15
        assert delta <= 1e-5 < delta * math.exp(15 * 16 / 800)


def test_rdp_is_above_the_gaussian_truth():  # [theory: individual.rdp-shares]
    """What the filter lets through has certified delta within the promise, Gaussian and subsampled."""
    for step, eps in ((hs.gaussian(5.0), 1.5), (hs.poisson_subsampled(hs.gaussian(1.0), 0.02), 3.0)):
        filter = hs.RDPFilter(epsilon=eps, delta=1e-5)
        n = sum(filter.charge(step) for _ in range(3000))
        assert 0 < n < 3000
        assert hs.delta(step * n, eps).upper <= 1e-5
        assert hs.delta(step * (4 * n), eps).lower > 1e-5  # and it is not vacuous


BUDGETS = [
    {},
    {"budget_mu": 1.0, "epsilon": 1.0, "delta": 1e-5},
    {"epsilon": 1.0},
    {"delta": 1e-5},
    {"epsilon": -1.0, "delta": 1e-5},
    {"epsilon": 0.0, "delta": 1e-12},
]


@pytest.mark.parametrize("given_budget", BUDGETS)
def test_bad_budgets(given_budget):
    with pytest.raises(hs.DomainError):
        hs.GDPFilter(**given_budget)
    with pytest.raises(hs.DomainError):
        hs.IndividualGDPFilter(3, **given_budget)


BAD_STEPS = [
    {"mu": -0.1},
    {"mu": math.nan},
    {"mu": math.inf},
    {"mu": "1"},
    {"mu": [0.1]},
    {"mu": 1, "sigma": 1},
    {"sigma": 0},
    {"sigma": -1},
    {"sigma": math.nan},
    {"sigma": 1, "sensitivity": -1},
    {},
]


@pytest.mark.parametrize("step", BAD_STEPS)
def test_a_bad_step_charges_nothing(step):
    filter, odometer = hs.GDPFilter(budget_mu=1.0), hs.GDPOdometer(increment_mu=1.0)
    for each in (filter, odometer):
        with pytest.raises(hs.DomainError):
            each.charge(**step)
    assert (filter.steps, filter.spent_mu_upper, odometer.filters) == (0, 0.0, 0)


@pytest.mark.parametrize("step", [[0.1], [0.1, -1], [0.1, math.nan], "ab", 3.0, [0.1, 0.1, 0.1]])
def test_a_bad_rdp_step_charges_nothing(step):
    filter = hs.RDPFilter(orders=[2.0, 2.5], budgets=[1.0, 1.0])
    with pytest.raises(hs.DomainError):
        filter.charge(step)
    with pytest.raises(hs.DomainError, match="of every size"):
        filter.charge(hs.without_replacement(hs.gaussian(1.0), dataset_size=100, max_batch=10))
    assert filter.steps == 0 and filter.spent_rho_upper == (0.0, 0.0)


@pytest.mark.parametrize("orders", [[], [1.0], [2, 2], [3, 2], [math.nan], [1e4], ["2"]])
def test_bad_orders(orders):
    with pytest.raises(hs.DomainError):
        hs.RDPFilter(orders=orders, budgets=[1.0] * len(orders))


def test_the_library_loads_this_room_late():
    import subprocess
    import sys

    code = (
        "import sys, hockeystick; assert 'sqlite3' not in sys.modules and 'hockeystick.individual' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "GDPFilter" in dir(hs)
    with pytest.raises(AttributeError, match="no attribute"):
        _ = hs.GDPFilters


def test_arrays_are_not_numbers():
    with pytest.raises(hs.DomainError):
        hs.GDPFilter(budget_mu=np.array([1.0]))
