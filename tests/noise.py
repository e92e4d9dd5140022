"""Rounding made worse on purpose: whether what an answer allows for rounding covers the worst that its claims allow.

In the build HS_NOISE=1 every elementary function of the C floor is off by as much as its claim allows and operations
are rounded in another direction (tests/csrc/noise.h). The same is done here to the functions of `math` and numpy that
the Python floor calls; transforms, dot products and cumulative sums of arrays run in the other direction. A query is
asked again under several KINDS of noise, and every answer is compared with the clean one:

    lower <= estimate <= upper [theory: rounding.first-order];
    the interval meets the clean one, and holds the truth where a table has it;
    |log delta - clean log delta| <= the rounding term of the budget (twice that where operations are off by 2 u, as the
    term counts u), plus its other terms where they are the larger: what a line cuts off depends on where it lies, which
    noise moves.

    python tests/noise.py [--n 2000] [--seed 0] [--seconds 600] [--build DIR]

builds, asks the table of truths, one query of every kind and n queries of tests/queries.py, and prints what each route
used of its rounding term."""

from __future__ import annotations

import argparse
import collections
import ctypes
import functools
import importlib
import math
import os
import pkgutil
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
U = 2.0**-53
OFF, RANDOM, HIGH, LOW, SITES = range(5)  # see csrc/noise.h
NEAREST, UP, DOWN, TO_ZERO, ANY = range(5)
KINDS = ((SITES, ANY), (HIGH, UP), (LOW, DOWN), (SITES, NEAREST), (SITES, UP), (LOW, UP), (RANDOM, TO_ZERO))
"""(what functions are off by, how operations are rounded): those that move answers most, and every direction of
rounding."""

WIDE = 0.1
"""Width, relative to delta, of an interval whose estimate says little: it need only meet the clean one."""

SLOW = 0.1
"""Seconds above which a query of the generator is left out; under noise it takes about twenty times as long."""

CHARGED = ("hs.select(", "hs.shuffled(", "hs.top_k(", "hs.matrix_mechanism(")
"""Steps whose pair or whose rates are computed, around or above what is proved: noise moves its points, and with them
the answer, by more than rounding does. Only the order of the ends is held to."""

FUNCTIONS = ("exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tanh", "sinh", "erf", "erfc", "lgamma", "logaddexp")
ARRAYS = ("dot", "cumsum")
RANGES = {"expm1": (-1.0, math.inf), **dict.fromkeys(("sin", "cos", "tanh", "erf"), (-1.0, 1.0)), "erfc": (0.0, 2.0)}


def build(folder: Path) -> None:
    """The package with a noisy core in `folder`."""
    root = HERE.parent
    where = ["--build-lib", str(folder), "--build-temp", str(folder / "objects")]
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", *where],
        cwd=root,
        env={**os.environ, "HS_NOISE": "1"},
        check=True,
    )
    shutil.copytree(
        root / "src/hockeystick", folder / "hockeystick", dirs_exist_ok=True, ignore=shutil.ignore_patterns("_core.*")
    )


class Noise:
    """The noise of this process. `on` while a query is asked again."""

    def __init__(self, core):
        self.core, self.on = ctypes.PyDLL(core.__file__), False
        self.core.hs_noise_set.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_uint64

    @contextmanager
    def kind(self, style: int, rounding: int, seed: int):
        import numpy as np

        self.style, self.seed, self.random, self.on = style, seed, np.random.default_rng(seed), True
        self.core.hs_noise_set(style, rounding, seed)
        try:
            yield
        finally:
            self.on = False
            self.core.hs_noise_end()

    def forget(self):
        """What modules remember from other queries."""
        for cache in self.caches:
            cache.cache_clear()

    def turned(self, f):
        """`f` under the direction of rounding."""

        @functools.wraps(f)
        def call(*args, **options):
            if not self.on:
                return f(*args, **options)
            self.core.hs_noise_begin()
            try:
                return f(*args, **options)
            finally:
                self.core.hs_noise_end()

        return call

    def off(self, f):
        """`f` off by up to an ulp."""
        import numpy as np

        @functools.wraps(f)
        def call(*args, **options):
            y = f(*args, **options)
            if not self.on or self.style == OFF or getattr(y, "dtype", np.float64) != np.float64:
                return y
            line = sys._getframe(1).f_lineno
            sign = {HIGH: 1, LOW: -1, SITES: 1 if hash((self.seed, line)) & 1 else -1}.get(self.style)
            by = self.random.uniform(-1, 1, np.shape(y)) if sign is None else sign
            with np.errstate(all="ignore"):
                z = y + 2 * U * np.abs(y) * by
                z = np.where(np.abs(z - y) > 2 * U * np.abs(y), np.nextafter(z, y), z)
                z = np.clip(z, *RANGES.get(f.__name__, (-math.inf, math.inf)))
            if not np.ndim(y):
                return type(y)(z) if math.isfinite(z) else y
            y[...] = np.where(np.isfinite(z), z, y)
            return y

        return call


