"""Constants of rounding one at a time (tests/covers.py): the table names what there is; slow: every row holds."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import covers
import hockeystick as hs
from covers_build import mutants

HERE = Path(__file__).resolve().parent


SOURCES = ("csrc/", "src/") if (HERE.parent / "src").exists() else ("csrc/",)  # an installed wheel has no src beside it


@pytest.fixture(scope="module")
def rows():
    table = json.loads(covers.TABLE.read_text())
    return {name: row for name, row in table.items() if name.startswith(SOURCES)}


def test_every_query_answers():
    """None asks for a name that is gone."""
    covers.scope(hs)
    for name, text in covers.probes().items():
        assert eval(text, covers.SCOPE) is not None, name


def test_rows_name_queries_and_places(rows):
    known = covers.probes()
    assert len(rows) > 100
    for row in rows.values():
        assert row["query"] in known
        assert 0 < row["takes"] <= covers.SHARE
        places = [place.split(" ", 1)[0] for place in row["operations"]]
        assert places
        assert all((HERE.parent / place).exists() for place in places if place.startswith(SOURCES)), places


def test_rows_are_of_constants(rows):
    """But for claims rewritten since; which constants have no row stands in benchmarks/mutants_explained.md."""
    constants = dict(enumerate(site for site in mutants.all_sites() if site.what == "slack"))
    named = mutants.named(constants)
    names = {covers.name_of({**named[at], "path": s.path, "within": s.within}) for at, s in constants.items()}
    assert len(names) == len(constants)
    assert len(names & set(rows)) > 0.8 * len(rows)


def test_every_other_constant_has_its_measured_reason(rows):
    left = json.loads(covers.LEFT.read_text())
    assert not set(left) & set(rows)
    for row in left.values():
        reason = row.pop("reason")
        assert reason == covers.Left(**row).reason


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("clang-14"), reason="the build needs clang")
def test_every_constant_covers_its_operations(tmp_path):
    command = [sys.executable, "-m", "tests.covers", "--build", str(tmp_path)]
    subprocess.run(command, cwd=HERE.parent, check=True)
