"""Answers of an earlier version are met, and no family of queries is answered less sharply (corpus.py)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import corpus


@pytest.mark.parametrize(
    "rows",
    [pytest.param(slice(7, None, 40), id="500"), pytest.param(slice(None), id="20000", marks=pytest.mark.slow)],
)
def test_answers_meet_those_of_the_corpus(rows):
    wrong, table = corpus.check(corpus.read()[rows])
    assert not wrong, "\n".join(wrong)
    assert "sampled gaussian" in table, "too few answers to compare widths"


def test_the_corpus_visits_everything():
    rows = corpus.read()
    assert len(rows) == corpus.COUNT
    assert len({family for family, _, _ in rows}) > 40
    assert sum(isinstance(found, list) for _, _, found in rows) > 0.6 * len(rows)
    assert len({text for _, text, _ in rows}) > 0.95 * len(rows)


def test_what_is_wrong_is_found():
    row = ["x", "...", [[0.5, 0.6]]]
    assert corpus.compared(row, [[0.55, 0.7]]) == []
    assert "apart" in corpus.compared(row, [[0.61, 0.7]])[0]
    assert "refused" in corpus.compared(row, "AccuracyError")[0]
    assert "slow" in corpus.compared(row, None)[0]
