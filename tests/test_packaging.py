"""What the package says of itself to an installer."""

import re
from pathlib import Path

import pytest

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


def test_no_size_has_the_width_of_long():
    """A long has 32 bits on Windows: sizes and indices of the C floor and of its gate are int64_t."""
    root = Path(__file__).parent.parent
    files = [*root.glob("csrc/**/*.[ch]"), *root.glob("src/hockeystick/_core*.p[yx][xdi]")]
    assert any(path.suffix == ".c" for path in files)
    for path in files:
        code = re.sub(
            r'/\*.*?\*/|""".*?"""|"(?:\\.|[^"\\\n])*"|//[^\n]*|# [^\n]*', "", path.read_text("utf-8"), flags=re.DOTALL
        )
        assert not re.findall(r"^.*\blong\b(?! double).*$", code, re.MULTILINE), path
