"""Scratch of C calls, kept from one call to the next: a block is lent to one call at a time."""

from __future__ import annotations

import numpy as np

KEPT = 1 << 20
"""Doubles of the largest block that is kept."""

_NONE = np.zeros(0)
_kept: list[np.ndarray] = []  # list.pop and list.append are atomic


def borrow(size: int) -> np.ndarray:
    """At least `size` doubles of anything."""
    try:
        work = _kept.pop()
    except IndexError:
        work = _NONE
    return work if work.size >= size else np.empty(size)


def give_back(work: np.ndarray) -> None:
    """The end of a loan."""
    if not _kept and work.size < KEPT:
        _kept.append(work)


def lend(size: int, function, *arguments, **options):
    """function(*arguments, work, **options), with `size` doubles of scratch."""
    work = borrow(size)
    try:
        return function(*arguments, work, **options)
    finally:
        give_back(work)
