"""The verbs that ask runs: epsilon, delta, run, curve, tradeoff, along, risk."""

from __future__ import annotations

import numpy as np

from .. import query, risk, risk_gdp
from ..bound import Bound, Budget, DomainError
from . import grammar, tables
from .options import Bar, Values, asked, narrow, number, points, values, without_rtol
from .tables import Answer


def _privacy(runs, args, curves=None, bottom: float | None = None):
    """The figure of the privacy curves of `runs`, as asked."""
    from .. import plot

    if curves is None:
        curves = plot.privacy_curves(runs, None, 200, **asked(args))
    return plot.draw_privacy([_titled(curve) for curve in curves], plot.TAIL if bottom is None else bottom)


def _titled(curve):
    """A curve whose name reads as a formula where it came from --sigma, --q, --steps."""
    name = curve.name
    if name.startswith("sigma="):
        for text, symbol in (("sigma=", r"$\sigma$ = "), (" q=", ", $q$ = "), (" steps=", ", $k$ = ")):
            name = name.replace(text, symbol)
    return curve._replace(name=name)


def _add_delta(parser, **more) -> None:
    parser.add_argument(
        "--delta",
        type=values("delta"),
        help="of (eps, delta)-DP, in (0, 1): one or several, a list A,B or a range LO:HI:N",
        **more,
    )


def _add_eps(parser, **more) -> None:
    parser.add_argument(
        "--eps",
        "--epsilon",
        type=values("eps"),
        help="of (eps, delta)-DP: one or several, a list A,B or a range LO:HI:N",
        **more,
    )


def arguments_epsilon(parser) -> None:
    _add_delta(parser, required=True)


def answer_epsilon(args) -> Answer:
    return _ask(args, "epsilon", "delta", query.epsilon, args.delta.at("log"))


def arguments_delta(parser) -> None:
    _add_eps(parser, required=True)


def answer_delta(args) -> Answer:
    return _ask(args, "delta", "eps", query.delta, args.eps.at())


def arguments_run(parser) -> None:
    either = parser.add_mutually_exclusive_group(required=True)
    _add_delta(either)
    _add_eps(either)


def answer_run(args) -> Answer:
    args.verb = "epsilon" if args.eps is None else "delta"
    return answer_epsilon(args) if args.eps is None else answer_delta(args)


def _ask(args, what: str, name: str, ask, at) -> Answer:
    runs = grammar.runs(args)
    rows = []
    for label, run in runs.items():
        for x in at:
            bound = ask(run, x, **asked(args))
            rows.append(tables.row(bound, {"run": label, name: x}, tables.budget(bound)))
    return Answer(rows, tables.summary(what, runs, args), runs, notes=tables.NOTES, draw=lambda: _privacy(runs, args))


def arguments_curve(parser) -> None:
    parser.add_argument(
        "--eps", "--epsilon", type=values("eps"), help="list or range LO:HI:N; default from 0 to where delta is 1e-12"
    )
    parser.add_argument("--points", type=points, default=200, help="of a range without N; default 200")


def answer_curve(args) -> Answer:
    from .. import plot

    runs = grammar.runs(args)
    eps = None if args.eps is None else np.array(args.eps.at("even", args.points))
    curves = plot.privacy_curves(runs, eps, args.points, **asked(args))
    rows = [row for name, xs, bound in curves for row in tables.rows(bound, {"run": name}, "eps", xs.tolist())]
    bottom = 0.0 if args.eps else plot.TAIL
    return Answer(
        rows, tables.summary("delta", runs, args), runs, draw=lambda: _privacy(runs, args, curves, bottom), many=True
    )


more_tradeoff = """

lower, estimate, upper: the least false negative rate of any attack that tells whether a record was there, at a false
positive rate of fpr; tpr_lower, tpr_upper: its largest true positive rate."""


def arguments_tradeoff(parser) -> None:
    parser.add_argument(
        "--fpr", type=values("fpr"), help="false positive rates, list or range LO:HI:N; default 1e-12 to 0.999"
    )
    parser.add_argument("--points", type=points, default=60, help="of a range without N; default 60")


def answer_tradeoff(args) -> Answer:
    runs = grammar.runs(args)
    at = args.fpr or Values("fpr", ((1e-12, 0.999, None),))
    fpr = np.array(at.at("logit", args.points))
    rows, curves = [], []
    for name, run in runs.items():
        tpr = risk.true_positive_rate(run, fpr, **without_rtol(args))
        fnr = narrow(risk.tradeoff(run, fpr, **without_rtol(args)), args)
        curves.append((name, fpr, tpr))
        found = tables.rows(fnr, {"run": name}, "fpr", fpr.tolist())
        for row, low, high in zip(found, tpr.lower, tpr.upper, strict=True):
            rows.append(row | {"tpr_lower": float(low), "tpr_upper": float(high)})
    title = tables.summary("least false negative rate (fnr) of an attack", runs, args)
    return Answer(rows, title, runs, draw=lambda: _tradeoffs(curves), many=True)


