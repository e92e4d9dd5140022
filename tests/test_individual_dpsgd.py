"""From norms to charges: rounding, levels in the safe direction, the sampling trap, the heuristic fit; route fft."""

import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import hockeystick as hs
from hockeystick.grid import cells as grid
from hockeystick.individual import NoiseLevels, fft_records, fit_mu, mu_from_norms, norms_of_all

POSITIVE = st.floats(5e-324, 1.7e308)
SIGMAS = 1 / np.sqrt(np.arange(1, 9) / 8)


def test_absolute_noise_and_multiplier_agree():
    norms = np.array([0.0, 0.1, 1.0, 2.5, np.inf])
    a = mu_from_norms(norms, noise_multiplier=2.0, clip=0.5)
    b = mu_from_norms(norms, sigma=1.0, clip=0.5)
    assert np.array_equal(a, b) and a == pytest.approx([0, 0.1, 0.5, 0.5, 0.5])
    assert (a >= np.minimum(norms, 0.5)).all()


@pytest.mark.parametrize(
    "call",
    [
        dict(norms=[1.0]),
        dict(norms=[1.0], sigma=1.0, noise_multiplier=1.0, clip=1.0),
        dict(norms=[1.0], noise_multiplier=1.0),
        dict(norms=[1.0], sigma=0.0),
        dict(norms=[1.0], sigma=math.nan),
        dict(norms=[1.0], sigma=1.0, clip=0.0),
        dict(norms=[-1.0], sigma=1.0),
        dict(norms=[math.nan], sigma=1.0, clip=1.0),
        dict(norms=[math.inf], sigma=1.0),
        dict(norms=["a"], sigma=1.0),
    ],
)
def test_bad_norms(call):
    with pytest.raises(hs.DomainError):
        mu_from_norms(call.pop("norms"), **call)


@pytest.mark.parametrize(
    ("norms", "indices"),
    [([1.0], [0, 1]), ([1.0, 2.0], [1, 1]), ([1.0], [5]), ([1.0], [-1]), ([math.nan], [0]), ([1.0], [0.5])],
)
def test_bad_samples(norms, indices):
    with pytest.raises(hs.DomainError):
        norms_of_all(5, norms, indices, clip=1.0)


def test_charging_the_sampled_records_only_is_unsound():  # [theory: individual.every-step]
    """Amplified charges for sampled steps only: about q k instead of k of them, and an eps far below the truth."""
    q, steps, sigma, delta = 0.05, 2000, 1.0, 1e-5
    levels, rng = NoiseLevels(1 / sigma, levels=8), np.random.default_rng(0)
    trap, sound = np.zeros((50, 8), np.int32), np.zeros((50, 8), np.int32)
    for _ in range(steps):
        drawn = np.flatnonzero(rng.random(50) < q)
        norms = rng.uniform(0.7, 1.0, drawn.size)
        levels.add(trap, mu_from_norms(norms, noise_multiplier=sigma, clip=1.0), drawn)
        everyone = norms_of_all(50, norms, drawn, clip=1.0)
        levels.add(sound, mu_from_norms(everyone, noise_multiplier=sigma, clip=1.0) * (1 - 1e-15))
    truth_at_least = hs.epsilon(hs.poisson_subsampled(hs.gaussian(sigma / 0.7), q) * steps, delta).lower
    below = hs.individual_epsilons(trap, sigmas=levels.sigmas, q=q, delta=delta).upper
    above = hs.individual_epsilons(sound, sigmas=levels.sigmas, q=q, delta=delta).upper
    assert (below < 0.4 * truth_at_least).all()
    assert (above >= truth_at_least).all()


@given(st.lists(st.floats(0.0, 2.0), max_size=50), st.integers(1, 64), st.sampled_from(["variance", "linear"]))
def test_levels_round_up(mu, n, spacing):  # [theory: individual.noise-levels]
    levels = NoiseLevels(2.0, levels=n, spacing=spacing)
    index = levels.index(np.array(mu))
    for x, j in zip(mu, index, strict=True):
        assert (j == -1) == (x == 0)
        assert x == 0 or (x <= levels.mu[j] <= 1 / levels.sigmas[j] and (j == 0 or x > levels.mu[j - 1]))


@pytest.mark.parametrize("mu", [2.0000001, -0.1, math.nan, math.inf])
def test_no_level_is_safe_beyond_the_last(mu):
    with pytest.raises(hs.DomainError, match=r"mu must be from 0 to 2\.0"):
        NoiseLevels(2.0).index([mu])


