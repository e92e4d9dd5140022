"""Connect-the-dots: a run's losses as lattice laws above and below it, and what is needed to choose the lattice.

csrc/grid/pld.c proves, for each step, D(eps) <= D_upper(eps - edge) and D >= D_lower, for all real eps, D the
hockey-stick functional of a positive measure; both survive convolution [theory: grid.domination, grid.run]. A step i
also has outcomes of loss +inf, and for the upper law those above its window, together of probability at most p_i; with
F the k-fold convolution of the finite lattice masses,
  D_F_lower(eps) + 1 - prod (1 - d_i)^k_i <= delta(eps) <= D_F_upper(eps - radius) + 1 - prod (1 - p_i)^k_i,
radius = sum k_i edge_i, d_i = Pr[Y_i = +inf]: some loss is infinite, or all are in the lattice. Mass below the window
is moved up to it (upper) or dropped (lower); finite mass above it is put on its last point (lower).

Losses far beyond eps are as good as infinite, and need no lattice [theory: grid.cut]: let a loss be cut at c (loss.py:
`capped`), not below the last point of its window, with p_i = Pr[Y_i > c_i], +inf included. The upper law has them at
+inf. For the lower law, let i be the first step with Y_i > c_i. As E e^{-Y} <= 1 for every other step, such outcomes
have
  E[(1 - e^{eps-Y})_+; first is i] >= Pr[first is i] - e^{eps-c_i} p_i,
so with F of what lies in the windows, D_F_lower(eps) + 1 - prod (1 - p_i)^k_i - e^eps sum k_i p_i e^{-c_i} <=
delta(eps).

The lattices of all steps share dx; each has its own offset, so that one lies on the highest atom of its step. Atoms
between lattice points cost the lower law O(dx), densities and atoms on points O(dx^2). Where one lattice carries all
atoms of a run (one discrete mechanism; both atoms of one Laplace mechanism), dx divides its step."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from .. import _core
from .._core import LAPLACE
from ..bound import AccuracyError
from ..outward import DOWN, UP
from ..threads import blocks, in_order
from ..what.loss import Loss, gauss_legendre, log_finite, no_atoms, window
from .cells import MAX_CELLS, ULP, Cgf, Grid, Steps
from .convolve import log_mgfs
from .evolve import Law, evolve

BLOCK = 128
"""Most distinct steps that one thread takes at a time."""

CELLS = MAX_CELLS // 4
"""Most cells of all windows together."""

FINE = 3
"""Fine cells between two lattice points; csrc/grid/pld.c says why an odd number."""

AIM = 0.7
"""Part of the tolerance that `mesh` aims at where atoms lie between points."""

BELOW_ATOMS = 1e-8
"""Lattice points lie this fraction of a fine cell (and 1e-14) below the atoms they are aligned to, so that rounding
cannot put an atom below its point. It costs 1e-8 of what a misaligned atom costs: masses move up by dx with that
probability."""


class Laws(NamedTuple):
    """The two lattice runs, and the probability that some loss is infinite (upper: or above its window)."""

    upper: Grid
    lower: Grid
    inf_upper: float
    inf_lower: float
    log_cut: float = -math.inf  # log sum k_i p_i e^{-c_i} of steps that are cut
    log_stray: float = -math.inf  # log of the bound, at eps = 0, on what evolving meshes may have misplaced ..
    t_stray: float = 0.0  # .. and its rate: it falls like e^{-t_stray eps}
    short: float = 0.0  # part by which the lower run's curve is smaller than that of `lower`

    def stray_upper(self, eps: float) -> float:
        """Bound on the error of D at eps of laws that were composed in stages (evolve.py)."""
        x = self.log_stray - self.t_stray * eps
        return math.exp(x) * (1 + 1e-9) if x < 700 else math.inf


class Batch(NamedTuple):
    """The steps of additive noise, which C takes all at once: their places in the run, their rows; and the places of
    others. Then for every step its count, and its highest atom (0 if none)."""

    at: np.ndarray
    rows: np.ndarray
    others: np.ndarray
    counts: np.ndarray
    tops: np.ndarray


class Plan(NamedTuple):
    """What the choice of lattice needs. Estimates.

    table : K, K', K'' of the whole run at tilts of both signs.   t, eps, log_delta : the saddle-point curve.
    far : the largest |loss| of one step.   beyond : Pr[some loss is above the cap of `parts`].
    """

    parts: tuple[tuple[Loss, int], ...]
    batch: Batch
    k: float
    table: Cgf
    t: np.ndarray
    eps: np.ndarray
    log_delta: np.ndarray
    far: float
    beyond: float = 0.0


def batch_of(parts) -> Batch:
    rows = [loss.additive for loss, _ in parts]
    at = np.array([i for i, row in enumerate(rows) if row], dtype=np.int64)
    table = np.array([x for row in rows if row for x in row], dtype=float).reshape(-1, 4)
    others = np.array([i for i, row in enumerate(rows) if not row], dtype=np.int64)
    return Batch(
        at, table, others, np.array([k for _, k in parts], dtype=float), np.array([_top(loss) for loss, _ in parts])
    )


def _top(loss: Loss) -> float:
    """What lies on a lattice point: the highest atom, or of many beside a density the heaviest; 0 without any.

    A sampled Gaussian step has next to all of its mass within about q of an end of its range, log(1-q) or that negated:
    as good as an atom. Between two points it would hide losses of a step, which are as rare, from the lower law."""
    if loss.atoms is no_atoms:
        rate, swapped = loss.additive[2:] if loss.additive else (1.0, 0.0)
        return (-1 if swapped else 1) * math.log1p(-rate) if rate < 1 else 0.0
    if loss.additive:
        return loss.hi
    atoms = loss.atoms()
    if atoms is None or not atoms.loss.size:
        return 0.0
    return float(atoms.loss[np.argmax(atoms.num)] if loss.smooth and atoms.loss.size > 2 else atoms.loss[-1])


def plan(parts: tuple[tuple[Loss, int], ...], p: float, n_threads: int = 1, batch: Batch | None = None) -> Plan:
    """Planning table of a run, from nodes that are good until tails of mass p of one step. Its tilts go by eighths of
    an octave (negative ones: quarters): neighbours differ by 9 %, and Chernoff exponents by under 1 % of their
    curvature."""
    batch = batch or batch_of(parts)
    counts, own, parts_of = batch.counts, batch.counts[batch.at], blocks(batch.at.size, BLOCK)
    nodes = [parts[i][0].nodes(p) for i in batch.others.tolist()]
    if not all(values.size for values, _ in nodes):
        raise AccuracyError("no loss of a step is seen that the run is planned with")

    def table(up, down, t0):
        rows, far = np.zeros((3, up + down + 1)), 1e-100  # t^2 would overflow for smaller losses
        for more, reach in in_order(
            lambda at: _core.pld_tables(batch.rows[at], own[at], p, *gauss_legendre(), up, down, t0),
            parts_of,
            n_threads,
        ):
            rows += more
            far = max(far, reach)
        for (values, log_den), k in zip(nodes, counts[batch.others], strict=True):
            rows += _core.pld_table(up, down, t0, np.ascontiguousarray(values), np.ascontiguousarray(log_den), k)
            far = max(far, float(np.abs(values).max()))
        return rows, far

    (_, mean, var), far = table(1, 1, 1.0)
    wide = math.sqrt(var[-1]) + abs(mean[-1]) + far
    if not wide > 1e-130:  # tilts and their squares are doubles
        raise AccuracyError(f"the losses of the run, about {wide:.2g}, are too small for a lattice")
    t0 = 1e-4 / wide
    octaves = math.log2(2e3 / min(far, wide) / t0)
    up, down = math.ceil(8 * octaves) + 1, math.ceil(4 * octaves) + 1
    t = t0 * np.concatenate((-(2.0 ** (np.arange(down)[::-1] / 4)), [0.0], 2.0 ** (np.arange(up) / 8)))
    rows = table(up, down, t0)[0]
    k0, k1, k2 = np.concatenate((rows[:, up : up + down][:, ::-1], rows[:, -1:], rows[:, :up]), axis=1)
    found = Cgf(t, k0, k1, k2)
    return Plan(parts, batch, math.fsum(counts.tolist()), found, *saddle_curve(found), far)


def saddle_curve(table: Cgf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, eps, log delta) along positive saddle points: eps increases, log delta falls. Estimates
    [theory: saddle.estimates]."""
    ok = table.t > 0
    t, k0, k1, k2 = (a[ok] for a in table)
    eps = k1 - 1 / t - 1 / (1 + t)
    f2 = k2 + 1 / t**2 + 1 / (1 + t) ** 2
    return t, eps, k0 - t * eps - np.log(t * (1 + t)) - 0.5 * np.log(2 * math.pi * f2)


