"""EEAI: intervals from the Edgeworth expansion of order 1 and a finite-sample constant [WGZ22, Def. 4.2].

With D >= sup |F - G_1| for the composed loss (finite_sample.py), the one-sequence interval is the estimate +- D: an error D of
the distribution function is an error of at most D of delta = int e^(eps-x) P(Y > x) dx. The published one is the two-sequence
estimate +- (D_Y + e^eps D_X). Both are intersected with Chernoff's bound and [0, 1].

Vacuous unless k is very large: delta = 1e-5 needs about 1e7 steps with the constants for regular characteristic functions and
4e10 without; at k = 1e4 nothing below 1e-2. Prawitz' interval (prawitz.c) is sharp at every such k.

The constants are proved; the moments and the estimate behind them are evaluated in double precision and trusted to SLACK, which
the tests check and nothing proves: hence the intervals say certified=False.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from ..bound import AccuracyError, Bound, Budget, DomainError
from ..mechanism import real
from . import finite_sample
from .contour import borrow, give_back
from .loss_steps import FORMS, GAUSSIAN, LossSteps, directions_of, estimators, rule, rule_for, steps_of, totals

SLACK = 1e-11
"""Relative to the mean and to the value: ten times the largest error of moments that the tests see."""

NO_SMOOTHING = 1e-300
"""A limit so small that Prawitz' inequality says nothing and Chernoff's bound alone remains."""

M_MAX = 40.0
PRODUCT = 32
"""Steps whose characteristic functions are looked at; a modulus is at most 1."""

TERMS = ("edgeworth", "slack")


def moments_of(steps: LossSteps, add: int) -> tuple[finite_sample.Moments, float, list[tuple[float, ...]]]:
    """(standardised moments of the loss Y, its deviation Bbar, and per step (mean, k2, E|d|, E|d|^3))."""
    sums, n = np.zeros(5), float(steps.k.sum())
    rows = []
    for m, q, k, family in zip(*steps, strict=True):
        if family == GAUSSIAN and q == 1:
            row = (0.0, m * m, m * math.sqrt(2 / math.pi), 2 * m**3 * math.sqrt(2 / math.pi), 0.0, 3 * m**4)
        elif m > M_MAX:
            raise DomainError(f"finite-sample constants need sensitivity/noise at most {M_MAX:g}, got {m:g}: ask another route")
        else:
            laws = _core.edgeworth_moments(family, m, q, *rule())
            absolute = _core.edgeworth_absolute(family, m, q, *rule())
            law, (first, third) = (laws[0], absolute[0]) if add else (laws[1], absolute[1])
            odd = -1 if add else 1
            row = (odd * law[0], law[1], first, third, odd * law[2], law[3] + 3 * law[1] ** 2)
        rows.append(row)
        sums += k * np.array([row[1], row[3], row[5], row[4], row[2] * row[1]])
    variance, third, fourth, skew, mixed = sums / n
    sd = math.sqrt(variance)
    moments = finite_sample.Moments(n, third / sd**3, fourth / sd**4, skew / sd**3, (third + mixed) / sd**3)
    return moments, sd, rows


def constant_upper(steps: LossSteps, add: int, version: str = "best", *, e=None, published: bool = False) -> float:
    """D >= sup |F_Y - G_1|: the least of the versions that hold for these steps, or the one named."""
    moments, sd, _ = moments_of(steps, add)
    equal = steps.k.size == 1
    known = [
        v for v in (finite_sample.VERSIONS if equal else ("inid", "inid_regular")) if not (published and v == "inid_regular")
    ]
    if version != "best" and version not in known:
        raise DomainError(
            f'version must be "best", "inid" or "inid_regular", for equal steps also "iid" or "regular"; got {version!r}'
        )
    best = 1.0
    for name in known if version == "best" else (version,):
        kappa = None
        if name == "regular":
            kappa = _modulus_upper(steps, 0, add, 2 * math.pi * finite_sample.T1 / moments.K3t / sd)
        elif name == "inid_regular":
            kappa = _product_upper(steps, add, finite_sample.frequency(moments) / (sd * math.sqrt(moments.n)))
        best = min(best, finite_sample.uniform_error_upper(moments, name, kappa=kappa, e=e, published=published))
    return best


def _modulus_upper(steps: LossSteps, i: int, add: int, y: float) -> float:
    """The largest modulus of one step's characteristic function at and beyond y."""
    m, q, family = float(steps.shift[i]), float(steps.q[i]), int(steps.family[i])
    if family == GAUSSIAN and q == 1:
        return math.exp(-0.5 * (m * y) ** 2) * (1 + 1e-12)
    work = borrow(_core.prawitz_work())
    try:
        return _core.edgeworth_modulus_upper(family, m, q, 0 if add else 1, *rule_for(steps), y, math.inf, work)
    finally:
        give_back(work)


