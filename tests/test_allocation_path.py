"""Random allocation by paths through the transform of one term and its cut: against closed forms, convolution, direct
integration of that transform, and wider windows."""

import contextlib
import math

import numpy as np
import pytest
import scipy.integrate

import hockeystick as hs
from hockeystick.routes import general, mixed, option
from hockeystick.what import allocation_density, allocation_epoch, allocation_path


@pytest.mark.parametrize(("m", "t", "eta"), [(1.0, 40, 0.7), (0.5, 3000, 0.4)])
def test_masses_are_those_of_both_laws(m, t, eta):
    """All of both laws, and E_P S/t in closed form, of which large terms make up much [theory: allocation.path]."""
    found = allocation_path.points(m, t, 60.0, eta)
    num, den = np.exp(found.log_num), np.exp(found.log_den)
    beyond = np.exp(found.beyond[1][1, 0])
    assert abs(num.sum() - 1) < 2 * (num * found.error).sum() + 1e-13 + beyond
    assert abs(den.sum() - 1) < 2 * (den * found.error).sum() + 1e-13 + beyond
    assert float(np.median(found.error)) < 1e-9
    if found.whole:
        square = num * np.expm1(found.loss)
        assert square.sum() == pytest.approx(math.expm1(m * m) / t, rel=1e-9)


def test_values_are_those_of_an_integral_right_of_0():
    """Density, tail and call where few or one large term may be what is far, by inversion on one line that knows
    nothing of the cut [theory: allocation.path]."""
    m, t = 0.8, 60
    with np.errstate(all="ignore"):
        law = allocation_path.law(m, t)
    g = np.arange(-13, 13, 0.02)
    X, n = np.exp(m * g - m * m / 2), 0.02 * np.exp(-g * g / 2) / math.sqrt(2 * math.pi)
    sd = math.sqrt(t * math.expm1(m * m))
    dy = 0.01 / sd
    s = 0.5 / sd + 1j * dy * np.arange(4000)
    power = (np.exp(-np.multiply.outer(s, X - 1)) @ n) ** t * np.where(s.imag > 0, dy, 0.5 * dy) / math.pi
    x = sd * np.array([-2.5, -1.0, 0.5, 3.5, 5.0, 7.0])
    with np.errstate(all="ignore"):
        for j in range(3):
            true = (np.exp(np.multiply.outer(x, s)) @ (power * s**-j)).real
            true = np.array([true, 1 - true, true - x][j])
            seen = x > (3 * law.width if j else -2 * t)
            assert seen.sum() >= 3
            log, off = law.at(x[seen], j)
            assert (off < 1e-8).all()
            assert (np.abs(np.exp(log) - true[seen]) < 1e-11 * sd ** (j - 1) + off * true[seen]).all()


def _psi(m, s):
    """By integration over the turned normal variable."""
    turned = max(0.0, np.angle(s) - 1.2)

    def part(g, of):
        z = g - 1j * turned / m
        return of(np.exp(-s * np.expm1(m * z - m * m / 2) - z * z / 2) / math.sqrt(2 * math.pi))

    return sum(
        unit * scipy.integrate.quad(part, -14, 14, args=(of,), epsabs=1e-12, limit=400)[0]
        for unit, of in ((1, np.real), (1j, np.imag))
    )


def test_bounds_of_one_term_hold_and_are_near():
    """In boxes of Re s and Im s, on both sides of 0, also far left of it and near the cut [theory: allocation.path]."""
    rng = np.random.default_rng(7)
    ratios = []
    for m in (0.6, 1.0, 2.0, 4.0):
        path = allocation_path._Path.__new__(allocation_path._Path)
        with np.errstate(all="ignore"):
            path.law = path_law = allocation_path.law(m, 1000)
        path.m, path.t = m, 1000
        for i in range(12):
            size = 10 ** rng.uniform(-4, -1)
            low = size * rng.uniform(-1, 0.5)
            y = size * rng.uniform(0.2, 2)
            wide = 0.1 * size
            boxes = np.array([[low, low - 3 * size], [low + wide, low + wide - 3 * size], [y, y], [y + wide, y + wide]])
            with np.errstate(all="ignore"):
                bounds = path._log_psi_upper(*boxes)
            for bound, start in zip(bounds, boxes[0], strict=True):
                true = max(
                    math.log(abs(_psi(m, complex(start + wide * a, y + wide * b)))) for a in (0, 1, 0.5) for b in (0, 1)
                )
                assert true <= bound + 1e-9, (m, i, start)
            ratios.append(bounds[0] / max(size * size * math.expm1(m * m), 1e-9))
        assert path_law.log_upper(np.array([0.3]))[0] >= math.log(abs(_psi(m, 0.3 + 0j)))
    assert np.median(ratios) < 20


