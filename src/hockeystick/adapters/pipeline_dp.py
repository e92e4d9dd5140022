"""A budget accountant for PipelineDP, whose noise is proved to meet the budget.

    accountant = HockeystickBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, backend)

It keeps the contract of `pipeline_dp.budget_accounting.BudgetAccountant` (PipelineDP 0.3): mechanisms are requested
while the pipeline is built, `compute_budgets` then gives each its noise. With s the smallest base deviation for which
the composition of all of them meets the budget, by `hockeystick.calibrate`, a mechanism of weight w gets

    LAPLACE, GAUSSIAN             the standard deviation s/w, per unit of sensitivity
    .._THRESHOLDING               the same; its thresholds share a quarter of total_delta, which the noise does not get
    GENERIC, TRUNCATED_GEOMETRIC  eps = sqrt(2) w/s and delta = eps total_delta/total_epsilon: accounted as the worst
                                  such step

Needs pipeline-dp. Refused: a sensitivity other than 1 (the engine scales by its own) and a deviation of the caller's.
"""

from __future__ import annotations

import math
from typing import Any

from pipeline_dp import budget_accounting
from pipeline_dp.aggregate_params import MechanismType

from ..bound import DomainError
from ..calibration import calibrate
from ..what.discrete import approx_dp
from ..what.mechanism import Mechanism, Run, compose, count, gaussian, laplace, positive, within

THRESHOLDS = 0.25
"""Share of total_delta that the thresholds get, where there are any."""

DEVIATIONS = (1e-2, 1e8)
"""Base deviations among which the smallest is sought."""

TOL = 1e-4
"""Relative distance of the base deviation from one that is proved not to do."""

LAPLACE = (MechanismType.LAPLACE, MechanismType.LAPLACE_THRESHOLDING)
GAUSSIAN = (MechanismType.GAUSSIAN, MechanismType.GAUSSIAN_THRESHOLDING)
KNOWN_BY_EPS = (MechanismType.GENERIC, MechanismType.TRUNCATED_GEOMETRIC)


class HockeystickBudgetAccountant(budget_accounting.BudgetAccountant):
    """Budget accountant with certified composition.

    Parameters
    ----------
    total_epsilon, total_delta : float
        Budget of the whole pipeline, total_epsilon > 0, 0 < total_delta < 1.
    num_aggregations, aggregation_weights
        As in PipelineDP's own accountants.

    Raises
    ------
    DomainError
        If a number is outside its domain.

    Attributes
    ----------
    base_noise_std : float or None
        s above, once it is computed.
    run : Run or None
        What the mechanisms were accounted as, once they are.
    """

    def __init__(
        self,
        total_epsilon: float,
        total_delta: float,
        num_aggregations: int | None = None,
        aggregation_weights: list[float] | None = None,
    ) -> None:
        positive("total_epsilon", total_epsilon)
        within("total_delta (with 0 take PipelineDP's naive accountant)", total_delta, 0, 1, "()")
        super().__init__(total_epsilon, total_delta, num_aggregations, aggregation_weights)
        self.base_noise_std: float | None = None
        self.run: Run | None = None

    def request_budget(
        self,
        mechanism_type: MechanismType,
        sensitivity: float = 1,
        weight: float = 1,
        count: int = 1,
        noise_standard_deviation: float | None = None,
        name: str = "",
    ) -> budget_accounting.MechanismSpec:
        """A specification of a mechanism, whose noise `compute_budgets` will set."""
        if self._finalized:
            raise DomainError("request_budget must come before compute_budgets")
        if noise_standard_deviation is not None:
            raise DomainError("noise_standard_deviation is what this accountant computes: leave it out")
        if sensitivity != 1:
            raise DomainError(f"sensitivity must be 1, got {sensitivity!r}: noise is per unit, which the engine scales")
        spec = budget_accounting.MechanismSpec(mechanism_type=mechanism_type, name=name, _count=_times(count))
        weight = positive("weight", weight)
        self._register_mechanism(
            budget_accounting.MechanismSpecInternal(sensitivity=1, weight=weight, mechanism_spec=spec)
        )
        return spec

    def compute_budgets(self) -> None:
        """Find the smallest base deviation and set the noise of every mechanism requested.

        Raises
        ------
        AccuracyError
            If no deviation within reach meets the budget.
        """
        self._check_aggregation_restrictions()
        if self._scopes_stack:
            raise DomainError("compute_budgets must not be called within a budget scope")
        self._finalize()
        if not self._mechanisms:
            return
        cut = [m for m in self._mechanisms if m.mechanism_spec.mechanism_type.is_thresholding_mechanism]
        of_thresholds = THRESHOLDS * self._total_delta if cut else 0.0
        eps, delta = self._total_epsilon, (self._total_delta - of_thresholds) * (1 - 2.0**-50)
        found = calibrate(
            self._composed, over=DEVIATIONS, start=math.sqrt(2) * len(self._mechanisms), eps=eps, delta=delta, tol=TOL
        )
        self.base_noise_std, self.run = float(found.value), self._composed(found.value)
        for each in self._mechanisms:
            spec = each.mechanism_spec
            if spec.mechanism_type in KNOWN_BY_EPS:
                spec.set_eps_delta(*self._eps_delta(each, self.base_noise_std))
            else:
                spec.set_noise_standard_deviation(self.base_noise_std / each.weight)
            if each in cut:
                spec.set_thresholding_delta(of_thresholds / sum(m.mechanism_spec.count for m in cut) * (1 - 2.0**-50))

    def _composed(self, base: float) -> Run:
        """The whole pipeline at a base deviation."""
        return compose(*((self._step(each, base), each.mechanism_spec.count) for each in self._mechanisms))

    def _step(self, each: Any, base: float) -> Mechanism:
        kind, deviation = each.mechanism_spec.mechanism_type, base / each.weight
        if kind in LAPLACE:
            return laplace(deviation / math.sqrt(2) * (1 - 2.0**-50))  # at most the noise that the engine draws
        if kind in GAUSSIAN:
            return gaussian(deviation * (1 - 2.0**-50))
        if kind in KNOWN_BY_EPS:
            return approx_dp(*(x * (1 + 2.0**-50) for x in self._eps_delta(each, base)))
        raise DomainError(f"no account of mechanism type {kind!r}")

    def _eps_delta(self, each: Any, base: float) -> tuple[float, float]:
        eps = math.sqrt(2) * each.weight / base
        return eps, eps / self._total_epsilon * self._total_delta


def _times(value: Any) -> int:
    return count("count", value)
