"""Route `edgeworth`: the Edgeworth accountant's estimates, and certified intervals from Prawitz' inequality and finite-sample
constants, at a cost that does not depend on k.

Estimates (AEA, orders 0 to 3, csrc/edgeworth.c) are never bounds: they can lie on either side of the truth and are clamped to
[0, 1]. Intervals: Prawitz' inequality with the characteristic function summed numerically (csrc/prawitz.c), never above Chernoff's
bound; and EEAI, the estimate of order 1 with a proved uniform error (finite_sample.py), which is vacuous until k is very large.

Steps are Gaussian or Laplace mechanisms, Poisson-subsampled or not, in any mixture. A point is (log_lower, log_estimate, log_upper,
terms, "edgeworth") of delta, a root is (lower, estimate, upper, terms, "edgeworth") of eps; `terms` are relative to delta and
follow TERMS. None means that the route declines.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..bound import AccuracyError, Bound, Budget, DomainError
from ..mechanism import Gaussian, PoissonSubsampled, as_run, real
from ..pair import DIRECTIONS
from . import finite_sample
from .contour import RTOL, borrow, give_back

TERMS = ("smoothing", "aliasing", "truncation", "inner_quadrature", "rounding")
ORDERS = (0, 1, 2, 3)
FORMS = {"one_sequence": 1, "two_sequence": 2}
GAUSSIAN, LAPLACE = 0, 1
U = 2.0**-53


class LossSteps(NamedTuple):
    """Steps as arrays of equal length: m = sensitivity/sigma or sensitivity/scale, sampling rate q (1: none), count k, and the
    family (numpy.intc: GAUSSIAN or LAPLACE)."""

    shift: np.ndarray
    q: np.ndarray
    k: np.ndarray
    family: np.ndarray


def loss_steps(*rows: tuple[float, float, float, int]) -> LossSteps:
    """LossSteps from rows (m, q, k, family)."""
    table = np.array(rows, dtype=float).reshape(-1, 4).T
    return LossSteps(*(np.ascontiguousarray(column) for column in table[:3]), np.ascontiguousarray(table[3], dtype=np.intc))


def steps_of(run) -> LossSteps:
    """The steps of a run (or of GaussianSteps), cached on it. DomainError where a step is neither Gaussian nor Laplace."""
    if isinstance(run, LossSteps):
        return run
    if isinstance(run, tuple):
        return LossSteps(*run[:3], np.zeros(run[0].size, np.intc))
    run = as_run(run)
    cached = run._cache.get("edgeworth")
    if cached is None:
        cached = run._cache["edgeworth"] = loss_steps(*(_row(step, k) for step, k in run.parts))
    return cached


def _row(step, k: int) -> tuple[float, float, float, int]:
    q = 1.0
    if isinstance(step, PoissonSubsampled):
        q, step = step.q, step.base
    if isinstance(step, Gaussian):
        return step.sensitivity / step.sigma, q, k, GAUSSIAN
    if type(step).__name__ == "Laplace":
        return step.sensitivity / step.scale, q, k, LAPLACE
    raise DomainError(f"the route 'edgeworth' takes Gaussian and Laplace steps, subsampled or not; got {step!r}: ask another route")


@functools.cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre rule for the Laplace density: 32 nodes on panels of length at most 2 (csrc/laplace_step.c)."""
    x, w = np.polynomial.legendre.leggauss(32)
    return np.ascontiguousarray(x), np.ascontiguousarray(w)


def totals(steps: LossSteps, add: int) -> tuple[np.ndarray, np.ndarray]:
    """(Y, X): mean and cumulants 2 to 5 of the composed loss under num and under den."""
    return _core.edgeworth_totals(steps.family, steps.shift, steps.q, steps.k, add, *_rule())


def support(steps: LossSteps, add: int) -> tuple[float, float]:
    """Essential infimum and supremum of the composed loss, off by at most 16u (1 + |value|) b."""
    m, q, k, family = steps
    laplace = family == LAPLACE
    with np.errstate(divide="ignore", over="ignore"):
        low = np.where(laplace, np.log1p(q * np.expm1(-m)), np.log1p(-q))
        high = np.where(laplace, np.log1p(q * np.expm1(np.where(laplace, m, 0))), math.inf)
    low, high = float(np.dot(k, low)), float(np.dot(k, high))
    return (-high, -low) if add else (low, high)


# -- estimates ------------------------------------------------------------------------------------------------------------


