"""Mechanisms given by their worst-case pair or their privacy curve, and mixtures of mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import respelled
from ..bound import DomainError
from .law import user_probabilities
from .mechanism import SIGMA_RANGE, Mechanism, flag, noise, real, within
from .vectors import reals, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..types import Numbers

    Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]

SHIFTS_MAX = 10**6


@dataclass(frozen=True, slots=True)
class GaussianMixture(Mechanism):
    """Gaussian noise around a random shift; see `gaussian_mixture`."""

    sigma: float
    shifts: tuple[float, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PublicMixture(Mechanism):
    """One of several mechanisms, the choice public; see `public_mixture`."""

    parts: tuple[Mechanism, ...]
    weights: tuple[float, ...]

    @property
    def inner(self) -> tuple[Mechanism, ...]:
        return self.parts


def _weights(name: str, values: Any) -> tuple[float, ...]:
    """Positive numbers that sum to 1 within 1e-9, then scaled to sum to 1 if they are further from it than rounding."""
    out = tuple(within(f"{name}[{i}]", x, 0, 1, "(]") for i, x in enumerate(values))
    total = math.fsum(out)
    if not abs(total - 1) <= 1e-9:
        raise DomainError(f"{name} must sum to 1 (within 1e-9), got a sum of {total!r}")
    return out if abs(total - 1) <= 4e-16 * len(out) else tuple(x / total for x in out)


def gaussian_mixture(sigma: float, shifts: Iterable[float], probabilities: Iterable[float]) -> GaussianMixture:
    """Gaussian noise whose mean is moved by a random amount when the record is there:
    sum_i p_i N(shift_i, sigma^2) against N(0, sigma^2).

    Parameters
    ----------
    sigma : float
        Standard deviation, in the unit of the shifts.
    shifts : sequence of float
        Each >= 0, at most a million of them, the largest with sigma/shift in [1e-3, 1e9].
    probabilities : sequence of float
        Each in (0, 1], summing to 1 within 1e-9.

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    References
    ----------
    [CGH+23]: a Poisson-sampled group or user with several records is such a mixture.

    Examples
    --------
    >>> import hockeystick as hs
    >>> one = hs.gaussian_mixture(1.0, [0.0, 1.0], [0.9, 0.1])     # a Poisson sample
    >>> bounds = [hs.delta(step, 1.0) for step in (one, hs.poisson_subsampled(hs.gaussian(1.0), 0.1))]
    >>> max(b.lower for b in bounds) <= min(b.upper for b in bounds)
    True
    """
    shifts = tuple(within(f"shifts[{i}]", x, 0, math.inf, "[)") for i, x in enumerate(shifts))
    probabilities = _weights("probabilities", probabilities)
    if len(shifts) != len(probabilities) or not 1 <= len(shifts) <= SHIFTS_MAX:
        raise DomainError(
            f"shifts and probabilities need equal lengths from 1 to {SHIFTS_MAX}, got {len(shifts)} and "
            f"{len(probabilities)}"
        )
    largest = max(shifts)
    if not largest > 0:
        raise DomainError("shifts must hold a number > 0: a mixture that never moves is the empty run")
    return GaussianMixture(noise("sigma", sigma, largest, SIGMA_RANGE), shifts, probabilities)


def public_mixture(parts: Iterable[Mechanism], weights: Iterable[float]) -> PublicMixture:
    """One of several mechanisms, drawn anew in every step with public probabilities `weights` (positive, summing to 1).

    Raises
    ------
    DomainError
        If a part is not a mechanism, or leaves a dataset size or a group open, or the weights are not probabilities.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.public_mixture([hs.gaussian(1.0), hs.gaussian(10.0)], [0.1, 0.9])
    >>> b, c = hs.delta(step, 0.5), hs.delta(hs.gaussian(1.0), 0.5)
    >>> 0.1 * c.lower <= b.upper < c.lower
    True
    """
    parts = tuple(parts)
    for i, part in enumerate(parts):
        if not isinstance(part, Mechanism):
            raise DomainError(f"parts must be mechanisms (not runs), got {part!r} at entry {i}")
        if part.open:
            raise DomainError(f"parts must have one known dataset_size, got {part!r} at entry {i}")
    weights = _weights("weights", weights)
    if len(parts) != len(weights) or not parts:
        raise DomainError(f"parts and weights need equal lengths >= 1, got {len(parts)} and {len(weights)}")
    return PublicMixture(parts, weights)


@dataclass(frozen=True, slots=True)
class FromPmf(Mechanism):
    """A discrete worst-case pair; see `from_pmf`."""

    num: tuple[float, ...]
    den: tuple[float, ...]

    def __repr__(self) -> str:
        return f"FromPmf({len(self.num)} outcomes)"


@dataclass(frozen=True, slots=True)
class FromCurve(Mechanism):
    """The worst pair with a given privacy curve; see `from_curve`."""

    eps: tuple[float, ...]
    delta: tuple[float, ...]
    symmetric: bool = True

    def __repr__(self) -> str:
        return f"FromCurve({len(self.eps)} points)"


@dataclass(frozen=True, slots=True)
class FromLossCdf(Mechanism):
    """A pair given by the distribution functions of its loss; see `from_loss_cdf`. Equal only to itself."""

    cdf_num: Cdf
    cdf_den: Cdf
    sf_num: Cdf | None
    sf_den: Cdf | None
    lo: float
    hi: float
    mass_inf: float
    mass_minus_inf: float
    error: float


SUM_ERROR = 1e-9
"""How far the sum of a user's probabilities may be from 1; they are then scaled to sum to 1."""

