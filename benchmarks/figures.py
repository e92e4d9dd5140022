"""Redraws published figures from this package's own computation, as data and as pictures.

    python benchmarks/figures.py [DIRECTORY] [--no-pictures]

Writes one CSV a figure, and one PNG where matplotlib is here. The contour route is the truth; each figure prints what
its paper says about it and whether the data agree.

gopi1      [GLW21, Fig. 1]: eps over steps at rate 0.01, noise 0.8, delta 0.015; and delta over steps at rate 4e-3,
           noise 0.8, eps 1.5: this package, Renyi orders, the Gaussian limit.
spa_delta  [AGH+22]: delta(eps) after 3,000 steps of noise 2, rate 0.01; every estimate and the certified interval.
spa_eps    [AGH+22]: eps over epochs (100 steps each) at delta 1e-15, same mechanism.
edgeworth  [WGZ22]: the three settings, delta 0.1, noise 0.8; drawn by figures_edgeworth.py.
sampling   eps against the largest batch that fits in memory: truncation, padding, plain Poisson; drawn by
           figures_sampling.py.
spa_error  [AGH+22]: relative error of every estimate over eps, same mechanism, and over steps at eps = mean + 2
           deviations.
"""

from __future__ import annotations

import argparse
import csv
import math
import pathlib
import time

import numpy as np

import figures_edgeworth
import figures_sampling
import hockeystick as hs

ESTIMATES = ("msd0", "msd1", "clt", "edgeworth")
LABELS = {
    "rdp_upper": "Renyi orders (moments accountant)",
    "moments": "moments accountant",
    "moments_upper": "moments accountant",
    "gdp_estimate": "Gaussian limit (GDP)",
    "upper": "certified (both ends: one line)",
    "clt": "SP-CLT",
    "msd0": "SP-MSD0",
    "msd1": "SP-MSD1",
    "edgeworth": "SP-CLT, Edgeworth-corrected",
}


def sgm(sigma, q, k):
    return hs.poisson_subsampled(hs.gaussian(sigma), q) * int(k)


def guess(run, eps, name):
    try:
        return hs.saddlepoint_delta(run, eps, estimate=name, direction="remove").delta
    except hs.AccuracyError:
        return math.nan


