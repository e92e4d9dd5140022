"""Runs and bounds as JSON: exact round trips, a fixed layout, and refusal of everything else."""

import json
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import serial

STEP = hs.poisson_subsampled(hs.gaussian(1.1, sensitivity=0.3), 0.01)
RUN = STEP * 1000 + hs.gaussian(1 / 3) * 7


def through_text(what):
    return hs.from_json(hs.to_json(what))


BASE, FIXED = hs.gaussian(2.0, sensitivity=0.5), {"dataset_size": 64, "batch": 16}
CUT = hs.truncated_poisson_subsampled(BASE, 0.1, dataset_size=(100, 120), max_batch=12, assume_fixed_n=True)
ROUNDS = {"iterations": 80, "bands": 4, "dataset_size": 399}
EVERY = [
    hs.laplace(2.0, sensitivity=0.5),
    hs.discrete_gaussian(2.0, sensitivity=3),
    hs.discrete_laplace(5.0),
    hs.approx_dp(0.5, 1e-3),
    hs.bounded_range(0.5),
    hs.random_allocation(BASE, 7),
    hs.balls_and_bins(BASE, 100, epochs=4),
    hs.random_allocation(BASE, 7, participations=2),
    hs.failure(1e-6),
    hs.top_k(0.5, 3),
    hs.top_k([0.1, 0.2, 0.2]),
    hs.select(BASE * 3 + hs.laplace(1.0), mean=10),
    hs.select(BASE, mean=0.5, shape=math.inf),
    hs.select(BASE, mean=5, trials=10),
    hs.with_replacement(BASE, **FIXED),
    hs.without_replacement(BASE, **FIXED),
    hs.shuffled(hs.pure_dp(1.0), 9, bound="stronger_clone"),
    hs.shuffled(hs.k_ary_randomized_response(1.0, 3), 100),
    hs.k_ary_randomized_response(0.3, 7),
    hs.gaussian_mixture(1.0, [0, 1, 2], [0.5, 0.3, 0.2]),
    hs.group(STEP, 5),
    hs.group(hs.cyclic_poisson(BASE, 0.5, **ROUNDS), (0.5, 1.0, 1.5)),
    hs.public_mixture([BASE, hs.poisson_subsampled(hs.laplace(1.0), 0.2)], [0.3, 0.7]),
    hs.from_pmf([0.6, 0.3, 0.1], [0.5, 0.2, 0.3]),
    hs.from_curve([0.1, 0.5], [0.2, 0.05], symmetric=False),
    CUT,
    hs.group(CUT.at(120), 3),
    hs.cyclic_poisson(BASE, 0.5, **ROUNDS, max_batch=40, per_record=True),
    hs.cyclic_poisson(BASE, 0.5, **ROUNDS, column_norms=[1.0, 0.5] * 40),
]
SAMPLED = [hs.poisson_subsampled(step, 0.1) for step in (*EVERY[:5], *EVERY[18:20], *EVERY[22:25])]
WHOLE = hs.compose(*((step, 1 + i) for i, step in enumerate(EVERY + SAMPLED)))


@pytest.mark.parametrize("what", [STEP, hs.gaussian(0.1), RUN, hs.compose(), STEP * 10**12, *EVERY, *SAMPLED, WHOLE])
def test_runs_come_back(what):
    back = through_text(what)
    assert back == what and type(back) is type(what)


def test_every_kind_comes_back():
    """A kind without a step above fails; what is registered by name is tested in test_names.py."""
    assert set(serial.KINDS) - {kind for kind in serial.KINDS if f'"kind": "{kind}"' in hs.to_json(WHOLE)} == {
        "registered"
    }


def test_accountants_remember_every_kind():
    accountant, other = hs.Accountant(), hs.Accountant()
    for i, step in enumerate(EVERY):
        accountant.step(step, i + 1)
    other.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert other.run == accountant.run and [step for step, _ in other.run.parts] == EVERY
    accountant.step(hs.from_loss_cdf(lambda s: 1.0 * (s >= 0), lambda s: 1.0 * (s >= 0)))
    with pytest.raises(hs.DomainError, match="serialise"):
        accountant.state_dict()


