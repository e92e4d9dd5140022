"""RUN: what ran, as every verb reads it.

RUN := [NAME=] (FILE | - | EXPR | SIGMA:Q:STEPS)      EXPR: see expression.py
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

import hockeystick as hs

from ..bound import DomainError
from ..logs import Log, scan
from ..state import ACCOUNTANT, from_dict
from ..store import state_kind
from ..tally import Order, order_of
from ..textrows import raw_lines
from ..what.mechanism import (
    Gaussian,
    Mechanism,
    PoissonSubsampled,
    Run,
    as_run,
    compose,
    count,
    gaussian,
    poisson_subsampled,
    real,
)
from . import expression
from .expression import Sought
from .options import Bar

HELP = f"""RUN is what ran; NAME=RUN names it in the answer:
  '1000*gaussian(1.0)@0.01'
           1000 steps of DP-SGD with noise multiplier 1.0, each on a Poisson sample: every record is drawn with
           probability 0.01, on its own (batch size / data set size)
  '1000*gaussian(1.0)@0.01 + 5*laplace(2)'
           COUNT*MECHANISM(...)@RATE, joined by +; without @RATE every record is used. Noise is a multiple of the
           sensitivity (the clipping norm), or in its unit with sensitivity=
  1.0:0.01:1000
           the first one again, as SIGMA:Q:STEPS
  FILE     a training log: CSV (fields separated by , ; or tab) or JSON lines, with columns sigma (noise multiplier),
           q (rate), steps; `hockeystick check --help` lists all. Or a run or accountant in JSON (hs.to_json,
           Accountant.state_dict), or a ledger (hs.Accountant(FILE))
  -        a log or JSON from standard input

