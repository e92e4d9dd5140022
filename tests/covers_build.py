"""The build of tests/covers.py: every operation has an amplitude by which it is off, every unit roundoff of a claim a
factor.

csrc is compiled by clang without inlining; in its intermediate code each sum, difference, product, quotient and root of
doubles becomes a call (csrc/lines.c), and the place of each call of a noisy function (csrc/noise.h) is noted before it.
In Python, + - * / @, sums, the functions of `math` and numpy, and what makes doubles of long doubles become calls of a
module `_lines`, but for what changes an array in place. What stands in special.h is off as a whole, and not within."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import mutants  # noqa: E402

FLAGS = """-std=c99 -O1 -fno-inline -fno-vectorize -fno-slp-vectorize -ffp-contract=off -fno-math-errno -fPIC -w
-fno-unroll-loops -gline-tables-only -D_POSIX_C_SOURCE=200809L -DHS_NO_CLONES -Icsrc -Itests/csrc -include
tests/csrc/noise.h -S -emit-llvm""".split()
RUN_TIME = "-std=c99 -O2 -ffp-contract=off -fno-builtin -fPIC -w -D_POSIX_C_SOURCE=200809L -Icsrc -Itests/csrc".split()
WHOLE = {"exp_bound"}
"""Functions whose argument is reduced by HS_MAGIC: they are noisy as a whole, by what they are raised by."""

OPERATIONS = {"fadd": "add", "fsub": "sub", "fmul": "mul", "fdiv": "div"}
PYTHON = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
FUNCTIONS = set("exp expm1 log log1p log2 sin cos tanh sinh erf erfc lgamma logaddexp sqrt fsum sum".split())
MOST = 1 << 16

CLAIMS = """#include <string.h>
extern double hs_claim_factor[];
extern unsigned char hs_claim_reached[];
static inline double hs_claim(int at) { hs_claim_reached[at] = 1; return hs_claim_factor[at]; }
"""

LINES = """
import ctypes
import math
import operator
from pathlib import Path

import numpy as np

core = ctypes.CDLL(str(next(Path(__file__).parent.glob("_core.*so"))))
amplitude, factor = (np.ctypeslib.as_array((ctypes.c_double * MOST).in_dll(core, "hs_" + x)) for x in
                     ("line_amplitude", "claim_factor"))
reached, claim_reached = (np.ctypeslib.as_array((ctypes.c_ubyte * MOST).in_dll(core, "hs_" + x)) for x in
                          ("line_reached", "claim_reached"))
factor[:] = 1
ACT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


def claim(at):
    claim_reached[at] = 1
    return float(factor[at])


def op(name, at, a, b):
    y = ACT[name](a, b)
    if amplitude[at] and isinstance(y, (float, np.ndarray)) and getattr(y, "dtype", np.float64) == np.float64:
        wide = ACT[name](np.asarray(a, np.longdouble), np.asarray(b, np.longdouble))
        return off(at, y, wide == y)
    reached[at] = 1
    return y


def cast(at, x, convert):
    # A double of a long double, which is rounded; of anything else it is what it was.
    y = convert(x)
    return off(at, y) if getattr(x, "dtype", None) == np.longdouble else y


def off(at, y, exact=False):
    reached[at] = 1
    if not amplitude[at] or not isinstance(y, (float, np.ndarray)):
        return y
    with np.errstate(all="ignore"):
        z = np.where(exact | ~np.isfinite(y), y, y + amplitude[at] * 2.0**-53 * np.abs(y))
    return type(y)(z) if not np.ndim(y) else z
