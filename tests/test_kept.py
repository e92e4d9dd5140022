"""Lines that are kept while a run grows: against the sums over all steps, at every turn that a run can take."""

import math
import pickle

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import contour, kept
from hockeystick.what.pair import gaussian_steps, paired_steps


def stream(seed: int, n: int, low: float, high: float, q, most: int = 1):
    """(step, count) of n distinct steps."""
    rng = np.random.default_rng(seed)
    sigma = np.exp(rng.uniform(math.log(low), math.log(high), n)).tolist()
    rates = rng.choice(np.atleast_1d(np.asarray(q, dtype=float)), n).tolist()
    counts = rng.integers(1, most + 1, n).tolist()
    steps = (hs.poisson_subsampled(hs.gaussian(s if r < 1 else 60 * s), r) for s, r in zip(sigma, rates, strict=True))
    return list(zip(steps, counts, strict=True))


def meet(a, b) -> bool:
    return bool(a.lower <= b.upper and b.lower <= a.upper)


STREAMS = {
    "narrow": (250, 0.9, 1.3, 0.01, 3, 1e-6, 1.0),
    "wide": (160, 0.6, 5, 0.02, 20, 1e-7, 2.0),
    "rates, some of them 1": (220, 1, 3, (0.01, 0.05, 1), 9, 1e-5, 1.5),
    "dense": (220, 2, 6, 0.5, 2, 1e-4, 3.0),
    "sparse": (110, 0.8, 1.6, 1e-3, 30, 1e-7, 0.5),
}


@pytest.mark.parametrize("name", STREAMS)
def test_asked_after_every_step(name):  # [theory: line.kept, compression.above]
    """The intervals of a growing accountant meet those of all steps on a line of their own, and are as narrow."""
    n, low, high, q, most, delta, eps = STREAMS[name]
    accountant = hs.Accountant()
    for i, (step, count) in enumerate(stream(n, n, low, high, q, most)):
        accountant.step(step, count)
        if i < 60:
            continue
        root, point = accountant.epsilon(delta), accountant.delta(eps)
        if i % 47 == 0:
            steps = gaussian_steps(hs.compose(*accountant.run.parts), "add_remove")
            wholes = [contour.root(steps, add, math.log(delta)) for add in (0, 1)]
            whole = max(wholes, key=lambda one: one.upper)
            assert root.lower <= whole.upper and whole.lower <= root.upper
            assert root.upper - root.lower <= 4 * (whole.upper - whole.lower) + 1e-9 * whole.upper
            whole = max((contour.point(steps, add, eps) for add in (0, 1)), key=lambda one: one.upper).of_delta()
            assert point.lower <= whole.upper and whole.lower <= point.upper
            width = whole.upper - whole.lower
            most = 2e-9 if width <= 1e-9 * whole.upper else 2e-8  # of those that do not meet the goal a rule is wider
            assert point.upper - point.lower <= max(4 * width, most * whole.upper)


@pytest.mark.parametrize(("n", "q"), [(150, 0.01), (90, (0.02, 0.1, 1)), (70, 1)])
def test_replaced_records(n, q):  # [theory: line.kept, compression.pair]
    """The same where a sampled step is a two-sided pair and a plain one has twice the shift, against sums of pairs."""
    accountant = hs.Accountant(adjacency="replace_one")
    for i, (step, count) in enumerate(stream(n, n, 1, 3, q, 5)):
        accountant.step(step, count)
        if i < 20:
            continue
        root, point = accountant.epsilon(1e-6), accountant.delta(1.5)
        if i % 29 == 0:
            paired = paired_steps(hs.compose(*accountant.run.parts), "replace_one", False)
            whole, at = contour.pair_root(paired, 0, 1e-6), contour.pair_point(paired, 0, 1.5).of_delta()
            assert meet(root, whole) and meet(point, at)
            assert root.upper - root.lower <= 4 * (whole.upper - whole.lower) + 1e-9 * whole.upper
            assert point.upper - point.lower <= max(4 * (at.upper - at.lower), 1e-8 * at.upper)
    assert accountant._lines._kept
    assert meet(accountant.epsilon(1e-6, adjacency="add_remove"), hs.epsilon(accountant.run, 1e-6))


