"""Thousands of distinct Gaussian mixtures in one run, the rows of a banded matrix mechanism, beside dp_accounting.

    pip install dp-accounting && python benchmarks/matrix_peers.py

dp_accounting takes the first rows only, as many as it composes within PATIENCE seconds; its upper end must not lie
below ours for the same rows. Seconds are of this process, ours of all rows, made and asked once.
"""

from __future__ import annotations

import time

import numpy as np

import hockeystick as hs

ROUNDS, SIGMA, Q, FAILURE, DELTA = 2000, 4.0, 0.01, 1e-8, 1e-6
BAND = (1.0, 0.5, 0.375, 0.3125)
PATIENCE = 20.0
MESH = 1e-3
"""Of dp_accounting's losses, ten times its default."""


def matrix() -> np.ndarray:
    """A banded matrix no two rows of which are alike."""
    random, rows = np.random.default_rng(1), np.zeros((ROUNDS, ROUNDS))
    for d, size in enumerate(BAND):
        rows[np.arange(d, ROUNDS), np.arange(ROUNDS - d)] = size * np.exp(0.05 * random.normal(size=ROUNDS - d))
    return rows


def peer(steps) -> tuple[int, float]:
    """Steps composed within PATIENCE, and their eps by dp_accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    start, whole, done = time.process_time(), None, 0
    for step in steps:
        one = pld.from_mixture_gaussian_mechanism(
            step.sigma, list(step.shifts), list(step.probabilities), value_discretization_interval=MESH
        )
        whole, done = one if whole is None else whole.compose(one), done + 1
        if time.process_time() - start > PATIENCE:
            break
    return done, whole.get_epsilon_for_delta(DELTA)


def main() -> None:
    rows = matrix()
    start = time.process_time()
    run = hs.matrix_mechanism(rows, SIGMA, Q, failure=FAILURE)
    made = time.process_time() - start
    found = hs.epsilon(run, DELTA)
    asked = time.process_time() - start - made
    start = time.process_time()
    hs.epsilon(run, 2 * DELTA)
    again = time.process_time() - start
    print("| accountant | distinct mixtures | eps at delta 1e-6 | width | seconds | milliseconds a mixture |")
    print("|---|---|---|---|---|---|")
    n, seconds = len(run.parts) - 1, made + asked
    print(
        f"| hockeystick | {n} | {found.estimate:.8f} | {found.upper - found.lower:.0e} | {made:.2f} made, {asked:.2f} "
        f"asked, {again:.2f} asked again | {1e3 * seconds / n:.2f} |",
        flush=True,
    )
    steps = [step for step, _ in run.parts if not isinstance(step, type(hs.failure(0.1)))]
    start = time.process_time()
    m, upper = peer(steps)
    spent = time.process_time() - start
    mine = hs.epsilon(hs.compose(*steps[:m]), DELTA)
    assert mine.lower <= upper, (mine, upper)
    print(
        f"| dp_accounting, mesh {MESH:g} | the first {m} of them | {upper:.6f} (hockeystick {mine.estimate:.6f}) | "
        f"| {spent:.1f} | {1e3 * spent / m:,.0f}, {spent / m / (seconds / n):,.0f} times as many |"
    )


if __name__ == "__main__":
    main()