class Noisy:
    """A module some of whose functions are replaced."""

    def __init__(self, module, replaced):
        self.__dict__.update(replaced, _module=module)

    def __getattr__(self, name):
        return getattr(self._module, name)


def install():
    """The noise, in every module of the package that is imported from the noisy build."""
    import numpy as np

    import hockeystick
    from hockeystick import _core
    from hockeystick.grid import _fft

    noise = Noise(_core)
    for module in pkgutil.walk_packages(hockeystick.__path__, "hockeystick."):
        if not module.name.endswith(("_core", "__main__")):
            try:
                importlib.import_module(module.name)
            except ImportError:  # an extra is not installed
                pass
    gate = {
        name: noise.turned(f)
        for name, f in vars(_core).items()
        if callable(f) and not isinstance(f, type) and name != "check"
    }
    arrays = {name: noise.turned(getattr(np, name)) for name in ARRAYS}
    noisy = {
        _core: Noisy(_core, gate),
        math: Noisy(math, {name: noise.off(getattr(math, name)) for name in FUNCTIONS if hasattr(math, name)}),
        np: Noisy(
            np, {**arrays, **{name: _ufunc(noise, getattr(np, name)) for name in FUNCTIONS if hasattr(np, name)}}
        ),
    }
    rows = _fft.lent_rows

    @contextmanager
    def lent_rows(count, n):
        with rows(count, n) as (values, transform, product):
            yield values, noise.turned(transform), product

    _fft.forward, _fft.backward, _fft.lent_rows = noise.turned(_fft.forward), noise.turned(_fft.backward), lent_rows
    noise.caches = []
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "hockeystick":
            noise.caches += [value for value in vars(module).values() if hasattr(value, "cache_clear")]
            for word, value in list(vars(module).items()):
                if isinstance(value, type(sys)) and value in noisy:
                    setattr(module, word, noisy[value])
    return noise


def _ufunc(noise, f):
    call = noise.off(f)
    call.accumulate, call.reduce, call.outer = f.accumulate, f.reduce, f.outer
    return call


class MissError(Exception):
    """An answer under noise that contradicts the clean one, or the truth."""


def _budget(bound):
    """(rounding term, the sum of the other terms). Where there are none, as in closed forms, all width is rounding."""
    import numpy as np

    terms = dict(bound.budget.terms)
    if not any(np.any(term) for term in terms.values()):
        with np.errstate(all="ignore"):
            width = np.maximum(np.subtract(bound.upper, bound.estimate), np.subtract(bound.estimate, bound.lower))
        terms = {"rounding": np.nan_to_num(width)}
    return sum(terms.pop(name) for name in ("rounding", "fft_rounding") if name in terms), sum(terms.values())


def compare(clean, noisy, log: bool, unit: float, charged: bool = False):
    """|noisy - clean| in units of the rounding term, for a log of delta; None where the budget has no such term, or for
    a pair that is computed.

    unit: what an operation is off by at most, in units u."""
    import numpy as np

    if not np.all((noisy.lower <= noisy.estimate) & (noisy.estimate <= noisy.upper)):
        raise MissError(f"out of order: {noisy}")
    if charged:
        return None
    if not np.all((noisy.lower <= clean.upper) & (clean.lower <= noisy.upper)):
        raise MissError(f"{noisy} does not meet {clean}")
    (rounding, rest), own = _budget(clean), _budget(noisy)
    # noise may choose another line, another mesh
    rounding, rest = np.maximum(rounding, own[0]), np.maximum(rest, own[1])
    if not log or noisy.route != clean.route:
        return None
    with np.errstate(all="ignore"):
        narrow = np.isfinite(clean.estimate) & (np.subtract(clean.upper, clean.lower) < WIDE)
        off = np.where(narrow, np.abs(np.expm1(np.subtract(noisy.estimate, clean.estimate))), 0.0)
    allowed = (
        unit * rounding + np.where(np.greater(rest, rounding), rest, 0.0) + 4 * U * (1 + np.abs(clean.estimate))
    )  # of a log
    if not np.all(off <= allowed):
        worst = np.argmax(off / allowed)
        parts = [float(np.ravel(x)[worst]) for x in np.broadcast_arrays(off, rounding, rest, clean.estimate)]
        raise MissError(
            "off by {:.3g}, rounding term {:.3g}, the other terms {:.3g}, at log delta = {!r}".format(*parts)
        )
    some = np.broadcast_to(np.greater(rounding, 0) & narrow, off.shape)
    return float(np.max(off[some] / np.broadcast_to(rounding, off.shape)[some])) if some.any() else None


