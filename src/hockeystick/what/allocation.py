"""Random allocation: in every epoch a record takes part in one of t steps, drawn uniformly.

With X_i iid lognormal of mean one, log X_i ~ N(-v/2, v), v = (sensitivity/sigma)^2, and S = X_1 + .. + X_t, the loss
of an epoch is log(S/t) under P, where one X_i is multiplied by e^v, for REMOVE; for ADD its negative under Q
[theory: allocation.comparison, allocation.pair].
Its transform F(z) = E_P (S/t)^z is that of csrc/law/allocation.c; the contour takes it as it is, the grids by the
tails below.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from ..bound import AccuracyError, DomainError
from ..outward import UP, U, log_sum
from ..scratch import lend_tables
from .given import FromPmf, from_pmf
from .loss import Loss, Tails, nodes_of_tails
from .mechanism import Gaussian, Mechanism, Run, compose, count

STEPS_MAX = 10**7
SHIFT_MAX = 5.0
"""Largest sensitivity/sigma, times sqrt(epochs) where a record keeps its bin."""


@dataclass(frozen=True, slots=True)
class RandomAllocation(Mechanism):
    """One epoch in which a record takes part in one of `steps` steps; see `random_allocation`, and `balls_and_bins`
    for the `epochs` in which it keeps its step."""

    base: Gaussian
    steps: int
    epochs: int = 1

    @property
    def shift(self) -> float:
        """m = sensitivity/sigma sqrt(epochs), within 3u."""
        return self.base.sensitivity / self.base.sigma * math.sqrt(self.epochs)

    def below(self) -> tuple[Mechanism, Mechanism]:
        """What observers of a part of the outputs see: of one epoch of less noise where a record keeps its step."""
        noise = self.base.sigma if self.epochs == 1 else self.base.sigma / math.sqrt(self.epochs) * UP
        return observed(Gaussian(noise, self.base.sensitivity), self.steps)


@dataclass(frozen=True, slots=True)
class AllocationOfSeveral(Mechanism):
    """One epoch in which a record takes part in `participations` of `steps` steps; see `random_allocation`. It stands
    for two pairs, one below and one above."""

    base: Gaussian
    steps: int
    participations: int
    if not TYPE_CHECKING:
        open = True

    def above(self) -> tuple[tuple[Mechanism, int], ...]:
        """Blocks of steps with one participation each, of as equal lengths as can be [theory: allocation.blocks]."""
        f, more = divmod(self.steps, self.participations)
        blocks = ((random_allocation(self.base, f), self.participations - more),)
        return (*blocks, (random_allocation(self.base, f + 1), more)) if more else blocks

    def below(self) -> tuple[Mechanism, Mechanism]:
        """What an observer of the sum of all outputs sees, and one of cells of their maximum
        [theory: allocation.seen]."""
        return observed(self.base, self.steps, self.participations)


_ALLOCATING = RandomAllocation, AllocationOfSeveral


def allocates(run: Run) -> bool:
    """Whether some step of the run is an epoch of random allocation."""
    if run.gathered:  # of Gaussian steps
        return False
    return any(isinstance(step, _ALLOCATING) for step, _ in run.parts)


def _log_normal_cdf(x: float) -> float:
    half = 0.5 * math.erfc(abs(x) / math.sqrt(2))
    return math.log1p(-half) if x > 0 else math.log(half)


def observed(base: Gaussian, steps: int, participations: int = 1) -> tuple[Mechanism, Mechanism]:
    """What an observer of the sum of an epoch's outputs sees, and one of cells of their maximum
    [theory: allocation.seen]."""
    far = math.sqrt(steps) * base.sigma / participations * (1 + 8 * U)
    return Gaussian(far, base.sensitivity), _maximum_seen(base.sensitivity / base.sigma, participations, steps)


def _maximum_seen(m: float, k: int, t: int) -> FromPmf:
    """Pr[max <= C] is Phi(C)^t without the record, Phi(C-m)^k Phi(C)^(t-k) with it. A cell of log-distribution more
    than STILL below 0 joins the first, so that masses are within CELL of themselves: logarithms are within 16u of
    themselves, differences of two of them at least 1e-3 or cells of their own sign apart. They are moved by more than
    that towards a cell of mass APART where both laws agree, which takes those that are NEAR agreeing as well: what is
    moved leaves it at most that far off, 8 CELL + 7 CELL < NEAR APART [theory: allocation.seen]."""
    logs = []
    for i in range(-80, 400):
        free, own = _log_normal_cdf(0.1 * i), _log_normal_cdf(0.1 * i - m)
        if free > -1e-280:
            break
        if t * free > -STILL and k * own + (t - k) * free > -STILL:
            logs.append((k * own + (t - k) * free, t * free))
    cells = [tuple(math.exp(x) for x in logs[0])]
    cells += [tuple(math.exp(y) * -math.expm1(x - y) for x, y in zip(*pair, strict=True)) for pair in pairwise(logs)]
    cells.append(tuple(-math.expm1(x) for x in logs[-1]))
    num, den = [], []
    for p, q in cells:
        if abs(p - q) <= NEAR * q:
            continue
        side = 2 * CELL * ((p > q) - (p < q))
        num.append(p * (1 - side) * (1 - APART))
        den.append(q * (1 + side) * (1 - APART))
    return from_pmf([*num, 1 - math.fsum(num)], [*den, 1 - math.fsum(den)])


STILL, CELL, APART, NEAR = 30.0, 1e-9, 1e-5, 2e-3


def observers(run: Run) -> tuple[Run, ...]:
    """The run as observers of parts of the outputs of its epochs see it, and of each kind of epoch the maximum in one
    alone [theory: pair.dropping]; none where no record is allocated."""
    found = run._cache.get("observers")
    if found is None:
        seen = [step.below() if isinstance(step, RandomAllocation) else (step, step) for step, _ in run.parts]
        counts = [k for _, k in run.parts]
        both = [compose(*zip(side, counts, strict=True)) for side in zip(*seen, strict=True)]
        held = [i for i, (step, _) in enumerate(run.parts) if isinstance(step, RandomAllocation)]
        alone = [compose(seen[i][1]) for i in held] if run.steps > 1 else []
        found = run._cache["observers"] = (*both, *alone) if held else ()
    return found


def _allocation(mechanism: object, name: str, steps: int, epochs: int) -> RandomAllocation:
    if not isinstance(mechanism, Gaussian):
        raise DomainError(f"{name} takes a gaussian(...) step, got {mechanism!r}")
    found = RandomAllocation(mechanism, steps, epochs)
    if not found.shift <= SHIFT_MAX:
        raise DomainError(
            f"{name} needs sensitivity/sigma{' sqrt(epochs)' if epochs > 1 else ''} of at most {SHIFT_MAX:g}, got "
            f"{found.shift:g}: with less noise an epoch reveals almost everything"
        )
    return found


def allocated(base: Mechanism, steps: int, epochs: int) -> Mechanism:
    """`random_allocation`, or `balls_and_bins` where there are epochs."""
    return balls_and_bins(base, steps, epochs=epochs) if epochs > 1 else random_allocation(base, steps)


def random_allocation(mechanism: Mechanism, steps: int, *, participations: int = 1) -> Mechanism:
    """One epoch of `steps` Gaussian steps in which every record takes part in exactly one, or in `participations` of
    them, drawn uniformly: random allocation.

    With S the sum of t = `steps` independent lognormals of mean one the loss is log(S/t) (REMOVE) or its negative
    (ADD): both directions are option prices: delta_ADD(eps) = e^eps E(e^-eps - S/t)_+, delta_REMOVE(eps) = E(S/t -
    e^eps)_+. The pair is attained, so the answer is exact: it is the curve itself that is enclosed.
    `random_allocation(...) * epochs` composes epochs with fresh assignments, among any other steps, in any adaptive
    order.

    Parameters
    ----------
    mechanism : Mechanism
        `gaussian(sigma)`, sensitivity/sigma at most 5. Its sensitivity is the largest norm of a record's contribution.
    steps : int
        t, 1 to 1e7. One step is `mechanism` itself.
    participations : int, default 1
        k of the t steps, 1 to t. With k > 1 the curve is not computed but enclosed: above by k blocks of about t/k
        steps with one participation each, which is a few percent of delta too high, below by what shows in the sum and
        in the maximum of the outputs; `Bound.note` says so. k = t is `mechanism` t times.

    Returns
    -------
    Mechanism
        Under adjacency "add_remove" or "zero_out". Under "replace_one" `delta`, `log_delta` and `epsilon` are enclosed,
        not computed: above by a record that is zeroed, then replaced, or by the steps revealed; below by what shows in
        the sum of the outputs; `Bound.note` says so.

    Raises
    ------
    DomainError
        If `mechanism` is not Gaussian or an argument is outside its range.

    Notes
    -----
    The guarantee needs all of this:

    - C1: the step of a record is drawn independently of the data, of all outputs and of the steps of other records;
    - C2: t, and what updates are divided by, are public constants: never the size that a batch happened to have; noise
      is added to empty batches as well;
    - C3: given the history, a step releases noise plus a function of the other records plus the contribution of the
      record, of norm at most the sensitivity, if it takes part; all of it may depend on the history;
    - C4: the step of the record stays secret, batch sizes included; other records and their steps may be known;
    - C5: the noise of every step is fixed in advance;
    - C6: assignments of different epochs are independent.

    Batches of a fixed size and shuffled passes fail C1: `without_replacement` has the former, nothing is proved here
    about the latter. A mean over the batch fails C2, a published schedule C4, a bin that a record keeps C6: that is
    `balls_and_bins`. Numbers alone do not tell; logs (`read_log`: sampler, divisor, membership) and the adapter of
    jax-privacy (partition_type) may, and are refused where they do.

    Answers are narrow where sigma is at least 1.5 times the sensitivity (from 1e5 steps on: the sensitivity), or
    sqrt(t) sigma/sensitivity at most about 40 (ADD alone: 4,000), and of one epoch alone mostly to 1e-300, as the price
    of an option on S. Several epochs with less noise and more steps, beyond the moments of S that are computed, take
    0.2 to 5 s down to sigma of 0.4 times the sensitivity, and are mostly narrow. Else an answer is wide: it lies
    between what shows in sums or maxima of the outputs and the moments accountant, route "moments".

    References
    ----------
    docs/theory/allocation.md for the pair, for the transform and the density with their error bounds, and for several
    participations.

    Examples
    --------
    >>> import hockeystick as hs
    >>> epoch = hs.random_allocation(hs.gaussian(1.0), 100)
    >>> f"{hs.epsilon(epoch * 10, 1e-5):.6f}"    # of Poisson sampling at rate 1/100: 1.828237
    '[1.701498, 1.701499]'
    >>> b = hs.epsilon(hs.random_allocation(hs.gaussian(2.0), 100, participations=5), 1e-5)
    >>> 0.92 < b.lower < b.upper < 1.0, b.note
    (True, 'between curves below and above random_allocation')
    """
    steps = count("steps", steps, 1, STEPS_MAX)
    participations = count("participations", participations, 1, steps)
    if participations > 1:
        several = _allocation(mechanism, "random_allocation", steps, 1)
        return AllocationOfSeveral(several.base, steps, participations)
    found = _allocation(mechanism, "random_allocation", steps, 1)
    return mechanism if steps == 1 else found


def balls_and_bins(mechanism: Mechanism, bins: int, *, epochs: int) -> Mechanism:
    """`epochs` epochs of `bins` Gaussian steps in which every record takes part in one, drawn once: the same in
    every epoch.

    The losses of one bin add up, so it is one epoch of `random_allocation` at noise sigma/sqrt(epochs): fresh
    assignments in every epoch, `random_allocation(mechanism, bins) * epochs`, cost less.

    Parameters
    ----------
    mechanism : Mechanism
        `gaussian(sigma)`, sensitivity/sigma times sqrt(epochs) at most 5.
    bins : int
        Steps of an epoch, 1 to 1e7; one bin is `mechanism * epochs`.
    epochs : int
        1 to 1e6.

    Returns
    -------
    Mechanism
        All epochs as one step, under the adjacencies of `random_allocation`.

    Raises
    ------
    DomainError
        If `mechanism` is not Gaussian or an argument is outside its range.

    Notes
    -----
    The guarantee needs C1 to C5 of `random_allocation`, with one draw of a record's bin for all epochs in place of C6.
    Where the epochs are repeated, `balls_and_bins(...) * n`, bins are drawn afresh between the repetitions.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{hs.epsilon(hs.balls_and_bins(hs.gaussian(2.0), 100, epochs=4), 1e-5):.6f}"
    '[0.620939, 0.620940]'
    >>> f"{hs.epsilon(hs.random_allocation(hs.gaussian(2.0), 100) * 4, 1e-5):.6f}"
    '[0.366661, 0.366662]'
    """
    bins, epochs = count("bins", bins, 1, STEPS_MAX), count("epochs", epochs, 1, 10**6)
    found = _allocation(mechanism, "balls_and_bins", bins, epochs)
    if bins > 1:
        return found
    return Gaussian(found.base.sigma, found.base.sensitivity * math.sqrt(epochs))


def log_moment_ends(m: float, t: int, p: float) -> tuple[float, float]:
    """Lower and upper end of log F(p) for p > 0, of log F(p) for p < -1, in closed form
    [theory: allocation.moment-ends]; what is lost by rounding is far below ROUGH of the parts."""
    v = m * m
    size = abs(p * (1 + p)) * v
    low = max(0.5 * size / t, 0.5 * size - p * math.log(t) if p > 0 else 0.0)
    high = 0.5 * size
    if p < -1:
        high = min(high, 0.5 * (1 + p) * v * ((1 + p) / t - 1))
    elif p <= ORDERS:
        high = min(high, _log_moment_upper(v, t, p))
    if 0 < p <= TABLED[-1] and high - low > LOOSE * (1 + high):
        whole = _log_moments(v, t, next(n for n in TABLED if p <= n))
        least = math.floor(p)
        high = min(high, float(whole[least] + (p - least) * (whole[math.ceil(p)] - whole[least])))
    off = ROUGH * (1 + size + abs(p) * math.log(t))
    return max(low - off, 0.0), high + off


ORDERS, ROUGH, LOOSE, FAR_OUT = 400, 1e-11, 0.02, 100.0
TABLED = (128, 512, 2048)
"""Largest whole orders of tables of moments, which are asked for where ends are wider apart than LOOSE."""


@functools.lru_cache(16)
def _log_moments(v: float, t: int, n: int) -> np.ndarray:
    """log F(j), j = 0..n: moments of S over factorials are coefficients of the power t of the series of those of X, all
    positive, by squaring; every sum within 8u of itself and of its logarithm [theory: allocation.moment-ends]."""
    j = np.arange(n + 2)
    log_factorial = np.array([math.lgamma(x + 1) for x in j.tolist()])
    power, found, left = 0.5 * v * j * (j - 1) - log_factorial, None, t
    while left:
        if left % 2:
            found = power if found is None else _log_product(found, power)
        left //= 2
        if left:
            power = _log_product(power, power)
    return (found + log_factorial - j * math.log(t))[1:]


def _log_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Logs of the first coefficients of the product of two series, of logs."""
    padded = np.concatenate([np.full(a.size - 1, -np.inf), b])
    rows = np.lib.stride_tricks.sliding_window_view(padded, a.size)  # row k: b_(k-n+1) .. b_k
    out = np.empty(a.size)
    for part in np.array_split(np.arange(a.size), 1 + a.size // 256):
        terms = rows[part] + a[::-1]
        top = terms.max(axis=1)
        out[part] = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return out


def _log_moment_upper(v: float, t: int, p: float) -> float:
    """log of an upper bound of F(p): Minkowski's inequality takes p > 1 to p - 1 and a term less."""
    first = p - math.ceil(p) + 1  # in (0, 1]
    whole, n = 0.0, t - math.ceil(p) + 1
    for j in range(math.ceil(p)):
        at, terms = first + j, n + j
        if terms < 1:
            continue
        part = (at if at <= 1 else 1.0) * 0.5 * (1 + at) * v
        power, over = (at, 1.0) if at <= 1 else (1.0, at)
        rest = power * math.log(terms - 1) + whole / over if terms > 1 else -math.inf
        whole = over * (log_sum(part, rest) - power * math.log(terms))
    return whole


# Tails

DEPTH = 42.0
"""Nats below which aliases and what is cut of a line shall lie."""

NODES = 1 << 14
FINE, ROOM = 64, 1 << 16
"""Nodes whose phases are those of one and of a step each, and sums over them that are held at once."""

TILT_MAX, FEW = 56.0, 60.0
SMALL, KNOWN = 1e-10, 1e-7
"""Relative errors from which a tail is computed for itself; and is stated as an absolute error."""

TINIEST = 1e-300
NO_NODES = np.zeros(0)


def allocation_loss(m: float, t: int) -> Loss:
    """log(S/t) under P and under Q: the loss of REMOVE.

    On a line Re z = -c < 0, e^{-cs} Pr[L <= s] has the transform F(z)/(-z), and the trapezoid rule of step 2 pi/P
    returns sum_j e^{-cjP} Pr[L <= s + jP]; on Re z = c > 0 the same with Pr[L > s - jP]. Terms j > 0 are at most
    e^{-cjP}, terms j < 0 at most F(r) e^{..} by Chernoff's bound at r beyond c [theory: allocation.tails]. Under Q,
    E_Q e^{zL} = F(z-1): the same values with z one further to the right. A tail near 1 is 1 less the other.
    """
    sides = _Side(m, t, False), _Side(m, t, True)

    @np.errstate(over="ignore", invalid="ignore")
    def tails(s):
        y_below, x_below = sides[0].tails(s)
        far = (y_below[1] > SMALL * (1 - y_below[0])) | (x_below[1] > SMALL * (1 - x_below[0]))
        y_above, x_above = sides[1].tails(s, far)
        out, rel, absolute = [], np.zeros(s.size), 0.0
        for (v, e), (w, d) in ((y_below, y_above), (y_above, y_below), (x_below, x_above), (x_above, x_below)):
            other = d + U < e
            v, e = np.where(other, 1 - w, v), np.where(other, d + U, e)
            known = e < KNOWN * v
            rel = np.maximum(rel, np.where(known, e / np.maximum(v, 1e-300) * 1.01, 0.0))
            absolute = max(absolute, float(np.max(np.where(known, 0.0, e), initial=0.0)))
            out.append(np.maximum(v, 0.0))
        if not absolute < KNOWN:
            raise AccuracyError(
                f"tails of an allocation over {t} steps at sensitivity/sigma {m:g} are known to {absolute:g}"
            )
        return Tails(*out, rel + 4 * U, 0.0, absolute)

    def exponent(z):
        """About log F(z): a plan of moments, far out by closed forms where these are near each other."""
        low, high = log_moment_ends(m, t, z) if abs(z) > FAR_OUT else (0.0, math.inf)
        if high - low < LOOSE * high:
            return 0.5 * (low + high)
        found = _line(m, t, -z, NO_NODES)
        if found is None or not found[1] < 0.1:
            return 0.5 * sum(log_moment_ends(m, t, z)) if z > 0 or z < -1 else math.nan
        return found[0]

    near = min(1.0, 0.5 * math.sqrt(math.expm1(m * m) / t) * UP)  # [theory: allocation.distance]
    return Loss(
        tails,
        lambda p: nodes_of_tails(tails, -math.inf, math.inf, max(p, 1e-12)),
        distance_upper=near,
        exponent=exponent,
    )


class _Side:
    """The lines for Pr[L <= s] (above: Pr[L > s]), made where they are asked for."""

    __slots__ = ("above", "lines", "m", "means", "t", "tilts")

    def __init__(self, m: float, t: int, above: bool):
        self.m, self.t, self.above = m, t, above
        sd = min(1.0, math.sqrt(math.expm1(m * m) / t))
        bulk = {x / sd for x in (1.5, 4.0, 9.0, 18.0)}
        found = {1.2 + c for c in bulk}
        if above:  # beyond FEW a line needs more moments of S than csrc/law/allocation.h has room for
            found = {c for c in bulk | {1.0, 3.0, 6.0, 12.0, 24.0} if c < TILT_MAX} if math.sqrt(t) / m < FEW else set()
        self.tilts = sorted(found)
        self.lines: dict[int, _Line | None] = {}
        self.means: list[float] = []

    def tails(self, s: np.ndarray, where: np.ndarray | None = None):
        """(values, errors) under P, and under Q; without an error that is finite but `where`."""
        out = [(np.zeros(s.size), np.full(s.size, np.inf)) for _ in range(2)]
        at = np.arange(s.size) if where is None else np.flatnonzero(where)
        if not at.size:
            return out
        for line, low, high in self.near(float(s[at].min()), float(s[at].max())):
            here = at[(s[at] >= low) & (s[at] <= high)]
            for (value, error), (v, e) in zip(out, line.tails(s[here]), strict=True):
                better = e / np.maximum(v, TINIEST) < error[here] / np.maximum(value[here], TINIEST)
                value[here[better]], error[here[better]] = v[better], e[better]
        return out

    def near(self, low: float, high: float):
        """Lines that are best for some s in [low, high], each with the means of its neighbours, between which it is
        asked."""
        sign = -1.0 if self.above else 1.0
        if not self.means:
            for c in self.tilts:
                here, there = (_line(self.m, self.t, sign * x, NO_NODES) for x in (c, 1.001 * c))
                if here is None or there is None:
                    self.means.append(math.nan)
                else:
                    self.means.append(sign * (here[0] - there[0]) / (0.001 * c))
        known = [i for i, mean in enumerate(self.means) if mean == mean]
        order = sorted(known, key=lambda i: self.means[i])
        first = max([j for j, i in enumerate(order) if self.means[i] <= low], default=0)
        last = min([j for j, i in enumerate(order) if self.means[i] >= high], default=len(order) - 1)
        for i in order[first : last + 1]:
            if i not in self.lines:
                self.lines[i] = _Line.at(self.m, self.t, self.tilts[i], self.above, sign * self.means[i])
        made = [(self.means[i], found) for i in order[first : last + 1] if (found := self.lines[i]) is not None]
        ends = [-math.inf, *[mean for mean, _ in made], math.inf]
        for j, (_, found) in enumerate(made):
            yield found, ends[j], ends[j + 2]


def _line(m: float, t: int, c: float, y: np.ndarray):
    """(log F(-c), bound of its error, rows of F(-c-iy) over e to the first), or None: csrc/law/allocation.c."""
    return lend_tables((m, t), _core.allocation_work(), _core.allocation_line, m, t, c, y)


@dataclass(frozen=True, slots=True)
class _Line:
    """F on Re z = -c (above: Re z = c) at y = n dy: parts and errors over e^log_f; beyond: (r, log F at r)."""

    c: float
    above: bool
    period: float
    y: np.ndarray
    rows: np.ndarray
    log_f: float
    beyond: tuple[float, float]
    cut: float

    @classmethod
    def at(cls, m: float, t: int, c: float, above: bool, slope: float) -> _Line | None:
        """The line with its period, or None where it is out of reach. slope: of log F in c, about."""
        sign = -1.0 if above else 1.0
        here = _line(m, t, sign * c, NO_NODES)
        if here is None:
            return None
        slope, log_f = -slope, here[0]
        floor = log_f - c * slope  # about the log of the tail that it is best for
        best = (math.inf, 0.0, 0.0)
        for factor in (1.15, 1.3, 1.6, 2.0, 3.0, 5.0):
            r = factor * c + 0.1
            found = _line(m, t, sign * r, NO_NODES)
            if found is not None:
                at_r = found[0] + found[1]
                best = min(best, ((DEPTH + at_r - r * slope - floor) / (r - c), r, at_r))
        period = max(best[0], (DEPTH - floor) / c)
        reach = math.sqrt(t) / m * math.sqrt(2 * DEPTH)
        n = math.ceil(reach * period / (2 * math.pi)) if period < math.inf else NODES
        if n >= NODES:
            return None
        dy = 2 * math.pi / period
        y = np.asarray(dy * np.arange(n + 1), dtype=np.float64)
        found = _line(m, t, sign * c, y)
        if found is None:
            return None
        cut = math.exp(-0.5 * (y[-1] * m) ** 2 / t) * (1 + t / (m * m * y[-1] * dy))  # sum over n' > n of |F|
        return cls(c, above, period, y, found[2], found[0], best[1:], cut * (1 + 1e-9) * math.exp(found[1]))

    def tails(self, s: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pr[L <= s] (above: Pr[L > s]) under P, and under Q, each with a bound of its error."""
        sign = -1.0 if self.above else 1.0
        re, im, err = self.rows
        weight = np.where(self.y > 0, 2.0, 1.0) / self.period
        laws = [sign * den for den in (0, -1)]  # above Re z = c is c + 1 for Q
        kernels = [1 / (self.c + move + sign * 1j * self.y) for move in laws]
        sums = self.sums(s, [weight * (re + 1j * im) * kernel for kernel in kernels])
        found = []
        for move, kernel, one in zip(laws, kernels, sums, strict=True):
            c, r, size = self.c + move, self.beyond[0] + move, weight * np.abs(kernel)
            sized = size * np.abs(re + 1j * im)
            with np.errstate(over="ignore", invalid="ignore"):
                scale = np.exp(self.log_f + sign * c * s)
                total = scale * one
                units = (100 + len(self.y)) * float(size.sum()) + 4 * np.abs(s) * float((sized * self.y).sum())
                rounding = float((size * err).sum()) + U * units
                cut = self.cut * 2 / self.period / c
                error = scale * (rounding + cut) + np.abs(total) * U * (40 + 6 * np.abs(c * s) + 6 * abs(self.log_f))
                error += math.exp(-c * self.period) / -math.expm1(-c * self.period)
                far = np.exp(self.beyond[1] + sign * r * s - (r - c) * self.period)
                error += far / -math.expm1(-(r - c) * self.period)
            bad = ~(np.isfinite(total) & np.isfinite(error))
            found.append((np.where(bad, 0.0, total), np.where(bad, np.inf, error * 1.01)))
        return found

    def sums(self, s: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
        """Real parts of sum_n v_n e^{i y_n s}, a row for each of `values`. Node n = FINE a + b has the phases of a and
        of b, whose frequencies are within 2u of its own: the sum over b is a matrix product."""
        rows = -(-len(self.y) // FINE)
        held = np.zeros((len(values), rows * FINE), dtype=complex)
        held[:, : len(self.y)] = values
        table = held.reshape(len(values) * rows, FINE).T
        coarse, fine = self.y[::FINE], self.y[1] * np.arange(FINE)
        out = np.zeros((len(values), s.size))
        for part in np.array_split(np.arange(s.size), -(-s.size * len(values) * rows // ROOM) or 1):
            turned = (np.exp(1j * np.multiply.outer(s[part], fine)) @ table).reshape(part.size, len(values), rows)
            out[:, part] = np.einsum("sva,sa->vs", turned, np.exp(1j * np.multiply.outer(s[part], coarse))).real
        return out
