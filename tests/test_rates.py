"""Runs of many sampling rates as a rule over shifts and rates: the bounds against mpmath, the rule against the
sums over its steps, answers against those without it."""

import math
from fractions import Fraction
from unittest import mock

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core, compression, rates, step_moments
from hockeystick._core import Rows
from hockeystick.what.pair import in_order


def drawn(seed: int, n: int, sigma=(1.0, 4.0), rate=(0.01, 0.02)):
    rng = np.random.default_rng(seed)
    low, high = np.log([sigma, rate]).T
    return tuple(np.exp(rng.uniform(low, high, (n, 2))).T)


def steps_of(sigma, q) -> Rows:
    return in_order(1 / sigma, q, np.ones(q.size))


def rule_of(steps: Rows):
    """The rule over rates, as if these were too many to be kept apart."""
    moments = step_moments.StepMoments()
    plain = steps.q == 1
    moments._add_to_cells(steps.shift, steps.q, steps.k.astype(np.int64))
    assert bool(moments.sums) == plain.any()
    return rates.rule(moments, steps.q.size)


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
    low, high = 0.01, 0.017
    for span in (*(rates._span_of_rates(low, high, count) for count in (1, 2, 22, 128)), rates.SHIFTS, rates.RATES):
        own = span in (rates.SHIFTS, rates.RATES)
        x = np.linspace(-1, 1, 801) if own else np.linspace(low, high, 801)
        values = step_moments.chebyshev(span.place(x), span.count) @ span.weigh.T
        size = float(np.abs(values).sum(axis=1).max())
        assert size <= span.lebesgue_upper
        assert span.lebesgue_upper <= 1.2 * size
        off = np.abs(values @ span.chebyshev - step_moments.chebyshev(span.place(x), span.count)).max(axis=0)
        assert (off <= span.moved_upper()).all()
        assert span.moved_upper().max() < 1e-13


def whole_sums(m, q, k):
    """Sums of k T_i(x) T_j(y), [degrees of the shift, degrees of the rate], in rational arithmetic."""

    def degrees(value, parts, count):
        fraction = Fraction(value) / 2 ** (math.frexp(value)[1] - 1)  # in [1, 2)
        x = 2 * ((fraction - 1) * parts - int((fraction - 1) * parts)) - 1
        found = [Fraction(1), x]
        while len(found) < count:
            found.append(2 * x * found[-1] - found[-2])
        return found

    rows = [
        (n, degrees(a, 8, step_moments.DEGREES), degrees(b, 32, step_moments.RATE_DEGREES))
        for a, b, n in zip(m, q, k, strict=True)
    ]
    return [[sum(n * a[i] * b[j] for n, a, b in rows) for j in range(10)] for i in range(16)]


def test_moments_in_whole_numbers():  # [theory: compression.moments, compression.cells]
    """Of steps of one cell against rational arithmetic; taken away they leave nothing, and by rates they are the
    same."""
    rng = np.random.default_rng(5)
    m, q = 0.5 * (1 + rng.uniform(0, 1, 40) / 8), 2.0**-6 * (1 + (7 + rng.uniform(0, 1, 40)) / 32)
    m[:2], q[:2] = (0.5, 0.5 * (1 + 1 / 8) - 2.0**-54), (2.0**-6 * (1 + 7 / 32), 2.0**-6 * (1 + 8 / 32) - 2.0**-59)
    k = rng.integers(1, 10**12, 40)
    sums = np.zeros((step_moments.DEGREES, step_moments.RATE_DEGREES, 3), np.uint64)
    _core.rate_moments_add(m, q, k, 1, sums)
    found, exact = rates._read(sums), whole_sums(m.tolist(), q.tolist(), k.tolist())
    for i in range(step_moments.DEGREES):
        for j in range(step_moments.RATE_DEGREES):
            off = abs(Fraction(int(found[i, j] * 2.0**20)) / 2**20 - exact[i][j])
            most = step_moments.MOMENT_ERROR[i] + rates.RATE_ERROR if i or j else rates.RATE_ERROR
            assert off <= Fraction(most) * int(k.sum()) + Fraction(1, 2**19)
    other = np.zeros_like(sums)
    for a, b, n in zip(m.tolist(), q.tolist(), k.tolist(), strict=True):
        alone = step_moments.StepMoments()
        alone.add_step(a, b, n)
        (box,) = np.flatnonzero(alone.sums[b].any(axis=(1, 2))).tolist()
        assert step_moments._key(a, b) == step_moments._keys(np.array([a]), np.array([b]))[0]
        assert step_moments._key(a, b) % step_moments.BOXES == box
        cell = step_moments._key(a, b) // step_moments.BOXES
        low, high = step_moments.ends_of_cells(np.array([cell]))
        assert low[0] <= b < high[0] == step_moments.end_of_cell(cell)
        _core.rate_moments_of(b, alone.sums[b][box], other)
    assert np.array_equal(other, sums)
    _core.rate_moments_add(m, q, k, -1, sums)
    assert not sums.any()


