"""What the package says of itself to an installer."""

import ast
import graphlib
import itertools
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import hockeystick

tomllib = pytest.importorskip("tomllib")
PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("machine", "python", "implementation", "wanted"),
    [
        ("x86_64", "3.10", "cpython", True),
        ("x86_64", "3.14", "cpython", True),
        ("AMD64", "3.12", "cpython", True),
        ("aarch64", "3.11", "cpython", True),
        ("arm64", "3.13", "cpython", True),
        ("ARM64", "3.13", "cpython", False),  # Windows
        ("riscv64", "3.13", "cpython", False),
        ("ppc64le", "3.13", "cpython", False),
        ("x86_64", "3.15", "cpython", False),
        ("x86_64", "3.11", "pypy", False),
    ],
)
def test_pyfftw_is_asked_for_where_it_has_wheels(machine, python, implementation, wanted):
    requirements = pytest.importorskip("packaging.requirements")
    (pyfftw,) = (r for r in map(requirements.Requirement, PROJECT["dependencies"]) if r.name == "pyfftw")
    place = {"platform_machine": machine, "python_version": python, "implementation_name": implementation}
    assert pyfftw.marker.evaluate(place) is wanted


ROOT = Path(__file__).parent.parent


def test_no_size_has_the_width_of_long():
    """A long has 32 bits on Windows: sizes and indices of the C floor and of its gate are int64_t."""
    files = [*ROOT.glob("csrc/**/*.[ch]"), *ROOT.glob("src/hockeystick/_core*.p[yx][xdi]")]
    assert any(path.suffix == ".c" for path in files)
    for path in files:
        code = re.sub(
            r'/\*.*?\*/|""".*?"""|"(?:\\.|[^"\\\n])*"|//[^\n]*|# [^\n]*', "", path.read_text("utf-8"), flags=re.DOTALL
        )
        assert not re.findall(r"^.*\blong\b(?! double).*$", code, re.MULTILINE), path


TYPE = r"(?:double|float|int|long double|size_t|u?int\d+_t|hs_\w+)"


def without_brackets(code):
    """`code` without what stands in round, square or curly brackets."""
    while (less := re.sub(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}", "", code)) != code:
        code = less
    return code


def test_c_is_readable():
    """At most nine arguments of a function, four names in a declaration, 120 columns."""
    function = re.compile(r"^(?:static |inline |HS_CLONES )*[\w *]+?\b(\w+)\(([^;{}]*?)\)\s*\{", re.MULTILINE)
    declaration = re.compile(rf"^\s*(?:const |static )*{TYPE} ([^;{{}}]*);", re.MULTILINE)
    seen = 0
    for path in (*ROOT.glob("csrc/**/*.[ch]"), *ROOT.glob("tests/csrc/*.[ch]")):
        text = path.read_text("utf-8")
        assert max(map(len, text.splitlines())) <= 120, path
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        for name, arguments in function.findall(code):
            seen += 1
            assert without_brackets(arguments).count(",") < 9, (path, name)
        for names in declaration.findall(code):
            assert without_brackets(names).count(",") < 4, (path, names)
    assert seen > 300


def test_functions_of_c_are_short():
    """At most 60 lines and 600 tokens: a name, a number or a sign each."""
    head = re.compile(r"^(?!\s|#|typedef|struct|enum|extern|\})[\w *]+?\b(\w+)\([^;{}]*?\)\s*\{", re.MULTILINE)
    seen, long = 0, {}
    for path in ROOT.glob("csrc/**/*.[ch]"):
        code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text("utf-8"), flags=re.DOTALL)
        for found in head.finditer(code):
            depth, end = 1, found.end()
            while depth:
                brace = re.compile("[{}]").search(code, end)
                depth, end = depth + (1 if brace[0] == "{" else -1), brace.end()
            body = code[found.start() : end]
            lines, tokens = body.count("\n") + 1, len(re.findall(r"\w+|[^\s\w]", body))
            seen += 1
            if lines > 60 or tokens > 600:
                long[found[1]] = (path.name, lines, tokens)
    assert seen > 300
    assert not long, long


def test_local_names_of_c_are_of_one_file():
    local = re.compile(r"^(?:HS_CLONES )?static (?:inline |HS_CLONES |const )*[\w *]+?\b(\w+)\(", re.MULTILINE)
    held: dict[str, set[str]] = {}
    for path in ROOT.glob("csrc/**/*.[ch]"):
        for name in local.findall(path.read_text("utf-8")):
            held.setdefault(name, set()).add(path.name)
    assert len(held) > 300
    assert not {name: files for name, files in held.items() if len(files) > 1}


def test_every_constant_can_be_tuned():
    tool = ROOT / "benchmarks/tune.py"
    said = subprocess.run([sys.executable, str(tool), "--list"], capture_output=True, text=True, check=True).stdout
    listed = [line.split()[0] for line in said.splitlines()]
    assert listed == re.findall(r"^#define (HS_\w+) \S", (ROOT / "csrc/tuning.h").read_text(), re.MULTILINE)


