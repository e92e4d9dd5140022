"""Laplace, subsampled Laplace and mixed runs: against residues, quadrature and exact mixtures."""

import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.routes import mixed, pld, single
from hockeystick.what.pair import step_loss
from rows import overlap


def laplace_by_residues(m, k, eps):
    """M(z)^k = sum_j C(k,j) (1+z)^j z^(k-j) e^{..}/(1+2z)^k: the residues at -1/2 (order k), 0 (j = k) and -1 (j =
    0)."""

    def series(c0, power):
        out = [mp.mpf(c0) ** power]
        for i in range(k - 1):
            out.append(out[-1] * (power - i) / ((i + 1) * mp.mpf(c0)))
        return out

    with mp.workdps(60 + k):
        m, eps, total = mp.mpf(m), mp.mpf(eps), mp.mpf(0)
        for j in range(k + 1):
            x = m * (2 * j - k) - eps
            if x <= 0:
                continue
            a, b = series(0.5, j - 1), series(-0.5, k - j - 1)
            part = mp.fsum(
                a[p] * b[q] * x ** (k - 1 - p - q) / mp.factorial(k - 1 - p - q) for p in range(k) for q in range(k - p)
            )
            value = part / mp.mpf(2) ** k * mp.exp(-x / 2) + (1 if j == k else 0) - (mp.exp(-x) if j == 0 else 0)
            total += mp.binomial(k, j) * mp.exp(-m * (k - j)) * value
        return +total


@pytest.mark.parametrize("m, k", [(1.0, 1), (0.02, 2), (0.7, 3), (3.0, 4), (12.0, 5), (0.004, 8), (0.4, 13), (2.0, 22)])
def test_laplace_against_residues(m, k):  # [theory: law.laplace, law.few]
    """Bulk to the neighbourhood of the largest loss, and where delta is near one."""
    mean, sd = k * (m - 1 + math.exp(-m)), m * math.sqrt(k)
    for eps in (mean, min(mean + sd, 0.97 * k * m), mean + 0.8 * (k * m - mean), k * m * (1 - 1e-5), 0.0, -0.6 * k * m):
        truth = mp.log(laplace_by_residues(m, k, eps))
        low, mid, high, *_ = mixed.point([mixed.LaplaceStep(m, 1.0, 0, k)], eps)
        assert low <= truth <= high and high - low < 1e-8
        assert abs(mid - truth) <= high - low
        if truth < -0.1 and 0 < eps < mean + 0.9 * (k * m - mean):
            low, _, high, *_ = mixed.root([mixed.LaplaceStep(m, 1.0, 0, k)], float(truth))
            assert low <= eps * (1 + 1e-14) and eps * (1 - 1e-14) <= high and high - low < 1e-7 * eps


# Half of those whose transform decays slowly are enough: the contour tries each for seconds.


@pytest.mark.parametrize("k, scale", [(10**9, 1e5), (10**6, 40.0), (100, 1.0), (3, 0.05)])
def test_extremes_return_and_agree(k, scale):
    """Large counts, deltas from 1e-3 to 1e-290: eps(delta) and delta(eps) are inverse within their intervals."""
    run = hs.laplace(scale) * k
    for delta in (1e-3, 1e-30, 1e-290):
        eps = hs.epsilon(run, delta)
        assert 0 <= eps.lower <= eps.estimate <= eps.upper and eps.width <= 1e-7 * eps.estimate + 1e-12
        back = hs.delta(run, eps.upper)
        assert back.lower <= delta * (1 + 1e-9)


def test_millions_of_atoms_agree_with_the_grid():
    """Little noise is two atoms and rarely anything else: binomial sums over 1e4 outcomes, beside connect-the-dots."""
    k, m, eps = 4 * 10**6, 1e-6, 1e-3
    low, _, high, *_ = mixed.point([mixed.LaplaceStep(m, 1.0, 0, k)], eps)
    below, _, above, *_ = pld.point(((step_loss(hs.laplace(1 / m), "add_remove", False), k),), eps, 0.05)
    assert below <= low and high <= above and high - low < 1e-8


