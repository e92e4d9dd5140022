"""How many threads a call may use, and how it shares out work among them."""

from __future__ import annotations

import os
from collections import deque
from itertools import pairwise

from .mechanism import count

_IMPORTED_BY = os.getpid()
_pools: list = []  # (threads, idle pool), lent to one call at a time: list.pop and list.append are atomic


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
    """call(item) for every item, in order; with threads, at most 2 n_threads results wait at a time."""
    if n_threads == 1 or len(items) <= 1:
        yield from map(call, items)
        return
    pool = _borrow(n_threads)
    waiting = deque(pool.submit(call, item) for item in items[: 2 * n_threads])
    try:
        for item in items[2 * n_threads :]:
            yield waiting.popleft().result()
            waiting.append(pool.submit(call, item))
        while waiting:
            yield waiting.popleft().result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    _pools.append((n_threads, pool))


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
