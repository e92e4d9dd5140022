"""Connect-the-dots: a run's losses as lattice laws above and below it, and what is needed to choose the lattice.

csrc/pld.c proves, for each step, D(eps) <= D_upper(eps - edge) and D >= D_lower, for all real eps, D the hockey-stick
functional of a positive measure; both survive convolution. A step i also has outcomes of loss +inf, and for the upper law those
above its window, together of probability at most p_i; with F the k-fold convolution of the finite lattice masses,
  D_F_lower(eps) + 1 - prod (1 - d_i)^k_i <= delta(eps) <= D_F_upper(eps - radius) + 1 - prod (1 - p_i)^k_i,
radius = sum k_i edge_i, d_i = Pr[Y_i = +inf]: some loss is infinite, or all are in the lattice. Mass below the window is moved
up to it (upper) or dropped (lower); finite mass above it is put on its last point (lower).

The lattices of all steps share dx; each has its own offset, so that one lies on the highest atom of its step. Atoms between
lattice points cost the lower law O(dx), densities and atoms on points O(dx^2). Where one lattice carries all atoms of a run
(one discrete mechanism; both atoms of one Laplace mechanism), dx divides its step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from . import _core
from .bound import AccuracyError
from .convolve import in_blocks
from .evolve import Law, evolve
from .grid import MAX_CELLS, ULP, Cgf, Grid, Step
from .loss import Loss, no_atoms, window

CELLS = MAX_CELLS // 4
"""Most cells of all windows together."""

FINE = 3
"""Fine cells between two lattice points; csrc/pld.c says why an odd number."""

BELOW_ATOMS = 1e-8
"""Lattice points lie this fraction of a fine cell (and 1e-14) below the atoms they are aligned to, so that rounding cannot put
an atom below its point. It costs 1e-8 of what a misaligned atom costs: masses move up by dx with that probability."""

TABLE_NODES = 24
"""Tilts a decade in the planning table: neighbours differ by 10 %, and Chernoff exponents by under 1 % of their curvature."""


class Laws(NamedTuple):
    """The two lattice runs, and the probability that some loss is infinite (upper: or above its window)."""

    upper: Grid
    lower: Grid
    inf_upper: float
    inf_lower: float
    log_stray: float = -math.inf  # log of the bound, at eps = 0, on what evolving meshes may have misplaced ..
    t_stray: float = 0.0  # .. and its rate: it falls like e^{-t_stray eps}

    def stray(self, eps: float) -> float:
        """Bound on the error of D at eps of laws that were composed in stages (evolve.py)."""
        x = self.log_stray - self.t_stray * eps
        return math.exp(x) * (1 + 1e-9) if x < 700 else math.inf


class Plan(NamedTuple):
    """What the choice of lattice needs. Estimates.

    table : K, K', K'' of the whole run at tilts of both signs.   t, eps, log_delta : the saddle-point curve.
    """

    parts: tuple[tuple[Loss, int], ...]
    k: float
    table: Cgf
    t: np.ndarray
    eps: np.ndarray
    log_delta: np.ndarray


def plan(parts: tuple[tuple[Loss, int], ...], p: float, n_threads: int = 1) -> Plan:
    """Planning table of a run, from nodes that are good until tails of mass p of one step."""
    nodes = [loss.nodes(p) for loss, _ in parts]
    counts = [float(k) for _, k in parts]
    mean = var = 0.0
    far = 1e-300
    for (values, log_den), k in zip(nodes, counts, strict=True):
        law = np.exp(values + log_den)
        law /= law.sum()
        first = float(law @ values)
        mean += k * first
        var += k * float(law @ (values - first) ** 2)
        far = max(far, float(np.abs(values).max()))
    wide = math.sqrt(var) + abs(mean) + far
    low, high = math.log10(1e-4 / wide), math.log10(2e3 / min(far, wide))
    grow = 10.0 ** np.linspace(low, high, math.ceil(TABLE_NODES * (high - low)))
    t = np.concatenate((-grow[::-2], [0.0], grow))
    rows = np.zeros((3, t.size))
    for row in in_blocks(lambda i: _core.pld_table(t, *nodes[i], counts[i]), len(nodes), n_threads):
        rows += row
    k0, k1, k2 = rows
    table = Cgf(t, k0, k1, k2)
    return Plan(parts, math.fsum(counts), table, *saddle_curve(table))


def saddle_curve(table: Cgf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, eps, log delta) along positive saddle points: eps increases, log delta falls. Estimates [maths D.8]."""
    ok = table.t > 0
    t, k0, k1, k2 = (a[ok] for a in table)
    eps = k1 - 1 / t - 1 / (1 + t)
    f2 = k2 + 1 / t**2 + 1 / (1 + t) ** 2
    return t, eps, k0 - t * eps - np.log(t * (1 + t)) - 0.5 * np.log(2 * math.pi * f2)


