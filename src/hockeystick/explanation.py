"""How an answer was obtained: which routes were asked, what each said, and which steps the answer is made of."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from . import query, worst
from .answers import Point
from .arguments import exp_lower, exp_upper, respelled
from .bound import AccuracyError, Bound, DomainError
from .routes import contour, moments
from .routes.saddlepoint import saddlepoint_delta
from .what.mechanism import Mechanism, Run, as_run, real

if TYPE_CHECKING:
    from .types import Adjacency, Direction, Ran, Route

SHARES = 64
"""Distinct steps whose shares are told apart; more would say little and take long."""


class Tried(NamedTuple):
    """One route asked in one direction: its interval, None where it declined, why it declined, and the time it took."""

    route: str
    direction: str
    lower: float | None
    upper: float | None
    why: str
    seconds: float


class Share(NamedTuple):
    """A distinct step, how often it ran, and its part of the cumulant K(t) at the saddle point, which adds up over
    steps."""

    step: Mechanism
    steps: int
    share: float


class Explanation(NamedTuple):
    """How an answer was obtained; str() of it is a page of text.

    Attributes
    ----------
    bound : Bound
        The answer, with its route and budget.
    query, at, adjacency, direction
        What was asked: "epsilon" at a delta, or "delta" at an eps.
    tried : tuple of Tried
        The routes asked, in order; of runs with random allocation each is followed by the ways that it went ("line",
        "transform", "parts", "option", ..), with their times. Empty where the range of the loss alone gives the answer,
        and for runs that leave a size or a group open (`bound.note` says how those are answered).
    tilt : float or None
        The saddle point t > 0: where e^{-eps t} M(t) is least, M the moment generating function of the loss. The line
        of the contour crosses the real axis near it.
    contour : str
        "line" or "hyperbola" and the number of nodes, where the route is the contour of a run of Gaussian steps; else
        empty.
    nodes : int
        Nodes of that contour; 0 where there is none.
    steps : tuple of Share
        What each distinct step adds, the largest share first; empty without a saddle point.
    """

    bound: Bound[float]
    query: str
    at: float
    adjacency: str
    direction: str
    tried: tuple[Tried, ...]
    tilt: float | None
    contour: str
    nodes: int
    steps: tuple[Share, ...]

    def __str__(self) -> str:
        given = "delta" if self.query == "epsilon" else "eps"
        ends = f"[{self.bound.lower!r}, {self.bound.upper!r}]"
        lines = [f"{self.query} at {given}={self.at!r} lies in {ends} ({self.adjacency}, direction {self.direction})"]
        lines.append(f"route: {self.bound.route}" + (f", {self.contour} of {self.nodes} nodes" if self.contour else ""))
        terms = ", ".join(f"{name} {float(term):.2g}" for name, term in self.bound.budget.terms.items())
        lines.append(f"error terms ({self.bound.budget.unit}): {terms or 'none'}")
        if self.bound.note:
            lines.append(f"note: {self.bound.note}")
        if self.tilt is not None:
            lines.append(f"saddle point: t = {self.tilt:.6g}, as Renyi order {1 + self.tilt:.6g}")
        lines.append("routes asked:" if self.tried else "routes asked: none; the range of the loss gives the answer")
        for each in self.tried:
            said = (
                f"[{each.lower:.17g}, {each.upper:.17g}]"
                if each.lower is not None
                else f"declined{each.why and ': ' + each.why}"
            )
            lines.append(f"  {each.direction:<7}{each.route:<12}{1e3 * each.seconds:8.3f} ms  {said}")
        if self.steps:
            lines.append("steps, by their share of the cumulant of the loss at t:")
            lines += [f"  {each.share:7.2%}  {each.steps} x {each.step!r}" for each in self.steps[:SHARES]]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All but the bound, of dicts, lists, strings and numbers."""
        tried = [each._asdict() for each in self.tried]
        steps = [{"step": repr(step), "steps": k, "share": share} for step, k, share in self.steps]
        return {"tried": tried, "tilt": self.tilt, "contour": self.contour, "nodes": self.nodes, "steps": steps}


