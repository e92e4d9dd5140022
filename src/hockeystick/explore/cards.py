"""A card: the fields of one run, each with a slider and room for a message, and what the run costs."""

from __future__ import annotations

import html
import math
from functools import partial
from typing import Any

from bokeh.layouts import column, row
from bokeh.models.widgets import Button, Div, Select, Slider, TextInput, Toggle

from .. import plot
from ..bound import Bound, DomainError
from . import model
from .figures import EPS
from .model import FIELDS, SAMPLERS, Choice, Given

STYLE = """
    :host { font: 15px/1.4 system-ui, sans-serif; }
    p { margin: .1rem 0; } .eps { font-size: 1.15rem; font-weight: 600; } .proof { color: #333; font-size: .85rem; }
    .wrong { color: #a40000; font-size: .85rem; } code { overflow-wrap: anywhere; }
    .noUi-handle:focus-visible, input:focus-visible, button:focus-visible, select:focus-visible {
        outline: 3px solid #0072b2;
    }
"""
CODE: dict[str, Any] = {"sizing_mode": "stretch_width", "stylesheets": [STYLE, "textarea { font-family: monospace; }"]}
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "stylesheets": [STYLE]}


def on(widget, name: str, call) -> None:
    """call() whenever a property of the widget changes."""
    widget.on_change(name, lambda attr, old, new: call())


def say(place: Div, text: str) -> None:
    """A message beside what it is about, read aloud where a screen is read; none if empty."""
    place.text = f"<p class='wrong' role='alert'>{html.escape(text)}</p>" if text else ""
    place.visible = bool(text)


def plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


class Number:
    """A text field with a logarithmic slider under it and room for a message. `moved(value)` is told of every new
    number."""

    def __init__(self, key: str, name: str, value: float, moved):
        self.name, self.field, self.value, self.moved, self.quiet = name, FIELDS[name], value, moved, False
        self.text = TextInput(title=self.field.label, value=plain(value), name=f"{key}-{name}", **WIDE)
        low, high = math.log10(self.field.low), math.log10(self.field.high)
        self.slider = Slider(
            start=low,
            end=high,
            step=0.01,
            value=self._place(value),
            show_value=False,
            name=f"{key}-{name}-slider",
            **WIDE,
        )
        self.message = Div(visible=False, name=f"{key}-{name}-message", **WIDE)
        on(self.text, "value", self._typed)
        on(self.slider, "value", self._slid)
        self.layout = column(self.text, self.message, self.slider, sizing_mode="stretch_width", spacing=0)

    def put(self, value: float) -> None:
        """Show a number that was found elsewhere."""
        self.quiet, self.value = True, value
        self.text.value, self.slider.value = plain(value), self._place(value)
        self.quiet = False
        say(self.message, "")

    def lock(self, locked: bool) -> None:
        self.text.disabled = self.slider.disabled = locked

    def _place(self, value: float) -> float:
        return min(max(math.log10(value), math.log10(self.field.low)), math.log10(self.field.high))

    def _typed(self) -> None:
        if self.quiet:
            return
        try:
            value = model.read(self.name, self.text.value)
        except DomainError as error:
            say(self.message, f"{error}; shown is {plain(self.value)}")
            return
        self.put(value)
        self.moved(value)

    def _slid(self) -> None:
        if self.quiet:
            return
        value = float(f"{10**self.slider.value:.3g}")
        value = round(value) if self.field.whole else min(value, self.field.high)
        self.quiet, self.value = True, value
        self.text.value = plain(value)
        self.quiet = False
        say(self.message, "")
        self.moved(value)


