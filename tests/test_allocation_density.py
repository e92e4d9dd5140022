"""Random allocation by points of its density: against closed forms, convolution, the transform on rotated lines and
each other."""

import itertools
import math

import numpy as np
import pytest
import scipy.special
from mpmath import mp

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import mixed, option
from hockeystick.what import allocation_density, allocation_jumps, allocation_line, allocation_path

RTOL = 1e-8


@pytest.mark.parametrize(("m", "t"), [(0.2, 400), (0.01, 10**7), (0.5, 10**6), (0.1, 100), (1e-3, 10**6), (0.01, 3)])
def test_moments_are_those_of_the_transform(m, t):
    """M(0), E e^-L, M_REMOVE(1) in closed form, E (S/t)^-c by the transform: the rule for points, lines, cuts
    [theory: allocation.points, allocation.line, allocation.cut, allocation.smooth]."""
    found = allocation_density.points(m, t, 64.0, 0.4, 18.0)
    num, error = np.exp(found.log_num), found.error
    assert abs(num.sum() - 1) < 2 * (num * error).sum() + 1e-13
    assert abs(np.exp(found.log_den).sum() - 1) < 2 * (np.exp(found.log_den) * error).sum() + 1e-13
    square = num * np.expm1(found.loss)  # E_P (S/t) - 1
    assert abs(square.sum() - math.expm1(m * m) / t) < (np.abs(square) * error).sum() + 1e-12 * np.abs(square).sum()
    for c in (0.5, 3.0, 2 * math.sqrt(t) / m * 0.1):
        log_f, off, _ = _core.allocation_line(m, t, c, np.zeros(0), np.zeros(_core.allocation_work()))
        mine = num * np.exp(-c * found.loss)
        assert abs(math.log(mine.sum()) - log_f) < off + (mine * error).sum() / mine.sum() + 1e-12
    assert float(np.median(error)) < 1e-9


def test_logs_of_normal_tails():
    """Upper bounds everywhere, and near from 3 deviations on."""
    x = np.concatenate([np.linspace(-40, 40, 401), [0.5, 0.5 + 1e-15, 300.0, 1e4]])
    for found, at in zip(allocation_line.log_normal_tails_upper(x), x, strict=True):
        true = float(mp.log(mp.erfc(mp.mpf(at) / mp.sqrt(2)) / 2))
        assert true <= found <= 0 and (at < 3 or found < true + 0.12)


def test_the_density_of_two_terms_is_their_convolution():
    """The line, its aliases, ends and cut for t = 2 [theory: allocation.line, allocation.cut]."""
    m = 0.1
    law = allocation_density._Law(m, 2)
    with np.errstate(all="ignore"):
        for z in (-4.0, 0.0, 4.0):
            law.line(0.0), law.line(z)
            x = np.array([z - 0.5, z, z + 0.5]) * law.sd
            log, error = law.density(x, law.line(z))
            g = np.linspace(-12, 12, 40001)
            first = np.exp(m * g - m * m / 2)
            for at, mine, off in zip(x, log, error, strict=True):
                rest = 2 + at - first
                ok = rest > 0
                h = (np.log(rest[ok]) + m * m / 2) / m
                inner = np.exp(-(g[ok] ** 2) / 2 - h * h / 2) / (2 * math.pi * m * rest[ok])
                assert abs(mine - math.log(inner.sum() * (g[1] - g[0]))) < off + 1e-11
                assert off < 1e-8


@pytest.mark.parametrize(
    ("m", "t", "z"),
    [(0.2, 50, 5.0), (0.5, 400, 0.0), (0.05, 2, -5.0), (2e-3, 2, -7.5), (0.5, 10**4, 2.5), (0.6, 10**6, 5.0)],
)
def test_bounds_of_a_line_hold(m, t, z):
    """The tail of |C|^t and the peak of a density, against sums [theory: allocation.line]."""
    law = allocation_density._Law(m, t)
    with np.errstate(all="ignore"):
        line = law.line(z)
        R, start = line.rule, 0.5 * line.top
        y = np.linspace(start, 2 * start, 400)  # beyond, the rule in g is not made for it
        values = np.exp(-np.multiply.outer(1j * y - line.r, R.d)) @ R.w
        whole = (np.abs(values / math.exp(line.kappa)) ** t).sum() * (y[1] - y[0])
        assert whole < math.exp(line.log_tail_upper(start)) < 1e6 * whole + 1e-6 * start
        near, error = line.visit(t * line.slope + np.linspace(-1, 1, 9) * law.sd, 20 * law.sd)
        assert (near < np.exp(line.log_peak_upper(line.r) - t * line.kappa) + error).all()


