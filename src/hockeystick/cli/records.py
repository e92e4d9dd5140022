"""The verb individual: eps of every record from a file of norms."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .. import query
from ..bound import DomainError
from ..individual.dpsgd import mu_from_norms
from ..individual.epsilons import LABEL, individual_epsilons
from ..individual.gaussian import gdp_epsilons_upper
from ..individual.levels import NoiseLevels
from ..outward import DOWN, U
from ..textrows import require_line_end, separator_of
from ..what.mechanism import count, gaussian, poisson_subsampled, within
from ..what.vectors import reals
from . import options
from .tables import Answer

BLOCK = 1 << 16
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)

more_individual = """

NORMS holds one row a record and one column a step:
  .npy      an array of float32 or float64 with one or two dimensions, read in blocks
  .csv      numbers separated by commas, semicolons or tabs; a first line of names is passed over
  .parquet  numeric columns (needs the extra "parquet")
The noise is --noise, in the unit of the norms, or --noise-multiplier times --clip. With --q below 1 every record is
charged at every step, drawn or not: give the norm that it has or would have, or the clip. Upper bounds only, ex post,
and private, for add_remove and the larger of both directions; --route is auto, contour or fft here."""


def arguments_individual(parser) -> None:
    parser.add_argument("norms", metavar="NORMS", type=Path, help="file of norms: .npy, .csv or .parquet")
    parser.add_argument(
        "--noise", type=options.number, help="standard deviation of the noise, in the unit of the norms"
    )
    parser.add_argument("--noise-multiplier", type=options.number, help="instead of --noise, with --clip: noise / clip")
    parser.add_argument("--clip", type=options.number, help="clipping norm; larger norms are cut to it")
    parser.add_argument("--delta", type=options.number, required=True, help="0 < delta < 1")
    parser.add_argument("--q", type=options.number, default=1.0, help="Poisson sampling rate, default 1 (none)")
    parser.add_argument("--steps", type=options.whole, default=1, help="how often each column ran, default 1")
    parser.add_argument("--levels", type=options.whole, default=32, help="noise levels with --q, default 32")
    parser.add_argument("--out", metavar="FILE.npy", help="write the eps of every record (private!)")
    options.add_allowances(parser)


def answer_individual(args) -> Answer:
    if args.adjacency != "add_remove" or args.direction != "both":
        raise DomainError(
            "individual bounds are for add_remove neighbours, the larger of both directions; "
            f"got adjacency={args.adjacency!r}, direction={args.direction!r}"
        )
    route = "contour" if args.route == "auto" else args.route
    if route not in ("contour", "fft"):
        raise DomainError(f"--route must be auto, contour or fft here, got {args.route!r}")
    if args.rtol is not None:
        raise DomainError("--rtol is not an option of individual: its bounds are upper bounds")
    within("delta", args.delta, 0, 1, "()")
    blocks, records = _open(args.norms, args.allow_unterminated)
    repeat = count("steps", args.steps)
    show = _bar(records) if sys.stderr.isatty() and not args.quiet else None
    if args.q == 1:
        eps, steps, mu_max = _plain(blocks, repeat, args, show)
        route = "gaussian"
    else:
        eps, steps, mu_max = _sampled(blocks, repeat, args, route, show)
    if args.out:
        np.save(args.out, eps)
    worst = _worst_upper(args, steps, mu_max)
    shown = zip(QUANTILES, np.quantile(eps, QUANTILES, method="higher"), strict=True)
    answered = {"route": route, "certified": True}
    rows: list[dict[str, Any]] = [
        {"quantile": p, "lower": 0.0, "estimate": float(x), "upper": float(x), **answered} for p, x in shown
    ]
    more = {"label": LABEL, "private": True, "records": len(eps), "steps": steps, "delta": args.delta, "q": args.q}
    more |= {"mean": float(eps.mean()), "worst_case_upper": worst}
    title = f"eps of {len(eps)} records at delta = {args.delta:g} after {steps} steps, q = {args.q:g}"
    notes = [f"worst case over the norms allowed: {worst!r}", f"{LABEL}; private: not for release"]
    return Answer(rows, title, more=more, notes=notes, draw=lambda: _draw(eps, args.delta))


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
        raise DomainError(
            f"{path}: expected one row a record and one column a step, got {table.dtype} of shape {table.shape}"
        )
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
    separator = separator_of(first)
    named = [any(map(str.isalpha, field)) and not _is_number(field) for field in first.split(separator)]
    if not all(named) and not all(map(_is_number, first.split(separator))):
        raise DomainError(f"{path}:1: neither numbers nor names of columns: {first.strip()!r:.80}")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")  # its shape refuses it
            return np.loadtxt(path, delimiter=separator, skiprows=int(all(named)), ndmin=2, encoding="utf-8")
    except ValueError as error:
        raise DomainError(f"{path}: {error}") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
        return np.column_stack([reals(name, table[name].to_numpy()) for name in table.column_names])
    except (ArrowException, ValueError) as error:
        raise DomainError(f"{path}: {error}") from None


def _mu(block, args):
    return mu_from_norms(block, sigma=args.noise, noise_multiplier=args.noise_multiplier, clip=args.clip)


def _plain(blocks, repeat: int, args, show):
    """(eps, steps, largest mu of a step) without sampling: mu^2 adds up. A sum of k terms >= 0 is off by k u."""
    parts, mu_max, steps = [], 0.0, 0
    for block in blocks():
        mu = _mu(block, args)
        steps, mu_max = mu.shape[1] * repeat, max(mu_max, float(mu.max()))
        parts.append(np.sqrt((mu * mu).sum(axis=1) * repeat) * (1 + (mu.shape[1] + 4) * U))
        if show:
            show(sum(map(len, parts)))
    return gdp_epsilons_upper(np.concatenate(parts), args.delta), steps, mu_max


def _sampled(blocks, repeat: int, args, route: Any, show):
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
            counts * repeat, sigmas=levels.sigmas, q=args.q, delta=args.delta, route=route, n_threads=args.threads
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
        print(
            f"\r[{'#' * full}{'.' * (40 - full)}] {done}/{records} records {now:.0f} s",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show


def _worst_upper(args, steps: int, mu_max: float) -> float:
    """eps of a record at the largest mu at every step: what worst-case accounting says. Upper bound."""
    mu = mu_max if args.clip is None else float(_mu(np.array([args.clip]), args)[0])
    if mu == 0:
        return 0.0
    step = poisson_subsampled(gaussian(1 / mu * DOWN), args.q)
    return query.epsilon(step * steps, args.delta).upper


def _draw(eps, delta: float):
    from .. import plot

    return plot.draw_records(eps, delta)
