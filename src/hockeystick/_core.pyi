from collections.abc import Iterator
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from .answers import Saddle, Scaled

_Vector: TypeAlias = NDArray[np.float64]
_Terms: TypeAlias = tuple[float, float, float, float]
_SixTerms: TypeAlias = tuple[float, float, float, float, float, float]
_Longs: TypeAlias = NDArray[np.int64]
_Table: TypeAlias = NDArray[np.float64]

OK: int
LOOSE: int
NO_SADDLE: int
TOO_WIDE: int
NO_BRACKET: int
NORMAL: int
LAPLACE: int
SUBLAPLACE: int
SUBNORMAL: int
POINTS: int
LOG_CONCAVE: int
RANGE: int
SUBRANGE: int
ALLOCATION: int
DENSITY: int
MIXTURE: int
DROPPED: int
SHIFTS_MAX: int
JUMPS_STEPS: int
SHORT_LINE: int
SHORT_PAIR: int
TURN: int

@final
class Rows:
    shift: _Vector
    q: _Vector
    k: _Vector
    kind: NDArray[np.intc] | None
    pairs: Any
    fits: _Table | None
    ruled: int
    light: int
    outline: _Table | None
    light_outline: int
    def __new__(
        cls,
        shift: _Vector,
        q: _Vector,
        k: _Vector,
        kind: NDArray[np.intc] | None = ...,
        pairs: NDArray[np.uint8] | None = ...,
        fits: _Table | None = ...,
        ruled: int = ...,
        light: int = ...,
        outline: _Table | None = ...,
        light_outline: int = ...,
    ) -> Rows: ...
    def __iter__(self) -> Iterator[_Vector]: ...

def check(status: int, where: str = "core") -> None: ...
def jumps_work(steps: int) -> int: ...
def jumps_ask(
    rows: Rows, add: int, have_eps: int, value: float, node: _Vector, weight: _Vector, work: _Vector
) -> Any: ...
def hyperbola_work(b: int) -> int: ...
def single_delta(pair: NDArray[np.uint8], eps: float) -> Scaled: ...
def bulk_line_work() -> int: ...
def bulk_line_ask(
    pair: NDArray[np.uint8],
    k: float,
    have_eps: int,
    value: float,
    node: _Vector,
    weight: _Vector,
    work: _Vector,
    start: float = ...,
    known: float = ...,
) -> Any: ...
def bulk_upper(
    pair: NDArray[np.uint8], k: float, eps: float, enough: float, node: _Vector, weight: _Vector, work: _Vector
) -> tuple[int, float]: ...
def hyperbola_ask(rows: Rows, add: int, have_eps: int, value: float, log_tol: float, work: _Vector) -> Any: ...
def contour_ask(
    rows: Rows,
    add: int,
    have_eps: int,
    value: float,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
    n_max: int = ...,
) -> Any: ...
def contour_curve(
    rows: Rows, add: int, eps: _Vector, rtol: float, T0: float, n_threads: int, work: _Vector
) -> NDArray[np.float64]: ...
def contour_larger(
    rows: Rows,
    have_eps: int,
    value: float,
    known: float,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
    n_max: int = ...,
    add: Rows | None = ...,
) -> tuple[Any, Any, float, float]: ...
def chernoff_upper(
    rows: Rows, add: int, have_eps: int, value: float, work: _Vector, tilt: float = ...
) -> tuple[int, float, float]: ...
def contour_estimate(rows: Rows, add: int, eps: float, work: _Vector) -> tuple[int, float]: ...
def contour_work(b: int, n_threads: int = 1) -> int: ...

KEPT_MORE: int
FITS_MAX: int
FIT_NODES: int
FIT_TAIL: int
FIT_LOSS: int
KEPT_ROOM: int
KEPT_WORK: int

def kept_make(
    rows: Rows,
    add: int,
    have_eps: int,
    value: float,
    rtol: float,
    T0: float,
    kept: _Vector,
    work: _Vector,
    more: int = ...,
    n_threads: int = ...,
    sides: int = ...,
) -> int: ...
def kept_size(kept: _Vector) -> int: ...
def kept_ask(
    kept: _Vector, rows: _Table, n_kept: int, have_eps: int, value: float, ruled: bool, work: _Vector
) -> tuple[Any, float]: ...

