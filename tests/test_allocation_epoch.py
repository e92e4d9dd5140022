"""One epoch of random allocation alone, against Black and Scholes' formula, quadrature in many digits, and lines."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick import _core
from hockeystick.routes import bounds, option
from hockeystick.what import allocation_call as call
from hockeystick.what import allocation_epoch as epoch

U = 2.0**-53


def black_scholes(m, K, put):
    """E(X-K)_+ or E(K-X)_+ of one lognormal of mean one."""
    m, K = mpf(m), mpf(K)
    d = -mp.log(K) / m + m / 2
    return K * mp.ncdf(m - d) - mp.ncdf(-d) if put else mp.ncdf(d) - K * mp.ncdf(d - m)


@pytest.mark.parametrize("m", [5.0, 1.7, 1.0, 0.4])
@pytest.mark.parametrize("deep", [1.0, 3.0, 12.0, 36.0])
def test_one_term(m, deep):
    """t = 1: both prices, to 1e-300 [theory: allocation.option]."""
    up, down = math.exp(m * deep + 0.5 * m * m), math.exp(-m * deep)
    with mp.workdps(60):
        call = epoch.log_call(m, 1, up - 1)
        if call is not None:
            assert call.error < (1e-9 if m >= 1 else 1e-4)
            assert abs(call.log - mp.log(black_scholes(m, up, put=False))) <= call.error + 8 * U * abs(call.log)
        assert call is not None or (deep <= 3 and m <= 1)
        put = epoch.log_put(m, 1, down - 1, down)
        if put is not None:  # no line of so few terms ends soon
            assert put.error < 1e-9 or m > 1
            assert abs(put.log - mp.log(black_scholes(m, down, put=True))) <= put.error + 8 * U * abs(put.log)
        assert put is not None or deep != 12.0 or m == 5.0


@pytest.mark.parametrize(("m", "eps"), [(2.0, 1.0), (2.0, 9.0), (1.0, 4.0), (4.0, 30.0)])
def test_two_terms(m, eps):
    """t = 2: a call on one term with what the other leaves of the strike, in many digits."""
    K, v = 2 * math.exp(eps), m * m
    with mp.workdps(30):

        def given(g):
            rest = mpf(K) - mp.exp(m * g - mpf(v) / 2)
            return mp.npdf(g) * (1 - rest if rest <= 0 else black_scholes(m, rest, False))

        at = (mp.log(K) + mpf(v) / 2) / m
        cuts = sorted(
            [mpf(-14), mpf(-4), mpf(0), mpf(m), at / 2, at - 1, at - 0.1, at, at + 0.1, at + 1, at + 6, mpf(60)]
        )
        true = mp.quad(given, cuts)
    call = epoch.log_call(m, 2, 2 * math.expm1(eps))
    assert call.error < 1e-11 and abs(call.log - mp.log(true)) < call.error + 1e-12


def test_sums_over_one_term_at_complex_s():
    """h2 and e^z of one node within what the C file claims [theory: allocation.epoch]."""
    rng = np.random.default_rng(5)
    worst = 0.0
    with mp.workdps(40):
        for _ in range(400):
            z = complex(*(rng.choice([-1, 1], 2) * 10 ** rng.uniform(-5, [2.0, 3.0], 2)))
            z = complex(min(z.real, 40.0), z.imag)
            rows = np.zeros((6, 16))
            rows[:, 3] = 1.0, 0.0, 1.0, 0.0, 1.0, 0.0
            for whole in (False, True):
                re, im, size = _core.term_transform(rows, whole, -np.array([[z.real], [z.imag]]))[:, 0]
                true = mp.exp(z) - (0 if whole else 1 + mp.mpc(z))
                off = abs(re - true.real) + abs(im - true.imag)
                assert off <= 48 * U * size and size <= (60 + 4 * abs(z)) * (abs(true) + mp.exp(z.real) * 3 + abs(z))
                worst = max(worst, float(off / (48 * U * size)))
            rows[4:, 3] = 0.0, 1.0
            moved = _core.term_transform(rows, False, -np.array([[z.real], [z.imag]]))[2, 0]
            assert moved >= abs(z) * abs(mp.expm1(z)) * (1 - 1e-12)
    assert worst > 0.02


def turned_phi(m, r, turned, low, high):
    """phi(-r), r complex, where g is -i turned/m more than real: a rule of mesh 1/64 and that of the nodes between
    agree."""
    shift, scale, two = mp.mpc(0, -mpf(turned) / m), mp.exp(-(mpf(m) ** 2) / 2) * r, []
    for offset in (0, 1):
        nodes = (mpf(2 * k + offset) / 128 + shift for k in range(64 * low, 64 * high))
        two.append(mp.fsum(mp.exp(scale * mp.exp(m * g) - g**2 / 2) for g in nodes) / 64 / mp.sqrt(2 * mp.pi))
    assert abs(two[0] - two[1]) < mpf(10) ** -36 * abs(two[0])
    return (two[0] + two[1]) / 2


@pytest.mark.parametrize("m", [pytest.param(0.5, marks=pytest.mark.slow), 1.0, 3.0])
def test_phi_beside_and_on_the_cut(m):
    """phi turned, by quadrature in many digits along other paths; its imaginary part where it is e^-50, too [theory:
    allocation.edge]."""
    rule = epoch._Rule(m, 1, 1.9, math.pi - 1.9, 1.0)
    r = np.array([1e-3, 0.02, 0.3])
    h, err = rule.at(-r + 0j)
    jump, off, base = epoch._discontinuity(m, r)
    with mp.workdps(50):
        for i, x in enumerate(r.tolist()):
            true = turned_phi(m, mpf(x), "2.2", -16, 30) * mp.exp(-mpf(x)) - 1
            assert abs(h[i] - true) <= err[i] < 1e-9
            if base[i] > -50:
                log = mp.log(-true.imag) + x
                assert abs(mp.log(jump[i]) + base[i] - log) <= off[i] / jump[i] < 1e-9
    assert base[-1] > -50


def test_phi_at_large_s():
    """Much noise, where e^s is beyond a double and phi(s) e^s is not; m off by 3u is paid for."""
    m, s = 0.001, np.array([900.0, 15_000.0])
    h, err = epoch._real(m, 3, 0).at(s + 0j)
    with mp.workdps(50):
        for i, at in enumerate(s.tolist()):
            for off in (1, 1 + mpf(3) / 2**53):
                true = turned_phi(m * off, -mpf(at), 0, -40, 20) * mp.exp(at) - 1
                assert abs(h[i] - true) <= err[i] < 1e-6 * abs(h[i])


def test_bounds_beside_the_cut():
    """M and t|I| bound phi and its imaginary part on turned rays, and are near them [theory: allocation.edge]."""
    m, t, near = 1.0, 50, math.inf
    axis = epoch._Axis(m, t, np.arange(-40, 10))
    with mp.workdps(40):
        for r in (0.02, 0.3):
            for turn in (0.0, 0.3):
                K = 3.0 * t
                bound = axis._cells_upper(np.array([r]), np.array([r]), K, turn)[0]

                def phi(side, r=r, turn=turn):
                    return turned_phi(m, mpf(r) * mp.expj(turn), side * mpf("2.3"), -14, 14)

                s = mpf(r) * mp.expj(turn)
                true = abs((phi(1) ** t - phi(-1) ** t) / 2 * mp.exp(-s * K) / s)
                assert mp.log(true) <= bound
                near = min(near, bound - float(mp.log(true)))
                if r < 0.1 and turn == 0.0:  # the modulus rises with r: least is the integral over a fifth of log r
                    least, most = 0.2 * true, axis._low_upper(r * math.exp(0.2), K, 0.0, 0.0)
                    assert least < most < 50 * least
    assert near < 6


@pytest.mark.parametrize("m", [0.02, 0.3, 1.0, 5.0])
def test_crude_bounds_of_one_term(m):
    q, g = 10.0 ** np.arange(-6, 12), np.linspace(-60.0, 15.0, 150_001)
    bound = epoch._log_phi_upper(m, q)
    for s, upper in zip(q, bound, strict=True):
        e = -0.5 * g * g - s * np.exp(m * g - 0.5 * m * m)
        log = e.max() + math.log(np.exp(e - e.max()).sum() * (g[1] - g[0]) / math.sqrt(2 * math.pi))
        assert log < upper < max(0.5 * log, log + 3) or log < -1000


@pytest.mark.parametrize("depth", [2.0, 5.0])
@pytest.mark.parametrize(
    "ask",
    [
        lambda m, t: epoch._put(m, t, -1.0, False),
        lambda m, t: option._price(m, t, 1, 0.1),
        lambda m, t: option._by_parity(m, t, t * math.expm1(0.03), t * math.exp(0.03)),
    ],
    ids=["put", "add", "parity"],
)
def test_a_rule_that_misses_much(monkeypatch, depth, ask):
    """By a rule in g that is far too coarse: what it misses is in the price's error, and most of it."""
    m, t, on_line = 0.3, 10, epoch._on_line

    def coarse(*args):
        with monkeypatch.context() as here:
            here.setattr(epoch, "DEPTH", depth)
            return on_line(*args)

    epoch.log_put.cache_clear()
    true = ask(m, t)
    monkeypatch.setattr(epoch, "_on_line", coarse)
    epoch.log_put.cache_clear()
    found = ask(m, t)
    epoch.log_put.cache_clear()
    off = abs(math.expm1(found.log - true.log))
    assert true.error < off / 100 < found.error / 100 < off