def aea_delta(run, eps, *, direction="both", order=3, form="one_sequence"):
    """Edgeworth estimate of delta(eps), clamped to [0, 1]. Not a bound: it may lie below the truth.

    Form "two_sequence" is the published 1 - F_Y(eps) - e^eps (1 - F_X(eps)), each distribution function by its own expansion;
    "one_sequence" integrates the expansion of the loss alone, int e^(eps-x) P(Y > x) dx, without the factor e^eps on an error.

    Parameters
    ----------
    run : Run, Mechanism or LossSteps
        Gaussian and Laplace steps, subsampled or not.
    eps : float or array_like
        Finite, in nats.
    direction : "both", "remove" or "add"
        "both" is the larger of the two estimates.
    order : 0, 1, 2 or 3
        Terms of the expansion; its error is O(k^(-(order+1)/2)) near the mean of the loss. Far in the tail more terms need not help.
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
    [WGZ22, Def. 4.1]; csrc/edgeworth.c.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 200
    >>> f"{edgeworth.aea_delta(run, 1.0, direction='remove'):.6f}"
    '0.095648'
    """
    curves = _estimators(run, direction, order, form)
    return _each("eps", eps, -math.inf, math.inf, lambda e: max(min(1.0, _value(Y, X, order, form, e)) for Y, X in curves))


def aea_epsilon(run, delta, *, direction="both", order=3, form="one_sequence"):
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
    '0.9706'
    """
    curves = _estimators(run, direction, order, form)
    return _each(
        "delta",
        delta,
        0.0,
        1.0,
        lambda d: max(max(0.0, _core.edgeworth_eps(Y, X, FORMS[form], order, math.log(d))) for Y, X in curves),
    )


def _estimators(run, direction, order, form):
    if isinstance(order, bool) or order not in ORDERS:
        raise DomainError(f"order must be 0, 1, 2 or 3, got {order!r}")
    if not isinstance(form, str) or form not in FORMS:
        raise DomainError(f"form must be one of {', '.join(map(repr, FORMS))}, got {form!r}")
    steps = steps_of(run)
    if not steps.k.size:
        raise DomainError("an empty run has no expansion: its delta is max(0, 1 - e^eps) exactly")
    return [totals(steps, add) for add in _directions(steps, direction)]


def _value(Y, X, order: int, form: str, eps: float) -> float:
    log_scale, value = _core.edgeworth_delta(Y, X, FORMS[form], order, eps)
    return math.exp(min(700.0, log_scale)) * value if value > 0 else 0.0


def _directions(steps: LossSteps, direction) -> tuple[int, ...]:
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise DomainError(f"direction must be one of {', '.join(map(repr, DIRECTIONS))}, got {direction!r}")
    if direction == "both":
        return (0,) if (steps.q == 1).all() else (0, 1)
    return (1,) if direction == "add" else (0,)


def _each(name: str, value, lo: float, hi: float, answer):
    """answer(x) for every entry of `value`, in its shape; entries are real and strictly between lo and hi."""
    allowed = f"in ({lo:g}, {hi:g})"
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise DomainError(f"{name} must hold real numbers, got an array of {array.dtype}")
        return np.array([_each(name, float(x), lo, hi, answer) for x in array.ravel()]).reshape(array.shape)
    x = real(name, value, allowed)
    if not lo < x < hi:
        raise DomainError(f"{name} must be {allowed}, got {x!r}")
    return answer(x)


# -- certified intervals --------------------------------------------------------------------------------------------------


def point(steps, add: int, eps: float, rtol: float = RTOL, n_threads: int = 1, *, order=3, form="one_sequence", limit=0.0):
    """A certified point of the curve, or None. The estimate is the accountant's, moved into the interval. `limit` is Prawitz'
    T, 0 to have it chosen. One thread: `n_threads` is accepted for the other routes' sake. Proof: csrc/prawitz.c."""
    steps = steps_of(steps)
    edge = _beyond_support(steps, add, eps)
    if edge:
        return edge
    answer = _call(_core.prawitz_delta, steps, add, eps, rtol, limit)
    if answer is None:
        return None
    _, scale, lower, middle, upper, terms, _ = answer
    log_upper = scale + math.log(upper)
    slack = 4 * U * (2 + abs(scale) + abs(log_upper - scale))
    log_lower = scale + math.log(lower) - slack if lower > 0 else -math.inf
    log_upper = min(0.0, log_upper + slack)
    log_scale, value = _core.edgeworth_delta(*totals(steps, add), FORMS[form], order, eps)
    estimate = log_scale + math.log(value) if value > 0 else -math.inf
    unit = middle if lower > 0 else upper
    return log_lower, min(max(estimate, log_lower), log_upper), log_upper, tuple(t / unit for t in terms), "edgeworth"


