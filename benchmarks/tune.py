"""Which value of a constant of csrc/tuning.h answers soonest and narrowest.

    python benchmarks/tune.py NAME [VALUE ...] [--n 400] [--seed 1]
    python benchmarks/tune.py --list

The extension is built once with every value (by default the present one times 1/2, 0.8, 1, 1.25 and 2; where it counts
something, rounded) in a copy of the tree, and asked the questions of the constant's part of tuning.h: eps or delta of
random runs, the same for all values. A row of the table is a value: processor time of all questions and its 99% point,
how many of them the route declines, and the median and the 99% point of the width. No value moves a bound to the wrong
side: where two values' intervals do not meet, the command fails."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = Path("csrc/tuning.h")
DEFINE = re.compile(r"^#define (HS_\w+) ([-\d.e]+)(.*)$", re.MULTILINE)
PART = re.compile(r"^/\* (The [^.]*)\. \*/$", re.MULTILINE)
FACTORS = (0.5, 0.8, 1.0, 1.25, 2.0)

BOXES = {  # sigma, q, k, delta: uniform in the logarithm; distinct steps of a run
    "The hyperbola": ((0.6, 2.0), (1e-3, 0.05), (2.0, 100.0), (1e-9, 1e-5), (1, 2)),
    "The certified root": ((0.5, 10.0), (1e-4, 1.0), (10.0, 1e6), (1e-30, 1e-3), (1, 3)),
}
LINE = ((0.4, 20.0), (1e-4, 1.0), (50.0, 1e7), (1e-15, 1e-3), (1, 40))
"""The box of the other parts."""


def constants(text: str) -> dict[str, tuple[str, str]]:
    """NAME: (its value, its part of the header)."""
    parts = [(m.start(), m.group(1)) for m in PART.finditer(text)]
    return {m[1]: (m[2], [name for at, name in parts if at < m.start()][-1]) for m in DEFINE.finditer(text)}


def questions(part: str, n: int, seed: int):
    """n of (run as arguments, adjacency, delta)."""
    dice = random.Random(seed)
    *box, (least, most) = BOXES.get(part, LINE)

    def drawn(low, high):
        return math.exp(dice.uniform(math.log(low), math.log(high)))

    for _ in range(n):
        sigma, q, k, delta = (drawn(*ends) for ends in box)
        steps = round(drawn(least, most))
        run = [(sigma * drawn(0.8, 1.25), min(q * drawn(0.8, 1.25), 1.0), int(k / steps) + 1) for _ in range(steps)]
        yield run, dice.choice(("add_remove", "replace_one")), delta


def answers(part: str, n: int, seed: int):
    """Seconds, lower and upper of every answer; None where the route declines."""
    import hockeystick as hs

    for run, adjacency, delta in questions(part, n, seed):
        known = hs.compose(
            *((hs.poisson_subsampled(hs.gaussian(s), q) if q < 1 else hs.gaussian(s), k) for s, q, k in run)
        )
        start = time.process_time()
        try:
            bound = hs.epsilon(known, delta, adjacency=adjacency, route="contour")
            ends = bound.lower, bound.upper
        except hs.AccuracyError:
            ends = None
        yield time.process_time() - start, ends


def built(name: str, value: str, where: Path) -> Path:
    """The tree with the constant at that value, built in place."""
    tree = where / re.sub(r"\W", "_", value)
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "build", "*.so", "__pycache__", "docs"))
    text = (tree / HEADER).read_text()
    (tree / HEADER).write_text(re.sub(rf"(?m)^(#define {name} )[-\d.e]+", rf"\g<1>{value}", text))
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tree, check=True)
    return tree


def asked(tree: Path, part: str, n: int, seed: int) -> list:
    """The answers of that build, in a process of its own."""
    command = [sys.executable, str(tree / "benchmarks/tune.py"), "--answer", part, "--n", str(n), "--seed", str(seed)]
    found = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tree / "src")}, capture_output=True, check=True
    )
    return json.loads(found.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("values", nargs="*", metavar="VALUE")
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="all constants and their values")
    parser.add_argument("--answer", help=argparse.SUPPRESS)  # one build's part of the work
    options = parser.parse_args()
    if options.answer:
        print(json.dumps(list(answers(options.answer, options.n, options.seed))))
        return
    known = constants((ROOT / HEADER).read_text())
    if options.list:
        for name, (value, part) in known.items():
            print(f"{name:20} {value:8} {part}")
        return
    if options.name not in known:
        parser.error(f"{options.name!r} is no constant of {HEADER}: --list shows them")
    value, part = known[options.name]
    whole = "." not in value
    tried = options.values or [str(round(float(value) * f) if whole else float(value) * f) for f in FACTORS]
    rows = {}
    with tempfile.TemporaryDirectory() as where:
        trees = {v: built(options.name, v, Path(where)) for v in dict.fromkeys(tried)}
        for v, tree in trees.items():
            rows[v] = asked(tree, part, options.n, options.seed)
    print(f"{options.name}, now {value}; {part.lower()}: {options.n} questions of seed {options.seed}")
    print(f"{'value':>10}{'seconds':>10}{'99% ms':>9}{'declined':>10}{'width':>10}{'99%':>10}")
    for v, row in rows.items():
        times = sorted(spent for spent, _ in row)
        widths = sorted((high - low) / high if high > 0 else 0.0 for _, ends in row if ends for low, high in [ends])
        late = [times[math.ceil(0.99 * len(times)) - 1], widths[math.ceil(0.99 * len(widths)) - 1]]
        declined = len(row) - len(widths)
        print(
            f"{v:>10}{sum(times):10.3f}{late[0] * 1e3:9.2f}{declined:10}{widths[len(widths) // 2]:10.1e}{late[1]:10.1e}"
        )
    for i, row in enumerate(zip(*rows.values(), strict=True)):
        ends = [e for _, e in row if e]
        if ends and max(low for low, _ in ends) > min(high for _, high in ends):
            raise SystemExit(f"question {i}: two values' certified intervals do not meet: {ends}")


if __name__ == "__main__":
    main()
