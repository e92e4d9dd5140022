"""Many distinct steps as a rule of few: the certificate against mpmath, the moments bit for bit, answers against the
sums over all steps."""

import math
from fractions import Fraction
from unittest import mock

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core, compression, step_moments, wide
from hockeystick._core import Rows
from hockeystick.routes import contour, saddlepoint
from hockeystick.routes.question import Question
from hockeystick.routes.table import ROUTES
from hockeystick.what.pair import gaussian_steps

U = 2.0**-53


def steps_of(rng, n, low, high, q, most=1) -> Rows:
    sigma = np.exp(rng.uniform(np.log(low), np.log(high), n))
    return Rows(1 / sigma, np.full(n, float(q)), rng.integers(1, most + 1, n).astype(float))


def run_of(steps: Rows) -> hs.Run:
    rows = zip(*(part.tolist() for part in steps), strict=True)
    return hs.compose(*((hs.poisson_subsampled(hs.gaussian(1 / m), q), int(k)) for m, q, k in rows))


def ruled_of(steps: Rows) -> compression.Ruled:
    return compression.rule_of(compression.moments_of_steps(steps))


def line(have_eps: int, ruled: compression.Ruled, add: int, at: float, n_threads: int = 1):
    work = np.empty(_core.contour_work(ruled.steps.shift.size, n_threads))
    return _core.contour_ask(ruled.steps, add, have_eps, at, 1e-9, contour.margin(1e-9), n_threads, work)


def transform(a, m, q):
    """M(a; m) - 1 for complex m, by a trapezoid rule over v whose error is far below 25 digits."""
    real = abs(m) / mpmath.sqrt(mpmath.cos(2 * mpmath.arg(m)))
    reach, mesh = 11 * real + abs(mpmath.re(a)) * real**2 + real**2, min(real / 4, 0.3)

    def term(j):
        v = j * mesh
        big_u = q * mpmath.expm1(v)
        density = mpmath.exp(-((v + m * m / 2) ** 2) / (2 * m * m)) / (m * mpmath.sqrt(2 * mpmath.pi))
        return (mpmath.power(1 + big_u, a) - 1 - a * big_u) * density

    count = int(reach / mesh)
    return mesh * mpmath.fsum(term(j) for j in range(-count, count + 1))


@pytest.mark.parametrize("seed", range(12))
def test_complex_shifts(seed):  # [theory: compression.strip, compression.arcs, compression.between]
    """|M(a; m) - 1| on and inside an ellipse is at most D, and at its largest is not far below D where a is real."""
    rng = np.random.default_rng(seed)
    q, middle = 10 ** rng.uniform(-4, -0.3), rng.uniform(0.2, 1.5)
    half = middle * float(rng.choice([1 / 17, 1 / 31, 1 / 3]))
    rho = max(1.3, float(rng.uniform(0.3, 0.85)) * compression._widest(middle, half))
    _, most, factor, *_ = compression.ellipse(np.array([middle]), np.array([half]), rho)
    tilt = float(rng.uniform(0.5, 6))
    at = [1 + tilt, -tilt, complex(1 + tilt, 3), complex(-tilt, -2), float(rng.uniform(0.1, 0.9))][seed % 5]
    real = complex(at).real
    with mpmath.workdps(30):
        kappa = abs(at * (at - 1) / (real * (real - 1)))
        bound = factor * kappa * abs(transform(real, mpmath.mpf(most), q))
        seen = []
        for turn, part in ((0.0, 1.0), (math.acos(-half * (rho + 1 / rho) / 2 / middle), 1.0), (1.2, 1.0), (2.6, 0.6)):
            x, y = math.cos(turn) * (rho + 1 / rho) / 2, math.sin(turn) * (rho - 1 / rho) / 2
            seen.append(abs(transform(at, mpmath.mpc(middle + part * half * x, part * half * y), q)))
        assert max(seen) <= bound * (1 + mpmath.mpf(10) ** -12)
        assert bound <= 60 * max(seen)
        if 0 < real < 1:
            taylor = real * (1 - real) / 2 * (1 - q) ** (real - 2) * q * q * mpmath.expm1(mpmath.mpf(most) ** 2)
            assert bound / factor <= taylor <= 4 * bound


