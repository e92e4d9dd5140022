"""The Renyi filter: fully adaptive composition of any mechanism whose Renyi curve is known."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import respelled
from ..bound import AccuracyError, DomainError
from ..mechanism import Gaussian, Mechanism, PoissonSubsampled, Run, as_run, count, leaves
from ..routes import moments
from . import units
from .filters import Kept, flag
from .store import Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..types import Ran

INTEGER_ORDERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256)
ORDER_MAX = 1024
U = 2.0**-53


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
    1); the others share the rest, for steps that turn out differently. `admits` tells what a filter can still take.
    Sampled steps of little noise stay hard for every Renyi order: at eps = 1, sigma = 1, q = 0.01 a plan holds 3 steps,
    where 254 fixed in advance fit (`max_steps`).

    Parameters
    ----------
    orders : sequence of float, optional
        Renyi orders, 1 < alpha <= 1024, increasing. Default: 24 whole orders from 2 to 256, and that of the `plan`.
    budgets : sequence of float
        rho > 0 for every order.
    eps, delta : float
        Instead of budgets. `epsilon` is another name of `eps`.
    plan : Run or Mechanism, optional
        With eps and delta: the steps that are expected, in their proportions. What is charged is what is asked for; the
        plan decides the shares of delta only, and no guarantee rests on it.
    weights : sequence of float, optional
        With eps and delta: the shares w of the orders, > 0, of sum at most 1. Default: as above.
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
    [FZ21] Theorem 4.3; [CKS20] Proposition 12; [MTZ19] for sampled steps.

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
    >>> [hs.RDPFilter(eps=2.0, delta=1e-5, plan=plan).admits(step) for plan in (None, step * 1000)]
    [371, 876]
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
        self.sticky = flag("sticky", sticky)
        self.every = budgets is not None
        if plan is not None:
            if self.every or orders is not None or weights is not None or eps is None or delta is None:
                raise DomainError("plan goes with eps and delta alone: it chooses the orders and their weights")
            orders, weights = _planned(as_run(plan), units.positive("eps", eps), units.positive("delta", delta))
        self.orders = _orders(INTEGER_ORDERS if orders is None else orders)
        self.budgets = _given_budgets(budgets, eps, delta, len(self.orders))
        self.weights = _weights(weights, len(self.orders))
        if self.every and weights is not None:
            raise DomainError("weights go with eps and delta: budgets need no shares of delta")
        if not self.every:
            self.budgets = _budgets_lower(self.orders, eps, delta, self.weights)
        self.epsilon, self.delta = eps, delta
        self._set([0] * len(self.orders), 0, False)
        parameters: dict[str, Any] = {"orders": self.orders, "sticky": self.sticky}
        if eps is None or delta is None:
            parameters["budgets"] = self.budgets
        else:
            parameters |= {"epsilon": float(eps), "delta": float(delta)}
            parameters |= {} if weights is None else {"weights": self.weights}
        self._ledger = None if path is None else Ledger.create(path, self.KIND, parameters, self._state(), sync)

    def _set(self, spent: list[int], steps: int, closed: bool) -> None:
        self._spent, self._steps, self._closed = list(spent), steps, closed
        self._lock = threading.Lock()
        self._last: tuple[Mechanism | None, list[int]] = (None, [])  # the last step and its costs: most runs repeat one

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
        costs = self._costs(step)
        with self._lock:
            after = [s + c for s, c in zip(self._spent, costs, strict=True)]
            fits = [a <= 1 << RHO_BITS for a in after]
            ok = not self._closed and (all(fits) if self.every else any(fits))
            state: dict[str, Any] = {
                "spent": after if ok else self._spent,
                "steps": self._steps + 1,
                "closed": self._closed or (self.sticky and not ok),
            }
            if self._ledger:
                self._ledger.commit(state, {"step": state["steps"], "cost": costs, "charged": int(ok)})
            self._spent, self._steps, self._closed = state["spent"], state["steps"], state["closed"]
        return ok

    def _costs(self, step: Any) -> list[int]:
        """What a step costs at every order, in units."""
        last, costs = self._last
        if not isinstance(step, Mechanism) or step != last:
            rho = (
                step_rho_upper(step, self.orders) if isinstance(step, Mechanism) else _given_rho(step, len(self.orders))
            )
            costs = [_rho_units(r, b) for r, b in zip(rho, self.budgets, strict=True)]
            self._last = step if isinstance(step, Mechanism) else None, costs
        return costs

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
        costs = self._costs(step)
        if not all(costs):
            raise DomainError(f"a step must cost something at every order to be counted, got {step!r}")
        with self._lock:
            left = [((1 << RHO_BITS) - spent) // cost for spent, cost in zip(self._spent, costs, strict=True)]
            return 0 if self._closed else max(0, min(left) if self.every else max(left))

    @property
    def spent_rho_upper(self) -> tuple[float, ...]:
        """What was charged at every order, rounded up."""
        parts = zip(self._spent, self.budgets, strict=True)
        return tuple(
            math.ldexp(float(s), -RHO_BITS) * b * (1 + 4 * U) if 0 < b and s < NEVER else math.inf for s, b in parts
        )

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


def _planned(plan: Run, eps: float, delta: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(orders, weights) for a plan: the order whose budget holds the plan most often, of three digits, beside the usual
    ones. The search is on estimates: any order is valid."""
    low, high = 1.01, float(ORDER_MAX)
    best = 2.0
    for _ in range(3):
        tried = np.geomspace(low, high, 40)
        often = [_budget(a, PLANNED, eps, delta) / max(_divergence(plan, a), 1e-300) for a in tried.tolist()]
        i = int(np.argmax(often))
        best, low, high = float(tried[i]), float(tried[max(i - 1, 0)]), float(tried[min(i + 1, tried.size - 1)])
    best = float(f"{best:.3g}")
    orders = tuple(sorted({float(a) for a in INTEGER_ORDERS} | {best}))
    rest = (1 - PLANNED) / (len(orders) - 1) * (1 - 2 * U)
    return orders, tuple(PLANNED if a == best else rest for a in orders)


