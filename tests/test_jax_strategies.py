"""jax-privacy's batch selection strategies: classes with its names and fields, and its own where it is installed."""

import enum
from dataclasses import fields, make_dataclass

import pytest

import hockeystick as hs
from hockeystick.adapters.jax_privacy import ROWS, run_of

Partition = enum.Enum("Partition", ["INDEPENDENT", "EQUAL_SPLIT"])
FIELDS = {
    "BallsInBinsSampling": ("iterations", "cycle_length"),
    "RandomAllocationSampling": ("total_participations", "iterations"),
    "CyclicPoissonSampling": ("sampling_prob", "iterations", "truncated_batch_size", "cycle_length", "partition_type"),
    "FixedBatchSampling": ("batch_size", "iterations", "replace"),
}
Balls, Allocation, Poisson, Fixed = (make_dataclass(name, names) for name, names in FIELDS.items())
InGroups = make_dataclass("RandomAllocationSampling", ("total_participations", "iterations", "cycle_length"))
Split = make_dataclass("RandomAllocationSampling", (*(f.name for f in fields(InGroups)), "partition_type"))
G = hs.gaussian(2.0)
BOTH = Partition.INDEPENDENT, Partition.EQUAL_SPLIT


@pytest.mark.parametrize(
    "strategy, records, run",
    [
        (Balls(400, 100), None, hs.balls_and_bins(G, 100, epochs=4)),
        (Balls(7, 1), None, hs.balls_and_bins(G, 1, epochs=7)),
        (Allocation(1, 100), None, hs.random_allocation(G, 100)),
        (Allocation(4, 100), None, hs.random_allocation(G, 100, participations=4)),
        (InGroups(2, 100, 4), None, hs.random_allocation(G, 25, participations=2)),
        (Split(2, 100, 4, BOTH[0]), None, hs.random_allocation(G, 25, participations=2)),
        (Poisson(0.01, 50, None, 1, BOTH[1]), None, hs.poisson_subsampled(G, 0.01) * 50),
        (
            Poisson(0.01, 50, 15, 1, BOTH[1]),
            999,
            hs.truncated_poisson_subsampled(G, 0.01, dataset_size=999, max_batch=15) * 50,
        ),
        (
            Poisson(0.2, 50, None, 4, BOTH[1]),
            999,
            hs.cyclic_poisson(G, 0.2, iterations=50, bands=4, dataset_size=999),
        ),
        (
            Poisson(0.2, 50, 70, 4, BOTH[0]),
            999,
            hs.cyclic_poisson(G, 0.2, iterations=50, bands=4, dataset_size=999, max_batch=70, per_record=True),
        ),
        (Fixed(15, 50, True), 999, hs.with_replacement(G, dataset_size=999, batch=15) * 50),
        (Fixed(15, 50, False), 999, hs.without_replacement(G, dataset_size=999, max_batch=15) * 50),
    ],
)
def test_what_runs(strategy, records, run):
    assert run_of(strategy, 2.0, num_examples=records) == hs.compose(run)


@pytest.mark.parametrize(
    "strategy, records, words",
    [
        (Balls(401, 100), None, "multiple of cycle_length=100, got 401: ask about 500"),
        (Balls(0, 100), None, "iterations"),
        (InGroups(1, 10, 3), None, "multiple"),
        (Split(2, 100, 4, BOTH[1]), None, "INDEPENDENT.*C1 of hs.random_allocation"),
        (Allocation(0, 100), None, "participations"),
        (Allocation(101, 100), None, "participations"),
        (Poisson(0.01, 50, 15, 1, BOTH[1]), None, "num_examples"),
        (Poisson(0.01, 50, None, 4, BOTH[1]), None, "num_examples"),
        (Poisson(1.01, 50, None, 1, BOTH[1]), None, "sampling rate"),
        (make_dataclass("BMinSepSampling", ("min_sep",))(3), 999, "must be one of BallsInBinsSampling"),
        (None, None, "must be one of"),
    ],
)
def test_refused(strategy, records, words):
    with pytest.raises(hs.DomainError, match=words):
        run_of(strategy, 2.0, num_examples=records)


def test_fields_are_those_of_the_package():
    """Every strategy of the installed package has the fields that are read; the same run comes of it."""
    package = pytest.importorskip("jax_privacy.batch_selection")
    assert set(FIELDS) == set(ROWS)
    for name, names in FIELDS.items():
        if hasattr(package, name):  # random allocation came after version 2.0
            assert set(names) <= {f.name for f in fields(getattr(package, name))}
    real = package.BallsInBinsSampling(iterations=400, cycle_length=100)
    assert run_of(real, 2.0) == run_of(Balls(400, 100), 2.0)
    real = package.CyclicPoissonSampling(sampling_prob=0.2, iterations=50, cycle_length=4)
    assert run_of(real, 2.0, num_examples=999) == run_of(Poisson(0.2, 50, None, 4, BOTH[1]), 2.0, num_examples=999)
