"""Mutants: does a test fail when one error term, one end of an interval or one slack constant is wrong?

    python benchmarks/mutants.py --state mutants.jsonl            # build, plan, run; resumes where it stopped
    python benchmarks/mutants.py --state mutants.jsonl --report   # the table, and the survivors
    python benchmarks/mutants.py --state mutants.jsonl --files transform.c contour.c

One build holds all mutants. A copy of the tree is instrumented: every site becomes a call of `hs_mutant(id, value,
kind)`, which returns its value unless the environment variable HS_MUTANT names the site. So a mutant costs a run of
tests, not a compilation, and the clean run of the same build shows that the instrument itself breaks nothing. The
sites, in csrc and in the Python bounds:

    bound     the value of every `return` of a function named _upper or _lower: by 1e-3 (1e3 where it is a lower bound;
              the other way where it is negative), or by log 1e-3 where the name has `log`
    budget    every assignment to a term of an error budget: by 1e-3; in Python, to a variable of such a name, if no
              slack constant is in it
    end       every term of a sum that is assigned to `lower` or `upper`, but the first: 0
    slack     every product with the unit roundoff: by 1e-3. Tests of answers see few of these; `python -m tests.covers`
              runs each where the operations that it pays for, and they alone, are off by much
    claim     all products with the unit roundoff of one function at once: by 1e-3. One constant mostly stands in a sum
              of several of its size, which cover for it; a function's whole claim nothing covers

Mutants are run in an order drawn by --seed, which a site keeps when others come and go.

Every test records once the sites at which a mutation would change a value. A mutant then meets the tests of its room
that reach it until one fails: programs, programs check_*_terms in a build whose rounding is worse (tests/csrc/noise.h),
Python modules. A site that none of them reaches is reported as not reached, and counts as a survivor. With --keep the
build and the records stay: later calls build what changed, tests or everything, and --again runs survivors again.
Survivors that are understood: mutants_explained.md."""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KEEP, SHRINK, GROW, SINK, RISE, DROP = range(6)
"""Kinds: nothing, times 1e-3, times 1e3, minus log 1e3, plus log 1e3, zero."""

TESTS = {
    "contour line transform twosided cgf": "contour truth sparse shifts saddlepoint prawitz sampling moments",
    "hyperbola": "contour truth lattice",
    "root sum metric": "contour laplace lattice prawitz individual_epsilons",
    "mixed law laplace subnormal": "laplace lattice losses mechanisms",
    "saddle": "saddlepoint laws moments",
    "prawitz edgeworth eeai finite_sample": "prawitz edgeworth eeai compression",
    "pld tails grid convolve evolve dots cells _fft": "terms_grid pld prv losses lemmas pld_bridge",
    "prv": "terms_grid prv",
    "individual": "individual_epsilons individual_anchors individual_filters individual_records individual_dpsgd",
    "batch": "batch",
    "sampling batches": "sampling truth sampling_brute sampling_runs",
    "moments cumulant bounds single next jumps shifts lattice mixed general table contour saddlepoint saddle_laws": (
        "terms_grid moments jumps shifts laplace lattice laws truth contour answers"
    ),
    "pair loss law loss_steps discrete given": "losses lemmas mechanisms pld lattice sampling_contour shifts groups",
    "query arguments worst bound outward answers": "outward answers contour budget truth mechanisms",
    "topk ranged range selection": "topk ranged selection",
    "allocation one_term option parts": (
        "allocation_path allocation allocation_density allocation_epoch allocation_parts"
    ),
    "mixture condensed": "matrix shifts groups",
    "kept placed": "kept placed",
    "composed few near": "composed near jumps mechanisms",
    "compression step_moments wide rates fit orders contour": "compression wide rates arrays",
    "jumps walls bulk few counts part": "jumps sparse extreme_laws",
    "shuffling attacks sampled": "shuffling attacks sampled selection",
    "risk chords calibration search gdp": "risk risk_gdp calibrate",
}
"""Prefixes of files (C or Python) and the test modules of their room. Every room also has test_bounds, test_truth,
test_laws, test_attack and the programs tests/csrc/check_*.c, which are compiled with the mutants in."""

