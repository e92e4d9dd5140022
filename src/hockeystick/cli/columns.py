"""The verb batch: one query a line of a CSV file."""

from __future__ import annotations

import re
import sys
from typing import Any, BinaryIO

import numpy as np

from .. import batch, query
from ..bound import DomainError
from ..textrows import Columns, raw_lines, text_of
from ..what.mechanism import compose, gaussian, poisson_subsampled, real
from . import options, tables
from .options import Bar, narrow
from .tables import Answer

COLUMNS = ("sigma", "q", "steps", "delta", "eps")
NEEDED = "the header must name sigma, q, steps, and delta or eps, each once, and nothing else"

more_batch = """

The first line names the columns: sigma, q (default 1), steps (default 1), and delta or eps; every line is one query of
its own about that many Poisson-subsampled Gaussian steps."""


def arguments_batch(parser) -> None:
    parser.add_argument("file", metavar="CSV", help=f'columns {", ".join(COLUMNS[:4])} or eps; "-" for standard input')
    options.add_allowances(parser)


def answer_batch(args) -> Answer:
    name = "<stdin>" if args.file == "-" else args.file
    if args.file == "-":
        columns, lines = _read(sys.stdin.buffer, name, args.allow_unterminated)
    else:
        with open(args.file, "rb") as stream:
            columns, lines = _read(stream, name, args.allow_unterminated)
    try:
        rows = _ask(columns, args)
    except DomainError as error:
        at = re.search(r" at entry (\d+)$", str(error))
        if at is None:
            raise
        raise DomainError(f"{name}:{lines[int(at[1])]}: {str(error)[: at.start()]}") from None
    return Answer(
        rows, f"{len(rows)} queries; {args.adjacency}, direction {args.direction}", draw=lambda: _draw(rows), many=True
    )


def _ask(columns: dict[str, list[float]], args) -> list[dict[str, Any]]:
    at = "delta" if "delta" in columns else "eps"
    n = len(columns["sigma"])
    sigma, q, steps = (np.asarray(columns.get(name, [1.0] * n)) for name in ("sigma", "q", "steps"))
    given = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for row in given:
        if row.get("steps", 0.5) % 1 == 0:
            row["steps"] = int(row["steps"])
    rows = []
    if args.route == "auto":
        ask = batch.epsilon_batch if at == "delta" else batch.delta_batch
        sides = {"adjacency": args.adjacency, "direction": args.direction, "n_threads": args.threads}
        rtol = {} if args.rtol is None else {"rtol": args.rtol}
        bound: Any = narrow(ask(sigma, q, steps, np.asarray(columns[at]), progress=Bar(args), **sides, **rtol), args)
        ends = zip(given, bound.lower, bound.estimate, bound.upper, strict=True)
        for row, low, mid, high in ends:
            rows.append({**row, "lower": low, "estimate": mid, "upper": high, "route": bound.route, "certified": True})
        return rows
    single, show = query.epsilon if at == "delta" else query.delta, Bar(args)
    for i, row in enumerate(given):
        try:
            k = row.get("steps", 1)
            run = compose((poisson_subsampled(gaussian(row["sigma"]), row.get("q", 1.0)), k))
            rows.append(tables.row(single(run, row[at], **options.asked(args)), row))
        except DomainError as error:
            raise DomainError(f"{error} at entry {i}") from None
        show(i + 1, n)
    return rows


def _read(stream: BinaryIO, name: str, allow_unterminated: bool) -> tuple[dict[str, list[float]], list[int]]:
    """The columns of a table of numbers, and the line of every entry; DomainError with the line of whatever is
    wrong."""
    reader = Columns(COLUMNS, "sigma")
    rows: list[list[float]] = []
    numbers: list[int] = []
    number = 0
    try:
        for raw in raw_lines(stream):
            number += 1
            text = text_of(raw, allow_unterminated)
            row = reader.row(text) if text else None
            if reader.ignored or len({"delta", "eps"} & set(reader.seen)) != bool(reader.seen):
                raise DomainError(f"{NEEDED}; got {text!r:.80}")
            if row is not None:
                if len(row) != len(reader.seen) or (rows and len(row) != len(rows[0])):
                    raise DomainError(f"every line must say {', '.join(reader.seen)}; got {text!r:.80}")
                rows.append([real(column, row[column], "") for column in reader.seen])
                numbers.append(number)
    except DomainError as error:
        raise DomainError(f"{name}:{number}: {error}") from None
    if not reader.seen:
        raise DomainError(f"{name}:1: {NEEDED}; got nothing")
    columns = map(list, zip(*rows, strict=True)) if rows else [[] for _ in reader.seen]
    return dict(zip(reader.seen, columns, strict=True)), numbers


def _draw(rows: list[dict[str, Any]]):
    from .. import plot

    ends = [np.array([row[end] for row in rows]) for end in ("lower", "estimate", "upper")]
    return plot.draw_answers(*ends)
