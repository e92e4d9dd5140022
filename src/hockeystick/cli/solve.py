"""The verb calibrate: the parameter of a run that just meets a target."""

from __future__ import annotations

from ..bound import DomainError
from ..calibration import calibrate, max_steps, noise_multiplier
from . import grammar, tables
from .answers import _privacy
from .options import number, without_rtol
from .tables import Answer

more_calibrate = """

RUN holds a ? for what is sought: '1000*gaussian(?)@0.01', '?*laplace(2)', '500*gaussian(1)@?', ?:0.01:1000. Or --solve
names it: the noise multiplier (sigma), the rate (q) or the number of the steps of RUN, which are equal, as in a log of
one training run. Or leave out one of --sigma, --q, --steps. The answer is proved to meet the target; the row's limit is
proved not to."""


START = {"sigma": 1.0, "q": 0.01, "steps": 1000}
"""Where the search starts."""


def arguments_calibrate(parser) -> None:
    parser.add_argument("--solve", choices=("sigma", "q", "steps"), help="what is sought, where RUN has no ?")
    parser.add_argument("--over", metavar="LO:HI", help="where to look; default wherever it is defined")
    parser.add_argument("--tol", type=number, default=1e-6, help="relative distance of answer and limit, default 1e-6")
    target = parser.add_argument_group("target")
    target.add_argument("--eps", "--epsilon", type=number, help="with --delta: eps(delta) at most this")
    target.add_argument("--delta", type=number, help="with --eps or --mu")
    target.add_argument("--advantage", type=number, help="membership advantage at most this")
    target.add_argument("--fnr", type=number, help="with --fpr: false negative rate of every attack at least this")
    target.add_argument("--fpr", type=number, help="with --fnr")
    target.add_argument("--mu", type=number, help="with --delta: mu of Gaussian DP at most this")


def answer_calibrate(args) -> Answer:
    found = grammar.sought(args)
    names = ("eps", "delta", "advantage", "fnr", "fpr", "mu")
    target = {
        "epsilon" if name == "eps" else name: value for name in names if (value := getattr(args, name)) is not None
    }
    if args.rtol is not None:
        raise DomainError("--rtol is not an option of calibrate; ask for a distance of the parameter with --tol")
    options = {**target, "tol": args.tol, **without_rtol(args)}
    plain = not args.runs and args.over is None and set(target) == {"epsilon", "delta"}
    if plain and found.solve == "sigma":
        answer = noise_multiplier(q=1.0 if args.q is None else args.q, steps=args.steps, **options)
    elif plain and found.solve == "steps":
        answer = max_steps(sigma=args.sigma, q=1.0 if args.q is None else args.q, **options)
    else:
        over = _over(args.over, found)
        start = min(max(START[found.solve], over[0]), over[1])
        answer = calibrate(found.make, over=over, start=start, **options)
    run = found.make(answer.value)
    of = {"run": found.name, "solve": found.solve, "value": answer.value, "limit": answer.limit}
    aim = next(name for name in ("epsilon", "advantage", "fnr", "mu") if name in target)
    quantity = "delta" if aim == "epsilon" else aim
    rows = [tables.row(answer.bound, {**of, "quantity": quantity})]
    title = f"{found.name}: ? = {answer.value!r} meets the target, {answer.limit!r} does not; {args.adjacency}"
    return Answer(rows, title, {found.name: run}, notes=tables.NOTES, draw=lambda: _privacy({found.name: run}, args))


def _over(text: str | None, found: grammar.Sought):
    if text is None:
        return found.over
    parts = [number(part) for part in text.split(":")]
    if len(parts) != 2:
        raise DomainError(f"--over takes LO:HI, got {text!r}")
    whole = found.solve == "steps"
    return tuple(int(part) if whole and part.is_integer() else part for part in parts)
