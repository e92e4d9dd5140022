"""Limits, ranges of dataset_size, cyclic sampling, what may be composed, and bad input."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import worst
from hockeystick.routes import single
from hockeystick.what import pair, sampling
from hockeystick.what.batches import SizeRange
from rows import overlap

ADJACENCIES = ("add_remove", "zero_out", "replace_one")


def cut(q, n, size, sigma=1.0, **more):
    return hs.truncated_poisson_subsampled(hs.gaussian(sigma), q, dataset_size=n, max_batch=size, **more)


# Limits


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_batches_as_large_as_the_data_are_poisson(adjacency):
    plain = hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 20
    for size in (400, 10**6):
        assert overlap(
            hs.epsilon(cut(0.05, 400, size) * 20, 1e-5, adjacency=adjacency),
            hs.epsilon(plain, 1e-5, adjacency=adjacency),
        )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_large_batches_come_close_to_poisson(adjacency):
    """eps falls to that of Poisson sampling as the limit grows, without a jump at the end."""
    plain = hs.epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 20, 1e-5, adjacency=adjacency)
    found = [hs.epsilon(cut(0.05, 400, size) * 20, 1e-5, adjacency=adjacency) for size in (24, 30, 40, 60, 399)]
    assert all(a.upper >= b.lower for a, b in itertools.pairwise(found))
    assert found[-1].estimate == pytest.approx(plain.estimate, rel=2e-3)
    assert found[0].lower > 1.05 * plain.upper


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_rate_one_is_fixed_size(adjacency):
    fixed = hs.without_replacement(hs.gaussian(2.0), dataset_size=90, batch=9) * 10
    assert fixed == cut(1.0, 90, 9, 2.0) * 10
    near = hs.epsilon(cut(1 - 1e-12, 90, 9, 2.0) * 10, 1e-4, adjacency=adjacency)
    assert overlap(hs.epsilon(fixed, 1e-4, adjacency=adjacency), near)


def test_rate_one_with_room_is_the_gaussian_mechanism():
    for step in (cut(1.0, 50, 50, 2.0), hs.without_replacement(hs.gaussian(2.0), dataset_size=50, batch=50)):
        for adjacency, sensitivity in (("add_remove", 1.0), ("zero_out", 1.0), ("replace_one", 2.0)):
            wanted = hs.delta(hs.gaussian(2.0, sensitivity=sensitivity) * 7, 1.0)
            found = hs.delta(step * 7, 1.0, adjacency=adjacency)
            assert (found.lower, found.upper) == (wanted.lower, wanted.upper)


def test_sampled_laplace_under_every_adjacency():
    run = hs.poisson_subsampled(hs.laplace(1.5), 0.2) * 12
    found = {a: hs.delta(run, 0.3, adjacency=a) for a in ADJACENCIES}
    assert overlap(found["add_remove"], found["zero_out"])
    assert found["replace_one"].lower > found["add_remove"].upper


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_nothing_used_costs_nothing(adjacency):
    for step in (cut(0.0, 100, 5), cut(0.3, 100, 0), cut(0.3, 0, 5), cut(0.0, 0, 0)):
        assert hs.epsilon(step * 1000, 1e-9, adjacency=adjacency).upper == 0
        assert hs.delta(step * 1000, 0.0, adjacency=adjacency).upper == 0
        both = hs.compose((step, 10), (hs.gaussian(2.0), 3))
        alone = hs.delta(hs.gaussian(2.0) * 3, 0.5, adjacency=adjacency)
        assert hs.delta(both, 0.5, adjacency=adjacency).upper == alone.upper


def test_extreme_corners():
    """A billion records whose rate is a millionth."""
    sparse = cut(1e-6, 10**9, 1100) * 10
    assert hs.epsilon(sparse, 1e-5).upper == 0
    with pytest.raises(hs.DomainError, match="sigma"):
        cut(0.1, 10, 3, 0.0)


def test_one_record():
    assert overlap(hs.delta(cut(0.3, 1, 1), 0.1), hs.delta(hs.poisson_subsampled(hs.gaussian(1.0), 0.3), 0.1))


def test_a_weight_that_underflows_is_kept_as_mass():  # [theory: small.dropped]
    """n=2000, p=.05, B=1000: w = e^-1093. delta is plain Poisson's, and the run still answers."""
    run = cut(0.05, 2000, 1000) * 10
    plain = hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 10
    assert overlap(hs.delta(run, 0.5), hs.delta(plain, 0.5))
    ((loss, _),) = pair.losses(run, "zero_out", "remove")
    assert 0 < loss.tails(np.zeros(1)).absolute < 1e-300


