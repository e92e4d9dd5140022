"""Accountant: recording, merging, and the state's round trip through JSON."""

import copy
import json
import pickle
import sys
import threading

import hypothesis.strategies as st
import pytest
from hypothesis import given

import hockeystick as hs
from hockeystick import query
from hockeystick.what import mechanism

SIGMAS = st.floats(1e-3, 1e9)
QS = st.floats(1e-12, 1.0)
STEPS = st.builds(lambda s, q: hs.poisson_subsampled(hs.gaussian(s), q), SIGMAS, QS) | st.builds(
    lambda ratio, c: hs.gaussian(ratio * c, sensitivity=c), st.floats(0.01, 100), st.floats(1e-5, 1e5)
)
PARTS = st.lists(st.tuples(STEPS, st.integers(1, 10**9)), max_size=8)

GAUSSIAN = {"kind": "gaussian", "sigma": 1.0, "sensitivity": 1.0}
SUBSAMPLED = {"kind": "poisson_subsampled", "base": GAUSSIAN, "q": 0.01}
PART = {"step": SUBSAMPLED, "count": 7}
STATE = {"format": "hockeystick.accountant", "version": 1, "parts": [PART]}


def recorded(parts):
    accountant = hs.Accountant()
    for step, k in parts:
        accountant.step(step, k)
    return accountant


def changed(state, *path, **edit):
    """A copy of `state` with the entries `edit` put into the dict at `path`; None deletes."""
    state = copy.deepcopy(state)
    inner = state
    for key in path:
        inner = inner[key]
    for key, value in edit.items():
        if value is None:
            del inner[key]
        else:
            inner[key] = value
    return state


@given(PARTS)
def test_recording_is_composing(parts):
    accountant = recorded(parts)
    assert accountant.run == hs.compose(*parts)
    assert accountant.run.parts == hs.compose(*parts).parts
    assert accountant.steps == len(accountant) == sum(k for _, k in parts)


@given(PARTS)
def test_state_is_exact_through_json(parts):
    accountant = recorded(parts)
    state = accountant.state_dict()
    assert json.loads(json.dumps(state)) == state
    again = hs.Accountant()
    again.step(hs.gaussian(3.0), 5)  # replaced by the load
    again.load_state_dict(json.loads(json.dumps(state, allow_nan=False)))
    assert again.run.parts == accountant.run.parts
    assert again.state_dict() == state


def test_equal_steps_merge_and_the_run_is_kept():
    accountant = hs.Accountant()
    step = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
    for _ in range(1000):
        accountant.step(hs.poisson_subsampled(hs.gaussian(1.0), 0.01))
    assert accountant.run == step * 1000
    assert accountant.run is accountant.run
    before = accountant.run
    accountant.step(step)
    assert before.steps == 1000 and accountant.steps == 1001


def test_a_run_is_recorded_whole():
    run = hs.compose((hs.gaussian(1.0), 2), (hs.gaussian(2.0), 3))
    accountant = hs.Accountant()
    accountant.step(run, 10)
    accountant.step(hs.gaussian(2.0))
    assert accountant.run.parts == ((hs.gaussian(1.0), 20), (hs.gaussian(2.0), 31))


def test_empty():
    accountant = hs.Accountant()
    assert accountant and len(accountant) == 0 and accountant.run == hs.compose()
    assert accountant.state_dict()["parts"] == []
    assert accountant.epsilon(1e-5).upper == 0
    assert "empty" in repr(accountant)


def test_queries_are_those_of_the_run():
    step = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
    accountant = recorded([(step, 300)])
    for mine, theirs in (
        (accountant.epsilon(1e-5, direction="add"), query.epsilon(step * 300, 1e-5, direction="add")),
        (accountant.delta(0.5), query.delta(step * 300, 0.5)),
    ):
        assert (mine.lower, mine.estimate, mine.upper) == (theirs.lower, theirs.estimate, theirs.upper)
        assert mine.lower <= mine.estimate <= mine.upper


@pytest.mark.parametrize("k", [0, -1, 1.0, 1.5, True, "3", None, float("nan"), 10**13])
def test_bad_counts_record_nothing(k):
    accountant = recorded([(hs.gaussian(1.0), 2)])
    with pytest.raises(hs.DomainError, match="steps must be"):
        accountant.step(hs.gaussian(1.0), k)
    assert accountant.steps == 2


def test_an_overflowing_total_records_nothing():
    accountant = recorded([(hs.gaussian(2.0), 10**12)])
    with pytest.raises(hs.DomainError, match="total count"):
        accountant.step(hs.compose(hs.gaussian(1.0), hs.gaussian(2.0)))
    assert accountant.run.parts == ((hs.gaussian(2.0), 10**12),)


@pytest.mark.parametrize("what", [1.0, None, "gaussian", (), object()])
def test_what_is_no_step_is_refused(what):
    with pytest.raises(hs.DomainError, match="expected a mechanism"):
        hs.Accountant().step(what)


