"""eps(delta) of every record of a realised sequence of steps, as certified upper bounds.

Ex post: the numbers are certified for the sequence of (noise level, sampling rate) that each record met, as if it had
been fixed in advance. Where steps were chosen from past outputs they are not a privacy guarantee (no theorem extends
PLD composition to that); the guarantee then is the filter's. They are functions of the private data in any case.

Route "contour". log M of a composition is linear in the counts, so the transforms of the noise levels at shared nodes
serve all records (individual_levels.c, individual_epsilon.c). Records are grouped by the tilt at which Chernoff's bound
of eps is least; each group shares one contour, on which each record has its own certificate. A record whose certificate
does not come out keeps Chernoff's bound, which is certified too and wider: by about a tenth, more where delta lies in a
tail of rare jumps. A few such records are taken up again, the last of them by every route; the number of the others is
in the answer. Route "fft": fft_records.py. Plain Gaussian levels only: one number a record, gaussian.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import _core, query
from .._core import Rows
from ..bound import AccuracyError, DomainError, contradiction
from ..outward import DOWN, UP, U
from ..threads import threads
from ..what.mechanism import Q_MIN, SIGMA_RANGE, compose, gaussian, poisson_subsampled, within
from ..what.vectors import reals, require
from .gaussian import gdp_epsilons_upper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..types import Numbers

COUNT_MAX = 2**31 - 1
LEVELS_MAX = 4096
TILTS = 80
"""Tilts tried; their ratio decides how far a group's contour is from a record's saddle point."""

RATIO = 1.12
"""Largest ratio between neighbouring tilts: a contour 6% off, at delta = 1e-30, costs exp((0.06 * 12)^2/2) = 1.3."""

MARGIN = 1.12
"""How much longer than the planned one the shared period is, for the group's widest record."""

NATS = 18.0
"""How far aliases and tail lie below delta: their e^-18, 2e-8, moves eps by 2e-8/tilt; fewer nodes are the gain."""

LOOSE = 1e-3
"""Relative distance between a bound and its estimate from which a record is taken up singly .."""

SINGLY = 256
""".. if no more than so many are: a query of the library each, milliseconds."""

GRIDS = 16
"""Where that declines too, all routes are asked, grids among them, if no more than so many are left: about 0.1 s
each."""

DIRECTIONS: tuple[Any, Any] = ("remove", "both")
"""What such a query asks for, by `add`: the larger of both is what the answer needs, and easier to certify than ADD
alone."""

BLOCK = 1 << 16
LABEL = "ex post: certified for the realised sequence as if fixed in advance; no guarantee under adaptivity"


@dataclass(frozen=True)
class IndividualEpsilons:
    """Certified upper bounds of eps(delta), one a record.

    Attributes
    ----------
    upper : ndarray, shape (records,)
        The bounds.
    delta : float
        The target.
    route : str
        "contour", "fft" or "gaussian" (levels without sampling: one number a record).
    wider : int
        Records whose bound is more than 1e-3 above the estimate.
    label : str
        What the numbers are, and are not.
    """

    upper: NDArray[np.float64]
    delta: float
    route: str
    wider: int = 0
    label: str = LABEL