def _divergence(run: Run, alpha: float) -> float:
    """rho(alpha) of both directions, rounded up; inf where no number is known."""
    try:
        return float(moments.rdp(run, alpha).upper)
    except AccuracyError:
        return math.inf


def _weights(weights: Sequence[float] | None, n: int) -> tuple[float, ...]:
    """The shares of delta, whose sum is at most 1: every one of n equal ones is 1/n, rounded down."""
    if weights is None:
        return (1 / n * (1 - U),) * n
    out = tuple(units.positive("weights", w) for w in weights)
    if len(out) != n or sum(map(Fraction, out)) > 1:
        raise DomainError(f"weights must be {n} numbers > 0, one an order, of sum at most 1, got {weights!r}")
    return out


def _orders(orders) -> tuple[float, ...]:
    out = tuple(units.positive("orders", a) for a in orders)
    if not out or not all(1 < a <= ORDER_MAX for a in out) or any(b <= a for a, b in pairwise(out)):
        raise DomainError(f"orders must be increasing numbers, 1 < alpha <= {ORDER_MAX}, got {orders!r}")
    return out


def _given_budgets(budgets, epsilon, delta, n: int) -> tuple[float, ...]:
    if (budgets is None) == (epsilon is None) or (epsilon is None) != (delta is None):
        raise DomainError(
            f"give either budgets=... or eps=..., delta=...; got budgets={budgets!r}, eps={epsilon!r}, delta={delta!r}"
        )
    out = () if budgets is None else tuple(units.positive("budgets", b) for b in budgets)
    if budgets is not None and len(out) != n:
        raise DomainError(f"budgets must hold one rho for each of {n} orders, got {len(out)}")
    return out


