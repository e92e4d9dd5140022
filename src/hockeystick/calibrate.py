"""Calibration: the parameter of a run that just meets a privacy target, with a proof on both sides.

The search runs on estimates (secant steps in the logarithm of the parameter, inside a bracket) and proves only its last
two points: `value` meets the target by its certified bound, `limit` provably does not, and the two are within the
tolerance. That the best parameter lies between them uses that the cost is monotone in the parameter; that `value` meets
the target does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from . import query, risk, risk_gdp
from .bound import AccuracyError, Bound, DomainError
from .mechanism import K_MAX, Q_MIN, count, gaussian, poisson_subsampled, real

TOL_RANGE = (1e-12, 0.5)
EVALUATIONS = 200
"""Limit of evaluations: bisection alone narrows twelve decades to 1e-12 in under 70."""

STEP = 2.0
"""Largest step in the log of the parameter while no bracket is known; it doubles as long as the side does not change."""


class Calibration(NamedTuple):
    """A calibrated parameter.

    Attributes
    ----------
    value : float or int
        Meets the target: `bound` proves it.
    limit : float or int or None
        Proved not to meet the target, within the tolerance of `value`: the best possible parameter lies between the
        two. None if even the end of the range that costs most meets the target, and is `value`.
    bound : Bound
        The quantity that the target limits, at `value`.
    evaluations : int
        How many parameters were tried.
    """

    value: float | int
    limit: float | int | None
    bound: Bound
    evaluations: int


class _Target(NamedTuple):
    """ask(run) gives the Bound that is compared with `level`: to be at most that if `sign` is 1, at least that if -1."""

    ask: Callable
    sign: int
    level: float
    text: str

    def meets(self, bound: Bound) -> bool:
        return bound.upper <= self.level if self.sign > 0 else bound.lower >= self.level

    def fails(self, bound: Bound) -> bool:
        return bound.lower > self.level if self.sign > 0 else bound.upper < self.level

    def score(self, value: float) -> float:
        """How far a value is on the wrong side: what the search works on, never the proof."""
        return _log(value) - math.log(self.level) if self.sign > 0 else self.level - value


class _Tried(NamedTuple):
    """A parameter and its score; `meets` and `fails` are the proofs, and neither may hold."""

    x: float | int
    lower: float
    estimate: float
    upper: float
    meets: bool
    fails: bool
    bound: Bound | None


def calibrate(
    make_run,
    *,
    over,
    epsilon=None,
    delta=None,
    advantage=None,
    fnr=None,
    fpr=None,
    mu=None,
    tol=1e-6,
    start=None,
    **options,
) -> Calibration:
    """The parameter x in `over` for which make_run(x) costs as much privacy as the target allows, and no more.

    Parameters
    ----------
    make_run : callable
        make_run(x) returns a Run or Mechanism. The cost must be monotone in x, in either direction.
    over : (lo, hi)
        Range of x, 0 < lo < hi. Two integers make x an integer.
    epsilon, delta : float
        Target eps(delta) <= epsilon, which is delta(epsilon) <= delta. epsilon >= 0, 0 < delta < 1.
    advantage : float
        Target: membership advantage at most this, in (0, 1).
    fnr, fpr : float
        Target: every attack of false positive rate at most `fpr` has a false negative rate of at least `fnr`.
    mu, delta : float
        Target: mu_gdp(run, delta) <= mu.
    tol : float, default 1e-6
        Relative distance of `value` and `limit`, 1e-12 to 0.5; for integers, or 1 if that is more.
    start : float, optional
        Where to begin; the middle of the range in the logarithm if not given.
    adjacency, direction, route, n_threads
        As in `delta`.

    Returns
    -------
    Calibration
        `value`, proved to meet the target; `limit`, proved not to.

    Raises
    ------
    DomainError
        For arguments outside their domain, and where make_run raises it.
    AccuracyError
        If the target cannot be met in `over` (the message names the best reachable), or the certified bounds are too wide
        to tell parameters apart within `tol`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.gaussian(2.0)
    >>> found = hs.calibrate(lambda q: hs.poisson_subsampled(step, q) * 500, over=(1e-4, 1.0), epsilon=2.0, delta=1e-6)
    >>> found.bound.upper <= 1e-6 and found.value < found.limit < found.value * (1 + 2e-6)
    True
    """
    lo, hi, whole = _range(over)
    tol = real("tol", tol, "from {:g} to {:g}".format(*TOL_RANGE))
    if not TOL_RANGE[0] <= tol <= TOL_RANGE[1]:
        raise DomainError(f"tol must be from {TOL_RANGE[0]:g} to {TOL_RANGE[1]:g}, got {tol!r}")
    first = math.sqrt(lo) * math.sqrt(hi) if start is None else real("start", start, "in `over`")
    if not lo <= first <= hi:
        raise DomainError(f"start must lie in over=({lo!r}, {hi!r}), got {start!r}")
    if not callable(make_run):
        raise DomainError(f"make_run must be a function of the parameter, got {make_run!r}")
    target = _target(options, epsilon=epsilon, delta=delta, advantage=advantage, fnr=fnr, fpr=fpr, mu=mu)
    return _Search(make_run, target, lo, hi, whole, tol).solve(first)


def noise_multiplier(*, q, steps, epsilon, delta, tol=1e-6, **options) -> Calibration:
    """The smallest sigma for which `steps` Poisson-subsampled Gaussian steps of rate `q` are (epsilon, delta)-DP.

    Parameters
    ----------
    q : float
        Sampling rate, 1e-12 to 1.
    steps : int
        Number of steps, from 1 to 1e12.
    epsilon, delta, tol, options
        As in `calibrate`.

    Returns
    -------
    Calibration
        `value` is sigma/sensitivity, proved to meet the target; `limit` is smaller and proved not to.

    Raises
    ------
    DomainError, AccuracyError
        As in `calibrate`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = hs.noise_multiplier(q=0.01, steps=1000, epsilon=1.0, delta=1e-5)
    >>> 1.41461 < found.limit < found.value < 1.41463
    True
    """
    q, k = _rate(q), count("steps", steps)
    over = (1e-2, 1e8)
    guess = 1.0
    if _positive(epsilon) and _positive(delta):
        ratio = _gaussian_mu(float(epsilon), float(delta)) / math.sqrt(k)
        guess = 1 / ratio if q == 1 else 1 / math.sqrt(math.log1p((ratio / q) ** 2))
    return calibrate(
        lambda sigma: poisson_subsampled(gaussian(sigma), q) * k,
        over=over,
        start=min(max(guess, over[0]), over[1]),
        epsilon=epsilon,
        delta=delta,
        tol=tol,
        **options,
    )


def max_steps(*, sigma, q, epsilon, delta, tol=1e-6, **options) -> Calibration:
    """How many Poisson-subsampled Gaussian steps may run under (epsilon, delta)-DP.

    Parameters
    ----------
    sigma, q : float
        Noise multiplier and sampling rate of a step.
    epsilon, delta, tol, options
        As in `calibrate`.

    Returns
    -------
    Calibration
        `value` is the number of steps, proved to meet the target; `limit` (value + 1 up to 1/tol steps) is proved not to.

    Raises
    ------
    DomainError, AccuracyError
        As in `calibrate`; an AccuracyError also if not even one step meets the target.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = hs.max_steps(sigma=1.0, q=0.01, epsilon=1.0, delta=1e-5)
    >>> found.value, found.limit
    (254, 255)
    """
    step = poisson_subsampled(gaussian(sigma), _rate(q))
    guess = 1.0
    if _positive(epsilon) and _positive(delta):
        growth = math.expm1(min(sigma**-2, 700.0)) * q * q if q < 1 else sigma**-2
        guess = _gaussian_mu(float(epsilon), float(delta)) ** 2 / growth
    return calibrate(
        lambda k: step * k,
        over=(1, K_MAX),
        start=min(max(guess, 1.0), float(K_MAX)),
        epsilon=epsilon,
        delta=delta,
        tol=tol,
        **options,
    )


class _Search:
    """One calibration. `costly` and `private` are the ends of the range once the direction is known."""

    slope = 0.0  # of the score in the log of the parameter, near the root

    def __init__(self, make_run, target: _Target, lo, hi, whole: bool, tol: float):
        self.make_run, self.target = make_run, target
        self.lo, self.hi, self.whole, self.tol = lo, hi, whole, tol
        self.tried: dict[float | int, _Tried] = {}

    def at(self, x: float) -> _Tried:
        """What x costs, relative to the target. A cost that cannot be certified is between -inf and inf."""
        x = min(max(x, self.lo), self.hi)
        x = min(max(round(x), self.lo), self.hi) if self.whole else float(x)
        if x not in self.tried:
            if len(self.tried) >= EVALUATIONS:
                raise AccuracyError(f"no parameter with {self.target.text} was certified within {EVALUATIONS} evaluations")
            run = self.make_run(x)
            try:
                bound = self.target.ask(run)
                low, mid, high = sorted(self.target.score(end) for end in (bound.lower, bound.estimate, bound.upper))
                self.tried[x] = _Tried(x, low, mid, high, self.target.meets(bound), self.target.fails(bound), bound)
            except AccuracyError:
                self.tried[x] = _Tried(x, -math.inf, math.inf, math.inf, False, False, None)
        return self.tried[x]

    def solve(self, first: float) -> Calibration:
        one = self.clear(first)
        other = self.apart(one)
        rises = (other.estimate > one.estimate) == (other.x > one.x)
        self.private, self.costly = (self.lo, self.hi) if rises else (self.hi, self.lo)
        return self.prove(self.root(one, other))

    def apart(self, one: _Tried) -> _Tried:
        """A point whose cost is certainly another one, near if the bounds are narrow: it tells the direction."""
        factor = 1.02
        while factor < self.hi / self.lo:
            for x in (max(one.x * factor, one.x + self.whole), min(one.x / factor, one.x - self.whole)):
                if self.lo <= x <= self.hi:
                    other = self.at(x)
                    if other.lower > one.upper or other.upper < one.lower:
                        return other
                    break
            factor **= 3
        ends = self.at(self.lo), self.at(self.hi)
        return max(ends, key=lambda end: abs(math.log(end.x / one.x)) if end.estimate != one.estimate else 0.0)

    def clear(self, first: float) -> _Tried:
        """The first point, or one elsewhere in the range if its bound does not say on which side of the target it is."""
        point = self.at(first)
        for parts in (2, 4, 8, 16):
            for i in range(1, parts, 2):
                if _side(point):
                    return point
                point = self.at(self.lo ** (1 - i / parts) * self.hi ** (i / parts))
        return point

    def root(self, one: _Tried, other: _Tried) -> float:
        """Where the estimate meets the target, to a fraction of the tolerance; an end of the range if it lies beyond."""
        goal = 0.1 * self.tol
        ends = {-1: math.log(self.private), 1: math.log(self.costly)}  # where the target is met, and where it is not
        seen: set[int] = set()
        reach, stalled = STEP, 0

        def place(point: _Tried) -> None:
            """A point whose bound says nothing is taken for the side not seen yet: certain points lie the other way."""
            side = _side(point) or (-min(seen) if len(seen) == 1 else 1)
            ends[side] = math.log(point.x)
            seen.add(side)

        for point in sorted((one, other), key=lambda point: abs(point.estimate), reverse=True):
            place(point)
        for _ in range(EVALUATIONS):
            self.slope = (other.estimate - one.estimate) / (math.log(other.x) - math.log(one.x))
            gap = abs(ends[1] - ends[-1])
            if gap <= goal or (self.whole and abs(math.exp(ends[1]) - math.exp(ends[-1])) <= 1):
                break
            u, last = _secant(one, other), math.log(other.x)
            inside = min(ends.values()) < u < max(ends.values())
            if len(seen) == 2 and (not inside or stalled > 2):
                u, stalled = 0.5 * (ends[1] + ends[-1]), 0
            elif len(seen) == 1 and (not inside or abs(u - last) > reach):
                away = ends[-min(seen)] - last
                u, reach = last + math.copysign(min(reach, abs(away)), away), 2 * reach
            if inside and abs(u - last) <= goal and len(seen) == 2:
                return math.exp(u)
            point = self.at(math.exp(u))
            if point.x in (one.x, other.x):
                return math.exp(u)
            place(point)
            stalled = stalled + 1 if abs(ends[1] - ends[-1]) > 0.5 * gap else 0
            if _side(point):
                one, other = other, point
        return math.exp(0.5 * (ends[1] + ends[-1])) if len(seen) == 2 else (self.costly if -1 in seen else self.private)

    def prove(self, root: float) -> Calibration:
        """A point that meets the target and one that does not, from the root outwards, then inwards to the tolerance."""
        value = self.outward(root, self.private, lambda point: point.meets)
        if value is None:
            raise AccuracyError(self.unmet())
        limit = self.outward(root, self.costly, lambda point: point.fails)
        if limit is None:
            end = self.at(self.costly)
            if end.meets:
                return Calibration(end.x, None, end.bound, len(self.tried))
            raise AccuracyError(self.vague(value, None))
        while not self.close(value, limit):
            middle = self.at(0.5 * (value.x + limit.x) if self.whole else math.sqrt(value.x) * math.sqrt(limit.x))
            if middle.meets:
                value = middle
            elif middle.fails:
                limit = middle
            else:
                raise AccuracyError(self.vague(value, limit))
        return Calibration(value.x, limit.x, value.bound, len(self.tried))

    def outward(self, root: float, end: float, holds) -> _Tried | None:
        """The first point from the root towards `end` where `holds`; None if not even the end does."""
        step = 0.25 * self.tol
        towards = 1.0 if end >= root else -1.0
        while True:
            x = root * math.exp(towards * step)
            if self.whole:  # the integers next to the root, then further out
                near = math.floor(root) + 1 if towards > 0 else math.ceil(root) - 1
                near = round(root) if self.at(root).x == round(root) and holds(self.at(round(root))) else near
                x = near if step <= 0.25 * self.tol else (max(x, near + 1) if towards > 0 else min(x, near - 1))
            beyond = x >= end if towards > 0 else x <= end
            point = self.at(end if beyond else x)
            if holds(point):
                return point
            if beyond:
                return None
            # Wide bounds need one step of their width, not many doublings.
            short = point.upper if end == self.private else -point.lower
            step = max(2 * step, min(1.1 * short / abs(self.slope), STEP) if self.slope and math.isfinite(short) else 0.0)

    def close(self, value: _Tried, limit: _Tried) -> bool:
        gap = abs(value.x - limit.x)
        return gap <= self.tol * min(value.x, limit.x) or (self.whole and gap <= 1)

    def unmet(self) -> str:
        best = self.at(self.private)
        reached = "nothing could be certified there" if best.bound is None else f"the best reachable is {best.bound!r}"
        return f"{self.target.text} cannot be met in over=({self.lo!r}, {self.hi!r}): at {best.x!r} {reached}; widen the range"

    def vague(self, value: _Tried, limit: _Tried | None) -> str:
        other = "none is proved not to" if limit is None else f"{limit.x!r} is proved not to"
        return (
            f"{self.target.text} is met at {value.x!r}, but {other}: the certified bounds between are too wide "
            f"for tol={self.tol:g}; ask for a larger tol"
        )


def _side(point: _Tried) -> int:
    """1 if the point misses the target, -1 if it meets it, by its estimate; 0 if the bound is too wide to say."""
    if point.lower <= 0 < point.upper and not point.upper - point.lower < 3:
        return 0
    return 1 if point.estimate > 0 else -1


def _secant(one: _Tried, other: _Tried) -> float:
    """The log of the zero of the line through two points; NaN where there is none."""
    rise = other.estimate - one.estimate
    run = math.log(other.x) - math.log(one.x)
    return math.log(other.x) - other.estimate * run / rise if rise and math.isfinite(rise) else math.nan


def _target(options: dict, **asked) -> _Target:
    given = {name for name, value in asked.items() if value is not None}
    if given == {"epsilon", "delta"}:
        eps, delta = _between("epsilon", asked["epsilon"], 0.0, math.inf, closed=True), _between("delta", asked["delta"], 0, 1)
        text = f"epsilon={eps!r} at delta={delta!r}"
        return _Target(lambda run: query.delta(run, eps, **options), 1, delta, text)
    if given == {"advantage"}:
        at = _between("advantage", asked["advantage"], 0, 1)
        return _Target(lambda run: risk.advantage(run, **options), 1, at, f"advantage={at!r}")
    if given == {"fnr", "fpr"}:
        fnr, fpr = _between("fnr", asked["fnr"], 0, 1), _between("fpr", asked["fpr"], 0, 1)
        text = f"fnr={fnr!r} at fpr={fpr!r}"
        return _Target(lambda run: risk.tradeoff(run, fpr, **options), -1, fnr, text)
    if given == {"mu", "delta"}:
        mu, delta = _between("mu", asked["mu"], 0, math.inf), _between("delta", asked["delta"], 0, 1)
        text = f"mu={mu!r} from delta={delta!r} on"
        return _Target(lambda run: risk_gdp.mu_gdp(run, delta, **options), 1, mu, text)
    raise DomainError(
        "the target must be epsilon and delta, or advantage, or fnr and fpr, or mu and delta; "
        f"got {', '.join(sorted(given)) or 'none'}"
    )


def _range(over) -> tuple:
    if not isinstance(over, tuple | list) or len(over) != 2:
        raise DomainError(f"over must be a pair (lo, hi), got {over!r}")
    lo, hi = (real("an end of over", end, "> 0") for end in over)
    if not 0 < lo < hi < math.inf:
        raise DomainError(f"over must be (lo, hi) with 0 < lo < hi, got {over!r}")
    whole = all(isinstance(end, int) or hasattr(end, "__index__") for end in over)
    return (int(over[0]), int(over[1]), True) if whole else (lo, hi, False)


def _rate(q) -> float:
    number = real("q", q, "in (0, 1]")
    if not Q_MIN <= number <= 1:
        raise DomainError(f"q (sampling rate) must be in [{Q_MIN:g}, 1], got {q!r}")
    return number


def _between(name: str, value, lo: float, hi: float, closed: bool = False) -> float:
    number = real(name, value, f"between {lo:g} and {hi:g}")
    if not (lo < number < hi or (closed and number == lo)):
        raise DomainError(f"{name} must be between {lo:g} and {hi:g}, got {value!r}")
    return number


def _positive(value) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _gaussian_mu(eps: float, delta: float) -> float:
    """About the mu of the Gaussian curve through (eps, delta): where a search starts, nothing more."""
    lo, hi = math.log(1e-6), math.log(1e4)
    for _ in range(14):
        mu = math.exp(0.5 * (lo + hi))
        high, low = ((eps / mu + side * mu / 2) / math.sqrt(2) for side in (1, -1))
        value = 0.5 * math.erfc(low) - 0.5 * math.exp(min(eps, 700.0)) * math.erfc(high)
        lo, hi = (0.5 * (lo + hi), hi) if value < delta else (lo, 0.5 * (lo + hi))
    return math.exp(0.5 * (lo + hi))
