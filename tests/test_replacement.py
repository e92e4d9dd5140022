"""Batches drawn with replacement: against all data sets of a few records, the formula, what is attained."""

import collections
import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.inner.replacement import curve

REPLACED = {"adjacency": "replace_one"}


def _curve(values, others, draws, sigma, eps):
    """delta of all batches of `draws` from `others` and one value against those with another value."""
    x = np.linspace(-draws - 9 * sigma, draws + 9 * sigma, 20_001)  # off by less than 1e-6 where the curve bends
    laws = []
    for value in values:
        found = collections.Counter(map(sum, itertools.product((value, *others), repeat=draws)))
        sums, times = np.array(list(found)), np.array(list(found.values())) / found.total()
        laws.append(np.exp(-0.5 * ((x[:, None] - sums) / sigma) ** 2) @ times)
    gain = np.maximum(laws[0] - math.exp(eps) * laws[1], 0)
    return float(gain.sum() * (x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi)))


@pytest.mark.parametrize("sigma", [0.8, 3.0])
def test_no_data_are_worse(sigma):
    """Three records, three draws, every batch; the bound holds for all data, and some attain what is said to be below
    [theory: pair.with-replacement]."""
    random, step = np.random.default_rng(2), hs.with_replacement(hs.gaussian(sigma), dataset_size=3, batch=3)
    for eps in (-0.6, 0.1, 0.5):
        found = hs.delta(step, eps, **REPLACED)
        data = [((1, -1), (-1, -1)), ((1, -1), (0, 0)), ((-1, 1), (-1, -1)), ((1, 0), (-1, 1))]
        data += [((a, b), (c, d)) for a, b, c, d in random.uniform(-1, 1, (12, 4))]
        true = [_curve(*values, 3, sigma, eps) for values in data]
        assert max(true) <= found.upper * (1 + 1e-6)
        assert found.lower * (1 - 1e-6) <= max(true)
        assert found.upper < 1.25 * max(true)


@pytest.mark.parametrize("sigma, n, m", [(4.0, 10_000, 100), (9.0, 40, 30)])
def test_the_formula(sigma, n, m):
    """Points of the curve are sums over multiplicities, above them by rounding alone."""
    points = curve(hs.with_replacement(hs.gaussian(sigma), dataset_size=n, batch=m))
    eta = 1 - (1 - mpf(1) / n) ** m
    for i in (1, 500):
        inner = mp.log1p(mp.expm1(points.eps[i]) / eta)
        gammas = [2 * mpf(j) / mpf(sigma) for j in range(1, 50)]
        weights = [mp.binomial(m, j) / mpf(n) ** j * (1 - mpf(1) / n) ** (m - j) for j in range(1, 50)]
        true = sum(
            w * (mp.ncdf(u / 2 - inner / u) - mp.exp(inner) * mp.ncdf(-u / 2 - inner / u))
            for w, u in zip(weights, gammas, strict=True)
        )
        assert true <= points.delta[i] < true * (1 + mpf("1e-8")) + mpf("1e-40")


def test_composed():
    """What is attained and what is proved are near where noise is large; beside other steps; more draws cost more."""
    step = hs.with_replacement(hs.gaussian(20.0), dataset_size=10_000, batch=100)
    found = hs.epsilon(step * 1000, 1e-5, **REPLACED)
    assert 0.09 < found.lower < found.upper < 1.05 * found.lower and "with_replacement" in found.note
    beside = hs.epsilon(step * 1000 + hs.gaussian(3.0), 1e-5, **REPLACED)
    alone = hs.epsilon(hs.gaussian(3.0), 1e-5, **REPLACED)
    assert alone.upper < beside.lower < beside.upper < alone.upper + found.upper
    often = hs.epsilon(hs.with_replacement(hs.gaussian(20.0), dataset_size=10_000, batch=3000) * 10, 1e-5, **REPLACED)
    assert found.upper < often.lower < often.upper < 2 * often.lower


def test_refused():
    step = hs.with_replacement(hs.gaussian(2.0), dataset_size=100, batch=10)
    for text, ask in (
        ("proved under adjacency 'replace_one', got 'add_remove'", lambda: hs.delta(step, 1.0)),
        ("proved under adjacency 'replace_one', got 'zero_out'", lambda: hs.epsilon(step, 1e-5, adjacency="zero_out")),
        ("known between two curves", lambda: hs.rdp(step, 2.0, **REPLACED)),
        ("one known dataset_size", lambda: hs.select(step, mean=10)),
        ("dataset_size|data set", lambda: hs.poisson_subsampled(step, 0.1)),
        ("takes gaussian", lambda: hs.with_replacement(hs.laplace(1.0), dataset_size=100, batch=10)),
        (
            "dataset_size must be an integer from 2",
            lambda: hs.with_replacement(hs.gaussian(1), dataset_size=1, batch=1),
        ),
        (
            "batch must be an integer from 1 to 40",
            lambda: hs.with_replacement(hs.gaussian(1), dataset_size=4, batch=41),
        ),
    ):
        with pytest.raises(hs.DomainError, match=text):
            ask()
