"""The Opacus accountant: its contract without Opacus, and inside it where it is installed."""

import copy
import json
import math
from types import SimpleNamespace

import pytest

import hockeystick as hs
from hockeystick.adapters import opacus as adapter
from hockeystick.adapters.opacus import HockeystickAccountant

DPSGD_EPS = 1.828236666516577


def of(history):
    accountant = HockeystickAccountant()
    accountant.history = history
    return accountant


def test_history_alone():
    accountant = of([(1.0, 0.01, 1000)])
    bound = accountant.epsilon_bound(1e-5)
    assert bound.lower <= DPSGD_EPS <= bound.upper == accountant.get_epsilon(delta=1e-5)
    accountant.history = [(1.0, 0.01, 500), (1.5, 0.02, 500)]
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 500 + hs.poisson_subsampled(hs.gaussian(1.5), 0.02) * 500
    assert accountant.get_epsilon(1e-5) == hs.epsilon(run, 1e-5).upper
    assert accountant.get_epsilon(1e-5, direction="add") == hs.epsilon(run, 1e-5, direction="add").upper


def test_steps_merge():
    accountant = HockeystickAccountant()
    assert len(accountant) == 0 and accountant.get_epsilon(1e-5) == 0
    for _ in range(1000):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    assert accountant.history == [(1.0, 0.01, 1000)] and len(accountant) == 1
    assert accountant.get_epsilon(1e-5) == of([(1.0, 0.01, 1000)]).get_epsilon(1e-5)
    accountant.step(noise_multiplier=1.2, sample_rate=0.01)
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    assert len(accountant) == 3


def test_hook():
    accountant = HockeystickAccountant()
    hook = accountant.get_optimizer_hook_fn(sample_rate=0.01)
    for n in (1, 1, 3):
        hook(SimpleNamespace(noise_multiplier=1.5, accumulated_iterations=n))
    assert accountant.history == [(1.5, 0.01, 2), (1.5, 0.03, 1)]


def test_state_dict():
    accountant = of([(1.0, 0.01, 7), (2.0, 0.5, 1)])
    state = accountant.state_dict()
    assert state["mechanism"] == HockeystickAccountant.mechanism() == "hockeystick"
    accountant.step(noise_multiplier=2.0, sample_rate=0.5)
    assert state["history"] == [(1.0, 0.01, 7), (2.0, 0.5, 1)]
    other = HockeystickAccountant()
    other.load_state_dict(json.loads(json.dumps(state)))
    assert other.history == state["history"]
    into = {"kept": 1}
    assert accountant.state_dict(into) is into and into["kept"] == 1
    assert copy.deepcopy(other).get_epsilon(1e-5) == other.get_epsilon(1e-5)


@pytest.mark.parametrize("history", [[(0.0, 0.01, 10)], [(1.0, 0.01, 10), (1e-9, 0.5, 1)]])
def test_no_noise_is_no_privacy(history):
    assert of(history).get_epsilon(1e-5) == math.inf


def test_no_noise_on_a_sample_may_still_be_private():
    """One step of rate 0.01 without noise shows a record with probability 0.01: eps(0.5) is 0, and 0 is not
    excluded."""
    assert of([(0.0, 0.01, 1)]).epsilon_bound(0.5).lower == 0
    assert of([(1e-9, 1.0, 1)]).epsilon_bound(0.5).lower == 0
    assert of([(0.0, 1.0, 1)]).epsilon_bound(0.5).lower == math.inf


def test_what_costs_nothing():
    assert of([(0.0, 0.0, 10), (1.0, 0.0, 10), (1.0, 0.5, 0)]).get_epsilon(1e-5) == 0


BAD = [
    [(-1.0, 0.01, 10)],
    [(math.nan, 0.01, 10)],
    [(math.inf, 0.01, 10)],
    [("1", 0.01, 10)],
    [(1.0, 1.5, 10)],
    [(1.0, -0.1, 10)],
    [(1.0, math.nan, 10)],
    [(1.0, 0.01, -1)],
    [(1.0, 0.01, 2.5)],
    [(1.0, 0.01)],
    [None],
]


