"""An accountant of many distinct steps: its moments are those of its list, and can stand without it."""

import copy
import json
import pickle

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import recorded, step_moments

SGD = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)


def some(n, seed=0, q=0.01):
    sigma = np.random.default_rng(seed).uniform(0.9, 1.5, n).tolist()
    return [hs.poisson_subsampled(hs.gaussian(s), q) for s in sigma]


def recorder(steps, **options) -> hs.Accountant:
    accountant = hs.Accountant(**options)
    for step in steps:
        accountant.step(step)
    return accountant


def ends(bound):
    return bound.lower, bound.estimate, bound.upper, bound.route


def test_a_query_after_every_step():
    """The same bits as of the list, before and after the moments take over, and in any order."""
    steps = some(150) + [hs.gaussian(30.0), hs.poisson_subsampled(hs.gaussian(2.0), 0.02)] * 3
    accountant, routes = hs.Accountant(), set()
    for i, step in enumerate(steps):
        accountant.step(step, 40)
        if i % 13 == 0 or i > 148:
            bound, grown = hs.epsilon(accountant.run, 1e-6), accountant.epsilon(1e-6)
            routes.add(bound.route)
            assert ends(bound) == ends(hs.epsilon(hs.compose(*((s, 40) for s in steps[: i + 1])), 1e-6))
            assert grown.lower <= bound.upper and bound.lower <= grown.upper
    assert "compressed" in routes and isinstance(accountant.run, recorded.RecordedRun)
    turned = hs.Accountant()
    for step in reversed(steps):
        turned.step(step, 40)
    assert ends(turned.epsilon(1e-6)) == ends(hs.epsilon(accountant.run, 1e-6)) and turned.run == accountant.run
    assert accountant.steps == 40 * len(steps) == len(accountant)


def test_a_run_that_was_handed_out_stays_as_it_was():
    accountant = recorder(some(100))
    run = accountant.run
    accountant.step(SGD, 1000)
    assert run.steps == 100 and accountant.run.steps == 1100 and len(run.parts) == 100
    assert run == hs.compose(*some(100)) and ends(hs.delta(run, 1.0)) == ends(hs.delta(hs.compose(*some(100)), 1.0))
    assert (run + SGD).steps == 101 and run.steps == 100 and (run + SGD) == hs.compose(run, SGD)
    both = accountant.run + SGD
    accountant.step(SGD)
    assert both.steps == 1101 and both == hs.compose(*some(100), (SGD, 1001)) and accountant.steps == 1101
    assert ends(hs.delta(both, 1.0)) == ends(accountant.delta(1.0))
    for other in (copy.copy(accountant), copy.deepcopy(accountant), pickle.loads(pickle.dumps(accountant))):
        other.step(SGD)
        assert other.steps == 1102 and accountant.steps == 1101
    assert pickle.loads(pickle.dumps(run)) == run and hash(run) == hash(hs.compose(*some(100)))


def test_steps_without_moments():
    """A Laplace step among many Gaussian ones: the list answers."""
    accountant = recorder(some(60))
    assert isinstance(accountant.run, recorded.RecordedRun)
    mixed = accountant.run + hs.laplace(50.0)
    accountant.step(hs.laplace(50.0))
    assert not isinstance(accountant.run, recorded.RecordedRun) and accountant.run == mixed
    accountant.step(SGD)
    assert accountant.steps == 62 and len(accountant.run.parts) == 62


def test_moments_without_the_list():
    """Through JSON, with more steps on top: the same bits; the list is refused, and what moments cannot take."""
    accountant, other = recorder(some(300) * 10), hs.Accountant()
    state = json.loads(json.dumps(accountant.compact_state_dict()))
    assert len(json.dumps(state)) < 20_000
    other.load_state_dict(state)
    for _ in range(2):
        assert ends(other.epsilon(1e-6)) == ends(accountant.epsilon(1e-6)) and other.steps == accountant.steps
        assert ends(other.delta(1.0, direction="add")) == ends(accountant.delta(1.0, direction="add"))
        assert other.compact_state_dict() == accountant.compact_state_dict()
        for each in (other, accountant):
            each.step(SGD, 70)
    assert pickle.loads(pickle.dumps(other)).run == other.run and other.run != accountant.run
    with pytest.raises(hs.DomainError, match="moments alone"):
        other.state_dict()
    with pytest.raises(hs.DomainError, match="takes Gaussian steps"):
        other.step(hs.laplace(1.0))
    assert other.steps == accountant.steps
    known = accountant.epsilon(1e-6)
    for route in ("saddlepoint", "edgeworth"):
        found = other.epsilon(1e-6, route=route)
        assert found.lower <= known.upper and known.lower <= found.upper < 1.2 * known.upper


