"""Calibration: the parameter of a run that just meets a privacy target. How the search proves its answer: search.py."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from . import attacks, query, risk, risk_gdp
from .arguments import respelled
from .bound import AccuracyError, Bound, DomainError, HockeystickError
from .routes import moments
from .search import Calibration, Search
from .what.allocation import allocates
from .what.mechanism import K_MAX, Q_MIN, Run, count, gaussian, poisson_subsampled, real, within
from .what.pair import all_gaussian
from .what.topk import enclosed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .types import Asked, Ran

TOL_RANGE = (1e-12, 0.5)
FAR = 1e-3
"""A delta below this part of the target decides a side of the search and nothing more."""

ORDERS, PARTS = (2, 4, 8, 16, 32, 64, 128, 256), 32
"""Orders of moments by which a calibration finds about where it ends, and most distinct steps of a run of which they
are asked."""

MU_WIDTHS = (1e-5, 1e-2, 0.3)
WIDTHS = (1e-4, 1e-8)
"""Asked for in turn where a bound does not tell whether a run meets a target."""


class Target(NamedTuple):
    """ask(run, width) gives the Bound that is compared with `level`: to be at most that if `sign` is 1, at least that
    if -1.

    `width` is a wanted relative width, or None for what comes soonest. about(run), where there is one, is cheap: about
    the score of `run`, or its sign where that is large.
    """

    ask: Callable
    sign: int
    level: float
    text: str
    about: Callable[[Run], float] | None = None

    def meets(self, bound: Bound) -> bool:
        return bound.upper <= self.level if self.sign > 0 else bound.lower >= self.level

    def fails(self, bound: Bound) -> bool:
        return bound.lower > self.level if self.sign > 0 else bound.upper < self.level

    def judged(self, run: Run) -> tuple[bool, Bound]:
        """Whether `run` is proved to meet the target, and the bound compared: a narrower one where the first says
        neither."""
        bound = self.ask(run, None)
        for width in WIDTHS:
            if self.meets(bound) or self.fails(bound):
                break
            try:
                bound = self.ask(run, width)
            except AccuracyError:
                break
        return self.meets(bound), bound

    def score(self, value: float) -> float:
        """How far a value is on the wrong side: what the search works on, never the proof."""
        return _log(value) - math.log(self.level) if self.sign > 0 else self.level - value


ATTACKS: tuple[tuple[str, str, Callable[..., Bound]], ...] = (
    ("reconstruction", "baseline", attacks.reconstruction),
    ("attribute_advantage", "baseline", attacks.attribute_advantage),
    ("reidentification", "records", attacks.reidentification),
)
"""Targets by the name of an attack: what it is asked besides, and the question."""


@respelled(epsilon="eps")
def calibrate(
    make_run: Callable[[Any], Ran],
    *,
    over: tuple[float, float],
    eps: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    fnr: float | None = None,
    fpr: float | None = None,
    mu: float | None = None,
    reconstruction: float | None = None,
    attribute_advantage: float | None = None,
    baseline: float | None = None,
    reidentification: float | None = None,
    records: int | None = None,
    tol: float = 1e-6,
    start: float | None = None,
    **options: Unpack[Asked],
) -> Calibration:
    """The parameter x in `over` for which make_run(x) costs as much privacy as the target allows, and no more.

    Parameters
    ----------
    make_run : callable
        make_run(x) returns a Run or Mechanism. The cost must be monotone in x, in either direction. In the scale of
        Gaussian and Laplace noise it is; in that of discrete Gaussian noise below 1, at one eps, it is not
        [theory: pair.dropping].
    over : (lo, hi)
        Range of x, 0 < lo < hi. Two integers make x an integer.
    eps, delta : float
        Target eps(delta) <= eps, which is delta(eps) <= delta. eps >= 0, 0 < delta < 1. `epsilon` is another name of
        `eps`.
    advantage : float
        Target: membership advantage at most this, in (0, 1).
    fnr, fpr : float
        Target: every attack of false positive rate at most `fpr` has a false negative rate of at least `fnr`.
    mu, delta : float
        Target: mu_gdp(run, delta) <= mu.
    reconstruction, baseline : float
        Target: reconstruction(run, baseline) <= reconstruction.
    attribute_advantage, baseline : float
        Target: attribute_advantage(run, baseline) <= attribute_advantage.
    reidentification, records : float, int
        Target: reidentification(run, records) <= reidentification.
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
        If the target cannot be met in `over` (the message names the best reachable), or the certified bounds are too
        wide to tell parameters apart within `tol`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.gaussian(2.0)
    >>> found = hs.calibrate(lambda q: hs.poisson_subsampled(step, q) * 500, over=(1e-4, 1.0), eps=2.0, delta=1e-6)
    >>> found.bound.upper <= 1e-6 and found.value < found.limit < found.value * (1 + 2e-6)
    True
    """
    target = _target(
        options,
        eps=eps,
        delta=delta,
        advantage=advantage,
        fnr=fnr,
        fpr=fpr,
        mu=mu,
        reconstruction=reconstruction,
        attribute_advantage=attribute_advantage,
        baseline=baseline,
        reidentification=reidentification,
        records=records,
    )
    return _solve(make_run, target, over, tol, start, "; widen `over`")


@respelled(epsilon="eps", k="steps")
def noise_multiplier(
    *, q: float, steps: int, eps: float, delta: float, tol: float = 1e-6, **options: Unpack[Asked]
) -> Calibration:
    """The smallest sigma for which `steps` Poisson-subsampled Gaussian steps of rate `q` are (eps, delta)-DP.

    Parameters
    ----------
    q : float
        Sampling rate, 1e-12 to 1.
    steps : int
        Number of steps, from 1 to 1e12.
    eps, delta, tol, options
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
    >>> found = hs.noise_multiplier(q=0.01, steps=1000, eps=1.0, delta=1e-5)
    >>> 1.41461 < found.limit < found.value < 1.41463
    True
    """
    q, k = within("q (sampling rate)", q, Q_MIN, 1), count("steps", steps)
    over = (1e-2, 1e8)
    guess = 1.0
    if _positive(eps) and _positive(delta):
        ratio = _gaussian_mu(float(eps), float(delta)) / math.sqrt(k)
        guess = 1 / ratio if q == 1 else 1 / math.sqrt(math.log1p((ratio / q) ** 2))
    target = _target(options, eps=eps, delta=delta)
    return _solve(
        lambda sigma: poisson_subsampled(gaussian(sigma), q) * k, target, over, tol, min(max(guess, over[0]), over[1])
    )


@respelled(epsilon="eps")
def max_steps(
    *, sigma: float, q: float, eps: float, delta: float, tol: float = 1e-6, **options: Unpack[Asked]
) -> Calibration:
    """How many Poisson-subsampled Gaussian steps may run under (eps, delta)-DP.

    Parameters
    ----------
    sigma, q : float
        Noise multiplier and sampling rate of a step.
    eps, delta, tol, options
        As in `calibrate`.

    Returns
    -------
    Calibration
        `value` is the number of steps, proved to meet the target; `limit` (value + 1 up to 1/tol steps) is proved not
        to.

    Raises
    ------
    DomainError, AccuracyError
        As in `calibrate`; an AccuracyError also if not even one step meets the target.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = hs.max_steps(sigma=1.0, q=0.01, eps=1.0, delta=1e-5)
    >>> found.value, found.limit
    (254, 255)
    """
    step = poisson_subsampled(gaussian(sigma), q)
    guess = 1.0
    if _positive(eps) and _positive(delta):
        growth = math.expm1(min(sigma**-2, 700.0)) * q * q if q < 1 else sigma**-2
        guess = _gaussian_mu(float(eps), float(delta)) ** 2 / growth
    target = _target(options, eps=eps, delta=delta)
    return _solve(lambda k: step * k, target, (1, K_MAX), tol, min(max(guess, 1.0), float(K_MAX)))


def privacy_target(eps: float | None, delta: float | None, options: Asked) -> Target:
    """The target that a run is (eps, delta)-DP."""
    return _target(options, eps=eps, delta=delta)


def most_steps(target: Target, before: Run, more: Run, most: int) -> int:
    """How often `more` is proved to meet the target after `before`, from 0 to `most`: as often as can be where bounds
    tell."""
    if most < 1 or not target.judged(before + more)[0]:
        return 0
    for tol in (TOL_RANGE[0], 1e-6, 1e-3, 0.1) if most > 1 else ():
        with suppress(AccuracyError):  # of bounds too wide to tell numbers apart within tol
            return int(_solve(lambda k: before + more * k, target, (1, most), tol, 1).value)
    return 1


def _solve(make_run, target: Target, over, tol, start, advice: str = "") -> Calibration:
    lo, hi, whole = _range(over)
    tol = within("tol", tol, *TOL_RANGE)
    middle = math.sqrt(lo) * math.sqrt(hi)
    first = middle if start is None else real("start", start, "in `over`")
    if not lo <= first <= hi:
        raise DomainError(f"start must lie in over=({lo!r}, {hi!r}), got {start!r}")
    if not callable(make_run):
        raise DomainError(f"make_run must be a function of the parameter, got {make_run!r}")
    search = Search(make_run, target, lo, hi, whole, tol)
    search.advice = advice
    return search.solve(search.near(target.about) if start is None and target.about else first)


def _target(options: Asked, **asked: Any) -> Target:
    if "rtol" in options:
        raise DomainError("rtol is not an option here; ask for a distance of the parameter with tol")
    given = {name for name, value in asked.items() if value is not None}
    if given == {"eps", "delta"}:
        eps, delta = within("eps", asked["eps"], 0, math.inf, "[)"), within("delta", asked["delta"], 0, 1, "()")
        text = f"eps={eps!r} at delta={delta!r}"
        about = functools.partial(_about, eps=eps, level=delta, options=options)
        return Target(lambda run, width: _delta(run, eps, delta, width, options), 1, delta, text, about)
    if given == {"advantage"}:
        at = within("advantage", asked["advantage"], 0, 1, "()")
        return Target(lambda run, width: risk.advantage(run, rtol=width, **options), 1, at, f"advantage={at!r}")
    if given == {"fnr", "fpr"}:
        fnr, fpr = (within(name, asked[name], 0, 1, "()") for name in ("fnr", "fpr"))
        text = f"fnr={fnr!r} at fpr={fpr!r}"
        return Target(lambda run, width: risk.tradeoff(run, fpr, **options), -1, fnr, text)
    for name, other, ask in ATTACKS:
        if given == {name, other}:
            return _attack(name, within(name, asked[name], 0, 1, "()"), other, asked[other], ask, options)
    if given == {"mu", "delta"}:
        mu, delta = within("mu", asked["mu"], 0, math.inf, "()"), within("delta", asked["delta"], 0, 1, "()")
        text = f"mu={mu!r} from delta={delta!r} on"
        return Target(lambda run, width: _mu(run, delta, width, options), 1, mu, text)
    raise DomainError(
        "the target must be eps and delta, advantage, fnr and fpr, mu and delta, reconstruction or attribute_advantage"
        " and baseline, or reidentification and records; "
        f"got {', '.join(sorted(given)) or 'none'}"
    )


def _attack(name: str, most: float, other: str, at, ask: Callable[..., Bound], options: Any) -> Target:
    sided = {key: value for key, value in options.items() if key != "direction"}
    return Target(lambda run, width: ask(run, at, **sided), 1, most, f"{name}={most!r} at {other}={at!r}")


def _delta(run, eps: float, level: float, width, options: Any) -> Bound:
    """delta(eps); far below `level`, where only slow routes would give both ends, an upper end that says so will do."""
    if width is None:
        return query.delta_or_less(run, eps, FAR * level, **options)
    return query.delta(run, eps, rtol=width, **options)


def _about(run: Run, eps: float, level: float, options: Any) -> float:
    """About log(delta(eps)/level), or any number below 0 where Chernoff's bound is; NaN where neither this nor a rough
    contour says something, or a line is quicker. Of a run between two curves the upper one's; a replaced record of
    random allocation is zeroed first, at half of eps."""
    if all_gaussian(run) or len(run.parts) > PARTS or not eps > 0:
        return math.nan
    sides = {name: options[name] for name in ("adjacency", "direction") if name in options}
    runs: tuple[Run, ...] = (run,)
    if between := enclosed(run):
        runs = between.above
    if sides.get("adjacency") == "replace_one" and any(map(allocates, runs)):
        sides, eps = {"adjacency": "zero_out"}, 0.5 * eps
    goal = math.log(level)
    found = [_chernoff(one, eps, goal, sides) for one in runs]
    if not min(found) < goal:
        found = [query.about(one, eps, goal, **sides) for one in runs]
    return min(found) - goal


def _chernoff(run: Run, eps: float, enough: float, sides: Any) -> float:
    """Chernoff's bound of log delta(eps) at orders that double, as long as it falls and is above `enough`
    [theory: line.chernoff]."""
    last = best = math.inf
    for order in ORDERS:
        t = order - 1
        with suppress(HockeystickError):
            last = t * (moments.rdp(run, order, **sides).upper - eps) + t * math.log(t) - order * math.log(order)
        if not enough < last < best:
            return min(last, best)
        best = last
    return best


def _mu(run, delta: float, width, options: Any) -> Bound:
    """mu_gdp as narrow as MU_WIDTHS, or `width`, and its deltas allow."""
    *first, last = MU_WIDTHS if width is None else (max(width, 2e-9), *MU_WIDTHS)
    for tol in first:
        try:
            return risk_gdp.mu_gdp(run, delta, tol=tol, **options)
        except AccuracyError:
            pass
    return risk_gdp.mu_gdp(run, delta, tol=last, **options)


def _range(over) -> tuple:
    if not isinstance(over, tuple | list) or len(over) != 2:
        raise DomainError(f"over must be a pair (lo, hi), got {over!r}")
    lo, hi = (real("an end of over", end, "> 0") for end in over)
    if not 0 < lo < hi < math.inf:
        raise DomainError(f"over must be (lo, hi) with 0 < lo < hi, got {over!r}")
    whole = all(isinstance(end, int) or hasattr(end, "__index__") for end in over)
    return (int(over[0]), int(over[1]), True) if whole else (lo, hi, False)


def _positive(value) -> bool:
    return isinstance(value, int | float) and 0 < value <= 1e300


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
