"""The individual GDP filter: a budget for every record, charged with the norms that the record really had."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..arguments import respelled
from ..bound import DomainError
from ..outward import U
from ..store import StoreError
from ..threads import threads
from ..what.mechanism import count, flag, positive
from . import arrays, data, units
from .filters import Kept
from .store import Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

    from ..types import Numbers

RECORDS_MAX = 10**10
DROPPED, TURN = _core.DROPPED, _core.TURN
SCALE_RANGE = (2.0**-400, 2.0**400)
"""What a norm may be divided by: squares of what is of any use stay within a double."""


# The guarantee, and what a norm may depend on: [theory: individual.records, individual.mu].
class IndividualGDPFilter(Kept):
    """A GDP filter for every record of a data set at once.

    At step j record i has mu = norm_i/sigma, norm_i the (clipped) norm of its contribution. It is active if the squares
    charged to it so far and this one do not exceed budget_mu^2; active records are charged, the others must be left out
    of the step and are charged nothing. The whole transcript is then budget_mu-GDP for every record, for
    add-or-remove-one neighbours [KTH23, Alg. 1 and Thm 4.1]. Call `charge` before the step runs, then run it on the
    active records only.

    What a norm may depend on: the record itself and past outputs. Batch normalisation, losses across records, clipping
    at a quantile of the data, or dividing by the number of active records void the guarantee: divide by a constant. The
    mask, the number of active records and the per-record epsilons are functions of the private data and must not be
    released.

    Parameters
    ----------
    n_records : int
        From 1 to 1e10. 8 bytes a record, in memory, in `words` or at `path`; there a step needs room for its norms as
        well.
    budget_mu : float, optional
        Budget of every record, from 1e-6 to 1e3.
    eps, delta : float, optional
        Instead of budget_mu: the largest budget certified to be (eps, delta)-DP. `epsilon` is another name of `eps`.
    sticky : bool, default False
        Whether a record that is refused once stays out. Without it a record is tested again at every step and may
        re-enter with a smaller norm; that is as safe.
    clip : float, optional
        A promise that no norm exceeds it: a larger one is refused.
    n_threads : int, default 1
        0 = all allowed cores. Results do not depend on it.
    path : path-like, optional
        Keep the state in new files `path`, `path`.words and `path`.step; see `open`.
    sync : bool, default True
        With `path`: whether an acknowledged charge also survives a loss of power (it always survives the death of the
        process).
    words : array of int64 zeros, optional
        Where to keep the state instead, such as numpy.memmap(file, numpy.int64, "w+", shape=n_records): more records
        than memory holds at 8 bytes each. Not durable: a killed step may be half applied.

    Raises
    ------
    DomainError
        For arguments outside their domain.
    StoreError
        If the files exist or cannot be created.

    References
    ----------
    [KTH23].

    Examples
    --------
    >>> import numpy as np, hockeystick as hs
    >>> filter = hs.IndividualGDPFilter(2, budget_mu=1.0)
    >>> for norm in (0.6, 0.7, 0.5, 0.9, 0.3):
    ...     print(filter.charge(np.array([norm, 0.5]), sigma=1.0))
    [ True  True]
    [ True  True]
    [False  True]
    [False  True]
    [ True False]
    """

    KIND = "individual_gdp_filter"

    @respelled(epsilon="eps")
    def __init__(
        self,
        n_records: int,
        *,
        budget_mu: float | None = None,
        eps: float | None = None,
        delta: float | None = None,
        sticky: bool = False,
        clip: float | None = None,
        n_threads: int = 1,
        path: str | os.PathLike[str] | None = None,
        sync: bool = True,
        words: NDArray[np.int64] | None = None,
    ) -> None:
        self.n_records = count("n_records", n_records, 1, RECORDS_MAX)
        self.budget_mu = units.budget(budget_mu, eps, delta)
        self.clip = None if clip is None else positive("clip", clip)
        self._setup(flag("sticky", sticky), n_threads)
        self._steps = 0
        self._checksum: Any = 0
        self._spent: Any
        self._words: Any = None
        self._ledger: Any = None
        if path is not None and words is not None:
            raise DomainError("give path (durable) or words (not durable), not both")
        if path is None:
            self._spent = (
                np.zeros(self.n_records, np.int64) if words is None else arrays.words_of(words, self.n_records)
            )
        else:
            self._create(Path(path), flag("sync", sync))

    def _setup(self, sticky: bool, n_threads) -> None:
        self.sticky = sticky
        self.n_threads = threads(n_threads)
        self._units = units.units_of(self.budget_mu)
        self._lock, self._some = threading.Lock(), np.empty(0, np.int64)

    def _create(self, path: Path, sync: bool) -> None:
        self._words = data.Words.create(_words_path(path), self.n_records, sync)
        try:
            self._spent = self._words.array
            self._checksum = data.checksum(self._spent, self._units.limit, threads(self.n_threads))
            parameters = {
                "n_records": self.n_records,
                "budget_mu": self.budget_mu,
                "sticky": self.sticky,
                "clip": self.clip,
                "identity": self._words.identity.hex(),
            }
            self._ledger = Ledger.create(
                path, self.KIND, parameters, self._state_after(0, 0, 0.0, self._checksum), sync
            )
        except BaseException:
            self._words.close()
            data.Words.remove(_words_path(path))
            raise

    @staticmethod
    def _state_after(steps: int, turn: int, scale: float, checksum: int) -> dict:
        """`turn`: 1 if words have the bit TURN, 2 if they have it no more; `scale`: of the last step, if one over
        all."""
        return {"steps": steps, "turn": turn, "scale": scale, "checksum": checksum}

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, n_records: int | None = None, n_threads: int = 1, sync: bool = True
    ) -> Self:
        """The filter kept in `path`, with every charge that it acknowledged.

        Parameters
        ----------
        n_records : int, optional
            What the caller expects; a file with another number is refused.
        n_threads, sync
            As in the class.

        Raises
        ------
        StoreError
            If a file is missing, open elsewhere, foreign, of another version, truncated, corrupted, or of another
            number of records. The files are left as they are.
        """
        path = Path(path)
        ledger = Ledger.open(path, cls.KIND, flag("sync", sync))
        with ledger.closing_on_error():
            self = cls.__new__(cls)
            given, state = ledger.parameters, ledger.state
            self.n_records, self.budget_mu, self.clip = given["n_records"], given["budget_mu"], given["clip"]
            if n_records is not None and n_records != self.n_records:
                raise StoreError(f"{path} holds {self.n_records} records, expected {n_records}")
            self._setup(given["sticky"], n_threads)
            identity = bytes.fromhex(given["identity"])
            self._words = data.Words.open(_words_path(path), self.n_records, identity, sync)
            self._ledger, self._spent = ledger, self._words.array
            self._steps, self._checksum = state["steps"], state["checksum"]
            try:
                self._finish(self._words.kept(self._steps))
            except BaseException:
                self._words.close()
                raise
        return self

    def _finish(self, kept) -> None:
        """Do the last step again if it is kept and was not done, once it is sure that the right words come out."""
        before, state = None, self._ledger.state
        found = data.checksum(self._spent, self._units.limit, threads(self.n_threads))
        if found == self._checksum or kept is None:
            kept = None
        elif kept.ndim == 1:
            with suppress(DomainError):
                found = self._sweep(kept, state["scale"], state["turn"], None, look=True)
        else:
            index, new = kept
            if index.size and not 0 <= index.min() <= index.max() < self.n_records:
                raise StoreError(f"{self._words.path} is corrupted (places of the last step); it is left as it is")
            before = self._spent[index]
            self._spent[index] = new
            found = data.checksum(self._spent, self._units.limit, threads(self.n_threads))
        if found != self._checksum:
            if before is not None:
                self._spent[index] = before
            raise StoreError(f"{self._words.path} is corrupted (checksum of the words); it is left as it is")
        if kept is not None and kept.ndim == 1:
            self._sweep(kept, state["scale"], state["turn"], None)
        self._words.settle()

    def charge(
        self,
        norms: Numbers,
        *,
        sigma: float,
        indices: Numbers | None = None,
        out: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        """Ask for one step before it runs: which records may take part. They are charged, the others are not.

        Parameters
        ----------
        norms : array of float32 or float64
            Norms >= 0, at most `clip` if that is promised: one a record, or one an entry of `indices`.
        sigma : float
            Standard deviation of the step's noise, in the unit of the norms (noise multiplier times clipping norm).
        indices : array of int, optional
            Distinct record numbers, in any order: only they have a nonzero norm at this step. With Poisson sampling
            this is sound only if the charge is the unamplified one and the sample may be known; see dpsgd.py.
        out : array of bool, optional
            Where the mask goes; of the length of `norms`. With it, a step over all records allocates nothing.

        Returns
        -------
        ndarray of bool
            One entry a norm: True for active records.

        Raises
        ------
        DomainError
            For bad norms, lengths, indices or sigma. Nobody is charged.
        StoreError
            If the files cannot take the step. Nobody is charged.
        """
        sigma = positive("sigma", sigma)
        scale = self._units.scale_lower(sigma)
        if not SCALE_RANGE[0] <= scale <= SCALE_RANGE[1]:
            raise DomainError(f"sigma={sigma!r} is too far from the budget {self.budget_mu!r} for double precision")
        norms = arrays.norms_of(norms)
        wanted = self.n_records if indices is None else np.size(indices)
        if norms.size != wanted:
            raise DomainError(f"norms must have one entry for each of {wanted} records, got {norms.size}")
        active = arrays.mask_of(out, norms.size)
        with self._lock:
            if self._ledger is not None:
                self._ledger._require_owner()
            if indices is None:
                self._charge_all(norms, sigma, scale, active)
            else:
                self._charge_some(norms, sigma, scale, indices, active)
            self._steps += 1
        return active

    def _charge_all(self, norms, sigma, scale, active) -> None:
        if self._words is None:
            self._sweep(norms, scale, 0, active)
            return
        step, turn = self._steps + 1, 2 if self._ledger.state["turn"] == 1 else 1
        with self._words.keeping(step, norms):
            norms = self._words.kept(step)  # the caller's array may change from here on, the kept one does not
            checksum = self._sweep(norms, scale, turn, active, look=True)
            self._ledger.commit(self._state_after(step, turn, scale, checksum), self._entry(sigma, norms.size))
        self._sweep(norms, scale, turn, None)
        del norms
        self._words.settle()
        self._checksum = checksum

    def _sweep(self, norms, scale: float, turn: int, active, *, look=False) -> int:
        """Do a step over all records, or only look what would come of it: the checksum of the words, where they are
        kept."""
        top = self.clip if self.clip is not None else np.finfo(np.float64).max
        status, checksum, bad = _core.individual_charge(
            norms, scale, top, self._units.limit, self.sticky, turn, self._spent, None if look else self._spent,
            None if active is None else active.view(np.uint8), threads(self.n_threads), look,
        )  # fmt: skip
        if status:
            raise self._bad_norm(norms[bad], f"record {bad}")
        return checksum

    def _charge_some(self, norms, sigma, scale, indices, active) -> None:
        index, order = arrays.sorted_indices(indices, self.n_records)
        sorted_norms = norms if order is None else norms[order]
        if self._some.size < norms.size:
            self._some = np.empty(norms.size, np.int64)
        after, mask = self._some[: norms.size], active if order is None else np.empty(norms.size, np.bool_)
        top = self.clip if self.clip is not None else np.finfo(np.float64).max
        status, change, bad = 0, 0, 0
        if index.size:
            status, change, bad = _core.individual_charge_some(
                sorted_norms, index, scale, top, self._units.limit, self.sticky, self._spent, after, mask.view(np.uint8)
            )
        if status:
            raise self._bad_norm(sorted_norms[bad], f"record {index[bad]}")
        if order is not None:
            active[order] = mask
        if self._words is None:
            self._put(index, after)
            return
        checksum, step = (self._checksum + change) % 2**64, self._steps + 1
        with self._words.keeping(step, index, after):
            state = self._state_after(step, self._ledger.state["turn"], 0.0, checksum)
            self._ledger.commit(state, self._entry(sigma, index.size))
        self._put(index, after)
        self._words.settle()
        self._checksum = checksum

    def _put(self, index, after) -> None:
        if index.size:
            _core.individual_scatter(index, after, self._spent)

    def _entry(self, sigma: float, size: int) -> dict:
        return {"step": self._steps + 1, "sigma": sigma, "records": size}

    def _bad_norm(self, value, where: str) -> DomainError:
        limit = "a finite number" if self.clip is None else f"at most the promised clip {self.clip!r}"
        return DomainError(f"norms must be >= 0 and {limit}, got {float(value)!r} at {where}; nobody was charged")

    @property
    def steps(self) -> int:
        """Steps charged."""
        return self._steps

    def _look(self, indices) -> np.ndarray:
        if self._spent is None:
            raise StoreError(f"{self._ledger.path} is closed")
        words = self._spent if indices is None else self._spent[np.asarray(indices)]
        return words if self._words is None else words & ~TURN

    def spent_mu_upper(self, indices: Numbers | None = None) -> NDArray[np.float64]:
        """sqrt of the squares charged to each record (or to those of `indices`), rounded up. Private."""
        return self._units.all_mu_upper((self._look(indices) & ~DROPPED).astype(float))

    def left_mu_lower(self, indices: Numbers | None = None) -> NDArray[np.float64]:
        """The largest mu that each record may have now, rounded down: a norm clipped to left_mu_lower * sigma takes
        part in a last step that spends its budget. Private; it depends on past outputs and on the record alone."""
        left = np.maximum(self._units.limit - self._look(indices), 0).astype(float)
        # the cost of a norm is off by 19u, its product with sigma by 1: (1 - 32u)^2 covers both
        return self._units.divisor * np.sqrt(left) * (2.0**-self._units.half * (1 - 32 * U))

    def dropped(self, indices: Numbers | None = None) -> NDArray[np.bool_]:
        """Which records a sticky filter has dropped for good. Private."""
        return (self._look(indices) & DROPPED) != 0

    def epsilons_upper(self, delta: float, indices: Numbers | None = None) -> NDArray[np.float64]:
        """Upper bounds of eps(delta) of what was charged to each record: ex post, private, never above
        `epsilon_upper`. It is no guarantee under adaptive stopping other than by the filter."""
        from .gaussian import gdp_epsilons_upper

        return gdp_epsilons_upper(self.spent_mu_upper(indices), delta)

    def epsilon_upper(self, delta: float) -> float:
        """Certified upper bound of eps(delta) of everything the filter will ever allow: of `budget_mu`."""
        return units.epsilon_upper(self.budget_mu, delta)

    def close(self) -> None:
        """Release the files; the filter takes no more charges."""
        if self._ledger is not None:
            self._ledger.close()
            self._spent = None
            self._words.close()

    def __repr__(self) -> str:
        return f"IndividualGDPFilter({self.n_records}, budget_mu={self.budget_mu!r}, steps={self._steps})"


def _words_path(path: Path) -> Path:
    return path.with_name(path.name + ".words")
