"""EEAI: certified intervals from the Edgeworth expansion of order 1 and a finite-sample constant [WGZ22, Def. 4.2].

With D >= sup |F - G_1| for the composed loss (finite_sample.py), the one-sequence interval is the estimate +- D
[theory: eeai.interval]: an error D of the distribution function is an error of at most D of delta = int e^(eps-x) P(Y >
x) dx. The published one is the two-sequence estimate +- (D_Y + e^eps D_X). Both are intersected with Chernoff's bound
and [0, 1].

Vacuous unless k is very large: delta = 1e-5 needs about 1e7 steps with the constants for regular characteristic
functions and 4e10 without; at k = 1e4 nothing below 1e-2. Prawitz' interval (prawitz.c) is sharp at every such k.

Rounding. Moments of a step come with proved errors (edgeworth_bound.c); D is taken at their upper ends. G_1 is that of
the true mean, variance and third cumulant: with u = (x - mean)/sd, rho = K3/sd^3 and the computed ones off by a shift
of u, a factor of u and a difference of rho [theory: eeai.standardised],
  |G_1 - its computed twin| <= shift (0.3990 + 0.0918 rho) + |log factor| (0.2420 + 0.0807 rho) + 0.0665 |difference|,
the largest values of phi, |u^3 - 3u| phi/6, |u| phi, |u^4 - 3 u^2| phi/6 and |u^2 - 1| phi/6. The closed form of
int e^(eps-x) (1 - G_1(x)) dx is evaluated by sums of positive parts, each known to some units of itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from .. import _core, scratch
from ..answers import between
from ..arguments import respelled
from ..bound import AccuracyError, Bound, Budget, DomainError
from ..gauss import legendre_rule
from ..outward import DOWN, UP, Ends, U
from ..what.mechanism import within
from . import finite_sample
from .loss_steps import FORMS, NORMAL, RULE, LossSteps, directions_of, estimators, steps_of, support

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ..types import Direction, Finite, Numbers, Ran

    Form = Literal["one_sequence", "two_sequence"]

NO_SMOOTHING = 1e-300
"""A limit so small that Prawitz' inequality says nothing and Chernoff's bound alone remains."""

M_MAX = 20.0
"""Largest sensitivity/noise of a sampled Gaussian step; csrc/hs.h."""

PRODUCT = 32
"""Steps whose characteristic functions are looked at; a modulus is at most 1."""

TERMS = ("edgeworth", "rounding")
_ROOT_2PI = math.sqrt(2 * math.pi)


class Law(NamedTuple):
    """The composed loss of one direction: standardised moments rounded up, an upper bound of its deviation Bbar a step,
    and mean, variance and third cumulant of the sum with bounds of their errors."""

    moments: finite_sample.Moments
    sd_upper: float
    sums: tuple[float, float, float]
    errors: tuple[float, float, float]


def law_of(steps: LossSteps, add: int) -> Law:
    """DomainError where a sampled Gaussian step has m > M_MAX."""
    if not takes(steps):
        raise DomainError(
            f"finite-sample constants need sensitivity/noise at most {M_MAX:g}: hs.delta has other routes"
        )
    columns = zip(*(column.tolist() for column in steps), strict=True)
    rows = np.array([_moments(m, q, kind, add) for m, q, _, kind in columns])  # step, value or error, 6
    v, e, k = rows[:, 0], rows[:, 1], steps.k
    mixed = v[:, 4] * v[:, 1]  # E|d| Var d
    v = np.column_stack((v, mixed))
    e = np.column_stack((e, v[:, 4] * e[:, 1] + (v[:, 1] + e[:, 1]) * e[:, 4]))
    sums, errors = k @ v, (k @ e + (k.size + 8) * U * (k @ np.abs(v))) * (1 + 1e-9)
    n, (mean, variance, third) = steps.total, sums[:3].tolist()
    least, loose = variance - errors[1], float(np.max(errors[[1, 3, 5, 6]] / sums[[1, 3, 5, 6]]))
    if not (least > 0 and loose < 1e-3):
        return Law(finite_sample.Moments(n, *(math.inf,) * 4), math.inf, (mean, variance, third), (math.inf,) * 3)
    sd = math.sqrt(least / n) * DOWN
    _, square, _, fourth, _, cube, product = (sums + errors) / n * UP
    off_mean, off_variance, off_third = errors[:3].tolist()
    moments = finite_sample.Moments(
        n,
        cube / sd**3,
        fourth / sd**4,
        math.copysign((abs(third) + off_third) / n / sd**3 * UP, third),
        (cube + product) / sd**3,
        8 * loose + 1e-14,
    )
    return Law(moments, math.sqrt(square) * UP, (mean, variance, third), (off_mean, off_variance, off_third))


def takes(steps: LossSteps) -> bool:
    """Whether every step has moments with a proved error."""
    return not ((steps.kind == NORMAL) & (steps.q < 1) & (steps.shift > M_MAX)).any()


def _moments(m: float, q: float, kind: int, add: int):
    """(mean, E d^2, E d^3, E d^4, E|d|, E|d|^3) of one step's loss Y and bounds of their errors."""
    if kind == NORMAL and q == 1:
        root = math.sqrt(2 / math.pi)
        values = np.array([0.5 * m * m, m * m, 0.0, 3 * m**4, m * root, 2 * m**3 * root])
        return values, 8 * U * values
    values, errors = _core.edgeworth_bounded(kind, m, q, 0 if add else 1, *legendre_rule(RULE))
    if add:
        values[[0, 2]] *= -1
    return values, errors


