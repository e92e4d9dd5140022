"""Prawitz' interval: the truth table, closed forms, the published interval recomputed, an independent contour for
mixtures, and the certified contour route; sound at every smoothing limit and as wide as theory says."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick._core import Rows
from hockeystick.gauss import legendre_rule
from hockeystick.routes import contour, edgeworth
from hockeystick.routes.loss_steps import LAPLACE, NORMAL
from hockeystick.what.pair import in_order
from rows import U

# -- the published interval --------------------------------------------------------------------------------------------

PRINTED = [
    (0.01, 0.8, 1000, 0, 2.0, 1e3, 8.58926e-4, 8.79550e-4, 8.692002960669496e-4),
    (0.01, 0.8, 1000, 0, 2.0, 1e4, 8.68189e-4, 8.70212e-4, 8.692002960669496e-4),
    (0.01, 0.8, 1000, 1, 2.0, 1e4, 8.42559e-6, 8.48297e-6, 8.45425000093553e-6),
    (0.05, 1.0, 200, 0, 2.0, 1e4, 1.54301e-2, 1.54504e-2, 1.5440247011441e-2),
]
"""q, sigma, k, add, eps, T and the untilted interval as computed elsewhere, with the exact value."""


def loss_and_law(q, sigma, add):
    """Losses and their masses on a fine grid."""
    m = 1 / sigma
    x = np.linspace(-11, 11 + 2 * m, 3001)
    L = np.log1p(q * np.expm1(m * x - m * m / 2))
    w = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    return (-L, w) if add else (L, w * np.exp(L))


def smoothing(q, sigma, k, add, eps, T):
    """2 max h (1/T) int_0^inf |f| over delta, for f the normal one of its variance at the saddle t: 2 pi t
    (t/(1+t))^t/T."""
    L, w = loss_and_law(q, sigma, add)
    tilts = np.geomspace(0.2, 20, 4000)
    K = k * np.log(np.exp(np.outer(tilts, L)) @ w)
    t = tilts[np.argmin(K - tilts * eps - np.log(tilts) - np.log1p(tilts))]
    return 2 * math.pi * t * (t / (1 + t)) ** t / T


def untilted(q, sigma, k, add, eps, T):
    """[A - W, A + W], A = 1/2 + (1/T) int_0^T c Im g, W = (1/T) int_0^T (1 - t/T) Re g, g = e^{-i eps t} f(t)^k/(1 +
    it)."""
    L, w = loss_and_law(q, sigma, add)
    nodes, weights = np.polynomial.legendre.leggauss(100)
    sd = math.sqrt(k * (w @ L**2 - (w @ L) ** 2))
    A, W = 0.5, 0.0
    for panel in range(4):
        t = (panel + 0.5 + 0.5 * nodes) * 3.5 / sd
        f = np.array([np.exp(1j * s * L) @ w for s in t]) ** k
        g = np.exp(-1j * eps * t) * f / (1 + 1j * t)
        c = (1 - t / T) / np.tan(math.pi * t / T) + 1 / math.pi
        h = weights * 1.75 / sd / T
        A, W = A + (c * g.imag) @ h, W + ((1 - t / T) * g.real) @ h
    return A - W, A + W


@pytest.mark.parametrize(("q", "sigma", "k", "add", "eps", "T", "low", "high", "truth"), PRINTED)
def test_published_interval(q, sigma, k, add, eps, T, low, high, truth):
    """The untilted formula gives the printed ends; the tilted interval at the same T lies inside them, around the
    truth."""
    assert untilted(q, sigma, k, add, eps, T) == pytest.approx((low, high), rel=2e-5)
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
    b = edgeworth.prawitz_delta(run, eps, direction="add" if add else "remove", limit=T)
    assert low < b.lower <= truth <= b.upper < high
    assert b.width / 2 / truth == pytest.approx(smoothing(q, sigma, k, add, eps, T), rel=0.25)


@pytest.mark.parametrize(("limit", "low", "high"), [(1e3, 1.95875, 1.96517), (1e4, 1.961647, 1.962276)])
def test_eps_at_a_given_limit(limit, low, high):
    """Inside the untilted interval computed elsewhere at the same T."""
    run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * 1000
    bound = edgeworth.prawitz_epsilon(run, 1e-3, direction="remove", limit=limit)
    assert low <= bound.lower <= 1.96196161 + 6e-9 and 1.96196161 - 6e-9 <= bound.upper <= high
    assert bound.upper - bound.lower > 0.1 * (high - low)


@pytest.mark.parametrize("family", [NORMAL, LAPLACE])
@pytest.mark.parametrize("add", [0, 1])
def test_every_limit_is_sound(family, add):  # [theory: prawitz.inequality, prawitz.curve]
    """T from far too small to far beyond need: always around the sharp interval, the half-width falling as 1/T."""
    steps = edgeworth.loss_steps((1.0, 0.02, 2000, family))
    sharp = edgeworth.point(steps, add, 2.0)
    assert sharp[2] - sharp[0] < 1e-9
    widths = {}
    for T in 10.0 ** np.arange(-3, 9, 0.5):
        low, mid, high, *_ = edgeworth.point(steps, add, 2.0, limit=float(T))
        assert low <= sharp[2] and sharp[0] <= high <= 0 and low <= mid <= high
        widths[T] = math.exp(high) - math.exp(low)
    wide = [widths[T] for T in 10.0 ** np.arange(3, 7.0)]
    assert all(8 < a / b < 12 for a, b in itertools.pairwise(wide))


# -- other laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 12, 20, 24, 32])
def test_gauss_legendre_rule(n):  # [theory: law.gauss-panels]
    """Nodes within 2 u and weights within 2 u of themselves, fewer than csrc takes for granted."""
    with mp.workdps(40):
        for x, w in zip(*legendre_rule(n), strict=True):
            root = mp.findroot(lambda t: mp.legendre(n, t), mpf(float(x)))
            slope = n * (root * mp.legendre(n, root) - mp.legendre(n - 1, root)) / (root**2 - 1)
            exact = 2 / ((1 - root**2) * slope**2)
            assert abs(root - mpf(float(x))) <= 2 * U * abs(root) and abs(exact - mpf(float(w))) <= 2 * U * exact


@pytest.mark.parametrize("m", [0.01, 0.3, 1.0, 5.0, 30.0])
def test_one_laplace_step(m):  # [theory: law.laplace-ellipse, law.laplace-far]
    """delta = 1 - e^((eps - m)/2) for 0 <= eps <= m, 0 above: atoms of nearly all the mass, so wide, but around it."""
    steps = edgeworth.loss_steps((m, 1.0, 1, LAPLACE))
    for part in (0.0, 0.3, 0.9, 0.999):
        low, _, high, *_ = edgeworth.point(steps, 0, part * m)
        assert low <= math.log(-math.expm1((part - 1) * m / 2)) <= high
    assert edgeworth.point(steps, 0, m * 1.001)[2] == -math.inf
    low, _, high, *_ = edgeworth.point(steps, 0, -m * 1.001)
    assert low <= math.log(-math.expm1(-m * 1.001)) <= high <= low + 1e-13


def independent(parts, add, eps):
    """delta by the Bromwich integral with transforms summed on plain grids: shares nothing with the package. About
    1e-10."""

    def log_transform(z):
        total = 0
        for m, q, k, family in parts:
            if family == LAPLACE:
                x, w = np.polynomial.legendre.leggauss(120)
                x = 0.5 * m * (x + 1)
                v = np.append(2 * x - m, [-m, m])
                p = np.append(0.25 * m * w * np.exp(-x), [0.5, 0.5 * math.exp(-m)])
            else:
                x = np.linspace(-14, 14 + 6 * m, 1501)
                v, p = m * x - m * m / 2, np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
            L = np.log1p(q * np.expm1(v))
            total = total + k * np.log(np.exp(np.outer(-z if add else 1 + z, L)) @ p)
        return total

    tilts = np.linspace(0.1, 30, 100)
    a = tilts[np.argmin(log_transform(tilts).real - tilts * eps - np.log(tilts) - np.log1p(tilts))]
    z = a + 1j * np.arange(0, 1000) * a / 12
    g = np.exp(log_transform(z) - z * eps) / (z * (1 + z))
    return float((g[0].real / 2 + g[1:].real.sum()) * a / 12 / math.pi)


@pytest.mark.parametrize("add", [0, 1])
def test_mixture_of_families(add):
    parts = [(1.0, 0.05, 60, LAPLACE), (0.7, 0.02, 300, NORMAL), (0.2, 1.0, 10, LAPLACE), (0.1, 1.0, 20, NORMAL)]
    steps = edgeworth.loss_steps(*parts)
    for eps in (0.5, 1.5, 3.0):
        true = independent(parts, add, eps)
        low, _, high, *_ = edgeworth.point(steps, add, eps)
        assert math.exp(low) <= true * (1 + 1e-8) and true * (1 - 1e-8) <= math.exp(high) and high - low < 1e-9
        low, mid, high, *_ = edgeworth.root(steps, add, math.log(true))
        assert abs(mid - eps) < 1e-7 and high - low < 1e-9


@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize("row", [(0.2, 0.001), (1 / 0.7, 0.02), (1 / 3, 0.3)])
def test_periodic_runs(row, add):  # [theory: line.planning]
    """Long runs are planned from some of their steps: one step in ten is unlike the others."""
    rows = [
        (1 - 1e-4 * i / 480, 0.01, 1, NORMAL) if i % 10 == 0 else (row[0] - 1e-4 * i / 480, row[1], 1, NORMAL)
        for i in range(480)
    ]
    steps = edgeworth.loss_steps(*rows)
    ours, other = (
        root(at, add, math.log(1e-5)) for root, at in ((edgeworth.root, steps), (contour.root, in_order(*steps[:3])))
    )
    assert ours[0] <= other[2] and other[0] <= ours[2] and ours[2] - ours[0] < 1e-6 * ours[2]


@pytest.mark.parametrize(
    ("sigma", "q", "k", "eps"), [(0.44359157, 9.69844268e-06, 5308, 3.0), (0.3, 1.8e-6, 8886, 2.6)]
)
def test_as_many_nodes_as_fit(sigma, q, k, eps):
    """Where the decay asks for about as many nodes as there is room for."""
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
    truth = hs.log_delta(run, eps, direction="remove", route="contour")
    assert truth.upper - truth.lower < 1e-3
    found = hs.log_delta(run, eps, direction="remove", route="edgeworth")
    assert found.lower <= truth.upper and truth.lower <= found.upper


@pytest.mark.parametrize("k", [10**e for e in (3, 5, 7, 9)])
def test_width_does_not_grow_with_k(k):
    for family in (NORMAL, LAPLACE):
        low, mid, high, *_ = edgeworth.root(edgeworth.loss_steps((1.0, 0.01, k, family)), 0, math.log(1e-5))
        assert 0 < low <= mid <= high and high - low < 1e-9 * mid


@pytest.mark.parametrize(
    "row", [(1.0, 1e-9, 10**9), (20.0, 1e-3, 100), (1e-4, 0.5, 10**9), (1e-4, 1e-9, 1), (1000.0, 0.01, 5)]
)
@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize("log_delta", [-0.1, -12.0, -690.0])
def test_corners(row, add, log_delta):
    """An interval around the contour's or a named refusal; never NaN."""
    steps = edgeworth.loss_steps((*row, NORMAL))
    try:
        found = edgeworth.root(steps, add, log_delta)
    except hs.HockeystickError:
        return
    if found is None:
        return
    low, mid, high, *_ = found
    assert low <= mid <= high
    other = contour.root(Rows(*steps[:3]), add, log_delta)
    assert other is None or (max(low, 0) <= max(other[2], 0) and max(other[0], 0) <= max(high, 0))


