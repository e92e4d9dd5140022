"""Private selection: a run repeated a random number of times, of which the best outcome alone is released.

phi is the generating function of the number K of runs. In every order (P, Q) of the laws of one run the outcome has the
densities phi'(F_P) p and phi'(F_Q) q, F the probability of a worse outcome [theory: select.law]. For all laws of K here

    psi(a) = phi'(1 - a) = mean (1 + s a)^-kappa

with kappa to infinity and kappa s = mean for the Poisson law [theory: select.numbers]. The curve that is charged:
inner/selection.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..bound import DomainError
from ..outward import LDBL_ULP as V
from .mechanism import Mechanism, Run, as_run, count, real, within
from .topk import enclosed

if TYPE_CHECKING:
    from ..types import Ran

SHAPE_RANGE, MEAN_RANGE = (-0.5, 1000.0), (1e-6, 1e9)


@dataclass(frozen=True, slots=True)
class Select(Mechanism):
    """The best of a random number of runs; see `select`. shape None: a Poisson number, or a binomial one of
    `trials`."""

    steps: tuple[Mechanism, ...]  # the distinct steps of a run
    counts: tuple[int, ...]
    mean: float
    shape: float | None
    trials: int | None

    @property
    def base(self) -> Run:
        """What is repeated."""
        return Run(tuple(zip(self.steps, self.counts, strict=True)))

    @property
    def inner(self) -> tuple[Mechanism, ...]:
        return tuple(step for step in self.steps if not step.open)  # an open one stands for a pair of its own here


def select(run: Ran, *, mean: float, shape: float = 1.0, trials: int | None = None) -> Select:
    """The best of K runs of `run`, K random and secret: hyperparameter tuning, private selection.

    K is drawn without looking at the data, `run` is carried out K times with fresh randomness, and of the outcomes the
    one with the best score is released, nothing else. Trials may have different hyperparameters, drawn at random each
    time. The score is a function of the outcome alone; one computed on private data belongs to `run`.

    Parameters
    ----------
    run : Run or Mechanism
        What one trial reveals, its score included.
    mean : float
        Expected number of trials: at least 1; any number > 0 for a Poisson number, below `trials` for a binomial one.
    shape : float, default 1
        Of the truncated negative binomial law of K, -0.5 to 1000: 1 is the geometric law, 0 the logarithmic one; inf a
        Poisson law, whose K may be 0: then nothing is released.
    trials : int, optional
        K is binomial with this many trials instead, at least 2, and `shape` is ignored; K may be 0.

    Returns
    -------
    Select
        A step for all queries, composition, calibration, under the adjacencies of `run`. It is charged as the worst
        pair below the smaller of two proved curves, one from the whole privacy curve of `run`, one from its Renyi
        divergences. Upper ends hold for the mechanism; lower ends are those of the pair that is charged. Deltas below
        about 1e-40 E[K] are not resolved.

    Raises
    ------
    DomainError
        If an argument is outside its domain. A query raises what a query of `run` would.

    References
    ----------
    [PS22] for the mechanism and its Renyi divergences; docs/theory/selection.md for the bound by the whole curve.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.select(hs.gaussian(2.0), mean=10)                # geometric
    >>> f"{hs.epsilon(hs.gaussian(2.0), 1e-5):.4f} {hs.epsilon(step, 1e-5).upper:.3f}"    # 4.3154 by Renyi divergences
    '[1.9930, 1.9931] 3.146'
    >>> tuned = lambda sigma: hs.select(hs.poisson_subsampled(hs.gaussian(sigma), 0.01) * 500, mean=50)
    >>> found = hs.calibrate(tuned, over=(0.5, 5.0), eps=3.0, delta=1e-5, tol=1e-3)
    >>> print(f"{found.value:.2f}")
    0.93
    """
    whole = as_run(run)
    for step, _ in whole.parts:
        if step.open and (step.sized or enclosed(Run(((step, 1),))) is None):
            raise DomainError(
                f"select takes steps of one known dataset_size and group, and none with_replacement, got {step!r}"
            )
    mean, law = within("mean", mean, *MEAN_RANGE), real("shape", shape, "or inf")
    if trials is not None:
        trials = count("trials", trials, 2)
        if not mean <= 0.999 * trials:
            raise DomainError(
                f"mean must be at most 0.999 trials = {0.999 * trials:g}, got {mean!r}; a fixed number is a run of them"
            )
    elif law != math.inf:
        within("shape, unless it is inf,", law, *SHAPE_RANGE)
        if not mean >= 1:
            raise DomainError(f"mean must be at least 1 for a truncated negative binomial number, got {mean!r}")
    known = None if trials is not None or law == math.inf else law
    return Select(tuple(s for s, _ in whole.parts), tuple(k for _, k in whole.parts), mean, known, trials)


class Number(NamedTuple):
    """The law of K: psi(a) = mean (1 + s a)^-kappa, kappa = inf for mean e^{-mean a}; log(1 + s a) is known within
    `error`."""

    mean: float
    s: float
    kappa: float
    error: float

    def log_ratio(self, a, b):
        """log psi(a)/psi(b), and the most that it may be off."""
        if self.kappa == math.inf:  # [theory: select.numbers]
            return self.mean * (b - a), 8 * V * self.mean
        return self.kappa * (np.log1p(self.s * b) - np.log1p(self.s * a)), abs(self.kappa) * (2 * self.error + 64 * V)

    def at_least_one(self, u):
        """Phi(u) = integral of psi from 0 to u = 1 - phi(1 - u), and its relative error."""
        if self.kappa == math.inf:
            return -np.expm1(-self.mean * u), 16 * V
        log, order = np.log1p(self.s * u), self.kappa - 1
        part = -np.expm1(-order * log) / order if order else log
        return self.mean / self.s * part, abs(self.kappa) * self.error + self.error + 64 * V


def number(step: Select) -> Number:
    """The law of K. Where s is the root of a mean, computed within 1e-13, it is widened until both ends are proved to
    lie on their sides; all between these ends give log(1 + s a) within `error`, for a <= 1."""
    if step.trials is not None:
        return Number(step.mean, -step.mean / step.trials, 1.0 - step.trials, 4e-13)  # 1/(1 - mean/trials) <= 1000
    if step.shape is None:
        return Number(step.mean, 0.0, math.inf, 0.0)
    if step.mean == 1:
        return Number(1.0, 1.0, 0.0, 0.0)
    shape = step.shape if abs(step.shape) > 1e-200 else 0.0

    def mean(s: float) -> float:
        return shape * s / -math.expm1(-shape * math.log1p(s)) if shape else s / math.log1p(s)

    low, high = 1e-18, 1e20
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if mean(middle) < step.mean else (low, middle)
    s, wide = high, 1e-15
    while True:
        low, high = s * max(0.0, 1 - wide), s * (1 + wide)
        below = not low or mean(low) * (1 + 1e-13) <= step.mean
        if below and mean(high) * (1 - 1e-13) >= step.mean:
            return Number(step.mean, s, shape + 1, 1.001 * math.log1p((high - low) / (1 + low)))
        wide *= 2
