"""The filter of every record: against the rule over the rationals, threads, atomic steps, bad input."""

import math
import os
import signal
import tracemalloc
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import hockeystick as hs
from hockeystick.individual import units

NORMS = st.floats(0.0, 4.0)


def spent_of(filter, i=0):
    """Exact square charged to a record, as a fraction."""
    layout = filter._units
    return int(filter._look(None)[i]) * Fraction(layout.divisor) ** 2 / Fraction(4) ** layout.half


@given(
    st.floats(1e-3, 10.0),
    st.lists(st.tuples(NORMS, st.floats(0.1, 100.0)), max_size=12),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
)
# [theory: individual.cost, individual.records]
def test_against_the_rule_over_the_rationals(budget, steps, dtype, sticky):
    """Costs are within one unit and 20u of the exact square, never below; the decision follows the costs exactly."""
    filter = hs.IndividualGDPFilter(1, budget_mu=budget, sticky=sticky)
    layout, spent, out = units.units_of(budget), 0, False
    for norm, sigma in steps:
        x = np.array([norm], dtype)
        exact = (Fraction(float(x[0])) / Fraction(sigma) / Fraction(layout.divisor)) ** 2 * Fraction(4) ** layout.half
        before = int(filter._look(None)[0]) & ~(1 << 62)
        active = bool(filter.charge(x, sigma=sigma)[0])
        cost = (int(filter._look(None)[0]) & ~(1 << 62)) - before
        if active:
            assert exact <= cost <= exact * (1 + Fraction(24, 2**53)) + 1
            spent += cost
        else:
            assert cost == 0 and (out or spent + math.ceil(exact * (1 + Fraction(24, 2**53)) + 1) > layout.limit)
            out = sticky
        assert spent <= layout.limit
    assert Fraction(filter.spent_mu_upper()[0]) ** 2 >= spent_of(filter) - (1 << 62 if out else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_every_thread_count_and_for_subsets(dtype):
    rng = np.random.default_rng(5)
    n = 200_003  # four threads' worth
    filters = [hs.IndividualGDPFilter(n, budget_mu=2.0, n_threads=t) for t in (1, 2, 3, 64)]
    by_parts = hs.IndividualGDPFilter(n, budget_mu=2.0)
    for step in range(6):
        norms = rng.exponential(1.0, n).astype(dtype)
        masks = [f.charge(norms, sigma=1.3) for f in filters]
        order = rng.permutation(n)
        mask = np.empty(n, bool)
        for part in np.array_split(order, 3):
            mask[part] = by_parts.charge(norms[part], sigma=1.3, indices=part)
        for other in (*masks[1:], mask):
            assert np.array_equal(masks[0], other)
        assert 0 < masks[0].sum() < n or step == 0
    for other in (*filters[1:], by_parts):
        assert np.array_equal(filters[0]._look(None), other._look(None))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_that_it_has_not():
    filter, norms, counts = (
        hs.IndividualGDPFilter(200_000, budget_mu=2.0, n_threads=2),
        np.ones(200_000),
        np.full((50, 2), 9),
    )
    filter.charge(norms, sigma=1.0)
    before = hs.individual_epsilons(counts, sigmas=[1.0, 2.0], q=0.1, delta=1e-5, n_threads=2).upper
    pid = os.fork()
    if not pid:
        code = 1
        signal.alarm(60)
        try:
            after = hs.individual_epsilons(counts, sigmas=[1.0, 2.0], q=0.1, delta=1e-5, n_threads=2).upper
            code = 0 if filter.charge(norms, sigma=1.0).all() and np.array_equal(before, after) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert filter.charge(norms, sigma=1.0).all()


def test_a_step_over_all_records_allocates_nothing():
    filter, norms, out = hs.IndividualGDPFilter(10**6, budget_mu=2.0), np.ones(10**6, np.float32), np.empty(10**6, bool)
    tracemalloc.start()
    try:
        filter.charge(norms, sigma=1.0, out=out)
        assert tracemalloc.get_traced_memory()[1] < 20_000
    finally:
        tracemalloc.stop()


def test_edges_of_norms():
    """Zero, subnormal and huge norms; a positive norm is never free."""
    filter = hs.IndividualGDPFilter(6, budget_mu=1.0)
    norms = np.array([0.0, -0.0, 5e-324, 1e-200, 1e300, 1.7e308])
    assert filter.charge(norms, sigma=1.0).tolist() == [True, True, True, True, False, False]
    assert filter._look(None).tolist()[:2] == [0, 0] and (filter._look(None)[2:4] == 1).all()
    tiny = np.array([1e-45, 1e-38, 0, 0, 0, 0], np.float32)
    assert filter.charge(tiny, sigma=1e30).all() and filter._look(None)[0] == 1 and filter._look(None)[1] == 1


@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("bad", [-1e-300, math.nan, math.inf, -math.inf, 1.5])
@pytest.mark.parametrize("where", [0, 127, 128, 70_000, 139_999])
def test_a_refused_step_charges_nobody(sticky, bad, where):
    filter = hs.IndividualGDPFilter(140_000, budget_mu=1.0, clip=1.0, sticky=sticky, n_threads=2)
    norms = np.random.default_rng(1).random(140_000)
    filter.charge(norms, sigma=1.2)
    before = filter._look(None).copy()
    norms[where] = bad
    with pytest.raises(hs.DomainError, match=f"at record {where}; nobody was charged"):
        filter.charge(norms, sigma=1.2)
    with pytest.raises(hs.DomainError, match=f"at record {where}; nobody was charged"):
        filter.charge(norms[::-1].copy(), sigma=1.2, indices=np.arange(140_000)[::-1])
    assert np.array_equal(before, filter._look(None)) and filter.steps == 1


BAD_CALLS = [
    (dict(norms=np.ones(2), sigma=1.0), "one entry for each of 3"),
    (dict(norms=np.ones((3, 1)), sigma=1.0), "one dimension"),
    (dict(norms=np.ones(3, complex), sigma=1.0), "real numbers"),
    (dict(norms=["a"] * 3, sigma=1.0), "real numbers"),
    (dict(norms=np.ones(3), sigma=0.0), "sigma"),
    (dict(norms=np.ones(3), sigma=-1.0), "sigma"),
    (dict(norms=np.ones(3), sigma=math.nan), "sigma"),
    (dict(norms=np.ones(3), sigma=math.inf), "sigma"),
    (dict(norms=np.ones(3), sigma=1e300), "too far"),
    (dict(norms=np.ones(2), sigma=1.0, indices=[0, 0]), "distinct, got 0 twice"),
    (dict(norms=np.ones(2), sigma=1.0, indices=[0, 3]), "from 0 to 2, got 3"),
    (dict(norms=np.ones(2), sigma=1.0, indices=[-1, 2]), "from 0 to 2, got -1"),
    (dict(norms=np.ones(2), sigma=1.0, indices=[0.0, 1.0]), "array of integers"),
    (dict(norms=np.ones(2), sigma=1.0, indices=[0]), "each of 1"),
    (dict(norms=np.ones(2), sigma=1.0, indices=[True, False]), "array of integers"),
    (dict(norms=np.full(3, 2**60 + 1), sigma=1e20), "holds exactly"),
    (dict(norms=np.ones(3), sigma=2**60 + 1), "holds exactly"),
    (dict(norms=np.ones(1), sigma=1.0, indices=np.array([2**63 + 1], np.uint64)), "from 0 to 2"),
    (dict(norms=np.ones(3), sigma=1.0, out=np.empty(3)), "out must be"),
    (dict(norms=np.ones(3), sigma=1.0, out=np.empty(2, bool)), "out must be"),
    (dict(norms=np.ones(3), sigma=1.0, out=np.empty(6, bool)[::2]), "out must be"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS)
def test_bad_calls(call, message):
    filter = hs.IndividualGDPFilter(3, budget_mu=1.0)
    with pytest.raises(hs.DomainError, match=message):
        filter.charge(**call)
    assert not filter._look(None).any() and filter.steps == 0


def test_inputs_of_other_layouts():
    filter = hs.IndividualGDPFilter(4, budget_mu=1.0)
    wide = np.full(8, 0.25)
    wide.flags.writeable = False
    filter.charge(wide[::2], sigma=1.0)
    filter.charge([0.25] * 4, sigma=1.0)
    filter.charge(np.zeros(4, int), sigma=1.0)
    filter.charge(np.full(4, 0.25, np.float16), sigma=1.0)
    filter.charge(np.empty(0), sigma=1.0, indices=[])
    assert filter.spent_mu_upper() ** 2 == pytest.approx(3 / 16)
    out = np.empty(4, bool)
    assert filter.charge(np.ones(4), sigma=1.0, out=out) is out and not out.any()
    assert filter.spent_mu_upper([1, 3]).shape == (2,)


@pytest.mark.parametrize(("budget", "sigma"), [(1.0, 1.0), (0.3, 7.3), (2.7, 1e-3)])
def test_a_last_step_spends_what_is_left(budget, sigma):
    filter = hs.IndividualGDPFilter(1000, budget_mu=budget, sticky=True)
    norms = np.random.default_rng(2).exponential(budget * sigma, 1000)
    active = filter.charge(norms, sigma=sigma)
    left = filter.left_mu_lower()
    assert (left[~active] == 0).all() and (left[active] <= budget).all() and 0 < active.sum() < 1000
    assert filter.charge(left * sigma, sigma=sigma)[active].all()
    assert (filter.spent_mu_upper()[active] >= budget * (1 - 1e-13)).all()
    assert not filter.charge(np.full(1000, 1e-6 * sigma * budget), sigma=sigma).any()


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long double is double here")
def test_nothing_is_rounded_down_on_its_way_in():
    """Long doubles a little above 1 would be charged as 1."""
    filter, above = hs.IndividualGDPFilter(1, budget_mu=1.0), np.longdouble(1) + np.finfo(np.longdouble).eps
    with pytest.raises(hs.DomainError, match="holds exactly"):
        filter.charge(np.array([above]), sigma=1.0)
    with pytest.raises(hs.DomainError, match="holds exactly"):
        hs.GDPFilter(budget_mu=1.0).charge(above)
    assert filter.charge(np.ones(1, np.longdouble), sigma=1.0).all() and hs.GDPFilter(budget_mu=1.0).charge(
        np.longdouble(1)
    )


def test_state_in_an_array_on_disk(tmp_path):
    words = np.memmap(tmp_path / "words", np.int64, "w+", shape=1000)
    there, here = hs.IndividualGDPFilter(1000, budget_mu=1.0, words=words), hs.IndividualGDPFilter(1000, budget_mu=1.0)
    for step in range(5):
        norms = np.random.default_rng(step).random(1000)
        assert np.array_equal(there.charge(norms, sigma=1.0), here.charge(norms, sigma=1.0))
    words.flush()
    assert (tmp_path / "words").stat().st_size == 8000
    assert np.array_equal(np.fromfile(tmp_path / "words", np.int64), here._look(None))
    for bad in (words, np.zeros(999, np.int64), np.zeros(1000), np.zeros(2000, np.int64)[::2], [0] * 1000):
        with pytest.raises(hs.DomainError, match="words must be"):
            hs.IndividualGDPFilter(1000, budget_mu=1.0, words=bad)
    with pytest.raises(hs.DomainError, match="not both"):
        hs.IndividualGDPFilter(1000, budget_mu=1.0, words=np.zeros(1000, np.int64), path=tmp_path / "state")


def test_every_guarantee_is_the_budget():  # [theory: individual.gdp-filter]
    filter = hs.IndividualGDPFilter(2, epsilon=1.0, delta=1e-5)
    for _ in range(1000):
        filter.charge(np.array([1.0, 0.1]), sigma=50.0)
    assert filter.epsilon_upper(1e-5) <= 1.0 + 1e-9
    eps = filter.epsilons_upper(1e-5)
    assert eps[1] < eps[0] <= 1.0 + 1e-6 and eps[0] > 0.99