# Ranges of dataset_size


def test_range_finds_the_peak():
    """p=.01, B=120, k=500: eps is 8.94, 9.06, 8.77 at n = 13000, 14000, 15000; the peak lies between the first two."""
    bound = hs.epsilon(cut(0.01, (8000, 40000), 120) * 500, 1e-5, direction="remove", rtol=0.02)
    at = int(bound.note.split("largest at ")[1].split(",")[0])
    assert 13000 < at < 14000
    assert bound.lower <= hs.epsilon(cut(0.01, at, 120) * 500, 1e-5, direction="remove").upper
    assert bound.upper >= hs.epsilon(cut(0.01, 13600, 120) * 500, 1e-5, direction="remove").lower > 9.07
    assert bound.width <= 0.02 * bound.estimate
    assert "sizes evaluated" in bound.note and "8000..40000" in bound.note


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_range_is_the_maximum_over_its_members(adjacency):  # [theory: risk.worst-size]
    lo, hi, size, k = 8, 40, 12, 3
    members = [hs.delta(cut(0.5, n, size, 1.5) * k, 0.4, adjacency=adjacency) for n in range(lo, hi + 1)]
    found = hs.delta(cut(0.5, (lo, hi), size, 1.5) * k, 0.4, adjacency=adjacency, rtol=0.02)
    assert found.upper >= max(b.lower for b in members)
    assert found.lower <= max(b.upper for b in members)
    assert found.upper <= max(b.upper for b in members) * 1.02


def test_range_of_one_size_and_of_equal_pairs():
    assert cut(0.1, (50, 50), 9) == cut(0.1, 50, 9)
    assert not worst.unsettled(cut(0.1, (50, 50), 9) * 3)
    alike = hs.delta(cut(0.1, (5, 9), 9) * 3, 0.2)
    plain = hs.delta(hs.poisson_subsampled(hs.gaussian(1.0), 0.1) * 3, 0.2)
    assert (alike.lower, alike.upper) == (plain.lower, plain.upper)
    assert "all up to 9 alike" in alike.note


def test_ranges_answer_arrays_and_logarithms():
    run = cut(0.5, (30, 33), 12, 1.5) * 3
    one = hs.delta(run, [0.2, 0.4], adjacency="zero_out", rtol=0.01)
    assert one.lower.shape == (2,) and (one.lower <= one.upper).all()
    log = hs.log_delta(run, 0.4, adjacency="zero_out", rtol=0.01)
    assert log.lower <= math.log(one.upper[1]) and math.log(one.lower[1]) <= log.upper


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_pair_of_a_range_dominates_every_member(adjacency, direction):  # [theory: pair.sizes]
    for p, size, sizes in ((0.3, 10, (20, 33, 60)), (0.02, 8, (200, 400, 900)), (1.0, 7, (9, 20, 50))):
        step = cut(p, (sizes[0], sizes[-1]), size)
        above = sampling.pair(SizeRange(step, sizes[0], sizes[-1]), adjacency)
        assert math.fsum(b.weight for b in above.branches) == pytest.approx(1, abs=1e-15)
        over = sampling.pair_loss(above.reversed() if direction == "add" else above)
        for n, e in itertools.product(sizes, (-0.5, -0.01, 0.0, 0.1, 0.5, 2.0)):
            of = sampling.pair(step.at(n), adjacency)
            member = single.point(sampling.pair_loss(of.reversed() if direction == "add" else of), e)
            top = single.point(over, e)
            assert member is None or member[0] <= (top[2] if top else -660)


def test_fixed_size_range_is_worst_at_its_least_size():
    fixed = hs.without_replacement(hs.gaussian(2.0), dataset_size=(64, 256), batch=16) * 20
    alone = hs.epsilon(hs.without_replacement(hs.gaussian(2.0), dataset_size=64, batch=16) * 20, 1e-5)
    found = hs.epsilon(fixed, 1e-5, rtol=0.01)
    assert found.upper >= alone.lower and found.lower <= alone.upper


# Cyclic sampling


def cyclic(**changes):
    settings = dict(iterations=80, bands=4, dataset_size=399, max_batch=40) | changes
    return hs.cyclic_poisson(hs.gaussian(4.0), 0.5, **settings)