def test_an_ellipse_beyond_the_sector_is_none():  # [theory: compression.arcs]
    beyond = compression.ellipse(np.ones(1), np.full(1, 1 / 3), 4.3)
    assert beyond[1:] == (math.inf,) * 5 and beyond.of_pairs(0.1)[1:] == (math.inf, math.inf)
    assert compression.ellipse(np.ones(1), np.full(1, 1 / 3), 3.5).most < 5


def test_moments_are_whole_numbers():  # [theory: compression.moments]
    """Order, calls, joining and taking away change no bit; a step's T_j is right to the claim."""
    rng = np.random.default_rng(5)
    m = np.concatenate([np.exp(rng.uniform(-20, 6, 400)), np.ldexp(1.0, np.arange(-29, 10)), [1 - 2.0**-53]])
    k = rng.integers(1, 10**12, m.size)
    whole = step_moments.StepMoments()
    whole.add(m, 0.01, k)
    order = rng.permutation(m.size)
    other, rest = step_moments.StepMoments(), step_moments.StepMoments()
    other.add(m[order[:77]], 0.01, k[order[:77]])
    rest.add(m[order[77:]], 0.01, k[order[77:]])
    other.join(rest)
    assert np.array_equal(whole.sums[0.01], other.sums[0.01])
    other.add(m, 0.01, k, -1)
    assert not other.sums[0.01].any()
    whole.join(rest, -1)
    whole.add(m[order[:77]], 0.01, k[order[:77]], -1)
    assert not whole.sums[0.01].any()
    for one in m[::9].tolist():
        alone = step_moments.StepMoments()
        alone.add(np.array([one]), 0.5, None)
        (box,) = np.flatnonzero(alone.sums[0.5][:, 0].any(axis=1))
        middle, half = (Fraction(float(x)) for x in step_moments.places(box))
        x = (Fraction(one) - middle) / half
        assert -1 <= x < 1
        a, b, found = Fraction(1), x, _core.step_moments_read(alone.sums[0.5])[box]
        for j in range(1, step_moments.DEGREES):
            assert abs(Fraction(found[j]) - b) <= Fraction(step_moments.MOMENT_ERROR[j])
            a, b = b, 2 * x * b - a


def test_shifts_out_of_range_change_nothing():
    made = step_moments.StepMoments()
    made.add(np.array([1.0]), 0.1, None)
    before = made.sums[0.1].copy()
    for m, k in (([1.0, 1e-10], None), ([1.0, 4e3], None), ([math.nan], None), ([1.0], [0]), ([1.0], [2**42])):
        with pytest.raises(hs.DomainError):
            made.add(np.array(m), 0.1, None if k is None else np.array(k, np.int64))
    assert np.array_equal(made.sums[0.1], before)


CONCENTRATED = {
    "one point": [0.3],
    "three": [-0.3, 0.2, 0.9],
    "narrow": 0.3 + 1e-3 * np.linspace(0, 1, 900),
    "narrower": 0.3 + 1e-8 * np.linspace(0, 1, 900),
    "two heaps": [*np.linspace(-0.9, -0.88, 300), *np.linspace(0.5, 0.6, 200)],
    "ends": [-1.0, 1 - 2.0**-40, 1 - 2.0**-48],
    "nine": np.linspace(-1, 0.99, 9),
    "all": np.linspace(-1, 1 - 2.0**-48, 5000),
    "symmetric": [-0.5, 0.0, 0.5],
}


