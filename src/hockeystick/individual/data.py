"""The words of an individual filter: in memory, or in a memory-mapped file beside its ledger.

File `<path>.words`: a header of 4096 bytes (magic, version, number of records, identity, CRC-32), then the words, 8
bytes a record. File `<path>.step`: a header of 4096 bytes (magic, identity, number of a step, what follows, CRC-32) and
what it takes to do the last step again: the norms of a step over all records, or the places and new words of one over
some.

A step is kept in `.step` first and becomes acknowledged by the ledger's transaction; only then the words change, in
place, and only once they are on disk the next step is written over it. The ledger has the checksum of what must come
out: opening does a kept step again if it is the ledger's last and the words are not that. Where it was done already
this changes nothing: words are put in twice, and a step over all turns a bit of every word that it has been done to
(individual.c). So whatever instant a process dies at, words and kept step are the last acknowledged state. A step costs
three waits for the disk: for itself, for its acknowledgement, for the words. Files that keep their sizes save each the
file system's own journal.

Disk: 8 bytes a record, and while the filter is open 4 or 8 more, the norms of its last step as they were given (16 a
record of a step over some). That is the least for a step that is all or nothing: until it is acknowledged the old words
must be on disk, afterwards the new ones, and what leads from one to the other is the norms. A disk too full for them
refuses the step; the words were reserved at first. Two copies of the words would take 16 always, and half of the time
(benchmarks/bench_individual.py --disk)."""

from __future__ import annotations

import errno
import mmap
import os
import struct
import sys
import weakref
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from .. import _core
from ..bound import HockeystickError
from ..store import StoreError

MAGIC = b"hockeystick\0wrd\0"
MAGIC_STEP = b"hockeystick\0stp\0"
VERSION = 1
HEADER = 4096
CHUNK = 1 << 26
_LAYOUT = struct.Struct("<16sIQ16s")
_STEP = struct.Struct("<16s16sQQI")
_NORMS = {4: np.float32, 8: np.float64}
_PLACES = 16