PROBES = 257
"""Points at which a user's distribution functions are checked."""


def _vector(name: str, values: Any) -> np.ndarray:
    array = reals(name, values)
    if array.ndim != 1 or not array.size:
        raise DomainError(f"{name} must be one-dimensional and not empty, got an array of shape {array.shape}")
    return array


def from_pmf(num: Numbers, den: Numbers) -> FromPmf:
    """A mechanism whose worst-case pair is discrete: Pr[output i] = num[i] with the record, den[i] without it.

    Parameters
    ----------
    num, den : sequences of float
        Equal lengths, entries >= 0, each summing to 1 within 1e-9; both are then scaled to sum to 1 exactly. An entry
        with den[i] = 0 < num[i] is a loss of +inf.

    Returns
    -------
    FromPmf
        Its pair is (num, den) for REMOVE and (den, num) for ADD, under the adjacency for which the caller knows it.
        Every step of a run faces the same way. Under a symmetric relation ("replace_one", "zero_out" of either data
        set) two steps may face opposite ways, so there (num, den) must dominate every ordered pair of neighbours, as a
        pair that is its own mirror image does; else give the worst of both by `from_curve` with `symmetric`.

    Raises
    ------
    DomainError
        Naming the entry that is negative or not a number, the sum that is not 1, or the lengths that differ.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.delta(hs.from_pmf([0.6, 0.3, 0.1], [0.5, 0.2, 0.3]) * 10, 1.0)
    >>> 0 < b.lower <= b.upper < 1
    True
    """
    num, den = _vector("num", num), _vector("den", den)
    if num.size != den.size:
        raise DomainError(f"num and den must have equal lengths, got {num.size} and {den.size}")
    for name, mass in (("num", num), ("den", den)):
        require(name, mass, (mass >= 0) & (mass <= 2), "in [0, 1]")
        total = math.fsum(mass)
        if not abs(total - 1) <= SUM_ERROR:
            raise DomainError(f"{name} must sum to 1 (within {SUM_ERROR:g}), got a sum of {total!r}")
    used = (num > 0) | (den > 0)
    return FromPmf(tuple(num[used].tolist()), tuple(den[used].tolist()))


