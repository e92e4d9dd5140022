"""The budget accountant for PipelineDP: on a stand-in of its base class, and in a real pipeline where it is
installed."""

import enum
import importlib
import math
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

import hockeystick as hs


class MechanismType(enum.Enum):
    LAPLACE = 1
    GAUSSIAN = 2
    LAPLACE_THRESHOLDING = 3
    GAUSSIAN_THRESHOLDING = 4
    TRUNCATED_GEOMETRIC = 5
    GENERIC = 6

    @property
    def is_thresholding_mechanism(self):
        return self.name.endswith("_THRESHOLDING")


@dataclass
class MechanismSpec:
    mechanism_type: MechanismType
    name: str = ""
    _count: int = 1
    noise_standard_deviation = eps = delta = thresholding_delta = None

    @property
    def count(self):
        return self._count

    def set_eps_delta(self, eps, delta):
        self.eps, self.delta = eps, delta

    def set_noise_standard_deviation(self, value):
        self.noise_standard_deviation = value

    def set_thresholding_delta(self, delta):
        self.thresholding_delta = delta


@dataclass
class MechanismSpecInternal:
    sensitivity: float
    weight: float
    mechanism_spec: MechanismSpec


class BudgetAccountant:
    def __init__(self, total_epsilon, total_delta, num_aggregations, aggregation_weights):
        self._total_epsilon, self._total_delta = total_epsilon, total_delta
        self._mechanisms, self._scopes_stack, self._finalized = [], [], False

    def _register_mechanism(self, mechanism):
        self._mechanisms.append(mechanism)

    def _check_aggregation_restrictions(self):
        pass

    def _finalize(self):
        self._finalized = True


@pytest.fixture
def accountant(monkeypatch):
    """The class, and the mechanism types, of the real package or of the stand-in."""
    try:
        importlib.import_module("pipeline_dp.budget_accounting")
    except ImportError:
        package, budgets, params = (
            ModuleType(f"pipeline_dp{name}") for name in ("", ".budget_accounting", ".aggregate_params")
        )
        package.budget_accounting, package.aggregate_params = budgets, params
        budgets.BudgetAccountant, budgets.MechanismSpec = BudgetAccountant, MechanismSpec
        budgets.MechanismSpecInternal, params.MechanismType = MechanismSpecInternal, MechanismType
        for module in (package, budgets, params):
            monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "hockeystick.adapters.pipeline_dp", raising=False)
    adapter = importlib.import_module("hockeystick.adapters.pipeline_dp")
    yield adapter.HockeystickBudgetAccountant, adapter.MechanismType
    sys.modules.pop("hockeystick.adapters.pipeline_dp", None)


@pytest.mark.parametrize(
    "requests",
    [
        [("GAUSSIAN", 1.0, 1)],
        [("LAPLACE", 1.0, 1)],
        [("LAPLACE", 2.0, 3), ("GAUSSIAN", 1.0, 2)],
        [("GAUSSIAN_THRESHOLDING", 1.0, 1), ("GAUSSIAN", 1.0, 1)],
        [("GAUSSIAN", 1.0, 1), ("GENERIC", 2.0, 1), ("TRUNCATED_GEOMETRIC", 1.0, 1)],
    ],
)
def test_the_noise_meets_the_budget_and_no_more(accountant, requests):
    make, kinds = accountant
    eps, delta = 1.5, 1e-6
    budget = make(eps, delta)
    specs = [budget.request_budget(kinds[name], weight=weight, count=k) for name, weight, k in requests]
    budget.compute_budgets()

    def pipeline(less):
        steps = []
        for spec, (name, _, k) in zip(specs, requests, strict=True):
            if name in ("GENERIC", "TRUNCATED_GEOMETRIC"):
                step = hs.approx_dp(spec.eps / less, spec.delta / less)
            else:
                sd = spec.noise_standard_deviation * less
                step = hs.laplace(sd / math.sqrt(2)) if name.startswith("LAPLACE") else hs.gaussian(sd)
            steps.append((step, k))
        return hs.compose(*steps)

    thresholds = sum((spec.thresholding_delta or 0.0) * k for spec, (*_, k) in zip(specs, requests, strict=True))
    assert thresholds + hs.delta(pipeline(1.0), eps).upper <= delta * (1 + 1e-12)
    assert thresholds + hs.delta(pipeline(1 - 2e-4), eps).lower > delta
    first, last = specs[0], specs[-1]
    if "GENERIC" not in requests[1][0] if len(requests) > 1 else True:
        ratio = requests[0][1] / requests[-1][1]
        assert last.noise_standard_deviation == pytest.approx(first.noise_standard_deviation * ratio)


def test_refusals(accountant):
    make, kinds = accountant
    for wrong in ((0.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.1)):
        with pytest.raises(hs.DomainError):
            make(*wrong)
    budget = make(1.0, 1e-6)
    for wrong in (dict(sensitivity=2), dict(noise_standard_deviation=1.0), dict(weight=0.0), dict(count=0)):
        with pytest.raises(hs.DomainError):
            budget.request_budget(kinds.LAPLACE, **wrong)
    budget.compute_budgets()  # nothing requested
    assert budget.base_noise_std is None
    with pytest.raises(hs.DomainError, match="before compute_budgets"):
        budget.request_budget(kinds.LAPLACE)


def test_in_a_pipeline(accountant):
    pipeline_dp = pytest.importorskip("pipeline_dp")
    if not hasattr(pipeline_dp, "DPEngine"):
        pytest.skip("a stand-in")
    budget = accountant[0](1.0, 1e-6)
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT],
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=3,
        max_contributions_per_partition=1,
        partition_selection_strategy=pipeline_dp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING,
    )
    extract = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: row[1], privacy_id_extractor=lambda row: row[0], value_extractor=lambda row: 1
    )
    rows = [(i, j) for i in range(2000) for j in range(3)]
    result = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend()).aggregate(rows, params, extract)
    budget.compute_budgets()
    counts = dict(result)
    assert len(counts) == 3 and all(abs(found.count - 2000) < 500 for found in counts.values())
