"""An Opacus accountant, "hockeystick", whose epsilon is a certified upper bound.

    import hockeystick.adapters.opacus                         # registers the name
    engine = opacus.PrivacyEngine(accountant="hockeystick")

Where Opacus has a registry, importing this module enters the accountant there; with an older Opacus assign
`engine.accountant = HockeystickAccountant()`. Without Opacus (and torch) the class works the same on a history that
came from elsewhere.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from copy import deepcopy
from typing import Any

from .. import query
from ..bound import Bound, DomainError
from ..what.mechanism import SIGMA_RANGE, Run, compose, count, gaussian, poisson_subsampled, within

try:
    from opacus.accountants import IAccountant
except ImportError:
    IAccountant = object

NAME = "hockeystick"
OPTIONS = ("adjacency", "direction", "route", "rtol", "n_threads")


class HockeystickAccountant(IAccountant):
    """Accountant of DP-SGD on Poisson samples, from its history alone.

    `history` is a list of (noise multiplier, sampling rate, steps), which may be assigned; every answer is computed
    from it as it is then.

    Examples
    --------
    >>> from hockeystick.adapters.opacus import HockeystickAccountant
    >>> accountant = HockeystickAccountant()
    >>> accountant.history = [(1.0, 0.01, 1000)]
    >>> 1.828236666516576 < accountant.get_epsilon(delta=1e-5) < 1.82823667
    True
    """

    def __init__(self):
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step; a step like the last one is counted with it."""
        if self.history and tuple(self.history[-1][:2]) == (noise_multiplier, sample_rate):
            sigma, rate, steps = self.history[-1]
            self.history[-1] = (sigma, rate, steps + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    @property
    def run(self) -> Run | None:
        """The history as a run; None if a step of it has no guarantee (no noise, or less than `gaussian` takes)."""
        parts = []
        for i, row in enumerate(self.history):
            try:
                sigma, rate, steps = row
            except (TypeError, ValueError):
                raise DomainError(f"history[{i}] must be (noise_multiplier, sample_rate, steps), got {row!r}") from None
            sigma = within(f"noise_multiplier of history[{i}]", sigma, 0, math.inf)
            rate = within(f"sample_rate of history[{i}]", rate, 0, 1)
            steps = count(f"steps of history[{i}]", steps, 0)
            if not rate or not steps:
                continue
            if sigma < SIGMA_RANGE[0]:
                return None
            parts.append((poisson_subsampled(gaussian(sigma), rate), steps))
        return compose(*parts)

    def get_epsilon(self, delta: float, **options: Any) -> float:
        """The certified upper end of eps(delta); inf if a step had no noise.

        Keywords that are not below (`alphas`, `eps_error`, `delta_error`, ...) are those of Opacus' other accountants,
        which callers pass to whichever they have: they are ignored, since the answer needs no tuning.

        Parameters
        ----------
        delta : float
            In (0, 1).
        adjacency, direction, route, rtol, n_threads
            As in `hockeystick.epsilon`.

        Raises
        ------
        DomainError
            If the history or an argument is outside its domain.
        AccuracyError
            If no bound can be certified.
        """
        own = {name: value for name, value in options.items() if name in OPTIONS}
        return self.epsilon_bound(delta, **own).upper

    def epsilon_bound(self, delta: float, **options) -> Bound:
        """eps(delta) as a certified Bound; arguments and errors as `get_epsilon`."""
        run = self.run
        if run is not None:
            return query.epsilon(run, delta, **options)
        bound = query.epsilon(compose(), delta, **options)  # checks the arguments
        sure = any(sigma == 0 and rate == 1 and steps for sigma, rate, steps in self.history)
        return Bound(float("inf") if sure else 0.0, float("inf"), float("inf"), "exact", True, bound.budget)

    def __len__(self) -> int:
        """Rows of the history, as in Opacus' own accountants; steps like the one before share a row."""
        return len(self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which Opacus knows this accountant."""
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float):
        """A callback for a DPOptimizer: one step at the rate of the batches accumulated."""

        def hook(optimizer) -> None:
            self.step(
                noise_multiplier=optimizer.noise_multiplier,
                sample_rate=sample_rate * optimizer.accumulated_iterations,
            )

        return hook

    def state_dict(self, destination: dict[str, Any] | None = None) -> dict[str, Any]:
        """`destination` (a new dict if None) with the keys "history" and "mechanism"."""
        destination = OrderedDict() if destination is None else destination
        destination["history"] = deepcopy(self.history)
        destination["mechanism"] = self.mechanism()
        return destination

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the history of a `state_dict` of an accountant of this name.

        Raises
        ------
        DomainError
            If a key is missing, the name is another, or the history is malformed; nothing changes then.
        """
        if not state_dict or "history" not in state_dict or "mechanism" not in state_dict:
            raise DomainError(f'state_dict must have the keys "history" and "mechanism", got {state_dict!r:.80}')
        if state_dict["mechanism"] != self.mechanism():
            raise DomainError(f"state_dict is of mechanism {state_dict['mechanism']!r}, this accountant is {NAME!r}")
        if not isinstance(state_dict["history"], list | tuple):
            raise DomainError(
                f"history must be a list of (noise_multiplier, sample_rate, steps), got {state_dict['history']!r}"
            )
        loaded = HockeystickAccountant()
        loaded.history = [tuple(row) if isinstance(row, list) else row for row in state_dict["history"]]
        _ = loaded.run  # checks every row
        self.history = loaded.history


def register() -> bool:
    """Enter the accountant in Opacus' registry; False where there is none. Importing this module calls it."""
    try:
        from opacus.accountants import register_accountant
    except ImportError:
        return False
    register_accountant(NAME, HockeystickAccountant, force=True)
    return True


register()