@contextmanager
def at_most(seconds: float):
    """LateError after that much processor time, in the main thread."""

    def ring(*_):
        raise LateError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class LateError(BaseException):
    """Passes every `except Exception`."""


class Report:
    """Ratios |noisy - clean| / rounding term, the largest over the kinds of noise, by route; and what missed."""

    def __init__(self, noise):
        self.noise, self.ratios, self.missed, self.asked = noise, collections.defaultdict(list), [], 0
        self.late = self.declined = 0

    def ask(self, name, query, *, log, seed=0, truth=None, kinds=KINDS):
        """The largest ratio of one query, or None. `query` makes its run anew: a run keeps what is known of it."""
        import hockeystick

        self.noise.forget()
        clean, worst = query(), None
        self.asked += 1
        for style, rounding in kinds:
            self.noise.forget()
            try:
                with self.noise.kind(style, rounding, seed), at_most(60 * SLOW):
                    noisy = query()
                charged = any(step in name for step in CHARGED)
                ratio = compare(clean, noisy, log, 1 if rounding == NEAREST else 2, charged)
                if truth is not None and not (noisy.lower - truth[1] <= truth[0] <= noisy.upper + truth[1]):
                    raise MissError(f"{noisy} misses {truth[0]!r}")
            except LateError:
                self.late += 1
                break
            except hockeystick.AccuracyError:  # what noise takes may be what an interval had to spare
                self.declined += 1
            except Exception as error:
                self.missed.append(name)
                print(f"MISSED {name} noise {style, rounding, seed}: {type(error).__name__} {error}", flush=True)
            else:
                worst = ratio if worst is None else max(worst, ratio or 0.0)
        if worst is not None:
            self.ratios[clean.route].append((worst, name))
        return worst

    def show(self):
        for route, found in sorted(self.ratios.items()):
            ratios = sorted(ratio for ratio, _ in found)
            print(
                f"{route:12} {len(ratios):5} queries: worst noise / rounding term: least {ratios[0]:.2g}, median "
                f"{statistics.median(ratios):.2g}, most {ratios[-1]:.2g} ({max(found)[1]})"
            )
        print(
            f"{self.asked} queries, {len(set(self.missed))} missed; under noise {self.declined} declined, {self.late}"
            " late"
        )


def known():
    """(name, query, truth and its error) of the Gaussian rows of the table of truths."""
    from rows import ASKED

    for row in ASKED.values():
        if row.kinds == {"gaussian"}:
            truth = float(row.truth)
            yield row.id, row.ask, (truth, 2 * U * abs(truth) + float(row.error))


