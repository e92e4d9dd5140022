"""The Edgeworth accountant: moments against high precision, the published and derived tables, its limits."""

import functools
import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick import _core
from hockeystick.gauss import legendre_rule
from hockeystick.routes import edgeworth
from hockeystick.routes.loss_steps import LAPLACE, NORMAL, RULE

GRID = [(m, q) for m in (1e-3, 1.0, 3.0, 12.0) for q in (1e-9, 1e-3, 0.3)]


def nodes(kind, m, q):
    """(L, U, weight) of law A at 34 digits: trapezoid rule (e^-160) or the tanh-sinh rule and two atoms."""
    if kind == NORMAL:
        h = mpf(0.12) / max(1, m)
        top = max(m, min(6 * m, mp.log(1 / q) / m + 1.5 * m)) + 14
        points = [(m * g - m * m / 2, h * mp.npdf(g)) for g in (h * j for j in range(int(-14 / h), int(top / h)))]
    else:
        points = [(-m, mpf(1) / 2), (m, mp.exp(-m) / 2)]
        for s in (mpf(j) / 32 for j in range(-120, 121)):
            x = m / (1 + mp.exp(-mp.pi * mp.sinh(s)))
            dx = mp.pi * mp.cosh(s) * x * (1 - x / m) / 32
            points.append((2 * x - m, mp.exp(-x) / 2 * dx))
    return [(mp.log1p(q * mp.expm1(v)), q * mp.expm1(v), w) for v, w in points]


@functools.cache
def exact(kind, m, q):
    """(mean, k2..k5) of law A and of law B."""
    with mp.workdps(34):
        points = nodes(kind, mpf(m), mpf(q))
        out = []
        for law in ([w for _, _, w in points], [w * (1 + U) for _, U, w in points]):
            mean = mp.fdot(law, [L for L, _, _ in points])
            c = [mp.fdot(law, [(L - mean) ** r for L, _, _ in points]) for r in range(2, 6)]
            out.append((mean, c[0], c[1], c[2] - 3 * c[0] ** 2, c[3] - 10 * c[0] * c[1]))
        return out


def moments_of(kind, m, q):
    """Mean and cumulants 2 to 5 of one step's loss under laws A and B."""
    return edgeworth.loss_steps((m, q, 1, kind)).totals[0][::-1]


@pytest.mark.parametrize(("m", "q"), GRID)
@pytest.mark.parametrize("kind", [NORMAL, LAPLACE])
def test_moments_of_a_step(kind, m, q):  # [theory: edgeworth.moments-form]
    """Mean and variance to 2e-12 of themselves, k_r to 2e-12 of its own size plus sd^r."""
    for ours, true in zip(moments_of(kind, m, q), exact(kind, m, q), strict=True):
        for r, (a, b) in enumerate(zip(ours, true, strict=True), 1):
            scale = abs(b) + (true[1] ** (mpf(r) / 2) if r > 2 else 0)
            assert abs(mpf(float(a)) - b) <= 2e-12 * scale, (r, a, b)


def test_two_values_of_the_law():
    """E e^X = 1 and E e^-Y = 1 tie both laws together: to second order, k2 - 2|mean| vanishes like k3."""
    for m, q in ((1e-3, 1e-9), (1e-2, 1e-6), (1e-2, 0.5)):
        for A, B in [moments_of(f, m, q) for f in (NORMAL, LAPLACE)]:
            assert A[0] == pytest.approx(-A[1] / 2 - A[2] / 6 - A[3] / 24, rel=1e-9)
            assert B[0] == pytest.approx(B[1] / 2 - B[2] / 6 + B[3] / 24, rel=1e-9)


