"""DP-SGD on real data with adaptive clipping and noise that differs at every step, accounted after every step.

The network and the digits of digits_dpsgd.py. The clipping norm follows the median of the gradients' norms by noisy
counts of gradients below it; the noise falls from step to step by a schedule that is fixed in advance, as a
multiple of whatever the norm is then. A step publishes sum and count, two Gaussian mechanisms on one Poisson sample: of
noise multipliers z and, the count being shifted by 1/2, 2 b, they are one of noise (z^-2 + (2 b)^-2)^(-1/2). The norm
depends on earlier outputs, that number does not: a privacy curve holds. (Were it the noise multiplier that follows the
outputs, only a filter would: hs.GDPFilter.)

    python benchmarks/digits_adaptive.py [--steps 600] [--picture digits_adaptive.png]

Every step is recorded before it runs, and eps at delta = 1e-5 is asked after it. Needs the extras `bench` and `plot`.

The rule of the norm: G. Andrew, O. Thakkar, H. B. McMahan, S. Ramaswamy, Differentially Private Learning with Adaptive
Clipping, NeurIPS 2021.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import hockeystick as hs
from digits_dpsgd import DELTA, HIDDEN, RATE, forward, gradients, split

BATCH = 256
Z = (6.0, 3.0)
"""Noise multiplier of the sum, of the first step and the last."""

B = 10.0
"""Noise of the count of gradients below the norm, of an expected 128."""

GROWTH = 0.2
"""By how much the logarithm of the norm follows the part below it."""


def train(x, y, x_test, y_test, steps: int, rng):
    """Of every step: noise multiplier as accounted, clipping norm, ends of eps, seconds of its query, accuracy."""
    weights = [rng.normal(0, x.shape[1] ** -0.5, (x.shape[1], HIDDEN)), np.zeros((HIDDEN + 1, 10))]
    accountant, clip, rows = hs.Accountant(), 1.0, []
    q = BATCH / len(x)
    for z in np.geomspace(*Z, steps).tolist():
        noise = (z**-2 + (2 * B) ** -2) ** -0.5
        accountant.step(hs.poisson_subsampled(hs.gaussian(noise), q))
        chosen = rng.random(len(x)) < q
        norms, layers = gradients(weights, x[chosen], y[chosen])
        scale = np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]
        for w, (given, error) in zip(weights, layers, strict=True):
            w -= RATE * (given.T @ (scale * error) + rng.normal(0, z * clip, w.shape)) / BATCH
        below = (np.sum((norms <= clip) - 0.5) + rng.normal(0, B)) / BATCH + 0.5
        start = time.process_time()
        bound = accountant.epsilon(DELTA)
        seconds = time.process_time() - start
        assert bound.certified and bound.lower <= bound.upper
        accuracy = (forward(weights, x_test)[1].argmax(axis=1) == y_test).mean()
        rows.append((noise, clip, bound.lower, bound.upper, seconds, accuracy))
        clip *= np.exp(-GROWTH * (below - 0.5))
    return np.array(rows), accountant


def draw(rows, path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    noise, clip, _, upper, seconds, accuracy = rows.T
    steps = np.arange(1, len(rows) + 1)
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), sharex=True, layout="constrained")
    panels = (
        (f"certified eps at delta = {DELTA:g}", upper, "C0"),
        ("test accuracy (test images are public)", accuracy, "C2"),
        ("noise multiplier of the step", noise, "C1"),
        ("clipping norm", clip, "C3"),
    )
    for axis, (title, values, colour) in zip(axes.flat, panels, strict=True):
        axis.plot(steps, values, color=colour)
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("steps")
    figure.suptitle(
        f"digits, adaptive clipping: {len(rows)} different steps, a query after each, {seconds.sum():.1f} s of them",
        fontsize=11,
    )
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description="DP-SGD on digits with adaptive clipping, accounted after every step")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", help="file to draw into")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    rows, accountant = train(*split(rng), args.steps, rng)
    noise, clip, lower, upper, seconds, accuracy = rows.T
    again = hs.epsilon(hs.compose_arrays(noise, accountant.run.parts[0][0].q), DELTA)
    assert again.lower <= upper[-1] and lower[-1] <= again.upper and np.all(np.diff(upper) > 0)
    print(f"{len(rows)} steps, {accountant.run.distinct} distinct; clipping norm {clip[0]:.3g} to {clip[-1]:.3g}")
    print(f"test accuracy {accuracy[-1]:.4f} at {lower[-1]:.12f} <= eps <= {upper[-1]:.12f} (delta {DELTA:g})")
    print(f"widest interval {np.max((upper - lower) / upper):.1e}, relatively")
    print(
        f"queries: median {1e3 * np.median(seconds):.2f}, most {1e3 * seconds.max():.2f} ms, all {seconds.sum():.2f} s"
    )
    if args.picture:
        draw(rows, args.picture)


if __name__ == "__main__":
    main()
