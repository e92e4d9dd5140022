"""k-fold convolution of discretised steps by FFT, and the tail functional with certified errors.

D is the tail functional of the exact convolution of the grids (grid.py):
D(eps + radius) - eta <= delta(eps) <= D(eps - radius) + eta + lost.
It is computed from the law tilted by e^{t x}, on a circle of n points, W = n dx, labelled
y_lo .. y_lo + W - dx; r is the inverse FFT of prod_i phi_i^{k_i}, and for eps >= y_lo [theory: grid.tilt]

  D^(eps) = sum_{y > eps} r_y e^{L - t x} (1 - e^{eps - y}).

Errors of D^, proved here but for the FFT constant eta_f (_fft.py) [theory: grid.fft-error]. S is the sum of the grid
variables, K~(t) = log E e^{tS}.

wrapped    A sum y outside the circle is met at y' = y - jW > eps with weight e^{t(y - y')}. From the right,
           y > eps + W: at most exp(K~(t') - t'(eps + W) + tW), any t' >= t. From the left:
           e^{-tW} Pr[S < y_lo]. Both raise D^.
truncated  Pr[S >= y_lo + W] <= exp(K~(t') - t'(y_lo + W)). It lowers D^.
fft        D^ is linear in r: by Cauchy-Schwarz at most ||c||_2 ||r^ - r||_2, where
             ||c||^2 <= e^{2(L - t x_eps)} (1 + min(W, 1/(t(2t+1)(2t+2)))/dx),
           the integral of e^{-2ts}(1-e^{-s})^2 plus one maximum; and as |phi| <= 1 up to rounding,
             ||r^ - r||_2 <= sum_i k_i min(e2_i, e1_i min_rho(1.05/rho ||r||_2 + (rho + e1_i)^{k_i - 1}))
                             e^{2 sum k_i e1_i}
                             + p u ||r||_2 + eta_f ||r||_2,   p = `_powers_upper`,
             e2_i = eta_f ||w_i||_2, e1_i = eta_f ||w_i||_1, w_i without cell 0,
           by |prod a^k - prod b^k| <= sum k |a-b| max^{k-1} and Parseval; powers; inverse. The error of one
           coefficient phi is at most e1 (each is a sum over all inputs through at most log2 n butterflies); where
           |phi| >= rho >= 1/2, max^{k-1} <= |phi|^k e^{2ke}/rho, whose norm is that of r; elsewhere it is
           (rho + e1)^{k-1}.
           convolve_tail is off by a = 8 n eps_ld of every term, eps_ld the unit of long double: a D^ and 2a of this
           term, as r^ is below 0 only where it is wrong.
           Without the tilt this term is absolute, about 1e-16 k sqrt(n): plain FFT accountants
           fail for that reason at k >= 1e4, delta <= 1e-12. Where it is larger than the plan's tolerance, as with
           one rare large loss, which no tilt makes likely, transforms and powers are done in long doubles: u is
           2^-64 in eta_f and p then. Rounding r to doubles is relative: u D^ and 2u of the fft term.
weights    Rounding of positive weights: a factor (1 + theta)^k on D^, theta = u(16 + 6 max|t x|).
squaring   The same, except that ||r^ - r||_2 is followed through every product: see `_multiply`.

`how="power"` is the default: one forward transform per distinct step and one inverse. `how="squaring"` takes
about 2 log2 k transforms; it is slower and its bound is wider, since every doubling pays the FFT error of its
own transforms again (benchmarks/bench_prv.py). It serves as an independent check.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..bound import AccuracyError
from ..outward import LDBL_ULP, LONG_U
from ..threads import blocks, in_order
from . import _fft
from .cells import MAX_CELLS, ULP, Cgf, Grid

BLOCK = 1 << 17
"""Most points that one call transforms, of the circles of many steps: a megabyte."""

SHARE = 128
"""Most distinct steps whose spectra one thread multiplies before their product joins the others."""

MANY = 128
"""Most distinct steps of one call that sums up their masses: some hundred microseconds."""

THREADED = 1 << 15
"""Least length of a circle whose one spectrum is raised by several threads: a millisecond."""

EXTENDED_POINTS = 1 << 21
"""Most points of all transforms of one circle that are long doubles: some tenths of a second."""

SQUARED = 64
"""The largest whole power that csrc/grid/convolve.c takes by squaring."""

MODULI = 0.5, 0.8, 0.95, 0.99
"""Moduli rho of a step's transform above which its power is compared with that of the sum [theory: grid.fft-error]."""

