"""What the verbs share: the options of a query, lists and ranges of values, and spellings of version 0.1."""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import Any, NamedTuple

import numpy as np

from ..bound import AccuracyError, Bound, DomainError
from ..routes.table import ROUTES

PROMISE = """what an answer says, in every row:
  lower, upper  ends of the interval that is certified to hold the truth, for the run as it is given, floating-point
                rounding included; upper is what to report (of error rates of attacks: lower)
  estimate      in between, no bound              route    how it was computed
  certified     `no` marks an estimate            budget   the part of every source of error in the width
what is not certified: that batches were drawn so, gradients clipped and noise drawn as stated; what the run leaves out
(tuning runs, statistics published besides); the accuracy of the C library's exp, log and erfc, taken as documented."""

NOTE = "certified for the run as given; that it ran so (sampling, clipping, noise, nothing left out) is not checked"

NEIGHBOURS = (
    "which two data sets must look alike: add_remove (one has a record more; the default), replace_one (one record has "
    "another value), zero_out (one record contributes nothing)"
)
DIRECTED = (
    "both, the default: the larger of remove (outputs with the record against outputs without) and add (the reverse)"
)

PICTURES = ("png", "pdf", "svg")
POINTS_MAX = 10**6


def add_runs(parser: argparse.ArgumentParser) -> None:
    """RUN..., its sugar, and how logs are read."""
    parser.add_argument("runs", metavar="RUN", nargs="*", default=[], help="what ran; see below")
    one = parser.add_argument_group("one run of equal Gaussian steps, instead of RUN")
    one.add_argument("--sigma", type=number, help="noise multiplier")
    one.add_argument("--q", type=number, help="Poisson sampling rate, default 1 (none)")
    one.add_argument("--steps", type=whole, help="number of steps")
    logs = parser.add_argument_group("logs")
    logs.add_argument(
        "--columns", metavar="NAME=COLUMN,...", help="which column holds what; NAME= passes over a column"
    )
    add_allowances(logs)
    logs.add_argument("--allow-empty", action="store_true", help="take a log without steps as a run without steps")


def add_allowances(parser) -> None:
    """The flag of all verbs that read lines."""
    parser.add_argument("--allow-unterminated", action="store_true", help="take a last line that has no line end")


def add_query(parser: argparse.ArgumentParser, adjacency: str | None = "add_remove") -> None:
    """The options of all verbs."""
    group = parser.add_argument_group("options of all verbs")
    group.add_argument("--adjacency", default=adjacency, help=NEIGHBOURS)
    group.add_argument("--direction", default="both", help=DIRECTED)
    group.add_argument(
        "--route",
        default="auto",
        help=f"how to compute: {', '.join(ROUTES)}; default auto, which takes the certified one that is soonest",
    )
    group.add_argument(
        "--rtol",
        type=number,
        help="largest width of the interval / estimate, 1e-14 to 0.5; an error if it cannot be met",
    )
    group.add_argument(
        "--threads", type=whole, default=1, help="default 1; 0 is all cores allowed; answers do not depend on it"
    )
    group.add_argument(
        "--format", choices=("table", "csv", "json"), help="default table; csv for curve, tradeoff, along, batch"
    )
    group.add_argument(
        "--plot", type=picture, metavar="FILE", help=f"also draw it: {', '.join(PICTURES)} (extra `plot`)"
    )
    group.add_argument("--quiet", action="store_true", help="no notes, no progress bar")


def add_kept(parser: argparse.ArgumentParser) -> None:
    """The same where a file says which adjacency it is about."""
    add_query(parser, None)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def whole(text: str) -> int:
    value = number(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    return int(value)


def points(text: str) -> int:
    value = whole(text)
    if not 2 <= value <= POINTS_MAX:
        raise argparse.ArgumentTypeError(f"expected 2 to {POINTS_MAX}, got {text}")
    return value


def picture(text: str) -> str:
    if text.rpartition(".")[2].lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"expected a name that ends in {', '.join(PICTURES)}, got {text!r}")
    return text


class Values(NamedTuple):
    """Numbers and ranges (lo, hi, n) of one option."""

    name: str
    items: tuple[float | tuple[float, float, int | None], ...]

    def at(self, scale: str = "even", n: int = 200) -> list[float]:
        """All numbers; a range is even in x ("even"), log x ("log") or log x/(1-x) ("logit"), with n where it names
        none."""
        out: list[float] = []
        for item in self.items:
            out += [item] if isinstance(item, float) else self._range(*item[:2], item[2] or n, scale)
        return out

    def _range(self, lo: float, hi: float, n: int, scale: str) -> list[float]:
        low, high = (0.0, 1.0 if scale == "logit" else np.inf) if scale != "even" else (-np.inf, np.inf)
        if not low < lo < hi < high:
            allowed = {"even": "LO < HI", "log": "0 < LO < HI", "logit": "0 < LO < HI < 1"}[scale]
            raise DomainError(f"--{self.name} needs {allowed}, got {lo:g}:{hi:g}")
        if scale == "log":
            inner = np.exp(np.linspace(math.log(lo), math.log(hi), n))
        elif scale == "logit":
            inner = 1 / (1 + np.exp(-np.linspace(math.log(lo) - math.log1p(-lo), math.log(hi) - math.log1p(-hi), n)))
        else:
            inner = np.linspace(lo, hi, n)
        inner[0], inner[-1] = lo, hi
        return [float(x) for x in inner]

    def one(self) -> float:
        """The only number."""
        if len(self.items) != 1 or not isinstance(self.items[0], float):
            raise DomainError(f"--{self.name} takes one number here")
        return self.items[0]