def test_few_steps_are_not_answered_by_moments():
    accountant, other = recorder([hs.poisson_subsampled(hs.gaussian(0.4), 1e-4)] * 3), hs.Accountant()
    other.load_state_dict(accountant.compact_state_dict())
    assert other.steps == 3
    with pytest.raises(hs.AccuracyError, match="keep the list"):
        other.delta(3.0)


def of_moments(accountant) -> hs.Accountant:
    made = hs.Accountant()
    made.load_state_dict(json.loads(json.dumps(accountant.compact_state_dict())))
    return made


def test_merging_and_taking_back_change_no_bit():
    """Lists and moments in any order, with a step recorded and taken back in between."""
    steps = some(200) + some(100, seed=1, q=0.02) + [hs.gaussian(30.0)] * 2
    whole = recorder([hs.compose(*steps) * 7])
    state, answer = whole.compact_state_dict(), ends(hs.epsilon(whole.run, 1e-6))
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        for make in ((recorder, of_list), (of_list, recorder), (of_list, of_list)):
            parts = [make[i % 2](steps[i::3]) for i in order]
            merged = hs.Accountant()
            for part in parts:
                merged.step(part, 6)
                merged.step(steps[0], 3)
                merged.step(part)
                merged.undo(steps[0], 3)
            assert merged.compact_state_dict() == state and merged.steps == whole.steps
            assert ends(hs.epsilon(merged.run, 1e-6)) == answer
            merged.undo(parts[0], 5)
            merged.step(parts[0] if order[0] else parts[0].run * 5, 5 if order[0] else 1)
            assert merged.compact_state_dict() == state
            for part in parts:
                merged.undo(part, 7)
            assert merged.steps == 0 and merged.run == hs.compose() and merged.state_dict()["parts"] == []


def of_list(steps) -> hs.Accountant:
    return of_moments(recorder(steps))


def test_a_list_that_something_was_taken_back_from():
    steps = some(60)
    accountant = recorder(steps)
    run = accountant.run
    accountant.undo(hs.compose(*steps[5:]))
    assert accountant.run == hs.compose(*steps[:5]) and type(accountant.run) is hs.Run and run.steps == 60
    assert run == hs.compose(*steps)
    accountant.step(hs.laplace(1.0))
    for step in steps[5:]:
        accountant.step(step)
    accountant.undo(hs.laplace(1.0))
    assert isinstance(accountant.run, recorded.RecordedRun) and accountant.run == run
    assert accountant.compact_state_dict() == recorder(steps).compact_state_dict()
    with pytest.raises(hs.DomainError, match="was recorded 1 times: 2 cannot be taken back"):
        accountant.undo(steps[3] + SGD, 2)
    with pytest.raises(hs.DomainError, match="was recorded 0 times"):
        accountant.undo(SGD)
    assert accountant.run == run
    limited = recorder(steps, limit=(2.0, 1e-6))
    left = limited.steps_left(SGD)
    limited.step(SGD, left)
    limited.undo(SGD, 2)
    assert limited.steps_left(SGD) == 2


def test_moments_are_a_run():
    """They compose, repeat and pass through JSON as other runs; what they cannot take changes nothing."""
    accountant = recorder([step * 40 for step in some(100)])
    run = of_moments(accountant).run
    assert hs.from_json(hs.to_json(run)) == run == hs.from_dict(accountant.compact_state_dict()) and not run.listed
    assert hs.from_json(hs.to_json(of_moments(accountant))) == run
    assert run * 3 == run + run + run == hs.compose((run, 2), run) == hs.compose(accountant.run, run, accountant)
    assert ends(hs.delta(run * 2 + SGD, 1.0)) == ends(hs.delta(accountant.run * 2 + SGD, 1.0))
    alone = of_moments(accountant)
    for refused in (hs.laplace(1.0), hs.laplace(2.0) * 3):
        with pytest.raises(hs.DomainError, match="Gaussian steps"):
            hs.compose(run, refused)
        with pytest.raises(hs.DomainError, match="Gaussian steps"):
            alone.step(refused)
        with pytest.raises(hs.DomainError, match="Gaussian steps"):
            alone.undo(refused)
    with pytest.raises(hs.DomainError, match="not recorded"):
        alone.undo(hs.poisson_subsampled(hs.gaussian(5.0), 0.01))
    with pytest.raises(hs.DomainError, match="not recorded"):
        alone.undo(accountant, 2)
    with pytest.raises(hs.DomainError, match="at most 4"):
        alone.step(run * 10**12, 10**12)
    mixed = recorder([hs.laplace(1.0)])
    with pytest.raises(hs.DomainError, match="Gaussian steps"):
        mixed.step(run)
    limited = recorder([], limit=(12.0, 1e-6))
    with pytest.raises(hs.LimitError):
        limited.step(run, 1000)
    assert alone.run == run and mixed.run == hs.compose(hs.laplace(1.0)) and not limited.steps
    limited.step(run)
    left = limited.steps_left(run)
    assert left and not limited.would_exceed(run * left) and limited.would_exceed(run * (left + 1))


