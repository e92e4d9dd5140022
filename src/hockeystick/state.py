"""What ran and what it cost, as JSON, so that a ledger can keep what ran and recompute.

    run     {"format": "hockeystick.run", "version": 1, "parts": [{"step": ..., "count": ...}]}
            the same as "hockeystick.accountant" is the state of an accountant, which is read as its run
    moments {"format": "hockeystick.moments", "version": 1, "rates": [{"q", "boxes": [{"box", "sums"}]}]}
            a run whose list was not kept: whole numbers of over 64 bits (csrc/step_moments.c), for every sampling rate;
            of more than 256 rates also "cells": [{"cell", "box", "sums"}]
    bound   {"format": "hockeystick.bound", "version": 1, "lower", "estimate", "upper", "route", "certified",
             "budget": {"unit", "terms"}}

A step is {"kind": ..., parameters} as in serial.py. Floats are numbers whose shortest text reads back to the same
double, infinite ones the strings "inf" and "-inf", arrays nested lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import serial
from .bound import Bound, Budget, DomainError
from .recorded import RecordedRun, from_moments, moments_of, to_moments
from .what.mechanism import Mechanism, Recorder, Run, count, real

if TYPE_CHECKING:
    from .types import Ran

RUN, ACCOUNTANT, BOUND = "hockeystick.run", "hockeystick.accountant", "hockeystick.bound"
MOMENTS = "hockeystick.moments"
VERSION = 1
"""Of all formats. A release reads every version up to its own."""


def to_json(what: Ran | Bound[Any], *, indent: int | None = None) -> str:
    """A step, a run, an accountant's run or a bound as JSON text, which `from_json` reads back exactly, floats
    included.

    Parameters
    ----------
    what : Mechanism, Run, Accountant or Bound
        What ran, or what a query returned.
    indent : int, optional
        Spaces of every level; one line without it.

    Returns
    -------
    str
        The JSON text of `to_dict(what)`.

    Raises
    ------
    DomainError
        If a mechanism has no JSON form.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.1), 0.01) * 1000
    >>> hs.from_json(hs.to_json(run)) == run
    True
    """
    return json.dumps(to_dict(what), allow_nan=False, indent=indent)


def to_dict(what: Ran | Bound[Any]) -> dict[str, Any]:
    """A step, a run, an accountant's run or a bound as a dict that `json` writes and `from_dict` reads back exactly.

    The layouts are at the head of state.py; "format" and "version" name those of runs and bounds.

    Parameters
    ----------
    what : Mechanism, Run, Accountant or Bound
        What ran, or what a query returned.

    Returns
    -------
    dict
        Of dicts, lists, strings, numbers and booleans.

    Raises
    ------
    DomainError
        If a mechanism has no JSON form.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.to_dict(hs.gaussian(2.0))
    {'kind': 'gaussian', 'sigma': 2.0, 'sensitivity': 1.0}
    """
    if isinstance(what, Recorder):
        what = what.run
    if isinstance(what, Bound):
        ends = {name: _plain(getattr(what, name)) for name in ("lower", "estimate", "upper")}
        budget = {"unit": what.budget.unit, "terms": {name: _plain(term) for name, term in what.budget.terms.items()}}
        kept = {"route": what.route, "certified": bool(what.certified), "budget": budget}
        return {"format": BOUND, "version": VERSION, **ends, **kept}
    if isinstance(what, Run):
        if not what.listed:
            return {"format": MOMENTS, "version": VERSION, **to_moments(moments_of(what))}
        parts = [{"step": serial.to_json(step), "count": n} for step, n in what.parts]
        return {"format": RUN, "version": VERSION, "parts": parts}
    return serial.to_json(what)


def from_json(text: str | bytes | dict[str, Any]) -> Mechanism | Run | Bound[Any]:
    """What `to_json` wrote. Strict: unknown formats, versions, kinds and keys, and missing keys are refused.

    Parameters
    ----------
    text : str or bytes
        From `to_json`. A dict is taken as `from_dict` takes it.

    Returns
    -------
    Mechanism, Run or Bound
        Equal to what was written. A bound is a record: to know that it still holds, ask the run again.

    Raises
    ------
    DomainError
        Naming what was found and what is allowed.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.from_json('{"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}')
    Laplace(scale=2.0, sensitivity=1.0)
    """
    if isinstance(text, str | bytes):
        try:
            return from_dict(json.loads(text))
        except (ValueError, RecursionError) as error:
            if isinstance(error, DomainError):
                raise
            raise DomainError(f"not JSON text: {error}; got {serial.brief(text)}") from None
    return from_dict(text)


def from_dict(state: dict[str, Any]) -> Mechanism | Run | Bound[Any]:
    """What `to_dict` described. Strict: unknown formats, versions, kinds and keys, and missing keys are refused.

    Parameters
    ----------
    state : dict
        From `to_dict`, possibly through JSON.

    Returns
    -------
    Mechanism, Run or Bound
        Equal to what was written. A bound is a record: to know that it still holds, ask the run again.

    Raises
    ------
    DomainError
        Naming what was found and what is allowed.

    Examples
    --------
    >>> import hockeystick as hs
    >>> bound = hs.epsilon(hs.gaussian(2.0) * 4, 1e-6)
    >>> hs.from_dict(hs.to_dict(bound)) == bound
    True
    """
    if isinstance(state, dict) and "format" in state:
        if state["format"] not in tuple(READERS):
            raise DomainError(f"unknown format {serial.brief(state['format'])}; allowed: {', '.join(READERS)}")
        version = state.get("version")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise DomainError(
                f"{state['format']} has version {serial.brief(version)}; this release reads up to {VERSION}"
            )
        return READERS[state["format"]](state)
    return serial.from_json(state)


def _read_run(state: dict[str, Any]) -> Run:
    serial.exact_keys("run", state, ("format", "version", "parts"))
    if not isinstance(state["parts"], list | tuple):
        raise DomainError(f"parts of a run must be a list, got {serial.brief(state['parts'])}")
    merged: dict[Mechanism, int] = {}
    for i, part in enumerate(state["parts"]):
        try:
            serial.exact_keys("part", part, ("step", "count"))
            step, n = serial.from_json(part["step"]), count("count", part["count"])
            merged[step] = count("total count of a step", merged.get(step, 0) + n)
        except DomainError as error:
            raise DomainError(f"parts[{i}]: {error}") from None
    return Run(tuple(merged.items()))


def _read_moments(state: dict[str, Any]) -> Run:
    serial.exact_keys("moments", state, ("format", "version", "rates", *(("cells",) if "cells" in state else ())))
    moments = from_moments(state)
    return RecordedRun({}, moments, moments)


def _read_bound(state: dict[str, Any]) -> Bound[Any]:
    ends = ("lower", "estimate", "upper")
    serial.exact_keys("bound", state, ("format", "version", *ends, "route", "certified", "budget"))
    serial.exact_keys("budget", state["budget"], ("unit", "terms"))
    terms = state["budget"]["terms"]
    texts = (state["route"], state["budget"]["unit"])
    if (
        not isinstance(terms, dict)
        or type(state["certified"]) is not bool
        or not all(isinstance(t, str) for t in texts)
    ):
        raise DomainError(
            "a bound needs a string route, a boolean certified, and a budget of a string unit and a dict of terms"
        )
    low, mid, high = (_number(name, state[name]) for name in ends)
    if (
        np.shape(low) != np.shape(high)
        or np.shape(low) != np.shape(mid)
        or not np.all(np.asarray(low) <= np.asarray(high))
    ):
        raise DomainError(
            f"a bound needs lower <= upper of one shape, got {serial.brief(state['lower'])},"
            f" {serial.brief(state['upper'])}"
        )
    budget = Budget({name: _number(name, term) for name, term in terms.items()}, state["budget"]["unit"])
    return Bound(low, mid, high, state["route"], state["certified"], budget)


READERS: dict[str, Callable[[dict[str, Any]], Run | Bound[Any]]] = {
    RUN: _read_run,
    ACCOUNTANT: _read_run,
    MOMENTS: _read_moments,
    BOUND: _read_bound,
}


def _plain(value: Any) -> Any:
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
            raise DomainError(f"{name} must be a number or a regular array, got {serial.brief(value)}") from None
    number = float(value) if value in ("inf", "-inf") else real(name, value, 'or "inf" or "-inf"')
    if number != number:
        raise DomainError(f'{name} must be a number, "inf" or "-inf", got {serial.brief(value)}')
    return number
