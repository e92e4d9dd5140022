"""Where one rare large loss makes nearly all of the curve."""

import math
import random

import mpmath
import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr, ndtr

import hockeystick as hs
from conftest import some
from hockeystick import _core, scratch
from hockeystick._core import Rows
from hockeystick.routes import contour, jumps
from hockeystick.what import sampling
from hockeystick.what.pair import gaussian_steps, paired_steps


@pytest.mark.parametrize(
    ("sigma", "q", "k", "delta", "ratio"),
    [
        (1.0, 1e-6, 10**3, 1e-30, 1.03),
        (1.0, 1e-9, 10**3, 1e-30, 1.06),
        (3.0, 1e-6, 10**3, 1e-300, 1.03),
        (1.74, 2.22e-6, 19, 1e-30, 1.2),
        (1.01, 2.96e-6, 15680, 1e-15, 2.0),
    ],
)
def test_what_nothing_else_narrows(sigma, q, k, delta, ratio):
    step = hs.poisson_subsampled(hs.gaussian(sigma), q)
    b = hs.epsilon(step * k, delta)
    assert b.certified and 0 < b.lower < b.upper < ratio * b.lower
    assert b.upper > hs.epsilon(step, delta / k).lower * 0.99  # k steps reveal more than one, of which each is one of k
    at = hs.log_delta(step * k, math.sqrt(b.lower * b.upper))
    assert at.lower <= at.upper and at.lower - 40 < math.log(delta) < at.upper + 40


NODE, WEIGHT = np.polynomial.legendre.leggauss(24)


def two_runs(sigma: float, q: float, eps: float, log_unit: float) -> float:
    """delta(eps) of two runs over e^log_unit: twice the pay-off with one loss below eps/2, and where both are above it,
    in closed form; panels in double, the normal tails by scipy."""
    m, half = 1 / sigma, 0.5 * eps
    cut = math.log1p(math.expm1(half) / q) / m + m / 2
    at = np.linspace(-14, cut, 601)
    x = 0.5 * (at[1:] + at[:-1])[:, None] + 0.5 * np.diff(at)[:, None] * NODE
    loss = np.log1p(q * np.expm1(m * x - m * m / 2))
    g = np.log1p(np.expm1(eps - loss) / q) / m + m / 2
    gap = math.sqrt(math.pi / 2) * (erfcx((g - m) / math.sqrt(2)) - erfcx(g / math.sqrt(2)))
    exponent = -0.5 * x * x + loss - 0.5 * (g - m) ** 2 - math.log(2 * math.pi) - log_unit
    one = q * float((0.5 * np.diff(at)[:, None] * WEIGHT * np.exp(exponent) * gap).sum())
    num, den = (math.exp(log_ndtr(z) - 0.5 * log_unit) for z in (m - cut, -cut))
    more = q * (num - den)
    return 2 * one + more * (more + 2 * den) - math.expm1(eps) * den * den


def expansion(sigma: float, q: float, eps: float):
    return jumps.point(gaussian_steps(hs.poisson_subsampled(hs.gaussian(sigma), q) * 2, "add_remove"), 0, eps)


def below_a_cut(sigma: float, q: float, eps: float):
    found = bulk_line(1, sigma, q, 2.0, 0, eps)
    return found.certified("jumps") if found.status <= _core.LOOSE else None


@pytest.mark.parametrize("n", some(400))
@pytest.mark.parametrize(
    "ask, sigmas, rates, far, large, width",
    [
        (expansion, (-2, 3), (-9, -0.6), (2, 28), False, 1e-9),
        (below_a_cut, (-1, 6), (-9, -0.6), (2, 20), False, 1e-9),
        (below_a_cut, (-3, 0), (-9, -0.2), (0.3, 20), True, 1e-5),
    ],
)
def test_two_runs(ask, sigmas, rates, far, large, width, n):
    """[theory: small.numbers, small.expansion, small.complex, small.bulk, small.counts, small.bulk-apart]"""
    rng, sharp, seen = np.random.default_rng(4), 0, 0
    for _ in range(n):
        sigma, q = math.exp(rng.uniform(*sigmas)), 10 ** rng.uniform(*rates)
        gain = rng.uniform(*far) / sigma + (0.5 if large else -0.5) / sigma**2
        loss = (1 + large) * math.log1p(q * math.expm1(min(650.0 if large else 600.0, gain)))
        at = ask(sigma, q, loss) if 6 * large < loss < (600 if large else 400) else None
        if at is None or at.width > 1:
            continue
        slack = 1e-10 * (1 + sigma**-2) if large else 1e-11 * (1 + sigma**2)
        truth = math.log(two_runs(sigma, q, loss, at.estimate)) + at.estimate
        assert at.lower - slack <= truth <= at.upper + slack
        seen += 1
        sharp += at.width < width
    assert seen > n / 4
    assert sharp > n / 8