def missed(x):
    """By how much the rule of shifts x, from -1 to 1 in their box, misses their moments, of one step; its weights."""
    made = step_moments.StepMoments()
    made.add(1.0625 + np.asarray(x, dtype=float) / 16, 0.1, None)
    read = _core.step_moments_read(made.sums[0.1])
    read = read[np.flatnonzero(read[:, 0])]
    points, weights = compression.gauss(read)
    assert np.all(np.abs(points) <= 1) and np.all(weights >= 0)
    off = np.abs(read - np.einsum("bp,bpj->bj", weights, step_moments.chebyshev(points)))
    return ((off * 4.0 ** -np.arange(16)).sum(axis=1) / read[:, 0]).max(), weights


@pytest.mark.parametrize("name", CONCENTRATED)
def test_gauss_rules(name):  # [theory: compression.rule]
    """Points in the box, weights not negative, and moments of the rule those of the steps to rounding."""
    off, weights = missed(CONCENTRATED[name])
    assert off <= 4e-15 and np.count_nonzero(weights) <= min(8, len(CONCENTRATED[name]))


def test_gauss_rules_of_shifts_that_lie_close_together():  # [theory: compression.rule]
    """The same near an end of the box, where T_j is steep and rounding is all that is left of the later points: moments
    to 1e-12 (of eight points whatever they are, to 5e-5)."""
    assert max(missed(0.9999 - step * np.arange(n))[0] for step in (1e-4, 1e-3, 3e-3) for n in range(1, 100)) <= 1e-12


def test_a_box_of_few_steps_that_lie_close_together():
    """The noise of the last steps belongs to a box of their own."""
    for n in (7785, 7795, 7805):
        bound = hs.epsilon(hs.compose_arrays(1 + np.arange(n) / 10000, 0.01), 1e-5)
        assert bound.route == "compressed" and bound.upper - bound.lower < 1e-11


@pytest.mark.parametrize("made", [ruled_of, compression.fine_rule])
def test_sums_over_the_steps(made, monkeypatch):  # [theory: compression.rule]
    """sum k log M(n) at whole n, where M is a finite sum, over steps and rule at 40 digits: within the bound, which is
    what rounding of the moments asks for."""
    rng = np.random.default_rng(8)
    steps = steps_of(rng, 400, 1, 1.9, 0.02, 50)
    monkeypatch.setattr(compression, "FINE_COST", 0)
    ruled = made(steps)
    assert ruled is not None and ruled.steps.q.size < 300

    def log_m(n, m):
        q, m = mpmath.mpf(0.02), mpmath.mpf(m)
        each = (
            mpmath.binomial(n, j) * (1 - q) ** (n - j) * q**j * mpmath.exp(j * (j - 1) * m * m / 2)
            for j in range(n + 1)
        )
        return mpmath.log(mpmath.fsum(each))

    for n in (2, 4):
        with mpmath.workdps(40):
            sums = [
                mpmath.fsum(mpmath.mpf(k) * log_m(n, m) for m, k in zip(of.shift.tolist(), of.k.tolist(), strict=True))
                for of in (steps, ruled.steps)
            ]
            bound, groups = mpmath.mpf(0), {}
            for group, _, m, factor, weight, *_ in ruled.steps.fits.tolist():
                one = factor * mpmath.expm1(log_m(n, m)) if m < 30 else 1
                groups[group] = min(groups.get(group, mpmath.inf), weight * one / (1 - one) if one < 1 else mpmath.inf)
            bound = mpmath.fsum(groups.values())
            assert abs(sums[0] - sums[1]) <= bound <= 1e-12 * sums[0]


RUNS = [
    (300, 0.9, 1.1, 0.02, 40, 1e-5),
    (400, 0.6, 3, 0.01, 100, 1e-6),
    (300, 0.8, 1.6, 1e-3, 1000, 1e-7),
    (300, 1, 4, 0.1, 300, 1e-9),
    (300, 2, 5, 0.5, 100, 1e-3),
    (300, 20, 400, 1, 5, 1e-5),
]


