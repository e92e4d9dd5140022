"""The contour route: closed forms, small runs, laws, tolerances from both sides, threads and forks."""

import concurrent.futures
import itertools
import json
import math
import os
import signal
from pathlib import Path

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings

import hockeystick as hs
from rows import U, bits, gaussian_delta, sgm

SMALL = [json.loads(line) for line in (Path(__file__).parent / "reference" / "small_k.jsonl").read_text().splitlines()]
SIGMA = st.floats(0.4, 20.0)
Q = st.floats(1e-3, 0.5)
K = st.integers(1, 10**6)
EPS = st.floats(0.01, 8.0)
DIRECTION = st.sampled_from(["remove", "add", "both"])


def answer(query, *args, **options):
    """The bound; a case that is refused is no case of a law."""
    try:
        return query(*args, **options)
    except hs.AccuracyError:
        assume(False)


# closed forms


def check_gaussian(sigma, k, eps):
    run = hs.gaussian(sigma) * k
    with mpmath.workdps(80):
        mu = mpmath.sqrt(k) / mpmath.mpf(sigma)
        truth = mpmath.log(gaussian_delta(mu, eps, 80))
    bound = answer(hs.log_delta, run, eps)
    assert bound.certified
    assert mpmath.mpf(bound.lower) <= truth <= mpmath.mpf(bound.upper)
    assert bound.width <= 1e-8 * max(1.0, abs(bound.estimate))
    if truth > -570:  # 1e-250
        bound = hs.delta(run, eps)
        with mpmath.workdps(80):
            truth = mpmath.exp(truth)
        assert mpmath.mpf(bound.lower) <= truth <= mpmath.mpf(bound.upper)


@settings(max_examples=60, deadline=None)
@given(st.floats(-1.5, 1.5), st.integers(1, 10**6), st.floats(0.2, 30.0))
def test_gaussian_closed_form(log_mu, k, depth):
    """mu from 0.03 to 30; eps at `depth` standard deviations beyond the mean loss: delta down to 1e-197."""
    mu = 10.0**log_mu
    check_gaussian(math.sqrt(k) / mu, k, 0.5 * mu * mu + depth * mu)


@pytest.mark.parametrize("mu, depth", [(1.0, 33.5), (0.1, 33.0), (5.0, 50.0), (1.0, 200.0), (20.0, 100.0)])
def test_gaussian_far_tail(mu, depth):
    check_gaussian(1.0 / mu, 1, 0.5 * mu * mu + depth * mu)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 5.0), st.floats(1e-4, 0.9), st.floats(0.01, 10.0), DIRECTION)
def test_one_subsampled_step(sigma, q, eps, direction):  # [theory: risk.tpr]
    """k = 1: E (num - e^eps den)_+ is an integral over a half line whose end is known."""
    with mpmath.workdps(60):
        s, p, e = mpmath.mpf(sigma), mpmath.mpf(q), mpmath.mpf(eps)
        deltas = []
        if direction != "add":
            x = s * s * mpmath.log((mpmath.exp(e) - 1 + p) / p) + mpmath.mpf(1) / 2
            up = mpmath.ncdf((1 - x) / s), mpmath.ncdf(-x / s)
            deltas.append(p * up[0] + (1 - p) * up[1] - mpmath.exp(e) * up[1])
        if direction != "remove":
            room = (mpmath.exp(-e) - 1 + p) / p
            if room <= 0:
                deltas.append(mpmath.mpf(0))
            else:
                x = s * s * mpmath.log(room) + mpmath.mpf(1) / 2
                down = mpmath.ncdf(x / s), mpmath.ncdf((x - 1) / s)
                deltas.append(down[0] - mpmath.exp(e) * (p * down[1] + (1 - p) * down[0]))
        truth = max(deltas)
    assume(truth == 0 or truth > 1e-50)
    bound = answer(hs.delta, sgm(sigma, q), eps, direction=direction)
    assert mpmath.mpf(bound.lower) <= truth <= mpmath.mpf(bound.upper)


# small runs


@pytest.mark.parametrize("row", SMALL, ids=lambda r: "s{sigma}-q{q}-k{k}-{direction}-{eps}".format(**r))
def test_small_run(row):
    run, eps, truth = (
        sgm(float(row["sigma"]), float(row["q"]), row["k"]),
        float(row["eps"]),
        float(row["delta"]),
    )
    table_error = float(row["disagreement"]) * truth + 2 * U * truth
    bound = hs.delta(run, eps, direction=row["direction"])
    assert bound.certified
    assert bound.lower <= truth + table_error
    assert bound.upper >= truth - table_error
    assert bound.width <= 1e-6 * truth
    # the roots at both ends of the table's error bracket eps
    low = hs.epsilon(run, truth + table_error, direction=row["direction"])
    high = hs.epsilon(run, truth - table_error, direction=row["direction"])
    assert low.lower <= eps * (1 + 2 * U)
    assert high.upper >= eps * (1 - 2 * U)
    assert low.width <= 1e-6 * eps


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 30, 100])
def test_the_first_hour_is_certified_to_1e_6(k):
    for sigma, q, delta in itertools.product([0.6, 0.8, 1.0, 1.5, 2.0], [0.001, 0.005, 0.01, 0.05], [1e-5, 1e-7, 1e-9]):
        bound = hs.epsilon(sgm(sigma, q, k), delta)
        assert bound.certified and 0 <= bound.lower <= bound.estimate <= bound.upper
        assert bound.upper - bound.lower <= 1e-6 * bound.upper, (sigma, q, delta, bound)


