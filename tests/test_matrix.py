"""Random shifts on the line, matrix mechanisms, failures."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.what.matrix import Failure

BAND = np.eye(6) + 0.6 * np.eye(6, k=-1)


@settings(max_examples=8, deadline=None)
@given(
    sigma=st.floats(0.4, 20.0),
    q=st.floats(1e-3, 1.0),
    k=st.integers(2, 3000),
    log_delta=st.floats(-30.0, -2.0),
    direction=st.sampled_from(["remove", "add"]),
)
def test_a_mixture_of_two_shifts_is_a_sampled_step(sigma, q, k, log_delta, direction):
    """Two laws of the line, with other formulas and other error terms [theory: law.mixture]."""
    split = [0.5 * q, 0.5 * q] if q == 1 else [1 - q, 0.25 * q, 0.75 * q]
    one = hs.gaussian_mixture(sigma, [1.0, 1.0] if q == 1 else [0.0, 1.0, 1.0], split)
    a = hs.epsilon(one * k, math.exp(log_delta), direction=direction)
    b = hs.epsilon(hs.poisson_subsampled(hs.gaussian(sigma), q) * k, math.exp(log_delta), direction=direction)
    assert a.lower <= b.upper * (1 + 1e-12) and b.lower <= a.upper * (1 + 1e-12)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_line_and_grid_agree_on_random_shifts(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    p = rng.dirichlet(np.r_[20.0, np.ones(n)])
    run = hs.gaussian_mixture(float(rng.uniform(0.5, 4)), [0.0, *rng.uniform(0, 2, n).tolist()], p.tolist())
    run, eps = run * int(rng.integers(2, 60)), float(rng.uniform(0, 3))
    line = hs.delta(run, eps, direction="remove")
    grid = hs.delta(run, eps, direction="remove", route="pld")
    assert line.lower <= grid.upper and grid.lower <= line.upper


def test_a_thousand_distinct_mixtures_are_one_run_on_the_line():
    rng = np.random.default_rng(3)
    steps = [hs.gaussian_mixture(3.0, [0.0, *rng.uniform(0.1, 1, 3)], [0.94, 0.03, 0.02, 0.01]) for _ in range(1000)]
    b = hs.epsilon(hs.compose(*steps), 1e-5)
    assert b.route == "contour" and b.upper - b.lower < 1e-7 * b.estimate


def _truth(matrix, sigma, q, eps, add=False, m=261, reach=9.0):
    """delta of sum_B N(C B) against N(0) for two or three rounds, by a product rule of ample accuracy."""
    n = matrix.shape[0]
    top = float(matrix.sum(axis=1).max()) / sigma
    x, dx = np.linspace(-reach, reach + top, m, retstep=True)

    def product(factors):
        return functools.reduce(np.multiply.outer, factors)

    base = product([np.exp(-0.5 * x * x) * (dx / math.sqrt(2 * math.pi))] * n)
    mixed = np.zeros_like(base)
    for which in range(2**n):
        taken = np.array([which >> i & 1 for i in range(n)])
        weight = q ** taken.sum() * (1 - q) ** (n - taken.sum())
        mixed += weight * product([np.exp(s * x - 0.5 * s * s) for s in matrix @ taken / sigma])
    ratio = np.maximum(1 - math.exp(eps) * mixed, 0) if add else np.maximum(mixed - math.exp(eps), 0)
    return float((base * ratio).sum())


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("sigma", [0.8, 8.0])
def test_the_bound_holds_for_small_matrices(direction, sigma):
    matrix = np.array([[1.0, 0.0, 0.0], [0.7, 1.0, 0.0], [0.2, 0.5, 0.9]])
    for size, eps in ((2, 0.3 / sigma), (3, 0.4 / sigma)):
        c = matrix[:size, :size]
        truth = _truth(c, sigma, 0.2, eps, direction == "add", m=801 if size == 2 else 181)
        b = hs.delta(hs.matrix_mechanism(c, sigma, 0.2, failure=1e-5), eps, direction=direction)
        assert truth * (1 - 1e-3) <= b.upper  # [theory: matrix.posterior, matrix.rates]
        assert sigma < 1 or b.upper < 2 * truth + 2e-5  # the posterior is bounded at its worst: of use with ample noise


def test_without_bands_rounds_are_independent_samples():
    run = hs.matrix_mechanism(np.diag([1.0, 2.0, 0.0, 1.0]), 2.0, 0.1, failure=1e-9)
    plain = hs.poisson_subsampled(hs.gaussian(2.0), 0.1) * 2 + hs.poisson_subsampled(hs.gaussian(1.0), 0.1)
    for adjacency in ("add_remove", "zero_out"):
        a, b = (hs.epsilon(r, 1e-5, adjacency=adjacency) for r in (run, plain))
        assert a.lower <= b.upper and b.lower <= a.upper < b.upper * 1.001
    with pytest.raises(hs.DomainError, match="replace_one"):
        hs.epsilon(run, 1e-5, adjacency="replace_one")


@settings(max_examples=5, deadline=None)
@given(st.floats(1.0, 10.0), st.floats(1e-3, 0.3), st.floats(1e-10, 1e-7))
def test_more_noise_lower_rates_and_smaller_entries_cost_less(sigma, q, lost):
    def cost(matrix, sigma, q):
        return hs.delta(hs.matrix_mechanism(matrix, sigma, q, failure=lost), 1.0)

    here = cost(BAND, sigma, q)
    for less in (cost(BAND, 1.1 * sigma, q), cost(BAND, sigma, 0.9 * q), cost(BAND * 0.95, sigma, q)):
        assert less.lower <= here.upper


@pytest.mark.parametrize("unit", [1e-300, 1e-155, 1e160])
def test_units_do_not_matter(unit):
    """Squares of entries and of sigma are not formed."""
    one, other = (hs.epsilon(hs.matrix_mechanism(BAND * u, u, 0.05, failure=1e-7), 1e-5) for u in (1.0, unit))
    assert one.estimate == pytest.approx(other.estimate, rel=1e-9)


def test_entries_far_above_the_noise_are_refused():
    with pytest.raises(hs.DomainError, match="sigma"):
        hs.matrix_mechanism(BAND * 1e200, 1.0, 0.05, failure=1e-7)


@pytest.mark.parametrize("bands", [8, 12])
def test_merged_shifts_lie_above(bands):
    """With more than 64 shifts a row is merged upwards: every moment is at least that of the law itself."""
    from hockeystick.what.matrix import _shifts

    rng = np.random.default_rng(bands)
    c, p = tuple(rng.uniform(0.1, 1, bands).tolist()), tuple(rng.uniform(0.01, 0.4, bands).tolist())
    shift, weight = (rows[0] for rows in _shifts(np.array([c]), np.array([p])))
    assert shift.size <= 64 and abs(weight.sum() - 1) < 1e-12
    exact = [
        (sum(x for x, b in zip(c, bits, strict=True) if b), np.prod(np.where(bits, p, 1 - np.array(p))))
        for bits in (np.array([i >> j & 1 for j in range(bands)]) for i in range(2**bands))
    ]
    for at in np.linspace(0, sum(c), 200):
        assert weight[shift >= at].sum() >= math.fsum(w for x, w in exact if x >= at) - 1e-15
    mean = sum(c_ * p_ for c_, p_ in zip(c, p, strict=True))
    assert mean <= shift @ weight < 1.1 * mean


def test_merging_shifts_of_no_weight_warns_of_nothing():
    """The largest of more than 64 shifts stays, also where its probability is below the least double."""
    import warnings

    from hockeystick.what.matrix import _shifts

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shift, weight = _shifts(np.linspace(0.1, 1, 13)[None], np.full((1, 13), 1e-60))
    assert shift.shape == (1, 64) and np.isfinite(weight).all() and shift[0, -1] >= 7.15


def test_a_failure_is_added_to_everything():  # [theory: matrix.conditional]
    base, run = hs.gaussian(1.0) * 3, hs.gaussian(1.0) * 3 + hs.failure(1e-6) * 2
    for eps in (-1.0, 0.5, 8.0):
        a, b = hs.delta(base, eps), hs.delta(run, eps)
        assert b.lower <= min(a.upper + 2e-6, 1) <= b.upper + 1e-12 and b.upper >= a.lower + 2e-6 * (a.upper < 0.9)
        assert hs.log_delta(run, eps).upper >= math.log(b.lower)
    assert hs.epsilon(run, 1e-5).upper >= hs.epsilon(base, 8e-6).lower
    assert hs.epsilon(run, 1e-6).upper == math.inf and hs.delta(hs.failure(0.9) * 3 + base, 0.1).upper == 1
    top = hs.top_k(0.1, 5)
    assert hs.epsilon(top + hs.failure(1e-7), 1e-5).upper >= hs.epsilon(top, 9.9e-6).lower


@pytest.mark.parametrize(
    ("matrix", "named"),
    [
        (np.ones((2, 3)), "matrix"),
        ([[1.0, 0.5], [0.0, 1.0]], "lower triangular"),
        ([[-1.0]], "entry"),
        ([[math.nan]], "entry"),
    ],
)
def test_bad_matrices_are_named(matrix, named):
    with pytest.raises(hs.DomainError, match=named):
        hs.matrix_mechanism(matrix, 2.0, 0.1, failure=1e-8)


def test_what_has_no_pair_says_so():
    for ask in (lambda r: hs.rdp(r, [2.0]), lambda r: hs.select(r, mean=5), lambda r: hs.poisson_subsampled(r, 0.1)):
        with pytest.raises(hs.HockeystickError):
            ask(Failure(1e-6))


def test_a_failure_alone_is_inside_its_bound():
    for delta in (1e-9, 0.1, 1e-300, 1 / 8, 2e-17):
        for k in (1, 3, 7):
            bound = hs.delta(hs.failure(delta) * k, 0.3)
            assert bound.lower <= k * Fraction(delta) <= bound.upper <= k * delta * (1 + 1e-14)


def test_a_failure_next_to_no_number():
    for delta in (5e-324, 1e-310):
        a, b = hs.delta(hs.gaussian(1.0), 0.5), hs.delta(hs.gaussian(1.0) + hs.failure(delta), 0.5)
        assert b.lower <= a.upper and a.lower <= b.upper < a.upper * (1 + 1e-12)


@pytest.mark.parametrize("direction", ["remove", "add", "both"])
def test_a_curve_that_is_nothing_beside_a_failure(direction):
    """Moments prove it, at once; the answer is that of the sum."""
    steps = hs.gaussian_mixture(8.0, [0.0, 0.6, 1.0], [0.9, 0.05, 0.05]) * 6 + hs.laplace(50.0)
    for eps in (0.4, 1.5, 40.0):
        rest = hs.delta(steps, eps, direction=direction, route="pld")
        b = hs.delta(steps + hs.failure(1e-9), eps, direction=direction)
        assert b.lower <= rest.upper + 1e-9 and rest.lower + 1e-9 <= b.upper * (1 + 1e-14)
        assert b.upper <= (rest.upper + 1e-9) * (1 + 1e-6)
        log = hs.log_delta(steps + hs.failure(1e-9), eps, direction=direction)
        assert log.lower <= math.log(b.upper) and math.log(b.lower) <= log.upper < log.lower + 1e-6
