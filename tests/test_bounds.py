"""Bounds that other code is made of, each from both sides: it covers what it bounds, and by no more than it has to."""

import itertools
import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import hockeystick as hs
from hockeystick import _core, chords, query, risk_gdp
from hockeystick.grid import cells as grid
from hockeystick.individual import renyi, units
from hockeystick.routes import bounds, contour, eeai, finite, finite_sample, general, mixed, prv
from hockeystick.routes.loss_steps import steps_of
from hockeystick.routes.question import Question
from hockeystick.what import pair
from rows import gaussian_delta


def gaussian_curve(mu: float, x):
    """delta at x = e^eps of N(mu, 1) against N(0, 1)."""
    eps = np.log(x)
    return ndtr(mu / 2 - eps / mu) - x * ndtr(-mu / 2 - eps / mu)


def four_points(mu: float, centre: float, h: float, wide: float = 0.0) -> chords.Nodes:
    eps = tuple(centre + h * step for step in (-1.5, -0.5, 0.5, 1.5))
    x = np.exp(eps)
    delta = gaussian_curve(mu, x)
    ends = [tuple((delta * factor).tolist()) for factor in (1 - wide, 1.0, 1 + wide)]
    return chords.Nodes(eps, tuple(x * (1 - 1e-15)), tuple(x * (1 + 1e-15)), *ends)


@pytest.mark.parametrize("seed", range(4))
def test_four_points_bound_the_trade_off(seed):  # [theory: risk.four-points, risk.slope]
    """Of a Gaussian curve, tpr = Phi(Phi^-1(fpr) + mu): wherever the points lie below, and closely where they lie about
    the slope -fpr."""
    random = np.random.default_rng(seed)
    for _ in range(300):
        mu, z = random.uniform(0.2, 3), random.uniform(-3, 3)
        fpr, tpr = ndtr(z), ndtr(z + mu)
        h = math.exp(random.uniform(-5, 0.5))
        away = random.choice([0, 0, random.uniform(-4, 4)])
        nodes = four_points(mu, -mu * z - mu * mu / 2 + away, h, random.choice([0, 1e-9]))
        lower, upper = chords.tpr_lower(nodes, fpr), chords.fpr_upper(nodes, tpr, fpr * (1 - 1e-9))
        assert lower <= tpr * (1 + 1e-12), (mu, z, h, away)
        assert upper >= fpr * (1 - 1e-12), (mu, z, h, away)
        if not away and h < 0.1 and tpr < 0.95:
            spread = h / mu
            assert tpr - lower <= (2 * spread**2 + 1e-7) * tpr + 1e-9
            assert upper - fpr <= (10 * spread**2 + 1e-6) * fpr * (1 + math.exp(mu * abs(z))) + 1e-9


def test_points_that_say_nothing():
    nodes = four_points(1.0, -8.0, 0.5)
    assert chords.tpr_lower(nodes, 0.01) == 0.01  # the slope of -0.01 lies beyond the last point
    assert chords.fpr_upper(four_points(1.0, 6.0, 0.5), 0.3, 1e-12) >= ndtr(ndtri(0.3) - 1.0)


RUNS = (
    hs.poisson_subsampled(hs.gaussian(1.0), 0.02) * 30,
    hs.poisson_subsampled(hs.gaussian(0.7), 0.1) * 4 + hs.gaussian(3.0) * 5,
    hs.poisson_subsampled(hs.gaussian(2.0), 0.3) * 50,
)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("adjacency, add", list(itertools.product(("add_remove", "replace_one"), (False, True))))
def test_bounds_before_a_route_is_asked(run, adjacency, add):  # [theory: pair.variation]
    """Distances, the square root of the second moment, Chernoff's bound: above, and near enough to be of use."""
    paired = pair.paired_steps(run, adjacency, add)
    asked = {"adjacency": adjacency, "direction": "add" if add else "remove", "route": "contour"}
    at_zero = hs.delta(run, 0.0, **asked)
    assert at_zero.lower <= paired.variation_upper <= 1.6 * math.sqrt(sum(k for _, k in run.parts)) * at_zero.upper
    square = bounds.square_variation_upper(paired)
    assert at_zero.lower <= square <= max(3 * at_zero.upper, 0.5)
    for delta in (1e-2, 1e-6, 1e-12):
        eps = hs.epsilon(run, delta, **asked)
        root = bounds.root_upper(paired, add, math.log(delta))
        assert eps.lower <= root <= 2.5 * eps.upper + 1e-9
        if eps.lower > 0:
            log_delta = bounds.log_delta_upper(paired, add, eps.estimate)
            assert math.log(delta) - 1e-6 <= log_delta <= math.log(delta) + 7