def test_densities_of_different_cuts_meet():
    """What a cut rejects is a small part of the density, or most of it [theory: allocation.cut]."""
    m, t, z = 0.5, 10**5, 4.0
    law = allocation_density._Law(m, t)
    x, found = np.array([z * law.sd]), []
    with np.errstate(all="ignore"):
        for left in (46.0, 24.0, 12.0, 6.0):
            b = law._cut(z, left)
            line = allocation_line.Line(m, t, law._tilt(z, b, law.eta)[0], b, law.eta, 1.0)
            log, error = law.density(x, line)
            found.append((float(log[0]), float(error[0])))
    (best, least), *others = found
    assert least < 1e-9
    for log, error in others:
        assert abs(log - best) < error + least
    assert found[-1][1] > 1e-7  # else the rejected are not seen here


@pytest.mark.parametrize(("m", "t", "z"), [(0.2, 50, 5.0), (0.5, 400, 0.0), (0.5, 10**4, 2.5)])
def test_errors_of_weights_as_large_as_they_are_said_to_be(m, t, z):
    law = allocation_density._Law(m, t)
    with np.errstate(all="ignore"):
        line = law.line(z)
        x, period = t * line.slope + np.linspace(-1, 1, 5) * law.sd, 20 * law.sd
        (value, error), (log, off) = line.visit(x, period), law.density(x, line)
        line.rule.w, line.rule.size = line.rule.w * (1 + 1e-7), line.rule.size + 1e-7
        line.rule._term = None
        (moved, claimed), (log_moved, log_claimed) = line.visit(x, period), law.density(x, line)
    for by, said in ((np.abs(moved - value), claimed + error), (np.abs(log_moved - log), log_claimed + off)):
        assert (by <= said).all() and (said < 2 * by).any()


@pytest.mark.parametrize(
    ("sigma", "t", "epochs", "delta"), [(5.0, 1000, 4, 1e-6), (4.0, 10**4, 50, 1e-9), (20.0, 10, 100, 1e-6)]
)
def test_both_directions_are_narrow_where_many_steps_meet_much_noise(sigma, t, epochs, delta):
    """[theory: allocation.points]"""
    run = hs.random_allocation(hs.gaussian(sigma), t) * epochs
    remove, add = (hs.epsilon(run, delta, direction=direction) for direction in ("remove", "add"))
    for b in (remove, add):
        assert b.certified and b.upper - b.lower < RTOL * b.lower
    old = mixed.root([mixed.AllocationStep(1 / sigma, t, 1, epochs)], math.log(delta))
    if old is not None:  # the transform knows this direction
        assert max(old.lower, add.lower) <= min(old.upper, add.upper)
    assert abs(remove.estimate / add.estimate - 1) < 1e-2


@pytest.mark.parametrize(
    ("sigma", "t", "epochs", "delta"),
    [(50.0, 1000, 10, 1e-60), (100.0, 30_000, 26, 1e-250), (26.6, 200_000, 1, 1e-113)],
)
def test_a_deep_delta_takes_deep_windows(sigma, t, epochs, delta):
    """Probabilities below the smallest double are known by their logarithms [theory: allocation.cut]."""
    run = hs.random_allocation(hs.gaussian(sigma), t) * epochs
    b = hs.epsilon(run, delta)
    assert b.certified and b.upper - b.lower < RTOL * b.lower
    assert hs.delta(run, b.lower * (1 - 1e-6)).upper > delta > hs.delta(run, b.upper * (1 + 1e-6)).lower


def _two_steps(m, eps, add):
    """delta of t = 2 to 30 digits: S/2 = e^{m A - v/2} cosh(m B), A, B independent normals of variance 1/2; over A in
    closed form, over B by the trapezoid rule."""
    v, k = mp.mpf(m) ** 2, mp.exp(-eps if add else eps)
    sd, h, total = mp.sqrt(v / 2), mp.mpf(1) / 12, mp.mpf(0)
    for j in range(160):
        mean = mp.exp(-v / 4) * mp.cosh(mp.mpf(m) * j * h)
        d = (mp.log(mean / k) + v / 4) / sd
        price = k * mp.ncdf(sd - d) - mean * mp.ncdf(-d) if add else mean * mp.ncdf(d) - k * mp.ncdf(d - sd)
        total += price * mp.exp(-((j * h) ** 2)) * (2 if j else 1)
    return total * h / mp.sqrt(mp.pi) * (mp.exp(eps) if add else 1)


