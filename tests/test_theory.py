"""The theory book and the code agree: every key cited is stated, every paper has an entry, and nothing stands
elsewhere."""

import importlib.util
import re
from pathlib import Path

import pytest

from hockeystick.routes import bounds, eeai, moments
from hockeystick.routes.table import TERMS

TOOL = Path(__file__).parent.parent / "docs" / "theory" / "make_index.py"


@pytest.fixture(scope="module")
def tool():
    if not TOOL.exists() or not (TOOL.parent.parent.parent / "src").exists():
        pytest.skip("the book and the code stand in the source tree only")
    spec = importlib.util.spec_from_file_location("make_index", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_index_lists_every_statement(tool):
    book = tool.statements()
    assert len(book) > 30 and {"pair.curve", "pair.composition"} <= {statement.key for statement in book}
    text = tool.index()
    assert all(f"[{statement.key}](#{statement.key})" in text for statement in book)
    assert all(f"[{key}]" in text for key in tool.references())


def test_book_and_code_agree(tool):
    """Every key cited is stated, every statement is cited from code or marked as background, nothing dangles."""
    assert tool.problems() == []


def test_what_does_not_agree_is_seen(tool, monkeypatch):
    """One of each kind of disagreement, put in on purpose."""
    book = tool.statements()
    cited = {"pair.nothing": [("csrc/x.c", 3)], "pair.curve": [("csrc/x.c", 7)], "pair.loss": [("csrc/y.c", 7)]}
    again = [*book, book[0], tool.Statement("Theorem", "pair.new", (), "pairs", False, frozenset())]
    monkeypatch.setattr(tool, "statements", lambda: again)
    monkeypatch.setattr(tool, "citations", lambda: cited)
    monkeypatch.setattr(tool, "heads", lambda: {"csrc/x.c": 9, "csrc/y.c": 0})
    monkeypatch.setattr(tool, "papers", lambda: {"ABC12": [("csrc/x.c", 4)]})
    monkeypatch.setattr(tool, "sources", lambda: [("csrc/x.c", "/* see [" + "maths B.4] */")])
    found = "\n".join(tool.problems())
    for wanted in (
        f"{book[0].key}: stated 2 times",
        "pair.new has no anchor",
        "pair.new has no proof",
        "no line that computes cites pair.new",
        "no line that computes cites pair.curve",
        "no test cites pair.new",
        "csrc/x.c:3: [theory: pair.nothing] is not stated",
        "csrc/x.c:4: [ABC12] has no entry",
        "nothing uses [GLW21]",
        "csrc/x.c:1: '[" + "maths' is a document outside the repository",
    ):
        assert wanted in found, wanted
    assert "no line that computes cites pair.loss" not in found


def test_a_part_of_proofs_names_what_it_serves(tool):
    """Statements without a test of their own: the nearest ones with a test that rest on them."""
    rests = {"a": (), "b": "a", "c": "b", "d": "a"}
    made = [tool.Statement("Lemma", key, (), "page", True, frozenset(on)) for key, on in rests.items()]
    assert tool.through(made, {"c": ["t"]}) == {"a": ["c"], "b": ["c"], "d": []}
    assert tool.through(made, {"c": ["t"], "d": ["t"]})["a"] == ["d"]


def test_every_term_of_a_budget_leads_to_what_bounds_it(tool):
    """Each route has a row for each of its terms, in their order; so do the literal budgets of the sources."""
    rows = re.findall(
        r"^\| (`.*?) \| `(\w+)` \| .* \| (.*) \|$", (tool.BOOK / "budget.md").read_text("utf-8"), re.MULTILINE
    )
    keys = {statement.key for statement in tool.statements()}
    for _, _, links in rows:
        found = re.findall(r"\]\(#([^)]+)\)", links)
        assert found and set(found) <= keys
    named = [(route, term) for column, term, _ in rows for route in re.findall(r"`(\w+)`", column)]
    for route, terms in TERMS.items():
        assert [term for other, term in named if other == route] == list(terms), route
    others = {term for route, term in named if route not in TERMS}
    literal = {
        name
        for path, text in tool.sources()
        if path.startswith("src")
        for name in re.findall(r'Budget\(\{"(\w+)"', text)
    }
    assert {*eeai.TERMS, *moments.RDP_TERMS, *moments.GDP_TERMS} <= others
    assert literal - others <= set(bounds.MOMENTS_TERMS)
