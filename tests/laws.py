"""What must hold between answers: every answer becomes facts about delta(eps), and facts about one number must meet.

A `Fact` says lower <= delta(eps) <= upper, for one run, adjacency and direction. A law asks something else of the same
run, or of one that must be more or less private, and returns a fact about the same number. Truths of exact.py are facts
as well."""

from __future__ import annotations

import math
from typing import NamedTuple
from unittest import mock

from exact import DUST, best_of, composed, gaussian_curve, law_curve, mp, mpf, power, renyi, run_curve, shuffled
from queries import ARRAYS, ROUTES, Call, Case, U, gaussian_rows, made, run_text

ZERO, ONE = mpf(0), mpf(1)
OTHER = {"remove": "add", "add": "remove", "both": "both"}


class Fact(NamedTuple):
    """lower <= delta(eps) <= upper, and what says so."""

    lower: mpf
    upper: mpf
    source: str


def meet(a: Fact, b: Fact) -> bool:
    return a.lower <= b.upper and b.lower <= a.upper


def shown(*facts: Fact) -> str:
    return "; ".join(f"{f.source} says [{mp.nstr(f.lower, 17)}, {mp.nstr(f.upper, 17)}]" for f in facts)


class Point(NamedTuple):
    """What an answer says about one delta(eps). `eps` is a float where it can be asked again: by `route`, or by any."""

    parts: tuple
    adjacency: str
    direction: str
    eps: float | mpf
    fact: Fact
    route: str | None = None

    def options(self) -> dict:
        """How the number is asked for again."""
        return {"adjacency": self.adjacency, "direction": self.direction} | (
            {"route": self.route} if self.route else {}
        )

    def delta(self, route=None, direction=None, eps=None, parts=None, query="delta", adjacency=None):
        """The same number asked again, with changes: (lower, upper)."""
        given = {"adjacency": adjacency, "direction": direction, "route": route}
        options = self.options() | {name: value for name, value in given.items() if value}
        found = made(repr(Call(query, (run_text(parts or self.parts), self.eps if eps is None else eps), options)))
        if query == "log_delta":
            return mp.exp(mpf(found.lower)), mp.exp(mpf(found.upper))
        return mpf(found.lower), mpf(found.upper)


def fixed_size_inside(step: Call, sampled: bool = False) -> bool:
    """Whether the step is a Poisson sample of a step whose theorem is about a fixed batch or size: to be refused."""
    if step.name in ("truncated_poisson_subsampled", "without_replacement"):
        size, batch = step.options["dataset_size"], step.options.get("max_batch", step.options.get("batch"))
        return sampled and 0 < batch < (size[1] if isinstance(size, tuple) else size) and step.args[-1] != 0
    if step.name == "cyclic_poisson":
        return sampled
    inner = (
        step.args[0] if step.name == "public_mixture" else step.args[:1] if step.name == "poisson_subsampled" else ()
    )
    return any(fixed_size_inside(x, sampled or step.name == "poisson_subsampled") for x in inner)


def sane(bound, lowest: float, highest: float) -> list[str]:
    """What is wrong with a Bound by itself."""
    from numpy import ravel

    rows = list(zip(*(ravel(x).tolist() for x in (bound.lower, bound.estimate, bound.upper)), strict=True))
    wrong = [f"not lower <= estimate <= upper: {row}" for row in rows if not row[0] <= row[1] <= row[2]]
    return wrong + [
        f"outside [{lowest}, {highest}]: {row}" for row in rows if not (lowest <= row[0] and row[2] <= highest)
    ]


RANGES = {"log_delta": (-math.inf, 0), "epsilon": (0, math.inf), "rdp": (0, math.inf), "mu_gdp": (0, math.inf)}
RANGES |= {"epsilon_batch": (0, math.inf), "prawitz_epsilon": (0, math.inf)}


