"""The shuffle model: n local reports, of which only the multiset is seen; the pair of one report among the others.

With e = e^eps0, beta = u/(e + 1) and u = (e + 1) TV/(e - 1) of the two laws of one report [theory: shuffle.three], that
report is 0, 1 or a star with probabilities (e beta, beta, 1 - u) under num, (beta, e beta, 1 - u) under den, and each
other report is so with (beta, beta, (1 - u)/e) at least, whatever the record. Nothing known but eps0: no star, and rate
e^-eps0 of a fair 0 or 1 [theory: shuffle.clone]. Given t zeros and ones and s stars the number of zeros has, with
pi = e s/(t (e + 1)/2 + e s) the probability that the report is a star, the excess over x = e^eps

    sum_{i >= m} num - x den = A g(m-1) - (x - 1) G(m),   A = (1 - pi)(e - x)/(e + 1) + pi (1 - x)/2,

g, G mass and upper tail of Bin(t - 1, 1/2), largest at one m [theory: shuffle.excess]. A smaller t and a smaller s/t
dominate [theory: shuffle.merge], so t and s/t are rounded down to the ends of bins.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from .bound import DomainError
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

WHOLE = {"coins": 200, "stars": 100}
"""Values within 6 standard deviations up to which each is a bin of its own."""

STEP = {"coins": 0.2, "stars": 0.125}
"""Bins, in standard deviations, where there are more; beyond 6, half a standard deviation."""

POINTS = {"coins": 1100, "stars": 400}
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
    '0.18242'
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
    mass = np.r_[down[::-1], 1, up]
    return mass / mass.sum()


def _binned(n: int, p: float, kind: str) -> Bins:
    """Bin(n, p) in bins, without at most 2 LEFT_OUT on either side. A quotient of neighbours is within 6u of itself, so
    a mass that many times its distance from the likeliest value, and their sum no more."""
    if not n or not p:
        return Bins(np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.ones(1))
    reach = math.ceil(math.sqrt(0.5 * n * DEPTH)) + 1
    low, high = max(0, int(n * p) - reach), min(n, math.ceil(n * p) + reach)
    mass = _masses(n, p, low, high)
    total = np.r_[0, np.cumsum(mass)]
    start = int(np.searchsorted(total, 0.5 * LEFT_OUT, side="right")) - 1
    end = high - low + 1 - int(np.searchsorted(np.cumsum(mass[::-1]), 0.5 * LEFT_OUT, side="right"))
    low, high, mass = low + start, low + end - 1, mass[start:end]
    mean, sd = n * p, math.sqrt(n * p * (1 - p))
    ends = np.r_[np.arange(6.0, 16.0, 0.5)[::-1] * -1, np.arange(6.0, 16.0, 0.5)]
    inner = np.arange(-6.0, 6.0, STEP[kind]) if 12 * sd > WHOLE[kind] else np.arange(-6 * sd, 6 * sd) / max(sd, 1e-300)
    first = np.unique(np.clip(np.round(mean + sd * np.r_[ends, inner]).astype(int), low, high))
    first[0] = low
    held = np.add.reduceat(mass, first - low) * (1 + 2.0**-49 * (mass.size + 8))
    return Bins(first, np.r_[first[1:] - 1, high], held)


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
    half = np.r_[1, np.cumprod((n - j) / (j + 1))]  # from the middle value, or the lower of both, on
    g = half / (2 * half[1:].sum() + (1 - n % 2))
    tail = np.cumsum(g[::-1])[::-1]
    return Coins(middle + 1, np.r_[g, 0], np.r_[tail[1:], 0, 0], (6 * g.size + 16) * U)


def _excess(eps0: float, t: int, ratio: np.ndarray, eps: np.ndarray) -> np.ndarray:
    """An upper bound of the excess over e^eps, eps >= 0, given t zeros and ones and the ratios s/t: rows by ratio. The
    best m is within 16ut of what is computed; a term on the wrong side of it is at most 32u(1 + x) g(m-1)."""
    e, x = math.exp(eps0), np.exp(eps)
    over, rise = e * -np.expm1(eps - eps0), np.expm1(eps)  # e - x and x - 1
    stars = ratio[:, None] * e
    star, report = stars / (0.5 * (e + 1) + stars), 0.5 * (e + 1) / (0.5 * (e + 1) + stars)
    coins = _coins(t)
    at = t * (e * x - 1 + stars * rise) / (math.expm1(eps0) * (1 + x))  # [theory: shuffle.excess]
    k = np.clip(np.ceil(at) - coins.first, 0, coins.g.size - 1).astype(int)
    share = report * over / (e + 1)
    less = 0.5 * star * rise
    g, loss = coins.g[k], rise * coins.tail[k]
    room = (coins.error + SLACK) * ((share + less) * g + loss) + 64 * U * (1 + x) * g
    return np.maximum((share - less) * g - loss + room, 0.0)


def _delta(rate: Rates, n: int, eps: np.ndarray) -> np.ndarray:
    """Upper bounds of delta at 0 <= eps < eps0 of the pair of one round."""
    total = np.zeros(eps.size)
    share = min(rate.star / (1 - rate.coin), 1 - 2.0**-40) * (1 - 2.0**-40) if rate.star else 0.0
    for first, last, mass in zip(*_binned(n - 1, rate.coin, "coins"), strict=True):
        stars = _binned(n - 1 - int(last), share, "stars")
        for own, chance in ((0, rate.u), (1, 1 - rate.u)):  # of a report that is no star, or one
            low, high = max(int(first) + 1 - own, 1), int(last) + 1 - own  # [theory: shuffle.merge]
            if chance > 0 and high:  # without zeros and ones nothing is seen of the report
                total += mass * chance * (stars.mass @ _excess(rate.eps0, low, (stars.first + own) / high, eps))
    return np.minimum(total * (1 + SLACK) + 8 * LEFT_OUT, 1.0)


def _plan(rate: Rates, n: int) -> np.ndarray:
    """Where the curve of one round is asked: log delta is about -d^2 for evenly spread d. Estimates from average
    counts, and from rarer ones that hide less."""
    eps = rate.eps0 * np.r_[0.0, np.geomspace(1e-8, 1.0 - 1e-12, 400)]
    rough = np.zeros(eps.size)
    for z in range(0, 13, 2):
        t, s = ((n - 1) * p - z * math.sqrt((n - 1) * p * (1 - p)) for p in (rate.coin, rate.star))
        t = 1 + max(int(t), 0)
        rough += math.exp(-z * z / 2) * _excess(rate.eps0, t, np.array([max(s, 0.0) / t]), eps)[0]
    held = rough > 1e-38
    depth = np.sqrt(-np.log(np.minimum(rough[held], 1 - 1e-9)))
    points = POINTS["stars" if rate.star else "coins"]
    end = min(1.1 * float(eps[held][-1]), rate.eps0 * (1 - 1e-12))
    return np.unique(np.r_[np.interp(np.linspace(depth[0], depth[-1], points), depth, eps[held]), 0.0, end])


@functools.lru_cache(32)
def curve(step: Shuffled) -> FromCurve:
    """The worst pair below points above the curve of one round, its own mirror image; nothing is above eps0."""
    rate = rates(step)
    if not rate.eps0:
        return FromCurve((0.0,), (0.0,), True)
    eps = _plan(rate, step.n)
    delta = np.minimum.accumulate(_delta(rate, step.n, eps))
    return FromCurve((*eps.tolist(), rate.eps0), (*delta.tolist(), 0.0), True)