@pytest.mark.parametrize(
    ("sigma", "q", "k", "eps", "delta", "width"),
    [
        (0.99, 4.8e-5, 282080, 1.5, 2.54967555567736e-26, 1e-9),
        (1.0, 1e-5, 100000, 0.4, 2.992023537215e-26, 1e-9),
        (1.0, 1e-6, 1000, 0.065, 1.07817476280e-30, 1e-9),
        (1.23, 1.14e-6, 57472, 0.05, 4.60156958048e-40, 1e-9),
        (0.5, 1e-5, 10000, 2.0, 1.65386289602e-10, 1e-4),
    ],
)
def test_the_expansion_of_many_runs(sigma, q, k, eps, delta, width):
    """Deltas by sums over the number of jumps in real space, with several cuts that agree."""
    steps = gaussian_steps(hs.poisson_subsampled(hs.gaussian(sigma), q) * k, "add_remove")
    at = jumps.point(steps, 0, eps)
    assert at.lower - 3e-11 <= math.log(delta) <= at.upper + 3e-11
    assert at.width < width
    root = jumps.root(steps, 0, at.estimate)
    assert root.lower <= eps <= root.upper
    assert root.width < width


@pytest.mark.parametrize("n", some(150, 3))
def test_the_expansion_against_the_line(n):
    rng, seen, several = np.random.default_rng(9), 0, 0
    for _ in range(n):
        steps = Rows(*np.empty((3, rng.integers(1, 4))))
        for i in range(steps.k.size):
            steps.shift[i], steps.q[i] = math.exp(rng.uniform(-1.5, 1.6)), 10 ** rng.uniform(-6, -2)
            steps.k[i] = int(10 ** rng.uniform(0.4, 4.5))
        root = jumps.root(steps, 0, math.log(10) * rng.uniform(-14, -5))
        if root is None:
            continue
        several += steps.k.size > 1
        own, line = jumps.point(steps, 0, root.estimate), contour.point(steps, 0, root.estimate)
        if own and line:
            seen += 1
            assert own.lower <= line.upper
            assert line.lower <= own.upper
    assert seen > n / 15
    assert several > n / 30


@pytest.mark.parametrize(
    ("parts", "delta", "eps"),
    [
        (((8.422, 0.1457, 1), (1.281, 4.395e-4, 138)), 7.6e-20, 0.36838),  # [0.243, 1.636] by bounds
        (((1.004, 2.777e-4, 4811), (3.86, 1.106e-5, 1593)), 4.14e-18, 1.0689),  # [0.98, 1.21]
        (((2.303, 4.692e-5, 3), (8.337, 1.347e-4, 1074), (1.159, 2.208e-3, 2)), 1.1e-18, 1.3194),  # [1.27, 1.32]
    ],
)
def test_one_large_loss_among_unlike_steps(parts, delta, eps):
    found = hs.epsilon(hs.compose(*((hs.poisson_subsampled(hs.gaussian(s), q), k) for s, q, k in parts)), delta)
    assert found.upper - found.lower < 2e-5 * found.upper
    assert found.estimate == pytest.approx(eps, rel=2e-3)


def bulk_line(have_eps: int, sigma: float, q: float, k: float, add: int, at: float):
    return jumps._line(have_eps, jumps._plain(1 / sigma, q, add), k, at)


