"""Much noise: k weak steps are a Gaussian mechanism of mu = q sqrt(k) / sigma but for a part in 10^9."""

import itertools
import math

import mpmath
import pytest

import hockeystick as hs

GRID = list(itertools.product([1e4, 1e5, 1e6, 1e7, 1e8], [1e-3, 0.1, 0.9]))


@pytest.mark.parametrize("adjacency", ["add_remove", "zero_out", "replace_one"])
@pytest.mark.parametrize(("sigma", "q"), GRID)
def test_two_routes_intersect(sigma, q, adjacency):
    k = round(min(1e12, (sigma / q) ** 2 * 0.3))
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
    others = ("saddlepoint",) if adjacency == "replace_one" else ("edgeworth", "saddlepoint")
    for direction, route in itertools.product(("add", "remove"), others):
        first = hs.epsilon(run, 1e-4, adjacency=adjacency, direction=direction, route="contour")
        other = hs.epsilon(run, 1e-4, adjacency=adjacency, direction=direction, route=route)
        assert first.lower <= other.upper
        assert other.lower <= first.upper < math.inf


@pytest.mark.parametrize("route", ["auto", "saddlepoint", "edgeworth"])
@pytest.mark.parametrize(("sigma", "q", "eps"), [(1e9, 2.8e-12, 8.86e-14), (1e9, 1.6e-12, 6e-14), (1e7, 1e-12, 3e-12)])
def test_tilts_beyond_1e16(sigma, q, eps, route):
    """1e12 steps that reveal next to nothing, 30 deviations out: log delta of the Gaussian limit, whose third moment is
    some 1e-7 of its deviation cubed."""
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * 10**12
    with mpmath.workdps(40):
        mu, e = mpmath.mpf(q) * 10**6 / sigma, mpmath.mpf(eps)
        truth = mpmath.log(mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu))
    bound = hs.log_delta(run, eps, direction="add", route=route)
    assert bound.lower <= truth + 0.01 and truth - 0.01 <= bound.upper < truth + 5
