"""Names that agree: one word for one thing, old words accepted; bounds that compare, print and slice; steps that add
up."""

import ast
import copy
import inspect
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.individual.renyi import INTEGER_ORDERS
from hockeystick.individual.store import Ledger
from hockeystick.what.given import REGISTERED

SGD = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)


def test_steps_add_up():
    steps = [SGD, hs.laplace(2.0), SGD * 3]
    assert sum(steps) == hs.compose(steps) == hs.compose(*steps) == hs.compose([(SGD, 4), hs.laplace(2.0)])
    assert sum([SGD]) == SGD * 1
    with pytest.raises(TypeError):
        1 + SGD


def test_an_accountant_is_what_ran():
    accountant = hs.Accountant()
    accountant.step(SGD, steps=500)
    accountant.step(SGD, k=500)
    assert hs.epsilon(accountant, 1e-5) == hs.epsilon(SGD * 1000, 1e-5) == accountant.epsilon(1e-5)
    assert hs.compose(accountant, SGD) == SGD * 1001 and hs.to_dict(accountant) == hs.to_dict(SGD * 1000)
    assert hs.advantage(accountant).lower > 0


def test_bounds_compare():
    a, b = hs.epsilon(SGD * 10, 1e-5), hs.epsilon(SGD * 10, 1e-5)
    assert a == b and hash(a) == hash(b) and a != hs.epsilon(SGD * 10, 1e-6) and a != 1.0 and len({a, b}) == 1
    many = hs.delta(SGD * 10, [0.1, 0.2])
    assert many == copy.copy(many) == pickle.loads(pickle.dumps(many)) and many != hs.delta(SGD * 10, [0.1, 0.3])
    assert hs.noise_multiplier(q=0.1, steps=2, eps=1, delta=1e-5) == hs.noise_multiplier(
        q=0.1, steps=2, eps=1, delta=1e-5
    )


@pytest.mark.parametrize("spec", [".0f", ".3f", ".30f", ".1e", ".12e", ".3g", ".17g", "f"])
@pytest.mark.parametrize(
    "low, high", [(1.2345678, 1.2345679), (-0.5, 0.25), (1e-300, 3e-5), (0.0, 1e5), (9.9996, 9.9997)]
)
def test_a_bound_is_printed_outward(spec, low, high):
    text = format(hs.Bound(low, low, high, "x", True, hs.Budget({})), spec)
    ends = [Fraction(end) for end in text.strip("[]").split(", ")]
    assert ends[0] <= Fraction(low) <= Fraction(high) <= ends[1]
    digits = int(re.search(r"\d+", spec + "6")[0])
    for end, value in zip(ends, (low, high), strict=True):
        unit = 10.0**-digits if spec[-1] == "f" else 10.0 ** (1 - digits) * abs(value)
        assert abs(float(end) - value) <= unit * (1 + 1e-12)


def test_formats_of_bounds():
    inf = hs.Bound(0.0, math.inf, math.inf, "x", True, hs.Budget({}))
    assert f"{inf:.2f}" == "[0.00, inf]" and f"{inf}" == repr(inf)
    assert f"{hs.epsilon(SGD * 1000, 1e-5):.3f}" == "[1.828, 1.829]"
    assert f"{hs.delta(hs.gaussian(1.0), [1.0, 2.0]):.2f}" == "[[0.12, 0.13], [0.02, 0.03]]"
    for bad in ("d", ".3x", "10", ".f3", ">10.3f"):
        with pytest.raises(ValueError, match="a Bound is written"):
            format(inf, bad)


def test_entries_of_bounds():
    many = hs.delta(SGD * 100, [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]])
    assert len(many) == 2 and [len(row) for row in many] == [3, 3]
    one = many[1, 2]
    assert one.asked == ("delta", 3.0) and isinstance(one.upper, float) and one.upper == many.upper[1, 2]
    assert one.budget.terms["rounding"] == many.budget.terms["rounding"][1, 2]
    assert many[0][1:].upper.tolist() == many.upper[0, 1:].tolist()
    for ask in (lambda: one[0], lambda: len(one), lambda: float(one), lambda: np.asarray(many), lambda: list(one)):
        with pytest.raises(TypeError):
            ask()
    assert one and many