@pytest.mark.parametrize("sigma", [40.0, 263.0, 900.0])
@pytest.mark.parametrize(("add", "delta"), [(False, 1e-10), (True, 1e-6), (True, 1e-12)])
def test_few_steps_with_much_noise(sigma, add, delta):
    """Nodes left of the rule, the tail and the peak of lines with large tilts [theory: allocation.cut,
    allocation.line]."""
    b = hs.epsilon(hs.random_allocation(hs.gaussian(sigma), 2), delta, direction="add" if add else "remove")
    assert b.certified and b.upper - b.lower < 1e-7 * b.lower
    with mp.workdps(30):
        low, high = (_two_steps(1 / sigma, mp.mpf(x), add) for x in (b.lower, b.upper))
        assert low * (1 + mp.mpf(10) ** -13) >= delta >= high * (1 - mp.mpf(10) ** -13)


@pytest.mark.parametrize(("sigma", "add", "delta"), [(263.0, False, 1e-60), (900.0, True, 1e-60), (40.0, False, 1e-24)])
def test_a_deep_delta_of_two_steps(sigma, add, delta):
    """Cells beyond the points of a narrow window [theory: allocation.points, allocation.tail]."""
    b = hs.epsilon(hs.random_allocation(hs.gaussian(sigma), 2), delta, direction="add" if add else "remove")
    assert b.certified and b.upper - b.lower < 1e-6 * b.lower
    with mp.workdps(30 - 2 * round(math.log10(delta))):
        low, high = (_two_steps(1 / sigma, mp.mpf(x), add) for x in (b.lower, b.upper))
        assert low * (1 + mp.mpf(10) ** -13) >= delta >= high * (1 - mp.mpf(10) ** -13)


@pytest.mark.parametrize(("sigma", "t", "epochs", "delta"), [(6.8, 152, 10**5, 1e-196), (8.0, 300, 2000, 1e-90)])
def test_a_deep_delta_of_many_epochs_is_that_of_the_transform(sigma, t, epochs, delta):
    """Points for what one epoch adds to a deep loss, bounds for the rest of its window [theory: allocation.points]."""
    b = hs.epsilon(hs.random_allocation(hs.gaussian(sigma), t) * epochs, delta, direction="add")
    assert b.certified and b.upper - b.lower < RTOL * b.lower
    old = mixed.root([mixed.AllocationStep(1 / sigma, t, 1, epochs)], math.log(delta))
    assert old is not None and max(old.lower, b.lower) <= min(old.upper, b.upper)


@pytest.mark.parametrize(("m", "t"), [(0.2, 400), (0.6, 10**5), (0.02, 3)])
def test_bounds_of_tails_hold(m, t):
    """[theory: allocation.tail, allocation.cut]"""
    found = allocation_density.points(m, t, 64.0, 0.7, 16.0)
    law, unit = allocation_density._law(m, t, False), m / math.sqrt(t)
    lines = [line for line in law.lines.values() if line]
    for side in (1, -1):
        at = side * unit * np.arange(0.5, 7.0)
        with np.errstate(all="ignore"):
            bounds = law.log_tails_upper(at, side > 0, 64.0, lines)
            assert (
                max(law.log_tails_upper(side * unit * np.array([40.0]), side > 0, 500.0, lines)) < -60
            )  # by a tilt that reaches far
        for log_mass, bound in zip((found.log_num, found.log_den), bounds, strict=True):
            mass = np.array([np.exp(log_mass[side * found.loss > side * x]).sum() for x in at])
            assert (np.log(mass) < bound + 0.5 / unit * (found.loss[1] - found.loss[0]) * (1 + 7)).all()
            assert (np.log(mass) > bound - 6).all()


def _at_one_node(z, weight=1.0):
    """Rows of term_turned and term_grown that make their sums the functions of one z."""
    rows = np.zeros((4, 16))
    rows[:, 5] = z, weight, 1.0, 1.0
    return rows


