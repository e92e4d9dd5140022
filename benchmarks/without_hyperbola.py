"""What would be lost if lines alone answered runs of few steps: 1,080 roots with and without the hyperbola.

    python benchmarks/without_hyperbola.py

Counts and hypotheses: steps of one sampled Gaussian, k from 2 to 100, both the larger root and that of ADD alone. The
two intervals of a root must meet. Widths are relative; times are processor times of a run's first answer."""

from __future__ import annotations

import itertools
import time

import numpy as np

import hockeystick as hs
from hockeystick.routes import contour

CASES = tuple(
    itertools.product(
        (2, 3, 5, 10, 30, 100), (1e-3, 3e-3, 0.01, 0.02, 0.05), (0.5, 0.6, 0.8, 1.0, 1.4, 2.0), (1e-5, 1e-7, 1e-9)
    )
)


def roots() -> list[tuple[float, float, float]]:
    """(lower, upper, seconds) of every case in both ways of asking; no interval: (0, inf)."""
    found = []
    for (k, q, sigma, delta), direction in itertools.product(CASES, ("both", "add")):
        run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
        start = time.thread_time()
        try:
            bound = hs.epsilon(run, delta, direction=direction)
            ends = bound.lower, bound.upper
        except hs.AccuracyError:
            ends = 0.0, float("inf")
        found.append((*ends, time.thread_time() - start))
    return found


def line(name: str, found: np.ndarray) -> None:
    lower, upper, seconds = found.T
    with np.errstate(invalid="ignore"):
        width = np.where(upper > 0, (upper - lower) / upper, 0.0)
    width = np.where(np.isfinite(upper), width, np.inf)
    shares = "  ".join(f"wider than {limit:g}: {(width > limit).sum():4d}" for limit in (1e-9, 1e-6, 1e-3))
    times = "  ".join(f"{q:.0%} {1e3 * np.quantile(seconds, q):.2f} ms" for q in (0.5, 0.9, 0.99))
    print(f"{name:24s} {shares}  {times}")


def main() -> None:
    hs.epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 3, 1e-6)
    with_it = np.array(roots())
    contour._curved = lambda steps: False
    alone = np.array(roots())
    assert (np.maximum(with_it[:, 0], alone[:, 0]) <= np.minimum(with_it[:, 1], alone[:, 1])).all(), "intervals apart"
    print(f"{len(with_it)} roots; every pair of intervals meets")
    line("line and hyperbola", with_it)
    line("without the hyperbola", alone)


if __name__ == "__main__":
    main()