def test_a_ledger_only_grows(tmp_path):
    with hs.Accountant(tmp_path / "ledger") as ledger:
        ledger.step(recorder(some(50)))
        for refused in (ledger.undo, lambda less: ledger.step(of_list([less]))):
            with pytest.raises(hs.DomainError, match="ledger"):
                refused(SGD)
        assert ledger.steps == 50


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.update(version=2),
        lambda s: s.update(more=1),
        lambda s: s.pop("rates"),
        lambda s: s["rates"][0].update(q=0.0),
        lambda s: s["rates"][0].pop("boxes"),
        lambda s: s["rates"][0]["boxes"][0].update(box=320),
        lambda s: s["rates"][0]["boxes"][0].update(box=3.0),
        lambda s: s["rates"][0].update(q=1e-13),
        lambda s: s["rates"][0].update(more=1),
        lambda s: s["rates"][0]["boxes"][0]["sums"].pop(),
        lambda s: s["rates"][0]["boxes"][0]["sums"].__setitem__(0, 5),
        lambda s: s["rates"][0]["boxes"][0]["sums"].__setitem__(0, 1 << 128),
        lambda s: s["rates"][0]["boxes"][0]["sums"].__setitem__(3, 1 << 70),
        lambda s: s["rates"].append(s["rates"][0]),
        lambda s: s.update(cells=[{"cell": 5, "box": 3, "sums": [1 << 110] + [0] * 159}]),  # and a rate below 1
        lambda s: s.update(rates=[], cells=[{"cell": 5, "box": 3, "sums": [1 << 110] + [0] * 158}]),
        lambda s: s.update(rates=[], cells=[{"cell": 5, "box": 3, "sums": [1 << 109] + [0] * 159}]),
        lambda s: s.update(rates=[], cells=[{"cell": 1280, "box": 3, "sums": [1 << 110] + [0] * 159}]),
        lambda s: s.update(rates=[], cells=[{"cell": 5, "box": 3, "sums": [1 << 110, 1 << 111] + [0] * 158}]),
        lambda s: s.update(rates=[], cells=2 * [{"cell": 5, "box": 3, "sums": [1 << 110] + [0] * 159}]),
    ],
)
def test_moments_that_are_none(spoil):
    accountant = recorder(some(60))
    state = json.loads(json.dumps(accountant.compact_state_dict()))
    spoil(state)
    kept = recorder([SGD])
    with pytest.raises(hs.DomainError):
        kept.load_state_dict(state)
    assert kept.run == SGD * 1