def _tradeoffs(curves):
    from .. import plot

    return plot.draw_tradeoff([_titled(plot.Series(*curve)) for curve in curves])


def arguments_along(parser) -> None:
    parser.add_argument("--delta", type=number, required=True, help="of (eps, delta)-DP, in (0, 1)")
    parser.add_argument(
        "--at", type=values("at"), help="after how many steps, list or range LO:HI:N; default over the whole run"
    )
    parser.add_argument("--points", type=points, default=200, help="of a range without N; default 200")


def answer_along(args) -> Answer:
    from .. import plot

    found = grammar.sources(args, ordered=True)
    rows, curves = [], []
    for name, source in found.items():
        at = _whole_numbers(args, source.run.steps)
        show = Bar(args, f" points of {name}")
        bounds = []
        for i, run in enumerate(source.order.prefixes(at)):
            bounds.append(query.epsilon(run, args.delta, **asked(args)))
            show(i + 1, len(at))
        rows += [tables.row(bound, {"run": name, "steps": k}) for k, bound in zip(at, bounds, strict=True)]
        low, mid, high = (np.array([getattr(bound, end) for bound in bounds]) for end in ("lower", "estimate", "upper"))
        curves.append(_titled(plot.Series(name, np.array(at), Bound(low, mid, high, "contour", True, Budget({})))))
    runs = {name: source.run for name, source in found.items()}
    title = tables.summary(f"eps at delta={args.delta:g}", runs, args)
    return Answer(rows, title, runs, draw=lambda: plot.draw_steps(curves, args.delta), many=True)


def _whole_numbers(args, last: int) -> list[int]:
    if args.at is None:
        shares = np.linspace(0, 1, min(args.points, last)) ** 2  # eps grows like a root
        return [int(k) for k in np.unique((1 + (last - 1) * shares).round())]
    at = sorted({round(x) for x in args.at.at("even", args.points)})
    if not 1 <= at[0] <= at[-1] <= last:
        raise DomainError(f"--at must be numbers of steps from 1 to {last}, got {at[0]} to {at[-1]}")
    return at


def arguments_risk(parser) -> None:
    parser.add_argument(
        "--prior", type=values("prior"), help="prior beliefs of the posterior and the guess; default 0.5"
    )
    parser.add_argument(
        "--tail", type=number, default=0.05, help="probability with which the posterior is exceeded; default 0.05"
    )
    parser.add_argument("--delta", type=number, default=1e-5, help="from where on mu covers the curve; default 1e-5")
    parser.add_argument("--fpr", type=values("fpr"), help="false positive rates of attacks; default 0.001,0.01,0.1")
    parser.add_argument(
        "--baseline", type=values("baseline"), help="chances of a reconstruction without the output; default 1e-6,0.001"
    )


more_risk = """

  advantage       largest (true - false positive rate) of a membership attack
  mu              smallest mu with which the run is mu-GDP from --delta on
  tpr             largest true positive rate at a false positive rate of --fpr
  posterior       belief, from --prior, that is exceeded with probability --tail at most
  bayes_risk      error of the best guess whether the record is there, at --prior
  reconstruction  largest chance of a reconstruction that has the chance --baseline without the output"""


def answer_risk(args) -> Answer:
    runs, rows = grammar.runs(args), []
    options = without_rtol(args)
    prior = [0.5] if args.prior is None else args.prior.at("logit")
    fpr = [0.001, 0.01, 0.1] if args.fpr is None else args.fpr.at("logit")
    baseline = [1e-6, 1e-3] if args.baseline is None else args.baseline.at("log")
    for name, run in runs.items():
        asked_of = [
            ("advantage", "", None, risk.advantage(run, **options)),
            ("mu", "delta", args.delta, risk_gdp.mu_gdp(run, args.delta, **options)),
            *(("tpr", "fpr", x, risk.true_positive_rate(run, x, **options)) for x in fpr),
            *(("posterior", "prior", x, risk.posterior(run, x, tail=args.tail, **options)) for x in prior),
            *(("bayes_risk", "prior", x, risk.bayes_risk(run, x, **options)) for x in prior),
            # Whoever guesses right with probability b without the output tells the laws apart at a false positive rate
            # of b.
            *(("reconstruction", "baseline", x, risk.true_positive_rate(run, x, **options)) for x in baseline),
        ]
        for quantity, given, at, bound in asked_of:
            rows.append(tables.row(narrow(bound, args), {"run": name, "quantity": quantity, "given": given, "at": at}))
    curve = np.append(np.logspace(-12, -0.3, 40), 1 - np.logspace(-0.32, -3, 20))

    def draw():
        return _tradeoffs([(name, curve, risk.true_positive_rate(run, curve, **options)) for name, run in runs.items()])

    return Answer(rows, tables.summary("risk", runs, args), runs, notes=tables.NOTES, draw=draw)
