"""The saddle-point route: cumulants against multiprecision, published settings, intervals from both sides, corners."""

import functools
import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import saddlepoint
from rows import sgm

D9 = json.loads((Path(__file__).parent / "reference" / "saddlepoint.json").read_text())
ESTIMATES = ("msd0", "msd1", "msd_order2", "msd_order3", "clt", "edgeworth")


def cumulants(sigma, q, t, add=0, k=1.0):
    rows = _core.Rows(np.array([1 / sigma]), np.array([q]), np.array([k]))
    status, out = _core.saddle_cumulants(rows, add, t, np.empty(_core.saddle_work()))
    assert status == 0
    return out


# cumulants


def exact(m, q, t, add):
    """K, K', K'', E|l - K'|^3 under the tilted law by multiprecision quadrature split at the kink."""
    with mpmath.workdps(40):
        m, q, t = mpmath.mpf(m), mpmath.mpf(q), mpmath.mpf(t)
        a = -t if add else 1 + t

        @functools.cache  # all integrals but one have the same nodes
        def loss(g):
            return mpmath.log1p(q * mpmath.expm1(m * g - m * m / 2))

        @functools.cache
        def law(g):
            return mpmath.npdf(g) * mpmath.exp(a * loss(g))

        ends = [-16, -8, -4, -2, 0, 2, 4, 8, 16, 24]
        total = mpmath.quad(law, ends)
        mean = mpmath.quad(lambda g: law(g) * loss(g), ends) / total
        var = mpmath.quad(lambda g: law(g) * (loss(g) - mean) ** 2, ends) / total
        kink = (mpmath.log((mpmath.expm1(mean) + q) / q) + m * m / 2) / m
        cut = sorted([*ends, kink])
        cube = mpmath.quad(lambda g: law(g) * abs(loss(g) - mean) ** 3, cut) / total
        return mpmath.log(total), (-mean if add else mean), var, cube


@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize(
    "m, q, t",
    [(1.25, 0.01, 2.0), (1.0, 1e-9, 2.5)]
    + [
        pytest.param(*x, marks=pytest.mark.slow)
        for x in ((0.5, 1e-6, 3.0), (1.0, 0.5, 0.7), (0.25, 0.2, 9.0), (2.0, 0.05, 1.5))
    ],
)
def test_cumulants_are_within_their_errors(m, q, t, add):  # [theory: saddle.cumulants, saddle.mean-variance]
    got = cumulants(1 / m, q, t, add)
    assert 1 / (1 / m) == m
    log_m, mean, var, cube = exact(m, q, t, add)
    assert abs(mpmath.mpf(got[0]) - log_m) <= got[1]
    assert abs(mpmath.mpf(got[2]) - mean) <= got[10]
    assert abs(mpmath.mpf(got[3]) - var) <= got[11]
    assert cube <= got[9] <= cube * mpmath.mpf("1.06")
    assert abs(got[8] / cube - 1) < 1e-3
    # and the errors are small: relative for K even at q = 1e-9, where the plain sum has no digit
    assert got[1] <= 1e-9 * abs(got[0])
    assert got[10] <= 1e-11 * math.sqrt(got[3])
    assert got[11] <= 1e-11 * got[3]


@pytest.mark.parametrize("row", D9["cumulants"], ids=str)
def test_published_cumulants(row):
    got = cumulants(row["sigma"], row["q"], row["t"], row["add"])
    for i, (mine, theirs) in enumerate(zip([got[0], *got[2:8]], row["K"], strict=True)):
        assert mine == pytest.approx(theirs, rel=1e-13 if i < 4 else 3e-12)
    assert got[8] == pytest.approx(row["cube"], rel=1e-3)  # its trapezoid sum is not exact: the bound is
    assert row["cube"] <= got[9] * (1 + 1e-12)


