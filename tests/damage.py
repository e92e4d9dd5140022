"""Ways to spoil a database file, for all that keep one."""

import os
import sqlite3


def spoiled(path, what):
    """What the message must say of a file that is not one of ours, or not whole; None where `what` is no such way."""
    if what == "foreign":
        path.write_bytes(b"not a database at all, but long enough to be one" * 100)
        return "not a state file"
    if what == "empty":
        path.write_bytes(b"")
        return "not a state file"
    if what == "truncated":
        os.truncate(path, path.stat().st_size // 2)
        return "corrupted"
    if what == "another database":
        path.unlink()
        change(path, "CREATE TABLE t (x)")
        return "application id"
    return None


def change(path, statement):
    with sqlite3.connect(path) as other:
        other.execute(statement)
    other.close()