def rule_meets(ruled, steps, add, delta):
    """Certified intervals of a rule and of all steps intersect, and that of the rule is hardly wider."""
    whole = contour.root(steps, add, math.log(delta))
    other = contour.point(steps, add, whole.estimate)
    found = line(0, ruled, add, math.log(delta)).certified("compressed")
    assert found.lower <= whole.upper and whole.lower <= found.upper
    assert found.width <= 1.5 * whole.width + 1e-10
    point = line(1, ruled, add, whole.estimate).certified("compressed")
    assert point.lower <= other.upper and other.lower <= point.upper
    assert 0 < point.terms[-1] < point.width


@pytest.mark.parametrize("case", RUNS, ids=str)
@pytest.mark.parametrize("add", [0, 1])
def test_rules_and_all_steps_meet(case, add):  # [theory: compression.real, compression.tail, compression.gaussian]
    n, low, high, q, most, delta = case
    steps = steps_of(np.random.default_rng(n + most), n, low, high, q, most)
    rule_meets(ruled_of(steps), steps, add, delta)


SPARSE = [(1000, 1.0, 1.03, 1e-3, 2, 1e-5), (700, 0.9, 0.95, 1e-4, 200, 1e-6)]


@pytest.mark.parametrize("case", SPARSE, ids=str)
@pytest.mark.parametrize("add", [0, 1])
def test_a_fine_rule_and_all_steps_meet(case, add):  # [theory: compression.rule]
    """Sparse samples, at whose saddle log M changes fast: the interval meets that of all steps, and is about as
    wide."""
    n, low, high, q, most, delta = case
    steps = steps_of(np.random.default_rng(n), n, low, high, q, most)
    fine = compression.fine_rule(steps)
    assert fine is not None and fine.fine and fine.steps.q.size < 0.1 * n
    whole = contour.root(steps, add, math.log(delta))
    found = line(0, fine, add, math.log(delta)).certified("compressed")
    assert found.lower <= whole.upper and whole.lower <= found.upper
    assert found.width <= 1.5 * whole.width and 0 < found.terms[-1] < 0.5 * sum(found.terms)


def test_a_fine_rule_serves_where_boxes_of_moments_are_too_wide():
    run = hs.compose_arrays(1 + np.arange(12_000) / 1e5, 1e-3)
    found = hs.epsilon(run, 1e-5)
    assert found.route == "compressed" and found.upper - found.lower < 1e-9
    assert run._cache["add_remove", "rule", "fine"].steps.q.size < 100


def test_a_fine_rule_is_made_where_it_pays():
    """Not where a sum takes no longer, and not with more rows of ellipses than fit; plain steps are one row."""
    rng = np.random.default_rng(5)
    few, wide = steps_of(rng, 150, 1, 1.1, 0.01), steps_of(rng, 3000, 1, 100, 0.01)
    assert compression.fine_rule(few) is None and compression.fine_rule(wide) is None
    many = [steps_of(rng, 200, 1, 1.04, q) for q in np.linspace(0.01, 0.02, 600)]
    assert compression.fine_rule(Rows(*(np.concatenate(each) for each in zip(*many, strict=True)))) is None
    plain = Rows(rng.uniform(0.01, 0.02, 50), np.ones(50), np.full(50, 2.0))
    both = Rows(*(np.concatenate(each) for each in zip(steps_of(rng, 900, 1, 1.04, 0.01), plain, strict=True)))
    ruled = compression.fine_rule(both)
    assert ruled is not None and ruled.steps.ruled == ruled.steps.q.size - 1 < 100 and ruled.steps.q[0] == 1
    assert ruled.steps.k[0] == pytest.approx(2 * np.sum(plain.shift**2), rel=1e-14)
    assert ruled.total == 1000 and compression.fine_rule(plain) is not None


