"""The tables of known values: every row by every route that takes it is certified, contained, and as narrow as
promised."""

import functools
import math
import statistics
from collections.abc import Callable
from typing import NamedTuple

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.routes import contour, edgeworth, eeai, lattice, mixed, pld
from hockeystick.routes.table import ROUTES
from hockeystick.what import pair, sampling
from rows import ASKED, KNOWN, ROWS, U, holds, log_holds

GAUSSIAN, TWO_SIDED = {"gaussian"}, {"truncated_gaussian", "replace_one_gaussian"}
LINE = {"gaussian", "laplace"}
NO_SADDLE = {"gopi-d-k1-add", "gopi-d-k300-add", "tinyq-s100.0-k10000000"}
"""Rows without a saddle: one jump is all there is, or eps lies beyond the largest loss."""


class Promise(NamedTuple):
    """What a route owes the rows that it takes.

    `width`: of every row but those in `wide`, relative to the truth (of eps, to 1e-3 at least); `shares`: (part of the
    rows, width that so many keep to). A row may decline only where `declines` names it; what is not taken is, where
    `foreign`, a DomainError."""

    ask: Callable
    takes: Callable
    width: float = math.inf
    wide: dict[str, float] = {}  # noqa: RUF012
    shares: tuple[tuple[float, float], ...] = ()
    declines: frozenset[str] | set[str] = frozenset()
    slow: frozenset[str] | set[str] = frozenset()
    foreign: bool = False


def route(name, **settings):
    return lambda row: row.ask(route=name, **settings)


def finite_sample(form):
    def ask(row):
        query = edgeworth.eeai_delta if row.query == "delta" else edgeworth.eeai_epsilon
        return query(row.run, row.at, form=form, direction=row.options["direction"])

    return ask


def bounded(row):
    """Whether the run's steps have moments with a proved error."""
    return row.kinds <= LINE and row.options["adjacency"] == "add_remove" and eeai.takes(edgeworth.steps_of(row.run))


def few_gaussians(row):
    return row.kinds != GAUSSIAN or row.id.startswith(("gopi", "spa-e", "mix"))


WIDE = {"tinyq-s0.5-k1000": 2e-3, "tinyq-s0.5-k1000000": 1e-6, "tinyq-d-s1-k1e7-a": 2e-3, "tinyq-deep-remove": 1e14}
WIDE |= {"tinyq-s100.0-k10000000": 3.0, "tinyq-d-s1-k1e7-b": 1e23, "gopi-d-k100-rem": 2e-9, "ro-q0.01-s1.0-k10": 2e-9}
WIDE |= {"sl-k1-remove": 2e-9}  # the first ladder of panels within rtol, which is half of a width
JUMPS = {
    "gopi-d-k2-rem": 3e3,
    "gopi-d-k10-rem": 1e3,
    "gopi-d-k100-rem": 200.0,
    "gopi-d-k300-rem": 100.0,
    "gopi-d-k1-rem": 5e3,
}
JUMPS |= {"edge-logsqrt-m10": 300.0, "tinyq-deep-remove": 1e23, "tinyq-d-s1-k1e7-a": 1e7, "tinyq-d-s1-k1e7-b": 1e28}
MESHES = {"sig0.3-q0.01-k10000-remove": 0.03, "tinyq-d-s1-k1e7-a": 0.05}
"""Widths of eps that route prv leaves by itself, where that is more than 0.021."""
PROMISES = {
    "auto": Promise(lambda row: row.ask(), lambda row: True, 1e-9, WIDE, ((0.5, 1e-11),)),
    "contour": Promise(
        route("contour"),
        lambda row: True,
        1e-9,
        WIDE,
        ((0.5, 1e-11),),
        declines={"tinyq-s100.0-k10000000", "tinyq-d-s1-k1e7-b"},
    ),
    "saddlepoint": Promise(route("saddlepoint"), lambda row: True, 60.0, JUMPS, ((0.5, 1.0),), declines=NO_SADDLE),
    "edgeworth": Promise(
        route("edgeworth"), lambda row: row.kinds <= LINE, shares=((0.5, 1e-10), (0.7, 1e-6)), foreign=True
    ),
    "pld": Promise(route("pld", rtol=1e-3), few_gaussians, 1.002e-3, slow={"spa-e-1e-100", "la-b300.0-k1000000"}),
    "prv": Promise(
        route("prv", rtol=0.05),
        lambda row: not row.kinds <= GAUSSIAN | TWO_SIDED and row.delta > 1e-10,
        0.053,  # relative to the truth, not to the upper end
        slow={"la-b300.0-k1000000"},
    ),
    "one_sequence": Promise(finite_sample("one_sequence"), bounded, declines=NO_SADDLE),
    "two_sequence": Promise(finite_sample("two_sequence"), bounded, declines=NO_SADDLE),
}


