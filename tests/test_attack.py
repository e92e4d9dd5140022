"""The generator of queries is deterministic, reaches everything, and what it draws can be pasted; 2,000 cases hold."""

import sys
import warnings
from collections import Counter

import numpy as np
import pytest

import attack
import hockeystick as hs
import laws
import queries
from hockeystick.routes.table import ROUTES
from hockeystick.serial import KINDS
from hockeystick.what.allocation import AllocationOfSeveral
from hockeystick.what.groups import GroupOfTruncated
from hockeystick.what.matrix import Failure
from hockeystick.what.replacement import WithReplacement
from rows import REFERENCE

OTHERS = {AllocationOfSeveral, Failure, GroupOfTruncated, WithReplacement}
"""Kinds with tests of their own: two are enclosed by others, one adds to a curve and has none of a pair's laws, and one
knows neither records that are added nor large groups."""


def test_a_case_is_drawn_alone():
    cases = [repr(queries.draw(7, i)) for i in range(50)]
    assert cases[::-1] == [repr(queries.draw(7, i)) for i in range(49, -1, -1)]
    assert len(set(cases)) == 50


def test_every_kind_route_and_query_is_drawn():
    text = "\n".join(repr(queries.draw(0, i)) for i in range(5000))
    assert set(queries.ROUTES) == set(ROUTES)
    names = [f"route={route!r}" for route in ROUTES if route != "auto"]
    names += [f"adjacency={a!r}" for a in queries.ADJACENCIES[1:]] + [f"hs.{query}(" for query in queries.QUERIES]
    names += [f"hs.{step}(" for step in ("from_pmf", "from_curve", "from_loss_cdf", "cyclic_poisson", "public_mixture")]
    assert [name for name in names if name not in text] == []
    assert all(getattr(hs, name) for name in queries.QUERIES)


@pytest.mark.parametrize("kind", ["allocation", "select", "shuffle", "top_k", "near"])
def test_a_seed_names_how_runs_begin(kind):
    """Nine in ten queries take a run; all of these begin with a step of the kind."""
    cases = [case for case in (queries.draw(f"1 {kind}", i) for i in range(40)) if case.parts]
    names = {"allocation": ("random_allocation", "balls_and_bins"), "shuffle": ("shuffled",)}.get(kind, (kind,))
    assert len(cases) > 20
    assert all(
        len(case.parts) >= queries.ARRAYS if kind == "near" else case.parts[0][0].name in names for case in cases
    )


COIN = queries.Inner(((queries.Call("randomized_response", (1.0,), {}), 1),))
NOISE = queries.Call("gaussian", (1.5,), {})
JUDGED = [
    queries.Call("top_k", (0.5, 4), {}),
    queries.Call("random_allocation", (NOISE, 7), {}),
    queries.Call("balls_and_bins", (NOISE, 3), {"epochs": 2}),
    queries.Call("select", (COIN,), {"mean": 3.0}),
    queries.Call("select", (COIN,), {"mean": 3.0, "trials": 9}),
    queries.Call("shuffled", (queries.Call("pure_dp", (1.0,), {}), 12), {}),
]


@pytest.mark.parametrize("step", JUDGED, ids=repr)
def test_laws_of_one_kind_see_an_answer_that_misses(step):
    """An upper end at a third of what it is contradicts what is more private, or the mechanism itself, carried out."""
    adjacency = "replace_one" if step.name == "shuffled" else "add_remove"
    found = hs.delta(queries.made(repr(step)), 0.3, adjacency=adjacency)
    fact, moved = (laws.Fact(*(laws.mpf(end) * x for end in (found.lower, found.upper)), "answer") for x in (1, 1 / 3))
    point, seen = laws.Point(((step, 1),), adjacency, "both", 0.3, fact), 0
    for i in range(8):
        others = [law(point, queries.Dice(f"{i}")) for law in laws.OWN]
        assert all(laws.meet(fact, other) for other in others if other)
        seen += sum(not laws.meet(moved, other) for other in others if other)
    assert seen


def test_what_is_drawn_can_be_pasted():
    """Every kind is drawn but one, which other steps enclose, and which has tests of its own."""
    steps = (step for i in range(1500) for step, _ in queries.draw(3, i).parts[:3])
    made = []
    for step in steps:
        try:
            made.append(queries.made(repr(step)))
        except hs.DomainError:
            pass
    assert len(made) > 1200
    assert {kind.cls for kind in KINDS.values()} - OTHERS <= {type(step) for step in made}