def test_rates_are_kept_apart():
    """Steps of three rates, one of them 1, in both adjacencies that know them."""
    rng = np.random.default_rng(2)
    parts = [steps_of(rng, 100, 1, 3, q, 100) for q in (0.01, 0.1)] + [steps_of(rng, 100, 90, 200, 1, 2)]
    run = run_of(Rows(*(np.concatenate(each) for each in zip(*parts, strict=True))))
    for adjacency in ("add_remove", "zero_out"):
        found = hs.epsilon(run, 1e-6, adjacency=adjacency)
        whole = contour.root(gaussian_steps(run, adjacency), 0, math.log(1e-6))
        assert found.route == "compressed" and found.lower <= whole.upper and whole.lower <= found.upper
        assert found.upper - found.lower <= 1e-9 and "interpolation" in found.budget.terms


def test_curves_share_a_rule():
    run = run_of(steps_of(np.random.default_rng(6), 150, 0.9, 1.5, 0.05, 60))
    eps = np.linspace(0.1, 4, 12)
    curve = hs.delta(run, eps)
    assert curve.route == "compressed" and np.all(curve.upper - curve.lower <= 1e-8 * curve.estimate)
    for at, low, high in zip(eps.tolist(), curve.lower, curve.upper, strict=True):
        whole = contour.point(gaussian_steps(run, "add_remove"), 0, at).of_delta()
        assert low <= whole.upper and whole.lower <= high


def test_a_rule_with_too_wide_an_ellipse_gives_way():
    """Where jumps rule the line no ellipse has D < 1 at all nodes: the sum over all steps answers."""
    run = run_of(steps_of(np.random.default_rng(7), 60, 0.45, 0.6, 1e-4, 2))
    found = hs.delta(run, 4.0)
    assert found.route != "compressed" and found.lower <= found.upper


def rough_rule(steps: Rows, nats: float, monkeypatch) -> compression.Ruled:
    """A rule of so few points that what it is off by shows."""
    monkeypatch.setattr(compression, "PRECISION", nats)
    return ruled_of(steps)


@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize("t", [0.7, 3.0])
def test_moments_near_a_tilt(add, t, monkeypatch):  # [theory: compression.near, compression.third]
    """K, its derivatives and the third moments of all steps lie within the errors of a rough rule's, which are not far
    above; those of a fine rule do not show."""
    rng = np.random.default_rng(8)
    steps, work = steps_of(rng, 300, 0.9, 1.5, 0.02, 50), np.empty(_core.saddle_work())
    _, exact = _core.saddle_cumulants(steps, add, t, work)
    fine = ruled_of(steps)
    _, close = _core.saddle_cumulants(fine.steps, add, t, work)
    rough = rough_rule(steps, 6.0, monkeypatch)
    status, found = _core.saddle_cumulants(rough.steps, add, t, work)
    _, bare = _core.saddle_cumulants(Rows(*rough.steps), add, t, work)
    assert status == _core.OK
    K, K_1, K_2 = (abs(found[i] - exact[i]) for i in (0, 2, 3))
    assert 1e3 * bare[1] < K <= found[1] < 1e4 * K
    assert 1e3 * bare[10] < K_1 <= found[10] < 1e4 * K_1 and 1e3 * bare[11] < K_2 <= found[11] < 1e5 * K_2
    assert exact[8] <= close[9] < 1.6 * exact[8]
    assert abs(close[0] - exact[0]) <= close[1] + exact[1] < 1e-10 * exact[0]
    assert exact[8] <= found[9] < math.inf


