"""What ran: frozen values and their constructors. User numbers are checked here and nowhere else.

A mechanism is one step; a `Run` is a multiset of steps. `step * k`, `run + run` and `compose` build runs;
equal steps merge and nothing is computed yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ..bound import DomainError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SIGMA_RANGE = (1e-3, 1e9)
"""Allowed sigma/sensitivity: outside it a double cannot carry the loss or its square."""

LAPLACE_RANGE = (1.0 / 300, 1e9)
"""Allowed scale/sensitivity of Laplace noise: the loss reaches sensitivity/scale, and its exponential must fit a
double."""

Q_MIN = 1e-12
K_MAX = 10**12


def real(name: str, value: Any, allowed: str) -> float:
    """`value` as a float, or a DomainError naming it. Booleans and strings are refused, and so is what a double cannot
    hold exactly (a long int, a longdouble, Decimal("0.1")): rounded to nearest, there could be more noise than there
    was."""
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, bool | np.bool_ | str | bytes) or not isinstance(
        value, int | float | np.number | Decimal | Fraction
    ):
        raise DomainError(f"{name} must be a real number {allowed}, got {value!r}")
    if isinstance(value, np.integer):
        value = int(value)  # numpy compares a long integer as a double
    try:
        number = float(value)
        if number == value or value != value:
            return number
        raise DomainError(f"{name} must be a number that a double holds exactly, got {value!r}: round it the safe way")
    except (TypeError, OverflowError):
        raise DomainError(f"{name} must be a real number {allowed}, got {value!r}") from None


def within(name: str, value: Any, lo: float, hi: float, ends: str = "[]") -> float:
    """`value` as a float from lo to hi, or a DomainError; an end at a round bracket of `ends` is not allowed itself."""
    if type(value) is float and lo < value < hi:
        return value
    allowed = f"in {ends[0]}{lo:g}, {hi:g}{ends[1]}"
    number = real(name, value, allowed)
    if not (lo < number < hi or (number == lo and ends[0] == "[") or (number == hi and ends[1] == "]")):
        raise DomainError(f"{name} must be {allowed}, got {value!r}")
    return number


def count(name: str, value: Any, minimum: int = 1, maximum: int = K_MAX) -> int:
    """`value` as an int in [minimum, maximum], or a DomainError. Booleans and fractions are refused."""
    if type(value) is int and minimum <= value <= maximum:
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and minimum <= value <= maximum):
        most = maximum if maximum < 10**6 else f"{maximum:.0e}"
        raise DomainError(f"{name} must be an integer from {minimum} to {most}, got {value!r}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, or a DomainError."""
    if not isinstance(value, bool | np.bool_):
        raise DomainError(f"{name} must be True or False, got {value!r}")
    return bool(value)


class _Composable:
    """Arithmetic shared by steps and runs."""

    __slots__ = ()

    def __mul__(self, steps: int) -> Run:
        return as_run(self)._repeat(count("number of steps", steps))

    __rmul__ = __mul__

    def __add__(self, other: _Composable) -> Run:
        if not isinstance(other, _Composable):
            return NotImplemented
        return compose((as_run(self), 1), (as_run(other), 1))

    def __radd__(self, other: int) -> Run:
        """sum([...]) starts at 0."""
        return as_run(self) if type(other) is int and other == 0 else NotImplemented


class Recorder:
    """What has a run of its own: an accountant."""

    __slots__ = ()

    @property
    def run(self) -> Run:
        """All that was recorded."""
        raise NotImplementedError


class Mechanism(_Composable):
    """One differentially private step.

    sized : whether its guarantee is about data sets of stated sizes, and so says nothing about a random sample of them.
    open : whether it stands for several sizes or groups at once, so that it has no pair of its own.
    inner : the steps among which it chooses, if it is a mixture. A Poisson sample has none with a stated size inside.
    """

    __slots__ = ()
    sized: ClassVar[bool] = False
    if TYPE_CHECKING:  # properties of some, class attributes of most

        @property
        def open(self) -> bool:
            return False

        @property
        def inner(self) -> tuple[Mechanism, ...]:
            return ()
    else:
        open, inner = False, ()


