"""Groups of records: quadrature in 30 digits, mixtures in the plane, the pairs of one record, text, refusals."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes.finite import describe
from hockeystick.what import condensed as condensing
from hockeystick.what.condensed import condensed
from hockeystick.what.law import opposite_mixtures_loss
from hockeystick.what.pair import losses, step_loss

STEP = hs.poisson_subsampled(hs.gaussian(2.0), 0.125)


def truth(step, size, eps, adjacency, add):
    """H of the double mixture, from coins of the records: the mass of num - e^eps den beyond the x at which the loss
    is eps."""
    clips = [1.0] * size if isinstance(size, int) else size
    q, unit = mpmath.mpf(step.q), mpmath.mpf(step.base.sensitivity) / mpmath.mpf(step.base.sigma)
    law = {mpmath.mpf(0): mpmath.mpf(1)}
    for clip in clips:
        more = {}
        for s, p in law.items():
            for shift, weight in ((s, 1 - q), (s + mpmath.mpf(clip), q)):
                more[shift] = more.get(shift, 0) + p * weight
        law = more

    def mixture(of, x, sign):
        return mpmath.fsum(p * of(x - sign * s * unit) for s, p in law.items())

    def both(of, x):
        sides = [mixture(of, x, 1), mixture(of, x, -1) if adjacency == "replace_one" else of(x)]
        return sides[::-1] if add else sides

    def loss(x):
        num, den = both(mpmath.npdf, x)
        return mpmath.log(num / den)

    sign = -1 if add else 1
    at = mpmath.findroot(lambda x: loss(x) - eps, sign * 3.0, tol=1e-30)
    num, den = both(lambda x: mpmath.ncdf(-sign * x), at)
    return num - mpmath.exp(eps) * den


@pytest.mark.parametrize("adjacency", ["add_remove", "zero_out", "replace_one"])
@pytest.mark.parametrize("size", [2, 7, [1.0, 0.25], (0.5, 0.5, 2.0)])
def test_one_step_against_its_law(size, adjacency):  # [theory: pair.groups]
    run = hs.group(STEP, size)
    for direction, eps in (("remove", 1.25), ("add", 0.125)):
        with mpmath.workdps(30):
            exact = truth(STEP, size, mpmath.mpf(eps), adjacency, direction == "add")
        bound = hs.delta(run, eps, adjacency=adjacency, direction=direction, rtol=1e-9)
        assert bound.lower <= exact <= bound.upper, (bound, exact)


def test_one_record_is_the_sampled_step():
    """The double mixture of one coin, by its own tails, has those of the two-sided branch."""
    p = np.array([0.875, 0.125])
    s = np.linspace(-4.0, 4.0, 700)
    one, own = (
        loss.tails(s)
        for loss in (opposite_mixtures_loss(np.array([0.0, 0.5]), p, np.log(p)), step_loss(STEP, "replace_one", False))
    )
    for a, b in zip(one[:4], own[:4], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert one.edge < 1e-12
    assert hs.group(STEP, 1) is STEP and hs.group(STEP, [1.0]) is STEP and hs.group(STEP, [1, 1]) == hs.group(STEP, 2)
    assert hs.group(hs.gaussian(2.0), 3) == hs.gaussian(2.0, sensitivity=3.0)
    assert hs.group(hs.laplace(2.0) * 2 + hs.discrete_gaussian(5.0), 4) == (
        hs.laplace(2.0, sensitivity=4.0) * 2 + hs.discrete_gaussian(5.0, sensitivity=4)
    )


def test_mixtures_in_the_plane_are_dominated():  # [theory: pair.comparison, pair.groups]
    """Contributions in any directions of the plane, no longer than their bounds: H by sums over a grid of
    mesh h, which lose about h^2/8 times the slope of what is summed where that begins."""
    rng = np.random.default_rng(3)
    x, h = np.linspace(-9.0, 9.0, 361, retstep=True)
    grid = np.stack(np.meshgrid(x, x), axis=-1)
    for _ in range(25):
        g, q, eps = int(rng.integers(2, 4)), rng.choice([0.25, 0.5]), rng.uniform(-0.5, 2.0)
        clips = rng.choice([0.5, 1.0, 1.5], g)
        step = hs.poisson_subsampled(hs.gaussian(1.0), float(q))
        densities = []
        for _ in range(2):
            angle = rng.uniform(0, 2 * math.pi, g)
            lengths = clips * rng.choice([1.0, rng.random()], g)
            moves = lengths[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
            if rng.random() < 0.3:
                moves = np.stack([clips, np.zeros(g)], 1) * (-1) ** len(densities)
            total = np.zeros(grid.shape[:2])
            for mask in range(2**g):
                part = np.array([mask >> i & 1 for i in range(g)])
                weight = np.prod(np.where(part, q, 1 - q))
                total += weight * np.exp(-0.5 * ((grid - part @ moves) ** 2).sum(-1)) / (2 * math.pi)
            densities.append(total)
        bare = np.exp(-0.5 * (grid**2).sum(-1)) / (2 * math.pi)
        run = hs.group(step, clips.tolist())
        for num, den, options in (
            (*densities, {"adjacency": "replace_one"}),
            (densities[0], bare, {"direction": "remove"}),
            (bare, densities[0], {"direction": "add"}),
        ):
            found = np.maximum(num - math.exp(eps) * den, 0.0).sum() * h * h
            assert found <= hs.delta(run, eps, **options).upper + 1e-4


def test_many_records_and_many_steps():
    """The routes meet; larger groups reveal more; far below post-hoc group privacy; a thousand records."""
    step = hs.poisson_subsampled(hs.gaussian(20.0), 0.001)
    for adjacency in ("add_remove", "replace_one"):
        found = [hs.epsilon(hs.group(step, size) * 100, 1e-6, adjacency=adjacency) for size in (1, 10, 100, 1000)]
        assert all(a.upper < b.lower for a, b in itertools.pairwise(found))
        assert all(b.width <= 2e-3 * b.upper for b in found)
    run = hs.group(STEP, 3) * 30
    for direction in ("remove", "add"):
        line, pld = (hs.delta(run, 4.0, route=route, direction=direction) for route in ("contour", "pld"))
        assert line.lower <= pld.upper and pld.lower <= line.upper and line.width < 1e-9 * line.upper
    cut = hs.group(hs.poisson_subsampled(hs.gaussian(20.0), 0.01), 60) * 1000
    assert describe(cut, losses(cut, "add_remove", "remove"), 0, "add_remove", 120.0).lost > 0  # largest sums are moved
    line, pld = (hs.epsilon(cut, 1e-6, route=route) for route in ("contour", "pld"))
    assert line.lower <= pld.upper and pld.lower <= line.upper and line.width < 1e-9 * line.upper
    one = hs.epsilon(STEP * 30, 1e-9)
    assert hs.epsilon(run, 1e-6).upper < 3 * one.lower


@pytest.mark.parametrize(
    "sigma, q, size, k, delta, width",
    [
        (2.0, 0.01, 4, 20, 1e-6, 1e-9),  # few of a group in a sample: the tilt is far below that of a normal loss
        (2.0, 0.01, 4, 10, 1e-6, 1e-8),
        (2.676, 0.01504, 49, 976, 1e-10, 1e-9),  # sums of more than four deviations of the noise
        (5.07, 0.3791, 34, 228, 1e-9, 1e-9),
    ],
)
def test_few_in_a_sample_and_large_sums_stay_on_the_line(sigma, q, size, k, delta, width):
    """By a grid these were 6e-4 wide; what it says at a tolerance meets the line."""
    run = hs.group(hs.poisson_subsampled(hs.gaussian(sigma), q), size) * k
    line, pld = hs.epsilon(run, delta), hs.epsilon(run, delta, route="pld", rtol=1e-5)
    assert line.route == "contour" and line.width <= width * line.upper
    assert line.lower <= pld.upper and pld.lower <= line.upper and pld.width <= 1e-5 * pld.upper


def test_exponentials_beyond_doubles_are_no_missing_nodes():  # [theory: law.mixture-turn]
    """What lies beyond the points at the largest power: the terms there peak at reach times the shift, where e^{sx}
    overflows; a sum in logarithms. Where the points overflow, nothing is bounded."""
    shift, weight, reach, first, h = np.array([0.0, 3.0]), np.array([0.9, 0.1]), 50.0, -10.0, 0.125
    rows = _core.mixture_points(np.array([[2, first, h, 500, 3000, reach, 30.0]]), shift, weight, 0)
    x = first + h * np.arange(500, 3500)
    terms = reach * np.logaddexp(math.log(0.9), math.log(0.1) + 3 * (x - 1.5)) - 0.5 * x * x
    assert rows[3, -2] >= np.logaddexp.reduce(terms) + math.log(h / math.sqrt(2 * math.pi)) > 9e3
    rows = _core.mixture_points(np.array([[2, first, h, 6000, 10, reach, 30.0]]), shift, weight, 0)
    assert (rows[2:4, -2:] == math.inf).all()


@pytest.mark.parametrize("size", [3, (0.5, 1.0, 1.0)])
@pytest.mark.parametrize("alpha, direction", [(1.5, "add"), (3.25, "remove"), (40.0, "remove")])
def test_divergences(size, alpha, direction):  # [theory: law.shifts]
    """E R^a by a fine sum in long double, whose error falls beyond every power of its mesh; the moments bound of it."""
    run = hs.group(STEP, size)
    shifts, weights, _ = (x.astype(np.longdouble) for x in run.shifts())
    x = np.arange(-5120, 17920).astype(np.longdouble) / 128
    log_r = np.logaddexp.reduce(np.multiply.outer(shifts, x) + (np.log(weights) - shifts**2 / 2)[:, None], axis=0)
    power = alpha if direction == "remove" else 1 - alpha
    terms = power * log_r - x * x / 2
    exact = float(np.logaddexp.reduce(terms) + math.log(2 * math.pi) * -0.5 - math.log(128)) / (alpha - 1)
    found = hs.rdp(run, alpha, direction=direction)
    assert abs(found.estimate - exact) < 1e-10 * exact and found.lower <= exact * (1 + 1e-12)
    assert found.upper >= exact * (1 - 1e-12) and found.width < 1e-9 * exact
    assert hs.moments_epsilon_upper(run * 50, 1e-6) >= hs.epsilon(run * 50, 1e-6).lower


def test_cyclic():
    """All records in one part, of the largest norms."""
    options = {"iterations": 6, "bands": 2, "dataset_size": 100, "per_record": True}
    run = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, **options)
    found = hs.epsilon(hs.group(run, 3), 1e-6)
    other = hs.epsilon(hs.group(hs.poisson_subsampled(hs.gaussian(4.0), 0.5), 3) * 3, 1e-6)
    assert found.lower <= other.upper and other.lower <= found.upper
    normed = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, **options, column_norms=[1.0, 2.0, 3.0, 0.5, 0.5, 1.0])
    noise = [hs.gaussian(4.0, sensitivity=x) for x in (3.0, 1.0, 0.5)]  # of (3, 1, 0.5) and (2, 1, 0.5)
    other = hs.epsilon(hs.group(hs.compose(*(hs.poisson_subsampled(n, 0.5) for n in noise)), 2), 1e-6)
    found = hs.epsilon(hs.group(normed, 2), 1e-6)
    assert found.lower <= other.upper and other.lower <= found.upper
    fixed = hs.cyclic_poisson(hs.gaussian(4.0), 0.5, iterations=6, bands=2, dataset_size=100)
    with pytest.raises(hs.DomainError, match="add_remove"):
        hs.epsilon(hs.group(fixed, 3), 1e-6)


def used(n, q, most, g):
    """Pr[others used, group used], by all counts that are sampled."""
    law = {}
    for a, i in itertools.product(range(n - g + 1), range(g + 1)):
        p = math.comb(n - g, a) * math.comb(g, i) * q ** (a + i) * (1 - q) ** (n - a - i)
        for j in range(max(0, min(most, a + i) - a), min(i, most) + 1):
            b = min(most, a + i)
            kept = math.comb(a, b - j) * math.comb(i, j) / math.comb(a + i, b)
            law[b - j, j] = law.get((b - j, j), 0.0) + p * kept
    return law


@pytest.mark.parametrize(
    ("n", "q", "most", "g"), [(6, 0.3, 2, 2), (12, 0.5, 3, 4), (20, 0.9, 10, 5), (8, 0.3, 8, 2), (9, 0.5, 2, 9)]
)
def test_groups_in_truncated_samples(n, q, most, g):  # [theory: pair.groups-truncated]
    """The law of who is used, and one step, against all counts of sampled records."""
    step = hs.group(hs.truncated_poisson_subsampled(hs.gaussian(1.5), q, dataset_size=n, max_batch=most), g)
    law, laws = used(n, q, most, g), step.laws()
    assert math.fsum(w for w, *_ in laws) == pytest.approx(1, abs=1e-15)
    full = {len(p) - 1: w * p for w, _, p, _ in laws}  # by room, the free one last among those of g
    for i in range(min(g, most + 1) if most < n else 0):
        expected = [law.get((most - i, j), 0.0) for j in range(i + 1)]
        assert (i in full) == (sum(expected) > 0)
        assert i not in full or full[i] == pytest.approx(np.array(expected), rel=1e-12)
    x = np.linspace(-25, 25, 20001)
    for adjacency, add, eps in itertools.product(("zero_out", "replace_one"), (False, True), (0.1, 0.7)):
        value = 0.0
        for m in {m for m, _ in law}:
            row = [(j / 1.5, p) for (k, j), p in law.items() if k == m]
            sides = [sum(p * np.exp(-((x - s * sign) ** 2) / 2) for s, p in row) for sign in (1, -1)]
            if adjacency == "zero_out":
                sides[1] = sum(p for _, p in row) * np.exp(-(x**2) / 2)
            num, den = sides[::-1] if add else sides
            value += float(np.maximum(num - math.exp(eps) * den, 0).sum()) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        bound = hs.delta(step, eps, adjacency=adjacency, direction="add" if add else "remove")
        assert bound.lower * (1 - 1e-5) - 1e-9 <= value <= bound.upper * (1 + 1e-5) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_no_data_pass_groups_in_truncated_samples(seed):  # [theory: pair.groups-truncated]
    """Outputs of any contributions, of others and of a group, zeroed or replaced: all samples and all ways to cut."""
    rng = np.random.default_rng(seed)
    n, g, most, q, sigma = 6, 2, 3, 0.4, 1.0
    values = np.where(rng.random(n) < 0.5, np.sign(rng.normal(size=n)), rng.uniform(-1, 1, n))
    values[:g] = 1.0 if seed else values[:g]
    other = np.array([*(-values[:g]), *values[g:]])
    zeroed = np.array([*np.zeros(g), *values[g:]])
    x = np.linspace(-14, 14, 14001)
    laws = []
    for data in (values, zeroed, other):
        law = np.zeros(x.size)
        for drawn in itertools.product((0, 1), repeat=n):
            held = [i for i in range(n) if drawn[i]]
            ways = list(itertools.combinations(held, min(most, len(held))))
            for way in ways:
                weight = q ** len(held) * (1 - q) ** (n - len(held)) / len(ways)
                law += weight * np.exp(-((x - data[list(way)].sum()) ** 2) / (2 * sigma**2))
        laws.append(law * (x[1] - x[0]) / math.sqrt(2 * math.pi) / sigma)
    step = hs.group(hs.truncated_poisson_subsampled(hs.gaussian(sigma), q, dataset_size=n, max_batch=most), g)
    for eps, (adjacency, near) in itertools.product((-0.5, 0.2, 1.0, 2.0), (("zero_out", 1), ("replace_one", 2))):
        for direction, (num, den) in (("remove", (laws[0], laws[near])), ("add", (laws[near], laws[0]))):
            value = float(np.maximum(num - math.exp(eps) * den, 0).sum())
            assert value <= hs.delta(step, eps, adjacency=adjacency, direction=direction).upper + 1e-9


def test_groups_in_truncated_samples_and_their_judge():
    """Truncation that is next to never leaves the Poisson sample; the judge writes the law by other sums."""
    base = hs.gaussian(1.0)
    wide = hs.group(hs.truncated_poisson_subsampled(base, 0.01, dataset_size=10_000, max_batch=2000), 3)
    free = hs.epsilon(hs.group(hs.poisson_subsampled(base, 0.01), 3) * 50, 1e-6)
    for run in (wide * 50, wide * 20 + wide * 30):
        bound = hs.epsilon(run, 1e-6, adjacency="zero_out")
        assert bound.lower <= free.upper and free.lower <= bound.upper and bound.width < 1e-2
    cut = hs.group(hs.truncated_poisson_subsampled(base, 0.01, dataset_size=10_000, max_batch=130), 3)
    assert hs.from_json(hs.to_json(cut)) == cut
    for adjacency in ("zero_out", "replace_one"):
        bound = hs.epsilon(cut * 20, 1e-6, adjacency=adjacency, direction="remove")
        options = {"delta": 1e-6, "adjacency": adjacency, "direction": "remove", "seconds": 60}
        assert hs.verify(cut * 20, bound, **options).verdict == "confirmed"
        assert hs.verify(cut * 20, (bound.lower / 2, bound.lower * 0.99), **options).verdict == "refuted"
    for options, words in (({"adjacency": "add_remove"}, "add_remove"), ({}, "zero_out")):
        with pytest.raises(hs.DomainError, match=words):
            hs.epsilon(cut, 1e-6, **options)


def test_steps_are_refused():
    noise = hs.gaussian(2.0)
    refused = [
        hs.without_replacement(noise, dataset_size=100, max_batch=10),
        hs.truncated_poisson_subsampled(noise, 0.1, dataset_size=(90, 100), max_batch=12),
        hs.random_allocation(noise, 10),
        hs.cyclic_poisson(noise, 0.5, iterations=4, bands=1, dataset_size=9, max_batch=3),
        hs.poisson_subsampled(hs.laplace(1.0), 0.5),
        hs.group(STEP, 2),
    ]
    for step in refused:
        with pytest.raises(hs.DomainError, match="group takes"):
            hs.group(step, 2)
    cut = hs.truncated_poisson_subsampled(noise, 0.1, dataset_size=100, max_batch=12)
    for size in (33, 101):
        with pytest.raises(hs.DomainError, match="at most 32 records"):
            hs.group(cut, size)
    with pytest.raises(hs.DomainError, match="group takes"):
        hs.group(cut, [1.0, 0.5])
    with pytest.raises(hs.DomainError, match="group takes"):
        hs.group(3, 2)
    with pytest.raises(hs.DomainError, match="sums"):
        hs.group(STEP, [math.sqrt(i) for i in range(2, 20)])
    with pytest.raises(hs.DomainError, match="integer"):
        hs.group(hs.discrete_gaussian(4.0), [0.5, 0.25])
    with pytest.raises(hs.DomainError, match="sigma"):
        hs.group(hs.poisson_subsampled(hs.gaussian(0.01), 0.5), 100)


def many_shifts(rng, n):
    shifts = rng.choice([rng.uniform(0, 3, n), np.minimum(rng.exponential(0.3, n), 4), rng.beta(0.5, 3, n)])
    weights = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0]))) + 1e-12
    shifts[0], weights[0] = 0.0, rng.uniform(0.01, 3)
    return shifts, weights / math.fsum(weights.tolist())


@pytest.mark.parametrize("seed", range(3))
def test_many_shifts_as_few(seed):  # [theory: law.condensed]
    """R of both from all shifts in long double, where the claim holds and is no larger than it need be; one step
    exactly; routes that meet."""
    rng = np.random.default_rng(seed)
    shifts, weights = many_shifts(rng, 20_000)
    step = hs.gaussian_mixture(1.0, shifts.tolist(), weights.tolist())
    few = condensed(step)
    assert few.half > 0 and few.shifts.size < 1200 and few.shifts[-1] == shifts.max()
    s, w = shifts.astype(np.longdouble), weights.astype(np.longdouble)
    for x in (-60.0, -3.0, 0.0, 2.0, 20.0, 60.0, 150.0):
        top = (s * x - s * s / 2).max()
        whole, part = (
            np.log((v * np.exp(r * x - r * r / 2 - top)).sum())
            for r, v in ((s, w / w.sum()), (few.shifts.astype(np.longdouble), few.weights.astype(np.longdouble)))
        )
        off = few.off_upper(x)
        assert abs(whole - part) <= off and (off < 1e-11 or abs(x) > 60)
    eps = 0.25
    low, high = -20.0, 40.0
    for _ in range(200):
        x = 0.5 * (low + high)
        low, high = (x, high) if np.log((w * np.exp(s * x - s * s / 2)).sum()) < eps else (low, x)
    exact = float((weights * ndtr(shifts - x)).sum() - math.exp(eps) * ndtr(-x))
    one = hs.delta(step, eps, direction="remove")
    assert abs(one.estimate - exact) < 1e-9 * exact and one.width < 1e-9 * exact
    for direction, at in (("remove", eps), ("add", eps), ("add", 0.01)):  # at 0.01 aliases are bounded at large powers
        line, pld = (hs.delta(step * 30, at, route=route, direction=direction) for route in ("contour", "pld"))
        assert line.lower <= pld.upper and pld.lower <= line.upper and line.width < 1e-9 * line.upper


def test_cells_are_told_from_their_neighbours(monkeypatch):  # [theory: law.condensed]
    """With one moment less than is claimed the factor is beyond what is claimed: the claim sees the last one."""
    rng = np.random.default_rng(7)
    shifts, weights = rng.uniform(0, 3, 4000), rng.dirichlet(np.ones(4000))
    step = hs.gaussian_mixture(1.0, shifts.tolist(), weights.tolist())
    monkeypatch.setattr(condensing, "POINTS", 3)
    few = condensed.__wrapped__(step)
    x = 150.0
    s, w = shifts.astype(np.longdouble), weights.astype(np.longdouble)
    whole, part = (
        np.log((v * np.exp(r * x - r * r / 2 - 230)).sum())
        for r, v in ((s, w / w.sum()), (few.shifts.astype(np.longdouble), few.weights.astype(np.longdouble)))
    )
    off = float(few.off_upper(x))
    assert 1e-4 * off < abs(float(whole - part)) <= off


def test_more_than_64_shifts():
    """Weights on many shifts that add up to those of few: the same curve."""
    n = 200
    many = hs.gaussian_mixture(3.0, [0.0] * n + [1.0] * n, [0.75 / n] * n + [0.25 / n] * n) * 5
    few = hs.poisson_subsampled(hs.gaussian(3.0), 0.25) * 5
    a, b = hs.delta(many, 0.5, route="pld"), hs.delta(few, 0.5)
    assert a.lower <= b.upper and b.lower <= a.upper and a.width < 1e-2 * a.upper


@pytest.mark.parametrize("size", [1e-15, 3e-14])
def test_what_moments_of_a_cell_are_off_by(monkeypatch, size):  # [theory: law.condensed]
    """Of a rule whose points and weights are off: the largest Chebyshev moment, in 40 digits."""
    rule = condensing.gauss_rule

    def rough(*args):
        points, weights = rule(*args)
        off = size * np.cos(np.arange(points.size))
        return points + off[::-1], weights * (1 + off)

    monkeypatch.setattr(condensing, "gauss_rule", rough)
    shifts, weights = np.linspace(1.0, 1.03, 24), np.full(24, 0.25)
    points, own, apart = condensing._gauss(shifts, weights)
    assert len(points) == condensing.POINTS
    with mpmath.workdps(40):
        middle, n = mpmath.mpf(2 * math.floor(condensing.CELLS) + 1) / (2 * condensing.CELLS), 2 * condensing.POINTS

        def moments(at, mass):
            t, w = [(mpmath.mpf(s) - middle) * 2 * condensing.CELLS for s in at], [mpmath.mpf(x) for x in mass]
            return [
                mpmath.fsum(x * mpmath.chebyt(i, s) for s, x in zip(t, w, strict=True)) / mpmath.fsum(w)
                for i in range(n)
            ]

        off = max(
            abs(a - b) for a, b in zip(moments(shifts.tolist(), weights.tolist()), moments(points, own), strict=True)
        )
    assert size < off <= apart < off + 3e-15