mechanisms, which are those of the Python package:
{expression.mechanisms()}
  sigma, scale: of the noise; eps0: the step is eps0-DP; n: size of the data set; max, batch: most records in a batch;
  num, den, eps, delta, shifts ...: lists, as in from_pmf([0.6, 0.4], [0.4, 0.6])
  batches other than by @RATE: truncated (a Poisson sample cut to max records), without_replacement (a fixed size),
  cyclic (a whole run of a banded matrix mechanism, groups of records in turn), allocation (one epoch of so many steps,
  every record in one of them), balls_and_bins (epochs of bins steps, every record in the same one each time)
  select: the best of a random number of runs, as in tuning; shuffled: reports of n users; from_curve: any mechanism
  that is (eps, delta)-DP so; public_mixture: a step of parts, drawn in public"""


class Source(NamedTuple):
    """A RUN: its name, what ran, and the log that says so."""

    name: str
    run: Run
    kind: str
    log: Log | None = None

    @property
    def order(self) -> Order:
        """In which order; where no log says this, that of the parts."""
        return self.log.order if self.log and self.log.order else order_of(self.run)


def sources(args, ordered: bool = False, listed: bool = True) -> dict[str, Source]:
    """Every RUN of the command line, by name; `ordered`, `listed`: see `logs.scan`."""
    given = [] if args.runs else [_flags(args)]
    if args.runs and (args.sigma is not None or args.q is not None or args.steps is not None):
        raise DomainError("give either RUN or --sigma, --q and --steps, not both")
    found: dict[str, Source] = {}
    for text in args.runs:
        label, rest = _label(text)
        source = _source(rest, args, ordered, listed)
        given.append(source._replace(name=label or source.name))
    for source in given:
        name, again = source.name, 2
        while name in found:
            name, again = f"{source.name} #{again}", again + 1
        found[name] = source._replace(name=name)
    return found


def runs(args, listed: bool = False) -> dict[str, Run]:
    """The same without what is known besides; queries by `auto` need no list of millions of distinct steps."""
    return {name: source.run for name, source in sources(args, listed=listed or args.route != "auto").items()}


def one(args, ordered: bool = False) -> Source:
    """The only RUN of the command line."""
    found = sources(args, ordered)
    if len(found) != 1:
        raise DomainError(f"one RUN is wanted here, got {len(found)}: {', '.join(found)}")
    return next(iter(found.values()))


def sought(args) -> Sought:
    """The RUN with a `?`, or what --solve names of a RUN of equal steps, or of --sigma, --q, --steps."""
    if args.runs:
        if len(args.runs) != 1:
            raise DomainError(f"one RUN with a ? is wanted here, got {len(args.runs)}")
        label, text = _label(args.runs[0])
        triple = _triple(text)
        if "?" not in text and args.solve is not None:
            found = _solved(one(args), args.solve)
        else:
            found = expression.sought(text if triple is None else "{2}*gaussian({0})@{1}".format(*triple))
            found = found._replace(name=label or found.name)
    else:
        given = {"sigma": args.sigma, "q": args.q, "steps": args.steps}
        left = [name for name, value in given.items() if value is None]
        solve = args.solve or (left[0] if len(left) == 1 else None)
        if solve is None:
            raise DomainError(
                "name what to look for: --solve sigma, q or steps, or a ? in RUN as in '1000*gaussian(?)@0.01'"
            )
        if given[solve] is not None:
            raise DomainError(f"--{solve} is given and to be solved for: leave one of the two out")
        for name in ("sigma", "steps"):
            if given[name] is None and name != solve:
                raise DomainError(f"--{name} is needed to solve for {solve}")
        given["q"] = 1.0 if args.q is None and solve != "q" else args.q

        def make(x) -> Run:
            return _equal(**{**given, solve: x})

        name = " ".join(f"{n}={'?' if n == solve else v}" for n, v in given.items())
        found = Sought(name, make, solve, expression.OVER[solve])
    if args.solve not in (None, found.solve):
        raise DomainError(f"--solve {args.solve}, but the ? stands for {found.solve}")
    return found


def _solved(source: Source, solve: str) -> Sought:
    """A run of equal steps whose noise multiplier, rate or number is open."""
    if len(source.run.parts) != 1:
        raise DomainError(f"--solve needs a RUN of equal steps; {source.name} has {len(source.run.parts)} distinct")
    ((step, steps),) = source.run.parts
    base = step.base if isinstance(step, PoissonSubsampled) else step
    if solve != "steps" and not isinstance(base, Gaussian):
        raise DomainError(f"--solve {solve} needs steps of gaussian(SIGMA)@RATE, got {step!r}; write a ? into RUN")

    def make(x) -> Run:
        if solve == "steps":
            return step * x
        noise = base
        if solve == "sigma" and isinstance(base, Gaussian):
            noise = replace(base, sigma=gaussian(x).sigma * base.sensitivity)
        return poisson_subsampled(noise, x if solve == "q" else getattr(step, "q", 1.0)) * steps

    return Sought(f"{source.name} with {solve}=?", make, solve, expression.OVER[solve])


def _flags(args) -> Source:
    if args.sigma is None or args.steps is None:
        raise DomainError("name what ran: RUN (a file, an expression, SIGMA:Q:STEPS), or --sigma, --q and --steps")
    return _plain("", args.sigma, 1.0 if args.q is None else args.q, args.steps)


def _plain(_: str, sigma, q, steps) -> Source:
    run = _equal(sigma, q, steps)
    return Source(f"sigma={sigma:g} q={q:g} steps={steps}", run, "expression")


def _equal(sigma, q, steps) -> Run:
    return compose((poisson_subsampled(gaussian(sigma), q), steps))


def _label(text: str) -> tuple[str, str]:
    """(NAME, RUN) of NAME=RUN; NAME is empty where there is none."""
    found = re.match(r"([^=()*+@\[\]]+)=(.+)", text, re.DOTALL)
    return (found[1].strip(), found[2]) if found and not os.path.exists(text) else ("", text)


def _source(text: str, args, ordered: bool, listed: bool) -> Source:
    if text == "-":
        return _file(sys.stdin.buffer, "<stdin>", args, ordered, listed)
    triple = None if os.path.exists(text) else _triple(text)
    if triple:
        sigma, q, steps = (
            real(name, _float(part), "") for name, part in zip(("SIGMA", "Q", "STEPS"), triple, strict=True)
        )
        steps = int(steps) if steps.is_integer() else steps
        return _plain(text, sigma, q, count("STEPS", steps))  # type: ignore[arg-type]
    if "(" in text and not os.path.exists(text):
        run = expression.parse(text)
        return Source(text, run, "expression")
    if os.path.isfile(text) and (kind := state_kind(Path(text))) is not None:
        return _kept(text, kind, args.adjacency)
    with open(text, "rb") as stream:
        return _file(stream, text, args, ordered, listed)


def _triple(text: str) -> list[str] | None:
    parts = text.split(":")
    return parts if len(parts) == 3 and all(part == "?" or _float(part) is not None for part in parts) else None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# Files


def _kept(path: str, kind: str, adjacency: str | None) -> Source:
    """The run in the ledger of an accountant, which is asked about its own adjacency."""
    if kind != "accountant":
        raise DomainError(
            f"{path}: a file of a durable filter, which keeps charges, not steps; a filter itself says what is left"
        )
    with hs.Accountant(path) as accountant:
        run = accountant.run
        if adjacency not in (None, accountant.adjacency):
            raise DomainError(f"{path} is kept for {accountant.adjacency}, asked about {adjacency}: give --adjacency")
    return Source(path, run, "ledger")


def _file(stream: BinaryIO, name: str, args, ordered: bool, listed: bool) -> Source:
    """A log, or a state if the first line or the whole file is one JSON object with "format" or "kind"."""
    head = []
    for raw in raw_lines(stream):
        head.append(raw)
        if raw.strip():
            break
    first = head[-1] if head else b""
    if first.startswith(b"SQLite format 3\0"):
        raise DomainError(f"{name}: a database, not a log; a ledger of hs.Accountant is read by its path")
    if first.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        whole = first if _object(first) else first + stream.read()
        state = _object(whole)
        if state and ("format" in state or "kind" in state):
            if stream.read(1).strip():
                raise DomainError(f"{name}:2: one state per file, more follows")
            return _state(state, name)
        head[-1:] = raw_lines(io.BytesIO(whole))
    log = scan(
        stream,
        name,
        _columns(args.columns),
        args.adjacency,
        head=head,
        progress=Bar(args, f" of {name}"),
        allow_unterminated=args.allow_unterminated,
        allow_empty=args.allow_empty,
        ordered=ordered,
        listed=listed,
    )
    return Source(name, log.run, "log", log)


def _object(text: bytes) -> dict | None:
    try:
        state = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return state if isinstance(state, dict) else None


def _state(state: dict, name: str) -> Source:
    try:
        what = from_dict(state)
        if not isinstance(what, Run | Mechanism):
            raise DomainError("a bound says what a run cost, not what ran: give the run")
    except DomainError as error:
        raise DomainError(f"{name}: {error}") from None
    return Source(name, as_run(what), "accountant" if state.get("format") == ACCOUNTANT else "run")


def _columns(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [item.partition("=") for item in text.split(",")]
    for name, equals, _ in pairs:
        if not equals or not name.strip():
            raise DomainError(
                f"--columns takes NAME=COLUMN,..., as in sigma=noise_multiplier,q=sample_rate; got {text!r}"
            )
    return {name.strip(): column.strip() for name, _, column in pairs}
