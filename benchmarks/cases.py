"""The one list of problems for the benchmarks and the README's table, with the truth of each.

Truth comes from tests/reference/truth.jsonl (rows named there), from the closed form of the Gaussian curve, or from
make_truth.py, which shares no code with the package.
"""

from __future__ import annotations

import functools
import json
import math
import pathlib
from typing import NamedTuple

REFERENCE = pathlib.Path(__file__).parents[1] / "tests" / "reference"


class Step(NamedTuple):
    """`k` Gaussian steps of noise `sigma`, each on a Poisson sample of rate `q` (1: no sampling)."""

    sigma: float
    q: float
    k: int


class Problem(NamedTuple):
    """A run, the delta asked for, the source of its true eps: "" TRUTH, "gaussian" the closed form, or a row id."""

    name: str
    steps: tuple[Step, ...]
    delta: float
    source: str = ""
    direction: str = "both"
    adjacency: str = "add_remove"

    @property
    def by_script(self) -> bool:
        return not self.source


def distinct_steps(n: int) -> tuple[Step, ...]:
    """n different steps: sigma falls from 1.4 to 0.9, q rises from 0.5 to 1.5 times 0.3/sqrt(n)."""
    q = 0.3 / math.sqrt(n)
    return tuple(Step(1.4 - 0.5 * i / n, q * (0.5 + i / n), 1) for i in range(n))


HEADLINE = Problem("headline", (Step(1.0, 0.01, 1000),), 1e-5)

GROWING_K = tuple(HEADLINE if e == 3 else Problem(f"k=1e{e}", (Step(1.0, 0.01, 10**e),), 1e-5) for e in range(2, 10))

DISTINCT = {n: Problem(f"{n} distinct", distinct_steps(n), 1e-5) for n in (100, 1000, 100_000)}

PEER_PROBLEMS = (
    HEADLINE,
    Problem("headline, 1e-12", (Step(1.0, 0.01, 1000),), 1e-12),
    Problem("headline, 1e-20", (Step(1.0, 0.01, 1000),), 1e-20),
    Problem("long", (Step(2.0, 1e-3, 10**6),), 1e-6),
    Problem("longer, sparse", (Step(5.0, 1e-4, 10**7),), 1e-8),
    Problem("one jump", (Step(1.0, 1e-6, 10**6),), 1e-9),
    Problem("much noise", (Step(100.0, 0.01, 10**5),), 1e-6),
    Problem("spa", (Step(2.0, 0.01, 3000),), 1e-5, "spa-e-1e-5"),
    Problem("few steps", (Step(1.0, 0.05, 10),), 1e-5, "edge-fix-k10"),
    DISTINCT[100],
    Problem("Gaussian k=1e4", (Step(100.0, 1.0, 10**4),), 1e-12, "gaussian"),
    Problem("Gaussian k=1e5", (Step(math.sqrt(1e5), 1.0, 10**5),), 1e-13, "gaussian"),
)

PROBLEMS = tuple({p.name: p for p in (*GROWING_K, *PEER_PROBLEMS, *DISTINCT.values())}.values())

SMALL_K = tuple(
    (sigma, q, k, delta)
    for k in (1, 2, 3, 5, 10, 30, 100)
    for q in (0.001, 0.005, 0.01, 0.05)
    for sigma in (0.6, 0.8, 1.0, 1.5, 2.0)
    for delta in (1e-5, 1e-7, 1e-9)
)
"""sigma, q, k, delta over the first hour of a training run; tests/reference/small_k.jsonl has truths of such points."""

SPARSE = tuple(
    (sigma, q, k, delta)
    for k in (10**3, 10**4, 10**5, 10**6)
    for q in (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
    for sigma in (0.3, 0.5, 0.7, 1.0, 2.0)
    for delta in (1e-5, 1e-6, 1e-8)
)
"""Large training runs: many steps on small samples, where rare large losses meet a bulk of tiny ones."""

CORNERS = tuple(
    (sigma, q, k, delta)
    for k in (1, 10**3, 10**6, 10**9)
    for q in (1e-9, 1e-6, 1e-3, 0.1)
    for sigma in (0.05, 0.1, 0.3, 1.0, 3.0, 30.0, 1e4)
    for delta in (1e-5, 1e-30, 1e-300)
)
"""The ends of what is allowed."""

RANGED = ((10, 0.5, 3.81343), (100, 0.1, 2.61177), (50, 0.2, 3.78916))
"""k, eps0 of k steps of bounded range eps0, and eps at delta = 1e-6 of the pair that dominates each, to six digits."""

TRUTH: dict[str, str] = {
    "k=1e2": "0.7180356613388554620957",  # two lines agree to 3e-29
    "headline": "1.828236666516576873074",  # two lines agree to 1e-32
    "k=1e4": "6.187712389971539200606",  # two lines agree to 4e-32
    "k=1e5": "25.57310698652150495566",  # two lines agree to 7e-27
    "k=1e6": "139.0302725705577639892",  # two lines agree to 9e-38
    "k=1e7": "1014.067072835614869734",  # two lines agree to 2e-36
    "k=1e8": "8939.180070648941655262",  # two lines agree to 5e-37
    "k=1e9": "85578.29426008203755628",  # two lines agree to 2e-38
    "headline, 1e-12": "3.914298156037469819008",  # two lines agree to 8e-33
    "headline, 1e-20": "6.36170020407935017534",  # two lines agree to 2e-26
    "long": "2.420858347729797314109",  # two lines agree to 1e-29
    "longer, sparse": "0.3083267555882954618997",  # two lines agree to 2e-29
    "1000 distinct": "1.7804620309740987103",  # two lines agree to 1e-16
    "100 distinct": "2.2541952402001460103",  # two lines agree to 5e-17
    "one jump": "0.0059029070",  # two lines agree to 2e-06
    "much noise": "0.1159385414912795938846",  # two lines agree to 2e-35
}
"""eps by problem name, printed by make_truth.py."""


@functools.cache
def _rows() -> dict[str, str]:
    with open(REFERENCE / "truth.jsonl") as lines:
        return {row["id"]: row["value"] for row in map(json.loads, lines)}


def gaussian_eps(mu: float, delta: float) -> float:
    """The root of delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), in 40 digits."""
    import mpmath as mp

    with mp.workdps(40):
        m = mp.mpf(mu)
        start = m * m / 2 + m * mp.sqrt(-2 * mp.log(delta))

        def curve(e):
            return mp.log(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)) - mp.log(delta)

        return float(mp.findroot(curve, start))


def truth(problem: Problem) -> float:
    """True eps of the problem, rounded to double; nan where none is known."""
    if problem.source == "gaussian":
        ((sigma, _, k),) = problem.steps
        return gaussian_eps(math.sqrt(k) / sigma, problem.delta)
    return float(_rows()[problem.source] if problem.source else TRUTH.get(problem.name, "nan"))


def small_k_rows():
    """(Step, direction, eps, true delta) of tests/reference/small_k.jsonl."""
    with open(REFERENCE / "small_k.jsonl") as lines:
        for row in map(json.loads, lines):
            step = Step(float(row["sigma"]), float(row["q"]), row["k"])
            yield step, row["direction"], float(row["eps"]), float(row["delta"])


def build(hs, problem: Problem):
    """The problem's run, by the package's own constructors."""
    parts = [
        (hs.gaussian(s.sigma) if s.q == 1 else hs.poisson_subsampled(hs.gaussian(s.sigma), s.q), s.k)
        for s in problem.steps
    ]
    return hs.compose(*parts)