def many_rates(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = zip(rng.uniform(1, 2, n).tolist(), rng.uniform(0.01, 0.03, n).tolist(), strict=True)
    return [hs.poisson_subsampled(hs.gaussian(s), q) for s, q in rows] + [hs.gaussian(40.0), hs.gaussian(41.0)]


def test_more_rates_than_are_kept_apart():
    """Order, merging, taking back and JSON change no bit, whenever the rates became too many."""
    steps = many_rates(step_moments.RATES_MAX + 200)
    one, other, both = recorder(steps), recorder(reversed(steps)), recorder(steps[:150])
    assert one.run._moments.cells and list(one.run._moments.sums) == [1.0]
    both.step(recorder(steps[150:]), 1)
    gathered = step_moments.StepMoments()
    rows = np.array([recorded.row_of(step) for step in steps])
    gathered.add_many(rows[:, 0].copy(), rows[:, 1].copy(), None)
    counts = one.run._moments.counts()
    assert counts == gathered.counts() and min(counts) > 0.01 and sum(counts.values()) == len(steps)
    state = one.compact_state_dict()
    assert state == other.compact_state_dict() == both.compact_state_dict() and gathered == one.run._moments
    loaded = hs.Accountant()
    loaded.load_state_dict(json.loads(json.dumps(state)))
    assert loaded.compact_state_dict() == state and loaded.steps == len(steps)
    more = some(9, q=0.5)
    for accountant in (loaded, one):
        for step in more:
            accountant.step(step, 10**12 if accountant is one else 7)
        accountant.undo(hs.compose(*more), 10**12 if accountant is one else 7)
        assert accountant.compact_state_dict() == state
    with pytest.raises(hs.DomainError, match="not recorded"):
        loaded.undo(more[0])
    one.undo(hs.compose(*steps[200:]))
    few = recorder(steps[:200])
    assert one.compact_state_dict() == few.compact_state_dict() and not few.run._moments.cells


def test_rates_at_the_border():
    """A plain step is one more rate, first or last; what was never recorded is not taken back where its rate would be
    one too many; what goes again leaves the rates of the others apart."""
    steps = many_rates(step_moments.RATES_MAX)[:-2]
    first, last = recorder([hs.gaussian(40.0), *steps]), recorder([*steps, hs.gaussian(40.0)])
    assert first.compact_state_dict() == last.compact_state_dict() and first.run._moments.cells
    alone = hs.Accountant()
    alone.load_state_dict(recorder(steps).compact_state_dict())
    assert not alone.run._moments.cells
    with pytest.raises(hs.DomainError, match="not recorded"):
        alone.undo(hs.poisson_subsampled(hs.gaussian(1.5), 0.5))
    few = hs.Accountant()
    few.load_state_dict(recorder(steps[:200]).compact_state_dict())
    before = few.run
    few.step(hs.compose(*steps[200:], hs.gaussian(40.0)))
    assert few.run._moments.cells
    few.undo(hs.compose(*steps[200:], hs.gaussian(40.0)))
    assert few.run == before and few.compact_state_dict() == hs.to_dict(before)


def test_nothing_recorded_is_a_compact_state():
    nothing = hs.Accountant()
    nothing.load_state_dict(hs.Accountant().compact_state_dict())
    assert nothing.steps == 0 and not nothing.run.parts


def test_moments_of_many_rates_answer():
    """A run of which the moments alone are known, asked as the one with the list."""
    steps = many_rates(400)
    whole, alone = recorder(steps), hs.Accountant()
    whole.step(whole, 40)
    alone.load_state_dict(whole.compact_state_dict())
    assert not alone.run.listed
    for delta in (1e-5, 1e-9):
        found, exact = alone.epsilon(delta), hs.epsilon(hs.compose(*((step, 41) for step in steps)), delta)
        assert max(found.lower, exact.lower) <= min(found.upper, exact.upper)
        assert found.upper - found.lower <= 1e-9 * found.upper
    with pytest.raises(hs.AccuracyError, match="keep the list"):
        alone.epsilon(1e-5, adjacency="replace_one")


@pytest.mark.parametrize("seed", range(3))
def test_asked_after_every_step_of_a_rate_of_its_own(seed):  # [theory: line.kept, compression.cells]
    """Lines are kept of such runs, too: a question costs one new step, and meets the sum over all."""
    steps = many_rates(700, seed)
    accountant = recorder(steps[:280])
    for i, step in enumerate(steps[280:]):
        accountant.step(step, 3)
        found = accountant.epsilon(1e-6)
        if i % 140 == 70:
            exact = hs.epsilon(hs.compose(*accountant.run.parts), 1e-6)
            assert max(found.lower, exact.lower) <= min(found.upper, exact.upper)
    assert len(accountant._lines._kept) >= 1


def test_what_is_left_of_moments_alone():
    """An accountant that has loaded moments, and no list, says how many steps fit, as the one with the list does."""
    step, whole, moments = hs.poisson_subsampled(hs.gaussian(1.0), 0.01), hs.Accountant(), hs.Accountant()
    for i in range(300):
        whole.step(hs.poisson_subsampled(hs.gaussian(1 + i / 600), 0.01), 100)
    moments.load_state_dict(whole.compact_state_dict())
    left = [each.steps_left(step, eps=12.0, delta=1e-6) for each in (whole, moments)]
    assert left[0] == left[1] > 0
