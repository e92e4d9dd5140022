"""dp_accounting's events as steps of this library: one row per event type, with the proof of each.

An event is a value with a type name and fields, so nothing is imported from dp_accounting; types of newer releases are
rows like any other. A row yields (what, count, pure): a Mechanism, or NonPrivate or Zcdp; how often; and an upper bound
of its pure eps (inf if it has none). Numbers that have to be rounded are rounded towards less privacy when `worse` is
set, towards more otherwise, and a step that only dominates the event is None then: two translations enclose the event,
because leaving a step out is post-processing. What has no proof, or needs a constructor that this release does not
have, is refused (RefusedError)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import hockeystick

from ..bound import DomainError
from ..outward import U
from ..what.allocation import AllocationOfSeveral
from ..what.mechanism import LAPLACE_RANGE, SIGMA_RANGE, Mechanism, count, leaves, real, within
from ..what.ranged import EPS0_MIN


class RefusedError(Exception):
    """`event` cannot be translated; the message says why."""

    def __init__(self, event, message: str):
        super().__init__(message)
        self.event = event


class NonPrivate(NamedTuple):
    """A step without any guarantee; `sure` if eps is infinite at every delta below 1, not only unbounded here."""

    sure: bool = True


class Zcdp(NamedTuple):
    """A step of which only (alpha, xi + rho alpha)-RDP for all alpha > 1 is known [BS16]."""

    rho: float
    xi: float


class Asked(NamedTuple):
    """What a translation is for: the adjacency, on which side numbers are rounded, and whether data set sizes are
    fixed."""

    adjacency: str
    worse: bool
    fixed: bool = False


def translate(event, adjacency: str, *, worse: bool, fixed: bool = False) -> list[tuple[Any, int, float]]:
    """The event as [(what, count, pure eps upper bound)]; DomainError or RefusedError if it has no proof."""
    return list(_walk(event, 1, Asked(adjacency, worse, fixed)))


def up(x: float, slack: float = 4 * U) -> float:
    """x >= 0 moved up by at least the relative error of a few operations; 0 and inf are exact."""
    return math.nextafter(x * (1 + slack), math.inf) if x else 0.0


def down(x: float, slack: float = 4 * U) -> float:
    """x >= 0 moved down likewise."""
    return max(0.0, math.nextafter(x * (1 - slack), 0.0))


def _walk(event, k: int, asked: Asked):
    """Composition is adaptive in dp_accounting and here: the pairs dominate step by step [GLW21, Thm 3.5]."""
    name = type(event).__name__
    if name == "NoOpDpEvent":
        return
    if name == "SelfComposedDpEvent":
        yield from _walk(event.event, k * count("count", event.count), asked)
    elif name == "ComposedDpEvent":
        for each in event.events:
            yield from _walk(each, k, asked)
    elif name in ROWS:
        for what, n, pure in ROWS[name](event, asked):
            yield what, n * k, pure
    else:
        raise RefusedError(event, f"{name} has no translation with a proof; supported: {', '.join(SUPPORTED)}")


def _make(event, name: str, *args, **named) -> Mechanism:
    maker = getattr(hockeystick, name, None)
    if maker is None:
        raise RefusedError(event, f"{type(event).__name__} needs hockeystick.{name}, which this release does not have")
    return maker(*args, **named)


def _side(x: float, less_private: str, asked: Asked) -> float:
    """x rounded to the side that is asked for; `less_private` says which way that is ("up" or "down")."""
    return up(x) if asked.worse == (less_private == "up") else down(x)


def _non_negative(name: str, value) -> float:
    return within(name, value, 0, math.inf, "[)")


def _rate(name: str, value) -> float:
    return within(name, value, 0, 1)


def _relations(event, *names: str) -> str:
    """What is wrong with an event that only these relations define, in the peer's words."""
    allowed = " or ".join(f"`{name}`" for name in names)
    return f"neighboring_relation must be {allowed} for {type(event).__name__}"


def _non_private(event, asked):
    yield NonPrivate(), 1, math.inf


def _gaussian(event, asked):
    sigma = _one_gaussian(event, asked)
    yield (hockeystick.gaussian(sigma) if sigma else NonPrivate()), 1, math.inf