@pytest.mark.parametrize(
    ("sigma", "q", "k", "eps", "delta"),
    [
        (2.0, 1e-4, 1e4, 0.05, 2.000856608e-23),
        (5.0, 1e-5, 1e3, 1e-3, 6.40892960735e-56),
        (4.0, 1e-3, 1e3, 0.02, 1.826469147e-5),
        (0.99, 4.8e-5, 282080.0, 1.5, 2.54967555567736e-26),  # one jump apart from the bulk [theory: small.bulk-cells]
        (1.0, 1e-5, 1e5, 0.4, 2.992023537215e-26),
        (1.0, 1e-3, 1e3, 0.5, 2.058241216e-10),
        (1.0, 1e-4, 1e6, 2.0, 8.00158512720e-25),
    ],
)
def test_the_line_below_a_cut(sigma, q, k, eps, delta):  # [theory: small.bulk-beyond, small.bulk-line]
    """Deltas by lines through smoothly cut laws, whose several cuts agree to the digits given."""
    at = bulk_line(1, sigma, q, k, 0, eps).certified("jumps")
    assert at.lower - 1e-9 <= math.log(delta) <= at.upper + 1e-9
    assert at.width < 2e-8


@pytest.mark.parametrize("n", some(120, 2))
@pytest.mark.parametrize(
    "add, sigmas, rates, counts, logs",
    [
        (0, (-1.2, 6), (-7, -0.4), (0, 6), (-58, -2.3)),
        (1, (-1.2, 6), (-7, -0.4), (0, 6), (-58, -2.3)),
        (0, (-3, 0.6), (-6, -0.1), (0.4, 5), (-300, -7)),
    ],
)
def test_the_line_below_a_cut_against_the_whole_line(add, sigmas, rates, counts, logs, n):
    rng, seen, narrow = np.random.default_rng(17), 0, 0
    for _ in range(n):
        sigma, q = math.exp(rng.uniform(*sigmas)), 10 ** rng.uniform(*rates)
        k, log_delta = float(int(10 ** rng.uniform(*counts))), rng.uniform(*logs)
        own = bulk_line(0, sigma, q, k, add, log_delta)
        steps = Rows(*(np.array([x]) for x in (1 / sigma, q, k)))
        line = contour.root(steps, add, log_delta) if own.status <= _core.LOOSE else None
        narrow += own.status <= _core.LOOSE and own.width < 1e-9
        if line is None:
            continue
        seen += 1
        at, other = bulk_line(1, sigma, q, k, add, own.estimate), contour.point(steps, add, own.estimate)
        for one, two in ((own, line), (at, other)):
            if one.status <= _core.LOOSE and two:
                one = one.certified("jumps")
                assert one.lower <= two.upper
                assert two.lower <= one.upper
    assert seen > n / 5
    assert narrow > n / 3


def branch_loss(x, q, up, down):
    return np.log1p(q * np.expm1(up * x - up * up / 2)) - np.log1p(q * np.expm1(-down * x - down * down / 2))


def branch_place(y, q, up, down):
    """Where a branch has the loss y, by bisection."""
    low, high = np.full(y.shape, -60.0), np.full(y.shape, 90.0)
    for _ in range(60):
        mid = 0.5 * (low + high)
        above = branch_loss(mid, q, up, down) > y
        low, high = np.where(above, low, mid), np.where(above, mid, high)
    return 0.5 * (low + high)


def two_pair_runs(branches, eps, other=None):
    """delta of two steps of public mixtures, of one if there is no other: the integral over the first of
    the pay-off of the second, which is in closed form; panels in double, finer about the loss eps and where the second
    loss may be the least of its branch."""

    def payoff(y):
        out = 0.0
        for w, q, up, down in other or branches:
            g = branch_place(y, q, up, down)
            den = q * ndtr(-down - g) + (1 - q) * ndtr(-g)
            less = q * (ndtr(up - g) - ndtr(-down - g))
            out = out + w * np.where(g < 89, less - np.expm1(y) * den, 0.0)
        return np.maximum(out, 0.0)

    total, near = 0.0, np.outer([-1, 1], 10.0 ** np.arange(-6, 1.01, 0.25)).ravel()
    for w, q, up, down in branches:
        ends = -12.0 - down, up + 16
        least = (math.log1p(-rate) for _, rate, _, still in other or branches if not still)
        corners = np.array([eps, *(eps - end for end in least)])
        at = np.add.outer(branch_place(corners, q, up, down), near).ravel()
        at = np.unique(np.clip(np.r_[np.linspace(*ends, 150), at], *ends))
        x = 0.5 * (at[1:] + at[:-1])[:, None] + 0.5 * np.diff(at)[:, None] * NODE
        num = np.exp(-0.5 * x * x) * (1 + q * np.expm1(up * x - up * up / 2)) / math.sqrt(2 * math.pi)
        value = num * payoff(eps - branch_loss(x, q, up, down))
        total += w * float((0.5 * np.diff(at)[:, None] * WEIGHT * value).sum())
    return total


