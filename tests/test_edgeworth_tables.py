"""Numbers of the Edgeworth accountant computed apart from this package, reproduced: cumulants, moments of the
finite-sample constants, constants, bounds of tails, and eps."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.gauss import legendre_rule
from hockeystick.routes import edgeworth, eeai, finite_sample
from hockeystick.routes.loss_steps import LAPLACE, NORMAL, RULE

CUMULANTS = [
    (NORMAL, 1.25, 0.01, 0, -0.000167165305, 0.00031710468, 4.70766836e-5, 1.61981675e-5, 9.46643369e-6),
    (NORMAL, 1.25, 0.01, 1, 0.000176652537, 0.000374279772, 6.98117506e-5, 3.1728216e-5, 2.46540966e-5),
    (NORMAL, 1.0, 0.05, 0, -0.00178906624, 0.00330299451, 0.000737594708, 0.000307099518, 0.000190361191),
    (NORMAL, 1.0, 0.05, 1, 0.00194341062, 0.00423403789, 0.00117462816, 0.000613064743, 0.000473787168),
    (NORMAL, 1.25, 0.02, 0, -0.000615932514, 0.00113121707, 0.000264355629, 0.000127232624, 9.56899936e-5),
    (NORMAL, 1.25, 0.02, 1, 0.000673688084, 0.00148058426, 0.000463061535, 0.000304223019, 0.000308388826),
    (LAPLACE, 1.0, 0.1, 0, -0.0040330660856, 0.00782111424241, 0.000745996143299, -3.63214616942e-5, -3.64993794942e-5),
    (LAPLACE, 1.0, 0.1, 1, 0.00415343543605, 0.00854268875828, 0.000690741131526, -7.47344602649e-5, -3.97515360771e-5),
]
"""kind, m, q, law (0: without the record), then mean and cumulants 2 to 5."""


@pytest.mark.parametrize("row", CUMULANTS, ids=lambda r: f"{r[0]}-{r[1]}-{r[2]}-{r[3]}")
def test_cumulants(row):
    kind, m, q, which, *want = row
    found = edgeworth.loss_steps((m, q, 1, kind)).totals[0][1 - which]
    assert found.tolist() == pytest.approx(want, rel=5e-9)


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


REGULAR = {  # the constant for regular characteristic functions, 1e3 to 1e10 steps: sigma, rate, ADD
    (0.8, 0.01, 0): (2.40e-1, 6.0e-2, 1.05e-2, 5.0e-4, 4.2e-7, 3.0e-9),
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
    ("k", "errors"), [(64, (2.35e-2, 2.24e-3, 3.67e-4, 8.99e-5)), (1024, (5.88e-3, 1.28e-4, 4.91e-6, 3.0e-7))]
)
def test_expansions_of_gamma_sums(k, errors):
    """sup |F - E_k| over three deviations for sums of k Gamma(1/2) variables, through the two-sequence form."""
    from scipy.special import gammaincc

    shape = 0.5 * k
    T = np.array([shape, shape, 2 * shape, 6 * shape, 24 * shape])
    far = np.array([0.0, 1.0, 0.0, 0.0, 0.0])  # a law of den that leaves e^-100 at these eps
    for order, want in enumerate(errors):
        worst = 0.0
        for u in np.linspace(-3, 3, 601):
            x = shape + u * math.sqrt(shape)
            log_scale, value = _core.edgeworth_delta(T, far, 2, order, x)
            worst = max(worst, abs(math.exp(log_scale) * value - float(gammaincc(shape, x))))
        assert worst == pytest.approx(want, rel=0.02)


EPS = [  # rate, sigma, k, delta, REMOVE, ADD
    (0.01, 0.8, 1000, 1e-3, 1.96196161, 1.42162296),
    (0.01, 0.8, 1000, 1e-5, 3.14101414, 1.98317675),
    (0.05, 1.0, 200, 1e-3, 3.16205391, 2.21494711),
    (0.05, 1.0, 200, 1e-5, 4.76591935, 2.97568843),
]


@pytest.mark.parametrize(("q", "sigma", "k", "delta", "remove", "add"), EPS)
@pytest.mark.parametrize("route", ["edgeworth", "saddlepoint"])
def test_eps(route, q, sigma, k, delta, remove, add):
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
    for direction, truth in (("remove", remove), ("add", add)):
        bound = hs.epsilon(run, delta, route=route, direction=direction)
        assert bound.lower <= truth + 6e-9 and truth - 6e-9 <= bound.upper
        if route == "edgeworth":
            assert bound.estimate == pytest.approx(truth, abs=6e-9)


@pytest.mark.parametrize(("limit", "low", "high"), [(1e3, 1.95875, 1.96517), (1e4, 1.961647, 1.962276)])
def test_eps_at_a_given_limit(limit, low, high):
    """Inside the untilted interval computed elsewhere at the same T."""
    run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * 1000
    bound = edgeworth.prawitz_epsilon(run, 1e-3, direction="remove", limit=limit)
    assert low <= bound.lower <= 1.96196161 + 6e-9 and 1.96196161 - 6e-9 <= bound.upper <= high
    assert bound.upper - bound.lower > 0.1 * (high - low)


def test_tails_of_laplace_steps():
    """Range, Hoeffding's mean and square of the range; Chernoff's bounds of the tail at eps = 1, 3, 5 are those of
    K."""
    m, q, k = 1.0, 0.1, 100
    low, high = (math.log1p(q * math.expm1(x)) for x in (-m, m))
    assert (low, high) == pytest.approx((-0.06529834, 0.15856508), abs=1e-8)
    mean = edgeworth.loss_steps((m, q, 1, LAPLACE)).totals[0][1][0]
    assert mean == pytest.approx(-0.00403306609, rel=1e-8) and (high - low) ** 2 == pytest.approx(
        0.0501148285, rel=1e-8
    )
    step = hs.poisson_subsampled(hs.laplace(1.0), q)
    for eps, want in ((1.0, 0.319), (3.0, 1.32e-3), (5.0, 1.02e-7)):
        logs = [
            k * (t - 1) * hs.rdp(step, t, direction="remove").estimate - t * eps for t in np.geomspace(1.01, 120, 400)
        ]
        # P(X >= eps) <= E e^{tX} e^{-t eps}, there at a coarse choice of t
        assert 0.94 * want < math.exp(min(logs)) < want


def test_roots_below_zero_are_zero():
    """A delta above delta(0), also for steps outside the Gaussian kind."""
    run = hs.poisson_subsampled(hs.laplace(2.0), 0.0075) * 305
    for direction in ("remove", "add", "both"):
        bound = hs.epsilon(run, 0.26, route="edgeworth", direction=direction)
        assert bound.lower == bound.estimate == bound.upper == 0
