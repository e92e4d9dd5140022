"""EEAI: moments with proved errors, constants and intervals against their anchors, measured errors and the certified
curve."""

import functools
import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick import _core
from hockeystick.gauss import legendre_rule
from hockeystick.routes import edgeworth, eeai, finite_sample
from hockeystick.routes.loss_steps import LAPLACE, NORMAL, RULE
from test_edgeworth import closed_form, nodes

BOUNDED = [(1e-3, 1e-9), (1.25, 0.01), (5.0, 1e-3)]
BOUNDED += [pytest.param(m, q, marks=pytest.mark.slow) for m, q in ((1.0, 0.05), (12.0, 0.3), (20.0, 1e-6))]


@functools.cache
def exact_about_the_mean(kind, m, q, which):
    """E L, then E d^2, E d^3, E d^4 in 34 digits; E|d| and E|d|^3 to 1e-6, by a fine Riemann sum in doubles."""
    with mp.workdps(34):
        points = nodes(kind, mpf(m), mpf(q))
        law = [w * (1 + U) if which else w for _, U, w in points]
        mean = mp.fdot(law, [L for L, _, _ in points])
        central = [mp.fdot(law, [(L - mean) ** r for L, _, _ in points]) for r in (2, 3, 4)]
    if kind == NORMAL:
        x = np.linspace(-12, 12 + min(5 * m, m + 8), 1_000_001)
        v, w = m * x - m * m / 2, np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    else:
        x = (np.arange(500_000) + 0.5) * m / 5e5
        v, w = np.append(2 * x - m, [-m, m]), np.append(0.5 * np.exp(-x) * m / 5e5, [0.5, 0.5 * math.exp(-m)])
    U = q * np.expm1(v)
    w = w * (1 + U) if which else w
    d = np.abs(np.log1p(U) - float(mean))
    return [mean, *central, mpf(float(d @ w)), mpf(float(d**3 @ w))]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("m", "q"), BOUNDED)
@pytest.mark.parametrize("kind", [NORMAL, LAPLACE])
def test_bounded_moments(kind, m, q, which):  # [theory: edgeworth.moments]
    """Within their errors of the truth, and these small: 1e-9 where the loss has anything to show under this law."""
    values, errors = _core.edgeworth_bounded(kind, m, q, which, *legendre_rule(RULE))
    true = exact_about_the_mean(kind, m, q, which)
    rare = which == 0 and m >= 12 and kind == NORMAL  # without the record nearly all of the loss is one value
    for i, (a, err, b) in enumerate(zip(values.tolist(), errors.tolist(), true, strict=True)):
        reference = 3e-6 * abs(b) if i > 3 else 1e-30 * abs(b)
        assert abs(mpf(a) - b) <= mpf(err) + reference, i
        assert rare or err <= 1e-9 * abs(a)


ABSOLUTE = [
    (1.25, 0.01, 0, 0.00915080491, 4.7598343e-5),
    (1.25, 0.01, 1, 0.00958427094, 7.04008123e-5),
    (1.0, 0.05, 0, 0.0364972037, 0.000780102557),
    (1.0, 0.05, 1, 0.0402839158, 0.00122991255),
]


@pytest.mark.parametrize(("m", "q", "which", "first", "third"), ABSOLUTE)
def test_absolute_moments(m, q, which, first, third):
    values, errors = _core.edgeworth_bounded(NORMAL, m, q, which, *legendre_rule(RULE))
    assert values[4:].tolist() == pytest.approx([first, third], rel=5e-9) and (errors[4:] < 1e-11 * values[4:]).all()


STANDARDISED = [  # sigma 0.8, rate 0.01; REMOVE and ADD: K3, K4, l3, K3t, kappa
    (0, 9.72262, 229.492, 9.64126, 10.21802, 0.95905),
    (1, 8.42923, 164.087, -8.33685, 8.94310, 0.94767),
]


@pytest.mark.parametrize(("add", "K3", "K4", "l3", "K3t", "kappa"), STANDARDISED)
def test_standardised_moments(add, K3, K4, l3, K3t, kappa):
    steps = edgeworth.loss_steps((1.25, 0.01, 1000, NORMAL))
    law = eeai.law_of(steps, add)
    assert law.moments[1:5] == pytest.approx((K3, K4, l3, K3t), rel=2e-6) and law.moments.loose < 1e-10
    y = 2 * math.pi * finite_sample.T1 / law.moments.K3t / law.sd_upper
    found = eeai._modulus_upper(steps, 0, add, y)
    assert kappa - 1e-5 <= found <= kappa + 2e-3


