"""Constants of rounding one at a time (tests/covers.py): the table names what there is; slow: every row holds."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import covers
from covers_build import mutants

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def rows():
    return json.loads(covers.TABLE.read_text())


def test_rows_name_queries_and_places(rows):
    known = covers.probes()
    for row in rows.values():
        assert row["query"] in known
        assert 0 < row["takes"] <= covers.SHARE
        assert row["operations"]
        assert all((HERE.parent / place.split(" ", 1)[0]).exists() for place in row["operations"])


def test_rows_are_of_constants(rows):
    """But for claims rewritten since; which constants have no row stands in benchmarks/mutants_explained.md."""
    constants = dict(enumerate(site for site in mutants.all_sites() if site.what == "slack"))
    named = mutants.named(constants)
    names = {covers.name_of({**named[at], "path": s.path, "within": s.within}) for at, s in constants.items()}
    assert len(names) == len(constants)
    assert len(names & set(rows)) > 0.8 * len(rows)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("clang-14"), reason="the build needs clang")
def test_every_constant_covers_its_operations(tmp_path):
    command = [sys.executable, "-m", "tests.covers", "--build", str(tmp_path)]
    subprocess.run(command, cwd=HERE.parent, check=True)