def mesh(plan: Plan, t: float, rtol: float) -> float:
    """Lattice step for a relative width rtol of delta at saddle point t: rounding multiplies e^{K(t)} by up to
    1 + k t(1+t) dx^2/12 (upper) and 1 - k t(1+t) dx^2/24 (lower) [theory: grid.mesh]; 0.55 rtol is aimed at. `on_atoms`
    aligns it where one lattice has all. Without any density only the 1e-8 of BELOW_ATOMS is left of that. Atoms between
    points add what `_misaligned` says."""
    dx = math.sqrt(rtol * 4.4 / (plan.k * t * (1 + t)))
    step = _common_step(plan.parts)
    if step:
        return dx if any(loss.smooth for loss, _ in plan.parts) else min(step, 3e3 * dx)
    linear, power = _misaligned(plan, t)
    low, high = 0.0, dx
    for _ in range(24 if linear else 0):
        mid = 0.5 * (low + high)
        width = 0.55 * (mid / dx) ** 2 + min(linear * mid, power * mid**1.5) / rtol
        low, high = (mid, high) if width < AIM else (low, mid)
    return high


def _misaligned(plan: Plan, t: float) -> tuple[float, float]:
    """What lowest atoms of Laplace steps cost the lower law, relative to delta: the smaller of linear dx and power
    dx^1.5.

    An atom of mass M lies some (1-f) dx below a lattice point, f uniform, and above it a density r. The law below it
    moves the atom down, which costs t M f dx; or up, and for that as much mass down from the next D = sqrt(2 M (1-f)
    dx/r), which costs t (1+t) r D^3/6 in spread (pld.c: settle). E (1-f)^1.5 = 0.4. The law that is not sampled has an
    atom of den/2 there, and beside it a density of den/4 in its own loss s, whose slope is sampled/(q e^s) times
    smaller. An estimate."""
    own = plan.batch.rows[:, 0] == LAPLACE
    m, q, back = plan.batch.rows[own, 1:].T
    den, end = np.where(back > 0, np.exp(-m), 1.0), np.where(back > 0, m, -m)
    sampled = np.maximum(1 + q * np.expm1(end), 1e-300)
    mass = 0.5 * den * np.where(back > 0, 1.0, sampled)
    density = np.maximum(0.5 * mass * sampled / (q * np.exp(end)), 1e-300)
    weight = plan.batch.counts[plan.batch.at[own]] * t * np.exp(-t * np.abs(np.log(sampled)))
    return float(weight @ mass) / 2, float(weight @ ((2 * mass) ** 1.5 / np.sqrt(density))) * (1 + t) * 0.4 / 6


