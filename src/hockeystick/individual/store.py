"""The state of one filter or odometer, kept: a manifest and a journal of steps in one file of state (../store.py).

A step is one transaction: a journal row and the state after it; the journal is chained by CRC-32 into the manifest. The
file is locked as long as it is open: a second writer, in this or another process, is refused. A ledger that is dropped
lets its file go at once; without a finalizer the connection, which refers to itself, would hold the lock until the
garbage collector runs. What is larger than a row lies in data.py."""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
import zlib
from contextlib import contextmanager
from pathlib import Path

from .. import store
from ..store import Manifest, StoreError

_JOURNAL = "CREATE TABLE journal (step INTEGER PRIMARY KEY, entry TEXT NOT NULL)"


class Ledger:
    """The open state file of one filter or odometer. `parameters`: as created; `state`: as last committed."""

    def __init__(self, path: Path, connection: sqlite3.Connection, manifest: Manifest):
        self.path, self._manifest = path, manifest
        self._connection: sqlite3.Connection | None = connection
        self._pid = os.getpid()
        self._release = weakref.finalize(self, store.release, connection, self._pid)

    @property
    def parameters(self) -> dict:
        return self._manifest.parameters

    @property
    def state(self) -> dict:
        return self._manifest.state

    @classmethod
    def create(cls, path, kind: str, parameters: dict, state: dict, sync: bool) -> Ledger:
        """A new file. StoreError if it exists or cannot be written; nothing is left behind then."""
        path = Path(path)
        try:
            store.require_unused(path)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except StoreError as error:
            taken = f"; open it with {store.owner(kind)}.open, or remove it" if path.exists() else ""
            raise StoreError(f"{error}{taken}") from None
        except OSError as error:
            raise StoreError(f"cannot create {path}: {error.strerror}") from None
        connection = None
        try:
            connection = store.connect(path, sync, shared=False)
            manifest = Manifest(kind, json.loads(json.dumps(parameters)), json.loads(json.dumps(state)), 0)
            store.fill(connection, manifest, _JOURNAL)
            store.write_ahead(path, connection)
            return cls(path, connection, manifest)
        except BaseException as error:
            if connection is not None:
                connection.close()
            path.unlink(missing_ok=True)
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot create {path}: {error}") from error
            raise

    @classmethod
    def open(cls, path, kind: str, sync: bool) -> Ledger:
        """The file at `path`, checked whole and locked.

        Raises
        ------
        StoreError
            If it is missing, locked, foreign, of another version or kind, truncated or corrupted. It is left as it is.
        """
        path = Path(path)
        store.require_ours(path)
        with store.refusing(path):
            with store.looking(path) as connection:
                _read(path, connection, kind)
            connection = store.connect(path, sync, shared=False)
            try:
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("COMMIT")  # the lock stays: locking_mode is EXCLUSIVE
                store.write_ahead(path, connection)
                return cls(path, connection, _read(path, connection, kind))
            except BaseException:
                connection.close()
                raise

    def commit(self, state: dict, entry: dict) -> None:
        """Make `state` and the journal `entry` (its "step" is the key) the last good state, or change nothing.

        Raises StoreError if the file cannot take it.
        """
        connection = self._require_owner()
        text = json.dumps(entry)
        after = self._manifest._replace(state=state, chain=zlib.crc32(text.encode(), self._manifest.chain))
        with store.committing(self.path, connection):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO journal VALUES (?, ?)", (entry["step"], text))
            after.update(connection)
        self._manifest = after

    def journal(self) -> list[dict]:
        """Every step ever committed, in order."""
        rows = self._require_owner().execute("SELECT entry FROM journal ORDER BY step")
        return [json.loads(entry) for (entry,) in rows]

    def _require_owner(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError(f"{self.path} is closed")
        if os.getpid() != self._pid:
            raise StoreError(f"{self.path} was opened by process {self._pid}; a forked child must open its own file")
        return self._connection

    @contextmanager
    def closing_on_error(self):
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the file and its lock."""
        self._connection = None
        self._release()


def _read(path: Path, connection: sqlite3.Connection, kind: str) -> Manifest:
    """The manifest of a file that is whole, its journal too."""
    manifest = store.require_whole(path, connection, kind)
    chain = 0
    for (entry,) in connection.execute("SELECT entry FROM journal ORDER BY step"):
        chain = zlib.crc32(entry.encode(), chain)
    if chain != manifest.chain:
        raise StoreError(f"{path} is corrupted (checksum of the journal); it is left as it is")
    return manifest
