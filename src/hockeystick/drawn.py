"""Losses drawn from matrix mechanisms whose batches no transform is known for: bins that recur, rounds kept apart.

y = C x + z releases a row per round, z normal of deviation sigma; B is the set of rounds of the record, drawn without
looking at the data. With columns c_j of C over sigma and v_B = sum_{j in B} c_j, the pair E_B N(v_B, I) against N(0, I)
dominates in both orders, and its loss at x is log E_B e^{<v_B, x> - |v_B|^2/2} [theory: sampled.matrix]. Of bins only
the products <v_i, x> are drawn; of rounds kept apart all of x, and the mean over B is a recursion over rounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .arguments import one_of
from .bound import DomainError
from .what.matrix import lower_triangular
from .what.mechanism import SIGMA_RANGE, count, noise, within

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import ArrayLike, NDArray

DRAWS_MAX = 10**9
CHUNK = 1 << 21
"""Numbers that are drawn at once: 16 MB an array."""


def draw_balls_and_bins(
    matrix: ArrayLike,
    sigma: float,
    bins: int,
    draws: int,
    *,
    rng: int | np.random.Generator,
    direction: Literal["remove", "add"] = "remove",
) -> NDArray[np.float64]:
    """Losses of a matrix mechanism C x + z in which every record is in one of `bins` batches, which recur in turn.

    A record draws one bin i, once, and takes part in the rounds i, i + bins, i + 2 bins, .. It then contributes a
    vector of norm at most 1, which may depend on what was released. The losses are those of the worst such
    contributions, for `monte_carlo`.

    Parameters
    ----------
    matrix : array_like
        C: square, lower triangular, entries >= 0, at most 20,000 rows.
    sigma : float
        Standard deviation of the noise on every row, for contributions of norm 1.
    bins : int
        1 to the number of rounds. One bin: every record in every round.
    draws : int
        Number of losses, 1 to 1e9.
    rng : int or numpy.random.Generator
        A seed, or a generator, which moves on. Threads need generators of their own, such as `rng.spawn` makes.
    direction : "remove" or "add"
        Which law the losses are drawn under: with the record, or without.

    Returns
    -------
    ndarray
        `draws` independent losses, in double precision, of the pair for "add_remove" and "zero_out".

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    References
    ----------
    docs/theory/sampled.md for the pair.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import numpy as np
    >>> rounds = np.eye(40) + 0.5 * np.eye(40, k=-1)                         # each noise half undone by the next
    >>> losses = hs.draw_balls_and_bins(rounds, 1.5, 20, 100_000, rng=1)     # two epochs of 20 batches
    >>> b = hs.monte_carlo(losses, 0.5, failure=1e-6)
    >>> print(f"{b.lower:.3f} {b.upper:.3f}, {b.note}")
    0.020 0.025, holds with probability 1 - 1e-06 over 100000 samples; not certified
    """
    rows, n = _asked(matrix, sigma, draws, direction)
    bins = count("bins", bins, 1, rows.shape[0])
    random = _generator(rng)
    shifts = np.stack([rows[:, i::bins].sum(axis=1) for i in range(bins)], axis=1)
    gram = shifts.T @ shifts
    root = np.asarray(np.linalg.qr(shifts, mode="r"))  # its columns have the products of the shifts

    def some(size: int) -> NDArray[np.float64]:
        products = random.standard_normal((size, root.shape[0])) @ root
        if direction == "remove":
            products += gram[random.integers(bins, size=size)]
        products -= 0.5 * np.diag(gram)  # [theory: sampled.matrix]
        top = products.max(axis=1)
        products -= top[:, None]
        return top + np.log(np.exp(products, out=products).mean(axis=1))

    return _in_chunks(some, n, bins, direction)


def draw_min_separation(
    matrix: ArrayLike,
    sigma: float,
    q: float,
    separation: int,
    draws: int,
    *,
    rng: int | np.random.Generator,
    direction: Literal["remove", "add"] = "remove",
) -> NDArray[np.float64]:
    """Losses of a banded matrix mechanism C x + z with Poisson samples of records that rest after taking part
    (b-min-sep).

    In every round a record that took part in none of the last `separation` - 1 rounds takes part with probability `q`,
    independently of all else; in the first round it may. It then contributes a vector of norm at most 1, which may
    depend on what was released. The losses are those of the worst such contributions, for `monte_carlo`.

    Parameters
    ----------
    matrix : array_like
        C: square, lower triangular, entries >= 0, at most 20,000 rows; 0 from `separation` columns left of the diagonal
        on.
    sigma : float
        Standard deviation of the noise on every row, for contributions of norm 1.
    q : float
        In (0, 1]; 1: every `separation` rounds.
    separation : int
        1 to the number of rounds: of two rounds of one record the second is at least so much later. 1: Poisson samples.
    draws : int
        Number of losses, 1 to 1e9.
    rng : int or numpy.random.Generator
        A seed, or a generator, which moves on. Threads need generators of their own, such as `rng.spawn` makes.
    direction : "remove" or "add"
        Which law the losses are drawn under: with the record, or without.

    Returns
    -------
    ndarray
        `draws` independent losses, in double precision, of the pair for "add_remove" and "zero_out".

    Raises
    ------
    DomainError
        If an argument is outside its domain; if `matrix` has an entry further from the diagonal: rounds of one record
        would then meet in one row.

    References
    ----------
    docs/theory/sampled.md for the pair and the recursion.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import numpy as np
    >>> rounds = np.eye(100) + 0.5 * np.eye(100, k=-1)
    >>> losses = hs.draw_min_separation(rounds, 1.5, 0.05, 2, 20_000, rng=1)
    >>> b = hs.monte_carlo(losses, 0.5, failure=1e-6)
    >>> print(f"{b.lower:.3f} {b.upper:.3f}, {b.note}")
    0.054 0.072, holds with probability 1 - 1e-06 over 20000 samples; not certified
    """
    rows, n = _asked(matrix, sigma, draws, direction)
    rounds = rows.shape[0]
    separation = count("separation", separation, 1, rounds)
    rate = within("q", q, 0, 1, "(]")
    at, of = np.nonzero(rows)
    far = np.flatnonzero(at - of >= separation)
    if far.size:
        i, j = int(at[far[0]]), int(of[far[0]])
        raise DomainError(
            f"matrix must be 0 from {separation} columns left of the diagonal on (separation), got"
            f" {float(np.asarray(matrix)[i, j])!r} at row {i}, column {j}"
        )
    random = _generator(rng)
    bands = [(d, np.diagonal(rows, -d)) for d in range(int((at - of).max(initial=0)) + 1)]
    half = 0.5 * (rows * rows).sum(axis=0)
    go, rest = math.log(rate), math.log1p(-rate) if rate < 1 else -math.inf

    def some(size: int) -> NDArray[np.float64]:
        x = random.standard_normal((rounds, size))
        if direction == "remove":
            free = np.zeros(size, np.int64)  # the first round from which a record may take part
            for j in range(rounds):
                taken = np.flatnonzero((random.random(size) < rate) & (free <= j))
                free[taken] = j + separation
                for d, band in bands[: rounds - j]:
                    x[j + d, taken] += band[j]
        values = np.zeros((rounds + separation, size))  # log of the mean over what is drawn from a round on
        for j in range(rounds - 1, -1, -1):  # [theory: sampled.matrix]
            product = sum(band[j] * x[j + d] for d, band in bands[: rounds - j])
            values[j] = np.logaddexp(rest + values[j + 1], go - half[j] + product + values[j + separation])
        return values[0].copy()

    return _in_chunks(some, n, 2 * rounds, direction)


def _asked(matrix: ArrayLike, sigma: float, draws: int, direction: str) -> tuple[NDArray[np.float64], int]:
    """The matrix over sigma, and the number of draws."""
    one_of("direction", direction, ("remove", "add"))
    rows = lower_triangular(matrix)
    sigma = noise("sigma", sigma, float(rows.max()) or 1.0, (SIGMA_RANGE[0], math.inf))
    return rows / sigma, count("draws", draws, 1, DRAWS_MAX)


def _generator(rng: int | np.random.Generator) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(count("rng", rng, 0, 2**128))


def _in_chunks(some, n: int, width: int, direction: str) -> NDArray[np.float64]:
    """n losses by calls that draw `width` numbers for each."""
    out = np.empty(n)
    size = max(1, CHUNK // width)
    for first in range(0, n, size):
        part = some(min(size, n - first))
        out[first : first + size] = part if direction == "remove" else -part
    return out
