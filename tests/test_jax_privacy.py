"""The dp_accounting accountant inside jax-privacy: its calibrations and an execution plan, where jax-privacy is
installed.

pip install '.[dp-accounting,test]' jax-privacy && pytest tests/test_jax_privacy.py
"""

import pytest

import hockeystick as hs

dpa = pytest.importorskip("dp_accounting")
pytest.importorskip("jax_privacy")

from jax_privacy.accounting import accountants, analysis, calibrate  # noqa: E402
from jax_privacy.experimental import accounting, execution_plan  # noqa: E402

from hockeystick.adapters.dp_accounting import HockeystickAccountant  # noqa: E402

ZERO_OUT = dpa.NeighboringRelation.REPLACE_SPECIAL


class Config(accountants.DpAccountantConfig):
    def create_accountant(self):
        return HockeystickAccountant()


def eps(sigma, q, k, delta=1e-5, **options):
    return hs.epsilon(hs.poisson_subsampled(hs.gaussian(sigma), q) * k, delta, **options)


def test_calibrations():
    """Their searches stop at a tolerance of their own; the accountant behind them is ours."""
    accountant = analysis.DpsgdTrainingAccountant(dp_accountant_config=Config())
    asked = dict(target_epsilon=1.0, accountant=accountant, num_samples=10_000, target_delta=1e-5)
    sigma = calibrate.calibrate_noise_multiplier(**asked, batch_sizes=100, num_updates=1000, tol=1e-4)
    assert eps(sigma, 0.01, 1000).upper <= 1.0 + 1e-3 and sigma == pytest.approx(1.41462, abs=1e-3)
    steps = calibrate.calibrate_num_updates(**asked, noise_multipliers=1.0, batch_sizes=100)
    assert steps == hs.max_steps(sigma=1.0, q=0.01, epsilon=1.0, delta=1e-5).value
    batch = calibrate.calibrate_batch_size(**asked, noise_multipliers=2.0, num_updates=1000)
    assert eps(2.0, batch / 10_000, 1000).upper <= 1.0 < eps(2.0, (batch + 2) / 10_000, 1000).lower


def test_epsilon_of_changing_training():
    accountant = analysis.DpsgdTrainingAccountant(dp_accountant_config=Config())
    params = analysis.DpParams(
        noise_multipliers=[(0, 1.0), (300, 2.0)], batch_size=[(0, 100), (600, 200)], num_samples=10_000, delta=1e-5
    )
    run = hs.compose(
        (hs.poisson_subsampled(hs.gaussian(1.0), 0.01), 300),
        (hs.poisson_subsampled(hs.gaussian(2.0), 0.01), 300),
        (hs.poisson_subsampled(hs.gaussian(2.0), 0.02), 400),
    )
    assert accountant.compute_epsilon(1000, params) == pytest.approx(hs.epsilon(run, 1e-5).upper, rel=1e-12)


@pytest.mark.parametrize("truncated", [False, True])
def test_execution_plan(truncated):
    """Banded matrix factorisation with Poisson and with truncated Poisson sampling of its groups."""
    plan = execution_plan.BandMFExecutionPlanConfig.default(
        num_bands=4,
        iterations=40,
        strategy_optimization_steps=5,
        epsilon=2.0,
        delta=1e-6,
        sampling_prob=0.1,
        accountant=HockeystickAccountant(ZERO_OUT),
        **(dict(truncated_batch_size=40, num_examples=1000) if truncated else {}),
    ).plan
    bound = HockeystickAccountant(ZERO_OUT).compose(plan.dp_event).epsilon_bound(1e-6)
    assert 1.999 < bound.lower <= bound.upper <= 2.0 + 1e-6


def test_as_accountant_fn():
    """Made from a relation, once a probe, by dp_accounting's search on a jax-privacy event."""
    sigma = dpa.calibrate_dp_mechanism(
        lambda: HockeystickAccountant(ZERO_OUT),
        lambda s: accounting.dpsgd_event(s, 512, sampling_prob=0.1),
        target_epsilon=1.0,
        target_delta=1e-6,
    )
    assert sigma == pytest.approx(9.66, abs=0.01) and eps(sigma, 0.1, 512, 1e-6, adjacency="zero_out").upper <= 1.0
