"""An accountant for training loops: steps are recorded one by one, the cost is asked at any time."""

from __future__ import annotations

import math
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from . import query
from .arguments import one_of, respelled
from .bound import Bound, DomainError, LimitError
from .recorded import RecordedRun, gather, joined, moments_of, row_of, to_moments
from .routes.kept import FEWEST, Lines, sides_of
from .serial import brief
from .state import ACCOUNTANT, MOMENTS, VERSION, from_dict, to_dict
from .step_moments import StepMoments
from .what.mechanism import K_MAX, Mechanism, Recorder, Run, as_run, count, flag, real
from .what.pair import ADJACENCIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self, Unpack

    from .calibration import Target
    from .ledger import StepLedger
    from .types import Adjacency, Asked, Numbers, Query, Ran


class Accountant(Recorder):
    """Record what ran, ask what it cost.

    Equal steps merge: memory is proportional to distinct steps, and recording a step costs one look-up,
    however many ran before. Threads may share an accountant: a lock keeps every step, and `run` holds all steps
    whose `step` has returned. Copies and pickles of one in memory are accountants of their own.

    **In a file.** With `path` every step is on disk when `step` returns, whatever happens to the process afterwards.
    Processes may share a ledger: each opens it by its path, every step is recorded once, in some order, and `run` holds
    the steps of all. The ledger is an SQLite database; after a crash `path`-wal beside it holds the latest steps, so
    move or copy the two together, or close all accountants first. An older copy of both that is put back cannot be told
    from the newest state. A pickle of such an accountant is its path. Network file systems, where processes on several
    machines cannot lock a file, are not for ledgers.

    **With a limit.** `step` raises `LimitError` where the steps recorded so far and this one are not certified, by the
    upper end of the interval, to be (epsilon, delta)-DP; nothing is recorded then, and the step must not run. In a file
    this is one transaction, decided upon the steps of all processes.

    **Asked while it grows.** The second time that `epsilon`, `delta` or `would_exceed` are asked the same, the contour
    is kept, and only steps that are new are added to it, however many ran. Such an answer is certified like any other,
    and may differ in its last digits from that of `run`, which is the same for the same steps in any order.

    **Merged and taken back.** `step(other)` records all that another accountant did, and `undo` takes back what was
    recorded and did not run. Order, merging and taking back change no bit of what `run` answers, nor of
    `compact_state_dict`, whose accountants merge as well.

    **What may be claimed.** A privacy curve is about steps whose kind, noise, sampling rate and number are fixed in
    advance, or chosen without a look at the data; what a step computes may depend on earlier outputs, as gradients do.
    Then a limit holds, also for a run that is ended early because of what was seen: that is a part of a run which fits.
    Where *noise, rates or the number of steps themselves* are chosen from earlier outputs, the curve of what happened
    to run is no guarantee, and a limit upon it is no privacy filter [RRUV16]. Ask `GDPFilter` or `RDPFilter` for every
    step instead: theirs hold for parameters chosen in any way from the past [KTH23; ST22; FZ21].

    Parameters
    ----------
    path : path-like, optional
        Ledger to keep the steps in; it is opened if it exists, and made if not. Without it they are in memory.
    limit : (epsilon, delta), optional
        What the steps together may cost: epsilon >= 0, 0 < delta < 1. A ledger has the limit that it was made with;
        another one is refused.
    adjacency : "add_remove", "replace_one" or "zero_out", optional
        The relation of the limit, and of every query that names none. A ledger has the one that it was made with;
        "add_remove".
    sync : bool, default True
        With `path`: whether a recorded step also survives a loss of power (it always survives the death of the
        process).

    Raises
    ------
    DomainError
        For arguments outside their domain.
    StoreError
        If `path` is foreign, newer, corrupted or the ledger of a filter, and is left as it is; if it cannot be created,
        or was made with another limit or adjacency.

    References
    ----------
    [RRUV16] on why parameters chosen on the way need filters; [KTH23], [ST22], [FZ21] for the filters here.

    Examples
    --------
    >>> import hockeystick as hs
    >>> accountant = hs.Accountant()
    >>> step = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
    >>> for _ in range(1000):
    ...     accountant.step(step)
    >>> accountant.run == step * 1000
    True
    >>> bound = accountant.epsilon(1e-5)
    >>> bound.lower <= bound.estimate <= bound.upper
    True
    >>> accountant = hs.Accountant(limit=(1.0, 1e-5))
    >>> accountant.step(step, 200)
    >>> accountant.steps_left(step), accountant.would_exceed(step * 55)
    (54, True)
    """

    __slots__ = (
        "_base",
        "_counts",
        "_given",
        "_ledger",
        "_lines",
        "_lock",
        "_moments",
        "_run",
        "_sync",
        "adjacency",
        "limit",
    )

    limit: tuple[float, float] | None
    adjacency: Adjacency

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        limit: tuple[float, float] | None = None,
        adjacency: Adjacency | None = None,
        sync: bool = True,
    ) -> None:
        self._counts: dict[Mechanism, int] = {}
        self._run: Run | None = None  # of these counts, or None; both change under the lock only
        self._moments: StepMoments | Literal[False] | None = None  # of the counts; None: not made, False: there is none
        self._base: StepMoments | None = None  # moments of steps that are not in the counts; never changed
        self._lines: Lines | None = None  # that know every one of these steps
        self._given: Callable[[], Run | None] | None = None  # the last run that shares both, while it lives
        self._lock = threading.Lock()
        self._ledger: StepLedger | None = None
        self._sync = sync
        self.limit = None if limit is None else _limit(limit)
        if adjacency is not None:
            one_of("adjacency", adjacency, ADJACENCIES)
        self.adjacency = adjacency or "add_remove"
        if path is not None:
            self._open(path, limit is not None, adjacency is not None)

    def _open(self, path: str | os.PathLike[str], limited: bool, related: bool) -> None:
        """Take the ledger at `path`, whose limit and adjacency hold unless others were asked for."""
        from .ledger import StepLedger

        given = {"limit": self.limit, "adjacency": self.adjacency}
        ledger = StepLedger.open(path, given, flag("sync", self._sync), self._lock)
        kept = ledger.parameters
        limit = None if kept["limit"] is None else (kept["limit"][0], kept["limit"][1])
        if (limited and limit != self.limit) or (related and kept["adjacency"] != self.adjacency):
            from .store import StoreError

            raise StoreError(
                f"{ledger.path} was made with limit={limit}, adjacency={kept['adjacency']!r}; asked for with "
                f"limit={self.limit}, adjacency={self.adjacency!r}: a ledger keeps its own, leave them out to open it"
            )
        self._ledger = ledger
        self.limit, self.adjacency = limit, kept["adjacency"]

    @property
    def path(self) -> Path | None:
        """The ledger, or None of an accountant in memory."""
        return None if self._ledger is None else self._ledger.path

    def close(self) -> None:
        """Let the ledger go; the accountant answers and records no more. One in memory has nothing to let go."""
        if self._ledger:
            with self._lock:
                self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        given = {"limit": self.limit, "adjacency": self.adjacency, "sync": self._sync}
        if self._ledger:
            return None, {**given, "path": self._ledger.path}
        with self._lock:
            return None, {**given, "_counts": dict(self._counts), "_base": self._base}

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        given = dict(state[1])
        counts, base = given.pop("_counts", {}), given.pop("_base", None)
        if "path" in given and not given["path"].exists():
            from .store import StoreError

            raise StoreError(f"{given['path']} is gone: this pickle is the path of a ledger")
        Accountant.__init__(self, **given)
        self._counts.update(counts)
        self._base = base

    def step(self, mechanism: Ran, steps: int = 1, *, k: int | None = None) -> None:
        """Record that `mechanism` (a step, or a whole run) runs `steps` times.

        Record it before it runs: what dies between the two is then counted too often, never too seldom.

        Parameters
        ----------
        mechanism : Mechanism, Run or Accountant
            What runs; of an accountant all that it has recorded, so that the two are merged.
        steps : int, default 1
            How often, from 1 to 1e12. `k` is its old name.

        Raises
        ------
        DomainError
            If `mechanism` is neither, or `steps` or the merged count is out of range; nothing is recorded then, nor in
            the following cases.
        LimitError
            If the limit would be exceeded, or is not certified to be kept.
        AccuracyError
            If nothing can be certified about what the limit is about.
        StoreError
            If the ledger cannot take the step.
        """
        times = count("steps", steps if k is None else k)
        more = as_run(mechanism)
        if not more.listed:
            return self._change_moments(more, times)
        parts = more.parts
        with self._lock:
            self._run = None  # first: an interrupt after it must not leave a run without these steps
            if self._ledger is None:
                self._keep(self._admitted(parts, times))
            else:
                with self._ledger.recording(self._keep) as record:
                    record(self._admitted(parts, times))

    def _keep(self, new: dict[Mechanism, int]) -> None:
        """Take new counts."""
        more = [(step, n - before) for step, n in new.items() if n > (before := self._counts.get(step, 0))]
        self._run = None
        moments, lines = self._apart(), self._lines
        self._moments = self._lines = None  # until the counts have the steps; after an interrupt made again
        self._counts.update(new)
        self._moments = (gather(moments, more, lines) and moments) if moments else moments
        self._lines = lines if self._moments else None

    def _admitted(self, parts: tuple[tuple[Mechanism, int], ...], times: int) -> dict[Mechanism, int]:
        """The new counts of `parts`, once it is sure that they may be recorded."""
        new: dict[Mechanism, int] = {}
        for step, n in parts:
            if self._base and not row_of(step):
                raise DomainError(f"an accountant of moments takes Gaussian steps and samples, got {brief(step)}")
            new[step] = count("total count of a step", self._counts.get(step, 0) + n * times)
        if self.limit is not None:
            self._require(self._known() + Run(parts) * times, Run(parts), times)
        return new

    def _require(self, whole: Run, more: Run, times: int) -> None:
        """LimitError where the whole with `more` so many times on top is not certified to keep the limit."""
        kept, bound = self._target(None, None, {}).judged(whole)
        if not kept:
            eps, delta = cast(tuple[float, float], self.limit)
            raise LimitError(
                f"the steps would cost delta in [{bound.lower:.6g}, {bound.upper:.6g}] at eps={eps!r}; the limit is"
                f" delta={delta!r}. Nothing was recorded: do not run {times} x {brief(more)}"
            )

    def undo(self, mechanism: Ran, steps: int = 1) -> None:
        """Take back what was recorded and did not run: the accountant is then as if it had never been, bit for bit.

        Take back nothing that ran, or part of which did: what it cost is spent.

        Parameters
        ----------
        mechanism : Mechanism, Run or Accountant
            What was recorded.
        steps : int, default 1
            How often, from 1 to 1e12.

        Raises
        ------
        DomainError
            If it was not recorded so often, or the accountant keeps a ledger, which only grows; nothing is taken back
            then. Of steps whose moments alone are known (`compact_state_dict`) it is refused where the moments show
            that they were not recorded, which moments of steps of like noise do not.

        Examples
        --------
        >>> import hockeystick as hs
        >>> accountant = hs.Accountant()
        >>> accountant.step(hs.gaussian(3.0), 10)
        >>> accountant.undo(hs.gaussian(3.0), 9)
        >>> accountant.run
        Run(1 x Gaussian(sigma=3.0, sensitivity=1.0))
        """
        times = count("steps", steps)
        less = as_run(mechanism)
        if self._ledger is not None:
            raise DomainError(f"{self._ledger.path} is a ledger, which only grows: nothing is taken back")
        if not less.listed:
            return self._change_moments(less, -times)
        with self._lock:
            have = [(step, n * times, min(n * times, self._counts.get(step, 0))) for step, n in less.parts]
            rest = Run(tuple((step, n - held) for step, n, held in have if n > held))
            if rest.parts and self._base is None:
                step, n, held = next(part for part in have if part[1] > part[2])
                raise DomainError(f"{brief(step)} was recorded {held} times: {n} cannot be taken back")
            base = joined([(self._base, 1), (moments_of(rest), -1)]) if rest.parts and self._base else self._base
            moments = None  # of steps that were in cells, and may have fewer rates now, they are made again
            if self._moments and not self._moments.cells:
                moments = joined([(self._moments, 1), (moments_of(less), -times)])
            counts = dict(self._counts)
            for step, _, held in have:
                if counts.get(step) == held:
                    del counts[step]
                elif held:
                    counts[step] -= held
            self._replace(counts, base, moments)

    def _change_moments(self, run: Run, times: int) -> None:
        """Add a run that is known by its moments, or take it away, so many times."""
        if self._ledger is not None:
            raise DomainError(f"{self._ledger.path} is a ledger of a list of steps, and takes no moments")
        with self._lock:
            base = joined([(self._base or StepMoments(), 1), (moments_of(run), times)])
            moments = joined([(base, 1), (moments_of(Run(tuple(self._counts.items()))), 1)])
            if self.limit is not None and times > 0:
                self._require(RecordedRun({}, moments, moments), run, times)
            self._replace(dict(self._counts), base, moments)

    def _target(self, eps: float | None, delta: float | None, options: Asked) -> Target:
        """What is not to be exceeded: (eps, delta), or the limit where neither is given."""
        from .calibration import privacy_target

        if eps is None and delta is None:
            if self.limit is None:
                raise DomainError("give eps and delta: this accountant has no limit")
            eps, delta = self.limit
        return privacy_target(eps, delta, self._related(options))

    def _related(self, options: Any) -> Any:
        return {"adjacency": self.adjacency, **options}

    @respelled(epsilon="eps")
    def would_exceed(
        self, step: Ran, *, eps: float | None = None, delta: float | None = None, **options: Unpack[Asked]
    ) -> bool:
        """Whether (eps, delta) is not certified to hold with `step` on top of what was recorded; nothing is recorded.

        Another process, or thread, may record something before this one does: `step` of an accountant with a limit
        decides and records at once.

        Parameters
        ----------
        step : Mechanism or Run
            What would run.
        eps, delta : float, optional
            eps >= 0, 0 < delta < 1; the limit of the accountant if neither is given. `epsilon` is another name of
            `eps`.
        adjacency, direction, route, n_threads
            As in `hockeystick.delta`.

        Returns
        -------
        bool
            False only if the upper end of delta(eps) of the whole is certified to be at most `delta`.

        Raises
        ------
        DomainError, AccuracyError
            As in `hockeystick.delta`.

        Examples
        --------
        >>> import hockeystick as hs
        >>> accountant = hs.Accountant()
        >>> accountant.step(hs.gaussian(10.0), 6)
        >>> [accountant.would_exceed(hs.gaussian(10.0) * n, epsilon=1.0, delta=1e-5) for n in (1, 2)]
        [False, True]
        """
        target = self._target(eps, delta, options)
        return not target.judged(self._asked() + as_run(step))[0]

    @respelled(epsilon="eps")
    def steps_left(
        self, step: Ran, *, eps: float | None = None, delta: float | None = None, **options: Unpack[Asked]
    ) -> int:
        """How often `step` may still run on top of what was recorded within (eps, delta), from 0 to 1e12.

        Parameters
        ----------
        step, eps, delta, options
            As in `would_exceed`.

        Returns
        -------
        int
            So many are certified to fit. Where the certified interval is narrow enough, which it is unless
            AccuracyError says otherwise to a query, one more does not.

        Raises
        ------
        DomainError, AccuracyError
            As in `hockeystick.delta`.

        Examples
        --------
        >>> import hockeystick as hs
        >>> accountant = hs.Accountant()
        >>> accountant.step(hs.gaussian(4.0))
        >>> accountant.steps_left(hs.poisson_subsampled(hs.gaussian(1.0), 0.01), epsilon=1.0, delta=1e-5)
        32
        """
        from .calibration import most_steps

        target = self._target(eps, delta, options)
        more = as_run(step)
        if not more.steps:
            return K_MAX
        with self._lock:
            before, most = self._recorded(), K_MAX
            if more.listed:
                most = min((K_MAX - self._counts.get(part, 0)) // n for part, n in more.parts)
        return most_steps(target, before, more, most)

    @property
    def run(self) -> Run:
        """All that was recorded, as an immutable run."""
        with self._lock:
            known = self._recorded()
            return known.alone() if isinstance(known, RecordedRun) else known

    def _again(self, query_name: str, at: Any, options: Any) -> Bound[float] | None:
        """What a line that is kept says alone, asked the same again: what most questions of a training loop come to."""
        lines, roots = self._lines, query_name == "epsilon"
        if options or type(at) is not float or (roots and not 0 < at < 1):
            return None
        if lines is None or self._ledger is not None:
            return None
        with self._lock:
            if lines is not self._lines:
                return None
            place, total = lines.place, lines.total
        found = lines.again(roots, sides_of(self.adjacency), at, place, total)
        return found and query.bound_of(found).answers(query_name, at)

    def _asked(self) -> Run:
        with self._lock:
            return self._recorded()

    def _recorded(self) -> Run:
        if self._ledger is not None and self._ledger.stale():
            self._ledger.refresh(self._keep)
        return self._known()

    def _known(self) -> Run:
        """The run of the counts; where these have moments, its questions go to the lines that are kept."""
        if self._run is None:
            moments = self._gathered()
            if moments:
                self._lines = self._lines or Lines(sum(moments.counts().values()))
                self._run = RecordedRun(self._counts, moments, self._base, lines=self._lines)
                self._given = weakref.ref(self._run)
            else:
                self._run = Run(tuple(self._counts.items()))
        return self._run

    def _gathered(self) -> StepMoments | None:
        """The moments of the counts, where these are many and all have some."""
        if self._moments is None and (self._base or len(self._counts) >= FEWEST):
            moments = self._base.copy() if self._base else StepMoments()
            self._moments = gather(moments, self._counts.items()) and moments
        return self._moments or None

    def _apart(self) -> StepMoments | Literal[False] | None:
        """The moments, which may be changed now, as may the counts: a run that was handed out and is still in use keeps
        those that it has."""
        if self._given and self._given() is not None:
            self._counts = dict(self._counts)
            self._moments = self._moments and self._moments.copy()
        self._given = None
        return self._moments

    @property
    def steps(self) -> int:
        """Number of steps recorded, with repetitions."""
        with self._lock:
            return self._recorded().steps

    def __len__(self) -> int:
        return self.steps

    def __bool__(self) -> bool:
        return True  # an accountant that has recorded nothing is still an accountant

    def __repr__(self) -> str:
        where = "" if self._ledger is None else f"{str(self._ledger.path)!r}, "
        return f"Accountant({where}{self.run!r})"

    @overload
    def epsilon(self, delta: float, **options: Unpack[Query]) -> Bound[float]: ...

    @overload
    def epsilon(self, delta: Numbers, **options: Unpack[Query]) -> Bound[NDArray[np.float64]]: ...

    def epsilon(self, delta: float | Numbers, **options: Unpack[Query]) -> Bound[Any]:
        """eps(delta) of what was recorded; options as in `hockeystick.epsilon`. Returns a Bound."""
        found = self._again("epsilon", delta, options)
        return found or query.epsilon(self._asked(), delta, **self._related(options))

    @overload
    def delta(self, eps: float, **options: Unpack[Query]) -> Bound[float]: ...

    @overload
    def delta(self, eps: Numbers, **options: Unpack[Query]) -> Bound[NDArray[np.float64]]: ...
    @respelled(epsilon="eps")
    def delta(self, eps: float | Numbers, **options: Unpack[Query]) -> Bound[Any]:
        """delta(eps) of what was recorded; options as in `hockeystick.delta`. Returns a Bound."""
        found = self._again("delta", eps, options)
        return found or query.delta(self._asked(), eps, **self._related(options))

    def state_dict(self) -> dict[str, Any]:
        """What was recorded, as a JSON-able dict that `load_state_dict` reads back exactly, floats included.

        `from_dict` reads it as a run.

        Returns
        -------
        dict
            "format" and "version" (these name this layout), and "parts": a list of {"step", "count"}.

        Raises
        ------
        DomainError
            If a recorded mechanism has no JSON form.
        """
        return {**to_dict(Run(self.run.parts)), "format": ACCOUNTANT}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replace what was recorded by what `state_dict` or `compact_state_dict` returned.

        Equal parts merge. A refused state leaves the accountant as it was. Its limit stays, and is not asked: the state
        says what ran.

        Parameters
        ----------
        state : dict
            From either, possibly through JSON.

        Raises
        ------
        DomainError
            If the format, the version, a key or a kind of step is unknown or missing, or a number is outside its
            domain. The message names what was found and what is allowed. If the accountant keeps a ledger, which only
            grows: record `hockeystick.from_json(...)` or another accountant's run in it by `step`.
        """
        if self._ledger is not None:
            raise DomainError(
                f"{self._ledger.path} is a ledger, which only grows; record the run of a loaded accountant by step"
            )
        if isinstance(state, dict) and state.get("format") not in (ACCOUNTANT, MOMENTS):
            raise DomainError(f"state has format {brief(state.get('format'))}; allowed: {ACCOUNTANT!r}, {MOMENTS!r}")
        run = as_run(from_dict(state))
        with self._lock:
            if run.listed:
                self._replace(dict(run.parts), None)
            else:
                self._replace({}, moments_of(run))

    def _replace(
        self, counts: dict[Mechanism, int], base: StepMoments | None, moments: StepMoments | None = None
    ) -> None:
        """Keep these counts and moments instead, under the lock; moments: the moments of both, where they are made."""
        self._run = self._given = self._lines = self._moments = None
        self._counts, self._base = counts, base if base and base.counts() else None
        self._moments = moments if self._base or len(counts) >= FEWEST else None

    def compact_state_dict(self) -> dict[str, Any]:
        """The moments of what was recorded, of a size that does not grow with the number of steps.

        An accountant that loads them answers as this one does, bit for bit, and goes on recording Gaussian steps; which
        steps there were is not kept. Where a query needs them it raises AccuracyError: as a rule of thumb, where fewer
        than some thousand steps of rate 0.01 and noise 1 were taken, or single steps cost much.

        Returns
        -------
        dict
            "format" and "version" (these name this layout), and for every sampling rate the boxes of shifts that hold
            steps with their sums, whole numbers of more than 64 bits (docs/theory/compression.md). More than 256 rates
            share cells, 32 to the octave, from then on also where steps are taken back.

        Raises
        ------
        DomainError
            If a recorded step is neither Gaussian nor a Poisson sample of a Gaussian one, or the accountant keeps a
            ledger.

        Examples
        --------
        >>> import hockeystick as hs
        >>> accountant, other = hs.Accountant(), hs.Accountant()
        >>> for i in range(2000):
        ...     accountant.step(hs.poisson_subsampled(hs.gaussian(1 + i / 4000), 0.01), 50)
        >>> other.load_state_dict(accountant.compact_state_dict())
        >>> other.epsilon(1e-6) == accountant.epsilon(1e-6)
        True
        """
        if self._ledger is not None:
            raise DomainError(f"{self._ledger.path} is a ledger: it keeps the list")
        return {"format": MOMENTS, "version": VERSION, **to_moments(joined([(moments_of(self.run), 1)]))}


def _limit(limit: Any) -> tuple[float, float]:
    """(epsilon, delta), or a DomainError."""
    if not isinstance(limit, tuple | list) or len(limit) != 2:
        raise DomainError(f"limit must be a pair (epsilon, delta), got {limit!r}")
    eps, delta = (real(f"{name} of the limit", x, "") for name, x in zip(("epsilon", "delta"), limit, strict=True))
    if not (0 <= eps < math.inf and 0 < delta < 1):
        raise DomainError(f"limit must be (epsilon, delta) with 0 <= epsilon < inf and 0 < delta < 1, got {limit!r}")
    return eps, delta
