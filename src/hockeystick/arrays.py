"""Runs of many Gaussian steps from arrays, without an object a step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core import Rows
from .bound import DomainError
from .recorded import Gathered, RecordedRun
from .step_moments import StepMoments
from .what.mechanism import K_MAX, Q_MIN, SIGMA_RANGE, Mechanism, Run, gaussian, poisson_subsampled, positive
from .what.pair import in_order, sorted_by
from .what.vectors import reals, require

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

CHUNK = 1 << 16
"""Steps whose moments are taken at a time."""


def compose_arrays(
    sigma: ArrayLike | Iterator[ArrayLike], q: ArrayLike = 1.0, count: ArrayLike = 1, *, sensitivity: float = 1.0
) -> Run:
    """The run of count[i] Gaussian steps of noise sigma[i] on Poisson samples of rate q[i], for every i.

    The same as `compose` of `poisson_subsampled(gaussian(sigma[i], sensitivity=sensitivity), q[i]) * count[i]`, at the
    cost of the arrays. Queries of many distinct steps go through a rule of few (route "compressed"), whose certified
    error is in the budget, and take one to four milliseconds once the arrays were read, ten where samples are sparse;
    the order of the entries changes no bit of an answer.

    Parameters
    ----------
    sigma : array_like
        Standard deviations of the noise, one-dimensional; each sigma/sensitivity in [1e-3, 1e9]. An iterator gives
        such arrays one after the other, with one q and count for all; of these steps the moments alone are kept, so
        that memory is that of a chunk, and the run has no `parts`.
    q : array_like, default 1
        Sampling rates in [1e-12, 1]: one for all, or one for each sigma; 1 is no sampling.
    count : array_like of int, default 1
        How often each step runs, from 1 to 1e12: one for all, or one for each sigma.
    sensitivity : float, default 1
        Of all steps, as in `gaussian`.

    Returns
    -------
    Run
        `parts` of it, made when asked for, are merged and in ascending order of sigma and q.

    Raises
    ------
    DomainError
        For the first entry outside its domain, by its index, or for shapes that do not agree.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import numpy as np
    >>> sigma = np.linspace(0.9, 1.3, 100_000)
    >>> run = hs.compose_arrays(sigma, 1e-3)
    >>> run.steps, hs.epsilon(run, 1e-6).route
    (100000, 'compressed')
    >>> hs.compose_arrays([2.0, 1.0, 2.0], 0.1).parts[1]
    (PoissonSubsampled(base=Gaussian(sigma=2.0, sensitivity=1.0), q=0.1), 2)
    """
    sensitivity = positive("sensitivity", sensitivity)
    if isinstance(sigma, Iterator):
        return _of_chunks(sigma, q, count, sensitivity)
    sigmas, rates = reals("sigma", sigma), reals("q", q)
    counts = np.asarray(count)
    if sigmas.ndim != 1:
        raise DomainError(f"sigma must be one-dimensional, got an array of shape {sigmas.shape}")
    for name, other in (("q", rates), ("count", counts)):
        if other.shape not in ((), sigmas.shape):
            raise DomainError(f"{name} must be one number or as many as sigma, {sigmas.size}, got shape {other.shape}")
    if counts.dtype.kind not in "iu":
        raise DomainError(f"count must be integers from 1 to {K_MAX:.0e}, got an array of {counts.dtype}")
    lo, hi = SIGMA_RANGE
    rates, counts = _one_for_all(rates, Q_MIN, 1), _one_for_all(counts, 1, K_MAX)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = sigmas / sensitivity
    require("sigma", sigmas, (scale >= lo) & (scale <= hi), f"numbers > 0 with sigma/sensitivity from {lo:g} to {hi:g}")
    require("q", rates, (rates >= Q_MIN) & (rates <= 1), f"in [{Q_MIN:g}, 1]")
    require("count", counts, (counts >= 1) & (counts <= K_MAX), f"from 1 to {K_MAX:.0e}")
    run = ColumnsRun(sigmas.copy(), sensitivity, rates.copy(), counts.astype(np.int64))
    if run.steps > K_MAX:
        run.merged()  # whose counts are checked
    return run


Run.from_arrays = staticmethod(compose_arrays)  # type: ignore[method-assign]


def _of_chunks(chunks: Iterator[ArrayLike], q: ArrayLike, count: ArrayLike, sensitivity: float) -> Run:
    """The run of all chunks, known by its moments."""
    if np.ndim(q) or np.ndim(count):
        raise DomainError("of an iterator of arrays of sigma, q and count must be one number each")
    moments = StepMoments()
    for chunk in chunks:
        for first in range(0, np.size(chunk), CHUNK):
            part = compose_arrays(np.asarray(chunk)[first : first + CHUNK], q, count, sensitivity=sensitivity)
            assert isinstance(part, ColumnsRun)  # of arrays
            moments.join(part.step_moments("add_remove"))
    return RecordedRun({}, moments, moments)


def _one_for_all(values: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    """The one number that all entries are, if it lies within its domain; else the values."""
    return shared(values) if values.ndim and values.size and low <= values[0] <= high else values


def shared(column: NDArray[Any]) -> NDArray[Any]:
    """One entry that holds for all, if there is one."""
    return column[0].reshape(()) if (column == column[0]).all() else column


class ColumnsRun(Gathered):
    """A run of Gaussian steps as columns; see `compose_arrays`."""

    __slots__ = ("columns", "sensitivity")

    def __init__(self, sigma, sensitivity: float, q, count) -> None:
        self.columns = sigma, q, count  # q and count of one entry hold for all
        self.sensitivity = sensitivity
        self._cache = {"unsettled": False}

    def __reduce__(self):
        sigma, q, count = self.columns
        return ColumnsRun, (sigma, self.sensitivity, q, count)

    def merged(self):
        """(sigma, q, count) of the distinct steps, in ascending order."""
        if "merged" not in self._cache:
            sigma, q, count = self.columns
            if q.ndim or count.ndim:
                order = sorted_by(sigma, q) if q.ndim else np.argsort(sigma, kind="stable")
                sigma, q, count = (x[order] if x.ndim else x for x in (sigma, q, count))
            else:
                sigma = np.sort(sigma)
            new = np.ones(sigma.size, bool)
            new[1:] = sigma[1:] != sigma[:-1]
            if q.ndim:
                new[1:] |= q[1:] != q[:-1]
            if not new.all():
                first = np.flatnonzero(new)
                sums = np.add.reduceat(np.broadcast_to(count.astype(np.float64), sigma.shape), first)
                count = np.add.reduceat(np.broadcast_to(count, sigma.shape), first)
                sigma, q = sigma[first], q[first] if q.ndim else q
                if np.any(sums > 2 * K_MAX) or np.any(count > K_MAX):
                    at = int(np.argmax(sums))
                    raise DomainError(
                        f"total count of sigma={float(sigma[at])!r} must be at most {K_MAX:.0e}, got {sums[at]:.6g}"
                    )
            self._cache["merged"] = sigma, *(np.broadcast_to(x, sigma.shape) for x in (q, count))
        return self._cache["merged"]

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:  # type: ignore[override]
        """Distinct steps and counts, in ascending order of sigma and q."""
        if "parts" not in self._cache:
            self._cache["parts"] = tuple(self._first(None))
        return self._cache["parts"]

    def _first(self, n: int | None):
        for sigma, q, count in zip(*(x[:n].tolist() for x in self.merged()), strict=True):
            yield poisson_subsampled(gaussian(sigma, sensitivity=self.sensitivity), q), count

    def _repeat(self, k: int) -> Run:
        sigma, q, count = self.columns
        return compose_arrays(sigma, q, _times(count, k), sensitivity=self.sensitivity)

    @property
    def steps(self) -> int:
        """Total number of steps."""
        sigma, _, count = self.columns
        if not count.ndim:
            return sigma.size * int(count)
        return sum(int(part.sum()) for part in np.split(count, range(CHUNK, count.size, CHUNK)))

    def __repr__(self) -> str:
        shown = [f"{n} x {step!r}" for step, n in self._first(4)]
        more = self.merged()[0].size - 4
        return f"Run({' + '.join(shown) or 'empty'}{f' + ... {more} more' if more > 0 else ''})"

    def is_gaussian(self, adjacency: str) -> bool:
        """Whether all pairs are of the Gaussian family: sampled steps have others under replace_one."""
        return adjacency != "replace_one" or bool(np.all(self.columns[1] == 1))

    def gaussian_facts(self) -> tuple[float, float, bool]:
        """As `pair.gaussian_facts`, whatever the order of the entries."""
        _, q, count = self.columns
        plain = q == 1
        if np.any(plain):
            return float(self.steps), math.inf, bool(np.all(plain))
        if q.size and q.min() == q.max():
            return float(self.steps), -self.steps * math.log1p(-float(q.max())), False
        return float(self.steps), math.fsum((-count * np.log1p(-q)).tolist()), False

    def gaussian_steps(self, adjacency: str) -> Rows:
        """The merged steps as arrays of (m, q, k)."""
        sigma, q, count = self.merged()
        m = self.sensitivity / sigma
        return in_order(2 * m if adjacency == "replace_one" else m, q.copy(), count.astype(float))

    @property
    def distinct(self) -> int:
        """Number of distinct steps, of long columns at most."""
        size = self.columns[0].size
        return size if size > CHUNK else self.merged()[0].size

    def step_moments(self, adjacency: str) -> StepMoments:
        """The moments of all steps, from the columns as they are."""
        moments = StepMoments()
        sigma, q, count = self.columns
        times = 2 if adjacency == "replace_one" else 1
        for first in range(0, sigma.size, CHUNK):
            part = slice(first, first + CHUNK)
            m = times * (self.sensitivity / sigma[part])
            k = count[part] if count.ndim else None if count == 1 else np.full(m.size, count)
            moments.add_many(m, q[part] if q.ndim else q, k)
        return moments


def _times(count: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    if int(count.max(initial=1)) * k > K_MAX:
        raise DomainError(f"number of steps must be at most {K_MAX:.0e}, got {int(count.max(initial=1)) * k}")
    return count * k
