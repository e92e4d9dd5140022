"""The ledger of an accountant: every distinct step with its count, in one file of state (store.py) that processes
share.

A row holds a step as JSON (serial.py), its count, the revision at which it changed last, and a CRC-32 of these; the sum
of the latter is chained into the manifest, whose state is the revision and the total of all counts. Recording is one
transaction, begun by whoever gets the lock first: it reads what others have changed since, so that a limit is held
against all that is recorded, and writes new counts. A reader takes the rows whose revision it has not seen.

Connections are closed before a process forks and opened again on both sides: what a child inherits of one would be
taken for locks that it does not hold."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import uuid
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from . import store
from .bound import DomainError
from .serial import from_json, to_json
from .store import Manifest, StoreError
from .what.mechanism import Mechanism

KIND = "accountant"
PATIENCE = 60.0
"""Seconds that a step waits for others: a limit is decided while the file is locked."""

LOOK = 2.0
"""Seconds after which a step that waits looks whether someone pressed Control-C."""

LOCKED = "is locked by another process"

_STEPS = """CREATE TABLE steps (id INTEGER PRIMARY KEY, step TEXT NOT NULL, count INTEGER NOT NULL,
                    revision INTEGER NOT NULL, checksum INTEGER NOT NULL);
            CREATE INDEX latest ON steps (revision)"""
_ROWS = "SELECT id, step, count, revision, checksum FROM steps"


Keep = Callable[[dict[Mechanism, int]], None]


class StepLedger:
    """An open ledger. `parameters`: as created. Its user holds `lock` around every call and has the counts: `keep` is
    told of every one that was read or written."""

    def __init__(self, path: Path, sync: bool, lock: threading.Lock):
        self.path, self.lock = path, lock
        self.parameters: dict[str, Any] = {}
        self._ids: dict[Mechanism, int] = {}
        self._seen = -1  # the last revision whose rows were taken
        self._sync, self._closed = sync, False
        self._busy = 0  # the thread that records
        self._file, self._pid = _identity(path), 0
        self._connection: sqlite3.Connection | None = None
        self._release: Callable[[], Any] | None = None
        _LIVE.add(self)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], parameters: dict[str, Any], sync: bool, lock: threading.Lock
    ) -> StepLedger:
        """The ledger at `path`, a new one with these parameters if there is none.

        Raises
        ------
        StoreError
            If the file is foreign, newer, of another kind or corrupted, and is left as it is; or cannot be created.
        """
        path = Path(path).absolute()
        if not path.exists():
            _create(path, Manifest(KIND, parameters, {"revision": 0, "steps": 0}, 0), sync)
        self = cls(path, sync, lock)
        for attempt in (1, 2, 3):  # a file that another process is just writing may look damaged once
            try:
                store.require_ours(path)
                with store.refusing(path, LOCKED), store.looking(path, LOOK) as connection:
                    self.parameters = self._whole(connection).parameters
                break
            except StoreError:
                if attempt == 3:
                    raise
                time.sleep(0.02)
        return self

    def _whole(self, connection: sqlite3.Connection) -> Manifest:
        """The manifest, once every row was held against it."""
        with _one_moment(connection):
            manifest = store.require_whole(self.path, connection, KIND)
            rows = connection.execute(_ROWS).fetchall()
        chain, total = sum(row[4] for row in rows) % 2**32, sum(row[2] for row in rows)
        if (chain, total) != (manifest.chain, manifest.state["steps"]) or any(_checksum(row) != row[4] for row in rows):
            raise self._corrupted()
        return manifest

    def _corrupted(self) -> StoreError:
        return StoreError(f"{self.path} is corrupted (checksum of the steps); it is left as it is")

    def stale(self) -> bool:
        """Whether the file holds counts that were not told."""
        with self._reading() as connection:
            return Manifest.read(self.path, connection, KIND).state["revision"] != self._seen

    def refresh(self, keep: Keep) -> None:
        """Tell what is new."""
        with self._reading() as connection:
            self._take(connection, keep)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that reads what is on file at one moment; nothing is written for it where nothing can be."""
        with store.refusing(self.path, LOCKED), ExitStack() as stack:
            if self._writable():
                connection = self._connected()
            else:
                self._require_open()
                connection = stack.enter_context(store.looking(self.path, LOOK))
            stack.enter_context(_one_moment(connection))
            yield connection

    def _writable(self) -> bool:
        return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def _take(self, connection: sqlite3.Connection, keep: Keep) -> Manifest:
        manifest = Manifest.read(self.path, connection, KIND)
        if manifest.state["revision"] != self._seen:
            rows = connection.execute(f"{_ROWS} WHERE revision > ?", (self._seen,)).fetchall()
            keep({self._step(row): row[2] for row in sorted(rows)})
            self._seen = manifest.state["revision"]  # last: if something comes between, the rows are taken again
        return manifest

    def _step(self, row: tuple[int, str, int, int, int]) -> Mechanism:
        if _checksum(row) != row[4]:
            raise self._corrupted()
        try:
            step = from_json(json.loads(row[1]))
        except DomainError as error:
            raise StoreError(f"{self.path}: {error}") from None
        if self._ids.setdefault(step, row[0]) != row[0]:
            raise StoreError(f"{self.path} has two names for one step, {step!r}: register it under one of them only")
        return step

    @contextmanager
    def recording(self, keep: Keep) -> Iterator[Callable[[dict[Mechanism, int]], None]]:
        """A transaction that nobody comes between. Inside, all was told; what is yielded takes new counts of steps,
        which are told once they are on file.

        Raises StoreError if the file cannot take them, DomainError where a step has no JSON form; nothing is recorded
        then."""
        if self.path.exists() and not self._writable():
            raise StoreError(f"{self.path} or its folder is read-only; nothing was charged")
        connection = self._connected()
        self._busy = threading.get_ident()
        try:
            self._begin(connection)
            recorded: dict[Mechanism, tuple[int, int]] = {}  # identity and count
            with store.committing(self.path, connection):
                manifest = self._take(connection, keep)
                yield lambda counts: recorded.update(self._write(connection, manifest, counts))
            keep({step: n for step, (_, n) in recorded.items()})
            self._ids.update((step, identity) for step, (identity, _) in recorded.items())
            self._seen = manifest.state["revision"] + bool(recorded)
        finally:
            self._busy = 0

    def _write(self, connection: sqlite3.Connection, manifest: Manifest, counts: dict[Mechanism, int]) -> dict:
        execute, revision = connection.execute, manifest.state["revision"] + 1
        new = execute("SELECT coalesce(max(id), 0) + 1 FROM steps").fetchone()[0]
        recorded, chain, steps = {}, manifest.chain, manifest.state["steps"]
        for step, n in counts.items():
            identity = self._ids.get(step)
            if identity is None:
                identity, new = new, new + 1
                text = json.dumps(to_json(step))
            else:
                text, before, old = execute(
                    "SELECT step, count, checksum FROM steps WHERE id = ?", (identity,)
                ).fetchone()
                chain, steps = chain - old, steps - before
            checksum = _checksum((identity, text, n, revision))
            execute("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?)", (identity, text, n, revision, checksum))
            chain, steps = chain + checksum, steps + n
            recorded[step] = identity, n
        manifest._replace(state={"revision": revision, "steps": steps}, chain=chain % 2**32).update(connection)
        return recorded

    def _begin(self, connection: sqlite3.Connection) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.Error as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise StoreError(
                        f"{self.path}: {error}; nothing was charged, the last good state is on file"
                    ) from error

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path} is closed")
        if _identity(self.path) != self._file:
            raise StoreError(f"{self.path} was removed or replaced while it was open; nothing was charged")

    def _connected(self) -> sqlite3.Connection:
        """The connection that writes. Whatever it is asked for, the file at `path` is still the one that was opened."""
        self._require_open()
        if self._connection is None:
            with store.refusing(self.path, LOCKED):
                connection = store.connect(self.path, self._sync, shared=True, timeout=LOOK)
            self._connection, self._pid = connection, os.getpid()
            self._release = weakref.finalize(self, store.release, connection, self._pid)
        elif self._pid != os.getpid():
            raise StoreError(f"{self.path}: a child that was forked in the middle of a step must open the ledger again")
        return self._connection

    def disconnect(self) -> None:
        """Let the file go until it is needed again."""
        if self._release is not None:
            self._release()
        self._connection = self._release = None

    def close(self) -> None:
        """Let the file go for good."""
        self._closed = True
        self.disconnect()