NORMED = 0.01
"""Part of the computed norm up to which an error bound may be made of it instead of the exact one
[theory: grid.fft-error]."""

LEAST = 1e-300
"""Added to an error whose logarithm is kept: where all mass is at place 0 there is none."""

TILTS = (1.0, 0.97, 0.94, 0.9, 0.85, 0.78, 0.7, 0.6, 0.5, 0.3, 0.15)
"""Fractions of the saddle point tried as tilt: a smaller tilt may need a shorter circle [theory: grid.tilt]."""


class Tail(NamedTuple):
    """D^ at lattice points y_lo, y_lo + dx, ..., and what bounds its error."""

    y_lo: float
    dx: float
    mass: np.ndarray
    delta: np.ndarray
    t: float
    width: float
    log_right: float  # log of the right-wrap bound at eps = 0 ..
    t_right: float  # .. and its rate: it falls like e^{-t_right eps}
    left: float
    truncated: float
    log_fft: float  # log of the FFT term at eps = y_lo: it falls like e^{-t (eps - y_lo)}
    relative: float

    def value(self, eps: float) -> float:
        """D^(min(eps, y_hi)), y_lo <= eps: linear in e^eps between lattice points. Below y_lo nothing is said."""
        eps = min(eps, self.y_hi)
        i = min(max(math.floor((eps - self.y_lo) / self.dx), 0), self.delta.size - 2)
        s = eps - (self.y_lo + (i + 1) * self.dx)
        return -math.expm1(s) * self.mass.item(i) + math.exp(s) * self.delta.item(i + 1)

    def at(self, eps: float) -> tuple[float, float, float, float]:
        """(D^, truncated, wrapped, rounding) at eps >= y_lo: the last three bound its errors."""
        value = self.value(eps)
        wrapped = _exp(self.log_right - self.t_right * eps) + self.left
        fft = _exp(self.log_fft - self.t * (eps - self.y_lo))
        return value, self.truncated, wrapped, fft + self.relative * abs(value)

    @property
    def y_hi(self) -> float:
        return self.y_lo + (self.delta.size - 2) * self.dx


def _exp(x: float) -> float:
    return math.exp(x) * (1 + 1e-9) if x < 700 else math.inf


class Plan(NamedTuple):
    """A tilt, a circle of n points from y_lo, and the rates of the Chernoff bounds that will certify it."""

    t: float
    n: int
    y_lo: float
    t_right: float
    t_left: float
    t_cut: float
    log_fft: float
    log_tol: float = math.inf  # of what the FFT may add


def plan_circle(grid: Grid, table: Cgf, eps: float, log_tol: float, points: int = MAX_CELLS) -> Plan:
    """`fit_circle` for a grid."""
    return fit_circle(grid.dx, grid.radius, float(grid.steps.k.sum()), table, eps, log_tol, points)


def fit_circle(
    dx: float, radius: float, total: float, table: Cgf, eps: float, log_tol: float, points: int = MAX_CELLS
) -> Plan:
    """The shortest circle among the tilts whose predicted FFT error is below the tolerance (else the most accurate
    one), from eps or from the point that the sum stays above. AccuracyError if it has more than `points` points.

    total, dx, radius: how many steps, of what lattice step, whose sum is moved by at most radius. eps is the least eps
    asked. Everything here is a prediction from the quadrature table; `convolve` certifies."""
    pos, neg = table.t > 0, table.t < 0
    k0 = table.k0 + total * _log_sinhc(0.5 * dx * table.t)  # the lattice spreads the law [theory: grid.mesh]
    tp, kp, tn, kn = table.t[pos], k0[pos], table.t[neg], k0[neg]
    low = float(np.max((kn - log_tol) / tn))  # Pr[S < low] <= tol
    cut = (kp - log_tol) / tp  # Pr[S >= cut] <= tol
    beyond = kp - tp * eps - log_tol
    saddle = float(tp[np.argmin(beyond - np.log(tp) - np.log1p(tp))])
    tilts = np.array([*(f * saddle for f in TILTS), 0.0])
    best, starts = int(cut.argmin()), []
    least, t_cut, y_hi = 8 * radius + 64 * dx, float(tp[best]), float(cut[best])
    for y_lo in sorted({eps, min(eps, low)}):
        logs = kn - tn * y_lo
        left = int(logs.argmin())
        starts.append((y_lo, float(tn[left]), min(0.0, float(logs[left]))))
    found, aboves = [], np.searchsorted(tp, 1.02 * tilts, "right").tolist()
    for t, log_m, above in zip(tilts.tolist(), np.interp(tilts, table.t, k0).tolist(), aboves, strict=True):
        if above == tp.size:
            continue
        reach = beyond[above:] / (tp[above:] - t)
        right = int(reach.argmin())
        for y_lo, t_left, log_left in starts if t else starts[:1]:
            width = max(float(reach[right]), y_hi - y_lo, least, (log_left - log_tol) / t if t else 0.0)
            n = _fft.fast_length(math.ceil(width / dx) + 4) if width <= points * dx else points + 1
            if n <= points:
                log_fft = log_m - t * eps + math.log(total * _fft.error_upper(n) * math.sqrt(_weight2(t, width, dx)))
                found.append(Plan(t, n, y_lo, float(tp[above + right]), t_left, t_cut, log_fft, log_tol))
    if not found:
        raise AccuracyError(f"the convolution would need more than {points} points at a lattice step of {dx:.2g}")
    return min(found, key=lambda p: (0, p.n) if p.log_fft <= log_tol else (1, p.log_fft))


