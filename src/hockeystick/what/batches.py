"""How batches are really drawn: truncated Poisson sampling, fixed-size batches, cyclic groups.

Values and constructors; their theorems are in sampling.py. In all of them the noise must not depend on how many records
were drawn: dividing the noisy sum by the realised batch size is not covered, dividing by a public number is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..arguments import respelled
from ..bound import DomainError
from .mechanism import K_MAX, Q_MIN, Gaussian, Mechanism, count, flag, gaussian, positive, real, within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TruncatedPoisson(Mechanism):
    """A Gaussian step on a truncated Poisson sample; see `truncated_poisson_subsampled`. q = 1: see
    `without_replacement`."""

    base: Gaussian
    q: float
    dataset_size: int | tuple[int, int]
    max_batch: int
    assume_fixed_n: bool = False
    sized: ClassVar[bool] = True

    @property
    def open(self) -> bool:
        return isinstance(self.dataset_size, tuple)

    @property
    def sizes(self) -> tuple[int, int]:
        """Least and largest dataset size."""
        return self.dataset_size if isinstance(self.dataset_size, tuple) else (self.dataset_size,) * 2

    def at(self, size: int) -> TruncatedPoisson:
        """The same step on `size` records."""
        return TruncatedPoisson(self.base, self.q, size, self.max_batch, self.assume_fixed_n)


@dataclass(frozen=True, slots=True)
class SizeRange(Mechanism):
    """Stands for `step` at every size lo..hi at once: its pair dominates all of theirs (worst.py). Upper bounds
    only."""

    step: TruncatedPoisson
    lo: int
    hi: int
    sized: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class CyclicPoisson(Mechanism):
    """A whole run of a banded matrix mechanism with cyclic sampling; see `cyclic_poisson`, and `group` for its
    `records`."""

    base: Gaussian
    q: float
    iterations: int
    bands: int
    dataset_size: int
    max_batch: int | None
    column_norms: tuple[float, ...] | None
    per_record: bool = False
    records: int | tuple[float, ...] = 1
    sized: ClassVar[bool] = True
    open: ClassVar[bool] = True  # type: ignore[assignment,misc]


@respelled(batch="max_batch")
def truncated_poisson_subsampled(
    mechanism: Gaussian,
    q: float,
    *,
    dataset_size: int | tuple[int, int],
    max_batch: int,
    assume_fixed_n: bool = False,
) -> TruncatedPoisson:
    """A Gaussian step on a Poisson sample cut down to `max_batch` records, by a uniform choice among the sampled ones.

    A step is a public mixture: with probability 1-w the sample without the record at hand leaves room for it and the
    pair is that of Poisson sampling, with w = Pr[Bin(n-1, q) >= max_batch] the record may displace another one and the
    pair has shift 2 and a smaller rate (sampling.py). Neither extreme is safe: privacy is not monotone in n.

    Parameters
    ----------
    mechanism : Gaussian
        The noise; its `sensitivity` is the largest L2 norm of one record's contribution.
    q : float
        Inclusion probability before truncation: 0, or 1e-12 <= q <= 1. With 0 nothing is ever used.
    dataset_size : int or (int, int)
        Number n of records, public: of the larger of the two data sets under "add_remove", of both under "replace_one"
        and "zero_out". A pair (lo, hi) asks for the certified maximum over lo <= n <= hi, the same n in every step;
        `note` of the answer says how it was proved. At most 1e12.
    max_batch : int
        Largest batch, >= 0. From n on nothing is ever truncated; with 0 nothing is ever used.
    assume_fixed_n : bool, default False
        Under "add_remove" the guarantee compares n with n-1 records for this one n, which every step then takes as
        known. Composed with mechanisms whose guarantee covers every n, or holds for another n, the result is not an
        add-or-remove-one guarantee: the neighbour of a neighbour may have n+1 records, for which nothing was shown.
        Such a run is refused unless this is True, which states that n is fixed and public throughout. "replace_one" and
        "zero_out" keep n and need no such statement.

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    References
    ----------
    [Gan25], Theorems 3.1 (add/remove), 3.3 (zero-out), 3.4 (replace-one).

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.2, dataset_size=100, max_batch=22)
    >>> b = hs.delta(step, 0.1, direction="remove")
    >>> b.lower <= 0.06957516117980862 <= b.upper
    True
    """
    q = real("q", q, f"0 or in [{Q_MIN:g}, 1]")
    if not (q == 0 or Q_MIN <= q <= 1):
        raise DomainError(f"q (sampling rate) must be 0 or in [{Q_MIN:g}, 1], got {q!r}")
    return TruncatedPoisson(
        _gaussian("truncated_poisson_subsampled", mechanism),
        q,
        _sizes(dataset_size),
        count("max_batch", max_batch, 0),
        flag("assume_fixed_n", assume_fixed_n),
    )


@respelled(batch="max_batch")
def without_replacement(
    mechanism: Gaussian, *, dataset_size: int | tuple[int, int], max_batch: int, assume_fixed_n: bool = False
) -> TruncatedPoisson:
    """A Gaussian step on a batch of fixed size, drawn uniformly without replacement: truncated Poisson sampling with q
    = 1.

    With n > B = max_batch the record displaces another one: num = b(B/n, 2), den = N(0) (add/remove), b(B/n, -1)
    (zero-out), b(B/n, -2) (replace-one), b(c, u) the mixture (1-c) N(0) + c N(u) in units of the sensitivity.

    Status: "add_remove" tight (one data set of n and one of n-1 records attain it); "zero_out" and "replace_one" valid
    but not tight: the proof lets the displaced record differ between the two data sets.

    Parameters
    ----------
    mechanism : Gaussian
        The noise; its `sensitivity` is the largest L2 norm of one record's contribution.
    dataset_size : int or (int, int)
        As in `truncated_poisson_subsampled`.
    max_batch : int
        Size of every batch: from 0 to the (least) dataset size; of all n records if equal. `batch` is another name.
    assume_fixed_n : bool, default False
        As in `truncated_poisson_subsampled`.

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    References
    ----------
    [Gan25], Theorems 3.1, 3.3, 3.4 at p = 1.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.without_replacement(hs.gaussian(2.0), dataset_size=10_000, max_batch=100) * 1000
    >>> b = hs.delta(run, 1.0, direction="remove")
    >>> b.lower <= 0.0026124205786269 <= b.upper
    True
    """
    step = truncated_poisson_subsampled(
        mechanism, 1.0, dataset_size=dataset_size, max_batch=max_batch, assume_fixed_n=assume_fixed_n
    )
    if step.max_batch > step.sizes[0]:
        raise DomainError(f"max_batch must not exceed dataset_size, got max_batch={max_batch!r} of {dataset_size!r}")
    return step


@respelled(batch="max_batch")
def cyclic_poisson(
    mechanism: Gaussian,
    q: float,
    *,
    iterations: int,
    bands: int,
    dataset_size: int,
    max_batch: int | None = None,
    column_norms: Sequence[float] | NDArray[np.float64] | None = None,
    per_record: bool = False,
) -> CyclicPoisson:
    """A whole run of a b-banded matrix mechanism whose batches come from b groups of records in turn.

    Iteration i releases row i of C x + noise, C lower triangular with C_ij = 0 unless 0 <= i-j < b; its batch is drawn
    from group i mod b only, every member with probability `q`, cut down to `max_batch`. A record takes part in
    iterations g, g+b,
    ... of its group g, whose columns of C are orthogonal: at most ceil(iterations/b) (truncated) Poisson steps with
    noise sigma/(sensitivity |C e_i|). The answer is the maximum over the groups and over both group sizes, floor and
    ceil of n/b: with truncation the larger group may be the safer one.

    Parameters
    ----------
    mechanism : Gaussian
        Noise per entry of C x + noise; `sensitivity` is the largest L2 norm of one record's contribution.
    q : float
        Inclusion probability within the group: for an expected batch of B it is b B/n, not B/n.
    iterations, bands : int
        Number of iterations T, number of bands and groups b. b > T: every record is used once at most.
    dataset_size : int
        Number n of records, split into b groups of floor or ceil n/b by a rule that does not look at their values.
    max_batch : int, optional
        Largest batch; no truncation without it.
    column_norms : sequence of float, optional
        L2 norms of the T columns of C, each > 0. Default: all 1.
    per_record : bool, default False
        True: a record's group depends on that record alone (a hash of its key, a coin of its own), so one more record
        moves no other. Then "add_remove" is defined for any number of bands; but a group may be of any size up to n, so
        with `max_batch` the answer is the maximum over group sizes 1..n (which makes it one for every data set of at
        most n records).

    Notes
    -----
    For adjacency "zero_out" and "replace_one". Without `per_record`, one record more or less changes the groups of the
    others: up to b - 1 records elsewhere may move to another group, for which nothing is shown. So "add_remove" is
    refused then, unless there is one group.

    Raises
    ------
    DomainError
        If an argument is outside its domain.

    References
    ----------
    [CCD+23], Theorem 5; [Gan25], remark after Theorem 3.1.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, iterations=40, bands=2, dataset_size=199)
    >>> b = hs.epsilon(run, 1e-5, adjacency="zero_out")
    >>> b.lower <= hs.epsilon(hs.poisson_subsampled(hs.gaussian(4.0), 0.5) * 20, 1e-5).estimate <= b.upper
    True
    """
    mechanism = _gaussian("cyclic_poisson", mechanism)
    q = within("q (sampling rate within a group)", q, Q_MIN, 1)
    iterations, bands = count("iterations", iterations, 1, 10**9), count("bands", bands, 1, 10**9)
    size = count("dataset_size", dataset_size, 1)
    if max_batch is not None:
        max_batch = count("max_batch", max_batch, 0)
    if column_norms is not None:
        column_norms = tuple(positive(f"column_norms[{i}]", x) for i, x in enumerate(column_norms))
        if len(column_norms) != iterations:
            raise DomainError(f"column_norms needs one entry an iteration ({iterations}), got {len(column_norms)}")
        for x in (min(column_norms), max(column_norms)):
            gaussian(mechanism.sigma, sensitivity=mechanism.sensitivity * x)  # refuses what a double cannot carry
    return CyclicPoisson(mechanism, q, iterations, bands, size, max_batch, column_norms, flag("per_record", per_record))


def _gaussian(who: str, mechanism: Any) -> Gaussian:
    if not isinstance(mechanism, Gaussian):
        raise DomainError(f"{who} takes gaussian(...), got {mechanism!r}: its theorems are about Gaussian noise")
    return mechanism


def _sizes(value: Any) -> int | tuple[int, int]:
    if not isinstance(value, tuple | list):
        return count("dataset_size", value, 0)
    if len(value) != 2:
        raise DomainError(f"dataset_size must be an integer or a pair (lo, hi), got {value!r}")
    lo, hi = (count("dataset_size", n, 0, K_MAX) for n in value)
    if not lo <= hi:
        raise DomainError(f"dataset_size=(lo, hi) must have lo <= hi, got ({lo}, {hi}); did you mean ({hi}, {lo})?")
    return lo if lo == hi else (lo, hi)
