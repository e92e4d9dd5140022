"""Many queries in one call: arrays of Poisson-subsampled Gaussian runs, each with its own delta or eps.

csrc/line/batch.c answers what one line contour answers within `rtol` [theory: risk.batch]; the rest (single steps, few
jumps, exact cases, fall-backs) is asked one by one through `query`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from . import _core, arguments, query
from .arguments import respelled
from .bound import AccuracyError, Bound, Budget, DomainError, contradiction
from .routes import contour
from .threads import in_order, threads
from .what.allocation import random_allocation
from .what.mechanism import K_MAX, Q_MIN, SIGMA_RANGE, Run, compose, gaussian, poisson_subsampled, within
from .what.pair import ADJACENCIES
from .what.vectors import reals, require

if TYPE_CHECKING:
    from .types import Adjacency, Direction, Numbers

SAMPLERS = ("poisson", "allocation")
CHUNK = 1 << 14
"""Queries between two calls of `progress`: about a second of one core."""


@respelled(k="steps")
def epsilon_batch(
    sigma: float | Numbers,
    q: float | Numbers,
    steps: float | Numbers,
    delta: float | Numbers,
    *,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    rtol: float = 1e-6,
    n_threads: int = 1,
    sampler: Literal["poisson", "allocation"] = "poisson",
    alone: bool = True,
    strict: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Bound[Any]:
    """eps(delta) of Poisson-subsampled Gaussian steps, for arrays of sigma, q, steps and delta.

    Parameters
    ----------
    sigma, q, steps, delta : float or array_like
        Noise multiplier, sampling rate (1: none), number of steps (`k` is its old name), and delta in (0, 1); broadcast
        against each other.
    adjacency : "add_remove", "replace_one" or "zero_out"
        Neighbouring relation, as in `epsilon`.
    direction : "both", "remove" or "add"
        As in `epsilon`.
    rtol : float, default 1e-6
        Relative width (of eps; of delta for `delta_batch`) with which the fast loop's answer is taken, 1e-14 to 0.5.
        Entries it does not answer so are asked alone, as `epsilon` without rtol: narrow where that is possible, and
        slower.
    n_threads : int, default 1
        Threads; 0 = all allowed cores. Results do not depend on it.
    sampler : "poisson" or "allocation"
        How batches were drawn, as in logs: with "allocation" the steps are epochs of 1/q of them, in one of which a
        record takes part (`random_allocation`); every entry is asked alone.
    alone : bool, default True
        Whether entries that the fast loop does not answer within rtol are asked alone, which can take a second each. If
        not, they get Chernoff's bound above, a few tens of percent too large as a rule, and 0 below.
    strict : bool, default True
        Whether an entry that no route certifies is an AccuracyError. If not, its bounds are 0 and inf.
    progress : callable, optional
        progress(done, total), called now and then from the calling thread.

    Returns
    -------
    Bound
        Certified bounds of eps, of the broadcast shape: floats where all four are numbers.

    Raises
    ------
    DomainError
        For an argument outside its domain; the message names the first entry.
    AccuracyError
        If `strict` and an entry cannot be certified; the message names it.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.epsilon_batch([0.8, 1.0, 2.0], 0.01, [[1000], [2000]], 1e-5)
    >>> b.upper.shape
    (2, 3)
    >>> bool(b.upper[0, 1] == hs.epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 1e-5).upper)
    True
    """
    at = _column("delta", delta, lambda x: (x > 0) & (x < 1), "in (0, 1)")
    return _batch(sigma, q, steps, at, True, adjacency, direction, rtol, n_threads, sampler, alone, strict, progress)


@respelled(epsilon="eps", k="steps")
def delta_batch(
    sigma: float | Numbers,
    q: float | Numbers,
    steps: float | Numbers,
    eps: float | Numbers,
    *,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    rtol: float = 1e-6,
    n_threads: int = 1,
    sampler: Literal["poisson", "allocation"] = "poisson",
    alone: bool = True,
    strict: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Bound[Any]:
    """delta(eps) of Poisson-subsampled Gaussian steps, for arrays of sigma, q, steps and eps.

    `eps` is finite. Other parameters, errors and guarantees are those of `epsilon_batch`; without `strict` an entry
    that no route certifies has the bounds 0 and 1.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.delta_batch(1.0, 0.01, 1000, [0.5, 1.0, 2.0])
    >>> bool((b.lower <= b.upper).all())
    True
    """
    at = _column("eps", eps, np.isfinite, "a finite number")
    return _batch(sigma, q, steps, at, False, adjacency, direction, rtol, n_threads, sampler, alone, strict, progress)


def _batch(
    sigma, q, k, at, want_eps: bool, adjacency, direction, rtol, n_threads, sampler, alone, strict, progress
) -> Bound:
    arguments.one_of("sampler", sampler, SAMPLERS)
    arguments.one_of("adjacency", adjacency, ADJACENCIES)
    arguments.one_of("direction", direction, query.DIRECTIONS)
    n_threads = threads(n_threads)
    lo, hi = query.RTOL_RANGE
    widest = within("rtol", rtol, lo, hi)
    if progress is not None and not callable(progress):
        raise DomainError(f"progress must be a function of (done, total), got {progress!r}")
    lo, hi = SIGMA_RANGE
    sigma = _column("sigma", sigma, lambda x: (x >= lo) & (x <= hi), f"from {lo:g} to {hi:g}")
    q = _column("q", q, lambda x: (x >= Q_MIN) & (x <= 1), f"in [{Q_MIN:g}, 1]")
    whole = f"a whole number from 1 to {K_MAX:.0e}"
    k = _column("steps", k, lambda x: (x >= 1) & (x <= K_MAX) & (x == np.floor(x)), whole)
    try:
        columns = np.broadcast_arrays(sigma, q, k, at)
    except ValueError:
        shapes = ", ".join(str(np.shape(x)) for x in (sigma, q, k, at))
        raise DomainError(
            f"sigma, q, steps and {'delta' if want_eps else 'eps'} must broadcast; their shapes are {shapes}"
        ) from None
    shape = columns[0].shape
    sigma, q, k, at = (np.ascontiguousarray(column, dtype=float).ravel() for column in columns)
    ends, done = np.zeros((3, sigma.size)), np.zeros(sigma.size, dtype=np.uint8)
    columns, sides = (sigma, q, k, at), {"adjacency": adjacency, "direction": direction}
    runs = _Runs(sigma, q, k, sampler)
    routes = _fill(columns, runs, want_eps, sides, widest, n_threads, alone, strict, progress, ends, done)
    for i in np.flatnonzero(~(ends[0] <= ends[2])):
        raise contradiction((sigma[i], q[i], k[i], at[i]), (*ends[:, i].tolist(), "+".join(sorted(routes))))
    low, mid, high = (end.reshape(shape) if shape else float(end[0]) for end in ends)
    unit = "eps" if want_eps else "delta"
    return Bound(low, mid, high, "+".join(sorted(routes)), True, Budget({"width": high - low}, unit))


class _Runs(NamedTuple):
    """The run of every entry."""

    sigma: np.ndarray
    q: np.ndarray
    k: np.ndarray
    sampler: str

    def __call__(self, i: int) -> Run:
        sigma, q, k = self.sigma[i], self.q[i], int(self.k[i])
        if self.sampler == "poisson":
            return compose((poisson_subsampled(gaussian(sigma), q), k))
        t = round(1 / q)
        if not abs(q * t - 1) <= 1e-6 or k % t:
            raise DomainError(
                f"sampler 'allocation' has whole epochs of 1/q steps, got q={q:g} and {k} steps at entry {i}"
            )
        return compose((random_allocation(gaussian(sigma), t), k // t))


def _fill(columns, runs, want_eps, sides, widest, n_threads, alone, strict, progress, ends, done) -> set[str]:
    """Answer every query into `ends`, chunk by chunk; the routes that were used."""
    sigma, q, k, at = columns
    m, n, routes = 1.0 / sigma, sigma.size, set()
    replaced = sides["adjacency"] == "replace_one"
    if replaced:  # one curve for both directions; without sampling N(m, 1) against N(-m, 1)
        m, which = np.where(q == 1, 2 * m, m), 1
    else:
        which = {"remove": 1, "add": 2, "both": 3}[sides["direction"]]
    settings = (int(want_eps), which, int(replaced), contour.RTOL, contour.margin(contour.RTOL), widest, n_threads)

    def ask(i: int):
        try:
            return (query.epsilon if want_eps else query.delta)(runs(i), float(at[i]), **sides)
        except AccuracyError as error:
            if strict:
                raise AccuracyError(f"entry {i} (sigma={sigma[i]:g}, q={q[i]:g}, k={k[i]:.0f}): {error}") from None
            return Bound(0.0, 0.0, np.inf if want_eps else 1.0, "none", True, Budget({}))

    for start in range(0, n, CHUNK):
        part = slice(start, min(start + CHUNK, n))
        out = np.zeros((3, part.stop - part.start))
        if runs.sampler == "poisson":
            _core.batch(m[part], q[part], k[part], at[part], *settings, out, done[part])  # [theory: risk.batch]
        ends[:, part] = out if want_eps else arguments.exp_ends(out.T)
        ends[1, part] = np.clip(ends[1, part], ends[0, part], ends[2, part])
        routes |= {
            name
            for code, name in ((1, "contour"), (2, "moments"))
            if (done[part] == code).any() and (code == 1 or not alone)
        }
        left = start + np.flatnonzero(done[part] != 1 if alone else done[part] == 0)
        for i, bound in zip(left, in_order(ask, left.tolist(), n_threads), strict=True):
            if done[i] and not bound.lower <= ends[2, i]:  # ends[2] is Chernoff's bound of the same number
                raise contradiction(
                    (sigma[i], q[i], k[i], at[i]),
                    (*ends[:, i].tolist(), "moments"),
                    (bound.lower, bound.estimate, bound.upper, bound.route),
                )
            ends[:, i] = bound.lower, bound.estimate, bound.upper
            routes.add(bound.route)
        if progress is not None:
            progress(part.stop, n)
    return routes


def _column(name: str, value, allowed, text: str) -> np.ndarray:
    array = reals(name, value)
    require(name, array, allowed(array), text)
    return array
