"""The page of one session: a card a run, four figures, and what can be taken along.

A field that is moved makes a new `Choice`; the desk computes its pieces in a thread of its own, and `_show` draws what
has been found. What is wrong with a field stands beside that field."""

from __future__ import annotations

import base64
from functools import partial
from importlib.resources import files
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.widgets import Button, Div, RadioButtonGroup, Select, TextAreaInput, TextInput

from ..bound import DomainError
from ..plot import Series
from ..what.pair import ADJACENCIES
from . import figures, model
from .cards import CODE, STYLE, WIDE, Card, on, say
from .desk import Desk
from .model import Choice, Given

MOST = 6
"""Runs on a page."""

LEGEND = "span { margin-right: 1.6rem; white-space: nowrap; } svg { vertical-align: middle; }"
DOWNLOAD = """
const [name, type, body] = [parcel.data.name[0], parcel.data.type[0], parcel.data.body[0]];
const bytes = Uint8Array.from(atob(body), c => c.charCodeAt(0));
const link = document.createElement("a");
link.href = URL.createObjectURL(new Blob([bytes], {type}));
link.download = name;
link.click();
setTimeout(() => URL.revokeObjectURL(link.href), 10000);
"""
COPY = """
const done = () => { button.label = "Copied"; setTimeout(() => { button.label = "Copy"; }, 1500); };
navigator.clipboard.writeText(text.value).then(done, () => { button.label = "Select the text and copy it"; });
"""