def any_branches(rng, kind, most=-1.5, shift=1.2, of=-1):
    """One branch, or two of a public mixture; a loss of the last, or another, to ask about."""
    q, m, w = 10 ** rng.uniform(-5, most), math.exp(rng.uniform(-2.3, shift)), rng.uniform(0.02, 0.98)
    second = [(m, m), (2 * m, 2 * m), (2 * m, m), (m, 2 * m), (2 * m, 0.0)][kind]
    first = [(m, m), (m, m), (m, 0.0), (0.0, m), (m, 0.0)][kind]
    branches = ((w if kind else 1.0, q, *first), (1 - w, q * rng.uniform(0.2, 1), *second))[: 1 + bool(kind)]
    return branches, float(abs(branch_loss(rng.uniform(1, 9), *branches[of][1:])))


@pytest.mark.parametrize("kind", range(5))
def test_two_runs_of_two_sided_branches(kind):  # [theory: small.bulk, small.bulk-cells, small.bulk-parity]
    rng, seen = np.random.default_rng(kind), 0
    while seen < 3:
        branches, loss = any_branches(rng, kind, -0.4, of=0)
        eps = loss * rng.uniform(0.3, 2)
        pair = sampling.packed([sampling.Pair(tuple(sampling.Branch(*row) for row in branches))])
        answer = jumps._line(1, pair, 2.0, eps)
        if answer.status > _core.LOOSE or answer.certified("jumps").estimate < math.log(1e-13):
            continue
        found, truth = answer.certified("jumps"), math.log(two_pair_runs(branches, eps))
        assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
        seen += 1


def expanded(steps, k, eps):
    pairs = sampling.packed([sampling.Pair(tuple(sampling.Branch(*row) for row in branches)) for branches in steps])
    one = np.ones(len(steps))
    rows = Rows(one, 0.5 * one, k / len(steps) * one, pairs=pairs)
    answer = scratch.lend(_core.jumps_work(len(steps)), _core.jumps_ask, rows, 0, 1, eps, *jumps.rule())
    return pairs, answer.certified("jumps") if answer.status <= _core.LOOSE else None


@pytest.mark.parametrize("kind", range(5))
def test_the_expansion_of_two_sided_branches(kind):  # [theory: small.expansion, small.complex-pair, small.place-series]
    rng, seen, sharp = np.random.default_rng(kind), 0, 0
    while seen < 4 or not sharp:
        branches, loss = any_branches(rng, kind)
        other = any_branches(rng, rng.integers(5))[0] if seen % 2 else branches
        eps = loss * rng.uniform(0.3, 2)
        found = expanded([branches, other][: 1 + seen % 2], 2.0, eps)[1] if eps > 0 else None
        if found is None or found.estimate < math.log(1e-13):
            continue
        truth = math.log(two_pair_runs(branches, eps, other))
        assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
        seen += 1
        sharp += found.width < 1e-3


@pytest.mark.parametrize("kind", range(5))
def test_the_expansion_of_two_sided_branches_against_lines(kind):  # [theory: small.numbers, small.expansion]
    rng, seen = np.random.default_rng(kind), 0
    while seen < 2:
        branches, loss = any_branches(rng, kind)
        k, eps = float(int(10 ** rng.uniform(0.5, 3))), loss * rng.uniform(0.3, 1)
        pair, found = expanded([branches], k, eps) if eps > 0 else (None, None)
        if found is None or found.width > 0.1:
            continue
        answer = jumps._line(1, pair, k, eps)
        if answer.status <= _core.LOOSE:
            line = answer.certified("jumps")
            assert found.lower <= line.upper
            assert line.lower <= found.upper
            seen += 1