def _common_step(parts) -> float:
    """A lattice step that all atoms of the run share, or 0: only runs whose atoms come from one distinct law are looked
    at."""
    if sum(loss.atoms is not no_atoms for loss, _ in parts) > 4:
        return 0.0
    steps = set()
    for loss, _ in parts:
        lattice, atoms = loss.lattice(), loss.atoms()
        if lattice is not None:
            steps.add(lattice.step)
        elif atoms is not None:
            gaps = np.diff(atoms.loss)
            steps.add(float(gaps[0]) if gaps.size == 1 else 0.0)
    return steps.pop() if len(steps) == 1 else 0.0


def on_atoms(parts, dx: float) -> float:
    """The lattice step, made so much shorter that atoms which one lattice carries lie on this one."""
    step = _common_step(parts)
    return step / math.ceil(step / dx) if step else dx


def aligns(parts) -> bool:
    """Whether all atoms of the run, if there are any, lie on lattice points."""
    return all(loss.atoms is no_atoms for loss, _ in parts) or _common_step(parts) > 0


def offsets(plan: Plan, dx: float) -> np.ndarray:
    """Where the lattice of each step lies: just below what `_top` says, modulo dx."""
    tops = plan.batch.tops
    return np.where(tops, np.fmod(tops - 0.5 * BELOW_ATOMS * dx - 1e-14, dx), 0.0)