@pytest.mark.parametrize(
    "old, new",
    [
        (
            lambda: hs.noise_multiplier(q=0.1, steps=2, epsilon=1.0, delta=1e-5),
            lambda: hs.noise_multiplier(q=0.1, steps=2, eps=1.0, delta=1e-5),
        ),
        (
            lambda: hs.max_steps(sigma=2.0, q=0.1, epsilon=1.0, delta=1e-5),
            lambda: hs.max_steps(sigma=2.0, q=0.1, eps=1.0, delta=1e-5),
        ),
        (lambda: hs.epsilon_batch(1.0, 0.1, k=2, delta=1e-5), lambda: hs.epsilon_batch(1.0, 0.1, steps=2, delta=1e-5)),
        (lambda: hs.delta_batch(1.0, 0.1, k=2, eps=1.0), lambda: hs.delta_batch(1.0, 0.1, 2, 1.0)),
        (
            lambda: hs.without_replacement(hs.gaussian(1.0), dataset_size=9, batch=2),
            lambda: hs.without_replacement(hs.gaussian(1.0), dataset_size=9, max_batch=2),
        ),
        (
            lambda: hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.1, dataset_size=9, batch=2),
            lambda: hs.truncated_poisson_subsampled(hs.gaussian(1.0), 0.1, dataset_size=9, max_batch=2),
        ),
        (lambda: hs.GDPFilter(epsilon=1.0, delta=1e-5).budget_mu, lambda: hs.GDPFilter(eps=1.0, delta=1e-5).budget_mu),
        (
            lambda: hs.RDPFilter(epsilon=1.0, delta=1e-5, orders=[16]).budgets,
            lambda: hs.RDPFilter(eps=1.0, delta=1e-5, orders=[16]).budgets,
        ),
        (
            lambda: hs.IndividualGDPFilter(3, epsilon=1.0, delta=1e-5).budget_mu,
            lambda: hs.IndividualGDPFilter(3, eps=1.0, delta=1e-5).budget_mu,
        ),
    ],
)  # fmt: skip
def test_old_words_are_accepted(old, new):
    assert old() == new()


def _taking_eps():
    """Every public function and method with a parameter `eps`."""
    for name in hs.__all__:
        thing = getattr(hs, name)
        for f in vars(thing).values() if inspect.isclass(thing) else [thing]:
            public = inspect.isfunction(f) and (f.__name__ == "__init__" or not f.__name__.startswith("_"))
            if public and "eps" in inspect.signature(f).parameters:
                yield f


@pytest.mark.parametrize("f", list(_taking_eps()), ids=lambda f: f.__qualname__)
def test_epsilon_is_another_name_of_eps_everywhere(f):
    with pytest.raises(hs.DomainError, match="epsilon is another name of eps"):
        f(eps=1.0, epsilon=1.0)


def test_epsilon_by_keyword_is_eps():
    assert hs.delta(SGD, epsilon=1.0) == hs.delta(SGD, 1.0) and hs.log_delta(SGD, epsilon=1.0) == hs.log_delta(SGD, 1.0)
    assert hs.delta(SGD, epsilon=[1.0, 2.0]) == hs.delta(SGD, eps=[1.0, 2.0])
    assert hs.delta_batch(1.0, 0.1, k=2, epsilon=1.0) == hs.delta_batch(1.0, 0.1, 2, 1.0)
    assert hs.from_curve(epsilon=[1.0], delta=[1e-5]) == hs.from_curve([1.0], [1e-5])


def test_numbers_of_other_types():
    assert hs.gaussian(np.array(1.0)) == hs.gaussian(Decimal("1")) == hs.gaussian(Fraction(2, 2)) == hs.gaussian(1.0)
    assert hs.gaussian(1.0) * np.array(3) == hs.gaussian(1.0) * 3
    for inexact in (Decimal("0.1"), Fraction(1, 3)):
        with pytest.raises(hs.DomainError, match="round it the safe way"):
            hs.gaussian(inexact)


