"""How many threads a call may use."""

from __future__ import annotations

import os

from .mechanism import count

_IMPORTED_BY = os.getpid()


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
