"""The script that type checkers read (.ci/run) names every public name, and runs."""

import re
import subprocess
import sys
from pathlib import Path

import hockeystick as hs
import typing_script


def test_the_script_names_every_public_name():
    text = Path(typing_script.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r"\bhs\.(\w+)", text))
    assert not [name for name in hs.__all__ if name not in named]


def test_a_star_import_needs_no_extra():
    """Every public name is there where no extra is installed; calling is another matter."""
    program = "import sys; sys.modules.update(flint=None, matplotlib=None); from hockeystick import *; verify"
    program += "\ntry: verify(gaussian(1.0), (0.0, 9.0), delta=1e-5)\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "hockeystick[verify]" in done.stdout and done.stderr == ""


def test_the_script_runs(tmp_path):
    folder = tmp_path
    run = typing_script.steps()
    typing_script.queries(run, "add_remove", "both", "auto")
    typing_script.records(folder)
    typing_script.errors()
