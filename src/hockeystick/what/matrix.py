"""Matrix mechanisms with Poisson samples, step by step: every row a Gaussian step around a random shift, outside of an
event of small probability.

Row i of C x + z, given the rows before, is Gaussian noise around sum_j C_ij x_j, and the record is in round j with at
most the odds of a round that nothing else explains. While <y_<i, c_j> stays below t_ij for all columns c_j of C above
row i, these odds give independent rounds of rates p_ij that dominate the row; by Chernoff's bound they all stay below
with probability 1 - `failure` [theory: matrix.posterior, matrix.rates, matrix.conditional].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..bound import DomainError
from .given import GaussianMixture, gaussian_mixture
from .mechanism import Q_MIN, SIGMA_RANGE, Mechanism, Run, compose, noise, positive, within
from .vectors import reals, require

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ROUNDS_MAX, BANDS_MAX = 20_000, 256
SHIFTS = 64
"""Shifts of one row; more are merged upwards."""

TILTS, NEAR = np.geomspace(1e-3, 1e3, 25), np.geomspace(10**-0.25, 10**0.25, 17)
"""Arguments of Chernoff's bound, over the deviation of the noise, and beside the best: any is valid."""

DIGITS = 9
"""Rates are rounded up to so many digits: rows that differ by rounding are one step."""


@dataclass(frozen=True, slots=True)
class Failure(Mechanism):
    """An event outside of which the other steps bound what ran; see `failure`."""

    delta: float
    if not TYPE_CHECKING:
        open = True


def failure(delta: float) -> Failure:
    """An event of probability at most `delta`, outside of which the other steps of a run dominate what ran.

    Its delta is added to that of all other steps, at every eps: what a composition conditional on a likely event costs.
    The event must have at most this probability under both laws of every pair of neighbours.

    Parameters
    ----------
    delta : float
        In (0, 1).

    Returns
    -------
    Failure
        A step for `delta`, `log_delta` and `epsilon` under every adjacency.

    Raises
    ------
    DomainError
        If `delta` is not a number in its range.

    References
    ----------
    docs/theory/matrix.md.

    Examples
    --------
    >>> import hockeystick as hs
    >>> sure, unsure = hs.gaussian(1.0), hs.gaussian(1.0) + hs.failure(1e-3)
    >>> print(f"{hs.delta(sure, 2.0):.6f} {hs.delta(unsure, 2.0):.6f}")
    [0.020923, 0.020924] [0.021923, 0.021924]
    """
    return Failure(within("delta", delta, 0, 1, "()"))


def without_failures(run: Run) -> tuple[float, Run]:
    """The probabilities of all failures together, rounded up, and the other steps, which keep what is known of them."""
    if "sure" not in run._cache:
        run._cache["sure"] = _without_failures(run)
    return run._cache["sure"]


def _without_failures(run: Run) -> tuple[float, Run]:
    lost = [k * step.delta for step, k in run.parts if isinstance(step, Failure)]
    if not lost:
        return 0.0, run
    return math.fsum(lost) * (1 + 2**-50), Run(tuple(p for p in run.parts if not isinstance(p[0], Failure)))


