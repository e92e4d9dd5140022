"""What the page shows: runs as its fields say, and their certified curves. Nothing here knows of widgets.

A `Choice` is a run whose fields can be moved, a `Given` one that came as it is. `pieces` yields what is drawn of
either, with few points first, so that a page can follow a slider, then with more.

The trade-off curve is read off the same deltas as the privacy curve: chords.py bounds it from both sides between them,
which takes microseconds a point where `hs.true_positive_rate` searches for milliseconds, and leaves a band as wide as
the points are apart."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import batch, query, risk
from ..bound import AccuracyError, Bound, Budget, DomainError
from ..calibration import calibrate
from ..chords import EPS_MAX, Nodes, tpr_lower
from ..outward import DOWN, UP
from ..plot import Series
from ..state import to_dict
from ..what.batches import truncated_poisson_subsampled, without_replacement
from ..what.mechanism import Mechanism, Run, as_run, count, gaussian, poisson_subsampled
from .desk import NOW, REST


class Field(NamedTuple):
    """A number of a run: its label, the range of its slider, whether it is an integer, and check(value), which
    refuses."""

    label: str
    low: float
    high: float
    whole: bool
    check: Callable


FIELDS = {
    "noise": Field("noise multiplier \N{GREEK SMALL LETTER SIGMA}", 0.1, 100.0, False, lambda x: gaussian(x).sigma),
    "rate": Field(
        "sampling rate q", 1e-6, 1.0, False, lambda x: getattr(poisson_subsampled(gaussian(1.0), x), "q", 1.0)
    ),
    "steps": Field("steps k", 1, 1e6, True, lambda x: count("steps", x)),
    "records": Field("records n", 10, 1e8, True, lambda x: count("records", x, 1, 10**12)),
    "batch": Field("batch size", 1, 1e6, True, lambda x: count("batch", x, 1, 10**12)),
}


class Choice(NamedTuple):
    """A run of equal steps."""

    sampler: str = "Poisson"
    noise: float = 1.0
    rate: float = 0.01
    steps: int = 1000
    records: int = 60_000
    batch: int = 700

    @property
    def step(self) -> Mechanism:
        return SAMPLERS[self.sampler].step(self)

    @property
    def run(self) -> Run:
        return self.step * self.steps

    @property
    def epoch(self) -> int:
        """Steps in which a record is used once on average."""
        return SAMPLERS[self.sampler].epoch(self)

    def python(self) -> str:
        return f"{SAMPLERS[self.sampler].python.format(c=self)} * {self.steps}"

    def expression(self) -> str:
        return f"{self.steps}*{SAMPLERS[self.sampler].expression.format(c=self)}"


class Given(NamedTuple):
    """A run that came with the call. `text`: how the command line said it, if that did; `log`: whether that is a log's
    path."""

    run: Run
    text: str = ""
    log: bool = False

    def python(self) -> str:
        if self.log:
            return f"hs.read_log({self.text!r})"
        if len(self.run.parts) > LONG:
            return "hs.from_json(open('RUN.json').read())"
        return f"hs.from_dict({to_dict(self.run)!r})"

    def expression(self) -> str:
        return self.text or "RUN.json"


LONG = 20
"""Distinct steps of a run beyond which Python reads the run from a file."""


class Sampler(NamedTuple):
    """How batches are drawn: its fields, one step, an epoch, and how Python and the command line write a step."""

    fields: tuple[str, ...]
    step: Callable[[Choice], Mechanism]
    epoch: Callable[[Choice], int]
    python: str
    expression: str


SAMPLERS = {
    "Poisson": Sampler(
        ("noise", "rate", "steps"),
        lambda c: poisson_subsampled(gaussian(c.noise), c.rate),
        lambda c: math.ceil(1 / c.rate),
        "hs.poisson_subsampled(hs.gaussian({c.noise!r}), {c.rate!r})",
        "gaussian({c.noise!r})@{c.rate!r}",
    ),
    "Poisson, cut to a size": Sampler(
        ("noise", "rate", "steps", "records", "batch"),
        lambda c: truncated_poisson_subsampled(gaussian(c.noise), c.rate, dataset_size=c.records, max_batch=c.batch),
        lambda c: math.ceil(1 / c.rate),
        "hs.truncated_poisson_subsampled(hs.gaussian({c.noise!r}), {c.rate!r}, dataset_size={c.records},"
        " max_batch={c.batch})",
        "truncated({c.noise!r}, q={c.rate!r}, n={c.records}, max={c.batch})",
    ),
    "batches of fixed size": Sampler(
        ("noise", "steps", "records", "batch"),
        lambda c: without_replacement(gaussian(c.noise), dataset_size=c.records, max_batch=c.batch),
        lambda c: math.ceil(c.records / c.batch),
        "hs.without_replacement(hs.gaussian({c.noise!r}), dataset_size={c.records}, max_batch={c.batch})",
        "without_replacement({c.noise!r}, n={c.records}, batch={c.batch})",
    ),
    "all records": Sampler(
        ("noise", "steps"),
        lambda c: gaussian(c.noise),
        lambda c: 1,
        "hs.gaussian({c.noise!r})",
        "gaussian({c.noise!r})",
    ),
}

SHARP = 0.05
"""Relative width beyond which a point of the trade-off curve is searched for."""
WIDE = 1e-3
"""Relative width beyond which the fast loop's answers are asked for again."""
ROUNDS = (10, 60)
"""Points of the privacy curve, one round after the other."""
FEW, POINTS = 9, 48
"""Points of the curves of eps: before one is shown that is asked for point by point, and in the end."""
FAR = 1e-10
"""Curves go on to the eps of this delta."""
FPR = np.logspace(-6, 0, 37)[:-1]


