"""Individual accounting on real runs: private gradient descent and DP-SGD on scikit-learn's digits and breast-cancer
data.

    python benchmarks/digits_individual.py [--out individual_runs]

DP-GD: full clipped gradients plus noise. Worst-case accounting stops after `steps`; the individual filter, with the
same budget for every record, runs on: records leave when their own budget is used up, and come back for steps at which
their gradient is small. DP-SGD: Poisson samples of rate q; norms of all records at every step (charges do not depend on
the draw), eps of every record from counts of noise levels. Histograms against the worst case, and eps by class beside
the class's accuracy, go to pictures.

The features are scaled by constants, not by the data, and sums are divided by the number of records, which is taken as
public. The pictures and the numbers by record show private quantities: they are for a study like this one, not for
release."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

import hockeystick as hs
from hockeystick.individual import NoiseLevels, mu_from_norms

DELTA = 1e-5
SCALES = np.array(
    [[30, 40, 200, 2500, 0.2, 0.35, 0.45, 0.2, 0.3, 0.1],
     [3, 5, 22, 550, 0.03, 0.14, 0.4, 0.05, 0.08, 0.03],
     [36, 50, 250, 4300, 0.22, 1.06, 1.25, 0.29, 0.66, 0.21]]
).ravel()  # fmt: skip


class Case(NamedTuple):
    name: str
    clip: float
    sigma: float  # noise multiplier of DP-GD
    steps: int  # where worst-case accounting stops
    rate: float
    q: float
    sgd_sigma: float
    sgd_steps: int


CASES = (
    Case("digits", clip=1.5, sigma=12.0, steps=40, rate=3.0, q=0.1, sgd_sigma=2.5, sgd_steps=150),
    Case("breast_cancer", clip=1.0, sigma=12.0, steps=30, rate=1.5, q=0.1, sgd_sigma=2.5, sgd_steps=100),
)


def load(name):
    """(train x, y, test x, y): features in about [-1, 1] with a constant for the bias, labels 0..classes-1."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "digits":
        x = x / 16.0
    else:  # upper ends of the instrument's scales, the same for any data set of this kind
        x = 2 * x / SCALES - 0.5
    x = np.hstack([x, np.ones((len(x), 1))]) / np.sqrt(x.shape[1] + 1) * 3
    order = np.random.default_rng(0).permutation(len(x))
    cut = len(x) // 5
    return x[order[cut:]], y[order[cut:]], x[order[:cut]], y[order[:cut]]


def gradients(weights, x, y):
    """(error signals, gradient norms) of softmax regression: an example's gradient is x e^T, of norm |x| |e|."""
    logits = x @ weights
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = odds / odds.sum(axis=1, keepdims=True)
    error[np.arange(len(y)), y] -= 1
    return error, np.linalg.norm(x, axis=1) * np.linalg.norm(error, axis=1)


def clipped_sum(x, error, norms, take, clip):
    scale = np.minimum(1.0, clip / np.maximum(norms, 1e-300))[take]
    return x[take].T @ (error[take] * scale[:, None])


def accuracy(weights, x, y):
    return float(((x @ weights).argmax(axis=1) == y).mean())


def descend(case, data, rng, filter=None, steps=None):
    """DP-GD; with a filter, its active records only. Returns (weights, norms of every step, accuracies, number
    active)."""
    x, y, x_test, y_test = data
    weights = np.zeros((x.shape[1], y.max() + 1))
    history, curve, active = [], [], []
    for _ in range(steps or case.steps):
        error, norms = gradients(weights, x, y)
        clipped = np.minimum(norms, case.clip)
        take = np.ones(len(x), bool) if filter is None else filter.charge(clipped, sigma=case.sigma * case.clip)
        total = clipped_sum(x, error, norms, take, case.clip)
        noisy = total + rng.normal(0, case.sigma * case.clip, weights.shape)
        weights = weights - case.rate * noisy / len(x)
        history.append(clipped)
        curve.append(accuracy(weights, x_test, y_test))
        active.append(int(take.sum()))
    return weights, np.array(history), curve, active


def descend_sampled(case, data, rng):
    """DP-SGD; returns weights and the counts of noise levels of every record, charged at every step, drawn or not."""
    x, y, *_ = data
    weights, levels = np.zeros((x.shape[1], y.max() + 1)), NoiseLevels(1 / case.sgd_sigma * (1 + 1e-12), levels=32)
    counts = np.zeros((len(x), 32), np.int32)
    for _ in range(case.sgd_steps):
        error, norms = gradients(weights, x, y)
        levels.add(counts, mu_from_norms(norms, noise_multiplier=case.sgd_sigma, clip=case.clip))
        total = clipped_sum(x, error, norms, rng.random(len(x)) < case.q, case.clip)
        weights = weights - case.rate * (total + rng.normal(0, case.sgd_sigma * case.clip, weights.shape)) / (
            case.q * len(x)
        )
    return weights, counts, levels


