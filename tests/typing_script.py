"""A user's script over all public names: `mypy --strict` and pyright find nothing in it, and it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.types import Adjacency, Direction, Numbers, Query, Ran, Route

Array = NDArray[np.float64]


def steps() -> hs.Run:
    """Mechanisms and how they compose."""
    step: hs.Mechanism = hs.poisson_subsampled(hs.gaussian(1.0, sensitivity=1.0), 0.01)
    others: list[hs.Mechanism] = [
        hs.laplace(20.0),
        hs.discrete_gaussian(20.0),
        hs.discrete_laplace(20.0, sensitivity=1),
        hs.randomized_response(0.1),
        hs.pure_dp(0.1),
        hs.approx_dp(0.1, 1e-7),
        hs.gaussian_mixture(1.0, [0.0, 1.0], [0.9, 0.1]),
        hs.public_mixture([hs.gaussian(20.0), hs.laplace(20.0)], [0.5, 0.5]),
        hs.from_pmf([0.5, 0.5], [0.4, 0.6]),
        hs.from_curve([0.1, 0.2], [0.01, 0.001]),
    ]
    local: hs.Mechanism = hs.k_ary_randomized_response(0.1, 3)
    sized: list[hs.Mechanism] = [
        hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.01, dataset_size=1000, max_batch=20),
        hs.without_replacement(hs.gaussian(1.0), dataset_size=(900, 1000), max_batch=10),
        hs.with_replacement(hs.gaussian(9.0), dataset_size=1000, batch=10),
        hs.cyclic_poisson(hs.gaussian(4.0), 0.5, iterations=40, bands=2, dataset_size=199),
    ]
    run: hs.Run = hs.compose([step * 10, *others]) + step
    many: hs.Run = hs.compose_arrays([1.0, 2.0], 0.1, [3, 4])
    assert many == hs.Run.from_arrays([2.0, 1.0], 0.1, [4, 3])
    chosen: list[hs.Mechanism] = [hs.bounded_range(0.1), hs.exponential_mechanism(0.1), hs.permute_and_flip(0.1)]
    assert hs.compose(run, (step, 3), [step]).steps == 25 and local and len(sized) == 4 > len(chosen)
    told = [hs.top_k(0.1, 2), hs.select(hs.gaussian(2.0), mean=10), hs.shuffled(hs.pure_dp(1.0), 100), hs.failure(1e-9)]
    banded: hs.Run = hs.matrix_mechanism([[1.0, 0.0], [0.5, 1.0]], 4.0, 0.1, failure=1e-9)
    drawn: list[hs.Mechanism] = [
        hs.random_allocation(hs.gaussian(2.0), 10),
        hs.balls_and_bins(hs.gaussian(2.0), 10, epochs=1),
    ]
    together: hs.Run = hs.group(step * 10, 3) + hs.group(step, [0.5, 1.0])
    assert drawn and together.steps == 11 and banded.steps > 1
    assert hs.compose(*told).steps > 0
    return step * 1000


def law(s: Array) -> Array:
    below: Array = np.clip(1 - np.exp(-np.maximum(s + 1, 0)), 0, 1)
    return below


def queries(run: Ran, adjacency: Adjacency, direction: Direction, route: Route) -> None:
    """Bounds: of numbers for a number, of arrays for arrays."""
    options: Query = {"adjacency": adjacency, "direction": direction, "route": route, "n_threads": 1}
    one: hs.Bound = hs.epsilon(run, 1e-5, **options)
    upper: float = one.upper
    many: hs.Bound[Array] = hs.delta(run, [0.5, 1.0], **options)
    uppers: Array = many.upper
    entry: float = many[0].lower
    width: float = one.width
    terms: dict[str, Any] = one.budget.terms
    logs: float = hs.log_delta(run, 2.0).estimate
    budget: hs.Budget = one.budget
    verdict: str = f"{one:.3f}" + one.route + budget.unit
    found: hs.Explanation = hs.explain(run, delta=1e-5)
    tilt: float | None = found.tilt
    judged: hs.Verdict = hs.verify(run, one) if False else hs.Verdict("confirmed", "")
    assert (
        upper > logs
        and uppers.shape == (2,)
        and entry > 0
        and width >= 0
        and terms
        and verdict
        and tilt
        and judged.confirmed
    )


def risks(run: hs.Run) -> None:
    advantage: float = hs.advantage(run).upper
    fnr: float = hs.tradeoff(run, 0.1).lower
    rates: list[float] = [hs.reconstruction(run, 0.1).upper, hs.attribute_advantage(run, 0.1).upper]
    rates.append(hs.one_run_audit(run, canaries=10, guesses=5, correct=3))
    drawn: Array = hs.draw_balls_and_bins(np.eye(2), 1.0, 2, 5, rng=1, direction="add")
    rest = hs.draw_min_separation([[1.0]], 1.0, 0.5, 1, 5, rng=np.random.default_rng(1))
    rates.append(hs.monte_carlo(np.append(drawn, rest), 1.0, run=run).upper)
    rates.append(hs.reidentification(run, 100).upper)
    rates.append(hs.one_run_epsilon_lower(hs.gaussian, over=(0.1, 9.0), canaries=10, guesses=5, correct=3, delta=1e-5))
    assert len(rates) == 6
    tpr: Array = hs.true_positive_rate(run, np.array([0.1, 0.2])).upper
    mu: float = hs.mu_gdp(run, 1e-5, tol=1e-2).upper
    regret: float = hs.gdp_regret(run, mu, tol=1e-3).upper
    belief: float = hs.posterior(run, 0.5, tail=0.1).upper
    risk: float = hs.bayes_risk(run, 0.5).lower
    rho: Array = hs.rdp(run, [2.0, 4.0]).upper
    moments: float = hs.moments_epsilon_upper(run, 1e-5) + hs.moments_delta_upper(run, 1.0)
    estimates: float = hs.gdp_delta(run, 1.0).estimate + hs.gdp_epsilon(run, 1e-5).estimate + hs.gdp_mu(run)
    published: float = hs.aea_delta(run, 1.0) + hs.aea_epsilon(run, 1e-5)
    saddle: hs.SaddlepointEstimate = hs.saddlepoint_delta(run, 1.0)
    intervals: Sequence[hs.Bound] = [
        hs.prawitz_delta(run, 1.0),
        hs.prawitz_epsilon(run, 1e-5),
        hs.eeai_delta(run, 1.0),
        hs.eeai_epsilon(run, 0.1),
    ]
    assert min(advantage, fnr, tpr[0], regret, belief, risk, rho[0], moments, estimates, published, saddle.delta) > 0
    assert len(intervals) == 4


def targets(values: Numbers) -> None:
    found: hs.Calibration = hs.noise_multiplier(q=0.01, steps=1000, eps=1.0, delta=1e-5)
    most: int | float = hs.max_steps(sigma=1.0, q=0.01, eps=1.0, delta=1e-5).value
    again = hs.calibrate(lambda sigma: hs.gaussian(sigma) * 10, over=(1.0, 100.0), eps=1.0, delta=1e-5, tol=1e-3)
    bound: float = again.bound.upper
    batch: Array = hs.epsilon_batch(values, 0.01, 1000, 1e-5).upper
    deltas: Array = hs.delta_batch(values, 0.01, 1000, 1.0).upper
    assert found.value > 1 and most == 254 and bound <= 1e-5 and batch.shape == deltas.shape


def records(folder: Path) -> None:
    accountant = hs.Accountant()
    accountant.step(hs.gaussian(2.0), 3)
    spent: float = accountant.epsilon(1e-5).upper + accountant.delta(1.0).upper
    state: dict[str, Any] = accountant.state_dict()
    accountant.load_state_dict(state)
    accountant.step(accountant)
    accountant.undo(hs.gaussian(2.0), 3)
    with hs.Accountant(folder / "ledger", limit=(5.0, 1e-5), adjacency="add_remove") as ledger:
        ledger.step(hs.gaussian(2.0))
        more: int = ledger.steps_left(hs.gaussian(2.0)) + ledger.steps_left(hs.laplace(3.0), eps=9.0, delta=1e-5)
        fits: bool = more > 0 and not ledger.would_exceed(hs.gaussian(2.0), eps=9.0, delta=1e-5, direction="both")
        assert fits and ledger.path is not None
    text: str = hs.to_json(accountant)
    read: hs.Mechanism | hs.Run | hs.Bound = hs.from_json(text)
    same: hs.Mechanism | hs.Run | hs.Bound = hs.from_dict(hs.to_dict(accountant))
    custom: hs.Mechanism = hs.register("script", hs.from_loss_cdf(law, law)) if False else hs.laplace(1.0)
    (folder / "log.csv").write_text("sigma,q,steps\n1,0.01,10\n")
    run: hs.Run = hs.read_log(folder / "log.csv")
    with hs.GDPFilter(eps=1.0, delta=1e-5) as filter:
        allowed: bool = filter.charge(sigma=9.0)
        left: int = filter.admits(sigma=9.0)
    renyi = hs.RDPFilter(eps=2.0, delta=1e-5, plan=run)
    charged: bool = renyi.charge(hs.gaussian(9.0)) and renyi.admits(hs.gaussian(9.0)) > 0
    odometer: float = hs.GDPOdometer(increment_mu=1.0).mu_upper
    each = hs.IndividualGDPFilter(2, budget_mu=1.0)
    mask: NDArray[np.bool_] = each.charge(np.array([1.0, 0.5]), sigma=9.0)
    found: hs.IndividualEpsilons = hs.individual_epsilons([[10, 0]], sigmas=[1.0, 2.0], q=0.01, delta=1e-5)
    assert spent > 0 and read == same and custom and allowed and left and charged and odometer == 0 and mask.all()
    assert found.upper.shape == (1,)


def errors() -> None:
    for error in (hs.DomainError, hs.AccuracyError, hs.LimitError, hs.SoundnessError, hs.StoreError):
        assert issubclass(error, hs.HockeystickError)
    try:
        hs.gaussian(-1.0)
    except hs.DomainError as refused:
        code: int = refused.code
        assert code == 0


def main(folder: Path) -> None:
    run = steps()
    queries(run, "add_remove", "both", "auto")
    risks(run)
    targets(np.array([0.8, 1.0]))
    records(folder)
    errors()
    assert hs.plot.privacy_curves({"a": run}, [0.5, 1.0])


if __name__ == "__main__":
    main(Path.cwd())
