"""Arrays of numbers that a caller gives: the first one that is not allowed is named, and none is rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bound import DomainError


def reals(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """`value` as an array of doubles, or a DomainError; see `mechanism.real`. An array of doubles is that itself."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise DomainError(f"{name} must be real numbers, got {value!r:.60}") from None
    if given.dtype.kind not in "fiu":
        raise DomainError(f"{name} must be real numbers, got an array of {given.dtype}")
    if given.dtype == np.float64:
        return given
    with np.errstate(over="ignore", invalid="ignore"):
        doubles = given.astype(np.float64)
        exact = doubles.astype(given.dtype) == given  # compared as doubles, long integers would be equal to others
    exact |= given != given  # what is no number is for others to refuse
    if given.dtype.kind != "f":
        exact &= np.abs(doubles) < 2.0**63  # beyond, the way back means nothing
    require(name, given, exact, "numbers that a double holds exactly")
    return doubles


def require(name: str, array: NDArray[Any], good: Any, allowed: str) -> None:
    """DomainError that names the first entry for which `good` is not true."""
    if not np.all(good):
        where = np.argwhere(~np.asarray(good))[0].tolist()
        at = f" at entry {where if len(where) > 1 else where[0]}" if where else ""
        raise DomainError(f"{name} must be {allowed}, got {array[tuple(where)].item()!r}{at}")
