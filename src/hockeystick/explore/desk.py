"""Threads that compute pieces of what was asked for, and hand them on.

What was asked for last comes first, up to its piece `REST`; asked for again under the same key, what is left of the old
is dropped. One thread computes at a time: two would hold up each other. But a piece that takes longer than `PATIENCE`
is left to its thread, and another goes on with the rest, while there is one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any

SOON, LATER = 0.02, 0.15
"""Seconds from a question to its first delivery and between deliveries up to the piece `REST`, and between later ones,
whose drawing must hold up neither the one before nor the next question."""
DRAWN = 0.05
"""Seconds for which what comes after `REST` is not begun: the browser draws what came before, and wants the
processor."""
PATIENCE, THREADS = 0.3, 4
"""Seconds for which a thread is alone with a piece, and threads in all."""
NOW, REST = "now", "rest"
"""Names of pieces that say: what has been found is worth a delivery; and what follows can wait for other keys
besides."""


class Job:
    """The pieces asked for under a key, of which none is computed before the time `after`."""

    def __init__(self, key: Hashable, pieces: Iterator[tuple[str, Any]]):
        self.key, self.pieces, self.after = key, pieces, 0.0


class Desk:
    """deliver({(key, name): piece}) is called in the computing thread; it must return at once and later call
    `delivered`."""

    def __init__(self, deliver: Callable[[dict], None]):
        self._deliver = deliver
        self._turn = threading.Condition()
        self._work: list[Job] = []
        self._found: dict[tuple[Hashable, str], Any] = {}
        self._under_way = self._closed = False
        self._next, self._pace = 0.0, SOON
        self._at: dict[int, tuple[Job, float]] = {}
        for i in range(THREADS):
            threading.Thread(target=self._run, args=(i,), name=f"hockeystick-explore-{i}", daemon=True).start()

    def ask(self, key: Hashable, pieces: Iterator[tuple[str, Any]]) -> None:
        with self._turn:
            self._drop(key)
            self._work.append(Job(key, pieces))
            self._next, self._pace = time.perf_counter() + SOON, SOON
            self._turn.notify_all()

    def drop(self, key: Hashable) -> None:
        """Nothing of `key` is wanted any more."""
        with self._turn:
            self._drop(key)

    def delivered(self) -> None:
        """The last delivery has arrived; the next may come."""
        with self._turn:
            self._under_way = False
            self._turn.notify_all()

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._turn.notify_all()

    def _drop(self, key: Hashable) -> None:
        self._work = [job for job in self._work if job.key != key]
        self._found = {at: piece for at, piece in self._found.items() if at[0] != key}

    def _run(self, i: int) -> None:
        while True:
            found: dict[Any, Any] = {}
            job: Job | None = None
            with self._turn:
                while not (self._closed or found or job):
                    if self._due():
                        found, self._found, self._under_way = self._found, {}, True
                        self._next = time.perf_counter() + self._pace
                    elif job := self._job():
                        self._at[i] = job, time.perf_counter()
                    else:
                        self._turn.wait(self._pause())
                if self._closed:
                    return
            if found:
                self._deliver(found)
            elif job:
                self._step(job)
                with self._turn:
                    del self._at[i]

    def _due(self) -> bool:
        return bool(self._found) and not self._under_way and time.perf_counter() >= self._next

    def _job(self) -> Job | None:
        """What a thread can go on with."""
        now = time.perf_counter()
        if self._under_way or any(now - since < PATIENCE for _, since in self._at.values()):
            return None
        taken = [job for job, _ in self._at.values()]
        return next((job for job in reversed(self._work) if job not in taken and job.after <= now), None)

    def _pause(self) -> float | None:
        """Seconds until `_due` or `_job` may say something else without being notified; None: never."""
        now = time.perf_counter()
        ends = [self._next] if self._found and not self._under_way else []
        ends += [since + PATIENCE for _, since in self._at.values() if self._work and now - since < PATIENCE]
        ends += [job.after for job in self._work if job.after > now]
        return max(0.0, min(ends) - now) if ends else None

    def _step(self, job: Job) -> None:
        """One piece more of a job. An error is the last piece of its key, under the name "error"."""
        try:
            name, piece = next(job.pieces)
        except StopIteration:
            with self._turn:
                self._work = [other for other in self._work if other is not job]
            return
        except Exception as error:
            if not isinstance(error, ValueError | ArithmeticError):
                logging.getLogger(__name__).exception("a curve could not be computed")
            name, piece = "error", error
        with self._turn:
            if name in (NOW, REST):
                self._next = 0.0
                if name == REST:  # it goes to the end of the queue, unless it was dropped meanwhile
                    self._work.sort(key=lambda other: other is not job)
                    job.after, self._pace = time.perf_counter() + DRAWN, LATER
            elif job in self._work:  # otherwise it was dropped meanwhile
                self._found[job.key, name] = piece
