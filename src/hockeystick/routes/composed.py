"""Runs of few atoms as one law: every sum of their losses, with its probability.

A step of m atoms, run k times, takes atom i n_i times, sum n_i = k, with probability k!/prod n_i! prod p_i^{n_i}:
C(k+m-1, m-1) sums; distinct steps multiply [theory: small.sums]. Where these are many, the sums of one half of the run
and those of the other are held, and one walk through both has the tails of all [theory: small.halves]: a run of C
sums takes about sqrt C of them. single.py answers for the law of the sums. Of 388 random questions that are answered
here widths are 1.5e-13 in the middle and 8e-13 at the 90th of a hundred; lines and grids leave 2e-12 and 3e-8.

Errors. The mass of a sum is k!/k^k prod (k p_i)^{n_i}/n_i!: with k p_i rounded, n_i quotients and as many products
3 n_i u, 2ku of the factor in front and mu of the products; and n_i rel_i of the masses. Sums of losses: n_i edge_i
each, and (m+2)u sum n_i |L_i|. First orders; a hundredth more holds what is of second. Nothing underflows in a
half, where no product of p/e is below e^LEAST. What products of two halves lose there is an absolute error."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from .. import _core
from ..outward import U
from ..what.law import atomic_loss
from ..what.loss import Atoms, Loss, Tails, nodes_of_tails

MOST, WHOLE = 1 << 16, 1 << 12
"""Sums of both halves, of more of which a root takes tens of milliseconds; sums up to which there is one half."""

LISTED = 1 << 16
"""Sums up to which they are told one by one where their tails do not tell delta."""

STEPS, HALF = 1000, 500
"""Steps of a run, and of a step in a half: e^k is a double."""

LEAST, KNOWN = -690.0, 1e-3
"""Log of the least product in a half; relative errors of masses, whose squares a hundredth of them holds."""

FAR = 700.0
"""Losses beyond which no corners of a lattice are listed."""

LEAST_PAIR = 1e-300
"""A product of two masses from which on it loses nothing to underflow."""

LOSS, NUM, DEN, EDGE, REL = range(5)
"""Rows of a law: losses, masses, what losses are off by, and by which part masses are."""


def only_loss(run, losses) -> Loss | None:
    """The law of all sums, or None; also of a single step on a lattice, run often, which has better. losses: (Loss,
    count) of the steps of the run, in one direction."""
    key = ("composed", id(losses))
    if key not in run._cache:
        run._cache[key] = (_law(losses), losses)  # the losses live as long as their id is used
    law, _ = run._cache[key]
    return law


def corners(losses) -> np.ndarray:
    """About where a curve may have corners, increasing: at all sums of atoms, of steps that may have a density beside
    them; none where a step has no atoms, or sums are more than WHOLE, but for those of a step on a lattice."""
    (first, n), *others = losses
    if not others and not first.smooth and (law := first.lattice()):
        start, step = n * (law.offset + law.step * law.first), law.step
        last = min(n * (law.num.size - 1), math.floor((FAR - start) / step))
        places = max(0, math.ceil((-FAR - start) / step)), last + 1
        return start + step * np.arange(*places) if places[1] - places[0] <= MOST else np.zeros(0)
    found = [(loss.atoms(), k) for loss, k in losses]
    steps = [(atoms, k) for atoms, k in found if atoms is not None and atoms.loss.size]
    if len(steps) < len(found) or math.prod(math.comb(k + atoms.loss.size - 1, k) for atoms, k in steps) > WHOLE:
        return np.zeros(0)
    with np.errstate(all="ignore"):  # no masses are of use
        return np.sort(functools.reduce(np.add.outer, [_power(atoms, k)[LOSS] for atoms, k in steps]).ravel())


def _law(losses) -> Loss | None:
    if any(loss.smooth or loss.mass_inf or loss.mass_minus_inf for loss, _ in losses):
        return None
    steps = [(loss.atoms(), k) for loss, k in losses]
    if any(atoms is None or atoms.absolute or not min(atoms.num.min(), atoms.den.min()) > 0 for atoms, _ in steps):
        return None
    if (len(losses) == 1 and losses[0][0].lattice()) or (parted := _parted(steps)) is None:
        return None
    first, *second = parted
    law = _sums(first)
    if not law[REL].max() < KNOWN:
        return None
    if not second:
        return atomic_loss(*law[: DEN + 1], edge=law[EDGE], rel=law[REL])
    alike = all(k == n and a is b for (a, k), (b, n) in itertools.zip_longest(first, *second, fillvalue=(None, 0)))
    other = law if alike else _sums(*second)
    return _both(law, other) if other[REL].max() < KNOWN else None


def _parted(steps: list[tuple[Atoms, int]]) -> list[list[tuple[Atoms, int]]] | None:
    """All steps (atoms, k), or where these have many sums two halves of their runs, the smaller first; None where these
    have too many, or masses that underflow."""
    none, half = [0] * len(steps), _half(steps)
    for first, most in ((none, WHOLE), (half, MOST)):
        second = [k - own for (_, k), own in zip(steps, first, strict=True)]
        parts = [[(a, k) for (a, _), k in zip(steps, part, strict=True) if k] for part in (first, second)]
        sums = [math.prod(math.comb(k + a.loss.size - 1, k) for a, k in part) for part in parts]
        least = min(sum(k * (math.log(min(a.num.min(), a.den.min())) - 1) for a, k in part) for part in parts)
        if sum(sums) <= most and least >= LEAST and all(k <= HALF for part in parts for _, k in part):
            return [part for part in parts if part]
    return None


def _half(steps: list[tuple[Atoms, int]]) -> list[int]:
    """How many of the k runs of every step (atoms, k) are in the half of fewer sums."""
    first, more = [k // 2 for _, k in steps], [1.0, 1.0]
    for i in sorted(range(len(steps)), key=lambda i: -steps[i][0].loss.size):
        atoms, k = steps[i]
        if k % 2:
            first[i] += (own := more[0] < more[1])
            more[not own] *= (k // 2 + atoms.loss.size) / (k // 2 + 1)  # C(k'+m, k'+1) over C(k'+m-1, k')
    return first


def _sums(steps: list[tuple[Atoms, int]]) -> np.ndarray:
    """The law of all sums of the steps (atoms, k), its losses increasing."""
    law = functools.reduce(_product, [_power(atoms, k) for atoms, k in steps])
    law = np.take(law, np.argsort(law[LOSS]), axis=1)
    size = math.fsum(k * float(np.abs(atoms.loss).max()) for atoms, k in steps)  # no sum is larger
    law[EDGE] = 1.01 * (law[EDGE] + len(steps) * U * (law[EDGE] + size))
    law[REL] = 1.01 * (law[REL] + len(steps) * U)
    return law


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The law of the sums of two."""
    rows = [np.add.outer(a[i], b[i]).ravel() for i in (LOSS, EDGE, REL)]
    masses = [np.multiply.outer(a[i], b[i]).ravel() for i in (NUM, DEN)]
    return np.array([rows[0], *masses, *rows[1:]])