def _product_upper(steps: LossSteps, add: int, y: float) -> float:
    """The same of the sum: a product over the steps, of which the PRODUCT with most copies are enough."""
    kept = np.argsort(-steps.k, kind="stable")[:PRODUCT]
    log = sum(float(steps.k[i]) * math.log(max(_modulus_upper(steps, int(i), add, y), 1e-300)) for i in kept)
    return math.exp(log) * (1 + 1e-9)


class _Side:
    """One direction of one run: its expansions of order 1, their constants, and the interval of delta at an eps."""

    def __init__(self, steps: LossSteps, add: int, form: str, published: bool):
        self.steps, self.add, self.form = steps, add, form
        self.Y, self.X = totals(steps, add)
        self.error = constant_upper(steps, add, published=published)
        self.error_den = 0.0
        if form == "two_sequence":  # X is minus the other direction's loss Y
            self.error_den = constant_upper(steps, 1 - add, published=published)

    def interval(self, eps: float) -> tuple[float, float, float, float]:
        """(lower, estimate, upper, slack) of delta(eps)."""
        log_scale, value = _core.edgeworth_delta(self.Y, self.X, FORMS[self.form], 1, eps)
        middle = math.exp(min(log_scale, 700.0)) * value
        slack = _slack(self.Y, eps)
        if self.form == "one_sequence":
            low, high = middle - self.error - slack, middle + self.error + slack
        else:
            grow, slack_den = math.exp(min(eps, 700.0)), _slack(self.X, eps)
            num = _survival(self.Y, eps, self.error + slack)
            den = _survival(self.X, eps, self.error_den + slack_den)
            low, high = num[0] - grow * den[1], num[1] - grow * den[0]
            slack += grow * slack_den
        high = min(1.0, high, self.chernoff_upper(eps))
        low = max(0.0, low)
        return low, min(max(middle, low), high), high, slack

    def chernoff_upper(self, eps: float) -> float:
        answer = self._prawitz(_core.prawitz_delta, eps)
        return 1.0 if answer is None else min(1.0, math.exp(min(0.0, answer[1] + math.log(answer[4]))) * (1 + 1e-12))

    def chernoff_eps_upper(self, delta: float) -> float:
        answer = self._prawitz(_core.prawitz_eps, math.log(delta))
        if answer is None:
            raise AccuracyError(f"no certified bracket of eps was found at delta={delta!r}: ask another route")
        return max(0.0, answer[3])

    def _prawitz(self, kernel, at: float):
        work = borrow(_core.prawitz_work())
        try:
            s = self.steps
            answer = kernel(s.family, s.shift, s.q, s.k, self.add, *rule_for(s), at, 31.0, NO_SMOOTHING, work)
        finally:
            give_back(work)
        return answer if answer[0] <= 1 else None


def _slack(T, eps: float) -> float:
    return SLACK * (1 + (abs(T[0]) + abs(eps)) / math.sqrt(T[1]))


def _survival(T, x: float, error: float) -> tuple[float, float]:
    """Ends of P(sum > x) from the expansion of order 1, inside [0, 1]."""
    sd = math.sqrt(T[1])
    z = (x - T[0]) / sd
    value = 0.5 * math.erfc(z / math.sqrt(2)) + T[2] / (6 * sd**3) * (z * z - 1) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return max(0.0, value - error), min(1.0, value + error)


