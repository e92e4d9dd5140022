"""The four figures: how they look on the page, what of a curve is drawn, and the same as a PNG or SVG file (extra `plot`)."""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Legend, Range1d
from bokeh.plotting import figure

from .. import plot
from ..bound import Bound, DomainError
from ..plot import COLOURS, SURE, Series
from .model import FAR, FPR, Choice

DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot", [12, 4])
EPS, DELTA, SIGMA = "\N{GREEK SMALL LETTER EPSILON}", "\N{GREEK SMALL LETTER DELTA}", "\N{GREEK SMALL LETTER SIGMA}"

RATES = (float(FPR[0]), 1.0)


COLUMNS = ("x", "lower", "upper", "line", "lower edge", "upper edge", "at least", "at most")
"""Of a curve: its band, the line where that is thin, the edges where it is wide, and the true ends for the pointer."""
NOTHING = dict.fromkeys(COLUMNS, np.array([np.nan]))
NOWHERE = (np.nan, np.nan)


class Plan(NamedTuple):
    """A figure: its title, its axes with their scales, and ranges that do not follow the curves."""

    title: str
    x: str
    y: str
    scales: tuple[str, str]
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None


PLANS = {
    "privacy": Plan("Privacy curve", EPS, f"{DELTA}({EPS})", ("linear", "log"), None, (FAR, 1.0)),
    "tradeoff": Plan(
        "Trade-off",
        "false positive rate",
        "largest true positive rate",
        ("log", "log"),
        RATES,
        RATES,
    ),
    "steps": Plan(f"{EPS} while steps run", "steps", EPS, ("linear", "linear")),
    "noise": Plan(f"{EPS} against noise", f"noise multiplier {SIGMA}", EPS, ("log", "log")),
}


def made(name: str):
    """An empty figure."""
    plan = PLANS[name]
    ranges = {at: Range1d(*given) for at, given in (("x_range", plan.x_range), ("y_range", plan.y_range)) if given}
    drawn = figure(
        height=300,
        x_axis_label=plan.x,
        y_axis_label=plan.y,
        x_axis_type=plan.scales[0],
        y_axis_type=plan.scales[1],
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom,reset,save",
        active_drag=None,  # a finger that scrolls the page must not move a curve
        toolbar_location="right",
        name=name,
        **ranges,
    )
    if name == "privacy":
        drawn.x_range.start = 0
    if name == "tradeoff":
        drawn.line(FPR, FPR, color="#8c8c8c", line_dash="dotted")
    if name == "steps":
        drawn.x_range.start = drawn.y_range.start = 0
    legend = Legend(label_text_font_size="9pt", padding=4, visible=False)
    legend.background_fill_alpha = 0.7
    legend.location = "top_left" if name == "steps" else "bottom_right" if name == "tradeoff" else "top_right"
    drawn.add_layout(legend)
    return drawn


