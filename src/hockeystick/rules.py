"""What may stand for a run of many distinct Gaussian steps, in the order in which it is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from . import compression, rates, wide
from .compression import Ruled
from .step_moments import StepMoments

if TYPE_CHECKING:
    from ._core import Rows
    from .what.mechanism import Run


def rules(
    run: Run,
    adjacency: str,
    count: int,
    moments_of: Callable[[], StepMoments | None],
    steps_of: Callable[[], Rows] | None,
    widest: bool = True,
    sides: int = 1,
) -> Iterator[Ruled]:
    """The rules worth a line, the one of fewest rows first, of a run of `count` distinct steps whose moments are
    moments_of() and which are themselves, if they are known, steps_of(); none where the steps are hardly more. Without
    `widest` those whose rows all count in a tail. sides = 2: sampled steps are two-sided pairs."""
    if count < compression.FEWEST:
        return

    def kept(name, make):
        """What `make` makes, once for a run."""
        key = (adjacency, "rule", name)
        if key not in run._cache:
            run._cache[key] = make()
        return run._cache[key]

    moments = kept("moments", moments_of)
    made: list[tuple[str, Callable[[], Ruled | None]]] = []
    if moments and moments.cells:
        if widest and sides == 1 and (count >= compression.FEWEST_OF_MANY_RATES or steps_of is None):
            made = [("rates", lambda: rates.rule(moments, count))]
    elif moments:
        made = [("wide", lambda: wide.wide_rule(moments, sides))] if widest else []
        made += [("merged", lambda: compression.rule_of(moments, sides))]
    for name, make in made:
        ruled = kept(name, make)
        if ruled and ruled.steps.shift.size < compression.WORTH * count:
            yield ruled
    if steps_of and count <= compression.FINE_MOST:
        ruled = kept("fine", lambda: compression.fine_rule(steps_of(), sides))
        if ruled:
            yield ruled