def _sides(run, direction, form, published) -> list[_Side]:
    estimators(run, direction, 1, form)
    steps = steps_of(run)
    return [_Side(steps, add, form, published) for add in directions_of(steps, direction)]


def eeai_delta(run, eps, *, direction="both", form="one_sequence", published=False) -> Bound:
    """delta(eps) from the Edgeworth expansion of order 1 and its finite-sample constant; see the head of the file.

    Parameters
    ----------
    run : Run, Mechanism or LossSteps
        Gaussian and Laplace steps, subsampled or not.
    eps : float
        Finite, in nats.
    direction : "both", "remove" or "add"
    form : "one_sequence" or "two_sequence"
        The second is the published interval, of half-width D_Y + e^eps D_X.
    published : bool
        With the constants exactly as published; else with one remainder term as small as its derivation allows, and with the
        version of finite_sample.py that is not published.

    Returns
    -------
    Bound
        lower <= delta <= upper by the theorem, with an allowance for rounding that is tested, not proved: not marked certified.
        `budget` holds the constant and the allowance, absolute.

    Raises
    ------
    DomainError
        For arguments outside their domain; for steps of other families.

    References
    ----------
    [WGZ22, Def. 4.2, Lemma 4.3; DGG24].

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> b = edgeworth.eeai_delta(hs.poisson_subsampled(hs.gaussian(0.8), 4e-7) * 10**12, 0.5)
    >>> not b.certified and 0 < b.lower < b.upper < 1.01 * b.lower
    True
    """
    eps = real("eps", eps, "in nats")
    if not math.isfinite(eps):
        raise DomainError(f"eps must be a finite number, got {eps!r}")
    sides = _sides(run, direction, form, published)
    found = [side.interval(eps) for side in sides]
    return _bound([max(f[i] for f in found) for i in range(3)], max(s.error for s in sides), max(f[3] for f in found))


def eeai_epsilon(run, delta, *, direction="both", form="one_sequence", published=False) -> Bound:
    """eps(delta): where the upper curve of `eeai_delta` is at most delta, and where the lower one is at least delta.

    A single such point proves its side, whether or not the published interval's root exists: the search starts from Chernoff's.

    Parameters
    ----------
    delta : float
        In (0, 1).
    run, direction, form, published
        As in `eeai_delta`.

    Returns
    -------
    Bound
        lower <= eps <= upper, as in `eeai_delta` not marked certified.

    Raises
    ------
    DomainError, AccuracyError

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> b = edgeworth.eeai_epsilon(hs.poisson_subsampled(hs.gaussian(0.8), 4e-7) * 10**12, 0.1)
    >>> not b.certified and 0 < b.lower < b.upper < 1.001 * b.lower
    True
    """
    delta = real("delta", delta, "in (0, 1)")
    if not 0 < delta < 1:
        raise DomainError(f"delta must be in (0, 1), got {delta!r}")
    sides = _sides(run, direction, form, published)
    top = max(side.chernoff_eps_upper(delta) for side in sides)
    upper = _bisect(lambda x: max(s.interval(x)[2] for s in sides) <= delta, top, 0.0)
    lower = _bisect(lambda x: max(s.interval(x)[0] for s in sides) >= delta, 0.0, top)
    middle = max(_core.edgeworth_eps(s.Y, s.X, FORMS[form], 1, math.log(delta)) for s in sides)
    slack = max(s.interval(upper)[3] for s in sides)
    return _bound([lower, min(max(middle, lower), upper), upper], max(s.error for s in sides), slack)


def _bisect(holds, good: float, bad: float) -> float:
    """A point towards `bad` at which the proposition holds, or `good` itself, where it is known."""
    if holds(bad):
        return bad
    for _ in range(50):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _bound(ends, error: float, slack: float) -> Bound:
    lower, estimate, upper = (float(x) for x in ends)
    return Bound(lower, estimate, upper, "edgeworth", False, Budget(dict(zip(TERMS, (error, slack), strict=True)), "delta"))
