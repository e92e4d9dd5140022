"""Pictures: privacy curves, trade-off curves and eps over steps, with their certified bounds. Needs the extra `plot`.

Every function takes a mapping from the name in the legend to what ran, asks the queries, and returns a matplotlib
Figure. The band between lower and upper end is drawn; where it is thinner than a line, the line is the proof, and the
legend's title says how wide the widest band is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import query, risk
from .batch import epsilon_batch
from .bound import Bound, DomainError
from .what.mechanism import as_run, count

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from .types import Numbers

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette: told apart with any colour vision, and in grey by the dashes below."""
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))


TAIL = 1e-12
"""Where a picture of delta ends if nothing else is asked."""

SURE = 0.1
"""Relative width above which an estimate says too little to be drawn: the band alone is."""


class Series(NamedTuple):
    """One curve: its name, where it was asked, and the bounds there."""

    name: str
    x: NDArray[Any]
    bound: Bound[NDArray[np.float64]]


def privacy_curves(
    runs: Mapping[str, Any], eps: Numbers | None = None, points: int = 200, **options: Any
) -> list[Series]:
    """delta(eps) of each run; without `eps`, at `points` from 0 to where the last curve reaches `TAIL`."""
    runs = _named(runs)
    if eps is None:
        points = count("points", points, 2, 10**6)
        eps = np.linspace(0.0, max(query.epsilon(run, TAIL, **options).estimate for run in runs.values()), points)
    eps = np.asarray(eps)
    return [Series(name, eps, query.delta(run, eps, **options)) for name, run in runs.items()]


def tradeoff_curves(runs: Mapping[str, Any], fpr: Numbers | None = None, **options: Any) -> list[Series]:
    """Largest tpr at every fpr of each run; without `fpr`, at 60 points from 1e-12 to 1."""
    fpr = np.append(np.logspace(-12, -0.3, 40), 1 - np.logspace(-0.32, -3, 20)) if fpr is None else np.asarray(fpr)
    return [Series(name, fpr, risk.true_positive_rate(run, fpr, **options)) for name, run in _named(runs).items()]


def step_curves(steps: Mapping[str, tuple[float, float]], k: Numbers, delta: float, **options: Any) -> list[Series]:
    """eps at `delta` after each number of steps in `k`, for named (sigma, q)."""
    k = np.array([count("k", int(n) if float(n).is_integer() else n) for n in np.ravel(k).tolist()])
    return [Series(name, k, epsilon_batch(sigma, q, k, delta, **options)) for name, (sigma, q) in steps.items()]


def privacy_curve(runs: Mapping[str, Any], eps: Numbers | None = None, **options: Any) -> Figure:
    """Figure of delta(eps), delta on a logarithmic axis.

    Parameters
    ----------
    runs : mapping
        From the name in the legend to a Run or Mechanism.
    eps : array_like, optional
        Where to ask; see `privacy_curves`.
    options
        As in `hockeystick.delta`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return draw_privacy(privacy_curves(runs, eps, **options), 0.0 if eps is not None else TAIL)


def tradeoff_curve(runs: Mapping[str, Any], fpr: Numbers | None = None, **options: Any) -> Figure:
    """Figure of the largest true positive rate over the false positive rate, both logarithmic, from 1e-12.

    Parameters and result as `privacy_curve`, options as in `hockeystick.tradeoff`.
    """
    return draw_tradeoff(tradeoff_curves(runs, fpr, **options))


def epsilon_over_steps(steps: Mapping[str, tuple[float, float]], k: Numbers, delta: float, **options: Any) -> Figure:
    """Figure of eps at `delta` while Poisson-subsampled Gaussian steps run.

    Parameters
    ----------
    steps : mapping
        From the name in the legend to (sigma, q).
    k : array_like of int
        Numbers of steps.
    delta : float
        In (0, 1).
    options
        As in `hockeystick.epsilon_batch`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return draw_steps(step_curves(steps, k, delta, **options), delta)


def draw_privacy(curves: list[Series], bottom: float = 0.0) -> Figure:
    """Figure of curves that are at hand, as `privacy_curve`, down to `bottom`."""
    figure, axes = _figure(r"$\varepsilon$", r"$\delta(\varepsilon)$")
    axes.set_yscale("log")
    floor = max(min(float(c.bound.upper[c.bound.upper > 0].min(initial=1.0)) for c in curves), 0.5 * bottom, 1e-300)
    curves = [c._replace(bound=_falling(c.x, c.bound)) for c in curves]
    _lines(axes, curves, floor, r"$\delta$")
    axes.set_ylim(bottom=floor * 0.5, top=1)
    return figure


