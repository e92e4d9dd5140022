"""Sharing out work among threads: order, nesting, errors, calls from several threads; and answers that do not depend on
it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import hockeystick as hs
from hockeystick import query
from hockeystick.answers import Point
from hockeystick.threads import in_order
from test_laws import MANY

SIZES = (1, 2, 3, 7)


@pytest.mark.parametrize("n_threads", SIZES)
def test_nested_work_comes_in_order(n_threads):
    seen = set()

    def leaf(x):
        seen.add(threading.get_ident())
        return x * x

    def branch(x):
        return sum(in_order(leaf, range(x), 1 if n_threads == 1 else 1 + x % 3))

    for size in (0, 1, 2, 40):
        expected = [sum(y * y for y in range(x)) for x in range(size)]
        assert list(in_order(branch, range(size), n_threads)) == expected
    assert len(seen) <= n_threads + 1  # one item alone stays in the caller's thread


@pytest.mark.parametrize("n_threads", SIZES)
def test_all_threads_of_a_call_work_at_once(n_threads):
    """Each item waits for n_threads of them: one thread too few would wait for ever."""
    together = threading.Barrier(n_threads, timeout=20)
    assert list(in_order(lambda x: together.wait() >= 0, range(4 * n_threads), n_threads)) == [True] * 4 * n_threads


def test_one_branch_gets_the_threads_of_a_shorter_one():
    seen = set()

    def leaf(x):
        time.sleep(0.005)
        seen.add(threading.get_ident())
        return x

    def branch(size):
        return sum(in_order(leaf, range(size), 1))

    assert list(in_order(branch, (40, 1), 2)) == [780, 0]
    assert len(seen) == 2


@pytest.mark.parametrize("n_threads", SIZES)
def test_results_do_not_pile_up(n_threads):
    begun, taken = [], 0
    for _ in in_order(begun.append, range(100), n_threads):
        taken += 1
        assert len(begun) <= taken + 2 * n_threads


@pytest.mark.parametrize("n_threads", SIZES)
@pytest.mark.parametrize("nested", [False, True])
def test_the_first_error_in_order_is_raised(n_threads, nested):
    def call(x):
        if x >= 5:
            raise ValueError(x)
        return x

    def outer(x):
        return list(in_order(call, range(10 * x), n_threads))

    for _ in range(3):
        with pytest.raises(ValueError, match=r"\(5,\)|^5$"):
            list(in_order(outer, range(4), n_threads) if nested else in_order(call, range(50), n_threads))
        assert list(in_order(abs, range(9), n_threads)) == list(range(9))


def test_a_caller_may_stop_early():
    for _ in range(20):
        assert next(in_order(abs, range(100), 3)) == 0
    assert list(in_order(abs, range(9), 3)) == list(range(9))


@pytest.mark.parametrize("route", ("contour", "pld"))
def test_a_direction_that_is_proved_smaller_is_left_out(monkeypatch, route):
    """Whatever it would say: also where both are asked at once."""
    settings = query._Settings(MANY["distinct"], "add_remove", "both", route, 1e-2, 2)
    found = Point(1.0, 2.0, 3.0, (), "contour")

    def ask(self, what, add, at):
        if add:
            raise hs.AccuracyError("no answer")
        return found

    monkeypatch.setattr(query._Settings, "_one", ask)
    monkeypatch.setattr(query._Settings, "_below", lambda self, add, eps, log_delta: True)
    assert settings._largest("point", 0.5) == found
    monkeypatch.setattr(query._Settings, "_below", lambda self, add, eps, log_delta: False)
    with pytest.raises(hs.AccuracyError):
        settings._largest("point", 0.5)


def test_two_directions_that_both_fail_say_the_same():
    with pytest.raises(hs.AccuracyError) as one:
        hs.delta(MANY["distinct"], 0.5, route="pld", rtol=1e-13)
    with pytest.raises(hs.AccuracyError) as two:
        hs.delta(MANY["distinct"], 0.5, route="pld", rtol=1e-13, n_threads=2)
    assert str(one.value) == str(two.value)


def test_several_callers_at_once():
    def ask(n):
        bound = hs.epsilon(MANY["distinct"], 1e-5, route="pld", rtol=1e-2, n_threads=n)
        return bound.lower, bound.upper

    first = ask(1)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, (2, 3, 1, 2, 2, 3))) == {first}