def test_functions_that_lose_their_first_terms():
    """Of one node, relative, and of 1 - cos z with sin z - z to the sum of both; a phase too large to be reduced."""
    z = np.concatenate([np.geomspace(1e-5, 300, 200), -np.geomspace(1e-5, 300, 200), [0.5, -0.5, 1, -1, 1e5, 4e5]])
    with mp.workdps(40):
        for x in z.tolist():
            half, less, off, move = _core.term_turned(_at_one_node(x), np.array([-1.0]))[:, 0]
            true = 1 - mp.cos(x), mp.sin(x) - mp.mpf(x)
            both = abs(true[0]) + abs(true[1])
            for mine, claim, one in zip((half, less), (8 if abs(x) < 1 else 14, 14), true, strict=True):
                assert abs(mine - one) <= claim * 2.0**-53 * (abs(one) if abs(x) < 1 else both)
            assert off == pytest.approx(float(both), rel=1e-14) and move == min(abs(x), 2)
            if abs(x) <= 300:
                h2, slope, error, grown = _core.term_grown(_at_one_node(x), 1.0, 0.5)
                assert abs(h2 / (mp.expm1(x) - mp.mpf(x)) - 1) < 24 * 2.0**-53
                assert abs(slope / (x * mp.expm1(x)) - 1) < 8 * 2.0**-53
                assert error == pytest.approx(h2 + abs(math.expm1(x)), rel=1e-14)
                assert grown == pytest.approx(math.exp(0.5 * x), rel=1e-14)
    half, less, off, move = _core.term_turned(_at_one_node(1e6, 3.0), np.array([2.0]))[:, 0]
    assert (half, less, off, move) == (3.0, 6e6, 2e6 + 1 + 6, 2.0)


@pytest.mark.parametrize("b", [3.0, 8.8])
def test_the_density_of_a_large_term(b):
    """k at x - y, alone, and what it is off by; one larger and one smaller term on cells [theory: allocation.jump]."""
    m, eta = 1.0, 0.1
    worst = 0.0
    with mp.workdps(40):
        for g in b + eta * np.linspace(-11.9, 30.0, 60):
            d, y = math.expm1(m * g - 0.5 * m * m), 7.25
            k, off, rough = _core.term_jumps(m, b, eta, 12.0, np.array([d + y]), np.array([[y], [1.0], [2.0]]))[:, 0]
            X = mp.mpf(d + y) - y + 1
            at = (mp.log(X) + mp.mpf(m) ** 2 / 2) / m
            true = mp.ncdf((at - b) / mp.mpf(eta)) * mp.exp(-(at**2) / 2) / (m * mp.sqrt(2 * mp.pi) * X)
            assert abs(k - true) <= rough * 2.0**-53 and off == 2 * k
            worst = max(worst, float(abs(k - true) / (rough * 2.0**-53)))
        assert _core.term_jumps(m, b, eta, 12.0, np.zeros(1), np.array([[1.5], [1.0], [1.0]])).sum() == 0
        cell, shell = np.array([[9.0, 20.0], [20.0, np.inf], [0.5, 0.25]]), np.array([[5.0, np.inf], [1.0, 0.125]])
        for x in (50.0, 1e4):
            total = mp.mpf(0)
            for d, end, mass in cell.T:
                for last, chance in shell.T:
                    w = max(mp.mpf(d), mp.mpf(x) - mp.mpf(end) - mp.mpf(last))
                    at = mp.log(1 + w) / m + mp.mpf(m) / 2
                    total += mass * chance * min(mp.mpf("0.003"), mp.exp(-(at**2) / 2) / (1 + w) / mp.sqrt(2 * mp.pi))
            assert abs(_core.term_two(m, 0.003, np.array([x]), cell, shell)[0] / total - 1) < 1e-12
    assert worst > 1e-3


@pytest.mark.parametrize(("sigma", "t", "delta"), [(1.6, 10**6, 1e-5), (1.8, 3000, 1e-5), (1.4, 1000, 1e-5)])
def test_less_noise_by_points_or_by_the_transform(sigma, t, delta):
    """Points where they reach far enough, else lines."""
    b = hs.epsilon(hs.random_allocation(hs.gaussian(sigma), t), delta, direction="remove")
    assert b.certified and b.upper - b.lower < 1e-7 * b.lower