def _constant_upper(law: Law, steps: LossSteps, add: int, published: bool) -> float:
    """D >= sup |F_Y - G_1|: the least of the versions that hold for these steps; 1 where nothing is known."""
    if not law.sd_upper < math.inf:
        return 1.0
    hold = finite_sample.VERSIONS if steps.k.size == 1 else ("inid", "inid_regular")
    asked = (version for version in hold if not (published and version == "inid_regular"))
    return min(_version_upper(version, law, steps, add, published) for version in asked)


def _version_upper(version: str, law: Law, steps: LossSteps, add: int, published: bool = False) -> float:
    """D by one version, which has to hold for these steps."""
    moments, sd, kappa = law.moments, law.sd_upper, None
    if version == "regular":
        kappa = _modulus_upper(steps, 0, add, 2 * math.pi * finite_sample.T1 / moments.K3t / sd * DOWN)
    elif version == "inid_regular":
        kappa = _product_upper(steps, add, finite_sample.frequency(moments) / (sd * math.sqrt(moments.n)) * DOWN)
    return finite_sample.uniform_error_upper(moments, version, kappa=kappa, published=published)


def _modulus_upper(steps: LossSteps, i: int, add: int, y: float) -> float:
    """The largest modulus of one step's characteristic function at and beyond y."""
    m, q, kind = float(steps.shift[i]), float(steps.q[i]), int(steps.kind[i])
    if kind == NORMAL and q == 1:
        return math.exp(-0.5 * (m * y) ** 2) * (1 + 1e-12)
    asked = kind, m, q, 0 if add else 1, *steps.rule, y, math.inf
    return scratch.lend(_core.prawitz_work(), _core.edgeworth_modulus_upper, *asked)


def _product_upper(steps: LossSteps, add: int, y: float) -> float:
    """The same of the sum: a product over the steps, of which the PRODUCT with most copies are enough."""
    kept = np.argsort(-steps.k, kind="stable")[:PRODUCT]
    log = sum(float(steps.k[i]) * math.log(max(_modulus_upper(steps, int(i), add, y), 1e-300)) for i in kept)
    return math.exp(log) * (1 + 1e-9) + 1e-300


class Interval(NamedTuple):
    """Certified ends of delta, an estimate between, and what rounding adds."""

    lower: float
    estimate: float
    upper: float
    rounding: float


