"""What a caller may hand to the filter of every record: norms, indices, a mask, words to keep the state in. Anything
else is a DomainError; nothing is converted with a rounding."""

from __future__ import annotations

import numpy as np

from ..bound import DomainError
from ..what.vectors import reals


def norms_of(norms) -> np.ndarray:
    """A contiguous vector of float32 or float64."""
    array = np.asarray(norms)
    if array.dtype != np.float32:
        array = reals("norms", array)
    if array.ndim != 1:
        raise DomainError(f"norms must have one dimension, got shape {array.shape}")
    return np.ascontiguousarray(array)


def words_of(words, n: int) -> np.ndarray:
    """The caller's n zeros, used in place."""
    if not (isinstance(words, np.ndarray) and words.dtype == np.int64 and words.shape == (n,) and words.flags.carray):
        raise DomainError(f"words must be a writable contiguous int64 array of length {n}")
    if words.any():
        raise DomainError("words must be zeros: state that was kept there is not resumed; use path for that")
    return np.asarray(words)


def mask_of(out, size: int) -> np.ndarray:
    """Where the active mask goes."""
    if out is None:
        return np.empty(size, np.bool_)
    if not (isinstance(out, np.ndarray) and out.dtype == np.bool_ and out.shape == (size,) and out.flags.carray):
        raise DomainError(f"out must be a writable contiguous bool array of length {size}")
    return out


def sorted_indices(indices, n: int):
    """(indices in increasing order, the order that sorts them or None if they are sorted); distinct and in range."""
    index = np.asarray(indices)
    if index.size == 0:
        return np.empty(0, np.int64), None
    if index.dtype.kind not in "iu" or index.ndim != 1:
        raise DomainError(
            f"indices must be a one-dimensional array of integers, got {index.dtype} of shape {index.shape}"
        )
    index = np.ascontiguousarray(index, dtype=np.int64)
    order = None
    if index.size > 1 and not (index[1:] > index[:-1]).all():
        order = np.argsort(index, kind="stable")
        index = index[order]
        twice = np.flatnonzero(index[1:] == index[:-1])
        if twice.size:
            raise DomainError(f"indices must be distinct, got {index[twice[0]]} twice; nobody was charged")
    if index[0] < 0 or index[-1] >= n:
        bad = index[0] if index[0] < 0 else index[-1]
        raise DomainError(f"indices must be from 0 to {n - 1}, got {bad}; nobody was charged")
    return index, order