@pytest.mark.parametrize("other", [hs.laplace, hs.gaussian])
def test_hundreds_of_distinct_steps_agree_with_the_grid(other):
    """More steps than a line takes by tables."""
    scales = np.linspace(3.0, 40.0, 300)
    run = sum((other(b) if i % 2 else hs.laplace(b) for i, b in enumerate(scales)), hs.compose([]))
    found = hs.epsilon(run, 1e-8)
    assert found.route == "contour" and found.width < 1e-6
    assert overlap(found, hs.epsilon(run, 1e-8, route="pld"))


@pytest.mark.parametrize("m, k", [(0.3, 4), (2.0, 6), (0.05, 30)])
def test_next_to_the_largest_loss_against_residues(m, k):  # [theory: law.top]
    """From where no two losses off the atoms matter to where they are most of delta and the claim is wide."""
    wide = 0
    for x in (1e-9, 1e-4, 0.03, 0.5, 3.0, 12.0):
        s = min(2 * x * (1 + math.exp(-m)) / k, 0.6 * m)  # k f s/p is about x
        eps = k * m - s
        truth = mp.log(laplace_by_residues(m, k, mp.mpf(k * m) - mp.mpf(s)))
        answer = mixed.point([mixed.LaplaceStep(m, 1.0, 0, k)], eps, 0.4)
        assert answer.lower <= float(truth) + 4e-16 * k * m / s and float(truth) - 4e-16 * k * m / s <= answer.upper
        wide += answer.upper - answer.lower > 1e-6
        found = mixed.root([mixed.LaplaceStep(m, 1.0, 0, k)], float(truth), 0.4)
        assert found.lower <= eps * (1 + 1e-15) and eps * (1 - 1e-15) <= found.upper
    assert wide


@pytest.mark.parametrize("m, q, add", [(1.0, 0.05, 0), (3.0, 0.01, 0), (0.4, 0.3, 1), (5.0, 0.6, 1), (0.02, 1e-3, 0)])
def test_next_to_the_largest_loss_of_two_sampled_steps(m, q, add):  # [theory: law.top, law.laplace-series]
    """Two losses off the atoms by quadrature of one against the pay-off of the other."""
    with mp.workdps(30):
        m_, q_ = mp.mpf(m), mp.mpf(q)
        loss = {u: (-1 if add else 1) * mp.log1p(q_ * mp.expm1(u)) for u in (-m_, m_)}
        mass = {-m_: (1 if add else mp.exp(loss[-m_])) / 2, m_: (1 if add else mp.exp(loss[m_])) * mp.exp(-m_) / 2}
        top = max(loss, key=loss.get)

        def weight(u):  # of the density in the base loss, under num
            return mp.exp(-(u + m_) / 2) / 4 * (1 if add else 1 + q_ * mp.expm1(u))

        def base(at):  # the base loss at a loss
            return mp.log1p(mp.expm1(-at if add else at) / q_)

        def one(e):  # delta of the smooth part of one step at e
            if add:
                return q_ / 2 * mp.exp(e - m_) * mp.expm1((base(e) + m_) / 2) ** 2
            return q_ / 2 * mp.expm1((base(e) - m_) / 2) ** 2

        for share in (1e-7, 1e-3, 0.05, 0.4):
            s = share * abs(loss[m_] - loss[-m_])
            eps = 2 * loss[top] - s
            edge = base(loss[top] - s)
            ends = (-m_, edge) if add else (edge, m_)
            two = mp.quad(lambda u, e=eps: weight(u) * one(e + (1 if add else -1) * mp.log1p(q_ * mp.expm1(u))), ends)
            delta = mass[top] ** 2 * -mp.expm1(-s) + 2 * mass[top] * one(eps - loss[top]) + two
            for rtol in (1e-10, 0.4):
                low, _, high, *_ = mixed.point([mixed.LaplaceStep(m, q, add, 2)], float(eps), rtol)
                slack = 1e-15 * float(eps / s)
                assert low <= float(mp.log(delta)) + slack and float(mp.log(delta)) - slack <= high and high - low < 1


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 0.01])
@pytest.mark.parametrize(("direction", "sign"), [("remove", 1.0), ("add", -1.0)])
def test_terms_make_up_the_interval_next_to_the_largest_loss(direction, sign, gap):  # [theory: law.top]
    run = hs.poisson_subsampled(hs.laplace(1.0), 0.2) * 3
    top = sign * math.log1p(0.2 * math.expm1(sign))
    bound = hs.log_delta(run, 3 * top - gap, direction=direction, rtol=0.5)
    terms = dict(bound.budget.terms)
    assert terms["truncation"] + terms["rounding"] == pytest.approx(0.5 * bound.width, rel=0.01)


