"""The table of 40-digit values: every Gaussian-family row is certified, contained and narrow."""

import json
import statistics
from pathlib import Path

import pytest

import hockeystick as hs

TABLE = Path(__file__).parent / "reference" / "truth.jsonl"
NOT_ANSWERED = ()
"""First words of the ids whose rows may raise AccuracyError today: q k far below 1. Nothing else may."""

U = 2.0**-53


def build(row):
    """(run, direction), or None where the row has another mechanism or mixes directions."""
    parts, directions = [], set()
    for part in row["mechanisms"]:
        step = hs.gaussian(part["params"]["sigma"]) if "sigma" in part["params"] else None
        if part["type"] == "subsampled_gaussian":
            step = hs.poisson_subsampled(step, part["params"]["q"])
            directions.add(part["direction"])
        elif part["type"] != "gaussian":
            return None
        parts.append((step, int(part["count"])))
    if len(directions) > 1:
        return None
    return hs.compose(*parts), directions.pop() if directions else "both"


def read():
    rows = [json.loads(line) for line in TABLE.read_text().splitlines()]
    return {row["id"]: (row, *built) for row in rows if (built := build(row))}


ROWS = read()


def ask(name):
    """(bound, truth, what the table itself may be off by)."""
    row, run, direction = ROWS[name]
    truth = float(row["value"])
    query = hs.delta if row["query"] == "delta" else hs.epsilon
    table_error = float(row["err_bound"]) if row["query"] == "delta" else 0.0
    return query(run, row["at"], direction=direction), truth, table_error + 2 * U * abs(truth)


def scale_of(name, truth):
    return truth if ROWS[name][0]["query"] == "delta" else max(truth, 1e-3)


def test_table_is_read():
    assert len(ROWS) >= 100
    assert {row["query"] for row, *_ in ROWS.values()} == {"delta", "eps"}


@pytest.mark.parametrize("name", ROWS)
def test_row_is_contained(name):
    try:
        bound, truth, error = ask(name)
    except hs.AccuracyError:
        assert name.split("-")[0] in NOT_ANSWERED
        return
    assert bound.certified
    assert bound.lower <= truth + error
    assert bound.upper >= truth - error
    assert bound.lower <= bound.estimate <= bound.upper


def test_medians():
    widths, errors = [], []
    for name in ROWS:
        try:
            bound, truth, _ = ask(name)
        except hs.AccuracyError:
            continue
        if truth == 0:
            assert bound.upper == 0
            continue
        widths.append(bound.width / scale_of(name, truth))
        errors.append(abs(bound.estimate - truth) / scale_of(name, truth))
    assert statistics.median(widths) <= 1e-11
    assert statistics.median(errors) <= 1e-12
