"""Train on real data with DP-SGD and print the accuracy beside the certified eps of the run.

A one-hidden-layer network on scikit-learn's digits (1797 images of 8 x 8), in plain numpy:

1. Poisson sampling: every training image joins a step independently with probability q = batch / n.
2. Per-example clipping: each gradient is scaled to L2 norm at most CLIP before summation.
3. Gaussian noise of standard deviation sigma * CLIP on the sum; then division by the expected batch.

Noise and expected batch change during training; the last phase lowers sigma at every step, so that the log
holds both lines per phase and lines per step. The log is what `hockeystick epsilon` reads: sigma (noise
multiplier), q, steps. The privacy statement is for adding or removing one training image; the test
images are public.

    python benchmarks/digits_dpsgd.py [--log FILE] [--seed N]

NumPy's generator is not cryptographic: use a secure one where the guarantee has to hold against an adversary.
Needs the `bench` extra (scikit-learn).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

CLIP = 1.0
HIDDEN = 64
RATE = 1.0
N_TEST = 360
DELTA = 1e-5


class Phase(NamedTuple):
    """`steps` steps of expected batch `batch`; sigma runs linearly from `sigma` to `sigma_end`."""

    sigma: float
    sigma_end: float
    batch: int
    steps: int


PHASES = (
    Phase(3.0, 3.0, 64, 100),
    Phase(2.5, 2.5, 128, 150),
    Phase(2.0, 2.0, 256, 60),
    Phase(2.0, 1.5, 256, 40),
)


def split(rng):
    """Training and test images in [0, 1], with a constant input for the bias; labels as integers."""
    images, labels = load_digits(return_X_y=True)
    images = np.hstack([images / 16, np.ones((len(images), 1))])
    order = rng.permutation(len(images))
    test, train = order[:N_TEST], order[N_TEST:]
    return images[train], labels[train], images[test], labels[test]


def forward(weights, x):
    """Hidden activations (with a constant for the bias) and class probabilities."""
    hidden = np.hstack([np.tanh(x @ weights[0]), np.ones((len(x), 1))])
    logits = hidden @ weights[1]
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return hidden, odds / odds.sum(axis=1, keepdims=True)


def gradients(weights, x, y):
    """L2 norms of the examples' gradients of the cross-entropy, and (input, error signal) of every layer.

    The gradient of one example in a layer is the outer product of its input and its error signal, so its
    squared norm is a product of two squared norms, and clipping an example scales its error signals.
    """
    hidden, error_out = forward(weights, x)
    error_out[np.arange(len(y)), y] -= 1
    error_hidden = (error_out @ weights[1][:-1].T) * (1 - hidden[:, :-1] ** 2)
    square = (x**2).sum(1) * (error_hidden**2).sum(1) + (hidden**2).sum(1) * (error_out**2).sum(1)
    return np.sqrt(square), ((x, error_hidden), (hidden, error_out))


def clipped_gradient_sum(weights, x, y):
    """Sum over the examples of their gradients, each clipped to L2 norm CLIP, by layers."""
    norms, layers = gradients(weights, x, y)
    scale = np.minimum(1, CLIP / np.maximum(norms, np.finfo(float).tiny ** 0.5))[:, None]
    return [given.T @ (scale * error) for given, error in layers]


def train(x, y, rng, phases=PHASES):
    """Trained weights and the log: (sigma, q, steps) of what ran, consecutive equal steps in one entry."""
    fan_in = x.shape[1]
    weights = [rng.normal(0, fan_in**-0.5, (fan_in, HIDDEN)), np.zeros((HIDDEN + 1, 10))]
    log: list[list] = []
    for phase in phases:
        q = phase.batch / len(x)
        for sigma in np.linspace(phase.sigma, phase.sigma_end, phase.steps).tolist():
            chosen = rng.random(len(x)) < q
            for w, total in zip(weights, clipped_gradient_sum(weights, x[chosen], y[chosen]), strict=True):
                noisy = total + rng.normal(0, sigma * CLIP, w.shape)
                w -= RATE * noisy / phase.batch
            if log and log[-1][:2] == [sigma, q]:
                log[-1][2] += 1
            else:
                log.append([sigma, q, 1])
    return weights, log


def write_log(log, path):
    """The log as CSV; repr of a float reads back to the same double."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("sigma,q,steps\n")
        file.writelines(f"{sigma!r},{q!r},{steps}\n" for sigma, q, steps in log)


def certified_epsilon(path, delta=DELTA):
    """The answer of `hockeystick epsilon PATH --delta DELTA --format json`: one row."""
    command = [sys.executable, "-m", "hockeystick", "epsilon", path, "--delta", repr(delta), "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"][0]


def main():
    parser = argparse.ArgumentParser(description="DP-SGD on digits with a certified eps")
    parser.add_argument("--log", default="digits_run.csv")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    x, y, x_test, y_test = split(rng)
    weights, log = train(x, y, rng)
    write_log(log, args.log)
    accuracy = (forward(weights, x_test)[1].argmax(axis=1) == y_test).mean()
    row = certified_epsilon(args.log)
    assert row["certified"] and row["lower"] <= row["estimate"] <= row["upper"]
    print(f"{len(x)} training images, {sum(steps for *_, steps in log)} steps, {len(log)} log lines: {args.log}")
    print(f"test accuracy {accuracy:.4f} at eps <= {row['upper']!r} (delta {DELTA:g}, route {row['route']})")
    print(f"certified: {row['lower']!r} <= eps <= {row['upper']!r}")


if __name__ == "__main__":
    main()
