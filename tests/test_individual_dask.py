"""The individual filter over a Dask cluster of two worker processes, one of which is killed."""

import math
import os
import signal

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.individual import individual_epsilons

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, CHUNKS = 10_007, (3000, 4000, 3007)


def sharded(**options):
    from hockeystick.individual.dask import ShardedGDPFilter

    return ShardedGDPFilter(CHUNKS, **options)


def norms_of(step):
    return np.random.default_rng(step).random(N, dtype=np.float32)


@pytest.fixture(scope="module")
def client():
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def test_two_processes_and_a_killed_one_agree_with_one_machine(client):
    many, one = sharded(budget_mu=1.5), hs.IndividualGDPFilter(N, budget_mu=1.5)
    pids = set(client.run(os.getpid).values())
    assert len(pids) == 2 and os.getpid() not in pids
    for step in range(12):
        mask = many.charge(da.from_array(norms_of(step), chunks=(CHUNKS,)), sigma=1.0)
        assert np.array_equal(mask.compute(), one.charge(norms_of(step), sigma=1.0))
        if step == 5:  # a worker with blocks of the state dies
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
    assert not mask.compute().all()
    assert np.array_equal(np.concatenate(dask.compute(*many._blocks)), one._look(None))
    assert victim not in set(client.run(os.getpid).values())


def test_reductions(client):
    many, one = sharded(budget_mu=2.0), hs.IndividualGDPFilter(N, budget_mu=2.0)
    for step in range(4):
        many.charge(da.from_array(norms_of(step), chunks=(CHUNKS,)), sigma=1.0)
        one.charge(norms_of(step), sigma=1.0)
    eps = one.epsilons_upper(1e-5)
    found = many.summary(1e-5, quantiles=(0.1, 0.5, 0.95))
    assert found["max"] == pytest.approx(eps.max(), rel=1e-5)
    for p, value in found["quantiles"].items():
        exact = np.quantile(eps, p, method="higher")
        assert exact * (1 - 1e-5) <= value <= exact * (1 + 1e-3)
    for bad in (1.5, math.nan):
        with pytest.raises(hs.DomainError, match="quantiles"):
            many.summary(1e-5, quantiles=(bad,))
    assert found["histogram"].sum() == N and (np.diff(found["edges"]) >= 0).all()


def test_a_bad_norm_in_any_block_charges_nobody(client):
    many = sharded(budget_mu=2.0, clip=1.0)
    many.charge(da.from_array(norms_of(0), chunks=(CHUNKS,)), sigma=1.0)
    before = many.spent_mu_upper().compute()
    for bad in (-1.0, math.nan, 1.5):
        norms = norms_of(1)
        norms[6500] = bad
        with pytest.raises(hs.DomainError, match="at record 6500; nobody was charged"):
            many.charge(da.from_array(norms, chunks=(CHUNKS,)), sigma=1.0)
    assert many.steps == 1 and np.array_equal(before, many.spent_mu_upper().compute())
    for norms in (
        norms_of(1),
        da.from_array(norms_of(1), chunks=5000),
        da.zeros((N, 1)),
        da.zeros(N, dtype=int, chunks=(CHUNKS,)),
    ):
        with pytest.raises(hs.DomainError):
            many.charge(norms, sigma=1.0)
    with pytest.raises(hs.DomainError):
        many.charge(da.zeros(N, chunks=(CHUNKS,)), sigma=0.0)
    with pytest.raises(hs.DomainError):
        sharded()


def test_parquet_and_counts(client, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from hockeystick.individual.dask import ShardedGDPFilter, epsilons_upper, norms_from_parquet

    for i, part in enumerate(np.split(norms_of(0), [5000])):
        parquet.write_table(pyarrow.table({"norm": part}), tmp_path / f"{i}.parquet", row_group_size=2000)
    norms = norms_from_parquet(str(tmp_path))
    assert norms.chunks[0] == (2000, 2000, 1000, 2000, 2000, 1007)
    many, one = ShardedGDPFilter(norms.chunks[0], budget_mu=1.2), hs.IndividualGDPFilter(N, budget_mu=1.2)
    for step in range(4):
        mask = many.charge(norms_from_parquet(str(tmp_path)), sigma=1.0)
        assert np.array_equal(mask.compute(), one.charge(norms_of(0), sigma=1.0))
        if step == 1:  # a worker that has read row groups dies
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    assert np.array_equal(many.spent_mu_upper().compute(), one.spent_mu_upper()) and not mask.compute().all()
    missing = pyarrow.table({"norm": pyarrow.array([0.5, None], pyarrow.float32())})
    parquet.write_table(missing, tmp_path / "null")
    with pytest.raises(hs.DomainError, match="got nan at record 1; nobody was charged"):
        ShardedGDPFilter((2,), budget_mu=1.2).charge(norms_from_parquet(str(tmp_path / "null")), sigma=1.0)
    (tmp_path / "null").unlink()
    with pytest.raises(hs.DomainError, match="no column"):
        norms_from_parquet(str(tmp_path), "size")
    counts = np.random.default_rng(0).multinomial(200, np.ones(4) / 4, 300)
    options = dict(sigmas=[1.0, 1.5, 2.0, 4.0], delta=1e-5, q=0.05)
    many = epsilons_upper(da.from_array(counts, chunks=(100, 2)), **options).compute()
    assert many == pytest.approx(individual_epsilons(counts, **options).upper, rel=1e-5)
