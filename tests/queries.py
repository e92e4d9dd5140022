"""Queries drawn at random over all that validation allows, with a habit of its corners: `draw(seed, index)`.

A case is text: its repr is the expression that is asked, which can be pasted after

    import hockeystick as hs
    import numpy as np
    from math import inf
    from scipy.special import ndtr

A seed may name kinds of steps, "61 allocation top_k": then every run begins with one of them.

Half of the cases are mild (parameters that people use); the others take every number log-uniform over its whole domain,
or at an end of the domain, or next to one. The point asked is scattered around the losses of the run, or lies on one of
its landmarks (a jump of the curve, a wall of the loss, the probability of an infinite loss), or anywhere."""

from __future__ import annotations

import math
from random import Random
from typing import Any, NamedTuple

U = 2.0**-53
TINY = 5e-324
BELOW_ONE = 1 - U
ADJACENCIES = ("add_remove", "replace_one", "zero_out")
DIRECTIONS = ("both", "remove", "add")
ROUTES = ("auto", "contour", "prv", "pld", "edgeworth", "saddlepoint")


class Text(str):
    """An expression; its repr is the expression itself."""

    __slots__ = ()
    __repr__ = str.__str__


class Call(NamedTuple):
    """A call of a public function, as text."""

    name: str
    args: tuple
    options: dict

    def __repr__(self):
        inner = [repr(x) for x in self.args] + [f"{name}={x!r}" for name, x in self.options.items()]
        return f"hs.{self.name}({', '.join(inner)})"


class Case(NamedTuple):
    """A query. `parts`: the (step, count) of its run, empty where the query takes no run; `at`: the other arguments."""

    query: str
    parts: tuple[tuple[Call, int], ...]
    at: tuple
    options: dict[str, Any]

    def __repr__(self):
        return repr(Call(self.query, ((run_text(self.parts),) if self.parts else ()) + self.at, self.options))

    def ask(self):
        return made(repr(self))

    def run(self):
        return made(run_text(self.parts))


class Inner(NamedTuple):
    """A run within a step, as text."""

    parts: tuple[tuple[Call, int], ...]

    def __repr__(self):
        return run_text(self.parts)


ARRAYS = 48
"""Steps from which on a run of sampled Gaussian steps alone is written as arrays."""


def run_text(parts) -> Text:
    """A run of (step, count) as an expression."""
    if len(parts) >= ARRAYS and (rows := gaussian_rows(parts)):
        return Text("hs.compose_arrays({!r}, {!r}, {!r})".format(*rows))
    if len(parts) == 1:
        step, k = parts[0]
        return Text(f"{step!r} * {k}" if k > 1 else repr(step))
    return Text(f"hs.compose({', '.join(f'({step!r}, {k})' for step, k in parts)})")


def gaussian_rows(parts) -> list[list] | None:
    """Noise, rates and counts of sampled Gaussian steps of sensitivity 1; None where there are others."""
    pairs = [((s.args[0], s.args[1], k) if s.name == "poisson_subsampled" else (s, 1.0, k)) for s, k in parts]
    if any(base.name != "gaussian" or base.options for base, _, _ in pairs):
        return None
    sigma, rate, count = zip(*((base.args[0], q, k) for base, q, k in pairs), strict=True)
    return [list(sigma), rate[0] if len(set(rate)) == 1 else list(rate), list(count)]


def made(text: str):
    """The value of an expression."""
    import numpy as np
    from scipy.special import ndtr

    import hockeystick as hs

    return eval(text, {"hs": hs, "np": np, "inf": math.inf, "ndtr": ndtr})


def draw(seed, index: int) -> Case:
    """Case number `index` of a seed, drawn alone."""
    d = Dice(f"{seed}/{index}", str(seed).split()[1:])
    name = d.weighted(QUERIES)
    return QUERIES[name][1](d, name)