def root(steps, add: int, log_delta: float, rtol: float = RTOL, n_threads: int = 1, *, order=3, form="one_sequence", limit=0.0):
    """A certified root of delta(eps) = e^log_delta, or None: certified deltas lie on both sides. Arguments as in `point`."""
    steps = steps_of(steps)
    answer = _call(_core.prawitz_eps, steps, add, log_delta, rtol, limit)
    if answer is None:
        return None
    _, lower, _, upper, unit, terms, _ = answer
    low, high = support(steps, add)
    room = 16 * U * steps.k.size
    upper = min(upper, high + room * (1 + abs(high)))
    estimate = _core.edgeworth_eps(*totals(steps, add), FORMS[form], order, log_delta)
    return lower, min(max(estimate, lower), upper), upper, tuple(t / unit if unit > 0 else math.inf for t in terms), "edgeworth"


def _call(kernel, steps: LossSteps, add: int, at: float, rtol: float, limit: float):
    work = borrow(_core.prawitz_work())
    try:
        margin = min(31.0, 12.0 - math.log(rtol))
        answer = kernel(steps.family, steps.shift, steps.q, steps.k, add, *_rule(), at, margin, limit, work)
    finally:
        give_back(work)
    return answer if answer[0] <= 1 else None


def _beyond_support(steps: LossSteps, add: int, eps: float):
    """Exact points where the loss cannot exceed eps (0) or cannot fall below it (1 - e^eps); None elsewhere."""
    low, high = support(steps, add)
    room = 16 * U * (steps.k.size + 1)
    if eps >= high + room * (1 + abs(high)):
        return -math.inf, -math.inf, -math.inf, (0.0,) * len(TERMS), "edgeworth"
    if eps <= low - room * (1 + abs(low)) and eps < 0:
        value = math.log(-math.expm1(eps))
        slack = 4 * U * (1 + abs(value))
        return value - slack, value, min(value + slack, 0.0), (0.0,) * len(TERMS), "edgeworth"
    return None


def prawitz_delta(run, eps, *, direction="both", limit=None, order=3, form="one_sequence") -> Bound:
    """Certified delta(eps) from Prawitz' smoothing inequality under a tilt, intersected with Chernoff's bound.

    With T = `limit` the half-width is about 2 pi t (t/(1+t))^t delta/T, t the tilt; without one, T is chosen so that smoothing and
    what is not known of the characteristic function beyond the last node are least together.

    Parameters
    ----------
    eps : float
        Finite, in nats.
    limit : float, optional
        Prawitz' T > 0.
    run, direction, order, form
        As in `aea_delta`; order and form concern the estimate only.

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
    [Pra72]; csrc/prawitz.c (proof).

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * 1000
    >>> b = edgeworth.prawitz_delta(run, 2.0, direction="remove", limit=1e4)
    >>> 8.68e-4 < b.lower <= 8.692002960669496e-4 <= b.upper < 8.71e-4
    True
    """
    eps, limit = real("eps", eps, "in nats"), _limit(limit)
    _estimators(run, direction, order, form)
    steps = steps_of(run)
    if not math.isfinite(eps):
        raise DomainError(f"eps must be a finite number, got {eps!r}")
    found = [point(steps, add, eps, order=order, form=form, limit=limit) for add in _directions(steps, direction)]
    if None in found:
        raise AccuracyError(f"Prawitz' interval was not found at eps={eps!r}: ask another route")
    ends = [max(math.exp(p[i]) * (1 + (i - 1) * 4 * U) for p in found) for i in range(3)]
    return _bound(ends, max(found, key=lambda p: p[2])[3])


def prawitz_epsilon(run, delta, *, direction="both", limit=None, order=3, form="one_sequence") -> Bound:
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
    delta, limit = real("delta", delta, "in (0, 1)"), _limit(limit)
    _estimators(run, direction, order, form)
    steps = steps_of(run)
    if not 0 < delta < 1:
        raise DomainError(f"delta must be in (0, 1), got {delta!r}")
    found = [root(steps, add, math.log(delta), order=order, form=form, limit=limit) for add in _directions(steps, direction)]
    if None in found:
        raise AccuracyError(f"Prawitz' interval was not found at delta={delta!r}: ask another route")
    return _bound([max(0.0, max(r[i] for r in found)) for i in range(3)], max(found, key=lambda r: r[2])[3])


def _limit(limit) -> float:
    if limit is None:
        return 0.0
    limit = real("limit", limit, "> 0, or None")
    if not 0 < limit < math.inf:
        raise DomainError(f"limit must be a finite number > 0, or None, got {limit!r}")
    return limit


def _bound(ends, terms) -> Bound:
    lower, estimate, upper = ends
    return Bound(lower, estimate, upper, "edgeworth", True, Budget(dict(zip(TERMS, terms, strict=True))))