# -- the query ---------------------------------------------------------------------------------------------------------


def test_route_of_the_query():
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    b = hs.epsilon(run, [1e-3, 1e-5], route="edgeworth")
    assert b.route == "edgeworth" and b.certified and b.lower.shape == (2,)
    assert set(b.budget.terms) == set(edgeworth.TERMS)
    assert b.lower[1] <= 1.828236666516577 <= b.upper[1]
    laplace = hs.poisson_subsampled(hs.laplace(1.0), 0.01) * 1000
    b = hs.delta(laplace, 0.5, route="edgeworth", direction="remove")
    assert b.lower <= 6.93983694809427e-3 <= b.upper and b.width < 1e-13
    mixed = hs.epsilon(run + laplace, 1e-5, route="edgeworth")
    other = hs.epsilon(run + laplace, 1e-5, route="pld")
    assert mixed.lower <= other.upper and other.lower <= mixed.upper and mixed.width < 1e-9


@pytest.mark.parametrize("rtol", [1.1e-4, None])
def test_roots_of_steps_whose_tilt_is_out_of_reach(rtol):
    """Newton starts where delta is noise: the first distance to look for an end was negative, and an end far beyond
    where the nodes hold was taken for proved: eps <= -2e-4."""
    options = {"adjacency": "replace_one", "rtol": rtol} if rtol else {"adjacency": "replace_one"}
    bound = hs.epsilon(hs.gaussian(999999999.9999999), 1.633294554103046e-103, route="edgeworth", **options)
    other = hs.epsilon(hs.gaussian(999999999.9999999), 1.633294554103046e-103, adjacency="replace_one")
    assert bound.lower <= other.upper and other.lower <= bound.upper < 1.1 * other.upper


def test_refused_steps():
    with pytest.raises(hs.DomainError, match="Gaussian and Laplace steps"):
        hs.delta(hs.randomized_response(1.0) * 3, 1.0, route="edgeworth")
    with pytest.raises(hs.DomainError, match="replace_one"):
        hs.delta(hs.poisson_subsampled(hs.laplace(1.0), 0.1) * 3, 0.1, route="edgeworth", adjacency="replace_one")
