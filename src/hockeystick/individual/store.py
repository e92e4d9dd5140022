"""State that outlives its process: a manifest and a journal of steps in one sqlite3 file.

The file has the application id of this package, a format version, one manifest row (kind, parameters, state, checksum)
and one journal row a step. A step is one transaction, so that a process killed at any instant leaves the file either
before it or after it; the journal is chained by CRC-32 into the manifest. The file is locked as long as it is open:
a second writer, in this or another process, is refused. A ledger that is dropped lets its file go at once; without a
finalizer the connection, which refers to itself, would hold the lock until the garbage collector runs. What is larger than
a row lies in data.py.
"""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
import zlib
from contextlib import closing, contextmanager
from pathlib import Path

from ..bound import HockeystickError

APPLICATION_ID = 0x68735F6C  # "hs_l"
VERSION = 1

_TABLES = """
CREATE TABLE manifest (id INTEGER PRIMARY KEY CHECK (id = 1), kind TEXT NOT NULL, parameters TEXT NOT NULL,
                       state TEXT NOT NULL, chain INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE journal (step INTEGER PRIMARY KEY, entry TEXT NOT NULL);
"""


class StoreError(HockeystickError, OSError):
    """A state file cannot be created, opened, locked or written. The message names the file and what is wrong.

    Raised by a charge, it means that nothing was charged and that the last good state is on file.
    """


class Ledger:
    """The open state file of one filter or odometer. `parameters`: as created; `state`: as last committed."""

    def __init__(self, path, connection, kind: str, parameters: dict, state: dict, chain: int):
        self.path, self.kind, self.parameters, self.state = Path(path), kind, parameters, state
        self._connection, self._chain, self._pid = connection, chain, os.getpid()
        self._release = weakref.finalize(self, _release, connection, self._pid)

    @classmethod
    def create(cls, path, kind: str, parameters: dict, state: dict, sync: bool) -> Ledger:
        """A new file. StoreError if it exists or cannot be written; nothing is left behind then."""
        path = Path(path)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except FileExistsError:
            raise StoreError(f"{path} exists; open it with {_opener(kind)}.open, or remove it") from None
        except OSError as error:
            raise StoreError(f"cannot create {path}: {error.strerror}") from None
        connection = None
        try:
            connection = _connect(path, sync)
            self = cls(path, connection, kind, json.loads(json.dumps(parameters)), json.loads(json.dumps(state)), 0)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            with self._transaction():
                for statement in _TABLES.split(";")[:-1]:
                    connection.execute(statement)
                row = (kind, *self._texts(self.state), 0, self._checksum(self.state, 0))
                connection.execute("INSERT INTO manifest VALUES (1, ?, ?, ?, ?, ?)", row)
            return self
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
        if not path.is_file():
            raise StoreError(f"{path} is not a file; nothing to open")
        connection = None
        try:
            _require_ours(path)
            connection = _connect(path, sync)
            return cls._read(path, connection, kind)
        except (sqlite3.Error, StoreError, ValueError) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, StoreError):
                raise
            raise _refusal(path, error) from error

    @classmethod
    def _read(cls, path, connection, kind: str) -> Ledger:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise StoreError(f"{path} has format version {version}; this release reads {VERSION}")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")  # the lock stays: locking_mode is EXCLUSIVE
        health = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        row = connection.execute("SELECT kind, parameters, state, chain, checksum FROM manifest").fetchone()
        if health != "ok" or row is None:
            raise StoreError(f"{path} is corrupted ({health if row else 'no manifest'}); it is left as it is")
        if row[0] != kind:
            raise StoreError(f"{path} holds the state of {_opener(row[0])}, not of {_opener(kind)}")
        self = cls(path, connection, kind, json.loads(row[1]), json.loads(row[2]), row[3])
        chain = 0
        for (entry,) in connection.execute("SELECT entry FROM journal ORDER BY step"):
            chain = zlib.crc32(entry.encode(), chain)
        if chain != row[3] or row[4] != zlib.crc32("\0".join((*row[:3], str(chain))).encode()):
            raise StoreError(f"{path} is corrupted (checksum of the manifest or the journal); it is left as it is")
        return self

    def _texts(self, state: dict) -> tuple[str, str]:
        return json.dumps(self.parameters), json.dumps(state)

    def _checksum(self, state: dict, chain: int) -> int:
        return zlib.crc32("\0".join((self.kind, *self._texts(state), str(chain))).encode())

    def commit(self, state: dict, entry: dict) -> None:
        """Make `state` and the journal `entry` (its "step" is the key) the last good state, or change nothing.

        Raises StoreError if the file cannot take it.
        """
        self._require_owner()
        text = json.dumps(entry)
        chain = zlib.crc32(text.encode(), self._chain)
        with self._transaction():
            execute = self._connection.execute
            execute("INSERT INTO journal VALUES (?, ?)", (entry["step"], text))
            execute(
                "UPDATE manifest SET state = ?, chain = ?, checksum = ?",
                (json.dumps(state), chain, self._checksum(state, chain)),
            )
        self._chain, self.state = chain, state

    def journal(self) -> list[dict]:
        """Every step ever committed, in order."""
        return [json.loads(entry) for (entry,) in self._connection.execute("SELECT entry FROM journal ORDER BY step")]

    @contextmanager
    def _transaction(self):
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"{self.path}: {error}; nothing was charged, the last good state is on file") from error
            raise

    def _require_owner(self) -> None:
        if self._connection is None:
            raise StoreError(f"{self.path} is closed")
        if os.getpid() != self._pid:
            raise StoreError(f"{self.path} was opened by process {self._pid}; a forked child must open its own file")

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


_INHERITED: list[sqlite3.Connection] = []
"""Connections that a forked child got from its parent: it may neither use nor close them, and freeing one closes it."""


def _release(connection: sqlite3.Connection, pid: int) -> None:
    """Close a connection in the process that opened it."""
    if os.getpid() == pid:
        connection.close()
    else:
        _INHERITED.append(connection)


def _require_ours(path: Path) -> None:
    """Look at the header through a connection that neither locks nor recovers: another program's database stays as it is.
    (Not by reading the file: closing it would drop the locks that this process holds on it.)"""
    with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro&immutable=1", uri=True)) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StoreError(f"{path} is not a state file of hockeystick (application id); it is left as it is")


def _connect(path: Path, sync: bool) -> sqlite3.Connection:
    uri = path.absolute().as_uri() + "?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'OFF'}")
    return connection


def _refusal(path, error: Exception) -> StoreError:
    text = str(error)
    if "locked" in text:
        return StoreError(f"{path} is open for writing elsewhere; two writers are refused")
    if "not a database" in text:
        return StoreError(f"{path} is not a state file of hockeystick; it is left as it is")
    return StoreError(f"{path} is truncated or corrupted ({text}); it is left as it is")


def _opener(kind: str) -> str:
    names = {
        "gdp_filter": "GDPFilter",
        "rdp_filter": "RDPFilter",
        "gdp_odometer": "GDPOdometer",
        "individual_gdp_filter": "IndividualGDPFilter",
    }
    return names.get(kind, repr(kind))