CHARACTERISTIC = [
    (1.0, 10**6, 7.0, -32.26577170770303),
    (1.0, 10**6, 8.0, -39.551878250289874),
    (1.0, 10**6, 9.0, -44.27158605021722),
    (1.0, 10**6, 12.0, -47.90094605271283),
    (1.0, 10**6, 20.0, -54.056969592874275),
    (1.0, 10**6, 30.0, -58.97374896643685),
    (0.8, 10**5, 8.0, -37.68751842762741),
    (0.8, 10**5, 12.0, -53.06013653147398),
    (0.8, 10**5, 30.0, -67.50931903242797),
    (1.25, 10**7, 7.0, -33.85032655931457),
    (1.25, 10**7, 12.0, -41.915107357085496),
]
"""log of the density of W at deviations: `_characteristic` with a period of 300 deviations, a mesh of 0.012."""


def _characteristic(m, t, places, period, mesh):
    """The density from E e^{-iyd} in 48 digits by the trapezoid rule on a turned line, without tilts or cuts."""
    flint = pytest.importorskip("flint")
    acb, arb, flint.ctx.prec = flint.acb, flint.arb, 160
    m, h = arb(m), arb(mesh)
    sd = (t * (m * m).expm1()).sqrt()
    nodes = []
    for k in range(-int(15 / mesh), int(15 / mesh) + 1):
        g = acb(k * h, arb(-0.25))
        nodes.append((h * (-(g * g) / 2).exp() / (2 * arb.pi()).sqrt(), acb(0, -1) * ((m * g - m * m / 2).exp() - 1)))
    total, j, size = [arb(0.5)] * len(places), 0, 1.0
    while size > 1e-40:
        j += 1
        y = 2 * arb.pi() * j / (period * sd)
        c = sum((w * (y * d).exp() for w, d in nodes), acb(0)) ** t
        size = float(abs(c).mid())
        total = [s + (c * acb(0, y * z * sd).exp()).real for s, z in zip(total, places, strict=True)]
    return [float((2 * s / (period * sd)).log()) for s in total]


@pytest.mark.slow
def test_rows_of_characteristic_functions():
    m, t = 1.0, 10**6
    rows = [row for row in CHARACTERISTIC if row[:2] == (m, t)]
    for row, log in zip(rows, _characteristic(m, t, [row[2] for row in rows], 250, 0.012), strict=True):
        assert abs(log - row[3]) < 1e-9


@pytest.mark.parametrize(("m", "t"), sorted({row[:2] for row in CHARACTERISTIC}))
def test_one_large_term_is_most_of_a_far_density(m, t):
    """[theory: allocation.jump]"""
    found = allocation_density.points(m, t, 44.0, 0.7, 11.0)
    law = allocation_density._law(m, t, False)
    lines = {z: line for z, line in law.lines.items() if line}
    for *_, z, log in (row for row in CHARACTERISTIC if row[:2] == (m, t)):
        with np.errstate(all="ignore"):
            mine, error = law.density(np.array([z * law.sd]), lines[min(lines, key=lambda x: abs(x - z))])
        assert abs(mine[0] - log) < error[0] + 1e-13
        assert error[0] < 2e-7
    probability, at = np.exp(found.log_den), t * np.expm1(found.loss) / law.sd
    for z in (6.0, 10.0, 14.0, 20.0):  # points thinned by the window
        seen = math.log(probability[at > z].sum() + 1e-300)
        bound = law.jumps.log_tails_upper(np.array([z * law.sd]))[1][0]
        assert seen < bound + 0.1 and (bound < seen + 4 or z * law.sd > t * math.expm1(found.centres[1] - found.width))


def _jumps(law, deviations):
    b, eta = law._place(deviations), 2 * law.eta
    line = allocation_line.Line(law.m, law.t, 4.9 / law.sd, b, eta, 1.0)
    others = allocation_line.Line(law.m, law.t - 1, 0.0, b, eta, 0.8)
    return line, allocation_jumps.Jumps(law.sd, law.accepted, line, {0.0: others})


