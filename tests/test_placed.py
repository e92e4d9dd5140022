"""Lines at fixed places of delta: against lines of a question's own, whatever was asked before."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import contour, placed
from hockeystick.what.pair import gaussian_steps

RUNS = {
    "one rate": (300, (1, 2), (0.01,), 40),
    "dense": (100, (3, 30), (0.4,), 5),
    "some rates, one of them 1": (120, (1, 3), (0.005, 0.02, 1), 100),
    "sparse": (90, (0.8, 1.5), (1e-3,), 300),
    "few of each": (60, (0.6, 4), (0.05, 0.1), 1),
}


def run_of(name: str) -> hs.Run:
    n, (low, high), rates, most = RUNS[name]
    rng = np.random.default_rng(len(name))
    rate = rng.choice(rates, n)
    sigma = np.exp(rng.uniform(math.log(low), math.log(high), n)) * np.where(rate == 1, 60, 1)
    return hs.compose_arrays(sigma, rate, rng.integers(1, most + 1, n))


@pytest.mark.parametrize("name", RUNS)
def test_as_narrow_as_a_line_of_its_own(name):  # [theory: line.near]
    """Wherever in its part delta lies, the root meets that of a line placed there, and is hardly wider."""
    run, rng = run_of(name), np.random.default_rng(1)
    steps, served, asked = gaussian_steps(run, "add_remove"), 0, 0
    goal = placed.Goal(contour.RTOL, contour.MARGIN)
    deltas = np.concatenate((10 ** rng.uniform(-12, -0.5, 12), 10 ** rng.uniform(-280, -12, 3)))
    for delta in deltas.tolist():
        for add in (0, 1):
            found = placed.answer(0, run, steps, add, math.log(delta), goal, 1)
            own = contour.root(steps, add, math.log(delta))
            if found is None:
                continue
            served += 1
            assert own is not None
            assert found.lower <= own.upper and own.lower <= found.upper
            assert found.upper - found.lower <= 4 * (own.upper - own.lower) + 2e-9 * abs(own.upper)
            if not own.estimate > 0:
                continue
            point = placed.answer(1, run, steps, add, own.estimate, goal, 1)
            alone = contour.point(steps, add, own.estimate)
            if point is None:
                continue
            point, asked = point.certified("contour"), asked + 1
            assert alone.lower <= math.log(delta) + 1e-6 and math.log(delta) - 1e-6 <= alone.upper
            assert point.lower <= alone.upper and alone.lower <= point.upper
            assert point.width <= 6 * alone.width + 4e-9
    assert served >= 15 and asked >= 12


def test_where_a_point_is_placed():
    """What is kept of the curve is about log delta, and that of another run or of other steps is not taken for it."""
    run = run_of("one rate")
    steps = gaussian_steps(run, "add_remove")
    for eps in (0.4, 0.9, 1.7):
        true = math.log(hs.delta(run, eps, direction="remove").estimate)
        assert placed._about(run, steps, 0, eps) == pytest.approx(true, abs=0.05 + 0.01 * abs(true))
    other = gaussian_steps(run * 4, "add_remove")
    assert placed._about(run, other, 0, 0.9) > placed._about(run, steps, 0, 0.9) + 0.5
    assert placed._about(run, steps, 0, -0.5) is None


def test_no_answer_depends_on_what_was_asked_before(monkeypatch):
    deltas = np.geomspace(1e-9, 0.1, 7).tolist()
    answers = {}
    for most, order in ((64, 1), (64, -1), (1, 1)):
        monkeypatch.setattr(placed, "MOST", most)
        run = run_of("one rate")
        answers[most, order] = {delta: hs.epsilon(run, delta) for delta in deltas[::order] + deltas[::2]}
        answers[most, order] |= {-eps: hs.delta(run, eps) for eps in [*[0.2, 0.5, 0.9, 1.4][::order], 0.5]}
    ends = [{delta: (b.lower, b.estimate, b.upper) for delta, b in found.items()} for found in answers.values()]
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("name", ["one rate", "few of each"])
def test_a_further_root_asks_no_step(name, monkeypatch):
    """Of one part of delta all roots but the first cost the same, however many steps there are."""
    run, made = run_of(name), []
    for gate in ("kept_make", "contour_ask", "contour_estimate"):
        ask = getattr(_core, gate)
        monkeypatch.setattr(_core, gate, lambda *a, ask=ask, gate=gate, **o: (made.append(gate), ask(*a, **o))[1])
    hs.epsilon(run, 1e-5)
    assert "kept_make" in made
    eps = [hs.epsilon(run, delta).estimate for delta in (1.2e-5, 9e-6, 8e-6)]
    for one in (min(eps), max(eps)):
        hs.delta(run, one)
    made.clear()
    for delta in (1.2e-5, 9e-6, 8e-6):
        hs.epsilon(run, delta)
    for one in eps:
        hs.delta(run, one)
    assert not made


def test_a_rule_that_is_too_far_off_is_not_asked_again(monkeypatch):
    """At the saddle of a sparse run the rules say nothing: the steps are summed, once for a part."""
    run, asked = hs.compose_arrays(np.linspace(0.8, 1.1, 60), 1e-3, 2), []
    ask = _core.contour_ask
    monkeypatch.setattr(_core, "contour_ask", lambda rows, *a: (asked.append(rows.fits is not None), ask(rows, *a))[1])
    for delta in (1e-5, 1.1e-5):
        bound = hs.epsilon(run, delta)
        assert bound.upper - bound.lower <= 1e-6 * bound.upper
    assert True not in asked


def test_parts():
    """Every delta lies in one part, no further from its middle than a line reaches; halves are half as wide."""
    for share in (1, 0.5, 0.25):
        found = {}
        for log_delta in -np.concatenate((np.geomspace(1e-12, 31, 400), np.linspace(31, 700, 3000))):
            part, middle = placed._part(float(log_delta), share)
            ends = found.setdefault(part, [middle, log_delta, log_delta])
            assert ends[0] == middle
            ends[1], ends[2] = max(ends[1], log_delta), min(ends[2], log_delta)
            if log_delta < -0.5 * placed.FAR**2:
                assert abs(log_delta - middle) <= 0.5 * share * placed.NATS * (1 + 1e-9)
            else:
                u, at = math.sqrt(-2 * log_delta), math.sqrt(-2 * middle)
                assert abs(u - at) <= 0.5 * share * placed.STEP * (1 + 1e-9)
        spans = sorted((high, low) for _, high, low in found.values())
        assert all(later[1] > before[0] for before, later in itertools.pairwise(spans))
