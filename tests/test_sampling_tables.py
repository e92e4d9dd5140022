"""Sampled runs through the public queries: tables of eps and delta, and how they depend on n.

Entries of the tables are printed to 9 digits; they are the reference's own contour integrals, which share no code with
the package."""

import itertools
import math

import pytest

import hockeystick as hs

# n, p, B, sigma, k, delta; eps of (P,Q) and (Q,P): add_remove, zero_out; replace_one
EPS = [
    (10000, 0.01, 100, 1, 500, 1e-5, (7.94189121, 1.68364335), (8.05552092, 2.13562198), 8.49172415),
    (10000, 0.01, 120, 1, 500, 1e-5, (4.62490935, 0.97709968), (4.64188352, 1.02518899), 4.85584651),
    (10000, 0.01, 150, 1, 500, 1e-5, (1.32776748, 0.93201986), (1.32779839, 0.93202314), 1.95616582),
    (1000, 0.1, 110, 2, 200, 1e-6, (5.88066268, 3.78002741), (6.70452632, 4.72787335), 9.33206306),
    (50000, 0.004, 256, 0.8, 1000, 1e-6, (3.80809460, 0.83268356), (3.81204317, 0.83316602), 3.89684805),
    (200, 1.0, 20, 3, 50, 1e-5, (2.53019209, 1.65355704), (3.40490704, 2.69512469), 4.16016845),
    (1000000, 0.001, 1050, 0.7, 2000, 1e-7, (10.99337452, 0.46291117), (10.99611527, 1.05494560), 11.03771130),
    (100, 0.5, 40, 4, 100, 1e-5, (10.84288682, 9.06110616), (16.96807164, 15.26699585), 23.11794161),
]


def step_of(n, p, size, sigma):
    return hs.truncated_poisson_subsampled(hs.gaussian(sigma), p, dataset_size=n, max_batch=size)


@pytest.mark.parametrize("row", EPS, ids=[f"n{r[0]}-B{r[2]}" for r in EPS])
def test_eps_table(row):
    n, p, size, sigma, k, delta, add_remove, zero_out, replace_one = row
    run = step_of(n, p, size, sigma) * k
    for adjacency, values in (("add_remove", add_remove), ("zero_out", zero_out), ("replace_one", (replace_one,) * 2)):
        for direction, value in zip(("remove", "add"), values, strict=True):
            holds(hs.epsilon(run, delta, adjacency=adjacency, direction=direction), value, 6e-9)


def holds(bound, value, half_a_digit, tight=1e-8):
    assert bound.lower <= value + half_a_digit and value - half_a_digit <= bound.upper
    assert bound.width <= tight * max(value, 1e-3)


# (n, p, B, sigma, k); adjacency: delta at 1 forward, backward, at 4 forward, backward (where the reference resolves it)
DELTA = [
    ((10000, 0.01, 120, 1, 500), "add_remove", (4.8198188141e-3, 6.5373688145e-6, 3.1442568852e-5)),
    ((10000, 0.01, 120, 1, 500), "zero_out", (4.9889591403e-3, 1.49542878571e-5, 3.2375209634e-5, 7.80e-17)),
    ((10000, 0.01, 120, 1, 500), "replace_one", (1.2667756774e-2, 1.2667756774e-2, 4.6486817256e-5)),
    ((200, 1.0, 20, 3, 50), "add_remove", (1.2373440817e-2, 3.7513944865e-3, 1.3026537149e-9)),
    ((200, 1.0, 20, 3, 50), "zero_out", (4.7404854163e-2, 3.5990060197e-2, 5.6917542738e-7, 7.5096201878e-11)),
    ((200, 1.0, 20, 3, 50), "replace_one", (1.0358827586e-1, 1.0358827586e-1, 1.9400133015e-5)),
    ((100, 0.5, 40, 4, 100), "add_remove", (0.51015485888, 0.49979079293, 0.095823116, 0.068115791681)),
    ((100, 0.5, 40, 4, 100), "zero_out", (0.77147831331, 0.76827790151, 0.41859557248, 0.39487414388)),
    ((100, 0.5, 40, 4, 100), "replace_one", (0.9113088967, 0.9113088967, 0.72539904584)),
]


@pytest.mark.parametrize("row", DELTA, ids=[f"n{r[0][0]}-{r[1]}" for r in DELTA])
def test_delta_table(row):
    (*step, k), adjacency, values = row
    run = step_of(*step) * k
    for value, (e, direction) in zip(values, itertools.product((1.0, 4.0), ("remove", "add")), strict=False):
        bound = hs.delta(run, e, adjacency=adjacency, direction=direction)
        digits = 2 if value == 7.80e-17 else 7 if e == 4 else 9
        holds(bound, value, 10.0 ** (math.floor(math.log10(value)) - digits))


NOT_MONOTONE = {
    8000: 1.34367,
    10000: 4.62491,
    12000: 7.97204,
    13000: 8.93924,
    14000: 9.05610,
    15000: 8.77088,
    20000: 7.27270,
}
NOT_MONOTONE |= {40000: 4.89444, 100000: 3.15506}


@pytest.mark.parametrize("n", NOT_MONOTONE)
def test_eps_rises_and_falls_with_n(n):
    tight = 1e-8 if n < 100_000 else 1e-4  # sparse: the line for 1e-9 has too many nodes, a looser one answers
    holds(hs.epsilon(step_of(n, 0.01, 120, 1.0) * 500, 1e-5), NOT_MONOTONE[n], 6e-6, tight)


def test_against_the_coupling_bound():
    """Baseline: any plain Poisson bound plus (1 + e^eps) eta, eta = the probability that some step is cut. Ours is
    below."""
    n, p, k, delta = 10_000, 0.01, 500, 1e-5
    plain = hs.poisson_subsampled(hs.gaussian(1.0), p) * k
    for size, eta, baseline, exact in ((170, 2.74e-8, 1.327496, 1.326047), (180, 8.1e-11, 1.326052, 1.326047)):
        ours = hs.epsilon(step_of(n, p, size, 1.0) * k, delta)
        holds(ours, exact, 6e-7)
        assert ours.upper <= baseline * (1 + 2e-3)
        assert hs.delta(plain, baseline).upper + (1 + math.exp(baseline)) * eta == pytest.approx(delta, rel=1e-2)
