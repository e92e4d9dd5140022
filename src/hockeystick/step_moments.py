"""What is kept of many distinct Gaussian steps: whole-numbered Chebyshev moments of their shifts m = sensitivity/sigma.

Steps of one sampling rate have moments in boxes of an eighth of an octave (csrc/step_moments.c); where there are too
many rates, cells of rates share moments in both. Order, merging and taking away change no bit.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .bound import DomainError
from .outward import U

BOXES, DEGREES, LOWEST = _core.STEP_BOXES, _core.STEP_MOMENTS, _core.STEP_LOWEST
OCTAVE = 8
"""Boxes to the octave: twice a shift lies so many boxes further on, at the same place."""
RATES_MAX = 256
"""Most sampling rates that are kept apart: 84 kB each, and a dozen rows of what a rule is off by for every octave. The
steps of more share cells of rates, of which one with a box of shifts takes 4 kB."""
CELLS, RATE_DEGREES, RATE_LOWEST = _core.RATE_CELLS, _core.RATE_DEGREES, _core.RATE_LOWEST

_DEGREE = np.arange(DEGREES)
MOMENT_ERROR = 2.0**-51 + 1.5 * _DEGREE * (_DEGREE - 1) * U
"""Error of a step's T_j in the sums of csrc/step_moments.c, and, less its first term, of T_j computed by `chebyshev`
[theory: compression.moments]."""


class StepMoments:
    """The moments of steps, for every sampling rate, or for every cell of rates where these have been too many.

    sums : by rate, of all boxes.   cells : by `cell BOXES + box`; if there are some, `sums` has those of plain steps
    alone.   boxes : what a rule has read off them (compression.py), None once they have changed.
    """

    __slots__ = ("_counts", "boxes", "cells", "sums")

    def __init__(self) -> None:
        self.sums: dict[float, NDArray[np.uint64]] = {}
        self.cells: dict[int, NDArray[np.uint64]] = {}
        self._counts: dict[float, int] | None = None  # number of steps of every rate; None: to be read off the sums
        self.boxes: Any = None

    def add(self, m: NDArray[np.float64], q: float, k: NDArray[np.int64] | None, sign: int = 1) -> None:
        """Add steps of one rate, or with sign -1 take away what was added."""
        _core.step_moments_add(m, k, sign, self._changing(q))

    def _changing(self, q: float) -> NDArray[np.uint64]:
        """The sums of one rate, which are to change: what was read off them is forgotten."""
        self._counts = self.boxes = None
        if q not in self.sums:
            self.sums[q] = np.zeros((BOXES, DEGREES, 2), np.uint64)
        return self.sums[q]

    def _cell(self, key: int) -> NDArray[np.uint64]:
        """The sums of a cell, which are to change."""
        if key not in self.cells:
            self.cells[key] = np.zeros((DEGREES, RATE_DEGREES, 3), np.uint64)
        return self.cells[key]

    def _pour(self) -> None:
        """Put the sums of all rates below 1 into cells, exactly (csrc/step_moments.c)."""
        if all(q == 1 for q in self.sums):
            return
        poured = StepMoments()  # there are no cells yet
        for q, sums in self.sums.items():
            if q == 1:
                poured.sums[q] = sums
                continue
            first = _key(1.0, q) // BOXES * BOXES
            for box in np.flatnonzero(sums.any(axis=(1, 2))).tolist():
                _core.rate_moments_of(q, sums[box], poured._cell(first + box))
        self._counts = self.boxes = None
        self.sums, self.cells = poured.sums, poured.cells

    def add_step(self, m: float, q: float, n: int) -> None:
        """Add one step n times."""
        sums, rate = self.sums.get(q), q
        if sums is None:
            if len(self.sums) >= RATES_MAX:
                self._pour()
            if q < 1 and self.cells:
                key = _key(m, q)
                sums, rate = self._cell(key), end_of_cell(key // BOXES)
            else:
                sums = self._changing(q)
        counts, self._counts, self.boxes = self._counts, None, None  # until the sums have the step
        if sums.shape[0] == BOXES:
            _core.step_moments_add_one(m, n, sums)
        else:
            _core.rate_moments_add_one(m, q, n, sums)
        if counts is not None:
            counts[rate] = counts.get(rate, 0) + n
            self._counts = counts

    def add_many(self, m: NDArray[np.float64], q: NDArray[np.float64], k: NDArray[np.int64] | None) -> None:
        """Add steps of several rates, q an array or one for all."""
        rates = np.unique(q) if q.ndim and (q != q[0]).any() else q.ravel()[:1]
        if self.cells or len(self.sums.keys() | set(rates.tolist())) > RATES_MAX:
            return self._add_to_cells(m, np.broadcast_to(q, m.shape), k)
        for rate in rates.tolist():
            here = slice(None) if rates.size == 1 else q == rate
            self.add(np.ascontiguousarray(m[here]), rate, k if k is None else np.ascontiguousarray(k[here]))
        return None

    def _add_to_cells(self, m: NDArray[np.float64], q: NDArray[np.float64], k: NDArray[np.int64] | None) -> None:
        self._pour()
        plain = q == 1
        if plain.any():
            self.add(np.ascontiguousarray(m[plain]), 1.0, k if k is None else np.ascontiguousarray(k[plain]))
            m, q, k = m[~plain], q[~plain], k if k is None else k[~plain]
        if m.size == 0:
            return
        keys = _keys(m, q)
        order = np.argsort(keys, kind="stable")
        m, q, k, keys = m[order], q[order], k if k is None else k[order], keys[order]
        ends = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), keys.size]
        for first, last in itertools.pairwise(ends):
            here = slice(first, last)
            _core.rate_moments_add(m[here], q[here], k if k is None else k[here], 1, self._cell(int(keys[first])))

    def join(self, other: StepMoments, times: int = 1) -> None:
        """Add the moments of another run so many times, or take away, where that is negative, what was added."""
        self._counts = self.boxes = None
        rates = {q for q, sums in other.sums.items() if sums.any()}
        if times < 0 and not self.cells and (other.cells or rates - self.sums.keys()):
            raise DomainError("steps of a sampling rate that are to be taken back were not recorded")
        if self.cells or other.cells or len(self.sums.keys() | rates) > RATES_MAX:
            self._pour()
            other = other.copy()
            other._pour()
        parts: list[tuple[dict[Any, NDArray[np.uint64]], dict[Any, NDArray[np.uint64]]]]
        parts = [(self.sums, other.sums), (self.cells, other.cells)]
        for mine, its in parts:
            for key, sums in its.items():
                double, left = sums.copy(), abs(times)
                kept = mine.setdefault(key, np.zeros_like(sums))
                while left:
                    if left & 1:
                        _core.moments_join(1 if times > 0 else -1, double, kept)
                    _core.moments_join(1, double.copy(), double)
                    left >>= 1

    def copy(self) -> StepMoments:
        """The same moments, apart from these."""
        made = StepMoments()
        made.sums = {q: sums.copy() for q, sums in self.sums.items()}
        made.cells = {key: sums.copy() for key, sums in self.cells.items()}
        made._counts = None if self._counts is None else dict(self._counts)
        return made

    def without_empty(self) -> StepMoments:
        """The same, of what has sums that are not all 0."""
        made = StepMoments()
        made.sums = {q: sums for q, sums in self.sums.items() if sums.any()}
        made.cells = {key: sums for key, sums in self.cells.items() if sums.any()}
        return made

    def counts(self) -> dict[float, int]:
        """Number of steps of every rate that has some, of those in cells by the upper ends of these; not to be
        changed."""
        if self._counts is None:
            self._counts = self._read_counts()
        return self._counts

    def _read_counts(self) -> dict[float, int]:
        found: dict[float, int] = {}
        for q, sums in self.sums.items():
            low, high = sums[:, 0, 0], sums[:, 0, 1]
            if high.max() < 1 << 36:  # no more than 2^50 of a box, 2^59 of all
                n = int(((high << np.uint64(14)) | (low >> np.uint64(50))).sum())
            else:
                n = sum(int(count) for count in low) + (sum(int(count) for count in high) << 64) >> 50
            if n:
                found[q] = n
        for key, sums in self.cells.items():
            n = sum(int(word) << 64 * i for i, word in enumerate(sums[0, 0].tolist())) >> 110
            if n:
                rate = end_of_cell(key // BOXES)
                found[rate] = found.get(rate, 0) + n
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepMoments):
            return NotImplemented
        if self.counts() != other.counts():
            return False
        mine, its = self.without_empty(), other.without_empty()
        return _same(mine.sums, its.sums) and _same(mine.cells, its.cells)

    __hash__ = None  # type: ignore[assignment]


def _same(mine: dict[Any, NDArray[np.uint64]], its: dict[Any, NDArray[np.uint64]]) -> bool:
    return mine.keys() == its.keys() and all(np.array_equal(mine[key], its[key]) for key in mine)


def _key(m: float, q: float) -> int:
    """Of a step of a rate below 1, `cell BOXES + box`."""
    (x, e), (y, f) = math.frexp(m), math.frexp(q)
    cell = CELLS * (f - 1 - RATE_LOWEST) + int(CELLS * (2 * y - 1))
    return cell * BOXES + OCTAVE * (e - 1 - LOWEST) + int(OCTAVE * (2 * x - 1))


def _keys(m: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same of many."""
    (x, e), (y, f) = np.frexp(m), np.frexp(q)
    cell = CELLS * (f.astype(np.int64) - 1 - RATE_LOWEST) + (CELLS * (2 * y - 1)).astype(np.int64)
    return cell * BOXES + OCTAVE * (e.astype(np.int64) - 1 - LOWEST) + (OCTAVE * (2 * x - 1)).astype(np.int64)