def test_published_anchors(monkeypatch):  # [theory: edgeworth.finite-sample]
    K3 = 9**0.75
    moments = finite_sample.Moments(1000.0, K3, 9.0, 0.621 * K3, K3 + 1)
    bound = functools.partial(finite_sample.uniform_error_upper, moments)
    least = bound("iid")
    monkeypatch.setattr(finite_sample, "_GRID", np.array([0.1]))
    assert bound("iid", published=True) == pytest.approx(0.1626857058, rel=2e-9)
    assert bound("regular", kappa=0.99, published=True) == pytest.approx(0.1214038476, rel=2e-9)
    assert bound("iid") == pytest.approx(0.12975, abs=5e-6)
    assert least <= bound("iid")


TABLE_A5 = {
    1e3: (1.0, 3.09e-1, 2.40e-1, 9.42e-1),
    1e4: (6.8e-2, 8.2e-2, 6.0e-2, 4.68e-2),
    1e5: (1.12e-2, 1.70e-2, 1.05e-2, 4.62e-3),
    1e6: (2.21e-3, 2.55e-3, 5.0e-4, 1.56e-4),
    1e8: (2.04e-4, 2.04e-4, 4.2e-7, 3.95e-7),
    1e10: (2.04e-5, 2.04e-5, 3.0e-9, 3.06e-9),
}
"""D for q = 0.01, sigma = 0.8, REMOVE: versions inid, iid, regular as printed, and inid_regular, never printed; the
first entry of the first row is the trivial bound."""


@pytest.mark.parametrize("k", TABLE_A5)
def test_table_of_constants(k):
    steps = edgeworth.loss_steps((1.25, 0.01, k, NORMAL))
    found = [eeai._version_upper(version, eeai.law_of(steps, 0), steps, 0) for version in finite_sample.VERSIONS]
    assert found == pytest.approx(TABLE_A5[k], rel=0.02)
    assert eeai.Side(steps, 0).error == min(found) <= eeai.Side(steps, 0, published=True).error


REGULAR = {  # the constant for regular characteristic functions, 1e3 to 1e10 steps: sigma, rate, ADD
    (0.8, 0.01, 1): (2.0e-1, 5.0e-2, 7.6e-3, 2.9e-4, 2.9e-7, 2.2e-9),
    (1.0, 0.001, 0): (1.4e-1, 3.5e-2, 4.4e-3, 1.3e-4, 1.7e-7, 1.4e-9),
}


@pytest.mark.parametrize("setting", REGULAR)
def test_regular_constants(setting):
    sigma, q, add = setting
    for k, want in zip((1e3, 1e4, 1e5, 1e6, 1e8, 1e10), REGULAR[setting], strict=True):
        steps = edgeworth.loss_steps((1 / sigma, q, k, NORMAL))
        found = eeai._version_upper("regular", eeai.law_of(steps, add), steps, add)
        assert found == pytest.approx(want, rel=0.05)


@pytest.mark.parametrize(
    ("m", "q", "kind"), [(1.25, 0.01, NORMAL), (1.0, 0.05, NORMAL), (1.0, 0.1, LAPLACE), (3.0, 1e-3, LAPLACE)]
)
@pytest.mark.parametrize("which", [0, 1])
def test_modulus_from_both_sides(m, q, kind, which):  # [theory: edgeworth.modulus]
    """Above the modulus on a grid of its own, and not by more than the spacing of its points explains."""
    sd = math.sqrt(edgeworth.loss_steps((m, q, 1, kind)).totals[0][1 - which][1])
    y0, y1 = 0.5 / sd, 12 / sd
    upper = _core.edgeworth_modulus_upper(
        kind, m, q, which, *legendre_rule(RULE), y0, y1, np.empty(_core.prawitz_work())
    )
    if kind == NORMAL:
        x = np.linspace(-9, 9 + m, 4_001)
        v, w = m * x - m * m / 2, np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    else:
        x = (np.arange(20_000) + 0.5) * m / 20_000
        v, w = np.append(2 * x - m, [-m, m]), np.append(0.5 * np.exp(-x) * m / 20_000, [0.5, 0.5 * math.exp(-m)])
    U = q * np.expm1(v)
    w, L = w * (1 + U) if which else w, np.log1p(U)
    seen = max(abs(np.exp(1j * y * L) @ w) for y in np.linspace(y0, y1, 150))
    assert seen - 1e-7 <= upper <= seen + 0.03