def points(case: Case, answer) -> list[Point]:
    """What the answer to a case says, as facts."""
    query, options = case.query, case.options
    adjacency, direction = options.get("adjacency", "add_remove"), options.get("direction", "both")

    def point(parts, eps, lower, upper):
        return Point(parts, adjacency, direction, eps, Fact(max(lower, ZERO), min(upper, ONE), query))

    def at_eps(parts, eps, lower, upper):
        return [point(parts, eps, mpf(lower), mpf(upper))]

    def at_delta(parts, delta, lower, upper):
        """No eps below `lower` has delta(eps) <= delta, and `upper` has."""
        found = [point(parts, float(upper), ZERO, mpf(delta))] if upper < math.inf else []
        return found + ([point(parts, min(float(lower), 1e3), mpf(delta), ONE)] if lower > 0 else [])

    parts, at = case.parts, case.at[0] if case.at else None
    if query in ("delta", "epsilon", "log_delta", "advantage"):
        ends = [answer.lower, answer.upper]
        rows = zip(at, *(end.tolist() for end in ends), strict=True) if isinstance(at, list) else [(at or 0.0, *ends)]
        rows = [(x, *(mp.exp(mpf(y)) if query == "log_delta" else y for y in row)) for x, *row in rows]
        return [p for row in rows for p in (at_delta if query == "epsilon" else at_eps)(parts, *row)]
    if query in ("delta_batch", "epsilon_batch"):
        runs = [((sampled_gaussian(s, q), k),) for s, q, k in zip(*case.at[:3], strict=True)]
        rows = zip(runs, case.at[3], answer.lower.tolist(), answer.upper.tolist(), strict=True)
        return [p for row in rows for p in (at_delta if query == "epsilon_batch" else at_eps)(*row)]
    if query == "individual_epsilons":
        sigmas, q, delta = (options[name] for name in ("sigmas", "q", "delta"))
        rows = [tuple((sampled_gaussian(s, q), n) for s, n in zip(sigmas, row, strict=True) if n) for row in at]
        found = zip(rows, answer.upper.tolist(), strict=True)
        return [p for row, upper in found if row for p in at_delta(row, delta, 0, upper)]
    if query in ("noise_multiplier", "max_steps"):
        pairs = [(answer.value, 0, options["delta"]), (answer.limit, options["delta"], 1)]
        own = {"q": options["q"], "sigma": options.get("sigma"), "steps": options.get("steps")}
        name = "sigma" if query == "noise_multiplier" else "steps"
        made_of = [({**own, name: x}, lo, hi) for x, lo, hi in pairs if x is not None]
        runs = [(((sampled_gaussian(o["sigma"], o["q"]), o["steps"]),), lo, hi) for o, lo, hi in made_of]
        return [point(run, options["epsilon"], mpf(lo), mpf(hi)) for run, lo, hi in runs]
    found = _bounds_above(case, answer) if parts else None
    return [point(parts, *row) for row in found] if found else []


def _bounds_above(case: Case, answer):
    """(eps, lower, upper) of queries that say less than delta itself."""
    query, at = case.query, case.at[0] if case.at else None
    probes = [0.0, 0.5, 3.0]
    if query == "moments_delta_upper":
        return [(at, ZERO, mpf(answer))]
    if query == "moments_epsilon_upper":
        return [(float(answer), ZERO, mpf(at))] if answer < math.inf else []
    if query == "prawitz_delta" and answer.certified:
        return [(at, mpf(answer.lower), mpf(answer.upper))]
    if query == "bayes_risk":  # prior (1 - delta(log((1 - prior)/prior)))
        prior = mpf(at)
        return [(mp.log((1 - prior) / prior), 1 - mpf(answer.upper) / prior, 1 - mpf(answer.lower) / prior)]
    if query == "rdp" and answer.upper < math.inf:
        alpha, rho = mpf(at), mpf(answer.upper)
        least = (alpha - 1) * mp.log(alpha - 1) - alpha * mp.log(alpha)
        return [
            (eps, ZERO, min(mp.exp((alpha - 1) * (rho - eps) + least), ONE)) for eps in (float(answer.upper), *probes)
        ]
    if query == "tradeoff":  # 1 - fnr <= delta(eps) + e^eps fpr
        return [(eps, 1 - mpf(answer.upper) - mp.exp(eps) * mpf(at), ONE) for eps in (-1.0, *probes)]
    if query in ("true_positive_rate", "reconstruction", "attribute_advantage", "reidentification"):
        at = 1 / at if query == "reidentification" else at
        least = mpf(answer.lower) + (mpf(at) if query == "attribute_advantage" else 0)
        return [(eps, least - mp.exp(eps) * mpf(at), ONE) for eps in (-1.0, *probes)]
    if query == "mu_gdp" and answer.upper < math.inf:  # the Gaussian curve is above wherever delta(eps) >= at
        return [(eps, ZERO, max(gaussian_curve(mpf(answer.upper))(mpf(eps))[1], mpf(at))) for eps in probes]
    return None