def test_steps_add():
    one, two = cumulants(0.8, 0.01, 2.0, k=500.0), cumulants(1.2, 0.02, 2.0, k=700.0)
    rows = _core.Rows(np.array([1 / 0.8, 1 / 1.2]), np.array([0.01, 0.02]), np.array([500.0, 700.0]))
    status, both = _core.saddle_cumulants(rows, 0, 2.0, np.empty(_core.saddle_work()))
    assert status == 0
    for i in (0, 2, 3, 4, 5, 6, 7, 8):
        assert both[i] == pytest.approx(one[i] + two[i], rel=1e-12)
    rows = _core.Rows(np.array([0.1]), np.ones(1), np.array([1e6]))
    _, plain = _core.saddle_cumulants(rows, 1, 3.0, np.empty(_core.saddle_work()))
    assert plain[0] == pytest.approx(0.5 * 1e4 * 3 * 4, rel=1e-15)
    assert plain[12] < 1e-12  # a plain Gaussian step is normal: rounding of the mean, 3.5e4, over its deviation, 100


# published settings


@pytest.mark.parametrize("row", D9["estimates"], ids=lambda r: "s{sigma}-q{q}-k{k}-{eps}".format(**r))
def test_published_estimates(row):  # [theory: saddle.estimates]
    run = sgm(row["sigma"], row["q"], row["k"])
    for name, text in row["errors"].items():
        want = float(text)
        if want <= -1:  # the bracket of the series is negative
            with pytest.raises(hs.AccuracyError, match="no positive delta"):
                hs.saddlepoint_delta(run, row["eps"], estimate=name, direction="remove")
            continue
        got = hs.saddlepoint_delta(run, row["eps"], estimate=name, direction="remove")
        assert got.estimate == name
        assert got.tilt == pytest.approx(row["tilt"], rel=1e-5)
        last_digit = 10.0 ** (math.floor(math.log10(abs(want))) - 1)
        assert abs(got.delta / row["delta"] - 1 - want) <= 0.6 * last_digit
    auto = hs.saddlepoint_delta(run, row["eps"])
    assert auto.trusted == (auto.skewness < 0.5)
    if auto.trusted:
        assert abs(auto.delta / row["delta"] - 1) < 2e-2
        assert auto.estimate == "edgeworth"
    if auto.skewness < 0.1:
        assert abs(auto.delta / row["delta"] - 1) < 1e-4


def test_the_gate_says_no_where_estimates_fail():
    worst = [abs(float(row["errors"]["edgeworth"])) for row in D9["estimates"]]
    trusted = [hs.saddlepoint_delta(sgm(r["sigma"], r["q"], r["k"]), r["eps"]).trusted for r in D9["estimates"]]
    assert any(trusted) and not all(trusted)
    assert all(error < 2e-2 for error, yes in zip(worst, trusted, strict=True) if yes)


@pytest.mark.parametrize("row", D9["estimates"], ids=lambda r: "s{sigma}-q{q}-k{k}-{eps}".format(**r))
def test_published_settings_are_contained(row):  # [theory: saddle.clt, saddle.moments]
    run, truth = sgm(row["sigma"], row["q"], row["k"]), row["delta"]
    bound = hs.delta(run, row["eps"], route="saddlepoint", direction="remove")
    assert bound.certified and bound.route == "saddlepoint"
    assert bound.lower <= truth * (1 + 1e-12) and truth * (1 - 1e-12) <= bound.upper
    # at least as narrow as the published Berry-Esseen interval and the moments bound (its tilt is found to 1% of delta)
    published = 1 + row["berry_esseen"]
    moments = hs.moments_delta_upper(run, row["eps"], direction="remove") / truth
    assert bound.upper / truth <= min(published, moments * 1.01)
    assert bound.lower / truth >= 1 - row["berry_esseen"]
    assert bound.lower > 0
    root = hs.epsilon(run, truth, route="saddlepoint", direction="remove")
    assert root.lower <= row["eps"] * (1 + 1e-12) and row["eps"] * (1 - 1e-12) <= root.upper