BAD_STATES = [
    (None, "must be a dict"),
    ([], "must be a dict"),
    ({}, "format None"),
    (changed(STATE, format="opacus"), "'opacus'.*'hockeystick.accountant'"),
    (changed(STATE, version=None), "version None"),
    (changed(STATE, version=2), "version 2.*reads up to 1"),
    (changed(STATE, version=1.0), "version 1.0"),
    (changed(STATE, version=True), "version True"),
    (changed(STATE, parts=None), "lacks key 'parts'"),
    (changed(STATE, extra=1), "unknown key 'extra'; allowed: format, version, parts"),
    (changed(STATE, parts={}), "must be a list"),
    (changed(STATE, parts=[PART, 3]), r"parts\[1\].*must be a dict"),
    (changed(STATE, "parts", 0, count=None), "lacks key 'count'"),
    (changed(STATE, "parts", 0, k=1), "unknown key 'k'; allowed: step, count"),
    (changed(STATE, "parts", 0, count=0), r"parts\[0\].*got 0"),
    (changed(STATE, "parts", 0, count=1.0), "got 1.0"),
    (changed(STATE, "parts", 0, count=True), "got True"),
    (changed(STATE, parts=[PART, changed(PART, count=10**12)]), r"parts\[1\].*total count"),
    (changed(STATE, "parts", 0, step=3), 'dict with a "kind"'),
    (changed(STATE, "parts", 0, "step", kind=None), 'dict with a "kind"'),
    (changed(STATE, "parts", 0, "step", kind="laplacian"), "'laplacian'; allowed: gaussian"),
    (changed(STATE, "parts", 0, "step", kind=["gaussian"]), "unknown kind"),
    (changed(STATE, "parts", 0, "step", q=None), "lacks key 'q'"),
    (changed(STATE, "parts", 0, "step", rate=0.1), "unknown key 'rate'"),
    (changed(STATE, "parts", 0, "step", q="0.1"), "got '0.1'"),
    (changed(STATE, "parts", 0, "step", q=float("nan")), "got nan"),
    (changed(STATE, "parts", 0, "step", q=0), "q .*got 0"),
    (changed(STATE, "parts", 0, "step", q=True), "got True"),
    (changed(STATE, "parts", 0, "step", base=1.0), "takes one step"),
    (changed(STATE, "parts", 0, "step", base=SUBSAMPLED), "takes one step"),
    (changed(STATE, "parts", 0, "step", "base", sigma=-1.0), "sigma .*-1"),
    (changed(STATE, "parts", 0, "step", "base", sigma=float("inf")), "sigma .*inf"),
    (changed(STATE, "parts", 0, "step", "base", sensitivity=0.0), "sensitivity .*0.0"),
    (changed(STATE, "parts", 0, "step", "base", sensitivity=None), "lacks key 'sensitivity'"),
]


@pytest.mark.parametrize(("state", "message"), BAD_STATES)
def test_a_refused_state_changes_nothing(state, message):
    accountant = recorded([(hs.gaussian(1.0), 2)])
    run = accountant.run
    with pytest.raises(hs.DomainError, match=message):
        accountant.load_state_dict(state)
    assert accountant.run == run and accountant.steps == 2
    if isinstance(state, dict) and state.get("format") == STATE["format"]:  # the same of a run
        with pytest.raises(hs.DomainError, match=message):
            hs.from_json(state | {"format": "hockeystick.run"})


def test_equal_parts_of_a_state_merge():
    accountant = hs.Accountant()
    accountant.load_state_dict(changed(STATE, parts=[PART, PART]))
    assert accountant.run.parts == ((hs.poisson_subsampled(hs.gaussian(1.0), 0.01), 14),)


def test_a_step_without_a_row_is_refused():
    class Unknown(mechanism.Mechanism):
        __slots__ = ()

    with pytest.raises(hs.DomainError, match=r"cannot serialise .*gaussian"):
        recorded([(Unknown(), 1)]).state_dict()


def in_threads(n, work):
    """Run work(i) in n threads at once; the errors that they raised."""
    errors, start = [], threading.Barrier(n)

    def call(i):
        try:
            start.wait()
            work(i)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize(("interval", "each"), [(None, 20_000), (1e-6, 3_000)])
def test_threads_lose_no_step(interval, each):
    accountant, steps = hs.Accountant(), [hs.gaussian(1.0), hs.gaussian(2.0)]

    def record(i):
        for j in range(each):
            accountant.step(steps[j % 2])

    before = sys.getswitchinterval()
    sys.setswitchinterval(interval or before)
    try:
        assert in_threads(8, record) == []
    finally:
        sys.setswitchinterval(before)
    assert accountant.run == hs.compose((steps[0], 4 * each), (steps[1], 4 * each)) and accountant.steps == 8 * each


def test_a_run_holds_every_step_that_was_recorded_before_it():
    """Also while other threads record distinct steps, read the run, save and load."""
    accountant = hs.Accountant()
    other = hs.Accountant()

    def record(i):
        for j in range(100):
            step = hs.gaussian(1.0 + i + j / 1000)
            accountant.step(step)
            assert any(part == step for part, _ in accountant.run.parts)
            other.load_state_dict(accountant.state_dict())
            assert len(accountant) > j and accountant.steps > j
            pickle.loads(pickle.dumps(accountant))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert in_threads(4, record) == []
    finally:
        sys.setswitchinterval(before)
    assert accountant.steps == 400 and len(accountant.run.parts) == 400


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_a_copy_records_apart(duplicate):
    accountant = recorded([(hs.gaussian(1.0), 3)])
    run = accountant.run
    again = duplicate(accountant)
    again.step(hs.gaussian(2.0))
    assert accountant.run is run and again.run == hs.compose((hs.gaussian(1.0), 3), hs.gaussian(2.0))