class Dice(Random):
    """A source of numbers. `mild` cases keep to parameters that people use."""

    def __new__(cls, seed, first=()):
        """One argument for the generator itself: Python 3.10 refuses two."""
        return super().__new__(cls, seed)

    def __init__(self, seed, first=()):
        super().__init__(seed)
        self.first = first
        self.mild = self.chance(0.5)
        self.adjacency = self.choices(ADJACENCIES, (6, 2, 2))[0]
        if defined := [STEPS[name][2] for name in first if name in STEPS]:
            self.adjacency = self.choice(sorted(frozenset.union(*defined)))

    def chance(self, p: float) -> bool:
        return self.random() < p

    def weighted(self, table: dict) -> str:
        """A key, by the first entry of its row."""
        return self.choices(list(table), [row[0] for row in table.values()])[0]

    def number(self, lo: float, hi: float, mild=None, corners=()) -> float:
        """Log-uniform over [lo, hi], now and then an end, the neighbour of an end, or one of `corners`."""
        if self.mild and mild and self.chance(0.9):
            lo, hi = mild
        elif self.chance(0.12):
            return float(self.choice((lo, hi, math.nextafter(lo, hi), math.nextafter(hi, lo), *corners)))
        x = math.exp(self.uniform(math.log(lo), math.log(hi)))
        x = float(f"{x:.1g}") if self.chance(0.1) else x
        return float(min(max(x, lo), hi))

    def whole(self, lo: int, hi: int, mild=None) -> int:
        return min(max(round(self.number(max(lo, 0.5), hi, mild)), lo), hi)

    def near(self, x: float) -> float:
        """x, or a number next to x or close to x, now and then -x."""
        move = self.choice((0, 0, 0, 1, -1, 1, -1, U * 8, -U * 8, 1e-13, -1e-13, 1e-9, -1e-6))
        return math.nextafter(x, math.inf * move) if abs(move) == 1 else float(x) * (1 + move)

    def rate(self) -> float:
        """A sampling rate."""
        if self.chance(0.2):
            return 1 - self.number(U, 0.5, corners=(2 * U, 1e-12))
        return self.number(1e-12, 1.0, (1e-4, 0.9), (BELOW_ONE, 1 - 1e-12, 0.5))

    def count(self) -> int:
        """A number of steps."""
        if self.chance(0.5):
            return self.choice((1, 1, 1, 2, 2, 3, self.randint(2, 12)))
        return self.whole(1, 10**12, (1, 1e5))

    def probability(self) -> float:
        """A number in (0, 1), over all its decades and near 1."""
        if self.chance(0.1):
            return 1 - self.number(U, 0.5)
        return self.number(TINY, BELOW_ONE, (1e-12, 0.5), (1e-300, 2.3e-308, 1e-5, 0.5, 1 - 2 * U))

    def probabilities(self, n: int) -> list[float]:
        """n probabilities > 0 that sum to 1 up to rounding."""
        scale = self.choice((0.1, 2.0, 20.0, 0.0) if self.mild else (1.0, 20.0, 300.0, 700.0))
        weights = [math.exp(self.uniform(-scale, 0)) for _ in range(n)]
        return [x / sum(weights) for x in weights]

    def step(self, names=None) -> Call:
        """A step, as a rule one for which the adjacency is defined."""
        table = {n: STEPS[n] for n in names or STEPS if self.adjacency in STEPS[n][2] or self.chance(0.01)}
        return STEPS[self.weighted(table)][1](self)


# Steps. STEPS has, for each kind, a weight, a function of dice, the adjacencies for which the step is defined, and
# those for which it is on a Poisson sample.


def gaussian(d: Dice) -> Call:
    ratio = d.number(1e-3, 1e9, (0.3, 30.0), (0.02, 0.0266, 1e4))
    unit = d.number(1e-290, 1e290, (1e-3, 1e3)) if d.chance(0.08) else 1.0
    return Call("gaussian", (ratio * unit,), {"sensitivity": unit} if unit != 1 else {})


def discrete(d: Dice) -> Call:
    name = d.choice(("discrete_gaussian", "discrete_laplace"))
    unit = d.choice((1, 1, 1, 2, 7, d.whole(1, 10**6 if d.chance(0.05) else 300)))
    lo, hi = (0.05, 1e5 if d.chance(0.05) else 1e3) if name == "discrete_gaussian" else (1 / 300, 1e9)
    scale = d.number(lo, hi, (0.3, 30.0), (0.1, 0.05001)) * unit
    return Call(name, (scale,), {"sensitivity": unit} if unit > 1 else {})


def loss_of(d: Dice) -> float:
    return d.number(d.choice((1e-16, 0.5)), 300, (0.01, 5.0), (0.0, 1e-300, 20.0))


