"""python -m tests.many_steps FILE --n 10000: random runs of 2 to 5,000 distinct Gaussian steps, by their rule and by
sums over all of them.

Of every run one question is asked twice, once with no rule to be had. The certified intervals must meet, and where
that of the sum is at most 1e-10 wide, relatively, that of the rule must be, too. Each outcome is appended to FILE as a
line of JSON, a later call goes on where it stopped, and a table is printed. Exit status 1: something was not as it must
be, and `--case I` shows it again."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np

import hockeystick as hs
from hockeystick.compression import FEWEST
from hockeystick.routes.question import Question

NARROW = 1e-10


def scales(rng, n: int) -> np.ndarray:
    """Noise of n steps: of one scale, of several scales that are far apart, or of all scales."""
    centre = np.exp(rng.uniform(np.log(0.6), np.log(6)))
    kind = rng.integers(4)
    if kind == 0:
        return centre * np.exp(rng.uniform(0, rng.uniform(0.01, 1.5), n))
    if kind == 1:  # a schedule
        return centre * np.linspace(1, rng.uniform(1.01, 5), n)
    if kind == 2:  # several heaps
        return rng.choice(centre * 10 ** rng.uniform(0, 2, rng.integers(2, 7)), n) * rng.uniform(1, 1.05, n)
    return centre * 10 ** rng.uniform(0, rng.uniform(0.3, 4), n)


def rates(rng, n: int) -> np.ndarray:
    """Sampling rates: one or a few, at times sparse, at times with plain steps among them."""
    low = -7 if rng.random() < 0.25 else -3
    few = 10 ** rng.uniform(low, -0.3, 1 if rng.random() < 0.6 else rng.integers(2, 5))
    if rng.random() < 0.15:
        few = np.append(few, 1.0)
    return rng.choice(few, n)


def drawn(seed: int, index: int):
    """A run, and what is asked of it: (run, function, where, adjacency)."""
    rng = np.random.default_rng([seed, index])
    n = int(np.exp(rng.uniform(np.log(2), np.log(5001)))) if rng.random() < 0.3 else int(48 * 104 ** rng.random())
    sigma, q = scales(rng, n), rates(rng, n)
    other = np.random.default_rng([seed, index, 1])
    if other.random() < 0.2:  # a rate for each step
        q = np.minimum(10 ** other.uniform(-4, -0.5) * np.exp(other.uniform(0, other.uniform(0.01, 3), n)), 1.0)
    sigma = np.where(q == 1, sigma * np.sqrt(n) * rng.uniform(1, 5), sigma)
    count = rng.integers(1, int(10 ** rng.uniform(0, 4)) + 1, n)
    run = hs.compose_arrays(sigma, q, count)
    if rng.random() < 0.5:  # the same from objects
        run = hs.compose(*run.parts)
    adjacency = str(rng.choice(["add_remove", "add_remove", "zero_out"]))
    if np.random.default_rng([seed, index, 3]).random() < 0.2:
        adjacency = "replace_one"
    if rng.random() < 0.5:
        return run, hs.epsilon, 10 ** rng.uniform(-12, -3), adjacency
    try:
        eps = hs.epsilon(run, 10 ** rng.uniform(-12, -2), adjacency=adjacency).estimate
    except hs.AccuracyError:
        eps = rng.uniform(0.1, 5)
    return run, hs.delta, float(eps), adjacency


def asked(ask, run, at: float, adjacency: str):
    """(bound or the name of an error, seconds of processor time)."""
    start = time.process_time()
    try:
        found = ask(run, at, adjacency=adjacency)
    except hs.AccuracyError as error:
        found = type(error).__name__
    return found, time.process_time() - start


def width(bound) -> float:
    """Relative width."""
    return float((bound.upper - bound.lower) / bound.estimate) if bound.estimate else 0.0


def outcome(seed: int, index: int) -> dict:
    """What came of one run."""
    run, ask, at, adjacency = drawn(seed, index)
    row = {"seed": seed, "index": index, "n": len(run.parts), "asked": ask.__name__, "at": at, "adjacency": adjacency}
    ours, seconds = asked(ask, run, at, adjacency)
    if not isinstance(ours, str) and ours.route != "compressed":  # the rule gave way
        return row | {"route": ours.route, "seconds": seconds, "verdict": "summed"}
    with mock.patch.object(Question, "rules", ()), mock.patch.object(Question, "narrower_rules", ()):
        theirs, longer = asked(ask, run, at, adjacency)
    row |= {"seconds": seconds, "longer": longer}
    if isinstance(ours, str) or isinstance(theirs, str):
        same = isinstance(ours, str) == isinstance(theirs, str)
        return row | {"route": str(ours)[:16], "verdict": "refused" if same else "one refused"}
    row |= {"route": ours.route, "width": width(ours), "exact": width(theirs)}
    if not (ours.lower <= theirs.upper and theirs.lower <= ours.upper):
        verdict = "apart"
    elif row["exact"] <= NARROW < row["width"]:
        verdict = "wide"
    else:
        verdict = "met"
    return row | {"verdict": verdict}


def table(rows: list[dict]) -> str:
    """What a file holds."""
    verdicts = collections.Counter(row["verdict"] for row in rows)
    ruled = [row for row in rows if row["route"] == "compressed"]
    lines = [f"{len(rows)} runs, {len(ruled)} by their rule, {sum(row['n'] < FEWEST for row in rows)} of few steps"]
    lines += [f"  {n:6} {verdict}" for verdict, n in verdicts.most_common()]
    both = [row for row in ruled if row.get("exact")]
    if both:
        ratio = np.array([row["width"] / row["exact"] for row in both])
        wide = np.array([row["width"] for row in both if row["exact"] <= NARROW])
        times = np.array([[row["seconds"], row["longer"]] for row in both]).sum(axis=0)
        lines.append(f"  width over that of the sum: median {np.median(ratio):.3g}, largest {ratio.max():.3g}")
        lines.append(f"  {wide.size} whose sum is at most {NARROW:g} wide: widest {wide.max(initial=0):.3g}")
        lines.append(f"  processor time {times[0]:.0f} s, sums {times[1]:.0f} s")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--n", type=int, default=10_000, help="runs in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="this one only, nothing is written")
    args = parser.parse_args()
    if args.case is not None:
        print(json.dumps(outcome(args.seed, args.case), indent=1))
        return 0
    rows = [json.loads(line) for line in args.file.read_text().splitlines()] if args.file.exists() else []
    done = {(row["seed"], row["index"]) for row in rows}
    with args.file.open("a", encoding="utf-8") as out:
        for index in range(args.n):
            if (args.seed, index) not in done:
                rows.append(outcome(args.seed, index))
                out.write(json.dumps(rows[-1]) + "\n")
                out.flush()
    print(table(rows))
    return int(any(row["verdict"] in ("apart", "wide", "one refused") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
