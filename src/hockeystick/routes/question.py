"""What a route is asked: a run under an adjacency, and how good an answer is wanted. Routes see this of a query and no
more."""

from __future__ import annotations

import math

from ..pair import gaussian_facts, gaussian_steps, losses, paired_steps
from . import contour


class Question:
    """The run of a query, its tolerance and its threads.

    steps : arrays of a run of the Gaussian family (total : their number, wall : the largest loss in the ADD direction);
    None, 0
    and infinite for any other run, whose routes go through `losses`.   auto : whether no route was named.   why : what
        the
    last route said that declined.
    """

    __slots__ = ("adjacency", "auto", "mirrored", "n_threads", "rtol", "run", "steps", "total", "wall", "why")

    def __init__(self, run, adjacency: str, auto: bool, rtol: float | None, n_threads: int):
        self.run, self.adjacency, self.auto, self.rtol, self.n_threads = run, adjacency, auto, rtol, n_threads
        self.why = ""
        self.steps = gaussian_steps(run, adjacency)
        self.total: float = 0
        self.wall, self.mirrored = math.inf, False
        if self.steps is not None:
            self.total, self.wall, self.mirrored = gaussian_facts(run, self.steps)

    @property
    def brief(self) -> bool:
        """Whether a grid is asked only for what it gives at once: `auto` without rtol, and a run that the contour
        takes."""
        if not self.auto or self.rtol is not None:
            return False
        return self.steps is not None or paired_steps(self.run, self.adjacency, False) is not None

    @property
    def goal(self) -> float:
        """The relative half-width of delta asked of a contour."""
        return contour.RTOL if self.rtol is None else min(contour.RTOL, 0.25 * self.rtol)

    def losses(self, add: int):
        """(loss, count) of the distinct steps in one direction."""
        return losses(self.run, self.adjacency, "add" if add else "remove")
