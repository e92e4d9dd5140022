"""The tables of truths as runs that a query takes, and what many tests say in the same words.

reference/truth.jsonl has a row a question: mechanisms with counts and directions, `query` at `at`, and its answer to 30
digits or more, within `err_bound`. reference/known.jsonl has numbers of any query that closed forms, enumeration or
other programs gave (`by`): any run as text, and how wide the answer of each route named may be."""

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.what.pair import step_loss
from queries import made

U = 2.0**-53
REFERENCE = Path(__file__).parent / "reference"


def sgm(sigma, q, k=1):
    """k steps of the Gaussian mechanism on Poisson samples."""
    return hs.poisson_subsampled(hs.gaussian(sigma), q) * k


def overlap(a, b):
    """Whether two intervals about one number meet, entry by entry."""
    return np.all(np.maximum(a.lower, b.lower) <= np.minimum(a.upper, b.upper))


def bits(bound):
    """All three curves of an answer, to the last bit."""
    return tuple(np.asarray(x).tobytes() for x in (bound.lower, bound.estimate, bound.upper))


def gaussian_delta(mu, eps, digits=60):
    """delta(eps) of the Gaussian mechanism whose sensitivity over sigma is mu: erfc keeps both tails."""
    with mp.workdps(digits):
        mu, eps = mpf(mu), mpf(eps)
        up, down = (mp.erfc((eps / mu + shift) / mp.sqrt(2)) / 2 for shift in (-mu / 2, mu / 2))
        return up - mp.exp(eps) * down


STEPS = {
    "gaussian": lambda p: hs.gaussian(p["sigma"]),
    "replace_one_gaussian": lambda p: hs.gaussian(p["sigma"]),
    "truncated_gaussian": lambda p: hs.truncated_poisson_subsampled(
        hs.gaussian(p["sigma"]), p["p"], dataset_size=int(p["n"]), max_batch=int(p["B"])
    ),
    "laplace": lambda p: hs.laplace(p["b"]),
    "randomized_response": lambda p: hs.randomized_response(p["eps"]),
    "discrete_laplace": lambda p: hs.discrete_laplace(p["b"], sensitivity=int(p["sensitivity"])),
    "discrete_gaussian": lambda p: hs.discrete_gaussian(p["sigma"], sensitivity=int(p["sensitivity"])),
}
MIRRORED = {"gaussian", "laplace", "randomized_response", "discrete_laplace", "discrete_gaussian"}
"""Families whose two directions are one."""


class Part(NamedTuple):
    """k times one step of a row. `kind` is its family, sampled or not; `direction` of a mirrored family says
    nothing."""

    kind: str
    sampled: bool
    step: object
    k: int
    adjacency: str
    direction: str


class Row(NamedTuple):
    """A question and its answer: the truth is within `error` of `truth`."""

    id: str
    parts: tuple[Part, ...]
    query: str
    at: float
    truth: mpf
    error: mpf

    @property
    def kinds(self):
        return {part.kind for part in self.parts}

    @property
    def run(self):
        return hs.compose(*((part.step, part.k) for part in self.parts))

    @property
    def steps(self):
        return sum(part.k for part in self.parts)

    @property
    def delta(self):
        return float(self.truth) if self.query == "delta" else self.at

    @property
    def options(self):
        """The adjacency and direction in which a query can ask, or None where the row mixes them."""
        uneven = [part for part in self.parts if part.sampled or part.kind not in MIRRORED]
        directions = {part.direction for part in uneven} or {"both"}
        adjacencies = {part.adjacency for part in uneven} or {"add_remove"}
        if len(directions) > 1 or len(adjacencies) > 1:
            return None
        return {"adjacency": adjacencies.pop(), "direction": directions.pop()}

    @property
    def losses(self):
        """(Loss, count) of every part in its own adjacency and direction."""
        return tuple((step_loss(x.step, x.adjacency, x.direction == "add"), x.k) for x in self.parts)

    def ask(self, **settings):
        """The answer of the library."""
        return (hs.delta if self.query == "delta" else hs.epsilon)(self.run, self.at, **(self.options | settings))

    def scale(self):
        """What a width is relative to."""
        return float(self.truth) if self.query == "delta" else max(float(self.truth), 1e-3)