@pytest.mark.parametrize("history", BAD)
def test_bad_history(history):
    with pytest.raises(hs.DomainError):
        of(history).get_epsilon(1e-5)
    accountant = of([(1.0, 0.01, 1)])
    with pytest.raises(hs.DomainError):
        accountant.load_state_dict({"history": history, "mechanism": "hockeystick"})
    assert accountant.history == [(1.0, 0.01, 1)]


@pytest.mark.parametrize(
    "state", [None, {}, {"history": []}, {"mechanism": "hockeystick"}, {"history": [], "mechanism": "rdp"}]
)
def test_bad_state(state):
    with pytest.raises(ValueError, match=r"state_dict"):
        HockeystickAccountant().load_state_dict(state)
    with pytest.raises(hs.DomainError, match="history"):
        HockeystickAccountant().load_state_dict({"history": 3, "mechanism": "hockeystick"})


@pytest.mark.parametrize("delta", [0, 1, -1.0, math.nan, "x", None])
def test_bad_delta(delta):
    for history in ([(1.0, 0.01, 1)], [(0.0, 0.01, 1)]):
        with pytest.raises(hs.DomainError, match="delta"):
            of(history).get_epsilon(delta)


# With Opacus and torch


@pytest.fixture
def opacus():
    pytest.importorskip("torch")
    return pytest.importorskip("opacus")


def test_registered(opacus):
    from opacus.accountants import IAccountant, create_accountant

    accountant = create_accountant("hockeystick")
    assert type(accountant) is HockeystickAccountant and isinstance(accountant, IAccountant)
    assert adapter.register() is True


def test_get_noise_multiplier(opacus):
    from opacus.accountants.utils import get_noise_multiplier

    asked = dict(target_epsilon=1.0, target_delta=1e-5, sample_rate=0.01, steps=1000)
    sigma = get_noise_multiplier(**asked, accountant="hockeystick", epsilon_tolerance=1e-4)
    exact = hs.noise_multiplier(q=0.01, steps=1000, epsilon=1.0, delta=1e-5)
    assert exact.limit < sigma < exact.value * 1.001
    assert sigma < get_noise_multiplier(**asked, accountant="rdp", epsilon_tolerance=1e-4)


def train(opacus, engine, target=None):
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    parts = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": torch.utils.data.DataLoader(data, batch_size=8),
        "max_grad_norm": 1.0,
    }
    if target is None:
        model, optimizer, loader = engine.make_private(noise_multiplier=1.5, **parts)
    else:
        model, optimizer, loader = engine.make_private_with_epsilon(
            target_epsilon=target, target_delta=1e-5, epochs=1, **parts
        )
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return len(loader), optimizer


@pytest.mark.filterwarnings("ignore")
def test_privacy_engine(opacus):
    engine = opacus.PrivacyEngine(accountant="hockeystick")
    steps, _ = train(opacus, engine)
    assert engine.accountant.history == [(1.5, 1 / steps, steps)]
    run = hs.poisson_subsampled(hs.gaussian(1.5), 1 / steps) * steps
    assert engine.get_epsilon(1e-5) == hs.epsilon(run, 1e-5).upper
    theirs = opacus.accountants.create_accountant("rdp")
    theirs.history = list(engine.accountant.history)
    assert engine.get_epsilon(1e-5) < theirs.get_epsilon(1e-5)
    fresh = opacus.PrivacyEngine(accountant="hockeystick")
    fresh.accountant.load_state_dict(engine.accountant.state_dict())
    assert fresh.get_epsilon(1e-5) == engine.get_epsilon(1e-5)


@pytest.mark.filterwarnings("ignore")
def test_make_private_with_epsilon(opacus):
    engine = opacus.PrivacyEngine(accountant="hockeystick")
    _, optimizer = train(opacus, engine, target=2.0)
    assert engine.accountant.history[0][0] == optimizer.noise_multiplier
    assert 1.9 < engine.get_epsilon(1e-5) <= 2.0


def test_keywords_of_other_accountants_are_ignored():
    accountant = of([(1.0, 0.01, 1000)])
    assert accountant.get_epsilon(1e-5, alphas=[2, 3], eps_error=0.1, delta_error=1e-9) == accountant.get_epsilon(1e-5)
    with pytest.raises(hs.DomainError):
        accountant.get_epsilon(1e-5, adjacency="neighbour")
