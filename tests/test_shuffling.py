"""Shuffled reports: against enumeration of reports, of counts, known values, and the laws of more users and less
noise."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.what import shuffling
from hockeystick.what.shuffling import curve

ONE = {"adjacency": "replace_one"}


def upper(local, n, eps, **bound):
    return hs.delta(hs.shuffled(local, n, **bound), eps, **ONE).upper


@pytest.mark.parametrize("eps0, clone, stronger", [(1.0, 0.182412, 0.148671), (2.0, 0.545498, 0.397087)])
def test_known_values(eps0, clone, stronger):
    """1,000 users, delta 1e-6: within 5e-5 of the clone, of the stronger clone, which two answers prove for
    themselves."""
    for local, bound, known in (
        (hs.pure_dp(eps0), "clone", clone),
        (hs.pure_dp(eps0), "stronger_clone", stronger),
        (hs.k_ary_randomized_response(eps0, 2), "clone", stronger),
    ):
        found = hs.epsilon(hs.shuffled(local, 1000, bound=bound), 1e-6, **ONE).upper
        assert known - 1e-6 < found < known * (1 + 5e-5)


def multisets(laws):
    """The law of the multiset of independent reports."""
    found = Counter()
    for reports in itertools.product(range(len(laws[0])), repeat=len(laws)):
        found[tuple(sorted(reports))] += math.prod(law[r] for law, r in zip(laws, reports, strict=True))
    return found


def excess(num, den, eps):
    return sum(max(p - math.exp(eps) * den[out], 0.0) for out, p in num.items())


@pytest.mark.parametrize("k", [2, 3, 4])
def test_answers_carried_out(k):
    """k-ary answers of a few users, whatever the others' records, lie below; above half of it for two answers
    [theory: shuffle.three]."""
    for eps0, n in ((0.5, 4), (1.0, 5), (2.5, 4)):
        e = math.exp(eps0)
        law = [[(e if i == j else 1) / (e + k - 1) for j in range(k)] for i in range(k)]
        worst = 0.0
        for others in itertools.combinations_with_replacement(range(k), n - 1):
            rest = [law[x] for x in others]
            num, den = multisets([law[0], *rest]), multisets([law[1], *rest])
            for eps in (0.0, 0.3 * eps0, 0.7 * eps0):
                near = excess(num, den, eps) / upper(hs.k_ary_randomized_response(eps0, k), n, eps)
                assert near <= 1 + 1e-9
                worst = max(worst, near)
        assert worst > 0.5


def test_any_randomiser_lies_below_the_clone():
    """Random extremal randomisers of 4 outputs and 3 records, every multiset of others [theory: shuffle.clone]."""
    random = np.random.default_rng(5)
    for eps0 in (0.4, 1.5):
        for _ in range(8):
            base = random.dirichlet(np.ones(4))
            laws = []
            for _ in range(3):
                law = base * np.exp(eps0 * random.integers(0, 2, 4))
                laws.append(law / law.sum())
            far = max(np.max(np.log(a / b)) for a in laws for b in laws)
            for others in itertools.combinations_with_replacement(range(3), 3):
                rest = [laws[x] for x in others]
                num, den = multisets([laws[0], *rest]), multisets([laws[1], *rest])
                for eps in (0.0, 0.4 * far):
                    assert excess(num, den, eps) <= upper(hs.pure_dp(far), 4, eps) * (1 + 1e-9)


def counted(eps0, n, coin, star, u, eps):
    """The curve of the pair of counts by summing over all of them."""
    e, total = math.exp(eps0), 0.0
    for c in range(n):
        for s in range(n - c):
            p = stats.multinomial.pmf([c, s, n - 1 - c - s], n - 1, [coin, star, 1 - coin - star])
            if p < 1e-18:
                continue
            for t, seen, own in ((c + 1, s, u), (c, s + 1, 1 - u)):
                if t == 0 or own == 0:
                    continue
                a = np.arange(t + 1)
                den = t * (e + 1) / 2 + e * seen
                coins = stats.binom.pmf(a, t, 0.5)
                gain = coins * ((e * a + t - a + e * seen) - math.exp(eps) * (a + e * (t - a) + e * seen)) / den
                total += p * own * np.maximum(gain, 0).sum()
    return total


@pytest.mark.parametrize("eps0, n, k", [(1.0, 30, 2), (1.0, 25, 5), (3.0, 20, 3), (0.1, 20, 4)])
def test_counts_summed(eps0, n, k):
    """k-ary answers of more users: the curve of the pair charged is that of the counts [theory: shuffle.excess]."""
    e = math.exp(eps0)
    rates = 2 / (e + k - 1), (k - 2) / (e * (e + k - 1)), (e + 1) / (e + k - 1)
    for part in (0.0, 0.1, 0.3, 0.6):
        found = upper(hs.k_ary_randomized_response(eps0, k), n, part * eps0)
        assert counted(eps0, n, *rates, part * eps0) * (1 - 1e-9) <= found
        assert found <= 1.001 * counted(eps0, n, *rates, 0.995 * part * eps0)  # chords lose at most 0.5% of eps


@pytest.mark.parametrize("n", [10**5, 10**9])
def test_small_losses_scale(n):
    """Where eps0 is small the curve over eps0 is one function of eps/eps0: e^(eps0 + eps) - 1 keeps its digits."""
    at = np.array([0.0, 3e-5 / math.sqrt(n / 1e9)])

    def scaled(eps0):
        return shuffling._delta_upper(shuffling.rates(hs.shuffled(hs.pure_dp(eps0), n)), n, eps0 * at) / eps0

    assert np.allclose(scaled(1e-12), scaled(1e-7), rtol=1e-5, atol=0)


@pytest.mark.parametrize("local", [hs.pure_dp(1e-300), hs.k_ary_randomized_response(1e-300, 36)])
def test_a_loss_that_is_next_to_nothing(local):
    bound = hs.delta(hs.shuffled(local, 100), 2e-300, **ONE)
    assert bound.upper == 0


def test_answers_among_a_billion_others_of_a_billion():
    step = hs.shuffled(hs.k_ary_randomized_response(1.74e-8, 10**9), 10**9)
    assert 0 < hs.delta(step, 0.0, **ONE).upper < 1e-11


def test_bins_lose_little():
    """A million users in bins beside the Gaussian limit of the clone, and beside one bin fewer users
    [theory: shuffle.merge]."""
    n, eps0 = 10**6, 1.0
    found = hs.epsilon(hs.shuffled(hs.pure_dp(eps0), n), 1e-6, **ONE)
    e = math.exp(eps0)
    mu = 2 * (e - 1) / (e + 1) / math.sqrt(n / e)  # n/e fair coins, in standard deviations
    limit = hs.epsilon(hs.gaussian(1 / mu), 1e-6).estimate
    assert abs(found.upper / limit - 1) < 0.01
    assert found.upper < hs.epsilon(hs.shuffled(hs.pure_dp(eps0), n - n // 1000), 1e-6, **ONE).upper


def test_laws():
    """More users, less eps0 cost less; rounds add up; nothing above eps0; composes; both directions are one."""
    local = hs.pure_dp(1.0)
    eps = [hs.epsilon(hs.shuffled(local, n), 1e-6, **ONE).upper for n in (1, 10, 100, 1000, 10**5, 10**7)]
    assert eps == sorted(eps, reverse=True) and eps[0] <= 1.0 and eps[0] > 0.999
    assert upper(local, 100, 1.0) == 0.0 and upper(hs.pure_dp(0.0), 100, 0.0) == 0.0
    one, ten = (hs.epsilon(hs.shuffled(local, 10**4) * k, 1e-6, **ONE) for k in (1, 10))
    assert one.upper < ten.lower < 10 * one.upper
    assert ten.upper < hs.epsilon(hs.shuffled(local, 10**4) * 10 + hs.gaussian(5.0), 1e-6, **ONE).lower
    sides = [hs.delta(hs.shuffled(local, 100), 0.3, direction=d, **ONE) for d in ("remove", "add")]
    assert sides[0] == sides[1]
    assert curve(hs.shuffled(local, 10**9)).delta[0] < 1e-4
    many = [hs.epsilon(hs.shuffled(hs.k_ary_randomized_response(1.0, k), 2000), 1e-6, **ONE).upper for k in (2, 3, 10)]
    assert many == sorted(many, reverse=True)


def test_what_is_refused():
    for local in (hs.gaussian(1.0), hs.approx_dp(1.0, 1e-6), hs.pure_dp(21.0), 1.0):
        with pytest.raises(hs.DomainError):
            hs.shuffled(local, 100)
    for n in (0, 1.5, 10**10, True):
        with pytest.raises(hs.DomainError):
            hs.shuffled(hs.pure_dp(1.0), n)
    with pytest.raises(hs.DomainError, match="stronger_clone"):
        hs.shuffled(hs.pure_dp(1.0), 10, bound="blanket")
    with pytest.raises(hs.DomainError, match="add_remove"):
        hs.epsilon(hs.shuffled(hs.pure_dp(1.0), 10), 1e-3)
    with pytest.raises(hs.DomainError, match="zero_out"):
        hs.epsilon(hs.shuffled(hs.k_ary_randomized_response(1.0, 3), 10), 1e-3, adjacency="zero_out")
    with pytest.raises(hs.DomainError, match="dataset size"):
        hs.poisson_subsampled(hs.shuffled(hs.pure_dp(1.0), 10), 0.1)


@pytest.mark.parametrize("local, most", [(hs.pure_dp(1.0), 1.2), (hs.k_ary_randomized_response(1.0, 5), 2.6)])
def test_bins_of_counts_hide_less(local, most, monkeypatch):  # [theory: shuffle.merge, shuffle.chords]
    """Counts in bins of a standard deviation, against every count by itself."""
    rates, eps = shuffling.rates(hs.shuffled(local, 60)), np.array([0.0, 0.1, 0.3])
    single = shuffling._delta_upper(rates, 60, eps)
    for name, coarse in (("WHOLE", 0), ("STEP", 1.0), ("JOINED", 1e9)):  # stars at a deviation's distance
        monkeypatch.setattr(shuffling, name, coarse)
    merged = shuffling._delta_upper(rates, 60, eps)
    assert (merged >= single).all() and (merged <= most * single).all()
