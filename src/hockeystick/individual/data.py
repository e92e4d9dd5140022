"""The words of an individual filter: in memory, or in a memory-mapped file beside its ledger.

File `<path>.words`: a header of 4096 bytes (magic, version, number of records, identity, CRC-32), then two copies of
the words, 8 bytes a record each. The ledger says which copy is good, and its checksum.

A step over all records is computed from the good copy into the other one, forced to disk, and becomes good by the
ledger's transaction. A step over some records goes to the ledger first, as the new words and their places, and then
into the good copy; opening the file puts them there again, which changes nothing if they were there. So whatever
instant a process dies at, the good copy with the ledger's last places is the last acknowledged state.

Two copies, not one: until a step over all records is acknowledged the old words must be on disk, afterwards the new ones, and
what leads from one to the other is the step's norms. So a step that is all or nothing needs them on disk as well, 4 bytes a
record at least (float32, written and forced before the words may change: half as many writes again) and 8 in general: 12 to 16
bytes a record, against 16 here. Both copies are reserved when the file is made, so that a full disk is met then.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import zlib
from pathlib import Path

import numpy as np

from .. import _core
from .store import StoreError

MAGIC = b"hockeystick\0wrd\0"
VERSION = 1
HEADER = 4096
_LAYOUT = struct.Struct("<16sIQ16s")


class Words:
    """Two copies of n words in a file. `good` is the copy that counts, `other` the one to be written."""

    def __init__(self, path: Path, n: int, identity: bytes, stream, which: int, sync: bool):
        self.path, self.identity, self.sync, self.which, self._n = path, identity, sync, which, n
        self._map = mmap.mmap(stream.fileno(), HEADER + 2 * _copy_bytes(n))
        self._copies = [np.frombuffer(self._map, np.int64, n, HEADER + i * _copy_bytes(n)) for i in range(2)]

    @classmethod
    def create(cls, path: Path, n: int, sync: bool) -> Words:
        """A new file of zeros, its blocks reserved so that a full disk is met now. Raises StoreError."""
        identity = os.urandom(16)
        head = _LAYOUT.pack(MAGIC, VERSION, n, identity)
        try:
            with open(path, "xb+") as stream:
                stream.write(head + struct.pack("<I", zlib.crc32(head)))
                _reserve(stream.fileno(), HEADER + 2 * _copy_bytes(n))
                stream.flush()
                os.fsync(stream.fileno())
                return cls(path, n, identity, stream, 0, sync)
        except FileExistsError:
            raise StoreError(f"{path} exists; remove it, or open the filter that it belongs to") from None
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StoreError(f"cannot create {path} ({2 * _copy_bytes(n):.3g} bytes): {error.strerror}") from None

    @classmethod
    def open(cls, path: Path, n: int, identity: bytes, which: int, sync: bool) -> Words:
        """The file at `path`. StoreError if it is missing, foreign, truncated, or of another filter; it is left as it is."""
        try:
            with open(path, "rb+") as stream:
                head = stream.read(_LAYOUT.size + 4)
                _check_head(path, head, n, identity)
                size = os.fstat(stream.fileno()).st_size
                if size != HEADER + 2 * _copy_bytes(n):
                    raise StoreError(
                        f"{path} is truncated: {size} bytes, expected {HEADER + 2 * _copy_bytes(n)}; it is left as it is"
                    )
                return cls(path, n, identity, stream, which, sync)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"cannot open {path}: {error.strerror}") from None

    @property
    def good(self) -> np.ndarray:
        return self._copies[self.which]

    @property
    def other(self) -> np.ndarray:
        return self._copies[1 - self.which]

    def flush(self, which: int) -> None:
        """Force a copy to disk, if asked to be safe against a loss of power. Raises StoreError."""
        if not self.sync:
            return
        try:
            self._map.flush(HEADER + which * _copy_bytes(self._n), _copy_bytes(self._n))
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}; nothing was charged, the last good state is on file") from None

    def close(self) -> None:
        self._copies = []
        try:
            self._map.close()
        except BufferError:  # an array of the caller still looks into it; it goes with that
            pass


def _copy_bytes(n: int) -> int:
    return (8 * n + HEADER - 1) // HEADER * HEADER


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
