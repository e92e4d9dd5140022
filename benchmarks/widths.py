"""How wide and how slow answers are, family by family: random eps(delta) asked without rtol.

    python benchmarks/widths.py [FAMILY ...] [--n 1000] [--seed 1] [--show 3] [--kept FILE] [--tree SRC]

What a family draws stands in its function; intervals are log-uniform. A width is (upper - lower)/upper; times are
processor time, each run built anew. --kept appends every answer to FILE as JSON and takes up a stopped count from
there; --tree asks the library in SRC, to compare two versions on the same questions. Resumed or not, the table is the
same but for the times."""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path

import machine

LIMITS = (1e-9, 1e-6, 1e-3, 0.1)


def drawn(dice: random.Random, low: float, high: float) -> float:
    return math.exp(dice.uniform(math.log(low), math.log(high)))


def sampled(sigma, q, k, delta):
    def draw(hs, dice):
        s, rate, count, d = (drawn(dice, *box) for box in (sigma, q, k, delta))
        said = f"sigma {s:.4g}, q {rate:.4g}, k {int(count)}, delta {d:.3g}"
        return said, lambda: hs.poisson_subsampled(hs.gaussian(s), rate) * int(count), d, {}

    return draw


def unlike(hs, dice):
    n, d = dice.randint(2, 50), drawn(dice, 1e-20, 1e-3)
    parts = [(drawn(dice, 0.3, 20), drawn(dice, 1e-5, 0.5), int(drawn(dice, 1, 1e4))) for _ in range(n)]

    def run():
        return hs.compose(*((hs.poisson_subsampled(hs.gaussian(s), q), k) for s, q, k in parts))

    return f"{n} steps from {parts[0]}, delta {d:.3g}", run, d, {}


def laplace(hs, dice):
    scale, k, d, q = drawn(dice, 0.1, 100), int(drawn(dice, 1, 1e6)), drawn(dice, 1e-20, 0.1), drawn(dice, 1e-4, 0.5)
    q = q if dice.random() < 0.5 else 1.0

    def run():
        step = hs.laplace(scale)
        return (step if q == 1 else hs.poisson_subsampled(step, q)) * k

    return f"scale {scale:.4g}, q {q:.4g}, k {k}, delta {d:.3g}", run, d, {}


def discrete(hs, dice):
    kind, sigma = dice.choice(("discrete_gaussian", "discrete_laplace")), drawn(dice, 0.3, 300)
    k, d = int(drawn(dice, 1, 1e6)), drawn(dice, 1e-12, 1e-4)
    return f"{kind} {sigma:.4g}, k {k}, delta {d:.3g}", lambda: getattr(hs, kind)(sigma) * k, d, {}


def truncated(hs, dice):
    n, q, sigma = int(drawn(dice, 1e2, 1e7)), drawn(dice, 1e-5, 0.3), drawn(dice, 0.3, 10)
    size, k = max(1, int(n * q * dice.uniform(0.7, 2))), int(drawn(dice, 1, 1e5))
    adjacency, d = dice.choice(("add_remove", "zero_out", "replace_one")), drawn(dice, 1e-12, 1e-4)

    def run():
        return hs.truncated_poisson_subsampled(hs.gaussian(sigma), q, dataset_size=n, max_batch=size) * k

    said = f"n {n}, q {q:.4g}, batch {size}, sigma {sigma:.4g}, k {k}, delta {d:.3g}, {adjacency}"
    return said, run, d, {"adjacency": adjacency}


def replace_one(hs, dice):
    s, q, k, d = drawn(dice, 0.3, 10), drawn(dice, 1e-5, 0.5), int(drawn(dice, 1, 1e6)), drawn(dice, 1e-20, 1e-3)
    said = f"sigma {s:.4g}, q {q:.4g}, k {k}, delta {d:.3g}"
    return said, lambda: hs.poisson_subsampled(hs.gaussian(s), q) * k, d, {"adjacency": "replace_one"}


