"""The individual filter over more records than one machine holds: the same kernels on the blocks of a Dask array.

State is a block of words for every block of norms, on the worker that has the norms. A step is a pure function of the
blocks before it, so a block lost with its worker is computed again and comes out the same, bit for bit; a step with a
bad norm anywhere is not taken. Needs the extra "dask".

To do that the scheduler remembers every step since the start, and the norms too where they are handed over as arrays:
in a long run let the workers read them from files. Nothing outlives the cluster; records.py does, on one machine."""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from ..arguments import respelled
from ..bound import DomainError
from ..what.mechanism import flag, positive, within
from . import units
from .epsilons import individual_epsilons
from .gaussian import gdp_epsilons_upper
from .records import DROPPED, SCALE_RANGE

BINS = 1 << 14
"""Bins of the histogram behind the quantiles: uniform in mu from 0 to the budget, each read at its upper edge."""


class ShardedGDPFilter:
    """`IndividualGDPFilter` over the blocks of a Dask array; see there for the semantics.

    Parameters
    ----------
    chunks : tuple of int
        Records in each block, as in `norms.chunks[0]`.
    budget_mu, eps, delta, sticky, clip
        As in `IndividualGDPFilter`.

    Raises
    ------
    DomainError
        For arguments outside their domain.
    """

    @respelled(epsilon="eps")
    def __init__(self, chunks, *, budget_mu=None, eps=None, delta=None, sticky=False, clip=None):
        import dask

        self.chunks = tuple(int(n) for n in chunks)
        if not self.chunks or min(self.chunks) < 0 or sum(self.chunks) < 1:
            raise DomainError(f"chunks must be the sizes of the blocks, got {chunks!r}")
        self.budget_mu, self.sticky = units.budget(budget_mu, eps, delta), flag("sticky", sticky)
        self.clip = None if clip is None else positive("clip", clip)
        self._units, self.steps = units.units_of(self.budget_mu), 0
        self._blocks = [dask.delayed(np.zeros)(n, np.int64) for n in self.chunks]

    @property
    def n_records(self) -> int:
        """Records of all blocks."""
        return sum(self.chunks)

    def charge(self, norms, *, sigma):
        """One step over all records, asked for before it runs. Computes and keeps the state.

        Parameters
        ----------
        norms : dask.array of float32 or float64, shape (records,)
            Norms >= 0 in the filter's blocks.
        sigma : float
            Standard deviation of the noise, in the unit of the norms.

        Returns
        -------
        dask.array of bool
            The active mask, in the blocks of `norms`.

        Raises
        ------
        DomainError
            For other blocks than the filter's, bad norms or sigma. Nobody is charged.
        """
        import dask
        import dask.array as da

        sigma = positive("sigma", sigma)
        scale = self._units.scale_lower(sigma)
        if not SCALE_RANGE[0] <= scale <= SCALE_RANGE[1]:
            raise DomainError(f"sigma={sigma!r} is too far from the budget {self.budget_mu!r} for double precision")
        if not isinstance(norms, da.Array) or norms.ndim != 1 or norms.dtype not in (np.float32, np.float64):
            raise DomainError("norms must be a one-dimensional dask array of float32 or float64")
        if norms.chunks[0] != self.chunks:
            raise DomainError(f"norms have blocks {norms.chunks[0]}, the filter has {self.chunks}; rechunk them")
        top = self.clip if self.clip is not None else float(np.finfo(np.float64).max)
        options = (scale, top, self._units.limit, self.sticky)
        norm_blocks = norms.to_delayed().ravel()
        parts = [dask.delayed(_charge_block)(w, x, *options) for w, x in zip(self._blocks, norm_blocks, strict=True)]
        parts = dask.persist(*parts)
        bad = dask.compute(*(dask.delayed(_bad)(part) for part in parts))
        for block, found in enumerate(bad):
            if found is not None:
                record = sum(self.chunks[:block]) + found[0]
                allowed = "finite" if self.clip is None else f"at most the promised clip {self.clip!r}"
                raise DomainError(
                    f"norms must be >= 0 and {allowed}, got {found[1]!r} at record {record}; nobody was charged"
                )
        self._blocks = [dask.delayed(_words)(part) for part in parts]
        self.steps += 1
        masks = [dask.delayed(_mask)(part) for part in parts]
        return da.concatenate([da.from_delayed(m, (n,), bool) for m, n in zip(masks, self.chunks, strict=True)])

    def spent_mu_upper(self):
        """Dask array: sqrt of the squares charged to each record, rounded up. Private."""
        import dask
        import dask.array as da

        parts = [dask.delayed(_spent)(words, self._units) for words in self._blocks]
        return da.concatenate([da.from_delayed(p, (n,), float) for p, n in zip(parts, self.chunks, strict=True)])

    def summary(self, delta: float, quantiles=(0.5, 0.95)) -> dict:
        """Maximum, quantiles and histogram of eps(delta) over all records, reduced block by block: upper bounds, ex
        post, private.

        Parameters
        ----------
        delta : float
            In (0, 1).
        quantiles : sequence of float
            From 0 to 1.

        Returns
        -------
        dict
            "max", "quantiles" ({p: eps}, each at most one bin high), "edges" (eps at the bins' upper edges),
            "histogram".

        Raises
        ------
        DomainError
            For arguments outside their domain.
        """
        import dask

        within("delta", delta, 0, 1, "()")
        if not all(0 <= p <= 1 for p in quantiles):
            raise DomainError(f"quantiles must be from 0 to 1, got {quantiles!r}")
        edges = self.budget_mu * np.arange(1, BINS + 1) / BINS * (1 + 2.0**-40)
        parts = dask.compute(*(dask.delayed(_histogram)(words, self._units, edges) for words in self._blocks))
        histogram = sum(part[0] for part in parts)
        eps = gdp_epsilons_upper(np.append(edges, max(part[1] for part in parts)), delta)
        below = np.cumsum(histogram)
        at = {p: float(eps[np.searchsorted(below, math.ceil(p * (below[-1] - 1)) + 1)]) for p in quantiles}
        top = float(eps[-1])
        return {
            "max": top,
            "quantiles": {p: min(e, top) for p, e in at.items()},
            "edges": eps[:-1],
            "histogram": histogram,
        }


