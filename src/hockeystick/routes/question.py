"""What a route is asked: a run under an adjacency, and how good an answer is wanted. Routes see this of a query and no
more."""

from __future__ import annotations

import operator

from .. import _core
from ..compression import FEWEST, moments_of_steps
from ..rules import rules
from ..what.pair import all_gaussian, gaussian_facts, gaussian_steps, losses, paired_steps, steps_of
from . import contour

MOST_SAMPLED = 0.9
"""A rate from which no jump is rare."""

FEW_JUMPS, FAR_JUMPS = 0.45, 1.2
"""Records expected in all samples of pairs, and sensitivity/sigma, below which jumps apart are asked before long
lines."""

SHARP = 1e-6
"""Relative width from which `auto` asks no further contour, and nothing that is asked right after them."""


AIM = 2.5e-8
"""The relative half-width of delta at which lines aim at most where a larger one will do: they serve other eps too."""

ROUGH = 0.05
"""The relative half-width of delta asked where an upper end of any width will do."""


class Question:
    """The run of a query, its tolerance and its threads.

    gaussian : whether all pairs are of the Gaussian family; other runs go through `losses`.
    total, wall : number of steps of such a run, no loss of its ADD direction is larger; 0 and infinite for any other.
    few : whether nothing may stand for its steps but they themselves.   replaced : whether all are Gaussian, sampled or
    not, under replace_one, and some sampled.
    auto : whether no route was named.   why : what the last route said that declined.
    rough : whether an upper end of any width will do.   about : log of what delta is compared to, or 0.
    known : what routes asked before left, or None.
    lines : lines that serve more than one eps (near.py), where many are asked; else None.   loose : whether these may
    be as wide as a line aims at, and not only about as wide as one placed at the eps itself.
    wide : a relative width of delta that will do, where a rougher line is cheaper; 0: none is known.
    lined : what a line said that was asked for both directions at once and fell short (contour.lined), or None.
    place : where a root was found last (mixed.Place), for the next one of the same question, or None.
    """

    __slots__ = (
        "_steps",
        "about",
        "adjacency",
        "auto",
        "few",
        "gaussian",
        "known",
        "lined",
        "lines",
        "loose",
        "mirrored",
        "n_threads",
        "place",
        "replaced",
        "rough",
        "rtol",
        "run",
        "total",
        "wall",
        "why",
        "wide",
    )

    def __init__(self, run, adjacency: str, auto: bool, rtol: float | None, n_threads: int):
        self.run, self.adjacency, self.auto, self.rtol, self.n_threads = run, adjacency, auto, rtol, n_threads
        self.why, self.rough, self.about, self.known = "", False, 0.0, None
        self.lines: dict | None = None
        self.loose, self.wide = False, 0.0
        self.place = self.lined = None
        self._steps = None
        self.gaussian, self.total, self.wall, self.mirrored = gaussian_facts(run, adjacency)
        self.replaced = not self.gaussian and adjacency == "replace_one" and all_gaussian(run)
        self.few = not (self.gaussian or self.replaced) or (run.listed and run.distinct < FEWEST)

    @property
    def steps(self):
        """A run of the Gaussian family as arrays, made when asked for; None for any other."""
        if self._steps is None and self.gaussian:
            self._steps = gaussian_steps(self.run, self.adjacency)
        return self._steps

    @property
    def brief(self) -> bool:
        """Whether a grid is asked only for what it gives at once: `auto` without rtol, and a run that the contour
        takes."""
        if not self.auto or self.rtol is not None:
            return False
        return self.gaussian or paired_steps(self.run, self.adjacency, False) is not None

    def most_nodes(self) -> int:
        """The outer nodes that a line may have which is asked first: fewer where rare jumps may be taken apart."""
        if not (self.auto and self.few):
            return contour.MOST_NODES
        if self.gaussian:
            one = self.total > 1 and self.steps.q.size == 1 and self.steps.q.item() < MOST_SAMPLED
            return contour.LONG_LINE if one else contour.MOST_NODES
        if self.run.steps == 1:
            return contour.MOST_NODES
        paired = paired_steps(self.run, self.adjacency, False)
        if paired is None or paired.steps.k.size > _core.JUMPS_STEPS:
            return contour.MOST_NODES
        shift, q, k = (x.tolist() for x in paired.branches)
        many = min(shift) >= FAR_JUMPS and sum(map(operator.mul, k, q)) >= FEW_JUMPS
        return contour.MOST_NODES if many else contour.PAIR_LINE

    @property
    def goal(self) -> float:
        """The relative half-width of delta asked of a contour."""
        if self.rough:
            return ROUGH
        if self.rtol is None:
            return max(contour.RTOL, min(0.25 * self.wide, AIM))
        return min(contour.RTOL, 0.25 * self.rtol)

    @property
    def sharp(self) -> float:
        """The relative width at which no other contour is asked."""
        if self.rough:
            return ROUGH
        return max(SHARP, self.wide) if self.rtol is None else min(SHARP, self.rtol)

    @property
    def very_many(self) -> bool:
        """Whether a looser answer of a rule is taken before the steps are summed: these are very many, or not known."""
        most = contour.MANY_PAIRS if self.replaced else contour.VERY_MANY
        return self.run.distinct > most or not self.run.listed

    @property
    def rules(self):
        """What may stand for a run of many distinct Gaussian steps (rules.py), made on request; where it is `replaced`,
        of two-sided pairs, which lines alone take."""
        return self._rules(True)

    @property
    def narrower_rules(self):
        """Those of them whose rows all count in a tail, and that are as good as any; none of two-sided pairs, of which
        the routes that ask for these know nothing."""
        return () if self.replaced else self._rules(False)

    def _rules(self, widest: bool):
        run, adjacency = self.run, self.adjacency
        if self.few:
            return ()
        own = "add_remove" if self.replaced else adjacency  # whose shifts are those of one record
        return rules(
            run,
            adjacency,
            run.distinct,
            lambda: run.step_moments(own) if run.gathered else moments_of_steps(steps_of(run, own)),
            (lambda: steps_of(run, own)) if run.listed else None,
            widest,
            2 if self.replaced else 1,
        )

    def tell(self, way: str, add: int, found, seconds: float) -> None:
        """What one way to sum a line said of a run with random allocation, for the logger "hockeystick"."""
        import logging

        log = logging.getLogger("hockeystick")
        if log.isEnabledFor(logging.DEBUG):
            said = f"a relative width of {found.width:.2g}" if found else f"declined{self.why and f' ({self.why})'}"
            log.debug("%s, %s, of %r: %s, %.1f ms", way, "add" if add else "remove", self.run, said, 1e3 * seconds)

    def losses(self, add: int):
        """(loss, count) of the distinct steps in one direction."""
        return losses(self.run, self.adjacency, "add" if add else "remove")
