"""An accountant for Flower's client-level differential privacy, whose epsilon is a certified upper bound.

    from flwr.serverapp import PrivacyConfig, NeighboringRelation, SamplingMethod
    strategy = DifferentialPrivacyServerSideFixedClipping(..., accountant=HockeystickAccountant(PrivacyConfig(...)))

It keeps the contract of `flwr.serverapp.PrivacyAccountant` (Flower 1.35 and later) and needs nothing of Flower: events
and configurations are read by their fields.

    sampling method        relation             step
    POISSON                ADD_OR_REMOVE_ONE    poisson_subsampled(gaussian(z), sample_size/population_size)
    WITHOUT_REPLACEMENT    REPLACE_ONE          without_replacement(gaussian(z), dataset_size=population_size, ...)
    NO_AMPLIFICATION       ADD_OR_REMOVE_ONE    gaussian(z)

z is the noise multiplier of the event. A client that is replaced by another moves a sum of updates of norm at most C by
up to 2C, as everywhere in this package; Flower's own accountant moves it by C, so that its numbers are smaller there.
"""

from __future__ import annotations

import math
import threading
from typing import Any, NamedTuple

from .. import query
from ..bound import Bound, DomainError
from ..what.batches import without_replacement
from ..what.mechanism import Mechanism, Run, compose, count, gaussian, poisson_subsampled, positive, within

METHOD = "hockeystick"
SCHEMA = 1
MODELS = {
    ("poisson", "add-or-remove-one"): "add_remove",
    ("without-replacement", "replace-one"): "replace_one",
    ("no-amplification", "add-or-remove-one"): "add_remove",
}
EVENT = ("noise_multiplier", "sample_size", "population_size")
CONFIG = ("target_delta", "population_size", "neighboring_relation", "sampling_method", "max_epsilon")


class PrivacySpent(NamedTuple):
    """What was spent, with the fields of Flower's class of this name, which is returned where Flower is installed."""

    epsilon: float
    delta: float
    num_releases: int
    accounting_method: str
    optimal_order: float | None = None