def every_route():
    """(name, query) of log delta, for every numerical room: both contours, each kind of law, each further route."""
    import hockeystick as hs

    def sampled(sigma, q):
        return hs.poisson_subsampled(hs.gaussian(sigma), q)

    response, truncated = hs.poisson_subsampled(hs.randomized_response(1.0), 0.1), dict(dataset_size=1000, max_batch=20)
    noises = [1 + i / 300 for i in range(300)]
    distinct = hs.compose(*[(sampled(sigma, 0.02), 1) for sigma in noises])
    runs = {
        "plain": (hs.gaussian(10.0) * 500, 3.0, {}),
        "sampled": (sampled(1.0, 0.01) * 1000, 1.0, {}),
        "sampled, far": (sampled(1.0, 0.01) * 1000, 8.0, {}),
        "sampled, both": (sampled(0.7, 0.001) * 10**5, 2.0, {"direction": "add"}),
        "weak": (sampled(1e5, 0.5) * 10**11, 2.0, {}),
        "few": (sampled(0.8, 0.1) * 3, 2.0, {}),
        "plain and sampled": (hs.gaussian(40.0) * 10**3 + sampled(2.0, 0.02) * 500, 1.5, {}),
        "many": (hs.compose(*[(sampled(0.8 + i / 100, 0.001 * (1 + i / 7)), 100 + i) for i in range(40)]), 1.0, {}),
        "by a rule": (distinct, 1.5, {}),
        "by a rule, replaced": (distinct, 2.0, {"adjacency": "replace_one"}),
        "a rate each": (hs.compose(*[(sampled(x, 0.01 + x / 100), 20) for x in noises]), 3.0, {}),
        "unlike": (sampled(8.42, 0.1457) + sampled(1.281, 4.4e-4) * 138, 1.0, {}),
        "hyperbola": (sampled(0.8, 0.001) * 10, 1.0, {}),
        "hyperbola, two": (sampled(1.1, 0.002) * 10 + sampled(0.9, 0.001) * 8, 1.0, {}),
        "replace one": (sampled(1.0, 0.01) * 1000, 1.0, {"adjacency": "replace_one"}),
        "zero out": (sampled(2.0, 0.05) * 300, 1.0, {"adjacency": "zero_out"}),
        "truncated": (hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.01, **truncated) * 500, 1.0, {}),
        "Laplace": (hs.laplace(20.0) * 500, 2.0, {}),
        "sampled Laplace": (hs.poisson_subsampled(hs.laplace(1.0), 0.01) * 1000, 1.0, {}),
        "lattice": (hs.randomized_response(1.0) * 100, 50.0, {}),
        "sampled lattice": (response * 200, 3.0, {}),
        "period": (hs.discrete_gaussian(2.0) * 100, 20.0, {}),
        "atoms": (hs.from_pmf([0.2, 0.3, 0.5], [0.25, 0.35, 0.4]) * 300, 2.0, {}),
        "mixed": (hs.laplace(20.0) * 100 + sampled(1.0, 0.01) * 100, 1.0, {}),
        "pld": (sampled(1.0, 0.01) * 100, 1.0, {"route": "pld"}),
        "pld, Laplace": (hs.laplace(3.0) * 10, 1.0, {"route": "pld"}),
        "prv": (sampled(1.0, 0.1) * 100, 0.5, {"route": "prv"}),
        "saddlepoint": (sampled(1.0, 0.01) * 10**5, 8.0, {"route": "saddlepoint"}),
        "edgeworth": (sampled(1.0, 0.01) * 1000, 1.0, {"route": "edgeworth"}),
        "edgeworth, Laplace": (hs.laplace(20.0) * 500, 2.0, {"route": "edgeworth"}),
    }
    for name, (run, eps, options) in runs.items():
        yield (
            name,
            functools.partial(
                lambda parts, *at, **options: hs.log_delta(hs.compose(*parts), *at, **options),
                run.parts,
                eps,
                **options,
            ),
        )


def generated(seed, n):
    """(number, name, query, whether of log delta) of the shared generator; its queries of delta ask for the log."""
    from tests import queries

    import hockeystick as hs

    for i in range(n):
        case = queries.draw(seed, i)
        if case.query in ("delta", "log_delta"):
            yield i, repr(case), lambda case=case: hs.log_delta(case.run(), *case.at, **case.options), True
        else:
            yield i, repr(case), case.ask, False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=0, help="queries of the shared generator")
    parser.add_argument(
        "--seed", default="0", help="a number, and the kinds of steps that runs begin with (queries.py)"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="for the generator")
    parser.add_argument("--build", type=Path, help="where the noisy build lies or goes; else a temporary folder")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return inside(given)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.build or Path(temporary)
        build(folder)
        env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{HERE.parent}", "OMP_NUM_THREADS": "1"}
        return subprocess.run([sys.executable, __file__, "--inside", *sys.argv[1:]], env=env, cwd=folder).returncode


def inside(given) -> int:
    report, first = Report(install()), int(given.seed.split()[0])
    if report.ask("off", next(every_route())[1], log=True, kinds=((OFF, NEAREST),)) != 0:
        print("without noise the build is not what it is: two equal queries differ")
        return 1
    report.ratios.clear()
    for name, query, truth in known():
        report.ask(name, query, log=False, truth=truth, seed=first, kinds=KINDS[:4])
    seen = [report.ask(name, query, log=True, seed=first) for name, query in every_route()]
    sharp = sum(ratio is not None and ratio > 0.01 for ratio in seen)
    print(f"{sharp} of {len(seen)} rounding terms would be missed by noise if they were 100 times smaller")
    start = time.monotonic()
    for i, name, query, log in generated(given.seed, given.n):
        if time.monotonic() - start > given.seconds:
            print(f"stopped at {i}")
            break
        try:
            with at_most(SLOW):
                answer = query()
        except (Exception, LateError):  # whether queries are refused or answered, and how, is what others test
            continue
        if getattr(answer, "certified", False):
            report.ask(name, query, log=log, seed=i)
    report.show()
    return 1 if report.missed or sharp < len(seen) / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