ENDED = [
    hs.gaussian(1.0) * 2,
    hs.poisson_subsampled(hs.gaussian(0.7), 0.01) * 5,
    hs.laplace(2.0) * 4,
    hs.approx_dp(0.4, 1e-3) * 3 + hs.randomized_response(0.2) * 2,
    hs.from_pmf([0.6, 0.3, 0.1, 0.0], [0.5, 0.0, 0.3, 0.2]) * 2,
    hs.from_curve([0.1, 0.5, 1.0], [0.2, 0.05, 1e-6]) + hs.discrete_gaussian(2.0),
    hs.from_curve([0.01], [0.0], symmetric=False) * 10,
]


@pytest.mark.parametrize("run", ENDED, ids=lambda run: repr(run)[:40])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_what_holds_where_every_route_declines(run, direction):  # [theory: small.ends]
    """Each interval holds the answer, and has an end next to it: below e^eps of no loss, at 0, and next to the largest
    loss."""
    question = query._Settings(run, "add_remove", direction, "auto", None, 1)
    add = int(direction == "add")
    high = sum(k * loss.hi for loss, k in question.losses(add))
    places = [-2.0, -1e-3, 0.0, 0.3] + [high * (1 - 1e-6)] * (high < math.inf)
    for eps in places:
        last, true = bounds.last_point(question, add, eps), hs.log_delta(run, eps, direction=direction)
        if last is None:
            assert true.upper > -1.5
            continue
        assert last.lower <= true.upper and true.lower <= last.upper and last.lower <= last.estimate <= last.upper
    if high < math.inf:
        assert math.exp(last.upper) - math.exp(last.lower) < 2e-6 * abs(high) + 1e-9
    for delta in (1e-9, 1e-3, 0.2):
        last, true = bounds.last_root(question, add, delta), hs.epsilon(run, delta, direction=direction)
        if last is None:
            assert high == math.inf or true.upper == math.inf
            continue
        assert last.lower <= true.upper and true.lower <= last.upper
        assert high == math.inf or last.upper <= max(high, 0.0) * (1 + 1e-9)


def test_auto_answers_what_a_grid_takes_long_for():
    """None is a refusal: of the first and the last the contour and a quick grid know nothing, of the others ends of the
    losses and distances."""
    rare = hs.poisson_subsampled(hs.gaussian(0.001), 3.56e-6) * 3
    for delta in (1e-5, 1e-12, 2e-290):
        assert 0 <= hs.epsilon(rare, delta, direction="add").upper <= -3.001 * math.log1p(-3.56e-6)
    near_one = hs.delta(hs.gaussian(0.0037) * 22097, -27.6)
    assert 1 - 1e-11 < near_one.lower <= near_one.upper <= 1
    weak = hs.delta(hs.k_ary_randomized_response(1e-16, 32228722) * 10**12, -1.3e-10, adjacency="zero_out")
    assert 1.2e-10 < weak.lower < weak.upper < 2e-3
    given = hs.poisson_subsampled(hs.from_curve([0.0], [0.0031], symmetric=False), 3.8e-10) * 10**12
    assert hs.delta(given, 0.0, direction="remove").upper - hs.delta(given, 0.1, direction="remove").upper < 1e-9
    deep = hs.poisson_subsampled(hs.gaussian(0.006), 0.007) + hs.poisson_subsampled(hs.gaussian(0.0224), 5e-8) * 1224
    found = hs.epsilon(deep, 3.7e-183, adjacency="replace_one")
    assert found.upper - found.lower < 0.01 * found.upper


@pytest.mark.parametrize("run", RUNS)
def test_the_sum_of_distances_is_no_root(run):
    """A target a little below delta(0) has a root above 0; below it by the factor that many steps lose, still one."""
    asked = {"adjacency": "replace_one", "direction": "remove"}
    at_zero = hs.delta(run, 0.0, **asked)
    for share in (0.9, 0.1, 0.01):
        eps = hs.epsilon(run, share * at_zero.lower, **asked)
        assert eps.upper > 0 and hs.delta(run, eps.upper, **asked).lower <= share * at_zero.lower