class Side:
    """One direction of one run: its expansions of order 1, their constants, and the interval of delta at an eps."""

    def __init__(self, steps: LossSteps, add: int, form: str = "one_sequence", published: bool = False):
        self.steps, self.add, self.form = steps, add, form
        self.law = self.law_den = law_of(steps, add)
        self.error_den = 0.0
        self.error = _constant_upper(self.law, steps, add, published)
        if form == "two_sequence":  # X is minus the other direction's loss Y
            other = law_of(steps, 1 - add)
            mean, variance, third = other.sums
            self.law_den = other._replace(sums=(-mean, variance, -third))
            self.error_den = _constant_upper(other, steps, 1 - add, published)

    def interval(self, eps: float) -> Interval:
        """delta(eps), without Chernoff's bound."""
        if self.form == "one_sequence":
            middle, slack = _tail_integral(self.law, eps)
            low, high = middle - self.error - slack, middle + self.error + slack  # [theory: eeai.interval]
            if not self.error < 1:  # nothing is known: the expansion itself may lie outside [0, 1]
                low, high = 0.0, 1.0
        else:
            grow = math.exp(min(eps, 700.0)) * UP
            (num, slack), (den, slack_den) = _survival(self.law, eps), _survival(self.law_den, eps)
            of_num, of_den = (
                Ends(max(0.0, f - d - s), min(1.0, f + d + s)) if d < 1 else Ends(0.0, 1.0)
                for f, d, s in ((num, self.error, slack), (den, self.error_den, slack_den))
            )
            middle, slack = num - grow * den, slack + grow * (slack_den + 8 * U)
            low = of_num.lower - grow * of_den.upper - 4 * U
            high = of_num.upper - grow * of_den.lower * DOWN + 4 * U
        low, high = max(0.0, low), min(1.0, high)
        return Interval(low, min(max(middle, low), high), high, slack)

    def chernoff_upper(self, eps: float) -> float:
        answer = self._prawitz(1, eps)
        if answer is None:
            return 1.0
        log_scale, _, _, upper, *_ = answer
        return min(1.0, math.exp(min(0.0, log_scale + math.log(upper))) * (1 + 1e-12))

    def chernoff_eps_upper(self, delta: float) -> float:
        answer = self._prawitz(0, math.log(delta) * UP)
        _, top = support(self.steps, self.add)
        _, _, upper, *_ = answer or (0.0, 0.0, math.inf)
        top = min(upper, top)
        if not top < math.inf:
            raise AccuracyError(
                f"no certified bracket of eps was found at delta={delta!r}: hs.epsilon has other routes"
            )
        return max(0.0, top)

    def _prawitz(self, have_eps: int, at: float):
        asked = self.steps.rows, self.add, have_eps, at, *self.steps.rule, 31.0, NO_SMOOTHING
        status, *found = scratch.lend(_core.prawitz_work(), _core.prawitz_ask, *asked)
        return found if status <= _core.LOOSE else None

    def bounded(self, eps: float) -> Interval:
        """The interval below Chernoff's bound."""
        low, middle, high, slack = self.interval(eps)
        high = min(high, self.chernoff_upper(eps))
        middle = high if middle != middle else middle
        return Interval(low, between(low, middle, high, "edgeworth", self.steps), high, slack)


def _standard(law: Law, x: float) -> tuple[float, float, float, float]:
    """(z, sd, rho, moved): z = (x - mean)/sd, and a bound of |G_1 - its computed twin|; see the head of the file."""
    (mean, variance, third), (d_mean, d_variance, d_third) = law.sums, law.errors
    sd, least = math.sqrt(variance), variance - d_variance
    if not least > 0:
        return 0.0, sd, 0.0, math.inf
    rho = third / (variance * sd)
    shift = (d_mean + 4 * U * (abs(x) + abs(mean))) / math.sqrt(least)
    factor = 0.5 * d_variance / least + 4 * U
    d_rho = d_third / (least * math.sqrt(least)) + abs(rho) * (1.6 * d_variance / least + 8 * U)
    size = abs(rho) + d_rho
    # [theory: eeai.standardised]
    moved = shift * (0.3990 + 0.0918 * size) + factor * (0.2420 + 0.0807 * size) + 0.0665 * d_rho
    return (x - mean) / sd, sd, rho, moved * (1 + 1e-9)


