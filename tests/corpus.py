"""Answers kept from an earlier version, which every later one must meet: `python -m tests.corpus make`, `check`,
`times`.

20,000 queries of the shared generator (queries.py) over the whole allowed domain, each as the text of a call with both
ends of its answer in full digits, or with the fact that it was refused. `check` asks them again: an interval that does
not meet the old one, a refusal where there was an answer, and families whose widths grew are printed. `times` compares
processor times by family of two work trees: `python -m tests.corpus times --base ../old/src`."""

from __future__ import annotations

import argparse
import json
import lzma
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

import queries
from attack import family, loaded

FILE = Path(__file__).parent / "reference" / "corpus.xz"
SEED = "corpus of 0.1"
COUNT = 20_000
PATIENCE = 0.3
"""Processor seconds after which a query is left out of the corpus."""

GROWTH = 1.05
"""How much the median and the 99% point of a family's widths may grow."""

FEWEST = 60
"""Answers that a family must have for its widths to be compared."""


class Late(BaseException):
    """The time for one query is over."""


def ends(answer) -> list[list[float]] | None:
    """[[lower, upper], ...] of an answer; None of what is no interval."""
    if hasattr(answer, "lower"):
        if not answer.certified:
            return None
        return np.stack([np.ravel(answer.lower), np.ravel(answer.upper)], axis=1).tolist()
    if isinstance(answer, (float, int)) or isinstance(answer, np.ndarray):  # an upper bound
        return [[-math.inf, x] for x in np.ravel(answer).tolist()]
    return None


def asked(text: str, patience: float = PATIENCE):
    """(ends or the name of a refusal or None, processor seconds) of a query."""
    import hockeystick as hs

    def late(*_):
        raise Late

    signal.signal(signal.SIGPROF, late)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, patience)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ends(queries.made(text))
    except (hs.DomainError, hs.AccuracyError) as refusal:
        found = type(refusal).__name__
    except Late:
        found = None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return found, time.process_time() - start


def kept(index: int):
    """The row [family, text, answer] of one index of the generator, or None."""
    case = queries.draw(SEED, index)
    text = repr(case)
    # searches: their answers are intervals of other queries
    if case.query in ("calibrate", "noise_multiplier", "max_steps"):
        return None
    found, _ = asked(text)
    return found and [family(case), text, found]


def read() -> list[list]:
    """All rows of the corpus."""
    return json.loads(lzma.decompress(FILE.read_bytes()))


def make(jobs: int) -> None:
    """Write the corpus anew."""
    rows = []
    with multiprocessing.Pool(jobs, initializer=loaded) as pool:
        for row in pool.imap(kept, range(10**9), chunksize=20):
            rows += [row] if row else []
            if len(rows) == COUNT:
                pool.terminate()
                break
    FILE.write_bytes(lzma.compress(json.dumps(rows).encode(), preset=9 | lzma.PRESET_EXTREME))


def width(pair) -> float:
    """How far the ends are apart, relative to the upper one; of an upper bound the bound itself; finite."""
    low, high = pair
    if low == high:
        return 0.0
    wide = abs(high) if low == -math.inf else (high - low) / abs(high) if 0 < abs(high) < math.inf else math.inf
    return min(wide, 1e300)


def compared(row, found) -> list[str]:
    """What is wrong with an answer now, beside that of the corpus."""
    _, text, old = row
    if isinstance(old, str):
        return []
    if not isinstance(found, list):
        return [f"{'refused' if found else 'slow'}: {text}"]
    wrong = []
    for (low, high), (was_low, was_high) in zip(found, old, strict=True):
        if not (low <= was_high and was_low <= high):
            wrong.append(f"apart: [{low!r}, {high!r}], was [{was_low!r}, {was_high!r}]: {text}")
    return wrong


def check(rows, patience: float = 20 * PATIENCE) -> tuple[list[str], dict[str, tuple]]:
    """(what is wrong, by family: medians and 99% points of widths then and now) for rows of the corpus."""
    wrong, widths = [], defaultdict(list)
    for row in rows:
        try:
            found, _ = asked(row[1], patience)
        except Exception as error:  # of the package none but refusals may come
            wrong.append(f"{error!r}: {row[1]}")
            continue
        wrong += compared(row, found)
        if isinstance(found, list) and isinstance(row[2], list):
            widths[row[0]] += [(width(was), width(now)) for was, now in zip(row[2], found, strict=True)]
    table = {}
    for name, pairs in widths.items():
        if len(pairs) >= FEWEST:
            pairs = np.array(pairs)
            table[name] = *np.median(pairs, axis=0), *np.quantile(pairs, 0.99, axis=0)
    grown = [name for name, (m0, m1, q0, q1) in table.items() if m1 > GROWTH * m0 + 1e-15 or q1 > GROWTH * q0 + 1e-15]
    return wrong + [f"wider: {name}: {table[name]}" for name in grown], table


def times(base: str | None, every: int) -> None:
    """Processor seconds by family of every `every`-th row, here and with the package in `base`."""
    here = Path(__file__).parent.parent / "src"
    found = {}
    for path in (base, here) if base else (here,):
        code = f"import tests.corpus as c; c.print_times({every})"
        shown = {**os.environ, "PYTHONPATH": str(path)}
        out = subprocess.run([sys.executable, "-c", code], env=shown, capture_output=True, check=True)
        found[path] = json.loads(out.stdout)
    for name in sorted(found[here]):
        row = [found[path].get(name, (math.nan, math.nan)) for path in found]
        print(f"{name:42}" + "".join(f"{1e3 * m:10.3f}{1e3 * q:10.1f}" for m, q in row), "ms: median, 99%")


def print_times(every: int) -> None:
    """JSON {family: (median, 99% point)} of processor seconds, the best of three."""
    loaded()
    spent = defaultdict(list)
    for name, text, _ in read()[::every]:
        spent[name].append(min(asked(text, 20 * PATIENCE)[1] for _ in range(3)))
    print(json.dumps({k: (float(np.median(v)), float(np.quantile(v, 0.99))) for k, v in spent.items()}))


def main(argv=None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=("make", "check", "times"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="only every so many rows")
    parser.add_argument("--base", help="src folder of another work tree, for `times`")
    given = parser.parse_args(argv)
    if given.what == "make":
        make(given.jobs)
    if given.what == "times":
        times(given.base, given.every)
        return 0
    rows = read()[:: given.every]
    counts = Counter(row[0] for row in rows)
    if given.what == "make":
        print(
            f"{len(rows)} rows, {FILE.stat().st_size} bytes;", ", ".join(f"{k} {v}" for k, v in counts.most_common(20))
        )
        return 0
    wrong, table = check(rows)
    for name, row in sorted(table.items()):
        print(f"{name:42}" + "".join(f"{x:12.3g}" for x in row))
    print("\n".join(wrong) or f"all {len(rows)} met")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
