"""Names for annotations: what queries take, in words that type checkers know.

>>> from hockeystick.types import Adjacency
>>> def report(adjacency: Adjacency) -> None: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

import numpy as np

from .what.mechanism import Ran as Ran

if TYPE_CHECKING:
    from numpy.typing import NDArray

Adjacency = Literal["add_remove", "replace_one", "zero_out"]
Direction = Literal["both", "remove", "add"]
Route = Literal["auto", "contour", "prv", "pld", "saddlepoint", "edgeworth"]
Floats = "NDArray[np.float64]"
Numbers = Union[Sequence[float], Sequence[Sequence[float]], "NDArray[np.floating[Any] | np.integer[Any]]"]
"""Arrays and (nested) lists of real numbers."""


class Sides(TypedDict, total=False):
    """Whose neighbours, and in which direction."""

    adjacency: Adjacency
    direction: Direction


class Sided(TypedDict, total=False):
    """The options of a query but for direction and rtol."""

    adjacency: Adjacency
    route: Route
    n_threads: int


class SidedTol(Sided, total=False):
    """The options of a query but for direction."""

    rtol: float | None


class Asked(Sided, total=False):
    """The options of a query but for rtol."""

    direction: Direction


class Query(Asked, total=False):
    """The options of a query."""

    rtol: float | None


class Expansion(TypedDict, total=False):
    """The options of the Edgeworth accountant's estimates."""

    direction: Direction
    order: int
    form: Literal["one_sequence", "two_sequence"]


class Smoothing(Expansion, total=False):
    """The options of Prawitz' intervals."""

    limit: float | None


class Finite(TypedDict, total=False):
    """The options of the intervals of finite-sample constants."""

    direction: Direction
    form: Literal["one_sequence", "two_sequence"]
    published: bool