def test_nodes_that_a_width_asks_for():
    """None where all would be needed, else so many that a tail of the second power is narrow enough."""
    assert mixed._nodes_enough(4096, 200.0, 1 << 15) == ()
    for over in (1.5, 4.0, 10.0):
        (nodes,) = mixed._nodes_enough(4096, over, 1 << 15)
        assert over * (4096 / nodes) ** 2 < 1


@pytest.mark.parametrize("sigma", [214.801, 214.8019, 214.802])
def test_a_root_next_to_delta_1_has_a_line_of_its_own(sigma):
    """There log delta is near its goal at any eps: the line was placed 120 beside the root, 0.5 wide."""
    pmf = hs.from_pmf([2.5e-122, 1.0, 2.4e-235], [2.4e-161, 8.0e-265, 1.0])
    few = hs.poisson_subsampled(hs.gaussian(0.06056133007605457), 0.036382602572458775) * 3
    many = hs.poisson_subsampled(hs.gaussian(sigma), 0.9999999999999999) * 10_315_140
    b = hs.epsilon(many + few + pmf, 0.999999, direction="remove")
    assert b.upper - b.lower < 0.01
    assert 647.8 < b.lower < 647.9


@pytest.fixture
def asked(monkeypatch):
    """Lines as they are asked: whether at an eps."""
    calls, ask = [], mixed._call
    monkeypatch.setattr(mixed, "_call", lambda have_eps, *a: calls.append(have_eps) or ask(have_eps, *a))
    return calls


@pytest.mark.parametrize(
    ("scale", "q", "k", "delta"), [(0.1576, 0.03398, 8, 7.08e-5), (0.1225, 0.000808, 33, 8.92e-16)]
)
def test_a_root_next_to_a_kink_has_a_line_at_the_mean(scale, q, k, delta, asked):
    """The line of the saddle brackets none there, nor does one below: a grid answered, 5e-4 wide."""
    bound = hs.epsilon(hs.poisson_subsampled(hs.laplace(scale), q) * k, delta)
    assert bound.route == "contour"
    assert bound.upper < bound.lower * (1 + 1e-6)
    assert asked.count(0) == 2
    grid = hs.epsilon(hs.poisson_subsampled(hs.laplace(scale), q) * k, delta, route="pld")
    assert grid.lower <= bound.lower <= bound.upper <= grid.upper


def test_the_second_direction_begins_at_the_line_of_the_first(asked):
    """Of two curves that are about the same: two lines for the first, one for the second."""
    sampled = hs.poisson_subsampled(hs.gaussian(9.502), 0.001749) * 3
    run = hs.compose((sampled, 1), (hs.laplace(0.542), 12), (hs.discrete_gaussian(3.246), 2))
    both = hs.epsilon(run, 5.87e-10)
    assert asked.count(0) == 3
    halves = [hs.epsilon(run, 5.87e-10, direction=side) for side in ("remove", "add")]
    assert asked.count(0) == 7
    assert both.lower == pytest.approx(max(half.lower for half in halves), rel=1e-13)
    assert both.upper == pytest.approx(max(half.upper for half in halves), rel=1e-13)


@pytest.mark.parametrize("scale, delta", [(7.9, 8e-8), (11.0, 1.3e-8), (0.2, 1e-3), (1.0, 0.2)])
def test_the_root_of_one_step_asks_few_points(monkeypatch, scale, delta):  # [theory: line.root]
    """Next to the largest loss, where log delta is no line, the chord to a delta of 0 leads to it: 45 once."""
    calls, ask = [], single.point
    monkeypatch.setattr(single, "point", lambda *a: calls.append(a) or ask(*a))
    bound = hs.epsilon(hs.laplace(scale), delta)
    exact = 1 / mp.mpf(scale) + 2 * mp.log1p(-mp.mpf(delta))  # delta = 1 - e^{(eps - 1/scale)/2}
    assert bound.lower <= exact <= bound.upper and bound.width < 1e-12 and len(calls) <= 32
