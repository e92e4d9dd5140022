"""Route `saddlepoint`: the saddle-point accountant, a certified interval and an estimate at a cost that does not depend
on k.

Formulas and proofs are in saddlepoint.c, saddle_ends.c and saddle_step.c. Answers are those of answers.py; None
means that the route declines. The interval comes from a Berry-Esseen bound and from
moments: it is narrow, at best, like 1/sqrt(k), and far wider than the contour's. What it gives is an independent proof
in microseconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import Cumulant, Point, Root, Saddle
from ..arguments import numbers, one_of, respelled, shaped
from ..bound import AccuracyError, DomainError
from ..what.mechanism import as_run
from ..what.pair import ADJACENCIES, DIRECTIONS, gaussian_steps, losses
from .question import Question

TERMS = ("berry_esseen", "quadrature", "rounding", "interpolation", "skewness")
"""Relative to the estimate of delta, but for `skewness`: that of the tilted law at the saddle, see `SKEWED`."""

ESTIMATES = ("auto", "msd0", "msd1", "clt", "edgeworth", "msd_order2", "msd_order3")
SKEWED = 0.5
"""Skewness from which on no estimate is trusted: relative errors of 1e-2 to 2 were seen; below 0.1, "edgeworth" has
1e-5."""

MANY = 500
"""Distinct steps beyond which a rule stands for them: third moments of a rule are bounded by second and fourth ones, a
tenth larger, and the sum over so many steps takes milliseconds."""

_AUTO = 0


def point(steps: Rows, add: int, eps: float, kind: int = _AUTO):
    """A certified point of the curve."""
    answer = _ask(_core.saddle_ask, steps, add, 1, eps, kind)
    return answer and Point(*_interval(answer))


def root(steps: Rows, add: int, log_delta: float, kind: int = _AUTO):
    """A certified root of delta(eps) = e^log_delta."""
    answer = _ask(_core.saddle_ask, steps, add, 0, log_delta, kind)
    return answer and Root(*_interval(answer))


def of(question, have_eps: int, add: int, value: float):
    """The point, or the root, of a question about Gaussian steps, by a rule where they are many."""
    answer = _ruled(question, _core.saddle_ask, add, have_eps, value, _AUTO)
    return answer and (Point if have_eps else Root)(*_interval(answer))


def larger_root(question, log_delta: float, wall: float):
    """A certified root over both directions: the larger, in one pass. No loss of ADD exceeds `wall`."""
    answer = _ruled(question, _core.saddle_eps_both, log_delta, _AUTO, wall)
    return answer and Root(*_interval(answer))


def _ruled(question, function, *arguments) -> Saddle | None:
    """An answer of the first rule that has one, or of the steps."""
    for ruled in rules_of(question):
        answer = _ask(function, ruled.steps, *arguments)
        if answer:
            return answer
    return _ask(function, question.steps, *arguments)


def rules_of(question):
    """The rules of a question about so many steps that they are asked first."""
    return question.narrower_rules if question.run.distinct > MANY else ()


def _ask(function, steps: Rows, *arguments) -> Saddle | None:
    answer = scratch.lend(_core.saddle_work(), function, steps, *arguments)
    return answer if answer.status == _core.OK else None


def _interval(answer: Saddle):
    """The fields of a Point or Root."""
    return answer.lower, answer.estimate, answer.upper, (*answer.terms, answer.skewness), "saddlepoint"


if TYPE_CHECKING:
    from ..types import Adjacency, Direction, Numbers, Ran


class SaddlepointEstimate(NamedTuple):
    """An estimate of delta(eps), never a bound. Fields have the shape of `eps`.

    log_delta : natural logarithm of the estimate; it does not underflow.
    estimate : name of the formula that was used.
    tilt : the saddle point t > 0.
    skewness : max(|K3|/K2^1.5, |K4|^0.5/K2) of the tilted law there.
    trusted : skewness < 0.5. Where False, the law is not in the regime of any of these formulas: ask the contour route.
    """

    log_delta: Any
    estimate: Any
    tilt: Any
    skewness: Any
    trusted: Any

    @property
    def delta(self) -> Any:
        """The estimate itself."""
        found = np.exp(self.log_delta)  # of numbers as well: that of `math` may round otherwise
        return float(found) if isinstance(self.log_delta, float) else found


@respelled(epsilon="eps")
def saddlepoint_delta(
    run: Ran,
    eps: float | Numbers,
    *,
    estimate: Literal["auto", "msd0", "msd1", "msd_order2", "msd_order3", "clt", "edgeworth"] = "auto",
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
) -> SaddlepointEstimate:
    """Saddle-point estimate of the privacy curve: e^{K(t) - eps t} E_t f at the saddle, by one of six formulas.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    eps : float or array_like
        Finite real numbers, in nats.
    estimate : str, default "auto"
        "msd0", "msd1" : steepest descent, leading order and with all terms of order 1/k.
        "msd_order2", "msd_order3" : the series cut after its second and third bracket term, as the published code cuts
        it. "clt" : the tilted law replaced by a normal law. "edgeworth" : the same with the two leading Edgeworth
        corrections. "auto" : "edgeworth" where the skewness is below 0.5, else "clt".
    adjacency : "add_remove", "replace_one" or "zero_out"
        Neighbouring relation.
    direction : "both", "remove" or "add"
        Which of the two curves; "both", the default, is the larger estimate.

    Returns
    -------
    SaddlepointEstimate
        An estimate, never a bound; `trusted` says whether the law is in its regime. The certified interval is
        ``hs.delta(run, eps, route="saddlepoint")``.

    Raises
    ------
    DomainError
        For arguments outside their domain.
    AccuracyError
        Where no saddle is found (delta is 0 beyond the largest loss), or the formula gives no positive number.

    References
    ----------
    [AGH+22, eqs 60, 61, 64, 66]; csrc/clt/saddle_ends.c.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(2.0), 0.01) * 3000
    >>> guess = hs.saddlepoint_delta(run, 1.0)
    >>> guess.estimate, guess.trusted, abs(guess.delta / 4.648530662351807e-05 - 1) < 1e-6
    ('edgeworth', True, True)
    """
    one_of("estimate", estimate, ESTIMATES)
    one_of("adjacency", adjacency, ADJACENCIES)
    one_of("direction", direction, DIRECTIONS)
    run, kind = as_run(run), ESTIMATES.index(estimate)
    if not run.steps:
        raise DomainError("an empty run has no saddle point; compose one or more steps")
    asked = Question(run, adjacency, False, None, 1)
    ruled = next(iter(rules_of(asked)), None)
    steps = ruled.steps if ruled else asked.steps

    def at(side: str, e: float):
        if steps is not None:
            answer = _ask(_core.saddle_ask, steps, int(side == "add"), 1, e, kind)
            return answer and (answer.raw, answer.kind, answer.tilt, answer.skewness)
        from . import saddle_laws

        return saddle_laws.estimate(losses(run, adjacency, side), e, kind)

    def larger(e: float):
        found = [at(side, e) for side in (("remove", "add") if direction == "both" else (direction,))]
        return max(
            (each for each in found if each),
            key=lambda each: math.inf if math.isnan(each[0]) else each[0],
            default=None,
        )

    found = [_checked(larger(e), e) for e in numbers("eps", eps, "a finite number", -math.inf, math.inf)]
    return SaddlepointEstimate(*(shaped(column, eps) for column in zip(*found, strict=True)))


def _checked(found, eps: float):
    if found is None:
        raise AccuracyError(f"no saddle point for eps={eps!r}: delta may be 0 there; hs.delta has other ways")
    log_delta, used, tilt, skewness = found
    if math.isnan(log_delta):
        raise AccuracyError(
            f"{ESTIMATES[used]!r} gives no positive delta at eps={eps!r} (skewness {skewness:.2g}); try 'clt'"
        )
    return log_delta, ESTIMATES[used], tilt, skewness, skewness < SKEWED


def gaussian_family(run, adjacency) -> Rows:
    """The run as Gaussian steps, or a DomainError that says what this route takes."""
    run = as_run(run)
    steps = gaussian_steps(run, adjacency)
    if steps is None or not steps.k.size:
        raise DomainError(
            f"this function takes runs of one or more (subsampled) Gaussian steps under adjacency 'add_remove', "
            f"got {run!r} under {adjacency!r}"
        )
    return steps


def gaussian_cumulant(steps: Rows, add: int, t: float) -> Cumulant:
    """K(t) of Gaussian steps, sampled or not."""
    status, sums = scratch.lend(_core.saddle_work(), _core.saddle_cumulants, steps, add, t)
    if status:
        raise AccuracyError(
            f"the divergence of order alpha={1 + t!r} is beyond the quadrature; try a smaller order", status
        )
    value, error, *_, quadrature = sums[:14].tolist()
    return Cumulant.within(error, value, quadrature)