def test_chernoff_lines():  # [theory: line.chernoff, small.between]
    """Bounds of log delta at many eps: above the curve and above the best tilt of all, close to it."""
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.02) * 1000
    eps, tilts = np.linspace(0.5, 6, 50), np.geomspace(0.2, 40, 400)
    question = Question(run, "add_remove", True, None, 1)
    for add, direction in enumerate(("remove", "add")):
        bound = bounds.curve_upper(question, add, eps)
        assert np.all(np.log(hs.delta(run, eps, direction=direction).estimate) <= bound + 1e-9)
        cumulants = np.array([t * hs.rdp(run, 1 + t, direction=direction).estimate for t in tilts])
        best = np.min(cumulants + tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts) - np.outer(eps, tilts), axis=1)
        assert np.all(best - 0.05 <= bound) and np.all(bound <= best + 2)


@pytest.mark.parametrize("add", (0, 1))
def test_the_distance_from_one(add):  # [theory: line.chernoff]
    """K at tilts between -1 and 0, of a sampled step by quadrature; of Gaussian steps the distance itself, within the
    slope of a Gaussian tail."""
    rng, size = np.random.default_rng(add), _core.contour_work(1)
    for _ in range(25):
        m, q, tilt = math.exp(rng.uniform(-3, 2)), float(rng.uniform(0.01, 0.99)), -float(rng.uniform(0.01, 0.99))
        eps, k = float(rng.uniform(-1, 3)), float(math.floor(math.exp(rng.uniform(0, 12))))
        order = -tilt if add else 1 + tilt
        power = mpmath.quad(
            lambda x, m=m, q=q, order=order: mpmath.npdf(x) * (1 - q + q * mpmath.exp(m * x - m * m / 2)) ** order,
            [-12, 0, m, 12 + m],
        )
        exact = k * mpmath.log(power) - tilt * mpmath.mpf(eps)
        steps = _core.Rows(*(np.array([x]) for x in (m, q, k)))
        status, upper, used = _core.chernoff_upper(steps, add, 1, eps, np.empty(size), tilt=tilt)
        assert (status, used) == (_core.OK, tilt)
        assert -1e-13 * k <= upper - exact <= 1e-4 * (1 + abs(exact))
    for mu in (7.0, 20.0, 200.0):
        for part in (-0.9, 0.0, 0.5):
            eps = part * (mu * mu / 2 - 6.0 * mu) if part > 0 else part * mu
            with mpmath.workdps(200):
                exact = mpmath.log(1 - gaussian_delta(mu, eps, 200))
            found = contour.near_one(_core.Rows(*(np.array([x]) for x in (mu / 10, 1.0, 100.0))), add, eps)
            if found is None:
                assert exact > contour.FAR_FROM_ONE - 5
            elif exact > -700:
                assert exact <= math.log(-found.lower) <= exact + 5 + 0.5 * math.log(1 - exact)


def test_deltas_next_to_one_are_cheap():
    """They took 9 ms, of which a line for rare jumps was most."""
    run = hs.poisson_subsampled(hs.gaussian(5.0), 0.5) * 10**6
    for adjacency in ("add_remove", "replace_one"):
        found = hs.log_delta(run, 1.0, adjacency=adjacency)
        assert found.lower > -1e-300 and found.upper == 0.0 and found.route == "contour"
    assert hs.delta(hs.compose(run, hs.gaussian(1.0)), 1.0).lower > 1 - 1e-9


def least_ruled_out(question, add: int, eps: float, low: float, high: float) -> float:
    """The least delta in [low, high] that general.below proves not to be exceeded."""
    assert general.below(question, add, eps, math.log(high)) and not general.below(question, add, eps, math.log(low))
    while high > low * (1 + 1e-9):
        mid = math.sqrt(low * high)
        low, high = (low, mid) if general.below(question, add, eps, math.log(mid)) else (mid, high)
    return high


def of_atoms(losses, masses, k: int, eps: float) -> float:
    """delta(eps) of k steps of atoms, by enumeration."""
    rows = itertools.product(zip(losses, masses, strict=True), repeat=k)
    sums = [(math.fsum(x for x, _ in row), math.prod(p for _, p in row)) for row in rows]
    return math.fsum(p * -math.expm1(eps - x) for x, p in sums if x > eps)


