"""Batches: entry by entry the single query, for every shape, order and number of threads."""

import math
import threading

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core, batch


def single(sigma, q, k, at, ask=hs.epsilon, **options):
    return ask(hs.poisson_subsampled(hs.gaussian(float(sigma)), float(q)) * int(k), float(at), **options)


def problems(n, seed=0):
    rng = np.random.default_rng(seed)
    k = np.floor(10 ** rng.uniform(0, 5, n))
    return rng.uniform(0.7, 3, n), 10 ** rng.uniform(-2.5, -0.5, n), k, 10 ** rng.uniform(-9, -3, n)


def same(bound, i, one):
    """The same interval, or one that meets it and is narrow: batch takes the first answer within rtol."""
    low, mid, high = bound.lower.flat[i], bound.estimate.flat[i], bound.upper.flat[i]
    narrow = high - low <= 1e-6 * mid or high - low <= one.upper - one.lower
    return (low, mid, high) == (one.lower, one.estimate, one.upper) or (
        low <= one.upper and one.lower <= high and narrow
    )


@pytest.mark.parametrize("direction", ["both", "remove", "add"])
def test_epsilon_is_the_single_query(direction):  # [theory: risk.batch]
    sigma, q, k, delta = problems(40)
    q[::7] = 1.0
    bound = hs.epsilon_batch(sigma, q, k, delta, direction=direction)
    assert bound.certified and bound.lower.shape == (40,)
    for i in range(40):
        assert same(bound, i, single(sigma[i], q[i], k[i], delta[i], direction=direction)), i


@pytest.mark.parametrize("direction", ["both", "remove", "add"])
def test_delta_is_the_single_query(direction):  # [theory: risk.batch]
    sigma, q, k, _ = problems(30, 1)
    q[::7] = 1.0
    eps = np.linspace(-1, 5, 30)
    bound = hs.delta_batch(sigma, q, k, eps, direction=direction)
    for i in range(30):
        assert same(bound, i, single(sigma[i], q[i], k[i], eps[i], hs.delta, direction=direction)), i


@pytest.mark.parametrize("adjacency", ["replace_one", "zero_out"])
def test_other_adjacencies(adjacency):
    sigma, q, k, delta = problems(8, 4)
    q, k = np.where(np.arange(8) % 4, 0.02, 1.0), 500 + k
    for ask, at in ((hs.epsilon, delta), (hs.delta, np.linspace(0, 3, 8))):
        batched = hs.epsilon_batch if ask is hs.epsilon else hs.delta_batch
        for direction in ("both", "add"):
            bound = batched(sigma, q, k, at, adjacency=adjacency, direction=direction)
            for i in range(8):
                one = single(sigma[i], q[i], k[i], at[i], ask, adjacency=adjacency, direction=direction)
                assert same(bound, i, one), (i, direction)


def test_most_are_answered_in_one_call():
    """The C loop answers ordinary training runs itself; the others are the exception."""
    sigma, q, k, delta = np.full(200, 1.1), np.full(200, 0.01), np.arange(1000.0, 3000.0, 10), np.full(200, 1e-6)
    ends, done = np.zeros((3, 200)), np.zeros(200, dtype=np.uint8)
    _core.batch(1 / sigma, q, k, delta, 1, 3, 0, 1e-9, 31.0, 1e-6, 1, ends, done)
    assert (done == 1).mean() > 0.9 and (ends[0] <= ends[1]).all() and (ends[1] <= ends[2]).all()
    assert (np.diff(ends[1][done == 1]) > 0).all()


def test_threads_do_not_matter():
    args = problems(300, 2)
    one, two = hs.epsilon_batch(*args, n_threads=1), hs.epsilon_batch(*args, n_threads=3)
    for end in ("lower", "estimate", "upper"):
        assert (getattr(one, end) == getattr(two, end)).all()


def test_broadcasting():
    bound = hs.epsilon_batch([[1.0], [2.0]], 0.01, [100, 1000, 10000], 1e-5)
    assert bound.upper.shape == (2, 3)
    assert same(bound, 4, single(2.0, 0.01, 1000, 1e-5))
    scalar = hs.epsilon_batch(1.0, 0.01, 1000, 1e-5)
    assert isinstance(scalar.upper, float) and scalar.lower <= 1.828236666516577 <= scalar.upper
    assert hs.epsilon_batch(1.0, 0.01, [], 1e-5).upper.shape == (0,)
    reverse = hs.epsilon_batch(np.array([2.0, 1.0])[::-1], 0.01, np.array([100, 200], dtype=np.int32), np.float32(0.5))
    assert same(reverse, 0, single(1.0, 0.01, 100, 0.5))


