"""How often every step of a log ran, and in which order; and many lines of a log at once.

Steps are counted by their key (see `logs`). Where Gaussian ones have more than DISTINCT keys they are kept as columns,
8 bytes each where rate and count are those of all, at most 24, so that a log of millions of distinct steps needs no
object for any of them. Where nobody will ask for the list, more than ROOM distinct rows become moments
(compression.py), whose size does not grow.

Of a block of lines all is asked that is asked of a line, of whole columns. A block that fails is left to be read line
by line, with nothing of it recorded: that finds the line and the words for what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import ColumnsRun, shared
from .bound import DomainError
from .recorded import RecordedRun
from .step_moments import StepMoments
from .what.mechanism import K_MAX, SIGMA_RANGE, Mechanism, Run

Key = tuple[float, float, str, int, int]
"""sigma, q, sampler, and the sizes that its sampler needs: 0, 0 where it needs none."""

PLAIN = ("poisson", 0, 0)

BLOCK = 1 << 14
"""Lines of a block: with ten columns the words of one take 10 MB."""

DISTINCT = 1 << 16
"""Most keys of Gaussian steps; about 15 MB."""

ROOM = 1 << 20
"""Rows of columns that are not merged for their number."""


class Tally:
    """Counts of steps by key, in order of first appearance, and columns of Gaussian steps beyond DISTINCT keys; of very
    many, unless they are to be `listed`, the moments alone."""

    def __init__(self, listed: bool = True) -> None:
        self._listed = listed
        self._moments: StepMoments | None = None  # all columns, once there is one
        self.counts: dict[Key, int] = {}
        self._columns: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []  # as those of ColumnsRun
        self._rows, self._most = 0, ROOM

    def add(self, key: Key, n: int) -> int:
        """Count n more of a step; returns how many there are, of one whose key is kept."""
        total = self.counts[key] = self.counts.get(key, 0) + n
        if len(self.counts) > DISTINCT:
            self._spill()
        return total

    def add_many(self, keys: list[Key], which: NDArray[Any], sigma: NDArray[Any], n: NDArray[Any]) -> bool:
        """Count n[i] more of the step keys[which[i]] with noise sigma[i]; False, with nothing counted, where these are
        too many of one step."""
        order = np.lexsort((sigma, which))
        at = np.flatnonzero(_changed(sigma[order], which[order]))
        first, total = order[at], np.add.reduceat(n[order], at)
        if total.max() > K_MAX:
            return False
        if self._columns or self._moments:
            plain = np.array([key[2:] == PLAIN for key in keys])[which[first]]
            rate = np.array([key[1] for key in keys])[which[first]]
            self._keep(sigma[first[plain]], rate[plain], total[plain])
            first, total = first[~plain], total[~plain]
        counts: dict[Key, int] = {}
        for i in np.argsort(first).tolist():
            key: Key = (float(sigma[first[i]]), *keys[which[first[i]]][1:])
            counts[key] = counts.get(key, self.counts.get(key, 0)) + int(total[i])
            if counts[key] > K_MAX:
                return False
        self.counts.update(counts)
        if len(self.counts) > DISTINCT:
            self._spill()
        return True

    def _spill(self) -> None:
        """Keep Gaussian steps as columns from now on."""
        plain = [key for key in self.counts if key[2:] == PLAIN]
        sigma, q = (np.array([key[i] for key in plain], np.float64) for i in (0, 1))
        self._keep(sigma, q, np.array([self.counts.pop(key) for key in plain], np.int64))

    def _keep(self, *columns: NDArray[Any]) -> None:
        """Add rows; merged, where these are many times what they were when merged."""
        sigma, q, count = columns
        if not sigma.size:
            return
        if self._moments:
            self._gather(sigma, q, count)
        else:
            self._columns.append((sigma, shared(q), shared(count)))
            self._rows += sigma.size
        if self._rows > self._most:
            rows = self._rows
            sigma, q, count = self._joined().merged()
            self._columns = [(sigma, shared(q), shared(count))]
            self._rows = sigma.size
            if self._rows > ROOM and not self._listed:
                self._moments, self._columns, self._rows = StepMoments(), [], 0
                for first in range(0, sigma.size, BLOCK):
                    self._gather(*(column[first : first + BLOCK] for column in (sigma, q, count)))
            self._most = ROOM + (2 * self._rows if 2 * self._rows < rows else 4 * rows)

    def _gather(self, sigma: NDArray[Any], q: NDArray[Any], count: NDArray[Any]) -> None:
        """Add the moments of rows."""
        assert self._moments is not None
        self._moments.add_many(1 / sigma, q, count)

    def _joined(self) -> ColumnsRun:
        """All rows; the columns are let go."""
        parts, self._columns = self._columns, []
        sigma, q, count = _joined(parts)
        return ColumnsRun(sigma, 1.0, q, count)

    def run(self, made: Callable[..., Mechanism]) -> Run:
        """All that was counted, `made` making the step of a key; it takes no more."""
        few = Run(tuple((made(*key), n) for key, n in self.counts.items()))
        if self._moments:
            return RecordedRun.joined([(RecordedRun({}, self._moments, self._moments), 1)]) + few
        if not self._columns:
            return few
        sigma, q, count = self._joined().merged()
        many = ColumnsRun(sigma, 1.0, shared(q), shared(count))
        return many + few if self.counts else many


class Order(NamedTuple):
    """Steps as they ran: in row i, n[i] times the step of `steps` that has the number which[i]."""

    steps: Run
    which: NDArray[np.int64]
    n: NDArray[np.int64]

    def prefixes(self, at: list[int]) -> Iterator[Run]:
        """The run of the first k steps, for every k of `at`, which ascend."""
        if self.n.sum(dtype=np.float64) > 2.0**62:
            raise DomainError(f"the first steps of a run of up to 4e18 are taken, got {self.n.sum(dtype=float):.3g}")
        ends = np.cumsum(self.n)
        counts, done = np.zeros(self.steps.distinct, np.int64), 0
        for k in at:
            whole = int(np.searchsorted(ends, k, "right"))
            np.add.at(counts, self.which[done:whole], self.n[done:whole])
            done, rest = whole, k - (int(ends[whole - 1]) if whole else 0)
            if rest:
                counts[self.which[whole]] += rest
            yield self._run(counts)
            if rest:
                counts[self.which[whole]] -= rest

    def _run(self, counts: NDArray[np.int64]) -> Run:
        """The run of so many of every step."""
        if not isinstance(self.steps, ColumnsRun):
            return Run(tuple((step, n) for (step, _), n in zip(self.steps.parts, counts.tolist(), strict=True) if n))
        sigma, q, _ = self.steps.columns
        ran = counts > 0
        return ColumnsRun(sigma[ran], self.steps.sensitivity, q[ran] if q.ndim else q, counts[ran])


def order_of(run: Run) -> Order:
    """The order of `parts`."""
    return Order(run, np.arange(len(run.parts)), np.array([n for _, n in run.parts], np.int64))


class Rows:
    """The rows of an order as they are read: steps by key, neighbours that are equal merged."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[float, str, int, int], int] = {}  # numbers of keys without their noise
        self._columns: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []  # noise, number of the kind, count
        self._last: list[tuple[Key, int]] = []  # the rows that are no columns yet

    def add(self, key: Key, n: int) -> None:
        """n more of a step."""
        if self._last and self._last[-1][0] == key:
            n += self._last.pop()[1]
        self._last.append((key, n))
        if len(self._last) == BLOCK:
            self._flush()

    def add_many(self, keys: list[Key], which: NDArray[Any], sigma: NDArray[Any], n: NDArray[Any]) -> None:
        """As `Tally.add_many`."""
        self._flush()
        kind = np.array([self._kinds.setdefault(key[1:], len(self._kinds)) for key in keys], np.int64)[which]
        at = np.flatnonzero(_changed(sigma, kind))
        self._columns.append((sigma[at], shared(kind[at]), shared(np.add.reduceat(n, at))))

    def _flush(self) -> None:
        rows, self._last = self._last, []
        if rows:
            keys, n = [key for key, _ in rows], np.array([n for _, n in rows], np.int64)
            self.add_many(keys, np.arange(len(rows)), np.array([key[0] for key in keys], np.float64), n)

    def order(self, made: Callable[..., Mechanism], times: Callable[[Key, int], int]) -> Order:
        """All rows, `made` making the step of a key, which ran times(key, n) times where a log counts n; it takes no
        more."""
        self._flush()
        if not self._columns:
            return order_of(Run(()))
        parts, self._columns = self._columns, []
        sigma, kind, n = _joined(parts)
        kind, n = (np.broadcast_to(column, sigma.shape) for column in (kind, n))
        at = np.flatnonzero(_changed(sigma, kind))  # neighbours in different blocks
        sigma, kind, n = sigma[at], kind[at], np.add.reduceat(n, at)
        for number, of in enumerate(self._kinds):
            for i in np.flatnonzero(kind == number).tolist() if of[1:] != PLAIN else ():
                n[i] = times((float(sigma[i]), *of), int(n[i]))
        ascending = np.lexsort((kind, sigma))
        new = _changed(sigma[ascending], kind[ascending])
        which = np.empty(sigma.size, np.int64)
        which[ascending] = np.cumsum(new) - 1
        sigma, kind, kinds = sigma[ascending[new]], kind[ascending[new]], list(self._kinds)
        if sigma.size > DISTINCT and all(of[1:] == PLAIN for of in kinds):
            q = np.array([of[0] for of in kinds])[kind]
            return Order(ColumnsRun(sigma, 1.0, shared(q), np.array(1)), which, n)
        steps = ((made(x, *kinds[of]), 1) for x, of in zip(sigma.tolist(), kind.tolist(), strict=True))
        return Order(Run(tuple(steps)), which, n)