class Page:
    """Made for every session; `runs`: from names to what is drawn first."""

    def __init__(self, document, runs: dict[str, Choice | Given], delta: float, adjacency: str):
        self.document, self.delta = document, delta
        self.cards: list[Card] = []
        self.series: dict[tuple[int, str], Series] = {}
        self.desk, self.waiting, self.serial = Desk(self._deliver), None, 0
        self.adjacency = Select(
            title="neighbours differ by", options=list[Any](ADJACENCIES), value=adjacency, name="adjacency", **WIDE
        )
        on(self.adjacency, "value", self.ask_all)
        self.level = TextInput(title=figures.DELTA, value=f"{delta:g}", name="delta", **WIDE)
        on(self.level, "value", self._levelled)
        self.bad_level = Div(visible=False, name="delta-message", **WIDE)
        self.add = Button(label="Add a run to compare", name="add", **WIDE)
        self.add.on_click(self._add)
        self.figures = {name: figures.Drawn(name) for name in figures.PLANS}
        self.legend = Div(name="legend", sizing_mode="stretch_width", stylesheets=[STYLE, LEGEND])
        self.lines: dict[int, figures.Lines] = {}
        self.list = column(sizing_mode="stretch_width", name="cards")
        top = row(self.level, self.adjacency, sizing_mode="stretch_width")
        runs_root = column(top, self.bad_level, self.list, self.add, sizing_mode="stretch_width", name="runs")
        with document.models.freeze():  # its models are counted once, not after every change
            for root in (runs_root, self.legend, *(drawn.plot for drawn in self.figures.values()), self._take()):
                document.add_root(root)
            for name, what in runs.items():
                self._put(name, what)
            self.listed()
        document.title = "hockeystick explorer"
        document.template = files(__package__).joinpath("page.html").read_text("utf-8")
        document.on_session_destroyed(lambda _: self.desk.close())

    @property
    def options(self) -> dict:
        return {"adjacency": self.adjacency.value}

    def runs(self) -> dict[str, Choice | Given]:
        """From names, each of which stands once, to what they say."""
        found = {}
        for card in self.cards:
            name = card.name.value or "run"
            found[name if name not in found else f"{name} ({card.key + 1})"] = card.what
        return found

    def ask(self, card: Card) -> None:
        """Draw a card again."""
        say(card.wrong, "")
        try:
            goal = card.goal()
        except DomainError as error:
            say(card.missed, str(error))
            return
        if isinstance(card.what, Choice):
            say(card.missed, "")
        self.desk.ask(card.key, self._pieces(card.what, goal, self.delta, self.options))
        self._text_soon()

    def ask_all(self) -> None:
        for card in self.cards:
            self.ask(card)

    def remove(self, card: Card) -> None:
        self.desk.drop(card.key)
        self.cards.remove(card)
        self._clear(card)
        self.listed()

    @staticmethod
    def _pieces(what, goal, delta: float, options: dict):
        if goal is not None:
            try:
                what = model.noise_for(what, goal, delta, **options)
            except (ValueError, ArithmeticError) as error:
                yield "missed", error
                return
            yield "choice", what
        yield from model.pieces(what, delta, **options)

    def _add(self) -> None:
        last = self.cards[-1].what if self.cards else Choice()
        taken = {card.name.value for card in self.cards}
        name = next(letter for letter in "ABCDEFGHIJKL" if letter not in taken)
        with self.document.models.freeze():
            self._put(name, last if isinstance(last, Choice) else Choice())
            self.listed()

    def _put(self, name: str, what) -> None:
        key = next(i for i in range(MOST) if i not in {card.key for card in self.cards})
        if key not in self.lines:
            self.lines[key] = figures.Lines(self.figures, key)
        card = Card(self, key, self.serial, name, what)
        self.serial += 1
        self.cards.append(card)
        self.ask(card)

    def listed(self) -> None:
        """The list of cards, the legend and the text after a change of either."""
        self.list.children = [card.layout for card in self.cards]
        self.add.disabled = len(self.cards) == MOST
        for card in self.cards:
            card.remove.disabled = len(self.cards) == 1
        self.legend.text = figures.legend({card.key: card.name.value for card in self.cards})
        self.legend.visible = len(self.cards) > 1
        self._text()

    def _levelled(self) -> None:
        try:
            delta = model.number(figures.DELTA, self.level.value)
            if not 0 < delta < 1:
                raise DomainError(f"{figures.DELTA} must be in (0, 1), got {delta!r}")
        except DomainError as error:
            say(self.bad_level, str(error))
            return
        say(self.bad_level, "")
        self.delta = delta
        self.ask_all()

    # From the desk to the figures

    def _deliver(self, found: dict) -> None:
        self.document.add_next_tick_callback(partial(self._show, found))

    def _show(self, found: dict) -> None:
        try:
            for card in self.cards:
                self._show_card(card, {name: piece for (key, name), piece in found.items() if key == card.key})
        finally:
            self.desk.delivered()
        self._text_soon()

    def _show_card(self, card: Card, found: dict) -> None:
        if "choice" in found:
            card.take("choice", found.pop("choice"))  # where the dots are
        curves = {name: piece for name, piece in found.items() if name in self.figures}
        self.series |= {(card.key, name): piece for name, piece in curves.items()}
        if "epsilon" in found:
            self.lines[card.key].mark(card.what, found["epsilon"], self.delta)
        if curves:  # curves go first: the browser draws them while the rest is computed
            self.lines[card.key].draw(curves)
        for name in curves:
            self._fit(name)
        for name, piece in found.items():
            if name not in curves:
                card.take(name, piece)
        if "error" in found or "missed" in found:
            self._clear(card)

    def _clear(self, card: Card) -> None:
        """Nothing is known of the run as it is now."""
        self.lines[card.key].clear()
        self.series = {at: series for at, series in self.series.items() if at[0] != card.key}
        for name in self.figures:
            self._fit(name)

    def _fit(self, name: str) -> None:
        self.figures[name].fit([series for (_, figure), series in self.series.items() if figure == name])

    # What can be taken along

    def _take(self):
        self.kind = RadioButtonGroup(labels=["Python", "Command", "JSON"], active=0, name="kind", **WIDE)
        on(self.kind, "active", self._text)
        self.text = TextAreaInput(rows=9, cols=80, name="text", max_length=10**7, **CODE)
        copy = Button(label="Copy", name="copy", width=120)
        copy.js_on_click(CustomJS(args={"text": self.text, "button": copy}, code=COPY))
        titles = [(name, plan.title) for name, plan in figures.PLANS.items()]
        self.picture = Select(options=titles, value="privacy", name="picture", title="picture", **WIDE)
        self.parcel = ColumnDataSource({"name": [], "type": [], "body": []}, name="parcel")
        self.parcel.js_on_change("data", CustomJS(args={"parcel": self.parcel}, code=DOWNLOAD))
        buttons = []
        for kind in ("png", "svg"):
            button = Button(label=kind.upper(), name=kind, width=80, align="end")
            button.on_click(partial(self._send, kind))
            buttons.append(button)
        # a page has what it refers to
        self.no_picture = Div(visible=False, name="picture-message", tags=[self.parcel], **WIDE)
        pictures = row(self.picture, *buttons, sizing_mode="stretch_width")
        return column(self.kind, self.text, copy, pictures, self.no_picture, sizing_mode="stretch_width", name="take")

    def _text_soon(self) -> None:
        """The text when the fields have come to rest."""
        if self.waiting:
            self.document.remove_timeout_callback(self.waiting)
        self.waiting = self.document.add_timeout_callback(self._text, 150)

    def _text(self) -> None:
        """What the buttons say of the runs as they are; certified numbers of JSON are asked for when it is shown."""
        self.waiting = None
        write = (model.as_python, model.as_command, model.as_json)[self.kind.active]
        try:
            self.text.value = write(self.runs(), self.delta, self.options)
        except (DomainError, ArithmeticError) as error:
            self.text.value = str(error)

    def _send(self, kind: str) -> None:
        name = self.picture.value
        try:
            shown = [card for card in self.cards if (card.key, name) in self.series]
            curves = [self.series[card.key, name]._replace(name=card.name.value) for card in shown]
            body = figures.picture(name, curves, self.delta, kind)
        except (ImportError, ValueError) as error:
            say(self.no_picture, str(error))
            return
        say(self.no_picture, "")
        form = "image/svg+xml" if kind == "svg" else "image/png"
        self.parcel.data = {
            "name": [f"hockeystick-{name}.{kind}"],
            "type": [form],
            "body": [base64.b64encode(body).decode()],
        }
