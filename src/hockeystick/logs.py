"""Training logs: what ran, line by line, with what the log itself says against it.

A log names for every line, or every phase, how much noise there was and how batches were drawn. What is read of it is
`COLUMNS`; other columns are passed over, unless they are `LIKELY` one of these under another name. Everything that a
log says twice has to agree: a rate that is not batch over data set, a running number that leaves steps out, shuffled
batches or accumulated ones accounted as one Poisson sample are refused by name."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from .arguments import one_of
from .bound import DomainError
from .parquetrows import MAGIC, blocks
from .serial import brief
from .tally import BLOCK, Key, Order, Rows, Tally, allowed_noise, grouped, whole_numbers
from .textrows import Columns, raw_lines, text_of
from .what.allocation import random_allocation
from .what.batches import truncated_poisson_subsampled, without_replacement
from .what.mechanism import K_MAX, Mechanism, Run, count, gaussian, poisson_subsampled, real
from .what.pair import ADJACENCIES

if TYPE_CHECKING:
    from .types import Adjacency

COLUMNS = {
    "sigma": "noise multiplier: standard deviation of the noise / clipping norm",
    "q": "sampling rate; batch_size/dataset_size where both are there, else 1",
    "steps": "how many such steps; 1 if there is no such column",
    "sampler": "poisson, none (full batches), truncated_poisson, without_replacement or allocation",
    "dataset_size": "number of records",
    "batch_size": "expected number of records of a batch, the exact one without replacement",
    "max_batch": "largest batch of truncated_poisson",
    "accumulation": "batches of batch_size whose gradients are summed before noise is added; 1",
    "adjacency": "the neighbouring relation that the noise was made for",
    "divisor": "what a batch's sum is divided by: constant; the size that it happened to have is refused",
    "membership": "who was in a batch, and how many: secret; published is refused",
    "step": "running number of the step: what a line with this number leaves out is noticed",
}
WORDS = ("sampler", "adjacency", "divisor", "membership")

LIKELY = {
    "noise_multiplier": "sigma",
    "noise": "sigma",
    "sample_rate": "q",
    "sampling_rate": "q",
    "sampling_probability": "q",
    "rate": "q",
    "count": "steps",
    "num_steps": "steps",
    "n_steps": "steps",
    "repeat": "steps",
    "repeats": "steps",
    "sampling": "sampler",
    "sampling_method": "sampler",
    "n": "dataset_size",
    "num_records": "dataset_size",
    "num_examples": "dataset_size",
    "batch": "batch_size",
    "accumulation_steps": "accumulation",
    "gradient_accumulation_steps": "accumulation",
    "normaliser": "divisor",
    "normalizer": "divisor",
    "normalize_by": "divisor",
    "neighbouring_relation": "adjacency",
    "neighboring_relation": "adjacency",
    "iteration": "step",
    "global_step": "step",
}
"""Columns that are not passed over in silence: each may well be one that is read."""

SAMPLERS = {
    "poisson": "poisson",
    "poisson_sampling": "poisson",
    "none": "none",
    "full": "none",
    "full_batch": "none",
    "truncated": "truncated_poisson",
    "truncated_poisson": "truncated_poisson",
    "fixed_size": "without_replacement",
    "without_replacement": "without_replacement",
    "allocation": "allocation",
    "random_allocation": "allocation",
}
UNPROVED = {
    "shuffle": "batches of a shuffled pass are no Poisson samples, and their eps can be much larger",
    "with_replacement": "no proof is known here for draws with replacement",
    "cyclic": "cyclic batches are a run as a whole: hs.cyclic_poisson, not a log of steps",
    "balls_and_bins": "a bin that is kept for all epochs makes one step of them: hs.balls_and_bins, not a log of steps",
}
ALSO_UNPROVED = {
    "shuffled": "shuffle",
    "shuffling": "shuffle",
    "random_shuffle": "shuffle",
    "cyclic_poisson": "cyclic",
    "balls_in_bins": "balls_and_bins",
}

CONDITIONS = {
    "divisor": (
        ("constant", "expected", "expected_batch_size", "none"),
        "a batch of random size has to be divided by a public constant (C2 of hs.random_allocation)",
    ),
    "membership": (
        ("secret", "hidden"),
        "who was in a batch, and how many, has to stay secret (C4 of hs.random_allocation)",
    ),
}
"""Columns that say whether the proofs of samplers hold: the words for it, and what the others lack."""

RELATIONS = {
    "add_or_remove_one": "add_remove",
    "add_or_remove": "add_remove",
    "replace": "replace_one",
    "substitute": "replace_one",
    "replace_special": "zero_out",
}
"""Other names of adjacencies."""

RECENT_MAX = 1 << 16
"""Lines remembered as parsed, so that a repeated line costs one look-up; about 10 MB when full."""


class Log(NamedTuple):
    """What a log says: the run, its steps in order where this was wanted, lines and columns."""

    run: Run
    order: Order | None
    lines: int
    columns: tuple[str, ...]
    ignored: tuple[str, ...]
    comments: int


def read_log(
    source: str | os.PathLike[str] | BinaryIO,
    name: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    adjacency: Adjacency = "add_remove",
    allow_unterminated: bool = False,
    allow_empty: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Run:
    """The run that a training log describes, read as a stream in memory proportional to distinct steps.

    CSV whose first line names the columns, in any order, separated by commas, semicolons or tabs; JSON lines, one
    object each with these as keys; or a Parquet file with these columns (extra `parquet`); told apart by the first line
    that says something. Text is UTF-8; a byte order mark, CRLF line ends, blank lines, comments (lines that begin with
    #) and other columns are passed over. Millions of distinct Gaussian steps take 8 to 24 bytes each, and no object.

    sigma
        Noise multiplier: standard deviation of the noise / clipping norm.
    q
        Poisson sampling rate; batch_size/dataset_size where there is none, else 1.
    steps
        How many such steps a line stands for; 1 where there is no such column.
    sampler
        poisson, none, truncated_poisson (needs dataset_size, max_batch), without_replacement (needs dataset_size,
        batch_size), allocation (each record in one step of every epoch, drawn afresh; q is one over the steps of an
        epoch; whole epochs of one noise); others are refused with the reason.
    divisor, membership
        Whether what the proof of a sampler needs was kept: sums divided by a constant, batches kept secret. A log that
        says otherwise is refused.
    dataset_size, batch_size, accumulation, adjacency, step
        What the log says besides: has to agree with q, with the number of steps and with `adjacency`.

    Parameters
    ----------
    source : path or binary file
        The log.
    name : str, optional
        What messages call the log; its path if not given.
    columns : mapping, optional
        From the names above to the column that holds them: {"sigma": "noise_multiplier", "q": "sample_rate"}. An empty
        name passes over that column.
    adjacency : "add_remove", "replace_one" or "zero_out"
        The relation that the run will be asked about. A log that names another one is refused.
    allow_unterminated : bool, default False
        Take a last line without a line end. It is refused by default: a log cut short by a crash may end in
        "1.0,0.01,1" where "1.0,0.01,1000" was written.
    allow_empty : bool, default False
        Take a log without any step, as the empty run.
    progress : callable, optional
        progress(done, total), called now and then of a long log whose size is known: in bytes, of Parquet in rows.

    Returns
    -------
    Run
        Equal steps merged, in order of first appearance; more than 65,536 distinct ones as `compose_arrays` has them.
        That the log tells what ran is not checked, nor can it be.

    Raises
    ------
    DomainError
        "name:line: what is wrong" at the first line, or row of a Parquet file, that is malformed or contradicts itself,
        or if the log holds no step.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import io
    >>> import hockeystick as hs
    >>> lines = ["step,noise_multiplier,batch_size,dataset_size,loss", "1,1.1,600,60000,2.3", "2,1.1,600,60000,2.1", ""]
    >>> log = io.BytesIO("\\n".join(lines).encode())
    >>> run = hs.read_log(log, columns={"sigma": "noise_multiplier"})
    >>> run.steps
    2
    """
    allowed: Any = {"allow_unterminated": allow_unterminated, "allow_empty": allow_empty, "progress": progress}
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as stream:
            return scan(stream, os.fspath(source) if name is None else name, columns, adjacency, **allowed).run
    return scan(source, name or str(getattr(source, "name", "log")), columns, adjacency, **allowed).run


def scan(
    stream: BinaryIO,
    name: str,
    columns: Mapping[str, str] | None = None,
    adjacency: str = "add_remove",
    *,
    head: Sequence[bytes] = (),
    allow_unterminated: bool = False,
    allow_empty: bool = False,
    ordered: bool = False,
    listed: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Log:
    """The same of a stream whose first lines `head` were read, with what else the log says; `ordered`: with the order
    of steps; `listed`: whether a list of them is wanted, however many they are."""
    one_of("adjacency", adjacency, ADJACENCIES)
    reader = _Reader(columns, adjacency, ordered, listed or adjacency == "replace_one")
    first = list(head) or list(islice(raw_lines(stream), 1))
    try:
        if first and first[0].startswith(MAGIC):
            reader.read_tables(stream, progress)
        else:
            reader.read_lines(chain(first, raw_lines(stream)), allow_unterminated, _told(stream, progress))
        return reader.log(name, allow_empty)
    except DomainError as error:
        raise error if str(error).startswith(f"{name}:") else DomainError(f"{name}:{reader.lines}: {error}") from None


def _told(stream: BinaryIO, progress: Callable[[int, int], object] | None) -> Callable[[int], object]:
    """What is told of bytes read, where the size of the stream is known."""
    try:
        found = os.fstat(stream.fileno())
        size = found.st_size if stat.S_ISREG(found.st_mode) else 0
    except (OSError, AttributeError):
        size = 0
    return lambda done: progress(min(done, size), size) if progress and size else None


class _Reader:
    """What was read of one log so far: how often every step ran, and what the log says besides."""

    def __init__(self, renamed: Mapping[str, str] | None, adjacency: str, ordered: bool = False, listed: bool = True):
        self.columns = Columns(COLUMNS, "sigma", words=WORDS, likely=LIKELY, renamed=renamed)
        self.adjacency = adjacency
        self.lines = 0
        self.tally = Tally(listed)
        self.rows = Rows() if ordered else None
        self.last: tuple[int, int] | None = None  # number and count of the last line
        self.reads = [True, True]  # whether numbers may stand for the first, the last step of a line

    def log(self, name: str, allow_empty: bool) -> Log:
        """What was read."""
        counts, seen = self.tally.counts, self.columns
        epochs = [key for key in counts if key[2] == "allocation"]
        if len(epochs) > 1:
            raise DomainError(
                f"{name}: steps by allocation of different noise or rates, which may share an epoch: "
                f"{_step(*epochs[0])!r}, {_step(*epochs[1])!r}; hs.random_allocation makes epochs one by one"
            )
        counts.update({key: _epochs(key, counts[key]) for key in epochs})
        run = self.tally.run(_step)
        if not run.steps and not allow_empty:
            raise DomainError(
                f"{name}: empty log, no step in {self.lines} lines; expected a CSV header (sigma,q,steps) and rows, or "
                "JSON lines (--allow-empty takes it as a run without steps)"
            )
        order = self.rows.order(_step, _epochs) if self.rows else None
        return Log(run, order, self.lines, tuple(seen.seen), tuple(seen.ignored), seen.comments)

    def read_lines(self, lines: Iterator[bytes], allow_unterminated: bool, told: Callable[[int], object]) -> None:
        """Read a CSV table or JSON lines."""
        recent: dict[bytes, tuple[Key, int]] = {}
        done = said = 0
        while block := list(islice(lines, BLOCK if self.columns.columns is not None else 1)):
            done += sum(map(len, block))
            alike = "step" not in self.columns.seen and len(set(block)) * 8 < len(block)
            found = None if alike or len(block) == 1 else self.columns.table(block)
            if found and self.many(found):
                self.lines += len(block)
            else:
                for raw in block:
                    self.lines += 1
                    self._line(raw, recent, allow_unterminated)
            if len(block) == BLOCK or said:
                said = done
                told(done)

    def _line(self, raw: bytes, recent: dict[bytes, tuple[Key, int]], allow_unterminated: bool) -> None:
        """Record what one line says; `recent` are lines seen before."""
        known = recent.get(raw)
        if known is None:
            text = text_of(raw, allow_unterminated)
            row = self.columns.row(text) if text else None
            if row is None:
                return
            known = self.one(row)
            if "step" not in self.columns.seen:
                if len(recent) == RECENT_MAX:
                    recent.clear()
                recent[raw] = known
        self._record(*known)

    def read_tables(self, stream: BinaryIO, progress: Callable[[int, int], object] | None) -> None:
        """Read a Parquet file, whose rows are its lines."""
        for size, found, rows in blocks(stream, self.columns, BLOCK):
            if found and self.many(found):
                self.lines += len(found["sigma"])
            else:
                for row in rows():
                    self.lines += 1
                    self._record(*self.one(self.columns.of_values(row)))
            if progress and size > BLOCK:
                progress(self.lines, size)

    def one(self, row: dict[str, Any]) -> tuple[Key, int]:
        """(key, count) of a line."""
        n = _whole("steps", row.get("steps", 1), 1)
        if "step" in row:
            self._follow(_whole("step", row["step"], 0), n)
        if "adjacency" in row:
            self._agree(row["adjacency"])
        key = _key(row)
        if key not in self.tally.counts:
            _step(*key)
        return key, n

    def _record(self, key: Key, n: int) -> None:
        total = self.tally.add(key, n)
        if total > K_MAX:
            count(f"total of {_step(*key)!r}", total)
        if self.rows:
            self.rows.add(key, n)

    def many(self, found: dict[str, Any]) -> bool:
        """Record lines as columns; False, with nothing recorded, where one of them may be none that `one` takes."""
        sigma, size = found["sigma"], len(found["sigma"])
        n = whole_numbers(found["steps"], 1) if "steps" in found else np.ones(size, np.int64)
        if n is None or not allowed_noise(sigma):
            return False
        last, reads = self.last, self.reads
        if "step" in found:
            index = whole_numbers(found["step"], 0)
            if index is None:
                return False
            reads = self._reads(int(index[0]), int(n[0]))
            reads = [
                reads[0] and bool(np.all(np.diff(index) == n[:-1])),
                reads[1] and bool(np.all(np.diff(index) == n[1:])),
            ]
            if not any(reads):
                return False
            last = int(index[-1]), int(n[-1])
        rest = {name: column for name, column in found.items() if name not in ("sigma", "steps", "step")}
        first, which = grouped(size, list(rest.values()))
        try:
            keys = [self._kind(float(sigma[i]), {name: column[i] for name, column in rest.items()}) for i in first]
        except DomainError:
            return False
        if not self.tally.add_many(keys, which, sigma, n):
            return False
        if self.rows:
            self.rows.add_many(keys, which, sigma, n)
        self.last, self.reads = last, reads
        return True

    def _kind(self, sigma: float, row: dict[str, Any]) -> Key:
        """The key of a line of a table."""
        said = {name: value if name in WORDS else float(value) for name, value in row.items() if value != ""}
        if "adjacency" in said:
            self._agree(row["adjacency"])
        key = _key({"sigma": sigma, **said})
        _step(*key)
        return key

    def _reads(self, index: int, n: int) -> list[bool]:
        """`reads` after one more line."""
        if self.last is None:
            return [index in (0, 1), index in (n - 1, n)]
        before, ran = self.last
        return [self.reads[0] and index == before + ran, self.reads[1] and index == before + n]

    def _follow(self, index: int, n: int) -> None:
        """DomainError where the running numbers show that steps are missing: index is that of a line's first step,
        counted from 0 or 1, or of its last."""
        where = f"the log starts at step {index}" if self.last is None else f"step goes from {self.last[0]} to {index}"
        self.reads = self._reads(index, n)
        self.last = index, n
        if not any(self.reads):
            raise DomainError(
                f"{where}, and the line counts {n}: steps are missing in the log, or column 'step' is something else "
                "(--columns step= passes over it, --columns steps=... names the column that counts)"
            )

    def _agree(self, word: str) -> None:
        said = _word(word)
        said = RELATIONS.get(said, said)
        if said != self.adjacency:
            raise DomainError(
                f"the log says adjacency {brief(word)}, asked is {self.adjacency!r}: "
                + (f"ask with adjacency {said!r}" if said in ADJACENCIES else f"allowed are {', '.join(ADJACENCIES)}")
            )


def _word(text: str) -> str:
    return text.strip().lower().replace("-", "_").replace(" ", "_")


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # tables often write whole numbers as 100.0
    return count(name, value, least)


def _key(row: dict[str, Any]) -> tuple[float, float, str, int, int]:
    """What tells one step from another: sigma, q, sampler, and the sizes that its sampler needs."""
    sigma, q = real("sigma", row["sigma"], "> 0"), _rate(row)
    sampler = "poisson"
    if "sampler" in row:
        said = _word(row["sampler"])
        why = UNPROVED.get(ALSO_UNPROVED.get(said, said))
        if why or said not in SAMPLERS:
            allowed = ", ".join(dict.fromkeys(SAMPLERS.values()))
            raise DomainError(
                f"sampler {brief(row['sampler'])} has no certified account: {why or 'unknown'}; allowed: {allowed}"
            )
        sampler = SAMPLERS[said]
    for name, (held, why) in CONDITIONS.items():
        if name in row and sampler != "none" and _word(row[name]) not in held:
            raise DomainError(f"{name} {brief(row[name])} has no certified account: {why}; allowed: {', '.join(held)}")
    if sampler == "none" and q != 1:
        raise DomainError(
            f"sampler 'none' uses every record, but q={q!r}; leave out q, or name the sampler that drew batches"
        )
    if sampler in ("poisson", "none"):
        return sigma, q, "poisson", 0, 0
    if sampler == "allocation":
        t = round(1 / q)
        if not abs(q * t - 1) <= 1e-6:
            raise DomainError(
                f"sampler 'allocation' has epochs of a whole number of steps: q must be 1/steps, got {q!r}"
                f" (1/{1 / q:g})"
            )
        return sigma, 1 / t, sampler, t, 0
    limit = "batch_size" if sampler == "without_replacement" else "max_batch"
    for name in ("dataset_size", limit):
        if name not in row:
            raise DomainError(f"sampler {sampler!r} needs a column {name}")
    if row.get("accumulation", 1) != 1:
        raise DomainError(
            f"sampler {sampler!r} with accumulation has no proof here: log every accumulated batch as one"
        )
    q = 1.0 if sampler == "without_replacement" else q
    return sigma, q, sampler, _whole("dataset_size", row["dataset_size"], 1), _whole(limit, row[limit], 1)


def _rate(row: dict[str, Any]) -> float:
    """The sampling rate, which must be accumulation * batch_size/dataset_size where these are there: within half a
    record and 0.1%, for an expected batch size is often a rounded one."""
    many = _whole("accumulation", row.get("accumulation", 1), 1)
    q = real("q", row["q"], "in (0, 1]") if "q" in row else None
    if "batch_size" in row and "dataset_size" in row:
        size = _whole("dataset_size", row["dataset_size"], 1)
        one = real("batch_size", row["batch_size"], "> 0")
        if not 0 < one * many <= size:
            raise DomainError(
                f"batch_size must be > 0 and with accumulation at most dataset_size={size}, got {one * many:g}"
            )
        if q is None:
            return min(1.0, math.nextafter(one * many / size, math.inf))
        if not abs(q * size - one * many) <= 0.5 + 1e-3 * one * many:
            if many > 1 and abs(q * size - one) <= 0.5 + 1e-3 * one:
                raise DomainError(
                    f"q={q!r} is the rate of one batch_size/dataset_size, but {many} are accumulated in a step: "
                    f"q must be about {one * many / size:.6g}"
                )
            raise DomainError(
                f"q={q!r} is not batch_size/dataset_size={one:g}/{size}"
                + (f" times accumulation={many}" if many > 1 else "")
                + f"={one * many / size:.6g}; correct one of them (--columns batch_size= passes over that column)"
            )
    elif many != 1:
        raise DomainError(
            f"accumulation={many} without batch_size and dataset_size does not tell whether q is the rate of one batch"
            f" or of all {many}; give both columns (--columns accumulation= passes over it: q is that of all)"
        )
    return 1.0 if q is None else q


def _epochs(key: Key, n: int) -> int:
    """How many times `_step` of a key ran in n steps of a log."""
    if key[2] != "allocation":
        return n
    whole, more = divmod(n, key[3])
    if more:
        raise DomainError(
            f"{n} steps by allocation are no whole number of epochs of {key[3]}: log the steps of the last one that did"
            " not run as well, they can only add to what is revealed"
        )
    return whole


def _step(sigma: float, q: float, sampler: str, dataset_size: int, batch: int) -> Mechanism:
    noise = gaussian(sigma)
    if sampler == "allocation":
        return random_allocation(noise, dataset_size)
    if sampler == "truncated_poisson":
        return truncated_poisson_subsampled(noise, q, dataset_size=dataset_size, max_batch=batch)
    if sampler == "without_replacement":
        return without_replacement(noise, dataset_size=dataset_size, max_batch=batch)
    return poisson_subsampled(noise, q)
