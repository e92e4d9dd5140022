"""The command `hockeystick individual`: eps of every record from a file of norms.

Exit status, streams and the JSON envelope are those of cli.py; the keys of a result are in `_result`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from .. import __version__, query
from ..bound import DomainError
from ..mechanism import count, gaussian, poisson_subsampled
from ..serial import require_line_end
from .dpsgd import mu_from_norms
from .epsilons import LABEL, individual_epsilons
from .gaussian import gdp_epsilons_upper, in_unit
from .levels import NoiseLevels

FORMAT = "hockeystick.individual"
VERSION = 1
BLOCK = 1 << 16
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)

_FILES = """NORMS holds one row a record and one column a step:
  .npy      an array of float32 or float64 with one or two dimensions, read in blocks
  .csv      numbers separated by commas; a first line of names is passed over
  .parquet  numeric columns (needs the extra "parquet")
With --q below 1 every record is charged at every step, drawn or not: give the norm that it has or would have,
or the clip."""


def run(argv: list[str]) -> str:
    """The text that answers `argv`. Raises DomainError, AccuracyError or OSError."""
    args = _parser().parse_args(argv)
    in_unit("delta", args.delta)
    blocks, records = _open(args.norms, args.allow_unterminated)
    repeat = count("steps", args.steps)
    show = _bar(records) if sys.stderr.isatty() and not args.quiet else None
    if args.q == 1:
        eps, steps, mu_max = _plain(blocks, repeat, args, show)
    else:
        eps, steps, mu_max = _sampled(blocks, repeat, args, show)
    if args.out:
        np.save(args.out, eps)
    if args.plot:
        _plot(args.plot, eps, args.delta)
    result = _result(args, eps, steps, mu_max)
    return json.dumps(result, allow_nan=False) if args.json else _text(result)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hockeystick individual",
        description="Certified upper bounds of eps(delta) of every record of a run, from its norms (ex post).\n\n" + _FILES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("norms", metavar="NORMS", type=Path, help="file of norms: .npy, .csv or .parquet")
    parser.add_argument("--sigma", type=float, help="standard deviation of the noise, in the unit of the norms")
    parser.add_argument("--noise-multiplier", type=float, help="instead of --sigma, with --clip: noise / clip")
    parser.add_argument("--allow-unterminated", action="store_true", help="take a last CSV line that has no line end")
    parser.add_argument("--clip", type=float, help="clipping norm; larger norms are cut to it")
    parser.add_argument("--delta", type=float, required=True, help="0 < delta < 1")
    parser.add_argument("--q", type=float, default=1.0, help="Poisson sampling rate, default 1 (none)")
    parser.add_argument("--steps", type=int, default=1, help="how often each column ran, default 1")
    parser.add_argument("--levels", type=int, default=32, help="noise levels with --q, default 32")
    parser.add_argument("--route", default="contour", help="with --q: contour or fft")
    parser.add_argument("--threads", type=int, default=1, help="default 1; 0 is all cores allowed")
    parser.add_argument("--out", metavar="FILE.npy", help="write the eps of every record (private!)")
    parser.add_argument("--plot", metavar="FILE", help='histogram of eps (needs the extra "plot")')
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress bar on a terminal")
    return parser


def _open(path: Path, allow_unterminated: bool):
    """(a function that yields the norms in blocks of rows, number of records)."""
    kind = path.suffix.lower()
    if kind == ".npy":
        table = _npy(path)
    elif kind == ".csv":
        table = _csv(path, allow_unterminated)
    elif kind in (".parquet", ".pq"):
        table = _parquet(path)
    else:
        raise DomainError(f"{path}: unknown kind of file {kind!r}; allowed: .npy, .csv, .parquet")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.dtype.kind not in "fiu" or not table.size:
        raise DomainError(f"{path}: expected one row a record and one column a step, got {table.dtype} of shape {table.shape}")
    return lambda: (np.asarray(table[at : at + BLOCK]) for at in range(0, len(table), BLOCK)), len(table)


def _npy(path: Path):
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DomainError(f"{path}: not an array file: {error}") from None


def _csv(path: Path, allow_unterminated: bool):
    with open(path, encoding="utf-8", errors="replace") as stream:
        first = stream.readline()
    if not allow_unterminated:
        _require_last_line_end(path)
    try:
        [float(field) for field in first.split(",")]
        skip = 0
    except ValueError:
        skip = 1
    try:
        return np.loadtxt(path, delimiter=",", skiprows=skip, ndmin=2, encoding="utf-8")
    except ValueError as error:
        raise DomainError(f"{path}: {error}") from None


def _require_last_line_end(path: Path) -> None:
    with open(path, "rb") as stream:
        stream.seek(max(0, path.stat().st_size - 1))
        ended = stream.read() in (b"\n", b"\r")
        try:
            require_line_end(ended)
        except DomainError as error:
            stream.seek(0)
            raise DomainError(f"{path}:{sum(1 for _ in stream)}: {error}") from None


def _parquet(path: Path):
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise DomainError('reading Parquet needs pyarrow: pip install "hockeystick[parquet]"') from None
    try:
        table = parquet.read_table(path)
        return np.column_stack([column.to_numpy().astype(float) for column in table.columns])
    except (ArrowException, ValueError) as error:
        raise DomainError(f"{path}: {error}") from None


def _mu(block, args):
    return mu_from_norms(block, sigma=args.sigma, noise_multiplier=args.noise_multiplier, clip=args.clip)


def _plain(blocks, repeat: int, args, show):
    """(eps, steps, largest mu of a step) without sampling: mu^2 adds up. A sum of k terms >= 0 is off by k u."""
    parts, mu_max, steps = [], 0.0, 0
    for block in blocks():
        mu = _mu(block, args)
        steps, mu_max = mu.shape[1] * repeat, max(mu_max, float(mu.max()))
        parts.append(np.sqrt((mu * mu).sum(axis=1) * repeat) * (1 + (mu.shape[1] + 4) * query.U))
        if show:
            show(sum(map(len, parts)))
    return gdp_epsilons_upper(np.concatenate(parts), args.delta), steps, mu_max


def _sampled(blocks, repeat: int, args, show):
    """(eps, steps, largest mu of a step) with Poisson sampling: counts of noise levels."""
    mu_max = max(float(_mu(block, args).max()) for block in blocks())
    if not mu_max > 0:
        raise DomainError("every norm is 0: nothing was charged")
    levels, parts, steps = NoiseLevels(mu_max, levels=args.levels), [], 0
    for block in blocks():
        mu = _mu(block, args)
        counts = np.zeros((len(mu), levels.mu.size), np.int64)
        for column in mu.T:
            levels.add(counts, column)
        found = individual_epsilons(
            counts * repeat, sigmas=levels.sigmas, q=args.q, delta=args.delta, route=args.route, n_threads=args.threads
        )
        steps = mu.shape[1] * repeat
        parts.append(found.upper)
        if show:
            show(sum(map(len, parts)))
    return np.concatenate(parts), steps, mu_max


def _bar(records: int):
    """A progress bar on stderr, drawn at most ten times a second, after the first half second."""
    start, last = time.monotonic(), [0.0]

    def show(done: int) -> None:
        now = time.monotonic() - start
        if done < records and (now < 0.5 or now - last[0] < 0.1):
            return
        if done >= records and not last[0]:
            return
        last[0] = now
        full = 40 * done // records
        end = "\n" if done >= records else ""
        print(f"\r[{'#' * full}{'.' * (40 - full)}] {done}/{records} records {now:.0f} s", end=end, file=sys.stderr, flush=True)

    return show


def _worst(args, steps: int, mu_max: float) -> float:
    """eps of a record at the largest mu at every step: what worst-case accounting says. Upper bound."""
    mu = mu_max if args.clip is None else float(_mu(np.array([args.clip]), args)[0])
    if mu == 0:
        return 0.0
    step = poisson_subsampled(gaussian(1 / mu * (1 - 2 * query.U)), args.q)
    return query.epsilon(step * steps, args.delta).upper


def _result(args, eps, steps: int, mu_max: float) -> dict:
    return {
        "format": FORMAT,
        "version": VERSION,
        "package": __version__,
        "query": "epsilon",
        "label": LABEL,
        "private": True,
        "records": len(eps),
        "steps": steps,
        "delta": args.delta,
        "q": args.q,
        "quantiles": [
            {"quantile": p, "upper": float(x)}
            for p, x in zip(QUANTILES, np.quantile(eps, QUANTILES, method="higher"), strict=True)
        ],
        "mean": float(eps.mean()),
        "worst_case_upper": _worst(args, steps, mu_max),
    }


def _text(result: dict) -> str:
    lines = [
        f"eps of {result['records']} records at delta = {result['delta']:g} after {result['steps']} steps, q = {result['q']:g}",
        f"{result['label']}; private: not for release",
        "quantile  eps (upper)",
        *(f"{row['quantile']:8.2f}  {row['upper']!r}" for row in result["quantiles"]),
        f"worst case over the norms allowed: {result['worst_case_upper']!r}",
    ]
    return "\n".join(lines)


def _plot(path: str, eps, delta: float) -> None:
    try:
        import matplotlib
    except ImportError:
        raise DomainError('--plot needs matplotlib: pip install "hockeystick[plot]"') from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.hist(eps, bins=min(100, max(10, int(np.sqrt(eps.size)))), color="#3b6ea5")
    axes.set_xlabel(f"individual eps at delta = {delta:g} (upper bound, ex post)")
    axes.set_ylabel("records")
    try:
        figure.savefig(path, dpi=150)
    except ValueError as error:
        raise DomainError(f"{path}: {error}") from None
    finally:
        pyplot.close(figure)
