"""Pictures of error terms: what each really is, where a plan far too coarse makes it large, against what is claimed of
it.

    python benchmarks/terms.py [--out docs/theory/figures] [--only lines]

One picture (SVG) a group of terms, one panel a term: across the actual error, up the claim, both logarithmic; a claim
is sound where every point lies on or above the diagonal. docs/theory/error-terms.md says what each bound is and where
it is proved. The pairs of the C floor are printed by the programs tests/csrc/check_*_terms.c, which check them as well.
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
def run(check):
    """What tests/csrc/<check>.c prints with its pairs, and its exit status."""
    program = objects()[0].parent / check
    compiler = os.environ.get("CC", "cc").split()
    source = ROOT / "tests" / "csrc" / f"{check}.c"
    subprocess.run([*compiler, *FLAGS, f"-I{ROOT / 'csrc'}", source, *objects(), "-lm", "-o", program], check=True)
    done = subprocess.run([program, "pairs"], capture_output=True, text=True, timeout=600)
    return done.stdout, done.returncode


def c_pairs(check, term):
    """(actual, claimed) of one term of a C check."""
    rows = [line.split() for line in run(check)[0].splitlines() if line.startswith("pair ")]
    pairs = np.array([(float(row[2]), float(row[3])) for row in rows if row[1] == term])
    return pairs[:, 0], pairs[:, 1]


def c_group(check, *names):
    return {name: functools.partial(c_pairs, check, name) for name in " ".join(names).split()}


GROUPS = {
    "inner-grid": c_group(
        "check_grid_terms",
        """real-mesh log-m dropped-mesh dropped-range ends-left ends-right strip strip-cut strip-wild far far-mesh trim
        shifted shifted-much-noise shifted-ends shifted-m""",
    ),
    "pairs": c_group(
        "check_pair_terms",
        """pair-real-mesh pair-log-m pair-dropped-mesh pair-dropped-range pair-ends pair-strip pair-strip-wild pair-far
        pair-far-mesh pair-shifted pair-shifted-ends pair-shifted-m""",
    ),
    "line": c_group(
        "check_line_terms",
        """alias-right alias-left-above alias-left-between alias-left-below alias-sampled alias-sampled-between
        fall-psi fall-moments fall-bands fall-metric fall-pair-psi fall-pair-moments fall-pair-bands fall-pair-metric
        fall-coarse-psi fall-coarse-bands fall-coarse-metric tail tail-pair inner-k inner-nodes rounding-k
        rounding-nodes k-at-c k-at-c-pair inner inner-bands inner-metric inner-shifted inner-pair inner-pair-bands
        inner-pair-metric inner-pair-shifted""",
    ),
    "atoms": c_group(
        "check_mixed_terms",
        """mixed-right mixed-left-above mixed-left-between mixed-left-below mixed-left-complement period-right
        period-left-above period-left-between period-left-below period-left-complement period-fall
        period-fall-logconcave mixed-fall mixed-fall-laplace mixed-fall-sublaplace period-tail period-tail-logconcave
        mixed-tail mixed-tail-laplace mixed-tail-sublaplace mixed-tail-few mixed-k mixed-inner mixed-rounding period-k
        period-inner period-rounding period-shift period-step panels-k panels-phi table-k table-phi far-logconcave
        far-laplace far-sublaplace subnormal-k subnormal-phi""",
    ),
    "allocation": c_group(
        "check_allocation_terms",
        """allocation-normal allocation-mesh allocation-ends allocation-h allocation-right allocation-left
        allocation-variance allocation-far allocation-gap""",
    ),
    "jumps": c_group(
        "check_bulk_terms",
        """bulk-phase bulk-cell bulk-jump bulk-left bulk-b bulk-mean bulk-moments bulk-k bulk-jump-k bulk-inner
        bulk-alias bulk-fall bulk-truncation bulk-beyond bulk-inner-nodes bulk-rounding-nodes bulk-rounding-k""",
    )
    | c_group("check_jumps_terms", "jumps-truncation jumps-others jumps-inner jumps-rounding"),
    "rules": c_group("check_fit_terms", "fit-k fit-aliases fit-nodes fit-upper fit-far fit-value fit-inner"),
    "orders": c_group("check_fit_terms", "orders-k orders-aliases orders-nodes orders-upper orders-value orders-inner"),
    "hyperbola": c_group(
        "check_hyperbola_terms",
        "hyperbola-alias hyperbola-truncation hyperbola-inner hyperbola-inner-nodes hyperbola-rounding-nodes",
    ),
    "individual": c_group(
        "check_individual_terms",
        "individual-alias individual-tail individual-inner individual-k individual-nodes",
    ),
    "saddle-point": c_group(
        "check_saddle_terms",
        *"sp-mesh-K sp-mesh-mean sp-mesh-variance sp-range-K sp-range-mean sp-range-variance sp-cube".split(),
        *"sp-atoms-K sp-atoms-mean sp-atoms-variance sp-berry-esseen sp-berry-esseen-2 sp-clt".split(),
        *"sp-upper sp-lower sp-chebyshev sp-chernoff".split(),
    ),
    "smoothing": c_group(
        "check_smoothing_terms",
        *"pw-aliasing pw-smoothing pw-truncation pw-total lap-gauss lap-gauss-phi lap-far".split(),
        *"ew-mean ew-second ew-third ew-fourth ew-first-absolute ew-third-absolute ew-modulus".split(),
    ),
    "grids": {name: found[0] for name, found in terms_grid.TERMS.items()},
}
"""A picture's name, and its panels: a term's name and the function that returns arrays (actual, claimed)."""

SIDE, GAP, HEAD, ACROSS = 130, 26, 18, 4


def panel(name, actual, claimed, left, top):
    """One scatter, SVG: powers of ten from 1e-12 to 1 on both axes, the diagonal, the median of claimed/actual."""
    shown = (actual > 1e-13) & (claimed > 0)
    x = left + SIDE * (np.clip(np.log10(actual[shown]), -12, 0) + 12) / 12
    y = top + SIDE * (1 - (np.clip(np.log10(claimed[shown]), -12, 0) + 12) / 12)
    dots = "".join(f"M{a:.0f} {b:.0f}h0" for a, b in sorted(set(zip(x.round(), y.round(), strict=True))))
    factor = float(np.median(claimed[shown] / actual[shown]))
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
    for i, (name, pairs) in enumerate(group.items()):
        actual, claimed = pairs()
        left, top = GAP + (i % ACROSS) * (SIDE + GAP), GAP + (i // ACROSS) * (SIDE + GAP + HEAD)
        parts.append(panel(name, np.asarray(actual), np.asarray(claimed), left, top))
    path.write_text("\n".join([*parts, "</svg>\n"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "theory" / "figures")
    parser.add_argument("--only", choices=GROUPS)
    args = parser.parse_args()
    if not shutil.which(os.environ.get("CC", "cc").split()[0]):
        sys.exit("no C compiler")
    args.out.mkdir(parents=True, exist_ok=True)
    for name, group in GROUPS.items():
        if args.only in (None, name):
            draw(args.out / f"terms-{name}.svg", group)
            print(args.out / f"terms-{name}.svg")


if __name__ == "__main__":
    main()