def test_lines_are_made_seldom(monkeypatch):
    """What is new is added: 1,000 steps, each with two questions, take some dozens of lines."""
    made = []
    for name in ("kept_make", "contour_ask"):
        ask = getattr(_core, name)
        monkeypatch.setattr(_core, name, lambda *a, ask=ask, name=name, **o: (made.append(name), ask(*a, **o))[1])
    steps = stream(3, 2200, 0.9, 1.3, 0.01)
    accountant = hs.Accountant()
    for step, _ in steps[:1200]:
        accountant.step(step)
    for step, _ in steps[1200:]:
        accountant.step(step)
        accountant.epsilon(1e-6)
        accountant.delta(1.5)
    assert 2 <= made.count("kept_make") <= 20 and len(made) < 40


@pytest.mark.parametrize(("low", "high", "delta", "width"), [(1.0, 1.2, 1e-5, 1e-8), (0.8, 1.1, 1e-9, 1e-6)])
def test_a_sparse_start_keeps_its_line(low, high, delta, width, monkeypatch):
    """A tenth of a record is expected in all samples: lines of hundreds of nodes, which miss their goal by a little or,
    far out, by decades."""
    made = []
    for name in ("kept_make", "contour_ask"):
        ask = getattr(_core, name)
        monkeypatch.setattr(_core, name, lambda *a, ask=ask, name=name, **o: (made.append(name), ask(*a, **o))[1])
    accountant = hs.Accountant()
    for i, (step, _) in enumerate(stream(5, 200, low, high, 1e-3)):
        accountant.step(step)
        if i >= 98:
            bound = accountant.epsilon(delta)
            assert bound.upper - bound.lower <= width * bound.upper
    assert "kept_make" in made and len(made) < 30
    whole = hs.epsilon(hs.compose(*accountant.run.parts), delta)
    assert meet(whole, bound)


def test_a_run_has_the_same_bits_whatever_was_asked():
    steps = stream(4, 150, 1, 2, 0.02, 40)
    asked, silent = hs.Accountant(), hs.Accountant()
    for step, count in steps:
        asked.step(step, count)
        asked.epsilon(1e-6)
        asked.would_exceed(step, eps=1.0, delta=1e-6)
    for step, count in reversed(steps):
        silent.step(step, count)
    one, other = (hs.epsilon(accountant.run, 1e-6) for accountant in (asked, silent))
    assert (one.lower, one.estimate, one.upper) == (other.lower, other.estimate, other.upper)
    assert meet(asked.epsilon(1e-6), one)