def test_bucket_directions_and_spacing():
    """Rounding up stays above the true sequence, down below; uniform in 1/sigma^2 is the tightest and 32 levels
    suffice."""
    q, steps, delta = 0.01, 2000, 1e-5
    mu = np.random.default_rng(0).beta(2, 2, steps)
    true = hs.epsilon(
        hs.compose(*((hs.poisson_subsampled(hs.gaussian(1 / x), q), 1) for x in np.ceil(mu * 400) / 400)), delta
    )
    bounds = {}
    for n in (8, 32):
        for spacing in ("variance", "linear"):
            levels = NoiseLevels(1.0, levels=n, spacing=spacing)
            up = np.zeros((1, n), int)
            for x in mu:
                levels.add(up, np.array([x]))
            bounds[n, spacing] = hs.individual_epsilons(up, sigmas=levels.sigmas, q=q, delta=delta).upper[0]
    levels = NoiseLevels(1.0, levels=32)
    down = np.bincount(np.maximum(levels.index(mu) - 1, 0), minlength=32)[None]
    below = hs.individual_epsilons(down, sigmas=levels.sigmas, q=q, delta=delta).upper[0]
    assert below < true.lower * 1.01
    assert true.lower * 0.99 < bounds[32, "variance"] < bounds[8, "variance"] < bounds[8, "linear"]
    assert bounds[32, "variance"] < bounds[32, "linear"] and bounds[32, "variance"] < 1.1 * true.upper


@given(st.floats(1e-3, 1e9), st.floats(1e-9, 1e9), st.integers(1, 64), st.sampled_from(["variance", "linear"]))
def test_a_norm_at_the_clip_has_the_last_level(z, clip, n, spacing):
    """The mu of the noise multiplier, however its user rounds it, and the mu of a norm that is clipped: each rounded
    apart."""
    charged = mu_from_norms([clip, 2 * clip], noise_multiplier=z, clip=clip), mu_from_norms([clip], sigma=z * clip)
    for mu_max in (1 / z, clip / (z * clip)):
        levels = NoiseLevels(mu_max, levels=n, spacing=spacing)
        for mu in charged:
            assert levels.index(mu).tolist() == [n - 1] * mu.size
            assert (levels.sigmas[n - 1] * mu <= 1).all() and levels.mu[-1] <= mu_max * (1 + 2**-48)
        with pytest.raises(hs.DomainError, match="mu must be from 0 to"):
            levels.index([mu_max * (1 + 1e-14)])


def test_a_positive_norm_is_never_free():
    """However small: its square stays positive, its level is one."""
    norms = np.array([0.0, 5e-324, 1e-300, 1e-160])
    for mu in (mu_from_norms(norms, sigma=1e300), mu_from_norms(norms, noise_multiplier=1e200, clip=1e100)):
        assert mu[0] == 0 and (mu[1:] >= norms[1:] / 1e300).all() and (mu[1:] ** 2 > 0).all()
        assert NoiseLevels(1.0).index(mu).tolist() == [-1, 0, 0, 0]
    assert mu_from_norms([1e-200, 0.0], noise_multiplier=1e-200, clip=1e-200) == pytest.approx([1e200, 0.0])


@given(POSITIVE, POSITIVE, POSITIVE)
def test_mu_is_rounded_up_wherever_its_parts_lie(norm, clip, noise):
    """Also where noise multiplier times clip is no double, or one of few bits."""
    for options, exact in (
        (dict(noise_multiplier=noise, clip=clip), Fraction(min(norm, clip)) / Fraction(clip) / Fraction(noise)),
        (dict(sigma=noise, clip=clip), Fraction(min(norm, clip)) / Fraction(noise)),
        (dict(sigma=noise), Fraction(norm) / Fraction(noise)),
    ):
        (mu,) = mu_from_norms([norm], **options)
        assert mu == math.inf or exact <= Fraction(mu)
        assert mu == math.inf or min(exact, norm / clip) < 1e-150 or Fraction(mu) <= exact * (1 + Fraction(8, 2**53))


def test_counting_a_step_never_wraps():
    levels, counts = NoiseLevels(1.0, levels=2), np.zeros((3, 2), np.uint8)
    for _ in range(255):
        levels.add(counts, np.array([0.5, 1.0]), [2, 0])
    assert counts.tolist() == [[0, 255], [0, 0], [255, 0]]
    for bad, message in (([0.5, 1.0], "full"), ([0.1, 2.0], "mu must be"), ([0.1], "shape")):
        with pytest.raises(hs.DomainError, match=message):
            levels.add(counts, np.array(bad), [2, 0])
    for rows, message in (
        ([1, 1], "distinct"),
        ([1, -1], "from 0 to 2"),
        ([1, 3], "from 0 to 2"),
        ([0.0, 1.0], "integers"),
    ):
        with pytest.raises(hs.DomainError, match=message):
            levels.add(counts, np.array([0.5, 1.0]), rows)
    with pytest.raises(hs.DomainError, match="integers of shape"):
        levels.add(np.zeros((2, 2)), np.ones(2))
    assert counts.tolist() == [[0, 255], [0, 0], [255, 0]]


def test_bad_levels():
    for bad in (dict(mu_max=0), dict(mu_max=math.nan), dict(mu_max=1, levels=0), dict(mu_max=1, spacing="best")):
        with pytest.raises(hs.DomainError):
            NoiseLevels(bad.pop("mu_max"), **bad)
    with pytest.raises(hs.DomainError, match="counts must be integers of shape"):
        NoiseLevels(1.0, levels=3).add(np.zeros((2, 4), int), np.ones(2))


