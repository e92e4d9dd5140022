"""The command `hockeystick`: certified privacy bounds of a run given by flags or by a training log.

Exit status: 0 answered; 1 the accuracy asked for cannot be certified; 2 bad usage, a value outside its
domain, or a log that cannot be read; 3 refuted (`verify`); 130 interrupted. Messages go to stderr, answers to
stdout; nothing is printed to stdout unless every value was answered.

`--json` prints one object with the keys

    format ("hockeystick.result"), version (1), package (the release), query ("epsilon" or "delta"),
    adjacency, direction, steps, distinct_steps, rows

and one row per value asked, with the keys

    delta or eps (the value), lower, estimate, upper, route, certified, budget ({unit, terms})

The commands that print tables are in cli_curve.py. Floats are the shortest text that reads back to the same double;
an infinite value is the string "inf" or "-inf".
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys

from . import __version__, cli_curve, query
from .bound import AccuracyError, Bound, DomainError
from .mechanism import Run, compose, gaussian, poisson_subsampled
from .pair import ADJACENCIES, DIRECTIONS

FORMAT = "hockeystick.result"
VERSION = 1

_STATUS = """exit status:
  0  answered
  1  the accuracy asked for cannot be certified
  2  bad usage, a value outside its domain, or a log that cannot be read"""

_VERIFY_STATUS = """exit status:
  0  confirmed
  1  not decided
  2  bad usage, a value outside its domain, or a log that cannot be read
  3  refuted"""

_LOG = """The log is CSV whose first line names the columns, or JSON lines with these keys:
  sigma  noise multiplier (noise standard deviation / clipping norm)
  q      Poisson sampling rate; 1 if the log has no such column or key
  steps  how many such steps; 1 if the log has no such column or key
One line per step or per phase, in any order and number; the format is read off the content.
A malformed line is refused with its line number; so are, unless allowed, a last line that does not end
and a log without steps: both are what a crash leaves."""


def main(argv: list[str] | None = None) -> int:
    """Run the command on `argv` (default: the process arguments); returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        text = _text_of(argv)
    except (DomainError, OSError, ImportError) as error:
        return _fail(error, 2)
    except AccuracyError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 130
    text, status = text if isinstance(text, tuple) else (text, 0)
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader left. What is still buffered must not be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _text_of(argv: list[str]) -> str:
    if argv[:1] == ["individual"]:
        from .individual import command

        return command.run(argv[1:])
    args = _parser().parse_args(argv)
    return args.answer(args) if "answer" in args else _answer(_run_of(args), args)