def _power(atoms: Atoms, k: int) -> np.ndarray:
    """The law of the sums of one step, run k times."""
    size, masses = atoms.loss.size, np.array([atoms.num, atoms.den])
    edge = atoms.edge + (size + 2) * U * np.abs(atoms.loss)  # [theory: small.sums]
    one = np.array([atoms.loss, edge, np.broadcast_to(atoms.rel, size)])
    if k == 1:
        return np.array([one[0], *masses, *one[1:]])
    times = np.arange(1.0, k + 1)
    terms = np.ones((2, size, k + 1))
    terms[:, :, 1:] = np.cumprod((k * masses[:, :, None]) / times, axis=2)
    law = _core.halves_sums(k, one, terms, float(np.prod(times / k)), math.comb(k + size - 1, k))
    law[REL] += (5 * k + 2 * size) * U  # [theory: small.sums]
    return law


def _both(a: np.ndarray, b: np.ndarray) -> Loss:
    """The law of the sums of two, by their tails."""
    table, first, second = _core.halves_table(b[NUM], b[DEN]), a[: DEN + 1], b[LOSS]
    far = U * float(np.abs(first[LOSS]).max() + np.abs(second).max())
    # [theory: small.halves]
    edge = 1.01 * float(a[EDGE].max() + b[EDGE].max() + 2 * far)
    known = np.array([1.01 * float(a[REL].max() + b[REL].max() + 8 * U)])
    lost = 0.0 if first[1:].min() * b[[NUM, DEN]].min() > LEAST_PAIR else first.shape[1] * 2.0**-1073
    low, high = (float(a[LOSS, i] + b[LOSS, i]) for i in (0, -1))

    def tails(s) -> Tails:
        y_below, y_above, x_below, x_above = _core.halves_tails(first, second, table, s).T
        return Tails(y_below, y_above, x_below, x_above, np.broadcast_to(known, s.size), edge, lost)

    @functools.lru_cache(1)
    def atoms() -> Atoms | None:
        if a.shape[1] * b.shape[1] > LISTED:
            return None
        law = _product(a, b)
        law = np.take(law, np.argsort(law[LOSS]), axis=1)
        rel, off = 1.01 * (law[REL] + 2 * U), law[EDGE] + 2 * far
        return Atoms(law[LOSS], law[NUM], law[DEN], rel, off, lost)

    return Loss(
        tails,
        functools.partial(nodes_of_tails, tails, low, high),
        low,
        high,
        atoms=atoms,
        smooth=False,
        ends_error=edge,
    )
