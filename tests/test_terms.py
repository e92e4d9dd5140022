"""Every error term is tested where it is large: the programs tests/csrc/check_*_terms.c, compiled and run.

Each makes one term large on purpose (a mesh, period, range or number of nodes coarser than any plan would choose) and asserts
that its claim covers the actual error of every case and exceeds it by no more than a stated factor at the median.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
terms = pytest.importorskip("terms")
CHECKS = sorted(p.stem for p in (ROOT / "tests" / "csrc").glob("check_*_terms.c"))


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which(os.environ.get("CC", "cc").split()[0]), reason="no C compiler")
@pytest.mark.parametrize("check", CHECKS)
def test_claims_cover_and_do_not_exceed(check):
    said, status = terms.run(check)
    assert status == 0, "\n".join(line for line in said.splitlines() if not line.startswith("pair "))