def pmf(d: Dice) -> Call:
    n, kind = d.choice((1, 2, 2, 3, 3, 4, 5, 6, 30)), d.random()
    num, den, far = d.probabilities(n), d.probabilities(n), d.number(1e-17, 1.0)
    if kind < 0.35:  # nearly the same law
        den = [x * (1 + far * d.uniform(-1, 1)) for x in num]
        den = [x / sum(den) for x in den]
    elif kind < 0.45 and n > 1:  # one loss far from the others
        den[0] = d.choice((TINY, 1e-310, 1e-300, 1e-200, 0.0))
        den[-1] = max(1 - math.fsum(den[:-1]), 0.0)
    elif kind < 0.55 and n > 2:  # infinite losses
        den, num = [0.0, *d.probabilities(n - 1)], [*d.probabilities(n - 1), 0.0] if d.chance(0.5) else num
    if d.chance(0.05):
        num[0] *= 1 + 9e-10
    return Call("from_pmf", (num, den), {})


def curve(d: Dice) -> Call:
    """The curve of a random law at its losses, or a single point."""
    options = {} if d.chance(0.5) else {"symmetric": False}
    signs = (1, 1, -1) if options else (1,)
    eps = sorted({d.number(1e-6, 300, (0.01, 5.0)) * d.choice(signs) for _ in range(d.choice((1, 1, 2, 3, 5)))})
    eps = [0.0] if d.chance(0.15) else eps
    inf = d.choice((0.0, d.probability(), d.number(1e-20, 1e-3)))
    share = d.probabilities(len(eps))
    room = max(sum(p * math.exp(-e) for p, e in zip(share, eps, strict=True)), 1.0)  # the den masses sum to at most 1
    law = [((1 - inf) * p / room, e) for p, e in zip(share, eps, strict=True)]
    delta = [max(inf + sum(p * -math.expm1(e - x) for p, x in law if x > e), -math.expm1(e)) for e in eps]
    return Call("from_curve", (eps, delta), options)


def loss_cdf(d: Dice) -> Call:
    """A Gaussian step, given by the distribution functions of its loss."""
    m = d.number(0.05, 5.0)
    at, far = (f"s / {m!r}", f"{m / 2!r}")
    cdf, sf = (Text(f"lambda s: ndtr({at} {sign} {far})") for sign in "-+"), (f"{far} - {at}", f"-{far} - {at}")
    tails = {name: Text(f"lambda s: ndtr({x})") for name, x in zip(("sf_num", "sf_den"), sf, strict=True)}
    return Call("from_loss_cdf", tuple(cdf), tails if d.chance(0.7) else {})


def gaussian_mixture(d: Dice) -> Call:
    shifts = [d.choice((0.0, 1.0, d.number(1e-3, 10.0))) for _ in range(d.choice((0, 1, 1, 2, 4)))] + [
        d.choice((1.0, 2.0))
    ]
    return Call(
        "gaussian_mixture", (d.number(2e-3, 1e9, (0.3, 30.0), (0.01,)), shifts, d.probabilities(len(shifts))), {}
    )


def group(d: Dice) -> Call:
    """Several records and a sampled step, or one that is not sampled."""
    size = d.choice((2, 3, d.whole(1, 1000, (2, 30))))
    if d.chance(0.3):
        size = [d.choice((1.0, 0.5, 0.25, d.whole(1, 8) / 8)) for _ in range(d.whole(1, 8))]
    base = gaussian(d)
    return Call("group", (base if d.chance(0.1) else Call("poisson_subsampled", (base, d.rate()), {}), size), {})


