"""An accountant for training loops: steps are recorded one by one, the cost is asked at any time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, overload

from . import query
from .bound import Bound, DomainError
from .mechanism import Mechanism, Recorder, Run, as_run, count
from .serial import exact_keys, from_json, to_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .types import Numbers, Query, Ran

FORMAT = "hockeystick.accountant"
VERSION = 1


class Accountant(Recorder):
    """Record what ran, ask what it cost.

    Equal steps merge: memory is proportional to distinct steps, and recording a step costs one look-up,
    however many ran before. Threads may share an accountant: a lock keeps every step, and `run` holds all steps
    whose `step` has returned. Copies and pickles are accountants of their own.

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
    """

    __slots__ = ("_counts", "_lock", "_run")

    def __init__(self) -> None:
        self._counts: dict[Mechanism, int] = {}
        self._run: Run | None = None  # of these counts, or None; both change under the lock only
        self._lock = threading.Lock()

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        with self._lock:
            return None, {"_counts": dict(self._counts)}

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        Accountant.__init__(self)
        self._counts = dict(state[1]["_counts"])

    def step(self, mechanism: Ran, steps: int = 1, *, k: int | None = None) -> None:
        """Record that `mechanism` (a step, or a whole run) ran `steps` times.

        Parameters
        ----------
        mechanism : Mechanism or Run
            What ran.
        steps : int, default 1
            How often, from 1 to 1e12. `k` is its old name.

        Raises
        ------
        DomainError
            If `mechanism` is neither, or `steps` or the merged count is out of range; nothing is recorded then.
        """
        times = count("steps", steps if k is None else k)
        parts = as_run(mechanism).parts
        new: dict[Mechanism, int] = {}
        with self._lock:
            for step, n in parts:
                new[step] = count("total count of a step", new.get(step, self._counts.get(step, 0)) + n * times)
            self._run = None  # first: an interrupt between the two must not leave a run without these steps
            self._counts.update(new)

    @property
    def run(self) -> Run:
        """All that was recorded, as an immutable run."""
        run = self._run
        if run is None:
            with self._lock:
                run = self._run = Run(tuple(self._counts.items()))
        return run

    @property
    def steps(self) -> int:
        """Number of steps recorded, with repetitions."""
        with self._lock:
            return sum(self._counts.values())

    def __len__(self) -> int:
        return self.steps

    def __bool__(self) -> bool:
        return True  # an accountant that has recorded nothing is still an accountant

    def __repr__(self) -> str:
        return f"Accountant({self.run!r})"

    @overload
    def epsilon(self, delta: float, **options: Unpack[Query]) -> Bound[float]: ...
    @overload
    def epsilon(self, delta: Numbers, **options: Unpack[Query]) -> Bound[NDArray[np.float64]]: ...
    def epsilon(self, delta: float | Numbers, **options: Unpack[Query]) -> Bound[Any]:
        """eps(delta) of what was recorded; options as in `hockeystick.epsilon`. Returns a Bound."""
        return query.epsilon(self.run, delta, **options)

    @overload
    def delta(self, eps: float, **options: Unpack[Query]) -> Bound[float]: ...
    @overload
    def delta(self, eps: Numbers, **options: Unpack[Query]) -> Bound[NDArray[np.float64]]: ...
    def delta(self, eps: float | Numbers, **options: Unpack[Query]) -> Bound[Any]:
        """delta(eps) of what was recorded; options as in `hockeystick.delta`. Returns a Bound."""
        return query.delta(self.run, eps, **options)

    def state_dict(self) -> dict[str, Any]:
        """What was recorded, as a JSON-able dict that `load_state_dict` reads back exactly, floats included.

        Returns
        -------
        dict
            "format" and "version" (these name this layout), and "parts": a list of {"step", "count"}.

        Raises
        ------
        DomainError
            If a recorded mechanism has no JSON form.
        """
        parts = [{"step": to_json(step), "count": n} for step, n in self.run.parts]
        return {"format": FORMAT, "version": VERSION, "parts": parts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replace what was recorded by what `state_dict` returned.

        Equal parts merge. A refused state leaves the accountant as it was.

        Parameters
        ----------
        state : dict
            From `state_dict`, possibly through JSON.

        Raises
        ------
        DomainError
            If the format, the version, a key or a kind of step is unknown or missing, or a number is outside
            its domain. The message names what was found and what is allowed.
        """
        if isinstance(state, dict) and state.get("format") != FORMAT:
            raise DomainError(f"state has format {state.get('format')!r}; allowed: {FORMAT!r}")
        if isinstance(state, dict) and (type(state.get("version")) is not int or state["version"] != VERSION):
            raise DomainError(f"state has version {state.get('version')!r}; this release reads {VERSION}")
        exact_keys("state", state, ("format", "version", "parts"))
        if not isinstance(state["parts"], list | tuple):
            raise DomainError(f"state['parts'] must be a list, got {state['parts']!r}")
        loaded = Accountant()
        for i, part in enumerate(state["parts"]):
            try:
                exact_keys("part", part, ("step", "count"))
                loaded.step(from_json(part["step"]), part["count"])
            except DomainError as error:
                raise DomainError(f"state['parts'][{i}]: {error}") from None
        with self._lock:
            self._run = None
            self._counts = loaded._counts
