"""The Renyi curve of Gaussian noise around random shifts, at low and very high orders, against finite sums and
quadrature."""

import math

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.routes import cumulant, shifts

SHIFTED = [
    (1.0, (0.5, 2.0), (0.75, 0.25)),
    (0.3, (0.0, 1.0), (0.875, 0.125)),
    (30.0, (0.0, 5.0), (1 - 2.0**-20, 2.0**-20)),
]


@pytest.mark.parametrize("alpha", [2, 17, 300, 1000])
@pytest.mark.parametrize(("sigma", "shifts", "probabilities"), SHIFTED)
def test_rdp_of_random_shifts(sigma, shifts, probabilities, alpha):  # [theory: law.shifts]
    """REMOVE: E r^alpha is a finite sum. ADD: the trapezoid rule about the largest value of r^(1-alpha) w. Sampled at a
    rate of 2^-10: one more shift, 0."""
    with mpmath.workdps(30):
        s, w = [mpmath.mpf(x) / mpmath.mpf(sigma) for x in shifts], [mpmath.mpf(p) for p in probabilities]
        terms = (
            mpmath.mpf(math.comb(alpha, i))
            * w[0] ** i
            * w[1] ** (alpha - i)
            * mpmath.exp(((i * s[0] + (alpha - i) * s[1]) ** 2 - i * s[0] ** 2 - (alpha - i) * s[1] ** 2) / 2)
            for i in range(alpha + 1)
        )
        truths = [mpmath.log(mpmath.fsum(terms)) / (alpha - 1)]
        low, high = -(alpha - 1) * s[1], mpmath.mpf(0)
        for _ in range(60):  # the slope of log r^(1-alpha) w falls
            x = (low + high) / 2
            e = [p * mpmath.exp(v * x - v * v / 2) for p, v in zip(w, s, strict=True)]
            low, high = (x, high) if (1 - alpha) * mpmath.fdot(e, s) / sum(e) > x else (low, x)
        h = 1 / (3 + mpmath.sqrt(alpha) * s[1] / 2) / 4
        values = []
        for i in range(-int(12 / h), int(12 / h)):
            x = low + i * h
            r = sum(p * mpmath.exp(v * x - v * v / 2) for p, v in zip(w, s, strict=True))
            values.append(r ** (1 - alpha) * mpmath.npdf(x))
        truths.append(mpmath.log(mpmath.fsum(values) * h) / (alpha - 1))
    run = hs.gaussian_mixture(sigma, shifts, probabilities)
    for direction, truth in zip(("remove", "add"), truths, strict=True):
        bound = hs.rdp(run, alpha, direction=direction)
        assert bound.lower <= truth * (1 + 1e-15) and truth * (1 - 1e-15) <= bound.upper
        assert bound.width <= 1e-10 * bound.upper
        sampled = hs.rdp(hs.poisson_subsampled(run, 2.0**-10), alpha, direction=direction)
        more = hs.gaussian_mixture(sigma, (0.0, *shifts), (1 - 2.0**-10, *(2.0**-10 * p for p in probabilities)))
        other = hs.rdp(more, alpha, direction=direction)
        assert sampled.lower <= other.upper and other.lower <= sampled.upper and sampled.width <= 1e-9 * sampled.upper


def test_orders_beyond_the_nodes_are_refused():
    run = hs.gaussian_mixture(0.05, (0.0, 1.0), (0.5, 0.5))
    with pytest.raises(hs.AccuracyError, match="too many nodes"):
        hs.rdp(run, 1e6)


@pytest.mark.parametrize("m", [0.37, 1.7, 6.3])
def test_claimed_error_of_large_terms(m):  # [theory: law.shifts]
    """One shift: log E r^a = a(a - 1) m^2/2. Terms up to e^100000 carry the rounding of their exponents, which the
    claim covers, and by less than a thousand times."""
    least = math.inf
    for a in np.linspace(20.0, 200.0, 60) / m:
        total, error, top = shifts.cumulant(np.array([m]), (1.0,), 1.0, float(a), cumulant._convex)
        with mpmath.workdps(40):
            off = abs(mpmath.mpf(total) - mpmath.exp(mpmath.mpf(a) * (a - 1) * mpmath.mpf(m) ** 2 / 2 - top))
            assert off <= error
            least = min(least, float(error / off)) if off else least
    assert least < 300
