"""Errors of losses as stated: positions, masses and ends of random laws over the whole domain against 60-digit numbers.

From both sides: every actual error is below the stated one, and the stated ones are not far too large."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.what.loss import sampled as sampled_loss
from hockeystick.what.pair import step_loss

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
    rows = [
        (mp.log(k * small / whole), (k - 1) * small / whole, mpf(k - 1) / k),
        (mp.log(k / whole), 1 / whole, mpf(1) / k),
    ]
    return hs.k_ary_randomized_response(e0, k), rows, "zero_out"


def pmf(rng):
    """Masses of any size, near ties, gaps of hundreds of nats, sums that are not 1."""
    n = int(rng.integers(2, 7))
    num = np.exp(-rng.exponential(rng.choice([1.0, 30.0, 100.0]), n))
    turn = rng.choice([1e-15, 1e-9, 1e-3, 1.0, 30.0])
    den = (
        num * np.exp(np.clip(turn * rng.standard_normal(n), -600, 600)) if rng.random() < 0.7 else rng.permutation(num)
    )
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
def test_atoms_and_ends(make):  # [theory: rounding.sampled-loss]
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
                masses += [
                    close(atoms.num[i], num, rel[i] * num + atoms.absolute),
                    close(atoms.den[i], den, rel[i] * den),
                ]
            assert close(loss.lo, rows[0][0], loss.ends_error) <= 1 >= close(loss.hi, rows[-1][0], loss.ends_error)
            if q == 1 and make in (laplace, response):  # their own mirror images
                assert close(back.lo, rows[0][0], back.ends_error) <= 1
            if (lattice := loss.lattice()) is not None:
                for i, row in enumerate(rows):
                    j = lattice.first + (i if len(rows) == lattice.num.size else 0)
                    assert (
                        close(lattice.offset + lattice.step * j, row[0], lattice.edge + 2.0**-52 * abs(lattice.offset))
                        <= 1
                    )
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


def discrete_gaussian(rng):
    """Outcomes of exponent 600 or less; the rest has no probability that matters here."""
    d = int(rng.integers(1, 4))
    sigma = d * log_uniform(rng, 0.06, 20)
    s2 = 2 * mpf(sigma) ** 2
    far = int(sigma * 36) + 2
    z = mp.fsum(mp.exp(-mpf(x * x) / s2) for x in range(-far - 1, far + 2))
    rows = [
        (d * (d - 2 * x) / s2, mp.exp(-mpf(x * x) / s2) / z, mp.exp(-mpf((x - d) ** 2) / s2) / z)
        for x in range(-far, far + d)
    ]
    return hs.discrete_gaussian(sigma, sensitivity=d), rows, "add_remove"


def discrete_laplace(rng):
    d = int(rng.integers(1, 6))
    scale = d * log_uniform(rng, 1 / 290, 1e6)
    a = 1 / mpf(scale)
    end = 1 / (1 + mp.exp(-a))
    rows = []
    for j in range(d + 1):
        num, den = (end * mp.exp(-a * i) if j in (0, d) else mp.tanh(a / 2) * mp.exp(-a * i) for i in (j, d - j))
        rows.append((a * (d - 2 * j), num, den))
    return hs.discrete_laplace(scale, sensitivity=d), rows, "add_remove"


def approximate(rng):
    e0, d0 = log_uniform(rng, 1e-12, 300), float(rng.choice([log_uniform(rng, 1e-300, 1), 1 - 2.0**-53]))
    a = (1 - mpf(d0)) / (1 + mp.exp(-mpf(e0)))
    low = a * mp.exp(-mpf(e0))
    return hs.approx_dp(e0, d0), [(-mpf(e0), low, a), (mpf(e0), a, low)], "add_remove"


def curve(rng):
    """Connect-the-dots of an (eps, delta) curve of a normal pair, in 60 digits."""
    m, n = log_uniform(rng, 0.05, 3), int(rng.integers(1, 9))
    eps = np.unique(np.r_[0.0, rng.uniform(-2 * m, m * m + 1, n)])
    normal = NormalDist().cdf
    delta = [normal(0.5 * m - e / m) - math.exp(e) * normal(-0.5 * m - e / m) for e in eps]
    eps, delta = zip(*((float(e), d) for e, d in zip(eps, delta, strict=True) if d > 1e-6), strict=True)
    step = hs.from_curve(eps, delta, symmetric=False)
    a, d = [mpf(0), *(mp.exp(mpf(e)) for e in eps)], [mpf(1), *map(mpf, delta)]
    slopes = [(d[i + 1] - d[i]) / (a[i + 1] - a[i]) for i in range(len(eps))] + [mpf(0)]
    dens = [slopes[i + 1] - slopes[i] for i in range(len(eps))]
    return step, [(mpf(e), x * den, den) for e, x, den in zip(eps, a[1:], dens, strict=True)], "add_remove"


@pytest.mark.parametrize("make", [discrete_gaussian, discrete_laplace, approximate, curve])
def test_masses_of_tables(make):  # [theory: pair.given-curve, pair.pmf]
    """Positions and masses; outcomes that one side leaves out weigh less than `absolute`."""
    rng, positions, masses = np.random.default_rng(15), [], []
    with mp.workdps(60):
        for _ in range(15):
            step, rows, adjacency = make(rng)
            atoms = step_loss(step, adjacency, False).atoms()
            rows = sorted(rows)
            edge, rel = (np.broadcast_to(e, atoms.loss.shape) for e in (atoms.edge, atoms.rel))
            at = np.abs(np.subtract.outer(np.array([float(r[0]) for r in rows]), atoms.loss)).argmin(axis=1)
            assert make is discrete_gaussian or atoms.loss.size == len(rows)
            for (loss, num, den), i in zip(rows, at, strict=True):
                if max(num, den) < mpf(10) ** -300:  # left out, or subnormal
                    continue
                positions.append(close(atoms.loss[i], loss, edge[i]))
                for mass, truth in ((atoms.num[i], num), (atoms.den[i], den)):
                    masses.append(close(mass, truth, rel[i] * mpf(float(mass)) + mpf(atoms.absolute)))
            loss = step_loss(step, adjacency, False)
            if make is approximate:
                assert loss.mass_inf == loss.mass_minus_inf == step.delta0
    assert max(positions) <= 1 and max(masses) <= 1
    assert np.max(masses) > 1e-4


def phi(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def normal_tails(rng):
    """Tails of a normal pair, and of a mixture of two against N(0, 1), as functions of x and its loss."""
    if rng.random() < 0.5:
        sigma = log_uniform(rng, 1e-2, 1e9)
        return hs.gaussian(sigma), [1 / mpf(sigma)], [mpf(1)]
    sigma, p = log_uniform(rng, 0.05, 1e6), float(rng.choice([log_uniform(rng, 1e-9, 0.5), rng.uniform(0, 1)]))
    share = [p, 1 - p]
    return (
        hs.gaussian_mixture(sigma, [1.0, 0.25], share),
        [1 / mpf(sigma), mpf(0.25) / mpf(sigma)],
        [mpf(x) for x in share],
    )


def test_tails_of_normal_laws():  # [theory: law.edges]
    """Four tails of one set of outcomes {x <= y}, whose loss is within the edge of s: the ends of that range hold
    them."""
    rng, used = np.random.default_rng(16), []
    with mp.workdps(40):
        for _ in range(25):
            step, means, shares = normal_tails(rng)
            terms = list(zip(shares, means, strict=True))

            def loss_at(y, terms=terms):
                return mp.log(mp.fsum(w * mp.exp(u * y - u * u / 2) for w, u in terms))

            x = np.sort(np.r_[rng.uniform(-6, float(means[0]) + 6, 2), rng.uniform(-30, float(means[0]) + 30)])
            t = step_loss(step, "add_remove", False).tails(np.array([float(loss_at(mpf(y))) for y in x]))
            for i, near in enumerate(x.tolist()):
                level, ends = mpf(float(loss_at(mpf(near)))), []
                for side in (-1, 1):
                    y = mpf(near)
                    for _ in range(8):  # the loss is nearly a line here: Newton's method
                        parts = [w * mp.exp(u * y - u * u / 2) for w, u in terms]
                        slope = mp.fsum(u * part for part, u in zip(parts, means, strict=True)) / mp.fsum(parts)
                        y -= (mp.log(mp.fsum(parts)) - level - side * mpf(t.edge)) / slope
                    ends.append(
                        [mp.fsum(w * phi(sign * (y - u)) for w, u in terms) for sign in (1, -1)] + [phi(y), phi(-y)]
                    )
                for found, *truths in zip((a[i] for a in t[:4]), *ends, strict=True):
                    low, high = min(truths), max(truths)
                    rel, found = mpf(float(t.rel[i])), mpf(float(found))
                    assert low * (1 - rel) - t.absolute <= found <= high * (1 + rel) + t.absolute
                    if not t.edge and low > 1e-290:
                        used.append(float(abs(found / low - 1) / rel))
    assert 1e-3 < max(used) <= 1