def _budgets_lower(orders, epsilon, delta, weights) -> tuple[float, ...]:
    """rho_alpha of the class at every order, rounded down."""
    epsilon, delta = units.positive("eps", epsilon), units.positive("delta", delta)
    if not delta < 1:
        raise DomainError(f"delta must be a number in (0, 1), got {delta!r}")
    out = [_budget(a, w, epsilon, delta) for a, w in zip(orders, weights, strict=True)]
    if not max(out) > 0:
        raise DomainError(f"eps={epsilon!r} at delta={delta!r} leaves none of the orders {orders!r} a budget")
    return tuple(out)


def _budget(alpha: float, weight: float, eps: float, delta: float) -> float:
    """rho_alpha of the class, rounded down. The roundings of four terms are below 16u of their absolute sum."""
    terms = (eps, -math.log1p(-1 / alpha), math.log(alpha) / (alpha - 1), math.log(delta * weight) / (alpha - 1))
    return math.fsum(terms) - 16 * U * math.fsum(map(abs, terms))


def _given_rho(step, n: int) -> tuple[float, ...]:
    if isinstance(step, str | bytes) or not np.iterable(step):
        raise DomainError(f"charge takes a step or one rho for each of {n} orders, got {step!r}")
    rho = tuple(units.parameter("rho", r) for r in step)
    if len(rho) != n:
        raise DomainError(f"charge takes one rho for each of {n} orders, got {len(rho)}")
    return rho


def step_rho_upper(step: Mechanism, orders) -> tuple[float, ...]:
    """Renyi divergences of a step, both directions, rounded up; inf at orders where none is known.

    Gaussian: alpha mu^2/2. Subsampled Gaussian, whole alpha: REMOVE has [MTZ19, Sec. 3.3] [theory: individual.rdp-step]

        rho = log( sum_{i=0}^{alpha} C(alpha, i) (1-q)^(alpha-i) q^i e^{(i^2 - i) mu^2/2} ) / (alpha - 1),

    which also bounds ADD [MTZ19, Thm 5]. All terms are positive, so rounding is relative: each log-term carries
    at most 4u (|its parts| summed), taken on top. Anything else: `rdp`.
    """
    base, q = (step.base, step.q) if isinstance(step, PoissonSubsampled) else (step, 1.0)
    if any(leaf.sized for leaf in leaves(base)):
        raise DomainError(
            f"a filter composes guarantees that hold for data sets of every size, got {step!r}, which states one"
        )
    if not isinstance(base, Gaussian):
        return tuple(_divergence(Run(((step, 1),)), a) for a in orders)
    v = (base.sensitivity / base.sigma) ** 2 * (1 + 8 * U)
    if q == 1:
        return tuple(0.5 * a * v * (1 + 4 * U) for a in orders)
    return tuple(_subsampled_rho_upper(v, q, a) if a == int(a) else _divergence(Run(((step, 1),)), a) for a in orders)


def _subsampled_rho_upper(v: float, q: float, alpha: float) -> float:
    a = count("order", int(alpha), 2, ORDER_MAX)
    i = np.arange(2, a + 1)
    choose = np.array([math.lgamma(a + 1) - math.lgamma(j + 1) - math.lgamma(a - j + 1) for j in i])
    parts = (choose, (a - i) * math.log1p(-q), i * math.log(q))
    # (1-q)^a + a q (1-q)^(a-1) + sum_{i>=2} (..) = 1, so the sum is 1 + sum_{i>=2} C .. (e^{(i^2-i)v/2} - 1)
    x = 0.5 * (i * i - i) * v
    grow = x + np.log(-np.expm1(-x))
    logs = sum(parts) + grow
    # lgamma is correct to a few units of its own size: 16u (|terms| + 3 lgamma(a+1)) covers the sum of all parts
    slack = (
        16
        * U
        * (np.abs(parts[1]) + np.abs(parts[2]) + np.abs(x) + np.abs(np.log(-np.expm1(-x))) + 3 * math.lgamma(a + 1) + 1)
    )
    top = float((logs + slack).max())
    total = math.fsum(np.exp(logs + slack - top)) * (1 + (a + 8) * U)
    log_sum = math.log1p(total * math.exp(top)) if top < 30 else top + math.log(total + math.exp(-top))
    return log_sum * (1 + 16 * U) / (a - 1)