def epsilons_upper(counts, *, sigmas, delta, q=1.0, route="contour"):
    """`individual_epsilons(...).upper` of a Dask array of counts, block by block.

    Parameters
    ----------
    counts : dask.array of int, shape (records, levels)
    sigmas, delta, q, route
        As in `individual_epsilons`.

    Returns
    -------
    dask.array of float, shape (records,)
        Certified upper bounds, ex post.

    Raises
    ------
    DomainError
        For other arrays; for arguments outside their domain when a block is computed.
    """
    import dask.array as da

    if not isinstance(counts, da.Array) or counts.ndim != 2 or counts.dtype.kind not in "iu":
        raise DomainError("counts must be a (records, levels) dask array of integers")
    whole = counts.rechunk({1: -1})
    return whole.map_blocks(_epsilons, sigmas=sigmas, delta=delta, q=q, route=route, dtype=float, drop_axis=1)


def norms_from_parquet(path, column: str = "norm"):
    """A column of a Parquet dataset (file or folder) as a Dask array with one block a row group.

    Raises
    ------
    DomainError
        If a file lacks the column, or there are no rows.
    """
    import dask
    import dask.array as da
    from pyarrow import dataset, parquet

    files = sorted(dataset.dataset(path, format="parquet").files)
    parts = []
    for file in files:
        metadata = parquet.ParquetFile(file)
        if column not in metadata.schema_arrow.names:
            raise DomainError(f"{file} has no column {column!r}; it has {metadata.schema_arrow.names}")
        kind = np.dtype(metadata.schema_arrow.field(column).type.to_pandas_dtype())
        for group in range(metadata.num_row_groups):
            size = metadata.metadata.row_group(group).num_rows
            parts.append(da.from_delayed(dask.delayed(_row_group)(file, group, column), (size,), kind))
    if not parts:
        raise DomainError(f"{path} holds no rows")
    return da.concatenate(parts)


def _row_group(file: str, group: int, column: str) -> np.ndarray:
    from pyarrow import parquet

    return parquet.ParquetFile(file).read_row_group(group, columns=[column]).column(column).to_numpy()


def _charge_block(words, norms, scale: float, top: float, limit: int, sticky: bool):
    """(words after, mask, None) or (words as they were, None, (first bad record, its norm))."""
    if not words.size:
        return words, np.empty(0, bool), None
    norms = np.ascontiguousarray(norms)
    after, active = np.empty_like(words), np.empty(words.size, bool)
    status, _, bad = _core.individual_charge(
        norms, scale, top, limit, sticky, 0, np.ascontiguousarray(words), after, active.view(np.uint8), 1, 0
    )
    return (words, None, (int(bad), float(norms[bad]))) if status else (after, active, None)


def _words(part):
    return part[0]


def _mask(part):
    return part[1]


def _bad(part):
    return part[2]


def _spent(words, layout):
    return layout.all_mu_upper((words & ~DROPPED).astype(float))


def _histogram(words, layout, edges):
    mu = _spent(words, layout)
    return np.bincount(np.searchsorted(edges, mu, side="left"), minlength=edges.size), float(mu.max(initial=0.0))


def _epsilons(block, **options):
    return individual_epsilons(block, **options).upper
