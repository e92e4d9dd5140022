"""The gate: every status of the C floor maps to an error or passes; both sides agree on their number."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick import _core

PASSES = {"HS_OK", "HS_LOOSE"}
DOMAIN = {"HS_BAD_ARGUMENT"}
NAMES = [
    "HS_OK",
    "HS_LOOSE",
    "HS_BAD_ARGUMENT",
    "HS_SCRATCH",
    "HS_NO_SADDLE",
    "HS_NO_PATH",
    "HS_NO_DECAY",
    "HS_TOO_MANY_NODES",
    "HS_TOO_WIDE",
    "HS_NO_BRACKET",
    "HS_OUT_OF_RANGE",
    "HS_INTERRUPTED",
]
"""Append only: the position is the code."""

HEADER = Path(__file__).parents[1] / "csrc" / "hs.h"


@pytest.mark.parametrize("name", NAMES)
def test_every_status(name):
    code = NAMES.index(name)
    if name in PASSES:
        assert _core.check(code, "here") is None
        return
    kind = hs.DomainError if name in DOMAIN else hs.AccuracyError
    with pytest.raises(kind, match=r"^here: .+") as caught:
        _core.check(code, "here")
    assert caught.value.code == code
    assert "unknown" not in str(caught.value)
    assert isinstance(caught.value, hs.HockeystickError)
    assert isinstance(caught.value, ValueError if name in DOMAIN else ArithmeticError)


@pytest.mark.parametrize("code", [-1, len(NAMES), 1000, -(2**31), 2**31 - 1])
def test_unknown_status(code):
    with pytest.raises(hs.AccuracyError, match="unknown status") as caught:
        _core.check(code)
    assert caught.value.code == code


@pytest.mark.skipif(not HEADER.exists(), reason="the C sources are not here")
def test_header_agrees():
    found = re.findall(r"^\s*(HS_[A-Z_]+) = (\d+)(?:,|$|\s)", HEADER.read_text().split("};")[0], re.M)
    assert [(name, int(code)) for name, code in found] == [(name, i) for i, name in enumerate(NAMES)]


def test_stubs_name_the_arguments_of_the_gate():
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
    stubs = {f.name: [a.arg for a in f.args.args] for f in stub.body if isinstance(f, ast.FunctionDef)}
    gate = {name: f for name, f in vars(_core).items() if callable(f) and not name.startswith("_") and inspect.isroutine(f)}
    gate = {name: f for name, f in gate.items() if getattr(f, "__module__", "") == _core.__name__}
    assert stubs.keys() == gate.keys()
    for name, f in gate.items():
        assert list(inspect.signature(f).parameters) == stubs[name], name