class HockeystickAccountant:
    """Cumulative privacy of sampled Gaussian releases.

    Parameters
    ----------
    config : flwr.serverapp.PrivacyConfig
        target_delta, population_size, neighboring_relation, sampling_method and max_epsilon.
    n_threads : int, default 1
        Threads of a query.

    Raises
    ------
    DomainError
        If the sampling method and the relation are none of the pairs above, or a number is outside its domain.

    Examples
    --------
    >>> from types import SimpleNamespace as Of
    >>> from hockeystick.adapters.flower import HockeystickAccountant
    >>> config = Of(target_delta=1e-5, population_size=10_000, neighboring_relation="add-or-remove-one",
    ...             sampling_method="poisson", max_epsilon=2.0)
    >>> accountant = HockeystickAccountant(config)
    >>> accountant.compose(Of(noise_multiplier=1.0, sample_size=100, population_size=10_000), 1000)
    >>> 1.828236666516576 < accountant.get_privacy_spent().epsilon < 1.82823667
    True
    """

    def __init__(self, config: Any, *, n_threads: int = 1) -> None:
        self._config = config
        sampling, relation = _word(config.sampling_method), _word(config.neighboring_relation)
        if (sampling, relation) not in MODELS:
            known = "; ".join(f"{a} with {b}" for a, b in MODELS)
            raise DomainError(
                f"no account of sampling_method {sampling!r} with neighboring_relation {relation!r}; known: {known}"
            )
        self._sampling = sampling
        self._options = {"adjacency": MODELS[sampling, relation], "n_threads": count("n_threads", n_threads, 0, 4096)}
        within("delta", config.target_delta, 0, 1, "()")
        count("population_size", config.population_size)
        if config.max_epsilon is not None:
            positive("max_epsilon", config.max_epsilon)
        self._compositions: list[tuple[Any, int]] = []
        self._run = compose()
        self._lock = threading.Lock()

    @property
    def config(self) -> Any:
        """The privacy configuration."""
        return self._config

    @property
    def num_releases(self) -> int:
        """Number of releases composed."""
        return self._run.steps

    @property
    def run(self) -> Run:
        """All that was composed."""
        return self._run

    def compose(self, event: Any, count: int = 1) -> None:
        """Record `count` releases like `event` (a flwr.serverapp.GaussianPrivacyEvent).

        Raises
        ------
        DomainError
            If a number is outside its domain or the event's population is not that of the configuration; nothing is
            recorded.
        """
        after = _times(self._step(event), count)
        with self._lock:
            self._run = compose(self._run, after)
            self._compositions.append((event, int(count)))

    def get_epsilon(self, delta: float) -> float:
        """The certified upper end of eps(delta), 0 < delta < 1."""
        return self.epsilon_bound(delta).upper

    def get_delta(self, epsilon: float) -> float:
        """The certified upper end of delta(epsilon), epsilon >= 0."""
        return query.delta(self._run, within("epsilon", epsilon, 0, math.inf, "[)"), **self._asked()).upper

    def epsilon_bound(self, delta: float) -> Bound:
        """eps(delta) as a certified Bound."""
        return query.epsilon(self._run, within("delta", delta, 0, 1, "()"), **self._asked())

    def get_privacy_spent(self, delta: float | None = None) -> Any:
        """eps at `delta`, or at the configured target_delta, with the number of releases."""
        at = self._config.target_delta if delta is None else delta
        return _spent()(
            epsilon=self.get_epsilon(at),
            delta=at,
            num_releases=self.num_releases,
            accounting_method=METHOD,
            optimal_order=None,
        )

    def would_exceed(self, event: Any, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Whether eps at target_delta could exceed `max_epsilon`, or the configured one, after `count` releases more.

        False is a proof that it does not; nothing is recorded.
        """
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise DomainError("max_epsilon must be given here or in the configuration")
        limit = positive("max_epsilon", limit)
        after = compose(self._run, _times(self._step(event), count))
        return not query.epsilon(after, self._config.target_delta, **self._asked(after)).upper <= limit

    def state_dict(self) -> dict[str, object]:
        """What was composed, as a JSON-able dict that `load_state_dict` of an equal configuration reads back
        exactly."""
        with self._lock:
            kept = list(self._compositions)
        return {
            "schema_version": SCHEMA,
            "backend": METHOD,
            "config": {name: _plain(getattr(self._config, name)) for name in CONFIG},
            "compositions": [{"event": {name: getattr(e, name) for name in EVENT}, "count": k} for e, k in kept],
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Replace what was composed by a `state_dict`, whose configuration must be this one's.

        Raises
        ------
        DomainError
            Naming what is wrong; nothing changes then.
        """
        if not isinstance(state, dict) or state.get("schema_version") != SCHEMA or state.get("backend") != METHOD:
            raise DomainError(f"state must be of schema_version {SCHEMA} and backend {METHOD!r}, got {state!r:.80}")
        own = {name: _plain(getattr(self._config, name)) for name in CONFIG}
        if state.get("config") != own:
            raise DomainError(f"state is of the configuration {state.get('config')!r}, this accountant has {own!r}")
        rows = state.get("compositions")
        if not isinstance(rows, list):
            raise DomainError(f"compositions must be a list, got {rows!r:.80}")
        loaded = HockeystickAccountant(self._config)
        for i, row in enumerate(rows):
            try:
                loaded.compose(_Event(**row["event"]), row["count"])
            except (KeyError, TypeError) as error:
                raise DomainError(
                    f"compositions[{i}] must have an event ({', '.join(EVENT)}) and a count: {error}"
                ) from None
        with self._lock:
            self._run, self._compositions = loaded._run, loaded._compositions

    def _asked(self, run: Run | None = None) -> dict[str, Any]:
        return self._options if (run or self._run).parts else {}

    def _step(self, event: Any) -> Mechanism:
        own = self._config.population_size
        if event.population_size != own:
            raise DomainError(
                f"population_size must be that of the configuration, {own!r}, got {event.population_size!r}"
            )
        size = count("population_size", event.population_size)
        sample = count("sample_size", event.sample_size, 1, size)
        noise = gaussian(positive("noise_multiplier", event.noise_multiplier))
        if self._sampling == "no-amplification":
            return noise
        if self._sampling == "without-replacement":
            return without_replacement(noise, dataset_size=size, max_batch=sample)
        return poisson_subsampled(noise, min(1.0, math.nextafter(sample / size, 1.0)))


class _Event(NamedTuple):
    noise_multiplier: float
    sample_size: int
    population_size: int


def _times(step: Mechanism, releases: int) -> Run:
    return step * count("count", releases)


def _word(value: Any) -> str:
    """The text of an enumeration's value."""
    return str(getattr(value, "value", value))


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def _spent() -> Any:
    try:
        from flwr.serverapp import PrivacySpent as Spent
    except ImportError:
        return PrivacySpent
    return Spent