def study(case, out: Path):
    data, rng = load(case.name), np.random.default_rng(1)
    x, y, x_test, y_test = data
    weights, history, curve, _ = descend(case, data, rng)
    worst = hs.epsilon(hs.gaussian(case.sigma) * case.steps, DELTA).upper
    budget = np.sqrt(case.steps) / case.sigma * (1 + 1e-12)
    ledger = hs.IndividualGDPFilter(len(x), budget_mu=float(budget), clip=case.clip)
    for clipped in history:
        assert ledger.charge(clipped, sigma=case.sigma * case.clip).all()
    eps = ledger.epsilons_upper(DELTA)
    assert eps.max() <= worst * (1 + 1e-6)

    filter = hs.IndividualGDPFilter(len(x), budget_mu=float(budget), clip=case.clip)
    *_, longer, active = descend(case, data, np.random.default_rng(1), filter, 2 * case.steps)
    assert active[: case.steps] == [len(x)] * case.steps
    assert filter.spent_mu_upper().max() <= budget * (1 + 1e-12)
    print(f"{case.name}: {len(x)} records, DP-GD, eps <= {worst:.4f} at delta {DELTA:g} for all")
    print(f"  worst-case stop, step {case.steps}: test accuracy {curve[-1]:.4f}; "
          f"individual eps median {np.median(eps):.4f}, 5% {np.quantile(eps, 0.05):.4f}, "
          f"max {eps.max():.4f}")  # fmt: skip
    print(f"  individual filter, step {2 * case.steps}: test accuracy {longer[-1]:.4f} (best {max(longer):.4f}), "
          f"same guarantee; active records {active[-1]}, least {min(active)}")  # fmt: skip

    sgd_weights, counts, levels = descend_sampled(case, data, rng)
    found = hs.individual_epsilons(counts, sigmas=levels.sigmas, q=case.q, delta=DELTA)
    sgd_worst = hs.epsilon(hs.poisson_subsampled(hs.gaussian(case.sgd_sigma), case.q) * case.sgd_steps, DELTA).upper
    assert found.upper.max() <= sgd_worst * (1 + 1e-4) and found.wider == 0
    reached = accuracy(sgd_weights, x_test, y_test)
    print(f"  DP-SGD, {case.sgd_steps} steps of rate {case.q}: test accuracy {reached:.4f}, "
          f"worst case {sgd_worst:.4f}; individual eps median {np.median(found.upper):.4f}, "
          f"max {found.upper.max():.4f}")  # fmt: skip
    by_class(eps, y, weights, x)
    picture(
        out / f"{case.name}.png", case, (eps, worst), (found.upper, sgd_worst), y, weights, x, curve, longer, active
    )


def by_class(eps, y, weights, x):
    right = (x @ weights).argmax(axis=1) == y
    for c in np.unique(y):
        print(f"    class {c}: {np.sum(y == c):4d} records, eps median {np.median(eps[y == c]):.4f}, "
              f"95% {np.quantile(eps[y == c], 0.95):.4f}, train accuracy {right[y == c].mean():.3f}")  # fmt: skip


def picture(path, case, gd, sgd, y, weights, x, curve, longer, active):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7), layout="constrained")
    for at, (eps, worst), title in ((axes[0, 0], gd, "DP-GD"), (axes[0, 1], sgd, "DP-SGD")):
        at.hist(eps, bins=50, color="#3b6ea5")
        at.axvline(worst, color="#b03030", label=f"worst case {worst:.2f}")
        at.set(
            title=f"{title}: individual eps, delta = {DELTA:g}", xlabel="eps (upper bound, ex post)", ylabel="records"
        )
        at.legend()
    eps, classes = gd[0], np.unique(y)
    right = (x @ weights).argmax(axis=1) == y
    axes[1, 0].boxplot(
        [eps[y == c] for c in classes], tick_labels=[str(c) for c in classes], whis=(5, 95), showfliers=False
    )
    axes[1, 0].set(title="DP-GD: eps by class (box: quartiles, whiskers: 5% and 95%)", xlabel="class", ylabel="eps")
    other = axes[1, 0].twinx()
    other.plot(np.arange(1, len(classes) + 1), [right[y == c].mean() for c in classes], "o", color="#b03030")
    other.set_ylabel("train accuracy", color="#b03030")
    axes[1, 1].plot(
        np.arange(1, len(curve) + 1), curve, color="#b03030", lw=2, label="all records, until the worst case stops"
    )
    axes[1, 1].plot(
        np.arange(1, len(longer) + 1), longer, color="#3b6ea5", lw=1, label="individual filter, same guarantee"
    )
    axes[1, 1].axvline(case.steps, color="grey", ls=":")
    axes[1, 1].set(title="DP-GD: test accuracy and active records", xlabel="step", ylabel="test accuracy")
    axes[1, 1].legend(loc="lower right")
    share = axes[1, 1].twinx()
    share.plot(np.arange(1, len(active) + 1), active, color="#70a070", lw=1)
    share.set_ylabel("active records", color="#70a070")
    share.set_ylim(0, None)
    figure.suptitle(case.name.replace("_", " "))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description="individual accounting of real DP-GD and DP-SGD runs")
    parser.add_argument("--out", type=Path, default=Path("individual_runs"))
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    for case in CASES:
        study(case, args.out)


if __name__ == "__main__":
    main()