def _one_gaussian(event, asked):
    """sigma of the single Gaussian step that a nest of composed Gaussian steps on the same records equals; None if it
    is not such a nest; inf if it is empty.

    The pairs N(m_i, 1) against N(0, 1) compose to N(m, 1) against N(0, 1), m^2 = sum m_i^2: the projection on (m_i) is
    sufficient. So this may stand inside a sampling step, whose pair is built from the pair inside [ZDW22, Thm 11].
    """
    name = type(event).__name__
    if name == "GaussianDpEvent":
        return _non_negative("noise_multiplier", event.noise_multiplier)
    if name == "NoOpDpEvent":
        return math.inf
    if name == "SelfComposedDpEvent":
        sigma, k = _one_gaussian(event.event, asked), count("count", event.count)
        return sigma if not sigma or k == 1 else _side(sigma / math.sqrt(k), "down", asked)
    if name != "ComposedDpEvent":
        return None
    sigmas = [_one_gaussian(each, asked) for each in event.events]
    if None in sigmas or 0 in sigmas:
        return None if None in sigmas else 0.0
    finite = [s for s in sigmas if s < math.inf]
    if len(finite) <= 1:
        return finite[0] if finite else math.inf
    precision = math.fsum(s**-2 for s in finite)
    return _side(1 / math.sqrt(precision), "down", asked)


def _laplace(event, asked):
    scale = _non_negative("noise_multiplier", event.noise_multiplier)
    if not scale:
        yield NonPrivate(), 1, math.inf
    else:
        pure = up(1 / scale) * (2 if asked.adjacency == "replace_one" else 1)
        yield _make(event, "laplace", scale), 1, pure


def _discrete_laplace(event, asked):
    """pmf ~ exp(-a |x|) is scale 1/a."""
    a = _non_negative("noise_parameter", event.noise_parameter)
    sensitivity = count("sensitivity", event.sensitivity)
    if not a:
        # exp(-0 |x|) has no law; dp_accounting reads it as no privacy, which bounds everything.
        yield NonPrivate(sure=False), 1, math.inf
    else:
        pure = up(a * sensitivity) * (2 if asked.adjacency == "replace_one" else 1)
        yield _make(event, "discrete_laplace", _side(1 / a, "down", asked), sensitivity=sensitivity), 1, pure


def _discrete_gaussian(event, asked):
    """Integer shifts of l2 norm at most the sensitivity. The step itself in one dimension, and where the norm lets only
    one coordinate move, by 1. Elsewhere, and where no dimension is given, the pair depends on the direction: a
    coordinate that moves by x is x^2/(2 sigma^2)-zCDP [CKS20, Thm. 4], and these numbers add up."""
    dimension = getattr(event, "dimension", None)
    if dimension is not None:
        count("dimension", dimension)
    sensitivity, sigma = event.sensitivity, _non_negative("sigma", event.sigma)
    if dimension != 1:
        sensitivity = _non_negative("sensitivity", sensitivity)
    if not sigma:
        yield NonPrivate(), 1, math.inf
    elif dimension == 1 or (sensitivity**2 < 2 and asked.adjacency != "replace_one"):
        if dimension == 1:
            whole = isinstance(sensitivity, float) and sensitivity.is_integer()
            sensitivity = count("sensitivity", int(sensitivity) if whole else sensitivity)
        if sensitivity >= 1:
            yield _make(event, "discrete_gaussian", sigma, sensitivity=int(sensitivity)), 1, math.inf
    else:
        moved = 2 if asked.adjacency == "replace_one" else 1
        rho = 0.5 * (moved * sensitivity / sigma) ** 2
        if sensitivity:
            yield Zcdp(up(rho) if asked.worse else down(rho), 0.0), 1, math.inf


def _randomized_response(event, asked):
    """The true bucket with probability 1 - p, else uniform over K: e^eps0 = 1 + K (1 - p) / p.

    Defined for replacing a record: by another, or by the special record, whose output is uniform.
    """
    if asked.adjacency == "add_remove":
        raise RefusedError(event, _relations(event, "REPLACE_ONE", "REPLACE_SPECIAL"))
    p, buckets = _rate("noise_parameter", event.noise_parameter), count("num_buckets", event.num_buckets)
    if buckets == 1 or p == 1:
        return
    if p == 0:
        yield NonPrivate(), 1, math.inf
        return
    eps0 = _side(math.log1p(buckets * (1 - p) / p), "up", asked)
    # Against the uniform law the losses are log(1 - p + p/K) + log K and log p, or minus these.
    pure = eps0 if asked.adjacency == "replace_one" else max(math.log(buckets * (1 - p) + p), -math.log(p))
    yield _make(event, "k_ary_randomized_response", eps0, buckets), 1, up(pure, 64 * U)


