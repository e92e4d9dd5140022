"""What ran, as text: the JSON form of a step.

`KINDS` is the one table of serialisable mechanisms. Reading goes through the public constructors of
`mechanism`, so that text meets the same checks as a caller's numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .bound import DomainError
from .what.allocation import AllocationOfSeveral, RandomAllocation, allocated, random_allocation
from .what.batches import CyclicPoisson, TruncatedPoisson, cyclic_poisson, truncated_poisson_subsampled
from .what.discrete import (
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    KAryRandomizedResponse,
    approx_dp,
    discrete_gaussian,
    discrete_laplace,
    k_ary_randomized_response,
)
from .what.given import (
    REGISTERED,
    FromCurve,
    FromLossCdf,
    FromPmf,
    GaussianMixture,
    PublicMixture,
    fingerprint,
    from_curve,
    from_pmf,
    gaussian_mixture,
    public_mixture,
    registered,
)
from .what.groups import Group, GroupOfTruncated, group
from .what.matrix import Failure, failure
from .what.mechanism import (
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSubsampled,
    compose,
    gaussian,
    laplace,
    poisson_subsampled,
)
from .what.ranged import BoundedRange, bounded_range
from .what.replacement import WithReplacement, with_replacement
from .what.selection import Select, select
from .what.shuffling import Shuffled, shuffled
from .what.topk import TopK, top_k


class Kind(NamedTuple):
    """A serialisable mechanism: its class, the attributes that define it, and build(*attributes)."""

    cls: type[Mechanism]
    params: tuple[str, ...]
    build: Callable[..., Mechanism]


KINDS = {
    "gaussian": Kind(Gaussian, ("sigma", "sensitivity"), lambda s, c: gaussian(s, sensitivity=c)),
    "laplace": Kind(Laplace, ("scale", "sensitivity"), lambda s, c: laplace(s, sensitivity=c)),
    "discrete_gaussian": Kind(
        DiscreteGaussian, ("sigma", "sensitivity"), lambda s, c: discrete_gaussian(s, sensitivity=c)
    ),
    "discrete_laplace": Kind(
        DiscreteLaplace, ("scale", "sensitivity"), lambda s, c: discrete_laplace(s, sensitivity=c)
    ),
    "approx_dp": Kind(ApproxDP, ("eps0", "delta0"), approx_dp),
    "bounded_range": Kind(BoundedRange, ("eps0",), bounded_range),
    "random_allocation": Kind(RandomAllocation, ("base", "steps", "epochs"), allocated),
    "random_allocation_of_several": Kind(
        AllocationOfSeveral,
        ("base", "steps", "participations"),
        lambda base, t, k: random_allocation(base, t, participations=k),
    ),
    "failure": Kind(Failure, ("delta",), failure),
    "top_k": Kind(TopK, ("eps0", "k"), top_k),
    "select": Kind(Select, ("steps", "counts", "mean", "shape", "trials"), lambda *params: _selected(*params)),
    "with_replacement": Kind(
        WithReplacement,
        ("base", "dataset_size", "batch"),
        lambda base, n, batch: with_replacement(base, dataset_size=n, batch=batch),
    ),
    "shuffled": Kind(Shuffled, ("local", "n", "bound"), lambda local, n, bound: shuffled(local, n, bound=bound)),
    "k_ary_randomized_response": Kind(KAryRandomizedResponse, ("eps0", "k"), k_ary_randomized_response),
    "gaussian_mixture": Kind(GaussianMixture, ("sigma", "shifts", "probabilities"), gaussian_mixture),
    "group": Kind(Group, ("base", "records"), group),
    "group_of_truncated": Kind(GroupOfTruncated, ("base", "records"), group),
    "public_mixture": Kind(PublicMixture, ("parts", "weights"), public_mixture),
    "from_pmf": Kind(FromPmf, ("num", "den"), from_pmf),
    "from_curve": Kind(
        FromCurve, ("eps", "delta", "symmetric"), lambda eps, delta, both: from_curve(eps, delta, symmetric=both)
    ),
    "poisson_subsampled": Kind(PoissonSubsampled, ("base", "q"), poisson_subsampled),
    "truncated_poisson_subsampled": Kind(
        TruncatedPoisson,
        ("base", "q", "dataset_size", "max_batch", "assume_fixed_n"),
        lambda base, q, n, size, fixed: truncated_poisson_subsampled(
            base, q, dataset_size=n, max_batch=size, assume_fixed_n=fixed
        ),
    ),
    "registered": Kind(FromLossCdf, ("name", "probe"), registered),
    "cyclic_poisson": Kind(
        CyclicPoisson,
        ("base", "q", "iterations", "bands", "dataset_size", "max_batch", "column_norms", "per_record"),
        lambda base, q, t, b, n, size, norms, own: cyclic_poisson(
            base, q, iterations=t, bands=b, dataset_size=n, max_batch=size, column_norms=norms, per_record=own
        ),
    ),
}


def _selected(steps: Any, counts: Any, mean: Any, shape: Any, trials: Any) -> Mechanism:
    if not (isinstance(steps, list | tuple) and isinstance(counts, list | tuple) and len(steps) == len(counts)):
        raise DomainError(f"steps and counts must be lists of equal length, got {brief(steps)} and {brief(counts)}")
    run = compose(*zip(steps, counts, strict=True))
    return select(run, mean=mean, shape=math.inf if shape is None else shape, trials=trials)


_NAMES = {kind.cls: name for name, kind in KINDS.items()}


def to_json(step: Mechanism) -> dict[str, Any]:
    """A step as a JSON-able dict: "kind" and its parameters, a nested step as a nested dict.

    Floats stay floats; `json` writes the shortest text that reads back to the same double.

    Raises
    ------
    DomainError
        If the mechanism has no row in `KINDS`.
    """
    if isinstance(step, CyclicPoisson) and step.records != 1:
        one = to_json(dataclasses.replace(step, records=1))
        return {"kind": "group", "base": one, "records": _out(step.records)}
    name = _NAMES.get(type(step))
    if isinstance(step, FromLossCdf):
        for known, own in REGISTERED.items():
            if own is step:
                return {"kind": "registered", "name": known, "probe": fingerprint(step)}
        raise DomainError(
            "cannot serialise the functions of from_loss_cdf; hs.register(name, step) lets it be written by name"
        )
    if name is None:
        raise DomainError(f"cannot serialise {step!r}; serialisable kinds: {_listed(KINDS)}")
    params = {p: getattr(step, p) for p in KINDS[name].params}
    return {"kind": name, **{p: _out(v) for p, v in params.items()}}


def _out(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_out(v) for v in value]
    return to_json(value) if isinstance(value, Mechanism) else value


def _in(value: Any) -> Any:
    if isinstance(value, list):
        return [_in(v) for v in value]
    return from_json(value) if isinstance(value, dict) else value


def from_json(state: Any) -> Mechanism:
    """The step that `to_json` described. Strict: unknown kinds, missing keys and unknown keys are refused.

    Raises
    ------
    DomainError
        Naming what was found and what is allowed.
    """
    if not isinstance(state, dict) or "kind" not in state:
        raise DomainError(f'a step must be a dict with a "kind", got {brief(state)}')
    name = state["kind"]
    if not isinstance(name, str) or name not in KINDS:
        raise DomainError(f"unknown kind of step {brief(name)}; allowed: {_listed(KINDS)}")
    kind = KINDS[name]
    exact_keys(f"step of kind {name!r}", state, ("kind", *kind.params))
    values = (state[p] for p in kind.params)
    return kind.build(*(_in(v) for v in values))


def exact_keys(what: str, state: Any, allowed: tuple[str, ...]) -> None:
    """DomainError unless `state` is a dict with exactly the keys `allowed`."""
    if not isinstance(state, dict):
        raise DomainError(f"{what} must be a dict with keys {_listed(allowed)}, got {brief(state)}")
    for key in state:
        if key not in allowed:
            raise DomainError(f"{what} has unknown key {brief(key)}; allowed: {_listed(allowed)}")
    for key in allowed:
        if key not in state:
            raise DomainError(f"{what} lacks key {key!r}; needed: {_listed(allowed)}")


def brief(value: Any) -> str:
    """`value` in at most 60 characters, for messages."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(names) -> str:
    return ", ".join(names)