def matrix_mechanism(matrix: ArrayLike, sigma: float, q: float, *, failure: float) -> Run:
    """A matrix mechanism C x + z whose rounds take Poisson samples of rate `q`, by conditional composition.

    In every round j a record takes part with probability `q`, independently, and then contributes a vector x_j of norm
    at most 1, which may depend on what was released. Row i releases sum_j C_ij x_j plus Gaussian noise: correlated
    noise for training (DP-FTRL), prefix sums. Every row is charged as `gaussian_mixture` whose weights hold unless an
    event of probability `failure` happens, which is charged as `failure(failure)`.

    Parameters
    ----------
    matrix : array_like
        Square, lower triangular, entries >= 0, at most 20,000 rows; at most 256 columns that are not 0 in any row. The
        fewer, the better the bound: it is meant for banded matrices. Columns of zeros are rounds that release nothing.
    sigma : float
        Standard deviation of the noise on every row, for contributions of norm 1.
    q : float
        Sampling rate of a round, in (0, 1].
    failure : float
        In (0, 1), below the delta that is asked for: 1e-2 of it costs little.

    Returns
    -------
    Run
        Mixtures and the failure, for `delta`, `log_delta` and `epsilon` under "add_remove" and "zero_out". Upper ends
        hold for the mechanism; lower ends are those of what is charged.

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    References
    ----------
    [CGH+23] for the method; docs/theory/matrix.md for the proof, with one bound of all that is known of a round.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import numpy as np
    >>> n = 1000
    >>> banded = np.eye(n) + 0.5 * np.eye(n, k=-1) + 0.25 * np.eye(n, k=-2)
    >>> sampled = hs.matrix_mechanism(banded, 10.0, 0.05, failure=1e-7)
    >>> whole = hs.gaussian(10.0 / np.linalg.norm(banded.sum(axis=1)))    # all records in every round
    >>> print(f"{hs.epsilon(sampled, 1e-5):.3f} {hs.epsilon(whole, 1e-5):.3f}")
    [1.510, 1.511] [38.149, 38.150]
    """
    rows, sigma = lower_triangular(matrix), positive("sigma", sigma)
    wide = int((rows > 0).sum(axis=1).max())
    if wide > BANDS_MAX:
        raise DomainError(f"matrix must have at most {BANDS_MAX} entries that are not 0 in a row, got {wide}")
    q, lost = within("q", q, Q_MIN, 1), _failure(failure)
    at, of = np.nonzero(rows)
    held = np.split(of, np.cumsum(np.bincount(at, minlength=len(rows)))[:-1])
    tests = sum(int((held_i < i).sum()) for i, held_i in enumerate(held))
    if rows.any():
        noise("sigma", sigma, float(rows.max()), (SIGMA_RANGE[0], math.inf))
    rates = _rates(rows / sigma, held, q, math.log(max(tests, 1)) - math.log(lost.delta))
    found: dict[tuple, int] = {}
    for i, columns in enumerate(held):
        if columns.size:
            key = (tuple(rows[i, columns].tolist()), tuple(rates[i].tolist()))
            found[key] = found.get(key, 0) + 1
    steps = zip(_mixtures(sigma, list(found)), found.values(), strict=True)
    return compose(*steps, *([(lost, 1)] if tests else []))


def _failure(value: object) -> Failure:
    try:
        return failure(value)  # type: ignore[arg-type]
    except DomainError as error:
        raise DomainError(str(error).replace("delta", "failure", 1)) from None


def lower_triangular(matrix: ArrayLike) -> np.ndarray:
    """The rows of a matrix >= 0, or a DomainError."""
    rows = reals("matrix", matrix)
    if rows.ndim != 2 or not 1 <= rows.shape[0] == rows.shape[1] <= ROUNDS_MAX:
        raise DomainError(
            f"matrix must be a square array of real numbers with 1 to {ROUNDS_MAX} rows, got shape {np.shape(matrix)}"
        )
    require("matrix", rows, (rows >= 0) & (rows < math.inf), "finite and >= 0")
    require("matrix", rows, rows == np.tril(rows), "lower triangular")
    return rows


def _rates(rows: np.ndarray, held, q: float, nats: float) -> list[np.ndarray]:
    """p_ij for the columns held of every row, from the products <c_j, c_j'> of the columns above it, in units of
    sigma."""
    bands = 1 + max(i - int(columns[0]) for i, columns in enumerate(held) if columns.size) if rows.any() else 1
    asked: dict[tuple[bytes, float], int] = {}
    out, places = [], []
    for i, columns in enumerate(held):
        out.append(np.full(columns.size, q))
        early = columns[columns < i]
        if not early.size:
            continue
        before = rows[
            max(0, i - bands) : i, max(0, int(early[0]) - bands) : i
        ]  # beyond are no entries of these columns
        own = before[:, early - i]
        for place, (products, square) in enumerate(zip(own.T @ before, (own * own).sum(axis=0).tolist(), strict=True)):
            if own[:, place].any():
                key = (products[products > 0].tobytes(), max(square, 1e-300))
                places.append((i, place, asked.setdefault(key, len(asked))))
    found = [_up(p) if p > q else q for p in _posteriors(list(asked), q, nats)]
    for i, place, at in places:
        out[i][place] = found[at]
    return out


