"""A Parquet file as rows: the same columns as those of a CSV table, read a block at a time (extra `parquet`)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from .bound import DomainError
from .textrows import Columns

MAGIC = b"PAR1"


def blocks(
    stream: BinaryIO, columns: Columns, size: int
) -> Iterator[tuple[int, dict[str, Any] | None, Callable[[], Iterator[dict[str, Any]]]]]:
    """Of every `size` rows: how many rows the file has, the columns of these (see `Columns.table`; None where each row
    has to be looked at), and what gives them one by one."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise DomainError('reading Parquet needs pyarrow: pip install "hockeystick[parquet]"') from None
    try:
        stream.seek(0)
        file = parquet.ParquetFile(stream)
        plan = columns.plan(tuple(file.schema_arrow.names), "column")
        for batch in file.iter_batches(size, columns=[key for key, _ in plan]):
            yield file.metadata.num_rows, _columns(batch, plan, columns), partial(_rows, batch, plan, columns)
    except io.UnsupportedOperation:
        raise DomainError("Parquet is read from a file, not from a pipe") from None
    except (ArrowException, OSError) as error:
        raise DomainError(f"not a whole Parquet file: {error}") from None


def _columns(batch: Any, plan: list[tuple[str, str]], columns: Columns) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for key, name in plan:
        given = batch.column(key)
        if given.null_count:
            return None
        if name in columns.words:
            found[name] = given.to_pylist()
            if set(map(type, found[name])) != {str} or "" in found[name]:
                return None
        else:
            exact = given.to_numpy(zero_copy_only=False)
            if exact.dtype.kind not in "iuf":
                return None
            found[name] = exact.astype(np.float64)
            if exact.dtype.kind != "f" and np.any(np.abs(found[name]) > 2**53):
                return None
    return found


def _rows(batch: Any, plan: list[tuple[str, str]], columns: Columns) -> Iterator[dict[str, Any]]:
    for given in batch.to_pylist():
        row = {name: given[key] for key, name in plan}
        yield {name: value for name, value in row.items() if value is not None or name not in columns.words}