@pytest.mark.parametrize("route", ["saddlepoint", "edgeworth"])
@pytest.mark.parametrize("direction", ["remove", "add", "both"])
def test_other_routes_take_rules(route, direction, monkeypatch):  # [theory: compression.smoothed, compression.metric]
    rng = np.random.default_rng(5)
    q = np.where(rng.random(700) < 0.1, 1.0, 0.02)
    sigma = np.where(q == 1, 30.0, 1.0) * np.exp(rng.uniform(0, 1.2, 700))
    run = hs.compose_arrays(sigma, q, 20)
    truth_eps = hs.epsilon(run, 1e-5, direction=direction)
    eps = truth_eps.estimate
    truth = hs.delta(run, eps, direction=direction)
    by_rule = [
        hs.epsilon(run, 1e-5, route=route, direction=direction),
        hs.delta(run, eps, route=route, direction=direction),
    ]
    monkeypatch.setattr(saddlepoint, "MANY", 10_000)
    again = hs.compose_arrays(sigma, q, 20)
    by_steps = [
        hs.epsilon(again, 1e-5, route=route, direction=direction),
        hs.delta(again, eps, route=route, direction=direction),
    ]
    for known, found, summed in zip((truth_eps, truth), by_rule, by_steps, strict=True):
        assert max(found.lower, known.lower) <= min(found.upper, known.upper)
        assert max(found.lower, summed.lower) <= min(found.upper, summed.upper)
        assert found.budget.terms["interpolation"] > 0 == summed.budget.terms["interpolation"]
        assert found.upper - found.lower <= max(2 * (summed.upper - summed.lower), 1e-10 * found.estimate)


def test_a_rough_rule_widens_prawitz_interval(monkeypatch):  # [theory: compression.smoothed]
    """The interval of a rough rule holds the answer of all steps, and without what the rule is off by it would not."""
    steps = steps_of(np.random.default_rng(8), 700, 0.9, 1.5, 0.02, 50)
    rough = rough_rule(steps, 8.0, monkeypatch)
    work = np.empty(_core.prawitz_work())
    for add in (0, 1):
        exact = contour.point(steps, add, 4.0)
        asked = add, 1, 4.0, np.zeros(1), np.ones(1), contour.margin(1e-9), 0.0, work
        ends = []
        for rows in (rough.steps, Rows(*rough.steps)):
            _, scale, low, _, high, *_ = _core.prawitz_ask(rows, *asked)
            ends.append((scale + math.log(low), scale + math.log(high)))
        assert ends[0][0] <= exact.lower and exact.upper <= ends[0][1] < ends[0][0] + 0.1
        assert not (ends[1][0] <= exact.upper and exact.lower <= ends[1][1])


def test_estimates_of_many_steps():
    """The saddle-point estimate of a run of arrays is that of its list."""
    sigma = np.linspace(0.9, 1.6, 600)
    run = hs.compose_arrays(sigma, 0.02, 30)
    found = hs.saddlepoint_delta(run, 2.0)
    listed = hs.saddlepoint_delta(hs.compose(*run.parts), 2.0, direction="remove")
    assert math.isclose(found.log_delta, listed.log_delta, rel_tol=1e-9)


def test_many_rates_have_a_rule_each():
    rng = np.random.default_rng(2)
    sigma, q = rng.uniform(1.0, 1.02, 3000), rng.choice(np.linspace(0.005, 0.015, 150), 3000)
    run = hs.compose_arrays(sigma, q)
    for direction in ("remove", "add"):
        found = hs.epsilon(run, 1e-6, direction=direction)
        add = int(direction == "add")
        summed = contour.root(run.gaussian_steps("add_remove"), add, math.log(1e-6))
        assert found.route == "compressed" and len(ruled_of(run.gaussian_steps("add_remove")).steps.fits) > 512
        assert max(found.lower, summed.lower) <= min(found.upper, summed.upper)
        assert found.upper - found.lower <= 1e-9 * found.estimate


def test_a_rule_of_many_rows_has_a_line_as_good_as_all_steps():
    """Rows that stand for a handful of strong steps among 100,000 weak ones decide where the line goes."""
    rng = np.random.default_rng(0)
    q = rng.choice([2.36e-6, 6.595e-5, 5.598e-3], 1245)
    run = hs.compose_arrays(np.linspace(1.18859, 5.67244, 1245), q, rng.integers(1, 160, 1245))
    found = hs.delta(run, 1.4847)
    with mock.patch.object(Question, "rules", ()), mock.patch.object(Question, "narrower_rules", ()):
        summed = hs.delta(run, 1.4847)
    assert found.route == "compressed" and found.lower <= summed.upper and summed.lower <= found.upper
    assert found.width < 1e-10 * found.estimate


