"""RUN: what ran, as every verb reads it.

    RUN    := [NAME=] (FILE | - | EXPR | SIGMA:Q:STEPS)
    EXPR   := TERM + TERM ...            TERM := [COUNT *] STEP          STEP := MECH [@ RATE]
    MECH   := NAME(number, name=number, ...)

An expression is parsed as Python and its tree walked over the few nodes above; nothing is evaluated. `STEPS` is the one
table of mechanisms. One `?` may stand for a count, a rate or the first argument of a mechanism: what `calibrate` looks
for."""

from __future__ import annotations

import ast
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import hockeystick as hs

from ..bound import DomainError
from ..logs import Log, scan
from ..mechanism import K_MAX, Gaussian, Mechanism, Run, as_run, compose, count, gaussian, poisson_subsampled, real
from ..serial import brief
from ..state import from_dict
from ..store import state_kind
from ..textrows import raw_lines

HELP = """RUN is what ran, optionally NAME=RUN:
  FILE             a log of steps (CSV with a header, or JSON lines: sigma, q, steps; see `hockeystick check --help`),
                   a run or accountant as hs.to_json and Accountant.state_dict write them, or a ledger
                   (hs.Accountant(FILE))
  -                the same from standard input
  '1000*gaussian(1.0)@0.01 + 5*laplace(2)'
                   COUNT*MECHANISM(noise ...)@RATE, joined by +; @RATE: every batch is a Poisson sample of that rate
  SIGMA:Q:STEPS    STEPS*gaussian(SIGMA)@Q
mechanisms: gaussian(sigma), laplace(scale), discrete_gaussian(sigma), discrete_laplace(scale) (each with sensitivity=),
  truncated(sigma, q=, n=, max=), without_replacement(sigma, n=, batch=), cyclic(sigma, q=, iterations=, bands=, n=),
  pure_dp(eps), approx_dp(eps, delta), randomized_response(eps), k_ary_randomized_response(eps, k),
  gaussian_mixture(sigma, [shifts], [probabilities]), public_mixture([steps], [weights]),
  from_pmf([num], [den]), from_curve([eps], [delta])"""


def _noisy(build: Callable[..., Mechanism]) -> Callable[..., Mechanism]:
    """`build` with the noise multiplier where it takes a Gaussian step."""

    def make(sigma, *rest, **named) -> Mechanism:
        return build(sigma if isinstance(sigma, Gaussian) else gaussian(sigma), *rest, **named)

    make.__signature__ = inspect.signature(build)  # type: ignore[attr-defined]
    return make


class Step(NamedTuple):
    """build(*arguments, **named) of a name in an expression; short names of parameters; where `?` as the first is
    sought."""

    build: Callable[..., Mechanism | Run]
    short: dict[str, str] = {}  # noqa: RUF012 (never changed)
    over: tuple[float, float] = (1e-2, 1e8)


SIZES = {"n": "dataset_size", "max": "max_batch", "batch": "max_batch"}
STEPS = {
    "gaussian": Step(hs.gaussian),
    "laplace": Step(hs.laplace),
    "discrete_gaussian": Step(hs.discrete_gaussian, over=(0.05, 1e5)),
    "discrete_laplace": Step(hs.discrete_laplace),
    "truncated": Step(_noisy(hs.truncated_poisson_subsampled), SIZES),
    "without_replacement": Step(_noisy(hs.without_replacement), SIZES),
    "cyclic": Step(_noisy(hs.cyclic_poisson), SIZES),
    "pure_dp": Step(hs.pure_dp, over=(1e-6, 300.0)),
    "approx_dp": Step(hs.approx_dp, over=(1e-6, 300.0)),
    "randomized_response": Step(hs.randomized_response, over=(1e-6, 300.0)),
    "k_ary_randomized_response": Step(hs.k_ary_randomized_response, over=(1e-6, 300.0)),
    "gaussian_mixture": Step(hs.gaussian_mixture),
    "public_mixture": Step(hs.public_mixture),
    "from_pmf": Step(hs.from_pmf),
    "from_curve": Step(hs.from_curve),
}
"""One line adds a mechanism."""