@functools.cache
def answer(name, row_id):
    """The bound and its relative width; None where the route declines."""
    row = ASKED[row_id]
    try:
        bound = PROMISES[name].ask(row)
    except hs.AccuracyError:
        return None
    return bound, bound.width / row.scale() if row.truth else bound.upper


def cases():
    for name, promise in PROMISES.items():
        for row in ASKED.values():
            if promise.takes(row):
                marks = [pytest.mark.slow] if row.id in promise.slow else []
                yield pytest.param(name, row, id=f"{name}-{row.id}", marks=marks)


def test_the_table_is_read():
    """Rows by kind, whole and as each route is asked: no test below is about nothing."""
    kinds = ("gaussian", "laplace", "randomized_response", "discrete_laplace", "discrete_gaussian", *sorted(TWO_SIDED))
    assert [sum(row.kinds == {kind} for row in ROWS.values()) for kind in kinds] == [114, 18, 7, 4, 5, 9, 15]
    assert (len(ROWS), len(ASKED)) == (175, 168) and set(ROUTES) <= PROMISES.keys()
    asked = {name: sum(promise.takes(row) for row in ASKED.values()) for name, promise in PROMISES.items()}
    assert asked == dict(
        auto=168, contour=168, saddlepoint=168, edgeworth=127, pld=89, prv=26, one_sequence=127, two_sequence=127
    )
    assert {row.options["adjacency"] for row in ASKED.values()} == {"add_remove", "replace_one", "zero_out"}


@pytest.mark.parametrize(("name", "row"), list(cases()))
def test_row(name, row):
    promise, found = PROMISES[name], answer(name, row.id)
    if found is None:
        assert row.id in promise.declines
        return
    bound, width = found
    assert bound.certified and holds(bound.lower, bound.estimate, bound.upper, row)
    assert width <= promise.wide.get(row.id, promise.width)
    if name in ("saddlepoint", "edgeworth", "pld", "prv") or (name in ("auto", "contour") and row.kinds != GAUSSIAN):
        assert bound.route in ("contour" if name == "auto" else name, "exact")
    if bound.budget.terms.get("skewness", 1.0) < 0.1 and row.truth:
        assert abs(bound.estimate / float(row.truth) - 1) < 1e-3


@pytest.mark.parametrize("name", [name for name, promise in PROMISES.items() if promise.shares])
def test_most_rows_are_narrower(name):
    found = [answer(name, row.id) for row in ASKED.values() if PROMISES[name].takes(row) and row.truth]
    widths = sorted(math.inf if x is None else x[1] for x in found)
    for share, width in PROMISES[name].shares:
        assert widths[math.ceil(share * len(widths)) - 1] <= width


def test_estimates_are_closer_than_ends():
    rows = [row for row in ASKED.values() if row.kinds == GAUSSIAN and row.truth]
    errors = [abs(answer("auto", row.id)[0].estimate - float(row.truth)) / row.scale() for row in rows]
    assert statistics.median(errors) <= 1e-12


