"""The contour route: closed forms, small runs, forks, much noise."""

import itertools
import math
import os
import signal

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.what import sampling
from rows import bits, sgm
from test_jumps import branch_loss, two_pair_runs
from test_laws import MANY

# closed forms


# small runs


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 30, 100])
def test_the_first_hour_is_certified_to_1e_6(k):
    for sigma, q, delta in itertools.product([0.6, 0.8, 1.0, 1.5, 2.0], [0.001, 0.005, 0.01, 0.05], [1e-5, 1e-7, 1e-9]):
        bound = hs.epsilon(sgm(sigma, q, k), delta)
        assert bound.certified and 0 <= bound.lower <= bound.estimate <= bound.upper
        assert bound.upper - bound.lower <= 1e-6 * bound.upper, (sigma, q, delta, bound)


# the machine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_fork_after_use(n_threads):
    before = bits(hs.delta(MANY["steps"], 1.0, n_threads=n_threads))
    pid = os.fork()
    if pid == 0:
        code = 1
        signal.alarm(60)  # a pool of threads that did not survive the fork would be waited for
        try:
            code = 0 if bits(hs.delta(MANY["steps"], 1.0, n_threads=n_threads)) == before else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert bits(hs.delta(MANY["steps"], 1.0)) == before


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("sigma", "q", "k", "delta"),
    [
        (1e4, 0.1, 10**3, 1e-5),
        (1e4, 1e-6, 10**9, 1e-30),
        (1e3, 0.01, 10**6, 1e-6),
        (30.0, 1e-3, 10**3, 1e-30),
        (100.0, 0.01, 10**4, 1e-6),
    ],
)
def test_much_noise(sigma, q, k, delta, direction):
    """Losses so small that the run is a Gaussian mechanism of shift q sqrt(k)/sigma, up to a skewness of about
    1/sigma."""
    b = hs.epsilon(hs.poisson_subsampled(hs.gaussian(sigma), q) * k, delta, direction=direction)
    limit = hs.epsilon(hs.gaussian(sigma / (q * math.sqrt(k))), delta)
    assert b.certified and b.upper - b.lower <= 1e-8 * b.lower
    assert b.estimate == pytest.approx(limit.estimate, rel=0.5 / sigma if sigma > 30 else 0.01)


# the hyperbola of pairs


def hyperbola(branches, k, eps):
    pairs = sampling.packed([sampling.Pair(tuple(sampling.Branch(*row) for row in branches))])
    one, work = np.ones(1), np.empty(_core.hyperbola_work(6))
    return _core.hyperbola_ask(_core.Rows(one, one, k * one, pairs=pairs), 0, 1, eps, math.log(1e-9), work)


def drawn_branches(rng, kind):
    q, m, w = 10 ** rng.uniform(-5, -0.4), math.exp(rng.uniform(-1.6, 1.2)), rng.uniform(0.02, 0.98)
    first = [(m, m), (m, m), (m, 0.0), (m, 0.0), (m, m * rng.uniform(0.01, 1))][kind]
    second = [(m, m), (2 * m, 2 * m), (2 * m, m), (2 * m, 0.0), (m, m)][kind]
    return ((w if kind in (1, 2, 3) else 1.0, q, *first), (1 - w, q * rng.uniform(0.2, 1), *second))[
        : 2 if kind in (1, 2, 3) else 1
    ]


@pytest.mark.parametrize("delta", [1e-200, 1e-239, 1e-280])
def test_lines_of_few_nodes_keep_to_few(delta):
    """Frequencies beyond those that a short line needs have no inner grid at deep deltas of next to no loss."""
    run = hs.poisson_subsampled(hs.gaussian(5724470.334886447), 0.016062720872924464) * 2
    b = hs.epsilon(run, delta)
    assert b.route == "contour" and b.upper - b.lower < 1e-9 * b.upper


