"""Every error term is tested where it is large: the programs tests/csrc/check_*_terms.c, compiled and run.

Each makes one term large on purpose (a mesh, period, range or number of nodes coarser than any plan would choose) and
asserts that its claim covers the actual error of every case and exceeds it by no more than a stated factor at the
median. One test more asks whole lines for few nats through the gate."""

import math
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
terms = pytest.importorskip("terms")
CHECKS = sorted(p.stem for p in (ROOT / "tests" / "csrc").glob("check_*_terms.c"))
FEW = {"check_line_terms": "2", "check_smoothing_terms": "2"}
FEW |= {
    f"check_{name}_terms": "4" for name in "allocation ends fit hyperbola jumps mixed pair prawitz rates saddle".split()
}
FEW |= {f"check_{name}_terms": "8" for name in "bulk counts".split()}
"""Checks of three seconds and more: one in two of the cases; of seven and more, one in four; of twelve and more, one in
eight. All where slow tests run."""


@pytest.mark.skipif(
    sys.platform == "win32" or not shutil.which(os.environ.get("CC", "cc").split()[0]), reason="no C compiler"
)
@pytest.mark.parametrize(
    "check, few",
    [(check, FEW.get(check, "")) for check in CHECKS]
    + [pytest.param(check, "", marks=pytest.mark.slow) for check in sorted(FEW)],
)
def test_claims_cover_and_do_not_exceed(check, few):
    said, status = terms.run(check, few)
    lines = [line for line in said.splitlines() if not line.startswith("pair ")]
    assert status == 0, "\n".join(lines)
    counts = re.findall(r"^term (\S+) cases (\d+) counted (\d+) of (\d+) ", "\n".join(lines), flags=re.M)
    assert counts
    assert not [name for name, seen, counted, least in counts if seen == "0" or (counted == "0" < least)]


def test_lines_for_few_nats_hold_the_truth():
    """Lines planned for 1 to 14 nats: all four terms at once, errors of 1e-1 to 1e-7, against lines planned for 30."""
    random = np.random.default_rng(20)
    work = np.empty(_core.contour_work(1))
    ratios = []
    for _ in range(300):
        sigma, q, k = np.exp(random.uniform(np.log([0.6, 5e-3, 20]), np.log([4, 0.5, 5000])))
        rows = _core.Rows(np.array([1 / sigma]), np.array([q]), np.array([math.ceil(k)], dtype=float))
        run = rows, int(random.random() < 0.4)
        eps = random.uniform(0, 3) * q * math.sqrt(k * math.expm1(min(1 / sigma**2, 5)))
        status, log_scale, _, truth, *_ = _core.contour_ask(*run, 1, eps, 1e-12, 30.0, 1, work)
        if status > 1 or not truth > 0:
            continue
        T0 = random.uniform(1, 14)
        try:
            status, scale, lower, estimate, upper, *_ = _core.contour_ask(*run, 1, eps, 10.0, T0, 1, work)
        except hs.AccuracyError:
            continue
        if status > 1:
            continue
        truth *= math.exp(log_scale - scale)
        assert lower <= truth * (1 + 1e-9) and truth * (1 - 1e-9) <= upper, (sigma, q, k, eps, T0)
        if abs(estimate - truth) > 1e-8 * truth:
            ratios.append(max(upper - estimate, estimate - lower) / abs(estimate - truth))
    assert len(ratios) > 100 and np.median(ratios) < 20, (len(ratios), np.median(ratios))