def _accumulated(n: int) -> float:
    """What every term of a tail over n points is off by: its two sums, and of r^ to doubles."""
    return 8 * n * LDBL_ULP + ULP


def rounding_lower(plan: Plan) -> float:
    """What `Tail.at` will claim for rounding, relative to D^, at least [theory: grid.fft-least]."""
    return _fft.error_upper(plan.n, LONG_U if plan.n <= EXTENDED_POINTS else ULP) + _accumulated(plan.n)


def _log_sinhc(a: np.ndarray) -> np.ndarray:
    """log(sinh(a)/a), even in a."""
    a = np.maximum(np.abs(a), 1e-4)
    return a - np.log(2 * a) + np.log(-np.expm1(-2 * a))


def _weight2(t: float, width: float, dx: float) -> float:
    """||c||^2 in units of e^{2(L - t x_eps)}; see the head of the file."""
    area = width if t <= 0 else min(width, 1 / (t * (2 * t + 1) * (2 * t + 2)))
    return 1 + area / dx


def _log_mgf_uppers(grid: Grid, tilts: tuple[float, ...], logs: np.ndarray) -> list[float]:
    """Upper bounds on K~(t) = log E e^{tS}, shift included, from the rows of `log_mgfs`."""
    steps, t = grid.steps, np.array(tilts)[:, None]
    slack = ULP * (32 + 6 * grid.dx * np.abs(t) * steps.far + 4 * np.abs(logs)) + np.diff(steps.start) * LDBL_ULP
    shift = t * grid.shift
    terms = np.concatenate((shift, 4 * ULP * np.abs(shift), steps.k * logs, steps.k * slack), axis=1)
    return [math.fsum(row) for row in terms.tolist()]


def log_mgfs(grid: Grid, tilts: tuple[float, ...], n_threads: int) -> np.ndarray:
    """log sum_j p_j e^{t j dx} of every step, a row for each tilt t."""
    (j0, start, p, _), t = grid.steps, np.array(tilts)
    found = in_order(
        lambda at: _core.grid_log_mgfs(j0[at], start[at.start :], grid.dx, p, t), blocks(j0.size, MANY), n_threads
    )
    return np.concatenate(list(found), axis=1)


def _tilted(grid: Grid, i: int, t: float, log_m: float, n: int) -> np.ndarray:
    w = _fft.zeros(n)
    _core.convolve_tilt(int(grid.steps.j0[i]), grid.dx, grid.steps.masses(i), t, log_m, w)
    return w