def test_boxes_cover_an_ellipse():
    """At all its points, and none reaches beyond it."""
    angle = np.linspace(0, 2 * math.pi, 500)
    for turn in (0.0, 0.02, 0.5):
        way, centre = 1j * complex(math.cos(turn), math.sin(turn)), 3 - 2j
        at = centre + way * (2.0 * np.cos(angle) + 1.5j * np.sin(angle))
        low, high, y1, y2 = (row[:, None] for row in allocation_path._boxes(centre, way, 2.0, 1.5, 6))
        inside = (low <= at.real + 1e-9) & (at.real <= high + 1e-9) & (y1 <= at.imag + 1e-9) & (at.imag <= y2 + 1e-9)
        assert inside.any(axis=0).all()
        assert abs(low.min() - at.real.min()) + abs(high.max() - at.real.max()) < 1e-3
        assert abs(y1.min() - at.imag.min()) + abs(y2.max() - at.imag.max()) < 1e-3
        at = centre + way * (np.repeat([-2.0, 2.0], 250) + 1.5j * np.cos(angle))
        low, high, y1, y2 = (row[:, None] for row in allocation_path._boxes(centre, way, 2.0, 1.5, 1, oval=False))
        inside = (low <= at.real + 1e-9) & (at.real <= high + 1e-9) & (y1 <= at.imag + 1e-9) & (at.imag <= y2 + 1e-9)
        assert inside.any(axis=0).all()


@np.errstate(all="ignore")
def test_values_do_not_depend_on_what_was_asked():
    one, other = allocation_path._Law(0.8, 60), allocation_path._Law(0.8, 60)
    x = 60 * np.linspace(0.3, 1.5, 40)
    one.at(np.concatenate([0.5 * x, x, 1.7 * x]))
    for asked, fresh in zip(one.at(x[8:20]), other.at(x[8:20]), strict=True):
        np.testing.assert_array_equal(asked, fresh)


@np.errstate(all="ignore")
def test_what_nodes_are_off_by(monkeypatch):
    """Nodes moved by a part of their panel, each to the same side of the sum; and one whose transform is not known."""
    of = allocation_path.law(0.8, 400)
    for i in np.searchsorted(of.place, (-1e-9, 1e-9)):
        x = -(of.h[i + 1] - of.h[i - 1]) / (of.place[i + 1] - of.place[i - 1])
        path = allocation_path._Path(of, of.place[i], x - 0.1, x + 0.1)

        def asked(path=path, x=x):
            value, error, _ = path.at(np.array([x]), 0, np.ones(1, dtype=bool))
            return value[0], error[0]

        def terms_at(s, path=path, x=x):
            path.s, path.nodes = s, allocation_epoch._on_line(path.m, path.t, s, False)
            return (np.exp((s - path.p) * x + path.t * path.nodes[0] - path.base) * path.w * path.way / 1j).real

        value, error = asked()
        s, (log, off), whole = path.s, path.nodes, terms_at(path.s)
        unknown = int(np.argmax(np.where(np.abs(whole) < 1e-3 * abs(value), np.abs(whole), 0.0)))
        path.nodes = log, np.where(np.arange(s.size) == unknown, np.inf, off)
        less, said = asked()
        assert 0.1 * said < abs(less - value) < said + error
        monkeypatch.setattr(allocation_path, "NODES_OFF", 1e-7)
        moved = 1e-7 * path.way * np.repeat(path.length, allocation_path.ORDER)
        terms_at(s + moved * np.sign(terms_at(s + moved) - whole))
        more, said = asked()
        assert 0.01 * said < more - value < said
        monkeypatch.undo()


@np.errstate(all="ignore")
def test_what_lies_beyond_a_path():
    """The integral of |psi|^t beyond its end, over it, by its nodes on a grid in log y [theory: allocation.path]."""
    of = allocation_path.law(2.0, 50)
    for i in np.searchsorted(of.place, (-1e-3, 1e-3, 0.1, 10.0)):
        x = -(of.h[i + 1] - of.h[i - 1]) / (of.place[i + 1] - of.place[i - 1])
        path = allocation_path._Path(of, of.place[i], x - 0.1 * abs(x), x + 0.1 * abs(x))
        y = path.end * np.exp(np.linspace(0, 6, 400))
        log, off = allocation_epoch._on_line(2.0, 50, path.p + path.way * y, False)
        size = np.where(off < 1e-6, np.exp(50 * log.real - path.base + path.way.real * y * path.low), 0.0)
        actual = math.log(np.trapezoid(size * y, np.log(y)) / path.end)
        assert off[size > 1e-6 * size.max()].max() < 1e-6
        assert actual < path._log_tail_upper(path.end) < actual + 6.5