WHOLE = ("dataset_size", "max_batch", "iterations", "bands", "k", "steps", "sensitivity")
"""Parameters that are integers where they are whole: 1e4 may be written for 10000."""

UNKNOWN = "unknown_"
LENGTH_MAX = 100_000


class Source(NamedTuple):
    """A RUN: its name, what ran, in which order (neighbours that are equal merged), and the log that says so."""

    name: str
    run: Run
    sequence: tuple[tuple[Mechanism, int], ...]
    kind: str
    log: Log | None = None


class Sought(NamedTuple):
    """A RUN with a `?`: make(x) is the run, x a "sigma", "q" or number of "steps" within `over`."""

    name: str
    make: Callable[[Any], Run]
    solve: str
    over: tuple[Any, Any]


OVER = {"q": (1e-12, 1.0), "steps": (1, K_MAX)}


def sources(args, ordered: bool = False) -> dict[str, Source]:
    """Every RUN of the command line, by name."""
    given = [] if args.runs else [_flags(args)]
    if args.runs and (args.sigma is not None or args.q is not None or args.steps is not None):
        raise DomainError("give either RUN or --sigma, --q and --steps, not both")
    found: dict[str, Source] = {}
    for text in args.runs:
        label, rest = _label(text)
        source = _source(rest, args, ordered)
        given.append(source._replace(name=label or source.name))
    for source in given:
        name, again = source.name, 2
        while name in found:
            name, again = f"{source.name} #{again}", again + 1
        found[name] = source._replace(name=name)
    return found


def runs(args) -> dict[str, Run]:
    """The same without what is known besides."""
    return {name: source.run for name, source in sources(args).items()}


def one(args, ordered: bool = False) -> Source:
    """The only RUN of the command line."""
    found = sources(args, ordered)
    if len(found) != 1:
        raise DomainError(f"one RUN is wanted here, got {len(found)}: {', '.join(found)}")
    return next(iter(found.values()))


def sought(args) -> Sought:
    """The RUN with a `?`, or with one of --sigma, --q, --steps left out and named by --solve."""
    if args.runs:
        if len(args.runs) != 1:
            raise DomainError(f"one RUN with a ? is wanted here, got {len(args.runs)}")
        label, text = _label(args.runs[0])
        found = _sought(text)
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

        found = Sought(" ".join(f"{n}={'?' if n == solve else v}" for n, v in given.items()), make, solve, _over(solve))
    if args.solve not in (None, found.solve):
        raise DomainError(f"--solve {args.solve}, but the ? stands for {found.solve}")
    return found


def _flags(args) -> Source:
    if args.sigma is None or args.steps is None:
        raise DomainError("name what ran: RUN (a file, an expression, SIGMA:Q:STEPS), or --sigma, --q and --steps")
    return _plain("", args.sigma, 1.0 if args.q is None else args.q, args.steps)


def _plain(_: str, sigma, q, steps) -> Source:
    run = _equal(sigma, q, steps)
    return Source(f"sigma={sigma:g} q={q:g} steps={steps}", run, run.parts, "expression")


def _equal(sigma, q, steps) -> Run:
    return compose((poisson_subsampled(gaussian(sigma), q), steps))


def _over(solve: str, step: Step | None = None) -> tuple[Any, Any]:
    return OVER.get(solve) or (step or STEPS["gaussian"]).over


def _label(text: str) -> tuple[str, str]:
    """(NAME, RUN) of NAME=RUN; NAME is empty where there is none."""
    found = re.match(r"([^=()*+@\[\]]+)=(.+)", text, re.DOTALL)
    return (found[1].strip(), found[2]) if found and not os.path.exists(text) else ("", text)


