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
def test_samples_of_random_shifts(sigma, shifts, probabilities, alpha):  # [theory: law.shifts]
    """At a rate of 2^-10: one more shift, 0. Without sampling the divergences are among the known numbers."""
    run = hs.gaussian_mixture(sigma, shifts, probabilities)
    more = hs.gaussian_mixture(sigma, (0.0, *shifts), (1 - 2.0**-10, *(2.0**-10 * p for p in probabilities)))
    for direction in ("remove", "add"):
        sampled, other = (hs.rdp(x, alpha, direction=direction) for x in (hs.poisson_subsampled(run, 2.0**-10), more))
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