@np.errstate(all="ignore")
def test_what_a_wide_mesh_misses_of_a_jump(monkeypatch):
    """[theory: allocation.jump]"""
    law = allocation_density._Law(1.0, 10**6)
    monkeypatch.setattr(allocation_jumps, "MESHES", (0.7,))
    _, rough = _jumps(law, 3.0)
    rough.others.top = 3 / law.sd  # any place is valid
    rough.missed = rough._mesh()[1]
    monkeypatch.setattr(allocation_jumps, "MESHES", (0.06,))
    _, fine = _jumps(law, 3.0)
    x = np.linspace(2.0, 9.0, 50) * law.sd
    (coarse, error), (value, off) = rough.density(x), fine.density(x)
    by = np.abs(coarse - value)
    assert rough.missed > 1e3 * fine.missed
    assert (by < error + off).all() and by.max() > 0.01 * rough.missed


def _over(exact, bound, most):
    """An upper bound of a logarithm that is no more than so many nats too large."""
    assert exact <= bound + 1e-9 and bound <= exact + most, (exact, bound)


@pytest.mark.parametrize(("m", "t", "b", "r"), [(0.5, 50, 1.5, 0.3), (0.2, 400, 2.5, -0.2), (1.0, 2000, 3.0, 0.01)])
@np.errstate(all="ignore")
def test_bounds_that_a_line_is_made_of(m, t, b, r):
    """Each against a fine sum over the normal variable [theory: allocation.cut, allocation.line]."""
    line = allocation_line.Line(m, t, r, b, 2 * min(0.7, 0.05 / m), 1.0)
    R = line.rule
    g = np.linspace(-24.0, R.end, 100001)
    n, X = np.exp(-0.5 * g * g) * (g[1] - g[0]) / math.sqrt(2 * math.pi), np.exp(m * g - 0.5 * m * m)
    chi = scipy.special.ndtr((b - g) / R.eta)
    cell = np.clip(((g - R.g[0]) / R.H).astype(int), 0, R.g.size - 1)
    inside = (g >= R.g[0]) & (g < b + 6 * R.eta)
    peak = (-0.5 * g * g + np.log(chi + 1e-300) - m * g + 0.5 * m * m - R.log_peaks_upper()[cell])[inside]
    assert peak.max() <= 1e-9 and np.median(peak) > -1.5
    for shift in (0.0, m):
        _over(math.log((n * scipy.special.ndtr((g + shift - b) / R.eta)).sum()), R.log_rejected_upper(shift), 0.1)
    _over(math.log(n[-1] / (g[1] - g[0]) * chi[-1]), R.log_end_upper(0.0), 4)
    for q in (-0.1, 0.5, 3.0):
        fallen = n * np.exp(-q * X)
        mean = (chi * fallen).sum()
        _over(math.log(mean), R.log_mean(q, by_cells=True), 0.6)
        _over(math.log((chi * fallen / X).sum()), R.log_inverse_upper(q), 1.0)
        for tau in (0.2, 0.05):
            more = ((np.abs(scipy.special.ndtr((b - g + 1j * tau) / R.eta)) - chi) * fallen).sum()
            if more > 1e-10 * mean:
                _over(math.log(more), R.log_turned_upper(tau, q), 4)
    for at in (2.0, 6.0):
        left = math.log((n * np.exp(min(r, 0.0) * (X - 1)))[g < -at].sum())
        _over(left, line.log_left_upper(r, at) - 0.5 * at * at, 5)
    for power in (0, 1):
        left = (n * np.exp(r * (X - 1) - 0.4 * X) / X**power)[g < R.g[0]].sum()
        if left > 0:
            _over(math.log(left), line.log_beyond_upper(r, 0.4, power), 8)
    eta, missed = R.eta, []
    for wide, tau, y in itertools.product((1.0, 1.5), (0.17, 0.5, 1.4), (5.0, 20.0)):
        if m * tau < 1.4 and tau < 20 * eta:
            line.rule = R = allocation_line.Rule(m, b, eta, wide * eta, tau, 6.0, b + allocation_line.LAST * eta)
            s, sums = -r + 1j * y, ((n * chi, X - 1), (R.w, R.d))
            exact, rule = ((w * (np.expm1(-s * d) + s * d)).sum() for w, d in sums)
            missed.append(abs(exact - rule) / line.missed_upper(r, y))
    assert 0.005 < max(missed) < 1