@pytest.mark.parametrize("q, up, down, eps", [(3e-4, 0.27, 0.27, 6e-4), (0.2, 2.0, 1.0, 3.0), (1e-5, 0.5, 0.0, 1e-4)])
def test_one_pair_in_closed_form(q, up, down, eps):  # [theory: small.one-pair]
    pair = sampling.packed([sampling.Pair((sampling.Branch(1.0, q, up, down),))])
    found = _core.single_delta(pair, eps).certified("jumps")
    with mpmath.workdps(40):
        rate, u, d, a = mpmath.mpf(q), mpmath.mpf(up), mpmath.mpf(down), mpmath.exp(mpmath.mpf(eps))
        x = mpmath.findroot(
            lambda x: (
                mpmath.log1p(rate * mpmath.expm1(u * x - u * u / 2)) / eps
                - mpmath.log1p(rate * mpmath.expm1(-d * x - d * d / 2)) / eps
                - 1
            ),
            branch_place(np.array([eps]), q, up, down)[0],
        )
        near, mid, far = (mpmath.erfc((x - move) / mpmath.sqrt(2)) / 2 for move in (u, 0, -d))
        truth = mpmath.log(rate * near - a * rate * far + (1 - rate) * (1 - a) * mid)
        assert found.lower <= truth <= found.upper < found.lower + 1e-8


@pytest.mark.parametrize("adjacency, size", [("replace_one", None), ("zero_out", 12), ("add_remove", 12)])
def test_roots_of_one_pair(adjacency, size):  # [theory: small.one-pair]
    """In closed form, where a contour and a grid leave 1e-4 and more."""
    step = hs.poisson_subsampled(hs.gaussian(7.0), 3e-4)
    if size:
        step = hs.truncated_poisson_subsampled(hs.gaussian(7.0), 3e-4, dataset_size=10_000, max_batch=size)
    paired = paired_steps(step * 1, adjacency, False)
    for delta in (1e-14, 1e-9):
        root = jumps.pair_root(paired, 0, delta)
        assert root.width < 1e-9
        above, below = (jumps.pair_point(paired, 0, end) for end in (root.lower, root.upper))
        assert above.upper >= math.log(delta) >= below.lower
    assert jumps.pair_root(paired, 0, 0.5) is None
    assert _core.single_delta(sampling.packed([sampling.Pair((sampling.Branch(1.0, 0.7, 0.4, 0.4),))]), 0.1).status


def test_the_upper_end_of_the_direction_that_is_left_out():  # [theory: small.bulk-beyond, line.chernoff]
    """Where the tilt is far above those that the panels were made for it said nothing, and ADD was asked on a grid."""
    step = hs.truncated_poisson_subsampled(hs.gaussian(0.7436), 4.109e-5, dataset_size=865855, max_batch=62)
    upper = jumps.pair_log_upper(paired_steps(step * 7, "zero_out", True), 1, 1.461e-3, -math.inf)
    assert upper < math.log(2.326e-6)
    assert upper >= hs.log_delta(step * 7, 1.461e-3, adjacency="zero_out", direction="add").lower


@pytest.mark.parametrize("adjacency", ["add_remove", "zero_out", "replace_one"])
def test_runs_of_two_sided_branches_against_the_whole_line(adjacency):  # [theory: small.bulk-line, small.bulk-beyond]
    rng, seen = random.Random(adjacency), 0
    while seen < 8:
        n, sigma, q = int(10 ** rng.uniform(2, 6)), math.exp(rng.uniform(-0.7, 2)), 10 ** rng.uniform(-4, -0.7)
        size, k = max(1, int(n * q * rng.uniform(0.7, 2))), int(10 ** rng.uniform(0.5, 4))
        step = hs.truncated_poisson_subsampled(hs.gaussian(sigma), q, dataset_size=n, max_batch=size)
        add, delta = rng.random() < 0.5, 10 ** rng.uniform(-12, -4)
        paired = paired_steps(step * k, adjacency, add)
        own = jumps.pair_root(paired, add, delta)
        line = contour.pair_root(paired, add, delta)
        if own is None or line is None:
            continue
        assert own.lower <= line.upper
        assert line.lower <= own.upper
        seen += 1


def upper_end(pair, k: float, eps: float) -> float:
    size = _core.bulk_line_work()
    status, upper = scratch.lend(size, _core.bulk_upper, pair, k, eps, -math.inf, *jumps.rule())
    return upper if status == _core.OK else math.inf


