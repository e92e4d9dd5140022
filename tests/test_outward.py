"""What moves a number outward: the exact number is inside, in 50 digits, and a thousandth of the room would not do."""

import math

import mpmath
import numpy as np
import pytest

from hockeystick import arguments, outward

RANDOM = np.random.default_rng(3)


def spread(low: float, high: float, n: int = 400) -> list[float]:
    return np.exp(RANDOM.uniform(math.log(low), math.log(high), n)).tolist()


def used(rooms: list[float], errors: list[mpmath.mpf]) -> None:
    """Every error is within its room, and some are far from a thousandth of it."""
    parts = [float(e / r) for e, r in zip(errors, rooms, strict=True)]
    assert max(parts) <= 1
    assert np.mean(np.array(parts) > 0.01) > 0.05


def test_products():
    """Seven roundings: x y z / w sqrt(v), raised and lowered."""
    with mpmath.workdps(50):
        found = []
        for x, y, z, w, v in np.reshape(spread(1e-30, 1e30, 2000), (400, 5)).tolist():
            value, exact = x * y * z / w * math.sqrt(v), mpmath.mpf(x) * y * z / w * mpmath.sqrt(v)
            assert value * outward.DOWN < exact < value * outward.UP
            found.append(abs(value - exact) / exact)
        used([16 * outward.U] * len(found), found)


def test_logarithms():
    with mpmath.workdps(50):
        rooms, errors = [], []
        for scale, value in zip(RANDOM.uniform(-700, 700, 400).tolist(), spread(1e-300, 1e300), strict=True):
            log = math.log(value)
            rooms.append(mpmath.mpf(outward.log_slack(scale, log)))
            errors.append(abs(mpmath.mpf(scale + log) - (mpmath.mpf(scale) + mpmath.log(value))))
        used(rooms, errors)


@pytest.mark.parametrize("side", (-1, 1))
def test_sums_of_logarithms(side):
    with mpmath.workdps(50):
        rooms, errors = [], []
        for x, gap in zip(RANDOM.uniform(-700, 0, 400).tolist(), spread(1e-3, 1e3), strict=True):
            got = outward.log_sum(x, x - gap, side)
            exact = mpmath.log(mpmath.exp(x) + mpmath.exp(mpmath.mpf(x - gap)))
            assert (got - exact) * side >= 0
            rooms.append(mpmath.mpf(outward.log_slack(x)))
            errors.append(abs(outward.log_sum(x, x - gap, 0) - exact))
        used(rooms, errors)
    assert outward.log_sum(-math.inf, -math.inf) == -math.inf
    assert outward.log_sum(-math.inf, -3.0, -1) < -3.0 < outward.log_sum(-3.0, -math.inf)


def test_least_of_a_curve():
    """log(1 - e^eps)."""
    with mpmath.workdps(50):
        rooms, errors = [], []
        for eps in [-x for x in spread(1e-300, 700)]:
            lower, value, upper = outward.log_floor(eps)
            exact = mpmath.log(-mpmath.expm1(eps))
            assert lower <= exact <= upper <= 0
            rooms.append(mpmath.mpf(value - lower + 5e-324))
            errors.append(abs(value - exact))
        used(rooms, errors)


def test_probabilities_of_logarithms():
    logs = RANDOM.uniform(-740, 0, 400)
    rows = arguments.exp_ends(np.column_stack([logs, logs, logs]))
    with mpmath.workdps(50):
        for x, low, high in zip(logs.tolist(), *rows[[0, 2]].tolist(), strict=True):
            exact = mpmath.exp(x)
            assert low <= exact <= high
            assert arguments.exp_lower(x) <= exact <= arguments.exp_upper(x)
