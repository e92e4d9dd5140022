"""Runs from arrays: the same as from objects, whatever the order, and what is refused."""

import pickle

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.what import pair


def both(sigma, q, count):
    objects = hs.compose(
        *(
            (hs.poisson_subsampled(hs.gaussian(s), x), n)
            for s, x, n in zip(*map(np.ndarray.tolist, (sigma, q, count)), strict=True)
        )
    )
    return hs.compose_arrays(sigma, q, count), objects


def columns(n, seed):
    rng = np.random.default_rng(seed)
    return rng.choice(rng.uniform(0.9, 3, n), n), rng.choice([0.01, 0.02, 1e-3], n), rng.integers(1, 60, n)


@pytest.mark.parametrize("rates", [1, 3, 2000])
def test_sorting_in_pieces(monkeypatch, rates):
    monkeypatch.setattr(pair, "PIECE", 64)
    rng = np.random.default_rng(rates)
    m, q = rng.choice(rng.uniform(0.9, 3, 50), 1000), rng.choice(rng.uniform(0, 1, rates), 1000)
    for n in (2, 64, 65, 1000):
        assert np.array_equal(pair.sorted_by(m[:n], q[:n]), np.lexsort((q[:n], m[:n])))


@pytest.mark.parametrize("n", [1, 30, 700])
def test_arrays_and_objects_are_one_run(n):
    run, objects = both(*columns(n, n))
    assert run == objects and hash(run) == hash(objects) and run.steps == objects.steps
    assert dict(run.parts) == dict(objects.parts) and list(run.parts) == sorted(
        run.parts, key=lambda p: (p[0].base.sigma, p[0].q)
    )
    assert repr(run)[:40] == repr(hs.compose(*run.parts))[:40]
    assert run * 3 == objects * 3 and run + objects == objects * 2
    assert hs.Run.from_arrays(*columns(n, n)) == run and pickle.loads(pickle.dumps(run)) == run
    for adjacency in ("add_remove", "zero_out"):
        one, other = (hs.epsilon(r, 1e-5, adjacency=adjacency) for r in (run, objects))
        assert (one.lower, one.upper) == (other.lower, other.upper) and one.route == other.route
    assert hs.delta(run, 1.0, route="saddlepoint").lower <= hs.delta(objects, 1.0).upper


@pytest.mark.parametrize("ask, at", [(hs.epsilon, 1e-5), (hs.delta, 2.0)])
def test_cuts_change_no_bit(ask, at):
    sigma, q, count = columns(900, 3)
    halves = ask(hs.compose_arrays(np.tile(sigma, 2), np.tile(q, 2), np.tile(count, 2)), at)
    doubled = ask(hs.compose_arrays(sigma, q, 2 * count), at)
    assert (halves.lower, halves.upper) == (doubled.lower, doubled.upper)


def test_no_steps():
    for rate in (np.zeros(0), 0.1):
        for count in (np.zeros(0, int), 1):
            assert hs.epsilon(hs.compose_arrays(np.zeros(0), rate, count), 1e-5).upper == 0


def test_replace_one():
    """Plain Gaussian steps are of the family with twice the shift; sampled ones are two-sided pairs."""
    run, objects = both(np.linspace(20, 60, 200), np.ones(200), np.full(200, 2))
    one, other = (hs.epsilon(r, 1e-5, adjacency="replace_one") for r in (run, objects))
    assert (one.lower, one.upper) == (other.lower, other.upper) and one.route == "compressed"
    run, objects = both(np.array([1.0, 2.0]), np.full(2, 0.1), np.array([3, 4]))
    one, other = (hs.delta(r, 0.5, adjacency="replace_one") for r in (run, objects))
    assert (one.lower, one.upper) == (other.lower, other.upper)


