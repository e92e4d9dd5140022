"""The script that type checkers read (.ci/run) names every public name, and runs."""

import re
from pathlib import Path

import hockeystick as hs
import typing_script


def test_the_script_names_every_public_name():
    text = Path(typing_script.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r"\bhs\.(\w+)", text))
    assert not [name for name in hs.__all__ if name not in named]


def test_the_script_runs(tmp_path):
    folder = tmp_path
    run = typing_script.steps()
    typing_script.queries(run, "add_remove", "both", "auto")
    typing_script.records(folder)
    typing_script.errors()