def test_nothing_is_claimed_where_aliases_are(monkeypatch):
    """A coarse rule in s, in log r or in g says so."""
    args = (1.0, 1000, 1000 * math.expm1(5.0))
    good = epoch.log_call(*args)
    for name, value in (("STEP", 0.5), ("LOOP", 8.0), ("DEPTH", 8.0)):
        epoch.log_call.cache_clear()
        epoch._coarse.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(epoch, name, value)
            call = epoch.log_call(*args)
        assert call is None or (call.error > 1e3 * good.error and abs(call.log - good.log) < call.error)
    epoch.log_call.cache_clear()
    epoch._coarse.cache_clear()
    low = (1.0, 1000, 1000 * math.expm1(-0.1), 1000 * math.exp(-0.1))
    epoch.log_put.cache_clear()
    sharp = epoch.log_put(*low)
    for name, value in (("DEPTH", 12.0), ("LARGEST", 1e-2)):
        epoch.log_put.cache_clear()
        epoch._real.cache_clear()
        epoch._largest.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(epoch, name, value)
            put = epoch.log_put(*low)
        assert put is None or abs(put.log - sharp.log) < put.error
    for kept in (epoch.log_put, epoch._real, epoch._largest):
        kept.cache_clear()


@pytest.mark.parametrize(
    ("sigma", "t", "delta", "direction", "eps"),
    [
        (0.4196, 456_064, 4.8e-10, "remove", 3.91123),
        (0.8984, 247_479, 3.7e-281, "add", 0.108210),
        (0.2132, 5_378, 8e-241, "add", 8.17012),
        (0.3425, 7_239, 3.3e-247, "remove", None),
        (1.71, 1_552, 2.2e-265, "remove", 13.0956),
    ],
)
def test_settings_that_no_line_knew(sigma, t, delta, direction, eps):
    """Refused, or 0.6 to 70 % wide, before."""
    run = hs.random_allocation(hs.gaussian(sigma), t)
    b = hs.epsilon(run, delta, direction=direction)
    assert b.certified and b.upper - b.lower < 1e-9 * b.upper
    if eps:
        assert b.estimate == pytest.approx(eps, rel=2e-4)
    inside = hs.log_delta(run, b.estimate, direction=direction)
    assert abs(inside.estimate - math.log(delta)) < 1e-8 * abs(math.log(delta))