@pytest.mark.parametrize("kind", range(5))
def test_the_upper_end_of_bulk_and_jumps(kind):  # [theory: small.bulk-beyond, line.chernoff]
    """Above two runs in real space, and seldom far above."""
    rng, off = np.random.default_rng(kind + 9), []
    while len(off) < 8:
        branches, loss = any_branches(rng, kind, -0.4, of=0)
        eps = loss * rng.uniform(0.3, 2)
        truth = two_pair_runs(branches, eps)
        if truth > 1e-12:
            pair = sampling.packed([sampling.Pair(tuple(sampling.Branch(*row) for row in branches))])
            off.append(upper_end(pair, 2.0, eps) - math.log(truth))
    assert min(off) > -1e-8
    assert sorted(off)[3] < 5


def test_the_upper_end_of_many_runs():  # [theory: small.bulk-beyond]
    """Above certified grids, which share no code with it."""
    rng, off = random.Random(5), []
    while len(off) < 6:
        sigma, q, k = math.exp(rng.uniform(-0.5, 1.5)), 10 ** rng.uniform(-4, -1), int(10 ** rng.uniform(0.5, 2.5))
        run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
        paired = paired_steps(run, "replace_one", False)
        try:
            eps = hs.epsilon(run, 10 ** rng.uniform(-8, -2), adjacency="replace_one", route="pld").estimate
            eps *= rng.uniform(0.6, 1.3)
            least = hs.log_delta(run, eps, adjacency="replace_one", route="pld").lower
        except hs.AccuracyError:
            continue
        if eps > 0 and least > -30:
            off.append(jumps.pair_log_upper(paired, 0, eps, -math.inf) - least)
    assert min(off) > 0
    assert np.median(off) < 5


def test_the_upper_end_is_where_it_says():
    """One step, where the upper end is the integral of what is beyond the cut and Chernoff's bound below it."""
    for q, m in ((1e-3, 1.0), (0.05, 0.4), (1e-6, 2.5)):
        paired = paired_steps(hs.poisson_subsampled(hs.gaussian(1 / m), q) * 1, "replace_one", False)
        for eps in (0.1 * q, q, 0.3):
            x = branch_place(np.array([eps]), q, m, m)[0]
            den = q * ndtr(-m - x) + (1 - q) * ndtr(-x)
            truth = q * (ndtr(m - x) - ndtr(-m - x)) - math.expm1(eps) * den
            upper = jumps.pair_log_upper(paired, 0, eps, -math.inf)
            assert truth < math.exp(upper) * (1 + 1e-9)
        assert jumps.pair_log_upper(paired, 0, -0.1, -math.inf) == math.inf


@pytest.mark.parametrize(
    "adjacency, sigma, q, k, delta",
    [
        ("replace_one", 1.044, 3.852e-4, 52, 1.01e-17),  # 1.9e-3 wide where a line without room left none to others
        ("replace_one", 0.7534, 1.465e-5, 17653, 6.01e-16),  # 6.2e-2
        ("replace_one", 0.8285, 1.495e-4, 187, 1.3e-12),  # 4.7e-5
    ],
)
def test_a_line_without_room_leaves_room_to_others(adjacency, sigma, q, k, delta):
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
    paired = paired_steps(run, adjacency, False)
    line = jumps._line(0, jumps._pair(paired.steps, 0), float(k), math.log(delta))
    found = line.certified("jumps")
    assert found.upper - found.lower < 1e-8 * found.upper
    rough = hs.epsilon(run, delta, adjacency=adjacency, route="contour" if k == 187 else "auto")
    assert found.lower <= rough.upper
    assert rough.lower <= found.upper


@pytest.mark.parametrize(
    "sigma, q, k, delta, width",
    [(1.24, 5e-5, 12, 3.6e-18, 1e-7), (0.89, 1.7e-5, 19, 1.6e-18, 1e-8), (0.6651, 1.4e-5, 151_948, 4e-15, 1e-3)],
)
def test_replaced_runs_that_no_line_takes(sigma, q, k, delta, width):
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
    found = hs.epsilon(run, delta, adjacency="replace_one")
    assert found.upper - found.lower < width * found.upper
    assert found.lower >= hs.epsilon(run, delta).lower * (1 - 1e-12)


