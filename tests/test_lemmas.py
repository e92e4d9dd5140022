"""Errors of losses as stated: positions, masses and ends of random laws over the whole domain against 60-digit numbers.

From both sides: every actual error is below the stated one, and the stated ones are not far too large."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.loss import sampled as sampled_loss
from hockeystick.pair import step_loss

COUNT = 150


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def rate(rng):
    """Log-uniform in q or in 1 - q, down to the last double below 1."""
    return rng.choice([log_uniform(rng, 1e-12, 1), 1 - log_uniform(rng, 2.0**-53, 0.5), 1 - 2.0**-53, 0.5, 1.0])


def laplace(rng):
    scale = log_uniform(rng, 1 / 300, 1e9)
    m = 1 / mpf(scale)
    return hs.laplace(scale), [(-m, mp.exp(-m) / 2, mpf(1) / 2), (m, mpf(1) / 2, mp.exp(-m) / 2)], "add_remove"


def response(rng):
    e0 = rng.choice([log_uniform(rng, 1e-12, 300), 300.0, rng.uniform(0, 40)])
    a = 1 / (1 + mp.exp(-mpf(e0)))
    return hs.randomized_response(e0), [(-mpf(e0), 1 - a, a), (mpf(e0), a, 1 - a)], "add_remove"


def answers(rng):
    e0, k = log_uniform(rng, 1e-9, 300), int(log_uniform(rng, 2, 1e9))
    small = mp.exp(-mpf(e0))
    whole = 1 + (k - 1) * small
    rows = [(mp.log(k * small / whole), (k - 1) * small / whole, mpf(k - 1) / k), (mp.log(k / whole), 1 / whole, mpf(1) / k)]
    return hs.k_ary_randomized_response(e0, k), rows, "zero_out"


def pmf(rng):
    """Masses of any size, near ties, gaps of hundreds of nats, sums that are not 1."""
    n = int(rng.integers(2, 7))
    num = np.exp(-rng.exponential(rng.choice([1.0, 30.0, 100.0]), n))
    turn = rng.choice([1e-15, 1e-9, 1e-3, 1.0, 30.0])
    den = num * np.exp(np.clip(turn * rng.standard_normal(n), -600, 600)) if rng.random() < 0.7 else rng.permutation(num)
    num, den = (np.maximum(x / x.sum(), 1e-300) for x in (num, den))
    num, den = num * (1 + 1e-10 * rng.uniform(-1, 1)), den / math.fsum(den)
    p, d = ([Fraction(x) for x in mass.tolist()] for mass in (num, den))
    s, t = sum(p), sum(d)

    def real(x):
        return mpf(x.numerator) / mpf(x.denominator)

    rows = [(mp.log(real(a * t / (b * s))), real(a / s), real(b / t)) for a, b in zip(p, d, strict=True)]
    return hs.from_pmf(num, den), rows, "add_remove"


def sampled(rows, q):
    """(loss, num, den) of the sampled law."""
    q = mpf(float(q))
    return [(mp.log(1 - q + q * mp.exp(loss)), q * num + (1 - q) * den, den) for loss, num, den in rows]


def close(value, truth, error):
    """|value - truth| over the stated error; an error of 0 means exact."""
    off = abs(mpf(float(value)) - truth)
    return float(off / mpf(float(error))) if error else float(off > 0)


@pytest.mark.parametrize("make", [laplace, response, answers, pmf])
def test_atoms_and_ends(make):
    """Also lattices of two points, and everything under Poisson sampling and in both directions."""
    rng, positions, masses = np.random.default_rng(14), [], []
    with mp.workdps(60):
        for _ in range(COUNT):
            step, rows, adjacency = make(rng)
            q = 1.0 if adjacency == "zero_out" else float(rate(rng))
            if q < 1:
                step, rows = hs.poisson_subsampled(step, q), sampled(rows, q)
            loss = step_loss(step, adjacency, False)
            back = step_loss(step, adjacency, True)
            rows = sorted(rows)
            atoms = loss.atoms()
            if atoms.loss.size != len(rows):
                continue  # ties of computed losses are merged
            edge, rel = (np.broadcast_to(e, atoms.loss.shape) for e in (atoms.edge, atoms.rel))
            for i, (at, num, den) in enumerate(rows):
                positions.append(close(atoms.loss[i], at, edge[i]))
                masses += [close(atoms.num[i], num, rel[i] * num + atoms.absolute), close(atoms.den[i], den, rel[i] * den)]
            assert close(loss.lo, rows[0][0], loss.ends_error) <= 1 >= close(loss.hi, rows[-1][0], loss.ends_error)
            if q == 1 and make in (laplace, response):  # their own mirror images
                assert close(back.lo, rows[0][0], back.ends_error) <= 1
            if (lattice := loss.lattice()) is not None:
                for i, row in enumerate(rows):
                    j = lattice.first + (i if len(rows) == lattice.num.size else 0)
                    assert close(lattice.offset + lattice.step * j, row[0], lattice.edge + 2.0**-52 * abs(lattice.offset)) <= 1
    assert max(positions) <= 1
    assert max(masses) <= 1
    assert np.median(masses) > 1e-3
    assert np.median(positions) > 1e-4 or make is response


def test_largest_losses_of_rates_near_one():
    """Ends within a few units of the last place for every rate, where 1 - q + q e^loss may cancel."""
    rng = np.random.default_rng(5)
    with mp.workdps(60):
        for _ in range(2000):
            q, at = float(rate(rng)), float(rng.choice([-1, 1]) * log_uniform(rng, 1e-15, 690))
            truth = mp.log(1 - mpf(q) + mpf(q) * mp.exp(mpf(at)))
            assert abs(mpf(sampled_loss(at, q)) - truth) <= 8 * 2.0**-53 * abs(truth)
