"""Time and memory of route pld against the number of compositions and of distinct steps: a table and a picture.

    python benchmarks/growth.py [--picture growth.svg] [--quick]

Every point is a process of its own; its answer must contain the contour's before its time counts. The picture needs
matplotlib."""

from __future__ import annotations

import argparse
import resource

import bench_pld
import machine

SIGMA, Q, DELTA, RTOL = 1.0, 0.01, 1e-5, 1e-3


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
    parser.add_argument("--quick", action="store_true", help="fewer and smaller points")
    options = parser.parse_args()
    print(machine.describe())
    print(f"sigma={SIGMA}, q={Q}, delta={DELTA}, both directions, relative width {RTOL} of eps")
    print("equal steps")
    powers = range(1, 7 if options.quick else 10)
    equal = measure([(10**e, same_step(10**e)) for e in powers])
    print("distinct steps")
    counts = (1, 3, 10, 30, 100) if options.quick else (1, 3, 10, 30, 100, 300, 1000)
    distinct = measure([(n, distinct_steps(n)) for n in counts])
    if options.picture:
        draw(
            options.picture,
            [("equal steps", "number of steps k", equal), ("distinct steps", "number of distinct steps", distinct)],
        )
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2**20, "a run took more than 1 GB"


if __name__ == "__main__":
    main()
