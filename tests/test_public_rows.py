"""Laplace and discrete rows of the table of truths through the public queries, by every route, at the width asked for."""

import statistics

import pytest
from mpmath import mpf

import hockeystick as hs
from test_pld import ROWS, mechanism

KINDS = {"laplace", "subsampled_laplace", "randomized_response", "discrete_laplace", "discrete_gaussian"}
OWN = [row for row in ROWS if {part["type"] for part in row.values[0]["mechanisms"]} <= KINDS]
PRV = [row for row in OWN if float(row.values[0]["value" if row.values[0]["query"] == "delta" else "at"]) > 1e-10]


def asked(row, **settings):
    """(certified bound, relative width); the truth is inside."""
    (part,) = row["mechanisms"]
    run = mechanism(part) * int(part["count"])
    query = hs.delta if row["query"] == "delta" else hs.epsilon
    bound = query(run, float(row["at"]), direction=part["direction"], **settings)
    truth = mpf(row["value"])
    error = mpf(row["err_bound"]) + truth * mpf(2) ** -50  # parameters and "at" are rounded to doubles
    assert bound.certified
    assert bound.lower <= truth + error and truth - error <= bound.upper
    return bound, bound.width / max(float(truth), 1e-300)


def test_rows_are_read():
    assert len(OWN) >= 34 and len(PRV) >= 25


def test_auto_contains_all_rows_and_is_narrow():
    """Median relative width 1e-8 or less; 3e-12 as measured, one row at its largest loss is wide."""
    widths = [asked(row.values[0])[1] for row in OWN]
    assert statistics.median(widths) <= 1e-8
    assert sum(width > 1e-8 for width in widths) <= 2


@pytest.mark.parametrize("row", [pytest.param(row.values[0], id=row.id) for row in PRV])
def test_prv(row):
    """A tolerance of 5%, which a radius in eps must reach in delta as well."""
    bound, width = asked(row, route="prv", rtol=0.05)
    assert bound.route == "prv"
    assert width <= 0.05 * 1.06  # relative to the truth, not to the upper end


@pytest.mark.parametrize("row", [pytest.param(row.values[0], id=row.id) for row in OWN])
def test_pld(row):
    bound, width = asked(row, route="pld", rtol=1e-3)
    assert bound.route == "pld"
    assert width <= 1.002e-3
