"""Several epochs of random allocation by how many losses are above a place: against the price of one epoch summed over
the loss of another, and against other places."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.answers import ZERO, Point, Scaled
from hockeystick.routes import contour, mixed, option, parts
from hockeystick.what import allocation_density, allocation_path
from hockeystick.what.allocation import RandomAllocation


def _step(sigma, steps, epochs, depth):
    found = allocation_path.points(1 / sigma, steps, depth + math.log(epochs), 0.7)
    columns, cells = found.columns(0), found.left_out_of(0)
    size = allocation_density.CELLS
    return mixed.DensityStep(columns, found.lost, epochs, size, False, found.slow, cells, points=found)


@pytest.fixture(scope="module")
def two():
    return _step(0.7, 2000, 2, 60.0)


@pytest.mark.parametrize("eps", [0.6, *[pytest.param(x, marks=pytest.mark.slow) for x in (0.3, 1.0, 2.5)]])
def test_two_epochs_are_the_price_of_one_over_the_loss_of_the_other(two, eps):
    """delta_2(eps) = int f(l) delta_1(eps - l) dl, whose integrand is smooth: every sixth point is enough
    [theory: allocation.smooth]. Neither lines nor parts enter."""
    law, epoch = two.points, RandomAllocation(hs.gaussian(0.7), 2000)
    total = 0.0
    for loss, log in zip(law.loss[::6].tolist(), law.log_num[::6].tolist(), strict=True):
        if log > math.log(1e-13 * max(total, 1e-30)) and loss < eps + 6:
            price = option.point(epoch, 0, eps - loss)
            total += 6 * math.exp(log + price.estimate)
    total += float(np.exp(law.log_num[::6][law.loss[::6] >= eps + 6]).sum()) * 6
    found = parts.point([two], eps, contour.RTOL)
    assert found.width < 1e-8
    assert math.exp(found.lower) - 1e-10 * total < total < math.exp(found.upper) + 1e-10 * total


def test_places_agree():
    """Where a law is parted is nobody's business [theory: allocation.parts]."""
    step = _step(1.0, 400, 6, 70.0)
    found = [parts._Sum([step], 0, place).point(1.6, contour.RTOL) for place in (0.8, 1.2, 1.6, 2.2)]
    assert max(one.lower for one in found) < min(one.upper for one in found)
    assert min(one.width for one in found) < 1e-8
    other = mixed.point([mixed.NormalStep(0.01, 1.0, 0, 1), step], 1.6)
    with_other = parts.point([mixed.NormalStep(0.01, 1.0, 0, 1), step], 1.6, contour.RTOL)
    assert with_other.lower < other.upper and other.lower < with_other.upper
    assert with_other.estimate > max(one.lower for one in found)


def test_lines_lie_below_a_saddle_of_the_largest_losses():
    """Next to the bulk the saddle of one loss above lies where a few of the largest outweigh all others: that line knew
    nothing, and the lower ones know all."""
    found = parts.point([_step(0.85, 66_792, 2, 55.0)], 0.04848, contour.RTOL)
    assert found.width < 2e-9
    assert math.exp(found.estimate) == pytest.approx(5.245551e-10, rel=1e-6)


def test_parts_are_the_whole(two):
    """Masses of both add up, and the bound of the mass above holds for it alone."""
    low, high = two.points.part(0.4)
    cells = allocation_density.CELLS + 1
    sums = [np.exp(of.columns[2, :-cells]).sum() for of in (low, high)]
    assert sum(sums) == pytest.approx(np.exp(two.points.log_num).sum(), rel=1e-13)
    assert sums[1] < high.mass < sums[1] * (1 + 1e-8)
    assert 0 < low.factor < 1e-8
    assert two.points.part(1e-3) is None
    assert two.points.part(60.0) is None


def test_few_epochs_with_large_rare_losses_are_narrow():
    """One line through both saw the rare losses alone, and was 9e-6 wide here."""
    run = hs.random_allocation(hs.gaussian(0.982), 8588) * 19
    bound = hs.epsilon(run, 7e-12, direction="remove")
    assert bound.upper - bound.lower < 3e-9 * bound.upper


def test_bounds_are_taken_next_to_every_place():
    """Of many places that are far apart, too: all below 1e-9 of the largest once had the bound of the least."""
    x = np.geomspace(1e3, 1e18, 20_000)
    found = allocation_path._at_some(lambda at: -np.log(at), x)
    assert (found >= -np.log(x)).all()
    assert (found < -np.log(x) + 2 * allocation_path.APART).all()


def test_a_term_of_which_next_to_nothing_is_known(monkeypatch):
    """Its lower end may be so far below its upper one that parts of it are 0 in a double."""
    monkeypatch.setattr(parts.mixed, "point", lambda *_, **__: Point(-730.0, -300.0, 0.0, ZERO, "contour"))
    found = parts._Sum([_step(0.85, 66_792, 2, 55.0)], 0, 0.04848).point(0.04848, 1e-9)
    assert found.lower < -728 and found.upper > -299


@pytest.mark.parametrize("points", [1000, 300_000, 2_000_000])
def test_a_line_over_points_has_a_limit_of_cost(monkeypatch, points):
    """Of 258,000 points a line took 131,072 nodes and 34 s, and a question fourteen such lines."""
    step, asked = mixed.DensityStep(np.zeros((5, points)), 0.0, 3, 1, False, True, np.zeros((2, 1))), []

    def call(have_eps, table, held, at, rtol, wide, nodes, place, lines):
        asked.append(nodes)
        return Scaled(mixed._core.TOO_WIDE, 0.0, 0.0, 0.0, 0.0, (0.0,) * 4, 0)

    monkeypatch.setattr(mixed, "_call", call)
    assert mixed.point([step], 1.0, contour.RTOL, None) is None
    assert asked[0] == mixed.NODES[0] and all(n * points <= mixed.DENSE_COST for n in asked[1:])
    assert len(asked) == (1 if points > 1_000_000 else 2)


@pytest.mark.parametrize("points, places", [(1000, 4), (70_000, 2)])
def test_a_law_of_very_many_points_is_parted_while_that_helps(monkeypatch, points, places):
    step, asked = mixed.DensityStep(np.zeros((5, points)), 0.0, 3, 1, False, True, np.zeros((2, 1))), []

    def point(part, eps, rtol):
        asked.append(eps)
        off = 1e-3 * len(asked)
        return Point(-1 - off, -1.0, -1 + off, ZERO, "contour")

    monkeypatch.setattr(parts, "parted", lambda _: 0)
    monkeypatch.setattr(parts._Sum, "__init__", lambda *_: None)
    monkeypatch.setattr(parts._Sum, "point", point)
    assert parts.point([step], 1.0, contour.RTOL).width == pytest.approx(2e-3, rel=1e-2)
    assert len(asked) == places
