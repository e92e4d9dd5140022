"""The odometer: a sequence of filters of pre-set budgets, whose count is the running statement."""

from __future__ import annotations

import os
import threading
from typing import Any

from ..bound import DomainError
from ..what.mechanism import within
from . import units
from .filters import Kept, exact_mu
from .store import Ledger


# The statement for every n: [theory: individual.odometer].
class GDPOdometer(Kept):
    """A running privacy statement for adaptively chosen mu-GDP steps, without a total budget.

    Filters of budget `increment_mu` run one after another. A step that does not fit what is left of the running
    one starts the next (a refill; what was left is forgone). For every n, everything up to the end of the n-th filter
    is sqrt(n) increment_mu-GDP. The statement changes at refills only: what is spent inside the running filter is not
    released. It is one statement for each n, not one for an n at which a look at the outputs made the run stop.

    Parameters
    ----------
    increment_mu : float
        Budget of each filter, from 1e-6 to 1e3.
    path, sync
        As in `GDPFilter`.

    Raises
    ------
    DomainError
        If `increment_mu` is outside its domain.

    References
    ----------
    [KTH23], App. C.5.

    Examples
    --------
    >>> import hockeystick as hs
    >>> odometer = hs.GDPOdometer(increment_mu=1.0)
    >>> [odometer.charge(0.5) for _ in range(6)]
    [1, 1, 1, 1, 2, 2]
    >>> odometer.mu_upper
    1.4142135623730958
    """

    KIND = "gdp_odometer"

    def __init__(self, *, increment_mu: float, path: str | os.PathLike[str] | None = None, sync: bool = True) -> None:
        self.increment_mu = within("increment_mu", increment_mu, *units.MU_RANGE)
        self._set({"spent": 0, "steps": 0, "filters": 0})
        self._ledger = None
        if path is not None:
            self._ledger = Ledger.create(path, self.KIND, {"increment_mu": self.increment_mu}, self._state(), sync)

    def _set(self, state: dict[str, Any]) -> None:
        self._units = units.units_of(self.increment_mu)
        self._spent, self._steps, self._filters = state["spent"], state["steps"], state["filters"]
        self._lock = threading.Lock()

    def _state(self) -> dict[str, Any]:
        return {"spent": self._spent, "steps": self._steps, "filters": self._filters}

    def charge(self, mu: float | None = None, *, sigma: float | None = None, sensitivity: float = 1.0) -> int:
        """Charge a step before it runs; start the next filter if it does not fit the running one.

        Parameters
        ----------
        mu, sigma, sensitivity : float
            As in `GDPFilter.charge`.

        Returns
        -------
        int
            The number n of filters started so far, this step's included: everything so far is
            sqrt(n) increment_mu-GDP.

        Raises
        ------
        DomainError
            For arguments outside their domain, and for a step larger than an increment, which no filter can
            hold; nothing is charged.
        """
        exact = exact_mu(mu, sigma, sensitivity)
        cost = self._units.cost(exact)
        if cost > self._units.limit:
            raise DomainError(
                f"a step of mu={float(exact):.17g} fits no increment of {self.increment_mu!r}; start with a larger one"
            )
        with self._lock:
            fits = self._filters > 0 and self._spent + cost <= self._units.limit
            state = {
                "spent": self._spent + cost if fits else cost,
                "steps": self._steps + 1,
                "filters": self._filters if fits or (cost == 0 and self._filters == 0) else self._filters + 1,
            }
            if self._ledger:
                self._ledger.commit(state, {"step": state["steps"], "cost": cost, "charged": 1})
            self._spent, self._steps, self._filters = state["spent"], state["steps"], state["filters"]
            return self._filters

    @property
    def filters(self) -> int:
        """Number of filters started: the only thing that may be shown while steps run."""
        return self._filters

    @property
    def steps(self) -> int:
        """Steps charged."""
        return self._steps

    @property
    def mu_upper(self) -> float:
        """sqrt(filters) increment_mu, rounded up: the GDP parameter of everything so far."""
        if not self._filters:
            return 0.0
        return self.increment_mu * self._filters**0.5 * (1 + 4 * 2.0**-53)

    def epsilon_upper(self, delta: float) -> float:
        """Certified upper bound of eps(delta) at `mu_upper`."""
        return units.epsilon_upper(self.mu_upper, delta)

    def __repr__(self) -> str:
        return f"GDPOdometer(increment_mu={self.increment_mu!r}, filters={self._filters})"
