"""The command `hockeystick VERB RUN... [options]`: certified privacy bounds of what ran.

Exit status: 0 answered; 1 the accuracy asked for cannot be certified (`verify`: not decided; `ledger`: refused by the
limit); 2 bad usage, a value outside its domain, or a file that cannot be read; 3 refuted (`verify`); 130 interrupted.
Messages go to stderr, answers to stdout; nothing is printed to stdout unless every value was answered.

    __init__.py    the table of verbs, and what they share from argv to exit status
    options.py     the options that all verbs share, lists and ranges, old spellings
    grammar.py     RUN: files, expressions, SIGMA:Q:STEPS, --sigma --q --steps
    tables.py      an answer as table, CSV or JSON
    answers.py ..  the verbs: `arguments(parser)` and `answer(args)`, which returns a `tables.Answer`
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import NamedTuple

from .. import __version__
from ..bound import AccuracyError, DomainError, LimitError
from . import grammar, options

STATUS = """exit status:
  0  answered (verify: confirmed)      1  not certified within what was asked (verify: not decided; ledger: refused)
  2  bad usage or input                3  refuted (verify)"""


class Verb(NamedTuple):
    """module: what holds `arguments_NAME(parser)` and `answer_NAME(args)`. shares: which options of options.py come
    along."""

    summary: str
    module: str
    shares: tuple[str, ...] = ("runs", "query")


VERBS = {
    "epsilon": Verb("the least eps at which a run is (eps, delta)-DP, for every --delta", ".answers"),
    "delta": Verb("the least delta at which a run is (eps, delta)-DP, for every --eps", ".answers"),
    "run": Verb("epsilon or delta, whichever --delta or --eps asks for", ".answers"),
    "curve": Verb("the privacy curve, delta for a range of eps, as CSV and picture", ".answers"),
    "tradeoff": Verb("the least error rates of membership attacks on a run, as CSV and picture", ".answers"),
    "along": Verb("eps after the first steps of a run or a log, as CSV and picture", ".answers"),
    "risk": Verb(
        "what a run means for attacks: advantage, mu of Gaussian DP, posterior belief, reconstruction", ".answers"
    ),
    "calibrate": Verb("the noise, rate or number of steps that meets a target", ".solve"),
    "batch": Verb("eps or delta of every line of a table", ".columns", ("query",)),
    "individual": Verb("eps of every record, from a file of gradient norms", ".records", ("query",)),
    "check": Verb("what a log or state says ran, and what to look at twice", ".audit"),
    "explain": Verb("how an answer is obtained: routes tried, error terms, the share of every step", ".audit"),
    "verify": Verb("judge an answer by computing the curve again, independently", ".audit"),
    "ledger": Verb(
        "what an accountant keeps in a file: shown, added to, and what still fits", ".ledger", ("runs", "kept")
    ),
    "explore": Verb(
        "a page in the browser: sliders, curves, comparisons (extra `explore`)", "..explore.command", ("runs",)
    ),
    "completion": Verb("a script that completes this command in bash, zsh or fish", ".completion", ()),
}
"""One line adds a verb."""

USAGES = {
    "batch": "hockeystick batch CSV [options]",
    "individual": "hockeystick individual NORMS [options]",
    "ledger": "hockeystick ledger FILE [show|step|left] [RUN...] [options]",
}


def main(argv: list[str] | None = None) -> int:
    """Run the command on `argv` (default: the process arguments); returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        text, status = _answer(argv)
    except (DomainError, OSError, ImportError) as error:
        return _fail(error, 2)
    except (AccuracyError, LimitError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 130
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader left. What is still buffered must not be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _answer(argv: list[str]) -> tuple[str, int]:
    argv, warnings = options.modern(argv)
    for warning in warnings:
        print(f"hockeystick: warning: {warning}", file=sys.stderr)
    if not argv or argv[0].startswith("-"):
        top_parser().parse_args(argv)
    name, *rest = argv
    if name not in VERBS:
        near = difflib.get_close_matches(name, VERBS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        top_parser().error(f"invalid choice of verb: {name!r}{hint} (choose from {', '.join(VERBS)})")
    args = parser(name).parse_intermixed_args(options.joined(rest))
    args.verb = name
    found = getattr(_module(name), f"answer_{name}")(args)
    if isinstance(found, str):
        return found, 0
    if getattr(args, "plot", None):
        found.draw().savefig(args.plot)
    return found.text(args), found.status


def _module(name: str):
    return import_module(VERBS[name].module, __name__)


def _fail(error: Exception, status: int) -> int:
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    print(f"hockeystick: error: {text}", file=sys.stderr)
    return status


def top_parser() -> argparse.ArgumentParser:
    """The parser of what comes before a verb."""
    verbs = "\n".join(f"  {name:<12}{verb.summary}" for name, verb in VERBS.items())
    top = argparse.ArgumentParser(
        prog="hockeystick",
        usage="hockeystick VERB RUN... [options]\n       hockeystick VERB --help",
        description="Certified privacy accounting: what ran goes in, two-sided bounds of what it cost come out.\n\n"
        f"verbs:\n{verbs}\n\n{grammar.HELP}\n\n{options.PROMISE}",
        epilog=f"{_examples(VERBS, 1)}\n\n{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"hockeystick {__version__}")
    top.add_argument("verb", metavar="VERB", help=argparse.SUPPRESS)
    return top


EXAMPLES = {
    "epsilon": (
        "epsilon train_log.csv --delta 1e-5",
        "epsilon 'sgd=1000*gaussian(1.0)@0.01 + 5*laplace(2)' 'plain=20*gaussian(9)' --delta 1e-5,1e-6",
        "epsilon --sigma 1.0 --q 0.01 --steps 1000 --delta 1e-5",
    ),
    "delta": ("delta 1.0:0.01:1000 --eps 1",),
    "run": ("run train_log.csv --delta 1e-5",),
    "curve": ("curve A=a.csv B=b.csv --eps 0:4:200 --plot curves.png",),
    "tradeoff": ("tradeoff 1.0:0.01:1000 --fpr 0.01,0.1",),
    "along": ("along train_log.csv --delta 1e-5 --at 100,500,1000",),
    "risk": ("risk 1.0:0.01:1000 --fpr 0.001",),
    "calibrate": (
        "calibrate '1000*gaussian(?)@0.01' --eps 1 --delta 1e-5",
        "calibrate --sigma 1.0 --q 0.01 --eps 1 --delta 1e-5",
    ),
    "batch": ("batch questions.csv",),
    "individual": ("individual norms.npy --noise-multiplier 1.0 --clip 0.5 --q 0.01 --delta 1e-5",),
    "check": ("check other_log.csv --columns sigma=noise_multiplier,q=sample_rate",),
    "explain": ("explain train_log.csv --delta 1e-5",),
    "verify": ("verify train_log.csv --delta 1e-5",),
    "ledger": (
        "ledger spent.db step 1.0:0.01:1000 --new --eps 3 --delta 1e-5",
        "ledger spent.db left 'gaussian(1.0)@0.01'",
    ),
    "explore": ("explore train_log.csv",),
}
"""Of every verb that needs more than its name."""


def _examples(names: Iterable[str], most: int) -> str:
    lines = [line for name in names for line in EXAMPLES.get(name, ())[:most]]
    return "\n".join(["examples:", *(f"  hockeystick {line}" for line in lines)]) if lines else ""


def parser(name: str) -> argparse.ArgumentParser:
    """The parser of a verb."""
    verb = VERBS[name]
    runs = " RUN..." if "runs" in verb.shares else ""
    more = f"\n\n{grammar.HELP}\n\n{options.PROMISE}" if runs else ""
    more = f"{_examples([name], 9)}{more}"
    what = verb.summary[0].upper() + verb.summary[1:]
    made = argparse.ArgumentParser(
        prog=f"hockeystick {name}",
        usage=USAGES.get(name) or (f"hockeystick {name}{runs} [options]" if runs else None),
        description=f"{what}.{getattr(_module(name), f'more_{name}', '')}",
        epilog=f"{more}\n\n{STATUS}".strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    getattr(_module(name), f"arguments_{name}")(made)
    for share in verb.shares:
        getattr(options, f"add_{share}")(made)
    return made