def _create(path: Path, manifest: Manifest, sync: bool) -> None:
    """Make a whole file beside `path` and link it there: no process sees it before, and none makes another one."""
    made = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        connection = store.connect(made, sync, shared=False)
        try:
            store.fill(connection, manifest, _STEPS)
            store.write_ahead(made, connection)
        finally:
            connection.close()
        store.require_unused(path)
        os.link(made, path)
        if sync:
            _force_names(path.parent)
    except (OSError, sqlite3.Error) as error:
        if path.exists():  # another process was first
            return
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"cannot create {path}: {getattr(error, 'strerror', None) or error}") from None
    finally:
        with suppress(OSError):
            made.unlink(missing_ok=True)


def _force_names(folder: Path) -> None:
    """Force the names in a folder to disk, where a folder can be opened."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _checksum(row: tuple) -> int:
    identity, step, count, revision = row[:4]
    return zlib.crc32(f"{identity} {count} {revision} {step}".encode())


def _identity(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


@contextmanager
def _one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is read inside is of one moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


_LIVE: weakref.WeakSet[StepLedger] = weakref.WeakSet()
_FORKING: list[StepLedger] = []


def _before_fork() -> None:
    for ledger in list(_LIVE):
        # else a step of this very thread forks, and its child may not use the ledger
        if ledger._busy != threading.get_ident():
            ledger.lock.acquire()
            ledger.disconnect()
            _FORKING.append(ledger)


def _after_fork() -> None:
    while _FORKING:
        _FORKING.pop().lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