# laws


@settings(max_examples=40, deadline=None)
@given(SIGMA, K, EPS)
def test_sampling_everything_is_the_gaussian(sigma, k, eps):
    assume(k < 100 * sigma * sigma)
    run = sgm(sigma, 1.0, k)
    assert run == hs.gaussian(sigma) * k
    assert bits(answer(hs.delta, run, eps)) == bits(hs.delta(hs.gaussian(sigma) * k, eps))


@settings(max_examples=40, deadline=None)
@given(SIGMA, Q, K, K, EPS, DIRECTION)
def test_merging(sigma, q, a, b, eps, direction):
    parts = sgm(sigma, q, a) + sgm(sigma, q, b)
    assert bits(answer(hs.delta, parts, eps, direction=direction)) == bits(
        hs.delta(sgm(sigma, q, a + b), eps, direction=direction)
    )


@settings(max_examples=30, deadline=None)
@given(SIGMA, Q, K, st.floats(1e-12, 0.4), DIRECTION)
def test_merging_eps(sigma, q, k, delta, direction):
    parts = sgm(sigma, q, k) + sgm(sigma, q, 1)
    assert bits(answer(hs.epsilon, parts, delta, direction=direction)) == bits(
        hs.epsilon(sgm(sigma, q, k + 1), delta, direction=direction)
    )


@settings(max_examples=60, deadline=None)
@given(SIGMA, Q, K, EPS, DIRECTION, st.sampled_from(["eps", "k", "sigma", "q"]), st.floats(1.0, 2.0))
def test_monotone(sigma, q, k, eps, direction, what, factor):
    """More noise, larger eps, fewer steps, rarer samples: delta falls."""
    worse = answer(hs.delta, sgm(sigma, q, k), eps, direction=direction)
    better = {
        "eps": (sgm(sigma, q, k), eps * factor),
        "k": (sgm(sigma, q, max(1, int(k / factor))), eps),
        "sigma": (sgm(sigma * factor, q, k), eps),
        "q": (sgm(sigma, q / factor, k), eps),
    }[what]
    assert worse.upper >= answer(hs.delta, *better, direction=direction).lower


@settings(max_examples=40, deadline=None)
@given(SIGMA, Q, K, EPS)
def test_both_is_the_larger(sigma, q, k, eps):
    run = sgm(sigma, q, k)
    remove, add, both = (answer(hs.delta, run, eps, direction=d) for d in ("remove", "add", "both"))
    for end in ("lower", "estimate", "upper"):  # ADD is left out where it is proved to be the smaller
        ends = [getattr(b, end) for b in (remove, add)]
        assert ends[0] <= getattr(both, end) <= max(ends)
    assert both.lower >= add.lower


@settings(max_examples=40, deadline=None)
@given(SIGMA, Q, K, st.floats(-30.0, -0.5), DIRECTION)
def test_the_root_is_a_root(sigma, q, k, log10_delta, direction):
    delta = 10.0 ** (log10_delta if log10_delta < -0.5 else -0.5)
    run = sgm(sigma, q, k)
    root = answer(hs.epsilon, run, delta, direction=direction)
    if root.upper == 0:
        assert answer(hs.delta, run, 0.0, direction=direction).lower <= delta
        return
    assert answer(hs.delta, run, root.upper, direction=direction).lower <= delta
    if root.lower > 0:
        assert answer(hs.delta, run, root.lower, direction=direction).upper >= delta


# tolerances


@pytest.mark.parametrize("exponent", range(-12, 0))
@pytest.mark.parametrize("sigma, q, k, eps", [(1.0, 0.01, 1000, 1.0), (0.6, 0.01, 3, 3.840038), (5.0, 1.0, 100, 2.0)])
def test_tolerance_is_met_or_refused(sigma, q, k, eps, exponent):
    rtol, run = 10.0**exponent, sgm(sigma, q, k)
    best = hs.delta(run, eps)
    try:
        bound = hs.delta(run, eps, rtol=rtol)
    except hs.AccuracyError as error:
        assert rtol < 1e-10
        assert f"{rtol:g}" in str(error)
    else:
        assert bound.width <= rtol * bound.estimate * (1 + 1e-9)
        assert bound.lower <= best.upper and best.lower <= bound.upper
    delta = best.estimate
    best = hs.epsilon(run, delta)
    try:
        bound = hs.epsilon(run, delta, rtol=rtol)
    except hs.AccuracyError:
        assert rtol < 1e-10
    else:
        assert bound.width <= rtol * bound.estimate * (1 + 1e-9)
        assert bound.lower <= best.upper and best.lower <= bound.upper


