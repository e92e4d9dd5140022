"""Route `jumps`: few records sampled, delta far below the chance of one. A few distinct steps, also public mixtures of
two-sided branches: where one rare large loss makes nearly all of the curve, the expansion of csrc/line/jumps.c, else,
of one distinct step, the line through the law below a cut (csrc/line/bulk_line.c). Below, bounds which both leave.

Symbols. Steps i with count k_i, losses L = log(1+U) under num (REMOVE), U = q (e^v - 1) at x, v = m x - m^2/2; S their
sum, R the sum of all but one. p(a) >= sum k P(L > a). delta_1(e) = sum k (delta of one step at e), in closed form
(contour.single_point). lf(u) = u log u - (1+u) log1p u = -u log1p(1/u) - log1p u. K(b, u) >= sum k E[e^{uL} - 1; L <=
b].

Upper end. With levels a_0 < ... < a_n = eps - s, by the place of one loss above a_0, if there is any
  [theory: small.jumps]: delta(eps) <= e^{lf(u) - u eps + K(a_0, u)} + sum_r p(a_r) T(eps - a_{r+1}) + delta_1(eps - s)
  + p(a_n) T(s),
  P(R > s) <= T(s) = p(b) + e^{-us + K(b, u)}                                   for all u, s, b > 0.
  The first term is Chernoff's on {all L <= a_0} [(1-e^-x)_+ <= e^{lf(u) + ux}]; a loss in (a_r, a_{r+1}] needs R > eps
  - a_{r+1}; one above a_n has R <= s, where (1 - e^{eps-L-R})_+ is that of the step alone at eps - s, or R > s.
K. E[e^{uL}-1; L <= b] <= int_{L <= b} w (e^E - 1 - E) dx, E = (1+u) L, w the normal density: (1+U) (e^{uL} - 1) is
  (e^E - 1 - (1+u) U) + u U, L <= U, and int_{L <= b} w U <= 0 for b > 0. The integrand is convex in L: in a cell at
  most its larger end.
Lower end. One loss above eps + s, all others below it, R >= -s:
  delta(eps) >= delta_1(eps + s) (1 - p(eps + s) - e^{-us + V u^2 e^{u l}/2}),  V = sum k q^2 (e^{m^2} - 1), l = max
      -log(1-q):
  E e^{-uL} <= 1 + u^2 e^{ul} E L^2/2, as E L >= 0, and E L^2 = int w (1+U) L^2 <= int w U^2 [theory: small.log-square].

All exponents are known to 1e-12 of their size; SLACK is far above that.

What it does not do: ADD, whose losses are bounded; more than STEPS distinct steps.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core, scratch
from .._core import Rows
from ..answers import Root
from ..outward import log_slack, log_sum
from ..what import sampling
from ..what.pair import PairedSteps
from . import contour, few
from .question import MOST_SAMPLED, ROUGH, SHARP

TERMS = ("jumps", "truncation", "inner_quadrature", "rounding")
MANY = 50.0
"""Records expected in all samples, k q, from which many losses of a step make delta together."""

START = 2.0
"""Upper over lower end of what is known of a root, up to which the line starts from it."""

STEPS = 8
SLACK = 1e-8
CELLS = 160
SHARES = np.array([0.005, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.3, 0.43, 0.57, 0.7])
"""s over eps, and eps - a_r over eps."""
SHIFTS = np.array([0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 2.0, 4.0])
"""The same for the lower end."""
TILTS = np.array([1.0, 2.5, 5.0, 8.0, 12.0, 18.0, 27.0, 40.0, 60.0, 100.0, 250.0, 700.0, 1200.0])
"""u times the level that it belongs to."""
LEFT, LEAST_SHIFT = -9.0, 0.2
LOOKS, FAR = 14, 6.0
"""How often the lower end is asked for one eps, and the factor between two looks at the upper end at which it is given
up."""


def point(steps: Rows, add: int, eps: float, sharp: float = SHARP):
    """A certified point of the curve, or None: the narrower of the two [theory: small.expansion, small.bulk-far]. Of
    one narrower than `sharp` no other is asked."""
    if not (eps > 0 and _serves(steps)):
        return None
    answer = _answer(1, steps, add, eps, sharp)
    return answer and answer.certified("jumps")


def root(steps: Rows, add: int, log_delta: float, sharp: float = SHARP, known: Root | None = None):
    """A certified root of delta(eps) = e^log_delta, or None; known: what is known of it, to start from."""
    if not _serves(steps):
        return None
    answer = _answer(0, steps, add, log_delta, sharp, known)
    return answer and answer.certified("jumps")


def pair_point(paired: PairedSteps, add: int, eps: float, sharp: float = SHARP):
    """A certified point of a run of pairs, or None. What was dropped is at +inf [theory: small.dropped]."""
    if not eps > 0:
        return None
    steps = paired.steps
    brief = _few(steps)
    answer = _answer(1, steps, add, eps, sharp, line=not brief)
    found = answer and answer.certified("jumps")
    if brief and not (found and found.width < sharp):
        cells, pair = few.COARSE if sharp >= ROUGH else few.FINE, _pair(steps, add)
        found = _narrower(found, few.at(pair, steps.k[0], eps, cells))
        if not (found and found.width < sharp):
            line = _line(1, pair, steps.k[0], eps)
            found = _narrower(found, line.certified("jumps") if line.status <= _core.LOOSE else None)
    if found is None or not paired.dropped:
        return found
    return found._replace(upper=log_sum(found.upper, math.log(paired.dropped)))


def pair_root(paired: PairedSteps, add: int, delta: float, sharp: float = SHARP, known: Root | None = None):
    """A certified root of a run of pairs, or None; the upper end is that of delta less what was dropped. known: as of
    `root`."""
    if not paired.dropped < 0.5 * delta:
        return None
    steps, dropped, log_delta = paired.steps, paired.dropped, math.log(delta)
    less = log_delta + math.log1p(-dropped / delta) - log_slack(log_delta)
    targets = (log_delta, less) if dropped else (log_delta,)
    if not _few(steps):
        return _between([_answer(0, steps, add, x, sharp, known) for x in targets])
    found = _between([_answer(0, steps, add, x, sharp, line=False) for x in targets])
    if found and found.width < sharp:
        return found
    near, pair, k = found or known, _pair(steps, add), steps.k[0]
    start = near.estimate if near and near.upper < START * near.lower else 0.0
    found = _narrower(found, few.root(pair, k, log_delta, targets[-1], start, sharp))
    if found and found.width < sharp:
        return found
    answers = [_line(0, pair, k, x, **_start(found or known)) for x in targets]
    return _narrower(found, _between([a if a.status <= _core.LOOSE else None for a in answers]))


def _between(answers) -> Root | None:
    """The root of which the last answer gives the upper end; None where one of them is missing."""
    if not all(answers):
        return None
    found, last = answers[0].certified("jumps"), answers[-1].certified("jumps")
    return found._replace(upper=max(found.upper, last.upper))


def pair_log_upper(paired: PairedSteps, add: int, eps: float, enough: float) -> float:
    """An upper bound of log delta(eps) of a run of one pair, infinite where there is none; one at most `enough` will
    do."""
    if paired.steps.k.size != 1 or not eps > 0:
        return math.inf
    pair, k = _pair(paired.steps, add), paired.steps.k[0]
    status, upper = scratch.lend(_core.bulk_line_work(), _core.bulk_upper, pair, k, eps, enough, *few.rule())
    if status != _core.OK:
        return math.inf
    return log_sum(upper, math.log(paired.dropped)) if paired.dropped else upper


def _narrower(*answers):
    """The narrowest of them, or None."""
    return min((answer for answer in answers if answer), key=lambda answer: answer.width, default=None)


def _few(steps: Rows) -> bool:
    """Whether it is so few runs of one step that real space takes them."""
    return steps.k.size == 1 and steps.k[0] <= few.RUNS


def _pair(steps: Rows, add: int) -> np.ndarray:
    """The pair of the only step, turned to the direction."""
    if steps.pairs is not None and steps.pairs.any():
        return steps.pairs
    return _plain(float(steps.shift[0]), float(steps.q[0]), add)


def _plain(m: float, q: float, add: int) -> np.ndarray:
    pair = sampling.Pair((sampling.Branch(1.0, q, m, 0.0),))
    return sampling.packed([pair.reversed() if add else pair])


def _line(have_eps: int, pair: np.ndarray, k: float, at: float, **near):
    return scratch.lend(_core.bulk_line_work(), _core.bulk_line_ask, pair, k, have_eps, at, *few.rule(), **near)


def _start(known: Root | None) -> dict:
    """The eps to start from, where one is known about."""
    return {"start": known.estimate} if known and known.upper < START * known.lower else {}


def _serves(steps: Rows) -> bool:
    return bool(steps.q.size <= _core.JUMPS_STEPS and steps.q.max() < MOST_SAMPLED)


def _sampled(steps: Rows) -> float:
    """Records that all samples of one of the steps hold, on average over its branches: of the step that has fewest."""
    rates = steps.q
    if steps.pairs is not None:
        rates = rates.copy()
        for i, (branches, *row) in enumerate(sampling.PACKED.iter_unpack(steps.pairs.tobytes())):
            if branches:
                rates[i] = sum(w * q for w, q in zip(row[:branches], row[sampling.MAX_BRANCHES :], strict=False))
    return float((rates * steps.k).min())


def _answer(have_eps, steps: Rows, add: int, at: float, sharp: float, known: Root | None = None, line: bool = True):
    """The expansion's answer, and the line's, if that may be asked, of one distinct step where that is not narrow; None
    where neither has one."""
    answers, n = [], steps.k.size
    if n <= _core.JUMPS_STEPS and steps.k.sum() >= 2 and _sampled(steps) < MANY:
        answers.append(scratch.lend(_core.jumps_work(n), _core.jumps_ask, steps, add, have_eps, at, *few.rule()))
    if line and n == 1 and not (answers and answers[0].status <= _core.LOOSE and answers[0].width < sharp):
        near = _start(known)
        if answers and answers[0].status <= _core.LOOSE:
            near = {"known": math.fsum(answers[0].relative())}
            if not have_eps:
                near["start"] = answers[0].estimate
        answers.append(_line(have_eps, _pair(steps, add), steps.k[0], at, **near))
    answers = [answer for answer in answers if answer.status <= _core.LOOSE]
    return min(answers, key=lambda answer: answer.width) if answers else None


def log_delta_upper(steps, eps: float) -> float:
    """An upper bound of log delta(eps), REMOVE, eps > 0."""
    s = SHARES * eps
    with np.errstate(all="ignore"):
        log_t = np.minimum(0.0, np.minimum(_log_rest_upper(steps, s, s), _log_rest_upper(steps, s, 0.5 * s)))
        low = eps - s
        u = TILTS / low[:, None]
        # lf without cancellation
        none = (-u * np.log1p(1 / u) - np.log1p(u) - u * eps + _k_upper(steps, low, u)).min(axis=1)
        above = _log_above_upper(steps, low)
        between = np.concatenate(([-np.inf], above[1:] + log_t[:-1]))  # a loss from level r to the next higher
        best = math.inf
        for i, at in enumerate(low):
            one = _log_one(steps, float(at), 2)
            # [theory: small.jumps]
            layers = np.logaddexp.accumulate(
                np.concatenate(([np.logaddexp(one, above[i] + log_t[i])], between[i + 1 :]))
            )
            best = min(best, float(np.logaddexp(layers, none[i:]).min()))
    return best + SLACK * (1 + abs(best)) if best == best else math.inf


def log_delta_lower(steps, eps: float) -> float:
    """A lower bound of log delta(eps), REMOVE, eps > 0; -inf where it says nothing."""
    m, q, k = steps
    best, reach = -math.inf, -math.log1p(-float(q.max()))
    with np.errstate(all="ignore"):
        variance = float((k * q * q * np.expm1(m * m)).sum()) * (1 + SLACK)  # [theory: small.log-square]
        above = _log_above_upper(steps, eps + SHIFTS * eps)
    if variance == math.inf:
        return -math.inf
    for shift, p in zip((SHIFTS * eps).tolist(), above.tolist(), strict=True):
        u = min(shift / variance, 1 / reach)
        missed = math.exp(min(0.0, p)) + math.exp(
            min(0.0, -u * shift + 0.5 * variance * u * u * math.exp(min(700.0, u * reach)))
        )
        if missed < 1 - SLACK:
            best = max(best, _log_one(steps, eps + shift, 0) + math.log1p(-missed * (1 + SLACK)))
    return best - SLACK * (1 + abs(best))


def narrowed(steps, log_least: float, log_most: float, lo: float, hi: float) -> tuple[float, float]:
    """What the bounds leave of eps(delta) in [lo, hi], REMOVE, 0 <= lo < hi, log delta in [log_least, log_most]: a few
    looks at each, upper ones from the lower."""
    least, factor = max(lo, 1e-6 * hi), 1.03
    below, above = least, hi
    for _ in range(LOOKS):
        mid = math.sqrt(below * above)
        if above < below * factor:
            break
        if log_delta_lower(steps, mid) >= log_most:
            below = mid
        else:
            above = mid
    if below > least:
        lo = max(lo, below)
    while below * factor < hi and factor < FAR:
        if log_delta_upper(steps, below * factor) <= log_least:
            hi = below * factor
            break
        below, factor = below * factor, factor * factor
    else:
        return lo, hi
    for _ in range(2):
        mid = math.sqrt(below * hi)
        if log_delta_upper(steps, mid) <= log_least:
            hi = mid
        else:
            below = mid
    return lo, hi


def serves(steps) -> bool:
    """Whether one loss can make nearly all of the curve: not where all are alike."""
    few = steps.q.size <= STEPS and float(steps.q.max()) < 1
    return few and float(steps.shift.min()) > LEAST_SHIFT and float((steps.k * steps.q).sum()) < 10


def _log_one(steps, eps: float, end: int) -> float:
    """Log of delta_1; end 0: rounded down, 2: up."""
    total = -math.inf
    for m, q, k in zip(*(x.tolist() for x in steps), strict=True):
        point = contour.single_point(m, q, 0, eps)
        if point is None:
            return math.inf if end else -math.inf
        total = float(np.logaddexp(total, math.log(k) + point[end]))
    return total


def _places(m: float, q: float, level: np.ndarray) -> np.ndarray:
    """x at which the loss is `level` > 0."""
    far = level > 600
    return (np.where(far, level - math.log(q), np.log1p(np.expm1(np.where(far, 1.0, level)) / q))) / m + 0.5 * m


def _log_normal_above_upper(x: np.ndarray) -> np.ndarray:
    """Log of Pr[N > x], at most 4 w(x)/(3x + sqrt(x^2 + 8)) for x > -1 [Sam53]."""
    z = np.maximum(x, 0.0)
    return np.where(x > 0, np.log(4 / (3 * z + np.sqrt(z * z + 8))) - 0.5 * z * z - 0.5 * math.log(2 * math.pi), 0.0)


def _log_above_upper(steps, level: np.ndarray) -> np.ndarray:
    total = np.full(level.shape, -np.inf)
    for m, q, k in zip(*(x.tolist() for x in steps), strict=True):
        x = _places(m, q, level)
        one = np.logaddexp(math.log(q) + _log_normal_above_upper(x - m), math.log1p(-q) + _log_normal_above_upper(x))
        total = np.logaddexp(total, math.log(k) + one)
    return total


def _k_upper(steps, level: np.ndarray, u: np.ndarray) -> np.ndarray:
    """K at every level and its row of tilts."""
    total = np.zeros(u.shape)
    for m, q, k in zip(*(x.tolist() for x in steps), strict=True):
        end = _places(m, q, level)[:, None]
        x = np.minimum(LEFT, end - 1) + (end - np.minimum(LEFT, end - 1)) * np.linspace(0.0, 1.0, CELLS + 1)
        loss = np.log1p(q * np.expm1(m * x - 0.5 * m * m))
        loss[:, -1] = np.maximum(loss[:, -1], level)
        peak = np.where((x[:, :-1] < 0) & (x[:, 1:] > 0), 0.0, np.minimum(np.abs(x[:, :-1]), np.abs(x[:, 1:])))
        log_mass = (-0.5 * peak * peak + np.log(np.diff(x) / math.sqrt(2 * math.pi)))[:, None, :]
        exponent = (1 + u)[:, :, None] * loss[:, None, :]
        log_value = np.where(
            np.abs(exponent) < 1e-3,
            2 * np.log(np.abs(exponent)) - math.log(2) + np.maximum(exponent, 0.0),
            np.where(exponent < 30, np.log(np.expm1(np.minimum(exponent, 30.0)) - exponent), exponent),
        )
        worst = (1 + u) * math.log1p(-q)  # left of all cells the loss falls to log(1-q)
        left = (
            np.maximum(np.exp(log_value[:, :, 0]), 0.5 * worst**2) * np.exp(_log_normal_above_upper(-x[:, 0]))[:, None]
        )
        total += k * (np.exp(np.maximum(log_value[:, :, 1:], log_value[:, :, :-1]) + log_mass).sum(axis=2) + left)
    return total * (1 + SLACK)


def _log_rest_upper(steps, s: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Log of T(s) with losses above `level` apart."""
    u = TILTS / level[:, None]
    sums = (_k_upper(steps, level, u) - u * s[:, None]).min(axis=1)
    return np.logaddexp(sums, _log_above_upper(steps, level))