TABLE_A4 = """\
0.01 0.8 1000 remove 0.5 1.0393e-1 8.5438e-2 8.6683e-2 8.7457e-2 8.6841e-2 8.8407e-2 8.7328e-2 8.7215e-2
0.01 0.8 1000 remove 1.0 3.7259e-2 2.5576e-2 2.3313e-2 2.3854e-2 2.0127e-2 2.4611e-2 2.4410e-2 2.4141e-2
0.01 0.8 1000 remove 2.0 1.0004e-3 1.7953e-3 1.5437e-3 1.0163e-3 2.1509e-4 5.7538e-4 8.2355e-4 9.0105e-4
0.01 0.8 1000 remove 3.0 1.7790e-6 1.0084e-5 2.6760e-5 4.4182e-5 2.1500e-7 1.4134e-6 4.5086e-6 9.4013e-6
0.01 0.8 1000 add 1.0 -4.418e-3 1.2007e-2 1.1885e-2 1.0370e-2 1.4135e-2 1.0672e-2 1.0649e-2 1.0782e-2
0.01 0.8 1000 add 2.0 -8.139e-4 1.4584e-3 -9.563e-4 2.0513e-4 7.4411e-5 -6.251e-5 4.1911e-5 2.5871e-6
0.05 1.0 200 remove 0.5 2.1178e-1 1.9020e-1 1.9235e-1 1.9238e-1 1.9770e-1 1.9302e-1 1.9227e-1 1.9234e-1
0.05 1.0 200 remove 2.0 2.6227e-2 2.0273e-2 1.4890e-2 1.5191e-2 1.1065e-2 1.5505e-2 1.5570e-2 1.5432e-2
0.05 1.0 200 remove 3.0 1.9097e-3 3.2722e-3 2.5187e-3 1.5728e-3 4.9057e-4 1.1913e-3 1.5170e-3 1.5380e-3
0.05 1.0 200 add 1.0 3.6301e-2 6.3614e-2 6.7022e-2 6.6821e-2 7.0658e-2 6.7362e-2 6.6685e-2 6.6703e-2
0.05 1.0 200 add 2.0 -1.3202e-2 8.7414e-3 3.7064e-3 2.3624e-3 5.1055e-3 2.3694e-3 2.6104e-3 2.6896e-3
0.02 0.8 400 remove 1.0 8.4392e-2 5.5238e-2 5.4627e-2 5.6322e-2 5.1697e-2 5.7769e-2 5.6344e-2 5.6077e-2
"""
"""q, sigma, k, direction, eps, then delta of two sequences and of one, orders 0 to 3: computed apart from this package,
five digits."""


@pytest.mark.parametrize("row", TABLE_A4.splitlines(), ids=lambda row: "-".join(row.split()[:5]))
def test_table_of_estimates(row):  # [theory: edgeworth.expansion]
    q, sigma, k, direction, eps, *values = row.split()
    run = hs.poisson_subsampled(hs.gaussian(float(sigma)), float(q)) * int(k)
    cases = itertools.product(("two_sequence", "one_sequence"), range(4))
    for (form, order), value in zip(cases, map(float, values), strict=True):
        got = edgeworth.aea_delta(run, float(eps), direction=direction, order=order, form=form)
        assert got == pytest.approx(max(value, 0.0), rel=8e-5 if abs(value) > 1e-3 else 2e-4)


INDEX = (2, 3, 5, 4, 6, 8)


def closed_form(rho, order, B, z):
    """int_0^inf e^-t (1 - E_k(z + t/B)) dt in the digits of the context."""
    r3, r4, r5 = map(mpf, rho)
    c = (r3 / 6, r4 / 24, r3**2 / 72, r5 / 120, r3 * r4 / 144, r3**3 / 1296)[: (0, 1, 3, 6)[order]]
    terms = list(zip(INDEX, c, strict=False))
    scale = min(B, 1)

    def tail(u):
        he = [mpf(1), u]
        while len(he) <= INDEX[-1]:
            he.append(u * he[-1] - (len(he) - 1) * he[-2])
        return mp.ncdf(-u) + mp.npdf(u) * sum(a * he[i] for i, a in terms)

    return mp.quad(
        lambda s: scale * mp.exp(-scale * s) * tail(z + scale * s / B),
        [0, 0.1, 0.2, 0.4, 0.7, 1, 2, 4, 8, 16, 32, 64 / scale],
    )


@pytest.mark.parametrize(
    ("B", "z"),
    [(1e-4, 20.0), (0.3, 6.0), (60.0, 20.0)]
    + [pytest.param(B, z, marks=pytest.mark.slow) for B, z in ((1e-4, 0.5), (0.3, -3.0), (3.0, 0.5), (60.0, 0.5))],
)
def test_one_sequence_closed_form(B, z):  # [theory: edgeworth.one-sequence, edgeworth.mills]
    """For small and large deviations of the loss alike: no power of B is lost."""
    M, rho = B * B / 2, (0.3, 0.2, 0.1)
    Y = np.array([M, B * B, *(r * B**j for j, r in enumerate(rho, 3))])
    for order in (0, 3):
        with mp.workdps(25):
            want = closed_form(rho, order, mpf(B), (mpf(M + B * z) - mpf(M)) / mpf(B))
            log_scale, value = _core.edgeworth_delta(Y, Y, 1, order, M + B * z)
            assert abs(mp.exp(mpf(log_scale)) * mpf(value) - want) <= 1e-11 * (abs(want) + mp.npdf(z)), order