@pytest.mark.parametrize("name, error", [("msd0", -5.0e-2), ("msd1", 1.9e-3), ("clt", 6.5e-3), ("edgeworth", -6.9e-3)])
def test_published_errors_on_a_lattice(name, error):
    guess = hs.saddlepoint_delta(hs.randomized_response(0.3) * 30, 1.0, estimate=name)
    assert guess.delta / 0.3793827861 - 1 == pytest.approx(error, rel=0.04)
    assert not guess.trusted  # 0.6 x tilt is no small lattice step


@pytest.mark.parametrize(
    "eps, truth, errors",
    [
        (1.0, 0.347427023, (-5.2e-2, 8.9e-3, 3.9e-4)),
        (3.0, 0.059141495, (-1.8e-2, 4.5e-3, 4.0e-4)),
        (6.0, 3.5651741e-4, (-3.3e-3, 5.6e-4, 3.7e-4)),
    ],
)
def test_published_errors_on_laplace(eps, truth, errors):  # [theory: saddle.lattice]
    run = hs.laplace(20.0) * 1000
    for name, error in zip(("msd0", "msd1", "clt"), errors, strict=True):
        assert hs.saddlepoint_delta(run, eps, estimate=name).delta / truth - 1 == pytest.approx(error, rel=0.02)
    guess = hs.saddlepoint_delta(run, eps)
    assert guess.estimate == "edgeworth" and guess.trusted
    assert guess.delta == pytest.approx(truth, rel=4e-5)  # the reference itself has these digits


def test_infinite_losses():  # [theory: pair.infinite]
    run = hs.approx_dp(0.1, 1e-6) * 100
    some = -math.expm1(100 * math.log1p(-1e-6))
    far = hs.delta(run, 9.9, route="saddlepoint")
    assert far.lower <= some * (1 + 1e-3) and far.upper >= some
    assert hs.epsilon(run, 0.9 * some, route="saddlepoint").lower == math.inf
    root = hs.epsilon(run, 2 * some, route="saddlepoint")
    assert root.lower < root.upper < 10


def test_heterogeneous():
    guess = hs.saddlepoint_delta(sgm(0.8, 0.01, 500) + sgm(1.2, 0.02, 700), 2.0)
    assert guess.tilt == pytest.approx(3.3635669998, rel=1e-7)


# intervals from both sides


def test_width_falls_like_one_over_sqrt_k():  # [theory: saddle.berry-esseen]
    widths = []
    for k in (10**6, 10**8, 10**9):
        run = sgm(1.0, 0.01, k)
        bound = hs.delta(run, hs.epsilon(run, 1e-3).estimate, route="saddlepoint", direction="remove")
        widths.append(bound.width / bound.estimate)
    assert widths[0] < 0.05
    assert widths[0] > 5 * widths[1]
    assert widths[1] / widths[2] == pytest.approx(math.sqrt(10), rel=0.1)


# corners


def test_beyond_the_largest_loss():
    run = sgm(1.0, 0.01, 10)
    assert hs.delta(run, 1.0, route="saddlepoint", direction="add").upper == 0
    with pytest.raises(hs.AccuracyError, match="no saddle point"):
        hs.saddlepoint_delta(run, 1.0, direction="add")


def test_shapes():
    run, grid = sgm(2.0, 0.01, 3000), np.linspace(0.5, 2.0, 6).reshape(2, 3)
    many = hs.saddlepoint_delta(run, grid)
    assert many.delta.shape == many.tilt.shape == many.trusted.shape == (2, 3)
    assert many.delta[1, 2] == hs.saddlepoint_delta(run, 2.0).delta


def test_the_gate_refuses_what_the_kernel_does_not_take():
    one, work = np.ones(1), np.empty(_core.saddle_work())
    for m, q, k in ((-1.0, 0.5, 1.0), (1.0, 1.5, 1.0), (1.0, 0.5, 0.0), (math.nan, 0.5, 1.0)):
        assert _core.saddle_cumulants(_core.Rows(m * one, q * one, k * one), 0, 1.0, work)[0] == 2
    assert _core.saddle_cumulants(_core.Rows(one, 0.5 * one, one), 0, 1.0, np.empty(10))[0] == 3
    assert saddlepoint.point(_core.Rows(1000 * one, 0.5 * one, one), 0, 1.0) is None