STEP_LOWEST: int
STEP_BOXES: int
STEP_MOMENTS: int
RATE_CELLS: int
RATE_DEGREES: int
RATE_LOWEST: int

def step_moments_add(m: _Vector, k: NDArray[np.int64] | None, sign: int, sums: NDArray[np.uint64]) -> None: ...
def step_moments_add_one(m: float, n: int, sums: NDArray[np.uint64]) -> None: ...
def rate_moments_add(
    m: _Vector, q: _Vector, k: NDArray[np.int64] | None, sign: int, sums: NDArray[np.uint64]
) -> None: ...
def rate_moments_add_one(m: float, q: float, n: int, sums: NDArray[np.uint64]) -> None: ...
def rate_moments_of(q: float, box: NDArray[np.uint64], sums: NDArray[np.uint64]) -> None: ...
def moments_join(sign: int, others: NDArray[np.uint64], sums: NDArray[np.uint64]) -> None: ...
def step_moments_read(sums: NDArray[np.uint64]) -> NDArray[np.float64]: ...
def individual_charge(
    norms: NDArray[np.float32] | _Vector,
    scale: float,
    top: float,
    limit: int,
    sticky: int,
    turn: int,
    spent: NDArray[np.int64],
    after: NDArray[np.int64] | None,
    active: NDArray[np.uint8] | None,
    n_threads: int,
    with_checksum: int,
) -> tuple[int, int, int]: ...
def individual_charge_some(
    norms: NDArray[np.float32] | _Vector,
    index: NDArray[np.int64],
    scale: float,
    top: float,
    limit: int,
    sticky: int,
    spent: NDArray[np.int64],
    after: NDArray[np.int64],
    active: NDArray[np.uint8],
) -> tuple[int, int, int]: ...
def individual_scatter(index: NDArray[np.int64], words: NDArray[np.int64], spent: NDArray[np.int64]) -> None: ...
def individual_checksum(spent: NDArray[np.int64], limit: int, n_threads: int) -> tuple[int, int]: ...
def individual_tilts(rows: Rows, add: int, k_total: float, t: _Vector, n_threads: int) -> _Vector: ...
def individual_chernoff(
    counts: NDArray[np.int32], t: _Vector, up: _Vector, log_delta: float, n_threads: int
) -> tuple[_Vector, NDArray[np.int32]]: ...
def individual_group(
    rows: Rows,
    add: int,
    margin: float,
    T0: float,
    k_total: float,
    counts: NDArray[np.int32],
    log_delta: float,
    n_threads: int,
    eps_upper: _Vector,
    gap: _Vector,
) -> int: ...
def normal_tails(x: _Vector) -> tuple[_Vector, _Vector]: ...
def poisson_place(q: float, s: _Vector) -> tuple[_Vector, int, float, float]: ...
def poisson_tails(q: float, all_y: float, all_x: float, first: int, o: _Vector) -> None: ...
def pld_cells(
    s0: float,
    w: float,
    tails: _Table,
    edge: float,
    absolute: float,
) -> tuple[_Vector, _Vector, _Vector, _Vector]: ...
def pld_upper(m: int, w: float, y_upper: _Vector, u_upper: _Vector, bottom: float) -> _Vector: ...
def pld_lower(m: int, w: float, y_lower: _Vector, u_lower: _Vector, top: float, t: float) -> _Vector: ...
def pld_laws(
    m: int, s0: float, w: float, tails: _Vector, edge: float, absolute: float, t: float, cut: bool = ...
) -> tuple[_Vector, _Vector, float]: ...
def step_tails(step: _Vector, s: _Vector) -> tuple[_Vector, float]: ...
def step_nodes(step: _Vector, p: float, x: _Vector, w: _Vector) -> tuple[_Vector, _Vector]: ...
def pld_windows(table: _Vector, p_low: float, p_high: float) -> tuple[_Vector, _Vector]: ...
def pld_steps(
    table: _Vector,
    m: int,
    dx: float,
    t: float,
    at: _Vector,
    first: _Longs,
    start: _Longs,
    size: _Longs,
    p_upper: _Vector,
    p_lower: _Vector,
) -> tuple[_Vector, _Vector]: ...
def pld_table(up: int, down: int, t0: float, loss: _Vector, log_den: _Vector, k: float) -> _Vector: ...
def pld_tables(
    table: _Vector, k: _Vector, p: float, x: _Vector, w: _Vector, up: int, down: int, t0: float
) -> tuple[_Vector, float]: ...
def batch(
    m: _Vector,
    q: _Vector,
    k: _Vector,
    at: _Vector,
    want_eps: int,
    directions: int,
    replaced: int,
    rtol: float,
    T0: float,
    widest: float,
    n_threads: int,
    ends: NDArray[np.float64],
    done: NDArray[np.uint8],
) -> None: ...
def sampling_truncation(
    p: float, n: float, max_batch: float
) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float]]: ...
def sampling_tails(q: float, q_err: float, up: float, down: float, s: _Vector) -> tuple[_Vector, float]: ...
def saddle_work() -> int: ...
def saddle_ask(rows: Rows, add: int, have_eps: int, value: float, kind: int, work: _Vector) -> Saddle: ...
def saddle_eps_both(rows: Rows, log_delta: float, kind: int, wall: float, work: _Vector) -> Saddle: ...
def saddle_cumulants(rows: Rows, add: int, t: float, work: _Vector) -> tuple[int, _Vector]: ...
def saddle_moments_upper(
    rows: Rows, add: int, have_eps: int, value: float, work: _Vector
) -> tuple[int, float, float]: ...
def saddle_delta_upper(
    rows: Rows, add: int, eps: float, enough: float, n_threads: int, work: _Vector
) -> tuple[int, float, float, float]: ...
def saddle_atoms(
    first: NDArray[np.int64],
    loss: _Vector,
    num: _Vector,
    k: _Vector,
    errors: _Vector,
    have_eps: int,
    value: float,
    kind: int,
) -> Saddle: ...
def saddle_atoms_cgf(
    first: NDArray[np.int64], loss: _Vector, num: _Vector, k: _Vector, errors: _Vector, t: float
) -> tuple[int, float, float]: ...
def edgeworth_totals(rows: Rows, add: int, x: _Vector, w: _Vector) -> tuple[_Vector, _Vector]: ...
def edgeworth_delta(Y: _Vector, X: _Vector, form: int, order: int, eps: float) -> tuple[float, float]: ...
def edgeworth_eps(Y: _Vector, X: _Vector, form: int, order: int, log_delta: float) -> float: ...
def prawitz_ask(
    rows: Rows,
    add: int,
    have_eps: int,
    value: float,
    x: _Vector,
    w: _Vector,
    T0: float,
    T: float,
    work: _Vector,
) -> tuple[int, float, float, float, float, _SixTerms, float]: ...
def prawitz_work() -> int: ...
def edgeworth_bounded(kind: int, m: float, q: float, which: int, x: _Vector, w: _Vector) -> tuple[_Vector, _Vector]: ...
def edgeworth_modulus_upper(
    kind: int, m: float, q: float, which: int, x: _Vector, w: _Vector, y0: float, y1: float, work: _Vector
) -> float: ...
def mixed_ask(
    table: _Table,
    points: _Table,
    lattice: _Vector,
    have_eps: int,
    value: float,
    rtol: float,
    T0: float,
    wide: float,
    n_nodes: int,
    place: _Vector,
    work: _Vector,
    tables: _Vector | None = ...,
) -> Any: ...