def mesh(plan: Plan, t: float, rtol: float) -> float:
    """Lattice step for a relative width rtol of delta at saddle point t: rounding multiplies e^{K(t)} by up to
    1 + k t(1+t) dx^2/12 (upper) and 1 - k t(1+t) dx^2/24 (lower) [maths C12]; 5/8 of that is aimed at. Aligned to the atoms
    where one lattice has all.
    Without any density only the 1e-8 of BELOW_ATOMS is left of that.
    """
    dx = math.sqrt(rtol * 5 / (plan.k * t * (1 + t)))
    step = _common_step(plan.parts)
    if step and not any(loss.smooth for loss, _ in plan.parts):
        dx *= 3e3
    return step / math.ceil(step / dx) if step else dx


def _common_step(parts) -> float:
    """A lattice step that all atoms of the run share, or 0: only runs whose atoms come from one distinct law are looked at."""
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


def aligns(parts) -> bool:
    """Whether all atoms of the run, if there are any, lie on lattice points."""
    return all(loss.atoms is no_atoms for loss, _ in parts) or _common_step(parts) > 0


def offset(loss: Loss, dx: float) -> float:
    """Where the lattice of one step sits: just below its highest atom, modulo dx."""
    atoms = None if loss.atoms is no_atoms else loss.atoms()
    if atoms is None or not atoms.loss.size:
        return 0.0
    top = float(atoms.loss[np.argmax(atoms.num)]) if loss.smooth and atoms.loss.size > 2 else float(atoms.loss[-1])
    return math.fmod(top - 0.5 * BELOW_ATOMS * dx - 1e-14, dx)


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
    spans = window_cells(plan, dx, p_low, p_high, lambda loss: offset(loss, dx), cells)
    made = in_blocks(lambda i: lattice_laws(plan.parts[i][0], dx, *spans[i], t), len(spans), n_threads)
    up, low, shift, radius, log_up, log_low = [], [], 0.0, 0.0, 0.0, 0.0
    for (loss, k), (at, first, _), (p_up, p_lo, edge, p_inf) in zip(plan.parts, spans, made, strict=True):
        up.append((Law(first, p_up, at, 0.0), k))
        low.append((Law(first, p_lo, at, 0.0), k))
        shift += k * at
        radius += k * edge
        log_up += k * math.log1p(-min(p_inf, 1 - ULP))
        log_low += k * math.log1p(-loss.mass_inf * (1 - 128 * ULP))
    slack = 8 * ULP * (len(up) + 4)
    inf = -math.expm1(log_up * (1 + slack)), -math.expm1(log_low * (1 - slack))
    grids, strays = [], [-math.inf]
    for parts, above in ((up, True), (low, False)):
        if count:
            parts = [found for law, k in parts for found in evolve(law, k, dx, t, count, above, n_threads)]
        grid, log_stray = _grid(parts, dx * 2**count, t, radius if above else 0.0)
        grids.append(grid)
        strays.append(log_stray)
    return Laws(*grids, *inf, max(strays), t)


def _grid(parts: list[tuple[Law, int]], dx: float, t: float, radius: float) -> tuple[Grid, float]:
    """A grid of laws and counts, and the log of the bound on its stray mass at eps = 0."""
    steps = [Step(law.first, law.p, float(k), 1.0) for law, k in parts]
    shift = math.fsum(k * law.at for law, k in parts)
    moved = 16 * ULP * math.fsum(k * abs(law.at) for law, k in parts)
    grid = Grid(dx, steps, shift, radius * (1 + 1e-9) + moved, 0.0, 0.0)
    omega = math.expm1(math.fsum(k * math.log1p(law.omega) for law, k in parts))
    if omega == 0:
        return grid, -math.inf
    log_mass = math.fsum(s.k * _core.grid_log_mgf(s.j0, dx, s.p, t) for s in steps) + t * shift
    return grid, log_mass + math.log(omega) + t * math.log(t) - (1 + t) * math.log1p(t) + 1e-6 * (1 + abs(log_mass))


def window_cells(plan: Plan, dx: float, p_low: float, p_high: float, place, most: int = CELLS):
    """[(offset, first, last) lattice point of every step's window]; AccuracyError if there are more than `most`."""
    spans, cells = [], 0
    for loss, _ in plan.parts:
        at = place(loss)
        lo, hi = window(loss, p_low, p_high)
        if not (hi - lo) / dx < MAX_CELLS:
            raise _too_long(dx, most)
        first = math.floor((lo - at) / dx)
        last = max(math.ceil((hi - at) / dx), first + 1)
        cells += last - first
        spans.append((at, first, last))
    if cells > most:
        raise _too_long(dx, most)
    return spans


def lattice_laws(loss: Loss, dx: float, at: float, first: int, last: int, t: float):
    """(upper masses, lower masses, edge, p_inf) of one step on the points at + j dx, j = first..last."""
    w = dx / FINE
    s0 = at + first * dx
    s = s0 + w * np.arange(FINE * (last - first) + 1)
    tails = loss.tails(s)
    edge = tails.edge + 16 * ULP * float(max(abs(s[0]), abs(s[-1])) + abs(at))
    upper, lower, above = _core.pld_laws(FINE, s0, w, np.array(tails[:5]), edge, tails.absolute, t)
    return upper, lower, edge, (above + loss.mass_inf * (1 + 128 * ULP)) * (1 + 4 * ULP)


def _too_long(dx: float, most: int) -> AccuracyError:
    return AccuracyError(f"a lattice of step {dx:.2g} would need more than {most} cells; ask for a larger rtol")