def truncated(d: Dice) -> Call:
    base, n = gaussian(d), d.whole(0, 10**12, (2, 1e5))
    fixed = {"assume_fixed_n": True} if d.chance(0.5) else {}
    if d.chance(0.35):
        batch = d.choice((1, n, n - 1, n // 2, d.whole(0, max(n, 1))))
        return Call("without_replacement", (base,), {"dataset_size": n, "batch": min(max(batch, 0), n), **fixed})
    q = d.choice((d.rate(), d.rate(), d.rate(), 0.0 if d.chance(0.1) else 1.0))
    room = round(n * q + d.uniform(-4, 8) * math.sqrt(n * q * (1 - q)))
    batch = min(max(d.choice((room, room, room, 1, n, n - 1, d.whole(0, 10**12))), 0), 10**12)
    size = (n, d.whole(n, 10**12, (n + 1, 2 * n + 2))) if d.chance(0.08) else n
    return Call("truncated_poisson_subsampled", (base, q), {"dataset_size": size, "max_batch": batch, **fixed})


def cyclic(d: Dice) -> Call:
    n, rounds = d.whole(1, 10**6, (10, 1e4)), d.whole(1, 10**9, (1, 2000))
    options = {"iterations": rounds, "bands": d.whole(1, min(rounds + 1, 10**6)), "dataset_size": n}
    options |= {"max_batch": d.whole(0, n)} if d.chance(0.3) else {}
    options |= {"per_record": True} if d.chance(0.3) else {}
    return Call("cyclic_poisson", (gaussian(d), d.rate()), options)


def sampled(d: Dice) -> Call:
    base = d.weighted({name: row for name, row in STEPS.items() if d.adjacency in row[3] or d.chance(0.01)})
    return Call("poisson_subsampled", (STEPS[base][1](d), d.rate()), {})


def public_mixture(d: Dice) -> Call:
    names = ("gaussian", "sampled_gaussian", "pure", "laplace", "pmf", "truncated")
    parts = [d.step(names) for _ in range(d.choice((1, 2, 2, 3)))]
    return Call("public_mixture", (parts, d.probabilities(len(parts))), {})


def allocation(d: Dice) -> Call:
    """Steps of which a record takes part in one; now and then the same one in every epoch."""
    epochs = d.whole(1, 10**6, (2, 100)) if d.chance(0.2) else 1
    scale = d.number(1e-9, 5.0, (0.05, 2.0), (4.9999999, 1e-4)) / math.sqrt(epochs)
    base = Call("gaussian", (min(max(1 / scale, 1e-3), 1e9) * (1 + 4 * U),), {})
    t = d.choice((2, 3, d.whole(1, 10**7, (2, 3000))))
    if epochs > 1:
        return Call("balls_and_bins", (base, t), {"epochs": epochs})
    return Call("random_allocation", (base, t), {})


def best_of(d: Dice) -> Call:
    """The best of a random number of runs."""
    names = ("sampled_gaussian", "gaussian", "laplace", "pure", "range", "approx", "pmf", "truncated", "top_k")
    run = Inner(tuple((d.step(names), d.choice((1, 1, 2, d.count()))) for _ in range(d.choice((1, 1, 1, 2)))))
    kind = d.choice(("shape", "shape", "poisson", "binomial"))
    if kind == "binomial":
        trials = d.whole(2, 10**9, (2, 100))
        return Call("select", (run,), {"mean": trials * d.number(max(1e-6 / trials, 1e-12), 0.999), "trials": trials})
    if kind == "poisson":
        return Call("select", (run,), {"mean": d.number(1e-6, 1e9, (0.1, 100.0)), "shape": math.inf})
    shape = d.choice((1.0, 1.0, 0.0, -0.5, d.number(1e-6, 1000.0, (0.1, 10.0)), -d.number(1e-12, 0.5)))
    return Call("select", (run,), {"mean": d.number(1.0, 1e9, (1.0, 300.0), (1 + 1e-12,)), "shape": shape})


def shuffle(d: Dice) -> Call:
    eps0 = d.number(1e-9, 20.0, (0.1, 5.0), (1e-300,))
    options = {"bound": "stronger_clone"} if d.chance(0.3) else {}
    local = Call("pure_dp", (eps0,), {})
    if d.chance(0.4) and d.adjacency == "replace_one":
        k = d.choice((2, 3, d.whole(2, 10**9, (2, 100))))
        local, options = Call("k_ary_randomized_response", (eps0, k), {}), {}
    return Call("shuffled", (local, d.choice((1, 2, 10, d.whole(1, 10**9, (2, 1e5))))), options)


def top_k(d: Dice) -> Call:
    k = d.choice((2, 3, d.whole(1, 2048, (2, 60))))
    return Call("top_k", (d.number(1e-9, 300 / k, (0.01, min(2.0, 300 / k)), (20.0 / k,)), k), {})


def matrix(d: Dice) -> Call:
    """A few rounds of noise that is correlated, in any unit."""
    n, sigma = d.whole(1, 7), d.number(1e-3, 1e9, (0.3, 30.0))
    unit = d.number(1e-290, 1e290) if d.chance(0.15) else 1.0
    band = [d.choice((0.0, 1.0, 0.5, d.number(1e-6, 1.0))) for _ in range(d.randint(0, n - 1))]
    rows = [[unit] + [unit * x for x in band] for _ in range(n)]
    rows = [[row[i - j] if 0 <= i - j < len(row) else 0.0 for j in range(n)] for i, row in enumerate(rows)]
    noise = min(max(sigma * unit * (1 + sum(band)), 1e-300), 1e300)
    return Call("matrix_mechanism", (rows, noise, d.rate()), {"failure": d.probability()})


def failure(d: Dice) -> Call:
    return Call("failure", (d.probability(),), {})


ANY, ADD, KEEP = frozenset(ADJACENCIES), frozenset(ADJACENCIES[:1]), frozenset(ADJACENCIES[1:])
ZERO, NONE = frozenset(("add_remove", "zero_out")), frozenset()
STEPS = {
    "sampled_gaussian": (30, lambda d: Call("poisson_subsampled", (gaussian(d), d.rate()), {}), ANY, NONE),
    "gaussian": (8, gaussian, ANY, ANY),
    "laplace": (4, lambda d: Call("laplace", (d.number(1 / 300, 1e9, (0.1, 30.0), (1 / 30,)),), {}), ANY, ANY),
    "discrete": (4, discrete, ANY, ZERO),
    "pure": (4, lambda d: Call("randomized_response", (loss_of(d),), {}), ANY, ADD),
    "range": (5, lambda d: Call("bounded_range", (d.number(1e-9, 300, (0.01, 5.0), (20.0,)),), {}), ANY, ADD),
    "approx": (3, lambda d: Call("approx_dp", (loss_of(d), d.choice((0.0, d.probability()))), {}), ANY, ADD),
    "k_ary": (
        6,
        lambda d: Call("k_ary_randomized_response", (loss_of(d), d.whole(2, 10**9, (2, 1e6))), {}),
        KEEP,
        NONE,
    ),
    "pmf": (8, pmf, ANY, ADD),
    "curve": (4, curve, ANY, ADD),
    "loss_cdf": (1, loss_cdf, ANY, ADD),
    "gaussian_mixture": (3, gaussian_mixture, ADD, ADD),
    "group": (1, group, ANY, NONE),
    "truncated": (8, truncated, ANY, NONE),
    "cyclic": (1, cyclic, KEEP, NONE),
    "sampled": (10, sampled, ANY, NONE),
    "public_mixture": (3, public_mixture, ADD, ADD),
    "allocation": (1, allocation, ZERO, NONE),
    "select": (1, best_of, ANY, NONE),
    "shuffle": (1, shuffle, KEEP, NONE),
    "top_k": (1, top_k, ANY, NONE),
    "matrix": (0.5, matrix, ZERO, NONE),
    "failure": (0.5, failure, ANY, NONE),
}


def steps(d: Dice) -> tuple[tuple[Call, int], ...]:
    """One step several times, a few different ones, one with a twin that differs by rounding, or now and then many."""
    kind = d.choices(("one", "few", "twin", "many", "near"), (70, 20, 8, 2, 1))[0]
    if "near" in d.first or (kind == "near" and not d.first):
        return nearby(d)
    parts = [(d.step(d.first), d.count())]
    step = parts[0][0]
    if kind == "few":
        parts += [(d.step(), d.count()) for _ in range(d.choice((1, 1, 2, 3)))]
    elif kind == "many" and not d.first:
        parts = [(d.step(("sampled_gaussian", "gaussian")), d.count()) for _ in range(d.choice((10, 40, 120)))]
    elif kind == "twin" and step.name in ("gaussian", "laplace", "randomized_response"):
        parts += [(Call(step.name, (d.near(step.args[0]),), step.options), d.count())]
    if d.chance(0.4):  # as many steps as make the composed loss a number of moderate size
        parts = [(s, min(max(round(d.number(1e-3, 1e2) / max(spread(s)[1], 1e-30)), 1), 10**12)) for s, _ in parts]
    return tuple(parts)


def nearby(d: Dice) -> tuple[tuple[Call, int], ...]:
    """Many sampled Gaussian steps whose noise and rates are near each other: a rule of few may stand for them."""
    sigma, wide = d.number(1e-3, 1e9, (0.3, 30.0)), d.number(1e-9, 3.0, (1e-3, 0.5))
    rates = [d.rate() for _ in range(d.choice((1, 1, 1, 2, 5)))]
    counts = [d.whole(1, 10**6, (1, 300)) if d.chance(0.5) else 1 for _ in range(3)]
    found = []
    for _ in range(d.choice((50, 64, 100, 300, d.whole(50, 5000)) if d.chance(0.1) else (50, 64, 100, 300))):
        base = Call("gaussian", (min(max(sigma * (1 + wide * d.random()), 1e-3), 1e9),), {})
        q = d.choice(rates)
        found.append((base if q == 1 else Call("poisson_subsampled", (base, q), {}), d.choice(counts)))
    return tuple(found)


def spread(step: Call) -> tuple[float, float]:
    """Roughly, the mean and the variance of the loss of a step: where to ask, never a bound."""
    numbers = [x for x in step.args if isinstance(x, float)]
    if step.name in ("poisson_subsampled", "truncated_poisson_subsampled", "cyclic_poisson", "without_replacement"):
        mean, variance = spread(step.args[0])
        q = numbers[-1] if numbers else step.options["batch"] / max(step.options["dataset_size"], 1)
        square = min(q * q * math.expm1(min(variance, 300.0)), q * variance)
        return min(square / 2, q * mean), square
    if step.name == "group":
        many = step.args[1] if isinstance(step.args[1], int) else sum(step.args[1])
        mean, square = spread(step.args[0])
        return many * many * mean, many * many * square
    if step.name in ("random_allocation", "balls_and_bins"):
        square = min(spread(step.args[0])[1] * step.options.get("epochs", 1), 300.0)
        square = min(square, math.expm1(square) / step.args[1])
        return square / 2, square
    if step.name == "select":
        rows = [(k * x, k * y) for one, k in step.args[0].parts for x, y in [spread(one)]]
        return 2 * sum(x for x, _ in rows), 4 * sum(y for _, y in rows)
    if step.name == "shuffled":
        square = math.exp(step.args[0].args[0]) * step.args[0].args[0] ** 2 / step.args[1]
        return square / 2, square
    if step.name == "failure":
        return 0.0, 0.0
    if step.name == "matrix_mechanism":
        rows, noise, q = step.args
        square = sum(min(q * sum(row) / noise, 1e100) ** 2 for row in rows)
        return square / 2, square
    if step.name in ("gaussian", "discrete_gaussian", "gaussian_mixture"):
        square = (step.options.get("sensitivity", 1) / numbers[0]) ** 2
        return square / 2, square
    if step.name == "from_pmf":
        losses = [(p, math.log(p) - math.log(d)) for p, d in zip(*step.args, strict=True) if p > 0 < d]
        return sum(p * x for p, x in losses), sum(p * x * x for p, x in losses)
    top = max(landmarks(step)[0], default=1.0)
    return min(top, top * top / 2), top * top


def landmarks(step: Call) -> tuple[list[float], list[float]]:
    """(losses, probabilities) at which something happens to the curve of a step: atoms, walls, infinite losses."""
    name, args = step.name, step.args
    if name == "poisson_subsampled":
        losses, chances = landmarks(args[0])
        walls = [-math.log1p(-args[1])] if args[1] < 1 else []
        walls += [-math.log(1 - args[1] + args[1] * math.exp(-x)) for x in losses if -700 < x < 700]  # of ADD
        losses = [math.log1p(args[1] * math.expm1(x)) for x in losses if -30 < x < 700]
        return walls + losses, [args[1], *(args[1] * x for x in chances)]
    if name in ("laplace", "discrete_laplace"):
        return [step.options.get("sensitivity", 1) / args[0]], []
    if name == "bounded_range":
        return [args[0]], [math.tanh(args[0] / 4)]
    if name == "top_k":
        return [args[0] * args[1]], []
    if name == "shuffled":
        return [args[0].args[0]], []
    if name in ("randomized_response", "approx_dp", "k_ary_randomized_response"):
        return [args[0]], [math.tanh(args[0] / 2), math.exp(-args[0]), *args[1:2]]
    if name == "from_pmf":
        pairs = list(zip(*args, strict=True))
        distance = 0.5 * sum(abs(p - q) for p, q in pairs)
        return [math.log(p) - math.log(q) for p, q in pairs if p > 0 < q], [distance, *(p for p, q in pairs if q == 0)]
    return (args[0], args[1]) if name == "from_curve" else ([], [])


def delta_at(d: Dice, parts) -> float:
    if d.chance(0.2):
        marks = [(x, d.choice((1, k))) for step, k in parts for x in landmarks(step)[1] if x < 1]
        marks = [d.near(-math.expm1(k * math.log1p(-x))) for x, k in marks]  # 1 - (1-x)^k
        if marks := [x for x in marks if 0 < x < 1]:
            return d.choice(marks)
    return d.probability()


def eps_at(d: Dice, parts) -> float:
    habit, sign = d.random(), d.choice((1, 1, -1))
    marks = [(d.choice(found), k) for step, k in parts if (found := landmarks(step)[0])]
    if habit < 0.2 and marks:
        return d.near(sign * sum(d.choice((k, 1, -1, 0, k - 2)) * x for x, k in marks))
    if habit < 0.7:
        mean, variance = (sum(k * spread(step)[i] for step, k in parts) for i in (0, 1))
        return sign * mean + d.choice((1.0, 1.0, 5.0)) * d.uniform(-3, 8) * math.sqrt(variance)
    return sign * d.number(1e-18, 1e6, (1e-3, 20.0), (0.0, 45.0, 700.0, 710.0, TINY, 1e300))


# Queries. QUERIES has, for each, a weight and a function of dice and its name.

ALL = ("adjacency", "direction", "route", "rtol")
TWO = ALL[:2]


def options_of(d: Dice, names) -> dict:
    """Adjacency and what else a query takes, left out where it is the default."""
    found = {"adjacency": d.adjacency} if d.adjacency != "add_remove" and "adjacency" in names else {}
    found |= {"direction": d.choice(DIRECTIONS)} if "direction" in names and d.chance(0.6) else {}
    found |= {"route": d.choice(ROUTES)} if "route" in names and d.chance(0.45) else {}
    return found | ({"rtol": d.number(1e-14, 0.5)} if "rtol" in names and d.chance(0.06) else {})


def asked(point, *names):
    """A query of a run at a point that `point` draws, or at several."""

    def case(d: Dice, name: str) -> Case:
        parts = steps(d)
        at = (point(d, parts),) if point else ()
        if names == ALL and point and d.chance(0.07):
            found = [*at, *(point(d, parts) for _ in range(d.randint(1, 11)))]
            at = ([d.choice(found) if d.chance(0.1) else x for x in found],)
        more = {"tail": d.probability()} if name == "posterior" else {}
        return Case(name, parts, at, more | options_of(d, names))

    return case


def batch(d: Dice, name: str) -> Case:
    rows = [(d.number(1e-3, 1e9, (0.3, 30.0)), d.rate(), d.count()) for _ in range(d.randint(1, 6))]
    runs = [((Call("poisson_subsampled", (Call("gaussian", (s,), {}), q), {}), k),) for s, q, k in rows]
    at = [(delta_at if name == "epsilon_batch" else eps_at)(d, run) for run in runs]
    return Case(name, (), (*map(list, zip(*rows, strict=True)), at), options_of(d, TWO))


def target(d: Dice, name: str) -> Case:
    """noise_multiplier, max_steps, or a calibration of a rate, a scale or a count."""
    sigma, k, goal = d.number(1e-3, 1e9, (0.3, 30.0), (0.02,)), d.count(), {"epsilon": d.number(1e-6, 1e4, (0.1, 10.0))}
    goal["delta"] = d.number(1e-300, BELOW_ONE, (1e-12, 0.1))
    if name != "calibrate":
        own = {"steps": k} if name == "noise_multiplier" else {"sigma": sigma}
        return Case(name, (), (), {"q": d.rate(), **own, **goal, **options_of(d, TWO)})
    goal = {"advantage": d.number(1e-3, 0.9)} if d.chance(0.3) else goal
    over, text = d.choice(
        (
            ((1e-3, 0.9), f"lambda q: hs.poisson_subsampled(hs.gaussian({sigma!r}), q) * {k}"),
            ((0.05, 100.0), f"lambda b: hs.poisson_subsampled(hs.laplace(b), {d.rate()!r}) * {min(k, 100)}"),
            ((1, 10**6), f"lambda n: hs.gaussian({sigma!r}) * n"),
        )
    )
    return Case(name, (), (Text(text),), {"over": over, **goal})


def individual(d: Dice, name: str) -> Case:
    sigmas = [d.number(1e-3, 1e9, (0.3, 30.0)) for _ in range(d.randint(1, 4))]
    counts = [[d.choice((0, d.whole(1, 10**5, (1, 1e4)))) for _ in sigmas] for _ in range(d.randint(1, 5))]
    route = {"route": "fft"} if d.chance(0.2) else {}
    return Case(name, (), (counts,), {"sigmas": sigmas, "delta": d.probability(), "q": d.rate(), **route})


def audit(d: Dice, name: str) -> Case:
    parts, m = steps(d), d.whole(1, 10**5, (1, 2000))
    g = d.choice((m, m, d.whole(1, m)))
    v = min(max(round(g * d.choice((0.5, d.random(), 1.0)) + d.uniform(-5, 5) * math.sqrt(g)), 0), g)
    return Case(name, parts, (), {"canaries": m, "guesses": g, "correct": v} | options_of(d, ("adjacency",)))


def samples(d: Dice, name: str) -> Case:
    """Losses drawn of a Gaussian step of shift m, beside other steps."""
    parts, m, n = steps(d), d.number(1e-6, 30.0, (0.05, 3.0)), d.choice((1, 100, 20000))
    losses = Text(f"np.random.default_rng({d.randrange(10**6)}).normal({m * m / 2!r}, {m!r}, {n})")
    eps = eps_at(d, (*parts, (Call("gaussian", (1 / m,), {}), 1)))
    side = {"direction": d.choice(DIRECTIONS[1:])}
    return Case(name, (), (losses, eps), {"run": Inner(parts)} | side | options_of(d, ("adjacency",)))


QUERIES = {
    "delta": (33, asked(eps_at, *ALL)),
    "log_delta": (17, asked(eps_at, *ALL)),
    "epsilon": (32, asked(delta_at, *ALL)),
    "rdp": (3, asked(lambda d, parts: 1 + d.number(1e-6, 1e6 - 1, (0.1, 100.0)), *TWO)),
    "moments_delta_upper": (1.5, asked(eps_at, *TWO)),
    "moments_epsilon_upper": (1.5, asked(delta_at, *TWO)),
    "advantage": (2, asked(None, *ALL)),
    "bayes_risk": (1.5, asked(lambda d, parts: d.probability(), *ALL[:3])),
    "posterior": (0.3, asked(lambda d, parts: d.probability(), *TWO)),
    "tradeoff": (0.5, asked(lambda d, parts: d.probability(), *ALL[:3])),
    "true_positive_rate": (0.5, asked(lambda d, parts: d.probability(), *ALL[:3])),
    "mu_gdp": (0.2, asked(delta_at, *TWO)),
    "gdp_regret": (0.1, asked(lambda d, parts: d.number(1e-3, 99, (0.1, 5.0)), *TWO)),
    "gdp_delta": (0.3, asked(eps_at, "adjacency")),
    "saddlepoint_delta": (0.5, asked(eps_at, *TWO)),
    "eeai_delta": (0.3, asked(eps_at, "direction")),
    "prawitz_delta": (0.5, asked(eps_at, "direction")),
    "prawitz_epsilon": (0.5, asked(delta_at, "direction")),
    "delta_batch": (1.5, batch),
    "epsilon_batch": (1.5, batch),
    "noise_multiplier": (1, target),
    "max_steps": (1, target),
    "calibrate": (0.3, target),
    "individual_epsilons": (1.5, individual),
    "reconstruction": (0.3, asked(lambda d, parts: d.probability(), "adjacency", "route")),
    "attribute_advantage": (0.2, asked(lambda d, parts: d.probability(), "adjacency", "route")),
    "reidentification": (0.2, asked(lambda d, parts: d.whole(2, 10**12, (2, 1e4)), "adjacency", "route")),
    "one_run_audit": (0.2, audit),
    "monte_carlo": (0.2, samples),
}
