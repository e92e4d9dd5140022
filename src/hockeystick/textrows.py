"""Text that others wrote, line by line as rows: a CSV table with a header, or one JSON object a line.

The first line that says something tells the two apart. A header also tells what separates fields: a comma, a semicolon
or a tab, whichever makes a column of the name that is needed. Blank lines and comments, which begin with #, are passed
over. Numbers are written with a decimal point and ASCII digits; what Python's `float` reads besides is refused.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from .bound import DomainError
from .serial import brief

LINE_MAX = 4096
"""Bytes of the longest line read. Three numbers of 17 digits and their JSON keys take under 120."""

SEPARATORS = (",", ";", "\t")
_BOM = b"\xef\xbb\xbf"


def raw_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a binary stream; of one that is too long the beginning, which `text_of` refuses."""
    return iter(partial(stream.readline, LINE_MAX + 1), b"")


def text_of(raw: bytes, allow_unterminated: bool = False) -> str:
    """What a line says; empty for a blank one."""
    if len(raw) > LINE_MAX:
        raise DomainError(f"line longer than {LINE_MAX} bytes")
    try:
        text = raw.removeprefix(_BOM).decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DomainError(f"not UTF-8 text ({error.reason} at byte {error.start + 1})") from None
    if not allow_unterminated:
        require_line_end(raw.endswith(b"\n"))
    return "" if text.isspace() else text


def require_line_end(ended: bool) -> None:
    """DomainError unless the last line of a file `ended`: what stands there may be the beginning of what was
    written."""
    if not ended:
        raise DomainError(
            "the last line has no line end, so the file may have been cut short; complete it (--allow-unterminated"
            " takes the line as it stands)"
        )


def fields(text: str, separator: str) -> list[str]:
    """The fields of a line, which may stand in double quotes."""
    if '"' in text:
        return [field.strip() for field in next(csv.reader([text], delimiter=separator, skipinitialspace=True))]
    return [field.strip() for field in text.split(separator)]


def separator_of(text: str, needed: str = "") -> str:
    """What separates the fields of a header: what makes a column `needed`; else a tab or semicolon if there is one."""
    makes = [separator for separator in SEPARATORS if needed in [name.lower() for name in fields(text, separator)]]
    return makes[0] if makes else next((separator for separator in SEPARATORS[:0:-1] if separator in text), ",")


