"""Lattice laws: sums over one period against exact rational arithmetic and 60-digit convolutions."""

import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import contour, lattice
from hockeystick.what.mechanism import as_run
from hockeystick.what.pair import losses


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


# Exact laws: place -> mass, in units that need not be representable.


def rr(eps0):
    up = mp.exp(eps0) / (1 + mp.exp(eps0))
    return {mp.mpf(eps0): up, -mp.mpf(eps0): 1 - up}


def kary(eps0, k):
    z = mp.exp(eps0) + k - 1
    law = {mp.mpf(eps0): mp.exp(eps0) / z, -mp.mpf(eps0): 1 / z}
    return law | {mp.mpf(0): (k - 2) / z} if k > 2 else law


def dlap(scale, d):
    a = 1 / mp.mpf(scale)
    law = {a * (d - 2 * j): mp.tanh(a / 2) * mp.exp(-a * j) for j in range(1, d)}
    return law | {a * d: 1 / (1 + mp.exp(-a)), -a * d: mp.exp(-a * d) / (1 + mp.exp(-a))}


def dgauss(sigma, d):
    s2 = mp.mpf(sigma) ** 2
    weight = {x: mp.exp(-x * x / (2 * s2)) for x in range(-int(45 * sigma) - 3, int(45 * sigma) + 4)}
    total = mp.fsum(weight.values())
    return {d * (d - 2 * x) / (2 * s2): w / total for x, w in weight.items()}


def convolve(*laws):
    out = {mp.mpf(0): mp.mpf(1)}
    for law in laws:
        new = {}
        for x, p in out.items():
            for y, q in law.items():
                key = mp.nstr(x + y, 45)
                old = new.get(key, (x + y, mp.mpf(0)))
                new[key] = old[0], old[1] + p * q
        out = dict(new.values())
    return out


def exact_delta(law, eps):
    eps = mp.mpf(eps)
    return mp.fsum(p * -mp.expm1(eps - x) for x, p in law.items() if x > eps)


CASES = [
    (lambda: [(lattice.randomized_response(0.7), 6)], lambda: [rr(0.7)] * 6),
    (lambda: [(lattice.randomized_response(12.0), 5)], lambda: [rr(12.0)] * 5),
    (lambda: [(lattice.randomized_response(2e-4), 9)], lambda: [rr(2e-4)] * 9),
    (lambda: [(lattice.k_ary_randomized_response(1.3, 5), 7)], lambda: [kary(1.3, 5)] * 7),
    (lambda: [(lattice.k_ary_randomized_response(3.0, 2), 3)], lambda: [kary(3.0, 2)] * 3),
    (lambda: [(lattice.discrete_laplace(1.7, 4), 5)], lambda: [dlap(1.7, 4)] * 5),
    (lambda: [(lattice.discrete_laplace(0.4, 1), 4)], lambda: [dlap(0.4, 1)] * 4),
    (lambda: [(lattice.discrete_laplace(90.0, 3), 4)], lambda: [dlap(90.0, 3)] * 4),
    (lambda: [(lattice.discrete_gaussian(1.1, 1, 2), 2)], lambda: [dgauss(1.1, 1)] * 2),
    (lambda: [(lattice.discrete_gaussian(0.45, 2), 1)], lambda: [dgauss(0.45, 2)]),
    (  # one lattice for several laws, and units that miss it by rounding: 0.3 is not three times 0.1
        lambda: [
            (lattice.randomized_response(0.1), 2),
            (lattice.randomized_response(0.3), 2),
            (lattice.discrete_laplace(5.0, 2), 1),
        ],
        lambda: [rr(0.1)] * 2 + [rr(0.3)] * 2 + [dlap(5.0, 2)],
    ),
]


