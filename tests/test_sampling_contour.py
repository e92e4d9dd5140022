"""Two-sided pairs on the contour: against the Gaussian route, beside other steps, refused, sparse."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import bounds
from hockeystick.what import pair, sampling

ADJACENCIES = ("add_remove", "zero_out", "replace_one")


def cut(q, n, size, sigma=1.0):
    return hs.truncated_poisson_subsampled(hs.gaussian(sigma), q, dataset_size=n, max_batch=size)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("m, q, k", [(1.0, 0.01, 1000), (0.5, 0.3, 200), (1.4, 0.001, 10**5)])
def test_one_sided_pairs_are_gaussian_steps(m, q, k, direction):
    add = direction == "add"
    of = sampling.Pair((sampling.Branch(1.0, q, 0.0 if add else m, m if add else 0.0),))
    one, counts = np.ones(1), np.array([float(k)])
    work = np.empty(_core.contour_work(1))
    for log_delta in (-8.0, -20.0, -60.0):
        pairs, steps = (
            _core.contour_ask(rows, int(add), 0, log_delta, 1e-9, 31.0, 1, work)
            for rows in (
                _core.Rows(one, one, counts, pairs=sampling.packed([of])),
                _core.Rows(m * one, q * one, counts),
            )
        )
        assert pairs[0] <= 1 and steps[0] <= 1
        assert pairs[1] <= steps[3] and steps[1] <= pairs[3]
        # the contour of pairs stands two standard units left of the saddle, where rounding weighs e^2 more; on shifted
        # paths, for long lines, weights and losses are larger
        more = 9 if pairs[-1] > 128 else 3
        assert pairs[3] - pairs[1] <= more * math.e**2 * (steps[3] - steps[1]) + 1e-12


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_mixed_with_gaussian_steps(direction):
    """Pairs, sampled steps and plain steps in one run; the grid route agrees."""
    run = hs.compose(
        (cut(0.05, 400, 26), 30), (hs.poisson_subsampled(hs.gaussian(1.5), 0.05), 40), (hs.gaussian(8.0), 3)
    )
    contour = hs.epsilon(run, 1e-5, adjacency="zero_out", direction=direction, route="contour")
    grid = hs.epsilon(run, 1e-5, adjacency="zero_out", direction=direction, route="pld")
    assert contour.width < 1e-9 * contour.estimate
    assert grid.lower <= contour.upper and contour.lower <= grid.upper


def test_empty_slots_and_wrong_sizes_are_refused():
    one, work = np.ones(1), np.empty(_core.contour_work(1))
    of = sampling.packed([sampling.Pair((sampling.Branch(1.0, 0.1, 1.0, 1.0),))])
    with pytest.raises(hs.DomainError):
        _core.Rows(one, one, one, pairs=of[:-8])
    plain, own = (
        _core.contour_ask(_core.Rows(one, one, 4 * one, pairs=pairs), 0, 1, 1.0, 1e-9, 31.0, 1, work)
        for pairs in (sampling.packed([None]), None)
    )
    assert plain == own


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_distances_of_many_sparse_steps(adjacency):  # [theory: pair.branch-variation]
    """Both bounds of delta(0) hold at the closed form of one step; for many steps the one by squares is the smaller."""
    step = cut(0.01, 1000, 14, 1.5)
    one = hs.delta(step, 0.0, adjacency=adjacency).lower
    for add in (False, True):
        paired = pair.paired_steps(hs.compose(step), adjacency, add)
        assert one <= paired.variation_upper <= one * (1 + 1e-9) / (1 - 1e-6)
        assert one <= bounds.square_variation_upper(paired) <= 3 * one
    many = pair.paired_steps(cut(1e-5, 10**5, 8, 3.0) * 10**5, adjacency, False)
    square = bounds.square_variation_upper(many)
    assert square < 0.1 * many.variation_upper
    bound = hs.epsilon(cut(1e-5, 10**5, 8, 3.0) * 10**5, 1.01 * square, adjacency=adjacency)
    assert bound.upper == 0


def test_what_was_dropped_raises_the_upper_end_only():
    step = cut(0.05, 2000, 1000)
    of = pair.paired_steps(step * 50, "zero_out", False)
    assert 0 < of.dropped < 1e-298
    one = pair.paired_steps(hs.compose(step), "zero_out", False)
    assert of.dropped >= 50 * one.dropped > 0
    bound = hs.log_delta(step * 50, 0.5, adjacency="zero_out", direction="remove")
    plain = hs.log_delta(hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 50, 0.5, direction="remove")
    assert bound.lower <= plain.upper and plain.lower <= bound.upper


SPARSE = [(10**6, 1e-4, 120, 10, 1e-8), (10**9, 1e-6, 1100, 10, 1e-9), (10**7, 1e-5, 120, 1000, 1e-9)]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("n", "q", "size", "k", "delta"), [*SPARSE[:2], pytest.param(*SPARSE[2], marks=pytest.mark.slow)]
)
def test_few_jumps_are_answered_by_a_coarse_grid(n, q, size, k, delta, adjacency):
    """The line has too many nodes: without rtol the lattice is as coarse as it must be; the route by name takes
    longer."""
    run = cut(q, n, size) * k
    quick = hs.epsilon(run, delta, adjacency=adjacency)
    careful = hs.epsilon(run, delta, adjacency=adjacency, route="pld")
    assert quick.certified and 0 < quick.upper <= 1.2 * careful.upper + 2e-3
    assert max(quick.lower, careful.lower) <= min(quick.upper, careful.upper)
    assert hs.log_delta(run, careful.upper, adjacency=adjacency).lower <= math.log(delta)
    assert hs.log_delta(run, careful.lower, adjacency=adjacency).upper >= math.log(delta)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("add", [False, True])
def test_chernoff_of_pairs_lies_above(adjacency, add):
    """Both ways round, and inverse to each other up to the optimum's flatness."""
    run, direction = cut(0.02, 2000, 44) * 300, "add" if add else "remove"
    of = pair.paired_steps(run, adjacency, add)
    for delta in (1e-3, 1e-8):
        eps = bounds.root_upper(of, add, math.log(delta))
        truth = hs.epsilon(run, delta, adjacency=adjacency, direction=direction)
        assert truth.lower <= eps <= 1.5 * truth.upper
        assert hs.log_delta(run, eps, adjacency=adjacency, direction=direction).lower <= bounds.log_delta_upper(
            of, add, eps
        )
        assert bounds.log_delta_upper(of, add, eps) == pytest.approx(math.log(delta), abs=0.05)


def test_the_second_direction_is_left_out_where_it_is_smaller_alone():
    """Under truncation REMOVE is the larger: asked as the second, it is answered, at an eps and at a delta."""
    run = cut(0.01, 10_000, 100) * 500
    remove, add = (pair.paired_steps(run, "add_remove", way) for way in (False, True))
    work = np.empty(_core.contour_work(1))
    for have_eps, at, wall in ((1, 1.0, math.inf), (0, math.log(1e-6), add.loss_upper)):
        asked = 1e-9, 30.0, 1, work, 65536
        larger, left_out, *_ = _core.contour_larger(remove.steps, have_eps, at, wall, *asked, add.steps)
        smaller, second, *_ = _core.contour_larger(add.steps, have_eps, at, math.inf, *asked, remove.steps)
        assert left_out is None
        assert (smaller.status, second.status) == (_core.OK, _core.OK)
        logs = [x.log_scale + math.log(x.lower) if have_eps else x.lower for x in (larger, second, smaller)]
        assert logs[1] > logs[2] + 1
        assert logs[1] == pytest.approx(logs[0], rel=1e-8)