def test_chunks_and_progress(monkeypatch):
    monkeypatch.setattr(batch, "CHUNK", 7)
    seen = []
    args = problems(20, 3)
    bound = hs.epsilon_batch(*args, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(7, 20), (14, 20), (20, 20)]
    monkeypatch.undo()
    assert (bound.upper == hs.epsilon_batch(*args).upper).all()


def test_rtol():
    """A wider demand takes more answers from the loop, a narrower one fewer; all hold the truth of the narrow one."""
    args = problems(60, 5)
    narrow, wide = (hs.epsilon_batch(*args, rtol=rtol) for rtol in (1e-13, 0.1))
    assert (narrow.lower <= wide.upper).all() and (wide.lower <= narrow.upper).all()


@pytest.mark.parametrize("direction", ["both", "remove", "add"])
def test_not_alone(direction):
    """What the loop leaves gets an upper end that holds, and 0 below."""
    args = (
        np.array([1.0, 0.9, 1.0]),
        np.array([0.01, 0.004, 0.01]),
        np.array([1000, 12, 1]),
        np.array([1e-5, 1e-4, 1e-5]),
    )
    quick = hs.epsilon_batch(*args, alone=False, direction=direction)
    slow = hs.epsilon_batch(*args, direction=direction)
    assert quick.lower[0] == slow.lower[0] and quick.upper[0] == slow.upper[0]
    assert (quick.lower[1:] <= slow.lower[1:]).all() and (quick.upper[1:] >= slow.upper[1:] * (1 - 1e-12)).all()
    deltas = hs.delta_batch(*args[:3], 0.5, alone=False, direction=direction)
    assert (deltas.upper >= hs.delta_batch(*args[:3], 0.5, direction=direction).lower).all() and (
        deltas.upper <= 1
    ).all()


def test_what_cannot_be_certified(monkeypatch):
    def refuse(run, at, **options):
        raise hs.AccuracyError("no route")

    monkeypatch.setattr(batch.query, "epsilon", refuse)
    monkeypatch.setattr(batch.query, "delta", refuse)
    for ask, top in ((hs.epsilon_batch, math.inf), (hs.delta_batch, 1.0)):
        with pytest.raises(hs.AccuracyError, match=r"entry 1 \(sigma=1, q=0\.5, k=1\): no route"):
            ask([1.0, 1.0], [0.01, 0.5], [1000, 1], 1e-3)
        loose = ask([1.0, 1.0], [0.01, 0.5], [1000, 1], 1e-3, strict=False)
        assert loose.lower[1] == 0 and loose.upper[1] == top and "none" in loose.route


BAD = [
    (dict(sigma=[1.0, 1e10]), r"sigma.*entry 1"),
    (dict(k=1e13), "steps must"),
    (dict(delta=[[0.1, 2.0]]), r"delta.*entry \[0, 1\]"),
    (dict(sigma=[1.0, 2.0], q=[0.1, 0.2, 0.3]), "broadcast"),
    (dict(progress=1), "progress"),
]


@pytest.mark.parametrize("change, word", BAD)
def test_bad_input(change, word):
    with pytest.raises(hs.DomainError, match=word):
        hs.epsilon_batch(**{"sigma": 1.0, "q": 0.01, "k": 10, "delta": 1e-5, **change})


def test_one_thread_is_the_caller(monkeypatch):
    """No other thread is started for one: a signal that comes while one starts could leave it waiting for ever."""

    def start(*_):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(threading.Thread, "start", start)
    bound = hs.epsilon_batch([0.02, 1.0], [0.01, 0.5], [3, 2], [1e-30, 1e-5])  # asked one by one
    assert (bound.lower <= bound.upper).all()


def test_epochs_of_random_allocation():
    """As logs name it: steps by epochs of 1/q of them."""
    found = hs.epsilon_batch([1.0, 2.0], 0.01, [[1000], [200]], 1e-5, sampler="allocation")
    one = hs.epsilon(hs.random_allocation(hs.gaussian(2.0), 100) * 2, 1e-5)
    assert (found.lower[1, 1], found.estimate[1, 1], found.upper[1, 1]) == (one.lower, one.estimate, one.upper)
    assert (found.upper < hs.epsilon_batch([1.0, 2.0], 0.01, [[1000], [200]], 1e-5).lower).all()
    for q, steps in ((0.013, 100), (0.01, 150)):
        with pytest.raises(hs.DomainError, match="whole epochs"):
            hs.delta_batch(1.0, q, steps, 1.0, sampler="allocation")