def discretise(
    plan: Plan,
    dx: float,
    t: float,
    p_low: float,
    p_high: float,
    count: int = 0,
    n_threads: int = 1,
    cells: int = MAX_CELLS // 4,
) -> Laws:
    """Both laws of a run on a lattice of step dx; single-step masses p_low, p_high are left outside the windows.

    With count > 0 the mesh doubles so often while the compositions grow (evolve.py).

    Raises
    ------
    AccuracyError
        If the windows need more than `cells` cells together: 2^22 cells take 0.3 GB on the way.
    """
    at = offsets(plan, dx)
    first, size = windows(plan, dx, p_low, p_high, at, cells, n_threads)
    upper, lower, edge, p_inf, p_cut = lattice_laws(plan, dx, at, first, size, t, n_threads)
    k = plan.batch.counts
    radius = math.fsum((k * edge).tolist())
    if not radius < math.inf:
        raise AccuracyError("nothing is known of where the losses of a step lie")
    log_up = math.fsum((k * np.log1p(-np.minimum(p_inf, 1 - ULP))).tolist())
    slack = 8 * ULP * (k.size + 4)
    # [theory: grid.domination, grid.run]
    inf = -math.expm1(log_up * (1 + slack)), -math.expm1(log_finite(plan.parts, cut=p_cut).upper) * DOWN
    over = np.flatnonzero(p_cut)
    # [theory: grid.cut]
    logs = np.log(k[over] * p_inf[over]) + edge[over] - [plan.parts[i][0].cut for i in over.tolist()]
    top = logs.max() if over.size else -math.inf
    log_cut = float(top + np.log(np.exp(logs - top).sum()) + 1e-9 * (1 + abs(top))) if over.size else top
    grids, strays = [], []
    for steps, above in ((upper, True), (lower, False)):
        places, stray, lost = at, 0.0, 0.0
        if count:
            laws = ((Law(int(j), steps.masses(i), float(at[i])), plan.parts[i][1]) for i, j in enumerate(first))
            parts = [found for law, k in laws for found in evolve(law, k, dx, t, count, above, n_threads)]
            steps = Steps.of([(law.first, law.p, k) for law, k in parts])
            places = np.array([law.at for law, _ in parts])
            stray = math.expm1(math.fsum(k * math.log1p(law.omega) for law, k in parts))  # [theory: grid.tilted-mass]
            lost = math.fsum(k * law.lost for law, k in parts)
        grid = _grid(steps, places, dx * 2**count, radius if above else 0.0)
        grids.append(grid)
        strays.append(_log_stray_upper(grid, t, stray, n_threads) + lost)
    return Laws(grids[0], grids[1], inf[0], inf[1], log_cut, max(strays), t)


def _grid(steps: Steps, at: np.ndarray, dx: float, radius: float) -> Grid:
    """A grid of steps whose lattices have the offsets `at`."""
    moved = 16 * ULP * math.fsum((steps.k * np.abs(at)).tolist())
    return Grid(dx, steps, math.fsum((steps.k * at).tolist()), radius * (1 + 1e-9) + moved, 0.0, 0.0)