class _Traced(query._Settings):
    """Settings that keep what the routes say."""

    __slots__ = ("tried",)
    tried: list[Tried]

    def _at_once(self, have_eps: int, at: float) -> None:
        """Each direction on its own, also where the answer takes one call over both."""

    def _ask(self, name: str, have_eps: int, add: int, at: float):
        self.why, start, first = "", time.perf_counter(), len(self.tried)
        found = super()._ask(name, have_eps, add, at)
        seconds = time.perf_counter() - start
        self.tell(name, add, found, seconds)
        self.tried.insert(first, self.tried.pop())  # before the ways that it went
        return found

    def tell(self, way: str, add: int, found, seconds: float) -> None:
        low = high = None
        if found:
            low, high = float(found.lower), float(found.upper)
            if isinstance(found, Point):
                low, high = exp_lower(low), exp_upper(high)
        why = "" if found else self.why
        self.tried.append(Tried(way, "add" if add else "remove", low, high, why, seconds))


@respelled(epsilon="eps")
def explain(
    run: Ran,
    *,
    eps: float | None = None,
    delta: float | None = None,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    route: Route = "auto",
    rtol: float | None = None,
    n_threads: int = 1,
) -> Explanation:
    """How delta(eps) or eps(delta) of a run is obtained: routes asked and what they said, saddle point, nodes, shares
    of steps.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    eps, delta : float
        One of the two: delta at this `eps`, in nats, or eps at this `delta`, in (0, 1).
    adjacency, direction, route, rtol, n_threads
        As in `hockeystick.delta`.

    Returns
    -------
    Explanation
        `bound` is the certified answer of `hockeystick.delta` or `hockeystick.epsilon`. The intervals of `tried` are
        certified too; `tilt`, `steps` and times are estimates, the latter of what was asked once before: the log
        has those of a first answer.

    Raises
    ------
    DomainError, AccuracyError
        As in `hockeystick.delta`; DomainError also unless exactly one of `eps` and `delta` is given.

    References
    ----------
    [AGH+22] for the saddle point; csrc/line/contour.c for the contour.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000 + hs.gaussian(20.0) * 10
    >>> found = hs.explain(run, delta=1e-5)
    >>> found.bound.route, found.contour, [round(each.share, 1) for each in found.steps]
    ('contour', 'line', [0.9, 0.1])
    """
    if (eps is None) == (delta is None):
        raise DomainError(f"give either eps or delta, got eps={eps!r}, delta={delta!r}")
    run = as_run(run)
    asked, name, value = ("epsilon", "delta", delta) if eps is None else ("delta", "eps", eps)
    at = real(name, value, "and one number")
    options: dict[str, Any] = dict(
        adjacency=adjacency, direction=direction, route=route, rtol=rtol, n_threads=n_threads
    )
    bound = (query.epsilon if eps is None else query.delta)(run, at, **options)
    tried: list[Tried] = []
    tilt, shape = None, None
    steps: tuple[Share, ...] = ()
    if not worst.unsettled(run, adjacency):
        settings = _Traced(run, adjacency, direction, route, rtol, n_threads)
        settings.tried = tried
        settings.root(at) if eps is None else settings.point(at)
        where = bound.estimate if eps is None else at
        add = settings.directions[0]
        tilt = _tilt(run, where, adjacency, add)
        if settings.steps is not None and settings.total > 1 and "contour" in bound.route:
            shape = contour.shape(settings.steps, add, where, settings.goal, settings.n_threads)
        steps = () if tilt is None else _shares(run, adjacency, add, tilt)
    return Explanation(bound, asked, at, adjacency, direction, tuple(tried), tilt, *(shape or ("", 0)), steps)


def _tilt(run: Run, eps: float, adjacency: Adjacency, add: int) -> float | None:
    """The saddle point at eps, or None where there is none."""
    try:
        tilt = float(saddlepoint_delta(run, eps, adjacency=adjacency, direction="add" if add else "remove").tilt)
    except (AccuracyError, DomainError):
        return None
    return tilt if 0 < tilt < math.inf else None


def _shares(run: Run, adjacency: str, add: int, tilt: float) -> tuple[Share, ...]:
    if len(run.parts) > SHARES:
        return ()
    try:
        found = [(step, k, moments.cumulant(Run(((step, k),)), adjacency, add, tilt).estimate) for step, k in run.parts]
    except (AccuracyError, DomainError):
        return ()
    total = math.fsum(value for _, _, value in found)
    shares = (Share(step, k, value / total) for step, k, value in found)
    return tuple(sorted(shares, key=lambda each: -each.share)) if total > 0 else ()
