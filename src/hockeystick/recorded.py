"""What an accountant has recorded, as a run that costs the same however many distinct steps there were."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core import Rows
from .bound import AccuracyError, DomainError
from .serial import brief, exact_keys
from .step_moments import BOXES, CELLS, DEGREES, OCTAVE, RATE_DEGREES, RATE_LOWEST, StepMoments, ends_of_cells
from .what.mechanism import Gaussian, Mechanism, PoissonSubsampled, Run, compose
from .what.pair import gaussian_steps
from .what.sampling import as_gaussian

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from .routes.kept import Lines

_NOTHING = np.empty((0, 3))

MOST = 1 << 62
"""Most steps of such moments, whose sums are then exact (csrc/step_moments.c)."""


def row_of(step: Mechanism) -> tuple[float, float] | None:
    """(shift, rate) of a Gaussian step or a Poisson sample of one; None of others."""
    base = step.base if isinstance(step, PoissonSubsampled) else step
    return as_gaussian(step, "add_remove") if isinstance(base, Gaussian) else None


def gather(moments: StepMoments, parts, lines: Lines | None = None) -> bool:
    """Add the moments of every (step, n), and record it for the lines; False, with some of them added, where one has
    none."""
    for step, n in parts:
        row = row_of(step)
        if row is None:
            return False
        moments.add_step(*row, n)
        if lines:
            lines.record(*row, n)
    return True


def moments_of(run: Run) -> StepMoments:
    """The moments of a run, not to be changed, or a DomainError."""
    moments = run.step_moments("add_remove") if isinstance(run, Gathered) else StepMoments()
    if not (isinstance(run, Gathered) or gather(moments, run.parts)):
        raise DomainError(f"moments are those of Gaussian steps and samples of them, got {brief(run)}: see state_dict")
    return moments


def joined(parts: Iterable[tuple[StepMoments, int]]) -> StepMoments:
    """Each of the moments so many times, or, where that is negative, taken away, in whole numbers; a DomainError where
    there are too many, or where they cannot have been in what they are taken from."""
    both, total = StepMoments(), 0
    for moments, times in parts:
        total += times * sum(moments.counts().values())
        if total > MOST:
            raise DomainError(f"moments are those of at most {MOST:.2g} steps, got {total:.6g}")
        both.join(moments, times)
    both = both.without_empty()
    for q, sums in both.sums.items():
        if not all(_possible(whole, 50) for whole in _boxes(sums).values()):
            raise DomainError(f"steps of sampling rate {q!r} that are to be taken back were not recorded")
    for key, sums in both.cells.items():
        if not _possible(_words(sums), 110):
            low, high = (end.item() for end in ends_of_cells(np.array(key // BOXES)))
            raise DomainError(
                f"steps of sampling rates from {low!r} to {high!r} that are to be taken back were not recorded"
            )
    return both


class Gathered(Run):
    """A run of Gaussian steps that is asked about them without its parts."""

    __slots__ = ()
    gathered = True
    lines: Any = None

    @property
    def distinct(self) -> int:
        """Number of distinct steps, at most."""
        raise NotImplementedError

    def is_gaussian(self, adjacency: str) -> bool:
        """Whether all pairs are of the Gaussian family."""
        raise NotImplementedError

    def gaussian_facts(self) -> tuple[float, float, bool]:
        """As `pair.gaussian_facts`, whatever the order of the steps."""
        raise NotImplementedError

    def gaussian_steps(self, adjacency: str) -> Rows:
        """The merged steps as arrays of (m, q, k)."""
        raise NotImplementedError

    def step_moments(self, adjacency: str) -> StepMoments:
        """The moments of all steps."""
        raise NotImplementedError


class RecordedRun(Gathered):
    """Counts and moments of an accountant, neither copied nor ever changed; `base` are those of steps that are not in
    the counts."""

    __slots__ = ("__weakref__", "_base", "_counts", "_moments", "_more", "_shared", "lines", "place", "total")

    def __init__(
        self,
        counts: dict[Mechanism, int],
        moments: StepMoments,
        base: StepMoments | None,
        more: tuple[Run, ...] = (),
        lines: Lines | None = None,
    ) -> None:
        self._counts, self._moments, self._base, self._more = counts, moments, base, more
        self._shared: RecordedRun | None = None  # while it lives, the accountant leaves the counts alone
        self._cache = {"unsettled": False}
        self.lines = lines  # of the accountant, which had recorded so much then:
        if lines:
            self.place, self.total = lines.place, lines.total

    def __reduce__(self):
        return RecordedRun, (self._counts, self._moments, self._base, self._more)

    @staticmethod
    def joined(runs: Iterable[tuple[Run, int]]) -> RecordedRun:
        """Runs, some of which are known by their moments alone, each so many times, as one that is."""
        moments = joined((moments_of(run), times) for run, times in runs)
        return RecordedRun({}, moments, moments)

    def _repeat(self, k: int) -> Run:
        return super()._repeat(k) if self.listed else self.joined([(self, k)])

    def __add__(self, other: Any) -> Run:
        """With more steps on top; their moments are added, if they have any."""
        if not isinstance(other, Run | Mechanism) or (isinstance(other, Run) and not other.listed):
            return super().__add__(other)
        more, moments = compose(other), self._moments.copy()
        if gather(moments, more.parts):
            both = RecordedRun(self._counts, moments, self._base, (*self._more, more))
            both._shared, both.lines = self, self.lines
            return both
        return super().__add__(other)

    def alone(self) -> RecordedRun:
        """The same run, whose questions go to no lines."""
        own = RecordedRun(self._counts, self._moments, self._base)
        own._shared, own._cache = self, self._cache
        return own

    def recorded(self) -> tuple[RecordedRun, NDArray[np.float64]]:
        """What the lines know of it, and the rows (m, q, count) of the steps on top."""
        run = self
        while run._more and run._shared:
            run = run._shared
        if not self._more:
            return run, _NOTHING
        rows = [(*(row_of(step) or ()), n) for more in self._more for step, n in more.parts]
        return run, np.array(rows, dtype=float).reshape(-1, 3)

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:  # type: ignore[override]
        """Distinct steps and counts."""
        if self._kept:
            raise DomainError(f"of {self._kept} steps of this run the moments alone were kept, not the list")
        if "parts" not in self._cache:
            self._cache["parts"] = compose(Run(tuple(self._counts.items())), *self._more).parts
        return self._cache["parts"]

    @property
    def _kept(self) -> int:
        """Number of steps known by moments alone."""
        return sum(self._base.counts().values()) if self._base else 0

    @property
    def listed(self) -> bool:  # type: ignore[override]
        """Whether the steps are known, and not by their moments alone."""
        return not self._kept

    @property
    def steps(self) -> int:
        """Total number of steps."""
        return sum(self._moments.counts().values())

    def __eq__(self, other: object) -> bool:
        base = other._base if isinstance(other, RecordedRun) else None
        if self._base or base:  # nothing but the moments is known
            return isinstance(other, RecordedRun) and bool(self._base and base) and self._moments == other._moments
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._moments.counts().items()))) if self._base else super().__hash__()

    def __repr__(self) -> str:
        return f"Run({self.steps} steps, of {self._kept} the moments)" if self._kept else super().__repr__()

    @property
    def distinct(self) -> int:
        """Number of distinct steps, at least where some are known by moments alone."""
        known = len(self._counts)
        for more in self._more:
            known += len(more.parts)
        return known + self._kept if self._base else known

    def is_gaussian(self, adjacency: str) -> bool:
        """Whether all pairs are of the Gaussian family: sampled steps have others under replace_one."""
        return adjacency != "replace_one" or all(q == 1 for q in self._moments.counts())

    def gaussian_facts(self) -> tuple[float, float, bool]:
        """As `pair.gaussian_facts`."""
        total, wall, whole = 0, [], True
        for q, n in self._moments.counts().items():
            total += n
            wall.append(-n * math.log1p(-q) if q < 1 else math.inf)
            whole = whole and q == 1
        return float(total), math.fsum(wall), whole

    def require_list(self) -> None:
        """AccuracyError where the steps are needed and not known."""
        if self._kept:
            raise AccuracyError(
                f"the steps of this run are too few or too strong for their moments, and of {self._kept} nothing else"
                " was kept: keep the list (state_dict)"
            )

    def gaussian_steps(self, adjacency: str) -> Rows:
        """All steps as arrays of (m, q, k)."""
        self.require_list()
        found = gaussian_steps(Run(self.parts), adjacency)
        assert found is not None  # `is_gaussian`
        return found

    def step_moments(self, adjacency: str) -> StepMoments:
        """The moments of all steps; under replace_one of twice the shifts."""
        if adjacency != "replace_one":
            return self._moments
        twice = StepMoments()  # of plain steps: their boxes lie an octave further on
        twice.sums = {q: np.roll(sums, OCTAVE, axis=0) for q, sums in self._moments.sums.items()}
        return twice


def to_moments(moments: StepMoments) -> dict[str, Any]:
    """The moments as JSON: of every rate, and of every cell of rates if there are some, the boxes that hold steps, each
    with its sums as whole numbers."""
    rates = []
    for q in sorted(moments.sums):
        held = [{"box": box, "sums": whole} for box, whole in _boxes(moments.sums[q]).items()]
        if held:
            rates.append({"q": q, "boxes": held})
    cells = [
        {"cell": key // BOXES, "box": key % BOXES, "sums": _words(sums)}
        for key, sums in sorted(moments.without_empty().cells.items())
    ]
    return {"rates": rates, **({"cells": cells} if cells else {})}


def from_moments(state: dict[str, Any]) -> StepMoments:
    """The moments of `to_moments`, or a DomainError."""
    moments = StepMoments()
    try:
        for rate in state["rates"]:
            exact_keys("rate", rate, ("q", "boxes"))
            q = float(rate["q"])
            if not 2.0**RATE_LOWEST <= q <= 1 or q in moments.sums or (q < 1 and state.get("cells")):
                raise ValueError(q)
            sums = moments.sums[q] = np.zeros((BOXES, DEGREES, 2), np.uint64)
            for held in rate["boxes"]:
                exact_keys("box", held, ("box", "sums"))
                box = _place(held["box"], BOXES - OCTAVE)
                if sums[box].any():
                    raise ValueError(box)
                sums[box] = _sums(held["sums"], DEGREES, 2)
        for held in state.get("cells", ()):
            exact_keys("cell", held, ("cell", "box", "sums"))
            key = _place(held["cell"], -CELLS * RATE_LOWEST) * BOXES + _place(held["box"], BOXES - OCTAVE)
            if key in moments.cells:
                raise ValueError(held["cell"], held["box"])
            moments.cells[key] = _sums(held["sums"], DEGREES * RATE_DEGREES, 3).reshape(DEGREES, RATE_DEGREES, 3)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DomainError(f"the moments are not what compact_state_dict writes: {error!r}") from None
    made = StepMoments()
    made.join(moments)  # where there are too many rates they share cells
    return made


def _place(number: Any, count: int) -> int:
    """A whole number from 0 to count - 1, or a ValueError."""
    if type(number) is not int or not 0 <= number < count:
        raise ValueError(number)
    return number


def _boxes(sums: NDArray[np.uint64]) -> dict[int, list[int]]:
    """The boxes that hold steps, and their sums as whole numbers."""
    boxes = np.flatnonzero(sums.any(axis=(1, 2))).tolist()
    return {box: _words(sums[box]) for box in boxes}


def _words(sums: NDArray[np.uint64]) -> list[int]:
    """Sums as whole numbers; of a cell those of the first degree of the shift first."""
    words = sums.shape[-1]
    found = [sum(word << 64 * i for i, word in enumerate(each)) for each in sums.reshape(-1, words).tolist()]
    return [x - (1 << 64 * words) if x >> (64 * words - 1) else x for x in found]


def _sums(given: Any, count: int, words: int) -> NDArray[np.uint64]:
    """What `_words` was made from; a ValueError where no steps have such sums."""
    whole = list(given)
    if any(type(x) is not int for x in whole) or len(whole) != count or not _possible(whole, 50 if words == 2 else 110):
        raise ValueError(given)
    return np.array([[x >> 64 * i & (2**64 - 1) for i in range(words)] for x in whole], np.uint64)


def _possible(whole: list[int], bits: int) -> bool:
    """Whether sums of a box, or of a cell, can be those of steps: some, and none of their products of T_j beyond 1."""
    count = whole[0] >> bits
    most = (count << bits) + (count << (bits - 47 if bits == 50 else bits - 46))  # by how much rounding exceeds 1
    return 0 < count <= MOST and whole[0] == count << bits and all(abs(x) <= most for x in whole)
