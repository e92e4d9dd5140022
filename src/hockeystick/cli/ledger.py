"""The verb ledger: what an accountant keeps in a file, shown, added to, and what still fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hockeystick as hs

from .. import query
from ..accountant import Accountant
from ..bound import DomainError
from ..what.mechanism import Run, compose
from . import grammar, tables
from .answers import _privacy
from .options import Values, asked, values
from .tables import Answer

ACTIONS = ("show", "step", "left")

more_ledger = """

  show   what is recorded and what it costs: eps at the delta of the limit, or at --delta
  step   record RUN before it runs, on disk when the command ends. Exit status 1: it is not certified to fit the limit,
         and nothing was recorded: do not run it. --new makes the file, with the limit --eps and --delta if these are
         given
  left   how often RUN may still run within the limit, or within --eps and --delta

Several processes may use one ledger at once. A limit is about steps whose noise, rates and number do not depend on what
came out of earlier ones; where they do, ask a filter (hs.GDPFilter, hs.RDPFilter)."""


def arguments_ledger(parser) -> None:
    parser.add_argument("file", metavar="FILE", help="as hs.Accountant(FILE) keeps it")
    parser.add_argument("action", nargs="?", default="show", choices=ACTIONS, help="what to do; default show")
    parser.add_argument("--new", action="store_true", help="with step: make FILE, which must not exist")
    parser.add_argument(
        "--delta", type=values("delta"), help="show: one or several, A,B or a range; else one, with --eps"
    )
    parser.add_argument(
        "--eps", "--epsilon", type=values("eps"), help="with --delta: the limit of a new ledger, or of left"
    )


def answer_ledger(args) -> Answer:
    _require_sense(args)
    runs: dict[str, Run] = {}
    if args.new:
        args.adjacency = args.adjacency or "add_remove"
        runs = grammar.runs(args, listed=True)  # first: a RUN that cannot be read leaves no file
    with _opened(args) as accountant:
        args.adjacency = args.adjacency or accountant.adjacency
        if args.action == "show":
            return _shown(args, accountant)
        runs = runs or grammar.runs(args, listed=True)
        if args.action == "left":
            return _left(args, accountant, runs)
        accountant.step(compose(*runs.values()))
        return _shown(args, accountant)


def _require_sense(args) -> None:
    """DomainError for what does not go together."""
    if args.action == "show" and (args.runs or args.sigma is not None):
        raise DomainError("show takes no RUN: ledger FILE left RUN, or ledger FILE step RUN")
    if args.action == "show" and args.eps:
        raise DomainError(f"show answers eps, at --delta; delta: hockeystick delta {args.file} --eps ...")
    if args.new and args.action != "step":
        raise DomainError(f"--new goes with step, not with {args.action}")
    if args.new == Path(args.file).exists():
        what = "exists: leave --new out" if args.new else "does not exist: step --new makes it"
        raise DomainError(f"{args.file} {what}")
    if args.action == "step" and not args.new and (args.eps or args.delta or args.adjacency):
        raise DomainError("a ledger keeps its own limit and adjacency: leave out --eps, --delta and --adjacency")


def _opened(args) -> Accountant:
    if not args.new:
        return hs.Accountant(args.file)
    return hs.Accountant(args.file, limit=_target(args), adjacency=args.adjacency)


def _target(args) -> tuple[float, float] | None:
    """(eps, delta) as given, or None."""
    if (args.eps is None) != (args.delta is None):
        raise DomainError("--eps and --delta go together")
    return None if args.eps is None else (args.eps.one(), args.delta.one())


def _shown(args, accountant: Accountant) -> Answer:
    run, limit = accountant.run, accountant.limit
    rows = [_count("steps", run.steps), _count("distinct_steps", len(run.parts))]
    given = args.delta if args.action == "show" else None
    at: Values | None = given or (Values("delta", (limit[1],)) if limit else None)
    for delta in at.at("log") if at else ():
        bound = query.epsilon(run, delta, **asked(args))
        rows.append(tables.row(bound, {"quantity": "eps", "delta": delta}))
    notes = [f"{n} x {step!r}" for step, n in run.parts[:SHOWN]]
    notes += (
        [f"... {len(run.parts) - SHOWN} more distinct steps (--format json has all)"] if len(run.parts) > SHOWN else []
    )
    kept = {"limit": _listed(limit), "parts": accountant.state_dict()["parts"]}
    return Answer(
        rows, _title(args, accountant), {args.file: run}, kept, notes + tables.NOTES, lambda: _drawn(args, run)
    )


SHOWN = 20
"""Distinct steps that a table lists."""


def _left(args, accountant: Accountant, runs: dict[str, Run]) -> Answer:
    target = _target(args) or accountant.limit
    if target is None:
        raise DomainError(f"{args.file} has no limit: give --eps and --delta")
    eps, delta = target
    options: Any = {name: value for name, value in asked(args).items() if name != "rtol"}
    rows, before = [], accountant.run
    for name, run in runs.items():
        left = accountant.steps_left(run, eps=eps, delta=delta, **options)
        bound = query.delta(compose(before, (run, left)) if left else before, eps, **asked(args))
        rows.append(tables.row(bound, {"run": name, "left": left, "eps": eps, "limit": delta, "quantity": "delta"}))
    kept = {"limit": _listed(accountant.limit)}
    return Answer(rows, _title(args, accountant), runs, kept, tables.NOTES, lambda: _drawn(args, before))


def _title(args, accountant: Accountant) -> str:
    limit = accountant.limit
    said = f"limit eps={limit[0]!r} at delta={limit[1]!r}" if limit else "no limit"
    return f"{args.file}: {accountant.steps} steps; {said}, {accountant.adjacency}"


def _listed(limit: tuple[float, float] | None) -> dict[str, float] | None:
    return {"eps": limit[0], "delta": limit[1]} if limit else None


def _count(name: str, n: int) -> dict[str, Any]:
    return {"quantity": name, "delta": None, "lower": n, "estimate": n, "upper": n, "route": "exact", "certified": True}


def _drawn(args, run: Run):
    return _privacy({args.file: run}, args)
