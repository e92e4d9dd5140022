"""The verb batch: one query a line of a CSV file."""

from __future__ import annotations

import csv
import re
import sys
from typing import Any, TextIO

import numpy as np

from .. import batch, query
from ..bound import DomainError
from ..logs import require_line_end
from ..mechanism import compose, gaussian, poisson_subsampled
from . import options, tables
from .options import Bar, narrow
from .tables import Answer

COLUMNS = ("sigma", "q", "steps", "delta", "eps")

more_batch = """

The first line names the columns: sigma, q (default 1), steps (default 1), and delta or eps; every line is one query of
its own about that many Poisson-subsampled Gaussian steps."""


def arguments_batch(parser) -> None:
    parser.add_argument("file", metavar="CSV", help=f'columns {", ".join(COLUMNS[:4])} or eps; "-" for standard input')
    options.add_allowances(parser)


def answer_batch(args) -> Answer:
    name = "<stdin>" if args.file == "-" else args.file
    if args.file == "-":
        columns, lines = _read(sys.stdin, name, args.allow_unterminated)
    else:
        with open(args.file, encoding="utf-8-sig", newline="") as stream:
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


def _read(stream: TextIO, name: str, allow_unterminated: bool) -> tuple[dict[str, list[float]], list[int]]:
    """The columns of a CSV file of numbers, and the line of every entry; DomainError with the line of whatever is
    wrong."""
    lines = stream.read().splitlines(keepends=True)
    reader = csv.reader(lines)
    header = [field.strip().lower() for field in next(reader, [])]
    asked = [field for field in ("delta", "eps") if field in header]
    if len(set(header)) != len(header) or not set(header) <= set(COLUMNS) or "sigma" not in header or len(asked) != 1:
        raise DomainError(
            f"{name}:1: the header must name sigma, q, steps, and delta or eps, each once; got {','.join(header)!r}"
        )
    rows, numbers = [], []
    for fields in reader:
        if not fields:
            continue
        try:
            rows.append([float(field) for field in fields])
        except ValueError:
            raise DomainError(
                f"{name}:{reader.line_num}: not all fields are numbers: {','.join(fields)!r:.80}"
            ) from None
        if len(fields) != len(header):
            raise DomainError(f"{name}:{reader.line_num}: expected {len(header)} fields, got {len(fields)}")
        numbers.append(reader.line_num)
    if lines and not allow_unterminated:
        try:
            require_line_end(lines[-1].endswith(("\n", "\r")))
        except DomainError as error:
            raise DomainError(f"{name}:{len(lines)}: {error}") from None
    columns = map(list, zip(*rows, strict=True)) if rows else [[] for _ in header]
    return dict(zip(header, columns, strict=True)), numbers


def _draw(rows: list[dict[str, Any]]):
    from .. import plot

    ends = [np.array([row[end] for row in rows]) for end in ("lower", "estimate", "upper")]
    return plot.draw_answers(*ends)
