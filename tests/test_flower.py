"""The accountant for Flower: its contract without Flower, and Flower's own types where they are installed."""

import json
import math
from types import SimpleNamespace as Of

import pytest

import hockeystick as hs
from hockeystick.adapters import flower
from hockeystick.adapters.flower import HockeystickAccountant

POISSON = ("poisson", "add-or-remove-one")
FIXED = ("without-replacement", "replace-one")
PLAIN = ("no-amplification", "add-or-remove-one")


def config(sampling, relation, max_epsilon=2.0, delta=1e-5, size=10_000):
    return Of(
        target_delta=delta,
        population_size=size,
        neighboring_relation=relation,
        sampling_method=sampling,
        max_epsilon=max_epsilon,
    )


def event(sigma=1.0, sample=100, size=10_000):
    return Of(noise_multiplier=sigma, sample_size=sample, population_size=size)


@pytest.mark.parametrize(
    "model, run, adjacency",
    [
        (POISSON, hs.poisson_subsampled(hs.gaussian(1.0), math.nextafter(0.01, 1)) * 1000, "add_remove"),
        (FIXED, hs.without_replacement(hs.gaussian(1.0), dataset_size=10_000, max_batch=100) * 1000, "replace_one"),
        (PLAIN, hs.gaussian(1.0) * 1000, "add_remove"),
    ],
)
def test_what_is_accounted(model, run, adjacency):
    accountant = HockeystickAccountant(config(*model))
    assert accountant.get_epsilon(1e-5) == 0 and accountant.num_releases == 0
    accountant.compose(event(), 999)
    accountant.compose(event())
    assert accountant.run == run and accountant.num_releases == 1000
    assert accountant.get_epsilon(1e-5) == hs.epsilon(run, 1e-5, adjacency=adjacency).upper
    assert accountant.get_delta(1.0) == hs.delta(run, 1.0, adjacency=adjacency).upper
    spent = accountant.get_privacy_spent()
    assert (spent.epsilon, spent.delta, spent.num_releases) == (accountant.get_epsilon(1e-5), 1e-5, 1000)
    assert accountant.get_privacy_spent(1e-6).epsilon > spent.epsilon and spent.accounting_method == "hockeystick"
    again = HockeystickAccountant(config(*model))
    again.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert again.run == run and again.state_dict() == accountant.state_dict()


def test_would_exceed():
    accountant = HockeystickAccountant(config(*POISSON))
    most = hs.max_steps(sigma=1.0, q=math.nextafter(0.01, 1), eps=2.0, delta=1e-5).value
    assert not accountant.would_exceed(event(), count=most) and accountant.would_exceed(event(), count=most + 1)
    assert accountant.would_exceed(event(), max_epsilon=1.0, count=most) and accountant.num_releases == 0
    with pytest.raises(hs.DomainError, match="max_epsilon"):
        HockeystickAccountant(config(*POISSON, max_epsilon=None)).would_exceed(event())


def test_bad_input():
    with pytest.raises(hs.DomainError, match="no account of sampling_method"):
        HockeystickAccountant(config("poisson", "replace-one"))
    for wrong in (dict(delta=0.0), dict(size=0), dict(max_epsilon=-1.0)):
        with pytest.raises(hs.DomainError):
            HockeystickAccountant(config(*POISSON, **wrong))
    accountant = HockeystickAccountant(config(*POISSON))
    for wrong in (event(sigma=0.0), event(sample=0), event(sample=10_001), event(size=9_999)):
        with pytest.raises(hs.DomainError):
            accountant.compose(wrong)
    with pytest.raises(hs.DomainError):
        accountant.compose(event(), 0)
    good = accountant.state_dict()
    for wrong in (
        {},
        good | {"schema_version": 2},
        good | {"config": {}},
        good | {"compositions": [{}]},
        good | {"compositions": 3},
    ):
        with pytest.raises(hs.DomainError):
            accountant.load_state_dict(wrong)
    assert accountant.num_releases == 0


def test_with_flower():
    serverapp = pytest.importorskip("flwr.serverapp")
    for (sampling, relation), _ in flower.MODELS.items():
        own = serverapp.PrivacyConfig(
            1e-5, 10_000, serverapp.NeighboringRelation(relation), serverapp.SamplingMethod(sampling), 2.0
        )
        accountant = HockeystickAccountant(own)
        accountant.compose(serverapp.GaussianPrivacyEvent(1.0, 100, 10_000), 10)
        assert isinstance(accountant.get_privacy_spent(), serverapp.PrivacySpent)
        members = [name for name in vars(serverapp.PrivacyAccountant) if not name.startswith("_")]
        assert all(hasattr(accountant, name) for name in members) and len(members) > 7
