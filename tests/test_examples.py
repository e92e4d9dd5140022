"""The examples in the docstrings and in the README run and print what they say."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import hockeystick

README = Path(__file__).parents[1] / "README.md"
MODULES = ["hockeystick"] + [
    module.name
    for module in pkgutil.walk_packages(hockeystick.__path__, "hockeystick.")
    if not module.name.endswith("__main__")
]


EXTRAS = {"bokeh", "dp_accounting", "opacus", "matplotlib", "pipeline_dp"}
"""Packages that a module here may need and an installation may lack."""


def load(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        return None


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = load(name)
    if module is None:
        pytest.skip("an optional package is not installed")
    failed, _ = doctest.testmod(module)
    assert not failed


def test_docstrings_have_examples():
    finder = doctest.DocTestFinder()
    assert sum(len(t.examples) for name in MODULES if load(name) for t in finder.find(load(name))) > 5


def test_readme():
    if not README.exists() or ">>> " not in README.read_text(encoding="utf-8"):
        pytest.skip("the README has no examples")
    failed, _ = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert not failed


def test_contributing_names_tests_that_exist():
    here = Path(__file__).parent
    text = (here.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = re.findall(r"test_[a-z_]+\*?", text)
    assert len(names) > 30 and all(any(here.glob(f"{name}.py")) for name in names)