def _source(text: str, args, ordered: bool) -> Source:
    if text == "-":
        return _file(sys.stdin.buffer, "<stdin>", args, ordered)
    triple = None if os.path.exists(text) else _triple(text)
    if triple:
        sigma, q, steps = (
            real(name, _float(part), "") for name, part in zip(("SIGMA", "Q", "STEPS"), triple, strict=True)
        )
        steps = int(steps) if steps.is_integer() else steps
        return _plain(text, sigma, q, count("STEPS", steps))  # type: ignore[arg-type]
    if "(" in text and not os.path.exists(text):
        run = expression(text)
        return Source(text, run, run.parts, "expression")
    if os.path.isfile(text) and (kind := state_kind(Path(text))) is not None:
        return _kept(text, kind, args.adjacency)
    with open(text, "rb") as stream:
        return _file(stream, text, args, ordered)


def _triple(text: str) -> list[str] | None:
    parts = text.split(":")
    return parts if len(parts) == 3 and all(part == "?" or _float(part) is not None for part in parts) else None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# Expressions


def expression(text: str) -> Run:
    """The run of an expression without a `?`."""
    if "?" in text:
        raise DomainError(f"a ? is for `calibrate`, got {brief(text)}")
    return _walked(text, _tree(text), None)


def _sought(text: str) -> Sought:
    if text.count("?") != 1:
        raise DomainError(f"RUN needs one ?, for what is sought, as in '1000*gaussian(?)@0.01'; got {brief(text)}")
    triple = _triple(text)
    if triple:
        sigma, q, steps = triple
        text = f"{steps}*gaussian({sigma})@{q}"
    tree = _tree(text)
    solve, step = _place(tree)
    return Sought(text, lambda x: _walked(text, tree, x), solve, _over(solve, step))


def _walked(text: str, tree: ast.expr, x: Any) -> Run:
    try:
        return _Walk(text, x).run(tree)
    except RecursionError:
        raise DomainError(f"not an expression of runs (too deep): {brief(text)}") from None