@respelled(epsilon="eps")
def from_curve(eps: Numbers, delta: Numbers, *, symmetric: bool = True) -> FromCurve:
    """The worst pair among all mechanisms that are (eps[i], delta[i])-DP for every i, by connect-the-dots.

    The curve is joined by straight lines in e^eps; the pair with that curve dominates every mechanism below the points
    [DGK+22, Thm 3.1], and no smaller curve does.

    Parameters
    ----------
    eps : sequence of float
        Increasing, in nats, between -300 and 300; >= 0 when `symmetric`.
    delta : sequence of float
        In [0, 1], not increasing, convex in e^eps.
    symmetric : bool, default True
        The guarantee holds with num and den in either order. Then the mirrored points belong to the curve too, and the
        pair serves both directions. Otherwise the curve is that of (num, den) = REMOVE only, and ADD is its mirror
        image.

    Raises
    ------
    DomainError
        Naming the entry that is out of range, increasing or not convex.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.from_curve([0.1, 0.5, 1.0], [0.2, 0.05, 1e-6])
    >>> b = hs.delta(step, 0.5)
    >>> b.lower <= 0.05 <= b.upper
    True
    """
    eps, delta = _vector("eps", eps), _vector("delta", delta)
    if eps.size != delta.size:
        raise DomainError(f"eps and delta must have equal lengths, got {eps.size} and {delta.size}")
    symmetric = flag("symmetric", symmetric)
    low = 0.0 if symmetric else -300.0
    require("eps", eps, (eps >= low) & (eps <= 300), f"in [{low:g}, 300]")
    require("eps", eps, np.diff(eps, prepend=-math.inf) > 0, "increasing")
    require("delta", delta, (delta >= 0) & (delta <= 1), "in [0, 1]")
    require("delta", delta, np.diff(delta, prepend=1.0) <= 0, "non-increasing in eps (a privacy curve never rises)")
    floor = -np.expm1(np.minimum(eps, 0.0))
    require("delta", delta, delta >= floor * (1 - 1e-12), "at least 1 - e^eps")
    exact = -np.expm1(np.minimum(eps.astype(np.longdouble), 0))
    delta = np.where(delta < exact, np.nextafter(exact.astype(float), 1.0), delta)  # no curve lies below
    a = np.exp(eps.astype(np.longdouble))
    gaps = a[:-1] * np.expm1(np.diff(eps.astype(np.longdouble)))  # positive, where those of a may round to 0
    chord = np.diff(delta.astype(np.longdouble)) / gaps
    slopes = np.r_[(delta[0] - 1) / a[0], chord, 0.0]
    rounding = 1e-15 * delta[:-1] / gaps  # of deltas that took a few operations
    slack = 1e-12 * np.maximum(np.abs(slopes[:-1]), np.abs(slopes[1:])) + np.r_[0, rounding] + np.r_[rounding, 0]
    if eps.size > 1 or not symmetric:
        require("delta", delta, np.diff(slopes) >= -slack, "convex in e^eps (the chord slopes must not fall)")
    return FromCurve(tuple(eps.tolist()), tuple(delta.tolist()), symmetric)


def from_loss_cdf(
    cdf_num: Cdf,
    cdf_den: Cdf,
    *,
    sf_num: Cdf | None = None,
    sf_den: Cdf | None = None,
    lo: float = -math.inf,
    hi: float = math.inf,
    mass_inf: float = 0.0,
    mass_minus_inf: float = 0.0,
    error: float = 2.0**-50,
) -> FromLossCdf:
    """A mechanism given by the distribution functions of its loss L = log(num/den).

    Parameters
    ----------
    cdf_num, cdf_den : callable
        s -> Pr[-inf < L <= s] under num (REMOVE: with the record) and under den, for float64 arrays of finite s.
    sf_num, sf_den : callable, optional
        s -> Pr[s < L < inf]. Without them 1 - cdf is used: then nothing below about k * `error` can be resolved.
    lo, hi : float
        Essential range of the finite losses, if it is known to be bounded.
    mass_inf, mass_minus_inf : float
        num-probability of L = +inf and den-probability of L = -inf, in [0, 1).
    error : float, default 2^-50
        The caller's bound on the absolute error of all four functions. Certified bounds rely on it.

    Raises
    ------
    DomainError
        If a function returns NaN, leaves [0, 1], decreases, has another shape than s, or if the two laws do not belong
        to one loss (between two points a < b the num mass must lie between e^a and e^b times the den mass): the point
        is named.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from scipy.special import ndtr
    >>> step = hs.from_loss_cdf(lambda s: ndtr(s - 0.5), lambda s: ndtr(s + 0.5))
    >>> b = hs.delta(step, 1.0, route="pld")
    >>> b.lower <= 0.1269367370 <= b.upper
    True
    """
    for name, f in (("cdf_num", cdf_num), ("cdf_den", cdf_den), ("sf_num", sf_num), ("sf_den", sf_den)):
        if not (callable(f) or (f is None and name.startswith("sf"))):
            raise DomainError(f"{name} must be a function of an array of losses, got {f!r}")
    lo, hi = real("lo", lo, "< hi"), real("hi", hi, "> lo")
    if not lo < hi:
        raise DomainError(f"need lo < hi, got lo={lo!r}, hi={hi!r}")
    masses = within("mass_inf", mass_inf, 0, 1, "[)"), within("mass_minus_inf", mass_minus_inf, 0, 1, "[)")
    step = FromLossCdf(cdf_num, cdf_den, sf_num, sf_den, lo, hi, *masses, within("error", error, 0, 0.01))
    _probe(step)
    return step


