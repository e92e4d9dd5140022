"""Lemmas of the theory book that no answer shows alone, each against numbers from elsewhere, some nearly equal."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import integrate
from scipy.special import ndtr

import hockeystick as hs
from hockeystick import _core
from hockeystick.grid import evolve
from hockeystick.routes import finite_sample
from hockeystick.routes.finite_sample import Moments

U = 2.0**-53


def curve(a, num, den, weight):
    """sup_S num(S) - a den(S) of densities at points of equal weight."""
    return float(np.maximum(num - a * den, 0).sum() * weight)


def mixture(weights, centres, x):
    """Density at points x (..., d) of a mixture of unit normal laws."""
    d = x.shape[-1]
    squares = ((x[..., None, :] - np.array(centres)) ** 2).sum(axis=-1)
    return (np.exp(-0.5 * squares) @ np.array(weights)) / (2 * math.pi) ** (d / 2)


def test_centres_on_one_line_are_the_worst():  # [theory: pair.comparison]
    """Random mixtures in the plane lie below those on a line, and meet them where they lie on one themselves."""
    rng = np.random.default_rng(11)
    side = np.linspace(-8, 8, 321)
    plane, line = np.stack(np.meshgrid(side, side), axis=-1), np.linspace(-8, 8, 3201)[:, None]
    nearest = 0.0
    for case in range(20):
        n, m = rng.integers(1, 4, 2)
        c, d = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
        s, t = rng.uniform(0, 2, n), rng.uniform(0, 2, m)
        turn = np.zeros(n + m) if case < 3 else rng.uniform(0, 2 * math.pi, n + m)
        unit = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        v, w = s[:, None] * unit[:n], -t[:, None] * unit[n:]
        p, q = mixture(c, v, plane), mixture(d, w, plane)
        p1, q1 = mixture(c, s[:, None], line), mixture(d, -t[:, None], line)
        for a in (0.3, 1.0, 2.5):
            true, bound = curve(a, p, q, 0.05**2), curve(a, p1, q1, 0.005)
            assert true <= bound + 2e-4
            nearest = max(nearest, true / max(bound, 1e-3))
    assert nearest > 0.99


def test_a_quotient_of_sums():  # [theory: law.quotient]
    rng = np.random.default_rng(3)
    most = 0.0
    for _ in range(3000):
        level = 10 ** rng.uniform(-6, -1)
        e_y, e_0 = rng.uniform(0, 1, 2) * level
        z = math.sqrt(rng.uniform()) * np.exp(2j * math.pi * rng.uniform())
        off = abs((z + e_y * np.exp(2j * math.pi * rng.uniform())) / (1 + e_0 * rng.choice([-1, 1])) - z)
        assert off <= (e_y + e_0) / (1 - e_0) * (1 + 1e-9) and off <= 2.25 * level * (1 + 1e-9)
        most = max(most, off / level)
    assert most > 1.7


def test_more_shift_has_the_larger_divergence():  # [theory: line.monotone]
    """A sampled pair lies below the normal one with all of its shift, at every order."""
    for q, up in ((0.1, 1.0), (0.9, 0.5), (1.0, 2.0)):
        for alpha in (1.1, 2.0, 7.0):
            whole = (2 * up) ** 2 * alpha / 2
            part = hs.rdp(hs.poisson_subsampled(hs.gaussian(1 / up), q), alpha, adjacency="replace_one")
            assert part.lower <= whole * (1 + 1e-12) and (q < 1 or part.upper > whole * (1 - 1e-9))


def test_what_a_group_leaves_over_is_raised():  # [theory: grid.left-over, grid.lower]
    """Random atoms: the lower law is below them at every eps, and its lowest group is often raised, not lowered."""
    rng = np.random.default_rng(4)
    raised, eps = 0, np.linspace(-6, 8, 281)
    for _ in range(300):
        n, w = int(rng.integers(2, 12)), 10 ** rng.uniform(-2, -0.3)
        y = rng.dirichlet(np.ones(2 * n) * rng.choice([0.3, 3.0]))
        places = w * np.arange(2 * n)
        p = _core.pld_lower(2, w, y, np.zeros(2 * n), 0.0, 10 ** rng.uniform(-1, 1))
        grid = 2 * w * np.arange(p.size)
        true, low = (
            (np.maximum(-np.expm1(eps[:, None] - x), 0) * mass).sum(axis=1) for x, mass in ((places, y), (grid, p))
        )
        assert np.all(low <= true * (1 + 1e-12) + 1e-15)
        assert p.sum() <= 1 and np.max(true - low) < 4 * w
        raised += p[0] == 0
    assert 30 < raised < 300


def test_means_from_tails():  # [theory: grid.bracketed-mean]
    rng = np.random.default_rng(8)
    for _ in range(200):
        h = 10 ** rng.uniform(-4, 0)
        tau, mass = np.sort(rng.uniform(0, h, 9)), rng.dirichlet(np.ones(9)) * rng.uniform(0, 1)
        y, u, mean = mass.sum(), float(mass @ -np.expm1(-tau)), float(mass @ tau)
        low, high = -y * math.log1p(-u / y), u * h / -math.expm1(-h)
        assert low <= mean * (1 + 1e-9) and mean <= high * (1 + 1e-9)
        assert high - low <= y * h * h / 8 * (1 + h) + 1e-15


def test_a_power_on_a_circle_is_within_its_omega():  # [theory: grid.power-omega]
    rng = np.random.default_rng(5)
    for k, t in ((3, 0.5), (40, 2.0), (64, 8.0)):
        p = rng.dirichlet(np.ones(15))
        law = evolve.Law(-7, p, 0.0)
        found = evolve.power(law, k, 0.05, t, True, 1)
        exact, whole = np.ones(1), [int(x) for x in np.round(p * 2**40)]
        exact = np.array(whole) / sum(whole) if k == 1 else exact
        for _ in range(k):
            exact = np.convolve(exact, p)
        x = (-7 * k + np.arange(exact.size)) * 0.05
        weight = np.exp(t * (x - x.max()))
        at = found.first + 7 * k
        held = np.zeros(exact.size)
        held[at : at + found.p.size] = found.p
        missed = float(weight @ np.maximum(exact - held, 0))
        assert missed <= found.omega * float(weight @ held) * (1 + 1e-6)
        assert found.omega < 1e-9


def test_wrong_means_and_variances_of_a_normal_law():  # [theory: saddle.kolmogorov]
    z = np.linspace(-12, 12, 24001)
    for v, e in ((1.0, 1e-3), (1.0, 0.3), (4.0, 3.0)):
        off = float(np.max(np.abs(ndtr(z) - ndtr(z * math.sqrt(v / (v - e))))))
        assert off <= 0.122 * e / (v - e) and (e > 1e-2 or off > 0.98 * 0.122 * e / (v - e))
    for mu in (1e-6, 0.1, 3.0):
        off = float(np.max(np.abs(ndtr(z) - ndtr(z + mu))))
        assert off <= 0.4 * mu and (mu > 1e-3 or off > 0.99 * 0.4 * mu)


def test_the_skewness_term_is_its_integral():  # [theory: edgeworth.skewness-term]
    for n, l3, a, b in ((50.0, 1.7, 0.3, 4.0), (10**4, -0.2, 1.0, 30.0)):
        whole = integrate.quad(lambda u, n=n, l3=l3: abs(l3) * u * u / (6 * math.sqrt(n)) * math.exp(-u * u / 2), a, b)[
            0
        ]
        moments = Moments(n, 2.0, 9.0, l3, 3.0)
        own, published = (
            float(finite_sample._skewness_remainder(moments, np.array([a]), b, p)[0]) for p in (False, True)
        )
        assert own == pytest.approx(finite_sample.C / math.pi * whole, rel=1e-8)
        assert own < published


def test_logarithm_of_a_modulus():  # [theory: rounding.log-phi]
    """log|1 + Z| by log1p near 0 and by the squares elsewhere: within 8u min(|Z|, 3), where one form alone is not."""
    rng = np.random.default_rng(6)
    worst = alone = 0.0
    with mp.workdps(40):
        for _ in range(2000):
            r, angle = 10 ** rng.uniform(-14, 0.3), rng.uniform(-math.pi, math.pi)
            x, w = r * math.cos(angle), r * math.sin(angle)
            if rng.uniform() < 0.3:
                x, w = -1 + 10 ** rng.uniform(-8, -1), 10 ** rng.uniform(-8, -1)
            big = 2 * x + x * x + w * w
            near = -0.75 < big < 1
            found = 0.5 * (math.log1p(big) if near else math.log((1 + x) ** 2 + w * w))
            true = mp.log(mp.hypot(1 + mpf(x), mpf(w)))
            unit = 8 * U * min(math.hypot(x, w), 3)
            worst = max(worst, float(abs(found - true)) / (unit + 2 * U * abs(found)))
            alone = max(alone, float(abs(0.5 * math.log1p(max(big, U - 1)) - true)) / unit)
    assert worst <= 1 < 1e3 < alone
