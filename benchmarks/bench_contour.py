"""The contour route: every answer is certified and holds the truth before it is timed.

    python benchmarks/bench_contour.py

Cold numbers come from fresh processes. Warm calls all differ (delta varies; where k grows, `epsilon` on a run that is
kept, and with building the run anew), so that nothing remembered is timed. Targets that are missed are listed at the
end."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

import cases
import hockeystick as hs
import machine

MISSED: list[str] = []
SLACK = 1e-14
"""Relative room for the rounding of a truth to double, and of the long-double truths of many distinct steps."""

COLD = """
import json, resource, sys, time

def peak():  # ru_maxrss would count the parent's pages from before exec
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

t = [time.perf_counter()]
import numpy
t.append(time.perf_counter())
import hockeystick as hs
t.append(time.perf_counter()); at_import = peak()
hs.epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 1e-5)
t.append(time.perf_counter())
exec(sys.argv[1])
print(json.dumps([t[1] - t[0], t[2] - t[1], t[3] - t[2], peak() - at_import]))
"""
MIXED = """
steps = [hs.poisson_subsampled(hs.gaussian(1.4 - i / 2000), 0.01) for i in range(1000)]
hs.epsilon(hs.compose(*steps), 1e-5)
"""
CURVE = "hs.delta(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, numpy.linspace(0.5, 4, 1000))"


def report(what, value, limit=None, show=machine.pretty, at_least=False):
    missed = limit is not None and (value < limit if at_least else value > limit)
    sign = (
        ""
        if limit is None
        else f"  ({'at least' if at_least else 'at most'} {show(limit)}{': MISSED' if missed else ''})"
    )
    print(f"{what:58s} {show(value):>10s}{sign}", flush=True)
    if missed:
        MISSED.append(f"{what}: {show(value)}, {'at least' if at_least else 'at most'} {show(limit)} wanted")


def checked(problem, **options):
    """The answer to a problem, after its checks; (run, answer, truth)."""
    run, true = cases.build(hs, problem), cases.truth(problem)
    answer = hs.epsilon(run, problem.delta, **options)
    assert answer.certified and answer.lower <= true * (1 + SLACK) and answer.upper >= true * (1 - SLACK), (
        problem.name,
        answer,
    )
    return run, answer, true


def deltas(n, base=1e-5):
    return [base * (1 + i / (8 * n)) for i in range(n)]


def fresh_process(code):
    """What COLD prints, with byte code kept between processes, as an installed package has it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", COLD, code], capture_output=True, text=True, check=True, env=kept)
    return json.loads(done.stdout)


def cold():
    rounds = [fresh_process("") for _ in range(8)][1:]
    numpy_s, own_s, first_s, _ = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"{'cold: import numpy':58s} {machine.pretty(numpy_s):>10s}")
    report("cold: import hockeystick, over numpy's", own_s, 0.060)
    report("cold: first call", first_s, 0.005)
    for name, code in (("one call", ""), ("1,000 distinct steps", MIXED), ("1,000 eps values", CURVE)):
        report(f"peak memory over the import: {name}", fresh_process(code)[3], 10.0, "{:.1f} MB".format)


def growing_k():
    for problem in cases.GROWING_K:
        run, answer, true = checked(problem)
        ((sigma, q, k),) = problem.steps
        fresh = machine.seconds(
            lambda d, s=sigma, q=q, k=k: hs.epsilon(hs.poisson_subsampled(hs.gaussian(s), q) * k, d), deltas(500)
        )
        same = machine.seconds(lambda d, run=run: hs.epsilon(run, d), deltas(500, 1.2e-5))
        width = (answer.upper - answer.lower) / true
        error = abs(answer.estimate - true) / true
        report(
            f"k={problem.steps[0].k:.0e} (width {width:.1e}, error {error:.1e}; with building the run"
            f" {machine.pretty(fresh)})",
            same,
            40e-6,
        )


def small_k():
    """The grid of the first hour: width and time of each; truth where tests/reference has it."""
    for step, direction, eps, true in cases.small_k_rows():
        b = hs.delta(cases.build(hs, cases.Problem("", (step,), 0.5)), eps, direction=direction)
        assert b.certified and b.lower <= true * (1 + 1e-13) and b.upper >= true * (1 - 1e-13), (
            step,
            direction,
            eps,
            b,
        )
    rows = timed("small k", cases.SMALL_K)
    for k in dict.fromkeys(spec[2] for spec in cases.SMALL_K):
        line(f"small k={k:3d}", [row for row in rows if row[2][2] == k])
    line("small k, all", rows)
    widest_and_slowest("small k", rows, 1e-6, 2e-3)


def sparse():
    """Large training runs, most of which no grid of the peers answers in less than seconds."""
    rows = timed("sparse", cases.SPARSE)
    for delta in sorted({spec[3] for spec in cases.SPARSE}, reverse=True):
        line(f"sparse, delta={delta:g}", [row for row in rows if row[2][3] == delta])
    widest_and_slowest("sparse", rows, None, 50e-3)