@pytest.mark.parametrize(
    "adjacency, smaller, larger", [("zero_out", 6.59967339, 6.54985370), ("replace_one", 8.43320209, 8.36163252)]
)
def test_cyclic_takes_the_worse_of_both_group_sizes(adjacency, smaller, larger):  # [theory: pair.cyclic]
    """Groups of 99 and 100: the smaller group costs more, so rounding up alone under-reports."""
    bound = hs.epsilon(cyclic(), 1e-5, adjacency=adjacency)
    assert bound.lower - 6e-9 <= smaller <= bound.upper + 6e-9
    assert bound.lower > larger
    assert "99..100" in bound.note
    whole = hs.epsilon(cyclic(dataset_size=400), 1e-5, adjacency=adjacency)
    assert whole.lower - 6e-9 <= larger <= whole.upper + 6e-9


def test_cyclic_counts_rounds():
    """81 iterations in 4 groups: 21 rounds for one of them; more bands than iterations: one round."""
    step = hs.poisson_subsampled(hs.gaussian(4.0), 0.5)
    assert overlap(
        hs.epsilon(cyclic(iterations=81, max_batch=None), 1e-5, adjacency="zero_out"),
        hs.epsilon(step * 21, 1e-5, adjacency="zero_out"),
    )
    once = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, iterations=3, bands=7, dataset_size=70)
    assert overlap(hs.epsilon(once, 1e-5, adjacency="replace_one"), hs.epsilon(step, 1e-5, adjacency="replace_one"))


def test_cyclic_with_column_norms():  # [theory: pair.cyclic]
    """Each group meets its own columns: norms 1, .5 | .8, .9 in turn, the worse group counts."""
    base = hs.gaussian(2.0)
    run = hs.cyclic_poisson(base, 0.3, iterations=4, bands=2, dataset_size=40, column_norms=[1.0, 0.8, 0.5, 0.9])
    groups = [
        hs.compose(*(hs.poisson_subsampled(hs.gaussian(2.0, sensitivity=s), 0.3) for s in norms))
        for norms in ((1.0, 0.5), (0.8, 0.9))
    ]
    wanted = max(hs.epsilon(g, 1e-4, adjacency="zero_out").estimate for g in groups)
    bound = hs.epsilon(run, 1e-4, adjacency="zero_out")
    assert bound.lower * (1 - 1e-9) <= wanted <= bound.upper * (1 + 1e-9)
    assert "2 kinds of groups" in bound.note
    same = hs.cyclic_poisson(base, 0.3, iterations=4, bands=2, dataset_size=40, column_norms=[1.0] * 4)
    assert len(worst._groups(same)) == 1


def test_cyclic_drops_dominated_groups():
    step = hs.cyclic_poisson(
        hs.gaussian(2.0), 0.3, iterations=5, bands=2, dataset_size=40, column_norms=[1.0, 0.7, 0.9, 0.8, 0.1]
    )
    assert [run.steps for run in worst._groups(step)] == [3]


def test_one_band_is_truncated_sampling():
    run = hs.cyclic_poisson(hs.gaussian(2.0), 0.3, iterations=6, bands=1, dataset_size=50, max_batch=18)
    for adjacency in ADJACENCIES:
        assert overlap(
            hs.delta(run, 0.5, adjacency=adjacency), hs.delta(cut(0.3, 50, 18, 2.0) * 6, 0.5, adjacency=adjacency)
        )


# What may be composed


def test_fixed_size_guarantee_is_not_composed_by_accident():
    step, other = cut(0.1, 100, 12), hs.gaussian(5.0)
    for run in (
        step * 3 + other,
        hs.compose(step, cut(0.1, 101, 12)),
        hs.compose(step, (hs.poisson_subsampled(other, 0.1), 2)),
    ):
        with pytest.raises(hs.DomainError, match="assume_fixed_n"):
            hs.delta(run, 0.5)
        assert hs.delta(run, 0.5, adjacency="zero_out").upper > 0
    assert hs.delta(hs.compose((step, 3), cut(0.2, 100, 30)), 0.5).upper > 0
    stated = cut(0.1, 100, 12, assume_fixed_n=True)
    assert hs.delta(stated * 3 + other, 0.5).upper > 0


def test_cyclic_has_no_add_remove():
    with pytest.raises(hs.DomainError, match="moves others between groups"):
        hs.delta(cyclic(), 1.0)


