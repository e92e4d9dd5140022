"""The four figures: how they look on the page, what of a curve is drawn, and the same as a PNG or SVG file (extra
`plot`)."""

from __future__ import annotations

import html
import io
import math
from typing import Any, Literal, NamedTuple

import numpy as np
from bokeh.models import (
    BasicTickFormatter,
    CDSView,
    ColumnDataSource,
    CustomJSTicker,
    HoverTool,
    IndexFilter,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.plotting import figure

from .. import plot
from ..bound import Bound, DomainError
from ..plot import COLOURS, SURE, Series
from .model import FAR, FPR, Choice

DASHES: tuple[list[int], ...] = ([], [6, 4], [2, 4], [2, 4, 6, 4], [8, 3, 2, 3, 2, 3], [14, 4])
EPS, DELTA, SIGMA = "\N{GREEK SMALL LETTER EPSILON}", "\N{GREEK SMALL LETTER DELTA}", "\N{GREEK SMALL LETTER SIGMA}"

RATES = (float(FPR[0]), 1.0)


COLUMNS = ("x", "lower", "upper", "edge", "at least", "at most")
"""Of a curve: its band, the lower edge where that is not the upper one to the eye, and the true ends for the
pointer."""
NOTHING = {column: [math.nan] for column in (*COLUMNS, "dot x", "dot y")}
NOWHERE = (math.nan, math.nan)
TICKS = """
const {start, end} = cb_data, decades = Math.log10(end / start), ticks = [];
const few = decades > 3 ? [1] : decades > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
const digits = decades > 0.3 ? few : [...Array(90).keys()].map(i => 1 + i / 10);
for (let power = Math.floor(Math.log10(start)); power <= Math.log10(end); power++)
  for (const digit of digits) ticks.push(Number(`${digit}e${power}`));
return ticks.filter(x => start <= x && x <= end);
"""
"""Numbers of a logarithmic axis of one or two decades: Bokeh's are at equal distances and leave half of such an axis
bare."""
NICE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
"""Where an axis may end, times a power of 10: its numbers stand still while a curve moves a little."""


Scale = Literal["linear", "log"]


class Plan(NamedTuple):
    """A figure: its title, its axes with their scales, and ranges that do not follow the curves. A linear axis starts
    at 0."""

    title: str
    x: str
    y: str
    scales: tuple[Scale, Scale]
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


class Drawn:
    """One of the figures. Its axes end where Python says, at a nice number beyond the curves: a browser that had to
    find the ends would lay the figure out again after every move of a slider."""

    def __init__(self, name: str):
        plan = PLANS[name]
        self.ranges = {
            axis: Range1d(start=start, end=end)
            for axis, (start, end) in (("x", plan.x_range or (0.1, 1.0)), ("y", plan.y_range or (0.1, 1.0)))
        }
        self.scales = {
            axis: scale for axis, scale in zip("xy", plan.scales, strict=True) if not getattr(plan, f"{axis}_range")
        }
        self.fitted: dict[str, tuple[float, float]] = {}
        self.plot = figure(
            height=300,
            x_axis_label=plan.x,
            y_axis_label=plan.y,
            x_axis_type=plan.scales[0],
            y_axis_type=plan.scales[1],
            x_range=self.ranges["x"],
            y_range=self.ranges["y"],
            sizing_mode="stretch_width",
            tools="pan,box_zoom,wheel_zoom,reset,save",
            active_drag=None,  # a finger that scrolls the page must not move a curve
            toolbar_location="right",
            name=name,
        )
        if name == "tradeoff":
            self.plot.line(FPR, FPR, color="#8c8c8c", line_dash="dotted")
        self.plot.axis.minor_tick_line_color = None  # a third of the time that a logarithmic axis takes
        if name == "steps":
            self.plot.xaxis.formatter = NumeralTickFormatter(format="0,0[.]0")
        if name == "noise":
            self.plot.axis.ticker, self.plot.axis.formatter = CustomJSTicker(major_code=TICKS), BasicTickFormatter()

    def fit(self, curves: list[Series]) -> None:
        """Axes that hold the curves; those that somebody has moved stay."""
        for axis, scale in self.scales.items():
            values = np.concatenate(
                [np.asarray(c.x if axis == "x" else c.bound.upper, dtype=float) for c in curves] or [np.empty(0)]
            )
            values = values[(values > 0) & (values < 1e300)]
            if not values.size:
                continue
            ends = nice(values.min(), up=False) if scale == "log" else 0.0, nice(values.max(), up=True)
            shown = self.ranges[axis]
            if ends != self.fitted.get(axis) and self.fitted.get(axis) in (None, (shown.start, shown.end)):
                shown.update(start=ends[0], end=ends[1], reset_start=ends[0], reset_end=ends[1])
                self.fitted[axis] = ends


def nice(value: float, up: bool) -> float:
    """The value, or the next of `NICE` times a power of 10 above it, or below."""
    power = math.floor(math.log10(value))
    near = [float(f"{digits}e{power + more}") for more in (-1, 0, 1) for digits in NICE]
    return next(x for x in near if x >= value) if up else next(x for x in reversed(near) if x <= value)


class Lines:
    """The curves of the i-th run in all figures: a band between the certified ends, a line at the upper one, another at
    the lower one where the band is wide, and dots where the run itself is.

    All of them have one source, whose columns are the `COLUMNS` of every figure: what is found together goes to the
    browser as one message, which takes it a third of the time of four. Columns are lists: an array would be two more
    messages."""

    def __init__(self, drawn: dict[str, Drawn], i: int):
        self.dots, self.shown = dict.fromkeys(drawn, NOWHERE), dict.fromkeys(drawn, NOTHING)
        self.source = ColumnDataSource(self._data())
        first = CDSView(filter=IndexFilter(indices=[0]))
        for name, one in drawn.items():
            plot = one.plot
            data: dict[str, Any] = {"source": self.source, "level": "overlay"}  # page.html tells why
            look = data | {"color": COLOURS[i], "line_dash": DASHES[i]}
            x, lower, upper, edge, *_ = (f"{name} {column}" for column in COLUMNS)
            plot.varea(x, lower, upper, fill_color=COLOURS[i], fill_alpha=0.25, **data)
            line = plot.line(x, upper, line_width=2, **look)
            plot.line(x, edge, line_width=1, **look)
            if name != "tradeoff":
                plot.scatter(f"{name} dot x", f"{name} dot y", view=first, size=9, color=COLOURS[i], **data)
            tips = [(PLANS[name].x, f"@{{{x}}}{{0.000000}}")]
            tips += [(end, f"@{{{name} {end}}}{{0.0000000e+0}}") for end in ("at least", "at most")]
            plot.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline", visible=False, attachment="left"))

    def clear(self) -> None:
        self.dots, self.shown = dict.fromkeys(self.dots, NOWHERE), dict.fromkeys(self.shown, NOTHING)
        self.source.data = self._data()

    def draw(self, curves: dict[str, Series]) -> None:
        """Curves and their dots in the figures of those names."""
        for name, series in curves.items():
            dots = {f"dot {axis}": [value] for axis, value in zip("xy", self.dots[name], strict=True)}
            self.shown[name] = columns(name, series) | dots
        self.source.data = self._data()

    def mark(self, what, epsilon: Bound, delta: float) -> None:
        """Where the dots are to be in the next drawing."""
        self.dots = dict.fromkeys(self.dots, NOWHERE)
        if 0 < epsilon.estimate < 1e300:
            self.dots["privacy"] = epsilon.estimate, delta
            if isinstance(what, Choice):
                self.dots |= {"steps": (what.steps, epsilon.estimate), "noise": (what.noise, epsilon.estimate)}

    def _data(self) -> dict[str, list]:
        """Columns of equal length: shorter ones repeat their last point."""
        lists = {f"{name} {column}": rows for name, shown in self.shown.items() for column, rows in shown.items()}
        length = max(map(len, lists.values()))
        return {column: [*rows, *rows[-1:] * (length - len(rows))] for column, rows in lists.items()}


def legend(names: dict[int, str]) -> str:
    """HTML of how the i-th run is drawn, for every i with its name: once for all figures, outside their canvases."""
    rows = []
    for i, name in names.items():
        dashes = " ".join(map(str, DASHES[i]))
        line = (
            f"<line x1='0' y1='6' x2='42' y2='6' stroke='{COLOURS[i]}' stroke-width='3' stroke-dasharray='{dashes}'/>"
        )
        rows.append(f"<span><svg width='42' height='12' aria-hidden='true'>{line}</svg> {html.escape(name)}</span>")
    return "".join(rows)


def columns(name: str, series: Series) -> dict[str, list]:
    """What a figure draws of a curve, by `COLUMNS`."""
    low, high = (np.array(end, dtype=float) for end in (series.bound.lower, series.bound.upper))
    floor = (PLANS[name].y_range or (1e-4, 1.0))[0] * 1e-5 if PLANS[name].scales[1] == "log" else 0.0
    lower, upper = np.maximum(low, floor), np.maximum(high, floor)
    lower[~(high < 1e300)] = upper[~(high < 1e300)] = np.nan
    with np.errstate(invalid="ignore"):
        wide = ~(high - low <= SURE * np.asarray(series.bound.estimate))
    # Where the band is narrow all along, its edges are one line: a NaN is four numbers long as text.
    edge = np.where(wide, lower, np.nan) if wide.any() else upper
    values = (np.asarray(series.x, dtype=float), lower, upper, edge, low, high)
    return {column: array.tolist() for column, array in zip(COLUMNS, values, strict=True)}


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