@pytest.mark.parametrize("k", (1, 2, 3))
@pytest.mark.parametrize("missing", (0.0, 1e-9, 2e-5, 3e-4, 0.02))
def test_atoms_of_which_one_is_left_out(k, missing, monkeypatch):  # [theory: line.chernoff]
    """Where delta comes from one sum alone, Chernoff's bound is an equality at the best tilt; so is what is added for
    an atom of a large loss that the line does not know."""
    losses, masses = [2.0, -0.25, -2.0], [0.2, 0.7, 0.1 - missing]
    step = mixed.AtomicStep(np.array(losses), np.log(masses), np.full(3, 1e-15), np.full(3, 1e-15), False, k)
    lost = k * missing
    monkeypatch.setattr(general, "asked", lambda *_: general.Finite([step], 0.0, lost))
    for eps, loose in ((2.0 * k - 0.1, 1.36), (0.5, 6.0)):
        known, whole = (of_atoms(x, p, k, eps) for x, p in ((losses, masses), ([*losses, 60.0], [*masses, missing])))
        upper = math.exp(mixed.log_delta_upper([step], eps))
        assert known <= upper <= loose * known
        found = least_ruled_out(None, 0, eps, known / 2, 9.0)
        assert whole <= found <= max(upper + lost, 2 * lost) * (1 + 1e-8)
        assert whole >= known + lost * (1 - lost)


@pytest.mark.parametrize("add, eps", ((0, 0.4), (0, 2.5), (0, 6.0), (1, 0.3), (1, 1.1)))
@pytest.mark.parametrize("depth", (1.0, 4.0, 9.0, 16.0))
def test_groups_whose_largest_sums_are_moved(add, eps, depth, monkeypatch):  # [theory: line.chernoff, pair.groups]
    """What is ruled out of a group, with sums of a probability of e^-depth and less moved to the next, against the
    closed form of all sums."""
    size, q, sigma = 12, 0.2, 3.0
    sums = [(j / sigma, math.comb(size, j) * q**j * (1 - q) ** (size - j)) for j in range(size + 1)]
    monkeypatch.setattr(finite, "SUMS", 0.0)
    monkeypatch.setattr(finite, "DEPTHS", (depth,))
    run = hs.group(hs.poisson_subsampled(hs.gaussian(sigma), q), size) * 1
    question = Question(run, "add_remove", True, None, 1)
    lost = general.asked(question, add, 0.0).lost
    assert 0 < lost <= math.exp(-depth)

    def loss(x):
        return mpmath.log(mpmath.fsum(p * mpmath.exp(m * x - m * m / 2) for m, p in sums))

    with mpmath.workdps(30):
        sign = -1 if add else 1
        at = mpmath.findroot(lambda x: sign * loss(x) - eps, (-30, 40), solver="bisect", tol=1e-24, maxsteps=200)
        mixture = mpmath.fsum(p * mpmath.ncdf(sign * (m - at)) for m, p in sums)
        plain = mpmath.ncdf(-sign * at)
        num, den = (plain, mixture) if add else (mixture, plain)
        exact = float(num - mpmath.exp(eps) * den)
    found = least_ruled_out(question, add, eps, exact / 2, 9.0)
    assert exact <= found <= max(12 * exact + lost, 2 * lost) * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_regret_between_points(seed):  # [theory: risk.regret]
    """(G_mu - delta)/(1 + x) between the inner two of four points of another Gaussian curve, against a fine grid."""
    random = np.random.default_rng(seed)
    for _ in range(100):
        truth, mu, centre = random.uniform(0.3, 3), random.uniform(0.3, 3), random.uniform(-1, 3)
        h = math.exp(random.uniform(-4, -1))
        nodes = four_points(truth, centre, h)
        points = risk_gdp._rows(nodes.eps, np.array(nodes.low), np.array(nodes.high))
        x = np.exp(np.linspace(nodes.eps[1], nodes.eps[2], 400))
        most = np.max((gaussian_curve(mu, x) - gaussian_curve(truth, x)) / (1 + x))
        bound = risk_gdp._regret_upper(mu, points)
        assert most - 1e-13 <= bound <= most + 0.5 * h * h * (1 + 1 / min(truth, mu)) + 1e-9