# the machine

HETEROGENEOUS = hs.compose(*((sgm(0.8 + 0.01 * i, 0.002 + 0.0001 * i), 1 + i) for i in range(100)))


def test_threads_give_the_same_bits():
    for query, at in [(hs.delta, [0.5, 1.0, 3.0]), (hs.epsilon, [1e-5, 1e-7]), (hs.log_delta, 5.0)]:
        one, two, three = (query(HETEROGENEOUS, at, n_threads=n) for n in (1, 2, 3))
        assert bits(one) == bits(two) == bits(three)


def test_callers_threads_give_the_same_bits():
    jobs = [(sgm(0.7 + 0.1 * (i % 7), 0.01, 100 * (1 + i % 5)), 0.5 + 0.25 * (i % 4)) for i in range(64)]
    alone = [bits(hs.delta(run, eps)) for run, eps in jobs]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda job: bits(hs.delta(*job)), jobs)) == alone


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_fork_after_use(n_threads):
    before = bits(hs.delta(HETEROGENEOUS, 1.0, n_threads=n_threads))
    pid = os.fork()
    if pid == 0:
        code = 1
        signal.alarm(60)  # a pool of threads that did not survive the fork would be waited for
        try:
            code = 0 if bits(hs.delta(HETEROGENEOUS, 1.0, n_threads=n_threads)) == before else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert bits(hs.delta(HETEROGENEOUS, 1.0)) == before


def test_shapes_and_layouts():
    run = sgm(1.0, 0.01, 1000)
    grid = np.linspace(0.5, 3.0, 24).reshape(4, 6)
    frozen = grid.copy()
    frozen.flags.writeable = False
    want = hs.delta(run, grid)
    assert want.lower.shape == (4, 6)
    for same in (frozen, np.asfortranarray(grid), np.repeat(grid, 2, axis=1)[:, ::2], grid.tolist()):
        assert bits(hs.delta(run, same)) == bits(want)
    assert hs.delta(run, np.zeros(0)).upper.shape == (0,)
    assert isinstance(hs.delta(run, 1).upper, float)
    assert bits(hs.delta(run, np.float32(1.0))) == bits(hs.delta(run, 1.0))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("sigma", "q", "k", "delta"),
    [
        (1e4, 0.1, 10**3, 1e-5),
        (1e4, 1e-6, 10**9, 1e-30),
        (1e3, 0.01, 10**6, 1e-6),
        (30.0, 1e-3, 10**3, 1e-30),
        (100.0, 0.01, 10**4, 1e-6),
    ],
)
def test_much_noise(sigma, q, k, delta, direction):
    """Losses so small that the run is a Gaussian mechanism of shift q sqrt(k)/sigma, up to a skewness of about 1/sigma."""
    b = hs.epsilon(hs.poisson_subsampled(hs.gaussian(sigma), q) * k, delta, direction=direction)
    limit = hs.epsilon(hs.gaussian(sigma / (q * math.sqrt(k))), delta)
    assert b.certified and b.upper - b.lower <= 1e-8 * b.lower
    assert b.estimate == pytest.approx(limit.estimate, rel=0.5 / sigma if sigma > 30 else 0.01)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("sigma", "q", "delta"), [(1605399.24804754, 1.2695589892204814e-10, 2.735039874691868e-213)])
def test_one_step_whose_root_lies_far_below_its_wall(sigma, q, delta, direction):
    """Near the largest loss of ADD delta is too small for any number; the root is still found, to eight digits."""
    b = hs.epsilon(sgm(sigma, q), delta, direction=direction)
    with mpmath.workdps(400):
        m, rate = 1 / mpmath.mpf(sigma), mpmath.mpf(q)

        def curve(eps):
            eps = mpmath.mpf(eps)
            weight = 1 - (1 - rate) * mpmath.exp(eps) if direction == "add" else rate
            x = mpmath.log(rate) + eps - mpmath.log(weight) if direction == "add" else mpmath.log1p(mpmath.expm1(eps) / rate)
            return weight * (mpmath.ncdf(m / 2 - x / m) - mpmath.exp(x) * mpmath.ncdf(-m / 2 - x / m))

        assert curve(b.lower) >= delta >= curve(b.upper)
    assert b.upper <= b.lower * (1 + 1e-8)
