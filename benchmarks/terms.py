"""Pictures of error terms: what each really is, where a plan far too coarse makes it large, against what is claimed of
it.

    python benchmarks/terms.py [--out docs/theory/figures] [--only lines]

One picture (SVG) a group of terms, one panel for each term whose errors are seen: across the actual error, up the
claim, both logarithmic; a claim is sound where every point lies on or above the diagonal. docs/theory/error-terms.md
says what each bound is and where it is proved. The pairs of the C floor are printed by the programs
tests/csrc/check_*_terms.c, which check them as well.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import terms_grid

ROOT = Path(__file__).resolve().parent.parent
FLAGS = "-std=c99 -O1 -ffp-contract=off -fno-math-errno -fno-trapping-math -DHS_NO_CLONES -w".split()


@functools.cache
def objects():
    """The C floor compiled without Python, once a process: the list of object files."""
    where = tempfile.TemporaryDirectory()
    objects.kept = where  # removed with the process
    compiler = os.environ.get("CC", "cc").split()
    sources = sorted((ROOT / "csrc").rglob("*.c"))
    jobs = [
        subprocess.Popen(
            [*compiler, *FLAGS, f"-I{ROOT / 'csrc'}", "-c", source, "-o", Path(where.name) / f"{source.stem}.o"]
        )
        for source in sources
    ]
    if any(job.wait() for job in jobs):
        raise RuntimeError("csrc does not compile")
    return [Path(where.name) / f"{source.stem}.o" for source in sources]


@functools.cache
def run(check, few=""):
    """What tests/csrc/<check>.c prints with its pairs, of one in `few` of the cases, and its exit status."""
    program = objects()[0].parent / check
    compiler = os.environ.get("CC", "cc").split()
    source = ROOT / "tests" / "csrc" / f"{check}.c"
    subprocess.run([*compiler, *FLAGS, f"-I{ROOT / 'csrc'}", source, *objects(), "-lm", "-o", program], check=True)
    env = {**os.environ, "HS_FEW": few}
    done = subprocess.run([program, "pairs"], capture_output=True, text=True, timeout=600, env=env)
    return done.stdout, done.returncode


@functools.cache
def pairs_of(check):
    """{term: pairs (actual, claimed)} of a C check, in its order."""
    found = {}
    for line in run(check)[0].splitlines():
        if line.startswith("pair "):
            _, term, actual, claimed = line.split()[:4]
            found.setdefault(term, []).append((float(actual), float(claimed)))
    return found


PICTURES = {
    "inner-grid": "grid",
    "pairs": "pair",
    "line": "line",
    "atoms": "mixed ends mixture range",
    "allocation": "allocation density",
    "jumps": "bulk jumps counts",
    "rules": "fit rates",
    "hyperbola": "hyperbola few",
    "individual": "individual",
    "saddle-point": "saddle",
    "smoothing": "smoothing prawitz",
    "grids": "",
}
"""A picture's name, and the programs check_..._terms whose terms it has a panel each of; that of the grids has the
terms of terms_grid.py."""

LEAST = 3
"""Points of a panel; a term whose errors are seen in fewer cases has none."""


def terms_of(picture):
    """{term: (actual, claimed)}: what is to be seen of a picture's terms."""
    found = {} if PICTURES[picture] else {name: made() for name, (made, *_) in terms_grid.TERMS.items()}
    for check in PICTURES[picture].split():
        found |= {term: np.array(rows).T for term, rows in pairs_of(f"check_{check}_terms").items()}
    points = {}
    for term, (actual, claimed) in found.items():
        actual, claimed = np.asarray(actual), np.asarray(claimed)
        shown = (actual > 1e-13) & (claimed > 0)
        if shown.sum() >= LEAST:
            points[term] = actual[shown], claimed[shown]
    return points


SIDE, GAP, HEAD, ACROSS = 130, 26, 18, 4


def panel(name, actual, claimed, left, top):
    """One scatter, SVG: powers of ten from 1e-12 to 1 on both axes, the diagonal, the median of claimed/actual."""
    x = left + SIDE * (np.clip(np.log10(actual), -12, 0) + 12) / 12
    y = top + SIDE * (1 - (np.clip(np.log10(claimed), -12, 0) + 12) / 12)
    dots = "".join(f"M{a:.0f} {b:.0f}h0" for a, b in sorted(set(zip(x.round(), y.round(), strict=True))))
    factor = float(np.median(claimed / actual))
    says = f"{factor:.2g}" if factor < 1000 else f"10^{math.log10(factor):.0f}"
    return (
        f'<text x="{left}" y="{top - 5}">{name} <tspan class="n">x{says}</tspan></text>'
        f'<rect x="{left}" y="{top}" width="{SIDE}" height="{SIDE}"/>'
        f'<path class="d" d="M{left} {top + SIDE}l{SIDE} {-SIDE}"/>'
        f'<path class="p" d="{dots}"/>'
    )


def draw(path, group):
    rows = math.ceil(len(group) / ACROSS)
    width, height = ACROSS * (SIDE + GAP) + GAP, rows * (SIDE + GAP + HEAD) + GAP
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
            ' font-size="10">'
        ),
        (
            "<style>rect{fill:none;stroke:#888}.d{stroke:#c33;stroke-width:.7}.n{fill:#888}"
            ".p{stroke:#124;stroke-width:2.2;stroke-linecap:round;stroke-opacity:.5}</style>"
        ),
        f'<rect width="{width}" height="{height}" style="fill:#fff;stroke:none"/>',
    ]
    for i, (name, (actual, claimed)) in enumerate(group.items()):
        left, top = GAP + (i % ACROSS) * (SIDE + GAP), GAP + (i // ACROSS) * (SIDE + GAP + HEAD)
        parts.append(panel(name, actual, claimed, left, top))
    path.write_text("\n".join([*parts, "</svg>\n"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "theory" / "figures")
    parser.add_argument("--only", choices=PICTURES)
    args = parser.parse_args()
    if not shutil.which(os.environ.get("CC", "cc").split()[0]):
        sys.exit("no C compiler")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        if args.only in (None, name):
            draw(args.out / f"terms-{name}.svg", terms_of(name))
            print(args.out / f"terms-{name}.svg")


if __name__ == "__main__":
    main()
