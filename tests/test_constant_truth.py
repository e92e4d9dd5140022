"""The constant-time routes on every row of the table that they take: contained, so any two of their intervals meet."""

import json

import pytest

import hockeystick as hs
from hockeystick.routes import edgeworth, eeai
from test_truth import TABLE

U = 2.0**-53
SADDLE_DECLINES = {"gopi-d-k1-add", "gopi-d-k300-add", "tinyq-s100.0-k10000000"}
"""Rows without a saddle: one jump is all there is, or eps lies beyond the largest loss."""

STEPS = {
    "gaussian": lambda p: hs.gaussian(p["sigma"]),
    "subsampled_gaussian": lambda p: hs.poisson_subsampled(hs.gaussian(p["sigma"]), p["q"]),
    "replace_one_subsampled_gaussian": lambda p: hs.poisson_subsampled(hs.gaussian(p["sigma"]), p["q"]),
    "truncated_subsampled_gaussian": lambda p: hs.truncated_poisson_subsampled(
        hs.gaussian(p["sigma"]), p["p"], dataset_size=int(p["n"]), max_batch=int(p["B"])
    ),
    "laplace": lambda p: hs.laplace(p["b"]),
    "subsampled_laplace": lambda p: hs.poisson_subsampled(hs.laplace(p["b"]), p["q"]),
    "randomized_response": lambda p: hs.randomized_response(p["eps"]),
    "discrete_laplace": lambda p: hs.discrete_laplace(p["b"], sensitivity=int(p["sensitivity"])),
    "discrete_gaussian": lambda p: hs.discrete_gaussian(p["sigma"], sensitivity=int(p["sensitivity"])),
}
MIRRORED = {"gaussian", "laplace", "randomized_response", "discrete_laplace", "discrete_gaussian"}
EDGEWORTH = {"gaussian", "subsampled_gaussian", "laplace", "subsampled_laplace"}


def rows():
    """(row, run, options, kinds) of the rows that one adjacency and one direction can express."""
    for line in TABLE.read_text().splitlines():
        row = json.loads(line)
        kinds = {part["type"] for part in row["mechanisms"]}
        directions = {part["direction"] for part in row["mechanisms"] if part["type"] not in MIRRORED}
        adjacencies = {part["params"].get("adjacency", "add_remove") for part in row["mechanisms"]}
        if "replace_one_subsampled_gaussian" in kinds:
            adjacencies = {"replace_one"} if len(kinds) == 1 else {"replace_one", "add_remove"}
        if len(directions) > 1 or len(adjacencies) > 1:
            continue
        run = hs.compose(*((STEPS[part["type"]](part["params"]), int(part["count"])) for part in row["mechanisms"]))
        options = {"direction": directions.pop() if directions else "both", "adjacency": adjacencies.pop()}
        yield pytest.param(row, run, options, kinds, id=row["id"])


ROWS = list(rows())


def test_table_is_read():
    assert len(ROWS) == 168
    assert {kind for case in ROWS for kind in case.values[3]} == set(STEPS)


@pytest.mark.parametrize(("row", "run", "options", "kinds"), ROWS)
def test_row_is_contained(row, run, options, kinds):
    query = hs.delta if row["query"] == "delta" else hs.epsilon
    truth = float(row["value"])
    slack = (float(row["err_bound"]) if row["query"] == "delta" else 0.0) + 4 * U * abs(truth)
    found = []
    for route in ("saddlepoint", "edgeworth"):
        if route == "edgeworth" and not kinds <= EDGEWORTH:
            with pytest.raises(hs.DomainError, match="takes Gaussian and Laplace steps"):
                query(run, row["at"], route=route, **options)
            continue
        try:
            bound = query(run, row["at"], route=route, **options)
        except hs.AccuracyError:
            assert route == "saddlepoint" and row["id"] in SADDLE_DECLINES
            continue
        assert bound.certified and bound.lower <= truth + slack and truth - slack <= bound.upper
        assert bound.lower <= bound.estimate <= bound.upper
        found.append(bound)
        moved = min(bound.estimate / truth, truth / bound.estimate) if truth and bound.estimate else 1.0
        if bound.budget.terms.get("skewness", 1.0) < 0.1:
            assert moved > 1 - 1e-3
    assert not found or max(b.lower for b in found) <= min(b.upper for b in found)


@pytest.mark.parametrize(("row", "run", "options"), [c.values[:3] for c in ROWS if c.values[3] <= EDGEWORTH])
def test_row_is_in_the_finite_sample_interval(row, run, options):
    """Both forms of EEAI, where the run's steps have moments with a proved error; vacuous or not, never beside the truth."""
    if options["adjacency"] != "add_remove" or not eeai.takes(edgeworth.steps_of(run)):
        return
    query = edgeworth.eeai_delta if row["query"] == "delta" else edgeworth.eeai_epsilon
    truth = float(row["value"])
    slack = (float(row["err_bound"]) if row["query"] == "delta" else 0.0) + 4 * U * abs(truth)
    for form in edgeworth.FORMS:
        try:
            bound = query(run, row["at"], form=form, direction=options["direction"])
        except hs.AccuracyError:
            assert row["id"] in SADDLE_DECLINES
            continue
        assert bound.certified and bound.lower <= truth + slack and truth - slack <= bound.upper