def add_uppers(count, seed):
    """(m, q, k, eps, what pruning says, certified lower end of log delta) in the ADD direction at random."""
    rng, work = np.random.default_rng(seed), np.empty(max(_core.contour_work(1), _core.saddle_work()))
    for _ in range(count):
        m, q = 10 ** rng.uniform(-1.0, 0.4), 10 ** rng.uniform(-4.0, -0.2)
        k = np.round(10 ** rng.uniform(0.5, 4.0))
        eps = min(rng.uniform(1.0, 6.0) * q * math.sqrt(k * math.expm1(m * m)), -0.9 * k * math.log1p(-q))
        steps = _core.Rows(np.array([m]), np.array([q]), np.array([k]))
        status, upper, *_ = _core.saddle_delta_upper(steps, 1, eps, 0.0, 1, work)
        answer = _core.contour_ask(steps, 1, 1, eps, 1e-9, 31.0, 1, work)
        if status == 0 and answer[0] <= 1 and answer[2] > 0:
            yield m, q, k, eps, upper, answer[1] + math.log(answer[2])


def test_what_is_pruned_is_smaller():  # [theory: line.both, saddle.add]
    """`enough` = 0 takes whatever the first bound says, mostly the one without a grid: never below delta, often close
    to it."""
    rows = list(add_uppers(400, 7))
    assert len(rows) > 200
    for *case, upper, lower in rows:
        assert upper >= lower, case
    assert np.median([upper - lower for *_, upper, lower in rows]) < 6  # nats; Chernoff's own distance is 2 to 4
    one = np.ones(1)
    rows = _core.Rows(one, 0.01 * one, 100 * one)
    status, upper, *_ = _core.saddle_delta_upper(rows, 1, 0.718, -11.5, 1, np.empty(_core.saddle_work()))
    assert status == 0 and upper < -11.5


@pytest.mark.parametrize("t", [5000.0, 9000.0, 1e4, 2e4])
def test_cumulants_beyond_the_range_of_doubles(t):
    """M(t) of one step exceeds 1e308 from t = 9000 on, where the largest weight lies neither near 0 nor near
    (1+t)/sigma."""
    sigma, q, a = 71.02546638328721, 0.237970080606452, 1 + t
    work, rows = np.empty(_core.saddle_work()), _core.Rows(np.array([1 / sigma]), np.array([q]), np.ones(1))
    status, out = _core.saddle_cumulants(rows, 0, t, work)
    x = np.linspace(-20.0, 400.0, 400_001)
    logs = a * np.log1p(q * np.expm1(x / sigma - 0.5 / sigma**2)) - 0.5 * x * x
    truth = logs.max() + math.log(np.exp(logs - logs.max()).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi))
    assert status or out[0] == pytest.approx(truth, rel=1e-11)
    status, _, upper = _core.saddle_moments_upper(rows, 0, 1, 0.1326589492701851, work)
    assert status == 0 and -564.84804402288898921645 < upper < -550


@pytest.mark.parametrize("m", [1e-9, 1e-6, 1e-3, 1.0])
def test_the_constant_of_chernoffs_bound_does_not_cancel(m):
    """At a tilt of 1e10 t log t - (1+t) log1p t is a difference of numbers of 2e11."""
    eps, one = 8 * m, np.ones(1)
    rows, work = _core.Rows(m * one, one, one), np.empty(_core.saddle_work())
    status, tilt, upper = _core.saddle_moments_upper(rows, 0, 1, eps, work)
    with mpmath.workdps(50):
        t = mpmath.mpf(tilt)
        exact = (
            mpmath.mpf(m) ** 2 * t * (1 + t) / 2 - t * mpmath.mpf(eps) + t * mpmath.log(t) - (1 + t) * mpmath.log1p(t)
        )
    assert status == 0 and float(exact) <= upper <= float(exact) + 1e-12 * (1 + abs(float(exact)))
