"""Rules in wide boxes: the certificates against mpmath, answers against the sums over all steps."""

import functools
import math

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core, compression, step_moments, wide
from test_compression import rule_meets, steps_of, transform


def ruled_of(steps) -> compression.Ruled:
    moments = step_moments.StepMoments()
    moments.add_many(steps.shift, steps.q, steps.k.astype(np.int64))
    ruled = wide.wide_rule(moments)
    assert ruled is not None and ruled.wide
    return ruled


@pytest.mark.parametrize("seed", range(10))
def test_ellipses_on_a_disc(seed):  # [theory: compression.disc]
    """|M(a; m) - 1| on the ellipse is at most F kappa |M(A; m') - 1|, and not far below it at its largest."""
    rng = np.random.default_rng(seed)
    q, low = 10 ** rng.uniform(-4, -0.3), 2.0 ** int(rng.integers(-3, 1))
    high = low * float(rng.choice([1.25, 2.0, 2.5]))
    found = wide.disc_ellipses(low, high)
    rho, most, factor, *_ = found[min(int(rng.integers(2, 7)), len(found) - 1)]
    tangent, centre, tilt = (high - low) / (high + low), low * high, float(rng.uniform(0.5, 5))
    at = [1 + tilt, -tilt, complex(1 + tilt, 3), complex(-tilt, -2)][seed % 4]
    real = complex(at).real
    with mpmath.workdps(30):
        kappa = abs(at * (at - 1) / (real * (real - 1)))
        bound = factor * kappa * abs(transform(real, mpmath.mpf(most), q))
        seen = []
        for turn, part in ((0.0, 1.0), (0.4, 1.0), (0.8, 1.0), (1.3, 1.0), (2.4, 1.0), (2.9, 0.6)):
            x = mpmath.mpc(math.cos(turn) * (rho + 1 / rho) / 2, math.sin(turn) * (rho - 1 / rho) / 2) * part * tangent
            m = mpmath.sqrt(centre * (1 + x) / (1 - x))
            seen.append(abs(transform(at, m, q)))
        assert max(seen) <= bound * (1 + mpmath.mpf(10) ** -12)
        assert bound <= 200 * max(seen)
    place = [(m * m - centre) / ((m * m + centre) * tangent) for m in (low, high)]
    assert place == pytest.approx([-1, 1], abs=1e-12)


def powers(r, most: int):
    """h_j(r) = E (e^v - 1)^j for j <= most."""
    e = [mpmath.exp(mpmath.mpf(i * (i - 1)) * r / 2) for i in range(most + 1)]
    return [mpmath.fsum((-1) ** (j - i) * mpmath.binomial(j, i) * e[i] for i in range(j + 1)) for j in range(most + 1)]