REGISTERED: dict[str, FromLossCdf] = {}
"""Steps that are written by name, for functions cannot be written."""


def register(name: str, step: FromLossCdf) -> FromLossCdf:
    """Let a step of `from_loss_cdf` be written to JSON by `name`: text cannot hold its functions.

    Whoever reads the text registers the same functions under the same name first. What is written besides the name are
    values of the functions at a few points, and other functions under that name are refused.

    Parameters
    ----------
    name : str
        Not empty, not registered for another step.
    step : FromLossCdf
        From `from_loss_cdf`.

    Returns
    -------
    FromLossCdf
        `step` itself.

    Raises
    ------
    DomainError
        If the name is taken or no text, or `step` is another kind of mechanism (those need no name).

    Examples
    --------
    >>> import hockeystick as hs
    >>> from scipy.special import ndtr
    >>> step = hs.register("unit gaussian", hs.from_loss_cdf(lambda s: ndtr(s - 0.5), lambda s: ndtr(s + 0.5)))
    >>> hs.from_json(hs.to_json(step * 10)) == step * 10
    True
    """
    if not isinstance(name, str) or not name:
        raise DomainError(f"name must be a text that is not empty, got {name!r}")
    if not isinstance(step, FromLossCdf):
        raise DomainError(
            f"register takes a step of from_loss_cdf, which cannot be written without a name, got {step!r}"
        )
    if REGISTERED.setdefault(name, step) is not step:
        raise DomainError(f"the name {name!r} is registered for another step; choose another one")
    return step


def fingerprint(step: FromLossCdf) -> list[float]:
    """What tells functions registered under one name apart: their values at a few points, and the masses at
    infinity."""
    lo, hi = max(step.lo, -4.0), min(step.hi, 4.0)
    at = lo + (hi - lo) * np.array([0.25, 0.5, 0.75])
    values = [f(at) for f in (step.cdf_num, step.cdf_den)]
    return [*np.ravel(values).astype(float).tolist(), step.mass_inf, step.mass_minus_inf, step.error]


def registered(name: Any, probe: Any) -> FromLossCdf:
    """The step registered under `name`, whose fingerprint must be `probe`."""
    step = REGISTERED.get(name) if isinstance(name, str) else None
    if step is None:
        known = ", ".join(map(repr, REGISTERED)) or "none"
        raise DomainError(
            f"no step is registered under {name!r} (registered: {known}); hs.register(name, step) it before reading"
        )
    own = fingerprint(step)
    near = isinstance(probe, list | tuple) and len(probe) == len(own)
    if not near or not all(
        abs(real("probe", a, "") - b) <= 1e-9 + 2 * step.error for a, b in zip(probe, own, strict=True)
    ):
        raise DomainError(f"the step registered under {name!r} is not the one that was written: its functions differ")
    return step


def _probe(step: FromLossCdf) -> None:
    """The checks of `from_loss_cdf`, on points that spread over the range, dense near 0."""
    grow = np.sinh(np.linspace(-8.0, 8.0, PROBES)) * (40 / math.sinh(8.0))
    s = np.unique(np.clip(grow, step.lo, step.hi)) if step.lo > -math.inf or step.hi < math.inf else grow
    slack = 2 * step.error + 2.0**-50
    values = {}
    for name in ("cdf_num", "cdf_den", "sf_num", "sf_den"):
        f, mass = getattr(step, name), step.mass_inf if name.endswith("num") else step.mass_minus_inf
        if f is None:
            continue
        values[name] = user_probabilities(name, f, s, mass, step.error)
    y, x = np.diff(values["cdf_num"]), np.diff(values["cdf_den"])
    with np.errstate(over="ignore"):
        low, high = np.exp(s[:-1]), np.exp(s[1:])
    wrong = ~((y + slack >= low * (x - slack)) & (y - slack <= high * (x + slack)))
    for i in np.flatnonzero(wrong)[:1]:
        raise DomainError(
            f"cdf_num and cdf_den are not those of one loss: between s={float(s[i])!r} and s={float(s[i + 1])!r} the"
            f" num mass is {float(y[i])!r}, the den mass {float(x[i])!r}; their ratio must lie between e^s at the two"
            " ends"
        )