@pytest.mark.parametrize("seed", range(8))
def test_points_of_a_cell(seed):  # [theory: compression.cells]
    """The sum of f over the points of a box and a cell is that over its steps to within the weights of a fit, for f of
    size 1 on the ellipses, which come near it for the worst."""
    rng = np.random.default_rng(seed)
    m, q = 0.5 * (1 + rng.uniform(2, 3, 30) / 8), 2.0**-6 * (1 + rng.uniform(20, 21, 30) / 32)
    moments = step_moments.StepMoments()
    moments._add_to_cells(m, q, np.full(30, 3))
    held = rates.Held.of(moments)
    of = rates.Measure.of(held)
    assert held.steps.sum() == 90 and of.m.size == 16 and of.q.size == 10
    rho = float(rng.uniform(1.5, 6))
    x, y = rates.SHIFTS.points, rates.RATES.points
    at, where = (m - of.m.mean()) / 0.03125, (q - of.q.mean()) / (2.0**-6 / 64)
    order, low = int(rng.integers(16, 20)), int(rng.integers(0, 10))
    for shift_order, rate_order in ((order, low), (low, order)):  # of which interpolation misses one
        values = np.cos(shift_order * np.arccos(x))[:, None] * np.cos(rate_order * np.arccos(y))
        mine = float((of.w * values).sum())
        its = 3 * float(
            np.cos(shift_order * np.arccos(np.clip(at, -1, 1))) @ np.cos(rate_order * np.arccos(np.clip(where, -1, 1)))
        )
        size = 0.5 * (rho**shift_order + rho**-shift_order)
        if shift_order == order:
            assert abs(mine - its) <= of.weights(slice(None), rho) * size
        else:
            size = 0.5 * (rho**rate_order + rho**-rate_order)
            moved, both = rates.RATES.moved_upper()[None], 1 + rates.RATES.lebesgue_upper
            assert abs(mine - its) <= compression._weight(90 * moved, 90 * both, 0.0, rho) * size
        assert abs(mine - its) > 1e-3 or rng.random() < 0.5


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
    steps = steps_of(*drawn(7, 8000, *(((2.0, 20.0), (0.03, 0.05)) if wide else ((2.0, 6.0), (0.02, 0.03)))))
    made = rule_of(steps)
    assert made.steps.shift.size < 0.5 * steps.shift.size
    here = slice(made.steps.shift.size - made.steps.light, None)
    rule = [column[here] for column in made.steps]
    assert (rule[2] < 0).any()
    sd = math.sqrt(float(steps.k @ (steps.q**2 * np.expm1(steps.shift**2))))
    for a in (1 + 4 / sd + 5j / sd, -2 / sd - 3j / sd):
        whole, mine = summed(steps.k, logs(a, steps.shift, steps.q)), summed(rule[2], logs(a, *rule[:2]))
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
    assert rule_of(steps_of(*drawn_steps)) is not None
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
    made = rule_of(in_order(1 / sigma, q, np.ones(q.size)))
    assert made is not None
    assert made.steps.q[0] == 1
    found, exact = hs.epsilon(run, 1e-6), without(hs.epsilon, other, 1e-6)
    assert max(found.lower, exact.lower) <= min(found.upper, exact.upper)
    assert found.upper - found.lower <= 1e-10 * found.upper


def test_rare_jumps_have_none():
    assert rule_of(steps_of(*drawn(1, 2000, (0.3, 20.0), (1e-4, 1e-3)))) is None
    assert rates.loss_of_rates_upper(1.01, 20.0) == math.inf


def test_tiny_rates_are_planned():
    """Frequencies of so small a variance are beyond what exp carries."""
    assert rule_of(steps_of(*drawn(1, 500, (1.0, 3.0), (1e-9, 1e-8)))) is None


@pytest.mark.slow
def test_tiny_rates_have_an_answer():
    found = hs.epsilon(hs.compose_arrays(*drawn(1, 5000, (1.0, 3.0), (1e-9, 1e-8))), 1e-9)
    assert 0 <= found.lower <= found.upper < math.inf


@pytest.mark.parametrize("ratio", [1.01, 1.5, 3.0])
@pytest.mark.parametrize("m", [0.05, 1.0, 8.0])
def test_the_loss_of_a_tail_at_lower_rates(m, ratio):  # [theory: compression.rates-tail]
    """The densities of U at two rates, shifts of all sizes up to m."""
    worst = 0.0
    for shift in (m, m / 2, m / 7):
        low = np.linspace(-60, 60, 40001) * shift
        high = np.log1p(np.expm1(low) / ratio)
        logs = [-0.5 * ((v + 0.5 * shift**2) / shift) ** 2 - v for v in (low, high)]
        worst = max(worst, float((logs[0] - logs[1]).max()) + math.log(ratio))
    assert worst <= rates.loss_of_rates_upper(ratio, m) <= 1.01 * worst


def test_few_steps_of_many_rates_have_no_rule():
    """Of 36 random runs of 300 to 3,000 steps none had one, and looking for it took up to 0.26 s."""
    q = 0.01 * 2.0 ** -np.linspace(0, 1, 1000)
    run = hs.compose_arrays(np.linspace(0.9, 1.1, 1000), q)
    assert hs.epsilon(run, 1e-6).route == "contour"
    assert ("add_remove", "rule", "rates") not in run._cache
