"""Scratch of C calls, kept from one call to the next: a block is lent to one call at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

KEPT = 1 << 20
"""Doubles of the largest block that is kept."""

_NONE = np.zeros(0)
_kept: list[np.ndarray] = []  # list.pop and list.append are atomic


def borrow(size: int) -> np.ndarray:
    """Room for at least `size` doubles, which hold anything."""
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


TABLES = 8
"""Sets of tables that are kept."""

_tables: OrderedDict[Hashable, np.ndarray] = OrderedDict()


def lend_tables(key: Hashable, size: int, function, *arguments):
    """function(*arguments, tables): `size` doubles as the last call with that key left them, zeros at first. They are
    out of reach while they are lent: a second thread makes its own."""
    tables = _tables.pop(key, None)
    if tables is None:
        tables = np.zeros(size)
    try:
        return function(*arguments, tables)
    finally:
        _tables[key] = tables
        while len(_tables) > TABLES:
            _tables.popitem(last=False)