def _survival(law: Law, x: float) -> tuple[float, float]:
    """(1 - G_1(x), a bound of its error)."""
    z, _, rho, moved = _standard(law, x)
    value = 0.5 * math.erfc(z / math.sqrt(2)) + rho / 6 * (z * z - 1) * math.exp(-0.5 * z * z) / _ROOT_2PI
    return value, moved + 32 * U * (1 + abs(rho))


def _tail_integral(law: Law, eps: float) -> tuple[float, float]:
    """int_eps^inf e^(eps-x) (1 - G_1(x)) dx and a bound of its error: with w = z + B, B the deviation, phi(z) r_j(w) =
    J_j, r_j(w) = int t^j e^(-wt - t^2/2) dt, it is sf(z) - J_0 + (B rho/6) ((z^2 - 1) J_0 + 2 z J_1 + J_2)."""
    z, sd, rho, moved = _standard(law, eps)
    w, phi, power = z + sd, math.exp(-0.5 * z * z) / _ROOT_2PI, 0.0
    if w < 1:
        power = 0.5 * sd * (z + w)
        first = 0.5 * math.exp(min(power, 1.0)) * math.erfc(w / math.sqrt(2))  # power <= 1/2, as z < w < 1
        J0, J1, J2 = first, phi - w * first, first - w * (phi - w * first)
        cut = 0.0
    else:
        one, two = _mills(w, 0.0), _mills(w, MILLS_DEPTH / w)
        (J0, J1, J2), cut = (phi * r for r in one), phi * max(abs(a - b) for a, b in zip(one, two, strict=True))
    skew = sd * rho / 6
    value = 0.5 * math.erfc(z / math.sqrt(2)) - J0 + skew * ((z * z - 1) * J0 + 2 * z * J1 + J2)
    size = 1 + abs(skew) * ((z * z + 1) * J0 + 2 * abs(z) * J1 + J2)
    cut *= 1 + abs(skew) * (z * z + 2 * abs(z) + 2)
    error = moved + cut + U * (256 + 16 * min(z * z, 800.0) + 16 * min(abs(power), 800.0)) * size
    return value, error if error == error else math.inf


MILLS_DEPTH = 200


def _mills(w: float, tail: float) -> list[float]:
    """r_0, r_1, r_2 at w >= 1 by r_n/r_(n-1) = n/(w + r_(n+1)/r_n): from tail = 0 and from depth/w, which is too large,
    they enclose the truth [theory: edgeworth.mills]."""
    ratio = tail
    for n in range(MILLS_DEPTH - 1, 2, -1):
        ratio = n / (w + ratio)
    two = 2 / (w + ratio)
    one = 1 / (w + two)
    first = 1 / (w + one)
    return [first, first * one, first * one * two]


def _sides(run, direction, form, published) -> list[Side]:
    estimators(run, direction, 1, form)
    steps = steps_of(run)
    return [Side(steps, add, form, published) for add in directions_of(steps, direction)]


def point(steps: LossSteps, add: int, eps: float) -> tuple[float, float, float]:
    """(lower, upper, constant) of delta(eps); nothing known where a step's moments have no proved error."""
    if not takes(steps):
        return 0.0, 1.0, 1.0
    side = Side(steps, add)
    found = side.interval(eps)
    return found.lower, found.upper, side.error


def root(steps: LossSteps, add: int, more: float, less: float, top: float) -> tuple[float, float, float]:
    """(lower, upper, constant) of eps(delta), less <= delta <= more, which lies below `top`."""
    if not takes(steps):
        return -math.inf, top, 1.0
    side = Side(steps, add)
    if not side.error < 1:
        return -math.inf, top, 1.0
    low = _bisect(lambda x: side.interval(x).lower >= more, 0.0, top)
    high = _bisect(lambda x: side.interval(x).upper <= less, top, 0.0)
    return low if low > 0 else -math.inf, high, side.error