def _approx_dp(event, asked):
    """The event is the family of all (eps, delta)-DP steps; this is its worst pair [GLW21, Prop. B.3]."""
    eps, delta = _non_negative("epsilon", event.epsilon), _rate("delta", event.delta)
    if delta == 1:
        yield NonPrivate(), 1, math.inf
    elif delta:
        yield _make(event, "approx_dp", eps, delta), 1, math.inf
    elif eps:
        yield _make(event, "pure_dp", eps), 1, eps


def _permute_and_flip(event, asked):
    """Permute-and-flip is a threshold of Laplace noise at worst [theory: range.flip]. Under replace_one, where a sample
    of a Laplace step stands for three laws, and beyond the range of `laplace`, it is the worst step of pure eps-DP."""
    eps = _non_negative("epsilon", event.epsilon)
    if not eps:
        return
    scale = down(1 / eps)
    if asked.adjacency != "replace_one" and LAPLACE_RANGE[0] <= scale <= LAPLACE_RANGE[1]:
        step = _make(event, "laplace", scale)
    else:
        step = _make(event, "pure_dp", eps)
    yield _dominated(step, asked), 1, eps


def _exponential(event, asked):
    """The exponential mechanism has bounded range: all its losses lie in an interval of length eps."""
    eps = _non_negative("epsilon", event.epsilon)
    if eps:
        yield _dominated(_make(event, "bounded_range", max(eps, EPS0_MIN)), asked), 1, eps


def _dominated(step: Mechanism, asked: Asked) -> Mechanism | None:
    return step if asked.worse else None


def _mixture(event, asked):
    """N(0, sigma^2) against sum_i p_i N(c_i, sigma^2); with one c_i != 0 a Poisson-sampled Gaussian step."""
    if asked.adjacency == "replace_one":
        raise RefusedError(event, _relations(event, "ADD_OR_REMOVE_ONE", "REPLACE_SPECIAL"))
    sigma = _non_negative("standard_deviation", event.standard_deviation)
    shifts = [real("sensitivities", c, "") for c in event.sensitivities]
    weights = [_rate("sampling_probs", p) for p in event.sampling_probs]
    if len(shifts) != len(weights) or not abs(math.fsum(weights) - 1) <= 1e-9:
        raise DomainError(f"sampling_probs must add up to 1, one per sensitivity, got {event.sampling_probs!r}")
    parts: dict[float, list[float]] = {}
    for c, p in zip(shifts, weights, strict=True):
        if p > 0:
            parts.setdefault(c, []).append(p)
    moved = sorted(set(parts) - {0.0})
    if not moved:
        return
    if not sigma:
        yield NonPrivate(sure=False), 1, math.inf
    elif len(moved) == 1:
        held, rest = math.fsum(parts[moved[0]]), 1 - math.fsum(parts.get(0.0, [0.0]))
        q = held if held == rest else min(1.0, _side(max(held, rest) if asked.worse else min(held, rest), "up", asked))
        yield hockeystick.poisson_subsampled(hockeystick.gaussian(sigma, sensitivity=abs(moved[0])), q), 1, math.inf
    elif min(moved) < 0 < max(moved):
        raise RefusedError(event, "MixtureOfGaussiansDpEvent with sensitivities of both signs has no pair here")
    else:
        levels = sorted(parts, key=abs)
        weights = [math.fsum(parts[c]) for c in levels]
        yield _make(event, "gaussian_mixture", sigma, [abs(c) for c in levels], weights), 1, math.inf


def _zcdp(event, asked):
    rho, xi = _non_negative("rho", event.rho), _non_negative("xi", event.xi)
    if rho:
        yield Zcdp(rho, xi), 1, math.inf
    elif xi:
        yield _make(event, "pure_dp", xi), 1, xi  # (alpha, xi)-RDP for all alpha is xi-DP