def tilted_power(
    grid: Grid, t: float, logs: np.ndarray, n: int, n_threads: int, extended: bool = False
) -> tuple[np.ndarray, float]:
    """(r^, bound on ||r^ - r||_2) by powers of the spectrum, in doubles or in long doubles.

    The bound of long doubles is without the rounding of r^ to doubles, which is relative."""
    k, unit = grid.steps.k, LONG_U if extended else ULP
    r, norms = (_extended if extended else _doubles)(grid, t, logs, n, n_threads)
    eta = _fft.error_upper(n, unit)
    norm2, _ = _core.convolve_norms(r, 1.0)
    e2, e1 = norms * (eta * 1.01)
    sup = math.fsum((k * (e1 + 64 * ULP)).tolist())
    rel = unit * (math.fsum((4 * k).tolist()) if extended else _powers_upper(k, n, sup))
    if sup > 30 or rel > 0.1:
        raise AccuracyError(f"spectrum powers lose all digits (relative error {max(sup, rel):.2g})")

    def error_upper(norm2: float) -> float:
        power = np.min([1.05 / rho * norm2 + (rho + e1) ** (k - 1) for rho in MODULI], axis=0)
        forward = math.fsum((k * np.minimum(e2, e1 * power)).tolist())
        return (forward * math.exp(2 * sup) + (rel + eta) * norm2) * 1.02

    error = error_upper(norm2)
    return r, error if error <= NORMED * norm2 else error_upper(1.0)


