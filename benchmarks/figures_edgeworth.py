"""The three settings of the Edgeworth accountant's paper [WGZ22], redrawn from our own computation; the contour route
is truth.

    python benchmarks/figures_edgeworth.py [folder]     (default: benchmarks/figures)

NoisySGD with sigma = 0.8 and delta = 0.1, m steps at sampling rate p = 0.4/sqrt(m), 1/sqrt(m log m), 0.1
sqrt(log(m)/m). Writes edgeworth.csv and edgeworth.png and prints whether the claims hold that the curves are drawn for.
"""

from __future__ import annotations

import csv
import math
import pathlib
import sys

import numpy as np

import hockeystick as hs
from hockeystick.routes import edgeworth

SIGMA, DELTA = 0.8, 0.1
SETTINGS = {
    "p = 0.4 / sqrt(m)": lambda m: 0.4 / math.sqrt(m),
    "p = 1 / sqrt(m log m)": lambda m: 1 / math.sqrt(m * math.log(m)),
    "p = 0.1 sqrt(log(m) / m)": lambda m: 0.1 * math.sqrt(math.log(m) / m),
}
STEPS = sorted({round(m) for m in np.geomspace(20, 1e6, 25)})
COLUMNS = (
    "setting,m,p,lower,upper,prawitz_lower,prawitz_upper,published_1,one_sequence_1,one_sequence_3,"
    "eeai_published_lower,eeai_published_upper,eeai_lower,eeai_upper,rdp,gdp"
).split(",")


def row(setting: str, m: int) -> list:
    p = SETTINGS[setting](m)
    run = hs.poisson_subsampled(hs.gaussian(SIGMA), p) * m
    true, sharp = hs.epsilon(run, DELTA), edgeworth.prawitz_epsilon(run, DELTA)
    assert true.certified and sharp.lower <= true.upper and true.lower <= sharp.upper
    published = edgeworth.eeai_epsilon(run, DELTA, form="two_sequence", published=True)
    ours = edgeworth.eeai_epsilon(run, DELTA)
    for b in (published, ours):
        assert b.lower <= true.upper and true.lower <= b.upper
    estimates = [
        edgeworth.aea_epsilon(run, DELTA, order=n, form=f) for n, f in ((1, "two_sequence"), (1, "one_sequence"))
    ]
    return [
        setting, m, p, true.lower, true.upper, sharp.lower, sharp.upper, *estimates, edgeworth.aea_epsilon(run, DELTA),
        published.lower, published.upper, ours.lower, ours.upper,
        hs.moments_epsilon_upper(run, DELTA), hs.gdp_epsilon(run, DELTA).estimate,
    ]  # fmt: skip


def draw(rows: list[list], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(15, 8.5), sharex=True)
    for j, setting in enumerate(SETTINGS):
        data = {c: np.array([r[i] for r in rows if r[0] == setting]) for i, c in enumerate(COLUMNS)}
        m, true = data["m"], 0.5 * (data["lower"] + data["upper"])
        top, low = axes[0, j], axes[1, j]
        top.fill_between(m, data["eeai_published_lower"], data["eeai_published_upper"], color="tab:orange", alpha=0.18,
                         label="EEAI, published form")  # fmt: skip
        top.fill_between(
            m, data["eeai_lower"], data["eeai_upper"], color="tab:green", alpha=0.28, label="EEAI, one sequence"
        )
        top.plot(m, data["rdp"], color="tab:red", ls="--", label="RDP (Chernoff)")
        top.plot(m, data["gdp"], color="tab:purple", ls=":", lw=2, label="GDP (CLT)")
        top.plot(
            m, data["published_1"], color="tab:orange", marker="o", ms=4, lw=1, label="AEA order 1, published form"
        )
        top.plot(m, data["one_sequence_3"], color="tab:blue", marker="s", ms=4, lw=1, label="AEA order 3, one sequence")
        top.plot(m, true, color="black", lw=1.6, label="certified (contour, Prawitz)")
        top.set_title(f"{setting},  sigma = {SIGMA},  delta = {DELTA}", fontsize=11)
        top.set_ylim(0, 1.5 * max(data["rdp"].max(), data["gdp"].max()))
        seen = true > 0
        for name, label, colour in (
            ("gdp", "GDP (CLT)", "tab:purple"),
            ("published_1", "AEA order 1, published form", "tab:orange"),
            ("one_sequence_1", "AEA order 1, one sequence", "tab:green"),
            ("one_sequence_3", "AEA order 3, one sequence", "tab:blue"),
        ):
            error = np.abs(data[name][seen] - true[seen])
            low.loglog(m[seen], np.maximum(error, 1e-14), color=colour, marker=".", label=label)
        widths = np.maximum(data["prawitz_upper"] - data["prawitz_lower"], 1e-14)
        low.loglog(m[seen], widths[seen], color="black", label="width of Prawitz' certified interval")
        low.set_xlabel("steps m")
        low.grid(alpha=0.3, which="major")
        top.grid(alpha=0.3)
        top.set_xscale("log")
    axes[0, 0].set_ylabel("eps")
    axes[1, 0].set_ylabel("|eps - truth|")
    axes[0, 2].legend(fontsize=8, loc="upper right", ncol=2)
    axes[1, 2].legend(fontsize=8, loc="center left", bbox_to_anchor=(0, 0.3))
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def claims(rows: list[list]) -> None:
    """What the curves are meant to show, from the numbers."""
    for setting in SETTINGS:
        data = [dict(zip(COLUMNS, r, strict=True)) for r in rows if r[0] == setting and r[3] > 0]
        worst = {
            n: max(abs(d[n] / d["lower"] - 1) for d in data if d["m"] >= 1000)
            for n in ("published_1", "one_sequence_3", "gdp")
        }
        below = {n: sum(d[n] < d["lower"] for d in data) for n in ("published_1", "one_sequence_3", "gdp")}
        beats = [d["m"] for d in data if d["eeai_published_upper"] < d["rdp"] * 0.999]
        ours = [d["m"] for d in data if d["eeai_upper"] < d["rdp"] * 0.999]
        lower = [d["m"] for d in data if d["eeai_published_lower"] > 0]
        print(f"{setting}: {len(data)} values of m with eps > 0")
        print("  largest relative error, m >= 1000: " + ", ".join(f"{n} {w:.1e}" for n, w in worst.items()))
        print("  estimates below the certified eps: " + ", ".join(f"{n} {c}" for n, c in below.items()))
        first = [min(found, default=None) for found in (beats, ours, lower)]
        below, ours, positive = first
        print(f"  EEAI below RDP from m = {below} (published), {ours} (one sequence)")
        print(f"  lower end positive from m = {positive} (published)")


def make(folder: pathlib.Path, pictures: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [row(setting, m) for setting in SETTINGS for m in STEPS]
    with open(folder / "edgeworth.csv", "w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(
            [COLUMNS, *([x if isinstance(x, str | int) else f"{x:.10g}" for x in r] for r in rows)]
        )
    claims(rows)
    if pictures:
        draw(rows, folder / "edgeworth.png")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "figures", True)