def test_no_rule_for_laplace_steps():  # [theory: compression.laplace]
    """Two steps and a rule of one row with the same mean: the misfit at high frequencies is not small."""
    c, mu = 1.0, 0.5

    def log_m(y, m):  # less z m - log 2
        z = c + 1j * y
        return np.log(2 * ((1 + z) * np.exp(z * m) + z * np.exp(-(1 + z) * m)) / (1 + 2 * z) * np.exp(-z * m))

    y = np.linspace(1e4, 1e4 + 400 * math.pi, 40_000, endpoint=False)
    g = log_m(y, mu) + log_m(y, 0.7) - 2 * log_m(y, 0.6)
    least = math.exp(-(1 + 2 * c) * mu)
    assert np.abs(g).max() >= least
    assert abs(np.mean(g * np.exp(2j * mu * y))) == pytest.approx(least, rel=1e-2)


def pair_transform(z, m, q):
    """M(z; m) - 1 of a two-sided pair for complex m, over v, where bases are complex, in as many digits as are lent."""
    real = abs(m) / mpmath.sqrt(mpmath.cos(2 * mpmath.arg(m)))
    reach, mesh = 11 * real + (2 * abs(mpmath.re(z)) + 1) * real**2, min(real / 5, 0.25)

    def term(j):
        v = j * mesh
        up, down = (1 - q + q * mpmath.exp(side * v - m * m / 2) for side in (1, -1))
        grown = mpmath.power(up, 1 + z) * mpmath.power(down, -z) - 1 - (1 + z) * (up - 1) + z * (down - 1)
        return grown * mpmath.exp(-v * v / (2 * m * m)) / (m * mpmath.sqrt(2 * mpmath.pi))

    count = int(reach / mesh)
    return mesh * mpmath.fsum(term(j) for j in range(-count, count + 1))


@pytest.mark.parametrize("seed", range(12))
def test_pairs_at_complex_shifts(seed):  # [theory: compression.pair, compression.arcs, compression.disc]
    """|M - 1| of a two-sided pair on and inside an ellipse is at most F kappa |M - 1| of a real pair, at every
    frequency; and no tenth of that at its largest where z is real."""
    rng = np.random.default_rng(seed)
    q, low = 10 ** rng.uniform(-3, -0.05), 2.0 ** int(rng.integers(-4, 0))
    high = low * float(rng.choice([1.25, 1.6, 2.0]))
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    tangent, centre = half / middle, low * high
    disc = seed % 2
    if disc:
        found = wide.disc_ellipses(low, high)
        e = found[min(int(rng.integers(5, 10)), len(found) - 1)]
    else:
        e = compression.ellipse(np.array([middle]), np.array([half]), max(1.3, 0.4 * compression._widest(middle, half)))
    rate, most, factor = e.of_pairs(q)
    tilt = float(rng.uniform(0.3, 3))
    at = [tilt, -1 - tilt, complex(tilt, 4), complex(-1 - tilt, -25), float(rng.uniform(-0.9, -0.1))][seed % 5]
    real = complex(at).real
    with mpmath.workdps(40):
        kappa = abs(at * (1 + at) / (real * (1 + real)))
        bound = factor * kappa * abs(pair_transform(real, mpmath.mpf(most), rate))
        seen = []
        for turn, part in ((0.0, 1.0), (0.8, 1.0), (1.9, 1.0), (2.6, 0.6)):
            x, y = math.cos(turn) * (e.rho + 1 / e.rho) / 2, math.sin(turn) * (e.rho - 1 / e.rho) / 2
            x = mpmath.mpc(x, y) * part
            m = mpmath.sqrt(centre * (1 + tangent * x) / (1 - tangent * x)) if disc else middle + half * x
            seen.append(abs(pair_transform(at, m, q)))
        assert max(seen) <= bound * (1 + mpmath.mpf(10) ** -12)
        assert isinstance(at, complex) or bound <= 10 * max(seen)
        if -1 < real < 0:
            one = pair_transform(1.0, mpmath.mpf(most), rate)
            assert bound / factor <= abs(real * (1 + real)) / 2 * one <= 4 * bound / factor


