"""Files of state: what a filter's journal and an accountant's ledger have in common, one sqlite3 database each.

The file has the application id of this package, a format version, and one manifest row (kind, parameters, state,
checksum). What else it holds is the business of its kind; `chain` is the checksum of that. A change is one transaction
of a write-ahead log (FILE-wal), so that a process killed at any instant leaves the file either before the change or
after it, and acknowledging one costs one fsync. With a rollback journal it costs four, and a loss of power just after
the last of them can bring the journal back, and with it the state before.

Whether a file is ours and whole is found out without writing to it: foreign, newer and corrupted files are left as they
are."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from .bound import HockeystickError

APPLICATION_ID = 0x68735F6C  # "hs_l"
VERSION = 1

MANIFEST = """CREATE TABLE manifest (id INTEGER PRIMARY KEY CHECK (id = 1), kind TEXT NOT NULL,
                       parameters TEXT NOT NULL, state TEXT NOT NULL, chain INTEGER NOT NULL,
                       checksum INTEGER NOT NULL)"""

OWNERS = {
    "accountant": "Accountant",
    "gdp_filter": "GDPFilter",
    "rdp_filter": "RDPFilter",
    "gdp_odometer": "GDPOdometer",
    "individual_gdp_filter": "IndividualGDPFilter",
}
"""The class whose state a kind of file holds."""


class StoreError(HockeystickError, OSError):
    """A state file cannot be created, opened, locked or written. The message names the file and what is wrong.

    Raised by a charge or a step, it means that nothing was charged and that the last good state is on file.
    """


class Manifest(NamedTuple):
    """The one row that says what a file is, and what state it was left in."""

    kind: str
    parameters: dict[str, Any]
    state: dict[str, Any]
    chain: int

    @classmethod
    def read(cls, path: Path, connection: sqlite3.Connection, kind: str) -> Manifest:
        row = connection.execute("SELECT kind, parameters, state, chain, checksum FROM manifest").fetchone()
        if row is None:
            raise StoreError(f"{path} is corrupted (no manifest); it is left as it is")
        if row[0] != kind:
            raise StoreError(f"{path} holds the state of {owner(row[0])}, not of {owner(kind)}")
        self = cls(kind, json.loads(row[1]), json.loads(row[2]), row[3])
        if self.row()[4] != row[4] or self.row()[1:3] != row[1:3]:
            raise StoreError(f"{path} is corrupted (checksum of the manifest); it is left as it is")
        return self

    def row(self) -> tuple[str, str, str, int, int]:
        """Kind, parameters, state, chain and the checksum of these."""
        texts = self.kind, json.dumps(self.parameters), json.dumps(self.state)
        return *texts, self.chain, zlib.crc32("\0".join((*texts, str(self.chain))).encode())

    def insert(self, connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO manifest VALUES (1, ?, ?, ?, ?, ?)", self.row())

    def update(self, connection: sqlite3.Connection) -> None:
        _, _, state, chain, checksum = self.row()
        connection.execute("UPDATE manifest SET state = ?, chain = ?, checksum = ?", (state, chain, checksum))


def fill(connection: sqlite3.Connection, manifest: Manifest, tables: str) -> None:
    """Write what a new file holds, then turn to the write-ahead log: the header is in the file itself from the
    start."""
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute(MANIFEST)
    for statement in tables.split(";"):
        connection.execute(statement)
    manifest.insert(connection)
    connection.execute("COMMIT")


def write_ahead(path: Path, connection: sqlite3.Connection) -> None:
    """Turn to the write-ahead log. StoreError where the file system cannot have one."""
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise StoreError(f"{path}: this file system cannot keep a write-ahead log (no locks or no shared memory)")


def connect(path: Path, sync: bool, shared: bool, timeout: float = 0.0) -> sqlite3.Connection:
    """A connection that writes; it waits `timeout` seconds for locks, and keeps them unless the file is shared."""
    uri = path.absolute().as_uri() + "?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        if not shared:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # first: a log that is not shared needs no memory map
        connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'OFF'}")
        return connection
    except BaseException:
        connection.close()
        raise


@contextmanager
def looking(path: Path, timeout: float = 0.0) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing in the file: one without a log is only read, with one it is read through the
    log. What a rollback journal of version 0.1 has to undo is undone."""
    query = "?mode=rw" if _full(path, "-journal") else "?mode=ro" if _full(path, "-wal") else "?mode=ro&immutable=1"
    uri = path.absolute().as_uri() + query
    with closing(sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)) as connection:
        yield connection