@pytest.mark.parametrize("slope", (-3.0, -0.2, 0.0, 0.3, 5.0))
@pytest.mark.parametrize("ends", ((0.0, 1.0), (0.5, 0.9), (1.0, 4.0)))
def test_square_exp(slope, ends):
    truth = float(mpmath.quad(lambda u: u * u * mpmath.exp(-slope * u * u), ends))
    bound = np.max(finite_sample._square_exp_upper(slope, *ends))
    assert truth * (1 - 1e-14) <= bound <= truth * max(1.001, math.exp(abs(min(slope, 0)) * ends[1] ** 2)) * 12


def test_divergences_of_any_step():  # [theory: saddle.renyi]
    """Renyi divergences of Laplace noise in closed form [Mir17, Prop. 6]."""
    orders, b = (1.5, 2.0, 8.0, 64.0), 1.7
    for a, bound in zip(orders, renyi.step_rho_upper(hs.laplace(b), orders), strict=True):
        exact = math.log(a / (2 * a - 1) * math.exp((a - 1) / b) + (a - 1) / (2 * a - 1) * math.exp(-a / b)) / (a - 1)
        assert exact * (1 - 1e-13) <= bound <= exact * (1 + 1e-9)


@pytest.mark.parametrize("m, k, y", ((0.3, 40, 2.0), (1.0, 3, 1.5), (0.05, 1, 30.0)))
def test_modulus_of_normal_losses(m, k, y):  # [theory: edgeworth.modulus]
    """|E e^{iyL}| = e^{-m^2 y^2/2}, and its k-th power."""
    steps = SimpleNamespace(shift=np.array([m]), q=np.ones(1), k=np.array([float(k)]), kind=np.array([eeai.NORMAL]))
    one, all_of_them = eeai._modulus_upper(steps, 0, 0, y), eeai._product_upper(steps, 0, y)
    for bound, log in ((one, -0.5 * (m * y) ** 2), (all_of_them, -0.5 * k * (m * y) ** 2)):
        assert math.exp(log) <= bound <= math.exp(log) * (1 + 1e-8) + 2e-300


@pytest.mark.parametrize("m, q", ((0.5, 1.0), (2.0, 1.0), (0.7, 0.1), (1.3, 0.01), (3.0, 0.2), (2.5, 0.9)))
@pytest.mark.parametrize("add", (False, True))
def test_variation_of_a_density(m, q, add):  # [theory: grid.variation]
    """The total variation of the density of a loss, from its values on a fine grid, at which it is at most what is
    bounded."""
    g = np.linspace(-12, 12 + m, 400_001)
    v = m * g - m * m / 2
    weight = np.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)
    slope = m * q * np.exp(v) / (1 - q + q * np.exp(v))
    density = (weight if add else weight * (1 - q + q * np.exp(v))) / slope
    inside = np.abs(g) < 12  # where q < 1 the density is 0 at the wall, which lies at -inf
    variation = np.sum(np.abs(np.diff(density[inside])))
    bound = grid.density_variation_upper(m, q, add)
    assert variation <= bound * (1 + 1e-9)
    assert bound <= 2.5 * variation


@pytest.mark.parametrize("mu", (0.01, 1.0, 30.0))
def test_epsilon_of_a_budget(mu):
    with hs.IndividualGDPFilter(10, budget_mu=mu) as kept:
        bound = kept.epsilon_upper(1e-6)
    truth = hs.epsilon(hs.gaussian(1 / mu), 1e-6)
    assert truth.lower <= bound <= truth.upper * (1 + 1e-9)


def test_the_largest_budget():
    assert 1e3 * (1 - 1e-9) <= units.mu_lower(1e8, math.log(1e-5)) < 1e3


@pytest.mark.parametrize("sigma, q", ((0.7, 0.02), (3.0, 1e-3), (1.0, 0.5), (40.0, 1e-6)))
def test_divergences_of_a_sampled_step(sigma, q):  # [theory: saddle.renyi]
    """The sum over 0..alpha in 60 digits."""
    orders = (2.0, 3.0, 7.0, 32.0)
    step = hs.poisson_subsampled(hs.gaussian(sigma), q)
    with mpmath.workdps(60):
        for a, bound in zip(orders, renyi.step_rho_upper(step, orders), strict=True):
            n, rate, v = int(a), mpmath.mpf(q), 1 / mpmath.mpf(sigma) ** 2
            total = mpmath.fsum(
                mpmath.binomial(n, i) * (1 - rate) ** (n - i) * rate**i * mpmath.exp((i * i - i) * v / 2)
                for i in range(n + 1)
            )
            truth = mpmath.log(total) / (n - 1)
            assert truth <= bound <= truth * (1 + 1e-9)
        plain = renyi.step_rho_upper(hs.gaussian(sigma), orders)
        assert all(a * v / 2 <= bound <= a * v / 2 * (1 + 1e-13) for a, bound in zip(orders, plain, strict=True))


