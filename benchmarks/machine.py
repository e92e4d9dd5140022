"""What the numbers were measured on, and the stopwatch shared by the benchmarks."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time


def describe() -> str:
    import numpy

    name = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            found = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "flags"))][:2]
        vector = " AVX-512" if "avx512f" in found[-1] else " AVX2" if "avx2" in found[-1] else ""
        name = found[0] + vector
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = f"Python {platform.python_version()}, numpy {numpy.__version__}, {platform.system()}"
    return f"{name}, {cores} cores{load}; {versions}"


def library(tree: str | None):
    """hockeystick, of another tree where one is named, with the modules that it imports at their first use."""
    if tree:
        sys.path.insert(0, tree)
    import hockeystick as hs

    for route in ("pld", "prv"):
        hs.epsilon(hs.laplace(1.0) * 2, 1e-5, route=route)
    return hs


def seconds(call, arguments, batches: int = 5) -> float:
    """Median seconds of call(argument) over the arguments of a batch, all different; the best batch counts."""
    arguments = list(arguments)
    size = max(1, len(arguments) // batches)
    medians = []
    for at in range(0, len(arguments) - size + 1, size):
        times = []
        for argument in arguments[at : at + size]:
            start = time.perf_counter()
            call(argument)
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return min(medians)


def pretty(s: float) -> str:
    return f"{s * 1e6:.3g} us" if s < 1e-3 else f"{s * 1e3:.3g} ms" if s < 1 else f"{s:.3g} s"
