"""Attack risk read off the privacy curve: trade-off curve, advantage, Bayes risk, posterior belief.

Everything follows from certified deltas. With x = e^eps, delta(x) = sup_S num(S) - x den(S) is convex and does not
increase; p(x) = den[L > eps] is minus its slope and delta + x p = num[L > eps]. A test of false positive rate a has

    tpr(a) = min_x delta(x) + a x,        fnr(a) = 1 - tpr(a) = max_x 1 - delta(x) - a x.

Every x bounds tpr from above. From below, a convex curve lies above its chords prolonged: between certified points
x1 < x2 above the chords of (x0, x1) and of (x2, x3). Both ends meet to second order in the distance of the points, which
is driven down until rounding and the width of the deltas stop it. No density, atom or derivative is needed, so the
bounds hold for every loss, with or without atoms [DRS22, Prop. 2.13 for the duality].
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from . import query
from .bound import Bound, Budget, DomainError
from .mechanism import real

U = 2.0**-53
EPS_MAX = 690.0
"""Largest eps whose x = e^eps is used: a double still holds it, with room for a product."""

ROUNDS = 40
GOOD_ENOUGH = 1e-9
"""Relative width at which the rounds stop; the curve's own certificates are rarely narrower than a tenth of it."""

_REVERSE = {"remove": "add", "add": "remove"}


class _Nodes(NamedTuple):
    """Four certified points of a curve, eps rising: delta(x_dn) >= low, delta(x_up) <= high. x_dn and x_up enclose e^eps."""

    eps: tuple[float, ...]
    x_dn: tuple[float, ...]
    x_up: tuple[float, ...]
    low: tuple[float, ...]
    mid: tuple[float, ...]
    high: tuple[float, ...]


def advantage(run, **options) -> Bound:
    """Largest tpr - fpr of a membership attack, which is delta(0), the total variation distance.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    adjacency, direction, route, rtol, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.advantage(hs.gaussian(1.0))
    >>> b.lower <= 0.3829249225480263 <= b.upper
    True
    """
    return query.delta(run, 0.0, **options)


def tradeoff(run, fpr, *, direction="both", **options) -> Bound:
    """Smallest false negative rate of an attack whose false positive rate is at most `fpr`.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    fpr : float or array_like
        In (0, 1).
    direction : "both", "remove" or "add"
        "remove": a false negative misses a record that is there. "both": the smaller of the two.
    adjacency, route, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified bounds of fnr, of the shape of `fpr`. Near 1 a double cannot show the distance to 1: there
        `true_positive_rate` has the digits. `budget`: what the width of the deltas and the distance of the points leave.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`.

    References
    ----------
    [DRS22] for the curve; the head of risk.py for the proof.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.tradeoff(hs.gaussian(1.0), 0.05)     # exactly Phi(Phi^-1(0.95) - 1)
    >>> b.lower <= 0.7404889771585559 <= b.upper and b.upper - b.lower < 1e-9
    True
    """
    return _rates(run, fpr, direction, options, 1)


def true_positive_rate(run, fpr, *, direction="both", **options) -> Bound:
    """Largest true positive rate of an attack of false positive rate at most `fpr`: 1 - `tradeoff`, with relative accuracy.

    Parameters, errors and guarantees are those of `tradeoff`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.true_positive_rate(hs.gaussian(1.0), 1e-8)
    >>> b.lower <= 1.99405303596551322e-06 <= b.upper and b.upper < b.lower * (1 + 1e-7)
    True
    """
    return _rates(run, fpr, direction, options, 0)


def bayes_risk(run, prior, *, direction="both", **options) -> Bound:
    """Error probability of the best guess whether the record is there, if it is with probability `prior`.

    prior (1 - delta(log((1 - prior)/prior))), through the reverse curve where prior > 1/2. Never above
    min(prior, 1 - prior), the risk of an attacker who sees nothing.

    Parameters
    ----------
    prior : float
        In (0, 1): probability of the law that is num in `direction`. "both": the smaller risk of the two.
    run, adjacency, route, rtol, n_threads
        As in `delta`.

    Returns
    -------
    Bound
        Certified.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.bayes_risk(hs.gaussian(1.0), 0.5)
    >>> b.lower <= (1 - 0.3829249225480263) / 2 <= b.upper
    True
    """
    pi = _open("prior", prior)
    odds = min(pi, 1 - pi)  # 1 - pi is exact where it is the smaller
    eps = math.log1p(-odds) - math.log(odds)
    slack = 8 * U * (1 + abs(eps))
    found = []
    for side in _directions(direction):
        asked = side if pi <= 0.5 else _REVERSE[side]
        low, high = (
            query.delta(run, eps + slack, direction=asked, **options),
            query.delta(run, eps - slack, direction=asked, **options),
        )
        ends = [odds * (1 - end) for end in (high.upper, 0.5 * (low.estimate + high.estimate), low.lower)]
        found.append((ends[0] * (1 - 4 * U), ends[1], min(ends[2] * (1 + 4 * U), odds), low))
    low, mid, high = (min(each[i] for each in found) for i in range(3))
    return Bound(low, mid, high, found[0][3].route, True, found[0][3].budget)


