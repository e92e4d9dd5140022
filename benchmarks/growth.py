"""Time and memory against the number of steps: a table and a picture.

    python benchmarks/growth.py [--picture growth.svg] [--quick]
    python benchmarks/growth.py --many [--picture growth_many.svg] [--quick]

The first is of route pld, against the number of compositions and of distinct steps. The second is of runs of up to 1e8
distinct steps, made from arrays and asked, and of an accountant that is asked after every step; its times are those of
the processor. Every point is a process of its own; its answer must agree with that of another route before its time
counts. The picture needs matplotlib."""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from unittest import mock

import bench_pld
import machine

SIGMA, Q, DELTA, RTOL = 1.0, 0.01, 1e-5, 1e-3

CHUNK = 10**6
"""Noises that lie in memory at once; more are given as an iterator of arrays."""

SUMMED = 10**5
"""Distinct steps up to which an answer is held against the sum over all of them."""


def same_step(k):
    """k equal subsampled Gaussian steps."""
    return ("gaussian", [(SIGMA, Q)], k, DELTA)


def distinct_steps(n):
    """n different subsampled Gaussian steps, one of each."""
    return ("gaussian", [(1.4 - 0.5 * i / n, 0.3 / n**0.5 * (0.5 + i / n)) for i in range(n)], 1, DELTA)


def nothing(*_):
    """What a process costs that has imported the route."""
    import hockeystick.routes.pld

    return (float(bool(hockeystick.routes.pld)),) * 3


def measure(cases):
    """[(size, seconds, MB over the import), ...]."""
    floor = bench_pld.fresh(nothing, None)[3]
    rows = []
    for size, case in cases:
        answer, _, warm, memory = bench_pld.fresh(bench_pld.ours, case, RTOL, 1)
        if isinstance(answer, str):
            raise AssertionError(f"{size}: {answer}")
        bench_pld.check(answer, bench_pld.truth(case), RTOL)
        rows.append((size, warm, max(memory - floor, 0.1)))
        print(f"  {size:>12,}  {machine.pretty(warm):>9}  {rows[-1][2]:6.0f} MB", flush=True)
    return rows


def noises(n):
    """(arrays of n noises from 1 to 2, the rate at which n such steps cost an eps of about 4)."""
    import numpy as np

    arrays = (1 + np.arange(i, min(i + CHUNK, n)) / n for i in range(0, n, CHUNK))
    return arrays, min(0.03, n**-0.5)


def from_arrays(n):
    """(lower, estimate, upper) of a run of n distinct steps, and seconds of making it with its answer, and of another
    question."""
    import hockeystick as hs

    hs.epsilon(made(100), DELTA)
    start = time.process_time()
    run = made(n)
    bound = hs.epsilon(run, DELTA)
    seconds = time.process_time() - start
    start = time.process_time()
    hs.epsilon(run, 0.5 * DELTA)
    return (bound.lower, bound.estimate, bound.upper), seconds, time.process_time() - start


def made(n):
    """A run of n distinct steps."""
    import hockeystick as hs

    arrays, q = noises(n)
    return hs.compose_arrays(arrays if n > CHUNK else next(arrays), q)


def after_each(n):
    """The same of an accountant that is asked after each of n steps, and the seconds of all; of the last one."""
    import hockeystick as hs

    hs.epsilon(made(100), DELTA)
    arrays, q = noises(n)
    accountant, last = hs.Accountant(), 0.0
    start = time.process_time()
    for sigma in itertools.chain.from_iterable(array.tolist() for array in arrays):
        last = time.process_time()
        accountant.step(hs.poisson_subsampled(hs.gaussian(sigma), q))
        bound = accountant.epsilon(DELTA)
    end = time.process_time()
    return (bound.lower, bound.estimate, bound.upper), end - start, end - last


def summed(n):
    """Ends of eps by a sum over all n distinct steps."""
    import hockeystick as hs
    from hockeystick.routes.question import Question

    with mock.patch.object(Question, "rules", ()), mock.patch.object(Question, "narrower_rules", ()):
        bound = hs.epsilon(made(n), DELTA)
    assert bound.route == "contour", bound
    return bound.lower, bound.upper


def measure_many(title, run, sizes):
    """As `measure`, of `from_arrays` or `after_each`."""
    print(title)
    floor = bench_pld.fresh(nothing, None)[3]
    rows = []
    for n in sizes:
        found, _, _, memory = bench_pld.fresh(run, n)
        if isinstance(found, str):
            raise AssertionError(f"{n}: {found}")
        answer, seconds, last = found
        bench_pld.check(answer, summed(n) if n <= SUMMED else answer, 1e-8)
        rows.append((n, seconds, max(memory - floor, 1.0)))
        print(f"  {n:>12,}  {machine.pretty(seconds):>9}  {machine.pretty(last):>9}  {rows[-1][2]:6.0f} MB", flush=True)
    return rows


def many(quick):
    """The panels of runs of many distinct steps."""
    bench_pld.TIMEOUT_S = 900
    print(f"noise 1 to 2, all different, delta={DELTA}, both directions; seconds of all, of a question more")
    label = "number of distinct steps"
    arrays = measure_many("from arrays", from_arrays, [10**e for e in range(2, 7 if quick else 9)])
    asked = measure_many("asked after each step", after_each, [10**e for e in range(2, 4 if quick else 6)])
    return ("made from arrays and answered", label, arrays), ("asked after every step", label, asked)


def of_pld(quick):
    """The panels of route pld."""
    print(f"sigma={SIGMA}, q={Q}, delta={DELTA}, both directions, relative width {RTOL} of eps")
    print("equal steps")
    powers = range(1, 7 if quick else 10)
    equal = measure([(10**e, same_step(10**e)) for e in powers])
    print("distinct steps")
    counts = (1, 3, 10, 30, 100) if quick else (1, 3, 10, 30, 100, 300, 1000)
    distinct = measure([(n, distinct_steps(n)) for n in counts])
    return ("equal steps", "number of steps k", equal), ("distinct steps", "number of distinct steps", distinct)


def draw(path, panels):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, (title, label, rows) in zip(axes, panels, strict=True):
        sizes, seconds, memory = zip(*rows, strict=True)
        axis.loglog(sizes, seconds, "o-", color="tab:blue", label="time")
        axis.set_xlabel(label)
        axis.set_ylabel("seconds, one thread", color="tab:blue")
        axis.set_title(title, fontsize=10)
        axis.grid(True, which="major", alpha=0.3)
        other = axis.twinx()
        other.loglog(sizes, memory, "s--", color="tab:red", label="memory")
        other.set_ylabel("MB over the import", color="tab:red")
        other.set_ylim(1, 1000)
    figure.savefig(path)
    print(f"drawn: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="file to draw into, as SVG")
    parser.add_argument("--many", action="store_true", help="runs of many distinct steps instead of route pld")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller points")
    options = parser.parse_args()
    print(machine.describe())
    panels = many(options.quick) if options.many else of_pld(options.quick)
    if options.picture:
        draw(options.picture, panels)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2**20, "a run took more than 1 GB"


if __name__ == "__main__":
    main()