def test_the_fit_is_below_the_truth_where_it_is_known_to_fail():  # [theory: individual.fit]
    """q = 0.01, sigma = 0.8, 1000 steps: fitted up to eps = 2, mu is 0.6831 and eps(1e-5) reads 3.0676; truth:
    3.1410."""
    run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * 1000
    fitted = fit_mu(run, eps_max=2.0, points=4)
    assert fitted.mu == pytest.approx(0.6831, abs=1e-4) and "heuristic" in fitted.label
    reported, truth = fitted.epsilon(1e-5), hs.epsilon(run, 1e-5).lower
    assert reported == pytest.approx(3.0676, abs=2e-4) and truth == pytest.approx(3.1410, abs=1e-4)
    assert reported < truth
    for eps, mu in ((0.01, 0.5840), (1.0, 0.6310), (4.0, 0.8006), (16.0, 1.351)):
        assert fit_mu(run, eps_max=eps, points=1).mu == pytest.approx(mu, rel=2e-4)
    assert fit_mu(run).mu > fitted.mu


def test_the_fit_of_a_gaussian_is_its_mu():
    assert fit_mu(hs.gaussian(2.0) * 4, points=5).mu == pytest.approx(1.0, rel=1e-6)
    assert fit_mu(hs.gaussian(2.0), eps_max=100.0, points=3).mu == pytest.approx(0.5, rel=1e-12)  # delta is no double
    assert fit_mu(hs.gaussian(1e9), points=3).mu == 0.0  # and not 0.001
    with pytest.raises(hs.DomainError):
        fit_mu(hs.gaussian(2.0), eps_max=math.nan)
    with pytest.raises(hs.DomainError, match="points"):
        fit_mu(hs.gaussian(2.0), points=0)


@pytest.mark.parametrize(("q", "steps", "delta"), [(0.01, 1000, 1e-5), (0.1, 100, 1e-6), (0.5, 20, 1e-4)])
def test_route_fft_is_above_the_contour_by_its_mesh(q, steps, delta):  # [theory: individual.fft]
    counts = np.random.default_rng(1).multinomial(steps, np.ones(8) / 8, 6)
    counts[0] = 0
    fft = hs.individual_epsilons(counts, sigmas=SIGMAS, q=q, delta=delta, route="fft")
    exact = hs.individual_epsilons(counts, sigmas=SIGMAS, q=q, delta=delta)
    assert fft.route == "fft" and fft.upper[0] == 0
    assert (fft.upper[1:] > exact.upper[1:]).all()
    assert (fft.upper[1:] < exact.upper[1:] + 0.012).all()


def test_route_fft_names_what_it_cannot_reach():
    with pytest.raises(hs.AccuracyError, match=r"fft: .*use route='contour'"):
        hs.individual_epsilons([[1000] * 8], sigmas=SIGMAS, q=0.01, delta=1e-12, route="fft")


def test_plancherel_equals_the_inverse_transform():  # [theory: individual.fft]
    """The same sum by the inverse transform; without the conjugate, or without the weights' doubling, it is another
    number."""
    counts = np.array([[0, 100, 0, 300, 200, 0, 0, 400]])
    levels = fft_records.prepare(1 / SIGMAS, np.full(8, 0.01), False, 1000.0, counts, 1e-5, 0.02, 1)
    weight, _, _ = fft_records._weights(levels)
    log_b, angle = (counts @ levels.log_abs)[0], (counts @ levels.angle)[0]
    spectrum = np.zeros(levels.n // 2 + 1, complex)
    spectrum[: log_b.size] = np.exp(log_b + 1j * angle)
    law = np.fft.irfft(spectrum, levels.n)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    r = np.arange(1, levels.n // 2 + 1)
    for m in (0, 500, 3000):
        direct = float((-np.expm1(-r * levels.dx) * law[(m + r) % levels.n]).sum())
        turn = np.exp(2j * np.pi * np.arange(log_b.size) * m / levels.n)
        assert (spectrum[: log_b.size] * weight * turn).real.sum() == pytest.approx(direct, abs=1e-12)
        assert abs((spectrum[: log_b.size] * np.conj(weight) * turn).real.sum() - direct) > 1e-3 * direct


def test_the_radius_is_that_of_the_slack():
    """Rounding to the lattice moves a sum of losses by more than `radius` with probability `slack` at most."""
    counts = np.array([[0, 100, 0, 300, 200, 0, 0, 400]])
    levels = fft_records.prepare(1 / SIGMAS, np.full(8, 0.01), False, 1000.0, counts, 1e-5, 0.02, 1)
    worst = max(grid.density_variation_upper(1 / sigma, 0.01, False) for sigma in SIGMAS)
    own = grid.radius_upper(levels.dx, np.array([1000.0]), np.array([worst]), math.log(levels.slack))
    assert levels.slack <= 1e-3 * 1e-5 and 0.95 * levels.radius < own <= levels.radius
