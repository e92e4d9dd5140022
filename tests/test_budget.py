"""The budget: terms are named, not negative, and account for the width of the interval."""

import numpy as np
import pytest

import hockeystick as hs
from rows import U, sgm

TERMS = ("aliasing", "truncation", "inner_quadrature", "rounding")
RUNS = {
    "plain": hs.gaussian(5.0) * 100,
    "line": sgm(1.0, 0.01, 1000),
    "sparse": sgm(0.8, 0.001, 30),
    "few": sgm(1.0, 0.01, 3),
    "mixed": sgm(1.0, 0.01, 500) + sgm(1.3, 0.02, 200) + hs.gaussian(20.0) * 5,
}


def terms_of(bound):
    assert tuple(bound.budget.terms) == TERMS
    assert bound.budget.unit == "relative delta"
    return bound.budget.terms


@pytest.mark.parametrize("direction", ["remove", "add", "both"])
@pytest.mark.parametrize("name", RUNS)
def test_delta_terms_account_for_the_width(name, direction):
    try:
        bound = hs.delta(RUNS[name], 0.02 if direction == "add" else 1.0, direction=direction)
    except hs.AccuracyError:
        pytest.skip("not certified: a finding of test_truth, if any")
    terms = terms_of(bound)
    assert all(value >= 0 for value in terms.values())
    total = sum(terms.values())
    if bound.upper == 0:
        assert total == 0
        return
    relative = bound.width / bound.estimate
    # a log of up to 50 nats is known to 4 u (2 + 50) a side, and exp adds 8 u: 424 u on both sides
    assert relative <= 2 * total * (1 + 1e-6) + 500 * U
    # each term moves at least one end of the interval
    assert max(terms.values()) <= relative + 500 * U


@pytest.mark.parametrize("name", RUNS)
def test_eps_terms(name):
    bound = hs.epsilon(RUNS[name], 1e-6)
    terms = terms_of(bound)
    assert all(value >= 0 for value in terms.values())
    assert sum(terms.values()) < 0.5


def test_array_terms_have_the_shape_of_the_query():
    eps = np.linspace(0.5, 3.0, 6).reshape(2, 3)
    bound = hs.delta(RUNS["line"], eps)
    for value in terms_of(bound).values():
        assert value.shape == eps.shape
        assert (value >= 0).all()
    for i in np.ndindex(eps.shape):
        alone = hs.delta(RUNS["line"], float(eps[i]))
        assert (alone.lower, alone.estimate, alone.upper) == (
            bound.lower[i],
            bound.estimate[i],
            bound.upper[i],
        )


def test_exact_answers_have_an_empty_budget():
    bound = hs.delta(hs.compose(), [0.5, -0.5])
    assert all((value == 0).all() for value in terms_of(bound).values())
    assert bound.route == "exact"


def test_repr_names_the_terms():
    text = repr(hs.delta(RUNS["line"], 1.0).budget)
    assert all(name in text for name in TERMS)


@pytest.mark.parametrize("run", [hs.laplace(2.0) * 30, sgm(1.0, 0.01, 1000)])
def test_terms_of_a_grid_are_relative_too(run):
    for target in (1e-4, 1e-12):
        root = hs.epsilon(run, target, route="pld")
        bound = hs.delta(run, root.estimate, route="pld")
        width = bound.width / bound.estimate
        assert 0.1 * width < sum(bound.budget.terms.values()) < 20 * width
        assert sum(bound.budget.terms.values()) < 20 * sum(root.budget.terms.values()) < 10


@pytest.mark.parametrize("eps", [0.5, 1.49, 1.5, 4.2])
def test_terms_of_a_finite_part_are_relative_to_the_whole(eps):
    """Beside infinite losses the finite ones may be next to nothing of delta: at 1.5 they are rounding alone, of which
    the terms were reported relative to these."""
    run = hs.approx_dp(0.5, 1e-6) * 3 + (hs.compose() if eps < 2 else hs.laplace(1.0) * 3)
    bound = hs.delta(run, eps, route="contour")
    total, relative = sum(terms_of(bound).values()), bound.width / bound.estimate
    assert max(terms_of(bound).values()) <= relative + 500 * U
    assert relative <= 2 * total * (1 + 1e-6) + 500 * U
    root = hs.epsilon(run, 4e-6 if eps < 2 else 1e-3, route="contour")
    assert sum(terms_of(root).values()) < 0.5
