"""The examples in the docstrings and in all pages of documents run and print what they say."""

import doctest
import importlib
import logging
import pkgutil
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

import hockeystick
import pages
from hockeystick import cli
from pages import BLOCK, CAPTION, PAGES, SHELLS, commands, inside

ROOT = Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
IMPORT = re.compile(r"^ *(?:>>> )?(?:import|from) (\w+)", re.MULTILINE)
OPTIONAL = {"dp_accounting", "flint", "jax_privacy", "matplotlib", "opacus", "prv_accountant", "torch"}
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


def marked(value, path, name):
    """A parameter, marked where its file imports optional packages; flint comes with the extra "test"."""
    named = set(IMPORT.findall(Path(path).read_text(encoding="utf-8", errors="replace")))
    packages = named & (OPTIONAL | EXTRAS) - {"flint"}
    return pytest.param(value, id=name, marks=[pytest.mark.extra] if packages else [])


@pytest.mark.parametrize("name", [marked(name, find_spec(name).origin, name) for name in MODULES])
def test_docstrings(name):
    module = load(name)
    if module is None:
        pytest.skip("an optional package is not installed")
    failed, _ = doctest.testmod(module)
    assert not failed


def test_docstrings_have_examples():
    finder = doctest.DocTestFinder()
    assert sum(len(t.examples) for name in MODULES if load(name) for t in finder.find(load(name))) > 5


@pytest.mark.parametrize("page", [marked(page, page, page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_pages(page, tmp_path, monkeypatch, capsys):
    """Every block of a page, in order, in a folder of its own: Python as it would be typed, commands and what they
    print, files by their captions. A section that imports an optional package which is not installed is passed over.
    """
    monkeypatch.chdir(tmp_path)
    names, missing, text = {}, False, page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    fences = sum(2 for block in blocks if block["fence"])
    assert fences == len(re.findall(r"^\s*`{3,}", text, re.MULTILINE)), "a fence that is indented, or not closed"
    for block in blocks:
        if block["heading"]:
            missing = False
            continue
        line, language, body = text[: block.start()].count("\n") + 1, block["language"] or "", block["body"]
        caption = CAPTION.search(body)
        missing = missing or any(find_spec(package) is None for package in set(IMPORT.findall(body)) & OPTIONAL)
        if caption:
            (tmp_path / caption[1]).write_text(body.split("\n\n", 1)[1], encoding="utf-8")
        elif language == "python" and not missing:
            assert ">>> " in body, f"{page.name}:{line}: Python that is not run"
            test = doctest.DocTestParser().get_doctest(body, names, page.name, str(page), line)
            said = []
            assert (
                not doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
                .run(test, out=said.append, clear_globs=False)
                .failed
            ), "".join(said)
            names.update(test.globs)
        elif language in SHELLS and not missing:
            for command, expected in commands(language, body):
                printed = run(command, capsys)
                right = expected is None or doctest.OutputChecker().check_output(expected, printed, FLAGS)
                assert right, f"{page.name}:{line}: {command} printed\n{printed}"

    logging.getLogger("hockeystick").setLevel(logging.NOTSET)


def run(command, capsys):
    """What `hockeystick ...` prints. Of other commands, which pages.py runs, the files that they name exist."""
    words = shlex.split(command, comments=True)
    ours = [word for word in words if re.fullmatch(r"(tests|benchmarks|docs)/[\w/.]+\.\w+", word)]
    assert all((ROOT / word).exists() for word in ours), command
    if not words or not inside(command):
        return ""
    words = [str(ROOT / word) if word in ours else word for word in words]
    capsys.readouterr()
    try:
        status = cli.main(words[1:])
    except SystemExit as end:
        status = end.code
    out = capsys.readouterr()
    assert status in (0, 3), f"{command} ends with {status}: {out.err}"
    return out.out + out.err


def test_what_a_shell_runs():
    """What takes long is a command of some page, and the other commands are all those that are not run above."""
    left = [command.split("#")[0].strip() for page in PAGES for command, caption in pages.outside(page) if not caption]
    assert set(pages.LONG) <= set(left)
    assert {command.split()[0] for command in left} == {"python", ".", "pip", "sphinx-build", "hockeystick", "pytest"}
    assert all(command.split()[1] == "explore" for command in left if command.startswith("hockeystick"))


def test_links():
    """Links of pages that are read as they are lead somewhere; a strict build of the site sees to the others. Files
    that a page names with their folder exist."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        assert all((page.parent / link).exists() for link in links), links
    for page in PAGES:
        named = re.findall(r"\b(?:tests|benchmarks|docs|csrc)/[\w/]+\.[a-z]+\b", page.read_text(encoding="utf-8"))
        missing = [name for name in named if not (ROOT / name).exists() and "/_build/" not in name]
        assert not missing, f"{page.name}: {missing}"


def test_the_reference_is_complete():
    if not (ROOT / "docs" / "api").exists():
        pytest.skip("the pages stand in the source tree only")
    text = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/api/*.md"))
    named = set(re.findall(r"^\.\. auto\w+:: (?:hockeystick\.)?(\w+)$", text, re.MULTILINE))
    assert set(hockeystick.__all__) <= named, set(hockeystick.__all__) - named


def test_contributing_names_tests_and_files_that_exist():
    here = Path(__file__).parent
    text = (here.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = re.findall(r"test_[a-z_]+\*?", text)
    assert len(names) > 30 and all(any(here.glob(f"{name}.py")) for name in names)
    rows = text[text.index("| a change of |") : text.index("## What a change must hold")]
    files = re.findall(
        r"`(?:\w+/)*([\w*]+\.\w+)`", "".join(line.split("|")[1] for line in rows.splitlines() if "|" in line)
    )
    places = [folder for folder in (ROOT / "csrc", ROOT / "src") if folder.exists()]
    if len(places) == 2:
        missing = [name for name in files if not any(any(place.rglob(name)) for place in (*places, ROOT))]
        assert len(files) > 40 and not missing, missing
