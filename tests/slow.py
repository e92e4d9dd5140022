"""The contour route's slow twin: the same inversion in mpmath, from nothing but the definition of M(z).

delta(eps) = (1/2 pi) int e^{K(z) - eps z} / (z (1+z)) dy on z = c + iy, c > 0; K = k log M.
M(z) = E_num (num/den)^z is a trapezoid sum over the real line: halving its step squares its error.
Run: pytest -m slow tests/slow.py
"""

import mpmath
import numpy as np
import pytest

import hockeystick as hs

pytestmark = pytest.mark.slow
DIGITS = 40


def inner_grid(sigma, q, step):
    """(weights, losses) at x = step j, den = N(0, sigma^2): loss = log(1 + q expm1((x - 1/2)/sigma^2))."""
    s = mpmath.mpf(sigma)
    reach = s * mpmath.sqrt(2 * (DIGITS + 12) * mpmath.log(10)) + 30 / s
    xs = [step * j for j in range(-int(reach / step), int(reach / step) + 1)]
    weights = [step * mpmath.npdf(x, 0, s) for x in xs]
    losses = [mpmath.log1p(q * mpmath.expm1((2 * x - 1) / (2 * s * s))) for x in xs]
    return weights, losses


def twin(sigma, q, k, eps, direction, step, nodes=400):
    """delta(eps) with `nodes` outer trapezoid nodes from the centre, at the saddle of the real line."""
    q, eps = mpmath.mpf(q), mpmath.mpf(eps)
    weights, losses = inner_grid(sigma, q, step)

    def transform(z):  # E_den e^{a loss}: a = 1 + z for REMOVE, -z for ADD
        a = 1 + z if direction == "remove" else -z
        return mpmath.fsum(w * mpmath.exp(a * x) for w, x in zip(weights, losses, strict=True))

    def height(c):
        return k * mpmath.log(transform(c)) - eps * c - mpmath.log(c) - mpmath.log1p(c)

    with mpmath.workdps(15):
        best = min((height(mpmath.mpf(2) ** (mpmath.mpf(j) / 4)), j) for j in range(-12, 29))[1]
    c = mpmath.mpf(2) ** (mpmath.mpf(best) / 4)
    with mpmath.workdps(20):
        bend = mpmath.diff(height, c, 2)
    dy = mpmath.mpf(1) / 5 / mpmath.sqrt(bend)
    total, log_m = mpmath.mpf(0), mpmath.log(transform(c))
    for n in range(nodes):
        z = mpmath.mpc(c, n * dy)
        ratio = transform(z) / mpmath.exp(log_m)
        term = ratio**k * mpmath.exp(-1j * eps * n * dy) / (z * (1 + z))
        total += term.real * (1 if n else mpmath.mpf(1) / 2)
        if n > 10 and abs(term) < mpmath.mpf(10) ** -30 * abs(total):
            break
    else:
        raise AssertionError("the twin's outer sum did not decay")
    return dy / mpmath.pi * mpmath.exp(k * log_m - eps * c) * total


CASES = [
    (1.0, 0.01, 1000, 1.0, "remove"),
    (1.0, 0.01, 1000, 1.0, "add"),
    (2.0, 0.1, 100, 2.0, "remove"),
    (2.0, 0.2, 300, 3.0, "add"),
    (4.0, 0.5, 64, 1.5, "remove"),
]


@pytest.mark.parametrize("sigma, q, k, eps, direction", CASES)
def test_contour_twin(sigma, q, k, eps, direction):
    with mpmath.workdps(DIGITS):
        truth = twin(sigma, q, k, eps, direction, mpmath.mpf(sigma) / 10)
        bound = hs.delta(hs.poisson_subsampled(hs.gaussian(sigma), q) * k, eps, direction=direction)
        assert bound.certified
        assert bound.lower * (1 - mpmath.mpf(10) ** -16) <= truth <= bound.upper * (1 + mpmath.mpf(10) ** -16)
        assert abs(bound.estimate - truth) <= mpmath.mpf(10) ** -11 * truth


@pytest.mark.parametrize("direction, eps", [("remove", 0.8), ("add", 0.8)])
def test_random_allocation_by_samples(direction, eps):
    """Two epochs of eight steps: 1e7 draws of the loss, within four deviations of their mean."""
    m, t, draws = 0.9, 8, 10**7
    rng, total, square = np.random.default_rng(17), 0.0, 0.0
    for _ in range(20):
        loss = np.zeros(draws // 20)
        for _ in range(2):
            x = np.exp(m * rng.standard_normal((loss.size, t)) - m * m / 2)
            if direction == "remove":
                x[:, 0] *= np.exp(m * m)
            loss += np.log(x.mean(axis=1)) * (1 if direction == "remove" else -1)
        value = np.maximum(-np.expm1(eps - loss), 0.0)
        total, square = total + value.sum(), square + (value**2).sum()
    mean = total / draws
    error = 4 * np.sqrt((square / draws - mean**2) / draws)
    bound = hs.delta(hs.random_allocation(hs.gaussian(1 / m), t) * 2, eps, direction=direction)
    assert bound.upper < bound.lower * (1 + 1e-6) and error < 0.01 * mean
    assert bound.lower - error <= mean <= bound.upper + error, (bound, mean, error)