@pytest.mark.parametrize("name", [name for name, promise in PROMISES.items() if promise.foreign])
def test_other_steps_are_refused(name):
    for row in ASKED.values():
        if not PROMISES[name].takes(row):
            with pytest.raises(hs.DomainError, match="takes Gaussian and Laplace steps"):
                PROMISES[name].ask(row)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.id, marks=[pytest.mark.slow] if row.steps >= 10**5 or row.id in MESHES else [])
        for row in ASKED.values()
        if row.kinds <= GAUSSIAN | TWO_SIDED and 1e-10 < row.delta < 1
    ],
)
def test_prv_is_off_by_a_mesh_in_eps(row):
    """Delta is tight against eps moved by the mesh: its inverse at the truth is about as wide as a root."""
    if row.id == "ro-q0.001-s0.7-k1000000":  # it would need too many cells
        with pytest.raises(hs.AccuracyError, match="cells"):
            row.ask(route="prv")
        return
    bound = row.ask(route="prv")
    assert bound.certified and bound.route == "prv" and holds(bound.lower, bound.estimate, bound.upper, row)
    if row.query == "delta":
        bound = hs.epsilon(row.run, float(row.truth), route="prv", **row.options)
        assert bound.lower <= max(row.at, 0) * (1 + 4 * U) and max(row.at, 0) * (1 - 4 * U) <= bound.upper
    assert bound.width <= MESHES.get(row.id, 0.021)


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row not in ASKED.values()], ids=lambda row: row.id)
def test_rows_that_no_query_can_ask(row):
    """Directions or adjacencies mixed within one run, by the routes' own descriptions of it."""
    ask = pld.point if row.query == "delta" else pld.root
    ends = ask(row.losses, row.at, 1e-3)[:3]
    assert (log_holds if row.query == "delta" else holds)(*ends, row)
    if "replace_one_gaussian" in row.kinds:
        steps = pair._paired_steps([(sampling.family(part.step, part.adjacency), part.k) for part in row.parts], False)
        low, mid, high, *_ = contour.pair_point(steps, 0, row.at)
    else:
        at = row.at if row.query == "delta" else math.log(row.at)
        low, mid, high, *_ = (mixed.point if row.query == "delta" else mixed.root)(
            [line_step(x) for x in row.parts], at
        )
    with mp.workdps(40):
        truth = mp.log(row.truth) if row.query == "delta" else row.truth
        assert low <= truth <= high and high - low < 1e-8 and abs(mid - truth) < 1e-9


# [theory: saddle.renyi, law.theta, law.shifts, risk.tpr, risk.slope, risk.bayes, risk.posterior, line.complement]
# [theory: law.laplace-ends, law.second-order]
@pytest.mark.parametrize(
    ("row", "route"), [pytest.param(row, r, id=f"{row.id}-{r}") for row in KNOWN for r in row.widths]
)
def test_known_number(row, route):  # [theory: small.single, small.next-to-one, pair.approx-dp, grid.cut]
    bound, inside, scale = row.ask(route)
    assert bound.certified and inside and bound.lower <= bound.estimate <= bound.upper
    assert row.widths[route] is None or bound.upper - bound.lower <= row.widths[route] * scale


def line_step(part):
    base, q, add = (part.step.base, part.step.q, part.direction == "add") if part.sampled else (part.step, 1.0, False)
    if part.kind == "laplace":
        return mixed.LaplaceStep(1 / base.scale, q, int(add), part.k)
    if part.kind == "randomized_response":
        return mixed.off_lattice(lattice.randomized_response(base.eps0), part.k)
    if part.kind == "discrete_laplace":
        return mixed.off_lattice(lattice.discrete_laplace(base.scale, base.sensitivity), part.k)
    return mixed.NormalStep(1 / base.sigma, q, int(add), part.k)
