"""The pictures of the pages of docs/, every line of them certified.

python docs/pictures.py [FOLDER]     (default: docs/figures; needs the extra `plot`)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib
import numpy as np
from scipy import special

import hockeystick as hs
from hockeystick.plot import COLOURS, DASHES

matplotlib.use("Agg")
matplotlib.rcParams |= {
    "svg.hashsalt": "hockeystick",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}
import matplotlib.pyplot as plt  # noqa: E402

DELTA = 1e-5


def sgd(sigma: float, q: float, steps: int) -> hs.Run:
    return hs.poisson_subsampled(hs.gaussian(sigma), q) * steps


def axes_of():
    figure, axis = plt.subplots(figsize=(5.2, 3.5), layout="constrained")
    axis.grid(True, which="major", color="0.9", linewidth=0.6)
    return figure, axis


def draw(axis, x, y, which: int, label: str, **options) -> None:
    axis.plot(x, y, color=COLOURS[which], linestyle=DASHES[which % len(DASHES)], linewidth=1.5, label=label, **options)


def noise():
    """eps against noise, for three numbers of steps."""
    figure, axis = axes_of()
    sigmas = np.geomspace(0.5, 8, 60)
    for which, steps in enumerate((100, 1000, 10_000)):
        draw(axis, sigmas, [hs.epsilon(sgd(s, 0.01, steps), DELTA).upper for s in sigmas], which, f"{steps:,} steps")
    axis.set(xscale="log", yscale="log", xlabel="noise multiplier sigma", ylabel=f"eps at delta = {DELTA:g}")
    axis.set_title("q = 0.01", fontsize="medium")
    axis.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"], minor=False)
    axis.minorticks_off()
    axis.legend(frameon=False, fontsize="small")
    return figure


def batches():
    """The noise that a budget leaves in a mean gradient, against the batch size."""
    figure, axis = axes_of()
    records, epochs = 60_000, 20
    sizes = np.unique(np.geomspace(30, records, 30).astype(int))
    for which, eps in enumerate((1.0, 2.0, 8.0)):
        found = [
            hs.noise_multiplier(q=b / records, steps=-(-epochs * records // b), eps=eps, delta=DELTA).value
            for b in sizes
        ]
        draw(axis, sizes, np.array(found) / sizes, which, f"eps = {eps:g}")
    axis.set(xscale="log", yscale="log", xlabel="expected batch size B", ylabel="noise of a mean gradient, sigma/B")
    axis.set_title(f"{records:,} records, {epochs} epochs, delta = {DELTA:g}, clip 1", fontsize="medium")
    axis.legend(frameon=False, fontsize="small")
    return figure


def steps():
    """eps while a training runs, for three amounts of noise."""
    figure, axis = axes_of()
    count = np.unique(np.geomspace(1, 10_000, 60).astype(int))
    for which, sigma in enumerate((0.8, 1.0, 2.0)):
        draw(
            axis, count, [hs.epsilon(sgd(sigma, 0.01, int(k)), DELTA).upper for k in count], which, f"sigma = {sigma:g}"
        )
    axis.set(xscale="log", yscale="log", xlabel="steps", ylabel=f"eps at delta = {DELTA:g}")
    axis.set_title("q = 0.01", fontsize="medium")
    axis.legend(frameon=False, fontsize="small")
    return figure


def mixing():
    """Three runs of the same eps at one delta, and how they differ elsewhere."""
    figure, axis = axes_of()
    eps = np.linspace(0, 3, 121)
    gaussian = hs.calibrate(hs.gaussian, over=(0.5, 50.0), eps=1.0, delta=DELTA).value
    sampled = hs.noise_multiplier(q=0.01, steps=1000, eps=1.0, delta=DELTA).value
    runs = {
        f"one Gaussian, sigma = {gaussian:.2f}": hs.gaussian(gaussian) * 1,
        f"1,000 sampled steps, q = 0.01, sigma = {sampled:.2f}": sgd(sampled, 0.01, 1000),
        "any (1, 1e-5)-DP step": hs.approx_dp(1.0, DELTA) * 1,
    }
    for which, (name, run) in enumerate(runs.items()):
        draw(axis, eps, np.maximum(hs.delta(run, eps).upper, 1e-300), which, name)
    axis.plot([1.0], [DELTA], "ko", markersize=5)
    axis.set(yscale="log", ylim=(1e-12, 1), xlabel="eps", ylabel="delta(eps)")
    axis.legend(frameon=False, fontsize="x-small", loc="upper right", bbox_to_anchor=(1.0, 0.95))
    return figure


def attacks():
    """The best true positive rate of a membership attack against its false positive rate."""
    figure, axis = axes_of()
    fpr = np.geomspace(1e-5, 0.5, 41)
    for which, eps in enumerate((0.5, 1.0, 2.0, 8.0)):
        sigma = hs.noise_multiplier(q=0.01, steps=1000, eps=eps, delta=DELTA).value
        draw(axis, fpr, hs.true_positive_rate(sgd(sigma, 0.01, 1000), fpr).upper, which, f"eps = {eps:g}")
    axis.plot(fpr, fpr, color="0.6", linewidth=0.8, label="guessing")
    axis.set(xscale="log", yscale="log", xlabel="false positive rate", ylabel="largest true positive rate")
    axis.set_title(f"1,000 steps, q = 0.01, eps at delta = {DELTA:g}", fontsize="medium")
    axis.legend(frameon=False, fontsize="small")
    return figure


def shuffled_at_least(sigma: float, steps: int):
    """A step whose curve is below that of every accountant of a shuffled epoch [CGK+24]: which of the `steps` batches
    is the largest is not looked at, only between which of some cuts it lies. All records but one contribute -1 to a
    sum, that one 1, or 0 when it is zeroed: it moves its batch by 2 or by 1."""
    cuts = np.linspace(1.0, 2 + 6 * sigma, 40)
    masses = []
    for moved in (2, 1):
        below = special.log_ndtr((cuts - moved) / sigma) + (steps - 1) * special.log_ndtr(cuts / sigma)
        masses.append(np.diff(np.exp(below), prepend=0.0, append=1.0))
    return hs.from_pmf(*masses)


def samplers():
    """eps of one training, its batches drawn in six ways, and what shuffling costs at least: over noise, over
    epochs."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2), sharey=True, layout="constrained")
    n, batch = 10_000, 100
    bins = n // batch
    ways = {
        "fixed size, add_remove": (lambda g: hs.without_replacement(g, dataset_size=n, max_batch=batch), "add_remove"),
        "fixed size, replace_one": (
            lambda g: hs.without_replacement(g, dataset_size=n, max_batch=batch),
            "replace_one",
        ),
        "Poisson, replace_one": (lambda g: hs.poisson_subsampled(g, batch / n), "replace_one"),
        "Poisson cut at 130, add_remove": (
            lambda g: hs.truncated_poisson_subsampled(g, batch / n, dataset_size=n, max_batch=130),
            "add_remove",
        ),
        "Poisson, add_remove": (lambda g: hs.poisson_subsampled(g, batch / n), "add_remove"),
    }
    runs = {
        name: (lambda g, epochs, step=step: step(g) * (epochs * bins), adjacency)
        for name, (step, adjacency) in ways.items()
    } | {
        "balls and bins, add_remove": (lambda g, epochs: hs.balls_and_bins(g, bins, epochs=epochs) * 1, "add_remove"),
        "random allocation, add_remove": (lambda g, epochs: hs.random_allocation(g, bins) * epochs, "add_remove"),
    }
    sigmas, epochs = np.geomspace(0.8, 8, 25), (1, 2, 4, 8, 16, 32, 64)
    for axis, x, at in (
        (left, sigmas, [(sigma, 10) for sigma in sigmas]),
        (right, epochs, [(2.0, count) for count in epochs]),
    ):
        for which, (name, (run, adjacency)) in enumerate(runs.items()):
            eps = [hs.epsilon(run(hs.gaussian(s), count), DELTA, adjacency=adjacency).upper for s, count in at]
            draw(axis, x, eps, which, name)
        least = [hs.epsilon(shuffled_at_least(s, bins) * count, DELTA).lower for s, count in at]
        axis.plot(x, least, color="#c51b7d", linestyle="-.", linewidth=1.5, label="shuffled, zero_out: at least")
        axis.set(xscale="log", yscale="log")
        axis.grid(True, which="major", color="0.9", linewidth=0.6)
        axis.minorticks_off()
    left.set(xlabel="noise multiplier sigma", ylabel=f"eps at delta = {DELTA:g}")
    left.set_title(f"{n:,} records, batches of {batch}, 10 epochs", fontsize="medium")
    left.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"], minor=False)
    right.set(xlabel="epochs")
    right.set_title("noise multiplier 2", fontsize="medium")
    right.set_xticks(epochs, [str(count) for count in epochs], minor=False)
    left.legend(frameon=False, fontsize="x-small")
    return figure