def individual_epsilons(
    counts: Sequence[Sequence[int]] | NDArray[np.integer[Any]],
    *,
    sigmas: Numbers,
    delta: float,
    q: float | Numbers = 1.0,
    route: Literal["contour", "fft"] = "contour",
    n_threads: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> IndividualEpsilons:
    """Upper bounds of eps(delta) for every record, from how often it met each noise level.

    Parameters
    ----------
    counts : array of int, shape (records, levels)
        How many steps record i met at level j, at least 0. With Poisson sampling count every step, whether or not the
        record was in the sample; see dpsgd.py.
    sigmas : array of float, shape (levels,)
        Noise multiplier of each level for the record: noise deviation over the record's own clipped norm. `NoiseLevels`
        makes counts whose levels are rounded in the safe direction.
    delta : float
        In (0, 1).
    q : float or array of shape (levels,), default 1
        Poisson sampling rate of the steps.
    route : "contour" or "fft"
        Characteristic functions at shared nodes, or the published accountant on a grid (FFT and Plancherel).
    n_threads : int, default 1
        0 = all allowed cores. Results do not depend on it.
    progress : callable, optional
        Called with (records done, records) now and then.

    Returns
    -------
    IndividualEpsilons
        Certified upper bounds for add-or-remove-one neighbours, the larger of both directions; ex post (see the label).

    Raises
    ------
    DomainError
        For arguments outside their domain.
    AccuracyError
        If the route cannot certify delta (the FFT's rounding is absolute, about 1e-10).

    References
    ----------
    [KTH23], Sec. 4 and App. D, for what is computed; csrc/line/contour.c for the certificate.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = hs.individual_epsilons([[1000, 0], [200, 800]], sigmas=[1.0, 4.0], q=0.01, delta=1e-5)
    >>> found.upper.round(4).tolist()
    [1.8282, 0.9432]
    """
    table, m, rates, delta, n_threads = _checked(counts, sigmas, q, delta, route, n_threads)
    if not table.shape[0]:
        return IndividualEpsilons(np.zeros(0), delta, route)
    if (rates == 1).all():
        upper = gdp_epsilons_upper(_mu_upper(table, m), delta)
        return IndividualEpsilons(upper, delta, "gaussian")
    if route == "fft":
        from .fft_records import fft_epsilons_upper

        return IndividualEpsilons(fft_epsilons_upper(table, m, rates, delta, n_threads, progress), delta, "fft")
    upper, wider = _contour(table, m, rates, delta, n_threads, progress or (lambda *_: None))
    return IndividualEpsilons(upper, delta, "contour", wider)


def _checked(counts, sigmas, q, delta, route, n_threads):
    counts, sigmas, rates = np.asarray(counts), reals("sigmas", sigmas), reals("q", q)
    if counts.ndim != 2 or counts.dtype.kind not in "iu":
        raise DomainError(
            f"counts must be a (records, levels) array of integers, got {counts.dtype} of shape {counts.shape}"
        )
    levels = counts.shape[1]
    if not 1 <= levels <= LEVELS_MAX or sigmas.shape != (levels,):
        raise DomainError(
            f"sigmas must hold one number for each of {levels} levels (1 to {LEVELS_MAX}), got {sigmas!r}"
        )
    lo, hi = SIGMA_RANGE
    require("sigmas", sigmas, (sigmas >= lo) & (sigmas <= hi), f"from {lo:g} to {hi:g}")
    if counts.size and not (counts.min() >= 0 and counts.max() <= COUNT_MAX):
        raise DomainError(f"counts must be from 0 to {COUNT_MAX}, got values from {counts.min()} to {counts.max()}")
    if rates.shape not in ((), (levels,)):
        raise DomainError(f"q must be a sampling rate, or one for each of {levels} levels, got {q!r}")
    require("q", rates, (rates >= Q_MIN) & (rates <= 1), f"in [{Q_MIN:g}, 1]")
    if route not in ("contour", "fft"):
        raise DomainError(f"route must be 'contour' or 'fft', got {route!r}")
    n_threads = threads(n_threads)
    m = 1 / sigmas * UP  # rounded up: no more noise than there was
    return (
        counts,
        m,
        np.ascontiguousarray(np.broadcast_to(rates, levels)),
        within("delta", delta, 0, 1, "()"),
        n_threads,
    )


def _mu_upper(counts: np.ndarray, m: np.ndarray) -> np.ndarray:
    """sqrt(sum k m^2): the sum of J terms >= 0 is off by (J + 2)u at most, the root halves it."""
    out = np.empty(counts.shape[0])
    for at in range(0, out.size, BLOCK):
        out[at : at + BLOCK] = counts[at : at + BLOCK].astype(float) @ (m * m)
    return np.sqrt(out) * (1 + (m.size + 4) * U)


def _contour(counts, m, q, delta: float, n_threads: int, progress) -> tuple[np.ndarray, int]:
    """(upper bounds, how many are Chernoff's), the larger over both directions."""
    k_total = max(
        1.0,
        max(float(counts[at : at + BLOCK].sum(axis=1, dtype=np.int64).max()) for at in range(0, len(counts), BLOCK)),
    )
    tilts = _tilts(counts, m, q, delta)
    upper, wider = _direction(counts, m, q, 0, delta, k_total, tilts, n_threads, progress)
    up = _core.individual_tilts(Rows(m, q, np.ones_like(m)), 1, k_total, tilts, n_threads)
    above = np.zeros(upper.size, bool)
    for at in range(0, upper.size, BLOCK):
        part = slice(at, at + BLOCK)
        best, _ = _core.individual_chernoff(_int32(counts[part]), tilts, up, math.log(delta), n_threads)
        above[part] = best > upper[part]
    rows = np.flatnonzero(above)
    if rows.size:  # ADD may be the larger: both are close for q near 1 only
        other, wider_add = _direction(counts[rows], m, q, 1, delta, k_total, tilts, n_threads, lambda *_: None)
        upper[rows] = np.maximum(upper[rows], other)
        wider += wider_add
    return upper, wider


def _int32(counts: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(counts, dtype=np.int32)


def _tilts(counts, m, q, delta: float) -> np.ndarray:
    """Tilts around sqrt(-2 log delta)/sd for the variances q^2 (e^{m^2} - 1) k met, and down to where rare jumps of
    size m take over, about 2 + 4/m^2; 24 bits, so that 1 + t is exact."""
    weight = q * q * np.expm1(np.minimum(m * m, 50.0))
    variance = np.concatenate([counts[at : at + BLOCK].astype(float) @ weight for at in range(0, len(counts), BLOCK)])
    variance = variance[variance > 0]
    if not variance.size:
        return np.array([1.0])
    reach = math.sqrt(2.0 - 2 * math.log(delta))
    lo, hi = (
        0.25 * min(reach / math.sqrt(variance.max()), 2 + 4 / float(m.max()) ** 2),
        2.0 * reach / math.sqrt(variance.min()),
    )
    lo, hi = max(min(lo, 50.0), 1e-3), max(min(hi, 1e3), 2.0)
    n = int(min(TILTS, 2 + math.ceil(math.log(hi / lo) / math.log(RATIO))))
    fraction, exponent = np.frexp(np.geomspace(lo, hi, n))
    return np.ldexp(np.floor(fraction * 2**24) / 2**24, exponent)


def _direction(counts, m, q, add: int, delta: float, k_total: float, tilts, n_threads: int, progress):
    log_delta, n = math.log(delta), len(counts)
    up = _core.individual_tilts(Rows(m, q, np.ones_like(m)), add, k_total, tilts, n_threads)
    upper, which = np.empty(n), np.empty(n, np.int32)
    for at in range(0, n, BLOCK):
        part = slice(at, at + BLOCK)
        upper[part], which[part] = _core.individual_chernoff(_int32(counts[part]), tilts, up, log_delta, n_threads)
    which[upper == 0] = -1  # Chernoff proves eps = 0
    loose = np.ones(n, bool)
    loose[which < 0] = False
    for margin, nats in ((MARGIN, NATS), (1.4, 26.0)):  # the few that did not fit their group get more room in another
        rows = np.flatnonzero(loose)
        rows = rows[np.argsort(which[rows], kind="stable")]
        for start, stop in _groups(which[rows]):
            block = rows[start:stop]
            own, values, gap = _int32(counts[block]), upper[block], np.full(block.size, np.inf)
            levels = Rows(m, q, own.mean(axis=0))
            _core.individual_group(levels, add, margin, nats, k_total, own, log_delta, n_threads, values, gap)
            upper[block], loose[block] = values, _is_loose(gap, values)  # a status other than 0 leaves bounds and gaps
            progress(n - rows.size + stop, n)
    for route, most in (("contour", SINGLY), ("auto", GRIDS)):
        rows = np.flatnonzero(loose)
        for i in rows if rows.size <= most else ():
            bound = _query(counts[i], m, q, add, delta, route, n_threads)
            if bound is not None:
                if not (add or bound.lower <= upper[i]):
                    known = (0.0, upper[i], upper[i], "individual")
                    raise contradiction(
                        counts[i].tolist(), known, (bound.lower, bound.estimate, bound.upper, bound.route)
                    )
                upper[i] = min(upper[i], bound.upper)
                loose[i] = _is_loose(bound.upper - bound.lower, bound.upper)
    return upper, int(loose.sum())


def _query(row, m, q, add: int, delta: float, route: Any, n_threads: int):
    """The bound that the library has for one record, or None if the route declines."""
    sigmas = np.maximum(1 / m * DOWN, SIGMA_RANGE[0])
    steps = (poisson_subsampled(gaussian(sigmas[j]), q[j]) * int(row[j]) for j in np.flatnonzero(row))
    try:
        return query.epsilon(compose(*steps), delta, direction=DIRECTIONS[add], route=route, n_threads=n_threads)
    except AccuracyError:
        return None


def _groups(which: np.ndarray):
    """(start, stop) of runs of equal entries of a sorted array, cut at BLOCK."""
    ends = np.append(np.flatnonzero(np.diff(which)) + 1, which.size)
    start = 0
    for end in ends:
        while start < end:
            stop = min(start + BLOCK, int(end))
            yield start, stop
            start = stop


def _is_loose(gap: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return gap > LOOSE * np.maximum(upper, 1e-3)  # a bound is not loose for a gap of 1e-6 near 0
