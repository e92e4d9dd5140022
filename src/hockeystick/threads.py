"""How many threads a call may use, and how it shares out work among them."""

from __future__ import annotations

import os
import threading
from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .what.mechanism import count

if TYPE_CHECKING:
    from concurrent.futures import Executor

_IMPORTED_BY = os.getpid()
_idle: list = []  # crews, lent to one call at a time: list.pop and list.append are atomic
_here = threading.local()  # .crew: the crew that this thread works in


class _Crew(NamedTuple):
    """Threads of one call: how many, their pool, and an entry for each that is at work."""

    size: int
    pool: Executor
    busy: list

    def offer(self, task) -> None:
        self.pool.submit(self._work, task)

    def _work(self, task) -> None:
        _here.crew = self
        self.busy.append(None)
        task.begin()
        self.busy.pop()


def threads(n_threads) -> int:
    """As asked, 0 being all allowed cores; one in a forked child.

    The thread pool of GNU OpenMP does not survive a fork: a child of a process that used it would wait for ever.
    Answers do not depend on the number.

    Raises
    ------
    DomainError
        If n_threads is not a whole number from 0 to 4096.
    """
    if type(n_threads) is int and n_threads == 1:  # what most queries ask for
        return 1
    asked = count("n_threads", n_threads, 0, 4096)
    if os.getpid() != _IMPORTED_BY:
        return 1
    return asked or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def blocks(n: int, most: int) -> list[slice]:
    """0..n-1 in as few nearly equal slices as have at most `most` entries."""
    pieces = -(-n // most)
    ends = [n * i // pieces for i in range(pieces + 1)] if pieces else []
    return [slice(a, b) for a, b in pairwise(ends)]


def together(call, n_threads: int):
    """call() by one of n_threads threads, which all do what it shares out: one at work never waits for another to wake
    up."""
    if n_threads == 1 or getattr(_here, "crew", None):
        return call()
    (found,) = _shared(lambda _: call(), (None,), _borrow(n_threads), False)
    return found


def in_order(call, items, n_threads: int):
    """call(item) for every item, in order, by n_threads threads; at most 2 n_threads results wait at a time.

    `call` may itself share out work: all of it goes to the same threads.
    """
    crew = getattr(_here, "crew", None)
    if len(items) <= 1 or (n_threads == 1 and crew is None):
        return map(call, items)
    return _shared(call, items, crew or _borrow(n_threads), crew is not None)


def _shared(call, items, crew: _Crew, inside: bool):
    waiting: deque = deque()
    try:
        for item in items:
            waiting.append(_Task(call, item))
            if inside and len(crew.busy) >= crew.size:
                waiting[-1].begin()
            else:
                crew.offer(waiting[-1])
            while waiting and (len(waiting) == 2 * crew.size or not waiting[0].done.locked()):
                yield _first(waiting, inside)
        while waiting:
            yield _first(waiting, inside)
    finally:  # tasks are left where one went wrong, or the caller wants no more: then others may still be at work
        for task in waiting:
            task.todo.clear()
        if waiting and not inside:
            crew.pool.shutdown(wait=False, cancel_futures=True)
        elif not inside:
            _idle.append(crew)


class _Task:
    """call(item), done by the thread that begins it first: list.pop is atomic."""

    __slots__ = ("done", "result", "todo", "wrong")

    def __init__(self, call, item):
        self.todo, self.done, self.result, self.wrong = [(call, item)], threading.Lock(), None, None
        self.done.acquire()

    def begin(self):
        try:
            call, item = self.todo.pop()
        except IndexError:
            return
        try:
            self.result = call(item)
        except BaseException as wrong:
            self.wrong = wrong
        self.done.release()


def _first(waiting: deque, inside: bool):
    """The result of the first task. While another thread of the crew is at it, this one, if of the crew, begins
    others."""
    for task in waiting if inside else ():
        if not waiting[0].done.locked():
            break
        task.begin()
    task = waiting[0]
    task.done.acquire()
    waiting.popleft()
    if task.wrong:
        raise task.wrong
    result, task.result = task.result, None  # the pool may hold the task longer
    return result


def _borrow(size: int) -> _Crew:
    from concurrent.futures import ThreadPoolExecutor  # not at every import of the package

    try:
        crew = _idle.pop()
    except IndexError:
        crew = None
    if crew and crew.size == size:
        return crew
    if crew:
        crew.pool.shutdown(wait=False)
    return _Crew(size, ThreadPoolExecutor(size), [])