def _tree_aggregation(event, asked):
    """A record meets one leaf of one tree, hence at most bit_length(n) nodes of a tree of n leaves: one Gaussian step
    of L2 sensitivity sqrt(bit_length(n)), n the largest tree [KMS21, App. D]."""
    if asked.adjacency != "zero_out":
        raise RefusedError(event, _relations(event, "REPLACE_SPECIAL"))
    sigma = _non_negative("noise_multiplier", event.noise_multiplier)
    counts = event.step_counts if isinstance(event.step_counts, list | tuple) else [event.step_counts]
    if not counts:
        raise DomainError(f"step_counts must not be empty, got {event.step_counts!r}")
    depth = max(count("step_counts", n, 0) for n in counts).bit_length()
    if depth and not sigma:
        yield NonPrivate(), 1, math.inf
    elif depth:
        yield hockeystick.gaussian(sigma if depth == 1 else _side(sigma / math.sqrt(depth), "down", asked)), 1, math.inf


def _poisson(event, asked):
    """Sampling a sample multiplies the rates. The step inside must be one step: its pair (P, Q) becomes
    (q P + (1-q) Q, Q) [ZDW22, Thm 11], which is not the composition of sampled parts."""
    q, inner = _rate("sampling_probability", event.sampling_probability), event.event
    while type(inner).__name__ == "PoissonSampledDpEvent":
        product = q * _rate("sampling_probability", inner.sampling_probability)
        q = product if 1 in (q, inner.sampling_probability) or not product else min(1.0, _side(product, "up", asked))
        inner = inner.event
    if not q:
        return
    sigma = _one_gaussian(inner, asked)
    if sigma == math.inf:
        return
    if sigma:
        step, pure = hockeystick.gaussian(sigma), math.inf
    elif sigma == 0:
        step, pure = NonPrivate(), math.inf
    else:
        parts = list(_walk(inner, 1, asked))
        if not parts:
            return
        bare = [what for what, _, _ in parts if isinstance(what, NonPrivate)]
        if bare:
            step, pure = NonPrivate(any(what.sure for what in bare)), math.inf
        elif len(parts) == 1 and parts[0][1] == 1 and not isinstance(parts[0][0], Zcdp):
            step, _, pure = parts[0]
            if step is None:
                yield None, 1, pure
                return
        else:
            raise RefusedError(event, f"PoissonSampledDpEvent takes one step or composed Gaussian steps, got {inner!r}")
    if isinstance(step, NonPrivate):
        yield NonPrivate(step.sure and q == 1), 1, math.inf
        return
    if pure < math.inf and asked.adjacency != "replace_one" and q < 1:
        pure = up(math.log1p(q * math.expm1(min(pure, 700.0))), 16 * U) if pure < 700 else pure
    if q < 1 and any(leaf.sized for leaf in leaves(step)):
        raise RefusedError(
            event,
            f"PoissonSampledDpEvent cannot take a step that states a dataset size, got {inner!r}: its proof is for that"
            " size",
        )
    yield hockeystick.poisson_subsampled(step, q), 1, pure


def _random_allocation(event, asked):
    """`num_steps` runs of the event inside, every record in `num_selected` of them (allocation.py). Of several: blocks
    of one participation each dominate, a Gaussian step is what shows in the sum of all outputs; as many steps of more
    noise are that step once."""

    def charged(step, steps, taken):
        return _make(event, "random_allocation", step, steps, participations=taken)

    found = _chosen(event, asked, "num_steps", "num_selected", charged, runs=lambda steps: steps, sure=True)
    for step, k, pure in found:
        if isinstance(step, AllocationOfSeveral):
            (what, n), *rest = step.above()
            seen = up(step.below()[0].sigma * math.sqrt(n))
            mild = hockeystick.gaussian(seen) if seen <= SIGMA_RANGE[1] else None
            yield what if asked.worse else mild, n * k, pure
            yield from ((block if asked.worse else None, m * k, pure) for block, m in rest)
        else:
            yield step, k, pure


def _without_replacement(event, asked):
    def charged(step, size, batch):
        return _make(event, "without_replacement", step, dataset_size=size, max_batch=batch, assume_fixed_n=asked.fixed)

    return _chosen(event, asked, "source_dataset_size", "sample_size", charged, runs=lambda size: 1, sure=False)


