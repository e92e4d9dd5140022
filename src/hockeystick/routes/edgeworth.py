"""Route `edgeworth`: the Edgeworth accountant's estimates, and certified intervals from Prawitz' inequality and
finite-sample constants, at a cost that does not depend on k.

Estimates (AEA, orders 0 to 3, edgeworth.c) are never bounds [theory: edgeworth.expansion]: they can lie on either side
of the truth and are clamped to [0, 1]. Intervals: Prawitz' inequality with the characteristic function summed
numerically (csrc/line/prawitz.c), never above Chernoff's bound; where that is wider than any finite-sample constant
could be, intersected with EEAI (eeai.py), the estimate of order 1 with a proved uniform error.

Steps are Gaussian or Laplace mechanisms, Poisson-subsampled or not, in any mixture. A point is (log_lower,
log_estimate, log_upper, terms, "edgeworth") of delta, a root is (lower, estimate, upper, terms, "edgeworth") of eps;
`terms` are relative to delta and follow TERMS. None means that the route declines."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import Point, Root, larger
from ..arguments import exp_lower, exp_upper, respelled
from ..bound import AccuracyError, Bound, Budget
from ..outward import log_floor, log_slack
from ..what.mechanism import positive, within
from . import bounds, eeai
from .contour import NARROW, RTOL, SMALL_SHARE, margin
from .eeai import eeai_delta, eeai_epsilon
from .loss_steps import (
    FORMS,
    NO_RULE,
    LossSteps,
    directions_of,
    each,
    estimators,
    loss_steps,
    steps_of,
    support,
    value_of,
)
from .saddlepoint import rules_of

__all__ = [
    "FORMS",
    "aea_delta",
    "aea_epsilon",
    "eeai_delta",
    "eeai_epsilon",
    "loss_steps",
    "point",
    "prawitz_delta",
    "prawitz_epsilon",
    "root",
    "steps_of",
]

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ..types import Direction, Expansion, Numbers, Ran, Smoothing

    Form = Literal["one_sequence", "two_sequence"]

TERMS = ("smoothing", "aliasing", "truncation", "inner_quadrature", "rounding", "interpolation", "finite_sample")
_VACUOUS = (math.inf,) * len(TERMS)
CONSTANT, WIDE = 0.1, 1e-6
"""Finite-sample constants, which take milliseconds, are asked where Prawitz' interval is wider than WIDE relative to
delta, and half of it wider than CONSTANT/k: no constant is smaller (0.327 (1/12 + 1/4) K4/k is part of each, and K4 >=
1)."""


# -- estimates ---------------------------------------------------------------------------------------------------------


@overload
def aea_delta(run: Ran, eps: float, **options: Unpack[Expansion]) -> float: ...
@overload
def aea_delta(run: Ran, eps: Numbers, **options: Unpack[Expansion]) -> NDArray[np.float64]: ...
@respelled(epsilon="eps")
def aea_delta(
    run: Ran, eps: float | Numbers, *, direction: Direction = "both", order: int = 3, form: Form = "one_sequence"
) -> Any:
    """Edgeworth estimate of delta(eps), clamped to [0, 1]. Not a bound: it may lie below the truth.

    Form "two_sequence" is the published 1 - F_Y(eps) - e^eps (1 - F_X(eps)), each distribution function by its own
    expansion; "one_sequence" integrates the expansion of the loss alone, int e^(eps-x) P(Y > x) dx, without the factor
    e^eps on an error.

    Parameters
    ----------
    run : Run, Mechanism or LossSteps
        Gaussian and Laplace steps, subsampled or not.
    eps : float or array_like
        Finite, in nats.
    direction : "both", "remove" or "add"
        "both" is the larger of the two estimates.
    order : 0, 1, 2 or 3
        Terms of the expansion; its error is O(k^(-(order+1)/2)) near the mean of the loss. Far in the tail more terms
        need not help.
    form : "one_sequence" or "two_sequence"

    Returns
    -------
    float or ndarray
        Estimates, of the shape of `eps`.

    Raises
    ------
    DomainError
        For arguments outside their domain; for steps of other families.

    References
    ----------
    [WGZ22, Def. 4.1]; csrc/clt/edgeworth.c.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 200
    >>> f"{edgeworth.aea_delta(run, 1.0, direction='remove'):.6f}"
    '0.095648'
    """
    curves = estimators(run, direction, order, form)
    return each(
        "eps", eps, -math.inf, math.inf, lambda e: max(min(1.0, value_of(Y, X, order, form, e)) for Y, X in curves)
    )


@overload
def aea_epsilon(run: Ran, delta: float, **options: Unpack[Expansion]) -> float: ...
@overload
def aea_epsilon(run: Ran, delta: Numbers, **options: Unpack[Expansion]) -> NDArray[np.float64]: ...
def aea_epsilon(
    run: Ran, delta: float | Numbers, *, direction: Direction = "both", order: int = 3, form: Form = "one_sequence"
) -> Any:
    """Edgeworth estimate of eps(delta): the largest eps at which `aea_delta` is `delta`, clipped at 0. Not a bound.

    Parameters
    ----------
    delta : float or array_like
        In (0, 1).
    run, direction, order, form
        As in `aea_delta`.

    Returns
    -------
    float or ndarray
        Estimates, of the shape of `delta`.

    Raises
    ------
    DomainError
        As in `aea_delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 200
    >>> f"{edgeworth.aea_epsilon(run, 0.1):.4f}"
    '0.9710'
    """
    curves = estimators(run, direction, order, form)
    return each(
        "delta",
        delta,
        0.0,
        1.0,
        lambda d: max(max(0.0, _core.edgeworth_eps(Y, X, FORMS[form], order, math.log(d))) for Y, X in curves),
    )


# -- certified intervals -----------------------------------------------------------------------------------------------


def point(steps, add: int, eps: float, rtol: float = RTOL, *, order=3, form="one_sequence", limit=0.0):
    """A certified point of the curve, or None. The estimate is the accountant's, moved into the interval; where that is
    narrow (WIDE), the inversion's own. `limit` is Prawitz' T, 0 to have it chosen. Proof: csrc/line/prawitz.c."""
    steps = steps_of(steps)
    edge = _beyond_support(steps, add, eps)
    if edge:
        return edge
    answer = _call(1, steps.rows, add, eps, rtol, limit, steps.rule)
    log_lower, estimate, log_upper, terms, _ = _smoothed_point(answer)
    if not limit and _wide(steps, math.exp(log_upper), math.exp(log_upper) - math.exp(log_lower)):
        low, high, constant = eeai.point(steps, add, eps)
        log_lower = max(log_lower, math.nextafter(math.log(low), -math.inf) if low > 0 else -math.inf)
        log_upper = min(log_upper, math.nextafter(math.log(high), math.inf) if high > 0 else -math.inf)
        terms = (*terms[:-1], constant / max(math.exp(log_upper), 1e-300))
    if log_lower == -math.inf:
        other = bounds.moments_point(steps.rows, add, eps) if steps.all_gaussian else None
        if other is None and answer is None:
            return None
        if other:
            log_lower, log_upper = other.lower, min(log_upper, other.upper)
    if log_upper - log_lower > WIDE:
        Y, X = steps.totals[add]
        log_scale, value = _core.edgeworth_delta(Y, X, FORMS[form], order, eps)  # [theory: edgeworth.expansion]
        estimate = log_scale + math.log(value) if value > 0 else -math.inf
    return Point(log_lower, min(max(estimate, log_lower), log_upper), log_upper, terms, "edgeworth")


def root(steps, add: int, log_delta: float, rtol: float = RTOL, *, order=3, form="one_sequence", limit=0.0):
    """A certified root of delta(eps) = e^log_delta, or None: certified deltas lie on both sides. Arguments as in
    `point`."""
    steps = steps_of(steps)
    answer = _call(0, steps.rows, add, log_delta, rtol, limit, steps.rule)
    lower, estimate, upper, terms, _ = _smoothed_root(answer)
    delta, slack = math.exp(log_delta), log_slack(log_delta)
    if not limit and upper < math.inf and _wide(steps, delta, 2 * sum(terms) * delta):
        low, high, constant = eeai.root(steps, add, delta * (1 + slack), delta * (1 - slack), max(upper, 0.0))
        lower, upper = max(lower, low), min(upper, high) if high > 0 else upper
        terms = (*terms[:-1], constant / delta)
    if lower == -math.inf:
        _, high = support(steps, add)
        upper = min(upper, high)
        other = bounds.moments_root(steps.rows, add, log_delta) if steps.all_gaussian else None
        if other:
            lower, upper = other.lower if other.lower > 0 else lower, min(upper, other.upper)  # other is clipped at 0
        if upper == math.inf:
            return None
    if upper - lower > WIDE * upper:
        Y, X = steps.totals[add]
        estimate = _core.edgeworth_eps(Y, X, FORMS[form], order, log_delta)
    return Root(lower, min(max(estimate, lower), upper), upper, terms, "edgeworth")


def ruled(question, have_eps: int, add: int, at: float) -> Any:
    """A point, or a root, by the first rule for many Gaussian steps whose own error does not show; of very many steps
    also by one where it does, if that is narrow enough for eeai.py to have nothing to say. None where there is none."""
    smoothed: Any = _smoothed_point if have_eps else _smoothed_root
    for rule in rules_of(question):
        found = smoothed(_call(have_eps, rule.steps, add, at, question.goal, 0.0))
        if found.lower == -math.inf or found.width > WIDE:
            continue
        fine = found.width <= NARROW or (
            found.width <= 2 * question.goal and SMALL_SHARE * found.terms[TERMS.index("interpolation")] < found.width
        )
        if fine or question.very_many:
            return found
    return None


def _smoothed_point(answer) -> Point:
    """Prawitz' interval alone; the whole range where there is none."""
    scale, lower, middle, upper, terms = answer or (0.0, 0.0, 0.0, 0.0, ())
    if not upper > 0:
        return Point(-math.inf, -math.inf, 0.0, _VACUOUS, "edgeworth")
    log_upper, estimate = scale + math.log(upper), scale + math.log(max(middle, 1e-300))
    slack = log_slack(scale, log_upper - scale)
    log_lower = scale + math.log(lower) - slack if lower > 0 else -math.inf
    terms = (*(t / (middle if lower > 0 else upper) for t in terms), 0.0)
    return Point(log_lower, estimate, min(0.0, log_upper + slack), terms, "edgeworth")


def _smoothed_root(answer) -> Root:
    """The same for eps(delta)."""
    if not answer:
        return Root(-math.inf, -math.inf, math.inf, _VACUOUS, "edgeworth")
    lower, estimate, upper, unit, terms = answer
    return Root(lower, estimate, upper, (*(t / unit if unit > 0 else math.inf for t in terms), 0.0), "edgeworth")


def _wide(steps: LossSteps, delta: float, width: float) -> bool:
    return width > WIDE * delta and width > 2 * CONSTANT / steps.total


def _call(have_eps: int, rows: Rows, add: int, at: float, rtol: float, limit: float, rule=NO_RULE):
    asked = rows, add, have_eps, at, *rule, margin(rtol), limit
    status, *found, _ = scratch.lend(_core.prawitz_work(), _core.prawitz_ask, *asked)
    return found if status <= _core.LOOSE else None


def _beyond_support(steps: LossSteps, add: int, eps: float):
    """Exact points where the loss cannot exceed eps (0) or cannot fall below it (1 - e^eps); None elsewhere."""
    low, high = support(steps, add)
    if eps >= high:
        return Point(-math.inf, -math.inf, -math.inf, (0.0,) * len(TERMS), "edgeworth")
    if eps <= low and eps < 0:
        return Point(*log_floor(eps), (0.0,) * len(TERMS), "edgeworth")
    return None


@overload
def prawitz_delta(run: Ran, eps: float, **options: Unpack[Smoothing]) -> Bound[float]: ...
@overload
def prawitz_delta(run: Ran, eps: Numbers, **options: Unpack[Smoothing]) -> Bound[NDArray[np.float64]]: ...
@respelled(epsilon="eps")
def prawitz_delta(
    run: Ran,
    eps: float | Numbers,
    *,
    direction: Direction = "both",
    limit: float | None = None,
    order: int = 3,
    form: Form = "one_sequence",
) -> Bound[Any]:
    """Certified delta(eps) from Prawitz' smoothing inequality under a tilt, intersected with Chernoff's bound.

    With T = `limit` the half-width is about 2 pi t (t/(1+t))^t delta/T, t the tilt; without one, T is chosen so that
    smoothing and what is not known of the characteristic function beyond the last node are least together.

    Parameters
    ----------
    eps : float
        Finite, in nats.
    limit : float, optional
        Prawitz' T > 0.
    run, direction, order, form
        As in `aea_delta`; order and form concern the estimate, and only where the interval is wide.

    Returns
    -------
    Bound
        Certified lower <= delta <= upper. `budget` lists the error terms relative to delta.

    Raises
    ------
    DomainError
        As in `aea_delta`.
    AccuracyError
        If no line of integration was found.

    References
    ----------
    [Pra72]; csrc/line/prawitz.c (proof).

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * 1000
    >>> b = edgeworth.prawitz_delta(run, 2.0, direction="remove", limit=1e4)
    >>> 8.68e-4 < b.lower <= 8.692002960669496e-4 <= b.upper < 8.71e-4
    True
    """
    eps, limit = within("eps", eps, -math.inf, math.inf, "()"), _limit(limit)
    estimators(run, direction, order, form)
    steps = steps_of(run)
    found = [point(steps, add, eps, order=order, form=form, limit=limit) for add in directions_of(steps, direction)]
    if None in found:
        raise AccuracyError(f"Prawitz' interval was not found at eps={eps!r}: hs.delta has other routes")
    best = functools.reduce(larger, found)
    return _bound((exp_lower(best.lower), math.exp(best.estimate), exp_upper(best.upper)), best.terms)


@overload
def prawitz_epsilon(run: Ran, delta: float, **options: Unpack[Smoothing]) -> Bound[float]: ...
@overload
def prawitz_epsilon(run: Ran, delta: Numbers, **options: Unpack[Smoothing]) -> Bound[NDArray[np.float64]]: ...
def prawitz_epsilon(
    run: Ran,
    delta: float | Numbers,
    *,
    direction: Direction = "both",
    limit: float | None = None,
    order: int = 3,
    form: Form = "one_sequence",
) -> Bound[Any]:
    """Certified eps(delta) by the inequality of `prawitz_delta`: certified deltas lie on both sides of the target.

    Parameters
    ----------
    delta : float
        In (0, 1).
    run, direction, limit, order, form
        As in `prawitz_delta`.

    Returns
    -------
    Bound
        Certified lower <= eps <= upper; `budget` is relative to delta at the estimate.

    Raises
    ------
    DomainError, AccuracyError
        As in `prawitz_delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> b = edgeworth.prawitz_epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 1e-5)
    >>> b.lower <= 1.828236666516577 <= b.upper and b.upper - b.lower < 1e-10
    True
    """
    delta, limit = within("delta", delta, 0, 1, "()"), _limit(limit)
    estimators(run, direction, order, form)
    steps = steps_of(run)
    found = [
        root(steps, add, math.log(delta), order=order, form=form, limit=limit)
        for add in directions_of(steps, direction)
    ]
    if None in found:
        raise AccuracyError(f"Prawitz' interval was not found at delta={delta!r}: hs.epsilon has other routes")
    best = functools.reduce(larger, found)
    return _bound([max(0.0, end) for end in (best.lower, best.estimate, best.upper)], best.terms)


def _limit(limit) -> float:
    if limit is None:
        return 0.0
    return positive("limit", limit)


def _bound(ends, terms) -> Bound:
    lower, estimate, upper = ends
    return Bound(lower, estimate, upper, "edgeworth", True, Budget(dict(zip(TERMS, terms, strict=True))))