@pytest.mark.parametrize(("m", "b"), [(0.5, 1.5), (0.3, 1.2)])
@np.errstate(all="ignore")
def test_what_a_cut_rejects_of_two_terms(m, b):  # [theory: allocation.cut]
    law, g = allocation_density._Law(m, 2), np.linspace(-12, 14, 100001)
    line = allocation_line.Line(m, 2, 0.3, b, law.eta, 1.0)
    for x in np.array([0.5, 1.0, 2.0]) * law.sd:
        other = (np.log(np.maximum(2 + x - np.exp(m * g - 0.5 * m * m), 1e-300)) + 0.5 * m * m) / m
        accepted = [scipy.special.ndtr((b - at) / law.eta) * (at < line.rule.end) for at in (g, other)]
        density = np.exp(-0.5 * (g * g + other * other) - m * other + 0.5 * m * m) * (1 - accepted[0] * accepted[1])
        exact = density.sum() * (g[1] - g[0]) / (2 * math.pi * m)
        _over(math.log(exact), law.log_rejected_upper(line, np.array([x]))[0], 4)


@pytest.mark.parametrize("deviations", [0.5, 3.0])
@np.errstate(all="ignore")
def test_bounds_of_a_jump_hold(deviations):  # [theory: allocation.jump]
    law = allocation_density._Law(1.0, 10**6)
    _, jumps = _jumps(law, deviations)
    g = np.linspace(jumps.b - 16 * jumps.eta, jumps.b + 30, 100001)
    X = np.exp(jumps.m * g - 0.5 * jumps.m**2)
    density = scipy.special.ndtr((g - jumps.b) / jumps.eta) * np.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)
    _over(math.log((density / (jumps.m * X)).max()), math.log(jumps.peak), 0.5)
    for tau, near, whole in ((0.7, 1e-3, 2e-3), (0.2, 1e-5, 1e-4)):
        s = X * math.sin(jumps.m * tau)
        exact = (density * np.exp(-near * s) / -np.expm1(-whole * s)).sum() * (g[1] - g[0])
        _over(math.log(exact), math.log(jumps._decay_upper(tau, near, whole)), 1)


@np.errstate(all="ignore")
def test_two_large_terms_where_the_cut_is_low():
    """[theory: allocation.jump]"""
    law = allocation_density._Law(1.0, 10**6)
    line, jumps = _jumps(law, 0.5)
    for *_, z, log in CHARACTERISTIC[:6]:
        x = np.array([z * law.sd])
        value, error, base = law.accepted(x, line)
        more, off = jumps.density(x)
        two = jumps.two_upper(x)[0]
        less = math.exp(log) - float(value[0] * math.exp(base[0]) + more[0])
        rest = float(error[0] * math.exp(base[0]) + off[0]) - two
        assert -rest < less < two + rest
        assert z != 9.0 or 1e6 * less > two


@pytest.mark.parametrize(
    ("sigma", "t", "delta"),
    [(1.0, 10**6, 1e-5), (1.0, 10**6, 1e-6), (0.9, 10**7, 1e-5), (1.1, 10**5, 1e-5), (0.92, 1_540_546, 1e-7)],
)
def test_many_steps_where_one_term_is_most_of_a_far_loss(sigma, t, delta):
    """Also where a deep window is mostly that term, and one less deep serves."""
    run = hs.random_allocation(hs.gaussian(sigma), t)
    for direction in ("remove", "add"):
        b = hs.epsilon(run, delta, direction=direction)
        assert b.certified and b.upper - b.lower < 1e-9 * b.lower
        assert hs.delta(run, b.upper, direction=direction).lower <= delta
        assert hs.delta(run, b.lower, direction=direction).upper >= delta


@pytest.mark.parametrize(
    ("sigma", "t", "epochs", "eps", "judged", "wide"),
    [
        (6.114128482549049, 5, 1, 0.46287595779288615, 2.40420838e-12, 1e-4),
        (3.431407726493947, 94, 5, 0.3693547829384208, 5.5564669244e-10, 1e-8),
    ],
)
def test_a_tilt_beyond_the_moments_of_the_transform(sigma, t, epochs, eps, judged, wide):
    """What points there are, where the transform of few steps with much noise declines: digits of hs.verify."""
    run = hs.random_allocation(hs.gaussian(sigma), t) * epochs
    b = hs.delta(run, eps, direction="remove", route="contour")
    assert b.lower <= judged * (1 + 1e-9) and judged * (1 - 1e-9) <= b.upper
    assert b.upper - b.lower < wide * b.upper
    back = hs.epsilon(run, judged, direction="remove", route="contour")
    assert back.lower <= eps * (1 + 1e-8) and eps * (1 - 1e-8) <= back.upper and back.upper - back.lower < wide


