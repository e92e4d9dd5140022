"""Truncated Poisson sampling: weight and rate, pairs and their losses, the transform of two-sided pairs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import single
from hockeystick.what import pair, sampling
from rows import U

TWO_PI = 2 * np.longdouble("3.14159265358979323846264338327950288")
ADJACENCIES = ("add_remove", "zero_out", "replace_one")

# n, p, B, log w (None: w), q: sums of 60 digits
EXACT = [
    (20, 0.3, 4, math.log(0.86682900062149485494), 0.17592679076858535),
    (100, 0.1, 15, math.log(0.067670599541811172), 0.088422137636972918),
    (1000, 0.01, 20, math.log(0.0032525222229271027), 0.0092019758522202335),
    (50, 0.5, 49, math.log(1.7763568394002505e-15), 0.49),
    (10**4, 0.01, 200, -42.0312417311417, 0.0099037624609480134),
    (10**6, 1e-3, 1500, -111.804499883714537, 0.00099802151628275899),
    (10**6, 1e-3, 3000, -1302.35864, 0.00099950099801964308),
    (10**9, 1e-6, 1100, -6.9458464958758259, 9.9145535101364553e-7),
    (10**9, 1e-6, 2000, -390.322142890778339, 9.990029821699169e-7),
    (10**9, 1e-5, 11000, -51.5961117189854375, 9.9902000376470805e-6),
    (10**9, 1e-5, 20000, -3868.1712612, 9.9990003098031865e-6),
]


@pytest.mark.parametrize("n, p, size, log_w, q", EXACT)
def test_weight_and_rate_have_the_known_digits(n, p, size, log_w, q):
    found_q, found_w, _ = _core.sampling_truncation(p, n, size)
    assert found_q[0] <= found_q[1] <= found_q[0] * (1 + 8 * U)
    assert found_q[0] == pytest.approx(q, rel=1e-14)
    assert found_w[0] == pytest.approx(log_w, rel=1e-14 if abs(log_w) < 1000 else 1e-8)


def by_fractions(n, p, size):
    """w, q, 1-w as exact fractions."""
    p = Fraction(p)
    terms = [math.comb(n - 1, s) * p**s * (1 - p) ** (n - 1 - s) for s in range(n)]
    w = sum(terms[size:])
    return w, p * sum(t * Fraction(size, s + 1) for s, t in enumerate(terms) if s >= size) / w, sum(terms[:size])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60), st.floats(1e-9, 1 - 1e-9), st.data())
def test_intervals_hold_the_truth_and_are_tight(n, p, data):  # [theory: pair.truncation-weights]
    size = data.draw(st.integers(1, n - 1))
    truth = by_fractions(n, p, size)
    q, log_w, log_rest = _core.sampling_truncation(p, n, size)
    with mp.workdps(60):
        w, rate, rest = (mpf(x.numerator) / x.denominator for x in truth)
        for value, (lo, hi) in ((rate, q), (mp.log(w), log_w), (mp.log(rest), log_rest)):
            assert lo <= value <= hi
    assert q[1] - q[0] <= 8 * U * q[0]
    if min(truth[0], truth[2]) > 1e-6:
        assert log_w[1] - log_w[0] <= 64 * U * (1 - math.log(truth[0])) / min(1, truth[2])


def test_edges_of_the_truncation():
    assert sampling.truncation(0.9, 10, 9).weight == pytest.approx(0.387420489, rel=1e-14)
    assert sampling.truncation(0.9, 10, 9).q == pytest.approx(0.81, rel=1e-14)
    assert sampling.truncation(0.3, 10, 10)[:3] == (0.0, 0.3, 1.0)
    assert sampling.truncation(0.3, 1, 1)[:3] == (0.0, 0.3, 1.0)
    assert sampling.truncation(1.0, 30, 10)[:3] == (1.0, 10 / 30, 0.0)
    assert sampling.truncation(1.0, 10, 10)[:3] == (0.0, 1.0, 1.0)
    gone = sampling.truncation(1e-3, 10**6, 3000)
    assert gone.weight == 0 and 0 < gone.dropped <= 1e-300


def test_rate_falls_and_weight_rises_with_n():  # [theory: pair.sizes]
    cuts = [sampling.truncation(0.01, n, 120) for n in (8000, 10000, 12000, 14000, 20000, 100000)]
    assert all(a.q > b.q and a.weight < b.weight for a, b in itertools.pairwise(cuts))


# Losses of one branch: roots and distribution functions, 13 digits


@pytest.mark.parametrize(
    "up, down, cdf",
    [
        (2, 0, (0.5482786, 0.7468321, 0.8795073)),
        (2, 1, (0.3262917, 0.6960742, 0.8567451)),
        (2, 2, (0.1430316, 0.6856936, 0.8555385)),
    ],
)
def test_branch_distribution_functions(up, down, cdf):
    found = sampling.branch_loss(sampling.Branch(1.0, 0.3, up / 0.9, down / 0.9), 0.0).tails(np.array([-0.2, 0.5, 2.0]))
    assert found.y_below == pytest.approx(cdf, abs=6e-8)
    assert found.edge < 3e-14


ROOTS = (-2.0, -0.1, 0.0, 0.5, 3.0, 30.0)
"""Losses at q = .3, sigma = .9, and below where the two branches that need a root reach them, 12 decimals."""


@pytest.mark.parametrize(
    "down, places",
    [
        (1, (-2.688570857412, 0.225126014122, 0.5, 1.217629426529, 2.541723771082, 13.493155638912)),
        (2, (-2.094359654231, -0.476085752267, 0.0, 1.169963708923, 2.537502009585, 13.493155633457)),
    ],
)
def test_roots_of_two_sided_losses(down, places):  # [theory: law.branch-tails]
    s, q = 0.9, 0.3
    found = sampling.branch_loss(sampling.Branch(1.0, q, 2 / s, down / s), 0.0).tails(np.array(ROOTS))
    for i, x in enumerate(places):
        above = (1 - q) * 0.5 * math.erfc(x / s / math.sqrt(2)) + q * 0.5 * math.erfc((x - 2) / s / math.sqrt(2))
        slack = 1e-12 * (x * x + 10) * above + 1e-300  # 12 decimals of x move the tail by up to |x|/s^2 of them
        assert found.y_above[i] == pytest.approx(above, abs=2 * slack)


def test_one_step_zero_out_value():
    lower, _, upper, *_ = single.point(sampling.branch_loss(sampling.Branch(1.0, 0.3, 2 / 0.9, 1 / 0.9), 0.0), 0.5)
    assert math.exp(lower) - 1e-14 <= 0.19892043489935 <= math.exp(upper) + 1e-14
    assert upper - lower < 1e-12


RATES = st.floats(1e-9, 0.999)
SHIFTS = st.sampled_from([(1, 0), (0, 1), (1, 1), (2, 1), (1, 2), (2, 2)])


@settings(max_examples=60, deadline=None)
@given(RATES, SHIFTS, st.floats(0.02, 20), st.floats(-30, 30))
def test_branch_tails_against_multiprecision(q, shifts, m, s):  # [theory: law.branch-tails, law.edges]
    up, down = (m * x for x in shifts)
    loss = sampling.branch_loss(sampling.Branch(1.0, q, up, down), 0.0)
    if not loss.lo * (1 - 1e-9) < s < loss.hi * (1 - 1e-9):
        return
    t = loss.tails(np.array([s]))
    with mp.workdps(50):
        wanted = [exact_tails(q, up, down, s + move * t.edge) for move in (-1, 1)]
        for name in ("y_above", "x_above", "y_below", "x_below"):
            got, ends = float(getattr(t, name)[0]), sorted(w[name] for w in wanted)
            slack = float(t.rel[0])
            assert ends[0] * (1 - slack) - t.absolute <= got <= ends[1] * (1 + slack) + t.absolute


def exact_tails(q, up, down, s):
    """Tails of b(q, up) and b(q, -down) at the root of L = s, in the working precision."""
    q, up, down, s = (mpf(x) for x in (q, up, down, s))

    def part(m, x):
        return mp.log1p(q * mp.expm1(m * x - m * m / 2))

    lo, hi = mpf(-400), mpf(400)
    for _ in range(170):
        x = (lo + hi) / 2
        lo, hi = (x, hi) if part(up, x) - part(down, -x) < s else (lo, x)
    return {
        "y_above": (1 - q) * mp.ncdf(-x) + q * mp.ncdf(up - x),
        "x_above": (1 - q) * mp.ncdf(-x) + q * mp.ncdf(-down - x),
        "y_below": (1 - q) * mp.ncdf(x) + q * mp.ncdf(x - up),
        "x_below": (1 - q) * mp.ncdf(x) + q * mp.ncdf(x + down),
    }


# The transform of two-sided pairs


def transform_by_sums(branches, z):
    """log M(z) by the trapezoid rule in long double on a fine grid."""
    total = np.longdouble(0)
    for w, q, up, down in branches:
        m = max(up, down, 1.0)
        reach = 12.0 + 2 * (abs(z) + 2) * max(up, down)
        h = np.longdouble(1) / (64 * m)
        g = np.arange(-int(reach / h), int(reach / h) + 1) * h
        l1, l2 = (
            np.log1p(np.longdouble(q) * np.expm1(m * x - np.longdouble(m) ** 2 / 2)) for m, x in ((up, g), (down, -g))
        )
        total += (w * h / np.sqrt(TWO_PI) * np.exp((1 + z) * l1 - z * l2 - g * g / 2)).sum()
    missing = 1 - sum(np.longdouble(w) for w, *_ in branches)  # the weights stand for numbers that sum to 1
    return np.log(total + missing)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is double: no reference")
@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 0.9), st.floats(0.1, 2.5), SHIFTS, st.floats(1e-6, 0.9), st.floats(-6, 8))
def test_log_m_within_its_bound(q, m, shifts, weight, z):  # [theory: law.two-sided]
    up, down = (m * x for x in shifts)
    branches = [(1 - weight, q, up, down), (weight, 0.7 * q, 2 * up, 2 * down)]
    bytes_ = sampling.packed([sampling.Pair(tuple(sampling.Branch(*b) for b in branches))])
    try:
        log_m, error = _core.two_log_m(bytes_, z)
    except hs.AccuracyError:
        return
    assert abs(log_m - transform_by_sums(branches, z)) <= error + 1e-17
    assert error <= 1e-11 * (1 + abs(log_m))


def test_transform_is_one_at_both_ends():  # [theory: pair.exponent, pair.reversal]
    """M(0) = M(-1) = 1, and the mirrored pair has M(-1-z)."""
    of = sampling.pair(
        hs.truncated_poisson_subsampled(hs.gaussian(0.8), 0.01, dataset_size=10_000, max_batch=110), "zero_out"
    )
    for z in (0.0, -1.0):
        log_m, error = _core.two_log_m(sampling.packed([of]), z)
        assert abs(log_m) <= error < 1e-15
    one, error = _core.two_log_m(sampling.packed([of]), 2.5)
    other, _ = _core.two_log_m(sampling.packed([of.reversed()]), -3.5)
    assert one == pytest.approx(other, abs=2 * error)


def test_transform_of_remove_is_known_at_whole_orders():
    """E (1+U)^2 = 1 + q^2 (e^{m^2} - 1)."""
    q, m = 0.03, 1.25
    bytes_ = sampling.packed([sampling.Pair((sampling.Branch(1.0, q, m, 0.0),))])
    log_m, error = _core.two_log_m(bytes_, 1.0)
    assert log_m == pytest.approx(math.log1p(q * q * math.expm1(m * m)), abs=error + 1e-18)
    assert error < 1e-15


# Pairs


def one_loss(step, adjacency, direction):
    return pair.losses(hs.compose(step), adjacency, direction)[0][0]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_truncation_that_never_happens_is_poisson_sampling(adjacency):
    cut = hs.truncated_poisson_subsampled(hs.gaussian(1.3), 0.2, dataset_size=50, max_batch=50)
    for direction in ("remove", "add"):
        for e in (-0.1, 0.05, 0.3):
            one = single.point(one_loss(cut, adjacency, direction), e)
            two = single.point(one_loss(hs.poisson_subsampled(hs.gaussian(1.3), 0.2), adjacency, direction), e)
            assert one[0] <= two[2] and two[0] <= one[2]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_larger_rates_cost_more(adjacency, direction):  # [theory: pair.rate]
    """H is monotone in q for every pair: what makes a rate rounded up safe."""
    m = 1 / 0.7
    down = {"add_remove": 0, "zero_out": m, "replace_one": 2 * m}[adjacency]
    for e in (-1.0, -0.1, 0.0, 0.5, 2.0):
        curve = []
        for q in np.linspace(0.02, 0.98, 25):
            of = sampling.Pair((sampling.Branch(1.0, float(q), 2 * m, down),))
            found = single.point(sampling.pair_loss(of.reversed() if direction == "add" else of), e)
            curve.append(math.exp(found[1]) if found else 0.0)
        assert all(b >= a * (1 - 1e-12) for a, b in itertools.pairwise(curve))


def test_zero_out_and_plain_steps():
    assert sampling.as_gaussian(hs.gaussian(2.0), "replace_one") == (1.0, 1.0)
    assert sampling.as_gaussian(hs.gaussian(2.0), "zero_out") == (0.5, 1.0)
    assert sampling.as_gaussian(hs.poisson_subsampled(hs.gaussian(2.0), 0.1), "zero_out") == (0.5, 0.1)
    assert sampling.as_gaussian(hs.poisson_subsampled(hs.gaussian(2.0), 0.1), "replace_one") is None
    fixed = hs.without_replacement(hs.gaussian(2.0), dataset_size=64, batch=16)
    assert sampling.as_gaussian(fixed, "add_remove") == (1.0, 0.25)
    assert sampling.as_gaussian(fixed, "zero_out") is None


def test_laplace_replace_one_against_a_fine_sum():  # [theory: pair.replaced-laplace-loss]
    m, q = 1.2, 0.3
    loss = sampling.laplace_replace_one(m, q)
    x, dx = np.linspace(-40, 40, 1_600_001, retstep=True)

    def law(u):
        return (1 - q) * 0.5 * np.exp(-np.abs(x)) + q * 0.5 * np.exp(-np.abs(x - u))

    for e in (-0.4, 0.0, 0.1, 0.35, 0.6):
        wanted = np.maximum(law(m) - math.exp(e) * law(-m), 0).sum() * dx
        lower, _, upper, *_ = single.point(loss, e)
        assert math.exp(lower) - 1e-8 <= wanted <= math.exp(upper) + 1e-8
        assert upper - lower < 1e-12
    assert np.allclose(loss.cgf([0.0, -1.0]), 0, atol=1e-13)


def test_laplace_replace_one_dominates_every_contribution():  # [theory: pair.replace-one-laplace]
    """One record's contributions u, v in [-1, 1]: no pair of them exceeds (1, -1)."""
    m, q = 0.9, 0.4
    loss = sampling.laplace_replace_one(m, q)
    x, dx = np.linspace(-30, 30, 60_001, retstep=True)

    def law(u):
        return (1 - q) * 0.5 * np.exp(-np.abs(x)) + q * 0.5 * np.exp(-np.abs(x - u * m))

    for u, v in itertools.product(np.linspace(-1, 1, 9), repeat=2):
        for e in (-0.5, -0.1, 0.0, 0.2, 0.5):
            true = np.maximum(law(u) - math.exp(e) * law(v), 0).sum() * dx
            assert true <= math.exp(single.point(loss, e)[2]) * (1 + 1e-5) + 1e-7
