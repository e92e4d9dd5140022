"""Private selection: the charged curve against selections that are carried out, and against published Renyi
divergences."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

import hockeystick as hs
from hockeystick.inner.selection import ORDERS
from hockeystick.what.selection import number


def generating(mean, shape, trials):
    """phi(z) = E z^K of the law that the arguments of `select` name."""
    if trials:
        return lambda z: (1 - mean / trials * (1 - z)) ** trials
    if shape == math.inf:
        return lambda z: np.exp(mean * (z - 1))
    law = number(hs.select(hs.gaussian(1.0), mean=mean, shape=shape))
    s = law.s / (1 + law.s)  # 1 - gamma
    if shape == 0:
        return lambda z: np.log1p(-s * z) / np.log1p(-s)
    return lambda z: ((1 - s * z) ** -shape - 1) / ((1 - s) ** -shape - 1)


def selected(law, score, phi):
    """The law of the best outcome: ties of the score are broken among equals by who they are, not by their outcome."""
    out, below = np.zeros(law.size), 0.0
    for level in np.unique(score):
        here = score == level
        mass = law[here].sum()
        out[here] = (phi(below + mass) - phi(below)) * law[here] / mass
        below += mass
    return out


LAWS = ((10.0, 1.0, None), (3.0, 0.0, None), (40.0, 0.5, None), (6.0, -0.4, None), (2.5, math.inf, None), (4.0, 1.0, 9))


@pytest.mark.parametrize("mean, shape, trials", LAWS)
def test_law_of_the_number(mean, shape, trials):
    """psi and Phi are those of the generating function, whose derivative at 1 is the mean [theory: select.numbers]."""
    phi = generating(mean, shape, trials)
    law = number(hs.select(hs.gaussian(1.0), mean=mean, shape=shape, trials=trials))
    u = np.array([1e-9, 0.01, 0.3, 1.0], dtype=np.longdouble)
    assert np.allclose(law.at_least_one(u)[0][1:].astype(float), 1 - phi(1 - u[1:].astype(float)), rtol=1e-11)
    assert np.isclose(float(law.at_least_one(u)[0][0]), mean * 1e-9, rtol=1e-6)
    step = 1e-6
    slope = (phi(0.7 + step) - phi(0.7 - step)) / (2 * step)
    assert np.isclose(float(law.log_ratio(0.3, 0.0)[0]), math.log(slope / mean), rtol=1e-8)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_selections_carried_out_lie_below(data):
    """Random laws of a few outcomes, random scores with ties: the exact curve of what is selected, both ways, at any
    eps [theory: select.law, select.curve, select.dots, select.pair]."""
    n = data.draw(st.integers(2, 6))
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    p, q = random.dirichlet(np.ones(n)), random.dirichlet(np.ones(n))
    if data.draw(st.booleans()):  # nearly alike, as laws of neighbours are
        q = 0.8 * p + 0.2 * q
    score = random.integers(0, n, n) if data.draw(st.booleans()) else np.argsort(np.argsort(p / q))
    mean, shape, trials = data.draw(st.sampled_from(LAWS))
    phi, step = generating(mean, shape, trials), hs.select(hs.from_pmf(p, q), mean=mean, shape=shape, trials=trials)
    laws = selected(p, score, phi), selected(q, score, phi)
    for direction, (num, den) in (("remove", laws), ("add", laws[::-1])):
        for eps in (-1.0, 0.0, 0.3, 1.5, 4.0):
            exact = np.maximum(num - math.exp(eps) * den, 0).sum() + phi(0.0) * max(-math.expm1(eps), 0)
            assert exact <= hs.delta(step, eps, direction=direction).upper * (1 + 1e-9) + 1e-15


def test_orders_are_not_mixed_up():
    """Laws whose two orders differ much, every score: the tests that give r are those of the other order."""
    p, q, phi = np.array([0.2117, 0.1632, 0.6251]), np.array([0.2740, 0.0054, 0.7206]), generating(50.0, 1.0, None)
    step, near = hs.select(hs.from_pmf(p, q), mean=50), []
    for score in itertools.permutations(range(3)):
        laws = selected(p, np.array(score), phi), selected(q, np.array(score), phi)
        for direction, (num, den) in (("remove", laws), ("add", laws[::-1])):
            for eps in (0.0, 0.5, 1.5):
                exact = np.maximum(num - math.exp(eps) * den, 0).sum()
                near.append(exact / hs.delta(step, eps, direction=direction).upper)
    assert 0.7 < max(near) <= 1 + 1e-9


@pytest.mark.parametrize(
    "mean, shape, trials, eps", [(50.0, 1.0, None, 6.5), (50.0, 0.0, None, 6.0), (20.0, math.inf, None, 5.0)]
)
def test_what_is_selected_may_cost_nearly_the_bound(mean, shape, trials, eps):  # [theory: select.curve]
    """A rare outcome of large loss behind one that den favours: a bound a thousandth smaller would be wrong."""
    p, q = np.array([1e-10, 1e-6, 0.0]), np.array([0.05, 1e-8, 0.0])
    p[2], q[2] = 1 - p.sum(), 1 - q.sum()
    step, phi = hs.select(hs.from_pmf(p, q), mean=mean, shape=shape, trials=trials), generating(mean, shape, trials)
    num, den = (selected(law, np.array([2, 1, 0]), phi) for law in (p, q))
    exact = np.maximum(num - math.exp(eps) * den, 0).sum() + phi(0.0) * max(-math.expm1(eps), 0)
    assert 1 - 1e-7 < hs.delta(step, eps, direction="remove").upper / exact < 1.001


@pytest.mark.parametrize(
    "mu, mean, shape, eps", [(0.5, 10, 1.0, 3.1463), (0.2, 10, 1.0, 1.1941), (0.5, 100, 1.0, 4.1935)]
)
def test_known_values(mu, mean, shape, eps):
    """Gaussian noise, a geometric number: at most E[K] delta(eps - log 1/r), whose values are known; at least the
    selection of the largest output."""
    b = hs.epsilon(hs.select(hs.gaussian(1 / mu), mean=mean, shape=shape), 1e-5)
    assert b.upper < eps + 5e-5
    phi = generating(mean, shape, None)
    step = 1e-7

    def excess(x, at):
        f = [
            (phi(min(special.ndtr(y) + step, 1)) - phi(max(special.ndtr(y) - step, 0))) / (2 * step)
            for y in (x - mu, x)
        ]
        p, q = (math.exp(-y * y / 2) / math.sqrt(2 * math.pi) for y in (x - mu, x))
        return max(f[0] * p - math.exp(at) * f[1] * q, 0.0)

    truth, _ = integrate.quad(excess, 1.0, 12.0, args=(b.upper,), limit=200)
    assert truth < 1e-5
    assert hs.delta(hs.gaussian(1 / mu), b.upper).upper < 1e-5  # a constant score


def renyi(mu, mean, shape, delta):
    """eps by the published Renyi divergences of Gaussian noise, every pair of the orders [PS22, Thms 2, 6]
    [theory: select.renyi]."""
    o = ORDERS
    one = o * mu * mu / 2
    if shape == math.inf:
        rest = mean * hs.moments_delta_upper(hs.gaussian(1 / mu), np.log1p(1 / (o - 1)))
    else:
        s = number(hs.select(hs.gaussian(1.0), mean=mean, shape=shape)).s
        rest = (1 + shape) * np.min((1 - 1 / o) * one + math.log1p(s) / o)
    all_of_it = one + rest + math.log(mean) / (o - 1)
    return float(np.min(all_of_it + (np.log1p(-1 / o) * (o - 1) - np.log(o) - math.log(delta)) / (o - 1)))


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("mean, shape", [(10, 1.0), (1000, 1.0), (50, 0.0), (10, 3.0), (100, math.inf), (3, math.inf)])
def test_never_above_the_renyi_bound(mu, mean, shape):
    for delta in (1e-3, 1e-9):
        assert hs.epsilon(hs.select(hs.gaussian(1 / mu), mean=mean, shape=shape), delta).upper <= renyi(
            mu, mean, shape, delta
        )


def test_pure_steps():
    """(2 + shape) eps [PS22, Cor. 3], and less at a delta."""
    for shape in (0.0, 1.0, 2.5):
        step = hs.select(hs.pure_dp(0.4), mean=30, shape=shape)
        assert hs.epsilon(step, 1e-12).upper <= (2 + shape) * 0.4 * (1 + 1e-9)
        assert hs.epsilon(step, 0.05).upper < 0.9 * (2 + shape) * 0.4


def test_laws():
    """More trials cost more, more noise less; one trial is the run; nothing costs nothing; what composes, composes."""
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 300
    eps = [hs.epsilon(hs.select(run, mean=m), 1e-6).upper for m in (1, 2, 10, 100)]
    assert eps == sorted(eps) and eps[0] < hs.epsilon(run, 1e-6).upper * (1 + 1e-3)
    b = hs.delta(hs.select(hs.compose(), mean=5), 0.1)
    assert b.upper == 0.0
    tuned = hs.select(run, mean=10)
    both = hs.epsilon(tuned + hs.gaussian(3.0) * 10, 1e-6)
    assert max(hs.epsilon(tuned, 1e-6).lower, hs.epsilon(hs.gaussian(3.0) * 10, 1e-6).lower) < both.lower
    one, two = (hs.epsilon(tuned, 1e-6, direction=d) for d in ("remove", "add"))
    assert max(one.upper, two.upper) == hs.epsilon(tuned, 1e-6).upper
    assert hs.epsilon(hs.select(run, mean=10), 1e-6, adjacency="replace_one").lower > hs.epsilon(tuned, 1e-6).upper


def test_other_runs():
    """Steps known between two curves, steps with an infinite loss, steps told by a curve."""
    top = hs.epsilon(hs.select(hs.top_k(0.1, 5), mean=5), 1e-4)
    assert hs.epsilon(hs.top_k(0.1, 5), 1e-4).upper < top.upper < 1.5
    leak = hs.select(hs.approx_dp(0.2, 1e-7), mean=5)
    assert 0.2 < hs.epsilon(leak, 1e-6).upper <= 0.6 * (1 + 1e-9) and hs.delta(leak, 50.0).upper >= 5e-7 * (1 - 1e-6)


@pytest.mark.filterwarnings("error")
def test_next_to_no_loss():
    """Losses that e^loss cannot tell from each other, in long double either."""
    bound = hs.delta(hs.select(hs.pure_dp(1e-300), mean=3.0, shape=1.0), 0.0)
    assert 0 < bound.upper < 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {"mean": 0.5},
        {"mean": 10, "trials": 10},
        {"mean": 0.0, "shape": math.inf},
        {"mean": 1e10},
    ],
)
def test_bad_input(options):
    with pytest.raises(hs.DomainError):
        hs.select(hs.gaussian(1.0), **options)


def test_refused_runs():
    with pytest.raises(hs.DomainError):
        hs.select("gaussian", mean=3)
    with pytest.raises(hs.DomainError, match="dataset_size"):
        hs.select(hs.cyclic_poisson(hs.gaussian(1.0), 0.1, iterations=10, bands=2, dataset_size=100), mean=3)
    sized = hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.1, dataset_size=100, max_batch=20)
    with pytest.raises(hs.DomainError, match="dataset size"):
        hs.poisson_subsampled(hs.select(sized, mean=3), 0.1)