def posterior(run, prior, *, tail, direction="both", **options) -> Bound:
    """The belief that an attacker's posterior exceeds with probability at most `tail`.

    prior e^L / (1 - prior + prior e^L) at the loss L that num exceeds with probability `tail`: an attacker who holds the
    record for present with probability `prior` believes it with more than this after seeing the output of a run with the
    record, with probability at most `tail`.

    Parameters
    ----------
    prior : float
        In (0, 1).
    tail : float
        In (0, 1).
    run, adjacency, direction, route, n_threads
        As in `delta`; "both" is the larger belief.

    Returns
    -------
    Bound
        Certified.

    Raises
    ------
    DomainError, AccuracyError
        As in `delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.posterior(hs.gaussian(1.0), 0.5, tail=0.5)     # the loss is N(1/2, 1): its median is 1/2
    >>> b.lower <= 0.6224593312018546 <= b.upper and b.upper - b.lower < 1e-6
    True
    """
    pi, tau = _open("prior", prior), _open("tail", tail)
    logit = math.log(pi) - math.log1p(-pi)
    ends: list[tuple[float, float, float]] = []
    routes: set[str] = set()
    for side in _directions(direction):
        low, high = -math.inf, math.inf
        for nodes in _Curve(run, side, options, routes).rounds(tau, dual=True):
            for i in range(3):
                share = [_chord(nodes, i, worse) for worse in (False, True)]  # x p between the two points
                if nodes.low[i] + share[0] * nodes.x_dn[i] > tau * (1 + 8 * U):
                    low = max(low, nodes.eps[i])
                if nodes.high[i + 1] + share[1] * nodes.x_up[i + 1] < tau * (1 - 8 * U):
                    high = min(high, nodes.eps[i + 1])
            if high - low <= 1e-8:
                break
        ends.append((low, 0.5 * (low + high) if math.isfinite(low + high) else max(low, 0.0), high))
    low, mid, high = (max(end[i] for end in ends) for i in range(3))
    slack = 8 * U * (1 + abs(logit))
    return Bound(
        _logistic(low + logit - slack) * (1 - 8 * U),
        _logistic(mid + logit),
        min(1.0, _logistic(high + logit + slack) * (1 + 8 * U)),
        "+".join(sorted(routes)),
        True,
        Budget({"loss": high - low}, "eps"),
    )


class _Curve:
    """The privacy curve of a run in one direction, asked at four points at a time."""

    def __init__(self, run, direction: str, options: dict, routes: set[str]):
        self.ask = lambda eps: query.delta(run, eps, direction=direction, **options)
        self.routes = routes
        # The Gaussian curve of the same advantage: where the search starts and how far apart its points are.
        adv = min(max(self.ask(0.0).estimate, 1e-12), 1 - 1e-15)
        self.mu = 2 * _normal_quantile(0.5 * (1 + adv))

    def nodes(self, centre: float, h: float) -> _Nodes:
        eps = [centre + h * step for step in (-1.5, -0.5, 0.5, 1.5)]
        bound = self.ask(np.array(eps))
        self.routes.update(bound.route.split("+"))
        x = [math.exp(e) for e in eps]
        ends = (bound.lower, bound.estimate, bound.upper)
        dn, up = tuple(v * (1 - 4 * U) for v in x), tuple(v * (1 + 4 * U) for v in x)
        return _Nodes(tuple(eps), dn, up, *(tuple(map(float, end)) for end in ends))

    def rounds(self, level: float, dual: bool):
        """Ever closer nodes around the eps where p = level, or where num[L > eps] = level with `dual`.

        A chord's slope is the mean of p over its cell, so it says on which side of one of its ends the wanted eps lies:
        these ends bracket it. Inside the bracket the next centre is read off the slopes in the middle of the cells.
        """
        z = _normal_quantile(level)
        centre = self.mu * (self.mu / 2 if dual else -self.mu / 2) - self.mu * z
        h = min(0.3 * self.mu, 0.5)
        below, above = -EPS_MAX, EPS_MAX
        for _ in range(ROUNDS):
            centre = min(max(centre, -EPS_MAX + 2 * h), EPS_MAX - 2 * h)
            nodes = self.nodes(centre, h)
            yield nodes
            middles = []
            for i in range(3):
                p = (nodes.mid[i] - nodes.mid[i + 1]) / (nodes.x_dn[i + 1] - nodes.x_dn[i])
                tails = [nodes.mid[j] + nodes.x_dn[j] * p if dual else p for j in (i, i + 1)]
                if tails[0] > level:
                    below = max(below, nodes.eps[i])
                if tails[1] <= level:
                    above = min(above, nodes.eps[i + 1])
                value = 0.5 * (tails[0] + tails[1])
                middles.append((0.5 * (nodes.eps[i] + nodes.eps[i + 1]), math.log(value / level) if value > 0 else -math.inf))
            guess, inside = _zero(middles, 8 * h)
            room = above - below
            if room <= 1e-9 * (1 + abs(centre)):
                return
            h = h * (0.1 if abs(guess - centre) < 0.3 * h else 0.3) if inside else min(2 * h, 0.5, room / 3)
            both = below > -EPS_MAX and above < EPS_MAX
            centre = 0.5 * (below + above) if both and not below < guess < above else guess