def test_numbers_of_many_types():
    expected = hs.gaussian(2.0) * 3
    for sigma in ([2.0], [2], np.array([2], np.float32), np.array([2], np.uint8), [np.longdouble(2)]):
        assert hs.compose_arrays(sigma, count=3) == expected
    assert hs.compose_arrays([4.0], sensitivity=2.0).parts == ((hs.gaussian(4.0, sensitivity=2.0), 1),)
    assert hs.compose_arrays([]).steps == 0 and hs.epsilon(hs.compose_arrays([]), 1e-5).upper == 0
    strided = np.linspace(1, 2, 40)[::4]
    assert hs.compose_arrays(strided, 0.1) == hs.compose_arrays(strided.copy(), 0.1)
    given = np.ones(3)
    run = hs.compose_arrays(given, 0.1)
    given[:] = 9
    assert run.parts[0][0].base.sigma == 1


REFUSED = [
    (([1.0, float("nan")],), "sigma must be .*nan at entry 1"),
    (([1.0, 0.0],), "sigma must be .* 0.0 at entry 1"),
    (([-1.0],), "sigma must be .* at entry 0"),
    (([1e-4],), "sigma/sensitivity from 0.001"),
    (([float("inf")],), "sigma must be .* at entry 0"),
    (([[1.0]],), "one-dimensional"),
    ((["1.0"],), "real numbers"),
    (([True],), "real numbers"),
    (([np.longdouble(1) + np.longdouble(2) ** -60],), "holds exactly")
    if np.finfo(np.longdouble).nmant > 60
    else (([None],), "real"),
    (([1.0], 0.0), "q must be"),
    (([1.0, 2.0], [0.1, 1.5]), "q must be .*1.5 at entry 1"),
    (([1.0, 2.0], [0.1]), "q must be one number or as many"),
    (([1.0], 0.1, 0), "count must be .*0"),
    (([1.0], 0.1, 1.0), "count must be integers"),
    (([1.0], 0.1, [[1]]), "count must be one number or as many"),
    (([1.0], 0.1, 10**12 + 1), "count"),
    (([1.0, 1.0], 0.1, 10**12), "total count of sigma"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refused(arguments, message):
    with pytest.raises(hs.DomainError, match=message):
        hs.compose_arrays(*arguments)


def test_counts_that_grow_too_large():
    with pytest.raises(hs.DomainError, match="number of steps"):
        hs.compose_arrays([1.0, 2.0], 0.1, 10**11) * 100
    assert (hs.compose_arrays([1.0, 2.0], 0.1, 10**11) * 10).steps == 2 * 10**12


@pytest.mark.slow
def test_a_million_steps():
    """Answered as 1,000 of them are, each repeated: the run of a grid of noise, by its rule and by sums over all."""
    sigma = np.repeat(np.linspace(0.9, 1.3, 1000), 1000)
    run, few = (
        hs.compose_arrays(np.random.default_rng(0).permutation(sigma), 1e-3),
        hs.compose_arrays(sigma[::1000], 1e-3, 1000),
    )
    one, other = hs.epsilon(run, 1e-6), hs.epsilon(few, 1e-6)
    assert (one.lower, one.upper) == (other.lower, other.upper) and one.upper - one.lower < 1e-10


def test_an_iterator_of_arrays():
    """The bits of the arrays in one, at the memory of a chunk; its steps are not kept."""
    sigma = np.random.default_rng(3).uniform(0.9, 1.3, 200_000)
    whole = hs.epsilon(hs.compose_arrays(sigma, 0.001, 2, sensitivity=0.5), 1e-6)
    run = hs.compose_arrays(iter(np.array_split(sigma, 7)), 0.001, 2, sensitivity=0.5)
    found = hs.epsilon(run, 1e-6)
    assert (found.lower, found.estimate, found.upper) == (whole.lower, whole.estimate, whole.upper)
    assert run.steps == 400_000 and hs.compose_arrays(iter([]), 0.1).steps == 0
    with pytest.raises(hs.DomainError, match="moments"):
        print(run.parts)
    with pytest.raises(hs.DomainError, match="one number each"):
        hs.compose_arrays(iter([sigma]), np.full(sigma.size, 0.1))
    with pytest.raises(hs.DomainError, match="sigma"):
        hs.compose_arrays(iter([sigma, [-1.0]]), 0.1)