def test_pairs_of_a_rate_next_to_one():  # [theory: compression.pair]
    """Where no double below 1 is as large as q', nothing is claimed; before, the bound is finite."""
    e = compression.ellipse(np.array([0.5]), np.array([0.1]), 2.0)
    assert e.of_pairs(1 - 2.0**-53)[1:] == (math.inf, math.inf)
    rate, most, factor = e.of_pairs(1 - 1e-6)
    assert 1 - 1e-6 < rate < 1 and most == e.most and 1 <= factor < 100


REPLACED = {
    "one rate": (0.01, 1.0, 2.0, 2_000),
    "sparse": (1e-3, 0.8, 3.0, 1_200),
    "large rate": (0.3, 3.0, 9.0, 600),
    "two rates and plain steps": ((0.02, 0.05, 1.0), 20.0, 40.0, 500),
    "little noise": (0.02, 0.8, 1.2, 400),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_records(name, monkeypatch):  # [theory: compression.pair]
    """Sampled steps under replace_one: a rule and the sum over all steps meet, and the rule is about as narrow."""
    monkeypatch.setattr(contour, "MANY_PAIRS", 1_000)  # of more steps than that a sparse rule's goal is taken
    q, low, high, n = REPLACED[name]
    rng = np.random.default_rng(3)
    run = hs.compose_arrays(np.exp(rng.uniform(np.log(low), np.log(high), n)), rng.choice(np.atleast_1d(q), n), 1)
    listed = hs.compose(*run.parts)
    root = hs.epsilon(listed, 1e-6, adjacency="replace_one")
    at = 0.8 * root.estimate
    ours = root, hs.delta(run, at, adjacency="replace_one")
    assert all(bound.route == "compressed" and "interpolation" in bound.budget.terms for bound in ours)
    with mock.patch.object(Question, "rules", ()):
        sums = hs.epsilon(listed, 1e-6, adjacency="replace_one"), hs.delta(listed, at, adjacency="replace_one")
    for rule, exact in zip(ours, sums, strict=True):
        assert exact.route == "contour"
        assert rule.lower <= exact.upper and exact.lower <= rule.upper
        assert rule.upper - rule.lower <= max(1e-10 * rule.estimate, 3 * (exact.upper - exact.lower))
    curve = hs.delta(run, np.array([0.5, 1.0, 1.5]) * at, adjacency="replace_one")
    assert curve.lower[1] <= ours[1].upper and ours[1].lower <= curve.upper[1]
    assert hs.epsilon(run, 0.999999999, adjacency="replace_one").upper >= 0


@pytest.mark.parametrize("route", [route for route in ROUTES if route not in ("auto", "contour")])
def test_other_routes_of_replaced_records(route):
    """They sum over all steps, or refuse: their rules are those of one-sided steps."""
    run = hs.compose_arrays(np.random.default_rng(2).uniform(1, 2, 300), 0.05, 1)
    known = hs.epsilon(run, 1e-5, adjacency="replace_one")
    try:
        found = hs.epsilon(run, 1e-5, adjacency="replace_one", route=route)
    except (hs.AccuracyError, hs.DomainError):
        return
    assert found.lower <= known.upper and known.lower <= found.upper


def test_replaced_records_of_moments_alone():
    """A run whose steps were not kept is asked about replaced records, too, by the moments."""
    sigma = np.random.default_rng(2).uniform(1, 2, 3_000)
    kept = hs.compose_arrays(iter([sigma[:1000], sigma[1000:]]), 0.01)
    known = hs.epsilon(hs.compose_arrays(sigma, 0.01, 1), 1e-5, adjacency="replace_one")
    found = hs.epsilon(kept, 1e-5, adjacency="replace_one")
    assert found.route == "compressed" and found.lower <= known.upper and known.lower <= found.upper
