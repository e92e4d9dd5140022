"""What is refused, and how: the message names what was given and what is allowed."""

import math

import numpy as np
import pytest

import hockeystick as hs

STEP = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
RUN = STEP * 1000
NAN, INF = math.nan, math.inf


def refuses(kind, call, *words):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message, (word, message)
    assert isinstance(caught.value, hs.HockeystickError)


@pytest.mark.parametrize(
    "sigma",
    [0, 0.0, -0.0, -1.0, NAN, INF, -INF, 1e-9, 1e300, 5e-324, "1", b"1", None, True, [1.0], 1j, 10**400],
)
def test_sigma(sigma):
    refuses(hs.DomainError, lambda: hs.gaussian(sigma), "sigma", repr(sigma), "> 0")


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, NAN, INF, "1", None, True, 1e-300])
def test_sensitivity(sensitivity):
    refuses(hs.DomainError, lambda: hs.gaussian(1.0, sensitivity=sensitivity), "sensitivity", repr(sensitivity))


@pytest.mark.parametrize("q", [0, 0.0, -0.1, 1.0000001, 2, NAN, INF, 1e-13, 5e-324, "0.1", None, True, [0.1]])
def test_q(q):
    refuses(hs.DomainError, lambda: hs.poisson_subsampled(hs.gaussian(1.0), q), "q", repr(q), "1]")


@pytest.mark.parametrize("what", [STEP, RUN, None, 1.0, "gaussian"])
def test_what_cannot_be_subsampled(what):
    refuses(hs.DomainError, lambda: hs.poisson_subsampled(what, 0.1), repr(what), "Gaussian")


BAD_COUNTS = [
    0,
    -1,
    -(10**30),
    1.5,
    2.0,
    NAN,
    INF,
    True,
    False,
    "3",
    None,
    np.float64(3),
    np.bool_(True),
    10**12 + 1,
]


@pytest.mark.parametrize("k", BAD_COUNTS)
@pytest.mark.parametrize("what", [STEP, RUN, hs.compose()])
def test_count(what, k):
    for call in (lambda: what * k, lambda: k * what, lambda: hs.compose((what, k))):
        # numpy scalars multiply elementwise before they ask us: only their refusal matters
        if isinstance(k, np.generic) and call.__code__.co_consts == (None,):
            continue
        refuses(hs.DomainError, call, repr(k), "integer", "1")


def test_counts_that_merge_beyond_the_limit():
    refuses(hs.DomainError, lambda: STEP * 10**12 + STEP, str(10**12 + 1), "1e+12")


@pytest.mark.parametrize("part", [None, 1.0, "x", (STEP,), (STEP, 1, 2), ("x", 1), ["x"]])
def test_parts(part):
    refuses(hs.DomainError, lambda: hs.compose(part), "expected")


def test_addition_with_something_else():
    with pytest.raises(TypeError):
        STEP + 1


def test_a_bad_entry_is_named_with_its_place():
    refuses(hs.DomainError, lambda: hs.delta(RUN, [0.5, 1.0, NAN]), "nan", "entry 2", "finite")
    refuses(hs.DomainError, lambda: hs.epsilon(RUN, [0.5, 1.5]), "1.5", "entry 1", "(0, 1)")


QUERIES = [(hs.delta, 1.0), (hs.log_delta, 1.0), (hs.epsilon, 1e-5)]


@pytest.mark.parametrize("query, at", QUERIES)
@pytest.mark.parametrize("name", ["route", "direction", "adjacency"])
@pytest.mark.parametrize("value", ["nonsense", "", None, 1, ("auto",), "AUTO"])
def test_unknown_names(query, at, name, value):
    refuses(hs.DomainError, lambda: query(RUN, at, **{name: value}), name, repr(value), "must be one of")


@pytest.mark.parametrize("query, at", QUERIES)
@pytest.mark.parametrize("rtol", [0, 0.0, -1e-3, 1.0, 1e-15, NAN, INF, "1e-3", True])
def test_rtol(query, at, rtol):
    refuses(hs.DomainError, lambda: query(RUN, at, rtol=rtol), "rtol", repr(rtol))


@pytest.mark.parametrize("n_threads", [-1, 1.5, 2.0, "2", True, None, 5000, NAN])
def test_n_threads(n_threads):
    refuses(hs.DomainError, lambda: hs.delta(RUN, 1.0, n_threads=n_threads), "n_threads", repr(n_threads))


@pytest.mark.parametrize("query, at", QUERIES)
@pytest.mark.parametrize("what", [None, 1.0, "run", [STEP]])
def test_not_a_run(query, at, what):
    refuses(hs.DomainError, lambda: query(what, at), repr(what))


def test_adjacency_without_a_theorem():
    run = hs.gaussian_mixture(2.0, [0.0, 1.0], [0.9, 0.1]) * 3
    refuses(hs.DomainError, lambda: hs.delta(run, 1.0, adjacency="replace_one"), "replace_one", "add_remove")


@pytest.mark.parametrize("query, at", QUERIES)
def test_tolerance_that_cannot_be_met(query, at):
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    refuses(hs.AccuracyError, lambda: query(run, at, rtol=1e-14), repr(at), "1e-14", "rtol")


def test_a_bound_is_not_a_number():
    with pytest.raises(TypeError, match="interval"):
        float(hs.delta(RUN, 1.0))


EXTREMES = [(1.0, 1e-3, 1000), (20.0, 0.5, 1000), (20.0, 1e-3, 1000), (0.5, 1e-3, 1000)]


@pytest.mark.parametrize("sigma, q, k", EXTREMES)
def test_corners_answer_or_say_why(sigma, q, k):
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
    for query, at in [
        (hs.delta, 1.0),
        (hs.delta, 0.0),
        (hs.delta, -2.0),
        (hs.log_delta, 700.0),
        (hs.epsilon, 0.3),
        (hs.epsilon, 1e-300),
    ]:
        for direction in ("remove", "add"):
            try:
                bound = query(run, at, direction=direction)
            except hs.AccuracyError as error:
                assert repr(at) in str(error)
                continue
            assert bound.lower <= bound.estimate <= bound.upper, (query, at, direction)