def test_messages_advise_what_the_call_has():
    for ask in (
        lambda: hs.noise_multiplier(q=1.0, steps=10**12, eps=1e-9, delta=1e-300),
        lambda: hs.max_steps(sigma=1.0, q=0.01, eps=1e-3, delta=1e-9),
    ):
        with pytest.raises(hs.AccuracyError, match="cannot be met between") as caught:
            ask()
        assert "over" not in str(caught.value)
    with pytest.raises(hs.DomainError, match="n_threads must be an integer from 0 to 4096"):
        hs.epsilon(SGD, 1e-5, n_threads=5000)
    with pytest.raises(hs.DomainError, match="array of losses"):
        hs.from_loss_cdf(lambda s: float(s), lambda s: float(s))


def test_an_eps_beyond_every_route_has_a_bound():
    bound = hs.delta(SGD * 10, 1e300)
    assert bound.certified and bound.lower == 0 and bound.upper <= hs.delta(SGD * 10, 1e3).upper
    with pytest.raises(hs.AccuracyError):
        hs.delta(SGD * 10, 1e300, rtol=0.1)


def test_a_log_says_where_the_contour_failed(caplog):
    with caplog.at_level("DEBUG", "hockeystick"):
        hs.epsilon(SGD * 1000 + hs.laplace(2.0), 1e-5)
        assert not caplog.records
        hs.epsilon(hs.poisson_subsampled(hs.gaussian(0.05), 1e-3) * 10**6, 1e-5)
    assert re.match(
        r"eps at delta=1e-05 of Run\(1000000 x .*: the contour (declined|left)", caplog.records[0].getMessage()
    )


def test_a_log_says_which_ways_an_allocation_went(caplog):
    """What each cost, and why it declined; an explanation lists the same ways."""
    run = hs.random_allocation(hs.gaussian(0.2), 2) * 2
    with caplog.at_level("DEBUG", "hockeystick"):
        hs.epsilon(run, 1e-300, direction="remove")
    said = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"line, remove, of Run\(2 x .*\): declined \(no line .*\), \d+\.\d ms", said[0])
    assert any(re.match(r"shallow points, remove, .*: declined \(no bound of its tails", one) for one in said)
    ways = {each.route: each.why for each in hs.explain(run, delta=1e-300, direction="remove").tried}
    assert [*ways][:4] == ["exact", "contour", "line", "points"]
    assert ways["contour"].startswith("no line") and ways["points"].startswith("no bound of its tails")


def test_saddlepoint_estimates_take_the_larger_direction():
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.3) * 5
    sides = [hs.saddlepoint_delta(run, 0.5, direction=side).log_delta for side in ("remove", "add")]
    assert hs.saddlepoint_delta(run, 0.5).log_delta == max(sides) and sides[0] != sides[1]


def test_custom_laws_are_written_by_name():
    def law(mu):
        return hs.from_loss_cdf(lambda s: ndtr(s / mu - mu / 2), lambda s: ndtr(s / mu + mu / 2))

    mine = law(1.0)
    with pytest.raises(hs.DomainError, match=r"hs\.register"):
        hs.to_json(mine)
    try:
        assert hs.register("mine", mine) is hs.register("mine", mine) is mine
        text = hs.to_json(mine * 10)
        assert hs.from_json(text) == mine * 10
        accountant = hs.Accountant()
        accountant.step(mine, 3)
        again = hs.Accountant()
        again.load_state_dict(accountant.state_dict())
        assert again.run == mine * 3
        with pytest.raises(hs.DomainError, match="registered for another"):
            hs.register("mine", law(0.5))
        REGISTERED["mine"] = law(0.5)
        with pytest.raises(hs.DomainError, match="not the one that was written"):
            hs.from_json(text)
        del REGISTERED["mine"]
        with pytest.raises(hs.DomainError, match=r"no step is registered under 'mine'.*hs\.register"):
            hs.from_json(text)
        for name, step in (("", mine), (3, mine), ("other", SGD)):
            with pytest.raises(hs.DomainError):
                hs.register(name, step)
    finally:
        REGISTERED.pop("mine", None)


# What a filter can still admit