def test_laws_see_an_answer_that_misses():
    """The judge has teeth: an interval moved by a tenth of its value contradicts the definition, duality, or another
    route."""
    seen = Counter()
    for i in range(400):
        if seen["truth"] > 5 and seen["duality"] > 10:
            break
        case = queries.draw(14, i)
        if case.query not in ("delta", "log_delta") or isinstance(case.at[0], list) or "route" in case.options:
            continue
        try:
            found = laws.points(case, case.ask())[0]
        except (hs.DomainError, hs.AccuracyError):
            continue
        if not 1e-200 < found.fact.lower < 0.5 or found.fact.upper > found.fact.lower * 1.01:
            continue
        moved = laws.Fact(found.fact.lower * 1.1, found.fact.upper * 1.1, "moved")
        for law in (laws.truth, laws.duality):
            fact = law(found, queries.Dice(f"{i}"))
            seen[law.__name__] += fact is not None
            assert fact is None or laws.meet(found.fact, fact)
            seen[law.__name__ + " sees"] += fact is not None and not laws.meet(moved, fact)
    assert seen["truth"] > 5 and seen["truth sees"] == seen["truth"]
    assert seen["duality"] > 10 and seen["duality sees"] > seen["duality"] / 2


@pytest.mark.skipif(sys.platform == "win32", reason="patience is measured by a signal")
@pytest.mark.parametrize("n", [2000, pytest.param(20000, marks=pytest.mark.slow)])
def test_cases_by_the_thousand(n, tmp_path, capsys):
    attack.attack(n, 1, tmp_path / "state", patience=0.02)
    table = attack.table(tmp_path / "state")
    assert table.startswith(f"{n:,} cases") and "; 0 wrong, 0 crash" in table, capsys.readouterr().out


FOUND = (REFERENCE / "found.txt").read_text().splitlines()
"""Queries of which each raised an exception that is none of the package's, or a numpy warning, or contradicted
itself."""


@pytest.mark.parametrize("text", FOUND)
def test_corners_that_the_generator_found(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            answer = queries.made(text)
        except hs.AccuracyError:
            return
    if isinstance(answer, hs.Bound):
        assert np.all((answer.lower <= answer.estimate) & (answer.estimate <= answer.upper))


@pytest.mark.parametrize("adjacency", queries.ADJACENCIES)
def test_batches_of_all_records_among_the_sizes(adjacency):
    """Without replacement, from a batch of everyone (the safest size) on: the largest is the size after."""

    def eps(size):
        step = hs.truncated_poisson_subsampled(hs.gaussian(4.0), 1.0, dataset_size=size, max_batch=905)
        return hs.epsilon(step * 76, 1e-6, adjacency=adjacency)

    found, alone = eps((905, 981)), [eps(n) for n in (905, 906, 930, 981)]
    assert found.lower <= max(a.upper for a in alone)
    assert max(a.lower for a in alone) <= found.upper < max(a.upper for a in alone) * (1 + 1e-3)


def test_mu_of_a_run_that_is_not_private():
    bound = hs.mu_gdp(hs.approx_dp(0.1, 1e-5), 1e-6)
    assert bound.lower == bound.upper == float("inf")


def test_contour_of_two_atoms_700_nats_apart():
    """The kernel of the lattice squared e^389: its value 0 made delta 1 where 1 - e^(eps - loss) is 1e-15."""
    run = hs.from_pmf([0.9999999585291691, 4.147083091086063e-08], [1e-300, 1.0])
    for eps in (16.998275526456226, 16.99827552645623, 16.998275526456233):
        bound = hs.log_delta(run, eps, direction="add")
        assert bound.lower < -34 < bound.upper < -20
        try:
            bound = hs.log_delta(run * 2, 2 * eps, direction="add", route="contour")
        except hs.AccuracyError:
            continue
        assert bound.lower < -33 < bound.upper


def test_records_of_one_call_that_differ_much():
    """The direction ADD of a record was held against the larger of both: a contradiction that is none."""
    sigmas = [20.60805297739058, 2.8967553400740225, 26.025325158879898, 2.6830738457239804]
    counts = [[100000, 0, 0, 3792], [2, 0, 0, 596], [0, 0, 2367, 0], [0, 0, 0, 0], [1435, 5168, 0, 1152]]
    found = hs.individual_epsilons(counts, sigmas=sigmas, delta=2.841957024538014e-06, q=0.0002)
    assert abs(found.upper[1] - 0.0050042991239546506) < 1e-8