@pytest.mark.parametrize(
    ("n", "low", "high", "q", "most", "delta", "off"),
    [(300, 1, 2, 0.02, 9, 1e-6, 1), (3000, 1, 2, 0.01, 9, 1e-6, 0.6), (1000, 2, 5, 0.3, 2, 1e-4, 0.6)],
)
def test_the_other_direction_is_bounded(n, low, high, q, most, delta, off):  # [theory: line.kept, saddle.any-eps]
    """What a line says of the other direction is no less than that direction's certified lower end, for rules and for
    steps as they are; and little more, also after as many steps again as a fifth."""
    work = np.empty(max(_core.KEPT_WORK, _core.contour_work(n)))
    first, more = hs.compose(*stream(7, n, low, high, q, most)), stream(8, n // 5, low, high, q, most)
    rows = np.vstack([np.array([1 / step.base.sigma, step.q, count]) for step, count in more])
    plain = np.array([[0.02, 1.0, 200.0]])
    rule = next(iter(kept.Question(first, "add_remove", True, None, 1).narrower_rules))
    for steps in (gaussian_steps(first, "add_remove"), rule.steps):
        for add, new in ((0, rows[:0]), (0, rows), (1, rows), (0, plain)):
            memory = np.empty(_core.KEPT_ROOM)
            assert _core.kept_make(steps, add, 0, math.log(delta), 1e-9, 30.0, memory, work) == 0
            found, below = _core.kept_ask(memory, new, len(new), 0, math.log(delta), False, work)
            assert found.status == 0
            added = [hs.gaussian(1 / plain[0, 0]) * 200] if new is plain else more if len(new) else []
            whole = gaussian_steps(hs.compose(first, *added), "add_remove")
            other = contour.point(whole, 1 - add, found.lower)
            assert other.lower <= below <= other.upper + (1.5 if add or new is plain else off)
            assert meet(found.certified("contour"), contour.root(whole, add, math.log(delta)))


def test_add_is_proved_the_smaller(monkeypatch):
    """What the line of REMOVE knows of ADD spares nearly all questions of ADD's own."""
    asked, ask, again = [], kept.Lines.ask, kept.Lines.again
    monkeypatch.setattr(kept.Lines, "ask", lambda *a: (asked.append(a[3]), ask(*a))[1])

    def noted(*arguments):
        found = again(*arguments)
        asked.extend(["again"] if found else [])
        return found

    monkeypatch.setattr(kept.Lines, "again", noted)
    accountant = hs.Accountant()
    for i, (step, count) in enumerate(stream(8, 900, 0.9, 1.8, 0.01, 9)):
        accountant.step(step, count)
        if i >= 400:
            accountant.epsilon(1e-6)
    assert asked.count(1) <= 5
    assert asked.count("again") >= 480 and asked.count(0) == 500 - asked.count("again")


def test_questions_about_more_than_was_recorded():
    accountant = hs.Accountant()
    steps = stream(9, 215, 1, 1.5, 0.01, 5)
    for step, count in steps[:200]:
        accountant.step(step, count)
    for step, count in steps[200:]:
        run, at = accountant.run, accountant.epsilon(1e-5).estimate
        for more, n in ((step, 1), (step, 40), (hs.gaussian(50.0), 1)):
            before = hs.compose(run, (more, n))
            whole = contour.point(gaussian_steps(hs.compose(*before.parts), "add_remove"), 0, at).of_delta()
            near = whole.upper * (1 + 1e-8), whole.lower * (1 - 1e-8)
            assert [accountant.would_exceed(more if n == 1 else more * n, eps=at, delta=d) for d in near] == [
                False,
                True,
            ]
        accountant.step(step, count)


def test_limits_are_kept_by_lines():
    """An accountant with a limit refuses at the same step as one that sums up all steps each time."""
    steps = stream(10, 300, 1, 1.4, 0.01)
    accountant = hs.Accountant(limit=(0.7, 1e-5))
    done = 130
    accountant.step(hs.compose(*steps[:done]))
    with pytest.raises(hs.LimitError):
        for step, _ in steps[done:]:
            accountant.step(step)
            done += 1
    assert 140 < done < 299
    within, beyond = (hs.compose(*steps[:n]) for n in (done, done + 1))
    assert hs.delta(within, 0.7).upper <= 1e-5 < hs.delta(beyond, 0.7).upper


def test_runs_of_another_time():
    """A run that was handed out before further steps, copies and pickles are asked on their own."""
    accountant = hs.Accountant()
    steps = stream(11, 90, 1, 1.5, 0.02, 9)
    for step, count in steps[:70]:
        accountant.step(step, count)
    old = accountant._asked()
    first = accountant.epsilon(1e-6)
    for step, count in steps[70:]:
        accountant.step(step, count)
        now = accountant.epsilon(1e-6)
    assert now.lower > first.upper and meet(hs.epsilon(old, 1e-6), first)
    assert meet(pickle.loads(pickle.dumps(accountant)).epsilon(1e-6), now)
    assert meet(hs.epsilon(pickle.loads(pickle.dumps(old)), 1e-6), first)


def test_steps_that_lines_miss(monkeypatch):
    """A step that comes while a line is asked, as in a signal handler, and one more than there is room for."""
    accountant = hs.Accountant()
    steps = stream(12, 200, 1, 1.5, 0.02, 9)
    for step, count in steps[:100]:
        accountant.step(step, count)
    for _ in range(2):
        accountant.epsilon(1e-6)
    ask, late = _core.kept_ask, iter(steps[100:140])

    def interrupted(*arguments):
        accountant.step(*next(late))
        return ask(*arguments)

    monkeypatch.setattr(_core, "kept_ask", interrupted)
    for _ in range(30):
        accountant.epsilon(1e-6)
    monkeypatch.setattr(_core, "kept_ask", ask)
    assert meet(accountant.epsilon(1e-6), hs.epsilon(accountant.run, 1e-6))
    monkeypatch.setattr(_core, "KEPT_MORE", 8)
    accountant._lines = None
    for step, count in steps[140:]:
        accountant.step(step, count)
        assert meet(accountant.epsilon(1e-6), hs.epsilon(accountant.run, 1e-6))


def test_more_than_a_line_takes_in():
    """More steps between two questions than a line has room for: it answers no more, also what is only thought of."""
    accountant = hs.Accountant()
    steps = [step for step, _ in stream(13, 60, 0.8, 5, 0.01)]
    for step in steps:
        accountant.step(step, 100)
    eps, more = 2.0, hs.compose(*steps * 19)
    before, after = hs.delta(accountant.run, eps), hs.delta(accountant.run + more, eps)
    level = math.sqrt(before.upper * after.lower)
    assert 1.1 * before.upper < level
    assert not any(accountant.would_exceed(steps[0], eps=eps, delta=level) for _ in range(3))
    for step in steps * 19:
        accountant.step(step)
    assert accountant._lines._kept
    for step in steps[:3]:
        assert accountant.would_exceed(step, eps=eps, delta=level)
        accountant.step(step)
    assert accountant._lines._kept
    assert not accountant.would_exceed(step, eps=eps, delta=1.2 * after.upper)


def test_the_gate_of_kept_lines():
    steps = gaussian_steps(hs.compose(*stream(13, 60, 1, 1.5, 0.02, 9)), "add_remove")
    work = np.empty(max(_core.KEPT_WORK, _core.contour_work(60)))
    memory = np.empty(_core.KEPT_ROOM)
    asked = steps, 0, 0, -10.0, 1e-9, 30.0
    assert _core.kept_make(*asked, memory, np.empty(10)) > 1
    assert _core.kept_make(*asked, memory, work, sides=2) > 1  # of replaced records these would be pairs
    assert _core.kept_make(*asked, memory, work) == 0
    row = np.array([[0.5, 0.01, 1.0]])
    found, below = _core.kept_ask(memory, np.repeat(row, 2000, axis=0), 0, 0, -10.0, False, work)
    assert found.status not in (0, 1) and below == math.inf
    assert _core.kept_ask(memory, row, 1, 0, -10.0, False, work)[0].status == 0
    with pytest.raises(hs.DomainError):
        _core.kept_ask(memory[:9], row, 1, 0, -10.0, False, work)
    with pytest.raises(hs.DomainError):
        _core.kept_ask(memory, row[:, :2].copy(), 1, 0, -10.0, False, work)


def test_beyond_the_largest_loss():
    """Where eps is beyond all losses of ADD, that direction is not asked; the answer is that of both."""
    accountant = hs.Accountant()
    for step, count in stream(14, 60, 0.9, 1.1, 0.001, 2):
        accountant.step(step, count)
    for step, count in stream(15, 8, 0.9, 1.1, 0.001, 2):
        accountant.step(step, count)
        found = accountant.epsilon(1e-7)
        assert found.lower > -math.log1p(-0.001) * accountant.steps and meet(found, hs.epsilon(accountant.run, 1e-7))