def corners():
    """The ends of what is allowed: an answer in 50 ms, wide where nothing better is known."""
    rows = timed("corners", cases.CORNERS)
    for route in sorted({row[3] for row in rows}):
        line("corners", [row for row in rows if row[3] == route])
    late = [row for row in rows if row[1] > 50e-3]
    print(f"corners: {len(late)} of {len(rows)} over 50 ms")
    widest_and_slowest("corners", rows, None, 50e-3)


def timed(name, specs):
    """(width, seconds, spec, route) of every answer; what is refused is a missed target."""
    rows, refused = [], []
    for spec in specs:
        sigma, q, k, delta = spec
        make = lambda d, s=sigma, q=q, k=k: hs.epsilon(hs.poisson_subsampled(hs.gaussian(s), q) * k, d)  # noqa: E731
        try:
            answer = make(delta)
        except hs.AccuracyError as error:
            refused.append(f"{spec}: {error}")
            continue
        assert answer.certified and 0 <= answer.lower <= answer.upper
        width = (answer.upper - answer.lower) / max(answer.upper, 1e-300)
        rows.append((width, machine.seconds(make, deltas(10, delta), 2), spec, answer.route))
    if refused:
        MISSED.append(f"{name}: {len(refused)} of {len(specs)} refused, e.g. {refused[0]}")
    return rows


def widest_and_slowest(name, rows, width_limit, time_limit):
    width, _, spec, _ = max(rows)
    report(f"{name}: widest {spec}", width, width_limit, "{:.1e}".format)
    _, took, spec, _ = max(rows, key=lambda row: row[1])
    report(f"{name}: slowest {spec}", took, time_limit)


def line(name, rows):
    widths, times = (sorted(row[i] for row in rows) for i in (0, 1))
    routes = "+".join(sorted({row[3] for row in rows}))
    late, half = (machine.pretty(times[int(part * (len(times) - 1))]) for part in (0.9, 0.5))
    print(
        f"{name}: {len(rows)} problems ({routes}), width median {statistics.median(widths):.1e} worst {widths[-1]:.1e},"
        f" time median {half} 90% {late} worst {machine.pretty(times[-1])}",
        flush=True,
    )


def distinct(n, repeats, limit):
    """Seconds by thread count; every timed answer is checked, and all thread counts agree to the bit."""
    problem = cases.DISTINCT[n]
    true = cases.truth(problem)  # nan: no truth that large, the certificate and the agreement are checked
    parts = [(hs.poisson_subsampled(hs.gaussian(s.sigma), s.q), s.k) for s in problem.steps]
    start = time.perf_counter()
    hs.compose(*parts)
    built, times = time.perf_counter() - start, {}
    for i, delta in enumerate(deltas(repeats)):
        ends = set()
        for threads in (1, 2):
            run = hs.compose(*parts)
            start = time.perf_counter()
            answer = hs.epsilon(run, delta, n_threads=threads)
            took = time.perf_counter() - start
            assert answer.certified and 0 < answer.lower <= answer.upper
            assert i or not (answer.lower > true * (1 + SLACK) or answer.upper < true * (1 - SLACK)), answer
            ends.add((answer.lower, answer.upper))
            times[threads] = min(took, times.get(threads, took))
        assert len(ends) == 1, "thread counts must agree to the bit"
    width = (answer.upper - answer.lower) / answer.estimate
    report(f"{n} distinct steps (width {width:.1e}; compose {machine.pretty(built)} apart), 1 thread", times[1], limit)
    return times


def curve():
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    eps = np.linspace(0.5, 4.0, 1000)
    answer = hs.delta(run, eps)
    assert answer.certified and (np.diff(answer.upper) < 0).all()
    assert answer.lower[0] <= 3.05680243e-2 * (1 + 1e-8) and answer.upper[0] >= 3.05680243e-2 * (1 - 1e-8)
    width = float(np.max((answer.upper - answer.lower) / answer.estimate))

    def call(i):
        return hs.delta(hs.poisson_subsampled(hs.gaussian(1.0 + 1e-9 * i), 0.01) * 1000, eps + 1e-6 * i)

    report(f"1,000 eps values on one run (worst width {width:.1e})", machine.seconds(call, range(15)), 2e-3)


def main():
    print(machine.describe())
    cold()
    growing_k()
    small_k()
    sparse()
    corners()
    curve()
    distinct(1000, 5, 25e-3)
    times = distinct(100_000, 1, 2.5)
    print(f"{'100,000 distinct steps, 2 threads':58s} {machine.pretty(times[2]):>10s}")
    report("100,000 distinct steps: speed-up of 2 threads", times[1] / times[2], 1.8, "{:.2f}x".format, at_least=True)
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    print("Missed targets:" if MISSED else "No target missed.")
    for line in MISSED:
        print(" -", line)


if __name__ == "__main__":
    main()