def values(name: str):
    """The type of an option of numbers, lists `A,B,...` and ranges `LO:HI[:N]`."""

    def read(text: str) -> Values:
        items: list[float | tuple[float, float, int | None]] = []
        for item in text.split(","):
            parts = item.split(":")
            if len(parts) == 1:
                items.append(number(item))
            elif len(parts) <= 3:
                items.append((number(parts[0]), number(parts[1]), points(parts[2]) if len(parts) == 3 else None))
            else:
                raise argparse.ArgumentTypeError(f"expected a number, a list A,B,... or a range LO:HI:N, got {item!r}")
        return Values(name, tuple(items))

    return read


LISTS = ("--delta", "--eps", "--epsilon", "--fpr", "--at", "--prior")
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?(,.*)?|[-+]?(inf|nan)", re.IGNORECASE)


def joined(argv: list[str]) -> list[str]:
    """The words after an option of `LISTS` as one word, as far as they are numbers: what follows may be a RUN again."""
    out: list[str] = []
    words = iter(argv)
    word = next(words, None)
    while word is not None:
        following = next(words, None)
        if word in LISTS and following is not None and (_PLAIN.fullmatch(following) or not following.startswith("-")):
            found = [following]
            following = next(words, None)
            while following is not None and _PLAIN.fullmatch(following):
                found.append(following)
                following = next(words, None)
            out.append(f"{word}={','.join(found)}")
        else:
            out.append(word)
        word = following
    return out


def modern(argv: list[str]) -> tuple[list[str], list[str]]:
    """The arguments with the spellings of version 0.1 replaced, and a warning for each."""
    out, warnings = list(argv), []

    def say(old: str, new: str) -> None:
        warnings.append(f"{old} is an old spelling, which the next version will not take: write {new}")

    verb = out[0] if out else ""
    if verb == "steps":
        out[0] = "along"
        say("`steps`", "`along`")
    for option, ranged in (("--eps", "curve"), ("--fpr", "tradeoff")):
        if verb == ranged and option in out:
            i = out.index(option)
            ends = out[i + 1 : i + 3]
            if len(ends) == 2 and all(_PLAIN.fullmatch(end) and "," not in end for end in ends):
                out[i : i + 3] = [f"{option}={':'.join(ends)}"]
                say(f"`{option} LO HI`", f"`{option} LO:HI:N`")
    if "--json" in out:
        i = out.index("--json")
        out[i : i + 1] = ["--format", "json"]
        say("`--json`", "`--format json`")
    if verb == "individual":
        for i, word in enumerate(out):
            if word.split("=")[0] == "--sigma":
                out[i] = "--noise" + word.removeprefix("--sigma")
                say("`--sigma` of `individual`", "`--noise`")
    return out, warnings


def asked(args) -> dict[str, Any]:
    """The options of a query as keywords."""
    return {
        "adjacency": args.adjacency,
        "direction": args.direction,
        "route": args.route,
        "rtol": args.rtol,
        "n_threads": args.threads,
    }


def without_rtol(args) -> dict[str, Any]:
    """The same for functions that take no rtol: see `narrow`."""
    return {name: value for name, value in asked(args).items() if name != "rtol"}


def narrow(bound: Bound[Any], args) -> Bound[Any]:
    """The bound, if it is as narrow as --rtol asks."""
    if args.rtol is not None:
        gap, size = np.asarray(bound.upper) - bound.lower, np.abs(bound.estimate)
        if not (gap <= args.rtol * size).all():
            raise AccuracyError(
                f"the interval is {np.max(gap / size):.2g} wide, relatively; rtol={args.rtol:g} was asked for"
            )
    return bound


class Bar:
    """A progress bar on stderr, if that is a terminal and --quiet was not given."""

    def __init__(self, args, what: str = ""):
        self.shown, self.what = sys.stderr.isatty() and not args.quiet, what

    def __call__(self, done: int, total: int) -> None:
        if self.shown:
            filled = 40 * done // max(total, 1)
            end = "\n" if done == total else ""
            bar = "#" * filled + "." * (40 - filled)
            print(f"\r[{bar}] {done}/{total}{self.what}", end=end, file=sys.stderr, flush=True)