def _tree(text: str) -> ast.expr:
    if len(text) > LENGTH_MAX:
        raise DomainError(f"an expression may have {LENGTH_MAX} characters, got {len(text)}; write the run to a file")
    try:
        return ast.parse(text.strip().replace("?", UNKNOWN), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise DomainError(
            f"not an expression of runs ({why}): {brief(text)}; as in '1000*gaussian(1.0)@0.01 + 5*laplace(2)'"
        ) from None


def _place(tree: ast.expr) -> tuple[str, Step | None]:
    """What the unknown stands for, and the mechanism whose first argument it is."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and (_unknown(node.left) or _unknown(node.right))
        ):
            return "steps", None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and _unknown(node.right):
            return "q", None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.args and _unknown(node.args[0]):
                return "sigma", STEPS.get(node.func.id)
            if any(keyword.arg == "q" and _unknown(keyword.value) for keyword in node.keywords):
                return "q", None
    raise DomainError(
        "the ? may stand for a count, a rate, or the first argument of a mechanism: else the cost need not be monotone"
    )


def _unknown(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == UNKNOWN


class _Walk:
    """The tree of an expression as a run; `x` stands for the unknown."""

    def __init__(self, text: str, x: Any):
        self.text, self.x = text, x

    def run(self, node: ast.expr) -> Run:
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Add):
                return self.run(node.left) + self.run(node.right)
            if isinstance(node.op, ast.Mult):
                left, right = (node.left, node.right) if self._is_number(node.left) else (node.right, node.left)
                return self.run(right) * self.count(left)
            if isinstance(node.op, ast.MatMult):
                return self._sampled(node)
        if isinstance(node, ast.Call):
            return as_run(self._call(node))
        raise self._refuse(node, "expected COUNT*MECHANISM(...)@RATE, joined by +")

    def _sampled(self, node: ast.BinOp) -> Run:
        """MECH@RATE or COUNT*MECH@RATE, which Python reads as (COUNT*MECH)@RATE. What is in brackets would be several
        steps on one sample, which are no composition of sampled steps."""
        left: Any = node.left
        times = 1
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
            bracketed = (left.lineno, left.col_offset) != (node.lineno, node.col_offset)
            if bracketed or not self._is_number(left.left):
                raise self._refuse(node, "@RATE belongs to one step: COUNT*MECHANISM(...)@RATE")
            left, times = left.right, self.count(left.left)
        if not isinstance(left, ast.Call):
            raise self._refuse(node, "@RATE belongs to one step, sampled once: COUNT*MECHANISM(...)@RATE")
        step = self._call(left)
        if not isinstance(step, Mechanism):
            raise self._refuse(node, "a whole run cannot be sampled")
        return poisson_subsampled(step, self.number(node.right)) * times

    def _call(self, node: ast.Call) -> Mechanism | Run:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in STEPS:
            raise self._refuse(node, f"unknown mechanism; allowed: {', '.join(STEPS)}")
        step = STEPS[name]
        arguments = [self._argument(each) for each in node.args]
        named = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self._refuse(node, "** is not allowed")
            parameter = step.short.get(keyword.arg, keyword.arg)
            value = self._argument(keyword.value)
            named[parameter] = _as_whole(value) if parameter in WHOLE else value
        try:
            inspect.signature(step.build).bind(*arguments, **named)
        except TypeError as error:
            short = {parameter: word for word, parameter in step.short.items()}
            takes = ", ".join(short.get(p, p) for p in inspect.signature(step.build).parameters)
            raise self._refuse(node, f"{error}; {name}({takes})") from None
        try:
            return step.build(*arguments, **named)
        except DomainError as error:
            raise self._refuse(node, str(error)) from None

    def _argument(self, node: ast.expr) -> Any:
        if _unknown(node):
            return self.x
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(self._argument(each) for each in node.elts)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | None):
            return node.value
        return self.number(node)

    def _is_number(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) or isinstance(node, ast.UnaryOp) or _unknown(node)

    def number(self, node: ast.expr) -> Any:
        if _unknown(node):
            return self.x
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self.number(node.operand)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return node.value
        raise self._refuse(node, "expected a number")

    def count(self, node: ast.expr) -> int:
        value = self.number(node)
        return count("a count", _as_whole(value))

    def _refuse(self, node: ast.expr, why: str) -> DomainError:
        part = ast.get_source_segment(self.text.strip().replace("?", UNKNOWN), node) or self.text
        return DomainError(f"{brief(part.replace(UNKNOWN, '?'))}: {why}")


def _as_whole(value: Any) -> Any:
    """Whole floats as integers."""
    if isinstance(value, tuple):
        return tuple(map(_as_whole, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
    return Source(path, run, run.parts, "ledger")


def _file(stream: BinaryIO, name: str, args, ordered: bool) -> Source:
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
        chain(head, raw_lines(stream)),
        name,
        _columns(args.columns),
        args.adjacency,
        allow_unterminated=args.allow_unterminated,
        allow_empty=args.allow_empty,
        ordered=ordered,
    )
    return Source(name, log.run, log.sequence, "log", log)


def _object(text: bytes) -> dict | None:
    try:
        state = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return state if isinstance(state, dict) else None


def _state(state: dict, name: str) -> Source:
    try:
        if state.get("format") == "hockeystick.accountant":
            accountant = hs.Accountant()
            accountant.load_state_dict(state)
            return Source(name, accountant.run, accountant.run.parts, "accountant")
        what = from_dict(state)
        if not isinstance(what, Run | Mechanism):
            raise DomainError("a bound says what a run cost, not what ran: give the run")
    except DomainError as error:
        raise DomainError(f"{name}: {error}") from None
    return Source(name, as_run(what), as_run(what).parts, "run")


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