def _doubles(grid: Grid, t: float, logs: np.ndarray, n: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """r^, and rows of the Euclidean norm and the sum of every step's masses but that at place 0.

    Distinct steps are shared out; the products of shares are multiplied in order, whatever the number of threads.
    """
    steps = grid.steps
    rows = max(1, min(SHARE, BLOCK // n))
    parts, each = blocks(logs.size, rows), SHARE // rows if n <= _fft.PLAN_LENGTH else 1
    inner = n_threads if logs.size == 1 and n >= THREADED else 1
    norms = np.empty((2, logs.size))

    def share(parts):
        product = None
        with _fft.lent_rows(most, n) as (w, spectra, room):
            for at in parts:
                own = w[: at.stop - at.start]
                point, *norms[:, at] = _core.convolve_tilts(
                    steps.j0[at], steps.start[at.start :], grid.dx, steps.p, t, logs[at], own
                )
                spec = spectra()[: own.shape[0]]
                first = product is None
                product = room() if first else product
                _core.convolve_powers(spec, point, steps.k[at], inner, first, product)
        return product

    most = max(at.stop - at.start for at in parts)
    found = in_order(share, [parts[i : i + each] for i in range(0, len(parts), each)], n_threads)
    product = next(found)
    for more in found:
        _core.convolve_multiply(product, more)
    return _fft.inverse(product), norms


def _extended(grid: Grid, t: float, logs: np.ndarray, n: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """What `_doubles` gives, from transforms and powers in long doubles, of whole powers."""
    steps, norms = grid.steps, np.empty((2, logs.size))

    def spectrum(i):
        w = np.empty((1, n))
        at = slice(i, i + 1)
        point, *norms[:, at] = _core.convolve_tilts(steps.j0[at], steps.start[i:], grid.dx, steps.p, t, logs[at], w)
        with np.errstate(under="ignore"):
            return _raised(_fft.forward_extended(w[0]) + point, int(steps.k[i]))

    product, *others = in_order(spectrum, range(logs.size), n_threads)
    with np.errstate(under="ignore"):
        for more in others:
            product *= more
        return _fft.inverse_extended(product).astype(float), norms


def _extends(grid: Grid, n: int) -> bool:
    """Whether long doubles hold more than doubles do, and transforms of them are quick enough."""
    k = grid.steps.k
    return LONG_U < ULP and n * k.size <= EXTENDED_POINTS and bool((k == np.floor(k)).all())


def _raised(z: np.ndarray, k: int) -> np.ndarray:
    """z^k by squaring, k >= 1; z is used up [theory: grid.power]."""
    while not k & 1:
        z *= z
        k >>= 1
    power = z.copy()
    while k := k >> 1:
        z *= z
        if k & 1:
            power *= z
    return power


def _powers_upper(k: np.ndarray, n: int, sup: float) -> float:
    """What the product of powers is off by, in units u of its Euclidean norm, where the steps' moduli are at most
    e^{sup} in all [theory: grid.power]."""
    squared = (k <= SQUARED) & (k == np.floor(k))
    rows = math.fsum(np.where(squared, 4 * k, 20 * k + 20).tolist())
    return rows + (0.0 if squared.all() else 3.3 * (0.5 * math.log(n) + 1 + 3 * sup))


def _multiply(a, b, n_threads: int):
    """Circular convolution of (x, bound on its error e_2, bound on the exact sum s) pairs; a may be b
    [theory: grid.squaring].

    ||x^ y^ - x y||_2 <= s_y e_x + ||x^||_1 e_y: Young's inequality. The transforms add eta ||x^||_2 ||y^||_1
    (sup of the other spectrum) + eta ||y^||_2 (||x^||_1 + eta sqrt n ||x^||_2) and (eta + 4u) times the
    result.
    """
    (x, ex, sx), (y, ey, sy) = a, b
    n = x.shape[0]
    eta = _fft.error_upper(n)
    (x2, x1), (y2, y1) = _core.convolve_norms(x, 1.0), _core.convolve_norms(y, 1.0)
    fx = _fft.forward(x, n_threads)
    fy = fx if y is x else _fft.forward(y, n_threads)
    _core.convolve_multiply(fx, fy)
    out = _fft.backward(fx, n_threads)
    e = sy * ex + x1 * ey + eta * x2 * y1 + eta * y2 * (x1 + eta * math.sqrt(n) * x2)
    return out, (e + (eta + 4 * ULP) * _core.convolve_norms(out, 1.0 / n)[0]) * (1 + 1e-6), sx * sy


def _square(grid: Grid, t: float, logs: np.ndarray, n: int, n_threads: int) -> tuple[np.ndarray, float]:
    """(r^, bound on ||r^ - r||_2) by repeated squaring: binary powers of each step, multiplied as they
    come."""

    def powers():
        for i, log_m in enumerate(logs.tolist()):
            k, base = int(grid.steps.k[i]), (_tilted(grid, i, t, log_m, n), 0.0, 1 + 1e-12)
            while k:
                if k & 1:
                    yield base
                k >>= 1
                if k:
                    base = _multiply(base, base, n_threads)

    law, error, _ = functools.reduce(lambda a, b: _multiply(a, b, n_threads), powers())
    return law, error


def convolve(grid: Grid, plan: Plan, eps_max: float, how: str, n_threads: int) -> Tail:
    """D^ from the eps of the plan to eps_max (less where the circle ends), with certified errors."""
    t, n, dx = plan.t, plan.n, grid.dx
    j_lo = math.floor((plan.y_lo - grid.shift) / dx) - 1
    if not abs(j_lo) < 2**52:
        raise AccuracyError(f"the lattice is too fine for where it begins ({plan.y_lo:.3g}, step {dx:.3g})")
    y_lo, width = j_lo * dx + grid.shift, n * dx
    tilts = plan.t_right, plan.t_left, plan.t_cut
    found = log_mgfs(grid, (*tilts, t), n_threads)
    (right, left, cut), logs = _log_mgf_uppers(grid, tilts, found[:3]), found[3]
    k = grid.steps.k
    log_l = math.fsum((k * logs).tolist())
    keep = min(n, max(8, math.ceil((eps_max - y_lo) / dx) + 4))
    scale = log_l - t * (j_lo * dx)
    weight = math.sqrt(_weight2(t, width, dx))
    r, error2 = (tilted_power if how == "power" else _square)(grid, t, logs, n, n_threads)
    if scale - t * (eps_max - y_lo) + math.log(error2 * weight + LEAST) > plan.log_tol and _extends(grid, n):
        r, error2 = tilted_power(grid, t, logs, n, n_threads, extended=True)
    mass, delta = _core.convolve_tail(r, j_lo, dx, t, scale, keep)
    theta = math.fsum((k * ULP * (16 + 6 * t * dx * grid.steps.far + 2 * np.abs(logs))).tolist())
    theta += _accumulated(n) + ULP * (16 + 4 * abs(log_l) + 6 * t * (abs(y_lo) + abs(grid.shift) + width))
    if not theta < 0.1:
        raise AccuracyError(f"the weights of the convolution lose all digits ({theta:.2g})")
    return Tail(
        y_lo=y_lo,
        dx=dx,
        mass=mass,
        delta=delta,
        t=t,
        width=width,
        log_right=right - plan.t_right * width + t * width,
        t_right=plan.t_right,
        left=_exp(-t * width + min(0.0, left - plan.t_left * y_lo)),
        truncated=_exp(cut - plan.t_cut * (y_lo + width)),
        # [theory: grid.fft-error]
        log_fft=scale + math.log(error2 * weight * (1 + 2 * _accumulated(n)) + LEAST) + 2 * theta,
        relative=2 * theta,
    )
