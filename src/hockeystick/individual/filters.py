"""Privacy filters for whole data sets: a step whose privacy parameter was chosen from past outputs is asked
for before it runs, and runs only if the budget holds it.
"""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from ..arguments import respelled
from ..bound import DomainError
from ..what.mechanism import flag, positive, within
from . import units
from .store import Ledger

if TYPE_CHECKING:
    from typing_extensions import Self


class Kept:
    """What filters have in common: the file that keeps them, if there is one."""

    KIND: ClassVar[str]
    sticky: bool
    _ledger: Ledger | None
    _spent: Any
    _steps: int
    _closed: bool

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, sync: bool = True) -> Self:
        """What is kept in `path`, with every charge that it acknowledged. Raises StoreError; see `Ledger`."""
        ledger = Ledger.open(path, cls.KIND, sync)
        with ledger.closing_on_error():
            self = cls(**ledger.parameters)
            self._set(ledger.state)
        self._ledger = ledger
        return self

    def _set(self, state: dict[str, Any]) -> None:
        raise NotImplementedError

    def _state(self) -> dict[str, Any]:
        return {"spent": self._spent, "steps": self._steps, "closed": self._closed}

    def _asked(self, charged: bool, spent: Any, cost: Any, **more: Any) -> None:
        """One more step asked for, after which `spent` is spent: kept in the file, then here."""
        closed = self._closed or (self.sticky and not charged)
        state = {"spent": spent, "steps": self._steps + 1, "closed": closed, **more}
        if self._ledger:
            self._ledger.commit(state, {"step": state["steps"], "cost": cost, "charged": int(charged)})
        self._spent, self._steps, self._closed = spent, self._steps + 1, closed

    @property
    def steps(self) -> int:
        """Steps asked for, refused ones included."""
        return self._steps

    def close(self) -> None:
        """Release the file; the filter takes no more charges."""
        if self._ledger:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is not copied: two copies would spend one budget twice. Share it among threads,"
            " or keep it in a file (path=...) and open that where it is needed"
        )