def require_ours(path: Path) -> None:
    """StoreError unless the header says that the file is one of this package, of a version that this release reads.

    Nothing is locked or recovered for that: another program's database stays as it is. (Reading the file instead would
    not do: closing it drops the locks that this process holds on it.)"""
    if not path.is_file():
        raise StoreError(f"{path} is not a file; nothing to open")
    uri = path.absolute().as_uri() + "?mode=ro&immutable=1"
    with refusing(path), closing(sqlite3.connect(uri, uri=True)) as connection:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != APPLICATION_ID:
        raise StoreError(f"{path} is not a state file of hockeystick (application id); it is left as it is")
    if version != VERSION:
        raise StoreError(f"{path} has format version {version}; this release reads {VERSION}; it is left as it is")


def state_kind(path: Path) -> str | None:
    """What a file of state is about, or None of any other file; nothing is locked or read twice for that."""
    uri = path.absolute().as_uri() + "?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection, suppress(sqlite3.Error):
        if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
            return connection.execute("SELECT kind FROM manifest").fetchone()[0]
    return None


def require_whole(path: Path, connection: sqlite3.Connection, kind: str) -> Manifest:
    """The manifest, once the database is sound and of this kind."""
    health = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if health != "ok":
        raise StoreError(f"{path} is corrupted ({health}); it is left as it is")
    return Manifest.read(path, connection, kind)


def require_unused(path: Path) -> None:
    """StoreError if the place of a new file is taken, or that of its log."""
    if path.exists():
        raise StoreError(f"{path} exists")
    for suffix in ("-wal", "-journal"):
        if _full(path, suffix):
            raise StoreError(
                f"{path}{suffix} is left of a file that is gone: it may hold acknowledged charges; move it away first"
            )


@contextmanager
def refusing(path: Path, locked: str = "is open for writing elsewhere; two writers are refused") -> Iterator[None]:
    """What sqlite3 and json say of a file that is locked, foreign or damaged, as a StoreError."""
    try:
        yield
    except (sqlite3.Error, ValueError) as error:
        text = str(error)
        if "locked" in text:
            raise StoreError(f"{path} {locked}") from error
        if "not a database" in text:
            raise StoreError(f"{path} is not a state file of hockeystick; it is left as it is") from error
        if "unable to open" in text or "readonly" in text:
            raise StoreError(f"{path} cannot be opened: {text}") from error
        raise StoreError(f"{path} is truncated or corrupted ({text}); it is left as it is") from error


@contextmanager
def committing(path: Path, connection: sqlite3.Connection) -> Iterator[None]:
    """End the transaction that was begun: with COMMIT, or with ROLLBACK and an error."""
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise StoreError(f"{path}: {error}; nothing was charged, the last good state is on file") from error
        raise


def owner(kind: str) -> str:
    return OWNERS.get(kind, repr(kind))


def _full(path: Path, suffix: str) -> bool:
    """Whether sqlite3 has left something in a file beside this one."""
    beside = path.with_name(path.name + suffix)
    return beside.exists() and beside.stat().st_size > 0


_INHERITED: list[sqlite3.Connection] = []
"""Connections that a forked child got from its parent: it may neither use nor close them, and freeing one closes it."""


def release(connection: sqlite3.Connection, pid: int) -> None:
    """Close a connection in the process that opened it."""
    if os.getpid() == pid:
        connection.close()
    else:
        _INHERITED.append(connection)