def _with_replacement(event, asked):
    size = count("source_dataset_size", event.source_dataset_size, 0)
    draws = count("sample_size", event.sample_size, 0)
    sigma = _one_gaussian(event.event, asked)
    if sigma is None:
        raise RefusedError(event, f"{type(event).__name__} takes Gaussian steps, got {event.event!r}")
    if not (size and draws) or sigma == math.inf:
        return
    if not sigma:
        yield NonPrivate(sure=False), 1, math.inf
    else:
        yield (
            _make(event, "with_replacement", hockeystick.gaussian(sigma), dataset_size=size, batch=draws),
            1,
            math.inf,
        )


def _chosen(event, asked, whole: str, part: str, charged, *, runs, sure: bool):
    """A Gaussian step inside that meets a record in `part` of `whole` cases, fields of the event: charged(step, whole,
    part). All cases are runs(whole) runs of what is inside. sure: whether each record is met."""
    most = count(whole, getattr(event, whole), 0)
    some = count(part, getattr(event, part), 0)
    if some > most:
        raise DomainError(f"{part} must be at most {whole}={most}, got {some}")
    if not some:
        return
    if some == most:
        yield from _walk(event.event, runs(most), asked)
        return
    sigma = _one_gaussian(event.event, asked)
    if sigma is None:
        raise RefusedError(event, f"{type(event).__name__} takes Gaussian steps, got {event.event!r}")
    if not sigma:
        yield NonPrivate(sure), 1, math.inf
    elif sigma < math.inf:
        yield charged(hockeystick.gaussian(sigma), most, some), 1, math.inf


def _truncated(event, asked):
    size = count("dataset_size", event.dataset_size, 0)
    batch = count("truncated_batch_size", event.truncated_batch_size, 0)
    q = _rate("sampling_probability", event.sampling_probability)
    sigma = _non_negative("noise_multiplier", event.noise_multiplier)
    if not (size and batch and q):
        return
    if not sigma:
        yield NonPrivate(sure=False), 1, math.inf
    else:
        step = hockeystick.gaussian(sigma)
        yield (
            _make(
                event,
                "truncated_poisson_subsampled",
                step,
                q,
                dataset_size=size,
                max_batch=batch,
                assume_fixed_n=asked.fixed,
            ),
            1,
            math.inf,
        )


def _repeat_and_select(event, asked):
    """The best of a random number of runs (selection.py); of eps-DP runs it is (2 + shape) eps-DP, for every mean of a
    truncated negative binomial number [PS22, Cor. 3]. A guarantee only: the score is not part of the event."""
    shape = event.shape if event.shape == math.inf else _non_negative("shape", event.shape)
    mean = real("mean", event.mean, "at least 1")
    if not mean >= 1:
        raise DomainError(f"mean must be at least 1, got {event.mean!r}")
    parts = list(_walk(event.event, 1, asked))
    if not parts:
        return
    if any(isinstance(what, NonPrivate) for what, _, _ in parts):
        yield NonPrivate(sure=False), 1, math.inf
        return
    if any(isinstance(what, Zcdp) for what, _, _ in parts):
        raise RefusedError(event, "RepeatAndSelectDpEvent has no proof here for ZCDpEvent, whose curve is not known")
    eps = up((2 + shape) * math.fsum(n * each for _, n, each in parts))
    if not asked.worse:
        yield None, 1, eps
        return
    run = hockeystick.compose(*((what, n) for what, n, _ in parts))
    yield _make(event, "select", run, mean=mean, shape=shape), 1, eps


ROWS = {
    "NonPrivateDpEvent": _non_private,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "RandomizedResponseDpEvent": _randomized_response,
    "EpsilonDeltaDpEvent": _approx_dp,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute_and_flip,
    "MixtureOfGaussiansDpEvent": _mixture,
    "ZCDpEvent": _zcdp,
    "SingleEpochTreeAggregationDpEvent": _tree_aggregation,
    "RepeatAndSelectDpEvent": _repeat_and_select,
    "PoissonSampledDpEvent": _poisson,
    "RandomAllocationDpEvent": _random_allocation,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "SampledWithReplacementDpEvent": _with_replacement,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
}
SUPPORTED = ("NoOpDpEvent", "ComposedDpEvent", "SelfComposedDpEvent", *ROWS)