def test_who_changes_a_file_is_told_what_to_run():
    """Every source file and every test is in a row of CONTRIBUTING.md, and what a row names exists."""
    root = Path(__file__).parent.parent
    table = (root / "CONTRIBUTING.md").read_text("utf-8").split("| a change of | asks for |")[1].split("\n\n")[0]
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    names = {name for files, _ in rows for name in re.findall(r"`([^`]+)`", files)}
    rooms = root / "csrc", Path(hockeystick.__file__).parent
    sources = [path.as_posix() for room in rooms for path in room.rglob("*.[chp]*")]
    used = {n for n in names for s in sources if fnmatch(s, f"*/{n}") or (n.endswith("/") and f"/hockeystick/{n}" in s)}
    assert names - used <= {"docs/", "docs/theory", ".ci/", "README.md", "setup.py", "pyproject.toml"}
    for path in sources:
        covered = any(fnmatch(path, f"*/{n}") or (n.endswith("/") and f"/hockeystick/{n}" in path) for n in names)
        assert covered or path.endswith((".pyc", "/__init__.py", "/__main__.py")), path
    asked = {name for _, tests in rows for name in re.findall(r"test_[\w*]+", tests)}
    found = {name: {path.stem for path in (root / "tests").glob(f"{name}.py")} for name in asked}
    assert all(found.values())
    assert {path.stem for path in (root / "tests").glob("test_*.py")} == set().union(*found.values())


BELOW = {
    "what": {"_core", "arguments", "bound", "gauss", "outward", "scratch", "what"},
    "grid": {"_core", "bound", "grid", "outward", "threads", "what"},
    "routes": {"_core", "answers", "arguments", "bound", "compression", "gauss", "grid", "outward", "routes", "scratch"}
    | {"rules", "threads", "what"},
    "inner": {"bound", "inner", "outward", "query", "routes", "what"},
    "judge": {"arguments", "bound", "judge", "what"},
}
"""What the files of a folder may import; everything but types counts, wherever the import stands."""


def test_arrows_point_down():
    source, seen = Path(hockeystick.__file__).parent, 0
    for path in (p for folder in BELOW for p in (source / folder).glob("*.py")):
        inside = path.relative_to(source)
        allowed = BELOW[inside.parts[0]]
        tree = ast.parse(path.read_text("utf-8"))
        for check in [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]:
            check.body = [ast.Pass()]
        for found in ast.walk(tree):
            if isinstance(found, ast.ImportFrom) and found.level:
                names = [found.module] if found.module else [name.name for name in found.names]
                base = [] if found.level == 2 else [inside.parts[0]]
                for name in names:
                    seen += 1
                    assert ".".join([*base, name]).split(".")[0] in allowed, (inside, name)
    assert seen > 200


def test_no_circles_among_modules():
    """Modules import none that import them, by whatever way, wherever the imports stand, those for types included."""
    source = Path(hockeystick.__file__).parent
    files = {".".join(p.relative_to(source).with_suffix("").parts): p for p in source.rglob("*.py")}
    arrows = {}
    for name, path in files.items():
        folder, arrows[name] = name.split(".")[:-1], set()
        for found in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(found, ast.ImportFrom) and found.level:
                base = [*folder[: len(folder) + 1 - found.level], *(found.module or "").split(".")]
                for one in found.names:  # a module, or a name in one
                    paths = (".".join(filter(None, x)) for x in ([*base, one.name], base))
                    arrows[name].update(itertools.islice((x for x in paths if x in files and x != name), 1))
    assert sum(map(len, arrows.values())) > 500
    graphlib.TopologicalSorter(arrows).prepare()


C_BELOW = {
    "law": {"law"},
    "grid": set(),
    "line": {"law", "line"},
    "curve": {"curve", "law", "line"},
    "clt": {"clt", "law", "line"},
}
"""What the files of a folder of csrc may include, beside the contract and elementary functions."""


def test_arrows_of_c_point_down():
    included = re.compile(r'^#include "(\w+)/', re.MULTILINE)
    for folder, allowed in C_BELOW.items():
        for path in (ROOT / "csrc" / folder).glob("*.[ch]"):
            assert set(included.findall(path.read_text("utf-8"))) <= allowed, path


def test_no_circles_among_files_of_c():
    """Files call none that call them, by whatever way."""
    texts = {
        path: re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.S) for path in (ROOT / "csrc").rglob("*.c")
    }
    head = re.compile(r"^(?!static|#)[\w *]*?\b(hs_\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
    of = {name: path for path, text in texts.items() for name in head.findall(text)}
    arrows = {
        path: {of[name] for name in re.findall(r"\bhs_\w+", text) if of.get(name, path) != path}
        for path, text in texts.items()
    }
    assert len(of) > 200 and sum(map(len, arrows.values())) > 100
    graphlib.TopologicalSorter(arrows).prepare()
