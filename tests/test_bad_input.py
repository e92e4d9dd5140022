"""What is refused, and how: every public function, every parameter of it; the message names what was given and what is
allowed."""

import inspect
import math
import re
import typing

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import types

STEP = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
RUN = STEP * 1000
NAN, INF = math.nan, math.inf

# One law for all public functions: a bad value of a parameter is a DomainError that names the parameter.

NUMBER = ["1", b"1", None, True, 1j, NAN, INF, -INF, 10**400]
ABOVE = [0, 0.0, -0.0, -1.0, {}, *NUMBER]
INSIDE = [0, 0.0, 1, 1.0, -1e-5, 1.5, [0.1, 2.0], [0.1, 0.0], [0.1, NAN], ["a"], [True], *NUMBER]
INTEGER = [-1, -(10**30), 1.5, 2.0, NAN, INF, True, False, "3", np.float64(3), np.bool_(True)]
WHOLE = [0, None, *INTEGER]
NAMED = ["nonsense", "", None, 1, ("remove",), "REMOVE"]
FLAG = [1, 0.0, None, "yes"]
TOLERANCE = [0, 0.0, -1e-3, 1.0, NAN, INF, "1e-3", True]
BAD = {
    "run": [None, 1.0, "run", [RUN]],
    "mechanism": [None, 1.0, "gaussian", RUN],
    "eps": [*NUMBER, [0.5, NAN], [INF], ["a"], [None]],
    "q": [0, -0.1, 1.0000001, 2, 1e-13, 5e-324, *NUMBER],
    "eps0": [-0.1, 301.0, *NUMBER],
    "delta0": [-0.1, 1.0, *NUMBER],
    "k": WHOLE,
    "steps": [10**12 + 1, *WHOLE],
    "rtol": [1e-15, *TOLERANCE],
    "tol": TOLERANCE,
    "n_threads": [5000, None, *INTEGER],
    "alpha": [1.0, 0.5, -2.0, *NUMBER],
    "order": [4, *INTEGER, [1]],
    "form": ["three", 2, None],
    "limit": [0.0, -1.0, NAN, INF, "1"],
    "estimate": ["best", 3],
    "dataset_size": [10**13, (20, 10), (10, 20, 30), (10, 20.5), *INTEGER],
    "max_batch": INTEGER,
    "batch": INTEGER,
    "canaries": [10**8, *WHOLE],
    "records": [1, *WHOLE],
    "correct": [10, *INTEGER],
    "trials": [1, 0, *INTEGER],
    "shape": [-1.0, NAN, "1", True],
    "size": [0, 1001, 1.5, True, "3", [], [0.0], [NAN], [1.0, -1.0]],
    "n_records": [10**11, *WHOLE],
    "clip": [0.0, NAN, "1"],
    "error": [NAN, -1.0, "1"],
    "mass_inf": [1.0, -0.1, NAN, "0"],
    "over": [(2.0, 1.0), (0.0, 1.0), (-1, 1), (1.0, INF), (NAN, 1.0), 1.0, (1.0, "2"), (1.0,)],
}
BAD |= dict.fromkeys(("sigma", "scale", "sensitivity", "mean", "mu", "budget_mu", "increment_mu"), ABOVE)
BAD |= dict.fromkeys(("delta", "prior", "fpr", "tail", "baseline", "failure", "significance"), INSIDE)
BAD |= dict.fromkeys(("n", "bins", "epochs", "iterations", "bands", "guesses", "participations"), WHOLE)
BAD |= dict.fromkeys(("adjacency", "direction", "route"), NAMED)
BAD |= dict.fromkeys(("symmetric", "assume_fixed_n", "per_record", "sticky"), FLAG)

GOOD = dict(run=RUN, mechanism=hs.gaussian(1.0), eps=1.0, delta=1e-3, sigma=1.0, scale=1.0, q=0.1, eps0=0.5, k=3)
GOOD |= dict(steps=5, prior=0.3, fpr=0.1, tail=0.1, baseline=0.1, failure=1e-6, delta0=1e-6, alpha=2.0, mu=1.0)
GOOD |= dict(dataset_size=100, max_batch=5, batch=5, n=10, bins=3, epochs=2, iterations=6, bands=2, canaries=10)
GOOD |= dict(guesses=9, correct=8, records=5, mean=3.0, size=2, n_records=3, over=(0.5, 5.0), make_run=hs.gaussian)
GOOD |= dict(matrix=np.eye(2), increment_mu=1.0, local=hs.pure_dp(0.5), step=STEP, counts=[[3, 4]], sigmas=[1.0, 2.0])
GOOD |= dict(shifts=[0.0, 1.0], probabilities=[0.5, 0.5], losses=np.zeros(5), bound=(0.1, 0.2))
GOOD |= dict.fromkeys(("cdf_num", "cdf_den"), lambda s: 1.0 * (s >= 0))
OWN = {
    "calibrate": {"eps": 1.0, "delta": 1e-3},
    "explain": {"eps": 1.0},
    "verify": {"eps": 1.0},
    "from_curve": {"eps": [0.5], "delta": [0.1]},
    "GDPFilter": {"eps": 1.0, "delta": 1e-3},
    "IndividualGDPFilter": {"eps": 1.0, "delta": 1e-3},
    "RDPFilter": {"eps": 1.0, "delta": 1e-3},
    "compose_arrays": {"sigma": [1.0]},
}
"""Good arguments: by name, and of single functions."""