def draw_tradeoff(curves: list[Series]) -> Figure:
    """Figure of curves that are at hand, as `tradeoff_curve`."""
    figure, axes = _figure("false positive rate", "largest true positive rate")
    axes.set_xscale("log")
    axes.set_yscale("log")
    x = curves[0].x
    axes.plot(x, x, color="0.55", linewidth=0.9, linestyle=":", label="no information", zorder=1)
    _lines(axes, curves, 1e-300, "rate")
    axes.set_ylim(top=1.3)
    return figure


def draw_steps(curves: list[Series], delta: float) -> Figure:
    """Figure of curves that are at hand, as `epsilon_over_steps`."""
    figure, axes = _figure("steps", rf"$\varepsilon$ at $\delta = {_power(delta)}$")
    _lines(axes, curves, 0.0, r"$\varepsilon$")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return figure


def draw_answers(lower: Numbers, estimate: Numbers, upper: Numbers) -> Figure:
    """Figure of the intervals of many queries, in their order."""
    figure, axes = _figure("query", "lower, estimate, upper")
    at = np.arange(len(lower))
    axes.vlines(at, lower, upper, color=COLOURS[0], linewidth=1.4)
    axes.plot(at, estimate, ".", color=COLOURS[1], markersize=4)
    return figure


def draw_records(eps: NDArray[np.float64], delta: float) -> Figure:
    """Figure of how eps at `delta` is spread over the records: upper bounds, ex post."""
    figure, axes = _figure(rf"individual $\varepsilon$ at $\delta = {_power(delta)}$ (upper bound, ex post)", "records")
    axes.hist(eps, bins=min(100, max(10, int(np.sqrt(eps.size)))), color=COLOURS[0])
    return figure


def _figure(x: str, y: str) -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'hockeystick[plot]'") from error
    figure = Figure(figsize=(5.0, 3.4), dpi=200, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _lines(axes, curves: list[Series], floor: float, what: str) -> None:
    widest = 0.0
    for i, curve in enumerate(curves):
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]
        # below the picture
        low, high = (np.maximum(end, 1e-3 * floor) for end in (curve.bound.lower, curve.bound.upper))
        axes.fill_between(curve.x, low, high, color=colour, alpha=0.25, linewidth=0)
        estimate = np.clip(curve.bound.estimate, low, high)
        sure = curve.bound.upper - curve.bound.lower <= SURE * curve.bound.estimate
        axes.plot(
            curve.x, np.where(sure, estimate, np.nan), color=colour, linestyle=dash, linewidth=1.4, label=curve.name
        )
        if not sure.all():
            for end in (low, high):
                axes.plot(curve.x, np.where(sure, np.nan, end), color=colour, linewidth=0.6)
        shown = (curve.bound.upper >= floor) & (curve.bound.estimate > 0)
        width = (curve.bound.upper - curve.bound.lower)[shown] / curve.bound.upper[shown]
        widest = max(widest, float(width.max(initial=0.0)))
    share = f"${_power(float(f'{widest:.0e}'))}$" if widest < 0.01 else f"{widest:.0%}"
    title = f"certified, {what} within {share}" if widest else "certified"
    axes.legend(frameon=False, fontsize="small", title=title, title_fontsize="small", alignment="left")


def _falling(x: NDArray[Any], bound: Bound[Any]) -> Bound[Any]:
    """What the ends at other points add where some are wide: delta does not increase."""
    order = np.argsort(x)
    low, mid, high = (np.array(end)[order] for end in (bound.lower, bound.estimate, bound.upper))
    low, high = np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)
    back = np.argsort(order)
    return Bound(low[back], np.clip(mid, low, high)[back], high[back], bound.route, bound.certified, bound.budget)


def _power(x: float) -> str:
    digits, _, power = f"{x:.3g}".partition("e")
    return f"{digits} \\cdot 10^{{{int(power)}}}".removeprefix("1 \\cdot ") if power else digits


def _named(runs) -> dict:
    if not isinstance(runs, Mapping) or not runs:
        raise DomainError(f"runs must be a mapping from names to runs, got {runs!r}")
    return {str(name): as_run(run) for name, run in runs.items()}