def _zero(points: list[tuple[float, float]], reach: float) -> tuple[float, bool]:
    """The zero of a decreasing function given at three points, and whether it lies between two of them; else a step that way,
    at most `reach`."""
    for (a, fa), (b, fb) in itertools.pairwise(points):
        if fa > 0 >= fb:
            return (a + (b - a) * fa / (fa - fb) if math.isfinite(fb) else 0.5 * (a + b)), True
    (a, fa), (b, fb) = points[1:] if points[0][1] > 0 else points[:2]
    away = reach if points[0][1] > 0 else -reach
    slope = (fb - fa) / (b - a) if math.isfinite(fa) and math.isfinite(fb) else 0.0
    step = -fb / slope if slope < 0 else away
    return b + (step if abs(step) < reach else away), False


def _rates(run, fpr, direction: str, options: dict, which: int) -> Bound:
    """Bounds of (tpr, fnr)[which] at every fpr."""
    if "rtol" in options:
        raise DomainError("rtol is not an option here; the bounds are as narrow as the deltas allow")
    rates = np.asarray(fpr)
    if rates.dtype.kind not in "fiu":
        raise DomainError(f"fpr must be in (0, 1), got {fpr!r}")
    flat = [_open("fpr", a) for a in rates.ravel().tolist()]
    routes: set[str] = set()
    rows = []
    for a in flat:
        sides = [_point(run, side, options, a, routes) for side in _directions(direction)]  # (tpr low, high, fnr low, high)
        tpr, fnr = (max(s[0] for s in sides), max(s[1] for s in sides)), (min(s[2] for s in sides), min(s[3] for s in sides))
        low, high = (tpr, fnr)[which]
        rows.append((low, 0.5 * (low + high), high))
    ends = [np.array([row[i] for row in rows]).reshape(rates.shape) for i in range(3)]
    gap = ends[2] - ends[0]
    if rates.ndim == 0:
        ends, gap = [float(end) for end in ends], float(gap)
    return Bound(*ends, "+".join(sorted(routes)), True, Budget({"chords": gap}, "rate"))


def _point(run, side: str, options: dict, a: float, routes: set[str]) -> tuple[float, float, float, float]:
    """(tpr lower, tpr upper, fnr lower, fnr upper) at fpr a in one direction.

    Where the threshold lies below 0 (a large), fnr is the small number. It is the fpr of the reverse test whose tpr is
    1 - a, so that fnr = max_x (1 - a - delta_rev(x)) / x, and f bounds it from above if delta_rev(x) + f x >= 1 - a for
    all x: both are read off the points of the reverse curve, and a delta near 1 is never subtracted from 1.
    """
    curve = _Curve(run, side, options, routes)
    if a <= 0.5 * math.erfc(curve.mu / math.sqrt(8)):
        low, high = a, 1.0
        for nodes in curve.rounds(a, dual=False):
            low = max(low, _tpr_lower(nodes, a))
            high = min(high, *((d + a * x) * (1 + 4 * U) for d, x in zip(nodes.high, nodes.x_up, strict=True)))
            if high - low <= GOOD_ENOUGH * min(high, 1 - high):
                break
        return low, high, _one_minus(high, -1), _one_minus(low, 1)
    curve = _Curve(run, _REVERSE[side], options, routes)
    tpr_low, tpr_high = _one_minus(a, -1), _one_minus(a, 1)
    low, high = 0.0, tpr_high
    for nodes in curve.rounds(1 - a, dual=True):
        low = max(low, *((tpr_low - d) * (1 - 4 * U) / x for d, x in zip(nodes.high, nodes.x_up, strict=True)))
        high = min(high, _fpr_upper(nodes, tpr_high, low))
        if high - low <= GOOD_ENOUGH * high:
            break
    return _one_minus(high, -1), _one_minus(low, 1), low, high