@pytest.mark.parametrize("plan", [None, SGD, SGD * 200 + hs.laplace(50.0) * 3])
def test_admits_is_exact(plan):
    filter = hs.RDPFilter(eps=1.8, delta=1e-5, plan=plan)
    for _ in range(5):
        filter.charge(SGD)
    n = filter.admits(SGD)
    assert n > 100 and all(filter.charge(SGD) for _ in range(n)) and not filter.charge(SGD) and filter.admits(SGD) == 0
    gdp = hs.GDPFilter(budget_mu=1.0)
    assert gdp.charge(0.1) and gdp.admits(0.1) == 98 == sum(gdp.charge(0.1) for _ in range(200))  # 0.1 is a little more


def test_a_plan_loses_little():
    """The budget of the planned order alone bounds what any shares can allow; equal shares lose half."""
    equal = hs.RDPFilter(eps=2.0, delta=1e-5, orders=INTEGER_ORDERS).admits(SGD)
    filter = hs.RDPFilter(eps=2.0, delta=1e-5, plan=SGD)
    planned = filter.admits(SGD)
    best = filter.orders[filter.weights.index(max(filter.weights))]
    alone = hs.RDPFilter(eps=2.0, delta=1e-5, orders=[best]).admits(SGD)
    assert equal < 0.5 * alone and 0.98 * alone < planned <= alone
    assert hs.RDPFilter(eps=1.0, delta=1e-5, plan=SGD).charge(SGD)  # equal shares refuse the first step


def test_the_first_step_charged_is_the_plan(tmp_path):
    huge, other = hs.gaussian(0.1), hs.laplace(40.0)
    asked = hs.RDPFilter(eps=2.0, delta=1e-5, plan=SGD)
    with hs.RDPFilter(eps=2.0, delta=1e-5, path=tmp_path / "f") as filter:
        assert not filter.charge(huge) and filter.admits(other) > 0 and filter.weights == ()  # neither settles anything
        assert filter.admits(SGD) == asked.admits(SGD) and filter.charge(SGD) and asked.charge(SGD)
        assert (filter.orders, filter.weights, filter.budgets) == (asked.orders, asked.weights, asked.budgets)
        assert filter.charge(other) and asked.charge(other)
        left = filter.admits(SGD)
    with hs.RDPFilter.open(tmp_path / "f") as filter:
        assert filter.spent_rho_upper == asked.spent_rho_upper and filter.orders == asked.orders
        assert filter.admits(SGD) == left == asked.admits(SGD) and filter.steps == 3
    with hs.RDPFilter(eps=2.0, delta=1e-5, path=tmp_path / "g"):
        pass
    with hs.RDPFilter.open(tmp_path / "g") as filter:
        assert filter.admits(SGD) == hs.RDPFilter(eps=2.0, delta=1e-5).admits(SGD)
    assert [hs.RDPFilter(eps=1.0, delta=1e-5).admits(SGD) for _ in range(2)] == [3, 3]


def test_the_first_rho_charged_is_the_plan():
    filter = hs.RDPFilter(eps=1.0, delta=1e-5)
    rho = [a * 1e-3 for a in filter.orders]
    n = filter.admits(rho)
    equal = hs.RDPFilter(eps=1.0, delta=1e-5, orders=filter.orders)
    assert n > 1.1 * equal.admits(rho) and sum(filter.charge(rho) for _ in range(n + 5)) == n
    assert filter.weights[filter.orders.index(20)] == max(filter.weights) and len(filter.orders) == 24
    with pytest.raises(hs.DomainError, match="one rho for each of 24 orders"):
        filter.charge(rho[1:])


def test_files_of_filters_whose_shares_were_equal_open(tmp_path):
    parameters = {"orders": list(INTEGER_ORDERS), "sticky": False, "epsilon": 2.0, "delta": 1e-5}
    Ledger.create(
        tmp_path / "f", "rdp_filter", parameters, {"spent": [0] * 24, "steps": 0, "closed": False}, True
    ).close()
    with hs.RDPFilter.open(tmp_path / "f") as filter:
        n = filter.admits(SGD)
        assert n == hs.RDPFilter(eps=2.0, delta=1e-5, orders=INTEGER_ORDERS).admits(SGD) == 371 and filter.charge(SGD)
    with hs.RDPFilter.open(tmp_path / "f") as filter:
        assert filter.admits(SGD) == n - 1 and len(set(filter.weights)) == 1


