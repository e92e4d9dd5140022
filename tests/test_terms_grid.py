"""Error terms of circles, meshes and closed-form bounds where they are large: see benchmarks/terms_grid.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
terms_grid = pytest.importorskip("terms_grid")


@pytest.mark.parametrize("name", terms_grid.TERMS)
def test_claims_cover_and_do_not_exceed(name):
    find, most, sharp = terms_grid.TERMS[name]
    actual, claimed = find()
    assert np.all(actual <= claimed)
    ratio = np.sort(claimed[actual > 1e-14] / actual[actual > 1e-14])
    assert ratio.size >= 20
    assert np.median(ratio) <= most and ratio[ratio.size // 20] <= sharp
