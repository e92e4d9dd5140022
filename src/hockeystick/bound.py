"""What a query returns, and what it raises.

A `Bound` carries a certified interval together with the terms that were added up to make it. It never turns
into a float by itself: the caller says which end is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeVar

    Value = TypeVar("Value", bound="float | NDArray[np.float64]", default=float, covariant=True)
else:
    from typing import TypeVar

    Value = TypeVar("Value", covariant=True)


class HockeystickError(Exception):
    """Base of all errors raised on purpose by this package. `code` is the status of the C floor, or 0."""

    code: int = 0

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class DomainError(HockeystickError, ValueError):
    """An argument lies outside its domain. The message names the value, what is allowed and what to do."""


class AccuracyError(HockeystickError, ArithmeticError):
    """The accuracy asked for cannot be certified. The message says what was reached and what to do."""


class LimitError(HockeystickError, RuntimeError):
    """A step of an accountant with a limit would exceed it, or is not proved not to. The step is not recorded: do not
    run it."""


class SoundnessError(HockeystickError, RuntimeError):
    """Certified intervals contradict each other, so that one of them misses the truth: a defect of this package.
    Nothing is returned. Please report the message, which names the run, the intervals and their routes."""


def contradiction(run: Any, *found: Any) -> SoundnessError:
    """The error where answers (lower, estimate, upper, ..., route) about one number of `run` cannot all be right."""
    ends = ", ".join(f"[{low!r}, {high!r}] by route {route!r}" for low, _, high, *_, route in found)
    about = "" if run is None else f" of {run!r}"
    return SoundnessError(
        f"a defect of hockeystick, please report it: certified bounds{about} contradict each other: {ends}"
    )


RELATIVE = "relative delta"


class Budget(NamedTuple):
    """Error terms of a certified bound, in the unit of the quantity that the route computed.

    Each entry is how far that source of error alone moves an end of the interval: a float, or an array of the
    query's shape. `unit` says what they measure: "delta" (absolute) or "relative delta". "mesh" of the route prv is
    how far eps is moved.
    """

    terms: dict[str, Any]
    unit: str = RELATIVE

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={_short(value)}" for name, value in self.terms.items())
        return f"Budget({inner}; {self.unit})"


class Bound(Generic[Value]):
    """An interval for a privacy quantity. A certified one with anything but lower <= estimate <= upper is a
    SoundnessError.

    Bounds are equal where their ends, estimates and routes are. ``f"{bound:.3f}"`` rounds outward: "[1.828, 1.829]". A
    bound of an array has a length, entries and slices, which are bounds.

    Attributes
    ----------
    lower, upper : float or ndarray
        Ends of the interval. With `certified`, lower <= truth <= upper, floating-point rounding included.
    estimate : float or ndarray
        The most likely value. Never a bound.
    route : str
        The route that produced the answer ("contour", "prv", ...). For arrays, the routes that were used,
        joined by "+".
    certified : bool
        Whether the interval is proved.
    budget : Budget
        Named error terms behind the interval.
    note : str
        How a maximum over something left open (a range of dataset sizes, groups of records) was found; else empty.
    asked : (str, float or array_like) or None
        The question that `delta`, `log_delta` or `epsilon` answered: its name and its argument. None from other
        functions.

    Examples
    --------
    >>> import hockeystick as hs
    >>> bound = hs.delta(hs.gaussian(1.0), [1.0, 2.0])
    >>> f"{bound[1]:.3f}", bound[1].asked, len(bound), bound == hs.delta(hs.gaussian(1.0), [1.0, 2.0])
    ('[0.020, 0.021]', ('delta', 2.0), 2, True)
    """

    __slots__ = ("_budget", "asked", "certified", "estimate", "lower", "note", "route", "upper")

    lower: Value
    estimate: Value
    upper: Value
    route: str
    certified: bool
    _budget: Budget | tuple[tuple[str, ...], tuple[float, ...]]
    note: str
    asked: tuple[str, Any] | None

    def __init__(
        self,
        lower: Value,
        estimate: Value,
        upper: Value,
        route: str,
        certified: bool,
        budget: Budget | tuple[tuple[str, ...], tuple[float, ...]],
        note: str = "",
    ) -> None:
        if certified and not _in_order(lower, estimate, upper):
            raise contradiction(None, (lower, estimate, upper, route))
        self.lower = lower
        self.estimate = estimate
        self.upper = upper
        self.route = route
        self.certified = certified
        self._budget = budget
        self.note = note
        self.asked = None

    @property
    def budget(self) -> Budget:
        """Named error terms behind the interval: put together when read, as most are not."""
        found = self._budget
        if not isinstance(found, Budget):
            found = self._budget = Budget(dict(zip(*found, strict=True)))
        return found

    def answers(self, query: str, at: Any) -> Bound[Value]:
        """The same bound, which now says what was asked."""
        self.asked = query, at
        return self

    @property
    def width(self) -> Value:
        """upper - lower: a float, or an array of the query's shape; 0 where both are infinite."""
        with np.errstate(invalid="ignore"):
            width = np.where(np.equal(self.upper, self.lower), 0.0, np.subtract(self.upper, self.lower))
        return width if np.ndim(self.upper) else float(width)  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound):
            return NotImplemented
        ends = all(np.array_equal(getattr(self, end), getattr(other, end)) for end in ("lower", "estimate", "upper"))
        return ends and (self.route, self.certified) == (other.route, other.certified)

    def __hash__(self) -> int:
        return hash((tuple(np.ravel(self.lower).tolist()), tuple(np.ravel(self.upper).tolist()), self.route))

    def __format__(self, spec: str) -> str:
        """Both ends with as many digits as `spec` (".3f", ".2e", ".4g") has, rounded outward."""
        if not spec:
            return repr(self)
        if np.ndim(self.lower):
            return f"[{', '.join(format(entry, spec) for entry in self)}]"  # type: ignore[misc]
        return f"[{_rounded(float(self.lower), spec, ROUND_FLOOR)}, {_rounded(float(self.upper), spec, ROUND_CEILING)}]"

    @overload
    def __getitem__(self: Bound[NDArray[np.float64]], index: int) -> Bound[float]: ...
    @overload
    def __getitem__(self: Bound[NDArray[np.float64]], index: Any) -> Bound[Any]: ...
    def __getitem__(self, index: Any) -> Bound[Any]:
        if not np.ndim(self.lower):
            raise TypeError("a Bound of one number has no entries: write .lower, .estimate or .upper")
        shape = np.shape(self.lower)

        def at(value: Any) -> Any:
            entry = value[index] if np.shape(value) == shape else value
            return float(entry) if isinstance(entry, np.floating) else entry

        budget = Budget({name: at(term) for name, term in self.budget.terms.items()}, self.budget.unit)
        bound = Bound(at(self.lower), at(self.estimate), at(self.upper), self.route, self.certified, budget, self.note)
        if self.asked is not None:
            bound.asked = self.asked[0], at(np.asarray(self.asked[1]))
        return bound

    def __len__(self: Bound[NDArray[np.float64]]) -> int:
        if not np.ndim(self.lower):
            raise TypeError("a Bound of one number has no length")
        return len(self.lower)

    def __bool__(self) -> bool:
        return True

    def __iter__(self: Bound[NDArray[np.float64]]) -> Iterator[Bound[Any]]:
        return (self[i] for i in range(len(self)))

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise TypeError("a Bound is an interval: write .upper, .lower or .estimate")

    def __repr__(self) -> str:
        kind = "certified" if self.certified else "not certified"
        return (
            f"Bound(lower={_short(self.lower)}, estimate={_short(self.estimate)}, "
            f"upper={_short(self.upper)}, route={self.route!r}, {kind})"
        )

    def __float__(self) -> float:
        raise TypeError("a Bound is an interval: write .upper, .lower or .estimate")


def _in_order(lower: Any, estimate: Any, upper: Any) -> bool:
    if type(lower) is float:
        return lower <= estimate <= upper
    return bool(np.all((lower <= estimate) & (estimate <= upper)))


def _rounded(value: float, spec: str, rounding: str) -> str:
    """`value` as `spec` writes it, rounded the given way; exact where it has the digits."""
    kind, digits = spec[-1:], spec[1:-1] if spec.startswith(".") else "6"
    if kind not in tuple("efg") or not digits.isdigit() or not (spec.startswith(".") or len(spec) == 1):
        raise ValueError(f"a Bound is written with .Nf, .Ne or .Ng, got {spec!r}")
    if not np.isfinite(value):
        return repr(value)
    exact, n = Decimal(value), int(digits)
    if kind == "f":
        return f"{exact.quantize(Decimal(1).scaleb(-n), rounding, Context(prec=2000)):f}"
    short = Context(prec=n + 1 if kind == "e" else max(n, 1), rounding=rounding).create_decimal(exact)
    return format(short, f".{n}e") if kind == "e" else format(short.normalize(), "g")


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, threshold=6)
    return repr(value) if isinstance(value, int) else format(value, ".17g")
