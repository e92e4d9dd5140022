"""What queries check of their arguments, and how logs become probabilities with their direction kept."""

from __future__ import annotations

import math

import numpy as np

from .bound import DomainError
from .mechanism import real

U = 2.0**-53


def one_of(name: str, value, allowed) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise DomainError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def numbers(name: str, value, allowed: str, lo: float, hi: float) -> list[float]:
    """The entries of a scalar or array as floats strictly between lo and hi, or a DomainError that names the entry."""
    if type(value) is float and lo < value < hi:
        return [value]
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise DomainError(f"{name} must hold real numbers, got an array of {array.dtype}")
        flat = [float(x) for x in array.ravel()]
    else:
        flat = [real(name, value, f"and {allowed}")]
    for i, x in enumerate(flat):
        if not lo < x < hi:
            where = f" at entry {i}" if len(flat) > 1 else ""
            raise DomainError(f"{name} must be {allowed}, got {x!r}{where}")
    return flat


def exp_lower(log_value: float) -> float:
    """e^log_value, rounded down."""
    return math.exp(log_value) * (1 - 4 * U)


def exp_upper(log_value: float) -> float:
    """The probability e^log_value, rounded up; a positive one never becomes 0."""
    value = math.exp(log_value) * (1 + 4 * U)
    return min(1.0, value if value > 1e-300 or log_value == -math.inf else value + 5e-324)