@pytest.mark.parametrize("make, exact", CASES)
def test_against_convolution(make, exact):  # [theory: line.lattice, pair.discrete-laplace]
    """Bulk, tail, close to the largest loss, at a lattice point, below the bulk, negative eps: contained, and
    narrow."""
    run, law = lattice.compose(make()), convolve(*exact())
    top = float(max(law))
    places = sorted(law)
    for eps in (0.1 * top, 0.6 * top, 0.93 * top, top * (1 - 1e-7), float(places[len(places) // 2]), 0.0, -0.4 * top):
        truth = exact_delta(law, eps)
        if truth < mp.mpf(10) ** -150:
            continue
        low, mid, high, terms, _ = lattice.point(run, eps)
        assert low <= mp.log(truth) <= high
        assert high - low < 1e-8 and abs(mid - mp.log(truth)) <= (high - low)
        assert len(terms) == len(contour.TERMS) and min(terms) >= 0
        log_delta = float(mp.log(truth))
        if truth < 0.9 and eps <= 0.95 * top:
            low, _, high, *_ = lattice.root(run, log_delta)
            at = [exact_delta(law, e) for e in (low, high)]
            assert at[0] >= mp.exp(log_delta) >= at[1]


def test_commensurate_or_not():  # [theory: line.commensurate]
    one, tenth = lattice.randomized_response(1.0), lattice.discrete_laplace(10.0, 3)
    assert lattice.compose([(one, 3), (tenth, 2)]).lattice[0] == pytest.approx(0.2)
    assert lattice.compose([(one, 3), (lattice.randomized_response(math.pi), 2)]) is None


@pytest.mark.parametrize("sigma, k", [(100.0, 10**4), (1000.0, 10**6), (1000.0, 10**9)])
def test_wide_discrete_gaussian(sigma, k):
    """Sums are normal on a lattice of step h = 1/sigma^2, up to e^(-2 pi^2 sigma^2); the kink at eps costs h^2 of a
    density."""
    mu, h = math.sqrt(k) / sigma, sigma**-2
    eps = mu * mu / 2 + 3 * mu
    truth = hs.delta(hs.gaussian(1 / mu), eps).estimate
    bound = hs.delta(hs.discrete_gaussian(sigma) * k, eps)
    slack = 1e-13 + (h / mu) ** 2 * 100
    assert bound.route == "contour" and bound.width < 1e-8 * truth
    assert bound.lower <= truth * (1 + slack) and truth * (1 - slack) <= bound.upper


def test_scratch_too_small_and_empty_table():
    run = lattice.compose([(lattice.randomized_response(1.0), 3)])

    def asked(table, points, line, eps, nodes, size):
        return _core.mixed_ask(table, points, line, 1, eps, 1e-9, 30.0, 0.0, nodes, np.zeros(2), np.empty(size))

    assert asked(run.table, run.points, run.lattice, 1.0, 64, 10)[0] == 3
    many, points = np.repeat(run.table, 200, axis=0), np.tile(run.points, 200)
    assert asked(many, points, run.lattice, 1.0, 64, 10**4)[0] == 3
    once = lattice.compose([(lattice.randomized_response(1.0), 600)])
    answer = asked(many, points, once.lattice, 300.0, 4096, 10**5)
    other = asked(once.table, once.points, once.lattice, 300.0, 4096, 10**5)
    assert answer[0] == other[0] == 0 and 1e-4 < answer[3] < 1 and answer[1:5] == pytest.approx(other[1:5], rel=1e-9)
    assert asked(run.table[:0], points, run.lattice, 1.0, 64, 10**5)[0] == 3


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("sigma, q, k", [(3.9, 0.9999, 2), (2.0, 0.01, 20), (0.7, 0.6, 3)])
def test_atoms_whose_mass_is_below_all_doubles(sigma, q, k, direction):
    """Sampled discrete noise has atoms that underflow under one law alone: the line leaves them out and counts them."""
    run = hs.poisson_subsampled(hs.discrete_gaussian(sigma), q) * k + hs.gaussian(1.0)
    masses = [loss.atoms().num.min() for loss, _ in losses(as_run(run), "add_remove", direction)[:1]]
    found, grid = (hs.delta(run, 1.0, direction=direction, route=route) for route in ("contour", "pld"))
    assert found.lower <= grid.upper and grid.lower <= found.upper
    assert found.upper - found.lower < 1e-9 * found.upper
    assert direction == "remove" or min(masses) == 0.0
