"""Commands `curve`, `tradeoff`, `steps` and `batch`: many values at a time, as CSV or JSON, and pictures of them.

A RUN is SIGMA:Q:STEPS or the name of a training log. CSV has the columns

    curve      run, eps, lower, estimate, upper, route        delta at every eps; the routes of the whole curve
    tradeoff   run, fpr, fnr_lower, fnr_upper, tpr_lower, tpr_upper
    steps      run, steps, lower, estimate, upper             eps after so many steps
    batch      the columns of the input (sigma, q, steps and delta or eps), then lower, estimate, upper

`--json` prints one object with the keys format ("hockeystick.table"), version (1), package, query, adjacency, direction
and rows (one object a CSV row, with the same names).
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys

import numpy as np

from . import __version__, batch, plot, risk
from .bound import DomainError
from .mechanism import Run, compose, count, gaussian, poisson_subsampled
from .pair import ADJACENCIES, DIRECTIONS
from .serial import read_log, require_line_end

FORMAT = "hockeystick.table"
VERSION = 1
PICTURES = ("png", "pdf", "svg")

_RUN = "SIGMA:Q:STEPS (noise multiplier, sampling rate, number), or a log as in `hockeystick run`"
_COLUMNS = ("sigma", "q", "steps", "delta", "eps")


def add_commands(command) -> None:
    """Add the parsers; `command(name, summary, description)` makes one."""
    curve = command("curve", "privacy curve delta(eps) of one or several runs")
    curve.add_argument("--eps", type=float, nargs=2, metavar=("LO", "HI"), help="range; default 0 to eps(1e-12)")
    tradeoff = command("tradeoff", "trade-off curve of attacks on one or several runs")
    tradeoff.add_argument("--fpr", type=float, nargs=2, metavar=("LO", "HI"), help="range; default 1e-12 to 0.999")
    steps = command("steps", "eps(delta) while steps run, of one or several SIGMA:Q:STEPS")
    steps.add_argument("--delta", type=float, required=True)
    many = command("batch", "eps(delta) or delta(eps) of every line of a CSV file")
    for each, answer, points in ((curve, _curve, 200), (tradeoff, _tradeoff, 60), (steps, _steps, 200)):
        each.add_argument("runs", metavar="RUN", nargs="+", help=_RUN)
        each.add_argument("--points", type=_points, default=points, help=f"how many; default {points}")
        each.add_argument("--plot", type=_picture, metavar="FILE", help=f"also draw it: {', '.join(PICTURES)}")
        each.set_defaults(answer=answer)
        if each is not steps:
            add_allowances(each)
    many.add_argument("file", metavar="CSV", help=f'columns {", ".join(_COLUMNS[:4])} or eps; "-" for standard input')
    many.add_argument("--quiet", action="store_true", help="no progress bar")
    add_allowances(many, empty=False)
    many.set_defaults(answer=_batch)
    for each in (curve, tradeoff, steps, many):
        each.add_argument("--adjacency", default="add_remove", choices=ADJACENCIES)
        each.add_argument("--direction", default="both", choices=DIRECTIONS)
        each.add_argument("--threads", type=int, default=1, help="default 1; 0 is all cores allowed")
        each.add_argument("--json", action="store_true", help="print one JSON object instead of CSV")


def add_allowances(parser, empty: bool = True) -> None:
    """The flags of a command that reads a file of lines."""
    parser.add_argument("--allow-unterminated", action="store_true", help="take a last line that has no line end")
    if empty:
        parser.add_argument("--allow-empty", action="store_true", help="take a log without steps as a run without steps")


def read(stream, name: str, args) -> Run:
    """The run of a log, with the allowances of the command line."""
    return read_log(stream, name, allow_unterminated=args.allow_unterminated, allow_empty=args.allow_empty)


def _points(text: str) -> int:
    value = int(text)
    if not 2 <= value <= 10**6:
        raise argparse.ArgumentTypeError(f"expected 2 to 1000000, got {text}")
    return value


def _picture(text: str) -> str:
    if text.rpartition(".")[2].lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"expected a name that ends in {', '.join(PICTURES)}, got {text!r}")
    return text


def _triple(text: str) -> tuple[float, float, int] | None:
    fields = text.split(":")
    if len(fields) != 3:
        return None
    try:
        sigma, q, k = map(float, fields)
    except ValueError:
        return None
    return sigma, q, count("STEPS", int(k) if k.is_integer() else k)


def _runs(args) -> dict[str, Run]:
    runs = {}
    for text in args.runs:
        triple = _triple(text)
        if triple:
            sigma, q, k = triple
            runs[_label(triple)] = compose((poisson_subsampled(gaussian(sigma), q), k))
        else:
            with open(text, "rb") as stream:
                runs[text] = read(stream, text, args)
    return runs


def _label(triple: tuple[float, float, int]) -> str:
    sigma, q, k = triple
    return f"sigma={sigma:g} q={q:g} steps={k}"


def _curve(args) -> str:
    runs = _runs(args)
    eps = None
    if args.eps:
        lo, hi = args.eps
        if not lo < hi:
            raise DomainError(f"--eps needs LO < HI, got {lo:g} {hi:g}")
        eps = np.linspace(lo, hi, args.points)
    curves = plot.privacy_curves(runs, eps, args.points, **_options(args))
    rows = [
        {"run": name, "eps": x, "lower": low, "estimate": mid, "upper": high, "route": bound.route}
        for name, xs, bound in curves
        for x, low, mid, high in zip(xs, bound.lower, bound.estimate, bound.upper, strict=True)
    ]
    _draw(args, lambda curves: plot.draw_privacy(curves, 0.0 if args.eps else plot.TAIL), curves)
    return _table(args, "curve", rows)


def _tradeoff(args) -> str:
    lo, hi = args.fpr or (1e-12, 0.999)
    if not 0 < lo < hi < 1:
        raise DomainError(f"--fpr needs 0 < LO < HI < 1, got {lo:g} {hi:g}")
    # Even in log(fpr/(1 - fpr)): as fine near 1 as near 0.
    ends = [np.log(x) - np.log1p(-x) for x in (lo, hi)]
    fpr = 1 / (1 + np.exp(-np.linspace(*ends, args.points)))
    runs = _runs(args)
    curves = plot.tradeoff_curves(runs, fpr, **_options(args))
    rows = []
    for name, xs, tpr in curves:
        fnr = risk.tradeoff(runs[name], xs, **_options(args))
        for i, x in enumerate(xs):
            ends = {"fnr_lower": fnr.lower[i], "fnr_upper": fnr.upper[i], "tpr_lower": tpr.lower[i], "tpr_upper": tpr.upper[i]}
            rows.append({"run": name, "fpr": x, **ends})
    _draw(args, plot.draw_tradeoff, curves)
    return _table(args, "tradeoff", rows)


def _steps(args) -> str:
    triples = [_triple(text) for text in args.runs]
    for text, triple in zip(args.runs, triples, strict=True):
        if triple is None:
            raise DomainError(f"`steps` takes SIGMA:Q:STEPS, got {text!r}")
    curves = []
    for sigma, q, last in triples:
        k = np.unique((1 + (last - 1) * np.linspace(0, 1, min(args.points, last)) ** 2).round())  # eps grows like a root
        curves += plot.step_curves({f"sigma={sigma:g} q={q:g}": (sigma, q)}, k, args.delta, **_options(args))
    rows = [
        {"run": name, "steps": int(k), "lower": low, "estimate": mid, "upper": high}
        for name, ks, bound in curves
        for k, low, mid, high in zip(ks, bound.lower, bound.estimate, bound.upper, strict=True)
    ]
    _draw(args, lambda curves: plot.draw_steps(curves, args.delta), curves)
    return _table(args, "steps", rows)


def _batch(args) -> str:
    if args.file == "-":
        columns = _read_columns(sys.stdin, "<stdin>", args.allow_unterminated)
    else:
        with open(args.file, encoding="utf-8-sig", newline="") as stream:
            columns = _read_columns(stream, args.file, args.allow_unterminated)
    ask, at = (batch.epsilon_batch, "delta") if "delta" in columns else (batch.delta_batch, "eps")
    bar = None if args.quiet else _Bar()
    inputs = (columns["sigma"], columns.get("q", 1.0), columns.get("steps", 1.0), columns[at])
    bound = ask(*map(np.asarray, inputs), progress=bar, **_options(args))
    ends = zip(bound.lower, bound.estimate, bound.upper, strict=True)
    rows = [
        {**{name: column[i] for name, column in columns.items()}, "lower": low, "estimate": mid, "upper": high}
        for i, (low, mid, high) in enumerate(ends)
    ]
    return _table(args, "batch", rows)


def _options(args) -> dict:
    return {"adjacency": args.adjacency, "direction": args.direction, "n_threads": args.threads}


def _read_columns(stream, name: str, allow_unterminated: bool) -> dict[str, list[float]]:
    """The columns of a CSV file of numbers; DomainError with the line of whatever is wrong."""
    lines = stream.read().splitlines(keepends=True)
    reader = csv.reader(lines)
    header = [field.strip().lower() for field in next(reader, [])]
    asked = [field for field in ("delta", "eps") if field in header]
    if len(set(header)) != len(header) or not set(header) <= set(_COLUMNS) or "sigma" not in header or len(asked) != 1:
        raise DomainError(
            f"{name}:1: the header must name sigma, q, steps, and delta or eps, each once; got {','.join(header)!r}"
        )
    rows = []
    for fields in reader:
        if not fields:
            continue
        try:
            rows.append([float(field) for field in fields])
        except ValueError:
            raise DomainError(f"{name}:{reader.line_num}: not all fields are numbers: {','.join(fields)!r:.80}") from None
        if len(fields) != len(header):
            raise DomainError(f"{name}:{reader.line_num}: expected {len(header)} fields, got {len(fields)}")
    if lines and not allow_unterminated:
        try:
            require_line_end(lines[-1].endswith(("\n", "\r")))
        except DomainError as error:
            raise DomainError(f"{name}:{len(lines)}: {error}") from None
    return dict(zip(header, map(list, zip(*rows, strict=True)) if rows else [[] for _ in header], strict=True))


class _Bar:
    """A progress bar on stderr, if that is a terminal."""

    def __init__(self):
        self.shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        if self.shown:
            filled = 40 * done // total
            end = "\n" if done == total else ""
            print(f"\r[{'#' * filled}{'.' * (40 - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def _draw(args, draw, curves) -> None:
    if args.plot:
        draw([curve._replace(name=_in_print(curve.name)) for curve in curves]).savefig(args.plot)


def _in_print(name: str) -> str:
    """A label of `_label` as a formula; the name of a log as it is."""
    for text, symbol in (("sigma=", r"$\sigma$ = "), (" q=", ", $q$ = "), (" steps=", ", $k$ = ")):
        name = name.replace(text, symbol) if name.startswith(("sigma=", "$")) else name
    return name


def _table(args, query: str, rows: list[dict]) -> str:
    plain = [{name: _cell(value, args.json) for name, value in row.items()} for row in rows]
    if args.json:
        head = {"format": FORMAT, "version": VERSION, "package": __version__, "query": query}
        more = {"adjacency": args.adjacency, "direction": args.direction, "rows": plain}
        return json.dumps({**head, **more}, allow_nan=False)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if plain:
        writer.writerow(plain[0])
        writer.writerows(row.values() for row in plain)
    return text.getvalue().rstrip("\n")


def _cell(value, as_json: bool):
    if isinstance(value, str | int):
        return value
    value = float(value)
    return value if as_json and np.isfinite(value) else repr(value)