class Columns:
    """The lines of one text as {name: value} of what is `wanted`; `seen` are the names found, `ignored` other
    columns, `comments` how many lines were.

    `words` are wanted as text, the rest as numbers. A column that is `likely` a wanted one under another name, and is
    not `renamed` (name: column, or column: "" to pass over it), is refused where no other column holds that.
    """

    def __init__(
        self,
        wanted: Collection[str],
        needed: str,
        *,
        words: Collection[str] = (),
        likely: Mapping[str, str] | None = None,
        renamed: Mapping[str, str] | None = None,
    ):
        self.wanted, self.needed, self.words, self.likely = wanted, needed, words, likely or {}
        self.renamed = _renamed(wanted, renamed or {})
        self.known = {self.renamed.get(name, name): name for name in wanted}
        self.known.pop("", None)
        self.seen: dict[str, None] = {}  # in order
        self.ignored: dict[str, None] = {}
        self.comments = 0
        self.separator = ""  # of a CSV table; empty for JSON
        self.columns: list[str | None] | None = None  # what those of a CSV table hold; empty for JSON
        self.plans: dict[tuple[str, ...], list[tuple[str, str]]] = {}  # of the keys of JSON objects

    def row(self, text: str) -> dict[str, Any] | None:
        """What a line says, None for the header and comments."""
        if text.lstrip().startswith("#"):
            self._comment(text)
            return None
        if self.columns is None:
            if text.lstrip()[0] not in "{[":
                self.columns = self._header(text)
                return None
            self.columns = []
        return self._csv_row(text, self.columns) if self.columns else self._json_row(text)

    def table(self, lines: list[bytes]) -> dict[str, Any] | None:
        """Many lines at once, as columns of what is wanted: arrays of numbers, lists of words. None where a line may be
        no plain row, and `row` has to look at each."""
        if self.columns is None or max(map(len, lines)) > LINE_MAX or not lines[-1].endswith(b"\n"):
            return None
        try:
            text = b"".join(lines).decode("utf-8")
            found = self._csv_table(text, self.columns) if self.columns else self._json_table(text)
            return {name: self._values(name, values) for name, values in found.items()} if found else None
        except (ValueError, OverflowError, RecursionError):
            return None

    def _csv_table(self, text: str, columns: list[str | None]) -> dict[str, Any] | None:
        if '"' in text or "#" in text:
            return None
        ends, size = text.count("\n"), len(columns) + 1
        words = text.replace("\n", f"{self.separator}\n{self.separator}").split(self.separator)[:-1]
        if len(words) != ends * size or words[size - 1 :: size].count("\n") != ends:
            return None  # the fields of some line are not so many
        return {name: words[i::size] for i, name in enumerate(columns) if name}

    def _json_table(self, text: str) -> dict[str, Any] | None:
        rows = [_OBJECT.decode(line) for line in text.split("\n")[:-1]]
        keys = {tuple(row) if isinstance(row, dict) else () for row in rows}
        plan = self.plans.get(keys.pop()) if len(keys) == 1 else None
        return {name: [row[key] for row in rows] for key, name in plan} if plan else None

    def _values(self, name: str, given: Any) -> Any:
        """A column of fields or of JSON values; ValueError where one of them may be no such value."""
        if self.columns and given.count(given[0]) == len(given) > 1:  # fields, which are all text
            one = self._values(name, given[:1])
            return one * len(given) if name in self.words else np.full(len(given), one[0])
        types = set(map(type, given))
        if name in self.words:
            if types != {str} or (not self.columns and "" in given):
                raise ValueError(name)
            return [word.strip() for word in given]
        if types == {str} and self.columns:
            joined = "".join(given)
            if "_" in joined or not joined.isascii():
                raise ValueError(name)
            given = list(map(float, given))
        elif not types <= {int, float} or any(type(x) is int and abs(x) > 2**53 for x in given):
            raise ValueError(name)
        return np.array(given, dtype=np.float64)

    def _header(self, text: str) -> list[str | None]:
        needed = self.renamed.get(self.needed, self.needed)
        self.separator = separator_of(text, needed)
        names = [field.lower() for field in fields(text, self.separator)]
        for name in names:
            if names.count(name) > 1:
                raise DomainError(f"column {brief(name)} appears twice in the CSV header")
            if any(part in self.known for other in SEPARATORS for part in name.split(other) if part != name):
                raise DomainError(
                    f"column {brief(name)} holds more than one name: fields are separated by {self.separator!r} here"
                )
        for name, column in self.renamed.items():
            if column and column not in names:
                raise DomainError(
                    f"the CSV header has no column {column!r} for {name}; it has {brief(','.join(names))}"
                )
        if needed not in names:
            alike = next((name for name in names if self.likely.get(name) == self.needed), None)
            hint = f" (--columns {self.needed}={alike}?)" if alike else ""
            raise DomainError(
                f'the CSV header has no column "{self.needed}"{hint}; the first line that is no # comment must name the'
                f" columns, separated by commas, semicolons or tabs; got {brief(text)}"
            )
        return [self._held(name, names) for name in names]

    def _comment(self, text: str) -> None:
        """Count a comment; refused where it may be a row, whose first field begins with #."""
        self.comments += 1
        try:
            row = self._csv_row(text, self.columns) if self.columns else None
        except DomainError:
            return
        if row is not None:
            raise DomainError(f"a comment or a row? Begin comments otherwise, or take the # away: {brief(text)}")

    def _held(self, name: str, present: Collection[str]) -> str | None:
        """What the column of this name holds, or None; refused where it is likely something that no other of them
        holds."""
        known = self.known.get(name)
        if known is not None:
            self.seen[known] = None
            return known
        self.ignored[name] = None
        meant = self.likely.get(name)
        if meant and self.renamed.get(name) != "":
            source = self.renamed.get(meant, meant)
            if source and source not in present:
                raise DomainError(
                    f"column {name!r} looks like {meant}: say --columns {meant}={name}, or --columns {name}= to pass"
                    " over it"
                )
        return None

    def _csv_row(self, text: str, columns: list[str | None]) -> dict[str, Any]:
        found = fields(text, self.separator)
        if len(found) != len(columns):
            held = self.separator.join(name or "." for name in columns)
            raise DomainError(f"expected {len(columns)} fields ({held}), got {len(found)}")
        row: dict[str, Any] = {}
        for name, field in zip(columns, found, strict=True):
            if name is not None and not (name in self.words and not field):
                row[name] = field if name in self.words else _number(name, field)
        return row

    def _json_row(self, text: str) -> dict[str, Any]:
        try:
            row = _OBJECT.decode(text)
        except (ValueError, RecursionError) as error:
            if isinstance(error, DomainError):
                raise
            raise DomainError(f"not one JSON object per line: {error}") from None
        if not isinstance(row, dict):
            raise DomainError(f"expected a JSON object with keys among {', '.join(self.wanted)}, got {brief(row)}")
        keys = tuple(row)
        if keys not in self.plans:
            self.plans[keys] = self.plan(keys)
        return self.of_values({known: row[key] for key, known in self.plans[keys]})

    def of_values(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row, whose words must be text."""
        for name in self.words:
            if not isinstance(row.get(name, ""), str):
                raise DomainError(f"{name} must be text, got {brief(row[name])}")
        return row

    def plan(self, keys: tuple[str, ...], called: str = "key") -> list[tuple[str, str]]:
        """Which key of such an object, or column of such a table, holds what."""
        present = [key.lower() for key in keys]
        plan = [(key, known) for key, name in zip(keys, present, strict=True) if (known := self._held(name, present))]
        held = [known for _, known in plan]
        for name in (self.needed, *(name for name, column in self.renamed.items() if column)):
            if name not in held:
                raise DomainError(f'no {called} "{self.renamed.get(name, name)}"')
        for name in held:
            if held.count(name) > 1:
                raise DomainError(f"{called} {name} appears twice")
        return plan


def _renamed(wanted: Collection[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The column that holds each name that is not called so; empty where a column is passed over."""
    for name, column in columns.items():
        if not isinstance(name, str) or not isinstance(column, str) or (column and name not in wanted):
            raise DomainError(
                f"columns must map {', '.join(wanted)} to names of columns, or a column to pass over to '', "
                f"got {name!r}: {column!r}"
            )
    return {name.strip().lower(): column.strip().lower() for name, column in columns.items()}


def _number(name: str, field: str) -> float:
    try:
        if "_" in field or not field.isascii():  # float() reads 1_000 and foreign digits
            raise ValueError
        return float(field)
    except ValueError:
        hint = ", with a decimal point" if "," in field else ""
        raise DomainError(f"{name} must be a number{hint}, got {brief(field)}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise DomainError("a key appears twice in the JSON object")
    return row


# A decoder made once: json.loads with a hook makes one per call, which costs more than the line.
_OBJECT = json.JSONDecoder(object_pairs_hook=_unique)
