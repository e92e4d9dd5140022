"""A `dp_accounting.PrivacyAccountant` whose answers are certified.

    accountant = HockeystickAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(event, count).get_epsilon(delta)        # certified upper end
    accountant.epsilon_bound(delta)                            # both ends and the estimate

Events are translated by adapters/events.py; what it cannot translate with a proof is refused through `supports`. Needs
the extra `dp-accounting`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation, PrivacyAccountant
from scipy import special

import hockeystick

from .. import query, risk
from ..accountant import Accountant
from ..bound import AccuracyError, Bound, Budget, DomainError
from ..routes.moments import moments_delta_upper, moments_epsilon_upper
from ..what.given import GaussianMixture
from ..what.mechanism import (
    K_MAX,
    SIGMA_RANGE,
    Mechanism,
    PoissonSubsampled,
    Run,
    compose,
    count,
    flag,
    gaussian,
    leaves,
    within,
)
from ..what.sampling import check_fixed_size
from ..what.vectors import reals
from .events import NonPrivate, RefusedError, Zcdp, down, translate, up
from .pld_bridge import from_dp_accounting_pld, to_dp_accounting_pld

__all__ = ["HockeystickAccountant", "from_dp_accounting_pld", "to_dp_accounting_pld", "zcdp_curve"]

ADJACENCY = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: "add_remove",
    NeighboringRelation.REPLACE_ONE: "replace_one",
    NeighboringRelation.REPLACE_SPECIAL: "zero_out",
}

STANDS_FOR_ZCDP = gaussian(1.0)
"""What can be composed with it can be composed with a zCDP step: both hold for every dataset size."""

MIXTURE_RTOL = {query.epsilon: 1e-7, query.delta: 1e-6}
"""Asked for where a run of one step holds a Gaussian mixture: within what the peer's own tests allow. The grid of k
steps has sqrt(k) times as many cells for one tolerance, so that sqrt(k) times as much is asked for, up to MIXTURE_MOST:
for 10,000 DP-SGD steps of users with two records that is 0.1 s."""

MIXTURE_MOST = 1e-5

EPS_MAX = 1e6
"""Larger eps are answered by the bound here: delta does not increase."""


class HockeystickAccountant(PrivacyAccountant):
    """Privacy accountant with certified two-sided bounds.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation, default ADD_OR_REMOVE_ONE
        REPLACE_SPECIAL is zero-out.
    n_threads : int, default 1
        Threads of a query; 0 = all allowed cores. Answers do not depend on it.
    assume_fixed_n : bool, default False
        That truncated and fixed-size samples are of one data set size throughout, which is public: then they compose
        with other events under ADD_OR_REMOVE_ONE as well; see `hockeystick.truncated_poisson_subsampled`.

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    Examples
    --------
    >>> import dp_accounting
    >>> from hockeystick.adapters.dp_accounting import HockeystickAccountant
    >>> event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    >>> accountant = HockeystickAccountant().compose(event, 1000)
    >>> 1.828236666516576 < accountant.get_epsilon(1e-5) < 1.82823667
    True
    >>> bound = accountant.epsilon_bound(1e-5)
    >>> bound.lower <= bound.estimate <= bound.upper
    True
    """

    def __init__(
        self,
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
        *,
        n_threads: int = 1,
        assume_fixed_n: bool = False,
    ):
        if neighboring_relation not in ADJACENCY:
            raise DomainError(f"neighboring_relation must be a NeighboringRelation, got {neighboring_relation!r}")
        super().__init__(neighboring_relation)
        self._adjacency, self._fixed = ADJACENCY[neighboring_relation], flag("assume_fixed_n", assume_fixed_n)
        self._options: dict[str, Any] = {
            "adjacency": self._adjacency,
            "n_threads": count("n_threads", n_threads, 0, 4096),
        }
        # Numbers that a translation has to round are rounded towards less privacy in one ledger, towards more in the
        # other.
        self._worse, self._better = Accountant(), Accountant()
        self._steps = 0
        self._exact_pure: Fraction | float = Fraction(0)  # the sum of all pure eps; inf where a step has none
        self._rho, self._xi = 0.0, 0.0
        self._non_private = self._exposed = False  # exposed: some step certainly has no finite eps
        self._defined: set[Mechanism] = set()
        self._composed: set[Mechanism] = set()

    @property
    def _pure(self) -> float:
        """The sum of pure eps, rounded up."""
        value = float(self._exact_pure)
        return value if value >= self._exact_pure else math.nextafter(value, math.inf)

    @property
    def run(self) -> Run:
        """What was composed; zCDP and non-private events are not in it."""
        return self._worse.run

    def _maybe_compose(self, event, count: int, do_compose: bool):
        try:
            worse = translate(event, self._adjacency, worse=True, fixed=self._fixed)
            total = self._steps + sum(k for _, k, _ in worse) * max(count, 1)
            if total > K_MAX:
                raise RefusedError(event, f"more than {K_MAX:.0e} steps in all")
            for step, _, _ in worse:
                self._require_defined(event, step)
            stood = [STANDS_FOR_ZCDP if isinstance(step, Zcdp) else step for step, _, _ in worse]
            self._require_composable(event, [step for step in stood if not isinstance(step, NonPrivate)])
            if do_compose:
                better = translate(event, self._adjacency, worse=False, fixed=self._fixed)
                for (step, k, pure), (mild, _, _) in zip(worse, better, strict=True):
                    self._record(step, mild, k * count, pure)
                self._steps = total
        except RefusedError as error:
            return self.CompositionErrorDetails(invalid_event=error.event, error_message=str(error))
        except DomainError as error:
            return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        return None

    def _require_defined(self, event, step) -> None:
        """Refuse a step whose pair is not known for this relation; asked once a step, for the query decides that."""
        if isinstance(step, NonPrivate | Zcdp) or step in self._defined:
            return
        try:
            query.delta(step, 1.0, **self._options)
        except AccuracyError:
            pass  # the pair is known, if hard to certify on its own
        except DomainError as error:
            raise RefusedError(event, f"{step!r} under {self.neighboring_relation.name}: {error}") from None
        self._defined.add(step)

    def _require_composable(self, event, steps: list[Mechanism]) -> None:
        """Refuse what a query of all that was composed together with `steps` would refuse."""
        if self._composed.issuperset(steps):
            return
        try:
            check_fixed_size(Run(tuple((step, 1) for step in self._composed.union(steps))), self._adjacency)
        except DomainError as error:
            raise RefusedError(event, f"under {self.neighboring_relation.name}: {error}") from None

    def _record(self, step, mild, k: int, pure: float) -> None:
        if isinstance(step, NonPrivate):
            self._non_private, self._exposed = True, self._exposed or step.sure
        elif isinstance(step, Zcdp):
            self._rho, self._xi = up(self._rho + k * step.rho), up(self._xi + k * step.xi)
            self._composed.add(STANDS_FOR_ZCDP)
        else:
            self._worse.step(step, k)
            self._composed.add(step)
            if mild is not None:
                self._better.step(mild, k)
        self._exact_pure = self._exact_pure + k * Fraction(pure) if pure < math.inf else math.inf

    def get_epsilon(self, target_delta: float) -> float:
        """The certified upper end of eps(target_delta), 0 <= target_delta <= 1; inf where no finite eps is proved."""
        return self.epsilon_bound(target_delta).upper

    def get_delta(self, target_epsilon: float) -> float:
        """The certified upper end of delta(target_epsilon); 1 after a non-private event."""
        return self.delta_bound(target_epsilon).upper

    def epsilon_bound(self, target_delta: float) -> Bound:
        """eps(target_delta) as a certified Bound, 0 <= target_delta <= 1.

        `upper` holds for everything that the events allow; `lower` leaves out those that are known by a guarantee only
        (zCDP, exponential mechanism, repeat-and-select).
        """
        delta = within("target_delta", target_delta, 0, 1)
        if self._non_private:  # also at delta = 1: so the contract of the peer's accountants
            return Bound(math.inf if self._exposed else 0.0, math.inf, math.inf, "exact", True, Budget({}))
        if delta == 1:
            return Bound(0.0, 0.0, 0.0, "exact", True, Budget({}))
        if delta == 0:
            return Bound(0.0, self._pure, self._pure, "pure", True, Budget({}))
        mild = self._ask(query.epsilon, self._better.run, delta)
        bound = self._zcdp_bound(query.epsilon, delta) if self._rho else self._worst(query.epsilon, delta, mild)
        return _between(mild, bound, self._pure)

    def delta_bound(self, target_epsilon: float) -> Bound:
        """delta(target_epsilon) as a certified Bound, as `epsilon_bound`; target_epsilon is a number or inf."""
        eps = within("target_epsilon", target_epsilon, -math.inf, math.inf, "(]")
        if self._non_private or self._pure <= eps < math.inf:
            value = 1.0 if self._non_private else 0.0
            return Bound(value if self._exposed else 0.0, value, value, "exact", True, Budget({}))
        near = min(eps, EPS_MAX)
        mild = self._ask(query.delta, self._better.run, near)
        bound = self._zcdp_bound(query.delta, near) if self._rho else self._worst(query.delta, near, mild)
        bound = _between(mild, bound, 1.0)
        return bound if eps == near else Bound(0.0, bound.estimate, bound.upper, bound.route, True, bound.budget)

    def _worst(self, ask, value: float, mild: Bound) -> Bound:
        return mild if self._better.run == self._worse.run else self._ask(ask, self._worse.run, value)

    def _ask(self, ask, run: Run, value: float) -> Bound:
        """A query of a run; the empty run has the same curve under every relation. Runs with a Gaussian mixture, which
        a grid answers, are asked for `MIXTURE_RTOL`, where that is to be had."""
        if not run.parts:
            return ask(run, value)
        if any(isinstance(leaf, GaussianMixture) for step, _ in run.parts for leaf in leaves(base(step))):
            rtol = min(MIXTURE_RTOL[ask] * math.sqrt(run.steps), MIXTURE_MOST)
            try:
                return ask(run, value, rtol=rtol, **self._options)
            except AccuracyError:
                pass
        return ask(run, value, **self._options)

    def get_true_positive_rates(self, false_positive_rates, deltas=None):
        """Certified upper ends of the true positive rates of attacks at `false_positive_rates`, a number from 0 to 1 or
        many.

        Of both directions, as the peer's method, whose `deltas` (a grid) is not needed here and ignored. 1 after a
        non-private event; events known by a zCDP guarantee only are refused (DomainError)."""
        rates = reals("false_positive_rates", false_positive_rates)
        if not ((rates >= 0) & (rates <= 1)).all():
            raise DomainError(f"false_positive_rates must be from 0 to 1, got {false_positive_rates!r}")
        out = np.ones(rates.shape)
        if not self._non_private:
            if self._rho:
                raise DomainError(
                    "get_true_positive_rates has no proof here for zCDP events, whose curve is not known; compose what"
                    " they stand for"
                )
            run, inner, least = self._worse.run, (rates > 0) & (rates < 1), rates == 0
            if inner.any():
                asked = rates[inner]
                out[inner] = risk.true_positive_rate(run, asked, **self._options).upper if run.parts else asked
            if least.any():  # what has probability 0 without the record: the mass of infinite losses
                out[least] = self.delta_bound(math.inf).upper
        return out if rates.ndim else float(out)

    def get_gdp_parameter_estimate(self, false_positive_rates=None, deltas=None) -> float:
        """An estimate of mu of Gaussian DP, by the peer's rule: the smallest mu whose true positive rates are at least
        the certified ones at `false_positive_rates` (48 from 1e-6 to 0.5 if not given); between these it may be too
        small.

        inf after a non-private event, and where a loss is infinite with more than the least of these rates. `deltas` is
        ignored. The proved number is `hockeystick.mu_gdp`.
        """
        rates = (
            np.geomspace(1e-6, 0.5, 48)
            if false_positive_rates is None
            else np.ravel(false_positive_rates).astype(float)
        )
        if not (rates.size and (rates > 0).all() and (rates < 1).all()):
            raise DomainError(f"false_positive_rates must be in (0, 1), got {false_positive_rates!r}")
        if self._non_private or self.get_true_positive_rates(0.0) > rates.min():
            return math.inf
        found = self.get_true_positive_rates(rates)
        return max(0.0, float((special.ndtri(found) - special.ndtri(rates)).max()))

    def _zcdp_bound(self, ask, value: float) -> Bound:
        """The upper end with zCDP composed in, through Renyi divergences where the transform of every other step is at
        hand.

        (alpha, xi + rho alpha)-RDP is what a Gaussian step of m^2 = 2 rho has, and xi shifts the loss: the moments
        bound of run + that step at eps - xi holds [BS16, Lemma 1.7; CKS20, Prop. 12]. Elsewhere the worst pair under
        the curve that RDP gives (zcdp_curve) stands for the zCDP steps."""
        run = self._worse.run
        sides: dict[str, Any] = {"adjacency": self._adjacency}
        # by how many sensitivities the pair of a Gaussian step is apart
        moved = 2 if self._adjacency == "replace_one" else 1
        stand_in = down(moved / math.sqrt(2 * self._rho))
        if stand_in >= SIGMA_RANGE[0]:
            both = compose(run, gaussian(min(SIGMA_RANGE[1], stand_in)))
            try:
                if ask is query.epsilon:
                    upper = up(moments_epsilon_upper(both, value, **sides)) + self._xi
                else:
                    upper = moments_delta_upper(both, value - up(self._xi), **sides)
                return Bound(0.0, upper, up(upper), "moments", True, Budget({"chernoff": 1.0}))
            except DomainError:
                pass  # a step beyond the Gaussian family
        return ask(compose(run, zcdp_curve(self._rho, self._xi)), value, **self._options)


def base(step: Mechanism) -> Mechanism:
    """The step that a Poisson sample runs, or the step itself."""
    return step.base if isinstance(step, PoissonSubsampled) else step


def zcdp_curve(rho: float, xi: float) -> Mechanism:
    """A step that dominates every (xi, rho)-zCDP step: the worst pair under the curve of Renyi orders 1 + t.

        delta(eps) <= min_t exp(t (xi + rho (1 + t) - eps) + t log t - (1 + t) log(1 + t))        [CKS20, Prop. 12]

    The true curve is convex in x = e^eps and below these points, so it is below their greatest convex minorant.
    """
    top = xi + rho + 2 * math.sqrt(rho * 70.0)  # there delta is about e^-70
    points = []
    for eps in np.linspace(0.0, min(top, 300.0), 400).tolist():
        t = max((eps - xi - rho) / (2 * rho), 1e-3)  # minimises the exponent but for the last two terms
        best = min(_exponent(rho, xi, eps, t * factor) for factor in (1.0, 0.9, 1.1, 0.5, 2.0, 4.0))
        points.append((math.exp(eps), min(1.0, up(math.exp(min(best, 0.0)), 1e-12)), eps))
    hull = [(0.0, 1.0, -math.inf)]
    for x, y, eps in points:
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) >= (y - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append((x, y, eps))
    return hockeystick.from_curve(
        [eps for _, _, eps in hull[1:]], np.minimum.accumulate([y for _, y, _ in hull[1:]]).tolist()
    )


def _exponent(rho: float, xi: float, eps: float, t: float) -> float:
    return t * (xi + rho * (1 + t) - eps) - t * math.log1p(1 / t) - math.log1p(t)


def _between(mild: Bound, worse: Bound, cap: float) -> Bound:
    """From a bound of fewer, milder steps and one of more, worse ones; `cap` bounds the truth as well."""
    upper = min(worse.upper, cap)
    lower = min(mild.lower, upper)
    return Bound(lower, min(max(worse.estimate, lower), upper), upper, worse.route, True, worse.budget)