def save(where, name, columns):
    with open(where / f"{name}.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*([f"{x:.15g}" for x in column] for column in columns.values()), strict=True))


def said(claim, holds, detail):
    print(f"  {'holds' if holds else 'CONTRADICTED'}: {claim} ({detail})", flush=True)


def gopi1(where):
    steps = np.unique(np.geomspace(10, 10_000, 31).astype(int))
    runs = [sgm(0.8, 0.01, k) for k in steps]
    truth = [hs.epsilon(run, 0.015) for run in runs]
    columns = {
        "steps": steps,
        "lower": [b.lower for b in truth],
        "upper": [b.upper for b in truth],
        "rdp_upper": [hs.moments_epsilon_upper(run, 0.015) for run in runs],
        "gdp_estimate": [hs.gdp_epsilon(run, 0.015).estimate for run in runs],
    }
    save(where, "gopi1_eps", columns)
    upper, gdp, rdp = (np.array(columns[c]) for c in ("upper", "gdp_estimate", "rdp_upper"))
    under = [int(k) for k, g, b in zip(steps, gdp, truth, strict=True) if g < b.lower * (1 - 1e-9)]
    said(
        "the Gaussian limit under-reports eps",
        bool(under),
        f"at {len(under)} of {steps.size} points, first {under[:1]}",
    )
    big = upper > 0
    said(
        "Renyi orders over-report",
        bool((rdp[big] > upper[big]).all()),
        f"by {np.min(rdp[big] / upper[big]):.2f}x at least",
    )
    runs = [sgm(0.8, 0.004, k) for k in steps]
    truth = [hs.delta(run, 1.5) for run in runs]
    second = {
        "steps": steps,
        "lower": [b.lower for b in truth],
        "upper": [b.upper for b in truth],
        "rdp_upper": [hs.moments_delta_upper(run, 1.5) for run in runs],
        "gdp_estimate": [hs.gdp_delta(run, 1.5).estimate for run in runs],
    }
    save(where, "gopi1_delta", second)
    worst = min(g / b.lower for g, b in zip(second["gdp_estimate"], truth, strict=True))
    said("the Gaussian limit under-reports delta", worst < 1, f"down to {worst:.1e} of the truth")
    return columns, second


def spa_delta(where):
    run, eps = sgm(2.0, 0.01, 3000), np.linspace(0.1, 3.0, 59)
    truth = hs.log_delta(run, eps, direction="remove")
    bound = hs.log_delta(run, eps, route="saddlepoint", direction="remove")
    assert np.all(bound.lower <= truth.upper) and np.all(truth.lower <= bound.upper)
    ten = math.log(10)
    columns = {
        "eps": eps,
        "log10_truth": truth.estimate / ten,
        "log10_lower": bound.lower / ten,
        "log10_upper": bound.upper / ten,
    }
    columns["log10_moments"] = np.log10(hs.moments_delta_upper(run, eps, direction="remove"))
    for name in ESTIMATES:
        columns[f"log10_{name}"] = [math.log10(guess(run, e, name)) for e in eps]
    save(where, "spa_delta", columns)
    off = max(abs(a - b) for a, b in zip(columns["log10_clt"], columns["log10_truth"], strict=True))
    at = max(e for e, c, t in zip(eps, columns["log10_clt"], columns["log10_truth"], strict=True) if abs(c - t) < 5e-4)
    said(
        "saddle-point and truth lie on each other in the plot of delta(eps)",
        off < 0.02,
        f"apart by {10**off - 1:.1%} at most",
    )
    print(f"  SP-CLT is within 0.1% up to eps = {at:.2f}, delta = 1e{np.interp(at, eps, columns['log10_truth']):.0f}")
    return columns


def spa_eps(where):
    epochs, delta = np.arange(1, 61), 1e-15
    runs = [sgm(2.0, 0.01, 100 * e) for e in epochs]
    truth = [hs.epsilon(run, delta, direction="remove") for run in runs]
    bound = [hs.epsilon(run, delta, route="saddlepoint", direction="remove") for run in runs]
    columns = {
        "epochs": epochs,
        "truth": [b.estimate for b in truth],
        "lower": [b.lower for b in bound],
        "estimate": [b.estimate for b in bound],
        "upper": [b.upper for b in bound],
        "moments_upper": [hs.moments_epsilon_upper(run, delta, direction="remove") for run in runs],
        "gdp_estimate": [hs.gdp_epsilon(run, delta).estimate for run in runs],
        "skewness": [b.budget.terms["skewness"] for b in bound],
    }
    save(where, "spa_eps", columns)
    for k, published in ((1500, 1.655353471724), (4500, 2.851463623503)):
        ours = columns["truth"][k // 100 - 1]
        assert abs(ours - published) < 2e-12 * published, (k, ours)
    errors = np.abs(np.array(columns["estimate"]) / columns["truth"] - 1)
    trusted = np.array(columns["skewness"]) < 0.5
    said(
        "the estimate agrees with the truth in all digits shown",
        bool(errors[trusted].max() < 1e-3),
        f"worst {errors[trusted].max():.1e}",
    )
    said(
        "also for few epochs", bool(errors.max() < 1e-3), f"worst {errors.max():.1e} at epoch {epochs[errors.argmax()]}"
    )
    return columns


def spa_error(where):
    run, eps = sgm(2.0, 0.01, 3000), np.linspace(0.1, 4.0, 79)
    truth = hs.log_delta(run, eps, direction="remove").estimate
    columns = {"eps": eps}
    for name in ESTIMATES:
        columns[name] = [abs(guess(run, e, name) / math.exp(t) - 1) for e, t in zip(eps, truth, strict=True)]
    bound = hs.log_delta(run, eps, route="saddlepoint", direction="remove")
    columns["certified_upper"] = np.expm1(bound.upper - truth)
    columns["skewness"] = bound.budget.terms["skewness"]
    save(where, "spa_error_eps", columns)
    near = np.array(columns["skewness"]) < 0.1
    worst = {name: float(np.nanmax(np.array(columns[name])[near])) for name in ESTIMATES}
    said("errors of SP-CLT below 1% where the tilted law is near normal", worst["clt"] < 1e-2, f"{worst['clt']:.1e}")
    far = float(np.nanmax(np.array(columns["clt"])))
    said("accuracy for every delta shown", far < 1e-2, f"SP-CLT is off by {far:.0%} at eps=4, where delta is 1e-38")
    steps = np.unique(np.geomspace(1e3, 1e8, 26).astype(int))
    second = {name: [] for name in ("steps", "eps", *ESTIMATES)}
    for k in steps:
        run, one = sgm(1.0, 0.01, k), (8.38122076510e-05, 1.71630506247e-04)  # mean and variance of one step's loss
        at = k * one[0] + 2 * math.sqrt(k * one[1])
        true = hs.delta(run, at, direction="remove").estimate
        for name, value in zip(("steps", "eps"), (k, at), strict=True):
            second[name].append(value)
        for name in ESTIMATES:
            second[name].append(abs(guess(run, at, name) / true - 1))
    save(where, "spa_error_steps", second)
    first, last = second["clt"][0], second["clt"][-1]
    said("the error of SP-CLT falls as steps grow", last < 0.1 * first, f"{first:.1e} at 1e3 steps, {last:.1e} at 1e8")
    still = second["msd0"][-1]
    said(
        "and that of steepest descent does too",
        still < 0.1 * second["msd0"][0],
        f"{second['msd0'][0]:.1e}, then {still:.1e}",
    )
    return columns, second


def pictures(where, data):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def draw(axis, table, x, lines, **labels):
        for column, style in lines.items():
            label = LABELS.get(column.removeprefix("log10_"), column.removeprefix("log10_"))
            axis.plot(table[x], table[column], style, label=label, markersize=3)
        axis.set(**labels)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)

    def write(figure, name):
        figure.tight_layout()
        figure.savefig(where / f"{name}.png", dpi=130)
        plt.close(figure)

    lines = {"rdp_upper": "C0--", "upper": "k-", "gdp_estimate": "C1-."}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    draw(
        left,
        data["gopi1"][0],
        "steps",
        lines,
        xscale="log",
        xlabel="steps",
        ylabel="eps",
        title="q=0.01, sigma=0.8, delta=0.015",
    )
    draw(right, data["gopi1"][1], "steps", lines, xscale="log", yscale="log", xlabel="steps", ylabel="delta")
    right.set(title="q=0.004, sigma=0.8, eps=1.5", ylim=(1e-12, 1))
    write(figure, "gopi1")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6))
    table = data["spa_delta"]
    lines = {"log10_moments": "C3--", "log10_truth": "k-"}
    draw(left, table, "eps", lines, xlabel="eps", ylabel="log10 delta", title="3,000 steps, sigma=2, q=0.01")
    for column, mark in (("log10_clt", "C0o"), ("log10_msd0", "C1x")):
        left.plot(
            table["eps"],
            table[column],
            mark,
            mfc="none",
            ms=6,
            markevery=5,
            label=LABELS[column.removeprefix("log10_")],
        )
    left.legend(fontsize=8)
    low, high, clt, msd0 = (
        10 ** (np.array(table[f"log10_{name}"]) - table["log10_truth"]) for name in ("lower", "upper", "clt", "msd0")
    )
    right.fill_between(table["eps"], low, high, color="C0", alpha=0.25, label="certified interval")
    right.plot(table["eps"], clt, "C0-", label=LABELS["clt"])
    right.plot(table["eps"], msd0, "C1-.", label=LABELS["msd0"])
    right.axhline(1, color="k", lw=0.8, ls=":")
    right.set(xlabel="eps", ylabel="delta over the true delta", title="the same, seen from nearer")
    right.grid(alpha=0.3)
    right.legend(fontsize=8, loc="upper left")
    write(figure, "spa_delta")
    figure, axis = plt.subplots(figsize=(7, 4.6))
    table = data["spa_eps"]
    axis.fill_between(
        table["epochs"], table["lower"], table["upper"], color="C0", alpha=0.25, label="certified interval"
    )
    lines = {"moments_upper": "C3--", "truth": "k-", "gdp_estimate": "C2-."}
    axis.plot(table["epochs"], table["estimate"], "C1o", mfc="none", ms=5, markevery=2, label="estimate")
    draw(axis, table, "epochs", lines, xlabel="epochs of 100 steps", ylabel="eps", title="delta=1e-15, sigma=2, q=0.01")
    write(figure, "spa_eps")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4))
    lines = {name: "-" for name in ESTIMATES}
    draw(
        left,
        data["spa_error"][0],
        "eps",
        {**lines, "skewness": "k:"},
        yscale="log",
        xlabel="eps",
        ylabel="relative error of delta",
    )
    left.set_title("3,000 steps, sigma=2, q=0.01")
    draw(
        right,
        data["spa_error"][1],
        "steps",
        lines,
        xscale="log",
        yscale="log",
        xlabel="steps",
        ylabel="relative error of delta",
    )
    right.set_title("sigma=1, q=0.01, eps = mean + 2 deviations")
    write(figure, "spa_error")


FIGURES = {"gopi1": gopi1, "spa_delta": spa_delta, "spa_eps": spa_eps, "spa_error": spa_error}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).parent / "figures"
    parser.add_argument("directory", nargs="?", default=here, type=pathlib.Path)
    parser.add_argument("--no-pictures", action="store_true")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    data = {}
    for name, figure in FIGURES.items():
        start = time.perf_counter()
        print(name)
        data[name] = figure(options.directory)
        print(f"  {time.perf_counter() - start:.1f} s")
    if not options.no_pictures:
        pictures(options.directory, data)
    print("edgeworth")
    figures_edgeworth.make(options.directory, not options.no_pictures)
    print("sampling")
    figures_sampling.make(options.directory, not options.no_pictures)


if __name__ == "__main__":
    main()
