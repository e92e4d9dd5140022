"""The generator of queries: it is deterministic, reaches everything, and what it draws can be pasted."""

import itertools

import hockeystick as hs
import queries
from hockeystick.routes.table import ROUTES
from hockeystick.serial import KINDS


def test_a_case_is_drawn_alone():
    cases = [repr(queries.draw(7, i)) for i in range(50)]
    assert cases[::-1] == [repr(queries.draw(7, i)) for i in range(49, -1, -1)]
    assert len(set(cases)) == 50


def test_every_kind_route_and_query_is_drawn():
    text = "\n".join(repr(queries.draw(0, i)) for i in range(5000))
    assert set(queries.ROUTES) == set(ROUTES)
    names = [f"route={route!r}" for route in ROUTES if route != "auto"]
    names += [f"adjacency={a!r}" for a in queries.ADJACENCIES[1:]] + [f"hs.{query}(" for query in queries.QUERIES]
    names += [f"hs.{step}(" for step in ("from_pmf", "from_curve", "from_loss_cdf", "cyclic_poisson", "public_mixture")]
    assert [name for name in names if name not in text] == []
    assert all(getattr(hs, name) for name in queries.QUERIES)


def test_what_is_drawn_can_be_pasted():
    steps = (step for i in itertools.count() for step, _ in queries.draw(3, i).parts)
    made = []
    for step in itertools.islice(steps, 400):
        try:
            made.append(queries.made(repr(step)))
        except hs.DomainError:
            pass
    assert len(made) > 300
    assert len({type(step) for step in made}) >= len(KINDS) - 1
