"""The gate: every status of the C floor maps to an error or passes; both sides agree on their number."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import _core
from hockeystick.what import sampling

PASSES = {"HS_OK", "HS_LOOSE"}
DOMAIN = {"HS_BAD_ARGUMENT"}
NAMES = [
    "HS_OK",
    "HS_LOOSE",
    "HS_BAD_ARGUMENT",
    "HS_SCRATCH",
    "HS_NO_SADDLE",
    "HS_NO_PATH",
    "HS_NO_DECAY",
    "HS_TOO_MANY_NODES",
    "HS_TOO_WIDE",
    "HS_NO_BRACKET",
    "HS_OUT_OF_RANGE",
    "HS_INTERRUPTED",
]
"""Append only: the position is the code."""

HEADER = Path(__file__).parents[1] / "csrc" / "hs.h"


@pytest.mark.parametrize("name", NAMES)
def test_every_status(name):
    code = NAMES.index(name)
    if name in PASSES:
        assert _core.check(code, "here") is None
        return
    kind = hs.DomainError if name in DOMAIN else hs.AccuracyError
    with pytest.raises(kind, match=r"^here: .+") as caught:
        _core.check(code, "here")
    assert caught.value.code == code
    assert "unknown" not in str(caught.value)
    assert isinstance(caught.value, hs.HockeystickError)
    assert isinstance(caught.value, ValueError if name in DOMAIN else ArithmeticError)


@pytest.mark.parametrize("code", [-1, len(NAMES), 1000, -(2**31), 2**31 - 1])
def test_unknown_status(code):
    with pytest.raises(hs.AccuracyError, match="unknown status") as caught:
        _core.check(code)
    assert caught.value.code == code


@pytest.mark.skipif(not HEADER.exists(), reason="the C sources are not here")
def test_header_agrees():
    found = re.findall(r"^\s*(HS_[A-Z_]+) = (\d+)(?:,|$|\s)", HEADER.read_text().split("};")[0], re.M)
    assert [(name, int(code)) for name, code in found] == [(name, i) for i, name in enumerate(NAMES)]


def test_stubs_name_the_arguments_of_the_gate():
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
    stubs = {f.name: [a.arg for a in f.args.args] for f in stub.body if isinstance(f, ast.FunctionDef)}
    gate = {
        name: f for name, f in vars(_core).items() if callable(f) and not name.startswith("_") and inspect.isroutine(f)
    }
    gate = {name: f for name, f in gate.items() if getattr(f, "__module__", "") == _core.__name__}
    assert stubs.keys() == gate.keys()
    for name, f in gate.items():
        assert list(inspect.signature(f).parameters) == stubs[name], name


M, Q, K, WORK = np.array([1.0, 0.5]), np.array([0.1, 0.2]), np.array([3.0, 2.0]), np.empty(10**6)
NODE, WEIGHT = np.polynomial.legendre.leggauss(8)
FAMILY, LOSS, NUM = np.zeros(2, np.intc), np.array([-0.5, 0.5]), np.array([0.4, 0.6])
FIVE, ROWS = np.array([0.1, 1.0, 0.0, 0.1, 0.0]), np.array([[0.0, 1.0, 0.1, 0.0], [0.0, 0.5, 0.2, 0.0]])
WORDS, PLACES = np.zeros(3, np.int64), np.array([0, 2])
LATTICE = np.linspace(-1, 1, 17)
TAILS = np.array([LATTICE + 2, 2 - LATTICE, LATTICE + 2, 2 - LATTICE, LATTICE * 0 + 1e-15])
ATOMS = (np.array([0, 2]), LOSS, NUM, np.ones(1), np.zeros((3, 1)))
LAWS = np.array([[2, 3.0, 0, 0, 0, 2, 0]]), np.array([[0.0, 1], LOSS, np.log(NUM), 0 * LOSS, 0 * LOSS]), np.zeros(5)
PAIR = sampling.packed([sampling.Pair((sampling.Branch(1.0, 0.1, 1.0, 0.0),))])
KEPT = np.zeros(_core.KEPT_ROOM)
RUN, FIT = _core.Rows(M, Q, K), np.array([[0.0, 0.1, 1.0, 1e-9, 1e-9, 0.0, 0.0, 0.0, 0.0, 1.0]])
_core.kept_make(RUN, 0, 0, -5.0, 1e-6, 20.0, KEPT, WORK)

LENGTHS = {
    "Rows": (M, Q, K, FAMILY, np.tile(PAIR, 2), FIT, 1, 0, np.array([M, Q, K]), 0),
    "bulk_line_ask": (PAIR, 3.0, 1, 0.4, NODE, WEIGHT, None),
    "bulk_upper": (PAIR, 3.0, 0.4, -9.0, NODE, WEIGHT, None),
    "jumps_ask": (RUN, 0, 1, 0.4, NODE, WEIGHT, None),
    "single_delta": (PAIR, 0.4),
    "hyperbola_ask": (RUN, 0, 1, 1.0, -10.0, None),
    "contour_ask": (RUN, 0, 1, 1.0, 1e-6, 20.0, 1, None),
    "contour_curve": (RUN, 0, [1.0], 1e-6, 20.0, 1, None),
    "contour_larger": (RUN, 1, 1.0, np.inf, 1e-6, 20.0, 1, None, 700, RUN),
    "chernoff_upper": (RUN, 0, 1, 1.0, None),
    "contour_estimate": (RUN, 0, 1.0, None),
    "kept_make": (RUN, 0, 0, -5.0, 1e-6, 20.0, np.zeros(_core.KEPT_ROOM), None),
    "kept_size": (KEPT,),
    "kept_ask": (KEPT, np.array([[1.0, 0.1, 3.0]]), 0, 0, -5.0, False, None),
    "step_moments_add": (M, K.astype(np.int64), 1, np.zeros((328, 16, 2), np.uint64)),
    "step_moments_add_one": (0.7, 3, np.zeros((328, 16, 2), np.uint64)),
    "step_moments_read": (np.zeros((328, 16, 2), np.uint64),),
    "rate_moments_add": (M, Q, K.astype(np.int64), 1, np.zeros((16, 10, 3), np.uint64)),
    "rate_moments_add_one": (0.7, 0.1, 3, np.zeros((16, 10, 3), np.uint64)),
    "rate_moments_of": (0.1, np.zeros((16, 2), np.uint64), np.zeros((16, 10, 3), np.uint64)),
    "moments_join": (1, np.zeros((328, 16, 2), np.uint64), np.zeros((328, 16, 2), np.uint64)),
    "saddle_ask": (RUN, 0, 1, 1.0, 0, None),
    "saddle_eps_both": (RUN, -5.0, 0, 10.0, None),
    "saddle_cumulants": (RUN, 0, 1.0, None),
    "saddle_moments_upper": (RUN, 0, 1, 1.0, None),
    "saddle_delta_upper": (RUN, 0, 1.0, -5.0, 1, None),
    "saddle_atoms": (*ATOMS, 1, 0.1, 0),
    "saddle_atoms_cgf": (*ATOMS, 1.0),
    "edgeworth_totals": (RUN, 0, NODE, WEIGHT),
    "edgeworth_delta": (FIVE, FIVE, 1, 1, 0.1),
    "edgeworth_eps": (FIVE, FIVE, 1, 1, -3.0),
    "edgeworth_bounded": (0, 1.0, 0.1, 0, NODE, WEIGHT),
    "edgeworth_modulus_upper": (0, 1.0, 0.1, 0, NODE, WEIGHT, 1.0, 2.0, None),
    "prawitz_ask": (RUN, 0, 1, 1.0, NODE, WEIGHT, 20.0, 0.0, None),
    "batch": (M, Q, K, M, 1, 3, 0, 1e-6, 20.0, 1e-3, 1, np.empty((3, 2)), np.empty(2, np.uint8)),
    "individual_charge": (M, 1.0, 9.0, 99, 0, 0, WORDS[:2], WORDS[1:].copy(), np.zeros(2, np.uint8), 1, 0),
    "individual_charge_some": (M, PLACES, 1.0, 9.0, 99, 0, None, WORDS[:2].copy(), np.zeros(2, np.uint8)),
    "individual_scatter": (PLACES, WORDS[:2], None),
    "individual_tilts": (RUN, 0, 9.0, None, 1),
    "individual_chernoff": (np.ones((4, 2), np.int32), M, np.ones((2, 2)), -5.0, 1),
    "individual_group": (
        RUN,
        0,
        1.1,
        26.0,
        9.0,
        np.ones((4, 2), np.int32),
        -5.0,
        1,
        np.full(4, 9.0),
        np.full(4, 9.0),
    ),
    "mixed_ask": (*LAWS, 1, 0.1, 1e-6, 20.0, 1e-6, 100, np.zeros(2), None),
    "mixed_upper": (*LAWS, 0.1, 20.0, None),
    "mixed_cgf": (*LAWS, 1.0, None),
    "mixture_points": (
        np.array([[2.0, -8.0, 0.25, 70.0, 9.0, 0.1, 1.0]]),
        np.array([0.0, 1.0]),
        np.array([0.9, 0.1]),
        0,
    ),
    "sublaplace_points": (1.0, 0.1, 0, 2, NODE, WEIGHT),
    "halves_table": (LOSS, NUM),
    "grid_log_mgfs": (PLACES, None, 0.1, NODE**2, LOSS),
    "convolve_tilts": (PLACES, None, 0.1, NODE**2, 1.0, LOSS, np.zeros((2, 16))),
    "convolve_powers": (np.ones((2, 4), complex), LOSS, K, 1, True, np.ones(4, complex)),
    "convolve_multiply": (np.ones(4, complex), np.ones(4, complex)),
    "poisson_tails": (0.1, 1.0, 1.0, 0, TAILS.copy()),
    "pld_cells": (-1.0, 0.125, TAILS.copy(), 0.0, 0.0),
    "pld_upper": (4, 0.125, TAILS[0][:16], TAILS[1][:16], 0.0),
    "pld_lower": (4, 0.125, TAILS[0][:16], TAILS[1][:16], 0.0, 1.0),
    "pld_laws": (4, -1.0, 0.125, TAILS.copy(), 0.0, 0.0, 1.0),
    "step_tails": (ROWS[0], None),
    "step_nodes": (ROWS[0], 1e-9, NODE, WEIGHT),
    "pld_windows": (ROWS, 1e-9, 1e-9),
    "pld_steps": (ROWS, 2, 0.1, 1.0, M, PLACES, 4 * PLACES, PLACES + 4, np.empty(16), np.empty(16)),
    "pld_table": (2, 2, 0.1, LOSS, np.log(NUM), 2.0),
    "pld_tables": (ROWS, K, 1e-9, NODE, WEIGHT, 2, 2, 0.1),
}
"""Arguments of every gate function whose arrays must have lengths that agree; None: an array that may have any."""

FREE = {
    "individual_charge_some": np.zeros(3, np.int64),
    "individual_scatter": np.zeros(3, np.int64),
    "individual_tilts": np.array([1.0]),
    "grid_log_mgfs": np.array([0, 4, 8]),
    "convolve_tilts": np.array([0, 4, 8]),
    "step_tails": np.array([0.0]),
}
ANY = {
    *(
        (name, i, 0)
        for name, i in (
            ("contour_curve", 2),
            ("Rows", 5),
            ("grid_log_mgfs", 0),
            ("grid_log_mgfs", 3),
            ("grid_log_mgfs", 4),
        )
    ),
    *((name, i, axis) for name in ("mixed_ask", "mixed_upper", "mixed_cgf") for i, axis in ((0, 0), (1, 1))),
    ("Rows", 5, 0),
    ("Rows", 8, 1),
    ("convolve_tilts", 3, 0),
    ("convolve_tilts", 6, 1),
    ("individual_chernoff", 0, 0),
    ("kept_ask", 1, 0),
    ("pld_windows", 0, 0),
    ("poisson_tails", 4, 1),
    ("pld_cells", 2, 1),
}
"""(function, argument, axis) of arrays that may be longer, or of any length."""


NO, NOWHERE = np.zeros(0), np.zeros(0, np.int64)
TAKE_NONE = {
    "individual_checksum": (NOWHERE, 99, 1),
    "normal_tails": (NO,),
    "poisson_place": (0.1, NO),
    "sampling_tails": (0.1, 0.0, 1.0, 0.0, NO),
    "convolve_norms": (NO, 1.0),
    "allocation_line": (1.0, 10.0, 1.0, NO, np.zeros(_core.allocation_work())),
}
NEED_SOME = {
    "term_turned": [
        (np.zeros((3, 16)), LOSS),
        (np.zeros((4, 8)), LOSS),
        (np.zeros((4, 0)), LOSS),
        (np.zeros((4, 16)), NO),
    ],
    "term_transform": [
        (np.zeros((5, 16)), False, np.zeros((2, 1))),
        (np.zeros((6, 8)), False, np.zeros((2, 1))),
        (np.zeros((6, 0)), False, np.zeros((2, 1))),
        (np.zeros((6, 16)), False, np.zeros((2, 0))),
        (np.zeros((6, 16)), True, np.zeros((3, 1))),
    ],
    "term_grown": [(np.zeros((3, 16)), 0.1, 0.1), (np.zeros((4, 8)), 0.1, 0.1), (np.zeros((4, 0)), 0.1, 0.1)],
    "term_jumps": [
        (*case, 12.0, x, rows)
        for case, x, rows in [
            ((1.0, 3.0, 0.1), LOSS, np.zeros((2, 3))),
            ((1.0, 3.0, 0.1), LOSS, np.zeros((3, 0))),
            ((1.0, 3.0, 0.1), NO, np.zeros((3, 3))),
            ((0.0, 3.0, 0.1), LOSS, np.zeros((3, 3))),
        ]
    ],
    "term_two": [
        (1.0, 0.1, LOSS, np.zeros((2, 3)), np.zeros((2, 3))),
        (1.0, 0.1, LOSS, np.zeros((3, 3)), np.zeros((3, 3))),
        (1.0, 0.1, LOSS, np.zeros((3, 0)), np.zeros((2, 3))),
        (1.0, 0.1, LOSS, np.zeros((3, 3)), np.zeros((2, 65))),
        (1.0, 0.1, NO, np.zeros((3, 3)), np.zeros((2, 3))),
    ],
    "halves_sums": [
        (2, np.zeros((3, 2)), np.zeros((2, 3, 3)), 0.5, 3),
        (2, np.zeros((2, 2)), np.zeros((2, 2, 3)), 0.5, 3),
        (2, np.zeros((3, 2)), np.zeros((1, 2, 3)), 0.5, 3),
        (2, np.zeros((3, 2)), np.zeros((2, 2, 2)), 0.5, 3),
        (2, np.zeros((3, 0)), np.zeros((2, 0, 3)), 0.5, 3),
        (2, np.zeros((3, 2)), np.zeros((2, 2, 3)), 0.5, 0),
    ],
    "halves_tails": [
        (np.zeros((2, 2)), LOSS, np.zeros((3, 4)), LOSS),
        (np.zeros((3, 0)), LOSS, np.zeros((3, 4)), LOSS),
        (np.zeros((3, 2)), LOSS, np.zeros((2, 4)), LOSS),
        (np.zeros((3, 2)), LOSS, np.zeros((3, 3)), LOSS),
        (np.zeros((3, 2)), NO, np.zeros((1, 4)), LOSS),
        (np.zeros((3, 2)), LOSS, np.zeros((3, 4)), NO),
    ],
    "gdp_cover": [(1.0, np.zeros((0, 8))), (1.0, np.zeros((2, 7)))],
    "gdp_cuts": [(1.0, 1.0, 0.1, np.zeros((rows, 8)), LOSS) for rows in (0, 1, 3)],
    "gdp_fit": [(0.0, 1.0, 1e-4, np.zeros((0, 8))), (0.0, 1.0, 1e-4, np.zeros((2, 9)))],
    "ranged_curve": [(np.zeros(0, np.int64), 0.1, 1, WORK), (np.array([3, 0]), 0.1, 1, WORK)],
    "convolve_tilt": [(0, 0.1, LOSS, 1.0, 0.0, NO), (0, 0.1, NO, 1.0, 0.0, np.zeros(4))],
    "convolve_tail": [(NO, 0, 0.1, 1.0, 0.0, 3), (LOSS, 0, 0.1, 1.0, 0.0, 3)],
    "grid_log_mgf": [(0, 0.1, NO, 1.0)],
    "two_log_m": [(np.zeros(size, np.uint8), 1.0) for size in (0, 1, 7)],
}
"""Functions whose arrays have lengths of their own: those that take an empty one, and calls that are refused."""


def test_arrays_of_any_length():
    for name, args in TAKE_NONE.items():
        getattr(_core, name)(*args)
    for name, calls in NEED_SOME.items():
        for args in calls:
            with pytest.raises(hs.DomainError, match="outside the domain of the kernel"):
                getattr(_core, name)(*args)


def test_every_gate_function_with_arrays_is_tried():
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
    kinds = re.compile("NDArray|_Vector|_Table|_Longs")
    gate = [f for f in stub.body if isinstance(f, ast.FunctionDef)]
    found = {f.name for f in gate if any(kinds.search(ast.unparse(a.annotation)) for a in f.args.args if a.annotation)}
    assert found | {"Rows"} == LENGTHS.keys() | TAKE_NONE.keys() | NEED_SOME.keys()


def gate_calls():
    for name, args in LENGTHS.items():
        yield name, [FREE.get(name, WORK) if a is None else np.array(a) if isinstance(a, list) else a for a in args]


def test_lengths_of_arrays_must_agree():
    """Shorter, longer, empty: each array of each call by itself. What agrees passes the gate."""
    for name, args in gate_calls():
        call = getattr(_core, name)
        try:
            call(*(a.copy() if isinstance(a, np.ndarray) and a is not WORK else a for a in args))
        except hs.DomainError as error:
            assert "lengths" not in str(error), name
        except hs.AccuracyError:
            pass
        for i, a in enumerate(args):
            if not isinstance(a, np.ndarray) or LENGTHS[name][i] is None:
                continue
            for axis in (axis for axis in range(a.ndim) if (name, i, axis) not in ANY):
                for wrong in (np.delete(a, -1, axis), np.append(a, a.take([0], axis), axis), a.take([], axis)):
                    with pytest.raises(hs.DomainError, match="outside the domain of the kernel"):
                        call(*args[:i], np.ascontiguousarray(wrong), *args[i + 1 :])


def test_directions_that_belong_to_other_runs_are_refused():
    pairs = _core.Rows(M, Q, K, pairs=np.tile(PAIR, 2))
    for rows, add in ((RUN, _core.Rows(M[:1], Q[:1], K[:1])), (RUN, pairs), (pairs, RUN)):
        with pytest.raises(hs.DomainError, match="rows"):
            _core.contour_larger(rows, 1, 1.0, np.inf, 1e-6, 20.0, 1, WORK, 700, add)
