"""Runs of many sampling rates as a rule over shifts and rates: the bounds against mpmath, the rule against the
sums over its steps, answers against those without it."""

import math
from unittest import mock

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core, compression, rates
from hockeystick.what.pair import GaussianSteps, in_order


def drawn(seed: int, n: int, sigma=(1.0, 4.0), rate=(0.01, 0.02)):
    rng = np.random.default_rng(seed)
    low, high = np.log([sigma, rate]).T
    return tuple(np.exp(rng.uniform(low, high, (n, 2))).T)


def steps_of(sigma, q) -> GaussianSteps:
    return in_order(1 / sigma, q, np.ones(q.size))


def exactly(a, m: float, q):
    """M(a; m) - 1 at a complex rate, by a trapezoid rule over v whose error is far below 20 digits."""
    mesh, reach = min(m / 4, 0.3), 11 * m + abs(mpmath.re(a)) * m * m + m * m
    total, count = mpmath.mpf(0), int(reach / mesh)
    for j in range(-count, count + 1):
        v = j * mesh
        big_u = q * mpmath.expm1(v)
        total += (mpmath.power(1 + big_u, a) - 1 - a * big_u) * mpmath.exp(-((v + m * m / 2) ** 2) / (2 * m * m))
    return mesh * total / (m * mpmath.sqrt(2 * mpmath.pi))


@pytest.mark.parametrize("seed", range(16))
def test_complex_rates(seed):  # [theory: compression.rates]
    """|M(a; m) - 1| on an ellipse of rates is at most what fit.c makes of a row."""
    rng = np.random.default_rng(seed)
    low = 10 ** rng.uniform(-4, -0.8)
    high, m, tilt = low * rng.uniform(1.05, 2), rng.uniform(0.1, 1.5), rng.uniform(0.2, 5)
    found = rates._rate_ellipses(low, high)
    rho, most, least, turn = found[int(rng.integers(len(found)))]
    a = [complex(1 + tilt, 3), complex(-tilt, -2), 1 + tilt, rng.uniform(0.1, 0.9)][seed % 4]
    real, y = complex(a).real, abs(complex(a).imag)
    kappa = 1 if 0 < real < 1 else abs(a * (a - 1) / (real * (real - 1)))
    with mpmath.workdps(25):
        bound = abs(exactly(mpmath.mpf(real), m, most))
        if real >= 2:
            bound += real * (real - 1) / 2 * most**2 * math.expm1(m * m)
        else:
            bound += (most / least) ** 2 * abs(exactly(mpmath.mpf(real), m, least))
        bound *= kappa * math.exp(turn * y)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        seen = []
        for angle, part in ((0.0, 1.0), (0.9, 1.0), (math.pi / 2, 1.0), (2.2, 1.0), (math.pi, 1.0), (1.5, 0.5)):
            x, w = math.cos(angle) * (rho + 1 / rho) / 2, math.sin(angle) * (rho - 1 / rho) / 2
            seen.append(abs(exactly(mpmath.mpmathify(a), m, mpmath.mpc(middle + part * half * x, part * half * w))))
    assert max(seen) <= bound * (1 + 1e-9)
    assert bound <= 60 * math.exp(2 * turn * y) * max(seen)


