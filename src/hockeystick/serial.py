"""What ran and what it cost, as text: JSON of steps, runs and bounds, and training logs.

    step    {"kind": ..., parameters}                       a step inside a step is a nested dict
    run     {"format": "hockeystick.run", "version": 1, "parts": [{"step": ..., "count": ...}]}
    bound   {"format": "hockeystick.bound", "version": 1, "lower", "estimate", "upper", "route", "certified",
             "budget": {"unit", "terms"}}

Floats are numbers whose shortest text reads back to the same double, infinite ones the strings "inf" and "-inf", arrays
nested lists. `KINDS` is the one table of serialisable mechanisms. Reading goes through the public constructors of
`mechanism`, so that text meets the same checks as a caller's numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .bound import Bound, Budget, DomainError
from .mechanism import (
    K_MAX,
    Gaussian,
    Mechanism,
    PoissonSubsampled,
    Run,
    count,
    gaussian,
    poisson_subsampled,
    real,
)


class Kind(NamedTuple):
    """A serialisable mechanism: its class, the attributes that define it, and build(*attributes)."""

    cls: type[Mechanism]
    params: tuple[str, ...]
    build: Callable[..., Mechanism]


KINDS = {
    "gaussian": Kind(Gaussian, ("sigma", "sensitivity"), lambda s, c: gaussian(s, sensitivity=c)),
    "poisson_subsampled": Kind(PoissonSubsampled, ("base", "q"), poisson_subsampled),
}

_NAMES = {kind.cls: name for name, kind in KINDS.items()}


RUN, BOUND = "hockeystick.run", "hockeystick.bound"
VERSION = 1
"""Of both formats. A release reads every version up to its own."""


def to_json(what: Mechanism | Run | Bound) -> dict[str, Any]:
    """A step, a run or a bound as a dict that `json` writes and `from_json` reads back exactly, floats included.

    The layouts are at the head of serial.py; "format" and "version" name those of runs and bounds.

    Parameters
    ----------
    what : Mechanism, Run or Bound
        What ran, or what a query returned.

    Returns
    -------
    dict
        Of dicts, lists, strings, numbers and booleans.

    Raises
    ------
    DomainError
        If a mechanism has no row in `KINDS`.

    Examples
    --------
    >>> import json
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.1), 0.01) * 1000
    >>> text = json.dumps(hs.to_json(run))
    >>> hs.from_json(json.loads(text)) == run
    True
    """
    if isinstance(what, Bound):
        ends = {name: _plain(getattr(what, name)) for name in ("lower", "estimate", "upper")}
        budget = {"unit": what.budget.unit, "terms": {name: _plain(term) for name, term in what.budget.terms.items()}}
        kept = {"route": what.route, "certified": bool(what.certified), "budget": budget}
        return {"format": BOUND, "version": VERSION, **ends, **kept}
    if isinstance(what, Run):
        parts = [{"step": to_json(step), "count": n} for step, n in what.parts]
        return {"format": RUN, "version": VERSION, "parts": parts}
    name = _NAMES.get(type(what))
    if name is None:
        raise DomainError(f"cannot serialise {what!r}; serialisable kinds: {_listed(KINDS)}")
    params = {p: getattr(what, p) for p in KINDS[name].params}
    nested = {p: to_json(v) if isinstance(v, Mechanism) else v for p, v in params.items()}
    return {"kind": name, **nested}


def from_json(state: Any) -> Mechanism | Run | Bound:
    """What `to_json` described. Strict: unknown formats, versions, kinds and keys, and missing keys are refused.

    Parameters
    ----------
    state : dict
        From `to_json`, possibly through JSON.

    Returns
    -------
    Mechanism, Run or Bound
        Equal to what was written. A bound is a record: to know that it still holds, ask the run again.

    Raises
    ------
    DomainError
        Naming what was found and what is allowed.
    """
    if isinstance(state, dict) and "format" in state:
        if state["format"] not in (RUN, BOUND):
            raise DomainError(f"unknown format {_brief(state['format'])}; allowed: {RUN}, {BOUND}")
        version = state.get("version")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise DomainError(f"{state['format']} has version {_brief(version)}; this release reads up to {VERSION}")
        return _read_run(state) if state["format"] == RUN else _read_bound(state)
    if not isinstance(state, dict) or "kind" not in state:
        raise DomainError(f'a step must be a dict with a "kind", got {_brief(state)}')
    name = state["kind"]
    if not isinstance(name, str) or name not in KINDS:
        raise DomainError(f"unknown kind of step {_brief(name)}; allowed: {_listed(KINDS)}")
    kind = KINDS[name]
    exact_keys(f"step of kind {name!r}", state, ("kind", *kind.params))
    values = (state[p] for p in kind.params)
    return kind.build(*(read_step(v) if isinstance(v, dict) else v for v in values))


def read_step(state: Any) -> Mechanism:
    """The step that `to_json` described; DomainError as in `from_json`, also for a run or a bound."""
    step = from_json(state)
    if not isinstance(step, Mechanism):
        raise DomainError(f"expected a step, got {_brief(state)}")
    return step


def _read_run(state: dict[str, Any]) -> Run:
    exact_keys("run", state, ("format", "version", "parts"))
    if not isinstance(state["parts"], list | tuple):
        raise DomainError(f"parts of a run must be a list, got {_brief(state['parts'])}")
    merged: dict[Mechanism, int] = {}
    for i, part in enumerate(state["parts"]):
        try:
            exact_keys("part", part, ("step", "count"))
            step, n = read_step(part["step"]), count("count", part["count"])
            merged[step] = count("total count of a step", merged.get(step, 0) + n)
        except DomainError as error:
            raise DomainError(f"parts[{i}]: {error}") from None
    return Run(tuple(merged.items()))


def _read_bound(state: dict[str, Any]) -> Bound:
    ends = ("lower", "estimate", "upper")
    exact_keys("bound", state, ("format", "version", *ends, "route", "certified", "budget"))
    exact_keys("budget", state["budget"], ("unit", "terms"))
    terms = state["budget"]["terms"]
    texts = (state["route"], state["budget"]["unit"])
    if not isinstance(terms, dict) or type(state["certified"]) is not bool or not all(isinstance(t, str) for t in texts):
        raise DomainError(
            "a bound needs a string route, a boolean certified, and a budget of a string unit and a dict of terms"
        )
    low, mid, high = (_number(name, state[name]) for name in ends)
    if np.shape(low) != np.shape(high) or np.shape(low) != np.shape(mid) or not np.all(np.asarray(low) <= np.asarray(high)):
        raise DomainError(f"a bound needs lower <= upper of one shape, got {_brief(state['lower'])}, {_brief(state['upper'])}")
    budget = Budget({name: _number(name, term) for name, term in terms.items()}, state["budget"]["unit"])
    return Bound(low, mid, high, state["route"], state["certified"], budget)


def _plain(value) -> Any:
    """A float or array as JSON: numbers, "inf" or "-inf", lists of them."""
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value] if value.ndim else _plain(float(value))
    value = float(value)
    return value if np.isfinite(value) else repr(value)


def _number(name: str, value: Any) -> float | np.ndarray:
    """The number or array that `_plain` wrote; NaN is not among them."""
    if isinstance(value, list | tuple):
        each = [_number(name, v) for v in value]
        try:
            return np.array(each, dtype=float)
        except ValueError:
            raise DomainError(f"{name} must be a number or a regular array, got {_brief(value)}") from None
    number = float(value) if value in ("inf", "-inf") else real(name, value, 'or "inf" or "-inf"')
    if number != number:
        raise DomainError(f'{name} must be a number, "inf" or "-inf", got {_brief(value)}')
    return number


def exact_keys(what: str, state: Any, allowed: tuple[str, ...]) -> None:
    """DomainError unless `state` is a dict with exactly the keys `allowed`."""
    if not isinstance(state, dict):
        raise DomainError(f"{what} must be a dict with keys {_listed(allowed)}, got {_brief(state)}")
    for key in state:
        if key not in allowed:
            raise DomainError(f"{what} has unknown key {_brief(key)}; allowed: {_listed(allowed)}")
    for key in allowed:
        if key not in state:
            raise DomainError(f"{what} lacks key {key!r}; needed: {_listed(allowed)}")


# Training logs

COLUMNS = ("sigma", "q", "steps")

LINE_MAX = 4096
"""Bytes of the longest line read. Three numbers of 17 digits and their JSON keys take under 120."""

RECENT_MAX = 1 << 16
"""Lines remembered as parsed, so that a repeated line costs one look-up; about 10 MB when full."""

_BOM = b"\xef\xbb\xbf"


def read_log(stream: BinaryIO, name: str) -> Run:
    """The run that a training log describes, read line by line in memory proportional to distinct steps.

    Parameters
    ----------
    stream : binary file
        CSV whose first line names the columns, among sigma, q, steps in any order; or JSON lines, one object
        with these keys each. `sigma` is the noise multiplier; `q` (sampling rate) and `steps` are 1 where
        the log has no such column or key. The format is read off the first line that is not blank. UTF-8; a
        byte order mark, CRLF line ends and blank lines are passed over.
    name : str
        What messages call the log.

    Returns
    -------
    Run
        Equal steps merged, in order of first appearance. A CSV header alone is the empty run.

    Raises
    ------
    DomainError
        "name:line: what is wrong" at the first malformed line, or if the log has no line at all.
    """
    counts: dict[tuple[float, float], int] = {}  # by (sigma, q)
    steps: dict[tuple[float, float], Mechanism] = {}
    recent: dict[bytes, tuple[tuple[float, float], int]] = {}
    parse = None
    number = 0
    try:
        for number, raw in enumerate(iter(partial(stream.readline, LINE_MAX + 1), b""), 1):
            known = recent.get(raw)
            if known is None:
                text = _line_text(raw.removeprefix(_BOM) if number == 1 else raw)
                if not text:
                    continue
                if parse is None:
                    parse = _parse_json if text[0] in "{[" else partial(_parse_csv, _csv_columns(text))
                    if parse is not _parse_json:
                        continue
                key, n = known = parse(text)
                if key not in steps:
                    steps[key] = poisson_subsampled(gaussian(key[0]), key[1])
                    counts[key] = 0
                if len(recent) == RECENT_MAX:
                    recent.clear()
                recent[raw] = known
            key, n = known
            counts[key] += n
            if counts[key] > K_MAX:
                count(f"total of {steps[key]!r}", counts[key])
    except DomainError as error:
        raise DomainError(f"{name}:{number}: {error}") from None
    if parse is None:
        raise DomainError(f"{name}: empty log; expected a CSV header ({','.join(COLUMNS)}) or JSON lines")
    return Run(tuple((step, counts[key]) for key, step in steps.items()))


def _line_text(raw: bytes) -> str:
    if len(raw) > LINE_MAX:
        raise DomainError(f"line longer than {LINE_MAX} bytes")
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise DomainError(f"not UTF-8 text ({error.reason} at byte {error.start + 1})") from None


def _fields(text: str) -> list[str]:
    fields = [field.strip() for field in text.split(",")]
    if '"' not in text:
        return fields
    return [f[1:-1].strip() if len(f) > 1 and f[0] == f[-1] == '"' else f for f in fields]


def _csv_columns(text: str) -> list[str]:
    columns = [name.lower() for name in _fields(text)]
    for name in columns:
        if name not in COLUMNS:
            raise DomainError(
                f"unknown column {_brief(name)} in the CSV header; allowed: {_listed(COLUMNS)} "
                "(the first line must name the columns)"
            )
        if columns.count(name) > 1:
            raise DomainError(f"column {name!r} appears twice in the CSV header")
    if "sigma" not in columns:
        raise DomainError('the CSV header has no column "sigma"')
    return columns


def _parse_csv(columns: list[str], text: str) -> tuple[tuple[float, float], int]:
    fields = _fields(text)
    if len(fields) != len(columns):
        raise DomainError(f"expected {len(columns)} fields ({','.join(columns)}), got {len(fields)}")
    row = {}
    for name, field in zip(columns, fields, strict=True):
        try:
            if "_" in field or not field.isascii():  # float() reads 1_000 and foreign digits; a log has neither
                raise ValueError
            row[name] = float(field)
        except ValueError:
            raise DomainError(f"{name} must be a number, got {_brief(field)}") from None
    return (row["sigma"], row.get("q", 1.0)), _steps(row)


def _parse_json(text: str) -> tuple[tuple[float, float], int]:
    try:
        row = _ROW.decode(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, DomainError):
            raise
        raise DomainError(f"not one JSON object per line: {error}") from None
    if not isinstance(row, dict):
        raise DomainError(f"expected a JSON object with keys {_listed(COLUMNS)}, got {_brief(row)}")
    for key in row:
        if key not in COLUMNS:
            raise DomainError(f"unknown key {_brief(key)}; allowed: {_listed(COLUMNS)}")
    if "sigma" not in row:
        raise DomainError('no key "sigma"')
    key = real("sigma", row["sigma"], "> 0"), real("q", row.get("q", 1.0), "in (0, 1]")
    return key, _steps(row)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise DomainError("a key appears twice in the JSON object")
    return row


# A decoder made once: json.loads with a hook makes one per call, which costs more than the line.
_ROW = json.JSONDecoder(object_pairs_hook=_unique)


def _steps(row: dict[str, Any]) -> int:
    steps = row.get("steps", 1)
    if isinstance(steps, float) and steps.is_integer():
        steps = int(steps)  # tables often write whole numbers as 100.0
    return count("steps", steps)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(names) -> str:
    return ", ".join(names)
