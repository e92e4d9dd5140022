"""How many threads a call may use, and how it shares out work among them."""

from __future__ import annotations

import os
from collections import deque
from itertools import pairwise

from .mechanism import count

_IMPORTED_BY = os.getpid()
_pools: list = []  # (threads beside the caller's, idle pool), lent to one call at a time: list.pop and list.append are atomic


def threads(n_threads) -> int:
    """As asked, 0 being all allowed cores; one in a forked child.

    The thread pool of GNU OpenMP does not survive a fork: a child of a process that used it would wait for ever. Answers do not
    depend on the number.

    Raises
    ------
    DomainError
        If n_threads is not a whole number from 0 to 4096.
    """
    asked = count("n_threads", n_threads, 0, 4096)
    if os.getpid() != _IMPORTED_BY:
        return 1
    return asked or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def blocks(n: int, most: int) -> list[slice]:
    """0..n-1 in as few nearly equal slices as have at most `most` entries."""
    pieces = -(-n // most)
    ends = [n * i // pieces for i in range(pieces + 1)] if pieces else []
    return [slice(a, b) for a, b in pairwise(ends)]


def in_order(call, items, n_threads: int):
    """call(item) for every item, in order. With threads, the caller's is one of them, and at most 2 n_threads results wait at a
    time."""
    if n_threads == 1 or len(items) <= 1:
        yield from map(call, items)
        return
    pool, waiting = _borrow(n_threads - 1), deque()
    try:
        for item in items:
            waiting.append(_Task(call, item))
            pool.submit(waiting[-1].begin)
            if len(waiting) == 2 * n_threads:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    _pools.append((n_threads - 1, pool))


class _Task:
    """call(item), done by the thread that begins it first: list.pop is atomic."""

    __slots__ = ("future", "parts")

    def __init__(self, call, item):
        from concurrent.futures import Future

        self.parts, self.future = [(call, item)], Future()

    def begin(self):
        try:
            call, item = self.parts.pop()
        except IndexError:
            return
        try:
            self.future.set_result(call(item))
        except BaseException as wrong:
            self.future.set_exception(wrong)


def _first(waiting: deque):
    """The result of the first task. While another thread is at it, this one begins those behind it."""
    for task in waiting:
        if waiting[0].future.done():
            break
        task.begin()
    return waiting.popleft().future.result()


def _borrow(n_threads: int):
    from concurrent.futures import ThreadPoolExecutor  # not at every import of the package

    try:
        size, pool = _pools.pop()
    except IndexError:
        return ThreadPoolExecutor(n_threads)
    if size == n_threads:
        return pool
    pool.shutdown(wait=False)
    return ThreadPoolExecutor(n_threads)