def _log_stray_upper(grid: Grid, t: float, omega: float, n_threads: int) -> float:
    """The log of the bound on the stray mass of a run at eps = 0, omega being its part of all tilted mass."""
    if omega == 0:
        return -math.inf
    log_mass = math.fsum((grid.steps.k * log_mgfs(grid, (t,), n_threads)[0]).tolist()) + t * grid.shift
    return log_mass + math.log(omega) - t * math.log1p(1 / t) - math.log1p(t) + 1e-6 * (1 + abs(log_mass))


def windows(plan: Plan, dx: float, p_low: float, p_high: float, at: np.ndarray, most: int = CELLS, n_threads: int = 1):
    """(first lattice point, their number) of every step's window; AccuracyError if there are more than `most` cells."""
    lo, hi = np.empty((2, len(plan.parts)))
    own, rows = plan.batch[:2]
    parts = blocks(own.size, BLOCK)
    for here, found in zip(
        parts, in_order(lambda at: _core.pld_windows(rows[at], p_low, p_high), parts, n_threads), strict=True
    ):
        lo[own[here]], hi[own[here]] = found
    for i in plan.batch.others:
        lo[i], hi[i] = window(plan.parts[i][0], p_low, p_high)
    if not np.all((hi - lo) / dx < MAX_CELLS):
        raise _too_long(dx, most)
    first = np.floor((lo - at) / dx)
    last = np.maximum(np.ceil((hi - at) / dx), first + 1)
    if (last - first).sum() > most:
        raise _too_long(dx, most)
    return first.astype(np.int64), (last - first + 1).astype(np.int64)


def lattice_laws(plan: Plan, dx: float, at: np.ndarray, first: np.ndarray, size: np.ndarray, t: float, n_threads: int):
    """(upper steps, lower steps, edges, upper bounds of masses above the windows, lower bounds of finite masses above
    the cut) on the lattice points at + (first + j) dx, j < size."""
    start = np.cumsum([0, *size], dtype=np.int64)
    upper, lower, (edge, p_inf, p_cut) = np.empty(start[-1]), np.empty(start[-1]), np.zeros((3, size.size))

    def many(here):
        i = plan.batch.at[here]
        places = at[i], first[i], start[i], size[i]
        edge[i], p_inf[i] = _core.pld_steps(plan.batch.rows[here], FINE, dx, t, *places, upper, lower)

    def one(i):
        here = slice(start[i], start[i + 1])
        upper[here], lower[here], edge[i], p_inf[i], p_cut[i] = _lattice_law(
            plan.parts[i][0], dx, at[i], first[i], size[i], t
        )

    deque(in_order(many, blocks(plan.batch.at.size, BLOCK), n_threads), maxlen=0)
    deque(in_order(one, plan.batch.others.tolist(), n_threads), maxlen=0)
    return *(Steps(first, start, p, plan.batch.counts) for p in (upper, lower)), edge, p_inf, p_cut


def _lattice_law(loss: Loss, dx: float, at: float, first: int, size: int, t: float):
    w = dx / FINE
    s0 = at + first * dx
    s = s0 + w * np.arange(FINE * (size - 1) + 1)
    tails = loss.tails(s)
    edge = tails.edge + 16 * ULP * float(max(abs(s[0]), abs(s[-1])) + abs(at))
    upper, lower, above = _core.pld_laws(FINE, s0, w, np.array(tails[:5]), edge, tails.absolute, t, loss.cut < math.inf)
    beyond = 0.0
    if loss.cut < math.inf:
        far = loss.tails(np.array([max(loss.cut, s[-1])]))
        beyond = max(0.0, far.y_above.item() * (1 - far.rel.item()) - far.absolute) * DOWN
    if loss.mass_inf:
        above = (above + loss.mass_inf * (1 + loss.mass_error)) * UP
    return upper, lower, edge, above, beyond


def _too_long(dx: float, most: int) -> AccuracyError:
    return AccuracyError(f"a lattice of step {dx:.2g} would need more than {most} cells")