"""


class Place(NamedTuple):
    """An operation: file, function, line, kind."""

    path: str
    function: str
    line: int
    kind: str


def _scopes(text: str):
    """From a location of debug information to (file, function, line)."""
    meta = dict(re.findall(r"^(!\d+) = (.*)$", text, flags=re.M))

    def field(at, pattern):
        found = re.search(pattern, meta.get(at, ""))
        return found[1] if found else ""

    def place(at: str) -> tuple[str, str, int]:
        line, scope = int(field(at, r"line: (\d+)") or 0), field(at, r"scope: (!\d+)")
        while scope and "DISubprogram" not in meta.get(scope, ""):
            scope = field(scope, r"scope: (!\d+)")
        return field(field(scope, r"file: (!\d+)"), r'filename: "([^"]+)"'), field(scope, r'name: "(\w+)"'), line

    return place


def noisy(text: str, places: list[Place], left_out: set[str]) -> str:
    """Intermediate code with calls in place of operations, whose places are appended."""
    place, lines, skip = _scopes(text), [], False
    operation = r"\s*(%[\w.]+) = (fadd|fsub|fmul|fdiv)(?: [a-z]+)* double ([^,]+), ([^,]+)"
    root = r"\s*(%[\w.]+) = (?:tail )?call double @(?:llvm\.sqrt\.f64|sqrt)\(double (?:noundef )?([^)]+)\)"
    for row in text.split("\n"):
        if row.startswith("define"):
            skip = re.search(r"@([\w.]+)\(", row)[1] in left_out
        of, at = re.match(operation, row) or re.match(root, row), len(places)
        called = re.search(r"call .*@hs_noisy_(\w+)\(", row)
        if not (of or called) or skip or row.startswith("declare"):
            lines.append(row)
            continue
        found = re.search(r", !dbg (!\d+)", row)
        tail = found[0] if found else ""
        kind = called[1] if called else OPERATIONS[of[2]] if of.lastindex == 4 else "sqrt"
        places.append(Place(*(place(found[1]) if found else ("", "", 0)), kind))
        if called:
            lines += [f"  store i32 {at}, i32* @hs_line", row]
        else:
            operands = ", ".join(f"double {x}" for x in of.groups()[(2 if of.lastindex == 4 else 1) :])
            lines.append(f"  {of[1]} = call double @hs_line_{kind}({operands}, i32 {at}){tail}")
    declared = [f"declare double @hs_line_{name}(double, double, i32)" for name in OPERATIONS.values()]
    declared += ["declare double @hs_line_sqrt(double, i32)", "@hs_line = external global i32"]
    at = next((i for i, row in enumerate(lines) if row.startswith("!")), len(lines))
    return "\n".join([*lines[:at], *declared, *lines[at:]])


class Operations(ast.NodeTransformer):
    """+ - * / and functions as calls of `_lines`."""

    def __init__(self, path: str, places: list[Place]):
        self.path, self.places, self.within = path, places, ""

    def visit_FunctionDef(self, node):
        before, self.within = self.within, node.name
        node.body = [self.visit(x) for x in node.body]
        self.within = before
        return node

    def number(self, node, kind):
        self.places.append(Place(self.path, self.within, node.lineno, kind))
        return ast.Constant(len(self.places) - 1)

    def visit_BinOp(self, node):
        if "_instrument.claim(" in ast.unparse(node.right) and isinstance(node.right, ast.Call):
            return node
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult) and self.within:
            return ast.Call(_lines("off"), [self.number(node, "sum"), node], [])
        if type(node.op) not in PYTHON or not self.within:
            return node
        kind = PYTHON[type(node.op)]
        return ast.Call(_lines("op"), [ast.Constant(kind), self.number(node, kind), node.left, node.right], [])

    def visit_Call(self, node):
        self.generic_visit(node)
        module, _, name = ast.unparse(node.func).rpartition(".")
        if self.within and name == "sum" and module and module != "np":
            return ast.Call(_lines("off"), [self.number(node, name), node], [])
        if self.within and len(node.args) == 1 and not node.keywords:
            if (module, name) == ("", "float"):
                return ast.Call(_lines("cast"), [self.number(node, "cast"), *node.args, node.func], [])
            if name == "astype" and ast.unparse(node.args[0]) == "float":
                convert = ast.parse("lambda x: x.astype(float)", mode="eval").body
                return ast.Call(_lines("cast"), [self.number(node, "cast"), node.func.value, convert], [])
        if module not in ("math", "np") or name not in FUNCTIONS or not self.within:
            return node
        return ast.Call(_lines("off"), [self.number(node, name), node], [])


def _lines(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name("_instrument", ast.Load()), name, ast.Load())


def with_claims(path: str, claims: dict) -> str:
    """A file in which every unit roundoff of a claim has its factor."""
    text = (ROOT / path).read_text()
    call = "_instrument.claim" if path.endswith(".py") else "hs_claim"
    for at, s in sorted(((at, s) for at, s in claims.items() if s.path == path), key=lambda pair: -pair[1].start):
        text = f"{text[: s.start]}({text[s.start : s.stop]} * {call}({at})){text[s.stop :]}"
    return text.replace("#define HS_U ", CLAIMS + "#define HS_U ", 1) if path == "csrc/special.h" else text


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def compile_floor(where: Path, claims: dict, places: list[Place], clang: str) -> list[Path]:
    """csrc with its claims and operations; the objects."""
    special = (ROOT / "csrc/special.h").read_text()
    left_out, objects = WHOLE | set(re.findall(r"static inline \w+ (hs_\w+)\(", special)), []
    tools = Path(shutil.which(clang)).resolve().parent
    for source in [*sorted((ROOT / "csrc").rglob("*.[ch]")), *sorted((ROOT / "tests/csrc").glob("*.[ch]"))]:
        path = source.relative_to(ROOT).as_posix()
        write(where / path, with_claims(path, claims))
    for source in sorted((ROOT / "csrc").rglob("*.c")):
        path = source.relative_to(ROOT).as_posix()
        code = where / (path.replace("/", "_")[:-2] + ".ll")
        subprocess.run([clang, *FLAGS, path, "-o", str(code)], cwd=where, check=True)
        subprocess.run([tools / "opt", "-passes=scalarizer", "-S", str(code), "-o", str(code)], check=True)
        write(code, noisy(code.read_text(), places, left_out))
        objects.append(code.with_suffix(".o"))
        subprocess.run([clang, "-O1", "-fPIC", "-w", "-c", str(code), "-o", str(objects[-1])], check=True)
    for name, more in (("noise", ["-DHS_NOISE_LINES", "-frounding-math"]), ("lines", [])):
        objects.append(where / f"{name}.o")
        words = ["gcc", *RUN_TIME, *more, "-c", f"tests/csrc/{name}.c", "-o", str(objects[-1])]
        subprocess.run(words, cwd=where, check=True)
    return objects


def build(where: Path, clang: str = "clang-14") -> None:
    """The package at `where`, and in `sites.json` what its numbers stand for. The gate is taken from the last build."""
    found = [s for s in mutants.all_sites() if s.what == "slack"]
    claims, places = dict(enumerate(found)), [Place("", "", 0, "")]
    objects = compile_floor(where, claims, places, clang)
    gate = max(ROOT.glob("build/temp*/src/hockeystick/_core.o"), key=lambda p: p.stat().st_mtime)
    package, source = where / "hockeystick", ROOT / "src/hockeystick"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("_core.*"))
    target = package / ("_core" + sysconfig.get_config_var("EXT_SUFFIX"))
    subprocess.run(["gcc", "-shared", "-fopenmp", *map(str, objects), str(gate), "-o", str(target), "-lm"], check=True)
    write(package / "_lines.py", f"MOST = {MOST}\n" + LINES)
    for path in sorted({s.path for s in found if s.path.endswith(".py")}):
        body = Operations(path, places).visit(ast.parse(with_claims(path, claims)))
        text = ast.unparse(ast.fix_missing_locations(body))
        future = re.search(r"^from __future__[^\n]*\n", text, flags=re.M)
        at = future.end() if future else 0
        write(
            where / path.removeprefix("src/"), text[:at] + "from hockeystick import _lines as _instrument\n" + text[at:]
        )
    names = mutants.named(claims)
    rows = [{**names[at], "path": s.path, "within": s.within} for at, s in claims.items()]
    write(where / "sites.json", json.dumps({"claims": rows, "places": places}))


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