def _fpr_upper(nodes: _Nodes, tpr: float, start: float) -> float:
    """An upper bound of max_x (tpr - delta(x)) / x: an f with delta(x) + f x >= tpr for all x > 0."""
    # Where delta(x) >= tpr, smaller x add nothing and larger ones at most tpr / x.
    best = min([tpr] + [tpr / x * (1 + 4 * U) for d, x in zip(nodes.low, nodes.x_dn, strict=True) if d >= tpr])
    f = start
    for _ in range(8):
        short = tpr - _tpr_lower(nodes, f)
        if short <= 0:
            return min(best, f)
        f += (short * (1 + 1e-6) + 16 * U * tpr) / nodes.x_dn[1]
    return best


def _tpr_lower(nodes: _Nodes, a: float) -> float:
    """A lower bound of delta(x) + a x over all x > 0 (head of the file); a, which no tpr is below, if the points lie wrong."""
    x, low, high, xu = nodes.x_dn, nodes.low, nodes.high, nodes.x_up
    parts = [low[i] + a * x[i] for i in range(4)]

    def right(i: int, j: int, at: float) -> float:  # chord (i, j) prolonged to at >= x[j]
        r = (at - x[j]) / (x[j] - xu[i])
        return low[j] + (low[j] - high[i]) * r + a * at - 8 * U * (low[j] + abs(low[j] - high[i]) * r)

    def left(i: int, j: int, at: float) -> float:  # chord (i, j) prolonged to at <= x[i]
        r = (x[i] - at) / (xu[j] - x[i])
        return low[i] + (low[i] - high[j]) * r + a * at - 8 * U * (low[i] + abs(low[i] - high[j]) * r)

    if (low[3] - high[2]) / (x[3] - xu[2]) * (1 + 8 * U) + a < 0:
        return a  # nothing bounds the curve beyond the last point
    parts += [left(0, 1, 0.0), left(1, 2, x[0]), right(1, 2, x[3])]
    # Between the inner points the curve is above both prolonged chords, hence above each of their mixtures; the flat one.
    down = (low[1] - high[0]) / (x[1] - xu[0]) + a
    up = (high[3] - low[2]) / (xu[3] - x[2]) + a
    mix = min(max(up / (up - down), 0.0), 1.0) if up > down else 0.5
    for at in (x[1], x[2]):
        parts.append(mix * right(0, 1, at) + (1 - mix) * left(2, 3, at))
    return max(a, min(parts) * (1 - 16 * U))


def _chord(nodes: _Nodes, i: int, worse: bool) -> float:
    """p between the points i and i+1: at least what the chord's slope says at the left point, at most that at the right."""
    if worse:
        return max(0.0, nodes.high[i] - nodes.low[i + 1]) / (nodes.x_dn[i + 1] - nodes.x_up[i]) * (1 + 8 * U)
    return max(0.0, nodes.low[i] - nodes.high[i + 1]) / (nodes.x_up[i + 1] - nodes.x_dn[i]) * (1 - 8 * U)


def _one_minus(value: float, toward: int) -> float:
    """1 - value, rounded up (toward = 1) or down."""
    exact = 1.0 - value
    return min(max(math.nextafter(exact, math.inf * toward), 0.0), 1.0)


def _directions(direction: str) -> tuple[str, ...]:
    query._one_of("direction", direction, query.DIRECTIONS)
    return ("remove", "add") if direction == "both" else (direction,)


def _open(name: str, value) -> float:
    number = real(name, value, "in (0, 1)")
    if not 0 < number < 1:
        raise DomainError(f"{name} must be in (0, 1), got {value!r}")
    return number


def _logistic(t: float) -> float:
    return 1 / (1 + math.exp(-t)) if t >= -EPS_MAX else 0.0


def _normal_quantile(p: float) -> float:
    """About the p-quantile of N(0, 1): a starting point, nothing more."""
    q, lo, hi = min(p, 1 - p), -38.0, 0.0
    for _ in range(40):
        middle = 0.5 * (lo + hi)
        lo, hi = (middle, hi) if 0.5 * math.erfc(-middle / math.sqrt(2)) < q else (lo, middle)
    return lo if p < 0.5 else -lo