BUDGET = """rounding inner tail truncation alias_left alias_right aliasing err round dropped slack smooth trunc alias
quad""".split()


BUDGET_PYTHON = "rounding truncation aliasing error err dropped slack quadrature".split()

SLACK = re.compile(r"\b(U|ULP|LDBL_ULP|log_slack)\b")
"""Names of the unit roundoff in Python: what holds one is made of slack constants, which are sites of their own."""

NOISE = ("40", "21", "32")
"""Kinds of noise (tests/csrc/noise.h: style, rounding) under which the programs check_*_terms run as well."""

TRIVIAL = ("0", "1", "HUGE_VAL", "-HUGE_VAL", "math.inf", "-math.inf")
SAYS_NOTHING = ("np.zeros(", "(0.0,) * ", "bool(")
"""What a bound says that says nothing, or that no factor changes."""

CURVES = ("FromCurve", "Polygon")
"""Answers whose second field, delta at the points of the first, is the bound."""


class Site(NamedTuple):
    """Text [start, stop) of a file, what kind of site it is, the mutation, and of a slack constant its function."""

    path: str
    start: int
    stop: int
    what: str
    kind: int
    within: str = ""

    @property
    def line(self) -> int:
        return (ROOT / self.path).read_text()[: self.start].count("\n") + 1


# Sites in C: by the layout that clang-format gives, a function's head and its braces stand at the left margin.


def blank_comments(text: str) -> str:
    """The same text, of the same length, with spaces for comments, strings and preprocessor lines."""

    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())

    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", blank, text, flags=re.S)
    return re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def c_functions(text: str):
    """(name, return type, start of the body, its end) of every function definition."""
    for head in re.finditer(r"^(?:[A-Za-z_][^;{}=]*?)\b(\w+)\s*\([^;{}]*\)\s*\n?\{", text, flags=re.M):
        line = text[head.end() : text.find("\n", head.end())]
        stop = head.end() + len(line) if line.rstrip().endswith("}") else text.find("\n}", head.end())
        yield head.group(1), head.group()[: head.start(1) - head.start()], head.end(), stop


