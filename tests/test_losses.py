"""Losses: tails of both laws belong together, agree with the definition of the mechanism, and keep what they claim."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.routes import single, table
from hockeystick.what.law import gaussian_mixture_loss
from hockeystick.what.loss import Loss, Tails, poisson, reversed_loss, window
from hockeystick.what.mechanism import as_run
from hockeystick.what.pair import losses, step_loss

BASE = {
    "gaussian": hs.gaussian(0.7),
    "laplace": hs.laplace(1.5),
    "discrete_gaussian": hs.discrete_gaussian(2.0, sensitivity=3),
    "discrete_laplace": hs.discrete_laplace(4.0, sensitivity=3),
    "randomized_response": hs.randomized_response(0.8),
    "approx_dp": hs.approx_dp(0.8, 1e-3),
    "gaussian_mixture": hs.gaussian_mixture(1.0, [0.0, 1.0, 2.5], [0.5, 0.3, 0.2]),
    "from_pmf": hs.from_pmf([0.6, 0.3, 0.1, 0.0], [0.5, 0.0, 0.3, 0.2]),
    "from_curve": hs.from_curve([0.1, 0.5, 1.0], [0.2, 0.05, 1e-6]),
    "public_mixture": hs.public_mixture(
        [hs.gaussian(1.0), hs.laplace(1.0), hs.randomized_response(0.3)], [0.3, 0.5, 0.2]
    ),
}
STEPS = BASE | {f"poisson {name}": hs.poisson_subsampled(step, 0.2) for name, step in BASE.items()}
CASES = [
    pytest.param(step_loss(step, "add_remove", add), id=f"{name} {direction}")
    for name, step in STEPS.items()
    for add, direction in ((False, "remove"), (True, "add"))
]
GRID = np.linspace(-4.0371, 4.0523, 1237)


@pytest.mark.parametrize("loss", CASES)
def test_both_laws_of_one_loss(loss):  # [theory: pair.exponent, pair.loss]
    """num mass of a cell is between e^a and e^b times its den mass; the tails add up to the finite mass."""
    t = loss.tails(GRID)
    slack = 4 * float(np.max(t.rel)) + 2 * t.absolute
    assert np.allclose(t.y_below + t.y_above, 1 - loss.mass_inf, rtol=0, atol=slack)
    assert np.allclose(t.x_below + t.x_above, 1 - loss.mass_minus_inf, rtol=0, atol=slack)
    assert np.all(np.diff(t.y_below) >= -slack) and np.all(np.diff(t.x_above) <= slack)
    y, x = np.diff(t.y_below), np.diff(t.x_below)
    low, high = np.exp(GRID[:-1] - t.edge), np.exp(GRID[1:] + t.edge)
    assert np.all(y >= low * x - slack * (1 + low))
    assert np.all(y <= high * x + slack * (1 + high))


@pytest.mark.parametrize("loss", CASES)
def test_range_atoms_and_nodes(loss):
    t = loss.tails(GRID)
    assert np.all(t.y_below[GRID < loss.lo - t.edge] == 0)
    assert np.all(t.y_above[GRID > loss.hi + t.edge] == 0)
    atoms = loss.atoms()
    if atoms is not None:
        assert np.all(np.diff(atoms.loss) >= 0)
        assert np.allclose(atoms.num, np.exp(atoms.loss) * atoms.den, rtol=1e-12)
        for at, num, den in zip(*atoms[:3], strict=True):
            if abs(at) < 4 and num > 1e-12 and np.sum(np.abs(atoms.loss - at) < 1e-7) == 1:
                around = loss.tails(np.array([at - 1e-9, at + 1e-9]))
                assert np.diff(around.y_below)[0] == pytest.approx(num, rel=1e-7, abs=1e-8)
                assert np.diff(around.x_below)[0] == pytest.approx(den, rel=1e-7, abs=1e-8)
        if not loss.smooth:
            assert math.fsum(atoms.num) == pytest.approx(1 - loss.mass_inf, abs=1e-12)
    values, log_den = loss.nodes(1e-20)
    assert np.exp(log_den).sum() == pytest.approx(1 - loss.mass_minus_inf, abs=1e-9)
    assert loss.cgf(0.0)[0] == pytest.approx(math.log1p(-loss.mass_inf), abs=1e-9)
    assert loss.cgf(-1.0)[0] == pytest.approx(math.log1p(-loss.mass_minus_inf), abs=1e-9)
    assert np.all(values >= loss.lo - 1e-9) and np.all(values <= loss.hi + 1e-9)


@pytest.mark.parametrize("loss", CASES)
def test_lattice(loss):
    lattice = loss.lattice()
    if lattice is None:
        return
    atoms = loss.atoms()
    at = lattice.offset + lattice.step * (lattice.first + np.arange(lattice.num.size))
    used = (lattice.num > 0) | (lattice.den > 0)
    assert np.allclose(at[used], atoms.loss, rtol=1e-12, atol=1e-12)
    assert np.allclose(lattice.num[used], atoms.num, rtol=1e-12)
    assert np.allclose(lattice.den[used], atoms.den, rtol=1e-12)


@pytest.mark.parametrize("loss", CASES)
def test_reversed_twice_is_the_same(loss):  # [theory: pair.reversal]
    t, back = loss.tails(GRID), reversed_loss(reversed_loss(loss)).tails(GRID)
    for a, b in zip(t[:4], back[:4], strict=True):
        assert np.allclose(a, b, rtol=0, atol=1e-12)
    once = reversed_loss(loss)
    assert (once.lo, once.hi, once.mass_inf, once.mass_minus_inf) == (
        -loss.hi,
        -loss.lo,
        loss.mass_minus_inf,
        loss.mass_inf,
    )


def gaussian_tails(s, m, q, dps=60):
    """Exact tails of the subsampled Gaussian loss (REMOVE) at the double s."""
    with mp.workdps(dps):
        s, m, q = mpf(s), mpf(m), mpf(q)
        z = mp.expm1(s) / q + 1
        if z <= 0:
            return mpf(0), mpf(1), mpf(0), mpf(1)
        g = mp.log(z)
        x0, x1 = g / m + m / 2, g / m - m / 2
        up = lambda x: mp.erfc(x / mp.sqrt(2)) / 2  # noqa: E731
        y_above, x_above = q * up(x1) + (1 - q) * up(x0), up(x0)
        return q * up(-x1) + (1 - q) * up(-x0), y_above, up(-x0), x_above


@pytest.mark.parametrize(("m", "q"), [(1.0, 0.01), (0.2, 1e-4), (3.0, 0.5), (1.0, 1e-9), (0.05, 0.9)])
def test_gaussian_claims(m, q):  # [theory: law.gaussian-tails, rounding.edges]
    """Every tail is within its relative error of an exact tail at an edge moved by at most `edge`, one move for all
    four."""
    rng = np.random.default_rng(3)
    loss = step_loss(hs.poisson_subsampled(hs.gaussian(1 / m), q), "add_remove", False)
    v = np.sort(rng.uniform(-12 * m, 12 * m, 60))
    s = np.log1p(q * np.expm1(v))
    t = loss.tails(s)
    for i, at in enumerate(s):
        around = [gaussian_tails(mpf(float(at)) + move * mpf(t.edge), m, q) for move in (-1, 1)]
        for column, low, high in zip(t[:4], *around, strict=True):
            low, high = min(low, high), max(low, high)
            assert low * (1 - t.rel[i]) <= column[i] <= high * (1 + t.rel[i])
    assert t.edge < 1e-13


@pytest.mark.parametrize("m", [0.01, 1.0, 20.0])
def test_laplace_claims(m):  # [theory: pair.laplace, rounding.edges]
    loss = step_loss(hs.laplace(1 / m), "add_remove", False)
    s = np.linspace(-1.1 * m, 1.1 * m, 83)
    t = loss.tails(s)
    with mp.workdps(50):
        shift = mpf(1 / (1 / m))
        for i, at in enumerate(s):
            at = mpf(float(at))
            y = mpf(0) if at < -shift else mpf(1) if at >= shift else mp.exp((at - shift) / 2) / 2
            x = mpf(0) if at < -shift else mpf(1) if at >= shift else 1 - mp.exp(-(at + shift) / 2) / 2
            for got, want in zip((c[i] for c in t[:4]), (y, 1 - y, x, 1 - x), strict=True):
                assert abs(got - want) <= t.rel[i] * want


def test_mixture_inverse():  # [theory: law.shift-tails]
    """gaussian_mixture: tails against a direct sum over the noise."""
    m, p = np.array([0.0, 1.0, 2.5]), np.array([0.5, 0.3, 0.2])
    t = step_loss(BASE["gaussian_mixture"], "add_remove", False).tails(GRID)
    x = np.linspace(-14, 16, 600_001)
    loss = np.log(np.exp(np.multiply.outer(x, m) - 0.5 * m * m) @ p)
    den = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    for i in range(0, GRID.size, 97):
        below = loss <= GRID[i]
        assert t.x_below[i] == pytest.approx(den[below].sum(), abs=3e-5)
        assert t.y_below[i] == pytest.approx((den * np.exp(loss))[below].sum(), abs=3e-5)


def test_discrete_gaussian_is_its_pmf():  # [theory: pair.discrete-gaussian]
    sigma, d = 2.0, 3
    x = np.arange(-60, 64)
    num, den = np.exp(-(x**2) / (2 * sigma**2)), np.exp(-((x - d) ** 2) / (2 * sigma**2))
    a = step_loss(hs.discrete_gaussian(sigma, sensitivity=d), "add_remove", False).tails(GRID)
    b = step_loss(hs.from_pmf(num / num.sum(), den / den.sum()), "add_remove", False).tails(GRID)
    for i in range(4):
        assert np.allclose(a[i], b[i], rtol=0, atol=1e-14)


def test_k_ary():
    e0, k = 1.2, 5
    step = hs.k_ary_randomized_response(e0, k)
    truth, lie = math.exp(e0) / (math.exp(e0) + k - 1), 1 / (math.exp(e0) + k - 1)
    same = hs.from_pmf([truth, lie, 3 * lie], [lie, truth, 3 * lie])
    uniform = hs.from_pmf([truth, 4 * lie], [1 / k, (k - 1) / k])
    for adjacency, pmf in (("replace_one", same), ("zero_out", uniform)):
        for add in (False, True):
            a, b = (step_loss(s, n, add).tails(GRID) for s, n in ((step, adjacency), (pmf, "add_remove")))
            for i in range(4):
                assert np.allclose(a[i], b[i], rtol=0, atol=1e-14)


def test_window():
    loss = step_loss(hs.gaussian(1.0), "add_remove", False)
    lo, hi = window(loss, 1e-6, 1e-9)
    t = loss.tails(np.array([lo, hi]))
    assert 1e-9 < t.y_below[0] <= 1e-6
    assert 1e-12 < t.y_above[1] <= 1e-9


def test_poisson_of_one_is_the_base():
    loss = step_loss(hs.laplace(1.0), "add_remove", False)
    assert poisson(loss, 1.0) is loss


def test_undefined_adjacency():
    for step in (*STEPS.values(), hs.k_ary_randomized_response(1.0, 3)):
        run = as_run(step)
        try:
            losses(run, "replace_one", "remove")
        except hs.DomainError as error:
            assert "replace_one" in str(error) and "allowed" in str(error)
    with pytest.raises(hs.DomainError, match="add_remove"):
        losses(as_run(hs.k_ary_randomized_response(1.0, 3)), "add_remove", "remove")


def test_atoms_carry_the_error_of_their_masses():
    """Masses of a curve are second differences of its points: their error is far above a few units."""
    eps = np.linspace(0.0, 4.0, 401)
    normal = NormalDist().cdf
    step = hs.from_curve(eps, [normal(0.5 - e) - math.exp(e) * normal(-0.5 - e) for e in eps])
    for loss in (step_loss(step, "add_remove", True), step_loss(hs.poisson_subsampled(step, 0.1), "add_remove", False)):
        assert 1e-14 < np.max(loss.atoms().rel) < 1e-6
    assert step_loss(hs.randomized_response(1.0), "add_remove", False).atoms().rel < 1e-15


@pytest.mark.parametrize("shifts", [[0.0, 1.0, 2.0], [0.5, 4.0]])
def test_tails_of_a_mixture_do_not_depend_on_how_many_are_asked(shifts):
    """Many arguments start Newton's method on chords, few from afar."""
    p = np.array([0.9, 0.1 - 1e-9, 1e-9][: len(shifts)])
    loss = gaussian_mixture_loss(np.array(shifts), p, np.log(p))
    s = np.linspace(-3.0, 20.0, 2000)
    many = loss.tails(s)
    few = [loss.tails(s[i : i + 50]) for i in range(0, s.size, 50)]
    assert many.edge <= 1.5 * max(t.edge for t in few)
    for i in range(4):
        want = np.concatenate([t[i] for t in few])
        np.testing.assert_allclose(many[i], want, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("moved", [0.9, -0.9])
def test_one_step_whose_losses_are_known_roughly(moved):  # [theory: small.single]
    """Atoms that the tails put nearly an edge away from where they are: at eps between both places the wrong set misses
    nearly all that the edge allows."""
    edge, at, num = (
        1e-3,
        np.array([2.0, 1.0, math.log(0.3 / (1 - 0.3 * math.exp(-2) - 0.4 * math.exp(-1)))]),
        [0.3, 0.4, 0.3],
    )
    den = num * np.exp(-at)

    def tails(s):
        above = (at + moved * edge)[:, None] > s
        y, x = num @ above, den @ above
        return Tails(1 - y, y, 1 - x, x, np.full(s.size, 1e-15), edge)

    loss = Loss(tails, None, at[2], 2.0, ends_error=edge)
    for eps in np.r_[at[1:] - 0.8 * edge, at[1:] + 0.8 * edge, 0.5, 0.0]:
        true = float(np.maximum(num - math.exp(eps) * den, 0).sum())
        found = single.point(loss, float(eps))
        assert found.lower <= math.log(true) + 1e-12 and math.log(true) <= found.upper + 1e-12


@pytest.mark.parametrize(
    "sigma, eps", [(0.5, 75.0), (0.5, 75.4), (1.0, 37.0), (3.5, 10.46), (20.0, 1.83), (20.0, 9.0), (1e6, 1.0)]
)
def test_a_delta_next_to_nothing_has_an_upper_end(sigma, eps, monkeypatch):  # [theory: small.single]
    """Deltas of e^-673 and less are between 0 and an upper end by the tails, without a grid."""
    monkeypatch.setattr(table, "pld", None)
    step = hs.gaussian_mixture(sigma, [1.0], [1.0])
    found, true = hs.log_delta(step, eps), hs.log_delta(hs.gaussian(sigma), eps)
    assert found.lower <= true.lower and true.upper <= found.upper <= max(true.upper + 10, -690.0)
    beside = hs.delta(hs.public_mixture([step, hs.laplace(1e9)], [0.5, 0.5]), eps)
    assert beside.lower == 0 and math.exp(true.lower) * 0.49 <= beside.upper < 1e-288


def test_masses_between_points_on_nearly_one_line():
    """A kink of 1e-6 to 1e-12 of the slopes beside it: rounding of the slopes is what its mass is off by, which the
    claim covers, and by less than a thousand times."""
    rng, least = np.random.default_rng(5), math.inf
    for _ in range(60):
        eps = np.sort(rng.uniform(0.1, 3.0, 4))
        slopes = -rng.uniform(0.01, 0.03) * (1 - np.array([0, 1, 2]) * 10.0 ** rng.uniform(-12, -6))
        delta = 0.9 - 0.02 * eps[0] + np.r_[0, np.cumsum(slopes * np.diff(np.exp(eps)))]
        try:
            step = hs.from_curve(eps, delta, symmetric=False)
        except hs.DomainError:
            continue
        atoms = step_loss(step, "add_remove", False).atoms()
        with mp.workdps(60):
            x, y = [mp.exp(mpf(e)) for e in step.eps], [mpf(d) for d in step.delta]
            slope = [(y[0] - 1) / x[0], *((y[i + 1] - y[i]) / (x[i + 1] - x[i]) for i in range(3)), mpf(0)]
            for at, mass, rel in zip(atoms.loss, atoms.den, np.broadcast_to(atoms.rel, atoms.den.shape), strict=True):
                i = step.eps.index(at)
                true = slope[i + 1] - slope[i]
                if not 0 < true < 1e-4 or rel > 0.3:
                    continue
                off = abs(mpf(float(mass)) - true)
                assert off <= rel * mass * (1 + 1e-9)
                least = min(least, float(rel * mass / off)) if off else least
    assert least < 200