def test_groups_of_each_record_on_its_own_have_add_remove():
    """21 rounds of 80 + 1 iterations; with truncation the worst of all group sizes up to n."""
    free = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, iterations=81, bands=4, dataset_size=50, per_record=True)
    plain = hs.poisson_subsampled(hs.gaussian(4.0), 0.5) * 21
    assert overlap(hs.epsilon(free, 1e-5), hs.epsilon(plain, 1e-5))
    held = cyclic(iterations=6, bands=2, dataset_size=30, max_batch=8, per_record=True)
    for adjacency in ADJACENCIES:
        bound = hs.delta(held, 0.3, adjacency=adjacency, rtol=0.01)
        sizes = [hs.delta(cut(0.5, n, 8, 4.0) * 3, 0.3, adjacency=adjacency) for n in range(1, 31)]
        assert max(b.lower for b in sizes) <= bound.upper <= 1.01 * max(b.upper for b in sizes)
        assert "1..30" in bound.note


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_what_is_open_is_refused_below_the_queries(adjacency):
    for step in (cut(0.1, (100, 120), 12), cyclic()):
        with pytest.raises(hs.DomainError, match="leaves a dataset size or a group open"):
            pair.losses(hs.compose(step), adjacency, "remove")


def test_every_route_heeds_the_adjacency():
    """Twice the sensitivity and nothing less: routes that know only add/remove pairs must decline or be told."""
    gauss, lap = hs.gaussian(3.0), hs.laplace(4.0)
    for run, same in (
        (hs.compose((lap, 3)), hs.laplace(2.0) * 3),
        (hs.compose((lap, 3), gauss), hs.compose((hs.laplace(2.0), 3), hs.gaussian(1.5))),
        (hs.compose((gauss, 4)), hs.gaussian(1.5) * 4),
    ):
        assert overlap(hs.delta(run, 0.5, adjacency="replace_one"), hs.delta(same, 0.5))
    for base in (gauss, lap):
        run = hs.poisson_subsampled(base, 0.2) * 12
        assert overlap(
            hs.delta(run, 0.1, adjacency="replace_one"), hs.delta(run, 0.1, adjacency="replace_one", route="pld")
        )
        assert hs.delta(run, 0.1, adjacency="replace_one").lower > 1.2 * hs.delta(run, 0.1).upper


@pytest.mark.parametrize("n, named", [((20, 10), "did you mean"), ((10, 20, 30), "pair")])
def test_bad_ranges(n, named):
    with pytest.raises(hs.DomainError, match=named):
        cut(0.1, n, 5)


def test_other_bad_input():
    base = hs.gaussian(1.0)
    with pytest.raises(hs.DomainError, match="takes gaussian"):
        hs.truncated_poisson_subsampled(hs.laplace(1.0), 0.1, dataset_size=10, max_batch=3)
    with pytest.raises(hs.DomainError, match="takes gaussian"):
        hs.without_replacement(hs.poisson_subsampled(base, 0.1), dataset_size=10, batch=3)
    with pytest.raises(hs.DomainError, match="must not exceed"):
        hs.without_replacement(base, dataset_size=10, batch=11)
    with pytest.raises(hs.DomainError, match="True or False"):
        hs.truncated_poisson_subsampled(base, 0.1, dataset_size=10, max_batch=3, assume_fixed_n=1)
    with pytest.raises(hs.DomainError, match="one entry an iteration"):
        hs.cyclic_poisson(base, 0.1, iterations=5, bands=2, dataset_size=10, column_norms=[1.0, 2.0])
    with pytest.raises(hs.DomainError, match=r"column_norms\[1\] must be a finite number > 0"):
        hs.cyclic_poisson(base, 0.1, iterations=2, bands=2, dataset_size=10, column_norms=[1.0, 0.0])
    with pytest.raises(hs.DomainError, match="per_record"):
        hs.cyclic_poisson(base, 0.1, iterations=5, bands=2, dataset_size=10, per_record=1)
    with pytest.raises(hs.DomainError, match="iterations"):
        hs.cyclic_poisson(base, 0.1, iterations=0, bands=2, dataset_size=10)
    with pytest.raises(hs.DomainError, match="same range"):
        hs.delta(hs.compose(cut(0.1, (10, 20), 3), cut(0.1, (10, 30), 3)), 0.5, adjacency="zero_out")
    with pytest.raises(hs.DomainError, match="not defined"):
        hs.delta(hs.poisson_subsampled(hs.discrete_laplace(1.0), 0.1), 0.5, adjacency="replace_one")