def test_layout_of_version_1():
    """Text that an earlier release wrote stays readable: this one is frozen."""
    text = (
        '{"format": "hockeystick.run", "version": 1, "parts": [{"step": {"kind": "poisson_subsampled", '
        '"base": {"kind": "gaussian", "sigma": 1.1, "sensitivity": 0.3}, "q": 0.01}, "count": 1000}, '
        '{"step": {"kind": "gaussian", "sigma": 0.3333333333333333, "sensitivity": 1.0}, "count": 7}]}'
    )
    assert hs.from_json(json.loads(text)) == RUN
    assert hs.to_json(RUN) == text
    text = (
        '{"format": "hockeystick.bound", "version": 1, "lower": 0.5, "estimate": 0.75, "upper": "inf", "route": "prv", '
        '"certified": true, "budget": {"unit": "eps", "terms": {"mesh": 1e-09}}}'
    )
    bound = hs.from_json(json.loads(text))
    assert (bound.lower, bound.estimate, bound.upper, bound.route) == (0.5, 0.75, math.inf, "prv")
    assert bound.certified is True and bound.budget == hs.Budget({"mesh": 1e-9}, "eps")
    assert hs.to_json(bound) == text


def test_recomputed_from_the_ledger():
    assert hs.epsilon(through_text(RUN), 1e-5).upper == hs.epsilon(RUN, 1e-5).upper


@pytest.mark.parametrize("eps", [1.0, [0.5, 1.0], np.ones((2, 3)), []])
def test_bounds_come_back(eps):
    bound = hs.log_delta(RUN, eps)
    back = through_text(bound)
    for end in ("lower", "estimate", "upper"):
        assert np.array_equal(getattr(back, end), getattr(bound, end))
        assert np.shape(getattr(back, end)) == np.shape(getattr(bound, end))
    assert (back.route, back.certified, back.budget.unit) == (bound.route, bound.certified, bound.budget.unit)
    assert back.budget.terms.keys() == bound.budget.terms.keys()
    certain = hs.log_delta(hs.compose(), 1.0)
    assert certain.lower == -math.inf and through_text(certain).lower == -math.inf


def test_equal_parts_merge():
    state = hs.to_dict(STEP * 3)
    state["parts"] *= 2
    assert hs.from_json(state) == STEP * 6


BOUND = hs.to_dict(hs.Bound(0.1, 0.2, 0.3, "x", True, hs.Budget({"a": 0.0})))
BAD = [
    (None, "kind"),
    ([], "kind"),
    ({"format": "other"}, "unknown format"),
    ({"format": ["hockeystick.run"]}, "unknown format"),
    ({"format": "hockeystick.run", "parts": []}, "version"),
    (
        {"format": "hockeystick.run", "version": 1, "parts": [{"step": hs.to_dict(RUN), "count": 1}]},
        "must be a dict with a .kind.",
    ),
    ({"kind": "poisson_subsampled", "base": hs.to_dict(RUN), "q": 0.1}, "must be a dict with a .kind."),
    ({"kind": "gaussian", "sigma": math.nan, "sensitivity": 1.0}, "sigma"),
    ({**BOUND, "lower": 1.0}, "lower <= upper"),
    ({**BOUND, "lower": [0.1]}, "one shape"),
    ({**BOUND, "upper": math.nan}, "upper"),
    ({**BOUND, "upper": "nan"}, "upper"),
    ({**BOUND, "upper": [[0.3], 0.4]}, "upper"),
    ({**BOUND, "certified": 1}, "certified"),
    ({**BOUND, "route": None}, "route"),
    ({**BOUND, "budget": {"unit": "delta"}}, "lacks key 'terms'"),
    ({**BOUND, "budget": {"unit": "delta", "terms": {"a": None}}}, "a must"),
    ({k: v for k, v in BOUND.items() if k != "route"}, "lacks key 'route'"),
]


@pytest.mark.parametrize("state, word", BAD)
def test_bad_state(state, word):
    with pytest.raises(hs.DomainError, match=word):
        hs.from_json(state)


@pytest.mark.parametrize("what", [None, 1, {"kind": "gaussian"}])
def test_what_has_no_form(what):
    with pytest.raises(hs.DomainError, match="cannot serialise"):
        hs.to_json(what)