def _posteriors(asked: list[tuple[bytes, float]], q: float, nats: float) -> list[float]:
    """p_ij for products and square of columns, by Chernoff's bound of <y_<i, c_j>: sum_j' x_j' <c_j, c_j'> plus noise
    of variance |c_j|^2; sums of positive terms, within 1e-12, which the last factor pays; what underflows is far below
    its last term."""
    if not asked:
        return []
    lines = [np.frombuffer(products) for products, _ in asked]
    wide = max(max(line.size for line in lines), 1)
    some = max(1, 2_000_000 // (wide * TILTS.size))
    out: list[float] = []
    for first in range(0, len(asked), some):
        part = range(first, min(first + some, len(asked)))
        products, square = np.zeros((len(part), 1, wide)), np.array([asked[i][1] for i in part])
        for line, i in zip(products, part, strict=True):
            line[0, : lines[i].size] = lines[i]

        def reach(tilt, products=products, square=square):  # [theory: matrix.rates]
            tilt = tilt / np.sqrt(square)[:, None]
            with np.errstate(over="ignore"):
                grown = np.log1p(q * np.expm1(tilt[:, :, None] * products)).sum(axis=2)
                return (nats + 0.5 * (tilt * np.sqrt(square)[:, None]) ** 2 + grown) / tilt

        best = TILTS[np.argmin(reach(TILTS[None, :]), axis=1)]
        top = reach(best[:, None] * NEAR).min(axis=1)
        odds = (top - 0.5 * square) * (1 + 1e-12) + 1e-12 * (1 + square)
        # [theory: matrix.posterior]
        out += np.where(odds > 0, q / (q + (1 - q) * np.exp(-np.clip(odds, 0.0, 700.0))), q).tolist()
    return out


def _up(p: float) -> float:
    """Rounded up to DIGITS digits."""
    unit = 10.0 ** (math.floor(math.log10(p)) + 1 - DIGITS)
    return min(1.0, (math.floor(p / unit) + 1) * unit * (1 + 2**-50))


def _mixtures(sigma: float, rows: list[tuple[tuple[float, ...], tuple[float, ...]]]) -> list[GaussianMixture]:
    """The mixtures of rows of entries and rates, those of equal length together."""
    out: dict[int, GaussianMixture] = {}
    for size in {len(entries) for entries, _ in rows}:
        at = [i for i, (entries, _) in enumerate(rows) if len(entries) == size]
        shifts, weights = _shifts(*(np.array([rows[i][part] for i in at]) for part in (0, 1)))
        for i, shift, weight in zip(at, shifts, weights, strict=True):
            held = weight > 1e-200
            if not (alike := shift[1:] == shift[:-1]).any() and held.all():
                out[i] = gaussian_mixture(sigma, shift.tolist(), weight.tolist())
                continue
            first = np.flatnonzero(np.append(True, ~alike))  # equal shifts are one
            shift, weight = shift[first], np.add.reduceat(weight, first)
            held = weight > 1e-200
            held[-1] = True
            out[i] = gaussian_mixture(sigma, shift[held].tolist(), weight[held].tolist())
    return [out[i] for i in range(len(rows))]


def _shifts(entries: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The laws of sum_j C_j B_j, B_j independent of rates p_j, a row each, with at most SHIFTS shifts: of more, those
    that it costs least to move are moved up to the next [theory: allocation.comparison]."""
    count, columns = entries.shape
    shift, weight = np.zeros((count, 1)), np.ones((count, 1))
    for c, p in zip(entries.T[:, :, None], rates.T[:, :, None], strict=True):
        shift = np.concatenate([shift, (shift + c) * (1 + 2**-52)], axis=1)
        weight = np.concatenate([weight * (1 - p), weight * p], axis=1)
        order = np.argsort(shift, axis=1, kind="stable")
        shift, weight = np.take_along_axis(shift, order, axis=1), np.take_along_axis(weight, order, axis=1)
        weight[:, -1] += np.maximum(0.0, 1 - weight.sum(axis=1))
        spare = shift.shape[1] - SHIFTS
        if spare > 0:
            cost = np.full(shift.shape, math.inf)  # the last shift stays, whatever its weight
            cost[:, :-1] = weight[:, :-1] * np.diff(shift, axis=1)
            cheap = np.argsort(cost, axis=1, kind="stable")[:, :spare]
            keep = np.ones(shift.shape, bool)
            np.put_along_axis(keep, cheap, False, axis=1)
            starts = np.r_[0, np.flatnonzero(keep)[:-1] + 1]  # the last of every row is kept
            weight = np.add.reduceat(weight.ravel(), starts).reshape(count, SHIFTS)
            shift = shift[keep].reshape(count, SHIFTS)
    weight /= weight.sum(axis=1, keepdims=True)
    # Sums of positive terms: probabilities of large shifts are within 4u of themselves an entry, which is moved up.
    above = columns * 2.0**-48
    rest = np.maximum(above - np.cumsum(weight, axis=1), 0.0)  # still to be taken after each shift
    weight -= np.diff(-rest, axis=1, prepend=-above)
    weight[:, -1] += above
    return shift, np.maximum(weight, 0.0)
