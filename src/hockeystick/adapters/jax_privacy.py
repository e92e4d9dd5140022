"""What jax-privacy's batch selection strategies run, as steps of this library.

    strategy = jax_privacy.batch_selection.RandomAllocationSampling(total_participations=1, iterations=100)
    hockeystick.epsilon(run_of(strategy, 1.0) * 10, 1e-5)

A strategy is read by the name of its class and by its fields, so nothing is imported from jax-privacy.

    class                       run
    BallsInBinsSampling         balls_and_bins
    RandomAllocationSampling    random_allocation
    CyclicPoissonSampling       poisson_subsampled, truncated_poisson_subsampled, or cyclic_poisson for several groups
    FixedBatchSampling          without_replacement, with_replacement

The batches of one epoch of balls-in-bins and of random allocation of one participation have one law. Samples a least
distance apart (BMinSepSampling) have no run here and are refused: their losses are drawn by draw_min_separation.
"""

from __future__ import annotations

from typing import Any

from ..bound import DomainError
from ..what.allocation import balls_and_bins, random_allocation
from ..what.batches import cyclic_poisson, truncated_poisson_subsampled, without_replacement
from ..what.mechanism import Mechanism, Run, as_run, count, gaussian, poisson_subsampled
from ..what.replacement import with_replacement

__all__ = ["run_of"]


def run_of(strategy: Any, noise_multiplier: float, *, num_examples: int | None = None) -> Run:
    """The run of all iterations of a strategy with Gaussian noise.

    Parameters
    ----------
    strategy : jax_privacy.batch_selection.BatchSelectionStrategy
        How batches are drawn.
    noise_multiplier : float
        Noise over the largest norm of a record's contribution; of banded matrices over that of the columns as well.
    num_examples : int, optional
        Records, public. Needed where the law of batches depends on it: samples cut down to a largest batch, batches of
        a fixed size, groups that take turns.

    Returns
    -------
    Run
        All iterations. A record's group counts as known, as in `cyclic_poisson`.

    Raises
    ------
    DomainError
        If the strategy has no proof here, or a number is outside its domain.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.adapters.jax_privacy import run_of
    >>> class BallsInBinsSampling:
    ...     iterations, cycle_length = 400, 100
    >>> run_of(BallsInBinsSampling(), 2.0) == hs.balls_and_bins(hs.gaussian(2.0), 100, epochs=4) * 1
    True
    """
    name = type(strategy).__name__
    if name not in ROWS:
        raise DomainError(f"a strategy must be one of {', '.join(ROWS)}, got {strategy!r}")
    return as_run(ROWS[name](strategy, gaussian(noise_multiplier), num_examples))


def _whole_cycles(strategy: Any) -> tuple[int, int]:
    """(cycle_length, cycles)."""
    length = count("cycle_length", getattr(strategy, "cycle_length", 1), 1)
    iterations = count("iterations", strategy.iterations, 1)
    if iterations % length:
        more = -(-iterations // length) * length
        raise DomainError(
            f"iterations must be a multiple of cycle_length={length}, got {iterations}: ask about {more}, "
            "of which the run is a part"
        )
    return length, iterations // length


def _records(strategy: Any, num_examples: int | None) -> int:
    if num_examples is None:
        raise DomainError(f"num_examples must be given for {strategy!r}")
    return count("num_examples", num_examples, 1)


def _independent(strategy: Any) -> bool:
    """Whether every record draws its own group: that of others does not depend on it."""
    return getattr(getattr(strategy, "partition_type", None), "name", None) == "INDEPENDENT"


def _balls(strategy, noise, num_examples) -> Mechanism:
    bins, epochs = _whole_cycles(strategy)
    return balls_and_bins(noise, bins, epochs=epochs)


def _allocation(strategy, noise, num_examples) -> Mechanism:
    groups, steps = _whole_cycles(strategy)
    if groups > 1 and hasattr(strategy, "partition_type") and not _independent(strategy):
        raise DomainError(
            "partition_type must be INDEPENDENT for random allocation in groups: where groups have one size, others'"
            f" places tell that of a record (C1 of hs.random_allocation), got {strategy!r}"
        )
    return random_allocation(noise, steps, participations=strategy.total_participations)


def _poisson(strategy, noise, num_examples) -> Run | Mechanism:
    q, most = strategy.sampling_prob, strategy.truncated_batch_size
    iterations, groups = count("iterations", strategy.iterations, 1), count("cycle_length", strategy.cycle_length, 1)
    if groups > 1:
        return cyclic_poisson(
            noise,
            q,
            iterations=iterations,
            bands=groups,
            dataset_size=_records(strategy, num_examples),
            max_batch=most,
            per_record=_independent(strategy),
        )
    if most is None:
        return poisson_subsampled(noise, q) * iterations
    records = _records(strategy, num_examples)
    return truncated_poisson_subsampled(noise, q, dataset_size=records, max_batch=most) * iterations


def _fixed(strategy, noise, num_examples) -> Run:
    records = _records(strategy, num_examples)
    if strategy.replace:
        step: Mechanism = with_replacement(noise, dataset_size=records, batch=strategy.batch_size)
    else:
        step = without_replacement(noise, dataset_size=records, max_batch=strategy.batch_size)
    return step * count("iterations", strategy.iterations, 1)


ROWS = {
    "BallsInBinsSampling": _balls,
    "RandomAllocationSampling": _allocation,
    "CyclicPoissonSampling": _poisson,
    "FixedBatchSampling": _fixed,
}