def test_points_that_are_known_roughly(monkeypatch):
    """Two large terms are a part of a far density; 0.0251345274 by Laplace inversion in 80 digits. The price of an
    option knows one epoch better."""
    run = hs.random_allocation(hs.gaussian(1.0), 30_000)
    price = hs.epsilon(run, 1e-6, direction="remove", route="contour")
    assert price.lower < 0.025134527405  # whose digits are cut off after 404
    assert 0.025134527404 < price.upper < price.lower * (1 + 1e-8)
    monkeypatch.setattr(option, "root", lambda *_: None)
    monkeypatch.setattr(option, "point", lambda *_: None)
    b = hs.epsilon(run, 1e-6, direction="remove", route="contour")
    assert b.lower < 0.025134527404 < b.upper < b.lower * (1 + 2e-3)


@pytest.mark.parametrize(("sigma", "delta"), [(2.0, 1e-6), (1.0, 1e-5)])
def test_epochs_of_very_many_steps_are_taken_by_points_of_their_density(sigma, delta):
    """By paths, whose place is few large terms, ten epochs of a million steps took 0.7 s, at noise 2 in vain."""
    b = hs.epsilon(hs.random_allocation(hs.gaussian(sigma), 10**6) * 10, delta, direction="remove")
    assert b.route == "contour" and b.upper - b.lower < 1e-10 * b.upper


DEEP = (
    (0.25, 10_000, 14.0, -98.7600353569134),
    (0.25, 10_000, 20.0, -194.31294066147882),
    (0.25, 10_000, 25.0, -297.59134912429573),
    (0.25, 10_000, 40.0, -380.03163116331234),
    (0.1, 300, 32.0, -432.4041964330381),
    (0.02, 6, 30.0, -358.243908148575),
)
"""m, t, z and the log of the density of W at z deviations, by inversion on the imaginary axis at 220 digits."""


@pytest.mark.parametrize(("m", "t", "z", "log"), DEEP)
@np.errstate(all="ignore")
def test_deep_densities(m, t, z, log):
    """Where one large term and many small ones make them up as well [theory: allocation.jump]."""
    known = allocation_density.known_by_lines(m, t, 500.0, 90.0)
    mine, error = known.density(np.array([z * allocation_density._law(m, t, True).sd]))
    assert abs(mine[0] - log) < error[0] + 1e-15 * abs(log)
    assert error[0] < 1e-6


@np.errstate(all="ignore")
def test_deep_densities_by_lines_and_by_paths():
    """Two ways that share a rule in g at most [theory: allocation.jump, allocation.path]."""
    m, t = 0.45, 3000
    known = allocation_density.known_by_lines(m, t, 500.0, 90.0)
    x = np.array([25.0, 30.0, 40.0, 60.0, 100.0, 400.0]) * allocation_density._law(m, t, True).sd
    (one, off), (other, more) = known.density(x), allocation_path.law(m, t).at(x)
    assert (np.abs(one - other) < off + more).all()
    assert (off + more < 2 * allocation_density.FINE).all()


@pytest.mark.parametrize(
    ("sigma", "t", "eps", "log"),
    [
        (42.0, 488, 0.031, -427.9678732708777),
        (160.0, 4, 0.07, -263.75244153934585),
        (30.0, 20, 0.2, -372.0806879420960),
    ],
)
def test_deep_deltas_of_an_epoch(sigma, t, eps, log):
    """Against E(S-K)_+/t by inversion at 400 digits: points of deep windows [theory: allocation.points]."""
    found = hs.delta(hs.random_allocation(hs.gaussian(sigma), t), eps, direction="remove")
    assert math.log(found.lower) < log < math.log(found.upper) < log + 2e-4


@pytest.mark.parametrize(
    ("sigma", "t", "epochs", "delta"),
    [(1.93, 4_893_199, 439, 2.6e-84), (5.41, 1_062_468, 6, 1.6e-297), (2.0, 2000, 3, 1e-150), (2.0, 10**4, 1, 1e-30)],
)
def test_deep_tails_of_epochs(sigma, t, epochs, delta):
    """Points far beyond what alike losses ask for, and a law that is parted below eps [theory: allocation.parts]."""
    found = hs.epsilon(hs.random_allocation(hs.gaussian(sigma), t) * epochs, delta, direction="remove")
    assert found.upper - found.lower < 1e-7 * found.upper