def individual():
    """eps of 1,000 records whose gradients are of different lengths, after 1,000 sampled steps."""
    figure, axis = axes_of()
    norms = np.minimum(1.0, np.random.default_rng(0).lognormal(-1.2, 0.6, (1000, 1)))
    levels = np.array([1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1])
    counts = np.zeros((1000, levels.size), dtype=int)
    counts[np.arange(1000), (norms <= levels).sum(axis=1) - 1] = 1000
    eps = hs.individual_epsilons(counts, sigmas=(1 / levels).tolist(), q=0.01, delta=DELTA).upper
    values, many = np.unique(eps, return_counts=True)
    axis.bar(values, many, width=0.04, color=COLOURS[0])
    axis.axvline(hs.epsilon(sgd(1.0, 0.01, 1000), DELTA).upper, color=COLOURS[1], label="eps of the run")
    axis.set(xlabel=f"eps of a record at delta = {DELTA:g}", ylabel="records")
    axis.legend(frameon=False, fontsize="small")
    return figure


FIGURES = (noise, batches, steps, mixing, attacks, samplers, individual)


def main(folder: Iterable[str]) -> None:
    where = Path(next(iter(folder), Path(__file__).parent / "figures"))
    where.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES:
        figure().savefig(where / f"{figure.__name__}.svg", metadata={"Date": None})
        print(f"{figure.__name__}: {figure.__doc__}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
