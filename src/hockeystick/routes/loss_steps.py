"""Steps of the route `edgeworth` as arrays, what is computed from them, and the checks that its functions share."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from .. import _core
from .._core import LAPLACE, NORMAL
from ..arguments import numbers, shaped
from ..bound import DomainError
from ..gauss import legendre_rule
from ..outward import U
from ..what.mechanism import Q_MIN, SIGMA_RANGE, Gaussian, Laplace, PoissonSubsampled, as_run
from ..what.pair import DIRECTIONS

ORDERS = (0, 1, 2, 3)
FORMS = {"one_sequence": 1, "two_sequence": 2}
M_GAUSSIAN, M_LAPLACE = 1 / SIGMA_RANGE[0], 40.0
"""Largest sensitivity/noise; csrc/law/laplace_step.h has the second."""


class _Columns(NamedTuple):
    shift: np.ndarray
    q: np.ndarray
    k: np.ndarray
    kind: np.ndarray


class LossSteps(_Columns):
    """Steps as arrays of equal length: m = sensitivity/sigma or sensitivity/scale, sampling rate q (1: none), count k,
    and the kind (numpy.intc: NORMAL or LAPLACE); with what every query asks of them."""

    @functools.cached_property
    def rule(self) -> tuple[np.ndarray, np.ndarray]:
        """The Gauss-Legendre rule where a step needs it: making it takes milliseconds."""
        return NO_RULE if self.all_gaussian else legendre_rule(RULE)

    @functools.cached_property
    def rows(self) -> _core.Rows:
        """As the gate takes them."""
        return _core.Rows(self.shift, self.q, self.k, kind=None if self.all_gaussian else self.kind)

    @functools.cached_property
    def all_gaussian(self) -> bool:
        return not self.kind.any()

    @functools.cached_property
    def total(self) -> float:
        return float(self.k.sum())

    @functools.cached_property
    def totals(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """For REMOVE and for ADD, whose loss is -X under den: (Y, X), mean and cumulants 2 to 5 of the composed loss
        under num and under den."""
        Y, X = _core.edgeworth_totals(self.rows, 0, *self.rule)
        return (Y, X), (_TURN * X, _TURN * Y)


def loss_steps(*rows: tuple[float, float, float, int]) -> LossSteps:
    """LossSteps from rows (m, q, k, kind): m > 0, at most 40 for a Laplace step; 1e-12 <= q <= 1; k >= 1."""
    table = np.array(rows, dtype=float).reshape(-1, 4).T
    for shift, rate, times, kind in rows:
        most = M_LAPLACE if kind == LAPLACE else M_GAUSSIAN
        if not (0 < shift <= most and Q_MIN <= rate <= 1 and times >= 1 and kind in (NORMAL, LAPLACE)):
            raise DomainError(
                f"a step needs sensitivity/noise in (0, {most:g}], sampling rate in [{Q_MIN:g}, 1] and a count >= 1; "
                f"got {shift!r}, {rate!r}, {times!r}: hs.delta and hs.epsilon have other routes"
            )
    m, q, k = (np.ascontiguousarray(column) for column in table[:3])
    return LossSteps(m, q, k, np.ascontiguousarray(table[3], dtype=np.intc))


def steps_of(run, adjacency: str = "add_remove") -> LossSteps:
    """The steps of a run, cached on it. DomainError where a step is neither Gaussian nor Laplace.

    A zeroed record adds nothing, like an absent one; a replaced one moves an unsampled step twice as far (sampling.py).
    """
    if isinstance(run, LossSteps):
        return run
    run = as_run(run)
    key = ("edgeworth", adjacency)
    cached = run._cache.get(key)
    if cached is None:
        cached = run._cache[key] = loss_steps(*(_row(step, k, adjacency) for step, k in run.parts))
    return cached


def _row(step, k: int, adjacency: str) -> tuple[float, float, float, int]:
    q, base = (step.q, step.base) if isinstance(step, PoissonSubsampled) else (1.0, step)
    moves = 2 if adjacency == "replace_one" else 1
    if moves == 1 or q == 1:
        if isinstance(base, Gaussian):
            return moves * base.sensitivity / base.sigma, q, k, NORMAL
        if isinstance(base, Laplace):
            return moves * base.sensitivity / base.scale, q, k, LAPLACE
    raise DomainError(
        'the route "edgeworth" takes Gaussian and Laplace steps, subsampled (not under "replace_one") or not; '
        f"got {step!r} under {adjacency!r}: hs.delta and hs.epsilon have other routes"
    )


RULE = 32
"""Gauss-Legendre nodes for the Laplace density, on panels of length at most 2 (csrc/law/laplace_step.c)."""

NO_RULE = (np.zeros(1), np.zeros(1))


_TURN = np.array([-1.0, 1.0, -1.0, 1.0, -1.0])


def support(steps: LossSteps, add: int) -> tuple[float, float]:
    """(lower bound of the essential infimum, upper bound of the essential supremum) of the composed loss: sums over b
    steps are off by at most 16u (1 + |value|) b."""
    low = high = 0.0
    for m, q, k, kind in zip(*(column.tolist() for column in steps), strict=True):
        if kind == LAPLACE:
            low, high = low + k * math.log(1 - q + q * math.exp(-m)), high + k * math.log1p(q * math.expm1(m))
        else:
            low, high = low + k * math.log1p(-q) if q < 1 else -math.inf, math.inf
    room = 16 * U * (steps.k.size + 1)
    low, high = low - room * (1 - low), high + room * (1 + high)  # low <= 0 <= high
    return (-high, -low) if add else (low, high)


def estimators(run, direction, order, form):
    if isinstance(order, bool) or not isinstance(order, int) or order not in ORDERS:
        raise DomainError(f"order must be 0, 1, 2 or 3, got {order!r}")
    if not isinstance(form, str) or form not in FORMS:
        raise DomainError(f"form must be one of {', '.join(map(repr, FORMS))}, got {form!r}")
    steps = steps_of(run)
    if not steps.k.size:
        raise DomainError("an empty run has no expansion: its delta is max(0, 1 - e^eps) exactly")
    return [steps.totals[add] for add in directions_of(steps, direction)]


def value_of(Y, X, order: int, form: str, eps: float) -> float:
    log_scale, value = _core.edgeworth_delta(Y, X, FORMS[form], order, eps)
    return math.exp(min(700.0, log_scale)) * value if value > 0 else 0.0


def directions_of(steps: LossSteps, direction) -> tuple[int, ...]:
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise DomainError(f"direction must be one of {', '.join(map(repr, DIRECTIONS))}, got {direction!r}")
    if direction == "both":
        return (0,) if (steps.q == 1).all() else (0, 1)
    return (1,) if direction == "add" else (0,)


def each(name: str, value, lo: float, hi: float, answer):
    """answer(x) for every entry of `value`, in its shape; entries are real and strictly between lo and hi."""
    return shaped((answer(x) for x in numbers(name, value, f"in ({lo:g}, {hi:g})", lo, hi)), value)