def sampled_gaussian(sigma: float, q: float) -> Call:
    base = Call("gaussian", (sigma,), {})
    return base if q == 1 else Call("poisson_subsampled", (base, q), {})


# Laws: (point, dice) -> a fact about the same delta(eps), or None where the law has nothing to say.


def truth(p: Point, d) -> Fact | None:
    """The definition, in 60 digits."""
    if not abs(p.eps) < 1e15 or -1e-40 < p.eps < 0:  # e^eps is a number of 60 digits
        return None
    sides = [run_curve(p.parts, p.adjacency, add) for add in {"remove": (0,), "add": (1,), "both": (0, 1)}[p.direction]]
    if None in sides:
        return None
    ends = [max(side(mpf(p.eps))[i] for side in sides) for i in (0, 1)]
    loose = 1e-14 if "mixture" in run_text(p.parts) else 0  # weights that sum to 1 up to rounding are not scaled
    return Fact(ends[0] * (1 - loose), ends[1] * (1 + loose), "truth")


def fails(p: Point) -> bool:
    """Whether a part of delta is not that of any pair."""
    return any(step.name in ("failure", "matrix_mechanism") for step, _ in p.parts)


def duality(p: Point, d) -> Fact | None:
    """delta(eps) of a pair is 1 - e^eps + e^eps delta(-eps) of the pair turned round."""
    if abs(p.eps) > 1e4 or fails(p):
        return None
    query = d.choice(("delta", "log_delta"))
    lower, upper = p.delta(direction=OTHER[p.direction], eps=-p.eps, query=query)
    x = mp.exp(mpf(p.eps))
    return Fact(1 - x * (1 - lower) - DUST * (1 + x), 1 - x * (1 - upper) + DUST * (1 + x), "duality")


def another_route(p: Point, d) -> Fact:
    route = d.choice(ROUTES)
    return Fact(*p.delta(route=route, query=d.choice(("delta", "log_delta"))), f"route {route}")


def directions(p: Point, d) -> Fact:
    """`both` is the larger of the two; each is at most that."""
    if p.direction == "both":
        sides = p.delta(direction="remove"), p.delta(direction="add")
        return Fact(*map(max, *sides), "remove, add")
    return Fact(ZERO, p.delta(direction="both")[1], "both")


def curve_shape(p: Point, d) -> Fact | None:
    """delta falls, is convex in a = e^eps, and is 1 at a = 0, so its slope is at least (delta - 1)/a."""
    other = p.eps + d.choice((1, -1)) * d.choice((1e-12, 1e-3, 0.1, 1.0, 10.0)) * max(abs(p.eps), 1e-6)
    if not abs(other) < 1e4 or other == p.eps or fails(p):
        return None
    lower, upper = p.delta(eps=other)
    a, b = mp.exp(mpf(p.eps)), mp.exp(mpf(other))
    if other > p.eps:  # between 0 and b the curve lies under its chord
        return Fact(lower, 1 - a / b * (1 - upper) + DUST, "a larger eps")
    return Fact(max(1 - a / b * (1 - lower) - DUST * a / b, ZERO), upper, "a smaller eps")


def moments(p: Point, d) -> Fact:
    call = Call("moments_delta_upper", (run_text(p.parts), p.eps), p._replace(route=None).options())
    return Fact(ZERO, mpf(made(repr(call))), "moments")


