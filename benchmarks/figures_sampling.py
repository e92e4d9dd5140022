"""A picture: eps against the memory of a step. Truncated Poisson sampling, padding to a size that never overflows,
Poisson.

    python benchmarks/figures_sampling.py [folder]     (default: benchmarks/figures)

A step must fit B records. Truncation cuts larger samples down and pays in eps; padding runs plain Poisson sampling in
buffers of size B and pays the probability eta that some of the k samples is larger, as delta + (1 + e^eps) eta
(coupling both data sets with untruncated runs); plain Poisson has no limit. Batches of fixed size are the star. Every
point is a certified upper bound."""

from __future__ import annotations

import csv
import itertools
import math
import pathlib
import sys

import hockeystick as hs

N, P, SIGMA, K, DELTA = 10_000, 0.01, 1.0, 500, 1e-5
SIZES = (*range(90, 180, 5), *range(180, 250, 10))
ADJACENCIES = {"add_remove": "add/remove", "zero_out": "zero-out", "replace_one": "replace-one"}


def truncated(size: int, adjacency: str) -> float:
    step = hs.truncated_poisson_subsampled(hs.gaussian(SIGMA), P, dataset_size=N, max_batch=size)
    bound = hs.epsilon(step * K, DELTA, adjacency=adjacency)
    assert bound.certified
    return bound.upper


def poisson(delta: float, adjacency: str) -> float:
    return hs.epsilon(hs.poisson_subsampled(hs.gaussian(SIGMA), P) * K, delta, adjacency=adjacency).upper


def overflow(size: int) -> float:
    """Upper bound of the probability that one of K samples of N records exceeds `size`: a geometric series above it."""
    log_first = math.lgamma(N + 1) - math.lgamma(size + 2) - math.lgamma(N - size) + (size + 1) * math.log(P)
    log_first += (N - size - 1) * math.log1p(-P)
    ratio = (N - size - 1) / (size + 2) * P / (1 - P)
    return K * math.exp(log_first) / (1 - ratio) * (1 + 1e-9) if ratio < 1 else 1.0


def padded(size: int, adjacency: str) -> float:
    """eps with delta left after (1 + e^eps) eta; infinite where nothing is left."""
    eta, eps = overflow(size), 0.0
    for _ in range(60):
        left = DELTA - (1 + math.exp(min(eps, 700.0))) * eta
        if left <= 0:
            return math.inf
        found = poisson(left, adjacency)
        if found <= eps * (1 + 1e-9):
            return eps
        eps = found * (1 + 1e-6)
    return math.inf


def curves(adjacency: str):
    cut = [truncated(size, adjacency) for size in SIZES]
    pad = [padded(size, adjacency) for size in SIZES]
    floor = poisson(DELTA, adjacency)
    assert all(b <= a * (1 + 2e-3) for a, b in itertools.pairwise(cut)), "more memory cannot cost more here"
    assert all(floor <= c * (1 + 2e-3) and c <= p * (1 + 2e-3) for c, p in zip(cut, pad, strict=True))
    return cut, pad, floor


def make(where: pathlib.Path, with_picture: bool = True) -> None:
    """Writes eps_against_memory.csv, and .png where a picture is wanted."""
    found = {}
    for adjacency in ADJACENCIES:
        batch = hs.without_replacement(hs.gaussian(SIGMA), dataset_size=N, batch=int(N * P)) * K
        found[adjacency] = *curves(adjacency), hs.epsilon(batch, DELTA, adjacency=adjacency).upper
        cut, pad, floor, fixed = found[adjacency]
        least = min(size for size, eps in zip(SIZES, pad, strict=True) if eps < math.inf)
        at = SIZES.index(least)
        print(
            f"  {adjacency}: truncation at B = {int(N * P)} {cut[SIZES.index(N * P)]:.4g}, fixed batches of it"
            f" {fixed:.4g}; padding needs B >= {least} ({pad[at]:.4g}, truncation {cut[at]:.4g}, no limit {floor:.4g})"
        )
    with open(where / "eps_against_memory.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("adjacency", "B", "truncated", "padded", "poisson", "fixed"))
        for adjacency, (cut, pad, floor, fixed) in found.items():
            for size, a, b in zip(SIZES, cut, pad, strict=True):
                rows.writerow((adjacency, size, *(f"{x:.15g}" for x in (a, b, floor, fixed))))
    if with_picture:
        picture(where / "eps_against_memory.png", found)


def picture(target: pathlib.Path, found) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(12, 4), sharey=True)
    for panel, (adjacency, name) in zip(panels, ADJACENCIES.items(), strict=True):
        cut, pad, floor, fixed = found[adjacency]
        panel.plot(SIZES, cut, "o-", ms=3, label="truncated")
        shown = [(s, e) for s, e in zip(SIZES, pad, strict=True) if e < math.inf]
        panel.plot(*zip(*shown, strict=True), "s--", ms=4, label="padded, overflow paid in delta")
        panel.axhline(floor, color="grey", lw=1, label="Poisson, no limit")
        panel.plot([N * P], [fixed], "k*", label=f"fixed batches of {int(N * P)}")
        panel.axvspan(SIZES[0], shown[0][0], color="C1", alpha=0.08)
        panel.set_title(name)
        panel.set_xlabel("B: records that fit in memory")
    panels[0].set_ylabel(f"eps at delta = {DELTA:g}")
    panels[0].set_yscale("log")
    panels[0].set_yticks([1, 1.5, 2, 3, 5, 8, 12], [str(x) for x in (1, 1.5, 2, 3, 5, 8, 12)])
    panels[0].minorticks_off()
    panels[0].legend(fontsize=8)
    figure.suptitle(
        f"n = {N:,}, expected batch {int(N * P)}, sigma = {SIGMA:g}, {K} steps; padding fails in the shaded range"
    )
    figure.tight_layout()
    figure.savefig(target, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "figures")