@final
class MixedLine:
    def __new__(cls, complement: bool = False, wide: bool = False) -> MixedLine: ...
    @property
    def placed(self) -> bool: ...
    def ask(
        self,
        table: _Table,
        points: _Table,
        lattice: _Vector,
        have_eps: int,
        value: float,
        rtol: float,
        T0: float,
        wide: float,
        n_nodes: int,
        place: _Vector,
        work: _Vector,
        tables: _Vector | None = ...,
    ) -> Scaled: ...
    def near(self, eps: float) -> Scaled: ...
    def curve(self, eps: _Vector) -> _Table: ...

def mixed_cgf(
    table: _Table, points: _Table, lattice: _Vector, t: float, work: _Vector, tables: _Vector | None = ...
) -> tuple[int, float, float]: ...
def allocation_line(
    m: float, t: float, c: float, y: _Vector, tables: _Vector
) -> tuple[float, float, _Vector] | None: ...
def allocation_work() -> int: ...

TERM_LANES: int

def term_turned(term: _Table, y: _Vector) -> _Table: ...
def term_transform(term: _Table, whole: bool, s: _Table) -> _Table: ...
def term_grown(term: _Table, r: float, rho: float) -> tuple[float, float, float, float]: ...
def term_jumps(m: float, b: float, eta: float, last: float, x: _Vector, rows: _Table) -> _Table: ...
def term_two(m: float, peak: float, x: _Vector, cell: _Table, shell: _Table) -> _Vector: ...
def mixed_upper(
    table: _Table,
    points: _Table,
    lattice: _Vector,
    eps: float,
    T0: float,
    work: _Vector,
    tables: _Vector | None = ...,
) -> tuple[int, float]: ...
def mixed_work(n_laws: int, n_points: int, n_subnormal: int, n_nodes: int) -> int: ...
def ranged_curve(m: _Longs, h: float, above: int, work: _Vector) -> _Vector: ...
def ranged_work(points: int, widest: int) -> int: ...
def halves_sums(k: int, step: _Table, terms: NDArray[np.float64], start: float, n: int) -> _Table: ...
def halves_table(num: _Vector, den: _Vector) -> _Table: ...
def halves_tails(a: _Table, b: _Vector, tails: _Table, s: _Vector) -> _Table: ...
def gdp_tangent(mu: float, t: float, eps: float) -> tuple[float, float, float, float]: ...
def gdp_cover(mu: float, points: _Table) -> _Vector: ...
def gdp_cuts(mu: float, room: float, far: float, points: _Table, over: _Vector) -> _Table | None: ...
def gdp_fit(best: float, end: float, close: float, points: _Table) -> float: ...
def mixture_points(rows: _Table, shifts: _Vector, weights: _Vector, add: int) -> _Table: ...
def sublaplace_points(m: float, q: float, add: int, panels: int, node: _Vector, weight: _Vector) -> _Table: ...
def grid_prv(
    m: float, q: float, add: int, dx: float, j0: int, n: int
) -> tuple[_Vector, float, float, float, float]: ...
def grid_log_mgf(j0: int, dx: float, p: _Vector, t: float) -> float: ...
def grid_log_mgfs(j0: _Longs, start: _Longs, dx: float, p: _Vector, t: _Vector) -> _Vector: ...
def convolve_tilt(j0: int, dx: float, p: _Vector, t: float, log_mgf: float, w: _Vector) -> None: ...
def convolve_tilts(
    j0: _Longs, start: _Longs, dx: float, p: _Vector, t: float, log_mgf: _Vector, w: _Vector
) -> _Vector: ...
def convolve_powers(
    spec: NDArray[np.complex128],
    point: _Vector,
    k: _Vector,
    n_threads: int,
    first: bool,
    product: NDArray[np.complex128],
) -> None: ...
def convolve_multiply(a: NDArray[np.complex128], b: NDArray[np.complex128]) -> None: ...
def convolve_norms(x: _Vector, scale: float) -> tuple[float, float]: ...
def convolve_tail(
    r: _Vector, j_lo: int, dx: float, t: float, log_scale: float, n_keep: int
) -> tuple[_Vector, _Vector]: ...
def two_log_m(pair: NDArray[np.uint8], z: float, nats: float = 40.0) -> tuple[float, float]: ...