def test_budgets_of_orders():  # [theory: individual.rdp-shares]
    orders, weights, eps, delta = (1.5, 4.0, 64.0, 500.0), (0.25,) * 4, 8.0, 1e-6
    with mpmath.workdps(50):
        for a, w in zip(orders, weights, strict=True):
            bound, x = renyi._budget(a, w, eps, delta), mpmath.mpf(a)
            truth = eps - mpmath.log(1 - 1 / x) + (mpmath.log(x) + mpmath.log(mpmath.mpf(delta) * w)) / (x - 1)
            assert truth - 1e-12 <= bound <= truth


def test_what_a_filter_has_spent():
    """Every order: between n times the divergence of a step and a little more."""
    kept = renyi.RDPFilter(eps=4.0, delta=1e-6)
    step = hs.gaussian(20.0)
    for n in (1, 2, 3):
        kept.charge(step)
        for a, spent in zip(kept.orders, kept.spent_rho_upper, strict=True):
            truth = n * a / 800
            assert truth <= spent <= truth * (1 + 1e-9) + 1e-12 or spent == math.inf


@pytest.mark.parametrize("add", (0, 1))
@pytest.mark.parametrize("m, q", ((1.0, 0.1), (0.4, 0.02), (2.0, 0.7)))
def test_modulus_of_sampled_losses(m, q, add):  # [theory: edgeworth.modulus]
    """The largest |E e^{i y' L}| beyond y, from sums on a fine grid."""
    x = np.linspace(-14, 14 + m, 20_001)
    ratio = 1 - q + q * np.exp(m * x - m * m / 2)
    mass = np.exp(-0.5 * x * x) * (1.0 if add else ratio)
    mass, loss = mass / mass.sum(), np.log(ratio)
    steps = steps_of(hs.poisson_subsampled(hs.gaussian(1 / m), q) * 3, "add_remove")
    for y in (0.5, 2.0, 6.0):
        tried = y * np.linspace(1, 4, 40)
        truth = max(abs(complex(np.sum(mass * np.exp(1j * t * loss)))) for t in tried)
        assert truth * (1 - 1e-9) <= eeai._modulus_upper(steps, 0, add, y) <= min(1.0, 3 * truth + 0.2)


@pytest.mark.parametrize("add", (0, 1))
def test_chernoff_beside_an_expansion(add):
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.1) * 50
    side = eeai.Side(steps_of(run, "add_remove"), add)
    for eps in (0.5, 1.5, 4.0):
        truth = hs.delta(run, eps, direction="add" if add else "remove")
        assert truth.lower <= side.chernoff_upper(eps) <= 20 * truth.upper


@pytest.mark.parametrize("step", (hs.laplace(1.5), hs.randomized_response(0.7), hs.discrete_gaussian(2.0)))
def test_distances_of_any_steps(step):
    question = query._Settings(step * 3, "add_remove", "both", "auto", None, 1)
    one, three = hs.delta(step, 0.0), hs.delta(step * 3, 0.0)
    for _ in range(2):  # the second is remembered
        assert three.lower <= bounds._variation_upper(question, 0) <= 3 * one.upper * (1 + 1e-12)


@pytest.mark.parametrize("add", (False, True))
def test_moments_of_any_order(add):
    """The best order is at most the seven nats above the curve that an order alone would lose."""
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.02) * 500
    steps, direction = pair.gaussian_steps(run, "add_remove"), "add" if add else "remove"
    for eps in (0.5, 2.0):
        truth = hs.log_delta(run, eps, direction=direction)
        assert truth.lower <= bounds.moments_point(steps, int(add), eps).upper <= truth.upper + 7
    truth = hs.epsilon(run, 1e-5, direction=direction)
    assert truth.lower <= bounds.moments_root(steps, int(add), math.log(1e-5)).upper <= 2 * truth.upper