def leaves(step: Mechanism) -> tuple[Mechanism, ...]:
    """The steps among which `step` chooses, or itself."""
    return tuple(leaf for part in step.inner for leaf in leaves(part)) if step.inner else (step,)


@dataclass(frozen=True, slots=True)
class Gaussian(Mechanism):
    """The Gaussian mechanism; see `gaussian`."""

    sigma: float
    sensitivity: float = 1.0


@dataclass(frozen=True, slots=True)
class Laplace(Mechanism):
    """The Laplace mechanism; see `laplace`."""

    scale: float
    sensitivity: float = 1.0


@dataclass(frozen=True, slots=True)
class PoissonSubsampled(Mechanism):
    """A mechanism run on a Poisson sample; see `poisson_subsampled`."""

    base: Mechanism
    q: float


class Run(_Composable):
    """A composition: distinct steps with their counts, in order of first appearance. Immutable."""

    __slots__ = ("_cache", "parts")

    parts: tuple[tuple[Mechanism, int], ...]
    gathered: ClassVar[bool] = False  # whether it knows its Gaussian steps without parts (arrays.py)
    listed: ClassVar[bool] = True  # whether it knows its steps, and not their moments alone (recorded.py)
    _cache: dict[Any, Any]

    def __init__(self, parts: tuple[tuple[Mechanism, int], ...]) -> None:
        self.parts = parts
        self._cache = {}

    if TYPE_CHECKING:  # arrays.py, which stands above, puts it here

        @staticmethod
        def from_arrays(sigma: ArrayLike, q: ArrayLike = 1.0, count: ArrayLike = 1, *, sensitivity: float = 1.0) -> Run:
            """The run of many Gaussian steps; see `compose_arrays`."""
            raise NotImplementedError

    def _repeat(self, k: int) -> Run:
        return Run(tuple((step, count("number of steps", n * k)) for step, n in self.parts))

    @property
    def steps(self) -> int:
        """Total number of steps."""
        found = self._cache.get("steps")
        if found is None:
            found = self._cache["steps"] = sum(n for _, n in self.parts)
        return found

    @property
    def distinct(self) -> int:
        """Number of distinct steps."""
        return len(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def __repr__(self) -> str:
        shown = [f"{n} x {step!r}" for step, n in self.parts[:4]]
        if len(self.parts) > 4:
            shown.append(f"... {len(self.parts) - 4} more")
        return f"Run({' + '.join(shown) or 'empty'})"


Ran = Run | Mechanism | Recorder
"""What ran: a step, a run, an accountant."""


def gaussian(sigma: float, *, sensitivity: float = 1.0) -> Gaussian:
    """The Gaussian mechanism: a query of L2 sensitivity `sensitivity` plus N(0, sigma^2 I) noise.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in the unit of the query; sigma/sensitivity in [1e-3, 1e9].
    sensitivity : float, default 1
        Largest L2 change of the query when one record is added or removed; > 0.

    Raises
    ------
    DomainError
        If an argument is not a finite number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.gaussian(2.0) * 10
    Run(10 x Gaussian(sigma=2.0, sensitivity=1.0))
    """
    sensitivity = positive("sensitivity", sensitivity)
    return Gaussian(noise("sigma", sigma, sensitivity, SIGMA_RANGE), sensitivity)


def poisson_subsampled(mechanism: Mechanism, q: float) -> Mechanism:
    """`mechanism` run on a Poisson sample: every record is included independently with probability `q`.

    Parameters
    ----------
    mechanism : Mechanism
        The step that runs on the sample. Its guarantee must hold on samples of every size [ZDW22, Thm 11], so steps
        that state a dataset size (truncated, without replacement, cyclic) are refused, wherever they stand in it.
    q : float
        Inclusion probability, 1e-12 <= q <= 1. q = 1 returns `mechanism` itself.

    Raises
    ------
    DomainError
        If `q` is outside its range or `mechanism` cannot be subsampled.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
    >>> f"{hs.epsilon(step * 1000, 1e-5):.6f}"
    '[1.828236, 1.828237]'
    """
    q = within("q (sampling rate)", q, Q_MIN, 1)
    if not isinstance(mechanism, Mechanism) or isinstance(mechanism, PoissonSubsampled):
        raise DomainError(
            "poisson_subsampled takes one step that is not subsampled yet (Gaussian, Laplace, from_pmf(...), ...), "
            f"got {mechanism!r}; subsample each step before composing, and multiply the rates of nested samples"
        )
    if q == 1:
        return mechanism
    for step in leaves(mechanism):
        if step.open and not step.sized:
            raise DomainError(
                f"poisson_subsampled takes a step with a pair of its own, got {step!r}, known between two curves"
            )
        if step.sized:
            raise DomainError(
                f"poisson_subsampled takes steps whose guarantee holds on samples of every size, got {step!r}, which"
                " states a dataset size: on a random sample its own sampling rate is random and larger"
            )
    return PoissonSubsampled(mechanism, q)


def positive(name: str, value: Any) -> float:
    """`value` as a finite float > 0, or a DomainError."""
    value = real(name, value, "> 0")
    if not 0 < value < math.inf:
        raise DomainError(f"{name} must be a finite number > 0, got {value!r}")
    return value


def noise(name: str, value: Any, sensitivity: float, allowed: tuple[float, float]) -> float:
    """A noise scale within its allowed multiples of the sensitivity, or a DomainError."""
    value, (lo, hi) = real(name, value, "> 0"), allowed
    if not lo <= value / sensitivity <= hi:
        raise DomainError(
            f"{name} must be a number > 0 with {name}/sensitivity from {lo:g} to {hi:g}, "
            f"got {name}={value!r} (sensitivity={sensitivity!r})"
        )
    return value


def laplace(scale: float, *, sensitivity: float = 1.0) -> Laplace:
    """The Laplace mechanism: density exp(-|x|/scale)/(2 scale) added to every entry of a query of L1 sensitivity
    `sensitivity`.

    Of all such queries one with a single entry is the worst (proof in pair.py). Under adjacency "replace_one" a Poisson
    sample of it is proved for scalar queries only.

    Parameters
    ----------
    scale : float
        In the unit of the query; scale/sensitivity in [1/300, 1e9].
    sensitivity : float, default 1
        Largest change of the query when one record is added or removed; > 0.

    Raises
    ------
    DomainError
        If an argument is not a finite number in its range.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.delta(hs.laplace(1.0), 0.5, route="pld")
    >>> b.lower <= 0.2211992169285952 <= b.upper
    True
    """
    sensitivity = positive("sensitivity", sensitivity)
    return Laplace(noise("scale", scale, sensitivity, LAPLACE_RANGE), sensitivity)


def as_run(what: Any) -> Run:
    """A Run from a Run, a single Mechanism or an accountant; DomainError otherwise."""
    if isinstance(what, Run):
        return what
    if isinstance(what, Mechanism):
        return Run(((what, 1),))
    if isinstance(what, Recorder):
        return what.run
    raise DomainError(f"expected a mechanism or a run of mechanisms, got {what!r}")


def compose(*parts: Ran | tuple[Ran, int] | list[Ran | tuple[Ran, int]]) -> Run:
    """Compose steps and runs: each argument is a mechanism, a run, an accountant, a pair (one of these, count), or a
    list.

    Equal steps merge. `compose()` is the empty run, which is perfectly private. With a run of which the moments alone
    are known (`Accountant.compact_state_dict`) all parts must be Gaussian, and moments are what is known of the whole.

    Raises
    ------
    DomainError
        If an argument is none of these, or a count is not an integer from 1 to 1e12, or moments cannot take a part.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.gaussian(1.0)
    >>> hs.compose((step, 2), step) == hs.compose([step, step, step]) == sum([step, step, step]) == step * 3
    True
    """
    runs = [(as_run(what), k) for what, k in _pairs(parts)]
    merged: dict[Mechanism, int] = {}
    for run, _ in runs:
        if not run.listed:
            return cast(Any, run).joined(runs)
    for run, k in runs:
        for step, n in run.parts:
            merged[step] = count("number of steps", merged.get(step, 0) + n * k)
    return Run(tuple(merged.items()))


def _pairs(parts: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    for part in parts:
        if isinstance(part, list):
            yield from _pairs(part)
        elif isinstance(part, tuple):
            if len(part) != 2:
                raise DomainError(f"expected (mechanism, count), got a tuple of {len(part)}: {part!r}")
            yield part[0], count("number of steps", part[1])
        else:
            yield part, 1