def read(name: str, text: str) -> float | int:
    """The number in a field; DomainError says what is wrong with it."""
    field = FIELDS[name]
    value = number(field.label, text)
    if field.whole and value.is_integer():
        value = int(value)
    return field.check(value)


def number(label: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DomainError(f"{label} must be a number, got {text.strip()!r:.40}") from None


def choice_of(run: Run, text: str = "", log: bool = False) -> Choice | Given:
    """The fields of a run that equal Poisson-sampled or plain Gaussian steps make; others stay as they are."""
    if len(run.parts) == 1:
        (step, steps), *_ = run.parts
        base = getattr(step, "base", step)
        noise, rate = getattr(base, "sigma", None), getattr(step, "q", 1.0)
        sampler = "all records" if step is base else "Poisson"
        if noise is not None and as_run(Choice(sampler, noise, rate, steps).run) == run:
            return Choice(sampler, noise, rate, steps)
    return Given(run, text, log)


def noise_for(choice: Choice, epsilon: float, delta: float, **options) -> Choice:
    """The choice with the least noise, to six digits, that is proved to keep eps at delta below `epsilon`."""
    make = lambda noise: choice._replace(noise=noise).run  # noqa: E731
    found = calibrate(make, over=(0.02, 1e5), start=choice.noise, eps=epsilon, delta=delta, tol=1e-6, **options)
    unit = 10.0 ** (math.floor(math.log10(found.value)) - 5)
    up = float(f"{math.ceil(found.value / unit) * unit:.6g}")  # more noise: the target is met all the more
    return choice._replace(noise=up if up >= found.value else found.value)


def pieces(what: Choice | Given, delta: float, **options) -> Iterator[tuple[str, Bound | Series | None]]:
    """("epsilon", eps at `delta`), ("epoch", the same after one more epoch), and (figure, its curve), ever finer
    ones."""
    yield "epsilon", query.epsilon(what.run, delta, **options)
    if isinstance(what, Choice):
        yield "epoch", query.epsilon(what.step * (what.steps + what.epoch), delta, **options)
    yield NOW, None  # the browser shows the numbers while the curves are computed
    rest = []
    yield from _curves(what, delta, ROUNDS[0], options)
    if isinstance(what, Choice):
        # eps grows like a root
        steps = np.append(1 + (2 * what.steps - 1) * np.linspace(0, 1, POINTS) ** 2, what.steps)
        noise = np.append(what.noise * np.geomspace(0.5, 3.0, POINTS), what.noise)
        for name, values in (("steps", np.round(steps).astype(np.int64)), ("noise", noise)):
            rest.append(_along(what, name, np.unique(values), delta, options))
            yield next(rest[-1])
    yield REST, None
    for points in ROUNDS[1:]:
        for shown in _curves(what, delta, points, options):
            yield shown
    for pieces in rest:
        yield from pieces
    yield from _sharper(what, shown[1].bound, options)


def _curves(what, delta: float, points: int, options) -> Iterator[tuple[str, Series]]:
    """The privacy and the trade-off curve."""
    ends = [query.epsilon(what.run, level, **options).upper for level in (FAR, delta)]
    far = max([end for end in ends if 0 < end < math.inf], default=1.0)
    eps = np.linspace(-far, far, 2 * points + 1)
    sides = [query.delta(what.run, eps, direction=side, **options) for side in ("remove", "add")]
    low, mid, high = (np.maximum(*(getattr(s, end)[points:] for s in sides)) for end in ("lower", "estimate", "upper"))
    yield "privacy", Series("", eps[points:], Bound(low, np.clip(mid, low, high), high, "", True, sides[0].budget))
    yield "tradeoff", Series("", FPR, tradeoff(eps, sides))


def tradeoff(eps: np.ndarray, sides: list[Bound[Any]]) -> Bound[Any]:
    """Certified ends of the largest true positive rate at every `FPR`, over both directions, from deltas at rising
    eps."""
    inside = np.abs(eps) <= EPS_MAX  # whose e^eps a double holds
    eps, sides = eps[inside], [side[inside] for side in sides]
    low, high = FPR.copy(), np.ones(FPR.size)
    if eps.size < 4:
        return Bound(low, 0.5 * (low + high), high, sides[0].route, True, sides[0].budget)
    high = FPR.copy()
    x = np.exp(eps)
    dn, up = x * DOWN, x * UP
    for side in sides:
        above = (side.upper + np.multiply.outer(FPR, up)) * UP
        at = np.argmin(above, axis=1)
        high = np.maximum(high, np.minimum(above[np.arange(FPR.size), at], 1.0))
        rows = [array.tolist() for array in (eps, dn, up, side.lower, side.estimate, side.upper)]
        for i, centre in enumerate(at.tolist()):
            for first in {min(max(centre + shift, 0), eps.size - 4) for shift in (-2, -1)}:
                low[i] = max(low[i], tpr_lower(Nodes(*(tuple(row[first : first + 4]) for row in rows)), float(FPR[i])))
    low = np.minimum(low, high)
    return Bound(low, 0.5 * (low + high), high, sides[0].route, True, sides[0].budget)


def _sharper(what, found: Bound[Any], options) -> Iterator[tuple[str, Series]]:
    """The trade-off curve where deltas far apart leave a wide band: searched for, milliseconds a point."""
    low, high = found.lower.copy(), found.upper.copy()
    for i in _halving(FPR.size):
        if high[i] > low[i] * (1 + SHARP):
            try:
                point = risk.true_positive_rate(what.run, float(FPR[i]), **options)
            except AccuracyError:
                continue
            low[i], high[i] = max(low[i], point.lower), min(high[i], point.upper)
            yield (
                "tradeoff",
                Series("", FPR, Bound(low.copy(), 0.5 * (low + high), high.copy(), "", True, point.budget)),
            )


def _halving(size: int) -> list[int]:
    """0 .. size - 1 in an order that halves the largest gap, ends first."""
    order = sorted(range(size), key=lambda i: f"{i:b}"[::-1].ljust(20, "0"))
    return list(dict.fromkeys([0, size - 1, *order]))


def _along(what: Choice, name: str, values: np.ndarray, delta: float, options) -> Iterator[tuple[str, Series | None]]:
    """eps at every value of a field, from 0 to inf where nothing is certified. What the fast loop does not know, or not
    narrowly, is asked one by one, in an order that halves the largest gap."""
    low, mid, high = np.zeros(values.size), np.zeros(values.size), np.full(values.size, math.inf)
    asked, budget = np.zeros(values.size, dtype=bool), Budget({})
    if what.sampler in ("Poisson", "all records"):
        rate = what.rate if what.sampler == "Poisson" else 1.0
        # the first has the last value
        for half in (slice((values.size - 1) % 2, None, 2), slice(values.size % 2, None, 2)):
            sigma, steps = (values[half] if name == field else getattr(what, field) for field in ("noise", "steps"))
            found = batch.epsilon_batch(sigma, rate, steps, delta, alone=False, strict=False, **options)
            low[half], mid[half], high[half], budget = found.lower, found.estimate, found.upper, found.budget
            asked[half] = True
            yield name, Series("", values[asked], Bound(low[asked], mid[asked], high[asked], "", True, budget))
    for i in _halving(values.size):
        if high[i] <= low[i] * (1 + WIDE):
            continue
        try:
            found = query.epsilon(what._replace(**{name: values[i].item()}).run, delta, **options)
            low[i], mid[i], high[i], budget = found.lower, found.estimate, found.upper, found.budget
        except AccuracyError:
            pass
        asked[i] = True
        if asked.sum() < min(FEW, values.size):
            yield NOW, None  # a place to stop for a newer question
        else:
            yield name, Series("", values[asked], Bound(low[asked], mid[asked], high[asked], "", True, budget))


def interval(bound: Bound) -> str:
    """The digits that both ends share, and the interval."""
    low, high = f"{bound.lower:.12g}", f"{bound.upper:.12g}"
    for digits in range(12, 2, -1):
        if f"{bound.lower:.{digits}g}" == f"{bound.upper:.{digits}g}":
            return f"{bound.lower:.{digits}g}"
    return f"{low} to {high}"


def as_python(runs: dict[str, Choice | Given], delta: float, options: dict) -> str:
    lines = "".join(f"    {name!r}: {what.python()},\n" for name, what in runs.items())
    more = "".join(f", {name}={value!r}" for name, value in options.items() if value != "add_remove")
    ask = f"for name, run in runs.items():\n    print(name, hs.epsilon(run, {delta!r}{more}))\n"
    return f"import hockeystick as hs\n\nruns = {{\n{lines}}}\n{ask}"


def as_command(runs: dict[str, Choice | Given], delta: float, options: dict) -> str:
    words = [quoted(f"{re.sub(NO_NAME, '', name)}={what.expression()}") for name, what in runs.items()]
    more = "".join(f" --{name} {value}" for name, value in options.items() if value != "add_remove")
    return " ".join(["hockeystick epsilon", *words, f"--delta {delta!r}"]) + more


NO_NAME = r"[=()*+@\[\]]"
"""What a name on the command line may not hold."""


def quoted(word: str) -> str:
    """A word as any POSIX shell reads it back."""
    return "'" + word.replace("'", "'\\''") + "'"


def as_json(runs: dict[str, Choice | Given], delta: float, options: dict) -> str:
    """Every run as `hs.from_dict` reads it, and its eps."""
    rows = []
    for name, what in runs.items():
        epsilon = to_dict(query.epsilon(what.run, delta, **options))
        rows.append({"name": name, "run": to_dict(what.run), "delta": delta, **options, "epsilon": epsilon})
    return json.dumps(rows, indent=1)