@pytest.mark.parametrize("n", some(60, 6))
def test_what_lies_beyond_the_last_node(n):  # [theory: small.bulk-far]
    """|phi| against its bound, by dense panels, and the masses of cells against sums."""
    rng = np.random.default_rng(8)
    for _ in range(n):
        m, q, add = math.exp(rng.uniform(-4, 0.7)), 10 ** rng.uniform(-6, -0.5), rng.integers(2)
        left, cut = -12.0, rng.uniform(2, 12)
        at = np.linspace(left, cut, 4001)
        x = (0.5 * (at[1:] + at[:-1])[:, None] + 0.5 * np.diff(at)[:, None] * NODE[None, ::3]).ravel()
        x.sort()
        v = m * x - m * m / 2
        reach = math.log1p(q * math.expm1(m * cut - m * m / 2))
        a = -rng.uniform(1, 3) / (q * m) if add else 1 + min(rng.uniform(0.1, 3) / (q * m), 100 / reach)
        weight = np.gradient(x) * np.exp(a * np.log1p(q * np.expm1(v)) - x * x / 2)
        phi = weight / weight.sum()
        loss, s = np.log1p(q * np.expm1(v)), q * np.exp(v) / (1 + q * np.expm1(v))
        sd = math.sqrt(phi @ loss**2 - (phi @ loss) ** 2)
        low = rng.uniform(0.3, 20) / sd
        for tau in (0.5, 1.0, 1.4):
            sine = math.sin(tau) / tau
            cost = 1 + m * m + (abs(a) * m * m * s / math.cos(tau / 2) ** 2 if add else 0 * s)
            d = np.minimum(sine * low * m * s / cost, tau / m)
            edge = phi[-1] / np.gradient(x)[-1] * min(d[-1], 2 / (sine * low * m * s[-1]))
            most = 1 - phi @ -np.expm1(-sine * low * m * s * d / 2) + edge
            for y in low * np.array([1, 1.3, 2.7, 9]):
                if y * np.abs(np.diff(loss)).max() < 0.3:
                    assert abs(phi @ np.exp(1j * y * loss)) <= most + 1e-4


def test_what_the_expansion_declines():
    gaussian = hs.gaussian(1.0)
    whole = hs.compose(hs.poisson_subsampled(gaussian, 1e-5) * 3, gaussian)
    several = hs.compose(*(hs.poisson_subsampled(gaussian, 1e-5 * i) for i in range(1, 18)))
    for run in (gaussian * 5, whole, several, hs.poisson_subsampled(gaussian, 0.95) * 1000):
        steps = gaussian_steps(run, "add_remove")
        assert jumps.point(steps, 0, 1.0) is None
        assert jumps.root(steps, 0, -20.0) is None
    steps = gaussian_steps(hs.poisson_subsampled(gaussian, 1e-3) * 100, "add_remove")
    assert jumps.point(steps, 0, -0.1) is None
    assert jumps.point(steps, 0, 0.0) is None
    assert jumps.point(steps, 0, 1e3) is None


@pytest.mark.parametrize("sigma, eps", [(4.17731884069303, 2.116940436171634), (4.92016106705973, 2.4603195205459243)])
def test_an_estimate_that_is_lost_lies_in_its_interval(sigma, eps):
    """Of one line it was below 0, far out."""
    run = hs.poisson_subsampled(hs.gaussian(sigma), 0.01) * 1000
    found = hs.log_delta(run, eps, direction="remove")
    steps = gaussian_steps(run, "add_remove")
    other = jumps.point(steps, 0, eps)
    assert other and found.lower <= other.upper and other.lower <= found.upper
    assert found.lower <= found.estimate <= found.upper and hs.delta(run, eps).upper <= 1e-100


def test_no_term_stops_at_a_largest_value():
    """What lies beyond the cut was more than e^600 of the value."""
    run, eps = hs.poisson_subsampled(hs.gaussian(4.92016106705973), 0.01) * 1000, 17.308281172931505
    one, other = (hs.log_delta(run, eps, direction="remove", route=route) for route in ("auto", "contour"))
    assert one.lower <= other.upper and other.lower <= one.upper and other.width < 1e-3


