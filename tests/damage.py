"""Ways to spoil a database file, for all that keep one."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import contextmanager

import pytest

ANY = {
    "foreign": (
        lambda path: path.write_bytes(b"not a database at all, but long enough to be one" * 100),
        "not a state",
    ),
    "empty": (lambda path: path.write_bytes(b""), "not a state file"),
    "truncated": (lambda path: os.truncate(path, path.stat().st_size // 2), "corrupted"),
    "another database": (lambda path: (path.unlink(), change(path, "CREATE TABLE t (x)")), "application id"),
    "version": ("PRAGMA user_version = 99", "version 99"),
    "manifest lost": ("DELETE FROM manifest", "no manifest"),
}
"""What is done to a file, by a function or in SQL, and what the message must say."""


def change(path, statement):
    with sqlite3.connect(path) as other:
        other.execute(statement)
    other.close()


def snapshot(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and not p.name.endswith("-shm")}


def named_and_untouched(path, how, says, open_it, error):
    """A file that is spoiled is refused by what is wrong with it, and left as it is."""
    how(path) if callable(how) else change(path, how)
    before = snapshot(path.parent)
    with pytest.raises(error, match=says):
        open_it(path)
    assert snapshot(path.parent) == before


@contextmanager
def small_disk(folder, size):
    """A file system of that size, where this machine lets us mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no small file system to be had")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def filled(path):
    """A file that takes all room that is left."""
    with pytest.raises(OSError), open(path, "ab", buffering=0) as fill:
        while True:
            fill.write(b"0" * 512)