@overload
def eeai_delta(run: Ran, eps: float, **options: Unpack[Finite]) -> Bound[float]: ...
@overload
def eeai_delta(run: Ran, eps: Numbers, **options: Unpack[Finite]) -> Bound[NDArray[np.float64]]: ...
@respelled(epsilon="eps")
def eeai_delta(
    run: Ran,
    eps: float | Numbers,
    *,
    direction: Direction = "both",
    form: Form = "one_sequence",
    published: bool = False,
) -> Bound[Any]:
    """delta(eps) from the Edgeworth expansion of order 1 and its finite-sample constant; see the head of the file.

    Parameters
    ----------
    run : Run, Mechanism or LossSteps
        Gaussian and Laplace steps, subsampled or not.
    eps : float
        Finite, in nats.
    direction : "both", "remove" or "add"
    form : "one_sequence" or "two_sequence"
        The second is the published interval, of half-width D_Y + e^eps D_X.
    published : bool
        With the constants exactly as published; else with one remainder term as small as its derivation allows, and
        with the version of finite_sample.py that is not published.

    Returns
    -------
    Bound
        Certified lower <= delta <= upper. `budget` holds the constant and what rounding adds, both absolute.

    Raises
    ------
    DomainError
        For arguments outside their domain; for steps of other families.

    References
    ----------
    [WGZ22, Def. 4.2, Lemma 4.3; DGG24].

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> b = edgeworth.eeai_delta(hs.poisson_subsampled(hs.gaussian(0.8), 4e-7) * 10**12, 0.5)
    >>> b.certified and 0 < b.lower < b.upper < 1.01 * b.lower
    True
    """
    eps = within("eps", eps, -math.inf, math.inf, "()")
    sides = _sides(run, direction, form, published)
    found = zip(*(side.bounded(eps) for side in sides), strict=True)
    return _bound(Interval(*map(max, found)), sides)


@overload
def eeai_epsilon(run: Ran, delta: float, **options: Unpack[Finite]) -> Bound[float]: ...
@overload
def eeai_epsilon(run: Ran, delta: Numbers, **options: Unpack[Finite]) -> Bound[NDArray[np.float64]]: ...
def eeai_epsilon(
    run: Ran,
    delta: float | Numbers,
    *,
    direction: Direction = "both",
    form: Form = "one_sequence",
    published: bool = False,
) -> Bound[Any]:
    """eps(delta): where the upper curve of `eeai_delta` is at most delta, and where the lower one is at least delta.

    A single such point proves its side, whether or not the published interval's root exists: the search starts from
    Chernoff's.

    Parameters
    ----------
    delta : float
        In (0, 1).
    run, direction, form, published
        As in `eeai_delta`.

    Returns
    -------
    Bound
        Certified lower <= eps <= upper.

    Raises
    ------
    DomainError, AccuracyError

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.routes import edgeworth
    >>> b = edgeworth.eeai_epsilon(hs.poisson_subsampled(hs.gaussian(0.8), 4e-7) * 10**12, 0.1)
    >>> b.certified and 0 < b.lower < b.upper < 1.001 * b.lower
    True
    """
    delta = within("delta", delta, 0, 1, "()")
    sides = _sides(run, direction, form, published)
    top = max(side.chernoff_eps_upper(delta) for side in sides)
    upper = _bisect(lambda x: max(s.interval(x).upper for s in sides) <= delta, top, 0.0)
    lower = _bisect(lambda x: max(s.interval(x).lower for s in sides) >= delta, 0.0, top)
    middle = max(_core.edgeworth_eps(*s.steps.totals[s.add], FORMS[form], 1, math.log(delta)) for s in sides)
    slack = max(s.interval(upper).rounding for s in sides)
    return _bound(Interval(lower, min(max(middle, lower), upper), upper, slack), sides)


def _bisect(holds, good: float, bad: float) -> float:
    """A point towards `bad` at which the proposition holds, or `good` itself, where it is known."""
    if holds(bad):
        return bad
    for _ in range(50):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _bound(found: Interval, sides: list[Side]) -> Bound:
    lower, estimate, upper, rounding = map(float, found)
    terms = max(side.error for side in sides), rounding
    return Bound(lower, estimate, upper, "edgeworth", True, Budget(dict(zip(TERMS, terms, strict=True)), "delta"))