def whole_line(m: float, q: float, k: float, eps: float, c: float) -> float:
    """log delta(eps) by the line at c of the law without any cut: sums over outcomes and frequencies, for runs of so
    many jumps that the transform falls far below the answer."""
    x = np.linspace(-13, 45 + m, 16001)
    loss = np.logaddexp(math.log1p(-q), math.log(q) + m * x - m * m / 2)
    size = (1 + c) * loss - 0.5 * x * x
    top = size.max()
    size = np.exp(size - top)
    total, mean = size.sum(), float((size * loss).sum() / size.sum())
    sd = math.sqrt(k * float((size * loss * loss).sum() / total - mean * mean))
    y = np.arange(0, 80, 0.05) / sd  # sums of alike jumps are nearly on a lattice, and the transform rises again
    phi = np.array([(size * np.exp(1j * w * loss)).sum() / total for w in y])
    f = np.exp(k * np.log(phi) - 1j * eps * y) / ((c + 1j * y) * (1 + c + 1j * y))
    mass = math.log(total) + math.log(x[1] - x[0]) - 0.5 * math.log(2 * math.pi) + top
    value = (2 * f.real.sum() - f[0].real) * (y[1] - y[0]) / (2 * math.pi)
    return k * mass - c * eps + math.log(value)


@pytest.mark.parametrize(
    ("sigma", "q", "k", "delta", "c", "exact"),
    [
        (0.0636, 6e-4, 1e4, 1.56e-33, 0.02, 1e-8),
        (0.12, 0.01, 1e4, 1e-60, 0.02, 1e-8),
        (0.3, 1e-3, 1e5, 1e-100, 0.3, 1e-7),
    ],
)
def test_many_runs_of_large_losses(sigma, q, k, delta, c, exact):  # [theory: small.counts-sum]
    own = bulk_line(0, sigma, q, k, 0, math.log(delta)).certified("jumps")
    assert own.width < 1e-9
    at = bulk_line(1, sigma, q, k, 0, own.estimate).certified("jumps")
    m = 1 / sigma
    tilts = [c * 1.3**i for i in range(-6, 7)]
    x = np.linspace(-13, 45 + m, 16001)
    loss = np.logaddexp(math.log1p(-q), math.log(q) + m * x - m * m / 2)
    means = []
    for t in tilts:
        size = (1 + t) * loss - 0.5 * x * x
        size = np.exp(size - size.max())
        means.append(abs(k * float((size * loss).sum() / size.sum()) - own.estimate))
    truth = whole_line(m, q, k, own.estimate, tilts[int(np.argmin(means))])
    assert at.lower - exact <= truth <= at.upper + exact


@pytest.mark.parametrize("n", some(300))
def test_transforms_of_jumps(n):  # [theory: small.counts-far]
    rng = np.random.default_rng(12)
    for _ in range(n):
        m, q, c = math.exp(rng.uniform(-0.7, 3)), 10 ** rng.uniform(-8, -0.1), math.exp(rng.uniform(-4, 2.5))
        s = rng.uniform(0.55, 0.999)
        low = math.log(s * (1 - q) / (q * (1 - s))) / m + m / 2
        x = np.linspace(low, low + rng.uniform(1, 12), 40001)
        loss = np.logaddexp(math.log1p(-q), math.log(q) + m * x - m * m / 2)
        size = (1 + c) * loss - 0.5 * x * x
        size = np.exp(size - size.max())
        weight = np.full(x.size, x[1] - x[0])
        weight[[0, -1]] *= 0.5
        density = size / (size * weight).sum()
        start = rng.uniform(0.2, 8) / m
        eta = math.asin((1 - s) / s)
        most = math.exp(-0.5 * (m * start) ** 2) + 2 / (m * start) * (density[0] + density[-1])
        for y in start * np.array([1, 1.1, 1.7, 3]):
            own = abs((density * weight * np.exp(1j * y * loss)).sum())
            assert own <= math.exp(eta * start) * most + 1e-6


def test_a_law_takes_nothing_from_scratch():
    """Places of panels that an earlier question left there, but not what was known of them, are those of no panel: of
    such a line with 684 nodes one said what 726 other nodes would."""
    asked = jumps._plain(0.6900319387572282, 2.1765763252185287e-09, 0), 28.0, 1, 6.094413717244359e-08, *jumps.rule()
    work = np.zeros(_core.bulk_line_work())
    found = _core.bulk_line_ask(*asked, work)
    short = np.ldexp(work, 30) == np.rint(np.ldexp(work, 30))  # as the places of panels are
    work[~short | (work == 0)] = 1e300
    assert _core.bulk_line_ask(*asked, work) == found
