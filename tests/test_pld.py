"""Route pld: laws above and below, exact answers, the truth table, itself through other descriptions, bad settings."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.grid import dots, evolve
from hockeystick.routes import pld
from hockeystick.what.mechanism import as_run
from hockeystick.what.pair import losses, step_loss


def same_law():
    """One Gaussian and one Laplace step, described in four ways; curves are sampled finely, so they are dominated
    pairs."""
    from scipy.special import ndtr

    m = 0.25
    x = np.linspace(-12, 12 + m, 40_001)
    edges = np.r_[-np.inf, 0.5 * (x[1:] + x[:-1]), np.inf]
    gauss = hs.gaussian(1 / m)
    yield gauss, hs.from_loss_cdf(lambda s: ndtr(s / m - m / 2), lambda s: ndtr(s / m + m / 2)), 1e-9, 0.0
    cells = [np.diff(ndtr(edges - shift)) for shift in (m, 0.0)]
    yield gauss, hs.from_pmf(*cells), 3e-6, 3e-6  # binning is post-processing: a little more private
    eps = np.linspace(-3, 3, 3001)
    delta = ndtr(m / 2 - eps / m) - np.exp(eps) * ndtr(-m / 2 - eps / m)
    yield gauss, hs.from_curve(eps, delta, symmetric=False), 2e-3, -2e-3
    e0 = 0.3
    yield hs.randomized_response(e0), hs.from_curve([e0], [0.0]), 1e-12, 0.0
    yield hs.randomized_response(e0), hs.pure_dp(e0), 0.0, 0.0
    p = 1 / (1 + math.exp(-e0))
    yield hs.randomized_response(e0), hs.from_pmf([p, 1 - p], [1 - p, p]), 1e-12, 0.0
    yield hs.gaussian_mixture(2.0, [0.0, 1.0], [0.9, 0.1]), hs.poisson_subsampled(hs.gaussian(2.0), 0.1), 1e-12, 0.0
    yield hs.public_mixture([gauss, gauss], [0.4, 0.6]), gauss, 1e-12, 0.0
    yield hs.approx_dp(0.5, 1e-3), hs.from_curve([0.5], [1e-3]), 1e-12, 0.0


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize(("a", "b", "slack", "bias"), list(same_law()))
def test_same_law_in_other_words(a, b, slack, bias, count):
    """Brackets of one law intersect; a description that is a little worse by construction stays on its side."""
    for direction in ("remove", "add"):
        x, y = (hs.delta(step * count, 0.4, route="pld", direction=direction, rtol=1e-3) for step in (a, b))
        scale = 50 * count * slack * x.upper
        assert x.lower <= y.upper + scale
        assert y.lower <= x.upper + (scale if bias <= 0 else 0)


def lattice_laws(step, dx, add=False, t=5.0, p=1e-12):
    loss = step_loss(step, "add_remove", add)
    made = dots.plan(((loss, 1),), p)
    return dots.discretise(made, dx, t, p, p)


def curve_of(grid, eps):
    """Hockey-stick functional of the masses of one step, in long double."""
    p = grid.steps.masses(0)
    y = grid.shift + (grid.steps.j0[0] + np.arange(p.size)) * np.longdouble(grid.dx)
    return np.array([float(np.sum(p * np.maximum(0, -np.expm1(np.minimum(e - y, 0))))) for e in eps])


SINGLE = [
    hs.gaussian(1.0),
    hs.poisson_subsampled(hs.gaussian(1.0), 0.05),
    hs.poisson_subsampled(hs.laplace(0.7), 0.3),
    hs.laplace(1.3),
    hs.discrete_laplace(3.0, sensitivity=4),
    hs.approx_dp(0.8, 1e-3),
    hs.from_pmf([0.6, 0.3, 0.1, 0.0], [0.5, 0.0, 0.3, 0.2]),
]


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("dx", [0.3, 0.05, 0.0071])
@pytest.mark.parametrize("step", SINGLE)
def test_laws_are_above_and_below(step, dx, add):
    # [theory: grid.cells, grid.upper, grid.lower, grid.domination, pair.measure]
    """For every eps, also negative: D_lower <= delta <= D_upper(eps - radius), against a curve on a lattice ten times
    finer."""
    eps = np.linspace(-3, 3, 121)
    coarse, fine = lattice_laws(step, dx, add), lattice_laws(step, dx / 40, add)
    low, high = curve_of(coarse.lower, eps) + coarse.inf_lower, curve_of(coarse.upper, eps - 1e-13) + coarse.inf_upper
    fine_low, fine_high = curve_of(fine.lower, eps) + fine.inf_lower, curve_of(fine.upper, eps) + fine.inf_upper
    assert np.all(low <= fine_high + 1e-15)
    assert np.all(fine_low <= high + 1e-15)
    assert np.all(low <= high)
    loss = step_loss(step, "add_remove", add)
    assert np.max(high - low) <= (dx if not loss.smooth else 4 * dx**1.5 if loss.atoms() else 8 * dx * dx)


def test_upper_law_is_connect_the_dots():  # [theory: grid.upper]
    """At lattice points the upper curve is the curve itself [DGK+22]."""
    laws = lattice_laws(hs.gaussian(1.0), 0.1)
    eps = laws.upper.dx * np.arange(-20, 21)
    with mp.workdps(30):
        truth = [float(mp.ncdf(mpf(0.5) - mpf(e)) - mp.exp(e) * mp.ncdf(mpf(-0.5) - mpf(e))) for e in eps]
    assert np.allclose(curve_of(laws.upper, eps), truth, rtol=0, atol=2e-11)


def test_second_order():  # [theory: grid.mesh]
    """A mesh half as wide is four times as good; below, up to where the wall of the law falls between lattice
    points."""
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    parts, truth = losses(run, "add_remove", "remove"), 2.612420578626924e-03
    made = pld.prepare(parts, lambda made: pld.at_eps(made, 1.0), 1e-3)[0]
    _, t, log_delta = pld.at_eps(made, 1.0)
    above, below = [], []
    for dx in (2e-3, 1e-3, 5e-4):
        curve = pld._curve(made, dx, t, (1.0, 1.0), log_delta, 1e-5, pld._Limits(1, 1 << 20, 1 << 21, False))
        above.append(curve.upper(1.0) / truth - 1)
        below.append(1 - curve.lower(1.0) / truth)
        assert 0 < above[-1] < 3.2e3 * dx * dx + 1e-4  # 2.9e-3 at dx = 1e-3 [theory: grid.mesh]
        # of second moment, groups of three fine cells lose 0.111 dx^2, and the last group, of mass 0.1, up to 2 dx^2
        assert 0 < below[-1] < 0.5 * 1000 * t * (1 + t) * (0.111 + 0.2) * dx * dx + 1e-4
    assert above[0] / above[1] == pytest.approx(4, rel=0.25)
    assert above[1] / above[2] == pytest.approx(4, rel=0.25)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-15, 1e-30, 1e-100])
def test_tiny_deltas_are_as_good(delta):
    bound = hs.epsilon(hs.gaussian(10.0) * 100, delta, route="pld", rtol=1e-3)
    exact = hs.epsilon(hs.gaussian(10.0) * 100, delta, route="contour")
    assert bound.lower <= exact.upper
    assert bound.upper >= exact.lower
    assert bound.width <= 1e-3 * bound.estimate


@pytest.mark.parametrize(
    ("k", "truth"),
    [(10**7, 1014.067072835614869734), (10**8, 8939.180070648941655262), (10**9, 85578.29426008203755628)],
)
def test_evolving_mesh(k, truth):  # [theory: grid.stages]
    """Counts whose plain circle would be long; truths as in benchmarks/cases.py."""
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * k
    parts = losses(run, "add_remove", "remove")
    lower, estimate, upper, terms, _ = pld.root(parts, 1e-5, 1e-3)
    assert lower <= truth <= upper
    assert upper - lower <= 1e-3 * truth
    assert abs(estimate / truth - 1) < 3e-4
    assert terms[2] < 0.2  # rounding over the stages


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [4**5, 4**5 + 77])
def test_stages_stay_on_their_side(upper, k):  # [theory: grid.stages, grid.tilted-mass]
    """The k-fold law in stages, against one plain power of the same masses: above or below it, by little."""
    dx, t = 0.01, 3.0
    laws = lattice_laws(hs.gaussian(20.0), dx, t=t)
    steps = (laws.upper if upper else laws.lower).steps
    law = evolve.Law(int(steps.j0[0]), steps.p, 0.0, 0.0)
    plain = evolve.power(law, k, dx, t, upper, 1)
    parts = evolve.evolve(law, k, dx, t, 4, upper, 1)
    assert len(parts) == (1 if k == 4**5 else 3)
    whole = np.ones(1)
    first = 0.0
    for one, count in parts:
        for _ in range(count):
            whole, first = np.convolve(whole, one.p), first + one.at + one.first * dx * 16
        assert one.omega < 1e-8
    y = first + np.arange(whole.size) * dx * 16
    x = (plain.first + np.arange(plain.p.size)) * dx
    for eps in (0.0, 1.0, 3.0, 6.0):
        staged = float(np.sum(whole[y > eps] * -np.expm1(eps - y[y > eps])))
        direct = float(np.sum(plain.p[x > eps] * -np.expm1(eps - x[x > eps])))
        if upper:
            assert direct * (1 - 1e-7) <= staged <= direct * 1.25
        else:
            assert direct * 0.75 <= staged <= direct * (1 + 1e-7)


@pytest.mark.parametrize("add", [False, True])
def test_blocks_are_the_steps_one_by_one(add):
    """Additive noise goes to C by blocks: table and laws as from each step's own nodes and tails, whatever the
    threads."""
    steps = [hs.laplace(1.0 + i / 9) for i in range(20)] + [hs.gaussian(2.0 + i / 9) for i in range(20)]
    steps = [hs.poisson_subsampled(step, 0.1 + i / 100) if i % 3 else step for i, step in enumerate(steps)]
    run = hs.compose(*((step, 1 + i) for i, step in enumerate(steps)), (hs.discrete_laplace(2.0), 3))
    parts = losses(run, "add_remove", "add" if add else "remove")
    alone = tuple((loss._replace(additive=None), k) for loss, k in parts)
    one, other, threaded = dots.plan(parts, 1e-15), dots.plan(alone, 1e-15), dots.plan(parts, 1e-15, n_threads=3)
    assert one.batch.at.size == 40 and other.batch.at.size == 0
    for a, b, c in zip(one.table, other.table, threaded.table, strict=True):
        assert np.allclose(a, b, rtol=1e-9) and np.array_equal(a, c)
    at = np.where(np.abs(one.table.t) < 100)[0][::40]
    for t, k0 in zip(one.table.t[at], one.table.k0[at], strict=True):
        direct = sum(k * float(loss.cgf(t, 1e-15)[0]) for loss, k in parts)
        assert k0 == pytest.approx(direct, rel=1e-9, abs=1e-9)
    dx, t = 0.01, 4.0
    place = dots.offsets(one, dx)
    first, size = dots.windows(one, dx, 1e-9, 1e-12, place)
    found = [dots.lattice_laws(plan, dx, place, first, size, t, n) for plan, n in ((one, 1), (other, 1), (one, 3))]
    for upper, lower, edge, above, _ in found[1:]:
        assert np.array_equal(upper.p, found[0][0].p) and np.array_equal(lower.p, found[0][1].p)
        assert np.array_equal(edge, found[0][2]) and np.array_equal(above, found[0][3])
    wide = dots.windows(other, dx, 1e-9, 1e-12, place)
    assert np.all(wide[0] <= first) and np.all(first + size <= wide[0] + wide[1]) and np.all(size > 0.85 * wide[1])


def test_scipy_fallback(monkeypatch):
    run = hs.laplace(2.0) * 30
    first = hs.epsilon(run, 1e-12)
    monkeypatch.setenv("HS_NO_PYFFTW", "1")
    second = hs.epsilon(run, 1e-12)
    assert first.lower <= second.upper and second.lower <= first.upper
    assert second.width <= 1e-2 * second.estimate
    assert as_run(run).steps == 30


@pytest.mark.parametrize(
    ("run", "route"),
    [
        (hs.poisson_subsampled(hs.laplace(1.0), 0.05) * 500, "pld"),
        (hs.approx_dp(0.1, 1e-4) * 10 + hs.from_curve([0.1, 0.5, 1.0], [0.2, 0.05, 1e-6]) * 3, "auto"),
    ],
)
def test_many_points_share_convolutions(run, route):
    """Unsorted, with ends beyond the losses and below -45: what the points give one by one, at the width promised."""
    eps = np.array([2.0, -50.0, 0.3, 40.0, -1.0, 4.0, 0.3, 0.7, 1.1, 1.3, 3.0, 60.0])
    both = hs.delta(run, eps, route=route, rtol=1e-2)
    assert "pld" in both.route and np.all(both.width <= 1e-2 * both.estimate)
    for i, e in enumerate(eps.tolist()):
        one = hs.delta(run, e, route=route, rtol=1e-2)
        assert one.lower <= both.upper[i] and both.lower[i] <= one.upper
    logs = hs.log_delta(run, eps, route=route, rtol=1e-2)
    assert np.all(np.exp(logs.lower) <= both.upper) and np.all(both.lower <= np.exp(logs.upper) * (1 + 1e-12))


@pytest.mark.parametrize("count", [1, 3])
def test_tilted_mass_that_coarser_lower_laws_lose_is_carried_on(count):  # [theory: grid.stages]
    """Errors are relative to the tilted mass before: a coarser law below has less of it, one above has more."""
    rng = np.random.default_rng(count)
    for _ in range(20):
        p, t, dx = rng.dirichlet(np.ones(200)), float(rng.uniform(0.1, 30)), float(10 ** rng.uniform(-4, -1))
        x = dx * np.arange(p.size)
        before = math.log(float(p @ np.exp(t * x)))
        for upper in (True, False):
            law = evolve.coarsened(evolve.Law(0, p, 0.0), dx, t, count, upper)
            after = math.log(float(law.p @ np.exp(t * dx * 2**count * np.arange(law.p.size))))
            assert before <= after + law.lost + 1e-9
            assert law.lost <= (0.0 if upper else abs(before - after) + 1e-9)


@pytest.mark.parametrize("run", [hs.randomized_response(1.0) * 5, hs.discrete_gaussian(3.0) * 3, hs.laplace(1.0) * 3])
def test_what_no_grid_reaches_is_refused_at_once(run, monkeypatch):
    """Rounding alone is wider: no finer mesh is tried, of which one took seconds."""
    made = []
    monkeypatch.setattr(pld, "discretise", lambda *asked, own=pld.discretise: made.append(1) or own(*asked))
    for rtol, most in (1e-12, 2), (1e-14, 0):
        if rtol < 1e-12 or run.steps != 3:
            with pytest.raises(hs.AccuracyError):
                hs.delta(run, 0.3, rtol=rtol, route="pld")
            assert len(made) <= most
            made.clear()
    with pytest.raises(hs.AccuracyError):
        hs.epsilon(run, 1e-3, rtol=1e-14, route="pld")
    assert len(made) <= 4  # of some thirty points


def test_finer_meshes_end_where_the_masses_round_by_more(monkeypatch):
    """Masses of 1e-6 of a density lose more digits than the mesh gains: two meshes say so, three took 4 s."""
    made = []
    monkeypatch.setattr(pld, "discretise", lambda *asked, own=pld.discretise: made.append(1) or own(*asked))
    with pytest.raises(hs.AccuracyError):
        hs.delta(hs.bounded_range(0.5) * 2, 0.2, rtol=1e-9, route="pld")
    assert len(made) <= 2


def test_finer_meshes_stay_on_the_atoms():
    """Beside them the lower law moves every atom by a part of the mesh: 3e-6 of delta, where 2e-11 are rounding."""
    widths, own = [], pld._curve

    def watched(*asked):
        curve = own(*asked)
        widths.append(1 - curve.lower(0.3) / curve.upper(0.3))
        return curve

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pld, "_curve", watched)
        with pytest.raises(hs.AccuracyError):
            hs.delta(hs.randomized_response(1.0) * 5, 0.3, rtol=1e-12, route="pld")
    assert len(widths) == 2 and max(widths) < 1e-10


KNOWN = [
    (hs.bounded_range(0.5) * 2, 0.2),
    (hs.laplace(3.0) * 30, 1.0),
    (hs.gaussian(2.0), 3.0),
    (hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000, 1.0),
]


@pytest.mark.parametrize(("run", "eps"), KNOWN)
def test_rounding_is_at_least_what_is_known_before(monkeypatch, run, eps):  # [theory: grid.fft-least]
    """What a plan says of rounding is no more than is claimed, and not much less of the rounding of long circles."""
    from hockeystick.grid.convolve import rounding_lower

    seen, convolve = [], pld.convolve

    def watched(grid, plan, *more):
        tail = convolve(grid, plan, *more)
        at = max(eps, tail.y_lo)
        seen.append((rounding_lower(plan), tail.at(at)[3] / tail.value(at)))
        return tail

    monkeypatch.setattr(pld, "convolve", watched)
    hs.delta(run, eps, route="pld")
    assert seen
    for least, claimed in seen:
        assert 1e-4 * claimed < least <= claimed


def test_no_circle_is_filled_whose_rounding_is_wider_than_asked(monkeypatch):
    """It took 9 s."""
    monkeypatch.setattr(pld, "convolve", lambda *_: pytest.fail("a convolution was made"))
    run = hs.bounded_range(0.5) * 2
    with pytest.raises(hs.AccuracyError):
        hs.delta(run, 0.2, rtol=3e-12, route="pld")  # the contour answers


def test_a_law_at_one_point_has_no_error_of_transforms():
    """Its logarithm was asked for: math domain error. The weights of its tail are beyond doubles, which is said."""
    step = hs.gaussian_mixture(1.3583872487410984, [0.0, 1.0], [1.0, 2.990188922923643e-78])
    with pytest.raises(hs.AccuracyError, match="does not fit a double"):
        hs.log_delta(step, 2.7174483972604997, route="prv")  # auto has an upper end


def test_no_mesh_is_made_whose_rounding_would_be_all_of_the_width(monkeypatch):
    """Rounding grew to 1.7e-3 and 7.8e-3 of delta; a third mesh had 4.7e-2, of 800,000 points and after 7 s."""
    meshes, curve = [], pld._curve
    monkeypatch.setattr(pld, "_curve", lambda made, dx, *rest: meshes.append(dx) or curve(made, dx, *rest))
    num = [0.9047787857501368, 3.263431599854141e-09, 0.09522121098643141]
    den = [0.904726025707633, 3.20737256154579e-09, 0.09527397108499457]
    found = hs.delta(hs.from_pmf(num, den) * 37_111_872, 7.9178042570668685, direction="add", route="pld")
    assert found.upper < found.lower * 1.04
    assert len(meshes) == 3 and min(meshes) > 1e-7