def mixed(hs, dice):
    s, q, b, t = drawn(dice, 0.3, 10), drawn(dice, 1e-4, 0.2), drawn(dice, 0.5, 50), drawn(dice, 1, 50)
    k, n, r, d = (*(int(drawn(dice, 1, most)) for most in (1e5, 100, 100)), drawn(dice, 1e-15, 1e-3))

    def run():
        return hs.compose(
            (hs.poisson_subsampled(hs.gaussian(s), q), k), (hs.laplace(b), n), (hs.discrete_gaussian(t), r)
        )

    said = f"sigma {s:.4g}, q {q:.4g}, k {k}; laplace {b:.4g}, {n}; discrete {t:.4g}, {r}; delta {d:.3g}"
    return said, run, d, {}


def epochs(least, most):
    def draw(hs, dice):
        s, t, k, d = (drawn(dice, *box) for box in ((0.2, 1e3), (1, 1e7), (1, 1e6), (least, most)))
        said = f"sigma {s:.4g}, {int(t)} steps, {int(k)} epochs, delta {d:.3g}"
        return said, lambda: hs.random_allocation(hs.gaussian(s), int(t)) * int(k), d, {}

    return draw


FAMILIES = {
    "practical": sampled((0.3, 10), (1e-5, 0.2), (10, 1e6), (1e-12, 1e-4)),
    "sparse": sampled((0.3, 5), (1e-6, 1e-3), (10, 1e6), (1e-30, 1e-6)),
    "extreme": sampled((0.05, 1e4), (1e-9, 1), (1, 1e9), (1e-300, 0.3)),
    "unlike": unlike,
    "laplace": laplace,
    "discrete": discrete,
    "truncated": truncated,
    "replace-one": replace_one,
    "mixed": mixed,
    "epochs": epochs(1e-30, 0.1),
    "deep-epochs": epochs(1e-300, 1e-30),
}


def question(hs, name: str, seed, index: int):
    """What is drawn, in words; a function that builds the run; delta; and options of `epsilon`."""
    return FAMILIES[name](hs, random.Random(f"{seed} {name} {index}"))


def answers(hs, name: str, options, kept) -> list[tuple[float, float, str]]:
    """Width, seconds and the question, of every draw; those already in `kept` are not asked again."""
    rows = []
    for i in range(options.n):
        said, run, delta, asked = question(hs, name, options.seed, i)
        known = kept.get((name, options.seed, i))
        if known is None:
            start = time.process_time()
            try:
                bound = hs.epsilon(run(), delta, **asked)
                lower, upper, route = bound.lower, bound.upper, bound.route
            except hs.HockeystickError as error:
                lower, upper, route = 0.0, math.inf, type(error).__name__
            known = [lower, upper, route, time.process_time() - start]
            if options.kept:
                with options.kept.open("a", encoding="utf-8") as file:
                    print(json.dumps([name, options.seed, i, known]), file=file)
        lower, upper, route, spent = known
        width = 0.0 if not upper > lower else 1.0 if math.isinf(upper) else (upper - lower) / upper
        rows.append((width, spent, f"{said}: [{lower:.4g}, {upper:.4g}] by {route}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*", choices=[[], *FAMILIES])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--tree")
    options = parser.parse_args()
    hs = machine.library(options.tree)  # what is imported at its first use is no part of an answer
    kept = {}
    if options.kept and options.kept.exists():
        for line in options.kept.read_text("utf-8").splitlines():
            name, seed, i, known = json.loads(line)
            kept[name, seed, i] = known
    print("| family | " + " | ".join(f"> {limit:g}" for limit in LIMITS) + " | median | 99% | slowest |")
    print("|---|" + "---|" * (len(LIMITS) + 3))
    for name in options.family or FAMILIES:
        rows = answers(hs, name, options, kept)
        times = sorted(spent for _, spent, _ in rows)
        shares = (f"{sum(width > limit for width, *_ in rows) / len(rows):.1%}" for limit in LIMITS)
        at = (times[len(times) // 2], times[math.ceil(0.99 * len(times)) - 1], times[-1])
        print(f"| {name} | " + " | ".join((*shares, *(f"{1e3 * t:.3g} ms" for t in at))) + " |", flush=True)
        for key in (0, 1):
            for row in sorted(rows, key=lambda row: -row[key])[: options.show]:
                print("  {:.2g} {:.3g} s {}".format(*row), flush=True)


if __name__ == "__main__":
    main()
