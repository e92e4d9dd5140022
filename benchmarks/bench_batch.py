"""A million distinct queries in one call: a sample is checked against the single query before anything is timed.

    python benchmarks/bench_batch.py [--n N] [--threads T]

Training runs as in practice: sigma 0.6 to 2, rates 0.005 to 0.1, 1,000 to 30,000 steps, delta 1e-9 to 1e-5, all drawn
once from a fixed seed, no two alike. What one line contour does not answer is asked alone, as the library does on its
own."""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import hockeystick as hs
import machine
from hockeystick import _core
from hockeystick.routes import contour

LIMIT_S = 60.0


def problems(n: int):
    rng = np.random.default_rng(20)
    sigma, q = rng.uniform(0.6, 2.0, n), 10 ** rng.uniform(-2.3, -1.0, n)
    return sigma, q, np.floor(10 ** rng.uniform(3, 4.5, n)), 10 ** rng.uniform(-9, -5, n)


def check(columns, bound, sample: int = 200):
    """Entry by entry an interval that meets the single query's; its upper end is certified from outside by the other
    query."""
    for i in np.random.default_rng(1).integers(0, columns[0].size, sample):
        sigma, q, k, delta = (float(column[i]) for column in columns)
        run = hs.poisson_subsampled(hs.gaussian(sigma), q) * int(k)
        one = hs.epsilon(run, delta)
        assert one.lower <= bound.upper[i] and bound.lower[i] <= one.upper, i
        assert hs.delta(run, one.upper).lower <= delta * (1 + 1e-12)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(machine.describe())
    few = problems(2000)
    check(few, hs.epsilon_batch(*few))
    ends, done = np.zeros((3, 2000)), np.zeros(2000, dtype=np.uint8)
    settings = (1, 3, 0, contour.RTOL, contour.margin(contour.RTOL), 1e-6, 1)
    start = time.perf_counter()
    _core.batch(1 / few[0], *few[1:], *settings, ends, done)
    took = time.perf_counter() - start
    print(
        f"one thread, the C loop alone: {machine.pretty(took / 2000)} a query; {np.sum(done != 1)} of 2000 left to ask"
        " alone"
    )
    columns = problems(args.n)
    shown = sys.stderr.isatty()
    bar = (lambda done, total: print(f"\r{done}/{total}", end="", file=sys.stderr)) if shown else None
    start, cpu = time.perf_counter(), time.process_time()
    bound = hs.epsilon_batch(*columns, n_threads=args.threads, progress=bar)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    assert (bound.lower <= bound.upper).all() and np.isfinite(bound.upper).all()
    width = (bound.upper - bound.lower) / np.maximum(bound.estimate, 1e-300)
    each = machine.pretty(took / args.n)
    used = f"{machine.pretty(took)} ({machine.pretty(cpu)} of processors)"
    print(f"{args.n} queries, {args.threads} threads: {used}, {each} each ({bound.route})")
    median, most, worst = np.quantile(width, (0.5, 0.99, 1.0))
    print(f"relative width of eps: median {median:.1e}, 99% below {most:.1e}, worst {worst:.1e}")
    scaled = took * 1e6 / args.n
    print(f"{'Missed' if scaled > LIMIT_S else 'Met'}: a million in {scaled:.0f} s, {LIMIT_S:.0f} s wanted")


if __name__ == "__main__":
    main()
