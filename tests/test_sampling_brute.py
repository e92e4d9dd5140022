"""The sampled mechanisms enumerated exactly on tiny data sets: true divergences never exceed the bound, and meet it
where it is tight.

Records are -1, 0 or 1 in one dimension; every subset that can be drawn, and every uniform choice among too many, is
enumerated, so the output is a mixture of normal laws at whole numbers. H = sup_S P(S) - e^eps Q(S) is evaluated at the
set where the density of P exceeds e^eps times that of Q, found on a fine grid and refined: any set gives a lower bound
of H, this one is off by less than 1e-12."""

import functools
import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.routes import single
from hockeystick.what import pair

GRID = np.linspace(-12, 12, 4801)


@functools.cache
def mechanism(data, p, size):
    """Probabilities of the sums -n .. n of the batch drawn from `data`."""
    n = len(data)
    out = np.zeros(2 * n + 1)
    for picked in itertools.product((0, 1), repeat=n):
        kept = [x for x, here in zip(data, picked, strict=True) if here]
        chance = p ** len(kept) * (1 - p) ** (n - len(kept))
        batches = list(itertools.combinations(kept, size)) if len(kept) > size else [kept]
        for batch in batches:
            out[sum(batch) + n] += chance / len(batches)
    assert out.sum() == pytest.approx(1)
    return tuple(out)


def densities(masses, sigma, x):
    n = len(masses) // 2
    return sum(m * np.exp(-0.5 * ((x - s) / sigma) ** 2) for s, m in zip(range(-n, n + 1), masses, strict=True))


def measure(masses, sigma, a, b):
    n = len(masses) // 2
    tails = [
        0.5 * math.erfc((a - s) / sigma / math.sqrt(2)) - 0.5 * math.erfc((b - s) / sigma / math.sqrt(2))
        for s in range(-n, n + 1)
    ]
    return math.fsum(m * t for m, t in zip(masses, tails, strict=True))


def divergence(first, second, sigma, eps):
    """sup_S P(S) - e^eps Q(S)."""

    def excess(x):
        return densities(first, sigma, x) - math.exp(eps) * densities(second, sigma, x)

    sign = excess(GRID) > 0
    edges = []
    for i in np.flatnonzero(sign[1:] != sign[:-1]):
        lo, hi = GRID[i], GRID[i + 1]
        for _ in range(50):
            mid = 0.5 * (lo + hi)
            lo, hi = (mid, hi) if (excess(mid) > 0) == sign[i] else (lo, mid)
        edges.append(lo)
    cuts = [-math.inf, *edges, math.inf]
    parts = [(a, b) for a, b, inside in zip(cuts, cuts[1:], itertools.cycle((sign[0], not sign[0]))) if inside]
    return math.fsum(measure(first, sigma, a, b) - math.exp(eps) * measure(second, sigma, a, b) for a, b in parts)


def neighbours(n, adjacency):
    """(D, D'), D the data set with the record; the other records up to order."""
    for others in itertools.combinations_with_replacement((-1, 0, 1), n - 1):
        for record in (-1, 1) if adjacency != "replace_one" else (-1, 0, 1):
            if adjacency == "add_remove":
                yield (*others, record), others
            elif adjacency == "zero_out":
                yield (*others, record), (*others, 0)
            else:
                for other in range(-1, record):
                    yield (*others, record), (*others, other)


def worst_ratio(step, n, p, size, sigma, adjacency, direction, eps):
    loss = pair.losses(hs.compose(step), adjacency, direction)[0][0]
    found = single.point(loss, eps)
    bound = math.exp(found[2]) if found else 0.0
    worst = 0.0
    for with_record, without in neighbours(n, adjacency):
        first, second = mechanism(with_record, p, size), mechanism(without, p, size)
        if len(second) < len(first):
            second = (0.0, *second, 0.0)
        if direction == "add":
            first, second = second, first
        worst = max(worst, divergence(first, second, sigma, eps))
    assert worst <= bound * (1 + 1e-9) + 1e-13
    return worst / bound if bound > 1e-12 else 0.0


# n, p, B, sigma; largest true/bound over eps in {0, .3, 1} and both directions, known to three digits
CASES = [
    (3, 0.5, 1, 1.0, (0.978, 0.581, 0.873)),
    (4, 0.5, 2, 1.0, (0.920, 0.673, 0.867)),
    (5, 0.3, 2, 0.7, (0.867, 0.826, 0.958)),
    (4, 0.9, 1, 1.0, (0.9998, 0.443, 0.816)),
]


@pytest.mark.parametrize("case", CASES, ids=[f"n{c[0]}-B{c[2]}" for c in CASES])
def test_enumerated_mechanism_is_below_the_bound(case):  # [theory: pair.domination, pair.truncated]
    n, p, size, sigma, known = case
    step = hs.truncated_poisson_subsampled(hs.gaussian(sigma), p, dataset_size=n, max_batch=size)
    for adjacency, ratio in zip(("add_remove", "zero_out", "replace_one"), known, strict=True):
        largest = max(
            worst_ratio(step, n, p, size, sigma, adjacency, direction, eps)
            for direction in ("remove", "add")
            for eps in (0.0, 0.3, 1.0)
        )
        assert largest == pytest.approx(ratio, abs=1.5e-3)


@pytest.mark.parametrize("adjacency", ["add_remove", "zero_out", "replace_one"])
def test_fixed_size_batches_are_below_the_bound(adjacency):  # [theory: pair.truncated]
    step = hs.without_replacement(hs.gaussian(0.8), dataset_size=4, batch=2)
    ratios = [
        worst_ratio(step, 4, 1.0, 2, 0.8, adjacency, direction, eps)
        for direction in ("remove", "add")
        for eps in (-0.4, 0.0, 0.5, 1.5)
    ]
    assert max(ratios) > (0.999 if adjacency == "add_remove" else 0.3)


@pytest.mark.parametrize("adjacency", ["add_remove", "zero_out", "replace_one"])
def test_poisson_sampling_meets_the_bound(adjacency):  # [theory: pair.replace-one, pair.poisson]
    """Without truncation every pair is attained."""
    step = hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.4, dataset_size=3, max_batch=3)
    ratios = [worst_ratio(step, 3, 0.4, 3, 1.0, adjacency, direction, 0.3) for direction in ("remove", "add")]
    assert min(ratios) > 0.999999
