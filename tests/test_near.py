"""Lines asked away from where they were placed: certified everywhere, and given up where they are wider."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import contour, general, near, question

ATOMS = hs.from_pmf([0.2, 0.5, 0.3], [0.35, 0.45, 0.2])  # no common lattice
RUNS = {
    "lattice": hs.randomized_response(0.4) * 30,
    "atoms": ATOMS * 12,
    "laplace": hs.laplace(1.3) * 9,
    "one laplace": hs.laplace(1.3) * 2,
    "discrete": hs.discrete_gaussian(4.0) * 20,
    "mixed": hs.compose((ATOMS, 3), (hs.laplace(2.0), 4), (hs.gaussian(3.0), 2)),
    "sampled": hs.poisson_subsampled(hs.laplace(1.0), 0.1) * 40,
}


def line_of(run, eps, add=0):
    """The line that is placed for delta(eps), None where the answer takes none, with the answer there."""
    asked = question.Question(run, "add_remove", True, None, 1)
    asked.lines = {}
    found = general.point(asked, add, eps)
    ((_, lines),) = asked.lines.values()
    return (lines._kept or [None])[-1], found


def ends(scaled):
    return scaled.log_scale + math.log(scaled.lower) if scaled.lower > 0 else -math.inf, scaled.log_scale + math.log(
        scaled.upper
    )


def sums(steps):
    """(loss, num) of all sums of finite laws, in 40 digits."""
    with mp.workdps(40):
        law = {mpf(0): mpf(1)}
        for num, den in steps:
            following = {}
            for loss, p in law.items():
                for a, b in zip(num, den, strict=True):
                    key = loss + mp.log(mpf(a) / mpf(b))
                    following[key] = following.get(key, mpf(0)) + p * mpf(a)
            merged = {}
            for loss, p in following.items():
                place = mp.nint(loss * mpf(10) ** 25)
                merged[place] = (loss, merged.get(place, (0, mpf(0)))[1] + p)
            law = dict(merged.values())
        return list(law.items())


@pytest.mark.parametrize(
    "run, step",
    [
        (hs.from_pmf([0.25, 0.5, 0.25], [0.375, 0.5, 0.125]) * 10, ((0.25, 0.5, 0.25), (0.375, 0.5, 0.125))),
        (hs.from_pmf([0.75, 0.25], [0.25, 0.75]) * 25, ((0.75, 0.25), (0.25, 0.75))),
    ],
)
def test_far_from_where_it_was_placed_a_line_still_holds_the_truth(run, step):  # [theory: line.near]
    law, certified = sums([step] * run.parts[0][1]), 0
    for placed in (-0.5, 0.3, 2.0, 6.0):
        line, _ = line_of(run, placed)
        for eps in np.arange(-4.03, 9.0, 0.37):
            with mp.workdps(40):
                truth = sum(p * (1 - mp.exp(mpf(float(eps)) - loss)) for loss, p in law if loss > eps)
            found = line.line.near(float(eps))
            if found.status > _core.LOOSE:
                continue
            with mp.workdps(40):
                scaled = truth / mp.exp(mpf(found.log_scale)) if truth else mpf(0)
            assert found.lower <= scaled <= found.upper, (placed, eps)
            certified += found.lower > 0
    assert certified > 40


@pytest.mark.parametrize("name", RUNS)
def test_what_is_kept_agrees_with_lines_of_their_own(name):  # [theory: line.near]
    run, served = RUNS[name], 0
    for add in (0, 1):
        line, at = line_of(run, 1.0, add)
        for eps in (0.2, 0.7, 0.97, 1.0, 1.02, 1.2, 1.7, 2.5, 4.0):
            _, own = line_of(run, eps, add) if eps != 1.0 else (line, at)
            far = line.line.near(eps)
            if far.status <= _core.LOOSE and own:
                low, high = ends(far)
                assert low <= own.upper + 1e-13 and own.lower <= high + 1e-13, eps
            kept = line.near(eps, 0.0)
            if kept is not None:
                served += 1
                assert kept.width <= max(line.width, 2.0 * contour.RTOL)
    assert served >= 4


@pytest.mark.parametrize("name", RUNS)
def test_many_deltas_agree_with_single_ones(name):
    run, eps = RUNS[name], np.linspace(-1.0, 5.0, 25)
    many = hs.delta(run, eps)
    for i in range(0, eps.size, 3):
        one = hs.delta(run, float(eps[i]))
        assert many.lower[i] <= one.upper * (1 + 1e-14) and one.lower <= many.upper[i] * (1 + 1e-14)
        near_by = [hs.delta(run, float(at)) for at in eps if abs(at - eps[i]) < 2]
        own = max(found.width / max(found.upper, 1e-300) for found in near_by)
        assert many.width[i] <= (2 * near.WIDER * own + 2 * near.LEAST) * many.upper[i] + 1e-300
    again = hs.delta(run, eps)
    assert again == many  # nothing of one call is left to the next


def test_a_line_that_was_not_placed_says_so():
    line = _core.MixedLine()
    assert not line.placed and line.near(1.0).status == 2
    assert (line.curve(np.array([1.0, 2.0]))[:, 0] == 2).all()
    beyond = hs.delta(hs.laplace(1.0) * 3, [2.9, 2.99, 2.999, 3.0, 3.5])
    assert beyond.upper[-1] == 0 and (np.diff(beyond.upper) <= 0).all()


def test_few_lines_are_kept():
    rows = RUNS["mixed"]
    asked = question.Question(rows, "add_remove", True, None, 1)
    asked.lines = {}
    for eps in np.linspace(0.0, 8.0, 30):
        general.point(asked, 0, float(eps))
    ((_, lines),) = asked.lines.values()
    assert 1 < len(lines._kept) <= near.KEPT
