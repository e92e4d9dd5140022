"""Several records of one user, each with a coin of its own: `group` beside what else is known.

    pip install dp-accounting && python benchmarks/group_peers.py

Post-hoc group privacy takes (eps, delta) of one record to (n eps, delta (e^{n eps} - 1)/(e^eps - 1)); the row has its
best point. dp_accounting composes its mixture of Gaussians at its default mesh; its eps must not lie below ours.
Seconds are of this process, for one question.
"""

from __future__ import annotations

import math
import time

import hockeystick as hs

SIGMA, Q, STEPS, DELTA = 2.0, 0.01, 1000, 1e-6
SIZES = (2, 4, 8)


def post_hoc(one, size: int) -> float:
    """The least eps of a group by the curve of one record alone."""

    def delta(eps: float) -> float:
        grown = math.expm1(eps) / math.expm1(eps / size)
        return hs.delta(one, eps / size).upper * grown

    low, high = 0.0, 100.0
    while high - low > 1e-6:
        mid = 0.5 * (low + high)
        low, high = (mid, high) if delta(mid) > DELTA else (low, mid)
    return high


def peer(size: int) -> float:
    """Eps by dp_accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    weights = [math.comb(size, j) * Q**j * (1 - Q) ** (size - j) for j in range(size + 1)]
    one = pld.from_mixture_gaussian_mechanism(SIGMA, list(range(size + 1)), weights)
    return one.self_compose(STEPS).get_epsilon_for_delta(DELTA)


def timed(ask) -> tuple[object, float]:
    """An answer and the seconds of processor time that it took."""
    start = time.process_time()
    found = ask()
    return found, time.process_time() - start


def main() -> None:
    step = hs.poisson_subsampled(hs.gaussian(SIGMA), Q)
    hs.epsilon(hs.group(step, 3) * STEPS, DELTA)  # what is imported at a first question
    print("| records | post-hoc group privacy of one record's curve | dp_accounting, mixtures | `group` | replaced |")
    print("|---|---|---|---|---|")
    for size in SIZES:
        theirs, seconds = timed(lambda size=size: peer(size))
        run = hs.group(step, size) * STEPS
        ours, own = timed(lambda run=run: hs.epsilon(run, DELTA))
        replaced = hs.epsilon(run, DELTA, adjacency="replace_one")
        assert ours.lower <= theirs, "dp_accounting lies below a certified lower end"
        print(
            f"| {size} | {post_hoc(step * STEPS, size):.3f} | {theirs:.5f}, {seconds:.1f} s | "
            f"{ours.upper:.10f}, {own:.3f} s | {replaced.upper:.3f} |"
        )


if __name__ == "__main__":
    main()