ALLOWED = {"calibrate": ("fpr", "mu", "baseline", "records", "None"), "explain": ("None",), "verify": ("None",)}
ALLOWED |= {"delta_batch": ("2.0", "np.float64(3.0)"), "epsilon_batch": ("2.0", "np.float64(3.0)")}
ALLOWED |= dict.fromkeys(("GDPFilter", "IndividualGDPFilter"), ("None",))
ALLOWED |= {"monte_carlo": ("run",), "truncated_poisson_subsampled": ("0",)}
ELSEWHERE = {"draw_balls_and_bins", "draw_min_separation", "read_log"}
"""Parameters and values that single functions take; functions with tests of their own."""

CALLS = {name: getattr(hs, name) for name in hs.__all__ if inspect.isfunction(getattr(hs, name))}
CALLS |= {name: getattr(hs, name) for name in ("GDPFilter", "IndividualGDPFilter", "GDPOdometer", "RDPFilter")}


def parameters(call):
    """Names of a function's parameters, also those that it passes on, and whether each has a default."""
    for name, given in inspect.signature(call).parameters.items():
        if given.kind is given.VAR_KEYWORD:
            options = str(given.annotation).removeprefix("Unpack[").removesuffix("]")
            yield from dict.fromkeys(typing.get_type_hints(getattr(types, options)), True).items()
        else:
            yield name, given.default is not given.empty


@pytest.mark.parametrize("name", CALLS.keys() - ELSEWHERE)
def test_a_bad_value_is_named(name):
    call, known = CALLS[name], dict(parameters(CALLS[name]))
    good = {p: GOOD[p] for p, optional in known.items() if not optional and p in GOOD} | OWN.get(name, {})
    for parameter in known.keys() & BAD.keys() - set(ALLOWED.get(name, ())):
        for value in BAD[parameter]:
            if repr(value) not in ALLOWED.get(name, ()):
                with pytest.raises(hs.DomainError) as refused:
                    call(**good | {parameter: value})
                named = rf"\b{parameter}\b" if parameter not in ("run", "mechanism") else re.escape(repr(value)[:40])
                assert re.search(named, str(refused.value)), (parameter, value, str(refused.value))


def test_most_parameters_are_tried():
    found = [p in BAD for name in CALLS.keys() - ELSEWHERE for p, _ in parameters(CALLS[name])]
    assert sum(found) > 0.8 * len(found) > 200


# What is refused in other words


def refuses(kind, call, *words):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message, (word, message)
    assert isinstance(caught.value, hs.HockeystickError)


@pytest.mark.parametrize("sigma", [0, -1.0, 1e-9, 1e300, 5e-324, NAN, "1", [1.0]])
def test_a_value_is_named_with_what_is_allowed(sigma):
    refuses(hs.DomainError, lambda: hs.gaussian(sigma), "sigma", repr(sigma), "> 0")


@pytest.mark.parametrize("q", [0, 1.0000001, 5e-324, "0.1", [0.1]])
def test_a_rate_is_named_with_what_is_allowed(q):
    refuses(hs.DomainError, lambda: hs.poisson_subsampled(hs.gaussian(1.0), q), "q", repr(q), "1]")


def test_what_cannot_be_subsampled():
    refuses(hs.DomainError, lambda: hs.poisson_subsampled(STEP, 0.1), repr(STEP), "Gaussian")


@pytest.mark.parametrize("k", [*WHOLE, 10**12 + 1])
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


def test_adjacency_without_a_theorem():
    run = hs.gaussian_mixture(2.0, [0.0, 1.0], [0.9, 0.1]) * 3
    refuses(hs.DomainError, lambda: hs.delta(run, 1.0, adjacency="replace_one"), "replace_one", "add_remove")


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


DELTAS = [hs.saddlepoint_delta, hs.moments_delta_upper, hs.gdp_delta, hs.prawitz_delta, hs.eeai_delta, hs.aea_delta]
EPSILONS = [hs.moments_epsilon_upper, hs.gdp_epsilon, hs.prawitz_epsilon, hs.eeai_epsilon, hs.aea_epsilon]


@pytest.mark.parametrize("ask", DELTAS + EPSILONS, ids=lambda ask: ask.__name__)
def test_an_empty_run_is_refused(ask):
    with pytest.raises(hs.DomainError, match=r"empty run|one or more"):
        ask(hs.compose(), 0.5)
