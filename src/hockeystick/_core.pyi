from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]
_Terms: TypeAlias = tuple[float, float, float, float]
_Point: TypeAlias = tuple[int, float, float, float, float, _Terms, int]
_Root: TypeAlias = tuple[int, float, float, float, _Terms | tuple[()], int]

def check(status: int, where: str = "core") -> None: ...
def hyperbola_delta(m: _Vector, q: _Vector, k: _Vector, add: int, eps: float, log_tol: float) -> _Point: ...
def hyperbola_eps(m: _Vector, q: _Vector, k: _Vector, add: int, log_delta: float, log_tol: float) -> _Root: ...
def contour_delta(
    m: _Vector,
    q: _Vector,
    k: _Vector,
    add: int,
    eps: float,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
    n_max: int = ...,
) -> _Point: ...
def contour_eps(
    m: _Vector,
    q: _Vector,
    k: _Vector,
    add: int,
    log_delta: float,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
    n_max: int = ...,
) -> _Root: ...
def contour_work(b: int) -> int: ...
def chernoff_upper(
    m: _Vector, q: _Vector, k: _Vector, add: int, have_eps: int, value: float, work: _Vector
) -> tuple[int, float, float]: ...
def contour_curve(
    m: _Vector,
    q: _Vector,
    k: _Vector,
    add: int,
    eps: _Vector,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
) -> NDArray[np.float64]: ...
def normal_tails(x: _Vector) -> tuple[_Vector, _Vector]: ...
def pld_cells(
    s0: float,
    w: float,
    yb: _Vector,
    ya: _Vector,
    xb: _Vector,
    xa: _Vector,
    rel: _Vector,
    edge: float,
    absolute: float,
) -> tuple[_Vector, _Vector, _Vector, _Vector]: ...
def pld_upper(m: int, w: float, y_upper: _Vector, u_upper: _Vector, bottom: float) -> _Vector: ...
def pld_lower(m: int, w: float, y_lower: _Vector, u_lower: _Vector, top: float, t: float) -> _Vector: ...
def individual_charge(
    norms: NDArray[np.float32] | _Vector,
    scale: float,
    top: float,
    limit: int,
    sticky: int,
    spent: NDArray[np.int64],
    after: NDArray[np.int64],
    active: NDArray[np.uint8],
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
def individual_tilts(m: _Vector, q: _Vector, add: int, k_total: float, t: _Vector, n_threads: int) -> _Vector: ...
def individual_chernoff(
    counts: NDArray[np.int32], t: _Vector, up: _Vector, log_delta: float, n_threads: int
) -> tuple[_Vector, NDArray[np.int32]]: ...
def individual_group(
    m: _Vector,
    q: _Vector,
    k: _Vector,
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