def statement_end(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if text[i] == ";" and depth <= 0:
            return i
    return len(text)


def terms_of_sum(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Spans of the top-level summands after the first, signs left out."""
    depth, cuts = 0, []
    for i in range(start, stop):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        before = text[start:i].rstrip()[-1:]
        if depth == 0 and text[i] in "?":
            return []
        if depth == 0 and text[i] in "+-" and text[i + 1] != ">" and before and (before.isalnum() or before in ")]_."):
            if not re.search(r"\d[eE]$", text[start:i]):
                cuts.append(i)
    return [(a + 1, b) for a, b in zip(cuts, [*cuts, stop][1:], strict=True)]


def of_bound(name: str) -> int:
    upper, log = name.endswith("upper"), "log" in name
    return (SINK if upper else RISE) if log else (SHRINK if upper else GROW)


def c_sites(path: str):
    text = blank_comments((ROOT / path).read_text())
    field = rf"(?:->|\.)(?:{'|'.join(BUDGET)})(?:\[\w+\])?\s*\+?=(?!=)"
    end = r"(?:->|\.|\*\s*)(lower|upper)(?:\[\w+\])?\s*=(?!=)"
    for name, returns, start, stop in c_functions(text):
        body = text[start:stop]
        if name.endswith(("_upper", "_lower")) and "double" in returns:
            for found in re.finditer(r"\breturn\b", body):
                at = start + found.end()
                last = statement_end(text, at)
                if text[at:last].strip() not in TRIVIAL:
                    yield Site(path, at, last, "bound", of_bound(name))
        for found in re.finditer(field, body):
            at = start + found.end()
            last = statement_end(text, at)
            if (
                re.search(r"[*(]", text[at:last])
                and "work +" not in text[at:last]
                and not text[at:last].lstrip().startswith("!")
            ):
                yield Site(path, at, last, "budget", SHRINK)
        for found in re.finditer(end, body):
            at = start + found.end()
            for a, b in terms_of_sum(text, at, statement_end(text, at)):
                yield Site(path, a, b, "end", DROP)
        for found in re.finditer(r"\bHS_U\b", body):
            yield Site(path, start + found.start(), start + found.end(), "slack", SHRINK, name)


# Sites in Python


def parts(node):
    """(target, value) of every assignment and of every keyword of a call, element by element where both are tuples."""
    pairs = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.Call):
        pairs = [(ast.Name(word.arg), word.value) for word in node.keywords if word.arg]
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from zip(target.elts, value.elts, strict=False)
        else:
            yield target, value


def summands(node):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return [*summands(node.left), *summands(node.right)]
    return [node]


def python_sites(path: str):
    text = (ROOT / path).read_text()
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def span(node):
        if not text.isascii():
            own = text.encode()
            return tuple(len(own[: starts[a - 1] + b].decode()) for a, b in at(node))
        return tuple(starts[a - 1] + b for a, b in at(node))

    def at(node):
        return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)

    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and function.name.endswith(("_upper", "_lower")) and node.value:
                said = (ast.Tuple, ast.Constant, ast.Compare, ast.BoolOp)  # a factor changes no constant and no truth
                value = node.value
                if isinstance(value, ast.Call) and ast.unparse(value.func) in CURVES:
                    value = value.args[1]
                plain = ast.unparse(value)
                if not isinstance(value, said) and plain not in TRIVIAL and not plain.startswith(SAYS_NOTHING):
                    yield Site(path, *span(value), "bound", of_bound(function.name))
            for target, value in parts(node):
                name = ast.unparse(target).rpartition(".")[2]
                if name in BUDGET_PYTHON and any(isinstance(x, ast.BinOp) for x in ast.walk(value)):
                    if not re.search(
                        r"\b(U|ULP|LDBL_ULP|log_slack)\b", ast.unparse(value)
                    ):  # else there are slack constants
                        yield Site(path, *span(value), "budget", SHRINK)
                if name in ("lower", "upper"):
                    for term in summands(value)[1:]:
                        yield Site(path, *span(term), "end", DROP)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                for side in (node.left, node.right):
                    if isinstance(side, ast.Name) and side.id in ("U", "ULP", "LDBL_ULP"):
                        yield Site(path, *span(side), "slack", SHRINK, function.name)


def all_sites() -> list[Site]:
    found = [s for p in sorted((ROOT / "csrc").rglob("*.[ch]")) for s in c_sites(p.relative_to(ROOT).as_posix())]
    for p in sorted((ROOT / "src/hockeystick").glob("**/*.py")):
        if not {"adapters", "judge", "dask.py"} & set(p.parts):
            found += python_sites(p.relative_to(ROOT).as_posix())
    one = {(s.path, s.start, s.stop, s.what): s for s in reversed(found)}  # a function within another is walked twice
    constants = [s for s in one.values() if s.what == "slack"]
    first = {(s.path, s.within): s for s in sorted(constants, reverse=True)}
    return sorted([*one.values(), *(s._replace(what="claim") for s in first.values())])


# The instrument

HEADER = """
extern int hs_mutant_id, hs_mutant_log;
extern unsigned char hs_mutant_seen[];
double hs_mutant_apply(double x, int kind);
__attribute__((unused)) static inline double hs_mutant(int id, int claim, double x, int kind)
{
    if (hs_mutant_log && x != 0 && x - x == 0) hs_mutant_seen[id] = hs_mutant_seen[claim] = 1;
    return __builtin_expect(id == hs_mutant_id || claim == hs_mutant_id, 0) ? hs_mutant_apply(x, kind) : x;
}
"""

C_SIDE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((visibility("default"))) int hs_mutant_id = -1;
int hs_mutant_log = 0;
unsigned char hs_mutant_seen[1 << 14];
double hs_mutant_apply(double x, int kind)
{
    double log_1e3 = 6.907755278982137;
    if (kind < 3) return (x > 0) == (kind == 1) ? 1e-3 * x : 1e3 * x;
    return kind == 3 ? x - log_1e3 : kind == 4 ? x + log_1e3 : 0;
}
__attribute__((constructor)) static void hs_mutant_open(void)
{
    const char *id = getenv("HS_MUTANT");
    if (id) hs_mutant_id = atoi(id);
    hs_mutant_log = getenv("HS_MUTANT_LOG") != NULL;
}
__attribute__((destructor)) static void hs_mutant_close(void)
{
    FILE *out = hs_mutant_log ? fopen(getenv("HS_MUTANT_LOG"), "a") : NULL;
    int i;
    for (i = 0; out && i < 1 << 14; i++) if (hs_mutant_seen[i]) fprintf(out, "%d\\n", i);
    if (out) fclose(out);
}
"""

PYTHON_SIDE = """
import atexit
import os

import numpy as np

ID = int(os.environ.get("HS_MUTANT", "-1"))
LOG = os.environ.get("HS_MUTANT_LOG")
SEEN = set()


def hs_mutant(at, claim, value, kind):
    if isinstance(value, (tuple, list)):
        moved = [hs_mutant(at, claim, x, kind) for x in value]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    if not isinstance(value, (float, np.floating, np.ndarray)):
        return value
    if LOG and np.any(np.isfinite(value) & (value != 0)):
        SEEN.update((at, claim))
    if ID not in (at, claim):
        return value
    low, high = value * np.where(value > 0, 1e-3, 1e3), value * np.where(value > 0, 1e3, 1e-3)
    return [value, low, high, value - 6.907755278982137, value + 6.907755278982137, value * 0][kind]


def _write():
    with open(LOG, "a") as out:
        out.writelines(f"{at}\\n" for at in SEEN)


if LOG:
    atexit.register(_write)
"""


def instrument(where: Path, sites: dict[int, Site], paths: set[str]) -> None:
    """The tree at `where` with every site wrapped. Inner sites lie in outer ones: text goes in from the end of a
    file."""
    claims = {(s.path, s.within): at for at, s in sites.items() if s.what == "claim"}
    for path in sorted(paths):
        text = (ROOT / path).read_text()
        marks = []
        for at, s in sites.items():
            if s.path == path and s.what != "claim":
                head = f" hs_mutant({at}, {claims.get((path, s.within), at) if s.what == 'slack' else at}, ("
                marks += [(s.stop, 0, -s.start, f"), {s.kind})"), (s.start, 1, -s.stop, head)]
        for place, _, _, word in sorted(marks, reverse=True):
            text = text[:place] + word + text[place:]
        if path.endswith(".py"):
            line = "from hockeystick._mutants import hs_mutant\n"
            after = re.search(r"^from __future__[^\n]*\n", text, flags=re.M)
            at = after.end() if after else 0
            text = text[:at] + line + text[at:]
        (where / path).write_text(text)


def compiling(where: Path, sites: dict[int, Site]) -> dict[int, Site]:
    """The sites at which a call can stand: constants of static tables, loop bounds and pointers are not such places."""
    paths = {s.path for s in sites.values()}
    while True:
        instrument(where, sites, paths)
        bad = set()
        for path in sorted({s.path for s in sites.values() if s.path.endswith(".c")}):
            words = ["gcc", "-std=c99", "-fsyntax-only", "-fopenmp", "-Icsrc", "-include", "mutant.h", path]
            out = subprocess.run(words, cwd=where, capture_output=True, text=True).stderr
            bad |= {(name, int(n)) for name, n in re.findall(r"(csrc/[\w/]+\.[ch]):(\d+):\d+: error", out)}
        if not bad:
            return sites
        left = {at: s for at, s in sites.items() if (s.path, s.line) not in bad}
        if len(left) == len(sites):
            raise SystemExit(f"cannot instrument: {sorted(bad)[:5]}")
        sites = left


def tree() -> list[str]:
    return [name for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split("\n") if name]


def digest(*paths: str) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update((ROOT / path).read_bytes())
    return found.hexdigest()


def build(where: Path) -> dict[int, Site]:
    """The instrumented tree at `where`; if one lies there and csrc and src are what they were, only tests are
    renewed."""
    names, memory = tree(), where / "sites.json"
    state = digest(*(n for n in names if n.startswith(("csrc/", "src/")) or n == "setup.py"))
    old = json.loads(memory.read_text()) if memory.exists() else {}
    same = old.get("state") == state
    if not same and where.exists():
        shutil.rmtree(where)
    for name in names:
        if not same or name.startswith("tests/") or "tests" in Path(name).parts[:-1]:
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, where / name)
    if same:
        sites = {int(at): Site(*site) for at, site in old["sites"].items()}
    else:
        (where / "csrc/mutant.h").write_text(HEADER)
        (where / "csrc/mutant.c").write_text(C_SIDE)
        (where / "src/hockeystick/_mutants.py").write_text(PYTHON_SIDE)
        sites = compiling(where, dict(enumerate(all_sites())))
        flags = f"-include {where}/csrc/mutant.h -w -g0 -DHS_NO_CLONES"
        env = {**os.environ, "CFLAGS": flags, "HS_MUTANT": "-1"}
        subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=where, env=env, check=True)
        memory.write_text(json.dumps({"state": state, "sites": sites}))
    flags = "-std=c99 -w -g0 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp"
    compiler = os.environ.get("CC", "gcc")
    words = f"{compiler} {flags} -DHS_NO_CLONES -Icsrc -include mutant.h".split()
    worse = [*words, "-frounding-math", "-D_POSIX_C_SOURCE=200809L", "-include", "tests/csrc/noise.h"]
    noisy = where / "noisy"
    noisy.mkdir(exist_ok=True)
    newest = max(p.stat().st_mtime for p in (where / "tests/csrc").glob("*.h"))
    for source in [*sorted((where / "csrc").rglob("*.c")), where / "tests/csrc/noise.c"]:
        made = noisy / f"{source.stem}.o"
        if not made.exists() or made.stat().st_mtime < max(newest, source.stat().st_mtime):
            subprocess.run([*worse, "-c", str(source), "-o", str(made)], cwd=where, check=True)
    for check in sorted((where / "tests/csrc").glob("check_*.c")):
        for program, how in ((where / check.stem, words), (noisy / check.stem, worse)):
            if program.parent == noisy and not check.stem.endswith("_terms"):
                continue
            if not program.exists() or program.stat().st_mtime < max(newest, check.stat().st_mtime):
                objects = noisy.glob("*.o") if program.parent == noisy else where.glob("build/temp*/csrc/**/*.o")
                subprocess.run([*how, str(check), *map(str, objects), "-o", str(program), "-lm"], cwd=where, check=True)
    return sites