def test_variation_of_a_gaussian_loss():  # [theory: grid.variation]
    """Of density N(m^2/2, m^2): twice its largest value."""
    for m in (0.1, 1.0, 3.0):
        (loss, _), *_ = query._Settings(hs.gaussian(1 / m) * 2, "add_remove", "both", "prv", None, 1).losses(0)
        assert 2 / (m * math.sqrt(2 * math.pi)) * (1 - 1e-12) <= prv._variation_upper(loss) <= 2 / m


@pytest.mark.parametrize("sign", (-1, 1))
def test_a_stated_error_counts_in_full(sign):  # [theory: pair.cdf]
    """Distribution functions off by all that their user said: the truth is an end of the interval."""
    m, error = 0.5, 1e-4
    step = hs.from_loss_cdf(
        lambda s: ndtr((s - m * m / 2) / m) - sign * error,
        lambda s: ndtr((s + m * m / 2) / m) + sign * error,
        sf_num=lambda s: ndtr((m * m / 2 - s) / m) + sign * error,
        sf_den=lambda s: ndtr((-m * m / 2 - s) / m) - sign * error,
        error=error,
    )
    for eps in (0.0, 0.5, 1.0):
        bound, truth = hs.delta(step, eps), hs.delta(hs.gaussian(1 / m), eps)
        assert bound.lower <= truth.upper and truth.lower <= bound.upper
        end = bound.lower if sign > 0 else bound.upper
        assert abs(end - truth.estimate) < 1e-9 * truth.estimate


def test_functions_may_waver_by_their_error():
    """Steps up and down of the stated size are no reason to refuse, of three times that they are."""
    m, error = 0.5, 1e-5

    def wavering(size):
        return hs.from_loss_cdf(
            lambda s: np.clip(ndtr((s - m * m / 2) / m) + size * np.cos(1e7 * s), 0, 1),
            lambda s: np.clip(ndtr((s + m * m / 2) / m) + size * np.sin(1e7 * s), 0, 1),
            error=error,
        )

    assert hs.delta(wavering(error), 0.5).lower <= hs.delta(hs.gaussian(1 / m), 0.5).upper
    with pytest.raises(hs.DomainError):
        wavering(4 * error)


def test_ceilings_are_kept(monkeypatch):  # [theory: saddle.any-eps]
    """What one question proved of ADD at every eps serves the next ones, whose answers do not depend on it."""
    rng = np.random.default_rng(1)
    noise, rates = np.exp(rng.uniform(0, 2, 3000)), rng.choice([0.01, 0.02], 3000)
    deltas = (1e-5 * np.exp(rng.uniform(-0.3, 0.3, 24))).tolist()
    alone = [hs.epsilon(hs.compose_arrays(noise, rates), delta) for delta in deltas]
    asked, ask = [], _core.saddle_delta_upper
    monkeypatch.setattr(_core, "saddle_delta_upper", lambda *a, **o: (asked.append(a), ask(*a, **o))[1])
    run = hs.compose_arrays(noise, rates)
    assert [hs.epsilon(run, delta) for delta in deltas] == alone
    assert 1 <= len(asked) <= 4
    assert not bounds.below(
        Question(run, "add_remove", True, None, 1), 0, alone[0].lower, math.log(deltas[0])
    )  # REMOVE is the larger
    assert hs.epsilon(run, 0.3) == hs.epsilon(hs.compose_arrays(noise, rates), 0.3)


@pytest.mark.parametrize("least", [1e-100, 1e-200, 1e-300])
def test_the_end_of_a_curve_of_atoms(least):  # [theory: risk.top]
    """Of losses beyond 700, whose exponentials are no doubles, nothing is said; 0.04 was, for 6e-11."""
    run = hs.from_pmf([0.5, 0.5], [least, 1.0]) * 2
    top, tip, low = hs.query.Asker(run, direction="remove").top_lower()
    assert top >= 2 * math.log(0.5 / least)
    with mpmath.workdps(60):
        a, b, gone = mpmath.mpf(1) / 2, mpmath.mpf(least) / (1 + mpmath.mpf(least)), mpmath.exp(mpmath.mpf(tip))
        assert low <= a * a - gone * b * b
        assert (low > 0) == (top < 700)
