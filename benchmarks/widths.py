"""How wide and how slow answers are where sampling is sparse: random runs over a wide box, asked without rtol.

    python benchmarks/widths.py [--n 1500] [--seed 1]

Logarithms of sigma, q, k and delta are uniform over BOX. A width is upper/lower - 1; times are processor time, each run
built anew."""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time

import hockeystick as hs

BOX = {"sigma": (0.5, 10.0), "q": (1e-6, 0.1), "k": (1.0, 1e6), "delta": (1e-15, 1e-3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    rows = []
    for _ in range(options.n):
        sigma, q, k, delta = (math.exp(dice.uniform(math.log(low), math.log(high))) for low, high in BOX.values())
        start = time.process_time()
        bound = hs.epsilon(hs.poisson_subsampled(hs.gaussian(sigma), q) * int(k), delta)
        spent = time.process_time() - start
        assert bound.certified
        width = bound.upper / bound.lower - 1 if bound.lower > 0 else math.inf if bound.upper > 0 else 0.0
        rows.append(
            (width, spent, f"sigma {sigma:.3g}, q {q:.2g}, k {int(k)}, delta {delta:.1e}: {bound:.3g} by {bound.route}")
        )
    widths, times = (sorted(row[i] for row in rows) for i in (0, 1))
    for limit in (1e-6, 1e-3, 1e-2, 0.1, 1.0):
        print(f"wider than {limit:g}: {sum(width > limit for width in widths) / options.n:.1%}")
    at = math.ceil(0.99 * options.n) - 1
    print(f"time: median {statistics.median(times):.2g} s, 99% {times[at]:.2g} s, slowest {times[-1]:.2g} s")
    print("widest:", *(f"  {said}" for *_, said in sorted(rows, reverse=True)[:5]), sep="\n")


if __name__ == "__main__":
    main()