def test_interval_contains_the_curve():  # [theory: eeai.interval]
    """Where the constants say something: both forms against Prawitz' interval, their widths in the order that theory
    gives."""
    run = hs.poisson_subsampled(hs.gaussian(0.8), 1e-5) * 10**9
    widths = {}
    for form in edgeworth.FORMS:
        for eps in (0.2, 0.5, 1.0):
            b, sharp = edgeworth.eeai_delta(run, eps, form=form), edgeworth.prawitz_delta(run, eps)
            assert b.lower <= sharp.upper and sharp.lower <= b.upper and b.certified
            widths[form, eps] = b.width
        b, sharp = edgeworth.eeai_epsilon(run, 0.1, form=form), edgeworth.prawitz_epsilon(run, 0.1)
        assert 0 < b.lower <= sharp.upper and sharp.lower <= b.upper and b.width < 1e-3 * b.upper
    assert all(widths["two_sequence", e] > widths["one_sequence", e] for e in (0.2, 0.5, 1.0))


@pytest.mark.parametrize("B", [1e-3, 0.3, 3.0, 60.0])
@pytest.mark.parametrize("z", [-40.0, -3.0, -0.2, 0.9, 6.0, 30.0])
def test_integral_of_the_expansion(B, z):  # [theory: edgeworth.one-sequence]
    """int e^(eps-x) (1 - G_1(x)) dx within its error of 25 digits, and this error small."""
    moments = finite_sample.Moments(1e6, 2.0, 5.0, 1.0, 3.0)
    law = eeai.Law(moments, 1.0, (B * B / 2, B * B, 0.3 * B**3), (0.0, 0.0, 0.0))
    eps = B * B / 2 + B * z
    value, error = eeai._tail_integral(law, eps)
    with mp.workdps(25):
        want = closed_form((0.3, 0, 0), 1, mpf(B), (mpf(eps) - mpf(law.sums[0])) / mp.sqrt(mpf(law.sums[1])))
        assert abs(mpf(value) - want) <= mpf(error) < 2e-12


def test_interval_moves_with_the_moments():  # [theory: eeai.standardised]
    """What an error of mean, variance and third cumulant adds covers the change it makes, from below and within a
    factor."""
    moments = finite_sample.Moments(1e6, 2.0, 5.0, 1.0, 3.0)
    sums, errors = (0.5, 1.0, 0.3), (1e-4, 3e-4, 2e-4)
    law = eeai.Law(moments, 1.0, sums, errors)
    worst = 0.0
    for signs in itertools.product((-1, 0, 1), repeat=3):
        moved = law._replace(
            sums=tuple(s + sign * d for s, d, sign in zip(sums, errors, signs, strict=True)), errors=(0.0,) * 3
        )
        for eps in np.linspace(-2, 4, 13):
            for function in (eeai._survival, eeai._tail_integral):
                (value, error), (other, small) = function(law, float(eps)), function(moved, float(eps))
                assert abs(value - other) <= error + small
                worst = max(worst, abs(value - other) / error)
    assert worst > 0.3


SHARP = [
    (hs.poisson_subsampled(hs.gaussian(0.8), 1e-4) * 10**8, 1.0),
    (hs.poisson_subsampled(hs.laplace(1.0), 1e-4) * 10**8, 0.5),
    (hs.laplace(3e4) * 10**9, 1.0),
    (
        hs.poisson_subsampled(hs.gaussian(0.8), 1e-4) * 10**8 + hs.poisson_subsampled(hs.gaussian(1.5), 2e-4) * 10**7,
        1.0,
    ),
]


@pytest.mark.parametrize(("run", "eps"), SHARP)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_sharp_intervals_from_both_sides(run, eps, direction):
    """Where the constants bite: the certified interval meets Prawitz' and is as wide as its constant says."""
    steps = edgeworth.steps_of(run)
    side = eeai.Side(steps, int(direction == "add"))
    assert side.error < 2e-5
    for at in (0.5 * eps, eps, 2 * eps):
        sharp, b = (
            edgeworth.prawitz_delta(run, at, direction=direction),
            edgeworth.eeai_delta(run, at, direction=direction),
        )
        assert sharp.width < 0.1 * b.width
        assert b.lower <= sharp.lower and sharp.upper <= b.upper
        assert b.upper - b.estimate <= 1.001 * side.error and b.estimate - b.lower <= 1.001 * side.error
        whole = hs.delta(run, at, direction=direction, route="edgeworth")
        assert whole.lower <= sharp.upper and sharp.lower <= whole.upper and whole.budget.terms["finite_sample"] == 0


def test_route_takes_the_constants_where_prawitz_is_wide(monkeypatch):
    """A line without nodes leaves Prawitz' inequality with nothing but Chernoff's bound: the constants then carry both
    ends."""
    run = hs.poisson_subsampled(hs.gaussian(0.8), 1e-4) * 10**8
    sharp, root = hs.delta(run, 1.0, route="contour"), hs.epsilon(run, 0.1, route="contour")
    ask = _core.prawitz_ask
    monkeypatch.setattr(_core, "prawitz_ask", lambda *a: ask(*a[:-2], eeai.NO_SMOOTHING, a[-1]))
    b = hs.delta(run, 1.0, route="edgeworth")
    assert b.certified and b.lower <= sharp.lower and sharp.upper <= b.upper and b.width < 2e-5
    assert b.budget.terms["finite_sample"] > 0
    e = hs.epsilon(run, 0.1, route="edgeworth")
    assert e.certified and e.lower <= root.lower and root.upper <= e.upper and e.width < 1e-3


