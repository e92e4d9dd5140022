"""The finite losses of a run as a line takes them: what each step is to lattice.py or mixed.py, and what tables leave
out.

Epochs of random allocation, and groups, are known up to outcomes of a probability of e^-depth; a deeper table leaves
out less, and is not always the narrower one (windows.py)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..outward import U
from ..what.allocation import RandomAllocation
from ..what.condensed import condensed
from ..what.discrete import ApproxDP, DiscreteGaussian, DiscreteLaplace, KAryRandomizedResponse, shifted
from ..what.given import GaussianMixture
from ..what.groups import Group
from ..what.mechanism import Gaussian, Laplace, PoissonSubsampled
from ..what.ranged import BoundedRange
from . import epochs, lattice, mixed
from .epochs import DEPTHS, LOST

PLACES = 800
"""Those at which the curve of a run is bounded for what is left out of it."""

TABLES_MAX, LAWS_MAX = 128, 20_000
"""Distinct steps that a line takes by tables of their points, more of which cost more than convolution, and all."""

SHIFT_MAX = 10.0
"""Largest shift of a mixture that it takes, in units of sigma: beyond it convolution is as good."""

SUMS = 44.0
"""Nats of what the largest sums of groups are moved by, at least."""


class Finite(NamedTuple):
    """The finite losses of a run as one of the two routes takes them, and log(1 - D). Outcomes of mass `lost` may be
    missing. partial: whether the transforms of all steps may know more; untried: whether points of an epoch's density,
    which it does without, may; how: how epochs of random allocation are taken (epochs.py)."""

    run: lattice.Lattice | list
    log_finite: float
    lost: float = 0.0
    partial: bool = False
    untried: bool = False
    how: int = epochs.AUTO

    @property
    def route(self):
        return lattice if isinstance(self.run, lattice.Lattice) else mixed

    def tolerance(self, question) -> tuple[float | None, ...]:
        """The relative half-width that a line aims at, and the width that ends it where there are longer lines."""
        enough = 10 * question.goal if question.rough else question.rtol
        return (question.goal, enough) if self.route is mixed else (question.goal,)

    def lost_upper(self, eps: float, log_delta: float) -> float:
        """A bound of what outcomes that are missing add to delta(eps): other steps are to make up for what a loss is
        short of eps. curve: a bound of that of the whole run, at places from 0 up to eps [theory: allocation.left-out].
        """
        if not self.lost or math.log(self.lost) < log_delta - LOST:
            return self.lost
        held = [step for step in self.run if isinstance(step, mixed.DensityStep)]
        if self.lost > math.fsum(step.k * step.lost for step in held) * (1 + 1e-9):  # of others no more is known
            return self.lost
        cells = [(step.left_out, math.log(step.k)) for step in held]
        loss = np.concatenate([of[0] for of, _ in cells])
        mass = np.exp(np.concatenate([of[1] + log_k for of, log_k in cells]))
        if not eps > 0 or not mass.sum() < 0.5:
            return self.lost
        y = np.linspace(0.0, eps, PLACES) * (1 - 1e-12)
        near = loss <= 0
        back = np.ceil(np.minimum(loss[~near] / y[1] * (1 + 1e-12), PLACES)).astype(int)
        least = 1 - float(mass[near].sum())
        curve, kept = np.ones(PLACES), [mixed.log_delta_upper(self.run, x) for x in y[1:].tolist()]
        for i, log in enumerate(kept, 1):
            others = float(mass[~near] @ curve[np.maximum(i - back, 0)])
            curve[i] = min((math.exp(min(log, 0.0)) + others) / least, curve[i - 1])
        total = float(mass[near].sum()) * curve[-1] + float(mass[~near] @ curve[np.maximum(PLACES - 1 - back, 0)])
        total *= 1 + 1e-9
        return min(total + 1e-320, self.lost)


def describe(run, losses, add: int, adjacency: str, depth: float, how: int = epochs.AUTO) -> Finite | str:
    """What the run is made of, or why no line takes it. losses: (Loss, count) of every step, by which the adjacency has
    been accepted. What is left out is to have a probability of e^-depth; with depth = inf all is by transforms. how:
    how epochs of random allocation are taken (epochs.py)."""
    key = ("finite", add, id(losses))
    kept, _ = run._cache.setdefault(key, ({}, losses))  # the losses live as long as their id is used
    if "cut" not in run._cache:
        run._cache["cut"] = any(isinstance(step, RandomAllocation | Group) for step, _ in run.parts)
    if not run._cache["cut"]:
        depth = math.inf
    if (depth, how) not in kept:  # another one would serve, but answers shall not depend on what was asked before
        kept[depth, how] = _describe(run, losses, add, adjacency, depth, how)
    return kept[depth, how]


def _describe(run, losses, add: int, adjacency: str, depth: float, how: int) -> Finite | str:
    if len(run.parts) > TABLES_MAX:
        held = sum(not _brief(step) for step, _ in run.parts)
        if held > TABLES_MAX or len(run.parts) > LAWS_MAX:
            return f"a line takes {LAWS_MAX} distinct steps, {TABLES_MAX} of them by tables"
    for (step, _), (loss, _) in zip(run.parts, losses, strict=True):
        if not 1 > loss.mass_inf == loss.mass_minus_inf:
            return f"{step!r} has other infinite losses under one law than under the other"
    log_finite = math.fsum(k * math.log1p(-loss.mass_inf) for loss, k in losses)
    laws = [_lattice_law(step, loss, adjacency, k) for (step, k), (loss, _) in zip(run.parts, losses, strict=True)]
    if None not in laws:
        common = lattice.compose([(law, k) for law, (_, k) in zip(laws, losses, strict=True)])
        if common is not None:
            return Finite(common, log_finite)
    moves = 2 if adjacency == "replace_one" else 1
    steps = [
        _line_step(step, loss, law, add, k, moves, depth, how)
        for (step, k), (loss, _), law in zip(run.parts, losses, laws, strict=True)
    ]
    for taken, (step, _) in zip(steps, run.parts, strict=True):
        if taken is None:
            return f"no line takes {step!r} under {adjacency}"
    lost = math.fsum(k * _lost(step, loss) for step, (loss, k) in zip(steps, losses, strict=True))
    partial = any(isinstance(step, mixed.DensityStep) and step.partial for step in steps)
    untried = any(isinstance(step, mixed.AllocationStep) for step in steps) and depth < math.inf and how == epochs.AUTO
    return Finite(steps, log_finite, lost, partial, untried, how)


def _brief(step) -> bool:
    """Whether a node costs a step no more than a closed form, the quadrature of one sampled Gaussian or one mixture."""
    sampled = isinstance(step, PoissonSubsampled) and isinstance(step.base, Gaussian)
    return sampled or isinstance(step, Gaussian | Laplace | BoundedRange | GaussianMixture)


def _lost(step, loss) -> float:
    """Probability of what the line does not know of a step, such as atoms that a table leaves out."""
    if isinstance(step, mixed.DensityStep | mixed.MixtureStep):
        return step.lost
    cut = isinstance(step, mixed.AtomicStep) and not step.log_concave
    return loss.tails(np.zeros(1)).absolute if cut else 0.0


def _lattice_law(step, loss, adjacency: str, k: int) -> lattice.LatticeLaw | None:
    if isinstance(step, ApproxDP) and step.eps0 > 0:
        return lattice.randomized_response(step.eps0)
    if isinstance(step, DiscreteLaplace):
        return lattice.discrete_laplace(step.scale, shifted(step, adjacency).sensitivity)
    if isinstance(step, DiscreteGaussian):
        return lattice.discrete_gaussian(step.sigma, shifted(step, adjacency).sensitivity, k)
    if isinstance(step, KAryRandomizedResponse) and step.eps0 > 0 and adjacency == "replace_one":
        return lattice.k_ary_randomized_response(step.eps0, step.k)
    given = None if loss.smooth else loss.lattice()
    if given is None or given.lost or loss.mass_inf:
        return None
    keep = np.flatnonzero((given.num > 0) & (given.den > 0))
    if keep.size != np.count_nonzero(given.num + given.den):
        return None
    rel = given.rel[keep] if np.ndim(given.rel) else given.rel
    return lattice.of_masses(given.step, given.offset, given.first + keep, given.num[keep], rel, given.edge)


def _line_step(step, loss, law, add: int, k: int, moves: int, depth: float, how: int):
    """moves: sensitivities between the two laws of additive noise, 2 under replace_one, where a sampled step is
    two-sided."""
    base, q = (step.base, step.q) if isinstance(step, PoissonSubsampled) else (step, 1.0)
    if moves == 2 and q < 1:
        return None
    if isinstance(base, Gaussian):
        return mixed.NormalStep(moves * base.sensitivity / base.sigma, q, add, k)
    if isinstance(base, Laplace):
        return mixed.LaplaceStep(moves * base.sensitivity / base.scale, q, add, k)
    if isinstance(step, RandomAllocation):
        return epochs.line_step(step.shift, step.steps, add, k, depth, how)
    if isinstance(step, GaussianMixture):
        few = condensed(step)
        return _mixture_step(mixed.MixtureStep(few.shifts, few.weights, add, k, 0.0, few if few.half else None))
    if isinstance(step, Group) and moves == 1:
        return _group_step(step, add, k, depth)
    if isinstance(base, BoundedRange):
        return mixed.RangeStep(base.eps0, q, add, k)
    if law is not None:
        return mixed.off_lattice(law, k)
    found = None if loss.smooth or loss.mass_inf else loss.atoms()
    if found is None:
        return None
    seen = found.num > 0  # the others are among what `_lost` counts, which bounds masses that underflow
    if not seen.any() or (found.absolute == 0 and not seen.all()):
        return None
    rel, edge = (np.broadcast_to(error, seen.shape)[seen] for error in (found.rel, found.edge))
    num, log_mass = found.num[seen], np.log(found.num[seen])
    d_log_mass = rel + found.absolute / num + 2 * U * np.abs(log_mass)
    return mixed.AtomicStep(found.loss[seen], log_mass, edge, d_log_mass, False, k)


def _mixture_step(step):
    """The step, where the line takes it."""
    fits = step.shifts.size <= _core.SHIFTS_MAX and step.shifts.max() <= SHIFT_MAX and step.weights.min() > 0
    return step if fits else None


def _group_step(step: Group, add: int, k: int, depth: float):
    """The probability of the largest sums, e^-depth in all, is moved to the next one [theory: pair.groups]."""
    shifts, weights, _ = step.shifts()
    above = np.cumsum(weights[::-1])[::-1]  # that of a sum and all larger ones
    n = max(int(np.count_nonzero(above > math.exp(-min(max(depth, SUMS), 640.0)) / k)), 2)
    lost = math.fsum(weights[n:].tolist())  # within 2u, of the 1e-9 that it is taken larger
    return _mixture_step(mixed.MixtureStep(shifts[:n], np.append(weights[: n - 1], above[n - 1]), add, k, lost))


def depth_of(log_delta: float) -> float:
    """Nats of what is left out that is not seen at log_delta."""
    return next((x for x in DEPTHS if x > LOST + 2 - log_delta), DEPTHS[-1])


def asked(question, add: int, log_delta: float, depth: float | None = None, how: int = epochs.AUTO) -> Finite | None:
    """What the run is made of, without what is not seen at log_delta, or what has a probability of e^-depth; None where
    no line takes it, and why."""
    depth = depth_of(log_delta) if depth is None else depth
    found = describe(question.run, question.losses(add), add, question.adjacency, depth, how)
    if isinstance(found, str):
        question.why = found
        return None
    return found