class Lines:
    """The curves of the i-th run in all figures: bands, a line where a band is thin, its edges where it is wide, and dots where
    the run itself is.

    One source holds them all: one message to the browser, one repaint of a figure. `samples` are what legends show: Bokeh makes
    a legend anew after every change of what it refers to.
    """

    def __init__(self, drawn: dict, i: int):
        self.curves, self.dots = {name: NOTHING for name in drawn}, dict.fromkeys(drawn, NOWHERE)
        self.source, self.samples = ColumnDataSource(), {}
        self.draw({})
        for name, plan in drawn.items():
            x, low, high, line, lower, upper, *_ = (f"{name} {column}" for column in COLUMNS)
            look = {"source": self.source, "color": COLOURS[i], "line_dash": DASHES[i]}
            plan.varea(x, low, high, source=self.source, fill_color=COLOURS[i], fill_alpha=0.25)
            middle = plan.line(x, line, line_width=2, **look)
            edges = [plan.line(x, edge, line_width=0.7, **look) for edge in (lower, upper)]
            plan.scatter(f"{name} dot x", f"{name} dot y", source=self.source, size=9, color=COLOURS[i])
            self.samples[name] = plan.line([np.nan], [np.nan], line_width=2, color=COLOURS[i], line_dash=DASHES[i])
            ends = [("at least", f"{name} at least"), ("at most", f"{name} at most")]
            tips = [(PLANS[name].x, f"@{{{x}}}{{0.000000}}"), *((says, f"@{{{end}}}{{0.0000000e+0}}") for says, end in ends)]
            hover = {"tooltips": tips, "mode": "vline", "visible": False, "attachment": "left"}
            plan.add_tools(HoverTool(renderers=[middle, edges[1]], **hover))

    def clear(self) -> None:
        self.curves, self.dots = dict.fromkeys(self.curves, NOTHING), dict.fromkeys(self.dots, NOWHERE)
        self.draw({})

    def draw(self, found: dict[str, Series]) -> None:
        """Curves by the name of their figure; others stay."""
        self.curves |= {name: columns(name, series) for name, series in found.items()}
        size = max(curve["x"].size for curve in self.curves.values())
        data = {
            f"{name} {column}": np.pad(values, (0, size - values.size), mode="edge")
            for name, curve in self.curves.items()
            for column, values in curve.items()
        }
        for name, place in self.dots.items():
            for axis, value in zip("xy", place, strict=True):
                data[f"{name} dot {axis}"] = np.append([value], np.full(size - 1, np.nan))
        self.source.data = data

    def mark(self, what, epsilon: Bound, delta: float) -> None:
        """Where the dots are to be in the next drawing."""
        self.dots = dict.fromkeys(self.dots, NOWHERE)
        if 0 < epsilon.estimate < 1e300:
            self.dots["privacy"] = epsilon.estimate, delta
            if isinstance(what, Choice):
                self.dots |= {"steps": (what.steps, epsilon.estimate), "noise": (what.noise, epsilon.estimate)}


def columns(name: str, series: Series) -> dict:
    """What a figure draws of a curve, by `COLUMNS`."""
    low, high = (np.array(end, dtype=float) for end in (series.bound.lower, series.bound.upper))
    floor = (PLANS[name].y_range or (1e-4, 1.0))[0] * 1e-5 if PLANS[name].scales[1] == "log" else 0.0
    lower, upper = np.maximum(low, floor), np.maximum(high, floor)
    lower[~(high < 1e300)] = upper[~(high < 1e300)] = np.nan
    with np.errstate(invalid="ignore"):
        thin = high - low <= SURE * np.asarray(series.bound.estimate)
    line = np.where(thin, np.clip(series.bound.estimate, lower, upper), np.nan)
    edges = (np.where(thin, np.nan, end) for end in (lower, upper))
    return dict(zip(COLUMNS, (np.asarray(series.x, dtype=float), lower, upper, line, *edges, low, high), strict=True))


def picture(name: str, curves: list[Series], delta: float, form: str) -> bytes:
    """The figure as a file: "png" or "svg"."""
    if not curves:
        raise DomainError("nothing of this figure has been drawn yet")
    if name == "privacy":
        drawn = plot.draw_privacy(curves, FAR)
    elif name == "tradeoff":
        drawn = plot.draw_tradeoff(curves)
    else:
        drawn = plot.draw_steps(curves, delta)
        if name == "noise":
            axes = drawn.axes[0]
            axes.set_xlabel(r"noise multiplier $\sigma$")
            x, y = (np.concatenate(parts) for parts in zip(*((c.x, c.bound.upper) for c in curves), strict=True))
            y = y[(y > 0) & (y < 1e300)]
            for name, values in (("x", x), ("y", y)):
                getattr(axes, f"{name}axis").set_minor_formatter("")
                axes.set(**{f"{name}lim": (0.9 * values.min(), 1.1 * values.max()), f"{name}scale": "log"})
    file = io.BytesIO()
    drawn.savefig(file, format=form)
    return file.getvalue()