@pytest.mark.parametrize("form", edgeworth.FORMS)
@pytest.mark.parametrize(
    ("run", "delta"),
    [
        (hs.poisson_subsampled(hs.gaussian(0.49), 0.0012) * 9, 2e-8),
        (hs.poisson_subsampled(hs.gaussian(0.36), 1.7e-6) * 24638, 7e-6),
        (hs.poisson_subsampled(hs.gaussian(0.45), 1.6e-6) * 3, 9e-10),
    ],
)
def test_an_expansion_outside_of_0_and_1_says_nothing(form, run, delta):
    """Few rare jumps: the expansion is far below 0 or above 1, farther than the trivial constant 1."""
    side = eeai.Side(edgeworth.steps_of(run), 0)
    assert side.error == 1 and side.interval(0.01).lower == 0 and side.interval(0.01).upper == 1
    b, true = edgeworth.eeai_epsilon(run, delta, form=form), hs.epsilon(run, delta)
    assert b.lower <= true.upper and true.lower <= b.upper
    d, true = edgeworth.eeai_delta(run, 0.01, form=form), hs.delta(run, 0.01)
    assert d.lower <= true.upper and true.lower <= d.upper


SIGMA, RATE, COUNT = st.floats(0.3, 20.0), st.floats(-6.0, -0.2), st.floats(0.5, 9.0)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.booleans(), SIGMA, RATE, COUNT), min_size=1, max_size=3),
    st.floats(-12.0, -0.5),
    st.booleans(),
)
def test_certified_intervals_meet(rows, log_delta, two):
    """EEAI and the route edgeworth, on random runs of both families."""
    steps = [
        (hs.poisson_subsampled((hs.laplace if lap else hs.gaussian)(s), 10**q), int(10**k)) for lap, s, q, k in rows
    ]
    run, delta = hs.compose(*steps), 10**log_delta
    form = "two_sequence" if two else "one_sequence"
    found = []
    for ask in (
        lambda: hs.epsilon(run, delta, route="edgeworth"),
        lambda: hs.eeai_epsilon(run, delta, form=form),
    ):
        try:
            found.append(ask())
        except hs.AccuracyError:
            continue
    assert not found or max(b.lower for b in found) <= min(b.upper for b in found)
    assert all(0 <= b.lower <= b.estimate <= b.upper for b in found)


def test_interval_is_chernoff_where_constants_say_nothing():
    """No root of the published interval exists here; the certified eps does."""
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.05) * 200 + hs.poisson_subsampled(hs.gaussian(2.0), 0.02) * 50
    true = hs.epsilon(run, 1e-3)
    for form in edgeworth.FORMS:
        b = edgeworth.eeai_epsilon(run, 1e-3, form=form)
        assert b.lower == 0 and true.lower <= b.upper <= 1.3 * true.upper
        d = edgeworth.eeai_delta(run, 2.0, form=form)
        assert d.lower <= hs.delta(run, 2.0).estimate <= d.upper <= 4 * hs.delta(run, 2.0).estimate


def test_constant_is_above_the_error():  # [theory: edgeworth.finite-sample, edgeworth.inid-regular]
    """The error of the expansion of order 1, seen through delta at 40 points, is below D (one-sequence form: |error| <=
    D), for equal steps and for steps that differ."""
    one, two = (1.25, 0.01, 1000, NORMAL), (1.0, 0.01, 100_000, NORMAL)
    for rows, add in itertools.product(((one,), (two,), ((0.5, 0.1, 50_000, LAPLACE), two)), (0, 1)):
        steps = edgeworth.loss_steps(*rows)
        Y, X = steps.totals[add]
        D = eeai.Side(steps, add).error
        if len(rows) > 1:
            plain, regular = (
                eeai._version_upper(version, eeai.law_of(steps, add), steps, add)
                for version in ("inid", "inid_regular")
            )
            assert D == regular < 0.5 * plain
        worst = 0.0
        for z in np.linspace(-3, 4, 41):
            eps = float(Y[0] + z * math.sqrt(Y[1]))
            log_scale, value = _core.edgeworth_delta(Y, X, 1, 1, eps)
            worst = max(worst, abs(math.exp(log_scale) * value - math.exp(edgeworth.point(steps, add, eps)[0])))
        assert 0 < worst <= D