@pytest.mark.parametrize("form", ["one_sequence", "two_sequence"])
def test_orders_converge(form):
    """From k to 16 k, the loss's deviation kept, the error of order n falls at about 4^(n+1)."""
    errors = np.empty((2, 4))
    for i, k in enumerate((1000, 16000)):
        run = hs.poisson_subsampled(hs.gaussian(2.0), 1.0 / math.sqrt(k)) * k
        Y, _ = edgeworth.steps_of(run).totals[0]
        eps = Y[0] + math.sqrt(Y[1]) * np.linspace(-1, 3, 17)
        true = hs.delta(run, eps, direction="remove", route="contour").estimate
        for n in range(4):
            errors[i, n] = np.abs(edgeworth.aea_delta(run, eps, direction="remove", order=n, form=form) - true).max()
    assert (np.diff(errors[1]) < 0).all()
    ratio = errors[0] / errors[1]
    assert (ratio > 0.5 * 4.0 ** np.arange(1, 5)).all(), ratio


def test_gaussian_is_order_zero():
    """A Gaussian PRV has no further cumulants: every order and both forms give the exact curve."""
    run = hs.gaussian(20.0) * 300
    for eps, (order, form) in itertools.product((0.1, 1.0, 3.0), itertools.product(range(4), edgeworth.FORMS)):
        assert edgeworth.aea_delta(run, eps, order=order, form=form) == pytest.approx(
            hs.delta(run, eps).estimate, rel=1e-10
        )


def test_estimates_invert_and_keep_shape():
    run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * 1000 + hs.gaussian(30.0) * 20
    for order, form in itertools.product(range(4), edgeworth.FORMS):
        eps = edgeworth.aea_epsilon(run, [[0.1, 1e-2], [1e-3, 0.9]], order=order, form=form)
        assert eps.shape == (2, 2) and eps[1, 1] == 0
        back = edgeworth.aea_delta(run, eps, order=order, form=form)
        assert back.ravel()[:3] == pytest.approx([0.1, 1e-2, 1e-3], rel=1e-9)
    deltas = edgeworth.aea_delta(run, np.linspace(-30, 30, 241))
    assert deltas.min() >= 0 and deltas.max() <= 1 and np.isfinite(deltas).all()
    both = [edgeworth.aea_delta(run, 1.0, direction=d) for d in ("both", "remove", "add")]
    assert both[0] == max(both[1:])


def test_heterogeneous_totals_add():
    one = hs.poisson_subsampled(hs.gaussian(0.8), 0.01)
    two = hs.poisson_subsampled(hs.gaussian(1.3), 0.02)
    a, b, c = (edgeworth.steps_of(r).totals[1][0] for r in (one * 300, two * 200, hs.compose((one, 300), (two, 200))))
    assert c == pytest.approx(a + b, rel=1e-14)
    mixed = edgeworth.loss_steps((1.0, 0.1, 50, LAPLACE), (0.5, 0.02, 300, NORMAL))
    apart = [edgeworth.loss_steps(row).totals[0][0] for row in ((1.0, 0.1, 50, LAPLACE), (0.5, 0.02, 300, NORMAL))]
    assert mixed.totals[0][0] == pytest.approx(apart[0] + apart[1], rel=1e-14)


# -- what is refused ---------------------------------------------------------------------------------------------------

RUN = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 100


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: edgeworth.eeai_delta(hs.poisson_subsampled(hs.gaussian(0.01), 0.1) * 10, 1.0), "at most 20"),
        (lambda: edgeworth.loss_steps((41.0, 0.1, 5, LAPLACE)), "sensitivity/noise"),
        (lambda: edgeworth.loss_steps((math.nan, 0.1, 5, NORMAL)), "sensitivity/noise"),
        (lambda: edgeworth.loss_steps((1.0, 1.1, 5, NORMAL)), "sampling rate"),
        (lambda: edgeworth.loss_steps((1.0, 0.1, 5, 2)), "got 1.0"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(hs.DomainError, match=says):
        call()


@pytest.mark.parametrize("args", [(0, 0.0, 0.1), (0, 1.0, math.nan), (1, 41.0, 0.1), (2, 1.0, 0.1), (0, 1.0, 1.5)])
def test_kernel_refuses(args):
    with pytest.raises(hs.DomainError):
        kind, *step = args
        rows = _core.Rows(*(np.array([x]) for x in (*step, 1.0)), kind=np.array([kind], np.intc))
        _core.edgeworth_totals(rows, 0, *legendre_rule(RULE))
