"""Privacy curves from their definitions in 60 digits, sharing nothing with the package: closed forms and finite sums.

A curve is a function eps -> (lower, upper) of delta(eps) in one direction, its ends 1e-45 of the terms apart; `add`
turns the pair round. A law is a list of (num, den), the masses of its outcomes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from math import comb, prod

from mpmath import mp, mpf

mp.dps = 60
DUST = mpf("1e-45")
ZERO, ONE = mpf(0), mpf(1)
TERMS = 300
"""Most outcomes of a composition that are enumerated."""
RANGES = 40
"""Most bounded-range steps whose curve is summed."""


def _number(x) -> mpf:
    return mpf(x)


def law(step, adjacency: str) -> list[tuple[mpf, mpf]] | None:
    """The finite law of a step, None where it has none."""
    name, args, double = step.name, step.args, adjacency == "replace_one"
    if name == "from_pmf":
        return list(zip(*map(_scaled, args), strict=True))
    if name in ("randomized_response", "approx_dp"):
        small, delta0 = mp.exp(-_number(args[0])), _number(args[1] if len(args) > 1 else 0)
        a, b = (1 - delta0) / (1 + small), (1 - delta0) * small / (1 + small)
        return [(a, b), (b, a), (delta0, ZERO), (ZERO, delta0)]
    if name == "k_ary_randomized_response" and adjacency != "add_remove":
        small, k = mp.exp(-_number(args[0])), args[1]
        a, b = 1 / (1 + (k - 1) * small), small / (1 + (k - 1) * small)
        return [(a, b), (b, a), ((k - 2) * b,) * 2] if double else [(a, ONE / k), ((k - 1) * b, mpf(k - 1) / k)]
    if name in ("discrete_laplace", "discrete_gaussian"):
        scale, moved = _number(args[0]), step.options.get("sensitivity", 1) * (1 + double)
        return _integers(name, scale, moved) if moved <= 40 and (name == "discrete_laplace" or scale <= 2) else None
    if name == "from_curve":
        return _dots(*args, step.options.get("symmetric", True))
    if name == "poisson_subsampled" and (
        adjacency == "add_remove" or (adjacency == "zero_out" and "discrete" in args[0].name)
    ):
        base, q = law(args[0], "add_remove"), _number(args[1])
        return base and [(q * p + (1 - q) * d, d) for p, d in base]
    if name == "public_mixture":
        parts = [law(part, adjacency) for part in args[0]]
        weights = _scaled(args[1])
        return [(w * p, w * d) for w, part in zip(weights, parts, strict=True) for p, d in part] if all(parts) else None
    return None


def _integers(name: str, scale: mpf, moved: int) -> list[tuple[mpf, mpf]]:
    """Integer noise against the same moved; beyond the two centres a discrete Laplace law has one loss on either
    side."""
    if name == "discrete_laplace":
        r = mp.exp(-1 / scale)
        inner = [(1 - r) / (1 + r) * r**x for x in range(1, moved)]
        ends = (1 / (1 + r), r**moved / (1 + r))
        return [ends, ends[::-1], *zip(inner, inner[::-1], strict=True)]
    reach = int(scale * 64) + 2
    mass = [mp.exp(-((x / scale) ** 2) / 2) for x in range(-reach - moved, reach + moved + 1)]
    total = mp.fsum(mass)
    return [(p / total, d / total) for p, d in zip(mass[: len(mass) - moved], mass[moved:], strict=True)]


def _dots(eps, delta, symmetric: bool) -> list[tuple[mpf, mpf]] | None:
    """The law whose curve joins the points by lines in e^eps: a mass is a kink; the lower hull, with the mirrored
    points. Masses of 1e-324 are differences of numbers near 1."""
    with mp.workdps(700):
        points = {mp.exp(e): _number(y) for e, y in zip(eps, delta, strict=True)}
        if any(y < 1 - a for a, y in points.items()):  # by rounding: no law has that curve
            return None
        if symmetric:
            points |= {1 / a: 1 - 1 / a + y / a for a, y in points.items() if a > 1}
        return [tuple(y if y > mpf("1e-500") else ZERO for y in row) for row in _kinks(points)]


def _kinks(points: dict) -> list[tuple[mpf, mpf]]:
    hull = [(ZERO, ONE)]
    for a, y in sorted(points.items()):
        while len(hull) > 1 and _slope(hull[-1], (a, y)) <= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append((a, y))
    slopes = [*itertools.starmap(_slope, itertools.pairwise(hull)), ZERO]
    kinks = [(a, s2 - s1) for (a, _), s1, s2 in zip(hull[1:], slopes, slopes[1:], strict=False)]
    return [(a * den, den) for a, den in kinks if den > 0] + [(hull[-1][1], ZERO), (ZERO, max(1 + slopes[0], ZERO))]


def _scaled(weights) -> list[mpf]:
    """Numbers that sum to 1."""
    total = mp.fsum(weights)
    return [_number(w) / total for w in weights]


def _slope(left, right) -> mpf:
    return (right[1] - left[1]) / (right[0] - left[0])


def shift(step, adjacency: str) -> mpf | None:
    """Sensitivity over noise of a Gaussian step, also of one that is given by its loss."""
    if step.name == "gaussian":
        m = _number(step.options.get("sensitivity", 1)) / _number(step.args[0])
        return 2 * m if adjacency == "replace_one" else m
    return _number(str(step.args[0]).split("/ ")[1].split(" ")[0]) if step.name == "from_loss_cdf" else None


def gaussian_curve(m: mpf) -> Callable:
    def curve(eps):
        a, b = mp.ncdf(m / 2 - eps / m), mp.exp(eps) * mp.ncdf(-m / 2 - eps / m)
        return a - b - DUST * a, a - b + DUST * a

    return curve if m else law_curve([(ONE, ONE)])


def law_curve(outcomes) -> Callable:
    def curve(eps):
        x = mp.exp(eps)
        over = [(p, p - x * d) for p, d in outcomes if p > x * d]
        value, dust = mp.fsum(y for _, y in over), DUST * mp.fsum(p for p, _ in over)
        return value - dust, value + dust

    return curve


def _near(value: mpf) -> tuple[mpf, mpf]:
    return value * (1 - DUST), value * (1 + DUST)


def _sampled(base: Callable, q: mpf, add: bool) -> Callable:
    """REMOVE: (q P + (1-q) Q - x Q)_+ is q (P - x' Q)_+ with x' = 1 + (x-1)/q, if x' > 0. ADD: (Q - x (q P + (1-q)
    Q))_+ is c (Q - x' P)_+ with c = 1 - x (1-q), x' = x q/c, if c > 0; `base` is the curve of (Q, P) then."""

    def curve(eps):
        x = mp.exp(eps)
        c = 1 - x * (1 - q) if add else q
        inner = x * q / c if add and c > 0 else 1 + mp.expm1(eps) / q
        if not (c > 0 and inner > 0):
            return (ZERO, ZERO) if add else _near(-mp.expm1(eps))
        return tuple(c * y for y in base(mp.log(inner)))

    return curve


def step_curve(step, adjacency: str, add: bool) -> Callable | None:
    """The curve of one step."""
    outcomes, m = law(step, adjacency), shift(step, adjacency)
    if outcomes or m:
        return law_curve([row[::-1] for row in outcomes] if add else outcomes) if outcomes else gaussian_curve(m)
    if step.name == "laplace":
        a = 1 / _number(step.args[0]) * (2 if adjacency == "replace_one" else 1)
        return lambda eps: _near(max(-mp.expm1(eps), ZERO) if abs(eps) >= a else -mp.expm1((eps - a) / 2))
    if step.name == "bounded_range":
        return ranges_curve(_number(step.args[0]), 1)
    if step.name == "poisson_subsampled" and adjacency != "replace_one":
        base = step_curve(step.args[0], "add_remove", add)
        return base and _sampled(base, _number(step.args[1]), add)
    if step.name == "public_mixture":
        parts = [step_curve(part, adjacency, add) for part in step.args[0]]
        return _weighted(_scaled(step.args[1]), parts) if all(parts) else None
    return None


def ranges_curve(m: mpf, k: int) -> Callable:
    """k steps of bounded range m: e^{s/2} times the density of a sum of k uniforms on [-m, m], as powers cut off at
    a_j = (k - 2j) m:
    delta(g) = (4 sinh(m/2))^-k sum_j (-1)^j C(k, j) int_g^{a_j} (e^{s/2} - e^{g-s/2}) (a_j - s)^{k-1}/(k-1)! ds."""

    def part(w: mpf, sign: int) -> mpf:  # int_0^w e^{sign x/2} x^{k-1}/(k-1)! dx
        return w**k / mp.factorial(k) * mp.hyp1f1(k, k + 1, sign * w / 2)

    def curve(eps):
        if eps >= k * m:
            return ZERO, ZERO
        if eps <= -k * m:
            return _near(-mp.expm1(eps))
        with mp.workdps(70 + 3 * k + int(k * abs(mp.log10(m)))):
            ends = [(j, (k - 2 * j) * m) for j in range(k + 1) if (k - 2 * j) * m > eps]
            terms = [
                (-1) ** j * comb(k, j) * (mp.exp(a / 2) * part(a - eps, -1) - mp.exp(eps - a / 2) * part(a - eps, 1))
                for j, a in ends
            ]
            value = mp.fsum(terms) / (4 * mp.sinh(m / 2)) ** k
        return _near(value)

    return curve


def _weighted(weights, curves) -> Callable:
    def curve(eps):
        ends = [[w * y for y in c(eps)] for w, c in zip(weights, curves, strict=True)]
        return tuple(mp.fsum(end) for end in zip(*ends, strict=True))

    return curve


def powers(outcomes, k: int) -> list[tuple[mpf, mpf]] | None:
    """The outcomes of k draws, None if they are too many; equal losses are not merged."""
    kinds = [(p, d) for p, d in outcomes if p or d]
    if k > 10**6 or comb(k + len(kinds) - 1, len(kinds) - 1) > TERMS:
        return None
    found = []
    for counts in _compositions(k, len(kinds)):
        ways, left = 1, k
        for n in counts:
            ways, left = ways * comb(left, n), left - n
        mass = ([kind[side] ** n for kind, n in zip(kinds, counts, strict=True) if n] for side in (0, 1))
        found.append(tuple(prod(factors, start=mpf(ways)) for factors in mass))
    return found


def _compositions(total: int, length: int):
    if length == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, length - 1):
            yield (first, *rest)


def composed(parts, adjacency: str, add: bool):
    """(finite law of the steps that have one, curve of the rest or None) of a run; None if either is not known."""
    outcomes, square, rest = [(ONE, ONE)], ZERO, []
    for step, k in parts:
        m, own = shift(step, adjacency), law(step, adjacency)
        if m:
            square += k * m * m
        elif own:
            own = powers([row[::-1] for row in own] if add else own, k)
            if own is None or len(own) * len(outcomes) > TERMS:
                return None
            outcomes = [(p * a, d * b) for p, d in outcomes for a, b in own]
        else:
            rest += [(step, k)] if step.name == "bounded_range" and k <= RANGES else [(step, 1)] * min(k, 2)
    if len(rest) + (square > 0) > 1 or ((rest or square) and len(outcomes) > 40):
        return None
    curve = _repeated(*rest[0], adjacency, add) if rest else gaussian_curve(mp.sqrt(square)) if square else None
    return None if rest and not curve else (outcomes, curve)


def _repeated(step, k: int, adjacency: str, add: bool) -> Callable | None:
    return step_curve(step, adjacency, add) if k == 1 else ranges_curve(_number(step.args[0]), k)


def run_curve(parts, adjacency: str, add: bool) -> Callable | None:
    """The curve of a run: sum_j num_j delta_rest(eps - loss_j) over the outcomes of its finite steps."""
    found = composed(parts, adjacency, add)
    if not found or not found[1]:
        return found and law_curve(found[0])
    outcomes, rest = found

    def curve(eps):
        ends = [[p * y for y in rest(eps - mp.log(p / d))] if d else [p, p] for p, d in outcomes if p]
        return tuple(mp.fsum(end) for end in zip(*ends, strict=True))

    return curve


def _generating(mean: mpf, shape: float | None, trials: int | None) -> Callable:
    """x -> E x^K of the number of trials of a selection; a truncated negative binomial law by its gamma
    [PS22, Definition 1]."""
    if trials is not None:
        return lambda x: (1 + mean / trials * (x - 1)) ** trials
    if shape == math.inf:
        return lambda x: mp.exp(mean * (x - 1))
    if mean == 1:
        return lambda x: x
    s = mpf(shape)

    def mean_at(gamma):
        return (1 / gamma - 1) * s / -mp.expm1(s * mp.log(gamma)) if s else (1 / gamma - 1) / -mp.log(gamma)

    low, high = mpf("1e-30"), ONE  # of gamma: the mean falls
    for _ in range(300):
        middle = mp.sqrt(low * high)
        low, high = (middle, high) if mean_at(middle) > mean else (low, middle)
    gamma = low
    if s:
        return lambda x: mp.expm1(-s * mp.log(1 - (1 - gamma) * x)) / mp.expm1(-s * mp.log(gamma))
    return lambda x: mp.log(1 - (1 - gamma) * x) / mp.log(gamma)


def best_of(step, adjacency: str, dice) -> list[tuple[mpf, mpf]] | None:
    """The law of a selection whose base is one step of few outcomes, scored by their losses or in any order."""
    ((base, k),) = step.args[0].parts if len(step.args[0].parts) == 1 else ((None, 0),)
    outcomes = powers(law(base, adjacency) or [], k) if base and law(base, adjacency) else None
    if not outcomes or len(outcomes) > 12 or not all(p + q for p, q in outcomes):
        return None
    if dice.chance(0.7):
        outcomes.sort(key=lambda row: row[0] / row[1] if row[1] else mp.inf, reverse=dice.chance(0.5))
    else:
        dice.shuffle(outcomes)
    options = step.options
    phi = _generating(mpf(options["mean"]), options.get("shape", 1.0), options.get("trials"))
    sides = []
    for side in (0, 1):
        total = mp.fsum(row[side] for row in outcomes)
        below = [mp.fsum(row[side] for row in outcomes[i:]) / total for i in range(len(outcomes))] + [ZERO]
        sides.append([phi(a) - phi(b) for a, b in itertools.pairwise(below)] + [phi(ZERO)])
    lost = mpf("1e-55")  # of differences of 60 digits: what is left is a lower bound, within DUST
    return [(max(p, ZERO) + lost, max(q, ZERO) + lost) for p, q in zip(*sides, strict=True)]


def shuffled(step, dice) -> list[tuple[mpf, mpf]] | None:
    """The number of ones among n shuffled binary answers, of which the first is 1 or 0, the others as they come."""
    local, n = step.args
    if n > 150 or (local.name == "k_ary_randomized_response" and local.args[1] > 2):
        return None
    p = 1 / (1 + mp.exp(-mpf(local.args[0])))
    ones = dice.choice((0, 0, n - 1, dice.randint(0, n - 1)))
    counts = _convolved(_binomial(ones, p), _binomial(n - 1 - ones, 1 - p))
    num, den = _convolved(counts, [1 - p, p]), _convolved(counts, [p, 1 - p])
    return list(zip(num, den, strict=True))


def _binomial(n: int, p: mpf) -> list[mpf]:
    return [comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]


def _convolved(a, b) -> list[mpf]:
    found = [ZERO] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] += x * y
    return found


def renyi(parts, adjacency: str, add: bool, alpha: mpf) -> mpf | None:
    """The Renyi divergence of a run of steps with finite laws, or of the Gaussian family without sampling."""
    total = ZERO
    for step, k in parts:
        m, own = shift(step, adjacency), law(step, adjacency)
        base = step.args[0] if step.name == "poisson_subsampled" else step
        if not (m or own) or base.name == "discrete_gaussian":  # whose tails are cut
            return None
        if m:
            total += k * alpha * m * m / 2
            continue
        pairs = [row[::-1] if add else row for row in own if row[add]]
        if any(not d for _, d in pairs):
            return mp.inf
        total += k * mp.log(mp.fsum(p**alpha * d ** (1 - alpha) for p, d in pairs)) / (alpha - 1)
    return total


def power(outcomes, fpr: mpf) -> mpf:
    """The true positive rate of the best test of level `fpr`: outcomes in the order of their losses, the last one by a
    coin."""
    found = mp.fsum(p for p, d in outcomes if p and not d)
    for p, d in sorted((row for row in outcomes if row[1]), key=lambda row: row[0] / row[1], reverse=True):
        if d >= fpr:
            return found + p * fpr / d
        found, fpr = found + p, fpr - d
    return found