class Card:
    """A run: its fields, or its text if it was given as it is, and what it costs."""

    def __init__(self, page, key: int, serial: int, name: str, what: Choice | Given):
        self.page, self.key, self.serial = page, key, serial
        self.what: Any = what
        self.found: dict[str, Bound] = {}
        self.name = TextInput(title="run", value=name, name=f"{serial}-name", **WIDE)
        on(self.name, "value", page.listed)
        self.remove = Button(label="Remove", width=80, name=f"{serial}-remove", align="end")
        self.remove.on_click(lambda: page.remove(self))
        self.cost = Div(text="<p>&nbsp;</p>", name=f"{serial}-cost", **WIDE)
        self.wrong = Div(visible=False, name=f"{serial}-wrong", **WIDE)
        colour = plot.COLOURS[key]
        parts = [row(self.name, self.remove, sizing_mode="stretch_width"), self.cost, self.wrong]
        parts += (
            self._fields(what)
            if isinstance(what, Choice)
            else [Div(text=f"<code>{html.escape(repr(what.run))}</code>", **WIDE)]
        )
        box = {"border-left": f"6px solid {colour}", "background": "#fff", "padding": "8px", "margin": "0 0 12px 0"}
        self.layout = column(*parts, sizing_mode="stretch_width", styles=box, spacing=2)

    def _fields(self, what: Choice) -> list:
        key = str(self.serial)
        self.sampler = Select(
            title="batches", options=list[Any](SAMPLERS), value=what.sampler, name=f"{key}-sampler", **WIDE
        )
        on(self.sampler, "value", self._sampled)
        self.numbers = {name: Number(key, name, getattr(what, name), partial(self._moved, name)) for name in FIELDS}
        self.aim = Toggle(label=f"Find the noise for a target {EPS}", name=f"{key}-aim", **WIDE)
        self.target = TextInput(title=f"target {EPS}", value="1", name=f"{key}-target", visible=False, **WIDE)
        self.missed = Div(visible=False, name=f"{key}-target-message", **WIDE)
        on(self.aim, "active", self._aimed)
        on(self.target, "value", partial(self.page.ask, self))
        self._visible()
        return [self.sampler, *(number.layout for number in self.numbers.values()), self.aim, self.target, self.missed]

    def _visible(self) -> None:
        for name, number in self.numbers.items():
            number.layout.visible = name in SAMPLERS[self.what.sampler].fields

    def _sampled(self) -> None:
        self.what = self.what._replace(sampler=self.sampler.value)
        self._visible()
        self.page.ask(self)

    def _moved(self, name: str, value: float) -> None:
        self.what = self.what._replace(**{name: value})
        self.page.ask(self)

    def _aimed(self) -> None:
        self.target.visible = self.aim.active
        self.numbers["noise"].lock(self.aim.active)
        say(self.missed, "")
        self.page.ask(self)

    def goal(self) -> float | None:
        """The eps to be met, if one is; DomainError for what is no eps."""
        if isinstance(self.what, Given) or not self.aim.active:
            return None
        goal = model.number("target", self.target.value)
        if not 0 < goal < math.inf:
            raise DomainError(f"the target must be a number > 0, got {goal!r}")
        return goal

    def take(self, name: str, piece) -> None:
        """Show a piece that is no curve."""
        if name == "choice":
            self.what = piece
            self.numbers["noise"].put(piece.noise)
        elif name in ("error", "missed"):
            self.cost.text, self.found = "", {}
            say(self.missed if name == "missed" else self.wrong, str(piece))
        else:
            self.found[name] = piece
            if name == "epoch" or isinstance(self.what, Given):  # the last of the numbers
                self._price()

    def _price(self) -> None:
        bound, more, lines = self.found.get("epsilon"), self.found.get("epoch"), []
        if bound is not None:
            lines.append(f"<p class='eps'>&epsilon; = {model.interval(bound)}</p>")
            lines.append(f"<p class='proof'>certified: at least {bound.lower:.17g}<br>at most {bound.upper:.17g}</p>")
            lines.append(f"<p class='proof'>at &delta; = {self.page.delta:g}, by route {bound.route}</p>")
        if bound is not None and more is not None and isinstance(self.what, Choice):
            steps = f"{self.what.epoch:,} step{'s' if self.what.epoch > 1 else ''}"
            gain = f"at most {more.upper - bound.lower:.4g} more"
            lines.append(f"<p class='proof'>one more epoch ({steps}): &epsilon; = {model.interval(more)}, {gain}</p>")
        self.cost.text = "".join(lines)
