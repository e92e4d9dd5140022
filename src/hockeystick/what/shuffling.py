"""The shuffle model: n local reports, of which only the multiset is seen; the pair of one report among the others.

With e = e^eps0, beta = u/(e + 1) and u = (e + 1) TV/(e - 1) of the two laws of one report [theory: shuffle.three], that
report is 0, 1 or a star with probabilities (e beta, beta, 1 - u) under num, (beta, e beta, 1 - u) under den, and each
other report is so with (beta, beta, (1 - u)/e) at least, whatever the record. Nothing known but eps0: no star, and rate
e^-eps0 of a fair 0 or 1 [theory: shuffle.clone]. Given t zeros and ones and s stars the number of zeros has, with
pi = e s/(t (e + 1)/2 + e s) the probability that the report is a star, the excess over x = e^eps

    sum_{i >= m} num - x den = A g(m-1) - (x - 1) G(m),   A = (1 - pi)(e - x)/(e + 1) + pi (1 - x)/2,

g, G mass and upper tail of Bin(t - 1, 1/2), largest at one m [theory: shuffle.excess]. A smaller t and a smaller s/t
dominate [theory: shuffle.merge], so t is rounded down to the ends of bins; over s, chords bound the mean
[theory: shuffle.chords].
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ..bound import DomainError
from .discrete import ApproxDP, KAryRandomizedResponse
from .given import FromCurve
from .loss import U
from .mechanism import Mechanism, count

if TYPE_CHECKING:
    from typing import Literal

N_MAX, EPS0_MAX = 10**9, 20.0
"""Beyond this eps0 shuffling hides next to nothing."""

LEFT_OUT = 1e-40
"""Probability left out of every binomial law, and so about the least delta that is resolved."""

DEPTH = 93.0
"""-log of less than LEFT_OUT: by Hoeffding's inequality n trials leave [mean - y, mean + y], y^2 = n DEPTH/2, with
it."""

WHOLE, STEP = 200, 0.2
"""Zeros and ones within 6 standard deviations up to which each number is a bin of its own, and bins of them, in
standard deviations, where there are more; beyond 6, one."""

JOINED = 0.08
"""Numbers of stars at which the excess is computed: so far apart that the best m moves by as much, in standard
deviations of twice the zeros, but no farther than a standard deviation of the stars."""

RESOLVED, LAST = 1e-38, 1 - 1e-12
"""The curve is followed down to this delta, or to this part of eps0."""

LEAST = 1e-12
"""Below this eps0 the report is charged as if it were seen: masses of so small losses are lost in a double."""

POINTS = {"coins": 1100, "stars": 320}
SLACK = 1e-11


@dataclass(frozen=True, slots=True)
class Shuffled(Mechanism):
    """One round of shuffled reports; see `shuffled`."""

    local: Mechanism
    n: int
    bound: str
    sized: ClassVar[bool] = True


def shuffled(local: Mechanism, n: int, *, bound: Literal["clone", "stronger_clone"] = "clone") -> Shuffled:
    """`n` users' reports, each randomised on its own by `local` and then shuffled, so that only the multiset is seen.

    All users run one randomiser in a round. Rounds with fresh randomness, of randomisers chosen after seeing the rounds
    before, compose, with each other and with anything: ``hs.shuffled(local, n) * rounds``. n is public, and the user
    must be anonymous in every round.

    Parameters
    ----------
    local : Mechanism
        `pure_dp(eps0)`: any eps0-DP randomiser; `k_ary_randomized_response(eps0, k)`: that one, all users alike, by
        what is known of it (k = 2: exactly as if all other reports were spread over two answers).
    n : int
        Number of reports, 1 to 1e9.
    bound : "clone" or "stronger_clone"
        For `pure_dp`: what is charged. "clone" is proved in docs/theory/shuffling.md; "stronger_clone" is smaller and
        rests on the proof of [FMT23, Thm 3.2] alone.

    Returns
    -------
    Shuffled
        A step for all queries under "replace_one", and under "zero_out" where `pure_dp` holds for the record that
        contributes nothing. It is charged as a pair that dominates the round, above that of the bound by about 1e-4 of
        eps, 1e-3 for k-ary answers: upper ends hold for the mechanism, lower ends are those of the pair charged. Deltas
        below about 1e-39 are not resolved.

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    References
    ----------
    [FMT21] for the clones; docs/theory/shuffling.md for the proofs and for k-ary answers.

    Examples
    --------
    >>> import hockeystick as hs
    >>> local = hs.pure_dp(1.0)
    >>> f"{hs.epsilon(hs.shuffled(local, 1000), 1e-6, adjacency='replace_one').upper:.5f}"
    '0.18241'
    >>> answers = hs.shuffled(hs.k_ary_randomized_response(1.0, 10), 10**6)
    >>> hs.epsilon(answers * 10, 1e-6, adjacency="replace_one").upper < 0.03
    True
    """
    if not isinstance(local, ApproxDP | KAryRandomizedResponse) or (isinstance(local, ApproxDP) and local.delta0):
        raise DomainError(f"local must be pure_dp(eps0) or k_ary_randomized_response(eps0, k), got {local!r}")
    if bound not in ("clone", "stronger_clone"):
        raise DomainError(f'bound must be "clone" or "stronger_clone", got {bound!r}')
    if not local.eps0 <= EPS0_MAX:
        raise DomainError(f"eps0 of local must be at most {EPS0_MAX:g}, got {local.eps0!r}: charge local itself")
    return Shuffled(local, count("n", n, 1, N_MAX), bound)


class Rates(NamedTuple):
    """Of a report of anyone else: `coin`, the rate of a fair 0 or 1; `star`. Of the report itself: `u`, that it is no
    star. Rates are rounded down, u up or not at all; eps0 as given."""

    eps0: float
    coin: float
    star: float
    u: float


def rates(step: Shuffled) -> Rates:
    """The rates of a step."""
    assert isinstance(step.local, ApproxDP | KAryRandomizedResponse)
    eps0 = step.local.eps0
    e, down = math.exp(eps0), 1 - 2.0**-48
    if isinstance(step.local, KAryRandomizedResponse):
        k = step.local.k  # [theory: shuffle.three]
        return Rates(eps0, 2 / (e + k - 1) * down, (k - 2) / (e * (e + k - 1)) * down, (e + 1) / (e + k - 1))
    if step.bound == "clone":  # [theory: shuffle.clone]
        return Rates(eps0, 1 / e * down, 0.0, 1.0)
    return Rates(eps0, 2 / (e + 1) * down, 0.0, 1.0)


class Bins(NamedTuple):
    """Values of an integer law in bins: their first and last values and probabilities, at least the true ones."""

    first: np.ndarray
    last: np.ndarray
    mass: np.ndarray


def _masses(n: int, p: float, low: int, high: int) -> np.ndarray:
    """Bin(n, p) on low..high, scaled to sum to 1 there: quotients of neighbours, multiplied from the likeliest value
    on."""
    mode = min(max(int((n + 1) * p), low), high)
    odds = p / (1 - p)
    j = np.arange(mode, high, dtype=float)
    up = np.cumprod((n - j) / (j + 1) * odds)
    j = np.arange(mode, low, -1, dtype=float)
    down = np.cumprod(j / (n - j + 1) / odds)
    mass = np.concatenate([down[::-1], [1.0], up])
    return mass / mass.sum()


def _law(n: int, p: float) -> tuple[int, np.ndarray]:
    """Bin(n, p) from a least value on, without at most 2 LEFT_OUT on either side. A quotient of neighbours is within 6u
    of itself, so a mass that many times its distance from the likeliest value, and their sum no more."""
    if not n or not p:
        return 0, np.ones(1)
    reach = math.ceil(math.sqrt(0.5 * n * DEPTH)) + 1
    low, high = max(0, int(n * p) - reach), min(n, math.ceil(n * p) + reach)
    mass = _masses(n, p, low, high)
    start = int(np.searchsorted(np.cumsum(mass), 0.5 * LEFT_OUT, side="right"))
    end = mass.size - int(np.searchsorted(np.cumsum(mass[::-1]), 0.5 * LEFT_OUT, side="right"))
    return low + start, mass[start:end] * (1 + 2.0**-49 * (mass.size + 8))


def _ends(n: int, p: float, low: int, size: int, deviations: np.ndarray) -> np.ndarray:
    """Values of Bin(n, p) on low..low+size-1 at these standard deviations from its mean, and both ends."""
    at = np.round(n * p + math.sqrt(n * p * (1 - p)) * deviations)
    return np.unique(np.clip(np.concatenate([[low], at, [low + size - 1]]), low, low + size - 1).astype(int))


def _binned(n: int, p: float) -> Bins:
    """Bin(n, p) in bins."""
    low, mass = _law(n, p)
    if mass.size == 1:
        return Bins(np.array([low]), np.array([low]), mass)
    sd, outer = math.sqrt(n * p * (1 - p)), np.arange(6.0, 16.0)
    inner = np.arange(-6.0, 6.0, STEP if 12 * sd > WHOLE else 1 / sd)
    first = _ends(n, p, low, mass.size, np.concatenate([-outer[::-1], inner, outer]))
    return Bins(first, np.r_[first[1:] - 1, low + mass.size - 1], np.add.reduceat(mass, first - low))


class Coins(NamedTuple):
    """Bin(t - 1, 1/2) from its middle on: g(m-1) and G(m) for m = first, first + 1, ...; the last pair, 0, stands for
    all beyond, where G is at most LEFT_OUT. Relative error of both."""

    first: int
    g: np.ndarray
    tail: np.ndarray
    error: float


def _coins(t: int) -> Coins:
    """Half of a symmetric law from its middle on; what is left out makes g larger and G no larger by more than that."""
    n = t - 1
    reach = math.ceil(math.sqrt(0.5 * max(n, 1) * DEPTH)) + 1
    middle = n // 2
    j = np.arange(middle, min(n, middle + reach), dtype=float)
    half = np.append(1.0, np.cumprod((n - j) / (j + 1)))  # from the middle value, or the lower of both, on
    g = half / (2 * half[1:].sum() + (1 - n % 2))
    tail = np.cumsum(g[::-1])[::-1]
    return Coins(middle + 1, np.append(g, 0.0), np.append(tail[1:], [0.0, 0.0]), (6 * g.size + 16) * U)


def _excess_upper(eps0: float, t: int, ratio: np.ndarray, eps: np.ndarray) -> np.ndarray:
    """An upper bound of the excess over e^eps, eps >= 0, given t zeros and ones and the ratios s/t, times (e + 1)/2 +
    e s/t: rows by ratio. The best m is within 16ut of what is computed, below 1; a term on the wrong side of it is at
    most 32u(e - 1)(1 + x) g(m-1)."""
    e, x = math.exp(eps0), np.exp(eps)
    over, rise = e * -np.expm1(eps - eps0), np.expm1(eps)  # e - x and x - 1
    stars = e * ratio[:, None]
    whole = 0.5 * (e + 1) + stars
    coins = _coins(t)
    at = t * (np.expm1(eps0 + eps) + stars * rise) / (math.expm1(eps0) * (1 + x))  # [theory: shuffle.excess]
    k = np.clip(np.ceil(at) - coins.first, 0, coins.g.size - 1).astype(int)
    g, loss = coins.g[k], rise * whole * coins.tail[k]
    gain, less = 0.5 * over * g, 0.5 * stars * rise * g
    room = (coins.error + SLACK) * (gain + less + loss) + 64 * U * math.expm1(eps0) * (1 + x) * g
    return np.maximum(gain - less - loss + room, 0.0)


class Stars(NamedTuple):
    """Bin(n, p) on low, low + 1, ..., and some of these values, both ends among them, with the place of the last one up
    to each value."""

    low: int
    mass: np.ndarray
    nodes: np.ndarray
    place: np.ndarray

    def joined(self, own: int, high: int, e: float) -> tuple[np.ndarray, np.ndarray]:
        """Ratios (own + s)/high at the nodes, and weights such that the sum of weighted bounds of `_excess` there is
        above the mean excess [theory: shuffle.chords]."""
        values = np.arange(self.low, self.low + self.mass.size)
        weight = self.mass / (0.5 * (e + 1) + e / high * (values + own))
        ratio = (self.nodes + own) / high
        if ratio.size == 1:
            return ratio, weight
        part = weight * ((values - self.nodes[self.place]) / np.diff(self.nodes)[self.place])
        far = np.add.reduceat(part, self.nodes[:-1] - self.low)
        out = np.zeros(ratio.size)
        out[:-1] = np.add.reduceat(weight, self.nodes[:-1] - self.low) - far
        out[1:] += far
        return ratio, out


def _stars(n: int, p: float, t: int, eps0: float, eps: float) -> Stars:
    """Bin(n, p) with nodes that will do beside about t zeros and ones for eps up to this."""
    low, mass = _law(n, p)
    if mass.size == 1:
        return Stars(low, mass, np.array([low]), np.zeros(1, dtype=int))
    sd = math.sqrt(n * p * (1 - p))
    share = math.expm1(eps) / (-math.expm1(-eps0) * (1 + math.exp(eps)))
    moved = share * sd / math.sqrt(t)  # the best m, in deviations of twice the zeros
    nodes = _ends(n, p, low, mass.size, np.arange(-16.0, 16.0, min(1.0, max(JOINED / max(moved, JOINED), 1 / sd))))
    wide = np.diff(nodes)
    wide[-1] += 1
    return Stars(low, mass, nodes, np.repeat(np.arange(wide.size), wide))


def _delta_upper(rate: Rates, n: int, eps: np.ndarray) -> np.ndarray:
    """Upper bounds of delta at 0 <= eps < eps0 of the pair of one round."""
    total, e = np.zeros(eps.size), math.exp(rate.eps0)
    share = min(rate.star / (1 - rate.coin), 1 - 2.0**-40) * (1 - 2.0**-40) if rate.star else 0.0
    for first, last, mass in zip(*_binned(n - 1, rate.coin), strict=True):
        stars = _stars(n - 1 - int(last), share, int(last) + 1, rate.eps0, float(eps[-1]))
        for own, chance in ((0, rate.u), (1, 1 - rate.u)):  # of a report that is no star, or one
            low, high = max(int(first) + 1 - own, 1), int(last) + 1 - own  # [theory: shuffle.merge]
            if chance > 0 and high:  # without zeros and ones nothing is seen of the report
                ratio, weight = stars.joined(own, high, e)
                total += mass * chance * (weight @ _excess_upper(rate.eps0, low, ratio, eps))
    return np.minimum(total * (1 + SLACK) + 8 * LEFT_OUT, 1.0)


def _plan(rate: Rates, n: int) -> np.ndarray:
    """Where the curve of one round is asked: log delta is about -d^2 for evenly spread d. Estimates from average
    counts, and from rarer ones that hide less."""
    eps = rate.eps0 * np.r_[0.0, np.geomspace(1e-8, LAST, 400)]
    rough = np.zeros(eps.size)
    e, away = math.exp(rate.eps0), np.arange(0.0, 13.0, 2.0)
    coins, stars = ((n - 1) * p - away * math.sqrt((n - 1) * p * (1 - p)) for p in (rate.coin, rate.star))
    for z, t in zip(away, 1 + np.maximum(coins.astype(int), 0), strict=True):
        ratio = np.maximum(stars, 0.0) / t
        chance = np.exp(-0.5 * (z * z + away * away)) / (0.5 * (e + 1) + e * ratio)
        rough += chance @ _excess_upper(rate.eps0, int(t), ratio, eps)
    held = rough > RESOLVED
    depth = np.sqrt(-np.log(np.minimum(rough[held], 1 - 1e-9)))
    points = POINTS["stars" if rate.star else "coins"]
    end = min(1.1 * float(eps[held].max(initial=eps[1])), LAST * rate.eps0)
    spread = np.interp(np.linspace(depth[0], depth[-1], points), depth, eps[held])
    return np.unique(np.r_[spread, np.linspace(0.0, end, points // 8)])  # also where few counts are all there are


@functools.lru_cache(32)
def curve(step: Shuffled) -> FromCurve:
    """The worst pair below points above the curve of one round, its own mirror image; nothing is above eps0."""
    rate = rates(step)
    if rate.eps0 < LEAST:
        return FromCurve((rate.eps0,), (0.0,), True)
    eps = _plan(rate, step.n)
    delta = _delta_upper(rate, step.n, eps)
    while delta[-1] > RESOLVED and eps[-1] < LAST * rate.eps0:
        more = np.geomspace(eps[-1], min(2 * eps[-1], LAST * rate.eps0), POINTS["stars"] // 4)[1:]
        eps, delta = np.r_[eps, more], np.r_[delta, _delta_upper(rate, step.n, more)]
    delta = np.minimum.accumulate(delta)
    return FromCurve((*eps.tolist(), rate.eps0), (*delta.tolist(), 0.0), True)