# Fully adaptive composition at no loss: [theory: individual.gdp-filter].
class GDPFilter(Kept):
    """Fully adaptive composition of mu-GDP steps within a fixed budget.

    A step of parameter mu_j, chosen from past outputs, is allowed if and only if the squares of what was charged
    and of mu_j together do not exceed budget_mu^2; spending exactly the budget is allowed. Whatever was allowed
    is then budget_mu-GDP as a whole: no loss against parameters fixed in advance [KTH23, Thm 2; ST22].

    Parameters
    ----------
    budget_mu : float, optional
        Budget, from 1e-6 to 1e3.
    eps, delta : float, optional
        Instead of budget_mu: the largest budget certified to be (eps, delta)-DP. `epsilon` is another name of `eps`.
    sticky : bool, default False
        Whether the first refusal ends the filter. Without it a later, smaller step may fit: that is as safe,
        since what is charged never exceeds the budget.
    path : path-like, optional
        Keep the state in a new file; see `open`.
    sync : bool, default True
        With `path`: whether a charge also survives a loss of power (it always survives the death of the process).

    Raises
    ------
    DomainError
        If the budget is not given exactly once and inside its domain.
    StoreError
        If `path` exists or cannot be written.

    References
    ----------
    [KTH23] Algorithm 2 and Theorem 2; [ST22].

    Examples
    --------
    >>> import hockeystick as hs
    >>> filter = hs.GDPFilter(budget_mu=1.0)
    >>> [filter.charge(mu) for mu in (0.6, 0.7, 0.5, 0.9, 0.3)]
    [True, True, False, False, True]
    >>> round(filter.spent_mu_upper**2, 12)
    0.94
    """

    KIND = "gdp_filter"

    @respelled(epsilon="eps")
    def __init__(
        self,
        *,
        budget_mu: float | None = None,
        eps: float | None = None,
        delta: float | None = None,
        sticky: bool = False,
        path: str | os.PathLike[str] | None = None,
        sync: bool = True,
    ) -> None:
        self.budget_mu = units.budget(budget_mu, eps, delta)
        self.sticky = flag("sticky", sticky)
        self._set({"spent": 0, "steps": 0, "closed": False})
        parameters = {"budget_mu": self.budget_mu, "sticky": self.sticky}
        self._ledger = None if path is None else Ledger.create(path, self.KIND, parameters, self._state(), sync)

    def _set(self, state: dict[str, Any]) -> None:
        self._units = units.units_of(self.budget_mu)
        self._spent, self._steps, self._closed = state["spent"], state["steps"], state["closed"]
        self._lock = threading.Lock()

    def charge(self, mu: float | None = None, *, sigma: float | None = None, sensitivity: float = 1.0) -> bool:
        """Ask for a step before it runs; charge it if the budget holds it.

        Parameters
        ----------
        mu : float
            GDP parameter of the step, finite and >= 0.
        sigma, sensitivity : float
            Instead of mu: noise standard deviation and sensitivity; mu = sensitivity/sigma, formed exactly.

        Returns
        -------
        bool
            True: charged, run the step. False: not charged, do not run it.

        Raises
        ------
        DomainError
            For arguments outside their domain; nothing is charged.
        StoreError
            If the file cannot take the charge; nothing is charged.
        """
        cost = self._units.cost(exact_mu(mu, sigma, sensitivity))
        with self._lock:
            ok = not self._closed and self._spent + cost <= self._units.limit
            self._asked(ok, self._spent + (cost if ok else 0), cost)
        return ok

    @property
    def spent_mu_upper(self) -> float:
        """sqrt of the sum of squares charged, rounded up. It is no guarantee by itself unless the stopping rule
        was the filter: what is guaranteed is `budget_mu`."""
        return self._units.mu_upper(self._spent)

    @property
    def left_mu_lower(self) -> float:
        """The largest mu that a step may have now, rounded down: a last step scaled to it spends the budget."""
        return 0.0 if self._closed else self._units.left_mu_lower(self._spent)

    def admits(self, mu: float | None = None, *, sigma: float | None = None, sensitivity: float = 1.0) -> int:
        """How many more steps of one kind `charge` would allow from now on, one after another; asking charges nothing.

        Parameters
        ----------
        mu, sigma, sensitivity : float
            As in `charge`; mu > 0.

        Returns
        -------
        int
            Exact: so many would be charged, and the next one refused.

        Raises
        ------
        DomainError
            For arguments outside their domain, and a step that costs nothing.

        Examples
        --------
        >>> import hockeystick as hs
        >>> hs.GDPFilter(budget_mu=1.0).admits(0.25)
        16
        """
        cost = self._units.cost(exact_mu(mu, sigma, sensitivity))
        if not cost:
            raise DomainError(f"mu must be > 0 to count steps, got {mu!r}")
        with self._lock:
            return 0 if self._closed else (self._units.limit - self._spent) // cost

    def epsilon_upper(self, delta: float) -> float:
        """Certified upper bound of eps(delta) of everything that the filter will ever allow: of `budget_mu`."""
        return units.epsilon_upper(self.budget_mu, delta)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(budget_mu={self.budget_mu!r}, spent_mu_upper={self.spent_mu_upper:.17g})"


def exact_mu(mu: float | None, sigma: float | None, sensitivity: float) -> Fraction:
    """mu, or sensitivity/sigma, as an exact fraction."""
    if (mu is None) == (sigma is None):
        raise DomainError(f"give either mu or sigma, got mu={mu!r}, sigma={sigma!r}")
    if mu is not None:
        return Fraction(within("mu", mu, 0, math.inf, "[)"))
    return Fraction(within("sensitivity", sensitivity, 0, math.inf, "[)")) / Fraction(positive("sigma", sigma))


# A budget an order: [theory: individual.rdp-filter]; whichever order holds out: [theory: individual.rdp-shares].
