"""The noisy build (tests/noise.py): no function escapes it, the library proper holds none of it; a reduced run."""

import ctypes
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick import _core

HERE = Path(__file__).parent
CSRC = HERE.parent / "csrc"
EXACT = {"hs_bits", "hs_from_bits", "hs_exp_part", "hs_up", "hs_down", "hs_add_kept"}
"""What needs no noise: hs_exp_part is a part of others, called by nothing else; products and sums round as others."""
LIBM = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "erf erfc lgamma tgamma cbrt pow hypot atan2"
)
"""Functions of libm that are not exact and not correctly rounded."""


def noisy():
    return set(re.findall(r"^#define (\w+)\(.*hs_noisy_", (HERE / "csrc" / "noise.h").read_text(), re.M))


def test_every_elementary_function_is_noisy():
    defined = set(re.findall(r"^static inline \w+ (hs_\w+)\(", (CSRC / "special.h").read_text(), re.M))
    assert defined >= EXACT
    assert defined - EXACT <= noisy()


def test_every_function_of_libm_is_noisy():
    code = re.sub(r"/\*.*?\*/", "", "".join(path.read_text() for path in sorted(CSRC.rglob("*.[ch]"))), flags=re.S)
    called = {name for name in LIBM.split() if re.search(rf"\b{name}\(", code)}
    assert {"exp", "hypot"} <= called <= noisy()


def test_the_library_holds_no_noise():
    assert not any(re.search("hs_noise|hs_noisy|HS_NOISE", path.read_text()) for path in CSRC.rglob("*.[ch]"))
    assert not hasattr(ctypes.CDLL(_core.__file__), "hs_noise_set")


def test_budget_of_one_sampled_step():
    """The shift of eps, known to some units, moves delta by what the budget says: both ends together are as far
    apart."""
    step = hs.poisson_subsampled(hs.gaussian(22.966214101239398), 0.00013008114972509554)
    bound = hs.log_delta(step, 2.139113299578059e-05, direction="add")
    assert bound.upper - bound.lower <= 2.5 * sum(bound.budget.terms.values())


def test_budget_of_plain_steps_by_the_saddle_point():
    """Nothing but rounding parts the ends of plain Gaussian steps: the budget says so."""
    bound = hs.log_delta(
        hs.gaussian(834153557.2941259) * 10**12, -0.0005013120620387102, direction="remove", route="saddlepoint"
    )
    assert bound.upper - bound.lower <= 2.5 * sum(bound.budget.terms.values())


@pytest.mark.slow
@pytest.mark.skipif(not (HERE.parent / "setup.py").exists(), reason="only where the sources are")
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the noisy build is for gcc on x86-64"
)
def test_answers_under_noise():
    command = [sys.executable, str(HERE / "noise.py"), "--n", "100", "--seconds", "60"]
    found = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HS_WERROR": "0"})
    assert found.returncode == 0, found.stdout + found.stderr