def test_powers_have_no_negative_coefficient():  # [theory: compression.powers]
    rng = np.random.default_rng(1)
    with mpmath.workdps(40):
        for j in range(2, 9):
            coefficients = mpmath.taylor(lambda s, j=j: powers(s, j)[j], 0, 12)
            assert all(c > -(mpmath.mpf(10) ** -15) for c in coefficients)
            assert all(abs(c) < mpmath.mpf(10) ** -15 for c in coefficients[: -(-j // 2)])
            s = 0.3 * complex(*rng.normal(size=2))
            assert abs(powers(mpmath.mpc(s), j)[j]) <= powers(mpmath.mpf(abs(s)), j)[j]


def rest(a, q, m_1, J):
    """The bound of the rest."""
    A, S = mpmath.re(a), mpmath.mpf(m_1) ** 2
    if A <= J:
        return (1 - q) ** (A - J) * mpmath.mpf(q) ** J * powers(S, J)[J]
    grown = 1 + max(1, 1 + transform(2 * (A - 4), mpmath.mpf(m_1), q))
    return mpmath.sqrt(mpmath.mpf(q) ** (2 * J) * powers(S, 2 * J)[2 * J] * grown)


@pytest.mark.parametrize("seed", range(16))
def test_the_rest_of_small_shifts(seed):  # [theory: compression.rest]
    rng = np.random.default_rng(seed)
    q, m_1, J = 10 ** rng.uniform(-3, -0.3), float(rng.uniform(0.05, 0.8)), int(rng.choice([4, 6, 8]))
    tilt = float(rng.uniform(0.3, 14))
    a = [1 + tilt, -tilt, complex(1 + tilt, 9), complex(-tilt, 5)][seed % 4]
    with mpmath.workdps(30):
        ratio = []
        for m in (m_1, 0.7 * m_1, 0.2 * m_1):
            s = mpmath.mpf(m) ** 2
            h = powers(s, J)
            known = mpmath.fsum(mpmath.binomial(a, j) * mpmath.mpf(q) ** j * h[j] for j in range(2, J))
            off = abs(transform(a, mpmath.mpf(m), q) - known)
            bound = (m / m_1) ** 2 * abs(mpmath.binomial(a, J)) * rest(a, q, m_1, J)
            assert off <= bound
            ratio.append(bound / off)
        assert min(ratio) < 1e4


def bound_of_orders(fits, a):
    """What the sums of log M are off by, by the rows of one group."""
    (_, q, m_1, _, _, count, *_), best, total = fits[0], mpmath.inf, mpmath.mpf(0)
    q = mpmath.mpf(q)
    box, rows = powers(mpmath.mpf(m_1) ** 2, 12), [powers(mpmath.mpf(row[3]), 12) for row in fits]
    c = [abs(mpmath.binomial(a, j)) * q**j for j in range(13)]
    logs = [[mpmath.mpf(0)] * 13 for _ in fits]
    for d in range(2, 13):
        if d > 2 and d % 2 == 0:
            D, left = sum(c[j] * box[j] for j in range(2, d)), abs(mpmath.binomial(a, d)) * rest(a, q, m_1, d)
            later = []
            for t in (2, 5, 12, 30):
                D_t = sum(c[j] * box[j] * t**j for j in range(2, d))
                later.append(D_t / (1 - D_t) / mpmath.mpf(t) ** d if D_t < 1 else mpmath.inf)
            if D + left < 1:
                best = min(best, total + count * (min(later) + left / (1 - D - left)))
        for log, h in zip(logs, rows, strict=True):
            log[d] = c[d] * h[d] + sum(mpmath.mpf(d - j) / d * log[d - j] * c[j] * h[j] for j in range(2, d - 1))
        total += min(row[4] * log[d] for row, log in zip(fits, logs, strict=True))
    return best


@functools.cache
def log_transform(a, shifts, counts):
    """sum k log M(a) over steps of the rate 0.02."""
    with mpmath.workdps(40):
        rows = zip(map(mpmath.mpf, shifts), map(mpmath.mpf, counts), strict=True)
        return mpmath.fsum(k * mpmath.log1p(transform(a, m, 0.02)) for m, k in rows)


@pytest.mark.parametrize("points", [2, None])
def test_sums_over_small_shifts(points, monkeypatch):  # [theory: compression.orders]
    """sum k log M over steps and rule, at exponents on and off the real line: within the bound of both groups, which of
    a rule of two points is not far above."""
    rng = np.random.default_rng(3)
    steps = steps_of(rng, 90, 3, 40, 0.02, 20_000)
    monkeypatch.setattr(wide, "LIGHT", 1.0)
    if points:
        most = wide._count_of_orders
        monkeypatch.setattr(wide, "_count_of_orders", lambda *at: (points, most(*at)[1]))
    monkeypatch.setattr(wide, "SMALL", 1.0)
    ruled = ruled_of(steps)
    assert ruled.steps.light == ruled.steps.q.size < 12
    fits = ruled.steps.fits
    groups = [fits[fits[:, 0] == group].tolist() for group in np.unique(fits[:, 0])]
    with mpmath.workdps(40):
        for a in (3.5, -2.0, complex(3.5, 4), complex(-2, 3)):
            sums = [log_transform(a, tuple(of.shift), tuple(of.k)) for of in (steps, ruled.steps)]
            bound, off = sum(bound_of_orders(rows, a) for rows in groups), abs(sums[0] - sums[1])
            assert off <= bound
            assert bound < 1e4 * off if points else bound < 1e-8 * abs(sums[0])


RUNS = [
    (3000, 0.9, 9, 0.02, 40, 1e-5),
    (4000, 1, 1e4, 0.01, 100, 1e-6),
    (3000, 2, 50, 0.1, 300, 1e-9),
    (3000, 1.5, 6, 0.3, 100, 1e-3),
]


@pytest.mark.parametrize("case", RUNS, ids=str)
@pytest.mark.parametrize("add", [0, 1])
def test_wide_rules_and_all_steps_meet(case, add):  # [theory: compression.disc, compression.orders, compression.light]
    n, low, high, q, most, delta = case
    steps = steps_of(np.random.default_rng(n + most), n, low, high, q, most)
    ruled = ruled_of(steps)
    assert (ruled.steps.light or q > 0.2) and ruled.steps.q.size < 75
    rule_meets(ruled, steps, add, delta)


def test_scales_of_any_width_have_few_rows():
    """What a query costs: the rows of its rule."""
    rng = np.random.default_rng(1)
    for high, rates, most in (
        (100, [0.01], 40),
        (1e4, [0.1], 40),
        (10, [0.005, 0.01, 0.02], 90),
        (10, np.linspace(0.01, 0.02, 60), 1100),
    ):
        run = hs.compose_arrays(np.exp(rng.uniform(0, math.log(high), 100_000)), rng.choice(rates, 100_000))
        found = hs.epsilon(run, 1e-5)
        assert found.route == "compressed" and found.upper - found.lower < 1e-11 * found.estimate
        assert run._cache["add_remove", "rule", "wide"].steps.q.size <= most
        assert ("add_remove", "rule", True) not in run._cache


def test_where_wide_rules_decline():
    """Rare jumps that rule the line; steps without sampling alone."""
    rng = np.random.default_rng(2)
    for sigma, q in (
        (rng.uniform(0.5, 0.6, 3000), 1e-4),
        (rng.uniform(50, 60, 3000), 1.0),
    ):
        run = hs.compose_arrays(sigma, q)
        assert wide.wide_rule(run.step_moments("add_remove")) is None
        assert hs.epsilon(run, 1e-5).upper < math.inf


@pytest.mark.parametrize("add", [0, 1])
def test_moments_near_a_tilt(add, monkeypatch):  # [theory: compression.small-near]
    """K, its derivatives and the third moments of all steps lie within the errors of a rough rule in wide boxes."""
    run = hs.compose_arrays(np.exp(np.linspace(0, 4, 5000)), 0.02, 20)
    monkeypatch.setattr(wide, "TARGET", 6.0)
    ruled, work = wide.wide_rule(run.step_moments("add_remove")), np.empty(_core.saddle_work())
    assert ruled is not None and ruled.steps.light
    for t in (0.7, 2.0):
        _, exact = _core.saddle_cumulants(run.gaussian_steps("add_remove"), add, t, work)
        status, found = _core.saddle_cumulants(ruled.steps, add, t, work)
        _, bare = _core.saddle_cumulants(_core.Rows(*ruled.steps), add, t, work)
        assert status == _core.OK
        for value, error in ((0, 1), (2, 10), (3, 11)):
            assert 1e3 * bare[error] < abs(found[value] - exact[value]) <= found[error] < 0.01
        assert exact[8] <= found[9] < 2.5 * exact[8]


def test_the_smaller_direction_needs_no_line(monkeypatch):
    """ADD of a run of many steps is proved the smaller by an upper end at its saddle."""
    asked = []
    for name in ("contour_ask", "kept_make"):
        line = getattr(_core, name)
        monkeypatch.setattr(_core, name, lambda *a, line=line, **rest: asked.append(a[1]) or line(*a, **rest))
    rng = np.random.default_rng(1)
    for high, rates in ((100, [0.01]), (1e4, [0.01]), (10, [0.005, 0.01, 0.02])):
        hs.epsilon(hs.compose_arrays(np.exp(rng.uniform(0, math.log(high), 100_000)), rng.choice(rates, 100_000)), 1e-5)
    assert asked == [0, 0, 0]


def test_misfits_of_moments_hold_what_places_are_off_by():  # [theory: compression.moments]
    rng, error = np.random.default_rng(3), 1e-8
    places, weights = rng.uniform(-1, 1, (2, 40)), rng.uniform(0.5, 2, (2, 40))
    claimed = wide.misfit_upper(lambda m: m, error, *zip(places, weights, strict=True), 12)[0]
    for moved in (0.0, error, -error):
        moments = [
            w @ np.cos(np.outer(np.arccos(x * (1 - abs(moved)) + moved), range(12)))
            for x, w in zip(places, weights, strict=True)
        ]
        misfit = np.abs(moments[0] - moments[1])
        assert (misfit <= claimed).all() and (claimed <= misfit + 200 * error * np.arange(12) ** 2 + 1e-9).all()
