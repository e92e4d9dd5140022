"""The Renyi filter: fully adaptive composition of any mechanism whose Renyi curve is known."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arguments import respelled
from ..bound import AccuracyError, DomainError
from ..outward import DOWN, UP, U
from ..routes import moments
from ..what.mechanism import Mechanism, Run, as_run, flag, leaves, positive, within
from .filters import Kept
from .store import Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..types import Ran

INTEGER_ORDERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256)
ORDER_MAX = 1024


class Shares(NamedTuple):
    """Renyi orders, the share w of delta of each (none where budgets were given), and the largest rho of each."""

    orders: tuple[float, ...]
    weights: tuple[float, ...]
    budgets: tuple[float, ...]


class RDPFilter(Kept):
    """Fully adaptive composition of Renyi-DP steps: of any mechanism whose Renyi curve is known.

    Two uses. With `budgets` (one rho a listed order), a step is allowed if every order stays within its own
    budget; the transcript is then (alpha, rho)-RDP at every listed order [FZ21, Thm 4.3]. With `epsilon` and
    `delta`, a step is allowed as long as some order stays within

        rho_alpha = eps - log(1 - 1/alpha) + log(alpha delta w_alpha)/(alpha - 1),   sum of w_alpha = 1,

    and the transcript is (eps, delta)-DP: on the event that order alpha is within its budget the supermartingale
    exp((alpha-1)(loss - sum rho)) bounds its part of delta by w_alpha delta [CKS20, Prop. 12 for the conversion].

    The shares w say what the filter is good for. With n equal ones every order pays log n/(alpha - 1) of eps, half of a
    budget of eps = 1. With a `plan` the order that holds it most often has 31/32 of delta, which costs 0.03/(alpha -
    1); the others share the rest, for steps that turn out differently. A filter that is given neither plan, orders nor
    weights takes the first step that it can charge for its plan: that one is chosen before anything came out. `admits`
    tells what a filter can still take. Sampled steps of little noise stay hard for every Renyi order: at eps = 1, sigma
    = 1, q = 0.01 a plan holds 3 steps. Where the steps chosen on the way have a worst one in common, no filter is
    needed: however noise >= 1, rates <= 0.01 and the end of the run are chosen, `max_steps` such steps fit, here 254
    [theory: pair.composition].

    Parameters
    ----------
    orders : sequence of float, optional
        Renyi orders, 1 < alpha <= 1024, increasing. Default: 24 whole orders from 2 to 256, and the one that suits the
        plan.
    budgets : sequence of float
        rho > 0 for every order.
    eps, delta : float
        Instead of budgets. `epsilon` is another name of `eps`.
    plan : Run or Mechanism, optional
        With eps and delta: the steps that are expected, in their proportions. What is charged is what is asked for; the
        plan decides the shares of delta only, and no guarantee rests on it. Default: the first step that is charged.
    weights : sequence of float, optional
        With eps and delta: the shares w of the orders, > 0, of sum at most 1. Default: those of the plan; equal ones
        where `orders` are given.
    sticky : bool, default False
        Whether the first refusal ends the filter.
    path, sync
        As in `GDPFilter`.

    Raises
    ------
    DomainError
        For arguments outside their domain, or (epsilon, delta) that leave no order a positive budget.

    References
    ----------
    [FZ21] Theorem 4.3; [CKS20] Proposition 12.

    Examples
    --------
    >>> import hockeystick as hs
    >>> filter = hs.RDPFilter(eps=0.8156235, delta=1e-5, orders=[21.08])
    >>> sum(filter.charge(hs.gaussian(100.0)) for _ in range(500))
    420
    >>> filter = hs.GDPFilter(eps=0.8156235, delta=1e-5)
    >>> sum(filter.charge(sigma=100.0) for _ in range(500))
    495
    >>> step = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
    >>> [hs.RDPFilter(eps=eps, delta=1e-5).admits(step) for eps in (1.0, 2.0, 3.0)]
    [3, 876, 2186]
    """

    KIND = "rdp_filter"

    @respelled(epsilon="eps")
    def __init__(
        self,
        *,
        orders: Sequence[float] | None = None,
        budgets: Sequence[float] | None = None,
        eps: float | None = None,
        delta: float | None = None,
        plan: Ran | None = None,
        weights: Sequence[float] | None = None,
        sticky: bool = False,
        path: str | os.PathLike[str] | None = None,
        sync: bool = True,
    ) -> None:
        if (budgets is None) == (eps is None) or (eps is None) != (delta is None):
            raise DomainError(
                f"give either budgets=... or eps=..., delta=...; got budgets={budgets!r}, eps={eps!r}, delta={delta!r}"
            )
        if plan is not None and not (budgets is None and orders is None and weights is None):
            raise DomainError("plan goes with eps and delta alone: it chooses the orders and their weights")
        if budgets is not None and weights is not None:
            raise DomainError("weights go with eps and delta: budgets need no shares of delta")
        self.sticky, self.every = flag("sticky", sticky), budgets is not None
        self.epsilon, self.delta = eps, delta
        self._settled = not (budgets is None and plan is None and orders is None and weights is None)
        usual = _orders(INTEGER_ORDERS if orders is None else orders)
        parameters: dict[str, Any] = {"sticky": self.sticky}
        if eps is None or delta is None:
            self._shares = Shares(usual, (), _given_budgets(budgets, len(usual)))
            parameters |= {"orders": self.orders, "budgets": self.budgets}
        else:
            eps, delta = _target(eps, delta)
            parameters |= {"epsilon": eps, "delta": delta}
            if plan is not None:
                self._shares = _shares_of(_best_order(as_run(plan), eps, delta), eps, delta)
            elif self._settled:
                self._shares = _shares(usual, _weights(weights, len(usual)), eps, delta)
            else:
                _require_budget(_shares(usual, (PLANNED,) * len(usual), eps, delta), eps, delta)
                self._shares = Shares(usual, (), ())
            if self._settled:
                _require_budget(self._shares, eps, delta)
                parameters |= {"orders": self.orders, "weights": self.weights}
        self._set({"spent": [0] * len(self.orders), "steps": 0, "closed": False})
        self._ledger = None if path is None else Ledger.create(path, self.KIND, parameters, self._state(), sync)

    def _set(self, state: dict[str, Any]) -> None:
        self._spent, self._steps, self._closed = list(state["spent"]), state["steps"], state["closed"]
        self._best: float | None = state.get("best")
        if self._best is not None:
            self._settle(_shares_of(self._best, *_target(self.epsilon, self.delta)), self._best)
        self._lock = threading.Lock()
        self._last: tuple[Any, Shares, list[int], float | None] = (
            None,
            self._shares,
            [],
            None,
        )  # most runs repeat one step

    def _settle(self, shares: Shares, best: float | None) -> None:
        self._shares, self._best, self._settled = shares, best, True

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "best": self._best}

    @property
    def orders(self) -> tuple[float, ...]:
        """The Renyi orders; the usual ones until the first charge has settled them."""
        return self._shares.orders

    @property
    def weights(self) -> tuple[float, ...]:
        """The shares of delta, one an order; none where budgets were given, and until the first charge has settled
        them."""
        return self._shares.weights

    @property
    def budgets(self) -> tuple[float, ...]:
        """The largest rho of every order, rounded down; none until the first charge has settled them."""
        return self._shares.budgets

    def charge(self, step: Mechanism | Sequence[float] | NDArray[np.float64]) -> bool:
        """Ask for a step before it runs; charge every order if the budget holds it.

        Parameters
        ----------
        step : Mechanism or array_like
            A step whose Renyi curve is known (see `rdp`); or its rho at every order, upper bounds, finite and >= 0.

        Returns
        -------
        bool
            True: charged, run the step. False: not charged, do not run it.

        Raises
        ------
        DomainError
            For steps without a Renyi curve, and bad arrays.
        """
        with self._lock:
            shares, costs, best = self._judged(step)
            spent = self._spent if self._settled else [0] * len(costs)
            after = [s + c for s, c in zip(spent, costs, strict=True)]
            fits = [a <= 1 << RHO_BITS for a in after]
            ok = not self._closed and (all(fits) if self.every else any(fits))
            self._asked(ok, after if ok else self._spent, costs, best=best if ok else self._best)
            if ok:
                self._settle(shares, best)
        return ok

    def _judged(self, step: Any) -> tuple[Shares, list[int], float | None]:
        """What a step is charged under: shares, which it settles if it is the first; its cost at every order, in units;
        the order that suits the plan, if the first step is the plan."""
        last, shares, costs, best = self._last
        if isinstance(step, Mechanism) and step == last and (shares is self._shares or not self._settled):
            return shares, costs, best
        shares, best = (self._shares, self._best) if self._settled else self._first(step)
        n = len(shares.orders)
        rho = step_rho_upper(step, shares.orders) if isinstance(step, Mechanism) else _given_rho(step, n)
        costs = [_rho_units(r, b) for r, b in zip(rho, shares.budgets, strict=True)]
        self._last = step if isinstance(step, Mechanism) else None, shares, costs, best
        return shares, costs, best

    def _first(self, step: Any) -> tuple[Shares, float]:
        """The shares that suit the first step, and their best order."""
        eps, delta = _target(self.epsilon, self.delta)
        if isinstance(step, Mechanism):
            best = _best_order(as_run(step), eps, delta)
        else:
            often = [
                _budget(a, PLANNED, eps, delta) / max(rho, 1e-300)
                for a, rho in zip(self.orders, _given_rho(step, len(self.orders)), strict=True)
            ]
            best = self.orders[int(np.argmax(often))]
        return _shares_of(best, eps, delta), best

    def admits(self, step: Mechanism | Sequence[float] | NDArray[np.float64]) -> int:
        """How many more steps of one kind `charge` would allow from now on, one after another; asking charges nothing.

        Parameters
        ----------
        step : Mechanism or array_like
            As in `charge`; one that costs something at every order.

        Returns
        -------
        int
            Exact: so many would be charged, and the next one refused.

        Raises
        ------
        DomainError
            As `charge`, and for a step that costs nothing.
        """
        with self._lock:
            _, costs, _ = self._judged(step)
            if not all(costs):
                raise DomainError(f"a step must cost something at every order to be counted, got {step!r}")
            spent = self._spent if self._settled else [0] * len(costs)
            left = [((1 << RHO_BITS) - s) // cost for s, cost in zip(spent, costs, strict=True)]
            return 0 if self._closed else max(0, min(left) if self.every else max(left))

    @property
    def spent_rho_upper(self) -> tuple[float, ...]:
        """What was charged at every order, rounded up."""
        if not self._settled:
            return (0.0,) * len(self.orders)
        parts = zip(self._spent, self.budgets, strict=True)
        return tuple(math.ldexp(float(s), -RHO_BITS) * b * UP if 0 < b and s < NEVER else math.inf for s, b in parts)

    def __repr__(self) -> str:
        return f"RDPFilter(orders={self.orders!r}, budgets={self.budgets!r}, steps={self._steps})"


RHO_BITS = 50
"""A budget of rho is 2^50 units; costs are rounded up to whole units."""

NEVER = 1 << 100
"""A cost that no budget holds: of an order without a budget, or beyond all use."""


def _rho_units(rho: float, budget: float) -> int:
    if budget <= 0 or rho == math.inf:
        return NEVER
    ratio = Fraction(rho) / Fraction(budget) * (1 << RHO_BITS)
    return min(NEVER, -(-ratio.numerator // ratio.denominator))


PLANNED = 31 / 32
"""Share of delta of the order that suits the plan best."""


def _best_order(plan: Run, eps: float, delta: float) -> float:
    """The order whose budget holds the plan most often, of three digits. The search is on estimates: any order is
    valid."""
    low, high, best = 1.01, float(ORDER_MAX), 2.0
    for _ in range(3):
        tried = np.geomspace(low, high, 40)
        often = [_budget(a, PLANNED, eps, delta) / max(_divergence(plan, a), 1e-300) for a in tried.tolist()]
        i = int(np.argmax(often))
        best, low, high = float(tried[i]), float(tried[max(i - 1, 0)]), float(tried[min(i + 1, tried.size - 1)])
    return float(f"{best:.3g}")


def _shares_of(best: float, eps: float, delta: float) -> Shares:
    """The shares of a plan: those of the usual orders beside its best one."""
    orders = tuple(sorted({float(a) for a in INTEGER_ORDERS} | {best}))
    rest = (1 - PLANNED) / (len(orders) - 1) * DOWN
    return _shares(orders, tuple(PLANNED if a == best else rest for a in orders), eps, delta)


def _divergence(run: Run, alpha: float) -> float:
    """rho(alpha) of both directions, rounded up; inf where no number is known."""
    try:
        return float(moments.rdp(run, alpha).upper)
    except AccuracyError:
        return math.inf


def _weights(weights: Sequence[float] | None, n: int) -> tuple[float, ...]:
    """The shares of delta, whose sum is at most 1: every one of n equal ones is 1/n, rounded down."""
    if weights is None:
        return (1 / n * DOWN,) * n
    out = tuple(positive("weights", w) for w in weights)
    if len(out) != n or sum(map(Fraction, out)) > 1:
        raise DomainError(f"weights must be {n} numbers > 0, one an order, of sum at most 1, got {weights!r}")
    return out


def _orders(orders) -> tuple[float, ...]:
    out = tuple(positive("orders", a) for a in orders)
    if not out or not all(1 < a <= ORDER_MAX for a in out) or any(b <= a for a, b in pairwise(out)):
        raise DomainError(f"orders must be increasing numbers, 1 < alpha <= {ORDER_MAX}, got {orders!r}")
    return out


def _given_budgets(budgets, n: int) -> tuple[float, ...]:
    out = tuple(positive("budgets", b) for b in budgets)
    if len(out) != n:
        raise DomainError(f"budgets must hold one rho for each of {n} orders, got {len(out)}")
    return out


def _target(eps: Any, delta: Any) -> tuple[float, float]:
    """(eps, delta) as numbers, if a filter can hold them."""
    return positive("eps", eps), within("delta", delta, 0, 1, "()")


def _shares(orders: tuple[float, ...], weights: tuple[float, ...], eps: float, delta: float) -> Shares:
    """rho_alpha of the class at every order, rounded down."""
    return Shares(orders, weights, tuple(_budget(a, w, eps, delta) for a, w in zip(orders, weights, strict=True)))


def _require_budget(shares: Shares, eps: float, delta: float) -> None:
    if not max(shares.budgets) > 0:
        raise DomainError(f"eps={eps!r} at delta={delta!r} leaves none of the orders {shares.orders!r} a budget")


def _budget(alpha: float, weight: float, eps: float, delta: float) -> float:
    """rho_alpha of the class, rounded down. The roundings of four terms are below 16u of their absolute sum."""
    terms = (eps, -math.log1p(-1 / alpha), math.log(alpha) / (alpha - 1), math.log(delta * weight) / (alpha - 1))
    return math.fsum(terms) - 16 * U * math.fsum(map(abs, terms))


def _given_rho(step, n: int) -> tuple[float, ...]:
    if isinstance(step, str | bytes) or not np.iterable(step):
        raise DomainError(f"charge takes a step or one rho for each of {n} orders, got {step!r}")
    rho = tuple(within("rho", r, 0, math.inf, "[)") for r in step)
    if len(rho) != n:
        raise DomainError(f"charge takes one rho for each of {n} orders, got {len(rho)}")
    return rho


def step_rho_upper(step: Mechanism, orders) -> tuple[float, ...]:
    """Renyi divergences of a step, both directions, rounded up; inf at orders where none is known."""
    if any(leaf.sized for leaf in leaves(step)):
        raise DomainError(
            f"a filter composes guarantees that hold for data sets of every size, got {step!r}, which states one"
        )
    return tuple(_divergence(Run(((step, 1),)), a) for a in orders)