@pytest.mark.parametrize("seed", range(12))
def test_the_decay_at_a_lower_rate(seed):  # [theory: compression.rates-tail]
    rng = np.random.default_rng(seed)
    rate, m = 10 ** rng.uniform(-3, -0.5), rng.uniform(0.1, 1.5)
    ratio, tilt = 1 + 10 ** rng.uniform(-2, -0.5), rng.uniform(0.2, 4)
    real = 1 + tilt if seed % 2 else -tilt
    y = 10 ** rng.uniform(-1, 3)
    g = np.linspace(-12, 12 + abs(real) * m, 200_001)

    def decay(q):
        v = m * g - 0.5 * m * m
        loss = np.log1p(q * np.expm1(v))
        weight = np.exp(real * loss - 0.5 * g * g) * (g[1] - g[0]) / math.sqrt(2 * math.pi)
        size, turned = weight.sum(), (weight * np.exp(1j * y * loss)).sum()
        mean = (weight * loss).sum() / size
        small = (weight * (np.exp(1j * y * (loss - mean)) - 1)).sum() / size  # phi turned back, less 1
        return size, -(2 * small.real + abs(small) ** 2) if abs(small) < 0.5 else 1 - abs(turned / size) ** 2

    (moved, of_steps), (_, of_rule) = decay(rate * ratio), decay(rate)
    factor = math.exp(-2 * rates.loss_of_rates_upper(ratio, m)) / moved**2
    assert of_steps >= factor * of_rule * (1 - 1e-6)
    assert of_rule <= 1.5 * of_steps  # so that the factor is what the bound loses


def test_points_of_a_span():  # [theory: compression.grid]
    """Polynomials are carried; sum |lambda_b| is what is claimed of it, and not much less."""
    for count in (1, 2, 22, 128):
        q = np.array([0.01, 0.017])
        span = rates._span_of_rates(q, count)
        x = np.linspace(q[0], q[1], 801)
        values = compression.chebyshev(span.place(x), count) @ span.weigh.T
        size = float(np.abs(values).sum(axis=1).max())
        assert size <= span.lebesgue_upper
        assert span.lebesgue_upper <= 1.2 * size
        off = np.abs(values @ span.chebyshev - compression.chebyshev(span.place(x), count)).max(axis=0)
        assert (off <= span.moved_upper()).all()
        assert span.moved_upper().max() < 1e-13


def test_moments():
    """rate_moments against sums in 40 digits."""
    rng = np.random.default_rng(5)
    x, y = np.clip(rng.uniform(-1.01, 1.01, (2, 60)), -1, 1).astype(np.longdouble)
    k = rng.integers(1, 10**12, 60).astype(float)
    found = _core.rate_moments(x, y, k, 30, 11)
    with mpmath.workdps(40):

        def angles(values):
            return [mpmath.acos(mpmath.mpf(int(v * 2**60)) / 2**60) for v in values]

        for i, j in ((0, 0), (1, 0), (0, 1), (7, 3), (29, 10)):
            exact = sum(
                mpmath.mpf(n) * mpmath.cos(i * a) * mpmath.cos(j * b)
                for n, a, b in zip(k.tolist(), angles(x), angles(y), strict=True)
            )
            off = abs(exact - mpmath.mpf(float(found[0, i, j])) - mpmath.mpf(float(found[1, i, j])))
            assert off <= float(k.sum()) * (compression.UNIT * 4 * (1 + i * i + j * j) + 4e-18)


def logs(a, m, q):
    """log M(a; m), [steps], in double precision."""
    g = np.linspace(-9, 9 + abs(complex(a).real) * m.max(), 160)
    v = m[:, None] * g - 0.5 * (m * m)[:, None]
    u = q[:, None] * np.expm1(v)
    loss = np.log1p(u)
    weight = np.exp(-0.5 * g * g) * (g[1] - g[0]) / math.sqrt(2 * math.pi)
    return np.log1p((np.expm1(a * loss) - a * u) @ weight)


@pytest.mark.parametrize("wide", [False, True])
def test_a_rule_is_the_sum_over_its_steps(wide):  # [theory: compression.grid, compression.rates-orders]
    steps = steps_of(*drawn(7, 8000, *(((2.0, 20.0), (0.01, 0.04)) if wide else ((2.0, 6.0), (0.02, 0.03)))))
    made = rates.rule(steps)
    assert made.steps.shift.size < 0.5 * steps.shift.size
    here = slice(made.steps.shift.size - made.light, None)
    rule = [column[here] for column in made.steps]
    assert (rule[2] < 0).any()
    sd = math.sqrt(float(steps.k @ (steps.q**2 * np.expm1(steps.shift**2))))
    for a in (1 + 4 / sd + 5j / sd, -2 / sd - 3j / sd):
        whole, mine = summed(steps[2], logs(a, *steps[:2])), summed(rule[2], logs(a, *rule[:2]))
        assert abs(whole - mine) < 1e-10 * max(1, abs(whole))


