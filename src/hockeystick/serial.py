"""What ran, as text: the JSON form of a step, and training logs.

`KINDS` is the one table of serialisable mechanisms. Reading goes through the public constructors of
`mechanism`, so that text meets the same checks as a caller's numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from .batches import CyclicPoisson, TruncatedPoisson, cyclic_poisson, truncated_poisson_subsampled
from .bound import DomainError
from .discrete import (
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    KAryRandomizedResponse,
    approx_dp,
    discrete_gaussian,
    discrete_laplace,
    k_ary_randomized_response,
)
from .given import (
    FromCurve,
    FromPmf,
    GaussianMixture,
    PublicMixture,
    from_curve,
    from_pmf,
    gaussian_mixture,
    public_mixture,
)
from .mechanism import (
    K_MAX,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSubsampled,
    Run,
    count,
    gaussian,
    laplace,
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
    "laplace": Kind(Laplace, ("scale", "sensitivity"), lambda s, c: laplace(s, sensitivity=c)),
    "discrete_gaussian": Kind(DiscreteGaussian, ("sigma", "sensitivity"), lambda s, c: discrete_gaussian(s, sensitivity=c)),
    "discrete_laplace": Kind(DiscreteLaplace, ("scale", "sensitivity"), lambda s, c: discrete_laplace(s, sensitivity=c)),
    "approx_dp": Kind(ApproxDP, ("eps0", "delta0"), approx_dp),
    "k_ary_randomized_response": Kind(KAryRandomizedResponse, ("eps0", "k"), k_ary_randomized_response),
    "gaussian_mixture": Kind(GaussianMixture, ("sigma", "shifts", "probabilities"), gaussian_mixture),
    "public_mixture": Kind(PublicMixture, ("parts", "weights"), public_mixture),
    "from_pmf": Kind(FromPmf, ("num", "den"), from_pmf),
    "from_curve": Kind(
        FromCurve, ("eps", "delta", "symmetric"), lambda eps, delta, both: from_curve(eps, delta, symmetric=both)
    ),
    "poisson_subsampled": Kind(PoissonSubsampled, ("base", "q"), poisson_subsampled),
    "truncated_poisson_subsampled": Kind(
        TruncatedPoisson,
        ("base", "q", "dataset_size", "max_batch", "assume_fixed_n"),
        lambda base, q, n, size, fixed: truncated_poisson_subsampled(
            base, q, dataset_size=n, max_batch=size, assume_fixed_n=fixed
        ),
    ),
    "cyclic_poisson": Kind(
        CyclicPoisson,
        ("base", "q", "iterations", "bands", "dataset_size", "max_batch", "column_norms", "per_record"),
        lambda base, q, t, b, n, size, norms, own: cyclic_poisson(
            base, q, iterations=t, bands=b, dataset_size=n, max_batch=size, column_norms=norms, per_record=own
        ),
    ),
}

_NAMES = {kind.cls: name for name, kind in KINDS.items()}


def to_json(step: Mechanism) -> dict[str, Any]:
    """A step as a JSON-able dict: "kind" and its parameters, a nested step as a nested dict.

    Floats stay floats; `json` writes the shortest text that reads back to the same double.

    Raises
    ------
    DomainError
        If the mechanism has no row in `KINDS`.
    """
    name = _NAMES.get(type(step))
    if name is None:
        raise DomainError(f"cannot serialise {step!r}; serialisable kinds: {_listed(KINDS)}")
    params = {p: getattr(step, p) for p in KINDS[name].params}
    return {"kind": name, **{p: _out(v) for p, v in params.items()}}


def _out(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_out(v) for v in value]
    return to_json(value) if isinstance(value, Mechanism) else value


def _in(value: Any) -> Any:
    if isinstance(value, list):
        return [_in(v) for v in value]
    return from_json(value) if isinstance(value, dict) else value


def from_json(state: Any) -> Mechanism:
    """The step that `to_json` described. Strict: unknown kinds, missing keys and unknown keys are refused.

    Raises
    ------
    DomainError
        Naming what was found and what is allowed.
    """
    if not isinstance(state, dict) or "kind" not in state:
        raise DomainError(f'a step must be a dict with a "kind", got {brief(state)}')
    name = state["kind"]
    if not isinstance(name, str) or name not in KINDS:
        raise DomainError(f"unknown kind of step {brief(name)}; allowed: {_listed(KINDS)}")
    kind = KINDS[name]
    exact_keys(f"step of kind {name!r}", state, ("kind", *kind.params))
    values = (state[p] for p in kind.params)
    return kind.build(*(_in(v) for v in values))


def exact_keys(what: str, state: Any, allowed: tuple[str, ...]) -> None:
    """DomainError unless `state` is a dict with exactly the keys `allowed`."""
    if not isinstance(state, dict):
        raise DomainError(f"{what} must be a dict with keys {_listed(allowed)}, got {brief(state)}")
    for key in state:
        if key not in allowed:
            raise DomainError(f"{what} has unknown key {brief(key)}; allowed: {_listed(allowed)}")
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


def read_log(stream: BinaryIO, name: str, *, allow_unterminated: bool = False, allow_empty: bool = False) -> Run:
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
    allow_unterminated : bool, default False
        Take a last line without a line end. It is refused by default: a log cut short by a crash may end in
        "1.0,0.01,1" where "1.0,0.01,1000" was written.
    allow_empty : bool, default False
        Take a log without any step, as the empty run.

    Returns
    -------
    Run
        Equal steps merged, in order of first appearance.

    Raises
    ------
    DomainError
        "name:line: what is wrong" at the first malformed line, or if the log holds no step.
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
                if not allow_unterminated:
                    require_line_end(raw.endswith(b"\n"))
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
    if not counts and not allow_empty:
        raise DomainError(
            f"{name}: empty log, no step in {number} lines; expected a CSV header ({','.join(COLUMNS)}) and rows, or JSON "
            "lines (--allow-empty takes it as a run without steps)"
        )
    return Run(tuple((step, counts[key]) for key, step in steps.items()))


def require_line_end(ended: bool) -> None:
    """DomainError unless the last line of a file `ended`: what stands there may be the beginning of what was written."""
    if not ended:
        raise DomainError(
            "the last line has no line end, so the file may have been cut short; complete it (--allow-unterminated takes the "
            "line as it stands)"
        )


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
                f"unknown column {brief(name)} in the CSV header; allowed: {_listed(COLUMNS)} "
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
            raise DomainError(f"{name} must be a number, got {brief(field)}") from None
    return (row["sigma"], row.get("q", 1.0)), _steps(row)


def _parse_json(text: str) -> tuple[tuple[float, float], int]:
    try:
        row = _ROW.decode(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, DomainError):
            raise
        raise DomainError(f"not one JSON object per line: {error}") from None
    if not isinstance(row, dict):
        raise DomainError(f"expected a JSON object with keys {_listed(COLUMNS)}, got {brief(row)}")
    for key in row:
        if key not in COLUMNS:
            raise DomainError(f"unknown key {brief(key)}; allowed: {_listed(COLUMNS)}")
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


def brief(value: Any) -> str:
    """`value` in at most 60 characters, for messages."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(names) -> str:
    return ", ".join(names)