def _part(given):
    p, kind = given["params"], given["type"].replace("subsampled_", "")
    step = STEPS[kind](p)
    adjacency = "replace_one" if kind == "replace_one_gaussian" else p.get("adjacency", "add_remove")
    step = hs.poisson_subsampled(step, p["q"]) if "q" in p else step
    return Part(kind, "subsampled" in given["type"], step, int(given["count"]), adjacency, given["direction"])


def _row(given):
    parts = tuple(_part(part) for part in given["mechanisms"])
    error = mpf(given["err_bound"]) if given["query"] == "delta" else mpf(0)
    return Row(given["id"], parts, given["query"], float(given["at"]), mpf(given["value"]), error)


with mp.workdps(50):
    ROWS = {row["id"]: _row(row) for row in map(json.loads, (REFERENCE / "truth.jsonl").read_text().splitlines())}
ASKED = {name: row for name, row in ROWS.items() if row.options}
"""The rows that a query can ask: the others mix directions or adjacencies."""


def holds(lower, estimate, upper, row):
    """Whether an interval is in order and has the truth in it. A number of the table is a decimal, a question a
    double."""
    with mp.workdps(50):
        slack = row.error + 2 * U * abs(row.truth)
        return lower <= estimate <= upper and lower <= row.truth + slack and row.truth - slack <= upper


def log_holds(lower, estimate, upper, row):
    """The same of log delta."""
    return holds(*(math.exp(x) for x in (lower, estimate, upper)), row)


class Known(NamedTuple):
    """A number that is known within `error`.

    `widths`: by route, how wide its answer may be, relative to the number (of a logarithm: as it is), or None. A route
    after the word `inverse` is asked for eps at the delta of the row."""

    id: str
    run: str
    options: dict[str, str]
    query: str
    at: float
    truth: mpf
    error: mpf
    widths: dict[str, float | None]

    def ask(self, route):
        """(answer, whether the number is in it, what its width is relative to)."""
        inverse, _, word = route.rpartition(" ")
        query, options = getattr(hs, self.query), {"route": word} if word != "auto" else {}
        if not inverse:
            bound = query(made(self.run), self.at, **options, **self.options)
            return bound, holds(bound.lower, bound.estimate, bound.upper, self), self.scale()
        with mp.workdps(50):
            deltas = [self.truth + side * (self.error + 2 * U * abs(self.truth)) for side in (1, -1)]
            deltas = [float(mp.exp(x) if self.query == "log_delta" else x) for x in deltas]
        low, high = (hs.epsilon(made(self.run), delta, **options, **self.options) for delta in deltas)
        return low, low.lower <= self.at * (1 + 2 * U) and self.at * (1 - 2 * U) <= high.upper, self.at

    def scale(self):
        return 1.0 if self.query == "log_delta" or not self.truth else float(abs(self.truth))


def _known():
    for row in map(json.loads, (REFERENCE / "known.jsonl").read_text().splitlines()):
        options = {name: row[name] for name in ("adjacency", "direction", "tail") if name in row}
        truth, error = mpf(row["value"]), mpf(row.get("err_bound", 0))
        yield Known(row["id"], row["run"], options, row["query"], row["at"], truth, error, row["widths"])
    for row in map(json.loads, (REFERENCE / "small_k.jsonl").read_text().splitlines()):
        run = "hs.poisson_subsampled(hs.gaussian({sigma}), {q}) * {k}".format(**row)
        options, truth = {"direction": row["direction"]}, mpf(row["delta"])
        widths = {"auto": 1e-6, "inverse auto": 1e-6}
        error = mpf(row["disagreement"]) * truth
        yield Known(f"{run} {row['eps']}", run, options, "delta", float(row["eps"]), truth, error, widths)


with mp.workdps(50):
    KNOWN = list(_known())
