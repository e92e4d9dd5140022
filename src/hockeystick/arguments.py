"""What queries check of their arguments, and how logs become probabilities with their direction kept."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .bound import DomainError
from .outward import DOWN, UP
from .what.mechanism import real

P = ParamSpec("P")
R = TypeVar("R")


def respelled(**old: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keywords that are other names of a parameter, other=name."""

    def wrap(f: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(f)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for other, name in old.items() if kwargs else ():
                if other in kwargs:
                    if name in kwargs:
                        raise DomainError(f"{other} is another name of {name}: give one of the two")
                    kwargs[name] = kwargs.pop(other)
            return f(*args, **kwargs)

        return call

    return wrap


def one_of(name: str, value: Any, allowed: Any) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise DomainError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def numbers(name: str, value: Any, allowed: str, lo: float, hi: float) -> list[float]:
    """The entries of a scalar or array as floats strictly between lo and hi, or a DomainError that names the entry."""
    if type(value) is float and lo < value < hi:
        return [value]
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise DomainError(f"{name} must hold real numbers, got an array of {array.dtype}")
        plain = array.dtype == float
        flat = array.ravel().tolist() if plain else [real(name, x, f"and {allowed}") for x in array.ravel()]
    else:
        flat = [real(name, value, f"and {allowed}")]
    for i, x in enumerate(flat):
        if not lo < x < hi:
            where = f" at entry {i}" if len(flat) > 1 else ""
            raise DomainError(f"{name} must be {allowed}, got {x!r}{where}")
    return flat


def shaped(found: Iterable[float], like: Any) -> Any:
    """What was found for the `numbers` of `like`, in its shape."""
    values = list(found)
    return values[0] if isinstance(like, float) or not np.ndim(like) else np.array(values).reshape(np.shape(like))


# A function of libm or numpy is within a unit in the last place. A unit is 5e-324 below 2^-1022, where no factor
# rounds.


def exp_lower(log_value: float) -> float:
    """e^log_value, rounded down."""
    value = math.exp(log_value) * DOWN
    return value if value > 1e-300 else max(0.0, value - 1e-323)


def exp_upper(log_value: float) -> float:
    """The probability e^log_value, rounded up; a positive one never becomes 0."""
    value = math.exp(log_value) * UP
    return min(1.0, value if value > 1e-300 or log_value == -math.inf else value + 5e-324)


def exp_ends(logs: np.ndarray) -> np.ndarray:
    """The same for rows of log_lower, log_estimate, log_upper, of which -inf is 0."""
    low, mid, high = np.exp(logs.T)
    low, high = low * DOWN, high * UP
    low = np.where(low > 1e-300, low, np.maximum(0.0, low - 1e-323))
    high = np.where((high > 1e-300) | (logs[:, 2] == -math.inf), high, high + 5e-324)
    high = np.minimum(1.0, high)
    return np.array([low, np.minimum(mid, high), high])  # exp(0) may be above 1 where it is rounded upward


def log_lower(value: float) -> float:
    """log value, rounded down."""
    return math.nextafter(math.log(value), -math.inf)


def log_upper(value: float) -> float:
    """log value, rounded up."""
    return math.nextafter(math.log(value), math.inf)