def places_of_cells(cell):
    """(middle, half width) of cells of rates, exactly."""
    scale = np.ldexp(1.0, RATE_LOWEST + cell // CELLS)
    return scale * (1 + (2 * (cell % CELLS) + 1) / (2 * CELLS)), scale / (2 * CELLS)


def end_of_cell(cell: int) -> float:
    """Where a cell of rates ends, as in `ends_of_cells`."""
    octave, part = divmod(cell + 1, CELLS)
    return min(math.ldexp(1 + part / CELLS, RATE_LOWEST + octave), 1 - U)


def ends_of_cells(cell):
    """(low, high) of cells, as far as there are rates below 1."""
    middle, half = places_of_cells(cell)
    return middle - half, np.minimum(middle + half, 1 - U)


def places(box):
    """(middle, half width) of boxes, exactly."""
    scale = np.ldexp(1.0, LOWEST + box // 8)
    return scale * (1 + (2 * (box % 8) + 1) / 16), scale / 16


def chebyshev(x: NDArray[np.float64], degrees: int = DEGREES) -> NDArray[np.float64]:
    """T_0..T_{degrees-1}, the last axis, each within 1.5 j (j-1) units of x's type for |x| <= 1
    [theory: compression.moments]."""
    t = np.empty((*x.shape, degrees), x.dtype)
    t[..., 0] = 1
    t[..., 1:2] = x[..., None]
    for j in range(2, degrees):
        t[..., j] = 2 * x * t[..., j - 1] - t[..., j - 2]
    return t