@pytest.mark.parametrize(
    ("m", "t", "delta", "log_at", "width"),
    [
        (1.152, 125_045, 2.5e-8, -17.504390, 1e-7),
        (1.106, 982_781, 7.6e-11, -23.300289, 1e-5),
    ],
)
def test_few_large_terms_beside_a_bulk(m, t, delta, log_at, width):
    """Refused, and a hundredth wide, before: parity loses digits there, and the sum along the cut all of them."""
    run = hs.random_allocation(hs.gaussian(1 / m), t)
    b = hs.epsilon(run, delta, direction="remove", route="contour")
    assert b.upper - b.lower < width * b.upper
    assert hs.log_delta(run, b.estimate, direction="remove", route="contour").estimate == pytest.approx(
        log_at, abs=1e-4
    )


def test_a_line_that_knows_more_is_asked_as_well():
    """The price is asked first, as others may take long; to 1e-7 it was enough: 3e-8 wide where a line knows 4e-10."""
    step = hs.random_allocation(hs.gaussian(0.46), 41_401)
    assert option.first(step, 0, math.log(3.9e-5))
    b = hs.epsilon(step, 3.9e-5, direction="remove", route="contour")
    assert b.upper - b.lower < 1e-9 * b.upper


def test_a_kept_line_asks_no_moments(monkeypatch):
    """Whether delta is too small for a grid is asked only where a grid would be: of 10 epochs it took 70 ms of 71."""
    run = hs.random_allocation(hs.gaussian(1.0), 100) * 10
    eps = hs.epsilon(run, 1e-5).estimate
    monkeypatch.setattr(bounds, "far_below", None)
    b = hs.delta(run, 0.9 * eps)
    assert 4.1e-5 < b.lower < b.upper < 4.3e-5 and b.upper < b.lower * (1 + 1e-9)


