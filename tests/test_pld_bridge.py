"""Privacy loss distributions there and back: dominating, tight at the grid, composable on the other side."""

import math

import numpy as np
import pytest

import hockeystick as hs

dpa = pytest.importorskip("dp_accounting")

from dp_accounting.pld import privacy_loss_distribution as plds  # noqa: E402

from hockeystick.adapters.pld_bridge import from_dp_accounting_pld, to_dp_accounting_pld  # noqa: E402

STEP = hs.poisson_subsampled(hs.gaussian(1.0), 0.05)
DX = 1e-3


@pytest.mark.parametrize("run", [STEP * 100, hs.gaussian(2.0), STEP * 10 + hs.gaussian(5.0)])
def test_dominates_and_is_tight_at_the_grid(run):
    pld = to_dp_accounting_pld(run, value_discretization_interval=DX)
    for pmf, direction in ((pld._pmf_remove, "remove"), (pld._pmf_add, "add")):
        eps = DX * np.arange(-200, 900, 25)
        bound = hs.delta(run, eps, direction=direction)
        theirs = np.array([pmf.get_delta_for_epsilon(e) for e in eps])
        assert (theirs >= bound.lower * (1 - 1e-13)).all()
        assert (theirs <= bound.upper * (1 + 1e-9) + 1e-14).all()
        between = eps[:-1] + 0.4 * DX
        assert (
            np.array([pmf.get_delta_for_epsilon(e) for e in between])
            >= hs.delta(run, between, direction=direction).lower
        ).all()
        assert (pmf._probs >= 0).all() and math.fsum(pmf._probs) + pmf._infinity_mass == pytest.approx(1, abs=1e-9)


def test_composes_on_the_other_side():
    pld = to_dp_accounting_pld(STEP * 100, value_discretization_interval=DX).self_compose(10)
    exact = hs.epsilon(STEP * 1000, 1e-6)
    assert exact.lower <= pld.get_epsilon_for_delta(1e-6) <= exact.upper * 1.01
    both = to_dp_accounting_pld(hs.gaussian(2.0), value_discretization_interval=DX).compose(
        plds.from_gaussian_mechanism(2.0, value_discretization_interval=DX)
    )
    assert both.get_epsilon_for_delta(1e-6) == pytest.approx(hs.epsilon(hs.gaussian(2.0) * 2, 1e-6).upper, rel=1e-3)


def test_from():
    pld = plds.from_laplace_mechanism(1.0, value_discretization_interval=0.05)
    step = from_dp_accounting_pld(pld)
    for eps in (0.0, 0.5, 0.9):
        bound = hs.delta(step, eps, direction="remove")
        assert bound.lower * (1 - 1e-9) <= pld.get_delta_for_epsilon(eps) <= bound.upper * (1 + 1e-9)


def test_from_keeps_the_mass_at_infinity():
    pld = plds.from_privacy_parameters(
        plds.common.DifferentialPrivacyParameters(0.5, 0.01), value_discretization_interval=0.1
    )
    bound = hs.delta(from_dp_accounting_pld(pld), 5.0, direction="remove")
    assert bound.lower <= 0.01 * (1 + 1e-9) and 0.01 * (1 - 1e-9) <= bound.upper


def test_there_and_back():
    run = hs.gaussian(1.0)
    back = from_dp_accounting_pld(to_dp_accounting_pld(run, value_discretization_interval=0.1), direction="add")
    bound = hs.delta(back, 1.0, direction="remove")
    assert bound.upper >= hs.delta(run, 1.0).lower and bound.upper <= hs.delta(run, 1.0).upper * 1.01


@pytest.mark.parametrize(
    "options",
    [{"value_discretization_interval": 0.0}, {"value_discretization_interval": math.nan}, {"tail": 0.0}, {"tail": 0.5}],
)
def test_bad_input(options):
    with pytest.raises(hs.DomainError, match=next(iter(options))):
        to_dp_accounting_pld(STEP, **options)


def test_bad_input_of_the_way_back():
    with pytest.raises(hs.DomainError, match="PrivacyLossDistribution"):
        from_dp_accounting_pld(STEP)
    with pytest.raises(hs.DomainError, match="direction"):
        from_dp_accounting_pld(plds.identity(), direction="both")
    with pytest.raises(hs.DomainError, match="points"):
        to_dp_accounting_pld(hs.gaussian(0.01), value_discretization_interval=1e-7)
