"""Calibration: the value meets the target by its certified bound, the limit provably does not, and they are close."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from rows import sgm


def check(found, make_run, epsilon, delta, tol=1e-6, gap=0):
    """Both ends asked again from outside, by the other query."""
    assert found.bound.certified and found.bound.upper <= delta
    assert hs.delta(make_run(found.value), epsilon).upper <= delta
    assert hs.delta(make_run(found.limit), epsilon).lower > delta
    assert abs(found.value - found.limit) <= max(tol * found.value, gap)
    assert hs.epsilon(make_run(found.value), delta).lower <= epsilon
    assert hs.epsilon(make_run(found.limit), delta).upper >= epsilon
    assert found.evaluations <= 60


@pytest.mark.parametrize(
    "q, steps, epsilon, delta",
    [
        (0.01, 1000, 1.0, 1e-5),
        (0.01, 1000, 8.0, 1e-5),
        (0.01, 1000, 0.0, 1e-2),
        (0.1, 10**6, 8.0, 1e-12),
        (0.001, 10, 0.1, 1e-7),
        (0.05, 1, 0.5, 1e-6),
        (1.0, 1, 1.0, 1e-5),
        (1.0, 10**6, 0.5, 1e-30),
    ],
)
def test_noise_multiplier(q, steps, epsilon, delta):
    found = hs.noise_multiplier(q=q, steps=steps, epsilon=epsilon, delta=delta)
    check(found, lambda s: sgm(s, q, steps), epsilon, delta)
    assert found.limit < found.value


@pytest.mark.parametrize("tol", [1e-9, 1e-3, 0.3])
def test_tolerance(tol):
    found = hs.noise_multiplier(q=0.01, steps=1000, epsilon=1.0, delta=1e-5, tol=tol)
    check(found, lambda s: sgm(s, 0.01, 1000), 1.0, 1e-5, tol)
    if tol < 1e-6:
        assert found.limit <= 1.4146194065 + 1e-6 and found.value >= 1.4146194065 - 1e-6


def test_peers_answer_lies_inside():
    """Two other tools calibrate this problem to 1.41463 and 1.41965."""
    found = hs.noise_multiplier(q=0.01, steps=1000, epsilon=1.0, delta=1e-5)
    assert found.value <= 1.41463 and found.evaluations <= 15


@pytest.mark.parametrize("sigma, q, epsilon, delta, steps", [(1.0, 0.01, 1.0, 1e-5, 254), (1.0, 1.0, 5.0, 1e-5, None)])
def test_max_steps(sigma, q, epsilon, delta, steps):
    found = hs.max_steps(sigma=sigma, q=q, epsilon=epsilon, delta=delta)
    check(found, lambda k: sgm(sigma, q, k), epsilon, delta, gap=1)
    assert type(found.value) is int and found.limit == found.value + 1
    assert steps is None or found.value == steps


def test_max_steps_is_exact_where_one_step_is_cheap():
    found = hs.max_steps(sigma=20.0, q=1e-3, epsilon=1.0, delta=1e-9)
    assert 0 < found.limit - found.value <= max(1, 1e-6 * found.value)
    check(found, lambda k: sgm(20.0, 1e-3, k), 1.0, 1e-9, gap=1)


@pytest.mark.parametrize("start", [1e-3, 0.05, 0.9])
def test_start_does_not_matter(start):
    found = hs.calibrate(lambda q: sgm(1.5, q, 200), over=(1e-4, 1.0), epsilon=1.0, delta=1e-6, start=start)
    check(found, lambda q: sgm(1.5, q, 200), 1.0, 1e-6)


PARAMETERS = {
    "sigma": (lambda s: sgm(s, 0.02, 100), (0.3, 100.0), {}),
    "q": (lambda q: sgm(1.2, q, 100), (1e-4, 1.0), {}),
    "steps": (lambda k: sgm(2.0, 0.02, k), (1, 10**6), {}),
    "sensitivity": (lambda c: hs.gaussian(3.0, sensitivity=c) * 5, (1e-2, 10.0), {}),
    "scale": (lambda b: hs.laplace(b) * 5, (1.0, 100.0), {}),
    "discrete scale": (lambda b: hs.discrete_laplace(b) * 3, (0.5, 200.0), {}),
    "whole sensitivity": (lambda c: hs.discrete_laplace(30.0, sensitivity=c) * 3, (1, 100), {}),
    "eps0": (lambda e: hs.randomized_response(e) * 5, (1e-3, 3.0), {}),
    "batch": (
        lambda b: hs.without_replacement(hs.gaussian(2.0), dataset_size=500, batch=b) * 4,
        (1, 500),
        {"adjacency": "replace_one"},
    ),
    "max_batch": (
        lambda b: hs.truncated_poisson_subsampled(hs.gaussian(2.0), 0.1, dataset_size=500, max_batch=b) * 4,
        (50, 80),
        {},
    ),
}
TARGETS = {
    "epsilon": (dict(epsilon=1.0, delta=1e-5), lambda run, **o: hs.epsilon(run, 1e-5, **o), 1.0, 1),
    "delta": (dict(epsilon=0.5, delta=1e-4), lambda run, **o: hs.delta(run, 0.5, **o), 1e-4, 1),
    "advantage": (dict(advantage=0.1), hs.advantage, 0.1, 1),
    "fnr": (dict(fnr=0.8, fpr=0.05), lambda run, **o: hs.tradeoff(run, 0.05, **o), 0.8, -1),
    "mu": (dict(mu=0.4, delta=1e-5), lambda run, **o: hs.mu_gdp(run, 1e-5, tol=1e-2, **o), 0.4, 1),
}
SLOW = {
    ("scale", "fnr"),
    ("batch", "mu"),
    ("batch", "fnr"),
    ("max_batch", "mu"),
    ("max_batch", "fnr"),
    ("max_batch", "epsilon"),
}


@pytest.mark.parametrize(
    "parameter, target",
    [pytest.param(p, t, marks=[pytest.mark.slow] * ((p, t) in SLOW)) for p in PARAMETERS for t in TARGETS],
)
def test_every_parameter_to_every_target(parameter, target):  # [theory: risk.calibration]
    """Asked again from outside: the value meets the target, the limit does not, and no other lies between."""
    make_run, over, options = PARAMETERS[parameter]
    asked, query, level, sign = TARGETS[target]
    found = hs.calibrate(make_run, over=over, tol=1e-3, **asked, **options)
    whole = isinstance(over[0], int)
    at = query(make_run(found.value), **options)
    assert sign * (at.lower if sign > 0 else at.upper) <= sign * level and type(found.value) is (
        int if whole else float
    )
    if found.limit is None:
        assert found.value in over
        return
    beyond = query(make_run(found.limit), **options)
    assert sign * (beyond.upper if sign > 0 else beyond.lower) >= sign * level and type(found.limit) is type(
        found.value
    )
    assert abs(found.value - found.limit) <= (1 if whole and found.value < 1000 else 1e-3 * found.value)


def test_whole_range_meets():
    found = hs.calibrate(lambda c: hs.gaussian(2.0, sensitivity=c), over=(0.01, 0.1), epsilon=1.0, delta=1e-2)
    assert found.value == 0.1 and found.limit is None and found.bound.upper <= 1e-2


def test_cannot_be_met_names_the_best():  # [theory: risk.calibration]
    with pytest.raises(
        hs.AccuracyError,
        match=r"eps=0\.01 at delta=1e-09 cannot be met between 1\.0 and 2\.0: at 2\.0.*best reachable.*widen `over`",
    ):
        hs.calibrate(lambda s: hs.gaussian(s), over=(1.0, 2.0), epsilon=0.01, delta=1e-9)
    with pytest.raises(hs.AccuracyError, match=r"cannot be met.*at 1 "):
        hs.max_steps(sigma=0.5, q=0.1, epsilon=0.1, delta=1e-5)
    with pytest.raises(hs.AccuracyError, match="cannot be met"):
        hs.calibrate(lambda s: sgm(s, 0.5, 100), over=(0.5, 1.0), advantage=1e-6)


def test_cost_that_does_not_depend_on_the_parameter():
    with pytest.raises(hs.AccuracyError, match="cannot be met"):
        hs.calibrate(lambda x: hs.gaussian(1.0), over=(1.0, 2.0), epsilon=0.1, delta=1e-5)
    assert hs.calibrate(lambda x: hs.gaussian(9.0), over=(1.0, 2.0), epsilon=1.0, delta=1e-3).limit is None


@settings(max_examples=25, deadline=None)
@given(
    st.floats(1e-3, 0.5),
    st.integers(50, 10**6),
    st.floats(0.1, 10),
    st.floats(-12, -3),
    st.sampled_from([1e-2, 1e-5, 1e-7]),
)
def test_any_problem(q, steps, epsilon, log_delta, tol):
    delta = 10.0**log_delta
    try:
        found = hs.noise_multiplier(q=q, steps=steps, epsilon=epsilon, delta=delta, tol=tol)
    except hs.AccuracyError as error:
        assert "met at" in str(error)
        return
    check(found, lambda s: sgm(s, q, steps), epsilon, delta, tol)


BAD = [
    ({"over": (1.0, 2.0)}, "target"),
    ({"over": (1.0, 2.0), "epsilon": 1.0}, "target"),
    ({"over": (1.0, 2.0), "delta": 0.1}, "target"),
    ({"over": (1.0, 2.0), "epsilon": 1.0, "delta": 0.1, "mu": 1.0}, "target"),
    ({"over": (1.0, 2.0), "epsilon": -1.0, "delta": 0.1}, "eps must"),
    ({"over": (1.0, 2.0), "advantage": 0.0}, "advantage"),
    ({"over": (1.0, 2.0), "fnr": 1.0, "fpr": 0.1}, "fnr"),
    ({"over": (1.0, 2.0), "fnr": 0.5, "fpr": math.nan}, "fpr"),
    ({"over": (1.0, 2.0), "mu": -1.0, "delta": 0.1}, "mu"),
    ({"over": (1.0, 2.0), "advantage": 0.1, "start": 3.0}, "start"),
]


@pytest.mark.parametrize("options, word", BAD)
def test_bad_input(options, word):
    with pytest.raises(hs.DomainError, match=word):
        hs.calibrate(hs.gaussian, **options)


def test_what_makes_no_run():
    with pytest.raises(hs.DomainError, match="make_run"):
        hs.calibrate(hs.gaussian(1.0), over=(1.0, 2.0), advantage=0.1)
    with pytest.raises(hs.DomainError, match="mechanism"):
        hs.calibrate(lambda s: s, over=(1.0, 2.0), advantage=0.1)


def test_runs_between_two_curves():
    """Several participations: `value` is the best of the upper curve, `limit` of the lower one."""
    epoch = lambda sigma: hs.random_allocation(hs.gaussian(sigma), 30, participations=3)  # noqa: E731
    found = hs.calibrate(epoch, over=(1.8, 2.5), eps=1.0, delta=1e-5, tol=1e-2)
    assert hs.delta(epoch(found.value), 1.0).upper <= 1e-5 < hs.delta(epoch(found.limit), 1.0).lower
    assert hs.delta(epoch(found.value * 0.98), 1.0).upper > 1e-5 > hs.delta(epoch(found.limit * 1.02), 1.0).lower
    epochs = hs.calibrate(lambda k: epoch(2.0) * k, over=(1, 5), eps=2.0, delta=1e-5)
    assert (epochs.value, epochs.limit) == (2, 4)


@pytest.mark.parametrize(
    "make_run, eps, most",
    [
        (lambda sigma: hs.random_allocation(hs.gaussian(sigma), 100) * 10, 2.0, 9),  # 16 from the middle of the range
        (lambda sigma: hs.group(hs.poisson_subsampled(hs.gaussian(sigma), 0.01), 4) * 1000, 3.0, 9),  # 40
        (lambda sigma: hs.random_allocation(hs.gaussian(sigma), 100, participations=5), 1.0, 24),  # 52
    ],
)
def test_a_search_begins_near_its_end(make_run, eps, most):
    """A cheap score says where; secants, and not halves, lead to the ends of what is known between two curves."""
    found = hs.calibrate(make_run, over=(0.5, 20.0), eps=eps, delta=1e-5)
    assert found.evaluations <= most
    assert found.bound.upper <= 1e-5 < hs.delta(make_run(found.limit), eps).lower


@pytest.mark.slow
def test_wide_bounds_are_asked_for_more_digits():
    """At the root itself no width decides, next to it narrower ones do; the grid's first answers are 6e-4 wide."""
    found = hs.calibrate(
        lambda sigma: hs.group(hs.poisson_subsampled(hs.gaussian(sigma), 0.01), 4) * 1000,
        over=(2.1, 2.13),
        eps=6.0,
        delta=1e-6,
        tol=1e-5,
        start=2.1159,
        adjacency="replace_one",
    )
    assert found.value - found.limit < 2.2e-5