def _joined(parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[Any], ...]:
    """Three columns of blocks of rows; of the last two one entry, where it is that of all."""
    joined = [np.concatenate([part[0] for part in parts])]
    for i in (1, 2):
        seen = {part[i].item() for part in parts if not part[i].ndim}
        if len(seen) == 1 and not any(part[i].ndim for part in parts):
            joined.append(parts[0][i])
        else:
            joined.append(np.concatenate([np.broadcast_to(part[i], part[0].shape) for part in parts]))
    return tuple(joined)


def _changed(sigma: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are not those before them."""
    new = np.ones(sigma.size, bool)
    new[1:] = (np.diff(sigma) != 0) | (np.diff(other) != 0)
    return new


def grouped(size: int, columns: list[Any]) -> tuple[list[int], NDArray[Any]]:
    """(first, which): where the distinct rows of columns of numbers or words stand first, and which of them each is."""
    which = np.zeros(size, np.int64)
    for column in columns:
        if len(set(column) if isinstance(column, list) else column[column != column[0]]) <= isinstance(column, list):
            continue  # all are alike
        distinct, code = np.unique(np.asarray(column), return_inverse=True)
        if distinct.size > 1:
            which = np.unique(which * distinct.size + code, return_inverse=True)[1]
    return np.unique(which, return_index=True)[1].tolist(), which


def allowed_noise(sigma: NDArray[Any]) -> bool:
    """Whether `gaussian` takes all."""
    lo, hi = SIGMA_RANGE
    return bool(np.all((sigma >= lo) & (sigma <= hi)))


def whole_numbers(column: NDArray[Any], least: int) -> NDArray[np.int64] | None:
    """The column as integers from `least` to K_MAX; None where one is no such number."""
    good = (column >= least) & (column <= K_MAX)
    if not np.all(good) or np.any(column != np.floor(column)):
        return None
    return column.astype(np.int64)