# Running


def room(path: str) -> list[str]:
    """The tests of a file: all programs of the C floor, and the test modules of its room."""
    stem = Path(path).stem if "individual" not in path else "individual"
    checks = sorted(p.stem for p in (ROOT / "tests/csrc").glob("check_*.c")) if path.endswith((".c", ".h")) else []
    checks += [f"{check}@{kind}" for check in checks if check.endswith("_terms") for kind in NOISE]
    tests = []
    for prefixes, names in TESTS.items():
        if any(
            stem == p or stem.startswith(p + "_") or (path.endswith((".c", ".h")) and stem.startswith(p))
            for p in prefixes.split()
        ):
            tests += names.split()
    tests = [f"tests/test_{n}.py" for n in dict.fromkeys(["bounds", *tests, "truth", "laws", "attack"])]
    return checks + [t for t in tests if (ROOT / t).exists()]


def run(where: Path, test: str, seconds: float, **more: str) -> bool:
    """Whether a test passes, or takes longer than `seconds`: a machine under load is no witness."""
    program, _, noise = test.partition("@")
    words, more = [f"./noisy/{program}" if noise else f"./{test}"], {"HS_NOISE_KIND": noise, **more}
    if test.endswith(".py"):
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test]
    env = {**os.environ, "PYTHONPATH": f"{where}/src", "PYTHONDONTWRITEBYTECODE": "1", "HS_FIRST_MISS": "1", **more}
    try:
        done = subprocess.run(words, cwd=where, env=env, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode in (0, 5)


SERVER = """
import ctypes, os, signal, sys
import hypothesis, mpmath, pytest, scipy.integrate, scipy.special, scipy.stats
import hockeystick
from hockeystick import _core, _mutants

for line in sys.stdin:
    at, seconds, test = line.split()
    child = os.fork()
    if not child:
        signal.alarm(int(seconds))
        for out in 1, 2:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out)
        _mutants.ID = ctypes.c_int.in_dll(ctypes.CDLL(_core.__file__), "hs_mutant_id").value = int(at)
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", test]))
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Runs test modules, each in a fork of one process that has imported everything."""


class Server:
    """Whether a test module passes with a mutant, or takes longer than `seconds`."""

    def __init__(self, where: Path):
        self.words = {
            "args": [sys.executable, "-c", SERVER],
            "cwd": where,
            "env": {**os.environ, "PYTHONPATH": f"{where}/src"},
        }
        self.process = None

    def run(self, test: str, at: int, seconds: float) -> bool:
        if self.process is None:
            self.process = subprocess.Popen(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **self.words)
        print(at, int(seconds), test, file=self.process.stdin, flush=True)
        return os.waitstatus_to_exitcode(int(self.process.stdout.readline())) in (0, 5, -signal.SIGALRM)


class Plan:
    """What a test costs and reaches, found when it is first asked for, and kept beside the build."""

    def __init__(self, where: Path, longest: float, only: str):
        self.where, self.longest, self.only, self.memory = where, longest, only, where / "plan.json"
        self.known = json.loads(self.memory.read_text()) if self.memory.exists() else {}
        self.kills: Counter = Counter()
        self.sound: dict[str, bool] = {}
        self.server = Server(where)

    def of(self, test: str):
        """Seconds without a mutant, and the sites that are reached: none if the test fails or takes too long. Under
        noise a program reaches what it reaches without."""
        program, _, noise = test.partition("@")
        if noise:
            seconds, reached = self.of(program)
            return 3 * seconds, reached
        path = test if test.endswith(".py") else f"tests/csrc/{test}.c"
        state = digest(path)
        if self.known.get(test, {}).get("state") != state:
            log = self.where / "seen.txt"
            log.unlink(missing_ok=True)
            good, seconds = self.clean(test, HS_MUTANT_LOG=str(log))
            reached = sorted({int(x) for x in log.read_text().split()}) if good and log.exists() else []
            self.known[test] = {"state": state, "seconds": seconds, "reached": reached}
            self.memory.write_text(json.dumps(self.known))
            print(
                f"{seconds:6.1f} s  {len(reached):5d} sites  {test}{'' if good else ' fails, or takes too long'}",
                flush=True,
            )
        return self.known[test]["seconds"], set(self.known[test]["reached"])

    def clean(self, test: str, **more: str):
        """Whether a test passes without a mutant, and what it takes."""
        start = time.monotonic()
        good = run(self.where, test, self.longest, **more)
        seconds = time.monotonic() - start
        return good and seconds < self.longest, seconds

    def judge(self, at: int, site: Site, budget: float) -> str:
        """The test that fails, or that none does: programs first, those that killed in this file, the fastest, for
        `budget` seconds or so."""
        reached, tests = False, [t for t in room(site.path) if self.only in t]

        def order(test):
            seconds = self.known.get(test, {}).get("seconds", 20) / (1 + 9 * self.kills[Path(site.path).name, test])
            first = self.kills[Path(site.path).name, test] or test.endswith("_terms")
            return test.endswith(".py"), "@" in test, not first, seconds, test

        for test in sorted(tests, key=order):
            if budget <= 0:
                break
            seconds, sites = self.of(test)
            if at not in sites:
                continue
            reached = True
            most = 90 + 10 * seconds
            if not (
                self.server.run(test, at, most)
                if test.endswith(".py")
                else run(self.where, test, most, HS_MUTANT=str(at))
            ):
                if "@" in test and test not in self.sound:  # a claim that is loose under noise is no witness
                    self.sound[test] = self.clean(test)[0]
                if not self.sound.get(test, True):
                    continue
                self.kills[Path(site.path).name, test] += 1
                return test
            budget -= seconds
        return "survived" if reached else "not reached"


LIVED = ("survived", "not reached")


def named(sites: dict[int, Site]) -> dict[int, dict]:
    """File, line, kind and text without spaces of every site (of a slack constant, its statement), and its number among
    equal ones: what moving a file or laying it out anew does not change."""
    out, texts, seen = {}, {p: (ROOT / p).read_text() for p in {s.path for s in sites.values()}}, Counter()
    for at, s in sorted(sites.items(), key=lambda item: item[1]):
        start, stop = s.start, s.stop
        if s.what == "slack":
            ends = "\n" if s.path.endswith(".py") else ";{}"
            start = 1 + max(texts[s.path].rfind(end, 0, start) for end in ends)
            stop = min(found for end in ends if (found := texts[s.path].find(end, stop)) >= 0)
        text = "".join(texts[s.path][start:stop].split())[:90]
        text = s.within if s.what == "claim" else text
        key = Path(s.path).name, s.what, text
        out[at] = {"file": key[0], "what": s.what, "text": text, "number": seen[key], "line": s.line}
        seen[key] += 1
    return out


def name_of(row: dict) -> tuple:
    return row["file"], row["what"], row["text"], row["number"]


def drawn(names: dict[int, dict], seed: int, slack: int) -> list[int]:
    """The sites in the order of a hash of seed and name: all but slack constants, and the first `slack` of these."""
    order = sorted(names, key=lambda at: hashlib.sha256(f"{seed} {name_of(names[at])}".encode()).digest())
    constants = [at for at in order if names[at]["what"] == "slack"][:slack]
    return [at for at in order if names[at]["what"] != "slack"] + constants


def report(rows: list[dict]) -> None:
    lived = [r for r in rows if r["by"] in LIVED]
    print(f"{len(rows)} mutants, {len(lived)} survive ({100 * len(lived) / max(1, len(rows)):.1f}%)")
    for name in ("what", "file"):
        total, left = Counter(r[name] for r in rows), Counter(r[name] for r in lived)
        for key in sorted(total):
            print(f"  {key:40s} {total[key]:5d} mutants {left[key]:5d} survive")
    for r in lived:
        print(f"{r['file']}:{r['line']} {r['what']} {r['by']}: {r['text']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=Path, required=True, help="JSON lines: outcomes so far")
    parser.add_argument("--files", nargs="*", help="only mutants in files whose name holds one of these")
    parser.add_argument("--what", nargs="*", help="only mutants of these kinds: bound, budget, end, claim, slack")
    parser.add_argument("--most", type=int, default=10**9, help="how many to run now")
    parser.add_argument("--seed", type=int, default=0, help="order in which they are drawn")
    parser.add_argument("--slack", type=int, default=10**9, help="how many slack constants are in the sample")
    parser.add_argument(
        "--budget", type=float, default=60.0, help="seconds of tests that a mutant meets at most, about"
    )
    parser.add_argument("--longest", type=float, default=120.0, help="seconds; tests that take longer are left out")
    parser.add_argument("--only", default="", help="only tests whose name holds this: check_ for the programs")
    parser.add_argument("--keep", type=Path, help="where the build lies or goes; else a temporary folder")
    parser.add_argument("--again", action="store_true", help="run survivors again")
    parser.add_argument("--report", action="store_true", help="print the table of the outcomes so far and stop")
    given = parser.parse_args()
    rows = [json.loads(x) for x in given.state.read_text().splitlines()] if given.state.exists() else []
    if given.report:
        return report(rows)
    with tempfile.TemporaryDirectory() as temporary:
        where = given.keep.resolve() if given.keep else Path(temporary) / "tree"
        sites = build(where)
        plan, names = Plan(where, given.longest, given.only), named(sites)
        rows = [row for row in rows if name_of(row) in {name_of(name) for name in names.values()}]
        for row in rows:
            plan.kills[row["file"], row["by"]] += 1
        done = {name_of(r) for r in rows if r["by"] not in LIVED or not given.again}
        sample = drawn(names, given.seed, given.slack)
        order = [at for at in sample if name_of(names[at]) not in done]
        order = [at for at in order if not given.what or sites[at].what in given.what]
        order = [at for at in order if not given.files or any(f in sites[at].path for f in given.files)]
        print(f"{len(sites)} sites, {len(order)} to run", flush=True)
        for at in order[: given.most]:
            row = {**names[at], "by": plan.judge(at, sites[at], given.budget)}
            rows = [r for r in rows if name_of(r) != name_of(row)] + [row]
            print(f"{row['by']:40s} {row['file']}:{row['line']} {row['what']} {row['text']}", flush=True)
            given.state.write_text("".join(json.dumps(r) + "\n" for r in rows))
    sampled = {name_of(names[at]) for at in sample}
    report([r for r in rows if name_of(r) in sampled])


if __name__ == "__main__":
    main()