def inverse(p: Point, d) -> Fact | None:
    """eps at what the answer says delta is, and what eps says of delta here."""
    delta = float(d.choice((p.fact.lower, p.fact.upper, (p.fact.lower + p.fact.upper) / 2)))
    if not 0 < delta < 1 or p.eps < 0:
        return None
    found = made(repr(Call("epsilon", (run_text(p.parts), delta), p.options())))
    if found.upper <= p.eps:
        return Fact(ZERO, mpf(delta), f"eps at {delta!r} is at most {found.upper!r}")
    above = found.lower > 0 and found.lower >= p.eps
    return Fact(mpf(delta), ONE, f"eps at {delta!r} is at least {found.lower!r}") if above else None


def reordered(p: Point, d) -> Fact:
    """Steps in another order, a count in two parts."""
    split = [(step, n) for step, k in p.parts for n in ((k // 2, k - k // 2) if k > 1 else (k,))]
    d.shuffle(split)
    text = f"hs.compose({', '.join(f'({step!r}, {n})' for step, n in split)})"
    found = made(f"hs.delta({text}, {p.eps!r}, **{p.options()!r})")
    return Fact(mpf(found.lower), mpf(found.upper), "reordered")


def among_others(p: Point, d) -> Fact:
    """The same eps as one of several."""
    eps = [p.eps, *(p.eps * d.uniform(-2, 2) for _ in range(d.choice((1, 8))))]
    options = {"route": d.choice(("auto", "auto", "pld"))} | p.options()
    found = made(repr(Call("delta", (run_text(p.parts), eps), options)))
    return Fact(mpf(float(found.lower[0])), mpf(float(found.upper[0])), "one of several")


def in_batch(p: Point, d) -> Fact | None:
    """delta_batch of one step of the Gaussian family."""
    (step, k), *others = p.parts
    base, q = (step.args[0], step.args[1]) if step.name == "poisson_subsampled" else (step, 1.0)
    if others or base.name != "gaussian" or base.options:
        return None
    options = p._replace(route=None).options()
    found = made(repr(Call("delta_batch", (base.args[0], q, k, p.eps), options)))
    return Fact(mpf(float(found.lower)), mpf(float(found.upper)), "batch")


ADDITIVE = {"gaussian", "laplace", "discrete_gaussian", "discrete_laplace"}


def relations(p: Point, d) -> Fact | None:
    """For additive noise zero_out is add_remove, and replace_one, which may replace a record by nothing, is no more
    private."""
    names = {(step.args[0] if step.name == "poisson_subsampled" else step).name for step, _ in p.parts}
    if not names <= ADDITIVE:
        return None
    other = d.choice([a for a in ("add_remove", "zero_out", "replace_one") if a != p.adjacency])
    lower, upper = p.delta(adjacency=other)
    if p.adjacency == "replace_one":
        return Fact(lower, ONE, other)
    return Fact(ZERO, upper, other) if other == "replace_one" else Fact(lower, upper, other)


def weaker(step: Call, d) -> Call | None:
    """A step that is post-processing of the given one, by less than rounding or by much."""
    factor = d.choice((1 + 2.0**-52, 1 + 1e-13, 1.01, 2.0, 100.0))
    x = step.args[0]
    if step.name in ("gaussian", "laplace", "gaussian_mixture", "discrete_laplace") and x * factor > x:
        return step._replace(args=(x * factor, *step.args[1:]))
    if (
        step.name in ("randomized_response", "approx_dp", "k_ary_randomized_response", "bounded_range")
        and x / factor < x
    ):
        return step._replace(args=(x / factor, *step.args[1:]))
    if step.name == "top_k" and x / factor > 1e-9:
        return step._replace(args=(x / factor, step.args[1]))
    if step.name in ("random_allocation", "balls_and_bins", "group") and (inner := weaker(x, d)):
        return step._replace(args=(inner, step.args[1]))
    if step.name == "poisson_subsampled":
        inner = weaker(x, d) if d.chance(0.5) else None
        return step._replace(args=(inner, step.args[1])) if inner else step._replace(args=(x, step.args[1] / factor))
    return None


def post_processing(p: Point, d) -> Fact | None:
    """Fewer or weaker steps are more private; more steps are less."""
    i = d.randrange(len(p.parts))
    step, k = p.parts[i]
    rest = [part for j, part in enumerate(p.parts) if j != i]
    if d.chance(0.3):
        return Fact(ZERO, p.delta(parts=(*p.parts, (step, d.choice((1, k)))))[1], "more steps")
    less = weaker(step, d) if d.chance(0.6) else None
    if less:
        rest.append((less, k))
    elif k > 1:
        rest.append((step, d.choice((k - 1, k // 2))))
    if not rest:
        return None
    return Fact(p.delta(parts=tuple(rest))[0], ONE, f"weaker: {run_text(tuple(rest))}")


def every_step(p: Point, d) -> Fact | None:
    """Where a rule of few stands for many steps: the sum over all of them."""
    if len(p.parts) < ARRAYS or not gaussian_rows(p.parts):
        return None
    with mock.patch("hockeystick.routes.question.rules", return_value=iter(())):
        found = Fact(*p.delta(query=d.choice(("delta", "log_delta"))), "every step")
    return found


def stand_ins(step: Call) -> list[tuple[bool, tuple]]:
    """(whether they are more private than the step, steps that can take its place in any run)."""
    if step.name == "top_k":
        eps0, k = step.args
        ranges = (Call("bounded_range", (eps0,), {}), k)  # whose range one coin of losses +-eps0/2 has
        return [(False, (ranges,)), (True, ((Call("randomized_response", (eps0 / 2,), {}), k),))]
    if step.name in ("random_allocation", "balls_and_bins"):  # a mean of Gaussian steps; its marginal in one step
        (base, t), epochs = step.args, step.options.get("epochs", 1)
        less, more = (Call("gaussian", (base.args[0] / math.sqrt(epochs) * x,), {}) for x in (1 + 8 * U, 1 - 8 * U))
        alone = (Call("poisson_subsampled", (less, math.nextafter(1 / t, 0)), {}), 1)
        return [(False, ((more, 1),)), (True, (alone,)), (True, ((step._replace(args=(base, t + 1)), 1),))]
    if step.name == "select" and step.options.get("shape", math.inf) < math.inf:  # a score that is always the same
        return [(True, step.args[0].parts)]
    if step.name == "matrix_mechanism":  # what is seen in the direction of all rounds together
        rows, noise, q = step.args
        along = [sum(row) / max(map(sum, rows)) for row in rows]
        size = math.sqrt(math.fsum(x * x for x in along))
        shifts = [math.fsum(x * row[j] for x, row in zip(along, rows, strict=True)) / size for j in range(len(rows))]
        law = {0.0: 1.0} if q < 1 else {math.fsum(shifts): 1.0}
        for shift in shifts if q < 1 else ():
            law = {s + by: p * c for s, p in law.items() for by, c in ((0.0, 1 - q), (shift, q)) if p * c > 0}
        less = [(s * (1 - 1e-12), p) for s, p in law.items()]
        seen = Call("gaussian_mixture", (noise, [s for s, _ in less], [p for _, p in less]), {})
        return [(True, ((seen, 1),))]
    return []


def in_its_place(p: Point, d) -> Fact | None:
    """Steps that are more or less private than one of the run, in its place."""
    found = [(i, *row) for i, (step, _) in enumerate(p.parts) for row in stand_ins(step)]
    if not found:
        return None
    i, private, steps = d.choice(found)
    rest = [part for j, part in enumerate(p.parts) if j != i] + [(s, n * p.parts[i][1]) for s, n in steps]
    if max(n for _, n in rest) > 10**12:
        return None
    lower, upper = p.delta(parts=tuple(rest), route="auto")
    source = f"in its place: {run_text(tuple(rest))}"
    return Fact(lower, ONE, source) if private else Fact(ZERO, upper, source)


def carried_out(p: Point, d) -> Fact | None:
    """A selection with some order of the scores; reports that are shuffled, those of the others as they come."""
    if len(p.parts) > 1 or p.parts[0][1] > 1 or abs(p.eps) > 1e4:
        return None
    step, law = p.parts[0][0], None
    if step.name == "select":
        law = best_of(step, p.adjacency, d)
    elif step.name == "shuffled" and p.adjacency == "replace_one":
        law = shuffled(step, d)
    if law is None:
        return None
    sides = {"remove": (1,), "add": (-1,), "both": (1, -1)}[p.direction]
    return Fact(
        max(law_curve([row[::side] for row in law])(mpf(p.eps))[0] for side in sides) - DUST, ONE, "carried out"
    )


OWN = (every_step, in_its_place, carried_out)
"""Laws about one kind of run each, which are asked wherever they say something."""

LAWS = (
    another_route,
    directions,
    curve_shape,
    moments,
    inverse,
    reordered,
    among_others,
    in_batch,
    relations,
    post_processing,
)


def upper_tail(n: int, p: mpf, v: int) -> mpf:
    """Pr[Bin(n, p) >= v] from below."""
    if v == 0 or p == 1:
        return ONE if v <= n else ZERO
    return mp.betainc(v, n - v + 1, 0, p, regularized=True) - DUST


def directly(case: Case, answer) -> list[Fact] | None:
    """The answer and the truth as facts, for queries that say something else than delta(eps); None where no truth is
    known."""
    sides = {"remove": (0,), "add": (1,), "both": (0, 1)}[case.options.get("direction", "both")]
    adjacency = case.options.get("adjacency", "add_remove")
    if case.query == "rdp":
        found = [renyi(case.parts, adjacency, add, mpf(case.at[0])) for add in sides]
        true = None if None in found else max(ZERO, *found)  # of equal laws the sum is 0 to 60 digits
    elif case.query in ("tradeoff", "true_positive_rate"):
        runs = [composed(case.parts, adjacency, add) for add in sides]
        if any(run is None or run[1] for run in runs):
            return None
        true = max(power(outcomes, mpf(case.at[0])) for outcomes, _ in runs)
        true = 1 - true if case.query == "tradeoff" else true
    elif case.query in ("reconstruction", "attribute_advantage", "reidentification"):
        run = composed(case.parts, adjacency, 0)
        if run is None or run[1]:
            return None
        at = mpf(1 / case.at[0] if case.query == "reidentification" else case.at[0])
        true = power(run[0], at) - (at if case.query == "attribute_advantage" else 0)
    elif case.query == "one_run_audit":  # whoever guesses every canary from its own advantage is right this often
        found, (m, g, v) = made("hs.advantage")(case.run(), adjacency=adjacency), list(case.options.values())[:3]
        tail = upper_tail(g, (1 + mpf(found.lower)) / 2, v)
        return [Fact(ZERO, mpf(answer), "p-value"), Fact(tail, ONE, "a test of every canary")]
    elif case.query == "monte_carlo":
        m = float(str(case.at[0]).split("(")[-1].split(", ")[1])
        own = Call("gaussian", (1 / m,), {})
        text = run_text((*case.options["run"].parts, (own, 1)))
        whole = made("hs.delta")(made(text), case.at[1], adjacency=adjacency, direction=case.options["direction"])
        return [Fact(mpf(b.lower), mpf(b.upper), name) for b, name in ((answer, "samples"), (whole, "steps"))]
    elif case.query == "calibrate" and "delta" in case.options:  # one Bound at each end, by another route
        runs, eps, delta = made(case.at[0]), case.options["epsilon"], mpf(case.options["delta"])
        ends = [made("hs.delta")(runs(x), eps, route="pld") for x in (answer.value, answer.limit) if x is not None]
        met = Fact(mpf(ends[0].lower), mpf(ends[1].upper) if len(ends) > 1 else ONE, "value and limit")
        return [met, Fact(delta, delta, "target")]
    else:
        return None
    if true is None:
        return None
    loose = DUST + abs(true) * (1e-13 if "mixture" in run_text(case.parts) else 1e-40) if mp.isfinite(true) else ZERO
    return [Fact(mpf(answer.lower), mpf(answer.upper), case.query), Fact(true - loose, true + loose, "truth")]