def test_a_filter_that_can_hold_nothing_is_refused_when_it_is_made():
    with pytest.raises(hs.DomainError, match="leaves none"):
        hs.RDPFilter(eps=1e-3, delta=1e-12)
    weak = hs.RDPFilter(eps=0.06, delta=1e-6)
    assert not weak.charge(hs.approx_dp(0.1, 1e-7)) and weak.admits(hs.gaussian(1e3)) > 0


def test_what_a_filter_takes_of_weights_and_plans(tmp_path):
    with hs.RDPFilter(eps=2.0, delta=1e-5, plan=SGD, path=tmp_path / "f") as filter:
        assert filter.charge(SGD)
        left = filter.admits(SGD)
    with hs.RDPFilter.open(tmp_path / "f") as filter:
        assert filter.admits(SGD) == left and sum(map(Fraction, filter.weights)) <= 1
    for sigma in np.linspace(5, 60, 56):  # some of the orders planned are among the usual ones
        filter = hs.RDPFilter(eps=1.0, delta=1e-5, plan=hs.gaussian(float(sigma)) * 20)
        assert sum(map(Fraction, filter.weights)) <= 1 and len(filter.orders) in (24, 25)
    for wrong in (
        dict(plan=SGD, orders=[2, 3], eps=1, delta=0.1),
        dict(plan=SGD),
        dict(weights=[0.5, 0.6], orders=[2, 3], eps=1, delta=0.1),
        dict(weights=[1.0], orders=[2, 3], eps=1, delta=0.1),
        dict(weights=[0.5, 0.5], orders=[2, 3], budgets=[1.0, 1.0]),
    ):
        with pytest.raises(hs.DomainError):
            hs.RDPFilter(**wrong)
    with pytest.raises(TypeError, match="spend one budget twice"):
        pickle.dumps(filter)
    with pytest.raises(hs.DomainError, match="to be counted"):
        hs.RDPFilter(orders=[2.0], budgets=[1.0]).admits([0.0])


def test_real_orders_and_other_mechanisms_have_a_curve():
    filter = hs.RDPFilter(orders=[2.5, 4.0], budgets=[1.0, 1.0])
    for step in (SGD, hs.laplace(10.0), hs.poisson_subsampled(hs.laplace(10.0), 0.1)):
        before = filter.spent_rho_upper
        assert filter.charge(step)
        rho = hs.rdp(step, [2.5, 4.0])
        for a, b, low, high in zip(before, filter.spent_rho_upper, rho.lower, rho.upper, strict=True):
            assert low <= (b - a) * (1 + 1e-9) + 1e-14 and b - a <= high * (1 + 1e-9) + 1e-14


A_BOUND = re.compile(
    r"(the )?(logs? of )?(an? )?(upper|lower) (bounds?|ends?)\b|(logs? of )?(an? )?bound o[nf]\b|at (least|most)\b",
    re.IGNORECASE,
)
NAMED_SO = re.compile(r"(^|_)(uppers?|lowers?|bound)(_|$)")
WITH_BOTH_ENDS = re.compile("Point|Root|Bound|Epsilons")


def _described():
    """(place, name, its description) of every function that returns numbers, of both floors."""
    root = Path(hs.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not WITH_BOTH_ENDS.search(ast.unparse(node.returns or ast.Pass())):
                yield f"{path.relative_to(root)}:{node.lineno}", node.name, ast.get_docstring(node) or ""
    before = re.compile(r"/\*((?:(?!\*/).)*)\*/\n(?:HS_CLONES |static |inline )*double (\w+)\(", re.S)
    for path in (Path(__file__).parents[1] / "csrc").rglob("*.[ch]"):
        for text, name in before.findall(path.read_text()):
            yield path.name, name, " ".join(text.replace("\n *", " ").split())


def test_a_function_that_returns_a_bound_is_named_as_one():
    wrong = [
        f"{place} {name}: {text[:60]}"
        for place, name, text in _described()
        if A_BOUND.match(text) and not NAMED_SO.search(name)
    ]
    assert not wrong, "\n".join(wrong)