@pytest.mark.parametrize(("sigma", "t"), [(1.0, 1000), (0.5, 300)])
def test_prices_meet_lines(sigma, t):
    """The transform of an epoch on a line, which shares nothing but one term's law."""
    run = hs.random_allocation(hs.gaussian(sigma), t)
    for add, direction in enumerate(("remove", "add")):
        for eps in (0.05, 0.4, 1.5):
            line = hs.log_delta(run, eps, direction=direction, route="contour")
            price = option.point(run, add, eps)
            assert price is None or (price.lower <= line.upper and line.lower <= price.upper)
            assert price is not None or not add


def test_what_a_price_is_off_by_reaches_the_ends(monkeypatch):
    step, off = hs.random_allocation(hs.gaussian(1.0), 100), 0.25
    monkeypatch.setattr(option, "_price", lambda *_: epoch.Value(-3.0, off, 0.0, 0.0))
    found = option.point(step, 1, 0.5)
    assert found.lower <= -3 + math.log1p(-off) and found.upper >= -3 + math.log1p(off)
    law = type("Law", (), {"at": lambda *_: (np.array([-3.0]), np.array([off]))})()
    monkeypatch.setattr("hockeystick.what.allocation_path.law", lambda *_: law)
    found = option._by_path(1.0, 100, 20.0)
    assert found.error >= off and found.log == -3 - math.log(100)


@pytest.mark.parametrize(("m", "t", "eps"), [(0.3, 2, 0.6), (0.2, 2, 0.05), (1.0, 100, 0.62), (0.5, 30, 0.3)])
def test_call_on_a_line_without_a_pole(m, t, eps):
    """Against a call on one term with what the others leave, or along the cut [theory: allocation.call]."""
    x = t * math.expm1(eps)
    line = call.line_at(m, t, x)
    value, *errors = line.at(x)
    assert sum(errors) < 1e-8 * value
    if t == 2:
        K = mpf(2) + mpf(x)
        with mp.workdps(30):

            def given(g):
                rest = K - mp.exp(m * g - mpf(m) ** 2 / 2)
                return mp.npdf(g) * (1 - rest if rest <= 0 else black_scholes(m, rest, False))

            true = float(mp.quad(given, mp.linspace(-12, 14, 27)))
        assert abs(value - true) < sum(errors)
    else:
        found = hs.delta(hs.random_allocation(hs.gaussian(1 / m), t), eps, route="pld")
        assert found.lower <= (value + sum(errors)) / t and (value - sum(errors)) / t <= found.upper
    slope = (line.value(x * (1 + 1e-5))[0] - line.value(x * (1 - 1e-5))[0]) / (2e-5 * x)
    assert line.value(x)[1] == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("m", [0.15, 0.6, 1.3])
def test_short_lines_of_calls_miss_what_they_claim(m, monkeypatch):
    """Few nodes and a short period: errors that are seen are claimed, and not many times over."""
    t, near = 40, {"ALIAS": [], "NATS": []}
    for x in (0.5 * math.sqrt(t) * m, 3 * math.sqrt(t) * m):
        true, *fine = call.CallLine(m, t, 1.2 * x).at(x)
        for name, some in (("ALIAS", (2.0, 4.0, 8.0)), ("NATS", (3.0, 6.0, 9.0))):
            for least in some:
                with monkeypatch.context() as patch:
                    patch.setattr(call, name, least)
                    call.about_end.cache_clear()
                    value, *errors = call.CallLine(m, t, 1.2 * x).at(x)
                assert abs(value - true) <= sum(errors) + sum(fine)
                near[name].append(abs(value - true) / sum(errors))
    call.about_end.cache_clear()
    assert max(near["ALIAS"]) > 0.02 and max(near["NATS"]) > 1e-4