@pytest.mark.parametrize("kind", range(5))
def test_two_runs_of_pairs_on_the_hyperbola(kind):  # [theory: hyperbola.two-sided, hyperbola.two-sheets]
    rng, seen = np.random.default_rng(kind), 0
    while seen < 6:
        branches = drawn_branches(rng, kind)
        eps = float(abs(branch_loss(rng.uniform(1, 9), *branches[0][1:]))) * rng.uniform(0.3, 2)
        answer = hyperbola(branches, 2, eps)
        if answer.status > _core.LOOSE or answer.certified("contour").estimate < math.log(1e-12):
            continue
        found, truth = answer.certified("contour"), math.log(two_pair_runs(branches, eps))
        assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
        seen += found.upper - found.lower < 1e-3


@pytest.mark.parametrize("kind", range(5))
def test_pairs_on_the_hyperbola_and_on_the_line(kind):  # [theory: hyperbola.two-sided]
    rng, seen = np.random.default_rng(kind), 0
    work, one = np.empty(_core.contour_work(1)), np.ones(1)
    while seen < 12:
        branches, k = drawn_branches(rng, kind), float(int(10 ** rng.uniform(0.5, 3)))
        pairs = sampling.packed([sampling.Pair(tuple(sampling.Branch(*row) for row in branches))])
        log_delta = -rng.uniform(2, 22)
        rows = _core.Rows(one, one, one * k, pairs=pairs)
        line = _core.contour_ask(rows, 0, 0, log_delta, 1e-6, 26.0, 1, work)
        if line.status > _core.LOOSE or not line.estimate > 0:
            continue
        answer = hyperbola(branches, k, line.estimate)
        if answer.status > _core.LOOSE:
            continue
        at = answer.certified("contour")
        whole = _core.contour_ask(rows, 0, 1, line.estimate, 1e-6, 26.0, 1, work)
        if whole.status <= _core.LOOSE:
            assert at.lower <= whole.certified("contour").upper
            assert whole.certified("contour").lower <= at.upper
            seen += 1


def test_a_pair_of_one_side_is_a_plain_step_on_the_hyperbola():
    work = np.empty(_core.hyperbola_work(6))
    for m, q, k, eps in ((1.0, 1e-3, 30.0, 0.5), (2.5, 1e-4, 7.0, 6.0)):
        plain = _core.hyperbola_ask(_core.Rows(*np.array([[m], [q], [k]])), 0, 1, eps, math.log(1e-9), work)
        own = hyperbola(((1.0, q, m, 0.0),), k, eps)
        assert own.status == plain.status
        assert own.lower <= plain.upper
        assert plain.lower <= own.upper
        assert math.isclose(own.upper - own.lower, plain.upper - plain.lower, rel_tol=1e-3)


@pytest.mark.parametrize("row", [(1.0, 0.01, 1.0, 1.2), (1.0, 0.6, 1.0, 1.0), (1.0, 0.01, 0.0, 1.0)])
def test_pairs_that_the_hyperbola_leaves(row):
    assert hyperbola((row,), 10, 1.0).status > _core.LOOSE


@pytest.mark.parametrize("gap", [1e-5, 1.3e-6, 1e-9, 1e-12])
def test_steps_whose_transform_is_lost_in_rounding(gap):
    """A rate next to 1: the transform falls below 1e-16 at nodes that others hold up. Their bound was a power of what
    is lost: 1e-8 wide, or nothing known. Each of two steps is within `gap` of a Gaussian one in total variation."""
    run = hs.compose((hs.gaussian(1.55), 2), (hs.poisson_subsampled(hs.gaussian(0.5472230213883136), 1 - gap), 2))
    plain = hs.compose((hs.gaussian(1.55), 2), (hs.gaussian(0.5472230213883136), 2))
    for direction in ("remove", "add"):
        for eps in (0.1, 2.852, 5.0):
            b, near = hs.delta(run, eps, direction=direction, route="contour"), hs.delta(plain, eps)
            assert b.upper - b.lower < 1e-11
            assert near.lower - 2 * gap * (1 + math.exp(eps)) <= b.upper and b.lower <= near.upper + 1e-15