def _fail(error: Exception, status: int) -> int:
    if isinstance(error, OSError) and error.filename is not None:
        error = f"{error.filename}: {error.strerror}"
    print(f"hockeystick: error: {error}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hockeystick",
        description="Certified two-sided bounds of the privacy of a DP-SGD run.",
        epilog=_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hockeystick {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="{epsilon,delta,run,verify,curve,tradeoff,steps,batch,individual}"
    )

    def command(name: str, text: str, more: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=text,
            description=f"Certified {text}.\n\n{more}".rstrip(),
            epilog=_STATUS,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    epsilon = command("epsilon", "eps(delta) of equal steps")
    _add_steps(epsilon)
    _add_delta(epsilon, required=True)
    delta = command("delta", "delta(eps) of equal steps")
    _add_steps(delta)
    _add_eps(delta, required=True)
    run = command("run", "eps(delta) or delta(eps) of a training log", _LOG)
    run.add_argument("log", metavar="LOG", help='file, or "-" for standard input; comes before --delta')
    cli_curve.add_allowances(run)
    asked = run.add_mutually_exclusive_group(required=True)
    _add_delta(asked)
    _add_eps(asked)
    for each in (epsilon, delta, run):
        _add_options(each)
    _add_verify(commands)
    cli_curve.add_commands(command)
    commands.add_parser("individual", help="eps(delta) of every record from a file of norms", add_help=False)
    return parser


def _add_verify(commands) -> None:
    parser = commands.add_parser(
        "verify",
        help="judge an answer by computing the curve again, independently (extra `verify`)",
        description="Judge an interval by computing the privacy curve again, in ball arithmetic and with other code: the one "
        "given by --lower and --upper, or the one that this package answers.",
        epilog=_VERIFY_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("log", metavar="LOG", nargs="?", help='training log, or "-"; else --sigma and --steps')
    parser.add_argument("--sigma", type=_number, help="noise multiplier")
    parser.add_argument("--q", type=_number, default=1.0, help="Poisson sampling rate, default 1 (none)")
    parser.add_argument("--steps", type=_whole, help="number of steps")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--delta", type=_number, help="the interval is of eps at this delta")
    asked.add_argument("--eps", type=_number, help="the interval is of delta at this eps; write --eps=-1e-3 if < 0")
    parser.add_argument("--lower", type=_number, help="lower end claimed; 0 if only --upper is given")
    parser.add_argument("--upper", type=_number, help="upper end claimed; infinite if only --lower is given")
    parser.add_argument("--adjacency", default="add_remove", help=f"one of {', '.join(ADJACENCIES)}")
    parser.add_argument("--direction", default="both", help=f"one of {', '.join(DIRECTIONS)}")
    parser.add_argument("--seconds", type=_number, default=60.0, help="processor time allowed, default 60")
    cli_curve.add_allowances(parser)
    parser.set_defaults(answer=_verify)


def _verify(args):
    """The verdict as text, and its exit status."""
    from .judge import verify

    if (args.log is None) == (args.sigma is None) or (args.sigma is None) != (args.steps is None):
        raise DomainError("give either a log or both --sigma and --steps")
    run = _run_of(args)
    options = {"adjacency": args.adjacency, "direction": args.direction}
    ask, at = (query.epsilon, args.delta) if args.delta is not None else (query.delta, args.eps)
    if args.lower is None and args.upper is None:
        claim = ask(run, at, **options)
        ends = claim.lower, claim.upper
    else:
        ends = 0.0 if args.lower is None else args.lower, math.inf if args.upper is None else args.upper
    found = verify(run, ends, eps=args.eps, delta=args.delta, seconds=args.seconds, **options)
    lines = [f"{found.verdict}: {found.why}", f"claimed: [{ends[0]!r}, {ends[1]!r}]"]
    lines += [f"delta({e.eps!r}), {e.direction}: [{e.lower!r}, {e.upper!r}]" for e in found.evidence]
    return "\n".join(lines), {"confirmed": 0, "refuted": 3}.get(found.verdict, 1)


def _add_steps(parser) -> None:
    parser.add_argument("--sigma", type=_number, required=True, help="noise multiplier")
    parser.add_argument("--q", type=_number, default=1.0, help="Poisson sampling rate, default 1 (none)")
    parser.add_argument("--steps", type=_whole, required=True, help="number of steps")


def _add_delta(parser, **kw) -> None:
    parser.add_argument("--delta", type=_number, nargs="+", help="one row each; 0 < delta < 1", **kw)


def _add_eps(parser, **kw) -> None:
    parser.add_argument("--eps", type=_number, nargs="+", help="one row each; write --eps=-1e-3 if < 0", **kw)


def _add_options(parser) -> None:
    parser.add_argument("--adjacency", default="add_remove", help=f"one of {', '.join(ADJACENCIES)}")
    parser.add_argument("--direction", default="both", help=f"one of {', '.join(DIRECTIONS)}")
    parser.add_argument("--route", default="auto", help="method; auto is the certified one that is soonest")
    parser.add_argument("--rtol", type=_number, help="largest relative width; an error if it cannot be met")
    parser.add_argument("--threads", type=_whole, default=1, help="default 1; 0 is all cores allowed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def _whole(text: str) -> int:
    value = _number(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    return int(value)


def _run_of(args) -> Run:
    if getattr(args, "log", None) is None:
        return compose((poisson_subsampled(gaussian(args.sigma), args.q), args.steps))
    if args.log == "-":
        return cli_curve.read(sys.stdin.buffer, "<stdin>", args)
    with open(args.log, "rb") as stream:
        return cli_curve.read(stream, args.log, args)


def _answer(run: Run, args) -> str:
    asks_epsilon = getattr(args, "delta", None) is not None
    values, ask = (args.delta, query.epsilon) if asks_epsilon else (args.eps, query.delta)
    options = {
        "adjacency": args.adjacency,
        "direction": args.direction,
        "route": args.route,
        "rtol": args.rtol,
        "n_threads": args.threads,
    }
    given, asked = ("delta", "epsilon") if asks_epsilon else ("eps", "delta")
    bounds = [ask(run, value, **options) for value in values]
    head = {
        "query": asked,
        "adjacency": args.adjacency,
        "direction": args.direction,
        "steps": run.steps,
        "distinct_steps": len(run.parts),
    }
    if args.json:
        return _as_json(head, given, values, bounds)
    return _as_text(head, given, values, bounds)


def _as_json(head: dict, given: str, values: list[float], bounds: list[Bound]) -> str:
    rows = [
        {
            given: _plain(value),
            "lower": _plain(bound.lower),
            "estimate": _plain(bound.estimate),
            "upper": _plain(bound.upper),
            "route": bound.route,
            "certified": bool(bound.certified),
            "budget": {
                "unit": bound.budget.unit,
                "terms": {name: _plain(term) for name, term in bound.budget.terms.items()},
            },
        }
        for value, bound in zip(values, bounds, strict=True)
    ]
    result = {"format": FORMAT, "version": VERSION, "package": __version__, **head, "rows": rows}
    return json.dumps(result, allow_nan=False)


def _plain(value) -> float | str:
    value = float(value)
    return value if math.isfinite(value) else repr(value)


def _as_text(head: dict, given: str, values: list[float], bounds: list[Bound]) -> str:
    table = [[given, "lower", "estimate", "upper", "route", "certified", "budget"]]
    for value, bound in zip(values, bounds, strict=True):
        terms = " ".join(f"{name}={float(term):.2g}" for name, term in bound.budget.terms.items())
        ends = [repr(float(x)) for x in (value, bound.lower, bound.estimate, bound.upper)]
        certified = "yes" if bound.certified else "no"
        table.append([*ends, bound.route, certified, f"{terms} ({bound.budget.unit})"])
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    title = (
        f"{head['query']}: {head['steps']} steps, {head['distinct_steps']} distinct; "
        f"{head['adjacency']}, direction {head['direction']}"
    )
    return "\n".join([title, *lines])