class Words:
    """n words in a file, and the step that is being done to them."""

    def __init__(self, path: Path, n: int, identity: bytes, stream, sync: bool):
        self.path, self.identity, self.sync, self._n = path, identity, sync, n
        self._map = mmap.mmap(stream.fileno(), HEADER + 8 * n)
        self._words_file = os.dup(stream.fileno())
        self._release = weakref.finalize(self, os.close, self._words_file)
        self.array = np.frombuffer(self._map, np.int64, n, HEADER)
        self._undone = self._unsettled = False
        self._pid = os.getpid()

    @classmethod
    def create(cls, path: Path, n: int, sync: bool) -> Words:
        """A new file of zeros, its blocks reserved so that a full disk is met now. Raises StoreError."""
        identity = os.urandom(16)
        head = _LAYOUT.pack(MAGIC, VERSION, n, identity)
        try:
            with open(path, "xb+") as stream:
                stream.write(head + struct.pack("<I", zlib.crc32(head)))
                _reserve(stream.fileno(), HEADER + 8 * n)
                stream.flush()
                os.fsync(stream.fileno())
                with open(_step_path(path), "xb") as step:
                    step.write(bytes(HEADER))
                return cls(path, n, identity, stream, sync)
        except FileExistsError as error:
            if error.filename != str(path):
                path.unlink()
            raise StoreError(f"{error.filename} exists; remove it, or open the filter that it belongs to") from None
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StoreError(f"cannot create {path} ({8 * n:.3g} bytes): {error.strerror}") from None

    @staticmethod
    def remove(path: Path) -> None:
        """Both files."""
        path.unlink(missing_ok=True)
        _step_path(path).unlink(missing_ok=True)

    @classmethod
    def open(cls, path: Path, n: int, identity: bytes, sync: bool) -> Words:
        """The file at `path`. StoreError if it is missing, foreign, truncated, or of another filter; it is left as it
        is."""
        try:
            with open(path, "rb+") as stream:
                head = stream.read(_LAYOUT.size + 4)
                _check_head(path, head, n, identity)
                size = os.fstat(stream.fileno()).st_size
                if size != HEADER + 8 * n:
                    raise StoreError(
                        f"{path} is truncated: {size} bytes, expected {HEADER + 8 * n}; it is left as it is"
                    )
                self = cls(path, n, identity, stream, sync)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"cannot open {path}: {error.strerror}") from None
        self._unsettled = True  # the words may need the kept step until `settle` says otherwise
        return self

    @contextmanager
    def keeping(self, step: int, *parts: np.ndarray):
        """Keep a step, its norms or its places and words, for the body to acknowledge it; let it go if the body
        refuses.

        Afterwards the words must be changed and `settle` called; until then no other step is taken. Raises StoreError.
        """
        if self._undone:
            raise StoreError(
                f"{self.path}: a step was interrupted; close the filter and open it again. Nothing was charged"
            )
        if self._unsettled:
            self._force()
        self._undone = True
        try:
            self._keep(step, parts)
            yield
        except HockeystickError:
            self._undone = False
            with suppress(OSError):  # what stays in the file belongs to no acknowledged step
                self._let_go()
            raise

    def _keep(self, step: int, parts) -> None:
        kind = _PLACES if len(parts) == 2 else parts[0].itemsize
        head = _STEP.pack(MAGIC_STEP, self.identity, step, parts[0].size, kind)
        try:
            with open(_step_path(self.path), "rb+", buffering=0) as stream:
                for part in (head + struct.pack("<I", zlib.crc32(head)).ljust(HEADER - len(head), b"\0"), *parts):
                    view = memoryview(part if isinstance(part, bytes) else part.view(np.uint8))
                    while view:
                        view = view[stream.write(view[:CHUNK]) :]
                if self.sync:
                    _fdatasync(stream.fileno())
        except OSError as error:
            raise self._failure(error) from None

    def kept(self, step: int):
        """The norms of step number `step`, or its (places, words), or None if another step or none is kept. StoreError
        if the file is foreign."""
        try:
            with open(_step_path(self.path), "rb") as stream:
                head, size = stream.read(_STEP.size + 4), os.fstat(stream.fileno()).st_size
                if head.strip(b"\0") and not head.startswith(MAGIC_STEP):
                    raise StoreError(f"{_step_path(self.path)} is not a step of hockeystick; it is left as it is")
                if len(head) < _STEP.size + 4 or struct.unpack("<I", head[_STEP.size :])[0] != zlib.crc32(
                    head[: _STEP.size]
                ):
                    return None
                _, identity, number, count, kind = _STEP.unpack(head[: _STEP.size])
                if (identity, number) != (self.identity, step) or size < HEADER + kind * count:
                    return None
                content = mmap.mmap(stream.fileno(), HEADER + kind * count, access=mmap.ACCESS_READ)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"cannot open {_step_path(self.path)}: {error.strerror}") from None
        if kind in _NORMS:
            return np.frombuffer(content, _NORMS[kind], count, HEADER)
        return np.frombuffer(content, np.int64, 2 * count, HEADER).reshape(2, count)

    def settle(self) -> None:
        """The kept step has been done to the words: force them to disk. If that fails, the next step tries again: this
        one is acknowledged and stays kept."""
        self._undone, self._unsettled = False, True
        with suppress(StoreError):
            self._force()

    def _force(self) -> None:
        try:
            if self.sync and sys.platform == "linux":
                _fdatasync(self._words_file)  # this writes mapped pages as well: there is one page cache
            elif self.sync:
                self._map.flush()
            self._unsettled = False
        except OSError as error:
            raise self._failure(error) from None

    def _let_go(self) -> None:
        # not to 0: ext4 would then write the next step out when it is closed
        os.truncate(_step_path(self.path), HEADER)

    def _failure(self, error: OSError) -> StoreError:
        return StoreError(f"{self.path}: {error.strerror}; nothing was charged, the last good state is on file")

    def close(self) -> None:
        """Let go of the last step, unless the words still need it, and of the map."""
        if self.array is not None and not (self._undone or self._unsettled) and self._pid == os.getpid():
            with suppress(OSError):
                self._let_go()
        self.array = None  # type: ignore[assignment]
        self._release()
        try:
            self._map.close()
        except BufferError:  # an array of the caller still looks into it; it goes with that
            pass


_fdatasync = getattr(os, "fdatasync", os.fsync)


def _step_path(path: Path) -> Path:
    return path.with_suffix(".step")


def _reserve(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    zeros = bytes(1 << 20)  # elsewhere a file may have holes: write it all
    os.lseek(descriptor, 0, os.SEEK_END)
    while (left := size - os.fstat(descriptor).st_size) > 0:
        if os.write(descriptor, zeros[:left]) == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _check_head(path: Path, head: bytes, n: int, identity: bytes) -> None:
    if len(head) < _LAYOUT.size + 4 or not head.startswith(MAGIC):
        raise StoreError(f"{path} is not a file of words of hockeystick; it is left as it is")
    _, version, records, found = _LAYOUT.unpack(head[: _LAYOUT.size])
    if struct.unpack("<I", head[_LAYOUT.size :])[0] != zlib.crc32(head[: _LAYOUT.size]):
        raise StoreError(f"{path} has a damaged header (checksum); it is left as it is")
    if version != VERSION:
        raise StoreError(f"{path} has version {version}; this release reads {VERSION}")
    if found != identity:
        raise StoreError(f"{path} belongs to another filter; it is left as it is")
    if records != n:
        raise StoreError(f"{path} holds {records} records, its ledger says {n}; it is left as it is")


def checksum(words: np.ndarray, limit: int, n_threads: int) -> int | None:
    """The checksum of all words, or None if one of them is no state of a record."""
    status, total = _core.individual_checksum(words, limit, n_threads)
    return total if status == 0 else None