@pytest.mark.parametrize("part", ["_Path", "_Cut"])
def test_what_a_path_or_the_cut_is_off_by_reaches_the_sum(monkeypatch, part):
    x = 60 * np.array([0.3, 0.8, 1.5])
    with np.errstate(all="ignore"):
        of = allocation_path._Law(0.8, 60)
        log, _ = of.at(x, 1)
        own = getattr(allocation_path, part).at

        def off(*asked):
            value, error, base = own(*asked)
            return value * (1 + 1e-6), error + 1.000001e-6 * np.abs(value), base

        monkeypatch.setattr(getattr(allocation_path, part), "at", off)
        moved, said = of.at(x, 1)
    assert (np.abs(np.expm1(moved - log)) < said).all()
    assert np.abs(moved - log).max() > 1e-8


def test_panels_of_the_cut_by_their_cells():
    """The sum over panels of what is largest on each, by many points a cell."""
    rng = np.random.default_rng(5)
    edges = np.exp(np.linspace(-3, 1, 3 * allocation_path.CUT_CELLS + 1))
    bound, x, c = rng.uniform(-2, 2, edges.size - 1), np.array([0.0, 2.0, 30.0]), 0.9
    for j in range(3):
        found = allocation_path._log_sum_upper((edges[:-1], edges[1:], bound, c), j, x)
        r = np.linspace(edges[:-1], edges[1:], 50)
        logs = bound + (1 - j) * np.log(r) - c * np.multiply.outer(x + 1, r)
        sums = np.exp(logs.max(axis=1).reshape(x.size, 3, -1).max(axis=2)).sum(axis=1)
        assert (np.log(sums) < found + 1e-12).all() and (found < np.log(sums) + 3).all()


def test_what_a_window_leaves_out_is_small_only_where_others_make_up_for_it():
    """A deep window's curve lies between a shallow one's and that plus what is left out.
    [theory: allocation.left-out]"""
    m, t, k = 0.8, 400, 30
    found = []
    for depth in (44.0, 90.0):
        points = allocation_path.points(m, t, depth + math.log(k), 0.7)
        step = mixed.DensityStep(
            points.columns(0), points.lost, k, allocation_density.CELLS, False, points.slow, points.left_out_of(0)
        )
        found.append(general.Finite([step], 0.0, k * points.lost))
    shallow, deep = found
    for eps in (2.0, 3.0, 6.0):
        less, more = (mixed.point(of.run, eps) for of in found)
        lost = shallow.lost_upper(eps, -1000.0)
        assert less.lower <= more.upper
        assert math.exp(more.lower) <= math.exp(less.upper) + lost
        assert 0 < lost < shallow.lost
    assert deep.lost_upper(2.0, 0.0) == deep.lost


@pytest.mark.parametrize(
    ("sigma", "t", "epochs", "delta"),
    [
        (1.4, 189, 47, 2.2e-129),
        (1.15, 40192, 19446, 3e-272),
        pytest.param(1.72, 3245, 80, 2.9e-47, marks=pytest.mark.slow),
    ],
)
def test_epochs_with_little_noise(sigma, t, epochs, delta):
    """Answers were 30 to 50 % wide: the moments of an epoch do not reach these losses, and one large loss is most of a
    tilted law."""
    run = hs.random_allocation(hs.gaussian(sigma), t) * epochs
    b = hs.epsilon(run, delta, direction="remove")
    assert b.route == "contour"
    assert b.upper - b.lower < 2e-5 * b.upper
    at = hs.log_delta(run, b.estimate, direction="remove")  # was between 2e-208 and 2e-127 for the first
    assert at.upper - at.lower < 2e-3
    assert at.lower <= math.log(delta) + 1e-2
    assert at.upper >= math.log(delta) - 1e-2


def test_a_path_that_cannot_begin():
    """Its first panel would be shorter than the least one, which was a ValueError; eps(1e-300) asks for this delta of
    e^-28779 where it leaves a direction out."""
    run = hs.random_allocation(hs.gaussian(1.0), 100) * 10
    with contextlib.suppress(hs.AccuracyError):
        assert hs.log_delta(run, 75.9, direction="add", route="contour").upper < -1e4


def test_a_few_large_terms_beside_many(monkeypatch):
    """One epoch: 4.5e-3 wide along the whole cut, where the bulk cancels."""
    run = hs.random_allocation(hs.gaussian(0.9), 100_000)
    b = hs.epsilon(run, 1e-12, direction="remove")
    assert b.upper - b.lower < 1e-9 * b.upper
    monkeypatch.setattr(option, "has_path", lambda *_: False)
    whole = hs.delta(hs.random_allocation(hs.gaussian(0.9), 100_000), b.estimate, direction="remove", route="contour")
    assert whole.lower < 1e-12 < whole.upper
    assert whole.upper - whole.lower > 1e-3 * whole.upper


def test_paths_are_not_laid_where_the_transform_knows_enough():
    """They took 20 s here, and the answer was the same, 5e-8 wide."""
    asked = hs.explain(hs.random_allocation(hs.gaussian(0.3), 2000) * 5, delta=1e-10)
    assert [each.route for each in asked.tried] == ["exact", "contour", "line"]
    assert asked.bound.upper - asked.bound.lower < 1e-7 * asked.bound.upper