def summed(k, values) -> complex:
    return complex(*(math.fsum((k * part).tolist()) for part in (values.real, values.imag)))


def without(ask, run, at):
    """The answer with no rule over rates."""
    with mock.patch("hockeystick.rates.rule", return_value=None):
        return ask(run, at)


@pytest.mark.parametrize(
    ("sigma", "rate", "n"),
    [((1.0, 4.0), (0.02, 0.022), 12_000), ((2.0, 20.0), (0.05, 0.06), 5000), ((3.0, 3.1), (0.01, 0.4), 7000)],
)
def test_answers_are_those_of_the_steps(sigma, rate, n):
    drawn_steps = drawn(3, n, sigma, rate)
    assert rates.rule(steps_of(*drawn_steps)) is not None
    run, other = hs.compose_arrays(*drawn_steps), hs.compose_arrays(*drawn_steps)
    found, exact = hs.epsilon(run, 1e-7), without(hs.epsilon, other, 1e-7)
    assert max(found.lower, exact.lower) <= min(found.upper, exact.upper)
    assert found.upper - found.lower <= 1e-10 * found.upper
    found, exact = (
        ask(r, float(found.upper)) for ask, r in ((hs.delta, run), (lambda *x: without(hs.delta, *x), other))
    )
    assert max(found.lower, exact.lower) <= min(found.upper, exact.upper)


def test_plain_steps_and_a_few_large_shifts_beside():
    sigma, q = drawn(11, 9000, (2.0, 4.0), (0.02, 0.03))
    sigma, q = np.append(sigma, [200.0] * 300 + [1.4]), np.append(q, [1.0] * 300 + [0.021])
    run, other = hs.compose_arrays(sigma, q), hs.compose_arrays(sigma, q)
    made = rates.rule(in_order(1 / sigma, q, np.ones(q.size)))
    assert made is not None
    assert made.steps.q[0] == 1
    found, exact = hs.epsilon(run, 1e-6), without(hs.epsilon, other, 1e-6)
    assert max(found.lower, exact.lower) <= min(found.upper, exact.upper)
    assert found.upper - found.lower <= 1e-10 * found.upper


def test_order_and_threads_change_no_bit():
    sigma, q = drawn(2, 5000, (3.0, 5.0), (0.02, 0.03))
    assert rates.rule(steps_of(sigma, q)) is not None
    order = np.random.default_rng(0).permutation(q.size)
    found = hs.epsilon(hs.compose_arrays(sigma, q), 1e-6)
    assert found == hs.epsilon(hs.compose_arrays(sigma[order], q[order]), 1e-6)
    assert found == hs.epsilon(hs.compose_arrays(sigma, q), 1e-6, n_threads=2)


def test_rare_jumps_have_none():
    assert rates.rule(steps_of(*drawn(1, 2000, (0.3, 20.0), (1e-4, 1e-3)))) is None
    assert rates.loss_of_rates_upper(1.01, 20.0) == math.inf


def test_tiny_rates_are_planned():
    """Frequencies of so small a variance are beyond what exp carries."""
    assert rates.rule(steps_of(*drawn(1, 500, (1.0, 3.0), (1e-9, 1e-8)))) is None


@pytest.mark.slow
def test_tiny_rates_have_an_answer():
    found = hs.epsilon(hs.compose_arrays(*drawn(1, 5000, (1.0, 3.0), (1e-9, 1e-8))), 1e-9)
    assert 0 <= found.lower <= found.upper < math.inf
