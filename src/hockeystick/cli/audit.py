"""The verbs that look at a run or an answer: check, explain, verify."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import query
from ..arrays import ColumnsRun
from ..logs import COLUMNS, Log
from ..what.mechanism import Gaussian, PoissonSubsampled, Run
from . import grammar, tables
from .answers import _privacy
from .options import PROMISE, asked, number
from .tables import Answer

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 1e-6
"""A sampling rate below this part of one is looked at twice."""

QUIET_NOISE = 0.3
"""So is a noise multiplier below this, of which eps is seldom what anyone wants."""

more_check = (
    "\n\nA log has one line per step or phase, and these columns (CSV header) or keys (JSON lines); others that look\n"
    "like one of these have to be named with --columns, the rest is passed over. So are lines that begin with #.\n"
    + "\n".join(f"  {name:<13} {what}" for name, what in COLUMNS.items())
)


def arguments_check(parser) -> None:
    pass


def answer_check(args) -> Answer:
    found = grammar.sources(args)
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    warnings = []
    for name, source in found.items():
        columns = _columns(source.run)
        said = _warnings(source.log, columns)
        warnings += [{"run": name, "warning": text} for text in said]
        lines += [f"warning: {name}: {text}" for text in said]
        known = {"run": name, "kind": source.kind, "lines": source.log.lines if source.log else None}
        for quantity, low, mid, high in _figures(source.run.steps, columns):
            ends = {"lower": low, "estimate": mid, "upper": high, "route": "exact", "certified": True}
            rows.append({**known, "quantity": quantity, **ends})
    runs = {name: source.run for name, source in found.items()}
    title = f"{len(runs)} runs" if len(runs) > 1 else next(iter(runs))
    notes = [*lines, *PROMISE.splitlines()]
    return Answer(rows, title, runs, {"warnings": warnings}, notes, draw=lambda: _privacy(runs, args))


class _Columns(NamedTuple):
    """Of every distinct step the noise multiplier and the rate, NaN where it has none, and how often it ran."""

    sigma: NDArray[np.float64]
    q: NDArray[np.float64]
    n: NDArray[np.int64]


def _columns(run: Run) -> _Columns:
    if isinstance(run, ColumnsRun):
        sigma, q, count = run.merged()
        return _Columns(sigma / run.sensitivity, q, count)
    rows = [(_sigma(step), _q(step)) for step, _ in run.parts]
    sigma, q = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    return _Columns(sigma, q, np.array([k for _, k in run.parts], np.int64))


def _figures(steps: int, columns: _Columns):
    """(name, least, mean, largest) of what a run consists of."""
    yield "steps", steps, steps, steps
    yield "distinct_steps", columns.n.size, columns.n.size, columns.n.size
    for name, values in (("sigma/sensitivity", columns.sigma), ("q", columns.q)):
        seen = ~np.isnan(values)
        if seen.any():
            least, largest = float(values[seen].min()), float(values[seen].max())
            mean = math.fsum(values[seen] * (columns.n[seen] / columns.n[seen].sum(dtype=np.float64)))
            yield name, least, min(max(mean, least), largest), largest


def _sigma(step) -> float | None:
    base = step.base if isinstance(step, PoissonSubsampled) else step
    return base.sigma / base.sensitivity if isinstance(base, Gaussian) else None


def _q(step) -> float | None:
    return step.q if isinstance(step, PoissonSubsampled) else 1.0 if isinstance(step, Gaussian) else None


def _warnings(log: Log | None, columns: _Columns) -> list[str]:
    out = []
    if not columns.n.size:
        out.append("no steps: eps and delta are 0")
    if log:
        if log.comments:
            out.append(f"comments passed over: {log.comments} lines")
        if log.ignored:
            out.append(f"columns passed over: {', '.join(log.ignored)}")
        sampled = np.any(columns.q < 1)
        if sampled and "sampler" not in log.columns:
            out.append("no column sampler: batches are taken for Poisson samples (shuffled ones cost more)")
        if not sampled and "q" not in log.columns and "batch_size" not in log.columns:
            out.append("no column q: every step is taken to use every record")
        if "adjacency" not in log.columns:
            out.append("no column adjacency: noise is taken to be made for the relation that is asked")
        if "step" not in log.columns:
            out.append("no column step: lines that are missing cannot be noticed")
    if not np.isnan(columns.sigma).all():
        least, largest = np.nanmin(columns.sigma), np.nanmax(columns.sigma)
        if least < QUIET_NOISE:
            out.append(f"sigma as small as {least:g}: is it the noise multiplier (noise / clipping norm)?")
        if largest > 1e3 * least:
            out.append(f"sigma from {least:g} to {largest:g}: are all of them noise multipliers?")
    if np.any(columns.q < FEW):
        out.append(f"q as small as {np.nanmin(columns.q):g}: is it batch/data set?")
    return out


def arguments_explain(parser) -> None:
    _one_question(parser)


def _one_question(parser) -> None:
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument("--delta", type=number, help="about eps at this delta")
    question.add_argument("--eps", "--epsilon", type=number, help="about delta at this eps")


def answer_explain(args) -> Answer:
    from ..explanation import explain

    source = grammar.one(args)
    found = explain(source.run, eps=args.eps, delta=args.delta, **asked(args))
    name, at = ("delta", args.delta) if args.delta is not None else ("eps", args.eps)
    rows = [tables.row(found.bound, {"run": source.name, name: at}, tables.budget(found.bound))]
    runs = {source.name: source.run}
    return Answer(rows, str(found), runs, found.to_dict(), tables.NOTES, draw=lambda: _privacy(runs, args))


def arguments_verify(parser) -> None:
    _one_question(parser)
    parser.add_argument("--lower", type=number, help="lower end claimed; 0 if only --upper is given")
    parser.add_argument("--upper", type=number, help="upper end claimed; infinite if only --lower is given")
    parser.add_argument("--seconds", type=number, default=60.0, help="processor time allowed, default 60")


more_verify = """ Judged is the interval of --lower and
--upper, or the one that this package answers; the judge works in ball arithmetic and shares no numerical code with it
(extra `verify`). Exit status: 0 confirmed, 1 not decided, 3 refuted."""


def answer_verify(args) -> Answer:
    from ..judge import verify

    source = grammar.one(args)
    run, sides = source.run, {"adjacency": args.adjacency, "direction": args.direction}
    name, at, ask = ("delta", args.delta, query.epsilon) if args.delta is not None else ("eps", args.eps, query.delta)
    if args.lower is None and args.upper is None:
        claim = ask(run, at, **asked(args))
        ends, mid, route = (claim.lower, claim.upper), claim.estimate, claim.route
    else:
        ends = 0.0 if args.lower is None else args.lower, math.inf if args.upper is None else args.upper
        mid, route = math.nan, "claimed"
    found = verify(run, ends, eps=args.eps, delta=args.delta, seconds=args.seconds, **sides)
    claimed = {"lower": ends[0], "estimate": mid, "upper": ends[1], "route": route, "certified": found.confirmed}
    row = {"run": source.name, name: at, **claimed, "verdict": found.verdict}
    lines = [f"{found.verdict}: {found.why}", f"claimed: [{ends[0]!r}, {ends[1]!r}]"]
    lines += [f"delta({e.eps!r}), {e.direction}: [{e.lower!r}, {e.upper!r}]" for e in found.evidence]
    more = {"verdict": found.verdict, "why": found.why, "evidence": [e._asdict() for e in found.evidence]}
    runs = {source.name: run}
    status = {"confirmed": 0, "refuted": 3}.get(found.verdict, 1)
    return Answer([row], "\n".join(lines), runs, more, draw=lambda: _privacy(runs, args), status=status)
