"""The generator of queries is deterministic, reaches everything, and what it draws can be pasted; 2,000 cases hold."""

import itertools
from collections import Counter

import hockeystick as hs
import laws
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


def test_laws_see_an_answer_that_misses():
    """The judge has teeth: an interval moved by a tenth of its value contradicts the definition, duality, or another route."""
    seen = Counter()
    for i in range(150):
        case = queries.draw(5, i)
        if case.query not in ("delta", "log_delta") or isinstance(case.at[0], list) or "route" in case.options:
            continue
        try:
            found = laws.points(case, case.ask())[0]
        except (hs.DomainError, hs.AccuracyError):
            continue
        if not 1e-200 < found.fact.lower < 0.5 or found.fact.upper > found.fact.lower * 1.01:
            continue
        moved = laws.Fact(found.fact.lower * 1.1, found.fact.upper * 1.1, "moved")
        for law in (laws.truth, laws.duality):
            fact = law(found, queries.Dice(f"{i}"))
            seen[law.__name__] += fact is not None
            assert fact is None or laws.meet(found.fact, fact)
            seen[law.__name__ + " sees"] += fact is not None and not laws.meet(moved, fact)
    assert seen["truth"] > 5 and seen["truth sees"] == seen["truth"]
    assert seen["duality"] > 10 and seen["duality sees"] > seen["duality"] / 2
