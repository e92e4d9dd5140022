"""An answer as text.

JSON is one object with the keys

    format ("hockeystick.result"), version (2), package (the release), query (the verb), adjacency, direction,
    runs ([{name, steps, distinct_steps}]; absent where there are none), what the verb adds, rows

and one row per value asked: what was asked (run, delta, eps, fpr, steps ...), lower, estimate, upper, route, certified,
and what the verb adds (budget: {unit, terms}). CSV has the same columns but for nested ones, a table what fits on a
line. Floats are the shortest text that reads back to the same double; an infinite value is the string "inf" or "-inf".
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import __version__
from ..bound import Bound
from ..what.mechanism import Run
from . import options

FORMAT = "hockeystick.result"
VERSION = 2


@dataclass
class Answer:
    """Rows, and what goes around them. `many`: the verb prints CSV unless told otherwise. `draw`: makes the figure."""

    rows: list[dict[str, Any]]
    title: str = ""
    runs: dict[str, Run] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    draw: Callable[[], Any] | None = None
    many: bool = False
    status: int = 0

    def text(self, args) -> str:
        how = args.format or ("csv" if self.many else "table")
        return {"table": self._table, "csv": self._csv, "json": self._json}[how](args)

    def _json(self, args) -> str:
        head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "package": __version__, "query": args.verb}
        head |= {"adjacency": args.adjacency, "direction": args.direction}
        if self.runs:
            head["runs"] = [
                {"name": name, "steps": run.steps, "distinct_steps": run.distinct} for name, run in self.runs.items()
            ]
        return json.dumps({**head, **_plain(self.more), "rows": _plain(self.rows)}, allow_nan=False)

    def _csv(self, args) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = [name for name, value in (self.rows or [{}])[0].items() if not isinstance(value, dict | list)]
        if names:
            writer.writerow(names)
            writer.writerows([_cell(row[name]) for name in names] for row in self.rows)
        return text.getvalue().rstrip("\n")

    def _table(self, args) -> str:
        lines = [self.title] if self.title else []
        if self.rows:
            names = [name for name in self.rows[0] if name != "run" or len(self.runs) > 1]
            table = [names, *([_cell(row[name]) for name in names] for row in self.rows)]
            widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
            lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        return "\n".join(lines + ([] if args.quiet else self.notes))


def row(bound: Bound, at: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    """One row: what was asked, the answer, and what else there is to say."""
    ends = {"lower": float(bound.lower), "estimate": float(bound.estimate), "upper": float(bound.upper)}
    return {**at, **ends, "route": bound.route, "certified": bool(bound.certified), **(more or {})}


def rows(bound: Bound[Any], at: dict[str, Any], name: str, values) -> list[dict[str, Any]]:
    """A row for every entry of an array answer asked at `values` of `name`."""
    ends = zip(values, bound.lower, bound.estimate, bound.upper, strict=True)
    answered = {"route": bound.route, "certified": bool(bound.certified)}
    return [
        {**at, name: x, "lower": float(a), "estimate": float(b), "upper": float(c), **answered} for x, a, b, c in ends
    ]


def budget(bound: Bound) -> dict[str, Any]:
    """The named error terms, as a column."""
    return {"budget": {"unit": bound.budget.unit, "terms": dict(bound.budget.terms)}}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, str | bool | int) or value is None:
        return value
    value = float(value)
    return value if math.isfinite(value) else repr(value)


def _cell(value: Any) -> str:
    if isinstance(value, dict):  # a budget
        return " ".join(f"{name}={float(term):.2g}" for name, term in value["terms"].items()) + f" ({value['unit']})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str | int) else "" if value is None else repr(float(value))


def summary(query: str, runs: dict[str, Run], args) -> str:
    """The line above a table."""
    if len(runs) == 1:
        (run,) = runs.values()
        what = f"{run.steps} steps, {run.distinct} distinct"
    else:
        what = f"{len(runs)} runs"
    return f"{query}: {what}; {args.adjacency}, direction {args.direction}"


NOTES = [options.NOTE]
